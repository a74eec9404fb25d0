"""Qlik JSON at speed: Arrow batches of messages -> the compiled walk (json_walk) -> Arrow batches of changes.

What the walk is sure of becomes a row; what it is not sure of is left out.
"""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import walked
from inlet.codecs.json_batches import bytes_of
from inlet.codecs.qlik import full_load, json_walk
from inlet.codecs.qlik.json_arrow import EPOCH, NO_TIME, walk
from inlet.codecs.qlik.json_arrow import load_spans as spans_of
from inlet.codecs.qlik.json_contracts import Contracts
from inlet.sql import literal

UPPER = "upper(cast(value as string))"
LIKELY_REFRESH = " or ".join(
    [
        *(f"contains({UPPER}, {word})" for word in ("'REFRESH'", "'\"READ\"'", r"r'\U00'")),
        f"contains(cast(value as string), '\"op\"') and contains({UPPER}, '\"F\"')",  # legacy
    ]
)  # a superset
OPERATIONS = "INSERT", "UPDATE", "DELETE", "REFRESH"  # as json_walk numbers them
READ = "unit_id", "source", "topic", "partition", "`offset`", "timestamp", "value"
SEQ = (
    r"""nullif(regexp_extract(cast(value as string), r'"headers"\s*:\s*\{\s*"operation"\s*:\s*"[A-Za-z]+"\s*,\s*"""
    r""""changeSequence"\s*:\s*"([0-9]{35})"', 1), '')"""
)

LOAD_ROWS = "source string, t string, topic string, at bigint"


def with_seq(messages):
    """Messages with `seq`, the sequence that the text gives without a parse; null in a message of another shape."""
    return messages.selectExpr("*", f"{SEQ} as seq")


def changes(sources: list, tables: dict, loads: list[dict], lookups: dict[str, dict[str, bytes]] | None = None):
    """Changes of the messages that are in no doubt, as of FastMessages. In: what metadata messages have brought, by
    source."""
    contracts = Contracts(sources, tables, lookups or {})
    return walked.changes(walk(contracts, spans_of(loads, contracts, sources)), contracts, OPERATIONS, loads)


def find_loads(messages, sources: list, tables: dict, refresh_row) -> dict:
    """Spans of full-load messages, as `assign_loads` wants them: {(source, table): [(first, last, topic)]}. Runs one
    small job; within a span no two messages are further apart than the source's gap."""
    rows = (
        messages.where(LIKELY_REFRESH)
        .selectExpr(*READ)
        .mapInArrow(
            refreshes(Contracts(sources, tables), {source.name: source for source in sources}, tables, refresh_row),
            LOAD_ROWS,
        )
    )
    return load_spans(rows, sources)


def load_spans(rows, sources: list) -> dict:
    """What `find_loads` gives. In: LOAD_ROWS of messages of full loads."""
    gaps = " ".join(
        f"when {literal(s.name)} then {int(s.options_as(full_load.Options).load_gap_minutes * 60e6)}" for s in sources
    )
    spans = (
        (
            rows.selectExpr(
                "source", "t", "topic", f"at div (case source {gaps} end) as bucket", "at as first", "at as last"
            )
            .groupBy("source", "t", "topic", "bucket")
            .agg({"first": "min", "last": "max"})
            .collect()
        )
        if sources
        else []
    )
    seen = {}
    for row in spans:
        seen.setdefault((row["source"], row["t"]), []).append(
            (
                *(EPOCH + datetime.timedelta(microseconds=row[name]) for name in ("min(first)", "max(last)")),
                row["topic"],
            )
        )
    return seen


def refreshes(contracts: Contracts, sources: dict, tables: dict, refresh_row):
    def batches(messages):
        for batch in messages:
            letters, ends = bytes_of(batch.column("value"))
            places = np.full(len(batch), json_walk.DOUBT, np.int64)
            if contracts.places:
                json_walk.refreshes(
                    letters,
                    ends,
                    contracts.places_of(batch),
                    contracts.plans,
                    contracts.table_names,
                    places,
                    json_walk.scratch_of(ends, contracts.num_columns),
                )
            times = pc.fill_null(batch.column("timestamp").cast(pa.int64()), NO_TIME).to_numpy().copy()
            names = np.array([table.table for _, table in contracts.places] + [None], object)[np.maximum(places, -1)]
            names[places == json_walk.NONE] = None
            for i in np.flatnonzero((places == json_walk.DOUBT) | (places >= 0) & (times == NO_TIME)):
                message = batch.slice(i, 1).to_pylist()[0]
                names[i], times[i] = row_of(refresh_row(message, sources[message["source"]], tables))
            yield load_rows(batch, names, times)

    return batches


def row_of(found: tuple[str, datetime.datetime] | None) -> tuple[str | None, int]:
    """Table and microseconds of a row of a full load."""
    return (found[0], (found[1] - EPOCH) // datetime.timedelta(microseconds=1)) if found else (None, NO_TIME)


def load_rows(batch: pa.RecordBatch, names, times) -> pa.RecordBatch:
    """LOAD_ROWS of those messages of a batch that are rows of a full load with a time."""
    columns = [batch.column("source"), pa.array(names, pa.string()), batch.column("topic"), pa.array(times, pa.int64())]
    found = pa.RecordBatch.from_arrays(columns, names=["source", "t", "topic", "at"])
    return found.filter(pc.and_(columns[1].is_valid(), pc.not_equal(columns[3], NO_TIME)))
