"""Bronze: land files and messages untouched, exactly once.

A batch is planned first: `bronze.files` says which bytes of which files it takes, with their sha-256. Then the units are
written under the batch's number, which Delta takes only once. A run that dies in between leaves a plan without units; the
next run finishes that plan before it makes one of its own. Only whole records are taken from a file that still grows; an
unfinished last record waits, and is landed as a reject once the file has rested for `settle_minutes`.

A file that is not as it was planned when its units are written is set aside with its problem, and planned anew by the next run: what
it held then was never landed, and no file can hold up the others of its batch. A link that leaves its source's folder is not followed.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from inlet import bronze_message, lake, unit
from inlet.codecs import CODECS
from inlet.config import Project, Source
from inlet.errors import InletError, Reject
from inlet.guard import EXPECTED, KIND, Died, in_child, why
from inlet.landing import LEN_READ, as_problem, first_line, hash_bytes, listing, open_file
from inlet.sql import literal

LEN_BLOCK = 1 << 20                    # a unit of about 1 MiB: some 10,000 records, one Arrow batch when decoded
LEN_HEAD = 1 << 20
MAX_TASKS = 64

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
    wanted = []
    for source in sources:
        for path, info in listing(project, source):
            known, has_settled = last.get((source.name, path)), _has_settled(source, info, now)
            if known and (known["size_bytes"], _utc(known["modified_at"])) == (info["size"], info["modified"]):
                tail = 0 if known["problem"] else info["size"] - known["ofs_end"]
                if not tail or not has_settled:
                    new.waiting |= {path: tail} if tail else {}
                    continue
            wanted.append((source, path, info, good.get((source.name, path)), has_settled))
    for (source, path, info, _, _), row in zip(wanted, _plan_files(project, wanted), strict=True):
        if row is None:                            # it grew while it was read
            new.waiting[path] = info["size"]
            continue
        if row["ofs_end"] < info["size"] and not row["problem"]:
            new.waiting[path] = info["size"] - row["ofs_end"]
        if row["num_units"] or row["problem"] or (source.name, path) not in last and row["ofs_end"] == info["size"]:
            new.files.append(row | {"source": source.name, "path": path, "size_bytes": info["size"],
                                    "modified_at": info["modified"], "batch_id": new.batch_id})
    return new


def _plan_files(project: Project, wanted: list[tuple]) -> list[dict | None]:
    """Rows of bronze.files. Codecs read files in a process of their own, which a file may end; then each has one of its own."""
    def planned(file) -> dict | None:
        source, path, info, known, has_settled = file
        planner = _plan_blocks if CODECS[source.codec].GRAIN == "block" else bronze_message.plan
        return info["problem"] or planner(project, source, path, info, known, has_settled)

    def planned_apart(file) -> dict | None:
        try:
            return _apart(lambda: planned(file), file[1])
        except Died as death:
            return as_problem(file[3]["ofs_end"] if file[3] else 0, KIND, EXPECTED, str(death), "Report it with the file")

    try:
        return _apart(lambda: [planned(file) for file in wanted], *(file[1] for file in wanted))
    except Died:
        return [planned_apart(file) for file in wanted]


def _apart(call, *paths: str):
    """What a call gives, made in a process of its own; in this one where there is nothing to read, and for addresses, whose clients do not
    outlive a fork."""
    return in_child(call) if paths and not any("://" in path for path in paths) else call()


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
    """Write the units of a batch whose plan is already in bronze.files. Files that are not as planned are set aside."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for grain, read in (("block", _blocks), ("message", bronze_message.read)):
        files = new.of(grain, project)
        try:
            _append(project, spark, grain, read, files, new.batch_id)
        except (Py4JJavaError, PySparkException):
            problems = [problem for row in files if (problem := _problem_now(project, row, grain))]
            if not problems:
                raise
            for row in problems:
                _set_aside(spark, row)
            aside = {(row["source"], row["path"]) for row in problems}
            _append(project, spark, grain, read, [row for row in files if (row["source"], row["path"]) not in aside], new.batch_id)


def _append(project: Project, spark, grain: str, read, files: list[dict], batch_id: int) -> None:
    if files:
        lake.append(read(project, spark, files, landed(project)), f"bronze.{grain}s", f"inlet-bronze-{grain}s", batch_id)


def _problem_now(project: Project, row: dict, grain: str) -> dict | None:
    """The row of a planned file with the problem that it has when it is read now; None where it is as planned."""
    def read() -> None:
        for _ in (_block_rows if grain == "block" else bronze_message.batches_of)(project, row):
            pass

    try:
        _apart(read, row["path"])
    except Died as death:
        return row | as_problem(row["ofs_start"], KIND, EXPECTED, str(death), "Report it with the file")
    except FileNotFoundError:
        found = "no file"
    except InletError as error:
        found = error.message
    except (OSError, ValueError) as error:         # Arrow's errors are these
        if getattr(error, "errno", None):
            return None                            # the machine failed, not the file: the run fails, and the next one tries again
        return row | as_problem(row["ofs_start"], "unreadable_file", "a file that can be read as planned", first_line(error), "Mend or remove the file")
    else:
        return None
    return row | as_problem(row["ofs_start"], "file_rewritten", "the file as it was planned", found, "Deliver changed content under a new name")


