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

from inlet import lake
from inlet.config import Project
from inlet.errors import TryAgain
from inlet.lake import snapshots
from inlet.sql import plain_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from inlet.table import Table

NEW_BYTES = 16 << 20  # of a run's records: their rows pass through the driver
SIZE_BYTES, NUM_ROWS = 16 << 20, 200_000  # of a table of current rows, which is written whole
FEATURES = {"appendOnly", "deletionVectors", "invariants", "timestampNtz"}  # with which delta-rs reads and writes all
# a float is equal to another one in Spark that has other bytes; the others delta-rs does not write
NO_KEYS, NO_COLUMNS = ("float", "double"), ("variant", "interval", "void", "geometry", "geography")

STEPS = ("before_after", "past", "current", "folded")
PLACE = "place of inlet"  # no column of a table with such a name is written so: it needs column mapping
APPLIED = ["table_name", "source", "through_batch_id", "through_change_seq", "applied_at"]


def states(project: Project, tables: list["Table"], lags: dict) -> dict[str, dict]:
    """What the materializations need not ask of each table that is written without Spark: is a batch staged that is not
    committed; does the log hold batches that gold.applied does not; may there be events of loads among what is new. In:
    contracts; how far gold lags (progress.lagging)."""
    lakehouse, states = project.lakehouse_path(), {}
    small = [table for table in tables if is_small(lakehouse, table)]
    least = min((through for table in small for through, _ in lags[table.name].values()), default=0)
    columns = ["source_schema", "source_table"]
    of_loads = f"where kind in ('empty_load', 'load_end') and batch_id > {least}"
    events = lake.peek(lakehouse, "silver.control_events", columns, of_loads) if small else []
    loaded = {f"{row['source_schema']}.{row['source_table']}" for row in events}
    for table in small:
        applied = {source: through for source, (through, _) in lags[table.name].items()}
        logged = _has_later(lakehouse, table, "before_after", ["source", "batch_id"], applied)
        staged = _has_later(lakehouse, table, "folded", [table.our("source"), table.our("_through_batch_id")], applied)
        has_events = not loaded.isdisjoint(table.names)
        states[table.name] = {"is_staged": staged, "is_logged": logged, "has_load_events": has_events}
    return states


def _has_later(lakehouse: str, table: "Table", step: str, columns: list[str], applied: dict[str, int]) -> bool:
    """True if a table has rows of batches that gold.applied lacks. In: its columns of source and batch; the last batch
    in gold.applied of each source with new changes, -1 where it has none."""
    source, batch_id = columns
    each = (f"{source} = {plain_literal(name)} and {batch_id} > {through}" for name, through in applied.items())
    return bool(lake.peek(lakehouse, f"gold.{table.name}__{step}", columns, f"where {' or '.join(each)} limit 1"))


def is_small(lakehouse: str, table: "Table") -> bool:
    """True if a batch of few changes can be written to the tables of a contract without Spark."""
    types = {column.name: column.type for column in table.columns}
    if "://" in lakehouse or table.column_mapping or any(t.startswith(NO_COLUMNS) for t in types.values()):
        return False
    if any(types[name] in NO_KEYS for name in table.key):
        return False
    existing = [lake.newest(lakehouse, f"gold.{table.name}__{step}") for step in STEPS]
    protocols = [snapshot.table.protocol() for snapshot in existing if snapshot]
    features = {f for p in protocols for f in (*(p.writer_features or ()), *(p.reader_features or ()))}
    current = f"gold.{table.name}__current"
    num_rows = lake.num_rows(lakehouse, current)
    is_short = num_rows is not None and num_rows <= NUM_ROWS
    return features <= FEATURES and is_short and lake.size_bytes(lakehouse, current) <= SIZE_BYTES


def _view(name: str) -> str:
    return f"inlet_new_changes__{name}"


