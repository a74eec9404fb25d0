"""Oracle GoldenGate: JSON messages of Big Data / Distributed Applications and Analytics (DAA) and of Data Streams.

Unit        one message; each JSON object in it is a record. Several stand one behind the other (`}{`, `}\\n{`: mode=tx
            of the Kafka handler), or in an array (enableJsonArrayOutput); what lies between them is framing. What
            cannot be cut into objects is one reject
Yields      for each object one change, one reject, or one control event. A change may bring control events with it:
            see operations/change
Shapes      operation model (format=json): the message's own members, `before` and `after`
            row model (format=json_row): the columns beside the message's own members. A message is of it where
            neither `before` nor `after` is an object or null
            flattened: `before.COL` and `after.COL`, by the option flatten_delimiter
            Kafka Connect: either model, maybe in an envelope {"schema": ..., "payload": ...}
            Data Streams 23 and 26: as the operation model or the row model; the names of its own members are not
            documented but for op_type: the option members tells them
Controls    `tombstone`: a message or a payload that is null. Data Streams: `stream_metadata`, `object_metadata`, `ddl`
            (op_type), `json_schema` ($schema and no op_type); `detail` is their text
Two paths   `decode_message` reads any message exactly, in Python. `fast` (json/fast, json/walk: compiled, through
            mapInArrow) answers at speed for those it is certain of: one object of the operation model in a message
Contracts   `inlet import` makes them of Defgen's files, too: defgen, on the page goldengate_trail
Meaning     operations/change, operations/images, position, operations/time
Registry    the byte 00 and a schema id of four bytes before the text (Kafka Connect's JSON Schema converter) are
            framing. The schema is not looked up. A null is as in Kafka Connect's envelope: operations/images
Refused     by name, as unsupported_message: a value after such an id that does not begin as JSON does (Avro, Protobuf);
            DDL whose `ddl` begins with TRUNCATE, for it has no place in the order
Names       a column of the row model that is named like a member of the message is refused: as a member that is there
            twice (duplicate_member), or as one of two readings (ambiguous_layout)
Facts       [documented] Oracle, "Using the Pluggable Formatters"; Oracle GoldenGate 26, "Payload and Schema Reference".
            [messages seen] all that tests/cases/goldengate_json calls published; pos of 23 digits, with a sign, not in
            the order of op_ts. [recalled] mode=tx without a separator, flattened names, renamed images, omitNullValues
            ASSUMED: an object with `schema` and `payload` and no op_type is Kafka Connect's envelope
            ASSUMED: after the id of a registry, a value that begins with { or [ is JSON
            ASSUMED: OBJECT_METADATA and DDL name their table in `qual_table`, else in `table`
Rejects     invalid_utf8, invalid_json, trailing_data, duplicate_member, wrong_shape, unsupported_message, and those of
            operations/change
"""

import re
from collections.abc import Iterator
from contextlib import suppress

from inlet.codecs import avro_framing
from inlet.codecs.goldengate.json import fast
from inlet.codecs.goldengate.json.options import Options
from inlet.codecs.goldengate.json.shapes import EVENTS, Shaped
from inlet.codecs.goldengate.message_definitions import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.operations import change as operation_change
from inlet.codecs.goldengate.operations.operation import Record, Refused
from inlet.codecs.notes import Said
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.fields import json_exact, json_stream
from inlet.fields.json_stream import Piece
from inlet.fields.wrong import Wrong
from inlet.source import Source

