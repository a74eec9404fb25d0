"""A batch that silver has not finished begins from nothing: what an attempt that died wrote of it is deleted first.

The ledger is the only door, so nobody has seen those rows. Each table tells for itself whether it holds any; a recovery
that dies is therefore finished by the next. Changes go before transactions, which are then made anew from the changes
that are left.
"""

from typing import TYPE_CHECKING

from inlet import lake
from inlet.config import Project
from inlet.silver import transactions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPENDED = "silver.changes", "silver.rejects", "silver.control_events", "silver.table_versions", "silver.waiting"


def begun(project: Project, batch_id: int) -> list[str]:
    """The tables that may hold rows of a batch, by the statistics of their files. Read without Spark."""
    return [
        table
        for table in (*APPENDED, "silver.transactions")
        if lake.may_hold(project.lakehouse_path(), table, "batch_id", batch_id)
    ]


def run(project: Project, spark: "SparkSession", batch_id: int, of_sources: str = "true") -> None:
    """Delete what is there of a batch that the ledger does not have. Doing it twice changes nothing. In: SQL for the
    sources that the ledger lacks.
    """
    there = begun(project, batch_id)
    own = f"batch_id = {batch_id} and {of_sources}"
    for table in there:
        if table in APPENDED:
            spark.sql(f"delete from {table} where {own}")
    if lake.peek(project.lakehouse_path(), "silver.rejects", ["batch_id"], f"where resolved_by = {batch_id} limit 1"):
        spark.sql(f"update silver.rejects set resolved_by = null where resolved_by = {batch_id} and {of_sources}")
    if "silver.transactions" in there:
        first = transactions.tells_first(project, batch_id)
        transactions.withdraw(spark, own, transactions.may_have_others(project), first)
