"""A small batch of silver is what Spark makes of it, row by row, whatever its codecs, in whatever batches it comes."""

import random
import shutil

import pytest

from inlet import bronze, silver
from inlet.silver import recover, small_batches
from tests import test_pipeline
from tests.conftest import ALL_ROUNDS
from tests.test_pipeline import write_goldengate, write_journals, write_linkexpress, write_qlik
from tests.test_silver import stored

pytestmark = [pytest.mark.smoke, pytest.mark.rounds]
WRITERS = write_qlik, write_linkexpress, write_goldengate, write_journals


def test_a_batch_is_the_same_with_spark_and_without(spark, lakehouse, tmp_path, monkeypatch):
    sources = {}
    for n in range(12 if ALL_ROUNDS else 3):
        for write in WRITERS:
            name = f"small_{write.__name__.removeprefix('write_')}_{n:03d}"
            sources[name], _ = write(random.Random(name), name, tmp_path / "delivery")
            sources[name].pop("checkpoints", []), sources[name].pop("arrivals", {})
    project = test_pipeline.make_project(tmp_path, lakehouse, sources)
    written, write = [], small_batches.write
    monkeypatch.setattr(small_batches, "write", lambda *given: written.append(write(*given)) or written[-1])
    for batch in range(test_pipeline.NUM_BATCHES):
        shutil.copytree(tmp_path / "delivery" / str(batch), tmp_path / "landing", dirs_exist_ok=True)
        new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
        bronze.land(project, spark, new)
        before, found = stored(spark, project.sources), []
        for num_records in (small_batches.NUM_RECORDS, -1):
            monkeypatch.setattr(small_batches, "NUM_RECORDS", num_records)
            accounts = silver.run(project, spark, new.batch_id)
            found.append((accounts, stored(spark, project.sources)))
            if num_records > 0:
                forget(spark, project, new.batch_id)
                assert stored(spark, project.sources) == before
        assert found[0] == found[1]
        monkeypatch.undo()
        monkeypatch.setattr(small_batches, "write", lambda *given: written.append(write(*given)) or written[-1])
    names = {name.split("_")[1] for of_batch in written[::2] for name in of_batch}
    assert names >= {"qlik", "linkexpress", "goldengate"} and not any(written[1::2])


def forget(spark, project, batch_id: int) -> None:
    """Take a batch out of the ledger, as if it had not been decoded."""
    sources = ", ".join(f"'{name}'" for name in project.sources)
    for table in ("silver.batches", "silver.table_versions"):
        spark.sql(f"delete from {table} where batch_id = {batch_id} and source in ({sources})")
    recover.run(project, spark, batch_id, f"source in ({sources})")
