"""Updates that the source divides: a delete and an insert of one key, one behind the other in a transaction, as one
update (option pair_divided). Its delete is a control event, by which the transaction counts it.
"""

import json

from inlet import change
from inlet.codecs.linkexpress.journal.items import Journal
from inlet.codecs.linkexpress.journal.reading import Record
from inlet.codecs.linkexpress.journal.record import OPERATIONS, Reader
from inlet.codecs.results import Control, Decoded, event_detail
from inlet.errors import Event
from inlet.table import Table

DELETE_OF_UPDATE = "delete_of_update"  # a control event
OF_TRANSACTION = ("source_schema", "source_table", "table_version", "transaction_id")


def paired(decoded: Decoded, tables: dict[str, Table]) -> Decoded:
    """The same records, divided updates as one change each. In: contracts by SCHEMA.TABLE."""
    rows: list[dict] = []
    controls, num_bytes = list(decoded.controls), 0
    for row in decoded.changes:
        last = rows[-1] if rows else None
        if last and _is_pair(last, row, tables):
            rows[-1] = row | {
                "operation": "UPDATE",
                "change_oper": change.OPERATIONS["UPDATE"],
                "before": last["before"],
            }
            controls.append(_event(last))
            num_bytes += last["unit_length"]
        else:
            rows.append(row)
    num = decoded.num_control + len(decoded.changes) - len(rows)
    return Decoded(rows, decoded.rejects, controls, decoded.bytes_framing + num_bytes, num)


def may_go_on(data: bytes, record: Record, reader: Reader) -> bool:
    """Is a record the delete of what may be a divided update, whose insert is the next one?"""
    return _operation(data, record, reader) == "DELETE" and bool(event := record.walked.event) and not event.is_last


def is_insert(data: bytes, record: Record, reader: Reader) -> bool:
    """May a record be the insert of a divided update?"""
    return _operation(data, record, reader) == "INSERT"


def _operation(data: bytes, record: Record, reader: Reader) -> str | None:
    journal = record.walked.journal
    item = reader.valid(journal, "DBOP") if isinstance(journal, Journal) else None
    return OPERATIONS.get(reader.number(record.joined or data, record.packet, item)) if item else None


def _is_pair(first: dict, second: dict, tables: dict[str, Table]) -> bool:
    """Are two changes that follow each other, maybe with rejects between them, the halves of an update? An insert that
    lacks a column is none: what it lacks is null in a new row, and would stay as it was in an updated one.
    """
    if (first["operation"], second["operation"]) != ("DELETE", "INSERT") or first[
        "transaction_last_event"
    ] is not False:
        return False
    if any(first[name] != second[name] for name in OF_TRANSACTION) or int(second["change_seq"]) != 1 + int(
        first["change_seq"]
    ):
        return False
    if second["column_states"] or second["column_mask"] is not None:
        return False
    key = tables[f"{first['source_schema']}.{first['source_table']}"].key
    return bool(key) and all(first["before"][name] == second["after"][name] for name in key)


def _event(row: dict) -> Control:
    event = Event(row["transaction_id"], row["transaction_event_counter"], False)
    return Control(
        DELETE_OF_UPDATE,
        row["unit_offset"],
        row["unit_length"],
        row["source_schema"],
        row["source_table"],
        row["change_seq"],
        detail=json.dumps(event_detail(event, row["change_seq"])),
    )
