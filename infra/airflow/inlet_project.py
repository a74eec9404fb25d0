"""What Airflow's DAG has to know of an Inlet project, read without Inlet: its sources, tables and the tasks they make.

`pipelines/inlet.yml` and `pipelines/tables/*.yml` say what there is. `pipelines/airflow.yml`, which may be missing,
says how it is scheduled; every field has a default:

    dag: inlet                       # id of the DAG; its assets are inlet.public.<table>
    schedule: "*/15 * * * *"         # cron, a preset such as @hourly, or none: by hand alone
    groups:                          # a bronze task for each; without groups one task lands all sources
      shop: [shop]
      depots: [depot_tokyo, depot_osaka]
    retries: 5                       # of what may pass by itself; after 1, 2, 4, 8 and 15 minutes
    retry_delay_seconds: 60
    timeout_minutes: 360             # of one task
    pool: inlet

Sources that stand in no group are landed by a task of their own, `bronze_rest`, so that a new source is never left out.

Imports nothing but the standard library and PyYAML: Airflow's environment is not that of Inlet.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import yaml

SETTINGS, REST = "pipelines/airflow.yml", "rest"
DEFAULTS = {
    "dag": "inlet",
    "schedule": "*/15 * * * *",
    "retries": "5",
    "retry_delay_seconds": "60",
    "timeout_minutes": "360",
    "pool": "inlet",
}
EXIT_CODES = {  # README.md of Inlet lists them: what it means, and whether the task is tried again
    1: ("internal error", True),
    2: ("wrong usage or configuration", False),
    3: ("a check of severity `error` failed", False),
    4: ("the accounting of a batch does not add up", False),
    5: ("the environment lacks something", False),
    6: ("something that may pass by itself", True),
    126: ("the command cannot be executed", False),
    127: ("the command is not there", False),
}


class ProjectError(Exception):
    """The project's files say something that no DAG can be made of. In: one sentence, and the remedy."""


@dataclass(frozen=True)
class InletProject:
    """What a DAG is made of."""

    root: Path
    dag: str
    schedule: str | None
    retries: int
    retry_delay_seconds: int
    timeout_minutes: int
    pool: str
    groups: dict[str, list[str]] = field(default_factory=dict)  # name -> sources; empty: one task for all
    tables: list[str] = field(default_factory=list)  # names of public views

    @property
    def bronze(self) -> dict[str, list[str]]:
        """Task id -> words of `inlet run` that land a group of sources."""
        return {
            f"bronze_{name}": ["--step", "bronze", *(word for s in sources for word in ("--source", s))]
            for name, sources in self.groups.items()
        } or {"bronze": ["--step", "bronze"]}

    @property
    def assets(self) -> list[str]:
        """Names of the assets that a publication renews, one a table."""
        return [f"{self.dag}.public.{table}" for table in self.tables]


def read(root: Path) -> InletProject:
    """Read a project folder. Raises: ProjectError, which says what is wrong and what to do."""
    config = root / "pipelines" / "inlet.yml"
    if not config.is_file():
        raise ProjectError(
            f"{root} is no Inlet project: it has no pipelines/inlet.yml. Set INLET_PROJECT to the project's folder, "
            "where Airflow's DAG processor and its workers can read it"
        )
    sources = list(_fields(config, "sources"))
    path = root / SETTINGS
    found = _yaml(path) if path.is_file() else {}
    if unknown := sorted(set(found) - DEFAULTS.keys() - {"groups"}):
        raise ProjectError(f"{path}: {', '.join(unknown)} is not known. It knows {', '.join(DEFAULTS)} and groups")
    settings = DEFAULTS | found
    for name in ("dag", "pool"):
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", str(settings[name])):
            raise ProjectError(f"{path}: {name}: expected letters, digits and _ . -, found {settings[name]!r}")
    return InletProject(
        root,
        settings["dag"],
        None if settings["schedule"] in ("none", "null", "") else settings["schedule"],
        *(_number(path, settings, name) for name in ("retries", "retry_delay_seconds", "timeout_minutes")),
        settings["pool"],
        _groups(path, _fields(path, "groups") if path.is_file() else {}, sources),
        sorted(_yaml(file).get("name", file.stem) for file in (root / "pipelines" / "tables").glob("*.yml")),
    )


def outcome(code: int) -> tuple[str, bool]:
    """What an exit code of `inlet` means, and whether to try again. Every step is idempotent, so a death by a signal
    (negative; 128 and more where a shell or a container stands between) is tried again, and a code that is not known.
    """
    if code < 0 or code > 128:
        return f"ended by signal {-code if code < 0 else code - 128}", True
    return EXIT_CODES.get(code, ("a code that Inlet does not have", True))


def _groups(path: Path, given: dict, sources: list[str]) -> dict[str, list[str]]:
    """Groups of sources, those that stand in none as a group of their own. Raises: ProjectError."""
    taken: dict[str, str] = {}
    for group, members in given.items():
        if not re.fullmatch(r"[A-Za-z0-9_]+", group) or not isinstance(members, list) or not members:
            raise ProjectError(
                f"{path}: groups.{group}: expected a name of letters, digits and _, and a list of sources. "
                f"Write {group}: [{sources[0] if sources else 'a_source'}]"
            )
        for source in members:
            if source not in sources:
                raise ProjectError(
                    f"{path}: groups.{group} names the source {source}, which pipelines/inlet.yml does not have. "
                    f"It has {', '.join(sources) or 'none'}: take {source} out of the group, or put the source back"
                )
            if source in taken:
                raise ProjectError(
                    f"{path}: {source} stands in the groups {taken[source]} and {group}. Leave it in one of them"
                )
            taken[source] = group
    rest = [source for source in sources if source not in taken]
    if not given or not rest:
        return dict(given)
    if REST in given:
        raise ProjectError(
            f"{path}: {', '.join(rest)} in no group. Add them to a group; the name {REST} is that of the task for "
            "sources without one"
        )
    return given | {REST: rest}


def _number(path: Path, settings: dict, name: str) -> int:
    if not str(settings[name]).isdecimal():
        raise ProjectError(f"{path}: {name}: expected a whole number, found {settings[name]!r}")
    return int(settings[name])


def _fields(path: Path, name: str) -> dict:
    found = _yaml(path).get(name) or {}
    if not isinstance(found, dict):
        raise ProjectError(f"{path}: {name}: expected fields, found {found!r}")
    return found


def _yaml(path: Path) -> dict:
    """A file whose words are all text, as Inlet reads names: a source may be called no, or 007."""
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ProjectError(f"{path} cannot be read: {error}. Fix the line it names") from error
    if not isinstance(found, dict):
        raise ProjectError(f"{path}: expected fields, found {type(found).__name__}")
    return found
