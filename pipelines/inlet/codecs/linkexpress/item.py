"""Linkexpress items: how a column of an extract file becomes bytes. What no manual says, options.py settles.

Type            Bytes behind the null indicator                                      Becomes
CHARACTER(n)    n, blank padded                                                      string
VARCHAR(n)      2 length in bytes, data; NORMAL: always n bytes of area              string
NCHAR(n)        2n, pairs                                                            string
NVARCHAR(n)     2 length in characters, data; NORMAL: always 2n bytes of area        string
SMALLINT        2                                                                    integer
INTEGER         4                                                                    integer
NUMERIC(p,q)    p+1, one a sign character; or p, overpunched                         decimal, scale q
DECIMAL(p,q)    p div 2 + 1, packed                                                  decimal, scale q
REAL, FLOAT(1-23)     4, IEEE or base 16                                             float (base 16: double)
DOUBLE, FLOAT(24-52)  8, IEEE or base 16                                             double
DATE            4: year 2, month, day                                                date
TIME            3: hour, minute, second (7: and four zeros)                          string HH:MM:SS
TIMESTAMP       11: date, time, four zeros (7 or 8: fewer zeros)                     timestamp without a zone
BLOB(n)         8: four reserved, four length; data; NORMAL: always n bytes of area  binary
BYTEA(n)        as BLOB(n)                                                           binary
TEXT(n)         as BLOB(n)                                                           string
INTERVAL        option interval_bytes                                                binary

Facts     [documented] the types, LITTLE = actual lengths, blanks, packed signs
          ASSUMED: every width that only the Oracle appendix gives also holds for Symfoware; a NUMERIC's sign is a byte
          of its own (else fit finds p bytes); a null variable item has a length word of zero unless fit finds otherwise
          ASSUMED: base 16 floats come with the EBCDIC character sets and with no other
          ASSUMED: BYTEA and TEXT, of which only that they are variable is known, have the length area of BLOB. No
          source tells the bytes of an INTERVAL: a site says how many they are, and they are kept as they are
Source: docs/formats/linkexpress_group.md
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from inlet.codecs.linkexpress.options import Options
from inlet.errors import ConfigError
from inlet.fields import sql_type, variant
from inlet.fields.charset import UTF16
from inlet.fields.compiled import interpreter as plan
from inlet.table import Table


class Layouts(NamedTuple):
    """What the interpreter needs, for all tables of a source; a table without items has no rows."""

    plans: np.ndarray
    plan_starts: np.ndarray
    singles: np.ndarray
    doubles: np.ndarray
    sets: list[str]  # their names
    metadata: list[bytes]  # VARIANT dictionary of each table
    len_record: int  # of the longest record, without its header


def compile_layouts(tables: dict[str, Table], wanted: frozenset, options: Options, context: dict) -> Layouts:
    """Layouts of the wanted tables, by place in sorted(tables). Raises: ConfigError naming table, column and remedy."""
    columns = tuple(
        tuple((c.name, c.source_type, c.type, _need(c, tables[name])) for c in tables[name].columns)
        if name in wanted
        else ()
        for name in sorted(tables)
    )
    return _compile(
        tuple(sorted(tables)),
        columns,
        options.model_dump_json(include=set(Options.model_fields)),
        context["byte_order"] or "big",
        context.get("numeric_sign") or "separate",
    )


def len_items(plans: np.ndarray, has_null_areas: bool) -> int:
    """Bytes of the items of a record whose variable ones have their defined length. In: the rows of its table."""
    length, unit = plans[:, plan.WIDTH].sum(), plans[:, plan.UNIT]
    length += 2 * (plans[:, plan.ENCODING] == plan.VARTEXT).sum()
    has_area = (plans[:, plan.ENCODING] == plan.BLOB) | (plans[:, plan.ENCODING] == plan.LONGTEXT)
    length += ((unit >> 4) + (unit & 15))[has_area].sum()
    return int(length) + 2 * has_null_areas * len(plans)


def _need(column, table: Table) -> int:
    return plan.KEY if column.name in table.key else plan.OPTIONAL if column.nullable else plan.NOT_NULL


@lru_cache(maxsize=64)
def _compile(names, columns, options_json: str, byte_order: str, numeric_sign: str) -> Layouts:
    options = Options.model_validate_json(options_json)
    rows, starts, metadata = [], [0], []
    for name, columns_ in zip(names, columns):
        slots = {column: slot for slot, column in enumerate(variant.in_order(column for column, *_ in columns_))}
        for column, source_type, type_, need in columns_:
            rows.append(_row(name, column, source_type, slots[column], options, numeric_sign))
            rows[-1][plan.NEED] = need
            _check_type(f"{name}.{column}", source_type, type_)
        starts.append(len(rows))
        metadata.append(variant.metadata(list(slots)))
    of_char = options.char_set(byte_order)
    sets = [of_char, options.nchar_set(byte_order) or of_char]
    plans = np.array(rows, np.int64).reshape(-1, plan.NUM_PLAN)
    sizes = plans[:, plan.WIDTH] + 2 + 8  # null indicator, length area
    return Layouts(
        plans,
        np.array(starts, np.int64),
        np.stack([s.single for s in sets]),
        np.stack([s.double for s in sets]),
        [s.name for s in sets],
        metadata,
        max((int(sizes[a:b].sum()) for a, b in zip(starts, starts[1:])), default=0),
    )


def _row(table: str, column: str, type_: str | None, slot: int, options: Options, numeric_sign: str) -> list[int]:
    place = f"{table}.{column}"
    if not type_:
        raise ConfigError(
            f"{place}: a Linkexpress extract needs the column's source_type", f"Name one of {', '.join(ITEMS)}"
        )
    try:
        name, numbers = sql_type.parse(type_)
        if name not in ITEMS:
            raise ValueError(f"found {type_!r}")
        fields = ITEMS[name](numbers, options, numeric_sign)
    except (ValueError, IndexError) as error:
        why = "it needs its length" if isinstance(error, IndexError) else error
        raise ConfigError(
            f"{place}: source_type {type_!r} is not supported: {why}",
            f"Supported, with their lengths: {', '.join(ITEMS)}",
        ) from error
    row = [0] * plan.NUM_PLAN
    for field, value in {plan.SLOT: slot, **fields}.items():
        row[field] = value
    return row


def _check_type(place: str, source_type: str, type_: str) -> None:
    """Raises: ConfigError where a column's type cannot hold every value of its source_type."""
    name, numbers = sql_type.parse(source_type)
    whole, scale = (
        (numbers[0] - (numbers[1:] or [0])[0], (numbers[1:] or [0])[0])
        if name in ("NUMERIC", "DECIMAL")
        else (LEN_INTEGER[name], 0)
        if name in LEN_INTEGER
        else (NEVER, 0)
    )
    decimal = sql_type.parse(type_)[1] if type_.startswith("decimal") else None
    if (
        type_ == "string"
        or type_ in HOLDS.get(name, ())
        or (
            decimal
            and decimal[0] - decimal[1] >= whole
            and decimal[1] >= scale
            or not scale
            and whole <= DIGITS_OF.get(type_, 0)
        )
    ):
        return
    if name == "FLOAT" and type_ in (("float", "double") if (numbers or [52])[0] <= 23 else ("double",)):
        return
    fitting = (
        f"decimal({whole + scale},{scale})"
        if name in ("NUMERIC", "DECIMAL")
        else " or ".join(HOLDS.get(name, ("double",)))
    )
    raise ConfigError(f"{place}: type {type_} cannot hold every {source_type}", f"Make it {fitting}, or string")


