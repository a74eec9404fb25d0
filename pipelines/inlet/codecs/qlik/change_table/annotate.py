"""Every byte of a change table or of a load with its column, value and meaning: what `inlet inspect` shows of text; of
Parquet every cell.

Each record is read by the plain path (row.py), which the compiled walk is held equal to. Cells of JSON lines are shown
token by token (codecs/json_notes.py).
"""

from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from inlet.codecs.json_notes import json_notes
from inlet.codecs.notes import AFTER, BEFORE, Annotated, Note, clipped, printable
from inlet.codecs.notes import shown as text_of
from inlet.codecs.qlik.change_table import header, images, text
from inlet.codecs.qlik.change_table import rows as parquet_rows
from inlet.codecs.qlik.change_table.block import Framed, plain_row, values_of
from inlet.codecs.qlik.change_table.header import BEFOREIMAGE, Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.row import Row, Unit, Values
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Part
from inlet.errors import Reject
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

TITLES = {text.HEADER: "column names", text.BETWEEN: "empty line", text.MARK: "byte order mark"}


def annotate(data: bytes, context: dict, source: Source, tables: dict[str, Table]) -> list[Annotated]:
    """The records of a block, with the notes of all its bytes."""
    framed = Framed(data, context, source.options_as(Options), True, True)
    unit, ordinal, end = Unit(context, source, tables), context["row_ordinal"], 0
    found: list[Annotated] = []
    for piece in framed.pieces():
        start, end = framed.byte(piece.start), framed.byte(piece.end)
        if piece.kind in TITLES:
            found.append(_between(data, start, end, TITLES[piece.kind]))
            continue
        found.append(_record(framed, unit, start, end, piece.kind, piece.cells, ordinal))
        ordinal += 1
    if end < len(data):
        found.append(_record(framed, unit, end, len(data), text.BROKEN, [], ordinal))
    return found


def _between(data: bytes, start: int, end: int, title: str) -> Annotated:
    note = Note(start, end - start, title, printable(data[start:end].rstrip(b"\r\n")))
    return Annotated(start, end - start, title, lambda: [note])


def annotate_rows(rows: pa.Table, context: dict, source: Source, tables: dict[str, Table]) -> list[Annotated]:
    """The rows of a unit of Parquet. A cell has no bytes of its own."""
    columns, unit = parquet_rows.unit_of(rows, context, source, tables)
    found = []
    for row, given, raw in parquet_rows.plain_rows(rows, range(rows.num_rows), columns, unit):
        summary = _summary(row, row.read(given, raw)[0], given)
        found.append(
            Annotated(row.at, 1, summary.title, partial(_row_notes, row, given, summary, unit), **summary.members)
        )
    return found


class _Summary(NamedTuple):
    """A row: as members of Annotated; the image that it shows, by column."""

    members: dict[str, Any]
    title: str
    image: str
    of_image: dict


def _summary(row: Row, read: dict | Reject | Part | None, given: Values) -> _Summary:
    members: dict[str, Any] = {"table": f"{row.table.schema_name}.{row.table.table_name}"}
    shown: dict[str, dict] = {}
    half = _half(row, row.said(given), given) if isinstance(read, Part) else {}
    fault = read if isinstance(read, Reject) else half
    if isinstance(fault, Reject):
        why = f"expected {fault.expected}, found {fault.found}"
        members |= {"fault": (fault.kind, why), "fault_at": fault.byte_offset, "change_seq": fault.change_seq}
    elif isinstance(read, Part):
        said = row.said(given)
        is_before = said.operation == BEFOREIMAGE
        members |= {"operation": "UPDATE", "transaction_id": said.transaction_id, "position": said.stream_position}
        members |= {"change_seq": said.change_seq, "part": int(is_before)}
        shown = {BEFORE if is_before else AFTER: fault}
    elif isinstance(read, dict):
        members |= {"operation": read["operation"], "change_seq": read["change_seq"]}
        members |= {"transaction_id": read.get("transaction_id"), "position": read.get("stream_position")}
        shown = {image: read[image] for image in (BEFORE, AFTER) if read.get(image) is not None}
    title = members.get("operation") or ("control table" if read is None else "row")
    [(image, of_image)] = shown.items() if len(shown) == 1 else [("", {})]
    return _Summary(members, title, image, of_image)


