"""Delta tables read without Spark, by delta-rs: small state tables, logs, statistics. A run with nothing to do and
`inlet status` need no JVM.
"""

from urllib.parse import unquote


def exists(lakehouse: str, table: str) -> bool:
    """Is the table there? Found without Spark."""
    import deltalake

    return deltalake.DeltaTable.is_deltatable(f"{lakehouse}/{table.replace('.', '/')}")


def query_builder():
    """A builder of queries over Delta tables. Files of earlier releases hold timestamps as INT96, and it reads them as
    microseconds: nanoseconds, its default, overflow outside the years 1677 to 2262 and give another time.
    """
    import deltalake

    builder = deltalake.QueryBuilder()
    builder.execute("set datafusion.execution.parquet.coerce_int96 = 'us'")
    return builder


def peek(lakehouse: str, table: str, columns: list[str], rest: str = "", version: int | None = None) -> list[dict]:
    """Columns of a small state table as a list of dicts, read without Spark; [] while the table does not exist. A
    column that the table has not got yet is null. In: what follows `from` in SQL: an order, a limit; the Delta version,
    none for the newest."""
    import deltalake
    import pyarrow as pa

    if not exists(lakehouse, table):
        return []
    delta_table = deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}", version=version)
    existing = {field.name for field in delta_table.schema().fields}
    asked = ", ".join(
        name if name.strip('"') in existing or not name.isidentifier() else f"null as {name}" for name in columns
    )
    rows = query_builder().register("rows", delta_table)
    return pa.table(rows.execute(f"select {asked} from rows {rest}").read_all()).to_pylist()


def column_names(lakehouse: str, table: str) -> set[str]:
    """The columns of a table, read without Spark."""
    import deltalake

    return {field.name for field in deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").schema().fields}


def may_hold(lakehouse: str, table: str, column: str, *values: int) -> bool:
    """Can a table hold rows with one of these numbers in a column? Told by the statistics of its files, without
    Spark."""
    import deltalake
    import pyarrow as pa

    if not exists(lakehouse, table):
        return False
    files = pa.table(deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").get_add_actions(flatten=True))
    if not {f"min.{column}", f"max.{column}"} <= set(files.column_names):
        return files.num_rows > 0
    return any(
        low is None or high is None or any(low <= value <= high for value in values)
        for low, high in zip(files.column(f"min.{column}").to_pylist(), files.column(f"max.{column}").to_pylist())
    )


def size(lakehouse: str, table: str) -> tuple[int, int]:
    """How many data files a table has, and their bytes, from its log alone; nothing while it does not exist."""
    import deltalake

    if not exists(lakehouse, table):
        return 0, 0
    rows = deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").get_add_actions(flatten=True)
    sizes = rows["size_bytes"].to_pylist()
    return len(sizes), sum(sizes)


def size_bytes(lakehouse: str, table: str) -> int:
    """Bytes of a table's data files, from its log alone; 0 while it does not exist."""
    return size(lakehouse, table)[1]


def describe(lakehouse: str, table: str, version: int | None = None) -> tuple[dict[str, str], dict[str, str]] | None:
    """A table's columns, with their types as Spark SQL says them, and its properties. A struct's fields have their
    path, `before.order_id`. None while the table does not exist. In: the Delta version; none for the newest."""
    import json

    import deltalake

    if not exists(lakehouse, table):
        return None
    delta_table = deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}", version=version)
    return dict(_columns(json.loads(delta_table.schema().to_json())["fields"])), delta_table.metadata().configuration


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
    import deltalake

    return deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").version()


def transaction_version(lakehouse: str, table: str, app_id: str) -> int:
    """The version of the last append to a table under an app_id; 0 where there is none."""
    import deltalake

    if not exists(lakehouse, table):
        return 0
    return deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").transaction_version(app_id) or 0


def has_version(lakehouse: str, table: str, number: int) -> bool:
    """Can a Delta version of a table still be read? Its log forgets versions after a month."""
    import deltalake

    try:
        deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}", version=number)
    except deltalake.exceptions.DeltaError:
        return False
    return True


def has_files(lakehouse: str, table: str, number: int) -> bool:
    """Are all files of a Delta version of a table still there? VACUUM removes those of former versions, and the log
    does not say so."""
    import deltalake
    import fsspec

    place = f"{lakehouse}/{table.replace('.', '/')}"
    delta_table = deltalake.DeltaTable(place, version=number)
    store, path = fsspec.url_to_fs(place)
    existing = {file.rpartition("/")[2] for file in store.find(path)}  # they are named by random ids
    if not {unquote(file.rpartition("/")[2]) for file in delta_table.file_uris()} <= existing:
        return False
    try:
        for _ in delta_table.deletion_vectors():
            pass
    except (OSError, deltalake.exceptions.DeltaError):
        return False
    return True


def operations(lakehouse: str, table: str, num: int) -> list[str]:
    """What the last commits of a table did, newest first: WRITE, MERGE, ..."""
    import deltalake

    return (
        [commit["operation"] for commit in deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").history(num)]
        if num
        else []
    )
