"""Units of message formats in Spark: what the codec's fast path certainly reads right is written at once; every other
message of the batch is found by its missing change and goes to the codec's exact path, whose answer is a change, a
reject or a control event: without Spark where these are few. No message has a third way out.
"""

import json
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from inlet import lake
from inlet.bronze import guard, load_times, lookups
from inlet.bronze.guard import guarded
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.silver import decoded, full_loads, parts, verdicts
from inlet.silver.batch import Batch, Judged, among, overlaps, raw_of_units, reject_conflicts, write_changes
from inlet.source import Source
from inlet.sql import literal
from inlet.table import Table, by_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)
NUM_FEW = 200  # messages, at most, that are decoded without Spark after the compiled walk; of those known, too
AFTER_ALL = "~"  # after every change_seq
UNSURVEYED = {
    "num_records": "count(*)",
    "num_distinct_seq": "0",
    "min_seq": "cast(null as string)",
    "max_seq": "cast(null as string)",
    "may_have_refresh": "true",
}


def run(batch: Batch, sources: list[str]) -> None:
    """Decode the messages of a batch into silver's tables, and fill in the accounts. In: the sources that have any."""
    for name in sorted({batch.project.sources[s].codec for s in sources}):
        _run_codec(
            batch, CODECS[name], [batch.project.sources[s] for s in sources if batch.project.sources[s].codec == name]
        )


def _run_codec(batch: Batch, codec, sources: list) -> None:
    own = f"batch_id = {batch.batch_id} and {among([s.name for s in sources])}"
    landed = batch.spark.sql(f"select * from bronze.messages where {own}")
    messages = load_times.with_times(batch.project, landed, sources)
    tables = by_name(batch.project.tables.values())
    survey = _survey(batch, codec, messages, sources)
    if survey.bringing:
        bringing = [batch.project.sources[name] for name in survey.bringing]
        lookups.keep_brought(batch.project, batch.batch_id, bringing, messages)
    loads = full_loads.in_messages(batch, codec, messages, sources, tables, survey.loading) if codec.LOADS else []
    if batch.is_apart or not codec.FAST:  # the compiled walk may be what died
        _write_exact(batch, codec, messages, sources, loads)
    else:
        may_repeat = survey.has_twice or overlaps(batch, survey.spans)
        _write_fast(batch, codec, messages, own, sources, tables, loads, may_repeat, survey.num_messages)
    if codec.LOADS:
        full_loads.of_messages(batch, codec, sources, loads, survey.least)


def _write_fast(
    batch: Batch,
    codec,
    messages: "DataFrame",
    own: str,
    sources: list,
    tables: dict,
    loads: list,
    may_repeat: bool,
    num_messages: int,
) -> None:
    given = [lookups.known(batch.project, batch.batch_id)] if offers(codec, "brought") else []
    judged = write_changes(batch, codec.FAST.fast(messages, sources, tables, loads, *given), may_repeat, codec)
    of_batch = f"where {batch.stored_of(source.name for source in sources)}"
    [stored] = lake.peek(batch.project.lakehouse_path(), "silver.changes", ["count(*) as n"], of_batch)
    num_left = num_messages - stored["n"] - (judged.num_known if judged else 0)
    is_few = num_left <= NUM_FEW and (judged is None or judged.num_known <= NUM_FEW)
    if num_left > 0 and not (is_few and _write_few(batch, codec, sources, loads, judged)):
        answered = batch.spark.sql(f"select unit_id from silver.changes where {own}")
        if judged is not None:
            answered = answered.union(judged.rows.where("verdict <> 'new'").select("unit_id"))
        _write_exact(batch, codec, messages.join(answered, "unit_id", "left_anti"), sources, loads)
    if judged is not None:
        reject_conflicts(batch, judged, partial(raw_of_units, units=_bytes_of(messages)))


