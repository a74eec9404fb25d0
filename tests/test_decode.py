"""`inlet decode`: what it prints of a file beyond the rows that cases have."""

import json

import pytest
import yaml

from inlet import config
from inlet.commands import decode
from tests.encode.goldengate_trail import FIRST, MIDDLE, ONLY, Trail
from tests.goldengate import contract_of
from tests.test_cli import inlet
from tests.test_goldengate_logdump import AT, ITEMS


def project_of(root, trail: Trail):
    """A project with the trail's files. Out: the first of them."""
    contract = contract_of(ITEMS)
    column_lists = [{"name": c.name, "type": c.type, "source_type": c.source_type} for c in contract.columns]
    files = {
        "pipelines/inlet.yml": {
            "lakehouse": "lakehouse",
            "sources": {"gg": {"codec": "goldengate_trail", "from": "landing/gg/*", "options": {"charset": "utf_8"}}},
        },
        "pipelines/tables/items.yml": {
            "table": contract.table,
            "name": "items",
            "key": contract.key,
            "columns": column_lists,
        },
    }
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(yaml.safe_dump(content))
    (root / "landing" / "gg").mkdir(parents=True)
    for name, data in trail.files:
        (root / "landing" / "gg" / name).write_bytes(data)
    return root / "landing" / "gg" / trail.files[0][0]


def insert(trail: Trail, n: int, trans_ind: int, **said) -> None:
    trail.insert("DEPOT.ITEMS", {"ID": n, "NAME": "a"}, io_time=AT, trans_ind=trans_ind, **said)


def test_what_a_writer_gave_up_is_marked_and_what_no_mark_has_judged(tmp_path):
    """A writer that fell writes its transaction again; of the last one the file does not show the end."""
    trail, tokens = Trail([ITEMS]), {"tokens": [("6", "1.2.3")]}
    insert(trail, 1, ONLY)
    for _ in range(2):
        insert(trail, 2, FIRST, **tokens)
        insert(trail, 3, MIDDLE, **tokens)
        trail.restart(False, io_time=AT)
    insert(trail, 4, FIRST)
    file = project_of(tmp_path, trail)
    rows = list(decode.decode_file(config.load(tmp_path), file, None))
    found = [(row["after"]["ID"], row.get("verdict")) for kind, row in rows if kind == "change"]
    assert found == [(1, None), *[(2, "abandoned"), (3, "abandoned")] * 2, (4, "undecided")]
    assert [row["file_offset"] for _, row in rows] == sorted(row["file_offset"] for _, row in rows)


def broken(trail: Trail, n: int) -> None:
    """An insert that the contract does not take: its key is null."""
    insert(trail, n, ONLY, before_after="B")


@pytest.mark.parametrize("limit, shown", [(0, []), (1, ["I1"]), (3, ["I1", "no", "no"]), (4, ["I1", "no", "no", "I4"])])
def test_a_limit_counts_rejects_too(tmp_path, limit, shown):
    trail = Trail([ITEMS])
    for n, one in enumerate([insert, broken, broken, insert, broken], 1):
        one(trail, n, *([ONLY] if one is insert else []))
    file = project_of(tmp_path, trail)
    done = inlet("decode", file, "--project", tmp_path, "--limit", limit)
    changes, rejects = ([json.loads(line) for line in text.splitlines()] for text in (done.stdout, done.stderr))
    places = {row["file_offset"]: "I" + str(row["after"]["ID"]) for row in changes if "after" in row}
    places |= {row["file_offset"]: "no" for row in rejects}
    assert [places[at] for at in sorted(places)] == shown
    assert done.returncode == (3 if "no" in shown else 0)


def test_rejects_of_what_was_given_up_are_none_of_the_file(tmp_path):
    trail = Trail([ITEMS])
    insert(trail, 1, FIRST, before_after="B")
    trail.restart(False, io_time=AT)
    done = inlet("decode", project_of(tmp_path, trail), "--project", tmp_path)
    assert (done.returncode, json.loads(done.stderr)["verdict"]) == (0, "abandoned")


def test_rejects_of_a_transaction_whose_end_is_not_there_are_counted(tmp_path):
    trail = Trail([ITEMS])
    insert(trail, 1, FIRST, before_after="B")
    done = inlet("decode", project_of(tmp_path, trail), "--project", tmp_path)
    assert (done.returncode, json.loads(done.stderr)["verdict"]) == (3, "undecided")
