"""What another process commits to tables of state while this one has them open: it is taken, and never misread. Commits
of another process to gold while a batch is written are refused: test_small_batches.
"""

import multiprocessing
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from inlet import lake
from inlet.commands import run as running
from inlet.commands.status import status
from inlet.errors import InletError
from inlet.lake import snapshots
from tests import lakes, projects

ROOT = Path(__file__).parent.parent
STATE = {  # a table -> a column that tells its rows apart
    "bronze.files": "path",
    "silver.batches": "batch_id",
    "gold.applied": "through_batch_id",
    "gold.published": "number",
    "checks.results": "run_id",
}


def rows_at(path: str) -> pa.Table:
    return snapshots.answer(deltalake.QueryBuilder().register("rows", deltalake.DeltaTable(path)), "select * from rows")


def append_a_row(path: str, key: str, value) -> None:
    rows = rows_at(path)
    changed = rows.slice(0, 1).drop_columns(key).append_column(key, pa.array([value]))
    write_deltalake(path, changed.select(rows.column_names), mode="append")


def compact(path: str, key: str, value) -> None:
    deltalake.DeltaTable(path).optimize.compact()


def write_all_again(path: str, key: str, value) -> None:
    rows = rows_at(path)
    write_deltalake(path, pa.concat_tables([rows.slice(1), rows.slice(0, 1)]), mode="overwrite")


def delete_a_row(path: str, key: str, value) -> None:
    deltalake.DeltaTable(path).delete(f"{key} = {value!r}")


def add_a_column(path: str, key: str, value) -> None:
    more = rows_at(path).slice(0, 0).append_column("more", pa.array([], pa.int64()))
    write_deltalake(path, more, mode="append", schema_mode="merge")


def remove_the_log_before_a_checkpoint(path: str, key: str, value) -> None:
    table = deltalake.DeltaTable(path)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    write_deltalake(path, rows_at(path).slice(0, 0), mode="append")
    table = deltalake.DeltaTable(path)
    table.create_checkpoint()
    table.cleanup_metadata()


