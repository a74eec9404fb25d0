"""Write Qlik's change tables and full-load files: delimited text, JSON lines, Parquet. Their sidecars: qlik_dfm.py.
Knows nothing of inlet.

A change is a dict: operation (INSERT, UPDATE, DELETE, TRUNCATE; REFRESH is a row of a full load), change_seq, before,
after (dicts of Python values), transaction_id, change_timestamp, stream_position, partition_name; `header`, the values
of header columns that nobody knows. A column that is absent from an image was not supplied. Times may be text, where
Python's have too few digits. The same arguments give the same bytes.
"""

import base64
import datetime
import decimal
import io
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq


class Column(NamedTuple):
    name: str
    type: str = "STRING"
    length: int = 0
    precision: int = 0
    scale: int = 0
    key: int = 0  # place in the primary key, from 1 on


class Table(NamedTuple):
    schema: str
    name: str
    columns: tuple[Column, ...]
    version: int = 1


HEADERS = {  # default header columns, in their order; behind them that of partitions
    "change_seq": Column("change_seq", "STRING", 35),
    "change_oper": Column("change_oper", "STRING", 1),
    "change_mask": Column("change_mask", "BYTES", 128),
    "stream_position": Column("stream_position", "STRING", 128),
    "operation": Column("operation", "STRING", 12),
    "transaction_id": Column("transaction_id", "STRING", 32),
    "timestamp": Column("timestamp", "DATETIME"),
}
PARTITION = Column("partition_name", "STRING", 64)
LETTERS = {"INSERT": "I", "UPDATE": "U", "DELETE": "D", "BEFOREIMAGE": "B", "TRUNCATE": "T"}
LOBS = {"BLOB", "CLOB", "NCLOB"}
TEXTS = {"STRING", "WSTRING", "CLOB", "NCLOB"}


class Layout(NamedTuple):
    """What a task writes of a change."""

    headers: tuple[str, ...] = tuple(HEADERS)  # any, in any order; none in files of a full load
    prefix: str = "header__"
    in_upper_case: bool = False
    suffix: str = "__ct"
    has_before_rows: bool = True
    before_first: bool = False  # does the B row stand before its U row?
    is_sparse: bool = False  # are unchanged columns of an update left out, but for the key?
    mask_form: str = "hex"  # hex, base64, binary
    mask_order: str = "little"  # of the bytes, where the form is not hex
    num_mask_bytes: int = 0  # at least; trailing (most significant) zero bytes are dropped where it is 0
    truncate_letter: str | None = "T"

    def columns(self, table: Table) -> list[Column]:
        """Every column of a file, header columns first."""
        known = HEADERS | {"partition_name": PARTITION}
        found = [known.get(name, Column(name, "STRING", 64)) for name in self.headers]
        names = [self.prefix + column.name for column in found]
        names = [name.upper() for name in names] if self.in_upper_case else names
        return [column._replace(name=name) for column, name in zip(found, names)] + list(table.columns)


class Options(NamedTuple):
    """What a task says of delimited text."""

    field_delimiter: str = ","
    record_delimiter: str = "\n"
    null: str = ""
    quote: str = '"'
    escape: str = ""
    head: str = ""  # names, or names:types, or none
    quoted: str = "texts"  # of the data; needed: only what could be read otherwise; all: header columns too
    encoding: str = "utf-8"
    ends: bool = True  # has the last line its record delimiter?


CHANGES, LOAD, DEFAULTS = Layout(), Layout(headers=()), Options()


def rows(table: Table, changes: Iterable[dict], layout: Layout = CHANGES) -> list[list]:
    """The rows of a file: a value for each column of `layout.columns`, None for null."""
    found = []
    for change in changes:
        operation, before, after = change["operation"], change.get("before"), change.get("after")
        if operation != "UPDATE":
            found.append(_row(table, change, operation, before if operation == "DELETE" else after, layout))
            continue
        changed = _changed(table, before, after)
        keys = {column.name for column in table.columns if column.key}
        values = {n: v for n, v in after.items() if not layout.is_sparse or n in keys or n in changed}
        pair = [_row(table, change, operation, values, layout)]
        if layout.has_before_rows and before is not None:
            pair.insert(0 if layout.before_first else 1, _row(table, change, "BEFOREIMAGE", before, layout))
        found += pair
    return found


def mask(table: Table, names: Iterable[str], num_headers: int) -> int:
    """The bits of columns, as a number: bit 0 is the first column of the file, header columns counted. LOB columns are
    never in it.
    """
    names = set(names)
    return sum(
        1 << num_headers + place
        for place, column in enumerate(table.columns)
        if column.name in names and column.type not in LOBS
    )


