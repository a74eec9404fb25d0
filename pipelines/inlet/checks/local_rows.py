"""Rows to check that delta-rs reads: 3 to 20 ms a table, where Spark takes 0.1 to 0.3 s to plan each scan.

Of a table with a batch_id: the rows of the batches. Of a contract's small gold tables: the rows that batches touched.
The log is read once for the keys, past and current once each; history is both (dbt/macros/history.sql). Spark gets the
rows as a relation that holds them, and asks its questions of that. Read so is only what both engines surely take for
the same: columns that a suite names, of exact types in keys (no floats, no binary), tables without mapped column names.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from inlet import lake, storage
from inlet.checks.rows import TableSuite, named
from inlet.config import Project
from inlet.lake import engine
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    import deltalake
    import pyarrow as pa
    from pyspark.sql import SparkSession

IS_CURRENT = "inlet is_current"  # a column: the row is one of current, not of past
EXACT = {"byte", "short", "integer", "long", "string", "boolean", "date", "timestamp", "timestamp_ntz"}
PLAIN = EXACT | {"float", "double", "binary", "variant"}  # types of columns that are read for single tables
MAX_READERS = 4
KINDS = ("before_after", "past", "current")
QUERY_TEXT = "unexpected_rows_query"
EVERY_COLUMN = re.compile(  # what a query asks of columns without their names; a star may also multiply or count
    r"\b(?:select|distinct|all)\s*\*|[,./]\s*\*|(?<!\bcount)\(\s*\*|\b(?:natural|table)\b|\|>", re.IGNORECASE
)
STAR_OF_QUERY = re.compile(r"\s*select\s+\*\s+from\s*\((?=\s*select\b)", re.IGNORECASE)
WHERE = re.compile(r"\s*(?:where\b.*)?", re.IGNORECASE | re.DOTALL)


@contextmanager
def held(project: Project, spark: "SparkSession", suites: list[TableSuite], batch_ids: list[int], max_bytes: int):
    """The suites, each with rows that Spark holds itself where these could be read, as long as the context lasts. In:
    bytes up to which a table is read so."""
    if not max_bytes:
        yield suites
        return
    groups = _groups(spark, suites)
    with ThreadPoolExecutor(MAX_READERS) as pool:
        read_rows = pool.map(lambda of_view: _read(project, of_view, batch_ids, max_bytes), groups.values())
        rows_of = {view: rows for view, rows in zip(groups, read_rows, strict=True) if rows is not None}
    with ExitStack() as until:
        views = {
            suite.table: view
            for name, rows in rows_of.items()
            for view in [engine.view(spark.createDataFrame(rows), until, name)]
            for suite in groups[name]
        }
        yield [_of_view(suite, views[suite.table]) if suite.table in views else suite for suite in suites]


def _groups(spark: "SparkSession", suites: list[TableSuite]) -> dict[str, list[TableSuite]]:
    """Begin of a view's name -> the suites that its rows are for: one table, or current and history of a contract."""
    existing: set[str] = set()
    groups: dict[str, list[TableSuite]] = {}
    if any(suite.contract for suite in suites):
        existing = {f"gold.{row.tableName}" for row in spark.sql("show tables in gold").collect()}
    for n, suite in enumerate(suites):
        if not suite.contract:
            groups[f"inlet_of_batches__{n}"] = [suite]
        elif suite.table in existing and suite.table.endswith(("__current", "__history")):
            groups.setdefault(f"inlet_touched__{suite.contract.name}", []).append(suite)
    return groups


def _of_view(suite: TableSuite, view: str) -> TableSuite:
    if not suite.contract:
        return suite._replace(rows=view, large=frozenset())
    of_current = f" where {quoted(IS_CURRENT)}" if suite.table.endswith("__current") else ""
    rows = f"(select * except ({quoted(IS_CURRENT)}) from {view}{of_current})"
    return suite._replace(rows=rows, large=frozenset())


def _read(project: Project, suites: list[TableSuite], batch_ids: list[int], max_bytes: int) -> "pa.Table | None":
    contract = suites[0].contract
    if not contract:
        return read_batches(project, suites[0], batch_ids, max_bytes)
    if named([contract.our("valid_from"), contract.our("valid_to")], suites):  # columns of the view alone
        return None
    return read(project, contract, batch_ids, suites, max_bytes)


