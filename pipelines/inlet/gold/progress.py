"""How far gold is: the ledger (silver.batches) beside what gold.applied has, read without Spark."""

from inlet import lake
from inlet.config import Project
from inlet.sql import plain_literal
from inlet.table import by_name

LEDGER = ["source", "batch_id", "tables", "num_changes", "bytes_decoded", "bytes_landed"]
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
    """The ledger, and rows of gold.applied. Of what each table of the project has, the ledger is its last batch alone:
    a row of a source, at most one table and no changes; batches that some table lacks follow as they are.
    """
    lakehouse = project.lakehouse_path()
    applied = lake.peek(lakehouse, "gold.applied", APPLIED)
    if not lake.exists(lakehouse, "silver.batches"):
        return [], applied
    each = (
        "select source, batch_id, unnest(tables) as name from ledger union all "
        "select source, batch_id, cast(null as varchar) as name from ledger"
    )
    query = f"select source, name, max(batch_id) as batch_id from ({each}) group by source, name"
    ledger = [
        {
            "source": row["source"],
            "batch_id": row["batch_id"],
            "tables": [row["name"]] if row["name"] else [],
            "num_changes": 0,
            "bytes_decoded": 0,
            "bytes_landed": 0,
        }
        for row in lake.ask(lakehouse, query, ledger="silver.batches")
    ]
    through = new_from(lagging(ledger, applied, project.tables.values()))
    of_sources = [f"source = {plain_literal(source)} and batch_id > {batch_id}" for source, batch_id in through.items()]
    new_rows = f"where {' or '.join(of_sources)}"
    return ledger + (lake.peek(lakehouse, "silver.batches", LEDGER, new_rows) if of_sources else []), applied


def greatest(ledger: list[dict], names: set[str]) -> list[list]:
    """[SCHEMA.TABLE, source, last batch that has the table]. In: the tables asked for."""
    last: dict[tuple, int] = {}
    for row in ledger:
        for table in names.intersection(row["tables"] or ()):
            last[table, row["source"]] = max(row["batch_id"], last.get((table, row["source"]), -1))
    return [[*place, batch_id] for place, batch_id in last.items()]


def new_from(lags: dict) -> dict[str, int]:
    """Source -> the last batch that every table has."""
    through: dict[str, int] = {}
    for sources in lags.values():
        for source, (applied, _) in sources.items():
            through[source] = min(applied, through.get(source, applied))
    return through


def new(ledger: list[dict], lags: dict) -> list[dict]:
    """Rows of the ledger that some table has not taken yet."""
    through = new_from(lags)
    return [row for row in ledger if row["source"] in through and row["batch_id"] > through[row["source"]]]


def size_bytes(rows: list[dict]) -> int:
    """Bytes of batches: a row of a columnar file is decoded from one byte, and its unit is as large as it is; a replay
    has no units. In: rows of the ledger."""
    return sum(max(row["bytes_decoded"] or 0, row["bytes_landed"] or 0) for row in rows)
