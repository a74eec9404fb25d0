"""The rows of bronze.files of files that are planned, each as its transport reads it. Codecs read files in a process of
their own, which a file may end.
"""

from inlet import storage, store_errors
from inlet.bronze import history, ordered
from inlet.bronze.companions import fails
from inlet.bronze.files import GONE, cannot_open, ends_its_reader
from inlet.bronze.framing import attempt
from inlet.bronze.guard import Died, apart
from inlet.bronze.history import History
from inlet.bronze.transports import TRANSPORTS
from inlet.config import Project
from inlet.errors import Reject


def of_files(
    project: Project, wanted: list[ordered.Listed], past: History, unplaced: dict[str, list[str]]
) -> list[dict | str | None]:
    """Rows of bronze.files, or what a file waits for: GONE where it is not there any more. Codecs read files in a
    process of their own, which a file may end; then each has one of its own.
    """

    def planned(file: ordered.Listed, before=None) -> dict | str | None:
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

    def planned_apart(file: ordered.Listed, before=None) -> dict | str | None:
        try:
            return apart(lambda: planned(file, before), file.path)
        except Died as death:
            return ends_its_reader(file.known["ofs_end"] if file.known else 0, death)

    def place_apart(project: Project, codec, file: ordered.Listed) -> int | str | None:
        try:
            return apart(lambda: ordered.place(project, codec, file), file.path)
        except Died as death:
            return f"a person: {death}"

    def of_source(files: list[ordered.Listed], plan, place) -> dict[str, dict | str | None]:
        """path -> row; of files in an order they are one source's."""
        if not ordered.is_ordered(files[0].source):
            return {file.path: plan(file) for file in files}
        name, paths = files[0].source.name, {file.path for file in files}
        others = [path for path in unplaced.get(name, []) if path not in paths]
        found = attempt(ordered.plan, project, files, landed_before[name], others, plan, place)
        return dict.fromkeys(paths, fails(files[0].source, found)) if isinstance(found, Reject) else found

    by_source: dict[str, list[ordered.Listed]] = {}
    for file in wanted:
        by_source.setdefault(file.source.name, []).append(file)
    landed_before = {  # read here, for the lakehouse's client does not outlive a fork
        name: {path: row for (_, path), row in history.good(past.of_source(name)).items()}
        for name, files in by_source.items()
        if ordered.is_ordered(files[0].source)
    }

    def all_of(sources: list[str], plan=planned, place=ordered.place) -> dict[tuple[str, str], dict | str | None]:
        return {(s, path): row for s in sources for path, row in of_source(by_source[s], plan, place).items()}

    def each_apart(sources: list[str]) -> dict[tuple[str, str], dict | str | None]:
        """Read by one process, for each loads the walks anew; where it ends, by one a source, then by one a file."""
        paths = [file.path for source in sources for file in by_source[source]]
        try:
            return apart(lambda: all_of(sources), *paths)
        except Died:
            if len(sources) == 1:
                return all_of(sources, planned_apart, place_apart)
            return {place: row for source in sources for place, row in each_apart([source]).items()}

    addresses = [
        source for source, files in by_source.items() if not all(storage.is_local(file.path) for file in files)
    ]
    rows = all_of(addresses) | each_apart([source for source in by_source if source not in addresses])
    return [rows[file.source.name, file.path] for file in wanted]
