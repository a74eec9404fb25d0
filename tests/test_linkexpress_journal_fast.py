"""linkexpress_journal: the compiled walks and the plain readers read the same, whole or damaged, however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from inlet.codecs.linkexpress.journal import files as codec
from tests.encode.linkexpress_journal import Change, encode_file
from tests.journals import assert_read_alike
from tests.test_linkexpress import quick
from tests.test_linkexpress_journal import BY_FIT, PATH, files, packed, project, told


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
