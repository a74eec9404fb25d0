"""Changes of a piece as Arrow, in the columns that the codec offers."""

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.goldengate.trail import columns, frame, header_variant, sequence
from inlet.codecs.goldengate.trail import text_columns as text
from inlet.codecs.goldengate.trail.images import Images
from inlet.codecs.goldengate.trail.piece import Piece

CHANGES = pa.schema(
    [
        pa.field("change_seq", pa.string(), nullable=False),
        pa.field("operation", pa.int8(), nullable=False),
        pa.field("table_index", pa.int32(), nullable=False),
        pa.field("transaction_id", pa.string()),
        pa.field("counter", pa.int64(), nullable=False),
        pa.field("last", pa.bool_(), nullable=False),
        pa.field("io_time", pa.int64()),
        pa.field("change_mask", pa.binary()),
        pa.field("column_mask", pa.binary()),
        pa.field("before", IMAGE),
        pa.field("after", IMAGE),
        pa.field("column_states", pa.map_(pa.string(), pa.string())),
        pa.field("header", IMAGE),
        pa.field("unit_offset", pa.int64(), nullable=False),
        pa.field("unit_length", pa.int64(), nullable=False),
    ]
)


def changes(found: Images, has_header: bool) -> pa.RecordBatch:
    """The changes that are not rejected, as CHANGES."""
    read, kept = found.piece, found.readable[found.faults[found.readable, 0] == 0]
    groups, starts = read.groups[kept], read.starts
    layout = found.places.layout[kept]
    is_kept = found.faults[found.readable, 0] == 0
    has = {"before": found.before[is_kept, 0] >= 0, "after": found.after[is_kept, 0] >= 0}
    last_rows = read.rows[groups[:, sequence.BASE_END] - 1]
    io_times = times_of(read, last_rows)
    return pa.RecordBatch.from_arrays(
        [
            text.sequences(groups[:, sequence.TIME], read.rbas[kept], read.context["seqno"]),
            pa.array(groups[:, sequence.OPERATION].astype(np.int8)),
            pa.array(layout.astype(np.int32)),
            _transaction_ids(found, kept),
            pa.array(groups[:, sequence.COUNTER]),
            pa.array(groups[:, sequence.IS_LAST] == 1),
            pa.array(io_times, mask=io_times == 0),
            _change_masks(found, is_kept, has),
            _column_masks(found, kept, has),
            *(_image_array(found, name, kept, layout, has[name]) for name in ("before", "after")),
            _states(found, kept),
            header_variant.headers(read, kept, found.places, IMAGE) if has_header else pa.nulls(len(kept), IMAGE),
            pa.array(starts[kept]),
            pa.array(starts[kept + 1] - starts[kept]),
        ],
        schema=CHANGES,
    )


def _image_array(found: Images, name: str, kept, layout, has) -> pa.StructArray:
    lengths = found.lengths[name]
    ends = np.concatenate([[0], np.cumsum(lengths[kept])])
    if ends[-1] >= 1 << 31:
        raise ValueError(f"a block's images must stay below 2 GiB, found {ends[-1]} bytes: cut smaller blocks")
    if ends[-1] == lengths.sum():
        values = binary_array(found.buffers[name], ends)
    else:  # a change that is rejected for its other image has left this one in the buffer
        written = np.flatnonzero(lengths)
        every = binary_array(found.buffers[name], np.concatenate([[0], np.cumsum(lengths[written])]))
        values = every.take(pa.array(np.searchsorted(written, kept), mask=~has)).fill_null(b"")
    metadata_ = pa.array([*found.layouts.metadata, b""], pa.binary())
    dictionary = metadata_.take(pa.array(np.where(has, layout, len(found.layouts.metadata))))
    return pa.StructArray.from_arrays([values, dictionary], fields=list(IMAGE), mask=pa.array(~has))


def _transaction_ids(found: Images, kept) -> pa.Array:
    used, which = np.unique(found.piece.groups[kept, sequence.TRANSACTION], return_inverse=True)
    ids = transaction_ids(found.piece, used, kept, which)
    return ids.take(pa.array(which))


