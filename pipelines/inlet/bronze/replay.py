"""Batches that decode again what was rejected: their plans (bronze.replays), and files that could not be framed, framed
again from their landed bytes.
"""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inlet import lake, unit
from inlet.bronze.blocks import row_of
from inlet.bronze.files import unpacked_name
from inlet.bronze.framing import cut_file
from inlet.config import Project
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLANNED = [c.name for c in unit.REPLAYS]


def planned(project: Project) -> list[dict]:
    """Rows of bronze.replays, read without Spark."""
    return lake.peek(project.lakehouse_path(), "bronze.replays", PLANNED)


def of_batch(project: Project, batch_id: int) -> list[dict]:
    """The records that a batch decodes again, each once, even one that several batches have rejected."""
    rows = [row for row in planned(project) if row["batch_id"] == batch_id]
    return list({(row["source"], row["unit_id"], row["unit_offset"]): row for row in rows}.values())


def plan(spark: "SparkSession", rejects: list[dict], batch_id: int) -> None:
    """Write the plan of a batch, once however often it is tried. In: rejects."""
    now = datetime.now(UTC)
    rows = [
        (
            r["source"],
            r["unit_id"],
            r["unit_offset"],
            r["unit_length"],
            r.get("num_records", 1),
            r["batch_id"],
            batch_id,
            now,
        )
        for r in rejects
    ]
    lake.append(
        spark.createDataFrame(rows, ", ".join(f"{c.name} {c.type}" for c in unit.REPLAYS)).coalesce(1),
        "bronze.replays",
        "inlet-bronze-replays",
        batch_id,
    )


def frame_again(project: Project, spark: "SparkSession", replays: list[dict], batch_id: int) -> set[str]:
    """Frame again what could not be framed, from the landed bytes on: new blocks of this batch. Out: the units that
    they stand for.
    """
    units = {row["unit_id"] for row in replays}
    files = spark.sql(f"""
        select distinct source, path from bronze.blocks
        where unit_id in ({", ".join(map(literal, sorted(units)))})
          and context like '%"problem"%'""").collect()
    found: set[str] = set()
    rows: list[dict] = []
    for file in files:
        blocks = spark.sql(f"""
            select unit_id, file_offset, context, bytes from bronze.blocks
            where source = {literal(file.source)} and path = {literal(file.path)} and batch_id < {batch_id}
            order by file_offset, batch_id desc""").collect()
        broken = [b for b in blocks if b.unit_id in units and "problem" in json.loads(b.context)]
        if not broken:
            continue
        source, first = project.sources[file.source], broken[0]
        known = {name: value for name, value in json.loads(first.context).items() if name != "problem"}
        context = known if first.file_offset else None  # from its first byte on, a file is opened anew
        stream = _Joined([bytes(b.bytes) for b in broken])
        for block, _ in cut_file(
            source,
            project.tables_of(source),
            unpacked_name(file.path),
            stream,
            first.file_offset,
            context,
            True,
            known.get("companions"),
            known.get("before"),
        ):
            row = row_of(block, {"source": file.source, "path": file.path, "batch_id": batch_id})
            rows.append(row | {"unit_id": f"{row['unit_id']}~{batch_id}"})
        found |= {b.unit_id for b in broken}
    if rows:
        schema = ", ".join(f"{c.name} {c.type}" for c in unit.BLOCKS if c.name != "landed_at")
        names = [part.split()[0] for part in schema.split(", ")]
        new = spark.createDataFrame([tuple(row[name] for name in names) for row in rows], schema).selectExpr(
            "*", "current_timestamp() as landed_at"
        )
        sources = ",".join(sorted({row["source"] for row in rows}))  # they may come one after the other
        lake.append(new, "bronze.blocks", f"inlet-bronze-replayed-blocks-{batch_id}-{sources}", batch_id)
    return found


class _Joined:
    """Pieces of bytes as one stream."""

    def __init__(self, pieces: list[bytes]):
        self.data, self.at = b"".join(pieces), 0
        self.size = len(self.data)

    def read(self, length: int) -> bytes:
        piece = self.data[self.at : self.at + length]
        self.at += len(piece)
        return piece
