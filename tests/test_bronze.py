"""Bronze: what is planned, what waits, what is landed once. Planning needs no Spark."""

import datetime as dt
import hashlib
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inlet import bronze
from inlet.errors import InletError, Reject
from tests import projects
from tests.encode import linkexpress

NAME = "20260105031500_000012.lxg"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    return projects.make(tmp_path)


def extract(records) -> bytes:
    return linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})


def deliver(project, data: bytes, name: str = NAME, age_minutes: float = 0) -> None:
    path = project.root / "landing" / "depot" / name
    path.write_bytes(data)
    stamp = path.stat().st_mtime - age_minutes * 60
    os.utime(path, (stamp, stamp))


def plan(project, before=()):
    return bronze.plan(project, list(project.sources.values()), list(before))


def test_a_whole_file_is_planned_with_its_hash(project):
    data = extract(projects.item_records(1, 4))
    deliver(project, data)
    [row] = plan(project).files
    assert (row["ofs_start"], row["ofs_end"], row["num_units"]) == (0, len(data), 1)
    assert row["sha256"] == hashlib.sha256(data).hexdigest()


def test_a_landed_file_is_not_planned_again(project):
    deliver(project, extract(projects.item_records(1, 4)))
    first = plan(project)
    assert plan(project, first.files).files == []


def test_a_growing_file_lands_whole_records_only_and_the_rest_next_time(project):
    data = extract(projects.item_records(1, 6))
    for size in range(len(data)):
        deliver(project, data[:size])
        first = plan(project)
        landed = first.files[0]["ofs_end"] if first.files else 0
        assert landed <= size and first.waiting == ({f"landing/depot/{NAME}": size - landed} if landed < size else {})
        deliver(project, data)
        second = plan(project, first.files)
        parts = first.files + second.files
        assert [(p["ofs_start"], p["ofs_end"]) for p in parts if p["ofs_end"]] == \
            ([(0, landed), (landed, len(data))] if landed and landed < len(data) else [(0, len(data))])
        assert parts[-1]["sha256"] == hashlib.sha256(data).hexdigest()


def test_units_of_a_file_are_its_bytes_however_it_is_read(project):
    source, data = project.sources["depot"], extract(projects.item_records(1, 3000))
    deliver(project, data)
    small, kept = bronze.LEN_BLOCK, []
    try:
        bronze.LEN_BLOCK = 4096
        with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
            kept = [b for b, _ in bronze.cut_file(source, project.tables_of(source), NAME, stream, 0, len(data), None, True)]
    finally:
        bronze.LEN_BLOCK = small
    assert len(kept) > 10 and b"".join(b.data for b in kept) == data
    assert sum(b.num_records for b in kept) == 4500


def test_an_unfinished_tail_is_rejected_once_the_file_has_rested(project):
    data = extract(projects.item_records(1, 4))
    deliver(project, data[:-3], age_minutes=61)
    [row] = plan(project).files
    assert row["ofs_end"] == len(data) - 3 and row["num_units"] == 2
    with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
        source = project.sources["depot"]
        *_, (last, _) = bronze.cut_file(source, project.tables_of(source), NAME, stream, 0, len(data) - 3, None, True)
    assert last.context["problem"]["kind"] == "truncated"


@pytest.mark.parametrize("length", [0, 5, 1 << 31, 0xFFFFFFFF])
def test_what_no_record_can_be_is_landed_as_one_broken_unit(project, length):
    good = extract(projects.item_records(1, 4))
    deliver(project, good + length.to_bytes(4, "big") + b"rest of the file")
    source = project.sources["depot"]
    with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
        blocks = [b for b, _ in bronze.cut_file(source, project.tables_of(source), NAME, stream, 0, len(good) + 20, None, False)]
    assert [b.context.get("problem", {}).get("kind") for b in blocks] == [None, "bad_length"]
    assert b"".join(b.data for b in blocks) == good + length.to_bytes(4, "big") + b"rest of the file"


def test_behind_a_broken_place_nothing_is_decoded_however_the_file_grows(project):
    good, source = extract(projects.item_records(1, 4)), project.sources["depot"]
    data = good + (3).to_bytes(4, "big") + extract(projects.item_records(100, 4))
    deliver(project, data[:len(good) + 30])
    first = plan(project)
    deliver(project, data)
    [second] = plan(project, first.files).files
    assert (second["ofs_start"], second["ofs_end"]) == (len(good) + 30, len(data))
    with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
        stream.seek(second["ofs_start"])
        [(rest, _)] = bronze.cut_file(source, project.tables_of(source), NAME, stream, second["ofs_start"], len(data),
                                      json.loads(second["start_context"]), False)
    assert rest.data == data[len(good) + 30:] and rest.context["problem"]["kind"] == "bad_length"


def test_a_rewritten_file_stays_refused_when_it_is_touched(project):
    deliver(project, extract(projects.item_records(1, 4)))
    first = plan(project)
    deliver(project, extract(projects.item_records(2, 8)))
    second = plan(project, first.files)
    assert plan(project, first.files + second.files).files == []
    deliver(project, extract(projects.item_records(2, 8)), age_minutes=1)
    [row] = plan(project, first.files + second.files).files
    assert json.loads(row["problem"])["kind"] == "file_rewritten" and row["num_units"] == 0


