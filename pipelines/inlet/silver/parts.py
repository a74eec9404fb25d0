"""Changes that are made of several records. A record that is no change by itself is a part; parts of one key wait in
silver.waiting, in whatever unit, file or batch they come, until their codec settles them (`join`). A change bears the
batch that settles it.

What the feed says later ends a wait: another part, a note, or the change itself, which a unit held whole. The clock
decides no meaning: it only makes rejects (`part_missing`, source option `part_wait_minutes`), which are decoded again
when another part of their key comes. silver.waiting only grows, so a batch that dies is recovered like any other: a
part waits while the last of its rows of whole batches is not settled.
"""

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from inlet import change, lake, unit
from inlet.bronze import guard
from inlet.codecs.codec import offers
from inlet.codecs.results import Waiting
from inlet.config import Project
from inlet.errors import AccountingError, InletError, Reject
from inlet.lake import engine
from inlet.silver import decoded, repeated_parts
from inlet.silver.batch import Batch, among
from inlet.silver.small_transactions import MAX_NAMES
from inlet.sql import plain_among, plain_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE = ["source", "unit_id", "unit_offset", "unit_length", "part_key"]  # a note stands beside a part
MISSING = "part_missing"
NEWEST = f"row_number() over (partition by {', '.join(PLACE)} order by batch_id desc, is_settled desc)"
WAITS = f"qualify {NEWEST} = 1 and not is_settled"
PARTS = [c.name for c in change.WAITING if c.name not in ("batch_id", "decoded_at")]


def waiting(project: Project) -> list[dict]:
    """Parts that wait, without their bytes. Read without Spark."""
    lakehouse, table = project.lakehouse_path(), "silver.waiting"
    undecoded = lake.lacking(lakehouse, table, "silver.batches", ["batch_id", "source"])
    places = [f"(batch_id = {row['batch_id']} and source = {plain_literal(row['source'])})" for row in undecoded]
    of_whole = f"where not ({' or '.join(places) or 'false'})"
    place, last = ", ".join(PLACE), "max(2 * batch_id + cast(is_settled as int))"
    left = f"select {place} from rows {of_whole} group by {place} having {last} % 2 = 0"  # settled parts end here
    same = " and ".join(f"r.{name} = w.{name}" for name in PLACE)
    columns = [*PLACE, "note", "change_seq", "is_settled", "batch_id"]
    return lake.peek(lakehouse, table, columns, f"r left semi join ({left}) w on {same} {of_whole} {WAITS}")


def returning(project: Project) -> set[tuple]:
    """(source, unit_id, unit_offset) of parts that were rejected as `part_missing` and of whose key another part has
    come since and waits: one that was there before has been looked at together with them. Read without Spark.
    """
    come: dict[tuple, int] = {}
    for row in waiting(project):
        key = row["source"], row["part_key"]
        come[key] = max(row["batch_id"], come.get(key, 0))
    columns, keys = [*PLACE, "batch_id"], {part_key for _, part_key in come}
    of_keys = plain_among("part_key", keys) if len(keys) <= MAX_NAMES else "true"
    settled_rows = f"where is_settled and {of_keys}"
    rows = lake.peek(project.lakehouse_path(), "silver.waiting", columns, settled_rows) if come else []
    settled: dict[tuple, int] = {}
    for row in rows:
        place = tuple(row[name] for name in PLACE)
        settled[place] = max(row["batch_id"], settled.get(place, 0))
    return {place[:3] for place, batch_id in settled.items() if come.get((place[0], place[4]), -1) >= batch_id}


def reject_overdue(batch: Batch, now: datetime) -> None:
    """Reject the parts that have waited too long. In: when the batch was landed, so that it is the same whenever the
    batch is decoded.
    """
    limits = {name: batch.project.sources[name].part_wait_minutes for name in batch.sources}
    for name, minutes in limits.items():
        if minutes is None:
            continue
        late = f"decoded_at < timestamp'{now - timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S.%fZ}'"
        overdue = engine.kept(_still_waiting(batch, [name]).where(f"unit_length > 0 and {late}"))
        batch.append(
            overdue.selectExpr(
                "source",
                f"'{MISSING}' as kind",
                "unit_offset as byte_offset",
                f"'the other records of its change within {minutes:g} minutes' as expected",
                "concat('none of ', part_key) as found",
                "raw",
                "change_seq",
                "unit_id",
                "unit_offset",
                "unit_length",
            ),
            "silver.rejects",
        )
        batch.append(
            overdue.selectExpr(*(name for name in PARTS if name != "is_settled"), "true as is_settled"),
            "silver.waiting",
        )
        engine.release(overdue)


