"""The page for people, and the numbers that it and metrics tell. Its look: test_report_page.py."""

import contextlib
import gzip
import html
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from inlet.commands import charts, doctor, facts, file_state, rejects, replay, report, run_counts, runs, show, status
from inlet.errors import CheckFailed, ConfigError, EnvironmentLacks, TryAgain
from inlet.log import Log
from inlet.publish import late
from inlet.publish.point import Point, SourcePoint
from inlet.silver.batch import Account
from tests import lakes, projects
from tests.lakes import BEGAN, batch, point, rejected, seq
from tests.test_bronze import deliver, extract
from tests.test_cli import inlet

HOUR = timedelta(hours=1)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    return projects.make(tmp_path)


@pytest.fixture
def busy(project):
    """Two batches of the depot; the views show the first one, and one record is rejected."""
    lakes.write(
        project,
        "silver.batches",
        batch(1, "depot", seq(10), num_changes=90, num_control=9, num_rejected=1),
        batch(2, "depot", seq(40), num_changes=40, num_repeats=10),
    )
    lakes.write(project, "gold.published", point(1, BEGAN + timedelta(minutes=5), depot=seq(10)))
    lakes.write(project, "silver.rejects", rejected("depot", "bad_digit", source_table="ITEMS", column_name="PRICE"))
    lakes.write(
        project,
        "gold.applied",
        {
            "table_name": "items",
            "source": "depot",
            "through_batch_id": 1,
            "through_change_seq": seq(10),
            "applied_at": BEGAN + timedelta(seconds=30),
        },
    )
    return project


def page_of(project) -> str:
    return report.page(report.gather(project, BEGAN + 3 * HOUR))


def words_of(page: str) -> str:
    body = page[page.index("<body>") :]
    return " ".join(html.unescape(re.sub(r"<wbr>|<[^>]+>", lambda m: "" if m[0] == "<wbr>" else " ", body)).split())


def test_the_page_of_an_empty_project_says_that_nothing_came(project):
    words = words_of(page_of(project))
    assert "Nothing is published yet" in words and "Nothing has been landed yet" in words
    assert "No record is rejected." in words and "No run is noted yet." in words


def test_the_page_has_the_numbers_of_the_lakehouse(busy):
    words = words_of(page_of(busy))
    assert "150 records" in words and "130 changes" in words and "30 min 0 s longest lag" in words
    assert "bad_digit, depot: 1" in words and "61 62 63 abc" in words and "ITEMS.PRICE" in words
    assert "newest change 2026-01-05 10:40:00, public up to 2026-01-05 10:10:00" in words and "Nothing waits" in words
    assert "silver.batches 2 1" in words  # rows, files


def test_what_needs_a_person_comes_first_and_the_gravest_before_the_rest(busy):
    runs.keep(busy, {"began": "2026-01-05T13:00:00+00:00", "seconds": 2, "command": "run", "steps": [], "exit_code": 3,
                     "error": "1 check of gold failed"})  # fmt: skip
    deliver(busy, extract(projects.item_records(1, 2)))
    data = report.gather(busy, BEGAN + 3 * HOUR)
    assert [note.level for note in data["notes"]] == ["act", "act", "look", "look", "know"]
    assert data["notes"][0].what == "The last run failed with exit code 3: 1 check of gold failed"
    words = words_of(report.page(data))
    assert words.index("What needs attention") < words.index("1 record rejected") < words.index("What came in")


def test_what_the_public_views_wait_for_is_among_what_waits_and_its_commands_are_marked(busy):
    why = "transaction 7 lacks events; 1 record behind what is public rejected: `inlet rejects`"
    lakes.write(busy, "gold.published", point(2, BEGAN + HOUR, depot=seq(10)) | {"held": {"depot": why}})
    page = page_of(busy)
    words = words_of(page)
    assert "Nothing waits" not in words and "`" not in words
    assert page.count("<code>inlet rejects</code>") >= 2  # of the note, and of the row below
    assert 'See <a href="#waits">What waits</a>' in page and "public views source wait for depot transaction 7" in words


