"""The Airflow DAG: what it makes of a project, and, in a real Airflow with an environment of its own, that it runs."""

import ast
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from inlet import config
from inlet.commands import init
from inlet.errors import InletError
from tests.postgres import free_port

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "infra" / "airflow"
sys.path.append(str(HERE))
from inlet_project import EXIT_CODES, ProjectError, outcome, read  # noqa: E402

SOURCES = ("shop", "depot_tokyo", "depot_osaka")


def project(root: Path, airflow: str = "", sources=SOURCES) -> Path:
    (root / "pipelines" / "tables").mkdir(parents=True)
    (root / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"sources": {name: {} for name in sources}}, sort_keys=False)
    )
    for table in ("orders", "stock"):
        (root / "pipelines" / "tables" / f"{table}.yml").write_text(f"name: {table}\n")
    if airflow:
        (root / "pipelines" / "airflow.yml").write_text(airflow)
    return root


def test_without_settings_one_task_lands_all_sources(tmp_path):
    found = read(project(tmp_path))
    assert found.bronze == {"bronze": ["--step", "bronze"]}
    assert (found.dag, found.schedule, found.pool) == ("inlet", "*/15 * * * *", "inlet")
    assert found.assets == ["inlet.public.orders", "inlet.public.stock"]


def test_each_group_has_a_task_and_no_source_is_left_out(tmp_path):
    found = read(project(tmp_path, "groups: {tokyo: [depot_tokyo], web: [shop]}\nschedule: none\ndag: shop"))
    assert found.bronze == {
        "bronze_tokyo": ["--step", "bronze", "--source", "depot_tokyo"],
        "bronze_web": ["--step", "bronze", "--source", "shop"],
        "bronze_rest": ["--step", "bronze", "--source", "depot_osaka"],
    }
    assert found.schedule is None and found.assets[0] == "shop.public.orders"


def test_names_are_text_as_inlet_reads_them(tmp_path):
    found = read(project(tmp_path, "groups: {on: [no, 007]}", sources=("no", "007")))
    assert found.bronze == {"bronze_on": ["--step", "bronze", "--source", "no", "--source", "007"]}


