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


def stored(lakehouse: str, sources: Collection[str]) -> dict[str, list[str]]:
    """What silver holds of sources: whole rows as text, but for the batch and the time."""
    of_sources = f"where source in ({', '.join(map(repr, sources))})"
    found = {}
    for table, columns in change.TABLES.items():
        names = [column.name for column in columns if column.name not in OF_RUNS]
        peeked = lake.peek(lakehouse, table, names, of_sources)
        found[table] = sorted(str(tuple(map(plain, row.values()))) for row in peeked)
    return found
