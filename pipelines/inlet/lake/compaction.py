"""Small files of a Delta table are written together by delta-rs, in one commit that changes no row.

Above 50 files Delta rebuilds a table's state from its log for each query. A small table of a few hundred rows is
compacted in 20 to 60 ms, where Spark's OPTIMIZE takes a second.

Two things delta-rs gets wrong (1.6.6), so they are left to Spark or prevented: it accepts two compactions of the same
files and doubles their rows, so one is made at a time, by the run that holds the lakehouse's lock; and it reads the
INT96 times of earlier releases as nanoseconds, which overflow outside the years 1677 to 2262.
"""

import logging
import math
from threading import RLock
from urllib.parse import unquote

from inlet import storage
from inlet.lake import snapshots

NUM_FILES, CHECKPOINT_COMMITS = 40, 10  # of a table that is written without Spark
MB = 1 << 20
SMALL_FILE = 32 * MB  # delta-rs leaves larger files as they are, and makes none
SMALL_TABLE = 64 * MB  # bytes of small files up to which it writes them together; more take Spark
# of the features of a table those with which delta-rs writes; of others it makes no commit
FEATURES = {"appendOnly", "deletionVectors", "invariants", "timestampNtz", "variantType"}
_compacting = RLock()
log = logging.getLogger(__name__)


def keep_short(path: str) -> None:
    """Write a checkpoint ten commits after the last one, and compact small files where there are forty, whoever made
    the commits. In: the path of a table that was written without Spark."""
    import deltalake

    if storage.is_managed(path):  # its catalog's own upkeep does it
        return
    with _compacting:
        table = snapshots.open_table(path)
        try:
            sizes = [size for _, size in _small_files(table)]
            if len(sizes) >= NUM_FILES and sum(sizes) <= SMALL_TABLE and not why_by_spark(table):
                compact(table)
            version, last = table.version(), snapshots.checkpoint_version(path) if storage.is_local(path) else math.inf
            is_tenth = version % CHECKPOINT_COMMITS == 0  # at a URL, where a look costs a request
            if is_tenth if math.isinf(last) else version - last >= CHECKPOINT_COMMITS:
                table.create_checkpoint()
        except deltalake.exceptions.CommitFailedError as error:  # another process has written it; the next one tries
            log.info("%s was not compacted: %s", path, error)


def compact(table) -> None:
    """Write the small files of a table together. In: a DeltaTable that `why_by_spark` allows.

    Raises: CommitFailedError where a commit of another process has taken away files of it.
    """
    with _compacting:
        table.update_incremental()
        table.optimize.compact(target_size=SMALL_FILE)


def why_by_spark(table) -> str:
    """Why delta-rs must not write a table's files together; "" where it may. Reads the footers of its small files."""
    return unwritable(table) or ("times of an earlier release in its files" if _has_int96(table) else "")


def unwritable(table) -> str:
    """Why delta-rs makes no commit to a table; "" where it does."""
    protocol = table.protocol()
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    if others := features - FEATURES:
        return f"its feature {min(others)}"
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        return "its column mapping"
    return ""


def _has_int96(table) -> bool:
    """True if a small file holds times as INT96. Tables without times are not looked at."""
    import pyarrow.parquet as pq

    if "timestamp" not in table.schema().to_json():
        return False
    small = {path.rpartition("/")[2] for path, _ in _small_files(table)}
    for uri in (uri for uri in table.file_uris() if uri.rpartition("/")[2] in small):
        store, path = storage.open_store(unquote(uri))
        with store.open(path, "rb") as file:
            schema = pq.ParquetFile(file).schema
            if any(schema.column(n).physical_type == "INT96" for n in range(len(schema))):
                return True
    return False


def _small_files(table) -> list[tuple[str, int]]:
    """(path below the table, bytes) of the files that are written together."""
    actions = snapshots.as_arrow(table.get_add_actions(flatten=True))
    files = zip(actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist())
    return [(path, size) for path, size in files if size < SMALL_FILE]
