"""`inlet status`: what the state tables say, read without Spark."""

from collections import Counter

from inlet import bronze, change, gold, lake, publish, silver
from inlet.bronze import purged
from inlet.commands import rejects, replay, run_counts, runs, task_state
from inlet.config import Project
from inlet.silver import closed_rejects, file_loads, full_loads
from inlet.table import by_name, present

LATE = f"late changes that altered public rows, in the last {runs.NUM_SHOWN} runs"
KNOWN = f"records that were known already, in the last {runs.NUM_SHOWN} runs"


def status(project: Project) -> dict[str, list[dict]]:
    """Lists of plain rows under the titles `sources`, `gold`, `public`, and of what waits."""
    lakehouse = project.lakehouse_path()
    ledger = lake.peek(lakehouse, "silver.batches", [c.name for c in change.BATCHES])
    past = bronze.History(project)
    num_files, refused = past.num_files(), past.refused()
    waiting = bronze.plan_batch(project, list(project.sources.values()), past)
    unresolved = [row for row in replay.unresolved(project) if row["kind"] != replay.IGNORED]
    closed = {(row["source"], row["unit_id"], row["rejected_in"]) for row in closed_rejects.closings(project).values()}
    sources, rejected = [], Counter(row["source"] for row in unresolved)
    for name, source in project.sources.items():
        mine = [row for row in ledger if row["source"] == name]
        names = ("num_records", "num_changes", "num_repeats", "num_control")
        total = {key: sum(row[key] for row in mine) for key in names} | {"num_rejected": rejected[name]}
        sources.append(
            {
                "source": name,
                "codec": source.codec,
                "files": num_files.get(name, 0),
                "new files": sum(f["source"] == name for f in waiting.files),
                "refused files": sum(
                    not purged.is_gap(row) and (name, f"{name}/{row['path']}", row["batch_id"]) not in closed
                    for row in refused
                    if row["source"] == name
                ),
                **{key.removeprefix("num_"): value for key, value in total.items()},
                "last batch": max((row["batch_id"] for row in mine), default=None),
                "finished at": max((row["finished_at"] for row in mine), default=None),
            }
        )
    undecoded = past.unfinished()
    loading = [*_loading(project), *file_loads.loading(project)]
    logs = [
        {"table": t.name, "has": f"{t.name}__before_after", "why": t.without_key}
        for t in project.tables.values()
        if not t.key
    ]
    last_runs = runs.last(project)
    late, known = run_counts.late_changes(last_runs), run_counts.known_already(last_runs)
    return {
        "sources": sources,
        "gold": _gold(project, ledger, unresolved),
        "public": _public(project),
        **({"public though not whole": lacking} if (lacking := _lacking(project)) else {}),
        **({LATE: late} if late else {}),
        **({KNOWN: known} if known else {}),
        **({"tables without a key": logs} if logs else {}),
        **({"full loads that have not ended": loading} if loading else {}),
        **task_state.sections(project),
        **({"waiting for silver": [{"batch": b} for b in undecoded]} if undecoded else {}),
        **({"waiting for the feed": kept} if (kept := _waiting(project, past)) else {}),
        **({"gaps in the changes": gaps} if (gaps := rejects.gaps(project)) else {}),
        **(
            {
                "ignored files": [
                    {"source": source, "files": num, "why": why} for (source, why), num in waiting.ignored.items()
                ]
            }
            if waiting.ignored
            else {}
        ),
        **(
            {"waiting files": [{"file": p, "waits for": why} for p, why in waiting.held.items()]}
            if waiting.held
            else {}
        ),
        **(
            {
                "sources that cannot be listed": [
                    {"source": s, "why": why.message} for s, why in waiting.unlisted.items()
                ]
            }
            if waiting.unlisted
            else {}
        ),
        **(
            {
                "unfinished records": [
                    {"file": p, "bytes": n, "waits": waiting.end_of_wait(p)} for p, n in waiting.waiting.items()
                ]
            }
            if waiting.waiting
            else {}
        ),
    }


def _waiting(project: Project, past: bronze.History) -> list[dict]:
    """Records that wait for others of their change, or for the end of their transaction."""
    rows = []
    for name, source in project.sources.items():
        if spans := bronze.undecided(source, past.of_judged(name)):
            rows.append(
                {
                    "source": name,
                    "what": "open transactions",
                    "records": sum(num for _, _, _, num, _ in spans),
                    "bytes": sum(end - start for _, start, end, _, _ in spans),
                    "since batch": min(batch for *_, batch in spans),
                }
            )
    apart: dict[str, list[dict]] = {}
    for row in silver.waiting(project):
        apart.setdefault(row["source"], []).append(row)
    return rows + [
        {
            "source": name,
            "what": "parts of changes",
            "records": sum(row["unit_length"] > 0 for row in found),
            "bytes": sum(row["unit_length"] for row in found),
            "since batch": min(row["batch_id"] for row in found),
        }
        for name, found in sorted(apart.items())
    ]