def _column_masks(found: Images, kept, has) -> pa.Array:
    """Columns that a change supplies: of its after-image, of a delete's before-image."""
    masks = np.where(has["after"][:, None], found.masks["after"][kept], found.masks["before"][kept])
    return mask_array(masks, has["after"] | has["before"])


def _change_masks(found: Images, is_kept, has) -> pa.Array:
    """Columns whose bytes differ, where the before-image has all that the after-image supplies."""
    kept = found.readable[is_kept]
    before, after = found.masks["before"][kept], found.masks["after"][kept]
    knows = has["before"] & has["after"] & ~((after & ~before).any(axis=1))
    masks, chosen = np.zeros_like(before), np.flatnonzero(knows)
    if len(chosen):
        own = np.zeros((len(chosen), masks.shape[1]), np.uint8)
        columns.changed(
            found.bytes_,
            found.before[is_kept][chosen],
            found.after[is_kept][chosen],
            found.places.layout[kept[chosen]],
            found.layouts.plans,
            found.layouts.plan_starts,
            found.layouts.record_lengths,
            found.piece.little,
            columns.scratch_of(found.layouts.plans, found.layouts.plan_starts),
            np.zeros((2, 8 * masks.shape[1]), np.int64),
            own,
        )
        masks[chosen] = own
    return mask_array(masks, knows)


def _states(found: Images, kept) -> pa.Array:
    """lob_incomplete for the columns whose values are in chunks: those that the contract calls LOBs."""
    groups = found.piece.groups[kept]
    has_chunks = groups[:, sequence.CHUNKS_END] > groups[:, sequence.BASE_END]
    if not has_chunks.any():
        return pa.nulls(len(kept), CHANGES.field("column_states").type)
    states = [
        [(name, "lob_incomplete") for name in found.layouts.lob_columns[found.places.layout[g]]] or None
        if lob
        else None
        for g, lob in zip(kept, has_chunks)
    ]
    return pa.array(states, CHANGES.field("column_states").type)


def times_of(read: Piece, rows: np.ndarray) -> np.ndarray:
    """IO Time of each record in microseconds since 1970, 0 for none."""
    at = rows[:, frame.H] + sequence.IO_TIME
    raw = read.bytes_[at[:, None] + np.arange(8)]
    times = np.ascontiguousarray(raw).view("<i8" if read.little else ">i8").reshape(-1).astype(np.int64)
    return np.where(times == 0, 0, times - sequence.EPOCH)


def transaction_ids(read: Piece, used: np.ndarray, kept: np.ndarray, which: np.ndarray) -> pa.Array:
    """The ids of the transactions that are used."""
    places = read.transactions[used]
    at, size = places[:, sequence.XID_AT], places[:, sequence.XID_LEN]
    if (size > 0).all() and len(used):
        ends = np.concatenate([[0], np.cumsum(size)])
        which_byte = np.arange(ends[-1]) - np.repeat(ends[:-1], size) + np.repeat(at, size)
        raw = read.bytes_[which_byte]
        if not (raw & 0x80).any():
            return binary_array(raw, ends, pa.string())
    first = np.zeros(len(used), np.int64)
    first[which[::-1]] = kept[::-1]
    return pa.array([read.id_of(int(t), int(g)) for t, g in zip(used, first)], pa.string())


def binary_array(buffer: np.ndarray, ends: np.ndarray, type_=None) -> pa.Array:
    """Values that stand one behind the other in a buffer."""
    parts = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(buffer[: ends[-1]]))]
    return pa.Array.from_buffers(type_ or pa.binary(), len(ends) - 1, parts)


def mask_array(masks: np.ndarray, has: np.ndarray) -> pa.Array:
    """Rows of mask bytes as binary without zero bytes at their ends; null where there is none."""
    out, lengths = np.empty(masks.size, np.uint8), np.zeros(len(masks), np.int64)
    columns.trimmed(masks, np.arange(len(masks)), out, lengths)
    array = binary_array(out, np.concatenate([[0], np.cumsum(lengths)]))
    if has.all():
        return array
    return array.take(pa.array(np.arange(len(masks)), mask=~has))
