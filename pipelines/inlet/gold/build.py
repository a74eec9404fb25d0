"""Gold: silver's changes -> before_after, past and current per table, by dbt in the session that is there.

The semantics are dbt macros (dbt/macros/fold), proven against tests/reference.py. This module only decides what to run:
a table runs when the ledger (silver.batches) names it in a batch that gold.applied does not have. Everything a run
needs is in those two tables, so a run that dies is finished by the next one.
"""

import json
import re
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inlet import checks, lake, storage
from inlet.config import Project
from inlet.errors import ConfigError, InletError
from inlet.gold import dbt, evolve, generate, progress, small_batches
from inlet.gold.queries import MADE, STEPS
from inlet.lake import engine, entries, spark_errors
from inlet.lake.spark import DELETE_EXISTS, SMALL, settable, small_query_settings
from inlet.silver import table_versions
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = ("history", "anomalies")
SMALL_CHANGES, SMALL_BYTES = 60_000, 64 << 20  # new changes, and bytes of a table, up to which planning is what costs
MAX_THREADS = 8  # that plan small tables side by side
KEPT = re.compile(
    r"\w+__folded_(progress|touched|timeline|threads_\d+)"
)  # tables that do not outlive a batch (macro `keep`)
# rows of gold.applied, one small file a batch, beyond two per table and source, above which a run folds it to these:
# its own, and those of before
NUM_APPLIED = 1000


def steps(table: Table) -> tuple[str, ...]:
    """The tables of its gold: without a key there is no row to follow, so it has a log alone."""
    return STEPS if table.key else STEPS[:1]


def pending(project: Project) -> list[str]:
    """Tables that have changes gold does not hold, or that gold has not made yet. Empty: nothing to do. No Spark."""
    ledger, applied = progress.state(project)
    unmade = {
        t.name
        for t in project.tables.values()
        if ledger
        and (
            any(not lake.exists(project.lakehouse_path(), f"gold.{t.name}__{step}") for step in steps(t))
            or evolve.lags(project, t)
        )
    }
    return sorted(unmade | progress.lagging(ledger, applied, project.tables.values()).keys())


