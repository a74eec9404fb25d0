"""A block of Extract's text files as changes and rejects. The formats: extract/files."""

import json
import re
from dataclasses import replace
from typing import Any

from inlet import change
from inlet.codecs.goldengate.extract import row as extract_row
from inlet.codecs.goldengate.extract import statement as extract_statement
from inlet.codecs.goldengate.extract import xml as extract_xml
from inlet.codecs.goldengate.extract.frame import BEGIN, BETWEEN, COMMIT, ROW, Piece, last_rows, pieces
from inlet.codecs.goldengate.extract.options import Options
from inlet.codecs.goldengate.operations import change as operation_change
from inlet.codecs.goldengate.operations import images as operation_images
from inlet.codecs.goldengate.operations import time as operation_time
from inlet.codecs.goldengate.operations.operation import Operation, Record, Refused
from inlet.codecs.results import Control, Decoded
from inlet.errors import Event, Reject
from inlet.fields import charset
from inlet.fields.wrong import Wrong, quoted
from inlet.source import Source
from inlet.table import Table

SHAPES: dict[str, Any] = {"text": extract_row.Shaped, "sql": extract_statement.Shaped, "xml": extract_xml.Shaped}
WORDS = {"I": "INSERT", "U": "UPDATE", "V": "UPDATE", "D": "DELETE"}
TIMESTAMP = re.compile(r"timestamp\s*=\s*[\"']([^\"']*)[\"']")


def change_seq(context: dict, ordinal: int) -> str:
    """The place of a row by its ordinal in the file."""
    return change.change_seq(context["time"], context["file_ordinal"], ordinal)


def step(context: dict, piece: Piece, data: bytes, options: Options) -> dict:
    """The context behind a piece."""
    if piece.kind == BEGIN:
        text = charset.characters(data[piece.start : piece.end], options.set).text.strip()
        return context | {"begin": _begin(text, context, options), "counter": 0}
    if piece.kind == COMMIT:
        return context | {"begin": None, "counter": 0}
    is_row = piece.kind == ROW
    return context | {"row_ordinal": context["row_ordinal"] + is_row, "counter": context["counter"] + is_row}


def _begin(text: str, context: dict, options: Options) -> dict[str, str | None]:
    """What the record that begins a transaction says: its time, its id, and its log sequence and RBA, which are its id
    where they are there.
    """
    if options.format == "xml":
        found, id_ = TIMESTAMP.search(text), f"{context['file_ordinal']}.{context['row_ordinal']}"
        return {"op_ts": found[1] if found else None, "position": None, "id": id_}
    fields = text.split("," if options.format == "sql" else options.delimiter)[1:4]
    position = ":".join(fields[1:]) if len(fields) == 3 and all(fields) else None
    return {"op_ts": fields[0] if fields else None, "position": position, "id": position}


def decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """Read a block."""
    options, found = source.options_as(Options), Decoded([], [], [])
    changes: list[dict] = []
    rejects: list[Reject] = []
    controls: list[Control] = []
    left = list(pieces(data, options, is_block=True))
    last = last_rows(left)
    for n, piece in enumerate(left):
        context, before = step(context, piece, data, options), context
        row: dict | Reject | None = None
        if piece.kind == ROW:
            row = _Row(piece, data, before, n in last, source, tables, options).read()
        elif piece.kind == BEGIN:
            row = _wrong_begin(piece, data, context["begin"], options)
            controls += [] if row else _unreadable(piece, context["begin"], options)
        if row is None:
            found.num_control += piece.kind != BETWEEN
            found.bytes_framing += piece.end - piece.start
        else:
            (rejects if isinstance(row, Reject) else changes).append(row)  # type: ignore[arg-type]
    return replace(found, changes=changes, rejects=rejects, controls=controls)


