"""Rows of change tables and loads through the compiled walks: Arrow batches of changes, and which rows are left to the
plain path.

An update and its before-image that lie in one unit are one change at once; both are left to `join` where one of them is
not certain.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import json_batches, json_columns
from inlet.codecs.qlik import column_lists, types
from inlet.codecs.qlik.change_table import scan, text, walk
from inlet.codecs.qlik.change_table.change_rows import CHANGES, batch_of
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.images import Reading
from inlet.codecs.qlik.change_table.row import NUM_ROWS, Unit
from inlet.codecs.qlik.change_table.scan import END, NONE, START
from inlet.codecs.qlik.change_table.walk import (
    BEFOREIMAGE,
    LEN_SEQ,
    REFRESH,
    T_AFTER,
    T_BEFORE,
    T_CHANGE_MASK,
    T_COLUMN_MASK,
    T_HEADER,
    TEXTS,
    UPDATE,
)
from inlet.fields import variant
from inlet.fields.charset import UTF8
from inlet.fields.compiled.json_values import OPTIONAL, TEXT
from inlet.table import Table

FORMS = {("hex", "big"): walk.HEX, ("binary", "big"): walk.BIG, ("binary", "little"): walk.LITTLE}


class Cells(NamedTuple):
    """The cells of some rows: places in a buffer by row and column, as scan.py has them."""

    data: np.ndarray
    cells: np.ndarray
    forms: list[int]  # by column: what its cells are, as walk.py has it
    escape: int
    bounds: np.ndarray  # where each row begins and ends in its unit
    is_certain: np.ndarray
    is_doubled: bool = True  # is an escape a quote that is written twice?


class Scanned(NamedTuple):
    """The cells of some bytes, how the scan ended, and where."""

    found: Cells
    state: int
    end: int


class Walked(NamedTuple):
    """What is certain of some rows."""

    changes: pa.RecordBatch
    is_certain: np.ndarray  # by row
    num_befores: int  # before-images that went into the change of their update
    bounds: np.ndarray


def scanned(
    data: bytes, dialect: text.Dialect, num_cells: int, at: int, may_end_so: bool, has_cells: bool
) -> Scanned | None:
    """The records of some bytes from a place on, with their cells or without; None where text.py has to read them."""
    is_plain = all(len(mark) < 2 for mark in (dialect.quote, dialect.escape))
    if dialect.set.mode != UTF8 or not is_plain or len(data) > text.LEN_RECORD or not is_utf8(data):
        return None
    delimiter, record_delimiter = (np.frombuffer(mark.encode("latin-1"), np.uint8) for mark in dialect[:2])
    quote = ord(dialect.quote) if dialect.quote else NONE
    escape = ord(dialect.escape) if dialect.escape else quote
    letters = np.frombuffer(data, np.uint8)
    room = scan.room(letters[at:], record_delimiter.tobytes(), num_cells)
    cells, bounds = np.zeros((room if has_cells else 1, num_cells, 3), np.int32), np.zeros((room, 2), np.int32)
    state, num, end = scan.scan(
        letters, at, len(data), delimiter, record_delimiter, quote, escape, may_end_so, cells, bounds
    )
    is_certain = np.ones(num, np.bool_)
    forms = [walk.AS_TEXT] * num_cells
    found = Cells(letters, cells[:num], forms, escape, bounds[:num], is_certain, escape == quote)
    return Scanned(found, state, end)


def is_utf8(data: bytes) -> bool:
    try:
        return data.decode() is not None
    except UnicodeDecodeError:
        return False


def mark_nulls(found: Cells, null: str, is_header: set[int], quoted_null: str) -> bool:
    """Mark the nulls among cells of text. Out: False where text.py has to find them."""
    marks = null.encode()
    if found.escape != NONE and found.escape in marks:
        return False
    headers = np.array([place in is_header for place in range(found.cells.shape[1])], np.bool_)
    of_null = np.frombuffer(marks, np.uint8)
    is_null, is_text = quoted_null == "null", quoted_null == "text"
    may_be_escaped = len(marks) > 0 and not found.is_doubled
    scan.nulls(
        *(found.data, found.cells, len(found.cells), of_null, headers),
        *(is_null, is_text, may_be_escaped, found.is_certain),
    )
    return True


class Layout:
    """A version of a contract, and the columns of a file, as integers."""

    def __init__(self, contract: Table, columns: Columns, forms: list[int]):
        by_name = {name.lower(): place for place, name in columns.data.items()}
        self.contract = contract
        of_table = json_columns.Columns([contract], json_columns.TYPES)
        self.plan, _, _, self.order = of_table.plans
        self.metadata = of_table.metadata[0].as_py()
        places = [by_name.get(column.name.lower(), NONE) for column in contract.columns]
        self.place_of = np.array(places, np.int64)
        self.is_large = np.array([types.is_large(column.source_type) for column in contract.columns], np.bool_)
        others = columns.others | {name: columns.known[name] for name in ("partition_name",) if name in columns.known}
        self.others = np.array(list(others.values()), np.int64)
        self.plan_of_others = np.array([[0, 0, TEXT, 0, 0, OPTIONAL]] * len(others), np.int64).reshape(-1, 6)
        self.order_of_others = np.array(json_columns.order_of(list(others)), np.int64)
        self.metadata_of_others = variant.metadata(variant.in_order(list(others)))
        self.forms = np.array([forms[place] for place in (*places, *others.values())], np.int64)  # of NONE any
        self.is_known = by_name.keys() <= {column.name.lower() for column in contract.columns}


def walked(found: Cells, columns: Columns, unit: Unit, first_row: int) -> Walked | None:
    """What is certain of rows; None where nothing is."""
    num, context = len(found.cells), unit.context
    operations, bits = np.full(num, REFRESH), np.zeros((num, walk.len_mask(len(columns.names))), np.uint8)
    times, has_time, has_mask = np.zeros(num, np.int64), np.zeros(num, np.bool_), np.zeros(num, np.bool_)
    befores, is_before = np.full(num, NONE), np.zeros(num, np.bool_)
    lengths = np.where(found.cells[:, :, START] == NONE, 0, found.cells[:, :, END] - found.cells[:, :, START])
    token, len_rows = walk.token_of(int(lengths.max(initial=0))), lengths.sum(axis=1)
    seqs = None
    if context["kind"] == "load":
        if first_row + num >= NUM_ROWS:
            return None
        ends = [f"{context['place']}{first_row + n:08d}" for n in (0, max(num - 1, 0))]
    else:
        places = [columns.known.get(name, NONE) for name in HEADS]
        known = np.array(places, np.int64)
        walk.heads(
            *(found.data, found.cells, num, known, _form(unit.masks, columns), _allowed(columns), token),
            *(operations, times, has_time, bits, has_mask, found.is_certain),
        )
        seqs, is_seq = _seqs(found, places[0])
        _pair(unit.options.before_images, seqs, is_seq, operations, found.is_certain, befores, is_before)
        certain = seqs[found.is_certain]
        if not len(certain):
            return None
        ends = [one.decode() for one in pc.min_max(pa.array(certain, pa.binary())).as_py().values()]
    contract = unit.table.at(ends[0])
    layout = Layout(contract, columns, found.forms)
    len_images = int(len_rows.sum()) + walk.len_image(0, num, len(layout.plan) + len(layout.others))
    len_images = max(len_images, num * len(layout.metadata))
    if not layout.is_known or contract is not unit.table.at(ends[1]) or len_images > json_batches.LEN_MOST:
        return None
    if context.get("listed") and column_lists.differing(context["listed"], contract):
        return None  # which every row is rejected for
    rows = np.flatnonzero(found.is_certain & ~is_before)
    texts, stops, valid = _images(found, rows, befores, operations, bits, has_mask, layout, unit, token, len_rows)
    is_lost = np.flatnonzero(~found.is_certain[rows] & (befores[rows] != NONE))
    found.is_certain[befores[rows[is_lost]]], is_before[befores[rows[is_lost]]] = False, False
    own = (texts, stops, valid, operations, times, has_time, seqs)
    changes = _batch(found, columns, layout, rows, first_row, *own)
    return Walked(changes, found.is_certain, int(is_before.sum()), found.bounds)


HEADS = (  # as walk.SEQ to walk.TRANSACTION
    "change_seq",
    "change_oper",
    "change_mask",
    "operation",
    "timestamp",
    "stream_position",
    "transaction_id",
)


def _form(open_: list[Reading], columns: Columns) -> int:
    """How masks are written; NONE where that is open, or base64: then a row is certain that has none."""
    return FORMS.get(open_[0], NONE) if "change_mask" in columns.known and len(open_) == 1 else NONE


def _allowed(columns: Columns) -> np.ndarray:
    """The bits that a mask may have."""
    allowed = np.zeros(walk.len_mask(len(columns.names)), np.uint8)
    for place in columns.data:
        allowed[place >> 3] |= 1 << (place & 7)
    return allowed


def _seqs(found: Cells, place: int) -> tuple[np.ndarray, np.ndarray]:
    """The change_seq of rows, of those that have one."""
    starts, ends = found.cells[:, place, START], found.cells[:, place, END]
    has_one = (starts != NONE) & (ends - starts == LEN_SEQ)
    letters = np.zeros((len(starts), LEN_SEQ), np.uint8)
    letters[has_one] = found.data[starts[has_one][:, None] + np.arange(LEN_SEQ)]
    return letters.view(f"S{LEN_SEQ}")[:, 0], has_one


def _pair(policy: str, seqs, is_seq, operations, is_certain, befores, is_before) -> None:
    """Find the before-image of each update. The others of both are left to the plain path, but for updates of sources
    that store no before-images."""
    of_pair = (operations == UPDATE) | (operations == BEFOREIMAGE)
    if policy == "stored":
        among = np.flatnonzero(is_seq & (of_pair | ~is_certain))
        order = among[np.argsort(seqs[among], kind="stable")]
        _, first, count = np.unique(seqs[order], return_index=True, return_counts=True)
        both = first[count == 2]
        one, other = order[both], order[both + 1]
        swapped = operations[one] == BEFOREIMAGE
        one[swapped], other[swapped] = other[swapped], one[swapped].copy()
        is_pair = (operations[one] == UPDATE) & (operations[other] == BEFOREIMAGE) & is_certain[one] & is_certain[other]
        befores[one[is_pair]] = other[is_pair]
        is_before[other[is_pair]] = True
        is_certain &= ~of_pair | (befores != NONE) | is_before
    else:
        is_certain &= ~of_pair if policy == "auto" else operations != BEFOREIMAGE


def _images(found: Cells, rows, befores, operations, bits, has_mask, layout: Layout, unit: Unit, token, of_row):
    num_columns, num = len(layout.plan), len(rows)
    num_all = num_columns + len(layout.others)
    own, of_befores = of_row[rows], np.where(befores[rows] == NONE, 0, of_row[befores[rows]])
    longest = int(np.maximum(own, of_befores).max(initial=0))
    size = walk.len_image(int(np.maximum(own, of_befores).sum()), num, num_all)
    len_masks = walk.len_mask(num_columns) * num
    texts = tuple(np.zeros(len_masks if t in (T_CHANGE_MASK, T_COLUMN_MASK) else size, np.uint8) for t in TEXTS)
    stops, valid = np.zeros((len(TEXTS), num + 1), np.int64), np.zeros((len(TEXTS), num), np.bool_)
    is_full = {"full": 1, "null_means_unchanged": 0, None: NONE}[unit.options.without_mask]
    work = np.zeros((2, longest + walk.LEN_VALUE * num_all), np.uint8)
    places = np.zeros((2, 2, max(num_columns, len(layout.others))), np.int64)
    walk.images(
        *(found.data, found.cells, rows, befores[rows], operations, bits, has_mask, is_full),
        *(layout.place_of, layout.plan, layout.order, layout.is_large, layout.forms),
        *(layout.others, layout.plan_of_others, layout.order_of_others, found.escape),
        *(token, work, places[0], places[1], np.zeros(num_columns, np.bool_)),
        *(texts, stops, valid, found.is_certain),
    )
    return texts, stops, valid


def _batch(found, columns, layout, rows, first_row, texts, stops, valid, operations, times, has_time, seqs):
    def binary(which: int) -> pa.Array:
        return json_batches.text(texts[which], stops[which], valid[which], pa.binary())

    def image(which: int, metadata: bytes) -> pa.Array:
        return json_batches.image(binary(which), pa.array([metadata], pa.binary()), valid[which], 0)

    def cell(name: str) -> pa.Array:
        if name not in columns.known:
            return pa.nulls(len(rows), pa.string())
        return _text(found, rows, columns.known[name])

    is_load = seqs is None
    is_sure = found.is_certain[rows]
    arrays = {
        "unit_offset": pa.array(found.bounds[rows, 0], pa.int64()),
        "unit_length": pa.array(found.bounds[rows, 1] - found.bounds[rows, 0], pa.int64()),
        "row_ordinal": pa.array(first_row + rows) if is_load else pa.nulls(len(rows), pa.int64()),
        "operation": pa.array(operations[rows].astype(np.int32)),
        "table_version": pa.array(np.full(len(rows), layout.contract.version, np.int32)),
        "change_seq": pa.nulls(len(rows), pa.string()) if is_load else cell("change_seq"),
        "stream_position": cell("stream_position"),
        "transaction_id": cell("transaction_id"),
        "change_timestamp": json_batches.number(times[rows], has_time[rows], CHANGES.field("change_timestamp").type),
        "change_mask": binary(T_CHANGE_MASK),
        "column_mask": binary(T_COLUMN_MASK),
        "before": image(T_BEFORE, layout.metadata),
        "after": image(T_AFTER, layout.metadata),
        "header": image(T_HEADER, layout.metadata_of_others),
    }
    whole = pa.RecordBatch.from_arrays([arrays[name] for name in CHANGES.names], schema=CHANGES)
    return whole if is_sure.all() else whole.filter(pa.array(is_sure))


def _text(found: Cells, rows, place: int) -> pa.Array:
    """Cells of a header column as text; null where they are empty."""
    starts, ends = found.cells[rows, place, START], found.cells[rows, place, END]
    lengths = np.where(starts == NONE, 0, ends - starts)
    stops = np.concatenate([[0], np.cumsum(lengths)])
    letters = np.empty(stops[-1], np.uint8)
    walk.copy(found.data, starts, stops, letters)
    return json_batches.text(letters, stops, lengths > 0, pa.string())


def with_certain(fast: Walked | None, changes: list[dict]) -> pa.RecordBatch:
    """All changes of a unit in its order: those that are certain, and those of the plain path."""
    if not fast or not changes:
        return fast.changes if fast else batch_of(changes)
    every = pa.concat_batches([fast.changes, batch_of(changes)])
    return every.take(pc.sort_indices(every["unit_offset"]))
