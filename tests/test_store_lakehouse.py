"""A lakehouse in a store, the whole way by the command line: two machines write it in turn, one of them dies meanwhile.

A machine is a folder in XDG_STATE_HOME: what Inlet keeps on it besides the project.
"""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from inlet import config, lake, publish
from inlet.commands import serve
from inlet.gold import generate
from tests import projects, stores
from tests.encode import linkexpress
from tests.test_serve import Served

pytestmark = pytest.mark.spark
REPO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A depot whose files and lakehouse are in buckets. Out: its folder, and deliver(number, first item)."""
    root = tmp_path_factory.mktemp("project")
    with stores.s3("lake") as (endpoint, client):
        make(root, endpoint)
        yield root, partial(deliver, client)


def make(root: Path, endpoint: str) -> None:
    made = projects.make(
        root, {"depot": projects.DEPOT | {"from": "s3://lake/landing/*.lxg"}}, lakehouse="s3://lake/house"
    )
    about = root / "pipelines" / "inlet.yml"
    stored = {"s3://lake": {"endpoint": endpoint, "region": stores.REGION}}
    about.write_text(yaml.safe_dump(yaml.safe_load(about.read_text()) | {"storage": stored}))
    shutil.copytree(REPO / "expectations", root / "expectations")
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    made = config.load(root)
    generate.write(made)


def deliver(client, number: int, first: int, num: int = 4) -> None:
    records = projects.item_records(first, num)
    body = linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})
    client.put_object(Bucket="lake", Key=f"landing/2026010503{number:02}00_{number:06}.lxg", Body=body)


def begun(root, machine, *words) -> subprocess.Popen:
    environment = os.environ | {"XDG_STATE_HOME": str(root.parent / machine)}
    command = [sys.executable, "-m", "inlet.cli", *words, "--project", str(root)]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def done(root, machine, *words) -> str:
    for _ in range(30):
        process = begun(root, machine, *words)
        out, errors = process.communicate()
        if "Another run writes" not in errors:  # the JVM of a process that was killed ends a moment later
            break
        time.sleep(1)
    assert process.returncode == 0, errors
    return out


def asked(root, machine, query: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(done(root, machine, "sql", query, "--format", "csv"))))[1:]


def test_two_machines_write_a_lakehouse_in_turn_and_see_the_same_rows(project):
    root, deliver = project
    deliver(1, 1)
    killed = begun(root, "a", "run")
    for line in killed.stderr:
        if json.loads(line).get("step") == "silver":  # gold is begun
            break
    refused = begun(root, "b", "run")
    assert "writes to s3://lake/house" in refused.communicate()[1] and refused.returncode == 6
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    done(root, "a", "run")
    deliver(2, 5)
    done(root, "b", "run")
    items = [("depot", f"{n}", f"item {n}") for n in range(1, 9)]
    before = "(select max(change_seq) from items__before_after where after.item_id <= 4)"
    rows = [
        tuple(row)
        for row in asked(
            root,
            "a",
            "select 'now' as at, source, item_id, name from items union all "
            f"select 'then', source, item_id, name from items_as_of({before}) order by all",
        )
    ]
    assert rows == [("now", *row) for row in items] + [("then", *row) for row in items[:4]]
    assert "depot" in done(root, "a", "status") and "item 8" in done(root, "a", "show", "items", "--key", "8")
    secrets = os.environ["AWS_SECRET_ACCESS_KEY"]
    assert not [file for file in root.parent.rglob("*") if file.is_file() and secrets.encode() in file.read_bytes()]


COMMITS = """
import sys
from inlet import config, lake, publish
from inlet.lake.spark import session
spark = session(config.load(sys.argv[1]).lakehouse_path(), has_catalog=False)
path = "s3://lake/log/00000000000000000000.json"
assert spark.conf.get("spark.delta.logStore.s3.impl") == "inlet.ConditionalLogStore"
settings = spark._jsparkSession.sessionState().newHadoopConf()
for text in ("first", "second"):  # the second looked before the first had written
    store = spark._jvm.inlet.ConditionalLogStore(settings)
    try:
        lines = spark._jvm.java.util.List.of(text).iterator()
        store.write(spark._jvm.org.apache.hadoop.fs.Path(path), lines, False, settings)
        print(text, "is written")
    except Exception as error:
        print(text, error.java_exception.getClass().getSimpleName())
