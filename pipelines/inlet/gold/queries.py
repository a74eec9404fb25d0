"""Queries of a table's gold that DataFusion, in delta-rs, answers: the survey and the fold of a small batch.

Spark takes a second or more to plan such a query, whatever its rows; DataFusion takes some hundredths. The macros make
the same SQL for both, but for a few names (`is_local`), and tests hold both equal to the reference (docs/adr/0035).
"""

import deltalake
import pyarrow as pa

from inlet import lake
from inlet.lake import snapshots

STEPS = ("before_after", "past", "current")  # in order; the views over them are made once
MADE = (*STEPS, "folded")  # of a table with a key: a run that finds these makes no other


class Queries:
    """The gold of each table as it was when it was first asked of, and what is kept of answers, until `close`."""

    def __init__(self, lakehouse: str):
        self.lakehouse = lakehouse
        self.engines: dict[str, deltalake.QueryBuilder] = {}

    def rows(self, name: str, query: str) -> pa.Table:
        """The answer to a query. In: the name of the contract; SQL that reads `gold.<table>`, and what is kept."""
        return snapshots.answer(self._engine(name), query)

    def answer(self, name: str, query: str) -> list[dict]:
        """The same for macros: as dicts."""
        return self.rows(name, query).to_pylist()

    def keep(self, name: str, table: str, query: str, columns: list[str]) -> None:
        """Name the rows of a query for those that follow. In: its columns, all text, where its rows are stored in
        memory, as those of steps that each read the one before it twice; else it is a view."""
        engine = self._engine(name)
        if columns:  # declared, because CREATE TABLE AS refuses rows where DataFusion is unsure what may be null
            engine.execute(f"create table {table} ({', '.join(f'{column} string' for column in columns)})")
            snapshots.answer(engine, f"insert into {table} {query}")
        else:
            engine.execute(f"create view {table} as {query}")

    def close(self, name: str) -> None:
        """Let go of a table, before it is written."""
        self.engines.pop(name, None)

    def _engine(self, name: str) -> deltalake.QueryBuilder:
        if name not in self.engines:
            builder = snapshots.query_builder()
            builder.execute("create schema gold")
            for table in (f"gold.{name}__{step}" for step in STEPS):
                builder = builder.register(table, snapshots.open_table(lake.table_path(self.lakehouse, table)))
            self.engines[name] = builder
        return self.engines[name]
