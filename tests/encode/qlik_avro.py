"""Write Qlik's Avro messages: the Replicate envelope, a registry's prefix, metadata messages. Knows nothing of inlet,
and of Avro only what its specification says.

A change is a dict as in `qlik`; a column that is absent from an image is sent as null and left out of the column mask.
"""

import datetime
import json
import struct
from decimal import Context, Decimal
from typing import NamedTuple

from tests.encode import qlik
from tests.encode.qlik_change_table import Column

ENVELOPE_NAMES = "magic", "type", "headers", "messageSchemaId", "messageSchema", "message"
PRIMITIVE = {
    "BOOLEAN": "boolean",
    "INT1": "int",
    "INT2": "int",
    "INT4": "int",
    "INT8": "long",
    "UINT1": "int",
    "UINT2": "int",
    "UINT4": "long",
    "REAL4": "float",
    "REAL8": "double",
    "BYTES": "bytes",
    "BLOB": "bytes",
}  # others: string
LOGICAL = {"DATE": ("int", "date"), "TIME": ("int", "time-millis"), "DATETIME": ("long", "timestamp-micros")}
OPERATIONS = ["INSERT", "UPDATE", "DELETE", "REFRESH"]
TEXTS = ("changeSequence", "timestamp", "streamPosition", "transactionId")
EPOCH = datetime.datetime(1970, 1, 1)


class How(NamedTuple):
    """What a task's settings and version decide."""

    has_logical_types: bool = True
    is_of_2018: bool = False  # no namespace, no defaults, no counter
    namespace: str = "com.attunity.queue.msg.shop-qa.DEPOT.ITEMS"
    mask_order: str = "big"
    trims_masks: bool = False


AS_NOW = How()


def type_of(column: Column, how: How):
    """The Avro type of a column's values."""
    is_decimal = column.type == "NUMERIC" and column.precision > 0 or column.type == "UINT8"
    if how.has_logical_types and is_decimal:
        digits = (20, 0) if column.type == "UINT8" else (column.precision, column.scale)
        return {"type": "bytes", "logicalType": "decimal", "precision": digits[0], "scale": digits[1]}
    if how.has_logical_types and column.type in LOGICAL:
        type_, logical = LOGICAL[column.type]
        return {"type": type_, "logicalType": logical}
    return PRIMITIVE.get(column.type, "string")


def data_schema(columns: list[Column], how: How = AS_NOW) -> str:
    """The schema of a table's data messages."""
    null = {"type": "null"} if how.is_of_2018 else "null"
    default = {} if how.is_of_2018 else {"default": None}
    of_columns = [{"name": c.name, "type": [null, type_of(c, how)]} | default for c in columns]
    headers = [{"name": "operation", "type": {"type": "enum", "name": "operation", "symbols": OPERATIONS}}]
    headers += [{"name": name, "type": "string"} for name in TEXTS]
    headers += [{"name": name, "type": [null, "bytes"]} for name in ("changeMask", "columnMask")]
    if not how.is_of_2018:
        headers += [{"name": "transactionEventCounter", "type": [null, "long"]}]
        headers += [{"name": "transactionLastEvent", "type": [null, "boolean"]}]
    of_headers = {"type": "record", "name": "Headers", "fields": headers}
    record = {"type": "record", "name": "DataRecord"}
    if not how.is_of_2018:
        of_headers["namespace"], record["namespace"] = "com.attunity.queue.msg", how.namespace
    fields = [
        {"name": "data", "type": {"type": "record", "name": "Data", "fields": of_columns}},
        {"name": "beforeData", "type": [null, "Data"]} | default,
        {"name": "headers", "type": of_headers},
    ]
    return json.dumps(record | {"fields": fields})


def datum(change: dict, columns: list[Column], how: How = AS_NOW, masks: bool = True) -> bytes:
    """A data record of a change."""
    operation, before, after = change["operation"], change.get("before"), change.get("after")
    row = before if operation == "DELETE" else after
    data = _image(row, columns, how)
    data += _union(_image(before, columns, how) if operation == "UPDATE" and before is not None else None)
    data += long(OPERATIONS.index(operation))
    by_name = {name: change.get(field) or "" for field, name in qlik.HEADERS.items()}
    data += b"".join(string(by_name[name]) for name in TEXTS)
    names = [column.name for column in columns]
    has_masks = masks and operation != "REFRESH"
    for given in (qlik.changed(operation, before, after), row):
        data += _union(sized(mask(given, names, how)) if has_masks else None)
    if not how.is_of_2018:
        counter, last = change.get("transaction_event_counter"), change.get("transaction_last_event")
        data += _union(None if counter is None else long(counter)) + _union(None if last is None else bytes([last]))
    return data


