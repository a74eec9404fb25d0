"""Records of logdump's text as a piece of a trail, which the trail's codec reads; and what it makes of them, by places
in the text.

Each record is written again as the bytes of its header, column area and tokens, with the table's name in the header: an
index of a definition means nothing without the definitions in front. A record at fault keeps its place in its
transaction.
"""

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from inlet.codecs.codec import IMAGE
from inlet.codecs.goldengate.logdump.entry import joined
from inlet.codecs.goldengate.logdump.header import ORDERS
from inlet.codecs.goldengate.logdump.record import Printed
from inlet.codecs.goldengate.trail import file_header, frame, sequence
from inlet.codecs.goldengate.trail.change_rows import CHANGES as OF_TRAIL
from inlet.codecs.goldengate.trail.piece import Piece, state_of
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.fields import variant

CHANGES = OF_TRAIL.append(pa.field("rba", pa.int64(), nullable=False))
OF_NEIGHBOURS = ("part_missing", "bad_segment")  # kinds of rejects that the records around tell


@dataclass
class Printout(Piece):
    """A piece of a trail that was read from text: a row for each record."""

    records: list[Printed]

    @cached_property
    def rbas(self) -> np.ndarray:
        summaries = [self.records[n].entry.summary for n in self.groups[:, sequence.FIRST]]
        return np.array([summary.rba if summary else 0 for summary in summaries], np.int64)

    def stops(self, start: int) -> np.ndarray:
        """Where each group ends in the text, behind where the first one begins."""
        ends = [self.records[n - 1].entry.stop for n in self.groups[:, sequence.CHUNKS_END]]
        return np.array([start, *ends], np.int64)


def read(records: list[Printed], context: dict, behind: int) -> Printout:
    """The groups of records of one byte order. In: what follows them, as trail/sequence.py names it."""
    num = len(records)
    data, rows, file_order = bytearray(), np.full((num, frame.NUM_ROW), -1, np.int64), ORDERS[0]
    for row, record in zip(rows, records):
        row[frame.AT] = len(data)
        if record.entry.is_file_header:
            payload = _file_header(record)
            file_order = next((o for o in ORDERS if "raw" not in file_header.read(payload, o)), file_order)
            data += payload
        else:
            _put(record, data, row)
        row[frame.END] = len(data)
        row[frame.FAULT] = 0 if record.fault is None else frame.BAD_LENGTH if row[frame.H] >= 0 else frame.BAD_FRAME
        row[frame.FAULT_AT] = row[frame.AT]
    bytes_ = np.frombuffer(bytes(data), np.uint8)
    groups, transactions = np.empty((num, sequence.NUM_GROUP), np.int64), np.zeros((num + 2, 4), np.int64)
    num_groups, num_transactions = sequence.groups(
        bytes_, rows, num, context["order"] == "little", behind, state_of(context), groups, transactions
    )
    context = context | {"file_order": file_order}
    return Printout(
        bytes(data),
        bytes_,
        context,
        rows[:num],
        groups[:num_groups],
        transactions[:num_transactions],
        len(data),
        frame.COMPLETE,
        records,
    )


def _file_header(record: Printed) -> bytes:
    """A header record around what is printed of it."""
    ends = (len(record.data) + 2 * frame.LEN_TOKEN & 0xFFFF).to_bytes(2, "big")
    return b"F\0" + ends + record.data + b"Z\0" + ends


def _put(record: Printed, data: bytearray, row: np.ndarray) -> None:
    """Write a record. Lengths of tokens are those of the row."""
    token = record.entry.token("G")
    data += bytes([frame.RECORD, token.info & 0xFF if token else 0, 0, 0])
    if not record.header:
        return
    header = bytearray(record.header)
    header[sequence.PARTITION] &= ~sequence.HAS_INDEX & 0xFF
    name = (record.entry.name or "").encode("latin-1") + b"\0"
    for place, payload in (
        (frame.H, bytes(header) + name),
        (frame.D, record.data),
        (frame.U, record.user),
        (frame.T, record.tokens),
    ):
        row[place], row[place + 1] = (len(data), len(payload)) if payload else (-1, 0)
        data += payload


def in_text(found: Decoded, read: Printout, text: bytes) -> Decoded:
    """What the trail's codec has decoded, by places in the text."""
    places = _Places(read)
    changes: pa.RecordBatch = found.changes  # type: ignore[assignment]
    spans = [places.of(*span) for span in zip(*(changes[name].to_pylist() for name in ("unit_offset", "unit_length")))]
    rbas = [int(read.rbas[places.group(at)]) for at in changes["unit_offset"].to_pylist()]
    columns = {name: changes[name] for name in OF_TRAIL.names}
    columns |= {
        "unit_offset": pa.array([start for start, _ in spans], pa.int64()),
        "unit_length": pa.array([end - start for start, end in spans], pa.int64()),
        "header": _headers(changes["header"], [places.group(at) for at in changes["unit_offset"].to_pylist()], read),
        "rba": pa.array(rbas, pa.int64()),
    }
    rejects = [_reject(reject, read, places, text) for reject in found.rejects]
    sizes = sum(end - start for start, end in spans) + sum(reject.unit_length for reject in rejects)
    return Decoded(
        pa.RecordBatch.from_arrays([columns[name] for name in CHANGES.names], schema=CHANGES),
        rejects,
        [_control(control, read, places) for control in found.controls],
        len(text) - sizes,
        found.num_control,
    )