@pytest.mark.parametrize(
    ("newest", "shown", "title", "told"),
    [
        ("0" * 35, "0" * 35, "0 s", f"all changes are public, up to change_seq {'0' * 35}"),
        ("0" * 34 + "7", "0" * 35, "behind, its order tells no time", f"public up to change_seq {'0' * 35}"),
        (seq(10), None, "not public yet", "newest change 2026-01-05 10:10:00, nothing is public"),
        (None, None, "no change decoded yet", "records have arrived, and none of them is a change"),
    ],
)
def test_how_far_a_source_without_times_is_public_is_said_by_its_order(project, newest, shown, title, told):
    lakes.write(project, "silver.batches", batch(1, "depot", newest, num_control=1))
    lakes.write(project, "gold.published", point(1, BEGAN, **({"depot": shown} if shown else {})))
    words = words_of(page_of(project))
    assert f"depot: {title} " in words and told in words


def test_a_check_that_failed_and_holds_now_says_so_and_how_its_rows_are_listed(project):
    query = "select source, `ID` from {batch} where not is_complete"
    row = {"step": "gold", "table": "gold.items", "expectation": "unexpected_rows_expectation", "column": query,
           "severity": "warn", "why": "see `inlet status`", "checked_at": BEGAN}  # fmt: skip
    rows = "select source, `ID`\n  from gold.items"
    failed = {"run_id": 1, "success": False, "observed": "3 rows", "unexpected_count": 3, "rows_sql": rows}
    lakes.write(project, "checks.results", row | failed, row | {"run_id": 2, "success": True})
    words = words_of(page_of(project))
    assert "warned at 2026-01-05 12:00:00; it holds now" in words and "no row of the query below" in words
    assert "found 3 rows see them inlet sql 'select source, `ID` from gold.items'" in words
    assert "see inlet status" in words


def test_everything_from_data_is_escaped(project):
    evil = "<script>alert('x')</script>\"&"
    lakes.write(project, "silver.rejects", rejected("depot", "bad_digit", source_table=evil, found=evil, unit_id=evil))
    lakes.write(
        project,
        "checks.results",
        {"run_id": 1, "step": "gold", "table": evil, "expectation": evil, "severity": "warn", "success": False,
         "why": evil, "observed": evil, "checked_at": BEGAN, "rows_sql": evil},
    )  # fmt: skip
    runs.keep(project, {"began": "2026-01-05T13:00:00", "seconds": 1, "command": evil, "exit_code": 1, "error": evil,
                        "steps": [{"step": evil, "seconds": 1}]})  # fmt: skip
    page = page_of(project)
    assert "<script" not in page and words_of(page).count(evil) >= 8


def test_a_page_needs_no_network(busy):
    page = page_of(busy)
    assert not re.search(r"(src|href)=\"(?!#|data:)|https?:|@import|url\(", page)


def test_lag_is_told_by_the_times_of_the_source():
    assert facts.lag(seq(40), seq(10)).seconds == 1800
    assert facts.lag(seq(10), seq(40)).seconds == facts.lag(seq(10), seq(10)).seconds == 0
    assert facts.lag(seq(10), None).seconds is None
    assert facts.lag("9" * 35, seq(10)).seconds is None  # no time of a calendar


def test_lag_over_time_grows_with_a_batch_and_ends_with_a_publication():
    batches = [batch(1, "depot", seq(10)), batch(2, "depot", seq(40)), batch(2, "other", seq(59))]
    published = [point(1, BEGAN + HOUR / 2, depot=seq(10)), point(2, BEGAN + 2 * HOUR, depot=seq(40))]
    assert facts.lag_over_time(batches, published, "depot") == [
        (BEGAN + HOUR / 2, 0),
        (BEGAN + HOUR, 1800),
        (BEGAN + 2 * HOUR, 0),
    ]


