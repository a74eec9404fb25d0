"""The files that come with others: where they are looked for, and how long a file waits for its own."""

import posixpath
from pathlib import Path

from inlet import storage
from inlet.bronze.files import beside, cannot_open, unpacked_name
from inlet.bronze.framing import attempt
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.codecs.results import Companion
from inlet.config import Project
from inlet.errors import Reject
from inlet.source import Source


def companions_of(source: Source, path: str) -> list[Companion] | Reject | None:
    """The files that come with one; None for a file that is a companion itself; why the codec does not say."""
    codec = CODECS[source.codec]
    if source.brings_messages or not offers(codec, "companions"):
        return []
    return attempt(codec.companions, unpacked_name(path), source)


def fails(source: Source, why: Reject) -> str:
    """What files wait for whose codec fails before it reads any."""
    return f"a person: codec {source.codec} fails: {why.found}"


def content_of(
    project: Project, source: Source, path: str, companions: list[Companion], has_settled: bool
) -> dict[str, dict] | str:
    """The companions of a file by their names, each with its path and its bytes in hex; or what the file waits for."""
    found: dict[str, dict] = {}
    for one in companions:
        try:
            place, data = _nearest(project, one, has_settled)
        except OSError as error:
            return cannot_open(error, f"its {_short(one.paths[0])}")
        if data is not None:
            found[one.name] = {"path": place, "data": data}
        elif one.is_needed or not has_settled:
            return _waits_for(source, one, has_settled)
    if found and not has_settled and isinstance(num_records(source, path, found), Reject):
        names = ", ".join(_short(one["path"]) for one in found.values())
        return f"the rest of its {names}, which cannot be read yet, for settle_minutes ({source.settle_minutes:g})"
    return found


def num_records(source: Source, path: str, companions: dict[str, dict]) -> int | Reject | None:
    """How many records the companions of a file say that it has."""
    codec = CODECS[source.codec]
    if not companions or not offers(codec, "num_records"):
        return None
    return attempt(codec.num_records, unpacked_name(path), companions, source)


def miscounted(num_said: int, num_found: int) -> Reject:
    """Why a file is not framed whose companions say another number of records than it has."""
    return Reject("contradiction", 0, 0, 0, f"{num_said} records, as what comes with it says", f"{num_found}", b"")


def _waits_for(source: Source, one: Companion, has_settled: bool) -> str:
    name = _short(one.paths[0])
    if not one.option:
        return f"its {name}"
    if has_settled or one.is_needed and not (one.others or one.has_series):
        return f"its {name} ({one.option})"
    return f"its {name}, for settle_minutes ({source.settle_minutes:g}); then without it as {one.option} says"


def _nearest(project: Project, one: Companion, has_settled: bool) -> tuple[str, str | None]:
    """The path of a companion, and its bytes in hex; None where there is none."""
    for path in [*one.paths, *(one.others if has_settled else ())]:
        if (data := beside(project, path)) is not None:
            return path, data
    before = _last_before(project, one.paths[0]) if has_settled and one.has_series else None
    return before or "", before and beside(project, before)


def _last_before(project: Project, path: str) -> str | None:
    """The last file before one, by name, of its folder and its ending."""
    folder, name = posixpath.split(path)
    ending = posixpath.splitext(name)[1]
    try:
        if not storage.is_local(path):
            fs, inner = storage.open_store(folder)
            names = [posixpath.basename(entry) for entry in fs.ls(inner, detail=False)]
        else:
            names = [entry.name for entry in Path(project.resolve(folder)).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return None
    before = [one for one in names if one < name and one.endswith(ending)]
    return posixpath.join(folder, max(before)) if before else None


def _short(path: str) -> str:
    return path.rsplit("/", 1)[-1]
