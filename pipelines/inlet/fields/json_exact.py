"""JSON text (RFC 8259), read so that nothing is lost, guessed or repaired.

Numbers stay text (`Number`), member names are unique in every object, escapes are whole characters, nothing follows the
object. What other readers let pass in silence is refused with the byte at which it stands.

Rejects: invalid_utf8, invalid_json, trailing_data, duplicate_member.
>>> parse(b'{"a": 1.10, "b": null}')
{'a': '1.10', 'b': None}
>>> parse(b'{"a": 1} x')
Traceback (most recent call last):
inlet.fields.wrong.Wrong: trailing_data at byte 9: expected the end of the text, found 'x'
"""

import json
import math
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C function where there is one

from inlet.fields.wrong import Wrong, quoted

BLANK = re.compile(r"[ \t\r\n]*")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
LEN_FOUND = 24


class Number(str):
    """A JSON number as it is written."""

    __slots__ = ()

    @classmethod
    def of(cls, value: float) -> "Number":
        """The number that is written for a value; what is no number has the name that Spark, too, reads.

        >>> Number.of(0.1), Number.of(float("-inf"))
        ('0.1', '-Infinity')
        """
        return cls(repr(value) if math.isfinite(value) else NOT_FINITE[str(value)])


class _Refused(Exception):
    pass


def _object(pairs: list) -> dict:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused
    return members


def _constant(name: str):
    raise _Refused


NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # Python's names, and those of everyone else
CONSTANTS = tuple(NOT_FINITE.values())  # what Python's reader takes and JSON has not
TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]|[^\s"{}\[\]:,]+')
NEXT = re.compile(rf"[ \t\r\n]*+({TOKEN.pattern})")
LENIENT = json.JSONDecoder(parse_int=Number, parse_float=Number)


def _decoder(constant) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=constant)


DECODERS = {False: _decoder(_constant), True: _decoder(Number)}  # by: is NaN, Infinity, -Infinity a number?


def parse(data: bytes, has_constants: bool = False) -> dict:
    """The object that the text holds. In: whether NaN, Infinity and -Infinity are numbers, as many writers have it and
    RFC 8259 has not. Out: dict, list, str, Number, bool, None. Raises: Wrong.
    """
    text = _text(data)
    start = BLANK.match(text).end()
    if text[start : start + 1] != "{":
        raise wrong_at(text, "invalid_json", start, "one JSON object")
    try:
        value, end = DECODERS[has_constants].raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise no_json(text, error) from None
    except RecursionError:
        raise _too_deep(text, start) from None
    except _Refused:
        raise _refused(text, start, Number if has_constants else _constant) from None
    rest = BLANK.match(text, end).end()
    if rest < len(text):
        raise wrong_at(text, "trailing_data", rest, "the end of the text")
    if "\\u" in text:
        _check_surrogates(text)
    return value


def offset(data: bytes, path: tuple[str | int, ...]) -> int:
    """Byte at which the member of that path begins (its name), or the deepest part of the path that is there; 0 for
    none. In: names, and places in arrays from 0 on.

    >>> offset(b'{"a": [{"b": 1}, {"b": 2}]}', ("a", 1, "b"))
    18
    """
    text = data.decode()
    found = _find(text, path)
    return len(text[: found[0]].encode()) if found else 0


def text_before(data: bytes, end: int, path: tuple[str, ...]) -> str | None:
    """The text of a member that is whole before a fault of the JSON; None where it is not there, no text, or there
    twice. In: the byte of the fault, before which the text is JSON; it may lie in a string.

    >>> text_before(b'{"a": {"b": "1", "c": oops', 22, ("a", "b"))
    '1'
    >>> text_before(b'{"a": "b\\": {\\"c\\": 1', 20, ("a", "b"))
    """
    text, at = data[:end].decode(), 0
    while token := NEXT.match(text, at):  # up to a quote that nothing ends
        at = token.end()
    text = text[:at]
    places = [after for _, names, _, after in _members(text, 0) if names == list(path)]
    value = NEXT.match(text, places[0]) if len(places) == 1 else None
    return scanstring(text, value.start(1) + 1, True)[0] if value and value[1].startswith('"') else None


