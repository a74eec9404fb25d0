"""Files that were removed before they were landed: the writer of a feed removes files after a time (retention).

A file that was listed once, was not landed whole, and is gone is a certain gap (`file_purged`): all of it, or what
follows the bytes that were landed. Where new files of a table arrive and none of its landed ones is listed any more,
files between them may have arrived and been removed (`files_may_be_missing`). Both are rows of bronze.files with a
problem, so that silver rejects them; a full load of the table resolves them.

Files that are listed and not landed whole are kept by `inlet run` in `_listed/<source>.json` of the lakehouse, for no
batch has them.
"""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from inlet import storage
from inlet.bronze import history
from inlet.bronze.files import as_problem, unpacked_name
from inlet.bronze.framing import attempt
from inlet.bronze.history import History, Place, Reading
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.source import Source

FOLDER = "_listed"
PURGED, MAYBE = GAPS = ("file_purged", "files_may_be_missing")
REMEDY = "Reload the table in Qlik"
ASKS_PERSON = "a person:"  # beginning of what a file waits for that somebody may take away

Places = dict[Place, Reading]  # the last reading of each file


class Seen(NamedTuple):
    """A file that was listed and is not landed whole."""

    listed_at: str  # first
    size: int  # last


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


def plan(project: Project, source: Source, past: History, new) -> None:
    """Add to a plan (plan.py) the gaps of a source."""
    listed, own = new.listed[source.name], [row for row in new.files if row["source"] == source.name]
    rows = _gone(project, source, listed, past)
    if source.options_as(CODECS[source.codec].OPTIONS).landed_files == "kept":  # type: ignore[attr-defined]
        rows += _maybe(source, listed, history.last(past.of_source(source.name)), own)
    for row in rows:
        told = {"source": source.name, "batch_id": new.batch_id, "size_bytes": 0, "modified_at": None}
        new.files.append(row | told)
        problem = json.loads(row["problem"])
        what = f"{row['path']}: expected {problem['expected']}, found {problem['found']}. {problem['remedy']}"
        new.notes[f"{source.name}, {problem['table']}"] = what


def _gone(project: Project, source: Source, listed: dict[str, dict], past: History) -> list[dict]:
    """Files that were listed once, were not landed whole, and are gone."""
    gone = {path: one for path, one in seen(project, source).items() if path not in listed}
    last = history.last(past.of_files([source.name], gone))
    gone = {path: one for path, one in gone.items() if _is_owed(last.get((source.name, path)), one)}
    rows = []
    for path, table in tables_of(source, gone).items():
        start = last[source.name, path]["ofs_end"] if (source.name, path) in last else 0
        what = f"what follows byte {start} of the file" if start else "the file"
        expected = f"{what} that was listed first at {gone[path].listed_at} UTC"
        rows.append({"path": path} | as_problem(start, PURGED, expected, "no file", REMEDY, table=table))
    return rows


def _is_owed(row: dict | None, one: Seen) -> bool:
    """Are bytes of a file neither landed nor rejected? In: its last row of bronze.files."""
    return row is None or not row["problem"] and row["ofs_end"] < one.size


def _maybe(source: Source, listed: dict[str, dict], last: Places, planned: list[dict]) -> list[dict]:
    """The tables of which new files are planned and no landed one is listed."""
    begun = [path for (of, path), row in last.items() if of == source.name and (row["ofs_end"] or not is_gap(row))]
    landed = tables_of(source, begun)
    fresh = tables_of(source, [r["path"] for r in planned if (source.name, r["path"]) not in last and not r["problem"]])
    kept = {table for path, table in landed.items() if path in listed}
    first = {table: path for path, table in sorted(fresh.items(), reverse=True)}
    found = "none: all that were landed are removed, so files between may have been, too"
    return [
        {"path": f"{first[table]} (files before it)"}
        | as_problem(0, MAYBE, "a file of the table that was landed before", found, REMEDY, table=table)
        for table in sorted(first.keys() & set(landed.values()) - kept)
    ]


def seen(project: Project, source: Source) -> dict[str, Seen]:
    """The files that were not landed whole when the last run listed them, by path."""
    files, name = _place(project, source)
    found = json.loads(files.cat_file(name)) if files.exists(name) else {}
    # an earlier Inlet wrote no sizes, for it kept only files of which nothing was landed
    return {path: Seen(one, 0) if isinstance(one, str) else Seen(*one) for path, one in found.items()}


def keep(project: Project, plan, past: History) -> None:
    """Keep which files are listed and not landed whole, of feeds that remove files. In: a plan (plan.py)."""
    for name, listed in plan.listed.items():
        if name not in plan.unlisted:
            _keep(project, project.sources[name], listed, plan.held, past)


def _keep(project: Project, source: Source, listed: dict[str, dict], held: dict[str, str], past: History) -> None:
    before, now = seen(project, source), f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    paths = [path for path in listed if not held.get(path, "").startswith(ASKS_PERSON)]
    first = {path: one.listed_at for path, one in before.items()}
    there = {path: Seen(first.get(path, now), listed[path]["size"]) for path in tables_of(source, paths)}
    gone = {path: one for path, one in before.items() if path not in listed}
    last = history.last(past.of_files([source.name], gone | there))
    found = {path: one for path, one in (gone | there).items() if _is_owed(last.get((source.name, path)), one)}
    if found != before:
        files, name = _place(project, source)
        files.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
        files.pipe_file(f"{name}.new", json.dumps(found, ensure_ascii=False).encode(errors="backslashreplace"))
        files.mv(f"{name}.new", name)  # a run that dies leaves the file whole, as it was


def _place(project: Project, source: Source) -> tuple[Any, str]:
    return storage.open_store(project.files_path(FOLDER, f"{source.name}.json"))