def _character(numbers, options, _):
    (size,) = numbers or (1,)
    mode = options.char_set("big").mode
    if mode == UTF16 and size % 2:
        raise ValueError(f"utf_16 is in pairs of bytes, found {size}")
    return {
        plan.ENCODING: plan.TEXT,
        plan.WIDTH: size,
        plan.MODE: mode,
        plan.SET: 0,
        plan.STRIP: options.rtrim_char == "strip",
    }


def _varchar(numbers, options, _):
    return {**_character((numbers[0],), options, _), plan.ENCODING: plan.VARTEXT, plan.UNIT: 1, plan.STRIP: 0}


def _nchar(numbers, options, _):
    if not (set_ := options.nchar_set("big")):
        raise ValueError(f"charset {options.charset} has no pairs for it; set nchar_charset")
    (size,) = numbers or (1,)
    return {
        plan.ENCODING: plan.TEXT,
        plan.WIDTH: 2 * size,
        plan.MODE: set_.mode,
        plan.SET: 1,
        plan.STRIP: options.rtrim_char == "strip",
    }


def _nvarchar(numbers, options, _):
    unit = 2 if options.nvarchar_len_unit == "characters" else 1
    return {**_nchar((numbers[0],), options, _), plan.ENCODING: plan.VARTEXT, plan.UNIT: unit, plan.STRIP: 0}


