"""Tasks that work on files: when they are worth it, how work is dealt to them, and what they answer."""

import json
from pathlib import Path

import pytest

from inlet import bronze, config
from inlet.bronze import landing, tasks
from inlet.errors import ConfigError, TryAgain
from inlet.lake import engine
from tests import projects
from tests.both_ways import Tasks
from tests.encode import linkexpress

MIB = 1 << 20


@pytest.mark.parametrize(
    "sizes, num_tasks, num_most, largest",
    [
        ([3000 * MIB], 1, 1, 3000),
        ([1000 * MIB, 10 * MIB, 990 * MIB], 3, 1, 1000),
        ([MIB] * 1_000, 20, 50, 50),
        ([200 * MIB, *[MIB] * 99], 4, 33, 200),
        ([0] * 10_000, 64, 157, 0),
    ],
)
def test_a_task_has_enough_work_and_tasks_share_it(sizes, num_tasks, num_most, largest):
    parts = tasks.dealt(sizes, int)
    assert (len(parts), max(map(len, parts)), max(map(sum, parts)) // MIB) == (num_tasks, num_most, largest)
    assert sorted(size for part in parts for size in part) == sorted(sizes)


@pytest.mark.parametrize(
    "is_apart, num_files, num_bytes, is_begun",
    [(True, 3, 1 << 40, True), (True, 4, 1 << 40, False), (True, 4, 200, True), (False, 1, 1, False)],
)
def test_a_session_begins_where_tasks_run_apart_and_have_enough_to_read(
    tmp_path, monkeypatch, is_apart, num_files, num_bytes, is_begun
):
    project = depot(tmp_path)
    monkeypatch.setattr(engine, "is_apart", lambda: is_apart)
    monkeypatch.setattr(tasks, "NUM_FILES", num_files)
    monkeypatch.setattr(tasks, "NUM_BYTES", num_bytes)
    begun = []
    assert len(plan(project, [], begun).files) == 3
    assert begun == [None] * is_begun
    assert plan(project, plan(project, [], begun := []).files, begun := []).files == []
    assert begun == []  # nothing is new


def depot(root: Path) -> config.Project:
    """A project with three new files."""
    project = projects.make(root)
    body = linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
    (root / "landing" / "depot").mkdir(parents=True)
    for number in range(3):
        (root / "landing" / "depot" / f"20260105031500_{number:06}.lxg").write_bytes(body)
    return project


def plan(project: config.Project, before: list[dict], begun: list) -> bronze.Plan:
    sources, past = list(project.sources.values()), bronze.History(project, before)
    return bronze.plan_batch(project, sources, past, spark=lambda: begun.append(None) or Tasks())


def test_tasks_see_the_same_problems_of_planned_files_as_the_driver(tmp_path, monkeypatch):
    project = depot(tmp_path)
    files = plan(project, [], []).files
    rewritten, gone, _ = (tmp_path / row["path"] for row in files)
    rewritten.write_bytes(b"other")
    gone.unlink()
    here = landing._problems_now(project, Tasks(), files)
    kinds = [(row["path"], json.loads(row["problem"])["kind"]) for row in here]
    assert kinds == [(row["path"], "file_rewritten") for row in files[:2]]
    monkeypatch.setattr(engine, "is_apart", lambda: True)
    monkeypatch.setattr(tasks, "NUM_FILES", 3)
    assert landing._problems_now(project, Tasks(), files) == here


def test_errors_of_inlet_are_raised_as_they_were_and_others_fail_the_task():
    def work(number: int) -> int:
        if number:
            raise {1: TryAgain("silent", "Wait"), 2: ConfigError("wrong"), 3: KeyError("a fault")}[number]
        return number

    assert tasks.each(Tasks(), work, [0, 0]) == [0, 0]
    with pytest.raises(TryAgain) as error:
        tasks.each(Tasks(), work, [0, 1, 2])
    assert (error.value.message, error.value.remedy) == ("silent", "Wait")
    with pytest.raises(KeyError, match="a fault"):
        tasks.each(Tasks(), work, [3])
