"""Files of records into bronze: cut into blocks, planned, and read again where Spark runs, checked against the plan."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from inlet import lake, unit
from inlet.bronze.files import LEN_READ, MAX_TASKS, as_problem, hash_bytes, open_file
from inlet.bronze.guard import EXPECTED, KIND, why
from inlet.codecs import CODECS
from inlet.codecs.codec import Mark
from inlet.config import Project
from inlet.errors import InletError, Reject

LEN_BLOCK = 1 << 20  # a unit of about 1 MiB: some 10,000 records, one Arrow batch when decoded
LEN_HEAD = 1 << 20
UNDECIDED = "undecided"  # member of a context at the end of a file: ranges of the source that no mark has judged yet
STANDS = "stands"


def plan_file(project, source, path, info, known, has_settled, before: dict | None = None) -> dict:
    """One row of bronze.files for a file of binary records. In: before, the context at the end of the file that it
    follows.
    """
    start, digest, num_units, end = (known["ofs_end"] if known else 0), hashlib.sha256(), 0, 0
    context = start_context = json.loads(known["context"]) if known and known["context"] else None
    undecided = context.pop(UNDECIDED, []) if context else (before or {}).get(UNDECIDED, [])
    with open_file(project, path) as stream:
        if start:
            hash_bytes(stream, digest, start)
            if digest.hexdigest() != known["sha256"] or info["size"] < start:
                return as_problem(
                    start,
                    "file_rewritten",
                    f"the first {start} bytes as landed before",
                    "other bytes",
                    "Deliver changed content under a new name",
                )
        listed = _Limited(stream, info["size"] - start)  # what comes after the listing is the next run's
        judged = Judged(undecided, path, start, info.get("batch_id", 0))
        for block, after in cut_file(
            source,
            project.tables_of(source),
            path,
            listed,
            start,
            info["size"],
            context,
            has_settled,
            info.get("companions"),
            before,
        ):
            context = after
            if start_context is None:
                start_context = block.context
            digest.update(block.data)
            judged.add(block)
            num_units, end = num_units + 1, block.file_offset + len(block.data)
    if context and judged.has_marks:
        context = context | {UNDECIDED: judged.undecided}
    return {
        "ofs_start": start,
        "ofs_end": end or start,
        "sha256": digest.hexdigest(),
        "num_units": num_units,
        "problem": None,
        "verdicts": json.dumps(judged.verdicts) if judged.has_marks else None,
        "context": json.dumps(context) if context else None,
        "start_context": json.dumps(start_context) if start_context else None,
    }


@dataclass(frozen=True)
class FileBlock:
    file_offset: int
    data: bytes
    context: dict
    num_records: int
    marks: list[Mark] | None = None  # in it, by the offset in the file; num_records: of the block


class Judged:
    """Ranges of a source's files as the feed judges them: what stands or was abandoned, and what no mark has judged
    yet.
    """

    def __init__(self, undecided: list[list], path: str, start: int, batch_id: int):
        self.verdicts: list[list] = []  # [path, start, end, records, batch, verdict]
        self.undecided = list(undecided)  # the same without verdict
        self.path, self.batch_id, self.has_marks = path, batch_id, bool(undecided)
        self._start, self._num = start, 0  # of the range that is open at the end of what was added

    def add(self, block: FileBlock) -> None:
        """Judge what the marks of the next block judge. What cannot be framed is judged at once: it is rejected."""
        if "problem" in block.context:
            self._close(block.file_offset)
            self.verdicts.append(
                [self.path, block.file_offset, block.file_offset + len(block.data), 1, self.batch_id, STANDS]
            )
            self._start = block.file_offset + len(block.data)
            return
        self.has_marks |= block.marks is not None
        num = 0
        for mark in block.marks or ():
            self._num += mark.num_records - num
            num = mark.num_records
            self._close(mark.offset)
            for one in self.undecided:
                self._judge(one, mark.verdict)
            self.undecided = []
        self._num += block.num_records - num
        if self._num:
            self.undecided = [one for one in self.undecided if one[:2] != [self.path, self._start]]
            self.undecided.append(
                [self.path, self._start, block.file_offset + len(block.data), self._num, self.batch_id]
            )

    def _close(self, end: int) -> None:
        """End the open range."""
        self.undecided = [one for one in self.undecided if one[:2] != [self.path, self._start]]
        if self._num:
            self.undecided.append([self.path, self._start, end, self._num, self.batch_id])
        self._start, self._num = end, 0

    def _judge(self, one: list, verdict: str) -> None:
        last = self.verdicts[-1] if self.verdicts else None
        if last and last[0] == one[0] and last[2] == one[1] and last[4:] == [one[4], verdict]:
            last[2], last[3] = one[2], last[3] + one[3]  # ranges next to each other are one
        else:
            self.verdicts.append([*one, verdict])


def cut_file(
    source, tables, path, stream, start, size, context, has_settled, companions=None, before=None, codec=None
) -> Iterator[tuple[FileBlock, dict]]:
    """Blocks of a stream from `start` on, each with the context after it. Bytes from there on are read once, in pieces.

    What cannot be framed (a reject of `open_file` or `cut`, or a tail that has settled) is one block whose context
    carries the problem, so that silver rejects it and no byte is lost.
    """
    codec = codec or CODECS[source.codec]
    offset, rest = start, stream.read(LEN_READ)
    if context is None and rest:
        opened = _try(
            _open,
            codec,
            path,
            rest[:LEN_HEAD],
            len(rest) >= size and size <= LEN_HEAD,
            source,
            tables,
            companions,
            before,
        )
        if isinstance(opened, Reject):
            beside = {"companions": companions, "before": before}  # for the day when it is framed again
            yield from _whole_rest(
                offset,
                rest,
                stream,
                {"problem": _problem_of(opened)} | {name: value for name, value in beside.items() if value},
            )
            return
        context = opened
    if context and "problem" in context:  # what follows a place that cannot be framed has no known beginning
        yield from _whole_rest(offset, rest, stream, context)
        return
    while rest:
        more = stream.read(LEN_READ)
        cut = _try(codec.cut, rest, context, source, tables, LEN_BLOCK, not more and has_settled)
        if isinstance(cut, Reject):
            yield from _whole_rest(offset, rest + more, stream, context | {"problem": _problem_of(cut)})
            return
        num = 0
        for n, block in enumerate(cut.blocks):
            after = cut.blocks[n + 1].context if n + 1 < len(cut.blocks) else cut.context
            marks = (
                None
                if cut.marks is None
                else [
                    m._replace(offset=offset + m.offset, num_records=m.num_records - num)
                    for m in cut.marks
                    if block.offset < m.offset <= block.offset + block.length
                ]
            )
            yield (
                FileBlock(
                    offset + block.offset,
                    rest[block.offset : block.offset + block.length],
                    block.context,
                    block.num_records,
                    marks,
                ),
                after,
            )
            num += block.num_records
        offset, rest, context = offset + cut.consumed, rest[cut.consumed :], cut.context
        if cut.problem:
            yield from _whole_rest(offset, rest + more, stream, context | {"problem": _problem_of(cut.problem)})
            return
        if not more:
            break
        rest += more
    if rest and has_settled:
        yield from _whole_rest(offset, rest, stream, context | {"problem": _problem_of(_truncated(rest))})


def _open(codec, path, head, is_whole, source, tables, companions, before) -> dict | Reject:
    """The context of a file's first byte."""
    opened = codec.open_file(path, head, is_whole, source, tables)
    if isinstance(opened, Reject):
        return opened
    opened = opened | {"companions": companions} if companions else opened
    return codec.follow(opened, before) if hasattr(codec, "follow") else opened


