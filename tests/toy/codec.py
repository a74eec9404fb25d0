"""Toy log: what a database wrote, record by record, in numbered files. Made up, to show and to test the codec contract.

Unit        a block of whole records, cut behind a commit where there is one
Layout      0 u2 len_record (big-endian, itself included) . 2 JSON array in UTF-8; its first member says what the record
            is
Records     ["file", number, time]                    the first of every file; time: YYYYMMDDHHmmSShh
            ["columns", table, [[name, type], ...], [key, ...]]    the column list of a table from here on
            ["insert", table, row] . ["delete", table, row] . ["update", table, row before, row after] . ["truncate",
            table]
            ["before", number, table, row] . ["after", number, table, row]      the two images of one update, maybe in
            different files
            ["ddl", text] . ["begin", id] . ["commit", id] . ["restart"]       restart: what came since the last commit
            will be written again
            ["end"]                                  nothing follows in this file
            A row is an array in the order of the columns; a member that is missing at its end was not supplied
Header      the number that the images of an update have in common
Order       time of the file, number of the file, offset of the record in it
Messages    a record without its length is a message, too, and so are several, one a line; placed by topic, offset and
            line; read by the contract as it is, or by the column lists that its header `columns` names, looked up:
            JSON {table: [columns, key]}
Rows        Parquet with the columns kind, table, rows (JSON); its metadata has the file's `number`
Files       depend on each other: a transaction and the column lists go on in the next file. A file may come with the
            column lists of its beginning, `<file>.columns`, JSON {table: [columns, key]}, where the option `sidecar`
            says so
Tables      read by the column list that is in force; a table without one, or one that the contract does not know, is
            rejected
Options     sidecar (false), before_images (true): false where the feed has no `before`, so that an `after` is a whole
            update
Rejects     truncated, bad_length, invalid_json, wrong_shape, unknown_operation, unknown_table, definition_missing,
            definition_differs, missing_key
"""

import json
import zlib

from pydantic import BaseModel, ConfigDict, Field

from inlet import change
from inlet.codecs.results import Block, Companion, Control, Cut, Decoded, Definition, Joined, Mark, Part
from inlet.errors import Reject
from inlet.table import same_columns

LEN_LENGTH = 2
LEN_MIN = LEN_LENGTH + 2  # an empty array
OPERATIONS = {"insert": "INSERT", "update": "UPDATE", "delete": "DELETE", "truncate": "TRUNCATE"}
NUM_MEMBERS = {
    "file": 3,
    "columns": 4,
    "insert": 3,
    "update": 4,
    "delete": 3,
    "truncate": 2,
    "before": 4,
    "after": 4,
    "ddl": 2,
    "begin": 2,
    "commit": 2,
    "restart": 1,
    "end": 1,
}


EVENTS = ("insert", "update", "delete", "truncate", "after")  # counted in their transaction


class Options(BaseModel):
    """A source's `options`."""

    model_config = ConfigDict(extra="forbid")
    sidecar: bool = Field(
        default=False, description="whether each file comes with `<file>.columns`, the column lists of its beginning"
    )
    before_images: bool = Field(
        default=True, description="whether each update has a `before`; false: an `after` is a whole update"
    )


OPTIONS = Options
FAST = LOADS = None
ENDS_WITH_NEXT = False
IDENTITY = "concat(transaction_id, '/', transaction_event_counter)"  # null outside a transaction


class Faulty(Exception):
    """What is wrong with a record: kind, expected, found."""


def companions(path: str, source) -> list[Companion] | None:
    """The files that come with a file; None for one that is such a file itself."""
    if path.endswith(".columns"):
        return None
    return [Companion("columns", [f"{path}.columns"])] if Options(**source.options).sidecar else []


def definitions_of(data: bytes, name: str, source) -> list[Definition]:
    """The column lists of a file like those that come with a log."""
    return [
        Definition(*table.split("."), _columns(columns), key, "", 0)
        for table, (columns, key) in json.loads(data).items()
    ]


