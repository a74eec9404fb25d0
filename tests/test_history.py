"""The history of what was read, held equal to plain definitions over random lakehouses: rows of this Inlet and of an
earlier one (without a cause), in lists and in Delta tables. And its cost: what a question reads follows what it asks.
"""

import json
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from inlet import bronze, gold
from inlet.bronze import history, kafka
from inlet.commands import run as running
from inlet.gold import progress
from inlet.lake import snapshots
from inlet.silver import parts
from inlet.unit import FRAMED_AGAIN, PLANNED, REREAD, SET_ASIDE
from tests import aged, lakes, projects
from tests.test_redelivered_file import CARGO, TRAIL, message, put, trail_of_three

ROOT = Path(__file__).parent.parent
NUM_LAKEHOUSES = 40
SOURCES = {
    "depot": projects.DEPOT | {"from": "landing/depot/*"},
    "shop": {"codec": "qlik_json", "from": "landing/shop/*"},
    "topic": {"codec": "qlik_json", "from": {"transport": "kafka", "servers": "localhost:1", "topics": ["t"]}},
}


def read_again(rows: list[dict], broker: str) -> set[tuple]:
    """(source, path, batch) of batches that read a file again from its first byte."""
    first, found = dict[tuple, int](), set[tuple]()
    for row in sorted(rows, key=lambda row: row["batch_id"]):
        place = row["source"], row["path"]
        if row["problem"] or row["source"] == broker:
            continue
        if first.get(place, row["batch_id"]) < row["batch_id"] and row["ofs_start"] == 0 and row["num_units"]:
            found.add((*place, row["batch_id"]))
        if row["ofs_end"]:
            first.setdefault(place, row["batch_id"])
    return found


def last_rows(rows: list[dict], replays: list[dict]) -> dict[tuple, int]:
    """(source, path) -> the batch of its newest row, but for those that framed it again."""
    again = {row["batch_id"] for row in replays}
    return {
        (row["source"], row["path"]): row["batch_id"]
        for row in sorted(rows, key=lambda row: row["batch_id"])
        if row["batch_id"] not in again
    }


def unfinished(rows: list[dict], done: set[tuple]) -> list[int]:
    return sorted({row["batch_id"] for row in rows if (row["batch_id"], row["source"]) not in done})


def a_lakehouse(rng: random.Random) -> tuple[list[dict], list[dict], set[tuple[int, str]]]:
    """Rows of bronze.files with their causes, of bronze.replays, and (batch, source) of the ledger. Files grow, are
    read again, are refused, are set aside and planned again, could not be framed and are framed again; the topic is
    read, lost and made again.
    """
    rows, replays, done = list[dict](), list[dict](), set[tuple[int, str]]()
    ends: dict[tuple[str, str], int] = {}
    for batch_id in range(1, rng.randint(2, 12)):
        source = rng.choice(["depot", "shop", "topic"])
        paths = ["t/0", "t/1"] if source == "topic" else [f"landing/{source}/{n}'s" for n in range(3)]
        for path in rng.sample(paths, rng.randint(1, len(paths))):
            place = source, path
            end, kind = ends.get(place, 0), rng.choice(["grows", "again", "refused", "aside", "framed", "blanks"])
            context = {"topic_id": "id"} if source == "topic" else {"offsets": {f"{path}/0": [0, 9, False]}}
            row = lakes_row(source, path, batch_id, end, end + rng.randint(1, 9), json.dumps(context))
            if kind == "again" and end and source != "topic":
                row |= {"ofs_start": 0, "cause": REREAD}
            elif kind in ("refused", "aside"):
                at = history.EPOCH if kind == "aside" else lakes.BEGAN
                row |= {"ofs_end": end, "num_units": 0, "problem": "{}", "modified_at": at}
                row |= {"cause": SET_ASIDE if kind == "aside" else PLANNED}
            elif kind == "framed" and end and source != "topic":
                row |= {"ofs_start": end, "ofs_end": end, "num_units": 0, "cause": FRAMED_AGAIN}
            elif kind == "blanks":
                row |= {"num_units": 0}
            if row["ofs_start"] == 0 and end and source == "topic":
                row |= {"cause": PLANNED}  # made again: its offsets begin again
            rows.append(row)
            ends[place] = max(row["ofs_end"], end)
        own = [row for row in rows if row["batch_id"] == batch_id]
        if any(row["cause"] == FRAMED_AGAIN for row in own):  # a batch frames files again, and reads no other
            rows = [row for row in rows if row["batch_id"] != batch_id or row["cause"] == FRAMED_AGAIN]
        if any(row["cause"] == FRAMED_AGAIN for row in own) or rng.random() < 0.2 and not own:
            unit = {"source": source, "unit_id": f"{source}/u@0", "unit_offset": 0, "rejected_in": 1}
            replays += [unit | {"batch_id": batch_id, "unit_length": 1, "num_records": 1}] * rng.randint(1, 2)
        if rng.random() < 0.8:
            done |= {(row["batch_id"], row["source"]) for row in own}
    return rows, replays, done


