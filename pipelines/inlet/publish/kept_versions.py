"""Versions of Delta tables that views read, however old they are: maintenance keeps their files and their log.

The public views, the functions over them and a pin name Delta versions (time travel, no row filter), so each of these
versions must stay readable as a whole:

published point   versions of gold and silver that `gold.published` has in its last row. The views hold those of the
                  point before, too, in a branch that no new query takes: their log is needed, their files are not.
                  A run that dies may leave a point that is shown and not in `gold.published`: `_pins/public.json`
pins              versions of the point that a pin shows (`_pins/<name>.json`)
live views        a version of `current`, that of the last batch or a later one that holds the same rows

A point that no pin names can be pinned for as long as its files happen to be there.
"""

import json

from inlet import lake, storage
from inlet.config import Project
from inlet.lake.delta_log import DeltaLog
from inlet.lake.table_state import Kept
from inlet.publish.point import LOG, newest
from inlet.sql import plain_literal

FOLDER = "_pins"
SHOWN = "public"  # the note of the point that the public views are moved to; no pin has this name


def note_pin(project: Project, name: str, number: int, versions: dict[str, int]) -> None:
    """Note what a pin reads, or the public views, before they are made: maintenance asks no catalog. A note is there as
    a whole, or as it was before."""
    store, file = _place(project, f"{name}.json")
    store.makedirs(file.rsplit("/", 1)[0], exist_ok=True)
    store.pipe_file(f"{file}.new", json.dumps({"point": number, "versions": versions}).encode())
    store.mv(f"{file}.new", file)


def drop_pin(project: Project, name: str) -> None:
    """Remove the note, after the views of a pin are dropped."""
    store, file = _place(project, f"{name}.json")
    if store.exists(file):
        store.rm_file(file)


def drop_folder(project: Project, name: str) -> None:
    """Remove the empty folder that a dropped pin has left."""
    store, folder = _place(project, name)
    store.rmdir(folder)


def pins(project: Project) -> dict[str, dict]:
    """Name of each pin -> its point and versions, read without the catalog."""
    store, folder = _place(project)
    names = store.ls(folder, detail=False) if store.isdir(folder) else []
    files = {name.rsplit("/", 1)[-1].removesuffix(".json"): name for name in names if name.endswith(".json")}
    return {name: json.loads(store.cat_file(file)) for name, file in files.items()}


def unnoted(project: Project) -> list[str]:
    """Pins that an earlier Inlet has made: the catalog alone knows their points."""
    store, folder = _place(project)
    names = store.ls(folder, detail=True) if store.isdir(folder) else []
    folders = {info["name"].rstrip("/").rsplit("/", 1)[-1] for info in names if info["type"] == "directory"}
    return sorted(folders - pins(project).keys())


def kept(project: Project) -> dict[str, Kept]:
    """Table -> what of it is kept, found without Spark."""
    found: dict[str, Kept] = {}

    def keep(versions: dict[str, int], why: str, is_pin: bool = False) -> None:
        for name, version in versions.items():
            of_table = found.setdefault(name if "." in name else f"gold.{name}", Kept({}, set(), set()))
            of_table.versions.setdefault(version, f"version {version}, {why}")
            of_table.pinned.update({version} if is_pin else ())

    point = newest(project)
    shown = dict(point["versions"]) if point else {}
    if point:
        keep(shown, f"the published point {point['number']}")
        for name, version in _before(project, shown).items():
            found[name if "." in name else f"gold.{name}"].logged.add(version)
    for name, pin in pins(project).items():
        is_pin = name != SHOWN
        keep(pin["versions"], f"the pin {name}" if is_pin else f"the point {pin['point']}", is_pin)
    for current in lake.all_tables(project.lakehouse_path()):
        if current.startswith("gold.") and current.endswith("__current"):
            log = DeltaLog(lake.table_path(project.lakehouse_path(), current))
            name = current.removeprefix("gold.").removesuffix("__current")
            for version in range(log.last_change(), log.newest):
                keep({current: version}, f"public.{name}__live")
    return found


def _place(project: Project, *names: str):
    """The file system of the lakehouse, and a path on it below the folder of pins."""
    store, path = storage.open_store(project.files_path(FOLDER, *names))
    store.invalidate_cache()  # of listings
    return store, path


def _before(project: Project, shown: dict[str, int]) -> dict[str, int]:
    """Table -> the version that its views read before they moved to the one that is shown."""
    of_tables = [(f"versions[{plain_literal(name)}]", version) for name, version in shown.items()]
    asked = [
        f"max(case when {own} < {version} then {own} end) as {_column(n)}" for n, (own, version) in enumerate(of_tables)
    ]
    rows = lake.peek(project.lakehouse_path(), LOG, asked) if asked else []
    numbers = list(rows[0].values()) if rows else []
    return {name: number for name, number in zip(shown, numbers) if number is not None}


def _column(n: int) -> str:
    return f"v{n}"
