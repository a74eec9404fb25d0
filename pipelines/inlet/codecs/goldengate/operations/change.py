"""A change of an operation: what all message forms of GoldenGate share.

A form reads its message into an `Operation` and says, in a `Record`, where that stands; `decode` makes a change of it,
or a reject, and the control events that come with the change.

Table       the member `table`, two or three parts, by the source's `tables`, else as it is; where there is none, the
            topic by `tables`
Operation   I, U, D, T [documented], INSERT, UPDATE, DELETE, UPSERT [documented: Data Streams]; other words by option.
            An UPSERT has the images of an UPDATE
Order       position. Nothing else: not op_ts, not arrival
Key         that of the contract. `primary_keys` stays in the header: it may be absent, misspelt, or name all columns
Images      operations/images
Time        op_ts, which is the change's; operations/time. One that cannot be read leaves change_timestamp null, and the
            control event `unreadable_timestamp` says what was there
Transaction transaction_id by the members' role `xid` or by the option `transaction_token`, else null; no form counts
            events, so transaction_last_event is null
Header      op_ts, current_ts, pos, primary_keys, tokens and all further members, as the message has them; op_type where
            it is not the letter of change_oper. Members that are neither known nor named by `header_members` are
            counted by the control event `unknown_members`

Rejects     wrong_shape, unknown_table, unknown_operation, missing_change_seq, ambiguous_layout, and those of
            operations/images
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from inlet import change
from inlet.codecs.goldengate.operations import images as operation_images
from inlet.codecs.goldengate.operations import position
from inlet.codecs.goldengate.operations import time as operation_time
from inlet.codecs.goldengate.operations.operation import Operation, Record, Refused
from inlet.codecs.goldengate.operations.options import OperationOptions
from inlet.codecs.notes import Said
from inlet.codecs.results import Control
from inlet.errors import Reject
from inlet.fields.json_exact import Number
from inlet.fields.wrong import quoted
from inlet.source import Source
from inlet.table import Table

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
UNREADABLE_TIMESTAMP, UNKNOWN_MEMBERS = "unreadable_timestamp", "unknown_members"  # control events beside a change


def decode(
    operation: Operation, record: Record, source: Source, tables: dict[str, Table], options: OperationOptions
) -> tuple[dict | Reject, list[Control]]:
    """A change, and the control events that come with it; or a reject."""
    place: dict[str, Any] = {}
    try:
        row = _change(operation, record, source, tables, options, place)
    except Refused as no:
        return rejected(no, record, **place), []
    events: list[tuple[str, dict]] = []
    if operation.op_ts is not None and row["change_timestamp"] is None:
        events.append((UNREADABLE_TIMESTAMP, {"op_ts": operation.op_ts}))
    if unknown := [name for name in operation.extra if name not in options.header_members]:
        events.append((UNKNOWN_MEMBERS, {"members": unknown}))
    controls = [
        Control(kind, record.unit_offset, len(record.data), **place, detail=json.dumps(detail, ensure_ascii=False))
        for kind, detail in events
    ]
    return row, controls


def said(
    operation: Operation, offset: int, length: int, topic: str, source: Source, tables: dict, options: OperationOptions
) -> Said:
    """What an operation says of its place, whatever contracts there are."""
    name = (source.table_of(operation.table) or operation.table) if operation.table else source.table_of(topic)
    word = options.words.get(operation.op_type or "")
    try:
        seq = _change_seq(operation, word, options) if word else None
    except Refused:
        seq = None
    table = tables[name].table if name in tables else name
    return Said(offset, length, word, table, _transaction(operation, options), operation.pos, seq)


def rejected(
    no: Refused,
    record: Record,
    source_schema: str | None = None,
    source_table: str | None = None,
    change_seq: str | None = None,
) -> Reject:
    """The record as a reject. In: as much of its place as is known."""
    at = record.unit_offset
    if no.table and not source_table:
        source_schema, source_table = parts_of(no.table)
    return Reject(
        no.kind,
        at,
        len(record.data),
        at + record.offset_of(no.role, no.column),
        no.expected,
        no.found,
        record.data,
        source_schema,
        source_table,
        no.column,
        change_seq,
    )


def parts_of(table: str) -> tuple[str | None, str]:
    """(schema, table) of a name; the schema has what stands before the last dot."""
    schema, _, name = table.rpartition(".")
    return schema or None, name


def _change(
    operation: Operation, record: Record, source: Source, tables: dict, options: OperationOptions, place: dict
) -> dict:
    contract, word = contract_in_force(operation, record.topic, source, tables, options, place)
    for name in operation.own_names:
        if name in contract.column_names:
            raise Refused(
                "ambiguous_layout",
                "row",
                "members of the message and columns with different names (metaColumnsTemplate gives the message's "
                "other names, the option members tells them)",
                f"{name!r}, which may be either",
                name,
            )
    images = operation_images.images(operation, word, contract, options)
    return {
        **place,
        "source": source.name,
        "unit_id": record.unit_id,
        "unit_offset": record.unit_offset,
        "unit_length": len(record.data),
        "table_version": contract.version,
        "operation": word,
        "change_oper": change.OPERATIONS[word],
        "transaction_id": _transaction(operation, options),
        "change_timestamp": operation_time.utc_time(operation.op_ts or "", options.zone),
        "stream_position": operation.pos,
        "header": _header(operation, change.OPERATIONS[word]),
        **images._asdict(),
    }


def contract_in_force(
    operation: Operation, topic: str, source: Source, tables: dict, options: OperationOptions, place: dict
) -> tuple[Table, str]:
    """The contract of an operation's table as it is at its place, and INSERT, UPDATE, UPSERT, DELETE or TRUNCATE.
    In: `place`, which is filled as far as it is known. Raises: Refused.
    """
    contract = table_of(operation.table, topic, source, tables)
    place |= {"source_schema": contract.schema_name, "source_table": contract.table_name}
    word = operation_of(operation, options)
    place["change_seq"] = _change_seq(operation, word, options)
    return version_at(contract, place["change_seq"]), word


def _header(operation: Operation, letter: str) -> dict:
    said = {
        "op_type": None if operation.op_type == letter else operation.op_type,
        "op_ts": operation.op_ts,
        "current_ts": operation.current_ts,
        "pos": operation.pos,
        "primary_keys": operation.primary_keys,
        "tokens": operation.tokens or None,
    }
    members = {name: value for name, value in said.items() if value is not None}
    return {name: _plain(value) for name, value in (dict(operation.extra) | members).items()}


def _plain(value):
    """A value of a header as VARIANT holds it: an integer, any other number as its text."""
    if isinstance(value, Number):
        return int(value) if INTEGER.fullmatch(value) else str(value)
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, list) else value


def table_of(word: str | None, topic: str, source: Source, tables: dict[str, Table]) -> Table:
    """The contract of the table that a message is about. Raises: Refused."""
    name = (source.table_of(word) or word) if word else source.table_of(topic)
    contract = tables.get(name) if name else None
    if contract is None or contract.sources and source.name not in contract.sources:
        how = f"; `inlet import DEFGEN_FILE --source {source.name}` makes one" if name else ""
        raise Refused(
            "unknown_table",
            "table",
            "a table with a contract, by the message's own name for it (`tables` maps it, parts of three too) or by "
            f"its topic{how}",
            name or f"no name, and topic {topic}",
            table=name,
        )
    return contract


def operation_of(operation: Operation, options: OperationOptions) -> str:
    """INSERT, UPDATE, UPSERT, DELETE or TRUNCATE. Raises: Refused."""
    word = operation.op_type
    if word is None:
        raise Refused(
            "wrong_shape",
            "op_type",
            f"a member {options.names['op_type']}: without it nobody knows whether the row is there or gone (let "
            "Replicat write ${optype[op_type]} and ${position[pos]}, by metaColumnsTemplate; the option members "
            "tells other names)",
            "none",
        )
    if word not in options.words:
        raise Refused("unknown_operation", "op_type", " ".join(options.words), quoted(word))
    return options.words[word]


def version_at(contract: Table, change_seq: str) -> Table:
    """The columns in force at a place in the order, which tells no time. Raises: Refused."""
    for earlier in contract.earlier:
        if not earlier.until.startswith(change.NO_TIME):
            raise Refused(
                "ambiguous_layout",
                "table",
                f"`until` of version {earlier.version} of {contract.table} as a change_seq of this source, whose order "
                f"tells no time: {change.NO_TIME}, 9 digits of the trail's sequence number and 10 of the RBA",
                earlier.until,
            )
    return contract.at(change_seq)


def _change_seq(operation: Operation, word: str, options: OperationOptions) -> str:
    if operation.pos is None:
        raise Refused(
            "missing_change_seq",
            "pos",
            f"a member {options.names['pos']} (${{position[pos]}} of metaColumnsTemplate; the option members tells "
            "other names)",
            "none",
        )
    place = position.position(operation.pos)
    if place is None:
        raise Refused("missing_change_seq", "pos", "digits of one position", quoted(operation.pos))
    is_behind = operation.row is not None and word == "INSERT"
    seq = position.change_seq(place[0] + options.sequence_shift, place[1], is_behind)
    if seq is None:
        raise Refused(
            "missing_change_seq",
            "pos",
            "a sequence number from 0 to 999999999 (the option sequence_shift moves all of a source) and an RBA of ten "
            "digits",
            f"{place[0]} and {place[1]}",
        )
    return seq


def _transaction(operation: Operation, options: OperationOptions) -> str | None:
    if operation.xid is not None:
        return operation.xid
    token = operation.tokens.get(options.transaction_token) if options.transaction_token else None
    return str(token) if isinstance(token, str) else None
