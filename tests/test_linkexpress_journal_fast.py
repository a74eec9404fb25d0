"""linkexpress_journal: the compiled walks and the plain readers read the same, whole or damaged, however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from inlet import change
from inlet.codecs.linkexpress.journal import block, frame, reading
from inlet.codecs.linkexpress.journal import files as codec
from inlet.codecs.linkexpress.journal.options import options_of
from inlet.codecs.linkexpress.journal.piece import Piece
from inlet.errors import Reject
from tests.encode.linkexpress_journal import Change, encode_file
from tests.test_linkexpress import quick
from tests.test_linkexpress_journal import BY_FIT, PATH, files, packed, project, told


def in_order(row: dict) -> str:
    """A row as text: types and NaN are compared too, and the order of members is not."""
    return repr({name: sorted(v.items()) if isinstance(v, dict) else v for name, v in sorted(row.items())})


def plainly(data: bytes, context: dict, source, tables):
    """What the plain readers make of a block: changes, rejects and control events in their order; the open transactions
    behind each message or journal of a stream.
    """
    reader = reading.reader_of(context, source, options_of(source), tables)
    walked = frame.walk(data, context["framing"], context["reading"]["byte_order"])
    changes, rejects, controls, ends = [], [], [], []
    num, open_ = 0, context["open"]
    for packet in walked.packets:
        for record in reading.records(data, [packet], reader, open_):
            place = context["time"], context["file_ordinal"], context["record_ordinal"] + num
            seq = change.change_seq(*place)
            found = reader.read(data, record.packet, record.start, record.end, record.walked, seq)
            of_kind = changes if isinstance(found, dict) else rejects if isinstance(found, Reject) else controls
            of_kind.append(found)
            open_, num = record.walked.open, num + 1
        ends.append((packet.end, num, open_))
    return changes, rejects, controls, ends


def assert_read_alike(data: bytes, context: dict, source, tables, len_block: int = 1 << 20) -> int:
    """Out: how many changes the compiled walks have written."""
    cut = codec.cut(data, context, source, tables, len_block, True)
    *_, ends = plainly(data, context, source, tables)
    behind = {end: (num, open_) for end, num, open_ in ends}
    num_written = 0
    for n, one in enumerate(cut.blocks):
        end = one.offset + one.length
        after = cut.blocks[n + 1].context if n + 1 < len(cut.blocks) else cut.context
        assert (after["record_ordinal"] - context["record_ordinal"], after["open"]) == behind[end]
        unit = data[one.offset : end]
        found = codec.decode(unit, one.context, source, tables)
        changes, rejects, controls, _ = plainly(unit, one.context, source, tables)
        rows = codec.changes_as_rows(found, one.context, source, tables)
        assert [in_order(row) for row in rows] == [in_order(row) for row in changes]
        assert (found.rejects, found.controls) == (rejects, controls)
        piece = Piece(unit, one.context, source, tables)
        piece.step(0, piece.num, one.context["open"])
        num_written += int(block.Written(piece, True).is_done.sum())
    assert cut.consumed == max(behind, default=0)
    return num_written


@quick
@given(files(), st.integers(1, 400))
def test_the_walks_read_what_the_plain_readers_read_and_nearly_all(file, len_block):
    how, tables, journals = file
    data = encode_file(packed(journals, how), tables, how)
    source, contracts = project(tables, **told(how, *BY_FIT))
    context = codec.open_file(PATH, data[:1], False, source, contracts)
    num = assert_read_alike(data, context, source, contracts, len_block)
    may_be_checkpoints = not how.tagged and how.compressed and how.has_checkpoint and how.sysitems_position == "last"
    assert num == sum(isinstance(one, Change) for one in journals) or may_be_checkpoints


@quick
@given(files(), st.data())
def test_they_read_damaged_bytes_alike(file, data):
    how, tables, journals = file
    damaged = bytearray(encode_file(packed(journals, how), tables, how))
    for _ in range(data.draw(st.integers(1, 6)) if damaged else 0):
        place, byte = st.integers(0, len(damaged) - 1), st.sampled_from((0, 0x0F, 0xF0, 0xFF, 4, 0x20, 0x30, 0x3A))
        damaged[data.draw(place)] = data.draw(st.one_of(byte, st.integers(0, 255)))
    names = list(tables)[: data.draw(st.integers(1, 2))]
    source, contracts = project({name: tables[name] for name in names}, **told(how, *BY_FIT))
    context = codec.open_file(PATH, bytes(damaged[:1]), False, source, contracts)
    assert_read_alike(bytes(damaged), context, source, contracts, data.draw(st.integers(1, 400)))
