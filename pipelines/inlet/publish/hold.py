"""What holds a source back: transactions that lack events, and what may be shown meanwhile."""

import datetime as dt
from typing import TYPE_CHECKING, NamedTuple

from inlet import lake
from inlet.config import Project
from inlet.log import counted
from inlet.publish.point import Point
from inlet.publish.times import UNTIMED, time_of
from inlet.publish.views import TRANSACTIONS
from inlet.silver import closed_rejects
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def freeze(point: Point, last: Point, late: set[str]) -> None:
    """Where an open transaction reaches back behind the last point, gold's new versions cannot be shown without half of
    it: its source stays where it is, and with it the tables it feeds, and the sources that feed these."""
    tables: set[str] = set()
    sources = set(late)
    while grown := {name for name, shown in point.tables.items() if sources & shown.through.keys()} - tables:
        tables |= grown
        sources |= {source for name in grown for source in point.tables[name].through}
    for name in sources:
        source, stays = point.source(name), last.source(name)
        source.held = source.held or f"shares tables with {', '.join(sorted(late))}, whose point stays"
        source.seq, source.taken = stays.seq, stays.taken
    for name in tables:
        shown, before = point.table(name), last.table(name)
        shown.versions, shown.through = dict(before.versions), dict(before.through)
        shown.applied = before.applied
        if before.shape is not None:
            shown.shape, shown.columns = before.shape, before.columns


class Hold(NamedTuple):
    seq: str  # first change_seq that has to wait
    why: str  # for what, in words