def open_file(path: str, head: bytes, is_whole: bool, source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte, from its first record."""
    if len(head) < LEN_LENGTH or len(head) < _length(head, 0):
        return (
            None
            if not is_whole
            else Reject("truncated", 0, len(head), len(head), "a whole record", f"{len(head)} bytes", head)
        )
    try:
        kind, number, time = _record(head[LEN_LENGTH : _length(head, 0)])
        if (
            kind != "file"
            or not (isinstance(number, int) and 0 < number < 10**9)
            or not (isinstance(time, str) and len(time) == change.LEN_TIME and time.isdigit())
        ):
            raise ValueError
    except (Faulty, ValueError, IndexError):
        return Reject(
            "missing_change_seq", 0, len(head), 0, "a record of the file's number and time", head[:40].hex(), head
        )
    return {
        "number": number,
        "time": time,
        "offset": 0,
        "columns": {},
        "transaction": None,
        "counter": 0,
        "is_ended": False,
    }


def place(context: dict) -> int:
    """The place of a file among the files of its source."""
    return context["number"]


def follow(context: dict, before: dict | None) -> dict:
    """The context of a file's first byte behind the one before it, or with what came beside it."""
    beside = {
        table: said
        for one in context.get("companions", {}).values()
        for table, said in json.loads(bytes.fromhex(one["data"])).items()
    }
    if before is None:
        return context | {"columns": beside}
    time = max(context["time"], before["time"])
    return context | {
        "time": time,
        "columns": before["columns"] | beside,
        "transaction": before["transaction"],
        "counter": before["counter"],
    }


def is_ended(context: dict) -> bool:
    """Is a file whole up to here?"""
    return context["is_ended"]


def reached(context: dict) -> str:
    """The change_seq before which no change of the next file is."""
    return change.change_seq(context["time"], context["number"], context["offset"])


def _length(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + LEN_LENGTH], "big")


def _record(payload: bytes) -> list:
    try:
        record = json.loads(payload)
    except ValueError:
        raise Faulty("invalid_json", "a JSON array", payload[:40].hex()) from None
    if not isinstance(record, list) or not record or not isinstance(record[0], str):
        raise Faulty("wrong_shape", "an array that says first what it is", payload[:40].decode("utf-8", "replace"))
    if record[0] not in NUM_MEMBERS:
        raise Faulty("unknown_operation", ", ".join(NUM_MEMBERS), record[0])
    if len(record) != NUM_MEMBERS[record[0]]:
        raise Faulty("wrong_shape", f"{NUM_MEMBERS[record[0]]} members of {record[0]}", f"{len(record)}")
    table = _table_of(record)
    if not isinstance(table, str) or table and table.count(".") != 1:
        raise Faulty("wrong_shape", "a table as SCHEMA.TABLE", f"{table}")
    return record


def _records(data: bytes):
    """(offset, length, record or Faulty) of each whole record."""
    at = 0
    while at + LEN_LENGTH <= len(data):
        length = _length(data, at)
        if length < LEN_MIN or at + length > len(data):
            return
        try:
            yield at, length, _record(data[at + LEN_LENGTH : at + length])
        except Faulty as fault:
            yield at, length, fault
        at += length


def _table_of(record) -> str:
    """SCHEMA.TABLE of a record, "" where it is about none."""
    at = 2 if isinstance(record, list) and record[0] in ("before", "after") else 1
    return (
        record[at] if isinstance(record, list) and (record[0] in EVENTS or record[0] in ("before", "columns")) else ""
    )


def _step(context: dict, record, length: int) -> dict:
    """The context behind a record."""
    after = context | {"offset": context["offset"] + length}
    match record:
        case ["columns", table, columns, key]:
            return after | {"columns": context["columns"] | {table: [columns, key]}}
        case ["begin", id_]:
            return after | {"transaction": id_, "counter": 0}
        case ["commit", _] | ["restart"]:
            return after | {"transaction": None, "counter": 0}
        case [word, *_] if word in EVENTS:
            return after | {"counter": context["counter"] + 1}
        case ["end"]:
            return after | {"is_ended": True}
    return after


def cut(data: bytes, context: dict, source, tables: dict, len_block: int, is_final: bool) -> Cut:
    """Cut whole records into blocks, behind a commit or a restart where that is not too far, never between a change and
    its commit.
    """
    records, blocks, marks, start, num, before = list(_records(data)), [], [], 0, 0, context
    if not is_final and records and _is_event(records[-1][2]):
        records.pop()  # only what follows tells whether it is the last of its transaction
    for n, (offset, length, record) in enumerate(records):
        end, num, context = offset + length, num + 1, _step(context, record, length)
        if context["transaction"] is None:
            marks.append(Mark(end, n + 1, "abandoned" if record == ["restart"] else "stands"))
        is_before_commit = n + 1 < len(records) and _is_commit(records[n + 1][2])
        if (
            end - start >= len_block
            and context["transaction"] is None
            or end - start >= 4 * len_block
            and not is_before_commit
        ):
            blocks.append(Block(start, end - start, before, num))
            start, before, num = end, context, 0
    end = records[-1][0] + records[-1][1] if records else 0
    if num:
        blocks.append(Block(start, end - start, before, num))
    problem, rest = None, data[end:]
    if len(rest) >= LEN_LENGTH and _length(rest, 0) < LEN_MIN:
        problem = Reject(
            "bad_length", end, len(rest), end, f"a record of at least {LEN_MIN} bytes", rest[:LEN_LENGTH].hex(), rest
        )
    return Cut(blocks, context, end, problem, marks)