class SmallBatches:
    """What a run writes to small tables without Spark. The staged rows of a table are kept between its models."""

    def __init__(self, spark: "SparkSession", lakehouse: str):
        self.spark, self.lakehouse = spark, lakehouse
        self.staged: dict[str, pa.Table] = {}
        self.logged: set[str] = set()

    def append_log(self, name: str, columns: list[str], query: str, is_kept: bool) -> None:
        """Append new changes to the log of a table. In: the name of the contract; the columns of the log, as the query
        gives them; whether they are kept for the survey and the fold, as all that is new."""
        rows = self.spark.sql(query).toArrow().rename_columns(columns)
        if len(rows):
            self._write(f"{name}__before_after", rows, "append")
        if is_kept:
            self.spark.createDataFrame(rows).createOrReplaceTempView(_view(name))
            self.logged.add(name)

    def new_changes(self, name: str) -> str | None:
        """The view that holds all that is new in the log; None where this run has not written it."""
        return _view(name) if name in self.logged else None

    def stage(self, name: str, query: str) -> None:
        """Replace what is staged by the rows of a query, which gives the columns in the table's order."""
        table = f"{name}__folded"
        names = [field.name for field in self._table(table).schema().fields]
        self.staged[name] = self.spark.sql(query).toArrow().rename_columns(names)
        self._write(table, self.staged[name], "overwrite")

    def append_closed(self, name: str, columns: list[str], until: str) -> None:
        """Append the closed versions. In: the columns of past; the one that says where a version ends."""
        rows = self.staged[name]
        closed = rows.filter(pc.is_valid(rows[until])).select(columns)
        if len(closed):
            self._write(f"{name}__past", closed, "append")

    def replace_current(self, name: str, columns: list[str], key: list[str], our: dict[str, str]) -> None:
        """Overwrite the current rows, in one commit: without those of keys that the batch touches, with the versions
        that it leaves open. In: the columns of current; those of a key, the source among them; what columns of ours are
        called in the staged rows."""
        rows, table = self.staged[name], f"{name}__current"
        last = rows.filter(pc.fill_null(rows[our["_is_last"]], False))
        live = last.filter(pc.is_null(last[our["valid_to_seq"]])).select(columns)
        read = self._table(table)
        now = snapshots.answer(lake.query_builder().register("rows", read), "select * from rows")
        now = now.select(columns).cast(pa.schema([pa.schema(read.schema().to_arrow()).field(n) for n in columns]))
        places = now.select(key).append_column(PLACE, pa.array(range(len(now)), pa.int64()))
        kept = places.join(last.select(key).cast(now.select(key).schema), key, join_type="left anti")
        left = now.take(kept[PLACE].combine_chunks().sort())
        self._write(table, pa.concat_tables([left, live.cast(left.schema)]), "overwrite", read)

    def commit(self, name: str, our: dict[str, str]) -> None:
        """Note in gold.applied how far the table comes. In: what columns of ours are called in the staged rows."""
        rows = self.staged.pop(name)
        through = rows.filter(pc.is_valid(rows[our["_through_batch_id"]]))
        of_all = [pa.array([value] * len(through)) for value in (name, datetime.now(UTC))]
        names = ("source", "_through_batch_id", "_through_change_seq")
        columns = [of_all[0], *(through[our[n]] for n in names), of_all[1]]
        lake.add_arrow(self.lakehouse, "gold.applied", pa.Table.from_arrays(columns, APPLIED))

    def drop_views(self) -> None:
        for name in self.logged:
            self.spark.catalog.dropTempView(_view(name))

    def _table(self, table: str) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(lake.table_path(self.lakehouse, f"gold.{table}"))

    def _write(
        self, table: str, rows: pa.Table, mode: Literal["append", "overwrite"], read: deltalake.DeltaTable | None = None
    ) -> None:
        """In: the version that the rows are made of, which is the newest until they are written. Raises: TryAgain."""
        to = read or self._table(table)
        schema = pa.schema(to.schema().to_arrow())
        rows = rows.select(schema.names)
        for field, given in zip(schema, rows.schema):
            _check_members(field, given)
        once = deltalake.CommitProperties(max_commit_retries=0) if read else None
        try:
            deltalake.write_deltalake(to, rows.cast(schema), mode=mode, commit_properties=once)
        except deltalake.exceptions.CommitFailedError as error:
            raise TryAgain(f"gold.{table} was written by another process", "Run again when that has ended") from error
        lake.keep_short(lake.table_path(self.lakehouse, f"gold.{table}"))


def _check_members(field: pa.Field, given: pa.Field) -> None:
    """A cast of pyarrow's makes null of a member that a struct has under another name. Raises: ValueError."""
    if pa.types.is_struct(field.type) and field.type.names != given.type.names:
        raise ValueError(f"{field.name} has {', '.join(field.type.names)}, and not {', '.join(given.type.names)}")
