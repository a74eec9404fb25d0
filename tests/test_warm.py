"""What is compiled at installation is what runs call."""

import pytest

from inlet import warm
from inlet.codecs import linkexpress_frame, qlik_scan
from inlet.decoding import decode_file
from inlet.fields import interpreter
from tests import projects
from tests.encode import linkexpress


def signatures() -> dict[str, list]:
    walks = qlik_scan.rows, qlik_scan.refreshes, linkexpress_frame.walk, linkexpress_frame.heads, interpreter.images
    return {walk.__name__: list(walk.signatures) for walk in walks}


@pytest.fixture
def compiled():
    warm.compile_walks()
    return signatures()


def test_every_walk_is_compiled_for_what_a_run_calls_it_with(compiled, tmp_path):
    project = projects.make(tmp_path)
    extract = tmp_path / "landing" / "depot" / "items_20260101000000_000001.lxg"
    extract.parent.mkdir(parents=True)
    extract.write_bytes(linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT}))
    assert [result for result, _ in decode_file(project, extract, "depot")] == ["change"] * 4
    assert all(compiled.values()) and signatures() == compiled
