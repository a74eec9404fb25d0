"""Full loads: which there are, and when each has ended: the control event `load_end`. Before it gold takes a load's
rows and drops none that the load has not sent; with it what the load did not send goes, as of the load's start.

A file is a load and ends with itself: once all its bytes are landed and none of its records is rejected. Of loads of
several files see file_loads.py. Messages announce no end; their codec says which changes prove one (`proof_span`), and
when the source has gone on for so long that it `is_over`. Where the feed says that its task loads no table (control
event `task_status`), the loads whose rows all came before have ended, too (docs/adr/0025).
"""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from inlet import bronze, lake
from inlet.bronze import lookups
from inlet.bronze.guard import guarded
from inlet.codecs.results import TASK_STATUS
from inlet.config import Project
from inlet.errors import FILE_KINDS
from inlet.silver import load_order
from inlet.silver.batch import Batch, among
from inlet.table import by_name, present
from inlet.unit import OFFSET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BEGIN = "full_load"  # keeps where each load of messages began and how far it was seen
END = "load_end"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def of_files(batch: Batch, units: list[dict]) -> None:
    """Write the ends of the loads that this batch brings to their end: the rest of a file, or its last reject. In:
    units of these files.
    """
    loads = {(unit["source"], unit["path"]): unit["load_id"] for unit in units if unit["load_id"]}
    sources_of_loads, paths = ({place[n] for place in loads} for n in (0, 1))
    readings = bronze.History(batch.project).of_files(sources_of_loads, paths)
    last = {row.place: row for row in readings if row["batch_id"] <= batch.batch_id}
    whole = {place for place, row in last.items() if place in loads and row.is_whole}
    sources = sorted({source for source, path in loads.keys() & whole})
    if not sources:
        return
    rejected = {
        (row["source"], row["unit_id"].removeprefix(f"{row['source']}/").rsplit("@", 1)[0])
        for row in lake.peek(
            batch.project.lakehouse_path(), "silver.rejects", ["source", "unit_id", "kind"], "where resolved_by is null"
        )
        if row["kind"] not in FILE_KINDS
    }  # of those nothing was landed then
    ended = {(source, path, loads[source, path]) for source, path in (loads.keys() & whole) - rejected}
    if not ended:
        return
    load_ids = sorted({load_id for *_, load_id in ended})
    path = f"regexp_replace(substr(unit_id, length(source) + 2), '@{OFFSET}', '')"
    found = batch.spark.sql(
        f"select distinct source, source_schema, source_table, load_id, {path} as path from silver.changes "
        f"where operation = 'REFRESH' and {among(sources)} and change_seq between '{load_ids[0]}' and '{load_ids[-1]}~'"
    ).collect()
    names = by_name(batch.project.tables.values())
    places = {
        (row.source, present(names, f"{row.source_schema}.{row.source_table}"), row.load_id)
        for row in found
        if (row.source, row.path, row.load_id) in ended
    }
    places -= before(batch, END)  # a file that comes again ends nothing again
    append(
        batch,
        [
            (source, *table.split("."), load_id, load_id + "9" * (35 - len(load_id)))
            for source, table, load_id in sorted(places)
        ],
    )


def find(batch: Batch, codec, messages: "DataFrame", sources: list) -> dict[tuple[str, str], list[tuple]]:
    """Spans of full-load messages by source and table, as `LOADS.assign_loads` wants them. In: messages of sources."""
    is_exact = batch.is_apart or not codec.FAST
    find_loads = partial(_find_loads, codec.OPTIONS) if is_exact else codec.FAST.find_loads
    tables = by_name(batch.project.tables.values())
    return find_loads(messages, sources, tables, refresh_row=_refresh_row(batch, codec))


