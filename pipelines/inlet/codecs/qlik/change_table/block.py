"""A block of a text file, delimited or JSON, as blocks are cut and as they are read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.change import LEN_SEQ
from inlet.codecs.qlik import dfm
from inlet.codecs.qlik.change_table import arrow, header, json_lines, opening, scan, text
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.row import Row, Unit, Values
from inlet.codecs.qlik.change_table.text import BROKEN, ROW, Piece
from inlet.codecs.qlik.members import Refused, shown
from inlet.codecs.results import Block, Control, Cut, Decoded, Definition, Part
from inlet.errors import Reject
from inlet.fields import json_exact
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

OPTIONS_DIFFER = "options_differ"  # a control event: the sidecar says other delimiters than the source's options
SIDECAR_OF_OTHERS = "sidecar_of_others"  # a control event: the file is read with a sidecar that is not its own
LEN_SHOWN = 40
NUM_LOOKED_AT = 1 << 16  # records at a time


class Framed:
    """Some bytes of a settled file, and the pieces in them."""

    def __init__(self, data: bytes, context: dict, options: Options, is_final: bool, may_end_so: bool):
        self.data, self.context, self.options, self.is_final = data, context, options, is_final
        self.may_end_so = may_end_so
        self.len_mark = context.get("len_mark", 0) if data.startswith(dfm.BOM) else 0
        self.is_json = context["format"] == "json"
        if not self.is_json:
            self.columns: Columns = header.columns_of(context["columns"], options)
            self.dialect = opening.dialect_of(context, options)
            self.view = text.view_of(data, self.dialect)
            self.shape = opening.shape_of(context, self.columns, self.dialect)

    def pieces(self) -> Iterator[Piece]:
        if self.is_json:
            yield from json_lines.lines(self.data, self.may_end_so, self.len_mark)
            return
        due = self.context["header_due"]
        ends = (self.is_final, self.may_end_so)
        yield from text.pieces(self.view, self.dialect, self.shape, due, *ends, self.len_mark)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each piece ends, and whether it is a record."""
        scanned = self.scanned(False)
        if scanned and (scanned.state == scan.WHOLE or not self.is_final and scanned.state == scan.OPEN):
            ends, num = scanned.found.bounds[:, 1], len(scanned.found.bounds)
            if ends[-1:].sum() < scanned.end:  # what follows the last record is none
                ends = np.append(ends, ends.dtype.type(scanned.end))
            return ends, np.arange(len(ends)) < num
        found = ((self.byte(piece.end), piece.kind in (ROW, BROKEN)) for piece in self.pieces())
        pieces = np.fromiter(found, [("end", np.int64), ("is_record", np.bool_)])
        return pieces["end"], pieces["is_record"]

    def scanned(self, has_cells: bool) -> arrow.Scanned | None:
        """What the compiled scan finds; None where only `pieces` can."""
        at = self.len_mark
        if self.is_json or not self.data:
            return None
        if self.context["header_due"]:
            limit = min(len(self.view.text), text.LEN_RECORD)
            state, at, _ = text.record(self.view.text, at, limit, self.dialect)
            if state != text.WHOLE:
                return None
        scanned = arrow.scanned(self.data, self.dialect, len(self.columns.names), at, self.may_end_so, has_cells)
        return None if scanned and self._hides_records(scanned) else scanned

    def _hides_records(self, scanned: arrow.Scanned) -> bool:
        """Is one of the records over several lines none, for it holds a line that is certain to be another one?"""
        mark, found = ord(self.dialect.record_delimiter[-1]), scanned.found
        for n in range(0, len(found.bounds), NUM_LOOKED_AT):
            bounds = found.bounds[n : n + NUM_LOOKED_AT]
            first = bounds[0, 0]
            ends = np.flatnonzero(found.data[first : bounds[-1, 1]] == mark) + first + 1
            held = np.searchsorted(ends, bounds[:, 1]) - np.searchsorted(ends, bounds[:, 0], "right")
            spanning = bounds[held > 0].tolist()  # those that hold the last byte of the mark before their own end
            if any(text.holds_certain(self.view, start, end, self.dialect, self.shape) for start, end in spanning):
                return True
        return False

    def byte(self, at: int) -> int:
        return at if self.is_json else self.view.byte(at)

    def is_undone(self, end: int) -> bool:
        """Will no more bytes tell where the record after the last piece ends?"""
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
    end = at = 0
    ends, is_record = framed.ends()
    while at < len(ends):
        start, first = end, at
        enough = ends.dtype.type(min(start + len_block, len(data)))
        at = min(int(np.searchsorted(ends, enough)), len(ends) - 1) + 1
        end, num = int(ends[at - 1]), int(np.count_nonzero(is_record[first:at]))
        blocks.append(Block(start, end - start, context, num))
        context = _after(context, num)
    problem = None
    if end < len(data) and framed.is_undone(end):
        no = Refused("wrong_shape", (), *_lost(context, data[end : end + LEN_SHOWN]))
        problem = opening.rejected(no, data[end:], tables.get(context["table"]))
        problem = replace(problem, unit_offset=end, byte_offset=end)
    return Cut(blocks, context, end, problem)


def _after(context: dict, num: int) -> dict:
    """The context after so many records."""
    context = context | {"row_ordinal": context["row_ordinal"] + num, "header_due": False}
    context.pop("len_mark", None)
    context.pop("definition", None)  # it comes with the first block
    return context


def _is_last_whole(context: dict, options: Options) -> bool:
    """Is a last record taken that lacks its delimiter? A sidecar's count of records holds such a file to it."""
    return options.last_record == "whole" or context.get("num_records") is not None