def test_a_table_is_as_many_batches_behind_as_have_it_and_are_not_in_gold(busy):
    [row] = facts.table_lags(busy, facts.ledger(busy))
    assert (row["table"], row["through batch"], row["batches behind"], row["took"]) == ("items", 1, 1, [30])


def test_a_chart_ends_at_its_edges():
    chart = charts.steps([(BEGAN, 0), (BEGAN + HOUR, 10), (BEGAN + 2 * HOUR, 0)], BEGAN + 4 * HOUR)
    assert (chart.path, chart.top) == ("M0.0 100.0H25.0V0.0H50.0V100.0H100", 10)
    assert charts.bars([]).parts == charts.bars([("1", {"changes": 0})]).parts == []
    assert charts.steps([], BEGAN).path == ""


def test_a_page_goes_where_it_is_told_to(busy, tmp_path):
    done = inlet("report", "--project", busy.root, "--out", tmp_path / "out" / "page.html")
    assert done.returncode == 0 and (tmp_path / "out" / "page.html").read_text().startswith("<!doctype html>")
    assert inlet("report", "--project", busy.root).stdout.strip() == f"{busy.root}/lakehouse/report.html"
    (tmp_path / "file").write_text("")
    done = inlet("report", "--project", busy.root, "--out", tmp_path / "file" / "page.html")
    assert done.returncode == 5 and "Name a file with --out" in done.stderr


def test_late_changes_are_counted_once_in_the_point_that_shows_them_first(project):
    """Those of a source that is held back by then are counted when it is public again."""
    batches = [
        batch(1, "depot", seq(30)),
        batch(2, "depot", seq(40)),
        batch(2, "other", seq(20)),
        batch(2, "new", seq(9)),
    ]
    starts = [seq(1), seq(10), seq(11), seq(9)]
    ledger = [row | {"first_change_seq": start} for row, start in zip(batches, starts)]
    changes = [(1, "depot", 20), (2, "depot", 10), (2, "depot", 20), (2, "depot", 40), (2, "other", 11), (2, "new", 9)]
    lakes.write(
        project, "silver.changes", *({"batch_id": n, "source": s, "change_seq": seq(at)} for n, s, at in changes)
    )
    last = Point(1, {"depot": SourcePoint(seq(30), 1, 1), "other": SourcePoint(seq(30), 1, 1)})
    sources = late.sources(ledger, last)
    assert sources == {"depot", "other"}
    held = Point(2, {"depot": SourcePoint(seq(40), 2, 2), "other": SourcePoint(seq(30), 2, 1)})
    assert late.changes(project, last, held, sources) == [("depot", 2, seq(10))]
    freed = Point(3, {"depot": SourcePoint(seq(40), 2, 2), "other": SourcePoint(seq(30), 2, 2)})
    assert late.changes(project, held, freed, late.sources(ledger, held)) == [("other", 1, seq(11))]


def test_late_changes_and_records_that_were_known_are_said_by_the_run_the_status_and_the_page(busy, capsys):
    repeats = {f"landing/depot/{n}.lxg": 10 - n for n in range(7)}
    log = Log(is_human=False)
    with runs.recorded(busy, log):
        with log.step("silver", batch=2) as figures:
            run_counts.note_known(figures, {"depot": Account(repeats=Counter(repeats)), "log": Account()})
        with log.step("publish") as figures:
            run_counts.note_late(figures, [late.Late("depot", 12, seq(10)), late.Late("log", 1, "0" * 35)])
    silver, publish = map(json.loads, capsys.readouterr().err.splitlines())
    known = {f"depot/{file}": num for file, num in list(repeats.items())[:5]}
    assert silver["known_already"] == known | {"other files": 9}
    assert publish["late_changes"] == {"depot": 12, "log": 1}
    assert publish["late_from"] == {"depot": "2026-01-05 10:10:00", "log": "0" * 35}
    found = status.status(busy)
    assert [tuple(row.values())[:3] for row in found[status.LATE]] == [
        ("depot", 12, "2026-01-05 10:10:00"),
        ("log", 1, "0" * 35),
    ]
    assert found[status.KNOWN][0]["file"] == "depot/landing/depot/0.lxg" and found[status.KNOWN][0]["records"] == 10
    words = words_of(page_of(busy))
    assert "12 late changes of depot: rows that were public are others from 2026-01-05 10:10:00 on" in words
    assert "49 records of the last run known already" in words and "landing/depot/0.lxg 10" in words
    Log(is_human=True).say({"step": "publish", **{name: publish[name] for name in ("late_changes", "late_from")}})
    line = " ".join(capsys.readouterr().err.split())
    assert line.startswith("publish late changes depot 12, log 1 late from depot 2026-01-05 10:10:00, log 000")


