"""A message as bronze keeps it: the columns of Spark's Kafka source, and where it came from."""

from inlet import unit

KEPT_NAMES = [
    "source",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "path",
    "batch_id",
]
KEPT = ", ".join(f"`{c.name}` {c.type}" for name in KEPT_NAMES for c in unit.MESSAGES if c.name == name)


def message_types() -> dict:
    """The columns of Spark's Kafka source that bronze keeps, with their Arrow types."""
    import pyarrow as pa

    return {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }


NUM_MESSAGES, NUM_BYTES = 1_000, 64 << 20  # in an Arrow batch, but for one message that is larger


def as_messages(row: dict, values: list, first: int, headers: list | None = None):
    """Arrow batches of messages whose place is their file and their ordinal in it. In: the file's row of bronze.files;
    values; the ordinal of the first; headers of all of them.
    """
    import pyarrow as pa

    at = 0
    while at < len(values):
        stop, size = at + 1, len(values[at] or b"")
        while stop < min(at + NUM_MESSAGES, len(values)) and size + len(values[stop] or b"") <= NUM_BYTES:
            size, stop = size + len(values[stop] or b""), stop + 1
        num = stop - at
        columns = {
            "topic": pa.repeat(row["path"], num),
            "partition": pa.repeat(pa.scalar(0, pa.int32()), num),
            "offset": pa.array(range(first + at, first + stop), pa.int64()),
            "value": pa.array(values[at:stop], pa.binary()),
        }
        if headers:
            columns["headers"] = pa.array([headers] * num, message_types()["headers"])
        yield as_kept(row, columns, num)
        at = stop


def as_kept(row: dict, columns: dict, num: int):
    """An Arrow batch of messages. In: their file's row of bronze.files; the columns of Spark's Kafka source that there
    are; how many messages.
    """
    import pyarrow as pa

    given = {name: columns.get(name, pa.nulls(num, type_)) for name, type_ in message_types().items()}
    given |= {name: pa.repeat(row[name], num) for name in ("source", "path", "batch_id")}
    return pa.RecordBatch.from_arrays(
        [given.get(name, given.get("timestampType")) for name in KEPT_NAMES], names=KEPT_NAMES
    )
