"""A piece of a trail file, read as far as its groups: where they are, what they are, and what is known between them."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np

from inlet import change
from inlet.codecs.goldengate.trail import frame, io_types, metadata, sequence
from inlet.errors import Reject

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_TIME = "0" * change.LEN_TIME
BEGINNING = {  # what is known before the first record of a trail
    "state": [0] * sequence.NUM_STATE,
    "transaction": None,
    "xid": None,
    "csn": None,
    "tables": {},
    "num_definitions": 0,
    "definitions": {},
    "unfinished": False,
}
MAY_GO_ON = "may_go_on"  # member of a block's context: LOB chunks of its last record may be in the next file
# where a group says each of the state behind it
STATE = (sequence.IS_OPEN, sequence.NUM_EVENTS, sequence.TIME, sequence.IS_IN_LOB, sequence.FIRST_RECORD,
         sequence.ID_NUMBER, sequence.UNCONFIRMED)  # fmt: skip


@dataclass
class Piece:
    """`rows` as frame.walk, `groups` and `transactions` as sequence.groups have them; `end` is where they end."""

    data: bytes
    bytes_: np.ndarray
    context: dict
    rows: np.ndarray
    groups: np.ndarray
    transactions: np.ndarray
    end: int
    how: int  # why frames end there

    @property
    def little(self) -> bool:
        return self.context["order"] == "little"

    @cached_property
    def starts(self) -> np.ndarray:
        """First byte of each group, and where the last one ends."""
        ends = self.rows[self.groups[-1:, sequence.CHUNKS_END] - 1, frame.END]
        return np.concatenate([self.rows[self.groups[:, sequence.FIRST], frame.AT], ends, [0] * (not len(ends))])

    @cached_property
    def rbas(self) -> np.ndarray:
        """RBA of each group: where it begins in the trail."""
        return self.context["offset"] + self.starts[: len(self.groups)].astype(np.int64)

    def change_seq(self, group: int) -> str:
        """Place of a group in the order of the trail."""
        time = time_of(int(self.groups[group, sequence.TIME]))
        return change.change_seq(time, self.context["seqno"], int(self.rbas[group]))

    @cached_property
    def definitions(self) -> list[tuple[int, dict]]:
        """(group, what is known of tables behind it), after what is known at the beginning (-1)."""
        known = {name: self.context[name] for name in ("tables", "num_definitions", "definitions")}
        found = [(-1, known)]
        what = self.groups[:, sequence.WHAT]
        for n in np.flatnonzero((what == io_types.METADATA) | (what == sequence.FAULTY)):
            if what[n] == io_types.METADATA:
                said = self.metadata_of(int(n))
                time = int(self.groups[n, sequence.TIME]) or said.microseconds  # in front of all changes: its own time
                known = metadata.step(known, said, change_seq_of(self.context, time, int(self.starts[n])))
            elif self._may_be_definition(int(n)):
                known = metadata.step_lost(known, metadata.read_damaged(*self._record_of(int(n))))
            if known is not found[-1][1]:
                found.append((int(n), known))
        return found

    def definitions_before(self, group: int) -> dict:
        """What is known of tables in front of a group."""
        return self.definitions[bisect_left(self.definitions, group, key=lambda known: known[0]) - 1][1]

    def _may_be_definition(self, group: int) -> bool:
        """May a faulty group have been a definition: its header is lost, or its IOType is of no other record?"""
        row = self.rows[self.groups[group, sequence.FIRST]]
        header = self.payload(row, frame.H)
        if len(header) < sequence.TAIL or row[frame.FAULT] == frame.BAD_HEADER:
            return True
        return io_types.WHAT_OF[header[sequence.IO_TYPE]] in (io_types.METADATA, io_types.UNKNOWN)

    def metadata_of(self, group: int) -> metadata.Metadata:
        return metadata.read(*self._record_of(group))

    def _record_of(self, group: int) -> tuple:
        """Payload of H, byte order and payload of D of a group's first record."""
        row = self.rows[self.groups[group, sequence.FIRST]]
        return self.payload(row, frame.H), self.context["order"], self.payload(row, frame.D)

    def name_of(self, group: int) -> str:
        """The trail's name for the table of a group's first record; empty where it is not known."""
        header = self.payload(self.rows[self.groups[group, sequence.FIRST]], frame.H)
        tail = header[sequence.TAIL :]
        if not header[sequence.PARTITION] & sequence.HAS_INDEX:
            return metadata.name_of(tail)
        index = int.from_bytes(tail[: sequence.LEN_INDEX], self.context["order"])
        return self.definitions_before(group)["tables"].get(str(index), ("", None))[0]

    def payload(self, row: np.ndarray, token: int) -> bytes:
        """Bytes of a token of a record; none where it has no such token."""
        return self.data[row[token] : row[token] + row[token + 1]] if row[token] >= 0 else b""

    def id_of(self, transaction: int, group: int) -> str | None:
        """Id of the transaction of a group: as its first record says it, else the place of that record."""
        if xid := self.xid_of(transaction):
            return xid
        if transaction == 0:
            return self.context["transaction"]
        first = int(np.searchsorted(self.groups[: group + 1, sequence.OPEN_TRANSACTION], transaction))
        return f"{self.context['seqno']}/{self.rbas[first]}"

    def xid_of(self, transaction: int) -> str | None:
        """Id of a transaction as its first record says it."""
        at, size = self.transactions[transaction, [sequence.XID_AT, sequence.XID_LEN]]
        if size:
            return self.data[at : at + size].decode("utf-8", "backslashreplace")
        return self.context["xid"] if transaction == 0 else None

    def csn_of(self, transaction: int) -> str | None:
        at, size = self.transactions[transaction, [sequence.CSN_AT, sequence.CSN_LEN]]
        if size:
            return self.data[at : at + size].decode("utf-8", "backslashreplace")
        return self.context["csn"] if transaction == 0 else None

    def context_behind(self, num: int) -> dict:
        """What is known behind the first groups."""
        if num == 0:
            return self.context
        last = self.groups[num - 1]
        is_open, transaction = bool(last[sequence.IS_OPEN]), int(last[sequence.OPEN_TRANSACTION])
        state = [int(last[n]) for n in STATE]
        return self.context | self.definitions_before(num) | {
            "offset": self.context["offset"] + int(self.starts[num]),
            "state": state,
            "transaction": self.id_of(transaction, num - 1) if is_open else None,
            "xid": self.xid_of(transaction) if is_open else None,
            "csn": self.csn_of(transaction) if is_open else None,
        }  # fmt: skip


