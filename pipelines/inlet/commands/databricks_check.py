"""Check an asset bundle without a workspace.

The package databricks-bundles has a model of each resource, which refuses unknown fields and values at any depth. It
accepts a key or a path that does not exist, any text as a cron expression, and a number in place of a text. This module
checks those.
"""

import configparser
import graphlib
import importlib
import importlib.util
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inlet.commands.databricks_settings import quartz_fault
from inlet.errors import ConfigError

MODELS = {  # resources -> the model of one
    "jobs": ("databricks.bundles.jobs", "Job"),
    "schemas": ("databricks.bundles.schemas", "Schema"),
    "volumes": ("databricks.bundles.volumes", "Volume"),
}
BUNDLE = "databricks.yml"
VARIABLE = re.compile(r"(?<!\$)\$\{([^}]*)\}")
KNOWN = re.compile(r"bundle\.(name|target)|workspace\.(file_path|current_user\.userName)")  # what Databricks says


def has_models() -> bool:
    """Is databricks-bundles installed?"""
    try:
        return importlib.util.find_spec("databricks.bundles") is not None
    except ModuleNotFoundError:  # of `databricks`
        return False


def faults(folder: Path, contents: dict[str, dict]) -> list[str]:
    """What is wrong, a sentence each. In: where the bundle is, and its files, by their paths in it."""
    wrong = [*_files(folder, contents), *_variables(contents), *_targets(contents)]
    for name, content in contents.items():
        for key, job in content.get("resources", {}).get("jobs", {}).items():
            place = f"{name}: jobs.{key}"
            wrong += [f"{place}: {what}" for what in (*_tasks(job), *_schedule(job), *_environments(job))]
            wrong += [f"{place}: {what}" for what in _paths((folder / name).parent, job, _built(folder, contents))]
    return wrong + (of_models(contents) if has_models() else [])


def of_models(contents: dict[str, dict]) -> list[str]:
    """What the models of databricks-bundles refuse, in each target."""
    refused: dict[str, None] = {}  # in order, each once
    targets = contents[BUNDLE].get("targets", {})
    for name, content in contents.items():
        for kind, resources in content.get("resources", {}).items():
            module, model = MODELS[kind]
            read = getattr(importlib.import_module(module), model).from_dict
            for key, resource in resources.items():
                for target in targets.values():
                    other = target.get("resources", {}).get(kind, {}).get(key, {})
                    try:
                        read(resource | other)
                    except (TypeError, ValueError, AttributeError) as error:
                        refused[f"{name}: {kind}.{key}: {error}"] = None
    return list(refused)


def entry_points(wheel: Path) -> set[str]:
    """The names of the console scripts that a wheel has. Raises: ConfigError where it is no wheel."""
    try:
        with zipfile.ZipFile(wheel) as packed:
            names = [name for name in packed.namelist() if name.endswith(".dist-info/entry_points.txt")]
            text = packed.read(names[0]).decode() if names else ""
        parser = configparser.ConfigParser(delimiters=("=",))
        parser.read_string(text)
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, configparser.Error) as error:
        raise ConfigError(f"{wheel} is no wheel: {error}", "Build it again, or name another one") from error
    return set(parser["console_scripts"]) if parser.has_section("console_scripts") else set()


def _files(folder: Path, contents: dict[str, dict]) -> Iterator[str]:
    """Paths of databricks.yml itself, and whether it includes every file."""
    bundle = contents[BUNDLE]
    included = {path for pattern in bundle.get("include", ()) for path in folder.glob(pattern)}
    yield from (f"{BUNDLE} includes no {name}" for name in contents if name != BUNDLE and folder / name not in included)
    for path in bundle.get("sync", {}).get("paths", ()):
        if not (folder / path).is_dir():
            yield f"{BUNDLE}: sync.paths: there is no folder {path}"
    for key, artifact in bundle.get("artifacts", {}).items():
        if not (folder / artifact["path"] / "pyproject.toml").is_file():
            yield f"{BUNDLE}: artifacts.{key}: {artifact['path']} has no pyproject.toml to build a wheel of"


def _built(folder: Path, contents: dict[str, dict]) -> set[Path]:
    """Folders in which artifacts are built."""
    artifacts = contents[BUNDLE].get("artifacts", {}).values()
    return {(folder / artifact["path"] / "dist").resolve() for artifact in artifacts}


