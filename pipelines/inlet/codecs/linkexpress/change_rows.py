"""Changes of Linkexpress extracts as rows of the change table: what Spark makes of block.CHANGES, and the same for eyes
and tests.
"""

from inlet.codecs.columns import digits, joined, only_of, same, word
from inlet.codecs.linkexpress.reject import change_seq_of, change_seq_prefix

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
