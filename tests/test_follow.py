"""Sources that cannot be asked while a run follows: how long each rests, what is said, and what ends the run."""

import os
import signal
from contextlib import nullcontext

import pytest

from inlet import bronze
from inlet.commands import follow, run, runs
from inlet.commands.run import STEPS
from inlet.errors import ConfigError, EnvironmentLacks, TryAgain
from inlet.log import Log
from tests import lakes, projects

SILENT, REFUSED = TryAgain("no answer"), EnvironmentLacks("wrong password")


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is set."""
    now = [100.0]
    monkeypatch.setattr(follow.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def tries():
    return follow.Tries(Log(is_human=False))


def test_a_silent_source_rests_longer_from_try_to_try_and_no_other_with_it(tries, clock):
    rested = []
    for _ in range(9):
        tries.note(["silent", "good"], {"silent": SILENT})
        assert tries.due(["silent", "good"]) == ["good"]
        rested.append(tries.next_at["silent"] - clock[0])
        clock[0] = tries.next_at["silent"]
    assert rested == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    tries.note(["silent"], {})
    assert tries.due(["silent"]) == ["silent"]


def test_what_a_source_waits_for_is_said_once_and_again_after_it_has_answered(tries, clock, capfd):
    for unlisted in ({"a": SILENT}, {"a": SILENT}, {}, {"a": SILENT}):
        tries.note(["a"], unlisted)
    assert capfd.readouterr().err.count("no answer") == 2


def test_a_source_that_a_person_has_to_mend_ends_the_run_only_where_no_other_is_left(tries, clock):
    tries.note(["a", "b"], {"a": REFUSED})
    tries.check(["a", "b"])
    tries.note(["b"], {"b": SILENT})
    tries.check(["a", "b"])
    with pytest.raises(EnvironmentLacks):
        tries.check(["a"])
    tries.note(["b"], {"b": ConfigError("no such topic")})
    with pytest.raises(ConfigError):  # the gravest
        tries.check(["a", "b"])


@pytest.fixture
def following(monkeypatch, tmp_path):
    """A run that follows, whose micro-batches give or raise what they are told, one after the other, and then stop."""

    def go_on(*outcomes):
        left = list(outcomes)

        def once(*given):
            if not left:
                os.kill(os.getpid(), signal.SIGTERM)
                return False, {}
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(follow, "_once", once)
        monkeypatch.setattr(follow, "WRONG_SECONDS", 0.01)
        monkeypatch.setattr(follow.catalog, "shared", lambda lakehouse: nullcontext())
        follow.follow(lambda: projects.make(tmp_path), (), [], [], Log(is_human=False), 0.01)
        return left

    return go_on


def test_a_contract_ahead_of_its_models_is_said_and_waited_for_but_not_at_the_start(following, capfd):
    stale = ConfigError("not what the contracts say", "Run `inlet generate`")
    assert following((True, {}), stale, stale, (True, {})) == []
    assert capfd.readouterr().err.count("Run `inlet generate`; then it goes on") == 1
    with pytest.raises(ConfigError):
        following(stale)


def test_a_lakehouse_that_another_holds_is_tried_again_without_a_rest(following, capfd):
    assert following(TryAgain("Another run writes"), TryAgain("Another run writes"), (True, {})) == []
    assert capfd.readouterr().err.count("Another run writes") == 1


def test_a_source_that_rests_counts_as_failed_in_a_micro_batch_that_does_not_ask_it(tmp_path, tries):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    sources = {"depot": projects.DEPOT, "shop": projects.DEPOT | {"from": "landing/shop/*.lxg"}}
    project, known = projects.make(tmp_path, sources), {"shop": SILENT, "no longer in inlet.yml": REFUSED}
    for _ in range(3):
        assert follow._once(project, STEPS, ["depot"], [], tries.log, known) == (False, {})
    assert [(run["exit_code"], run["error"]) for run in runs.last(project)] == [(6, "no answer")]


def test_what_a_run_makes_due_it_decodes_again_a_few_times_at_most_and_asks_no_address(tmp_path, monkeypatch, capfd):
    """Rejects that stay due, whatever is decoded, wait for the next run."""
    asked: list[bool] = []
    monkeypatch.setattr(run.replay, "due", lambda project, sources, asks=True: asked.append(asks) or [{}])
    monkeypatch.setattr(run.replay, "plan", lambda *given: 10 + len(asked))
    monkeypatch.setattr(run, "_silver", lambda project, spark, pending, decoded, log: decoded.extend(pending))
    monkeypatch.setattr(run, "_gate", lambda *given: None)
    work = run.Work(bronze.Plan(0), decoded=[10])
    run._silver_again(projects.make(tmp_path), None, work, Log(is_human=False))
    assert work.decoded == [10, 11, 12, 13] and asked == [False] * run.MAX_ROUNDS
    run._silver_again(projects.make(tmp_path), None, run.Work(bronze.Plan(0)), Log(is_human=False))
    assert len(asked) == run.MAX_ROUNDS  # a run that has decoded nothing makes nothing due


def test_rejects_of_sources_that_are_not_chosen_wait(tmp_path, monkeypatch):
    project = projects.make(tmp_path, {name: {"codec": "qlik_json", "from": f"landing/{name}/*"} for name in "ab"})
    for name in "ab":
        lakes.write(project, "silver.batches", lakes.batch(1, name, ""))
        lakes.write(project, "bronze.messages", {"source": name, "unit_id": f"{name}/t/0/1", "batch_id": 1})
        lakes.write(project, "silver.rejects", lakes.rejected(name, "definition_missing", unit_id=f"{name}/t/0/1"))
    monkeypatch.setattr(run.replay.lookups, "newest", lambda project: {"a": 2, "b": 2})
    for chosen in (["a"], ["b"], ["a", "b"]):
        assert {row["source"] for row in run.replay.due(project, chosen, asks=False)} == set(chosen)
