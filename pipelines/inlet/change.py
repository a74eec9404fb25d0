"""The unified change table, declared once. DDL, docs/change_table.md, Arrow schemas and checks derive from here.

One row per change, whatever tool and format it came from; a before-image is part of its change, not a row of its own.
`(source, change_seq)` identifies a change: writing it twice leaves one row. Order is defined within a source only, and
`change_seq` compares as text.

The tables around it (rejects, transactions, table versions, control events, batches) are declared here too.
"""

from typing import NamedTuple

from inlet.sql import literal


class Column(NamedTuple):
    name: str
    type: str  # Spark SQL type
    doc: str


OPERATIONS = {"REFRESH": "R", "INSERT": "I", "UPDATE": "U", "UPSERT": "U", "DELETE": "D", "TRUNCATE": "T"}
LEN_SEQ = 35
LEN_TIME = 16  # YYYYMMDDHHmmSShh; the other 19 digits are ordinals
NO_TIME = "0" * LEN_TIME  # of a source whose order tells no time (docs/adr/0014)
FIRST_TIMED = NO_TIME[:-1] + "1"  # what is less, as text, tells no time

CHANGES = (
    Column("source", "string", "the ordered feed: one Qlik task, one extract definition, one trail"),
    Column("source_schema", "string", "schema of the table at the source"),
    Column("source_table", "string", "name of the table at the source"),
    Column("table_version", "int", "version of the column list in force for this change"),
    Column(
        "change_seq",
        "string",
        "total order within the source: `YYYYMMDDHHmmSShh` (16 zeros where the order tells no time) and 19 digits; "
        "compares as text",
    ),
    Column("operation", "string", "REFRESH, INSERT, UPDATE, UPSERT (update, or insert), DELETE or TRUNCATE"),
    Column("change_oper", "string", "its first letter: R, I, U (of an UPSERT too), D, T"),
    Column("transaction_id", "string", "the source's transaction; ids come back, so see silver.transactions"),
    Column("transaction_event_counter", "bigint", "1-based position within the transaction"),
    Column("transaction_last_event", "boolean", "closes the transaction; null only where the format cannot know"),
    Column("change_timestamp", "timestamp", "UTC time of the change as the source tells it; never used for order"),
    Column("stream_position", "string", "the source's own position text, opaque"),
    Column(
        "change_mask",
        "binary",
        "columns changed: bit n-1 is column ordinal n, least significant byte first, "
        "trailing zero bytes dropped; null where the source does not tell",
    ),
    Column("column_mask", "binary", "columns supplied, the same way; null means all"),
    Column(
        "before", "variant", "before-image as an object: an absent member was not supplied, a null member is SQL NULL"
    ),
    Column("after", "variant", "after-image as an object, the same way"),
    Column(
        "column_states",
        "map<string,string>",
        "only for columns in an exceptional state: `missing`, `lob_incomplete`, ...",
    ),
    Column(
        "header",
        "variant",
        "what the vendor's own header says beyond these columns, as an object, tokens included; null where nothing, or "
        "where its source says `header: false`. No part of a change's content: a repeat may have another header",
    ),
    Column("load_id", "string", "full-load generation of a REFRESH row"),
    Column("unit_id", "string", "the bronze unit this change was decoded from"),
    Column("unit_offset", "bigint", "first byte of its record within the unit"),
    Column("unit_length", "bigint", "length of its record in bytes"),
    Column("batch_id", "bigint", "the run that wrote it; only grows"),
    Column("decoded_at", "timestamp", "when that run decoded it"),
)

REJECTS = (
    Column("source", "string", "the ordered feed"),
    Column("source_schema", "string", "schema at the source, where it could be read"),
    Column("source_table", "string", "table at the source, where it could be read"),
    Column("column_name", "string", "the column whose value failed, where it was one value"),
    Column("kind", "string", "what is wrong, one of the kinds in docs/rejects.md"),
    Column("byte_offset", "bigint", "the byte at which reading failed, from the start of the unit"),
    Column("expected", "string", "what the format or the contract asks for"),
    Column("found", "string", "what is there"),
    Column("change_seq", "string", "the record's place in the order, where it could be read"),
    Column("raw", "binary", "the record's bytes, untouched"),
    Column("unit_id", "string", "the bronze unit that holds it"),
    Column("unit_offset", "bigint", "first byte of the record within the unit"),
    Column("unit_length", "bigint", "length of the record in bytes"),
    Column("batch_id", "bigint", "the run that wrote it"),
    Column("decoded_at", "timestamp", "when"),
    Column(
        "resolved_by",
        "bigint",
        "the run that decoded it again, or to which its record came again good; where it failed again, that run has a "
        "reject of its own",
    ),
    Column(
        "contract",
        "string",
        "fingerprint of its table's contract then, null where there was none; of the source's `tables` where it names "
        "no table that is known",
    ),
)

