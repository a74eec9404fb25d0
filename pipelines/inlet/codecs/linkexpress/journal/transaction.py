"""The place of a journal in its transaction, by TJNLTRNID and TJNLSTS: 5 alone; 1 opens, 2 goes on, 4 closes.

>>> opened = step({}, "1A", 1)
>>> opened.event, step(opened.open, "1A", 4).event.is_last, step({}, "1A", 2).event
(Event(transaction_id='1A', counter=1, is_last=False), True, None)
"""

from typing import NamedTuple

from inlet.errors import Event

FIRST, MIDDLE, LAST, ONLY = 1, 2, 4, 5


class Step(NamedTuple):
    """Where a journal stands, None where it cannot stand there; the open transactions behind it: id -> counter."""

    event: Event | None
    open: dict[str, int]


def step(open_: dict[str, int], id_: str, sts: int) -> Step:
    """A journal's step. One that cannot stand there keeps its place in the transaction that is open, which so will not
    look whole.
    """
    counter = open_.get(id_, 0) + 1
    if sts not in (FIRST, MIDDLE, LAST, ONLY) or (id_ in open_) != (sts in (MIDDLE, LAST)):
        return Step(None, open_ | {id_: counter} if id_ in open_ else open_)
    is_last = sts in (LAST, ONLY)
    others = {other: last for other, last in open_.items() if other != id_}
    return Step(Event(id_, counter, is_last), others if is_last else others | {id_: counter})


def unknown(open_: dict[str, int]) -> dict[str, int]:
    """The open transactions behind a journal that cannot be read: it may be of any of them, so each keeps a place for
    it.
    """
    return {id_: counter + 1 for id_, counter in open_.items()}
