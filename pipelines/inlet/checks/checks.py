"""Checks: whether today's data is right, asked of every step. (Whether the SQL is right is for dbt unit tests.)

Suites are data (suite.py). Great Expectations judges the counts (validation.py). What it finds is kept (results.py,
page.py).

Which rows: rows.py; so the cost follows the batch. How they are counted: counting.py, one statement for several tables.
Tables without a row of the batches, as the statistics of their files tell, are not asked.

Out: rows in `checks.results` (results.py), pages under <lakehouse>/checks/docs/index.html that need no network, and
CheckFailed when an expectation of severity `error` does not hold. What cannot run, because a table or column is not
there, has failed, whatever its severity. Great Expectations drops what it cannot build without a word, so the number
built is compared with the number declared.
"""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from inlet import lake
from inlet.checks import page, validation
from inlet.checks.counting import NUM_ROWS, count
from inlet.checks.local_rows import held
from inlet.checks.owed import notes_of_passed
from inlet.checks.results import CheckResult, as_fields, fields_of, keep, next_run_id, raise_on_errors
from inlet.checks.rows import TableSuite, of_tables
from inlet.checks.suite import Expected, build, expand, load
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.lake import engine
from inlet.lake.spark import small_query_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

NO_TABLE = "the table does not exist"
MAX_THREADS = 8  # that check small tables side by side
NUM_TOGETHER = 4  # contracts whose small tables are asked in one statement: a plan of more costs more than it saves
SMALL_BYTES = 16 << 20  # landed bytes, or bytes of a table, up to which planning is what costs


def check(project: Project, spark: "SparkSession", step: str, batch_ids=None, tables=None) -> list[CheckResult]:
    """Check one step. In: batches to check (none: every row); for gold, names of contracts (None: those that have gold
    tables).

    Raises: ConfigError for a suite that cannot be meant, CheckFailed when an `error` does not hold; results are kept
    before.
    """
    suite = expand(load(project, step), _contracts(project, spark, step, tables))
    if tables is not None and step != "gold":
        suite = [e for e in suite if e.table in tables or e.table.split(".")[1] in tables]
    batch_ids = sorted(batch_ids or []) or None
    is_small = _is_small(project, suite, batch_ids)
    with small_query_settings(spark, is_small):
        return _check(project, spark, step, suite, batch_ids, is_small)


def _is_small(project: Project, suite: list[Expected], batch_ids) -> bool:
    lakehouse = project.lakehouse_path()
    tables = {e.table for e in suite if not batch_ids} | {
        f"gold.{e.contract.name}__current" for e in suite if e.contract
    }
    columns, of_batches = (
        ["source", "ofs_start", "ofs_end"],
        f"where batch_id in ({', '.join(map(str, batch_ids or []))})",
    )
    files = lake.peek(lakehouse, "bronze.files", columns, of_batches) if batch_ids else []
    sizes = [lake.size_bytes(lakehouse, table) for table in tables]
    return sum(map(project.size_of, files)) <= SMALL_BYTES >= max(sizes, default=0)


def _check(
    project: Project, spark: "SparkSession", step: str, expected: list[Expected], batch_ids, is_small: bool
) -> list[CheckResult]:
    started, run_id = time.monotonic(), next_run_id(project, step)
    suites = of_tables(project, spark, expected, build(expected), batch_ids)
    asked = [s for s in suites if s.may_have_rows]
    with held(project, spark, asked, batch_ids, SMALL_BYTES if is_small and batch_ids else 0) as with_rows:
        counts = _counts(spark, with_rows, is_small)
    results, pages = [], {}
    for suite in suites:
        fields_of_table, pages[suite.table] = _judged(spark, suite, counts.get(suite.table, {NUM_ROWS: 0}))
        now = datetime.now(UTC)
        results += [CheckResult(run_id, step, batch_ids, checked_at=now, **fields) for fields in fields_of_table]
    failed = [r for r in results if not r.success]
    has_passed = not any(r.severity == "error" for r in failed)
    names = {e.contract.name if e.contract else None for e in expected}
    notes = notes_of_passed(project, step, run_id, names, batch_ids) if has_passed else {}
    index = keep(project, spark, step, run_id, results, pages, notes)
    log.info(
        "checks %s: %d expectations, %d failed, %d warned, %.1f s",
        step,
        len(results),
        sum(r.severity == "error" for r in failed),
        sum(r.severity == "warn" for r in failed),
        time.monotonic() - started,
    )
    raise_on_errors(step, [r for r in failed if r.severity == "error"], index)
    return results


def _counts(spark: "SparkSession", suites: list[TableSuite], is_small: bool) -> dict[str, dict]:
    """The counts of each table. The tables of a contract are asked in one statement, for they share the keys that were
    touched; small tables are, for planning a statement costs more than reading them."""
    by_contract: dict[str, list[TableSuite]] = {}
    for suite in suites:
        contract = suite.contract
        by_contract.setdefault(contract.name if contract else "" if is_small else suite.table, []).append(suite)
    asked = list(by_contract.values())
    size = NUM_TOGETHER if is_small else 1
    groups = [[s for of_contract in asked[n : n + size] for s in of_contract] for n in range(0, len(asked), size)]
    num_threads = engine.num_tasks(spark) if is_small else 1
    with ThreadPoolExecutor(min(num_threads, MAX_THREADS)) as pool:
        counted = [counts for group in pool.map(partial(count, spark, is_small=is_small), groups) for counts in group]
    return {s.table: counts for s, counts in zip([s for group in groups for s in group], counted, strict=True)}


def _judged(spark: "SparkSession", suite: TableSuite, counts: dict) -> tuple[list[dict], bool]:
    """Result fields of one table, and whether it had rows to check."""
    if NUM_ROWS not in counts and not engine.has_table(spark, suite.table):
        return [as_fields(e, False, NO_TABLE, None, None, "error") for e in suite.expected], False
    validated = validation.validate(spark, suite, counts)
    if validated is None:
        return [as_fields(e, True, page.NO_ROWS, 0, None) for e in suite.expected], False
    return [fields_of(e, r, suite.rows) for e, r in zip(suite.expected, validated.results, strict=True)], True


def _contracts(project: Project, spark: "SparkSession", step: str, names) -> list:
    if step != "gold":
        return []
    if names is None:
        built = {row.tableName.rpartition("__")[0] for row in spark.sql("show tables in gold").collect()}
        return [t for t in project.tables.values() if t.name in built]
    known = {t.name: t for t in project.tables.values()} | project.tables
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"No contract is named {', '.join(unknown)}", f"Known: {', '.join(sorted(known))}")
    return [known[name] for name in names]
