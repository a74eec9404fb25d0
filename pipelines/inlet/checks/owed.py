"""Checks that are owed: batches that a step has written and that no passed check has seen, found without Spark."""

from datetime import UTC, datetime

from inlet import lake
from inlet.checks.suite import expand, load
from inlet.config import Project
from inlet.table import by_name


def unchecked(project: Project, step: str) -> dict[str | None, list[int]]:
    """Batches that a step has written and whose rows no passed check has seen, found without Spark: a run that died or
    failed before its gate owes it. Out: for gold name of contract -> batches, else None -> batches.
    """
    written = _asked(project, step, _written(project, step))
    if not written:
        return {}
    checked = _last_checked(project, step)
    owed: dict[str | None, list[int]] = {}
    for (name, batch), at in sorted(written.items(), key=str):
        if checked.get((name, batch), -1) < at:  # a source that stopped may bring its part of a batch later
            owed.setdefault(name, []).append(batch)
    return {name: sorted(batches) for name, batches in owed.items()}


def _asked(project: Project, step: str, written: dict[tuple, int]) -> dict[tuple, int]:
    """Of what a step has written, that of which its suite asks anything. A table without a key has no suite in gold."""
    entries = load(project, step) if written else []
    if step != "gold":
        return written if entries else {}
    asked = {e.contract.name for e in expand(entries, project.tables.values()) if e.contract}
    return {(name, batch): at for (name, batch), at in written.items() if name in asked}


def _last_checked(project: Project, step: str) -> dict[tuple, int]:
    """(name of contract or None, batch) -> run_id of the last passed check that saw its rows."""
    columns = ["run_id", "step", "table", "severity", "success", "batch_ids"]
    results = lake.peek(project.lakehouse_path(), "checks.results", columns, f"where step = '{step}'")
    failed = {row["run_id"] for row in results if row["severity"] == "error" and not row["success"]}
    since = _since(project) if step == "gold" else {}
    checked: dict[tuple, int] = {}
    all_rows: dict[str | None, int] = {}  # name -> last run that checked every row of it, as after a rebuild
    for row in sorted(results, key=lambda row: row["run_id"]):
        name = row["table"].split(".")[1].rsplit("__", 1)[0] if step == "gold" else None
        if row["run_id"] in failed or row["run_id"] < since.get(name or "", 0):
            continue
        if row["batch_ids"] is None:
            all_rows[name] = row["run_id"]
        else:
            checked |= {(name, batch): row["run_id"] for batch in row["batch_ids"]}
    for run_id in set(all_rows.values()):
        for place in _written(project, step, datetime.fromtimestamp(run_id / 1e6, UTC)):
            if all_rows.get(place[0]) == run_id:
                checked[place] = max(run_id, checked.get(place, 0))
    return checked


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
    written: dict[tuple, int] = {}
    if step == "silver":
        for row in ledger:
            written[None, row["batch_id"]] = max(
                _as_run_id(row["finished_at"]), written.get((None, row["batch_id"]), 0)
            )
        return written
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
                written[name, row["batch_id"]] = max(min(times), written.get((name, row["batch_id"]), 0))
    return written


def _as_run_id(at: datetime | None) -> int:
    return int(at.timestamp() * 1e6) if at else 0
