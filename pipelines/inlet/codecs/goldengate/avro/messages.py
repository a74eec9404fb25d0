"""Oracle GoldenGate: Avro messages (avro_row, avro_op) of Big Data / Distributed Applications and Analytics (DAA).

Unit        one message, with one datum, which is a record. Several follow each other in the generic wrapper, and where
            the option is_packed says so (mode=tx of the Kafka handler)
Yields      for each record one change or one reject. A change may bring control events with it: operations/change
Shapes      row model: the message's own members, then the columns. Operation model: the message's own members, and
            `before` and `after`, each a record of columns or null
Schema      looked up under a name, once; a datum whose schema is not there is decoded again once it is. Option framing:
            bare       nothing but the datum [documented]. Its first field, the table, tells the schema (option
                       schema_of), and the option schemas the names under which it is looked up
            confluent  byte 00, a schema id of four bytes, the datum; the name is the id
            wrapped    the generic wrapper [documented]: table, fingerprint of the schema, payload [recalled order and
                       types]; the name is the fingerprint, in decimal digits
            A message of `transport: avro` brings its schema (header avro.schema), whatever the option says
            ASSUMED: the first field of a bare datum is the table's name; option schema_of: topic where it is not
Several     schemas under a table's names: the one that fits the datum to its last byte, and whose columns the contract
            has at the datum's place. Where two give different changes, ambiguous_layout
Missing     a column whose companion <COLUMN>_isMissing is true was not supplied [recalled; the limitation without it is
            documented in vendor code]. Without companions null says nothing in an update: option null_means
Values      numbers with their digits; float and double as the shortest text that gives the same double, which stays
            inexact; bytes as hex digits; logical types as what they mean
Controls    `tombstone`: a message that is null
Contracts   `inlet import` makes them of Defgen's files, too: defgen, on the page goldengate_trail
Meaning     operations/change, operations/images, position, operations/time
Facts       [messages seen] the row model's schema. [documented] bare data, the wrapper, the schema topic: Oracle,
            "Using the Kafka Handler". [recalled] field order of the operation model, `_isMissing`, the wrapper's fields
Rejects     definition_missing, wrong_magic, wrong_shape, trailing_bytes, ambiguous_layout, and those of
            operations/change
"""

from collections.abc import Iterator
from typing import NamedTuple

from inlet.codecs.goldengate.avro import framing as avro_framing
from inlet.codecs.goldengate.avro.framing import Framed
from inlet.codecs.goldengate.avro.operation import Shaped
from inlet.codecs.goldengate.avro.options import Options
from inlet.codecs.goldengate.message_definitions import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.operations import change as operation_change
from inlet.codecs.goldengate.operations.operation import Operation, Record, Refused
from inlet.codecs.notes import Said
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.fields import avro
from inlet.fields.wrong import Wrong
from inlet.source import Source

OPTIONS, FAST, LOADS = Options, None, None
TOMBSTONE = "tombstone"  # a control event
LEN_FOUND = 8


class Reading(NamedTuple):
    """What a record is by one schema: where it stands, its change or its reject, and the control events beside it; what
    it says."""

    start: int
    end: int
    row: dict | Reject
    beside: list[Control]
    operation: Operation | None = None
    is_read: bool = True  # the datum is one of the schema


def lookups(message: dict, source: Source) -> list[str]:
    """The names of the schemas that a message may be written by."""
    return avro_framing.names(message, source.options_as(Options))


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE. There are no loads."""
    if message["value"] is None:
        return Decoded([], controls=[Control(TOMBSTONE, 0, 0)], num_control=1)
    readings = list(_readings(message, source, tables))
    return Decoded(
        [reading.row for reading in readings if isinstance(reading.row, dict)],
        [reading.row for reading in readings if isinstance(reading.row, Reject)],
        [control for reading in readings for control in reading.beside],
        0,
        int(not readings),
    )


def says(message: dict, source: Source, tables: dict) -> list[Said]:
    """What the records of a message say of their places, those whose schema is there."""
    options = source.options_as(Options)
    return [
        operation_change.said(
            read.operation, read.start, read.end - read.start, message["topic"], source, tables, options
        )
        for read in _readings(message, source, tables)
        if read.operation
    ]


def _readings(message: dict, source: Source, tables: dict) -> Iterator[Reading]:
    """The records of a message, to its last byte."""
    data, options, at = message["value"], source.options_as(Options), 0
    try:
        for framed in avro_framing.records(message, data, options):
            while True:
                reading = _read(framed, message, source, tables, options)
                yield reading
                at = reading.end
                if framed.end is not None or at == len(data):
                    break
                framed = avro_framing.bare(message, data, at, options)
    except Wrong as wrong:
        yield _broken(data, at, wrong)


def _read(framed: Framed, message: dict, source: Source, tables: dict, options: Options) -> Reading:
    """One record, by the schema that is its own. Raises: nothing; what cannot be read is a reject."""
    data, found = message["value"], message.get("lookups", {})
    end = framed.end if framed.end is not None else len(data)
    readings: list[Reading] = []
    for name in framed.names:
        try:
            schemas = avro.parse(found[name]) if found.get(name) is not None else []
        except ValueError as error:
            no = Wrong("definition_missing", framed.datum, f"an Avro schema of a record under {name}", str(error))
            return _broken(data, framed.start, no, end)
        readings += [_by_schema(schema, framed, message, source, tables, options) for schema in schemas]
    if not readings:
        expected = f"an Avro schema under {' or '.join(framed.names)} (lookups of the source; option schemas)"
        return _broken(data, framed.start, Wrong("definition_missing", framed.datum, expected, "none"), end)
    fitting = [reading for reading in readings if isinstance(reading.row, dict)]
    likely = fitting or [reading for reading in readings if reading.is_read] or readings
    first = likely[0]
    if any(reading.end != first.end or fitting and reading.row != first.row for reading in likely):
        expected = f"one schema that fits, of those under {', '.join(framed.names)}"
        return _broken(data, framed.start, Wrong("ambiguous_layout", framed.datum, expected, "several"), end)
    return first


def _by_schema(
    schema: avro.Type, framed: Framed, message: dict, source: Source, tables: dict, options: Options
) -> Reading:
    data = message["value"]
    try:
        datum, after = avro.read(schema, data[: framed.datum_end], framed.datum)
        if framed.datum_end is not None and after != framed.datum_end:
            rest = data[after : framed.datum_end]
            found = f"{len(rest)} bytes more: {rest[:LEN_FOUND].hex().upper()}"
            raise Wrong("trailing_bytes", after, f"the end of a datum of the schema {schema}", found)
    except Wrong as wrong:
        return _broken(data, framed.start, wrong, framed.end)
    end = framed.end or after
    shaped = Shaped(datum, schema, data, framed.datum, framed.start, options)
    raw = data[framed.start : end]
    record = Record(message["unit_id"], message["topic"], framed.start, raw, shaped.offset_of)
    try:
        operation = shaped.operation()
    except Refused as no:
        return Reading(framed.start, end, operation_change.rejected(no, record), [])
    row, beside = operation_change.decode(operation, record, source, tables, options)
    return Reading(framed.start, end, row, beside, operation)


def _broken(data: bytes, start: int, wrong: Wrong, end: int | None = None) -> Reading:
    """What is left of a message, or a record of which only the end is known, as a reject."""
    end = len(data) if end is None else end
    raw = data[start:end]
    reject = Reject(wrong.kind, start, len(raw), wrong.offset, wrong.expected, wrong.found, raw)
    return Reading(start, end, reject, [], is_read=False)
