"""Full loads of sources whose REFRESH messages carry no order: which load a message belongs to, and when that began.

A full load of a table is a run of its REFRESH messages. It starts at the Kafka timestamp of its first message, cut to
hundredths; a message more than the gap (option `load_gap_minutes`) after the last one seen starts a new load. A load
that is known keeps its start and id for good; a message up to the gap before its first one belongs to it too. Each
topic of a load has a number of four digits, which its rows have in their places: a checksum of its name, or the next
number that no other topic of a load of the source with the same start has.

The start is a time of the broker, and the order of changes has times of Qlik's server. A change that comes after a row
of a load in the feed is newer than it, so the load has to begin before that change. `clock_skew_seconds` moves the
start of new loads earlier by as much as the clocks may differ; changes in the same batch that come from a topic of the
load after its first row do so too. A start that is too early does no harm: the changes after it are applied to rows
that have them already. Changes that come later and still sort before a load are reported (`change_before_load`).

Messages without a broker's time, as those of files, have that of option `load_time` (load_time.py), or are rejected.

Nothing announces the end of a load. Its table changes only after it, so it has ended once there is a change of the
table after its first message, and after what the clocks may differ, and before the next load's start; option
`loads_end: gap` takes it for ended too once the source goes on more than the gap after its last message (tasks that
only load, tables that hardly change): a load that broke off is then taken for whole.

ASSUMED: Kafka timestamps of one load are never further apart than the gap, those of two loads always are; clocks never
differ by more than the gap; changes of a table that come after a row of its load are not older than it.
"""

import datetime
import re
import zlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from inlet import change
from inlet.codecs.qlik import load_time
from inlet.codecs.qlik.load_time import HUNDREDTH, time_of16
from inlet.errors import InletError
from inlet.source import Source

NUM_TOPICS = 9999  # numbers that topics of loads with the same start can have
SECTION = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*/?)?")
NAMED = "as Qlik's message format names it: `{}/` is an object of that name, `{}_` begins the name of each member"


class Options(BaseModel):
    """A source's `options`."""

    model_config = ConfigDict(extra="forbid")
    load_gap_minutes: float = Field(
        default=60,
        gt=0,
        description="between two messages of a table's full loads, more than which they are of two loads",
    )
    loads_end: Literal["change", "gap"] = Field(
        default="change",
        description="what tells that a load has ended: `change`, the next change of its "
        "table; `gap`, that or a source that goes on more than the gap after it",
    )
    clock_skew_seconds: float = Field(
        default=0,
        ge=0,
        description="by how much the clocks of broker and Qlik's server may differ: a new full load begins so much "
        "before its first message, in the order of changes",
    )
    load_time: str | None = Field(
        None,
        description="when a full load began, for messages without a broker's time, as those of files: `first`, before "
        "all changes; a time in UTC, 14 or 16 digits; `modified`, the file system's time of the file; `name:PATTERN` "
        "of its whole name, with a group `time`; `member:PATH` of the message, as `headers.timestamp`. Without it "
        "such rows are rejected",
    )
    needs_metadata: bool = Field(
        default=True,
        description="whether a message with masks that names a column list (`messageSchemaId`) waits for its metadata "
        "message where the source has brought none at all; `false` takes the contract's order for it there",
    )
    mask_order: Literal["auto", "big", "little"] = Field(
        default="auto",
        description="which byte of a mask in Avro has the first eight columns: the last one (`big`), the first one "
        "(`little`); `auto`: the one that fits the message, see masks. In JSON it is the last one",
    )
    data_section: str | None = Field(
        None,
        description=f"where a message has its data, {NAMED.format('data', 'data')}, empty text is for names without a "
        "beginning. Without it, the names of the contract's columns tell it where only one reading fits",
    )
    before_section: str | None = Field(
        None, description="where a message has the row of before, the same way: `beforeData/`, `beforeData_`"
    )
    headers_section: str | None = Field(
        None, description="where a message has Qlik's headers, the same way: `headers/`, `headers_`"
    )
    legacy_null: Literal["auto", "null", "text"] = Field(
        "auto",
        description="what the text NULL of a text column is in messages of version 5 and before: SQL `null`, the "
        "`text`; `auto`: a reject, for the message does not say which",
    )
    large_null: Literal["auto", "null", "unchanged"] = Field(
        "auto",
        description="what a null of a large object (source_type CLOB, NCLOB, BLOB) is in an update, which Qlik may not "
        "have looked up: SQL `null`; `unchanged`; `auto`: a reject where the row of before does not have it, too",
    )
    tombstones: Literal["ignore", "delete"] = Field(
        "ignore",
        description="what a message without a value is: `ignore`, counted as control event `tombstone`; `delete`, a "
        "delete of the row that its key names, placed by the broker's time and the offset. Choose `delete` only where "
        "Qlik writes deletes as tombstones (deleteAsTombstone)",
    )
    tombstone_key: Literal["auto", "text", "json"] = Field(
        "auto",
        description="how the message key of a tombstone is written: `text`, the value of a key of one column; `json`; "
        "`auto`: by its form, a reject where both readings fit and differ",
    )

    task_name: str | None = Field(
        None,
        description="the Qlik task of the source, where topics `attrep_*` have rows of other tasks, too: those are "
        "counted alone. Without it all rows are taken, and statuses of several tasks end no full load",
    )
    whole_task: bool = Field(
        True,
        description="whether the source reads all topics of its task, so that `inlet status` holds the records that "
        "attrep_history counts against those that were landed",
    )

    @field_validator("load_time")
    @classmethod
    def _load_time(cls, text: str | None) -> str | None:
        return load_time.checked(text)

    @field_validator("data_section", "before_section", "headers_section")
    @classmethod
    def _section(cls, name: str | None) -> str | None:
        if name is not None and not SECTION.fullmatch(name):
            raise ValueError(f"expected letters, digits and _, maybe a / at the end, or nothing, found {name!r}")
        return name

    @model_validator(mode="after")
    def _apart(self):
        told = [name for name in (self.data_section, self.before_section, self.headers_section) if name]
        if len(set(told)) < len(told) or self.data_section == self.before_section == "":
            raise ValueError("data_section, before_section and headers_section: expected names that differ")
        return self


