"""One run: land, decode, build, publish, with a gate of checks behind each step. What a scheduler calls through `inlet
run`.

What there is to do is found without Spark; a run with nothing to do ends in a second. A gate checks the batches that no
passed check has seen, whichever run wrote them: a run that died before its gate leaves it to the next one, and a run
fails at the same gate until the data or the suite is fixed.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from inlet import bronze, checks, config, gold, publish, silver
from inlet.bronze import load_times, purged
from inlet.checks import suite
from inlet.commands import import_definitions, maintain, move_load, rejects, replay, run_counts, runs, warm
from inlet.commands.sql import command_of
from inlet.config import Project
from inlet.errors import AccountingError, CheckFailed, ConfigError
from inlet.gold import generate
from inlet.log import Log
from inlet.publish import live_view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATES = suite.STEPS  # with a gate of checks behind them
STEPS = (*GATES, "publish")
MAX_ROUNDS = 3  # of rejects that become due by what their own run has decoded


@dataclass
class Work:
    """What a run has to do."""

    plan: bronze.Plan
    unlanded: list[int] = field(default_factory=list)  # batches whose plan is written but which silver has not closed
    due: list[dict] = field(default_factory=list)  # rejects that waited for a contract, which has come
    tables: list[str] = field(default_factory=list)  # gold tables behind silver
    is_unchecked: bool = False  # is there a batch that no passed check has seen
    is_unpublished: bool = False  # ... that the published point does not know of
    sources: list = field(default_factory=list)  # that are looked at
    decoded: list[int] = field(default_factory=list)  # batches that the run has decoded so far

    def __bool__(self) -> bool:
        return bool(
            self.plan.files or self.unlanded or self.due or self.tables or self.is_unchecked or self.is_unpublished
        )


def steps_to_run(step: str | None, until: str | None) -> tuple[str, ...]:
    """The steps of `--step` or `--until`. Raises: ConfigError for a word that is no step."""
    for word in (step, until):
        if word and word not in STEPS:
            raise ConfigError(f"{word!r} is no step", f"Steps are {', '.join(STEPS)}")
    return (step,) if step else STEPS[: STEPS.index(until) + 1] if until else STEPS


def find_work(project: Project, steps: tuple[str, ...], sources: list[str], tables: list[str]) -> Work:
    """What there is to do, found without Spark, unless tasks on other machines read new files. Raises: ConfigError for
    an unknown source or table."""
    from inlet.lake.spark import session

    chosen = [config.known(project.sources, name, "source") for name in sources] or list(project.sources.values())
    wanted = project.table_names(tables)
    past = bronze.History(project)
    begun = partial(session, project.lakehouse_path())
    plan = bronze.plan_batch(project, chosen, past, spark=begun) if "bronze" in steps else bronze.Plan(0)
    purged.keep(project, plan, past)
    unlanded = silver.pending(project) if "silver" in steps or "bronze" in steps else []
    due = replay.due(project, [source.name for source in chosen]) if "silver" in steps else []
    behind = gold.pending(project) if "gold" in steps else []
    is_unpublished = "publish" in steps and not tables and publish.pending(project)
    return Work(
        plan,
        unlanded,
        due,
        [t for t in behind if not wanted or t in wanted],
        any(_owed(project, step, wanted) for step in steps if step in GATES),
        is_unpublished,
        chosen,
    )


def run(
    project: Project,
    work: Work,
    steps: tuple[str, ...],
    tables: list[str],
    log: Log,
    hold,
    command: str = "run",
    goes_on: bool = False,
) -> None:
    """Do the work. In: what `lake.writing` gave; the command that notes it; whether its process does more work later.
    Raises: CheckFailed at a gate, AccountingError in silver; what was done before stays done.
    """
    with runs.recorded(project, log, command, work.plan.unlisted):
        try:
            _run(project, work, steps, tables, log, hold, goes_on)
        finally:  # a run that ends at a gate has decoded, too
            say_rejects(project, work.decoded, log)


def _run(
    project: Project, work: Work, steps: tuple[str, ...], tables: list[str], log: Log, hold, goes_on: bool
) -> None:
    from inlet.lake.spark import session

    if "gold" in steps:
        check_models(project, tables, log)
    with log.step("spark"), warm.importing_checks():
        new_bytes = sum(map(project.size_of, work.plan.files))
        spark = session(project.lakehouse_path(), new_bytes=None if goes_on else new_bytes)
        hold(spark)
    wanted = project.table_names(tables)
    pending, stopped, behind = list(work.unlanded), None, list[str]()
    if "bronze" in steps or "silver" in steps:
        _finish_landing(project, spark, work, log)
    if "silver" in steps and work.due:  # before files are planned: what is framed again goes on from there
        pending.append(_replay(project, spark, work.due, log))
    if "bronze" in steps:
        pending += _bronze(project, spark, work, log)
    if "bronze" in steps or "silver" in steps:
        _gate(project, spark, "bronze", [], log)
    if "silver" in steps:
        stopped = _silver(project, spark, pending, work.decoded, log)
        stopped = stopped or _silver_again(project, spark, work, log)
    if work.decoded and not project.tables:
        log.say(dict(zip(("step", "tables", "remedy"), ("warning", *import_definitions.no_tables(project)))))
    if "silver" in steps or "gold" in steps:
        _gate(project, spark, "silver", [], log)
    if "gold" in steps:
        # a run that died behind its last commit may have left views that are missing or old: its checks are owed, too
        behind = [
            name
            for name in sorted({*gold.pending(project), *filter(None, _owed(project, "gold", wanted))})
            if not wanted or name in wanted
        ]
        if behind:
            with log.step("gold", tables=len(behind)) as figures:
                figures["models"] = len(build_gold(project, spark, behind, tell=log.now))
        else:
            gold.enter(project, spark, list(project.tables.values()))
        _gate(project, spark, "gold", wanted, log)
    if "publish" in steps:
        publish_views(project, spark, log)
    maintain.after_run(project, spark, behind, log)
    if stopped:
        raise stopped


def check_models(project: Project, tables: list[str], log: Log) -> None:
    """Say before the work that gold will refuse it, so that nobody waits to hear so. In: names of gold tables, none for
    all. Raises: ConfigError where models of one were never generated."""
    if missing := generate.missing(project, project.table_names(tables)):
        raise ConfigError(f"dbt has no models of {_some(missing)}", "Run `inlet generate` first")
    if stale := generate.stale(project):
        log.say(
            {
                "step": "warning",
                "models": f"{_some(stale)}: not what the contracts say or this Inlet has",
                "remedy": "inlet generate",
            }
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def say_rejects(project: Project, batches: list[int], log: Log) -> None:
    """One line of what was rejected in batches; none where nothing was."""
    if batches and (kinds := rejects.of_batches(project, batches)):
        log.say({"step": "rejects", "new": kinds.total(), "kinds": kinds, "see": "inlet rejects"})


def _silver(
    project: Project, spark: "SparkSession", pending: list[int], decoded: list[int], log: Log
) -> AccountingError | None:
    """Decode batches. A source whose codec loses something stops; the others go on. In: a list that gets the batches
    that are tried. Out: why one stopped."""
    stopped = None
    for batch_id in pending:
        decoded.append(batch_id)
        try:
            with log.step("silver", batch=batch_id) as figures:
                accounts = silver.run(project, spark, batch_id, log.now)
                for name in ("num_records", "num_changes", "num_repeats", "num_control", "num_rejected"):
                    figures[name.removeprefix("num_")] = sum(getattr(a, name) for a in accounts.values())
                run_counts.note_known(figures, accounts)
        except AccountingError as error:
            log.say({"step": "silver", "batch": batch_id, "stopped": error.message})
            stopped = stopped or error
    return stopped


def _silver_again(project: Project, spark: "SparkSession", work: Work, log: Log) -> AccountingError | None:
    """Decode the rejects again that what this run has decoded makes due, such as messages whose column list came after
    them. What is still due after MAX_ROUNDS waits for the next run. Out: why a source stopped."""
    stopped, sources = None, [source.name for source in work.sources]
    for _ in range(MAX_ROUNDS if work.decoded else 0):
        due = replay.due(project, sources, asks=False)
        if not due or stopped:
            break
        batch_id = _replay(project, spark, due, log)
        _gate(project, spark, "bronze", [], log)
        stopped = _silver(project, spark, [batch_id], work.decoded, log)
    return stopped


def _replay(project: Project, spark: "SparkSession", due: list[dict], log: Log) -> int:
    """Plan the batch that decodes these rejects again. Out: the batch."""
    batch_id = replay.plan(project, spark, due)
    because = "what they waited for has come"
    log.say({"step": "replay", "batch": batch_id, "rejects": len(due), "because": because})
    return batch_id


def build_gold(project: Project, spark: "SparkSession", tables: list[str] | None = None, **given) -> list:
    """`gold.run`, and the live views that stand on what it built. Raises: ConfigError where the move of a load died,
    unless tables are made again.
    """
    if not given.get("full_refresh"):
        move_load.check_finished(project)
    return gold.run(project, spark, tables, after=partial(live_view.write, project, spark), **given)


def publish_views(project: Project, spark: "SparkSession", log: Log) -> None:
    """Move the public views, unless what they would show is not ready."""
    behind, unpassed = gold.pending(project), checks.unchecked(project, "gold")
    if behind or unpassed:
        waits = (
            f"gold of {', '.join(behind)} is behind silver"
            if behind
            else f"checks of {', '.join(map(str, unpassed))} have not passed"
        )
        log.say({"step": "publish", "stays": waits})
        return
    before = (publish.newest(project) or {"number": 0})["number"]
    with log.step("publish") as figures:
        point = publish.run(project, spark, partial(run_counts.note_late, figures))
        figures |= {"point": point.number, "sources": len(point.points)}
        if point.number == before:
            figures["moved"] = False
    for source, why in point.held.items():
        log.say({"step": "publish", "source": source, "waits": why})


def _finish_landing(project: Project, spark: "SparkSession", work: Work, log: Log) -> None:
    """Write the units of batches that are planned and not in the ledger: a run may have died between its plan and its
    units, and silver would take a batch without units for one that is done."""
    past = bronze.History(project)
    for batch_id in work.unlanded:
        if files := past.of_batch(batch_id):
            with log.step("bronze", batch=batch_id, finishing="what was planned"):
                bronze.write_units(project, spark, bronze.Plan(batch_id, [*files]))
        bronze.frame_again(project, spark, batch_id)


def _bronze(project: Project, spark: "SparkSession", work: Work, log: Log) -> list[int]:
    # a file that was set aside by now is planned anew: until then it was counted on; so is one that was framed again
    is_old = work.unlanded or work.due
    plan = (
        bronze.plan_batch(project, work.sources, bronze.History(project), spark=lambda: spark) if is_old else work.plan
    )
    pending = []
    say_what_loads_lack(project, plan, log)
    if plan.files:
        with log.step("bronze", batch=plan.batch_id) as figures:
            bronze.land(project, spark, plan)
            of_messages = bronze.messages_of(project, plan)
            of_files = (project.size_of(f) for f in plan.files if not project.sources[f["source"]].broker)
            figures |= {
                "files": len({(f["source"], f["path"]) for f in plan.files}),
                "units": sum(f["num_units"] for f in plan.files),
                **of_messages,
                "bytes": sum(of_files) + of_messages.get("bytes", 0),
            }
        pending.append(plan.batch_id)
    say_what_waits(plan, log)
    return pending


def say_what_loads_lack(project: Project, plan: bronze.Plan, log: Log) -> None:
    """Name each source whose first files are landed, and whose full loads would be rejected."""
    new = {f["source"] for f in plan.files}
    notices = {name: notice for name in sorted(new) if (notice := load_times.notice(project.sources[name]))}
    past = bronze.History(project)
    for name in (name for name in notices if not past.is_known(name)):
        log.say({"step": "warning", "source": name, "full_loads": notices[name]})


def say_what_waits(plan: bronze.Plan, log: Log) -> None:
    """Name each file that waits, or whose last record does, and what for."""
    for path in plan.waiting:
        what = f"{path}: {plan.what_waits(path)} {plan.end_of_wait(path)}"
        log.say({"step": "bronze", "waiting": what})
    for path, why in plan.held.items():
        log.say({"step": "bronze", "waiting": f"{path}: for {why}"})
    for (source, why), num in plan.ignored.items():
        log.say({"step": "bronze", "source": source, "ignored_files": num, "why": why})
    for topic, what in plan.notes.items():
        log.say({"step": "bronze", "warning": f"{topic}: {what}"})


def _owed(project: Project, step: str, wanted: list[str]) -> dict:
    return {
        name: batches
        for name, batches in checks.unchecked(project, step).items()
        if not wanted or name is None or name in wanted
    }


def _gate(project: Project, spark: "SparkSession", step: str, wanted: list[str], log: Log) -> None:
    """Check what no passed check has seen. In: names of gold tables, none for all. Raises: CheckFailed."""
    owed = _owed(project, step, wanted)
    if not owed:
        return
    with log.step("checks", of=step) as figures:
        batches = sorted({batch for of_table in owed.values() for batch in of_table})
        try:
            results = checks.check(
                project, spark, step, batch_ids=batches, tables=list(owed) if step == "gold" else None
            )
        except CheckFailed:
            log.say({"step": "publish", "stays": "the public views show what they did before"})
            raise
        figures |= {"passed": sum(r.success for r in results), "warned": sum(not r.success for r in results)}
    for r in results:
        if not r.success:
            log.say(
                {
                    "step": "warning",
                    "table": r.table,
                    "expected": r.expectation,
                    "column": r.column if "select" not in (r.column or "") else None,
                    "rows": r.unexpected_count,
                    "why": r.why,
                    "see": command_of(r.rows_sql or ""),
                }
            )
