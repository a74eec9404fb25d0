"""Avro schemas, and data that are written by them, exactly: Avro specification 1.11, "Binary Encoding".

A text of schemas is a schema as JSON, several one after the other or in an array (as what was kept of a schema topic),
or the answer of a schema registry, {"schema": "..."}. Names may have any characters: they say nothing of the bytes.

Values      null None; boolean bool; int, long int; float, double float; bytes, fixed bytes; string, enum str; array
            list; map, record dict; decimal Decimal with all its digits; date, time-*, timestamp-*, local-timestamp-*,
            uuid what they mean. Other logical types are their underlying type, as the specification asks
Refused     bytes that no encoder writes: a number that is longer than need be, or beyond its type; a boolean that is
            not 00 or 01; a branch that its union has not; text that is no UTF-8; a decimal with more digits than its
            precision; a date or time that no calendar has; a block that claims more items than bytes are left
Schemas     ASSUMED: none refers to itself, none is nested deeper than MAX_DEPTH, by references too, no decimal has a
            precision or scale above MAX_DIGITS, and nothing but the null of a union takes no bytes. So reading takes as
            many steps as there are bytes, and no deep recursion, whatever they are

>>> [schema] = parse(b'{"type":"record","name":"T","namespace":"S","fields":[{"name":"A","type":["null","string"]}]}')
>>> schema.name, read(schema, bytes([2, 2, 97, 0]), 0)
('S.T', ({'A': 'a'}, 3))
"""

import datetime
import json
import struct
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import lru_cache, partial
from typing import Any

from inlet.fields.wrong import Wrong

MAX_DEPTH = 64
MAX_DIGITS = 128  # of a decimal, as its scale: more than databases have; a value's text is as long as its scale
MAX_LONG_BYTES = 10  # of 64 bits, seven a byte
LEN_FOUND = 8
EPOCH = datetime.datetime(1970, 1, 1)
UTC_EPOCH = EPOCH.replace(tzinfo=datetime.UTC)
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DECODER = json.JSONDecoder()
BLANKS = " \t\r\n"
Read = Callable[[bytes, int], tuple[Any, int]]


class Bad(Exception):
    """What was found instead of a value; the place of the field that it is in."""

    def __init__(self, found: str, at: int = -1):
        super().__init__(found)
        self.found, self.at = found, at


@dataclass(frozen=True)
class Type:
    """A type of a schema. `kind` is a primitive, record, enum, fixed, array, map or union."""

    kind: str
    name: str = ""  # full, of a record, an enum or a fixed
    logical: str = ""
    fields: dict[str, "Type"] = field(default_factory=dict)  # of a record, in order
    members: tuple["Type", ...] = ()  # of a union; the items of an array, the values of a map
    read: Read = field(default=lambda data, at: (None, at), repr=False, compare=False)
    precision: int = 0  # of a decimal, as scale
    scale: int = 0
    symbols: tuple[str, ...] = ()  # of an enum
    is_empty: bool = False  # takes no bytes, and may be a member of a union alone
    height: int = 0  # of the types that are nested in it, those that it refers to among them

    def __str__(self) -> str:
        return self.name or self.kind

    @property
    def record(self) -> "Type | None":
        """The record that it is, or that its union holds."""
        return next((one for one in (self, *self.members) if one.kind == "record"), None)

    def has(self, kinds: tuple[str, ...]) -> bool:
        """Is it, or a member of its union, one of these, without a logical type?"""
        return any(one.kind in kinds and not one.logical for one in (self, *self.members))


@lru_cache(maxsize=1024)
def parse(text: bytes) -> list[Type]:
    """The schemas of a text, each of a record. Raises: ValueError."""
    try:
        found = [_Schema().type_of(schema, "", 0) for schema in _values(text.decode())]
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__} {error}") from None
    except RecursionError:
        raise ValueError("a schema nested too deep") from None
    if any(one.kind != "record" for one in found):
        raise ValueError("a schema of no record")
    return found


def _values(text: str) -> list:
    values: list = []
    at = 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        value, at = DECODER.raw_decode(text, at)
        values += value if isinstance(value, list) else [value]
    return [
        json.loads(value["schema"]) if isinstance(value, dict) and isinstance(value.get("schema"), str) else value
        for value in values
    ]


def read(schema: Type, data: bytes, start: int) -> tuple[Any, int]:
    """The datum that begins there, and where it ends. Raises: Wrong, at the first field that cannot be read."""
    try:
        return schema.read(data, start)
    except Bad as bad:
        found, at = bad.found, bad.at
    except (IndexError, struct.error):
        found, at = "the end", -1
    raise Wrong("wrong_shape", max(at, start), f"a datum of the schema {schema}", found)


def offset(schema: Type, data: bytes, start: int, path: tuple[str, ...]) -> int:
    """Where the field of a path begins, or the deepest part of the path that is there. In: a datum that can be read."""
    at = start
    for name, type_ in schema.fields.items():
        if path[:1] == (name,):
            inner = type_.record
            if not inner or len(path) == 1 or path[1] not in inner.fields:
                return at
            begin = long_at(data, at)[1] if type_.kind == "union" else at
            return offset(inner, data, begin, path[1:])
        at = type_.read(data, at)[1]
    return start


