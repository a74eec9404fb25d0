"""A file is opened: what its name, its sidecar and its first records say of how it is read.

What the name says is in file_name.py. The rest is settled with the first bytes, once they are enough, and with the
sidecar (`.dfm`), which has precedence over the source's options: the table, how text is delimited, the columns, how
masks are written. What leaves a choice is refused.
"""

import re
from collections.abc import Iterable, Iterator

from inlet import change
from inlet.codecs.qlik import column_lists, control_tables, dfm, members
from inlet.codecs.qlik.change_table import file_name, header, images, json_lines, sidecars, text
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.options import Options, check_dialect
from inlet.codecs.qlik.change_table.text import Dialect, Shape
from inlet.codecs.qlik.members import Refused
from inlet.errors import Reject
from inlet.fields import charset
from inlet.fields.wrong import Wrong, cut, quoted
from inlet.source import Source
from inlet.table import Table

LEN_FITTED = 1 << 20  # of a file, on which readings of masks are tried
SEQUENCE_FILE, PARQUET = b"SEQ", b"PAR1"
LEN_MAGIC = len(PARQUET)
CONTROL = {bytes([byte]) for byte in range(9)} | {b"\x15"}  # what follows these, and is in no text
DIALECT = ("delimiter", "record_delimiter", "quote", "escape")


def of_head(head: bytes) -> Refused | None:
    """Why a file cannot be text, by its first bytes."""
    if head.startswith(SEQUENCE_FILE) and head[3:4] in CONTROL:
        return Refused("unsupported_message", (), "delimited text, JSON or Parquet", "a SequenceFile of Hadoop")
    if head.startswith(PARQUET) and head[4:5] in CONTROL:
        return Refused("unsupported_message", (), "text (Parquet is read with from: {transport: rows})", "Parquet")
    return None


def table_of(context: dict, sidecar: dfm.Sidecar | None, source: Source, tables: dict[str, Table]) -> Table:
    """The contract of a file's table. Raises: Refused."""
    if context["kind"] == "control":
        return control_tables.CONTRACTS[context["word"]]
    told = f"{sidecar.schema}.{sidecar.table}" if sidecar and sidecar.schema and sidecar.table else None
    by_sidecar = told and (source.table_of(told) or (told if told in tables else None))
    by_folder = source.table_of(context["word"])
    if by_sidecar and by_folder and by_sidecar != by_folder:
        raise Refused("ambiguous_table", (), f"{by_sidecar}, as its .dfm says", f"{by_folder}, as `tables` says")
    full = by_sidecar or by_folder or told or context["word"]
    contract = tables.get(full)
    if contract is None or contract.sources and source.name not in contract.sources:
        expected = "a table with a contract in pipelines/tables/, by its folder or .dfm (`tables` maps it)"
        named = tuple(full.split(".")) if full.count(".") == 1 else ()
        raise Refused("unknown_table", (), expected, cut(full, 80), named=named)
    lists = {tuple(version.column_names) for version in contract.versions}
    if context["kind"] == "load" and len(lists) > 1 and context["place"].startswith(change.NO_TIME):
        expected = f"a time in option load_time, for earlier versions of {contract.table} have other columns"
        raise Refused("missing_change_seq", (), expected, "first", named=(contract.schema_name, contract.table_name))
    return contract


def settle(
    data: bytes, context: dict, source: Source, tables: dict[str, Table], options: Options, is_final: bool
) -> dict | Reject | None:
    """The context of a file's first byte; why it is refused; None where more of it has to come."""
    contract = None
    try:
        given = context.get("companions", {})
        found = sidecars.of_file(context["name"], given, options)
        settled, contract = with_sidecar(context, found, given, source, tables, options)
        sidecar = found.sidecar if found else None
        read = _settle_json if _format(context["name"], sidecar, options) == "json" else _settle_delimited
        return read(data, settled, sidecar, bool(found and found.is_own), contract, options, is_final)
    except Wrong as wrong:
        return rejected(Refused(wrong.kind, (), wrong.expected, wrong.found), data, contract)
    except Refused as no:
        return rejected(no, data, contract)


