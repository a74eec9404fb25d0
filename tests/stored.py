"""What a lakehouse holds of a source, read without Spark, which takes up to a second for the same."""

from collections.abc import Collection

from inlet import change, lake
from inlet.fields import variant

OF_RUNS = {"batch_id", "decoded_at", "finished_at"}  # columns that tell one run from another


def rows(lakehouse: str, table: str, source: str, *columns: str, rest: str = "") -> list[tuple]:
    """Columns of the rows of a source; variants as dicts. In: columns or SQL; what follows `where`."""
    found = lake.peek(lakehouse, table, list(columns), f"where source = '{source}' {rest}")
    return [tuple(map(plain, row.values())) for row in found]


def plain(value):
    return variant.decode(**value) if isinstance(value, dict) and value.keys() == {"value", "metadata"} else value


def stored(lakehouse: str, sources: Collection[str]) -> dict[str, dict[str, list[str]]]:
    """What silver holds of each source, by table: whole rows as text, but for the batch and the time."""
    found = {source: {table: [] for table in change.TABLES} for source in sources}
    for table, columns in change.TABLES.items() if found else ():
        names = [column.name for column in columns if column.name not in OF_RUNS]
        of_sources = f"where source in ({', '.join(map(repr, sources))})"
        for row in lake.peek(lakehouse, table, names, of_sources):
            found[row["source"]][table].append(str(tuple(map(plain, row.values()))))
    return {source: {table: sorted(rows) for table, rows in tables.items()} for source, tables in found.items()}
