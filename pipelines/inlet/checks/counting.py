"""Counts of unexpected rows: one statement for the suites of several tables.

Great Expectations, left to itself, runs several Spark jobs for each expectation: seconds a table, however small. Here
one aggregate a table counts its rows and the unexpected rows of every expectation that can be counted row by row, or
by distinct values; a query that needs rows together (a window, a join) is an aggregate of its own. All of them are one
statement (`union all`), for on small tables planning is what costs.

What cannot run hides nothing else: a statement that fails is asked again table by table, and of the table that fails,
expectation by expectation. What is not counted is validated on Spark (validation.py).
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from inlet.checks.rows import TableSuite
from inlet.sql import literal
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "unexpected_rows_expectation"
NUM_ROWS = "num_rows"


def _in_set(column: str, kwargs: dict) -> str | None:
    values = kwargs["value_set"]
    if not values or not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
        return None
    return _unmet(column, f"in ({', '.join(literal(v) if isinstance(v, str) else str(v) for v in values)})")


def _unmet(column: str, condition: str) -> str:
    """A count of rows that are not null and do not meet a condition, as Great Expectations states both."""
    return f"count_if({column} is not null and not ({column} {condition}))"


COUNTED: dict[str, tuple[set, Callable]] = {  # expectation -> kwargs that it is known with, SQL of its count (or None)
    "expect_column_values_to_not_be_null": ({"column"}, lambda column, kwargs: f"count_if({column} is null)"),
    "expect_column_values_to_be_unique": (
        {"column"},
        lambda column, kwargs: f"count({column}) - count(distinct {column})",
    ),
    "expect_column_values_to_match_regex": (
        {"column", "regex"},
        lambda column, kwargs: _unmet(column, f"rlike {literal(kwargs['regex'])}"),
    ),
    "expect_column_values_to_be_in_set": ({"column", "value_set"}, _in_set),
    QUERY: ({"unexpected_rows_query"}, lambda column, kwargs: None),
}
NAME = r"(?:\w|`[^`]+`)+(?:\.(?:\w|`[^`]+`)+)*"
NAMES = rf"{NAME}(?:\s*,\s*{NAME})*"
ROWS = "inlet_checked_"  # a number: what the rows of a table are called in a statement
OF_EACH_ROW = re.compile(rf"select\s+({NAMES})\s+from\s+{ROWS}\d+\s+where\s+(.+)", re.IGNORECASE | re.DOTALL)
OF_REPEATED_ROWS = re.compile(
    rf"select\s+({NAMES})\s*,\s*count\(\*\)\s+as\s+\w+\s+from\s+{ROWS}\d+\s+group\s+by\s+({NAMES})\s+"
    r"having\s+count\(\*\)\s*>\s*1",
    re.IGNORECASE,
)
FURTHER = re.compile(  # clauses after a condition, and subqueries, which an aggregate may not hold
    r"\b(select|group|having|window|order|sort|cluster|distribute|limit|offset|union|intersect|except|minus)\b|\|>",
    re.IGNORECASE,
)


def count(spark: "SparkSession", suites: list[TableSuite], is_small: bool) -> list[dict]:
    """For each table NUM_ROWS, the nulls of each column that is named, and by its number the unexpected rows of each
    expectation that is known. An expectation that cannot run has no count; where none can, there is no NUM_ROWS."""
    from pyspark.errors import PySparkException

    try:
        return _counted(spark, suites, is_small)
    except PySparkException:
        if len(suites) > 1:
            return [counts for suite in suites for counts in count(spark, [suite], is_small)]
        (suite,) = suites
        if len(suite.built) == 1:
            return [{}]
        parts = [suite._replace(expected=[e], built=[b]) for e, b in zip(suite.expected, suite.built, strict=True)]
        return [{place: n for part in parts for place, n in count(spark, [part], is_small)[0].items()}]


def _counted(spark: "SparkSession", suites: list[TableSuite], is_small: bool) -> list[dict]:
    hint = "/*+ coalesce(1) */ " if is_small else ""  # rows in one partition are aggregated without a shuffle
    tables, branches, places = [], [], []
    for n, suite in enumerate(suites):
        rows = f"{ROWS}{n}"
        tables.append(f"{rows} as (select {hint}* from ({suite.slim_rows}))")
        aggregates, queries = _asked(suite, rows)
        branches.append((rows, list(aggregates.values())))
        places.append((n, list(aggregates)))
        for place, query in queries.items():
            branches.append((f"(\n{query}\n)", ["count(*)"]))
            places.append((n, [place]))
    selects = [
        f"select {n} as n, array({', '.join(sql)}) as counts from {rows}" for n, (rows, sql) in enumerate(branches)
    ]
    counts: list[dict] = [{} for _ in suites]
    for row in spark.sql(f"with {', '.join(tables)}\n" + "\nunion all ".join(selects)).collect():
        n, asked = places[row.n]
        counts[n] |= zip(asked, row.counts, strict=True)
    return counts


def _asked(suite: TableSuite, rows: str) -> tuple[dict[Any, str], dict[Any, str]]:
    """What is asked of a table's rows: aggregates over them, and queries whose rows are to be counted."""
    aggregates: dict[Any, str] = {NUM_ROWS: "count(*)"}
    queries: dict[Any, str] = {}
    for expected, one in zip(suite.expected, suite.built, strict=True):
        kwargs, sql_of = COUNTED.get(one.expectation_type, (set(), None))
        if not sql_of or set(expected.kwargs) != kwargs:
            continue
        if one.expectation_type == QUERY:
            try:
                query = one.unexpected_rows_query.format(batch=rows)
            except LookupError:  # a word in braces that is none of ours
                continue
            if sql := _aggregate(query):
                aggregates[one.meta["n"]] = sql
            else:
                queries[one.meta["n"]] = query
            continue
        column = quoted(expected.kwargs["column"])
        if sql := sql_of(column, expected.kwargs):
            aggregates |= {("nulls", one.column): f"count_if({column} is null)", one.meta["n"]: sql}
    return aggregates, queries


def _aggregate(query: str) -> str | None:
    """The aggregate that counts a query's rows: for a condition on each row, and for repeated values, where it is 0 if
    and only if no value is repeated. None for other queries. It names what is selected, so that a column that does not
    exist is still an error."""
    if match := OF_EACH_ROW.fullmatch(query.strip()):
        names, condition = match.groups()
        if not FURTHER.search(condition):
            return f"count_if(({condition}\n) and (true or struct({names}) is null))"
    if (match := OF_REPEATED_ROWS.fullmatch(query.strip())) and match[1].split() == match[2].split():
        return f"count(*) - count(distinct struct({match[1]}))"
    return None
