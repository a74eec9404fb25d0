"""Files that are landed as a whole, because only their end makes them readable: compressed and columnar files, Avro
containers, messages kept in Parquet. They do not grow.

A Parquet file has an end of its own, its footer, and is landed as soon as that is there. A compressed file and an Avro
container may be readable while they are still being written: they wait until they have settled.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from inlet.bronze.files import (
    DAMAGED,
    as_problem,
    first_line,
    hash_bytes,
    is_compressed,
    open_file,
    rewritten,
    unpacked,
)
from inlet.config import Project
from inlet.errors import InletError
from inlet.source import Source


def rest_of(source: Source, info: dict) -> str:
    """What a file waits for that has no end of its own."""
    if info["modified"] is None:
        return (
            "its end, which nothing tells: its store gives no time of its last change; settle_minutes: 0 says that "
            "files come whole"
        )
    return (
        f"its end, which only rest tells: it is taken once nothing was written for settle_minutes "
        f"({source.settle_minutes:g}); settle_minutes: 0 says that files come whole"
    )


def plan_whole(
    project: Project,
    source: Source,
    file: tuple[str, dict, dict | None, bool],
    read: Callable[[IO[bytes]], dict],
    kind: str = "a compressed file that can be unpacked",
    damaged: tuple[type[Exception], ...] = (),
    has_end: bool = False,
) -> dict | str | None:
    """One row of bronze.files; what the file waits for; None where it is no longer what was listed, or where its own
    end has not come.

    In: its path, what was listed of it, its row so far, whether it has settled; `read`, which says num_units, context
    and start_context, or the row of a problem; what the file should be, and what else than DAMAGED `read` raises where
    it is not; whether such a file can only be read once it is whole. A compressed file is read unpacked.
    """
    path, info, known, has_settled = file
    if not (known or has_end or has_settled):
        return rest_of(source, info)
    if is_compressed(path) and not info["size"] and not known:
        return as_problem(0, "unreadable_file", kind, "no bytes", "Deliver it again")
    digest = hashlib.sha256()
    with open_file(project, path) as stream:
        hash_bytes(stream, digest, info["size"])
        if stream.read(1):
            return None
    if known:
        if digest.hexdigest() == known["sha256"]:
            return known | {"num_units": 0, "verdicts": None}  # its marks have judged already
        return rewritten(path, 0, "the file as landed before", "other bytes")
    try:
        with unpacked(project, path) if is_compressed(path) else open_file(project, path) as stream:
            planned = read(stream)
    except damaged + DAMAGED as error:
        if getattr(error, "errno", None) or isinstance(error, (FileNotFoundError, PermissionError)):
            raise  # the machine failed, not the file
        return as_problem(0, "unreadable_file", kind, first_line(error), "Deliver it again") if has_settled else None
    if planned.get("problem"):
        return planned | {"sha256": digest.hexdigest()}
    return planned | {"ofs_start": 0, "ofs_end": info["size"], "sha256": digest.hexdigest(), "problem": None}


@contextmanager
def planned_file(project: Project, row: dict) -> Iterator[IO[bytes]]:
    """A planned file, unpacked, from its beginning. Raises: InletError where the file is not what its plan says."""
    digest = hashlib.sha256()
    with open_file(project, row["path"]) as stream:
        hash_bytes(stream, digest, row["ofs_end"] + 1)
    check(digest, row)
    with unpacked(project, row["path"]) if is_compressed(row["path"]) else open_file(project, row["path"]) as stream:
        yield stream


def check(digest, row: dict) -> None:
    """Raises: InletError where a file's bytes are not those that were planned."""
    if digest.hexdigest() != row["sha256"]:
        raise InletError(f"sha-256 {digest.hexdigest()}, planned {row['sha256']}")
