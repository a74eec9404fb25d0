"""Usage journals in messages of a broker. The format is in files.py.

A message is read by itself, so its reading is settled by its own journals; an option that is told need not be. A
journal that is divided over messages is put together from its pieces (`join`), where the option `divided` says that
there are any: a piece looks like a damaged message.
"""

from dataclasses import replace
from typing import NamedTuple

from inlet import change
from inlet.codecs.linkexpress.journal import frame, plain
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.frame import LEN_CONTROL_DATA, LEN_HEADER, LEN_JOURNAL_HEAD, Pieces
from inlet.codecs.linkexpress.journal.options import Options, options_of
from inlet.codecs.linkexpress.reject import of_file
from inlet.codecs.results import Control, Decoded, Joined, Part, Waiting
from inlet.errors import ConfigError, Reject
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table, in_force

TOMBSTONE = "tombstone"  # a control event
NUM_ORDINALS, NUM_OFFSETS = 10**7, 10**12  # journals of a message, messages of a queue: the 19 digits of change_seq


class Found(NamedTuple):
    """What pieces are together: as `Joined` has it."""

    changes: list[dict]
    rejects: list[tuple[str, Reject]]
    control: list[Waiting]


class Settled(NamedTuple):
    """How a message is read."""

    context: dict  # framing, reading, open
    tables: dict[str, Table]  # in force at its place


def decode_message(message: dict, source: Source, tables: dict[str, Table], loads: list[dict]) -> Decoded:
    """Read a message. In: a row of bronze.messages; there are no loads."""
    data, options = message["value"], options_of(source)
    if not data:
        return Decoded([], controls=[Control(TOMBSTONE, 0, 0)], num_control=1)
    packet, seq = _only(data, options), seq_of(message["offset"], 0)
    if packet is None or packet.wrong is None:
        return _decode(data, message, source, tables, options)
    wrong, expected = packet.wrong, packet.wrong.expected
    if packet.may_be_piece:
        if options.divided == "yes":
            return Decoded([], parts=[Part(f"{message['topic']}/{message['partition']}", 0, len(data), change_seq=seq)])
        expected = f"{expected} (option `divided` puts journals together that are divided over messages)"
    return Decoded([], [plain.rest(data, 0, Wrong(wrong.kind, wrong.offset, expected, wrong.found), seq)])


def waits(data: bytes, options: Options) -> frame.Packet | None:
    """The message that some bytes are, where it may hold a piece of a journal."""
    packet = _only(data, options) if options.divided == "yes" else None
    return packet if packet and packet.may_be_piece else None


def settle(data: bytes, message: dict, source: Source, tables: dict[str, Table], options: Options) -> Settled | Reject:
    """How a message is read, or why it is not. Raises: ConfigError."""
    if source.broker and (len(source.broker.topics) > 1 or "*" in source.broker.topics[0]):
        raise ConfigError(
            f"sources.{source.name}.from.topics: expected one topic, found {', '.join(source.broker.topics)}: the "
            "order of journals is that of one queue",
            "Make each queue a source",
        )
    if message["partition"] or not 0 <= message["offset"] < NUM_OFFSETS:
        found = f"partition {message['partition']}, offset {message['offset']}"
        return of_file("missing_change_seq", data, "a queue of one partition, 0: its order is that of journals", found)
    contracts = {name: tables[name] for name in source.tables.values() if name in tables} if source.tables else tables
    for name, table in contracts.items():
        if timed := [one.until for one in table.earlier if not one.until.startswith(change.NO_TIME)]:
            expected = (
                f"`until` of an earlier version of {name} as a change_seq, for the order of messages tells no time: "
                f"{change.NO_TIME}, 12 digits of the offset and 7 of the journal in its message"
            )
            return of_file("ambiguous_layout", data, expected, timed[0])
    tables = in_force(tables, seq_of(message["offset"], NUM_ORDINALS - 1))
    context = {"framing": _framing(data, options), "open": {}}
    settled = journal_reading.settled(context, data, True, source, options, tables, is_message=True)
    if isinstance(settled, Reject):
        return replace(settled, unit_length=len(data), raw=data)
    assert settled  # of the whole message
    is_open = context["framing"] == "journal_stream" and options.byte_order == "auto"
    of_none = {"byte_order": "big" if is_open else options.byte_order}  # the reading of one without journals
    return Settled({"reading": of_none} | settled, tables)


def seq_of(offset: int, ordinal: int) -> str:
    """The place of a journal in its queue: the offset of its message, and its own place in that.

    >>> seq_of(12, 3)
    '00000000000000000000000000120000003'
    """
    return f"{change.NO_TIME}{offset:012d}{ordinal:07d}"


def place_of(offset: int) -> str:
    """The change_seq before which no change of a message is."""
    return seq_of(min(max(offset, 0), NUM_OFFSETS - 1), 0)


