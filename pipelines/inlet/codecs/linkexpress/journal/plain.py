"""Usage journals read one after the other, in plain Python."""

from collections.abc import Callable

from inlet.codecs.linkexpress.journal import frame, pairs
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.record import Reader
from inlet.codecs.linkexpress.reject import change_seq_of
from inlet.codecs.results import Block, Control, Cut, Decoded
from inlet.errors import Reject
from inlet.fields.wrong import Wrong


def cut(data: bytes, context: dict, reader: Reader, len_block: int, is_final: bool) -> Cut:
    """Cut whole messages, or journals of a stream, into blocks. A delete and an insert that may be one update stay
    together.
    """
    is_each = bool(context.get(frame.EACH))
    walked = frame.walk(data, context["framing"], context["reading"]["byte_order"], is_each=is_each)
    is_pairing = reader.options.pair_divided != "none"
    blocks: list[Block] = []
    start, num, before, is_open = 0, 0, context, False
    end, num_before_last, before_last = 0, 0, context
    for packet in walked.packets:
        records = list(journal_reading.records(data, [packet], reader, context["open"]))
        goes_on = is_open and bool(records) and pairs.is_insert(data, records[0], reader)
        if packet.start - start >= len_block and not goes_on:
            blocks.append(Block(start, packet.start - start, before, num))
            start, num, before = packet.start, 0, context
        end, num_before_last, before_last = packet.start, num, context
        for record in records:
            context = context | {"open": record.walked.open, "record_ordinal": context["record_ordinal"] + 1}
            num += 1
        is_open = is_pairing and bool(records) and pairs.may_go_on(data, records[-1], reader)
    if is_open and not is_final and not walked.wrong:
        num, context = num_before_last, before_last
    else:
        end = walked.end
    if end > start:
        blocks.append(Block(start, end - start, before, num))
    problem = rest(data, walked.end, walked.wrong, change_seq_of(context, 0)) if walked.wrong else None
    return Cut(blocks, context, end, problem)


def decode(data: bytes, walked: frame.Walked, reader: Reader, open_: dict, seq_of: Callable[[int], str]) -> Decoded:
    """The journals of some messages, or of a stream. In: the transactions that are open before them; the change_seq of
    each record by its ordinal, from 0.
    """
    changes: list[dict] = []
    rejects: list[Reject] = []
    controls: list[Control] = []
    num = 0
    for num, record in enumerate(journal_reading.records(data, walked.packets, reader, open_), 1):
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
