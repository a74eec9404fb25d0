"""Parts of a change that is known otherwise: they come again, alone, after their change was settled (a file is
delivered again, and holds one half of it); or they wait, and the change comes again as records that are no parts.

The change is known, so the part waits for nothing. The codec says what it is of the change (`half`); the other image is
the one that silver has. Thus the change is a repeat where the part says what it said before, else a conflict.
"""

from typing import TYPE_CHECKING

from inlet import lake
from inlet.codecs.results import Waiting
from inlet.config import Project
from inlet.errors import Reject
from inlet.lake import engine
from inlet.silver import decoded
from inlet.silver.batch import Batch, among
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KNOWN = "known_mask"
IMAGES = ("before", "after")


def write(batch: Batch, codec, sources: list[str], parts: "DataFrame", raw: "DataFrame") -> None:
    """Write parts that begin to wait in this batch; those whose change silver has already as that change. In: the bytes
    of parts.
    """
    found = _known(batch, codec, sources, parts, raw)
    if found is None:
        batch.append(parts, "silver.waiting")
        return
    place = ["source", "unit_id", "unit_offset"]
    batch.append(parts.join(found.select(*place), place, "left_anti"), "silver.waiting")
    engine.release(found)


def settle(batch: Batch, codec, sources: list[str], parts: "DataFrame") -> None:
    """Settle parts that wait and whose change this batch wrote."""
    raw = parts.select("unit_id", "unit_offset", "raw")
    found = _known(batch, codec, sources, parts, raw, f"batch_id = {batch.batch_id}")
    if found is not None:
        batch.append(found.drop("is_settled").selectExpr("*", "true as is_settled"), "silver.waiting")
        engine.release(found)


def _known(
    batch: Batch, codec, sources: list[str], parts: "DataFrame", raw: "DataFrame", where: str = "true"
) -> "DataFrame | None":
    """Write the parts whose change silver has already. In: SQL for the changes that are asked. Out: these parts,
    persisted; None where there are none.
    """
    placed = parts.where("change_seq is not null and unit_length > 0")
    [(low, high)] = placed.selectExpr("min(change_seq)", "max(change_seq)").collect()
    if low is None:
        return None
    known = batch.spark.sql(
        f"select source, change_seq, change_mask as {KNOWN}, before as known_before, after as known_after "
        f"from silver.changes where {where} and {among(sources)} "
        f"and change_seq between {literal(low)} and {literal(high)}"
    )
    found = engine.kept(placed.join(known.select("source", "change_seq", KNOWN), ["source", "change_seq"]))
    if found.isEmpty():
        engine.release(found)
        return None
    halves = found.drop("batch_id", "decoded_at").mapInArrow(_halves(batch.project, codec), decoded.DDL)
    images = {name: f"if({name} is null and result = 'change', known_{name}, {name}) as {name}" for name in IMAGES}
    filled = halves.join(known.drop(KNOWN), ["source", "change_seq"], "left").selectExpr(
        *(images.get(name, name) for name in decoded.COLUMNS)
    )
    filled = engine.kept(filled)
    decoded.write(batch, codec, filled, lambda conflicts: conflicts.join(raw, ["unit_id", "unit_offset"]))
    engine.release(filled)
    return found


def _halves(project: Project, codec):
    def read(batches):
        import json

        import pyarrow as pa

        for batch in batches:
            rows = []
            for row in batch.to_pylist():
                source = project.sources[row["source"]]
                tables = project.tables_of(source)
                part = Waiting(row["unit_id"], decoded.part_of(row), row["raw"], json.loads(row["context"]))
                half = codec.half(part, row[KNOWN], source, tables)
                of_unit = {"source": source.name, "unit_id": row["unit_id"]}
                if isinstance(half, Reject):
                    rows += [one | of_unit for one in decoded.rows_of_rejects([half], source)]
                else:
                    rows.append(decoded.change_row(half | of_unit, source.codec, tables))
            yield pa.RecordBatch.from_pylist(rows, schema=lake.arrow_schema(decoded.DDL))

    return read
