"""Run: python -m tests.fuzz [--codec NAME] [--seconds 20] [--seed N]. Exit code 1 and the smallest input found, if a
walk goes wrong.

Numba checks every index against its array here, and an index below zero, which it would count from the end, is out of
bounds too: `fix_integer_index` is where it turns such an index around. What is compiled so has a cache folder of its
own.
"""

import argparse
import datetime
import importlib
import os
import random
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ["NUMBA_BOUNDSCHECK"] = "1"  # before Numba is there
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / "build" / "numba_boundscheck")
os.environ["NUMBA_OPT"] = "1"  # compiles in four fifths of the time, and runs as fast

import numba  # noqa: E402
import numpy as np  # noqa: E402
from numba.np import arrayobj  # noqa: E402

from inlet.codecs import CODECS  # noqa: E402
from tests import test_cases  # noqa: E402

NUM_UNITS = 12  # of a batch
MAX_REPEATS = 3_000


def keep_sign(context, builder, idxty, idx, size):
    """An index as it is, negative ones included."""
    return context.cast(builder, idx, idxty, numba.types.intp if idxty.signed else numba.types.uintp)


arrayobj.fix_integer_index = keep_sign


@numba.njit
def _touch(array, at, is_write):
    if is_write:
        array[at] = 1
    return array[at]


def check_the_net() -> None:
    """Does an index out of bounds raise? A fuzzer that cannot fail proves nothing."""
    for at in (-1, -4, 3, 4, 1 << 40):
        for is_write in (False, True):
            try:
                _touch(np.zeros(3, np.uint8), at, is_write)
            except IndexError:
                continue
            raise SystemExit(f"bounds checking is off: index {at} of 3 was let through")


def mutated(rng: random.Random, unit: bytes, others: list[bytes], tokens: list[bytes]) -> bytes:
    """A unit with one to four things wrong."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        unit = rng.choice(MUTATIONS)(rng, unit, others, tokens)
    return unit


def _span(rng, unit: bytes) -> tuple[int, int]:
    start = rng.randrange(len(unit) + 1)
    return start, min(len(unit), start + rng.choice((1, 1, 2, 4, 8, 64)))


def _flip(rng, unit, others, tokens):
    at = rng.randrange(max(len(unit), 1))
    return unit[:at] + bytes([unit[at] ^ 1 << rng.randrange(8)]) + unit[at + 1 :] if unit else unit


def _put(rng, unit, others, tokens):
    start, end = _span(rng, unit)
    return (
        unit[:start]
        + bytes(rng.choice((0, 0x22, 0x30, 0x5C, 0x7F, 0x80, 0xFF, rng.randrange(256))) for _ in range(end - start))
        + unit[end:]
    )


def _cut(rng, unit, others, tokens):
    return unit[: rng.randrange(len(unit) + 1)]


def _drop(rng, unit, others, tokens):
    start, end = _span(rng, unit)
    return unit[:start] + unit[end:]


def _repeat(rng, unit, others, tokens):
    start, end = _span(rng, unit)
    return unit[:start] + unit[start:end] * rng.choice((2, 3, 20, rng.randrange(1, MAX_REPEATS))) + unit[end:]


def _splice(rng, unit, others, tokens):
    other = rng.choice(others)
    return unit[: rng.randrange(len(unit) + 1)] + other[rng.randrange(len(other) + 1) :]


def _throw_in(rng, unit, others, tokens):
    start, end = _span(rng, unit)
    piece = rng.choice(tokens) * rng.choice((1, 1, 1, 2, 17, rng.randrange(1, MAX_REPEATS)))
    return unit[:start] + piece + unit[rng.choice((start, end)) :]


MUTATIONS = (_flip, _put, _cut, _drop, _repeat, _splice, _throw_in, _throw_in)


num_answers = 0  # of compiled walks, each compared with the plain one


def fails(target, case: dict, units: list[bytes]) -> str | None:
    """What goes wrong, as a traceback."""
    global num_answers
    try:
        num_answers += target.check(case, units)
    except Exception:  # whatever it is, it is told with its input
        return traceback.format_exc()
    return None


def smallest(target, case: dict, units: list[bytes], seconds: float = 20) -> list[bytes]:
    """Units with as much left out as still fails the same way."""
    last, end = fails(target, case, units).splitlines()[-1].split(":")[0], time.monotonic() + seconds

    def still_fails(given):
        told = time.monotonic() < end and fails(target, case, given)
        return told and told.splitlines()[-1].split(":")[0] == last

    for n in reversed(range(len(units))):
        if len(units) > 1 and still_fails(units[:n] + units[n + 1 :]):
            units = units[:n] + units[n + 1 :]
    for n in range(len(units)):
        step = len(units[n])
        while step := step // 2:
            at = 0
            while at < len(units[n]):
                shorter = units[:n] + [units[n][:at] + units[n][at + step :]] + units[n + 1 :]
                units, at = (shorter, at) if still_fails(shorter) else (units, at + step)
    return units


def run(codec: str, seconds: float, seed: int) -> bool:
    global num_answers
    num_answers = 0
    target = importlib.import_module(f"tests.fuzz.{codec}")
    cases = [test_cases.load(path) | {"name": path.stem} for path in test_cases.CASES if path.parent.name == codec]
    units = [target.units(case) for case in cases]
    others, rng, num = [unit for own in units for unit in own], random.Random(seed), 0
    fails(target, cases[0], units[0])  # compiles
    undamaged, end = list(enumerate(units)), time.monotonic() + seconds

    def draw() -> tuple[int, list[bytes]]:
        k = rng.randrange(len(cases))
        drawn = [rng.choice(units[k] or others) for _ in range(rng.randint(1, NUM_UNITS))]
        return k, [unit if rng.random() < 0.25 else mutated(rng, unit, others, target.TOKENS) for unit in drawn]

    while undamaged or time.monotonic() < end:
        k, batch = undamaged.pop() if undamaged else draw()
        problem = fails(target, cases[k], batch)
        num += len(batch)
        if problem:
            print(
                f"{problem}\n{codec}: seed {seed}, case {cases[k]['name']}, after {num} inputs; the smallest "
                "units that fail so:"
            )
            for unit in smallest(target, cases[k], batch):
                print(f"  bytes.fromhex({unit.hex()!r})   {unit[:200]!r}")
            return False
    print(
        f"{codec}: {num} inputs in {seconds:.0f} s, seed {seed}: no index out of bounds, {num_answers} answers, each "
        "the plain one"
    )
    return num_answers > 0  # a walk that answers nothing proves nothing


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    compiled = [name for name in sorted(CODECS) if (Path(__file__).parent / f"{name}.py").exists()]
    arguments.add_argument("--codec", choices=compiled, action="append")
    arguments.add_argument("--seconds", type=float, default=float(os.environ.get("INLET_FUZZ_SECONDS", 20)))
    arguments.add_argument("--seed", type=int, default=int(datetime.date.today().strftime("%Y%m%d")))
    said = arguments.parse_args()
    check_the_net()
    sys.exit(not all([run(codec, said.seconds, said.seed) for codec in said.codec or compiled]))
