"""Every byte of a file of usage journals with its field and meaning: what `inlet inspect` shows of one.

It finds items and reads values by the plain readers, items.py and values.py. Source: files.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

from inlet.codecs.linkexpress.journal import frame, plain
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.frame import LEN_HEADER, LEN_JOURNAL_HEAD, Packet
from inlet.codecs.linkexpress.journal.items import NULL, VALID, Found, Journal
from inlet.codecs.linkexpress.journal.messages import seq_of as seq_of_message
from inlet.codecs.linkexpress.journal.messages import settle, waits, walk
from inlet.codecs.linkexpress.journal.options import options_of, reading_in_force
from inlet.codecs.linkexpress.journal.pairs import DELETE_OF_UPDATE
from inlet.codecs.linkexpress.journal.reading import Record
from inlet.codecs.linkexpress.journal.record import Reader
from inlet.codecs.linkexpress.journal.transaction import OpenTransactions
from inlet.codecs.linkexpress.journal.values import Item
from inlet.codecs.linkexpress.reject import change_seq_of
from inlet.codecs.notes import AFTER, BEFORE, Annotated, Note, bare, clipped, group, of_wrong, printable, shown
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.fields.wrong import Wrong
from inlet.source import Source

SYSTEMS = {0x0101: "Solaris", 0x0201: "Windows", 0x0301: "Linux"}
HEADER = (  # bytes, name
    (4, "message length"),
    (4, "header length"),
    (2, "message id"),
    (2, "acquiring system"),
    (2, "packed transactions"),
    (2, "journals"),
)


def annotate(data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """The records of a block, or of a message, with the notes of all its bytes."""
    if is_message := "topic" in context:
        options = options_of(source)
        if piece := waits(data, options):
            return [Annotated(0, len(data), "piece of a journal", _piece(data, piece))]
        settled = settle(data, context, source, tables, options)
        if isinstance(settled, Reject):
            return [bare("message", 0, len(data), settled.kind, settled.expected, settled.found, settled.byte_offset)]
        offset, (context, contracts) = context["offset"], settled
        walked = walk(data, context)

        def seq_of(n: int) -> str:
            return seq_of_message(offset, n)

    else:
        contracts = journal_reading.in_file(context, tables)

        def seq_of(n: int) -> str:
            return change_seq_of(context, n) or ""

    if context["reading"] is None:
        return [bare("no record", 0, len(data), "truncated", "a whole record", f"{len(data)} bytes")] if data else []
    if not is_message:
        order, is_each = context["reading"]["byte_order"], bool(context.get(frame.EACH))
        walked = frame.walk(data, context["framing"], order, True, is_each)
    reading = context["reading"] if is_message else reading_in_force(context, options_of(source)).reading
    reader = Reader(reading, source, options_of(source), contracts)
    return list(_records(data, walked, context["open"], reader, seq_of))


def _records(
    data: bytes, walked: frame.Walked, open_: dict, reader: Reader, seq_of: Callable[[int], str]
) -> Iterator[Annotated]:
    updates = _divided_updates(plain.decode(data, walked, reader, open_, seq_of))
    at, records = 0, journal_reading.records(data, walked.packets, reader, OpenTransactions(open_))
    for n, record in enumerate(records):
        yield from _headers(data, walked.packets, at, record.start)
        found = updates.get(record.start) or journal_reading.read(data, record, reader, seq_of(n))
        yield _record(data, record, found, seq_of(n), reader)
        at = record.end
    yield from _headers(data, walked.packets, at, walked.end)
    if walked.end < len(data):
        wrong = walked.wrong or Wrong("truncated", len(data), "a whole record", f"{len(data) - walked.end} bytes")
        yield bare("no record", walked.end, len(data), wrong.kind, wrong.expected, wrong.found, wrong.offset)


def _divided_updates(decoded: Decoded) -> dict[int, dict | Control]:
    """What the records of divided updates are, by their places, where the option pair_divided makes them one."""
    halves = {one.unit_offset: one for one in decoded.controls if one.kind == DELETE_OF_UPDATE}
    assert isinstance(decoded.changes, list)
    return halves | {row["unit_offset"]: row for row in decoded.changes if row["before"] and row["after"]}


def _headers(data: bytes, packets: list[Packet], start: int, end: int) -> list[Annotated]:
    """What lies between journals: headers of messages."""
    return [
        Annotated(
            packet.start, head - packet.start, "message header", _header(data, packet.start, head, packet.byte_order)
        )
        for packet in packets
        if start <= packet.start < end and packet.header and not packet.may_be_piece
        for head in [packet.journals[0][0] if packet.journals else packet.end]
    ]


def _header(data: bytes, start: int, end: int, byte_order: Any) -> Callable[[], Iterator[Note]]:
    def read() -> Iterator[Note]:
        at = end - LEN_HEADER
        if at > start:
            yield Note(start, at - start, "control data", printable(data[start:at]))
        for size, name in HEADER:
            number = int.from_bytes(data[at : at + size], byte_order)
            system = f" {SYSTEMS.get(number, 'unknown')}" if name == "acquiring system" else ""
            yield Note(at, size, name, f"{number}{system}")
            at += size
        yield Note(at, end - at, "packing state, code kind, flags", data[at:end].hex())

    return read


def _piece(data: bytes, packet: Packet) -> Callable[[], Iterator[Note]]:
    """A message that holds a piece of a journal."""

    def read() -> Iterator[Note]:
        start = packet.end - packet.len_body
        yield from _header(data, 0, start, packet.byte_order)()
        yield Note(start, packet.len_body, "piece of a journal", printable(data[start:]))

    return read


def _record(data: bytes, record: Record, found: dict | Control | Reject, seq: str, reader: Reader) -> Annotated:
    """A journal, or a message whose journals cannot be told. In: what it is read as."""
    packet, start, end, walked, joined = record
    if packet.may_be_piece:
        wrong = packet.wrong
        assert wrong
        return bare("message", start, end, wrong.kind, wrong.expected, wrong.found, wrong.offset)
    row = found if isinstance(found, dict) else {}
    table = f"{row['source_schema']}.{row['source_table']}" if row else None
    event, fault = walked.event, None
    if isinstance(found, Reject):
        table = ".".join(filter(None, (found.source_schema, found.source_table))) or None
        fault = found.kind, f"expected {found.expected}, found {found.found}"
    title = row["operation"] if row else "journal" if isinstance(found, Reject) else found.kind
    image = BEFORE if row.get("operation") == "DELETE" else AFTER
    notes = _journal(data, packet, start, end, table, image, reader)
    if joined:
        notes = _pieces(data, packet, _journal(joined, packet, 0, len(joined), table, image, reader))
    return Annotated(
        start,
        end - start,
        title,
        notes,
        row.get("operation"),
        table,
        event and event.transaction_id,
        event and event.counter,
        event and event.is_last,
        change_seq=seq,
        fault=fault,
        fault_at=found.byte_offset if isinstance(found, Reject) else None,
    )


def _pieces(data: bytes, packet: Packet, of_journal: Callable[[], Iterator[Note]]) -> Callable[[], Iterator[Note]]:
    """A journal that is divided over messages: its items may go on from one to the next."""

    def read() -> Iterator[Note]:
        notes, at, done = list(of_journal()), packet.start, 0
        for start, end in packet.pieces:
            yield Note(at, start - at, "message header", printable(data[at:start]))
            length = end - start
            yield from filter(None, (clipped(note, done, done + length, start - done) for note in notes))
            at, done = end, done + length

    return read


def _journal(
    data: bytes, packet: Packet, start: int, end: int, table: str | None, image: str, reader: Reader
) -> Callable[[], Iterator[Note]]:
    def read() -> Iterator[Note]:
        items = start + LEN_JOURNAL_HEAD
        yield Note(start, 4, "length", f"{end - start}")
        yield Note(start + 4, 2, "valid items", f"{int.from_bytes(data[start + 4 : items], packet.byte_order)}")
        try:
            journal = reader.journal(data, packet, start, end)
        except Wrong:
            yield Note(items, end - items, "items", f"not read: {printable(data[items:end])}")
            return
        named = _columns(start, journal, table, reader)
        told = [_item(data, packet, one, f"TJNL{name}", reader) for name, one in journal.system.items()]
        told += [_item(data, packet, one, "checkpoint", reader) for one in [journal.checkpoint] if one]
        columns = [_column(data, packet, one, named.get(one.start), reader) for one in journal.columns or ()]
        notes, is_column = sorted(told + columns), {one.offset for one in columns}
        at = items
        while notes:
            run = [notes.pop(0)]
            while run[0].offset in is_column and notes and notes[0].offset in is_column:
                run.append(notes.pop(0))
            yield from _unknown(data, at, run[0].offset)
            at = run[-1].end
            if run[0].offset in is_column:
                yield group(run[0].offset, at, f"{image}-image", run, image=image)
            else:
                yield run[0]
        yield from _unknown(data, at, end)

    return read


def _unknown(data: bytes, start: int, end: int) -> list[Note]:
    """The columns of a table without a contract, whose widths nothing tells."""
    meaning = f"not read, for their table is not known: {printable(data[start:end])}"
    return [Note(start, end - start, "columns", meaning)] if start < end else []


def _columns(start: int, journal: Journal, table: str | None, reader: Reader) -> dict[int, Item]:
    """The columns of a journal's own table, by where their items begin; none where they cannot be told."""
    try:
        return {one.start: item for item, one in reader.columns.of(start, journal, table)} if table else {}
    except (Wrong, KeyError):  # a table without a contract
        return {}