def _gold(project: Project, ledger: list[dict], rejects: list[dict]) -> list[dict]:
    """How far each table is: the sources that feed it, the last batch in gold, and how many changes it lacks because
    they are rejected.
    """
    contracts = by_name(project.tables.values())
    named = (contracts.get(f"{row['source_schema']}.{row['source_table']}") for row in rejects)
    rejected = Counter(table.name for table in named if table)
    applied: dict[str, dict[str, int]] = {}  # table -> source -> last batch
    for row in lake.peek(project.lakehouse_path(), "gold.applied", ["table_name", "source", "through_batch_id"]):
        through = applied.setdefault(row["table_name"], {})
        through[row["source"]] = max(row["through_batch_id"], through.get(row["source"], 0))
    behind = set(gold.pending(project))
    rows = []
    for table in sorted(project.tables.values(), key=lambda t: t.name):
        through = applied.get(table.name, {})
        rows.append(
            {
                "table": table.name,
                "sources": ", ".join(sorted(through)),
                "through batch": max(through.values(), default=None),
                "is current": table.name not in behind and bool(through),
                "rejected": rejected[table.name],
            }
        )
    return rows


def _loading(project: Project) -> list[dict]:
    """Loads of messages whose end has not been seen, but for the first of each table: what they have not sent stays in
    gold.
    """
    events = lake.peek(
        project.lakehouse_path(),
        "silver.control_events",
        ["source", "source_schema", "source_table", "load_id", "kind", "batch_id"],
        f"where kind in ('{full_loads.BEGIN}', '{full_loads.END}')",
    )
    of: dict[tuple, dict[str, list[dict]]] = {}
    names = by_name(project.tables.values())
    for row in sorted(events, key=lambda row: (row["load_id"], row["batch_id"])):
        of.setdefault((row["source"], present(names, f"{row['source_schema']}.{row['source_table']}")), {}).setdefault(
            row["load_id"], []
        ).append(row)
    return [
        {
            "source": source,
            "table": table,
            "load": load_id,
            "in batches": ", ".join(str(row["batch_id"]) for row in rows),
            "ends": "with the table's next change, attrep_status, or after a gap with options.loads_end: gap",
        }
        for (source, table), loads in sorted(of.items())
        for load_id, rows in list(loads.items())[1:]
        if full_loads.END not in {row["kind"] for row in rows}
    ]


def _lacking(project: Project) -> list[dict]:
    """Transactions that the public views show though events of theirs are missing: their source went on without them.
    Not those of a source that waits for none.
    """
    last = publish.newest(project)
    never_wait = {name for name, source in project.sources.items() if not source.open_transaction_minutes}
    shown = {name: seq for name, seq in last["points"] if name not in never_wait} if last else {}
    columns = ["source", "transaction_id", "first_change_seq", "num_changes"]
    of: dict[str, list[dict]] = {}
    for row in lake.peek(project.lakehouse_path(), "silver.transactions", columns, "where state <> 'complete'"):
        if row["first_change_seq"] <= (shown.get(row["source"]) or ""):
            of.setdefault(row["source"], []).append(row)
    return [
        {
            "source": source,
            "transactions": len(rows),
            "first of them": min(rows, key=lambda row: row["first_change_seq"])["transaction_id"],
            "from": min(row["first_change_seq"] for row in rows),
            "changes there": sum(row["num_changes"] for row in rows),
        }
        for source, rows in sorted(of.items())
    ]


def _public(project: Project) -> list[dict]:
    """Up to where the public views show each source, and what keeps them from showing more."""
    last = publish.newest(project)
    if not last:
        return []
    held, shown = dict(last["held"]), dict(last["points"])
    # runs that moved nothing are rows of the same number
    [moved] = lake.peek(
        project.lakehouse_path(),
        "gold.published",
        ["min(published_at) as published_at"],
        f"where number = {last['number']}",
    )
    return [
        {
            "source": source,
            "point": last["number"],
            "published at": moved["published_at"],
            "shows changes up to": shown.get(source),
            "waits for": held.get(source),
        }
        for source in sorted({*held, *shown})
    ]
