"""Where messages and journals lie in a file of usage journals. The layouts are in files.py."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from inlet.fields.wrong import Wrong

ByteOrder = Literal["big", "little"]
LEN_CONTROL_DATA, LEN_HEADER, LEN_JOURNAL_HEAD = 780, 32, 6
LEN_MAX = {"mq_message": 1 << 24, "message_body": 1 << 24, "journal_stream": 1 << 20}  # ASSUMED: none is longer
ORDERS: tuple[ByteOrder, ...] = ("big", "little")


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
    wrong: Wrong | None = None  # why a message's journals cannot be told; its offset is one of the data

    @property
    def len_framing(self) -> int:
        return 0 if self.wrong else self.end - self.start - sum(end - start for start, end in self.journals)


class Walked(NamedTuple):
    packets: list[Packet]
    end: int  # of the last whole one
    wrong: Wrong | None  # why what follows there is none


def detect(head: bytes) -> str | None:
    """The framing that a header's words tell, None where no message begins."""
    for framing, at in (("message_body", 0), ("mq_message", LEN_CONTROL_DATA)):
        order = _order_of(head, at)
        is_length = order and LEN_HEADER <= _number(head, at, 4, order) <= LEN_MAX[framing]
        if order and is_length and head[at + 8 : at + 10] == (1).to_bytes(2, order):
            return framing
    return None


def walk(data: bytes, framing: str, byte_order: Any) -> Walked:
    """Whole messages or journals. In: the byte order of a stream; a message tells its own, `auto`."""
    packets: list[Packet] = []
    at, step = 0, _journal if framing == "journal_stream" else _message
    len_control = LEN_CONTROL_DATA if framing == "mq_message" else 0
    while at < len(data):
        try:
            packet = step(data, at, len_control, byte_order, LEN_MAX[framing])
        except Wrong as wrong:
            return Walked(packets, at, wrong)
        if packet is None:
            break
        packets.append(packet)
        at = packet.end
    return Walked(packets, at, None)


def _number(data: bytes, at: int, width: int, byte_order: ByteOrder) -> int:
    return int.from_bytes(data[at : at + width], byte_order)


def _order_of(data: bytes, at: int) -> ByteOrder | None:
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
    order = _order_of(data, at)
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
    try:
        journals = list(_tiles(data, at + LEN_HEADER, end, order))
        if len(journals) != num:
            raise Wrong("contradiction", at + 14, f"{num} journals, as the header says", f"{len(journals)}")
    except Wrong as wrong:
        return Packet(start, end, order, header, [], wrong)
    return Packet(start, end, order, header, journals)


def _tiles(data: bytes, at: int, end: int, byte_order: ByteOrder) -> Iterator[tuple[int, int]]:
    """The journals of a message. Raises: Wrong where they do not fill it exactly."""
    first = at
    while at < end:
        length = _number(data, at, 4, byte_order) if at + 4 <= end else 0
        if at == first and length > end - at:
            raise Wrong(
                "unsupported_record",
                at,
                f"a journal within its message of {end - at} bytes; journals divided over messages are not read",
                f"a journal of {length} bytes",
            )
        if length < LEN_JOURNAL_HEAD or at + length > end:
            left = f"{end - at} bytes are left: {data[at : min(at + 4, end)].hex().upper()}"
            raise Wrong("contradiction", at, "journals that fill their message exactly", left)
        yield at, at + length
        at += length