def _write_few(batch: Batch, codec, sources: list, loads: list[dict], judged: Judged | None) -> bool:
    """Decode messages that the compiled walk has left, without Spark. In: the changes that it gave, with verdicts. Out:
    False where they are no mere rejects and control events, so that Spark has to write them; then nothing was."""
    own = batch.stored_of(source.name for source in sources)
    changes = f"(select source, unit_id from changes where {own})"
    left = f"select m.* from messages m left anti join {changes} c on m.source = c.source and m.unit_id = c.unit_id"
    tables = {"messages": "bronze.messages", "changes": "silver.changes"}
    rows = lake.ask(batch.project.lakehouse_path(), f"{left} where {own}", **tables)
    repeated = judged.rows.where("verdict <> 'new'").select("unit_id").collect() if judged else ()
    answered, times = {row.unit_id for row in repeated}, load_times.of_files(batch.project, sources)
    units = [load_times.timed(m, times.get((m["source"], m["path"]))) for m in rows if m["unit_id"] not in answered]
    known = lookups.known(batch.project, batch.batch_id) if lookups.is_asked(codec) else {}
    try:
        of_units = guard.in_child(lambda: [_rows_of(batch, codec, unit, loads, known) for unit in units])
    except Exception as error:  # Spark finds the message that the decoder fails on, or raises the same
        log.info("messages of batch %d go through Spark: %s", batch.batch_id, guard.why(error))
        return False
    given = [row for of_unit in of_units for row in of_unit]
    if not {row["result"] for row in given} <= {"reject", "control", "account"}:
        return False
    decoded.add(batch, given)
    parts.settle_known(batch, codec, [source.name for source in sources])
    return True


def _rows_of(batch: Batch, codec, unit: dict, loads: list[dict], known: dict[str, dict[str, bytes]]) -> list[dict]:
    """A message, decoded by the codec's exact path. In: what was looked up, by source and name."""
    source = batch.project.sources[unit["source"]]
    return rows_of(codec, unit, source, batch.project.tables_of(source), loads, known.get(source.name, {}))


def replay(batch: Batch, codec, replays: list[dict]) -> None:
    """Decode rejected messages again, by the exact path. In: their rows of bronze.replays."""
    sources = [batch.project.sources[name] for name in sorted({row["source"] for row in replays})]
    units = ", ".join(map(literal, sorted({row["unit_id"] for row in replays})))
    landed = batch.spark.sql(
        f"select * from bronze.messages where {among([s.name for s in sources])} and unit_id in ({units})"
    )
    messages = load_times.with_times(batch.project, landed, sources)
    lookups.land(batch.project, batch.batch_id, [], messages)
    if bringing := [source for source in sources if lookups.brings(source)]:
        lookups.keep_brought(batch.project, batch.batch_id, bringing, messages)
        if lists := _without_lists(batch, bringing):
            own = f"batch_id <= {batch.batch_id} and {among([source.name for source in lists])}"
            landed = batch.spark.sql(f"select * from bronze.messages where {own}")
            lookups.keep_brought(batch.project, batch.batch_id, lists, landed)
    tables = by_name(batch.project.tables.values())
    loads = (
        full_loads.in_messages(batch, codec, messages, sources, tables, {s.name for s in sources})
        if codec.LOADS
        else []
    )
    ranges = verdicts.rejected_ranges(replays)
    _write_exact(batch, codec, messages, sources, loads, ranges)
    sizes = {row.unit_id: row.size_bytes for row in messages.select("unit_id", "size_bytes").collect()}
    for row in replays:
        is_whole = verdicts.is_whole(ranges[row["unit_id"]], sizes.get(row["unit_id"], 0))
        batch.account(row["source"]).num_control += 0 if is_whole else row["num_records"]
    if codec.LOADS:
        full_loads.of_messages(batch, codec, sources, loads, {})


def _without_lists(batch: Batch, bringing: list) -> list:
    """Sources whose messages lack what others bring, and that nothing has been brought for: an earlier Inlet may have
    landed it and not kept it. In: sources whose messages bring something.
    """
    known, of_kind = lookups.known(batch.project), "where kind = 'definition_missing'"
    rejects = lake.peek(batch.project.lakehouse_path(), "silver.rejects", ["source"], of_kind)
    lacking = {row["source"] for row in rejects}
    return [source for source in bringing if source.name in lacking and not known.get(source.name)]


def _bytes_of(messages: "DataFrame"):
    return messages.selectExpr("unit_id", "value as bytes")


class Survey(NamedTuple):
    """What the raw text of messages tells cheaply."""

    spans: dict[str, tuple[str, str]]  # source -> least and greatest change_seq that the text tells
    least: dict[str, str]  # source -> a change_seq before which no change is; "" where the text may not tell all
    # It cannot be there twice if every message has a place that the text tells, all are distinct, and none came to an
    # offset that held another message
    has_twice: bool
    loading: set[str]  # sources that may have full-load rows
    bringing: list[str]  # sources that may have messages which bring something for others
    num_messages: int


