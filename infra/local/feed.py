"""The demo's feeds: a business of tests/business.py, written as the files that Qlik, Linkexpress and GoldenGate would
leave behind.

    feed = write_feed("demo", seed=1)        # four batches wait in demo/staging
    feed.deliver(1)                          # the files of the first move to demo/landing/<source>/
    feed.expected["SHOP.ORDERS"]             # {(source, key...): row}, what gold must hold after all four

What a lakehouse must survive is in it: full loads, partly supplied rows, updates that change nothing, key changes, a
stretch sent twice, a stretch that comes a batch late, broken records in each kind of feed, a table emptied by a full
extract, a trail with a file that grows and a process that was restarted.

Run: python infra/local/feed.py FOLDER [--seed 1] [--scale 1] [--deliver]
"""

import argparse
import random
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from infra.local import feed_carrier, feed_depots, feed_returns, feed_shop  # noqa: E402
from infra.local.feed_depots import CLOSED, DEPOTS  # noqa: E402
from infra.local.feed_files import NUM_BATCHES, Feed  # noqa: E402
from tests.business import Carrier, Depot, Returns, Shop, Warehouses  # noqa: E402

NUM_CHANGES = {  # at scale 1
    "shop": 20_500,
    "depot_tokyo": 10_300,
    "depot_osaka": 10_300,
    "depot_nagoya": 400,
    "carrier": 4_000,
    "returns": 900,
}


def simulate(seed: int, scale: float) -> dict:
    """The businesses by source, run to their end."""
    depots = {source: Depot(seed, prefix, how["null_areas"]) for source, (prefix, how) in DEPOTS.items()}
    done = {"shop": Shop(seed), **depots, "depot_nagoya": Warehouses(seed, "NG"), "carrier": Carrier(seed)}
    done["returns"] = Returns(seed)
    for source, business in done.items():
        business.run(int(NUM_CHANGES[source] * scale))
    return done


def write_feed(folder, seed: int = 1, scale: float = 1) -> Feed:
    """Write all files of all batches into <folder>/staging."""
    folder, contracts = Path(folder), _contracts()
    done, rows = simulate(seed, scale), {}
    for source, business in done.items():
        for table, found in business.db.tables.items():
            is_closed = (source, table) == CLOSED
            rows.setdefault(table, {}).update({} if is_closed else {(source, *key): row for key, row in found.items()})
    feed = Feed(
        folder,
        [[] for _ in range(NUM_BATCHES)],
        rows,
        {s: len(b.db.log) for s, b in done.items()},
        dict.fromkeys(done, 0),
        dict.fromkeys(done, 0),
        done["shop"].underpaid,
    )
    feed_shop.write(feed, done["shop"], contracts, random.Random(f"feed {seed}"))
    for source in DEPOTS:
        feed_depots.write_extracts(feed, source, done[source], contracts)
    feed_depots.write_journals(feed, done["depot_nagoya"], contracts)
    feed_returns.write(feed, done["returns"])
    feed_carrier.write(feed, done["carrier"], random.Random(f"trail {seed}"))
    return feed


def _contracts() -> dict[str, list[tuple[str, str]]]:
    """Columns of each table with their types at the source, from the project's contracts."""
    given = [
        yaml.safe_load(p.read_text(encoding="utf-8")) for p in sorted((ROOT / "pipelines" / "tables").glob("*.yml"))
    ]
    return {t["table"]: [(c["name"], c.get("source_type")) for c in t["columns"]] for t in given}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--deliver", action="store_true", help="move every batch into landing at once")
    given = parser.parse_args()
    feed = write_feed(given.folder, given.seed, given.scale)
    for batch in range(1, NUM_BATCHES + 1) if given.deliver else ():
        feed.deliver(batch)
    print(
        f"{given.folder}: {sum(feed.num_changes.values())} changes in {sum(map(len, feed.batches))} files, "
        f"{NUM_BATCHES} batches"
    )


if __name__ == "__main__":
    main()