def run(
    project: Project,
    spark: "SparkSession",
    tables: list[str] | None = None,
    full_refresh: bool = False,
    tell=lambda doing, **parts: None,
    after=lambda done: None,
) -> list[dbt.Built]:
    """Bring the tables' gold up to the ledger. In: table names (None: all); a function called with each model that
    begins, and with each table that is done (as of `Log.now`); one that is called with the tables whose gold is up to
    the ledger, each with the last batch that has it. Out: one row per model that ran.

    Raises: InletError naming the models that failed; what others did stays, and the next run goes on from there.
    """
    wanted = [t for t in project.tables.values() if tables is None or t.name in tables]
    _check(project, wanted)
    ledger, applied = progress.state(project)
    enter(project, spark, wanted)
    problems = {} if full_refresh else _evolve(project, spark, wanted)
    wanted = [t for t in wanted if t.name not in problems]
    lags = progress.lagging(ledger, [] if full_refresh else applied, wanted)
    new = progress.new(ledger, lags)
    is_few = sum(row["num_changes"] or 0 for row in new) <= SMALL_CHANGES
    is_light = is_few and progress.size_bytes(new) <= small_batches.NEW_BYTES and entries.are_ours(spark)
    is_small = (
        is_few
        and max((lake.size_bytes(project.lakehouse_path(), f"gold.{name}__current") for name in lags), default=0)
        <= SMALL_BYTES
    )
    names, lakehouse, by_name = {t.name for t in wanted}, project.lakehouse_path(), {t.name: t for t in wanted}
    greatest = progress.greatest(ledger, {name for t in wanted for name in t.names})
    _give_vectors(project, spark, [by_name[name] for name in lags])
    existing = _without_kept(project, spark, {r.tableName for r in spark.sql("show tables in gold").collect()})
    changed = [
        t
        for t in wanted
        if full_refresh or t.name in lags or not existing.issuperset(f"{t.name}__{s}" for s in steps(t))
    ]
    new_tables = {t.name for t in changed if is_light and _is_new(lakehouse, t, existing, applied)}
    least_at = checks.next_moment(project, "gold")
    state: dict[str, Any] = {
        "least_at": least_at.isoformat() if least_at > datetime.now(UTC) else None,
        "ledger": greatest,
        "applied": [list(row.values()) for row in applied if row["table_name"] in names],
        "has_delete_exists": engine.takes(spark, DELETE_EXISTS, "true"),
        "few": settable(spark, SMALL) if is_few and not is_small else {},
        "kept": "parquet" if storage.is_local(lakehouse) else "delta",
        "small": small_batches.states(project, changed, lags, new_tables) if is_light and not full_refresh else {},
    }
    if not full_refresh:
        made = {t.name: [f"{t.name}__{step}" for step in (MADE if t.key else STEPS[:1])] for t in changed}
        state["existing"] = {
            name: tables
            for name, tables in made.items()
            if name in new_tables & state["small"].keys()  # the materialization of the log creates them
            or f"{name}__forgetting" not in existing
            and existing.issuperset(tables)
        }
    with (
        small_query_settings(spark, is_small),
        dbt.offered(state, small_batches.SmallBatches(spark, lakehouse, least_at)),
    ):
        is_truncating = full_refresh or any(
            name.endswith("__forgetting") for name in existing
        )  # deletes from gold.applied, which others append to
        threads = min(engine.num_tasks(spark), MAX_THREADS) if is_small and not is_truncating else 1
        models = [f"{t.name}__{step}" for t in changed for step in steps(t)]
        models += [
            f"{t.name}__{view}"
            for t in wanted
            if t.key and (t in changed or f"{t.name}__past" in existing)
            for view in VIEWS
            if full_refresh or _is_stale(spark, t, f"{t.name}__{view}", existing)
        ]
        asked = ["run", "--threads", str(threads), "--select", *models]
        built = _models(project, asked + ["--full-refresh"] * full_refresh, models, tell) if models else []
        failed, done = [b for b in built if b.status != "success"], {b.model for b in built if b.status == "success"}
        after(
            [
                (table, max((last for name, _, last in greatest if name in table.names), default=-1))
                for table in (wanted if ledger else ())
                if table not in changed or done.issuperset(f"{table.name}__{step}" for step in steps(table))
            ]
        )
        if failed:
            messages = "; ".join(f"{b.model}: {b.message}" for b in failed if b.status != "skipped")
            remedy = "Fix the cause and run again: gold goes on from where it stopped"
            problem = InletError(f"gold: {messages}", remedy)
            raise spark_errors.worded(problem) or problem
        _fold_applied(spark, applied, least_at)
    if problems:  # after the other tables have had their turn
        raise ConfigError(
            "; ".join(p.message for p in problems.values()),
            "; ".join(dict.fromkeys(p.remedy for p in problems.values())),
        )
    return built


def enter(project: Project, spark: "SparkSession", tables: list[Table]) -> None:
    """Give tables of gold their entries in the catalog that a run made and died before it entered them."""
    if not entries.are_ours(spark):
        return
    entered = {row.tableName for row in spark.sql("show tables in gold").collect()}
    for name in {f"{table.name}__{step}" for table in tables for step in MADE} - entered:
        if lake.exists(project.lakehouse_path(), f"gold.{name}"):
            entries.enter(spark, project.lakehouse_path(), f"gold.{name}")


def _is_new(lakehouse: str, table: Table, existing: set[str], applied: list[dict]) -> bool:
    """True if gold has nothing of a table. In: the tables of gold in the catalog, and the rows of gold.applied."""
    names = [f"{table.name}__{step}" for step in (*MADE, "forgetting")]
    return (
        existing.isdisjoint(names)
        and not any(lake.exists(lakehouse, f"gold.{name}") for name in names)
        and not any(row["table_name"] == table.name for row in applied)
    )


def _give_vectors(project: Project, spark: "SparkSession", tables: list[Table]) -> None:
    """Turn deletion vectors on for large tables of versions. Not with a column `_metadata`, because Delta reads the
    rows of a vector by its own of that name."""
    for table in tables:
        if table.key and evolve.METADATA not in map(str.lower, table.column_names):
            for step in ("past", "current"):
                lake.give_vectors(spark, project.lakehouse_path(), f"gold.{table.name}__{step}")


def _models(project: Project, command: list[str], models: list[str], tell) -> list[dbt.Built]:
    """Run models, and tell what is done: a table when the last of its models has ended, with its seconds."""
    left: dict[str, set[str]] = {}
    for model in models:
        left.setdefault(model.rsplit("__", 1)[0], set()).add(model)
    began, num = {}, len(left)

    def on_begin(model: str) -> None:
        began.setdefault(model.rsplit("__", 1)[0], time.monotonic())
        tell(model, done=num - len(left), of=num)

    def on_end(model: str) -> None:
        table = model.rsplit("__", 1)[0]
        if table in left:
            left[table].discard(model)
            if not left[table]:
                del left[table]
                seconds = round(time.monotonic() - began.get(table, time.monotonic()), 2)
                tell(model, done=num - len(left), of=num, finished={"table": table, "seconds": seconds})

    return dbt.run(project, command, on_begin, on_end)


