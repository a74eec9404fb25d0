"""The toy log, the whole way: all that the codec contract offers, asked by one small format. Its files come one after the other, one of them early."""

import json
import shutil
import sys

import pytest

from inlet import bronze, config, publish, silver
from inlet.bronze import blocks as bronze_blocks
from inlet.codecs import CODECS
from inlet.commands.run import build_gold
from inlet.commands.status import status
from inlet.gold import generate
from inlet.silver import parts
from tests import projects
from tests.test_pipeline import REPO
from tests.toy import codec as toy
from tests.toy import encode

V1, V2 = [["ID", "int"], ["NAME", "string"]], [["ID", "int"], ["NAME", "string"], ["PRICE", "decimal(7,2)"]]
ITEMS = {"table": "TOY.ITEMS", "name": "toy_items", "key": ["ID"], "version": 2, "columns": [{"name": n, "type": t} for n, t in V2],
         "earlier": [{"version": 1, "until": "2026-01-02 03:04:05", "columns": [{"name": n, "type": t} for n, t in V1]}]}
NOTES = {"table": "TOY.NOTES", "name": "toy_notes", "key": ["ID"], "columns": [{"name": "ID", "type": "int"}, {"name": "TEXT", "type": "string"}]}
ABANDONED = [["insert", "TOY.ITEMS", [n, "abandoned", None]] for n in range(100, 120)]
FILE_1 = encode.file(1, ("columns", "TOY.ITEMS", V1, ["ID"]), ("begin", "A"), ("insert", "TOY.ITEMS", [1, "a"]), ("insert", "TOY.ITEMS", [2, "b"]), ("commit", "A"),
                     ("ddl", "alter table"), ("begin", "B"), ("before", 1, "TOY.ITEMS", [1, "a"]), ("insert", "TOY.ITEMS", [3, "c"]))
FILE_2 = encode.file(2, ("after", 1, "TOY.ITEMS", [1, "aa"]), ("commit", "B"), ("columns", "TOY.ITEMS", V2, ["ID"]), ("insert", "TOY.ITEMS", [4, "d", "9.50"]),
                     ("before", 2, "TOY.ITEMS", [2, "b", None]), ("columns", "TOY.NOTES", [["ID", "int"], ["BODY", "string"]], ["ID"]),
                     ("insert", "TOY.NOTES", [1, "one"]), ("begin", "C"), *ABANDONED)
FILE_3 = encode.file(3, ("insert", "TOY.ITEMS", [120, "abandoned", None]), ("restart",), ("begin", "C"), ("insert", "TOY.ITEMS", [7, "y", None]),
                     ("delete", "TOY.ITEMS", [3, "c", None]), ("commit", "C"), ("after", 2, "TOY.ITEMS", [2, "bb", "1.00"]))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line in CODECS, for this process and for Spark's workers. Blocks are so short that a transaction fills several."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[toy.__name__])
    monkeypatch.setitem(CODECS, "toy", toy)
    monkeypatch.setattr(bronze_blocks, "LEN_BLOCK", 100)


def make(root, lakehouse, sources: dict, tables=(ITEMS, NOTES)) -> config.Project:
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"), dirs_exist_ok=True)
    project = projects.make(root, sources, list(tables), lakehouse)
    generate.write(project)
    return project


def plan(project) -> bronze.Plan:
    return bronze.plan_batch(project, list(project.sources.values()), bronze.landed(project))


def run(project, spark) -> dict:
    """All there is to land, up to the public views. Out: the accounts by source."""
    new = plan(project)
    bronze.land(project, spark, new)
    accounts = silver.run(project, spark, new.batch_id)
    build_gold(project, spark)
    publish.run(project, spark)
    return accounts


def counts(account) -> tuple[int, ...]:
    return (account.num_records, account.num_settled, account.num_changes, account.num_control, account.num_rejected, account.num_waiting)


def shown(spark) -> list[tuple]:
    return [tuple(row) for row in spark.sql("select ID, NAME, cast(PRICE as string) from public.toy_items order by 1").collect()]


def test_a_feed_whose_changes_lie_in_several_files_and_batches(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "toy"
    landing.mkdir(parents=True)
    project = make(tmp_path, lakehouse, {"toy": {"codec": "toy", "from": "landing/toy"}})
    (landing / "1.toy").write_bytes(FILE_1)
    (landing / "3.toy").write_bytes(FILE_3)
    assert plan(project).held == {"landing/toy/3.toy": "file 2 of toy"}
    # the transaction that is open at the end of the file waits in bronze: begin, two records, and the end of the file
    assert counts(run(project, spark)["toy"]) == (11, 0, 2, 5, 0, 4)
    assert shown(spark) == [(1, "a", None), (2, "b", None)]
    assert status(project)["waiting for the feed"] == [{"source": "toy", "what": "open transactions", "records": 4, "bytes": 98, "since batch": 1}]

    (landing / "3.toy").rename(tmp_path / "3.toy")
    (landing / "2.toy").write_bytes(FILE_2)
    accounts = run(project, spark)
    # an update of two images in two files; the same whose second image has not come waits in silver; a column list in the middle of a block
    assert counts(accounts["toy"]) == (30, 4, 3, 7, 1, 23)
    assert shown(spark) == [(1, "aa", None), (2, "b", None), (3, "c", None), (4, "d", "9.50")]
    assert [(row["part_key"], row["unit_length"] > 0) for row in parts.waiting(project)] == [("2", True)]
    versions = spark.sql("select source_table, table_version, columns from silver.table_versions where origin = 'feed' order by change_seq").collect()
    assert [(row.source_table, row.table_version, len(json.loads(row.columns))) for row in versions] == [("ITEMS", 1, 2), ("ITEMS", 2, 3), ("NOTES", None, 2)]
    [reject] = spark.sql("select kind, source_table, expected, found from silver.rejects").collect()
    assert tuple(reject) == ("definition_differs", "NOTES", "ID int, TEXT string", "ID int, BODY string")

    (tmp_path / "3.toy").rename(landing / "3.toy")
    assert counts(run(project, spark)["toy"]) == (9, 23, 3, 29, 0, 0)
    assert shown(spark) == [(1, "aa", None), (2, "bb", "1.00"), (4, "d", "9.50"), (7, "y", None)]
    assert parts.waiting(project) == [] and "waiting for the feed" not in status(project)
    events = spark.sql("select kind, sum(unit_length) from silver.control_events where kind in ('ddl', 'abandoned') group by kind order by kind").collect()
    size = sum(len(encode.record(*record)) for record in (("begin", "C"), *ABANDONED, ("end",), ("file", 3, "2026010203040500"), ("insert", "TOY.ITEMS", [120, "abandoned", None]), ("restart",)))
    assert [tuple(row) for row in events] == [("abandoned", size), ("ddl", len(encode.record("ddl", "alter table")))]
