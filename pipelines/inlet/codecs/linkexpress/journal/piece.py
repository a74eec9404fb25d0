"""The journals of some bytes of a file: where they lie, of which tables they are, and their places in transactions.

What the compiled walks are certain of stands in arrays, a row for each record (walk.py); the other records are those of
the plain readers, one by one.
"""

from typing import Any

import numpy as np

from inlet.codecs.linkexpress.journal import frame, frames, open_transactions, walk
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.frame import LEN_CONTROL_DATA, LEN_HEADER, LEN_MAX, Header, Packet
from inlet.codecs.linkexpress.journal.frames import FIRST_RECORD, MESSAGE_END, MESSAGE_START
from inlet.codecs.linkexpress.journal.layout import Layouts
from inlet.codecs.linkexpress.journal.open_transactions import Cells
from inlet.codecs.linkexpress.journal.reading import Record
from inlet.codecs.linkexpress.journal.setup import Named, setup_of
from inlet.codecs.linkexpress.journal.walk import IS_CERTAIN
from inlet.fields.wrong import Wrong
from inlet.source import Source

ORDERS = {"auto": frames.AUTO, "big": frames.BIG_ALONE, "little": frames.LITTLE_ALONE}


def packet_at(data: bytes, at: int, framing: str, byte_order: Any) -> Packet | None:
    """The message or journal at a place, None where it is not whole. Raises: Wrong."""
    len_control = LEN_CONTROL_DATA if framing == "mq_message" else 0
    step = frame._journal if framing == "journal_stream" else frame._message
    return step(data, at, len_control, byte_order, LEN_MAX[framing])


