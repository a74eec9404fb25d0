"""The records of a message, for `inlet inspect`: what their codec shows of them; else where they stand, what they say
of their places, and their bytes as JSON or text. Why a record cannot be read is asked of the decoder.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from inlet.bronze.framing import attempt
from inlet.codecs import avro_framing, json_notes
from inlet.codecs.codec import offers
from inlet.codecs.notes import Annotated, Note, Said, clipped, group, leaves
from inlet.codecs.results import Control
from inlet.commands.decode import loads_of
from inlet.errors import Reject
from inlet.source import Source

UNKNOWN_TABLE = "unknown_table"


def annotate(codec, message: dict, source: Source, tables: dict) -> list[Annotated]:
    """The records of a message, in order, with what stands between them. In: the message as the codec is given it;
    without contracts no table is a known one, and that is no fault of what says an operation or a table.
    """
    data = message["value"] or b""
    rejects, controls = _decoded(codec, message, source, tables)
    is_explained = offers(codec, "annotate")
    shown = codec.annotate(data, message, source, tables) if is_explained else []
    said = attempt(codec.says, message, source, tables) if data and offers(codec, "says") else []
    places: dict[int, Said] = {} if isinstance(said, Reject) else {one.offset: one for one in said}
    known = {one.offset for one in (*shown, *places.values()) if one.operation or one.table}
    is_meant = {at for at, one in rejects.items() if not tables and one.kind == UNKNOWN_TABLE and at in known}
    faults = {at: fault_of(one) for at, one in rejects.items() if at not in is_meant}
    if is_explained:
        return [one if _has_fault(one) else replace(one, **faults.get(one.offset, {})) for one in shown]
    ends = {at: at + one.length for at, one in places.items()}
    others: list[Reject | Control] = [*rejects.values(), *controls.values()]
    ends |= {one.unit_offset: one.unit_offset + one.unit_length for one in others}
    records = [
        (at, end, _told(places.get(at), controls.get(at) or rejects.get(at)) | faults.get(at, {}))
        for at, end in apart(ends)
    ]
    has_id = bool(records) and data[: records[0][0]].startswith(avro_framing.MAGIC)
    if len(records) < 2 and not has_id:  # all bytes of the message are its
        told = records[0][2] if records else {"title": "message"} | faults.get(0, {})
        return [Annotated(0, len(data), read=partial(json_notes.notes_of, data), **told)]
    return list(_with_between(data, records))


def _decoded(codec, message: dict, source: Source, tables: dict) -> tuple[dict[int, Reject], dict[int, Control]]:
    """The rejects and the control events of a message, by their first bytes."""
    loads = loads_of(codec, source, tables, [message])
    found = attempt(codec.decode_message, message, source, tables, loads)
    rejects, controls = ([found], []) if isinstance(found, Reject) else (found.rejects, found.controls)
    return {one.unit_offset: one for one in rejects}, {one.unit_offset: one for one in controls}


def fault_of(reject: Reject) -> dict[str, Any]:
    """As members of Annotated."""
    why = f"expected {reject.expected}, found {reject.found}"
    return {"fault": (reject.kind, why), "fault_at": reject.byte_offset}


def _has_fault(record: Annotated) -> bool:
    return record.fault is not None or any(leaf.fault for leaf in leaves(record.notes))


def _told(said: Said | None, other: Control | Reject | None) -> dict[str, Any]:
    """What is told of a record, as members of Annotated; of one that says nothing by what else is known of it."""
    if said:
        place = said._asdict()
        return {"title": said.operation or "message"} | {name: place[name] for name in Said._fields[2:]}
    table = ".".join(filter(None, (other.source_schema, other.source_table))) if other else ""
    return {"title": other.kind if isinstance(other, Control) else "message", "table": table or None}


def apart(ends: dict[int, int]) -> Iterator[tuple[int, int]]:
    """First byte and end of each that has bytes, and lies in no other one."""
    last = 0
    for at, end in sorted(ends.items()):
        if last <= at < end:
            yield at, end
            last = end


def _with_between(data: bytes, records: list[tuple[int, int, dict[str, Any]]]) -> Iterator[Annotated]:
    last = 0
    for start, end, told in [*records, (len(data), len(data), {})]:
        if last < start:
            note = Note(
                last,
                start - last,
                "between records",
                "blanks, commas, brackets, a schema id, or what is around records",
            )
            yield Annotated(last, start - last, "between records", partial(list, [note]))
        if start < end:
            yield Annotated(start, end - start, read=partial(_notes, data[start:end], start), **told)
        last = end


def _notes(data: bytes, start: int) -> list[Note]:
    """Notes of a record that begins there."""
    moved = clipped(group(0, len(data), "", json_notes.notes_of(data)), 0, len(data), start)
    return list(moved.children) if moved else []
