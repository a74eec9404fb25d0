"""Rejects whose record came again and can be read: what stands at their place in the order now is that record."""

from inlet import lake
from inlet.bronze import guard
from inlet.codecs.results import CHECKPOINT
from inlet.errors import FILE_KINDS
from inlet.silver.batch import Batch
from inlet.sql import literal

# another change stands at the place of these, or theirs is that of a whole unit
OTHERS = ("conflicting_duplicate", guard.KIND, *FILE_KINDS)


def resolve(batch: Batch) -> None:
    """Rejects of earlier batches, at whose place this one has a change or a checkpoint, say so. Doing it twice changes
    nothing.
    """
    columns = ["source", "change_seq", "kind", "batch_id", "resolved_by"]
    rows = lake.peek(batch.project.lakehouse_path(), "silver.rejects", columns, "where change_seq is not null")
    places = {
        (row["source"], row["change_seq"])
        for row in rows
        if row["resolved_by"] is None and row["batch_id"] < batch.batch_id and row["kind"] not in OTHERS
        if row["source"] in batch.sources
    }
    if not places:
        return
    among = ", ".join(f"({literal(source)}, {literal(seq)})" for source, seq in sorted(places))
    here = f"{batch.rows} and (source, change_seq) in ({among})"
    found = batch.spark.sql(f"""
        select source, change_seq from silver.changes where {here}
        union
        select source, change_seq from silver.control_events where kind = {literal(CHECKPOINT)} and {here}""").collect()
    if found:
        resent = ", ".join(f"({literal(row.source)}, {literal(row.change_seq)})" for row in found)
        batch.spark.sql(f"""
            update silver.rejects set resolved_by = {batch.batch_id}
            where resolved_by is null and batch_id < {batch.batch_id} and (source, change_seq) in ({resent})
              and kind not in ({", ".join(map(literal, OTHERS))})""")
