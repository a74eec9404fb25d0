"""What keeps a Delta table cheap to read: its small files written together, its rows in the order of its key, a short
log, and no files that nothing reads. What is due is a pure function of what the table's log and folder say.

No step changes a row, and each is one commit, one checkpoint, or the removal of files that no version in use has: a
process that ends between any two leaves a table that reads the same, and the next maintenance goes on from there.
Rows that silver or gold still have to take are rows of the newest version, which nothing here touches.

Why not VACUUM: Spark's can't keep the versions that views and pins name, and with a longer RETAIN it does not either,
because checkpoints leave out removed files after `delta.deletedFileRetentionDuration`; that of delta-rs removes
deletion vectors that are in use. Why not CLUSTER BY: delta-rs does not write to clustered tables.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

import fsspec

from inlet.lake import compaction, reads, snapshots
from inlet.lake.delta_log import DAY, DeltaLog, LogLacks, written_at
from inlet.lake.tables import DATABASES
from inlet.sql import literal
from inlet.sql import name as quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MB = 1 << 20
RETAIN_HOURS, LEAST_HOURS = 168, 24  # of files that newer versions lack; the public views may be a day back
SMALL_TABLE, SMALL_FILE = 64 * MB, 32 * MB
NUM_WORTH, NUM_DUE = 10, 40  # small files that are worth a commit, and at the end of a run
NUM_COMMITS = 10  # after which a checkpoint is due
KEY_BYTES, KEY_SHARE = 256 * MB, 0.25  # that hold one key, from which on the rows are put in its order
LOG_DAYS, LOG_MARGIN = 30, 7  # that a log is kept by default, and how much longer than what is in use
LOG, OURS = "delta.logRetentionDuration", "inlet.keeps_log"
DAYS = {"hour": 1 / 24, "day": 1, "week": 7}


@dataclass(frozen=True)
class State:
    """What the log and the folder of one table say."""

    table: str
    version: int
    sizes: tuple[int, ...] = ()  # of its data files
    num_commits: int = 0  # after the last checkpoint
    num_log_files: int = 0
    by_spark: str = ""  # why delta-rs can't write its files together
    is_foreign: bool = False  # whether delta-rs makes no commit to it
    is_clustered: bool = False  # by CLUSTER BY, which Spark's OPTIMIZE follows
    key: tuple[str, ...] = ()  # the columns in whose order the rows should lie; none: as they were appended
    key_bytes: int = 0  # that hold one value of the key, on average
    removable: dict[str, int] = field(default_factory=dict)  # path -> bytes, of files that nothing reads
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)  # why -> files and bytes that are kept for it
    log_days: float = LOG_DAYS  # that its log is kept
    needed_days: float = 0  # age of the oldest version in use
    is_log_ours: bool = False  # whether maintenance has set log_days


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


def tables(lakehouse: str) -> list[str]:
    """The Delta tables of a lakehouse."""
    store, root = fsspec.core.url_to_fs(lakehouse)
    folders = [f"{root}/{database}" for database in DATABASES]
    places = [place for folder in folders if store.isdir(folder) for place in store.ls(folder, detail=False)]
    return sorted(".".join(place.split("/")[-2:]) for place in places if store.isdir(f"{place}/_delta_log"))


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


def bytes_of_key(files: Iterable[tuple]) -> int:
    """Bytes of the files that may hold one value of a column, on average over the values that files begin with; 0 where
    that is not known. In: (least value, greatest value, bytes) of each file.

    >>> bytes_of_key([(1, 9, 100), (10, 19, 100)]), bytes_of_key([(1, 19, 100), (1, 18, 100)])
    (100, 200)
    """
    files = list(files)
    if not files or any(low is None or high is None for low, high, _ in files):
        return 0
    lows, highs = sorted((low, size) for low, _, size in files), sorted((high, size) for _, high, size in files)
    begun, ended = ([0, *accumulate(size for _, size in ends)] for ends in (lows, highs))
    firsts, lasts = [low for low, _ in lows], [high for high, _ in highs]
    return sum(begun[bisect_right(firsts, low)] - ended[bisect_left(lasts, low)] for low in firsts) // len(files)


def unused(
    existing: dict[str, tuple[int, float]],
    used: set[str],
    needed: dict[str, str],
    removed: dict[str, float],
    since: float,
) -> tuple[dict[str, int], dict[str, str]]:
    """Files that nothing reads, with their bytes, and why others are kept that the newest version lacks. In: path ->
    bytes and when it was written; paths of the newest version; path -> why another version is needed; path -> when it
    was removed; until when a reader may have opened what it still reads."""
    removable, kept = {}, {}
    for path, (size, written) in existing.items():
        if path in used:
            continue
        if path in needed:
            kept[path] = needed[path]
        elif max(removed.get(path, 0), written) >= since:
            kept[path] = ""
        else:
            removable[path] = size
    return removable, kept


def read_sizes(lakehouse: str, table: str) -> State:
    """The part of a table's state that its newest version tells, for the end of a run."""
    snapshot = snapshots.existing(reads.table_path(lakehouse, table))
    sizes = snapshots.as_arrow(snapshot.table.get_add_actions(flatten=True)).column("size_bytes").to_pylist()
    is_due = sum(size < SMALL_FILE for size in sizes) >= NUM_DUE
    return State(
        table, snapshot.version, tuple(sizes), by_spark=compaction.why_by_spark(snapshot.table) if is_due else ""
    )


