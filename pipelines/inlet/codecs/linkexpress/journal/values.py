"""Items of usage journals: how a column of the contract becomes bytes.

Type             Code  Bytes                                                    Becomes
CHARACTER(n)     01    n, blank padded                                          string
VARCHAR(n)       02    2 length in bytes, n of area                             string
NCHAR(n)         03    2n, pairs                                                string
NVARCHAR(n)      04    2 length in characters, 2n of area                       string
SMALLINT         11    2                                                        integer
INTEGER          12    4                                                        integer
NUMERIC(p,q)     13    p+1, one a sign character; or p, overpunched             decimal, scale q
DECIMAL(p,q)     14    p div 2 + 1, packed                                      decimal, scale q
REAL             15    4, IEEE or base 16                                       float
DOUBLE           16    8, IEEE or base 16                                       double
BINARY(n)        22    n                                                        binary
DATE             23    10: YYYY-MM-DD                                           date
TIME             23    8: hh:mm:ss                                              string hh:mm:ss
TIMESTAMP        23    19: YYYY-MM-DD hh:mm:ss                                  timestamp without a zone
INTERVAL ...(n)  23    n+1 for one field, n+4, n+7 or n+10 for two to four      string, as it stands

Days and times are text in the character set; - / . stand between the parts of a day, : or . between those of a time,
any one character between both [inferred]. In a string column every value is its text, days and times in ISO form.
Source: docs/formats/linkexpress_journal.md.
"""

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from inlet.codecs.linkexpress.item import _check_type
from inlet.codecs.linkexpress.journal.options import Options
from inlet.errors import ConfigError
from inlet.fields import charset, number, sql_type
from inlet.fields.wrong import Wrong
from inlet.table import Table
from inlet.table_column import TableColumn

