"""The cells of Parquet's rows as places in one buffer, as the compiled walk reads them: texts, and numbers as JSON has
them. rows.py is the plain form, and reads what is not here."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import json_batches
from inlet.codecs.qlik.change_table.arrow import Cells
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.scan import END, NONE, START
from inlet.table import Table

FIRST, LAST = -62_135_596_800, 253_402_300_800  # seconds since 1970: the years 1 to 9999
DAY = 86_400
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def cells_of_rows(rows: pa.Table, columns: Columns, contract: Table) -> Cells | None:
    """In: rows, and what each of their columns is. Out: None where the plain path has to read them."""
    if rows.nbytes > json_batches.LEN_MOST:  # of which a text column may be more than an array holds
        return None
    types = {column.name.lower(): column for column in contract.columns}
    cells = np.zeros((rows.num_rows, rows.num_columns, 3), np.int32)
    buffers, is_number, is_fit, size = [], [], [], 0
    for place, values in enumerate(rows.columns):
        column = types.get(columns.names[place].lower()) if place in columns.data else None
        type_ = column.type if column else "string"
        is_mask = place == columns.known.get("change_mask")
        found = _as_text(values, type_, bool(column and column.encoding), is_mask)
        if found is None:
            return None
        texts, one_is_number = found
        is_number.append(one_is_number and type_ != "string")
        is_fit.append(_is_fit(values.type, type_))
        letters, stops = json_batches.bytes_of(texts)
        letters = letters[stops[0] : stops[-1]]
        is_null = ~np.asarray(texts.is_valid())
        cells[:, place, START] = np.where(is_null, NONE, stops[:-1] - stops[0] + size)
        cells[:, place, END] = stops[1:] - stops[0] + size
        buffers.append(letters)
        size += len(letters)
        if size > json_batches.LEN_MOST:  # as text values may take more
            return None
    bounds = np.arange(rows.num_rows)[:, None] + np.array([0, 1])
    data = np.concatenate(buffers) if size else np.zeros(1, np.uint8)
    data.flags.writeable = False  # as text's is: the walks would be compiled again for others
    return Cells(data, cells, is_number, is_fit, NONE, bounds, np.ones(rows.num_rows, np.bool_))


def _as_text(values: pa.ChunkedArray, type_: str, has_encoding: bool, is_mask: bool) -> tuple[pa.Array, bool] | None:
    """A column as text, and whether that is of numbers; None of what is left to the plain path."""
    column = values.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunk, or of more than an array holds
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    of = column.type
    if pa.types.is_large_string(of) or pa.types.is_string(of):
        return (column.cast(pa.string()), False) if _is_utf8(column) else None
    if pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_fixed_size_binary(of):
        if is_mask:
            return column.cast(pa.binary()), False
        return _hex(column) if type_ == "binary" and has_encoding else None
    if pa.types.is_integer(of):
        return column.cast(pa.string()), True
    if pa.types.is_decimal(of) and 0 <= of.scale <= 6:
        return column.cast(pa.string()), True
    if pa.types.is_decimal(of):  # Arrow writes small ones with an exponent
        return pa.array([None if v is None else format(v, "f") for v in column.to_pylist()], pa.string()), True
    if pa.types.is_floating(of):
        return pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.string()), True
    if pa.types.is_boolean(of):
        return (column.cast(pa.string()), False) if type_ == "boolean" else None
    if pa.types.is_timestamp(of):
        texts = _times(column.cast(pa.int64()), of.unit)
        return None if texts is None else (texts, False)
    if pa.types.is_date32(of):
        is_known = _is_between(column.cast(pa.int32()), FIRST // DAY, LAST // DAY)
        return (column.cast(pa.string()), False) if is_known else None
    return None


def _is_fit(of: pa.DataType, type_: str) -> bool:
    """Is the text of each value here certain to be of a column's type?"""
    if pa.types.is_date32(of):
        return type_ == "date"
    return pa.types.is_timestamp(of) and of.unit != "ns" and type_ in ("timestamp", "timestamp_ntz")


def _is_utf8(column: pa.Array) -> bool:
    """Is each text UTF-8 by itself?"""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_between(numbers: pa.Array, first: int, last: int) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or first <= found["min"] <= found["max"] < last


def _hex(column: pa.Array) -> tuple[pa.Array, bool]:
    return pa.array([None if v is None else v.hex().upper() for v in column.to_pylist()], pa.string()), False


def _times(numbers: pa.Array, unit: str) -> pa.Array | None:
    """Times as text; None where one is of no year from 1 to 9999."""
    of_second = PER_SECOND[unit]
    if not _is_between(numbers, FIRST * of_second, LAST * of_second):
        return None
    return numbers.cast(pa.timestamp(unit)).cast(pa.string())