def _head(data: bytes, one: Found) -> list[Note]:
    """What stands before the data of an item."""
    if one.code is None:
        return [Note(one.start, 2, "validity", one.state)]
    tag = Note(one.start, 3, "attribute", f"code {one.code:02X}, information {one.info.hex().upper()}")
    return [tag, Note(one.start + 3, 1, "validity", one.state)]


def _item(data: bytes, packet: Packet, one: Found, name: str, reader: Reader) -> Note:
    """A system item, or that of a checkpoint."""
    raw = data[one.data_start : one.end]
    meaning = raw.hex().upper()
    if one.state != VALID:
        meaning = one.state
    elif name in ("TJNLSTS", "TJNLDBKIND", "TJNLDBOP"):
        meaning = f"{reader.number(data, packet, one)}"
    elif name != "TJNLTRNID":
        try:
            is_moment = name not in ("TJNLSTORAGE", "TJNLRESOURCE")
            meaning = reader.text(data, packet, one, is_moment).rstrip(" ")
        except Wrong:
            meaning = f"no text: {meaning}"
    children = [*_head(data, one), Note(one.data_start, len(raw), "data", meaning)]
    return group(one.start, one.end, name, children, meaning)


def _column(data: bytes, packet: Packet, one: Found, item: Item | None, reader: Reader) -> Note:
    """The item of a column, which may be one of another table."""
    length = one.end - one.data_start
    note = Note(one.data_start, length, "data", one.state)
    if item and one.state == NULL:
        note = note._replace(column=item.column.name)
    elif item and one.state == VALID:
        try:
            value = reader.columns.value(data, packet, item, one)
            note = note._replace(meaning=shown(value), column=item.column.name, value=value)
        except Wrong as wrong:
            moved = Wrong(wrong.kind, wrong.offset - one.data_start, wrong.expected, wrong.found)
            note = of_wrong(one.data_start, one.end, "data", moved, item.column.name)
    name = f"{item.column.name} {item.column.source_type}" if item else "column"
    return group(one.start, one.end, name, [*_head(data, one), note])
