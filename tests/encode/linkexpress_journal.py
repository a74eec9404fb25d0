"""Rows -> the bytes of a file of Linkexpress usage journals: a second, plain reading of the format, to test the codec
against.

Written from the facts that docs/formats/linkexpress_journal.md names; imports nothing of inlet.

    tables = {"EMP": [("ID", "INTEGER"), ("NAME", "VARCHAR(10)")]}     # by the name that RESOURCE has, in order
    encode_file([Change("EMP", "insert", {"ID": 1, "NAME": "a"})], tables, How())

A row's value may be MISSING or INVALID. Several journals in a list are packed into one message.
"""

import re
import struct
from dataclasses import dataclass, field

from tests.encode import linkexpress

MISSING, INVALID = "(missing)", "(invalid)"
OPERATIONS = {"insert": 1, "update": 2, "delete": 3}
SYSTEM_ITEMS = {
    "TIME": 0x81,
    "TRNID": 0x82,
    "STS": 0x83,
    "DBKIND": 0x84,
    "DBOP": 0x85,
    "STORAGE": 0x86,
    "RESOURCE": 0x87,
}
CODES = {
    "CHAR": 0x01,
    "VARCHAR": 0x02,
    "NCHAR": 0x03,
    "NVARCHAR": 0x04,
    "SMALLINT": 0x11,
    "INTEGER": 0x12,
    "NUMERIC": 0x13,
    "DECIMAL": 0x14,
    "REAL": 0x15,
    "DOUBLE": 0x16,
    "BINARY": 0x22,
    "DATE": 0x23,
    "TIME": 0x23,
    "TIMESTAMP": 0x23,
    "INTERVAL": 0x23,
}
STATES = {"valid": (0x00, 0x0000), "null": (0x0F, 0x00FF), "missing": (0xF0, 0xFF00), "invalid": (0xFF, 0xFFFF)}
STATES |= {"unreadable": (0x7F, 0x7F7F)}  # no validity
LEN_TEXT = {"DATE": 10, "TIME": 8, "TIMESTAMP": 19}


@dataclass(frozen=True)
class Change:
    """A journal of a table."""

    table: str
    operation: str
    row: dict
    trnid: int = 0x1A2B
    sts: int = 5
    time: str = "2014080512345678"
    system: dict = field(default_factory=dict)  # more values of system items: DBKIND, STORAGE
    is_readable: bool = True  # False: the validity of its first item is none


@dataclass(frozen=True)
class Checkpoint:
    """A journal checkpoint."""

    name: str
    time: str = "2014080512345678"


@dataclass(frozen=True)
class How:
    """How journals are written."""

    framing: str = "message_body"
    byte_order: str = "big"
    tagged: bool = True
    compressed: bool = False
    charset: str = "cp932"
    sysitems: tuple = ("RESOURCE", "DBOP", "TIME", "TRNID", "STS")
    sysitems_position: str = "first"
    has_checkpoint: bool = False
    name_width: int = 38
    numeric_sign: str = "separate"
    validity_order: str = "native"
    varying_length: str = "data"
    nchar_length: str = "characters"
    len_more: int = 0  # bytes by which a tagged CHAR or VARCHAR is longer than its column
    tail: bytes = bytes(16)

    @property
    def order(self) -> str:
        return ">" if self.byte_order == "big" else "<"

    @property
    def items(self) -> dict:
        """As the encoder of extracts has it: their data is alike."""
        is_ebcdic = self.charset in linkexpress.EBCDIC
        return {
            "order": self.order,
            "charset": self.charset,
            "codes": {},
            "logtype": "normal",
            "numeric_sign": self.numeric_sign,
            "float_form": "hex" if is_ebcdic else "ieee",
        }


def encode_file(journals: list, tables: dict, how: How) -> bytes:
    """All messages, or journals of a stream, one behind the other."""
    columns = {table: [(name, *_type(type_)) for name, type_ in types] for table, types in tables.items()}
    return b"".join(_packet(one if isinstance(one, list) else [one], columns, how) for one in journals)


def divided(message: bytes, how: How, at: int, is_repeated: bool = False) -> list[bytes]:
    """A message of one journal as two, between which the journal is cut at a place; the second one may repeat the
    journal's first six bytes.
    """
    head = (780 if how.framing == "mq_message" else 0) + 32
    journal = message[head:]
    pieces = journal[:at], (journal[:6] if is_repeated else b"") + journal[at:]
    return [
        message[: head - 32] + struct.pack(how.order + "I", 32 + len(piece)) + message[head - 28 : head] + piece
        for piece in pieces
    ]


def _packet(journals: list, tables: dict, how: How) -> bytes:
    body = b"".join(_journal(journal, tables, how) for journal in journals)
    if how.framing == "journal_stream":
        return body
    system = 0x0101 if how.byte_order == "big" else 0x0301
    head = struct.pack(how.order + "IIHHHH", 32 + len(body), 32, 1, system, 0, len(journals)) + how.tail
    return (b"MQD." * 195 if how.framing == "mq_message" else b"") + head + body


