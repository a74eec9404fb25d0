"""The places of journals in their transactions, compiled: what transaction.step says of one after the other.

Strategy. The open transactions are a table of cells, found by the number that TRNID is. `advance` stops in front of a
journal that the walks are not certain of: the plain reader takes it, with the same cells. A journal that cannot be read
may be of any open transaction: one total counts these, which is added to each counter when that is asked for.
Bounds: each journal takes one new cell at most and none is freed for another, so a table of twice as many cells as
journals and transactions that were open before always has a free one, and a search ends there. A journal writes one
row of `met` at most, which has as many rows as there are journals.
"""

import numpy as np

from inlet.codecs.linkexpress.journal.frames import LITTLE
from inlet.codecs.linkexpress.journal.transaction import FIRST, LAST, MIDDLE, ONLY
from inlet.codecs.linkexpress.journal.walk import IS_CERTAIN, STS, TRNID
from inlet.errors import Event
from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

LEN_TRNID = 8
UNCOUNTED = -1  # counter of an event whose transaction began elsewhere
NOT_COUNTED = -(1 << 62)  # the same in a cell, whose counter is without the journals that cannot be read
FREE, OPEN, CLOSED = range(3)  # what a cell is
# the place of a journal: its number among the events of its transaction (0: in none; UNCOUNTED), is it the last one,
# can it not stand where it does; TRNID as a number
COUNTER, IS_LAST, IS_OUT, ID = range(4)
NUM_EVENT = 4
NUM_UNKNOWN, BLOCK, NUM_BEFORE = range(3)  # journals that cannot be read; number of the block; its rows of `met`
ID_MET, COUNTER_MET = range(2)  # a transaction that was open before the block and has journals in it: as in its cell
NUM_MET = 2


class Cells:
    """The open transactions in cells, as OpenTransactions has them. In: those that are open, TRNID in hex -> counter,
    None of one that began elsewhere; journals to come.
    """

    def __init__(self, open_: dict[str, int | None], num: int):
        size = 1 << (2 * (len(open_) + num) + 2).bit_length()
        self.keys, self.counters = np.empty(size, np.uint64), np.empty(size, np.int64)
        self.states, self.blocks = np.zeros(size, np.uint8), np.zeros(size, np.int64)
        self.met = np.empty((num, NUM_MET), np.int64)
        self.totals, self.num_unknown_at_begin = np.array([0, 1, 0], np.int64), 0  # of the block
        self.one = np.zeros(NUM_EVENT, np.int64)
        ids = np.array([int(id_, 16) for id_ in open_], np.uint64)
        counters = [NOT_COUNTED if counter is None else counter for counter in open_.values()]
        _fill(ids, np.array(counters, np.int64), self.keys, self.counters, self.states)

    def begin_block(self) -> None:
        """The journals to come are of another block."""
        self.totals[BLOCK] += 1
        self.totals[NUM_BEFORE] = 0
        self.num_unknown_at_begin = int(self.totals[NUM_UNKNOWN])

    def of_block(self) -> dict[str, int | None]:
        """As of OpenTransactions."""
        met = self.met[: self.totals[NUM_BEFORE]]
        return _named(met[:, ID_MET].astype(np.uint64), met[:, COUNTER_MET], self.num_unknown_at_begin)

    @property
    def open(self) -> dict[str, int | None]:
        """Those that are open behind the last journal."""
        cells = np.flatnonzero(self.states == OPEN)
        return _named(self.keys[cells], self.counters[cells], self.totals[NUM_UNKNOWN])

    def step(self, id_: str, sts: int) -> Event | None:
        """As of Transactions."""
        _step_one(
            np.uint64(int(id_, 16)), sts, self.keys, self.counters, self.states, self.blocks, self.met, self.totals,
            self.one,
        )  # fmt: skip
        if self.one[IS_OUT]:
            return None
        counter = int(self.one[COUNTER])
        return Event(id_, None if counter == UNCOUNTED else counter, bool(self.one[IS_LAST]))

    def unknown(self) -> None:
        """As of Transactions."""
        self.totals[NUM_UNKNOWN] += 1


def _named(keys, counters, num_unknown) -> dict[str, int | None]:
    """In: counters as in cells; how many journals that cannot be read count."""
    found = zip(keys.tolist(), counters.tolist(), (counters + num_unknown).tolist())
    return {f"{key:016X}": None if n == NOT_COUNTED else actual for key, n, actual in found}


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


@inlined
def _step(key, sts, keys, counters, states, blocks, met, totals, event):
    """What transaction.OpenTransactions.step does. Out: event, all but ID."""
    event[COUNTER], event[IS_LAST], event[IS_OUT], event[ID] = 0, 0, 0, 0
    cell = _cell(keys, states, key)
    is_open, is_begun, num_unknown = states[cell] == OPEN, sts == MIDDLE or sts == LAST, totals[NUM_UNKNOWN]
    if blocks[cell] != totals[BLOCK]:
        blocks[cell] = totals[BLOCK]
        if is_open:
            met[totals[NUM_BEFORE], ID_MET] = np.int64(key)
            met[totals[NUM_BEFORE], COUNTER_MET] = counters[cell]
            totals[NUM_BEFORE] += 1
    if not is_open:
        counters[cell] = NOT_COUNTED if is_begun else -num_unknown
    if counters[cell] != NOT_COUNTED:
        counters[cell] += 1
    if not is_begun and (is_open or sts != FIRST and sts != ONLY):
        event[IS_OUT] = 1
        return
    event[COUNTER] = UNCOUNTED if counters[cell] == NOT_COUNTED else counters[cell] + num_unknown
    event[IS_LAST] = sts == LAST or sts == ONLY
    keys[cell], states[cell] = key, CLOSED if event[IS_LAST] else OPEN


@compiled(nogil=True, _nrt=False)
def _step_one(key, sts, keys, counters, states, blocks, met, totals, event):
    _step(key, sts, keys, counters, states, blocks, met, totals, event)


@compiled(nogil=True, _nrt=False)
def advance(data, records, heads, start, stop, keys, counters, states, blocks, met, totals, events):
    """Find the places of journals. Out: events[i]. Returns: the first journal that no walk is certain of, or stop."""
    for i in range(start, stop):
        if not heads[i, IS_CERTAIN]:
            return i
        at, sts_at = heads[i, TRNID], heads[i, STS]
        if at < 0 or sts_at < 0:
            events[i, COUNTER], events[i, IS_LAST], events[i, IS_OUT], events[i, ID] = 0, 0, 0, 0
            continue
        key, sts = _id(data, at), uint(data, sts_at, 2, records[i, LITTLE])
        _step(key, sts, keys, counters, states, blocks, met, totals, events[i])
        if events[i, COUNTER]:
            events[i, ID] = np.int64(key)
    return stop
