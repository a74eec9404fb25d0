"""Units of a small batch, read in one process of their own and appended without Spark, which takes half a second or
more for the same (docs/adr/0030). What fails here goes the way through Spark, which sets aside the file that is not as
it was planned.
"""

import hashlib
import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inlet import lake, storage, unit
from inlet.bronze import blocks, guard, kafka, kept_message, lookups
from inlet.bronze.files import is_compressed
from inlet.bronze.transports import TRANSPORTS
from inlet.config import Project
from inlet.source import ROW_TRANSPORTS

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)
NUM_FILES, NUM_BYTES = 100, 16 << 20  # at most


def is_small(project: Project, files: list[dict]) -> bool:
    """True if the planned files of a batch are read without Spark: none that is packed, whose size says little of
    what it holds, and no topic that was made again, whose offsets are there twice."""
    sources = [project.sources[row["source"]] for row in files]
    return (
        storage.is_reached(project.lakehouse_path())
        and len(files) <= NUM_FILES
        and sum(map(project.size_of, files)) <= NUM_BYTES
        and not any(is_compressed(row["path"]) for row in files)
        and not any(source.transport in ROW_TRANSPORTS or lookups.needs_any(source) for source in sources)
        and not kafka.suffixes([row for row, source in zip(files, sources) if source.broker])
    )


def append_blocks(project: Project, files: list[dict], batch_id: int) -> bool:
    """Append the blocks of a small batch, once however often it is tried. Out: False where that is left to Spark."""
    return _append(project, "bronze.blocks", lambda: _blocks(project, files), batch_id, [row["path"] for row in files])


def append_messages(project: Project, files: list[dict], batch_id: int) -> bool:
    """The same of messages, none of which can have been landed before."""
    has_broker = any(project.sources[row["source"]].broker for row in files)  # its client is no child's
    paths = [] if has_broker else [row["path"] for row in files]
    return _append(project, "bronze.messages", lambda: _messages(project, files), batch_id, paths)


def _append(project: Project, table: str, read, batch_id: int, paths: list[str]) -> bool:
    """In: what gives the rows; the paths that a child can read."""
    import pyarrow as pa

    try:
        rows = guard.apart(read, *paths)
    except Exception as error:  # the way through Spark finds the file that it fails on
        log.info("%s of batch %d goes through Spark: %s", table, batch_id, guard.why(error))
        return False
    app_id = f"inlet-{table.replace('.', '-')}"
    landed_at = pa.repeat(pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC")), len(rows))
    lake.add_arrow(project.lakehouse_path(), table, rows.append_column("landed_at", landed_at), app_id, batch_id)
    return True


def _blocks(project: Project, files: list[dict]) -> "pa.Table":
    import pyarrow as pa

    columns = ", ".join(f"{c.name} {c.type}" for c in unit.BLOCKS if c.name != "landed_at")
    return pa.Table.from_pylist(blocks.rows_of(project, files), lake.arrow_schema(columns))


def _messages(project: Project, files: list[dict]) -> "pa.Table":
    import pyarrow as pa

    planned = [json.loads(json.dumps(row, default=str)) for row in files]
    batches = [
        b for row in planned for b in TRANSPORTS[project.sources[row["source"]].transport].units_of(project, row)
    ]
    rows = pa.Table.from_batches(
        batches, batches[0].schema if batches else kept_message.as_kept(planned[0], {}, 0).schema
    )
    places = zip(*(rows.column(name).to_pylist() for name in ("source", "topic", "partition", "offset")))
    values = [value or b"" for value in rows.column("value").to_pylist()]
    given = {
        "unit_id": pa.array(["/".join(map(str, place)) for place in places], pa.string()),
        "size_bytes": pa.array(map(len, values), pa.int64()),
        "sha256": pa.array([hashlib.sha256(value).hexdigest() for value in values], pa.string()),
    }
    names = [c.name for c in unit.MESSAGES if c.name != "landed_at"]
    return pa.table([given[name] if name in given else rows.column(name) for name in names], names)
