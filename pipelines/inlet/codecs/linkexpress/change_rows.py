"""Changes of Linkexpress extracts as rows of the change table: what Spark makes of block.CHANGES, and the same for eyes
and tests.
"""

from inlet import change
from inlet.codecs.columns import digits, joined, only_of, same, word
from inlet.codecs.linkexpress.frames import tables_of
from inlet.codecs.linkexpress.reject import change_seq_of, change_seq_prefix
from inlet.codecs.results import Decoded
from inlet.fields import variant
from inlet.source import Source

OPERATIONS = ("REFRESH", "INSERT", "UPDATE", "DELETE")  # by operation code
CONSTANTS = {"prefix": "string"}
COLUMNS = {
    "change_seq": joined(same("prefix"), digits("record_ordinal", 10)),
    "operation": word(OPERATIONS, "operation"),
    "transaction_id": joined(same("prefix"), same("transaction_ordinal"), by="-"),
    "transaction_event_counter": same("counter"),
    "transaction_last_event": same("last"),
    "load_id": only_of("operation", 0, same("prefix")),
}


def constants(context: dict) -> dict:
    """What is the same for all changes of a block: the beginning of their change_seq."""
    return {"prefix": change_seq_prefix(context)}


def span(context: dict, num_records: int) -> tuple[str, str] | None:
    """Bounds of the change_seq of a block's changes."""
    first, last = change_seq_of(context, 0), change_seq_of(context, max(num_records - 1, 0))
    return (first, last) if first and last else None


def load_of(context: dict) -> str | None:
    """The id of the full load that a file is."""
    return context.get("load_id")


def changes_as_rows(decoded: Decoded, context: dict, source: Source, tables: dict) -> list[dict]:
    """Decoded changes as rows of the change table, without the columns of unit and batch: for eyes and tests, not for
    bulk.
    """
    names, rows = sorted(tables), []
    if decoded.changes.num_rows:  # a file that was refused has no time
        prefix, tables = change_seq_prefix(context), tables_of(context, tables)
    for row in decoded.changes.to_pylist():
        table, operation = tables[names[row["table_index"]]], OPERATIONS[row["operation"]]
        is_load = operation == "REFRESH"
        rows.append(
            {
                "source": source.name,
                "source_schema": table.schema_name,
                "source_table": table.table_name,
                "table_version": table.version,
                "change_seq": f"{prefix}{row['record_ordinal']:010d}",
                "operation": operation,
                "change_oper": change.OPERATIONS[operation],
                "transaction_id": None
                if row["transaction_ordinal"] is None
                else f"{prefix}-{row['transaction_ordinal']}",
                "transaction_event_counter": row["counter"],
                "transaction_last_event": row["last"],
                "change_timestamp": None,
                "stream_position": None,
                "change_mask": None,
                "column_mask": None,
                "before": row["before"] and variant.decode(**row["before"]),
                "after": row["after"] and variant.decode(**row["after"]),
                "column_states": None,
                "load_id": prefix if is_load else None,
                "unit_offset": row["unit_offset"],
                "unit_length": row["unit_length"],
            }
        )
    return rows
