"""Full loads of sources whose REFRESH messages carry no order: which load a message belongs to, and when that began.

A full load of a table is a run of its REFRESH messages. It starts at the Kafka timestamp of its first message, cut to
hundredths; a message more than the gap (option `load_gap_minutes`) after the last one seen starts a new load. A load
that is known keeps its start and id for good; a message up to the gap before its first one belongs to it too. Nothing
announces the end of a load. Its table changes only after it, so it has ended once there is a change of the table after
its start and before the next load's; option `loads_end: gap` takes it for ended too once the source goes on more than
the gap after its last message (tasks that only load, tables that hardly change): a load that broke off is then taken
for whole. ASSUMED: Kafka timestamps of one load are never further apart than the gap, those of two loads always are.
"""

import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

HUNDREDTH_MICROSECONDS = 10_000


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


def assign_loads(known: list[dict], seen: dict, gap_minutes: float = 60) -> list[dict]:
    """Loads with what was seen added. In: loads {source, table, load_id, started_at16, first_at, last_at}; by (source,
    table) the (first, last) times of REFRESH messages, in any order. Out: the same, sorted by source, table,
    first_at."""
    gap = datetime.timedelta(minutes=gap_minutes)
    loads = [dict(load) for load in known]
    for (source, table), spans in sorted(seen.items()):
        own = [load for load in loads if (load["source"], load["table"]) == (source, table)]
        for first, last in sorted(spans):
            load = next((one for one in own if first <= one["last_at"] + gap and last >= one["first_at"] - gap), None)
            if load is None:
                load = {
                    "source": source,
                    "table": table,
                    "load_id": f"{table}@{time16(first)}",
                    "started_at16": time16(first),
                    "first_at": first,
                    "last_at": last,
                }
                own.append(load)
                loads.append(load)
            load["first_at"], load["last_at"] = min(load["first_at"], first), max(load["last_at"], last)
    return sorted(loads, key=lambda load: (load["source"], load["table"], load["first_at"]))


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
    """(first, last) change_seq between which a change of the table proves that a load has ended: from its start to that
    of the next.
    """
    starts = [
        other["started_at16"] for other in loads if (other["source"], other["table"]) == (load["source"], load["table"])
    ]
    return load["started_at16"], min((start for start in starts if start > load["started_at16"]), default="~")


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
    return f"{at:%Y%m%d%H%M%S}{at.microsecond // HUNDREDTH_MICROSECONDS:02d}"