def messages(tmp_path, **columns) -> tuple:
    project = projects.make(tmp_path, sources={"shop": {"codec": "qlik_json", "from": "landing/shop"}})
    path = tmp_path / "landing" / "shop" / "a.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    at = dt.datetime(2026, 1, 5, tzinfo=dt.timezone.utc)
    rows = {"topic": ["t", "t"], "partition": [0, 0], "offset": [1, 2], "timestamp": [at, at], "value": [b"{}", b"{}"]} | columns
    pq.write_table(pa.table({name: column for name, column in rows.items() if column}), path)
    return project, path


@pytest.mark.parametrize(("columns", "said"), [
    ({"offset": ["1", "2"]}, "column offset is string, not an integer"), ({"offset": [1, None]}, "column offset has nulls"),
    ({"partition": [0, -1]}, "column partition has negative numbers"), ({"timestamp": [1, 2]}, "column timestamp is int64, not a timestamp"),
    ({"topic": None}, "no column topic")])
def test_messages_without_a_place_are_a_problem_of_their_file(tmp_path, columns, said):
    [row] = plan(messages(tmp_path, **columns)[0]).files
    problem = json.loads(row["problem"])
    assert (problem["kind"], problem["found"]) == ("unreadable_file", said)


def test_a_message_file_that_is_touched_is_landed_once_and_one_with_other_bytes_is_refused(tmp_path):
    project, path = messages(tmp_path)
    first = plan(project)
    os.utime(path, (1, 1))
    assert plan(project, first.files).files == []
    messages(tmp_path, offset=[3, 4])
    [row] = plan(project, first.files).files
    assert json.loads(row["problem"])["kind"] == "file_rewritten"


def test_a_message_file_that_changed_after_its_plan_is_not_landed(tmp_path):
    project, _ = messages(tmp_path)
    [row] = plan(project).files
    messages(tmp_path, value=[b"{}", b"[]"])
    with pytest.raises(InletError, match="changed after it was planned"):
        bronze._check_unchanged(project, row)


def test_files_with_other_columns_keep_theirs(spark, lakehouse, tmp_path):
    project, path = messages(tmp_path)
    messages(tmp_path, offset=[3, 4], key=[b"k3", b"k4"])[1].rename(path.with_name("b.parquet"))
    messages(tmp_path)
    rows = bronze._messages(project, spark, plan(project).files).select("offset", "key").orderBy("offset").collect()
    assert [(row.offset, row.key and bytes(row.key)) for row in rows] == [(1, None), (2, None), (3, b"k3"), (4, b"k4")]


def test_a_file_whose_landed_bytes_changed_is_a_problem_not_a_change(project):
    deliver(project, extract(projects.item_records(1, 4)))
    first = plan(project)
    deliver(project, extract(projects.item_records(2, 8)))
    [row] = plan(project, first.files).files
    assert json.loads(row["problem"])["kind"] == "file_rewritten" and row["num_units"] == 0


def test_an_empty_file_is_landed_and_an_unnamed_one_is_rejected(project):
    deliver(project, b"")
    deliver(project, extract(projects.item_records(1, 2)), name="no-time.lxg")
    rows = {row["path"].rsplit("/")[-1]: row for row in plan(project).files}
    assert (rows[NAME]["ofs_end"], rows[NAME]["num_units"], rows["no-time.lxg"]["num_units"]) == (0, 0, 1)


def test_a_message_file_that_is_no_parquet_is_a_problem_of_that_file_only(tmp_path):
    project = projects.make(tmp_path, sources={"shop": {"codec": "qlik_json", "from": "landing/shop"}})
    (tmp_path / "landing" / "shop").mkdir(parents=True)
    (tmp_path / "landing" / "shop" / "a.parquet").write_bytes(b"PAR1 no")
    [row] = plan(project).files
    assert json.loads(row["problem"])["kind"] == "unreadable_file"


def test_bytes_out_equal_bytes_in_and_a_crash_between_plan_and_units_is_healed(spark, lakehouse, tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    project = projects.make(tmp_path, sources={"bronze_depot": projects.DEPOT}, lakehouse=lakehouse)
    data = extract(projects.item_records(1, 500))
    deliver(project, data)
    new = plan(project, bronze.landed(project))
    write, bronze.write_units = bronze.write_units, lambda *_: None
    try:
        bronze.land(project, spark, new)                         # dies after the plan
    finally:
        bronze.write_units = write
    before = [row for row in bronze.landed(project) if row["batch_id"] == new.batch_id]
    assert bronze.unfinished(before, set()) == [new.batch_id]
    for _ in range(2):                                           # the second time changes nothing
        bronze.write_units(project, spark, bronze.Plan(new.batch_id, before))
    rows = spark.sql("select bytes, sha256 from bronze.blocks where source = 'bronze_depot' order by file_offset").collect()
    assert b"".join(row.bytes for row in rows) == data
    assert [row.sha256 for row in rows] == [hashlib.sha256(row.bytes).hexdigest() for row in rows]
    assert not isinstance(plan(project, bronze.landed(project)), Reject) and plan(project, bronze.landed(project)).files == []
