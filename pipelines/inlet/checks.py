"""Checks: whether today's data is right, asked of every step. (Whether the SQL is right is for dbt unit tests.)

Suites are data: expectations/{bronze,silver,gold}.yml, a list of entries that Great Expectations carries out on Spark.

    - table: silver.changes           # or "*__current": one per contract (gold)
      expect: expect_column_values_to_match_regex
      kwargs: {column: change_seq, regex: '^\\d{35}$'}
      severity: error                 # error stops the line, warn only tells
      why: order is by change_seq as text

Words in kwargs: `{batch}` in SQL is the rows being checked; `{key}` is the table's key columns, `{key_column}` makes one
expectation per key column; `{operations}`, `{change_opers}`, `{reject_kinds}` are the lists that the code declares. A
literal brace in SQL is doubled.

Which rows: where a table has a batch_id, those of the batches being checked; of a gold table, all rows of the keys
that those batches touched (a new row can contradict an old one); else the table. So the cost follows the batch. Only columns that
a suite names are read, and of binary and variant ones only whether they are null.

Out: rows in `checks.results` (declared below), pages under <lakehouse>/checks/docs/index.html that need no network, and
CheckFailed when an expectation of severity `error` does not hold. What cannot run, because a table or column is not
there, has failed, whatever its severity. Great Expectations drops what it cannot build without a word, so the
number built is compared with the number declared.
"""

import html
import logging
import os
import re
import time
from datetime import datetime, timezone
from typing import Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from inlet import change, lake
from inlet.change import Column
from inlet.errors import REJECT_KINDS, CheckFailed, ConfigError
from inlet.spark import pace

log = logging.getLogger(__name__)

STEPS = ("bronze", "silver", "gold")
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
CheckResult = NamedTuple("CheckResult", [(c.name, object) for c in RESULTS])
NO_TABLE, NO_ROWS = "the table does not exist", "no rows to check"
SMALL_BYTES = 16 << 20         # landed bytes, or bytes of a table, up to which planning is what costs
NUM_INDEX = 1_000              # older lines leave the index; their pages and results stay
LISTS = {
    "{operations}": list(change.OPERATIONS),
    "{change_opers}": list(change.OPERATIONS.values()),
    "{reject_kinds}": list(REJECT_KINDS),
}


class Entry(BaseModel):
    """One expectation as declared."""

    model_config = ConfigDict(extra="forbid")
    table: str
    expect: str
    kwargs: dict = {}
    severity: Literal["error", "warn"]
    why: str


class Expected(NamedTuple):
    """One expectation of one table, words filled in; `place` is where it was declared."""

    table: str
    contract: object           # the Table of a gold table, else None
    entry: Entry
    kwargs: dict
    place: str


def check(project, spark, step: str, batch_ids=None, tables=None) -> list[CheckResult]:
    """Check one step. In: batches to check (none: every row); for gold, names of contracts (None: those that have gold tables).

    Raises: ConfigError for a suite that cannot be meant, CheckFailed when an `error` does not hold; results are kept before.
    """
    suite = expand(load(project, step), _contracts(project, spark, step, tables))
    if tables is not None and step != "gold":
        suite = [e for e in suite if e.table in tables or e.table.split(".")[1] in tables]
    batch_ids = sorted(batch_ids or []) or None
    with pace(spark, is_small=_is_small(project, suite, batch_ids)):
        return _check(project, spark, step, suite, batch_ids)


def _is_small(project, suite: list[Expected], batch_ids) -> bool:
    lakehouse = project.lakehouse_path()
    tables = {e.table for e in suite if not batch_ids} | {f"gold.{e.contract.name}__current" for e in suite if e.contract}
    files = lake.peek(lakehouse, "bronze.files", ["batch_id", "ofs_start", "ofs_end"]) if batch_ids else []
    sizes = [lake.size_bytes(lakehouse, table) for table in tables]
    return sum(f["ofs_end"] - f["ofs_start"] for f in files if f["batch_id"] in batch_ids) <= SMALL_BYTES >= max(sizes, default=0)


