"""New files planned by the driver, and by tasks of a cluster: seconds, and the most memory of the driver.

`python -m tests.bench.planning FOLDER [WORKERS]...` makes the files in the folder, by repeating records, and plans them
with the embedded Spark, which plans in the driver, and with clusters of so many worker processes of one core (2 and 4
where none are given). Each is a process of its own, whose session begins before the time is taken. The first plan pays
for the start of Python in the workers. Memory is that of the process and its children, the JVM apart, each page once
(PSS).
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

from inlet import bronze, config
from inlet.lake import engine
from tests import projects, sparks
from tests.encode import linkexpress

LEN_FILE, NUM_FILES, LEN_MANY, LEN_LINES = 2 << 30, 1_000, 1 << 20, 1 << 30
LINE = b'{"magic":"atMSG","type":"DT","message":{"data":{"ID":1,"NAME":"' + b"x" * 150 + b'"}}}\n'
PIECE = linkexpress.encode_file(projects.item_records(1, 10_000), True, "big", "cp932", {1: projects.LAYOUT})
DEPOT = {**projects.DEPOT, "options": projects.DEPOT["options"] | {"logtype": "normal"}}  # else tried a file
LINES = {"codec": "qlik_json", "from": {"transport": "lines", "path": "landing/lines"}, "settle_minutes": 0}
SOURCES = {  # what is read -> its source
    "one file of records, 2 GiB": {**DEPOT, "from": "landing/one"},
    "1,000 files of records, 1 MiB each": {**DEPOT, "from": "landing/many"},
    "500 files of records, 10 KiB each": {**DEPOT, "from": "landing/small"},
    "one file of records, 257 MiB": {**DEPOT, "from": "landing/quarter"},
    "one file of lines, 1 GiB": LINES,
}

LANDED = list(SOURCES)[:2]  # by clusters, too: there the driver reads no blocks


def repeated(path: Path, piece: bytes, length: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        for _ in range(length // len(piece)):
            out.write(piece)


def make(root: Path) -> None:
    """The project and its files; a file of many is a link to one."""
    landing = root / "landing"
    projects.make(root, {f"source{n}": source for n, source in enumerate(SOURCES.values())})
    repeated(landing / "one" / "20260105030000_000000.lxg", PIECE, LEN_FILE)
    repeated(landing / "quarter" / "20260105030000_000000.lxg", PIECE, 257 << 20)
    repeated(landing / "lines" / "a.jsonl", LINE, LEN_LINES)
    little = linkexpress.encode_file(projects.item_records(1, 200), True, "big", "cp932", {1: projects.LAYOUT})
    for folder, num, piece, length in (("many", NUM_FILES, PIECE, LEN_MANY), ("small", 500, little, 10 << 10)):
        repeated(first := landing / folder / "20260105030000_000000.lxg", piece, length)
        for number in range(1, num):
            os.link(first, first.with_name(f"20260105030000_{number:06}.lxg"))


class Memory:
    """The most that this process and its children have used since `begin`, in MiB: Python, and the JVM."""

    def __init__(self) -> None:
        self.most = {"python": 0, "java": 0}
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self) -> None:
        self.most = dict.fromkeys(self.most, 0)

    def _watch(self) -> None:
        while True:
            now = dict.fromkeys(self.most, 0)
            for process in [os.getpid(), *children(os.getpid())]:
                try:
                    kind = "java" if "java" in Path(f"/proc/{process}/comm").read_text() else "python"
                    now[kind] += int(Path(f"/proc/{process}/smaps_rollup").read_text().split("\nPss:")[1].split()[0])
                except (OSError, IndexError):  # it has ended
                    continue
            self.most = {kind: max(most, now[kind] >> 10) for kind, most in self.most.items()}
            time.sleep(0.05)


def children(process: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            own = [int(word) for word in thread.read_text().split()]
        except OSError:
            continue
        found += [one for child in own for one in (child, *children(child))]
    return found


def measure(root: Path) -> None:
    from inlet.lake.spark import session

    project = config.load(root)
    spark = session(project.lakehouse_path())
    memory, past = Memory(), bronze.History(project, [])
    for name, source in zip(("first plan, of next to nothing", *SOURCES), ("source2", *project.sources)):
        memory.begin()
        began = time.perf_counter()
        plan = bronze.plan_batch(project, [project.sources[source]], past, spark=lambda: spark)
        seconds = time.perf_counter() - began
        assert plan.files and not any(row["problem"] for row in plan.files)
        shown(name, seconds, memory)
        if name in LANDED and engine.is_apart():
            plan.batch_id = 1 + LANDED.index(name)
            plan.files = [row | {"batch_id": plan.batch_id} for row in plan.files]
            memory.begin()
            began = time.perf_counter()
            bronze.land(project, spark, plan)
            shown(f"{name}: landed", time.perf_counter() - began, memory)


def shown(name: str, seconds: float, memory: Memory) -> None:
    print(json.dumps({"files": name, "seconds": round(seconds, 1), "MiB": memory.most}), flush=True)


def main() -> None:
    root, *workers = sys.argv[1:]
    if "--measure" in workers:
        return measure(Path(root))
    if not (Path(root) / "landing").exists():
        make(Path(root))
    for num in (0, *map(int, workers or ("2", "4"))):
        shutil.rmtree(Path(root) / "lakehouse", ignore_errors=True)
        (folder := Path(root) / f"cluster{num}").mkdir(exist_ok=True)
        with sparks.cluster(folder, num) if num else nullcontext() as master:
            given = {"INLET_MASTER": master, "PYSPARK_PYTHON": str(folder / "worker_python")} if master else {}
            print(f"{num} workers" if num else "embedded", flush=True)
            command = [sys.executable, "-m", "tests.bench.planning", root, "--measure"]
            subprocess.run(command, check=True, env=os.environ | given)


if __name__ == "__main__":
    main()
