"""Control events of a piece: of its records that are no changes, and of what comes with a change."""

import json
from datetime import timedelta

import numpy as np

from inlet.codecs.goldengate.trail import file_header, frame, io_types, metadata, sequence
from inlet.codecs.goldengate.trail.images import Images
from inlet.codecs.goldengate.trail.piece import EPOCH, Piece
from inlet.codecs.results import Control, event_detail
from inlet.errors import Event
from inlet.source import Source


def controls(found: Images, chosen: np.ndarray, source: Source) -> list[Control]:
    """Control events: of the records that are no changes, and of what comes with a change."""
    read, events = found.piece, []
    for n in chosen:
        n, group = int(n), read.groups[n]
        at, size = int(read.starts[n]), int(read.starts[n + 1] - read.starts[n])
        row = read.rows[group[sequence.FIRST]]
        kind, name, detail = _event_of(read, int(group[sequence.WHAT]), row)
        if kind == "restart_ok" or kind == "restart_abend":
            name = None
        schema, table = _split_name(name, source)
        counter, transaction = int(group[sequence.COUNTER]), int(group[sequence.TRANSACTION])
        if counter >= 0 and (id_ := read.id_of(transaction, n)):
            detail |= event_detail(Event(id_, counter, True), read.change_seq(n))
        events.append(Control(kind, at, size, schema, table, read.change_seq(n), None, json.dumps(detail)))
    for n in np.flatnonzero(read.groups[:, sequence.MARK] == sequence.UNFINISHED_BEFORE):
        events.append(Control("transaction_unfinished", int(read.starts[n]), 0, change_seq=read.change_seq(int(n))))
    changes = np.flatnonzero(read.groups[:, sequence.WHAT] == io_types.CHANGE)
    events += _of_times(read, changes)
    events += [_of_truncate(read, int(n), source) for n in _by_ddl(read, changes[~found.is_rejected[changes]])]
    has_chunks = read.groups[:, sequence.CHUNKS_END] > read.groups[:, sequence.BASE_END]
    for n in np.flatnonzero(has_chunks & ~found.is_rejected):
        events += _chunks_of(found, int(n))
    return events


def _by_ddl(read: Piece, chosen: np.ndarray) -> np.ndarray:
    """The changes that are DDL."""
    headers = read.rows[read.groups[chosen, sequence.FIRST], frame.H]
    return chosen[read.bytes_[headers + sequence.IO_TYPE] == sequence.DDL_CODE]


def _of_truncate(read: Piece, n: int, source: Source) -> Control:
    """The DDL of a truncate: its bytes are the change's."""
    kind, name, detail = _event_of(read, io_types.DDL, read.rows[read.groups[n, sequence.FIRST]])
    at, size = int(read.starts[n]), int(read.starts[n + 1] - read.starts[n])
    return Control(kind, at, size, *_split_name(name, source), read.change_seq(n), None, json.dumps(detail))


def _of_times(read: Piece, chosen: np.ndarray) -> list[Control]:
    """An event for each change whose IO Time is too far ahead to count."""
    io_times, counted = np.empty(len(chosen), np.int64), read.groups[chosen, sequence.TIME]
    headers = read.rows[read.groups[chosen, sequence.BASE_END] - 1, frame.H]
    sequence.io_times(read.bytes_, headers, read.little, io_times)
    events = []
    for n, *times in np.column_stack([chosen, io_times, counted])[io_times > counted].tolist():
        detail = dict(zip(("io_time", "counted_as"), map(time_text, times)))
        events.append(
            Control("time_ahead", int(read.starts[n]), 0, change_seq=read.change_seq(n), detail=json.dumps(detail))
        )
    return events


def time_text(microseconds: int) -> str:
    return (EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")


def _event_of(read: Piece, what: int, row: np.ndarray) -> tuple[str, str | None, dict]:
    """Kind, the trail's name for the table, detail."""
    if what == sequence.FILE_HEADER:
        return (
            "file_header",
            None,
            file_header.read(read.data[row[frame.AT] : row[frame.END]], read.context["file_order"]),
        )
    header = read.payload(row, frame.H)
    name = metadata.name_of(header[sequence.TAIL :]) if not header[sequence.PARTITION] & sequence.HAS_INDEX else None
    if what == io_types.METADATA:
        said = metadata.read(header, read.context["order"], read.payload(row, frame.D))
        detail: dict = {"kind": metadata.KINDS.get(said.kind, f"kind {said.kind}"), "name": said.name}
        detail |= {"ddr_index": said.ddr_index, "tdr_index": said.tdr_index, "len_body": len(said.body)}
        return "metadata", said.name or None, detail
    if what == io_types.DDL:
        detail = metadata.ddl_of(read.payload(row, frame.D))
        return "ddl", metadata.ddl_table(detail) or None, detail
    kinds = {
        io_types.RESTART_ABEND: "restart_abend",
        io_types.RESTART_OK: "restart_ok",
        sequence.LOB_CHUNK: "lob_chunk",
    }
    code = header[sequence.IO_TYPE]
    return kinds.get(what, "operation"), name or None, {"io_type": code, "name": io_types.name_of(code)}


def _split_name(name: str | None, source: Source) -> tuple[str | None, str | None]:
    """Schema and table of the trail's name for a table."""
    if not name:
        return None, None
    schema, _, table = metadata.table_of(name, source).rpartition(".")
    return schema or None, table


def _chunks_of(found: Images, n: int) -> list[Control]:
    """An event for each LOB chunk behind a change: its bytes are in the change's."""
    read, group = found.piece, found.piece.groups[n]
    table = found.layouts.tables[found.places.layout[n]]
    return [
        Control(
            "lob_chunk",
            int(read.rows[k, frame.AT]),
            int(read.rows[k, frame.END] - read.rows[k, frame.AT]),
            table.schema_name,
            table.table_name,
            detail=json.dumps(
                {
                    "change_seq": read.change_seq(n),
                    "rec_count": int(read.bytes_[read.rows[k, frame.H] + sequence.REC_COUNT]),
                    "continued": bool(read.bytes_[read.rows[k, frame.H] + sequence.CONTINUED]),
                }
            ),
        )
        for k in range(group[sequence.BASE_END], group[sequence.CHUNKS_END])
    ]
