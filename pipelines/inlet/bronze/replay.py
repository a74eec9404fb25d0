"""Batches that decode again what was rejected: their plans (bronze.replays)."""

from datetime import UTC, datetime

from inlet import lake
from inlet.config import Project


def plan(project: Project, rejects: list[dict], batch_id: int) -> None:
    """Write the plan of a batch, once however often it is tried. In: rejects."""
    planned = {"batch_id": batch_id, "planned_at": datetime.now(UTC)}
    rows = [{"num_records": 1, **reject, "rejected_in": reject["batch_id"], **planned} for reject in rejects]
    lake.add_rows(project.lakehouse_path(), "bronze.replays", rows, app_id="inlet-bronze-replays", version=batch_id)