def read(data: bytes, context: dict, behind: int) -> Piece:
    """Find the groups of a piece of a file. In: a context whose byte order is known; what follows the piece, as
    sequence.py names it."""
    is_final = behind != sequence.MORE_MAY_COME
    bytes_, little = np.frombuffer(data, np.uint8), context["order"] == "little"
    rows, len_header = frame.room_for(data), len_file_header(data, context)
    num_header = 1 if len_header else 0
    if len_header:
        rows[0] = -1
        rows[0, [frame.AT, frame.END, frame.FAULT, frame.FAULT_AT]] = 0, len_header, 0, 0
    damaged = np.array(context.get("damaged", []), np.int64).reshape(-1, 2)
    num, end, how = frame.walk(
        bytes_, len_header, little, is_final, damaged, np.zeros(len(data), np.uint8), rows[num_header:]
    )
    num += num_header
    groups = np.empty((num, sequence.NUM_GROUP), np.int64)
    transactions = np.zeros((num + 2, 4), np.int64)
    num_groups, num_transactions = sequence.groups(
        bytes_, rows, num, little, behind, state_of(context), groups, transactions
    )
    groups = groups[:num_groups]
    if num_groups < num:
        end = int(rows[groups[-1, sequence.CHUNKS_END] - 1, frame.END]) if num_groups else 0
    return Piece(data, bytes_, context, rows[:num], groups, transactions[:num_transactions], end, how)


def state_of(context: dict) -> np.ndarray:
    """The state that a context holds. An earlier Inlet wrote no numbers for the first record and the id."""
    known = context["state"]
    state = np.array([*known, *[0] * (sequence.NUM_STATE - len(known))], np.int64)
    if len(known) <= sequence.ID and context["xid"]:
        state[sequence.ID] = sequence.number_of_id(np.frombuffer(context["xid"].encode(), np.uint8))
    return state


def len_file_header(data: bytes, context: dict) -> int:
    """Bytes of the record with which a file may begin."""
    if context["offset"] or data[:1] != bytes([frame.FILE_HEADER]) or context["file_order"] is None:
        return 0
    return min(int.from_bytes(data[2:4], context["file_order"]), len(data))


def time_of(microseconds: int) -> str:
    """16 digits of a time since 1970, for change_seq."""
    if not microseconds:
        return NO_TIME
    at = EPOCH + timedelta(microseconds=microseconds)
    return f"{at:%Y%m%d%H%M%S}{at.microsecond // 10_000:02d}"


def change_seq_of(context: dict, microseconds: int, at: int) -> str:
    """In: the largest IO Time so far; a place in the piece."""
    return change.change_seq(time_of(microseconds), context["seqno"], context["offset"] + at)


def place_of(context: dict, at: int) -> str:
    """File and RBA of a place in the piece, as GoldenGate writes them."""
    return f"{context['seqno']}/{context['offset'] + at}"


def no_frame(piece: Piece) -> Reject:
    """The rest of a piece in which no record can be found."""
    at, data = piece.end, piece.data
    return Reject(
        "bad_frame",
        at,
        len(data) - at,
        at,
        f"a record, {piece.context['order']}-endian",
        data[at : at + 8].hex(" ", 2).upper(),
        data[at:],
    )
