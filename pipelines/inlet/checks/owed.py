"""Checks that are owed: batches that a step has written and that no passed check has seen, found without Spark.

Where a check leaves nothing owed, its commit notes so (`notes_of_passed`), and from then on only what was written since
and results since are read: a lakehouse has 20 results and more for each batch. The notes are those of one suite and its
contracts, for another suite may ask of tables of which nothing was asked before.
"""

import hashlib

from inlet import lake
from inlet.checks.results import TABLE, last_written
from inlet.checks.suite import expand, load
from inlet.config import Project
from inlet.sql import plain_literal
from inlet.table import by_name

# SQL: what a step has written since all had passed, as name of contract or '', batch, and when the last source's part
# of it was, as a run_id
WRITTEN = {
    "bronze": "select distinct '' as name, batch_id, 0 as at from files where batch_id > {since}",
    "silver": """
        select '' as name, batch_id, max(at) as at
        from (select batch_id, coalesce(cast(finished_at as bigint), 0) as at from ledger)
        where at > {since} group by batch_id""",
    "gold": """
        select name, batch_id, max(at) as at from (
            select n.name, l.batch_id, l.source, min(a.at) as at
            from (
                select source, batch_id, unnest(tables) as written from ledger
                where batch_id > (select min(passed_batch_id) from new)) l
            join names n on n.written = l.written
            join new a on a.table_name = n.name and a.source = l.source
                and l.batch_id > a.passed_batch_id and l.batch_id <= a.through_batch_id
            group by n.name, l.batch_id, l.source)
        group by name, batch_id""",
}
# SQL: what gold has applied since all had passed, each with the last batch that it had by then
NEW = """
    select a.table_name, a.source, a.through_batch_id, cast(a.applied_at as bigint) as at,
        coalesce(p.batch_id, -1) as passed_batch_id
    from applied a left join (
        select table_name, source, max(through_batch_id) as batch_id from applied
        where cast(applied_at as bigint) <= {since} group by table_name, source) p
      on p.table_name = a.table_name and p.source = a.source
    where cast(a.applied_at as bigint) > {since}"""
TABLES = {
    "bronze": {"files": "bronze.files"},
    "silver": {"ledger": "silver.batches"},
    "gold": {"ledger": "silver.batches", "applied": "gold.applied"},
}
# SQL: the results of passed checks. A rebuild begins the gold of a table again, and what was checked before says
# nothing of it
PASSED = {
    "gold": """
        select r.* from results r join begun b on r.name = b.name and r.run_id >= b.at"""
}
RESULTS = """
    select run_id, batch_ids, {name} as name from checked_tables
    where step = '{step}' and run_id > {run_id} and run_id not in (
        select run_id from checked_tables
        where step = '{step}' and run_id > {run_id} and severity = 'error' and not success)"""
NAME_IN_GOLD = "regexp_replace(split_part(\"table\", '.', 2), '^(.*)__.*$', '\\1')"
OWED = """
    select w.name, w.batch_id from written w
    left join (
        select name, batch_id, max(run_id) as run_id
        from (select name, run_id, unnest(batch_ids) as batch_id from passed) group by name, batch_id) c
      on c.name = w.name and c.batch_id = w.batch_id
    left join (select name, max(run_id) as run_id from passed where batch_ids is null group by name) every_row
      on every_row.name = w.name
    where greatest(coalesce(c.run_id, -1), coalesce(every_row.run_id, -1)) < w.at
    order by w.name, w.batch_id"""


def unchecked(project: Project, step: str) -> dict[str | None, list[int]]:
    """Batches that a step has written and whose rows no passed check has seen, found without Spark: a run that died or
    failed before its gate owes it. Out: for gold name of contract -> batches, else None -> batches.
    """
    owed: dict[str | None, list[int]] = {}
    for row in _owed(project, step):
        owed.setdefault(row["name"] or None, []).append(row["batch_id"])
    return _asked(project, step, owed)


def notes_of_passed(
    project: Project, step: str, run_id: int, names: set[str | None], batch_ids: list[int] | None
) -> dict[str, int]:
    """The app transactions by which the commit of passed results notes that all which was written so far has passed;
    none where other checks are owed. In: the contracts that were checked, as in `unchecked`; the batches, None for
    every row."""
    since = last_written(project, step)
    for name, batches in unchecked(project, step).items():
        if name not in names or batch_ids is not None and set(batches) - set(batch_ids):
            return {}
    return dict(zip(_app_ids(project, step), (run_id, since), strict=True))


def _app_ids(project: Project, step: str) -> tuple[str, str]:
    """The app_ids of the check after which nothing was owed, and of what was written last before it: its moment, of
    bronze its batch."""
    suite = project.root / "expectations" / f"{step}.yml"
    asked = suite.read_bytes() if suite.is_file() else b""
    if step == "gold":
        asked += repr(sorted((name, t.name, t.key) for name, t in by_name(project.tables.values()).items())).encode()
    digest = hashlib.sha256(asked).hexdigest()[:16]
    return f"inlet-passed-{step}-{digest}", f"inlet-passed-{step}-{digest}-since"


def _asked(project: Project, step: str, owed: dict[str | None, list[int]]) -> dict[str | None, list[int]]:
    """Of what is owed, that of which the step's suite asks anything. A table without a key has no suite in gold."""
    entries = load(project, step) if owed else []
    if step != "gold":
        return owed if entries else {}
    asked = {e.contract.name for e in expand(entries, project.tables.values()) if e.contract}
    return {name: batches for name, batches in owed.items() if name in asked}


def _owed(project: Project, step: str) -> list[dict]:
    """name of contract or '', batch, of what a step has written and no passed check has seen."""
    lakehouse, tables = project.lakehouse_path(), TABLES[step]
    if not all(lake.exists(lakehouse, table) for table in tables.values()):
        return []
    last = [lake.transaction_version(lakehouse, TABLE, app_id) for app_id in _app_ids(project, step)]
    since = last[1] if last[0] else -1
    parts = {"written": WRITTEN[step].format(since=since)}
    if step == "gold":
        names = {name: table.name for name, table in by_name(project.tables.values()).items()}
        if not names:
            return []
        pairs = ", ".join(f"({plain_literal(written)}, {plain_literal(name)})" for written, name in names.items())
        parts = {"names (written, name)": f"values {pairs}", "new": NEW.format(since=since)} | parts
    if not lake.exists(lakehouse, "checks.results"):
        return _rows(
            lakehouse, parts, "select name, batch_id from written where -1 < at order by name, batch_id", tables
        )
    results = RESULTS.format(step=step, run_id=last[0] or -1, name=NAME_IN_GOLD if step == "gold" else "''")
    parts |= {"results": results, "passed": PASSED.get(step, "select * from results")}
    if step == "gold":
        begun = "select table_name as name, min(cast(applied_at as bigint)) as at from applied group by table_name"
        parts = {"begun": begun} | parts
    return _rows(lakehouse, parts, OWED, tables | {"checked_tables": "checks.results"})


def _rows(lakehouse: str, parts: dict[str, str], query: str, tables: dict[str, str]) -> list[dict]:
    """In: named queries, each of tables and of those before it."""
    named = ", ".join(f"{name} as ({part})" for name, part in parts.items())
    return lake.ask(lakehouse, f"with {named} {query}", **tables)
