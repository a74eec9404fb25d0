"""A decoder that fails costs the unit it fails on, whether it raises or takes its process with it."""

import os
import signal

import pyarrow as pa
import pytest

from inlet import storage
from inlet.bronze.guard import apart, guarded
from inlet.errors import ConfigError


def decode(batches):
    """Doubles numbers; fails on some."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            if number == 7:
                raise ValueError("seven is\nno number")
            if number == 8:
                raise MemoryError
            if number == 9:
                os.kill(os.getpid(), signal.SIGKILL)
            if number == 10:
                os._exit(3)
            if number == 11:
                raise ConfigError("the contract", "Fix it")
        yield pa.RecordBatch.from_pydict({"twice": [2 * number for number in batch.column(0).to_pylist()]})


def doubled(numbers: list[int], is_apart: bool, len_batch: int = 5) -> tuple[list, dict]:
    """What decodes, and why the others do not."""
    failed = {}

    def set_aside(unit, why):
        failed[unit.column(0)[0].as_py()] = why
        return []

    units = [
        pa.RecordBatch.from_pydict({"n": numbers[at : at + len_batch]}) for at in range(0, len(numbers), len_batch)
    ]
    found = [row["twice"] for batch in guarded(decode, set_aside, is_apart)(iter(units)) for row in batch.to_pylist()]
    return found, {number: why.split(" (test_guard.py")[0] for number, why in failed.items()}


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_unit_whose_decoder_raises_is_set_aside_and_the_others_go_on(is_apart):
    assert doubled([1, 7, 2, 8, 3, 4], is_apart) == ([2, 4, 6, 8], {7: "seven is no number", 8: "no memory is left"})


def test_a_unit_whose_decoder_ends_its_process_is_set_aside_and_the_others_go_on():
    assert doubled([9, 1, 2, 3, 10, 7, 4], is_apart=True) == (
        [2, 4, 6, 8],
        {9: "its process was ended by signal 9 (Killed)", 10: "its process ended with code 3", 7: "seven is no number"},
    )


@pytest.mark.parametrize(
    "has_opened, path, is_apart",
    [(False, "landing/a", True), (True, "landing/a", True), (False, "s3://a/b", True), (True, "s3://a/b", False)],
)
def test_a_file_of_a_store_is_read_apart_unless_this_process_has_a_client_of_a_store(
    monkeypatch, has_opened, path, is_apart
):
    monkeypatch.setattr(storage, "_has_opened", has_opened)
    assert (apart(os.getpid, path) != os.getpid()) == is_apart


@pytest.mark.parametrize("is_apart", [False, True])
def test_what_a_person_has_to_mend_is_no_fault_of_a_unit(is_apart):
    with pytest.raises(ConfigError, match="the contract. Fix it"):
        doubled([1, 11], is_apart)
