"""A block of a trail -> its changes, rejects and control records. Nothing here looks at one record after the other in
Python, except at those that are no changes. Format: trail.py.
"""

import json

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.goldengate import (
    columns,
    file_header,
    frame,
    header_variant,
    io_types,
    metadata,
    piece,
    reject,
    sequence,
)
from inlet.codecs.goldengate import text_columns as text
from inlet.codecs.goldengate.layout import Layouts
from inlet.codecs.goldengate.piece import Piece
from inlet.codecs.goldengate.tables import Places, resolve
from inlet.codecs.results import Control, Decoded
from inlet.source import Source

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


def decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """A block -> its changes, rejects and control records. Rejected records do not stop the others."""
    read = piece.read(data, context, sequence.BLOCK_ENDS)
    found = decoded(Images(read, *resolve(read, source, tables)), source)
    if read.end < len(data):
        found.rejects = [*found.rejects, piece.no_frame(read)]
    return found


def decoded(found: "Images", source: Source) -> Decoded:
    """What the groups of a piece are."""
    read = found.piece
    rejects = [reject.of_group(found, int(n), source) for n in np.flatnonzero(found.is_rejected)]
    is_control = (read.groups[:, sequence.WHAT] != io_types.CHANGE) & ~found.is_rejected
    sizes = np.diff(read.starts)
    return Decoded(
        found.changes(source.header),
        rejects,
        _controls(found, np.flatnonzero(is_control), source),
        int(sizes[is_control].sum()),
        int(is_control.sum()),
    )


