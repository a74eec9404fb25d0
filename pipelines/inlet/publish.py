"""Publish: the public views of all tables move together, to one committed boundary of every source.

Gold's tables move one after another. Analysts read views in `public`, which show them at the *published point*: a Delta version
of each table, and of each source the change_seq up to which its changes count. A point lies where no transaction is open, so
nobody sees half of one. As the tables of a run become ready, their views are written so that they still show the last point
and already know the next; then the one view `public._point` is altered, which is the commit: a query reads it once, and all its
tables go by what it said. A query that is planned while two points pass asks to be run again rather than mix them.

`public._point` has one row: number; moved: table -> number of the point that last moved its views. The point itself is a property of it.
`gold.published` is its log, one row per run that came this far, for people, `inlet status` and engines without these views.
"""

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from inlet import lake, public_views
from inlet.change import Column, ddl
from inlet.config import Project
from inlet.errors import InletError
from inlet.gold import STEPS, steps
from inlet.public_views import number_map, string_map, time_of
from inlet.sql import literal

PUBLISHED = (
    Column("number", "bigint", "the published point; only grows"),
    Column("published_at", "timestamp", "when"),
    Column("points", "map<string,string>", "source -> change_seq up to which its changes are public"),
    Column("batches", "map<string,bigint>", "source -> last silver batch that this run has looked at"),
    Column("versions", "map<string,bigint>", "table of gold, and silver.transactions -> its Delta version at this point"),
    Column("held", "map<string,string>", "source -> why its point is not at the end of what gold has; empty: it is"),
)
POINT, SAID = "public._point", "inlet.point."                 # the view, and what its properties that hold the point begin with, before its number
NUM_FILES = 500                # of gold.published, one a point, above which they are made one


@dataclass
class Point:
    """What the public views show. `batches`: the last batch that was looked at, per source; `taken`: that is in the versions shown.
    `moved`, `through`: for each table the number of the point that last moved its views, and per source how far its gold went then;
    `shapes`, `columns`: the columns its views were made with, with and without what is said of them."""

    number: int = 0
    points: dict[str, str] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    through: dict[str, dict[str, str]] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)


def pending(project: Project) -> bool:
    """Has the ledger batches that no published point knows of? Told without Spark."""
    seen = dict((newest(project) or {"batches": ()})["batches"])
    ledger = lake.peek(project.lakehouse_path(), "silver.batches", ["source", "batch_id"])
    return any(row["batch_id"] > seen.get(row["source"], -1) for row in ledger)


def newest(project: Project) -> dict | None:
    """The last row of gold.published; none while there is none."""
    rows = lake.peek(project.lakehouse_path(), "gold.published", [c.name for c in PUBLISHED], "order by number desc, published_at desc limit 1")
    return rows[0] if rows else None


def run(project: Project, spark) -> Point:
    """Move the public views to where gold is, as far as transactions allow. Doing it twice changes nothing. To be called when no
    table of gold is behind silver. Out: the point they show then; `held` tells which sources wait, and for what."""
    last = _said(project, spark)
    if last.number > (newest(project) or {"number": 0})["number"]:             # a run died between the two
        _log(project, spark, last)
    ledger = lake.peek(project.lakehouse_path(), "silver.batches", ["source", "batch_id", "first_change_seq"])
    tables = [t for t in project.tables.values() if lake.exists(project.lakehouse_path(), f"gold.{t.name}__{steps(t)[-1]}")]
    point = _next(project, spark, last, tables, ledger)
    late = {row["source"] for row in ledger if row["batch_id"] > last.taken.get(row["source"], -1)
            and (row["first_change_seq"] or "") <= last.points.get(row["source"], "")}
    for table in tables:
        if _is_moved(table, last, point):
            point.moved[table.name] = point.number
            is_readable = _is_readable(project, table, last, point)
            is_old_needed = is_readable and not _is_appended(project, table, last, point, late)
            public_views.write(spark, table, last, point, is_old_needed, is_old_log_needed=is_readable)
    if point.moved != last.moved or point.points != last.points:
        _commit(spark, point)
    else:
        point.number = last.number
    _log(project, spark, point)
    return point


def _next(project: Project, spark, last: Point, tables: list, ledger: list[dict]) -> Point:
    """The point that gold and its transactions allow."""
    lakehouse = project.lakehouse_path()
    point = Point(last.number + 1, moved=dict(last.moved))
    for row in ledger:
        point.batches[row["source"]] = max(row["batch_id"], point.batches.get(row["source"], -1))
    for row in lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_change_seq"]):
        through = point.through.setdefault(row["table_name"], {})
        through[row["source"]] = max(row["through_change_seq"], through.get(row["source"], ""))
    for through in point.through.values():
        for source, change_seq in through.items():
            point.points[source] = max(change_seq, point.points.get(source, ""))
    holds = _holds(project, spark, last)
    for source, before_seq in _last_before(spark, holds).items():
        point.held[source] = holds[source].why
        point.points[source] = max(before_seq, last.points.get(source, ""))
    for table in tables:
        point.shapes[table.name], point.columns[table.name] = public_views.shape(table)
        point.versions |= {f"{table.name}__{step}": lake.version(lakehouse, f"gold.{table.name}__{step}") for step in steps(table)}
    point.versions[public_views.TRANSACTIONS] = lake.version(lakehouse, public_views.TRANSACTIONS)
    point.taken = dict(point.batches)
    _freeze(point, last, {source for source, hold in holds.items() if hold.seq <= last.points.get(source, "")})
    return point


