"""One Spark session for all tests of a process that need one; tests without the `spark` fixture run without Java in
seconds.
"""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["TZ"] = "Asia/Tokyo"  # nothing may depend on the machine's zone
time.tzset()
os.environ.pop("INLET_CATALOG", None)  # tests open catalogs of their own
os.environ |= {
    "AWS_ACCESS_KEY_ID": "inlet",
    "AWS_SECRET_ACCESS_KEY": "a secret",
}  # of stores.py, also for Spark's workers
os.environ.pop("COLUMNS", None)  # as wide as output that no one reads at a terminal
# a JVM that lives for minutes spends more on compiling well than that saves; the cache that comes with that option is
# too small for Spark
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")


ALL_ROUNDS = "INLET_ALL_ROUNDS" in os.environ  # tests marked `rounds` ask everything, not a sample
TAKES_MINUTES, TAKES_HOURS = "takes minutes: make proof", "takes hours: make soak"
# by what they cost: with `--dist loadfile --no-loadscope-reorder` the first ones are begun first, and small ones fill
# the end
HEAVY = [
    "test_gold.py",
    "test_publish.py",
    "test_fuzz.py",
    "test_silver.py",
    "test_pipeline.py",
    "test_gold_runs.py",
    "test_store_lakehouse.py",
    "test_bank.py",
    "test_checks.py",
    "test_toy.py",
    "test_transactions.py",
    "test_replay.py",
    "test_macros.py",
    "test_maintain_spark.py",
    "test_notebooks.py",
    "test_framed_again.py",
    "test_names.py",
    "test_codecs.py",
    "test_small_silver.py",
    "test_postgres.py",
    "test_cases.py",
    "test_cli.py",
    "test_kafka_runs.py",
    "test_first_source.py",
    "test_schema_change.py",
    "test_bronze.py",
    "test_business.py",
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: HEAVY.index(item.path.name) if item.path.name in HEAVY else len(HEAVY))
    for item in items:
        if item.get_closest_marker("proof") and not {"INLET_PROOF", "INLET_SOAK"} & os.environ.keys():
            item.add_marker(pytest.mark.skip(reason=TAKES_MINUTES))
        if {"spark", "broker"} & set(item.fixturenames):
            item.add_marker("spark")


def pytest_sessionfinish(session):
    """With INLET_ALL_TESTS a test that is skipped because something is missing fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    lacking = (
        [
            r
            for r in reporter.stats.get("skipped", [])
            if TAKES_MINUTES not in str(r.longrepr) and TAKES_HOURS not in str(r.longrepr)
        ]
        if reporter
        else []
    )
    if lacking and "INLET_ALL_TESTS" in os.environ and not hasattr(session.config, "workerinput"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(f"{len(lacking)} tests were skipped that should run here: {lacking[0].longrepr}", red=True)


def pytest_terminal_summary(terminalreporter):
    """What a test has counted: kills, reads, inputs."""
    for report in terminalreporter.stats.get("passed", []):
        if report.when == "call" and report.user_properties:
            terminalreporter.write_line(
                f"{report.nodeid}: " + ", ".join(f"{name} {value}" for name, value in report.user_properties)
            )


@pytest.fixture(scope="session")
def lakehouse(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("here") / "lakehouse")


@pytest.fixture(scope="session")
def session(lakehouse):
    from inlet.lake.spark import session, small_query_settings

    made = session(lakehouse, app="inlet-tests")
    empty = Path(lakehouse).with_name("empty")
    for database in ("bronze", "silver"):
        shutil.copytree(Path(lakehouse) / database, empty / database)
    made.is_used = False
    with small_query_settings(made, is_small=True):
        yield made


@pytest.fixture(scope="module")
def spark(session, lakehouse):
    """A session whose lakehouse holds nothing: what one file of tests has left costs the next one time, and may be
    taken for its own.
    """
    if session.is_used:
        from inlet import lake

        session.catalog.clearCache()
        session.sql("use default")
        for row in session.sql("show databases").collect():
            if row.namespace not in ("default", "bronze", "silver"):
                session.sql(f"drop database {row.namespace} cascade")
        for database in ("bronze", "silver"):
            shutil.rmtree(Path(lakehouse) / database)
            shutil.copytree(Path(lakehouse).with_name("empty") / database, Path(lakehouse) / database)
        for left in Path(lakehouse).glob("*/*"):
            if left.parent.name not in ("bronze", "silver", "_catalog"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        session._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        lake.create(session, lakehouse)
    session.is_used = True
    return session
