"""The lakehouse: its Delta tables, its catalog and lock, and the Spark session. What the layers ask of it."""

from inlet.lake.compaction import keep_short
from inlet.lake.lock import following, writing
from inlet.lake.reads import (
    ask,
    bytes_that_may_hold,
    column_names,
    describe,
    exists,
    has_files,
    has_version,
    lacking,
    may_hold,
    newest,
    num_rows,
    operations,
    peek,
    size,
    size_bytes,
    table_path,
    transaction_version,
    version,
)
from inlet.lake.snapshots import query_builder
from inlet.lake.tables import DATABASES, add_arrow, add_rows, append, arrow_schema, create, create_sql, ddl_of

__all__ = [
    "DATABASES",
    "add_arrow",
    "add_rows",
    "append",
    "arrow_schema",
    "ask",
    "bytes_that_may_hold",
    "column_names",
    "create",
    "create_sql",
    "ddl_of",
    "describe",
    "exists",
    "following",
    "has_files",
    "has_version",
    "lacking",
    "keep_short",
    "may_hold",
    "newest",
    "num_rows",
    "operations",
    "peek",
    "query_builder",
    "size",
    "size_bytes",
    "table_path",
    "transaction_version",
    "version",
    "writing",
]
