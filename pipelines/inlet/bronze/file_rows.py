"""The rows of bronze.files of files that are planned, each as its transport reads it. Codecs read files in a process of
their own, which a file may end. Where Spark's tasks run on other machines and there is much to read, they do it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from inlet import store_errors
from inlet.bronze import history, ordered, tasks
from inlet.bronze.companions import fails
from inlet.bronze.files import GONE, cannot_open, ends_its_reader, is_compressed
from inlet.bronze.framing import attempt
from inlet.bronze.guard import Died, apart, can_be_apart
from inlet.bronze.history import History, Place
from inlet.bronze.ordered import Listed
from inlet.bronze.transports import TRANSPORTS
from inlet.config import Project
from inlet.errors import Reject
from inlet.lake import engine
from inlet.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Planned = dict | str | None  # a row; or what a file waits for: GONE where it is not there any more


class Group(NamedTuple):
    """What is planned together: a file, or all files of a source in an order, each after the one that it follows."""

    source: Source
    files: list[Listed]
    landed: dict[str, dict]  # of a source in an order: path -> its newest row without a problem
    unplaced: list[str]  # of such a source: other files, whose place in the order is not known

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]

    @property
    def sizes(self) -> list[int]:
        """Bytes of its files that are read."""
        return [file.info["size"] for file in self.files if _is_read(file)]


def of_files(
    project: Project,
    wanted: list[Listed],
    past: History,
    unplaced: dict[str, list[str]],
    spark: Callable[[], "SparkSession"] | None = None,
) -> list[Planned]:
    """Rows of bronze.files, or what a file waits for. In: what begins a session, where one may be begun for this.
    Raises: TryAgain or EnvironmentLacks for errors of a store."""
    groups = _groups(wanted, past, unplaced)
    if spark and engine.is_apart() and tasks.are_worth([size for group in groups for size in group.sizes]):
        parts = [
            [(group.source.name, [file[1:] for file in group.files], *group[2:]) for group in part]
            for part in tasks.dealt(groups, lambda group: sum(group.sizes))
        ]
        rows = {place: row for found in tasks.each(spark(), partial(_of_part, project), parts) for place, row in found}
    else:
        rows = dict(_of_groups(project, groups))
    return [rows[file.source.name, file.path] for file in wanted]


def _groups(wanted: list[Listed], past: History, unplaced: dict[str, list[str]]) -> list[Group]:
    by_source: dict[str, list[Listed]] = {}
    for file in wanted:
        by_source.setdefault(file.source.name, []).append(file)
    groups = []
    for name, files in by_source.items():
        if not ordered.is_ordered(source := files[0].source):
            groups += [Group(source, [file], {}, []) for file in files]
            continue
        readings = history.good(past.of_source(name))  # read here: no task and no child has the lakehouse's client
        landed = {path: {"context": row["context"]} for (_, path), row in readings.items()}
        paths = {file.path for file in files}
        groups.append(Group(source, files, landed, [path for path in unplaced.get(name, []) if path not in paths]))
    return groups


def _is_read(file: Listed) -> bool:
    """True if planning a file reads its bytes, as far as that is known before."""
    waits = is_compressed(file.path) and not (file.known or file.has_settled) or file.info.get("is_told_missing")
    return not (file.info["held"] or file.info["problem"] or waits)


def _of_part(project: Project, part: list[tuple]) -> list[tuple[Place, Planned]]:
    """The rows of groups, in a task. In: groups as they are sent, with the names of their sources alone."""
    groups = [
        Group(source := project.sources[name], [Listed(source, *file) for file in files], *more)
        for name, files, *more in part
    ]
    return _of_groups(project, groups)


def _of_groups(project: Project, groups: list[Group]) -> list[tuple[Place, Planned]]:
    """By source and path the rows of files, read in a process of their own where that can be."""
    is_apart = [can_be_apart(group.paths) for group in groups]
    here, others = ([group for group, is_in in zip(groups, is_apart) if is_in is wanted] for wanted in (False, True))
    return [*_all_of(project, here), *_each_apart(project, others)]


def _each_apart(project: Project, groups: list[Group]) -> list[tuple[Place, Planned]]:
    """Read by one process, because each loads the walks again; where it ends, by one for each half, down to one a
    file."""
    try:
        return apart(lambda: _all_of(project, groups), *(path for group in groups for path in group.paths))
    except Died:
        if len(groups) == 1:
            return _all_of(project, groups, _planned_apart, _place_apart)
        middle = len(groups) // 2
        return [*_each_apart(project, groups[:middle]), *_each_apart(project, groups[middle:])]


def _all_of(project: Project, groups: list[Group], plan=None, place=ordered.place) -> list[tuple[Place, Planned]]:
    rows: list[tuple[Place, Planned]] = []
    for group in groups:
        found = _of_group(project, group, partial(plan or _planned, project), place)
        rows += [((group.source.name, path), row) for path, row in found.items()]
    return rows


def _of_group(project: Project, group: Group, plan, place) -> dict[str, Planned]:
    """path -> row."""
    if not ordered.is_ordered(group.source):
        return {file.path: plan(file) for file in group.files}
    found = attempt(ordered.plan, project, group.files, group.landed, group.unplaced, plan, place)
    return dict.fromkeys(group.paths, fails(group.source, found)) if isinstance(found, Reject) else found


def _planned(project: Project, file: Listed, before=None) -> Planned:
    if file.info["held"] or file.info["problem"]:
        return file.info["held"] or file.info["problem"]
    follows = {"before": before} if before else {}
    try:
        return TRANSPORTS[file.source.transport].plan_file(project, *file, **follows)
    except FileNotFoundError:
        return GONE
    except store_errors.Replaced:
        return None
    except OSError as error:
        return cannot_open(error)


def _planned_apart(project: Project, file: Listed, before=None) -> Planned:
    try:
        return apart(lambda: _planned(project, file, before), file.path)
    except Died as death:
        return ends_its_reader(file.known["ofs_end"] if file.known else 0, death)


def _place_apart(project: Project, codec, file: Listed) -> int | str | None:
    try:
        return apart(lambda: ordered.place(project, codec, file), file.path)
    except Died as death:
        return f"a person: {death}"
