"""Qlik's Avro at speed: a data message becomes the JSON text of the same members, which the compiled walk of Qlik's
JSON reads (json_fast). What is in any doubt is left out, and goes to the exact path.

Doubt       a schema that has not come, or has other members than data, beforeData and headers; a column of another type
            than null and one more; bytes that the exact path refuses; masks that do not tell their byte order by the
            number of columns alone; an order of the schema's columns that is not the contract's, where no list is named
Place       the text of a message tells its sequence where 35 digits are followed by a timestamp: columns are unions, so
            that a byte is between two of them
"""

import json
import struct

import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import avro_framing
from inlet.codecs.qlik import full_load, json_arrow, json_fast, metadata
from inlet.codecs.qlik.avro_form import ENVELOPE, registered
from inlet.codecs.qlik.avro_text import Doubt, put, record_of
from inlet.codecs.qlik.json_contracts import Contracts
from inlet.fields import avro
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

PATTERN = r"""r'F([0-9]{35})[\x14-\x50][0-9]{4}-[0-9]{2}-[0-9]{2}'"""
TEXT = "cast(value as string)"
SEQ = f"if(regexp_count({TEXT}, {PATTERN}) = 1, regexp_extract({TEXT}, {PATTERN}, 1), null)"
READ = (*json_fast.READ, "headers")
HEAD = b"atMSG\x04DT\0"  # of an envelope without application headers
UNREADABLE = (Wrong, IndexError, ValueError, OverflowError, RecursionError, struct.error, avro.Bad)


def marked(messages, sources: list):
    """Messages with `seq`, the sequence that the bytes tell without a parse; it is `mark`, too."""
    return messages.selectExpr("*", f"{SEQ} as seq").selectExpr("*", "seq as mark")


def survey_sql() -> dict[str, str]:
    """As of json_fast. A row of a full load has no sequence."""
    return json_fast.survey_sql() | {"may_have_refresh": "coalesce(bool_or(seq is null), false)"}


def fast(messages, sources: list, tables: dict, loads: list[dict], lookups: dict[str, dict[str, bytes]] | None = None):
    """Changes of the messages that are in no doubt. In: as of json_fast.fast; what was looked up is among `lookups`."""
    contracts = Contracts(sources, tables, lookups or {})
    walk = json_arrow.walk(contracts, json_arrow.load_spans(loads, contracts, sources))
    text_of = Texts(sources, tables, lookups or {})

    def batches(given):
        for batch in given:
            lengths = pc.binary_length(batch.column("value")).to_pylist()
            sizes = dict(zip(batch.column("unit_id").to_pylist(), lengths))
            for walked in walk([text_of.batch(batch)]):
                own = pa.array([sizes[unit] for unit in walked.column("unit_id").to_pylist()], pa.int64())
                yield walked.set_column(walked.schema.get_field_index("unit_length"), "unit_length", own)

    return json_fast.changes(messages.selectExpr(*READ), batches, contracts, loads)


def find_loads(messages, sources: list, tables: dict, refresh_table) -> dict:
    """As of json_fast: by the exact path, of messages whose bytes tell no sequence."""
    by_name = {source.name: source for source in sources}

    def batches(given):
        for batch in given:
            rows = batch.to_pylist()
            names = [refresh_table(message, by_name[message["source"]], tables) for message in rows]
            found = pa.RecordBatch.from_arrays(
                [
                    batch.column("source"),
                    pa.array(names, pa.string()),
                    batch.column("topic"),
                    batch.column("timestamp").cast(pa.int64()),
                ],
                names=["source", "t", "topic", "at"],
            )
            yield found.filter(pa.array([n is not None and m["timestamp"] is not None for n, m in zip(names, rows)]))

    rows = marked(messages, sources).where("seq is null").selectExpr(*READ)
    return json_fast.load_spans(rows.mapInArrow(batches, json_fast.LOAD_ROWS), sources)


class Texts:
    """The JSON text of messages."""

    def __init__(self, sources: list[Source], tables: dict[str, Table], lookups: dict[str, dict[str, bytes]]):
        self.sources, self.tables, self.lookups = {source.name: source for source in sources}, tables, lookups
        self.data_schemas = {
            name: {id_: listed.data_schema.encode() for id_, listed in metadata.lists(brought).items()}
            for name, brought in lookups.items()
        }
        self.orders = {s.name: s.options_as(full_load.Options).mask_order for s in sources}

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Messages as text, null where that is in doubt."""
        names = batch.schema.names
        columns = [batch.column(name).to_pylist() for name in ("source", "topic", "value", "headers")]
        texts = pa.array([self.text(*row) for row in zip(*columns)], pa.binary())
        return batch.set_column(names.index("value"), "value", texts)

    def text(self, source: str, topic: str, data: bytes | None, headers: list | None) -> bytes | None:
        """A message as text; None in doubt."""
        if not data or source not in self.sources:
            return None
        try:
            id_, schema, start, end = self._framed(source, data, headers)
            record, names = record_of(schema), b""
            if id_ is None or id_ not in self.data_schemas.get(source, {}):
                id_of_registry = avro_framing.of_registry(data)[0] if start == avro_framing.LEN_PREFIX else None
                names = self._named(source, topic, id_of_registry, schema, record.columns)
            out = [b'{"magic":"atMSG","type":"DT","headers":null,"messageSchemaId":', json.dumps(id_).encode()]
            out.append(b',"messageSchema":null,"message":{')
            put(record, data[:end], start, end, self.orders[source], out)
        except (Doubt, *UNREADABLE):
            return None
        out += (names, b"}}")
        return b"".join(out)

    def _framed(self, source: str, data: bytes, headers: list | None) -> tuple[str | None, bytes, int, int]:
        """Id of the list, the schema's text, the datum's first byte and end."""
        if name := avro_framing.of_container({"headers": headers}):
            return None, self._looked_up(source, name), 0, len(data)
        if data.startswith(avro_framing.MAGIC):
            name, start = avro_framing.of_registry(data)
            return None, self._looked_up(source, name), start, len(data)
        if not data.startswith(HEAD):
            raise Doubt
        envelope, end = avro.read(ENVELOPE, data, 0)
        id_, text = envelope["messageSchemaId"] or None, envelope["messageSchema"]
        schema = text.encode() if text else self.data_schemas.get(source, {}).get(id_ or "")
        if not schema or end != len(data):
            raise Doubt
        return id_, schema, end - len(envelope["message"]), end

    def _looked_up(self, source: str, name: str) -> bytes:
        found = self.lookups.get(source, {}).get(name)
        if not found:
            raise Doubt
        return found

    def _named(self, source: str, topic: str, id_: str | None, schema: bytes, columns: tuple[str, ...]) -> bytes:
        """The members that name the table of a message without a list that was brought, where its topic does not.
        Raises: Doubt where its columns are not those of the contract, in their order.
        """
        by_topic, by_schema = self.sources[source].table_of(topic), None
        if id_ is not None:
            listed = registered(id_, schema)
            by_schema = listed and (self.sources[source].table_of(listed.name) or listed.name)
        table = self.tables.get(by_topic or by_schema or "")
        if table is None or self.tables.get(by_schema or "", table).name != table.name:
            raise Doubt
        if columns != tuple(table.versions[-1].column_names):
            raise Doubt
        if by_topic:
            return b""
        return f',"schema":{json.dumps(table.schema_name)},"table":{json.dumps(table.table_name)}'.encode()
