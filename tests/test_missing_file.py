"""A file of a trail that is missing in the sequence: the next ones wait, and are rejects once they have settled; when
it comes all are read."""

import json
import os

from inlet import bronze
from tests import projects
from tests.encode.goldengate_columns import Table, integer
from tests.encode.goldengate_trail import Trail

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
        found = bronze.plan_batch(project, list(project.sources.values()), before)
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
