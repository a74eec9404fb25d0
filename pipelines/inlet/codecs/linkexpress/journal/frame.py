"""Where messages and journals lie in a file of usage journals. The layouts are in files.py."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from inlet.fields.wrong import Wrong

ByteOrder = Literal["big", "little"]
LEN_CONTROL_DATA, LEN_HEADER, LEN_JOURNAL_HEAD = 780, 32, 6
LEN_MAX = {"mq_message": 1 << 24, "message_body": 1 << 24, "journal_stream": 1 << 20}  # ASSUMED: none is longer
ORDERS: tuple[ByteOrder, ...] = ("big", "little")
EACH = "each_journal"  # member of a context: journals of a message with a wrong number of them are records of their own
DIVIDED = "unsupported_record"  # kind of a message whose first journal is longer than what the message holds of it


class Header(NamedTuple):
    """What a message says of itself."""

    acquiring_system: int
    packed_transactions: int
    journals: int
    tail: bytes  # 16 bytes, whose places no public source tells


class Packet(NamedTuple):
    """A message, or a journal of a stream. Offsets are from the first byte of the data."""

    start: int
    end: int
    byte_order: ByteOrder
    header: Header | None
    journals: list[tuple[int, int]]
    wrong: Wrong | None = None  # why there are no journals, or none can be trusted; its offset is one of the data
    len_body: int = 0  # bytes of a message behind its header
    lacks: bool = False  # it has fewer journals than its header says
    pieces: tuple[tuple[int, int], ...] = ()  # of the one journal that is divided over the messages from start to end

    @property
    def len_framing(self) -> int:
        if self.may_be_piece or self.pieces:
            return 0
        return self.end - self.start - sum(end - start for start, end in self.journals)

    @property
    def may_be_piece(self) -> bool:
        """May it hold a piece of a journal? Not where whole journals fill it, whatever their number is said to be."""
        return bool(self.wrong) and not self.journals


class Walked(NamedTuple):
    packets: list[Packet]
    end: int  # of the last whole one
    wrong: Wrong | None  # why what follows there is none


def detect(head: bytes) -> str | None:
    """The framing that a header's words tell, None where no message begins."""
    for framing, at in (("message_body", 0), ("mq_message", LEN_CONTROL_DATA)):
        order = order_of(head, at)
        is_length = order and LEN_HEADER <= _number(head, at, 4, order) <= LEN_MAX[framing]
        if order and is_length and head[at + 8 : at + 10] == (1).to_bytes(2, order):
            return framing
    return None


def walk(data: bytes, framing: str, byte_order: Any, is_block: bool = False, is_each: bool = True) -> Walked:
    """Whole messages or journals. In: the byte order of a stream; a message tells its own, `auto`; whether the data was
    cut before, so that what follows it belongs to none of its messages; EACH of its context.
    """
    packets: list[Packet] = []
    at, step = 0, _journal if framing == "journal_stream" else _message
    len_control = LEN_CONTROL_DATA if framing == "mq_message" else 0
    joining = _Joining(data, len_control, byte_order, LEN_MAX[framing], is_block)
    while at < len(data):
        try:
            packet = step(data, at, len_control, byte_order, LEN_MAX[framing])
        except Wrong as wrong:
            return Walked(packets, at, wrong)
        if packet and packet.wrong and packet.wrong.kind == DIVIDED:
            packet = joining.journal(packet)
        if packet is None:
            break
        if packet.wrong and not is_each:
            packet = packet._replace(journals=[])
        packets.append(packet)
        at = packet.end
    return Walked(packets, at, None)


def begun(data: bytes, framing: str) -> Packet | None:
    """A message that is longer than the data, with the journals that are whole in it; None where there are none."""
    start = LEN_CONTROL_DATA if framing == "mq_message" else 0
    order, journals = order_of(data, start), list[tuple[int, int]]()
    if framing == "journal_stream" or order is None:
        return None
    end = start + _number(data, start, 4, order)
    try:
        journals.extend(takewhile(lambda one: one[1] <= len(data), _tiles(data, start + LEN_HEADER, end, order)))
    except Wrong:
        pass  # in its journals that are still to come, or for want of them
    system, packed, num = (_number(data, start + place, 2, order) for place in (10, 12, 14))
    header = Header(system, packed, num, data[start + 16 : start + LEN_HEADER])
    return Packet(0, end, order, header, journals) if journals else None


