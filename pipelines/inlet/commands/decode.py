"""`inlet decode FILE`: a file's changes without a lakehouse, by the same pure code that silver runs."""

import fnmatch
import glob
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import IO

from inlet import storage
from inlet.bronze import load_times, lookups, parquet_rows
from inlet.bronze.companions import companions_of, content_of, fails, num_records
from inlet.bronze.files import DAMAGED, first_line, is_compressed, unpacked, unpacked_name
from inlet.bronze.framing import FileBlock, attempt, cut_file
from inlet.bronze.judged import Judged
from inlet.bronze.transports import TRANSPORTS
from inlet.codecs import CODECS
from inlet.codecs.codec import UNDECIDED, change_rows, decode_block
from inlet.codecs.results import STANDS, Control, Waiting
from inlet.config import Project
from inlet.errors import ConfigError, Reject
from inlet.source import ROW_TRANSPORTS, Source

LEN_RAW = 4096  # bytes of a reject that are shown


def decode_file(project: Project, file: Path, source_name: str | None) -> Iterator[tuple[str, dict]]:
    """("change" | "control" | "reject" | "part", row) for each record of a file, in order."""
    if not file.is_file():
        raise ConfigError(f"{file} is no file", "Name one file of a source")
    source = source_of(project, file, source_name)
    if source.broker:
        raise ConfigError(f"{source.name} reads from a broker, and no files", "Name a source that reads files")
    decode = _decode_messages if source.brings_messages else _decode_blocks
    for kind, row in decode(project, source, file):
        yield kind, row if source.header else {name: value for name, value in row.items() if name != "header"}


def source_of(project: Project, file: Path, name: str | None) -> Source:
    """The source of a file: the one that is named, the only one, or that whose folder or pattern it matches."""
    if name:
        if name not in project.sources:
            raise ConfigError(f"There is no source {name}", f"There are: {', '.join(project.sources)}")
        return project.sources[name]
    everyone = list(project.sources.values())
    found = (
        everyone
        if len(everyone) == 1
        else [s for s in everyone if storage.is_local(s.path) and _is_in(file.resolve(), *project.folder(s))]
    )
    if len(found) == 1:
        return found[0]
    raise ConfigError(
        f"{file} lies in the folder of {'several sources' if found else 'no source'}",
        f"Say --source; there are: {', '.join(project.sources)}",
    )


def _is_in(file: Path, folder: str, pattern: str) -> bool:
    whole = f"{glob.escape(folder)}/{pattern}"
    if "**" in pattern:  # which may stand for no folder at all
        return any(fnmatch.fnmatch(str(file), one) for one in (whole, whole.replace("**/", "")))
    return file.match(whole)


def _decode_blocks(project: Project, source: Source, file: Path) -> Iterator[tuple[str, dict]]:
    codec, tables = CODECS[source.codec], project.tables_of(source)
    parts: dict[str, list[Waiting]] = {}
    for block, judged in judged_blocks(blocks_of(project, source, file), file.name):
        found = attempt(decode_block, codec, block.data, block.context, source, tables)
        if isinstance(found, Reject):
            yield "reject", reject_row(found, block.file_offset) | {"file_offset": block.file_offset}
            continue
        rows = [
            (row["unit_offset"], row["unit_offset"], "change", row)
            for row in change_rows(codec, found, block.context, tables)
        ]
        rows += [(one.unit_offset, one.unit_offset, "control", control_row(one)) for one in found.controls]
        rows += [(no.unit_offset, no.byte_offset, "reject", reject_row(no, block.file_offset)) for no in found.rejects]
        for start, offset, kind, row in sorted(rows, key=lambda one: one[:2]):
            verdict = verdict_at(judged, block.file_offset + start)  # of the record: a fault may be at its end
            yield kind, row | {"file_offset": block.file_offset + offset} | verdict
        for part in found.parts:
            at = block.file_offset + part.unit_offset
            if verdict := verdict_at(judged, at):
                yield "part", {"file_offset": at, "unit_length": part.unit_length} | verdict
                continue
            record = block.data[part.unit_offset : part.unit_offset + part.unit_length]
            parts.setdefault(part.key, []).append(
                Waiting(f"{source.name}/{file.name}@{block.file_offset}", part, record, block.context)
            )
    yield from _joined(codec, parts, source, tables)


def blocks_of(project: Project, source: Source, file: Path) -> Iterator[FileBlock]:
    """The units of a file of records or rows."""
    if source.transport in ROW_TRANSPORTS:
        for unit in parquet_rows.units_of(project, planned(project, source, file)):
            yield FileBlock(unit["file_offset"], unit["bytes"], json.loads(unit["context"]), unit["num_records"])
        return
    tables, path = project.tables_of(source), path_of(project, file)
    with opened(project, file) as (_, stream):
        cut = cut_file(
            source, tables, unpacked_name(path), stream, 0, None, True, companions_with(project, source, path) or None
        )
        yield from (block for block, _ in cut)