def _digits(numbers) -> tuple[int, int]:
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if not (1 <= precision <= 38 and scale <= precision):
        raise ValueError(f"expected up to 38 digits and no more decimals than digits, found {precision},{scale}")
    return precision, scale


def _numeric(numbers, _, numeric_sign):
    precision, scale = _digits(numbers)
    return {
        plan.ENCODING: plan.ZONED,
        plan.WIDTH: precision + (numeric_sign == "separate"),
        plan.DIGITS: precision,
        plan.SCALE: scale,
    }


def _decimal(numbers, *_):
    precision, scale = _digits(numbers)
    return {plan.ENCODING: plan.PACKED, plan.WIDTH: precision // 2 + 1, plan.DIGITS: precision, plan.SCALE: scale}


def _floating(width: int, options):
    return {plan.ENCODING: plan.HEX_FLOAT if options.has_hex_floats else plan.IEEE, plan.WIDTH: width}


def _float(numbers, options, _):
    (bits,) = numbers or (52,)
    if not 1 <= bits <= 52:
        raise ValueError(f"expected 1 to 52 bits, found {bits}")
    return _floating(4 if bits <= 23 else 8, options)


def _blob(numbers, options, _):
    reserved_length = {"res4len4": 0x44, "len8": 0x08, "len4": 0x04}[options.blob_header]
    return {plan.ENCODING: plan.BLOB, plan.WIDTH: numbers[0], plan.UNIT: reserved_length}


def _long_text(numbers, options, _):
    return {
        **_character((numbers[0],), options, _),
        **_blob(numbers, options, _),
        plan.ENCODING: plan.LONGTEXT,
        plan.STRIP: 0,
    }


def _interval(_, options, __):
    if not options.interval_bytes:
        raise ValueError("no source tells its bytes; option interval_bytes says how many they are")
    return {plan.ENCODING: plan.BYTES, plan.WIDTH: options.interval_bytes}


HOLDS = {  # types of a contract's column that hold every value of a source_type, besides string and wide decimals
    "SMALLINT": ("smallint", "int", "bigint", "float", "double"),
    "INTEGER": ("int", "bigint", "double"),
    "REAL": ("float", "double"),
    "DOUBLE": ("double",),
    "DATE": ("date",),
    "TIME": ("string",),
    "TIMESTAMP": ("timestamp_ntz", "timestamp"),
    **dict.fromkeys(("BLOB", "BYTEA", "INTERVAL"), ("binary",)),
    **dict.fromkeys(("CHARACTER", "VARCHAR", "NCHAR", "NVARCHAR", "TEXT"), ("string",)),
}
NEVER = 1 << 30  # more digits than any type has
LEN_INTEGER = {"SMALLINT": 5, "INTEGER": 10}  # digits
DIGITS_OF = {"tinyint": 2, "smallint": 4, "int": 9, "bigint": 18}  # digits that every number of so many fits in
ITEMS: dict[str, Callable[..., dict]] = {  # every type there is
    "CHARACTER": _character,
    "VARCHAR": _varchar,
    "NCHAR": _nchar,
    "NVARCHAR": _nvarchar,
    "SMALLINT": lambda *_: {plan.ENCODING: plan.INTEGER, plan.WIDTH: 2},
    "INTEGER": lambda *_: {plan.ENCODING: plan.INTEGER, plan.WIDTH: 4},
    "NUMERIC": _numeric,
    "DECIMAL": _decimal,
    "REAL": lambda numbers, options, _: _floating(4, options),
    "FLOAT": _float,
    "DOUBLE": lambda numbers, options, _: _floating(8, options),
    "DATE": lambda *_: {plan.ENCODING: plan.DATE, plan.WIDTH: 4},
    "TIME": lambda _, options, __: {plan.ENCODING: plan.TIME, plan.WIDTH: options.time_bytes},
    "TIMESTAMP": lambda _, options, __: {plan.ENCODING: plan.TIMESTAMP, plan.WIDTH: options.timestamp_bytes},
    "BLOB": _blob,
    "BYTEA": _blob,
    "TEXT": _long_text,
    "INTERVAL": _interval,
}