def _fold_applied(spark: "SparkSession", applied: list[dict], least_at: datetime) -> None:
    """Keep one row per table and source where there are many, and one of this run: no check has seen that. In: the
    moment from which on this run applied."""
    if len(applied) - 2 * len({(row["table_name"], row["source"]) for row in applied}) > NUM_APPLIED:
        spark.sql(
            "insert overwrite table gold.applied select table_name, source, max(through_batch_id), "
            "max(through_change_seq), max(applied_at) from gold.applied "
            f"group by table_name, source, applied_at >= timestamp'{least_at.isoformat()}'"
        )


def _check(project: Project, tables) -> None:
    """Do models, contracts and what silver has read say the same? Raises: ConfigError."""
    table_versions.check(project)
    names = [*(f"/{t.name}/" for t in tables), *(f"dbt/{folder}/" for folder in generate.MACROS)]
    if stale := [path for path in generate.stale(project) if any(name in path for name in names)]:
        files = ", ".join(stale[:3])
        raise ConfigError(f"{files}: not what the contracts say or this Inlet has", "Run `inlet generate`")


def _evolve(project: Project, spark: "SparkSession", tables) -> dict[str, ConfigError]:
    """Bring the tables' gold to their contracts. Out: table name -> why that takes a rebuild."""
    problems = {}
    for table in tables:
        if evolve.lags(project, table):
            try:
                statements = evolve.steps(project, table)
            except ConfigError as problem:
                problems[table.name] = problem
                continue
            for statement in statements:
                spark.sql(statement)
    return problems


def _is_stale(spark: "SparkSession", table: Table, view: str, existing: set[str]) -> bool:
    """Is a view missing, or one with other columns than declared? One over a table that is missing will be right again
    with it.
    """
    from pyspark.errors import AnalysisException

    declared = [(name, type_) for name, type_, _ in generate.models(table)[view][2]]
    try:
        return view not in existing or spark.table(f"gold.{view}").dtypes != declared
    except AnalysisException:
        return existing.issuperset(f"{table.name}__{step}" for step in steps(table))


def verify(project: Project, spark: "SparkSession", name: str, limit: int) -> tuple[int, int, list[dict]]:
    """Compare a table's gold with a fold of all that silver holds of it, made from nothing. In: the name of its
    contract, and how many differences to tell. Out: versions compared, differences, and the first of them: kind,
    source, key, change_seq, difference.

    Raises: InletError where gold is behind silver, for it could only differ.
    """
    _check(project, [t for t in project.tables.values() if t.name == name])
    if not lake.exists(project.lakehouse_path(), f"gold.{name}__before_after"):
        return 0, 0, []
    if name in pending(project):
        raise InletError(f"gold of {name} is behind silver", "Run `inlet run` first")
    _without_kept(project, spark, {r.tableName for r in spark.sql("show tables in gold").collect()})
    outcome = dbt.invoke(project, ["run-operation", "verify", "--args", json.dumps({"name": name})])
    if not outcome.success:
        raise InletError(
            f"gold of {name} could not be verified: {outcome.result.results[0].message}", "See dbt/target/logs/dbt.log"
        )
    differences = f"gold.{name}__verify_differences"
    rows = [
        r.asDict()
        for r in spark.sql(f"select * from {differences} order by source, key, change_seq limit {limit + 1}").collect()
    ]
    num = spark.sql(f"select count(*) from {differences}").first()[0] - 1
    for table in ("log", "versions", "differences"):
        spark.sql(f"drop table if exists gold.{name}__verify_{table}")
    compared = next(row for row in rows if row["kind"] == "compared")
    return int(compared["difference"]), num, [row for row in rows if row is not compared]


def _without_kept(project: Project, spark: "SparkSession", existing: set[str]) -> set[str]:
    """Take away what a run that died has kept; its folder too, which no catalog knows where it died while it wrote. In
    and out: the tables of gold."""
    left = set(filter(KEPT.fullmatch, existing))
    for name in left:
        spark.sql(f"drop table gold.{name}")
    if storage.is_local(project.lakehouse_path()):
        for folder in (Path(project.lakehouse_path()) / "gold").glob("*__folded_*"):
            if KEPT.fullmatch(folder.name):
                shutil.rmtree(folder)
    return existing - left