def in_messages(batch: Batch, codec, messages: "DataFrame", sources: list, seen: dict) -> list[dict]:
    """The full loads of messages known after this batch; new ones and later ends are kept as control events. In: all
    messages; what `find` gives of them."""
    known = known_loads(batch.project, batch.batch_id)

    def assigned(changes_after: dict[tuple[str, str], str]) -> list[dict]:
        loads = []
        for source in sources:
            options = source.options_as(codec.OPTIONS)
            loads += codec.LOADS.assign_loads(
                [load for load in known if load["source"] == source.name],
                {place: times for place, times in seen.items() if place[0] == source.name},
                options.load_gap_minutes,
                options.clock_skew_seconds,
                changes_after,
            )
        return loads

    loads, begun = assigned({}), {_place(load) for load in known}
    if new := [load for load in loads if _place(load) not in begun]:
        loads = assigned(load_order.changes_after(codec, messages, sources, new))
    rows = [
        (
            load["source"],
            *load["table"].split("."),
            load["started_at16"] + "0" * 19,
            BEGIN,
            load["load_id"],
            json.dumps(load, default=str),
        )
        for load in loads
        if load not in known
    ]
    if rows:
        events = batch.spark.createDataFrame(
            rows,
            "source string, source_schema string, source_table string, change_seq string, "
            "kind string, load_id string, detail string",
        )
        batch.append(events, "silver.control_events")
    return loads


def _refresh_row(batch: Batch, codec):
    """What tells table and time of a full load's row, given what its message names."""
    found = lookups.known(batch.project, batch.batch_id) if lookups.is_asked(codec) else {}

    def refresh_row(message: dict, source, tables: dict) -> tuple[str, datetime] | None:
        given = lookups.with_lookups(codec, message, source, found.get(source.name, {}))
        return codec.refresh_row(given, source, tables)

    return refresh_row


def _find_loads(options, messages: "DataFrame", sources: list, tables: dict, refresh_row) -> dict:
    """What `FAST.find_loads` of a codec finds, message by message, without its compiled walk."""
    gap = int(60e6 * min(source.options_as(options).load_gap_minutes for source in sources))
    decode = guarded(
        _refreshes(refresh_row, {source.name: source for source in sources}, tables), lambda unit, why: [], True
    )
    spans = (
        messages.mapInArrow(decode, "source string, t string, topic string, at bigint")
        .selectExpr("*", "at as first", "at as last", f"at div {gap} as bucket")
        .groupBy("source", "t", "topic", "bucket")
        .agg({"first": "min", "last": "max"})
        .collect()
    )
    seen: dict[tuple, list] = {}
    for row in spans:
        seen.setdefault((row["source"], row["t"]), []).append(
            (*(EPOCH + timedelta(microseconds=row[name]) for name in ("min(first)", "max(last)")), row["topic"])
        )
    return seen


