"""Files that depend on each other: each is read with what was known at the end of the one before it, for which it
waits.

The first file of a source is the one of the lowest place when the source is first read; all its files have told their
places by then. One that comes later with a place before it has no beginning that is known any more, and waits until a
person decides.
"""

import json
from collections.abc import Sequence
from shlex import quote
from typing import NamedTuple

from inlet.bronze import framing
from inlet.bronze.files import (
    GONE,
    as_problem,
    cannot_open,
    has_settled,
    is_compressed,
    listing,
    open_file,
    unpacked,
    unpacked_name,
)
from inlet.bronze.framing import LEN_HEAD, attempt
from inlet.bronze.guard import Died, apart
from inlet.bronze.whole_files import rest_of
from inlet.codecs import CODECS
from inlet.codecs.codec import UNDECIDED, offers
from inlet.config import Project
from inlet.source import FILE_TRANSPORTS, Source

MISSING = "file_before_missing"


class Listed(NamedTuple):
    """A file that is to be looked at."""

    source: Source
    path: str
    info: dict  # size, modified, problem; batch_id, companions
    known: dict | None  # its last row of bronze.files without a problem
    has_settled: bool


def is_ordered(source: Source) -> bool:
    return source.transport in FILE_TRANSPORTS and offers(CODECS[source.codec], "follow")


def ends_with_next(source: Source) -> bool:
    """Is a file whole as soon as the next one is there?"""
    return is_ordered(source) and CODECS[source.codec].ENDS_WITH_NEXT


def undecided(source: Source, files: Sequence[dict]) -> list[list]:
    """Ranges of a source that no verdict has come for: [path, first byte, end, records, batch]. In: its rows of
    bronze.files.
    """
    newest: dict[str, tuple[int, int, list]] = {}
    for row in sorted(files, key=lambda row: row["batch_id"]):
        context = json.loads(row["context"]) if row["context"] and row["verdicts"] else {}
        if UNDECIDED in context and (not is_ordered(source) or framing.is_opened(context)):
            place = CODECS[source.codec].place(context) if is_ordered(source) else 0
            newest[row["path"]] = (place, row["batch_id"], context[UNDECIDED])
    if is_ordered(source):
        return max(newest.values(), default=(0, 0, []))[2]
    return [one for _, _, spans in newest.values() for one in spans]


class Order:
    """What is known of the files of a source by their places. In: the source; the newest row of bronze.files of each of
    its files, by path; what files of it wait for while others may come before them, in words.
    """

    def __init__(self, source: Source, landed: dict[str, dict], unplaced: list[str]):
        self.source, self.codec = source, CODECS[source.codec]
        self.unplaced = list(unplaced)
        self.ends: dict[int, dict] = {}  # place -> context at the end of what is landed of it
        self.stuck: set[int] = set()  # places of files whose rest could not be framed
        for row in landed.values():
            context = json.loads(row["context"]) if row["context"] else {}
            if framing.is_opened(context):
                self.add(self.codec.place(context), context)

    def add(self, place: int, context: dict) -> None:
        """A file is read up to here."""
        if "problem" in context:
            self.stuck.add(place)
        else:
            self.ends[place] = context
            self.stuck.discard(place)

    def waits_for(self, place: int, first: int) -> str | None:
        """What a file waits for that was not read before, in words; None where it can be read now. In: its place; the
        least place that is known."""
        name, known = self.source.name, self.ends.keys() | self.stuck
        if place in known:
            return (
                f"a person: file {place} of {name} was read under another name; if this is that file delivered anew, "
                "put it in that one's place, under its name, then `inlet replay --file PATH`; or take it away"
            )
        if known and place < min(known):
            return (
                f"a person: {name} was begun with file {min(known)}, and this is file {place}; read it as a source of "
                "its own, or take it away"
            )
        if place == first:
            return next(iter(self.unplaced), None)
        before = self.ends.get(place - 1)
        if place - 1 in self.stuck:
            return (
                f"file {place - 1} of {name}, whose rest was rejected: `inlet replay`, or `inlet replay --file PATH` "
                "once it is delivered anew"
            )
        if before is None or not self.codec.is_ended(before):
            return f"file {place - 1} of {name}" + (" to end" if before else "")
        return None

    def has_grown_late(self, place: int, file: Listed) -> bool:
        """Has a file more bytes than it had when the next one was begun behind them?"""
        is_begun = place + 1 in self.ends and place in self.ends
        return bool(is_begun and file.known and file.info["size"] > file.known["ofs_end"])

    def lacks(self, place: int, numbered: dict[str, int]) -> bool:
        """Is the file before one that was never read not there at all? In: places of the files that are."""
        return place - 1 not in self.ends.keys() | self.stuck | set(numbered.values()) and place > min(
            [*self.ends, *self.stuck, *numbered.values()], default=place
        )


def missing(name: str, place: int) -> dict:
    """A row of bronze.files of a file whose predecessor has not come, though the file itself has settled."""
    expected = f"file {place} of {name}, behind which this file goes on"
    return as_problem(0, MISSING, expected, "no such file", "Deliver it: the next run reads both")


