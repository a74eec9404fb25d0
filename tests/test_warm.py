"""What is compiled at installation is what runs call."""

import importlib

import pytest
from numba.core.dispatcher import Dispatcher

from inlet.codecs.linkexpress.journal import files
from inlet.commands import warm
from inlet.commands.decode import decode_file
from inlet.fields.compiled import cache
from tests import projects, test_cases, test_goldengate_json_fast, test_linkexpress_journal
from tests.encode import linkexpress, linkexpress_journal
from tests.fuzz import qlik_avro
from tests.fuzz import qlik_change_table as change_table


def walks() -> list[Dispatcher]:
    """The compiled functions that Python calls: those that no compiled function of their module names."""
    found = []
    for path in cache.sources():
        parts = path.relative_to(cache.PACKAGE).with_suffix("").parts
        module = importlib.import_module(".".join(("inlet", *parts)))
        here = [f for f in vars(module).values() if isinstance(f, Dispatcher) and f.__module__ == module.__name__]
        called = {name for f in here for name in f.py_func.__code__.co_names}
        found += [f for f in here if isinstance(f._cache, cache.SourcesCache) and f.__name__ not in called]
    return found


def signatures() -> dict[str, list]:
    return {f"{one.__module__}.{one.__name__}": list(one.signatures) for one in walks()}


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
    for name in ("ok_full_images", "ok_segments", "ok_transaction_with_header_and_definitions"):
        case = test_cases.load(test_cases.CASES[0].parents[1] / "goldengate_trail" / f"{name}.yml")
        assert test_cases.decode_file(case, case["data"])
    case = test_cases.load(test_cases.CASES[0].parents[1] / "qlik_change_table" / "ok_default_header_columns.yml")
    assert test_cases.decode_file(case, case["data"]) and change_table.check_rows(case, case["data"])
    case = test_cases.load(test_cases.CASES[0].parents[1] / "qlik_avro" / "ok_update_delete_refresh.yml")
    assert qlik_avro.check(case, qlik_avro.units(case))
    assert [name for name, of in compiled.items() if not of] == []
    assert signatures() == compiled


def num_journals(how: linkexpress_journal.How) -> int:
    row, columns = {"N": 1, "S": "a"}, test_linkexpress_journal.COLUMNS
    written = [linkexpress_journal.Change("T1", "insert", row, sts=sts) for sts in (1, 2, 2, 4)]
    data = linkexpress_journal.encode_file(written, columns, how)
    told = test_linkexpress_journal.told(how, *test_linkexpress_journal.BY_FIT)
    source, contracts = test_linkexpress_journal.project(columns, **told)
    context = files.open_file(test_linkexpress_journal.PATH, data, True, source, contracts)
    assert files.cut(data, context, source, contracts, 1, True).consumed == len(data)
    return files.decode(data, context, source, contracts).changes.num_rows
