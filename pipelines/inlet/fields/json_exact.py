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
import re
from json.decoder import scanstring

from inlet.fields.wrong import Wrong

BLANK = re.compile(r"[ \t\r\n]*")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
LEN_FOUND = 24


class Number(str):
    """A JSON number as it is written."""

    __slots__ = ()


class _Refused(Exception):
    pass


def _object(pairs: list) -> dict:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused
    return members


def _constant(name: str):
    raise _Refused


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=_constant)


def parse(data: bytes) -> dict:
    """The object that the text holds. Out: dict, list, str, Number, bool, None. Raises: Wrong."""
    text = _text(data)
    start = BLANK.match(text).end()
    if text[start:start + 1] != "{":
        raise _wrong(text, "invalid_json", start, "one JSON object")
    try:
        value, end = DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _wrong(text, "invalid_json", error.pos, "JSON") from None
    except RecursionError:
        raise _wrong(text, "invalid_json", start, "an object that is not nested as deep") from None
    except _Refused:
        raise _refused(text, start) from None
    rest = BLANK.match(text, end).end()
    if rest < len(text):
        raise _wrong(text, "trailing_data", rest, "the end of the text")
    if "\\u" in text:
        _check_surrogates(text)
    return value


def offset(data: bytes, path: tuple[str, ...]) -> int:
    """Byte at which the member of that path begins (its name), or the deepest part of the path that is there; 0 for none."""
    found = _find(data.decode(), path)
    return len(data.decode()[:found[0]].encode()) if found else 0


def slice_(data: bytes, path: tuple[str, ...]) -> str:
    """The text of a member's value, as it is written."""
    text = data.decode()
    return text[slice(*_find(text, path)[1:])]


def _find(text: str, path):
    found, at = None, BLANK.match(text).end()
    for name in path:
        inner = next((m for m in _members(text, at) if m[0] == name), None) if text[at] == "{" else None
        if inner is None:
            break
        found, at = inner[1:], inner[2]
    return found


def _members(text: str, at: int):
    """Members of the object at `at`: name, where the name begins, where the value begins and ends."""
    at = BLANK.match(text, at + 1).end()
    while text[at] == '"':
        name, end = scanstring(text, at + 1, True)
        ofs_value = BLANK.match(text, BLANK.match(text, end).end() + 1).end()
        end = _LENIENT.raw_decode(text, ofs_value)[1]
        yield name, at, ofs_value, end
        at = BLANK.match(text, end).end()
        at = BLANK.match(text, at + 1).end() if text[at] == "," else at


_LENIENT = json.JSONDecoder(parse_int=Number, parse_float=Number)


def _refused(text: str, at: int) -> Wrong:
    """Which of the two reasons of `_Refused` it was, and where."""
    try:
        json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_constant).raw_decode(text, at)
    except json.JSONDecodeError as error:
        return _wrong(text, "invalid_json", error.pos, "JSON")
    except _Refused:
        return _wrong(text, "invalid_json", re.search(r"NaN|-?Infinity", text).start(), "a JSON number")
    return _wrong(text, "duplicate_member", _duplicate(text, at) or 0, "each member once")


def _duplicate(text: str, at: int) -> int | None:
    names = set()
    for name, ofs_name, ofs_value, end in _members(text, at):
        if name in names:
            return ofs_name
        names.add(name)
        inner = [ofs_value] if text[ofs_value] == "{" else _objects(text, ofs_value, end) if text[ofs_value] == "[" else []
        for ofs_object in inner:
            found = _duplicate(text, ofs_object)
            if found is not None:
                return found
    return None


def _objects(text: str, at: int, end: int) -> list[int]:
    """Where the objects directly within an array begin."""
    found, at = [], BLANK.match(text, at + 1).end()
    while at < end and text[at] != "]":
        ofs_value, at = at, _LENIENT.raw_decode(text, at)[1]
        found += [ofs_value] if text[ofs_value] == "{" else _objects(text, ofs_value, at) if text[ofs_value] == "[" else []
        at = BLANK.match(text, at).end()
        at = BLANK.match(text, at + 1).end() if text[at] == "," else at
    return found


def _check_surrogates(text: str) -> None:
    open_at = None                                   # end of a high surrogate that waits for its low one
    for escape in ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        if open_at is not None and (open_at != escape.start() or not 0xDC00 <= code < 0xE000):
            raise _wrong(text, "invalid_json", open_at - 6, "a pair of surrogates")
        if 0xDC00 <= code < 0xE000 and open_at is None:
            raise _wrong(text, "invalid_json", escape.start(), "a pair of surrogates")
        open_at = escape.end() if 0xD800 <= code < 0xDC00 else None
    if open_at is not None:
        raise _wrong(text, "invalid_json", open_at - 6, "a pair of surrogates")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Wrong("invalid_utf8", error.start, "UTF-8", f"0x{data[error.start:error.end].hex().upper()}") from None


def _wrong(text: str, kind: str, at: int, expected: str) -> Wrong:
    found = repr(text[at:at + LEN_FOUND]) if at < len(text) else "the end"
    return Wrong(kind, len(text[:at].encode()), expected, found)