def _freeze(point: Point, last: Point, late: set[str]) -> None:
    """Where an open transaction reaches back behind the last point, gold's new versions cannot be shown without half of it: its
    source stays where it is, and with it the tables it feeds, and the sources that feed these."""
    tables, sources = set(), set(late)
    while grown := {name for name, through in point.through.items() if sources & through.keys()} - tables:
        tables |= grown
        sources |= {source for name in grown for source in point.through[name]}
    for source in sources:
        point.held.setdefault(source, f"shares tables with {', '.join(sorted(late))}, whose point stays")
        point.points.pop(source)
        point.taken[source] = last.taken.get(source, -1)
    point.points |= {source: seq for source, seq in last.points.items() if source in sources}
    for name in tables:
        for step in STEPS:
            point.versions.pop(f"{name}__{step}", None)
        point.versions |= {table: version for table, version in last.versions.items() if table.rsplit("__", 1)[0] == name}
        point.through[name] = last.through.get(name, {})
        point.shapes |= {name: last.shapes[name]} if name in last.shapes else {}
        point.columns |= {name: last.columns[name]} if name in last.columns else {}


class Hold(NamedTuple):
    seq: str                   # first change_seq that has to wait
    why: str                   # for what, in words


OPEN = """
with batches as (          -- how far a source has come in the batches behind each
  select source, batch_id, max(last_change_seq) over (partition by source order by batch_id rows between 1 following and unbounded following) as newest_seq
  from silver.batches
),

transactions as (
  select t.source, t.transaction_id, t.first_change_seq, t.last_change_seq, t.num_changes,
         t.state <> 'complete' and {minutes} > 0 and coalesce(b.newest_seq <= date_format(
           {last_time} + make_interval(0, 0, 0, 0, 0, 0, 60 * {minutes}), 'yyyyMMddHHmmssSS') || '~', true) as is_waited_for
  from silver.transactions t left join batches b on b.source = t.source and b.batch_id = t.batch_id
  where t.state <> 'complete' or {recent}
),

followed as (              -- transactions that overlap are one island: a boundary lies only before an island
  select *, max(last_change_seq) over (partition by source order by first_change_seq rows between unbounded preceding and 1 preceding) as reached_seq
  from transactions
),

islands as (
  select *, sum(if(reached_seq is null or first_change_seq > reached_seq, 1, 0)) over (partition by source order by first_change_seq) as island from followed
),

waiting as (
  select source, min(first_change_seq) as hold_seq, count_if(is_waited_for) as num_open,
         min_by(transaction_id, if(is_waited_for, first_change_seq, null)) as transaction_id,
         min_by(num_changes, if(is_waited_for, first_change_seq, null)) as num_changes
  from islands group by source, island having bool_or(is_waited_for)
)

select source, min(hold_seq) as hold_seq, sum(num_open) as num_open, min_by(transaction_id, hold_seq) as transaction_id,
       min_by(num_changes, hold_seq) as num_changes
from waiting group by source
"""


def _holds(project: Project, spark, last: Point) -> dict[str, Hold]:
    """source -> what has to wait for transactions that lack events. One is waited for until its source is
    `open_transaction_minutes` further, by its own times, in a later batch; 0 waits for none."""
    minutes = " ".join(f"when {literal(s.name)} then {s.open_transaction_minutes}" for s in project.sources.values())
    points = " ".join(f"when {literal(source)} then {literal(seq)}" for source, seq in last.points.items())
    rows = spark.sql(OPEN.format(last_time=time_of("t.last_change_seq"), minutes=f"(case t.source {minutes} else 60 end)" if minutes else "60",
                                 recent=f"t.last_change_seq > case t.source {points} else '' end" if points else "true")).collect()
    return {r.source: Hold(r.hold_seq, f"transaction {r.transaction_id} lacks events; {r.num_changes} are there, the first at {r.hold_seq}"
                           + (f"; {r.num_open - 1} more lack some" if r.num_open > 1 else "") + " (sources.*.open_transaction_minutes says how long)")
            for r in rows}


def _last_before(spark, holds: dict[str, Hold]) -> dict[str, str]:
    """source -> greatest change_seq of a change before those that wait; '' where there is none."""
    if not holds:
        return {}
    rows = " union all ".join(f"select {literal(source)} as source, {literal(hold.seq)} as hold_seq" for source, hold in holds.items())
    found = spark.sql(f"select h.source, coalesce(max(c.change_seq), '') as before_seq from ({rows}) h "
                      "left join silver.changes c on c.source = h.source and c.change_seq < h.hold_seq group by h.source").collect()
    return {r.source: r.before_seq for r in found}


