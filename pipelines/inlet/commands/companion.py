"""Whether a file that comes with others may be deleted, such as a sidecar: once no other file will be read with it."""

from collections.abc import Callable
from posixpath import dirname, splitext

from inlet import bronze
from inlet.bronze.companions import companions_of
from inlet.bronze.files import listing
from inlet.config import Project
from inlet.log import counted
from inlet.silver import file_loads
from inlet.source import Source

Files = dict[str, bool]  # files that are read with a companion -> may others, which arrive later, be so, too


def state(project: Project, path: str, past: bronze.History, state_of: Callable) -> tuple[bool, str] | None:
    """May a companion be deleted? And in words. None for a file that is none, or that no source lists. In: its path as
    bronze.files has it; the same question of the files that are read with it."""
    for source in project.sources.values():
        if source.broker or source.brings_messages or companions_of(source, path) is not None:
            continue
        listed = [name for name, _ in listing(project, source)]
        of_source = {row["path"] for row in past.of_source(source.name)}
        files = _read_with(source, path, sorted({*listed, *of_source}))
        if not files and path not in listed:
            continue
        if not files:
            return False, f"{path}: it comes with another file, which has not arrived"
        for name in files:
            is_done, words = state_of(project, project.resolve(name))
            if not is_done:
                return False, f"{path}: it comes with another file. {words}"
        named = next(iter(files)) if len(files) == 1 else counted(len(files), "file")
        done = f"{path}: it comes with {named}, landed and accounted for"
        if any(files.values()):
            return False, f"{done}; files that arrive later may be read with it, too"
        if any(row["source"] == source.name for row in file_loads.loading(project)):
            return (
                False,
                f"{done}; a full load of {source.name} has not ended, whose next files may be read with it, too",
            )
        return True, f"{done}: it may be deleted with them"
    return None


def _read_with(source: Source, path: str, names: list[str]) -> Files:
    """The files among some that are read with a companion, or may be once they have waited for their own."""
    folder, ending, existing = dirname(path), splitext(path)[1], set(names)
    later = [name for name in names if name > path and dirname(name) == folder and name.endswith(ending)]
    following = min(later, default=None)  # from which on files of the series are read with that one
    found: Files = {}
    for name in names:
        companions = companions_of(source, name)
        for one in companions if isinstance(companions, list) else []:
            own = one.paths[0]
            is_of_series = one.has_series and dirname(own) == folder
            is_before = path < own and own not in existing and (following is None or own < following)
            if path in (*one.paths, *one.others) or is_of_series and is_before:
                is_shared = path in one.others or is_of_series and following is None
                found[name] = found.get(name, False) or is_shared
    return found
