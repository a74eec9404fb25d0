"""Qlik's Avro at speed: a data message becomes the JSON text of the same members, which the compiled walk of Qlik's
JSON reads (json_fast). What is in any doubt is left out, and goes to the exact path.

Doubt       a schema that has not come, or has other members than data, beforeData and headers; a column of another type
            than null and one more; bytes that the exact path refuses; masks that do not tell their byte order by the
            number of columns alone; an order of the schema's columns that is not the contract's, where no list is named
Place       the text of a message tells its sequence where 35 digits are followed by a timestamp: columns are unions, so
            that a byte is between two of them
"""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import avro_framing, json_columns, walked
from inlet.codecs.json_batches import LEN_MOST, bytes_of, text
from inlet.codecs.qlik import avro_text, avro_walk, full_load, json_arrow, json_fast, metadata
from inlet.codecs.qlik.avro_form import ENVELOPE, registered
from inlet.codecs.qlik.avro_text import Doubt, Program
from inlet.codecs.qlik.json_contracts import Contracts
from inlet.fields import avro
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

PATTERN = r"""r'F([0-9]{35})[\x14-\x50][0-9]{4}-[0-9]{2}-[0-9]{2}'"""
TEXT = "cast(value as string)"
SEQ = f"if(regexp_count({TEXT}, {PATTERN}) = 1, regexp_extract({TEXT}, {PATTERN}, 1), null)"
READ = (*json_fast.READ, "headers")
HEAD_OF_TEXT = (
    b'{"magic":"atMSG","type":"DT","headers":null,"messageSchemaId":%b,"messageSchema":null,"message":{'  # of the id
)
MOST_KEPT = 4096  # programs
LEN_PIECE = 1 << 28  # bytes that the texts of a piece take at most, unless one alone takes more
HEAD = b"atMSG\x04DT\0"  # of an envelope without application headers


def with_seq(messages):
    """Messages with `seq`, the sequence that the bytes give without a parse. A row of a full load has none."""
    return messages.selectExpr("*", f"{SEQ} as seq")


def changes(sources: list, tables: dict, loads: list[dict], lookups: dict[str, dict[str, bytes]] | None = None):
    """Changes of the messages that are in no doubt. In: as of json_fast.changes; what was looked up is among
    `lookups`."""
    contracts = Contracts(sources, tables, lookups or {})
    walk = json_arrow.walk(contracts, json_arrow.load_spans(loads, contracts, sources))
    texts = Texts(sources, tables, lookups or {})

    def batches(given):
        for batch in given:
            lengths = pc.binary_length(batch.column("value")).to_pylist()
            sizes = dict(zip(batch.column("unit_id").to_pylist(), lengths))
            for rows in walk(texts.batches(batch)):
                own = pa.array([sizes[unit] for unit in rows.column("unit_id").to_pylist()], pa.int64())
                yield rows.set_column(rows.schema.get_field_index("unit_length"), "unit_length", own)

    return walked.changes(batches, contracts, json_fast.OPERATIONS, loads)


def find_loads(messages, sources: list, tables: dict, refresh_row) -> dict:
    """As of json_fast: by the exact path, of messages whose bytes tell no sequence."""
    by_name = {source.name: source for source in sources}

    def batches(given):
        for batch in given:
            found = [refresh_row(message, by_name[message["source"]], tables) for message in batch.to_pylist()]
            rows = [json_fast.row_of(one) for one in found]
            yield json_fast.load_rows(batch, [name for name, _ in rows], [at for _, at in rows])

    rows = with_seq(messages).where("seq is null").selectExpr(*READ)
    return json_fast.load_spans(rows.mapInArrow(batches, json_fast.LOAD_ROWS), sources)