def join(key: str, parts: list[Waiting], source: Source, tables: dict[str, Table]) -> Joined:
    """Put journals together from their pieces: messages of a queue with no other between them. In: those that wait, in
    the order of the queue.
    """
    options, joined, at = options_of(source), Found([], [], []), 0
    run = _Run([], 0, options)
    while at < len(parts):
        if at >= run.first + len(run.bodies):
            run = _Run(parts, at, options)
        n, pieces, wrong = at - run.first, run.pieces, None
        last: int | None = n
        if pieces.is_beginning(n, run.byte_order, frame.LEN_MAX["message_body"]):
            length = pieces.length_of(n, run.byte_order)
            last = pieces.last_of(n, length)
            if last is None and run.may_go_on:
                break
            if last is None or pieces.together(n, last) > length:
                wrong = pieces.lacking(n, len(pieces) - 1 if last is None else last, length, last is not None)
        else:
            wrong = Wrong("contradiction", 0, "the beginning of a journal", pieces.heads[n][:4].hex().upper())
        if wrong or last is None:
            _refuse(joined, parts[at : at + 1], wrong)
            at += 1
        else:
            end = run.first + last + 1
            _settle(joined, parts[at:end], run.journal(n, last), source, tables, options)
            at = end
    return Joined(joined.changes, joined.rejects, parts[at:], joined.control)


class _Run:
    """Parts that may be of one journal: messages of one byte order, with no other between them. In: parts; the first
    one.
    """

    def __init__(self, parts: list[Waiting], first: int, options: Options):
        self.first, self.bodies, self.pieces = first, list[bytes](), Pieces()
        self.byte_order: frame.ByteOrder = "big"
        self.may_go_on = True  # with parts to come
        for n in range(first, len(parts)):
            part = parts[n]
            packet = _only(part.data, options)
            assert packet
            is_next = n == first or part.context["offset"] == parts[n - 1].context["offset"] + 1
            if not is_next or n > first and packet.byte_order != self.byte_order:
                self.may_go_on = False
                break
            self.byte_order = packet.byte_order
            self.bodies.append(part.data[packet.end - packet.len_body :])
            self.pieces.add(self.bodies[-1])

    def journal(self, first: int, last: int) -> bytes:
        """What pieces are together."""
        skipped = LEN_JOURNAL_HEAD if self.pieces.repeats(first, last) else 0
        return self.bodies[first] + b"".join(body[skipped:] for body in self.bodies[first + 1 : last + 1])


def _settle(joined: Found, run: list[Waiting], journal: bytes, source: Source, tables: dict, options: Options) -> None:
    """Read a journal that is whole, as its message would be if it held all of it."""
    first = run[0]
    at = _len_control(first.data, options)
    order = frame.order_of(first.data, at)
    assert order
    head = (LEN_HEADER + len(journal)).to_bytes(4, order) + first.data[at + 4 : at + 14] + (1).to_bytes(2, order)
    whole = head + first.data[at + 16 : at + LEN_HEADER] + journal
    message = {"topic": "", "partition": 0} | first.context
    decoded = _decode(whole, message, source, tables, options.model_copy(update={"framing": "message_body"}))
    if decoded.changes:
        [row] = decoded.changes
        joined.changes.append(row | {"unit_id": first.unit_id, "unit_offset": 0, "unit_length": len(first.data)})
        joined.control.extend(run[1:])
        return
    wrong = Wrong("unsupported_record", 0, "a change in a journal that is divided over messages", "a checkpoint")
    for reject in decoded.rejects:
        found = f"{reject.found}, at byte {reject.byte_offset - LEN_HEADER} of the journal"
        wrong = Wrong(reject.kind, 0, reject.expected, found)
    _refuse(joined, run, wrong, decoded.rejects[0] if decoded.rejects else None)


def _refuse(joined: Found, run: list[Waiting], wrong: Wrong | None, like: Reject | None = None) -> None:
    """Reject messages that make no journal together."""
    assert wrong
    for n, part in enumerate(run):
        reject = Reject(
            wrong.kind, 0, len(part.data), 0, wrong.expected, wrong.found, part.data, change_seq=part.part.change_seq
        )
        if like:
            names = ("source_schema", "source_table", "column_name")
            told = {name: getattr(like, name) for name in names}
            reject = replace(reject, **told, event=None if n else like.event)  # all of them are one event
        joined.rejects.append((part.unit_id, reject))


def _decode(data: bytes, message: dict, source: Source, tables: dict[str, Table], options: Options) -> Decoded:
    settled = settle(data, message, source, tables, options)
    if isinstance(settled, Reject):
        return Decoded([], [replace(settled, change_seq=seq_of(message["offset"], 0))])
    context = settled.context
    reader = journal_reading.Reader(context["reading"], source, options, settled.tables)
    return plain.decode(data, walk(data, context), reader, {}, lambda n: seq_of(message["offset"], n))


def walk(data: bytes, context: dict) -> frame.Walked:
    """What lies in a message. In: how it is read."""
    walked = frame.walk(data, context["framing"], context["reading"]["byte_order"], True, is_each=False)
    if walked.wrong or walked.end == len(data):
        return walked
    expected = frame.as_it_says(data, walked.end, context["framing"], context["reading"]["byte_order"])
    left = f"{len(data) - walked.end} bytes, {data[walked.end : walked.end + 8].hex().upper()}"
    return walked._replace(wrong=Wrong("bad_length", walked.end, expected, left))


def _framing(data: bytes, options: Options) -> str:
    return (frame.detect(data) or "journal_stream") if options.framing == "auto" else options.framing


def _len_control(data: bytes, options: Options) -> int:
    return LEN_CONTROL_DATA if _framing(data, options) == "mq_message" else 0


def _only(data: bytes, options: Options) -> frame.Packet | None:
    """The only message in some bytes, which may be none that is whole by itself; None where there is another number."""
    framing = _framing(data, options)
    if framing == "journal_stream":
        return None
    packets = frame.walk(data, framing, options.byte_order, is_block=True).packets
    return packets[0] if len(packets) == 1 and packets[0].end == len(data) else None
