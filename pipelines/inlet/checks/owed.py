"""Checks that are owed: batches that a step has written and that no passed check has seen, told without Spark."""

from datetime import UTC, datetime

from inlet import lake
from inlet.checks.suite import expand, load
from inlet.config import Project
from inlet.table import by_name


def unchecked(project: Project, step: str) -> dict[str | None, list[int]]:
    """Batches that a step has written and whose rows no passed check has seen, told without Spark: a run that died or
    failed before its gate owes it. Out: for gold name of contract -> batches, else None -> batches."""
    lakehouse, per_table, written = project.lakehouse_path(), step == "gold", _written(project, step)
    if not written or not any(entry.table.startswith("*") or not per_table for _, entry in load(project, step)):
        return {}
    if per_table:  # of a table without a key no suite may ask anything
        asked = {e.contract.name for e in expand(load(project, step), project.tables.values()) if e.contract}
        written = {(name, batch): at for (name, batch), at in written.items() if name in asked}
    results = lake.peek(
        lakehouse,
        "checks.results",
        ["run_id", "step", "table", "severity", "success", "batch_ids"],
        f"where step = '{step}'",
    )
    failed = {row["run_id"] for row in results if row["severity"] == "error" and not row["success"]}
    since = _since(project) if per_table else {}
    seen: dict[tuple, int] = {}  # when each was last checked
    whole: dict = {}  # run in which every row of a table was checked, as after a rebuild
    for row in sorted(results, key=lambda row: row["run_id"]):
        name = row["table"].split(".")[1].rsplit("__", 1)[0] if per_table else None
        if row["run_id"] not in failed and row["run_id"] >= since.get(name or "", 0):
            seen |= {(name, batch): row["run_id"] for batch in row["batch_ids"] or ()}
            whole |= {name: row["run_id"]} if row["batch_ids"] is None else {}
    for name, run_id in whole.items():
        seen |= {
            (of, batch): max(run_id, seen.get((of, batch), 0))
            for of, batch in _written(project, step, datetime.fromtimestamp(run_id / 1e6, UTC))
            if of == name
        }
    owed: dict[str | None, set[int]] = {}
    for (place, batch), at in written.items():
        if seen.get((place, batch), -1) < at:  # a source that stopped may bring its part of a batch later
            owed.setdefault(place, set()).add(batch)
    return {place: sorted(batches) for place, batches in sorted(owed.items(), key=str)}


def _since(project: Project) -> dict[str, int]:
    """Name of contract -> when its gold was begun, as a run_id: a rebuild begins it anew, and what was checked before
    says nothing of it.
    """
    begun: dict[str, int] = {}
    for row in lake.peek(project.lakehouse_path(), "gold.applied", ["table_name", "applied_at"]):
        at = int(row["applied_at"].timestamp() * 1e6)
        begun[row["table_name"]] = min(at, begun.get(row["table_name"], at))
    return begun


def _written(project: Project, step: str, until: datetime | None = None) -> dict[tuple, int]:
    """(name of contract or None, batch) of all that a step has written, and when the last source's part of it was, as a
    run_id. In: for gold, what it had written by then."""
    lakehouse = project.lakehouse_path()
    if step == "bronze":
        return {(None, row["batch_id"]): 0 for row in lake.peek(lakehouse, "bronze.files", ["batch_id"])}
    ledger = lake.peek(lakehouse, "silver.batches", ["source", "batch_id", "tables", "finished_at"])
    found: dict[tuple, int] = {}
    if step == "silver":
        for row in ledger:
            found[None, row["batch_id"]] = max(_as_run_id(row["finished_at"]), found.get((None, row["batch_id"]), 0))
        return found
    applied: dict[tuple, list[tuple[int, int]]] = {}  # (table, source) -> (through batch, when)
    for row in lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_batch_id", "applied_at"]):
        if until is None or row["applied_at"] <= until:
            applied.setdefault((row["table_name"], row["source"]), []).append(
                (row["through_batch_id"], _as_run_id(row["applied_at"]))
            )
    names = {name: table.name for name, table in by_name(project.tables.values()).items()}
    for row in ledger:
        for name in {names[t] for t in row["tables"] or () if t in names}:
            if times := [at for through, at in applied.get((name, row["source"]), []) if through >= row["batch_id"]]:
                found[name, row["batch_id"]] = max(min(times), found.get((name, row["batch_id"]), 0))
    return found


def _as_run_id(at: datetime | None) -> int:
    return int(at.timestamp() * 1e6) if at else 0
