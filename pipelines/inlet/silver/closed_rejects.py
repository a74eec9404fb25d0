"""Rejects that a person has closed, because no one can decode them: lost bytes, a damaged record without another copy.

`silver.closed_rejects` is append-only. Its last row of a reject says whether that is closed, why, and who said so. A
closed reject is not open: status, report, metrics and the message of a held source leave it out, and no run decodes it
again. It stays in `silver.rejects`, so the accounts of its batch do not change, and a transaction or a full load that
lacks it still does. Where its record arrives good later, its reject is resolved as any other.

Read and written without Spark.
"""

import getpass
import os
from collections import Counter
from datetime import UTC, datetime

from inlet import lake
from inlet.config import Project

TABLE, REJECTS = "silver.closed_rejects", "silver.rejects"
KEY = ["source", "kind", "unit_id", "unit_offset", "byte_offset", "batch_id"]  # of a row of silver.rejects
WORDS = ["reason", "person", "written_at"]


def closings(project: Project) -> dict[tuple, dict]:
    """KEY of each closed reject -> the row that closed it."""
    names = [*(name for name in KEY if name != "batch_id"), "rejected_in", "is_closed", *WORDS]
    rows = lake.peek(project.lakehouse_path(), TABLE, names, "order by written_at")
    last = {key(row | {"batch_id": row["rejected_in"]}): row for row in rows}
    return {place: row for place, row in last.items() if row["is_closed"]}


def key(row: dict) -> tuple:
    """What tells a row of silver.rejects from the others."""
    return tuple(row[name] for name in KEY)


def open_rows(project: Project, columns: list[str], where: str = "true", rest: str = "") -> list[dict]:
    """Rejects that are neither resolved nor closed, with KEY and the columns. In: SQL of a filter; of an order."""
    names = [*columns, *(name for name in KEY if name not in columns)]
    query = f"where resolved_by is null and {where} {rest}"
    rows = lake.peek(project.lakehouse_path(), REJECTS, names, query)
    closed = closings(project) if rows else {}
    return [row for row in rows if key(row) not in closed] if closed else rows


def count_open(project: Project) -> Counter[tuple[str, str]]:
    """(source, kind) -> how many rejects are open."""
    by_kind = "where resolved_by is null group by source, kind"
    rows = lake.peek(project.lakehouse_path(), REJECTS, ["source", "kind", "count(*) as num"], by_kind)
    num = Counter({(row["source"], row["kind"]): row["num"] for row in rows})
    if closed := closings(project):
        batches = ", ".join(str(batch) for batch in sorted({row["rejected_in"] for row in closed.values()}))
        unresolved = f"where resolved_by is null and batch_id in ({batches})"
        rows = lake.peek(project.lakehouse_path(), REJECTS, KEY, unresolved)
        num -= Counter((row["source"], row["kind"]) for row in rows if key(row) in closed)
    return num


def write(project: Project, rejects: list[dict], is_closed: bool, reason: str) -> None:
    """Close rejects, or open them again. In: rows of silver.rejects."""
    now, person = datetime.now(UTC), _person()
    written = {"is_closed": is_closed, "reason": reason, "person": person, "written_at": now}
    rows = [{name: row[name] for name in KEY} | {"rejected_in": row["batch_id"]} | written for row in rejects]
    lake.add_rows(project.lakehouse_path(), TABLE, rows)


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())
