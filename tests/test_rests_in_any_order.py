"""Property: however the files of an ordered feed grow, whichever codec, a broken one or the fixed one, reads them, and
whatever is replayed in between, bronze comes to the same records and verdicts as when all of them are delivered whole
to the fixed codec. Bronze's tables are lists here, so that no Spark is needed.
"""

import json
import pickle
import random
import shutil
from types import SimpleNamespace

import pytest

from inlet import bronze
from inlet.bronze import blocks, file_rows, framing, ordered, reframing, rests
from inlet.codecs import CODECS
from inlet.unit import FILES
from tests import projects
from tests.test_framed_again import BROKEN, COLUMNS
from tests.test_toy import NOTES
from tests.toy import codec as toy
from tests.toy import encode

NUM_FILES, NUM_STREAMS = 3, 60


class Lakehouse:
    """Bronze of one source of toy logs, in lists."""

    def __init__(self, root, monkeypatch):
        self.files: list[dict] = []
        self.blocks: list[dict] = []
        self.replays: list[dict] = []
        self.unresolved: set[str] = set()
        self.folder = root / "landing" / "s"
        self.folder.mkdir(parents=True)
        self.project = projects.make(root, {"s": {"codec": "toy", "from": "landing/s"}}, [NOTES])
        for module in (file_rows, ordered):
            monkeypatch.setattr(module, "apart", lambda call, *paths: call())  # a child for each plan takes its time
        monkeypatch.setattr(reframing, "in_child", lambda call: call())

    def opened(self, monkeypatch) -> None:
        """Let bronze's modules read and write these lists."""
        monkeypatch.setattr(reframing, "History", lambda project: self.history())
        peek = lambda *given: [dict(row) for row in self.blocks]  # noqa: E731
        monkeypatch.setattr(rests, "lake", SimpleNamespace(peek=peek))
        added = lambda lakehouse, table, rows, **once: self.files.extend(rows)  # noqa: E731
        monkeypatch.setattr(reframing, "lake", SimpleNamespace(append=lambda *given: None, add_rows=added))
        monkeypatch.setattr(reframing, "_stage", lambda spark, rest, file: file.write_bytes(self._bytes(rest.pieces)))
        monkeypatch.setattr(reframing, "_write", lambda spark, out: self._append(_pickled(out)))

    def _bytes(self, pieces: list[dict]) -> bytes:
        by_unit = {row["unit_id"]: row["bytes"] for row in self.blocks}
        return b"".join(by_unit[piece["unit_id"]] for piece in pieces)

    def _append(self, rows: list[dict]) -> None:
        self.blocks += rows
        self.unresolved |= {row["unit_id"] for row in rows if '"problem"' in row["context"]}

    def history(self) -> bronze.History:
        return bronze.History(self.project, self.files, self.replays)

    def land(self) -> bronze.Plan:
        new = bronze.plan_batch(self.project, list(self.project.sources.values()), self.history())
        for row in new.files:
            self._append(list(blocks.units_of(self.project, row)))
        self.files += new.files
        return new

    def replay(self, unit: str | None = None) -> None:
        """As commands/replay.py chooses: all, or one with what it is framed with."""
        of_files = rests.rests(self.project, self.history(), self.unresolved)
        chosen = {unit} if unit else set(self.unresolved)
        found = [rest for rest in of_files.values() if rest.units & chosen]
        if not found:
            return
        assert all(rest.is_whole for rest in found)
        units = set().union(*(rest.units for rest in found)) & self.unresolved
        batch_id = self.history().next_batch
        self.replays += [{"source": "s", "unit_id": u, "unit_offset": 0, "batch_id": batch_id} for u in units]
        before = len(self.blocks)
        reframing.frame_again(
            self.project, SimpleNamespace(sql=lambda query: None, createDataFrame=self._frame), batch_id
        )
        assert sum(row["size_bytes"] for row in self.blocks[before:]) == sum(rest.size_bytes for rest in found)
        self.unresolved -= units

    def _frame(self, rows: list[tuple], schema: str):
        self.files += [dict(zip([c.name for c in FILES], row)) for row in rows]
        return SimpleNamespace(coalesce=lambda num: None)

    def records(self) -> list[tuple]:
        """What stands and what was rejected, as silver would decode it by the verdicts."""
        found, source = [], self.project.sources["s"]
        judged = [verdict for row in self.files for verdict in json.loads(row["verdicts"] or "[]")]
        for path, start, end, _, landed_by, verdict in judged:
            for block in self.blocks:
                at, context = block["file_offset"], json.loads(block["context"])
                if (block["path"], block["batch_id"]) != (path, landed_by) or "problem" in context:
                    continue
                decoded = toy.decode(block["bytes"], context, source, self.project.tables_of(source))
                names = ("change_seq", "after", "transaction_id", "transaction_event_counter", "transaction_last_event")
                rows = [(row["unit_offset"], tuple(str(row.get(name)) for name in names)) for row in decoded.changes]
                rows += [(reject.unit_offset, (reject.kind,)) for reject in decoded.rejects]
                found += [(verdict, *row) for offset, row in rows if start <= at + offset < end]
        return sorted(row for row in found if row[0] == "stands")