def slice_(data: bytes, path: tuple[str, ...]) -> str:
    """The text of a member's value, as it is written."""
    text = data.decode()
    start = BLANK.match(text, _find(text, path)[1]).end()
    return text[start : LENIENT.raw_decode(text, start)[1]]


def _find(text: str, path: tuple[str | int, ...]) -> tuple[int, int] | None:
    found = None
    for _, names, ofs_name, ofs_value in _members(text, 0):
        if names == list(path[: len(names)]):
            found = ofs_name, ofs_value
            if len(names) == len(path):
                break
    return found


def _members(text: str, at: int):
    """Every member of every object, in the order of the text: where its object begins; its name behind those of the
    members around it (in an array the place, from 0 on), a list that lives on; where the name begins, and what follows
    the colon. In: a text that is JSON."""
    starts: list[int] = []
    names: list[str | int | None] = []
    before: re.Match | None = None
    for token in TOKEN.finditer(text, at):
        if token[0] == ":":
            names[-1] = scanstring(text, before.start() + 1, True)[0]
            yield starts[-1], names, before.start(), token.end()
        elif token[0] in ("{", "["):
            starts.append(token.start())
            names.append(0 if token[0] == "[" else None)
        elif token[0] in ("}", "]"):
            starts.pop()
            names.pop()
        elif token[0] == "," and isinstance(names[-1], int):
            names[-1] += 1
        before = token


def _refused(text: str, at: int, constant) -> Wrong:
    """Which of the two reasons of `_Refused` it was, and where."""
    try:
        json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=constant).raw_decode(text, at)
    except json.JSONDecodeError as error:
        return no_json(text, error)
    except RecursionError:  # behind the place that was refused
        return _too_deep(text, at)
    except _Refused:
        word = next(token for token in TOKEN.finditer(text, at) if token[0].startswith(CONSTANTS))
        return wrong_at(text, "invalid_json", word.start(), "a JSON number")
    seen = set()
    for start, names, ofs_name, _ in _members(text, at):
        if (start, names[-1]) in seen:
            return wrong_at(text, "duplicate_member", ofs_name, "each member once")
        seen.add((start, names[-1]))
    raise AssertionError("an object was refused that holds no member twice")


def _too_deep(text: str, at: int) -> Wrong:
    return wrong_at(text, "invalid_json", at, "an object that is not nested as deep")


def _check_surrogates(text: str) -> None:
    open_at = None  # end of a high surrogate that waits for its low one
    for escape in ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        if open_at is not None and (open_at != escape.start() or not 0xDC00 <= code < 0xE000):
            raise wrong_at(text, "invalid_json", open_at - 6, "a pair of surrogates")
        if 0xDC00 <= code < 0xE000 and open_at is None:
            raise wrong_at(text, "invalid_json", escape.start(), "a pair of surrogates")
        open_at = escape.end() if 0xD800 <= code < 0xDC00 else None
    if open_at is not None:
        raise wrong_at(text, "invalid_json", open_at - 6, "a pair of surrogates")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Wrong("invalid_utf8", error.start, "UTF-8", f"0x{data[error.start : error.end].hex().upper()}") from None


def no_json(text: str, error: json.JSONDecodeError) -> Wrong:
    """Why a text is no JSON."""
    wrong = wrong_at(text, "invalid_json", error.pos, "JSON")
    if error.msg.startswith("Unterminated string"):
        wrong = Wrong(wrong.kind, wrong.offset, "JSON: a quote that ends this text", f"{wrong.found}, and the end")
    return wrong


def wrong_at(text: str, kind: str, at: int, expected: str) -> Wrong:
    """In: a place in the text, where it is not as expected."""
    found = quoted(text[at : at + LEN_FOUND + 1], LEN_FOUND) if at < len(text) else "the end"
    return Wrong(kind, len(text[:at].encode()), expected, found)
