"""`inlet maintain`: what is due, what is kept and why; no step changes a row, wherever it ends. With Spark, deletion
vectors and VARIANT: test_maintain_spark.py.
"""

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from fsspec.implementations.local import LocalFileSystem

from inlet import config, lake
from inlet.commands import maintain
from inlet.errors import ConfigError
from inlet.lake import compaction, maintenance, table_state
from inlet.lake.compaction import MB
from inlet.lake.delta_log import DAY, DeltaLog
from inlet.lake.maintenance import plan
from inlet.lake.table_state import LOG, Kept, State
from inlet.log import Log
from inlet.publish import kept_versions
from tests import lakes, projects
from tests.test_cli import inlet

STEPS = ("past", "current", "before_after")
HOLD = lambda spark: None  # noqa: E731


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lakehouse after 60 batches, without gold's columns: past and the log grow, current is written anew."""
    made = projects.make(tmp_path_factory.mktemp("made"))
    for number in range(60):
        for step in STEPS:
            mode = "overwrite" if step == "current" else "append"
            place = made.lakehouse_path("gold", f"items__{step}")
            write_deltalake(place, pa.table({"n": [number]}), mode=mode)
    for number in range(60):
        lakes.write(made, "silver.batches", lakes.batch(number, "depot", lakes.seq(1)))
    publish(made, 1)
    return made.root


@pytest.fixture
def project(made, tmp_path):
    return config.load(shutil.copytree(made, tmp_path / "project"))


def publish(project, number: int, version: int | None = None) -> None:
    versions = {
        f"items__{step}": lake.version(project.lakehouse_path(), f"gold.items__{step}") if version is None else version
        for step in STEPS
    }
    lakes.write(project, "gold.published", lakes.point(number, lakes.BEGAN) | {"versions": versions})


def rows(project) -> dict:
    """The rows of each table; where it has versions that views read, of these, too."""
    found = {}
    for table in lake.all_tables(project.lakehouse_path()):
        place = lake.table_path(project.lakehouse_path(), table)
        versions = kept_versions.kept(project).get(table, Kept({}, set(), set())).versions
        for version in (None, *(v for v in versions if "live" not in versions[v])):
            rows = DeltaTable(place, version=version).to_pyarrow_table().to_pylist()
            found[table, version] = sorted(map(repr, rows))
    return found


def later(monkeypatch, days: float) -> None:
    """So many days have passed."""
    time = maintain.time
    monkeypatch.setattr(
        maintain, "time", SimpleNamespace(time=lambda: time.time() + days * DAY, monotonic=time.monotonic)
    )


def of(plans, table: str):
    return next(plan for plan in plans if plan.state.table == table)


@pytest.mark.parametrize(
    ("state", "does"),
    [
        (State("t", 1), []),
        (State("t", 1, (1,) * 9), []),
        (State("t", 1, (1,) * 10), ["compact"]),
        (State("t", 1, (40 * MB,) * 100), []),
        (State("t", 1, (40 * MB,) * 100 + (1,) * 10), ["compact"]),
        (State("t", 1, num_commits=10), ["checkpoint"]),
        (State("t", 1, num_commits=10, is_foreign=True), []),
        (State("t", 1, (900 * MB,), key=("k",), key_bytes=300 * MB), ["cluster"]),
        (State("t", 1, (900 * MB,), key=("k",), key_bytes=300 * MB, is_clustered=True), []),
        (State("t", 1, (2000 * MB,), key=("k",), key_bytes=300 * MB), []),
        (State("t", 1, needed_days=22), []),
        (State("t", 1, needed_days=24), ["keep_log"]),
        (State("t", 1, needed_days=24, log_days=400, is_log_ours=True), []),
        (State("t", 1, needed_days=2, log_days=400, is_log_ours=True), ["keep_log"]),
        (State("t", 1, needed_days=2, log_days=400), []),
        (State("t", 1, removable={"a": 1}), ["vacuum"]),
    ],
)
def test_what_is_due_follows_from_the_state_of_a_table(state, does):
    assert plan(state).does == does


@pytest.mark.parametrize(
    ("sizes", "by_spark", "needs_spark"),
    [((1,) * 10, "", False), ((1,) * 10, "its column mapping", True), ((20 * MB,) * 10, "", True)],
)
def test_spark_writes_what_is_large_or_has_what_delta_rs_lacks(sizes, by_spark, needs_spark):
    assert plan(State("t", 1, sizes, by_spark=by_spark)).needs_spark == needs_spark