def located(context: dict, given: dict[str, dict], options: Options) -> dict:
    """The place of a file of a load. In: the companions of the file. Raises: Refused."""
    if context["kind"] != "load":
        return {}
    load_id = f"{sidecars.load_time(given, options)}{file_name.number_of(context['word'], options):06d}"
    return {"load_id": load_id, "place": f"{load_id}{context['number']:05d}"}


def with_sidecar(
    context: dict,
    found: sidecars.Found | None,
    given: dict[str, dict],
    source: Source,
    tables: dict[str, Table],
    options: Options,
) -> tuple[dict, Table]:
    """What a file's name and its sidecar say of it, and its contract. Raises: Refused."""
    context = context | located(context, given, options)
    contract = table_of(context, found.sidecar if found else None, source, tables)
    settled = {n: v for n, v in context.items() if n not in ("companions", "word")} | {"table": contract.table}
    if found is None:
        return settled, contract
    settled |= {"sidecar": found.path, "is_own": found.is_own}
    if found.is_own:
        sidecar = found.sidecar
        listed = column_lists.of_sidecar(sidecar, options.prefix)
        if not listed.columns:
            raise Refused("contradiction", (), "a column besides header columns in its .dfm", "none")
        names = [[c.name, c.type] for c in column_lists.data_columns(sidecar.columns, options.prefix)]
        settled |= {"num_records": sidecar.num_records, "listed": names, "definition": listed._asdict()}
    return settled, contract


def check_columns(names: list[str], listed: list[str]) -> None:
    """Raises: Refused where the columns of a file are not those of its sidecar."""
    if [name.lower() for name in names] != [name.lower() for name in listed]:
        expected = f"the columns of its .dfm, {cut(', '.join(listed), 200)}"
        raise Refused("contradiction", (), expected, cut(", ".join(names), 200))


def rejected(no: Refused, data: bytes, contract: Table | None = None) -> Reject:
    """A file, or what is left of it, as a reject."""
    named = (contract.schema_name, contract.table_name) if contract else no.named or (None, None)
    return Reject(no.kind, 0, len(data), 0, no.expected, no.found, data, *named)


def _format(name: str, sidecar: dfm.Sidecar | None, options: Options) -> str:
    if sidecar and sidecar.format in ("delimited", "json"):
        return sidecar.format
    if options.format != "auto":
        return options.format
    return "json" if name.lower().split(".")[-1] in ("json", "jsonl") else "delimited"


def _settle_json(data, context, sidecar, is_own, contract, options, is_final) -> dict | None:
    names = [column.name for column in sidecar.columns] if sidecar else None
    len_mark = len(dfm.BOM) if data.startswith(dfm.BOM) else 0
    context |= {"format": "json", "columns": names, "header_due": False} | ({"len_mark": len_mark} if len_mark else {})
    lines = [line for line in json_lines.lines(data[:LEN_FITTED], False, len_mark) if line.kind == text.ROW]
    if not lines and not (is_final or len(data) > LEN_FITTED):
        return None
    rows = [row for line in lines if (row := json_lines.row(data[line.start : line.end], context, contract, options))]
    if context["kind"] != "changes":
        return context | {"masks": []}
    if rows:
        header.check(rows[0].columns, options)
        if "change_mask" not in rows[0].columns.known and options.without_mask:
            return context | {"masks": [list(one) for one in images.readings(options, False)], "members": None}
    masked = [row for row in rows if row.mask is not None]
    members = json_lines.members_of((masked or rows)[0].columns) if rows and not names else None
    masks = ((row.mask, row.columns) for row in masked if names or json_lines.members_of(row.columns) == members)
    return _with_masks(context | {"members": members}, masks, len(data), options, is_final)


