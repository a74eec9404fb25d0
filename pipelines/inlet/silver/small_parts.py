"""Parts of changes, settled without Spark where they are few: what parts.py does, with the same rules.

Python joins the parts of a batch with those that waited. Where silver may hold a change of theirs already, or its codec
has to look at other places for it, Spark does all of it.
"""

import logging
from collections import defaultdict

import pyarrow as pa

from inlet import change, lake
from inlet.bronze import guard
from inlet.codecs.codec import offers
from inlet.silver import decoded, parts
from inlet.silver.batch import Batch
from inlet.sql import plain_among, plain_literal

NUM_PARTS = 2_000  # of a batch, and of what waits, at most
MOVED = {"waiting": False, "settled": True}  # result -> is_settled
log = logging.getLogger(__name__)


def join(batch: Batch, codec, sources: list[str], fresh: list[dict]) -> None:
    """Settle what the parts of a batch settle, as `parts.join`. In: decoded rows of the parts, which are few; none
    where the batch has none."""
    if fresh and (rows := settled(batch, codec, fresh, [])) is not None:
        write(batch, rows)
    elif fresh:
        types = {c.name: c.type for c in change.WAITING}
        schema = lake.arrow_schema(", ".join(f"{name} {types[name]}" for name in parts.PARTS))
        given = batch.spark.createDataFrame(pa.Table.from_pylist(fresh, schema=schema))
        parts.join_new(batch, codec, sources, given.selectExpr("*", "true as is_new"))
    parts.settle_known(batch, codec, sources)


def settled(batch: Batch, codec, fresh: list[dict], written: list[dict]) -> list[dict] | None:
    """What new parts give, together with those that waited: changes, rejects, control events, accounts, and rows that
    move in silver.waiting. In: rows of decoded.COLUMNS of one codec: parts; changes that this batch will have written
    before them. Out: None where Spark has to settle them."""
    if getattr(codec, "IDENTITY", None) or batch.again or batch.is_apart or len(fresh) > NUM_PARTS:
        return None
    before = _waiting(batch, {(row["source"], row["part_key"]) for row in fresh})
    if before is None:
        return None
    of_key = defaultdict(list)
    for row, is_new in [*((row, True) for row in fresh), *((row, False) for row in before)]:
        of_key[row["source"], row["part_key"]].append(row | {"is_new": is_new})
    try:
        rows = guard.in_child(lambda: [row for given in of_key.values() for row in _settle(batch, codec, given)])
    except Exception as error:  # Spark finds the unit of a decoder that fails, or raises the same
        log.info("parts of batch %d go through Spark: %s", batch.batch_id, guard.why(error))
        return None
    return rows if _are_new(batch, codec, rows, written) else None


def write(batch: Batch, rows: list[dict]) -> None:
    """Write what parts have given."""
    decoded.add(batch, rows)
    if moved := [row | {"is_settled": MOVED[row["result"]]} for row in rows if row["result"] in MOVED]:
        batch.add(moved, "silver.waiting")


def _settle(batch: Batch, codec, rows: list[dict]) -> list[dict]:
    return parts.settle(batch.project, codec, sorted(rows, key=parts.order))


def _waiting(batch: Batch, keys: set[tuple[str, str]]) -> list[dict] | None:
    """The parts of these keys that waited when this batch began; None where they are many."""
    of_keys = " and ".join(
        plain_among(column, {key[n] for key in keys}) for n, column in enumerate(("source", "part_key"))
    )
    where = f"where {of_keys} and batch_id < {batch.batch_id} {parts.WAITS} limit {NUM_PARTS + 1}"
    rows = lake.peek(batch.project.lakehouse_path(), "silver.waiting", parts.PARTS, where)
    return [row for row in rows if (row["source"], row["part_key"]) in keys] if len(rows) <= NUM_PARTS else None


def _are_new(batch: Batch, codec, rows: list[dict], written: list[dict]) -> bool:
    """True if silver has no change at the place of one of these, nor of a part that begins to wait."""
    changes = [(row["source"], row["change_seq"]) for row in rows if row["result"] == "change"]
    halves = [row for row in rows if row["result"] == "waiting" and row["unit_length"] and offers(codec, "half")]
    places = changes + [(row["source"], row["change_seq"]) for row in halves if row["change_seq"] is not None]
    if len(set(places)) < len(places) or any(
        row["operation"] == "REFRESH" for row in rows if row["result"] == "change"
    ):
        return False
    if not {(row["source"], row["change_seq"]) for row in written}.isdisjoint(places):
        return False
    return not changes_at(batch, places)


def changes_at(batch: Batch, places: list[tuple[str, str]]) -> bool:
    """True if silver has a change at one of these places: source, change_seq."""
    for source in {source for source, _ in places}:
        of_source = plain_among("change_seq", (seq for name, seq in places if name == source))
        at = f"where source = {plain_literal(source)} and {of_source} limit 1"
        if lake.peek(batch.project.lakehouse_path(), "silver.changes", ["change_seq"], at):
            return True
    return False
