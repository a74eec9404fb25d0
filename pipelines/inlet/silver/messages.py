"""Units of message formats in Spark: what the codec's fast path certainly reads right is written at once; every other message
of the batch is found by its missing change and goes to the codec's exact path, whose answer is a change, a reject or a
control event. No message has a third way out.
"""

import json
from datetime import datetime, timedelta, timezone
from functools import partial

from inlet import change, lake
from inlet.bronze import guard
from inlet.bronze.guard import guarded
from inlet.codecs import CODECS
from inlet.silver import full_loads
from inlet.silver.batch import Batch, among, overlaps, reject_conflicts, write_changes
from inlet.table import by_name, present

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
CHANGE_SQL = [c.name for c in change.CHANGES if c.name not in ("batch_id", "decoded_at")]


def run(batch: Batch, sources: list[str]) -> None:
    """Decode the messages of a batch into silver's tables, and fill in the accounts. In: the sources that have any."""
    for name in sorted({batch.project.sources[s].codec for s in sources}):
        _run_codec(batch, CODECS[name], [batch.project.sources[s] for s in sources if batch.project.sources[s].codec == name])


def _run_codec(batch: Batch, codec, sources: list) -> None:
    own = f"batch_id = {batch.batch_id} and {among([s.name for s in sources])}"
    messages = batch.spark.sql(f"select * from bronze.messages where {own}")
    spans, has_twice, loading = _survey(batch, codec, messages)
    tables = by_name(batch.project.tables.values())
    loads = _loads(batch, codec, messages, sources, tables, loading)
    if batch.is_apart:                             # the compiled walk may be what died
        _write_exact(batch, codec, messages, sources, tables, loads)
    else:
        _write_fast(batch, codec, messages, own, sources, tables, loads, has_twice or overlaps(batch, spans))
    full_loads.of_messages(batch, codec, sources, loads)


def _write_fast(batch: Batch, codec, messages, own: str, sources: list, tables: dict, loads: list, may_repeat: bool) -> None:
    judged = write_changes(batch, codec.fast(messages, sources, tables, loads), may_repeat)
    answered = batch.spark.sql(f"select unit_id from silver.changes where {own}")
    if judged is not None:
        answered = answered.union(judged.rows.where("verdict <> 'new'").select("unit_id"))
    if answered.count() < messages.count():
        left = messages.join(answered, "unit_id", "left_anti")
        _write_exact(batch, codec, left, sources, tables, loads)
    if judged is not None:
        reject_conflicts(batch, judged, messages.selectExpr("unit_id", "value as bytes"))


def _survey(batch: Batch, codec, messages) -> tuple[dict, bool, set[str]]:
    """What the raw text tells cheaply: sizes, the range of change_seq, whether a change may be there twice (it cannot if every
    message has a place that the text tells, all are distinct, and none came to an offset that held another message), and the
    sources that may have full-load rows."""
    from pyspark.sql.functions import expr

    asked = codec.survey_sql() | {"bytes_landed": "sum(size_bytes)", "num_again": "count_if(contains(unit_id, '~'))"}
    rows = codec.marked(messages).groupBy("source").agg(*[expr(sql).alias(name) for name, sql in asked.items()]).collect()
    spans = {}
    for row in rows:
        account = batch.account(row.source)
        account.num_units += row.num_records
        account.num_records += row.num_records
        account.bytes_landed += row.bytes_landed
        if row.min_seq is not None:
            spans[row.source] = (row.min_seq, row.max_seq)
    has_twice = any(row.num_distinct_seq < row.num_records or row.num_again for row in rows)
    return spans, has_twice, {row.source for row in rows if row.may_have_refresh}


def _write_exact(batch: Batch, codec, left, sources: list, tables: dict, loads: list) -> None:
    decode = guarded(codec.exact_batches(sources, tables, loads), _set_aside(codec.arrow_schema()), batch.is_apart)
    exact = left.mapInArrow(decode, codec.EXACT_DDL).persist()
    found = exact.groupBy("source", "result", "kind").agg({"*": "count", "unit_length": "sum"}).collect()
    for row in found:
        if row["result"] == "control":
            account = batch.account(row["source"])
            account.num_control += row["count(1)"]
            account.bytes_framing += row["sum(unit_length)"]
    there = {row["result"] for row in found}
    for result, table in (("reject", "silver.rejects"), ("control", "silver.control_events")):
        if result in there:
            batch.append(exact.where(f"result = '{result}'"), table)
    if "change" in there:
        judged = write_changes(batch, exact.where("result = 'change'").selectExpr(*CHANGE_SQL), True)
        if any(row["result"] == "change" and row["kind"] for row in found):      # events that changes bring with them, each once
            place = ["source", "change_seq", "kind"]
            before = batch.spark.table("silver.control_events").where(f"batch_id <> {batch.batch_id}")
            events = exact.where("result = 'change' and kind is not null").join(judged.rows.where("verdict <> 'conflict'"), "unit_id", "left_semi")
            batch.append(events.dropDuplicates(place).join(before, place, "left_anti"), "silver.control_events")
        reject_conflicts(batch, judged, left.selectExpr("unit_id", "value as bytes"))
    exact.unpersist()