def lakes_row(source: str, path: str, batch_id: int, start: int, end: int, context: str) -> dict:
    given = {"source": source, "path": path, "batch_id": batch_id, "ofs_start": start, "ofs_end": end}
    told = {"context": context, "num_units": 1, "size_bytes": end, "problem": None, "modified_at": lakes.BEGAN}
    return given | told | {"cause": PLANNED, "verdicts": None}


def keyed(readings: Iterable[history.Reading]) -> list[tuple]:
    return sorted((*row.place, row["batch_id"], row["ofs_start"], row.cause) for row in readings)


@pytest.mark.parametrize("seed", range(NUM_LAKEHOUSES))
def test_each_question_is_answered_as_by_reading_all(tmp_path, seed):
    rng = random.Random(seed)
    rows, replays, done = a_lakehouse(rng)
    project = projects.make(tmp_path, SOURCES, [projects.ITEMS])
    is_old = rng.random() < 0.5
    known = [row | {"cause": None} if is_old or rng.random() < 0.3 else row for row in rows]
    if known:
        lakes.write(project, "bronze.files", *known)
    if replays:
        lakes.write(project, "bronze.replays", *replays)
    for batch_id, source in done:
        lakes.write(project, "silver.batches", lakes.batch(batch_id, source, lakes.seq(1)))
    everything = keyed(history.Reading(row) for row in rows)
    of_topic = [row for row in rows if row["source"] == "topic"]
    for past in (bronze.History(project, known, replays, done), bronze.History(project)):
        readings = past.readings()
        assert keyed(readings) == everything
        again = {(*row.place, row["batch_id"]) for row in readings if row.cause == REREAD}
        assert again == read_again(rows, "topic")
        last = {place: row["batch_id"] for place, row in history.last(readings).items()}
        assert last == last_rows(rows, replays)
        assert past.next_batch == 1 + max((row["batch_id"] for row in [*rows, *replays]), default=0)
        assert past.unfinished() == unfinished([*rows, *replays], done)
        for source in SOURCES:
            of_source = [one for one in everything if one[0] == source]
            assert keyed(past.of_source(source)) == of_source
            assert past.is_known(source) == bool(of_source)
            assert past.num_files().get(source, 0) == len({path for _, path, *_ in of_source})
            assert past.paths(source) == sorted({r["path"] for r in rows if r["source"] == source and not r["problem"]})
            asked = {path for _, path, *_ in of_source if rng.random() < 0.5}
            assert keyed(past.of_files([source], asked)) == [one for one in of_source if one[1] in asked]
        for batch_id in range(1, past.next_batch):
            assert keyed(past.of_batch(batch_id)) == [one for one in everything if one[2] == batch_id]
            assert len(past.replays_of(batch_id)) == any(row["batch_id"] == batch_id for row in replays)
        newest = {(r["source"], r["path"]): r for r in sorted(rows, key=lambda r: r["batch_id"])}
        assert {row.place for row in past.refused()} == {place for place, row in newest.items() if row["problem"]}
        in_order = sorted(of_topic, key=lambda r: (r["batch_id"], r["problem"] is None, r["ofs_end"]))
        partitions = sorted(
            past.of_partitions("topic"), key=lambda r: (r["batch_id"], r["problem"] is None, r["ofs_end"])
        )
        assert kafka._progress(partitions) == kafka._progress(in_order)


def test_files_in_an_order_are_planned_from_tables_as_from_rows(tmp_path):
    """Their codec reads them in a process of its own, where the lakehouse cannot be read."""
    project = projects.make(tmp_path, {"hurt": TRAIL | {"from": "landing/hurt"}}, [CARGO])
    sources, (first, *others) = list(project.sources.values()), trail_of_three().files
    put(tmp_path, "hurt", *first)
    rows = bronze.plan_batch(project, sources, bronze.History(project)).files
    lakes.write(project, "bronze.files", *rows)
    for name, data in others:
        put(tmp_path, "hurt", name, data)
    from_tables = bronze.plan_batch(project, sources, bronze.History(project)).files
    assert from_tables == bronze.plan_batch(project, sources, bronze.History(project, rows)).files
    assert [(row["batch_id"], row["cause"]) for row in from_tables] == [(2, PLANNED)] * 2


