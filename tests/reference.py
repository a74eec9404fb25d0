"""What a change means, in plain Python: section 5 of the design, readable in five minutes, sharing nothing with the
pipeline.

The state of a table is a map from key to row. Changes apply in change_seq order within a source; every change that is
applied to a row opens a new version of it, also when nothing differs. Gold must equal this for every stream, whatever
its order of arrival and split into batches (tests/test_gold.py), and repeats (tests/test_pipeline.py).
"""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Version:
    """One key and the half-open period [valid_from_seq, valid_to_seq) in which it held these values; None = still open.

    A column that is absent from `values` was never supplied, so the row is not complete; None is SQL NULL. One of
    `stale` has the value of before: the last change of it came as `missing`, so what it is now nobody knows.
    `conflict` tells what was odd about the change that opened the version.
    """

    key: tuple
    values: dict[str, Any]
    valid_from_seq: str
    valid_to_seq: str | None = None
    conflict: str | None = None
    is_complete: bool = True
    key_changed: bool = False  # it came from another key, or took the place of a row that its transaction took away
    stale: frozenset[str] = frozenset()

    def unknown(self, columns) -> list[str]:
        """The columns whose value is not known."""
        return [name for name in columns if name not in self.values or name in self.stale]


ONTO_A_ROW = {
    "insert_over_row": None,
    "key_change_onto_row": None,
    "update_without_row_onto_row": "update_without_row",
}  # conflict -> without the row
UPDATES = ("UPDATE", "UPSERT")
CONFLICT_OF_UPDATE = {  # does it lack the row that it asks for, does it fall on another
    (False, False): None,
    (False, True): "key_change_onto_row",
    (True, False): "update_without_row",
    (True, True): "update_without_row_onto_row",
}


class Rows:
    """The rows of one table while changes apply, and the versions that they close."""

    def __init__(self):
        self.live: dict[tuple, Version] = {}
        self.closed: list[Version] = []
        self.displaced: dict[
            tuple, tuple[Any, Version]
        ] = {}  # key -> the change that put another onto a row, and that row, until the key's next change

    def close(self, key, seq) -> Version | None:
        """The row goes, if it is there."""
        self.displaced.pop(key, None)
        row = self.live.pop(key, None)
        if row:
            self.closed.append(replace(row, valid_to_seq=seq))
        return row

    def put(self, key, change) -> Version | None:
        """An INSERT or a key change brings a row to this key; one that is there goes."""
        row = self.close(key, change.seq)
        if row:
            self.displaced[key] = change, row
        return row

    def take(self, key, change) -> Version | None:
        """The row that a DELETE or a key change takes away. Where the change before it at this key put another row of
        its transaction onto this one (an UPDATE renumbers or swaps keys), it takes the one that was there, and the
        other stays."""
        put, row = self.displaced.get(key, (None, None))
        if not row or not is_one_transaction(put, change):
            return self.close(key, change.seq)
        del self.displaced[key]
        self.live[key] = replace(self.live[key], conflict=ONTO_A_ROW[self.live[key].conflict], key_changed=True)
        return row


def fold(
    changes, key: list[str], columns: list[str], added_again: dict[str, list[str]] | None = None
) -> tuple[list[Version], list[tuple[str, str]]]:
    """All changes of one source and table -> its versions, and its anomalies as (change_seq, kind).

    `added_again`: columns that were dropped and are added again, by the place from which on the table has them. A row
    that is live there has null in them from then on, like every row of a new column: what it held before the drop is
    gone at the source.
    """
    changes, due = in_order(changes), sorted((added_again or {}).items())
    loads, rows, lost = load_rows(changes), Rows(), []
    ended = {
        change.load_id for change in changes if change.op == "LOAD_END"
    }  # before that nothing goes: it may still be sent

    def open_(row_key, seq, values, conflict, key_changed=False, stale=frozenset()):
        values = values | dict(zip(key, row_key))
        is_complete = set(values) == set(columns) and not stale
        rows.live[row_key] = Version(row_key, values, seq, None, conflict, is_complete, key_changed, stale)

    for change in changes:
        while due and due[0][0] <= change.seq:
            place, empty = due.pop(0)
            for row_key, row in list(rows.live.items()):
                rows.close(row_key, place)
                open_(row_key, place, row.values | dict.fromkeys(empty), None, stale=row.stale - set(empty))

        seq, old_key, new_key = change.seq, before_key(change, key), after_key(change, key)

        if (
            change.load_id in ended and change is loads.get(change.load_id, [None])[0]
        ):  # a load starts: what it does not send again goes
            sent = {after_key(row, key) for row in loads[change.load_id]}
            for row_key in [k for k in rows.live if k not in sent]:
                rows.close(row_key, seq)

        if change.op in ("TRUNCATE", "EMPTY_LOAD"):
            for row_key in list(rows.live):
                rows.close(row_key, seq)

        elif change.op == "REFRESH":
            rows.close(new_key, seq)
            open_(new_key, seq, supplied(change), None)

        elif change.op == "INSERT":
            replaced = rows.put(new_key, change)
            open_(new_key, seq, supplied(change), "insert_over_row" if replaced else None)

        elif change.op == "DELETE":
            if not rows.take(old_key, change):
                lost.append((seq, "delete_without_row"))

        elif change.op in UPDATES:
            is_moved = old_key != new_key
            row = rows.take(old_key, change) if is_moved else rows.close(old_key, seq)
            replaced = rows.put(new_key, change) if is_moved else None
            lacks_row = change.op == "UPDATE" and not row  # an UPSERT of no row is an insert of what it supplies
            conflict = CONFLICT_OF_UPDATE[lacks_row, bool(replaced)]
            values, stale = (row.values, row.stale) if row else ({}, frozenset())
            stale = (stale | missing(change)) & set(values) - set(supplied(change))
            open_(new_key, seq, values | supplied(change), conflict, is_moved, stale)

    versions = [v for v in [*rows.closed, *rows.live.values()] if v.valid_from_seq != v.valid_to_seq]
    versions.sort(key=lambda v: (v.key, v.valid_from_seq))
    return versions, sorted(lost + [(v.valid_from_seq, v.conflict) for v in versions if v.conflict])


