"""What the records of a trail are one after another, for `inlet inspect`: changes, some of several records, in their
transactions, with the tables that they are of.

The same rules as trail/sequence.py and trail/tables.py, in plain Python. Source: docs/formats/goldengate_trail.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from inlet import change
from inlet.codecs.goldengate.notes.frames import Frame
from inlet.codecs.goldengate.notes.header import (
    EPOCH,
    FIRST,
    LAST,
    MIDDLE,
    WHOLE,
    Fault,
    Header,
    has_data,
    header_fault,
    ids_of,
    is_time,
    read_header,
)
from inlet.codecs.goldengate.trail import io_types, metadata
from inlet.codecs.goldengate.trail.full_image import record_length
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
from inlet.codecs.goldengate.trail.layout import lobs_of
from inlet.codecs.goldengate.trail.sequence import AHEAD, IN_NEXT_FILE, MAX_PAUSE
from inlet.source import Source
from inlet.table import Table

KEY_UPDATES = (115, 117)
MAX_GROUP = 16 << 20  # bytes; LOB chunks behind that are records of their own, and segments belong to no record
FAULTY, FILE_HEADER, LOB_CHUNK = "faulty", "file header", "lob chunk"
WHOLE_RECORD = "expected a record, whole and with a header"
LACKS_BEGINNING = (
    "lacks_beginning"  # member of the context of a place in the middle of a file: nothing is known of before
)


class Transaction(NamedTuple):
    id: str | None
    csn: str | None
    xid: str | None = None  # the id, where a record says it


@dataclass
class Event:
    """Records that are one change, or one record that is none. `before`, `base` and `chunks` are its frames: those of a
    before-image, of the change, of LOB chunks behind it."""

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


class Sequence:
    """The events of a block, in order. In: what is known at its beginning, as the context says it."""

    def __init__(self, data: bytes, context: dict, source: Source, tables: dict[str, Table]):
        self.data, self.context, self.source, self.tables = data, context, source, tables
        is_open, self.num_events, self.largest, self.is_in_lob = context["state"][:4]
        self.ahead = context["state"][AHEAD] if len(context["state"]) > AHEAD else 0
        own = Transaction(context["transaction"], context["csn"], context["xid"])
        self.open: Transaction | None = own if is_open else None
        self.is_counting = not context.get(LACKS_BEGINNING)
        self.known = {name: context[name] for name in ("tables", "num_definitions", "definitions")}

    def events(self, frames: list[Frame]) -> Iterator[Event]:
        order = self.context["order"]
        rows = [(frame, read_header(self.data, frame, order) if frame.kind == "G" else None) for frame in frames]
        at = 0
        while at < len(rows):
            event, at = _event_at(rows, at, self._body)
            self._place(event)
            self._resolve(event)
            if event.what == FAULTY and _may_be_definition(event):
                self.known = metadata.step_lost(self.known)
            yield event

    def _place(self, event: Event) -> None:
        """Its place in its transaction and in the order, and what that leaves behind."""
        if event.what == SEGMENT:
            header = event.frames[0][1]
            is_chunk = self.is_in_lob and self.open and not (header and header.trans_ind in (FIRST, WHOLE))
            is_chunk = is_chunk and header and has_data(event.frames[0][0], header)
            event.what = LOB_CHUNK if is_chunk else FAULTY
            event.fault = None if is_chunk else ("bad_segment", "a segment behind no row that it belongs to")
        if event.what == CHANGE and (fault := self._header_fault(event)):
            event.what, event.fault = FAULTY, fault
        first, last = event.frames[0], event.frames[-1]
        if event.what == CHANGE and (fault := self._other_id(event)):
            event.what, event.fault = FAULTY, fault
        is_definition = first[1] and _what_of(first[1].io_type) == METADATA
        is_counted = event.what == CHANGE or event.what == FAULTY and not is_definition
        if event.what == RESTART_ABEND:
            self.open, self.num_events = None, 0
        elif (is_counted or event.what in (DDL, LOB_CHUNK)) and (_is_readable(first, last) or self.open):
            self._count(event, first, last, is_counted)
        header = event.header
        if event.what == CHANGE and header and is_time(header.io_time):
            self._count_time(header.io_time)
        if self.open is None:
            self.num_events = 0
        if event.what == CHANGE:
            self.is_in_lob = last[0].end - first[0].at >= MAX_GROUP
        elif event.what not in (LOB_CHUNK, METADATA, FILE_HEADER):
            self.is_in_lob = False
        event.change_seq = self._change_seq(first[0].at, self.largest)

    def _count_time(self, time: int) -> None:
        """A time far after all others counts once another one is as late."""
        is_ahead = self.largest and time > self.largest + MAX_PAUSE
        if is_ahead and self.ahead:
            self.largest = min(self.ahead, time)
            is_ahead = time > self.largest + MAX_PAUSE
        self.ahead = time if is_ahead else 0
        self.largest = self.largest if is_ahead else max(self.largest, time)

    def _other_id(self, event: Event) -> Fault | None:
        """Why the records of a change are not of one transaction: they tell two ids."""
        told = [ids_of(self.data, frame, self.context["order"]).get("6") for frame, _ in event.frames]
        header = event.frames[0][1]
        goes_on = self.open is not None and header is not None and header.trans_ind not in (FIRST, WHOLE)
        known = self.open.xid if self.open and goes_on else told[0]
        other = next((id_ for id_ in told if id_ and known and id_ != known), None)
        return ("contradiction", f"transaction {other} within {known}") if other else None

    def _count(self, event: Event, first, last, is_counted: bool) -> None:
        has_header = _is_readable(first, last)
        tells = has_header and max(first[1].trans_ind, last[1].trans_ind) <= WHOLE
        starts = tells and first[1].trans_ind in (FIRST, WHOLE)
        ends = tells and last[1].trans_ind >= LAST
        is_counted |= self.open is not None and not starts and ends
        if self.open is None or starts:
            ids = ids_of(self.data, first[0], self.context["order"]) if has_header else {}
            self.is_counting |= starts
            place = self._position(first[0].at) if self.is_counting else None
            self.open = Transaction(ids.get("6") or place, ids.get("L"), ids.get("6"))
            self.num_events = 0 if starts else 1  # of a beginning that is not there an event at least came before
        event.transaction = self.open
        if is_counted:
            self.num_events += 1
            event.counter, event.is_last = self.num_events if self.is_counting else None, ends
        if ends:
            self.open = None

    def _change_seq(self, at: int, time: int) -> str | None:
        if self.context.get(LACKS_BEGINNING):
            return None
        return change.change_seq(_time16(time), self.context["seqno"], self.context["offset"] + at)

    def _position(self, at: int) -> str:
        return f"{self.context['seqno']}/{self.context['offset'] + at}"

    def _header_fault(self, event: Event) -> Fault | None:
        for frame, header in event.before + event.base:
            if header is None:
                return "bad_header", "no header"
            found = header_fault(self.data, frame, header, self.context["order"])
            if found:
                return found
        return None

    def _resolve(self, event: Event) -> None:
        """The table of an event, by name or by index, and the version of its contract."""
        header = event.header
        if header is None:
            return
        why: Fault | None = None
        if event.what == METADATA:
            event.name = self._define(event.base[0][0], header)
        elif _what_of(header.io_type) == DDL and event.what != DDL:
            event.name = metadata.ddl_table(metadata.ddl_of(self._body(event.base[0][0])))
        elif header.has_index:
            index = int.from_bytes(header.tail[:2], self.context["order"])
            event.name, mark = self.known["tables"].get(str(index), (None, None))
            if event.name and self.known["definitions"][event.name][0] != mark:
                why = "definition_differs", f"TDR index {index}, whose definition another one has followed"
            elif event.name is None and not self.context.get(LACKS_BEGINNING):
                why = "definition_missing", f"no definition with TDR index {index} before this record"
        elif header.lacks_index:
            why = "bad_header", "a header that ends before the index that Partition 0x08 says"
        elif event.what not in (DDL, RESTART_OK, RESTART_ABEND):
            event.name = header.name
        event.table = metadata.table_of(event.name, self.source) if event.name else None
        if event.what == LOB_CHUNK and self.is_in_lob == IN_NEXT_FILE:
            contract = self.tables.get(event.table or "")
            if contract is not None and not any(map(lobs_of, contract.versions)):
                event.what, event.fault = FAULTY, ("bad_segment", "a chunk behind a row of a table without LOBs")
        if event.what in (CHANGE, FAULTY) and event.name is not None and not why:
            found = self._contract_of(event.name, event.table or "", event.change_seq)
            event.contract, why = (found, None) if isinstance(found, Table) else (None, found)
            if event.contract is not None and event.has_full_image:
                length = record_length(event.contract)
                if not isinstance(length, int):
                    event.contract, why = None, (length[0], f"expected {length[1]}, found {length[2]}")
            if not self.tables:  # nobody expects them
                why = None
        if event.what == CHANGE:
            event.fault = why

    def _define(self, frame: Frame, header: Header) -> str | None:
        """Note what a metadata record defines; in front of all changes from its own time on. Out: a table's name."""
        token, body = frame.token("H"), self._body(frame)
        payload = self.data[token.start : token.end] if token else b""
        said = metadata.read(payload, self.context["order"], body)
        time = self.largest or (header.io_time if is_time(header.io_time) else 0)
        self.known = metadata.step(self.known, said, self._change_seq(frame.at, time) or change.NO_TIME)
        return said.name or None

    def _body(self, frame: Frame) -> bytes:
        token = frame.token("D")
        return self.data[token.start : token.end] if token else b""

    def _contract_of(self, name: str, table: str, change_seq: str | None) -> Table | Fault:
        """The version of a contract that reads a row, or why none does."""
        if not name:
            return "bad_header", "no name of a table"
        contract = self.tables.get(table)
        if contract is None:
            return ("definition_missing", f"no contract of {table}: columns are shown by their index")
        if change_seq is None:
            several = (
                "definition_missing",
                "which version of the contract is in force is not known without the records before",
            )
            return contract.versions[0] if len(contract.versions) == 1 else several
        found = metadata.version_for(contract, self.known["definitions"].get(name), change_seq)
        return found if isinstance(found, Table) else (found[0], f"expected {found[1]}, found {found[2]}")


