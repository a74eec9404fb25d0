"""Tables of GoldenGate and the column areas of their rows (the `D` token): goldengate.md, chapter 4, in plain Python.

Knows nothing of inlet. An image is a dict: a column that is absent is missing, None is NULL.

    emp = Table("HR.EMP", (number("ID", is_key=True), varchar("NAME", 10)))
    compressed(emp, {"ID": 3, "NAME": None}, "<")
"""

import datetime
import hashlib
from decimal import Decimal
from typing import Any, NamedTuple

ASCII_F, ASCII_V, DATETIME = 0, 64, 192
INTEGERS = {130: (2, True), 131: (2, False), 132: (4, True), 133: (4, False), 134: (8, True), 135: (8, False)}  # 4.2
PLAIN, FLOAT, FIXED_PREC, CHAR_TYPE = 0, 2, 3, 5  # sub types that dumps show, 4.2 and 6
NULL = b"\xff\xff"
PRESENT = b"\0\0"


class Column(NamedTuple):
    """What chapter 6 says of a column. `length` is the external length in bytes, which a value may fill."""

    name: str
    data_type: int
    length: int
    scale: int = 0
    sub_type: int = PLAIN
    native_type: int = 0
    is_nullable: bool = True
    is_key: bool = False
    charset: str = "utf-8"  # as Python names it; a Defgen file names it by `charset_id`
    charset_id: int = -1
    num_chars: int = 0


class Table(NamedTuple):
    """A captured table. `is_even`: each column takes an even number of bytes in a full image, as in Oracle's files
    (4.4, S28); PostgreSQL's of 21.3 are not rounded (6, S4).
    """

    name: str
    columns: tuple[Column, ...]
    is_even: bool = True

    @property
    def key(self) -> list[str]:
        return [column.name for column in self.columns if column.is_key]


class Raw(bytes):
    """A value whose bytes behind the null indicator are given as they are."""


class NullWith(bytes):
    """A NULL that keeps bytes behind its indicator, as a DATETIME may (17, 16a)."""


def integer(name: str, data_type: int = 134, scale: int = 0, **facts) -> Column:
    """Of 130 to 135: two, four or eight bytes, signed or not."""
    length = {2: 6, 4: 11, 8: 23}[INTEGERS[data_type][0]]
    return Column(name, data_type, length, scale, **facts)


def number(name: str, scale: int = 0, **facts) -> Column:
    """Oracle's NUMBER(p,s) of few digits."""
    return Column(name, 134, 11, scale, **{"sub_type": FIXED_PREC, "native_type": 2, **facts})


def decimal_text(name: str, scale: int = 0, sub_type: int = FLOAT, **facts) -> Column:
    """Oracle's NUMBER that travels as text."""
    return Column(name, ASCII_V, 50, scale, sub_type, 2, **facts)


def varchar(name: str, length: int, **facts) -> Column:
    """Text with an inner length."""
    return Column(name, ASCII_V, length, **{"native_type": 1, **facts})


def char(name: str, num_chars: int, **facts) -> Column:
    """PostgreSQL's char(n): padded with blanks by whoever writes the value, and with an inner length (4.2)."""
    said = {"sub_type": CHAR_TYPE, "native_type": 1, "num_chars": num_chars}
    return Column(name, ASCII_V, 3 * num_chars, **{**said, **facts})


def fixed(name: str, length: int, **facts) -> Column:
    """ASCII_F: as many bytes as the value has, without an inner length."""
    return Column(name, ASCII_F, length, **facts)


def moment(name: str, length: int = 29, **facts) -> Column:
    """A date of 10, a date and time of 19, or one with a fraction: 20 and its digits."""
    return Column(name, DATETIME, length, **{"native_type": 187 if length > 19 else 12, **facts})


def bytes_of(column: Column, value: Any, order: str) -> bytes:
    """A value as it travels, with its null indicator (4.2)."""
    if value is None:
        return NULL
    if isinstance(value, NullWith):
        return NULL + value
    if isinstance(value, Raw):
        return PRESENT + value
    return PRESENT + _body(column, value, order)