OPTIONS, FAST, LOADS = Options, fast, None
TOMBSTONE, JSON_SCHEMA = "tombstone", "json_schema"  # control events
BLANKS = b" \t\r\n"
OPENS = b"{", b"["  # what a text with objects begins with
TRUNCATES = re.compile(r"\s*truncate\b", re.IGNORECASE | re.ASCII)


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE. There are no loads."""
    data, options = message["value"], source.options_as(Options)
    changes: list[dict] = []
    rejects: list[Reject] = []
    controls: list[Control] = []
    if data is None:
        return Decoded([], controls=[Control(TOMBSTONE, 0, 0)], num_control=1)
    start = _start(data)
    if start and not data[start:].lstrip(BLANKS).startswith(OPENS):
        return Decoded([], [_of_registry(data)])
    bytes_framing, num_control = len(data), 0
    for piece, whole in _objects(data, start):
        raw = data[piece.start : piece.end]
        if piece.wrong is not None:
            rejects.append(_broken(piece, piece.wrong, raw))
            bytes_framing -= len(raw)
            continue
        shaped = Shaped(whole, options, is_of_connect=start > 0)
        if event := _event(shaped, piece, raw, source, tables):
            if _is_truncate(event, shaped):
                rejects.append(_of_truncate(event, raw))
                bytes_framing -= len(raw)
            else:
                controls.append(event)
                num_control += 1
            continue
        row, beside = _decode(shaped, message, piece, raw, source, tables)
        (rejects if isinstance(row, Reject) else changes).append(row)  # type: ignore[arg-type]
        controls += beside
        bytes_framing -= len(raw)
    num_control += not (changes or rejects or num_control)
    return Decoded(changes, rejects, controls, bytes_framing, num_control)


def says(message: dict, source: Source, tables: dict) -> list[Said]:
    """What the objects of a message say of their places, those that are operations."""
    options, found, data = source.options_as(Options), list[Said](), message["value"]
    for piece, whole in _objects(data, _start(data)):
        shaped, length = Shaped(whole, options), piece.end - piece.start
        with suppress(Refused):
            if piece.wrong is None and not _event(shaped, piece, b"", source, tables):
                found.append(
                    operation_change.said(
                        shaped.operation(), piece.start, length, message["topic"], source, tables, options
                    )
                )
    return found


def _start(data: bytes) -> int:
    """Where the text of a message begins: after the id of a schema registry, if there is one."""
    return avro_framing.LEN_PREFIX if data.startswith(avro_framing.MAGIC) else 0


def _objects(data: bytes, start: int) -> Iterator[tuple[Piece, dict]]:
    """The objects of a text; what is no object is empty, and its piece says why. In: where the text begins."""
    text = data[start:]
    try:
        whole = json_exact.parse(text)
    except Wrong:
        pass
    else:
        yield Piece(len(data) - len(text.lstrip(BLANKS)), len(data.rstrip(BLANKS))), whole
        return
    for piece in (_moved(piece, start) for piece in json_stream.pieces(text)):
        whole = {}
        if piece.wrong is None:
            try:
                whole = json_exact.parse(data[piece.start : piece.end])
            except Wrong as wrong:
                at = piece.start + wrong.offset
                piece = piece._replace(wrong=Wrong(wrong.kind, at, wrong.expected, wrong.found))
        yield piece, whole


def _moved(piece: Piece, by: int) -> Piece:
    wrong = piece.wrong
    moved = wrong and Wrong(wrong.kind, wrong.offset + by, wrong.expected, wrong.found)
    return Piece(piece.start + by, piece.end + by, moved)


def _broken(piece: Piece, wrong: Wrong, raw: bytes) -> Reject:
    return Reject(wrong.kind, piece.start, len(raw), wrong.offset, wrong.expected, wrong.found, raw)


def _of_registry(data: bytes) -> Reject:
    name, value = data[1:5].hex() or "none", data[_start(data) :][:8].hex(" ") or "nothing"
    return Reject(
        "unsupported_message",
        0,
        len(data),
        0,
        "JSON, which begins with { or [ (Avro: codec goldengate_avro; Protobuf is not read)",
        f"{value} after the id of a schema registry, {name}",
        data,
    )


def _event(shaped: Shaped, piece: Piece, raw: bytes, source: Source, tables: dict) -> Control | None:
    """The control event that an object is; None where it is an operation."""
    payload, num_bytes = shaped.payload, piece.end - piece.start
    if payload is None:
        return Control(TOMBSTONE, piece.start, num_bytes)
    if not isinstance(payload, dict):
        return None
    word = payload.get(shaped.names["op_type"])
    kind = JSON_SCHEMA if word is None and "$schema" in payload else EVENTS.get(word) if isinstance(word, str) else None
    if kind is None:
        return None
    name = payload.get("qual_table", payload.get(shaped.names["table"])) if kind in EVENTS.values() else None
    named: tuple[str | None, str | None] = (None, None)
    if isinstance(name, str):
        name = source.table_of(name) or name
        named = operation_change.parts_of(tables[name].table if name in tables else name)
    return Control(kind, piece.start, num_bytes, *named, detail=raw.decode())


def _is_truncate(event: Control, shaped: Shaped) -> bool:
    """Is it DDL that removes all rows of a table?"""
    statement = shaped.payload.get("ddl") if event.kind == EVENTS["DDL"] and isinstance(shaped.payload, dict) else None
    return isinstance(statement, str) and TRUNCATES.match(statement) is not None


def _of_truncate(event: Control, raw: bytes) -> Reject:
    return Reject(
        "unsupported_message",
        event.unit_offset,
        len(raw),
        event.unit_offset,
        "a truncate as an operation: DDL has no place in the order (GETTRUNCATES on the source)",
        "DDL that truncates a table, whose rows stay",
        raw,
        event.source_schema,
        event.source_table,
    )


def _decode(
    shaped: Shaped, message: dict, piece: Piece, raw: bytes, source: Source, tables: dict
) -> tuple[dict | Reject, list[Control]]:
    record = Record(
        message["unit_id"], message["topic"], piece.start, raw, lambda role, column: shaped.offset_of(raw, role, column)
    )
    try:
        operation = shaped.operation()
    except Refused as no:
        return operation_change.rejected(no, record), []
    return operation_change.decode(operation, record, source, tables, shaped.options)
