"""The events of a trail in their transactions, with the tables that they are of, for `inlet inspect`.

The same rules as trail/sequence.py and trail/tables.py, in plain Python. Source: docs/formats/goldengate_trail.md.
"""

from collections.abc import Iterator
from datetime import timedelta

import numpy as np

from inlet import change
from inlet.codecs.goldengate.notes.frames import Frame
from inlet.codecs.goldengate.notes.groups import (
    FAULTY,
    FILE_HEADER,
    LOB_CHUNK,
    MAX_GROUP,
    Event,
    Transaction,
    event_at,
    may_be_definition,
    what_of,
)
from inlet.codecs.goldengate.notes.header import (
    EPOCH,
    FIRST,
    LAST,
    WHOLE,
    Fault,
    Header,
    has_data,
    header_fault,
    ids_of,
    is_time,
    read_header,
)
from inlet.codecs.goldengate.trail import metadata
from inlet.codecs.goldengate.trail.full_image import record_length
from inlet.codecs.goldengate.trail.io_types import CHANGE, DDL, METADATA, RESTART_ABEND, RESTART_OK, SEGMENT
from inlet.codecs.goldengate.trail.layout import lobs_of
from inlet.codecs.goldengate.trail.piece import state_of
from inlet.codecs.goldengate.trail.sequence import AHEAD, ID, IN_NEXT_FILE, MAX_PAUSE, number_of_id
from inlet.source import Source
from inlet.table import Table

LACKS_BEGINNING = (
    "lacks_beginning"  # member of the context of a place in the middle of a file: nothing is known of before
)


class Sequence:
    """The events of a block, in order. In: what is known at its beginning, as the context says it."""

    def __init__(self, data: bytes, context: dict, source: Source, tables: dict[str, Table]):
        self.data, self.context, self.source, self.tables = data, context, source, tables
        state = [int(n) for n in state_of(context)]
        is_open, self.num_events, self.largest, self.is_in_lob = state[:4]
        self.ahead = state[AHEAD]
        own = Transaction(context["transaction"], context["csn"])
        self.open: Transaction | None = own if is_open else None
        self.id_number = state[ID] if is_open else 0  # of the open transaction; 0 where none is known
        self.is_counting = not context.get(LACKS_BEGINNING)
        self.known = {name: context[name] for name in ("tables", "num_definitions", "definitions")}

    def events(self, frames: list[Frame]) -> Iterator[Event]:
        order = self.context["order"]
        rows = [(frame, read_header(self.data, frame, order) if frame.kind == "G" else None) for frame in frames]
        at = 0
        while at < len(rows):
            event, at = event_at(rows, at, self._body)
            self._place(event)
            self._resolve(event)
            if event.what == FAULTY and may_be_definition(event):
                found = metadata.read_damaged(*self._record_of(event.frames[0][0]))
                self.known = metadata.step_lost(self.known, found)
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
        number = 0
        if event.what in (CHANGE, DDL, LOB_CHUNK):
            starts = first[1] is not None and first[1].trans_ind in (FIRST, WHOLE)
            number, fault = self._ids(event.frames, 0 if starts else self.id_number)
            if event.what == CHANGE and fault:
                event.what, event.fault = FAULTY, fault
        is_definition = first[1] and what_of(first[1].io_type) == METADATA
        is_counted = event.what == CHANGE or event.what == FAULTY and not is_definition
        if event.what == RESTART_ABEND:
            self.open, self.num_events, self.id_number = None, 0, 0
        elif (is_counted or event.what in (DDL, LOB_CHUNK)) and (_is_readable(first, last) or self.open):
            self._count(event, first, last, is_counted)
            if self.open and not self.id_number and event.what != FAULTY:
                self.id_number = number
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

    def _ids(self, rows: list, known: int) -> tuple[int, Fault | None]:
        """A number for the id of the transaction, known or as the first of these records tells it (0: not known); why
        they are not of one transaction."""
        for frame, _ in rows:
            id_ = ids_of(self.data, frame, self.context["order"]).get("6")
            own = _number_of(id_)
            if known and own and own != known:
                return known, ("contradiction", f"the id {_text(id_)} within a transaction with another one")
            known = known or own
        return known, None

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
            self.open = Transaction(_text(ids.get("6")) or place, _text(ids.get("L")))
            self.id_number = _number_of(ids.get("6"))
            self.num_events = 0 if starts else 1  # of a beginning that is not there an event at least came before
        event.transaction = self.open
        if is_counted:
            self.num_events += 1
            event.counter, event.is_last = self.num_events if self.is_counting else None, ends
        if ends:
            self.open, self.id_number = None, 0

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
        elif what_of(header.io_type) == DDL and event.what != DDL:
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
        said = metadata.read(*self._record_of(frame))
        time = self.largest or (header.io_time if is_time(header.io_time) else 0)
        self.known = metadata.step(self.known, said, self._change_seq(frame.at, time) or change.NO_TIME)
        return said.name or None

    def _record_of(self, frame: Frame) -> tuple:
        """Payload of H, byte order and payload of D."""
        return self._payload(frame, "H"), self.context["order"], self._body(frame)

    def _body(self, frame: Frame) -> bytes:
        return self._payload(frame, "D")

    def _payload(self, frame: Frame, id_: str) -> bytes:
        token = frame.token(id_)
        return self.data[token.start : token.end] if token else b""

    def _contract_of(self, name: str, table: str, change_seq: str | None) -> Table | Fault:
        """The version of a contract that reads a row, or why none does."""
        if not table.strip(" ."):
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


def _text(token: bytes | None) -> str | None:
    return None if token is None else token.decode("utf-8", "backslashreplace")


def _number_of(id_: bytes | None) -> int:
    """A number for the id of a transaction, as contexts hold it; 0 for none."""
    return number_of_id(np.frombuffer(id_, np.uint8)) if id_ else 0


def _is_readable(*rows) -> bool:
    return all(header is not None for _, header in rows)
