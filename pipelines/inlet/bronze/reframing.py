"""Files that could not be framed, framed again from the bytes that bronze keeps: the blocks of a batch that decodes
rejects again.

A rest that could not be framed has no known beginning but its first byte, so all its pieces are framed together, as far
as the file is landed. The batch gets a row of bronze.files, as one that lands gets: with what the codec knows at the
end now, from which the file goes on when it grows, and for which files after it wait; and with what its marks judge.
That row is written last: while it is not there, what an attempt that died wrote is deleted, and the rest framed anew.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from inlet import lake, unit
from inlet.bronze import ordered, replay
from inlet.bronze.blocks import row_of
from inlet.bronze.files import LEN_READ, is_compressed, unpacked_name
from inlet.bronze.framing import LEN_HEAD, FileBlock, attempt, cut_file, unframed
from inlet.bronze.judged import UNDECIDED, Judged
from inlet.bronze.plan import landed
from inlet.codecs import CODECS
from inlet.config import Project
from inlet.errors import Reject
from inlet.source import Source
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEN_WRITTEN = 64 << 20  # of blocks at a time
PIECE = ["unit_id", "source", "path", "file_offset", "size_bytes", "context", "batch_id"]


class Rest(NamedTuple):
    """What of a file could not be framed. `last` is the file's newest row of bronze.files without a problem."""

    pieces: list[dict]  # PIECE, in order
    last: dict

    @property
    def is_whole(self) -> bool:
        """Do its pieces follow each other, up to all that is landed of the file?"""
        ends = [piece["file_offset"] + piece["size_bytes"] for piece in self.pieces]
        is_last = is_compressed(self.last["path"]) or ends[-1] == self.last["ofs_end"]
        return is_last and ends[:-1] == [piece["file_offset"] for piece in self.pieces[1:]]


def rests(project: Project, units: set[str], before: int | None = None) -> dict[tuple[str, str], Rest]:
    """By (source, path), what could not be framed of these units. In: units; the batch before which they were landed.
    Read without Spark.
    """
    if not units:
        return {}
    pieces: dict[tuple[str, str], list[dict]] = {}
    for row in lake.peek(project.lakehouse_path(), "bronze.blocks", PIECE, "where context like '%\"problem\"%'"):
        if row["unit_id"] in units and "problem" in (context := json.loads(row["context"])):
            pieces.setdefault((row["source"], row["path"]), []).append(row | {"context": context})
    last = _newest(landed(project), before)
    return {
        place: Rest(sorted(found, key=lambda piece: piece["file_offset"]), last[place])
        for place, found in pieces.items()
    }


def _newest(files: list[dict], before: int | None) -> dict[tuple[str, str], dict]:
    """(source, path) -> its newest row of bronze.files without a problem."""
    good = [row for row in files if not row["problem"] and (before is None or row["batch_id"] < before)]
    return {(row["source"], row["path"]): row for row in sorted(good, key=lambda row: row["batch_id"])}


def frame_again(project: Project, spark: "SparkSession", batch_id: int) -> None:
    """Frame again what a batch is to decode again and could not be framed. Doing it twice changes nothing."""
    files = [row for row in landed(project) if not row["problem"]]
    found = rests(project, {row["unit_id"] for row in replay.of_batch(project, batch_id)}, batch_id)
    again = {row["batch_id"] for row in replay.planned(project)}
    found = {
        place: rest
        for place, rest in found.items()  # but for what an earlier batch, that was to decode the same, has framed
        if not (rest.last["batch_id"] in again and rest.last["batch_id"] > rest.pieces[-1]["batch_id"])
    }
    if not found or any(row["batch_id"] == batch_id for row in files):
        return
    spark.sql(f"delete from bronze.blocks where batch_id = {batch_id}")
    rows, now = [], datetime.now(UTC)
    with _Blocks(spark, batch_id) as blocks:
        for name in sorted({source for source, _ in found}):
            of_source = {path: rest for (source, path), rest in found.items() if source == name}
            own = [row for row in files if row["source"] == name and row["batch_id"] < batch_id]
            rows += _frame(project, spark, project.sources[name], of_source, own, blocks)
    framed = spark.createDataFrame(
        [tuple((row | {"batch_id": batch_id, "landed_at": now})[c.name] for c in unit.FILES) for row in rows],
        ", ".join(f"{c.name} {c.type}" for c in unit.FILES),
    )
    lake.append(framed.coalesce(1), "bronze.files", f"inlet-bronze-framed-again-{batch_id}", batch_id)


class _Start(NamedTuple):
    """Where a rest begins."""

    path: str
    context: dict | None  # what is known there; None at the first byte of a file, which is opened anew
    place: int | None  # of the file, where files depend on each other


