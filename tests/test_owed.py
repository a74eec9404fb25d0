"""The checks that are owed, held equal to a plain definition over random lakehouses."""

import random
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from inlet import checks, lake
from inlet.checks import results
from inlet.checks.owed import notes_of_passed
from inlet.config import Project
from inlet.gold.small_batches import SmallBatches
from inlet.silver import decode
from inlet.table import by_name
from tests import lakes, projects

ROOT = Path(__file__).parent.parent
NUM_LAKEHOUSES = 40
PARTS = {"table": "DEPOT.PARTS", "name": "parts"}


def owed(project: Project, step: str) -> dict[str | None, list[int]]:
    checked = last_checked(project, step)
    found: dict[str | None, list[int]] = {}
    for (name, batch), at in written(project, step).items():
        if checked.get((name, batch), -1) < at:
            found.setdefault(name, []).append(batch)
    return {name: sorted(batches) for name, batches in found.items()}


def last_checked(project: Project, step: str) -> dict[tuple, int]:
    """(name of contract or None, batch) -> run_id of the last passed check that saw its rows."""
    columns = ["run_id", "step", "table", "severity", "success", "batch_ids"]
    rows = lake.peek(project.lakehouse_path(), "checks.results", columns, f"where step = '{step}'")
    failed = {row["run_id"] for row in rows if row["severity"] == "error" and not row["success"]}
    begun = since(project) if step == "gold" else {}
    checked: dict[tuple, int] = {}
    all_rows: dict[str | None, int] = {}  # name -> last run that checked every row of it, as after a rebuild
    for row in sorted(rows, key=lambda row: row["run_id"]):
        name = row["table"].split(".")[1].rsplit("__", 1)[0] if step == "gold" else None
        if row["run_id"] in failed or row["run_id"] < begun.get(name or "", 0):
            continue
        if row["batch_ids"] is None:
            all_rows[name] = row["run_id"]
        else:
            checked |= {(name, batch): row["run_id"] for batch in row["batch_ids"]}
    for run_id in set(all_rows.values()):
        for place in written(project, step, datetime.fromtimestamp(run_id / 1e6, UTC)):
            if all_rows.get(place[0]) == run_id:
                checked[place] = max(run_id, checked.get(place, 0))
    return checked


def since(project: Project) -> dict[str, int]:
    """Name of contract -> when its gold was begun, as a run_id: a rebuild begins it anew, and what was checked before
    says nothing of it.
    """
    begun: dict[str, int] = {}
    for row in lake.peek(project.lakehouse_path(), "gold.applied", ["table_name", "applied_at"]):
        at = int(row["applied_at"].timestamp() * 1e6)
        begun[row["table_name"]] = min(at, begun.get(row["table_name"], at))
    return begun


def written(project: Project, step: str, until: datetime | None = None) -> dict[tuple, int]:
    """(name of contract or None, batch) of all that a step has written, and when the last source's part of it was, as a
    run_id. In: for gold, what it had written by then."""
    lakehouse = project.lakehouse_path()
    if step == "bronze":
        return {(None, row["batch_id"]): 0 for row in lake.peek(lakehouse, "bronze.files", ["batch_id"])}
    ledger = lake.peek(lakehouse, "silver.batches", ["source", "batch_id", "tables", "finished_at"])
    written: dict[tuple, int] = {}
    if step == "silver":
        for row in ledger:
            written[None, row["batch_id"]] = max(as_run_id(row["finished_at"]), written.get((None, row["batch_id"]), 0))
        return written
    applied: dict[tuple, list[tuple[int, int]]] = {}  # (table, source) -> (through batch, when)
    for row in lake.peek(lakehouse, "gold.applied", ["table_name", "source", "through_batch_id", "applied_at"]):
        if until is None or row["applied_at"] <= until:
            applied.setdefault((row["table_name"], row["source"]), []).append(
                (row["through_batch_id"], as_run_id(row["applied_at"]))
            )
    names = {name: table.name for name, table in by_name(project.tables.values()).items()}
    for row in ledger:
        for name in {names[t] for t in row["tables"] or () if t in names}:
            if times := [at for through, at in applied.get((name, row["source"]), []) if through >= row["batch_id"]]:
                written[name, row["batch_id"]] = max(min(times), written.get((name, row["batch_id"]), 0))
    return written


def as_run_id(at: datetime | None) -> int:
    return int(at.timestamp() * 1e6) if at else 0


def a_result(rng: random.Random, step: str, batches: range, began: datetime) -> dict:
    table = {"gold": rng.choice(["gold.items__current", "gold.parts__past"])}.get(step, f"{step}.any")
    seen = None if rng.random() < 0.1 else sorted(rng.sample(batches, rng.randint(0, len(batches))))
    is_good, severity = rng.random() < 0.8, rng.choice(["error", "warn"])
    run_id = as_run_id(began + timedelta(hours=rng.randint(0, 12)))
    result = {"run_id": run_id, "step": step, "table": table, "severity": severity, "success": is_good}
    return result | {"batch_ids": seen}


