"""Units of binary formats in Spark: the codec's pure `decode` runs in `mapInArrow`, twice.

First for the changes, whose images leave Python as VARIANT; what is constant for a unit is joined on in the JVM, where it
costs nothing. Then for what is aside of them (rejects, control events, the accounts), so that rejects are found by decoding
again rather than trusted from the writing pass. Decoding is several times cheaper than writing (docs/performance.md).
"""

import json

from inlet import change, lake
from inlet.bronze import guard
from inlet.bronze.guard import guarded
from inlet.codecs import CODECS
from inlet.config import Project
from inlet.silver import full_loads
from inlet.silver.batch import Batch, overlaps, reject_conflicts, write_changes
from inlet.table import in_force

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.parquet.columnarReaderBatchSize"       # of rows that are whole blocks
MAX_TABLES = 1 << 16                   # `place` = unit number * MAX_TABLES + table number, one long to join on
DECODED = ("place bigint, record_ordinal bigint, unit_offset bigint, unit_length bigint, operation tinyint, "
           "transaction_ordinal bigint, counter bigint, last boolean, before variant, after variant")
ASIDE = ("kind string, unit_id string, source string, unit_offset bigint, unit_length bigint, num_rejected bigint, "
         "num_control bigint, bytes_framing bigint, bytes_rejected bigint, source_schema string, source_table string, "
         "column_name string, reject_kind string, byte_offset bigint, expected string, found string, change_seq string, "
         "raw binary, load_id string, detail string")


def run(batch: Batch) -> None:
    """Decode the blocks of a batch into silver's tables, and fill in the accounts."""
    try:
        _run(batch)
    finally:
        for setting in BATCH_ROWS:
            batch.spark.conf.unset(setting)


def _run(batch: Batch) -> None:
    units = headers(batch.spark, batch.project, batch.batch_id)
    for unit in units:
        account = batch.account(unit["source"])
        account.num_units += 1
        account.num_records += unit["num_records"]
        account.bytes_landed += unit["size_bytes"]
    judged = write_changes(batch, changes(batch.spark, batch.project, batch.batch_id, units, batch.is_apart), _may_repeat(batch, units))
    rows = aside(batch.spark, batch.project, batch.batch_id, batch.is_apart).persist()
    found = rows.groupBy("source", "kind", "reject_kind").agg({"*": "count", "num_control": "sum", "bytes_framing": "sum"}).collect()
    for row in found:
        if row["kind"] == "account":
            account = batch.account(row["source"])
            account.num_control += row["sum(num_control)"]
            account.bytes_framing += row["sum(bytes_framing)"]
    if any(row["reject_kind"] == guard.KIND for row in found):
        _count_failed(batch, units, {row.unit_id for row in rows.where(f"reject_kind = '{guard.KIND}'").select("unit_id").collect()})
    there = {row["kind"] for row in found}
    if "reject" in there:
        batch.append(_of_kind(rows, "reject"), "silver.rejects")
    if "control" in there:
        place = ["source", "kind", "change_seq"]
        before = batch.spark.sql(f"select source, kind, change_seq from silver.control_events where batch_id <> {batch.batch_id}")
        events = _of_kind(rows, "control").dropDuplicates(place)         # a file that comes again tells nothing new
        batch.append(events.join(before, place, "left_anti"), "silver.control_events")
    rows.unpersist()
    if judged is not None:
        reject_conflicts(batch, judged, _units(batch.spark, batch.batch_id).selectExpr("unit_id", "bytes"))
    full_loads.of_files(batch, units)


def _count_failed(batch: Batch, units: list[dict], failed: set[str]) -> None:
    """A unit that its decoder failed on is one record."""
    for unit in units:
        if unit["unit_id"] in failed:
            batch.account(unit["source"]).num_records -= unit["num_records"] - 1


def _of_kind(rows, kind: str):
    return rows.where(f"kind = '{kind}'").drop("kind").withColumnRenamed("reject_kind", "kind")


