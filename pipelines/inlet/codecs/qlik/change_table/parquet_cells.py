"""The cells of Parquet's rows as places in one buffer, as the compiled walk reads them: texts, and numbers as JSON has
them. rows.py is the plain form, and reads what is not here."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import json_batches, json_columns
from inlet.codecs.qlik.change_table.arrow import Cells
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.scan import END, NONE, START
from inlet.codecs.qlik.change_table.walk import AS_IS, AS_NUMBER, AS_TEXT
from inlet.fields.compiled.json_values import DECIMAL, INTEGER
from inlet.fields.json_exact import Number
from inlet.table import Table
from inlet.table_column import TableColumn

FIRST, LAST = -62_135_596_800, 253_402_300_800  # seconds since 1970: the years 1 to 9999
DAY = 86_400
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def cells_of_rows(rows: pa.Table, columns: Columns, contract: Table) -> Cells | None:
    """In: rows, and what each of their columns is. Out: None where the plain path has to read them."""
    if rows.nbytes > json_batches.LEN_MOST:  # of which a text column may be more than an array holds
        return None
    types = {column.name.lower(): column for column in contract.columns}
    cells = np.zeros((rows.num_rows, rows.num_columns, 3), np.int32)
    buffers, forms, size = [], [], 0
    for place, values in enumerate(rows.columns):
        column = types.get(columns.names[place].lower()) if place in columns.data else None
        whole = values.combine_chunks()
        if isinstance(whole, pa.ChunkedArray):  # of no chunk, or of more than an array holds
            whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
        found = column and _integers(whole, column) or _texts(whole, column, place == columns.known.get("change_mask"))
        if found is None:
            return None
        letters, stops, form = found
        cells[:, place, START] = stops[:-1] + size
        cells[:, place, END] = stops[1:] + size
        if whole.null_count:
            cells[~np.asarray(whole.is_valid()), place, START] = NONE
        forms.append(form)
        buffers.append(letters)
        size += len(letters)
        if size > json_batches.LEN_MOST:  # as text values may take more
            return None
    bounds = np.arange(rows.num_rows)[:, None] + np.array([0, 1])
    data = np.concatenate(buffers) if size else np.zeros(1, np.uint8)
    data.flags.writeable = False  # as text's is: the walks would be compiled again for others
    return Cells(data, cells, forms, NONE, bounds, np.ones(rows.num_rows, np.bool_))


def _integers(values: pa.Array, column: TableColumn) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Numbers as eight bytes each, where their type says that they fit their column."""
    of, (type_, first, second) = values.type, json_columns.plan_of(column, json_columns.TYPES)
    if type_ == INTEGER and pa.types.is_integer(of):
        if of.bit_width // 8 + pa.types.is_unsigned_integer(of) > first:
            return None
        values, width, scale = values.cast(pa.int64()), 1, 0
    elif type_ == DECIMAL and pa.types.is_decimal128(of):
        width, scale = 2, of.scale  # of the sixteen bytes of each the first eight hold 18 digits
        if of.precision > 18 or of.precision - scale > first or not 0 <= scale <= second or not _is_valid(values):
            return None
    else:
        return None
    numbers = np.frombuffer(values.buffers()[1], np.int64)[values.offset * width :][: len(values) * width : width]
    return np.ascontiguousarray(numbers).view(np.uint8), np.arange(len(values) + 1) * 8, scale


def _texts(values: pa.Array, column: TableColumn | None, is_mask: bool) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Values as texts, one after the other, and where each begins and the last ends; what they are. None of what is
    left to the plain path."""
    found = _as_text(values, column.type if column else "string", bool(column and column.encoding), is_mask)
    if found is None:
        return None
    texts, form = found
    letters, stops = json_batches.bytes_of(texts)
    return letters[stops[0] : stops[-1]], stops - stops[0], form


def _as_text(column: pa.Array, type_: str, has_encoding: bool, is_mask: bool) -> tuple[pa.Array, int] | None:
    """A column as text, and what that is; None of what is left to the plain path."""
    of, number = column.type, AS_TEXT if type_ == "string" else AS_NUMBER
    if pa.types.is_large_string(of) or pa.types.is_string(of):
        return (column.cast(pa.string()), AS_TEXT) if _is_valid(column) else None
    if pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_fixed_size_binary(of):
        if is_mask:
            return column.cast(pa.binary()), AS_TEXT
        return _hex(column) if type_ == "binary" and has_encoding else None
    if pa.types.is_integer(of):
        return column.cast(pa.string()), number
    if pa.types.is_decimal(of) and 0 <= of.scale <= 6:
        return column.cast(pa.string()), number
    if pa.types.is_decimal(of):  # Arrow writes small ones with an exponent
        return pa.array([None if v is None else format(v, "f") for v in column.to_pylist()], pa.string()), number
    if pa.types.is_floating(of):
        return pa.array([None if v is None else Number.of(v) for v in column.to_pylist()], pa.string()), number
    if pa.types.is_boolean(of):
        return (column.cast(pa.string()), AS_TEXT) if type_ == "boolean" else None
    if pa.types.is_timestamp(of):
        texts = _times(column.cast(pa.int64()), of.unit)
        is_fit = of.unit != "ns" and type_ in ("timestamp", "timestamp_ntz")
        return None if texts is None else (texts, AS_IS if is_fit else AS_TEXT)
    if pa.types.is_date32(of):
        is_known = _is_between(column.cast(pa.int32()), FIRST // DAY, LAST // DAY)
        return (column.cast(pa.string()), AS_IS if type_ == "date" else AS_TEXT) if is_known else None
    return None


def _is_valid(column: pa.Array) -> bool:
    """Is each text UTF-8 by itself, and has each decimal no more digits than its type?"""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_between(numbers: pa.Array, first: int, last: int) -> bool:
    found = pc.min_max(numbers).as_py()
    return found["min"] is None or first <= found["min"] <= found["max"] < last


def _hex(column: pa.Array) -> tuple[pa.Array, int]:
    return pa.array([None if v is None else v.hex().upper() for v in column.to_pylist()], pa.string()), AS_TEXT


def _times(numbers: pa.Array, unit: str) -> pa.Array | None:
    """Times as text; None where one is of no year from 1 to 9999."""
    of_second = PER_SECOND[unit]
    if not _is_between(numbers, FIRST * of_second, LAST * of_second):
        return None
    return numbers.cast(pa.timestamp(unit)).cast(pa.string())