def _frame(
    project: Project,
    spark: "SparkSession",
    source: Source,
    found: dict[str, Rest],
    files: list[dict],
    blocks: "_Blocks",
) -> list[dict]:
    """Rows of bronze.files of the rests of a source, which are framed in the order of their files. In: rests by path;
    the source's rows of bronze.files; what writes blocks.
    """
    streams = {path: _Pieces(spark, rest.pieces) for path, rest in found.items()}
    starts = [_start(project, source, path, rest, files, streams[path]) for path, rest in found.items()]
    anew = {start.path for start in starts if start.context is None}
    others = {path: row for (_, path), row in _newest(files, None).items() if path not in anew}
    unplaced = [path for path, row in others.items() if ordered.tells_no_place(source, row, row)]
    unplaced += [start.path for start in starts if start.place is None]
    first = [ordered.may_be_first(source.name, path) for path in unplaced]
    order = ordered.Order(source, others, first) if ordered.is_ordered(source) else None
    rows = []
    for path, context, place in sorted(starts, key=lambda start: (start.place is None, start.place or 0, start.path)):
        before, waits = None, None
        if order and context is None and place is not None:
            known = [*order.ends, *order.stuck, *(start.place for start in starts if start.place is not None)]
            before, waits = order.ends.get(place - 1), order.waits_for(place, min(known))
        framed = _cut(project, source, path, found[path], streams[path], context, before, waits)
        row, end = _framed(found[path], framed, (before or {}) if context is None else None, blocks)
        rows.append(row)
        if order and place is not None:
            order.add(place, end)
    return rows


def _framed(rest: Rest, framed, before: dict | None, blocks: "_Blocks") -> tuple[dict, dict]:
    """The row of bronze.files of a rest that was framed, and what is known at its end. In: its blocks, each with the
    context after it; of a file that was opened anew the end of the one before it.
    """
    path, first = rest.last["path"], rest.pieces[0]
    undecided = (json.loads(rest.last["context"]) if before is None else before).get(UNDECIDED, [])
    judged, end = Judged(undecided, path, first["file_offset"], blocks.batch_id), {}
    for block, after in framed:
        end = after
        judged.add(block)
        blocks.add(row_of(block, {"source": first["source"], "path": path, "batch_id": blocks.batch_id}))
    end = end | {UNDECIDED: judged.undecided} if judged.has_marks else end
    row = rest.last | {
        "ofs_start": rest.last["ofs_end"],
        "num_units": 0,
        "start_context": None,
        "context": json.dumps(end),
        "verdicts": json.dumps(judged.verdicts) if judged.has_marks else None,
    }
    return row, end


def _start(project: Project, source: Source, path: str, rest: Rest, files: list[dict], stream: "_Pieces") -> _Start:
    codec, first = CODECS[source.codec], rest.pieces[0]
    if first["file_offset"]:
        context = {name: value for name, value in first["context"].items() if name != "problem"}
        for row in files:  # what was framed again since says more of the place than what was known when it was landed
            if row["path"] == path and row["ofs_end"] == first["file_offset"] and not is_compressed(path):
                after = json.loads(row["context"] or "{}")
                context = context if "problem" in after else after
        context.pop(UNDECIDED, None)
        return _Start(path, context, codec.place(context) if ordered.is_ordered(source) else None)
    if not ordered.is_ordered(source):
        return _Start(path, None, None)
    head = stream.peek(LEN_HEAD + 1)
    opened = attempt(
        codec.open_file, unpacked_name(path), head[:LEN_HEAD], len(head) <= LEN_HEAD, source, project.tables_of(source)
    )
    return _Start(path, None, codec.place(opened) if isinstance(opened, dict) else None)


def _cut(
    project: Project, source: Source, path: str, rest: Rest, stream: "_Pieces", context, before, waits: str | None
) -> Iterator[tuple[FileBlock, dict]]:
    """Blocks of a rest, each with the context after it. In: what the file waits for, if it does."""
    offset, companions = rest.pieces[0]["file_offset"], rest.pieces[0]["context"].get("companions")
    if waits:
        why = Reject("file_before_missing", 0, 0, 0, "the file before it", waits, b"")
        return unframed(offset, stream.read(LEN_READ), stream, {"companions": companions} if companions else {}, why)
    tables, name = project.tables_of(source), unpacked_name(path)
    return cut_file(source, tables, name, stream, offset, context, True, companions, before)


class _Pieces:
    """The bytes of blocks as one stream, which are fetched one by one."""

    def __init__(self, spark: "SparkSession", pieces: list[dict]):
        self.data, self._left = b"", iter(pieces)
        self._spark = spark

    def peek(self, length: int) -> bytes:
        while len(self.data) < length and (piece := next(self._left, None)):
            [row] = self._spark.sql(
                f"select bytes from bronze.blocks where batch_id = {piece['batch_id']} and "
                f"source = {literal(piece['source'])} and unit_id = {literal(piece['unit_id'])}"
            ).collect()
            self.data += bytes(row.bytes)
        return self.data[:length]

    def read(self, length: int) -> bytes:
        data = self.peek(length)
        self.data = self.data[length:]
        return data


class _Blocks:
    """Writes rows of bronze.blocks, some at a time."""

    def __init__(self, spark: "SparkSession", batch_id: int):
        self.batch_id, self._spark = batch_id, spark
        self._rows: list[dict] = []

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if not failure:
            self._write()

    def add(self, row: dict) -> None:
        self._rows.append(row | {"unit_id": f"{row['unit_id']}~{self.batch_id}"})
        if sum(row["size_bytes"] for row in self._rows) >= LEN_WRITTEN:
            self._write()

    def _write(self) -> None:
        columns = [c for c in unit.BLOCKS if c.name != "landed_at"]
        rows = self._spark.createDataFrame(
            [tuple(row[c.name] for c in columns) for row in self._rows],
            ", ".join(f"{c.name} {c.type}" for c in columns),
        )
        lake.append(rows.selectExpr("*", "current_timestamp() as landed_at"), "bronze.blocks")
        self._rows = []
