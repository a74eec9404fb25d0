"""A batch of few changes: what gold makes of it is written without Spark, and of small tables folded without Spark.

A statement of Spark that writes some rows takes half a second, an append by delta-rs 5 ms. So Spark is asked for the
new rows of the log alone, and for the survey and the fold where a table is not small. The rows are written in the order
in which the materializations write them otherwise (docs/adr/0029): a run that dies between two of them is recovered by
the next one in the same way, from the table that holds the staged batch.

Small tables of current rows and of past are written whole, and folded by DataFusion (queries.py, docs/adr/0035). Of a
large table of current rows, delta-rs reads the rows that the batch touches, and Spark moves them from the batch's rows
in memory (docs/adr/0031).

The materializations of dbt reach this as `adapter.small_batches`, where the run context names a table as `small`.
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import deltalake
import pyarrow as pa
import pyarrow.compute as pc

from inlet import lake, storage
from inlet.config import Project
from inlet.errors import TryAgain
from inlet.gold.queries import MADE, Queries
from inlet.lake import compaction, engine, entries, lease, snapshots
from inlet.lake.tables import noting
from inlet.sql import plain_literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from inlet.table import Table

NEW_BYTES = 16 << 20  # of a run's records: their rows pass through the driver
WHOLE_BYTES, WHOLE_ROWS = 16 << 20, 200_000  # of past or current, up to which it is written whole
# a float is equal to another one in Spark that has other bytes; the others delta-rs does not write
NO_KEYS, NO_COLUMNS = ("float", "double"), ("variant", "interval", "void", "geometry", "geography")

PLACE = "place of inlet"  # no column of a table with such a name is written so: it needs column mapping
APPLIED = ["table_name", "source", "through_batch_id", "through_change_seq", "applied_at"]


def states(project: Project, tables: list["Table"], lags: dict, new_tables: set[str]) -> dict[str, dict]:
    """What the materializations need not ask of each table that is written without Spark: has gold nothing of it; is a
    batch staged that is not committed; does the log hold batches that gold.applied does not; may there be events of
    loads among what is new; how many rows past and current have. In: contracts; how far gold lags (progress.lagging);
    tables that gold has nothing of."""
    lakehouse, states = project.lakehouse_path(), {}
    small = [table for table in tables if is_small(lakehouse, table)]
    least = min((through for table in small for through, _ in lags.get(table.name, {}).values()), default=0)
    columns = ["source_schema", "source_table"]
    of_loads = f"where kind in ('empty_load', 'load_end') and batch_id > {least}"
    events = lake.peek(lakehouse, "silver.control_events", columns, of_loads) if small else []
    loaded = {f"{row['source_schema']}.{row['source_table']}" for row in events}
    for table in small:
        is_new, place = table.name in new_tables, [table.our("source"), table.our("_through_batch_id")]
        applied = {source: through for source, (through, _) in lags.get(table.name, {}).items()}
        states[table.name] = {
            "is_new": is_new,
            "is_staged": not is_new and _has_later(lakehouse, table, "folded", place, applied),
            "is_logged": not is_new and _has_later(lakehouse, table, "before_after", ["source", "batch_id"], applied),
            "has_load_events": not loaded.isdisjoint(table.names),
            "is_whole": is_new or is_whole(lakehouse, table, "current"),
            "is_past_whole": is_new or is_whole(lakehouse, table, "past"),
            "num_rows": sum(
                lake.num_rows(lakehouse, f"gold.{table.name}__{step}") or 0 for step in ("past", "current")
            ),
        }
    return states


def _has_later(lakehouse: str, table: "Table", step: str, columns: list[str], applied: dict[str, int]) -> bool:
    """True if a table has rows of batches that gold.applied lacks. In: its columns of source and batch; the last batch
    in gold.applied of each source with new changes, -1 where it has none."""
    source, batch_id = columns
    later = _later(source, batch_id, applied)
    return bool(applied and lake.peek(lakehouse, f"gold.{table.name}__{step}", columns, f"where {later} limit 1"))


def _later(source: str, batch_id: str, applied: dict[str, int]) -> str:
    """A condition on the columns of source and batch: rows of batches after the last one applied of each source."""
    each = (f"{source} = {plain_literal(name)} and {batch_id} > {through}" for name, through in applied.items())
    return " or ".join(each)


def is_small(lakehouse: str, table: "Table") -> bool:
    """True if a batch of few changes can be written to the tables of a contract without Spark."""
    types = {column.name: column.type for column in table.columns}
    if not storage.is_reached(lakehouse) or table.column_mapping:
        return False
    if any(type_.startswith(NO_COLUMNS) for type_ in types.values()):
        return False
    if any(types[name] in NO_KEYS for name in table.key):
        return False
    existing = [lake.newest(lakehouse, f"gold.{table.name}__{step}") for step in MADE]
    return not any(compaction.unwritable(snapshot.table) for snapshot in existing if snapshot)


def is_whole(lakehouse: str, table: "Table", step: str) -> bool:
    """True if the rows of past or current are few enough to be written whole for a batch."""
    name = f"gold.{table.name}__{step}"
    num_rows = lake.num_rows(lakehouse, name)
    return num_rows is not None and num_rows <= WHOLE_ROWS and lake.size_bytes(lakehouse, name) <= WHOLE_BYTES


class SmallBatches:
    """What a run writes without Spark. The staged rows of a table are kept between its models. In: a moment after all
    checks of gold."""

    def __init__(self, spark: "SparkSession", lakehouse: str, least_at: datetime):
        self.spark, self.lakehouse, self.least_at = spark, lakehouse, least_at
        self.staged: dict[str, pa.Table] = {}
        self.views = ExitStack()  # of what statements of Spark read
        self.new_views: dict[str, str] = {}
        self.new: dict[str, pa.Table] = {}
        self.num_touched: dict[str, int] = {}
        self.queries = Queries(lakehouse)

    def create_table(self, name: str, columns: str, properties: dict[str, str | None]) -> None:
        """Create a table of gold unless it is there. In: its column list and properties, as in CREATE TABLE."""
        entries.create_table(self.spark, self.lakehouse, f"gold.{name}", columns, properties)

    def append_log(self, name: str, columns: list[str], query: str, is_kept: bool, is_view: bool) -> None:
        """Append new changes to the log of a table. In: the name of the contract; the columns of the log, as the query
        gives them; whether they are kept for the survey, as all that is new; also as a view for queries of Spark."""
        rows = self.spark.sql(query).toArrow().rename_columns(columns)
        if len(rows):
            self._write(f"{name}__before_after", rows, "append")
        if is_kept:
            self.new[name] = rows
        if is_kept and is_view:
            self.new_views[name] = self._view("new_changes", name, rows)

    def has_new(self, name: str) -> bool:
        """True if this run has written all that is new in the log."""
        return name in self.new

    def new_changes(self, name: str) -> str | None:
        """The view that holds all that is new in the log; None where there is none."""
        return self.new_views.get(name)

    def survey(self, name: str, lagging: list[dict]) -> list[dict]:
        """Survey what is new in the log, as the macro `new_changes_by_source` does, but for ranges of keys. In: the
        name of the contract; how far gold has come with each source."""
        columns = ["source", "batch_id", "change_seq", "operation", "not_supplied", "column_states", "key_changed"]
        of_source: dict[str, list[dict]] = {}
        for row in self.new[name].select([*columns, "transaction_id", "load_id"]).to_pylist():
            of_source.setdefault(row["source"], []).append(row)
        return [
            _surveyed(applied, of_source[applied["source"]])
            for applied in sorted(lagging, key=lambda row: row["source"])
            if applied["source"] in of_source
        ]

    def touched_rows(self, name: str, source: str, key: list[str], sources: list[dict]) -> str:
        """Read the current rows of all keys that are new in the log, before and after each change. In: the name of the
        contract; the column of the source; those of the key; the sources of the batch, as in the survey. Out: the view
        that holds the rows."""
        table = f"{name}__current"
        rows, log = self._table(table), self._table(f"{name}__before_after")
        later = _later("source", "batch_id", {row["source"]: row["applied_batch_id"] for row in sources})
        images = ("before", "after"), ("after", "before")
        keys = " union ".join(f"select {_keys_of(key, one, other)} from log where {later}" for one, other in images)
        same = [f"k.source = r.{_name(source)}"]
        same += [f"k.key_{place} = r.{_name(column)}" for place, column in enumerate(key)]
        builder = snapshots.query_builder().register("rows", rows).register("log", log)
        query = f"select r.* from rows r left semi join ({keys}) k on {' and '.join(same)}"
        touched = _as_stored(snapshots.answer(builder, query), rows)
        self.num_touched[name] = len(touched)
        return self._view("touched_rows", name, touched)

    def stage(self, name: str, query: str, is_local: bool) -> None:
        """Replace what is staged by the rows of a query, which gives the columns in the table's order. In: whether it
        is answered without Spark."""
        table = f"{name}__folded"
        schema = pa.schema(self._table(table).schema().to_arrow())
        rows = self.queries.rows(name, query) if is_local else self.spark.sql(query).toArrow()
        self.queries.close(name)
        self.staged[name] = rows.rename_columns(schema.names).cast(schema)
        self._write(table, self.staged[name], "overwrite")

    def has_touched_rows(self, name: str) -> bool:
        """True if current had a row of a key of the batch when the rows were read."""
        return self.num_touched[name] > 0

    def last_versions(self, name: str, our: dict[str, str]) -> str:
        """The view that holds the last version of each key of the batch. In: what columns of ours are called in the
        staged rows."""
        return self._view("last_versions", name, self._last(name, our))

    def append_closed(self, name: str, columns: list[str], until: str) -> None:
        """Append the closed versions. In: the columns of past; the one that says where a version ends."""
        rows = self.staged[name]
        closed = rows.filter(pc.is_valid(rows[until])).select(columns)
        if len(closed):
            self._write(f"{name}__past", closed, "append")

    def replace_past(self, name: str, columns: list[str], key: list[str], our: dict[str, str]) -> None:
        """Overwrite the closed versions, in one commit: without those that the batch has folded again, with those that
        it closes. In: the columns of past; those of a key, the source among them; what columns of ours are called in
        the staged rows."""
        rows = self.staged[name]
        folded = rows.filter(pc.is_valid(rows[our["valid_from_seq"]]))
        closed = folded.filter(pc.is_valid(folded[our["valid_to_seq"]]))
        self._replace(f"{name}__past", columns, [*key, our["valid_from_seq"]], folded, closed)

    def replace_current(self, name: str, columns: list[str], key: list[str], our: dict[str, str]) -> None:
        """Overwrite the current rows, in one commit: without those of keys that the batch touches, with the versions
        that it leaves open. In: the columns of current; those of a key, the source among them; what columns of ours are
        called in the staged rows."""
        last = self._last(name, our)
        live = last.filter(pc.is_null(last[our["valid_to_seq"]]))
        self._replace(f"{name}__current", columns, key, last, live)

    def _replace(self, table: str, columns: list[str], key: list[str], taken: pa.Table, put: pa.Table) -> None:
        """Overwrite a table: without the rows whose key is among `taken`, with those of `put`."""
        read = self._table(table)
        builder = snapshots.query_builder().register("rows", read)
        now = _as_stored(snapshots.answer(builder, "select * from rows"), read).select(columns)
        places = now.select(key).append_column(PLACE, pa.array(range(len(now)), pa.int64()))
        kept = places.join(taken.select(key).cast(now.select(key).schema), key, join_type="left anti")
        left = now.take(kept[PLACE].combine_chunks().sort())
        self._write(table, pa.concat_tables([left, put.select(columns).cast(left.schema)]), "overwrite", read)

    def commit(self, name: str, our: dict[str, str]) -> None:
        """Note in gold.applied how far the table comes. In: what columns of ours are called in the staged rows."""
        rows = self.staged.pop(name)
        through = rows.filter(pc.is_valid(rows[our["_through_batch_id"]]))
        of_all = [pa.array([value] * len(through)) for value in (name, max(self.least_at, datetime.now(UTC)))]
        names = ("source", "_through_batch_id", "_through_change_seq")
        columns = [of_all[0], *(through[our[n]] for n in names), of_all[1]]
        lake.add_arrow(self.lakehouse, "gold.applied", pa.Table.from_arrays(columns, APPLIED))

    def _view(self, what: str, name: str, rows: pa.Table) -> str:
        rows = rows if len(rows) else rows.schema.empty_table()  # PySpark needs a piece of each column
        return engine.view(self.spark.createDataFrame(rows), self.views, f"inlet_{what}__{name}")

    def _last(self, name: str, our: dict[str, str]) -> pa.Table:
        """The staged rows that are the last version of their key."""
        rows = self.staged[name]
        return rows.filter(pc.fill_null(rows[our["_is_last"]], False))

    def _table(self, table: str) -> deltalake.DeltaTable:
        return lake.open_table(lake.table_path(self.lakehouse, f"gold.{table}"))

    def _write(
        self, table: str, rows: pa.Table, mode: Literal["append", "overwrite"], read: deltalake.DeltaTable | None = None
    ) -> None:
        """In: the version that the rows are made of, which is the newest until they are written. Raises: TryAgain."""
        to = read or self._table(table)
        schema = pa.schema(to.schema().to_arrow())
        rows = rows.select(schema.names)
        for field, given in zip(schema, rows.schema):
            _check_members(field, given)
        try:
            with lease.committing(self.lakehouse) as of_lease:
                lease.refuse_former(to, of_lease)
                once = noting(of_lease, num_retries=0 if read else None)
                deltalake.write_deltalake(to, rows.cast(schema), mode=mode, commit_properties=once)
        except deltalake.exceptions.CommitFailedError as error:
            raise TryAgain(f"gold.{table} was written by another process", "Run again when that has ended") from error
        lake.keep_short(lake.table_path(self.lakehouse, f"gold.{table}"))


def _surveyed(applied: dict, rows: list[dict]) -> dict:
    """What is among the new rows of one source. In: how far gold has come with it."""
    places, last = [row["change_seq"] for row in rows], applied["applied_change_seq"]
    operations = {row["operation"] for row in rows}
    return {
        "source": applied["source"],
        "applied_batch_id": applied["applied_batch_id"],
        "applied_seq": last,
        "through_batch_id": max(row["batch_id"] for row in rows),
        "through_seq": max(places),
        "first_seq": min(places),
        "late_seq": min((place for place in places if last is not None and place <= last), default=None),
        "num_changes": len(rows),
        "has_partial": any(row["not_supplied"] for row in rows),
        "has_lost": any("missing" in dict(row["column_states"] or ()).values() for row in rows),
        "has_key_change": any(row["key_changed"] for row in rows),
        "has_delete": any(row["operation"] == "DELETE" and row["transaction_id"] is not None for row in rows),
        "has_wipe": not operations.isdisjoint(("TRUNCATE", "EMPTY_LOAD", "COLUMN_ADDED")),
        "has_added": "COLUMN_ADDED" in operations,
        "has_load": any(row["load_id"] is not None for row in rows),
    }


def _check_members(field: pa.Field, given: pa.Field) -> None:
    """A cast of pyarrow's makes null of a member that a struct has under another name. Raises: ValueError."""
    if pa.types.is_struct(field.type) and field.type.names != given.type.names:
        raise ValueError(f"{field.name} has {', '.join(field.type.names)}, and not {', '.join(given.type.names)}")


def _name(column: str) -> str:
    """A column's name as an identifier of the engine that reads without Spark."""
    return '"' + column.replace('"', '""') + '"'


def _keys_of(key: list[str], one: str, other: str) -> str:
    """The source and key of a change, from one image, or from the other one where that lacks a column."""
    members = (f"coalesce({one}[{plain_literal(k)}], {other}[{plain_literal(k)}])" for k in key)
    return ", ".join(["source", *(f"{member} as key_{place}" for place, member in enumerate(members))])


def _as_stored(rows: pa.Table, table: deltalake.DeltaTable) -> pa.Table:
    """Rows that were read from a table, with the types that it declares."""
    schema = pa.schema(table.schema().to_arrow())
    return rows.select(schema.names).cast(schema)
