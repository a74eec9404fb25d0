"""Columns of journals as data for the compiled walks: rules of tags, and a plan for the columns of each table.

A plan's row is one of fields/compiled/interpreter.py, with the code of the column's tag behind it. Days and times in
text have encodings of their own: UNIT says whether the contract wants their text.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from inlet.codecs.linkexpress.item import _need
from inlet.codecs.linkexpress.journal import walk
from inlet.codecs.linkexpress.journal.items import (
    CHECKPOINT,
    LEN_CHECKPOINT,
    LEN_SYSTEM,
    LEN_VALIDITY,
    OPEN,
    SYSTEM_CODES,
)
from inlet.codecs.linkexpress.journal.options import Options
from inlet.codecs.linkexpress.journal.values import Item, items_of, width_of
from inlet.fields import variant
from inlet.fields.compiled import interpreter as plan
from inlet.table import Table

CODE = plan.NUM_PLAN
NUM_PLAN = plan.NUM_PLAN + 1
DAY, CLOCK, MOMENT, REAL = range(plan.BYTES + 1, plan.BYTES + 5)  # encodings beside those of the interpreter
ORDERS = ("big", "little")
OF_CHARACTERS, OF_PAIRS, OF_MOMENTS = range(3)  # sets of a byte order
NUM_SETS = 3
TIMES = 0x23  # code of days, times and intervals
NO_DIGITS = 256  # a set of one-byte characters that has none: text of which no byte is one


class Plan(NamedTuple):
    """The columns of a table, for both byte orders: plans[little]."""

    plans: np.ndarray
    len_items: int  # bytes of their items in a journal that is not tagged
    metadata: bytes  # VARIANT dictionary
    is_plain: bool  # a column is read by the plain reader alone


class Layouts(NamedTuple):
    """The columns of some tables. Plans of little-endian journals stand behind those of all tables in big-endian."""

    names: tuple[str, ...]
    plans: np.ndarray
    widths: np.ndarray  # of the data of each column in a journal that is not tagged, by its row
    bounds: np.ndarray  # of each table: its first row and the one behind its last
    lengths: np.ndarray  # bytes of a table's items where they are not tagged
    num_all: int  # columns of a journal that holds those of every table, 0 where it holds those of its own
    len_all: int  # and the bytes of their items
    metadata: list[bytes]
    is_plain: np.ndarray


class Sets(NamedTuple):
    """Character sets: of CHARACTER, NCHAR, and days and times in big-endian; then of these in little-endian."""

    singles: np.ndarray
    doubles: np.ndarray
    digits: np.ndarray  # [little, byte] -> the digit that it is in a system item, -1 for none


def rules_of(reading: dict) -> np.ndarray:
    """How the width of each code comes of its information."""
    nchar = 1 if reading.get("nchar_length") == "bytes" else 2
    len_length = 2 if reading.get("varying_length") == "data" else 0
    rules = np.zeros((256, 3), np.int64)
    for code, times, plus in (
        (0x01, 1, 0),
        (0x02, 1, len_length),
        (0x03, nchar, 0),
        (0x04, nchar, len_length),
        (0x11, 0, 2),
        (0x12, 0, 4),
        (0x15, 0, 4),
        (0x16, 0, 8),
        (0x22, 1, 0),
        (0x23, 1, 0),
        (CHECKPOINT, 0, LEN_CHECKPOINT),
    ):
        rules[code] = walk.OF_LENGTH, times, plus
    rules[0x13] = walk.OF_DIGITS, 0, reading["numeric_sign"] == "separate"
    rules[0x14] = walk.OF_PACKED, 0, 0
    for code, name in SYSTEM_CODES.items():
        rules[code] = walk.OF_SYSTEM, 0, LEN_SYSTEM.get(name, 0)
    return rules


def how_of(reading: dict) -> np.ndarray:
    """How journals are written, as the walks take it."""
    how = np.zeros(walk.NUM_HOW, np.int64)
    how[walk.IS_TAGGED] = reading["tagged"] == "yes"
    how[walk.IS_COMPRESSED] = reading["compressed"] == "yes"
    how[walk.SYSTEM_FIRST] = reading.get("sysitems_position") == "first"
    how[walk.HAS_CHECKPOINT] = reading.get("has_checkpoint") == "yes"
    orders = {"native": walk.LITTLE_ORDER, OPEN: walk.OPEN_ORDER}
    how[walk.VALIDITY_ORDER] = orders.get(reading.get("validity_order", ""), walk.BYTES_ORDER)
    return how


def system_of(reading: dict, options: Options) -> tuple[np.ndarray, int]:
    """The system items of journals that are not tagged, as (item, width), and the bytes that they take."""
    names = list(SYSTEM_CODES.values())
    items = [(names.index(n), LEN_SYSTEM.get(n) or int(reading.get("name_width", 38))) for n in options.sysitems]
    return np.array(items, np.int64).reshape(-1, 2), sum(LEN_VALIDITY + width for _, width in items)


@lru_cache(maxsize=8)
def sets_of(options_json: str) -> Sets:
    """The character sets of a source."""
    options = Options.model_validate_json(options_json)
    sets = [
        chars
        for order in ORDERS
        for chars in (
            options.char_set(order),
            options.nchar_set(order) or options.char_set(order),
            options.moment_set(order),
        )
    ]
    digits = np.full((2, 256), -1, np.int64)
    for little in (0, 1):
        single = sets[NUM_SETS * little + OF_MOMENTS].single
        is_digit = (single >= 0x30) & (single <= 0x39)
        digits[little, is_digit] = single[is_digit] - 0x30
    return Sets(np.stack([s.single for s in sets]), np.stack([s.double for s in sets]), digits)


def layouts_of(
    names: tuple[str, ...], tables: dict[str, Table], has_all: bool, options: Options, numeric_sign: str
) -> Layouts:
    """The columns of these tables, in this order. In: do journals hold the columns of all of them. Raises:
    ConfigError.
    """
    found = [_plan_of(tables[name], options, numeric_sign) for name in names]
    ends = np.cumsum([0, *(len(one.plans[0]) for one in found)])
    bounds = np.stack([ends[:-1], ends[1:]], axis=1)
    lengths = np.array([one.len_items for one in found], np.int64)
    rows = [one.plans[little] for little in (0, 1) for one in found]
    plans = np.concatenate(rows) if rows else np.zeros((0, NUM_PLAN), np.int64)
    is_plain = np.array([one.is_plain for one in found], bool)
    all_ = (int(ends[-1]), int(lengths.sum())) if has_all else (0, 0)
    widths = np.ascontiguousarray(plans[: len(plans) // 2, plan.WIDTH])
    return Layouts(names, plans, widths, bounds, lengths, *all_, [one.metadata for one in found], is_plain)


def _plan_of(table: Table, options: Options, numeric_sign: str) -> Plan:
    """Raises: ConfigError."""
    items = items_of(table, options)
    slots = {name: slot for slot, name in enumerate(variant.in_order(table.column_names))}
    rows = [_row(item, table, slots, options, numeric_sign) for item in items]
    big = np.array(rows, np.int64).reshape(-1, NUM_PLAN)
    little = big.copy()
    little[:, plan.SET] += NUM_SETS
    return Plan(
        np.stack([big, little]),
        sum(LEN_VALIDITY + width_of(item, numeric_sign) for item in items),
        variant.metadata(list(slots)),
        any(item.column.type == "string" and item.kind not in TEXTS for item in items),
    )


TEXTS = ("CHARACTER", "VARCHAR", "NCHAR", "NVARCHAR", "INTERVAL", "DATE", "TIME", "TIMESTAMP")  # that may be strings


def _row(item: Item, table: Table, slots: dict[str, int], options: Options, numeric_sign: str) -> list[int]:
    row = [0] * NUM_PLAN
    fields = {
        plan.WIDTH: width_of(item, numeric_sign),
        plan.SLOT: slots[item.column.name],
        plan.NEED: _need(item.column, table),
        CODE: item.code,
        **ENCODED[item.kind](item, options),
    }
    for field, value in fields.items():
        row[field] = value
    return row


def _text(item: Item, options: Options, encoding: int = plan.TEXT) -> dict:
    which = OF_PAIRS if item.kind in ("NCHAR", "NVARCHAR") else OF_MOMENTS if item.code == TIMES else OF_CHARACTERS
    chars = (options.char_set, options.nchar_set, options.moment_set)[which]("big")
    has_blanks = item.kind in ("CHARACTER", "NCHAR") and options.rtrim_char == "strip"
    return {plan.ENCODING: encoding, plan.MODE: chars.mode, plan.SET: which, plan.STRIP: int(has_blanks)}


def _moment(encoding: int):
    return lambda item, options: _text(item, options, encoding) | {plan.UNIT: int(item.column.type == "string")}


def _number(encoding: int):
    return lambda item, options: {plan.ENCODING: encoding, plan.DIGITS: item.precision, plan.SCALE: item.scale}


def _nvarchar(item: Item, options: Options) -> dict:
    unit = 2 if options.nvarchar_len_unit == "characters" else 1
    return _text(item, options, plan.VARTEXT) | {plan.UNIT: unit}


def _floating(item: Item, options: Options) -> dict:
    ieee = REAL if item.kind == "REAL" else plan.IEEE
    return {plan.ENCODING: plan.HEX_FLOAT if options.has_hex_floats else ieee}


ENCODED = {  # by kind
    "CHARACTER": _text,
    "VARCHAR": lambda item, options: _text(item, options, plan.VARTEXT) | {plan.UNIT: 1},
    "NCHAR": _text,
    "NVARCHAR": _nvarchar,
    "SMALLINT": _number(plan.INTEGER),
    "INTEGER": _number(plan.INTEGER),
    "NUMERIC": _number(plan.ZONED),
    "DECIMAL": _number(plan.PACKED),
    "REAL": _floating,
    "DOUBLE": _floating,
    "BINARY": lambda item, options: {plan.ENCODING: plan.BYTES},
    "DATE": _moment(DAY),
    "TIME": _moment(CLOCK),
    "TIMESTAMP": _moment(MOMENT),
    "INTERVAL": _text,
}