class Piece:
    """The records of some bytes that begin with a record, up to `end`, behind which is no whole one."""

    def __init__(self, data: bytes, context: dict, source: Source, tables: dict, is_block: bool = False):
        self.data, self.bytes_, self.context = data, np.frombuffer(data, np.uint8), context
        self.setup = setup_of(context, source, tables)
        self.reader, self.is_each = self.setup.reader, bool(context.get(frame.EACH))
        self._frame()
        self.divided: dict[int, Packet] = {}  # messages over which a journal is divided
        self.odd: dict[int, Packet] = {}  # messages of which no journal is taken, by their number
        self._join_divided(is_block)
        self.num = len(self.records)
        self.heads = np.full((self.num, walk.NUM_HEAD), -1, np.int64)
        self.events = np.zeros((self.num, open_transactions.NUM_EVENT), np.int64)
        self.plain: dict[int, Record] = {}  # records that the plain readers have read
        if self.setup.how[walk.IS_TAGGED]:
            self._read_heads(self.setup.layouts_of(set()), np.full(self.num, -1, np.int64))
            self._find_tables()
        else:
            self._find_resources()
            self._find_tables()
            self._read_heads(self.layouts, self.tables)
        self.heads[self.is_odd, IS_CERTAIN] = 0

    def _frame(self) -> None:
        """Where messages and journals lie."""
        framing, order = self.context["framing"], self.context["reading"]["byte_order"]
        records, messages = frames.room_for(self.data)
        num_messages = 0
        self.len_control = LEN_CONTROL_DATA if framing == "mq_message" else 0
        self.is_stream = framing == "journal_stream"
        if self.is_stream:
            num, self.end = frames.stream(self.bytes_, order == "little", LEN_MAX[framing], records)
        else:
            num, num_messages, self.end = frames.messages(
                self.bytes_, self.len_control, ORDERS[order], LEN_MAX[framing], self.is_each, records, messages
            )
        self.records, self.messages = records[:num], messages[:num_messages]

    def _join_divided(self, is_block: bool) -> None:
        """Where a message has but a piece of a journal, frame all of them anew: the plain walk puts pieces together."""
        odd = np.flatnonzero(self.records[:, frames.IS_ODD])
        if not any((wrong := self.packet_of(int(i)).wrong) and wrong.kind == frame.DIVIDED for i in odd):
            return
        framing, order = self.context["framing"], self.context["reading"]["byte_order"]
        walked = frame.walk(self.data, framing, order, is_block, self.is_each)
        records: list[tuple] = []
        messages: list[tuple] = []
        for packet in walked.packets:
            is_little, n, first = packet.byte_order == "little", len(messages), len(records)
            messages.append((packet.start, packet.end, first))
            if packet.may_be_piece or packet.pieces:
                records.append((packet.start, packet.end, n, is_little, True))
                self.divided[first] = packet
            else:
                is_odd = packet.wrong is not None
                records += [(start, end, n, is_little, is_odd) for start, end in packet.journals]
        self.records = np.array(records, np.int64).reshape(-1, frames.NUM_RECORD)
        self.messages = np.array(messages, np.int64).reshape(-1, frames.NUM_MESSAGE)
        self.end = walked.end

    def _read_heads(self, layouts: Layouts, tables: np.ndarray) -> None:
        setup, no_items = self.setup, np.empty((0, walk.NUM_ITEM), np.int64)
        walk.heads(
            self.bytes_, self.records, self.num, setup.rules, setup.how, setup.system, setup.len_system, tables,
            layouts.widths, layouts.bounds, layouts.lengths, layouts.num_all, layouts.len_all, no_items, self.heads,
        )  # fmt: skip

    def _find_resources(self) -> None:
        """Where untagged journals name their tables, which tell how long they are."""
        setup = self.setup
        walk.places(
            self.bytes_, self.records, self.num, setup.how, setup.system, setup.len_system, walk.RESOURCE, self.heads,
        )  # fmt: skip

    def _find_tables(self) -> None:
        """The table of each journal: its place in the layouts, -1 where the plain reader has to find it."""
        which, firsts = self.intern(walk.RESOURCE, walk.LEN_RESOURCE)
        self.named = [self.setup.named_by(*text) for text in self.raw(firsts, walk.RESOURCE, walk.LEN_RESOURCE)]
        only = Named(None, self.setup.only, None, False)  # of journals that name none: the last one
        self.layouts = self.setup.layouts_of({one.table for one in (*self.named, only) if one.table})
        places = {name: n for n, name in enumerate(self.layouts.names)}
        tables = [
            walk.NO_CONTRACT if one.refused and not one.is_odd else places.get(one.table or "", walk.NO_TABLE)
            for one in (*self.named, only)
        ]
        self.resources, self.tables = which, np.array(tables, np.int64)[which]
        self.is_odd = np.array([one.is_odd for one in (*self.named, only)])[which]

    def intern(self, name: int, len_name: int) -> tuple[np.ndarray, np.ndarray]:
        """The different texts of a system item: which of them each journal has, -1 for none; a journal that has it."""
        cells = np.full(1 << (2 * self.num + 1).bit_length(), -1, np.int64)
        firsts, which = np.empty(self.num, np.int64), np.empty(self.num, np.int64)
        little = np.ascontiguousarray(self.records[:, frames.LITTLE])
        num = walk.intern(self.bytes_, self.heads, name, len_name, little, cells, firsts, which)
        return which, firsts[:num]

    def raw(self, firsts: np.ndarray, name: int, len_name: int) -> list[tuple[bytes, frame.ByteOrder]]:
        """The bytes of a system item that is valid in these journals, and their byte order."""
        starts = self.heads[firsts, name].tolist()
        sizes, little = self.heads[firsts, len_name].tolist(), self.records[firsts, frames.LITTLE].tolist()
        return [
            (self.data[at : at + n], "little" if is_little else "big")
            for at, n, is_little in zip(starts, sizes, little)
        ]

    def packet_of(self, i: int) -> Packet:
        """A record's message, with that record alone; a journal of a stream."""
        if i in self.divided:
            return self.divided[i]
        start, end, message, little, is_odd = map(int, self.records[i])
        order: frame.ByteOrder = "little" if little else "big"
        if self.is_stream:
            return Packet(start, end, order, None, [(start, end)])
        first, last = (int(self.messages[message, place]) for place in (MESSAGE_START, MESSAGE_END))
        if is_odd:
            if message not in self.odd:
                packet = packet_at(self.data, first, self.context["framing"], order)
                assert packet is not None  # it is whole, for it has been found
                self.odd[message] = packet if self.is_each else packet._replace(journals=[])
            packet = self.odd[message]
            return packet._replace(journals=[(start, end)]) if packet.journals else packet
        at = first + self.len_control
        system, packed, num = (int.from_bytes(self.data[at + n : at + n + 2], order) for n in (10, 12, 14))
        header = Header(system, packed, num, self.data[at + 16 : at + LEN_HEADER])
        return Packet(first, last, order, header, [(start, end)])

    def step(self, start: int, stop: int, cells: Cells) -> None:
        """Find the places of records in their transactions. In: those that are open before them, which become those
        behind them.
        """
        while start < stop:
            start = open_transactions.advance(
                self.bytes_, self.records, self.heads, start, stop, cells.keys, cells.counters, cells.states,
                cells.blocks, cells.met, cells.totals, self.events,
            )  # fmt: skip
            while start < stop and not self.heads[start, IS_CERTAIN]:
                packet = self.packet_of(start)
                [self.plain[start]] = journal_reading.records(self.data, [packet], self.reader, cells)
                start += 1

    def packets(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each message, or journal of a stream, ends; how many records there are up to there."""
        if self.is_stream:
            return self.records[:, frames.END], np.arange(1, self.num + 1)
        return self.messages[:, MESSAGE_END], np.append(self.messages[1:, FIRST_RECORD], self.num)

    def wrong(self) -> Wrong | None:
        """Why what follows the last record is none; None where it is the beginning of one."""
        order: Any = self.context["reading"]["byte_order"]
        try:
            packet_at(self.data, self.end, self.context["framing"], order)
        except Wrong as wrong:
            return wrong
        return None
