"""Columnar files: Parquet whose rows are the records. Not messages kept in Parquet; that is message_parquet.py.

A file is landed as a whole. Its units are runs of rows within a row group, each an Arrow stream of its own, so that
they decode alone and side by side; `bronze.delivered` keeps the file as it came. A row's place in the file is
`file_offset` of its unit plus its `unit_offset`. A row counts as one byte of its unit, the rest of the unit as framing.
"""

import hashlib
import json
from collections.abc import Iterator

from inlet.bronze.files import as_problem, first_line, hash_bytes, open_file
from inlet.bronze.framing import attempt
from inlet.codecs import CODECS
from inlet.codecs.codec import FIRST_ROW
from inlet.config import Project
from inlet.errors import InletError, Reject
from inlet.source import Source

NUM_ROWS = 10_000  # of a unit at most


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | None:
    """One row of bronze.files for a columnar file; None where it is no longer what was listed, or may still grow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    digest, codec = hashlib.sha256(), CODECS[source.codec]
    with open_file(project, path) as stream:
        hash_bytes(stream, digest, info["size"])
        if stream.read(1):
            return None
        if known:
            if digest.hexdigest() == known["sha256"]:
                return known | {"num_units": 0}
            remedy = "Deliver changed content under a new name"
            return as_problem(0, "file_rewritten", "the file as landed before", "other bytes", remedy)
        stream.seek(0)
        try:
            file = pq.ParquetFile(stream)
            schema, num_rows = file.schema_arrow, file.metadata.num_rows
            num_units = sum(1 for _ in _runs(file))
        except (pa.ArrowException, OSError) as error:
            if getattr(error, "errno", None):
                raise
            if not has_settled:
                return None
            return as_problem(0, "unreadable_file", "a Parquet file", first_line(error), "Fix or remove the file")
    opened = attempt(codec.open_rows, path, schema, source, project.tables_of(source))
    if isinstance(opened, Reject):
        problem = as_problem(0, "unreadable_file", opened.expected, opened.found, "Fix or remove the file")
        return problem | {"sha256": digest.hexdigest()}
    if info.get("companions"):
        opened = opened | {"companions": info["companions"]}
    return {
        "ofs_start": 0,
        "ofs_end": info["size"],
        "sha256": digest.hexdigest(),
        "num_units": num_units,
        "problem": None,
        "context": json.dumps(opened | {"num_rows": num_rows}),
        "start_context": json.dumps(opened),
    }


def _runs(file) -> Iterator[tuple[int, int, int]]:
    """(row group, first row in it, rows) of each unit."""
    for group in range(file.metadata.num_row_groups):
        for first in range(0, file.metadata.row_group(group).num_rows, NUM_ROWS):
            yield group, first, min(NUM_ROWS, file.metadata.row_group(group).num_rows - first)


def units_of(project: Project, row: dict, codec=None) -> Iterator[dict]:
    """Rows of bronze.blocks of a planned file. Raises: InletError where the file is not what its plan says."""
    import pyarrow.parquet as pq

    context, digest = json.loads(row["start_context"]), hashlib.sha256()
    with open_file(project, row["path"]) as stream:
        hash_bytes(stream, digest, row["ofs_end"] + 1)
        if digest.hexdigest() != row["sha256"]:
            raise InletError(f"sha-256 {digest.hexdigest()}, planned {row['sha256']}")
        stream.seek(0)
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
