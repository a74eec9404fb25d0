"""Checks: whether today's data is right, asked of every step. (Whether the SQL is right is for dbt unit tests.)

Suites are data (suite.py), judged by Great Expectations (validation.py); what came of it is kept (results.py, page.py).

Which rows: where a table has a batch_id, those of the batches being checked; of a gold table, all rows of the keys that
those batches touched (a new row can contradict an old one); else the table. So the cost follows the batch. Only columns
that a suite names are read, and of binary and variant ones only whether they are null.

Out: rows in `checks.results` (results.py), pages under <lakehouse>/checks/docs/index.html that need no network, and
CheckFailed when an expectation of severity `error` does not hold. What cannot run, because a table or column is not
there, has failed, whatever its severity. Great Expectations drops what it cannot build without a word, so the number
built is compared with the number declared.
"""

import logging
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inlet import lake
from inlet.checks import page, validation
from inlet.checks.results import CheckResult, as_fields, fields_of, keep, raise_on_errors
from inlet.checks.suite import Expected, build, expand, load, shown
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.lake.spark import small_query_settings
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

NO_TABLE = "the table does not exist"
MAX_THREADS = 8  # that check small tables side by side
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
        return _check(
            project, spark, step, suite, batch_ids, num_threads=spark.sparkContext.defaultParallelism if is_small else 1
        )


def _is_small(project: Project, suite: list[Expected], batch_ids) -> bool:
    lakehouse = project.lakehouse_path()
    tables = {e.table for e in suite if not batch_ids} | {
        f"gold.{e.contract.name}__current" for e in suite if e.contract
    }
    files = lake.peek(lakehouse, "bronze.files", ["batch_id", "source", "ofs_start", "ofs_end"]) if batch_ids else []
    sizes = [lake.size_bytes(lakehouse, table) for table in tables]
    return sum(project.size_of(f) for f in files if f["batch_id"] in batch_ids) <= SMALL_BYTES >= max(sizes, default=0)


def _check(
    project: Project, spark: "SparkSession", step: str, suite: list[Expected], batch_ids, num_threads: int
) -> list[CheckResult]:
    started, run_id = time.monotonic(), time.time_ns() // 1000
    built, of_table = build(suite), {}
    for n, expected in enumerate(suite):
        of_table.setdefault(expected.table, []).append(n)

    def checked(table: str):
        mine = of_table[table]
        return *_check_table(spark, table, [suite[n] for n in mine], [built[n] for n in mine], batch_ids), datetime.now(
            UTC
        )

    results, pages = [], {}
    with ThreadPoolExecutor(min(num_threads, MAX_THREADS)) as pool:  # small tables take longer to plan than to read
        for table, (fields_of_table, validated, now) in zip(of_table, pool.map(checked, of_table), strict=True):
            results += [CheckResult(run_id, step, batch_ids, checked_at=now, **fields) for fields in fields_of_table]
            pages[table] = validated is not None
    index = keep(project, spark, step, run_id, results, pages)
    failed = [r for r in results if not r.success]
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


def _check_table(spark: "SparkSession", table: str, suite: list[Expected], built: list, batch_ids):
    """Result fields and the validation (None without rows) of one table: all its expectations at once."""
    if not spark.catalog.tableExists(table):
        return [as_fields(e, False, NO_TABLE, None, None, "error") for e in suite], None
    rows, where = _rows(spark, table, suite[0].contract, batch_ids)
    rows = _slim(rows, suite).persist()  # each expectation of a table reads them
    try:
        validated = validation.validate(spark, table, rows, suite, built)
    finally:
        rows.unpersist()
    if validated is None:
        return [as_fields(e, True, page.NO_ROWS, 0, None) for e in suite], None
    return [fields_of(e, r, where) for e, r in zip(suite, validated.results, strict=True)], validated


def _rows(spark: "SparkSession", table: str, contract, batch_ids):
    """The rows to check as a DataFrame, and the same as SQL."""
    rows = spark.table(table)
    if batch_ids is None:
        return rows, table
    batches = f"batch_id in ({', '.join(map(str, batch_ids))})"
    if contract is None:
        if "batch_id" not in rows.columns:
            return rows, table
        return rows.where(batches), f"(select * from {table} where {batches})"
    log_table = f"gold.{contract.name}__before_after"
    if not spark.catalog.tableExists(log_table) or not {"before", "after", "batch_id"} <= set(
        spark.table(log_table).columns
    ):
        return rows, table
    if table == log_table:
        return rows.where(batches), f"(select * from {table} where {batches})"
    keys = [quoted(k) for k in contract.key]
    key = ", ".join([contract.our("source"), *keys])
    images = (
        f"select source, {', '.join(f'image.{k}' for k in keys)} from (select source, explode(array(before, after)) "
        f"as image from {log_table} where {batches}) where image is not null"
    )
    no_key = " or ".join(f"{k} is null" for k in keys)  # a null is in no list
    where = f"(select * from {table} where ({key}) in ({images}) or {no_key})"
    return spark.sql(f"select * from {where}"), where


def _slim(rows, suite: list[Expected]):
    """Only the columns that the suite names; of binary and variant ones only whether they are null."""
    from pyspark.sql import functions as F

    words = set(re.findall(r"\w+", " ".join(str(e.kwargs) for e in suite).lower()))
    fields = [
        f for f in rows.schema if f.name.lower() in words or not re.fullmatch(r"\w+", f.name)
    ] or rows.schema.fields[:1]
    slim = [
        (
            f.name,
            F.when(F.col(quoted(f.name)).isNotNull(), True).alias(f.name)
            if f.dataType.typeName() in ("binary", "variant")
            else F.col(quoted(f.name)),
        )
        for f in fields
    ]
    return rows.select(
        [column for _, column in slim] + [column.alias(shown(name)) for name, column in slim if shown(name) != name]
    )
