"""A small batch of silver is what Spark makes of it, row by row, whatever its codecs, in whatever batches it comes."""

import random
import shutil

import pytest

from inlet import bronze, silver
from inlet.silver import other_rows, recover, small_batches, small_transactions, transactions
from tests import test_pipeline
from tests.conftest import ALL_ROUNDS
from tests.goldengate_streams import How
from tests.test_pipeline import write_goldengate, write_journals, write_linkexpress, write_qlik
from tests.test_silver import stored

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
    project = test_pipeline.make_project(tmp_path, lakehouse, sources)
    written, write = set(), small_batches.write
    for batch in range(test_pipeline.NUM_BATCHES):
        shutil.copytree(tmp_path / "delivery" / str(batch), tmp_path / "landing", dirs_exist_ok=True)
        new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
        bronze.land(project, spark, new)
        before = stored(spark, project.sources)
        with monkeypatch.context() as patched:
            patched.setattr(small_batches, "write", lambda *given: written.update(found := write(*given)) or found)
            if batch:  # there is room for some sources alone
                patched.setattr(small_batches, "NUM_RECORDS", 60 * small_batches.MESSAGE)
            accounts, small = silver.run(project, spark, new.batch_id), stored(spark, project.sources)
        forget(spark, project, new.batch_id)
        assert stored(spark, project.sources) == before
        with monkeypatch.context() as patched:
            patched.setattr(small_batches, "write", lambda *given: set())
            if batch != 1:
                patched.setattr(small_transactions, "update", lambda *given: False)
            if batch != 2:  # as a large batch
                patched.setattr(transactions, "NUM_SMALL", -1)
            if batch != 1:  # blocks are decoded again for rows that are no changes
                patched.setattr(other_rows, "collector", lambda *given: None)
            assert (accounts, small) == (silver.run(project, spark, new.batch_id), stored(spark, project.sources))
    is_plain = lambda name: "plain" in name and "transport" not in sources[name]["from"]  # noqa: E731  a queue is none
    assert written >= set(filter(is_plain, sources))


def forget(spark, project, batch_id: int) -> None:
    """Take a batch out of the ledger, as if it had not been decoded."""
    sources = ", ".join(f"'{name}'" for name in project.sources)
    for table in ("silver.batches", "silver.table_versions"):
        spark.sql(f"delete from {table} where batch_id = {batch_id} and source in ({sources})")
    recover.run(project, spark, batch_id, f"source in ({sources})")
