"""What a change means, by example: a sentence, the changes batch by batch as they arrive. Gold must come out as
tests/reference.py says (tests/test_gold.py), and docs/semantics.md shows both.

A row has the key (north, 1) unless told otherwise, and the columns of tests/streams.py.
"""

from dataclasses import replace
from decimal import Decimal

from tests.streams import Change, seq


def ins(place, k=1, **columns):
    return Change(
        "", "", seq(place), "INSERT", after=_row(k, NAME="a", PRICE=Decimal("1.10"), MADE=None, PHOTO=b"\x01") | columns
    )


def upd(place, k=1, **columns):
    return Change("", "", seq(place), "UPDATE", after=_row(k, **columns))


def ups(place, k=1, **columns):
    return replace(upd(place, k, **columns), op="UPSERT")


def move(place, old, new, transaction_id=None, op="UPDATE", **columns):
    return Change("", "", seq(place), op, before=_row(old), after=_row(new, **columns), transaction_id=transaction_id)


def of(transaction_id, *changes):
    return [replace(change, transaction_id=transaction_id) for change in changes]


def whole(transaction_id, *changes):
    """A transaction with its counters and its last event."""
    return [
        replace(c, transaction_id=transaction_id, counter=n, last=n == len(changes)) for n, c in enumerate(changes, 1)
    ]


def dele(place, k=1):
    return Change("", "", seq(place), "DELETE", before=_row(k))


def load(place, k=1, load_id="L"):
    return Change("", "", seq(place), "REFRESH", after=ins(place, k).after, load_id=load_id)


def end(place, load_id="L"):
    return Change("", "", seq(place), "LOAD_END", load_id=load_id)


def wipe(place, op="TRUNCATE"):
    return Change("", "", seq(place), op)


def _row(k, **columns):
    return {"REGION": "north", "ITEM": k, **columns}


