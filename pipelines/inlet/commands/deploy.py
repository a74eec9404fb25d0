"""`inlet deploy databricks`: write the asset bundle of a project, and check it without a workspace."""

import yaml

from inlet import storage
from inlet.commands import databricks_bundle, databricks_check, databricks_settings
from inlet.commands.databricks_bundle import FOLDER, LANDING, MARK
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.gold.generate import put
from inlet.log import counted


def generate(project: Project) -> dict[str, str]:
    """Path (relative to the project) -> text of every generated file. Raises: ConfigError."""
    return databricks_bundle.files(project, databricks_settings.read(project))


def write(project: Project) -> list[str]:
    """Make the files of the bundle what they should be. Out: the paths that changed. Raises: ConfigError, also where
    a file of a person is in the place of one.
    """
    files = generate(project)
    changed = stale(project, files)
    for file in (project.root / path for path in changed):
        if file.is_file() and MARK not in file.read_text(encoding="utf-8", errors="replace"):
            raise ConfigError(f"{file} was not written by Inlet", "Give it another name, or remove it")
    put(project.root, files, changed)
    return changed


def stale(project: Project, files: dict[str, str]) -> list[str]:
    """Files of the bundle that are not as the project says, are missing or left over. In: as `generate` gives them."""
    existing = {
        str(path.relative_to(project.root)): path.read_text(encoding="utf-8", errors="replace")
        for path in (project.root / FOLDER).rglob("*.yml")
    }
    left_over = {path for path, text in existing.items() if MARK in text} - set(files)
    return sorted({path for path, text in files.items() if existing.get(path) != text} | left_over)


def check(project: Project) -> list[str]:
    """Check the files of the bundle as they are. Out: what is to be known and is no fault. Raises: ConfigError, which
    names all that is wrong."""
    files = generate(project)
    if old := stale(project, files):
        raise ConfigError(f"{counted(len(old), 'file')} stale: {', '.join(old)}", "Run `inlet deploy databricks`")
    contents = {path.removeprefix(f"{FOLDER}/"): yaml.safe_load(text) for path, text in files.items()}
    if faults := databricks_check.faults(project.root / FOLDER, contents):
        raise ConfigError("; ".join(faults), f"Correct {databricks_settings.FILE} and run `inlet deploy databricks`")
    return notes(project)


def notes(project: Project) -> list[str]:
    """What an administrator has to know, and no check can settle."""
    here = [s.name for s in project.sources.values() if not s.broker and _is_of_this_machine(s.path)]
    lines = ["No workspace has run this bundle yet (docs/databricks.md)"]
    if here:
        lines.append(
            f"{', '.join(here)}: `from` is no folder of the volume {LANDING}, below which relative paths are on "
            f"Databricks; begin it with {LANDING}/, /Volumes/ or an address"
        )
    if not databricks_check.has_models():
        lines.append("databricks-bundles is not installed: fields of the resources were not checked against its models")
    return lines


def _is_of_this_machine(place: str) -> bool:
    return storage.is_local(place) and not place.startswith(("/Volumes/", f"{LANDING}/"))
