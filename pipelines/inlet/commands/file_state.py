"""`inlet status --file`: whether a delivered file may be deleted. Read without Spark."""

import hashlib
import json
import os
from pathlib import Path

from inlet import bronze, lake, storage
from inlet.bronze.files import hash_bytes, listing, open_file, remedy_of_rewritten, why
from inlet.bronze.history import Reading
from inlet.commands import companion, replay
from inlet.config import Project
from inlet.log import counted


def file_state(project: Project, file: str) -> tuple[bool, str]:
    """Is every byte of a delivered file landed and accounted for, so that its source may purge it? And in words. In:
    its path or address.
    """
    past = bronze.History(project)
    # of a link its own name first
    spellings = [str(Path(file).absolute()), str(Path(file).resolve())] if storage.is_local(file) else [file]
    paths = [name.removeprefix(f"{project.root}/") for name in spellings]
    landed = past.of_files(None, paths)
    path = next((path for path in paths if any(row["path"] == path for row in landed)), paths[0])
    if known := companion.state(project, path, past, file_state):
        return known
    rows = [row for row in landed if row["path"] == path]
    if not rows:
        if storage.is_local(file) and not os.path.lexists(file):
            return False, f"{path}: nothing of it is landed, and there is no such file"
        return False, f"{path}: nothing of it is landed" + _why_it_waits(project, path, past)
    if rows[-1]["problem"]:
        problem = json.loads(rows[-1]["problem"])
        return (
            False,
            f"{path}: it is not landed: expected {problem['expected']}, found {problem['found']}. {problem['remedy']}",
        )
    size, digest = rows[-1]["size_bytes"], hashlib.sha256()
    try:
        with open_file(project, path) as stream:
            hash_bytes(stream, digest, rows[-1]["ofs_end"])
            size = stream.seek(0, os.SEEK_END)
        if digest.hexdigest() != rows[-1]["sha256"]:
            return False, f"{path}: it does not hold the bytes that were landed. {remedy_of_rewritten(path)}"
    except FileNotFoundError:  # purged already
        pass
    except PermissionError as error:
        return False, f"{path}: it cannot be opened ({why(error)})"
    if rows[-1]["ofs_end"] < size:
        why_not_all = _why_it_waits(project, path, past)
        return False, f"{path}: {rows[-1]['ofs_end']} of {size} bytes are landed{why_not_all}"
    undecoded = past.undecoded()
    if open_ := sorted({row["batch_id"] for row in rows if (row["batch_id"], row["source"]) in undecoded}):
        return False, f"{path}: all {size} bytes are landed; batch {open_[0]} is not decoded yet"
    batches = ", ".join(str(row["batch_id"]) for row in rows if row["num_units"]) or rows[-1]["batch_id"]
    words = f"{path}: all {size} bytes are landed and accounted for, in batch {batches}"
    num = _num_rejected(project, path, rows)
    return True, words + (f"; {counted(num, 'record')} of it not decoded (`inlet rejects`)" if num else "")


def _num_rejected(project: Project, path: str, landed: list[Reading]) -> int:
    """How many records of a file no run has decoded yet: of its blocks, and of the messages that it holds. In: its rows
    of bronze.files."""
    sources = {row["source"] for row in landed}
    open_ = [row for row in replay.unresolved(project) if row["source"] in sources and row["kind"] != replay.IGNORED]
    if not open_:
        return 0
    blocks = tuple(f"{source}/{path}@" for source in sources)
    of_batches = f"where batch_id in ({', '.join(str(row['batch_id']) for row in landed)})"
    kept = lake.peek(project.lakehouse_path(), "bronze.messages", ["source", "path", "unit_id"], of_batches)
    messages = {(row["source"], row["unit_id"]) for row in kept if row["path"] == path}
    return sum(row["unit_id"].startswith(blocks) or (row["source"], row["unit_id"]) in messages for row in open_)


def _why_it_waits(project: Project, path: str, past: bronze.History) -> str:
    """Why a file that is there is not landed, as the next run would say it; "" where nothing is to be said."""
    for source in project.sources.values():
        if not any(name == path for name, _ in listing(project, source)):
            continue
        plan = bronze.plan_batch(project, [source], past)
        if path in plan.held:
            return f"; it waits for {plan.held[path]}"
        if path in plan.waiting:
            return f"; {plan.what_waits(path)} wait {plan.end_of_wait(path)}"
        return "; the next `inlet run` lands it" if any(row["path"] == path for row in plan.files) else ""
    return "; no source of pipelines/inlet.yml reads it"
