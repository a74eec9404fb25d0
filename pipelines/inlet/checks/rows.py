"""Rows to check: where a table has a batch_id, those of the batches being checked; of a gold table, all rows of the
keys that those batches touched (a new row can contradict an old one); else the table.

Binary and variant columns are shown as whether they are null, and in a key as hex: no check reads their content.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from inlet import change, lake, unit
from inlet.checks.suite import Expected, shown
from inlet.config import Project
from inlet.lake import engine
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DECLARED = {table: {c.name: c.type for c in columns} for table, columns in (unit.TABLES | change.TABLES).items()}


class TableSuite(NamedTuple):
    """What is expected of one table. In: its rows as SQL; whether the statistics of its files leave room for any; the
    expectations as declared and as built, in the same order."""

    table: str
    rows: str
    may_have_rows: bool
    expected: list[Expected]
    built: list
    large: frozenset[str]  # its binary and variant columns that the suite names

    @property
    def contract(self):
        return self.expected[0].contract

    @property
    def slim_rows(self) -> str:
        """The rows as a query, with binary and variant columns in short."""
        if not self.large:
            return f"select * from {self.rows}"
        key = {k.lower() for k in self.contract.key} if self.contract else set()
        short = [
            f"hex({quoted(c)}) as {quoted(c)}"
            if c.lower() in key
            else f"if({quoted(c)} is not null, true, null) as {quoted(c)}"
            for c in sorted(self.large)
        ]
        names = ", ".join(map(quoted, sorted(self.large)))
        return f"select * except ({names}), {', '.join(short)} from {self.rows}"

    def narrow_rows(self, spark: "SparkSession") -> "DataFrame":
        """The same with only the columns that the suite names, for Great Expectations: it reads them often."""
        from pyspark.sql import functions as F

        rows = spark.sql(self.slim_rows)
        names = named(rows.columns, [self]) or rows.columns[:1]
        columns = [F.col(quoted(c)) for c in names]
        return rows.select(columns + [F.col(quoted(c)).alias(shown(c)) for c in names if shown(c) != c])


def named(columns, suites: list[TableSuite]) -> list[str]:
    """Those of the columns that suites name: others are not read. A name that is not one word is taken to be named."""
    texts = (text for suite in suites for e in suite.expected for text in _texts(e.kwargs))
    words = set(re.findall(r"\w+", " ".join(texts).lower()))
    return [c for c in columns if c.lower() in words or not re.fullmatch(r"\w+", c)]


def _texts(kwargs):
    """The values of kwargs as text, without the escapes of Python's own form, which would join words."""
    if isinstance(kwargs, dict | list):
        for value in kwargs.values() if isinstance(kwargs, dict) else kwargs:
            yield from _texts(value)
    else:
        yield str(kwargs)


def of_tables(
    project: Project, spark: "SparkSession", expected: list[Expected], built: list, batch_ids
) -> list[TableSuite]:
    """The expectations of each table, in the suite's order, with its rows."""
    by_table: dict[str, list[int]] = {}
    for n, one in enumerate(expected):
        by_table.setdefault(one.table, []).append(n)
    logs: dict[str, bool] = {}
    suites = []
    for table, numbers in by_table.items():
        mine = [expected[n] for n in numbers]
        contract = mine[0].contract
        if contract and contract.name not in logs:
            logs[contract.name] = _has_log(project, contract)
        types = _types(project, spark, table, contract)
        rows, has_rows = _rows(project, table, contract, batch_ids, types, bool(contract and logs[contract.name]))
        suite = TableSuite(table, rows, has_rows, mine, [built[n] for n in numbers], frozenset())
        large = [c for c, type_ in types.items() if type_ in ("binary", "variant")]
        suites.append(suite._replace(large=frozenset(named(large, [suite]))))
    return suites


def _rows(project: Project, table: str, contract, batch_ids, types: dict, has_log: bool) -> tuple[str, bool]:
    """The rows to check as SQL, and False where no file of the table can hold one."""
    log = contract and f"gold.{contract.name}__before_after"
    if batch_ids is None or (not has_log if contract else "batch_id" not in types):
        return table, True
    batches = f"batch_id in ({', '.join(map(str, batch_ids))})"
    if not contract or table == log:
        lakehouse = project.lakehouse_path()
        may_hold = not lake.exists(lakehouse, table) or lake.may_hold(lakehouse, table, "batch_id", *batch_ids)
        return f"(select * from {table} where {batches})", may_hold
    keys = [quoted(k) for k in contract.key]
    key = ", ".join([contract.our("source"), *keys])
    images = (
        f"select source, {', '.join(f'image.{k}' for k in keys)} from (select source, explode(array(before, after)) "
        f"as image from {log} where {batches}) where image is not null"
    )
    no_key = " or ".join(f"{k} is null" for k in keys)  # a null is in no list
    return f"(select * from {table} where ({key}) in ({images}) or {no_key})", True


def _has_log(project: Project, contract) -> bool:
    """True if a contract's log tells which keys a batch touched. Read without Spark."""
    lakehouse, log = project.lakehouse_path(), f"gold.{contract.name}__before_after"
    return lake.exists(lakehouse, log) and {"before", "after", "batch_id"} <= lake.column_names(lakehouse, log)


def _types(project: Project, spark: "SparkSession", table: str, contract) -> dict[str, str]:
    """Columns of a table and their types, found without Spark where that is possible. Of a table of a contract, only
    its own columns."""
    if contract:
        return {} if table.endswith("__before_after") else {c.gold_name: c.type for c in contract.columns}
    if table in DECLARED:
        return DECLARED[table]
    if found := lake.describe(project.lakehouse_path(), table):
        return found[0]
    if not engine.has_table(spark, table):
        return {}
    return {f.name: f.dataType.typeName() for f in spark.table(table).schema}
