"""Qlik Replicate and Talend Data Integration: Avro messages on Kafka and its relatives.

Unit        one message: the Kafka value
Yields      as qlik_json
Framing     told by the message's first bytes, so that a topic may have several:
            enveloped  `atMSG`: the Replicate envelope, whose schema is fixed [documented]: magic fixed(5), type string,
                       headers null or map of strings, messageSchemaId and messageSchema null or string, message bytes.
                       Type DT or MD
            registry   byte 00, a schema id of four bytes, the data record; there are no metadata messages [documented].
                       The schema is the column list: its namespace ends in task, schema and table [sample seen], its
                       number is the id. It tells no key, and of lengths nothing
            container  a message of `transport: avro` brings its schema (header avro.schema)
Schema      of a metadata message: its messageSchema. Of a data message: its messageSchema, else the dataSchema of the
            metadata message with its messageSchemaId [documented], or what is looked up under the registry's id. A
            message whose schema has not come waits (definition_missing)
Record      {data, beforeData, headers}, columns with null as a branch of a union [sample seen]. Symbols, branches and
            the order of fields are those of the schema. Names have any characters: Qlik writes names of tasks with
            hyphens into namespaces [sample seen]
Values      primitive or logical types, by the schema [documented]. Numbers have all their digits; a time-millis is text
            with milliseconds; a timestamp-micros is text without a zone, because it is the source's local time; bytes
            are bytes. ASSUMED: float and double as the shortest text that gives the same double
Ordinals    of masks: those of the metadata message that a data message names; else the place of a column in the
            schema's `data` [inferred]. Byte order: see masks
Two paths   `decode_message` reads any message exactly, in Python. `fast` (avro_fast) writes the JSON text of messages
            that are in no doubt, which the compiled walk of JSON reads
Meaning     as of JSON: json_messages, members, masks, metadata; full loads: full_load
Facts       [documented] Qlik, "The Replicate envelope", "Metadata and data messages", "Supported data types"; [sample
            seen] data schemas with namespace and union types, the older form, metadata: 2018 to 2023
Rejects     those of qlik_json; wrong_magic, wrong_shape (a datum that its schema does not fit), trailing_bytes
"""

import datetime

from inlet.codecs import avro_framing
from inlet.codecs.notes import Annotated
from inlet.codecs.qlik import annotate as annotated
from inlet.codecs.qlik import avro_fast, full_load, json_messages, metadata
from inlet.codecs.qlik.avro_form import AVRO, MAGIC, metadata_text, parse
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Decoded
from inlet.fields.wrong import Wrong
from inlet.source import Source

OPTIONS, FAST, LOADS = full_load.Options, avro_fast, full_load
MAY_BRING = "substring(value, 1, 8) = X'61744D5347044D44'"  # magic, and type MD


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE; loads of `assign_loads`."""
    return json_messages.decoded(AVRO, message, source, tables, loads)


def refresh_row(message: dict, source: Source, tables: dict) -> tuple[str, datetime.datetime] | None:
    """SCHEMA.TABLE and time of a full-load row that has a time, even of one that is rejected for its values."""
    return json_messages.loaded_row(AVRO, message, source, tables)


def lookups(message: dict, source: Source) -> list[str]:
    """The name of the schema that a message without an envelope is written by."""
    data = message["value"] or b""
    if name := avro_framing.of_container(message):
        return [name]
    is_framed = data.startswith(avro_framing.MAGIC) and len(data) > avro_framing.LEN_ID
    return [avro_framing.of_registry(data)[0]] if is_framed else []


def brought(message: dict) -> dict[str, bytes]:
    """The column list and schema of a metadata message, for the messages that name it; nothing of any other, or of one
    that is rejected."""
    data = message["value"] or b""
    if not data.startswith(MAGIC):
        return {}
    try:
        whole = parse(message | {"lookups": {}}, None)
        return metadata.brought(whole, metadata_text(message, whole)) if whole.get("type") == "MD" else {}
    except (Wrong, Refused):
        return {}


def annotate(data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """One record: the message. In: its value; the message, as bronze keeps it."""
    return annotated.annotate(AVRO, context, source, tables)
