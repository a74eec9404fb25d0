"""What blocks hold besides changes: few rows a unit, which come to the driver with the end of the task that decoded it.

They come by an accumulator of Spark, as a map from unit to its rows. A task that is run again gives the same rows for
the same unit, and those of one that failed do not come: so the map is what the units of the tasks that ended well hold,
however often each ran. A unit that is not in it has to be decoded again: where there are no accumulators, where each
try is a process of its own, where the decoder failed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from inlet.silver.batch import Batch

NUM_ROWS, NUM_BYTES = 200, 64 << 10  # of one unit, at most: its rejects have their bytes
PLAIN = {"reject", "control", "account"}  # rows that are written as they are


class _ByUnit:
    """What pyspark.accumulators.AccumulatorParam asks for."""

    def zero(self, value: dict) -> dict:
        return {}

    def addInPlace(self, value1: dict, value2: dict) -> dict:
        value1.update(value2)
        return value1


def begin(batch: "Batch") -> "Accumulator[dict] | None":
    """What takes up the rows of units; None where this session has none."""
    context = getattr(batch.spark, "_sc", None)
    return context.accumulator({}, _ByUnit()) if context and not batch.is_apart else None


def take(beside: "Accumulator[dict] | None", unit_id: str, rows: list[dict]) -> None:
    """Take up the rows of a unit, in a task. Rows that are too many, or not plain, are left out."""
    if beside is None or len(rows) > NUM_ROWS or not {row["result"] for row in rows} <= PLAIN:
        return
    if sum(len(row.get("raw") or b"") for row in rows) <= NUM_BYTES:
        beside.add({unit_id: rows})


def plain(beside: "Accumulator[dict] | None") -> dict[str, list[dict]]:
    """Unit -> its rows, as far as they came."""
    return dict(beside.value) if beside is not None else {}
