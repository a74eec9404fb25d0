"""Updates and their before-images: two rows of a change table with one change_seq, in whatever order, block and file
they come. The change stands at the row of the update; a row that comes again as it is belongs to the same change.
"""

import json
from typing import Any

from inlet.codecs.qlik.change_table import block, header
from inlet.codecs.qlik.change_table.header import BEFOREIMAGE
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.row import Row, Unit, Values
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Joined, Waiting
from inlet.errors import Reject
from inlet.fields.json_exact import Number
from inlet.source import Source
from inlet.table import Table


def noted(values: list) -> str:
    """What a part keeps of a row that has no bytes of its own: its values."""
    return json.dumps([_written(value) for value in values], ensure_ascii=False)


def _written(value: Any):
    if isinstance(value, Number):
        return {"number": str(value)}
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _read(value: Any):
    if isinstance(value, dict):
        return Number(value["number"]) if "number" in value else bytes.fromhex(value["hex"])
    return value


def join(key: str, parts: list[Waiting], source: Source, tables: dict[str, Table]) -> Joined:
    """Settle an update and its before-image. In: parts of a key."""
    options = source.options_as(Options)
    rows = [_row(part, source, tables, options) for part in parts]
    by_word: dict[str, list[int]] = {}
    for n, (_, _, said) in enumerate(rows):
        by_word.setdefault(said.operation, []).append(n)
    updates, befores = by_word.get("UPDATE", []), by_word.get(BEFOREIMAGE, [])
    if not updates or not befores:
        return Joined(waiting=parts)
    again = [n for word in (updates, befores) for n in word[1:]]
    others = [n for word in (updates, befores) for n in word[1:] if rows[n][1].values != rows[word[0]][1].values]
    first, (row, given, said) = updates[0], rows[updates[0]]
    before = rows[befores[0]][1]
    try:
        change = row.change(said, given, before)
    except Refused as no:
        return Joined(rejects=_rejected(no, parts, rows, first, befores))
    other = Refused(
        "conflicting_duplicate", (), "the content of the row that came first with its change_seq", "another"
    )
    rejects = [(parts[n].unit_id, rows[n][0].reject(other)) for n in others]
    control = [parts[n] for n in (befores[0], *again) if n not in others] if others else []
    return Joined([change | {"unit_id": parts[first].unit_id}], rejects, control=control)


def half(part: Waiting, change_mask: bytes | None, source: Source, tables: dict[str, Table]) -> dict | Reject:
    """The image that a part holds of a change that is known."""
    row, given, said = _row(part, source, tables, source.options_as(Options))
    try:
        return row.half(said, given, change_mask)
    except Refused as no:
        return row.reject(no)


def _rejected(no: Refused, parts: list[Waiting], rows: list, first: int, befores: list[int]) -> list:
    """Both rows of a pair as rejects, with what is wrong in one of them."""
    found: list[tuple[str, Reject]] = []
    for n, part in enumerate(parts):
        row: Row = rows[n][0]
        own = n == first or no.kind == "missing_key" and n in befores
        found.append((part.unit_id, row.reject(no if own else Refused(no.kind, (), no.expected, no.found, no.column))))
    return found


def _row(part: Waiting, source: Source, tables: dict[str, Table], options: Options) -> tuple[Row, Values, header.Said]:
    """A part's row, read again."""
    context = part.context | {"header_due": False, "len_mark": 0}
    at, length = part.part.unit_offset, part.part.unit_length
    if context["format"] == "rows":
        columns = header.columns_of(context["columns"], options)
        given = Values([_read(value) for value in json.loads(part.part.note)], columns)
        row = Row(Unit(context, source, tables), at, length, part.data)
    else:
        framed = block.Framed(part.data, context, options, True, True)
        piece = next(iter(framed.pieces()))
        row = Row(Unit(context, source, tables), at, length, part.data)
        given = block.values_of(framed, 0, len(part.data), piece.cells, row.table)
    return row, given, row.said(given)
