"""Delta tables read without Spark, by delta-rs: small state tables, logs, statistics. A run with nothing to do and
`inlet status` need no JVM.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from inlet import storage
from inlet.lake import managed, snapshots

if TYPE_CHECKING:
    import deltalake
    import pyarrow as pa


def newest(lakehouse: str, table: str) -> snapshots.Snapshot | None:
    """The newest version of a table; None while it does not exist. Read without Spark."""
    place = table_path(lakehouse, table)
    return managed.newest(place) if storage.is_managed(place) else snapshots.newest(place)


def existing(lakehouse: str, table: str) -> snapshots.Snapshot:
    """The newest version of a table that exists."""
    import deltalake

    if (snapshot := newest(lakehouse, table)) is None:
        raise deltalake.exceptions.TableNotFoundError(table_path(lakehouse, table))
    return snapshot


def _opened(lakehouse: str, table: str, version: int | None) -> "deltalake.DeltaTable | managed.Table":
    """A version of a table."""
    place = table_path(lakehouse, table)
    return managed.Table(place, version) if storage.is_managed(place) else snapshots.open_table(place, version)


def exists(lakehouse: str, table: str) -> bool:
    """Is the table there? Found without Spark."""
    import deltalake

    if not storage.is_local(lakehouse):  # delta-rs would hold the interpreter until the store answers
        return newest(lakehouse, table) is not None
    return deltalake.DeltaTable.is_deltatable(table_path(lakehouse, table))


def table_id(lakehouse: str, table: str) -> str:
    """What tells a table from every other that was ever made, also of its name; "" while it does not exist."""
    snapshot = newest(lakehouse, table)
    return str(snapshot.table.metadata().id) if snapshot else ""


def peek(lakehouse: str, table: str, columns: list[str], rest: str = "", version: int | None = None) -> list[dict]:
    """Columns of a small state table as a list of dicts, read without Spark; [] while the table does not exist. A
    column that the table has not got yet is null. In: what follows `from` in SQL: an order, a limit; the Delta version,
    none for the newest."""
    snapshot = _version(lakehouse, table, version)
    if snapshot is None:
        return []
    existing = snapshot.once("columns", lambda: {field.name for field in snapshot.table.schema().fields})
    asked = ", ".join(
        name if name.strip('"') in existing or not name.isidentifier() else f"null as {name}" for name in columns
    )
    return snapshots.rows_of(snapshot.query(f"select {asked} from rows {rest}"))


def stream(lakehouse: str, table: str, columns: str, rest: str, num_rows: int) -> "Iterator[pa.RecordBatch]":
    """Columns of many rows of a table, in Arrow batches, in no order. Read without Spark. In: SQL for the columns, and
    what follows `from`; the rows of a batch."""
    snapshot = newest(lakehouse, table)
    return snapshot.stream(f"select {columns} from rows {rest}", num_rows) if snapshot else iter(())


def lacking(lakehouse: str, table: str, other: str, columns: list[str]) -> list[dict]:
    """Columns of the rows of a table, each once, that another table has no row with."""
    asked = ", ".join(columns)
    if not (exists(lakehouse, table) and exists(lakehouse, other)):
        return peek(lakehouse, table, [f"distinct {asked}"])
    return ask(lakehouse, f"select {asked} from rows except select {asked} from others", rows=table, others=other)


def ask(lakehouse: str, query: str, **tables: str) -> list[dict]:
    """The rows of a query without Spark, asked once of the newest versions of its tables. In: the tables, which exist,
    by their names in it."""
    by_name = {name: existing(lakehouse, table) for name, table in tables.items()}
    found = managed.query(query, by_name) if storage.is_managed(lakehouse) else snapshots.query(query, by_name)
    return snapshots.rows_of(found)


def column_names(lakehouse: str, table: str) -> set[str]:
    """The columns of a table, read without Spark."""
    snapshot = newest(lakehouse, table)
    return {field.name for field in snapshot.table.schema().fields} if snapshot else set()


def may_hold(lakehouse: str, table: str, column: str, *values: int) -> bool:
    """True if the statistics of a table's files allow rows with one of these numbers in a column. Read without
    Spark."""
    return bytes_that_may_hold(lakehouse, table, column, *values) > 0


def bytes_that_may_hold(lakehouse: str, table: str, column: str, *values: int) -> int:
    """Bytes of the files whose statistics allow such rows. Read without Spark."""
    snapshot = newest(lakehouse, table)
    if snapshot is None:
        return 0
    files = _files(snapshot)
    sizes = files.column("size_bytes").to_pylist()
    if not {f"min.{column}", f"max.{column}"} <= set(files.column_names):
        return sum(sizes)
    ranges = zip(files.column(f"min.{column}").to_pylist(), files.column(f"max.{column}").to_pylist(), sizes)
    return sum(
        size for low, high, size in ranges if low is None or high is None or any(low <= v <= high for v in values)
    )


def size(lakehouse: str, table: str) -> tuple[int, int]:
    """How many data files a table has, and their bytes, from its log alone; nothing while it does not exist."""
    snapshot = newest(lakehouse, table)
    sizes = _files(snapshot).column("size_bytes").to_pylist() if snapshot else []
    return len(sizes), sum(sizes)


def num_rows(lakehouse: str, table: str) -> int | None:
    """Rows of a table's data files, from its log alone; 0 while it does not exist, None if a file has no statistics."""
    snapshot = newest(lakehouse, table)
    numbers = _files(snapshot).column("num_records").to_pylist() if snapshot else []
    return None if None in numbers else sum(numbers)


