"""The files of the demo's feeds: batch by batch in a staging folder, from where they are delivered."""

import os
from dataclasses import dataclass
from pathlib import Path

NUM_BATCHES = 4


@dataclass
class Feed:
    """What `write_feed` wrote. Numbers are what the ledger must show when all is delivered."""

    folder: Path
    batches: list[list[Path]]  # files in staging, relative to it
    expected: dict[str, dict[tuple, dict]]  # {table: {(source, key...): row}}
    num_changes: dict[str, int]  # per source, the full load included, repeats not
    num_repeats: dict[str, int]
    num_rejected: dict[str, int]
    underpaid: set[int]  # orders whose payments do not sum to their lines

    def deliver(self, batch: int, landing: Path | None = None) -> list[Path]:
        """Move the files of batch 1, 2, ... into landing (default: <folder>/landing). Out: their new places."""
        moved = []
        for path in self.batches[batch - 1]:
            to = (landing or self.folder / "landing") / path.relative_to(path.parts[0])
            to.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.folder / "staging" / path, to)
            moved.append(to)
        return moved


def staged(feed: Feed, batch: int, source: str, name: str) -> Path:
    path = Path(f"{batch + 1:02d}") / source / name
    feed.batches[batch].append(path)
    (feed.folder / "staging" / path).parent.mkdir(parents=True, exist_ok=True)
    return feed.folder / "staging" / path


def quarters(log: list) -> list[list]:
    """The changes after the full load, cut between transactions into as many parts as there are batches."""
    changes = [c for c in log if c.transaction]
    last = changes[-1].transaction
    parts = [[] for _ in range(NUM_BATCHES)]
    for c in changes:
        parts[(c.transaction - 1) * NUM_BATCHES // last].append(c)
    return parts
