"""Where groups of records may be cut into blocks, and which of them stand.

In: groups as sequence.groups has them; starts, the first byte of each group and where the last one ends.
"""

from collections.abc import Iterator

import numpy as np

from inlet.codecs.goldengate.trail import sequence
from inlet.codecs.results import ABANDONED, STANDS, Mark

LONG_TRANSACTION = 4  # blocks that a transaction may fill before it is cut


def stops(groups: np.ndarray, starts: np.ndarray, len_block: int) -> Iterator[int]:
    """The number of groups in front of the end of each block: behind a transaction where it is not too long."""
    num, ends = len(groups), starts[1:]
    good, start = np.flatnonzero(groups[:, sequence.IS_OPEN] == 0) + 1, 0
    while start < num:
        enough = np.searchsorted(ends, starts[start] + len_block) + 1
        too_many = np.searchsorted(ends, starts[start] + LONG_TRANSACTION * len_block) + 1
        place = np.searchsorted(good, enough)
        start = int(min(good[place] if place < len(good) else num, too_many, num))
        yield start


def marks(groups: np.ndarray, starts: np.ndarray) -> list[Mark]:
    """What stands, and what was given up and written again."""
    found: list[Mark] = []
    closed = np.flatnonzero(groups[:, sequence.IS_OPEN] == 0)

    def stand_up_to(group: int) -> None:
        """All stands up to the last group before this one behind which no transaction is open."""
        place = np.searchsorted(closed, group)
        end = int(closed[place - 1]) + 1 if place else 0
        if end > (found[-1].num_records if found else 0):
            found.append(Mark(int(starts[end]), end, STANDS))

    for n in map(int, np.flatnonzero(groups[:, sequence.MARK])):
        stand_up_to(n)
        verdict = ABANDONED if groups[n, sequence.MARK] == sequence.ABANDONED_BEFORE else STANDS
        found.append(Mark(int(starts[n]), n, verdict))
    stand_up_to(len(groups))
    return found