def test_a_run_is_noted_with_its_steps_and_a_failed_one_with_its_error(project):
    log = Log(is_human=False)
    with runs.recorded(project, log), log.step("silver"):
        pass
    with pytest.raises(CheckFailed), runs.recorded(project, log, "rebuild"), log.step("gold"):
        raise CheckFailed("2 checks of gold failed:\nmany words", "See them")
    failed, done = runs.last(project)
    assert (done["command"], done["exit_code"], done["error"]) == ("run", 0, None)
    assert (failed["command"], failed["exit_code"], failed["error"]) == ("rebuild", 3, "2 checks of gold failed")
    assert [[step["step"] for step in run["steps"]] for run in (done, failed)] == [["silver"], ["gold"]]


def test_half_a_line_of_a_run_that_was_killed_is_passed_over(project):
    runs.keep(project, {"began": "2026-01-05T13:00:00+00:00", "seconds": 1, "steps": []})
    with open(project.lakehouse_path("_runs", "2026-01-05.jsonl"), "a") as file:
        file.write('{"began": "2026-01')
    assert [run["seconds"] for run in runs.last(project)] == [1]


def test_a_run_that_cannot_be_noted_is_done_all_the_same(project, capsys):
    (project.root / "lakehouse").mkdir()
    (project.root / "lakehouse" / "_runs").write_text("in the way")
    with runs.recorded(project, Log(is_human=False)):
        pass
    assert "could not be noted" in capsys.readouterr().err


def test_a_note_holds_a_file_name_that_is_no_text_and_the_exit_code_stays(project):
    with pytest.raises(TryAgain), runs.recorded(project, Log(is_human=False)):
        raise TryAgain("landing/caf\udce9.lxg cannot be opened")
    [noted] = runs.last(project)
    assert (noted["exit_code"], noted["error"]) == (6, "landing/caf\udce9.lxg cannot be opened")
    assert report.write(project)


def test_what_a_store_raises_while_a_run_is_noted_fails_no_run(project, monkeypatch, capsys):
    def refuse(*_):
        raise RuntimeError("the store's own exception")

    monkeypatch.setattr(runs, "keep", refuse)
    with runs.recorded(project, Log(is_human=False)):
        pass
    runs.idle(project, Log(is_human=False), {"depot": TryAgain("no answer")})
    assert capsys.readouterr().err.count("could not be noted in _runs: the store's own exception") == 2


def test_a_run_with_nothing_new_leaves_no_note(project):
    assert inlet("run", "--project", project.root).returncode == 0
    assert runs.last(project) == []


def test_a_run_with_nothing_new_is_noted_where_it_ends_otherwise_than_the_last_one(project):
    log, silent = Log(is_human=False), {"depot": TryAgain("no answer")}
    with runs.recorded(project, log):
        pass
    for unlisted in ({}, {}, silent, silent, {}, {}):
        runs.idle(project, log, unlisted)
    assert [(run["exit_code"], run["error"]) for run in runs.last(project)] == [(0, None), (6, "no answer"), (0, None)]
    notes = report.gather(project, BEGAN)["notes"]
    assert not [note for note in notes if "The last run failed" in note.what]


