"""Messages in Avro object container files.

Where the file's schema is `bytes` or `string`, or one of these or null, each datum is a message (null: a tombstone).
With any other schema a message is the datum's own bytes, and its header `avro.schema` names the writer's schema: the
sha-256 of its text, under which bronze.lookups has it. A message's place is its file and its ordinal in it. A file is
taken as a whole. Source: Avro specification 1.11, "Object Container Files".
"""

import hashlib
import io
import json
from typing import Any

from inlet.bronze.files import as_problem, first_line, hash_bytes, open_file
from inlet.bronze.kept_message import as_messages
from inlet.config import Project
from inlet.errors import InletError
from inlet.source import Source

HEADER = "avro.schema"
PLAIN = ("bytes", "string", "null")


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | None:
    """One row of bronze.files for a container; None where it is no longer what was listed, or may still grow."""
    digest = hashlib.sha256()
    with open_file(project, path) as stream:
        hash_bytes(stream, digest, info["size"])
        if stream.read(1):
            return None
        if known and digest.hexdigest() == known["sha256"]:
            return known | {"num_units": 0}
        if known:
            return as_problem(
                0, "file_rewritten", "the file as landed before", "other bytes", "Deliver new messages in a new file"
            )
        stream.seek(0)
        try:
            schema, values = read(stream)
        except Exception as error:  # fastavro raises what it meets: EOFError, ValueError, KeyError, IndexError ...
            if getattr(error, "errno", None):
                raise
            if not has_settled:
                return None
            return as_problem(
                0, "unreadable_file", "an Avro object container file", first_line(error), "Fix or remove the file"
            )
    return {
        "ofs_start": 0,
        "ofs_end": info["size"],
        "sha256": digest.hexdigest(),
        "num_units": len(values),
        "problem": None,
        "context": json.dumps({"offsets": {f"{path}/0": [0, len(values) - 1, False]} if values else {}}),
        "start_context": json.dumps({"lookups": {_name(schema): schema} if schema else {}}),
    }


def units_of(project: Project, row: dict):
    """Arrow batches of a planned file's messages, as KEPT. Raises: InletError where the file is not what its plan
    says.
    """
    with open_file(project, row["path"]) as stream:
        data = stream.read(row["ofs_end"] + 1)
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise InletError(f"sha-256 {hashlib.sha256(data).hexdigest()}, planned {row['sha256']}")
    schema, values = read(io.BytesIO(data))
    headers = [{"key": HEADER, "value": _name(schema).encode()}] if schema else None
    yield from as_messages(row, values, 0, headers)


def read(stream) -> tuple[str | None, list[bytes | None]]:
    """The messages of a container, and the text of its schema where they need it. Raises: what fastavro raises."""
    import fastavro

    container = fastavro.block_reader(stream)
    text = container.metadata["avro.schema"]
    types = json.loads(text)
    members = types if isinstance(types, list) else [types]
    names = [member["type"] if isinstance(member, dict) else member for member in members]
    is_plain = all(name in PLAIN for name in names)
    schema = fastavro.parse_schema(types)
    values: list[bytes | None] = []
    for block in container:
        data: Any = block
        data = data.bytes_  # a stream of the block, unpacked
        for _ in range(block.num_records):
            start = data.tell()
            value: Any = fastavro.schemaless_reader(data, schema)
            end = data.tell()
            if is_plain:
                values.append(value.encode() if isinstance(value, str) else value)
            else:
                values.append(data.getvalue()[start:end])
        if data.read(1):
            raise ValueError("a block holds more bytes than its records")
    return (None if is_plain else text), values


def _name(schema: str) -> str:
    return hashlib.sha256(schema.encode()).hexdigest()