class _Schema:
    """Types by name, as a schema defines them from its beginning to its end."""

    def __init__(self) -> None:
        self.named: dict[str, Type | None] = {}  # None: being defined

    def type_of(self, given: Any, namespace: str, depth: int) -> Type:
        """The type that a part of a schema is. Raises: ValueError, KeyError, TypeError."""
        _check_depth(depth)
        if isinstance(given, list):
            return self._union([self.type_of(one, namespace, depth + 1) for one in given])
        if isinstance(given, str):
            return (
                Type(given, read=_READ[given], is_empty=given == "null")
                if given in PRIMITIVES
                else self._of(given, namespace)
            )
        kind = given["type"]
        if not isinstance(kind, str) or kind not in (*PRIMITIVES, "record", "enum", "fixed", "array", "map"):
            return self.type_of(kind, namespace, depth + 1)
        if kind in PRIMITIVES:
            return _with_logical(Type(kind, read=_READ[kind], is_empty=kind == "null"), given)
        if kind in ("array", "map"):
            items = self.type_of(given["items" if kind == "array" else "values"], namespace, depth + 1)
            if items.is_empty:
                raise ValueError(f"{kind} of items of no bytes")
            return Type(
                kind, members=(items,), read=partial(_blocks, items.read, kind == "map"), height=_height([items])
            )
        return self._named(given, kind, namespace, depth)

    def _of(self, name: str, namespace: str) -> Type:
        for full in (f"{namespace}.{name}", name) if namespace and "." not in name else (name,):
            if full in self.named:
                found = self.named[full]
                if found is None:
                    raise ValueError(f"{full} refers to itself")
                return found
        raise ValueError(f"an unknown type {name[:80]!r}")

    def _named(self, given: dict, kind: str, namespace: str, depth: int) -> Type:
        name = given["name"]
        namespace = name.rpartition(".")[0] if "." in name else given.get("namespace") or namespace
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self.named:
            raise ValueError(f"{full} is defined twice")
        self.named[full] = None
        if kind == "enum":
            symbols = tuple(str(one) for one in given["symbols"])
            found = Type(kind, full, read=partial(_enum, symbols), symbols=symbols)
        elif kind == "fixed":
            size = int(given["size"])
            if size < 1:
                raise ValueError(f"{full} has size {size}")
            found = _with_logical(Type(kind, full, read=partial(_fixed, size)), given)
        else:
            fields = {one["name"]: self.type_of(one["type"], namespace, depth + 1) for one in given["fields"]}
            if len(fields) != len(given["fields"]):
                raise ValueError(f"{full} has a field twice")
            if not fields or any(one.is_empty for one in fields.values()):
                raise ValueError(f"{full} has no field, or one of no bytes")
            readers = [(name, type_.read) for name, type_ in fields.items()]
            found = Type(kind, full, fields=fields, read=partial(_record, readers), height=_height(fields.values()))
        self.named[full] = found
        return found

    def _union(self, members: list[Type]) -> Type:
        if not members or any(one.kind == "union" for one in members):
            raise ValueError("a union of no type, or of unions")
        read_ = partial(_branch, [one.read for one in members])
        return Type("union", members=tuple(members), read=read_, height=_height(members))


def _height(members: Iterable[Type]) -> int:
    """The height of a type of these members. Raises: ValueError."""
    height = 1 + max(one.height for one in members)
    _check_depth(height)
    return height


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"a schema nested deeper than {MAX_DEPTH}")


def _with_logical(type_: Type, given: dict) -> Type:
    logical = given.get("logicalType")
    if logical == "decimal" and type_.kind in ("bytes", "fixed"):
        precision, scale = given["precision"], given.get("scale", 0)
        is_told = type(precision) is int and type(scale) is int
        if not is_told or not 1 <= precision <= MAX_DIGITS or not 0 <= scale <= MAX_DIGITS:
            raise ValueError(f"a decimal of precision {precision!r:.40} and scale {scale!r:.40}")
        convert: Callable = partial(_decimal, precision, scale)
    elif (type_.kind, logical) in _LOGICAL:
        convert = _LOGICAL[type_.kind, str(logical)]
    else:
        return type_
    digits = (given["precision"], given.get("scale", 0)) if logical == "decimal" else (0, 0)
    read_ = partial(_converted, type_.read, convert)
    return Type(type_.kind, type_.name, str(logical), read=read_, precision=digits[0], scale=digits[1])


def _converted(read: Read, convert: Callable, data: bytes, at: int) -> tuple[Any, int]:
    value, at = read(data, at)
    try:
        return convert(value), at
    except (OverflowError, ValueError) as error:
        raise Bad(f"{value!r}"[:40] + f": {error}") from None


