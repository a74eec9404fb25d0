"""How well a reading of a Linkexpress extract fits a file's first records, and what it is next to other readings."""

from functools import cached_property

import numpy as np

from inlet.codecs.linkexpress.block import decode
from inlet.codecs.linkexpress.frame import DELETE, INSERT, REFRESH
from inlet.codecs.linkexpress.frames import FULL, OPEN, frames
from inlet.codecs.linkexpress.table_frame import LEN_LENGTH, LEN_OPERATION
from inlet.source import Source

NUM_FITTED = 4_096  # records that each candidate reading is tried on
NEARLY = 7 / 8  # of bytes: what a damaged file still lets be read, and what counts as no less than another
OPTION_OF = {"layout": "difftype"}  # member of a reading -> the option that tells it, where that is not its name
TELLING = ("layout", "byte_order", "null_areas", "logtype")  # members that say where records and items are
NUM_TELLING = 8  # good records of one size that say by themselves how a damaged file is read
NUM_LIKELY = 6  # ... that say so, where they are most of the file, and no other reading finds a record


class Fit:
    """How well one reading fits the first records of a file. In: whether they are all of it."""

    def __init__(self, head: bytes, context: dict, is_all: bool, source: Source, tables: dict):
        self.context = context
        framed = frames(head, context, source, tables)
        self.num_records = min(len(framed.heads), NUM_FITTED)
        self.has_lengths = context["layout"] != OPEN or context["logtype"] == "little"
        self.is_bad_length = framed.is_bad_length and not self.num_records
        self.is_possible = not framed.is_bad_length or self.num_records == NUM_FITTED
        if not self.num_records and len(head) >= LEN_OPERATION:
            self.is_possible &= self._may_begin(head, framed.len_min, framed.len_max, source, tables)
        self.decoded = decode(head[: int(framed.offsets[self.num_records])], context, source, tables)
        rejects, controls, len_tried = (
            self.decoded.rejects,
            self.decoded.controls,
            int(framed.offsets[self.num_records]),
        )
        self.len_good = len_tried - sum(reject.unit_length for reject in rejects)
        self.num_good = self.num_records - len(rejects)
        self.is_exact = self.is_possible and not rejects and bool(self.num_records)
        self.is_to_the_end = self.is_possible and not rejects and int(framed.offsets[-1]) == len(head)
        self.is_all_fitted = is_all and len_tried == len(head)
        is_proof = self.has_lengths or self.num_records >= NUM_TELLING
        is_text = bool(rejects) and all(reject.kind == "bad_text" for reject in rejects)
        is_end = self.num_records == NUM_FITTED or int(framed.offsets[-1]) == len(head)
        self.is_but_for_text = self.is_possible and is_text and is_proof and is_end  # charset may be another one
        self.len_fitting = len_tried if self.is_but_for_text else self.len_good
        is_near = self.num_good >= NUM_TELLING and self.len_good >= NEARLY * len_tried
        self.is_credible = self.has_lengths or is_near or self.is_but_for_text
        self.is_likely = self.num_good >= NUM_LIKELY and self.len_good > len_tried / 2
        self.is_open = self.is_possible and not self.num_records  # its first record may be one of which more is to come
        self.is_refuted = bool(rejects) or not self.is_possible
        self.offsets = framed.offsets[: self.num_records + 1]
        self.trouble = (
            f", {rejects[0].kind} at byte {rejects[0].byte_offset}"
            if rejects
            else f", bad_length at byte {framed.offsets[-1]}"
            if framed.is_bad_length
            else ""
        )
        operations = self.decoded.changes.column("operation")
        self.has_load = bool(controls) or REFRESH in operations.unique().to_pylist()

    def _may_begin(self, head: bytes, len_min: int, len_max: int, source: Source, tables: dict) -> bool:
        """May a record that is not whole yet begin so? What there is of it tells."""
        order = self.context["byte_order"]
        if not self.has_lengths:
            operation = int.from_bytes(head[:LEN_OPERATION], order)
            return operation == REFRESH if self.context["extract"] == FULL else INSERT <= operation <= DELETE
        known = head[:LEN_LENGTH]  # the length is no less than what its first bytes say
        if int.from_bytes(known.ljust(LEN_LENGTH, b"\0") if order == "big" else known, order) > len_max:
            return False
        if len(head) < len_min:
            return True
        as_whole = len(head).to_bytes(LEN_LENGTH, order) + head[LEN_LENGTH:]
        return all(r.kind == "truncated" for r in decode(as_whole, self.context, source, tables).rejects)

    def tells_the_same(self, other) -> bool:
        return self.decoded.changes.equals(other.decoded.changes) and self.decoded.controls == other.decoded.controls

    @cached_property
    def read(self) -> dict[int, tuple]:
        """What each record that is a change is, by its offset."""
        names = ("unit_offset", "operation", "before", "after")
        columns = [self.decoded.changes.column(name).to_pylist() for name in names]
        return {at: tuple(values) for at, *values in zip(*columns)}

    def outweighs(self, other) -> bool:
        """Does it read each record as another reading does, and by far the most of those that not both read?"""
        if not np.array_equal(self.offsets, other.offsets):
            return False
        num_own, num_others = len(self.read.keys() - other.read.keys()), len(other.read.keys() - self.read.keys())
        is_same = all(other.read.get(at, values) == values for at, values in self.read.items())
        return is_same and 0 < num_own >= NEARLY * (num_own + num_others)

    def may_be_taken_early(self, fits: list) -> bool:
        """May a file that may grow be read so? Where records say their lengths. Else no other reading may turn out to
        be without damage, and FFFF may not turn out to be no empty extract: where options say how records are read; or
        where this reading alone takes all of them, up to the last byte that is there.
        """
        if self.has_lengths or len(fits) == 1:
            return True
        is_alone = self.is_to_the_end and all(fit is self or fit.is_refuted for fit in fits)
        return self.is_exact and not self.decoded.controls and (are_told(fits) or is_alone)

    def told(self, varied: list[str]) -> str:
        """What the reading is, and how far it got."""
        words = ", ".join(f"{OPTION_OF.get(name, name)} {self.context[name]}" for name in varied)
        return f"{words}: {self.num_good} record{'' if self.num_good == 1 else 's'} read{self.trouble}"


def are_told(fits: list[Fit]) -> bool:
    """Do options say where records and items are?"""
    return len({tuple(fit.context[name] for name in TELLING) for fit in fits}) == 1