def _check(project, spark, step: str, suite: list[Expected], batch_ids) -> list[CheckResult]:
    started, run_id = time.monotonic(), time.time_ns() // 1000
    built = build(suite)
    results, pages = [], {}
    for table in dict.fromkeys(e.table for e in suite):
        mine = [n for n, e in enumerate(suite) if e.table == table]
        found, page = _check_table(spark, table, [suite[n] for n in mine], [built[n] for n in mine], batch_ids)
        now = datetime.now(timezone.utc)
        results += [CheckResult(run_id, step, batch_ids, checked_at=now, **fields) for fields in found]
        pages[table] = page
    index = _keep(project, spark, step, run_id, results, pages)
    failed = [r for r in results if not r.success]
    log.info("checks %s: %d expectations, %d failed, %d warned, %.1f s", step, len(results),
             sum(r.severity == "error" for r in failed), sum(r.severity == "warn" for r in failed), time.monotonic() - started)
    _raise_on_errors(step, [r for r in failed if r.severity == "error"], index)
    return results


def unchecked(project, step: str) -> dict[str | None, list[int]]:
    """Batches that a step has written and whose rows no passed check has seen, told without Spark: a run that died or failed
    before its gate owes it. Out: for gold name of contract -> batches, else None -> batches."""
    lakehouse, per_table, written = project.lakehouse_path(), step == "gold", _written(project, step)
    if not written or not any(entry.table.startswith("*") or not per_table for _, entry in load(project, step)):
        return {}
    results = lake.peek(lakehouse, "checks.results", ["run_id", "step", "table", "severity", "success", "batch_ids"])
    failed = {row["run_id"] for row in results if row["severity"] == "error" and not row["success"]}
    seen = {(row["table"].split(".")[1].rsplit("__", 1)[0] if per_table else None, batch) for row in results
            if row["step"] == step and row["run_id"] not in failed for batch in row["batch_ids"] or ()}
    owed: dict[str | None, set[int]] = {}
    for place, batch in written:
        if (place, batch) not in seen:
            owed.setdefault(place, set()).add(batch)
    return {place: sorted(batches) for place, batches in sorted(owed.items(), key=str)}


def _written(project, step: str):
    """(name of contract or None, batch) of all that a step has written."""
    lakehouse = project.lakehouse_path()
    if step == "bronze":
        return {(None, row["batch_id"]) for row in lake.peek(lakehouse, "bronze.files", ["batch_id"])}
    ledger = lake.peek(lakehouse, "silver.batches", ["source", "batch_id", "tables"])
    if step == "silver":
        return {(None, row["batch_id"]) for row in ledger}
    through: dict[tuple, int] = {}
    for row in lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_batch_id"]):
        place = row["table_name"], row["source"]
        through[place] = max(row["through_batch_id"], through.get(place, -1))
    names = {table.table: table.name for table in project.tables.values()}
    return {(names[t], row["batch_id"]) for row in ledger for t in row["tables"] or ()
            if t in names and row["batch_id"] <= through.get((names[t], row["source"]), -1)}


def load(project, step: str) -> list[tuple[str, Entry]]:
    """The entries of one suite with their places. Raises: ConfigError, naming file and entry."""
    if step not in STEPS:
        raise ConfigError(f"There is no step {step!r} to check", f"Known steps: {', '.join(STEPS)}")
    path = project.root / "expectations" / f"{step}.yml"
    if not path.is_file():
        raise ConfigError(f"{path} is not there", "Write the step's suite, or an empty list to check nothing")
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {error}", "Mend the line it names") from error
    if not isinstance(said, list):
        raise ConfigError(f"{path}: expected a list of expectations, found {type(said).__name__}", "See inlet/checks.py")
    entries = []
    for n, body in enumerate(said, start=1):
        place = f"{path}: entry {n}"
        if isinstance(body, dict):
            place += f" ({body.get('table')}, {body.get('expect')})"
        try:
            entries.append((place, Entry.model_validate(body)))
        except ValidationError as error:
            text = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'here'}: {p['msg']}" for p in error.errors())
            raise ConfigError(f"{place}: {text}", "An entry says table, expect, kwargs, severity and why") from error
    return entries