def test_a_run_whose_sources_fail_in_several_ways_is_noted_as_the_process_ends(project):
    unlisted = {"a": TryAgain("a is silent"), "b": ConfigError("there is no topic b", "Name one that is there")}
    with runs.recorded(project, Log(is_human=False), unlisted=unlisted):
        pass
    runs.idle(project, Log(is_human=False), dict(reversed(unlisted.items())))
    [noted] = runs.last(project)
    assert (noted["exit_code"], noted["error"]) == (2, "a is silent; there is no topic b. Name one that is there")


def test_runs_of_a_folder_whose_name_is_a_pattern_are_found(tmp_path):
    (tmp_path / "shop [prod]").mkdir()
    project = projects.make(tmp_path / "shop [prod]")
    with runs.recorded(project, Log(is_human=False)):
        pass
    assert [run["exit_code"] for run in runs.last(project)] == [0]


def test_watch_off_a_terminal_is_one_clear_error(project):
    done = inlet("status", "--watch", "--project", project.root)
    assert done.returncode == 2 and "--watch needs a terminal" in done.stderr and done.stderr.count("\n") == 1


def test_watch_shows_the_status_until_ctrl_c(project):
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "inlet.cli", "status", "--watch", "--interval", "0.5", "--project", project.root]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
    watching = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        shown = b""
        while shown.count(b"Ctrl-C ends") < 2:  # it was shown anew
            shown += os.read(ours, 65536)
        watching.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of a terminal
            while more := os.read(ours, 65536):
                shown += more
        assert watching.wait(60) == 0 and b"depot" in shown and b"Traceback" not in shown
    finally:
        watching.kill()
        watching.wait()
        os.close(ours)


def test_rejects_name_the_change_that_stays(project):
    for source, where in (("depot", "first"), ("other", "of another source")):
        row = {"source": source, "change_seq": seq(10), "unit_id": where, "unit_offset": 7}
        lakes.write(project, "silver.changes", row)
    lakes.write(
        project,
        "silver.rejects",
        rejected("depot", "conflicting_duplicate", change_seq=seq(10), expected="the content that came first"),
        rejected("depot", "bad_digit", change_seq=seq(10)),
    )
    rows = rejects.rejects(project, None, None)
    stays = rejects.first_of(project, rows)
    shown = {row["kind"]: rejects.reject_line(row, False, stays) for row in rows}
    conflict = shown["conflicting_duplicate"]
    assert (conflict["change_seq"], conflict["unit"]) == (seq(10), "depot/file@0")
    assert conflict["expected"] == "the content that came first, of first at 7, which stays"
    assert shown["bad_digit"]["expected"] == "digits"
    assert '"stays": "first at 7"' in inlet("rejects", "--json", "--project", project.root).stdout


def test_rejects_of_a_table_come_with_those_that_may_be_of_it(busy):
    """As a person and a program get them: how many there are of each kind, which are shown, how to see more."""
    of_items = {"source_schema": "DEPOT", "source_table": "ITEMS"}
    in_file = [of_items | {"unit_id": "depot/landing/a file@40", "unit_offset": n} for n in range(25)]
    others = (
        rejected("depot", "unknown_table", source_schema="SHOP", source_table="NEW"),
        rejected("depot", "bad_frame"),
    )
    lakes.write(busy, "silver.rejects", *(rejected("depot", "bad_date", **row) for row in in_file), *others)
    (busy.root / "landing").mkdir(exist_ok=True)
    (busy.root / "landing" / "a file").write_bytes(b"")

    def told(*words) -> str:
        return inlet("rejects", *words, "--project", busy.root).stdout

    lines = told().splitlines()
    assert [line.split() for line in lines[2:6]] == [
        ["depot", "bad_date", "25"],
        ["depot", "bad_digit", "1"],
        ["depot", "bad_frame", "1"],
        ["depot", "unknown_table", "1"],
    ]
    assert "4 of 28, the first of those that are alike; --limit 0 shows all" in told()
    alike = [line.split()[0] for line in lines[8:] if line.split()[2:3] and line.split()[2].startswith(("bad", "unk"))]
    assert sorted(alike) == ["1", "1", "1", "25"] and all(f"{kind}: " in told() for kind in ("bad_frame", "bad_date"))
    assert "20 of 28; --limit 0 shows all" in told("--limit", "20") and len(told("--json").splitlines()) == 28
    of_table = told("--table", "items", "--limit", "0").splitlines()
    of_table = [line for line in of_table if not line.startswith(("bad_date: ", "bad_digit: ", "bad_frame: "))]
    assert "by source and kind" not in of_table[0] and sum("bad_date" in line for line in of_table) == 25
    assert of_table[-3].split()[:2] == ["1", "bad_frame"] and not any("unknown_table" in line for line in of_table)
    assert of_table[-2:] == [
        "1 reject without a table, the last ones, may be of items, too",
        f"the bytes of such a record: inlet inspect '{busy.root}/landing/a file' --at 40 --records 1 "
        f"--project {busy.root}",
    ]
    assert [json.loads(line)["kind"] for line in told("--table", "SHOP.NEW", "--json").splitlines()] == [
        "unknown_table",
        "bad_frame",
    ]
    (busy.root / "landing" / "a file").unlink()  # purged, or renamed
    assert "inlet inspect" not in told("--table", "items")
    assert inlet("rejects", "--table", "nothing", "--project", busy.root).returncode == 2


