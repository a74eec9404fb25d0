"""Who waits for the lakehouse while a run follows has its turn."""

import threading
import time

import pytest

from inlet import lake
from inlet.errors import TryAgain
from inlet.lake import lock


@pytest.fixture
def follower(tmp_path):
    """A run that follows, with micro-batches of 0.1 s and nothing between. Out: the seconds at which each began."""
    is_over, began = threading.Event(), []

    def follow():
        with lake.following(str(tmp_path)) as let_others:
            while not is_over.is_set():
                let_others(is_over)
                try:
                    with lake.writing(str(tmp_path), follows=True):
                        began.append(time.monotonic())
                        time.sleep(0.1)
                except TryAgain:
                    time.sleep(0.01)

    thread = threading.Thread(target=follow)
    thread.start()
    while not began:
        time.sleep(0.01)
    yield began
    is_over.set()
    thread.join()


def test_who_waits_has_its_turn_before_the_next_micro_batch(follower, tmp_path):
    said, num_before = [], len(follower)
    for _ in range(5):
        with lake.writing(str(tmp_path), tell=said.append):
            num_then = len(follower)
            time.sleep(0.15)
            assert len(follower) == num_then
        time.sleep(0.05)  # so that the next one begins
    assert len(follower) - num_before <= 2 * 5
    assert said and all("`inlet run --follow`" in one["waiting"] for one in said)


def test_a_micro_batch_that_takes_too_long_is_worth_another_try(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "TURN_SECONDS", 0.1)
    with (
        lake.following(str(tmp_path)),
        lake.writing(str(tmp_path), follows=True),
        pytest.raises(TryAgain),
        lake.writing(str(tmp_path)),
    ):
        pass


def test_a_run_that_does_not_follow_is_not_waited_for(tmp_path):
    with lake.writing(str(tmp_path)):
        began = time.monotonic()
        for follows in (False, True):
            with pytest.raises(TryAgain), lake.writing(str(tmp_path), follows=follows):
                pass
        assert time.monotonic() - began < 1
