"""Where sources with checkpoints are public up to: on to a checkpoint behind the last change and, with `publish_at:
checkpoint`, to checkpoints only.

Such a source's point is its newest checkpoint at which no transaction is open: before what waits for events that lack
(hold.py), and within no complete transaction either, for half of that would be seen. Changes behind it wait in gold for
the next one. A point never moves back, also where the option is new.
"""

from typing import TYPE_CHECKING, NamedTuple

from inlet.codecs.results import CHECKPOINT
from inlet.config import Project
from inlet.publish.checkpoints import sources
from inlet.publish.hold import Hold
from inlet.publish.point import EVENTS, Point
from inlet.publish.views import TRANSACTIONS
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAITS = "the next checkpoint"  # what `held` begins with where it is waited for

FOUND = """
with places as (
  select e.source, e.change_seq as seq, e.change_seq as last_seq, get_json_object(e.detail, '$.name') as name,
         null as transaction_id, 'checkpoint' as what
  from {events} e left semi join silver.batches b on b.source = e.source and b.batch_id = e.batch_id
  where e.kind = {kind} and e.change_seq is not null and e.source in ({sources})
  union all
  select source, first_change_seq, last_change_seq, null, transaction_id, 'transaction' from {transactions}
  where state = 'complete' and source in ({sources}) and last_change_seq > {point}
  union all
  select source, {point}, {point}, null, null, 'point' from values {rows} as s (source)
),

reached as (               -- how far transactions reach that begin before a place
  select *, max(last_seq) over before as reached_seq, max_by(transaction_id, last_seq) over before as reaching_id
  from places
  window before as (partition by source order by seq, what desc rows between unbounded preceding and 1 preceding)
),

judged as (select *, if(reached_seq > seq, reaching_id, null) as within_id from reached)

select source, max(seq) filter (where what = 'checkpoint') as newest_seq,
       max_by(name, seq) filter (where what = 'checkpoint') as newest_name,
       max_by(within_id, seq) filter (where what = 'checkpoint') as newest_within,
       max(seq) filter (where what = 'checkpoint' and within_id is null and seq < {hold}) as free_seq,
       max_by(within_id, seq) filter (where what = 'point') as point_within
from judged group by source
"""


class Found(NamedTuple):
    """The checkpoints of a source, as places in its order."""

    source: str
    newest_seq: str | None
    newest_name: str | None
    newest_within: str | None  # id of a complete transaction that it lies within
    free_seq: str | None  # of the newest one at which no transaction is open
    point_within: str | None  # id of a complete transaction that the last point lies within


def is_over(project: Project, source: str, held: str) -> bool:
    """Was a checkpoint waited for that shall not be waited for any more?"""
    return held.startswith(WAITS) and source in project.sources and project.sources[source].publish_at != CHECKPOINT


def move(project: Project, spark: "SparkSession", last: Point, point: Point, holds: dict[str, Hold]) -> set[str]:
    """Move the points of sources with checkpoints to where these allow, and say what holds them. In: the last point;
    the next one, as transactions alone allow it; what these hold. Out: sources whose last point lies within a
    transaction now, for that came late, and that no later checkpoint takes on.
    """
    mine, late = [name for name in sources(project) if point.source(name).seq is not None], set()
    for found in _found(spark, mine, last, holds):
        source, before, hold = point.source(found.source), last.points.get(found.source, ""), holds.get(found.source)
        free = found.free_seq or ""
        if project.sources[found.source].publish_at != CHECKPOINT:
            source.seq = max(source.seq or "", free)
            continue
        source.seq = max(before, free)
        end = max((table.through.get(found.source, "") for table in point.tables.values()), default="")
        if found.point_within and source.seq == before:
            late.add(found.source)
        if end > source.seq:
            source.held = _why(found, hold, source.seq, end)
    return late


def _found(spark: "SparkSession", names: list[str], last: Point, holds: dict[str, Hold]) -> list[Found]:
    if not names:
        return []
    rows = spark.sql(
        FOUND.format(
            events=EVENTS,
            transactions=TRANSACTIONS,
            kind=literal(CHECKPOINT),
            sources=", ".join(map(literal, names)),
            rows=", ".join(f"({literal(name)})" for name in names),
            point=_by_source({name: last.points.get(name, "") for name in names}, ""),
            hold=_by_source({name: holds[name].seq for name in names if name in holds}, "~"),
        )
    ).collect()
    return [Found(**row.asDict()) for row in rows]


def _by_source(places: dict[str, str], other: str) -> str:
    cases = " ".join(f"when {literal(source)} then {literal(seq)}" for source, seq in places.items())
    return f"(case source {cases} else {literal(other)} end)" if cases else literal(other)


def _why(found: Found, hold: Hold | None, seq: str, end: str) -> str:
    """Why a source is public up to a place only. In: where its changes in gold end."""
    newest = found.newest_seq or ""
    if hold and newest > hold.seq:
        return hold.why
    told = f"{found.newest_name}, at {newest}," if found.newest_name else f"the one at {newest}"
    last = f"the last one is {told.rstrip(',')}" if newest else "there was none yet"
    if newest > seq and found.newest_within:
        last = f"{told} lies within transaction {found.newest_within}"
    elif found.point_within:
        last = f"transaction {found.point_within} came late and lies around the last point"
    return f"{WAITS}; changes up to {end} wait for it; {last} (sources.*.publish_at)"
