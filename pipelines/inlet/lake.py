"""The Delta tables of one lakehouse: created from their declarations, appended to exactly once, peeked at without Spark.

Layout: <lakehouse>/<database>/<table>; databases bronze, silver, gold, checks, public. `peek` uses delta-rs, so that a run with
nothing to do and `inlet status` need no JVM.
"""

import fcntl
from contextlib import ExitStack, contextmanager
from pathlib import Path

from inlet import change, unit
from inlet.errors import EnvironmentLacks
from inlet.sql import literal

# Planning a scan of a table with deletion vectors asks Delta for its files once more, at every stage: 50 ms each time
MERGED = {"silver.transactions"}
DATABASES = ("bronze", "silver", "gold", "checks", "public")
STATISTICS = {                 # columns with file statistics, where all columns would only cost (facts: a fifth of an append)
    "silver.changes": ",".join(change.HEADER_COLUMNS),
    "bronze.messages": "source,topic,partition,offset,timestamp,batch_id",
    "bronze.blocks": "source,path,file_offset,batch_id",
}


@contextmanager
def writing(lakehouse: str):
    """Holds the lakehouse for one run, from its look for work to its last commit: what one has planned, another would land again.
    Out: hold(spark), to be called once there is a session, for its JVM may outlive this process by a moment. A folder is held until both
    have ended, however they do; for a URL that is the scheduler's to see to.

    Raises: EnvironmentLacks where another run holds it, or where it cannot be written.
    """
    if "://" in lakehouse:
        yield lambda spark: None
        return
    path = Path(lakehouse) / "_writing"
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(path.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)                   # the kind that a JVM takes
            fcntl.lockf(file, fcntl.LOCK_UN)
        except BlockingIOError as error:
            raise EnvironmentLacks(f"Another run writes to {lakehouse}", "Wait for it to end and try again") from error
        except OSError as error:
            raise EnvironmentLacks(f"{path} cannot be written: {error.strerror}", "Give this user the right to write it") from error

        def hold(spark) -> None:
            in_jvm = spark._jvm.java.io.RandomAccessFile(str(path), "rw")
            held.callback(in_jvm.close)
            in_jvm.getChannel().tryLock()

        yield hold


def create(spark, lakehouse: str) -> None:
    """Create what is not there yet of the databases and the bronze and silver tables."""
    there = {row.namespace for row in spark.sql("show databases").collect()}
    for database in DATABASES:
        if database not in there:
            spark.sql(f"create database if not exists {database} location {literal(f'{lakehouse}/{database}')}")
    declared = unit.TABLES | change.TABLES
    for database in ("bronze", "silver"):
        tables = {row.tableName for row in spark.sql(f"show tables in {database}").collect()}
        for name, columns in declared.items():
            if name.startswith(database + ".") and name.split(".")[1] not in tables:
                spark.sql(create_sql(name, columns))


def create_sql(name: str, columns) -> str:
    """The CREATE TABLE of a declared table."""
    properties = f"delta.enableDeletionVectors = {str(name in MERGED).lower()}"
    if name in STATISTICS:
        properties += f", delta.dataSkippingStatsColumns = '{STATISTICS[name]}'"
    return f"create table if not exists {name} (\n  {change.ddl(columns)}\n) using delta tblproperties ({properties})"


def append(rows, table: str, app_id: str = "", version: int = 0) -> None:
    """Append a DataFrame; under an app_id once: a second append under the same (app_id, version) is skipped by Delta itself."""
    once = {"txnAppId": app_id, "txnVersion": version} if app_id else {}
    rows.write.format("delta").mode("append").options(**once).saveAsTable(table)


def exists(lakehouse: str, table: str) -> bool:
    """Is the table there? Told without Spark."""
    import deltalake

    return deltalake.DeltaTable.is_deltatable(f"{lakehouse}/{table.replace('.', '/')}")


def peek(lakehouse: str, table: str, columns: list[str], rest: str = "") -> list[dict]:
    """Columns of a small state table as a list of dicts, read without Spark; [] while the table does not exist. In: what follows `from`
    in SQL: an order, a limit."""
    import deltalake
    import pyarrow as pa

    if not exists(lakehouse, table):
        return []
    rows = deltalake.QueryBuilder().register("rows", deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}"))
    return pa.table(rows.execute(f"select {', '.join(columns)} from rows {rest}").read_all()).to_pylist()


def may_hold(lakehouse: str, table: str, column: str, value: int) -> bool:
    """Can a table hold rows with this number in a column? Told by the statistics of its files, without Spark."""
    import deltalake
    import pyarrow as pa

    if not exists(lakehouse, table):
        return False
    files = pa.table(deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").get_add_actions(flatten=True))
    if not {f"min.{column}", f"max.{column}"} <= set(files.column_names):
        return files.num_rows > 0
    return any(low is None or high is None or low <= value <= high
               for low, high in zip(files.column(f"min.{column}").to_pylist(), files.column(f"max.{column}").to_pylist()))


def size_bytes(lakehouse: str, table: str) -> int:
    """Bytes of a table's data files, from its log alone; 0 while it does not exist."""
    import deltalake

    if not exists(lakehouse, table):
        return 0
    rows = deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").get_add_actions(flatten=True)
    return sum(rows["size_bytes"].to_pylist())


def describe(lakehouse: str, table: str, version: int | None = None) -> tuple[dict[str, str], dict[str, str]] | None:
    """A table's columns, with their types as Spark SQL says them, and its properties. A struct's fields have their path,
    `before.order_id`. None while the table does not exist. In: the Delta version; none for the newest."""
    import json

    import deltalake

    if not exists(lakehouse, table):
        return None
    found = deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}", version=version)
    return dict(_columns(json.loads(found.schema().to_json())["fields"])), found.metadata().configuration


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


def has_version(lakehouse: str, table: str, number: int) -> bool:
    """Can a Delta version of a table still be read? Its log forgets versions after a month."""
    import deltalake

    try:
        deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}", version=number)
    except deltalake.exceptions.DeltaError:
        return False
    return True


def operations(lakehouse: str, table: str, num: int) -> list[str]:
    """What the last commits of a table did, newest first: WRITE, MERGE, ..."""
    import deltalake

    return [commit["operation"] for commit in deltalake.DeltaTable(f"{lakehouse}/{table.replace('.', '/')}").history(num)] if num else []


def arrow_schema(ddl: str):
    """Arrow schema of a column list with simple types, for workers, where Spark's own parser is out of reach."""
    import pyarrow as pa

    types = {"string": pa.string(), "bigint": pa.int64(), "int": pa.int32(), "binary": pa.binary(), "boolean": pa.bool_()}
    return pa.schema([(name, types[type_]) for name, type_ in (column.split() for column in ddl.split(", "))])
