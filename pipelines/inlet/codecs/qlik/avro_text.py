"""A data record of Qlik in Avro as the JSON text of the same members, of schemas and bytes that are in no doubt."""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from inlet.codecs.qlik.avro_form import plain
from inlet.codecs.qlik.members import HEADERS, MASKS
from inlet.fields import avro
from inlet.fields.json_exact import Number

SPECIAL = re.compile(rb'["\\\x00-\x1f]')  # what JSON escapes
MAX_NAMES = 4 << 20  # bytes of names in the text of a value; what takes more is read by the exact path
BODY = {"data", "beforeData", "headers"}
Emit = Callable[[bytes, int, list], int]  # the place after a value, whose text it appends


class Doubt(Exception):
    pass


class Record(NamedTuple):
    """How data records of a schema become text."""

    parts: tuple[tuple[bytes, Emit | None], ...]  # the text before a member, and its value; None: headers
    headers: tuple[tuple[bytes, str, Emit, avro.Read], ...]
    columns: tuple[str, ...]


def record_of(schema: bytes) -> Record:
    """Raises: Doubt."""
    found = _record_or_none(schema)
    if found is None:
        raise Doubt
    return found


@lru_cache(maxsize=4096)
def _record_or_none(schema: bytes) -> Record | None:
    """None in doubt, which is kept, too: a schema comes with many messages."""
    try:
        return _record(schema)
    except (Doubt, ValueError):
        return None


def _record(schema: bytes) -> Record:
    """Raises: Doubt, ValueError."""
    [of_schema] = avro.parse(schema)
    headers = of_schema.fields.get("headers")
    data = of_schema.fields.get("data")
    if set(of_schema.fields) != BODY or headers is None or headers.kind != "record" or data is None:
        raise Doubt
    if not set(headers.fields) <= set(HEADERS) or not data.record:
        raise Doubt
    emits = _Emits()
    parts = tuple(
        (_name(name, n), None if name == "headers" else emits.of(type_)[0])
        for n, (name, type_) in enumerate(of_schema.fields.items())
    )
    of_headers = tuple(
        (_name(name, n), name, emits.of(type_)[0], type_.read) for n, (name, type_) in enumerate(headers.fields.items())
    )
    return Record(parts, of_headers, tuple(data.record.fields))


def put(record: Record, data: bytes, at: int, end: int, order: str, out: list) -> None:
    """Raises: Doubt and UNREADABLE."""
    for before, emit in record.parts:
        out.append(before)
        if emit is not None:
            at = emit(data, at, out)
            continue
        masks: list[tuple[int, bytes]] = []
        out.append(b"{")
        for name_text, name, value, read in record.headers:
            out.append(name_text)
            if name not in MASKS:
                at = value(data, at, out)
                continue
            mask, at = read(data, at)
            if mask:
                masks.append((len(out), mask))
            out.append(b"null")
        out.append(b"}")
        _put_masks(masks, len(record.columns), order, out)
    if at != end:
        raise Doubt


def _put_masks(masks: list[tuple[int, bytes]], num_columns: int, order: str, out: list) -> None:
    """The hex text of masks whose byte order is in no doubt."""
    readings = []
    for one in ("little", "big") if order == "auto" else (order,):
        bits = [int.from_bytes(mask, one) for _, mask in masks]  # type: ignore[arg-type]
        if all(number.bit_length() <= num_columns for number in bits) and bits not in readings:
            readings.append(bits)
    if len(readings) != 1:
        raise Doubt
    for (place, _), number in zip(masks, readings[0]):
        digits = f"{number:X}"
        out[place] = f'"{digits.zfill(len(digits) + len(digits) % 2)}"'.encode()


def _name(name: str, place: int) -> bytes:
    return (b"," if place else b"") + json.dumps(name, ensure_ascii=False).encode() + b":"


