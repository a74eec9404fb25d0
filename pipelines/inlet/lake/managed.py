"""Tables that their catalog alone reaches, by name: those that Unity Catalog manages. They are read and written through
Spark, by what looks like delta-rs's tables and their snapshots.

A table of state is copied to this process when it is asked, once a version, and its queries are answered as those of
any other lakehouse are. What grows with the data is asked of Spark. Each look at a table is a statement, so one is
looked at again when this process has written it or begins to hold the lakehouse, and else after a minute.
"""

import functools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from inlet import layout, storage
from inlet.lake import engine, snapshots
from inlet.sql import in_spark, literal
from inlet.sql import name as quoted

if TYPE_CHECKING:
    import deltalake
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

OF_DATA = (
    *("bronze.blocks", "bronze.messages", "silver.changes"),
    *("silver.rejects", "silver.control_events", "silver.transactions"),
)  # and those of gold but for
OF_GOLD = ("gold.applied", "gold.published")
LOOK_SECONDS = 60.0  # after which a table is looked at again that this process has not written
NO_VERSION = "DELTA_(CANNOT_FIND_VERSION|VERSION_NOT_FOUND|LOG_FILE_NOT_FOUND|TRUNCATED_TRANSACTION_LOG)"
NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|DELTA_MISSING_DELTA_TABLE"
start: Any = None  # a session: lake.spark.session, which says so itself
NEVER = -LOOK_SECONDS, None
_lock = Lock()
_num_writes: Counter[str] = Counter()  # by the name of the table: after which it is looked at again
_looked: dict[str, tuple[float, "Snapshot | None"]] = {}  # by the name of the table


class Table:
    """What Inlet asks of a `deltalake.DeltaTable`. In: the address of a table; none for its newest version."""

    def __init__(self, place: str, version: int | None = None):
        self.table_uri, self.name = place, name_of(place)
        self.commit = self._commits(1)[0] if version is None else {"version": version}
        self._version: int = self.commit["version"]

    def version(self) -> int:
        return self._version

    def history(self, num: int) -> list[dict]:
        """The last commits up to this version, newest first. In: how many."""
        num_later = self._commits(1)[0]["version"] - self._version
        return self._commits(num_later + num)[num_later:]

    def _commits(self, num: int) -> list[dict]:
        names = ("version", "timestamp", "operation", "operationParameters")
        rows = spark().sql(f"describe history {self.name} limit {num}").select(*names).collect()
        return [row.asDict() for row in rows]

    def rows(self) -> Any:
        """Its rows, as a DataFrame."""
        return spark().sql(f"select * from {self.name} version as of {self._version}")

    @functools.cached_property
    def _schema(self) -> "deltalake.Schema":
        import deltalake

        return deltalake.Schema.from_json(self.rows().schema.json())

    def schema(self) -> "deltalake.Schema":
        return self._schema

    @functools.cached_property
    def _detail(self) -> Any:
        return spark().sql(f"describe detail {self.name}").collect()[0]

    def metadata(self) -> Any:
        return SimpleNamespace(id=self._detail.id, configuration=dict(self._detail.properties), partition_columns=[])

    def get_add_actions(self, flatten: bool = True) -> "pa.Table":
        """Its files, as one that has no statistics."""
        import pyarrow as pa

        sizes = [self._detail.sizeInBytes] if self._detail.numFiles else []
        return pa.table({"size_bytes": pa.array(sizes, pa.int64()), "num_records": pa.nulls(len(sizes), pa.int64())})

    def transaction_version(self, app_id: str) -> None:
        """No statement gives it. An append under an app_id is made, and skipped by Delta where it was made before."""


class Copy:
    """Rows as a table on this machine, for as long as somebody holds it."""

    def __init__(self, rows: "pa.Table"):
        import deltalake

        self._folder = tempfile.TemporaryDirectory(prefix="inlet-")
        deltalake.write_deltalake(self._folder.name, rows)
        self.table = deltalake.DeltaTable(self._folder.name)


class Snapshot(snapshots.Snapshot):
    """One version of such a table."""

    def __init__(self, table: Table):
        self._table = self._own = table  # type: ignore[assignment]
        self.mark, self.version, self.key = None, table.version(), (table.table_uri, 0, table.version())
        self._answers, self._num_bytes, self.commit = {}, 0, table.commit
        self.is_large = table.name in OF_DATA or table.name.startswith("gold.") and table.name not in OF_GOLD

    @property
    def place(self) -> tuple[str, int]:
        return self._own.name, self.version

    @property
    def data(self) -> "deltalake.DeltaTable":
        """A copy of its rows."""
        return self.once("copy", lambda: Copy(_arrow(self._own.rows()))).table

    def query(self, sql: str) -> "pa.Table":
        return self.once(sql, lambda: through_spark(sql, {"rows": self.place})) if self.is_large else super().query(sql)

    def stream(self, sql: str, num_rows: int) -> "Iterator[pa.RecordBatch]":
        yield from through_spark(sql, {"rows": self.place}).to_batches(num_rows)


