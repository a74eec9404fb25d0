"""A unit is the smallest thing that can be decoded alone: one message, or one block of a file cut at a record
(better: transaction) boundary, with the small *context* it needs from before the cut. Bronze's grain.

Bronze's tables are declared here. Nothing in them is interpreted: bytes out equal bytes in. A file that grows is landed
by whole records. One that does not is landed once it is whole: Parquet by its footer, a JSON array by its last bracket;
one whose end cannot be told (compressed, Avro, `whole_file`) once nothing was written to it for `settle_minutes`.
"""

import re
from dataclasses import dataclass, field

from inlet.change import Column


@dataclass(frozen=True)
class Unit:
    """One unit in memory. `context` is what `frame` of its codec knew at the cut; a message has none."""

    unit_id: str
    source: str
    data: bytes
    context: dict = field(default_factory=dict)


# a unit's id ends with its offset; a unit of one place that is landed anew has something behind it, after `~`
OFFSET = "([0-9]+)(~[0-9a-f]*)?$"
ORDER = (  # SQL: records in the order of their feed, that is by the offsets of their units, not by their digits
    f"regexp_replace(unit_id, '{OFFSET}', ''), try_cast(regexp_extract(unit_id, '{OFFSET}', 1) as decimal(38, 0)), "
    "unit_id, unit_offset"
)

PLACE = f"regexp_replace(substring(unit_id, length(source) + 2), '[@/]{OFFSET}', '')"  # SQL: a unit's file or partition


def place_in_file(source: str, unit_id: str) -> tuple[str, int] | None:
    """(path, offset) of a unit that is a piece of a file; None of a message.

    >>> place_in_file("s", "s/in/ra000007@4096~2"), place_in_file("s", "s/in/a@b.jsonl/0/7")
    (('in/ra000007', 4096), None)
    """
    match = re.fullmatch(f"{re.escape(source)}/(.*)@{OFFSET}", unit_id)
    return (match[1], int(match[2])) if match else None


def place_of(source: str, unit_id: str) -> str:
    """What PLACE gives.

    >>> place_of("s", "s/in/ra000007@4096~2"), place_of("s", "s/items/0/7")
    ('in/ra000007', 'items/0')
    """
    return re.sub(f"[@/]{OFFSET}", "", unit_id[len(source) + 1 :])


def order(unit_id: str) -> tuple[str, int, str]:
    """What sorts units as ORDER does.

    >>> sorted(["s/t/0/10", "s/t/0/9", "s/a@3"], key=order)
    ['s/a@3', 's/t/0/9', 's/t/0/10']
    """
    match = re.search(OFFSET, unit_id)
    return (unit_id[: match.start()], int(match[1]), unit_id) if match else (unit_id, -1, unit_id)


# why there is a row of bronze.files
PLANNED, REREAD, FRAMED_AGAIN, SET_ASIDE = CAUSES = "planned", "re-read", "framed again", "set aside"

FILES = (  # written first: the plan of a batch, from which a crashed run is finished
    Column("source", "string", "the ordered feed"),
    Column(
        "path",
        "string",
        "the file, relative to the project where it lies inside; of a broker `<topic>/<partition>`, its offsets stand "
        "for bytes",
    ),
    Column("ofs_start", "bigint", "first byte of the file that this batch landed"),
    Column("start_context", "string", "JSON: what the codec knew at ofs_start"),
    Column("ofs_end", "bigint", "end of the landed bytes; the next batch starts here"),
    Column("sha256", "string", "of the bytes from the start of the file to ofs_end; null for a broker"),
    Column("size_bytes", "bigint", "size of the file when it was read; more than ofs_end while a record is unfinished"),
    Column("modified_at", "timestamp", "the file system's time of the file; null where its store tells none"),
    Column("num_units", "bigint", "units cut from it in this batch; of a broker at most so many"),
    Column(
        "context",
        "string",
        "JSON: what the codec knew at ofs_end, and ranges that no verdict has come for; for messages the offsets it "
        "holds; for a broker the id of the topic, too",
    ),
    Column("problem", "string", "why nothing could be read from it, else null"),
    Column("batch_id", "bigint", "the run"),
    Column("landed_at", "timestamp", "when"),
    Column(
        "verdicts",
        "string",
        "JSON: [path, first byte, end, records, batch that landed them, verdict] of each range of the source that "
        "this file's records judge: `stands`, or `abandoned` by its writer, or as the file was read again; null "
        "where all that lands stands",
    ),
    Column(
        "cause",
        "string",
        "why there is this row: `planned`, `re-read` from the first byte, `framed again` by a replay, or `set aside` "
        "since the file was not as planned; null in rows of an earlier Inlet",
    ),
)