CONTROL_EVENTS = (
    Column("source", "string", "the ordered feed"),
    Column("source_schema", "string", "schema at the source, where the event is about one table"),
    Column("source_table", "string", "table at the source, where the event is about one table"),
    Column("change_seq", "string", "place in the order, where it has one"),
    Column(
        "kind",
        "string",
        "`empty_load`, `load_end`, `change_before_load`, `metadata`, `unreadable_timestamp`, `ddl`, `tombstone`, "
        "`task_status`, `table_suspended`, ...",
    ),
    Column("load_id", "string", "full-load generation, for load events"),
    Column("detail", "string", "JSON with what the event says"),
    Column("unit_id", "string", "the bronze unit that holds it"),
    Column("unit_offset", "bigint", "first byte within the unit"),
    Column("unit_length", "bigint", "length in bytes"),
    Column("batch_id", "bigint", "the run that wrote it"),
    Column("decoded_at", "timestamp", "when"),
)

TRANSACTIONS = (
    Column("source", "string", "the ordered feed"),
    Column("transaction_id", "string", "the source's id; it may come back, so the key is id *and* first_change_seq"),
    Column("first_change_seq", "string", "first change of the transaction"),
    Column("last_change_seq", "string", "last change seen so far"),
    Column("num_changes", "bigint", "changes seen so far"),
    Column("last_counter", "bigint", "largest transaction_event_counter seen"),
    Column("tables", "array<string>", "tables touched, as SCHEMA.TABLE"),
    Column(
        "state",
        "string",
        "`complete`: the last event was seen and as many changes as its counter says; `open`: the last event has not "
        "come; `impossible`: events are missing before the last one, or two claim the same place; null where the "
        "source counts no events",
    ),
    Column("batch_id", "bigint", "the run that brought the last of its changes"),
)

TABLE_VERSIONS = (
    Column("source", "string", "the ordered feed"),
    Column("source_schema", "string", "schema at the source"),
    Column("source_table", "string", "table at the source"),
    Column("table_version", "int", "version of the column list"),
    Column("columns", "string", "JSON list of the columns: name, type, nullable, in order"),
    Column(
        "origin", "string", "`contract`: changes were read by this version of it; `feed`: the feed itself gave the list"
    ),
    Column("batch_id", "bigint", "the first run that used it"),
    Column("key", "string", "JSON list of the key's columns, where the feed gave it"),
    Column("change_seq", "string", "place in the order from which a list of the feed is in force"),
    Column("unit_id", "string", "the bronze unit that gave it"),
    Column("unit_offset", "bigint", "first byte within the unit"),
    Column("feed_version", "int", "the feed's own number of the list, where it has one"),
    Column("detail", "string", "JSON: what the feed says of the list beyond its columns and key"),
)

WAITING = (  # append-only: a part waits while it has a row that is not settled and none that is
    Column("source", "string", "the ordered feed"),
    Column("part_key", "string", "what the parts of one change or transaction have in common; the codec's word"),
    Column("note", "string", "what the codec keeps of it beside its bytes"),
    Column("change_seq", "string", "the record's place in the order, where it is known"),
    Column("unit_id", "string", "the bronze unit that holds it"),
    Column("unit_offset", "bigint", "first byte of the record within the unit"),
    Column("unit_length", "bigint", "length of the record in bytes; 0 for a note, which is no record"),
    Column("raw", "binary", "the record's bytes, untouched"),
    Column("context", "string", "JSON: the context of its unit"),
    Column("is_settled", "boolean", "false: it began to wait in this batch; true: this batch settled it"),
    Column("batch_id", "bigint", "the run that wrote it"),
    Column("decoded_at", "timestamp", "when"),
)

