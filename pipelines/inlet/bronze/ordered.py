"""Files that depend on each other: each is read with what was known at the end of the one before it, for which it
waits.

The first file of a source is the one of the lowest place when the source is first read; all its files have told their
places by then. One that comes later with a place before it has no beginning that is known any more, and waits until a
person decides.
"""

import json
from typing import NamedTuple

from inlet.bronze.files import GONE, cannot_open, is_compressed, open_file, unpacked, unpacked_name
from inlet.bronze.framing import LEN_HEAD
from inlet.bronze.judged import UNDECIDED
from inlet.bronze.whole_files import rest_of
from inlet.codecs import CODECS
from inlet.config import Project
from inlet.errors import Reject
from inlet.source import FILE_TRANSPORTS, Source


class Listed(NamedTuple):
    """A file that is to be looked at."""

    source: Source
    path: str
    info: dict  # size, modified, problem; batch_id, companions
    known: dict | None  # its last row of bronze.files without a problem
    has_settled: bool


def is_ordered(source: Source) -> bool:
    return source.transport in FILE_TRANSPORTS and hasattr(CODECS[source.codec], "follow")


def undecided(source: Source, files: list[dict]) -> list[list]:
    """Ranges of a source that no verdict has come for: [path, first byte, end, records, batch]. In: its rows of
    bronze.files.
    """
    newest: dict[str, tuple[int, int, list]] = {}
    for row in sorted(files, key=lambda row: row["batch_id"]):
        context = json.loads(row["context"]) if row["context"] and row["verdicts"] else {}
        if UNDECIDED in context:
            place = CODECS[source.codec].place(context) if is_ordered(source) else 0
            newest[row["path"]] = (place, row["batch_id"], context[UNDECIDED])
    if is_ordered(source):
        return max(newest.values(), default=(0, 0, []))[2]
    return [one for _, _, spans in newest.values() for one in spans]


def plan(project: Project, files: list[Listed], landed: dict[str, dict], planned, place_of) -> dict[str, dict | str]:
    """By path a row of bronze.files, or what the file waits for. In: files of one source as plan_batch lists them; rows
    of those that were landed before, by path; planned(file, before), which plans one; place_of, which is `place`, maybe
    in a process of its own."""
    source = files[0].source
    codec = CODECS[source.codec]
    ends: dict[int, dict] = {}  # place -> context at the end of what is landed of it
    for row in landed.values():
        if row["context"] and "problem" not in (context := json.loads(row["context"])):
            ends[codec.place(context)] = context
    rows: dict[str, dict | str] = {}
    places = {file.path: place_of(project, codec, file) for file in files}
    unplaced = sorted(path for path, place in places.items() if isinstance(place, str) and place != GONE)
    first = min([*ends, *(place for place in places.values() if isinstance(place, int))], default=0)
    for file in sorted(
        files,
        key=lambda file: (
            not isinstance(places[file.path], int),
            places[file.path] if isinstance(places[file.path], int) else 0,
        ),
    ):
        path, number, known = file.path, places[file.path], file.known
        if isinstance(number, str):
            rows[path] = number
            continue
        before = ends.get(number - 1) if number is not None else None
        if number is None or known:
            rows[path] = planned(file)  # it goes on where it was, or is rejected as a whole
        elif unplaced and not ends:
            rows[path] = f"{unplaced[0]}, which may be the first of {source.name}"
        elif number in ends:
            rows[path] = f"a person: file {number} of {source.name} was read under another name"
        elif number < first or ends and number < min(ends):
            rows[path] = f"a person: {source.name} was begun with file {min(ends)}, and this is file {number}"
        elif number > first and (before is None or not codec.is_ended(before)):
            rows[path] = f"file {number - 1} of {source.name}" + (" to end" if before else "")
        else:
            rows[path] = planned(file, before)
        result = rows[path]
        if (
            isinstance(result, dict)
            and result["context"]
            and number is not None
            and "problem" not in (context := json.loads(result["context"]))
        ):
            ends[number] = context
    return rows


def place(project: Project, codec, file: Listed) -> int | str | None:
    """The place of a file; None where it tells none, so that it is rejected as a whole; what the file waits for where
    it is too short to tell, may not be whole or cannot be opened; GONE.
    """
    source, path, info, known, has_settled = file
    if known and known["context"]:
        context = json.loads(known["context"])
        return None if "problem" in context else codec.place(context)
    if is_compressed(path) and not has_settled:
        return rest_of(source, info)
    try:
        with (unpacked if is_compressed(path) else open_file)(project, path) as stream:
            head = stream.read(LEN_HEAD + 1)
        opened = codec.open_file(
            unpacked_name(path), head[:LEN_HEAD], len(head) <= LEN_HEAD, source, project.tables_of(source)
        )
    except FileNotFoundError:
        return GONE
    except OSError as error:
        is_damaged = not (error.errno or isinstance(error, PermissionError))
        return None if is_damaged else cannot_open(error)
    except Exception:  # whatever a codec or a library did not foresee: planning it says what
        return None
    if isinstance(opened, Reject):
        return None if has_settled else "more of its beginning"
    return codec.place(opened)
