"""State tables of a lakehouse written without Spark, for tests of what reads them so."""

import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake import write_deltalake

from inlet import change, unit
from inlet.checks.results import RESULTS
from inlet.config import Project
from inlet.publish.point import PUBLISHED

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)  # when the first batch was finished
APPLIED = {
    "table_name": "string",
    "source": "string",
    "through_batch_id": "bigint",
    "through_change_seq": "string",
    "applied_at": "timestamp",
}
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
}
DECLARED = {name: {c.name: c.type for c in columns} for name, columns in (change.TABLES | unit.TABLES).items()} | {
    "gold.applied": APPLIED,
    "gold.published": {c.name: c.type for c in PUBLISHED},
    "checks.results": {c.name: c.type for c in RESULTS},
}


def write(project: Project, table: str, *rows: dict) -> None:
    """Append rows; columns that they do not say are null, numbers of the ledger 0. VARIANT columns are left out."""
    columns = {name: type_ for name, type_ in DECLARED[table].items() if type_ in TYPES}
    zeros = {n: 0 for n in columns if table == "silver.batches" and n.startswith(("num_", "bytes_"))}
    full = [dict.fromkeys(columns) | zeros | row for row in rows]
    schema = pa.schema([(name, TYPES[type_]) for name, type_ in columns.items()])
    write_deltalake(project.lakehouse_path(*table.split(".")), pa.Table.from_pylist(full, schema), mode="append")


def seq(minute: int, second: int = 0) -> str:
    """A change_seq of 2026-01-05 10:<minute>:<second>."""
    return f"2026010510{minute:02}{second:02}00" + "0" * 19


def batch(number: int, source: str, until: str, **counts: int) -> dict:
    """A line of the ledger; batches are finished an hour after another."""
    at = BEGAN + timedelta(hours=number - 1)
    counts |= {"num_records": sum(counts.values())}
    return {
        "batch_id": number,
        "source": source,
        "codec": "linkexpress_group",
        "tables": ["DEPOT.ITEMS"],
        "last_change_seq": until,
        "finished_at": at,
        **counts,
    }


def point(number: int, at: datetime, **points: str) -> dict:
    """A row of gold.published."""
    return {"number": number, "published_at": at, "points": points, "batches": {}, "versions": {}, "held": {}}


def rejected(source: str, kind: str, **fields) -> dict:
    return {
        "source": source,
        "kind": kind,
        "unit_id": f"{source}/file@0",
        "unit_offset": 0,
        "unit_length": 3,
        "byte_offset": 1,
        "expected": "digits",
        "found": "letters",
        "raw": b"abc",
        "batch_id": 1,
    } | fields


def reads(monkeypatch) -> Counter:
    """How often each table is opened to be read, and each query asked of one, from now on."""
    counted, asked_of, builders = Counter[str](), dict[int, str](), []
    opening, registering = deltalake.DeltaTable.__init__, deltalake.QueryBuilder.register
    asking = deltalake.QueryBuilder.execute

    def opened(self, place, *given, **named):
        counted[".".join(Path(place).parts[-2:])] += sys._getframe(2).f_code.co_filename.endswith("/snapshots.py")
        opening(self, place, *given, **named)

    def registered(self, name, table):
        builders.append(self)  # no other one gets its id
        asked_of.setdefault(id(self), ".".join(Path(table.table_uri).parts[-2:]))
        return registering(self, name, table)

    def asked(self, query):
        if " from rows" in query:
            counted[f"{asked_of.get(id(self), id(self))}: {query.strip()}"] += 1  # a builder of before has its id alone
        return asking(self, query)

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", opened)
    monkeypatch.setattr(deltalake.QueryBuilder, "register", registered)
    monkeypatch.setattr(deltalake.QueryBuilder, "execute", asked)
    return counted