def _set_aside(spark, row: dict) -> None:
    """Its time is taken from the row, so that the next run plans the file anew, even one that is back as it was."""
    spark.sql(f"""update bronze.files set modified_at = timestamp'1970-01-01 00:00:00', ofs_end = ofs_start, sha256 = null, num_units = 0, context = null, start_context = null,
                  problem = {literal(row["problem"])}
                  where batch_id = {row["batch_id"]} and source = {literal(row["source"])} and path = {literal(row["path"])}""")


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)


def _has_settled(source: Source, info: dict, now: float | None) -> bool:
    return (now or time.time()) - info["modified"].timestamp() >= source.settle_minutes * 60


# -- blocks --------------------------------------------------------------------------------------------------------------

def _plan_blocks(project, source, path, info, known, has_settled) -> dict:
    """One row of bronze.files for a file of binary records."""
    start, digest, num_units, end = (known["ofs_end"] if known else 0), hashlib.sha256(), 0, 0
    context = start_context = json.loads(known["context"]) if known and known["context"] else None
    with open_file(project, path) as stream:
        if start:
            hash_bytes(stream, digest, start)
            if digest.hexdigest() != known["sha256"] or info["size"] < start:
                return as_problem(start, "file_rewritten", f"the first {start} bytes as landed before", "other bytes",
                                "Deliver changed content under a new name")
        listed = _Limited(stream, info["size"] - start)          # what comes after the listing is the next run's
        for block, context in cut_file(source, project.tables_of(source), path, listed, start, info["size"], context, has_settled):
            if start_context is None:
                start_context = block.context
            digest.update(block.data)
            num_units, end = num_units + 1, block.file_offset + len(block.data)
    return {"ofs_start": start, "ofs_end": end or start, "sha256": digest.hexdigest(), "num_units": num_units, "problem": None,
            "context": json.dumps(context) if context else None,
            "start_context": json.dumps(start_context) if start_context else None}


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
        opened = _try(codec.open_file, path, rest[:LEN_HEAD], len(rest) >= size and size <= LEN_HEAD, source, tables)
        if isinstance(opened, Reject):
            yield from _whole_rest(offset, rest, stream, {"problem": _problem_of(opened)})
            return
        context = opened
    if context and "problem" in context:             # what follows a place that cannot be framed has no known beginning
        yield from _whole_rest(offset, rest, stream, context)
        return
    while rest:
        more = stream.read(LEN_READ)
        cut = _try(codec.cut, rest, context, source, tables, LEN_BLOCK, not more and has_settled)
        if isinstance(cut, Reject):
            yield from _whole_rest(offset, rest + more, stream, context | {"problem": _problem_of(cut)})
            return
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


def _try(call, *given):
    """What a codec says of a file; where it fails instead, a Reject."""
    try:
        return call(*given)
    except InletError:
        raise
    except Exception as error:                     # whatever a codec did not foresee: no file stops the others
        return Reject(KIND, 0, 0, 0, EXPECTED, why(error), b"")


def _truncated(rest: bytes) -> Reject:
    return Reject("truncated", 0, len(rest), len(rest), "the rest of the record", "the end of the file", b"")


def _problem_of(reject) -> dict:
    return {"kind": reject.kind, "byte_offset": reject.byte_offset - reject.unit_offset, "expected": reject.expected, "found": reject.found}


def _whole_rest(offset: int, rest: bytes, stream, context: dict) -> Iterator[tuple[FileBlock, dict]]:
    """All that is left, in pieces that fit in a row; the context that carries the problem stays, for what a growing file adds."""
    while rest:
        yield FileBlock(offset, rest, context, 1), context
        offset, rest = offset + len(rest), stream.read(LEN_READ)


def _blocks(project: Project, spark, files: list[dict], before: list[dict]):
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
    with open_file(project, row["path"]) as stream:
        hash_bytes(stream, digest, row["ofs_start"])
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
        raise InletError(f"sha-256 {digest.hexdigest()}, planned {row['sha256']}")


class _Limited:
    """A stream that ends after `length` bytes."""

    def __init__(self, stream, length: int):
        self.stream, self.left = stream, length

    def read(self, length: int = -1) -> bytes:
        data = self.stream.read(self.left if length < 0 else min(length, self.left))
        self.left -= len(data)
        return data
