"""What the schemas of a lakehouse are called, and lakehouses that a catalog alone reaches. No Java, no catalog."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inlet import config, layout, sql
from inlet.errors import ConfigError
from tests import projects
from tests.test_cli import inlet

PIECES = [
    "'silver.a'",
    "`silver.b`",
    "-- gold.c\n",
    "/* gold.d */",
    '"gold.e"',
    "x.silver.f",
    "my_silver.g",
    "silver_h.i",
    r"r'\'",
    "data:public.j",
]
NAMES = [
    "silver.changes",
    "`gold`.`orders`",
    "Bronze . files",
    "show tables in gold",
    "show table extended in `gold` like '*'",
    "create database if not exists silver",
]


@pytest.fixture(autouse=True)
def of_no_project():
    yield
    layout.use(layout.Layout(location="lakehouse"))


def loaded(root, lakehouse) -> config.Project:
    projects.make(root)
    file = root / "pipelines" / "inlet.yml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"lakehouse": lakehouse}))
    return config.load(root)


@given(st.lists(st.sampled_from([*PIECES, *NAMES]), max_size=8))
def test_names_get_the_prefix_and_texts_comments_and_other_names_stay(parts):
    layout.use(layout.Layout(location="lake", prefix="cdc_"))
    named = [re.sub("(?i)(bronze|silver|gold)", r"cdc_\1", part) if part in NAMES else part for part in parts]
    assert layout.in_sql(" , ".join(parts)) == " , ".join(named)


@given(st.lists(st.sampled_from(["'", '"', "\\", "`", "a ", "as varchar)"]), max_size=8).map("".join))
def test_a_text_is_the_same_in_both_engines(text):
    assert sql.in_spark(f"select {sql.plain_literal(text)} from rows") == f"select {sql.literal(text)} from rows"


def test_a_catalog_is_a_place_and_relative_paths_are_below_its_volumes(tmp_path):
    project = loaded(tmp_path, "catalog://main/cdc_")
    assert project.lakehouse_path() == "catalog://main/cdc_/"[:-1]
    assert project.resolve("landing/depot") == "/Volumes/main/cdc_bronze/landing/depot"
    assert project.files_path("_pins") == "/Volumes/main/cdc_bronze/inlet/_pins"
    assert (layout.catalog(), layout.of("gold.applied")) == ("main", "cdc_gold.applied")
    folder = config.load(tmp_path, lakehouse=str(tmp_path / "lake"))
    assert (folder.lakehouse_path(), layout.of("gold")) == (str(tmp_path / "lake"), "gold")


def test_the_environment_names_a_lakehouse_by_an_absolute_path_or_address(tmp_path, monkeypatch):
    monkeypatch.setenv("INLET_LAKEHOUSE", "catalog://main/cdc_")
    assert loaded(tmp_path, "lakehouse").lakehouse_path() == "catalog://main/cdc_"
    monkeypatch.setenv("INLET_LAKEHOUSE", "../lakehouse")
    with pytest.raises(ConfigError, match="no absolute path"):
        config.load(tmp_path)


@pytest.mark.parametrize(
    ("lakehouse", "words"),
    [
        ("catalog://", "expected `location` or `catalog`"),
        ("catalog://main/cdc-", "prefix"),
        ({"location": "lake", "files": "notes"}, "`files` has no effect next to `location`"),
        ({"catalog": "main", "schema": "x"}, "schema"),
    ],
)
def test_a_layout_that_says_too_little_or_too_much_is_refused(tmp_path, lakehouse, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        loaded(tmp_path, lakehouse)


def test_a_catalog_needs_a_spark_that_has_it(tmp_path):
    loaded(tmp_path, "catalog://main/cdc_")
    asked = inlet("status", "--project", tmp_path)
    assert asked.returncode == 2
    assert "a Spark that has that catalog. Set SPARK_REMOTE" in asked.stderr
