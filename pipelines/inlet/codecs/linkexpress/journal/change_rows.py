"""Changes of usage journals as Arrow, in the columns that the codec offers; the same as dicts, for eyes and tests."""

import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.columns import digits, hexadecimal, instant, joined, same, word
from inlet.codecs.linkexpress.journal import frames, header_variant, open_transactions
from inlet.codecs.linkexpress.journal.record import OPERATIONS
from inlet.codecs.linkexpress.local_time import utc_time
from inlet.codecs.linkexpress.reject import change_seq_prefix
from inlet.fields import variant

CHANGES = pa.schema(
    [
        pa.field("record_ordinal", pa.int64(), nullable=False),
        pa.field("operation", pa.int8(), nullable=False),
        pa.field("table_index", pa.int32(), nullable=False),
        pa.field("trnid", pa.int64()),
        pa.field("counter", pa.int64()),
        pa.field("last", pa.bool_()),
        pa.field("utc_time", pa.int64()),
        pa.field("column_mask", pa.binary()),
        pa.field("before", IMAGE),
        pa.field("after", IMAGE),
        pa.field("column_states", pa.map_(pa.string(), pa.string())),
        pa.field("header", IMAGE),
        pa.field("unit_offset", pa.int64(), nullable=False),
        pa.field("unit_length", pa.int64(), nullable=False),
    ]
)
CONSTANTS = {"prefix": "string"}
COLUMNS = {
    "change_seq": joined(same("prefix"), digits("record_ordinal", 10)),
    "operation": word(tuple(OPERATIONS.values()), "operation", first=1),
    "transaction_id": hexadecimal("trnid"),
    "transaction_event_counter": same("counter"),
    "transaction_last_event": same("last"),
    "change_timestamp": instant("utc_time"),
}
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND, HOUR = datetime.timedelta(microseconds=1), 3_600_000_000
CODES = {operation: code for code, operation in OPERATIONS.items()}
MAX_IMAGES = 1 << 31


def constants(context: dict) -> dict:
    """What is the same for all changes of a block: the beginning of their change_seq."""
    return {"prefix": change_seq_prefix(context)}


def load_of(context: dict) -> None:
    """Journals have no full loads."""
    return None


def changes(written, rows: list[dict], tables: dict) -> pa.RecordBatch:
    """The changes of a block, in order. In: the images that were written; those that the plain reader has read."""
    batch = _of_images(written, tables)
    if not rows:
        return batch
    both = pa.Table.from_batches([batch, of_rows(rows, sorted(tables))]).combine_chunks()
    order = np.argsort(both.column("record_ordinal").to_numpy())
    [batch] = both.take(pa.array(order)).combine_chunks().to_batches()
    return batch


def _of_images(written, tables: dict) -> pa.RecordBatch:
    piece, chosen, layouts = written.piece, written.chosen, written.piece.layouts
    records, events, operation = map(written.of_chosen, (piece.records, piece.events, written.operation))
    names = sorted(tables)
    index_of = np.array([names.index(name) for name in layouts.names], np.int32)
    in_none = events[:, open_transactions.COUNTER] == 0
    is_uncounted = events[:, open_transactions.COUNTER] == open_transactions.UNCOUNTED
    is_delete = operation == CODES["DELETE"]
    utc, has_utc = utc_times(written.of_chosen(written.local), written.has_time, piece.setup.options.zone.key)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(chosen + piece.context["record_ordinal"], pa.int64()),
            pa.array(operation.astype(np.int8)),
            pa.array(index_of[written.tables] if len(chosen) else np.zeros(0, np.int32)),
            pa.array(events[:, open_transactions.ID], pa.int64(), mask=in_none),
            pa.array(events[:, open_transactions.COUNTER], pa.int64(), mask=in_none | is_uncounted),
            pa.array(events[:, open_transactions.IS_LAST] == 1, pa.bool_(), mask=in_none),
            pa.array(utc, pa.int64(), mask=~has_utc),
            _masks(written),
            _images(written, ~is_delete),
            _images(written, is_delete),
            _states(written, tables),
            _headers(written),
            pa.array(records[:, frames.START]),
            pa.array(records[:, frames.END] - records[:, frames.START]),
        ],
        schema=CHANGES,
    )


def utc_times(local: np.ndarray, has_time: np.ndarray, zone: str) -> tuple[np.ndarray, np.ndarray]:
    """Local times in UTC, in microseconds; which of them there are. In: which local times there are."""
    local = np.where(has_time, local, 0)
    hour_of = local // HOUR
    if len(hour_of) and (hour_of == hour_of[0]).all():  # a block is seldom of several
        hours, which = hour_of[:1], np.zeros(len(hour_of), np.int64)
    else:
        hours, which = np.unique(hour_of, return_inverse=True)
    offsets = [_offset_in(int(hour), zone) for hour in hours]
    utc = local - np.array([offset or 0 for offset in offsets], np.int64)[which]
    has_utc = has_time.copy()
    for i in np.flatnonzero(np.array([offset is None for offset in offsets], bool)[which]):
        at = _utc(int(local[i]), zone)
        has_utc[i] &= at is not None
        utc[i] = 0 if at is None else at
    return utc, has_utc