def join(batch: Batch, codec, sources: list[str], rows: "DataFrame") -> None:
    """Settle what the parts of a batch settle, together with those that waited, and those whose change the batch wrote
    from records that are no parts. In: decoded rows of the batch.
    """
    fresh = rows.where("result = 'part'").selectExpr(*PARTS, "true as is_new")
    if not fresh.isEmpty():
        join_new(batch, codec, sources, fresh)
    settle_known(batch, codec, sources)


def settle_known(batch: Batch, codec, sources: list[str]) -> None:
    """Settle the parts that waited and whose change the batch wrote from records that are no parts."""
    waits = waiting(batch.project) if offers(codec, "half") else []
    if may_be_known(waits, sources) and _changes_come(batch, [row for row in waits if row["source"] in sources]):
        repeated_parts.settle(batch, codec, sources, _still_waiting(batch, sources).selectExpr(*PARTS))


def _changes_come(batch: Batch, waits: list[dict]) -> bool:
    """True if this batch has written a change at the place of a part that waits; of very many, between their places."""
    places = {row["change_seq"] for row in waits if row["change_seq"] and row["unit_length"]}
    between = f"change_seq between {plain_literal(min(places))} and {plain_literal(max(places))}"
    there = plain_among("change_seq", places) if len(places) <= MAX_NAMES else between
    written = f"where {batch.stored} and {there} limit 1"
    return bool(lake.peek(batch.project.lakehouse_path(), "silver.changes", ["change_seq"], written))


def may_be_known(rows: list[dict], sources: list[str]) -> bool:
    """Can silver know the change of a part that waits? In: parts that wait; the sources that are asked about."""
    return any(row["source"] in sources and row["change_seq"] and row["unit_length"] for row in rows)


def join_new(batch: Batch, codec, sources: list[str], fresh: "DataFrame") -> None:
    """Settle what new parts settle, together with those that waited. In: rows of PARTS with `is_new`, which is true."""
    before = _waiting_before(batch, sources).selectExpr(*PARTS, "false as is_new")
    own = before.join(fresh.select("source", "part_key").distinct(), ["source", "part_key"], "left_semi")
    touched = engine.kept(fresh.unionByName(own))
    join = _joiner(batch.project, codec)
    joined = engine.kept(touched.groupBy("source", "part_key").applyInArrow(join, f"{decoded.DDL}, is_new boolean"))
    raw = touched.where("unit_length > 0").select("unit_id", "unit_offset", "raw")
    decoded.write(batch, codec, joined, lambda conflicts: conflicts.join(raw, ["unit_id", "unit_offset"]))
    moved = joined.where("result in ('waiting', 'settled')").selectExpr(
        *[name for name in PARTS if name != "is_settled"], "result = 'settled' as is_settled"
    )
    if offers(codec, "half"):
        begun = joined.where("result = 'waiting'").selectExpr(*PARTS)
        repeated_parts.write(batch, codec, sources, begun, raw)
        moved = moved.where("is_settled")
    batch.append(moved, "silver.waiting")
    engine.release(touched)
    engine.release(joined)


def _waiting_before(batch: Batch, sources: list[str]):
    """The rows of silver.waiting that waited when this batch began."""
    return batch.spark.sql(
        f"select * from (select *, {NEWEST} as nth from silver.waiting "
        f"where {among(sources)} and batch_id < {batch.batch_id}) where nth = 1 and not is_settled"
    )


