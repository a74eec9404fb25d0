"""What is compiled at installation is what runs call."""

import pytest

from inlet.codecs.goldengate.json import walk
from inlet.codecs.linkexpress import frame
from inlet.codecs.linkexpress.journal import files, frames, header_variant, images, moments, open_transactions
from inlet.codecs.linkexpress.journal import walk as journal_walk
from inlet.codecs.qlik import json_walk
from inlet.commands import warm
from inlet.commands.decode import decode_file
from inlet.fields.compiled import interpreter
from tests import projects, test_goldengate_json_fast, test_linkexpress_journal
from tests.encode import linkexpress, linkexpress_journal


def signatures() -> dict[str, list]:
    walks = json_walk.rows, json_walk.refreshes, frame.walk, frame.heads, interpreter.images
    of_messages = walk.rows, walk.find_tables, walk.gather
    of_journals = [frames.stream, frames.messages, journal_walk.heads, journal_walk.places]
    of_journals += [
        journal_walk.intern,
        open_transactions.advance,
        images.images,
        moments.times,
        header_variant.headers,
    ]
    every = (*walks, *of_messages, *of_journals)
    return {f"{one.__module__}.{one.__name__}": list(one.signatures) for one in every}


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
    for how in (linkexpress_journal.How(), linkexpress_journal.How("journal_stream", tagged=False, compressed=True)):
        assert num_journals(how) == 4
    given = test_goldengate_json_fast.random_messages(4, 1)
    assert test_goldengate_json_fast.assert_walk_agrees(given) == 4
    assert all(compiled.values()) and signatures() == compiled


def num_journals(how: linkexpress_journal.How) -> int:
    row, columns = {"N": 1, "S": "a"}, test_linkexpress_journal.COLUMNS
    written = [linkexpress_journal.Change("T1", "insert", row, sts=sts) for sts in (1, 2, 2, 4)]
    data = linkexpress_journal.encode_file(written, columns, how)
    told = test_linkexpress_journal.told(how, *test_linkexpress_journal.BY_FIT)
    source, contracts = test_linkexpress_journal.project(columns, **told)
    context = files.open_file(test_linkexpress_journal.PATH, data, True, source, contracts)
    assert files.cut(data, context, source, contracts, 1, True).consumed == len(data)
    return files.decode(data, context, source, contracts).changes.num_rows