class _Emits:
    """What writes values of the types of a schema. Each type is made once, however often it is referred to: what
    references expand to may grow with a power of the schema's length.
    """

    def __init__(self) -> None:
        self.made: dict[int, tuple[Emit, int]] = {}  # by id: the schema holds its types as long as this lives

    def of(self, type_: avro.Type) -> tuple[Emit, int]:
        """What writes values of a type, and the bytes of the names that one value may take. Raises: Doubt for a type
        that data messages do not have.
        """
        if id(type_) not in self.made:
            self.made[id(type_)] = self._make(type_)
        return self.made[id(type_)]

    def _make(self, type_: avro.Type) -> tuple[Emit, int]:
        if type_.kind == "union":
            kinds = [member.kind for member in type_.members]
            if len(kinds) != 2 or kinds[0] != "null":
                raise Doubt
            emit, size = self.of(type_.members[1])
            return _or_null(emit), size
        if type_.kind != "record":
            return _plain_emit(type_), 0
        members = [(_name(name, n), *self.of(one)) for n, (name, one) in enumerate(type_.fields.items())]
        size = sum(len(name) + of_names for name, _, of_names in members)
        if size > MAX_NAMES:
            raise Doubt
        return _object([(name, emit) for name, emit, _ in members]), size


def _plain_emit(type_: avro.Type) -> Emit:
    """What writes values of a type that has no members. Raises: Doubt."""
    if type_.kind in ("array", "map", "null"):
        raise Doubt
    if type_.kind in ("int", "long") and not type_.logical:
        return _integer(type_.read)
    if type_.kind == "string" and not type_.logical:
        return _string
    if type_.kind == "bytes" and type_.logical == "decimal":
        return _decimal(type_.precision, type_.scale)
    # equal decimals may have other digits, and -0.0 is 0.0
    is_exact = type_.logical == "decimal" or type_.kind in ("float", "double")
    return _scalar(type_.read, _text if is_exact else _kept_text)


def _or_null(emit: Emit) -> Emit:
    def write(data: bytes, at: int, out: list) -> int:
        if data[at] == 2:
            return emit(data, at + 1, out)
        if data[at]:
            raise Doubt
        out.append(b"null")
        return at + 1

    return write


def _object(members: list[tuple[bytes, Emit]]) -> Emit:
    def write(data: bytes, at: int, out: list) -> int:
        out.append(b"{")
        for name, emit in members:
            out.append(name)
            at = emit(data, at, out)
        out.append(b"}")
        return at

    return write


def _string(data: bytes, at: int, out: list) -> int:
    """The walk refuses what is no UTF-8."""
    value, end = _sized(data, at)
    if SPECIAL.search(value):
        out.append(json.dumps(value.decode(), ensure_ascii=False).encode())
    else:
        out.append(b'"%b"' % value)
    return end


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes after their length, and where they end. Raises: Doubt."""
    size = data[at]
    if size < 0x80 and not size & 1:
        at, size = at + 1, size >> 1
    else:
        size, at = avro.long_at(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise Doubt
    return data[at:end], end


def _decimal(precision: int, scale: int) -> Emit:
    limit, unit = 10**precision, 10**scale

    def write(data: bytes, at: int, out: list) -> int:
        value, end = _sized(data, at)
        unscaled = int.from_bytes(value, "big", signed=True)
        if not value or not -limit < unscaled < limit or len(value) > precision:
            raise Doubt
        whole, rest = divmod(abs(unscaled), unit)
        text = f"{whole}.{rest:0{scale}d}" if scale else f"{whole}"
        out.append(f"-{text}".encode() if unscaled < 0 else text.encode())
        return end

    return write


def _integer(read: avro.Read) -> Emit:
    def write(data: bytes, at: int, out: list) -> int:
        byte = data[at]
        if byte < 0x80:
            out.append(b"%d" % ((byte >> 1) ^ -(byte & 1)))
            return at + 1
        value, at = read(data, at)
        out.append(b"%d" % value)
        return at

    return write


def _scalar(read: avro.Read, text_of: Callable[[type, Any], bytes]) -> Emit:
    def write(data: bytes, at: int, out: list) -> int:
        value, at = read(data, at)
        out.append(text_of(type(value), value))
        return at

    return write


def _text(type_: type, value: Any) -> bytes:
    """A value as JSON has it. In: its type, by which a cache tells True from 1."""
    text = plain(value)
    if isinstance(text, bytes):
        raise Doubt  # the walk of JSON would take their hex digits for a number or a text, which they are not
    if isinstance(text, Number):
        return text.encode()
    return json.dumps(text, ensure_ascii=False).encode()


_kept_text = lru_cache(maxsize=1 << 16)(_text)
