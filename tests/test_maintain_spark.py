"""Maintenance of tables that Spark writes: VARIANT, deletion vectors, the order of a key. Rows, readers and views stay
as they are, wherever it ends."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from fsspec.implementations.local import LocalFileSystem

from inlet import lake, publish
from inlet.commands import maintain
from inlet.commands.run import build_gold
from inlet.gold import generate
from inlet.lake import maintenance, table_state
from inlet.lake.delta_log import DAY, DeltaLog
from inlet.log import Log
from inlet.publish import kept_versions, pins
from tests.examples import ins, upd
from tests.silver import write_silver
from tests.test_generate import ITEMS, project

NUM_BATCHES, NUM_WORTH, NAME = 4, 3, "kept_short"
OF_GOLD = [f"gold.{NAME}__{step}" for step in ("before_after", "past", "current")]
TABLES = ["silver.changes", "silver.batches", *OF_GOLD]
SHOWN = f"public.{NAME}", f"public.{NAME}__history", f"public.{NAME}__live", f"pinned_early.{NAME}__history"


@pytest.fixture(scope="module")
def here(tmp_path_factory, spark, lakehouse):
    """Gold with deletion vectors, written in batches; a pin of an early point."""
    contract = {NAME: ITEMS.replace("SHOP.ITEMS", f"SHOP.{NAME.upper()}").replace("name: items", f"name: {NAME}")}
    made = project(tmp_path_factory.mktemp("maintain"), lakehouse, contract)
    generate.write(made)
    for n in range(NUM_BATCHES):
        if n == 1:
            for table in OF_GOLD[1:]:
                spark.sql(f"alter table {table} set tblproperties (delta.enableDeletionVectors = true)")
        with pytest.MonkeyPatch.context() as patch:
            if n > 0:  # Spark writes, so that there are deletion vectors
                patch.setattr("inlet.gold.build.SMALL_CHANGES", -1)
            changes = [ins(2 * n, n, NAME="a")] + ([upd(2 * n + 1, n - 1, NAME="b")] if n else [])
            write_silver(spark, n, {NAME: {"kept": changes}})
            build_gold(made, spark, [NAME])
        publish.run(made, spark)
        if n == 2:
            pins.pin(made, spark, "pinned_early", pins.find(made, "pinned_early"))
    yield made
    pins.unpin(made, spark, "pinned_early")


def rows(spark, *tables: str) -> dict[str, list]:
    found = {}
    for table in tables or (*TABLES, *SHOWN):
        columns = [f"to_json({n})" if t == "variant" else f"`{n}`" for n, t in spark.table(table).dtypes]
        found[table] = sorted(map(repr, spark.sql(f"select {', '.join(columns)} from {table}").collect()))
    return found


def read(here, table: str, days: float = 0):
    kept = kept_versions.kept(here).get(table, table_state.Kept({}, set(), set()))
    return table_state.read(here.lakehouse_path(), table, kept, 168, maintain.time.time() + days * DAY)


def test_rows_readers_views_and_pins_stay_wherever_maintenance_ends(spark, here, monkeypatch):
    lakehouse, before = here.lakehouse_path(), rows(spark)
    current = lake.table_path(lakehouse, OF_GOLD[2])
    log = DeltaLog(current)
    vectors = {path for path in log.files([log.newest])[log.newest] if path.endswith(".bin")}
    assert vectors and vectors <= set(DeltaTable(current).vacuum(0, True, False, full=True))  # what delta-rs would do
    version = log.newest
    reader = spark.sql(f"select * from {OF_GOLD[2]} version as of {version}")
    old = sorted(map(repr, reader.collect()))

    for table in TABLES:
        due = maintenance.plan(read(here, table), NUM_WORTH)
        assert due.compact and not due.needs_spark and not due.vacuum, table
        maintain.carry_out(lakehouse, due, None)
        assert lake.size(lakehouse, table)[0] == 1
    assert rows(spark) == before
    assert sorted(map(repr, reader.collect())) == old

    for _ in range(2):  # the second one has less to do, and dies the same
        for table in TABLES:
            due = maintenance.plan(read(here, table, days=8))
            left = [2]

            def dies(self, path, real=LocalFileSystem.rm_file, left=left):
                left[0] -= 1
                if not left[0]:
                    raise KeyboardInterrupt
                real(self, path)

            with monkeypatch.context() as patch:
                patch.setattr(LocalFileSystem, "rm_file", dies)
                try:
                    maintain.carry_out(lakehouse, due, None)
                except KeyboardInterrupt:
                    assert due.vacuum
            assert rows(spark, table)[table] == before[table]
    for table in TABLES:
        maintain.carry_out(lakehouse, maintenance.plan(read(here, table, days=8)), None)
        assert not read(here, table, days=8).removable
    assert rows(spark) == before
    kept = maintenance.plan(read(here, OF_GOLD[2], days=8)).row()["keeps"]
    assert "the pin pinned_early" in kept and "the published point" in kept


def test_views_and_pins_read_versions_that_are_older_than_a_week(spark, here):
    """Delta refuses such versions where it is not told otherwise, also in the branch of the point before."""
    before, old = rows(spark, *SHOWN), maintain.time.time() - 10 * DAY
    for table in OF_GOLD:
        for file in Path(lake.table_path(here.lakehouse_path(), table), "_delta_log").iterdir():
            os.utime(file, (old, old))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert rows(spark, *SHOWN) == before


def test_a_batch_after_maintenance_is_folded_and_published(spark, here):
    """Also into tables in the order of their key, which Spark has written, and where the versions before are older than
    a week."""
    table, lakehouse = OF_GOLD[2], here.lakehouse_path()
    before = rows(spark)
    state = replace(read(here, table), key=("item",), key_bytes=10 * maintenance.KEY_BYTES, sizes=(1,))
    maintain.carry_out(lakehouse, maintenance.plan(state), spark)
    operation = spark.sql(f"describe history {table} limit 1").first()
    assert (operation.operation, operation.operationParameters["zOrderBy"]) == ("OPTIMIZE", '["item"]')
    assert rows(spark) == before
    write_silver(spark, NUM_BATCHES, {NAME: {"kept": [upd(900, 1, NAME="y"), upd(1000, 0, NAME="z")]}})
    build_gold(here, spark, [NAME])
    publish.run(here, spark)
    found = spark.sql(f"select item, name from public.{NAME} order by item").collect()
    assert [tuple(row) for row in found] == [(0, "z"), (1, "y"), (2, "b"), (3, "a")]
    assert rows(spark, SHOWN[3])[SHOWN[3]] == before[SHOWN[3]]


def test_what_delta_rs_cannot_write_is_written_by_spark(spark, here, monkeypatch):
    """A pin of an earlier Inlet is looked up in the catalog then."""
    table, lakehouse, plan = "gold.mapped", here.lakehouse_path(), maintenance.plan
    spark.sql(f"create table {table} (n bigint) using delta tblproperties (delta.columnMapping.mode = 'name')")
    for n in range(3):
        spark.sql(f"insert into {table} values ({n})")
    monkeypatch.setattr(lake, "all_tables", lambda lakehouse: [table])
    monkeypatch.setattr(maintenance, "plan", lambda state: plan(state, NUM_WORTH))
    noted = kept_versions.pins(here)
    kept_versions.drop_pin(here, "pinned_early")
    assert "pinned_early" in kept_versions.unnoted(here)
    [due] = maintain.maintain(here, Log(False), lambda spark: None, 168)
    assert kept_versions.pins(here) == noted and kept_versions.unnoted(here) == []
    assert due.does == ["compact"] and due.needs_spark
    assert due.row()["because"] == "3 small files, by Spark for its feature columnMapping"
    assert lake.size(lakehouse, table)[0] == 1 and spark.table(table).count() == 3
    maintain.carry_out(lakehouse, plan(replace(read(here, table), needed_days=90)), spark)
    assert spark.sql(f"show tblproperties {table} ('{table_state.LOG}')").first().value == "interval 150 days"
    spark.sql(f"drop table {table}")
