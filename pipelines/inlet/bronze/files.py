"""The files of a source where they are delivered: which there are, and how one is opened. Nothing else looks for
files.
"""

import bz2
import errno
import glob
import gzip
import json
import lzma
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import IO, Any

from inlet import storage
from inlet.config import Project
from inlet.source import Source

LEN_READ = 16 << 20
DAMAGED: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
MAX_TASKS = 64  # that read files at a time
GONE = ""  # what a file waits for that was listed and is not there any more: nothing
UNPACK: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}  # by the name's end, in any case


def listing(project: Project, source: Source) -> Iterator[tuple[str, dict]]:
    """(path, {size, modified, problem, held}) of each file of a source, by name. A folder means all files in it.
    `modified` is None where its store tells no time; `held` says what a file waits for that cannot be looked at.
    """
    found = _local(*project.folder(source)) if storage.is_local(source.path) else _remote(source.path)
    for name, info in sorted(found, key=lambda one: one[0]):
        if not name.rsplit("/", 1)[-1].startswith((".", "_")):
            yield name.removeprefix(f"{project.root}/"), {"problem": None, "held": None} | info


def _remote(pattern: str) -> Iterator[tuple[str, dict]]:
    for address, info in storage.find(pattern):
        try:
            yield address, {"size": info["size"], "modified": _modified(address, info)}
        except FileNotFoundError:  # it is gone since it was listed
            continue


def _modified(address: str, info: dict) -> datetime | None:
    """When a file of a store was written last, in UTC; None where the store does not tell."""
    at = next((info[word] for word in ("mtime", "LastModified", "updated", "last_modified") if info.get(word)), None)
    if at is None:
        try:
            store, name = storage.open_store(address)
            at = store.modified(name)
        except NotImplementedError:
            return None
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:  # a text that is no time tells none: the file is named, and never rests
            return None
    return _time(at) if isinstance(at, (int, float)) else at if at.tzinfo else at.replace(tzinfo=UTC)


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
        path = os.fsencode(file).decode("utf-8", "backslashreplace")
        try:
            status = file.stat() if is_inside else file.lstat()
            is_file = stat.S_ISREG(status.st_mode) or not is_inside and file.is_symlink() and not file.is_dir()
        except OSError as error:
            if os.path.islink(file):
                yield path, _unseen("a person: it is a link that leads nowhere; take it away, or deliver what it names")
            elif error.errno not in (errno.ENOENT, errno.ENOTDIR):  # else it is gone
                yield path, _unseen(cannot_open(error))
            continue
        if is_file:
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
            yield path, {"size": status.st_size, "modified": _time(status.st_mtime), "problem": problem}


def _unseen(why: str) -> dict:
    """What is listed of a file that cannot be looked at. In: what it waits for."""
    return {"size": 0, "modified": None, "held": why}


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def open_file(project: Project, path: str):
    return open(project.resolve(path), "rb") if storage.is_local(path) else storage.Stream(path)


def is_compressed(path: str) -> bool:
    return path.lower().endswith(tuple(UNPACK))


def unpacked_name(path: str) -> str:
    """The name of what a compressed file holds.

    >>> unpacked_name("landing/1.toy.gz"), unpacked_name("landing/1.TOY.GZ"), unpacked_name("landing/1.toy")
    ('landing/1.toy', 'landing/1.TOY', 'landing/1.toy')
    """
    return os.path.splitext(path)[0] if is_compressed(path) else path


@contextmanager
def unpacked(project: Project, path: str) -> Iterator[IO[bytes]]:
    """What a compressed file holds, as a stream. Reading it raises one of DAMAGED where it cannot be unpacked."""
    with open_file(project, path) as stream, UNPACK[os.path.splitext(path)[1].lower()](stream, "rb") as content:
        yield content


def beside(project: Project, path: str) -> str | None:
    """The bytes of a file that comes with another one, in hex; None where it has not come. Raises: OSError where it
    cannot be opened.
    """
    try:
        with open_file(project, path) as stream:
            return stream.read().hex()
    except FileNotFoundError:
        return None


def rewritten(path: str, start: int, expected: str, found: str) -> dict:
    """The problem of a file that is not what was landed of it."""
    return as_problem(start, "file_rewritten", expected, found, remedy_of_rewritten(path))


def remedy_of_rewritten(path: str) -> str:
    """
    >>> remedy_of_rewritten("in/my file").partition(".")[0]
    "If the same file was damaged before and is whole now, take it with `inlet replay --file 'in/my file'`"
    """
    return (
        f"If the same file was damaged before and is whole now, take it with `inlet replay --file {quote(path)}`. "
        "If it is another one under an old name, as of a rotated log, give it a name of its own"
    )


def as_problem(start: int, kind: str, expected: str, found: str, remedy: str, **more) -> dict:
    problem = {"kind": kind, "byte_offset": start, "expected": expected, "found": found, "remedy": remedy} | more
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


def ends_its_reader(start: int, death: Exception) -> dict:
    """The problem of a file whose reading ends the process that reads it. Nothing of it is landed from there on."""
    remedy = "Report it with the file; once that is fixed, deliver it again"
    return as_problem(start, "unreadable_file", "a file that its codec reads or rejects", str(death), remedy)


def hash_bytes(stream, digest, length: int) -> None:
    while length > 0 and (data := stream.read(min(LEN_READ, length))):
        digest.update(data)
        length -= len(data)


def cannot_open(error: OSError, what: str = "it") -> str:
    """What a file waits for that is there and cannot be opened, or whose companion cannot.

    >>> cannot_open(PermissionError(13, "Permission denied"))
    'a person: it cannot be opened (Permission denied); see that Inlet may read it, or take it away'
    """
    return f"a person: {what} cannot be opened ({why(error)}); see that Inlet may read it, or take it away"


def why(error: OSError) -> str:
    return error.strerror or first_line(error)  # those of fsspec have no number and no text of one


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def has_settled(source: Source, modified: datetime | None, now: float | None = None) -> bool:
    """Has nothing been written for so long that the file is taken for whole? Where its store tells no time, nobody
    knows.
    """
    if source.settle_minutes <= 0 or modified is None:
        return source.settle_minutes <= 0
    return (now or time.time()) - utc(modified).timestamp() >= source.settle_minutes * 60
