"""Late changes: those that came after a later one of their source was public, so that rows of the past are others now.

Counted from silver without Spark, and only in the batches whose range in the ledger begins before the point.
"""

from typing import NamedTuple

from inlet import lake
from inlet.config import Project
from inlet.publish.point import Point
from inlet.sql import plain_literal


class Late(NamedTuple):
    source: str
    num_changes: int
    first_seq: str  # change_seq of the first of them: what is public is another from there on


def sources(ledger: list[dict], last: Point) -> set[str]:
    """Sources with batches since the last point that begin before it. In: rows of silver.batches."""
    return {
        row["source"]
        for row in ledger
        if row["batch_id"] > last.source(row["source"]).taken
        and (row["first_change_seq"] or "") <= (last.source(row["source"]).seq or "")
    }


def changes(project: Project, last: Point, point: Point, late: set[str]) -> list[Late]:
    """The late changes that a point is the first to show. In: the sources that may have some."""
    found = []
    for name in sorted(late):
        before, after = last.source(name), point.source(name)
        if before.seq is None or after.taken <= before.taken:
            continue
        [row] = lake.peek(
            project.lakehouse_path(),
            "silver.changes",
            ["count(*) as num", "min(change_seq) as first_seq"],
            f"where source = {plain_literal(name)} and batch_id > {before.taken} and batch_id <= {after.taken} "
            f"and change_seq <= {plain_literal(before.seq)}",
        )
        if row["num"]:
            found.append(Late(name, row["num"], row["first_seq"]))
    return found