def is_one_transaction(first, second) -> bool:
    """Two changes at one key, one behind the other. Sources use ids again: a run of an id ends with its last event, and
    its counter only grows.
    """
    return (
        first.transaction_id is not None
        and first.transaction_id == second.transaction_id
        and not first.last
        and (None in (first.counter, second.counter) or first.counter < second.counter)
    )


def in_order(changes):
    """Each change once, by change_seq. At one place an empty load comes before a row, and the end of a load after
    it.
    """

    def place(change):
        return change.seq, {"EMPTY_LOAD": 0, "LOAD_END": 2}.get(change.op, 1)

    return sorted({place(c): c for c in changes}.values(), key=place)


def load_rows(changes) -> dict[str, list]:
    """load_id -> its rows in order; the first is where the load starts."""
    loads: dict[str, list] = {}
    for change in changes:
        if change.op == "REFRESH" and change.load_id:
            loads.setdefault(change.load_id, []).append(change)
    return loads


def supplied(change) -> dict[str, Any]:
    """The after-image without columns whose value did not come: `missing` and `lob_incomplete` never overwrite one."""
    states, image = change.states, change.after or {}
    return {name: value for name, value in image.items() if states.get(name) not in ("missing", "lob_incomplete")}


def missing(change) -> set[str]:
    """Columns that have got a value that the source could not send."""
    return {name for name, state in change.states.items() if state == "missing"}


def differing(change, columns) -> list[str]:
    """Columns that both images supply and in which they differ."""
    before, after = change.before or {}, supplied(change) if change.op != "DELETE" else {}
    return [n for n in columns if n in before and n in after and before[n] != after[n]]


def before_key(change, key) -> tuple | None:
    image = (change.after or {}) | (change.before or {})
    return tuple(image[k] for k in key) if all(k in image for k in key) else None


def after_key(change, key) -> tuple | None:
    image = (change.before or {}) | (change.after or {})
    return tuple(image[k] for k in key) if all(k in image for k in key) else None


def anomalies(changes, key: list[str], columns: list[str]) -> list[tuple[str, str]]:
    """(change_seq, kind) of all that is odd: what the fold finds, and masks that contradict the images."""
    found = [
        (row["seq"], "mask_contradicts_images") for row in before_after(changes, key, columns) if row["mask_conflicts"]
    ]
    return sorted(found + fold(changes, key, columns)[1])


def current(versions) -> list[Version]:
    """One row per live key."""
    return [v for v in versions if v.valid_to_seq is None]


def history(versions) -> list[Version]:
    """One row per key and period, by key and start."""
    return versions


def before_after(changes, key: list[str], columns: list[str]) -> list[dict]:
    """One row per change: images as sent, what changed, what was not supplied."""
    return [
        {
            "seq": c.seq,
            "op": c.op,
            "before": c.before and {n: c.before.get(n) for n in columns},
            "after": c.after and {n: c.after.get(n) for n in columns},
            "changed": differing(c, columns) if c.mask is None else [n for n in columns if n in c.mask],
            "mask_conflicts": [
                n
                for n in columns
                if c.op in UPDATES
                and c.mask is not None
                and n in (c.before or {})
                and n in supplied(c)
                and (n in c.mask) != (n in differing(c, columns))
            ],
            "not_supplied": [n for n in columns if c.op in ("INSERT", "REFRESH", *UPDATES) and n not in supplied(c)],
            "key_changed": c.op in UPDATES and before_key(c, key) != after_key(c, key),
        }
        for c in in_order(changes)
    ]
