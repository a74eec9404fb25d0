"""Changes of change tables and loads as rows of silver.changes: what Spark makes of CHANGES, and the same for eyes and
tests.
"""

import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.columns import digits, first_of, joined, same, word
from inlet.fields import variant
from inlet.table import Table

OPERATIONS = ("REFRESH", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
CHANGES = pa.schema(
    [
        ("unit_offset", pa.int64()),
        ("unit_length", pa.int64()),
        ("row_ordinal", pa.int64()),  # of a load, in its file
        ("operation", pa.int32()),
        ("table_version", pa.int32()),
        ("change_seq", pa.string()),
        ("stream_position", pa.string()),
        ("transaction_id", pa.string()),
        ("change_timestamp", pa.timestamp("us", tz="UTC")),
        ("change_mask", pa.binary()),
        ("column_mask", pa.binary()),
        ("before", IMAGE),
        ("after", IMAGE),
        ("header", IMAGE),
    ]
)
CONSTANTS = {"source_schema": "string", "source_table": "string", "load": "string", "place_of_load": "string"}
COLUMNS = {
    "change_seq": first_of(same("change_seq"), joined(same("place_of_load"), digits("row_ordinal", 8))),
    "operation": word(OPERATIONS, "operation"),
    "load_id": same("load"),
}
VARIANTS = ("before", "after", "header")


def constants(context: dict) -> dict:
    """What is the same for all changes of a unit."""
    schema, table = context["table"].split(".", 1)
    return {
        "source_schema": schema,
        "source_table": table,
        "load": context.get("load_id"),
        "place_of_load": context.get("place"),
    }


def tables_of(context: dict, tables: dict[str, Table]) -> dict[str, Table]:
    """The contract of a unit's table."""
    return {context["table"]: tables[context["table"]]}


def batch_of(rows: list[dict]) -> pa.RecordBatch:
    """Changes of the plain path as an Arrow batch."""
    found = [
        {name: row.get(name) for name in CHANGES.names if name not in VARIANTS}
        | {"operation": OPERATIONS.index(row["operation"])}
        | {name: _variant(row.get(name)) for name in VARIANTS}
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(found, CHANGES)


def _variant(image: dict | None) -> dict | None:
    return None if image is None else dict(zip(("value", "metadata"), variant.encode(image)))
