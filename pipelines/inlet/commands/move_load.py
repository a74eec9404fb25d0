"""`inlet move-load`: give a full load of messages an earlier start in the order of changes.

For loads of which rows share a place with those of another load, which an earlier Inlet could give to topics with the
same checksum, and for loads that begin after changes that came after their rows. An earlier start does no harm: what is
applied after it again, the load's rows have already. Only places change, in silver; gold is made again from it.
"""

import json
from typing import TYPE_CHECKING

from inlet import lake
from inlet.codecs import CODECS
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.silver import full_loads, load_order, pending
from inlet.sql import literal, plain_literal
from inlet.table import by_name, present

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOVING = "load_moving"  # kind of the event of a move that is not finished: gold is not built until it is
MOVED = "load_moved"  # kind of that event then, and of the events that were reported of the load


def move(project: Project, spark: "SparkSession", source: str, load_id: str, seconds: float) -> tuple[str, str]:
    """Move a load, at least as many seconds, and before the changes that were reported as hidden by it. Out: its table,
    and its new start. Done again after it died, it goes on. `finish` ends the move, once gold is made again.

    Raises: ConfigError where there is no such load, or a batch is not decoded yet.
    """
    if waiting := pending(project):
        raise ConfigError(f"Batch {waiting[0]} is not decoded yet", "`inlet run --until silver` first")
    loads = [load for load in full_loads.known_loads(project) if load["source"] == source]
    load = next((one for one in loads if one["load_id"] == load_id), None)
    if load is None:
        names = ", ".join(one["load_id"] for one in loads) or "none"
        raise ConfigError(f"{source} has no full load {load_id}", f"Its loads: {names}")
    own = f"source = {literal(source)} and load_id = {literal(load_id)}"
    codec = CODECS[project.sources[source].codec]
    moved = codec.LOADS.moved(load, loads, _topics(spark, source, own), seconds, _hidden(project, source, load_id))
    _begin(spark, load)
    _write(spark, source, own, load, moved)
    return present(by_name(project.tables.values()), load["table"]), moved["started_at16"]


def finish(spark: "SparkSession", source: str, load_id: str) -> None:
    """End a move: gold has been made again, or there is none."""
    spark.sql(f"""
        update silver.control_events set kind = '{MOVED}' where source = {literal(source)}
          and load_id = {literal(load_id)} and kind in ('{MOVING}', '{load_order.BEFORE}')""")


def check_finished(project: Project) -> None:
    """Raises: ConfigError where a move died: gold would mix a load's old and new places."""
    columns = ["source", "load_id"]
    for row in lake.peek(project.lakehouse_path(), "silver.control_events", columns, f"where kind = '{MOVING}'"):
        raise ConfigError(
            f"The move of the load {row['load_id']} is not finished",
            f"`inlet move-load {row['load_id']} --source {row['source']}` again",
        )


def _begin(spark: "SparkSession", load: dict) -> None:
    names = [load["source"], *load["table"].split("."), load["load_id"]]
    source, schema, table, load_id = map(literal, names)
    spark.sql(f"""
        insert into silver.control_events (source, source_schema, source_table, kind, load_id, batch_id, decoded_at)
        select {source}, {schema}, {table}, '{MOVING}', {load_id}, max(batch_id), current_timestamp()
        from silver.control_events where source = {source} and load_id = {load_id}""")


def _topics(spark: "SparkSession", source: str, own: str) -> list[str]:
    """The topics of a load's rows."""
    rows = spark.sql(f"select distinct {_topic(source)} as topic from silver.changes where {own}").collect()
    return sorted(row.topic for row in rows)


def _topic(source: str) -> str:
    """SQL for the topic in the unit of a message: `<source>/<topic>/<partition>/<offset>`."""
    return f"regexp_extract(substr(unit_id, {len(source) + 2}), '^(.*)/[^/]*/[^/]*$', 1)"


def _hidden(project: Project, source: str, load_id: str) -> str | None:
    """The least change_seq of the changes that were reported as hidden by a load."""
    rows = lake.peek(
        project.lakehouse_path(),
        "silver.control_events",
        ["change_seq"],
        f"where kind = '{load_order.BEFORE}' and source = {plain_literal(source)} "
        f"and load_id = {plain_literal(load_id)}",
    )
    return min((row["change_seq"] for row in rows), default=None)


def _write(spark: "SparkSession", source: str, own: str, load: dict, moved: dict) -> None:
    """Changes first, then what tells the load's start: a move that dies in between is done again as it was."""
    start = moved["started_at16"]
    pairs = ", ".join(f"{literal(topic)}, {literal(f'{number:04d}')}" for topic, number in moved["topics"].items())
    if pairs:
        spark.sql(f"""
            update silver.changes
            set change_seq = concat({literal(start)}, map({pairs})[{_topic(source)}], substr(change_seq, 21))
            where {own} and operation = 'REFRESH' and change_seq like {literal(load["started_at16"] + "%")}""")
        rows = spark.sql(f"select distinct batch_id from silver.changes where {own}").collect()
        spark.sql(f"""
            update silver.batches set first_change_seq = {literal(start + "0" * 19)}
            where source = {literal(source)} and first_change_seq > {literal(start + "0" * 19)}
              and batch_id in ({", ".join(str(row.batch_id) for row in rows)})""")
    spark.sql(f"""
        update silver.control_events set change_seq = concat({literal(start)}, substr(change_seq, 17))
        where {own} and kind = '{full_loads.END}'""")
    spark.sql(f"""
        update silver.control_events set change_seq = {literal(start + "0" * 19)},
          detail = {literal(json.dumps(moved, default=str))}
        where {own} and kind = '{full_loads.BEGIN}'""")