def _time16(microseconds: int) -> str:
    if not microseconds:
        return "0" * change.LEN_TIME
    at = EPOCH + timedelta(microseconds=microseconds)
    return at.strftime("%Y%m%d%H%M%S") + f"{at.microsecond // 10_000:02d}"


def _is_readable(*rows) -> bool:
    return all(header is not None for _, header in rows)


def _what_of(io_type: int) -> int:
    return io_types.IO_TYPES.get(io_type, ("", UNKNOWN))[1]


def _may_be_definition(event: Event) -> bool:
    """May a record that cannot be read have been a definition?"""
    header = event.frames[0][1]
    return header is None or _what_of(header.io_type) in (METADATA, UNKNOWN)


def _event_at(rows: list, at: int, body_of: Callable[[Frame], bytes]) -> tuple[Event, int]:
    """The event that begins at a row, and the row behind it. In: the payload of a record's D."""
    frame, header = rows[at]
    if frame.kind == "F":
        return Event([rows[at]], FILE_HEADER), at + 1
    if frame.fault or header is None:
        kind, place = frame.fault or ("bad_header", frame.at)
        return Event([rows[at]], FAULTY, fault=(kind, WHOLE_RECORD), fault_at=place), at + 1
    what = _what_of(header.io_type)
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
    """The row behind the last segment of a record; whether all of them are there, one behind the other."""
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


def _is_update_of(rows: list, at: int, behind: int) -> bool:
    frame, header = rows[behind]
    return (
        not frame.fault
        and header is not None
        and header.side == "A"
        and header.io_type in io_types.UPDATES + KEY_UPDATES
        and rows[at][1].names_same_table(header)
    )


def _is_chunk_of(rows: list, base, at: int) -> bool:
    frame, header = rows[at]
    is_segment = header is not None and _what_of(header.io_type) == SEGMENT and has_data(frame, header)
    return not frame.fault and is_segment and base[1].names_same_table(header)
