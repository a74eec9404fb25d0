"""Gold: silver's changes -> before_after, past and current per table, by dbt in the session that is there.

The semantics are dbt macros (dbt/macros/fold), proven against tests/reference.py. This module only decides what to run:
a table runs when the ledger (silver.batches) is ahead of gold.applied for a source that feeds it *and* silver holds
changes of it. Everything a run needs is in those two tables, so a run that dies is finished by the next one.
"""

import functools
import time
from dataclasses import dataclass

from inlet import lake
from inlet.config import Project
from inlet.errors import InletError
from inlet.spark import pace
from inlet.table import Table

STEPS = ("before_after", "past", "current")            # in order; the views over them are made once
VIEWS = ("history", "anomalies")
SMALL_CHANGES, SMALL_BYTES = 20_000, 64 << 20          # new changes, and bytes of a table, up to which planning is what costs
NUM_APPLIED = 1000             # rows of gold.applied, one small file a batch, above which a run folds it to the greatest


@dataclass(frozen=True)
class Built:
    """What became of one model in a run."""

    model: str
    status: str                # success, error, skipped
    message: str
    seconds: float


def behind(ledger: list[dict], applied: list[dict], tables) -> dict[str, dict[str, tuple[int, int]]]:
    """Table name -> source -> (applied batch, whole batch) wherever gold is behind. In: rows of silver.batches, gold.applied."""
    whole: dict[str, int] = {}
    for row in ledger:
        whole[row["source"]] = max(row["batch_id"], whole.get(row["source"], -1))
    done: dict[tuple, int] = {}
    for row in applied:
        place = row["table_name"], row["source"]
        done[place] = max(row["through_batch_id"], done.get(place, -1))
    lags = {t.name: {s: (done.get((t.name, s), -1), b) for s, b in whole.items()
                     if b > done.get((t.name, s), -1) and (not t.sources or s in t.sources)} for t in tables}
    return {name: sources for name, sources in lags.items() if sources}


def pending(project: Project) -> list[str]:
    """Tables that may have changes gold does not hold, told without Spark. Empty means that a run would do nothing."""
    lakehouse = project.lakehouse_path()
    return sorted(behind(lake.peek(lakehouse, "silver.batches", ["source", "batch_id"]),
                         lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_batch_id"]),
                         project.tables.values()))


def run(project: Project, spark, tables: list[str] | None = None, full_refresh: bool = False) -> list[Built]:
    """Bring the tables' gold up to the ledger. In: table names (None: all). Out: one row per model that ran.

    Raises: InletError naming the models that failed; what others did stays, and the next run goes on from there.
    """
    wanted = [t for t in project.tables.values() if tables is None or t.name in tables]
    with pace(spark, is_small=not full_refresh and _is_small(project, wanted)):
        return _run(project, spark, wanted, full_refresh)


