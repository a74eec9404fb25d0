"""What keeps a Delta table cheap to read: its small files written together, its rows in the order of its key, a short
log, and no files that nothing reads. What is due is a pure function of what the table's log and folder say.

No step changes a row, and each is one commit, one checkpoint, or the removal of files that no version in use has: a
process that ends between any two leaves a table that reads the same, and the next maintenance goes on from there.
Rows that silver or gold still have to take are rows of the newest version, which nothing here touches.

Why not VACUUM: Spark's cannot keep the versions that views and pins name, and with a longer RETAIN it does not either,
because checkpoints leave out removed files after `delta.deletedFileRetentionDuration`; that of delta-rs removes
deletion vectors that are in use. Why not CLUSTER BY: delta-rs does not write to clustered tables.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inlet import storage
from inlet.lake import compaction, managed, reads, snapshots
from inlet.lake.compaction import MB, SMALL_FILE, SMALL_TABLE
from inlet.lake.delta_log import DeltaLog
from inlet.lake.table_state import LOG, LOG_DAYS, OURS, State
from inlet.sql import literal
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RETAIN_HOURS, LEAST_HOURS = 168, 24  # of files that newer versions lack; the public views may be a day back
NUM_WORTH, NUM_DUE = 10, 40  # small files that are worth a commit, and at the end of a run
NUM_COMMITS = 10  # after which a checkpoint is due
KEY_BYTES, KEY_SHARE = 256 * MB, 0.25  # that hold one key, from which on the rows are put in its order
FILES = "delta.deletedFileRetentionDuration"
LOG_MARGIN = 7  # days that a log is kept longer than the oldest version in use


@dataclass(frozen=True)
class Plan:
    """What is done to one table, and why."""

    state: State
    compact: str = ""  # why, each; "": it is not done
    cluster: str = ""
    checkpoint: str = ""
    keep_log: str = ""
    vacuum: str = ""
    log_days: int = 0

    @property
    def does(self) -> list[str]:
        return [name for name in ("keep_log", "compact", "cluster", "checkpoint", "vacuum") if getattr(self, name)]

    @property
    def needs_spark(self) -> bool:
        is_large = small_bytes(self.state) > SMALL_TABLE
        return bool(
            self.cluster
            or self.compact
            and (self.state.by_spark or is_large)
            or self.keep_log
            and self.state.is_foreign
        )

    def row(self) -> dict:
        """As a person reads it."""
        state = self.state
        return {
            "table": state.table,
            "files": len(state.sizes),
            "MB": round(sum(state.sizes) / MB, 1),
            "small": sum(size < SMALL_FILE for size in state.sizes),
            "log": state.num_log_files,
            "does": ", ".join(self.does).replace("_", " ") or "nothing",
            "because": "; ".join(getattr(self, name) for name in self.does),
            "keeps": "; ".join(f"{files_of(*num)}: {reason}" for reason, num in state.kept.items()),
        }


def files_of(num: int, size: int) -> str:
    return f"{num} file{'s' * (num != 1)}, {size / MB:.1f} MB"


def small_bytes(state: State) -> int:
    return sum(size for size in state.sizes if size < SMALL_FILE)


def plan(state: State, num_worth: int = NUM_WORTH) -> Plan:
    """What is due for a table. In: how many small files are worth a commit."""
    num_small, due = sum(size < SMALL_FILE for size in state.sizes), {}
    if state.key and not state.is_clustered and state.key_bytes > max(KEY_BYTES, KEY_SHARE * sum(state.sizes)):
        due["cluster"] = f"files of {state.key_bytes / MB:.0f} MB hold one {state.key[0]}"
    elif num_small >= num_worth:
        due["compact"] = f"{num_small} small files" + (f", by Spark for {state.by_spark}" if state.by_spark else "")
    if state.num_commits >= NUM_COMMITS and not state.is_foreign:
        due["checkpoint"] = f"{state.num_commits} commits after the last one"
    log_days = 0
    if state.needed_days + LOG_MARGIN > state.log_days:
        log_days = round(state.needed_days) + 2 * LOG_DAYS
        due["keep_log"] = (
            f"a version in use is {state.needed_days:.0f} days old, and the log is kept {state.log_days:.0f}"
        )
    elif state.is_log_ours and state.needed_days + LOG_MARGIN <= LOG_DAYS:
        log_days, due["keep_log"] = LOG_DAYS, f"no version in use is older than {LOG_DAYS - LOG_MARGIN} days any more"
    if state.removable:
        due["vacuum"] = f"nothing reads {files_of(len(state.removable), sum(state.removable.values()))}"
    return Plan(state, log_days=log_days, **due)


def remove(lakehouse: str, state: State) -> None:
    """Remove the files of a table that nothing reads, but for those that a commit has added again (RESTORE). A file
    that is gone already does no harm.
    """
    log = DeltaLog(reads.table_path(lakehouse, state.table))
    for path in state.removable.keys() - log.files([log.newest])[log.newest]:
        folder, _, name = path.rpartition("/")
        for each in (path, f"{folder}/.{name}.crc".lstrip("/")):
            try:
                log.store.rm_file(f"{log.path}/{each}")
            except FileNotFoundError:
                continue


def checkpoint(lakehouse: str, table: str) -> None:
    """Write a checkpoint of a table, and remove what its log need not keep any more."""

    delta_table = snapshots.open_table(reads.table_path(lakehouse, table))
    delta_table.create_checkpoint()
    delta_table.cleanup_metadata()


def keep_log(lakehouse: str, table: str, days: int, spark: "SparkSession | None" = None) -> None:
    """Have the log of a table kept for so many days: without it no version can be read, whatever files there are. In: a
    session, for a table to which delta-rs makes no commit."""

    properties = {LOG: f"interval {days} days", OURS: "true"}
    if storage.is_managed(lakehouse):  # whose VACUUM keeps files by their age alone
        return managed.set_properties(table, properties | {FILES: properties[LOG]})
    delta_table = snapshots.open_table(reads.table_path(lakehouse, table))
    if spark and compaction.unwritable(delta_table):
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
        spark.sql(f"alter table delta.{quoted(delta_table.table_uri)} set tblproperties ({pairs})")
    else:
        delta_table.alter.set_table_properties(properties, raise_if_not_exists=False)


def compact(lakehouse: str, table: str) -> None:
    """Write the small files of a small table together without Spark."""

    compaction.compact(snapshots.open_table(reads.table_path(lakehouse, table)))


def optimize(spark: "SparkSession", lakehouse: str, table: str, key: tuple[str, ...] = ()) -> None:
    """Write the small files of a table together by Spark, or all of them in the order of a key."""
    from inlet.lake.spark import settings_in

    begin = "spark.databricks.delta.optimize."
    with settings_in(spark, {f"{begin}maxFileSize": f"{128 * MB}", f"{begin}minFileSize": f"{64 * MB}"}):
        order = f" zorder by ({', '.join(map(quoted, key))})" if key else ""
        spark.sql(f"optimize delta.{quoted(reads.table_path(lakehouse, table))}{order}")
