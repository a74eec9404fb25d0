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