def expand(entries, contracts) -> list[Expected]:
    """Entries with a `*` once per contract, those with {key_column} once per key column, words filled in."""
    expected = []
    for place, entry in entries:
        for contract in contracts if entry.table.startswith("*") else [None]:
            table = f"gold.{contract.name}{entry.table[1:]}" if contract else entry.table
            per_column = contract and "{key_column}" in str(entry.kwargs)
            for key_column in contract.key if per_column else [None]:
                kwargs = {name: _filled(value, contract, key_column) for name, value in entry.kwargs.items()}
                expected.append(Expected(table, contract, entry, kwargs, place))
    return expected


def _filled(value, contract, key_column):
    if isinstance(value, list):
        return [_filled(v, contract, key_column) for v in value]
    if not isinstance(value, str):
        return value
    if value in LISTS:
        return LISTS[value]
    if contract:
        value = value.replace("{key_column}", key_column or "").replace("{key}", ", ".join(f"`{k}`" for k in contract.key))
    return value


def build(suite: list[Expected]) -> list:
    """The Great Expectations object of each expectation, in the same order.

    Raises: ConfigError for a name or kwarg it does not know.
    """
    _quiet()
    from great_expectations.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.registry import get_expectation_impl

    severity = {"error": "critical", "warn": "warning"}
    built = []
    for n, expected in enumerate(suite):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", expected.entry.expect).lower()
        try:
            kind = get_expectation_impl(name)
            built.append(kind(**expected.kwargs, severity=severity[expected.entry.severity], notes=expected.entry.why,
                              meta={"n": n}))
        except ExpectationNotFoundError as error:
            raise ConfigError(f"{expected.place}: Great Expectations has no {expected.entry.expect!r}",
                              "Take a name from its gallery of expectations") from error
        except (ValueError, TypeError) as error:       # pydantic 1's ValidationError is a ValueError
            text = "; ".join(f"{p['loc'][0]}: {p['msg']}" for p in error.errors()) if hasattr(error, "errors") else str(error)
            raise ConfigError(f"{expected.place}: kwargs do not fit: {text}", "Mend the entry") from error
    return built