def _survey(batch: Batch, codec, messages: "DataFrame", sources: list) -> Survey:
    """Survey the messages of a batch, and count them."""
    from pyspark.sql.functions import expr

    fast = codec.FAST
    asked = (fast.survey_sql() if fast else UNSURVEYED) | {
        "bytes_landed": "sum(size_bytes)",
        "num_again": "count_if(contains(unit_id, '~'))",
        "num_unmarked": "count_if(mark is null)" if fast else "count(*)",
        "num_bringing": f"count_if({codec.MAY_BRING})" if offers(codec, "brought") else "0",
    }
    rows = (
        (fast.marked(messages, sources) if fast else messages)
        .groupBy("source")
        .agg(*[expr(sql).alias(name) for name, sql in asked.items()])
        .collect()
    )
    spans = {}
    for row in rows:
        account = batch.account(row.source)
        account.num_units += row.num_records
        account.num_records += row.num_records
        account.bytes_landed += row.bytes_landed
        if row.min_seq is not None:
            spans[row.source] = (row.min_seq, row.max_seq)
    return Survey(
        spans,
        {row.source: "" if row.num_unmarked else row.min_seq or AFTER_ALL for row in rows},
        any(row.num_distinct_seq < row.num_records or row.num_again for row in rows),
        {row.source for row in rows if row.may_have_refresh},
        sorted(row.source for row in rows if row.num_bringing),
        sum(row.num_records for row in rows),
    )


def _write_exact(
    batch: Batch, codec, messages: "DataFrame", sources: list, loads: list, ranges: dict[str, list[list]] | None = None
) -> None:
    found = lookups.known(batch.project, batch.batch_id) if lookups.is_asked(codec) else {}
    aside = partial(_set_aside, codec, ranges or {})
    decode = guarded(exact(batch.project, codec, loads, found, ranges or {}), aside, batch.is_apart)
    rows = messages.mapInArrow(decode, decoded.DDL).persist()
    decoded.write(batch, codec, rows, partial(raw_of_units, units=_bytes_of(messages)))
    parts.join(batch, codec, [source.name for source in sources], rows)
    rows.unpersist()


def exact(
    project: Project,
    codec,
    loads: list[dict],
    found: dict[str, dict[str, bytes]] | None = None,
    ranges: dict[str, list[list]] | None = None,
):
    """The codec's exact path for mapInArrow: batches of bronze.messages -> batches of decoded rows. In: what was looked
    up, by source and name; the ranges that are asked for of some messages, by unit.
    """
    tables = {source.name: project.tables_of(source) for source in project.sources.values()}

    def decode(batches):
        for batch in batches:
            rows = []
            for message in batch.to_pylist():
                source, own = project.sources[message["source"]], (ranges or {}).get(message["unit_id"])
                known = (found or {}).get(source.name, {})
                rows += rows_of(codec, message, source, tables[source.name], loads, known, own)
            yield decoded.batch_of(rows)

    return decode


def rows_of(
    codec,
    message: dict,
    source: Source,
    tables: dict[str, Table],
    loads: list[dict],
    found: dict[str, bytes],
    ranges: list[list] | None = None,
) -> list[dict]:
    """A message, decoded by the codec's exact path. In: the contracts of its source; the loads that are known; what
    was looked up, by name; the ranges of it that are asked for, if not all."""
    data = message["value"] or b""
    message = lookups.with_lookups(codec, message, source, found)
    result = codec.decode_message(message, source, tables, loads)
    place = json.dumps({name: message[name] for name in ("topic", "partition", "offset")}) if result.parts else None
    rows = decoded.rows_of(result, source, tables, message["unit_id"], data, place, None, ranges)
    return verdicts.within(rows, result, ranges, len(data)) if ranges else rows


def _set_aside(codec, ranges: dict[str, list[list]], unit, why: str) -> list:
    [message] = unit.to_pylist()
    data, own = message["value"] or b"", ranges.get(message["unit_id"])
    first = codec.place_of(message["offset"]) if offers(codec, "place_of") else None
    rows = decoded.failed(message["source"], message["unit_id"], data, why, own, first)
    return [decoded.batch_of(verdicts.within(rows, decoded.NOTHING, own, len(data)) if own else rows)]
