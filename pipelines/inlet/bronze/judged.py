"""Ranges of files that the feed's own marks judge: records that stand, and records that their writer gave up."""

from inlet.bronze.framing import FileBlock
from inlet.codecs.results import STANDS


class Judged:
    """Ranges of a source's files as the feed judges them: what stands or was abandoned, and what no mark has judged
    yet.
    """

    def __init__(self, undecided: list[list], path: str, start: int, batch_id: int):
        self.verdicts: list[list] = []  # [path, start, end, records, batch, verdict]
        self.undecided = list(undecided)  # the same without verdict
        self.path, self.batch_id, self.has_marks = path, batch_id, bool(undecided)
        self._start, self._num = start, 0  # of the range that is open at the end of what was added

    def add(self, block: FileBlock) -> None:
        """Judge what the marks of the next block judge. What cannot be framed is judged at once: it is rejected."""
        if "problem" in block.context:
            self._close(block.file_offset)
            self.verdicts.append(
                [self.path, block.file_offset, block.file_offset + len(block.data), 1, self.batch_id, STANDS]
            )
            self._start = block.file_offset + len(block.data)
            return
        self.has_marks |= block.marks is not None
        num = 0
        for mark in block.marks or ():
            self._num += mark.num_records - num
            num = mark.num_records
            self._close(mark.offset)
            for one in self.undecided:
                self._judge(one, mark.verdict)
            self.undecided = []
        self._num += block.num_records - num
        if self._num:
            self.undecided = [one for one in self.undecided if one[:2] != [self.path, self._start]]
            self.undecided.append(
                [self.path, self._start, block.file_offset + len(block.data), self._num, self.batch_id]
            )

    def _close(self, end: int) -> None:
        """End the open range."""
        self.undecided = [one for one in self.undecided if one[:2] != [self.path, self._start]]
        if self._num:
            self.undecided.append([self.path, self._start, end, self._num, self.batch_id])
        self._start, self._num = end, 0

    def _judge(self, one: list, verdict: str) -> None:
        last = self.verdicts[-1] if self.verdicts else None
        if last and last[0] == one[0] and last[2] == one[1] and last[4:] == [one[4], verdict]:
            last[2], last[3] = one[2], last[3] + one[3]  # ranges next to each other are one
        else:
            self.verdicts.append([*one, verdict])
