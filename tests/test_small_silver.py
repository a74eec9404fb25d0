"""A small batch of silver is what Spark makes of it, row by row, whatever its codecs, in whatever batches it comes."""

import random
import shutil

import deltalake
import pytest

from inlet import bronze, silver
from inlet.silver import other_rows, recover, small_batches, small_transactions, transactions
from inlet.silver.batch import Account, Batch
from tests import test_pipeline
from tests.conftest import ALL_ROUNDS
from tests.goldengate_streams import How
from tests.stored import stored
from tests.test_pipeline import write_goldengate, write_journals, write_linkexpress, write_qlik

pytestmark = [pytest.mark.rounds]
NUM_STREAMS = 2 if ALL_ROUNDS else 1  # of each kind
WRITERS = write_qlik, write_linkexpress, write_goldengate, write_journals


@pytest.fixture
def sources(tmp_path, monkeypatch) -> dict:
    """Random streams of each family, as they come; and plain ones, in order, without loads, resent or late records."""
    found = {}
    for n in range(NUM_STREAMS):
        for write in WRITERS:
            name = f"{write.__name__.removeprefix('write_')}_of_any_kind_{n:03d}"
            found[name], _ = write(random.Random(name), name, tmp_path / "delivery")
    with monkeypatch.context() as patched:
        changes_of = test_pipeline.random_stream
        patched.setattr(test_pipeline, "random_stream", lambda rng: [([], own) for _, own in changes_of(rng)])
        patched.setattr(test_pipeline, "deliver", in_order)
        patched.setattr(test_pipeline.goldengate_streams, "How", lambda **given: How(restarts=0, rolls=0))
        for n in range(NUM_STREAMS):
            for write in (write_qlik, write_linkexpress, write_goldengate):
                name = f"{write.__name__.removeprefix('write_')}_that_is_plain_{n:03d}"
                found[name], _ = write(random.Random(name), name, tmp_path / "delivery")
    return {name: {k: v for k, v in of.items() if k not in ("checkpoints", "arrivals")} for name, of in found.items()}


def in_order(rng, rows: list[dict], is_load: list[bool]) -> list[list[dict]]:
    size = -(-len(rows) // test_pipeline.NUM_BATCHES)
    return [rows[n : n + size] for n in range(0, len(rows), size)]


def test_a_batch_is_the_same_with_spark_and_without(spark, lakehouse, tmp_path, monkeypatch, sources):
    """What is written without Spark is forgotten again, and Spark decodes the whole batch. Transactions are told apart
    by Spark in the first one; test_transactions.py holds all ways equal."""
    project = test_pipeline.make_project(tmp_path, lakehouse, sources)
    all_written, write = set(), small_batches.write

    def write_alone(batch: Batch, files) -> set[str]:
        """Write what goes without Spark; of the other sources nothing may have been written or counted."""
        written, of_batch = write(batch, files), set(batch.sources)
        others = sorted(of_batch - written)
        assert written and [batch.account(name) for name in others] == [Account()] * len(others)
        assert stored(lakehouse, others) == {name: before[name] for name in others}
        batch.sources, batch.accounts = sorted(written), {name: batch.accounts[name] for name in written}
        return of_batch

    for number in range(test_pipeline.NUM_BATCHES):
        shutil.copytree(tmp_path / "delivery" / str(number), tmp_path / "landing", dirs_exist_ok=True)
        new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
        bronze.land(project, spark, new)
        before = stored(lakehouse, project.sources)
        with monkeypatch.context() as patched:
            patched.setattr(small_batches, "write", write_alone)
            if number:  # there is room for some sources alone
                patched.setattr(small_batches, "NUM_RECORDS", 60)
            accounts = silver.run(project, spark, new.batch_id)
        small = stored(lakehouse, accounts)
        all_written |= small.keys()
        forget(spark, project, new.batch_id)
        assert stored(lakehouse, project.sources) == before
        with monkeypatch.context() as patched:
            patched.setattr(small_batches, "write", lambda *given: set())
            if number == 0:
                patched.setattr(small_transactions, "update", lambda *given: False)
            if number != 2:  # as a large batch
                patched.setattr(transactions, "NUM_SMALL", -1)
            if number != 1:  # blocks are decoded again for rows that are no changes
                patched.setattr(other_rows, "collector", lambda *given: None)
            by_spark = silver.run(project, spark, new.batch_id)
        assert accounts == {name: by_spark[name] for name in accounts}
        assert small == stored(lakehouse, small)
    is_plain = lambda name: "plain" in name and "transport" not in sources[name]["from"]  # noqa: E731  a queue is none
    assert all_written >= set(filter(is_plain, sources))


def forget(spark, project, batch_id: int) -> None:
    """Take a batch out of the ledger, as if it had not been decoded."""
    sources = ", ".join(f"'{name}'" for name in project.sources)
    for table in ("silver.batches", "silver.table_versions"):
        of_batch = f"batch_id = {batch_id} and source in ({sources})"
        deltalake.DeltaTable(project.lakehouse_path(*table.split("."))).delete(of_batch)
    recover.run(project, spark, batch_id, f"source in ({sources})")