"""


def test_a_commit_of_spark_never_replaces_another(project):
    root, _ = project
    ran = subprocess.run([sys.executable, "-c", COMMITS, str(root)], text=True, capture_output=True)
    assert ran.stdout.splitlines() == ["first is written", "second FileAlreadyExistsException"], ran.stderr


BUSY = {"of": "*", "status": 503, "code": "SlowDown"}
OF_SPARK = {"by": "Hadoop"}
SAYS_WHY = re.compile("store( of the lakehouse.*)? does not answer: |could not renew its lease")


@pytest.mark.proof
@pytest.mark.parametrize(("after", "fault"), [("bronze", BUSY | OF_SPARK), ("silver", BUSY)])
def test_a_store_that_fails_while_spark_reads_and_writes_it_ends_the_run_and_the_next_one_goes_on(
    tmp_path, after, fault, record_property
):
    """The checks of a step are done when it begins to fail."""
    root, num = tmp_path / "project", 12_000  # in each of two files: too many to be written without Spark
    with stores.s3("lake") as (upstream, client), stores.faulty(upstream) as (endpoint, fail, _):
        make(root, endpoint)
        for number in (0, 1):
            deliver(client, number, number * num, num)
        failing = begun(root, "a", "run")
        lines: list[dict] = []
        while not lines or lines[-1].get("of") != after:
            line = failing.stderr.readline()
            assert line, lines
            lines.append(json.loads(line))
        fail(fault)
        began = time.monotonic()
        lines = [json.loads(line) for line in failing.communicate(timeout=400)[1].splitlines()]
        record_property("seconds", round(time.monotonic() - began))
        [message] = [line["message"] for line in lines if line["step"] == "error"]
        assert failing.returncode == 6 and SAYS_WHY.search(message), message
        fail()
        assert publish.newest(config.load(root)) is None
        done(root, "a", "run")
        items = asked(root, "a", "select item_id, name from items order by item_id")
        assert items == [[f"{n}", f"item {n}"] for n in range(2 * num)]
        assert lake.peek("s3://lake/house", "silver.changes", ["count(*) as num"]) == [{"num": 2 * num}]


def until(question, expected, seconds: float = 300) -> None:
    """Ask again and again until the answer is as expected. Raises: AssertionError where it is not in time."""
    end = time.monotonic() + seconds
    while (answer := question()) != expected:
        assert time.monotonic() < end, answer
        time.sleep(2)


@pytest.mark.proof
def test_a_lakehouse_in_a_store_is_served_built_by_dbt_and_followed(project, monkeypatch):
    root, deliver = project
    monkeypatch.setenv("XDG_STATE_HOME", str(root.parent / "served"))
    deliver(11, 101)
    done(root, "served", "run")
    num = int(asked(root, "served", "select count(*) from items")[0][0])
    users = root / "users"
    serve.add_user(users, "ann", "secret")
    served = Served(config.load(root), "--passwords", users)
    followed = None
    try:

        def count() -> int:
            return served.ask("select count(*) from items")[0][0]

        assert (count(), served.ask("select name from items where item_id = 101")) == (num, [("item 101",)])
        assert "\nitem 102\n" in served.beeline("select name from items where item_id = 102")
        deliver(12, 105)
        done(root, "other", "run")
        until(count, num + 4)  # by another machine: the server looks each minute
        followed = begun(root, "served", "run", "--follow")
        deliver(13, 109)
        until(count, num + 8)
        followed.send_signal(signal.SIGTERM)
        errors = followed.communicate(timeout=120)[1]
        assert followed.returncode == 0 and '"level": "error"' not in errors, errors
        marts = root / "dbt" / "models" / "marts"
        shutil.rmtree(marts)  # of the demo
        marts.mkdir()
        (marts / "num_items.sql").write_text("select count(*) as num from public.items")
        environment = os.environ | {"INLET_LAKEHOUSE": "s3://lake/house"}
        dbt = [Path(sys.executable).with_name("dbt"), "build"]
        built = subprocess.run(dbt, cwd=root / "dbt", capture_output=True, text=True, env=environment)
        assert built.returncode == 0 and "ERROR=0" in built.stdout, built.stdout
        assert served.ask("select num from num_items", database="marts") == [(num + 8,)]
        served.stop(signal.SIGTERM)
    finally:
        if followed:
            followed.kill()
        served.process.terminate()
        served.process.wait()
