"""Batches that decode again what was rejected: their plans (bronze.replays)."""

from datetime import UTC, datetime

from inlet import lake, unit
from inlet.config import Project

PLANNED = [c.name for c in unit.REPLAYS]


def planned(project: Project) -> list[dict]:
    """Rows of bronze.replays, read without Spark."""
    return lake.peek(project.lakehouse_path(), "bronze.replays", PLANNED)


def of_batch(project: Project, batch_id: int) -> list[dict]:
    """The records that a batch decodes again, each once, even one that several batches have rejected."""
    rows = [row for row in planned(project) if row["batch_id"] == batch_id]
    return list({(row["source"], row["unit_id"], row["unit_offset"]): row for row in rows}.values())


def plan(project: Project, rejects: list[dict], batch_id: int) -> None:
    """Write the plan of a batch, once however often it is tried. In: rejects."""
    planned = {"batch_id": batch_id, "planned_at": datetime.now(UTC)}
    rows = [{"num_records": 1, **reject, "rejected_in": reject["batch_id"], **planned} for reject in rejects]
    lake.add_rows(project.lakehouse_path(), "bronze.replays", rows, app_id="inlet-bronze-replays", version=batch_id)
