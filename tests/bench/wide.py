"""A wide table against the same cells in a narrow one: one batch of Qlik messages with both images through silver and
gold.
"""

import shutil
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import yaml

from inlet import bronze, config, publish, silver
from inlet.commands.run import build_gold
from inlet.gold import generate
from tests.bench.figure import Figure
from tests.encode import qlik

REPO = Path(__file__).resolve().parents[2]
TYPES = ["bigint", "string", "decimal(9,2)", "date", "int", "timestamp_ntz"]
NARROW = 12  # columns


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    num_columns, num = (60, 50) if is_quick else (347, 723)
    wide = seconds(spark, make_project(folder / "wide", lakehouse, "wide", num_columns), num)
    narrow = seconds(spark, make_project(folder / "narrow", lakehouse, "narrow", NARROW), num * num_columns // NARROW)
    for step, taken in wide.items():
        yield Figure(
            f"{step} of {num} changes of {num_columns} columns",
            f"the same cells in changes of {NARROW}",
            taken / narrow[step],
            "",
            f"{taken:.1f} s, {narrow[step]:.1f} s",
        )


def seconds(spark, project: config.Project, num: int) -> dict[str, float]:
    """Step -> seconds of the second of two batches: what a table costs from then on."""
    for batch in (1, 2):
        deliver(project, batch, num)
        plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
        bronze.land(project, spark, plan)
        taken = {}
        for step, action in (
            ("silver", lambda: silver.run(project, spark, plan.batch_id)),
            ("gold", lambda: build_gold(project, spark)),
            ("publish", lambda: publish.run(project, spark)),
        ):
            started = time.perf_counter()
            action()
            taken[step] = time.perf_counter() - started
    return taken


def columns(num: int) -> list[tuple[str, str]]:
    return [("ID", "bigint")] + [(f"COLUMN_{n:04d}", TYPES[n % len(TYPES)]) for n in range(1, num)]


def deliver(project: config.Project, batch: int, num: int, moved: tuple[int, ...] = ()) -> None:
    """Inserts first, then updates of the same keys with both images in which every third column differs. In: keys that
    an update moves by 1,000.
    """
    table = next(iter(project.tables.values()))
    own, names = columns(len(table.columns)), [c.name for c in table.columns]

    def image(n: int, salt: int) -> dict:
        made = {
            "bigint": n * 3 + salt,
            "string": f"value {n} {salt}",
            "decimal(9,2)": Decimal(n + salt) / 100,
            "date": f"2026-01-{1 + salt % 27:02d}",
            "int": n + salt,
            "timestamp_ntz": f"2026-01-02T03:04:{salt % 60:02d}.678",
        }
        return {"ID": n} | {name: made[type_] for name, type_ in own[1:]}

    values = []
    for n in range(num):
        change = {
            "operation": "INSERT" if batch == 1 else "UPDATE",
            "after": image(n, batch),
            "change_seq": f"2026010{batch}03040500{n:019d}",
            "transaction_id": f"{batch}{n:031d}",
            "transaction_event_counter": 1,
            "transaction_last_event": True,
            "change_timestamp": "2026-01-02T03:04:05.000",
        }
        if batch > 1:
            change["before"] = change["after"] | {
                name: value for k, (name, value) in enumerate(image(n, 1).items()) if k % 3 == 1
            }
            change["after"] |= {"ID": n + 1000} if n in moved else {}
        values.append(qlik.value(change, names))
    path = project.root / "landing" / f"{batch}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    qlik.write_parquet(qlik.rows(values, table.name, offset=(batch - 1) * num), path)


def make_project(folder: Path, lakehouse: str, name: str, num_columns: int) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    source = {"codec": "qlik_json", "from": "landing/*.parquet", "tables": {name: f"BENCH.{name.upper()}"}}
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {f"bench_{name}": source}})
    )
    (folder / "pipelines" / "tables" / f"{name}.yml").write_text(
        yaml.safe_dump(
            {
                "table": f"BENCH.{name.upper()}",
                "name": name,
                "key": ["ID"],
                "columns": [{"name": n, "type": t} for n, t in columns(num_columns)],
            }
        )
    )
    shutil.copytree(REPO / "dbt", folder / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    project = config.load(folder)
    generate.write(project)
    return project
