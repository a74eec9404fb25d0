"""Looking for work in a lakehouse of 1 million files and 100,000 batches, in a process of its own: what a scheduler
pays every few minutes, years later.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests import aged, projects
from tests.bench.figure import Figure, best

ROOT = Path(__file__).resolve().parents[2]
LOOK = r"""
import json, re, sys, time
from pathlib import Path
from inlet import config
from inlet.commands import run as running
project, before = config.load(Path(sys.argv[1])), time.perf_counter()
work = running.find_work(project, running.STEPS, [], [])
seconds = time.perf_counter() - before
memory = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # ru_maxrss begins at the parent's
print(json.dumps([seconds, memory / 2**20, len(work.plan.files), len(work.unlanded)]))
"""


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    num = 10_000 if is_quick else 1_000_000
    source = {"codec": "qlik_json", "settle_minutes": 0}
    source |= {"from": {"transport": "lines", "path": "landing/depot/2026/*.jsonl"}}
    project = projects.make(folder, {"depot": source}, [projects.ITEMS])
    shutil.copytree(ROOT / "expectations", folder / "expectations")
    (folder / "landing").mkdir()
    aged.write(project, "depot", num, num // 10)
    taken = list[tuple[float, float]]()

    def look():
        said = subprocess.run([sys.executable, "-c", LOOK, str(folder)], capture_output=True, text=True, check=True)
        seconds, memory, num_files, num_batches = json.loads(said.stdout)
        assert (num_files, num_batches) == (0, 0)
        taken.append((seconds, memory))

    best(look)
    seconds, memory = min(taken)
    what, shown = (
        f"looking for work, {num:,} files and {num // 10:,} batches",
        f"{seconds:.2f} s, {memory:.2f} GiB, no JVM",
    )
    yield Figure(what, "2 seconds", seconds / 2, "at most 1", shown)
    yield Figure(f"{what}: memory", "1 GiB", memory, "at most 1", shown)
