"""What is compiled at installation is what runs call."""

import pytest

from inlet.codecs.goldengate.json import walk
from inlet.codecs.linkexpress import frame
from inlet.codecs.qlik import json_walk
from inlet.commands import warm
from inlet.commands.decode import decode_file
from inlet.fields.compiled import interpreter
from tests import projects, test_goldengate_json_fast
from tests.encode import linkexpress


def signatures() -> dict[str, list]:
    walks = json_walk.rows, json_walk.refreshes, frame.walk, frame.heads, interpreter.images
    of_messages = walk.rows, walk.find_tables, walk.gather
    return {f"{one.__module__}.{one.__name__}": list(one.signatures) for one in (*walks, *of_messages)}


@pytest.fixture
def compiled():
    warm.compile_walks()
    return signatures()


def test_every_walk_is_compiled_for_what_a_run_calls_it_with(compiled, tmp_path):
    project = projects.make(tmp_path)
    extract = tmp_path / "landing" / "depot" / "items_20260101000000_000001.lxg"
    extract.parent.mkdir(parents=True)
    extract.write_bytes(
        linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
    )
    assert [result for result, _ in decode_file(project, extract, "depot")] == ["change"] * 4
    given = test_goldengate_json_fast.random_messages(4, 1)
    assert test_goldengate_json_fast.assert_walk_agrees(given) == 4
    assert all(compiled.values()) and signatures() == compiled
