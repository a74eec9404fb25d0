"""One run: land, decode, build, with a gate of checks behind each step. What a scheduler calls through `inlet run`.

What there is to do is found without Spark; a run with nothing to do ends in a second. A gate checks the batches that the
next step has not taken yet, and a gate behind gold that failed is asked again: a run fails at the same gate until the data
or the suite is mended.
"""

from dataclasses import dataclass, field

from inlet import bronze, checks, gold, lake, silver
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.log import Log

STEPS = ("bronze", "silver", "gold")


@dataclass
class Work:
    """What a run has to do."""

    plan: bronze.Plan
    unlanded: list[int] = field(default_factory=list)     # batches whose plan is written but which silver has not closed
    tables: list[str] = field(default_factory=list)       # gold tables behind silver
    failed: list[int] = field(default_factory=list)       # batches at which the last gate behind gold failed

    def __bool__(self) -> bool:
        return bool(self.plan.files or self.unlanded or self.tables or self.failed)


def steps_to_run(step: str | None, until: str | None) -> tuple[str, ...]:
    """The steps of `--step` or `--until`. Raises: ConfigError for a word that is no step."""
    for word in (step, until):
        if word and word not in STEPS:
            raise ConfigError(f"{word!r} is no step", f"Steps are {', '.join(STEPS)}")
    return (step,) if step else STEPS[:STEPS.index(until) + 1] if until else STEPS


def find_work(project: Project, steps: tuple[str, ...], sources: list[str], tables: list[str]) -> Work:
    """What there is to do, found without Spark. Raises: ConfigError for an unknown source or table."""
    chosen = [_known(project.sources, name, "source") for name in sources] or list(project.sources.values())
    named = {table.name: table.name for table in project.tables.values()} | {t.table: t.name for t in project.tables.values()}
    wanted = [_known(named, name, "table") for name in tables]
    plan = bronze.plan(project, chosen, bronze.landed(project)) if "bronze" in steps else bronze.Plan(0)
    unlanded = silver.pending(project) if "silver" in steps or "bronze" in steps else []
    behind = gold.pending(project) if "gold" in steps else []
    return Work(plan, unlanded, [t for t in behind if not wanted or t in wanted], _failed_gate(project) if "gold" in steps else [])


def run(project: Project, work: Work, steps: tuple[str, ...], tables: list[str], log: Log) -> None:
    """Do the work. Raises: CheckFailed at a gate, AccountingError in silver; what was done before stays done."""
    from inlet.spark import session

    with log.step("spark"):
        spark = session(project.lakehouse_path())
    pending = list(work.unlanded)
    if "bronze" in steps:
        pending = _bronze(project, spark, work, log)
    if "silver" in steps:
        for batch_id in pending:
            with log.step("silver", batch=batch_id) as figures:
                accounts = silver.run(project, spark, batch_id).values()
                for name in ("num_records", "num_changes", "num_repeats", "num_control", "num_rejected"):
                    figures[name.removeprefix("num_")] = sum(getattr(a, name) for a in accounts)
        if pending:
            _gate(project, spark, "silver", pending, None, log)
    if "gold" in steps:
        _gold(project, spark, work, set(pending) if "silver" in steps else set(), tables, log)


def _gold(project: Project, spark, work: Work, checked: set[int], tables: list[str], log: Log) -> None:
    behind = [t for t in gold.pending(project) if not tables or t in tables or _table_of(project, t) in tables]
    batches = gold.batches_behind(project) if behind else []
    if set(batches) - checked:
        _gate(project, spark, "silver", sorted(set(batches) - checked), None, log)
    if behind:
        with log.step("gold", tables=len(behind)) as figures:
            figures["models"] = len(gold.run(project, spark, behind))
    if batches or work.failed:
        _gate(project, spark, "gold", sorted({*batches, *work.failed}), None if work.failed else behind, log)


def _failed_gate(project: Project) -> list[int]:
    """The batches of the last check of gold, if an `error` failed there."""
    results = lake.peek(project.lakehouse_path(), "checks.results", ["run_id", "step", "severity", "success", "batch_ids"])
    last = max((row["run_id"] for row in results if row["step"] == "gold"), default=None)
    failed = [row for row in results if row["run_id"] == last and row["severity"] == "error" and not row["success"]]
    return sorted({batch for row in failed for batch in row["batch_ids"] or ()})


def _bronze(project: Project, spark, work: Work, log: Log) -> list[int]:
    before = bronze.landed(project)
    for batch_id in work.unlanded:
        with log.step("bronze", batch=batch_id, finishing="an earlier run"):
            bronze.write_units(project, spark, bronze.Plan(batch_id, [row for row in before if row["batch_id"] == batch_id]))
    pending = list(work.unlanded)
    if work.plan.files:
        with log.step("bronze", batch=work.plan.batch_id) as figures:
            bronze.land(project, spark, work.plan)
            figures |= {"files": len(work.plan.files), "units": sum(f["num_units"] for f in work.plan.files),
                        "bytes": sum(f["ofs_end"] - f["ofs_start"] for f in work.plan.files)}
        pending.append(work.plan.batch_id)
    for path, size in work.plan.waiting.items():
        log.say({"step": "bronze", "waiting": f"{path}: {size} bytes of an unfinished record"})
    if pending:
        _gate(project, spark, "bronze", pending, None, log)
    return pending


def _gate(project: Project, spark, step: str, batches: list[int], tables: list[str] | None, log: Log) -> None:
    with log.step("checks", of=step) as figures:
        results = checks.check(project, spark, step, batch_ids=batches, tables=tables)
        figures |= {"passed": sum(r.success for r in results), "of_all": len(results)}


def _known(names: dict, name: str, what: str):
    if name not in names:
        raise ConfigError(f"There is no {what} {name!r}", f"There are: {', '.join(sorted(names)) or 'none'}")
    return names[name]


def _table_of(project: Project, name: str) -> str:
    return next(t.table for t in project.tables.values() if t.name == name)
