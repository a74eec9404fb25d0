"""Blocks of files in Spark: the codec's pure `decode` runs in `mapInArrow`.

Changes that are Arrow batches are written to files by the tasks that decode them (change_files.py). Where they may be
repeats, or tasks cannot write, they leave Python with their images as VARIANT; what is constant for a unit is joined
on in the JVM, where it costs nothing. The other rows of a unit (rejects, control events, its account) are sent to the
driver by the same task (other_rows.py). A unit whose rows were not sent is decoded again, for these rows alone.
"""

import json
from collections.abc import Sequence
from functools import partial

from inlet import change, lake
from inlet.bronze import guard
from inlet.bronze.blocks import stored
from inlet.bronze.framing import attempt
from inlet.bronze.guard import guarded
from inlet.codecs import CODECS, columns
from inlet.codecs.codec import FIRST_ROW, decode_block, offers
from inlet.codecs.results import Decoded
from inlet.config import Project
from inlet.errors import AccountingError, Reject
from inlet.lake import engine
from inlet.lake.spark import settable
from inlet.silver import change_files, decoded, file_loads, other_rows, parts, small_parts, verdicts
from inlet.silver.batch import Batch, among, are_new, overlaps, raw_of_units, reject_conflicts, write_changes
from inlet.source import Source
from inlet.table import Table

BATCH_ROWS = {  # a row is a whole block: thousands of them at once do not fit
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",
    "spark.sql.parquet.columnarReaderBatchSize": "8",
}
MAX_TABLES = 1 << 16  # `place` = unit number * MAX_TABLES + table number, one long to join on


def run(batch: Batch, sources: list[str], files: Sequence[dict]) -> None:
    """Decode the blocks of a batch into silver's tables, and fill in the accounts. In: the sources that have any; the
    batch's rows of bronze.files.
    """
    try:
        for name in sorted({batch.project.sources[s].codec for s in sources}):
            own = [s for s in sources if batch.project.sources[s].codec == name]
            _run_codec(batch, CODECS[name], own, [row for row in files if row["source"] in own])
    finally:
        for setting in settable(batch.spark, BATCH_ROWS):
            batch.spark.conf.unset(setting)


def _run_codec(batch: Batch, codec, sources: list[str], files: Sequence[dict]) -> None:
    landed = headers(batch, codec, sources)
    batch.count_landed(landed)
    heads = verdicts.judged_units(batch, landed, files)
    _write(batch, codec, sources, heads)
    verdicts.account(batch, landed, heads, files)
    file_loads.of_files(batch, landed)


def replay(batch: Batch, codec, sources: list[str], replays: list[dict], files: Sequence[dict]) -> list[dict]:
    """Decode rejected records of blocks again, and the blocks that this batch framed again. In: the rows of
    bronze.replays of the former; the batch's rows of bronze.files. Out: the units.
    """
    landed = headers(batch, codec, sources)
    batch.count_landed(landed)
    again, own = verdicts.rejected_units(batch, replays), [row for row in files if row["source"] in sources]
    judged = verdicts.judged_units(batch, landed, own)
    _write(batch, codec, sources, [*judged, *again])
    verdicts.account(batch, landed, judged, own)
    whole = {unit["unit_id"] for unit in again if verdicts.is_whole(unit["ranges"], unit["size_bytes"])}
    for row in replays:
        batch.account(row["source"]).num_control += 0 if row["unit_id"] in whole else row["num_records"]
    return _with_loads(codec, [*landed, *again])


