"""Many small batches in one lakehouse: does the last one cost what the tenth did, step by step, and what has grown.

One changed row a batch, of four tables in turn. INLET_BENCH_BATCHES says how many there are. Each batch is noted in the
folder, so the piece goes on where it was ended: `python -m tests.bench.runs "many batches" FOLDER`. The first batches
of a process warm it up and do not count.
"""

import json
import os
import pickle
import resource
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from inlet import lake
from tests.bench.feed import Feed
from tests.bench.figure import Figure
from tests.bench.pipelines import STEPS, Pipelines, shown

NUM_BATCHES, NUM_TABLES, NUM_ROWS = 2_000, 4, 200
NUM_WARM, NUM_COMPARED, FIRST = 5, 10, 10  # the batches that are compared: from FIRST on, and the last ones
COMPARED = ("all", *STEPS)


def measure(folder: Path, is_quick: bool) -> Iterator[Figure]:
    num = 25 if is_quick else int(os.environ.get("INLET_BENCH_BATCHES", NUM_BATCHES))
    noted, kept = folder / "batches.jsonl", folder / "feed.pickle"
    done = [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []
    feed: Feed = pickle.loads(kept.read_bytes()) if kept.exists() else Feed(folder / "project")
    names = list(feed.live) or [f"small{n}" for n in range(NUM_TABLES)]
    pipelines = Pipelines(feed)
    if not feed.live:
        feed.add_tables(names)
        for name in names:
            feed.insert(name, NUM_ROWS)
        feed.deliver()
        pipelines.inlet()
    for nth, number in enumerate(range(len(done), num)):
        feed.change(names[number % len(names)], 1)
        feed.deliver()
        batch = pipelines.inlet() | {"is_warm": nth >= NUM_WARM}
        if number % NUM_COMPARED == 0 or number == num - 1:
            batch |= sizes(pipelines.spark, Path(pipelines.lakehouse))
        done.append(batch)
        kept.write_bytes(pickle.dumps(feed))
        with noted.open("a") as file:
            file.write(json.dumps(batch) + "\n")
    for name in names:
        rows = lake.peek(pipelines.lakehouse, f"gold.{name}__current", ["id", "quantity"])
        assert {row["id"]: row["quantity"] for row in rows} == {
            n: row["QUANTITY"] for n, row in feed.live[name].items()
        }
    warm = [batch for batch in done[FIRST:] if batch["is_warm"]]
    young, old = (
        {s: median(b[s] for b in some) for s in COMPARED} for some in (warm[:NUM_COMPARED], warm[-NUM_COMPARED:])
    )
    for step in COMPARED:
        what = f"the last {NUM_COMPARED} of {len(done):,} batches of one changed row: {step}"
        words = f"{young[step]:.2f} and {old[step]:.2f} s" + (f"; {shown(old)}" if step == "all" else "")
        yield Figure(what, f"batches {FIRST} to {FIRST + NUM_COMPARED}", old[step] / young[step], "at most 1.2", words)
    measured = [batch for batch in done if "sizes" in batch]
    for kind, last in measured[-1]["sizes"].items():
        first = measured[min(2, len(measured) - 1)]["sizes"][kind]
        ratio = last[1] / first[1] if isinstance(last, list) else last / first
        words = f"{first} and {last}".replace("[", "").replace("]", "").replace("'", "")
        yield Figure(f"{kind} after {len(done):,} batches", f"after {2 * NUM_COMPARED}", ratio, "", words)


def sizes(spark, lakehouse: Path) -> dict:
    """What may grow: data files and commits of the table that has most, and memory after a collection."""
    logs = {path.parent: len(list(path.glob("*.json"))) for path in lakehouse.glob("*/*/_delta_log")}
    files = {table: lake.size(str(lakehouse), ".".join(table.parts[-2:]))[0] for table in logs}
    spark._jvm.java.lang.System.gc()
    memory = spark._jvm.java.lang.Runtime.getRuntime()
    most = {"data files": files, "commits in the log": logs}
    largest = {what: max(counts, key=counts.__getitem__) for what, counts in most.items()}
    return {
        "sizes": {what: [".".join(largest[what].parts[-2:]), counts[largest[what]]] for what, counts in most.items()}
        | {
            "data files of all tables": sum(files.values()),
            "MB of the JVM's heap": round((memory.totalMemory() - memory.freeMemory()) / 2**20),
            "MB of the Python process": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10),
        }
    }
