"""Column lists of Qlik's files, for `inlet import`: those of sidecars (.dfm), of Parquet files, and of text whose first
record has names and types (NAME:TYPE).

Table       that of the sidecar [documented]; else the folder's name, SCHEMA.TABLE or SCHEMA.TABLE__ct, with or without
            a partition folder below it. `tables` maps both
Columns     all but header columns, which begin with the prefix in any case; types as of types.py
Key         by the key positions of a sidecar; Parquet and text have none
Version     `tableVersion` of a sidecar. The precision of a NUMERIC may differ between sidecars of one version [sample
            seen]: then it gets all digits that any of them has
In force    from the first transaction of the file on, by firstTransactionTimestamp of its sidecar, or by the least
            change_seq in the data. ASSUMED: the time in change_seq is not before that of the transaction [sample seen:
            all of 1,000 rows]. Files of full loads have neither
Bytes       in text and JSON they are hex digits [sample seen: masks], so such columns get `encoding: hex`
Types       NAME:TYPE, a type maybe with numbers in parentheses. ASSUMED: without numbers a NUMERIC is of any precision;
            the last colon of a cell stands before its type
"""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from inlet.codecs.qlik import column_lists, dfm, members, types
from inlet.codecs.qlik.change_table import file_name, opening, text
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.dfm import Column
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Definition
from inlet.errors import ConfigError
from inlet.fields.wrong import Wrong, quoted
from inlet.source import Source