def _set_aside(schema):
    """A message that its decoder failed on, as a reject that covers it."""
    def reject(unit, why: str) -> list:
        import pyarrow as pa
        [message] = unit.to_pylist()
        raw = message["value"] or b""
        return [pa.RecordBatch.from_pylist([{
            "result": "reject", "source": message["source"], "unit_id": message["unit_id"], "unit_offset": 0, "unit_length": len(raw), "raw": raw,
            "kind": guard.KIND, "byte_offset": 0, "expected": guard.EXPECTED, "found": why}], schema=schema)]
    return reject


def _find_loads(codec, messages, sources: list, tables: dict) -> dict:
    """What `codec.find_loads` tells, message by message, without its compiled walk."""
    gap = int(60e6 * min(codec.options(source).load_gap_minutes for source in sources))
    decode = guarded(_refreshes(codec, {source.name: source for source in sources}, tables), lambda unit, why: [], is_apart=True)
    spans = messages.mapInArrow(decode, "source string, t string, at bigint").selectExpr("*", "at as first", "at as last", f"at div {gap} as bucket") \
        .groupBy("source", "t", "bucket").agg({"first": "min", "last": "max"}).collect()
    seen: dict[tuple, list] = {}
    for row in spans:
        seen.setdefault((row["source"], row["t"]), []).append(tuple(EPOCH + timedelta(microseconds=row[name]) for name in ("min(first)", "max(last)")))
    return seen


def _refreshes(codec, sources: dict, tables: dict):
    def decode(batches):
        import pyarrow as pa
        schema = lake.arrow_schema("source string, t string, at bigint")
        for batch in batches:
            rows = [(m["source"], codec.refresh_table(m, sources[m["source"]], tables), (m["timestamp"] - EPOCH) // timedelta(microseconds=1))
                    for m in batch.to_pylist() if m["source"] in sources and m["timestamp"]]
            yield pa.RecordBatch.from_pylist([dict(zip(schema.names, row)) for row in rows if row[1]], schema=schema)
    return decode


def _loads(batch: Batch, codec, messages, sources: list, tables: dict, loading: set[str]) -> list[dict]:
    """The full loads known after this batch; new ones and later ends are kept as control events."""
    known, find = _known_loads(batch), partial(_find_loads, codec) if batch.is_apart else codec.find_loads
    seen = find(messages, [source for source in sources if source.name in loading], tables) if loading else {}
    loads = []
    for source in sources:
        of_source = {place: times for place, times in seen.items() if place[0] == source.name}
        loads += codec.assign_loads([load for load in known if load["source"] == source.name], of_source,
                                    codec.options(source).load_gap_minutes)
    rows = [(load["source"], *load["table"].split("."), load["started_at16"] + "0" * 19, full_loads.BEGIN, load["load_id"],
             json.dumps(load, default=str)) for load in loads if load not in known]
    if rows:
        events = batch.spark.createDataFrame(rows, "source string, source_schema string, source_table string, change_seq string, "
                                             "kind string, load_id string, detail string")
        batch.append(events.selectExpr("*", "cast(null as string) as unit_id", "cast(null as bigint) as unit_offset",
                                       "cast(null as bigint) as unit_length"), "silver.control_events")
    return loads


def _known_loads(batch: Batch) -> list[dict]:
    """Each load as the last batch before this one left it."""
    known = {}
    events = lake.peek(batch.project.lakehouse_path(), "silver.control_events", ["detail"],
                       f"where kind = '{full_loads.BEGIN}' and batch_id <> {batch.batch_id} order by batch_id")
    for row in events:
        load = json.loads(row["detail"])
        load["table"] = present(batch.project.tables.values(), load["table"])
        known[load["source"], load["load_id"]] = load | {name: datetime.fromisoformat(load[name]) for name in ("first_at", "last_at")}
    return list(known.values())
