"""Messages kept in Parquet files with the columns of Spark's Kafka source."""

import json

from inlet.bronze.kept_message import as_kept, message_types
from inlet.bronze.whole_files import plan_whole, planned_file
from inlet.config import Project
from inlet.source import Source

NUM_MESSAGES = 1_000  # read at a time
MESSAGE_COLUMNS = ("topic", "partition", "offset", "timestamp", "value")


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | str | None:
    """One row of bronze.files for a Parquet file of Kafka messages; None where it is no longer what was listed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def plan(stream) -> dict:
        schema = pq.read_schema(stream)
        check_messages(schema)
        stream.seek(0)
        places = pq.read_table(stream, columns=["topic", "partition", "offset", "timestamp"])
        _check_places(places)
        return {
            "num_units": places.num_rows,
            "context": json.dumps({"offsets": _offsets(places), "schema": str(schema.remove_metadata())}),
            "start_context": None,
        }

    kind, is_whole = "Parquet with the columns of Spark's Kafka source", True  # its writers rename it into place
    return plan_whole(project, source, (path, info, known, is_whole), plan, kind, (pa.ArrowException,), has_end=True)


def _offsets(places) -> dict[str, list]:
    """First and last offset of each partition, and whether one comes twice."""
    counts = [("offset", "min"), ("offset", "max"), ("offset", "count"), ("offset", "count_distinct")]
    return {
        f"{row['topic']}/{row['partition']}": [
            row["offset_min"],
            row["offset_max"],
            row["offset_count"] > row["offset_count_distinct"],
        ]
        for row in places.group_by(["topic", "partition"]).aggregate(counts).to_pylist()
    }


def check_messages(schema) -> None:
    """Raises: ArrowInvalid where a column of Spark's Kafka source is missing or of another kind."""
    import pyarrow as pa
    from pyarrow import types

    is_text = lambda t: types.is_string(t) or types.is_large_string(t)  # noqa: E731
    is_bytes = lambda t: types.is_binary(t) or types.is_large_binary(t) or is_text(t)  # noqa: E731
    kinds = {
        "topic": (is_text, "text"),
        "partition": (types.is_integer, "an integer"),
        "offset": (types.is_integer, "an integer"),
        "timestamp": (types.is_timestamp, "a timestamp"),
        "value": (is_bytes, "binary"),
    }
    for name in MESSAGE_COLUMNS:
        if name not in schema.names:
            raise pa.ArrowInvalid(f"no column {name}")
        is_kind, kind = kinds[name]
        if not is_kind(schema.field(name).type):
            raise pa.ArrowInvalid(f"column {name} is {schema.field(name).type}, not {kind}")
    for name, type_ in message_types().items():
        if name in schema.names:
            pa.array([], schema.field(name).type).cast(type_)


def _check_places(places) -> None:
    """Raises: ArrowInvalid where a message has no place in its topic."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in places.column_names:
        if places.column(name).null_count:
            raise pa.ArrowInvalid(f"column {name} has nulls")
    for name in ("partition", "offset"):
        if len(places) and pc.min(places.column(name)).as_py() < 0:
            raise pa.ArrowInvalid(f"column {name} has negative numbers")
    if len(places) and pc.max(places.column("partition")).as_py() >= 1 << 31:
        raise pa.ArrowInvalid("column partition has numbers of more than 31 bits")


def units_of(project: Project, row: dict):
    """Arrow batches of a planned file's messages, as KEPT. Raises: InletError where the file is not what its plan
    says.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = message_types()
    with planned_file(project, row) as stream:
        file = pq.ParquetFile(stream)
        for batch in file.iter_batches(
            NUM_MESSAGES, columns=[name for name in types if name in file.schema_arrow.names]
        ):
            yield as_kept(
                row,
                {
                    name: batch.column(name).cast(type_, safe=not pa.types.is_timestamp(type_))
                    for name, type_ in types.items()
                    if name in batch.schema.names
                },
                len(batch),
            )
