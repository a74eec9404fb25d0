"""Numbers about a lakehouse, read without Spark: what `inlet report` shows and what metrics tell. Those that are
computed from rows are pure, and have tests of their own."""

from collections import Counter
from datetime import datetime
from typing import NamedTuple

from inlet import bronze, change, lake, unit
from inlet.checks.results import RESULTS
from inlet.commands.rejects import COLUMNS, around_fault
from inlet.commands.show import time_of
from inlet.config import Project
from inlet.publish.point import PUBLISHED
from inlet.silver import closed_rejects
from inlet.sql import plain_literal
from inlet.table import by_name

COUNTS = ("num_records", "num_changes", "num_repeats", "num_control", "num_rejected")
NUM_EXAMPLES, LEN_RAW = 3, 48


class Lag(NamedTuple):
    """How far the published point is behind what silver has of a source, by the source's own times."""

    newest_seq: str | None  # change_seq of its newest change
    shown_seq: str | None  # of the last change that is public
    seconds: float | None  # None: nothing is public yet, or its places tell no time

    @property
    def newest(self) -> datetime | None:
        return time_of(self.newest_seq)

    @property
    def shown(self) -> datetime | None:
        return time_of(self.shown_seq)


def ledger(project: Project) -> list[dict]:
    rows = lake.peek(project.lakehouse_path(), "silver.batches", [c.name for c in change.BATCHES])
    return sorted(rows, key=lambda row: (row["batch_id"], row["source"]))


def points(project: Project) -> list[dict]:
    """Rows of gold.published, oldest first, maps as dicts."""
    rows = lake.peek(project.lakehouse_path(), "gold.published", [c.name for c in PUBLISHED])
    maps = [c.name for c in PUBLISHED if c.type.startswith("map")]
    return [
        row | {name: dict(row[name] or ()) for name in maps}
        for row in sorted(rows, key=lambda row: (row["number"], row["published_at"]))
    ]


def lag(newest: str | None, shown: str | None) -> Lag:
    """In: change_seq of the newest change in silver, and of the last one that is public."""
    if shown and newest and newest <= shown:
        return Lag(newest, shown, 0.0)
    at, until = time_of(newest), time_of(shown)
    seconds = max(0.0, (at - until).total_seconds()) if at and until else None
    return Lag(newest, shown, seconds)


def lags(batches: list[dict], published: list[dict]) -> dict[str, Lag]:
    """Source -> its lag now."""
    newest: dict[str, str] = {}
    for row in batches:
        newest[row["source"]] = max(newest.get(row["source"], ""), row["last_change_seq"] or "")
    shown = published[-1]["points"] if published else {}
    return {source: lag(seq or None, shown.get(source)) for source, seq in sorted(newest.items())}


def lag_over_time(batches: list[dict], published: list[dict], source: str) -> list[tuple[datetime, float]]:
    """(when, seconds of lag from then on), wherever a batch or a publication changed it."""
    events = [(row["finished_at"], row["last_change_seq"], None) for row in batches if row["source"] == source]
    events += [(row["published_at"], None, row["points"].get(source)) for row in published]
    newest, shown, found = "", "", []
    for at, came, public in sorted(events, key=lambda event: event[0]):
        newest, shown = max(newest, came or ""), max(shown, public or "")
        seconds = lag(newest or None, shown or None).seconds
        if seconds is not None and (not found or found[-1][1] != seconds):
            found.append((at, seconds))
    return found