@pytest.mark.parametrize(
    ("airflow", "sentence"),
    [
        (
            "groups: {depots: [depot_kyoto]}",
            "groups.depots names the source depot_kyoto, which pipelines/inlet.yml does not have. It has shop, "
            "depot_tokyo, depot_osaka: take depot_kyoto out of the group, or put the source back",
        ),
        ("groups: {a: [shop], b: [shop]}", "shop stands in the groups a and b. Leave it in one of them"),
        ("groups: {a: shop}", "groups.a: expected a name of letters, digits and _, and a list of sources"),
        ("groups: [shop]", "groups: expected fields, found ['shop']"),
        ("groups: {rest: [shop]}", "depot_tokyo, depot_osaka in no group"),
        ("group: {a: [shop]}", "group is not known. It knows dag, schedule, retries"),
        ("retries: many", "retries: expected a whole number, found 'many'"),
        ("dag: a b", "dag: expected letters, digits and _ . -, found 'a b'"),
        ("a: [", "cannot be read"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path, airflow, sentence):
    with pytest.raises(ProjectError) as error:
        read(project(tmp_path, airflow))
    assert sentence in str(error.value) and str(tmp_path / "pipelines" / "airflow.yml") in str(error.value)


def test_a_folder_without_a_project_is_said(tmp_path):
    with pytest.raises(ProjectError, match="it has no pipelines/inlet.yml. Set INLET_PROJECT"):
        read(tmp_path)


def test_every_exit_code_of_inlet_is_known():
    codes = {kind.exit_code for kind in (InletError, *InletError.__subclasses__())}
    assert codes == {code for code in EXIT_CODES if code < 100}
    assert {code for code in codes if outcome(code)[1]} == {1, 6}
    assert outcome(-9) == outcome(137) == ("ended by signal 9", True)
    assert all(re.search(rf"^\| .*\b{code}\b.* \|", (HERE / "README.md").read_text(), re.M) for code in EXIT_CODES)


@pytest.mark.parametrize("file", sorted(HERE.glob("*.py")), ids=lambda path: path.name)
def test_the_dag_imports_airflow_yaml_and_the_standard_library_alone(file):
    nodes = list(ast.walk(ast.parse(file.read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    allowed = {*sys.stdlib_module_names, "airflow", "yaml", "inlet_project"}
    assert {module.split(".")[0] for module in modules} <= allowed


def test_the_dag_file_is_not_skipped():
    """Airflow reads only files that hold both words."""
    assert {"dag", "airflow"} <= set(re.findall(r"\w+", (HERE / "inlet_dag.py").read_text().lower()))


def test_the_demo_project_makes_a_dag():
    """Airflow's reading of a project is that of Inlet."""
    loaded = config.load(ROOT)
    assert read(ROOT).assets == [f"inlet.public.{name}" for name in sorted(t.name for t in loaded.tables.values())]


def scheduled(folder: Path) -> Path:
    """A project of `inlet init --airflow`."""
    source = init.FirstSource("shop", "qlik_json", "in/*.parquet")
    said = init.init(folder, source, has_airflow=True)
    assert f"{folder}/infra/airflow/README.md" in said[-1]
    return folder


def test_a_project_of_init_brings_its_dag(tmp_path, monkeypatch):
    """Where the files lie, without any variable, the DAG is that of the project. In: Airflow's names alone."""
    made = scheduled(tmp_path / "mine")
    files = {file.name: file.read_bytes() for file in HERE.iterdir() if file.is_file()}
    assert {file.name: file.read_bytes() for file in (made / "infra" / "airflow").iterdir()} == files
    monkeypatch.delenv("INLET_PROJECT", raising=False)
    monkeypatch.delenv("INLET_COMMAND", raising=False)
    tasks = []

    class Operator:
        def __init__(self, task_id: str, outlets=()):
            tasks.append((task_id, list(outlets)))

        __rshift__ = __rrshift__ = lambda self, other: other

    sdk = SimpleNamespace(DAG=lambda **given: nullcontext(given["dag_id"]), Asset=str, BaseOperator=Operator)
    errors = dict.fromkeys(("AirflowException", "AirflowFailException", "AirflowSkipException"), Exception)
    for name, module in (
        ("airflow", None),
        ("airflow.sdk", sdk),
        ("airflow.sdk.exceptions", SimpleNamespace(**errors)),
    ):
        monkeypatch.setitem(sys.modules, name, module or SimpleNamespace(sdk=sdk))
    shutil.copy(ROOT / "pipelines" / "tables" / "orders.yml", made / "pipelines" / "tables")
    dag = runpy.run_path(str(made / "infra" / "airflow" / "inlet_dag.py"))
    assert (dag["PROJECT"], dag["COMMAND"], dag["dag"]) == (made, "inlet", "inlet")
    names = ["bronze", "silver", "gold", "publish"]
    assert tasks == [(name, ["inlet.public.orders"] * (name == "publish")) for name in names]


# from here on: a real Airflow


@pytest.fixture(scope="module")
def environment() -> Path:
    """The folder of programs of a virtual environment with Airflow, made once from requirements.lock."""
    lock, folder = HERE / "requirements.lock", ROOT / "build" / "airflow-venv"
    ready, key = folder / ".ready", sha256(lock.read_bytes()).hexdigest()
    if not ready.exists() or ready.read_text() != key:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "-r", lock], check=True)
        ready.write_text(key)
    return folder / "bin"


class Airflow:
    """One Airflow with its own database and DAG folder, for one project."""

    def __init__(self, programs: Path, home: Path, root: Path, command: str = "inlet"):
        self.programs, self.home, self.dags = programs, home, home / "dags"
        self.dags.mkdir(parents=True)
        for file in HERE.glob("*.py"):
            shutil.copy(file, self.dags)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "INLET", "PYTHON"))
        }
        self.environment = kept | {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "INLET_PROJECT": str(root),
            "INLET_COMMAND": command,
        }
        self.call("db", "migrate")

    def call(self, *words: str, is_expected_to_fail: bool = False) -> str:
        """Out: what it prints to both streams."""
        done = subprocess.run(
            [self.programs / "airflow", *words],
            env=self.environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert bool(done.returncode) == is_expected_to_fail, done.stdout[-5000:]
        return done.stdout

    def import_errors(self) -> list[dict]:
        done = subprocess.run(
            [self.programs / "airflow", "dags", "list-import-errors", "--local", "--output", "json"],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        found = next((json.loads(line) for line in done.stdout.splitlines() if line.startswith("[{")), [])
        assert bool(found) == bool(done.returncode), done.stdout
        return found

    def run(self, succeeds: bool = True) -> tuple[dict[str, tuple[str, int]], str]:
        """One run of the DAG. Out: task -> (state, number of tries), and the log."""
        log = self.call("dags", "test", "inlet", is_expected_to_fail=not succeeds)
        rows = self.rows(
            "select task_id, state, try_number from task_instance where run_id = "
            "(select run_id from dag_run where dag_id = 'inlet' order by id desc limit 1)"
        )
        return {task: (state, tries) for task, state, tries in rows}, log

    def rows(self, query: str) -> list[tuple]:
        with sqlite3.connect(self.home / "airflow.db") as database:
            return database.execute(query).fetchall()


STAND_IN = """\
#!/bin/sh
# ends, time after time, as the lines of the file of its step say
echo "begin $@" >> calls
sleep 0.5
echo "end $@" >> calls
printf '{"step": "%s", "point": 7}\\n' "$5"
code=$(head -1 "$5" 2>/dev/null); sed -i 1d "$5" 2>/dev/null
case "$code" in
  "") exit 0;;
  -9) kill -9 $$;;
  *) echo "inlet: a sentence about $code. And a remedy" >&2; exit "$code";;
esac
"""


@pytest.fixture(scope="module")
def stand_in(environment, tmp_path_factory) -> Airflow:
    """An Airflow whose `inlet` is a stand-in; tries are a second apart."""
    home = tmp_path_factory.mktemp("airflow")
    root = project(home / "project", "retries: 2\nretry_delay_seconds: 1\n")
    for name, text in (("inlet", STAND_IN), ("dbt", "#!/bin/sh\necho dbt $@ >> ../../home/calls\n")):
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    (root / "dbt").mkdir()
    made = Airflow(environment, home / "home", root, str(home / "inlet"))
    made.environment["PATH"] = f"{home}:{environment}:{made.environment['PATH']}"
    return made


def ends(airflow: Airflow, **codes: list[int]) -> None:
    for step in ("bronze", "silver", "gold", "publish"):
        (airflow.home / step).write_text("".join(f"{code}\n" for code in codes.get(step, [])))


DONE, BEHIND = ("success", 1), ("upstream_failed", 0)


@pytest.mark.proof
def test_the_dag_of_a_project_of_init_has_no_import_errors(environment, tmp_path):
    made = scheduled(tmp_path / "mine")
    airflow = Airflow(environment, tmp_path / "home", made)
    del airflow.environment["INLET_PROJECT"]
    airflow.environment["AIRFLOW__CORE__DAGS_FOLDER"] = str(made / "infra" / "airflow")
    assert airflow.import_errors() == []


@pytest.mark.proof
def test_it_parses_without_errors_and_a_broken_file_is_seen(stand_in):
    assert stand_in.import_errors() == []
    broken = stand_in.dags / "broken_dag.py"
    broken.write_text("import airflow, nothing_of_that_name  # dag\n")
    (error,) = stand_in.import_errors()
    broken.unlink()
    assert error["filepath"] == str(broken) and "nothing_of_that_name" in error["error"]


@pytest.mark.proof
def test_parsing_it_imports_neither_spark_nor_inlet(stand_in):
    code = (
        "import sys; from airflow.dag_processing.dagbag import DagBag; dags = DagBag(sys.argv[1]).dags; "
        "print('PARSED', *dags, *sorted(m for m in sys.modules if m.split('.')[0] in ('pyspark', 'delta', 'inlet')))"
    )
    done = subprocess.run(
        [stand_in.programs / "python", "-c", code, stand_in.dags],
        env=stand_in.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PARSED inlet\n" in done.stdout


@pytest.mark.proof
def test_a_source_that_is_gone_is_an_import_error_with_the_remedy(stand_in):
    root = Path(stand_in.environment["INLET_PROJECT"])
    settings = root / "pipelines" / "airflow.yml"
    before = settings.read_text()
    settings.write_text(before + "groups: {depots: [depot_kyoto]}\n")
    (error,) = stand_in.import_errors()
    settings.write_text(before)
    assert "take depot_kyoto out of the group, or put the source back" in " ".join(error["error"].split())


@pytest.mark.proof
@pytest.mark.parametrize(
    ("codes", "state", "tries"),
    [
        ([1], "success", 2),
        ([-9], "success", 2),
        ([137], "success", 2),
        ([6, 6], "success", 3),
        ([6, 6, 6], "failed", 3),
        ([2], "failed", 1),
        ([3], "failed", 1),
        ([4], "failed", 1),
        ([5], "failed", 1),
        ([127], "failed", 1),
        ([6, 3], "failed", 2),
    ],
)
def test_what_may_pass_is_tried_again_and_nothing_else(stand_in, codes, state, tries):
    ends(stand_in, silver=codes)
    states, log = stand_in.run(succeeds=state == "success")
    behind = DONE if state == "success" else BEHIND
    assert states == {"bronze": DONE, "silver": (state, tries), "gold": behind, "publish": behind}
    assert f"exit code {codes[-1]}, {outcome(codes[-1])[0]}" in log
    assert codes[-1] in (-9,) or f"a sentence about {codes[-1]}. And a remedy" in log


@pytest.mark.proof
def test_a_command_that_is_not_there_fails_at_once(stand_in):
    command = stand_in.environment["INLET_COMMAND"]
    stand_in.environment["INLET_COMMAND"] = "/nowhere/inlet"
    states, log = stand_in.run(succeeds=False)
    stand_in.environment["INLET_COMMAND"] = command
    assert states["bronze"] == ("failed", 1)
    assert "/nowhere/inlet cannot be run: No such file or directory. Set INLET_COMMAND" in log


@pytest.mark.proof
def test_a_publication_renews_the_asset_of_each_table(stand_in):
    ends(stand_in)
    before = len(stand_in.rows("select 1 from asset_event"))
    stand_in.run()
    events = stand_in.rows(
        "select name, asset_event.extra from asset_event join asset on asset.id = asset_id order by asset_event.id"
    )
    assert sorted((name, json.loads(extra)) for name, extra in events[before:]) == [
        ("inlet.public.orders", {"point": 7}),
        ("inlet.public.stock", {"point": 7}),
    ]


@contextmanager
def scheduling(airflow: Airflow):
    """Airflow with a scheduler, on free ports, until the block ends."""
    ports = [free_port() for _ in range(2)]
    airflow.environment |= {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(ports[0]),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{ports[0]}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{ports[0]}/execution/",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports[1]),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    }
    started = [
        subprocess.Popen(
            [airflow.programs / "airflow", part],
            env=airflow.environment,
            cwd=airflow.home,
            stdout=subprocess.DEVNULL,
            stderr=(airflow.home / f"{part}.log").open("w"),
            start_new_session=True,
        )
        for part in ("api-server", "dag-processor", "scheduler")
    ]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            process.wait(60)


def awaited(airflow: Airflow, query: str) -> list[tuple]:
    """What a query finds within five minutes."""
    until = time.monotonic() + 300
    while not (found := airflow.rows(query)) and time.monotonic() < until:
        time.sleep(1)
    return found


@pytest.mark.proof
def test_a_scheduler_runs_one_task_at_a_time_and_starts_the_marts(stand_in):
    """With the pool and the example of the README: three groups of sources land one after the other, though nothing
    else orders them, and then the DAG runs that waits for two tables (here one of them is another).
    """
    (example,) = re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)
    (stand_in.dags / "marts_dag.py").write_text(example.replace("inlet.public.payments", "inlet.public.stock"))
    assert stand_in.import_errors() == []
    (pool,) = re.findall(r"airflow (pools set .*)", (HERE / "README.md").read_text())
    stand_in.call(*shlex.split(pool))
    settings = Path(stand_in.environment["INLET_PROJECT"]) / "pipelines" / "airflow.yml"
    settings.write_text(
        settings.read_text() + "schedule: none\ngroups: {a: [shop], b: [depot_tokyo], c: [depot_osaka]}\n"
    )
    (stand_in.home / "calls").unlink(missing_ok=True)
    ends(stand_in)
    stand_in.call("dags", "reserialize")
    for dag in ("inlet", "marts"):
        stand_in.call("dags", "unpause", dag, "--yes")
    stand_in.call("dags", "trigger", "inlet")
    with scheduling(stand_in):
        ended = "select state from dag_run where dag_id = 'marts' and state in ('success', 'failed')"
        assert awaited(stand_in, ended) == [("success",)]
    calls = [line.split(maxsplit=1) for line in (stand_in.home / "calls").read_text().splitlines()]
    *runs, marts = calls
    assert marts == ["dbt", "build --select marts"]
    assert [word for word, _ in runs] == ["begin", "end"] * 6  # none began before the one before it had ended
    assert [words.split("--step ")[1] for word, words in runs if word == "begin"][3:] == ["silver", "gold", "publish"]


# and with a real Inlet


@pytest.fixture(scope="module")
def demo(environment, tmp_path_factory):
    """The demo's project with a small feed, and an Airflow that runs it."""
    from infra.local.feed import write_feed

    home = tmp_path_factory.mktemp("demo")
    root = home / "shop"
    for folder in ("pipelines", "dbt", "expectations"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("target", "__pycache__", "inlet"))
    (root / "pipelines" / "airflow.yml").write_text("retries: 0\n")
    command = home / "inlet"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/pipelines exec {sys.executable} -m inlet.cli "$@"\n')
    command.chmod(0o755)
    return Airflow(environment, home / "home", root, str(command)), root, write_feed(home / "feed", scale=0.02), command


def shown(command: Path, root: Path, table: str) -> list[dict]:
    """The live rows of a public view."""
    words = [command, "show", table, "--project", root, "--format", "json", "--limit", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.proof
def test_it_stops_at_a_failing_check_and_brings_the_demo_to_published_views(demo):
    airflow, root, feed, command = demo
    for batch in range(1, len(feed.batches) + 1):
        feed.deliver(batch, root / "landing")
    suite = root / "expectations" / "silver.yml"
    as_it_was = suite.read_text()
    suite.write_text(as_it_was + NO_ROW)
    states, log = airflow.run(succeeds=False)
    assert states == {"bronze": DONE, "silver": ("failed", 1), "gold": BEHIND, "publish": BEHIND}
    assert "exit code 3, a check of severity `error` failed: inlet: " in log
    assert '"step": "silver", "batch": 1' in log  # the task's log holds Inlet's lines
    assert airflow.rows("select * from asset_event") == []

    suite.write_text(as_it_was)
    states, _ = airflow.run()
    assert set(states.values()) == {DONE}
    for table in ("orders", "stock"):
        expected = next(rows for name, rows in feed.expected.items() if name.lower().endswith(f".{table}"))
        assert len(shown(command, root, table)) == len(expected)
    assert [json.loads(extra) for (extra,) in airflow.rows("select distinct extra from asset_event")] == [{"point": 1}]

    states, _ = airflow.run()  # nothing is new: no asset is renewed
    assert states == {"bronze": DONE, "silver": DONE, "gold": DONE, "publish": ("skipped", 1)}


NO_ROW = """
- table: silver.changes
  expect: unexpected_rows_expectation
  kwargs: {unexpected_rows_query: "select * from {batch}"}
  severity: error
  why: a check that never holds
"""