def write_some(project: Project, rng: random.Random, batches: range, began: datetime) -> None:
    sources = list(project.sources)
    for n, batch in enumerate(batches, 1):
        lakes.write(project, "bronze.files", *({"source": "depot", "path": p, "batch_id": batch} for p in ("a", "b")))
        for source in rng.sample(sources, rng.randint(0, 2)):
            names = rng.sample(["DEPOT.ITEMS", "DEPOT.PARTS", "DEPOT.UNKNOWN"], rng.randint(0, 3))
            line = lakes.batch(batch, source, lakes.seq(1)) | {"tables": names}
            lakes.write(project, "silver.batches", line | {"finished_at": began + timedelta(hours=n)})
    for n in range(rng.randint(0, 8)):
        at = began + timedelta(hours=n, minutes=30)
        place = {"table_name": rng.choice(["items", "parts"]), "source": rng.choice(sources)}
        through = batches.start - 1 + rng.randint(0, n + 2)
        lakes.write(project, "gold.applied", place | {"through_batch_id": through, "applied_at": at})
    for _ in range(rng.randint(0, 10)):
        step = rng.choice(["bronze", "silver", "gold"])
        seen = range(1, batches.stop)
        lakes.write(project, "checks.results", *(a_result(rng, step, seen, began) for _ in range(rng.randint(1, 2))))


@pytest.mark.parametrize("seed", range(NUM_LAKEHOUSES))
def test_what_is_owed_is_what_no_passed_check_has_seen(tmp_path, seed):
    """At first, and after a check of all or some of what was owed, which is noted where it leaves nothing."""
    rng = random.Random(seed)
    sources = {name: projects.DEPOT | {"from": f"landing/{name}"} for name in ("depot", "other")}
    project = projects.make(tmp_path, sources, [projects.ITEMS, projects.ITEMS | PARTS])
    shutil.copytree(ROOT / "expectations", tmp_path / "expectations")
    batches = range(1, rng.randint(2, 8))
    write_some(project, rng, batches, lakes.BEGAN)
    for step in ("bronze", "silver", "gold"):
        found = checks.unchecked(project, step)
        assert found == owed(project, step), step
        seen = sorted({batch for of_name in found.values() for batch in of_name})
        passes(project, step, found.keys(), seen if rng.random() < 0.8 else seen[:-1])
        assert checks.unchecked(project, step) == owed(project, step), step
    write_some(project, rng, range(batches.stop, batches.stop + rng.randint(0, 4)), datetime.now(UTC))
    for step in ("bronze", "silver", "gold"):
        assert checks.unchecked(project, step) == owed(project, step), step


def passes(project: Project, step: str, names: Iterable[str | None], batches: list[int]) -> None:
    """A check of batches passes."""
    run_id = results.next_run_id(project, step)
    row = {"run_id": run_id, "step": step, "severity": "error", "success": True, "batch_ids": batches}
    rows = [row | {"table": f"gold.{name}__current" if name else f"{step}.any"} for name in names]
    if rows:
        notes = notes_of_passed(project, step, run_id, set(names), batches)
        lakehouse, app_id = project.lakehouse_path(), f"inlet-checks-{step}"
        lake.add_rows(lakehouse, results.TABLE, rows, results.RESULTS, app_id, run_id, notes)


def test_what_is_written_after_a_check_is_owed_whatever_the_clocks_say(tmp_path):
    """The machine that checked is two hours ahead of the one that writes, and then the other way round."""
    sources = {name: projects.DEPOT | {"from": f"landing/{name}"} for name in ("depot", "other")}
    project = projects.make(tmp_path, sources, [projects.ITEMS])
    shutil.copytree(ROOT / "expectations", tmp_path / "expectations")
    lakehouse, ahead = project.lakehouse_path(), datetime.now(UTC) + timedelta(hours=2)

    def check(step: str, run_id: int) -> None:
        result = {"step": step, "table": "gold.items__current", "severity": "error", "success": True, "batch_ids": [1]}
        rows = [result | {"run_id": run_id}]
        lake.add_rows(lakehouse, results.TABLE, rows, results.RESULTS, f"inlet-checks-{step}", run_id)

    lakes.write(project, "silver.batches", lakes.batch(1, "depot", lakes.seq(1)) | {"finished_at": ahead})
    check("silver", as_run_id(ahead) + 5)
    assert checks.unchecked(project, "silver") == {}
    account = SimpleNamespace(tables=["DEPOT.ITEMS"])
    decode._close(SimpleNamespace(project=project, batch_id=1, accounts={"other": account}))
    assert checks.unchecked(project, "silver") == {None: [1]}
    check("silver", results.next_run_id(project, "silver"))
    assert checks.unchecked(project, "silver") == {}

    lakes.write(project, "gold.applied")  # made again, after a check of what it was before
    check("gold", as_run_id(ahead) + 5)
    for source in sources:
        gold = SmallBatches(None, lakehouse, checks.next_moment(project, "gold"))
        places = {"source": [source], "_through_batch_id": [1], "_through_change_seq": [lakes.seq(1)]}
        gold.staged["items"] = pa.table(places)
        gold.commit("items", {name: name for name in places})
        assert checks.unchecked(project, "gold") == {"items": [1]}
        check("gold", results.next_run_id(project, "gold"))
        assert checks.unchecked(project, "gold") == {}
