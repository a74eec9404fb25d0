"""Bronze: land files and messages untouched, exactly once.

A batch is planned first: `bronze.files` says which bytes of which files it takes, with their sha-256. Then the units are
written under the batch's number, which Delta takes only once. A run that dies in between leaves a plan without units; the
next run finishes that plan before it makes one of its own. Only whole records are taken from a file that still grows; an
unfinished last record waits, and is landed as a reject once the file has rested for `settle_minutes`.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import fsspec

from inlet import lake, unit
from inlet.codecs import CODECS
from inlet.config import Project, Source
from inlet.errors import InletError, Reject

LEN_BLOCK = 1 << 20                    # a unit of about 1 MiB: some 10,000 records, one Arrow batch when decoded
LEN_HEAD = 1 << 20
LEN_READ = 16 << 20
MAX_TASKS = 64
MESSAGE_COLUMNS = ("topic", "partition", "offset", "timestamp", "value")


@dataclass
class Plan:
    """What one batch takes: rows of `bronze.files`."""

    batch_id: int
    files: list[dict[str, Any]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)       # path -> bytes of an unfinished last record

    def of(self, grain: str, project: Project) -> list[dict]:
        return [f for f in self.files if f["num_units"] and CODECS[project.sources[f["source"]].codec].GRAIN == grain]


def landed(project: Project) -> list[dict]:
    """Rows of bronze.files, read without Spark."""
    return lake.peek(project.lakehouse_path(), "bronze.files", [c.name for c in unit.FILES])


def plan(project: Project, sources: list[Source], before: list[dict], now: float | None = None) -> Plan:
    """What there is to land now. In: the rows of bronze.files so far. Out: a Plan, without files when nothing is new."""
    new = Plan(batch_id=max((row["batch_id"] for row in before), default=0) + 1)
    in_order = sorted(before, key=lambda row: row["batch_id"])
    last = {(row["source"], row["path"]): row for row in in_order}
    good = {(row["source"], row["path"]): row for row in in_order if not row["problem"]}
    for source in sources:
        for path, info in _listing(project, source):
            known, has_settled = last.get((source.name, path)), _has_settled(source, info, now)
            if known and (known["size_bytes"], _utc(known["modified_at"])) == (info["size"], info["modified"]):
                tail = 0 if known["problem"] else info["size"] - known["ofs_end"]
                if not tail or not has_settled:
                    new.waiting |= {path: tail} if tail else {}
                    continue
            planner = _plan_blocks if CODECS[source.codec].GRAIN == "block" else _plan_messages
            row = planner(project, source, path, info, good.get((source.name, path)), has_settled)
            if row["ofs_end"] < info["size"] and not row["problem"]:
                new.waiting[path] = info["size"] - row["ofs_end"]
            if row["num_units"] or row["problem"] or not known and row["ofs_end"] == info["size"]:
                new.files.append(row | {"source": source.name, "path": path, "size_bytes": info["size"],
                                        "modified_at": info["modified"], "batch_id": new.batch_id})
    return new


def unfinished(before: list[dict], done: set[tuple[int, str]]) -> list[int]:
    """Batches that are planned but not yet decoded. In: rows of bronze.files, (batch_id, source) of silver.batches."""
    return sorted({row["batch_id"] for row in before} - {batch for batch, _ in done}
                  | {row["batch_id"] for row in before if (row["batch_id"], row["source"]) not in done})


def land(project: Project, spark, new: Plan) -> None:
    """Write a planned batch: the plan, then its blocks and messages; each write happens once however often it is tried."""
    now = datetime.now(timezone.utc)
    rows = [tuple((row | {"landed_at": now})[c.name] for c in unit.FILES) for row in new.files]
    files = spark.createDataFrame(rows, ", ".join(f"{c.name} {c.type}" for c in unit.FILES))
    lake.append(files.coalesce(1), "bronze.files", "inlet-bronze-files", new.batch_id)
    write_units(project, spark, new)


def write_units(project: Project, spark, new: Plan) -> None:
    """Write the units of a batch whose plan is already in bronze.files."""
    if blocks := new.of("block", project):
        lake.append(_blocks(project, spark, blocks), "bronze.blocks", "inlet-bronze-blocks", new.batch_id)
    if kept := new.of("message", project):
        lake.append(_messages(project, spark, kept), "bronze.messages", "inlet-bronze-messages", new.batch_id)


# -- files ---------------------------------------------------------------------------------------------------------------

def _listing(project: Project, source: Source) -> Iterator[tuple[str, dict]]:
    """(path, {size, modified}) of each file of a source, by name. A folder means all files in it."""
    url = project.resolve(source.path)
    fs, pattern = fsspec.core.url_to_fs(url)
    names = fs.glob(pattern if any(c in pattern for c in "*?[") else pattern.rstrip("/") + "/*")
    root = str(project.root) + "/"
    for name in sorted(names):
        info = fs.info(name)
        if info["type"] != "file" or name.rsplit("/", 1)[-1].startswith((".", "_")):
            continue
        modified = info.get("mtime") or info.get("LastModified") or info.get("updated") or 0
        if isinstance(modified, (int, float)):
            modified = datetime.fromtimestamp(modified, timezone.utc)
        yield fs.unstrip_protocol(name).removeprefix("file://").removeprefix(root), {"size": info["size"], "modified": modified}


def _open(project: Project, path: str):
    return fsspec.open(project.resolve(path), "rb").open()


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)


def _has_settled(source: Source, info: dict, now: float | None) -> bool:
    return (now or time.time()) - info["modified"].timestamp() >= source.settle_minutes * 60


# -- blocks --------------------------------------------------------------------------------------------------------------

def _plan_blocks(project, source, path, info, known, has_settled) -> dict:
    """One row of bronze.files for a file of binary records."""
    start, digest, num_units, end = (known["ofs_end"] if known else 0), hashlib.sha256(), 0, 0
    context = start_context = json.loads(known["context"]) if known and known["context"] else None
    with _open(project, path) as stream:
        if start:
            _hash(stream, digest, start)
            if digest.hexdigest() != known["sha256"] or info["size"] < start:
                return _problem(start, "file_rewritten", f"the first {start} bytes as landed before", "other bytes",
                                "Deliver changed content under a new name")
        for block, context in cut_file(source, project.tables_of(source), path, stream, start, info["size"], context, has_settled):
            if start_context is None:
                start_context = block.context
            digest.update(block.data)
            num_units, end = num_units + 1, block.file_offset + len(block.data)
    return {"ofs_start": start, "ofs_end": end or start, "sha256": digest.hexdigest(), "num_units": num_units, "problem": None,
            "context": json.dumps(context) if context else None,
            "start_context": json.dumps(start_context) if start_context else None}


def _problem(start: int, kind: str, expected: str, found: str, remedy: str) -> dict:
    problem = {"kind": kind, "byte_offset": start, "expected": expected, "found": found, "remedy": remedy}
    return {"ofs_start": start, "ofs_end": start, "sha256": None, "num_units": 0, "context": None, "start_context": None,
            "problem": json.dumps(problem)}


def _hash(stream, digest, length: int) -> None:
    while length > 0 and (data := stream.read(min(LEN_READ, length))):
        digest.update(data)
        length -= len(data)


@dataclass(frozen=True)
class FileBlock:
    file_offset: int
    data: bytes
    context: dict
    num_records: int


def cut_file(source, tables, path, stream, start, size, context, has_settled) -> Iterator[tuple[FileBlock, dict]]:
    """Blocks of a stream from `start` on, each with the context after it. Bytes from there on are read once, in pieces.

    What cannot be framed (a reject of `open_file` or `cut`, or a tail that has settled) is one block whose context
    carries the problem, so that silver rejects it and no byte is lost.
    """
    codec = CODECS[source.codec]
    offset, rest = start, stream.read(LEN_READ)
    if context is None and rest:
        opened = codec.open_file(path, rest[:LEN_HEAD], len(rest) >= size and size <= LEN_HEAD, source, tables)
        if isinstance(opened, Reject):
            yield from _whole_rest(offset, rest, stream, {"problem": _problem_of(opened)})
            return
        context = opened
    if context and "problem" in context:             # what follows a place that cannot be framed has no known beginning
        yield from _whole_rest(offset, rest, stream, context)
        return
    while rest:
        more = stream.read(LEN_READ)
        cut = codec.cut(rest, context, source, tables, LEN_BLOCK, is_final=not more and has_settled)
        for n, block in enumerate(cut.blocks):
            after = cut.blocks[n + 1].context if n + 1 < len(cut.blocks) else cut.context
            yield FileBlock(offset + block.offset, rest[block.offset:block.offset + block.length], block.context,
                            block.num_records), after
        offset, rest, context = offset + cut.consumed, rest[cut.consumed:], cut.context
        if cut.problem:
            yield from _whole_rest(offset, rest + more, stream, context | {"problem": _problem_of(cut.problem)})
            return
        if not more:
            break
        rest += more
    if rest and has_settled:
        yield from _whole_rest(offset, rest, stream, context | {"problem": _problem_of(_truncated(rest))})


def _truncated(rest: bytes) -> Reject:
    return Reject("truncated", 0, len(rest), len(rest), "the rest of the record", "the end of the file", b"")


def _problem_of(reject) -> dict:
    return {"kind": reject.kind, "byte_offset": reject.byte_offset - reject.unit_offset, "expected": reject.expected, "found": reject.found}


def _whole_rest(offset: int, rest: bytes, stream, context: dict) -> Iterator[tuple[FileBlock, dict]]:
    """All that is left, in pieces that fit in a row; the context that carries the problem stays, for what a growing file adds."""
    while rest:
        yield FileBlock(offset, rest, context, 1), context
        offset, rest = offset + len(rest), stream.read(LEN_READ)


def _blocks(project: Project, spark, files: list[dict]):
    """A DataFrame of bronze.blocks rows: each file is read where Spark runs, cut again and checked against its plan."""
    schema = ", ".join(f"{c.name} {c.type}" for c in unit.BLOCKS if c.name != "landed_at")
    rows = [(json.dumps(row, default=str),) for row in files]
    planned = spark.createDataFrame(rows, "planned string").repartition(min(len(rows), MAX_TASKS))
    return planned.mapInArrow(_block_writer(project, schema), schema).selectExpr("*", "current_timestamp() as landed_at")


def _block_writer(project: Project, schema: str):
    def write(batches):
        import pyarrow as pa
        for batch in batches:
            for said in batch.column(0).to_pylist():
                for row in _block_rows(project, json.loads(said)):
                    yield pa.RecordBatch.from_pylist([row], schema=lake.arrow_schema(schema))
    return write


def _block_rows(project: Project, row: dict) -> Iterator[dict]:
    source, digest, end = project.sources[row["source"]], hashlib.sha256(), row["ofs_end"]
    with _open(project, row["path"]) as stream:
        _hash(stream, digest, row["ofs_start"])
        context = json.loads(row["start_context"]) if row["start_context"] and row["ofs_start"] else None
        limited = _Limited(stream, end - row["ofs_start"])
        has_tail = True                          # the plan already decided how far to read
        for block, _ in cut_file(source, project.tables_of(source), row["path"], limited, row["ofs_start"], end, context, has_tail):
            digest.update(block.data)
            yield {"unit_id": f"{source.name}/{row['path']}@{block.file_offset}", "source": source.name, "path": row["path"],
                   "file_offset": block.file_offset, "size_bytes": len(block.data),
                   "sha256": hashlib.sha256(block.data).hexdigest(), "context": json.dumps(block.context),
                   "num_records": block.num_records, "bytes": block.data, "batch_id": row["batch_id"]}
    if digest.hexdigest() != row["sha256"]:
        raise InletError(f"{row['path']} changed while it was read: sha-256 {digest.hexdigest()}, planned {row['sha256']}",
                         "Deliver files whole or only ever append to them, then run again")


class _Limited:
    """A stream that ends after `length` bytes."""

    def __init__(self, stream, length: int):
        self.stream, self.left = stream, length

    def read(self, length: int = -1) -> bytes:
        data = self.stream.read(self.left if length < 0 else min(length, self.left))
        self.left -= len(data)
        return data


# -- messages ------------------------------------------------------------------------------------------------------------

def _plan_messages(project, source, path, info, known, has_settled) -> dict:
    """One row of bronze.files for a Parquet file of Kafka messages."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    digest = hashlib.sha256()
    with _open(project, path) as stream:
        _hash(stream, digest, info["size"])
        if known and digest.hexdigest() == known["sha256"]:
            return known | {"num_units": 0}
        if known:
            return _problem(0, "file_rewritten", "the file as landed before", "other bytes", "Deliver new messages in a new file")
        stream.seek(0)
        try:
            schema = pq.read_schema(stream)
            check_messages(schema)
            stream.seek(0)
            places = pq.read_table(stream, columns=["topic", "partition", "offset", "timestamp"])
            _check_places(places)
        except (pa.ArrowException, OSError) as error:
            return _problem(0, "unreadable_file", "Parquet with the columns of Spark's Kafka source", str(error).splitlines()[0],
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


def _messages(project: Project, spark, files: list[dict]):
    """A DataFrame of bronze.messages rows. The same message at the same offset, landed before or twice here, lands once."""
    alike: dict[tuple[str, str], list[str]] = {}      # Spark takes the columns of the first file for all that it reads together
    for row in files:
        _check_unchanged(project, row)
        alike.setdefault((row["source"], json.loads(row["context"])["schema"]), []).append(project.resolve(row["path"]))
    parts = [_messages_of(spark.read.parquet(*paths), source, str(project.root), files[0]["batch_id"])
             for (source, _), paths in sorted(alike.items())]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return _once(spark, rows, files, landed(project)).selectExpr(*[c.name for c in unit.MESSAGES])


def _check_unchanged(project: Project, row: dict) -> None:
    """Raises: InletError where a file is not what its plan says."""
    digest = hashlib.sha256()
    with _open(project, row["path"]) as stream:
        _hash(stream, digest, row["ofs_end"] + 1)
    if digest.hexdigest() != row["sha256"]:
        raise InletError(f"{row['path']} changed after it was planned: sha-256 {digest.hexdigest()}, planned {row['sha256']}",
                         "Put the file back as it was; deliver new messages in a new file")


def _messages_of(kept, source: str, root: str, batch_id: int):
    there = set(kept.columns)
    timestamp_type = "cast(timestampType as int)" if "timestampType" in there else "cast(null as int)"
    headers = "headers" if "headers" in there else "cast(null as array<struct<key: string, value: binary>>)"
    key = "key" if "key" in there else "cast(null as binary)"
    return kept.selectExpr(
        f"concat_ws('/', '{source}', topic, partition, offset) as unit_id", f"'{source}' as source", "topic",
        "cast(partition as int) as partition", "cast(offset as bigint) as offset", "cast(timestamp as timestamp) as timestamp",
        f"{timestamp_type} as timestamp_type", f"cast({key} as binary) as key", "cast(value as binary) as value",
        f"{headers} as headers", "coalesce(octet_length(value), 0L) as size_bytes", "sha2(coalesce(value, cast('' as binary)), 256) as sha256",
        f"replace(replace(input_file_name(), 'file://', ''), '{root}/', '') as path", f"{batch_id}L as batch_id",
        "current_timestamp() as landed_at")


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
