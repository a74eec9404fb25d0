"""Whole runs of many small tables, bytes to published views with all checks, against the hand-written pipeline
(`by_hand`). Both take the same files in turn, in one process on two threads, warm; current and history are equal after
each piece. Each piece has a process and a lakehouse of its own: `python -m tests.bench --only "runs: micro-batch"`, or
`python -m tests.bench.runs micro-batch FOLDER`.

Of the hand-written pipeline nothing runs side by side; it keeps no log of changes by table, no checks' results and no
published point. With INLET_BENCH_PROFILE a piece prints what its last run asked of Spark; INLET_BENCH_TABLES and
INLET_BENCH_ROUNDS make less of it.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from inlet import config
from inlet.commands import runs
from tests.bench import many_batches
from tests.bench.feed import Feed
from tests.bench.figure import Figure
from tests.bench.pipelines import NUM_ROUNDS, NUM_WARM, STEPS, Pipelines, shown

ROOT = Path(__file__).resolve().parents[2]
MASTER = "local[2]"
NUM_TABLES = int(os.environ.get("INLET_BENCH_TABLES", 100))  # new ones, of which each changes
NUM_MANY, NUM_CHANGED = 500, 20  # tables, and those of them that change
NUM_ROWS = 200  # of a small table before its first batch of changes
WHOLE = "a run, bytes to published views"
BY_HAND = "the hand-written pipeline"


def against(what: str, ours: dict[str, float], theirs: float, bound: str, pipelines: Pipelines) -> Figure:
    words = f"{shown(ours, pipelines)}; by hand {theirs:.1f} s"
    return Figure(f"{WHOLE}: {what}", BY_HAND, ours["all"] / theirs, bound, words)


def micro_batch(folder: Path, is_quick: bool) -> Iterator[Figure]:
    pipelines, num = Pipelines(Feed(folder / "project")), 14 if is_quick else 1_000
    names = pipelines.add_tables("small", 7)
    for name in names:
        pipelines.feed.insert(name, NUM_ROWS)
    pipelines.both(pipelines.feed.deliver())

    def changes() -> None:
        for n, name in enumerate(names):
            pipelines.feed.change(name, (num + n) // len(names))

    ours, theirs = pipelines.rounds(changes)
    pipelines.compare(names)
    yield against(f"{num:,} changes of 7 tables", ours, theirs, "at most 1.2", pipelines)
    pipelines.profile()


def one_change(folder: Path, is_quick: bool) -> Iterator[Figure]:
    pipelines = Pipelines(Feed(folder / "project"))
    names = pipelines.add_tables("small", 4)
    for name in names:
        pipelines.feed.insert(name, NUM_ROWS)
    pipelines.both(pipelines.feed.deliver())
    ours, theirs = pipelines.rounds(lambda: pipelines.feed.change(names[0], 1), 5)
    pipelines.compare(names)
    spark, appends = pipelines.spark, []
    spark.sql("create table hand.appended (id bigint, name string) using delta")
    for number in range(2 * (NUM_WARM + NUM_ROUNDS)):
        started = time.perf_counter()
        spark.sql(f"insert into hand.appended values ({number}, 'one')")
        appends.append(time.perf_counter() - started)
    two = median(first + second for first, second in zip(appends[2 * NUM_WARM :: 2], appends[2 * NUM_WARM + 1 :: 2]))
    what = f"{WHOLE}: one changed row of 4 tables"
    yield Figure(what, "3 seconds", ours["all"] / 3, "at most 1", shown(ours, pipelines))
    yield Figure(what, "two appends of Spark", ours["all"] / two, "", f"{two:.2f} s for two appends of a row")
    yield Figure(what, BY_HAND, ours["all"] / theirs, "", f"by hand {theirs:.1f} s")
    pipelines.profile()


def hundred_tables(folder: Path, is_quick: bool) -> Iterator[Figure]:
    pipelines, num = Pipelines(Feed(folder / "project")), 8 if is_quick else NUM_TABLES
    warm = pipelines.add_tables("warm", 4)
    for _ in range(1 + NUM_WARM):
        for name in warm:
            pipelines.feed.insert(name, 2)
        pipelines.both(pipelines.feed.deliver())
    names = pipelines.add_tables("small", num)
    for name in names:
        pipelines.feed.insert(name, 20)
    ours, theirs = pipelines.both(pipelines.feed.deliver())
    yield against(f"the first of {num} new tables", ours, theirs, "at most 1.5", pipelines)
    pipelines.profile()

    def changes() -> None:
        for name in names:
            pipelines.feed.change(name, 2)

    ours, theirs = pipelines.rounds(changes, 1)
    pipelines.compare([*warm, *names])
    yield against(f"2 changes of each of {num} tables", ours, theirs, "at most 1.2", pipelines)
    pipelines.profile()


def few_of_many(folder: Path, is_quick: bool) -> Iterator[Figure]:
    """What did not change is not touched by hand either, so its tables have only those that change."""
    pipelines, num, num_changed = (
        Pipelines(Feed(folder / "project")),
        *((16, 4) if is_quick else (NUM_MANY, NUM_CHANGED)),
    )
    names = pipelines.add_tables("small", num)
    changed = names[: num // 2 : num // 2 // num_changed]
    for name in changed:
        pipelines.feed.insert(name, 20)
    pipelines.both(pipelines.feed.deliver())
    for name in set(names) - set(changed):
        pipelines.feed.insert(name, 1)
    pipelines.feed.deliver()
    first = pipelines.inlet()

    def changes() -> None:
        for name in changed:
            pipelines.feed.change(name, 2)

    ours, theirs = pipelines.rounds(changes, 1)
    pipelines.compare(changed)
    figure = against(f"{len(changed)} of {num} tables changed", ours, theirs, "at most 1.2", pipelines)
    yield dataclasses.replace(figure, measured=f"{figure.measured}; {num} new tables took {first['all']:.0f} s")
    pipelines.profile()


def from_the_shell(folder: Path, is_quick: bool) -> Iterator[Figure]:
    """New processes: a run of one changed row, an empty session with the same settings, and a count."""
    feed, names = Feed(folder / "project"), [f"small{n}" for n in range(4)]
    feed.add_tables(names)
    for name in names:
        feed.insert(name, NUM_ROWS)
    inlet, taken = [sys.executable, "-m", "inlet.cli"], []
    given = ["--project", str(feed.root)]
    empty = [sys.executable, "-m", "tests.bench.empty_session", str(feed.root / "lakehouse")]
    feed.deliver()
    seconds_of([*inlet, "run", *given])
    for _ in range(1 if is_quick else NUM_ROUNDS):
        feed.change(names[0], 1)
        feed.deliver()
        whole = seconds_of([*inlet, "run", *given])
        counted = seconds_of([*inlet, "sql", f"select count(*) from public.{names[0]}", *given])
        taken.append((whole, seconds_of(empty), counted, steps_of_last_run(feed.root)))
    whole, session, counted = (median(one[n] for one in taken) for n in range(3))
    steps = {name: median(one[3].get(name, 0) for one in taken) for name in ("spark", *STEPS)}
    words = f"{whole:.1f} s: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in steps.items())
    words += f", other {whole - sum(steps.values()):.1f}; `inlet sql` of a count {counted:.1f} s"
    what = "one changed row of 4 tables, from the shell"
    yield Figure(what, "20 seconds", whole / 20, "at most 1", words)
    yield Figure(what, "an empty session's start", whole / session, "", f"{session:.1f} s")
    yield Figure("`inlet sql` of a count", "an empty session's start", counted / session, "", f"{counted:.1f} s")


def seconds_of(command: list[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-4000:]
    return time.perf_counter() - started


def steps_of_last_run(root: Path) -> dict[str, float]:
    [last] = runs.last(config.load(root), 1)
    steps: dict[str, float] = {}
    for step in last["steps"]:
        steps[step["step"]] = steps.get(step["step"], 0) + step["seconds"]
    return steps


PIECES = {
    "one change": one_change,
    "from the shell": from_the_shell,
    "micro-batch": micro_batch,
    "100 tables": hundred_tables,
    "500 tables": few_of_many,
    "many batches": many_batches.measure,
}


def measure(piece: str) -> Callable[..., Iterator[Figure]]:
    """A piece as a part of the bench, in a process of its own."""

    def measured(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "tests.bench.runs", piece, str(folder), *["--quick"] * is_quick]
        path = folder / "errors.log"
        with path.open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
            for line in process.stdout or ():
                yield Figure(**json.loads(line))
        assert process.wait() == 0, path.read_text()[-4000:]

    return measured


PARTS = {f"runs: {piece}": measure(piece) for piece in PIECES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("piece", choices=list(PIECES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    os.environ["INLET_MASTER"] = MASTER
    for figure in PIECES[given.piece](given.folder, given.quick):
        print(json.dumps(dataclasses.asdict(figure)), flush=True)


if __name__ == "__main__":
    main()
