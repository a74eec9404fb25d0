"""What the log and the folder of a Delta table say of the work that is due there, read without Spark."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from inlet.lake import compaction, reads, snapshots
from inlet.lake.compaction import SMALL_FILE
from inlet.lake.delta_log import DAY, DeltaLog, LogLacks, written_at

LOG_DAYS = 30  # that a log is kept by default
LOG, OURS = "delta.logRetentionDuration", "inlet.keeps_log"  # the second one: maintenance has set the first one
DAYS = {"hour": 1 / 24, "day": 1, "week": 7}


@dataclass(frozen=True)
class State:
    """What the log and the folder of one table say."""

    table: str
    version: int
    sizes: tuple[int, ...] = ()  # of its data files
    num_commits: int = 0  # after the last checkpoint
    num_log_files: int = 0
    by_spark: str = ""  # why delta-rs cannot write its files together
    is_foreign: bool = False  # whether delta-rs makes no commit to it
    is_clustered: bool = False  # by CLUSTER BY, which Spark's OPTIMIZE follows
    key: tuple[str, ...] = ()  # the columns in whose order the rows should lie; none: as they were appended
    key_bytes: int = 0  # that hold one value of the key, on average
    removable: dict[str, int] = field(default_factory=dict)  # path -> bytes, of files that nothing reads
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)  # why -> files and bytes that are kept for it
    log_days: float = LOG_DAYS  # that its log is kept
    needed_days: float = 0  # age of the oldest version in use
    is_log_ours: bool = False  # whether maintenance or a pin has set log_days, and no pin needs it any more


class Kept(NamedTuple):
    """What of a table is kept for views."""

    versions: dict[int, str]  # -> what reads it
    logged: set[int]  # versions whose log alone is needed
    pinned: set[int]  # versions that a pin reads


def read(lakehouse: str, table: str, kept: Kept, hours: float, now: float) -> State:
    """The state of a table. In: what of it is kept; how long a file is kept after a newer version came without it."""
    snapshot = reads.existing(lakehouse, table)
    log, properties = DeltaLog(reads.table_path(lakehouse, table)), snapshot.table.metadata().configuration
    files = snapshots.as_arrow(snapshot.table.get_add_actions(flatten=True))
    features = {*(snapshot.table.protocol().writer_features or ())}
    key = _key(table, properties, files.column_names)
    values = zip(*(files.column(f"{end}.{key[0]}").to_pylist() for end in ("min", "max"))) if key else ()
    sizes = files.column("size_bytes").to_pylist()
    removable, why = _unused(log, kept.versions, hours, now)
    ages = (log.age_seconds(n, now) / DAY for n in {*kept.versions, *kept.logged} if n in log.commits)
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
        why,
        _days(properties.get(LOG, "")),
        max(ages, default=0.0),
        OURS in properties and not kept.pinned,
    )


def read_sizes(lakehouse: str, table: str, num_due: int) -> State:
    """The part of a table's state that its newest version tells. In: how many small files are due."""
    snapshot = reads.existing(lakehouse, table)
    sizes = snapshots.as_arrow(snapshot.table.get_add_actions(flatten=True)).column("size_bytes").to_pylist()
    is_due = sum(size < SMALL_FILE for size in sizes) >= num_due
    return State(
        table, snapshot.version, tuple(sizes), by_spark=compaction.why_by_spark(snapshot.table) if is_due else ""
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


def _existing(log: DeltaLog) -> dict[str, tuple[int, float]]:
    """Path below a table -> bytes and when it was written, of what is neither hidden nor of the log."""
    found = {}
    for name, info in log.store.find(log.path, detail=True).items():
        path = name.removeprefix(log.path).lstrip("/")
        if not any(part.startswith(("_", ".")) for part in path.split("/")):
            found[path] = info["size"], written_at(info)
    return found


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
