"""Batches that decode again what was rejected: their plans (bronze.replays)."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inlet import lake, unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