def _is_small(project: Project, tables: list[Table]) -> bool:
    lakehouse = project.lakehouse_path()
    ledger = lake.peek(lakehouse, "silver.batches", ["source", "batch_id", "num_changes"])
    lags = behind(ledger, lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_batch_id"]), tables)
    new = {(row["source"], row["batch_id"]): row["num_changes"] or 0 for row in ledger for sources in lags.values()
           if row["batch_id"] > sources.get(row["source"], (row["batch_id"], 0))[0]}
    return sum(new.values()) <= SMALL_CHANGES and all(lake.size_bytes(lakehouse, f"gold.{name}__current") <= SMALL_BYTES for name in lags)


def _run(project: Project, spark, wanted: list[Table], full_refresh: bool) -> list[Built]:
    ledger = [r.asDict() for r in spark.sql("select source, max(batch_id) as batch_id from silver.batches group by source").collect()]
    there = {r.tableName for r in spark.sql("show tables in gold").collect()}
    applied = _applied(spark) if "applied" in there else []
    lags = {} if full_refresh else behind(ledger, applied, wanted)
    changed = wanted if full_refresh else _changed(spark, wanted, lags, there)
    models = [f"{t.name}__{step}" for t in changed for step in STEPS]
    models += [f"{t.name}__{view}" for t in changed for view in VIEWS if f"{t.name}__{view}" not in there]
    built = _dbt(project, ["run", "--select", *models, *(["--full-refresh"] if full_refresh else [])]) if models else []
    failed = [b for b in built if b.status != "success"]
    if failed:
        raise InletError("gold: " + "; ".join(f"{b.model}: {b.message}" for b in failed if b.status != "skipped"),
                         "Mend the cause and run again: gold goes on from where it stopped")
    if built or lags:
        _mark(spark, behind(ledger, _applied(spark), wanted))
    if sum(row["num_rows"] for row in applied) > NUM_APPLIED:
        spark.sql("insert overwrite table gold.applied select table_name, source, max(through_batch_id), max(through_change_seq), "
                  "max(applied_at) from gold.applied group by table_name, source")
    return built


def _applied(spark) -> list[dict]:
    return [r.asDict() for r in spark.sql(
        "select table_name, source, max(through_batch_id) as through_batch_id, count(*) as num_rows from gold.applied "
        "group by table_name, source").collect()]


def _changed(spark, tables: list[Table], lags: dict, there: set[str]) -> list[Table]:
    """Those tables for which silver holds something new, and those that gold has not made yet."""
    new = [t for t in tables if f"{t.name}__current" not in there]
    if not lags:
        return new
    least = min(after for sources in lags.values() for after, _ in sources.values())
    found = {(r.name, r.source): r.batch_id for r in spark.sql(f"""
        select concat(source_schema, '.', source_table) as name, source, max(batch_id) as batch_id
        from (select source, source_schema, source_table, batch_id from silver.changes
              union all
              select source, source_schema, source_table, batch_id from silver.control_events where kind = 'empty_load')
        where batch_id > {least} group by all""").collect()}
    return [t for t in tables if t in new or any(found.get((t.table, s), -1) > after for s, (after, _) in lags.get(t.name, {}).items())]


def _mark(spark, lags: dict) -> None:
    """Note for tables without changes that gold is as far as the ledger, so that the next run need not look."""
    rows = [f"('{name}', '{source}', {whole})" for name, sources in lags.items() for source, (_, whole) in sources.items()]
    if rows:
        spark.sql("insert into gold.applied (table_name, source, through_batch_id, applied_at) "
                  f"select *, current_timestamp() from values {', '.join(rows)}")


@functools.lru_cache(maxsize=4)
def _manifest(folder: str, state: tuple):
    """dbt's parsed project; kept within a process for as long as its files stay as they are."""
    from dbt.cli.main import dbtRunner

    parsed = dbtRunner().invoke(["--quiet", "parse", *_where(folder)])
    if not parsed.success:
        raise InletError(f"dbt cannot read {folder}: {parsed.exception}", "Run `inlet generate` and look at the file it names")
    return parsed.result


def _where(folder: str) -> list[str]:
    return ["--project-dir", folder, "--profiles-dir", folder, "--target", "inlet"]


def _dbt(project: Project, command: list[str]) -> list[Built]:
    from dbt.cli.main import dbtRunner

    folder = project.root / "dbt"
    files = [p for p in folder.rglob("*") if p.suffix in (".sql", ".yml") and "target" not in p.parts]
    manifest = _manifest(str(folder), tuple(sorted((str(p), p.stat().st_mtime_ns) for p in files)))
    started = time.perf_counter()
    said = dbtRunner(manifest=manifest).invoke(["--quiet", "--no-write-json", "--no-populate-cache", "--no-use-colors",
                                                *command, *_where(str(folder))])
    if said.result is None:
        raise InletError(f"dbt stopped after {time.perf_counter() - started:.0f} s: {said.exception}", "See dbt/target/logs/dbt.log")
    return [Built(r.node.name, str(r.status), (r.message or "").strip(), r.execution_time) for r in said.result.results]
