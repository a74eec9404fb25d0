"""Usage journals read one after the other, in plain Python."""

from collections.abc import Callable

from inlet.codecs.linkexpress.journal import frame
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.record import Reader
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.fields.wrong import Wrong


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
    return Decoded(changes, rejects, controls, len_framing, len(controls))


def rest(data: bytes, at: int, wrong: Wrong, seq: str | None) -> Reject:
    """What follows the last whole record, and is none."""
    raw = data[at:]
    return Reject(wrong.kind, at, len(raw), wrong.offset, wrong.expected, wrong.found, raw, change_seq=seq)
