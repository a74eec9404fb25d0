"""Contracts as compiled walks over JSON know them: integers, and names as bytes (fields/compiled/json_values)."""

import re

import numpy as np
import pyarrow as pa

from inlet.fields import fit, variant
from inlet.fields.compiled.json_values import (
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    HEX,
    INTEGER,
    KEY,
    NEVER,
    NOT_NULL,
    OPTIONAL,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
)
from inlet.table import Table

TYPES = {
    "string": TEXT,
    "float": FLOAT,
    "double": FLOAT,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "boolean": BOOLEAN,
    "binary": HEX,
} | dict.fromkeys(fit.LEN_INTEGER, INTEGER)


class Columns:
    """The columns of some tables. `plans`: rows of columns; the first row of each table; letters of the names; columns
    by the rank of their name.
    """

    def __init__(self, tables: list[Table], types: dict[str, int]):
        """In: how the walk reads a column, by its type; decimals apart."""
        columns = [column for table in tables for column in table.columns]
        letters, ends = joined([column.name for column in columns])
        needs = [
            KEY if column.name in table.key else OPTIONAL if column.nullable else NOT_NULL
            for table in tables
            for column in table.columns
        ]
        plan = np.array(
            [[ends[i], ends[i + 1] - ends[i], *plan_of(column, types), needs[i]] for i, column in enumerate(columns)],
            np.int64,
        ).reshape(-1, 6)
        orders = [order_of(table.column_names) for table in tables]
        first = np.cumsum([0] + [len(order) for order in orders])
        self.plans = plan, first, letters, np.array([k for order in orders for k in order], np.int64)
        self.num_most = int(np.diff(first).max(initial=0))  # of the widest table
        self.metadata = pa.array([variant.metadata(variant.in_order(t.column_names)) for t in tables], pa.binary())


def order_of(names: list[str]) -> list[int]:
    """Places of names in the order in which an object holds them."""
    place = {name: k for k, name in enumerate(names)}
    return [place[name] for name in variant.in_order(names)]


def plan_of(column, types: dict[str, int]) -> tuple[int, int, int]:
    """TYPE, FIRST and SECOND of a column."""
    if column.type.startswith("decimal"):
        digits, scale = map(int, re.findall(r"\d+", column.type))
        return DECIMAL, digits - scale, scale
    return (
        (NEVER if column.type == "binary" and not column.encoding else types[column.type]),
        fit.LEN_INTEGER.get(column.type, 0),
        0,
    )


def joined(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Words as bytes one behind the other, at least one byte; where each begins and the last ends."""
    encoded = [word.encode() for word in words]
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.cumsum([0] + [len(word) for word in encoded])


def allowed(sources: list, tables: dict[str, Table]) -> list[tuple[str, Table]]:
    """Every (source, contract) that can occur."""
    return [
        (s.name, t)
        for s in sources
        for name, t in tables.items()
        if name == t.table and (not t.sources or s.name in t.sources) and s.wants(t.table)
    ]
