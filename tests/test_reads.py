"""Delta tables read without Spark give the values that Spark gives."""

import random
import shutil
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.schema import ArrayType, Field, PrimitiveType

from inlet import lake
from inlet.change import Column
from inlet.commands import run as running
from inlet.commands.status import status
from inlet.errors import EnvironmentLacks
from inlet.lake import compaction, snapshots, tables
from inlet.lake.spark import session
from tests import lakes, projects

ROOT = Path(__file__).parent.parent
NEW = Column("added_later", "string", "a column that an earlier Inlet did not have")
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 10, tzinfo=UTC),
    datetime(1677, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, 0, 999999, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


def test_times_of_all_years_are_read_from_the_int96_of_earlier_releases(tmp_path):
    """Such files say nothing of the unit: pyarrow leaves out its own schema, as Spark does."""
    folder = tmp_path / "gold" / "old"
    folder.mkdir(parents=True)
    type_ = pa.timestamp("us", "UTC")
    columns = [("at", type_), ("after", pa.struct([("at", type_)]))]
    rows = pa.Table.from_pylist([{"at": time, "after": {"at": time}} for time in TIMES], pa.schema(columns))
    pq.write_table(rows, folder / "rows.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    deltalake.convert_to_deltalake(str(folder))
    found = lake.peek(str(tmp_path), "gold.old", ["at", "after"], "order by at")
    assert [row["at"].replace(tzinfo=UTC) for row in found] == TIMES
    assert [row["after"]["at"].replace(tzinfo=UTC) for row in found] == TIMES


def test_files_of_earlier_releases_are_not_written_together_without_spark(tmp_path):
    """delta-rs would overflow their times outside the years 1677 to 2262."""
    folder = tmp_path / "gold" / "old"
    folder.mkdir(parents=True)
    for number, time in enumerate(TIMES):
        rows = pa.Table.from_pylist([{"at": time}], pa.schema([("at", pa.timestamp("us", "UTC"))]))
        pq.write_table(rows, folder / f"{number}.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    deltalake.convert_to_deltalake(str(folder))
    lake.keep_short(str(folder))
    assert lake.size(str(tmp_path), "gold.old")[0] == len(TIMES)
    found = lake.peek(str(tmp_path), "gold.old", ["at"], "order by at")
    assert [row["at"].replace(tzinfo=UTC) for row in found] == TIMES


@pytest.mark.parametrize(("most", "left"), [(64 << 20, 3), (4_000, 10)])
def test_only_small_files_are_written_together_and_only_so_many_bytes_of_them(tmp_path, monkeypatch, most, left):
    """A large table with many files of medium size would else be written again as a whole, at the end of a run."""
    folder = str(tmp_path / "gold" / "large")
    for number in range(10):
        text = random.Random(number).randbytes(30_000 if number < 2 else 10).hex()
        deltalake.write_deltalake(folder, pa.table({"text": [text]}), mode="append")
    before = set(deltalake.DeltaTable(folder).file_uris())
    large = {uri for uri in before if Path(uri).stat().st_size > 20_000}
    monkeypatch.setattr(compaction, "NUM_FILES", 1)
    monkeypatch.setattr(compaction, "SMALL_FILE", 20_000)
    monkeypatch.setattr(compaction, "SMALL_TABLE", most)
    lake.keep_short(folder)
    after = set(deltalake.DeltaTable(folder).file_uris())
    assert (len(large), len(after), large <= after) == (2, left, True)


def test_spark_writes_times_that_any_reader_reads(spark, lakehouse):
    values = ", ".join(f"(timestamp'{time.isoformat(sep=' ')}')" for time in TIMES)
    spark.sql("create database if not exists gold")
    spark.sql(f"create table gold.times using delta as select at from values {values} as t(at)")
    assert [row["at"] for row in lake.peek(lakehouse, "gold.times", ["at"], "order by at")] == TIMES
    for file in Path(lakehouse, "gold", "times").glob("*.parquet"):
        assert pq.ParquetFile(file).schema.column(0).physical_type == "INT64"
    spark.sql("drop table gold.times")


def stopped(number: int) -> list[dict]:
    return [{"source": "shop", "batch_id": number, "why": "no reason", "stopped_at": TIMES[3]}]


def test_rows_of_state_are_added_once_and_their_files_stay_few(tmp_path):
    for number in (0, 1, 1, 0, *range(2, 100)):
        lake.add_rows(str(tmp_path), "silver.stopped", stopped(number), app_id="test", version=number)
    rows = lake.peek(str(tmp_path), "silver.stopped", ["batch_id"], "order by batch_id")
    assert [row["batch_id"] for row in rows] == list(range(100))
    assert lake.size(str(tmp_path), "silver.stopped")[0] < 50


def test_rows_of_state_are_added_to_a_table_that_a_person_has_given_a_column(tmp_path):
    lakehouse, line = str(tmp_path), {"codec": "qlik_json", "tables": ["DEPOT.ITEMS"]}
    lake.add_rows(lakehouse, "silver.batches", [line | {"source": "shop", "batch_id": 1}])
    table = deltalake.DeltaTable(tmp_path / "silver" / "batches")
    table.alter.add_columns([Field("note", PrimitiveType("string")), Field("codes", ArrayType("long", True))])
    lake.add_rows(lakehouse, "silver.batches", [line | {"source": "shop", "batch_id": 2}], app_id="test", version=1)
    lake.merge_rows(lakehouse, "silver.batches", ["batch_id"], [line | {"source": "depot", "batch_id": 3}], [])
    rows = lake.peek(lakehouse, "silver.batches", ["batch_id", "source", "codec", "note", "codes"], "order by batch_id")
    assert [tuple(row.values()) for row in rows] == [
        (1, "shop", "qlik_json", None, None),
        (2, "shop", "qlik_json", None, None),
        (3, "depot", "qlik_json", None, None),
    ]


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (None, "silver.stopped of .* has other columns than this Inlet writes", "`inlet run` adds those"),
        (OSError(13, "Permission denied"), "silver.stopped of .* cannot be written", "the right to write it"),
        (OSError(28, "No space left on device"), "cannot be written: .*No space left", "See to what the error says"),
    ],
)
def test_a_table_of_state_that_cannot_be_written_says_why(tmp_path, monkeypatch, error, message, remedy):
    deltalake.write_deltalake(str(tmp_path / "silver" / "stopped"), pa.table({"source": ["shop"], "batch_id": [1]}))

    def fail(*args, **named):
        raise error

    if error:
        monkeypatch.setattr(deltalake, "write_deltalake", fail)
    with pytest.raises(EnvironmentLacks, match=message) as caught:
        lake.add_rows(str(tmp_path), "silver.stopped", stopped(2))
    assert remedy in caught.value.remedy and ("right" in caught.value.remedy) == ("Permission" in str(error))


def test_a_table_that_others_write_between_is_kept_short(tmp_path):
    """Every other commit is foreign, so those of Inlet have numbers that ten never divides."""
    path = str(tmp_path / "silver" / "stopped")
    for number in range(30):
        deltalake.write_deltalake(path, pa.Table.from_pylist(stopped(number)), mode="append")
        lake.add_rows(str(tmp_path), "silver.stopped", stopped(number))
        if number == 9:
            assert snapshots.checkpoint_version(path) > 0
    assert lake.size(str(tmp_path), "silver.stopped")[0] < 40


def test_spark_reads_and_appends_to_what_was_added_without_it(spark, lakehouse):
    """An app transaction of either is one of both."""
    for number in range(2):
        lake.add_rows(lakehouse, "silver.stopped", stopped(number), app_id="test", version=number)
    assert spark.table("silver.stopped").count() == 2
    for number in (1, 2):
        lake.append(spark.table("silver.stopped").limit(1), "silver.stopped", "test", number)
    lake.add_rows(lakehouse, "silver.stopped", stopped(2), app_id="test", version=2)
    assert spark.table("silver.stopped").count() == 3


def test_tables_are_created_once_a_process_and_again_where_one_lacks_a_column(spark, lakehouse, monkeypatch):
    created = []
    monkeypatch.setattr(tables, "create", lambda *of: created.append(of))
    session(lakehouse)
    assert not created
    monkeypatch.setitem(tables.change.TABLES, "silver.stopped", (*tables.change.TABLES["silver.stopped"], NEW))
    session(lakehouse)
    assert len(created) == 1


def test_a_table_is_opened_once_and_asked_once_until_it_is_written(tmp_path, monkeypatch):
    project = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/*"}}, [projects.ITEMS])
    lakehouse, columns, order = project.lakehouse_path(), ["batch_id"], "order by batch_id"
    counted = lakes.reads(monkeypatch)
    lakes.write(project, "silver.batches", lakes.batch(1, "depot", lakes.seq(1)))
    counted.clear()
    for _ in range(3):
        assert lake.peek(lakehouse, "silver.batches", columns, order) == [{"batch_id": 1}]
        assert lake.may_hold(lakehouse, "silver.batches", "batch_id", 1)
    assert counted == {"silver.batches": 1, "silver.batches: select batch_id from rows order by batch_id": 1}
    lakes.write(project, "silver.batches", lakes.batch(2, "depot", lakes.seq(2)))
    counted.clear()
    for _ in range(3):
        rows = lake.peek(lakehouse, "silver.batches", columns, order)
        assert rows == [{"batch_id": 1}, {"batch_id": 2}]
        rows[0]["batch_id"] = 7  # the rows are the caller's own
    assert counted == {
        "silver.batches: select batch_id from rows order by batch_id": 1
    }  # the commits that follow are added to it
    assert lake.version(lakehouse, "silver.batches") == 1
    assert lake.peek(lakehouse, "silver.batches", columns, version=0) == [{"batch_id": 1}]


def test_a_version_that_somebody_holds_stays_what_it_is(tmp_path):
    project = projects.make(tmp_path)
    lakes.write(project, "silver.batches", lakes.batch(1, "depot", lakes.seq(1)))
    held = lake.newest(project.lakehouse_path(), "silver.batches")
    assert held.query("select source from rows").num_rows == 1
    lakes.write(project, "silver.batches", lakes.batch(2, "depot", lakes.seq(2)))
    assert lake.peek(project.lakehouse_path(), "silver.batches", ["count(*) as n"]) == [{"n": 2}]
    assert (held.table.version(), held.query("select batch_id from rows").num_rows) == (0, 1)


def test_the_answers_of_all_tables_together_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "MAX_BYTES", 3000)
    snapshots._snapshots.clear()
    for number in range(5):
        deltalake.write_deltalake(str(tmp_path / "gold" / str(number)), pa.table({"n": list(range(100))}))
        rows = lake.newest(str(tmp_path), f"gold.{number}").query("select n from rows")
        assert 800 <= rows.nbytes < 1000
        assert 0 < sum(one._num_bytes for one in snapshots._snapshots.values()) <= 3000
        assert lake.newest(str(tmp_path), f"gold.{number}").query("select n from rows") is rows


def test_a_table_that_is_made_again_or_put_back_is_read_again(tmp_path):
    """By whoever does it: the new one has versions of the same numbers."""
    project = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/*"}}, [projects.ITEMS])
    lakehouse, folder = project.lakehouse_path(), Path(project.lakehouse_path("silver", "batches"))
    for number in (1, 2):
        lakes.write(project, "silver.batches", lakes.batch(number, "depot", lakes.seq(number)))
        assert lake.peek(lakehouse, "silver.batches", ["batch_id"]) == [{"batch_id": number}]
        folder.rename(tmp_path / str(number))
        assert lake.peek(lakehouse, "silver.batches", ["batch_id"]) == []
    (tmp_path / "1").rename(folder)
    assert lake.peek(lakehouse, "silver.batches", ["batch_id"]) == [{"batch_id": 1}]


def test_looking_for_work_and_the_status_read_each_table_once(tmp_path, monkeypatch):
    project = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/*"}}, [projects.ITEMS])
    file = {"source": "depot", "path": "landing/1.lxg", "ofs_start": 0, "ofs_end": 9, "num_units": 1, "size_bytes": 9}
    lakes.write(project, "bronze.files", file | {"batch_id": 1})
    lakes.write(project, "bronze.replays", {"source": "depot", "unit_id": "depot/1@0", "batch_id": 2, "rejected_in": 1})
    for number in (1, 2):
        lakes.write(project, "silver.batches", lakes.batch(number, "depot", lakes.seq(number)))
    for table in ("silver.rejects", "silver.closed_rejects", "silver.waiting", "silver.control_events"):
        lakes.write(project, table)
    applied = {"table_name": "items", "source": "depot", "through_batch_id": 1, "applied_at": lakes.BEGAN}
    lakes.write(project, "gold.applied", applied)
    lakes.write(project, "gold.published", lakes.point(1, lakes.BEGAN, depot=lakes.seq(1)))
    lakes.write(project, "checks.results")
    shutil.copytree(ROOT / "expectations", tmp_path / "expectations")
    counted = lakes.reads(monkeypatch)
    for ask in (lambda: running.find_work(project, running.STEPS, [], []), lambda: status(project)):
        assert ask()
    assert max(counted.values()) == 1, counted
