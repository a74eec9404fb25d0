"""Arrow batches of messages through the compiled walk: Arrow batches of changes, whose constants are still numbers."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from inlet.codecs import json_batches
from inlet.codecs.codec import IMAGE
from inlet.codecs.goldengate.json import walk
from inlet.codecs.goldengate.json.contracts import Contracts
from inlet.codecs.json_batches import LEN_MOST, bytes_of

WALKED = pa.schema(
    [
        ("unit_id", pa.string()),
        ("unit_length", pa.int64()),
        ("p", pa.int32()),
        ("o", pa.int32()),
        ("change_seq", pa.string()),
        ("stream_position", pa.string()),
        ("transaction_id", pa.string()),
        ("column_mask", pa.binary()),
        ("before", IMAGE),
        ("after", IMAGE),
        ("header", IMAGE),
        ("change_timestamp", pa.timestamp("us", tz="UTC")),
    ]
)


def walked(contracts: Contracts) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow: batches of bronze.messages -> batches of WALKED, of the messages that are in no doubt."""
    widths = contracts.num_columns, contracts.num_members, contracts.len_names

    def size_of(ends: np.ndarray) -> int:
        return max(walk.len_images(ends, *widths), json_batches.len_names(contracts.metadata, ends))

    def batches(messages):
        for batch in messages:
            for part in json_batches.parts(batch, size_of, LEN_MOST):
                yield _walked(part, contracts, widths)

    return batches


def _walked(batch: pa.RecordBatch, contracts: Contracts, widths: tuple[int, int, int]) -> pa.RecordBatch:
    letters, ends = bytes_of(batch.column("value"))
    texts, scratch = walk.texts_of(ends, *widths), walk.scratch_of(ends, *widths[:2])
    numbers = np.zeros((walk.NUM_NUMBERS, len(batch)), np.int64)
    valid = np.zeros((walk.NUM_VALID, len(batch)), np.bool_)
    feed_of, places, tables = contracts.places_of(batch)
    count = walk.rows(
        letters,
        ends,
        feed_of,
        places,
        tables,
        contracts.feeds,
        contracts.len_names,
        contracts.plans,
        contracts.doubles,
        texts,
        numbers,
        valid,
        scratch,
    )
    return _arrow(batch, ends, texts, numbers[:, :count], valid[:, :count], contracts.metadata)


def _arrow(batch: pa.RecordBatch, ends, texts, numbers, valid, metadata: pa.Array) -> pa.RecordBatch:
    rows, count = numbers[walk.ROW], numbers.shape[1]

    def text(column: int, type_: pa.DataType) -> pa.Array:
        return json_batches.text(texts[0][column], texts[1][column], valid[column], type_)

    def image(column: int, names: pa.Array, places: np.ndarray) -> pa.Array:
        return json_batches.image(text(column, pa.binary()), names, valid[column], places)

    unit = batch.column("unit_id") if count == len(batch) else batch.column("unit_id").take(pa.array(rows))
    time = WALKED.field("change_timestamp").type
    return pa.RecordBatch.from_arrays(
        [
            unit,
            pa.array(ends[rows + 1] - ends[rows]),
            *(pa.array(numbers[column].astype(np.int32)) for column in (walk.PLACE, walk.OPER)),
            text(walk.T_SEQ, pa.string()),
            text(walk.T_POSITION, pa.string()),
            text(walk.T_TRANSACTION, pa.string()),
            text(walk.T_COLUMN_MASK, pa.binary()),
            image(walk.T_BEFORE, metadata, numbers[walk.PLACE]),
            image(walk.T_AFTER, metadata, numbers[walk.PLACE]),
            image(walk.T_HEADER, text(walk.T_NAMES, pa.binary()), np.arange(count)),
            json_batches.number(numbers[walk.TIME], valid[walk.N_TIME], time),
        ],
        schema=WALKED,
    )