def _refreshes(refresh_row, sources: dict, tables: dict):
    def decode(batches):
        import pyarrow as pa

        schema = lake.arrow_schema("source string, t string, topic string, at bigint")
        for batch in batches:
            rows = [
                (m["source"], row[0], m["topic"], (row[1] - EPOCH) // timedelta(microseconds=1))
                for m in batch.to_pylist()
                if m["source"] in sources and (row := refresh_row(m, sources[m["source"]], tables))
            ]
            yield pa.RecordBatch.from_pylist([dict(zip(schema.names, row)) for row in rows], schema=schema)

    return decode


def known_loads(project: Project, but_batch: int = -1) -> list[dict]:
    """Each load as the last batch, but this one, has left it."""
    known, names = {}, by_name(project.tables.values())
    events = lake.peek(
        project.lakehouse_path(),
        "silver.control_events",
        ["detail"],
        f"where kind = '{BEGIN}' and batch_id <> {but_batch} order by batch_id",
    )
    for row in events:
        load = json.loads(row["detail"])
        load["table"] = present(names, load["table"])
        known[load["source"], load["load_id"]] = load | {
            name: datetime.fromisoformat(load[name]) for name in ("first_at", "last_at")
        }
    return list(known.values())


def of_messages(batch: Batch, codec, sources: list, loads: list[dict]) -> None:
    """Write the ends of loads that changes of this batch tell, and which of these changes a load hides. In: the loads
    known after it.
    """
    known = known_loads(batch.project, batch.batch_id)
    append(batch, *load_order.hidden_changes(batch, codec, sources, loads, known))
    begun, ended = before(batch, BEGIN), before(batch, END)
    waiting = {_place(load): load for load in loads if _place(load) not in ended}
    if not waiting:
        return
    new = [
        load["started_at16"] for place, load in waiting.items() if place not in begun
    ]  # of the others earlier batches were asked
    changes = batch.spark.sql(
        f"select * from silver.changes where {among([s.name for s in sources])} and operation <> 'REFRESH' and "
        f"(batch_id = {batch.batch_id}" + (f" or change_seq > '{min(new)}')" if new else ")")
    )
    proven = proven_by(batch, changes, {place: codec.LOADS.proof_span(load, loads) for place, load in waiting.items()})
    options = {source.name: source.options_as(codec.OPTIONS) for source in sources}
    newest = (
        dict(changes.groupBy("source").agg({"change_seq": "max"}).collect())
        if any(o.loads_end == "gap" for o in options.values())
        else {}
    )
    idle = _idle(batch, {source for source, *_ in waiting})
    append(
        batch,
        [
            (source, *table.split("."), load_id, load["started_at16"] + "9" * 19)
            for (source, table, load_id), load in waiting.items()
            if (source, table, load_id) in proven
            or load["last_at"] < idle.get(source, load["first_at"])
            or codec.LOADS.is_over(load, loads, newest.get(source, ""), options[source])
        ],
    )


def proven_by(batch: Batch, changes: "DataFrame", spans: dict[tuple[str, str, str], tuple[str, str]]) -> set[tuple]:
    """The loads whose end changes prove, as (source, SCHEMA.TABLE, load_id). In: by load the span of change_seq of a
    change of its table that proves it.
    """
    names = by_name(batch.project.tables.values())
    rows = batch.spark.createDataFrame(
        [
            (source, *name.split("."), load_id, *span)
            for (source, table, load_id), span in spans.items()
            for name in (names[table].names if table in names else [table])
        ],
        "source string, source_schema string, source_table string, for_load string, first string, last string",
    )
    found = changes.join(rows.hint("broadcast"), ["source", "source_schema", "source_table"])
    return {
        (row.source, present(names, f"{row.source_schema}.{row.source_table}"), row.for_load)
        for row in found.where("change_seq between first and last")
        .select("source", "source_schema", "source_table", "for_load")
        .distinct()
        .collect()
    }


def _idle(batch: Batch, sources: set[str]) -> dict[str, datetime]:
    """Source -> the last time of the broker at which its task said that it loads no table. Statuses of several tasks
    say nothing: which of them loads the tables is not known.
    """
    told: dict[str, dict[str, list[str]]] = {}
    rows = lake.peek(
        batch.project.lakehouse_path(), "silver.control_events", ["source", "detail"], f"where kind = '{TASK_STATUS}'"
    )
    for row in rows:
        detail = json.loads(row["detail"])
        times = told.setdefault(row["source"], {}).setdefault(f"{detail.get('task')}", [])
        times += [detail["at"]] if detail["at"] and not detail["is_loading"] else []
    ends = {source: next(iter(of.values())) for source, of in told.items() if len(of) == 1 and source in sources}
    return {source: max(map(datetime.fromisoformat, times)) for source, times in ends.items() if times}


def _place(load: dict) -> tuple[str, str, str]:
    return load["source"], load["table"], load["load_id"]


def before(batch: Batch, kind: str) -> set[tuple]:
    """(source, SCHEMA.TABLE, load_id) of the loads of which earlier batches hold a kind of event."""
    rows = lake.peek(
        batch.project.lakehouse_path(),
        "silver.control_events",
        ["source", "source_schema", "source_table", "load_id"],
        f"where kind = '{kind}' and batch_id <> {batch.batch_id}",
    )
    names = by_name(batch.project.tables.values())
    return {
        (row["source"], present(names, f"{row['source_schema']}.{row['source_table']}"), row["load_id"]) for row in rows
    }


def append(batch: Batch, rows: list[tuple], kind: str = END, details: dict | None = None) -> None:
    """In: (source, schema, table, load_id, change_seq); by source and load_id what the detail says."""
    if rows:
        events = batch.spark.createDataFrame(
            [(*row, kind, json.dumps((details or {}).get((row[0], row[3]), {}))) for row in rows],
            "source string, source_schema string, source_table string, load_id string, change_seq string, "
            "kind string, detail string",
        )
        batch.append(events, "silver.control_events")
