"""Qlik JSON at speed: Arrow batches of messages -> the compiled walk (json_walk) -> Arrow batches of changes.

What the walk is sure of becomes a row; constants of a table, a load, an operation are numbers on the way and are filled
in by SQL text afterwards. What it is not sure of is left out.
"""

import datetime
import re
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet import change
from inlet.codecs.codec import IMAGE
from inlet.codecs.qlik import full_load, json_walk
from inlet.codecs.qlik.json_walk import (
    BOOLEAN,
    COUNT,
    DATE,
    DECIMAL,
    FLOAT,
    HEX,
    INTEGER,
    IS_LAST,
    KEY,
    LOAD,
    N_COUNTER,
    N_LAST,
    N_TIME,
    NEVER,
    NOT_NULL,
    NUM_NUMBERS,
    NUM_VALID,
    OPER,
    OPTIONAL,
    PLACE,
    ROW,
    T_AFTER,
    T_BEFORE,
    T_CHANGE_MASK,
    T_COLUMN_MASK,
    T_POSITION,
    T_SEQ,
    T_TRANSACTION,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from inlet.fields import fit, variant
from inlet.sql import literal

UPPER = "upper(cast(value as string))"
LIKELY_REFRESH = " or ".join(
    f"contains({UPPER}, {word})" for word in ("'REFRESH'", "'\"READ\"'", r"r'\U00'")
)  # a superset
NAMES = re.compile(rb'"schema"\s*:\s*"([^"\\]*)"\s*,\s*"table"\s*:\s*"([^"\\]*)"')
TYPES = {
    "string": TEXT,
    "float": FLOAT,
    "double": FLOAT,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "boolean": BOOLEAN,
    "binary": HEX,
} | dict.fromkeys(fit.LEN_INTEGER, INTEGER)
OPERATIONS = "INSERT", "UPDATE", "DELETE", "REFRESH"  # as json_walk numbers them
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NO_TIME = -(1 << 63)  # of a message that no broker has told its time: within no load
LEN_MOST = (1 << 31) - 1  # bytes that the texts of one Arrow column hold
WALKED = pa.schema(
    [
        ("unit_id", pa.string()),
        ("unit_length", pa.int64()),
        ("p", pa.int32()),
        ("l", pa.int32()),
        ("o", pa.int32()),
        ("change_seq", pa.string()),
        ("stream_position", pa.string()),
        ("transaction_id", pa.string()),
        ("change_mask", pa.binary()),
        ("column_mask", pa.binary()),
        ("before", IMAGE),
        ("after", IMAGE),
        ("change_timestamp", pa.timestamp("us", tz="UTC")),
        ("transaction_event_counter", pa.int64()),
        ("transaction_last_event", pa.bool_()),
    ]
)
WALKED_DDL = (
    "unit_id string, unit_length bigint, p int, l int, o int, change_seq string, stream_position string, "
    "transaction_id string, change_mask binary, column_mask binary, before variant, after variant, change_timestamp "
    "timestamp, transaction_event_counter bigint, transaction_last_event boolean"
)
READ = "unit_id", "source", "topic", "partition", "`offset`", "timestamp", "value"
SEQ = (
    r"""nullif(regexp_extract(cast(value as string), r'"headers"\s*:\s*\{\s*"operation"\s*:\s*"[A-Za-z]+"\s*,\s*"""
    r""""changeSequence"\s*:\s*"([0-9]{35})"', 1), '')"""
)
REFRESH_HEAD = r"""r'"headers"\s*:\s*\{\s*"operation"\s*:\s*"REFRESH"'"""
MARK = (
    f"coalesce(seq, if(cast(value as string) rlike {REFRESH_HEAD}, concat_ws('/', topic, partition, `offset`), null))"
)


def marked(messages):
    """Messages with `seq`, the sequence that the text tells without a parse, and `mark`, what tells a change from any
    other: its sequence, or a full-load row's place in its topic. A message of another shape has neither."""
    return messages.selectExpr("*", f"{SEQ} as seq").selectExpr("*", f"{MARK} as mark")


def survey_sql() -> dict[str, str]:
    """Aggregates over marked messages that tell whether a change can be there twice: it cannot if every message has a
    mark and all are distinct; and whether a full-load row can be among them."""
    return {
        "num_records": "count(*)",
        "num_distinct_seq": "count(distinct mark)",
        "min_seq": "min(seq)",
        "max_seq": "max(seq)",
        "may_have_refresh": f"coalesce(bool_or({LIKELY_REFRESH}), false)",
    }


def fast(messages, sources: list, tables: dict, loads: list[dict]):
    """Changes of the messages that are in no doubt. In: DataFrame of bronze.messages. Out: CHANGES without batch_id,
    decoded_at.
    """
    contracts = Contracts(sources, tables)
    walked = messages.selectExpr(*READ).mapInArrow(_walk(contracts, _load_spans(loads, contracts, sources)), WALKED_DDL)
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


def find_loads(messages, sources: list, tables: dict, refresh_table) -> dict:
    """Times of full-load messages, as `assign_loads` wants them: {(source, table): [(first, last), ...]}. Runs one
    small job; within a span no two messages are further apart than the source's gap."""
    rows = (
        messages.where(LIKELY_REFRESH)
        .selectExpr(*READ)
        .mapInArrow(
            _refreshes(Contracts(sources, tables), {source.name: source for source in sources}, tables, refresh_table),
            "source string, t string, at bigint",
        )
    )
    gaps = " ".join(f"when {literal(s.name)} then {int(full_load.options(s).load_gap_minutes * 60e6)}" for s in sources)
    spans = (
        (
            rows.selectExpr("source", "t", f"at div (case source {gaps} end) as bucket", "at as first", "at as last")
            .groupBy("source", "t", "bucket")
            .agg({"first": "min", "last": "max"})
            .collect()
        )
        if sources
        else []
    )
    seen = {}
    for row in spans:
        seen.setdefault((row["source"], row["t"]), []).append(
            tuple(EPOCH + datetime.timedelta(microseconds=row[name]) for name in ("min(first)", "max(last)"))
        )
    return seen


class Contracts:
    """Every (source, contract) that can occur, and the integers that the compiled walk knows it by."""

    def __init__(self, sources: list, tables: dict):
        allowed = [
            (s.name, t)
            for s in sources
            for name, t in tables.items()
            if name == t.table and (not t.sources or s.name in t.sources) and s.wants(t.table)
        ]
        self.contracts, self.places = [t for _, t in allowed], [(name, t.versions[-1]) for name, t in allowed]
        by_name = {(name, table.table): place for place, (name, table) in enumerate(self.places)}
        self.sources = {s.name: s for s in sources}
        self.mapped = {
            (s.name, table): by_name.get((s.name, tables[table].table if table in tables else ""), -1)
            for s in sources
            for table in s.tables.values()
        }
        self.by_name = {
            (name, *(part.encode() for part in table.split("."))): place for (name, table), place in by_name.items()
        }
        columns = [column for _, table in self.places for column in table.columns]
        letters, ends = _joined([column.name for column in columns])
        needs = [
            KEY if column.name in table.key else OPTIONAL if column.nullable else NOT_NULL
            for _, table in self.places
            for column in table.columns
        ]
        plan = np.array(
            [[ends[i], ends[i + 1] - ends[i], *_plan(column), needs[i]] for i, column in enumerate(columns)], np.int64
        ).reshape(-1, 6)
        orders = [_order(t.column_names) for _, t in self.places]
        first = np.cumsum([0] + [len(order) for order in orders])
        self.plans = plan, first, letters, np.array([k for order in orders for k in order], np.int64)
        self.num_columns = int(np.diff(first).max(initial=0))  # of the widest table
        self.table_names = _joined([part for _, table in self.places for part in table.table.split(".")])
        self.metadata = pa.array(
            [variant.metadata(variant.in_order(t.column_names)) for _, t in self.places], pa.binary()
        )

    def places_of(self, batch: pa.RecordBatch) -> np.ndarray:
        """The place of each message's contract by its topic, -1 for none; plus the number of places if its names must
        confirm it.
        """
        places = np.full(len(batch), -1, np.int64)
        for (source, topic), at in _groups(batch, "source", "topic"):
            if source in self.sources and (table := self.sources[source].table_of(topic)):
                places[at] = self.mapped[source, table]
                continue
            for i in at:
                named = NAMES.search(batch.column("value")[i].as_py() or b"")
                place = self.by_name.get((source, *named.groups()), -1) if named else -1
                places[i] = place + len(self.places) if place >= 0 else -1
        places[~np.asarray(batch.column("value").is_valid())] = -1
        return places


def _order(names: list[str]) -> list[int]:
    """Columns as an image holds them."""
    place = {name: k for k, name in enumerate(names)}
    return [place[name] for name in variant.in_order(names)]


def _plan(column) -> tuple[int, int, int]:
    """TYPE, FIRST and SECOND of a column."""
    if column.type.startswith("decimal"):
        digits, scale = map(int, re.findall(r"\d+", column.type))
        return DECIMAL, digits - scale, scale
    return (
        (NEVER if column.type == "binary" and not column.encoding else TYPES[column.type]),
        fit.LEN_INTEGER.get(column.type, 0),
        0,
    )


def _joined(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [word.encode() for word in words]
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.cumsum([0] + [len(word) for word in encoded])


def _groups(batch: pa.RecordBatch, *columns: str):
    """Rows of a batch by the values of these columns."""
    codes, values = np.zeros(len(batch), np.int64), [()]
    for name in columns:
        coded = batch.column(name).dictionary_encode()
        own = coded.dictionary.to_pylist()
        codes = codes * len(own) + np.asarray(coded.indices)
        values = [(*value, one) for value in values for one in own]
    return [(values[code], np.flatnonzero(codes == code)) for code in np.unique(codes)]


def _load_spans(loads: list[dict], contracts: Contracts, sources: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loads by first_at: (place, first, last with the gap), start digits, place in the given list."""
    gaps = {s.name: datetime.timedelta(minutes=full_load.options(s).load_gap_minutes) for s in sources}
    places = {(name, table.table): place for place, (name, table) in enumerate(contracts.places)}
    order = sorted(
        (k for k, load in enumerate(loads) if (load["source"], load["table"]) in places),
        key=lambda k: loads[k]["first_at"],
    )
    spans = [
        (
            places[load["source"], load["table"]],
            _micros(load["first_at"]),
            _micros(load["last_at"] + gaps[load["source"]]),
        )
        for load in (loads[k] for k in order)
    ]
    starts = [list(loads[k]["started_at16"].encode()) for k in order]
    return (
        np.array(spans, np.int64).reshape(-1, 3),
        np.array(starts, np.uint8).reshape(-1, 16),
        np.array(order + [-1], np.int32),
    )


def _micros(at: datetime.datetime) -> int:
    return (at - EPOCH) // datetime.timedelta(microseconds=1)


def _bytes(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Letters of all values, as they lie in Arrow's buffer; where each begins and the last ends."""
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(column.buffers()[2] or b"", np.uint8), ends.astype(np.int64)


def _parts(batch: pa.RecordBatch, num_columns: int):
    """The batch, in pieces whose images surely fit into an Arrow column. A message that is too long for one is left
    out.
    """
    if json_walk.len_images(_bytes(batch.column("value"))[1], num_columns) <= LEN_MOST:
        yield batch
    elif len(batch) > 1:
        middle = len(batch) // 2
        for part in (batch.slice(0, middle), batch.slice(middle)):
            yield from _parts(part, num_columns)


def _walk(contracts: Contracts, load_spans):
    def batches(messages):
        for batch in messages:
            for part in _parts(batch, contracts.num_columns):
                yield _walked(part, contracts, load_spans)

    return batches


def _walked(batch: pa.RecordBatch, contracts: Contracts, load_spans) -> pa.RecordBatch:
    spans, starts, load_of = load_spans
    letters, ends = _bytes(batch.column("value"))
    texts, scratch = json_walk.texts_of(ends, contracts.num_columns), json_walk.scratch_of(ends, contracts.num_columns)
    numbers, valid = np.zeros((NUM_NUMBERS, len(batch)), np.int64), np.zeros((NUM_VALID, len(batch)), np.bool_)
    count = (
        json_walk.rows(
            letters,
            ends,
            contracts.places_of(batch),
            _placing(batch),
            contracts.plans,
            contracts.table_names,
            spans,
            starts,
            texts,
            numbers,
            valid,
            scratch,
        )
        if contracts.places
        else 0
    )
    return _arrow(batch, ends, texts, numbers[:, :count], valid[:, :count], contracts.metadata, load_of)


def _placing(batch: pa.RecordBatch) -> np.ndarray:
    """What a full-load row's place is made from: topic's digits, partition, offset, time."""
    placing = np.empty((len(batch), 4), np.int64)
    for (topic,), at in _groups(batch, "topic"):
        placing[at, 0] = 1 + zlib.crc32(topic.encode()) % 9999
    for k, name in enumerate(("partition", "offset"), 1):
        placing[:, k] = batch.column(name)
    placing[:, 3] = pc.fill_null(batch.column("timestamp").cast(pa.int64()), NO_TIME)
    return placing


def _arrow(batch, ends, texts, numbers, valid, metadata, load_of) -> pa.RecordBatch:
    rows, count = numbers[ROW], numbers.shape[1]

    def text(column: int, type_) -> pa.Array:
        stops = texts[1][column, : count + 1].astype(np.int32)
        return pa.Array.from_buffers(
            type_, count, [_bits(valid[column]), pa.py_buffer(stops), pa.py_buffer(texts[0][column])]
        )

    def number(column: int, validity: int, type_) -> pa.Array:
        return pa.Array.from_buffers(
            pa.int64(), count, [_bits(valid[validity]), pa.py_buffer(numbers[column].copy())]
        ).cast(type_)

    def image(column: int) -> pa.Array:
        value = pa.Array.from_buffers(pa.binary(), count, [None, *text(column, pa.binary()).buffers()[1:]])
        return pa.StructArray.from_arrays([value, names], fields=list(IMAGE), mask=pa.array(~valid[column]))

    names = metadata.take(pa.array(numbers[PLACE]))
    unit = batch.column("unit_id") if count == len(batch) else batch.column("unit_id").take(pa.array(rows))
    small = [pa.array(values.astype(np.int32)) for values in (numbers[PLACE], load_of[numbers[LOAD]], numbers[OPER])]
    return pa.RecordBatch.from_arrays(
        [
            unit,
            pa.array(ends[rows + 1] - ends[rows]),
            *small,
            text(T_SEQ, pa.string()),
            text(T_POSITION, pa.string()),
            text(T_TRANSACTION, pa.string()),
            text(T_CHANGE_MASK, pa.binary()),
            text(T_COLUMN_MASK, pa.binary()),
            image(T_BEFORE),
            image(T_AFTER),
            number(TIME, N_TIME, WALKED.field("change_timestamp").type),
            number(COUNT, N_COUNTER, pa.int64()),
            number(IS_LAST, N_LAST, pa.bool_()),
        ],
        schema=WALKED,
    )


def _bits(valid: np.ndarray) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _refreshes(contracts: Contracts, sources: dict, tables: dict, refresh_table):
    def batches(messages):
        for batch in messages:
            letters, ends = _bytes(batch.column("value"))
            found = np.full(len(batch), json_walk.DOUBT, np.int64)
            if contracts.places:
                json_walk.refreshes(
                    letters,
                    ends,
                    contracts.places_of(batch),
                    contracts.plans,
                    contracts.table_names,
                    found,
                    json_walk.scratch_of(ends, contracts.num_columns),
                )
            times, owners = batch.column("timestamp").cast(pa.int64()), batch.column("source")
            names = np.array([table.table for _, table in contracts.places] + [None], object)[np.maximum(found, -1)]
            names[found == json_walk.NONE] = None
            for i in np.flatnonzero(found == json_walk.DOUBT):
                message = batch.slice(i, 1).to_pylist()[0]
                names[i] = refresh_table(message, sources[message["source"]], tables)
            yield pa.RecordBatch.from_arrays(
                [owners, pa.array(names, pa.string()), times], names=["source", "t", "at"]
            ).filter(pc.and_(pa.array(names != None), times.is_valid()))  # noqa: E711, element by element

    return batches


def _pick(values, place: str) -> str:
    """The value at a place, out of constants."""
    shown = ", ".join(literal(value) if isinstance(value, str) else str(value) for value in values)
    return f"array({shown})[{place}]" if values else "cast(null as string)"