def _lost(context: dict, found: bytes) -> tuple[str, str]:
    expected = "quotes that end within their record, and a certain beginning of another record after it"
    return expected, repr(found.decode("latin-1"))


def decode(data: bytes, context: dict, source: Source, tables: dict[str, Table]) -> Decoded:
    """Read a block."""
    options = source.options_as(Options)
    framed = Framed(data, context, options, True, True)
    unit = Unit(context, source, tables)
    changes: list[dict] = []
    rejects: list[Reject] = []
    parts: list[Part] = []
    controls = [] if context["row_ordinal"] else of_sidecar(context)
    fast = _certain(framed, unit)
    num_control = fast.num_befores if fast else 0
    len_records = pc.sum(fast.changes["unit_length"]).as_py() or 0 if fast else 0
    for ordinal, start, stop, kind, cells in _left(framed, fast):
        _, found, events = plain_row(framed, unit, start, stop, kind, cells, ordinal)
        controls += events
        if found is None:
            num_control += 1
            continue
        len_records += stop - start
        {dict: changes, Reject: rejects, Part: parts}[type(found)].append(found)  # type: ignore[attr-defined]
    every = arrow.with_certain(fast, changes)
    framing, listed = len(data) - len_records, definitions(context, every, parts, rejects)
    return Decoded(every, rejects, controls, framing, num_control, listed, parts)


def plain_row(
    framed: Framed, unit: Unit, start: int, stop: int, kind: str, cells: list, ordinal: int
) -> tuple[Row, dict | Part | Reject | None, list[Control]]:
    """What a record is, by the plain path, and the control events that come with it; None of a row of a control table.
    In: where it begins and ends, its kind and its cells; its ordinal in the file.
    """
    row = _row(framed, unit, start, stop, cells, ordinal)
    if kind == BROKEN:
        expected = f"{len(framed.context['columns'] or [])} cells whose quotes end within the record"
        line = framed.data[start:stop].split(b"\n")[0][:LEN_SHOWN].decode("latin-1")
        return row, row.reject(Refused("wrong_shape", (), expected, repr(line))), []
    try:
        return row, *row.read(values_of(framed, start, stop, cells, row.table))
    except Refused as no:
        return row, row.reject(no), []
    except Wrong as wrong:
        refused = Refused(wrong.kind, (), wrong.expected, wrong.found)
        return row, replace(row.reject(refused), byte_offset=start + wrong.offset), []


def _certain(framed: Framed, unit: Unit) -> arrow.Walked | None:
    """What the compiled walk is certain of."""
    scanned = framed.scanned(True)
    if not scanned or scanned.state != scan.WHOLE or framed.context["kind"] == "control":
        return None
    columns, null = framed.columns, framed.context["dialect"]["null"]
    if not arrow.mark_nulls(scanned.found, null, columns.header, framed.options.quoted_null):
        return None
    return arrow.walked(scanned.found, columns, unit, framed.context["row_ordinal"])


def _left(framed: Framed, fast: arrow.Walked | None) -> Iterator[tuple[int, int, int, str, list]]:
    """The records that the plain path reads: ordinal in the file, start and end, kind, cells."""
    ordinal = framed.context["row_ordinal"]
    if fast:
        for n in np.flatnonzero(~fast.is_certain).tolist():
            start, stop = fast.bounds[n].tolist()
            yield ordinal + n, start, stop, ROW, text.record(framed.view.text, start, stop, framed.dialect, True)[2]
        return
    end = 0
    pieces = framed.pieces()
    while end < len(framed.data):
        piece = next(pieces, None)
        if piece is None:  # the block ends with what hides its end
            start, stop, kind, cells = end, len(framed.data), BROKEN, []
        else:
            start, stop, kind, cells = framed.byte(piece.start), framed.byte(piece.end), piece.kind, piece.cells
        end = stop
        if kind in (ROW, BROKEN):
            yield ordinal, start, stop, kind, cells
            ordinal += 1


def of_sidecar(context: dict) -> list[Control]:
    """The control events of a file: its sidecar says other than the source's options, or is not its own."""
    told = {}
    if context.get("differs"):
        told[OPTIONS_DIFFER] = {"sidecar": context["differs"]}
    if not context.get("is_own", True):
        told[SIDECAR_OF_OTHERS] = {"sidecar": context["sidecar"]}
    schema, table = context["table"].split(".", 1)
    return [
        Control(kind, 0, 0, schema, table, detail=json.dumps({"file": context["name"]} | one, ensure_ascii=False))
        for kind, one in told.items()
    ]


def definitions(
    context: dict, changes: pa.RecordBatch, parts: Sequence[Part], rejects: Sequence[Reject] = ()
) -> list[Definition]:
    """The column list of a file's sidecar: in force from its first transaction on, else from the first change here,
    read or rejected.
    """
    listed = context.get("definition")
    if not listed:
        return []
    first = pc.min(changes["change_seq"]).as_py()
    seqs = [seq for seq in (first, *(p.change_seq for p in parts), *(r.change_seq for r in rejects)) if seq]
    seq = context.get("place", "").ljust(LEN_SEQ, "0") if context["kind"] == "load" else listed["change_seq"]
    seq = seq or min(seqs, default="")
    schema, table = context["table"].split(".", 1)
    return [Definition(schema, table, listed["columns"], listed["key"], seq, 0, listed["version"])] if seq else []


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
        found_ = f"{len(cells)}" + " or more" * (len(cells) == framed.shape.most)
        raise Refused("bad_column_count", (min(len(cells), len(framed.columns.names)) - 1,), expected, found_)
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
