"""Arrow batches of messages through the compiled walk: Arrow batches of changes, whose constants are still numbers."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import json_batches
from inlet.codecs.codec import IMAGE
from inlet.codecs.json_batches import LEN_MOST, bytes_of, groups
from inlet.codecs.qlik import full_load, json_walk
from inlet.codecs.qlik.json_contracts import Contracts
from inlet.codecs.qlik.json_walk import (
    COUNT,
    IS_LAST,
    LOAD,
    N_COUNTER,
    N_LAST,
    N_TIME,
    NUM_NUMBERS,
    NUM_VALID,
    OPER,
    PLACE,
    ROW,
    T_AFTER,
    T_BEFORE,
    T_CHANGE_MASK,
    T_COLUMN_MASK,
    T_POSITION,
    T_SEQ,
    T_TRANSACTION,
    TIME,
)

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
NO_TIME = -(1 << 63)  # of a message that no broker has given a time: within no load
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


def load_spans(
    loads: list[dict], contracts: Contracts, sources: list
) -> tuple[np.ndarray, np.ndarray, np.ndarray, set[tuple[str, str]]]:
    """Loads by first_at: (place, first, last with the gap), start digits, place in the given list; (source, topic) of
    those whose number depends on the load, which are left to the exact path."""
    gaps = {s.name: datetime.timedelta(minutes=s.options_as(full_load.Options).load_gap_minutes) for s in sources}
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
        full_load.renumbered(loads),
    )


def _micros(at: datetime.datetime) -> int:
    return (at - EPOCH) // datetime.timedelta(microseconds=1)


def walk(contracts: Contracts, load_spans):
    def size_of(ends: np.ndarray) -> int:
        len_images = json_walk.len_images(ends, num_columns=contracts.num_columns)
        return max(len_images, json_batches.len_names(contracts.metadata, ends))

    def batches(messages):
        for batch in messages:
            for part in json_batches.parts(batch, size_of, LEN_MOST):
                yield _walked(part, contracts, load_spans)

    return batches


def _walked(batch: pa.RecordBatch, contracts: Contracts, load_spans) -> pa.RecordBatch:
    spans, starts, load_of, renumbered = load_spans
    letters, ends = bytes_of(batch.column("value"))
    texts, scratch = json_walk.texts_of(ends, contracts.num_columns), json_walk.scratch_of(ends, contracts.num_columns)
    numbers, valid = np.zeros((NUM_NUMBERS, len(batch)), np.int64), np.zeros((NUM_VALID, len(batch)), np.bool_)
    count = (
        json_walk.rows(
            letters,
            ends,
            _without(renumbered, batch, contracts.places_of(batch)),
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


def _without(renumbered: set[tuple[str, str]], batch: pa.RecordBatch, places: np.ndarray) -> np.ndarray:
    """Places of contracts, none for messages of these topics."""
    for place, at in groups(batch, "source", "topic") if renumbered else ():
        if place in renumbered:
            places[at] = -1
    return places


def _placing(batch: pa.RecordBatch) -> np.ndarray:
    """What a full-load row's place is made from: topic's digits, partition, offset, time."""
    placing = np.empty((len(batch), 4), np.int64)
    for (topic,), at in groups(batch, "topic"):
        placing[at, 0] = full_load.topic_number(topic)
    for k, name in enumerate(("partition", "offset"), 1):
        placing[:, k] = batch.column(name)
    placing[:, 3] = pc.fill_null(batch.column("timestamp").cast(pa.int64()), NO_TIME)
    return placing


def _arrow(batch, ends, texts, numbers, valid, metadata, load_of) -> pa.RecordBatch:
    rows, count = numbers[ROW], numbers.shape[1]

    def text(column: int, type_) -> pa.Array:
        return json_batches.text(texts[0][column], texts[1][column], valid[column], type_)

    def number(column: int, validity: int, type_) -> pa.Array:
        return json_batches.number(numbers[column], valid[validity], type_)

    def image(column: int) -> pa.Array:
        return json_batches.image(text(column, pa.binary()), metadata, valid[column], numbers[PLACE])

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
