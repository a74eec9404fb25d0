"""The images of a piece's changes: where their lists of columns are, and what `columns` makes of them."""

import numpy as np

from inlet.codecs.goldengate.trail import areas, columns, frame, io_types, plan, sequence
from inlet.codecs.goldengate.trail.layout import Layouts
from inlet.codecs.goldengate.trail.piece import Piece
from inlet.codecs.goldengate.trail.tables import Places


class Images:
    """The images of a piece's changes. `places` says of each group which layout reads it, and why where none does;
    faults[g] = code of plan.FAULTS, byte, index of the column, and of bad_text the value's end.
    """

    def __init__(self, read: Piece, places: Places, layouts: Layouts):
        groups = read.groups
        self.piece, self.places, self.layouts = read, places, layouts
        self.faults = np.zeros((len(groups), 4), np.int64)
        self.readable = np.flatnonzero((groups[:, sequence.WHAT] == io_types.CHANGE) & (places.layout >= 0))
        self.num_mask_bytes = layouts.keys.shape[1]
        self._areas()
        self._read()
        self._compare()
        self.is_rejected = (
            (groups[:, sequence.WHAT] == sequence.FAULTY)
            | (groups[:, sequence.WHAT] == io_types.CHANGE) & (places.layout < 0)
            | (self.faults[:, 0] > 0)
        )

    def _areas(self) -> None:
        """Where the images before and after each readable change are: first byte, end (-1 for none), system key as of
        columns.images."""
        read, groups, rows, num = self.piece, self.piece.groups, self.piece.rows, len(self.readable)
        area, prior, in_parts = np.empty((num, 3), np.int64), np.empty((num, 3), np.int64), np.empty((num, 2), bool)
        areas.find(read.bytes_, groups, rows, self.readable, area, prior, in_parts)
        self.bytes_, joined, extra = read.bytes_, [], len(read.data)
        for n in np.flatnonzero(in_parts.any(axis=1)):  # segments: their column areas one behind the other
            begun, num_before, end = groups[self.readable[n], [sequence.FIRST, sequence.NUM_BEFORE, sequence.BASE_END]]
            for lists, k, segments in (
                (area, 0, range(begun + num_before, end)),
                (prior, 1, range(begun, begun + num_before)),
            ):
                if in_parts[n, k]:
                    whole = b"".join(read.payload(rows[row], frame.D) for row in segments)
                    lists[n, :2] = extra, extra + len(whole)
                    joined.append(whole)
                    extra += len(whole)
        if joined:
            self.bytes_ = np.frombuffer(read.data + b"".join(joined), np.uint8)
        form, has_before = groups[self.readable, sequence.FORM], groups[self.readable, sequence.NUM_BEFORE] > 0
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
        middles, faults = np.zeros((len(chosen), 2), np.int64), np.zeros((len(chosen), 4), np.int64)
        is_fixed = self.piece.groups[self.readable[chosen], sequence.FORM] == io_types.KEY_AND_AFTER
        seen = np.zeros(int(num_columns.max()) + 1, np.int64)
        starts, ends = np.ascontiguousarray(area[chosen, 0]), np.ascontiguousarray(area[chosen, 1])
        columns.split(self.bytes_, starts, ends, is_fixed, num_columns, self.piece.little, seen, middles, faults)
        self.faults[self.readable[chosen]] = faults
        good = faults[:, 0] == 0
        self.after[chosen[good], :2] = np.stack([middles[good, 1], ends[good]], axis=1)
        own = good & ~has_before[chosen]
        self.before[chosen[own], :2] = middles[own]

    def _read(self) -> None:
        """Read the images; a fault of either is one of the change."""
        num = len(self.piece.groups)
        self.masks = {name: np.zeros((num, self.num_mask_bytes), np.uint8) for name in ("before", "after")}
        self.buffers, self.lengths = {}, {}
        for name, lists in (("before", self.before), ("after", self.after)):
            chosen = np.flatnonzero((lists[:, 0] >= 0) & (self.faults[self.readable, 0] == 0))
            self.buffers[name], self.lengths[name] = self._images(name, lists[chosen], self.readable[chosen])
        lacks = np.empty(len(self.readable), bool)
        columns.lacks_key(
            self.layouts.keys, self.places.layout, self.masks["before"], self.masks["after"], self.readable, lacks
        )
        lacks &= self.piece.groups[self.readable, sequence.OPERATION] != io_types.TRUNCATE
        lacks = np.flatnonzero(lacks & (self.faults[self.readable, 0] == 0))
        self.faults[self.readable[lacks], 0] = plan.MISSING_KEY
        self.faults[self.readable[lacks], 1] = np.maximum(self.after[lacks, 1], self.before[lacks, 1])
        self.faults[self.readable[lacks], 2] = -1

    def _compare(self) -> None:
        """Which columns differ in pairs of images: changed[g]. Two records of an update are of one key."""
        self.changed = np.zeros((len(self.piece.groups), self.num_mask_bytes), np.uint8)
        has_both = (self.before[:, 0] >= 0) & (self.after[:, 0] >= 0) & (self.faults[self.readable, 0] == 0)
        if not has_both.any():
            return
        pairs, layouts = self.readable[has_both], self.layouts
        layout, own = self.places.layout[pairs], np.zeros((len(pairs), self.num_mask_bytes), np.uint8)
        columns.changed(
            self.bytes_,
            self.before[has_both],
            self.after[has_both],
            layout,
            layouts.plans,
            layouts.plan_starts,
            layouts.record_lengths,
            self.piece.little,
            columns.scratch_of(layouts.plans, layouts.plan_starts),
            np.zeros((2, 8 * own.shape[1]), np.int64),
            own,
        )
        self.changed[pairs] = own
        groups = self.piece.groups[pairs]
        in_two = (groups[:, sequence.NUM_BEFORE] > 0) & (groups[:, sequence.FORM] == io_types.AFTER)
        apart = in_two & (own & layouts.keys[layout]).any(axis=1)
        self.faults[pairs[apart], 0] = plan.PART_MISSING
        self.faults[pairs[apart], 1] = self.after[has_both][apart, 0]
        self.faults[pairs[apart], 2] = -1

    def _images(self, name: str, lists: np.ndarray, groups: np.ndarray):
        """Out: one buffer of images; each group's length in it."""
        layouts, layout = self.layouts, self.places.layout[groups]
        starts, ends, syskeys = (np.ascontiguousarray(lists[:, n]) for n in range(3))
        room = columns.bound(starts, ends, syskeys, np.diff(layouts.plan_starts)[layout])
        out, lengths = np.empty(room, np.uint8), np.zeros(len(groups), np.int64)
        faults, masks = np.zeros((len(groups), 4), np.int64), np.zeros((len(groups), self.num_mask_bytes), np.uint8)
        if len(groups):
            columns.images(
                self.bytes_,
                starts,
                ends,
                syskeys,
                layout,
                layouts.plans,
                layouts.plan_starts,
                layouts.record_lengths,
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
