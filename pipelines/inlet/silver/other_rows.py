"""The rows of blocks that are no changes (rejects, control events, parts, definitions, accounts): few a unit. The task
that decodes a unit for its changes sends them to the driver when it ends.

They are sent by an accumulator of Spark, a map from unit to rows. A task that runs again sends the same rows of the
same unit, and one that fails sends nothing: so the map has each unit of the tasks that succeeded once, however often
each ran. A unit that the map lacks has to be decoded again: where a session has no accumulators, where each try is a
process of its own, where the decoder failed, where the rows are too many.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from inlet.silver.batch import Batch

NUM_ROWS = 200  # of one unit, at most
TASK_BYTES = 256 << 10  # of one task, at most: thousands of tasks send theirs to one driver
ROW_BYTES = 300  # of a row, without its texts and bytes
TEXTS = ("raw", "detail", "expected", "found", "columns", "context")


class _ByUnit:
    """What pyspark.accumulators.AccumulatorParam asks for."""

    def zero(self, value: dict) -> dict:
        return {}

    def addInPlace(self, value1: dict, value2: dict) -> dict:
        value1.update(value2)
        return value1


def collector(batch: "Batch", units: list[str]) -> "Accumulator[dict] | None":
    """What collects the rows of units; None where rows have to be decoded apart. In: unit ids. One that is decoded
    twice, for ranges of its own each time, has two sets of rows."""
    context = getattr(batch.spark, "_sc", None)
    is_once = len(set(units)) == len(units)
    return context.accumulator({}, _ByUnit()) if context and is_once and not batch.is_apart else None


def collect(collected: "Accumulator[dict] | None", unit_id: str, rows: list[dict]) -> None:
    """Collect the rows of a unit, in a task. Rows that are too many are left out, as are changes: what has any is
    decoded again for them."""
    if collected is None or len(rows) > NUM_ROWS or any(row["result"] == "change" for row in rows):
        return
    size = sum(ROW_BYTES + sum(len(row.get(name) or "") for name in TEXTS) for row in rows)
    sent = getattr(collected, "num_bytes", 0) + size  # each task has a copy of its own
    if sent <= TASK_BYTES:
        collected.num_bytes = sent  # type: ignore[attr-defined]
        collected.add({unit_id: rows})


def taken(collected: "Accumulator[dict] | None") -> dict[str, list[dict]]:
    """Unit -> its rows, for units whose rows were collected. They are given once: PySpark keeps what an accumulator
    holds for as long as the process lives."""
    if collected is None:
        return {}
    rows, collected.value = collected.value, {}
    return rows
