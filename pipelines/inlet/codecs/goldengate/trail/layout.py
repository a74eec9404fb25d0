"""Contracts as integer plans: what `columns` needs to know of each column of each version of each table."""

from typing import NamedTuple

import numpy as np

from inlet.codecs.goldengate import source_type as vendor
from inlet.codecs.goldengate.options import TextOptions
from inlet.codecs.goldengate.trail import full_image, plan
from inlet.errors import ConfigError
from inlet.fields import variant
from inlet.fields.charset import Charset, charset
from inlet.fields.compiled import interpreter
from inlet.table import Table
from inlet.table_column import DECIMAL, TableColumn

LEN_INTEGER = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
TARGETS = {"string": plan.TO_TEXT, "binary": plan.TO_BINARY, "date": plan.TO_DATE, "timestamp": plan.TO_TIMESTAMP}
TARGETS |= {"timestamp_ntz": plan.TO_TIMESTAMP, "float": plan.TO_FLOAT, "double": plan.TO_FLOAT}
ENCODINGS = {
    "ASCII_V": plan.VARTEXT,
    "ASCII_F": plan.FIXTEXT,
    "FLOAT": plan.NUMBER,
    "FIXED_PREC": plan.NUMBER,
    "DATETIME": plan.DATETIME,
}


class Layouts(NamedTuple):
    """Plans of all versions of all tables of a source, in the order of `names`."""

    names: list[str]  # TABLE@version, sorted
    tables: list[Table]
    plans: np.ndarray
    plan_starts: np.ndarray
    singles: np.ndarray
    doubles: np.ndarray
    metadata: list[bytes]  # VARIANT dictionary of each
    keys: np.ndarray  # masks of the columns of each key
    lob_columns: list[list[str]]
    record_lengths: np.ndarray  # bytes of the columns of a full image of each, 0 where none can be read
    no_full_image: dict[int, full_image.Why]  # why not
    of: dict[tuple[str, int], int]  # (table, version) -> its place


def versions_of(tables: dict[str, Table]) -> dict[str, Table]:
    """Every version of every contract, by a name of its own."""
    contracts = {table.table: table for table in tables.values()}
    return {f"{name}@{v.version:06d}": v for name, table in contracts.items() for v in table.versions}


def compile_layouts(tables: dict[str, Table], used: frozenset[str], options: TextOptions) -> Layouts:
    """Plans of the used ones of these contracts; the others have no columns. Raises: ConfigError that names table,
    column and remedy."""
    contracts = {table.table: table for table in tables.values()}
    key = (tuple(map(id, contracts.values())), used, options.charset)
    if key not in _COMPILED:
        if len(_COMPILED) >= MAX_COMPILED:
            _COMPILED.clear()
        _COMPILED[key] = list(contracts.values()), _compile(versions_of(contracts), used, options.charset)
    return _COMPILED[key][1]


MAX_COMPILED = 64
_COMPILED: dict[tuple, tuple[list[Table], Layouts]] = {}  # with the contracts, so that no other one gets their ids


def _compile(versions: dict[str, Table], used: frozenset[str], default_charset: str) -> Layouts:
    names = sorted(versions)
    tables = [versions[name] for name in names]
    sets: dict[str, int] = {}
    rows, starts, metadata, of = [], [0], [], {}
    record_lengths, no_full_image = np.zeros(len(tables), np.int64), {}
    most = max((len(table.columns) for table in tables), default=0)
    keys = np.zeros((len(tables), max((most + 7) // 8, 1)), np.uint8)
    for t, table in enumerate(tables):
        of[table.table, table.version] = t
        if table.table not in used:
            starts.append(len(rows))
            metadata.append(b"")
            continue
        slots = {name: slot for slot, name in enumerate(variant.in_order(table.column_names))}
        for c, column in enumerate(table.columns):
            rows.append(_row(table, column, slots[column.name], sets, default_charset))
            if column.name in table.key:
                keys[t, c >> 3] |= 1 << (c & 7)
        starts.append(len(rows))
        metadata.append(variant.metadata(list(slots)))
        length = full_image.record_length(table)
        if isinstance(length, int):
            record_lengths[t] = length
        else:
            no_full_image[t] = length
    charsets = [_charset(name, "options.charset") for name in sets or [default_charset]]
    return Layouts(
        names,
        tables,
        np.array(rows, np.int64).reshape(-1, plan.NUM_PLAN),
        np.array(starts, np.int64),
        np.stack([one.single for one in charsets]),
        np.stack([one.double for one in charsets]),
        metadata,
        keys,
        [lobs_of(table) for table in tables],
        record_lengths,
        no_full_image,
        of,
    )


def lobs_of(table: Table) -> list[str]:
    """The columns of a version of a contract whose values may come in chunks."""
    return [column.name for column in table.columns if column.vendor_type.endswith(" LOB")]


def _charset(name: str, place: str) -> Charset:
    try:
        return charset(name.lower())
    except KeyError:
        raise ConfigError(
            f"{place}: the character set {name} is not known", "docs/formats/goldengate_types.md has those that are"
        ) from None


def _row(table: Table, column: TableColumn, slot: int, sets: dict[str, int], default_charset: str) -> list[int]:
    place = f"{table.table}.{column.name}"
    if not column.source_type:
        raise ConfigError(
            f"{place}: a trail needs the column's source_type", "`inlet import` takes it from a Defgen file"
        )
    try:
        type_ = vendor.parse(column.source_type)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}", "docs/formats/goldengate_types.md has the types") from None
    if not vendor.holds(type_, column.type):
        raise ConfigError(
            f"{place}: type {column.type} cannot hold every {column.source_type}",
            f"Make it {vendor.spark_type(type_)}, or string",
        )
    row = [0] * plan.NUM_PLAN
    integer = type_.integer
    row[plan.ENCODING] = (
        plan.RAW
        if type_.is_raw
        else (plan.SIGNED if integer.is_signed else plan.UNSIGNED)
        if integer
        else ENCODINGS[type_.name]
    )
    row[plan.SOURCE_SCALE] = type_.scale
    row[plan.PLACE] = type_.place[0] if type_.place else 0
    row[interpreter.WIDTH] = integer.num_bytes if integer else type_.length or 0
    row[interpreter.SLOT] = slot
    row[interpreter.NEED] = (
        interpreter.KEY
        if column.name in table.key
        else interpreter.OPTIONAL
        if column.nullable
        else interpreter.NOT_NULL
    )
    row[plan.TARGET], row[plan.DIGITS], row[plan.SCALE] = _target(column.type)
    if row[plan.ENCODING] in (plan.VARTEXT, plan.FIXTEXT, plan.NUMBER) and row[plan.TARGET] == plan.TO_TEXT:
        name = (column.charset or default_charset) if row[plan.ENCODING] != plan.NUMBER else "ascii"
        row[interpreter.SET] = sets.setdefault(name, len(sets))
        row[interpreter.MODE] = _charset(name, place).mode
    return row


def _target(type_: str) -> tuple[int, int, int]:
    """What a contract's type makes of a value: target, digits (of an integer: bytes), scale."""
    if type_ in LEN_INTEGER:
        return plan.TO_INTEGER, LEN_INTEGER[type_], 0
    if decimal := DECIMAL.fullmatch(type_):
        return plan.TO_DECIMAL, int(decimal[1]), int(decimal[2])
    return TARGETS[type_], 0, 0
