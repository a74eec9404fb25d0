"""The place of a journal in its transaction, by TJNLTRNID and TJNLSTS: 5 alone; 1 opens, 2 goes on, 4 closes.

A transaction may have begun in an earlier file or message: there its events have no counter.

>>> transactions = OpenTransactions({})
>>> transactions.step("1A", 1), transactions.open
(Event(transaction_id='1A', counter=1, is_last=False), {'1A': 1})
>>> transactions.step("1A", 5), transactions.step("1A", 4), transactions.open
(None, Event(transaction_id='1A', counter=3, is_last=True), {})
>>> transactions.step("1A", 4)
Event(transaction_id='1A', counter=None, is_last=True)
"""

from typing import Protocol

from inlet.errors import Event

FIRST, MIDDLE, LAST, ONLY = 1, 2, 4, 5


class Transactions(Protocol):
    """The open transactions before a journal. Each step takes as long however many are open."""

    def step(self, id_: str, sts: int) -> Event | None:
        """Take a journal. Out: its event, None where it cannot stand there. Such a one keeps its place in the
        transaction that is open, which so will not look whole.
        """

    def unknown(self) -> None:
        """Take a journal that cannot be read: it may be of any open transaction, so each keeps a place for it."""


class OpenTransactions:
    """The open transactions: id -> counter, None of one that began elsewhere."""

    def __init__(self, open_: dict[str, int | None]):
        self._counters, self._num_unknown = dict(open_), 0  # counters without the journals that cannot be read
        self._num_unknown_at_begin = 0  # of the block
        self._met: dict[str, int | None] = {}  # counters as in _counters
        self._seen: set[str] = set()  # in the block
        self._undo: list[tuple[str, bool, int | None]] = []
        self._num_unknown_before = 0

    @property
    def open(self) -> dict[str, int | None]:
        return {id_: _actual(n, self._num_unknown) for id_, n in self._counters.items()}

    def begin_block(self) -> None:
        """The journals to come are of another block."""
        self._met, self._seen, self._num_unknown_at_begin = {}, set(), self._num_unknown

    def of_block(self) -> dict[str, int | None]:
        """What is to be known before the block: the transactions that were open, and of which it has journals. Their
        counters are those at its beginning: its own journals that cannot be read are counted when it is decoded.
        """
        return {id_: _actual(n, self._num_unknown_at_begin) for id_, n in self._met.items()}

    def mark(self) -> None:
        """The place to which `undo` goes back."""
        self._undo, self._num_unknown_before = [], self._num_unknown

    def undo(self) -> None:
        """Take back the journals since the mark."""
        for id_, was_open, counter in reversed(self._undo):
            if was_open:
                self._counters[id_] = counter
            else:
                self._counters.pop(id_, None)
        self._num_unknown = self._num_unknown_before

    def step(self, id_: str, sts: int) -> Event | None:
        """As of Transactions."""
        is_open = id_ in self._counters
        self._undo.append((id_, is_open, self._counters.get(id_)))
        if id_ not in self._seen:
            self._seen.add(id_)
            if is_open:
                self._met[id_] = self._counters[id_]
        before = self._counters.get(id_) if is_open or sts not in (FIRST, ONLY) else -self._num_unknown
        counter = before if before is None else before + 1
        if sts not in (FIRST, MIDDLE, LAST, ONLY) or is_open and sts in (FIRST, ONLY):
            if is_open:
                self._counters[id_] = counter
            return None
        is_last = sts in (LAST, ONLY)
        if is_last:
            self._counters.pop(id_, None)
        else:
            self._counters[id_] = counter
        return Event(id_, _actual(counter, self._num_unknown), is_last)

    def unknown(self) -> None:
        """As of Transactions."""
        self._num_unknown += 1


def _actual(counter: int | None, num_unknown: int) -> int | None:
    return None if counter is None else counter + num_unknown