def test_a_file_is_removed_when_no_version_in_use_has_it_and_no_reader_can():
    existing = {name: (1, 10.0) for name in ("used", "pinned", "removed_late", "removed", "orphan")}
    existing["new"] = (1, 90.0)
    removed = {"removed_late": 80.0, "removed": 40.0, "pinned": 40.0, "gone": 40.0}
    removable, kept = table_state.unused(existing, {"used"}, {"pinned": "a pin", "used": "a pin"}, removed, 50.0)
    assert removable == {"removed": 1, "orphan": 1}
    assert kept == {"pinned": "a pin", "removed_late": "", "new": ""}


def test_the_log_gives_the_files_of_every_version_that_delta_rs_gives(tmp_path):
    place, random_ = str(tmp_path / "t"), random.Random(7)
    for n in range(40):
        mode = random_.choice(["append", "append", "append", "overwrite"])
        write_deltalake(place, pa.table({"n": [n]}), mode=mode)
        if n in (9, 25):
            DeltaTable(place).optimize.compact()
        if n in (12, 25, 30):
            DeltaTable(place).create_checkpoint()
    log = DeltaLog(place)
    expected = {
        version: {unquote(uri).rsplit("/", 1)[-1] for uri in DeltaTable(place, version=version).file_uris()}
        for version in range(log.newest + 1)
    }
    assert log.files(expected) == expected and log.files([log.newest]) == {log.newest: expected[log.newest]}
    with_rows = {version for version in expected if version not in (10, 27)}
    assert (
        log.last_change() in with_rows and set(log.removed(0)) == set().union(*expected.values()) - expected[log.newest]
    )


def test_small_tables_have_few_files_afterwards_and_the_same_rows(project, monkeypatch):
    before, lakehouse = rows(project), project.lakehouse_path()
    assert lake.size(lakehouse, "gold.items__past")[0] == 60
    due = maintain.plans(project)
    assert of(due, "gold.items__past").does == ["compact", "checkpoint"]
    assert of(due, "gold.items__past").row() == {
        "table": "gold.items__past",
        "files": 60,
        "MB": 0.0,
        "small": 60,
        "log": 60,
        "does": "compact, checkpoint",
        "because": "60 small files; 60 commits after the last one",
        "keeps": "",
    }
    done = maintain.maintain(project, Log(False), HOLD, 168)
    assert [plan.row() for plan in done] == [plan.row() for plan in due]
    assert rows(project) == before
    assert lake.size(lakehouse, "gold.items__past")[0] == lake.size(lakehouse, "silver.batches")[0] == 1
    again = maintain.plans(project)
    assert not any(plan.does for plan in again)
    [(why, (num, _))] = of(again, "silver.batches").state.kept.items()
    assert (why, num) == ("younger than 168 hours, a reader may read them", 60)
    assert of(again, "gold.items__past").state.kept.keys() == {"version 59, the published point 1"}
    later(monkeypatch, 8)
    assert of(maintain.plans(project), "silver.batches").does == ["vacuum"]
    assert of(maintain.plans(project), "gold.items__past").does == []


def test_versions_of_the_point_and_of_pins_stay_readable_and_all_others_go(project, monkeypatch):
    publish(project, 0, 20)  # a point before
    kept_versions.note_pin(project, "month_end", 0, {f"items__{step}": 20 for step in STEPS})
    before, lakehouse = rows(project), project.lakehouse_path()
    assert ("gold.items__current", 20) in before and ("gold.items__current", 59) in before
    later(monkeypatch, 25)
    for _ in range(2):
        maintain.maintain(project, Log(False), HOLD, 168)
        assert rows(project) == before
    assert lake.has_files(lakehouse, "gold.items__current", 20) and lake.has_files(lakehouse, "gold.items__current", 59)
    assert not lake.has_files(lakehouse, "gold.items__current", 21)
    assert DeltaTable(lakehouse + "/gold/items__current").metadata().configuration[LOG] == "interval 85 days"
    kept = of(maintain.plans(project), "gold.items__current").row()["keeps"]
    assert "1 file, 0.0 MB: version 20, the pin month_end" in kept
    monkeypatch.undo()  # today these versions are new
    assert of(maintain.plans(project), "gold.items__current").does == []  # for the pin
    kept_versions.drop_pin(project, "month_end")
    assert of(maintain.plans(project), "gold.items__current").does == ["keep_log"]


