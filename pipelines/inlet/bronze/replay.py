"""Batches that decode again what was rejected: their plans (bronze.replays)."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inlet import lake, unit
from inlet.config import Project

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
