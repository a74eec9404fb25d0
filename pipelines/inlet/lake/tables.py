"""The Delta tables of one lakehouse: created from their declarations, appended to exactly once.

Layout: <lakehouse>/<database>/<table>; databases bronze, silver, gold, checks, public.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from inlet import change, layout, storage, store_errors, unit
from inlet.errors import ConfigError, EnvironmentLacks, TryAgain
from inlet.lake import engine, entries, lease, managed, place, reads, snapshots
from inlet.lake.compaction import SMALL_TABLE, keep_short, unwritable
from inlet.lake.delta_log import written_at
from inlet.sql import literal

if TYPE_CHECKING:
    import deltalake
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

VECTORS = "delta.enableDeletionVectors"
# Planning a scan of a table with deletion vectors asks Delta for its files once more, at every stage: 50 ms each time
PROPERTIES: dict[str, str | None] = {VECTORS: "false"}  # of a declared table while it is small
NO_RIGHT = re.compile(r"permission|denied|forbidden|unauthorized|read-only|\b40[13]\b", re.IGNORECASE)
DATABASES = layout.SCHEMAS
STATISTICS = {  # columns with file statistics, where all columns would only cost (facts: a fifth of an append)
    "silver.changes": ",".join(change.HEADER_COLUMNS),
    "bronze.messages": "source,topic,partition,offset,timestamp,batch_id",
    "bronze.blocks": "source,path,file_offset,batch_id",
}


def create(spark: "SparkSession", lakehouse: str) -> None:
    """Create what is not there yet of the databases and the bronze and silver tables, and of their columns."""
    existing = {row.namespace.casefold() for row in spark.sql("show databases").collect()}
    for database in DATABASES:
        at = "" if storage.is_managed(lakehouse) else f" location {literal(f'{lakehouse}/{database}')}"
        if layout.of(database).casefold() not in existing:
            spark.sql(f"create database if not exists {database}{at}")
        elif at:
            _check_location(spark, lakehouse, database)
    declared, are_ours = unit.TABLES | change.TABLES, entries.are_ours(spark)
    for database in ("silver", "bronze"):  # the entries are made like one of silver
        tables = {row.tableName for row in spark.sql(f"show tables in {database}").collect()}
        of_database = [name for name in declared if name.startswith(database + ".")]
        for name in sorted(of_database, key=lambda name: name != entries.PATTERN):
            columns = declared[name]
            if name.split(".")[1] in tables:
                stored = reads.column_names(lakehouse, name)
                if new := [c for c in columns if c.name not in stored]:
                    spark.sql(f"alter table {name} add columns ({change.ddl(new)})")
            elif are_ours and name != entries.PATTERN:
                entries.create_table(spark, lakehouse, name, change.ddl(columns), properties(name))
            elif reads.exists(lakehouse, name):  # by another machine, or `add_rows` in a lakehouse of an earlier Inlet
                spark.sql(f"create table {name} using delta location {literal(reads.table_path(lakehouse, name))}")
            else:
                spark.sql(create_sql(name, columns))


def _check_location(spark: "SparkSession", lakehouse: str, database: str) -> None:
    """Raises: ConfigError where a catalog that somebody else keeps has a database of that name in another place."""
    if not engine.is_given():
        return
    about = {row.info_name: row.info_value for row in spark.sql(f"describe database {database}").collect()}
    at, own = (storage.as_path(place).rstrip("/") for place in (about["Location"], f"{lakehouse}/{database}"))
    if at != own:
        raise ConfigError(
            f"The catalog has a database {database} at {at}, and this lakehouse's is at {own}",
            "Take a catalog of its own for each lakehouse, or another `lakehouse` in inlet.yml",
        )


def all_tables(lakehouse: str, known: Iterable[str] = ()) -> list[str]:
    """The Delta tables of a lakehouse, as its folders, its store or the catalog that manages them has them. In: names
    that are left out."""
    if storage.is_managed(lakehouse):
        spark = managed.spark()
        named = [(d, row.tableName) for d in DATABASES[:-1] for row in spark.sql(f"show tables in {d}").collect()]
        return sorted(name for name in map(".".join, named) if name not in known)
    store, root = storage.open_store(lakehouse)
    store.invalidate_cache()  # of listings
    folders = [f"{root}/{database}" for database in DATABASES]
    places = [place for folder in folders if store.isdir(folder) for place in store.ls(folder, detail=False)]
    by_name = {".".join(place.split("/")[-2:]): place for place in places}
    names = [name for name in by_name if name not in known and not name.startswith(engine.KEPT)]
    return sorted(name for name in names if store.isdir(f"{by_name[name]}/_delta_log"))


def enter_all(spark: "SparkSession", lakehouse: str) -> None:
    """Give the tables that another machine has made in a store their entries in the catalog of this one."""
    databases = [d for d in DATABASES if d != "public"]
    known = {f"{d}.{row.tableName}" for d in databases for row in spark.sql(f"show tables in {d}").collect()}
    for name in all_tables(lakehouse, known):
        entries.enter(spark, lakehouse, name)


def are_complete(lakehouse: str) -> bool:
    """True if all declared tables exist with all their columns. Read without Spark; not what the catalog has."""
    declared = (unit.TABLES | change.TABLES).items()
    return all(reads.column_names(lakehouse, name) >= {c.name for c in columns} for name, columns in declared)


def create_sql(name: str, columns) -> str:
    """The CREATE TABLE of a declared table."""
    texts = ", ".join(f"{key} = {literal(value or '')}" for key, value in properties(name).items())
    return f"create table if not exists {name} (\n  {change.ddl(columns)}\n) using delta tblproperties ({texts})"


def properties(name: str) -> dict[str, str | None]:
    """The properties of a declared table."""
    return PROPERTIES | ({"delta.dataSkippingStatsColumns": STATISTICS[name]} if name in STATISTICS else {})


def give_vectors(spark: "SparkSession", lakehouse: str, name: str) -> None:
    """Turn deletion vectors on for a table that has grown large, whose rows Spark changes: to rewrite its files would
    cost more than the vectors cost the planning of a scan."""
    if reads.size_bytes(lakehouse, name) > SMALL_TABLE:
        described = reads.describe(lakehouse, name)
        if described and described[1].get(VECTORS) == "false":
            spark.sql(f"alter table {name} set tblproperties ({VECTORS} = true)")


def add_rows(
    lakehouse: str,
    name: str,
    rows: list[dict],
    columns=None,
    app_id: str = "",
    version: int = 0,
    notes: dict[str, int] | None = None,
) -> None:
    """Append a few rows to a table of state without Spark, in one commit: 5 ms, where Spark takes half a second. Under
    an app_id once, as `append`. The table is created where it does not exist. A column that a row lacks is null.

    In: the columns of a table that unit.py and change.py do not declare; versions of further app_ids that the commit
    notes. Raises: EnvironmentLacks where it cannot be
    written, TryAgain where another process has written it meanwhile, ConfigError where the lakehouse is a copy.
    """
    import pyarrow as pa

    place.check(lakehouse)
    columns = columns or (unit.TABLES | change.TABLES)[name]
    types = arrow_schema(", ".join(f"{c.name} {c.type}" for c in columns))
    commented = pa.schema([f.with_metadata({"comment": c.doc}) for f, c in zip(types, columns)])
    add_arrow(lakehouse, name, pa.Table.from_pylist(rows, commented), app_id, version, notes)


def add_arrow(
    lakehouse: str,
    name: str,
    rows: "pyarrow.Table",
    app_id: str = "",
    version: int = 0,
    notes: dict[str, int] | None = None,
) -> None:
    """The same of an Arrow table."""
    import deltalake

    path = reads.table_path(lakehouse, name)
    if storage.is_managed(lakehouse):
        with lease.committing(lakehouse):
            return managed.append(path, rows, _once(app_id, version))
    with as_ours(lakehouse, name) as of_lease:
        once = noting(({app_id: version} if app_id else {}) | (notes or {}) | of_lease)
        table = snapshots.open_table(path) if reads.exists(lakehouse, name) else None
        if table:
            lease.refuse_former(table, of_lease)
        if table and app_id:
            last = table.transaction_version(app_id)
            if last is not None and last >= version:
                return
        if table:
            rows = _with_columns_of(table, rows)
        options = None if table else storage.delta_options(path)
        deltalake.write_deltalake(
            table or path,
            rows,
            mode="append",
            configuration=PROPERTIES,
            commit_properties=once,
            storage_options=options,
        )
    keep_short(path)


def _with_columns_of(table: "deltalake.DeltaTable", rows: "pyarrow.Table") -> "pyarrow.Table":
    """Rows with nulls in the columns that a person has added to a table."""
    import deltalake
    import pyarrow as pa

    fields = table.schema().fields
    if not (added := [field for field in fields if field.name not in rows.column_names]):
        return rows
    for field in pa.schema(deltalake.Schema(added).to_arrow()):
        rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    own = [name for name in rows.column_names if name not in {field.name for field in fields}]
    return rows.select([*(field.name for field in fields), *own])


def takes_files(lakehouse: str, name: str) -> bool:
    """True if `add_files` can commit to a table: one that delta-rs reaches, with no feature that asks more of a
    writer."""
    snapshot = reads.newest(lakehouse, name) if storage.is_reached(lakehouse) else None
    return bool(snapshot) and not unwritable(snapshot.table) and not snapshot.table.metadata().partition_columns


def add_files(lakehouse: str, name: str, statistics: dict[str, str]) -> None:
    """Append Parquet files to a table, in one commit. In: name of each file in the table's folder -> its statistics, as
    Delta's JSON. Raises: as `add_rows`."""
    from deltalake.transaction import AddAction, RemoveAction

    place.check(lakehouse)
    path = reads.table_path(lakehouse, name)
    with as_ours(lakehouse, name) as of_lease:
        table = snapshots.open_table(path)
        lease.refuse_former(table, of_lease)
        actions: list[AddAction | RemoveAction] = []
        store, root = storage.open_store(path)
        for file in statistics:
            about = store.info(f"{root}/{file}")
            written = round(written_at(about) * 1000)
            actions.append(AddAction(file, about["size"], {}, written, True, statistics[file]))
        table.create_write_transaction(actions, "append", table.schema(), commit_properties=noting(of_lease))
    keep_short(path)


