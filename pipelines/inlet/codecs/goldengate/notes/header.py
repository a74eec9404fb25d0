"""The header of a trail's record for `inlet inspect`: every field of the GHDR with what its bits say, every GGS token.

Source: docs/formats/goldengate_trail.md. What is not public is shown as it stands.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from inlet.codecs.goldengate.notes.frames import LEN_GHDR, LEN_TOKEN, Frame, Order, Token, size_at
from inlet.codecs.goldengate.trail import io_types, metadata
from inlet.codecs.notes import Note, printable, unreadable

JULIAN_EPOCH = 210_866_760_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
FIELD_COMP, HAS_INDEX, UNIFIED = 0x04, 0x08, 0x40
PARTITION_BITS = {FIELD_COMP: "FieldComp layout", HAS_INDEX: "table by its TDR index", UNIFIED: "unified record"}
FIRST, MIDDLE, LAST, WHOLE = range(4)
TRANS_IND = {FIRST: "first of its transaction", MIDDLE: "middle", LAST: "last", WHOLE: "only one"}
SYSKEY_LENGTHS = (0, 4, 8)
SIDES = {"B": "before-image", "A": "after-image"}
FORMATS = {"R": "read from the log", "F": "fetched from the database, maybe newer than the change"}
TOKEN_NAMES = {"R": "ORAROWID", "L": "LOGCSN", "6": "TRANID", "t": "ORATAG", "D": "DDL"}
LEN_ROWID = 18
TRUNCATE, METADATA = 100, 170
Fault = tuple[str, str]  # kind, in words


class Header(NamedTuple):
    """What the GHDR of a record says."""

    partition: int
    side: str
    rec_length: int
    io_type: int
    orig_node: int
    io_time: int  # microseconds since 1970; None for none
    has_io_time: bool
    trans_ind: int
    syskey_len: int
    continued: bool
    rec_count: int
    tail: bytes

    @property
    def has_index(self) -> bool:
        return bool(self.partition & HAS_INDEX) and len(self.tail) >= 2

    @property
    def lacks_index(self) -> bool:
        """Does it say that it has an index, and end before it?"""
        return bool(self.partition & HAS_INDEX) and len(self.tail) < 2

    @property
    def names_table(self) -> bool:
        """Does it hold the name or the index of a table?"""
        return bool(self.tail) and (bool(self.partition & HAS_INDEX) or self.tail[0] != 0)

    @property
    def is_full(self) -> bool:
        """Is the column area of a change a full image, and not a list of columns?"""
        return not self.partition & FIELD_COMP

    def names_same_table(self, other: "Header") -> bool:
        return self.tail == other.tail and (self.partition ^ other.partition) & HAS_INDEX == 0

    @property
    def name(self) -> str:
        return metadata.name_of(self.tail)


def read_header(data: bytes, frame: Frame, order: Order) -> Header | None:
    """None where a record has no header that can be read."""
    token = frame.token("H")
    if token is None or token.end - token.start < LEN_GHDR or data[token.start] != ord("E"):
        return None
    at = token.start
    time = int.from_bytes(data[at + 8 : at + 16], order, signed=True)
    return Header(
        data[at + 1],
        chr(data[at + 3]),
        size_at(data, at + 4, order),
        data[at + 6],
        data[at + 7],
        time - JULIAN_EPOCH,
        time != 0,
        data[at + 28],
        data[at + 30],
        data[at + 32] != 0,
        data[at + 33],
        data[at + LEN_GHDR : token.end],
    )


def ids_of(data: bytes, frame: Frame, order: Order) -> dict[str, bytes]:
    """CSN (L) and id of the transaction (6), where the record says them. Of two the last one counts."""
    return dict(_all_ids(data, frame, order))


def _all_ids(data: bytes, frame: Frame, order: Order) -> Iterator[tuple[str, bytes]]:
    token = frame.token("T")
    at = token.start if token else 0
    while token and at + LEN_TOKEN <= token.end:
        start = at + LEN_TOKEN
        end = start + size_at(data, at + 2, order)
        if end > token.end:
            break
        if chr(data[at]) in "L6":
            yield chr(data[at]), data[start:end]
        at = end


def has_data(frame: Frame, header: Header) -> bool:
    """Does a record hold a column area, or does its header say so?"""
    body = frame.token("D")
    return bool(header.rec_length or body and body.end > body.start)


def header_fault(data: bytes, frame: Frame, header: Header, order: Order) -> Fault | None:
    """What is wrong with the header of a change."""
    if header.side not in ("A", "B"):
        return "bad_header", f"BeforeAfter {ord(header.side):02x}"
    if header.trans_ind > WHOLE:
        return "bad_header", f"TransInd {header.trans_ind}"
    body = frame.token("D")
    len_body = body.end - body.start if body else 0
    if header.rec_length != len_body and not header.continued:
        return "bad_length", f"RecLength {header.rec_length}, but {len_body} bytes of data"
    if (token := frame.token("T")) and not _fills(data, token.start, token.end, order):
        return "bad_length", "GGS tokens that do not end where T does"
    ids: dict[str, bytes] = {}
    for id_, value in _all_ids(data, frame, order):
        if ids.setdefault(id_, value) != value:
            return "contradiction", f"two tokens {id_}, {printable(ids[id_])} and {printable(value)}"
    if header.has_io_time and not is_time(header.io_time):
        return "bad_header", "an IO Time outside 1970 to 2099"
    form = io_types.FORM_OF[header.io_type]
    if header.io_type == TRUNCATE and has_data(frame, header):
        return "contradiction", "a column area in a truncate"
    if header.is_full and form != io_types.NO_IMAGE:
        if header.io_type not in io_types.FULL:
            return "unsupported_record", f"a full image of {io_types.name_of(header.io_type)}"
        if header.syskey_len not in SYSKEY_LENGTHS:
            return "bad_header", f"SyskeyLen {header.syskey_len}"
    is_whole = form == io_types.AFTER and header.io_type not in io_types.UPDATES
    if form == io_types.BEFORE and header.side != "B" or header.side == "B" and (form > io_types.BEFORE or is_whole):
        return "bad_header", f"BeforeAfter {header.side} of {io_types.name_of(header.io_type)}"
    return None


def _fills(data: bytes, at: int, end: int, order: Order) -> bool:
    while at + 4 <= end:
        at += 4 + int.from_bytes(data[at + 2 : at + 4], order)
    return at == end


def time_text(microseconds: int) -> str:
    """A time since 1970 as text; the number of one that no calendar has.

    >>> time_text(0)
    '1970-01-01 00:00:00.000000 UTC'
    """
    try:
        return f"{(EPOCH + timedelta(microseconds=microseconds)).strftime('%Y-%m-%d %H:%M:%S.%f')} UTC"
    except OverflowError:
        return f"{microseconds} microseconds since 1970"


def is_time(microseconds: int) -> bool:
    """Up to 2099, as the decoder takes it."""
    return 0 <= microseconds < (LATEST - EPOCH) // timedelta(microseconds=1)


def head_note(data: bytes, token_at: int, id_: str, name: str, order: Order) -> Note:
    """The four bytes in front of a payload."""
    meaning = f"info {data[token_at + 1]:02x}, length {size_at(data, token_at + 2, order)}"
    return Note(token_at, LEN_TOKEN, f"{id_ if id_.isprintable() else f'x{ord(id_):02x}'} {name}", meaning)


def header_notes(data: bytes, token: Token, order: Order, table: str | None) -> list[Note]:
    """Every field of the payload of H. In: the table that a TDR index means, where that is known."""
    at, end = token.start, token.end
    if end - at < LEN_GHDR:
        return [unreadable(at, end, "bad_length", f"{LEN_GHDR} bytes at least", f"{end - at}", "GHDR")]
    if data[at] != ord("E"):
        return [
            unreadable(at, at + 1, "bad_header", "E", data[at : at + 1].hex(), "Hdr-Ind"),
            Note(at + 1, end - at - 1, "GHDR", "not read"),
        ]
    notes, code, node = [], data[at + 6], data[at + 7]

    def add(offset: int, length: int, name: str, meaning: str) -> None:
        notes.append(Note(at + offset, length, name, meaning))

    def number(offset: int, length: int, signed: bool = False) -> int:
        return int.from_bytes(data[at + offset : at + offset + length], order, signed=signed)

    add(0, 1, "Hdr-Ind", "E")
    add(1, 1, "Partition", _bits(data[at + 1]))
    add(2, 1, "UndoFlag", "backs out an earlier operation" if data[at + 2] == 1 else f"{data[at + 2]}")
    add(3, 1, "BeforeAfter", _letter(data[at + 3], SIDES))
    add(4, 2, "RecLength", f"{number(4, 2)}")
    add(6, 1, "IOType", f"{code} {io_types.name_of(code)}")
    add(7, 1, "OrigNode", f"{node} {metadata.KINDS.get(node, '')}".strip() if code == METADATA else f"{node}")
    add(8, 8, "IO Time", time_text(number(8, 8, True) - JULIAN_EPOCH) if number(8, 8) else "none")
    add(16, 8, "AuditPos", f"{number(16, 8, True)}")
    if code == METADATA:
        add(24, 2, "DDR index", f"{number(24, 2)}")
        add(26, 2, "TDR index", f"{number(26, 2)}")
    else:
        add(24, 4, "AuditRBA", f"{number(24, 4)}")
    add(28, 1, "TransInd", f"{data[at + 28]} {TRANS_IND.get(data[at + 28], 'unknown')}")
    add(29, 1, "FormatType", _letter(data[at + 29], FORMATS))
    add(30, 1, "SyskeyLen", f"{data[at + 30]}")
    add(31, 1, "Incomplete", f"{data[at + 31]}")
    add(32, 1, "Continued", "Y, the next record goes on with the data" if data[at + 32] else "N")
    add(33, 1, "RecCount", f"{data[at + 33]}")
    return notes + _tail_notes(data, at + LEN_GHDR, end, order, bool(data[at + 1] & HAS_INDEX), table)


def _tail_notes(data: bytes, at: int, end: int, order: Order, has_index: bool, table: str | None) -> list[Note]:
    if has_index and end - at >= 2:
        rest = [Note(at + 2, end - at - 2, "behind the index", printable(data[at + 2 : end]))] if end > at + 2 else []
        known = table or "its definition is not among the records before that were read"
        return [Note(at, 2, "table", f"TDR index {size_at(data, at, order)}: {known}"), *rest]
    return [Note(at, end - at, "table", metadata.name_of(data[at:end]) or "no name")] if end > at else []


def _letter(byte: int, known: dict[str, str]) -> str:
    return f"{chr(byte)}, {known[chr(byte)]}" if chr(byte) in known else f"unknown: {byte:02x}"


def _bits(partition: int) -> str:
    said = [name for bit, name in PARTITION_BITS.items() if partition & bit]
    rest = partition & ~sum(PARTITION_BITS)
    return ", ".join([f"{partition:02x}", *said, *([f"unknown bits {rest:02x}"] if rest else [])])


def token_notes(data: bytes, token: Token, order: Order) -> Iterator[Note]:
    """The GGS tokens in the payload of T."""
    at = token.start
    while at < token.end:
        start = at + LEN_TOKEN
        if start > token.end:
            yield unreadable(
                at, token.end, "bad_length", "a token of 4 bytes and its payload", f"{token.end - at} bytes"
            )
            return
        id_, end = chr(data[at]), start + size_at(data, at + 2, order)
        if end > token.end:
            found = f"a length of {end - start} with {token.end - start} bytes left"
            yield unreadable(at, token.end, "bad_length", "tokens that end where T does", found)
            return
        name = TOKEN_NAMES.get(id_, "token")
        yield head_note(data, at, id_, name, order)
        if start < end:
            yield Note(start, end - start, name, _token_text(id_, data[start:end]))
        at = end


def _token_text(id_: str, payload: bytes) -> str:
    if id_ == "R" and len(payload) >= LEN_ROWID:
        behind = payload[LEN_ROWID:].hex(" ")
        return printable(payload[:LEN_ROWID]) + (f", then {behind}" if behind else "")
    if id_ == "D":
        return ", ".join(part.decode("utf-8", "backslashreplace") for part in payload.split(b"\0") if part)
    return printable(payload)
