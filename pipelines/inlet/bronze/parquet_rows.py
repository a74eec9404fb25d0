"""Columnar files: Parquet whose rows are the records. Not messages kept in Parquet; that is message_parquet.py.

A file is landed as a whole. Its units are runs of rows within a row group, each an Arrow stream of its own, so that
they decode alone and side by side; `bronze.delivered` keeps the file as it came. A row's place in the file is
`file_offset` of its unit plus its `unit_offset`. A row counts as one byte of its unit, the rest of the unit as framing.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import partial

from inlet.bronze.companions import miscounted
from inlet.bronze.deliveries import SETTINGS, settings_of
from inlet.bronze.files import as_problem
from inlet.bronze.framing import attempt
from inlet.bronze.whole_files import plan_whole, planned_file
from inlet.codecs import CODECS
from inlet.codecs.codec import FIRST_ROW
from inlet.config import Project
from inlet.errors import Reject
from inlet.source import Source

NUM_ROWS = 10_000  # of a unit at most


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | str | None:
    """One row of bronze.files for a columnar file; None where it is no longer what was listed, or has no footer yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def plan(stream) -> dict:
        file, codec = pq.ParquetFile(stream), CODECS[source.codec]
        told = info.get("companions") or {}
        opened = attempt(
            codec.open_rows, path, file.schema_arrow, partial(_values, file), told, source, project.tables_of(source)
        )
        num_said, num_rows = info.get("num_records"), file.metadata.num_rows
        if isinstance(opened, dict) and isinstance(num_said, int) and num_said != num_rows:
            opened = miscounted(num_said, num_rows)
        if isinstance(opened, Reject):
            expected, found = opened.expected, opened.found
            settings = {SETTINGS: settings_of(project, source)}
            return as_problem(0, "unreadable_file", expected, found, "Fix or remove the file", **settings)
        context = json.dumps(opened)
        return {"num_units": sum(1 for _ in _runs(file)), "context": context, "start_context": context}

    file = (path, info, known, has_settled)
    return plan_whole(project, source, file, plan, "a Parquet file", (pa.ArrowException,), has_end=True)


def _values(file, name: str) -> Iterator:
    """The values of a column, run by run."""
    return (rows.column(name) for rows in file.iter_batches(NUM_ROWS, columns=[name]))


def _runs(file) -> Iterator[tuple[int, int, int]]:
    """(row group, first row in it, rows) of each unit."""
    for group in range(file.metadata.num_row_groups):
        for first in range(0, file.metadata.row_group(group).num_rows, NUM_ROWS):
            yield group, first, min(NUM_ROWS, file.metadata.row_group(group).num_rows - first)


def units_of(project: Project, row: dict) -> Iterator[dict]:
    """Rows of bronze.blocks of a planned file. Raises: InletError where the file is not what its plan says."""
    import pyarrow.parquet as pq

    context = json.loads(row["start_context"])
    with planned_file(project, row) as stream:
        file, last, offset = pq.ParquetFile(stream), None, 0
        for group, first, num in _runs(file):
            if group != last:
                rows, last = file.read_row_group(group), group
            data = _as_stream(rows.slice(first, num))
            yield {name: row[name] for name in ("source", "path", "batch_id")} | {
                "unit_id": f"{row['source']}/{row['path']}@{offset}",
                "file_offset": offset,
                "size_bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "context": json.dumps(context | {FIRST_ROW: offset}),
                "num_records": num,
                "bytes": data,
            }
            offset += num


def _as_stream(rows) -> bytes:
    """Rows as an Arrow stream, with at least a byte for each row."""
    import pyarrow as pa

    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    data = out.getvalue().to_pybytes()
    return data + b"\0" * max(0, len(rows) - len(data))
