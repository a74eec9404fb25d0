"""The records of a file of text, for `inlet inspect`, of codecs that do not explain each byte. Where a record is, what
it says of its place and why it cannot be read is asked of the decoder. Its lines are shown as they are, with what each
means where the codec knows.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from inlet.bronze.framing import attempt
from inlet.codecs.codec import change_rows, decode_block, offers
from inlet.codecs.notes import Annotated, Note, bare, printable
from inlet.codecs.results import Decoded
from inlet.commands.message_records import apart, fault_of
from inlet.errors import Reject
from inlet.source import Source

OF_NO_CONTRACT = ("unknown_table", "definition_missing")  # kinds of rejects


def annotate(codec, data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """The records of a block, in order, with what is between them. Without contracts no table is a known one, and that
    is no fault of a record.
    """
    found = attempt(decode_block, codec, data, context, source, tables)
    if isinstance(found, Reject):
        return [bare("no record", 0, len(data), found.kind, found.expected, found.found)]
    records = dict(_records(codec, found, context, source, tables))
    shown, last = list[Annotated](), 0
    for start, end in [*apart({at: at + size for at, (size, _) in records.items()}), (len(data), len(data))]:
        if last < start:
            shown.append(_annotated(codec, data, last, start, {"title": "between records"}))
        if start < end:
            shown.append(_annotated(codec, data, start, end, records[start][1]))
        last = end
    return shown


def _annotated(codec, data: bytes, start: int, end: int, record: dict[str, Any]) -> Annotated:
    operation, notes = (codec.line_notes if offers(codec, "line_notes") else _lines)(data[start:end])
    moved = [note._replace(offset=start + note.offset) for note in notes]
    title = record.get("title") or operation or "record"
    return Annotated(start, end - start, read=partial(list, moved), **record | {"title": title})


def _lines(data: bytes) -> tuple[str, list[Note]]:
    notes, at = [], 0
    for line in data.splitlines(keepends=True):
        notes.append(Note(at, len(line), "text", printable(line.rstrip(b"\r\n"))))
        at += len(line)
    return "", notes


def _records(
    codec, found: Decoded, context: dict, source: Source, tables: dict
) -> Iterator[tuple[int, tuple[int, dict[str, Any]]]]:
    """(first byte, (length, members of Annotated)) of each record."""
    for control in found.controls:
        table = _table(control.source_schema, control.source_table)
        yield control.unit_offset, (control.unit_length, {"title": control.kind, "table": table})
    for row in change_rows(codec, found, context, tables):
        of_transaction = {name: row.get(f"transaction_{name}") for name in ("id", "event_counter", "last_event")}
        csn = (row.get("header") or {}).get("csn")
        yield (
            row["unit_offset"],
            (
                row["unit_length"],
                {
                    "operation": row["operation"],
                    "table": _table(row["source_schema"], row["source_table"]),
                    "transaction_id": of_transaction["id"],
                    "event": of_transaction["event_counter"],
                    "is_last": of_transaction["last_event"],
                    "csn": None if csn is None else str(csn),
                    "position": row.get("stream_position"),
                    "change_seq": row["change_seq"],
                },
            ),
        )
    for reject in found.rejects:
        event = reject.event
        record: dict[str, Any] = {
            "table": _table(reject.source_schema, reject.source_table),
            "change_seq": reject.change_seq,
            "transaction_id": event.transaction_id if event else None,
            "event": event.counter if event else None,
            "is_last": event.is_last if event else None,
        }
        fault = {} if not tables and reject.kind in OF_NO_CONTRACT else fault_of(reject)
        yield reject.unit_offset, (reject.unit_length, record | fault)


def _table(schema: str | None, name: str | None) -> str | None:
    return ".".join(filter(None, (schema, name))) or None
