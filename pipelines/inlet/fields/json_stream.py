"""JSON objects that stand one behind the other in one text, or in one array: where each begins and ends.

Between objects stand blanks, or nothing; in an array, commas. Where the text goes on in another way, what is left of it
cannot be cut, and is one piece.

Rejects: invalid_utf8, invalid_json, trailing_data.
>>> [(piece.start, piece.end) for piece in pieces(b'{"a": 1}{"b": 2}')]
[(0, 8), (8, 16)]
>>> [(piece.start, piece.end) for piece in pieces(b'[{"a": 1}, {}]')]
[(1, 9), (11, 13)]
>>> str([piece.wrong for piece in pieces(b'{"a": 1} x')][-1])
"trailing_data at byte 9: expected an object or the end of the text, found 'x'"
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from inlet.fields.json_exact import BLANK, LENIENT, no_json, wrong_at
from inlet.fields.wrong import Wrong

OPEN = re.compile(r"[ \t\r\n]*(\[?)[ \t\r\n]*")
COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
CLOSE = re.compile(r"[ \t\r\n]*\][ \t\r\n]*\Z")
END = re.compile(r"[ \t\r\n]*\Z")


class Piece(NamedTuple):
    """An object, or what cannot be cut into objects (`wrong`, whose offset is a byte of the text). In bytes."""

    start: int
    end: int
    wrong: Wrong | None = None


def pieces(data: bytes) -> Iterator[Piece]:
    """The objects of a text; none of `[]`. Where the text cannot be cut to its end, one more piece is what is left, or
    the bracket of an array that nothing ends.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        bad = f"0x{data[error.start : error.end].hex().upper()}"
        yield Piece(0, len(data), Wrong("invalid_utf8", error.start, "UTF-8", bad))
        return
    opened = OPEN.match(text)
    between, close = (COMMA, CLOSE) if opened[1] else (BLANK, END)
    at, end, num_bytes = opened.end(), 0, 0
    if opened[1] and CLOSE.match(text, at):
        return
    while isinstance(found := _end(text, at, may_end=bool(end) and not opened[1]), int):
        begin, before, end = at, end, found
        start = num_bytes + len(text[before:begin].encode())
        num_bytes = start + len(text[begin:end].encode())
        yield Piece(start, num_bytes)
        if close.match(text, end):
            return
        follows = between.match(text, end)
        at = follows.end() if follows else end
        if follows is None:
            found = wrong_at(text, "invalid_json", end, ", or ] and the end of the text")
            break
    if end == len(text) and opened[1]:
        yield Piece(opened.start(1), opened.end(1), found)
    else:
        start = num_bytes + (len(text[end:at].encode()) if at < len(text) else 0)
        yield Piece(start if end else 0, len(data), found)


def _end(text: str, at: int, may_end: bool) -> int | Wrong:
    """Where the object ends that begins there; or why none does."""
    if text[at : at + 1] != "{":
        kind, expected = (
            ("trailing_data", "an object or the end of the text") if may_end else ("invalid_json", "an object")
        )
        return wrong_at(text, kind, at, expected)
    try:
        return LENIENT.raw_decode(text, at)[1]
    except json.JSONDecodeError as error:
        return no_json(text, error)
    except RecursionError:
        return wrong_at(text, "invalid_json", at, "an object that is not nested as deep")