def read(
    lakehouse: str, table: str, versions: dict[int, str], logged: Iterable[int], hours: float, now: float
) -> State:
    """The state of a table. In: version -> what reads it; versions whose log alone is needed; how long a file is kept
    after a newer version came without it."""
    snapshot = snapshots.existing(reads.table_path(lakehouse, table))
    log, properties = DeltaLog(reads.table_path(lakehouse, table)), snapshot.table.metadata().configuration
    files = snapshots.as_arrow(snapshot.table.get_add_actions(flatten=True))
    features = {*(snapshot.table.protocol().writer_features or ())}
    key = _key(table, properties, files.column_names)
    values = zip(*(files.column(f"{end}.{key[0]}").to_pylist() for end in ("min", "max"))) if key else ()
    sizes = files.column("size_bytes").to_pylist()
    removable, kept = _unused(log, versions, hours, now)
    ages = (log.age_seconds(version, now) / DAY for version in {*versions, *logged} if version in log.commits)
    return State(
        table,
        snapshot.version,
        tuple(sizes),
        log.num_commits,
        log.num_files,
        compaction.why_by_spark(snapshot.table) if len(sizes) > 1 else "",
        bool(compaction.unwritable(snapshot.table)),
        "clustering" in features,
        key,
        bytes_of_key((low, high, size) for (low, high), size in zip(values, sizes)) if key else 0,
        removable,
        kept,
        _days(properties.get(LOG, "")),
        max(ages, default=0.0),
        OURS in properties,
    )


def _unused(log: DeltaLog, versions: dict[int, str], hours: float, now: float) -> tuple[dict[str, int], dict]:
    """Files that nothing reads, and why how many others are kept."""
    since = now - hours * 3600
    existing = _existing(log)
    try:
        files = log.files([*versions, log.newest])
        removed = log.removed(since)
    except LogLacks as lack:
        return {}, {f"{lack}, so none is removed": (len(existing), sum(size for size, _ in existing.values()))}
    needed = {path: why for version, why in versions.items() for path in files[version]}
    removable, kept = unused(existing, files[log.newest], needed, removed, since)
    young = f"younger than {hours:.0f} hours, a reader may read them"
    numbers: Counter[str] = Counter(why or young for why in kept.values())
    sizes: Counter[str] = Counter()
    for path, why in kept.items():
        sizes[why or young] += existing[path][0]
    return removable, {why: (num, sizes[why]) for why, num in numbers.items()}


def _existing(log: DeltaLog) -> dict[str, tuple[int, float]]:
    """Path below a table -> bytes and when it was written, of what is neither hidden nor of the log."""
    found = {}
    for name, info in log.store.find(log.path, detail=True).items():
        path = name.removeprefix(log.path).lstrip("/")
        if not any(part.startswith(("_", ".")) for part in path.split("/")):
            found[path] = info["size"], written_at(info)
    return found


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
    import deltalake

    delta_table = deltalake.DeltaTable(reads.table_path(lakehouse, table))
    delta_table.create_checkpoint()
    delta_table.cleanup_metadata()


def keep_log(lakehouse: str, table: str, days: int, spark: "SparkSession | None" = None) -> None:
    """Have the log of a table kept for so many days: without it no version can be read, whatever files there are. In: a
    session, for a table to which delta-rs makes no commit."""
    import deltalake

    delta_table = deltalake.DeltaTable(reads.table_path(lakehouse, table))
    properties = {LOG: f"interval {days} days", OURS: "true"}
    if spark and compaction.unwritable(delta_table):
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
        spark.sql(f"alter table delta.{quoted(delta_table.table_uri)} set tblproperties ({pairs})")
    else:
        delta_table.alter.set_table_properties(properties, raise_if_not_exists=False)


def compact(lakehouse: str, table: str) -> None:
    """Write the small files of a small table together without Spark."""
    import deltalake

    compaction.compact(deltalake.DeltaTable(reads.table_path(lakehouse, table)))


def optimize(spark: "SparkSession", lakehouse: str, table: str, key: tuple[str, ...] = ()) -> None:
    """Write the small files of a table together by Spark, or all of them in the order of a key."""
    sizes = {"maxFileSize": 128 * MB, "minFileSize": 64 * MB}
    for setting, size in sizes.items():
        spark.conf.set(f"spark.databricks.delta.optimize.{setting}", size)
    try:
        order = f" zorder by ({', '.join(map(quoted, key))})" if key else ""
        spark.sql(f"optimize delta.{quoted(reads.table_path(lakehouse, table))}{order}")
    finally:
        for setting in sizes:
            spark.conf.unset(f"spark.databricks.delta.optimize.{setting}")


def _key(table: str, properties: dict[str, str], statistics: list[str]) -> tuple[str, ...]:
    """The columns in whose order the rows of a table should lie. Live rows are found by their key. Every other table is
    read by batch, by place in the order, or by when a version ended, which is the order of its appends."""
    if not table.startswith("gold.") or not table.endswith("__current"):
        return ()
    columns = properties.get("inlet.key", "").split(",")[:3]
    return tuple(name for name in columns if f"min.{name}" in statistics)


def _days(interval: str) -> float:
    """Days of an interval as Delta's properties say it.

    >>> _days("interval 2 weeks"), _days("")
    (14, 30)
    """
    match = re.fullmatch(r"(?:interval )?(\d+) (hour|day|week)s?", interval.strip().lower())
    return int(match[1]) * DAYS[match[2]] if match else LOG_DAYS