def _row_notes(row: Row, given: Values, summary: _Summary, unit: Unit) -> list[Note]:
    """A note for each cell of Parquet."""
    columns, found = given.columns, []
    names = _columns_of(row, columns)
    for place, value in enumerate(given.values):
        note = Note(row.at, 0, columns.names[place])
        if isinstance(value, Refused):
            found.append(note._replace(meaning=f"expected {value.expected}, found {value.found}", fault=value.kind))
            continue
        text = "null" if value is None else _meaning(place, value, columns, unit)
        name = names.get(place)
        is_shown = name in summary.of_image
        column = {"column": name, "value": summary.of_image[name], "image": summary.image} if is_shown else {}
        found.append(note._replace(meaning=text, **column))
    return found


def _record(framed: Framed, unit: Unit, start: int, end: int, kind: str, cells: list, ordinal: int) -> Annotated:
    row, read, _ = plain_row(framed, unit, start, end, kind, cells, ordinal)
    values, columns = _values(framed, row, start, end, kind, cells)
    members, title, image, of_image = _summary(row, read, Values(values, columns))
    names = {place: name for place, name in _columns_of(row, columns).items() if name in of_image}

    def notes() -> list[Note]:
        make = _json_notes if framed.is_json else _cell_notes
        return make(framed, start, end, cells, columns, names, image, of_image, unit)

    return Annotated(start, end - start, title, notes, **members)


def _values(framed: Framed, row: Row, start: int, end: int, kind: str, cells: list) -> tuple[list, Columns]:
    """The values of a record, as far as it can be read."""
    try:
        if kind == text.ROW:
            return values_of(framed, start, end, cells, row.table)
    except (Refused, Wrong):
        pass
    names = framed.context["columns"] or []
    return [None] * len(names), header.columns_of(names, framed.options)


def _half(row: Row, said: header.Said, given: Values) -> dict | Reject:
    """The image that a part shows by itself: of a row of before, whose mask its update has, what is not null. Or what
    is wrong in it: its update is then rejected."""
    try:
        half = row.half(said, given, None)
        return half.get("after") or half.get("before") or {}
    except Refused as no:
        return row.reject(no)


def _columns_of(row: Row, columns: Columns) -> dict[int, str]:
    """The names of columns by place, as the contract has them."""
    known = {column.name.lower(): column.name for version in row.table.versions for column in version.columns}
    return {place: known[name.lower()] for place, name in columns.data.items() if name.lower() in known}


def _cell_notes(framed, start, end, cells, columns, names, image, of_image, unit) -> list[Note]:
    """Of delimited text: a leaf for each cell, with the delimiter after it."""
    found, at = [], start
    for place, cell in enumerate(cells):
        stop = framed.byte(cells[place + 1].start) if place + 1 < len(cells) else end
        name = columns.names[place] if place < len(columns.names) else f"cell {place + 1}"
        note = Note(at, stop - at, name, _meaning(place, _text_of(cell, framed), columns, unit))
        if place in names:
            note = note._replace(column=names[place], value=of_image[names[place]], image=image)
        found.append(note)
        at = stop
    return found or [Note(start, end - start, "text", printable(framed.data[start:end]))] * (end > start)


def _text_of(cell: text.Cell, framed: Framed) -> str:
    """The text of a cell; as the file is delimited where it is none of the character set."""
    try:
        return text.value(cell, framed.view, framed.dialect)
    except Wrong:
        return cell.text


def _json_notes(framed, start, end, cells, columns, names, image, of_image, unit) -> list[Note]:
    """Of a JSON line: its members."""
    by_name = {columns.names[place].lower(): (place, name) for place, name in names.items()}

    def mark(path, note: Note, value: Any) -> Note:
        place, name = by_name.get(f"{path[-1]}".lower(), (-1, "")) if len(path) == 1 else (-1, "")
        return note._replace(column=name, value=of_image[name], image=image) if place >= 0 else note

    found = json_notes(framed.data[start:end], mark).notes
    return [moved for note in found if (moved := clipped(note, 0, end - start, start)) is not None]


def _meaning(place: int, cell: Any, columns: Columns, unit: Unit) -> str:
    """What a cell says; of a mask the columns that it names."""
    shown = text_of(cell)
    if place != columns.known.get("change_mask") or not cell or not unit.context.get("masks"):  # of control tables
        return shown
    try:
        found = images.places(cell, columns, unit.masks) or set()
    except Refused:
        return shown
    return f"{shown}, columns changed: {', '.join(columns.data[n] for n in sorted(found)) or 'none'}"