def _pickled(out) -> list[dict]:
    rows = []
    with out.open("rb") as stream:
        while stream.peek(1):
            rows.append(pickle.load(stream))
    return rows


def feed(rng: random.Random) -> list[bytes]:
    """Files of inserts, transactions over file borders, restarts, and records that the broken codec cannot read."""
    files, number, open_, transactions = [], 0, None, 0
    for n in range(1, NUM_FILES + 1):
        records = [COLUMNS] if n == 1 or rng.random() < 0.2 else []
        if rng.random() < 0.25:
            records.insert(0, ("ddl", "stuck"))  # where the broken codec cannot even open the file
        for _ in range(rng.randint(1, 10)):
            kind = rng.choices(("stuck", "begin", "commit", "restart", "insert"), (15, 15, 10, 10, 50))[0]
            if kind == "stuck":
                records.append(("ddl", "stuck"))
            elif kind == "begin" and not open_:
                transactions += 1
                open_ = f"T{transactions}"
                records.append(("begin", open_))
            elif kind in ("commit", "restart") and open_:
                records.append(("commit", open_) if kind == "commit" else ("restart",))
                open_ = None
            else:
                number += 1
                records.append(("insert", "TOY.NOTES", [number, "t" * rng.randint(0, 30)]))
        if n == NUM_FILES and open_:
            records.append(("commit", open_))
        files.append(encode.file(n, *records))
    return files


@pytest.mark.parametrize("seed", range(NUM_STREAMS))
def test_replays_and_growth_in_any_order_come_to_the_same(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(framing, "LEN_BLOCK", 100)
    files, ends = feed(rng), [0] * NUM_FILES
    monkeypatch.setitem(CODECS, "toy", toy)
    straight, here = Lakehouse(tmp_path / "straight", monkeypatch), Lakehouse(tmp_path / "here", monkeypatch)
    straight.opened(monkeypatch)
    for n, data in enumerate(files, 1):
        (straight.folder / f"{n}.toy").write_bytes(data)
    for _ in range(2):
        straight.land()
    here.opened(monkeypatch)
    for _ in range(rng.randint(3, 10)):
        monkeypatch.setitem(CODECS, "toy", rng.choice((BROKEN, BROKEN, toy)))
        for n in range(NUM_FILES):
            # the first file comes first: a source is begun with the least place that is there
            may_come = n == 0 or any(row["path"].endswith("/1.toy") for row in here.files)
            if may_come and ends[n] < len(files[n]) and rng.random() < 0.5:
                ends[n] = min(len(files[n]), ends[n] + rng.randint(1, len(files[n])))
                (here.folder / f"{n + 1}.toy").write_bytes(files[n][: ends[n]])
        here.land()
        if rng.random() < 0.5:
            monkeypatch.setitem(CODECS, "toy", rng.choice((BROKEN, toy, toy)))
            here.replay(rng.choice(sorted(here.unresolved)) if here.unresolved and rng.random() < 0.5 else None)
    monkeypatch.setitem(CODECS, "toy", toy)
    for n, data in enumerate(files, 1):
        (here.folder / f"{n}.toy").write_bytes(data)
    for _ in range(8):
        held = here.land().held
        here.replay()
    assert (here.unresolved, held) == (set(), {})
    assert here.records() == straight.records() != []
    ordered.undecided(here.project.sources["s"], here.files)
    shutil.rmtree(tmp_path)
