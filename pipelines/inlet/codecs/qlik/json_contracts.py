"""The contracts as the compiled walk of Qlik JSON knows them: integers, and names as bytes."""

import re

import numpy as np
import pyarrow as pa

from inlet.codecs.qlik.json_walk import (
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
from inlet.fields import fit, variant

NAMES = re.compile(rb'"schema"\s*:\s*"([^"\\]*)"\s*,\s*"table"\s*:\s*"([^"\\]*)"')
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


class Contracts:
    """Every (source, contract) that can occur, and the integers that the compiled walk knows it by."""

    def __init__(self, sources: list, tables: dict):
        allowed = [
            (s.name, t)
            for s in sources
            for name, t in tables.items()
            if name == t.table and (not t.sources or s.name in t.sources) and s.wants(t.table)
        ]
        self.contracts, self.places = [t for _, t in allowed], [(name, t.versions[-1]) for name, t in allowed]
        by_name = {(name, table.table): place for place, (name, table) in enumerate(self.places)}
        self.sources = {s.name: s for s in sources}
        self.mapped = {
            (s.name, name): by_name.get((s.name, table.table), -1) for s in sources for name, table in tables.items()
        }
        self.by_name = {
            (name, *(part.encode() for part in table.split("."))): place for (name, table), place in by_name.items()
        }
        columns = [column for _, table in self.places for column in table.columns]
        letters, ends = joined([column.name for column in columns])
        needs = [
            KEY if column.name in table.key else OPTIONAL if column.nullable else NOT_NULL
            for _, table in self.places
            for column in table.columns
        ]
        plan = np.array(
            [[ends[i], ends[i + 1] - ends[i], *_plan(column), needs[i]] for i, column in enumerate(columns)], np.int64
        ).reshape(-1, 6)
        orders = [_order(t.column_names) for _, t in self.places]
        first = np.cumsum([0] + [len(order) for order in orders])
        self.plans = plan, first, letters, np.array([k for order in orders for k in order], np.int64)
        self.num_columns = int(np.diff(first).max(initial=0))  # of the widest table
        self.table_names = joined([part for _, table in self.places for part in table.table.split(".")])
        self.metadata = pa.array(
            [variant.metadata(variant.in_order(t.column_names)) for _, t in self.places], pa.binary()
        )

    def places_of(self, batch: pa.RecordBatch) -> np.ndarray:
        """The place of each message's contract by its topic, -1 for none; plus the number of places if its names must
        confirm it.
        """
        places = np.full(len(batch), -1, np.int64)
        for (source, topic), at in groups(batch, "source", "topic"):
            if source in self.sources and (table := self.sources[source].table_of(topic)):
                places[at] = self.mapped.get((source, table), -1)
                continue
            for i in at:
                named = NAMES.search(batch.column("value")[i].as_py() or b"")
                place = self.by_name.get((source, *named.groups()), -1) if named else -1
                places[i] = place + len(self.places) if place >= 0 else -1
        places[~np.asarray(batch.column("value").is_valid())] = -1
        return places


def _order(names: list[str]) -> list[int]:
    """Columns as an image holds them."""
    place = {name: k for k, name in enumerate(names)}
    return [place[name] for name in variant.in_order(names)]


def _plan(column) -> tuple[int, int, int]:
    """TYPE, FIRST and SECOND of a column."""
    if column.type.startswith("decimal"):
        digits, scale = map(int, re.findall(r"\d+", column.type))
        return DECIMAL, digits - scale, scale
    return (
        (NEVER if column.type == "binary" and not column.encoding else TYPES[column.type]),
        fit.LEN_INTEGER.get(column.type, 0),
        0,
    )


def joined(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [word.encode() for word in words]
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.cumsum([0] + [len(word) for word in encoded])


def groups(batch: pa.RecordBatch, *columns: str):
    """Rows of a batch by the values of these columns."""
    codes: np.ndarray = np.zeros(len(batch), np.int64)
    values: list[tuple] = [()]
    for name in columns:
        coded = batch.column(name).dictionary_encode()
        own = coded.dictionary.to_pylist()
        codes = codes * len(own) + np.asarray(coded.indices)
        values = [(*value, one) for value in values for one in own]
    return [(values[code], np.flatnonzero(codes == code)) for code in np.unique(codes)]