class Texts:
    """The JSON text of messages."""

    def __init__(self, sources: list[Source], tables: dict[str, Table], lookups: dict[str, dict[str, bytes]]):
        self.sources, self.tables, self.lookups = {source.name: source for source in sources}, tables, lookups
        self.lists = {name: metadata.lists(brought) for name, brought in lookups.items()}
        self.schemas = {  # of data messages, by source and id of the list; made once, as its hash is
            name: {id_: listed.data_schema.encode() for id_, listed in lists.items()}
            for name, lists in self.lists.items()
        }
        self.orders = {s.name: s.options_as(full_load.Options).mask_order for s in sources}
        self.places: dict[tuple, int] = {}  # of programs; -1: in doubt
        self.programs: list[Program] = []
        self.plans: tuple | None = None  # the programs as the walk has them

    def batches(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Messages as text, null where that is in doubt; in pieces whose texts have room in one column."""
        if len(self.places) > MOST_KEPT:
            self.places, self.programs, self.plans = {}, [], None
        columns = [batch.column(name).to_pylist() for name in ("source", "topic", "value", "headers")]
        datums = np.array([self._datum(*row) for row in zip(*columns)], np.int64).reshape(-1, 2)
        self.plans = self.plans or avro_text.joined(self.programs)
        letters, ends = bytes_of(batch.column("value"))
        rooms = self.plans[2][datums[:, 0]] + avro_walk.GROWTH * np.diff(ends)
        is_long = rooms > LEN_MOST
        datums[is_long, 0], rooms[is_long] = -1, 0
        until, at = np.cumsum(rooms), 0
        while at < len(batch):
            before = int(until[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(until, before + LEN_PIECE, "right")))
            texts = self._texts(letters, ends[at : stop + 1], datums[at:stop], int(until[stop - 1]) - before)
            yield batch.slice(at, stop - at).set_column(batch.schema.names.index("value"), "value", texts)
            at = stop

    def _texts(self, letters: np.ndarray, ends: np.ndarray, datums: np.ndarray, room: int) -> pa.Array:
        """A column of texts. Floats are written in a second walk, which finds the same ones."""
        num_most, num_messages = int(ends[-1] - ends[0]) // 4, len(ends) - 1
        floats, masks = np.zeros((num_most, 2), np.int64), np.zeros((2, 2), np.int64)
        out, out_ends, valid = np.empty(room, np.uint8), np.zeros(len(ends), np.int64), np.zeros(num_messages, np.bool_)
        words = json_columns.joined([])[0], np.zeros(num_most + 1, np.int64)
        while num := avro_walk.texts(letters, ends, datums, self.plans, floats, words, masks, out, out_ends, valid):
            if words[1][num]:
                break
            words = json_columns.joined([repr(value) for value in avro_text.floats_of(letters, floats[:num])])
        return text(out, out_ends, valid, pa.binary())

    def _datum(self, source: str, topic: str, data: bytes | None, headers: list | None) -> tuple[int, int]:
        """The place of a message's program, and the first byte of its datum; -1 in doubt."""
        if not data or source not in self.sources:
            return -1, 0
        try:
            id_, id_of_registry, schema, start = self._framed(source, data, headers)
        except (Doubt, Wrong, ValueError):
            return -1, 0
        key = source, topic, id_, id_of_registry, schema
        if key not in self.places:
            self.places[key] = self._made(*key)
        return self.places[key], start

    def _made(self, source: str, topic: str, id_: str | None, id_of_registry: str | None, schema: bytes) -> int:
        """The place of a new program; -1 in doubt."""
        try:
            made, names = Program(schema, HEAD_OF_TEXT % json.dumps(id_).encode(), self.orders[source]), b""
            listed = self.lists.get(source, {}).get(id_ or "")
            if listed is not None and [*listed.ordinals.items()] != [*enumerate(made.columns, 1)]:
                raise Doubt  # masks count the columns of the list
            if listed is None:
                names = self._named(source, topic, id_of_registry, schema, made.columns)
        except (Doubt, Wrong, ValueError):
            return -1
        made.end(names + b"}}")
        self.programs.append(made)
        self.plans = None
        return len(self.programs) - 1

    def _framed(self, source: str, data: bytes, headers: list | None) -> tuple[str | None, str | None, bytes, int]:
        """Id of the list, that of a registry, the schema's text, the datum's first byte. The datum ends with the
        message."""
        if name := avro_framing.of_container({"headers": headers}):
            return None, None, self._looked_up(source, name), 0
        if data.startswith(avro_framing.MAGIC):
            name, start = avro_framing.of_registry(data)
            return None, name, self._looked_up(source, name), start
        if not data.startswith(HEAD):
            raise Doubt
        envelope, end = avro.read(ENVELOPE, data, 0)
        id_, schema_text = envelope["messageSchemaId"] or None, envelope["messageSchema"]
        schema = schema_text.encode() if schema_text else self.schemas.get(source, {}).get(id_ or "")
        if not schema or end != len(data):
            raise Doubt
        return id_, None, schema, end - len(envelope["message"])

    def _looked_up(self, source: str, name: str) -> bytes:
        found = self.lookups.get(source, {}).get(name)
        if not found:
            raise Doubt
        return found

    def _named(self, source: str, topic: str, id_: str | None, schema: bytes, columns: list[str]) -> bytes:
        """The members that name the table of a message without a list that was brought, where its topic does not.
        Raises: Doubt where its columns are not those of each version of the contract, in their order.
        """
        by_topic, by_schema = self.sources[source].table_of(topic), None
        if id_ is not None:
            listed = registered(id_, schema)
            by_schema = listed and (self.sources[source].table_of(listed.name) or listed.name)
        table = self.tables.get(by_topic or by_schema or "")
        if table is None or self.tables.get(by_schema or "", table).name != table.name:
            raise Doubt
        if any(columns != version.column_names for version in table.versions):
            raise Doubt
        if by_topic:
            return b""
        return f',"schema":{json.dumps(table.schema_name)},"table":{json.dumps(table.table_name)}'.encode()
