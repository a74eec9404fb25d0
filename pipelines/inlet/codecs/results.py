"""What a codec gives back: where records lie, and what they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from inlet.errors import Event, Reject


class Block(NamedTuple):
    """Whole records next to each other. `offset` is a place in the bytes that were given to `cut`; `context` is known
    before the first record.
    """

    offset: int
    length: int
    context: dict
    num_records: int


class Companion(NamedTuple):
    """A file that comes with another one, which waits for it, `settle_minutes` at most where that is not for ever.

    The first one of `paths` that exists is taken at once. After the wait it is the first one of `others`, then, with
    `has_series`, the last file before it by name: of the same folder and the same ending as the first of `paths`.
    """

    name: str  # what the codec calls it
    paths: list[str]  # where it may lie, nearest first
    others: list[str] = []  # files that take its place, nearest first
    has_series: bool = False
    is_needed: bool = True  # does the file wait for ever where there is none of them?
    option: str = ""  # of the source: what ends the wait, in words


STANDS, ABANDONED = VERDICTS = ("stands", "abandoned")


class Mark(NamedTuple):
    """A verdict of the feed on all records before a place that no mark before has judged, whatever file they are in:
    they stand, or their writer has given them up (and writes them again). Records that no mark has judged yet wait."""

    offset: int
    num_records: int  # records of the data up to there
    verdict: str  # of VERDICTS


class Cut(NamedTuple):
    """The blocks of some bytes, which follow each other without a gap up to `consumed`; the context there; why nothing
    after it can be framed (offsets from the first of these bytes); the marks in these bytes, in order, or None where
    the format gives up nothing: then all records stand."""

    blocks: list[Block]
    context: dict
    consumed: int
    problem: Reject | None = None
    marks: Sequence[Mark] | None = None


CHECKPOINT = "checkpoint"  # kind of a control event at whose place people ask for rows: codecs with HAS_CHECKPOINTS

# kind of a control event by which a feed says whether its task loads tables. Its detail has `task`, `is_loading`, and
# `at`: the broker's time in ISO 8601, or null. Loads whose rows all came before one that is not loading have ended
TASK_STATUS = "task_status"


class Control(NamedTuple):
    """Something a feed says that is no change of a row: DDL, a checkpoint, an empty load. A row of
    silver.control_events.

    It is a record of its own where the decoder counts it in `num_control`, else it comes with a change. Where it is an
    event of a transaction its detail says so, as `event_detail` has it. That of a checkpoint has, where they are known,
    its `name`, its `local_time` and its `timestamp` (UTC), in ISO 8601.
    """

    kind: str
    unit_offset: int
    unit_length: int
    source_schema: str | None = None
    source_table: str | None = None
    change_seq: str | None = None  # its place in the order; the same event at the same place is kept once
    load_id: str | None = None
    detail: str = "{}"  # JSON


def event_detail(first: Event, first_seq: str, last: Event | None = None, last_seq: str | None = None, num: int = 1):
    """Members of a control event's detail, by which silver.transactions counts its records as events. In: where the
    first of them stands, and the last one; their change_seq; how many they are."""
    last = last or first
    return {
        "records": num,
        "transaction_id": first.transaction_id,
        "first_counter": first.counter,
        "last_counter": last.counter,
        "is_last": last.is_last,
        "first_change_seq": first_seq,
        "last_change_seq": last_seq or first_seq,
    }


class Definition(NamedTuple):
    """A table's column list that the feed itself gives, in force from `change_seq` on. A row of
    silver.table_versions.
    """

    source_schema: str
    source_table: str
    columns: list[dict]  # name, type (Spark SQL), nullable, maybe source_type, charset, encoding; in order
    key: list[str]
    change_seq: str
    unit_offset: int
    # the feed's own number of the list, which rises; None where it has none. The feed may tell no place of such a list
    # (change_seq is empty), or several: it is in force from the least on
    version: int | None = None
    detail: dict | None = None  # what the feed says of it beyond columns and key


class Setting(NamedTuple):
    """What a definition file says of an option of its source."""

    value: str | list[str]
    said: str  # where


class Settings(NamedTuple):
    """What definition files say of their source itself: `inlet import` holds it against inlet.yml."""

    options: dict[str, Setting]
    tables: dict[str, str]  # the source's `tables`, in the order that its records need; none where nothing is said
    tables_said: str  # where
    notes: list[str]  # what a person has to know


class Preview(NamedTuple):
    """What the names of a source's files say before one is read."""

    lacking: list[str]  # what they cannot be read without, each in words
    samples: list[str]  # files whose beginning says the rest


class Part(NamedTuple):
    """A record that is no change by itself. It waits in silver.waiting until the codec's `join` settles all parts of
    its key.

    A part of no length is a note: the feed says something about its key, such as that its transaction is over. It
    accounts for nothing.
    """

    key: str
    unit_offset: int
    unit_length: int
    note: str = ""  # what `join` needs to know of it beside its bytes and its unit's context
    change_seq: str | None = None


class Waiting(NamedTuple):
    """A part as `join` is given it."""

    unit_id: str
    part: Part
    data: bytes  # the record
    context: dict  # of its unit; of a message its topic, partition and offset


@dataclass
class Decoded:
    """What a unit holds.

    `changes` is an Arrow batch with the columns of the codec's `CHANGES`, or a list of dicts: any columns of
    silver.changes, images and `header` as dicts of plain values, and always `source_schema`, `source_table`,
    `table_version` (of the contract it was read by), `change_seq`, `operation`, `unit_offset`, `unit_length`; what is
    left out is null. In Arrow, images and `header` are `codec.IMAGE`.
    """

    changes: pa.RecordBatch | list[dict]
    rejects: Sequence[Reject] = ()
    controls: Sequence[Control] = ()
    bytes_framing: int = 0  # of control records and between records
    num_control: int = 0
    definitions: Sequence[Definition] = ()
    parts: Sequence[Part] = ()


@dataclass
class Joined:
    """What parts of one key are together. Changes (dicts) and rejects name the `unit_id`, `unit_offset` and
    `unit_length` of one part each; the other settled parts are accounted for as control records. `waiting` are the
    parts that go on waiting. Where it rejects, each settled part is a change or a reject, so that all come back when
    they are decoded again; but for those of `control`, which belong to none that is rejected."""

    changes: Sequence[dict] = ()
    rejects: Sequence[tuple[str, Reject]] = ()  # (unit_id, reject)
    waiting: Sequence[Waiting] = ()
    control: Sequence[Waiting] = ()  # settled without a change of their own