def _write(batch: Batch, codec, sources: list[str], heads: list[dict]) -> None:
    units, judged, left = _units(batch, heads), None, heads
    collected = list[dict]()
    has_no_bytes = f"context like '%\"{FIRST_ROW}\"%'"  # of its own: a record that is a row
    raw = partial(raw_of_units, units=units.selectExpr("unit_id", f"if({has_no_bytes}, null, bytes) as bytes"))
    if offers(codec, "COLUMNS"):
        own = None if offers(codec, "decode_message") else codec  # IDENTITY is asked of messages, where there are any
        collector = other_rows.collector(batch, [unit["unit_id"] for unit in heads])
        judged = _write_changes(batch, codec, heads, units, own, collector)
        others = other_rows.taken(collector)
        left = [unit for unit in heads if unit["unit_id"] not in others]
        if left:  # parts are joined together
            others = {name: rows for name, rows in others.items() if not any(r["result"] == "part" for r in rows)}
            left = [unit for unit in heads if unit["unit_id"] not in others]
        collected = [row for unit in heads for row in others.get(unit["unit_id"], ())]
        decoded.add(batch, collected)
    if left:
        _write_others(batch, codec, left, units if left == heads else _among_units(batch, units, left), sources, raw)
    else:
        small_parts.join(batch, codec, sources, [row for row in collected if row["result"] == "part"])
    if judged is not None:
        reject_conflicts(batch, judged, raw)


def _write_changes(batch: Batch, codec, heads: list[dict], units, own, collector):
    """Append the changes of an Arrow codec's units; tasks write them where none can be a repeat. Out: as of
    `write_changes`."""
    may_repeat = _may_repeat(batch, codec, heads)
    if are_new(batch, may_repeat, own) and change_files.can_write(batch):
        decode = decoder_of_changes(batch, codec, collector)
        change_files.write(batch, units, change_files.of_blocks(batch.project, codec, decode))
        return None
    return write_changes(batch, changes(batch, codec, heads, units, collector), may_repeat, own)


def _write_others(batch: Batch, codec, heads: list[dict], units, sources: list[str], raw) -> None:
    """Write all that units hold, but for changes that are Arrow batches."""
    decode = guarded(_decoder(batch.project, codec), partial(_set_aside, codec), batch.is_apart)
    rows = engine.kept(units.mapInArrow(decode, decoded.DDL))
    if failed := {row.unit_id for row in rows.where(f"kind = '{guard.KIND}'").select("unit_id").collect()}:
        _count_failed(batch, [unit for unit in heads if unit["unit_id"] in failed])
    decoded.write(batch, codec, rows, raw)
    parts.join(batch, codec, sources, rows)
    engine.release(rows)


def _among_units(batch: Batch, units, heads: list[dict]):
    """The units of these heads."""
    own = batch.spark.createDataFrame([(unit["unit_id"],) for unit in heads], "unit_id string")
    return units.join(own.hint("broadcast"), "unit_id", "left_semi")


def _count_failed(batch: Batch, failed: list[dict]) -> None:
    """A unit that its decoder failed on is one record, whatever was framed in it. Of one that is judged in part, or
    decoded again, each range is one (verdicts.within).
    """
    for unit in failed:
        if "ranges" in unit and not verdicts.is_whole(unit["ranges"], unit["size_bytes"]):
            continue
        if unit["batch_id"] == batch.batch_id:
            batch.account(unit["source"]).num_records -= unit["num_records"] - 1
        elif not unit.get("is_again"):
            batch.account(unit["source"]).num_control += unit["num_records"] - 1


def _may_repeat(batch: Batch, codec, heads: list[dict]) -> bool:
    """Do the ranges of change_seq that the units cover meet each other, or one that the ledger has?"""
    framed = [unit for unit in heads if "problem" not in unit["context"]]
    found = [(unit["source"], _ask(unit, codec.span, unit["context"], unit["num_records"])) for unit in framed]
    if any(span is None for _, span in found):
        return True
    ranges = sorted((source, *span) for source, span in found)
    spans: dict[str, tuple[str, str]] = {}
    for source, low, high in ranges:
        spans[source] = min(low, spans.get(source, (low, high))[0]), max(high, spans.get(source, (low, high))[1])
    meets = any(a[0] == b[0] and b[1] <= a[2] for a, b in zip(ranges, ranges[1:], strict=False))
    return meets or overlaps(batch, spans)


def headers(batch: Batch, codec, sources: list[str]) -> list[dict]:
    """The units of a batch without their bytes, in order; with the full load that each is of."""
    return _with_loads(codec, stored(batch.project, batch.stored_of(sources)))