def grown_late(name: str, place: int, file: Listed) -> str:
    """What a file waits for that has grown after the next one was read."""
    assert file.known is not None
    return (
        f"a person: file {place} of {name} has grown to {file.info['size']:,} bytes after file {place + 1} was read, "
        f"which goes on after its first {file.known['ofs_end']:,}; "
        f"`inlet replay --file {quote(file.path)}` reads it all"
    )


def is_missing(row: dict | None) -> bool:
    """Does a row of bronze.files say that the file before is not there?"""
    return bool(row and row["problem"] and json.loads(row["problem"])["kind"] == MISSING)


def may_be_first(name: str, path: str) -> str:
    """What the files of a source wait for while one tells no place that is landed or refused."""
    return f"a person: {path} may be the first of {name}; fix it or take it away"


def tells_no_place(source: Source, last: dict | None, good: dict | None) -> bool:
    """Is a file there of which nobody knows where it belongs? In: its newest row of bronze.files, and the newest
    without a problem.
    """
    if not is_ordered(source) or not last:
        return False
    return not good or not framing.is_opened(json.loads(good["context"] or "{}"))


def plan(
    project: Project, files: list[Listed], landed: dict[str, dict], unplaced: list[str], planned, place_of
) -> dict[str, dict | str]:
    """By path a row of bronze.files, or what the file waits for. In: files of one source as plan_batch lists them; rows
    of those that were landed before, by path; other files that tell no place; planned(file, before), which plans one;
    place_of, which is `place`, maybe in a process of its own."""
    places = {file.path: place_of(project, CODECS[files[0].source.codec], file) for file in files}
    numbered = {path: place for path, place in places.items() if isinstance(place, int)}
    coming = sorted(path for path, place in places.items() if isinstance(place, str) and place != GONE)
    own = [
        f.path for f in files if places[f.path] is None and (not f.known or tells_no_place(f.source, f.known, f.known))
    ]
    name = files[0].source.name
    waits = [f"{path}, which may be the first of {name}" for path in coming]
    order = Order(files[0].source, landed, [*waits, *(may_be_first(name, path) for path in [*unplaced, *own])])
    first = min([*order.ends, *order.stuck, *numbered.values()], default=0)
    last = max([*order.ends, *order.stuck, *numbered.values()], default=0)
    rows: dict[str, dict | str] = {}
    for file in sorted(files, key=lambda file: (file.path not in numbered, numbered.get(file.path, 0))):
        place = places[file.path]
        if isinstance(place, int) and place < last and ends_with_next(file.source):
            file.info["is_followed"] = True
        if isinstance(place, str):
            rows[file.path] = place
        elif isinstance(place, int) and order.has_grown_late(place, file):
            rows[file.path] = grown_late(name, place, file)
        elif place is None or file.known and file.known["context"]:
            rows[file.path] = planned(file)  # it goes on where it was, or is rejected as a whole
        elif why := order.waits_for(place, first):
            is_told = file.info.get("is_told_missing") or not file.has_settled
            rows[file.path] = why if is_told or not order.lacks(place, numbered) else missing(name, place - 1)
        else:
            rows[file.path] = planned(file, order.ends.get(place - 1))
        result = rows[file.path]
        if isinstance(result, dict) and result["context"] and place is not None:
            order.add(place, json.loads(result["context"]))
    return rows


def places_unread(project: Project, source: Source, landed: set[str]) -> list[int]:
    """The places of the files of a source that are delivered and not landed; none where files do not depend on each
    other. In: paths of those that are landed.
    """
    if not is_ordered(source):
        return []
    try:
        listed = [
            (path, info) for path, info in listing(project, source) if path not in landed and not info.get("held")
        ]
    except (OSError, ImportError, ValueError):  # the next plan says it
        return []
    files = [Listed(source, path, info, None, has_settled(source, info["modified"])) for path, info in listed]
    codec = CODECS[source.codec]
    try:
        found = apart(lambda: [attempt(place, project, codec, file) for file in files], *(path for path, _ in listed))
    except Died:  # one of them, which the next plan names
        return []
    return [number for number in found if isinstance(number, int)]


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
        if not head:
            return "a person: it is empty; deliver it whole, or take it away" if has_settled else "its beginning"
        opened = codec.open_file(
            unpacked_name(path),
            head[:LEN_HEAD],
            has_settled and len(head) <= LEN_HEAD,
            source,
            project.tables_of(source),
        )
    except FileNotFoundError:
        return GONE
    except OSError as error:
        is_damaged = not (error.errno or isinstance(error, PermissionError))
        return None if is_damaged else cannot_open(error)
    except Exception:  # whatever a codec or a library did not foresee: planning it says what
        return None
    if opened is None and not has_settled and len(head) <= LEN_HEAD:
        return "more of its beginning"
    return codec.place(opened) if isinstance(opened, dict) else None
