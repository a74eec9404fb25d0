"""Changes that tasks write to files of silver.changes are those that Spark writes."""

import json
import random
import time
from types import SimpleNamespace

import pyarrow as pa
import pytest

from inlet import bronze, change, lake, silver
from inlet.bronze import blocks as blocks_of_files
from inlet.codecs import CODECS
from inlet.codecs.codec import IMAGE
from inlet.codecs.columns import digits, first_of, hexadecimal, initial, instant, joined, only_of, same, total, word
from inlet.lake import table_state
from inlet.silver import blocks, change_files, small_batches
from inlet.silver.batch import Batch
from tests import projects, test_pipeline
from tests.encode import linkexpress
from tests.goldengate_streams import How
from tests.stored import stored
from tests.test_silver import Died
from tests.test_small_silver import forget, in_order

WORDS = ("INSERT", "UPDATE", "DELETE", "it's \\ ${a}")
COLUMNS = {
    "joined": joined(same("text"), digits("number", 10)),
    "joined_by": joined(same("text"), same("number"), same("constant"), by="-'"),
    "total": total("number", "constant"),
    "word": word(WORDS, "code"),
    "word_from_1": word(WORDS, "next_code", first=1),
    "initial": initial(word(WORDS, "code")),
    "instant": instant("number"),
    "first_of": first_of(same("text"), joined(same("constant"), digits("number", 3))),
    "only_of": only_of("code", 2, same("text")),
    "hexadecimal": hexadecimal("signed"),
}


def test_a_column_is_the_same_in_sql_and_over_arrow(spark):
    rng = random.Random(1)
    or_null = lambda value: None if rng.random() < 0.2 else value  # noqa: E731
    rows = [
        {
            "text": or_null(rng.choice(["", "a", "\U0001f600", "20260102"])),
            "number": or_null(rng.choice([0, 7, rng.randrange(1000)])),
            "signed": or_null(rng.choice([0, -1, 1 << 62, -(1 << 63), rng.randrange(1 << 40)])),
            "code": (code := rng.randrange(len(WORDS))),
            "next_code": code + 1,
        }
        for _ in range(300)
    ]
    schema = lake.arrow_schema("text string, number bigint, signed bigint, code tinyint, next_code tinyint")
    batch = pa.RecordBatch.from_pylist(rows, schema)
    sql = ["text", *(f"{column.sql} as {name}" for name, column in COLUMNS.items())]
    by_spark = spark.createDataFrame(rows, lake.ddl_of(schema)).selectExpr("*", "5L as constant").selectExpr(*sql)
    given = dict(zip(schema.names, batch.columns)) | {"constant": pa.scalar(5)}
    by_arrow = {"text": batch["text"]} | {name: column.arrow(given) for name, column in COLUMNS.items()}
    assert {name: column.to_pylist() for name, column in by_arrow.items()} == by_spark.toArrow().to_pydict()


@pytest.fixture
def project(spark, lakehouse, tmp_path, monkeypatch):
    """Plain streams of each codec of Arrow batches, as one batch that is landed."""
    sources = {}
    monkeypatch.setattr(test_pipeline, "NUM_BATCHES", 1)
    monkeypatch.setattr(test_pipeline, "deliver", in_order)
    monkeypatch.setattr(test_pipeline.goldengate_streams, "How", lambda **given: How(restarts=0, rolls=0))
    for name in ("linkexpress_004", "goldengate_000", "journals_001"):  # each of another codec
        write, name = getattr(test_pipeline, f"write_{name[:-4]}"), f"by_tasks_{name}"
        sources[name], _ = write(random.Random(name), name, tmp_path / "delivery")
    (tmp_path / "delivery" / "0").rename(tmp_path / "landing")
    for again in (tmp_path / "landing").rglob("*.resend.*"):
        again.unlink()
    monkeypatch.setattr(small_batches, "write", lambda *given: set())
    own = {name: {k: v for k, v in of.items() if k not in ("checkpoints", "arrivals")} for name, of in sources.items()}
    project = test_pipeline.make_project(tmp_path, lakehouse, own)
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    return SimpleNamespace(project=project, batch_id=new.batch_id)


def rows_of(lakehouse: str, batch_id: int) -> list[dict]:
    """The changes of a batch as their files have them, images byte for byte."""
    names = [c.name for c in change.CHANGES if c.name != "decoded_at"]
    return lake.peek(lakehouse, "silver.changes", names, f"where batch_id = {batch_id} order by source, change_seq")


