"""A file of a trail that is missing in the sequence: the next ones wait, and are rejects once they have settled; when
it comes all are read. And one that ends before a record of several is whole: that holds up no other once the next one
is there."""

import json
import os

from inlet import bronze, silver
from inlet.bronze import blocks
from inlet.commands import replay
from tests import both_ways, projects
from tests.encode.goldengate_columns import Table, integer
from tests.encode.goldengate_tokens import FIRST, LAST
from tests.encode.goldengate_trail import Trail
from tests.test_replay import again
from tests.test_toy import run

HOUR = 3600
ITEMS = {
    "table": "T.ITEMS",
    "name": "items",
    "key": ["ID"],
    "columns": [{"name": "ID", "type": "bigint", "source_type": "INT64", "nullable": False}],
}


def test_files_behind_a_missing_one_wait_then_are_rejected_and_read_when_it_comes(tmp_path):
    source = {"codec": "goldengate_trail", "from": "landing/tr*"}
    project = projects.make(tmp_path, {"trail": source}, [ITEMS], str(tmp_path / "lakehouse"))
    trail = Trail([Table("T.ITEMS", (integer("ID", is_key=True, is_nullable=False),))], prefix="./dirdat/tr")
    for number in range(3):
        trail.insert("T.ITEMS", {"ID": number})
        trail.roll()
    files, landing = dict(trail.files[:3]), tmp_path / "landing"
    landing.mkdir()
    before: list[dict] = []

    def deliver(name: str, hours_ago: float) -> None:
        (landing / name).write_bytes(files[name])
        at = (landing / name).stat().st_mtime - hours_ago * HOUR
        os.utime(landing / name, (at, at))

    def planned():
        found = both_ways.planned(project, bronze.History(project, before))
        before.extend(row | {"landed_at": None} for row in found.files)
        rows = [(row["path"], row["problem"] and json.loads(row["problem"])["kind"]) for row in found.files]
        return rows, found.held

    first, second, third = (f"landing/{name}" for name in sorted(files))
    deliver("tr000000", 3)
    deliver("tr000002", 0)
    assert planned() == ([(first, None)], {third: "file 1 of trail"})
    deliver("tr000002", 2)
    assert planned() == ([(third, "file_before_missing")], {})
    assert planned() == ([], {third: "file 1 of trail"})
    deliver("tr000001", 0)
    assert planned() == ([(second, None), (third, None)], {})
    assert planned() == ([], {})
    files["tr000001"] += trail.records[-1].data  # copied before it was whole: the third one went on without these bytes
    deliver("tr000001", 0)
    rows, held = planned()
    assert not rows and "has grown to" in held[second] and "after file 2 was read" in held[second]


def broken_off() -> Trail:
    """Two files; the first one ends with a segment that another one should follow."""
    trail = Trail([Table("T.ITEMS", (integer("ID", is_key=True, is_nullable=False),))], prefix="./dirdat/tr")
    trail.insert("T.ITEMS", {"ID": 1})
    area = trail.image("T.ITEMS", {"ID": 2})
    trail.row(5, "T.ITEMS", area[:6], rec_count=1, continued=1, trans_ind=FIRST)
    trail.roll()
    trail.insert("T.ITEMS", {"ID": 3}, trans_ind=LAST)
    return trail


def test_a_file_that_ends_in_a_record_of_several_is_read_up_to_it_until_the_next_one_is_there(tmp_path):
    source = {"codec": "goldengate_trail", "from": "landing/tr*"}
    project = projects.make(tmp_path, {"trail": source}, [ITEMS], str(tmp_path / "lakehouse"))
    (first, data), (second, after) = broken_off().files
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / first).write_bytes(data)
    rows = both_ways.planned(project, bronze.History(project, [])).files
    assert [row["path"] for row in rows] == [f"landing/{first}"] and rows[0]["ofs_end"] < len(data)
    (tmp_path / "landing" / second).write_bytes(after)
    before = [row | {"landed_at": None} for row in rows]
    rows += both_ways.planned(project, bronze.History(project, before)).files
    assert [(row["path"], row["problem"]) for row in rows[1:]] == [
        (f"landing/{name}", None) for name in (first, second)
    ]
    units = [unit for row in rows for unit in blocks.units_of(project, row)]
    assert b"".join(unit["bytes"] for unit in units) == data + after
    assert not any("problem" in json.loads(unit["context"]) for unit in units)


def test_a_settled_file_that_ends_in_a_record_of_several_goes_on_by_a_replay(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "broken_off"
    landing.mkdir(parents=True)
    source = {"codec": "goldengate_trail", "from": "landing/broken_off/tr*", "settle_minutes": 0}
    project = projects.make(tmp_path, {"broken_off": source}, [ITEMS], lakehouse)
    (first, data), (second, after) = broken_off().files
    (landing / first).write_bytes(data)
    run(project, spark)
    (landing / second).write_bytes(after)
    held = both_ways.planned(project, bronze.History(project)).held
    assert "whose rest was rejected: `inlet replay`" in held[f"landing/broken_off/{second}"]
    [reject] = replay.unresolved(project, "broken_off")
    assert reject["kind"] == "truncated"
    again(project, spark, source="broken_off")
    run(project, spark)
    [reject] = replay.unresolved(project, "broken_off")
    assert (reject["kind"], reject["source_table"]) == ("bad_segment", "ITEMS")
    ids = spark.sql(
        "select after:ID::int from silver.changes where source = 'broken_off' order by change_seq"
    ).collect()
    assert [row[0] for row in ids] == [1, 3]


def test_a_file_that_goes_on_behind_a_rest_that_was_rejected_is_read_whole_by_itself(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "paused"
    landing.mkdir(parents=True)
    source = {"codec": "goldengate_trail", "from": "landing/paused/tr*", "settle_minutes": 0}
    project = projects.make(tmp_path, {"paused": source}, [ITEMS], lakehouse)
    trail = Trail([Table("T.ITEMS", (integer("ID", is_key=True, is_nullable=False),))], prefix="./dirdat/tr")
    for number in range(3):
        trail.insert("T.ITEMS", {"ID": number})
    [(name, data)] = trail.files
    (landing / name).write_bytes(data[:-30])
    run(project, spark)
    assert replay.due(project, ["paused"]) == []
    (landing / name).write_bytes(data)
    run(project, spark)
    silver.run(project, spark, replay.plan(project, spark, replay.due(project, ["paused"])))
    ids = spark.sql("select after:ID::int from silver.changes where source = 'paused' order by change_seq").collect()
    assert [row[0] for row in ids] == [0, 1, 2] and replay.unresolved(project, "paused") == []