def table_lags(project: Project, batches: list[dict]) -> list[dict]:
    """How far each table's gold is behind the batches that have it, and how long gold took to have the last ones."""
    finished = {(row["source"], row["batch_id"]): row["finished_at"] for row in batches}
    names = {name: table.name for name, table in by_name(project.tables.values()).items()}
    last: dict[tuple[str, str], list[int]] = {}
    for row in batches:
        for table in {names[name] for name in row["tables"] or () if name in names}:
            last.setdefault((table, row["source"]), []).append(row["batch_id"])
    applied: dict[tuple[str, str], list[dict]] = {}
    columns = ["table_name", "source", "through_batch_id", "through_change_seq", "applied_at"]
    for row in lake.peek(project.lakehouse_path(), "gold.applied", columns):
        applied.setdefault((row["table_name"], row["source"]), []).append(row)
    found = []
    for place in sorted({*last, *applied}):
        rows = sorted(applied.get(place, []), key=lambda row: row["through_batch_id"])
        through = rows[-1]["through_batch_id"] if rows else None
        took = [
            (row["applied_at"] - finished[place[1], row["through_batch_id"]]).total_seconds()
            for row in rows
            if (place[1], row["through_batch_id"]) in finished
        ]
        found.append(
            {
                "table": place[0],
                "source": place[1],
                "through batch": through,
                "batches behind": sum(batch > (-1 if through is None else through) for batch in last.get(place, ())),
                "newest change in gold": time_of(rows[-1]["through_change_seq"]) if rows else None,
                "in gold since": rows[-1]["applied_at"] if rows else None,
                "took": took,
            }
        )
    return found


def files(project: Project) -> dict[str, int]:
    """Source -> how many files, or partitions of topics, something was landed of."""
    return bronze.History(project).num_files()


def reject_examples(project: Project, counts: Counter[tuple[str, str]]) -> dict[tuple[str, str], list[dict]]:
    """(source, kind) -> the newest open rejects of it, with the beginning of their bytes."""
    found, num_closed = {}, len(closed_rejects.closings(project))
    for source, kind in counts:
        where = f"source = {plain_literal(source)} and kind = {plain_literal(kind)}"
        order = f"order by batch_id desc, unit_id, unit_offset limit {NUM_EXAMPLES + num_closed}"
        rows = closed_rejects.open_rows(project, COLUMNS, where, order)[:NUM_EXAMPLES]
        found[source, kind] = [row | {"bytes": around_fault(row, LEN_RAW)} for row in rows]
    return found


def checks(project: Project) -> tuple[list[dict], list[dict]]:
    """The last results of each step and table, and those of the last hundred failures, newest first."""
    columns = [f'r."{c.name}"' for c in RESULTS]
    newest = (
        'as r join (select step as s, "table" as t, max(run_id) as m from rows group by step, "table") as l '
        'on r.step = l.s and r."table" = l.t and r.run_id = l.m order by r.step, r."table"'
    )
    if not lake.exists(project.lakehouse_path(), "checks.results"):
        return [], []
    last = lake.peek(project.lakehouse_path(), "checks.results", columns, newest)
    failed = lake.peek(
        project.lakehouse_path(), "checks.results", columns, "as r where not r.success order by r.run_id desc limit 100"
    )
    return last, failed


def sizes(project: Project) -> list[dict]:
    """Bytes, files and rows of each table, from its Delta log and statistics; the largest first."""
    names = [*unit.TABLES, *change.TABLES, "gold.applied", "gold.published", "checks.results"]
    names += [
        f"gold.{table.name}__{step}"
        for table in project.tables.values()
        for step in ("before_after", "past", "current")
    ]
    found = []
    for name in names:
        if lake.exists(project.lakehouse_path(), name):
            num_files, num_bytes = lake.size(project.lakehouse_path(), name)
            found.append({"table": name, "rows": _count(project, name), "files": num_files, "bytes": num_bytes})
    return sorted(found, key=lambda row: -row["bytes"])


def _count(project: Project, name: str) -> int | None:
    """Rows of a table; None where it cannot be read without Spark."""
    import deltalake

    try:
        [row] = lake.peek(project.lakehouse_path(), name, ["count(*) as n"])
    except deltalake.exceptions.DeltaError:
        return None
    return row["n"]


def ended(run: dict) -> float:
    """When a run ended, in seconds since 1970."""
    return datetime.fromisoformat(run["began"]).timestamp() + run["seconds"]


def step_seconds(run: dict) -> dict[tuple[str], float]:
    """(step,) -> its seconds in one run; a step that ran for several batches counts as one."""
    found: dict[tuple[str], float] = {}
    for step in run["steps"]:
        found[step["step"],] = round(found.get((step["step"],), 0) + step["seconds"], 2)
    return found