def mask(names, columns: list[str], how: How) -> bytes:
    """The bytes of a mask, as wide as in JSON, or without bytes of zeros at its end."""
    found = bytes.fromhex(qlik.mask(names, columns))
    found = found.lstrip(b"\0") or b"\0" if how.trims_masks else found
    return found if how.mask_order == "big" else found[::-1]


def envelope(type_: str, message: bytes, schema_id: str | None = None, schema: str | None = None) -> bytes:
    """The Replicate envelope."""
    data = b"atMSG" + string(type_) + _union(None)
    return (
        data
        + _union(schema_id and string(schema_id))
        + _union(None if schema is None else string(schema))
        + sized(message)
    )


def registered(schema_id: int, message: bytes) -> bytes:
    """A datum after a registry's prefix."""
    return b"\0" + schema_id.to_bytes(4, "big") + message


def metadata(
    schema_id: str, schema: str, table: str, columns: list[Column], version: int = 1, how: How = AS_NOW
) -> bytes:
    """A metadata message."""
    told = qlik.structure(schema_id, schema, table, columns, version, data_schema(columns, how))
    numbers = ("ordinal", "length", "precision", "scale", "primaryKeyPosition")
    order = ("ordinal", "type", "length", "precision", "scale", "primaryKeyPosition", "nullable")
    column_types = [
        {
            "name": column.name,
            "type": {
                "type": "record",
                "name": f"Column{n}",
                "fields": [
                    {"name": name, "type": "int" if name in numbers else "boolean" if name == "nullable" else "string"}
                    for name in order
                ],
            },
        }
        for n, column in enumerate(columns)
    ]
    lineage = [{"name": name, "type": "string"} for name in ("server", "task", "schema", "table")]
    lineage += [{"name": "tableVersion", "type": "long"}, {"name": "timestamp", "type": "string"}]
    of_columns = {"type": "record", "name": "TableColumns", "fields": column_types}
    of_structure = {
        "type": "record",
        "name": "TableStructure",
        "fields": [{"name": "tableColumns", "type": of_columns}],
    }
    fields = [
        {"name": "schemaId", "type": "string"},
        {"name": "lineage", "type": {"type": "record", "name": "Lineage", "fields": lineage}},
        {"name": "tableStructure", "type": of_structure},
        {"name": "dataSchema", "type": "string"},
    ]
    message = string(schema_id)
    message += b"".join(_plain(told["lineage"][field["name"]]) for field in lineage)
    for column in columns:
        of_column = told["tableStructure"]["tableColumns"][column.name]
        message += b"".join(_plain(of_column[name]) for name in order)
    message += string(told["dataSchema"])
    return envelope(
        "MD", message, schema_id, json.dumps({"type": "record", "name": "MetadataMessage", "fields": fields})
    )


def _image(row: dict, columns: list[Column], how: How) -> bytes:
    return b"".join(_union(_value(row.get(column.name), type_of(column, how))) for column in columns)


def _value(value, type_) -> bytes | None:
    """A value of a type; None for null."""
    if value is None:
        return None
    logical = type_["logicalType"] if isinstance(type_, dict) else ""
    if logical == "decimal":
        unscaled = int(Decimal(value).scaleb(type_["scale"], Context(prec=200)))
        bits = (~unscaled if unscaled < 0 else unscaled).bit_length()
        return sized(unscaled.to_bytes(bits // 8 + 1, "big", signed=True))
    if logical == "date":
        return long((value - EPOCH.date()).days)
    if logical == "time-millis":
        return long(((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000)
    if logical == "timestamp-micros":
        return long((value - EPOCH) // datetime.timedelta(microseconds=1))
    if type_ == "float":
        return struct.pack("<f", value)
    if type_ == "double":
        return struct.pack("<d", value)
    if type_ == "bytes":
        return sized(value)
    if type_ == "string":
        return string(str(value) if isinstance(value, str | int) else qlik.text_of(value))
    return _plain(value)


def _plain(value) -> bytes:
    if isinstance(value, bool):
        return bytes([value])
    return long(value) if isinstance(value, int) else string(value)


def _union(value: bytes | None) -> bytes:
    """A value of a union of null and its type."""
    return b"\0" if value is None else b"\2" + value


def long(number: int) -> bytes:
    """Zigzag, seven bits a byte, the least first."""
    left, data = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*data, left])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def string(text: str) -> bytes:
    return sized(text.encode())
