"""Small projects for tests: a folder with inlet.yml and contracts, and files for it written by the test encoders."""

from pathlib import Path

import yaml

from inlet import config

ITEMS = {
    "table": "DEPOT.ITEMS",
    "name": "items",
    "key": ["ITEM_ID"],
    "columns": [
        {"name": "ITEM_ID", "type": "int", "source_type": "INTEGER", "nullable": False},
        {"name": "NAME", "type": "string", "source_type": "VARCHAR(10)"},
        {"name": "PRICE", "type": "decimal(7,2)", "source_type": "DECIMAL(7,2)"},
    ],
}
LAYOUT = [(c["name"], c["source_type"]) for c in ITEMS["columns"]]
DEPOT = {
    "codec": "linkexpress_group",
    "from": "landing/depot/*.lxg",
    "tables": {"1": "DEPOT.ITEMS"},
    "settle_minutes": 60,
    "options": {"byte_order": "big", "null_areas": "yes", "charset": "cp932", "source_tz": "UTC"},
}


def make(
    root: Path,
    sources: dict | None = None,
    tables: list[dict] | None = None,
    lakehouse: str | dict = "lakehouse",
    is_unfinished: bool = False,
) -> config.Project:
    """Write and load a project; by default one depot with one table of items. In: is_unfinished, that options may be
    missing which definitions are to tell.
    """
    (root / "pipelines" / "tables").mkdir(parents=True, exist_ok=True)
    (root / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": sources or {"depot": DEPOT}})
    )
    for table in tables or [ITEMS]:
        (root / "pipelines" / "tables" / f"{table['name']}.yml").write_text(yaml.safe_dump(table))
    return config.load(root, is_unfinished)


def item_records(first: int, num: int, per_transaction: int = 2) -> list[tuple]:
    """Inserts of items, a commit behind every few."""
    records = []
    for n in range(first, first + num):
        records.append(("insert", 1, {"ITEM_ID": n, "NAME": f"item {n}", "PRICE": None}))
        if (n - first) % per_transaction == per_transaction - 1:
            records.append(("commit",))
    return records