def _settle_delimited(data, context, sidecar, is_own, contract, options, is_final) -> dict | None:
    told = {name: getattr(options, name) for name in DIALECT} | {"null": options.null_text}
    said = {name: getattr(sidecar, name) for name in told if sidecar and getattr(sidecar, name)}
    as_said = told | ({} if told["escape"] else {"escape": said.get("quote", told["quote"])})  # a quote written twice
    differing = [f"{n} {one!r}, not {told[n]!r}" for n, one in said.items() if one not in (told[n], as_said[n])]
    context |= {"format": "delimited", "dialect": told | said, "differs": differing}
    try:
        check_dialect(*((told | said)[name] for name in DIALECT))
    except ValueError as error:
        raise Refused("contradiction", (), "delimiters that can be told apart", str(error)) from None
    dialect = dialect_of(context, options)
    view = text.view_of(data, dialect)
    limit, is_whole = min(len(view.text), text.LEN_RECORD), options.last_record == "whole"
    len_mark = _len_mark(data, dialect)
    context |= {"len_mark": len_mark} if len_mark else {}
    state, end, cells = text.record(view.text, len_mark, limit, dialect, is_final and is_whole)
    if state == text.OPEN and limit == len(view.text):
        return None
    if "record_delimiter" not in options.model_fields_set | said.keys():
        mark = "\r" + dialect.record_delimiter
        after = view.text[end : end + len(mark)]
        if state == text.MALFORMED and not is_final and after != mark and mark.startswith(after):
            return None  # the delimiter may follow
        if view.text.startswith(mark, max(0, end - len(mark)) if state == text.WHOLE else end):
            expected = "the option record_delimiter: 0x0D0A, or 0x0A where a value ends with 0D"
            raise Refused("ambiguous_layout", (), expected, "a first record that ends with 0D0A")
    listed = [column.name for column in sidecar.columns] if sidecar else None
    values = [text.value(cell, view, dialect) for cell in cells]
    names = _header_row(values, listed, context, contract, options)
    context |= {"header_due": names is not None}
    if names and listed and is_own:
        check_columns(names, listed)
    context |= {"columns": names or listed or _columns_told(values, context, contract, options)}
    columns = header.columns_of(context["columns"], options)
    if context["kind"] != "changes":
        if context["kind"] == "load" and columns.header:
            found = ", ".join((*columns.known, *columns.others))
            raise Refused("contradiction", (), "no header column in a file of a full load", found)
        return context | {"masks": []}
    header.check(columns, options)
    if "change_mask" not in columns.known:
        return context | {"masks": []}
    return _with_masks(context, _masks(view, context, columns, dialect, options), len(data), options, is_final)


def _len_mark(data: bytes, dialect: Dialect) -> int:
    """The length of the byte order mark that a text in UTF-8 begins with."""
    is_utf8 = dialect.set.mode in (charset.UTF8, charset.CESU8)
    return len(dfm.BOM) if is_utf8 and data.startswith(dfm.BOM) else 0


def _with_masks(context: dict, masks, length: int, options: Options, is_final: bool) -> dict | None:
    open_ = images.settled(masks, images.readings(options, False))
    is_told = options.mask_form != "auto" or open_[0].form == "hex"  # base64 was settled by fit: more may contradict it
    is_open = images.CONTRADICTED not in open_ and (len(open_) > 1 or not is_told)
    if is_open and not is_final and length < LEN_FITTED:
        return None  # what comes may settle it
    return context | {"masks": [list(one) for one in open_]}


def _masks(view: text.View, context: dict, columns: Columns, dialect: Dialect, options: Options) -> Iterator:
    """The masks of a file's first records."""
    place = columns.known.get("change_mask")
    shape = shape_of(context, columns, dialect)
    null = context["dialect"]["null"]  # one beyond ASCII is no mask in any reading
    for piece in text.pieces(view, dialect, shape, context["header_due"], False, False, context.get("len_mark", 0)):
        if place is None or view.byte(piece.end) > LEN_FITTED:
            return
        if piece.kind == text.ROW and len(piece.cells) == len(columns.names):
            mask = piece.cells[place].text
            yield None if mask in ("", null) else mask, columns