def _with_loads(codec, units: list[dict]) -> list[dict]:
    """Units with the full load that each is of."""
    if not offers(codec, "load_of"):
        return [unit | {"load_id": None} for unit in units]
    return [unit | {"load_id": _ask(unit, codec.load_of, unit["context"])} for unit in units]


def _ask(unit: dict, call, *given):
    """What a codec says of a unit before it is decoded. Raises: AccountingError where it fails, so that its source
    stops alone.
    """
    found = attempt(call, *given)
    if isinstance(found, Reject):
        raise AccountingError(
            f"unit {unit['unit_id']}: {call.__name__} of its codec fails: {found.found}",
            "It is a fault of the codec: report it with the unit's context",
        )
    return found


def changes(batch: Batch, codec, heads: list[dict], units, collector=None):
    """The changes of an Arrow codec's units as rows of the change table, without batch_id and decoded_at. In: what
    collects the other rows of the units (other_rows.py)."""
    available = {field.name for field in codec.CHANGES} | set(codec.CONSTANTS) | {"source", "unit_id"}
    by_table = (
        {"source_schema": "string", "source_table": "string", "table_version": "int"}
        if "table_index" in available
        else {}
    )
    declared = {"place": "bigint", "unit_id": "string", "source": "string"} | codec.CONSTANTS | by_table
    places = batch.spark.createDataFrame(
        _places(batch.project, codec, heads, bool(by_table)), ", ".join(f"{n} {t}" for n, t in declared.items())
    )
    asked = {
        c.name: c.name if c.name in available | by_table.keys() else f"cast(null as {c.type})" for c in change.CHANGES
    } | {name: column.sql for name, column in columns.declared(codec).items()}
    decode = with_places(codec, heads, decoder_of_changes(batch, codec, collector))
    return (
        units.mapInArrow(decode, f"place bigint, {lake.ddl_of(codec.CHANGES)}")
        .join(places.hint("broadcast"), "place")
        .selectExpr(*[f"{asked[name]} as {name}" for name in decoded.CHANGE])
    )


def _places(project: Project, codec, heads: list[dict], by_table: bool) -> list[tuple]:
    """A row for each place that a change can have: its unit, and its table where the codec numbers tables."""
    rows = []
    for n, unit in enumerate(heads):
        if "problem" in unit["context"]:
            continue
        of_unit = unit["unit_id"], unit["source"], *_ask(unit, codec.constants, unit["context"]).values()
        if not by_table:
            rows.append((n * MAX_TABLES, *of_unit))
            continue
        known = project.tables_of(project.sources[unit["source"]])
        tables = _ask(unit, codec.tables_of, unit["context"], known)
        rows += [
            (n * MAX_TABLES + t, *of_unit, tables[name].schema_name, tables[name].table_name, tables[name].version)
            for t, name in enumerate(sorted(tables))
        ]
    return rows


def _units(batch: Batch, heads: list[dict]):
    """The units of these heads with their bytes, and with the ranges that are judged of one that is not judged
    whole.
    """
    for setting, rows in settable(batch.spark, BATCH_ROWS).items():
        batch.spark.conf.set(setting, rows)
    landed = sorted({unit["batch_id"] for unit in heads}) or [batch.batch_id]
    blocks = batch.spark.sql(
        "select unit_id, source, context, bytes, num_records from bronze.blocks "
        f"where batch_id in ({', '.join(map(str, landed))}) and "
        f"{among(sorted({unit['source'] for unit in heads}) or [''])}"
    )
    if not any("ranges" in unit for unit in heads):
        return blocks.selectExpr("*", "cast(null as string) as ranges")
    ranges = batch.spark.createDataFrame(
        [(unit["unit_id"], json.dumps(unit["ranges"]) if "ranges" in unit else None) for unit in heads],
        "unit_id string, ranges string",
    )
    return blocks.join(ranges.hint("broadcast"), "unit_id")