def _may_repeat(batch: Batch, units: list[dict]) -> bool:
    """Do the ranges of change_seq that the units cover meet each other, or one that the ledger has?"""
    ranges = sorted((u["source"], f"{u['prefix']}{u['context'].get('record_ordinal', 0):010d}",
                     f"{u['prefix']}{u['context'].get('record_ordinal', 0) + max(u['num_records'] - 1, 0):010d}") for u in units)
    spans: dict[str, tuple[str, str]] = {}
    for source, low, high in ranges:
        spans[source] = min(low, spans.get(source, (low, high))[0]), max(high, spans.get(source, (low, high))[1])
    meets = any(a[0] == b[0] and b[1] <= a[2] for a, b in zip(ranges, ranges[1:], strict=False))
    return meets or overlaps(batch, spans)


def headers(spark, project: Project, batch_id: int) -> list[dict]:
    """The units of a batch without their bytes, in order; with the constants of the changes in each."""
    rows = spark.sql(f"select unit_id, source, path, size_bytes, num_records, context from bronze.blocks "
                     f"where batch_id = {batch_id} order by source, path, file_offset").collect()
    found = []
    for row in rows:
        source, context = project.sources[row.source], json.loads(row.context)
        codec = CODECS[source.codec]
        prefix = "" if "problem" in context and "time" not in context else codec.change_seq_prefix(context)
        found.append(row.asDict() | {"context": context, "prefix": prefix, "load_id": context.get("load_id")})
    return found


def decoded(spark, project: Project, batch_id: int, units: list[dict], is_apart: bool = False):
    """What Python makes of the units: a row per change, without what is constant for a unit."""
    return _units(spark, batch_id).mapInArrow(guarded(_decoder(project, _numbers(units)), lambda unit, why: [], is_apart), DECODED)


def changes(spark, project: Project, batch_id: int, units: list[dict], is_apart: bool = False):
    """The changes of a batch's units as rows of the change table, without batch_id and decoded_at."""
    places = spark.createDataFrame(_places(project, units), "place bigint, unit_id string, source string, prefix string, "
                                   "load_of_unit string, source_schema string, source_table string, table_version int")
    return decoded(spark, project, batch_id, units, is_apart).join(places.hint("broadcast"), "place").selectExpr(
        "source", "source_schema", "source_table", "table_version",
        "concat(prefix, lpad(cast(record_ordinal as string), 10, '0')) as change_seq",
        "element_at(array('REFRESH', 'INSERT', 'UPDATE', 'DELETE'), operation + 1) as operation",
        "element_at(array('R', 'I', 'U', 'D'), operation + 1) as change_oper",
        "concat(prefix, '-', transaction_ordinal) as transaction_id", "counter as transaction_event_counter",
        "last as transaction_last_event", "cast(null as timestamp) as change_timestamp", "cast(null as string) as stream_position",
        "cast(null as binary) as change_mask", "cast(null as binary) as column_mask", "before", "after",
        "cast(null as map<string,string>) as column_states", "if(operation = 0, load_of_unit, null) as load_id",
        "unit_id", "unit_offset", "unit_length")


def aside(spark, project: Project, batch_id: int, is_apart: bool = False):
    """What is not a change: rows of kind `reject` and `control`, and one row `account` per unit."""
    return _units(spark, batch_id).mapInArrow(guarded(_asider(project), _set_aside, is_apart), ASIDE)


def _units(spark, batch_id: int):
    for setting in BATCH_ROWS:
        spark.conf.set(setting, "8")   # a row is a whole block: thousands of them at once do not fit
    return spark.sql(f"select unit_id, source, context, bytes from bronze.blocks where batch_id = {batch_id}")


def _numbers(units: list[dict]) -> dict[str, int]:
    return {unit["unit_id"]: n for n, unit in enumerate(units)}


