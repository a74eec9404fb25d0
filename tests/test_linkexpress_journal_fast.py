"""linkexpress_journal: the compiled walks and the plain readers read the same, whole or damaged, however it is cut."""

import datetime
from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlet.codecs.codec import change_rows as rows_of
from inlet.codecs.linkexpress.journal import change_rows
from inlet.codecs.linkexpress.journal import files as codec
from inlet.codecs.linkexpress.journal.open_transactions import Cells
from inlet.codecs.linkexpress.journal.transaction import OpenTransactions
from inlet.codecs.linkexpress.local_time import utc_time
from inlet.table import Table
from tests.encode.linkexpress_journal import Change, How, divided, encode_file
from tests.journals import assert_read_alike, assert_unit_read_alike
from tests.test_linkexpress import quick
from tests.test_linkexpress_journal import BY_FIT, COLUMNS, PATH, files, packed, project, told

A, B, C = "000000000000000A", "FFFFFFFFFFFFFFFB", "000000000000000C"
BOTH = pytest.mark.parametrize("begun", [OpenTransactions, lambda open_: Cells(open_, 99)], ids=["plain", "compiled"])
IN_PAIRS = pytest.mark.parametrize("pair_divided", ["none", "adjacent_same_key"])  # the cut compiled, and in Python


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
@given(files(), st.integers(1, 400), st.data())
def test_they_read_transactions_of_other_files_and_divided_journals_alike(file, len_block, data):
    how, tables, journals = file
    how = replace(how, framing="message_body") if how.framing == "journal_stream" else how
    messages: list[bytes] = []
    for journal in journals[data.draw(st.integers(0, 4)) :]:
        message = encode_file([journal], tables, how)
        at = data.draw(st.integers(7, 2 * len(message)))
        is_divided = at < len(message) - (812 if how.framing == "mq_message" else 32)
        messages += divided(message, how, at, data.draw(st.booleans())) if is_divided else [message]
    if messages and data.draw(st.booleans()):
        del messages[data.draw(st.integers(0, len(messages) - 1))]
    written = b"".join(messages)
    source, contracts = project(tables, **told(how, *BY_FIT))
    context = codec.open_file(PATH, written[:1], False, source, contracts)
    assert_read_alike(written, context, source, contracts, len_block)


def taken(transactions, journals: list) -> list:
    """The events of journals. In: (id, STS) of each, None of one that cannot be read."""
    return [transactions.step(*one) if one else transactions.unknown() for one in journals]


@BOTH
@pytest.mark.parametrize(
    ("open_", "before", "in_block", "of_block", "counters"),
    [
        ({A: 5}, [], [None, (A, 2)], {A: 5}, [7]),
        ({A: 5}, [], [(A, 2), None, (A, 4)], {A: 5}, [6, 8]),
        ({A: 5}, [None, None], [None, (A, 2), None, None, (A, 4)], {A: 7}, [9, 12]),
        ({A: 5}, [(A, 2), None, (A, 2)], [None, None, (A, 4)], {A: 8}, [11]),
        ({A: None}, [None], [None, (A, 4)], {A: None}, [None]),  # it began elsewhere
        ({A: 5}, [None], [None, (B, 1), None, (B, 4)], {}, [1, 3]),  # it begins in the block
        ({}, [None, (B, 1), None], [None, (A, 5), (B, 4)], {B: 2}, [1, 4]),
        ({A: 5}, [(A, 4), None], [None, (A, 1), None, (A, 4)], {}, [1, 3]),  # its id begins again
    ],
)
def test_a_block_counts_its_own_journals_that_cannot_be_read_once(begun, open_, before, in_block, of_block, counters):
    transactions = begun(open_)
    taken(transactions, before)
    transactions.begin_block()
    events = taken(transactions, in_block)
    assert [event.counter for event in events if event] == counters
    assert transactions.of_block() == of_block
    assert taken(begun(of_block), in_block) == events


@BOTH
@given(
    st.dictionaries(st.sampled_from((A, B)), st.sampled_from((None, 1, 5))),
    st.lists(
        st.lists(st.none() | st.tuples(st.sampled_from((A, B, C)), st.sampled_from((1, 2, 2, 3, 4, 5))), max_size=6),
        max_size=6,
    ),
)
def test_blocks_give_the_events_of_the_whole(begun, open_, blocks):
    whole, transactions = begun(open_), begun(open_)
    expected = taken(whole, [one for block in blocks for one in block])
    events = []
    for block in blocks:
        transactions.begin_block()
        taken(transactions, block)
        events += taken(begun(transactions.of_block()), block)
    assert (events, transactions.open) == (expected, whole.open)


