"""`inlet rejects`: closing what no one can decode, with a reason; and what is printed of each reject."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from inlet.commands import decode, facts, rejects, replay, status
from inlet.commands.next_steps import NEXT_STEPS
from inlet.errors import ConfigError, Reject
from inlet.publish import hold
from inlet.silver import closed_rejects, resent
from tests import lakes, projects
from tests.lakes import batch, rejected, seq
from tests.test_cli import inlet

UNIT = "depot/landing/depot/file@100"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    made = projects.make(tmp_path)
    lakes.write(made, "silver.batches", batch(1, "depot", seq(10), num_rejected=4), batch(2, "depot", seq(20)))
    of_items = {"source_schema": "DEPOT", "source_table": "ITEMS", "change_seq": seq(5), "unit_id": UNIT}
    rows = [rejected("depot", "bad_digit", unit_offset=offset, **of_items) for offset in (0, 3)]
    others = rejected("depot", "bad_frame"), rejected("depot", "bad_digit", batch_id=2, **of_items)
    lakes.write(made, "silver.rejects", *rows, *others)
    return made


def run(project, *words: str) -> str:
    done = inlet("rejects", *words, "--project", project.root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def open_ones(project) -> list[tuple]:
    return [(r["batch_id"], r["kind"], r["unit_offset"]) for r in rejects.rejects(project)]


def test_a_closed_reject_is_open_nowhere_and_is_listed_with_its_reason(project):
    assert open_ones(project) == [(2, "bad_digit", 0), (1, "bad_frame", 0), (1, "bad_digit", 0), (1, "bad_digit", 3)]
    printed = run(project, "--kind", "bad_digit", "--batch", "1", "--close", "--reason", "lost at the source")
    assert "closed" in printed and "bad_digit" in printed
    assert open_ones(project) == [(2, "bad_digit", 0), (1, "bad_frame", 0)]
    assert rejects.open_rejects(project) == Counter({("depot", "bad_digit"): 1, ("depot", "bad_frame"): 1})
    assert status.status(project)["sources"][0]["rejected"] == 2
    assert status.status(project)["gold"][0]["rejected"] == 1
    assert [row["change_seq"] for row in hold._rejected(project)] == [seq(5)]  # of the message of a held source
    [example] = facts.reject_examples(project, Counter({("depot", "bad_digit"): 1}))["depot", "bad_digit"]
    assert example["batch_id"] == 2
    assert len(replay.unresolved(project)) == 2
    with pytest.raises(ConfigError, match="closed ones are opened first"):
        replay.chosen(project, None, "bad_digit", 1, None)
    rows = [json.loads(line) for line in run(project, "--closed", "--json").splitlines()]
    assert [(row["unit_offset"], row["reason"]) for row in rows] == [(n, "lost at the source") for n in (0, 3)]
    assert all(row["person"] and row["written_at"] for row in rows)
    assert "lost at the source" in run(project, "--closed")


def test_a_reject_is_chosen_by_the_byte_of_its_file_and_opened_again(project):
    run(project, "--unit", UNIT, "--batch", "1", "--at", "104", "--close", "--reason", "damaged")
    assert (1, "bad_digit", 3) not in open_ones(project) and len(open_ones(project)) == 3
    run(project, "--unit", UNIT, "--reopen", "--reason", "a copy was found")
    assert len(open_ones(project)) == 4 and run(project, "--closed").split() == ["closed", "rejects", "none"]
    run(project, "--source", "depot", "--close", "--reason", "all of it")
    assert open_ones(project) == [] and rejects.open_rejects(project) == Counter()


def test_a_refused_file_whose_reject_is_closed_is_refused_no_more(project):
    row = {"source": "depot", "path": "landing/depot/a", "batch_id": 1, "ofs_end": 0, "size_bytes": 9}
    lakes.write(project, "bronze.files", row | {"problem": json.dumps({"kind": "file_rewritten"})})
    lakes.write(project, "silver.rejects", rejected("depot", "file_rewritten", unit_id="depot/landing/depot/a"))
    assert status.status(project)["sources"][0]["refused files"] == 1
    run(project, "--kind", "file_rewritten", "--close", "--reason", "a rotated log; its lines came under another name")
    assert status.status(project)["sources"][0]["refused files"] == 0


def test_a_table_closes_only_what_names_it(project):
    run(project, "--table", "items", "--close", "--reason", "no one needs it")
    assert [kind for _, kind, _ in open_ones(project)] == ["bad_frame"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kind", "bad_digit", "--close"], "--close needs a reason"),
        (["--close", "--reason", "x"], "--close needs a choice"),
        (["--table", "", "--close", "--reason", "x"], "--close needs a choice"),  # as a script's variable may be
        (["--close", "--reopen", "--reason", "x", "--batch", "1"], "are three commands"),
        (["--reason", "x"], "--reason is given with --close or --reopen"),
        (["--batch", "9", "--close", "--reason", "x"], "There is no open reject of batch 9"),
        (["--batch", "1", "--reopen", "--reason", "x"], "There is no closed reject of batch 1"),
    ],
)
def test_closing_needs_a_choice_and_a_reason(project, words, why):
    done = inlet("rejects", *words, "--project", project.root)
    assert done.returncode == 2 and why in done.stderr
    assert len(open_ones(project)) == 4


def test_a_closed_reject_that_its_source_has_answered_is_resolved(project):
    answered = rejected("depot", "bad_date", batch_id=3, resolved_by=4)
    lakes.write(project, "silver.rejects", answered)
    closed_rejects.write(project, [answered], True, "damaged")
    assert "bad_date" not in run(project, "--closed") and len(open_ones(project)) == 4
    assert rejects.open_rejects(project).total() == 4


def test_what_an_added_column_made_waits_for_the_contract_unless_it_is_closed(project):
    of_items = {"source_schema": "DEPOT", "source_table": "ITEMS", "unit_id": UNIT, "contract": "as it was"}
    kinds = ("unknown_column", "mask_too_long", "bad_column_count", "bad_date")
    rows = [rejected("depot", kind, unit_offset=n, **of_items) for n, kind in enumerate(kinds)]
    lakes.write(project, "silver.rejects", *rows)
    lakes.write(project, "bronze.blocks", {"unit_id": UNIT, "source": "depot", "batch_id": 1})
    assert [row["kind"] for row in replay.due(project, ["depot"])] == list(kinds[:3])
    run(project, "--kind", "mask_too_long", "--close", "--reason", "not needed")
    assert [row["kind"] for row in replay.due(project, ["depot"])] == [kinds[0], kinds[2]]


def test_one_fact_is_printed_first_and_the_readings_that_were_tried_on_request(project):
    readings = "byte_order big: 2 records read; byte_order little: 2 records read"
    found = {"ambiguous_layout": readings, "bad_length": "00000000; tried logtype yes: 1 record; logtype no: 0 records"}
    lakes.write(project, "silver.rejects", *(rejected("depot", kind, found=words) for kind, words in found.items()))
    lines = {row["kind"]: rejects.reject_line(row, False) for row in rejects.rejects(project)}
    assert lines["ambiguous_layout"]["found"] == "byte_order big: 2 records read (--verbose: all readings)"
    assert lines["bad_length"]["found"] == "00000000 (--verbose: all readings)"
    assert "little" in " ".join(run(project, "--kind", "ambiguous_layout", "--verbose").split())


def test_the_bytes_of_a_long_record_are_those_around_the_fault(project):
    raw = bytes(range(256)) * 20
    place = {"unit_id": UNIT, "unit_offset": 1000, "byte_offset": 1000 + 4000}
    lakes.write(project, "silver.rejects", rejected("depot", "bad_text", raw=raw, **place))
    [row] = rejects.rejects(project, "depot", "bad_text")
    digits, text, words = rejects.reject_line(row, True, start=1100)["raw"].split("\n")
    assert bytes.fromhex(digits) == raw[4000 - 128 : 4000 + 384] and len(text) == 512
    assert words == "(from byte 4,972; 512 of 5,120 bytes; --json has all)"
    assert facts.around_fault(row | {"raw": b"abc"}, 48) == "61 62 63\nabc"


def test_the_next_step_of_each_kind_is_printed(project):
    printed = run(project)
    assert all(f"{kind}: {NEXT_STEPS[kind]}" in printed for kind in ("bad_digit", "bad_frame"))


def test_a_sentence_of_decode_counts_in_the_file():
    reject = Reject("bad_digit", 4, 9, 12, "digits", "letters", b"abc")
    assert decode.reject_row(reject, 1000)["says"] == "bad_digit at byte 1012: expected digits, found letters"


def test_a_rest_that_could_not_be_framed_is_not_resolved_by_one_of_its_records(project):
    """It has the place of its first record, which another copy of the file may have; and records that that has not."""
    rest, whole = f"{UNIT}~2", "depot/landing/depot/other@0"
    unit = {"source": "depot", "batch_id": 2}
    lakes.write(
        project,
        "bronze.blocks",
        unit | {"unit_id": rest, "context": json.dumps({"problem": {"kind": "bad_length"}})},
        unit | {"unit_id": whole, "context": "{}"},
    )
    rows = [rejected("depot", "bad_length", unit_id=rest), rejected("depot", "bad_digit", unit_id=whole)]
    of_one_record, is_single = resent.of_one_record(project, rows)
    assert [row["unit_id"] for row in of_one_record] == [whole]
    assert is_single == f" and unit_id not in ('{rest}')"


def asked_by(project, source: str, unit_id: str, change: dict) -> list[str]:
    """What batch 4 asks Spark when it has brought a change, while a reject of batch 3 is open."""
    lakes.write(
        project, "silver.rejects", rejected(source, "bad_digit", batch_id=3, unit_id=unit_id, change_seq=seq(9))
    )
    lakes.write(project, "bronze.blocks", {"unit_id": unit_id, "source": source, "batch_id": 3, "context": "{}"})
    at = {"change_seq": seq(9), "unit_id": "another@0", "unit_offset": 0, "batch_id": 4, "source": source}
    lakes.write(project, "silver.changes", at | change)
    asked = list[str]()
    project.sources[source] = project.sources["depot"]
    batch = SimpleNamespace(project=project, batch_id=4, sources=[source], spark=SimpleNamespace(sql=asked.append))
    resent.resolve(batch)
    return asked


@pytest.mark.parametrize(
    ("change", "is_asked"),
    [
        ({}, True),
        ({"batch_id": 2}, False),  # it was there before
        ({"change_seq": seq(8)}, False),
        ({"source": "depot"}, False),
        ({"unit_id": None}, False),  # the record of the reject itself
    ],
)
def test_spark_is_asked_of_a_reject_where_a_change_of_another_record_came_to_its_place(project, change, is_asked):
    source, unit_id = "it's \\${a}", "it's \\${a}/o'brien\\${b}.ext@0"
    change = {name: value or unit_id for name, value in change.items()}
    assert [text.split()[:2] for text in asked_by(project, source, unit_id, change)] == [["merge", "into"]] * is_asked