def size_bytes(lakehouse: str, table: str) -> int:
    """Bytes of a table's data files, from its log alone; 0 while it does not exist."""
    return size(lakehouse, table)[1]


def describe(lakehouse: str, table: str, version: int | None = None) -> tuple[dict[str, str], dict[str, str]] | None:
    """A table's columns, with their types as Spark SQL says them, and its properties. A struct's fields have their
    path, `before.order_id`. None while the table does not exist. In: the Delta version; none for the newest."""
    import json

    snapshot = _version(lakehouse, table, version)
    if snapshot is None:
        return None
    return snapshot.once(
        "description",
        lambda: (
            dict(_columns(json.loads(snapshot.table.schema().to_json())["fields"])),
            snapshot.table.metadata().configuration,
        ),
    )


def table_path(lakehouse: str, table: str) -> str:
    """Where a table lies. In: its name, as in gold.applied."""
    return f"{lakehouse}/{table.replace('.', '/')}"


def _version(lakehouse: str, table: str, version: int | None) -> snapshots.Snapshot | None:
    """A version of a table, none for the newest; None while the table does not exist."""

    snapshot = newest(lakehouse, table)
    if snapshot is None or version in (None, snapshot.version):
        return snapshot
    opened = _opened(lakehouse, table, version)
    return managed.Snapshot(opened) if isinstance(opened, managed.Table) else snapshots.Snapshot(opened, None)


def _files(snapshot: snapshots.Snapshot):
    """The data files of a table, with their statistics."""
    return snapshot.once("files", lambda: snapshots.as_arrow(snapshot.table.get_add_actions(flatten=True)))


def _columns(fields: list[dict], path: str = ""):
    names = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
    for field in fields:
        type_ = field["type"]
        if isinstance(type_, str):
            yield path + field["name"], names.get(type_, type_)
        elif type_["type"] == "struct":
            yield from _columns(type_["fields"], f"{path}{field['name']}.")
        else:
            yield path + field["name"], type_["type"]


def version(lakehouse: str, table: str) -> int:
    """The newest Delta version of a table."""
    return existing(lakehouse, table).version


def transaction_version(lakehouse: str, table: str, app_id: str) -> int:
    """The version of the last append to a table under an app_id; 0 where there is none."""
    snapshot = newest(lakehouse, table)
    return snapshot and snapshot.table.transaction_version(app_id) or 0


def has_version(lakehouse: str, table: str, number: int) -> bool:
    """Can a Delta version of a table still be read? Its log forgets versions after a month."""
    import deltalake

    place = table_path(lakehouse, table)
    if storage.is_managed(place):
        return managed.has_version(place, number)
    try:
        snapshots.open_table(place, version=number)
    except deltalake.exceptions.DeltaError:
        return False
    return True


def has_files(lakehouse: str, table: str, number: int) -> bool:
    """Are all files of a Delta version of a table still there? VACUUM removes those of former versions, and the log
    does not say so."""
    import deltalake

    place = table_path(lakehouse, table)
    if storage.is_managed(place):  # its catalog keeps them for as long as its retention says
        return True
    delta_table = snapshots.open_table(place, version=number)
    store, path = storage.open_store(place)
    existing = {file.rpartition("/")[2] for file in store.find(path)}  # they are named by random ids
    if not {unquote(file.rpartition("/")[2]) for file in delta_table.file_uris()} <= existing:
        return False
    try:
        for _ in delta_table.deletion_vectors():
            pass
    except (OSError, deltalake.exceptions.DeltaError):
        return False
    return True


def operations(lakehouse: str, table: str, num: int, version: int | None = None) -> list[str]:
    """What the last commits up to a version did, newest first: WRITE, which appends, OVERWRITE, MERGE, ..."""
    commits = _opened(lakehouse, table, version).history(num) if num else []
    modes = [commit.get("operationParameters", {}).get("mode") for commit in commits]
    return ["OVERWRITE" if mode == "Overwrite" else commit["operation"] for commit, mode in zip(commits, modes)]
