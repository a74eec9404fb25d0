"""Qlik JSON at speed: Arrow batches of messages -> the compiled walk (json_walk) -> Arrow batches of changes.

What the walk is sure of becomes a row; constants of a table, a load, an operation are numbers on the way and are filled
in by SQL text afterwards. What it is not sure of is left out.
"""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet import change
from inlet.codecs.json_batches import bytes_of
from inlet.codecs.qlik import full_load, json_walk
from inlet.codecs.qlik.json_arrow import EPOCH, NO_TIME, WALKED_DDL, walk
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


def fast(messages, sources: list, tables: dict, loads: list[dict], lookups: dict[str, dict[str, bytes]] | None = None):
    """Changes of the messages that are in no doubt. In: DataFrame of bronze.messages; what metadata messages have
    brought, by source. Out: CHANGES without batch_id, decoded_at.
    """
    contracts = Contracts(sources, tables, lookups or {})
    return changes(messages.selectExpr(*READ), walk(contracts, spans_of(loads, contracts, sources)), contracts, loads)


def changes(messages, read, contracts: Contracts, loads: list[dict]):
    """What a walk gives as rows of changes. In: what reads batches of messages, in numbers of contracts and loads."""
    walked = messages.mapInArrow(read, WALKED_DDL)
    owners, contract = [name for name, _ in contracts.places], [table for _, table in contracts.places]
    constants = {
        "source": _pick(owners, "p"),
        "source_schema": _pick([x.schema_name for x in contract], "p"),
        "source_table": _pick([x.table_name for x in contract], "p"),
        "table_version": f"cast({_pick([x.version for x in contract], 'p')} as int)",
        "operation": _pick(OPERATIONS, "o"),
        "change_oper": _pick([change.OPERATIONS[name] for name in OPERATIONS], "o"),
        "load_id": f"if(l < 0, null, {_pick([load['load_id'] for load in loads], 'l')})",
        "column_states": "cast(null as map<string,string>)",
        "header": "cast(null as variant)",
        "unit_offset": "0L",
    }
    begun = " ".join(
        f"when {place} then change_seq >= '{x.earlier[-1].until}'"
        for place, x in enumerate(contracts.contracts)
        if x.earlier
    )
    sure = (
        walked.where(f"case p {begun} else true end") if begun else walked
    )  # what came before is left to the exact path
    return sure.selectExpr(
        *(
            f"{constants.get(c.name, c.name)} as {c.name}"
            for c in change.CHANGES
            if c.name not in ("batch_id", "decoded_at")
        )
    )


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


def _pick(values, place: str) -> str:
    """The value at a place, out of constants."""
    shown = ", ".join(literal(value) if isinstance(value, str) else str(value) for value in values)
    return f"array({shown})[{place}]" if values else "cast(null as string)"