def test_changes_that_tasks_write_are_those_that_spark_writes(spark, lakehouse, project, monkeypatch):
    """Also after a run that died before it committed the files, which are removed when they are old."""
    project, batch_id = project.project, project.batch_id
    files, add_files, found = set(), lake.add_files, []

    def dying(lakehouse, table, statistics):
        assert all(json.loads(text)["numRecords"] for text in statistics.values())
        files.update(statistics)
        raise Died

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(lake, "add_files", dying)
        silver.run(project, spark, batch_id)
    kept = table_state.Kept({}, set(), set())
    assert files and files <= table_state.read(lakehouse, "silver.changes", kept, 0, time.time()).removable.keys()
    for can_write in (change_files.can_write, lambda batch: False):
        if found:
            forget(spark, project, batch_id)
        committed = list[str]()
        with monkeypatch.context() as patched:
            patched.setattr(change_files, "can_write", can_write)
            patched.setattr(lake, "add_files", lambda *given: committed.extend(given[2].values()) or add_files(*given))
            accounts = silver.run(project, spark, batch_id)
        found.append((accounts, stored(lakehouse, project.sources), rows_of(lakehouse, batch_id)))
        by_tasks = {json.loads(text)["minValues"]["source"] for text in committed}
        assert by_tasks == (project.sources.keys() if can_write is change_files.can_write else set())
    [of_tasks, of_spark] = found
    assert of_tasks == of_spark
    assert {row["source"] for row in of_tasks[2]} == project.sources.keys()


class TriedTwice:
    """Units whose task fails after its first batch, and is tried again."""

    def __init__(self, units: list[dict]):
        self.units = [pa.RecordBatch.from_pylist([unit]) for unit in units]

    def mapInArrow(self, task, ddl: str):
        def failing():
            yield self.units[0]
            raise OSError("the disk is gone")

        with pytest.raises(OSError, match="the disk is gone"):
            list(task(failing()))
        rows = [SimpleNamespace(**row) for batch in task(iter(self.units)) for row in batch.to_pylist()]
        return SimpleNamespace(collect=lambda: rows)


def test_a_task_that_is_tried_again_gives_each_change_once(tmp_path, monkeypatch):
    monkeypatch.setattr(change_files, "GROUP_BYTES", 1)  # so each unit is a row group
    project = projects.make(tmp_path, lakehouse=str(tmp_path / "lakehouse"))
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    for number in (1, 2):
        data = linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
        (tmp_path / "landing" / "depot" / f"2026010503150{number}_000012.lxg").write_bytes(data)
    planned = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    units = [unit | {"ranges": None} for unit in blocks_of_files.rows_of(project, planned.files)]
    lake.add_rows(project.lakehouse_path(), "silver.changes", [])
    batch, codec = Batch(SimpleNamespace(_sc=object()), project, 1, ["depot"]), CODECS["linkexpress_group"]
    assert change_files.can_write(batch)
    changes = change_files.of_blocks(project, codec, blocks.decoder_of_changes(batch, codec))
    change_files.write(batch, TriedTwice(units), changes)
    rows = rows_of(project.lakehouse_path(), 1)
    assert [(row["unit_id"], row["unit_offset"]) for row in rows] == sorted(
        {(row["unit_id"], row["unit_offset"]) for row in rows}
    )
    assert len(rows) == 8 == lake.num_rows(project.lakehouse_path(), "silver.changes")
    assert len(list((tmp_path / "lakehouse" / "silver" / "changes").glob("part-*.snappy.parquet"))) >= 2


def test_a_header_is_left_out_of_messages_of_a_source_that_wants_none(tmp_path):
    shop = {"codec": "qlik_json", "from": "landing/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
    project = projects.make(tmp_path, {"with": shop, "without": shop | {"header": False}})
    header = {"value": b"\0", "metadata": b"\1\0\0"}
    changes = pa.RecordBatch.from_pydict(
        {
            "source": pa.array(["with", "without", "with"]).dictionary_encode(),
            "header": pa.array([header, header, None], IMAGE),
        }
    )
    [(num, given)] = change_files.of_messages(project, lambda batches: iter([changes]))([])
    assert change_files.rows(num, given).column("header").to_pylist() == [header, None, None]
