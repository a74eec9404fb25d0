"""Files that were removed before they were landed: the writer of a feed removes files after a time (retention).

A file that was listed once, was not landed, and is gone is a certain gap (`file_purged`). Where new files of a table
have come and none of its landed ones is there any more, files between them may have come and gone
(`files_may_be_missing`). Both are rows of bronze.files with a problem, so that silver rejects them; a full load of the
table resolves them.

Files that are listed and not landed are kept by `inlet run` in `_listed/<source>.json` of the lakehouse, for no batch
has them.
"""

import json
from datetime import UTC, datetime
from typing import Any

import fsspec

from inlet.bronze.files import as_problem, unpacked_name
from inlet.bronze.framing import attempt
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.source import Source

FOLDER = "_listed"
PURGED, MAYBE = GAPS = ("file_purged", "files_may_be_missing")
REMEDY = "Reload the table in Qlik"
ASKS_PERSON = "a person:"  # beginning of what a file waits for that somebody may take away

Places = dict[tuple[str, str], dict]  # (source, path) -> its last row of bronze.files


def tables_of(source: Source, paths) -> dict[str, str]:
    """path -> the table of the files whose feed removes them after a time."""
    codec = CODECS[source.codec]
    if source.brings_messages or not offers(codec, "purged_table"):
        return {}
    found = {path: attempt(codec.purged_table, unpacked_name(path), source) for path in paths}
    return {path: table for path, table in found.items() if isinstance(table, str)}


def is_gap(row: dict) -> bool:
    """Is a row of bronze.files one of a gap?"""
    return bool(row["problem"]) and json.loads(row["problem"])["kind"] in GAPS


def plan(project: Project, source: Source, last: Places, new) -> None:
    """Add to a plan (plan.py) the gaps of a source."""
    listed, own = new.listed[source.name], [row for row in new.files if row["source"] == source.name]
    rows = _gone(project, source, listed, last)
    if source.options_as(CODECS[source.codec].OPTIONS).landed_files == "kept":  # type: ignore[attr-defined]
        rows += _maybe(source, listed, last, own)
    for row in rows:
        told = {"source": source.name, "batch_id": new.batch_id, "size_bytes": 0, "modified_at": None}
        new.files.append(row | told)
        problem = json.loads(row["problem"])
        what = f"{row['path']}: expected {problem['expected']}, found {problem['found']}. {problem['remedy']}"
        new.notes[f"{source.name}, {problem['table']}"] = what


def _gone(project: Project, source: Source, listed: dict[str, dict], last: Places) -> list[dict]:
    """Files that were listed once, were not landed, and are gone."""
    gone = {p: at for p, at in seen(project, source).items() if p not in listed and (source.name, p) not in last}
    return [
        {"path": path}
        | as_problem(0, PURGED, f"the file that was listed first at {gone[path]} UTC", "no file", REMEDY, table=table)
        for path, table in tables_of(source, gone).items()
    ]


def _maybe(source: Source, listed: dict[str, dict], last: Places, planned: list[dict]) -> list[dict]:
    """The tables of which new files are planned and no landed one is listed."""
    landed = tables_of(source, [path for of, path in last if of == source.name and not is_gap(last[of, path])])
    fresh = tables_of(source, [r["path"] for r in planned if (source.name, r["path"]) not in last and not r["problem"]])
    kept = {table for path, table in landed.items() if path in listed}
    first = {table: path for path, table in sorted(fresh.items(), reverse=True)}
    found = "none: all that were landed are removed, so files between may have been, too"
    return [
        {"path": f"{first[table]} (files before it)"}
        | as_problem(0, MAYBE, "a file of the table that was landed before", found, REMEDY, table=table)
        for table in sorted(first.keys() & set(landed.values()) - kept)
    ]


def seen(project: Project, source: Source) -> dict[str, str]:
    """path -> when a file was listed first, of files that were not landed when the last run listed them."""
    files, name = _place(project, source)
    return json.loads(files.cat_file(name)) if files.exists(name) else {}


def keep(project: Project, plan, landed: list[dict]) -> None:
    """Keep which files are listed and not landed, of feeds that remove files. In: a plan (plan.py); the rows of
    bronze.files so far.
    """
    last = {(row["source"], row["path"]): row for row in landed}
    for name, listed in plan.listed.items():
        if name not in plan.unlisted:
            _keep(project, project.sources[name], listed, plan.held, last)


def _keep(project: Project, source: Source, listed: dict[str, dict], held: dict[str, str], last: Places) -> None:
    before, now = seen(project, source), f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    paths = [path for path in listed if not held.get(path, "").startswith(ASKS_PERSON)]
    there = {path: before.get(path, now) for path in tables_of(source, paths)}
    gone = {path: at for path, at in before.items() if path not in listed}
    found = {path: at for path, at in (gone | there).items() if (source.name, path) not in last}
    if found != before:
        files, name = _place(project, source)
        files.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
        files.pipe_file(name, json.dumps(found, ensure_ascii=False).encode(errors="backslashreplace"))


def _place(project: Project, source: Source) -> tuple[Any, str]:
    return fsspec.core.url_to_fs(project.lakehouse_path(FOLDER, f"{source.name}.json"))