def noting(ids: dict[str, int], num_retries: int | None = None) -> "deltalake.CommitProperties":
    """A commit that notes versions of app_ids."""
    import deltalake

    noted = [deltalake.Transaction(*one) for one in ids.items()]
    return deltalake.CommitProperties(app_transactions=noted, max_commit_retries=num_retries)


@contextmanager
def as_ours(lakehouse: str, name: str) -> Iterator[dict[str, int]]:
    """Errors of delta-rs that writes a table, as ours. Out: as `lease.committing`."""
    import deltalake

    try:
        with lease.committing(lakehouse) as of_lease:
            yield of_lease
    except deltalake.exceptions.CommitFailedError as error:
        raise TryAgain(f"{name} was written by another process: {error}", "Run again when that has ended") from error
    except deltalake.exceptions.SchemaMismatchError as error:
        raise EnvironmentLacks(
            f"{name} of {lakehouse} has other columns than this Inlet writes: {error}",
            "Where it lacks columns, `inlet run` adds those that an earlier Inlet did not have; undo other changes",
        ) from error
    except (OSError, deltalake.exceptions.DeltaError) as error:
        if not storage.is_local(lakehouse) and (of_store := store_errors.worded(error)):
            raise of_store from error
        remedy = "Give this user the right to write it" if NO_RIGHT.search(str(error)) else "See to what the error says"
        raise EnvironmentLacks(f"{name} of {lakehouse} cannot be written: {error}", remedy) from error


