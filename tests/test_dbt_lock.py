"""A plain dbt that writes holds the lakehouse as a run does, however it is started."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from jinja2 import Environment

from inlet import lake
from tests import projects
from tests.test_generate import REPO, project

DBT = Path(sys.executable).with_name("dbt")


def dbt(root: Path, *words: str):
    return subprocess.run([DBT, *words], cwd=root / "dbt", capture_output=True, text=True)


@pytest.mark.slow
def test_a_plain_dbt_is_refused_beside_a_run_and_may_read(tmp_path):
    project(tmp_path)
    with lake.writing(str(tmp_path / "lakehouse")):
        run, parse = dbt(tmp_path, "run"), dbt(tmp_path, "parse")
    assert run.returncode == 2 and f"Another run writes to {tmp_path}/lakehouse" in run.stdout
    assert parse.returncode == 0, parse.stdout


@pytest.mark.slow
def test_a_run_is_refused_beside_a_plain_dbt(tmp_path):
    """What dbt does with the plugin before a command begins, in a process that does it for two commands and then
    waits.
    """
    root = projects.make(tmp_path).root
    project(tmp_path / "gold", str(tmp_path / "lakehouse"))
    begin = (
        "import sys; from types import SimpleNamespace; import dbt_inlet; from dbt_common.context import "
        "set_invocation_context; set_invocation_context({}); dbt_inlet.get_flags = lambda: "
        "SimpleNamespace(PROJECT_DIR='gold/dbt', WHICH='build', TARGET=None); dbt_inlet.Lock('inlet'); "
        "dbt_inlet.Lock('inlet'); print('begun', flush=True); sys.stdin.read()"
    )
    beside = subprocess.Popen(
        [sys.executable, "-c", begin],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"INLET_LAKEHOUSE": str(tmp_path / "lakehouse"), "PYTHONPATH": str(REPO / "pipelines")},
    )
    assert beside.stdout.readline() == "begun\n"
    run = [sys.executable, "-m", "inlet.cli", "run", "--project", str(root)]
    assert "Another run writes" in subprocess.run(run, capture_output=True, text=True).stderr
    beside.communicate("")
    assert "nothing_new" in subprocess.run(run, capture_output=True, text=True).stderr


@pytest.mark.parametrize(
    ("target", "command", "environment", "is_refused"),
    [
        ("local", "build", {}, True),
        ("local", "run", {}, True),
        ("local", "test", {}, False),
        ("inlet", "build", {}, False),
        ("local", "build", {"INLET_WRITES": "1"}, False),
    ],
)
def test_a_dbt_without_inlet_beside_it_is_refused_where_it_writes(target, command, environment, is_refused):
    refused = []
    macro = (
        Environment(extensions=["jinja2.ext.do"])
        .from_string((REPO / "dbt/macros/refuse_without_lock.sql").read_text())
        .make_module(
            {
                "execute": True,
                "target": SimpleNamespace(name=target),
                "invocation_args_dict": {"which": command},
                "env_var": environment.get,
                "exceptions": SimpleNamespace(raise_compiler_error=refused.append),
            }
        )
    )
    macro.refuse_without_lock()
    assert bool(refused) == is_refused