def judged_blocks(blocks: Iterator[FileBlock], path: str) -> Iterator[tuple[FileBlock, list[list]]]:
    """Blocks with the ranges of the file, [first byte, end, verdict], that the feed's marks judge as anything but
    standing. A block waits for the marks of its records, which come after them; those of the last ones may be in the
    next file.
    """
    judged, waiting = Judged([], path, 0, 0), list[FileBlock]()
    for block in blocks:
        judged.add(block)
        if not judged.has_marks:
            yield block, []
            continue
        waiting.append(block)
        start = min((one[1] for one in judged.undecided), default=block.file_offset + len(block.data))
        while waiting and waiting[0].file_offset + len(waiting[0].data) <= start:
            yield waiting.pop(0), _not_standing(judged)
    for block in waiting:
        yield block, _not_standing(judged) + [[one[1], one[2], UNDECIDED] for one in judged.undecided]


def _not_standing(judged: Judged) -> list[list]:
    return sorted([start, end, verdict] for _, start, end, *_, verdict in judged.verdicts if verdict != STANDS)


def verdict_at(judged: list[list], at: int) -> dict:
    """What a row says of a record that does not stand, which a run leaves out, or for now. In: ranges in order.

    >>> [verdict_at([[10, 20, "abandoned"], [20, 30, "undecided"]], at) for at in (9, 19, 20, 30)]
    [{}, {'verdict': 'abandoned'}, {'verdict': 'undecided'}, {}]
    """
    last = bisect_right(judged, at, key=itemgetter(0)) - 1
    return {"verdict": judged[last][2]} if last >= 0 and at < judged[last][1] else {}


def refusal(project: Project, source: Source, file: Path) -> str | None:
    """Why nothing of a file can be read, in words; None where its first block can be framed."""
    try:
        first = next(blocks_of(project, source, file), None)
    except ConfigError as error:
        return f"{error.message}. {error.remedy}"
    no = first and first.context.get("problem")
    return f"{path_of(project, file)}: {no['kind']}: expected {no['expected']}, found {no['found']}" if no else None


def path_of(project: Project, file: Path) -> str:
    return str(file.resolve()).removeprefix(f"{project.root}/")


def companions_with(project: Project, source: Source, path: str) -> dict[str, dict]:
    """The files that come with one. Raises: ConfigError where it waits for one."""
    companions = companions_of(source, path)
    if not isinstance(companions, list):
        why = "it comes with another file" if companions is None else fails(source, companions)
        raise ConfigError(f"{path} is not read by itself: {why}", "Name the file that it comes with")
    found = content_of(project, source, path, companions, True)
    if isinstance(found, str):
        raise ConfigError(f"{path} waits for {found}", "Deliver that, too, or set the option to another value")
    return found