class _Places:
    """Places of a piece -> places in the text."""

    def __init__(self, read: Printout):
        self.read = read
        self.rows = {int(at): n for n, at in enumerate(read.rows[:, frame.AT])}
        self.row_ends = {int(end): n for n, end in enumerate(read.rows[:, frame.END])}

    def of(self, at: int, size: int) -> tuple[int, int]:
        """First byte and end of records. In: those of their rows."""
        start = self.read.records[self.rows[at]].entry.start
        return start, self.read.records[self.row_ends[at + size]].entry.end if size else start

    def group(self, at: int) -> int:
        return int(np.searchsorted(self.read.groups[:, sequence.FIRST], self.rows[at]))

    def byte(self, at: int) -> int | None:
        """The place where a byte of a column area is printed; None of any other."""
        rows = self.read.rows
        row = int(np.searchsorted(rows[:, frame.END], at, side="right"))
        if row == len(rows) or not rows[row, frame.D] <= at < rows[row, frame.D] + rows[row, frame.LEN_D]:
            return None
        skip = 2 * (at - int(rows[row, frame.D]))
        for line in self.read.records[row].entry.data:
            digits = [n for n, char in enumerate(line.hex) if char != " "]
            if skip < len(digits):
                return line.at + digits[skip]
            skip -= len(digits)
        return None


def _reject(reject: Reject, read: Printout, places: _Places, text: bytes) -> Reject:
    start, end = places.of(reject.unit_offset, reject.unit_length)
    first, last = places.rows[reject.unit_offset], places.row_ends[reject.unit_offset + reject.unit_length]
    records = read.records[first : last + 1]
    fault = next((record.fault for record in records if record.fault), None)
    byte = places.byte(reject.byte_offset)
    own: dict[str, Any] = {"byte_offset": start if byte is None else byte}
    if fault:
        own = {"kind": fault.kind, "byte_offset": fault.at, "expected": fault.expected, "found": fault.found}
    elif reject.kind in OF_NEIGHBOURS and (summary := records[-1].entry.summary):
        own["found"] = f"{summary.operation} at RBA {summary.rba}, without it"
    elif reject.kind == "missing_key" and byte is None:
        own["found"] = "none"  # what is not there has no place
    if records[0].entry.seqno is None or records[0].entry.summary is None:
        own["change_seq"] = None
    raw = text[start:end]
    return dataclasses.replace(reject, unit_offset=start, unit_length=end - start, raw=raw, **own)


def _control(control: Control, read: Printout, places: _Places) -> Control:
    start, end = places.of(control.unit_offset, control.unit_length)
    record, detail = read.records[places.rows[control.unit_offset]], json.loads(control.detail)
    is_placed = record.entry.seqno is not None and control.change_seq is not None
    if "len_body" in detail:
        detail["len_body"] = record.entry.summary.length if record.entry.summary else 0
    elif record.entry.summary and control.unit_length:
        num_shown = len(joined(record.entry.data))
        if num_shown < record.entry.summary.length:
            detail |= {"is_cut": True, "rec_length": record.entry.summary.length, "num_shown": num_shown}
    return control._replace(
        unit_offset=start,
        unit_length=end - start,
        change_seq=control.change_seq if is_placed else None,
        detail=json.dumps(detail),
    )


def _headers(headers: pa.StructArray, groups: list[int], read: Printout) -> pa.StructArray:
    """Headers as the records have them: with the index of a definition, without what is not printed."""
    if headers.null_count == len(headers):
        return headers
    fixed = []
    for header, n in zip(headers.to_pylist(), groups):
        group = read.groups[n]
        base = int(group[sequence.BASE_END]) - 1
        others = [k for k in range(group[sequence.FIRST], group[sequence.CHUNKS_END]) if k != base]
        value = variant.decode(**header)
        if "others" in value:
            value["others"] = [_header(one, read.records[k]) for one, k in zip(value["others"], others)]
        encoded = variant.encode(_header(value, read.records[base]))
        fixed.append(dict(zip(("value", "metadata"), encoded)))
    return pa.array(fixed, IMAGE)


def _header(header: dict, record: Printed) -> dict:
    header["partition"] = record.header[sequence.PARTITION]
    if header["partition"] & sequence.HAS_INDEX and record.entry.index is not None:
        header["tdr_index"] = record.entry.index
    if record.entry.token("G") is None:
        del header["info"]
    return header


def known_behind(records: list[Printed], context: dict) -> dict:
    """Members of a context behind records: byte orders seen, the number of the trail file, the last place in it."""
    votes, last = list(context["votes"]), context["last"]
    for record in records:
        if record.is_sure:
            votes[ORDERS.index(record.order)] += 1
        if record.entry.summary and not record.entry.is_file_header:
            last = [record.entry.seqno or 0, record.entry.summary.rba]
    return {"votes": votes, "last": last, "trail": records[-1].entry.seqno if records else context["trail"]}
