"""Generated models: deterministic, marked, checked fresh; and dbt's profile says what inlet.lake.spark says."""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

from inlet import config
from inlet.gold import generate
from inlet.lake import jars, spark
from inlet.table import OURS

REPO = Path(__file__).resolve().parents[1]
ITEMS = """
table: SHOP.ITEMS
name: items
key: [REGION, ITEM]
columns:
  - {name: REGION, type: string, nullable: false, description: "where it's sold"}
  - {name: ITEM, type: bigint, nullable: false}
  - {name: NAME, type: string}
  - {name: PRICE, type: "decimal(9,2)"}
  - {name: MADE, type: date}
  - {name: PHOTO, type: binary, encoding: hex}
"""


def project(root: Path, lakehouse: str = "lakehouse", tables: dict[str, str] | None = None) -> config.Project:
    """A project folder with the repository's macros and its own tables: {name: contract}, `items` by default."""
    (root / "pipelines" / "tables").mkdir(parents=True)
    (root / "pipelines" / "inlet.yml").write_text(f"lakehouse: {lakehouse}\n")
    for name, text in (tables or {"items": ITEMS}).items():
        (root / "pipelines" / "tables" / f"{name}.yml").write_text(text)
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    return config.load(root)


def test_a_table_is_a_folder_of_one_line_models_and_a_yml(tmp_path):
    files = generate.generate(project(tmp_path))
    assert sorted(files) == [
        f"dbt/models/gold/items/items{end}"
        for end in (".yml", "__anomalies.sql", "__before_after.sql", "__current.sql", "__history.sql", "__past.sql")
    ]
    assert files["dbt/models/gold/items/items__current.sql"] == (
        f"-- {generate.MARK}\n{{{{ config(materialized='current') }}}}\n{{{{ current('items') }}}}\n"
    )


def test_columns_types_and_tests_are_visible(tmp_path):
    models = {
        m["name"]: m
        for m in yaml.safe_load(generate.generate(project(tmp_path))["dbt/models/gold/items/items.yml"])["models"]
    }
    current = models["items__current"]
    assert {c["name"]: c["data_type"] for c in current["columns"]} == {
        "source": "string",
        "region": "string",
        "item": "bigint",
        "name": "string",
        "price": "decimal(9,2)",
        "made": "date",
        "photo": "binary",
        "valid_from_seq": "string",
        "is_complete": "boolean",
        "not_supplied": "array<string>",
        "conflict": "string",
        "operation": "string",
        "key_changed": "boolean",
        "change_timestamp": "timestamp",
        "transaction_id": "string",
        "transaction_event_counter": "bigint",
        "transaction_last_event": "boolean",
        "unit_id": "string",
        "unit_offset": "bigint",
        "batch_id": "bigint",
    }
    assert current["data_tests"] == [{"one_row_per": {"arguments": {"columns": ["source", "region", "item"]}}}]
    assert "struct<region:string,item:bigint,name:string" in str(models["items__before_after"]["columns"])


def test_what_differs_lacks_or_should_not_be_there_is_stale_until_written(tmp_path):
    here = project(tmp_path)
    assert generate.stale(here) == sorted(generate.generate(here))
    assert generate.write(here) == sorted(generate.generate(here))
    assert generate.stale(here) == []
    edited = tmp_path / "dbt/models/gold/items/items__past.sql"
    edited.write_text(edited.read_text() + "-- by hand\n")
    left = tmp_path / "dbt/models/gold/gone/gone__past.sql"
    left.parent.mkdir()
    left.write_text(f"-- {generate.MARK}\n")
    (tmp_path / "dbt/models/gold/mine.sql").write_text("select 1\n")  # not generated: none of our business
    assert generate.stale(here) == ["dbt/models/gold/gone/gone__past.sql", "dbt/models/gold/items/items__past.sql"]
    generate.write(here)
    assert generate.stale(here) == [] and not left.parent.exists() and (tmp_path / "dbt/models/gold/mine.sql").exists()


def test_macros_of_an_earlier_inlet_are_stale_and_those_of_a_person_stay(tmp_path):
    here = project(tmp_path)
    generate.write(here)
    earlier, mine = tmp_path / "dbt/macros/fold/survey.sql", tmp_path / "dbt/macros/mine.sql"
    earlier.write_text("{% macro flags() %}{% endmacro %}")
    mine.write_text("{% macro mine() %}{% endmacro %}")
    (tmp_path / generate.FORMER[0]).write_text("{% macro setting() %}{% endmacro %}")
    assert generate.stale(here) == ["dbt/macros/fold/survey.sql", generate.FORMER[0]]
    generate.write(here)
    assert "flags" not in earlier.read_text() and mine.exists() and generate.stale(here) == []
    assert not (tmp_path / generate.FORMER[0]).exists()


def test_generating_twice_gives_the_same_bytes(tmp_path):
    here = project(tmp_path)
    assert generate.generate(here) == generate.generate(config.load(tmp_path))


def test_every_column_that_gold_puts_beside_those_of_a_table_can_give_way():
    added = [
        "source",
        *(name for name, *_ in (generate.FROM, generate.TO, *generate.TIMES, *generate.QUALITY, *generate.LINEAGE)),
    ]
    assert added == list(OURS[: len(added)])


@pytest.mark.parametrize("server", ["", "127.0.0.1:1527"])
def test_dbt_starts_spark_with_the_settings_that_inlet_uses(monkeypatch, server):
    monkeypatch.setenv("INLET_CATALOG", server)
    monkeypatch.delenv("INLET_DRIVER_MEMORY", raising=False)
    monkeypatch.delenv("INLET_SHUFFLE_PARTITIONS", raising=False)
    text = (REPO / "dbt" / "profiles.yml").read_text()
    said = (
        Environment()
        .from_string(text)
        .render(
            env_var=lambda name, default=None: {"INLET_LAKEHOUSE": "/lake"}.get(name, os.environ.get(name, default))
        )
    )
    local = yaml.safe_load(said)["inlet"]["outputs"]["local"]["server_side_parameters"]
    assert local == {"spark.jars.packages": jars.DELTA} | spark.settings("/lake")