INTERVAL = re.compile(r"INTERVAL ([A-Z]+) ?\(([1-9])\)(?: TO ([A-Z]+))?")
LEN_INTERVAL: dict[tuple[str, str | None], int] = {  # bytes beside those of the leading field's n digits
    ("YEAR", "MONTH"): 4,
    ("DAY", "HOUR"): 4,
    ("DAY", "MINUTE"): 7,
    ("DAY", "SECOND"): 10,
    ("HOUR", "MINUTE"): 4,
    ("HOUR", "SECOND"): 7,
    ("MINUTE", "SECOND"): 4,
    **{(field, None): 1 for field in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")},
}
CODES = {
    "CHARACTER": 0x01,
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
TEXTS = (0x01, 0x02, 0x03, 0x04)  # codes of what is converted to another character set, and may be lost by it
LEN_FIXED = {"SMALLINT": 2, "INTEGER": 4, "REAL": 4, "DOUBLE": 8, "DATE": 10, "TIME": 8, "TIMESTAMP": 19}
DAY, CLOCK = r"([0-9]{4})[-/.]([0-9]{2})[-/.]([0-9]{2})", r"([0-9]{2})[:.]([0-9]{2})[:.]([0-9]{2})"
DATE, TIME, TIMESTAMP = re.compile(DAY), re.compile(CLOCK), re.compile(f"{DAY}.{CLOCK}")


class Item(NamedTuple):
    """A column as the journals have it."""

    column: TableColumn
    kind: str  # of CODES
    code: int
    precision: int  # digits of a number, else its length as its type tells it
    scale: int
    is_key: bool


@lru_cache(maxsize=256)
def _sizes_of(place: str, source_type: str | None, type_: str, chars: str, has_pairs: bool) -> tuple[str, int, int]:
    """Kind, precision and scale of a column. In: the name of the character set, and whether it has pairs. Raises:
    ConfigError naming table, column and remedy.
    """
    remedy = f"Supported, with their lengths: {', '.join(CODES)}"
    if not source_type:
        raise ConfigError(f"{place}: a usage journal needs the column's source_type", remedy)
    if interval := INTERVAL.fullmatch(" ".join(source_type.upper().split())):
        more = LEN_INTERVAL.get((interval[1], interval[3]))
        if more is None:
            raise ConfigError(f"{place}: source_type {source_type!r} is no interval of the manual", remedy)
        if type_ != "string":
            raise ConfigError(f"{place}: type {type_} cannot hold every {source_type}", "Make it string")
        return "INTERVAL", int(interval[2]) + more, 0
    try:
        kind, numbers = sql_type.parse(source_type)
        if kind in ("NCHAR", "NVARCHAR") and not has_pairs:
            raise ValueError(f"charset {chars} has no pairs for it; set nchar_charset")
        precision, scale = _sizes(kind, numbers)
    except (ValueError, IndexError) as error:
        raise ConfigError(f"{place}: source_type {source_type!r} is not supported: {error}", remedy) from error
    if kind == "BINARY":
        if type_ != "binary":
            raise ConfigError(f"{place}: type {type_} cannot hold every {source_type}", "Make it binary")
    else:
        _check_type(place, source_type, type_)
    return kind, precision, scale


def _sizes(kind: str, numbers: tuple) -> tuple[int, int]:
    """Precision and scale of a type. Raises: ValueError, IndexError."""
    if kind not in CODES:
        raise ValueError("it is none of the types there are")
    if kind in LEN_FIXED:
        if numbers:
            raise ValueError("expected no numbers behind it")
        return LEN_FIXED[kind], 0
    if kind in ("NUMERIC", "DECIMAL"):
        precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not (1 <= precision <= 38 and scale <= precision):
            raise ValueError(f"expected up to 38 digits and no more decimals than digits, found {precision},{scale}")
        return precision, scale
    return (numbers or (1,))[0] if kind in ("CHARACTER", "NCHAR") else numbers[0], 0


def items_of(table: Table, options: Options) -> list[Item]:
    """The columns of a table as items. Raises: ConfigError."""
    has_pairs, items = bool(options.nchar_set("big")), []
    for column in table.columns:
        place = f"{table.table}.{column.name}"
        kind, precision, scale = _sizes_of(place, column.source_type, column.type, options.charset, has_pairs)
        items.append(Item(column, kind, CODES[kind], precision, scale, column.name in table.key))
    return items


def width_of(item: Item, numeric_sign: str) -> int:
    """Bytes of an item's data in a journal that is not tagged."""
    n = item.precision
    return {
        "VARCHAR": n + 2,
        "NCHAR": 2 * n,
        "NVARCHAR": 2 * n + 2,
        "NUMERIC": n + (numeric_sign == "separate"),
        "DECIMAL": n // 2 + 1,
    }.get(item.kind, n)


def value_of(data: bytes, item: Item, byte_order: Any, options: Options) -> Any:
    """The value as an image holds it. Raises: Wrong."""
    value = READ[item.kind](data, item, byte_order, options)
    if item.column.type != "string" or isinstance(value, str):
        return value
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _char(data, item, byte_order, options):
    return _stripped(charset.text(data, options.char_set(byte_order)), options)


def _nchar(data, item, byte_order, options):
    return _stripped(charset.text(data, options.nchar_set(byte_order)), options)


def _stripped(text: str, options: Options) -> str:
    return text.rstrip(" \u3000") if options.rtrim_char == "strip" else text


def _area(data: bytes, byte_order, unit: int) -> bytes:
    """The bytes that a length word in front of an area counts. Raises: Wrong."""
    length = int.from_bytes(data[:2], byte_order) * unit
    if length > len(data) - 2:
        raise Wrong("bad_value_length", 0, f"at most {len(data) - 2} bytes", f"{length} bytes")
    return data[2 : 2 + length]


def _moved(by: int, read: Callable[[], Any]) -> Any:
    """What is read; the fault of what begins some bytes behind an item's first."""
    try:
        return read()
    except Wrong as wrong:
        raise Wrong(wrong.kind, wrong.offset + by, wrong.expected, wrong.found) from None


def _varchar(data, item, byte_order, options):
    area = _area(data, byte_order, 1)
    return _moved(2, lambda: charset.text(area, options.char_set(byte_order)))


def _nvarchar(data, item, byte_order, options):
    area = _area(data, byte_order, 2 if options.nvarchar_len_unit == "characters" else 1)
    return _moved(2, lambda: charset.text(area, options.nchar_set(byte_order)))


def _floating(data, item, byte_order, options):
    return number.hex_float(data) if options.has_hex_floats else number.ieee(data, byte_order)


def _moment(data: bytes, pattern: re.Pattern, byte_order, options: Options) -> tuple[str, tuple[int, ...]]:
    """A day or time in text, and its parts. Raises: Wrong."""
    text = charset.text(data, options.moment_set(byte_order))
    match = pattern.fullmatch(text)
    if not match:
        raise Wrong("bad_date", 0, "a day YYYY-MM-DD, a time hh:mm:ss, or both", repr(text))
    return text, tuple(map(int, match.groups()))


def _made(make: Callable, parts: tuple[int, ...], text: str):
    try:
        return make(*parts)
    except ValueError:
        raise Wrong("bad_date", 0, "a day of the calendar and a time up to 23:59:59", repr(text)) from None


def _date(data, item, byte_order, options):
    text, parts = _moment(data, DATE, byte_order, options)
    return _made(datetime.date, parts, text)


def _time(data, item, byte_order, options):
    text, parts = _moment(data, TIME, byte_order, options)
    return _made(datetime.time, parts, text).isoformat()


def _timestamp(data, item, byte_order, options):
    text, parts = _moment(data, TIMESTAMP, byte_order, options)
    return _made(datetime.datetime, parts, text)


READ: dict[str, Callable[[bytes, Item, Any, Options], Any]] = {
    "CHARACTER": _char,
    "VARCHAR": _varchar,
    "NCHAR": _nchar,
    "NVARCHAR": _nvarchar,
    "SMALLINT": lambda data, item, byte_order, options: number.integer(data, byte_order),
    "INTEGER": lambda data, item, byte_order, options: number.integer(data, byte_order),
    "NUMERIC": lambda data, item, byte_order, options: number.zoned(data, item.precision, item.scale),
    "DECIMAL": lambda data, item, byte_order, options: number.packed(data, item.precision, item.scale),
    "REAL": _floating,
    "DOUBLE": _floating,
    "BINARY": lambda data, item, byte_order, options: data,
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "INTERVAL": lambda data, item, byte_order, options: charset.text(data, options.moment_set(byte_order)),
}