def read_batches(project: Project, suite: TableSuite, batch_ids: list[int], max_bytes: int) -> "pa.Table | None":
    """The rows of batches in a table, with the columns that its suite names. None where Spark has to read them."""
    lakehouse = project.lakehouse_path()
    tables = _tables(lakehouse, [suite.table])
    if tables is None or _ask_for_every_column([suite]):
        return None
    (table,) = tables.values()
    types = {field.name: field.type.type for field in table.schema().fields}
    columns = named(sorted(types), [suite]) or ["batch_id"]
    if types.get("batch_id") != "long" or not PLAIN.issuperset(types[c] for c in columns):
        return None
    if lake.bytes_that_may_hold(lakehouse, suite.table, "batch_id", *batch_ids) > max_bytes:
        return None
    shown, batches = ", ".join(_shown(c, types[c]) for c in columns), ", ".join(map(str, batch_ids))
    return _answer({"rows": table}, f"select {shown} from rows r where batch_id in ({batches})")


def _ask_for_every_column(suites: list[TableSuite]) -> bool:
    return any(asks_for_every_column(str(e.kwargs.get(QUERY_TEXT))) for suite in suites for e in suite.expected)


def asks_for_every_column(query: str) -> bool:
    """True if a query takes columns of the rows without naming them. The star of a single subquery takes what that one
    names."""
    if star := STAR_OF_QUERY.match(query):
        depth = 1
        for end in range(star.end(), len(query)):
            depth += {"(": 1, ")": -1}.get(query[end], 0)
            if not depth:  # or the end of a text that holds one: then no `where` follows
                if WHERE.fullmatch(query, end + 1):
                    return asks_for_every_column(query[star.end() : end]) or bool(EVERY_COLUMN.search(query, end + 1))
                break
    return bool(EVERY_COLUMN.search(query))


def read(
    project: Project, contract: Table, batch_ids: list[int], suites: list[TableSuite], max_bytes: int
) -> "pa.Table | None":
    """The rows of history whose keys batches touched, or that lack a part of their key, with IS_CURRENT. In: what
    names its columns; bytes that a table may have. Out: None where Spark has to read them."""
    lakehouse = project.lakehouse_path()
    by_name = _tables(lakehouse, [f"gold.{contract.name}__{kind}" for kind in KINDS])
    if by_name is None or _ask_for_every_column(suites):
        return None
    tables = dict(zip(KINDS, by_name.values(), strict=True))
    if any(lake.size_bytes(lakehouse, f"gold.{contract.name}__{k}") > max_bytes for k in ("past", "current")):
        return None
    query = _query(contract, {kind: _types(table) for kind, table in tables.items()}, batch_ids, suites)
    if query is None:
        return None
    return _answer(tables, query)


def _tables(lakehouse: str, names: list[str]) -> "dict[str, deltalake.DeltaTable] | None":
    """Tables as delta-rs has them. None where one does not exist, or holds what delta-rs may not read as Spark does."""
    import deltalake

    if not storage.is_reached(lakehouse):
        return None
    try:
        snapshots = [lake.newest(lakehouse, name) for name in names]
    except deltalake.exceptions.DeltaError:  # a table has a feature that delta-rs does not know
        return None
    tables = {name: snapshot.table for name, snapshot in zip(names, snapshots, strict=True) if snapshot}
    is_mapped = any("delta.columnMapping.mode" in t.metadata().configuration for t in tables.values())
    return None if is_mapped or len(tables) < len(names) else tables


def _answer(tables: "dict[str, deltalake.DeltaTable]", query: str) -> "pa.Table":
    """The answer of delta-rs to a query, in types that Spark reads."""
    import pyarrow as pa

    builder = lake.query_builder()
    for name, table in tables.items():
        builder.register(name, table)
    rows = pa.table(builder.execute(query).read_all())
    schema = pa.schema([pa.field(f.name, _plain(f.type)) for f in rows.schema])
    return rows.cast(schema) if len(rows) else schema.empty_table()  # PySpark needs a piece of each column


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
    """A column as the checks see it: of one that is large whether it is null."""
    name = _name(column)
    return f"case when r.{name} is not null then true end as {name}" if type_ in ("binary", "variant") else f"r.{name}"


def _column(types: dict[str, str], name: str) -> str:
    """A column's name as its table has it: Spark takes upper and lower case for the same. Empty if it has none."""
    names = [c for c in types if c.lower() == name.lower()]
    return names[0] if len(names) == 1 else ""


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return text.replace("'", "''")
