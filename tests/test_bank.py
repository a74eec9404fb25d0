"""Money only moves: whoever reads the public tables sees the same sum, whatever the writer is doing, also while it is killed.

`make proof` kills the writer 50 times and reads 10,000 times or more (INLET_KILLS and INLET_READS say otherwise, as the gate does); `make
soak` 500 and 100,000 times. Two readers go on all the while: a Spark process that queries the public views, through the catalog's server, and
delta-rs, which is faster, at the versions that each published point names.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from inlet import catalog, gold, publish
from tests import bank, reference
from tests.postgres import free_port
from tests.streams import COLUMNS, KEY

pytestmark = pytest.mark.proof
IS_SOAK = "INLET_SOAK" in os.environ
NUM_READS, NUM_KILLS = (100_000, 500) if IS_SOAK else (int(os.environ.get("INLET_READS", 10_000)), int(os.environ.get("INLET_KILLS", 50)))
REPO = Path(__file__).resolve().parents[1]


def balances(lakehouse: str, point: dict) -> pa.Table:
    """table, account, balance at a published point: delta-rs reads the Delta versions that it names."""
    import deltalake

    upto, versions, query = dict(point["points"]).get("bank", ""), dict(point["versions"]), deltalake.QueryBuilder()
    bodies = []
    for name in bank.TABLES:
        for step, where in (("current", f"valid_from_seq <= '{upto}'"), ("past", f"valid_from_seq <= '{upto}' and valid_to_seq > '{upto}'")):
            table = f"{name}__{step}"
            query.register(table, deltalake.DeltaTable(f"{lakehouse}/gold/{table}", version=versions[table]))
            bodies.append(f"select '{name}' as name, item, price from {table} where {where}")
    return pa.table(query.execute(" union all ".join(bodies)).read_all())


def test_the_sum_is_the_same_in_every_read_while_the_writer_is_killed(tmp_path):
    lakehouse, num_transfers, num_batches = str(tmp_path / "lakehouse"), 20 * NUM_KILLS, NUM_KILLS + 4
    here = bank.make(tmp_path / "project", lakehouse)
    num_reads = num_points = 0
    last = None
    with catalog.served(free_port()) as (environment, _):
        writing = Writing([tmp_path / "project", lakehouse, num_transfers, num_batches], environment)
        writing.start()
        asking = Asking(lakehouse, environment)
        while num_reads < NUM_READS or writing.is_alive():
            point = publish.newest(here)
            if not point or not dict(point["points"]).get("bank"):
                assert writing.is_alive(), writing.error
                time.sleep(0.1)
                continue
            asking.ident or asking.start()
            rows = balances(lakehouse, point)
            assert sum(rows["price"].to_pylist()) == bank.TOTAL, (point, rows.to_pylist())
            num_reads, num_points = num_reads + 1, num_points + (point["number"] != last)
            last = point["number"]
            time.sleep(0.1)                                                # else the writer gets nothing of two cores
        asking.end()
    print(f"{num_reads} reads, {len(asking.answers)} queries of the views, {num_points} points, {writing.num_kills} kills")
    assert writing.num_kills == NUM_KILLS and not writing.error and num_points > num_batches // 3, writing.error
    assert len(asking.answers) > 3 * NUM_KILLS and set(asking.answers) == {str(bank.TOTAL)} and not asking.error, (set(asking.answers), asking.error)
    made = bank.changes(num_transfers)
    wanted = {(name, *v.key[1:]): v.values["PRICE"] for name in bank.TABLES
              for v in reference.current(reference.fold([c for c in made if c.table == f"SHOP.{name.upper()}"], KEY, COLUMNS)[0])}
    assert {(r["name"], r["item"]): r["price"] for r in balances(lakehouse, publish.newest(here)).to_pylist()} == wanted


class Writing(threading.Thread):
    """Runs the writer to its end, and kills it on the way: a random while after a random step has begun, be it mending what the last kill left."""

    def __init__(self, args: list, environment: dict[str, str]):
        super().__init__(daemon=True)
        self.command, self.environment = [sys.executable, "-m", "tests.bank", "write", *map(str, args)], os.environ | environment
        self.num_kills, self.error = 0, None

    def run(self):
        rng = random.Random(4)
        while True:
            writer = subprocess.Popen(self.command, cwd=REPO, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      start_new_session=True)
            if self.num_kills < NUM_KILLS:
                steps = [writer.stdout.readline().strip() for _ in range(rng.randint(1, 6))]
                time.sleep(rng.uniform(0.0, 8.0))
                if writer.poll() is not None:
                    self.error = f"the writer ended by itself after {self.num_kills} kills: {writer.stderr.read()}"
                    return
                os.killpg(writer.pid, signal.SIGKILL)
                writer.wait()
                self.num_kills += 1
                print(f"{time.strftime('%H:%M:%S')} kill {self.num_kills}: {' '.join(steps)}", flush=True)
            else:
                _, said = writer.communicate()
                self.error = said if writer.returncode else None
                return


class Asking(threading.Thread):
    """Keeps what the reader of the public views says, until it is ended."""

    def __init__(self, lakehouse: str, environment: dict[str, str]):
        super().__init__(daemon=True)
        self.command, self.environment = [sys.executable, "-m", "tests.bank", "read", lakehouse], os.environ | environment
        self.answers, self.error, self.reader, self.is_ended = [], None, None, False

    def run(self):
        self.reader = subprocess.Popen(self.command, cwd=REPO, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       start_new_session=True)
        self.answers += map(str.strip, self.reader.stdout)
        self.error = None if self.is_ended else self.reader.stderr.read()

    def end(self):
        self.is_ended = self.reader.poll() is None
        with contextlib.suppress(ProcessLookupError):                          # it ended by itself: `error` says why
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
            except Exception as error:              # whatever it is, the test shows it
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