@pytest.fixture(scope="module")
def other_process():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def project(tmp_path):
    """Three batches of a file each, decoded, folded, published and checked; the last is not folded yet."""
    made = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/*"}}, [projects.ITEMS])
    shutil.copytree(ROOT / "expectations", tmp_path / "expectations")
    for number in (1, 2, 3):
        file = {"source": "depot", "path": f"landing/{number}.lxg", "ofs_start": 0, "ofs_end": 9, "num_units": 1}
        lakes.write(made, "bronze.files", file | {"size_bytes": 9, "batch_id": number, "cause": "planned"})
        lakes.write(made, "silver.batches", lakes.batch(number, "depot", lakes.seq(number), num_changes=number))
        applied = {"table_name": "items", "source": "depot", "through_batch_id": number - 1, "applied_at": lakes.BEGAN}
        lakes.write(made, "gold.applied", applied | {"through_change_seq": lakes.seq(number - 1)})
        lakes.write(made, "gold.published", lakes.point(number, lakes.BEGAN, depot=lakes.seq(number)))
        checked = {
            "step": "silver",
            "severity": "error",
            "success": True,
            "batch_ids": [number],
            "table": "silver.changes",
        }
        lakes.write(made, "checks.results", checked | {"run_id": number * 10**15})
    return made


def commit(project, process: ProcessPoolExecutor, work, number: int) -> None:
    """Let another process do this to each table of state. In: what tells a row apart, as a number."""
    values = {"bronze.files": f"landing/{number}.lxg", "checks.results": number * 10**15}
    for table, key in STATE.items():
        process.submit(work, project.lakehouse_path(*table.split(".")), key, values.get(table, number)).result()


def rows_of(project) -> dict[str, list]:
    return {
        table: sorted(row[key] for row in lake.peek(project.lakehouse_path(), table, [key]))
        for table, key in STATE.items()
    }


def answers(project) -> tuple:
    """What is known of a lakehouse: rows of its tables of state, what there is to do, and what people are told."""
    work = running.find_work(project, running.STEPS, [], [])
    return rows_of(project), (work.unlanded, work.tables, work.is_unchecked, work.is_unpublished), status(project)


@pytest.mark.parametrize(
    ("work", "num_rows"),
    [
        (append_a_row, 4),
        (delete_a_row, 2),
        (compact, 3),
        (write_all_again, 3),
        (add_a_column, 3),
        (remove_the_log_before_a_checkpoint, 3),
    ],
)
def test_a_commit_of_another_process_is_read_as_a_new_process_reads_it(project, other_process, work, num_rows):
    before = answers(project)
    commit(project, other_process, work, 4 if work is append_a_row else 1)
    after = answers(project)
    snapshots._snapshots.clear()
    assert after == answers(project)
    assert {table: len(rows) for table, rows in after[0].items()} == dict.fromkeys(STATE, num_rows)
    assert (after == before) == (num_rows == 3)


def test_a_commit_that_outlives_those_that_followed_it_is_not_the_newest(project):
    """Old commits are removed in any order, and what removes them may die meanwhile."""
    lakehouse, table = project.lakehouse_path(), "silver.batches"
    version = lake.version(lakehouse, table)
    for number in range(4, 9):
        lakes.write(project, table, lakes.batch(number, "depot", lakes.seq(number)))
    path = project.lakehouse_path(*table.split("."))
    deltalake.DeltaTable(path).create_checkpoint()
    for number in range(version + 1, version + 5):
        os.remove(f"{path}/_delta_log/{number:020}.json")
    lakes.write(project, table, lakes.batch(9, "depot", lakes.seq(9)))
    assert rows_of(project)[table] == list(range(1, 10))


def test_rows_that_are_added_while_another_process_writes_are_there_once(project, monkeypatch):
    """The table is compacted by another process after it was opened to be written."""
    path = project.lakehouse_path("silver", "batches")

    def written(opened, rows, **given):
        deltalake.DeltaTable(path).optimize.compact()
        write_deltalake(opened, rows, **given)

    monkeypatch.setattr(deltalake, "write_deltalake", written)
    for _ in range(2):
        lake.add_rows(
            project.lakehouse_path(), "silver.batches", [lakes.batch(4, "depot", lakes.seq(4))], None, "app", 4
        )
    assert rows_of(project)["silver.batches"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "properties",
    ["delta.enableDeletionVectors = true", "delta.columnMapping.mode = 'name'"],
    ids=["vectors", "mapping"],
)
def test_features_that_another_spark_turns_on_are_read_right_or_refused(spark, lakehouse, properties):
    """Rows that a deletion vector marks are gone, a column that is mapped has its values."""

    def added(number: int) -> list[dict]:
        return [{"source": f"s{number}", "batch_id": number, "why": "", "stopped_at": lakes.BEGAN}]

    spark.sql("truncate table silver.stopped")
    lake.add_rows(lakehouse, "silver.stopped", [row for number in (1, 2, 3) for row in added(number)])
    assert len(lake.peek(lakehouse, "silver.stopped", ["source"])) == 3
    spark.sql(f"alter table silver.stopped set tblproperties ({properties})")
    spark.sql("delete from silver.stopped where batch_id = 1")
    try:
        lake.add_rows(lakehouse, "silver.stopped", added(4))
        numbers = [2, 3, 4]
    except InletError:
        numbers = [2, 3]
    assert sorted(row.batch_id for row in spark.table("silver.stopped").collect()) == numbers
    try:
        rows = lake.peek(lakehouse, "silver.stopped", ["source", "batch_id"], "order by batch_id")
    except deltalake.exceptions.DeltaError:
        return
    assert rows == [{"source": f"s{number}", "batch_id": number} for number in numbers]
