"""Usage journals as the plain readers read them, against what the codec makes of them."""

from typing import NamedTuple

from inlet import change
from inlet.codecs.codec import change_rows
from inlet.codecs.linkexpress.journal import block, frame, pairs, reading
from inlet.codecs.linkexpress.journal import files as codec
from inlet.codecs.linkexpress.journal.open_transactions import Cells
from inlet.codecs.linkexpress.journal.options import options_of, reading_in_force
from inlet.codecs.linkexpress.journal.piece import Piece
from inlet.codecs.linkexpress.journal.record import Reader
from inlet.codecs.linkexpress.journal.transaction import OpenTransactions
from inlet.codecs.results import Decoded
from inlet.errors import Reject
from inlet.fields.wrong import Wrong


def in_order(row: dict) -> str:
    """A row as text: types and NaN are compared too, and the order of members is not."""
    return repr({name: sorted(v.items()) if isinstance(v, dict) else v for name, v in sorted(row.items())})


class Plain(NamedTuple):
    """A unit as the plain readers read it. `behind`: how many records there are up to each border of messages, or of
    journals of a stream, and which transactions are open there.
    """

    changes: list[dict]
    rejects: list[Reject]
    controls: list
    behind: dict[int, tuple[int, dict]]
    rest: tuple | None  # kind, place, expected and found of what follows the last record


def plainly(data: bytes, context: dict, source, tables, is_block: bool) -> Plain:
    in_file, options = reading.in_file(context, tables), options_of(source)
    reader = Reader(reading_in_force(context, options).reading, source, options, in_file)
    order, is_each = context["reading"]["byte_order"], bool(context.get(frame.EACH))
    walked = frame.walk(data, context["framing"], order, is_block, is_each)
    found, num, transactions = Plain([], [], [], {0: (0, context["open"])}, None), 0, OpenTransactions(context["open"])
    for packet in walked.packets:
        for record in reading.records(data, [packet], reader, transactions):
            seq = change.change_seq(context["time"], context["file_ordinal"], context["record_ordinal"] + num)
            one = reading.read(data, record, reader, seq)
            kind = (
                found.changes if isinstance(one, dict) else found.rejects if isinstance(one, Reject) else found.controls
            )
            kind.append(one)
            num += 1
        found.behind[packet.end] = num, transactions.open
    if reader.options.pair_divided != "none":
        both = pairs.paired(Decoded(found.changes, controls=found.controls), reader.tables)
        found = found._replace(changes=list(both.changes), controls=list(both.controls))
    if walked.end < len(data):
        left = len(data) - walked.end
        wrong = walked.wrong or Wrong("truncated", len(data), "a whole record", f"{left} bytes")
        found = found._replace(rest=(wrong.kind, walked.end, wrong.offset, wrong.expected, wrong.found))
    return found


def events_of(found: Plain) -> list[tuple]:
    """The changes' and rejects' places in their transactions."""
    names = "change_seq", "transaction_id", "transaction_event_counter", "transaction_last_event"
    changes = [tuple(row[name] for name in names) for row in found.changes]
    return sorted([*changes, *((one.change_seq, *(one.event or ())) for one in found.rejects)], key=repr)


def assert_unit_read_alike(data: bytes, context: dict, source, tables) -> int:
    """Out: how many changes the compiled walks have written."""
    found, plain = codec.decode(data, context, source, tables), plainly(data, context, source, tables, True)
    rows, rejects = change_rows(codec, found, context, tables), list(found.rejects)
    assert [in_order(row) for row in rows] == [in_order(row) for row in plain.changes]
    if plain.rest:
        rest = rejects.pop()
        assert (rest.kind, rest.unit_offset, rest.byte_offset, rest.expected, rest.found) == plain.rest
    assert (rejects, found.controls) == (plain.rejects, plain.controls)
    piece = Piece(data, context, source, tables, is_block=True)
    piece.step(0, piece.num, Cells(context["open"], piece.num))
    return int(block.Written(piece, True).is_done.sum())


def assert_read_alike(data: bytes, context: dict, source, tables, len_block: int) -> int:
    """The same of a file in blocks, and of all of it as one. Out: of the blocks."""
    cut = codec.cut(data, context, source, tables, len_block, True)
    plain = plainly(data, context, source, tables, False)
    afters = [*(one.context for one in cut.blocks[1:]), cut.context]
    for one, after in zip(cut.blocks, afters):
        num, open_ = plain.behind[one.offset + one.length]
        assert after["record_ordinal"] - context["record_ordinal"] == num
        assert after["open"].items() <= open_.items()  # a block is told of the transactions that it has journals of
    assert cut.context["open"] == plain.behind[cut.consumed][1]
    assert cut.consumed == max(plain.behind)
    assert_unit_read_alike(data, context, source, tables)
    units = [(data[one.offset : one.offset + one.length], one.context) for one in cut.blocks]
    events = [event for unit in units for event in events_of(plainly(*unit, source, tables, True))]
    assert events == events_of(plain)
    return sum(assert_unit_read_alike(*unit, source, tables) for unit in units)
