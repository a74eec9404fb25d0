"""`inlet import`: contracts from the column lists that feeds gave. What became of a column that is gone is asked for,
never guessed.
"""

import pytest
import yaml
from typer.testing import CliRunner

from inlet import cli, config
from inlet.commands import import_contracts as importing
from inlet.commands import import_definitions
from inlet.errors import ConfigError
from inlet.table import Table
from tests import projects


def definition(
    columns: list[tuple], seq: str = "20260301000000000000000000000000001", table: str = "DEPOT.ITEMS", key=("ITEM_ID",)
) -> dict:
    schema, name = table.split(".")
    return {
        "source": "depot",
        "source_schema": schema,
        "source_table": name,
        "key": list(key),
        "change_seq": seq,
        "unit_id": "depot/1.toy@0",
        "columns": [{"name": n, "type": t, "nullable": n not in key} for n, t in columns],
    }


BEFORE = [("ITEM_ID", "int"), ("NAME", "string"), ("PRICE", "decimal(7,2)")]
HAND_WRITTEN = """\
# the items of the depot
table: DEPOT.ITEMS
name: items
key: [ITEM_ID]       # as the shop knows them
columns:
  - {name: ITEM_ID, type: int, source_type: INTEGER, nullable: false}
  - {name: NAME, type: string, source_type: VARCHAR(10), description: what it says on the box}
  - {name: PRICE, type: "decimal(7,2)", source_type: "DECIMAL(7,2)"}
"""


@pytest.fixture
def project(tmp_path) -> config.Project:
    projects.make(tmp_path)
    (tmp_path / "pipelines" / "tables" / "items.yml").write_text(HAND_WRITTEN)
    return config.load(tmp_path)


def imported(project, rows, renamed=None, dropped=()) -> list[Table]:
    importing.write(importing.contracts(project, rows, importing.Answers(renamed or {}, set(dropped))))
    return list(config.load(project.root).tables.values())


def test_a_new_table_gets_a_contract_with_all_its_versions(project):
    rows = [
        definition([("ID", "bigint"), ("TEXT", "string")], "20260101" + "0" * 27, "SHOP.Order Lines", ["ID"]),
        definition(
            [("ID", "bigint"), ("TEXT", "string"), ("AT", "timestamp")],
            "20260201" + "0" * 27,
            "SHOP.Order Lines",
            ["ID"],
        ),
    ]
    made = imported(project, rows)[-1]
    assert (made.table, made.name, made.key, made.version, [c.name for c in made.columns]) == (
        "SHOP.Order Lines",
        "order_lines",
        ["ID"],
        2,
        ["ID", "TEXT", "AT"],
    )
    assert [(v.version, v.column_names) for v in made.versions] == [(1, ["ID", "TEXT"]), (2, ["ID", "TEXT", "AT"])]
    assert made.earlier[0].until == "20260201" + "0" * 27 and made.column("ID").nullable is False


def test_a_contract_gets_a_version_and_keeps_what_a_person_wrote(project):
    [made] = imported(project, [definition([*BEFORE, ("CHANNEL", "string")])])
    assert made.version == 2 and [c.name for c in made.columns] == ["ITEM_ID", "NAME", "PRICE", "CHANNEL"]
    assert made.earlier[0].until == "20260301000000000000000000000000001" and len(made.earlier[0].columns) == 3
    text = (project.root / "pipelines" / "tables" / "items.yml").read_text()
    assert (
        "# the items of the depot" in text and "# as the shop knows them" in text and "what it says on the box" in text
    )
    assert imported(project, [definition([*BEFORE, ("CHANNEL", "string")])]) == [made]  # once


@pytest.mark.parametrize(
    ("columns", "answers", "expected"),
    [
        (
            [BEFORE[0], ("LABEL", "string"), BEFORE[2]],
            {},
            "DEPOT.ITEMS: NAME is gone in the column list that depot/1.toy@0 gives; LABEL is new. "
            "Say what became of it: --renamed NAME=LABEL or --dropped NAME",
        ),
        ([BEFORE[0]], {}, "NAME, PRICE are gone .* Say what became of each: --dropped NAME"),
        (
            [BEFORE[0], ("LABEL", "string"), BEFORE[2]],
            {"renamed": {"NAME": "TITLE"}},
            "--renamed NAME=TITLE: that is no new column. New are LABEL",
        ),
        ([*BEFORE, BEFORE[1]], {}, "is no contract: columns: name stands there twice. Nothing is written"),
        ([*BEFORE, ("AT", "interval")], {}, "is no contract: .*expected one of boolean"),
        (BEFORE, {"dropped": ["NAMES"]}, "There is no column NAMES in what is imported"),
    ],
)
def test_what_nobody_has_found_is_asked_for_and_nothing_is_written(project, columns, answers, expected):
    before = (project.root / "pipelines" / "tables" / "items.yml").read_text()
    with pytest.raises(ConfigError, match=expected):
        imported(project, [definition([("ID", "int")], table="A.FIRST", key=["ID"]), definition(columns)], **answers)
    assert [p.name for p in (project.root / "pipelines" / "tables").iterdir()] == ["items.yml"]
    assert (project.root / "pipelines" / "tables" / "items.yml").read_text() == before


def test_renamed_and_dropped_columns_and_a_key_that_was_renamed(project):
    [made] = imported(
        project,
        [definition([("NUMBER", "int"), ("LABEL", "string")], key=["NUMBER"])],
        {"ITEM_ID": "NUMBER", "NAME": "LABEL"},
        ["PRICE"],
    )
    assert made.key == ["NUMBER"] and made.versions[0].key == ["ITEM_ID"]
    assert [(c.name, c.formerly, c.dropped, c.source_type) for c in made.columns] == [
        ("NUMBER", ["ITEM_ID"], False, "INTEGER"),
        ("LABEL", ["NAME"], False, "VARCHAR(10)"),
        ("PRICE", [], True, "DECIMAL(7,2)"),
    ]


def test_the_command_says_what_it_did_and_what_comes_next(project, monkeypatch):
    monkeypatch.setattr(
        import_definitions.table_versions, "seen", lambda project: [definition([*BEFORE, ("CHANNEL", "string")])]
    )
    run = CliRunner()
    shown = run.invoke(cli.app, ["import", "--project", str(project.root), "--dry-run"])
    assert (
        shown.exit_code == 0 and "DEPOT.ITEMS: version 1 -> 2" in shown.output and "nothing was written" in shown.output
    )
    done = run.invoke(cli.app, ["import", "--project", str(project.root), "--table", "DEPOT.ITEMS"])
    assert "next: inlet generate, then inlet run" in done.output
    assert yaml.safe_load((project.root / "pipelines" / "tables" / "items.yml").read_text())["version"] == 2
    again = run.invoke(cli.app, ["import", "--project", str(project.root)])
    assert again.output == "contracts say what the feeds say\n"


def test_a_definition_file_that_is_not_there_is_named(tmp_path):
    project = projects.make(tmp_path, {"trail": {"codec": "goldengate_trail", "from": "landing/tr*"}})
    with pytest.raises(ConfigError, match="nothing.def cannot be read: No such file or directory"):
        import_definitions.from_files(project, "trail", [tmp_path / "nothing.def"])
