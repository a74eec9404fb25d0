"""The files of a source where they are delivered: which there are, and how one is opened. Nothing else looks for
files.
"""

import bz2
import glob
import gzip
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import fsspec

from inlet.config import Project
from inlet.source import Source

LEN_READ = 16 << 20
DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
MAX_TASKS = 64  # that read files at a time
UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}  # by the name's end


def listing(project: Project, source: Source) -> Iterator[tuple[str, dict]]:
    """(path, {size, modified, problem}) of each file of a source, by name. A folder means all files in it."""
    found = _remote(source.path) if "://" in source.path else _local(*project.folder(source))
    for name, info in sorted(found, key=lambda one: one[0]):
        if not name.rsplit("/", 1)[-1].startswith((".", "_")):
            yield name.removeprefix(f"{project.root}/"), {"problem": None} | info


def _remote(url: str) -> Iterator[tuple[str, dict]]:
    fs, pattern = fsspec.core.url_to_fs(url)
    for name in fs.glob(pattern if glob.has_magic(pattern) else pattern.rstrip("/") + "/*"):
        info = fs.info(name)
        modified = info.get("mtime") or info.get("LastModified") or info.get("updated") or 0
        if info["type"] == "file":
            yield (
                fs.unstrip_protocol(name),
                {"size": info["size"], "modified": _time(modified) if isinstance(modified, (int, float)) else modified},
            )


def _local(folder: str, pattern: str) -> Iterator[tuple[str, dict]]:
    def is_linked(name: str) -> bool:
        """Does a folder on its way stand there as a link?"""
        return any(Path(folder, parent).is_symlink() for parent in Path(name).parents)

    seen = set()
    for name in sorted(glob.iglob(pattern, root_dir=folder, recursive=True), key=lambda name: (is_linked(name), name)):
        file = Path(folder, name)
        real = Path(os.path.realpath(file))  # a link that leads to itself raises nothing, and is no file
        is_inside = real.is_relative_to(folder)
        if is_linked(name) and real in seen:  # else a link to a folder above lists its files again and again
            continue
        seen.add(real)
        if file.is_file() or file.is_symlink() and not is_inside and not file.is_dir():
            stat = file.stat() if is_inside else file.lstat()
            path = os.fsencode(file).decode("utf-8", "backslashreplace")
            problem = None
            if not is_inside:
                problem = as_problem(
                    0,
                    "link_outside",
                    f"a file in {Path(folder).name}",
                    "a link that leads out of it",
                    "Deliver the file itself",
                )
            elif path != str(file):
                problem = as_problem(0, "unreadable_file", "a name in UTF-8", "other bytes", "Rename the file")
            yield path, {"size": stat.st_size, "modified": _time(stat.st_mtime), "problem": problem}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def open_file(project: Project, path: str):
    if "://" not in path:
        return open(project.resolve(path), "rb")
    fs, name = fsspec.core.url_to_fs(path)
    return fs.open(name, "rb")


def is_compressed(path: str) -> bool:
    return path.endswith(tuple(UNPACK))


def unpacked_name(path: str) -> str:
    """The name of what a compressed file holds.

    >>> unpacked_name("landing/1.toy.gz"), unpacked_name("landing/1.toy")
    ('landing/1.toy', 'landing/1.toy')
    """
    return os.path.splitext(path)[0] if is_compressed(path) else path


@contextmanager
def unpacked(project: Project, path: str) -> Iterator[IO[bytes]]:
    """What a compressed file holds, as a stream. Reading it raises one of DAMAGED where it cannot be unpacked."""
    with open_file(project, path) as stream, UNPACK[os.path.splitext(path)[1]](stream, "rb") as content:
        yield content


def beside(project: Project, path: str) -> str | None:
    """The bytes of a file that comes with another one, in hex; None where it has not come."""
    try:
        with open_file(project, path) as stream:
            return stream.read().hex()
    except FileNotFoundError:
        return None


def as_problem(start: int, kind: str, expected: str, found: str, remedy: str) -> dict:
    problem = {"kind": kind, "byte_offset": start, "expected": expected, "found": found, "remedy": remedy}
    return {
        "ofs_start": start,
        "ofs_end": start,
        "sha256": None,
        "num_units": 0,
        "context": None,
        "start_context": None,
        "verdicts": None,
        "problem": json.dumps(problem),
    }


def hash_bytes(stream, digest, length: int) -> None:
    while length > 0 and (data := stream.read(min(LEN_READ, length))):
        digest.update(data)
        length -= len(data)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