def _wrong_begin(piece: Piece, data: bytes, begin: dict, options: Options) -> Reject | None:
    """The reject of a record that should begin a transaction, and does not say which."""
    if options.format == "xml" or begin["position"]:
        return None
    raw = data[piece.start : piece.end]
    expected, found = "B, a commit timestamp, a log sequence and an RBA", quoted(raw)
    return Reject("wrong_shape", piece.start, len(raw), piece.start, expected, found, raw)


def _unreadable(piece: Piece, begin: dict, options: Options) -> list[Control]:
    """The control event of a commit timestamp that is no time."""
    if not begin["op_ts"] or operation_time.utc_time(begin["op_ts"], options.zone):
        return []
    detail = json.dumps({"op_ts": begin["op_ts"]}, ensure_ascii=False)
    kind = operation_change.UNREADABLE_TIMESTAMP
    return [Control(kind, piece.start, piece.end - piece.start, detail=detail)]


class _Row:
    """A row in its block: `is_last` of its transaction."""

    def __init__(
        self, piece: Piece, data: bytes, context: dict, is_last: bool, source: Source, tables: dict, options: Options
    ):
        self.raw, self.at = data[piece.start : piece.end], piece.start
        self.source, self.tables, self.options = source, tables, options
        self.begin, self.shaped = context["begin"] or {}, None
        self.place: dict[str, Any] = {"change_seq": change_seq(context, context["row_ordinal"])}
        id_ = self.begin.get("id")
        self.event = Event(id_, context["counter"] + 1, is_last) if id_ else None

    shaped: extract_row.Shaped | extract_statement.Shaped | extract_xml.Shaped | None

    def read(self) -> dict | Reject:
        """The row's change, or its reject."""
        record = Record("", "", self.at, self.raw, self._offset_of)
        try:
            text = charset.text(self.raw, self.options.set)
        except Wrong as wrong:
            no, at = Refused(wrong.kind, "row", wrong.expected, wrong.found), self.at + wrong.offset
            return replace(operation_change.rejected(no, record, **self.place), byte_offset=at, event=self.event)
        self.shaped = SHAPES[self.options.format](text, self.options, self._contract_of)
        try:
            return self._change(self.shaped.operation())
        except Refused as no:
            return replace(operation_change.rejected(no, record, **self.place), event=self.event)

    def _offset_of(self, role: str, column: str | None) -> int:
        """The byte of a part, from the record's start."""
        places = self.shaped.places if self.shaped else {}
        at = places.get((role, column), places.get((role, None), places.get(("row", None), 0)))
        return charset.characters(self.raw, self.options.set).starts[at] if self.shaped else 0

    def _contract_of(self, word: str | None) -> Table:
        """The contract in force of a table, which the row's place then names. Raises: Refused."""
        contract = operation_change.table_of(word, "", self.source, self.tables)
        self.place |= {"source_schema": contract.schema_name, "source_table": contract.table_name}
        seq = self.place["change_seq"]
        tells_no_time = seq.startswith(change.NO_TIME)
        return operation_change.version_at(contract, seq) if tells_no_time else contract.at(seq)

    def _change(self, operation: Operation) -> dict:
        contract = self._contract_of(operation.table)
        word = WORDS[operation.op_type] if operation.op_type else str(self.options.rows_are)
        images = operation_images.images(operation, word, contract, self.options)
        letter, op_ts = change.OPERATIONS[word], self.begin.get("op_ts")
        op_type = operation.op_type if operation.op_type != letter else None
        header = {"op_ts": op_ts, "op_type": op_type, "tokens": operation.tokens or None}
        return {
            **self.place,
            "unit_offset": self.at,
            "unit_length": len(self.raw),
            "table_version": contract.version,
            "operation": word,
            "change_oper": letter,
            "transaction_id": self.event and self.event.transaction_id,
            "transaction_event_counter": self.event and self.event.counter,
            "transaction_last_event": self.event and self.event.is_last,
            "change_timestamp": operation_time.utc_time(op_ts or "", self.options.zone),
            "stream_position": self.begin.get("position"),
            "header": {name: value for name, value in header.items() if value is not None} or None,
            **images._asdict(),
        }