def _is_event(record) -> bool:
    return isinstance(record, list) and record[0] in EVENTS


def _is_commit(record) -> bool:
    return isinstance(record, list) and record[0] == "commit"


def span(context: dict, num_records: int) -> None:
    """Bounds of change_seq: an offset is no ordinal, so they are not told."""
    return None


def decode(data: bytes, context: dict, source, tables: dict) -> Decoded:
    """Read a block."""
    found, end, records = Decoded([], [], [], definitions=[], parts=[]), 0, list(_records(data))
    for n, (offset, length, record) in enumerate(records):
        is_last = n + 1 < len(records) and _is_commit(records[n + 1][2])
        seq, end = change.change_seq(context["time"], context["number"], context["offset"]), offset + length
        try:
            if isinstance(record, Faulty):
                raise record
            _read(found, record, {"unit_offset": offset, "unit_length": length}, seq, is_last, context, source, tables)
        except Faulty as fault:
            schema, _, name = _table_of(record).partition(".")
            found.rejects.append(
                Reject(
                    fault.args[0],
                    offset,
                    length,
                    offset,
                    *fault.args[1:],
                    data[offset:end],
                    schema or None,
                    name or None,
                    change_seq=seq,
                )
            )
        context = _step(context, record, length)
    if end < len(data):
        found.rejects.append(
            Reject(
                "truncated", end, len(data) - end, len(data), "a whole record", f"{len(data) - end} bytes", data[end:]
            )
        )
    return found


def open_rows(path: str, schema, values, companions: dict, source, tables: dict) -> dict | Reject:
    """The context of a file of rows, from its schema's metadata."""
    if schema.names != ["kind", "table", "rows"] or not (schema.metadata or {}).get(b"number", b"").isdigit():
        return Reject("missing_change_seq", 0, 0, 0, "columns kind, table, rows and a number", f"{schema.names}", b"")
    return {"number": int(schema.metadata[b"number"])}


def decode_rows(rows, context: dict, source, tables: dict) -> Decoded:
    """Read a run of rows."""
    found = Decoded([], [], [], definitions=[], parts=[])
    columns = {name: [[[c.name, c.type] for c in table.columns], table.key] for name, table in tables.items()}
    for n, row in enumerate(rows.to_pylist()):
        ordinal = context["first_row"] + n
        own = {"number": context["number"], "offset": ordinal, "transaction": None, "counter": 0, "columns": columns}
        seq = change.change_seq("0" * change.LEN_TIME, context["number"], ordinal)
        text = json.dumps([row["kind"], row["table"], *json.loads(row["rows"])]).encode()
        try:
            _read(found, _record(text), {"unit_offset": n, "unit_length": 1}, seq, False, own, source, tables)
        except Faulty as fault:
            found.rejects.append(Reject(fault.args[0], n, 1, n, *fault.args[1:], text, change_seq=seq))
    return found


def lookups(message: dict, source) -> list[str]:
    """The column list that a message names in its header `columns`."""
    return [h["value"].decode() for h in message["headers"] or () if h["key"] == "columns"]


def decode_message(message: dict, source, tables: dict, loads: list) -> Decoded:
    """Read a message."""
    data, topic = message["value"] or b"", zlib.crc32(message["topic"].encode()) % 10**9
    columns = {name: [[[c.name, c.type] for c in table.columns], table.key] for name, table in tables.items()}
    for text in message.get("lookups", {}).values():
        columns = json.loads(text) if text else {}
    context = {
        "number": message["partition"],
        "offset": message["offset"],
        "transaction": None,
        "counter": 0,
        "columns": columns,
    }
    found = Decoded([], [], [], definitions=[], parts=[])
    lines = data.splitlines() or [b""]
    found.bytes_framing, offset = len(data) - sum(map(len, lines)), 0
    for n, line in enumerate(lines):
        offset = data.index(line, offset)
        seq = change.change_seq("0" * change.LEN_TIME, topic, message["offset"] * 1000 + n)
        try:
            at = {"unit_offset": offset, "unit_length": len(line)}
            _read(found, _record(line), at, seq, False, context, source, tables)
        except Faulty as fault:
            found.rejects.append(
                Reject(fault.args[0], offset, len(line), offset, *fault.args[1:], line, change_seq=seq)
            )
        offset += len(line)
    return found


