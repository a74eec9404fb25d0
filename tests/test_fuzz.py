"""Memory: no walk leaves its message, its record or its buffers, whatever the bytes. The fuzzer is tests/fuzz."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.local import docs
from inlet.codecs import CODECS

ROOT = Path(__file__).resolve().parents[1]
HOUR = 3600
UNCLOSED = """
from tests.test_qlik_json import *
broken = [message(b'{"beforeData":{"NAME":"' + b"x" * 20_000, 9), *(message(b"x" * 20_000, 10 + n) for n in range(500))]
good = random_messages(40, 1)
loads = loads_of(good, SOURCE, TABLES)
found = walked([*good[:20], *broken, *good[20:]], SOURCE, TABLES, loads)
assert typed(found) == typed(walked(good, SOURCE, TABLES, loads)) and len(found) > 30
"""


def python(*arguments: str) -> subprocess.CompletedProcess:
    """A process of its own, for it may die."""
    paths = os.pathsep.join((str(ROOT / "pipelines"), str(ROOT)))
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )


def test_an_unclosed_text_does_not_reach_the_messages_behind_it():
    found = python("-c", UNCLOSED)
    assert found.returncode == 0, found.stderr[-2000:]


COMPILED = sorted(  # codecs that run compiled code
    name
    for name, codec in CODECS.items()
    if any("fields.compiled" in p.read_text() for p in [Path(codec.__file__), *docs.parts_of(Path(codec.__file__))])
)


def test_every_codec_that_runs_compiled_code_is_fuzzed():
    assert {"goldengate_trail", "linkexpress_group", "qlik_json"} <= set(COMPILED)
    for codec in COMPILED:
        target = importlib.import_module(f"tests.fuzz.{codec}")
        assert target.TOKENS and callable(target.units) and callable(target.check)


@pytest.mark.gate
@pytest.mark.proof
@pytest.mark.parametrize("codec", COMPILED)
def test_mutated_bytes_stay_within_their_bounds_and_are_read_as_the_plain_path_reads_them(codec, record_property):
    """INLET_FUZZ_SECONDS for each codec, 30 unless told; an hour in a soak. The seed is the day's, so that every day
    tries others.
    """
    seconds = os.environ.get("INLET_FUZZ_SECONDS") or (HOUR if "INLET_SOAK" in os.environ else 30)
    found = python("-m", "tests.fuzz", "--codec", codec, "--seconds", str(seconds))
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    record_property("fuzzed", " ".join(found.stdout.split()))
