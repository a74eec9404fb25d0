"""A run with nothing new, from the shell: what a scheduler pays every few minutes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from inlet import bronze, silver
from tests.bench import messages
from tests.bench.figure import Figure, best


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    project = messages.make_project(folder, lakehouse)
    messages.write(folder / "landing" / "messages.parquet", 10**9, 1000)  # behind those of the other benches
    (folder / "expectations").mkdir()
    for step in ("bronze", "silver"):
        (folder / "expectations" / f"{step}.yml").write_text("[]\n")
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    silver.run(project, spark, new.batch_id)
    command = [sys.executable, "-m", "inlet.cli", "run", "--until", "silver", "--project", str(folder)]

    def empty_run():
        said = subprocess.run(command, capture_output=True, text=True)
        assert said.returncode == 0 and "nothing_new" in said.stderr, said.stderr

    taken = best(empty_run)
    yield Figure("an empty run, from the shell", "20 seconds", taken / 20, "at most 1", f"{taken:.1f} s, no JVM")
