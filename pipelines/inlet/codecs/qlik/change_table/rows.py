"""Parquet files, whose rows are the records: their values as those of text and JSON are."""

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs.qlik import types
from inlet.codecs.qlik.change_table import arrow, block, file_name, header, images, opening, pairs, sidecars
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.parquet_cells import cells_of_rows
from inlet.codecs.qlik.change_table.row import Row, Unit, Values
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Decoded, Part
from inlet.errors import Reject
from inlet.fields.json_exact import Number
from inlet.source import Source
from inlet.table import Table

UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}  # digits of a second's fraction
EPOCH = datetime.datetime(1970, 1, 1)


def open_rows(
    path: str,
    schema: pa.Schema,
    values: Callable[[str], Iterable[pa.Array]],
    companions: dict[str, dict],
    source: Source,
    tables: dict[str, Table],
) -> dict | Reject:
    """The context of a file's units."""
    options, contract = source.options_as(Options), None
    context = file_name.by_name(path, options)
    if isinstance(context, Refused):
        return opening.rejected(context, b"")
    try:
        told = sidecars.of_file(context["name"], companions, options)
        context, contract = opening.with_sidecar(context, told, companions, source, tables, options)
        columns = header.columns_of(schema.names, options)
        context |= {"format": "rows", "columns": schema.names}
        if told and told.is_own:
            opening.check_columns(schema.names, [column.name for column in told.sidecar.columns])
            for place in columns.data:
                column, type_ = told.sidecar.columns[place], schema.types[place]
                if not types.is_stored_as(column, type_):
                    raise Refused("contradiction", (), f"{column.name} as {column.type}, by its .dfm", str(type_))
        if context["kind"] != "changes":
            if context["kind"] == "load" and (columns.known or columns.others):
                found = ", ".join((*columns.known, *columns.others))
                raise Refused("contradiction", (), "no header column in a file of a full load", found)
            return context
        header.check(columns, options)
        return context | {"masks": _masks(schema, values, columns, options)}
    except Refused as no:
        return opening.rejected(no, b"", contract)


def decode_rows(rows: pa.Table, context: dict, source: Source, tables: dict[str, Table]) -> Decoded:
    """Read a run of rows."""
    columns, unit = unit_of(rows, context, source, tables)
    fast = _certain(rows, columns, unit)
    left = range(rows.num_rows) if fast is None else np.flatnonzero(~fast.is_certain).tolist()
    num_control = fast.num_befores if fast else 0
    changes: list[dict] = []
    rejects: list[Reject] = []
    parts: list[Part] = []
    controls = block.of_sidecar(context) if context["first_row"] == 0 else []
    for row, values, raw in plain_rows(rows.take(pa.array(left, pa.int64())) if fast else rows, left, columns, unit):
        found, events = row.read(values, raw)
        controls += events
        if found is None:
            num_control += 1
            continue
        {dict: changes, Reject: rejects, Part: parts}[type(found)].append(found)  # type: ignore[attr-defined]
    every = arrow.with_certain(fast, changes)
    definitions = block.definitions(context, every, parts, rejects) if context["first_row"] == 0 else []
    return Decoded(every, rejects, controls, num_control, num_control, definitions, parts)


def unit_of(rows: pa.Table, context: dict, source: Source, tables: dict[str, Table]) -> tuple[Columns, Unit]:
    """The columns of a run of rows, and what is the same for all of them."""
    columns = header.columns_of(rows.schema.names, source.options_as(Options))
    return columns, Unit(context, source, tables)


def plain_rows(
    rows: pa.Table, places: Sequence[int], columns: Columns, unit: Unit
) -> Iterator[tuple[Row, Values, str]]:
    """Rows with their values, and what a part of each would keep. In: their places in the unit."""
    by_column = [_values(column) for column in rows.columns]
    for k, n in enumerate(places):
        values = [column[k] for column in by_column]
        shown = [value.found if isinstance(value, Refused) else value for value in values]
        raw = pairs.noted(shown)
        yield Row(unit, n, 1, raw.encode(), unit.context["first_row"] + n), Values(values, columns), raw