def test_doctor_says_what_is_rejected_and_fails_nothing_for_it(busy):
    [finding] = [f for f in doctor.examine(busy.root) if f.what == "rejects"]
    assert finding.is_good and "1 record rejected (1 bad_digit); `inlet rejects` says why" in finding.found
    assert rejects.open_rejects(busy) == Counter({("depot", "bad_digit"): 1})


def test_a_file_that_may_be_purged_says_how_many_of_its_records_are_rejected(busy):
    row = {
        "source": "depot",
        "path": "file",
        "ofs_end": 9,
        "size_bytes": 9,
        "sha256": "",
        "num_units": 1,
        "batch_id": 1,
    }
    lakes.write(busy, "bronze.files", row)
    is_safe, words = file_state.file_state(busy, str(busy.root / "file"))
    assert is_safe and words.endswith("in batch 1; 1 record of it not decoded (`inlet rejects`)")
    messages = [("depot/topic/0/5", "file"), ("depot/topic/0/6", "file"), ("depot/topic/0/7", "other")]
    of_depot = {"source": "depot", "batch_id": 1}
    lakes.write(busy, "bronze.messages", *(of_depot | {"unit_id": unit, "path": path} for unit, path in messages))
    units = ("depot/topic/0/5", "depot/topic/0/7")
    lakes.write(busy, "silver.rejects", *(rejected("depot", "wrong_shape", unit_id=unit) for unit in units))
    done = inlet("status", "--file", busy.root / "file", "--json", "--project", busy.root)
    told = json.loads(done.stdout)
    assert (done.returncode, told["is_safe"], told["file"]) == (0, True, str(busy.root / "file"))
    assert told["state"].endswith("in batch 1; 2 records of it not decoded (`inlet rejects`)")


def test_the_status_counts_the_changes_that_a_table_lacks(busy):
    of_items = {"source_schema": "DEPOT", "source_table": "ITEMS"}
    rows = [of_items, of_items, of_items | {"resolved_by": 2}, {"source_schema": "DEPOT", "source_table": "OTHERS"}]
    lakes.write(busy, "silver.rejects", *(rejected("depot", "bad_date", **row) for row in rows))
    assert status.status(busy)["gold"] == [
        {"table": "items", "sources": "depot", "through batch": 1, "is current": False, "rejected": 2}
    ]