def query(sql: str, tables: dict[str, snapshots.Snapshot]) -> "pa.Table":
    """As snapshots.query."""
    own = {name: one for name, one in tables.items() if isinstance(one, Snapshot)}
    if any(one.is_large for one in own.values()):
        return through_spark(sql, {name: one.place for name, one in own.items()})
    return snapshots.query(sql, tables)


def through_spark(sql: str, tables: dict[str, tuple[str, int]]) -> "pa.Table":
    """The answer of Spark to a query. In: its tables, and their versions, by their names in it."""
    named = ", ".join(
        f"{quoted(name)} as (select * from {table} version as of {version})"
        for name, (table, version) in tables.items()
    )
    sql = in_spark(sql)
    begun = sql.strip().removeprefix("with ")
    return _arrow(spark().sql(f"with {named}{' ' if begun == sql.strip() else ', '}{begun}"))


def _arrow(rows: "DataFrame") -> "pa.Table":
    """Rows of Spark. PySpark's client cannot give a VARIANT that is null as Arrow."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import VariantType

    if not any(isinstance(field.dataType, VariantType) for field in rows.schema):
        return rows.toArrow()

    def plain(value: Any) -> Any:
        return {"value": value.value, "metadata": value.metadata} if hasattr(value, "metadata") else value

    values = [{name: plain(value) for name, value in row.asDict(recursive=True).items()} for row in rows.collect()]
    return pa.Table.from_pylist(values, to_arrow_schema(rows.schema))


class LeaseRow:
    """What the row of a lease says (lease.py)."""

    NAME = "checks._lease"
    TIMES = 4  # as long as in a store: a statement may wait for compute

    def __init__(self, lakehouse: str):
        start(lakehouse)  # which makes what is missing
        spark().sql(f"create table if not exists {self.NAME} (number bigint, text string, at timestamp) using delta")
        first = "when not matched then insert (number, text, at) values (0, '', now())"
        self._write(f"merge into {self.NAME} using (select 1) on true {first}")
        self.look()

    def look(self) -> None:
        """Read the row."""
        row = spark().sql(f"select number, text, unix_millis(at) as at from {self.NAME}").collect()[0]
        self.version, self.text, self.written_at = row["number"], row["text"], row["at"] / 1000

    def put(self, text: str) -> None:
        """Write a text, unless another one follows that which was read; and look again."""
        new = f"number = number + 1, text = {literal(text)}, at = now()"
        self._write(f"update {self.NAME} set {new} where number = {self.version}")
        self.look()

    def _write(self, statement: str) -> None:
        """Run a statement that Delta refuses where another process writes the row."""
        from pyspark.errors import PySparkException

        try:
            spark().sql(statement)
        except PySparkException as error:
            if "CONCURRENT" not in str(error).upper():
                raise

    def shorten(self) -> None:
        """Its catalog's own upkeep does it."""


def name_of(place: str) -> str:
    """The name of a table, as Inlet says it. In: its address.

    >>> name_of("catalog://main/cdc_/silver/changes")
    'silver.changes'
    """
    return ".".join(place.rsplit("/", 2)[1:])


def newest(place: str) -> Snapshot | None:
    """The newest version of a table; None while it does not exist. In: its address."""
    from pyspark.errors import AnalysisException

    name = name_of(place)
    with _lock:
        looked_at, last = _looked.setdefault(name, NEVER)
        num_writes = _num_writes[name]
    if time.monotonic() - looked_at < LOOK_SECONDS:
        return last
    try:
        table = Table(place)
        found = last if last and last.commit == table.commit else Snapshot(table)
    except AnalysisException as error:
        if not re.search(NO_TABLE, str(error)):
            raise
        found = None
    with _lock:
        if _num_writes[name] == num_writes:  # else it may be that of before
            _looked[name] = time.monotonic(), found
    return found


def spark() -> "SparkSession":
    """The session of this process."""
    return start(storage.MANAGED, has_catalog=False)


def has_version(place: str, number: int) -> bool:
    """True if the log of a table has a version still. In: its address."""
    from pyspark.errors import PySparkException

    try:
        Table(place, number).schema()
    except PySparkException as error:
        if not re.search(NO_VERSION, str(error)):
            raise
        return False
    return True


def append(place: str, rows: "pa.Table", options: dict[str, Any]) -> None:
    """Append rows to a table, which is made where there is none. In: its address; options of Spark's writer."""
    name = name_of(place)
    writer = spark().createDataFrame(rows).write.format("delta").mode("append").options(**options)
    writer.saveAsTable(layout.of(name))
    forget(name)


def set_properties(name: str, properties: dict[str, str]) -> None:
    """Set properties of a table. In: its name, as Inlet says it."""
    pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    spark().sql(f"alter table {name} set tblproperties ({pairs})")


def forget_all() -> None:
    """Look again at all tables: others may have written them."""
    with _lock:
        _num_writes.update(list(_looked))
        _looked.clear()


def forget(statement: str) -> None:
    """Look again at the tables that a statement names, which may have written them."""
    if not _looked:
        return
    plain = statement.replace("`", "")
    if not plain.lstrip().lower().startswith(("select", "describe", "show")):
        with _lock:
            for name in [name for name in _looked if name in plain]:
                _num_writes[name] += 1
                _looked[name] = NEVER


engine.after_statement.append(forget)
