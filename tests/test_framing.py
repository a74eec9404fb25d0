"""Framing: what bronze asks of a codec's cut, whatever its format."""

import io
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from inlet import bronze
from inlet.bronze import blocks, framing
from inlet.bronze.judged import Judged
from inlet.codecs import CODECS
from inlet.codecs.codec import OWN
from inlet.codecs.results import Block, Cut, Mark
from inlet.errors import Reject
from inlet.source import Source
from tests import both_ways, projects

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


def cut_lines(data: bytes, context: dict, source, tables, len_block: int, is_final: bool) -> Cut:
    end = data.rfind(b"\n") + 1
    return Cut([Block(0, end, context, data.count(b"\n"))] if end else [], context, end)


def open_titled(path: str, head: bytes, is_whole: bool, source, tables) -> dict | Reject:
    """All that there is to know of such a file is that it begins with its title."""
    found = head[:6].decode()
    return {} if found == "TITLE\n" else Reject("bad_frame", 0, len(head), 0, "TITLE", found, head)


def test_a_file_whose_codec_needs_no_context_goes_on_where_it_was(tmp_path, monkeypatch):
    titled = SimpleNamespace(OPTIONS=type("Options", (BaseModel,), {}), open_file=open_titled, cut=cut_lines)
    monkeypatch.setitem(CODECS, "titled", titled)
    project = projects.make(tmp_path, {"s": {"codec": "titled", "from": "landing"}})
    file, landed, kept = tmp_path / "landing" / "a.txt", [], []
    file.parent.mkdir()
    for text in ("TITLE\none\n", "TITLE\none\ntwo\n"):
        file.write_text(text)
        [row] = both_ways.planned(project, bronze.History(project, landed)).files
        kept += [(block["bytes"], block["context"]) for block in blocks.units_of(project, row)]
        landed.append(row)
    assert kept == [(b"TITLE\none\n", "{}"), (b"two\n", "{}")]


@pytest.mark.parametrize("member", sorted(OWN))
def test_a_codec_that_gives_a_member_of_ours_is_told(member):
    """Bronze would take it for its own, and lose it or what it means."""
    codec = SimpleNamespace(open_file=lambda *given: {member: 1}, cut=cut_lines)
    read = framing.cut_file(SOURCE, {}, "f", io.BytesIO(b"a\n"), 0, None, True, codec=codec)
    assert [member in block.context["problem"]["found"] for block, _ in read] == [True]
    if member != "companions":
        [block] = framed(Cut(TWO, {member: 1}, 4))
        assert member in block.context["problem"]["found"]


def test_what_the_file_before_was_read_with_is_not_handed_on():
    before = {"n": 7} | dict.fromkeys(OWN, [])
    codec = SimpleNamespace(open_file=lambda *given: {"n": 1}, follow=lambda opened, before: before, cut=cut_lines)
    read = framing.cut_file(SOURCE, {}, "f", io.BytesIO(b"a\n"), 0, None, True, before=before, codec=codec)
    assert [block.context for block, _ in read] == [{"n": 7}]


class Counted(int):
    """A number that counts how often it is compared."""

    num_compared = 0

    def __lt__(self, other):
        Counted.num_compared += 1
        return int(self) < other

    def __gt__(self, other):
        Counted.num_compared += 1
        return int(self) > other

    def __eq__(self, other):
        Counted.num_compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_the_steps_to_give_blocks_their_marks_grow_with_their_number():
    compared = {}
    for num in (100, 400):
        blocks = [Block(n, 1, {}, 1) for n in range(num)]
        cut = Cut(blocks, {}, num, None, [Mark(Counted(n + 1), n + 1, "stands") for n in range(num)])
        Counted.num_compared = 0
        found = [block.marks for block, _ in framing._blocks_of(cut, bytes(num), 10)]
        compared[num] = Counted.num_compared
        assert [[tuple(mark) for mark in marks] for marks in found] == [[(11 + n, 1, "stands")] for n in range(num)]
    assert compared[400] < 8 * compared[100]
