"""The same files through Inlet and through the hand-written pipeline, in one session: seconds of each, the steps of
Inlet, and whether both end with the same rows.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from inlet import config, lake
from inlet.commands import run as running
from inlet.log import Log
from tests.bench.by_hand import HandWritten
from tests.bench.feed import NAMES, Feed
from tests.bench.messages import COLUMNS
from tests.bench.statements import Statements

NUM_ROUNDS = int(os.environ.get("INLET_BENCH_ROUNDS", 5))  # whose median counts
NUM_WARM = 2  # rounds before them that only warm up
STEPS = ("bronze", "silver", "gold", "publish", "checks")


class Pipelines:
    """The same feed through both pipelines, in one session."""

    def __init__(self, feed: Feed):
        from inlet.lake.spark import session

        feed.add_tables([])  # the project comes before its lakehouse
        self.feed, self.lakehouse = feed, str(feed.root / "lakehouse")
        self.spark = session(self.lakehouse, app="inlet-bench")
        self.by_hand = HandWritten(self.spark, self.lakehouse, COLUMNS)
        self.asked = Statements(self.spark)

    def add_tables(self, beginning: str, num: int) -> list[str]:
        names = [f"{beginning}{n:03}" for n in range(num)]
        self.feed.add_tables(names)
        return names

    def inlet(self) -> dict[str, float]:
        """Run Inlet. Out: its seconds, and those of each step."""
        self.asked = Statements(self.spark)
        with self.asked.counted():
            return run(self.feed.root)

    def both(self, path: Path) -> tuple[dict[str, float], float]:
        """Run both over a new file. Out: Inlet's seconds by step, and those of the other."""
        ours = self.inlet()
        started = time.perf_counter()
        self.by_hand.run(path)
        return ours, time.perf_counter() - started

    def rounds(self, make: Callable[[], None], num_warm: int = NUM_WARM) -> tuple[dict[str, float], float]:
        """Medians of some rounds. In: what makes the changes of one."""
        taken = []
        for _ in range(num_warm + NUM_ROUNDS):
            make()
            taken.append(self.both(self.feed.deliver()))
        taken = taken[num_warm:]
        steps = {name: median(ours[name] for ours, _ in taken) for name in taken[0][0]}
        return steps, median(theirs for _, theirs in taken)

    def compare(self, names: list[str]) -> None:
        """Raises: AssertionError where a table's rows or versions are not those of the hand-written pipeline."""
        for name in names:
            of_inlet, by_hand = (
                sorted(self._rows(table, [*NAMES, "valid_from_seq"]))
                for table in (f"gold.{name}__current", f"hand.{name}_current")
            )
            assert of_inlet == by_hand, f"current of {name}: {set(of_inlet) ^ set(by_hand)}"
            assert len(of_inlet) == len(self.feed.live[name]), name
            versions = [NAMES[0], "valid_from_seq", "valid_to_seq"]
            live = [(*row, None) for row in self._rows(f"gold.{name}__current", versions[:2])]
            closed = self._rows(f"gold.{name}__past", versions)
            others = self._rows(f"hand.{name}_history", versions)
            assert sorted([*live, *closed], key=str) == sorted(others, key=str), f"history of {name}"

    def _rows(self, table: str, columns: list[str]) -> list[tuple]:
        """In: columns as the feed calls them; gold's names are lower case."""
        asked = [f'"{column}"' if table.startswith("hand.") else column.lower() for column in columns]
        return [tuple(row.values()) for row in lake.peek(self.lakehouse, table, asked)]

    def profile(self) -> None:
        if "INLET_BENCH_PROFILE" in os.environ:
            print("\n".join(self.asked.lines()), file=sys.stderr, flush=True)


def run(root: Path) -> dict[str, float]:
    """What `inlet run` does, in this process. Out: its seconds, and those of each step."""
    started, log = time.perf_counter(), Log(is_human=False)
    project = config.load(root)
    with lake.writing(project.lakehouse_path()) as hold:
        work = running.find_work(project, running.STEPS, [], [])
        running.run(project, work, running.STEPS, [], log, hold)
    seconds = dict.fromkeys(STEPS, 0.0)
    for step in log.steps:
        seconds[step["step"]] = seconds.get(step["step"], 0) + step["seconds"]
    return {"all": time.perf_counter() - started} | seconds


def shown(steps: dict[str, float], pipelines: Pipelines | None = None) -> str:
    """The steps of a run in words."""
    seconds = steps | {"other": steps["all"] - sum(steps[name] for name in STEPS)}
    words = f"{seconds.pop('all'):.1f} s: " + ", ".join(f"{n} {seconds[n]:.1f}" for n in (*STEPS, "other"))
    if not pipelines:
        return words
    asked, jobs = pipelines.asked, sum(pipelines.asked.jobs.values())
    return f"{words}; {asked.num('sql')} statements, {asked.num('collect') + asked.num('toArrow')} queries, {jobs} jobs"
