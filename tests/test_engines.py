"""The same project on each kind of Spark: gold is equal, row by row, to what the embedded one has made."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from infra.local.feed import write_feed
from infra.local.feed_files import Feed
from inlet import config, lake
from inlet.gold import generate
from tests import projects, sparks
from tests.encode import linkexpress
from tests.test_package import link_packages

pytestmark = [pytest.mark.spark, pytest.mark.proof]
REPO = Path(__file__).resolve().parents[1]
RUN = [sys.executable, "-m", "inlet.cli", "run"]
SERVERLESS = """
import os, sys
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame

SETTABLE = {"spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.sql.ansi.enabled",
            "spark.sql.files.maxPartitionBytes", "spark.sql.legacy.timeParserPolicy",
            "spark.databricks.execution.timeout"}
set_ = RuntimeConf.set

def limited(self, key, value):
    if key not in SETTABLE:
        raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {key} is not available")
    set_(self, key, value)

def refused(self, *args, **named):
    raise AnalysisException("[NOT_SUPPORTED_WITH_SERVERLESS]")

session = SparkSession.builder.remote(os.environ.pop("SPARK_REMOTE")).getOrCreate()  # there before Inlet
SparkSession.Builder.getOrCreate = lambda builder: session  # as Databricks' documentation has it
os.environ["DATABRICKS_RUNTIME_VERSION"] = "client.5"
RuntimeConf.set = limited
DataFrame.persist = DataFrame.cache = DataFrame.checkpoint = DataFrame.localCheckpoint = refused
from inlet.cli import main
main()
"""  # what Databricks' serverless compute refuses, as its documentation says
IN_TASKS = """
from inlet.bronze import blocks, tasks
from inlet.cli import main

def plan_file(*given):
    raise AssertionError("the driver reads new files")

blocks.plan_file, tasks.NUM_FILES = plan_file, 1
main()
"""  # files of records are planned by tasks, whose package is not changed
RUN_IN_TASKS = [sys.executable, "-c", IN_TASKS, "run"]
RUNS = ((1, 2), (3, 4))  # which batches of the feed come before each run
NUM_FILES, NUM_ITEMS = 2, 12_000
OF_RUNS = {"batch_id"}  # a column that tells one run from another
HELD = [
    sys.executable,
    "-c",
    "import json, sys, pathlib; from tests.test_engines import held;"
    "print(json.dumps(held(pathlib.Path(sys.argv[-1]))), file=sys.stderr)",
]  # what gold holds, asked in a process of its own
STEPS = ("before_after", "current", "past")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Gold of the demo's feeds, a twentieth of them, made by a Spark of its own."""
    return gold(tmp_path_factory.mktemp("embedded"), RUN)


def gold(folder: Path, command: list[str], **variables: str) -> dict[str, list[str]]:
    """Run the demo's project in a folder. In: the command that runs it; environment variables. Out: what each table of
    gold holds then."""
    root, feed = made(folder)
    for batches in RUNS:
        deliver(feed, batches, root)
        run(root, command, **variables)
    return held(root)


def made(folder: Path) -> tuple[Path, Feed]:
    """The demo's project, and its feeds."""
    root = folder / "project"
    for part in ("pipelines", "dbt", "expectations"):
        ignored = shutil.ignore_patterns("__pycache__", "target", "logs", "inlet.egg-info")
        shutil.copytree(REPO / part, root / part, ignore=ignored)
    return root, write_feed(folder / "feed", seed=5, scale=0.05)


def deliver(feed: Feed, batches: tuple[int, ...], root: Path) -> None:
    for batch in batches:
        feed.deliver(batch, root / "landing")


def begun(root: Path, command: list[str], **variables: str) -> subprocess.Popen:
    path = os.pathsep.join([str(REPO / "pipelines"), str(REPO)])
    environment = os.environ | {"PYTHONPATH": path} | variables
    words = [*command, "--project", str(root)]
    return subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(root: Path, command: list[str], code: int = 0, **variables: str) -> list[str]:
    """Out: what the command wrote to standard error."""
    with begun(root, command, **variables) as running:
        out, err = running.communicate(timeout=900)
    assert running.returncode == code, out[-3000:] + err[-6000:]
    return err.splitlines()


