"""Qlik Replicate and Talend Data Integration: Avro messages on Kafka and its relatives.

Unit        one message: the Kafka value
Yields      as qlik_json
Framing     told by the message's first bytes, so that a topic may have several:
            enveloped  `atMSG`: the Replicate envelope, whose schema is fixed [documented]: magic fixed(5), type string,
                       headers null or map of strings, messageSchemaId and messageSchema null or string, message bytes.
                       Type DT or MD
            registry   byte 00, a schema id of four bytes, the data record; there are no metadata messages [documented]
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
Meaning     as of JSON: json_messages, members, masks, metadata; full loads: full_load
Facts       [documented] Qlik, "The Replicate envelope", "Metadata and data messages", "Supported data types"; [sample
            seen] data schemas with namespace and union types, the older form, metadata: 2018 to 2023
Rejects     those of qlik_json; wrong_magic, wrong_shape (a datum that its schema does not fit), trailing_bytes
"""

import datetime
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

from inlet.codecs import avro_framing
from inlet.codecs.notes import Said
from inlet.codecs.qlik import full_load, json_messages, members, metadata, shapes
from inlet.codecs.qlik.form import Form
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Decoded
from inlet.fields import avro
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong
from inlet.source import Source

OPTIONS, FAST, LOADS = full_load.Options, None, full_load
MAGIC, LEN_FOUND = shapes.MAGIC.encode(), 8
MAY_BRING = "substring(value, 1, 8) = X'61744D5347044D44'"  # magic, and type MD
[ENVELOPE] = avro.parse(b"""{"type":"record","name":"MessageEnvelope","fields":[
 {"name":"magic","type":{"type":"fixed","name":"Magic","size":5}},
 {"name":"type","type":"string"},
 {"name":"headers","type":["null",{"type":"map","values":"string"}]},
 {"name":"messageSchemaId","type":["null","string"]},
 {"name":"messageSchema","type":["null","string"]},
 {"name":"message","type":"bytes"}]}""")


