"""The place of a journal in its transaction, by TJNLTRNID and TJNLSTS: 5 alone; 1 opens, 2 goes on, 4 closes.

A transaction may have begun in an earlier file or message: there its events have no counter.

>>> opened = step({}, "1A", 1)
>>> opened.event, step(opened.open, "1A", 4).event.is_last, step(opened.open, "1A", 5).event
(Event(transaction_id='1A', counter=1, is_last=False), True, None)
>>> step({}, "1A", 4).event
Event(transaction_id='1A', counter=None, is_last=True)
"""

from typing import NamedTuple

from inlet.errors import Event

FIRST, MIDDLE, LAST, ONLY = 1, 2, 4, 5


class Step(NamedTuple):
    """Where a journal stands, None where it cannot stand there; the open transactions behind it: id -> counter, None of
    one that began elsewhere.
    """

    event: Event | None
    open: dict[str, int | None]


def step(open_: dict[str, int | None], id_: str, sts: int) -> Step:
    """A journal's step. One that cannot stand there keeps its place in the transaction that is open, which so will not
    look whole.
    """
    counter = _next(open_[id_]) if id_ in open_ else 1 if sts in (FIRST, ONLY) else None
    if sts not in (FIRST, MIDDLE, LAST, ONLY) or id_ in open_ and sts in (FIRST, ONLY):
        return Step(None, open_ | {id_: counter} if id_ in open_ else open_)
    is_last = sts in (LAST, ONLY)
    others = {other: last for other, last in open_.items() if other != id_}
    return Step(Event(id_, counter, is_last), others if is_last else others | {id_: counter})


def unknown(open_: dict[str, int | None]) -> dict[str, int | None]:
    """The open transactions behind a journal that cannot be read: it may be of any of them, so each keeps a place for
    it.
    """
    return {id_: _next(counter) for id_, counter in open_.items()}


def _next(counter: int | None) -> int | None:
    return counter if counter is None else counter + 1
