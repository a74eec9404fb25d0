"""Rejects whose record came again and can be read: what stands at their place in the order now is that record. And of
files whose names told no place: the file came again under a name that tells one.
"""

from inlet import bronze, lake
from inlet.bronze import guard
from inlet.codecs.results import CHECKPOINT
from inlet.errors import FILE_KINDS
from inlet.silver.batch import Batch
from inlet.sql import literal
from inlet.unit import place_in_file

NO_PLACE = "missing_change_seq"
OF_WHOLE_FILES = (NO_PLACE, "ambiguous_table", "ambiguous_layout")  # of which nothing was read
# another change stands at the place of these, or theirs is that of a whole unit
OTHERS = ("conflicting_duplicate", guard.KIND, *FILE_KINDS)


def resolve(batch: Batch) -> None:
    """Rejects of earlier batches, at whose place this one has a change or a checkpoint, say so. Doing it twice changes
    nothing.
    """
    is_open = (
        f"resolved_by is null and change_seq is not null and batch_id < {batch.batch_id} "
        f"and kind not in ({', '.join(map(literal, OTHERS))})"
    )
    rows = lake.peek(batch.project.lakehouse_path(), "silver.rejects", ["source", "change_seq"], f"where {is_open}")
    places = [row["change_seq"] for row in rows if row["source"] in batch.sources]
    if not places:
        return
    here = f"{batch.rows} and change_seq between {literal(min(places))} and {literal(max(places))}"
    resent = f"""
        select c.source, c.change_seq from (
            select source, change_seq from silver.changes where {here}
            union
            select source, change_seq from silver.control_events where kind = {literal(CHECKPOINT)} and {here}) c
        left semi join (select source, change_seq from silver.rejects where {is_open}) r
          on r.source = c.source and r.change_seq = c.change_seq"""
    if not batch.spark.sql(f"{resent} limit 1").isEmpty():
        batch.spark.sql(f"""
            merge into silver.rejects t using ({resent}) s
            on t.source = s.source and t.change_seq = s.change_seq and t.resolved_by is null
              and t.batch_id < {batch.batch_id} and t.kind not in ({", ".join(map(literal, OTHERS))})
            when matched then update set resolved_by = {batch.batch_id}""")


def resolve_renamed(batch: Batch, files: list[dict]) -> None:
    """Rejects of files without a place in the order, whose bytes this batch has read under another name, say so.
    In: its rows of bronze.files.
    """
    columns = ["source", "kind", "unit_id", "resolved_by"]
    of_files = f"where kind in ({', '.join(map(literal, OF_WHOLE_FILES))})"
    unread: set[tuple[str, str]] = set()  # source and path of files that have such rejects
    unplaced: dict[tuple[str, str], set[str]] = {}  # and the units of those without a place
    for row in lake.peek(batch.project.lakehouse_path(), "silver.rejects", columns, of_files):
        if row["resolved_by"] is None and (place := place_in_file(row["source"], row["unit_id"])):
            unread.add((row["source"], place[0]))
            if row["kind"] == NO_PLACE:
                unplaced.setdefault((row["source"], place[0]), set()).add(row["unit_id"])
    came = {
        (row["source"], row["sha256"])
        for row in files
        if row["sha256"] and not row["problem"] and (row["source"], row["path"]) not in unread
    }
    if not unplaced or not came:
        return
    landed = sorted(bronze.landed(batch.project), key=lambda row: row["batch_id"])
    last = {(row["source"], row["path"]): row for row in landed if not row["problem"]}
    renamed = [place for place in unplaced if place in last and (place[0], last[place]["sha256"]) in came]
    if units := sorted({unit for place in renamed for unit in unplaced[place]}):
        batch.spark.sql(f"""
            update silver.rejects set resolved_by = {batch.batch_id}
            where kind = {literal(NO_PLACE)} and resolved_by is null and batch_id < {batch.batch_id}
              and unit_id in ({", ".join(map(literal, units))})""")