def mask_value(bits: int, layout: Layout) -> str | bytes:
    """A mask in its form: hex text is one big-endian number."""
    length = max((bits.bit_length() + 7) // 8, layout.num_mask_bytes, 1)
    if layout.mask_form == "hex":
        return bits.to_bytes(length, "big").hex().upper()
    data = bits.to_bytes(length, layout.mask_order)
    return base64.b64encode(data).decode() if layout.mask_form == "base64" else data


def _changed(table: Table, before: dict | None, after: dict) -> set[str]:
    return {n for n in after if before is None or n not in before or before[n] != after[n]}


def _row(table: Table, change: dict, operation: str, values: dict | None, layout: Layout) -> list:
    values = values or {}
    named = {
        "INSERT": values,
        "UPDATE": _changed(table, change.get("before"), change.get("after") or {}),
        "DELETE": [column.name for column in table.columns if column.key],
    }.get(operation)
    header = {
        "change_seq": change.get("change_seq"),
        "change_oper": layout.truncate_letter if operation == "TRUNCATE" else LETTERS.get(operation),
        "change_mask": None if named is None else mask_value(mask(table, named, len(layout.headers)), layout),
        "stream_position": change.get("stream_position"),
        "operation": operation,
        "transaction_id": change.get("transaction_id"),
        "timestamp": change.get("change_timestamp"),
        "partition_name": change.get("partition_name"),
    } | change.get("header", {})
    return [header.get(name) for name in layout.headers] + [values.get(column.name) for column in table.columns]


def delimited(
    table: Table, given: Sequence[list], layout: Layout = CHANGES, options: Options = DEFAULTS, head_type=None
) -> bytes:
    """Delimited text. In: rows as of `rows`; how a column's type stands in the first line, by its name alone unless
    told.
    """
    columns, num_headers = layout.columns(table), len(layout.headers)
    lines = []
    if options.head:
        head_type = head_type or (lambda column: column.type)
        types = [f":{head_type(column)}" if options.head == "names:types" else "" for column in columns]
        lines.append([_needed(column.name + type_, options) for column, type_ in zip(columns, types)])
    for row in given:
        lines.append([_cell(v, c, n < num_headers, options) for n, (v, c) in enumerate(zip(row, columns, strict=True))])
    text = options.record_delimiter.join(map(options.field_delimiter.join, lines))
    return (text + (options.record_delimiter if lines and options.ends else "")).encode(options.encoding)


def _cell(value, column: Column, is_header: bool, options: Options) -> str:
    if value is None:
        return options.null
    text = text_of(value)
    is_quoted = options.quoted == "all" or options.quoted == "texts" and column.type in TEXTS and not is_header
    return _quoted(text, options) if is_quoted and options.quote else _needed(text, options)


def _needed(text: str, options: Options) -> str:
    """A text in quotes where it could be read as something else without."""
    special = (options.field_delimiter, options.record_delimiter, options.quote, options.escape)
    if text != options.null and not any(one and one in text for one in special):
        return text
    if not options.quote and text != options.null:
        raise ValueError(f"{text!r} cannot be written without quotes")
    return _quoted(text, options) if options.quote else text  # without quotes "" and null are the same


def _quoted(text: str, options: Options) -> str:
    if options.escape and options.escape != options.quote:
        text = text.replace(options.escape, options.escape * 2)
    return (
        options.quote + text.replace(options.quote, (options.escape or options.quote) + options.quote) + options.quote
    )


def text_of(value) -> str:
    """A value as text has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return value if isinstance(value, str) else repr(value)


def json_lines(table: Table, given: Sequence[list], layout: Layout = CHANGES) -> bytes:
    """An object a line. Numbers are numbers, decimals too; times and bytes are text."""
    names = [json.dumps(column.name, ensure_ascii=False) for column in layout.columns(table)]
    lines = [", ".join(f"{n}: {_json(v)}" for n, v in zip(names, row, strict=True)) for row in given]
    return "".join(f"{{ {line} }}\n" for line in lines).encode()


def _json(value) -> str:
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return json.dumps(value if is_plain else text_of(value), ensure_ascii=False)


def arrow_type(column: Column, unit: str = "us") -> pa.DataType:
    """What a column is in Parquet. In: the unit of its times."""
    if column.type == "NUMERIC":
        return pa.decimal128(column.precision, column.scale)
    return {
        "BOOLEAN": pa.bool_(),
        "INT1": pa.int8(),
        "INT2": pa.int16(),
        "INT4": pa.int32(),
        "INT8": pa.int64(),
        "UINT1": pa.uint8(),
        "UINT2": pa.uint16(),
        "UINT4": pa.int64(),
        "UINT8": pa.uint64(),
        "REAL4": pa.float32(),
        "REAL8": pa.float64(),
        "BYTES": pa.binary(),
        "BLOB": pa.binary(),
        "DATE": pa.date32(),
        "TIME": pa.time32("ms"),
        "DATETIME": pa.timestamp(unit, tz="UTC"),
    }.get(column.type, pa.string())


def parquet(table: Table, given: Sequence[list], layout: Layout = CHANGES, unit: str = "us") -> bytes:
    """Parquet. A mask that is text is a column of text."""
    columns = layout.columns(table)
    fields = []
    for place, column in enumerate(columns):
        is_text = column.type == "BYTES" and any(isinstance(row[place], str) for row in given)
        fields.append(pa.field(column.name, pa.string() if is_text else arrow_type(column, unit)))
    arrays = [
        pa.array([_arrow(row[place], field.type) for row in given], field.type) for place, field in enumerate(fields)
    ]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), out, write_time_adjusted_to_utc=True)
    return out.getvalue()


def opened_of(rows: pa.Table):
    """What `open_rows` is given of a file of rows: its schema, and what gives the values of a column."""
    return rows.schema, lambda name: rows.column(name).chunks


def _arrow(value, type_: pa.DataType):
    """A time as Parquet takes it: text is read, and a time without a zone is said to be UTC."""
    if not pa.types.is_timestamp(type_) or value is None:
        return value
    read = datetime.datetime.fromisoformat(value) if isinstance(value, str) else value
    return read if read.tzinfo else read.replace(tzinfo=datetime.UTC)
