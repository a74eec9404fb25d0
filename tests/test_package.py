"""The package as others install it: it declares what it imports, and a wheel makes projects that run."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.test_imports import imported

REPO = Path(__file__).resolve().parents[1]


def test_what_the_package_imports_it_declares():
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    optional = [name for extra, names in project["optional-dependencies"].items() if extra != "test" for name in names]
    declared = {re.match("[a-z0-9.-]+", name)[0] for name in [*project["dependencies"], *optional]}
    modules = {name.split(".")[0] for path in (REPO / "pipelines").rglob("*.py") for name in imported(path)}
    foreign = modules - sys.stdlib_module_names - {"inlet"}
    owners = packages_distributions()
    assert {
        name for name in foreign if not {owner.lower().replace("_", "-") for owner in owners[name]} & declared
    } == set()
    assert len(foreign) > 10


@pytest.mark.slow
def test_an_installed_wheel_makes_a_project_that_runs(tmp_path):
    source = tmp_path / "source"
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
            tmp_path,
            source,
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")

    def inlet(*words):
        return subprocess.run(
            [sys.executable, "-m", "inlet.cli", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "/nowhere"},
        )

    assert inlet("init", "mine", "--airflow").returncode == 0
    assert inlet("run", "--project", "mine").returncode == 0
    checked_in = subprocess.run(
        ["git", "ls-files", "dbt/macros", "dbt/tests", "expectations", "infra/airflow"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {path for path in checked_in.stdout.split() if not (tmp_path / "mine" / path).exists()} == set()
    assert "dbt_inlet.py" in packed.namelist() and not [name for name in packed.namelist() if "models/gold" in name]
