"""Linkexpress blocks: a piece of a file is cut, a block decoded. Formats: group.py, table.py.

A record is framed (its length), headed (what it is, frames.py) and imaged (its items,
fields/interpreter.py); nothing here looks at one record after the other in Python, except at rejected ones.
"""

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.linkexpress import frame as frame
from inlet.codecs.linkexpress import reject as reject
from inlet.codecs.linkexpress.frames import OPEN, Frames, frames, reading_in_force, tables_of
from inlet.codecs.linkexpress.item import Layouts
from inlet.codecs.linkexpress.options import options_of
from inlet.codecs.results import Block, Control, Cut, Decoded
from inlet.fields.compiled import interpreter
from inlet.source import Source

CHANGES = pa.schema(
    [
        pa.field("record_ordinal", pa.int64(), nullable=False),
        pa.field("unit_offset", pa.int64(), nullable=False),
        pa.field("unit_length", pa.int64(), nullable=False),
        pa.field("operation", pa.int8(), nullable=False),
        pa.field("table_index", pa.int32(), nullable=False),
        pa.field("transaction_ordinal", pa.int64()),
        pa.field("counter", pa.int64()),
        pa.field("last", pa.bool_()),
        pa.field("before", IMAGE),
        pa.field("after", IMAGE),
    ]
)
BODIES = {"full": interpreter.BODY_FULL, "len0": interpreter.BODY_LENGTH_ZERO, "absent": interpreter.BODY_ABSENT}
LONG_TRANSACTION = 4  # blocks that a transaction may fill before it is cut


def cut(data: bytes, context: dict, source: Source, tables: dict, len_block: int, is_final: bool = True) -> Cut:
    """Cut whole records into blocks, after a commit record where the transaction is not too long.

    In: is_final False while the file may go on behind `data`: the last change then stays behind, because only what
    follows it tells whether it closes its transaction.
    """
    if context["byte_order"] is None:  # no whole record yet, so nothing to read it by
        return Cut([], context, 0, None)
    now = reading_in_force(context, source, tables)
    if now.begun:
        return Cut([], context, 0, now.refused(data, context))
    framed = frames(data, now.reading, source, tables)
    offsets, heads = framed.offsets, framed.heads
    num = len(heads)
    problem = reject.rest(data, framed, context) if framed.is_bad_length else None
    if not is_final and problem is None and num and heads[-1, frame.COUNTER] >= 0:
        num -= 1
    blocks, start, after = [], 0, context
    for stop in _cuts(offsets[: num + 1], heads[:num], len_block):
        after, before = _context_at(context, heads, stop), after
        blocks.append(Block(int(offsets[start]), int(offsets[stop] - offsets[start]), before, int(stop - start)))
        start = stop
    if num and heads[num - 1, frame.WHAT] == frame.EMPTY_LOAD and context.get("layout") == OPEN:
        after = after | {"is_ended": context["logtype"] == "normal"}  # FFFF stands alone in a file without lengths
    return Cut(blocks, after, int(offsets[num]), problem)


def _cuts(offsets: np.ndarray, heads: np.ndarray, len_block: int):
    """Yield the record ordinal behind each block."""
    num = len(heads)
    is_open = heads[:, frame.COUNTER] >= 0
    good = np.flatnonzero(~is_open) + 1  # behind a commit record or a full extract's row
    ends, start = offsets[1:], 0
    while start < num:
        enough = np.searchsorted(ends, offsets[start] + len_block) + 1
        too_many = np.searchsorted(ends, offsets[start] + LONG_TRANSACTION * len_block) + 1
        place = np.searchsorted(good, enough)
        stop = int(min(good[place] if place < len(good) else num, too_many, num))
        if stop < num and is_open[stop - 1] and heads[stop, frame.WHAT] == frame.COMMIT:
            stop += 1
        yield stop
        start = stop


def _context_at(context: dict, heads: np.ndarray, stop: int) -> dict:
    """What is known before record `stop` of this piece."""
    commits = np.flatnonzero(heads[:stop, frame.WHAT] == frame.COMMIT)
    counters = heads[commits[-1] + 1 if len(commits) else 0 : stop, frame.COUNTER]
    counter = max(int(counters.max(initial=0)), 0 if len(commits) else context["counter"])
    return context | {
        "record_ordinal": context["record_ordinal"] + stop,
        "counter": counter,
        "transaction_ordinal": context["transaction_ordinal"] + len(commits),
    }


def decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """A block -> its changes, rejects and control records. Rejected records do not stop the others."""
    now, tables = reading_in_force(context, source, tables), tables_of(context, tables)
    context = now.reading
    framed = frames(data, context, source, tables)
    heads, offsets, bytes_ = framed.heads, framed.offsets, np.frombuffer(data, np.uint8)
    is_change = heads[:, frame.WHAT] == frame.CHANGE
    is_delete = is_change & (heads[:, frame.OPERATION] == frame.DELETE)
    faults = np.zeros((len(heads), 4), np.int64)
    after, after_lengths = _images(
        bytes_, np.flatnonzero(is_change & ~is_delete), framed, _reading(context, source, True), faults
    )
    before, before_lengths = _images(
        bytes_, np.flatnonzero(is_delete), framed, _reading(context, source, False), faults
    )
    kept = np.flatnonzero(is_change & (faults[:, 0] == 0))
    changes = _changes(kept, framed, context, before, before_lengths, after, after_lengths)
    is_control = (heads[:, frame.WHAT] == frame.COMMIT) | (heads[:, frame.WHAT] == frame.EMPTY_LOAD)
    rejects = [
        reject.record(int(i), data, framed, faults, context, tables, source)
        for i in np.flatnonzero((faults[:, 0] > 0) | (heads[:, frame.WHAT] == frame.FAULTY))
    ]
    if offsets[-1] < len(data):
        rejects.append(reject.rest(data, framed, context))
    return Decoded(
        changes,
        [now.explained(one) for one in rejects],
        _controls(framed, context, tables),
        int(np.diff(offsets)[is_control].sum()),
        int(is_control.sum()),
    )


def _reading(context: dict, source: Source, is_after: bool) -> np.ndarray:
    options = options_of(source)
    return np.array(
        [
            context["byte_order"] == "little",
            context["null_areas"] == "yes",
            context.get("logtype", options.logtype) == "little",
            BODIES[context.get("null_var_body") or "len0"],
            is_after,
        ],
        np.int64,
    )


def _images(bytes_, chosen, framed: Frames, reading, faults):
    """Images of the chosen records: (one buffer, each record's length in it). Notes their faults."""
    starts, ends = framed.heads[chosen, frame.ITEMS], framed.offsets[chosen + 1]
    of_table, layouts = framed.heads[chosen, frame.TABLE], framed.layouts
    out = np.empty(interpreter.bound(starts, ends, np.diff(layouts.plan_starts)[of_table]), np.uint8)
    lengths, chosen_faults = np.zeros(len(chosen), np.int64), np.zeros((len(chosen), 4), np.int64)
    if len(chosen):
        interpreter.images(
            bytes_,
            starts,
            ends,
            of_table,
            layouts.plans,
            layouts.plan_starts,
            reading,
            layouts.singles,
            layouts.doubles,
            interpreter.scratch_of(layouts.plans),
            out,
            lengths,
            chosen_faults,
        )
    faults[chosen] = chosen_faults
    all_lengths = np.zeros(len(framed.heads), np.int64)
    all_lengths[chosen] = lengths
    return out, all_lengths


def _changes(kept, framed: Frames, context, before, before_lengths, after, after_lengths) -> pa.RecordBatch:
    heads, offsets = framed.heads[kept], framed.offsets
    table, is_delete = heads[:, frame.TABLE], heads[:, frame.OPERATION] == frame.DELETE
    counter, in_none = heads[:, frame.COUNTER], heads[:, frame.COUNTER] < 0
    return pa.RecordBatch.from_arrays(
        [
            pa.array(kept + context["record_ordinal"], pa.int64()),
            pa.array(offsets[kept], pa.int64()),
            pa.array(offsets[kept + 1] - offsets[kept], pa.int64()),
            pa.array(heads[:, frame.OPERATION].astype(np.int8)),
            pa.array(table.astype(np.int32)),
            pa.array(heads[:, frame.TRANSACTION], pa.int64(), mask=in_none),
            pa.array(counter, pa.int64(), mask=in_none),
            pa.array(heads[:, frame.LAST] == 1, pa.bool_(), mask=in_none),
            _image_array(before, before_lengths[kept], table, ~is_delete, framed.layouts),
            _image_array(after, after_lengths[kept], table, is_delete, framed.layouts),
        ],
        schema=CHANGES,
    )


def _image_array(buffer, lengths, tables: np.ndarray, is_null, layouts: Layouts) -> pa.StructArray:
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if ends[-1] >= 1 << 31:
        raise ValueError(f"a block's images must stay below 2 GiB, found {ends[-1]} bytes: cut smaller blocks")
    value = pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(buffer[: ends[-1]])]
    )
    dictionary = pa.array([*layouts.metadata, b""], pa.binary())
    metadata = dictionary.take(pa.array(np.where(is_null, len(layouts.metadata), tables)))
    return pa.StructArray.from_arrays([value, metadata], fields=list(IMAGE), mask=pa.array(is_null))


def _controls(framed: Frames, context: dict, tables: dict) -> list[Control]:
    names, offsets = sorted(tables), framed.offsets
    of = {
        int(i): tables[names[framed.heads[i, frame.TABLE]]]
        for i in np.flatnonzero(framed.heads[:, frame.WHAT] == frame.EMPTY_LOAD)
    }
    return [
        Control(
            "empty_load",
            int(offsets[i]),
            int(offsets[i + 1] - offsets[i]),
            table.schema_name,
            table.table_name,
            reject.change_seq_of(context, i),
            reject.change_seq_prefix(context),
        )
        for i, table in of.items()
    ]