def _is_moved(table, last: Point, point: Point) -> bool:
    """Must the views of a table be written anew? Where they would show the same, they stay."""
    versions = [f"{table.name}__{step}" for step in steps(table)]
    if not all(version in point.versions for version in versions):             # its source stays, and it was never public
        return False
    if table.name not in last.moved or any(last.versions.get(v) != point.versions[v] for v in versions) \
            or last.shapes.get(table.name) != point.shapes[table.name]:
        return True
    return any(min(seq, point.points[source]) != min(seq, last.points.get(source, "")) for source, seq in point.through.get(table.name, {}).items())


def _is_readable(project: Project, table, last: Point, point: Point) -> bool:
    """Can the views still read the versions of the last point? Not where there was none, where columns or the table itself are others,
    or where they are too old."""
    return table.name in last.moved and last.columns.get(table.name) == point.columns[table.name] and all(
        last.versions[name] <= point.versions[name] and lake.has_version(project.lakehouse_path(), f"gold.{name}", last.versions[name])
        for name in (f"{table.name}__{step}" for step in steps(table)))


def _is_appended(project: Project, table, last: Point, point: Point, late: set[str]) -> bool:
    """Can the last point be seen in the new versions of past and current? It can where every new change lies behind it, and past was
    only appended to. In: sources with new changes that do not."""
    name = f"{table.name}__{'past' if table.key else 'before_after'}"
    num_commits = point.versions[name] - last.versions[name]
    done = lake.operations(project.lakehouse_path(), f"gold.{name}", num_commits)
    return not late & point.through.get(table.name, {}).keys() and done == ["WRITE"] * num_commits


def _said(project: Project, spark) -> Point:
    """The published point, as `public._point` says."""
    if not spark.catalog.tableExists(POINT):                      # new, or dropped: then numbers go on from the log's
        _commit(spark, Point((newest(project) or {"number": 0})["number"]))
    mine = f"{SAID}{spark.table(POINT).first()['number']}."
    pieces = sorted((row.key, row.value) for row in spark.sql(f"show tblproperties {POINT}").collect() if row.key.startswith(mine))
    if not pieces:
        raise InletError("public._point is one of an earlier Inlet", "`drop view public._point` and run `inlet run --step publish`: the views are written anew")
    return Point(**json.loads(zlib.decompress(bytes.fromhex("".join(piece for _, piece in pieces)))))


def _commit(spark, point: Point) -> None:
    """Say the point in properties under its number, then move the view to the number: ALTER VIEW is one change of the catalog, where CREATE OR
    REPLACE drops the view first. Hive's own catalog takes texts of 32,700 characters and properties of 4,000, and Spark hides values with
    `url` or `token` in them: so the point is packed as hex, in pieces."""
    packed = zlib.compress(json.dumps(asdict(point)).encode()).hex()
    pieces = {f"{SAID}{point.number}.{i:06}": packed[i:i + 4000] for i in range(0, len(packed), 4000)}
    properties = ", ".join(f"{literal(key)} = {literal(piece)}" for key, piece in pieces.items())
    body = f"select {point.number}L as number, {number_map(point.moved)} as moved"
    if not spark.catalog.tableExists(POINT):
        spark.sql(f"create view {POINT} comment 'The published point: its number, and table -> number of the point that last moved its views. "
                  f"Altering this view moves all public views at once.' tblproperties ({properties}) as {body}")
        return
    shown = f"{SAID}{spark.table(POINT).first()['number']}."
    left = [row.key for row in spark.sql(f"show tblproperties {POINT}").collect() if row.key.startswith(SAID) and not row.key.startswith(shown)]
    if left:                                                       # of the point before, or of a run that died here
        spark.sql(f"alter view {POINT} unset tblproperties ({', '.join(map(literal, left))})")
    spark.sql(f"alter view {POINT} set tblproperties ({properties})")
    spark.sql(f"alter view {POINT} as {body}")


def _log(project: Project, spark, point: Point) -> None:
    """Add a point to gold.published, unless it is its last row."""
    if not point.batches:
        return
    if not lake.exists(project.lakehouse_path(), "gold.published"):
        spark.sql(f"create table if not exists gold.published (\n  {ddl(PUBLISHED)}\n) using delta "
                  "tblproperties (delta.enableDeletionVectors = false)")        # so that delta-rs can read it
    before = newest(project)
    if before and (before["number"], dict(before["batches"]), dict(before["held"])) == (point.number, point.batches, point.held):
        return
    maps = (string_map(point.points), number_map(point.batches), number_map(point.versions), string_map(point.held))
    spark.sql(f"insert into gold.published select {point.number}L, current_timestamp(), {', '.join(maps)}")
    if point.number % NUM_FILES == 0:
        spark.sql("optimize gold.published")                                   # one small file a row