def _record(readers: list[tuple[str, Read]], data: bytes, at: int) -> tuple[dict, int]:
    found = {}
    try:
        for name, read in readers:  # noqa: B007  the place of the field at fault is needed after the loop
            found[name], at = read(data, at)
    except Bad as bad:
        bad.at = at if bad.at < 0 else bad.at
        raise
    except (IndexError, struct.error):
        raise Bad("the end", at) from None
    return found, at


def _branch(readers: list[Read], data: bytes, at: int) -> tuple[Any, int]:
    branch = data[at]
    if not branch & 0x81 and branch >> 1 < len(readers):
        return readers[branch >> 1](data, at + 1)
    number, at = long_at(data, at)
    if not 0 <= number < len(readers):
        raise Bad(f"branch {number} of a union of {len(readers)}")
    return readers[number](data, at)


def _blocks(read: Read, is_map: bool, data: bytes, at: int) -> tuple[Any, int]:
    """Blocks of items; where the number of a block is negative, the block's bytes follow."""
    items: list = []
    while True:
        number, at = long_at(data, at)
        end = None
        if number < 0:
            number = -number
            size, at = long_at(data, at)
            end = at + size
        if number > len(data) - at:
            raise Bad(f"a block of {number} items, {len(data) - at} bytes are left")
        if not number:
            break
        for _ in range(number):
            if is_map:
                key, at = string_at(data, at)
                value, at = read(data, at)
                items.append((key, value))
            else:
                value, at = read(data, at)
                items.append(value)
        if end not in (None, at):
            raise Bad("a block of another size than it says")
    if not is_map:
        return items, at
    if len(dict(items)) < len(items):
        raise Bad("a map with a key twice")
    return dict(items), at


def _null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise Bad(f"0x{data[at]:02X} as a boolean")
    return data[at] == 1, at + 1


def long_at(data: bytes, at: int) -> tuple[int, int]:
    """Zigzag, seven bits a byte, the least first."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, shift, start = byte & 0x7F, 7, at
    while True:
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
        if at - start == MAX_LONG_BYTES - 1:
            raise Bad("a number of more than 64 bits")
    if not byte:
        raise Bad("a number that is longer than it need be")
    if number >> 64:
        raise Bad("a number of more than 64 bits")
    return (number >> 1) ^ -(number & 1), at + 1


def _int(data: bytes, at: int) -> tuple[int, int]:
    number, at = long_at(data, at)
    if not -(1 << 31) <= number < 1 << 31:
        raise Bad(f"{number} as an int")
    return number, at


def _float(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<f", data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    return struct.unpack_from("<d", data, at)[0], at + 8


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = long_at(data, at)
    if not 0 <= size <= len(data) - at:
        raise Bad(f"a length of {size}, {len(data) - at} bytes are left")
    return data[at : at + size], at + size


def string_at(data: bytes, at: int) -> tuple[str, int]:
    """A length and as many bytes of UTF-8."""
    value, at = _bytes(data, at)
    try:
        return value.decode(), at
    except UnicodeDecodeError:
        raise Bad("bytes that are no UTF-8") from None


def _fixed(size: int, data: bytes, at: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise Bad("the end")
    return data[at : at + size], at + size


def _enum(symbols: tuple[str, ...], data: bytes, at: int) -> tuple[str, int]:
    number, at = _int(data, at)
    if not 0 <= number < len(symbols):
        raise Bad(f"symbol {number} of an enum of {len(symbols)}")
    return symbols[number], at


def _decimal(precision: int, scale: int, value: bytes) -> Decimal:
    if not value:
        raise ValueError("a decimal of no bytes")
    if len(value) > precision // 2 + 9:  # a byte has more than two digits; sign and padding
        raise ValueError(f"more than {precision} digits")
    unscaled = int.from_bytes(value, "big", signed=True)
    digits = len(str(abs(unscaled)))
    if digits > precision:
        raise ValueError(f"{digits} digits, the precision is {precision}")
    return Decimal(unscaled).scaleb(-scale, Context(prec=max(digits, 1)))


def _time(microseconds: int) -> datetime.time:
    if not 0 <= microseconds < 86_400_000_000:
        raise ValueError("no time of a day")
    return (EPOCH + datetime.timedelta(microseconds=microseconds)).time()


def _at(epoch: datetime.datetime, factor: int, value: int) -> datetime.datetime:
    return epoch + datetime.timedelta(microseconds=value * factor)


_READ: dict[str, Read] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": long_at,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": string_at,
}
_LOGICAL: dict[tuple[str, str], Callable] = {
    ("int", "date"): lambda value: (EPOCH + datetime.timedelta(days=value)).date(),
    ("int", "time-millis"): lambda value: _time(value * 1000),
    ("long", "time-micros"): _time,
    ("long", "timestamp-millis"): partial(_at, UTC_EPOCH, 1000),
    ("long", "timestamp-micros"): partial(_at, UTC_EPOCH, 1),
    ("long", "local-timestamp-millis"): partial(_at, EPOCH, 1000),
    ("long", "local-timestamp-micros"): partial(_at, EPOCH, 1),
    ("string", "uuid"): uuid.UUID,
}
STRING, LONG, BYTES = (Type(kind, read=_READ[kind]) for kind in ("string", "long", "bytes"))