def assign_loads(
    known: list[dict],
    seen: dict,
    gap_minutes: float = 60,
    skew_seconds: float = 0,
    changes_after: dict[tuple[str, str], str] | None = None,
) -> list[dict]:
    """Loads with what was seen added. In: loads {source, table, load_id, started_at16, first_at, last_at, topics,
    skew_seconds}; by (source, table) spans of REFRESH messages, (first time, last time, topic, ...), in any order; by
    (source, load_id) of new loads the least change_seq of what comes after their first row. Out: the same, sorted by
    source, table, first_at. A load without `topics` is one of an earlier Inlet, which kept none."""
    gap, skew = datetime.timedelta(minutes=gap_minutes), datetime.timedelta(seconds=skew_seconds)
    loads = [dict(load) for load in known]
    numbers = _Numbers(loads)
    of_table: dict[tuple[str, str], list[dict]] = {}
    for earlier in loads:
        of_table.setdefault((earlier["source"], earlier["table"]), []).append(earlier)
    for (source, table), spans in sorted(seen.items()):
        own = of_table.get((source, table), [])
        for first, last, *topics in sorted(spans):
            load = next((one for one in own if first <= one["last_at"] + gap and last >= one["first_at"] - gap), None)
            if load is None:
                load_id = f"{table}@{time16(first)}"
                start = min(first - skew, _before((changes_after or {}).get((source, load_id)), first))
                load = {
                    "source": source,
                    "table": table,
                    "load_id": load_id,
                    "started_at16": numbers.start(source, start),
                    "first_at": first,
                    "last_at": last,
                    "topics": {},
                    "skew_seconds": skew_seconds,
                }
                own.append(load)
                loads.append(load)
            load["first_at"], load["last_at"] = min(load["first_at"], first), max(load["last_at"], last)
            for topic in sorted(topics):
                numbers.give(load, topic)
    return sorted(loads, key=lambda load: (load["source"], load["table"], load["first_at"]))


def file_time(source: Source, path: str, modified_at: datetime.datetime | None) -> datetime.datetime | None:
    """The time of messages of a file, by option load_time."""
    return load_time.of_file(source.options_as(Options).load_time, path, modified_at)


def window(load: dict, source: Source) -> tuple[str, str]:
    """(first, last) change_seq of changes that sort before a load's rows, and may come after them in the feed. A time
    that an option gives may be off by more than clocks are.
    """
    options = source.options_as(Options)
    first = load["first_at"] - datetime.timedelta(minutes=options.load_gap_minutes)
    return change.NO_TIME if options.load_time else time16(first), load["started_at16"] + "~"


def _before(change_seq: str | None, at: datetime.datetime) -> datetime.datetime:
    """A hundredth before a place, or a time where there is none, or its digits are no time."""
    try:
        return time_of16(change_seq[:16]) - HUNDREDTH if change_seq else at
    except ValueError:
        return at


