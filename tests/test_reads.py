"""Delta tables read without Spark give the values that Spark gives."""

from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from inlet import lake

TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 10, tzinfo=UTC),
    datetime(1677, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, 0, 999999, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]


def test_times_of_all_years_are_read_from_the_int96_of_earlier_releases(tmp_path):
    """Such files say nothing of the unit: pyarrow leaves out its own schema, as Spark does."""
    folder = tmp_path / "gold" / "old"
    folder.mkdir(parents=True)
    type_ = pa.timestamp("us", "UTC")
    columns = [("at", type_), ("after", pa.struct([("at", type_)]))]
    rows = pa.Table.from_pylist([{"at": time, "after": {"at": time}} for time in TIMES], pa.schema(columns))
    pq.write_table(rows, folder / "rows.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    deltalake.convert_to_deltalake(str(folder))
    found = lake.peek(str(tmp_path), "gold.old", ["at", "after"], "order by at")
    assert [row["at"].replace(tzinfo=UTC) for row in found] == TIMES
    assert [row["after"]["at"].replace(tzinfo=UTC) for row in found] == TIMES


def test_spark_writes_times_that_any_reader_reads(spark, lakehouse):
    values = ", ".join(f"(timestamp'{time.isoformat(sep=' ')}')" for time in TIMES)
    spark.sql("create database if not exists gold")
    spark.sql(f"create table gold.times using delta as select at from values {values} as t(at)")
    assert [row["at"] for row in lake.peek(lakehouse, "gold.times", ["at"], "order by at")] == TIMES
    for file in Path(lakehouse, "gold", "times").glob("*.parquet"):
        assert pq.ParquetFile(file).schema.column(0).physical_type == "INT64"
    spark.sql("drop table gold.times")
