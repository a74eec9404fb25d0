"""A point whose files are gone is refused before a pin of it is made. That pins show their point: test_publish.py."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from inlet.errors import ConfigError
from inlet.publish import pins, views
from tests import lakes, projects

TABLES = ("items__past", "items__current", "items__before_after", views.TRANSACTIONS)


@pytest.fixture
def project(tmp_path):
    """Three points, each with new versions of all tables; of each version one file replaces that of the one before."""
    made = projects.make(tmp_path)
    for number in range(3):
        for name in TABLES:
            place = made.lakehouse_path(*(name if "." in name else f"gold.{name}").split("."))
            write_deltalake(place, pa.table({"n": [number]}), mode="overwrite")
        point = lakes.point(number + 1, lakes.BEGAN) | {"versions": dict.fromkeys(TABLES, number)}
        lakes.write(made, "gold.published", point)
    return made


def test_a_point_whose_files_vacuum_has_removed_is_refused_with_the_first_one_that_is_whole(project):
    assert pins.find(project, "first", 1).number == 1
    current = DeltaTable(project.lakehouse_path("gold", "items__current"))
    assert len(current.vacuum(0, dry_run=False, enforce_retention_duration=False)) == 2
    with pytest.raises(ConfigError) as error:
        pins.find(project, "first", 1)
    assert (error.value.message, error.value.remedy) == (
        "Point 1 can't be read any more: files of version 0 of gold.items__current were removed (VACUUM)",
        "Pin point 3 or a later one",
    )
    assert pins.find(project, "newest").number == 3


def test_where_no_point_can_be_read_the_next_one_can(project):
    table = project.lakehouse_path("gold", "items__past")
    for file in DeltaTable(table).file_uris():
        (project.root / file).unlink()
    with pytest.raises(ConfigError) as error:
        pins.find(project, "newest")
    assert "version 2 of gold.items__past" in error.value.message
    assert error.value.remedy == "`inlet run` publishes the next point"


def test_a_pin_whose_files_are_gone_is_listed_so(project, monkeypatch):
    monkeypatch.setattr(pins, "pinned", lambda spark: {"first": 1, "last": 3, "other": 9})
    DeltaTable(project.lakehouse_path("gold", "items__past")).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert [row["can be read"] for row in pins.listed(project, None)] == [
        "files of version 0 of gold.items__past were removed (VACUUM)",
        "yes",
        None,
    ]
