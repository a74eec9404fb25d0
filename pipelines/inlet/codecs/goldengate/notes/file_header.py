"""What a trail says beside its rows, for `inlet inspect`: the header record of a file, metadata, DDL.

Source: docs/formats/goldengate_trail.md. Tokens that nothing public names stay as they are.
"""

import re
from collections.abc import Iterator

from inlet.codecs.goldengate.notes.frames import LEN_TOKEN, Order, Token, size_at
from inlet.codecs.goldengate.notes.header import head_note
from inlet.codecs.goldengate.trail import file_header
from inlet.codecs.notes import Note, group, printable, unreadable

DDL_PART = re.compile(rb",C1=.*|,([A-Z]\d+)='.*?'(?:,|\Z)", re.DOTALL)
DDL_NAMES = {"C5": "CSN", "B3": "owner", "B4": "object", "B5": "type of the object", "B6": "operation"}
DDL_NAMES |= {"B8": "history table", "C1": "statement"}


def file_header_notes(data: bytes, end: int, order: Order) -> list[Note]:
    """The groups and tokens of the record F, which ends there."""
    if end < 2 * LEN_TOKEN:
        return [unreadable(0, end, "bad_frame", "a header record and its trailer", f"{end} bytes")]
    groups = list(_groups(data, LEN_TOKEN, end - LEN_TOKEN, order))
    return [
        head_note(data, 0, "F", "File Header", order),
        *groups,
        head_note(data, end - LEN_TOKEN, "Z", "Record Trailer", order),
    ]


def _tokens(data: bytes, at: int, end: int, order: Order) -> Iterator[tuple[int, int] | Note]:
    """(first byte, end) of each token; a note for what is none."""
    while at < end:
        after = at + LEN_TOKEN + size_at(data, at + 2, order)
        if at + LEN_TOKEN > end or after > end:
            yield unreadable(at, end, "bad_length", "tokens that fill their group", data[at : at + 8].hex())
            return
        yield at, after
        at = after


def _groups(data: bytes, at: int, end: int, order: Order) -> Iterator[Note]:
    for found in _tokens(data, at, end, order):
        if isinstance(found, Note):
            yield found
            continue
        first, after = found
        name, known = file_header.GROUPS.get(data[first], (f"group {data[first]:02x}", {}))
        head = head_note(data, first, chr(data[first]), f"group {name}", order)
        yield group(first, after, name, [head, *_values(data, first + LEN_TOKEN, after, order, known)])


def _values(data: bytes, at: int, end: int, order: Order, known: dict) -> Iterator[Note]:
    for found in _tokens(data, at, end, order):
        if isinstance(found, Note):
            yield found
            continue
        first, after = found
        name, read = known.get(data[first], (f"token {data[first]:02x}", None))
        payload = data[first + LEN_TOKEN : after]
        try:
            meaning = f"{read(payload, order)}" if read else printable(payload)
        except (ValueError, IndexError, OverflowError):
            meaning = f"not of its type: {printable(payload)}"
        if name == "signature":
            meaning = printable(payload)
        yield head_note(data, first, chr(data[first]), name, order)
        if payload:
            yield Note(first + LEN_TOKEN, len(payload), name, meaning)


def ddl_notes(data: bytes, token: Token) -> list[Note]:
    """The items of a DDL record; the statement is all behind C1, as it stands."""
    notes, at = [], token.start
    for item in DDL_PART.finditer(data, token.start, token.end):
        if item.start() > at:
            notes.append(Note(at, item.start() - at, "between items", printable(data[at : item.start()])))
        id_ = item[1].decode() if item[1] else "C1"
        text = item[0].decode("utf-8", "backslashreplace").partition("=")[2].removesuffix("," if item[1] else "")
        notes.append(Note(item.start(), len(item[0]), DDL_NAMES.get(id_, id_), text))
        at = item.end()
    if at < token.end:
        notes.append(Note(at, token.end - at, "between items", printable(data[at : token.end])))
    return notes
