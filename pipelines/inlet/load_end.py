"""When full loads have ended: the control event `load_end`. Before it gold takes a load's rows and drops none that the load has not
sent; with it what the load did not send goes, as of the load's start.

A file is a load and ends with itself: once all its bytes are landed and none of its records is rejected. Messages announce no end;
what their codec takes for one it says in `has_ended`. The events depend only on what has come, not on its order or batches.
"""

from inlet import bronze, lake
from inlet.batch import Batch, among

BEGIN = "full_load"            # keeps where each load of messages began and how far it was seen
END = "load_end"


def of_files(batch: Batch, units: list[dict]) -> None:
    """Write the ends of the loads that files of this batch bring to their end. In: the batch's units (silver_block.headers)."""
    loads = {(unit["source"], unit["path"]): unit["load_id"] for unit in units if unit["load_id"]}
    whole = {(row["source"], row["path"]) for row in bronze.landed(batch.project)
             if row["batch_id"] == batch.batch_id and row["ofs_end"] == row["size_bytes"] and not row["problem"]}
    sources = sorted({source for source, path in loads.keys() & whole})
    if not sources:
        return
    rejected = {(row["source"], row["unit_id"].removeprefix(f"{row['source']}/").rsplit("@", 1)[0])
                for row in lake.peek(batch.project.lakehouse_path(), "silver.rejects", ["source", "unit_id"])}
    ended = {(source, loads[source, path]) for source, path in (loads.keys() & whole) - rejected}
    found = batch.spark.sql("select distinct source, source_schema, source_table, load_id from silver.changes "
                            f"where batch_id = {batch.batch_id} and {among(sources)} and operation = 'REFRESH'").collect()
    _append(batch, [(*row, row.load_id + "9" * (35 - len(row.load_id))) for row in found if (row.source, row.load_id) in ended], "-file-ends")


def of_messages(batch: Batch, codec, sources: list, loads: list[dict]) -> None:
    """Write the ends of loads that changes of this batch tell. In: the loads known after it."""
    begun, ended = _before(batch, BEGIN), _before(batch, END)
    waiting = {(load["source"], load["table"], load["load_id"]): load for load in loads if (load["source"], load["table"], load["load_id"]) not in ended}
    if not waiting:
        return
    new = [load["started_at16"] for place, load in waiting.items() if place not in begun]
    rows = f"batch_id = {batch.batch_id}" + (f" or change_seq > '{min(new)}'" if new else "")     # of the others the earlier ones were asked
    last = {(row.source, row.table): row.last_seq for row in batch.spark.sql(
        "select source, concat(source_schema, '.', source_table) as table, max(change_seq) as last_seq from silver.changes "
        f"where {among([s.name for s in sources])} and operation <> 'REFRESH' and ({rows}) group by all").collect()}
    options = {source.name: codec.options(source) for source in sources}
    _append(batch, [(load["source"], *load["table"].split("."), load["load_id"], load["started_at16"] + "9" * 19) for load in waiting.values()
                    if codec.has_ended(load, loads, last, options[load["source"]])], "-message-ends")


def _before(batch: Batch, kind: str) -> set[tuple]:
    """(source, SCHEMA.TABLE, load_id) of the loads that earlier batches told a kind of event of."""
    rows = lake.peek(batch.project.lakehouse_path(), "silver.control_events", ["source", "source_schema", "source_table", "load_id"],
                     f"where kind = '{kind}' and batch_id <> {batch.batch_id}")
    return {(row["source"], f"{row['source_schema']}.{row['source_table']}", row["load_id"]) for row in rows}


def _append(batch: Batch, rows: list[tuple], part: str) -> None:
    ended = _before(batch, END)
    rows = [row for row in rows if (row[0], f"{row[1]}.{row[2]}", row[3]) not in ended]
    if rows:
        events = batch.spark.createDataFrame(rows, "source string, source_schema string, source_table string, load_id string, change_seq string")
        batch.append(events.selectExpr("*", f"'{END}' as kind", "'{}' as detail", "cast(null as string) as unit_id",
                                       "cast(null as bigint) as unit_offset", "cast(null as bigint) as unit_length"), "silver.control_events", part)