class Framed(NamedTuple):
    """A message before its datum is read."""

    envelope: dict | None
    start: int  # of the datum
    end: int
    schema_text: bytes | None
    name: str  # what tells the schema


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE; loads of `assign_loads`."""
    return json_messages.decoded(AVRO, message, source, tables, loads)


def refresh_table(message: dict, source: Source, tables: dict) -> str | None:
    """SCHEMA.TABLE if the message is a full-load row, even one that is rejected for its values."""
    return json_messages.loaded_table(AVRO, message, source, tables)


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
        whole = _parse(message | {"lookups": {}}, None)
        return metadata.brought(whole, _metadata_text(message, whole)) if whole.get("type") == "MD" else {}
    except (Wrong, Refused):
        return {}


def says(message: dict, source: Source, tables: dict) -> list[Said]:
    """What a data message says of its place, where its schema is there."""
    try:
        whole = _parse(message, source)
    except (Wrong, Refused):
        return []
    header = whole.get("message", whole).get("headers")
    if not isinstance(header, dict):
        return []
    told = {name: value for name, value in header.items() if isinstance(value, str) and value}
    listed = metadata.named(whole, message.get("lookups", {}))
    name = source.table_of(message["topic"]) or (source.table_of(listed.name) or listed.name if listed else None)
    seq = told.get("changeSequence", "")
    return [
        Said(
            0,
            len(message["value"]),
            members.OPERATIONS.get(told.get("operation", "").upper()),
            tables[name].table if name in tables else name,
            told.get("transactionId"),
            told.get("streamPosition"),
            seq if members.CHANGE_SEQ.fullmatch(seq) else None,
        )
    ]


def _parse(message: dict, source: Source | None) -> dict:
    """The message as an object. Raises: Wrong."""
    framed = _framed(message)
    schema = _schema(framed)
    datum, end = avro.read(schema, message["value"][: framed.end], framed.start)
    if end < framed.end:
        rest = message["value"][end : framed.end]
        found = f"{len(rest)} bytes more: {rest[:LEN_FOUND].hex().upper()}"
        raise Wrong("trailing_bytes", end, f"the end of a datum of the schema {schema}", found)
    body = plain(datum)
    return body if framed.envelope is None else framed.envelope | {"message": body}


def _framed(message: dict) -> Framed:
    """Where the datum of a message is, and its schema. Raises: Wrong."""
    data, found = message["value"], message.get("lookups", {})
    if name := avro_framing.of_container(message):
        return Framed(None, 0, len(data), found.get(name), name)
    if data.startswith(MAGIC):
        return _enveloped(data, found)
    if data.startswith(avro_framing.MAGIC):
        name, start = avro_framing.of_registry(data)
        return Framed(None, start, len(data), found.get(name), name)
    raise Wrong("wrong_magic", 0, "atMSG, or 00 and a schema id of four bytes", data[:LEN_FOUND].hex().upper())


def _enveloped(data: bytes, found: dict[str, bytes]) -> Framed:
    envelope, end = avro.read(ENVELOPE, data, 0)
    if end < len(data):
        raise Wrong("trailing_bytes", end, "the end of the envelope", f"{len(data) - end} bytes more")
    id_, text = envelope["messageSchemaId"], envelope["messageSchema"]
    if text is None and id_ and envelope["type"] != "MD" and found.get(id_) is not None:
        text = metadata.of_text(found[id_]).data_schema or None
    whole = envelope | {"magic": shapes.MAGIC}
    start = end - len(envelope.pop("message"))
    return Framed(whole, start, end, text.encode() if text else None, id_ or "")


def _schema(framed: Framed) -> avro.Type:
    """The schema of a datum. Raises: Wrong."""
    envelope = framed.envelope or {}
    if framed.schema_text is None:
        if envelope.get("type") == "MD" or framed.envelope and not framed.name:
            raise Wrong("wrong_shape", framed.start, "messageSchema, or of a data message messageSchemaId", "none")
        what = f"a metadata message with schemaId {framed.name[:40]}, with its dataSchema"
        expected = what if framed.envelope else f"an Avro schema under {framed.name} (lookups of the source)"
        raise Wrong("definition_missing", framed.start, expected, "none so far")
    try:
        [schema] = avro.parse(framed.schema_text)
    except ValueError as error:
        is_embedded = envelope.get("messageSchema") is not None
        kind = "wrong_shape" if is_embedded else "definition_missing"
        raise Wrong(kind, framed.start, f"an Avro schema of a record {framed.name}".strip(), str(error)) from None
    return schema


def _offset(message: dict, source: Source, path: tuple) -> int:
    """The byte of a member of a message that could be read."""
    framed, data = _framed(message), message["value"]
    if framed.envelope is not None:
        if path[0] != "message" or len(path) == 1:
            return avro.offset(ENVELOPE, data, 0, path)
        path = path[1:]
    return avro.offset(_schema(framed), data, framed.start, path)


def _metadata_text(message: dict, whole: dict) -> str:
    return metadata.text_of(whole["message"])


def _ordinals(body: dict) -> dict[int, str] | None:
    """Ordinal -> column by the order of the schema's fields."""
    image = body.get("data") or body.get("beforeData")
    return dict(enumerate(image, 1)) if isinstance(image, dict) else None


def plain(value: Any) -> Any:
    """A value as JSON would have it: numbers with their digits, times as ISO text; bytes stay bytes."""
    if isinstance(value, bool | str | bytes | None):
        return value
    if isinstance(value, int | float):
        return Number(repr(value))
    if isinstance(value, Decimal):
        return Number(f"{value:f}")
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, datetime.time):
        return value.isoformat("microseconds" if value.microsecond % 1000 else "milliseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    assert isinstance(value, uuid.UUID), "all that Avro has"
    return str(value)


AVRO = Form(full_load.Options, _parse, _offset, _metadata_text, _ordinals, is_text=False)
