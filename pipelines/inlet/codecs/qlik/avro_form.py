"""A Qlik message in Avro as an object: its framing, its schema, its values as JSON would have them. The format:
avro_messages.
"""

import datetime
import re
import uuid
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from inlet.codecs import avro_framing
from inlet.codecs.avro_notes import Datum
from inlet.codecs.json_notes import Mark, Member
from inlet.codecs.notes import UNREADABLE, Note, of_wrong
from inlet.codecs.qlik import full_load, metadata
from inlet.codecs.qlik.dfm import Column
from inlet.codecs.qlik.form import Form, Notes
from inlet.codecs.qlik.members import Refused
from inlet.codecs.qlik.metadata import Listed
from inlet.fields import avro
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong, cut
from inlet.source import Source

MAGIC, LEN_FOUND = b"atMSG", 8
NAMESPACE = re.compile(
    r"com\.attunity\.queue\.msg\.[^.]+\.([^.]+)\.([^.]+)\.[^.]+"
)  # task, schema, table [sample seen]
LEN_REGISTRY_ID = 10  # digits of four bytes
OF_AVRO = {
    "boolean": "BOOLEAN",
    "int": "INT4",
    "long": "INT8",
    "float": "REAL4",
    "double": "REAL8",
    "bytes": "BYTES",
}  # others: WSTRING
OF_LOGICAL = {
    "decimal": "NUMERIC",
    "date": "DATE",
    "time-millis": "TIME",
    "time-micros": "TIME",
    "timestamp-millis": "DATETIME",
    "timestamp-micros": "DATETIME",
}
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


def parse(message: dict, source: Source | None) -> dict:
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
    found = (
        "an object of JSON: codec qlik_json reads it" if data.lstrip()[:1] == b"{" else data[:LEN_FOUND].hex().upper()
    )
    raise Wrong("wrong_magic", 0, "atMSG, or 00 and a schema id of four bytes", found)


def _enveloped(data: bytes, found: dict[str, bytes]) -> Framed:
    envelope, end = avro.read(ENVELOPE, data, 0)
    if end < len(data):
        raise Wrong("trailing_bytes", end, "the end of the envelope", f"{len(data) - end} bytes more")
    id_, text = envelope["messageSchemaId"], envelope["messageSchema"]
    if not text and id_ and envelope["type"] != "MD" and found.get(id_) is not None:
        try:
            text = metadata.of_text(found[id_]).data_schema or None
        except Refused as no:  # kept by an earlier Inlet, which asked less
            expected = f"a metadata message with schemaId {cut(id_, 80)} of which {no.expected}"
            raise Wrong("definition_missing", end - len(envelope["message"]), expected, no.found) from None
    whole = envelope | {"magic": MAGIC.decode()}
    start = end - len(envelope.pop("message"))
    return Framed(whole, start, end, text.encode() if text else None, id_ or "")


def _schema(framed: Framed) -> avro.Type:
    """The schema of a datum. Raises: Wrong."""
    envelope = framed.envelope or {}
    if framed.schema_text is None:
        if envelope.get("type") == "MD" or framed.envelope and not framed.name:
            raise Wrong("wrong_shape", framed.start, "messageSchema, or of a data message messageSchemaId", "none")
        what = f"a metadata message with schemaId {cut(framed.name, 80)}, with its dataSchema"
        expected = what if framed.envelope else f"an Avro schema under {framed.name} (lookups of the source)"
        raise Wrong("definition_missing", framed.start, expected, "none so far")
    try:
        [schema] = avro.parse(framed.schema_text)
    except ValueError as error:
        kind = "wrong_shape" if envelope.get("messageSchema") else "definition_missing"
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


def _notes(message: dict, mark: Mark) -> Notes:
    """Framing and datum. What cannot be read is a leaf, which says why."""
    data, found = message["value"], Datum(ENVELOPE, message["value"], 0, (), "envelope", plain, mark)
    try:
        framed = _framed(message)
    except Wrong as wrong:
        if data.startswith(MAGIC):
            return Notes([*found.notes, *found.rest()], found.members)
        return Notes([of_wrong(0, len(data), UNREADABLE, wrong)], [])
    notes, path = [Note(0, framed.start, "schema id", framed.name)] if framed.start else [], tuple[str, ...]()
    members: list[Member] = []
    if framed.envelope is not None:
        *notes, last = found.notes[0].children
        notes.append(Note(last.offset, framed.start - last.offset, "length", f"{len(data) - framed.start}"))
        members, path = found.members[:-1], ("message",)
    try:
        datum = Datum(_schema(framed), data, framed.start, path, "message", plain, mark)
    except Wrong as wrong:
        own = Wrong(wrong.kind, 0, wrong.expected, wrong.found)
        return Notes([*notes, of_wrong(framed.start, len(data), UNREADABLE, own)], members)
    return Notes([*notes, *datum.notes, *datum.rest()], [*members, *datum.members])


def metadata_text(message: dict, whole: dict) -> str:
    return metadata.text_of(whole["message"])


def _ordinals(body: dict) -> dict[int, str] | None:
    """Ordinal -> column by the order of the schema's fields."""
    image = body.get("data") or body.get("beforeData")
    return dict(enumerate(image, 1)) if isinstance(image, dict) else None


def _listed(whole: dict, message: dict) -> Listed | None:
    """The list that a message names, or that the schema under its registry's id is."""
    found = message.get("lookups", {})
    if "messageSchemaId" in whole or avro_framing.of_container(message):
        return metadata.named(whole, found)
    id_ = avro_framing.of_registry(message["value"])[0]
    return registered(id_, found[id_])


def _lists(found: dict[str, bytes]) -> dict[str, Listed]:
    """The lists that metadata messages brought, and those of a registry."""
    ids = [id_ for id_, text in found.items() if text and len(id_) <= LEN_REGISTRY_ID and id_.isdecimal()]
    of_registry = {id_: registered(id_, found[id_]) for id_ in ids if not metadata.MARK.search(found[id_])}
    return metadata.lists(found) | {id_: listed for id_, listed in of_registry.items() if listed}


@lru_cache(maxsize=1024)
def registered(id_: str, text: bytes) -> Listed | None:
    """The column list that a schema under a registry's id is; its number is the id. None where its namespace does not
    tell a table.
    """
    try:
        [schema] = avro.parse(text)
    except ValueError:
        return None
    name, data = NAMESPACE.fullmatch(schema.name), schema.fields.get("data")
    if not name or data is None or data.record is None:
        return None
    columns = [_column(column, n, type_) for n, (column, type_) in enumerate(data.record.fields.items(), 1)]
    version = int(id_) if int(id_) < 1 << 31 else None
    return Listed(name[1], name[2], version, tuple(columns), frozenset(), text.decode(), (("schema_id", id_),))


def _column(name: str, ordinal: int, type_: avro.Type) -> Column:
    """A column as Qlik has it, as far as its Avro type tells."""
    value = next((one for one in type_.members if one.kind != "null"), type_)
    word = OF_LOGICAL.get(value.logical) or OF_AVRO.get(value.kind, "WSTRING")
    return Column(name, ordinal, word, 0, value.precision, value.scale)


def plain(value: Any) -> Any:
    """A value as JSON would have it: numbers with their digits, times as ISO text; bytes stay bytes."""
    if isinstance(value, bool | str | bytes | None):
        return value
    if isinstance(value, int):
        return Number(value)
    if isinstance(value, float):
        return Number.of(value)
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


AVRO = Form(full_load.Options, parse, _offset, metadata_text, _ordinals, _listed, _lists, _notes, is_text=False)
