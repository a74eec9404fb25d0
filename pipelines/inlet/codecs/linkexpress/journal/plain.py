"""Usage journals read one after the other, in plain Python."""

from collections.abc import Callable

from inlet.codecs.linkexpress.journal import frame, pairs
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.record import Reader
from inlet.codecs.linkexpress.journal.transaction import OpenTransactions
from inlet.codecs.linkexpress.reject import change_seq_of
from inlet.codecs.results import Block, Control, Cut, Decoded
from inlet.errors import Reject
from inlet.fields.wrong import Wrong


def cut(data: bytes, context: dict, reader: Reader, len_block: int, is_final: bool) -> Cut:
    """Cut whole messages, or journals of a stream, into blocks. A delete and an insert that may be one update stay
    together.
    """
    is_each = bool(context.get(frame.EACH))
    is_each, num_before = bool(context.get(frame.EACH)), context["record_ordinal"]
    walked = frame.walk(data, context["framing"], context["reading"]["byte_order"], is_each=is_each)
    is_pairing, transactions = reader.options.pair_divided != "none", OpenTransactions(context["open"])
    blocks: list[Block] = []
    start, num, is_open, records = 0, 0, False, list[journal_reading.Record]()

    def block(end: int) -> Block:
        before = {"open": transactions.of_block(), "record_ordinal": num_before}
        return Block(start, end - start, context | before, num)

    for packet in walked.packets:
        if packet.start - start >= len_block and not (is_open and _begins_with_insert(data, packet, reader)):
            blocks.append(block(packet.start))
            transactions.begin_block()
            start, num, num_before = packet.start, 0, num_before + num
        transactions.mark()
        records = list(journal_reading.records(data, [packet], reader, transactions))
        num += len(records)
        is_open = is_pairing and bool(records) and pairs.may_go_on(data, records[-1], reader)
    end = walked.end
    if is_open and not is_final and not walked.wrong:
        transactions.undo()
        end, num = walked.packets[-1].start, num - len(records)
    if end > start:
        blocks.append(block(end))
    context = context | {"open": transactions.open, "record_ordinal": num_before + num}
    problem = rest(data, walked.end, walked.wrong, change_seq_of(context, 0)) if walked.wrong else None
    return Cut(blocks, context, end, problem)


def _begins_with_insert(data: bytes, packet: frame.Packet, reader: Reader) -> bool:
    """May the first record of a message be the insert of a divided update?"""
    first = next(journal_reading.records(data, [packet], reader, OpenTransactions({})), None)
    return first is not None and pairs.is_insert(data, first, reader)


def decode(data: bytes, walked: frame.Walked, reader: Reader, open_: dict, seq_of: Callable[[int], str]) -> Decoded:
    """The journals of some messages, or of a stream. In: the transactions that are open before them; the change_seq of
    each record by its ordinal, from 0.
    """
    changes: list[dict] = []
    rejects: list[Reject] = []
    controls: list[Control] = []
    num = 0
    records = journal_reading.records(data, walked.packets, reader, OpenTransactions(open_))
    for num, record in enumerate(records, 1):
        found = journal_reading.read(data, record, reader, seq_of(num - 1))
        if isinstance(found, dict):
            changes.append(found)
        elif isinstance(found, Reject):
            rejects.append(found)
        else:
            controls.append(found)
    if walked.end < len(data):
        wrong = walked.wrong or Wrong("truncated", len(data), "a whole record", f"{len(data) - walked.end} bytes")
        rejects.append(rest(data, walked.end, wrong, seq_of(num)))
    len_framing = sum(packet.len_framing for packet in walked.packets) + sum(
        control.unit_length for control in controls
    )
    decoded = Decoded(changes, rejects, controls, len_framing, len(controls))
    return pairs.paired(decoded, reader.tables) if reader.options.pair_divided != "none" else decoded


def rest(data: bytes, at: int, wrong: Wrong, seq: str | None) -> Reject:
    """What follows the last whole record, and is none."""
    raw = data[at:]
    return Reject(wrong.kind, at, len(raw), wrong.offset, wrong.expected, wrong.found, raw, change_seq=seq)