def as_it_says(data: bytes, at: int, framing: str, byte_order: Any) -> str:
    """How long a message or a journal is that is not whole, in words."""
    len_control = LEN_CONTROL_DATA if framing == "mq_message" else 0
    order, what = (
        order_of(data, at + len_control) or byte_order,
        "journal" if framing == "journal_stream" else "message",
    )
    if len(data) < at + len_control + 4 or order not in ORDERS:
        return f"a {what} that is whole"
    return f"a {what} of {len_control + _number(data, at + len_control, 4, order)} bytes, as its length says"


def _number(data: bytes, at: int, width: int, byte_order: ByteOrder) -> int:
    return int.from_bytes(data[at : at + width], byte_order)


def order_of(data: bytes, at: int) -> ByteOrder | None:
    """The byte order of a header, by the word that is always 32."""
    return next((o for o in ORDERS if data[at + 4 : at + 8] == LEN_HEADER.to_bytes(4, o)), None)


def _checked_length(data: bytes, at: int, least: int, most: int, orders) -> int:
    """The length at a place, in the last of the orders. Raises: Wrong where none of them makes one."""
    lengths = [_number(data, at, 4, order) for order in orders]
    if not any(least <= length <= most for length in lengths):
        raise Wrong("bad_length", at, f"a length of {least} to {most} bytes", data[at : at + 4].hex().upper())
    return lengths[-1]


def _journal(data: bytes, at: int, _: int, byte_order: ByteOrder, len_max: int) -> Packet | None:
    """A journal of a stream, None where it is not whole. Raises: Wrong."""
    if at + 4 > len(data):
        return None
    length = _checked_length(data, at, LEN_JOURNAL_HEAD, len_max, (byte_order,))
    end = at + length
    return None if end > len(data) else Packet(at, end, byte_order, None, [(at, end)])


def _message(data: bytes, start: int, len_control: int, byte_order: Any, len_max: int) -> Packet | None:
    """A message, None where it is not whole. Raises: Wrong."""
    at = start + len_control
    if at + 4 > len(data):
        return None
    _checked_length(data, at, LEN_HEADER, len_max, ORDERS)
    if at + 8 > len(data):
        return None
    order = order_of(data, at)
    if order is None or byte_order not in ("auto", order):
        word = LEN_HEADER.to_bytes(4, byte_order).hex().upper() if byte_order in ORDERS else "00000020 or 20000000"
        raise Wrong("bad_header", at + 4, f"the header's length, {word}", data[at + 4 : at + 8].hex().upper())
    end = at + _checked_length(data, at, LEN_HEADER, len_max, (order,))
    if at + 10 <= len(data) and _number(data, at + 8, 2, order) != 1:
        raise Wrong("bad_header", at + 8, "message id 1", data[at + 8 : at + 10].hex().upper())
    if end > len(data):
        return None
    system, packed, num = (_number(data, at + place, 2, order) for place in (10, 12, 14))
    header = Header(system, packed, num, data[at + 16 : at + LEN_HEADER])
    journals: list[tuple[int, int]] = []
    try:
        journals = list(_tiles(data, at + LEN_HEADER, end, order))
        if len(journals) != num:
            raise Wrong(
                "contradiction", at + 14, f"{num} journals in the message, as its header says", f"{len(journals)}"
            )
    except Wrong as wrong:
        return Packet(start, end, order, header, journals, wrong, end - at - LEN_HEADER, 0 < len(journals) < num)
    return Packet(start, end, order, header, journals)


class Pieces:
    """Messages one after the other that may each hold a piece of a journal, and which of them are one together
    [documented]. Whether each piece repeats the journal's first six bytes no public source tells: where all begin with
    them, they do.

    The length of what is together grows with each message, so that the message that completes a journal is found by
    bisection: however many of them begin one, each is looked at once.
    """

    def __init__(self) -> None:
        self.ends = [0]  # bytes up to each piece, without those of the first one's journal
        self.heads: list[bytes] = []
        self._lasts: list[int] = []  # of each piece, the last one up to which all begin as it does

    def add(self, piece: bytes) -> None:
        self.ends.append(self.ends[-1] + len(piece))
        self.heads.append(piece[:LEN_JOURNAL_HEAD])

    def __len__(self) -> int:
        return len(self.heads)

    def length_of(self, n: int, byte_order: ByteOrder) -> int:
        """The length that a piece says, which is that of a journal where it is the first one of it."""
        return _number(self.heads[n], 0, 4, byte_order)

    def is_beginning(self, n: int, byte_order: ByteOrder, len_max: int) -> bool:
        """May a piece be the first one of a journal?"""
        size = self.ends[n + 1] - self.ends[n]
        return LEN_JOURNAL_HEAD <= size < self.length_of(n, byte_order) <= len_max

    def repeats(self, first: int, last: int) -> bool:
        """Do all pieces from one to another begin as the first one does?"""
        if len(self._lasts) != len(self.heads):
            self._lasts = list(range(len(self.heads)))
            for n in range(len(self.heads) - 2, -1, -1):
                if self.heads[n] == self.heads[n + 1] and len(self.heads[n]) == LEN_JOURNAL_HEAD:
                    self._lasts[n] = self._lasts[n + 1]
        return first < last <= self._lasts[first]

    def together(self, first: int, last: int) -> int:
        """Bytes of the journal that pieces from one to another make."""
        repeated = LEN_JOURNAL_HEAD * (last - first) if self.repeats(first, last) else 0
        return self.ends[last + 1] - self.ends[first] - repeated

    def last_of(self, first: int, length: int) -> int | None:
        """The first piece with which a journal has its length, or more; None where more pieces are lacking."""
        place = bisect_left(range(first, len(self)), length, key=lambda last: self.together(first, last))
        return first + place if first + place < len(self) else None

    def lacking(self, first: int, last: int, length: int, has_more: bool) -> Wrong:
        """Why pieces make no journal. In: that there are too many bytes, for want of a piece; or too few of them."""
        found = f"{self.together(first, last)} bytes"
        found += f" in {last - first + 1} messages" if has_more else ", and then a message that is no piece of it"
        expected = f"pieces of a journal of {length} bytes, as its length says, which may itself be wrong"
        return Wrong("contradiction", 0, expected, found)