def merge_rows(lakehouse: str, name: str, key: Sequence[str], rows: list[dict], gone: list[dict]) -> bool:
    """Bring rows of a declared table up to date without Spark, in one commit. In: its key; rows that replace those of
    their keys, or are new; rows that go. Out: False where Spark has to do it, because the table is large, or has
    deletion vectors or other features; then nothing was written. Raises: as `add_rows`."""
    import pyarrow as pa

    place.check(lakehouse)
    if storage.is_managed(lakehouse):
        return False
    path, columns = reads.table_path(lakehouse, name), (unit.TABLES | change.TABLES)[name]
    table = snapshots.open_table(path)
    if reads.size_bytes(lakehouse, name) > SMALL_TABLE or unwritable(table) or any(table.deletion_vectors()):
        return False
    types = arrow_schema(", ".join(f"{c.name} {c.type}" for c in columns)).append(pa.field("is_gone", pa.bool_()))
    given = [row | {"is_gone": False} for row in rows] + [row | {"is_gone": True} for row in gone]
    values = {c.name: f"n.{c.name}" for c in columns}
    same = " and ".join(f"t.{column} = n.{column}" for column in key)
    with as_ours(lakehouse, name) as of_lease:
        lease.refuse_former(table, of_lease)
        once = noting(of_lease, num_retries=0)
        merge = table.merge(pa.Table.from_pylist(given, types), same, "n", "t", commit_properties=once)
        merge = merge.when_matched_delete("n.is_gone").when_matched_update(values)
        merge.when_not_matched_insert(values, "not n.is_gone").execute()
    keep_short(path)
    return True


def rows(spark: "SparkSession", lakehouse: str, name: str) -> "DataFrame":
    """The rows of a table, in a session that need not know the catalog of the lakehouse."""
    if storage.is_managed(lakehouse):
        return spark.table(name)
    return spark.read.format("delta").load(reads.table_path(lakehouse, name))


def append(rows: "DataFrame", table: str, app_id: str = "", version: int = 0) -> None:
    """Append a DataFrame; under an app_id once: a second append under the same (app_id, version) is skipped by Delta
    itself.
    """
    rows.write.format("delta").mode("append").options(**_once(app_id, version)).saveAsTable(layout.of(table))
    managed.forget(table)


def _once(app_id: str, version: int) -> dict[str, Any]:
    """Options of Spark's writer, under which an append is made once."""
    return {"txnAppId": app_id, "txnVersion": version} if app_id else {}


def arrow_schema(ddl: str):
    """Arrow schema of a column list, for workers, where Spark's own parser is out of reach."""
    import pyarrow as pa

    return pa.schema([(name, _arrow_types()[type_]) for name, type_ in (column.split() for column in ddl.split(", "))])


def ddl_of(schema) -> str:
    """The column list of an Arrow schema; the inverse of `arrow_schema`."""
    names = {type_: name for name, type_ in _arrow_types().items()}
    return ", ".join(f"{field.name} {names[field.type]}" for field in schema)


@cache
def _arrow_types() -> dict:
    import pyarrow as pa

    variant = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
    return {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "smallint": pa.int16(),
        "tinyint": pa.int8(),
        "boolean": pa.bool_(),
        "double": pa.float64(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "variant": variant,
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "array<string>": pa.list_(pa.string()),
        "array<bigint>": pa.list_(pa.int64()),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    }
