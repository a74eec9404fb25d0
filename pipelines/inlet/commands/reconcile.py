"""Reconcile a table's gold with the live table at its source (live_table.py), in two looks: rows on their way are no
false alarm.

Look 1: both sides are hashed, column by column, as the contract's types; ranges of keys whose hashes agree are done.

Look 2, after a wait: the keys that differed are read again on both sides. What agrees now was in flight. What differs
and has not moved on either side is confirmed. What has moved is looked at again, and is in flight if it never rests.

Limits:
- The wait must be longer than a change needs from the source into gold: one that takes longer looks like a difference.
- Values are compared as the contract's types: a time without a zone is UTC where the contract says `timestamp`; CHAR's
  padding counts, nothing is trimmed; 0.0 and -0.0 are equal; what JDBC cannot say as the contract's type (a TIME, an
  array, an infinite date, a number that is too large) is an error or a difference.
- Look 1 reads the whole table through one connection. Gold is compared with what the source says now, at no point of
  its own.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inlet import gold, lake
from inlet.commands.live_table import Live, rows_of
from inlet.config import Project, known
from inlet.errors import ConfigError, InletError
from inlet.gold.progress import APPLIED
from inlet.lake import engine
from inlet.sql import name as quoted
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUM_RANGES = 256
MAX_KEYS = 100_000  # that differ: more are no rows in flight
MAX_LOOKS = 10  # at rows that keep moving


@dataclass(frozen=True)
class Seen:
    """A key that differs: each side's hashes of its columns, None where it has no such row, and the place of gold's
    version.
    """

    source: tuple | None
    gold: tuple | None
    valid_from_seq: str | None

    def has_moved(self, before: "Seen") -> bool:
        return (self.source, self.valid_from_seq) != (before.source, before.valid_from_seq)

    @property
    def found(self) -> str:
        return "only in gold" if self.source is None else "only in source" if self.gold is None else "other values"

    def columns(self, table: Table) -> str:
        """Names of the columns that differ, where both sides have the row."""
        pairs = zip(table.column_names, self.source or (), self.gold or ())
        return ", ".join(name for name, of_source, of_gold in pairs if of_source != of_gold)


@dataclass(frozen=True)
class Reconciled:
    """Rows on each side in look 1, and the keys that differed: found, key, columns."""

    num_source: int
    num_gold: int
    rows: list[dict]

    @property
    def num_differing(self) -> int:
        return sum(row["found"] != "in flight" for row in self.rows)


def source_of(project: Project, name: str, given: str | None) -> tuple[str, str]:
    """The source whose rows of gold are compared, and the change_seq up to which gold holds its changes.

    Raises: ConfigError where gold has rows of several sources and none is given; InletError where gold is not there or
    is behind.
    """
    applied: dict[str, str] = {}
    for row in lake.peek(project.lakehouse_path(), "gold.applied", APPLIED):
        if row["table_name"] == name:
            applied[row["source"]] = max(applied.get(row["source"], ""), row["through_change_seq"] or "")
    if not applied or name in gold.pending(project):
        raise InletError(
            f"gold of {name} is behind silver" if applied else f"gold of {name} holds nothing yet",
            "Run `inlet run` first",
        )
    if given is None and len(applied) > 1:
        raise ConfigError(
            f"gold of {name} has rows of several sources: {', '.join(sorted(applied))}", "Say which with --source"
        )
    source = given or next(iter(applied))
    return source, known(applied, source, f"source of {name}")


def reconcile(
    project: Project,
    spark: "SparkSession",
    table: Table,
    source: str,
    live: Live,
    wait_seconds: float = 60,
    pause=time.sleep,
) -> Reconciled:
    """Compare a table's gold with the live table. In: the source whose rows are compared, seconds between two looks,
    what waits.

    Raises: ConfigError for a table without a key, or a column that the live table lacks; InletError when it cannot be
    read or nearly everything differs.
    """
    if not table.key:
        raise ConfigError(
            f"{table.table} has no key, so its gold is a log, and holds no rows to compare",
            "Compare tables that have a key",
        )
    table = table.versions[-1]  # without columns that the source has dropped
    num_source, num_gold, doubted = _first_look(
        table, _hashed(table, rows_of(spark, table, live)), _gold(project, spark, table, source)
    )
    rows: list[dict] = []
    for _ in range(MAX_LOOKS):
        if not doubted:
            break
        pause(wait_seconds)
        was_behind = table.name in gold.pending(project)
        keys = spark.createDataFrame(list(doubted), _key_schema(table))
        seen = _differing(
            table,
            _hashed(table, rows_of(spark, table, live, list(doubted))).join(keys, _key_names(table), "left_semi"),
            _gold(project, spark, table, source).join(keys, _key_names(table), "left_semi"),
        )
        is_behind = was_behind or table.name in gold.pending(project)  # a change may wait in silver, or be half in gold
        moving = {key: now for key, now in seen.items() if is_behind or now.has_moved(doubted[key])}
        rows += [_row(table, key, "in flight") for key in doubted if key not in seen]
        rows += [_row(table, key, now.found, now.columns(table)) for key, now in seen.items() if key not in moving]
        doubted = moving
    rows += [_row(table, key, "in flight") for key in doubted]
    return Reconciled(num_source, num_gold, sorted(rows, key=lambda row: (row["found"] == "in flight", row["key"])))


def _first_look(table: Table, source: "DataFrame", stored: "DataFrame") -> tuple[int, int, dict[tuple, Seen]]:
    """Number of rows on each side, and the keys that differ, looked for only in ranges of keys that do."""
    from pyspark.sql import functions as F

    source = engine.kept(source)  # hashes only; the live table is read once
    try:
        of_source, of_gold = _ranges(source), _ranges(stored)
        differing = [n for n in range(NUM_RANGES) if of_source.get(n) != of_gold.get(n)]
        found = (
            _differing(table, *(side.where(F.col("_range").isin(differing)) for side in (source, stored)))
            if differing
            else {}
        )
        return sum(num for num, _ in of_source.values()), sum(num for num, _ in of_gold.values()), found
    finally:
        engine.release(source)


def _ranges(rows) -> dict[int, tuple]:
    """Range of keys -> number of its rows, and a hash of them that does not depend on their order."""
    from pyspark.sql import functions as F

    hashed = rows.groupBy("_range").agg(
        F.count("*"), F.sum(F.xxhash64("_hashes", *_key_columns(rows)).cast("decimal(38,0)"))
    )
    return {number: (num, total) for number, num, total in hashed.collect()}


def _key_columns(rows) -> list[str]:
    return [name for name in rows.columns if not name.startswith("_")]


def _differing(table: Table, source: "DataFrame", stored: "DataFrame") -> dict[tuple, Seen]:
    """Key -> what each side holds, where that is not the same. Raises: InletError where that is no matter of single
    rows.
    """
    from pyspark.sql import functions as F

    both = source.withColumnRenamed("_hashes", "_in_source").join(
        stored.withColumnRenamed("_hashes", "_in_gold"), _key_names(table), "full_outer"
    )
    unequal = both.where(~F.col("_in_source").eqNullSafe(F.col("_in_gold")))
    rows = unequal.select(*_key_names(table), "_in_source", "_in_gold", "_valid_from_seq").limit(MAX_KEYS + 1).collect()
    if len(rows) > MAX_KEYS:
        raise InletError(
            f"more than {MAX_KEYS:,} keys of {table.name} differ",
            "Look whether --jdbc, --source-table and --source name the table "
            f"that feeds it, and at `inlet verify --table {table.name}`",
        )
    return {tuple(row[:-3]): Seen(row[-3] and tuple(row[-3]), row[-2] and tuple(row[-2]), row[-1]) for row in rows}


def _gold(project: Project, spark: "SparkSession", table: Table, source: str):
    rows = lake.rows(spark, project.lakehouse_path(), f"gold.{table.name}__current")
    return _hashed(
        table,
        rows.where(rows[table.our("source")] == source),
        rows[table.our("valid_from_seq")].alias("_valid_from_seq"),
    )


def _hashed(table: Table, rows, *more):
    """The key, its range, and a hash of each column as the contract's type."""
    from pyspark.sql import functions as F

    typed = {c.name: rows[quoted(c.name)].cast(c.type) for c in table.columns}
    key = [typed[name] for name in table.key]
    return rows.select(
        *(k.alias(name) for k, name in zip(key, _key_names(table))),
        F.pmod(F.xxhash64(*key), F.lit(NUM_RANGES)).cast("int").alias("_range"),
        F.array(*(F.xxhash64(value) for value in typed.values())).alias("_hashes"),
        *more,
    )


def _key_names(table: Table) -> list[str]:
    """What key columns are called here, where any name of a table's own may meet one of these."""
    return [f"key_{n}" for n in range(len(table.key))]


def _key_schema(table: Table) -> str:
    return ", ".join(f"{name} {table.column(key).type}" for name, key in zip(_key_names(table), table.key))


def _row(table: Table, key: tuple, found: str, columns: str = "") -> dict:
    return {
        "key": ", ".join(
            f"{name} {value!r}" if isinstance(value, str) else f"{name} {value}" for name, value in zip(table.key, key)
        ),
        "found": found,
        "columns": columns,
    }
