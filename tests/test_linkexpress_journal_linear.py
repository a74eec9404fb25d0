"""linkexpress_journal takes time that grows with its bytes, hostile ones too: steps are counted, not seconds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlet.codecs.codec import change_rows
from inlet.codecs.linkexpress.journal import files as codec
from inlet.codecs.linkexpress.journal import frame
from inlet.codecs.linkexpress.journal.open_transactions import Cells
from inlet.codecs.linkexpress.journal.transaction import OpenTransactions
from inlet.codecs.results import Waiting
from tests.encode.linkexpress_journal import Change, Checkpoint, How, encode_file
from tests.test_linkexpress_journal import COLUMNS, project

LEN_LONG = 8 << 20  # of the journals that hostile messages begin


def beginning(body: bytes = LEN_LONG.to_bytes(4, "big") + bytes(6)) -> bytes:
    """A message whose body is the first piece of a journal."""
    head = (32, 4), (1, 2), (0x101, 2), (0, 2), (1, 2)
    return (
        (32 + len(body)).to_bytes(4, "big") + b"".join(n.to_bytes(size, "big") for n, size in head) + bytes(16) + body
    )


def calls_of(monkeypatch, owner, name: str) -> list:
    """The calls of a function from here on."""
    calls, call = [], getattr(owner, name)

    def count(*given, **named):
        calls.append(name)
        return call(*given, **named)

    monkeypatch.setattr(owner, name, count)
    return calls


@pytest.mark.parametrize("is_block", [True, False])
def test_messages_that_all_begin_a_long_journal_are_looked_at_a_few_times_each(monkeypatch, is_block):
    num = 1_000
    read, compared = calls_of(monkeypatch, frame, "_message"), calls_of(monkeypatch, frame.Pieces, "together")
    walked = frame.walk(beginning() * num + b"no message, and no piece of a journal", "message_body", "auto", is_block)
    assert len(walked.packets) == num and {packet.wrong.kind for packet in walked.packets} == {"contradiction"}
    assert len(read) <= 3 * num and len(compared) <= 15 * num


def test_parts_that_all_begin_a_long_journal_are_looked_at_a_few_times_each(monkeypatch):
    num = 1_000
    source, contracts = project(COLUMNS, divided="yes", framing="message_body", tagged="yes")
    message = {"topic": "t", "partition": 0, "value": beginning()}
    parts = [
        Waiting(f"s/t/0/{n}", part, message["value"], message | {"offset": n + n // 500})
        for n in range(num)
        for part in codec.decode_message(message | {"offset": n + n // 500}, source, contracts, []).parts
    ]
    read, compared = calls_of(monkeypatch, frame, "_message"), calls_of(monkeypatch, frame.Pieces, "together")
    found = codec.join("t/0", parts, source, contracts)
    assert (len(found.rejects), len(found.waiting)) == (500, 500)  # an offset is missing behind the first 500
    assert len(read) <= 3 * num and len(compared) <= 15 * num


@given(st.lists(st.sampled_from([b"", b"abc", b"abcdef", b"abcdefg", b"zbcdefgh"]), min_size=1, max_size=9), st.data())
def test_pieces_are_together_with_the_first_one_that_is_enough(bodies, data):
    """As if they were added one by one: all of them repeat the first six bytes, or none does."""
    pieces = frame.Pieces()
    for body in bodies:
        pieces.add(body)
    first, length = data.draw(st.integers(0, len(bodies) - 1)), data.draw(st.integers(1, 60))
    expected = None
    for last in range(first, len(bodies)):
        rest, head = bodies[first + 1 : last + 1], bodies[first][:6]
        repeated = 6 * all(body[:6] == head and len(head) == 6 for body in rest)
        if len(bodies[first]) + sum(len(body) - repeated for body in rest) >= length:
            expected = last
            break
    assert pieces.last_of(first, length) == expected


@pytest.mark.parametrize("pair_divided", ["none", "adjacent_same_key"])
def test_a_block_is_told_of_the_transactions_that_it_has_journals_of_alone(monkeypatch, pair_divided):
    """Checkpoints are read by the plain reader, each next to all transactions that are open."""
    num, how = 200, How(framing="message_body")
    rows = [(n, {"N": n, "S": "a"}) for n in range(num)]
    begun = [[Change("T1", "insert", row, n, 1), Checkpoint("DAY_END")] for n, row in rows]
    ended = [[Change("T1", "delete", row, n, 4)] for n, row in rows]
    data = encode_file([*begun, *ended], COLUMNS, replace(how, has_checkpoint=True))
    source, contracts = project(COLUMNS, pair_divided=pair_divided, framing="message_body", tagged="yes")
    context = codec.open_file("20260102030405.jnl", data, True, source, contracts)
    made = calls_of(monkeypatch, Cells, "__init__"), calls_of(monkeypatch, OpenTransactions, "__init__")
    cut = codec.cut(data, context, source, contracts, 1, True)
    assert sum(map(len, made)) == 1 and cut.context["open"] == {}
    assert [len(block.context["open"]) for block in cut.blocks] == [0] * num + [1] * num
    rows = []
    for block in cut.blocks:
        unit = data[block.offset : block.offset + block.length]
        decoded = codec.decode(unit, block.context, source, contracts)
        rows += change_rows(codec, decoded, block.context, contracts)
    assert [row["transaction_event_counter"] for row in rows] == [1] * num + [2] * num