def _still_waiting(batch: Batch, sources: list[str]):
    """The rows of `_waiting_before` that this batch has not settled so far."""
    settled = batch.spark.sql(f"select {', '.join(PLACE)} from silver.waiting where is_settled and {batch.rows}")
    return _waiting_before(batch, sources).join(settled, PLACE, "left_anti")


def _joiner(project: Project, codec):
    def join(group):
        import pyarrow as pa

        schema = lake.arrow_schema(f"{decoded.DDL}, is_new boolean")
        return pa.Table.from_pylist(settle(project, codec, sorted(group.to_pylist(), key=order)), schema=schema)

    return join


def order(row: dict) -> tuple:
    """By this the parts of a key are given to their codec."""
    return row["change_seq"] or "", unit.order(row["unit_id"]), row["unit_offset"], row["unit_length"]


def settle(project: Project, codec, rows: list[dict]) -> list[dict]:
    """Rows of changes, rejects, an account, and of parts that begin or cease to wait. In: parts of one key, in order,
    each with `is_new`."""
    source, key = project.sources[rows[0]["source"]], rows[0]["part_key"]
    given = [Waiting(row["unit_id"], decoded.part_of(row), row["raw"], json.loads(row["context"])) for row in rows]
    try:
        found = codec.join(key, given, source, project.tables_of(source))
        changes, rejects = (
            [decoded.change_row(row, source.codec, project.tables_of(source)) for row in found.changes],
            [(unit_id, reject) for unit_id, reject in found.rejects],
        )
        left = [_place(one.unit_id, one.part) for one in found.waiting]
        num_apart = len(found.control)
    except InletError:
        raise
    except Exception as error:  # whatever a codec did not foresee: its parts are rejected, and stop nothing
        changes, left, num_apart = [], [], 0
        rejects = [
            (
                row["unit_id"],
                Reject(
                    guard.KIND,
                    row["unit_offset"],
                    row["unit_length"],
                    row["unit_offset"],
                    guard.EXPECTED,
                    guard.why(error),
                    row["raw"],
                ),
            )
            for row in rows
            if row["unit_length"]
        ]
    records = {
        (row["unit_id"], row["unit_offset"]): row["unit_length"]
        for row in rows
        if row["unit_length"] and _place(row["unit_id"], decoded.part_of(row)) not in left
    }
    accounted = [(row["unit_id"], row["unit_offset"], row["unit_length"]) for row in changes] + [
        (unit_id, r.unit_offset, r.unit_length) for unit_id, r in rejects
    ]
    if len(set(accounted)) < len(accounted) or not set(accounted) <= {
        (*place, size) for place, size in records.items()
    }:
        raise AccountingError(
            f"codec {source.codec}, parts of {key}: changes and rejects stand at {accounted}, settled parts at "
            f"{sorted(records.items())}",
            "Each names the place of one settled part. It is a fault of the codec",
        )
    if rejects and (num_lost := len(records) - len(accounted) - num_apart) > 0:
        raise AccountingError(
            f"codec {source.codec}, parts of {key}: {len(rejects)} are rejected, and {num_lost} others are settled "
            "without a change",
            "Where `join` rejects, each part that it settles is a change or a reject, so that a replay has them "
            "all. It is a fault of the codec",
        )
    unwanted = {(unit_id, r.unit_offset, r.unit_length) for unit_id, r in rejects if not decoded.is_wanted(r, source)}
    wanted = [row for row in accounted if row not in unwanted]
    account = decoded.account_row(len(records) - len(wanted), sum(records.values()) - sum(size for *_, size in wanted))
    moved = [
        row | {"result": "waiting" if _place(row["unit_id"], decoded.part_of(row)) in left else "settled"}
        for row in rows
    ]
    # a part that comes and goes in one batch never waited; one that waits on has its row
    moved = [row for row in moved if row["is_new"] == (row["result"] == "waiting")]
    of_rejects = [
        row | {"unit_id": unit_id} for unit_id, reject in rejects for row in decoded.rows_of_rejects([reject], source)
    ]
    of_source = [row | {"source": source.name} for row in (*changes, *of_rejects, account)]
    return [*of_source, *moved]


def _place(unit_id: str, part) -> tuple:
    return unit_id, part.unit_offset, part.unit_length, part.note
