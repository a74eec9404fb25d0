"""Write Qlik's JSON messages, and the rows that Spark's Kafka source would give for them. Knows nothing of inlet.

A change is a dict: operation, change_seq, before, after (dicts of Python values), transaction_id,
transaction_event_counter, transaction_last_event, change_timestamp (text), stream_position. What it lacks is sent as
Qlik sends it. A column that is absent from an image is sent as null and left out of the column mask.
"""

import datetime
import decimal
import json

import pyarrow as pa
import pyarrow.parquet as pq

from tests.encode.qlik_change_table import Column

KAFKA_SOURCE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
START = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
HEADERS = {
    "change_seq": "changeSequence",
    "change_timestamp": "timestamp",
    "stream_position": "streamPosition",
    "transaction_id": "transactionId",
}
plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=lambda value: text_of(value)).encode


def text_of(value) -> str:
    """Numbers with a scale, times and bytes travel as text."""
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, (datetime.date, datetime.datetime, datetime.time)):
        return value.isoformat()
    raise TypeError(f"no Qlik text for {value!r}")


def mask(names, columns: list[str]) -> str:
    """Hex text, one big-endian number, bit 0 is the first column; as wide as Qlik writes it."""
    bits = sum(1 << ordinal for ordinal, column in enumerate(columns) if column in names)
    return bits.to_bytes(len(columns) // 8 + 1, "big").hex().upper()


def value(
    change: dict,
    columns: list[str],
    shape: str = "envelope",
    schema: str | None = None,
    table: str | None = None,
    delete_in: str = "data",
    masks: bool = True,
    dumps=plain,
    schema_id: str | None = None,
    sections: tuple[str, str, str] = ("data/", "beforeData/", "headers/"),
) -> bytes:
    """Message value of one change. shape: `envelope`, `bare` or `legacy`; delete_in: the member that carries a deleted
    row; sections: where data, row of before and headers are: `name/` as an object, any other in members with that
    beginning.
    """
    if shape == "legacy":
        return dumps(_legacy(change, schema, table)).encode()
    operation, before, after = change["operation"], change.get("before"), change.get("after")
    row = before if operation == "DELETE" else after
    headers = {"operation": operation}
    headers |= {name: change.get(field) or "" for field, name in HEADERS.items()}
    is_load = operation == "REFRESH"
    headers["changeMask"] = None if is_load or not masks else mask(changed(operation, before, after), columns)
    headers["columnMask"] = None if is_load or not masks else mask(row, columns)
    headers["transactionEventCounter"] = change.get("transaction_event_counter")
    headers["transactionLastEvent"] = change.get("transaction_last_event")
    image = {column: row.get(column) for column in columns}
    body = {"data": image, "beforeData": None, "headers": headers}
    if operation == "UPDATE" and before is not None:
        body["beforeData"] = {column: before.get(column) for column in columns}
    if operation == "DELETE" and delete_in == "beforeData":
        body["data"], body["beforeData"] = None, image
    body = _named(body, sections)
    if schema:
        body |= {"schema": schema, "table": table}
    if shape == "envelope":
        body = {
            "magic": "atMSG",
            "type": "DT",
            "headers": None,
            "messageSchemaId": schema_id,
            "messageSchema": None,
            "message": body,
        }
    return dumps(body).encode()


def structure(schema_id: str, schema: str, table: str, columns: list[Column], version: int, data_schema="") -> dict:
    """The `message` of a metadata message."""
    told = {
        column.name: {
            "ordinal": n,
            "type": column.type,
            "length": column.length if column.type != "NUMERIC" else 0,
            "precision": column.precision,
            "scale": column.scale,
            "primaryKeyPosition": column.key,
            "nullable": not column.key,
        }
        for n, column in enumerate(columns, 1)
    }
    lineage = {"server": "qlik-01", "task": "shop", "schema": schema, "table": table, "tableVersion": version}
    lineage |= {"timestamp": "2026-01-02T03:00:00.000"}
    return {
        "schemaId": schema_id,
        "lineage": lineage,
        "tableStructure": {"tableColumns": told},
        "dataSchema": data_schema,
    }


def metadata(schema_id: str, schema: str, table: str, columns: list[Column], version: int = 1) -> bytes:
    """A metadata message."""
    message = structure(schema_id, schema, table, columns, version)
    envelope = {"magic": "atMSG", "type": "MD", "headers": None, "messageSchemaId": schema_id, "messageSchema": None}
    return plain(envelope | {"message": message}).encode()


def _named(body: dict, sections: tuple[str, str, str]) -> dict:
    """The sections of a body as the user's message format has them. One in members of its own lacks those of a null."""
    named: dict = {}
    for (_, values), section in zip(body.items(), sections):
        if section.endswith("/"):
            named[section[:-1]] = values
        else:
            named |= {f"{section}{member}": value for member, value in (values or {}).items()}
    return named


def _legacy(change: dict, schema: str | None, table: str | None) -> dict:
    """A message of version 5 and before: images are arrays, each value is text, and SQL NULL is NULL."""

    def array(image):
        return image and [{name: _legacy_text(value)} for name, value in image.items()]

    operation, before, after = change["operation"], change.get("before"), change.get("after")
    return {
        "task_name": "task",
        "table": table,
        "schema": schema,
        "op": {"REFRESH": "F"}.get(operation, operation[0]),
        "stream_position": change.get("stream_position") or "",
        "change_seq": change.get("change_seq") or "",
        "ts": change.get("change_timestamp") or "",
        "data": array(before if operation == "DELETE" else after),
        "bu_data": array(before) if operation == "UPDATE" else None,
    }


def _legacy_text(value) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text_of(value)


def changed(operation: str, before, after) -> list[str]:
    if operation == "UPDATE" and before is not None:
        return [name for name in after if before.get(name) != after[name]]
    return list((before if operation == "DELETE" else after) or ())


def rows(
    values, topic: str, partition: int = 0, offset: int = 0, start=START, seconds: float = 0.001, key=None
) -> list[dict]:
    """Messages of one partition as the Kafka source gives them, a millisecond apart unless told otherwise."""
    return [
        {
            "key": key,
            "value": value_,
            "topic": topic,
            "partition": partition,
            "offset": offset + n,
            "timestamp": start + datetime.timedelta(seconds=seconds * n),
            "timestampType": 0,
            "headers": None,
        }
        for n, value_ in enumerate(values)
    ]


def write_parquet(messages: list[dict], path) -> None:
    """One file with exactly the schema of Spark's Kafka source (includeHeaders=true)."""
    pq.write_table(pa.Table.from_pylist(messages, schema=KAFKA_SOURCE), path)