BATCHES = (  # the ledger: a row here means that the batch is whole and its accounting adds up
    Column("batch_id", "bigint", "the run"),
    Column("source", "string", "the ordered feed"),
    Column("codec", "string", "the codec that decoded it"),
    Column("num_units", "bigint", "bronze units read"),
    Column(
        "num_records",
        "bigint",
        "records in them; these and the settled parts = changes + repeats + control + rejected + waiting",
    ),
    Column("num_changes", "bigint", "changes written"),
    Column("num_repeats", "bigint", "records that repeat a change already written, same content"),
    Column("num_control", "bigint", "records that carry no row change: commit records, metadata, empty loads"),
    Column("num_rejected", "bigint", "records rejected"),
    Column(
        "bytes_landed",
        "bigint",
        "bytes in the units; these and those of settled parts = decoded + repeated + framing + rejected + waiting",
    ),
    Column("bytes_decoded", "bigint", "bytes of records that became changes"),
    Column("bytes_repeated", "bigint", "bytes of repeats"),
    Column("bytes_framing", "bigint", "bytes of control records and between records"),
    Column("bytes_rejected", "bigint", "bytes of rejects"),
    Column("first_change_seq", "string", "least change_seq among its changes, repeats, empty loads and ends of loads"),
    Column("last_change_seq", "string", "greatest"),
    Column(
        "tables",
        "array<string>",
        "captured tables that it brought changes, empty loads or ends of loads of: gold runs for these",
    ),
    Column("finished_at", "timestamp", "when the batch became whole"),
    Column("num_waiting", "bigint", "records that wait for others since this batch"),
    Column("num_settled", "bigint", "records that waited since an earlier batch, and do not any more"),
    Column("bytes_waiting", "bigint", "bytes of the records that wait"),
    Column("bytes_settled", "bigint", "bytes of the settled ones"),
)

# append-only: why the sources of a batch are decoded one by one, so that its lines in the ledger may lack some
STOPPED = (
    Column("source", "string", "the ordered feed"),
    Column("batch_id", "bigint", "the run"),
    Column(
        "why", "string", "what was wrong with the batch, or which earlier batch of the source has to be whole first"
    ),
    Column("stopped_at", "timestamp", "when"),
)

# append-only: the last row of a reject counts
CLOSED_REJECTS = (
    Column("source", "string", "the ordered feed; this and the next five columns name the row of silver.rejects"),
    Column("kind", "string", "what is wrong"),
    Column("unit_id", "string", "the bronze unit that holds it"),
    Column("unit_offset", "bigint", "first byte of the record within the unit"),
    Column("byte_offset", "bigint", "the byte at which reading failed, from the start of the unit"),
    Column("rejected_in", "bigint", "the run that wrote the reject: its batch_id"),
    Column("is_closed", "boolean", "true: `inlet rejects --close`; false: `--reopen`"),
    Column("reason", "string", "why, in the words of the person"),
    Column("person", "string", "the user whose process it was"),
    Column("written_at", "timestamp", "when"),
)

TABLES = {
    "silver.stopped": STOPPED,
    "silver.changes": CHANGES,
    "silver.rejects": REJECTS,
    "silver.closed_rejects": CLOSED_REJECTS,
    "silver.control_events": CONTROL_EVENTS,
    "silver.transactions": TRANSACTIONS,
    "silver.table_versions": TABLE_VERSIONS,
    "silver.waiting": WAITING,
    "silver.batches": BATCHES,
}

HEADER_COLUMNS = (
    "source",
    "source_schema",
    "source_table",
    "change_seq",
    "operation",
    "batch_id",
)  # with file statistics


def ddl(columns) -> str:
    """Column list of a CREATE TABLE. In: Column rows. Out: `name type comment '...'`, comma-separated."""
    return ",\n  ".join(f"{c.name} {c.type} comment {literal(c.doc)}" for c in columns)


def change_seq(time: str, high: int, low: int) -> str:
    """Qlik's form for a source that has none of its own: 16 digits of time, 9 of a file or trail ordinal, 10 within it.

    >>> change_seq("2026010203040500", 7, 12)
    '20260102030405000000000070000000012'
    """
    if len(time) != LEN_TIME or not time.isdigit() or not (0 <= high < 10**9 and 0 <= low < 10**10):
        raise ValueError(f"change_seq: expected 16 digits and ordinals below 10^9 and 10^10, found {time} {high} {low}")
    return f"{time}{high:09d}{low:010d}"


def mask(ordinals) -> bytes:
    """Mask bytes of 1-based column ordinals: bit n-1 is ordinal n, least significant byte first, no trailing zeros.

    >>> mask([1, 2, 10]).hex()
    '0302'
    """
    bits = sum(1 << (ordinal - 1) for ordinal in set(ordinals))
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def mask_ordinals(mask_bytes: bytes) -> list[int]:
    """The 1-based ordinals a mask sets; the inverse of `mask`.

    >>> mask_ordinals(bytes.fromhex("0302"))
    [1, 2, 10]
    """
    bits = int.from_bytes(mask_bytes, "little")
    return [n + 1 for n in range(bits.bit_length()) if bits >> n & 1]
