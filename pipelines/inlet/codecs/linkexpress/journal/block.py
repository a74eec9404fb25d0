"""A piece of a file of usage journals is cut; a block becomes its changes, rejects and control events.

Nothing here looks at one journal after the other in Python, but at those that the compiled walks are not certain of.
"""

from dataclasses import replace

import numpy as np

from inlet.codecs.linkexpress.journal import change_rows, frame, frames, open_transactions, plain, walk
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.images import images, scratch_of
from inlet.codecs.linkexpress.journal.moments import BAD_TIME, NO_TIME, times
from inlet.codecs.linkexpress.journal.open_transactions import Cells
from inlet.codecs.linkexpress.journal.options import options_of, reading_in_force
from inlet.codecs.linkexpress.journal.piece import Piece
from inlet.codecs.linkexpress.journal.record import DATABASES, OPERATIONS, Reader, Walked
from inlet.codecs.linkexpress.journal.setup import setup_of
from inlet.codecs.linkexpress.reject import change_seq_of
from inlet.codecs.results import Block, Control, Cut, Decoded
from inlet.errors import Event, Reject
from inlet.fields.compiled import interpreter
from inlet.fields.wrong import Wrong
from inlet.source import Source

LEN_ORDINAL = 10  # digits of change_seq
DELETE = next(code for code, operation in OPERATIONS.items() if operation == "DELETE")


def cut(data: bytes, context: dict, source: Source, tables: dict, len_block: int, is_final: bool) -> Cut:
    """Cut whole messages, or journals of a stream, into blocks."""
    if context["reading"] is None:  # no whole record yet, so nothing to read it by
        return Cut([], context, 0)
    now = reading_in_force(context, options_of(source))
    if now.begun:
        return Cut([], context, 0, now.refused(data, context))
    read = context | {"reading": now.reading}
    setup = setup_of(read, source, tables)
    if setup.options.pair_divided != "none":
        return plain.cut(data, context, setup.reader, len_block, is_final)
    piece = Piece(data, read, source, tables)
    ends, nums = piece.packets()
    blocks: list[Block] = []
    start, num, transactions = 0, 0, Cells(context["open"], piece.num)
    while start < piece.end:
        last = min(int(np.searchsorted(ends, start + len_block)), len(ends) - 1)
        end, stop = int(ends[last]), int(nums[last])
        transactions.begin_block()
        piece.step(num, stop, transactions)
        before = {"open": transactions.of_block(), "record_ordinal": context["record_ordinal"] + num}
        blocks.append(Block(start, end - start, context | before, stop - num))
        start, num = end, stop
    context = context | {"open": transactions.open, "record_ordinal": context["record_ordinal"] + num}
    wrong = piece.wrong()
    problem = plain.rest(data, piece.end, wrong, change_seq_of(context, 0)) if wrong else None
    return Cut(blocks, context, piece.end, problem)


def decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """Read a block."""
    now = reading_in_force(context, options_of(source))
    decoded = _decode(data, context | {"reading": now.reading}, source, tables)
    return replace(decoded, rejects=[now.explained(one) for one in decoded.rejects])


def _decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """The same, by the reading of the context."""
    setup = setup_of(context, source, tables)
    if setup.options.pair_divided != "none":
        return _paired(data, context, setup.reader, tables)
    piece = Piece(data, context, source, tables, is_block=True)
    piece.step(0, piece.num, Cells(context["open"], piece.num))
    written = Written(piece, source.header)
    rows: list[dict] = []
    rejects: list[Reject] = []
    controls: list[Control] = []
    for i in np.flatnonzero(~written.is_done):
        found = _plain(piece, int(i), change_seq_of(context, int(i)) or "")
        if isinstance(found, dict):
            rows.append(found | {"record_ordinal": context["record_ordinal"] + int(i)})
        elif isinstance(found, Reject):
            rejects.append(found)
        else:
            controls.append(found)
    len_records = int((piece.records[:, frames.END] - piece.records[:, frames.START]).sum())
    len_framing = piece.end - len_records + sum(control.unit_length for control in controls)
    if piece.end < len(data):
        wrong = piece.wrong() or Wrong("truncated", len(data), "a whole record", f"{len(data) - piece.end} bytes")
        rejects.append(plain.rest(data, piece.end, wrong, change_seq_of(context, piece.num)))
    changes = change_rows.changes(written, rows, tables)
    return Decoded(changes, rejects, controls, len_framing, len(controls))


def _paired(data: bytes, context: dict, reader: Reader, tables: dict) -> Decoded:
    """Read a block whose divided updates are one change."""
    order, is_each = context["reading"]["byte_order"], bool(context.get(frame.EACH))
    walked = frame.walk(data, context["framing"], order, True, is_each)
    decoded = plain.decode(data, walked, reader, context["open"], lambda n: change_seq_of(context, n) or "")
    rows = [row | {"record_ordinal": int(row["change_seq"][-LEN_ORDINAL:])} for row in decoded.changes]
    return replace(decoded, changes=change_rows.of_rows(rows, sorted(tables)))


