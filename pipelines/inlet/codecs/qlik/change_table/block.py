"""A block of a text file, delimited or JSON, as blocks are cut and as they are read."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from inlet.codecs.qlik.change_table import header, json_lines, opening, text
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.row import Row, Unit, Values
from inlet.codecs.qlik.change_table.text import BETWEEN, BROKEN, HEADER, ROW, Piece
from inlet.codecs.qlik.members import Refused, shown
from inlet.codecs.results import Block, Control, Cut, Decoded, Part
from inlet.errors import Reject
from inlet.fields import json_exact
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

OPTIONS_DIFFER = "options_differ"  # a control event: the sidecar says other delimiters than the source's options
LEN_SHOWN = 40


class Framed:
    """Some bytes of a settled file, and the pieces in them."""

    def __init__(self, data: bytes, context: dict, options: Options, is_final: bool, may_end_so: bool):
        self.data, self.context, self.options, self.is_final = data, context, options, is_final
        self.may_end_so = may_end_so
        self.is_json = context["format"] == "json"
        if not self.is_json:
            self.columns: Columns = header.columns_of(context["columns"], options)
            self.dialect = opening.dialect_of(context, options)
            self.view = text.view_of(data, self.dialect)
            self.shape = opening.shape_of(context, self.columns, self.dialect)

    def pieces(self) -> Iterator[Piece]:
        if self.is_json:
            yield from json_lines.lines(self.data, self.may_end_so)
            return
        due = self.context["header_due"]
        yield from text.pieces(self.view, self.dialect, self.shape, due, self.is_final, self.may_end_so)

    def byte(self, at: int) -> int:
        return at if self.is_json else self.view.byte(at)

    def is_undone(self, end: int) -> bool:
        """Will no more bytes tell where the record behind the last piece ends?"""
        if self.is_json:
            return len(self.data) - end > text.LEN_RECORD
        at = end if self.view.starts is None else self.view.starts.index(end)
        return at < len(self.view.text) and text.is_undone(self.view, at, self.dialect, self.is_final)


def cut(data: bytes, context: dict, source: Source, tables: dict[str, Table], len_block: int, is_final: bool) -> Cut:
    """Cut whole records into blocks."""
    options = source.options_as(Options)
    if "format" not in context:
        settled = opening.settle(data, context, source, tables, options, is_final)
        if settled is None:
            return Cut([], context, 0)
        if isinstance(settled, Reject):
            return Cut([], context, 0, settled)
        context = settled
    framed = Framed(data, context, options, is_final, is_final and _is_last_whole(context, options))
    blocks: list[Block] = []
    start = end = num = 0
    at_start = before = context
    for piece in framed.pieces():
        end = framed.byte(piece.end)
        is_record = piece.kind in (ROW, BROKEN)
        num += is_record
        context = context | {"row_ordinal": context["row_ordinal"] + is_record, "header_due": False}
        if end - start >= len_block:
            blocks.append(Block(start, end - start, before, num))
            start, num, before = end, 0, context
    if end > start:
        blocks.append(Block(start, end - start, before, num))
    num_said = context.get("num_records")
    if is_final and num_said is not None and context["row_ordinal"] != num_said:
        no = Refused("contradiction", (), f"{num_said} records, as its .dfm says", f"{context['row_ordinal']}")
        return Cut([], at_start, 0, opening.rejected(no, data, tables.get(context["table"])))
    problem = None
    if end < len(data) and framed.is_undone(end):
        no = Refused("wrong_shape", (), *_lost(context, data[end : end + LEN_SHOWN]))
        problem = opening.rejected(no, data[end:], tables.get(context["table"]))
        problem = replace(problem, unit_offset=end, byte_offset=end)
    return Cut(blocks, context, end, problem)


def _is_last_whole(context: dict, options: Options) -> bool:
    """Is a last record taken that lacks its delimiter? A sidecar's count of records holds such a file to it."""
    return options.last_record == "whole" or context.get("num_records") is not None


def _lost(context: dict, found: bytes) -> tuple[str, str]:
    expected = "quotes that end within their record, and a certain beginning of another record behind it"
    return expected, repr(found.decode("latin-1"))