def _quiet() -> None:
    """Import Great Expectations so that it neither calls home nor talks."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"       # before its import: no call leaves this machine
    import great_expectations.data_context.types.base  # noqa: F401  sets its own level when imported

    for name in ("great_expectations", "great_expectations.data_context.types.base", "py4j"):
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)      # what cannot run is told in its result


def _contracts(project, spark, step: str, names) -> list:
    if step != "gold":
        return []
    if names is None:
        there = {row.tableName for row in spark.sql("show tables in gold").collect()}
        return [t for t in project.tables.values() if any(name.startswith(f"{t.name}__") for name in there)]
    known = {t.name: t for t in project.tables.values()} | project.tables
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"No contract is named {', '.join(unknown)}", f"Known: {', '.join(sorted(known))}")
    return [known[name] for name in names]


def _check_table(spark, table: str, suite: list[Expected], built: list, batch_ids):
    """Result fields and the page (None without one) of one table: all its expectations in one validation."""
    if not spark.catalog.tableExists(table):
        return [_fields(e, False, NO_TABLE, None, None, "error") for e in suite], None
    rows, where = _rows(spark, table, suite[0].contract, batch_ids)
    rows = _slim(rows, suite).persist()                # dozens of small jobs follow: 1.5 s instead of 5
    try:
        if rows.isEmpty():
            return [_fields(e, True, NO_ROWS, 0, None) for e in suite], None
        validated = _validate(rows, table, built)
    finally:
        rows.unpersist()
    by_n = {r.expectation_config.meta["n"]: r for r in validated.results}
    return [_result_fields(e, by_n[b.meta["n"]], where) for e, b in zip(suite, built)], _page(validated)


def _rows(spark, table: str, contract, batch_ids):
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
    if not spark.catalog.tableExists(log_table) or not {"before", "after", "batch_id"} <= set(spark.table(log_table).columns):
        return rows, table
    key = ", ".join(f"`{k}`" for k in ("source", *contract.key))
    images = " union ".join(f"select source, {', '.join(f'{image}.`{k}`' for k in contract.key)} from {log_table} "
                            f"where {batches} and {image} is not null" for image in ("before", "after"))
    no_key = " or ".join(f"`{k}` is null" for k in contract.key)        # a null is in no list
    where = f"(select * from {table} where ({key}) in ({images}) or {no_key})"
    return spark.sql(f"select * from {where}"), where


def _slim(rows, suite: list[Expected]):
    """Only the columns that the suite names; of binary and variant ones only whether they are null."""
    from pyspark.sql import functions as F

    said = set(re.findall(r"\w+", " ".join(str(e.kwargs) for e in suite).lower()))
    fields = [f for f in rows.schema if f.name.lower() in said] or rows.schema.fields[:1]
    return rows.select([F.when(F.col(f"`{f.name}`").isNotNull(), True).alias(f.name)
                        if f.dataType.typeName() in ("binary", "variant") else F.col(f"`{f.name}`") for f in fields])


def _validate(rows, table: str, built: list):
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_spark("inlet", persist=False).add_dataframe_asset(table)
    suite = context.suites.add(gx.ExpectationSuite(table, expectations=built))
    if len(suite.expectations) != len(built):
        raise ConfigError(f"{table}: {len(built)} expectations are declared, Great Expectations took {len(suite.expectations)}",
                          "Two entries say the same; keep one")
    definition = context.validation_definitions.add(gx.ValidationDefinition(
        name=table, data=asset.add_batch_definition_whole_dataframe("rows"), suite=suite))
    return definition.run(batch_parameters={"dataframe": rows}, result_format="SUMMARY")


def _fields(expected: Expected, success, observed, count, rows_sql, severity=None) -> dict:
    kwargs = expected.kwargs
    column = kwargs.get("column") or kwargs.get("unexpected_rows_query") or ", ".join(map(str, kwargs.get("column_list") or []))
    return {"table": expected.table, "expectation": expected.entry.expect, "column": column or None, "success": success,
            "observed": observed, "severity": severity or expected.entry.severity, "unexpected_count": count,
            "why": expected.entry.why, "rows_sql": rows_sql}


def _result_fields(expected: Expected, result, where: str) -> dict:
    trouble = _trouble(result.exception_info)
    if trouble:
        return _fields(expected, False, f"could not run: {trouble}", None, None, "error")
    said, query = result.result, expected.kwargs.get("unexpected_rows_query")
    count = said.get("observed_value") if query else said.get("unexpected_count")
    examples = said.get("partial_unexpected_list") or []
    observed = f"{count} rows" if query else ", ".join(map(repr, examples[:5])) or str(said.get("observed_value", ""))
    rows_sql = None if result.success else _rows_sql(expected.kwargs, examples, where)
    return _fields(expected, bool(result.success), observed, count, rows_sql)


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
    literals = ", ".join("'" + v.replace("'", "\\'") + "'" if isinstance(v, str) else str(v) for v in dict.fromkeys(values))
    return f"select * from {where} where " + (f"`{column}` in ({literals})" if literals else f"`{column}` is null")


def _page(validated) -> str:
    """Great Expectations' page of one validation, without what it would load from the network."""
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    page = DefaultJinjaPageView().render(ValidationResultsPageRenderer(run_info_at_end=True).render(validated))
    page = re.sub(FROM_NETWORK, "", page)
    return page.replace("</head>", f"<style>{STYLE}</style></head>", 1)


FROM_NETWORK = (r"(?s)url\(.?https?:[^)]*\)|<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<footer.*?</footer>"
                r"|<a\b[^>]*newsletter.*?</a>")
