"""The places of journals in their transactions, compiled: what transaction.step says of one after the other.

Strategy. The open transactions are a table of cells, found by the number that TRNID is. `advance` stops in front of a
journal that the walks are not certain of: what it does to the open transactions the plain reader says.
Bounds: each journal takes one new cell at most and none is freed for another, so a table of twice as many cells as
journals and transactions that were open before always has a free one, and a search ends there.
"""

import numpy as np

from inlet.codecs.linkexpress.journal.frames import LITTLE
from inlet.codecs.linkexpress.journal.transaction import FIRST, LAST, MIDDLE, ONLY
from inlet.codecs.linkexpress.journal.walk import IS_CERTAIN, STS, TRNID
from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

LEN_TRNID = 8
UNCOUNTED = -1  # counter of an event whose transaction began elsewhere
FREE, OPEN, CLOSED = range(3)  # what a cell is
# the place of a journal: its number among the events of its transaction (0: in none; UNCOUNTED), is it the last one,
# can it not stand where it does; TRNID as a number
COUNTER, IS_LAST, IS_OUT, ID = range(4)
NUM_EVENT = 4


class Cells:
    """The open transactions in cells. In: those that are open, TRNID in hex -> counter, None
    of one that began elsewhere; journals to come.
    """

    def __init__(self, open_: dict[str, int | None], num: int):
        size = 1 << (2 * (len(open_) + num) + 2).bit_length()
        self.keys, self.counters = np.empty(size, np.uint64), np.empty(size, np.int64)
        self.states = np.zeros(size, np.uint8)
        ids = np.array([int(id_, 16) for id_ in open_], np.uint64)
        counters = [UNCOUNTED if counter is None else counter for counter in open_.values()]
        _fill(ids, np.array(counters, np.int64), self.keys, self.counters, self.states)

    def transactions(self) -> dict[str, int | None]:
        """Those that are open behind the last journal."""
        cells = np.flatnonzero(self.states == OPEN)
        found = zip(self.keys[cells], self.counters[cells])
        return {f"{int(key):016X}": None if n == UNCOUNTED else int(n) for key, n in found}


@inlined
def _cell(keys, states, key):
    """The cell of a transaction, or the free one where it would be."""
    mask = np.uint64(len(keys) - 1)
    cell = (key * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
    while states[cell] != FREE and keys[cell] != key:
        cell = (cell + np.uint64(1)) & mask
    return cell


@compiled(nogil=True, _nrt=False)
def _fill(ids, values, keys, counters, states):
    for n in range(len(ids)):
        cell = _cell(keys, states, ids[n])
        keys[cell], counters[cell], states[cell] = ids[n], values[n], OPEN


@inlined
def _id(data, at):
    key = np.uint64(0)
    for k in range(LEN_TRNID):
        key = key << np.uint64(8) | np.uint64(data[at + k])
    return key


@compiled(nogil=True, _nrt=False)
def advance(data, records, heads, start, stop, keys, counters, states, events):
    """Find the places of journals. Out: events[i]. Returns: the first journal that no walk is certain of, or stop."""
    for i in range(start, stop):
        if not heads[i, IS_CERTAIN]:
            return i
        event = events[i]
        event[COUNTER], event[IS_LAST], event[IS_OUT], event[ID] = 0, 0, 0, 0
        at, sts_at = heads[i, TRNID], heads[i, STS]
        if at < 0 or sts_at < 0:
            continue
        key, sts = _id(data, at), uint(data, sts_at, 2, records[i, LITTLE])
        cell = _cell(keys, states, key)
        is_open, is_begun = states[cell] == OPEN, sts == MIDDLE or sts == LAST
        if not is_open:
            counters[cell] = UNCOUNTED if is_begun else 0
        if counters[cell] != UNCOUNTED:
            counters[cell] += 1
        if not is_begun and (is_open or sts != FIRST and sts != ONLY):
            event[IS_OUT] = 1
            continue
        event[COUNTER], event[IS_LAST] = counters[cell], sts == LAST or sts == ONLY
        event[ID] = np.int64(key)
        keys[cell], states[cell] = key, CLOSED if event[IS_LAST] else OPEN
    return stop