class _Joining:
    """Puts together journals that are divided over messages of some bytes."""

    def __init__(self, data: bytes, len_control: int, byte_order: Any, len_max: int, is_block: bool):
        self.data, self.len_max, self.is_block = data, len_max, is_block
        self.given = len_control, byte_order, len_max
        self.packets: list[Packet] = []  # messages one after the other that may hold pieces
        self.numbers: dict[int, int] = {}  # where each begins -> its place among them
        self.pieces, self.may_go_on = Pieces(), False

    def _read(self, first: Packet) -> None:
        """Find the messages from one on that may hold pieces."""
        self.packets, self.numbers, self.pieces = [], {}, Pieces()
        following: Packet | None = first
        while following and following.may_be_piece and following.byte_order == first.byte_order:
            self.numbers[following.start] = len(self.packets)
            self.packets.append(following)
            self.pieces.add(self.data[following.end - following.len_body : following.end])
            try:
                following = _message(self.data, following.end, *self.given)
            except Wrong:
                self.may_go_on = False
                return
        self.may_go_on = following is None and not self.is_block

    def journal(self, first: Packet) -> Packet | None:
        """A journal and the messages that it is divided over; the first of them as a reject where a piece is not there,
        so that each of the others is read as if it began a journal. Out: None while more may come.
        """
        if first.start not in self.numbers:
            self._read(first)
        n, pieces, order = self.numbers[first.start], self.pieces, first.byte_order
        start = first.end - first.len_body
        if not pieces.is_beginning(n, order, self.len_max):
            found = pieces.heads[n][:4].hex().upper()
            return first._replace(wrong=Wrong("contradiction", start, "the beginning of a journal", found))
        length = pieces.length_of(n, order)
        last = pieces.last_of(n, length)
        if last is None and self.may_go_on:
            return None
        if last is None or pieces.together(n, last) > length:
            at = len(pieces) - 1 if last is None else last
            wrong = pieces.lacking(n, at, length, last is not None)
            return first._replace(wrong=Wrong(wrong.kind, start, wrong.expected, wrong.found))
        skipped = LEN_JOURNAL_HEAD if pieces.repeats(n, last) else 0
        places = [(one.end - one.len_body, one.end) for one in self.packets[n : last + 1]]
        own = [places[0], *((at + skipped, end) for at, end in places[1:])]
        return first._replace(end=self.packets[last].end, journals=[], wrong=None, pieces=tuple(own))


def _tiles(data: bytes, at: int, end: int, byte_order: ByteOrder) -> Iterator[tuple[int, int]]:
    """The journals of a message. Raises: Wrong where they do not fill it exactly."""
    first = at
    while at < end:
        length = _number(data, at, 4, byte_order) if at + 4 <= end else 0
        if at == first and length > end - at:
            raise Wrong(
                DIVIDED,
                at,
                f"a journal of at most the {end - at} bytes that its message has for it, or the rest in the next one",
                f"a journal of {length} bytes",
            )
        if length < LEN_JOURNAL_HEAD or at + length > end:
            left = f"{end - at} bytes are left: {data[at : min(at + 4, end)].hex().upper()}"
            raise Wrong("contradiction", at, "journals that fill their message exactly", left)
        yield at, at + length
        at += length
