"""Files that could not be framed, framed again from the bytes that bronze keeps: the blocks of a batch that decodes
rejects again.

A rest that could not be framed has no known beginning but its first byte, so all its pieces are framed together, as far
as the file is landed. The batch gets a row of bronze.files, as one that lands gets: with what the codec knows at the
end now, from which the file goes on when it grows, and for which files after it wait; and with what its marks judge.
That row is written last: while it is not there, what an attempt that died wrote is deleted, and the rest framed anew.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from inlet import lake, unit
from inlet.bronze import ordered
from inlet.bronze.blocks import row_of
from inlet.bronze.companions import miscounted, num_records
from inlet.bronze.files import LEN_READ, has_settled, is_compressed, unpacked_name
from inlet.bronze.framing import LEN_HEAD, FileBlock, attempt, cut_file, unframed
from inlet.bronze.guard import EXPECTED, KIND, Died, in_child
from inlet.bronze.history import FRAMED_AGAIN, History
from inlet.bronze.judged import Judged
from inlet.bronze.landing import check_sources
from inlet.bronze.rests import Rest, rests
from inlet.codecs import CODECS
from inlet.codecs.codec import UNDECIDED
from inlet.config import Project
from inlet.errors import Reject
from inlet.source import Source
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEN_WRITTEN = 64 << 20  # of blocks at a time


def frame_again(project: Project, spark: "SparkSession", batch_id: int) -> None:
    """Frame again what a batch is to decode again and could not be framed. Doing it twice changes nothing.

    A codec that fails, or ends its process, stops no other source: its rests are rejected as they are.
    """
    past = History(project)
    planned = past.replays_of(batch_id)
    if not planned or past.of_batch(batch_id):
        return
    check_sources(project, batch_id, planned)
    found = rests(project, past, {row["unit_id"] for row in planned}, batch_id)
    if not found:
        return
    spark.sql(f"delete from bronze.blocks where batch_id = {batch_id}")
    rows, now = [], datetime.now(UTC)
    for name in sorted({source for source, _ in found}):
        source, of_source = project.sources[name], {path: rest for (s, path), rest in found.items() if s == name}
        with TemporaryDirectory() as folder:
            staged = {path: Path(folder, str(n)) for n, path in enumerate(of_source)}
            for path, rest in of_source.items():
                _stage(spark, rest, staged[path])
            own = [row for row in past.of_source(name) if row["batch_id"] < batch_id and not row["problem"]]
            out, coming = Path(folder, "blocks"), ordered.places_unread(project, source, {row["path"] for row in own})
            frame = partial(_frame, project, source, of_source, staged, own, coming, batch_id, out)
            try:
                framed = in_child(partial(attempt, frame))
            except Died as death:
                framed = Reject(KIND, 0, 0, 0, EXPECTED, str(death), b"")
            if isinstance(framed, Reject):
                framed = _write_out(out, partial(_leave, of_source, staged, batch_id, framed))
            rows += framed
            _write(spark, out)
    again = [row | {"batch_id": batch_id, "landed_at": now} for row in rows]
    app_id = f"inlet-bronze-framed-again-{batch_id}"  # its own: a batch may be framed after a later one
    lake.add_rows(project.lakehouse_path(), "bronze.files", again, app_id=app_id, version=batch_id)


def _stage(spark: "SparkSession", rest: Rest, file: Path) -> None:
    """Write the bytes of a rest into a file: where codecs read, there is no Spark."""
    with file.open("wb") as out:
        for piece in rest.pieces:
            [row] = spark.sql(
                f"select bytes from bronze.blocks where batch_id = {piece['batch_id']} and "
                f"source = {literal(piece['source'])} and unit_id = {literal(piece['unit_id'])}"
            ).collect()
            out.write(row.bytes)


def _write_out(out: Path, frame: Callable[[Callable[[dict], None]], list[dict]]) -> list[dict]:
    """What `frame` gives, the rows of bronze.blocks that it takes in a file."""
    with out.open("wb") as stream:
        return frame(lambda row: pickle.dump(row, stream))


class _Start(NamedTuple):
    """Where a rest begins."""

    path: str
    context: dict | None  # what is known there; None at the first byte of a file, which is opened anew
    place: int | None  # of the file, where files depend on each other


def _frame(
    project: Project,
    source: Source,
    found: dict[str, Rest],
    staged: dict[str, Path],
    files: Sequence[dict],
    coming: list[int],
    batch_id: int,
    out,
) -> list[dict]:
    """Rows of bronze.files of the rests of a source, which are framed in the order of their files. In: rests by path,
    and where their bytes are; the source's rows of bronze.files, and the places of files that are not landed; where
    rows of bronze.blocks go.
    """
    starts = [_start(project, source, path, rest, files, staged[path]) for path, rest in found.items()]
    order = _order(source, starts, files) if ordered.is_ordered(source) else None

    def frame(take) -> list[dict]:
        rows = []
        for path, context, place in sorted(starts, key=lambda s: (s.place is None, s.place or 0, s.path)):
            before, waits = None, None
            known = (
                [*order.ends, *order.stuck, *coming, *(s.place for s in starts if s.place is not None)] if order else []
            )
            if order and context is None and place is not None:
                before, waits = order.ends.get(place - 1), order.waits_for(place, min(known))
            is_followed = place is not None and place < max(known)
            with staged[path].open("rb") as stream:
                framed = _cut(project, source, found[path], stream, context, before, waits, is_followed)
                row, end = _framed(found[path], framed, (before or {}) if context is None else None, batch_id, take)
            rows.append(row)
            if order and place is not None:
                order.add(place, end)
        return rows

    return _write_out(out, frame)


def _order(source: Source, starts: list[_Start], files: Sequence[dict]) -> ordered.Order:
    """What is known of the files of a source but those that are opened anew. In: its rows of bronze.files."""
    anew = {start.path for start in starts if start.context is None}
    newest = {row["path"]: row for row in sorted(files, key=lambda row: row["batch_id"])}
    others = {path: row for path, row in newest.items() if path not in anew}
    unplaced = [path for path, row in others.items() if ordered.tells_no_place(source, row, row)]
    unplaced += [start.path for start in starts if start.place is None]
    return ordered.Order(source, others, [ordered.may_be_first(source.name, path) for path in unplaced])


def _framed(rest: Rest, framed, before: dict | None, batch_id: int, take: Callable[[dict], None]) -> tuple[dict, dict]:
    """The row of bronze.files of a rest that was framed, and what is known at its end. In: its blocks, each with the
    context after it; of a file that was opened anew the end of the one before it; what takes rows of bronze.blocks.
    """
    first, end = rest.pieces[0], dict[str, Any]()
    undecided = (json.loads(rest.last["context"]) if before is None else before).get(UNDECIDED, [])
    judged = Judged(undecided, first["path"], rest.start, batch_id)
    for block, after in framed:
        end = after
        judged.add(block)
        row = row_of(block, {"source": first["source"], "path": first["path"], "batch_id": batch_id})
        take(row | {"unit_id": f"{row['unit_id']}~{batch_id}"})
    end = end | {UNDECIDED: judged.undecided} if judged.has_marks else end
    row = rest.last | {
        "ofs_start": rest.last["ofs_end"],
        "num_units": 0,
        "start_context": None,
        "context": json.dumps(end),
        "verdicts": json.dumps(judged.verdicts) if judged.has_marks else None,
        "cause": FRAMED_AGAIN,
    }
    return row, end


def _start(project: Project, source: Source, path: str, rest: Rest, files: Sequence[dict], staged: Path) -> _Start:
    codec = CODECS[source.codec]
    if rest.start:
        context = {name: value for name, value in rest.pieces[0]["context"].items() if name != "problem"}
        own = [row for row in files if row["path"] == path]
        began = max((row["batch_id"] for row in own if row["ofs_start"] == 0), default=0)
        for row in own:  # what was framed again since says more of the place than what was known when it was landed
            if row["batch_id"] >= began and row["ofs_end"] == rest.start and not is_compressed(path):
                after = json.loads(row["context"] or "{}")
                context = context if "problem" in after else after
        context.pop(UNDECIDED, None)
        return _Start(path, context, codec.place(context) if ordered.is_ordered(source) else None)
    if not ordered.is_ordered(source):
        return _Start(path, None, None)
    with staged.open("rb") as stream:
        head = stream.read(LEN_HEAD + 1)
    is_whole = len(head) <= LEN_HEAD and _has_settled(source, rest)
    opened = attempt(codec.open_file, unpacked_name(path), head[:LEN_HEAD], is_whole, source, project.tables_of(source))
    return _Start(path, None, codec.place(opened) if isinstance(opened, dict) else None)


def _has_settled(source: Source, rest: Rest) -> bool:
    """Will no more follow the bytes that are landed?"""
    return is_compressed(rest.last["path"]) or has_settled(source, rest.last["modified_at"])


def _cut(
    project: Project,
    source: Source,
    rest: Rest,
    stream,
    context: dict | None,
    before: dict | None,
    waits: str | None,
    is_followed: bool,
) -> Iterator[tuple[FileBlock, dict]]:
    """Blocks of a rest, each with the context after it; what a file that grows does not tell yet is rejected again. In:
    what the file waits for, if it does; whether the next one is there.
    """
    companions = rest.pieces[0]["context"].get("companions")
    end, beside = rest.start, {"companions": companions} if companions else {}
    if waits:
        why = Reject("file_before_missing", 0, 0, 0, "the file before it", waits, b"")
        yield from unframed(end, stream.read(LEN_READ), stream, beside, why)
        return
    tables, name, is_final = project.tables_of(source), unpacked_name(rest.last["path"]), _has_settled(source, rest)

    def cut() -> Iterator[tuple[FileBlock, dict]]:
        return cut_file(
            source, tables, name, stream, rest.start, context, is_final, companions, before, is_followed=is_followed
        )

    num_said = num_records(source, rest.last["path"], companions or {}) if context is None else None
    if isinstance(num_said, int):
        opened = [(block.num_records, "problem" in block.context) for block, _ in cut()]
        stream.seek(0)
        num_found = sum(num for num, is_unframed in opened if not is_unframed)
        if opened and not opened[0][1] and num_found != num_said:
            yield from unframed(end, stream.read(LEN_READ), stream, beside, miscounted(num_said, num_found))
            return
    for block, context in cut():  # noqa: B020  the last one is what is known behind them
        end = block.file_offset + len(block.data)
        yield block, context
    if end < rest.start + rest.size_bytes:
        stream.seek(end - rest.start)
        why = Reject("truncated", 0, 0, 0, "what follows in the file, to tell how it goes on", "its end so far", b"")
        yield from unframed(end, stream.read(LEN_READ), stream, beside if context is None else context, why)


def _leave(found: dict[str, Rest], staged: dict[str, Path], batch_id: int, why: Reject, take) -> list[dict]:
    """The rests as they are, because their codec fails."""
    rows = []
    for path, rest in found.items():
        context = {name: value for name, value in rest.pieces[0]["context"].items() if name != "problem"}
        with staged[path].open("rb") as stream:
            left = unframed(rest.start, stream.read(LEN_READ), stream, context, why)
            rows.append(_framed(rest, left, None, batch_id, take)[0])
    return rows


def _write(spark: "SparkSession", out: Path) -> None:
    """Append rows of bronze.blocks that lie in a file, some at a time."""
    rows: list[dict] = []
    with out.open("rb") as stream:
        while stream.peek(1):
            rows.append(pickle.load(stream))
            if sum(row["size_bytes"] for row in rows) >= LEN_WRITTEN:
                rows = _append(spark, rows)
    if rows:
        _append(spark, rows)


def _append(spark: "SparkSession", rows: list[dict]) -> list[dict]:
    columns = [c for c in unit.BLOCKS if c.name != "landed_at"]
    blocks = spark.createDataFrame(
        [tuple(row[c.name] for c in columns) for row in rows], ", ".join(f"{c.name} {c.type}" for c in columns)
    )
    lake.append(blocks.selectExpr("*", "current_timestamp() as landed_at"), "bronze.blocks")
    return []