def _read(found: Decoded, record: list, at: dict, seq: str, is_last: bool, context: dict, source, tables: dict) -> None:
    in_transaction = {
        "transaction_id": context["transaction"],
        "stream_position": f"{context['number']}:{context['offset']}",
    }
    if context["transaction"] is not None:
        in_transaction |= {"transaction_event_counter": context["counter"] + 1, "transaction_last_event": is_last}
    match record:
        case ["before" | "after" as word, number, table, _] if Options(**source.options).before_images:
            _contract(table, context, tables)
            note = json.dumps(
                {"word": word, "seq": seq, "columns": context["columns"][table], "in_transaction": in_transaction}
            )
            found.parts.append(Part(str(number), at["unit_offset"], at["unit_length"], note, seq))
        case ["after", number, table, row]:
            change_ = _change("update", table, [None, row], seq, context, tables) | at | in_transaction
            found.changes.append(change_ | {"header": {"number": number}})
        case ["insert" | "update" | "delete" | "truncate" as word, table, *rows]:
            images = [None, *rows] if word == "insert" else [*rows, None] if word == "delete" else rows or [None, None]
            found.changes.append(_change(word, table, images, seq, context, tables) | at | in_transaction)
        case _:
            found.num_control += 1
            found.bytes_framing += at["unit_length"]
            if record[0] == "columns":
                found.definitions.append(
                    Definition(*record[1].split("."), _columns(record[2]), record[3], seq, at["unit_offset"])
                )
            if record[0] == "ddl":
                found.controls.append(Control("ddl", **at, change_seq=seq, detail=json.dumps({"text": record[1]})))


def _columns(columns: list) -> list[dict]:
    return [{"name": name, "type": type_, "nullable": True} for name, type_ in columns]


def _contract(table: str, context: dict, tables: dict):
    """The version of the contract that the column list in force names. Raises: Faulty."""
    if table not in tables:
        raise Faulty("unknown_table", "a table with a contract", table)
    if table not in context["columns"]:
        raise Faulty("definition_missing", f"the columns of {table} before its rows", "none")
    columns = _columns(context["columns"][table][0])
    version = next((v for v in tables[table].versions if same_columns(v, columns)), None)
    if version is None:
        said = ", ".join(f"{c['name']} {c['type']}" for c in columns)
        raise Faulty(
            "definition_differs", ", ".join(f"{c.name} {c.type}" for c in tables[table].versions[-1].columns), said
        )
    return version


def _change(word: str, table: str, images: list, seq: str, context: dict, tables: dict) -> dict:
    contract = _contract(table, context, tables)
    before, after = (None if row is None else dict(zip(contract.column_names, row)) for row in images)
    for image in (before, after):
        if image is not None and any(image.get(name) is None for name in contract.key):
            raise Faulty("missing_key", f"a value of {', '.join(contract.key)}", json.dumps(image))
    return {
        "source_schema": contract.schema_name,
        "source_table": contract.table_name,
        "table_version": contract.version,
        "change_seq": seq,
        "operation": OPERATIONS[word],
        "before": before,
        "after": after,
    }


def join(key: str, parts: list, source, tables: dict) -> Joined:
    """An update is whole once both its images are there; it stands where its after-image does."""
    notes = {note["word"]: (one, note) for one in parts for note in [json.loads(one.part.note)]}
    if len(notes) < 2:
        return Joined(waiting=parts)
    (one, note), rows = (
        notes["after"],
        {
            word: _record(part.data[0 if "topic" in part.context else LEN_LENGTH :])[2:]
            for word, (part, _) in notes.items()
        },
    )
    table = rows["after"][0]
    try:
        row = _change(
            "update",
            table,
            [rows["before"][1], rows["after"][1]],
            note["seq"],
            {"columns": {table: note["columns"]}},
            tables,
        )
    except Faulty as fault:
        return Joined(
            rejects=[
                (
                    part.unit_id,
                    Reject(
                        fault.args[0],
                        part.part.unit_offset,
                        part.part.unit_length,
                        part.part.unit_offset,
                        *fault.args[1:],
                        part.data,
                    ),
                )
                for part in parts
            ]
        )
    return Joined(
        [
            row
            | note["in_transaction"]
            | {"header": {"number": int(key)}}
            | {"unit_id": one.unit_id, "unit_offset": one.part.unit_offset, "unit_length": one.part.unit_length}
        ]
    )
