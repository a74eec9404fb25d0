"""Entries of the catalog that are written without a statement are what Spark's statements write."""

import re
import shutil
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from inlet.errors import ConfigError
from inlet.lake import entries

COLUMNS = (
    "`名前` string comment 'it\\'s', id bigint, paid decimal(10,2), at timestamp, local timestamp_ntz, day date, "
    "image struct<id: bigint, of_it: array<string>>, known map<string,bigint>, bytes binary"
)
PROPERTIES = {"delta.enableDeletionVectors": "false", "delta.dataSkippingStatsColumns": "id", "inlet.key": "id,名前"}
OF_ITS_OWN = ("Name", "Table", "Created Time", "View Text", "View Original Text", "View Creation Time")


def about(spark, name: str) -> list[tuple]:
    """What the catalog and Delta say of a table or view, but for what is its own, as the second of its last change; and
    but for two features that Spark lists wherever it lists any, and which are in use only where a property says so."""
    rows = [tuple(row) for row in spark.sql(f"describe table extended {name}").collect()]
    unused = re.compile(r"delta\.feature\.(appendOnly|invariants)=supported,|(?<=transient_lastDdlTime=)\d+")
    rows = [(row[0], row[1].replace(name.split(".")[1], "its name"), row[2]) for row in rows]
    return [(row[0], unused.sub("", row[1]), row[2]) for row in rows if row[0] not in OF_ITS_OWN]


@pytest.fixture
def by_statement(spark) -> str:
    properties = ", ".join(f"{key} = '{value}'" for key, value in PROPERTIES.items())
    spark.sql(f"create table gold.by_statement ({COLUMNS}) using delta tblproperties ({properties})")
    yield "gold.by_statement"
    spark.sql("drop table gold.by_statement")


def test_a_table_is_the_one_that_create_table_makes(spark, lakehouse, by_statement):
    for _ in range(2):  # who comes second changes nothing
        entries.create_table(spark, lakehouse, "gold.by_entry", COLUMNS, PROPERTIES)
    assert about(spark, "gold.by_entry") == about(spark, by_statement)
    row = "select 'a', 1, 2.5, current_timestamp(), null, current_date(), null, map('a', 1L), null"
    for name in (by_statement, "gold.by_entry"):
        spark.sql(f"insert into {name} {row}")
        assert spark.sql(f"select id, paid, known['a'] from {name}").collect() == [(1, 2.5, 1)]
    assert about(spark, "gold.by_entry") == about(spark, by_statement)
    spark.sql("drop table gold.by_entry")
    assert not Path(lakehouse, "gold", "by_entry").exists()


def test_files_without_an_entry_get_it(spark, lakehouse, by_statement):
    spark.sql(f"insert into {by_statement} (id) values (7)")
    shutil.copytree(Path(lakehouse, "gold", "by_statement"), Path(lakehouse, "gold", "left"))
    entries.enter(spark, lakehouse, "gold.left")
    assert spark.sql("select id from gold.left").collect() == [(7,)]
    spark.sql("drop table gold.left")


def test_a_view_with_another_text_is_the_one_that_alter_view_makes(spark):
    text = "select id, 'b' as is_of from range(2) where id > 0"
    for name in ("altered", "entered"):
        spark.sql(f"create view public.{name} (id comment 'of it', is_of) as select id, 'a' as is_of from range(2)")
    spark.sql(f"alter view public.altered as {text}")
    entries.alter_view(spark, "public.entered", text)
    commented, bare = about(spark, "public.entered"), about(spark, "public.altered")
    assert commented[0] == ("id", "bigint", "of it")  # a statement takes the comment away
    assert [("id", "bigint", None), *commented[1:]] == bare
    assert spark.sql("select * from public.entered").collect() == [(1, "b")]
    with pytest.raises(AnalysisException, match="unknown"):
        entries.alter_view(spark, "public.unknown", text)
    with pytest.raises(ConfigError, match="silver.stopped is a table"):
        entries.alter_view(spark, "silver.stopped", text)
    for name in ("altered", "entered"):
        spark.sql(f"drop view public.{name}")
