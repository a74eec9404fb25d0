"""How far gold is: the ledger (silver.batches) beside what gold.applied has, read without Spark."""

from inlet import lake
from inlet.config import Project
from inlet.table import by_name

LEDGER = ["source", "batch_id", "tables", "num_changes"]
APPLIED = ["table_name", "source", "through_batch_id", "through_change_seq"]


def lagging(ledger: list[dict], applied: list[dict], tables) -> dict[str, dict[str, tuple[int, int]]]:
    """Table name -> source -> (applied batch, last batch with the table) wherever gold is behind. In: rows of
    silver.batches and gold.applied."""
    done: dict[tuple, int] = {}
    for row in applied:
        place = row["table_name"], row["source"]
        done[place] = max(row["through_batch_id"], done.get(place, -1))
    names, lags = {name: table.name for name, table in by_name(tables).items()}, {}
    for row in sorted(ledger, key=lambda row: row["batch_id"]):
        for name in {names[t] for t in row["tables"] or () if t in names}:
            if row["batch_id"] > (through := done.get((name, row["source"]), -1)):
                lags.setdefault(name, {})[row["source"]] = through, row["batch_id"]
    return lags


def state(project: Project) -> tuple[list[dict], list[dict]]:
    """Rows of silver.batches and of gold.applied."""
    lakehouse = project.lakehouse_path()
    return lake.peek(lakehouse, "silver.batches", LEDGER), lake.peek(lakehouse, "gold.applied", APPLIED)


def greatest(ledger: list[dict], names: set[str]) -> list[list]:
    """[SCHEMA.TABLE, source, last batch that has the table]. In: the tables asked for."""
    last: dict[tuple, int] = {}
    for row in ledger:
        for table in names.intersection(row["tables"] or ()):
            last[table, row["source"]] = max(row["batch_id"], last.get((table, row["source"]), -1))
    return [[*place, batch_id] for place, batch_id in last.items()]


def new(ledger: list[dict], lags: dict) -> list[dict]:
    """Rows of the ledger that some table has not taken yet."""
    through: dict[str, int] = {}  # source -> last batch that every table has
    for sources in lags.values():
        for source, (applied, _) in sources.items():
            through[source] = min(applied, through.get(source, applied))
    return [row for row in ledger if row["source"] in through and row["batch_id"] > through[row["source"]]]
