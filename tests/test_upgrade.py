"""A lakehouse of the version before, when Spark alone wrote state and small batches: it opens, runs on, and its gold is
what silver says.
"""

import datetime as dt

import pytest

from inlet import gold, lake
from inlet.commands import run as running
from inlet.gold import small_batches
from inlet.log import Log
from tests.bench.feed import NAMES, Feed

NAME = "items"


def run(project, steps=running.STEPS) -> list[str]:
    """A run. Out: the names of its steps."""
    log = Log(is_human=False)
    with lake.writing(project.lakehouse_path()) as hold:
        work = running.find_work(project, steps, [], [])
        running.run(project, work, steps, [], log, hold)
    return [step["step"] for step in log.steps]


def rows(spark, table: str) -> set[tuple]:
    return {tuple(row) for row in spark.table(table).select(*NAMES).collect()}


@pytest.fixture
def older(spark, lakehouse, tmp_path):
    """A feed whose first batch is whole and whose second one gold has not taken, as the version before left it: gold's
    tables with deletion vectors and written by Spark, no causes in bronze.files."""
    feed = Feed(tmp_path / "project", lakehouse)
    project = feed.add_tables([NAME])
    feed.insert(NAME, 20)
    feed.change(NAME, 20)
    feed.deliver()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(small_batches, "is_small", lambda lakehouse, table: False)
        run(project)
    for step in ("past", "current"):
        table = f"gold.{NAME}__{step}"
        spark.sql(f"alter table {table} set tblproperties (delta.enableDeletionVectors = true)")
        spark.sql(f"update {table} set note = note where id % 3 = 0")
        assert list(lake.newest(lakehouse, table).table.deletion_vectors())
    feed.change(NAME, 10)
    feed.deliver()
    run(project, running.STEPS[:2])
    spark.sql("create or replace table bronze.files using delta as select * except (cause) from bronze.files")
    return feed, project


def test_a_lakehouse_of_the_version_before_runs_on(spark, lakehouse, older):
    feed, project = older
    batches = lake.peek(lakehouse, "bronze.files", ["batch_id", "path"], "order by batch_id")
    lake.create(spark, lakehouse)  # as a session does that begins
    assert "cause" in lake.column_names(lakehouse, "bronze.files")
    assert "bronze" not in run(project)  # nothing is read again
    assert rows(spark, f"public.{NAME}") == {tuple(row[n] for n in NAMES) for row in expected(feed)}
    assert gold.verify(project, spark, NAME, 10)[1:] == (0, [])
    feed.change(NAME, 10)
    feed.deliver()
    run(project)
    assert not running.find_work(project, running.STEPS, [], [])
    assert rows(spark, f"public.{NAME}") == {tuple(row[n] for n in NAMES) for row in expected(feed)}
    assert gold.verify(project, spark, NAME, 10)[1:] == (0, [])
    assert lake.peek(lakehouse, "bronze.files", ["batch_id", "path"], "order by batch_id")[:-1] == batches
    assert lake.operations(lakehouse, "gold.applied", 1) == ["WRITE"]


def expected(feed: Feed) -> list[dict]:
    """The live rows, with the values that their text says."""
    return [
        row
        | {"ORDERED": dt.date.fromisoformat(row["ORDERED"]), "CHANGED_AT": dt.datetime.fromisoformat(row["CHANGED_AT"])}
        for row in feed.live[NAME].values()
    ]
