"""Publish: the public views of all tables move together, to one committed boundary of every source.

Gold's tables move one after another. Analysts read views in `public`, which show them at the *published point*: a Delta
version of each table, and of each source the change_seq up to which its changes count. A point lies where no
transaction is open, so nobody sees half of one; of a source that says so, at a checkpoint (at_checkpoints.py). As the
tables of a run become ready, their views are written so that they still show the last point and already know the next;
then the one view `public._point` is altered, which is the commit: a query reads it once, and all its tables go by what
it said. A query that is planned while two points pass asks to be run again rather than mix them.

`public._point` has one row: number; moved: table -> number of the point that last moved its views. The point itself is
a property of it. `gold.published` is its log, one row per run that came this far, for people, `inlet status` and
engines without these views.
"""

import time
import zlib
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from inlet import lake
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.gold.build import steps
from inlet.lake.delta_log import UPKEEP
from inlet.lake.spark import side_by_side
from inlet.lake.tables import enter_all
from inlet.publish import at_checkpoints, checkpoints, fixed_views, kept_versions, late, views
from inlet.publish.hold import freeze, holds_of, last_before
from inlet.publish.point import EVENTS, Point, commit, is_logged, log, logged, newest, published, shown
from inlet.publish.times import is_untimed
from inlet.silver import change_table_view, header_views
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 24 * 3600  # after which the versions of all tables are looked up


def pending(project: Project) -> bool:
    """Has the ledger batches that no published point knows of, or shall a source wait for no transaction or checkpoint
    any more? Told without Spark.
    """
    last = newest(project) or {"batches": (), "held": ()}
    seen, waits = dict(last["batches"]), [name for name, why in last["held"] if why.startswith("transaction ")]
    if any(at_checkpoints.is_over(project, name, why) for name, why in last["held"]):
        return True
    if any(name in project.sources and not project.sources[name].open_transaction_minutes for name in waits):
        return True
    ledger = lake.peek(project.lakehouse_path(), "silver.batches", ["source", "batch_id"])
    return any(row["batch_id"] > seen.get(row["source"], -1) for row in ledger)


def run(
    project: Project, spark: "SparkSession", on_late: Callable[[list[late.Late]], None] = lambda late: None
) -> Point:
    """Move the public views to where gold is, as far as transactions and checkpoints allow. Doing it twice changes
    nothing. To be called when all tables of gold have what silver has. In: what is called with the late changes of a
    point that moved. Out: the point they show then; `held` tells which sources wait, and for what."""
    last, before = published(project, spark), newest(project)
    if before and before["number"] > last.number:
        raise ConfigError(
            f"The catalog shows point {last.number}, and the newest is {before['number']}: the last run on this "
            "lakehouse had another catalog",
            "Run with that catalog: set SPARK_REMOTE as for that run, or restore the catalog of that day",
        )
    if last.number > (before or {"number": 0})["number"]:  # a run died between the two
        log(project, spark, last, before)
        before = newest(project)
    ledger = _ledger(project)
    point = _next(project, spark, last, ledger)
    for table in project.tables.values():
        if _is_moved(table, last, point):
            point.table(table.name).moved = point.number
    if is_moved := point.moved != last.moved or point.points != last.points:
        kept_versions.note_pin(project, kept_versions.SHOWN, point.number, point.versions)
        if not is_logged(project):
            _move(project, spark, last, point, ledger)
    else:
        point.number = last.number
    log(project, spark, point, before)
    if is_moved:
        on_late(late.changes(project, last, point, late.sources(ledger, last)))
    return point


def show(project: Project, spark: "SparkSession") -> None:
    """Bring the views of this machine's catalog to the newest point of a lakehouse in a store. Doing it again changes
    nothing. Raises: ConfigError where the contracts are others than those that the point was published with."""
    if not is_logged(project):
        return
    with lake.alone(project.lakehouse_path(), "_showing"):
        last, row = shown(project, spark), newest(project) or {"number": 0, "versions": ()}
        published_ = {name.rpartition("__")[0] for name in dict(row["versions"])}
        mine = {table.name for table in project.tables.values()} & published_
        if last.number == row["number"] and mine <= last.tables.keys():
            return
        point = logged(project)
        point.tables = {name: about for name, about in point.tables.items() if name in mine}
        for table in project.tables.values():
            shape = point.table(table.name).shape
            if shape is not None and views.shape(table, is_untimed(table.name, point))[0] != shape:
                raise ConfigError(
                    f"Point {point.number} was published with another contract of {table.table}, or another Inlet",
                    "Take the project, and the Inlet, of the machine that runs it; or run it with these",
                )
        codecs = {source.codec for source in project.sources.values()}
        header_views.write(spark, codecs)
        change_table_view.write(spark, codecs)
        enter_all(spark, project.lakehouse_path())
        _move(project, spark, last, point, _ledger(project))


def _ledger(project: Project) -> list[dict]:
    return lake.peek(project.lakehouse_path(), "silver.batches", ["source", "batch_id", "first_change_seq"])


