"""Messages into bronze: Parquet files with the columns of Spark's Kafka source, planned and read by us, so that what was planned is what
is read. The same message at the same offset, landed before or twice here, lands once.
"""

import hashlib
import json

from inlet import unit
from inlet.bronze.files import as_problem, first_line, hash_bytes, open_file
from inlet.config import Project
from inlet.errors import InletError

MAX_TASKS = 64
NUM_MESSAGES = 1_000                   # read at a time
MESSAGE_COLUMNS = ("topic", "partition", "offset", "timestamp", "value")
KEPT_NAMES = ["source", "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "path", "batch_id"]
KEPT = ", ".join(f"`{c.name}` {c.type}" for name in KEPT_NAMES for c in unit.MESSAGES if c.name == name)



def plan_file(project, source, path, info, known, has_settled) -> dict | None:
    """One row of bronze.files for a Parquet file of Kafka messages; None where it is no longer what was listed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    digest = hashlib.sha256()
    with open_file(project, path) as stream:
        hash_bytes(stream, digest, info["size"])
        if stream.read(1):
            return None
        if known and digest.hexdigest() == known["sha256"]:
            return known | {"num_units": 0}
        if known:
            return as_problem(0, "file_rewritten", "the file as landed before", "other bytes", "Deliver new messages in a new file")
        stream.seek(0)
        try:
            schema = pq.read_schema(stream)
            check_messages(schema)
            stream.seek(0)
            places = pq.read_table(stream, columns=["topic", "partition", "offset", "timestamp"])
            _check_places(places)
        except (pa.ArrowException, OSError) as error:
            return as_problem(0, "unreadable_file", "Parquet with the columns of Spark's Kafka source", first_line(error),
                            "Mend or remove the file") | {"sha256": digest.hexdigest()}
    spans = places.group_by(["topic", "partition"]).aggregate(
        [("offset", "min"), ("offset", "max"), ("offset", "count"), ("offset", "count_distinct")])
    offsets = {f"{s['topic']}/{s['partition']}": [s["offset_min"], s["offset_max"], s["offset_count"] > s["offset_count_distinct"]]
               for s in spans.to_pylist()}
    return {"ofs_start": 0, "ofs_end": info["size"], "sha256": digest.hexdigest(), "num_units": places.num_rows,
            "problem": None, "context": json.dumps({"offsets": offsets, "schema": str(schema.remove_metadata())}), "start_context": None}


def check_messages(schema) -> None:
    """Raises: ArrowInvalid where a column of Spark's Kafka source is missing or of another kind."""
    import pyarrow as pa
    from pyarrow import types

    is_text = lambda t: types.is_string(t) or types.is_large_string(t)                                       # noqa: E731
    is_bytes = lambda t: types.is_binary(t) or types.is_large_binary(t) or is_text(t)                        # noqa: E731
    kinds = {"topic": (is_text, "text"), "partition": (types.is_integer, "an integer"), "offset": (types.is_integer, "an integer"),
             "timestamp": (types.is_timestamp, "a timestamp"), "value": (is_bytes, "binary")}
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


def read(project: Project, spark, files: list[dict], before: list[dict]):
    """A DataFrame of bronze.messages rows. The same message at the same offset, landed before or twice here, lands once."""
    rows = spark.createDataFrame([(json.dumps(row, default=str),) for row in files], "planned string").repartition(min(len(files), MAX_TASKS))
    found = rows.mapInArrow(_reader(project), KEPT).selectExpr(
        "concat_ws('/', source, topic, partition, `offset`) as unit_id", "*", "coalesce(octet_length(value), 0L) as size_bytes",
        "sha2(coalesce(value, cast('' as binary)), 256) as sha256", "current_timestamp() as landed_at")
    return _once(spark, found, files, before).selectExpr(*[c.name for c in unit.MESSAGES])


def _reader(project: Project):
    def read_files(batches):
        for batch in batches:
            for planned in batch.column(0).to_pylist():
                yield from batches_of(project, json.loads(planned))
    return read_files


def batches_of(project: Project, row: dict):
    """Arrow batches of a planned file's messages, as KEPT. Raises: InletError where the file is not what its plan says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = message_types()
    with open_file(project, row["path"]) as stream:
        digest = hashlib.sha256()
        hash_bytes(stream, digest, row["ofs_end"] + 1)
        if digest.hexdigest() != row["sha256"]:
            raise InletError(f"sha-256 {digest.hexdigest()}, planned {row['sha256']}")
        file = pq.ParquetFile(stream)
        for batch in file.iter_batches(NUM_MESSAGES, columns=[name for name in types if name in file.schema_arrow.names]):
            there = {name: batch.column(name).cast(type_, safe=not pa.types.is_timestamp(type_)) if name in batch.schema.names else
                     pa.nulls(len(batch), type_) for name, type_ in types.items()}
            there |= {"source": pa.repeat(row["source"], len(batch)), "path": pa.repeat(row["path"], len(batch)),
                      "batch_id": pa.repeat(row["batch_id"], len(batch))}
            yield pa.RecordBatch.from_arrays([there.get(name, there.get("timestampType")) for name in KEPT_NAMES], names=KEPT_NAMES)


def message_types() -> dict:
    """The columns of Spark's Kafka source that bronze keeps, with their Arrow types."""
    import pyarrow as pa

    return {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("us", tz="UTC"),
            "timestampType": pa.int32(), "key": pa.binary(), "value": pa.binary(),
            "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))}


def _once(spark, rows, files: list[dict], before: list[dict]):
    """Leave out messages that are landed already. Looks only where the offsets of two files overlap."""
    spans: dict[tuple, list] = {}
    for row in files + [b for b in before if b["batch_id"] < files[0]["batch_id"]]:
        for place, span in json.loads(row["context"] or "{}").get("offsets", {}).items():
            spans.setdefault((row["source"], place), []).append(span)
    if not any(_overlap(sorted(found)) for found in spans.values()):
        return rows
    place = ["source", "topic", "partition", "offset"]
    known = spark.table("bronze.messages").where(f"batch_id < {files[0]['batch_id']}")
    rows = rows.dropDuplicates([*place, "sha256"]).join(known.select(*place, "sha256"), [*place, "sha256"], "left_anti")
    rows = rows.join(known.select(*place).distinct().selectExpr("*", "true as is_known"), place, "left")
    rank = "row_number() over (partition by source, topic, partition, offset order by sha256)"
    names = [c.name for c in unit.MESSAGES if c.name != "unit_id"]
    return rows.selectExpr(f"if(is_known or {rank} > 1, concat(unit_id, '~', left(sha256, 8)), unit_id) as unit_id", *names)


def _overlap(spans: list[list]) -> bool:
    """Can an offset be there twice? In: (least, greatest, is one in the file twice) of each file, in order."""
    return any(is_twice for _, _, is_twice in spans) \
        or any(after[0] <= before[1] for before, after in zip(spans, spans[1:], strict=False))