@contextmanager
def opened(project: Project, file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """A file's name without `.gz` and the like, and its bytes, unpacked. Raises: ConfigError where it is damaged."""
    try:
        with unpacked(project, str(file.resolve())) if is_compressed(file.name) else file.open("rb") as stream:
            yield unpacked_name(file.name), stream
    except DAMAGED as error:
        if not is_compressed(file.name):
            raise
        raise ConfigError(f"{file} cannot be unpacked: {first_line(error)}", "Deliver it again") from error


def planned(project: Project, source: Source, file: Path) -> dict:
    """The row of bronze.files that would be planned for a file. Raises: ConfigError where it cannot be read."""
    path = path_of(project, file)
    companions = companions_with(project, source, path)
    info = {"size": file.stat().st_size, "companions": companions}
    info["num_records"] = num_records(source, path, companions)
    row, plan = None, TRANSPORTS[source.transport].plan_file
    while row is None or not row["problem"] and row["ofs_end"] < info["size"]:  # what follows may be what is wrong
        row = plan(project, source, path, info, row, True)
    if row["problem"]:
        problem = json.loads(row["problem"])
        raise ConfigError(
            f"{file}: expected {problem['expected']}, found {problem['found'].rstrip('.')}",
            "See docs/a_source_from_zero.md for what a source may deliver",
        )
    return row | {"source": source.name, "path": path, "batch_id": 0}


def _decode_messages(project: Project, source: Source, file: Path) -> Iterator[tuple[str, dict]]:
    codec, tables = CODECS[source.codec], project.tables_of(source)
    plan = planned(project, source, file)
    messages = [
        message for batch in TRANSPORTS[source.transport].units_of(project, plan) for message in batch.to_pylist()
    ]
    for message in messages:
        message["unit_id"] = f"{source.name}/{message['topic']}/{message['partition']}/{message['offset']}"
    at = load_time_of(source, plan["path"], file)
    messages = [load_times.timed(message, at) for message in messages]
    given = with_lookups(project, source, plan)
    for message in messages if lookups.brings(source) else ():
        given(message)  # what one brings may be named by one before it
    loads = loads_of(codec, source, tables, [given(message) for message in messages] if codec.LOADS else [])

    def decoded(message: dict):
        return codec.decode_message(given(message), source, tables, loads)

    waiting: dict[str, list[Waiting]] = {}
    for message in messages:
        found = attempt(decoded, message)
        if isinstance(found, Reject):
            yield "reject", reject_row(found) | {"unit_id": message["unit_id"]}
            continue
        for row in found.changes:
            yield "change", row
        for control in found.controls:
            yield "control", control_row(control) | {"unit_id": message["unit_id"]}
        for reject in found.rejects:
            yield "reject", reject_row(reject) | {"unit_id": message["unit_id"]}
        for part in found.parts:
            waiting.setdefault(part.key, []).append(Waiting(message["unit_id"], part, message["value"], message))
    yield from _joined(codec, waiting, source, tables)


def _joined(codec, parts: dict[str, list[Waiting]], source: Source, tables: dict) -> Iterator[tuple[str, dict]]:
    """What parts are together; those that wait for others."""
    for key, given in parts.items():
        joined = codec.join(key, given, source, tables)
        for row in joined.changes:
            yield "change", row
        for unit_id, reject in joined.rejects:
            yield "reject", reject_row(reject) | {"unit_id": unit_id}
        for one in joined.waiting:
            place = {"unit_offset": one.part.unit_offset, "unit_length": one.part.unit_length}
            yield "part", {"waits_for": f"others of {key}", "unit_id": one.unit_id} | place


def with_lookups(project: Project, source: Source, plan: dict | None = None) -> Callable[[dict], dict]:
    """What makes of a message what its codec is given: with what it names, looked up once, or brought by a message
    before it or one that was landed. In: the row of bronze.files of the container that brought the messages.
    """
    codec = CODECS[source.codec]
    brought = json.loads((plan or {}).get("start_context") or "{}").get("lookups", {})
    looked_up = {name: text.encode() for name, text in brought.items()}
    if lookups.brings(source):
        looked_up |= lookups.known(project).get(source.name, {})

    def given(message: dict) -> dict:
        if lookups.brings(source):
            looked_up.update({name: value for name, value in codec.brought(message).items() if name not in looked_up})
        for name in codec.lookups(message, source) if lookups.needs_any(source) else ():
            if name not in looked_up and (value := lookups.fetch(project, source, name)) is not None:
                looked_up[name] = value
        return lookups.with_lookups(codec, message, source, looked_up)

    return given


def load_time_of(source: Source, path: str, file: Path) -> datetime | None:
    """The time of a file's messages that no broker gave one, as a run that lands it now has it."""
    return load_times.of_file(source, path, datetime.fromtimestamp(file.stat().st_mtime, UTC))


def loads_of(codec, source: Source, tables: dict, messages: list[dict]) -> list[dict]:
    """The full loads that these messages are of."""
    seen: dict[tuple, list] = {}
    for message in messages if codec.LOADS else ():
        if row := codec.refresh_row(message, source, tables):
            seen.setdefault((source.name, row[0]), []).append((row[1], row[1], message["topic"]))
    return codec.LOADS.assign_loads([], seen, source.options_as(codec.OPTIONS).load_gap_minutes) if codec.LOADS else []


def control_row(control: Control) -> dict:
    return {name: value for name, value in control._asdict().items() if value is not None and name != "unit_offset"}


def reject_row(reject: Reject, start: int = 0) -> dict:
    """A reject as a line. Of a long one its first bytes, and how many more there are: it may be a whole file. In: where
    its unit begins in the file, in which the sentence counts."""
    return {
        "kind": reject.kind,
        "byte_offset": reject.byte_offset,
        "expected": reject.expected,
        "found": reject.found,
        "table": ".".join(filter(None, (reject.source_schema, reject.source_table))) or None,
        "column": reject.column_name,
        "change_seq": reject.change_seq,
        "says": str(replace(reject, byte_offset=start + reject.byte_offset)),
        "raw": reject.raw[:LEN_RAW].hex(),
        **({"raw_goes_on": len(reject.raw) - LEN_RAW} if len(reject.raw) > LEN_RAW else {}),
    }
