"""Avro schemas that messages are read by, and where the parts of a datum stand.

What is looked up under a name is a schema as JSON, several one behind the other or in an array (as what was kept of a
schema topic), or the answer of a schema registry, {"schema": "..."}.
ASSUMED: arrays and maps are written in one block, without its size, as encoders do unless they are told otherwise.

>>> [schema] = parse(b'{"type":"record","name":"T","namespace":"S","fields":[{"name":"A","type":"string"}]}')
>>> schema["name"], read(schema, bytes([2, 97, 0]), 0)
('S.T', ({'A': 'a'}, 2))
"""

import json
from functools import lru_cache
from typing import Any

from inlet.fields.wrong import Wrong

UNREADABLE = (EOFError, ValueError, LookupError, TypeError, ArithmeticError)  # what fastavro raises at damaged bytes
WHY = {
    EOFError: "the end",
    IndexError: "the end, or a branch that its union has not",
    UnicodeDecodeError: "bytes that are no UTF-8",
}
DECODER = json.JSONDecoder()
BLANKS = " \t\r\n"


@lru_cache(maxsize=1024)
def parse(text: bytes) -> list[dict]:
    """The schemas of a text, as fastavro reads by them. Raises: ValueError."""
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    found = []
    for schema in _values(text.decode()):
        try:
            parsed: Any = fastavro.parse_schema(schema)
        except (SchemaParseException, UnknownType, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__} {error}") from None
        if not isinstance(parsed, dict) or parsed["type"] != "record":
            raise ValueError("a schema of no record")
        found.append(parsed)
    return found


def _values(text: str) -> list:
    values: list = []
    at = 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        value, at = DECODER.raw_decode(text, at)
        values += value if isinstance(value, list) else [value]
    return [
        json.loads(value["schema"]) if isinstance(value, dict) and isinstance(value.get("schema"), str) else value
        for value in values
    ]


class _Stream:
    """Bytes as fastavro reads and writes them: from a place on, and behind the last."""

    def __init__(self, data: bytes, at: int):
        self.data, self.at = data, at

    def read(self, size: int) -> bytes:
        part = self.data[self.at : self.at + max(size, 0)]
        self.at += len(part)
        return part

    def write(self, part: bytes) -> None:
        self.data += part


def read(schema: Any, data: bytes, start: int) -> tuple[Any, int]:
    """The datum that begins there, and where it ends. Its bytes have to be those that an encoder writes for it, or a
    schema that is not its own might fit. Raises: Wrong, at the first part that cannot be read.
    """
    import fastavro

    stream: Any = _Stream(data, start)
    try:
        value: Any = fastavro.schemaless_reader(stream, schema, None)
    except UNREADABLE as error:
        at = offset(schema, data, start, None) if isinstance(schema, dict) and "fields" in schema else start
        raise Wrong("wrong_shape", at, f"a datum of the schema {_name(schema)}", _why(error)) from None
    again: Any = _Stream(b"", 0)
    end = stream.at
    fastavro.schemaless_writer(again, schema, value)
    for at, (found, expected) in enumerate(zip(data[start:end], again.data), start):
        if found != expected:
            raise Wrong("wrong_shape", at, f"a datum of the schema {_name(schema)}, 0x{expected:02X}", f"0x{found:02X}")
    return value, end


def _name(schema: Any) -> str:
    return schema["name"] if isinstance(schema, dict) else str(schema)


def _why(error: Exception) -> str:
    return WHY.get(type(error)) or f"{type(error).__name__} {error}".strip()


def fields_of(schema: dict) -> dict[str, Any]:
    """Type by name, in order."""
    return {field["name"]: field["type"] for field in schema["fields"]}


def record_in(schema: dict, type_: Any) -> dict | None:
    """The record that a type is, or that its union holds, maybe by its name."""
    named = schema.get("__named_schemas", {})
    for member in type_ if isinstance(type_, list) else [type_]:
        member = named.get(member) if isinstance(member, str) else member
        if isinstance(member, dict) and member["type"] == "record":
            return member
    return None


def has_type(type_: Any, names: tuple[str, ...]) -> bool:
    """Is a type, or a member of its union, one of these, without a logical type?"""
    members = type_ if isinstance(type_, list) else [type_]
    return any((member if isinstance(member, str) else member.get("type")) in names for member in members)


def offset(schema: dict, data: bytes, start: int, path: tuple[str, ...] | None) -> int:
    """Where the field of a path begins, or the first one that cannot be read. In: where the datum begins; no path for
    the first that cannot be read.
    """
    at = start
    for name, type_ in fields_of(schema).items():
        inner = record_in(schema, type_)
        if path == (name,) or inner and path and path[0] == name and path[1] not in fields_of(inner):
            return at
        part = {"type": "record", "name": "inlet_part", "fields": [{"name": name, "type": type_}]}
        after = _end(schema, part, data, at)
        if inner and (after is None or path and path[0] == name):
            begin = _end(schema, "long", data, at) if isinstance(type_, list) else at
            whole = inner | {"__named_schemas": schema.get("__named_schemas", {})}
            return at if begin is None else offset(whole, data, begin, path[1:] if path else None)
        if after is None:
            return at
        at = after
    return at


def _end(schema: dict, part: Any, data: bytes, start: int) -> int | None:
    """Where a part ends; None where it cannot be read."""
    import fastavro

    stream: Any = _Stream(data, start)
    try:
        parsed = fastavro.parse_schema(part, named_schemas=dict(schema.get("__named_schemas", {})))
        fastavro.schemaless_reader(stream, parsed, None)
    except UNREADABLE:
        return None
    return stream.at
