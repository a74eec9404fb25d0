"""`inlet maintain`: what keeps the tables of a lakehouse cheap to read, and what of it a run does by itself.

It holds the lock of a run. What is due is in `lake.maintenance`, what must be kept in `publish.kept_versions`. Small
tables need no JVM; Spark is started where a table is large, or has what delta-rs does not write.
"""

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from inlet import lake, storage
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.gold import build
from inlet.lake import maintenance, table_state
from inlet.lake.compaction import SMALL_TABLE
from inlet.lake.maintenance import NUM_DUE, Plan
from inlet.lake.table_state import Kept
from inlet.log import Log
from inlet.publish import kept_versions, pins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END_SECONDS = 0.5  # that the end of a run takes at most, but for the table at hand
# tables that every run may write; those of gold are known by the run
OF_RUNS = (
    "bronze.blocks",
    "bronze.files",
    "bronze.lookups",
    "bronze.messages",
    "silver.batches",
    "silver.changes",
    "silver.control_events",
    "silver.rejects",
    "silver.table_versions",
    "silver.transactions",
    "silver.waiting",
    "gold.applied",
    "gold.published",
    "checks.results",
)


def hours_of(words: str) -> int:
    """Hours of `--retain`: 168h or 7d. Raises: ConfigError for other words, and for less than views need."""
    match = re.fullmatch(r"(\d+)([hd])", words)
    if not match:
        raise ConfigError(f"--retain {words} is no time", "Write hours or days, as 168h or 7d")
    hours = int(match[1]) * (24 if match[2] == "d" else 1)
    if hours < maintenance.LEAST_HOURS:
        raise ConfigError(
            f"--retain {words} is too short: queries that run, and public views that follow compacted tables once a "
            f"day, read files of the last {maintenance.LEAST_HOURS} hours",
            f"Give --retain {maintenance.LEAST_HOURS}h or more; versions that the published point and pins read are "
            "kept at any age",
        )
    return hours


def plans(project: Project, hours: int = maintenance.RETAIN_HOURS) -> list[Plan]:
    """What is due for each table, found without Spark. In: for how long files that newer versions lack are kept."""
    if storage.is_managed(project.lakehouse_path()):
        raise ConfigError(
            f"The tables of {project.lakehouse_path()} are maintained by their catalog",
            "Turn on its own upkeep, such as predictive optimization",
        )
    lakehouse, now, kept = project.lakehouse_path(), time.time(), kept_versions.kept(project)
    unknown = kept_versions.unnoted(project)
    found = []
    for table in lake.all_tables(lakehouse):
        state = table_state.read(lakehouse, table, kept.get(table, Kept({}, set(), set())), hours, now)
        if unknown and state.removable and table.startswith(("gold.", "silver.")):
            why = f"the pin {unknown[0]} of an earlier Inlet may read them"
            num_bytes = len(state.removable), sum(state.removable.values())
            state = replace(state, removable={}, kept=state.kept | {why: num_bytes})
        found.append(maintenance.plan(state))
    return found


def maintain(project: Project, log: Log, hold, hours: int) -> list[Plan]:
    """Do what is due. In: what `lake.writing` gave; as of `plans`. Out: what was done."""
    spark = None
    if kept_versions.unnoted(project):
        spark = _session(project, hold)
        pins.note(project, spark)
    due = plans(project, hours)
    if spark is None and any(plan.needs_spark for plan in due):
        spark = _session(project, hold)
    for plan in due:
        if plan.does:
            with log.step("maintain", table=plan.state.table, does=", ".join(plan.does).replace("_", " ")):
                carry_out(project.lakehouse_path(), plan, spark)
    return due


def carry_out(lakehouse: str, plan: Plan, spark: "SparkSession | None") -> None:
    """Do what is due for one table: what is kept first, then what is written, then what is removed."""
    table = plan.state.table
    if plan.keep_log:
        maintenance.keep_log(lakehouse, table, plan.log_days, spark)
    if spark and (plan.cluster or plan.compact and plan.needs_spark):
        maintenance.optimize(spark, lakehouse, table, plan.state.key if plan.cluster else ())
    elif plan.compact:
        maintenance.compact(lakehouse, table)
    if plan.checkpoint:
        maintenance.checkpoint(lakehouse, table)
    if plan.vacuum:
        maintenance.remove(lakehouse, plan.state)


def after_run(project: Project, spark: "SparkSession", built: list[str], log: Log) -> None:
    """Write small files together where a run has left many: one look at each table that it may have written, and less
    than a second of work. An error is no error of the run. In: names of the gold tables that it has built."""
    lakehouse, until = project.lakehouse_path(), time.monotonic() + END_SECONDS
    if storage.is_managed(lakehouse):
        return
    of_gold = [f"gold.{t.name}__{step}" for t in project.tables.values() if t.name in built for step in build.steps(t)]
    try:
        for table in (*OF_RUNS, *of_gold):
            if time.monotonic() > until:
                return
            if lake.newest(lakehouse, table) is None:
                continue
            plan = maintenance.plan(table_state.read_sizes(lakehouse, table, NUM_DUE), NUM_DUE)
            if plan.compact and maintenance.small_bytes(plan.state) <= SMALL_TABLE:
                with log.step("maintain", table=table, does="compact", files=len(plan.state.sizes)):
                    carry_out(lakehouse, plan, spark)
    except Exception as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        log.say({"step": "warning", "maintenance": text, "remedy": "inlet maintain"})


def _session(project: Project, hold) -> "SparkSession":
    from inlet.lake.spark import session

    spark = session(project.lakehouse_path())
    hold(spark)
    return spark