def _certain(rows: pa.Table, columns: Columns, unit: Unit) -> arrow.Walked | None:
    """What the compiled walk is certain of."""
    if not rows.num_rows or unit.context["kind"] == "control":
        return None
    if unit.context["kind"] == "load":
        ends = [f"{unit.context['place']}{unit.context['first_row']:08d}"]
    else:
        seqs = rows.column(columns.known["change_seq"])
        is_text = pa.types.is_string(seqs.type) or pa.types.is_large_string(seqs.type)
        ends = list(pc.min_max(seqs).as_py().values()) if is_text else []
    contracts = {unit.table.at(one).version: unit.table.at(one) for one in ends if one}
    cells = cells_of_rows(rows, columns, next(iter(contracts.values()))) if len(contracts) == 1 else None
    return cells and arrow.walked(cells, columns, unit, unit.context["first_row"])


def _masks(
    schema: pa.Schema, values: Callable[[str], Iterable[pa.Array]], columns: Columns, options: Options
) -> list[list[str]]:
    """The readings that fit the masks of a file's first rows."""
    place = columns.known.get("change_mask")
    if place is None:
        return []
    type_ = schema.types[place]
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    is_binary = any(
        test(type_) for test in (pa.types.is_binary, pa.types.is_fixed_size_binary, pa.types.is_large_binary)
    )
    masks = ((mask, columns) for mask in _first(values(schema.names[place])))
    return [list(one) for one in images.settled(masks, images.readings(options, is_binary))]


def _first(pieces: Iterable[pa.Array]) -> Iterator:
    """The first values of a column that are not null."""
    size = 0
    for piece in pieces:
        for value in _values(pa.chunked_array([piece.drop_null()])):
            if value:
                yield value
            size += len(value) if isinstance(value, (str, bytes)) else 1
            if size > opening.LEN_FITTED:
                return


def _values(column: pa.ChunkedArray) -> list:
    """The values of a column: text, Number, bool, bytes or None; what no text shows exactly is Refused."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        digits = UNITS[type_.unit]
        return [None if v is None else _time(v, digits) for v in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_time(type_):
        digits, whole = UNITS[type_.unit], pa.int32() if pa.types.is_time32(type_) else pa.int64()
        return [None if v is None else _clock(v, digits) for v in column.cast(whole).to_pylist()]
    if pa.types.is_date32(type_):
        return [None if v is None else _day(v) for v in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return [None if v is None else _utf8(v) for v in column.cast(pa.large_binary()).to_pylist()]
    return [_read(scalar) for scalar in column]


def _read(scalar: pa.Scalar):
    try:
        return _plain(scalar.as_py())
    except (OverflowError, ValueError, pa.ArrowException):
        return Refused("value_does_not_fit", (), f"a value of {scalar.type} that can be shown", "another one")


def _utf8(data: bytes) -> str | Refused:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        found = f"0x{data[error.start : error.start + 4].hex().upper()} at its byte {error.start}"
        return Refused("bad_text", (), "UTF-8", found)


def _day(number: int) -> str | Refused:
    """A day so many days after 1970-01-01."""
    try:
        return (EPOCH + datetime.timedelta(days=number)).date().isoformat()
    except OverflowError:
        return Refused("value_does_not_fit", (), "a day of the years 1 to 9999", str(number))


def _clock(number: int, digits: int) -> str | Refused:
    """A time of day, of so many digits of a second's fraction: without a fraction that is zero, else with six digits,
    or with all that are needed.

    >>> _clock(1_234_567, 9), _clock(3_600_000, 3), _clock(3_600_500, 3)
    ('00:00:00.001234567', '01:00:00', '01:00:00.500000')
    """
    seconds, fraction = divmod(number, 10**digits)
    if not 0 <= seconds < 86_400:
        return Refused("value_does_not_fit", (), "a time of a day", str(number))
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    nanos = f"{fraction:0{digits}d}".ljust(9, "0") if fraction else ""
    return f"{text}.{nanos if nanos[6:] != '000' else nanos[:6]}" if nanos else text


def _time(number: int, digits: int) -> str | Refused:
    """A time of so many digits of a second's fraction since 1970, as it is stored.

    >>> _time(1_700_000_000_123_456_700, 9)
    '2023-11-14 22:13:20.123456700'
    """
    seconds, fraction = divmod(number, 10**digits)
    try:
        at = EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return Refused("value_does_not_fit", (), "a time of the years 1 to 9999", str(number))
    return at.isoformat(sep=" ") + (f".{fraction:0{digits}d}" if digits else "")


def _plain(value: Any):
    if value is None or isinstance(value, (bool, str, bytes)):
        return value
    if isinstance(value, int):
        return Number(value)
    if isinstance(value, Decimal):
        return Number(format(value, "f"))
    if isinstance(value, float):
        return Number.of(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return Refused("value_does_not_fit", (), "a value that is no list and no object", json.dumps(str(value)[:40]))