def _body(column: Column, value: Any, order: str) -> bytes:
    if column.data_type in INTEGERS:
        size, is_signed = INTEGERS[column.data_type]
        unscaled = Decimal(value).scaleb(column.scale)
        if unscaled != int(unscaled):
            raise ValueError(f"{value} has more than {column.scale} digits of a fraction")
        return int(unscaled).to_bytes(size, "big", signed=is_signed)  # big-endian in any trail (1.3)
    if column.data_type == DATETIME:
        return datetime_text(value, column.length).encode("ascii")
    if column.data_type in (ASCII_V, ASCII_F):
        text = format(value, "f") if isinstance(value, Decimal) else value
        data = text if isinstance(text, bytes) else str(text).encode(column.charset)
        if len(data) > column.length:
            raise ValueError(f"{len(data)} bytes do not fit {column.name}, which has {column.length}")
        return _u16(len(data), order) + data if column.data_type == ASCII_V else data
    raise ValueError(f"no public layout of data type {column.data_type}; give a Raw")


def datetime_text(value: Any, length: int) -> str:
    """`YYYY-MM-DD:HH:MI:SS.fff` of that width (4.2); a text stays as it is."""
    if isinstance(value, str):
        return value
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    text = f"{value:%H:%M:%S}.{value.microsecond:06d}000"
    return f"{value.date().isoformat()}:{text}"[:length]  # strftime pads no year


def compressed(table: Table, image: dict[str, Any], order: str) -> bytes:
    """The FieldComp layout: index, length and bytes of each column that the image has (4.1)."""
    unknown = image.keys() - {column.name for column in table.columns}
    if unknown:
        raise ValueError(f"{table.name} has no column {sorted(unknown)}")
    area = b""
    for index, column in enumerate(table.columns):
        if column.name in image:
            value = bytes_of(column, image[column.name], order)
            area += _u16(index, order) + _u16(len(value), order) + value
    return area


def key_update(table: Table, before: dict[str, Any], after: dict[str, Any], order: str, len_prefix: int = 2) -> bytes:
    """A prefix of the length of the before columns, those, the after columns (4.5; of unified updates 4.6, whose prefix
    is not known to be of 2 or 4 bytes).
    """
    old = compressed(table, before, order)
    byte_order = "little" if order == "<" else "big"
    return len(old).to_bytes(len_prefix, byte_order) + old + compressed(table, after, order)


def len_area(column: Column, is_even: bool) -> int:
    """Bytes that a column takes in a full image (4.4). One is left over behind the value: sizes that dumps show."""
    if column.data_type in INTEGERS:
        length = 2 + INTEGERS[column.data_type][0]
    else:
        length = 2 + column.length + (2 if column.data_type == ASCII_V else 0)
    length += 1
    return length + length % 2 if is_even else length


def offsets(table: Table) -> list[int]:
    """The Fetch Offset of each column, then the Record length (6)."""
    places = [0]
    for column in table.columns:
        places.append(places[-1] + len_area(column, table.is_even))
    return places


def full(table: Table, image: dict[str, Any], order: str) -> bytes:
    """The full-image layout: each column at its Fetch Offset, in a buffer of the Record length (4.4).

    ASSUMED: the null indicator stands at the offset and the value behind it; what is left over is zero. Only the
    offsets and sizes are documented.
    """
    if image.keys() != {column.name for column in table.columns}:
        raise ValueError(f"a full image of {table.name} has all of its columns")
    places = offsets(table)
    buffer = bytearray(places[-1])
    for column, place in zip(table.columns, places):
        value = bytes_of(column, image[column.name], order)
        if len(value) > len_area(column, False) - 1:
            raise ValueError(f"{len(value)} bytes do not fit the place of {column.name}")
        buffer[place : place + len(value)] = value
    return bytes(buffer)


def is_alike(one: Table, other: Table) -> bool:
    """Are the definitions the same, whatever the tables' names?"""
    return one._replace(name="") == other._replace(name="")


def filler(text: str, length: int) -> bytes:
    """Bytes that stand for a body whose layout is not public (19), other ones for another text."""
    return hashlib.shake_256(text.encode("utf-8")).digest(length)


def _u16(value: int, order: str) -> bytes:
    return value.to_bytes(2, "little" if order == "<" else "big")