def _header_row(
    cells: list[str], listed: list[str] | None, context: dict, contract: Table, options: Options
) -> list[str] | None:
    """The columns that the first record names; None where it is no header row. Raises: Refused."""
    is_typed = options.header_row == "typed" or options.header_row == "auto" and all(":" in cell for cell in cells)
    names = [cell.rsplit(":", 1)[0].strip() if is_typed else cell.strip() for cell in cells]
    if options.header_row in ("names", "typed"):
        return names
    if options.header_row == "none":
        return None
    lower = {name.lower() for name in names}
    if _has_header_columns(context):
        is_header = bool(lower & {options.prefix.lower() + name for name in header.KNOWN})
    elif context["kind"] == "control":
        is_header = lower <= {name.lower() for name in contract.column_names}
    else:  # a row may have names of columns as its values: all of them, each once, are no row
        of_versions = [version.column_names for version in contract.versions]
        known = [sorted(name.lower() for name in one) for one in [*of_versions, listed or []]]
        is_header = sorted(name.lower() for name in names) in known
        if is_header and len(names) == 1:
            expected = "the option header_row, for a file of one column: its name may be a value"
            raise Refused("ambiguous_layout", (), expected, quoted(cells[0]))
    return names if is_header else None


def _has_header_columns(context: dict) -> bool:
    """Is a file of a change table, one of a control table among them?"""
    return context["kind"] == "changes" or context.get("is_change_table", False)


def _columns_told(cells: list[str], context: dict, contract: Table, options: Options) -> list[str]:
    """The columns of a file that names none. In: its first record. Raises: Refused."""
    if not _has_header_columns(context):
        return contract.at(context.get("place", "")).column_names
    names = [*_prefixed(options.header_columns or header.DEFAULT, options), *contract.column_names]
    if not options.header_columns and not _fits(cells, names, contract, options):
        expected = (
            "a header row (Qlik: Add metadata header, with column names), a .dfm, or the option header_columns; header "
            "column change_seq among them"
        )
        raise Refused("definition_missing", (), expected, "a first record without column names")
    return names


def _prefixed(names: Iterable[str], options: Options) -> list[str]:
    return [name if name.lower().startswith(options.prefix.lower()) else options.prefix + name for name in names]


def _fits(cells: list[str], names: list[str], contract: Table, options: Options) -> bool:
    """Has a record Qlik's header columns as they come by default, and then those of a contract of one version?"""
    if contract.earlier or len(cells) != len(names):
        return False
    columns = header.columns_of(names, options)
    try:
        found = header.said(cells, columns)
    except Refused:
        return False
    if members.HEADER_TIME.fullmatch(cells[columns.known["transaction_id"]]):  # a column of data is in its place
        return False
    return found.timestamp is not None and cells[columns.known["operation"]].upper() == found.operation


def dialect_of(context: dict, options: Options) -> Dialect:
    """How a file's text is delimited, as views have it."""
    found = Dialect("", "", "", "", charset.with_ascii(options.code_page))
    delimiter, record_delimiter, quote, escape = (text.as_seen(context["dialect"][name], found) for name in DIALECT)
    return Dialect(delimiter, record_delimiter, quote, escape, found.set)


def shape_of(context: dict, columns: Columns, dialect: Dialect) -> Shape:
    """What a record is known by."""
    if context["kind"] != "changes":
        return Shape(len(columns.names), None)
    place, letter = columns.known["change_seq"], columns.known.get("change_oper")

    def is_certain(cells: list[text.Cell]) -> bool:
        is_operation = letter is None or cells[letter].text.upper() in header.OPERATIONS
        return bool(re.fullmatch(r"[0-9]{35}", cells[place].text)) and is_operation

    return Shape(len(columns.names), is_certain)
