"""Messages without a value: tombstones. Qlik Talend writes deletes so where the task says it (deleteAsTombstone)
[documented]; a topic that is compacted may have them for other reasons.

Meaning     option tombstones: `ignore`, a control event `tombstone` with the key as text; `delete`, a delete of the row
            that the message key names, of the topic's table (`tables`)
Order       a tombstone says none. Its place is the broker's time, cut to hundredths, then 4 digits of the topic, 5 of
            the partition, 10 of the offset. Changes have times of Qlik's server, which are a little earlier: a row that
            is deleted and written again within that time is taken for deleted. Deletes as messages have no such gap
Key         an object with the columns of the key alone, or, of a key of one column, its value: as JSON or as text
            [documented: the key's columns; the text of a key of several columns was not seen]. A value that both
            readings fit and that they read differently is rejected, and names the option tombstone_key. Beside values
            in Avro the key may be Avro, too, so there the option has to be given
Rejects     missing_key, missing_change_seq, value_does_not_fit, unknown_table, wrong_shape, unsupported_message
"""

import json
from typing import Any

from inlet import change
from inlet.codecs.qlik import full_load, members
from inlet.codecs.qlik.full_load import Options
from inlet.codecs.qlik.members import Refused
from inlet.codecs.qlik.shapes import NOT_TOLD
from inlet.fields import json_exact
from inlet.fields.wrong import Wrong, cut
from inlet.source import Source
from inlet.table import Table

TOMBSTONE = "tombstone"  # kind of a control event


def read(message: dict, source: Source, tables: dict[str, Table], known: dict, is_text: bool) -> dict:
    """What a message without a value is, as `read_message` has it. In: what is known of it, which gains its table;
    whether the messages of the source are text. Raises: Refused.
    """
    options = source.options_as(Options)
    if options.tombstones == "ignore":
        return known | {"result": "control"} | _event(message, source)
    if not is_text and options.tombstone_key == "auto":
        expected = "the option tombstone_key (text or json); a key in Avro is not read: tombstones: ignore"
        raise Refused("unsupported_message", (), expected, "a tombstone")
    contract = members.table(None, None, message["topic"], tables, source)
    known |= {"source_schema": contract.schema_name, "source_table": contract.table_name}
    return known | {"result": "change"} | _delete(message, contract, options)


def _event(message: dict, source: Source) -> dict:
    """What an ignored tombstone says."""
    named = (source.table_of(message["topic"]) or "").split(".")
    schema, table = named if len(named) == 2 else (None, None)
    key = message["key"]
    detail = {"key": None if key is None else key.decode(errors="backslashreplace")}
    return {
        "kind": TOMBSTONE,
        "source_schema": schema,
        "source_table": table,
        "change_seq": None,
        "detail": json.dumps(detail, ensure_ascii=False),
    }


def _delete(message: dict, contract: Table, options: Options) -> dict[str, Any]:
    """The delete that a tombstone is: columns of silver.changes. In: the contract of its topic. Raises: Refused."""
    if message["timestamp"] is None:
        raise Refused("missing_change_seq", (), "a broker's time", "none")
    load = {"started_at16": full_load.time16(message["timestamp"])}
    seq = members.refresh_seq(load, message)
    contract = contract.at(seq)
    before = members.image(_key(message["key"], contract, options), None, contract, ())
    return NOT_TOLD | {
        "table_version": contract.version,
        "change_seq": seq,
        "operation": "DELETE",
        "change_oper": change.OPERATIONS["DELETE"],
        "change_timestamp": message["timestamp"],
        "column_mask": change.mask(contract.column_names.index(name) + 1 for name in contract.key),
        "before": before,
    }


def _key(data: bytes | None, contract: Table, options: Options) -> dict[str, Any]:
    """The columns of a key. Raises: Refused."""
    if not data:
        raise Refused("missing_key", (), "a message key, which names the row", "none")
    if not contract.key:
        raise Refused("unsupported_message", (), f"a key of {contract.table} in its contract", "none")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Refused("wrong_shape", (), "a message key of JSON or text", f"0x{data[:20].hex().upper()}") from None
    read = _json(data) if options.tombstone_key != "text" else None
    if isinstance(read, dict):
        if read.keys() != {*contract.key}:
            expected = f"the columns of the key alone: {', '.join(contract.key)}"
            raise Refused("wrong_shape", (), f"a message key of {expected}", cut(", ".join(read), 80))
        return read
    if len(contract.key) > 1 or options.tombstone_key == "json" and read is None:
        raise Refused("wrong_shape", (), "a message key that is a JSON object of the key's columns", cut(text, 40))
    if options.tombstone_key == "json" or read == text:
        return {contract.key[0]: read}
    if read is not None:
        raise Refused("unsupported_message", (), "the option tombstone_key: text or json", cut(text, 40))
    return {contract.key[0]: text}


def _json(data: bytes) -> Any:
    """What a key is as JSON; None where it is none, or null."""
    try:
        found = json_exact.parse(b'{"key":' + data + b"}")
    except Wrong:
        return None
    return found["key"] if len(found) == 1 else None  # a key with a comma and a name is no value
