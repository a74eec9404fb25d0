"""Changes of a piece as Arrow, in the columns that the codec offers."""

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.goldengate.trail import columns, frame, header_variant, sequence
from inlet.codecs.goldengate.trail import text_columns as text
from inlet.codecs.goldengate.trail.images import Images
from inlet.codecs.goldengate.trail.piece import MAY_GO_ON, Piece

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
    is_kept = found.faults[found.readable, 0] == 0
    read, kept = found.piece, found.readable[is_kept]
    groups, starts, layout = read.groups, read.starts, found.places.layout[kept]
    has = {"before": found.before[is_kept, 0] >= 0, "after": found.after[is_kept, 0] >= 0}
    io_times = np.empty(len(kept), np.int64)
    sequence.io_times(read.bytes_, read.rows[groups[kept, sequence.BASE_END] - 1, frame.H], read.little, io_times)
    return pa.RecordBatch.from_arrays(
        [
            text.sequences(groups[kept, sequence.TIME], read.rbas[kept], read.context["seqno"]),
            pa.array(groups[kept, sequence.OPERATION].astype(np.int8)),
            pa.array(layout.astype(np.int32)),
            _transaction_ids(found, kept),
            pa.array(groups[kept, sequence.COUNTER]),
            pa.array(groups[kept, sequence.IS_LAST] == 1),
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
    transactions = found.piece.groups[kept, sequence.TRANSACTION]
    is_first = np.diff(transactions, prepend=-1) != 0  # they are numbered in order
    ids = transaction_ids(found.piece, transactions[is_first], kept[is_first])
    return ids.take(pa.array(np.cumsum(is_first) - 1))


def _column_masks(found: Images, kept, has) -> pa.Array:
    """Columns that a change supplies: of its after-image, of a delete's before-image."""
    has_any = has["after"] | has["before"]
    return mask_array(found.masks["after"], found.masks["before"], has["after"], kept, has_any)


def _change_masks(found: Images, is_kept, has) -> pa.Array:
    """Columns whose bytes differ, where the before-image has all that the after-image supplies."""
    kept = found.readable[is_kept]
    knows = has["before"] & has["after"] & ~(found.masks["after"][kept] & ~found.masks["before"][kept]).any(axis=1)
    if not knows.any():
        return pa.nulls(len(kept), pa.binary())
    return mask_array(found.changed, found.changed, knows, kept, knows)


def _states(found: Images, kept) -> pa.Array:
    """lob_incomplete for the columns whose values are in chunks: those that the contract calls LOBs; where it calls
    none so, for each that the after-image does not supply. Where chunks may follow in the next file, for the LOBs that
    it does not supply."""
    groups = found.piece.groups
    has_chunks = groups[kept, sequence.CHUNKS_END] > groups[kept, sequence.BASE_END]
    if found.piece.context.get(MAY_GO_ON):
        has_chunks |= kept == len(groups) - 1
    if not has_chunks.any():
        return pa.nulls(len(kept), CHANGES.field("column_states").type)
    names = [_in_chunks(found, g) if is_lob else [] for g, is_lob in zip(kept, has_chunks)]
    states = [[(name, "lob_incomplete") for name in of_row] or None for of_row in names]
    return pa.array(states, CHANGES.field("column_states").type)


def _in_chunks(found: Images, group: int) -> list[str]:
    layout, of_group = found.places.layout[group], found.piece.groups[group]
    supplied = np.unpackbits(found.masks["after"][group], bitorder="little")
    names, lobs = found.layouts.tables[layout].column_names, found.layouts.lob_columns[layout]
    absent = [name for name, is_there in zip(names, supplied) if not is_there]
    if of_group[sequence.CHUNKS_END] == of_group[sequence.BASE_END]:
        return [name for name in lobs if name in absent]
    return lobs or absent


def transaction_ids(read: Piece, used: np.ndarray, groups: np.ndarray) -> pa.Array:
    """The ids of the transactions that are used. In: a group of each."""
    places = read.transactions[used]
    at, size = places[:, sequence.XID_AT], places[:, sequence.XID_LEN]
    if (size > 0).all() and len(used):
        ends = np.concatenate([[0], np.cumsum(size)])
        which_byte = np.arange(ends[-1]) - np.repeat(ends[:-1], size) + np.repeat(at, size)
        raw = read.bytes_[which_byte]
        if not (raw & 0x80).any():
            return binary_array(raw, ends, pa.string())
    return pa.array([read.id_of(int(t), int(g)) for t, g in zip(used, groups)], pa.string())


def binary_array(buffer: np.ndarray, ends: np.ndarray, type_=None) -> pa.Array:
    """Values that stand one behind the other in a buffer."""
    parts = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(buffer[: ends[-1]]))]
    return pa.Array.from_buffers(type_ or pa.binary(), len(ends) - 1, parts)


def mask_array(masks: np.ndarray, others: np.ndarray, is_own: np.ndarray, chosen: np.ndarray, has: np.ndarray):
    """The chosen rows of mask bytes, of `masks` where is_own, else of `others`, as binary without zero bytes at their
    ends; null where there is none."""
    out, lengths = np.empty(len(chosen) * masks.shape[1], np.uint8), np.zeros(len(chosen), np.int64)
    columns.trimmed(masks, others, is_own, chosen, out, lengths)
    array = binary_array(out, np.concatenate([[0], np.cumsum(lengths)]))
    return array if has.all() else array.take(pa.array(np.arange(len(chosen)), mask=~has))
