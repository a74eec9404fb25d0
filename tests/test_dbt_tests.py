"""dbt's own tests of a table find a row that should not be there, and are silent about rows that may."""

from pathlib import Path

import pytest
from jinja2 import Environment

DBT = Path(__file__).resolve().parents[1] / "dbt"
PERIODS = "source, id, valid_from_seq, valid_to_seq"
FOLLOWING = "('s', 1, '1', '2'), ('s', 1, '2', '4'), ('s', 1, '6', null), ('s', 2, '1', null), ('t', 1, '1', '9')"
OURS = {"source": "_source", "valid_from_seq": "_from", "valid_to_seq": "_to"}
DBT_TESTS = {  # test -> its arguments, columns, rows that are good, rows that are not
    "never_null": ({"columns": ["a`b", "c"]}, "`a``b`, c", "(1, 'x')", ["(null, 'x')", "(1, null)"]),
    "one_row_per": (
        {"columns": ["source", "id"]},
        "source, id",
        "('s', 1), ('s', 2), ('t', 1)",
        ["('s', 1)", "(null, 3)", "('s', null)"],
    ),
    "one_version_at_a_time": (
        {"key": ["id"]},
        PERIODS,
        FOLLOWING,
        [
            "('s', 1, '3', '4')",
            "('s', 2, '2', null)",
            "('t', 1, '8', '9')",
            "('s', 1, '6', null)",
            "('s', 3, '5', '5')",
            "('s', 3, '5', '4')",
            "('s', 3, null, '4')",
        ],
    ),
}


def unwanted(spark, name: str, arguments: dict, columns: str, rows: str) -> int:
    """How many rows the test finds wrong."""
    text = "".join(
        path.read_text()
        for path in (
            DBT / "macros" / "quoted.sql",
            DBT / "macros" / "columns_of.sql",
            DBT / "tests" / "generic" / f"{name}.sql",
        )
    )
    macros = (
        Environment().from_string(text.replace("{% test ", "{% macro ").replace("{% endtest ", "{% endmacro ")).module
    )
    return spark.sql(getattr(macros, name)(f"(select * from values {rows} as ({columns}))", **arguments)).count()


def test_every_test_is_tried():
    assert {path.stem for path in (DBT / "tests" / "generic").iterdir()} == DBT_TESTS.keys()


@pytest.mark.smoke
@pytest.mark.parametrize("name", DBT_TESTS)
def test_a_bad_row_fails_and_good_ones_do_not(spark, name):
    arguments, columns, good, bad = DBT_TESTS[name]
    assert unwanted(spark, name, arguments, columns, good) == 0
    assert [unwanted(spark, name, arguments, columns, f"{good}, {row}") > 0 for row in bad] == [True] * len(bad)


def test_columns_of_ours_that_a_table_calls_otherwise_are_found(spark):
    name = "one_version_at_a_time"
    arguments, columns, good, bad = DBT_TESTS[name]
    for word, other in OURS.items():
        columns = columns.replace(word, other)
    assert unwanted(spark, name, arguments | {"ours": OURS}, columns, good) == 0
    assert unwanted(spark, name, arguments | {"ours": OURS}, columns, f"{good}, {bad[0]}") > 0
