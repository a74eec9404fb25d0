"""Column lists of Qlik's metadata messages: what a message says, where a list is in force from, and the contracts that
`inlet import` makes of them.
"""

import json

import pytest

from inlet import config
from inlet.codecs import CODECS
from inlet.codecs.qlik import metadata as metadata_lists
from inlet.commands import decode
from inlet.commands import import_contracts as importing
from inlet.errors import ConfigError
from inlet.silver import table_versions
from inlet.source import Source
from inlet.table import Table
from tests import projects, test_cases
from tests.encode import qlik

SOURCE = Source(name="shop", codec="qlik_json", **{"from": "landing"})
ID, NAME, PRICE = ("ID", "INT4", 0, 0), ("NAME", "WSTRING", 20, 0), ("PRICE", "NUMERIC", 9, 2)
FIRST = [ID, NAME, PRICE]
SEQ = "20260102030405000000000000000000"


def metadata(id_: str, columns: list[tuple], version: int, key: tuple[str, ...] = ("ID",), table="ITEMS") -> bytes:
    """In: name, type, length or precision, scale."""
    listed = [
        qlik.Column(
            word, type_, 0 if scale else size, size if scale else 0, scale, key.index(word) + 1 if word in key else 0
        )
        for word, type_, size, scale in columns
    ]
    return qlik.metadata(id_, "DEPOT", table, listed, version)


def insert(id_: str, row: dict, number: int) -> bytes:
    said = {"operation": "INSERT", "change_seq": f"{SEQ}{number:03d}", "after": row}
    return qlik.value(said, list(row), schema_id=id_)


def seen(values: list[bytes], tables: dict[str, Table], known: list[dict] | None = None) -> tuple[list[dict], list]:
    """The definitions of messages as silver.table_versions gives them, and the kinds of their rejects."""
    codec = CODECS["qlik_json"]
    messages = [test_cases._message({"topic": "all", "offset": n, "value": value}) for n, value in enumerate(values)]
    lookups = {name: text for message in messages for name, text in codec.brought(message).items()}
    messages = [message | {"lookups": lookups} for message in messages]
    loads = decode.loads_of(codec, SOURCE, tables, messages)
    found = [codec.decode_message(message, SOURCE, tables, loads) for message in messages]
    rows = [
        {"source": "shop", "unit_id": f"shop/all/0/{n}", "feed_version": d.version} | d._asdict()
        for n, one in enumerate(found)
        for d in one.definitions
    ]
    return table_versions.in_order([*(known or []), *rows]), [r.kind for one in found for r in one.rejects]


def imported(project: config.Project, rows: list[dict], **answers) -> Table:
    importing.write(importing.contracts(project, rows, importing.Answers(**answers)))
    return next(iter(config.load(project.root).tables.values()))


@pytest.fixture
def project(tmp_path) -> config.Project:
    made = projects.make(tmp_path, {"shop": {"codec": "qlik_json", "from": "landing/*.parquet"}})
    (tmp_path / "pipelines" / "tables" / "items.yml").unlink()
    return config.load(made.root)


def test_a_feed_makes_a_contract_with_all_its_versions(project):
    """Whatever the order of metadata and data messages; each list is in force from the first change that names it."""
    values = [
        insert("BB", {"ID": 3, "NAME": "c", "PRICE": "1", "COLOR": "red"}, 9),
        insert("BB", {"ID": 2, "NAME": "b", "PRICE": "1", "COLOR": "red"}, 7),
        insert("AA", {"ID": 1, "NAME": "a", "PRICE": "1"}, 3),
        metadata("BB", [*FIRST, ("COLOR", "STRING", 9, 0)], 2),
        metadata("AA", FIRST, 1),
    ]
    for order in (values, values[::-1]):
        rows, kinds = seen(order, {})
        assert [(row["version"], row["change_seq"][-1:], len(row["columns"])) for row in rows] == [
            (1, "3", 3),
            (2, "7", 4),
        ]
        assert kinds == ["unknown_table"] * 3
    table = imported(project, rows)
    assert (table.version, table.key, [c.name for c in table.columns]) == (2, ["ID"], ["ID", "NAME", "PRICE", "COLOR"])
    assert [(e.version, e.until) for e in table.earlier] == [(1, SEQ + "007")]
    assert [(c.type, c.source_type, c.nullable) for c in table.columns[:3]] == [
        ("int", "INT4", False),
        ("string", "WSTRING(20)", True),
        ("decimal(9,2)", "NUMERIC(9,2)", True),
    ]
    rows, kinds = seen(values, {"DEPOT.ITEMS": table})
    assert kinds == [] and importing.contracts(config.load(project.root), rows, importing.Answers()) == []


ROW = {"ID": 1, "NAME": "a", "PRICE": "1"}