@lru_cache(maxsize=4096)
def _offset_in(hour: int, zone: str) -> int | None:
    """Microseconds that a zone is before UTC in a local hour; None where they change in it. No zone has changed twice
    within days."""
    first, last = _utc(hour * HOUR, zone), _utc(hour * HOUR + HOUR - 1, zone)
    return None if first is None or last is None or last - first != HOUR - 1 else hour * HOUR - first


def _utc(local: int, zone: str) -> int | None:
    at = utc_time(EPOCH + local * MICROSECOND, ZoneInfo(zone))
    return None if at is None else (at.replace(tzinfo=None) - EPOCH) // MICROSECOND


def _binary(buffer: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """Values that stand one behind the other. Raises: ValueError where Arrow's offsets do not reach that far."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    if ends[-1] >= MAX_IMAGES:
        raise ValueError(f"a block's images must stay below 2 GiB, found {ends[-1]} bytes: cut smaller blocks")
    parts = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(buffer[: ends[-1]])]
    return pa.Array.from_buffers(pa.binary(), len(sizes), parts)


def _images(written, is_null: np.ndarray) -> pa.StructArray:
    """The images of some of the journals; the others have none."""
    if is_null.all():
        return pa.nulls(len(is_null), IMAGE)
    values = _binary(written.buffer, written.sizes)
    metadata = pa.array([*written.piece.layouts.metadata, b""], pa.binary())
    nulls = pa.array(is_null)
    if is_null.any():
        values = pa.compute.if_else(nulls, pa.scalar(b"", pa.binary()), values)
    metadata = metadata.take(pa.array(np.where(is_null, len(metadata) - 1, written.tables)))
    return pa.StructArray.from_arrays([values, metadata], fields=list(IMAGE), mask=nulls)


def _masks(written) -> pa.Array:
    """Columns that are supplied, where they are not all."""
    masks = written.masks
    is_all = ~written.is_partial
    if is_all.all():
        return pa.nulls(len(masks), pa.binary())
    widths = np.arange(1, masks.shape[1] + 1)
    sizes = np.where(is_all, 0, ((masks != 0) * widths).max(axis=1, initial=0))
    array = _binary(masks[widths <= sizes[:, None]], sizes)
    return pa.compute.if_else(pa.array(is_all), pa.scalar(None, pa.binary()), array)


def _states(written, tables: dict) -> pa.Array:
    """Columns whose values are missing."""
    type_ = CHANGES.field("column_states").type
    is_any = written.has_missing
    if not is_any.any():
        return pa.nulls(len(is_any), type_)
    states: list[list | None] = [None] * len(is_any)
    for n in np.flatnonzero(is_any):
        bits = np.flatnonzero(np.unpackbits(written.missing[n], bitorder="little"))
        names = written.piece.reader.tables[written.piece.layouts.names[written.tables[n]]].column_names
        states[n] = [(names[bit], "missing") for bit in bits]
    return pa.array(states, type_)


def _headers(written) -> pa.Array:
    """What the vendor's header says of each change; null where nobody wants it."""
    piece, chosen = written.piece, written.chosen
    if not written.has_header:
        return pa.nulls(len(chosen), IMAGE)
    names = [one.text for one in piece.named]
    texts = [(text or "").rstrip(" ").encode() for text in (*names, *written.storage_names)]
    room = header_variant.LEN_HEADER_MAX + 2 * max(map(len, texts), default=0)
    out, sizes = np.empty(len(chosen) * room, np.uint8), np.zeros(len(chosen), np.int64)
    ends = np.cumsum([0, *map(len, texts)])
    storages = np.where(written.storages < 0, -1, written.storages + len(names))
    header_variant.headers(
        piece.bytes_, piece.records, chosen, piece.heads, piece.events, piece.messages, piece.len_control,
        np.frombuffer(b"".join(texts), np.uint8), ends, piece.resources, storages, out, sizes,
    )  # fmt: skip
    metadata = pa.array([header_variant.METADATA], pa.binary()).take(pa.array(np.zeros(len(chosen), np.int8)))
    return pa.StructArray.from_arrays([_binary(out, sizes), metadata], fields=list(IMAGE))


def of_rows(rows: list[dict], names: list[str]) -> pa.RecordBatch:
    """Changes of the plain reader, as the same columns."""
    return pa.RecordBatch.from_pylist([_as_arrow(row, names) for row in rows], schema=CHANGES)


def _as_arrow(row: dict, names: list[str]) -> dict:
    def packed(value: dict | None) -> dict | None:
        return None if value is None else dict(zip(("value", "metadata"), variant.encode(value)))

    at, id_ = row["change_timestamp"], row["transaction_id"]
    return {name: packed(row[name]) for name in ("before", "after", "header")} | {
        "record_ordinal": row["record_ordinal"],
        "operation": CODES[row["operation"]],
        "table_index": names.index(f"{row['source_schema']}.{row['source_table']}"),
        "trnid": id_ and int.from_bytes(bytes.fromhex(id_), "big", signed=True),
        "counter": row["transaction_event_counter"],
        "last": row["transaction_last_event"],
        "utc_time": at and (at.replace(tzinfo=None) - EPOCH) // MICROSECOND,
        "column_mask": row["column_mask"],
        "column_states": list(row["column_states"].items()) if row["column_states"] else None,
        "unit_offset": row["unit_offset"],
        "unit_length": row["unit_length"],
    }