BLOCKS = (
    Column(
        "unit_id", "string", "`<source>/<path>@<file_offset>`; `~` and the batch behind it where that was landed before"
    ),
    Column("source", "string", "the ordered feed"),
    Column("path", "string", "the file"),
    Column(
        "file_offset",
        "bigint",
        "where the block starts in its file, or in what a compressed file unpacks to; the first row of a columnar one",
    ),
    Column("size_bytes", "bigint", "its length"),
    Column("sha256", "string", "of its bytes"),
    Column("context", "string", "JSON: what the codec knew at the cut"),
    Column("num_records", "bigint", "records framed in it, commit records and unreadable rests included"),
    Column("bytes", "binary", "the bytes, untouched"),
    Column("batch_id", "bigint", "the run that landed it"),
    Column("landed_at", "timestamp", "when"),
)

DELIVERED = (
    Column("source", "string", "the ordered feed"),
    Column("path", "string", "the file: one whose blocks are not its bytes, for it is compressed or columnar"),
    Column("file_offset", "bigint", "where these bytes start in it"),
    Column("bytes", "binary", "the bytes as they were delivered; all of a file have its sha-256 in bronze.files"),
    Column("batch_id", "bigint", "the run that landed it"),
    Column("landed_at", "timestamp", "when"),
)

LOOKUPS = (
    Column("source", "string", "the ordered feed"),
    Column("name", "string", "what a message named: the id of a schema, or its fingerprint"),
    Column("value", "binary", "what was found under that name, as it was then; null where nothing was"),
    Column("origin", "string", "where: an address, or the file that brought it"),
    Column("batch_id", "bigint", "the run whose messages needed it"),
    Column("landed_at", "timestamp", "when"),
)

MESSAGES = (
    Column(
        "unit_id",
        "string",
        "`<source>/<topic>/<partition>/<offset>`; `~` and more behind it where that was landed before",
    ),
    Column("source", "string", "the ordered feed"),
    Column("topic", "string", "Kafka topic; of a message out of a file of messages, the file"),
    Column("partition", "int", "Kafka partition; 0 in a file"),
    Column("offset", "bigint", "Kafka offset; the message's ordinal in its file, from 0"),
    Column("timestamp", "timestamp", "Kafka timestamp (UTC); null where no broker gave one"),
    Column("timestamp_type", "int", "0 created by the producer, 1 appended by the log"),
    Column("key", "binary", "message key, untouched"),
    Column("value", "binary", "message value, untouched; null is a tombstone"),
    Column("headers", "array<struct<key: string, value: binary>>", "message headers, null when there are none"),
    Column("size_bytes", "bigint", "length of the value; 0 for a tombstone"),
    Column("sha256", "string", "of the value"),
    Column("path", "string", "the file it was kept in; from a broker `<topic>/<partition>`"),
    Column("batch_id", "bigint", "the run that landed it"),
    Column("landed_at", "timestamp", "when"),
)

REPLAYS = (  # the plan of a batch that decodes again what was rejected
    Column("source", "string", "the ordered feed"),
    Column("unit_id", "string", "the unit, in bronze.blocks or bronze.messages"),
    Column("unit_offset", "bigint", "first byte of the rejected record within the unit"),
    Column("unit_length", "bigint", "its length in bytes"),
    Column("num_records", "bigint", "records that it is: 1 for a reject, more for a range that was ignored"),
    Column("rejected_in", "bigint", "the batch that rejected it"),
    Column("batch_id", "bigint", "the run that decodes it again"),
    Column("planned_at", "timestamp", "when"),
)

TABLES = {
    "bronze.replays": REPLAYS,
    "bronze.files": FILES,
    "bronze.blocks": BLOCKS,
    "bronze.delivered": DELIVERED,
    "bronze.messages": MESSAGES,
    "bronze.lookups": LOOKUPS,
}