def wait_for(running: subprocess.Popen, root: Path, file: str) -> None:
    """Wait until a run has written a file of a table."""
    while not list(root.glob(f"lakehouse/{file}")):
        assert running.poll() is None, running.communicate()
        time.sleep(0.1)


def held(root: Path) -> dict[str, list[str]]:
    project, rows_of = config.load(root), {}
    for table in project.tables.values():
        for step in STEPS:
            name = f"gold.{table.name}__{step}"
            columns = sorted(lake.column_names(project.lakehouse_path(), name) - OF_RUNS)
            rows = lake.peek(project.lakehouse_path(), name, columns)
            rows_of[name] = sorted(str(tuple(row.values())) for row in rows)
    return rows_of


def depot(folder: Path) -> Path:
    """A project of one table, too many rows of which are delivered for a batch without Spark."""
    root = folder / "project"
    generate.write(projects.make(root))
    for part in ("expectations", "dbt"):
        ignored = shutil.ignore_patterns("target", "logs", "gold")
        shutil.copytree(REPO / part, root / part, ignore=ignored, dirs_exist_ok=True)
    for number in range(NUM_FILES):
        records = projects.item_records(number * NUM_ITEMS, NUM_ITEMS)
        body = linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})
        file = root / "landing" / "depot" / f"202601050300{number:02}_{number:06}.lxg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    return root


def check_depot(root: Path) -> None:
    """Silver and gold hold each row once."""
    rows = lake.peek(str(root / "lakehouse"), "gold.items__current", ["item_id", "name"], "order by item_id")
    assert rows == [{"item_id": n, "name": f"item {n}"} for n in range(NUM_FILES * NUM_ITEMS)]
    assert lake.peek(str(root / "lakehouse"), "silver.changes", ["count(*) as num"]) == [{"num": len(rows)}]


@pytest.mark.gate
def test_a_run_goes_on_where_a_client_was_killed_and_where_a_connect_server_went_away(tmp_path):
    root = depot(tmp_path)
    with sparks.connect(tmp_path) as address:
        with begun(root, RUN_IN_TASKS, SPARK_REMOTE=address) as killed:
            wait_for(killed, root, "silver/changes/*.parquet")  # it is being written
            killed.kill()
        running = begun(root, RUN, SPARK_REMOTE=address)
        wait_for(running, root, "gold/applied/_delta_log/*0.json")
    _, err = running.communicate(timeout=300)
    message = f"The Spark Connect server at {address} does not answer, or was started again meanwhile"
    assert (running.returncode, message in err, "Traceback" in err) == (6, True, False), err
    with sparks.connect(tmp_path) as address:
        run(root, RUN, SPARK_REMOTE=address)
    check_depot(root)


def test_spark_connect_makes_the_same_gold(embedded, tmp_path):
    with sparks.connect(tmp_path) as address:
        assert gold(tmp_path, RUN, SPARK_REMOTE=address) == embedded


def test_serverless_compute_as_far_as_a_server_here_can_stand_for_it(embedded, tmp_path):
    """Tables of a catalog with a prefix, whose paths Inlet does not have."""
    inlet = [sys.executable, "-c", SERVERLESS]
    root, feed = made(tmp_path)
    of_catalog = {"catalog": "spark_catalog", "prefix": "cdc_", "files": "."}
    settings = yaml.safe_load((root / "pipelines" / "inlet.yml").read_text())
    (root / "pipelines" / "inlet.yml").write_text(yaml.safe_dump(settings | {"lakehouse": of_catalog}))
    with sparks.connect(tmp_path) as address:
        for batches in RUNS:
            deliver(feed, batches, root)
            run(root, [*inlet, "run"], SPARK_REMOTE=address)
        (shown,) = run(root, HELD, SPARK_REMOTE=address)
        assert json.loads(shown) == embedded
        for words in (["status"], ["verify", "--table", "orders"], ["show", "orders"], ["pin", "quarter"], ["doctor"]):
            run(root, [*inlet, *words], SPARK_REMOTE=address)
        run(root, [*inlet, "maintain"], 2, SPARK_REMOTE=address)
        query = "select count(*) from quarter.orders q join public.orders o using (order_id)"
        run(root, [*inlet, "sql", query], SPARK_REMOTE=address)
    assert sorted(path.name for path in (tmp_path / "warehouse").iterdir()) == [
        *(f"cdc_{schema}.db" for schema in ("bronze", "checks", "gold", "public", "silver")),
        "quarter.db",
    ]


