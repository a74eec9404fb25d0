"""Rows of a contract's small gold tables that batches touched, read by delta-rs: 20 ms, where Spark takes a second to
plan its scans of the log, of past and of current.

The log is read once for the keys, past and current once each; history is both (dbt/macros/history.sql). Spark gets the
rows as a relation that holds them, and asks its questions of that. Read so is only what both engines surely take for
the same: keys of exact types (no floats, no binary), tables without mapped column names.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from inlet import lake
from inlet.checks.rows import TableSuite, named
from inlet.config import Project
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

IS_CURRENT = "inlet is_current"  # a column: the row is one of current, not of past
EXACT = {"byte", "short", "integer", "long", "string", "boolean", "date", "timestamp", "timestamp_ntz"}
MAX_READERS = 4
KINDS = ("before_after", "past", "current")


@contextmanager
def held(project: Project, spark: "SparkSession", suites: list[TableSuite], batch_ids: list[int], max_bytes: int):
    """The suites, those of current and history with rows that Spark holds itself, as long as the context lasts. In:
    bytes up to which a table is read so."""
    if not max_bytes or not any(suite.contract for suite in suites):
        yield suites
        return
    existing = {f"gold.{row.tableName}" for row in spark.sql("show tables in gold").collect()}
    by_contract: dict[str, list[TableSuite]] = {}
    for suite in suites:
        kind = suite.table.rpartition("__")[2]
        if suite.contract and kind in ("current", "history") and suite.table in existing:
            by_contract.setdefault(suite.contract.name, []).append(suite)

    def read_one(of_contract: list[TableSuite]):
        contract = of_contract[0].contract
        if named([contract.our("valid_from"), contract.our("valid_to")], of_contract):  # columns of the view alone
            return None
        return read(project, contract, batch_ids, of_contract, max_bytes)

    with ThreadPoolExecutor(MAX_READERS) as pool:
        rows_of = dict(zip(by_contract, pool.map(read_one, by_contract.values()), strict=True))
    views = {name: f"inlet_touched__{name}" for name, rows in rows_of.items() if rows is not None}
    try:
        for name, view in views.items():
            spark.createDataFrame(rows_of[name]).createOrReplaceTempView(view)
        yield [_of_view(suite, views.get(suite.contract.name if suite.contract else ""), existing) for suite in suites]
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _of_view(suite: TableSuite, view: str | None, existing: set[str]) -> TableSuite:
    if not view or suite.table not in existing or suite.table.endswith("__before_after"):
        return suite
    of_current = f" where {quoted(IS_CURRENT)}" if suite.table.endswith("__current") else ""
    rows = f"(select * except ({quoted(IS_CURRENT)}) from {view}{of_current})"
    return suite._replace(rows=rows, large=frozenset())


def read(
    project: Project, contract: Table, batch_ids: list[int], suites: list[TableSuite], max_bytes: int
) -> "pa.Table | None":
    """The rows of history whose keys batches touched, or that lack a part of their key, with IS_CURRENT. In: what
    names its columns; bytes that a table may have. Out: None where Spark has to read them."""
    import deltalake
    import pyarrow as pa

    lakehouse = project.lakehouse_path()
    try:
        newest = {k: lake.newest(lakehouse, f"gold.{contract.name}__{k}") for k in KINDS}
    except deltalake.exceptions.DeltaError:  # a table has a feature that delta-rs does not know
        return None
    tables = {k: snapshot.table for k, snapshot in newest.items() if snapshot}
    if len(tables) < len(KINDS):
        return None
    if any("delta.columnMapping.mode" in t.metadata().configuration for t in tables.values()):
        return None
    if any(lake.size_bytes(lakehouse, f"gold.{contract.name}__{k}") > max_bytes for k in ("past", "current")):
        return None
    query = _query(contract, {kind: _types(table) for kind, table in tables.items()}, batch_ids, suites)
    if query is None:
        return None
    builder = lake.query_builder()
    for kind, table in tables.items():
        builder.register(kind, table)
    rows = pa.table(builder.execute(query).read_all())
    return rows.cast(pa.schema([pa.field(f.name, _plain(f.type)) for f in rows.schema]))


def _types(table) -> dict[str, str]:
    """Column -> its type in Delta; a column within a struct has its path."""
    types = {}
    for field in table.schema().fields:
        types[field.name] = field.type.type
        if field.type.type == "struct":
            types |= {f"{field.name}.{inner.name}": inner.type.type for inner in field.type.fields}
    return types


def _plain(type_: "pa.DataType") -> "pa.DataType":
    """An Arrow type as Spark reads it."""
    import pyarrow as pa

    if pa.types.is_list(type_):
        return pa.list_(_plain(type_.value_type))
    return pa.string() if pa.types.is_string_view(type_) else type_


def _query(contract: Table, types: dict[str, dict], batch_ids: list[int], suites: list[TableSuite]) -> str | None:
    """The query over log, past and current. None where both engines may not read the same."""
    current, past, log = types["current"], types["past"], types["before_after"]
    wanted = named(sorted(current), suites)
    if "batch_id" not in log or any(past.get(c) != current[c] for c in wanted):
        return None
    batches = f"batch_id in ({', '.join(map(str, batch_ids))})"
    same, no_key, of_image = [f"t.source = r.{_name(contract.our('source'))}"], [], {"before": "", "after": ""}
    for n, key in enumerate(contract.key):
        column = _column(current, key)
        places = {image: _column(log, f"{image}.{key}") for image in of_image}
        kinds = {current.get(column), past.get(column), *(log.get(place) for place in places.values())}
        if len(kinds) > 1 or not (kinds <= EXACT or str(*kinds).startswith("decimal")):
            return None
        same.append(f"t.k{n} = r.{_name(column)}")
        no_key.append(f"r.{_name(column)} is null")
        for image, place in places.items():
            of_image[image] += f", {image}['{_text(place.partition('.')[2])}'] as k{n}"
    touched = [
        f"select source{keys} from before_after where {batches} and {image} is not null"
        for image, keys in of_image.items()
    ]
    where = " or ".join([f"exists (select 1 from touched t where {' and '.join(same)})", *no_key])
    valid_to, selects = _name(contract.our("valid_to_seq")), []
    for kind in ("past", "current"):
        columns = [_shown(c, current[c]) for c in wanted]
        columns.append(f"r.{valid_to}" if kind == "past" else f"cast(null as varchar) as {valid_to}")
        columns.append(f"{str(kind == 'current').lower()} as {_name(IS_CURRENT)}")
        selects.append(f"select {', '.join(columns)} from {kind} r where {where}")
    return f"with touched as ({' union '.join(touched)}) {' union all '.join(selects)}"


def _shown(column: str, type_: str) -> str:
    """A column as the checks see it: of a binary one whether it is null."""
    name = _name(column)
    return f"case when r.{name} is not null then true end as {name}" if type_ == "binary" else f"r.{name}"


def _column(types: dict[str, str], name: str) -> str:
    """A column's name as its table has it: Spark takes upper and lower case for the same. Empty if it has none."""
    names = [c for c in types if c.lower() == name.lower()]
    return names[0] if len(names) == 1 else ""


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return text.replace("'", "''")