def _plain(piece: Piece, i: int, seq: str) -> dict | Control | Reject:
    """A record that has not become an image, as the plain reader reads it."""
    if i in piece.plain:
        record = piece.plain[i]
        return journal_reading.read(piece.data, record, piece.reader, seq)
    start, end = int(piece.records[i, frames.START]), int(piece.records[i, frames.END])
    is_out, event = bool(piece.events[i, open_transactions.IS_OUT]), _event(piece, i)
    if piece.tables[i] == walk.NO_CONTRACT and not is_out:
        wrong, at = piece.named[piece.resources[i]].refused, int(piece.heads[i, walk.RESOURCE])
        schema, _, name = wrong.table.partition(".")
        found = wrong.kind, start, end - start, at + wrong.offset, wrong.expected, wrong.found, piece.data[start:end]
        return Reject(*found, schema or None, name or None, None, seq, event)
    packet = piece.packet_of(i)
    walked = Walked(piece.reader.journal(piece.data, packet, start, end), event, is_out)
    return piece.reader.read(piece.data, packet, start, end, walked, seq)


def _event(piece: Piece, i: int) -> Event | None:
    """The place of a journal in its transaction."""
    event, at = piece.events[i], int(piece.heads[i, walk.TRNID])
    if not event[open_transactions.COUNTER]:
        return None
    id_ = piece.data[at : at + open_transactions.LEN_TRNID].hex().upper()
    counter, is_last = int(event[open_transactions.COUNTER]), bool(event[open_transactions.IS_LAST])
    return Event(id_, None if counter == open_transactions.UNCOUNTED else counter, is_last)


class Written:
    """The images of a piece's journals. `chosen` are the records that became images, `is_done` says which they are."""

    def __init__(self, piece: Piece, has_header: bool):
        self.piece, self.has_header, layouts = piece, has_header, piece.layouts
        heads, little = piece.heads, np.ascontiguousarray(piece.records[:, frames.LITTLE])
        self.operation, self.local = np.empty(piece.num, np.int64), np.empty(piece.num, np.int64)
        times(piece.bytes_, heads, walk.TIME, little, piece.setup.sets.digits, self.local)
        walk.numbers(piece.bytes_, heads, walk.DBOP, little, self.operation)
        is_plain = np.append(layouts.is_plain, True)[np.maximum(piece.tables, -1)]  # no table: the last one
        is_chosen = (heads[:, walk.IS_CERTAIN] == 1) & ~is_plain & (piece.events[:, open_transactions.IS_OUT] == 0)
        kinds = np.empty(piece.num, np.int64)
        walk.numbers(piece.bytes_, heads, walk.DBKIND, little, kinds)
        is_chosen &= np.isin(kinds, (-1, *DATABASES))
        is_chosen &= (self.local != BAD_TIME) & (self.operation >= 1) & (self.operation <= 3)
        if has_header:
            self.storages, firsts = piece.intern(walk.STORAGE, walk.LEN_STORAGE)
            raw = piece.raw(firsts, walk.STORAGE, walk.LEN_STORAGE)
            self.storage_names = [piece.setup.text_of(*text) for text in raw]
            is_text = np.array([*(text is not None for text in self.storage_names), True])
            is_chosen &= is_text[self.storages]
        self._write(np.flatnonzero(is_chosen))

    def _write(self, chosen: np.ndarray) -> None:
        piece, layouts, setup, sets = self.piece, self.piece.layouts, self.piece.setup, self.piece.setup.sets
        nums = layouts.bounds[:, 1] - layouts.bounds[:, 0]
        most = max(int(nums.max(initial=0)), layouts.num_all)
        starts, ends = piece.records[chosen, frames.START], piece.records[chosen, frames.END]
        tables = piece.tables[chosen]
        self.buffer = np.empty(interpreter.bound(starts, ends, nums[tables]), np.uint8)
        sizes, len_mask = np.zeros(len(chosen), np.int64), (int(nums.max(initial=0)) + 7) // 8
        masks, missing = (np.zeros((len(chosen), len_mask), np.uint8) for _ in range(2))
        there = np.zeros((len(chosen), 2), np.int64)
        if len(chosen):
            images(
                piece.bytes_, piece.records, chosen, self.operation[chosen] == DELETE, piece.tables, setup.rules,
                setup.how, setup.system, setup.len_system, layouts.widths, layouts.bounds, layouts.lengths,
                layouts.num_all, layouts.len_all, layouts.plans, sets.singles, sets.doubles,
                scratch_of(most), np.empty(walk.NUM_HEAD, np.int64),
                np.empty((most + 1, walk.NUM_ITEM), np.int64), self.buffer, sizes, there, masks, missing,
            )  # fmt: skip
        is_good = sizes > 0
        if not is_good.all():
            chosen, sizes, tables, there = chosen[is_good], sizes[is_good], tables[is_good], there[is_good]
            masks, missing = masks[is_good], missing[is_good]
        self.chosen, self.sizes, self.tables, self.masks, self.missing = chosen, sizes, tables, masks, missing
        self.is_partial = there[:, 0] != nums[tables]  # some columns are not there
        self.has_missing = there[:, 1] > 0
        self.is_done = np.zeros(piece.num, bool)
        self.is_done[self.chosen] = True

    def of_chosen(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the records that became images."""
        return rows if len(self.chosen) == len(rows) else rows[self.chosen]

    @property
    def has_time(self) -> np.ndarray:
        return self.of_chosen(self.local) != NO_TIME
