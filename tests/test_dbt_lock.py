"""A plain dbt that writes holds the lakehouse as a run does, however it is started."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from jinja2 import Environment

import dbt_inlet
from inlet import lake
from inlet.lake import jars, spark
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
        "set_invocation_context; set_invocation_context({}); dbt_inlet.start_spark = print; "
        "dbt_inlet.of_profile = lambda: SimpleNamespace(type='spark'); "
        "dbt_inlet.get_flags = lambda: SimpleNamespace(PROJECT_DIR='gold/dbt', WHICH='build', TARGET=None); "
        "dbt_inlet.Lock('inlet'); dbt_inlet.Lock('inlet'); print('begun', flush=True); sys.stdin.read()"
    )
    beside = subprocess.Popen(
        [sys.executable, "-c", begin],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"INLET_LAKEHOUSE": str(tmp_path / "lakehouse"), "PYTHONPATH": str(REPO / "pipelines")},
    )
    begun = [beside.stdout.readline() for _ in range(3)]
    assert begun == [f"{tmp_path / 'lakehouse'} {tmp_path / 'lakehouse'}\n"] * 2 + ["begun\n"]
    run = [sys.executable, "-m", "inlet.cli", "run", "--project", str(root)]
    assert "Another run writes" in subprocess.run(run, capture_output=True, text=True).stderr
    beside.communicate("")
    assert "nothing_new" in subprocess.run(run, capture_output=True, text=True).stderr


@pytest.mark.parametrize(
    ("method", "changed", "further"),
    [
        ("session", {}, [{}]),
        ("session", {"spark.driver.memory": "8g", "my.own": 1}, [{"spark.driver.memory": "8g", "my.own": "1"}]),
        ("thrift", {}, []),  # Spark runs elsewhere
        (None, {}, []),  # another adapter, whose targets have no method
    ],
)
def test_a_plain_dbt_starts_spark_as_a_run_does_with_what_the_profile_changes(monkeypatch, method, changed, further):
    """So its jars are resolved already, and what the JVM says goes to a file."""
    begun = []
    own = {"spark.jars.packages": jars.DELTA} | spark.settings("../lakehouse")
    credentials = SimpleNamespace(server_side_parameters=own | changed, **({"method": method} if method else {}))
    monkeypatch.setattr(spark, "session", lambda path, further: begun.append((path, further)))
    monkeypatch.setattr(dbt_inlet, "load_profile", lambda *_: SimpleNamespace(credentials=credentials))
    monkeypatch.setattr(dbt_inlet, "get_flags", lambda: SimpleNamespace(PROJECT_DIR="", VARS={}, PROFILE="", TARGET=""))
    dbt_inlet.start_spark("/lake", "../lakehouse")
    assert begun == [("/lake", one) for one in further]


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
