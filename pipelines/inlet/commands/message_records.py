"""The records of a message whose codec does not explain its bytes: where they stand, what they say of their places, and
why those that cannot be read cannot.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from inlet.bronze.framing import attempt
from inlet.codecs import json_notes
from inlet.codecs.notes import Annotated, Note, Said, clipped, group
from inlet.commands.decode import loads_of
from inlet.errors import Reject
from inlet.source import Source

UNKNOWN_TABLE = "unknown_table"


def annotate(codec, message: dict, source: Source, tables: dict) -> list[Annotated]:
    """The records of a message, in order, with what stands between them. Bytes are notes of JSON or text. In: the
    message as the codec is given it; without contracts no table is a known one, and that is no fault.
    """
    data = message["value"] or b""
    records = list(_records(codec, message, source, tables)) if data else []
    if len(records) < 2:  # its bytes are all of the message
        told = records[0][2] if records else {"title": "message"}
        return [Annotated(0, len(data), read=lambda: json_notes.notes_of(data), **told)]
    found, at = list[Annotated](), 0
    for start, end, told in [*records, (len(data), len(data), {})]:
        if at < start:
            found.append(Annotated(at, start - at, "between records", partial(_between, at, start)))
        if start < end:
            found.append(Annotated(start, end - start, read=partial(_notes, data[start:end], start), **told))
        at = end
    return found


def _records(codec, message: dict, source: Source, tables: dict) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(first byte, end, members of Annotated) of each record; none lies in another one."""
    said = attempt(codec.says, message, source, tables) if hasattr(codec, "says") else []
    places: dict[int, Said] = {} if isinstance(said, Reject) else {one.offset: one for one in said}
    loads = loads_of(codec, source, tables, [message])
    decoded = attempt(codec.decode_message, message, source, tables, loads)
    rejects = [decoded] if isinstance(decoded, Reject) else decoded.rejects
    controls = [] if isinstance(decoded, Reject) else decoded.controls
    spans = {at: one.length for at, one in places.items()}
    spans |= {one.unit_offset: one.unit_length for one in (*rejects, *controls)}
    wrong = {one.unit_offset: one for one in rejects if tables or one.kind != UNKNOWN_TABLE}
    events = {one.unit_offset: one for one in controls}
    end = 0
    for at, length in sorted(spans.items()):
        if at < end or not length:
            continue
        end = at + length
        yield at, end, _told(places.get(at), wrong.get(at), events.get(at))


def _told(said: Said | None, reject: Reject | None, event) -> dict[str, Any]:
    """What is told of a record, as members of Annotated."""
    told: dict[str, Any] = {"title": "message"}
    if said:
        named = said._asdict()
        told = {"title": said.operation or "message"} | {name: named[name] for name in Said._fields[2:]}
    elif event:
        told = {"title": event.kind, "table": _name(event)}
    if reject:
        told |= {"fault": (reject.kind, f"expected {reject.expected}, found {reject.found}")}
        told |= {"fault_at": reject.byte_offset, "table": told.get("table") or _name(reject)}
    return told


def _name(one) -> str | None:
    return ".".join(filter(None, (one.source_schema, one.source_table))) or None


def _between(start: int, end: int) -> list[Note]:
    return [Note(start, end - start, "between records", "blanks, commas, brackets, or what is around records")]


def _notes(data: bytes, start: int) -> list[Note]:
    """Notes of a record that begins there."""
    whole = group(0, len(data), "", json_notes.notes_of(data))
    moved = clipped(whole, 0, len(data), start)
    return list(moved.children) if moved else []
