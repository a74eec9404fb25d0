"""Files of records into bronze: cut into blocks, planned, and read again where Spark runs, checked against the plan.

The blocks of a compressed file are cut from what it unpacks to, and its offsets are places in that; `bronze.delivered`
keeps the file as it came. Such a file is whole: it does not grow, and waits until it has settled.
"""

import hashlib
import json
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from inlet import lake, unit
from inlet.bronze import parquet_rows
from inlet.bronze.companions import miscounted
from inlet.bronze.files import MAX_TASKS, hash_bytes, is_compressed, open_file, rewritten, unpacked_name
from inlet.bronze.framing import FileBlock, cut_file, problem_of
from inlet.bronze.history import REREAD
from inlet.bronze.judged import Judged
from inlet.bronze.whole_files import check, plan_whole, planned_file
from inlet.codecs import CODECS
from inlet.codecs.codec import UNDECIDED, offers
from inlet.config import Project
from inlet.source import ROW_TRANSPORTS, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = ["unit_id", "source", "path", "file_offset", "size_bytes", "num_records", "context", "batch_id"]
LEN_DELIVERED = 64 << 20  # of a row of bronze.delivered


def plan_file(
    project: Project, source: Source, path, info, known, has_settled, before: dict | None = None
) -> dict | str | None:
    """One row of bronze.files for a file of binary records; what it waits for; None where it is no longer what was
    listed. In: before, the context at the end of the file that it follows.
    """
    num_said = info.get("num_records")
    if known or not isinstance(num_said, int):
        return _plan_file(project, source, path, info, known, has_settled, before)
    planned = _plan_file(project, source, path, info, None, True, before)  # its number of records tells its end
    if not isinstance(planned, dict) or "problem" in json.loads(planned["start_context"] or "{}"):
        return planned
    is_framed = not planned["problem"] and "problem" not in json.loads(planned["context"] or "{}")
    if is_framed and planned["num_records"] == num_said:
        return planned
    num_found = 0 if planned["problem"] else planned["num_records"] - (not is_framed)
    if not has_settled:
        return (
            f"its records, of which {num_found} of {num_said} are there, for settle_minutes ({source.settle_minutes:g})"
        )
    if planned["problem"]:
        return planned
    context = {"companions": info["companions"], "problem": problem_of(miscounted(num_said, num_found))}
    return _plan_file(project, source, path, info, None, True, before, context)


def _plan_file(
    project: Project, source: Source, path, info, known, has_settled, before, context: dict | None = None
) -> dict | str | None:
    """The same, of a file whose number of records is not known. In: the context of its first byte, where the codec is
    not asked for it."""
    start_row = {"context": json.dumps(context)} if context else None
    if is_compressed(path):

        def read(stream) -> dict:
            return _plan_blocks(project, source, path, info, start_row, True, before, stream, 0, hashlib.sha256())[0]

        return plan_whole(project, source, (path, info, known, has_settled), read)
    start, digest = (known["ofs_end"] if known else 0), hashlib.sha256()
    with open_file(project, path) as stream:
        if start:
            hash_bytes(stream, digest, start)
            if digest.hexdigest() != known["sha256"] or info["size"] < start:
                return rewritten(path, start, f"the first {start} bytes as landed before", "other bytes")
        listed = _Limited(stream, info["size"] - start)  # what comes after the listing is the next run's
        row = known or start_row
        planned, end = _plan_blocks(project, source, path, info, row, has_settled, before, listed, start, digest)
    return planned | {"ofs_start": start, "ofs_end": end, "sha256": digest.hexdigest()}


def _plan_blocks(
    project: Project, source: Source, path, info, known, has_settled, before, stream, start, digest
) -> tuple[dict, int]:
    """What a row of bronze.files says of the blocks from `start` on, and where they end. The digest takes their
    bytes.
    """
    context = start_context = json.loads(known["context"]) if known and known["context"] else None
    undecided = context.pop(UNDECIDED, []) if context is not None else (before or {}).get(UNDECIDED, [])
    num_units, num_records, end = 0, 0, start
    judged = Judged(undecided, path, start, info.get("batch_id", 0))
    tables, companions = project.tables_of(source), info.get("companions")
    name = unpacked_name(path)
    is_followed = info.get("is_followed", False)
    blocks = _Blocks(
        cut_file(source, tables, name, stream, start, context, has_settled, companions, before, is_followed=is_followed)
    )
    for block, after in blocks:
        context = after
        if start_context is None:
            start_context = block.context
        digest.update(block.data)
        judged.add(block)
        num_units, end = num_units + 1, block.file_offset + len(block.data)
        num_records += block.num_records
    if context is not None and judged.has_marks:
        context = context | {UNDECIDED: judged.undecided}
    return {
        "num_units": num_units,
        "num_records": num_records,
        "problem": None,
        "verdicts": json.dumps(judged.verdicts) if judged.has_marks else None,
        "context": json.dumps(context) if context is not None else None,
        "start_context": json.dumps(start_context) if start_context is not None else None,
        "open_options": blocks.open_options,
    }, end


class _Blocks:
    """What `cut_file` yields; then the options that it returns."""

    def __init__(self, cut: Generator[tuple[FileBlock, dict], None, list[str]]):
        self.cut, self.open_options = cut, list[str]()

    def __iter__(self) -> Iterator[tuple[FileBlock, dict]]:
        self.open_options = yield from self.cut


