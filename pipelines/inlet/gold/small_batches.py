"""A batch of few changes on small tables: Spark reads and folds, and what comes of it is written without Spark.

A statement of Spark that writes some rows takes half a second, an append by delta-rs 5 ms. So of such a batch Spark is
asked three queries a table (the new rows of the log, the survey, the fold), and their rows are written in the order in
which the materializations write them otherwise (docs/adr/0029): a run that dies between two of them is healed by the
next one in the same way, from the table that holds the staged batch.

The materializations of dbt reach this as `adapter.small_batches`, where the run context names a table as `small`.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from inlet import lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from inlet.table import Table

NUM_CHANGES = 60_000  # of a run, up to which planning is what costs
SIZE_BYTES = 16 << 20  # of a table of current rows, which is written whole
FEATURES = {"appendOnly", "invariants", "timestampNtz"}  # of a table, with which delta-rs reads and writes it whole
# a float is equal to another one in Spark that has other bytes; the others delta-rs does not write
NO_KEYS, NO_COLUMNS = ("float", "double"), ("variant", "interval", "void", "geometry", "geography")

APPLIED = ["table_name", "source", "through_batch_id", "through_change_seq", "applied_at"]


def is_small(lakehouse: str, table: "Table") -> bool:
    """Can a batch of few changes be written to the tables of a contract without Spark?"""
    types = {column.name: column.type for column in table.columns}
    if "://" in lakehouse or table.column_mapping or any(t.startswith(NO_COLUMNS) for t in types.values()):
        return False
    if any(types[name] in NO_KEYS for name in table.key):
        return False
    names = [f"gold.{table.name}__{step}" for step in ("before_after", "past", "current", "folded")]
    existing = [deltalake.DeltaTable(place(lakehouse, name)) for name in names if lake.exists(lakehouse, name)]
    features = {
        feature
        for found in existing
        for feature in (*(found.protocol().writer_features or ()), *(found.protocol().reader_features or ()))
    }
    return features <= FEATURES and lake.size_bytes(lakehouse, names[2]) <= SIZE_BYTES


def place(lakehouse: str, table: str) -> str:
    return f"{lakehouse}/{table.replace('.', '/')}"


class SmallBatches:
    """What a run writes to small tables without Spark. The staged rows of a table are kept between its models."""

    def __init__(self, spark: "SparkSession", lakehouse: str):
        self.spark, self.lakehouse = spark, lakehouse
        self.staged: dict[str, pa.Table] = {}

    def append(self, table: str, columns: list[str], query: str) -> None:
        """Append the rows of a query. In: the table, as in gold.orders__before_after, and its columns, as the query
        gives them."""
        rows = self.spark.sql(query).toArrow().rename_columns(list(columns))
        if len(rows):
            self._write(table, rows, "append")

    def stage(self, table: str, query: str) -> None:
        """Replace what is staged by the rows of a query, which gives the columns in the table's order."""
        names = [field.name for field in self._table(table).schema().fields]
        self.staged[table] = self.spark.sql(query).toArrow().rename_columns(names)
        self._write(table, self.staged[table], "overwrite")

    def append_closed(self, table: str, staged: str, columns: list[str], until: str) -> None:
        """Append the closed versions. In: the columns of past; the one that says where a version ends."""
        rows = self.staged[staged]
        closed = rows.filter(pc.is_valid(rows[until])).select(columns)
        if len(closed):
            self._write(table, closed, "append")

    def replace_current(
        self, table: str, staged: str, columns: list[str], key: list[str], until: str, is_last: str
    ) -> None:
        """Write the current rows anew, in one commit: without those of keys that the batch touches, with the versions
        that it leaves open. In: the columns of current; those of a key, the source among them; the column of the staged
        rows that says where a version ends, and the one that marks the last version of a key."""
        rows = self.staged[staged]
        last = rows.filter(pc.fill_null(rows[is_last], False))
        live = last.filter(pc.is_null(last[until])).select(columns)
        options = pyarrow.dataset.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        now = self._table(table).to_pyarrow_dataset(parquet_read_options=options).to_table(columns)
        places = now.select(key).append_column("_n", pa.array(range(len(now)), pa.int64()))
        kept = places.join(last.select(key).cast(places.select(key).schema), key, join_type="left anti")
        left = now.take(kept["_n"].combine_chunks().sort())
        self._write(table, pa.concat_tables([left, live.cast(left.schema)]), "overwrite")

    def commit(self, name: str, staged: str, our: dict[str, str]) -> None:
        """Note in gold.applied how far the table comes. In: the name of its contract; what columns of ours are called
        in the staged rows."""
        rows = self.staged.pop(staged)
        through = rows.filter(pc.is_valid(rows[our["_through_batch_id"]]))
        of_all = [pa.array([value] * len(through)) for value in (name, datetime.now(UTC))]
        names = ("source", "_through_batch_id", "_through_change_seq")
        columns = [of_all[0], *(through[our[n]] for n in names), of_all[1]]
        lake.add_arrow(self.lakehouse, "gold.applied", pa.Table.from_arrays(columns, APPLIED))

    def _table(self, table: str) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(place(self.lakehouse, table))

    def _write(self, table: str, rows: pa.Table, mode: Literal["append", "overwrite"]) -> None:
        to = self._table(table)
        schema = pa.schema(to.schema().to_arrow())
        deltalake.write_deltalake(to, rows.select(schema.names).cast(schema), mode=mode)