def _try(call, *given):
    """What a codec says of a file; where it fails instead, a Reject."""
    try:
        return call(*given)
    except InletError:
        raise
    except Exception as error:  # whatever a codec did not foresee: no file stops the others
        return Reject(KIND, 0, 0, 0, EXPECTED, why(error), b"")


def _truncated(rest: bytes) -> Reject:
    return Reject("truncated", 0, len(rest), len(rest), "the rest of the record", "the end of the file", b"")


def _problem_of(reject) -> dict:
    return {
        "kind": reject.kind,
        "byte_offset": reject.byte_offset - reject.unit_offset,
        "expected": reject.expected,
        "found": reject.found,
    }


def _whole_rest(offset: int, rest: bytes, stream, context: dict) -> Iterator[tuple[FileBlock, dict]]:
    """All that is left, in pieces that fit in a row; the context that carries the problem stays, for what a growing
    file adds.
    """
    while rest:
        yield FileBlock(offset, rest, context, 1), context
        offset, rest = offset + len(rest), stream.read(LEN_READ)


def read(project: Project, spark, files: list[dict], before: list[dict]):
    """A DataFrame of bronze.blocks rows: each file is read where Spark runs, cut again and checked against its plan."""
    schema = ", ".join(f"{c.name} {c.type}" for c in unit.BLOCKS if c.name != "landed_at")
    codecs = {row["source"]: CODECS[project.sources[row["source"]].codec] for row in files}
    rows = [(json.dumps(row, default=str),) for row in files]
    planned = spark.createDataFrame(rows, "planned string").repartition(min(len(rows), MAX_TASKS))
    return planned.mapInArrow(_writer(project, schema, codecs), schema).selectExpr(
        "*", "current_timestamp() as landed_at"
    )


