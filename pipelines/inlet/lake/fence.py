"""What keeps a former writer of a lakehouse, which may still be about to commit, from writing next to the one that goes
on from there: a property of each table that is changed.

Delta takes no commit, of delta-rs or of Spark, on a version from before a change of the table's properties. So a
statement that runs in a Connect server for a client that was killed fails when it is about to commit, and so does one
of a machine that slept. A statement that begins later is not refused: Connect's are interrupted (connect.py), and
commits of delta-rs note the number of a lease (lease.py).

Source: Delta's `ConflictChecker.checkNoMetadataUpdates`; delta-rs has the same rule.
"""

import uuid
from typing import TYPE_CHECKING

from inlet import storage
from inlet.lake import reads, snapshots, tables
from inlet.lake.compaction import unwritable
from inlet.sql import literal
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITER = "inlet.writer"  # the property


def refuse_begun(lakehouse: str) -> list[str]:
    """Refuse the commits that have begun, and note the lease, without Spark. Out: the tables that are left to
    `refuse_begun_by`. Raises: as `tables.add_rows`."""
    left = []
    if storage.is_managed(lakehouse):
        return tables.all_tables(lakehouse)
    for name in tables.all_tables(lakehouse):
        with tables.as_ours(lakehouse, name) as of_lease:
            table = snapshots.open_table(reads.table_path(lakehouse, name))
            if unwritable(table):
                left.append(name)
            else:
                table.alter.set_table_properties(
                    {WRITER: uuid.uuid4().hex},
                    raise_if_not_exists=False,  # of names that Delta does not have
                    commit_properties=tables.noting(of_lease),
                )
    return left


def refuse_begun_by(spark: "SparkSession", lakehouse: str, names: list[str]) -> None:
    """The same of tables to which delta-rs makes no commit."""
    for name in names:
        is_managed = storage.is_managed(lakehouse)
        table = name if is_managed else f"delta.{quoted(reads.table_path(lakehouse, name))}"
        spark.sql(f"alter table {table} set tblproperties ({literal(WRITER)} = {literal(uuid.uuid4().hex)})")
