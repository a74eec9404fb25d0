"""What a change means, in plain Python: section 5 of the design, readable in five minutes, sharing nothing with the pipeline.

The state of a table is a map from key to row. Changes apply in change_seq order within a source; every change that is
applied to a row opens a new version of it, also when nothing differs. Gold must equal this for every stream, whatever
its order of arrival, split into batches and repeats (tests/test_gold.py).
"""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Version:
    """One key and the half-open period [valid_from_seq, valid_to_seq) in which it held these values; None = still open.

    A column that is absent from `values` was never supplied, so the row is not complete; None is SQL NULL.
    `conflict` tells what was odd about the change that opened the version.
    """

    key: tuple
    values: dict[str, Any]
    valid_from_seq: str
    valid_to_seq: str | None = None
    conflict: str | None = None
    is_complete: bool = True


def fold(changes, key: list[str], columns: list[str]) -> tuple[list[Version], list[tuple[str, str]]]:
    """All changes of one source and table -> its versions, and its anomalies as (change_seq, kind)."""
    changes = in_order(changes)
    loads = load_rows(changes)
    live: dict[tuple, Version] = {}
    closed: list[Version] = []
    anomalies: list[tuple[str, str]] = []

    def close(row_key, seq):
        row = live.pop(row_key, None)
        if row:
            closed.append(replace(row, valid_to_seq=seq))
        return row

    def open_(row_key, seq, values, conflict):
        values = values | dict(zip(key, row_key))
        live[row_key] = Version(row_key, values, seq, None, conflict, is_complete=set(values) == set(columns))
        if conflict:
            anomalies.append((seq, conflict))

    for change in changes:
        seq, old_key, new_key = change.seq, before_key(change, key), after_key(change, key)

        if change.load_id and change is loads[change.load_id][0]:           # a load starts: what it does not send again goes
            sent = {after_key(row, key) for row in loads[change.load_id]}
            for row_key in [k for k in live if k not in sent]:
                close(row_key, seq)

        if change.op in ("TRUNCATE", "EMPTY_LOAD"):
            for row_key in list(live):
                close(row_key, seq)

        elif change.op in ("INSERT", "REFRESH"):
            replaced = close(new_key, seq)
            open_(new_key, seq, supplied(change), "insert_over_row" if replaced and change.op == "INSERT" else None)

        elif change.op == "DELETE":
            if not close(old_key, seq):
                anomalies.append((seq, "delete_without_row"))

        elif change.op == "UPDATE":
            row = close(old_key, seq)                                         # same key, or the key that the row leaves
            replaced = close(new_key, seq) if new_key != old_key else None
            conflict = "update_without_row" if not row else "key_change_onto_row" if replaced else None
            open_(new_key, seq, (row.values if row else {}) | supplied(change), conflict)

    return sorted([*closed, *live.values()], key=lambda v: (v.key, v.valid_from_seq)), sorted(anomalies)


def in_order(changes):
    """Each change once, by change_seq. An empty load that shares its place with a row comes before it."""
    return sorted({(c.seq, c.op != "EMPTY_LOAD"): c for c in changes}.values(), key=lambda c: (c.seq, c.op != "EMPTY_LOAD"))


def load_rows(changes) -> dict[str, list]:
    """load_id -> its rows in order; the first is where the load starts."""
    loads: dict[str, list] = {}
    for change in changes:
        if change.op == "REFRESH" and change.load_id:
            loads.setdefault(change.load_id, []).append(change)
    return loads


def supplied(change) -> dict[str, Any]:
    """The after-image without columns that the source could not convert: `missing` never overwrites a value."""
    return {name: value for name, value in (change.after or {}).items() if change.states.get(name) != "missing"}


def before_key(change, key) -> tuple | None:
    image = (change.after or {}) | (change.before or {})
    return tuple(image[k] for k in key) if all(k in image for k in key) else None


def after_key(change, key) -> tuple | None:
    image = (change.before or {}) | (change.after or {})
    return tuple(image[k] for k in key) if all(k in image for k in key) else None


def current(versions) -> list[Version]:
    """One row per live key."""
    return [v for v in versions if v.valid_to_seq is None]


def history(versions) -> list[Version]:
    """One row per key and period, by key and start."""
    return versions


def before_after(changes, key: list[str], columns: list[str]) -> list[dict]:
    """One row per change: images as sent, what changed, what was not supplied."""
    return [{
        "seq": c.seq, "op": c.op,
        "before": c.before and {n: c.before.get(n) for n in columns},
        "after": c.after and {n: c.after.get(n) for n in columns},
        "changed": [n for n in columns if c.op != "DELETE" and n in (c.before or {}) and n in supplied(c)
                    and c.before[n] != supplied(c)[n]],
        "not_supplied": [n for n in columns if c.op in ("INSERT", "REFRESH", "UPDATE") and n not in supplied(c)],
        "key_changed": c.op == "UPDATE" and before_key(c, key) != after_key(c, key),
    } for c in in_order(changes)]