def _places(project: Project, units: list[dict]) -> list[tuple]:
    rows = []
    for n, unit in enumerate(units):
        tables = in_force(project.tables_of(project.sources[unit["source"]]), unit["prefix"].ljust(change.LEN_SEQ, "9"))
        rows += [(n * MAX_TABLES + t, unit["unit_id"], unit["source"], unit["prefix"], unit["load_id"],
                  tables[name].schema_name, tables[name].table_name, tables[name].version)
                 for t, name in enumerate(sorted(tables))]
    return rows


def _each(project: Project, codecs: dict, batches):
    """(unit_id, source, context, tables, bytes, codec) of each unit in Arrow batches of `_units`."""
    for batch in batches:
        for row in range(batch.num_rows):
            unit_id, name, context, data = (batch.column(c)[row] for c in range(4))
            source, context = project.sources[name.as_py()], json.loads(context.as_py())
            tables = project.tables_of(source)
            yield unit_id.as_py(), source, context, tables, data.as_py(), codecs[source.codec]


def _codecs(project: Project) -> dict:
    return {source.codec: CODECS[source.codec] for source in project.sources.values()}


def _decoder(project: Project, numbers: dict[str, int]):
    codecs = _codecs(project)

    def decode(batches):
        import numpy as np
        import pyarrow as pa
        for unit_id, source, context, tables, data, codec in _each(project, codecs, batches):
            rows = codec.decode(data, context, source, tables).changes
            place = numbers[unit_id] * MAX_TABLES + rows.column("table_index").to_numpy(zero_copy_only=False).astype(np.int64)
            names = [column.split()[0] for column in DECODED.split(", ")]
            yield pa.RecordBatch.from_arrays([pa.array(place)] + [rows.column(n) for n in names[1:]], names=names)
    return decode


def _asider(project: Project):
    codecs = _codecs(project)

    def decode(batches):
        import pyarrow as pa
        schema = lake.arrow_schema(ASIDE)
        for unit_id, source, context, tables, data, codec in _each(project, codecs, batches):
            rows = aside_rows(codec, data, context, source, tables)
            yield pa.RecordBatch.from_pylist([row | {"unit_id": unit_id, "source": source.name} for row in rows], schema=schema)
    return decode


def _set_aside(unit, why: str) -> list:
    """A unit that its decoder failed on, as a reject that covers it."""
    import pyarrow as pa
    [row] = unit.to_pylist()
    of_unit = {"unit_id": row["unit_id"], "source": row["source"]}
    return [pa.RecordBatch.from_pylist([
        of_unit | {"kind": "reject", "reject_kind": guard.KIND, "unit_offset": 0, "unit_length": len(row["bytes"]), "byte_offset": 0,
                   "expected": guard.EXPECTED, "found": why, "raw": row["bytes"]},
        of_unit | {"kind": "account", "num_rejected": 1, "num_control": 0, "bytes_framing": 0, "bytes_rejected": len(row["bytes"])}],
        schema=lake.arrow_schema(ASIDE))]


def aside_rows(codec, data: bytes, context: dict, source, tables) -> list[dict]:
    """Rejects, control events and the account of one unit."""
    found = codec.decode(data, context, source, tables)
    rows = [{"kind": "reject", "reject_kind": r.kind, "unit_offset": r.unit_offset, "unit_length": r.unit_length,
             "byte_offset": r.byte_offset, "expected": r.expected, "found": r.found, "raw": r.raw, "change_seq": r.change_seq,
             "source_schema": r.source_schema, "source_table": r.source_table, "column_name": r.column_name}
            for r in found.rejects]
    for control in found.controls:
        schema, table = control["table"].split(".")
        prefix = codec.change_seq_prefix(context)
        rows.append({"kind": "control", "reject_kind": control["kind"], "unit_offset": control["unit_offset"],
                     "unit_length": control["unit_length"], "source_schema": schema, "source_table": table,
                     "load_id": prefix, "change_seq": f"{prefix}{control['record_ordinal']:010d}", "detail": "{}"})
    rows.append({"kind": "account", "num_rejected": len(found.rejects), "num_control": found.num_control,
                 "bytes_framing": found.bytes_framing,
                 "bytes_rejected": sum(r.unit_length for r in found.rejects)})
    return rows
