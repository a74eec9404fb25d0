"""Framing: what bronze asks of a codec's cut, whatever its format."""

import io
from types import SimpleNamespace

import pytest

from inlet.bronze import framing
from inlet.bronze.judged import Judged
from inlet.codecs.results import Block, Cut, Mark
from inlet.source import Source

SOURCE = Source(name="s", codec="toy", **{"from": "landing"})
TWO = [Block(0, 2, {}, 1), Block(2, 2, {}, 2)]


def framed(cut: Cut) -> list[framing.FileBlock]:
    codec = SimpleNamespace(cut=lambda *given: cut)
    return [
        block for block, _ in framing.cut_file(SOURCE, {}, "f", io.BytesIO(b"abcd"), 0, {"n": 1}, True, codec=codec)
    ]


def test_a_mark_at_the_first_byte_judges_what_came_before():
    judged = Judged([["before", 0, 9, 2, 1]], "f", 0, 2)
    for block in framed(Cut(TWO, {}, 4, None, [Mark(0, 0, "abandoned"), Mark(2, 1, "stands")])):
        judged.add(block)
    assert judged.verdicts == [["before", 0, 9, 2, 1, "abandoned"], ["f", 0, 2, 1, 2, "stands"]]
    assert judged.undecided == [["f", 2, 4, 2, 2]]


@pytest.mark.parametrize(
    "cut",
    [
        Cut([Block(0, 2, {}, 1), Block(3, 1, {}, 1)], {}, 4),
        Cut([Block(0, 0, {}, 1), Block(0, 4, {}, 1)], {}, 4),
        Cut([Block(0, 2, {}, 1)], {}, 4),
        Cut([Block(0, 9, {}, 1)], {}, 9),
        Cut(TWO, {}, 4, None, [Mark(2, 1, "fine")]),
        Cut(TWO, {}, 4, None, [Mark(4, 3, "stands"), Mark(2, 1, "stands")]),
        Cut(TWO, {}, 4, None, [Mark(5, 3, "stands")]),
        Cut(TWO, {}, 4, None, [Mark(2, 2, "stands")]),
        Cut(TWO, {}, 4, None, [Mark(4, 2, "stands")]),
    ],
    ids=["hole", "empty", "consumed", "beyond", "verdict", "order", "mark_beyond", "records", "records_of_all"],
)
def test_a_cut_that_contradicts_itself_is_a_problem_of_the_file(cut):
    [block] = framed(cut)
    assert (block.data, block.num_records, block.context["problem"]["kind"]) == (b"abcd", 1, "decoder_failed")


def test_a_place_within_a_block_has_some_of_its_records():
    blocks = framed(Cut(TWO, {}, 4, None, [Mark(3, 2, "stands")]))
    assert [(mark.offset, mark.num_records) for mark in blocks[1].marks] == [(3, 1)]