def aged_project(root: Path, num_files: int, num_batches: int):
    """A stream of files of which the last one is delivered still, and a new one; all before it is done."""
    source = {"codec": "qlik_json", "settle_minutes": 0}
    source |= {"from": {"transport": "lines", "path": "landing/depot/2026/*.jsonl"}}
    project = projects.make(root, {"depot": source}, [projects.ITEMS])
    shutil.copytree(ROOT / "expectations", root / "expectations")
    aged.write(project, "depot", num_files, num_batches)
    (root / "landing" / "depot" / "2026").mkdir(parents=True)
    (root / aged.path(num_files - 1)).write_bytes(b" " * 4096)
    os.utime(root / aged.path(num_files - 1), (lakes.BEGAN.timestamp(),) * 2)
    (root / aged.path(num_files)).write_bytes(message(1, "one") + b"\n")
    return project


def test_looking_for_work_gives_python_as_many_rows_of_an_old_lakehouse_as_of_a_new_one(tmp_path, monkeypatch):
    """What is counted are rows that leave the engine: what they cost in it, the bench says. Results of checks up
    to the last one that left nothing owed are not read at all: their files are gone.
    """
    given: list[int] = []
    rows_of = snapshots.rows_of
    monkeypatch.setattr(snapshots, "rows_of", lambda table: given.append(table.num_rows) or rows_of(table))
    counted, found = [], []
    for num_files, num_batches in ((100, 10), (100_000, 10_000)):
        project = aged_project(tmp_path / str(num_files), num_files, num_batches)
        for file in Path(project.lakehouse_path("checks", "results")).glob("*.parquet"):
            file.unlink()
        given.clear()
        work = running.find_work(project, running.steps_to_run(None, "gold"), [], [])
        counted.append(sum(given))
        found.append(([f["path"] for f in work.plan.files], work.plan.batch_id, work.unlanded, work.due))
        assert not work.is_unchecked and gold.lagging(*progress.state(project), project.tables.values()) == {}
    assert found == [([aged.path(n)], b + 1, [], []) for n, b in ((100, 10), (100_000, 10_000))]
    assert counted[0] == counted[1] < 30


@pytest.mark.parametrize("seed", range(NUM_LAKEHOUSES))
def test_parts_that_wait_are_those_whose_last_row_is_not_settled(tmp_path, seed):
    """Of batches in the ledger. Parts wait, are settled, in the same batch or later, and wait again."""
    rng, project = random.Random(seed), projects.make(tmp_path)
    rows = [
        {
            "source": rng.choice("st"),
            "part_key": rng.choice("kl"),
            "unit_id": rng.choice("uv"),
            "unit_offset": rng.randint(0, 1),
            "unit_length": 3,
            "is_settled": rng.random() < 0.5,
            "batch_id": rng.randint(1, 4),
        }
        for _ in range(rng.randint(1, 40))
    ]
    lakes.write(project, "silver.waiting", *rows)
    done = {(source, batch) for source in "st" for batch in range(1, 5) if rng.random() < 0.7}
    lakes.write(project, "silver.batches", *({"source": source, "batch_id": batch} for source, batch in done))
    last, settled = dict[tuple, dict](), dict[tuple, int]()
    for row in sorted(rows, key=lambda row: (row["batch_id"], row["is_settled"])):
        place = tuple(row[name] for name in parts.PLACE)
        if (row["source"], row["batch_id"]) in done:
            last[place] = row
        if row["is_settled"]:
            settled[place] = row["batch_id"]
    waits = {place: row["batch_id"] for place, row in last.items() if not row["is_settled"]}
    found = parts.waiting(project)
    assert {tuple(row[name] for name in parts.PLACE): row["batch_id"] for row in found} == waits
    assert len(found) == len(waits)
    come = {(place[0], place[4]): max(waits[w] for w in waits if w[::4] == place[::4]) for place in waits}
    again = {place[:3] for place, batch in settled.items() if come.get(place[::4], -1) >= batch}
    assert parts.returning(project) == again
