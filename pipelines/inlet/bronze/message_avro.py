"""Messages in Avro object container files.

Where the file's schema is `bytes` or `string`, or one of these or null, each datum is a message (null: a tombstone).
With any other schema a message is the datum's own bytes, and its header `avro.schema` names the writer's schema: the
sha-256 of its text, under which bronze.lookups has it. A message's place is its file and its ordinal in it. A file is
taken as a whole, once it has settled: what is cut between two blocks is a container, too. Source: Avro specification
1.11, "Object Container Files".
"""

import hashlib
import json
from typing import Any

from inlet.bronze.kept_message import as_messages
from inlet.bronze.whole_files import plan_whole, planned_file
from inlet.config import Project
from inlet.source import Source

HEADER = "avro.schema"
PLAIN = ("bytes", "string", "null")


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | str | None:
    """One row of bronze.files for a container; what it waits for; None where it is no longer what was listed."""

    def plan(stream) -> dict:
        schema, values = read(stream)
        return {
            "num_units": len(values),
            "context": json.dumps({"offsets": {f"{path}/0": [0, len(values) - 1, False]} if values else {}}),
            "start_context": json.dumps({"lookups": {_name(schema): schema} if schema else {}}),
        }

    # fastavro raises what it meets: EOFError, ValueError, KeyError, IndexError ...
    file = (path, info, known, has_settled)
    return plan_whole(project, source, file, plan, "an Avro object container file", (Exception,))


def units_of(project: Project, row: dict):
    """Arrow batches of a planned file's messages, as KEPT. Raises: InletError where the file is not what its plan
    says.
    """
    with planned_file(project, row) as stream:
        schema, values = read(stream)
    headers = [{"key": HEADER, "value": _name(schema).encode()}] if schema else None
    yield from as_messages(row, values, 0, headers)


def read(stream) -> tuple[str | None, list[bytes | None]]:
    """The messages of a container, and the text of its schema where they need it. Raises: what fastavro raises."""
    import fastavro

    container = fastavro.block_reader(stream)
    text = container.metadata["avro.schema"]
    types = json.loads(text)
    members = [_named(member) for member in (types if isinstance(types, list) else [types])]
    is_plain = all(member["type"] in PLAIN and "logicalType" not in member for member in members)
    schema = fastavro.parse_schema(types)
    values: list[bytes | None] = []
    for block in container:
        unpacked: Any = block
        data = unpacked.bytes_
        whole = data.getvalue()
        for _ in range(block.num_records):
            start = data.tell()
            value: Any = fastavro.schemaless_reader(data, schema, handle_unicode_errors="surrogateescape")
            if not is_plain:
                value = whole[start : data.tell()]
            values.append(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
        if data.read(1):
            raise ValueError("a block holds more bytes than its records")
    return (None if is_plain else text), values


def _named(schema: str | dict) -> dict:
    return schema if isinstance(schema, dict) else {"type": schema}


def _name(schema: str) -> str:
    return hashlib.sha256(schema.encode()).hexdigest()
