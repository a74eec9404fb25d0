"""The package as others install it: it declares what it imports, and a wheel makes projects that run."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from inlet.commands import databricks_check
from tests.test_imports import imported

REPO = Path(__file__).resolve().parents[1]
PROJECT = REPO / "pyproject.toml"


def test_what_the_package_imports_it_declares():
    project = tomllib.loads(PROJECT.read_text())["project"]
    optional = [name for extra, names in project["optional-dependencies"].items() if extra != "test" for name in names]
    declared = {re.match("[a-z0-9.-]+", name)[0] for name in [*project["dependencies"], *optional]}
    modules = {name.split(".")[0] for path in (REPO / "pipelines").rglob("*.py") for name in imported(path)}
    foreign = modules - sys.stdlib_module_names - {"inlet"}
    owners = packages_distributions()
    assert {
        name for name in foreign if not {owner.lower().replace("_", "-") for owner in owners[name]} & declared
    } == set()
    assert len(foreign) > 10


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in (
        "pyproject.toml",
        "setup.py",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
        "pipelines",
        "dbt",
        "expectations",
        "infra/airflow",
    ):
        copy = shutil.copytree if (REPO / name).is_dir() else shutil.copy
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        copy(REPO / name, source / name)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "-w",
            folder,
            source,
        ],
        check=True,
    )
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


def python(folder: Path, *words: str, path: list[Path]) -> subprocess.CompletedProcess:
    env = {"PYTHONPATH": ":".join(map(str, path)), "PATH": "/nowhere"}
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, env=env)


def link_packages(folder: Path, left_out: set[str], source: Path = Path(pytest.__file__).parents[1]) -> Path:
    """A folder of the installed packages. In: files and folders that it lacks, as dbt/adapters/spark or, whatever its
    version, pyspark."""
    folder.mkdir(parents=True)
    for entry in source.iterdir():
        inner = {name.partition("/")[2] for name in left_out if name.startswith(f"{entry.name}/")}
        if inner:
            link_packages(folder / entry.name, inner, entry)
        elif entry.name.split("-")[0] not in left_out | {"__editable__", "__pycache__"}:
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.mark.slow
def test_an_installed_wheel_makes_a_project_that_runs(wheel, tmp_path):
    for words in (["init", "mine", "--airflow"], ["run", "--project", "mine"]):
        done = python(tmp_path, "-m", "inlet.cli", *words, path=[wheel])
        assert done.returncode == 0, done.stderr
    checked_in = subprocess.run(
        ["git", "ls-files", "dbt/macros", "dbt/tests", "expectations", "infra/airflow"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {path for path in checked_in.stdout.split() if not (tmp_path / "mine" / path).exists()} == set()
    assert (wheel / "dbt_inlet.py").exists() and not list(wheel.glob("**/models/gold"))


@pytest.mark.slow
def test_the_wheel_is_that_of_the_bundle_of_databricks(wheel):
    """Its name, and the entry point of each task."""
    (built,) = wheel.parent.glob("*.whl")
    job = yaml.safe_load((REPO / "infra/databricks/resources/job.yml").read_text())["resources"]["jobs"]["inlet"]
    calls = [task["python_wheel_task"] for task in job["tasks"] if "python_wheel_task" in task]
    assert len(calls) > 3 and {call["entry_point"] for call in calls} <= databricks_check.entry_points(built)
    named = {environment["spec"]["dependencies"][0] for environment in job["environments"]}
    assert named == {f"../../../dist/{built.name}"}


@pytest.mark.slow
def test_the_wheel_brings_no_pyspark_and_says_what_it_lacks_without(wheel, tmp_path):
    """As on Databricks, where a package that installs PySpark ends the session: packages without those of `[spark]`."""
    of_spark = {"pyspark", "delta_spark", "py4j", "dbt_spark"}
    (metadata,) = wheel.glob("*.dist-info/METADATA")
    required = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist: ")]
    by_extra = {
        re.match("Requires-Dist: ([a-z0-9-]+)", line)[1].replace("-", "_"): "extra ==" in line for line in required
    }
    assert {name: by_extra[name] for name in of_spark} == dict.fromkeys(of_spark, True)
    path = [wheel, link_packages(tmp_path / "packages", of_spark | {"delta"})]
    every = "import pkgutil, inlet; [__import__(m.name) for m in pkgutil.walk_packages(inlet.__path__, 'inlet.')]"
    assert python(tmp_path, "-S", "-c", every, path=path).stderr == ""
    assert python(tmp_path, "-S", "-m", "inlet.cli", "init", "mine", path=path).returncode == 0
    done = python(tmp_path, "-S", "-m", "inlet.cli", "doctor", "--project", "mine", path=path)
    assert done.returncode == 5 and "PySpark is not installed" in done.stdout


@pytest.mark.proof
def test_gold_is_built_with_the_oldest_dbt_spark_that_the_package_takes(tmp_path):
    """That of 1.10 lets dbt-databricks 1.12 be installed next to it; the locked one is the newest."""
    uv, at_least = Path(sys.executable).with_name("uv"), re.search(r'"dbt-spark>=([\d.]+)', PROJECT.read_text())[1]
    oldest = tmp_path / "oldest"
    install = ["pip", "install", "-q", "--no-deps", "--target", oldest, "-p", sys.executable]
    subprocess.run([uv, *install, f"dbt-spark=={at_least}.*"], check=True)
    packages = link_packages(tmp_path / "packages", {"dbt_spark", "dbt/adapters/spark", "dbt/include/spark"})
    for name in ("dbt/adapters/spark", "dbt/include/spark"):
        (packages / name).symlink_to(oldest / name)
    (info,) = oldest.glob("dbt_spark-*")
    (packages / info.name).symlink_to(info)
    path = ":".join(map(str, (REPO / "pipelines", REPO, packages)))
    tests = [sys.executable, "-S", "-m", "pytest", "-m", "not proof", "tests/test_gold_runs.py"]
    subprocess.run(tests, cwd=REPO, env=os.environ | {"PYTHONPATH": path}, check=True)
