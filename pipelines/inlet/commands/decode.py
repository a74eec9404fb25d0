"""`inlet decode FILE`: a file's changes without a lakehouse, by the same pure code that silver runs."""

import fnmatch
import glob
import json
from collections.abc import Iterator
from pathlib import Path

from inlet.bronze import messages as messages_of
from inlet.bronze.blocks import cut_file
from inlet.codecs import CODECS
from inlet.config import Project, Source
from inlet.errors import ConfigError, Reject


def decode_file(project: Project, file: Path, source_name: str | None) -> Iterator[tuple[str, dict]]:
    """("change" | "control" | "reject", row) for each record of a file, in order."""
    if not file.is_file():
        raise ConfigError(f"{file} is no file", "Name one file of a source")
    source = _source_of(project, file, source_name)
    decode = _decode_blocks if CODECS[source.codec].GRAIN == "block" else _decode_messages
    yield from decode(project, source, file)


def _source_of(project: Project, file: Path, name: str | None) -> Source:
    if name:
        if name not in project.sources:
            raise ConfigError(f"There is no source {name}", f"There are: {', '.join(project.sources)}")
        return project.sources[name]
    everyone = list(project.sources.values())
    found = everyone if len(everyone) == 1 else [
        s for s in everyone if "://" not in s.path and _is_in(file.resolve(), *project.folder(s))]
    if len(found) == 1:
        return found[0]
    raise ConfigError(f"{file} lies in the folder of {'several sources' if found else 'no source'}",
                      f"Say --source; there are: {', '.join(project.sources)}")


def _is_in(file: Path, folder: str, pattern: str) -> bool:
    whole = f"{glob.escape(folder)}/{pattern}"
    if "**" in pattern:                                # which may stand for no folder at all
        return any(fnmatch.fnmatch(str(file), one) for one in (whole, whole.replace("**/", "")))
    return file.match(whole)


def _decode_blocks(project: Project, source: Source, file: Path) -> Iterator[tuple[str, dict]]:
    codec, tables = CODECS[source.codec], project.tables_of(source)
    with file.open("rb") as stream:
        for block, _ in cut_file(source, tables, file.name, stream, 0, file.stat().st_size, None, True):
            found = codec.decode(block.data, block.context, source, tables)
            for row in codec.changes_as_rows(found, block.context, source, tables):
                yield "change", row | {"file_offset": block.file_offset + row["unit_offset"]}
            for control in found.controls:
                yield "control", control | {"file_offset": block.file_offset + control["unit_offset"]}
            for reject in found.rejects:
                yield "reject", reject_row(reject) | {"file_offset": block.file_offset + reject.byte_offset}


def _decode_messages(project: Project, source: Source, file: Path) -> Iterator[tuple[str, dict]]:
    codec, tables = CODECS[source.codec], project.tables_of(source)
    path = str(file.resolve()).removeprefix(f"{project.root}/")
    row = messages_of.plan_file(project, source, path, {"size": file.stat().st_size}, None, True)
    if row["problem"]:
        problem = json.loads(row["problem"])
        raise ConfigError(f"{file}: expected {problem['expected']}, found {problem['found'].rstrip('.')}", "See docs/a_source_from_zero.md for what a source may deliver")
    planned = row | {"source": source.name, "path": path, "batch_id": 0}
    messages = [message for batch in messages_of.batches_of(project, planned) for message in batch.to_pylist()]
    for message in messages:
        message["unit_id"] = f"{source.name}/{message['topic']}/{message['partition']}/{message['offset']}"
    seen: dict[tuple, list] = {}
    for message in messages:
        if message["timestamp"] and (table := codec.refresh_table(message, source, tables)):
            seen.setdefault((source.name, table), []).append((message["timestamp"], message["timestamp"]))
    loads = codec.assign_loads([], seen, codec.options(source).load_gap_minutes)
    for message in messages:
        for found in codec.decode_message(message, source, tables, loads):
            result = found["result"]
            yield result, reject_row(found["reject"]) | {"unit_id": message["unit_id"]} if result == "reject" else \
                {k: v for k, v in found.items() if k != "result"}


def reject_row(reject: Reject) -> dict:
    return {"kind": reject.kind, "byte_offset": reject.byte_offset, "expected": reject.expected, "found": reject.found,
            "table": ".".join(filter(None, (reject.source_schema, reject.source_table))) or None, "column": reject.column_name,
            "change_seq": reject.change_seq, "says": str(reject), "raw": reject.raw.hex()}