PARQUET, JSON_LINE = b"PAR1", re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
TYPED = re.compile(r"(.+):([A-Za-z][A-Za-z0-9_ ]*?)(?:\(([0-9]{1,9})(?:,(-?[0-9]{1,9}))?\))?", re.DOTALL)
NUMERIC = re.compile(r"NUMERIC\(([0-9]+),(-?[0-9]+)\)")
REMEDY = "Give a sidecar (.dfm) as Qlik wrote it, a Parquet file, or text whose first record is NAME:TYPE,NAME:TYPE,..."


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column list that a file gives. In: its path. Raises: ConfigError."""
    if data.startswith(PARQUET):
        return [_of_parquet(data, name, source)]
    if name.lower().endswith(dfm.SUFFIX) or JSON_LINE.match(data):
        return [_of_sidecar(data, name, source)]
    return [_of_text(data, name, source)]


def of_sidecar(sidecar: dfm.Sidecar, path: str, source: Source) -> Definition:
    """The column list of a sidecar. In: the path of the file that it is of. Raises: ConfigError."""
    word = f"{sidecar.schema}.{sidecar.table}" if sidecar.schema and sidecar.table else ""
    schema, table = _table(word, path, source)
    options = source.options_as(Options)
    _data_columns(sidecar.columns, path, options)
    listed = column_lists.of_sidecar(sidecar, options.prefix)
    return Definition(schema, table, listed.columns, listed.key, listed.change_seq, 0, listed.version)


def merged(one: list[dict], other: list[dict]) -> list[dict] | None:
    """The columns of two lists of one version: a NUMERIC gets all digits that either has. None where they differ in
    anything else.

    >>> merged([_numeric("A", 9, 2)], [_numeric("A", 8, 4)])
    [{'name': 'A', 'type': 'decimal(11,4)', 'source_type': 'NUMERIC(11,4)'}]
    """
    if len(one) != len(other):
        return None
    found = []
    for was, now in zip(one, other):
        digits = [NUMERIC.fullmatch(column.get("source_type") or "") for column in (was, now)]
        if was == now:
            found.append(was)
        elif was["name"] == now["name"] and digits[0] and digits[1]:
            scale = max(int(match[2]) for match in digits)
            found.append(_numeric(was["name"], max(int(m[1]) - int(m[2]) for m in digits) + scale, scale))
        else:
            return None
    return found


def _numeric(name: str, precision: int, scale: int) -> dict:
    return types.described(Column(name, 1, "NUMERIC", 0, precision, scale), False)


def _of_sidecar(data: bytes, name: str, source: Source) -> Definition:
    try:
        return of_sidecar(dfm.read(data), name, source)
    except Wrong as wrong:
        raise ConfigError(f"{name}: {wrong}", REMEDY) from wrong


def _of_parquet(data: bytes, name: str, source: Source) -> Definition:
    options = source.options_as(Options)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        schema = file.schema_arrow
        place = _place_of_seq(schema.names, options)
        seqs = [] if place is None else file.read([schema.names[place]]).column(0).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be read as Parquet: {error}", "Give a whole file, or its .dfm") from error
    try:
        columns = [types.of_parquet(field.name, n, field.type) for n, field in enumerate(schema, 1)]
    except ValueError as error:
        raise ConfigError(f"{name}: {error}", "Write its contract by hand") from error
    listed = [{"name": c.name, "type": types.contract_type(c)[0]} for c in _data_columns(columns, name, options)]
    return Definition(*_table("", name, source), listed, [], _least(seqs), 0)


def _of_text(data: bytes, name: str, source: Source) -> Definition:
    options = source.options_as(Options)
    told = {one: getattr(options, one) for one in opening.DIALECT}
    dialect = opening.dialect_of({"dialect": told}, options)
    view = text.view_of(data.removeprefix(dfm.BOM), dialect)
    columns = []
    try:
        cells = text.record(view.text, 0, min(len(view.text), text.LEN_RECORD), dialect, True)[2]
        names = [text.value(cell, view, dialect) for cell in cells]
    except Wrong as wrong:
        raise ConfigError(f"{name}: its first record is no text in {options.code_page}: {wrong}", REMEDY) from wrong
    for n, cell in enumerate(names, 1):
        match = TYPED.fullmatch(cell)
        if match is None:
            raise ConfigError(f"{name}: expected NAME:TYPE in the first record, found {quoted(cell)}", REMEDY)
        type_, first, second = match[2].upper(), int(match[3] or 0), int(match[4] or 0)
        length, precision, scale = {"NUMERIC": (0, first, second), "DATETIME": (0, 0, first)}.get(type_, (first, 0, 0))
        columns.append(Column(match[1], n, type_, length, precision, scale))
    listed = [types.described(column, True) for column in _data_columns(columns, name, options)]
    return Definition(*_table("", name, source), listed, [], _first_seq(view, dialect, columns, options), 0)


def _first_seq(view: text.View, dialect: text.Dialect, columns: list[Column], options: Options) -> str:
    """The least change_seq of a text; "" where it has none, or where not all of it can be read."""
    place = _place_of_seq([column.name for column in columns], options)
    seqs, end = [], 0
    for piece in text.pieces(view, dialect, text.Shape(len(columns), None), True, True, True):
        end = piece.end
        if place is not None and piece.kind == text.ROW and len(piece.cells) == len(columns):
            seqs.append(piece.cells[place].text)
    return _least(seqs) if end == len(view.text) else ""


def _place_of_seq(names: list[str], options: Options) -> int | None:
    """The place of header column change_seq."""
    return next((n for n, name in enumerate(names) if name.lower() == f"{options.prefix}change_seq".lower()), None)


def _least(seqs: list) -> str:
    return min((seq for seq in seqs if isinstance(seq, str) and members.CHANGE_SEQ.fullmatch(seq)), default="")


def _table(word: str, path: str, source: Source) -> tuple[str, str]:
    """Schema and table. In: SCHEMA.TABLE of a sidecar, or "". Raises: ConfigError."""
    found = file_name.by_name(path, source.options_as(Options))
    folder = "" if isinstance(found, Refused) else found["word"]
    full = next((mapped for one in (word, folder) if one and (mapped := source.table_of(one))), word or folder)
    schema, _, table = full.partition(".")
    if not (schema and table) or "." in table:
        expected = found.expected if isinstance(found, Refused) else "SCHEMA.TABLE"
        raise ConfigError(
            f"{path} tells no table: expected {expected}; found {full or 'none'}",
            "Give a file in its folder, or a .dfm; or map what it tells by `tables` of the source",
        )
    return schema, table


def _data_columns(columns: Sequence[Column], path: str, options: Options) -> list[Column]:
    """The table's own columns. Raises: ConfigError where there is none."""
    if found := column_lists.data_columns(columns, options.prefix):
        return found
    raise ConfigError(f"{path} has no column but header columns", "Give a file of the table")
