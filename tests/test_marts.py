"""dbt from a plain shell: models of a user's own on the public views, the pages of docs, what is fresh."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from inlet import lake
from inlet.commands.init import init
from inlet.lake.catalog import served
from tests.postgres import free_port

REPO = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
MARTS = Path("dbt/models/marts")


def copied(root: Path) -> Path:
    """The demo's project in a folder of its own."""
    for folder in ("pipelines", "dbt", "expectations"):
        shutil.copytree(REPO / folder, root / folder, ignore=shutil.ignore_patterns("target", "__pycache__", "inlet"))
    return root


def dbt(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    """dbt as it is called in a plain shell."""
    return subprocess.run(
        [PROGRAMS / "dbt", "--no-use-colors", *words],
        cwd=root / "dbt",
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPO / "pipelines")} | environment,
    )


@pytest.mark.slow
def test_marts_read_the_public_views_alone_and_have_a_database_of_their_own(tmp_path):
    root = copied(tmp_path)
    done = dbt(root, "parse")
    assert done.returncode == 0, done.stdout
    manifest = json.loads((root / "dbt/target/manifest.json").read_text())
    marts = [node for node in manifest["nodes"].values() if node["original_file_path"].startswith("models/marts/")]
    models = [node for node in marts if node["resource_type"] == "model"]
    assert {(node["name"], node["schema"]) for node in models} == {("daily_sales", "marts")}
    for node in models:
        read = [manifest["sources"][name]["schema"] for name in node["depends_on"]["nodes"]]
        assert read and set(read) == {"public"}
        assert node["description"] and all(column["description"] for column in node["columns"].values())
    (exposure,) = manifest["exposures"].values()
    assert "model.inlet.daily_sales" in exposure["depends_on"]["nodes"]
    assert {node["schema"] for node in manifest["nodes"].values() if node["path"].startswith("gold/")} >= {"gold"}


def test_a_new_project_has_an_empty_folder_for_marts(tmp_path):
    init(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine" / MARTS).rglob("*")] == ["README.md"]


@pytest.mark.proof
def test_marts_are_built_by_dbt_and_read_beside_a_run(tmp_path):
    from infra.local.feed import write_feed

    root, feed = copied(tmp_path / "shop"), write_feed(tmp_path / "feed", scale=0.02)
    for batch in range(1, len(feed.batches) + 1):
        feed.deliver(batch, root / "landing")
    run = [sys.executable, "-m", "inlet.cli", "run", "--project", root]
    subprocess.run(run, env=os.environ | {"PYTHONPATH": str(REPO / "pipelines")}, check=True)
    lakehouse = root / "lakehouse"
    assert not (lakehouse / "marts.db").exists()  # `inlet run` builds no mart

    built = dbt(root, "build", "--select", "marts")
    assert built.returncode == 0, built.stdout[-3000:]
    assert built.stderr == "" and "Deprecat" not in built.stdout  # no jars, no warnings of Spark
    assert "PASS daily_sales::an_order_counts_as_open_on_the_days_on_which_it_was" in built.stdout
    rows = DeltaTable(lakehouse / "marts.db" / "daily_sales").to_pyarrow_table().to_pylist()
    payments = [row for row in feed.expected["SHOP.PAYMENTS"].values() if not row["IS_REFUNDED"]]
    assert sum(row["num_payments"] for row in rows) == len(payments)
    assert sum(row["revenue"] for row in rows) == sum(row["AMOUNT"] for row in payments)

    with served(free_port()) as (environment, _), lake.writing(str(lakehouse)):  # as beside a run that shares it
        shared = environment | {"INLET_LAKEHOUSE": str(lakehouse)}
        refused = dbt(root, "build", "--select", "marts", **shared)
        assert refused.returncode == 2 and "Another run writes" in refused.stdout
        tested = dbt(root, "test", "--select", "marts", **shared)
        assert tested.returncode == 0, tested.stdout[-3000:]
        made = dbt(root, "docs", "generate", **shared)
        assert made.returncode == 0, made.stdout[-3000:]
        fresh = dbt(root, "source", "freshness", **shared)
        assert fresh.returncode == 0, fresh.stdout[-3000:]
    pages = json.loads((root / "dbt/target/catalog.json").read_text())
    assert set(pages["nodes"]["model.inlet.daily_sales"]["columns"]) == set(rows[0])
    assert "model.inlet.orders__current" in pages["nodes"] and "source.inlet.public.payments" in pages["sources"]
    found = json.loads((root / "dbt/target/sources.json").read_text())["results"]
    assert {result["unique_id"].removeprefix("source.inlet."): result["status"] for result in found} == {
        "silver.batches": "pass",  # it came in just now
        "gold_state.published": "pass",
        "public.payments": "warn",  # the demo's changes are of January 2026
        "public.orders__history": "warn",
    }
