"""Money only moves: whoever reads the public tables sees the same sum, whatever the writer is doing, also while it is
killed.

`make proof` kills 50 times (INLET_KILLS says otherwise, as the gate does), `make soak` 500 times. One kill in five
meets `inlet run` on its whole way, from messages in files to the public views, the others a writer that begins at
silver. Two readers go on all the while: a Spark process that queries the public views, through the catalog's server,
and delta-rs, which is faster, at the versions that each published point names.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pytest

from inlet import gold, publish
from inlet.lake import catalog
from tests import bank, reference
from tests.postgres import free_port
from tests.streams import COLUMNS, KEY

pytestmark = pytest.mark.proof
NUM_KILLS = int(os.environ.get("INLET_KILLS", 500 if "INLET_SOAK" in os.environ else 50))
NUM_WHOLE_WAY = max(2, NUM_KILLS // 5)
NUM_FROM_SILVER = max(2, NUM_KILLS - NUM_WHOLE_WAY)
REPO = Path(__file__).resolve().parents[1]
SMALL_JVM = {"INLET_DRIVER_MEMORY": "1g"}


def balances(lakehouse: str, point: dict) -> pa.Table:
    """table, account, balance at a published point: delta-rs reads the Delta versions that it names."""
    import deltalake

    upto, versions, query = dict(point["points"]).get("bank", ""), dict(point["versions"]), deltalake.QueryBuilder()
    bodies = []
    for name in bank.TABLES:
        for step, where in (
            ("current", f"valid_from_seq <= '{upto}'"),
            ("past", f"valid_from_seq <= '{upto}' and valid_to_seq > '{upto}'"),
        ):
            table = f"{name}__{step}"
            query.register(table, deltalake.DeltaTable(f"{lakehouse}/gold/{table}", version=versions[table]))
            bodies.append(f"select '{name}' as name, item, price from {table} where {where}")
    return pa.table(query.execute(" union all ".join(bodies)).read_all())


def read_points(here, lakehouse: str, writing: threading.Thread, at_each=lambda: None) -> tuple[int, int]:
    """Sum up all balances at the newest published point, again and again while the writer works. Out: how many reads of
    how many points.
    """
    num_reads, seen = 0, set()
    while writing.is_alive():
        point = publish.newest(here)
        if point and dict(point["points"]).get("bank"):
            at_each()
            rows = balances(lakehouse, point)
            assert sum(rows["price"].to_pylist()) == bank.TOTAL, (point, rows.to_pylist())
            num_reads += 1
            seen.add(point["number"])
        time.sleep(0.1)  # else the writer gets nothing of two cores
    return num_reads, len(seen)


def wanted(made: list) -> dict:
    return {
        (name, *v.key[1:]): v.values["PRICE"]
        for name in bank.TABLES
        for v in reference.current(
            reference.fold([c for c in made if c.table == f"SHOP.{name.upper()}"], KEY, COLUMNS)[0]
        )
    }


def found(here, lakehouse: str) -> dict:
    return {(r["name"], r["item"]): r["price"] for r in balances(lakehouse, publish.newest(here)).to_pylist()}


def test_the_sum_is_the_same_in_every_read_while_the_writer_is_killed(tmp_path, record_property):
    lakehouse, num_transfers, num_batches = str(tmp_path / "lakehouse"), 20 * NUM_FROM_SILVER, NUM_FROM_SILVER + 2
    here = bank.make(tmp_path / "project", lakehouse)
    with catalog.served(free_port()) as (environment, _):
        writing = Writing([tmp_path / "project", lakehouse, num_transfers, num_batches], environment)
        writing.start()
        asking = Asking(lakehouse, environment)
        num_reads, num_points = read_points(here, lakehouse, writing, lambda: asking.ident or asking.start())
        asking.end()
    for name, value in (
        ("kills", writing.num_kills),
        ("reads", num_reads),
        ("points", num_points),
        ("queries of the views", len(asking.answers)),
    ):
        record_property(name, value)
    assert writing.num_kills == NUM_FROM_SILVER and not writing.error and num_points > num_batches // 3, writing.error
    assert num_reads > 20 * NUM_FROM_SILVER
    assert (
        len(asking.answers) > 3 * NUM_FROM_SILVER and set(asking.answers) == {str(bank.TOTAL)} and not asking.error
    ), (set(asking.answers), asking.error)
    assert found(here, lakehouse) == wanted(bank.changes(num_transfers))


@pytest.mark.gate
def test_the_sum_is_the_same_in_every_read_while_whole_runs_are_killed(tmp_path, record_property):
    """Killed in bronze, silver, gold and publish in turn, by what the run logs; a batch comes when the one before is
    through.
    """
    lakehouse, num_transfers, num_batches = str(tmp_path / "lakehouse"), 20 * NUM_WHOLE_WAY, 2 + NUM_WHOLE_WAY // 2
    here = bank.make(tmp_path / "project", lakehouse, bank.SOURCE)
    shutil.copytree(REPO / "expectations", here.root / "expectations")
    made = bank.changes(num_transfers)
    running = Running(here.root, bank.batches(made, num_batches))
    running.start()
    num_reads, num_points = read_points(here, lakehouse, running)
    for name, value in (
        ("kills", len(running.killed_in)),
        ("in", " ".join(running.killed_in)),
        ("reads", num_reads),
        ("points", num_points),
    ):
        record_property(name, value)
    assert len(running.killed_in) == NUM_WHOLE_WAY and not running.error and num_points >= num_batches // 2, (
        running.error
    )
    assert found(here, lakehouse) == wanted(made)


class Running(threading.Thread):
    """Delivers batch after batch and starts `inlet run` until each is through; kills it on the way, in one step after
    the other.
    """

    STEPS = {
        "spark": "bronze",
        "bronze": "silver",
        "silver": "gold",
        "gold": "publish",
    }  # the step that ends before each

    def __init__(self, root: Path, batches: list[list]):
        super().__init__(daemon=True)
        self.root, self.batches, self.killed_in, self.error = root, batches, [], None

    def run(self):
        rng, steps, offsets = random.Random(5), cycle(self.STEPS), dict.fromkeys(bank.TABLES, 0)
        for number, batch in enumerate(self.batches):
            bank.deliver(self.root, number, batch, offsets)
            code = None
            while code != 0:
                run = subprocess.Popen(
                    [sys.executable, "-m", "inlet.cli", "run", "--project", self.root],
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                    env=os.environ | SMALL_JVM,
                )
                is_killed = len(self.killed_in) < min(NUM_WHOLE_WAY, 2 * (number + 1))  # two of a batch
                logged = self._kill(run, rng, next(steps)) if is_killed else run.stderr.read()
                code = run.wait()
                if code not in (0, -signal.SIGKILL):
                    self.error = f"`inlet run` ended with {code} after kills in {self.killed_in}: {logged}"
                    return

    def _kill(self, run, rng, step: str) -> str:
        """A random while after a step has ended, shorter than what follows it. Out: what the run has logged by then."""
        logged = ""
        for line in run.stderr:
            logged += line
            if line.startswith("{") and json.loads(line).get("step") == step:
                time.sleep(rng.uniform(0.0, 1.5))
                break
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            self.killed_in.append(self.STEPS[step])
            print(
                f"{time.strftime('%H:%M:%S')} kill {len(self.killed_in)} of a whole run, in {self.STEPS[step]}",
                flush=True,
            )
        return logged


class Writing(threading.Thread):
    """Runs the writer to its end, and kills it on the way: a random while after a random step has begun, be it one that
    recovers from the last kill.
    """

    def __init__(self, args: list, environment: dict[str, str]):
        super().__init__(daemon=True)
        self.command, self.environment = (
            [sys.executable, "-m", "tests.bank", "write", *map(str, args)],
            os.environ | environment | SMALL_JVM,
        )
        self.num_kills, self.error = 0, None

    def run(self):
        rng = random.Random(4)
        while True:
            writer = subprocess.Popen(
                self.command,
                cwd=REPO,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            if self.num_kills < NUM_FROM_SILVER:
                steps = [writer.stdout.readline().strip() for _ in range(rng.randint(1, 5))]
                time.sleep(rng.uniform(0.0, 3.0))
                if writer.poll() is not None:
                    self.error = f"the writer ended by itself after {self.num_kills} kills: {writer.stderr.read()}"
                    return
                os.killpg(writer.pid, signal.SIGKILL)
                writer.wait()
                self.num_kills += 1
                print(f"{time.strftime('%H:%M:%S')} kill {self.num_kills}: {' '.join(steps)}", flush=True)
            else:
                _, errors = writer.communicate()
                self.error = errors if writer.returncode else None
                return


class Asking(threading.Thread):
    """Keeps what the reader of the public views says, until it is ended."""

    def __init__(self, lakehouse: str, environment: dict[str, str]):
        super().__init__(daemon=True)
        self.command, self.environment = (
            [sys.executable, "-m", "tests.bank", "read", lakehouse],
            os.environ | environment | SMALL_JVM,
        )
        self.answers, self.error, self.reader, self.is_ended = [], None, None, False

    def run(self):
        self.reader = subprocess.Popen(
            self.command,
            cwd=REPO,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.answers += map(str.strip, self.reader.stdout)
        self.error = None if self.is_ended else self.reader.stderr.read()

    def end(self):
        self.is_ended = self.reader.poll() is None
        with contextlib.suppress(ProcessLookupError):  # it ended by itself: `error` says why
            os.killpg(self.reader.pid, signal.SIGKILL)
        self.join()


def test_the_sum_is_the_same_in_every_query_of_the_public_views_while_gold_is_written(spark, lakehouse, tmp_path):
    here = bank.make(tmp_path / "project", lakehouse)
    batches = bank.batches(bank.changes(40, seed=7), 3)
    first = 1 + spark.sql("select coalesce(max(batch_id), -1) from silver.batches").first()[0]
    found, is_done = [], threading.Event()

    def read() -> None:
        mine = spark.newSession()
        while not is_done.is_set():
            try:
                found.append(mine.sql(bank.SUM).first()[0])
            except Exception as error:  # whatever it is, the test shows it
                found.append(error)

    reader = threading.Thread(target=read, daemon=True)
    for number, batch in enumerate(batches):
        bank.bring(spark, here, first + number, batch)
        gold.run(here, spark, list(bank.TABLES))
        publish.run(here, spark)
        if number == 0:
            reader.start()
    is_done.set()
    reader.join()
    assert len(found) > 3 and set(found) == {bank.TOTAL}
