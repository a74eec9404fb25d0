"""When full loads have ended: the control event `load_end`. Before it gold takes a load's rows and drops none that the load has not
sent; with it what the load did not send goes, as of the load's start.

A file is a load and ends with itself: once all its bytes are landed and none of its records is rejected. Messages announce no end;
their codec says which changes prove one (`proof_span`), and when the source has gone on for so long that it `is_over`.
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
    load_ids = sorted({load_id for _, load_id in ended})
    found = batch.spark.sql("select distinct source, source_schema, source_table, load_id from silver.changes where operation = 'REFRESH' "
                            f"and {among(sources)} and change_seq between '{load_ids[0]}' and '{load_ids[-1]}~'").collect() if ended else []
    _append(batch, [(*row, row.load_id + "9" * (35 - len(row.load_id))) for row in found if (row.source, row.load_id) in ended], "-file-ends")


def of_messages(batch: Batch, codec, sources: list, loads: list[dict]) -> None:
    """Write the ends of loads that changes of this batch tell. In: the loads known after it."""
    begun, ended = _before(batch, BEGIN), _before(batch, END)
    waiting = {(load["source"], load["table"], load["load_id"]): load for load in loads if (load["source"], load["table"], load["load_id"]) not in ended}
    if not waiting:
        return
    spans = [(*place[:1], *place[1].split("."), place[2], *codec.proof_span(load, loads), place not in begun) for place, load in waiting.items()]
    rows = batch.spark.createDataFrame(spans, "source string, source_schema string, source_table string, load_id string, first string, last string, is_new boolean")
    changes = batch.spark.sql(f"select * from silver.changes where {among([s.name for s in sources])} and operation <> 'REFRESH' and change_seq > "
                              f"'{min(span[4] for span in spans)}'" + ("" if any(span[6] for span in spans) else f" and batch_id = {batch.batch_id}"))
    proven = {(row.source, f"{row.source_schema}.{row.source_table}", row.load_id) for row in changes.join(
        rows.hint("broadcast"), ["source", "source_schema", "source_table"]).where("change_seq between first and last").select(
        "source", "source_schema", "source_table", rows.load_id).distinct().collect()}
    newest = {row.source: row.seq for row in changes.groupBy("source").agg({"change_seq": "max"}).toDF("source", "seq").collect()}
    options = {source.name: codec.options(source) for source in sources}
    _append(batch, [(*place[:1], *place[1].split("."), place[2], load["started_at16"] + "9" * 19) for place, load in waiting.items()
                    if place in proven or codec.is_over(load, loads, newest.get(place[0], ""), options[place[0]])], "-message-ends")


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