def test_the_time_of_a_point_is_that_of_the_publication_that_moved_it(busy):
    lakes.write(busy, "gold.published", point(1, BEGAN + 2 * HOUR, depot=seq(10)))  # a run that moved nothing
    [row] = status.status(busy)["public"]
    assert row["published at"] == BEGAN + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("name", "cut", "why"),
    [
        ("20260102030405_000001.lxg", None, "; the next `inlet run` lands it"),
        (
            "20260102030405_000002.lxg",
            20,
            "; its last 20 bytes, which may be unfinished, wait until it goes on or nothing was written for 60 minutes",
        ),
        ("20260102030405_000003.lxg.gz", None, "; it waits for its end, which only rest tells"),
    ],
)
def test_a_file_that_is_not_landed_says_why(tmp_path, name, cut, why):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    project = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/depot/*"}})
    data = extract(projects.item_records(1, 4))
    deliver(project, gzip.compress(data) if name.endswith(".gz") else data[:cut], name)
    is_safe, words = file_state.file_state(project, str(tmp_path / "landing" / "depot" / name))
    assert not is_safe and words.startswith(f"landing/depot/{name}: nothing of it is landed"), words
    assert why in words, words


def test_what_was_landed_as_a_file_is_not_replayed_as_messages(tmp_path):
    """Nor the other way round: nothing of it would be read, and it would count as settled."""
    shop = {"codec": "qlik_json", "from": "landing/shop/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
    project = projects.make(tmp_path, {"depot": projects.DEPOT, "shop": shop})
    for source, unit, said in (
        ("shop", "shop/landing/shop/a.parquet@0", "was landed as a record of a file, and shop reads messages now"),
        ("depot", "depot/items/0/7", "was landed as a message, and depot reads files now"),
    ):
        with pytest.raises(ConfigError, match=said):
            replay.plan(project, None, [rejected(source, "bad_header", unit_id=unit)])


def test_a_checkpoint_of_a_source_that_does_not_feed_a_table_is_refused(project):
    lakes.write(project, "gold.applied", {"table_name": "items", "source": "depot", "through_batch_id": 1})
    table = project.tables["DEPOT.ITEMS"]
    show._check_fed(project, table, "NIGHT", {"depot": "1", "other": "2"})
    with pytest.raises(ConfigError, match="Checkpoint NIGHT is of other, and items is fed by depot"):
        show._check_fed(project, table, "NIGHT", {"other": "2"})


def test_the_end_of_a_full_load_is_not_shown_as_a_change(project):
    image = pa.struct([("item_id", pa.int32())])
    schema = pa.schema([(n, image if n in show.IMAGES else pa.string()) for n in show.CHANGES])
    rows = [
        {"source": "depot", "change_seq": seq(n), "operation": word} for n, word in ((1, "REFRESH"), (2, "LOAD_END"))
    ]
    rows = [dict.fromkeys(show.CHANGES) | row for row in rows]
    write_deltalake(project.lakehouse_path("gold", "items__before_after"), pa.Table.from_pylist(rows, schema))
    versions = {"versions": {"items__before_after": 0}}
    lakes.write(project, "gold.published", point(1, BEGAN, depot=seq(9)) | versions)
    found = show.show(project, project.tables["DEPOT.ITEMS"], "changes")
    assert [row[found.columns.index("operation")] for row in found.rows] == ["REFRESH"]


def test_files_that_are_not_landed_are_told_beside_one_that_is(project):
    names = [f"2026010203040{n}_00000{n}.lxg" for n in range(3)]
    for name in names:
        deliver(project, b"", name)
    paths = [f"landing/depot/{name}" for name in names]
    lakes.write(project, "bronze.files", {"source": "depot", "path": paths[1], "batch_id": 1})
    assert replay.not_landed(project, paths[1]) == [paths[0], paths[2]] and replay.not_landed(project, paths[0]) == []


def test_only_known_metrics_can_be_asked_for(tmp_path):
    root = projects.make(tmp_path).root
    path = root / "pipelines" / "inlet.yml"
    path.write_text(path.read_text() + "metrics: {promotheus: a.prom}\n")
    with pytest.raises(ConfigError, match="metrics: promotheus: is not known; did you mean prometheus?"):
        projects.config.load(root)


def test_a_page_that_cannot_be_written_lacks_something(busy):
    with pytest.raises(EnvironmentLacks):
        report.write(busy, "/proc/none/page.html")
