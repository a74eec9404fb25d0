"""The places of files in the order of their source, where their names tell them.

Changes of two files of one place have the same change_seq: one file's would be repeats of the other's, or contradict
them. So a place belongs to one feed or table: a file of another one is held until a person has renamed it.
"""

from inlet.bronze.files import unpacked_name
from inlet.bronze.framing import attempt
from inlet.bronze.history import History
from inlet.bronze.ordered import Listed
from inlet.codecs import CODECS, offers
from inlet.config import Project
from inlet.source import FILE_TRANSPORTS, Source


def hold(project: Project, wanted: list[Listed], past: History) -> None:
    """Hold files that were not read before and whose place is another one's (`info["held"]`)."""
    new = [file for file in wanted if file.known is None and has_places(file.source)]
    sources = {file.source.name: (file.source, project.tables_of(file.source)) for file in new}
    owners: dict[tuple[str, str], tuple[str, str]] = {}  # (source, place) -> its owner, and a file of that
    for name, source in sources.items():
        for path in past.paths(name):
            if found := _place_of(path, *source):
                owners.setdefault((name, found[0]), (found[1], path))
    for file in new:
        if not file.info["held"] and (found := _place_of(file.path, *sources[file.source.name])):
            owner, path = owners.setdefault((file.source.name, found[0]), (found[1], file.path))
            if owner != found[1]:
                file.info["held"] = (
                    f"a person: its name gives it the place in the order that {path.rsplit('/', 1)[-1]} has, a file of "
                    f"{owner or 'no table'}, not of {found[1] or 'no table'}: rename it, so that its time and ordinal "
                    "are its own"
                )


def has_places(source: Source) -> bool:
    """Do names of a source's files tell their places?"""
    return source.transport in FILE_TRANSPORTS and offers(CODECS[source.codec], "own_place")


def _place_of(path: str, source: Source, tables: dict) -> tuple[str, str] | None:
    """The place that a file's name tells, and its owner; None where it tells none."""
    found = attempt(CODECS[source.codec].own_place, unpacked_name(path), source, tables)
    return found if isinstance(found, tuple) else None
