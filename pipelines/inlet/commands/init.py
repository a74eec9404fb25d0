"""`inlet init DIR`: a new project folder that runs as it is. It copies the dbt macros and the suites this package came
with.
"""

import shutil
from pathlib import Path

from inlet import config
from inlet.errors import ConfigError
from inlet.gold import generate

HOME = Path(__file__).resolve().parents[3]  # the repository in a checkout
PACKED = Path(__file__).resolve().parents[1] / "_project"  # the same files inside an installed wheel

INLET_YML = """\
# Where changes come from, and where the lakehouse is. `inlet doctor` checks this file.
lakehouse: lakehouse

sources: {}
#  shop:                                # one ordered feed: one Qlik task, one extract definition
#    codec: qlik_json                   # or linkexpress_group
#    from: landing/shop/*.parquet       # a folder or pattern, any fsspec URL;
#                                       # or {transport: lines, path: landing/shop/*.jsonl}
#                                       # or {transport: kafka, servers: "host:9092", topics: [shop.orders]}
#    tables: {shop.orders: SHOP.ORDERS} # topic (or extraction id) -> SCHEMA.TABLE
"""
EXAMPLE = """\
# One captured table. Copy to <table>.yml, fill in, run `inlet generate`.
table: SHOP.ORDERS
name: orders
key: [ORDER_ID]
columns:
  - {name: ORDER_ID, type: bigint, nullable: false}
  - {name: ORDERED_ON, type: date}
  - {name: AMOUNT, type: "decimal(9,2)"}
"""
LEFT_OUT = ("target", "logs", "gold", "shop", ".user.yml")  # made by dbt, and the demo's own models and marts
IGNORE = "/lakehouse/\n/landing/\ndbt/target/\n"


def init(folder: Path) -> list[str]:
    """Make the folder. Out: lines that say what is there and what to type next. Raises: ConfigError if it holds
    something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is not empty", "Name a folder that does not exist yet")
    home = PACKED if PACKED.exists() else HOME
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "pipelines" / "inlet.yml").write_text(INLET_YML)
    (folder / "pipelines" / "tables" / "example.yml.txt").write_text(EXAMPLE)
    (folder / ".gitignore").write_text(IGNORE)
    shutil.copytree(home / "dbt", folder / "dbt", ignore=shutil.ignore_patterns(*LEFT_OUT))
    shutil.copytree(home / "expectations", folder / "expectations")
    generate.write(config.load(folder))
    return [
        f"{folder}: a project without sources yet.",
        f"  1. add a source to {folder}/pipelines/inlet.yml",
        f"  2. write a contract for each table, as in {folder}/pipelines/tables/example.yml.txt",
        f"  3. inlet generate --project {folder}",
        f"  4. inlet run --project {folder}",
    ]