def _move(project: Project, spark: "SparkSession", last: Point, point: Point, ledger: list[dict]) -> None:
    """Move the views of this catalog from one point to another."""
    may_be_late = late.sources(ledger, last)
    moved = [t for t in project.tables.values() if point.table(t.name).moved != last.table(t.name).moved]
    moving = []
    for table in moved:
        is_readable = _is_readable(project, table, last, point)
        needs_old = {
            step: is_readable and not _is_appended(project, table, step, last, point, may_be_late)
            for step in ("before_after", "past")[: len(steps(table))]
        }
        moving += views.moving(table, last, point, needs_old)
    side_by_side(partial(views.write, spark), moving)
    new = [table for table in moved if table.key and not views.is_made(table.name, last, point)]
    for statements in zip(*(fixed_views.statements(table, point) for table in new)):
        side_by_side(spark.sql, chain.from_iterable(statements))
    checkpoints.write(project, spark, last, point)
    commit(spark, point)
    side_by_side(spark.sql, chain.from_iterable(views.former(table.name, last) for table in new))


def _next(project: Project, spark: "SparkSession", last: Point, ledger: list[dict]) -> Point:
    """The point that gold and its transactions allow."""
    lakehouse = project.lakehouse_path()
    point = Point(last.number + 1, transactions=lake.version(lakehouse, views.TRANSACTIONS))
    has_checkpoints = checkpoints.sources(project) or last.events is not None  # then a view of them is there
    point.events = lake.version(lakehouse, EVENTS) if has_checkpoints else None
    for row in ledger:
        source = point.source(row["source"])
        source.batch = source.taken = max(row["batch_id"], source.batch)
    for row in lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_change_seq", "applied_at"]):
        shown, source = point.table(row["table_name"]), point.source(row["source"])
        shown.through[row["source"]] = max(row["through_change_seq"], shown.through.get(row["source"], ""))
        shown.applied = (shown.applied or 0) + zlib.crc32(repr(sorted(row.items())).encode())  # in any order of rows
        source.seq = max(row["through_change_seq"], source.seq or "")
    holds = holds_of(project, spark, last)
    for name, before_seq in last_before(spark, holds).items():
        point.source(name).held = holds[name].why
        point.source(name).seq = max(before_seq, last.points.get(name, ""))
    held_back = {source for source, hold in holds.items() if hold.seq <= last.points.get(source, "")}
    held_back |= at_checkpoints.move(project, spark, last, point, holds)
    _look_up_versions(project, last, point)
    freeze(point, last, held_back)
    return point


def _look_up_versions(project: Project, last: Point, point: Point) -> None:
    """Give each table its shape, and the newest versions of its gold. Where gold has not built it since the last point
    they are those of that point; once a day all are looked up, for `optimize` makes new versions, too, and files of
    older ones are removed in time."""
    lakehouse, now = project.lakehouse_path(), int(time.time())
    point.looked_at = now if now - last.looked_at >= LOOK_SECONDS else last.looked_at
    for table in project.tables.values():
        shown, before = point.table(table.name), last.table(table.name)
        shape, columns = views.shape(table, is_untimed(table.name, point))
        is_known = before.moved is not None and (before.applied, before.shape) == (shown.applied, shape)
        if is_known and point.looked_at == last.looked_at:
            shown.versions = dict(before.versions)
        elif lake.exists(lakehouse, f"gold.{table.name}__{steps(table)[-1]}"):
            shown.versions = {step: lake.version(lakehouse, f"gold.{table.name}__{step}") for step in steps(table)}
        else:
            continue
        shown.shape, shown.columns = shape, columns
    for name, moved in last.moved.items():  # of tables, too, that have no contract any more
        point.table(name).moved = moved


def _is_moved(table: Table, last: Point, point: Point) -> bool:
    """Must the views of a table be written anew? Where they would show the same, they stay."""
    shown, before = point.table(table.name), last.table(table.name)
    if not shown.versions.keys() >= set(steps(table)):  # its source stays, and it was never public
        return False
    if before.moved is None or before.versions != shown.versions or before.shape != shown.shape:
        return True
    return any(
        min(seq, point.points[source]) != min(seq, last.points.get(source, "")) for source, seq in shown.through.items()
    )


def _is_readable(project: Project, table: Table, last: Point, point: Point) -> bool:
    """Can the views still read the versions of the last point? Not where there was none, where columns or the table
    itself are others, or where they are too old."""
    shown, before = point.table(table.name), last.table(table.name)
    return (
        before.moved is not None
        and before.columns == shown.columns
        and all(
            before.versions[step] == shown.versions[step]
            or before.versions[step] < shown.versions[step]
            and lake.has_version(project.lakehouse_path(), f"gold.{table.name}__{step}", before.versions[step])
            for step in steps(table)
        )
    )


def _is_appended(project: Project, table: Table, step: str, last: Point, point: Point, may_be_late: set[str]) -> bool:
    """Can the last point be seen in the new version of the log, or in those of past and current? It can where every new
    change lies behind it, and the log, or past, was only appended to. In: `before_after` or `past`; sources with new
    changes that do not."""
    shown = point.table(table.name)
    num_commits = shown.versions[step] - last.table(table.name).versions[step]
    at = shown.versions[step]
    done = lake.operations(project.lakehouse_path(), f"gold.{table.name}__{step}", num_commits, at)
    return not may_be_late & shown.through.keys() and {"WRITE", *UPKEEP}.issuperset(done) and len(done) == num_commits