def test_a_live_view_may_read_any_version_since_the_last_rows(project, monkeypatch):
    lakehouse = project.lakehouse_path()
    for n in range(3):
        write_deltalake(lakehouse + "/gold/items__current", pa.table({"n": [100 + n]}), mode="append")
    DeltaTable(lakehouse + "/gold/items__current").optimize.compact()
    publish(project, 2)
    later(monkeypatch, 8)
    maintain.maintain(project, Log(False), HOLD, 168)
    assert lake.has_files(lakehouse, "gold.items__current", 62) and not lake.has_files(
        lakehouse, "gold.items__current", 58
    )
    assert "version 62, public.items__live" in of(maintain.plans(project), "gold.items__current").row()["keeps"]


def test_a_point_that_is_shown_and_not_logged_stays_readable(project, monkeypatch):
    """A run has died between the two."""
    lakehouse = project.lakehouse_path()
    kept_versions.note_pin(project, kept_versions.SHOWN, 2, {f"items__{step}": 40 for step in STEPS})
    later(monkeypatch, 8)
    maintain.maintain(project, Log(False), HOLD, 168)
    assert lake.has_files(lakehouse, "gold.items__current", 40) and not lake.has_files(
        lakehouse, "gold.items__current", 39
    )
    assert "version 40, the point 2" in of(maintain.plans(project), "gold.items__current").row()["keeps"]


def test_a_note_that_a_dead_process_has_begun_is_none(project, monkeypatch):
    kept_versions.note_pin(project, "month_end", 2, {"items__current": 40})
    with monkeypatch.context() as patched:
        patched.setattr(LocalFileSystem, "mv", dies)
        with pytest.raises(KeyboardInterrupt):
            kept_versions.note_pin(project, "month_end", 3, {"items__current": 41})
    assert kept_versions.pins(project) == {"month_end": {"point": 2, "versions": {"items__current": 40}}}


def dies(*args):
    raise KeyboardInterrupt


def test_a_pin_of_an_earlier_inlet_is_not_guessed(project, monkeypatch):
    Path(project.lakehouse_path("_pins", "old")).mkdir(parents=True)
    later(monkeypatch, 8)
    current = of(maintain.plans(project), "gold.items__current")
    assert "vacuum" not in current.does and "the pin old of an earlier Inlet may read them" in current.row()["keeps"]


def test_where_the_log_has_lost_a_version_in_use_no_file_is_removed(project, monkeypatch):
    publish(project, 2, 20)
    log = Path(project.lakehouse_path("gold", "items__current", "_delta_log"))
    DeltaTable(str(log.parent)).create_checkpoint()
    for version in range(30):
        (log / f"{version:020}.json").unlink()
    later(monkeypatch, 8)
    current = of(maintain.plans(project), "gold.items__current")
    assert "vacuum" not in current.does
    assert "version 20 cannot be read any more: the log lacks version 0, so none is removed" in current.row()["keeps"]


@pytest.mark.parametrize("step", ["keep_log", "compact", "checkpoint", "remove"])
@pytest.mark.parametrize("is_after", [False, True])
def test_a_process_that_ends_at_any_step_does_no_harm(project, monkeypatch, step, is_after):
    publish(project, 0, 20)
    kept_versions.note_pin(project, "month_end", 0, {f"items__{name}": 20 for name in STEPS})
    before, real, num = rows(project), getattr(maintenance, step), 0
    later(monkeypatch, 25)

    def dies(*args):
        nonlocal num
        num += 1
        if num == (1 if step == "remove" else 2):
            if is_after:
                real(*args)
            raise KeyboardInterrupt
        real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(maintenance, step, dies)
        with pytest.raises(KeyboardInterrupt):
            maintain.maintain(project, Log(False), HOLD, 168)
    assert rows(project) == before
    maintain.maintain(project, Log(False), HOLD, 168)
    assert rows(project) == before and lake.size(project.lakehouse_path(), "gold.items__past")[0] == 1


