"""Checkpoints of a feed (control events of kind `checkpoint`) as places: rows as of one by its name, and the places
up to which a source that says `publish_at: checkpoint` is public.

`public._checkpoints` has those up to the published point, and `<t>_at_checkpoint(checkpoint)` shows the rows of each
source as of its last one of a name among these. A pin has both, of its own point. A table that no source with
checkpoints feeds lacks the function.
"""

import json
from typing import TYPE_CHECKING

from inlet import lake, layout
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.codecs.results import CHECKPOINT
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.lake import engine
from inlet.publish.point import EVENTS, Point
from inlet.publish.views import HELD, Ours, string_map
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMENT = (
    "Checkpoints of the sources up to the published point: name (null where the feed has lost it), place in the order, "
    "time as the source tells it (local_time) and in UTC (timestamp)."
)
NONE = "No checkpoint up to the published point is called "
PLACES = """
select source, told.name as name, change_seq, try_cast(told.local_time as timestamp_ntz) as local_time,
       try_cast(told.timestamp as timestamp) as timestamp
from (select source, change_seq, from_json(detail, 'name string, local_time string, timestamp string') as told
      from {events} version as of {version} where kind = {kind})
where change_seq <= {end}"""


def sources(project: Project) -> list[str]:
    """The sources whose format has checkpoints."""
    return [name for name, source in project.sources.items() if offers(CODECS[source.codec], "HAS_CHECKPOINTS")]


def _ends(project: Project, points: dict[str, str]) -> dict[str, str]:
    """How far sources with checkpoints are public."""
    mine = sources(project)
    return {source: seq for source, seq in points.items() if source in mine}


def named(project: Project, published: dict, name: str, source: str | None = None) -> dict[str, str]:
    """Source -> place of its last checkpoint of a name up to a published point, found without Spark. In: the point's
    row of gold.published; one source, none for all. Raises: ConfigError where there is none."""
    ends, version = _ends(project, dict(published["points"])), dict(published["versions"]).get(EVENTS)
    columns, where = ["source", "change_seq", "detail"], f"where kind = {literal(CHECKPOINT)} order by change_seq"
    found: dict[str, dict[str, str]] = {}
    for row in lake.peek(project.lakehouse_path(), EVENTS, columns, where, version):
        of = json.loads(row["detail"]).get("name")
        if of is not None and row["change_seq"] <= ends.get(row["source"], "") and source in (None, row["source"]):
            found.setdefault(of, {})[row["source"]] = row["change_seq"]
    if name not in found:
        raise ConfigError(f"{NONE}{name}", f"There are: {', '.join(sorted(found)) or 'none'}")
    return found[name]


def write(project: Project, spark: "SparkSession", last: Point, point: Point) -> None:
    """Write what shows checkpoints so that it shows the last point until `public._point` names the new one."""
    if point.events is None:
        return
    mine = sources(project)
    new, old = (string_map(_ends(project, of.points)) for of in (point, last))
    end = (
        f"(case (select number from public._point) when {point.number} then {new}[source] when {last.number} then "
        f"{old}[source] else raise_error({literal(HELD)}) end)"
    )
    _write_view(spark, "public", end, point.events)
    for table in project.tables.values():
        shown, is_old = point.table(table.name), last.table(table.name).shape == point.table(table.name).shape
        is_moved = shown.moved != last.table(table.name).moved or shown.moved is not None and last.events is None
        if table.key and is_moved and not shown.through.keys().isdisjoint(mine):
            if not (is_old and spark.catalog.functionExists(layout.of(f"public.{table.name}_at_checkpoint"))):
                _write_function(spark, "public", table.name, table.table, Ours(table.ours))


def write_pinned(
    project: Project, spark: "SparkSession", database: str, point: Point, ours: dict[str, dict[str, str]]
) -> None:
    """Write the same in a pin. In: each of its tables with a key, and what our columns are called there."""
    if point.events is None:
        return
    _write_view(spark, database, f"{string_map(_ends(project, point.points))}[source]", point.events)
    for name, own in ours.items():
        _write_function(spark, database, name, name, Ours(own))


def _write_view(spark: "SparkSession", database: str, end: str, version: int) -> None:
    name = f"{database}._checkpoints"
    body = PLACES.format(events=EVENTS, version=version, kind=literal(CHECKPOINT), end=end)
    if engine.has_table(spark, name):  # CREATE OR REPLACE would drop it for a moment
        spark.sql(f"alter view {name} as{body}")
    else:
        spark.sql(f"create view {name} comment {literal(COMMENT)} as{body}")


def _write_function(spark: "SparkSession", database: str, name: str, title: str, our: Ours) -> None:
    function = f"{name}_at_checkpoint"
    asked = f"from {database}._checkpoints where name = {function}.checkpoint"
    listed = literal(f"; {database}._checkpoints has them")
    none = f"concat({literal(NONE)}, coalesce({function}.checkpoint, 'null'), {listed})"
    spark.sql(
        f"create or replace function {database}.{function}(checkpoint string comment 'the name of a checkpoint; of "
        "several the last one of each source')\nreturns table "
        f"comment {literal(f'Rows of {title} as of a checkpoint; none of a source without it.')}\n"
        f"return select h.* from {database}.{name}__history h\n"
        f"left join (select source as _of_source, max(change_seq) as _at_seq {asked} group by source)\n"
        f"on _of_source = h.{our.source}\n"
        f"cross join (select count(*) as _num {asked})\n"
        f"where if(_num > 0, {our.valid_from_seq} <= _at_seq and ({our.valid_to_seq} is null or {our.valid_to_seq} > "
        f"_at_seq), raise_error({none}))"
    )
