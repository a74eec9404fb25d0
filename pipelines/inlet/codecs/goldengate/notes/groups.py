"""Which records of a trail are one change, for `inlet inspect`: a before-image and its update, segments, a row and its
LOB chunks.

The same rules as trail/sequence.py, in plain Python. Source: docs/formats/goldengate_trail.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from inlet.codecs.goldengate.notes.frames import Frame
from inlet.codecs.goldengate.notes.header import LAST, MIDDLE, Fault, Header, has_data
from inlet.codecs.goldengate.trail import io_types, metadata
from inlet.codecs.goldengate.trail.io_types import (
    CHANGE,
    CONTROL,
    DDL,
    METADATA,
    RESTART_ABEND,
    RESTART_OK,
    SEGMENT,
    UNKNOWN,
)
from inlet.table import Table

KEY_UPDATES = (115, 117)
MAX_GROUP = 16 << 20  # bytes; LOB chunks after that are records of their own, and segments belong to no record
FAULTY, FILE_HEADER, LOB_CHUNK = "faulty", "file header", "lob chunk"
WHOLE_RECORD = "expected a record, whole and with a header"


class Transaction(NamedTuple):
    id: str | None
    csn: str | None


@dataclass
class Event:
    """Records that are one change, or one record that is none. `before`, `base` and `chunks` are its frames: those of a
    before-image, of the change, of LOB chunks after it."""

    base: list[tuple[Frame, Header | None]]
    what: int | str
    before: list[tuple[Frame, Header | None]] = field(default_factory=list)
    chunks: list[tuple[Frame, Header | None]] = field(default_factory=list)
    fault: Fault | None = None
    fault_at: int | None = None  # where that is a fault of the frame
    counter: int | None = None
    is_last: bool | None = None
    transaction: Transaction | None = None
    change_seq: str | None = None
    name: str | None = None  # as the trail names the table
    table: str | None = None  # SCHEMA.TABLE
    contract: Table | None = None

    @property
    def frames(self) -> list[tuple[Frame, Header | None]]:
        return [*self.before, *self.base, *self.chunks]

    @property
    def has_full_image(self) -> bool:
        """Is one of its images a full one?"""
        rows = [*self.before[:1], *self.base[:1]]
        return any(header.is_full and header.io_type in io_types.FULL for _, header in rows if header)

    @property
    def header(self) -> Header | None:
        """Of its last record: an update's, not its before-image's."""
        return self.base[-1][1]


def what_of(io_type: int) -> int:
    return io_types.IO_TYPES.get(io_type, ("", UNKNOWN))[1]


def may_be_definition(event: Event) -> bool:
    """May a record that cannot be read have been a definition?"""
    header = event.frames[0][1]
    return header is None or what_of(header.io_type) in (METADATA, UNKNOWN)


def event_at(rows: list, at: int, body_of: Callable[[Frame], bytes]) -> tuple[Event, int]:
    """The event that begins at a row, and the row after it. In: the payload of a record's D."""
    frame, header = rows[at]
    if frame.kind == "F":
        return Event([rows[at]], FILE_HEADER), at + 1
    if frame.fault or header is None:
        kind, place = frame.fault or ("bad_header", frame.at)
        return Event([rows[at]], FAULTY, fault=(kind, WHOLE_RECORD), fault_at=place), at + 1
    what = what_of(header.io_type)
    if what in (UNKNOWN, io_types.UNSUPPORTED):
        kind = "unknown_operation" if what == UNKNOWN else "unsupported_record"
        return Event([rows[at]], FAULTY, fault=(kind, f"IOType {header.io_type}")), at + 1
    if what in (CONTROL, RESTART_ABEND, RESTART_OK) and has_data(frame, header) and header.names_table:
        fault = "contradiction", f"a row of a table under {io_types.name_of(header.io_type)}"
        return Event([rows[at]], FAULTY, fault=fault), at + 1
    if what == DDL and metadata.is_truncate(body_of(frame)):
        return Event([rows[at]], CHANGE), at + 1
    if what != CHANGE:
        return Event([rows[at]], what), at + 1
    end, is_whole = _segments(rows, at)
    event = Event(rows[at:end], CHANGE)
    if header.side == "B" and header.io_type in io_types.UPDATES and is_whole:
        if end == len(rows) or not _is_update_of(rows, at, end) or not _goes_on(rows, end):
            return _broken(event, "part_missing", "a before-image without its update behind it"), end
        event.before = rows[at:end]
        start, (end, is_whole) = end, _segments(rows, end)
        event.base = rows[start:end]
    if not is_whole:
        return _broken(event, "bad_segment", "segments that do not follow each other"), end
    while (
        end < len(rows)
        and rows[end - 1][0].end - frame.at < MAX_GROUP
        and _is_chunk_of(rows, event.base[-1], end)
        and _goes_on(rows, end)
    ):
        event.chunks.append(rows[end])
        end += 1
    return event, end


def _broken(event: Event, kind: str, words: str) -> Event:
    event.what, event.fault = FAULTY, (kind, words)
    return event


def _segments(rows: list, at: int) -> tuple[int, bool]:
    """The row after the last segment of a record; whether all of them are there, one after the other."""
    if rows[at][1].rec_count > 1:
        return at + 1, False
    begun = rows[at][0].at
    while rows[at][1].continued:
        if rows[at][0].end - begun > MAX_GROUP:
            return at + 1, False
        if at + 1 == len(rows) or not _is_next_segment(rows[at][1], rows[at + 1]):
            return at + 1, False
        at += 1
    return at + 1, True


def _is_next_segment(header: Header, row) -> bool:
    frame, other = row
    return (
        not frame.fault
        and other is not None
        and (other.io_type, other.side) == (header.io_type, header.side)
        and other.rec_count == (header.rec_count + 1) % 256
        and header.names_same_table(other)
        and other.is_full == header.is_full
    )


def _goes_on(rows: list, at: int) -> bool:
    """Is a record of the transaction of the one in front of it?"""
    return rows[at - 1][1].trans_ind < LAST and rows[at][1].trans_ind in (MIDDLE, LAST)


def _is_update_of(rows: list, at: int, after: int) -> bool:
    frame, header = rows[after]
    return (
        not frame.fault
        and header is not None
        and header.side == "A"
        and header.io_type in io_types.UPDATES + KEY_UPDATES
        and rows[at][1].names_same_table(header)
    )


def _is_chunk_of(rows: list, base, at: int) -> bool:
    frame, header = rows[at]
    is_segment = header is not None and what_of(header.io_type) == SEGMENT and has_data(frame, header)
    return not frame.fault and is_segment and base[1].names_same_table(header)