@pytest.mark.parametrize(
    ("columns", "key", "row", "answers", "expected"),
    [
        ([*FIRST, ("COLOR", "STRING", 9, 0)], ("ID",), ROW | {"COLOR": "x"}, {}, ["ID", "NAME", "PRICE", "COLOR"]),
        ([ID, PRICE], ("ID",), {"ID": 1, "PRICE": "1"}, {"dropped": {"NAME"}}, ["ID", "PRICE"]),
        (
            [ID, ("LABEL", "WSTRING", 20, 0), PRICE],
            ("ID",),
            {"ID": 1, "LABEL": "a", "PRICE": "1"},
            {"renamed": {"NAME": "LABEL"}},
            ["ID", "LABEL", "PRICE"],
        ),
        (
            [ID, NAME, ("PRICE", "NUMERIC", 12, 3)],
            ("ID",),
            ROW | {"PRICE": "123456789.125"},
            {},
            ["ID", "NAME", "PRICE"],
        ),
        (FIRST, ("NAME",), ROW, {}, ["ID", "NAME", "PRICE"]),
        ([*FIRST, ("COLOR", "STRING", 9, 0)], ("NAME",), ROW | {"COLOR": "x"}, {}, ["ID", "NAME", "PRICE", "COLOR"]),
    ],
    ids=["added", "dropped", "renamed", "widened", "another key", "added, and another key"],
)
def test_a_change_of_the_table_waits_until_its_list_is_imported(project, columns, key, row, answers, expected):
    known, _ = seen([metadata("AA", FIRST, 1)], {})
    first = imported(project, known)
    values = [metadata("AA", FIRST, 1), metadata("BB", columns, 2, key), insert("BB", row, 5), insert("AA", ROW, 4)]
    rows, kinds = seen(values, {"DEPOT.ITEMS": first})
    assert kinds == ["definition_differs"]
    project = config.load(project.root)
    table = imported(project, rows, **answers)
    assert (table.version, table.key) == (2, list(key))
    assert [c.name for c in table.versions[-1].columns] == expected
    assert [(e.until, e.key or table.key) for e in table.earlier] == [(SEQ + "005", ["ID"])]
    assert seen(values, {"DEPOT.ITEMS": table})[1] == []
    assert importing.contracts(config.load(project.root), rows, importing.Answers()) == []


def test_a_list_that_no_change_has_named_is_asked_for_its_time(project):
    imported(project, seen([metadata("AA", FIRST, 1)], {})[0])
    project = config.load(project.root)
    rows, _ = seen([metadata("AA", FIRST, 1), metadata("BB", [*FIRST, ("COLOR", "STRING", 9, 0)], 2)], {})
    with pytest.raises(ConfigError, match="tells no time from which it is in force"):
        importing.contracts(project, rows, importing.Answers())
    table = imported(project, rows, since=importing.place_of("20260301120000"))
    assert [(e.version, e.until[:14]) for e in table.earlier] == [(1, "20260301120000")]


def test_a_version_begins_earlier_once_an_earlier_change_has_named_its_list(project):
    lists = [metadata("AA", FIRST, 1), metadata("BB", [*FIRST, ("COLOR", "STRING", 9, 0)], 2)]
    first = imported(project, seen(lists[:1], {})[0])
    late = [insert("BB", ROW | {"COLOR": "x"}, n) for n in (8, 5)]
    rows, _ = seen([*lists, late[0]], {"DEPOT.ITEMS": first})
    table = imported(config.load(project.root), rows)
    rows, kinds = seen([*lists, *late], {"DEPOT.ITEMS": table}, rows)
    assert kinds == ["definition_differs"]
    [made] = importing.contracts(config.load(project.root), rows, importing.Answers())
    assert made.what == f"DEPOT.ITEMS: version 2 is in force from {SEQ}005 on"
    table = imported(config.load(project.root), rows)
    assert [(e.version, e.until) for e in table.earlier] == [(1, SEQ + "005")]
    assert seen([*lists, *late], {"DEPOT.ITEMS": table})[1] == []


def test_a_list_that_a_full_load_names_is_in_force_from_its_beginning(project):
    table = imported(project, seen([metadata("AA", FIRST, 1)], {})[0])
    lists = [metadata("AA", FIRST, 1), metadata("BB", [*FIRST, ("COLOR", "STRING", 9, 0)], 2)]
    loaded = qlik.value({"operation": "REFRESH", "after": ROW | {"COLOR": "x"}}, [*ROW, "COLOR"], schema_id="BB")
    rows, kinds = seen([*lists, loaded], {"DEPOT.ITEMS": table})
    assert kinds == ["definition_differs"]
    assert [row["change_seq"] for row in rows] == ["", "2026010203040500" + "0" * 19]


def test_another_order_of_columns_is_no_other_list(project):
    table = imported(project, seen([metadata("AA", FIRST, 1)], {})[0])
    values = [metadata("BB", FIRST[::-1], 2), insert("BB", ROW, 5)]
    rows, kinds = seen([metadata("AA", FIRST, 1), *values], {"DEPOT.ITEMS": table})
    assert kinds == [] and importing.contracts(config.load(project.root), rows, importing.Answers()) == []


def test_a_list_that_is_sent_again_is_kept_once():
    again = [metadata("AA", FIRST, 1)] * 3
    rows, _ = seen(again, {})
    assert len(rows) == 1
    told = json.loads(json.dumps(rows[0]["detail"]))
    assert told["columns"]["PRICE"] == {
        "ordinal": 3,
        "type": "NUMERIC",
        "length": 0,
        "precision": 9,
        "scale": 2,
        "key_position": 0,
        "nullable": True,
    }
    assert {name: told[name] for name in ("server", "task")} == {"server": "qlik-01", "task": "shop"}


def test_a_list_that_an_earlier_inlet_kept_without_types_stops_nothing():
    """Messages that name it are rejects, which say what is wrong with it."""
    kept = {"schemaId": "AA", "lineage": {"schema": "DEPOT", "table": "ITEMS"}}
    kept["tableStructure"] = {"tableColumns": {"ID": {"ordinal": 1}}}
    lookups = {"AA": json.dumps(kept).encode(), "metadata": b""}
    assert metadata_lists.lists(lookups) == {}
    given = test_cases._message({"topic": "t", "value": insert("AA", ROW, 5)}) | {"lookups": lookups}
    [reject] = CODECS["qlik_json"].decode_message(given, SOURCE, {}, []).rejects
    assert (reject.kind, reject.expected) == ("wrong_shape", "text")