@IN_PAIRS
@pytest.mark.parametrize("num", [1, 2, 3, 5])
def test_a_journal_that_cannot_be_read_is_counted_once_whatever_the_blocks(pair_divided, num):
    how, row = How(), {"N": 1, "S": "a"}
    journals = [Change("T1", "update", row, 1, sts) for sts in (1, 2, 2, 2, 2, 4)]
    journals[2] = replace(journals[2], is_readable=False)
    data = encode_file(journals, COLUMNS, how)
    source, contracts = project(COLUMNS, **told(how, *BY_FIT), pair_divided=pair_divided)
    context = codec.open_file(PATH, data[:1], False, source, contracts)
    cut = codec.cut(data, context, source, contracts, num * len(data) // len(journals), True)
    counters = []
    for block in cut.blocks:
        unit = data[block.offset : block.offset + block.length]
        decoded = codec.decode(unit, block.context, source, contracts)
        rows = rows_of(codec, decoded, block.context, contracts)
        counters += [row["transaction_event_counter"] for row in rows]
    assert counters == [1, 2, 4, 5, 6]


@IN_PAIRS
@quick
@given(files(min_changes=9), st.integers(1, 1200), st.data())
def test_they_read_transactions_with_journals_that_cannot_be_read_alike(pair_divided, file, len_block, data):
    how, tables, journals = file
    unreadable = data.draw(st.sets(st.integers(0, len(journals) - 1), min_size=1, max_size=4))
    journals = [
        replace(one, is_readable=n not in unreadable) if isinstance(one, Change) else one
        for n, one in enumerate(journals)
    ][data.draw(st.integers(0, 4)) :]
    written = encode_file(packed(journals, how), tables, how)
    source, contracts = project(tables, **told(how, *BY_FIT), pair_divided=pair_divided)
    context = codec.open_file(PATH, written[:1], False, source, contracts)
    assert_read_alike(written, context, source, contracts, len_block)


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


@pytest.mark.parametrize(
    ("row", "num"),
    [
        (("2026-01-02", "03:04:05", "2026-01-02 03:04:05"), 1),
        (("2026/01.02", "03.04:05", "2026.01-02T03.04.05"), 1),
        (("2026-02-29", "03:04:05", "2026-01-02 03:04:05"), 0),
        (("2026-01-02", "24:04:05", "2026-01-02 03:04:05"), 0),
        (("2026-01-02", "03:04:05", "2026-01-02\n03:04:05"), 0),
        (("2026-01-02", "03:04:05", "2026-01-02ｱ03:04:05"), 0),  # a character that is no ASCII, which is allowed
    ],
)
@pytest.mark.parametrize("is_text", [False, True])
def test_days_and_times_are_read_alike_whatever_stands_between_their_parts(row, num, is_text):
    types = {"D": ("DATE", "date"), "T": ("TIME", "string"), "M": ("TIMESTAMP", "timestamp_ntz")}
    tables = {"T1": [(name, source_type) for name, (source_type, _) in types.items()]}
    columns = [
        {"name": name, "type": "string" if is_text else type_, "source_type": source_type}
        for name, (source_type, type_) in types.items()
    ]
    how = How()
    source, _ = project(tables, **told(how, *BY_FIT))
    contracts = {"SHOP.T1": Table(table="SHOP.T1", name="t1", columns=columns)}
    data = encode_file([Change("T1", "insert", dict(zip(types, row)))], tables, how)
    context = codec.open_file(PATH, data, True, source, contracts)
    assert assert_unit_read_alike(data, context, source, contracts) == num


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"])
def test_local_times_in_utc_are_those_of_the_plain_reader(zone):
    """Of some years' first and last hours, and of every quarter of an hour of one."""
    first = datetime.datetime(2018, 1, 1)
    moments = [first + datetime.timedelta(minutes=15 * n, microseconds=10_000 * (n % 7)) for n in range(4 * 24 * 366)]
    moments += [datetime.datetime(year, 12, 31, 23, 59, 59, 990_000) for year in (1, 1887, 1951, 9998)]
    moments += [datetime.datetime.min, datetime.datetime(9999, 12, 31, 23, 59)]
    local = np.array([(one - change_rows.EPOCH) // change_rows.MICROSECOND for one in moments])
    utc, has_utc = change_rows.utc_times(local, np.ones(len(local), bool), zone)
    found = [change_rows.EPOCH + int(at) * change_rows.MICROSECOND if has else None for at, has in zip(utc, has_utc)]
    plain = [utc_time(one, ZoneInfo(zone)) for one in moments]
    assert found == [at and at.replace(tzinfo=None) for at in plain]
    if zone == "Europe/Berlin":
        assert found.count(None) == 9  # an hour that is not there, one that is there twice; the first time of all