OPEN = """
with times as (            -- of the newest change of a batch, where the order of its source tells no time
  {times}
),

batches as (               -- how far a source has come in the batches behind each
  select source, batch_id,
         max(last_change_seq) over (
           partition by source order by batch_id rows between 1 following and unbounded following) as newest_seq,
         max(newest_at) over (
           partition by source order by batch_id rows between 1 following and unbounded following) as newest_at,
         max(newest_at) over (partition by source order by batch_id) as reached_at
  from silver.batches left join times using (source, batch_id)
),

ended as (                 -- when transactions of such sources were last heard of
  {ended}
),

transactions as (
  select t.source, t.transaction_id, t.first_change_seq, t.last_change_seq, t.num_changes,
         t.state <> 'complete' and {minutes} > 0 and coalesce(
           if({is_untimed},
              b.newest_at <= coalesce(e.ended_at, b.reached_at) + make_interval(0, 0, 0, 0, 0, 0, 60 * {minutes}),
              b.newest_seq <= date_format({last_time} + make_interval(0, 0, 0, 0, 0, 0, 60 * {minutes}),
                                          'yyyyMMddHHmmssSS') || '~'), true) as is_waited_for
  from silver.transactions t
  left join batches b on b.source = t.source and b.batch_id = t.batch_id
  left join ended e on e.source = t.source and e.transaction_id = t.transaction_id
                   and e.first_change_seq = t.first_change_seq
  where t.state <> 'complete' or {recent}
),

followed as (              -- transactions that overlap are one island: a boundary lies only before an island
  select *, max(last_change_seq) over (
           partition by source order by first_change_seq rows between unbounded preceding and 1 preceding
         ) as reached_seq
  from transactions
),

islands as (
  select *, sum(if(reached_seq is null or first_change_seq > reached_seq, 1, 0)) over (
           partition by source order by first_change_seq) as island
  from followed
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
NO_TIMES = "select '' as source, 0L as batch_id, cast(null as timestamp) as newest_at where false"
NO_ENDS = (
    "select '' as source, '' as transaction_id, '' as first_change_seq, cast(null as timestamp) as ended_at where false"
)
TIMES = "select source, batch_id, max(change_timestamp) as newest_at from silver.changes where {} group by all"
ENDS = """select t.source, t.transaction_id, t.first_change_seq, max(c.change_timestamp) as ended_at
  from silver.transactions t
  join silver.changes c on c.source = t.source and c.transaction_id = t.transaction_id
                       and c.change_seq between t.first_change_seq and t.last_change_seq
  where t.state <> 'complete' and {} group by all"""


def holds_of(project: Project, spark: "SparkSession", last: Point) -> dict[str, Hold]:
    """source -> what has to wait for transactions that lack events. One is waited for until its source is
    `open_transaction_minutes` further, by its own times, in a later batch; 0 waits for none. Where its order tells no
    time the times are those of the changes."""
    if not _may_wait(project):
        return {}
    minutes = " ".join(f"when {literal(s.name)} then {s.open_transaction_minutes}" for s in project.sources.values())
    points = " ".join(f"when {literal(source)} then {literal(seq)}" for source, seq in last.points.items())
    is_untimed = UNTIMED.format("t.last_change_seq")
    has_untimed = not spark.sql(
        f"select 1 from silver.transactions t where t.state <> 'complete' and {is_untimed} limit 1"
    ).isEmpty()
    rows = spark.sql(
        OPEN.format(
            times=TIMES.format(UNTIMED.format("change_seq")) if has_untimed else NO_TIMES,
            ended=ENDS.format(is_untimed) if has_untimed else NO_ENDS,
            is_untimed=is_untimed,
            last_time=time_of("t.last_change_seq"),
            minutes=f"(case t.source {minutes} else 60 end)" if minutes else "60",
            recent=f"t.last_change_seq > case t.source {points} else '' end" if points else "true",
        )
    ).collect()
    rejected = _rejected(project) if rows else []
    return {
        r.source: Hold(
            r.hold_seq,
            f"transaction {r.transaction_id} lacks events; {counted(r.num_changes, 'change')} there, the first at "
            f"{r.hold_seq}"
            + (f"; {r.num_open - 1} more lack some" if r.num_open > 1 else "")
            + (
                f"; {counted(num, 'record')} behind what is public rejected: `inlet rejects`"
                if (num := _num_behind(rejected, r.source, last.points.get(r.source, "")))
                else ""
            )
            + " (sources.*.open_transaction_minutes says how long)",
        )
        for r in rows
    }


def _may_wait(project: Project) -> bool:
    """False if no transaction that lacks events is waited for any more, as the newest batch of each source tells. Read
    without Spark: most often there is no such transaction."""
    lakehouse = project.lakehouse_path()
    columns, lacking = ["source", "last_change_seq", "batch_id"], "where state <> 'complete'"
    transactions = lake.peek(lakehouse, TRANSACTIONS, columns, lacking)
    newest: dict[str, dict] = {}
    for row in lake.peek(lakehouse, "silver.batches", columns) if transactions else ():
        if row["last_change_seq"] and row["batch_id"] > newest.get(row["source"], {"batch_id": -1})["batch_id"]:
            newest[row["source"]] = row
    for row in transactions:
        source, last = project.sources.get(row["source"]), newest.get(row["source"])
        if minutes := source.open_transaction_minutes if source else 60:
            end = _end_of_wait(row["last_change_seq"], minutes)
            if last is None or last["batch_id"] <= row["batch_id"] or last["last_change_seq"] <= end:
                return True
    return False


def _end_of_wait(seq: str, minutes: float) -> str:
    """The last change_seq of the time that a transaction is waited for; after all others if its order has no time."""
    try:
        at = dt.datetime.strptime(seq[:16] + "0000", "%Y%m%d%H%M%S%f") + dt.timedelta(minutes=minutes)
    except (ValueError, OverflowError):  # not of a calendar
        return "~"
    return f"{at.year:04}{at:%m%d%H%M%S%f}"[:16] + "~"


def _rejected(project: Project) -> list[dict]:
    """Source and place of the rejects that are open. Read without Spark."""
    return closed_rejects.open_rows(project, ["change_seq"], "change_seq is not null")


def _num_behind(rejected: list[dict], source: str, seq: str) -> int:
    """How many records of a source behind a place are rejected."""
    return sum(row["source"] == source and row["change_seq"] > seq for row in rejected)


def last_before(spark: "SparkSession", holds: dict[str, Hold]) -> dict[str, str]:
    """source -> greatest change_seq of a change before those that wait; '' where there is none."""
    if not holds:
        return {}
    rows = " union all ".join(
        f"select {literal(source)} as source, {literal(hold.seq)} as hold_seq" for source, hold in holds.items()
    )
    last_places = spark.sql(
        f"select h.source, coalesce(max(c.change_seq), '') as before_seq from ({rows}) h "
        "left join silver.changes c on c.source = h.source and c.change_seq < h.hold_seq group by h.source"
    ).collect()
    return {r.source: r.before_seq for r in last_places}