def test_a_process_that_is_killed_while_it_removes_files_does_no_harm(project):
    """Each file that it removes may be the last one."""
    before = rows(project)
    code = (
        "import os, sys, time; from pathlib import Path; from types import SimpleNamespace\n"
        "from inlet import config; from inlet.commands import maintain; from inlet.log import Log\n"
        "maintain.time = SimpleNamespace(time=lambda: time.time() + 8 * 86400)\n"
        "from fsspec.implementations.local import LocalFileSystem as Local\n"
        "real, num = Local.rm_file, 0\n"
        "def rm_file(self, path):\n"
        "    global num\n"
        "    num += path.endswith('.parquet')\n"
        "    if num == 7: os._exit(9)\n"
        "    real(self, path)\n"
        "Local.rm_file = rm_file\n"
        "maintain.maintain(config.load(Path(sys.argv[1])), Log(False), None, 168)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(project.root)]).returncode == 9
    assert rows(project) == before
    maintain.maintain(project, Log(False), HOLD, 168)
    assert rows(project) == before


def test_an_append_while_files_are_written_together_is_kept(project, monkeypatch):
    optimizer = deltalake.table.TableOptimizer
    real, before = optimizer.compact, len(rows(project)["gold.items__past", None])

    def compacted(self, *args, **options):
        if self.table.table_uri.rstrip("/").endswith("items__past"):
            write_deltalake(self.table.table_uri, pa.table({"n": [1000]}), mode="append")
        return real(self, *args, **options)

    monkeypatch.setattr(optimizer, "compact", compacted)
    maintain.maintain(project, Log(False), HOLD, 168)
    found = rows(project)["gold.items__past", None]
    assert len(found) == before + 1 and "{'n': 1000}" in found


def test_a_reader_on_an_old_version_reads_what_it_did(project):
    place = project.lakehouse_path("gold", "items__current")
    reader = DeltaTable(place, version=30)
    before = reader.to_pyarrow_table()
    maintain.maintain(project, Log(False), HOLD, 168)
    assert reader.to_pyarrow_table() == before == DeltaTable(place, version=30).to_pyarrow_table()


def test_a_run_writes_small_files_together_by_itself_and_only_then(project, capsys):
    lakehouse = project.lakehouse_path()
    maintain.after_run(project, None, ["items"], Log(False))
    steps = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {step["table"] for step in steps} == {"silver.batches", "gold.items__past", "gold.items__before_after"}
    assert lake.size(lakehouse, "gold.items__past")[0] == 1
    maintain.after_run(project, None, ["items"], Log(False))
    assert capsys.readouterr().err == ""


def test_an_error_at_the_end_of_a_run_is_one_line(project, capsys, monkeypatch):
    def fails(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(compaction, "compact", fails)
    maintain.after_run(project, None, ["items"], Log(False))
    warning = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (warning["step"], warning["maintenance"], warning["remedy"]) == (
        "warning",
        "No space left on device",
        "inlet maintain",
    )


@pytest.mark.parametrize(
    ("words", "said"), [("1h", "is too short"), ("23h", "is too short"), ("week", "is no time"), ("7", "is no time")]
)
def test_a_time_that_is_too_short_is_refused(words, said):
    with pytest.raises(ConfigError, match=said):
        maintain.hours_of(words)
    assert (maintain.hours_of("24h"), maintain.hours_of("7d")) == (24, 168)


def test_the_command_shows_what_is_due_and_does_it_under_the_lock_of_a_run(project):
    shown = inlet("maintain", "--dry-run", "--json", "--project", project.root)
    due = {row["table"]: row for row in map(json.loads, shown.stdout.splitlines())}
    assert due["gold.items__past"]["does"] == "compact, checkpoint" and due["gold.published"]["does"] == "nothing"
    with open(project.lakehouse_path("_writing"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held = inlet("maintain", "--project", project.root)
        assert held.returncode == 6 and "Another run writes" in held.stderr
    assert lake.size(project.lakehouse_path(), "gold.items__past")[0] == 60
    done = inlet("maintain", "--project", project.root)
    assert done.returncode == 0 and "gold.items__past" in done.stdout and "1 other table: nothing is due" in done.stdout
    assert lake.size(project.lakehouse_path(), "gold.items__past")[0] == 1
    wrong = inlet("maintain", "--retain", "2h", "--project", project.root)
    assert wrong.returncode == 2 and "too short" in wrong.stderr


def test_small_tables_are_maintained_without_a_jvm(project):
    code = (
        "import sys; from inlet import cli; sys.argv[1:] = ['maintain', '--project', sys.argv[1]]\n"
        "cli.main()\n"
        "assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(project.root)], check=True, capture_output=True, env=os.environ)