def _journal(journal, tables: dict, how: How) -> bytes:
    is_checkpoint = isinstance(journal, Checkpoint)
    items = [_system(name, journal, how) for name in how.sysitems]
    columns = []
    for table in tables:
        is_own = not is_checkpoint and table == journal.table
        if is_own or not how.compressed:
            columns += [_column(journal.row[name] if is_own else INVALID, *of, how) for name, *of in tables[table]]
    items = items + columns if how.sysitems_position == "first" else columns + items
    if how.has_checkpoint and (is_checkpoint or not how.compressed):
        name = _single((journal.name if is_checkpoint else "").ljust(32), how)
        items.append((0x24, struct.pack(how.order + "H", 32), "valid" if is_checkpoint else "invalid", name))
    if not is_checkpoint and not journal.is_readable:
        code, info, _, data = items[0]
        items[0] = code, info, "unreadable", data
    body = b"".join(_item(*item, how) for item in items)
    valid = sum(state == "valid" for _, _, state, _ in items)
    return struct.pack(how.order + "IH", 6 + len(body), valid) + body


def _item(code: int, info: bytes, state: str, data: bytes, how: How) -> bytes:
    short, long = STATES[state]
    if how.tagged:
        return bytes([code]) + info + bytes([short]) + data
    return struct.pack((how.order if how.validity_order == "native" else ">") + "H", long) + data


def _padded(text: str, size: int, how: How) -> bytes:
    blank = b"\x40" if how.charset in linkexpress.EBCDIC else linkexpress._text(" ", how.items)
    return linkexpress._fit(linkexpress._text(text, how.items), size, blank)


def _single(text: str, how: How) -> bytes:
    """Text whose width is that of single bytes in any set: days, times, names of checkpoints."""
    return text.encode() if how.charset == "utf_16" else linkexpress._text(text, how.items)


def _system(name: str, journal, how: How):
    is_checkpoint = isinstance(journal, Checkpoint)
    if is_checkpoint:
        values = {"RESOURCE": "JCKP", "DBKIND": 8, "TIME": journal.time}
    else:
        values = {
            "RESOURCE": journal.table,
            "DBOP": OPERATIONS.get(journal.operation, journal.operation),
            "TIME": journal.time,
            "TRNID": journal.trnid,
            "STS": journal.sts,
            **journal.system,
        }
    value = values.get(name)
    if name in ("RESOURCE", "STORAGE"):
        data = _padded(value or "", how.name_width, how)
    elif name == "TIME":
        data = _single((value or "").ljust(16), how)
    elif name == "TRNID":
        data = (value or 0).to_bytes(8, "big")
    else:
        data = struct.pack(how.order + "h", value or 0)
    info = struct.pack(how.order + "H", len(data))
    return SYSTEM_ITEMS[name], info, "invalid" if value is None else "valid", data


def _type(text: str):
    if text.startswith("INTERVAL"):
        n, parts = int(re.search(r"\d", text)[0]), text.replace("INTERVAL", "").split(" TO ")
        if len(parts) == 1:
            return "INTERVAL", [n + 1]
        fields = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"]
        first, last = (next(i for i, word in enumerate(fields) if word in part) for part in parts)
        return "INTERVAL", [n + 1 + 3 * (last - first)]
    return linkexpress._type(text)


def _column(value, type_: str, sizes: list, how: How):
    state = {None: "null", MISSING: "missing", INVALID: "invalid"}.get(value, "valid")
    if how.tagged and type_ in ("CHAR", "VARCHAR"):
        sizes = [sizes[0] + how.len_more]
    data = (
        _data(value, type_, sizes, how)
        if state == "valid"
        else b"?" * len(_data(_any(type_, sizes), type_, sizes, how))
    )
    return CODES[type_], _info(type_, sizes, how), state, data


def _any(type_: str, sizes: list):
    """A value of that type, whose length is what is wanted of it."""
    if type_ in LEN_TEXT or type_ == "INTERVAL":
        return " " * LEN_TEXT.get(type_, sizes[0] if sizes else 0)
    return {"BINARY": bytes(sizes[0] if sizes else 0), "VARCHAR": "", "NVARCHAR": ""}.get(type_) or (
        linkexpress.ZERO.get(type_, "")
    )


def _data(value, type_: str, sizes: list, how: How) -> bytes:
    if type_ == "BINARY":
        return value
    if type_ in LEN_TEXT or type_ == "INTERVAL":
        return _single(value, how)
    return linkexpress.ITEMS[type_](value, sizes, how.items)


def _info(type_: str, sizes: list, how: How) -> bytes:
    if type_ in ("NUMERIC", "DECIMAL"):
        return bytes([sizes[0], sizes[1] if len(sizes) > 1 else 0])
    n = LEN_TEXT.get(type_) or {"SMALLINT": 2, "INTEGER": 4, "REAL": 4, "DOUBLE": 8}.get(type_) or sizes[0]
    if type_ in ("NCHAR", "NVARCHAR") and how.nchar_length == "bytes":
        n *= 2
    if type_ in ("VARCHAR", "NVARCHAR") and how.varying_length == "area":
        n += 2
    return struct.pack(how.order + "H", n)