def _variables(contents: dict[str, dict]) -> Iterator[str]:
    """Variables and resources that texts name."""
    variables = set(contents[BUNDLE].get("variables", {}))
    resources = {
        f"{kind}.{key}"
        for content in contents.values()
        for kind, of_kind in content.get("resources", {}).items()
        for key in of_kind
    }
    for name, content in contents.items():
        for text in _texts(content):
            for path in VARIABLE.findall(text):
                first, _, rest = path.partition(".")
                is_known = (
                    rest in variables
                    if first == "var"
                    else rest.removesuffix(".name") in resources
                    if first == "resources"
                    else KNOWN.fullmatch(path)
                )
                if not is_known:
                    yield f"{name}: ${{{path}}} is nothing that the bundle has"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _texts(member)


def _targets(contents: dict[str, dict]) -> Iterator[str]:
    """Variables and resources that targets set."""
    bundle = contents[BUNDLE]
    for name, target in bundle.get("targets", {}).items():
        for variable in target.get("variables", {}):
            if variable not in bundle.get("variables", {}):
                yield f"{BUNDLE}: targets.{name} sets the variable {variable}, which is not declared"
        for kind, resources in target.get("resources", {}).items():
            for key in resources:
                if not any(key in content.get("resources", {}).get(kind, {}) for content in contents.values()):
                    yield f"{BUNDLE}: targets.{name} changes {kind}.{key}, which the bundle does not have"


def _tasks(job: dict) -> Iterator[str]:
    """Tasks, and what they name of the job."""
    keys = [task["task_key"] for task in job["tasks"]]
    environments = [environment["environment_key"] for environment in job.get("environments", ())]
    for one in sorted({key for key in (*keys, *environments) if keys.count(key) > 1 or environments.count(key) > 1}):
        yield f"two tasks or two environments are called {one}"
    before = {task["task_key"]: [one["task_key"] for one in task.get("depends_on", ())] for task in job["tasks"]}
    for task in job["tasks"]:
        key, environment = task["task_key"], task.get("environment_key")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", key):
            yield f"{key}: expected a name of up to 100 letters, digits, _ and -"
        yield from (f"{key} comes after {one}, which is no task" for one in before[key] if one not in keys)
        if environment not in environments:
            yield f"{key} has the environment {environment or 'none'}; the job has {', '.join(environments) or 'none'}"
        if task.get("max_retries") != 0 or not task.get("disable_auto_optimization"):
            yield f"{key} would be tried again after a failed check: max_retries 0 and disable_auto_optimization true"
        if not task.get("timeout_seconds"):
            yield f"{key} has no timeout, and serverless compute has none by itself"
    try:
        graphlib.TopologicalSorter(before).prepare()
    except graphlib.CycleError as error:
        yield f"tasks wait for each other: {', '.join(error.args[1])}"


def _schedule(job: dict) -> Iterator[str]:
    if "schedule" in job and "trigger" in job:
        yield "both a schedule and a trigger start it"
    if fault := quartz_fault(str(job["schedule"]["quartz_cron_expression"])) if "schedule" in job else "":
        yield f"schedule: {fault}"


def _environments(job: dict) -> Iterator[str]:
    for environment in job.get("environments", ()):
        key, spec = environment["environment_key"], environment["spec"]
        if not isinstance(spec["environment_version"], str) or not spec["environment_version"].isdecimal():
            yield f"environments.{key}: environment_version is a number in quotes, found {spec['environment_version']}"
        for dependency in spec["dependencies"]:
            if re.match(r"(pyspark|delta-spark|databricks-connect)\b", dependency) or "[spark" in dependency:
                yield f"environments.{key}: {dependency} brings PySpark, which ends the session"


def _paths(folder: Path, job: dict, built: set[Path]) -> Iterator[str]:
    """Paths of a job, and entry points of its wheel. In: the folder of its file, and those that wheels are built in."""
    wheels = {}
    for environment in job.get("environments", ()):
        for dependency in environment["spec"]["dependencies"]:
            path = (folder / dependency).resolve()
            if dependency.startswith("."):
                wheels[environment["environment_key"]] = path
            if dependency.startswith(".") and not path.is_file() and path.parent not in built:
                yield f"there is no wheel {path.name} in {path.parent}: put it there, or name another by `wheel`"
    for task in job["tasks"]:
        if call := task.get("dbt_task"):
            if not (folder / call["project_directory"] / "dbt_project.yml").is_file():
                yield f"{task['task_key']}: {call['project_directory']} holds no dbt_project.yml"
        wheel, call = wheels.get(task.get("environment_key")), task.get("python_wheel_task")
        if call and wheel and wheel.is_file() and call["entry_point"] not in entry_points(wheel):
            yield f"{task['task_key']}: {wheel.name} has no entry point {call['entry_point']}"
        if call and wheel and wheel.name.split("-")[0] != call["package_name"]:
            yield f"{task['task_key']}: the package {call['package_name']} is not that of {wheel.name}"
