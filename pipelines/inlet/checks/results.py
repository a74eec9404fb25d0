"""What came of checks: rows of checks.results, their pages, and the error that stops a run."""

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from inlet import lake, storage
from inlet.change import Column
from inlet.checks import page
from inlet.checks.suite import Expected
from inlet.config import Project
from inlet.errors import CheckFailed
from inlet.sql import literal, plain_literal
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "checks.results"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# step -> the table and column that say when it wrote a batch, but for bronze, of which any check of a batch counts
WRITTEN_AT = {
    "bronze": ("bronze.files", "batch_id"),
    "silver": ("silver.batches", "finished_at"),
    "gold": ("gold.applied", "applied_at"),
}
RESULTS = (
    Column("run_id", "bigint", "one call of the check: microseconds since 1970, so it only grows"),
    Column("step", "string", "bronze, silver or gold"),
    Column("batch_ids", "array<bigint>", "the batches whose rows were checked; null means every row"),
    Column("table", "string", "the table"),
    Column("expectation", "string", "the expectation's name in Great Expectations"),
    Column("column", "string", "the column, or the SQL that finds unwanted rows"),
    Column("severity", "string", "error stops the line, warn does not"),
    Column("success", "boolean", "whether it held"),
    Column("observed", "string", "what was found: example values, a measure, or why it could not run"),
    Column("unexpected_count", "bigint", "rows that do not fit; null where rows were not counted"),
    Column("why", "string", "why it must hold"),
    Column("rows_sql", "string", "SQL that shows the unwanted rows, when it failed"),
    Column("checked_at", "timestamp", "when"),
)


class CheckResult(NamedTuple):
    """A row of checks.results."""

    run_id: int
    step: str
    batch_ids: list[int] | None
    table: str
    expectation: str
    column: str | None
    severity: str
    success: bool
    observed: str | None
    unexpected_count: int | None
    why: str
    rows_sql: str | None
    checked_at: datetime


def as_fields(expected: Expected, success, observed, count, rows_sql, severity=None) -> dict:
    kwargs = expected.kwargs
    column = (
        kwargs.get("column")
        or kwargs.get("unexpected_rows_query")
        or ", ".join(map(str, kwargs.get("column_list") or []))
    )
    return {
        "table": expected.table,
        "expectation": expected.entry.expect,
        "column": column or None,
        "success": success,
        "observed": observed,
        "severity": severity or expected.entry.severity,
        "unexpected_count": count,
        "why": expected.entry.why,
        "rows_sql": rows_sql,
    }


def fields_of(expected: Expected, result, where: str) -> dict:
    trouble = _trouble(result.exception_info)
    if trouble:
        return as_fields(expected, False, f"could not run: {trouble}", None, None, "error")
    outcome, query = result.result, expected.kwargs.get("unexpected_rows_query")
    count = outcome.get("observed_value") if query else outcome.get("unexpected_count")
    examples = outcome.get("partial_unexpected_list") or []
    observed = (
        f"{count} rows" if query else ", ".join(map(repr, examples[:5])) or str(outcome.get("observed_value", ""))
    )
    rows_sql = None if result.success else _rows_sql(expected.kwargs, examples, where)
    return as_fields(expected, bool(result.success), observed, count, rows_sql)


def _trouble(info: dict) -> str | None:
    """What stopped an expectation from running; Great Expectations nests it per metric or not."""
    for one in [info, *[v for v in info.values() if isinstance(v, dict)]] if info else []:
        if one.get("raised_exception"):
            return " ".join(str(one.get("exception_message")).split())[:500]
    return None


def _rows_sql(kwargs: dict, examples: list, where: str) -> str:
    if "unexpected_rows_query" in kwargs:
        return kwargs["unexpected_rows_query"].strip().replace("{batch}", where).replace("{{", "{").replace("}}", "}")
    column, values = kwargs.get("column"), [v for v in examples if isinstance(v, (str, int, float))]
    if not column:
        return f"select * from {where}"
    literals = ", ".join(literal(v) if isinstance(v, str) else str(v) for v in dict.fromkeys(values))
    return f"select * from {where} where {quoted(column)} " + (f"in ({literals})" if literals else "is null")


def next_run_id(project: Project, step: str) -> int:
    """Microseconds after all checks of a step and all that it has written, whatever the clocks of the machines say: an
    append under an earlier run_id is taken for a repeat, and whether a check has seen what is written is told by them.
    """
    lakehouse, checked = project.lakehouse_path(), 0
    if storage.is_managed(lakehouse):
        [row] = lake.peek(lakehouse, TABLE, ["max(run_id) as last"], f"where step = {plain_literal(step)}") or [{}]
        checked = row.get("last") or 0
    else:
        checked = lake.transaction_version(lakehouse, TABLE, f"inlet-checks-{step}")
    return max(time.time_ns() // 1000, checked + 1, last_written(project, step) + 1)


def last_written(project: Project, step: str) -> int:
    """When a step last wrote a batch, as a run_id; of bronze the last batch."""
    table, column = WRITTEN_AT[step]
    rows = lake.peek(project.lakehouse_path(), table, [f"cast(max({column}) as bigint) as at"])
    return max((row["at"] or 0 for row in rows), default=0)


def next_moment(project: Project, step: str) -> datetime:
    """When a step writes, for what tells whether a check has seen it. As `next_run_id`."""
    return EPOCH + timedelta(microseconds=next_run_id(project, step))


def keep(
    project: Project,
    spark: "SparkSession",
    step: str,
    run_id: int,
    results: list[CheckResult],
    pages: dict,
    notes: dict[str, int],
) -> str:
    """Append the results, write the pages and the index. In: further app transactions of the commit. Out: path of the
    index."""
    lakehouse, app_id = project.lakehouse_path(), f"inlet-checks-{step}"
    if not lake.transaction_version(
        lakehouse, TABLE, app_id
    ):  # by Spark, so that the catalog has it; asking it is slow
        spark.sql(lake.create_sql(TABLE, RESULTS))
    if results:
        lake.add_rows(lakehouse, TABLE, [r._asdict() for r in results], RESULTS, app_id, run_id, notes)
    return page.write(
        project.files_path("checks", "docs"),
        {table: ([r for r in results if r.table == table], has_page) for table, has_page in pages.items()},
    )


def raise_on_errors(step: str, failed: list[CheckResult], index: str) -> None:
    if not failed:
        return
    lines = [
        f"{r.table}: {r.expectation}({r.column}) does not hold, "
        f"{'?' if r.unexpected_count is None else r.unexpected_count} unwanted rows, observed {r.observed}; {r.why}"
        + (f"\n  see them: {' '.join(r.rows_sql.split())}" if r.rows_sql else "")
        for r in failed
    ]
    raise CheckFailed(
        f"{len(failed)} check{'s' * (len(failed) > 1)} of {step} failed:\n" + "\n".join(lines) + "\n",
        f"Pages: {index}; table: checks.results where run_id = {failed[0].run_id}",
    )