def decode(data: bytes, context: dict, source: Source, tables: dict[str, Table]) -> Decoded:
    """Read a block."""
    options = source.options_as(Options)
    framed = Framed(data, context, options, True, True)
    unit = Unit(context, source, tables)
    changes: list[dict] = []
    rejects: list[Reject] = []
    parts: list[Part] = []
    controls = _differing(context)
    bytes_framing = num_control = end = 0
    ordinal = context["row_ordinal"]
    pieces = framed.pieces()
    while end < len(data):
        piece = next(pieces, None)
        if piece is None:  # the block ends with what hides its end
            start, stop, kind, cells = end, len(data), BROKEN, []
        else:
            start, stop, kind, cells = framed.byte(piece.start), framed.byte(piece.end), piece.kind, piece.cells
        end = stop
        if kind in (HEADER, BETWEEN):
            bytes_framing += stop - start
            continue
        row = _row(framed, unit, start, stop, cells, ordinal)
        ordinal += 1
        found: dict | Part | Reject | None
        events: list[Control] = []
        if kind == BROKEN:
            expected = f"{len(context['columns'])} cells whose quotes end within the record"
            line = data[start:stop].split(b"\n")[0][:LEN_SHOWN].decode("latin-1")
            found = row.reject(Refused("wrong_shape", (), expected, repr(line)))
        else:
            try:
                found, events = row.read(values_of(framed, start, stop, cells, row.table))
            except Refused as no:
                found = row.reject(no)
            except Wrong as wrong:
                refused = Refused(wrong.kind, (), wrong.expected, wrong.found)
                found = replace(row.reject(refused), byte_offset=start + wrong.offset)
        controls += events
        if found is None:
            num_control, bytes_framing = num_control + 1, bytes_framing + stop - start
            continue
        {dict: changes, Reject: rejects, Part: parts}[type(found)].append(found)  # type: ignore[attr-defined]
    return Decoded(changes, rejects, controls, bytes_framing, num_control, (), parts)


def _differing(context: dict) -> list[Control]:
    """The control event of a file whose sidecar says other than the source's options, with its first block."""
    if context["row_ordinal"] or not context.get("differs"):
        return []
    detail = json.dumps({"file": context["name"], "sidecar": context["differs"]}, ensure_ascii=False)
    schema, table = context["table"].split(".")
    return [Control(OPTIONS_DIFFER, 0, 0, schema, table, detail=detail)]


def _row(framed: Framed, unit: Unit, start: int, stop: int, cells: list, ordinal: int) -> Row:
    raw = framed.data[start:stop]

    def offset_of(place) -> int:
        if framed.is_json:
            name = place if isinstance(place, str) else _member(framed, raw, place)
            return json_exact.offset(raw, (name,)) if name else 0
        return framed.byte(cells[place].start) - start if place < len(cells) else 0

    return Row(unit, start, stop - start, raw, ordinal, offset_of)


def _member(framed: Framed, raw: bytes, place: int) -> str | None:
    """The member of a JSON row that is the column at a place."""
    found = list(json_exact.parse(raw))
    names = framed.context["columns"] or found
    lower = names[place].lower()
    return next((name for name in found if name.lower() == lower), None)


def values_of(framed: Framed, start: int, stop: int, cells: list, contract: Table) -> Values:
    """The values of a record. Raises: Wrong, Refused."""
    if framed.is_json:
        try:
            found = json_lines.read(framed.data[start:stop], framed.context, contract, framed.options)
        except RecursionError:
            raise Wrong("invalid_json", 0, "JSON nested as deep as images are", "nested too deep") from None
        return Values(found.values, found.columns)
    if len(cells) != len(framed.columns.names):
        expected = f"{len(framed.columns.names)} cells, one for each column"
        raise Refused("bad_column_count", (min(len(cells), len(framed.columns.names)) - 1,), expected, f"{len(cells)}")
    values: list[Any] = []
    is_header = framed.columns.header
    for place, cell in enumerate(cells):
        values.append(_cell(cell, place, place in is_header, framed))
    return Values(values, framed.columns)


def _cell(cell: text.Cell, place: int, is_header: bool, framed: Framed) -> str | None | Refused:
    """A cell's text; None for null; why it is neither."""
    null = framed.context["dialect"]["null"]
    try:
        found = text.value(cell, framed.view, framed.dialect)
    except Wrong as wrong:
        return Refused(wrong.kind, (place,), wrong.expected, wrong.found)
    if found != null:
        return found
    if not cell.is_quoted or is_header or framed.options.quoted_null == "null":
        return None
    if framed.options.quoted_null == "text":
        return found
    expected = "a value, or null_text without quotes; the option quoted_null tells what it is in quotes"
    return Refused("ambiguous_layout", (place,), expected, shown(found))