EXAMPLES = {  # sentence -> batches
    "a row lives, changes and goes": [[ins(1)], [upd(2, NAME="b")], [dele(3)]],
    "an update of nothing makes an incomplete row": [[upd(1, NAME="b")], [upd(2, PRICE=None)]],
    "an incomplete row is complete once every column came": [
        [upd(1, NAME="b")],
        [upd(2, PRICE=None, MADE=None)],
        [upd(3, PHOTO=b"")],
    ],
    "a delete of nothing has no effect": [[dele(1)], [ins(2), dele(3), dele(4)]],
    "an insert over a row replaces it": [[ins(1)], [ins(2, NAME="b")]],
    "an upsert of a row is an update": [[ins(1)], [ups(2, NAME="b")]],
    "an upsert of nothing inserts what it supplies": [[ups(1, NAME="b")], [dele(2), ups(3, PRICE=None, MADE=None)]],
    "an upsert that supplies every column makes a complete row": [[replace(ins(1), op="UPSERT")], [upd(2, NAME="b")]],
    "a late insert gives an upsert its row": [[ups(5, NAME="b")], [ins(1)]],
    "a late delete takes the row of an upsert": [[ins(1), ups(5, NAME="b")], [dele(3)]],
    "an upsert moves its row to another key": [[ins(1)], [move(2, 1, 2, op="UPSERT", NAME="b")]],
    "an upsert of nothing falls on a row of another key": [[ins(1, 2)], [move(2, 1, 2, op="UPSERT", NAME="b")]],
    "a null overwrites and an absent column does not": [[ins(1)], [upd(2, NAME=None)]],
    "a missing value overwrites none, and what was there is not known to be true": [
        [ins(1)],
        [replace(upd(2), states={"NAME": "missing"})],
        [upd(3, PRICE=None)],
        [upd(4, NAME="b")],
    ],
    "a late insert is folded where it belongs": [[ins(1), dele(5)], [upd(3, NAME="late")]],
    "a late delete closes what was live then": [[ins(1), upd(9, NAME="b")], [dele(5)]],
    "a late insert completes the updates after it": [[upd(5, NAME="b")], [ins(1)]],
    "a late change before everything opens the first version": [[upd(5, NAME="b")], [upd(1, PRICE=None)]],
    "a late truncate closes all rows that were live then": [[ins(1, 1), ins(2, 2), ins(6, 3)], [wipe(5)]],
    "a late empty load closes all rows that were live then": [
        [ins(1, 1), ins(2, 2)],
        [upd(8, 1, NAME="b")],
        [wipe(5, "EMPTY_LOAD")],
    ],
    "a key change carries what it does not supply": [[ins(1)], [move(2, 1, 2, NAME="b")]],
    "a chain of key changes carries through a batch": [
        [ins(1)],
        [move(2, 1, 2), move(3, 2, 3), move(4, 3, 4), upd(5, 4, NAME="z")],
    ],
    "a chain of key changes carries across batches": [[ins(1)], [move(2, 1, 2)], [move(3, 2, 3)], [move(4, 3, 1)]],
    "two rows swap their keys": [[ins(1, 1), ins(2, 2, NAME="b")], [move(3, 1, 9), move(4, 2, 1), move(5, 9, 2)]],
    "rows are renumbered": [
        [ins(k, k, NAME=str(k)) for k in range(1, 9)],
        [move(20 - k, k, k + 1) for k in range(8, 0, -1)],
    ],
    "an update swaps two keys": [[ins(1, 1), ins(2, 2, NAME="b")], [move(3, 1, 2, "T"), move(4, 2, 1, "T")]],
    "an update swaps two keys over two batches": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        [move(3, 1, 2, "T")],
        [move(4, 2, 1, "T"), upd(5, 1, PRICE=None)],
    ],
    "an update swaps two keys and its second half comes first": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        [move(4, 2, 1, "T")],
        [move(3, 1, 2, "T")],
    ],
    "an update swaps two keys twice": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        [move(3, 1, 2, "T"), move(4, 2, 1, "T"), move(6, 1, 2, "U"), move(7, 2, 1, "U")],
    ],
    "an update adds one to every key": [
        [ins(k, k, NAME=str(k)) for k in range(1, 7)],
        [move(10 + k, k, k + 1, "T") for k in range(1, 4)],
        [move(10 + k, k, k + 1, "T") for k in range(4, 7)],
        [upd(20, 3, PRICE=None), dele(21, 7)],
    ],
    "a late change comes between the halves of a swap": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        [move(3, 1, 2, "T"), move(5, 2, 1, "T")],
        [upd(4, 2, PRICE=None)],
    ],
    "a late truncate comes between the halves of a swap": [
        [ins(1, 1), ins(2, 2)],
        [move(3, 1, 2, "T"), move(5, 2, 1, "T")],
        [wipe(4)],
    ],
    "rows are renumbered by deletes and inserts": [
        [ins(k, k, NAME=str(k)) for k in (1, 2, 3)],
        of("T", dele(4, 1), ins(5, 2), dele(6, 2), ins(7, 3), dele(8, 3), ins(9, 4)),
    ],
    "rows are renumbered by deletes and inserts over two batches": [
        [ins(1, 1), ins(2, 2)],
        of("T", dele(4, 1), ins(5, 2, NAME="one")),
        [*of("T", dele(6, 2), ins(7, 3)), upd(9, 2, PRICE=None)],
    ],
    "the delete of a renumbering comes late": [
        [ins(1, 1), ins(2, 2)],
        [*of("T", dele(4, 1), ins(5, 2), ins(7, 3)), upd(9, 2, PRICE=None)],
        of("T", dele(6, 2)),
    ],
    "a late change comes between an insert and its delete": [
        [ins(1)],
        of("T", ins(3, NAME="b"), dele(5)),
        [upd(4, PRICE=None)],
    ],
    "a late truncate comes between an insert and its delete": [[ins(1)], of("T", ins(3, NAME="b"), dele(5)), [wipe(4)]],
    "a row is moved onto one that is deleted next": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        of("T", move(3, 1, 2)),
        of("T", dele(4, 2)),
    ],
    "a row is inserted over one that is moved next": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        of("T", ins(3, 2, NAME="new")),
        of("T", move(4, 2, 3, PRICE=None)),
    ],
    "a row is inserted over one that another transaction deletes": [
        [ins(1)],
        of("T", ins(3, NAME="b")),
        of("U", dele(5)),
    ],
    "an id that is used again is another transaction": [[ins(1)], whole("T", ins(3, NAME="b")), whole("T", dele(9))],
    "a row is moved on by another transaction of the same id": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        whole("T", move(3, 1, 2)),
        whole("T", move(9, 2, 3)),
    ],
    "a swap with counters comes in two batches": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        *([half] for half in whole("T", move(3, 1, 2), move(4, 2, 1))),
    ],
    "rows of two transactions do not swap": [
        [ins(1, 1), ins(2, 2, NAME="b")],
        [move(3, 1, 2, "T"), move(4, 2, 1, "U")],
    ],
    "a row moves twice within a transaction": [[ins(1, 1)], [move(3, 1, 2, "T"), move(4, 2, 3, "T")]],
    "a row moves away and comes back": [[ins(1)], [move(2, 1, 2), upd(3, 2, NAME="b"), move(4, 2, 1)]],
    "a key change onto a row replaces it": [[ins(1, 1), ins(2, 2, NAME="b")], [move(3, 1, 2)]],
    "a key change of nothing is an update without a row": [[ins(2, 2)], [move(3, 1, 2, NAME="b")]],
    "a late update is carried through a key change": [[ins(1), move(5, 1, 2)], [upd(3, NAME="late")]],
    "a late key change moves what followed": [[ins(1), upd(5, 1, NAME="b")], [move(3, 1, 2)]],
    "a late insert at the start of a chain reaches its end": [[move(2, 1, 2), move(3, 2, 3), move(4, 3, 4)], [ins(1)]],
    "a load closes at its start what it does not send": [[ins(1, 1), ins(2, 2)], [load(5, 1), load(6, 3), end(7)]],
    "a load that has not ended closes nothing": [
        [ins(1, 1), ins(2, 2)],
        [load(5, 1), load(6, 3)],
        [upd(8, 1, NAME="b")],
    ],
    "the end of a load comes later": [
        [ins(1, 1), ins(2, 2), ins(3, 4)],
        [load(5, 1), load(6, 3)],
        [upd(8, 2, NAME="b"), move(9, 4, 5)],
        [end(7)],
    ],
    "the end of a load comes before its rows": [[ins(1, 1), ins(2, 2)], [end(7)], [load(6, 3)], [load(5, 1)]],
    "a load breaks off and the next one ends": [
        [ins(1, 1), ins(2, 2), ins(3, 3)],
        [load(5, 1, "A")],
        [load(8, 2, "B"), end(9, "B")],
        [upd(10, 2, NAME="b")],
    ],
    "the first load of a table ends": [[load(1, 1), load(2, 2)], [end(3), upd(4, 1, NAME="b")]],
    "a change after the start of a load wins": [[ins(1, 1)], [load(5, 2), ins(6, 4), load(7, 1), end(8)]],
    "a load over several batches keeps what it sends later": [
        [ins(1, 1), ins(2, 2), ins(3, 3)],
        [load(5, 1), end(8)],
        [load(6, 2)],
        [upd(7, 2, NAME="b")],
    ],
    "a row of a load comes before the others' start": [
        [ins(1, 1), ins(2, 2), ins(4, 3)],
        [load(6, 1), end(7)],
        [load(3, 2)],
    ],
    "a whole load comes late": [[ins(1, 1), ins(2, 2), ins(9, 3)], [load(5, 2), load(6, 4), end(7)]],
    "an earlier row moves the start of a load": [
        [ins(1, 1)],
        [ins(4, 2), load(6, 3), end(7)],
        [load(3, 4)],
        [upd(8, 2, NAME="b")],
    ],
    "a load that starts earlier closes a row between the halves of a swap": [
        [ins(1, 1), ins(2, 2, NAME="b"), move(3, 1, 2, "T"), load(5, 7), end(6), move(7, 2, 9, "T")],
        [load(4, 8), load(8, 2)],
    ],
    "two loads follow each other": [
        [load(1, 1, "A"), load(2, 2, "A"), end(3, "A")],
        [load(5, 2, "B"), load(6, 3, "B"), end(7, "B")],
    ],
    "two loads follow each other within the first batch": [
        [load(1, 1, "A"), load(2, 2, "A"), end(3, "A"), load(5, 2, "B"), load(6, 3, "B"), end(7, "B")]
    ],
    "an empty load and a row share a place": [[ins(1)], [wipe(5, "EMPTY_LOAD"), load(5)]],
    "changes of one batch arrive in any order": [[dele(3), ins(1), upd(2, NAME="b")]],
}