STYLE = ("body{font:14px sans-serif;margin:2em;max-width:80em}table{border-collapse:collapse}td,th{border:1px solid #ccc;"
         "padding:.3em .6em;text-align:left;vertical-align:top}.failed{color:#b00}.warned{color:#a60}.held{color:#070}")


def _keep(project, spark, step: str, run_id: int, results: list[CheckResult], pages: dict) -> str:
    """Append the results, write the pages and the index. Out: path of the index."""
    if not spark.catalog.tableExists("checks.results"):
        spark.sql(lake.create_sql("checks.results", RESULTS))
    if results:
        lake.append(spark.createDataFrame(_arrow(results)), "checks.results", f"checks.{step}", run_id)
    docs = project.lakehouse_path("checks", "docs")
    for table, page in pages.items():
        if page:
            _write(f"{docs}/{run_id}/{table}.html", page)
    lines = [_line([r for r in results if r.table == table], bool(page)) for table, page in pages.items()]
    _write(f"{docs}/index.html", _index(lines + _lines(f"{docs}/index.html")[:NUM_INDEX]))
    return f"{docs}/index.html"


def _arrow(results: list[CheckResult]):
    import pyarrow as pa

    types = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "timestamp": pa.timestamp("us", tz="UTC"),
             "array<bigint>": pa.list_(pa.int64())}
    return pa.Table.from_pylist([r._asdict() for r in results], pa.schema([(c.name, types[c.type]) for c in RESULTS]))


def _line(results: list[CheckResult], has_page: bool) -> str:
    """One table of one run in the index."""
    first, name = results[0], html.escape(results[0].table)
    failed = sum(not r.success and r.severity == "error" for r in results)
    warned = sum(not r.success and r.severity == "warn" for r in results)
    state = "failed" if failed else "warned" if warned else "held"
    link = f"<a href='{first.run_id}/{name}.html'>{name}</a>" if has_page else name
    batches = ", ".join(map(str, first.batch_ids or ["all"]))
    outcome = f"<b class={state}>{state}</b>" + (f" ({NO_ROWS})" if first.observed == NO_ROWS else "")
    cells = [f"{first.checked_at:%Y-%m-%d %H:%M:%S}", first.step, batches, link, outcome, len(results), failed, warned]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _index(lines: list[str]) -> str:
    """The list of what was checked, newest first. It is its own memory: a query over all results would grow with them."""
    names = ("at (UTC)", "step", "batches", "table", "result", "expectations", "failed", "warned")
    heads = "".join(f"<th>{name}</th>" for name in names)
    return (f"<!doctype html><meta charset=utf-8><title>Checks</title><style>{STYLE}</style><h1>Checks</h1>\n<p>Newest first. "
            f"All of them: <code>select * from checks.results</code></p>\n<table>\n<tr>{heads}</tr>\n"
            + "\n".join(lines) + "\n</table>\n")


def _lines(index: str) -> list[str]:
    import fsspec

    files, path = fsspec.core.url_to_fs(index)
    if not files.exists(path):
        return []
    return [line for line in files.cat_file(path).decode().splitlines() if line.startswith("<tr><td>")]


def _write(path: str, text: str) -> None:
    import fsspec

    files, path = fsspec.core.url_to_fs(path)
    files.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
    files.pipe_file(path, text.encode())


def _raise_on_errors(step: str, failed: list[CheckResult], index: str) -> None:
    if not failed:
        return
    lines = [f"{r.table}: {r.expectation}({r.column}) does not hold, "
             f"{'?' if r.unexpected_count is None else r.unexpected_count} unwanted rows, observed {r.observed}; {r.why}"
             + (f"\n  see them: {' '.join(r.rows_sql.split())}" if r.rows_sql else "") for r in failed]
    raise CheckFailed(f"{len(failed)} check{'s' * (len(failed) > 1)} of {step} failed:\n" + "\n".join(lines) + "\n",
                      f"Pages: {index}; table: checks.results where run_id = {failed[0].run_id}")