def moved(load: dict, loads: list[dict], topics: list[str], seconds: float, before: str | None) -> dict:
    """A load with an earlier start, which no other load of its source has, and numbers for all its topics. In: the
    loads of its source; by how many seconds at least; a change_seq that it has to come before.
    """
    at = time_of16(load["started_at16"])
    start = min(at - max(datetime.timedelta(seconds=seconds), HUNDREDTH), _before(before, at))
    taken = {other["started_at16"] for other in loads}
    while time16(start) in taken:
        start -= HUNDREDTH
    found = load | {"started_at16": time16(start), "topics": {}}
    numbers = _Numbers([])
    for topic in sorted(topics):
        numbers.give(found, topic)
    return found


class _Numbers:
    """The numbers of topics, by source and start of their loads: no two rows of loads of a source share a place."""

    def __init__(self, loads: list[dict]):
        self.taken: dict[tuple[str, str], set[int]] = {}
        self.unnumbered = {(load["source"], load["started_at16"]) for load in loads if "topics" not in load}
        for load in loads:
            self.taken.setdefault((load["source"], load["started_at16"]), set()).update(load.get("topics", {}).values())

    def start(self, source: str, at: datetime.datetime) -> str:
        """The start of a new load: not that of a load whose topics are not known."""
        while (source, time16(at)) in self.unnumbered:
            at -= HUNDREDTH
        return time16(at)

    def give(self, load: dict, topic: str) -> None:
        """Number a topic of a load. Raises: InletError."""
        if "topics" not in load or topic in load["topics"]:
            return
        taken = self.taken.setdefault((load["source"], load["started_at16"]), set())
        if len(taken) == NUM_TOPICS:
            raise InletError(
                f"Full loads of {load['source']} from more than {NUM_TOPICS} topics start at {load['started_at16']}",
                "Make several sources of these topics",
            )
        number = topic_number(topic)
        while number in taken:
            number = number % NUM_TOPICS + 1
        taken.add(number)
        load["topics"] = load["topics"] | {topic: number}


def topic_number(topic: str, load: dict | None = None) -> int:
    """The number of a topic in the places of a load's rows; without a load, the one that it has unless it is taken."""
    given = load.get("topics", {}) if load else {}
    return given.get(topic) or 1 + zlib.crc32(topic.encode()) % NUM_TOPICS


def renumbered(loads: list[dict]) -> set[tuple[str, str]]:
    """(source, topic) of topics that have another number than their own in some load."""
    return {
        (load["source"], topic)
        for load in loads
        for topic, number in load.get("topics", {}).items()
        if number != topic_number(topic)
    }


def load_of(loads: list[dict], source: str, table: str, at: datetime.datetime, gap_minutes: float = 60) -> dict | None:
    """The load of a message: the last one that began at or before it and had not ended more than the gap before it."""
    gap = datetime.timedelta(minutes=gap_minutes)
    fitting = [
        load
        for load in loads
        if (load["source"], load["table"]) == (source, table) and load["first_at"] <= at <= load["last_at"] + gap
    ]
    return max(fitting, key=lambda load: load["first_at"], default=None)


def proof_span(load: dict, loads: list[dict]) -> tuple[str, str]:
    """(first, last) change_seq between which a change of the table proves that a load has ended: from its first message
    to the start of the next.
    """
    starts = [
        other["started_at16"] for other in loads if (other["source"], other["table"]) == (load["source"], load["table"])
    ]
    first = time16(load["first_at"] + datetime.timedelta(seconds=load.get("skew_seconds", 0)))
    return max(load["started_at16"], first), min(
        (start for start in starts if start > load["started_at16"]), default="~"
    )


def is_over(load: dict, loads: list[dict], newest_seq: str, options: Options) -> bool:
    """Does the gap end a load? In: all loads; the greatest change_seq of its source."""
    over = time16(load["last_at"] + datetime.timedelta(minutes=options.load_gap_minutes))
    times = [time16(other["last_at"]) for other in loads if other["source"] == load["source"]]
    return options.loads_end == "gap" and max([*times, newest_seq]) > over


def time16(at: datetime.datetime) -> str:
    """YYYYMMDDHHmmSShh of a UTC time.

    >>> time16(datetime.datetime(2026, 1, 2, 3, 4, 5, 678901))
    '2026010203040567'
    """
    return f"{at:%Y%m%d%H%M%S}{at.microsecond // 10_000:02d}"