class Images:
    """The images of a piece's changes. `places` says of each group which layout reads it, and why where none does;
    faults[g] = code of columns.FAULTS, byte, index of the column.
    """

    def __init__(self, read: Piece, places: Places, layouts: Layouts):
        groups = read.groups
        self.piece, self.places, self.layouts = read, places, layouts
        self.faults = np.zeros((len(groups), 3), np.int64)
        self.readable = np.flatnonzero((groups[:, sequence.WHAT] == io_types.CHANGE) & (places.layout >= 0))
        self.num_mask_bytes = layouts.keys.shape[1]
        self._areas()
        self._read()
        self.is_rejected = (
            (groups[:, sequence.WHAT] == sequence.FAULTY)
            | (groups[:, sequence.WHAT] == io_types.CHANGE) & (places.layout < 0)
            | (self.faults[:, 0] > 0)
        )

    def _areas(self) -> None:
        """Where the lists of columns before and after each readable change are: first byte and end, -1 for none."""
        read, groups, rows = self.piece, self.piece.groups[self.readable], self.piece.rows
        self.bytes_, joined, extra = read.bytes_, [], len(read.data)
        first = groups[:, sequence.FIRST] + groups[:, sequence.NUM_BEFORE]
        area = np.stack([rows[first, frame.D], rows[first, frame.D] + rows[first, frame.LEN_D]], axis=1)
        prior = np.full_like(area, -1)
        has_before = groups[:, sequence.NUM_BEFORE] > 0
        start = groups[has_before, sequence.FIRST]
        prior[has_before] = np.stack([rows[start, frame.D], rows[start, frame.D] + rows[start, frame.LEN_D]], axis=1)
        for chained, lists, begin, end in (
            (groups[:, sequence.BASE_END] - first > 1, area, first, groups[:, sequence.BASE_END]),
            (groups[:, sequence.NUM_BEFORE] > 1, prior, groups[:, sequence.FIRST], first),
        ):
            for n in np.flatnonzero(chained):  # segments: their column areas one behind the other
                whole = b"".join(read.payload(rows[k], frame.D) for k in range(begin[n], end[n]))
                lists[n] = extra, extra + len(whole)
                joined.append(whole)
                extra += len(whole)
        if joined:
            self.bytes_ = np.frombuffer(read.data + b"".join(joined), np.uint8)
        has_none = area[:, 0] < 0
        area[has_none] = rows[first[has_none], frame.END][:, None]  # no columns, at the end of the record
        form = groups[:, sequence.FORM]
        none = np.full_like(area, -1)
        self.after = np.where((form == io_types.AFTER)[:, None], area, none)
        self.before = np.where((form == io_types.BEFORE)[:, None], area, prior)
        self._split(np.flatnonzero(form >= io_types.KEY_AND_AFTER), area, has_before)

    def _split(self, chosen, area, has_before) -> None:
        """Part the areas that hold both images."""
        if not len(chosen):
            return
        layout = self.places.layout[self.readable[chosen]]
        num_columns = np.diff(self.layouts.plan_starts)[layout]
        middles, faults = np.zeros((len(chosen), 2), np.int64), np.zeros((len(chosen), 3), np.int64)
        is_fixed = self.piece.groups[self.readable[chosen], sequence.FORM] == io_types.KEY_AND_AFTER
        seen = np.zeros(int(num_columns.max()) + 1, np.int64)
        starts, ends = np.ascontiguousarray(area[chosen, 0]), np.ascontiguousarray(area[chosen, 1])
        columns.split(self.bytes_, starts, ends, is_fixed, num_columns, self.piece.little, seen, middles, faults)
        self.faults[self.readable[chosen]] = faults
        good = faults[:, 0] == 0
        self.after[chosen[good]] = np.stack([middles[good, 1], ends[good]], axis=1)
        own = good & ~has_before[chosen]
        self.before[chosen[own]] = middles[own]

    def _read(self) -> None:
        """Read the images; a fault of either is one of the change."""
        num = len(self.piece.groups)
        self.masks = {name: np.zeros((num, self.num_mask_bytes), np.uint8) for name in ("before", "after")}
        self.buffers, self.lengths = {}, {}
        for name, lists in (("before", self.before), ("after", self.after)):
            chosen = np.flatnonzero((lists[:, 0] >= 0) & (self.faults[self.readable, 0] == 0))
            self.buffers[name], self.lengths[name] = self._images(name, lists[chosen], self.readable[chosen])
        keys = self.layouts.keys[self.places.layout[self.readable]]
        supplied = self.masks["before"][self.readable] | self.masks["after"][self.readable]
        is_row = self.piece.groups[self.readable, sequence.OPERATION] != io_types.TRUNCATE
        lacks = ((supplied & keys) != keys).any(axis=1) & is_row & (self.faults[self.readable, 0] == 0)
        self.faults[self.readable[lacks], 0] = columns.MISSING_KEY
        self.faults[self.readable[lacks], 1] = np.maximum(self.after[lacks, 1], self.before[lacks, 1])
        self.faults[self.readable[lacks], 2] = -1

    def _images(self, name: str, lists: np.ndarray, groups: np.ndarray):
        """Out: one buffer of images; each group's length in it."""
        starts, ends = np.ascontiguousarray(lists[:, 0]), np.ascontiguousarray(lists[:, 1])
        out, lengths = np.empty(columns.bound(starts, ends), np.uint8), np.zeros(len(groups), np.int64)
        faults, masks = np.zeros((len(groups), 3), np.int64), np.zeros((len(groups), self.num_mask_bytes), np.uint8)
        layouts = self.layouts
        if len(groups):
            columns.images(
                self.bytes_,
                starts,
                ends,
                self.places.layout[groups],
                layouts.plans,
                layouts.plan_starts,
                self.piece.little,
                name == "after",
                layouts.singles,
                layouts.doubles,
                columns.scratch_of(layouts.plans, layouts.plan_starts),
                out,
                lengths,
                masks,
                faults,
            )
        self.faults[groups] = faults
        self.masks[name][groups] = masks
        all_lengths = np.zeros(len(self.piece.groups), np.int64)
        all_lengths[groups] = lengths
        return out, all_lengths

    def changes(self, has_header: bool) -> pa.RecordBatch:
        """The changes that are not rejected, as CHANGES."""
        read, kept = self.piece, self.readable[self.faults[self.readable, 0] == 0]
        groups, starts = read.groups[kept], read.starts
        layout = self.places.layout[kept]
        is_kept = self.faults[self.readable, 0] == 0
        has = {"before": self.before[is_kept, 0] >= 0, "after": self.after[is_kept, 0] >= 0}
        last_rows = read.rows[groups[:, sequence.BASE_END] - 1]
        io_times = times_of(read, last_rows)
        return pa.RecordBatch.from_arrays(
            [
                text.sequences(groups[:, sequence.TIME], read.rbas[kept], read.context["seqno"]),
                pa.array(groups[:, sequence.OPERATION].astype(np.int8)),
                pa.array(layout.astype(np.int32)),
                self._transaction_ids(kept),
                pa.array(groups[:, sequence.COUNTER]),
                pa.array(groups[:, sequence.IS_LAST] == 1),
                pa.array(io_times, mask=io_times == 0),
                self._change_masks(is_kept, has),
                self._column_masks(kept, has),
                *(self._image_array(name, kept, layout, has[name]) for name in ("before", "after")),
                self._states(kept),
                header_variant.headers(read, kept, self.places, IMAGE) if has_header else pa.nulls(len(kept), IMAGE),
                pa.array(starts[kept]),
                pa.array(starts[kept + 1] - starts[kept]),
            ],
            schema=CHANGES,
        )

    def _image_array(self, name: str, kept, layout, has) -> pa.StructArray:
        lengths = self.lengths[name]
        ends = np.concatenate([[0], np.cumsum(lengths[kept])])
        if ends[-1] >= 1 << 31:
            raise ValueError(f"a block's images must stay below 2 GiB, found {ends[-1]} bytes: cut smaller blocks")
        if ends[-1] == lengths.sum():
            values = binary_array(self.buffers[name], ends)
        else:  # a change that is rejected for its other image has left this one in the buffer
            written = np.flatnonzero(lengths)
            every = binary_array(self.buffers[name], np.concatenate([[0], np.cumsum(lengths[written])]))
            values = every.take(pa.array(np.searchsorted(written, kept), mask=~has)).fill_null(b"")
        metadata_ = pa.array([*self.layouts.metadata, b""], pa.binary())
        dictionary = metadata_.take(pa.array(np.where(has, layout, len(self.layouts.metadata))))
        return pa.StructArray.from_arrays([values, dictionary], fields=list(IMAGE), mask=pa.array(~has))

    def _transaction_ids(self, kept) -> pa.Array:
        used, which = np.unique(self.piece.groups[kept, sequence.TRANSACTION], return_inverse=True)
        ids = transaction_ids(self.piece, used, kept, which)
        return ids.take(pa.array(which))

    def _column_masks(self, kept, has) -> pa.Array:
        """Columns that a change supplies: of its after-image, of a delete's before-image."""
        masks = np.where(has["after"][:, None], self.masks["after"][kept], self.masks["before"][kept])
        return mask_array(masks, has["after"] | has["before"])

    def _change_masks(self, is_kept, has) -> pa.Array:
        """Columns whose bytes differ, where the before-image has all that the after-image supplies."""
        kept = self.readable[is_kept]
        before, after = self.masks["before"][kept], self.masks["after"][kept]
        knows = has["before"] & has["after"] & ~((after & ~before).any(axis=1))
        masks, chosen = np.zeros_like(before), np.flatnonzero(knows)
        if len(chosen):
            own = np.zeros((len(chosen), masks.shape[1]), np.uint8)
            columns.changed(
                self.bytes_,
                self.before[is_kept][chosen],
                self.after[is_kept][chosen],
                self.piece.little,
                np.zeros((2, 8 * masks.shape[1]), np.int64),
                own,
            )
            masks[chosen] = own
        return mask_array(masks, knows)

    def _states(self, kept) -> pa.Array:
        """lob_incomplete for the columns whose values are in chunks: those that the contract calls LOBs."""
        groups = self.piece.groups[kept]
        has_chunks = groups[:, sequence.CHUNKS_END] > groups[:, sequence.BASE_END]
        if not has_chunks.any():
            return pa.nulls(len(kept), CHANGES.field("column_states").type)
        states = [
            [(name, "lob_incomplete") for name in self.layouts.lob_columns[self.places.layout[g]]] or None
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


def _controls(found: Images, chosen: np.ndarray, source: Source) -> list[Control]:
    """Control events: of the records that are no changes, and of what comes with a change."""
    read, events = found.piece, []
    for n in chosen:
        n, group = int(n), read.groups[n]
        at, size = int(read.starts[n]), int(read.starts[n + 1] - read.starts[n])
        row = read.rows[group[sequence.FIRST]]
        kind, name, detail = _event_of(read, int(group[sequence.WHAT]), row)
        if kind == "restart_ok" or kind == "restart_abend":
            name = None
        schema, table = _split_name(name, source)
        events.append(Control(kind, at, size, schema, table, read.change_seq(n), None, json.dumps(detail)))
    for n in np.flatnonzero(read.groups[:, sequence.MARK] == sequence.UNFINISHED_BEFORE):
        events.append(Control("transaction_unfinished", int(read.starts[n]), 0, change_seq=read.change_seq(int(n))))
    has_chunks = read.groups[:, sequence.CHUNKS_END] > read.groups[:, sequence.BASE_END]
    for n in np.flatnonzero(has_chunks & ~found.is_rejected):
        events += _chunks_of(found, int(n))
    return events


def _event_of(read: Piece, what: int, row: np.ndarray) -> tuple[str, str | None, dict]:
    """Kind, the trail's name for the table, detail."""
    if what == sequence.FILE_HEADER:
        return (
            "file_header",
            None,
            file_header.read(read.data[row[frame.AT] : row[frame.END]], read.context["file_order"]),
        )
    header = read.payload(row, frame.H)
    name = metadata.name_of(header[sequence.TAIL :]) if not header[sequence.PARTITION] & sequence.HAS_INDEX else None
    if what == io_types.METADATA:
        said = metadata.read(header, read.context["order"], read.payload(row, frame.D))
        detail: dict = {"kind": metadata.KINDS.get(said.kind, f"kind {said.kind}"), "name": said.name}
        detail |= {"ddr_index": said.ddr_index, "tdr_index": said.tdr_index, "len_body": len(said.body)}
        return "metadata", said.name or None, detail
    if what == io_types.DDL:
        detail = metadata.ddl_of(read.payload(row, frame.D))
        return "ddl", ".".join(filter(None, (detail.get("owner"), detail.get("object")))) or None, detail
    kinds = {
        io_types.RESTART_ABEND: "restart_abend",
        io_types.RESTART_OK: "restart_ok",
        sequence.LOB_CHUNK: "lob_chunk",
    }
    code = header[sequence.IO_TYPE]
    return kinds.get(what, "operation"), name or None, {"io_type": code, "name": io_types.name_of(code)}


def _split_name(name: str | None, source: Source) -> tuple[str | None, str | None]:
    """Schema and table of the trail's name for a table."""
    if not name:
        return None, None
    schema, _, table = metadata.table_of(name, source).rpartition(".")
    return schema or None, table


def _chunks_of(found: Images, n: int) -> list[Control]:
    """An event for each LOB chunk behind a change: its bytes are in the change's."""
    read, group = found.piece, found.piece.groups[n]
    table = found.layouts.tables[found.places.layout[n]]
    return [
        Control(
            "lob_chunk",
            int(read.rows[k, frame.AT]),
            int(read.rows[k, frame.END] - read.rows[k, frame.AT]),
            table.schema_name,
            table.table_name,
            detail=json.dumps(
                {
                    "change_seq": read.change_seq(n),
                    "rec_count": int(read.bytes_[read.rows[k, frame.H] + sequence.REC_COUNT]),
                    "continued": bool(read.bytes_[read.rows[k, frame.H] + sequence.CONTINUED]),
                }
            ),
        )
        for k in range(group[sequence.BASE_END], group[sequence.CHUNKS_END])
    ]