def read(project: Project, spark: "SparkSession", files: list[dict]):
    """A DataFrame of bronze.blocks rows: each file is read where Spark runs, cut again and checked against its plan.
    In: rows of bronze.files that are planned.
    """
    codecs = {row["source"]: CODECS[project.sources[row["source"]].codec] for row in files}
    return _read(spark, files, unit.BLOCKS, lambda row: _units(project, row, codecs[row["source"]]))


def rows_of(project: Project, files: list[dict]) -> list[dict]:
    """The same rows as dicts. Raises: InletError where a file is not what its plan says."""
    planned = (json.loads(json.dumps(row, default=str)) for row in files)
    return [block for row in planned for block in _units(project, row, CODECS[project.sources[row["source"]].codec])]


def _units(project: Project, row: dict, codec) -> Iterator[dict]:
    found = parquet_rows.units_of(project, row) if _has_rows(project, row) else units_of(project, row, codec)
    suffix = f"~{row['batch_id']}" if row["cause"] == REREAD else ""
    return (unit | {"unit_id": unit["unit_id"] + suffix} for unit in found)


def read_delivered(project: Project, spark: "SparkSession", files: list[dict]):
    """A DataFrame of bronze.delivered rows; None where the files' blocks are all that was delivered."""
    files = [row for row in files if is_compressed(row["path"]) or _has_rows(project, row)]
    return _read(spark, files, unit.DELIVERED, lambda row: delivered_of(project, row)) if files else None


def _read(spark: "SparkSession", files: list[dict], columns, rows_of):
    schema = ", ".join(f"{c.name} {c.type}" for c in columns if c.name != "landed_at")

    def write(batches):
        import pyarrow as pa

        for batch in batches:
            for planned in batch.column(0).to_pylist():
                for row in rows_of(json.loads(planned)):
                    yield pa.RecordBatch.from_pylist([row], schema=lake.arrow_schema(schema))

    planned = spark.createDataFrame([(json.dumps(row, default=str),) for row in files], "planned string")
    spread = planned.repartition(min(len(files), MAX_TASKS))
    return spread.mapInArrow(write, schema).selectExpr("*", "current_timestamp() as landed_at")


def units_of(project: Project, row: dict, codec=None) -> Iterator[dict]:
    """Rows of bronze.blocks of a planned file. Raises: InletError where the file is not what its plan says."""
    digest = hashlib.sha256()
    context = json.loads(row["start_context"]) if row["start_context"] else None
    if is_compressed(row["path"]):
        with planned_file(project, row) as stream:
            yield from (row_of(block, row) for block in _blocks(project, row, stream, context, codec))
        return
    with open_file(project, row["path"]) as stream:
        hash_bytes(stream, digest, row["ofs_start"])
        listed = _Limited(stream, row["ofs_end"] - row["ofs_start"])
        for block in _blocks(project, row, listed, context, codec):
            digest.update(block.data)
            yield row_of(block, row)
    check(digest, row)


def delivered_of(project: Project, row: dict) -> Iterator[dict]:
    """Rows of bronze.delivered of a planned file: its bytes as they came. Raises: InletError where the file is not what
    its plan says.
    """
    offset, digest = 0, hashlib.sha256()
    with open_file(project, row["path"]) as stream:
        while data := stream.read(min(LEN_DELIVERED, row["ofs_end"] - offset)):
            yield {name: row[name] for name in ("source", "path", "batch_id")} | {"file_offset": offset, "bytes": data}
            digest.update(data)
            offset += len(data)
    check(digest, row)


def _blocks(project: Project, row: dict, stream, context, codec) -> Iterator[FileBlock]:
    source, has_tail = project.sources[row["source"]], True  # the plan already decided how far to read
    tables = project.tables_of(source)
    name, start = unpacked_name(row["path"]), row["ofs_start"]
    end = json.loads(row["context"] or "{}")
    codec = codec or CODECS[source.codec]
    is_cut = offers(codec, "ENDS_WITH_NEXT") and "problem" not in end  # else its end was as it is here
    is_ended = is_cut and codec.is_ended(end)
    given = {"codec": codec, "is_followed": is_ended, "goes_on": is_cut and not is_ended}
    for block, _ in cut_file(source, tables, name, stream, start, context, has_tail, **given):
        yield block


def _has_rows(project: Project, row: dict) -> bool:
    return project.sources[row["source"]].transport in ROW_TRANSPORTS


def row_of(block: FileBlock, planned: dict) -> dict:
    """A row of bronze.blocks, but for its time. In: source, path and batch_id."""
    return {name: planned[name] for name in ("source", "path", "batch_id")} | {
        "unit_id": f"{planned['source']}/{planned['path']}@{block.file_offset}",
        "file_offset": block.file_offset,
        "size_bytes": len(block.data),
        "sha256": hashlib.sha256(block.data).hexdigest(),
        "context": json.dumps(block.context),
        "num_records": block.num_records,
        "bytes": block.data,
    }


def stored(project: Project, where: str) -> list[dict]:
    """Blocks of bronze in order, without their bytes, their contexts read. In: SQL for which. Read without Spark."""
    rest = f"where {where} order by source, path, file_offset"
    rows = lake.peek(project.lakehouse_path(), "bronze.blocks", HEAD, rest)
    return [row | {"context": json.loads(row["context"])} for row in rows]


class _Limited:
    """A stream that ends after `length` bytes."""

    def __init__(self, stream, length: int):
        self.stream, self.left = stream, length

    def read(self, length: int = -1) -> bytes:
        data = self.stream.read(self.left if length < 0 else min(length, self.left))
        self.left -= len(data)
        return data
