"""`inlet show` without Spark: where a change came from. Its rows are those of the views: test_publish.py."""

from inlet.commands import show
from tests import projects

COLUMNS = ["source", "unit_id", "unit_offset"]


def test_a_change_has_the_file_that_it_came_from_and_its_place_there(tmp_path):
    lines = {"codec": "qlik_json", "from": {"transport": "lines", "path": "in/*.jsonl"}}
    project = projects.make(tmp_path, {"depot": projects.DEPOT, "crm": lines, "shop": lines | {"from": "in/*.parquet"}})
    units = [
        ("depot", "depot/landing/depot/1.lxg@4096", 100),
        ("depot", "depot/landing/depot/1.lxg@4096~2", 0),
        ("crm", "crm/in/a@b.jsonl/0/7", 0),
        ("shop", "shop/shop.orders/3/41~0a1b", 0),
        ("gone", "gone/shop.orders/3/41", 0),
        ("depot", None, None),  # an added column
    ]
    found = show.with_files(project, show.Shown(COLUMNS, units, False))
    assert found.columns == [*COLUMNS, "file", "file_offset"]
    assert [row[3:] for row in found.rows] == [
        ("landing/depot/1.lxg", 4196),
        ("landing/depot/1.lxg", 4096),
        ("in/a@b.jsonl", 7),
        ("shop.orders/3", 41),
        ("shop.orders/3", 41),
        (None, None),
    ]
