"""Where full loads of messages stand among the changes of their tables.

A load's start is a time of the broker, a change has one of the source's clock, so clocks that differ could put a load
after changes that are newer than its rows. The feed's own order tells: what comes after a row of a load is newer
(docs/adr/0021).
"""

from typing import TYPE_CHECKING

from inlet import lake
from inlet.bronze import load_times
from inlet.silver.batch import Batch, among
from inlet.sql import literal
from inlet.table import by_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BEFORE = "change_before_load"  # kind of control event: changes that came after rows of a load and sort before them


def changes_after(codec, messages: "DataFrame", sources: list, loads: list[dict]) -> dict[tuple[str, str], str]:
    """(source, load_id) -> the least change_seq that a message after the first one of a load tells, in a topic of the
    load: among places at which it would sort before the load's rows. The text alone tells it, so some may be missed,
    which `hidden_changes` finds.
    """
    if not codec.FAST:
        return {}
    by_source = {source.name: source for source in sources}
    rows = [
        (load["source"], load["load_id"], topic, load["first_at"], *codec.LOADS.window(load, by_source[load["source"]]))
        for load in loads
        for topic in load["topics"]
    ]
    spans = messages.sparkSession.createDataFrame(
        rows, "source string, load_id string, topic string, first_at timestamp, low string, high string"
    )
    found = (
        codec.FAST.with_seq(messages)
        .join(spans.hint("broadcast"), ["source", "topic"])
        .where("timestamp >= first_at and seq between low and high")
        .groupBy("source", "load_id")
        .agg({"seq": "min"})
        .collect()
    )
    return {(row["source"], row["load_id"]): row["min(seq)"] for row in found}


def hidden_changes(
    batch: Batch, codec, sources: list, loads: list[dict], known: list[dict]
) -> tuple[list[tuple], str, dict]:
    """Changes that came after the first row of a load of their table and sort before it: the load's rows are older, and
    would win. They are those of this batch and, of loads that it has begun or that begin earlier than was known, those
    of earlier batches. In: the loads known after the batch, and before it. Out: (source, schema, table, load_id, least
    change_seq); the kind of the control events that say so; by source and load_id what these tell.
    """
    nothing: tuple[list[tuple], str, dict] = [], BEFORE, {}
    begun = {(load["source"], load["load_id"], load["first_at"]) for load in known}
    by_source = {source.name: source for source in sources}
    names = by_name(batch.project.tables.values())
    least = _least(batch) if loads else {}
    spans, of_new = [], []
    for load in loads:
        low, high = codec.LOADS.window(load, by_source[load["source"]])
        is_new = (load["source"], load["load_id"], load["first_at"]) not in begun
        if is_new:
            of_new.append(f"source = {literal(load['source'])} and change_seq between '{low}' and '{high}'")
        if is_new or (load["source"] in least and least[load["source"]] <= high):
            spans += [
                (load["source"], *name.split("."), load["table"], load["load_id"], load["first_at"], low, high)
                for name in (names[load["table"]].names if load["table"] in names else [load["table"]])
            ]
    if not spans:
        return nothing
    of_batch = f"from silver.changes where operation <> 'REFRESH' and ({' or '.join([batch.rows, *of_new])})"
    rows = batch.spark.createDataFrame(
        spans,
        "source string, source_schema string, source_table string, load_table string, load_id string, "
        "first_at timestamp, low string, high string",
    )
    changes = batch.spark.sql(f"select source, source_schema, source_table, change_seq, unit_id {of_batch}")
    earlier = changes.join(rows.hint("broadcast"), ["source", "source_schema", "source_table"]).where(
        "change_seq between low and high"
    )
    if earlier.isEmpty():
        return nothing
    units = batch.spark.sql(
        f"select source, unit_id, path, timestamp, `offset`, value from bronze.messages where {among([*by_source])}"
    )
    units = load_times.with_times(batch.project, units, sources).select("source", "unit_id", "timestamp")
    hidden = earlier.join(units, ["source", "unit_id"]).where("timestamp >= first_at")
    found = hidden.groupBy("source", "load_table", "load_id").agg({"change_seq": "min", "unit_id": "count"}).collect()
    return (
        [
            (row["source"], *row["load_table"].split("."), row["load_id"], row["min(change_seq)"])
            for row in sorted(found, key=lambda row: (row["source"], row["load_id"]))
        ],
        BEFORE,
        {(row["source"], row["load_id"]): {"changes": row["count(unit_id)"]} for row in found},
    )


def _least(batch: Batch) -> dict[str, str]:
    """Source -> the least change_seq of its changes in the batch, but for rows of full loads."""
    columns, own = (
        ["source", "min(change_seq) as low"],
        f"where {batch.stored} and operation <> 'REFRESH' group by source",
    )
    rows = lake.peek(batch.project.lakehouse_path(), "silver.changes", columns, own)
    return {row["source"]: row["low"] for row in rows}