def _writer(project: Project, schema: str, codecs: dict):
    def write(batches):
        import pyarrow as pa

        for batch in batches:
            for said in batch.column(0).to_pylist():
                planned = json.loads(said)
                for row in units_of(project, planned, codecs[planned["source"]]):
                    yield pa.RecordBatch.from_pylist([row], schema=lake.arrow_schema(schema))

    return write


def units_of(project: Project, row: dict, codec=None) -> Iterator[dict]:
    """Rows of bronze.blocks of a planned file. Raises: InletError where the file is not what its plan says."""
    source, digest, end = project.sources[row["source"]], hashlib.sha256(), row["ofs_end"]
    with open_file(project, row["path"]) as stream:
        hash_bytes(stream, digest, row["ofs_start"])
        context = json.loads(row["start_context"]) if row["start_context"] else None
        limited = _Limited(stream, end - row["ofs_start"])
        has_tail = True  # the plan already decided how far to read
        for block, _ in cut_file(
            source,
            project.tables_of(source),
            row["path"],
            limited,
            row["ofs_start"],
            end,
            context,
            has_tail,
            codec=codec,
        ):
            digest.update(block.data)
            yield row_of(block, source, row["path"], row["batch_id"])
    if digest.hexdigest() != row["sha256"]:
        raise InletError(f"sha-256 {digest.hexdigest()}, planned {row['sha256']}")


def row_of(block: FileBlock, source, path: str, batch_id: int) -> dict:
    """A row of bronze.blocks, but for its time."""
    return {
        "unit_id": f"{source.name}/{path}@{block.file_offset}",
        "source": source.name,
        "path": path,
        "file_offset": block.file_offset,
        "size_bytes": len(block.data),
        "sha256": hashlib.sha256(block.data).hexdigest(),
        "context": json.dumps(block.context),
        "num_records": block.num_records,
        "bytes": block.data,
        "batch_id": batch_id,
    }


class _Limited:
    """A stream that ends after `length` bytes."""

    def __init__(self, stream, length: int):
        self.stream, self.left = stream, length

    def read(self, length: int = -1) -> bytes:
        data = self.stream.read(self.left if length < 0 else min(length, self.left))
        self.left -= len(data)
        return data
