"""`inlet run --tries`: what may pass by itself is tried again in the process, and nothing else."""

import json

import pytest

from inlet.cli import tries
from inlet.errors import CheckFailed, ConfigError, EnvironmentLacks, TryAgain
from inlet.log import Log
from tests import projects
from tests.test_cli import inlet


class Ends:
    """A call that ends as a list says, one after the other. Out: how often it was called, and the waits."""

    def __init__(self, *ends: Exception | None):
        self.ends, self.waits, self.num_calls = list(ends), [], 0

    def __call__(self) -> None:
        self.num_calls += 1
        if error := self.ends.pop(0):
            raise error

    def again(self, num: int) -> None:
        tries.again(self, num, Log(is_human=False), self.waits.append)


def test_it_waits_longer_each_time_up_to_15_minutes(capsys):
    call = Ends(*[TryAgain("The broker does not answer")] * 6, None)
    call.again(7)
    assert call.waits == [60, 120, 240, 480, 900, 900] and call.num_calls == 7
    first = json.loads(capsys.readouterr().err.splitlines()[0])
    assert (first["step"], first["waiting"], first["try"]) == ("run", "The broker does not answer", "2 of 7 in 60 s")


def test_the_last_try_ends_as_it_ends(capsys):
    call = Ends(TryAgain("a"), TryAgain("b"))
    with pytest.raises(TryAgain, match="b"):
        call.again(2)
    assert call.waits == [60]


@pytest.mark.parametrize("error", [CheckFailed("a"), ConfigError("a"), EnvironmentLacks("a"), ValueError("a")])
def test_what_cannot_pass_by_itself_ends_at_once(error):
    call = Ends(error, None)
    with pytest.raises(type(error)):
        call.again(5)
    assert (call.num_calls, call.waits) == (1, [])


def test_a_store_that_does_not_answer_is_tried_again():
    call = Ends(OSError("Generic S3 error: error sending request for url (http://127.0.0.1:1/b)"), None)
    call.again(2)
    assert call.num_calls == 2


def test_one_try_is_the_default():
    call = Ends(TryAgain("a"), None)
    with pytest.raises(TryAgain):
        call.again(1)
    assert call.waits == []


def test_a_broker_that_does_not_answer_is_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tries, "FIRST_SECONDS", 0)
    source = {"codec": "qlik_json", "from": {"transport": "kafka", "servers": "127.0.0.1:1", "topics": ["a"]}}
    projects.make(tmp_path, {"topics": source})
    done = inlet("run", "--project", tmp_path, "--step", "bronze", "--tries", "2")
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert done.returncode == 6 and [line["try"] for line in lines if "try" in line] == ["2 of 2 in 0 s"]


def test_tries_and_follow_are_refused_together(tmp_path):
    projects.make(tmp_path)
    done = inlet("run", "--project", tmp_path, "--follow", "--tries", "2")
    assert done.returncode == 2 and "--tries goes without --follow" in done.stderr