def test_workers_of_a_connect_server_get_by_with_a_gibibyte(embedded, tmp_path):
    with sparks.connect(tmp_path, "spark.executor.pyspark.memory=1g") as address:
        assert gold(tmp_path, RUN, SPARK_REMOTE=address) == embedded


def test_a_standalone_cluster_makes_the_same_gold(embedded, tmp_path):
    with sparks.cluster(tmp_path) as (master, _):
        python = str(tmp_path / "worker_python")
        assert gold(tmp_path, RUN, INLET_MASTER=master, PYSPARK_PYTHON=python) == embedded
        root = depot(tmp_path / "depot")
        run(root, RUN_IN_TASKS, INLET_MASTER=master, PYSPARK_PYTHON=python)
        check_depot(root)


@pytest.mark.parametrize("file", ["silver/changes/*.parquet", "gold/items__current/_delta_log/*0.json"])
def test_a_run_survives_a_worker_of_its_cluster_or_leaves_the_rest_to_the_next_one(tmp_path, file):
    root, python = depot(tmp_path), str(tmp_path / "worker_python")
    with sparks.cluster(tmp_path) as (master, workers):
        running = begun(root, RUN, INLET_MASTER=master, PYSPARK_PYTHON=python)
        wait_for(running, root, file)
        sparks.end(workers[0])
        _, err = running.communicate(timeout=300)
        message = f"The Spark cluster at {master} does not answer, or has lost workers"
        assert running.returncode == 0 or (running.returncode == 6 and message in err), err[-6000:]
        assert "Traceback" not in err
        run(root, RUN, INLET_MASTER=master, PYSPARK_PYTHON=python)
    check_depot(root)


def test_spark_submit_makes_the_same_gold(embedded, tmp_path):
    with sparks.cluster(tmp_path) as (master, _):
        ask = "import inlet.cli.__main__ as program; print(program.__file__)"  # as docs/clusters.md has it
        program = subprocess.check_output([sys.executable, "-c", ask], text=True, cwd=REPO / "pipelines").strip()
        submit = [str(sparks.HOME / "bin" / "spark-submit"), "--master", master, "--packages", sparks.jars.DELTA]
        python = str(tmp_path / "worker_python")
        assert (
            gold(tmp_path, [*submit, program, "run"], PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=sys.executable)
            == embedded
        )


def test_the_client_of_spark_connect_is_enough_without_java_and_the_whole_of_pyspark(tmp_path):
    uv, client = Path(sys.executable).with_name("uv"), tmp_path / "client"
    install = ["pip", "install", "-q", "--no-deps", "--target", client, "-p", sys.executable]
    subprocess.run([uv, *install, "pyspark-client>=4.1,<4.2"], check=True)
    packages = link_packages(tmp_path / "packages", {"pyspark", "py4j"})
    for part in client.glob("pyspark*"):
        (packages / part.name).symlink_to(part)
    root, path = depot(tmp_path), ":".join(map(str, (REPO / "pipelines", packages)))
    with sparks.connect(tmp_path) as address:
        for words in (["doctor"], ["run"], ["verify"], ["sql", "select count(*) from items"]):
            done = subprocess.run(
                [sys.executable, "-S", "-m", "inlet.cli", *words, "--project", root],
                env={"PYTHONPATH": path, "PATH": "/nowhere", "HOME": str(tmp_path), "SPARK_REMOTE": address},
                capture_output=True,
                text=True,
                timeout=600,
            )
            assert done.returncode == 0 and "Warning" not in done.stderr, done.stdout[-3000:] + done.stderr[-3000:]
    check_depot(root)