def _each(project: Project, batches):
    """(unit as a dict, its source) of each unit in Arrow batches of `_units`."""
    for batch in batches:
        for unit in batch.to_pylist():
            yield unit, project.sources[unit["source"]]


def decoder_of_changes(batch: Batch, codec, collector=None):
    """A decoder of Arrow batches of `_units`: for each unit that changes can be in, the unit and its changes as
    codec.CHANGES."""
    project = batch.project

    def decode(batches):
        import pyarrow as pa

        for unit, source in _each(project, batches):
            tables = project.tables_of(source)
            found = decode_block(codec, unit["bytes"], json.loads(unit["context"]), source, tables)
            other_rows.collect(collector, unit["unit_id"], rows_of(unit, found, source, tables))
            rows = found.changes
            if isinstance(rows, list):
                continue  # could not be framed: there is a reject
            if not rows.schema.equals(codec.CHANGES):
                raise AccountingError(
                    f"codec {source.codec}, unit {unit['unit_id']}: changes have the columns "
                    f"{', '.join(rows.schema.names)}, "
                    f"declared are {', '.join(codec.CHANGES.names)}",
                    "It is a fault of the codec",
                )
            if unit["ranges"]:
                ranges = json.loads(unit["ranges"])
                rows = rows.filter(
                    pa.array([verdicts.stands(ranges, at) for at in rows.column("unit_offset").to_pylist()], pa.bool_())
                )
            del unit["bytes"]
            yield unit, rows

    return guarded(decode, lambda unit, why: [], batch.is_apart)


def with_places(codec, heads: list[dict], decode):
    """A decoder of changes as Arrow batches, each change with its place."""
    numbers = {unit["unit_id"]: n for n, unit in enumerate(heads)}

    def decoded_changes(batches):
        import numpy as np
        import pyarrow as pa

        for unit, rows in decode(batches):
            table = (
                rows.column("table_index").to_numpy(zero_copy_only=False).astype(np.int64)
                if "table_index" in codec.CHANGES.names
                else np.zeros(len(rows), np.int64)
            )
            places = pa.array(numbers[unit["unit_id"]] * MAX_TABLES + table)
            yield pa.RecordBatch.from_arrays([places, *rows.columns], names=["place", *codec.CHANGES.names])

    return decoded_changes


def _decoder(project: Project, codec):
    """All that units hold, but for changes that are Arrow batches."""

    def decode(batches):
        for unit, source in _each(project, batches):
            tables = project.tables_of(source)
            found = decode_block(codec, unit["bytes"], json.loads(unit["context"]), source, tables)
            yield decoded.batch_of(rows_of(unit, found, source, tables))

    return decode


def rows_of(unit: dict, found: Decoded, source: Source, tables: dict[str, Table]) -> list[dict]:
    """All that a unit holds, but for changes that are an Arrow batch. In: a row of `_units`; what it was decoded to."""
    data, context = unit["bytes"], unit["context"]
    ranges = json.loads(unit["ranges"]) if unit["ranges"] else None
    rows = decoded.rows_of(found, source, tables, unit["unit_id"], data, context, unit["num_records"], ranges)
    if FIRST_ROW in json.loads(context):
        rows = [row | {"raw": b""} if row["result"] == "part" else row for row in rows]
    return verdicts.within(rows, found, ranges, len(data)) if ranges else rows


def _set_aside(codec, unit, why: str) -> list:
    [row] = unit.to_pylist()
    ranges = json.loads(row["ranges"]) if row["ranges"] else None
    # one that may lie within a transaction whose events are not counted has to have a place (transactions.py)
    has_place = offers(codec, "TELLS_FIRST")
    span = attempt(codec.span, json.loads(row["context"]), row["num_records"]) if has_place else None
    first = span[0] if isinstance(span, tuple) else None
    rows = decoded.failed(row["source"], row["unit_id"], row["bytes"], why, ranges, first)
    return [decoded.batch_of(verdicts.within(rows, decoded.NOTHING, ranges, len(row["bytes"])) if ranges else rows)]
