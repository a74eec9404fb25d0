"""The contracts as the compiled walk of Qlik JSON knows them."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet.codecs import json_columns
from inlet.codecs.json_batches import groups
from inlet.codecs.qlik import full_load, large_objects, metadata

NAMES = re.compile(rb'"schema"\s*:\s*"([^"\\]*)"\s*,\s*"table"\s*:\s*"([^"\\]*)"')


class Contracts:
    """Every (source, contract) that can occur, and the integers that the compiled walk knows it by."""

    def __init__(self, sources: list, tables: dict, lookups: dict[str, dict[str, bytes]] | None = None):
        """In: what metadata messages have brought, by source; None where masks are not read."""
        allowed = json_columns.allowed(sources, tables)
        self.contracts, self.places = [t for _, t in allowed], [(name, t.versions[-1]) for name, t in allowed]
        by_name = {(name, table.table): place for place, (name, table) in enumerate(self.places)}
        self.sources = {s.name: s for s in sources}
        self.mapped = {
            (s.name, name): by_name.get((s.name, table.table), -1) for s in sources for name, table in tables.items()
        }
        self.by_name = {
            (name, *(part.encode() for part in table.split("."))): place for (name, table), place in by_name.items()
        }
        columns = json_columns.Columns([table for _, table in self.places], json_columns.TYPES)
        self.plans, self.num_columns, self.metadata = columns.plans, columns.num_most, columns.metadata
        self.table_names = json_columns.joined([part for _, table in self.places for part in table.table.split(".")])

        self.agreeing = {
            place: metadata.agreeing(lookups.get(name, {}), table, tables, self.sources[name])
            for place, (name, table) in enumerate(self.places if lookups is not None else [])
            if lookups.get(name) or self.sources[name].options_as(full_load.Options).needs_metadata
        }  # ids of column lists that say what a contract says: of places at which messages may have other lists
        self.by_list = {
            (name, id_.encode()): self.mapped.get((name, table), -1)
            for name, brought in (lookups or {}).items()
            if name in self.sources
            for id_, table in metadata.of_table(brought, self.sources[name]).items()
        }
        self.large = [
            place
            for place, (name, table) in enumerate(self.places)
            if large_objects.names(table) and self.sources[name].options_as(full_load.Options).large_null != "null"
        ]  # of tables that have large objects, whose nulls in updates the exact path reads

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
                value = batch.column("value")[i].as_py() or b""
                named = NAMES.search(value)
                place = self.by_name.get((source, *named.groups()), -1) if named else -1
                places[i] = place + len(self.places) if place >= 0 else self._by_list(source, value)
        places[~np.asarray(batch.column("value").is_valid())] = -1
        if self.large:
            is_update = np.asarray(pc.fill_null(pc.match_substring(batch.column("value"), "UPDATE"), False))
            places[(places >= 0) & np.isin(places % len(self.places), self.large) & is_update] = -1
        for i in np.flatnonzero((places >= 0) & _may_name_lists(batch.column("value"))) if self.agreeing else ():
            ids = self.agreeing.get(places[i] % len(self.places))
            if ids is not None and not metadata.is_sure(batch.column("value")[int(i)].as_py(), ids):
                places[i] = -1  # the exact path reads its masks
        return places

    def _by_list(self, source: str, value: bytes) -> int:
        """The place of a message that its column list alone tells; -1 for none."""
        ids = set(metadata.NAMED.findall(value))
        return self.by_list.get((source, ids.pop()), -1) if len(ids) == 1 else -1


def _may_name_lists(values: pa.Array) -> np.ndarray:
    """Which messages may name a column list: not those that say null once, as they do where no metadata is published,
    or nothing at all.
    """
    num = pc.fill_null(pc.count_substring(values, "messageSchemaId"), 0)
    says_null = pc.fill_null(pc.match_substring(values, '"messageSchemaId":null'), False)
    return np.asarray(num) > np.asarray(says_null).astype(np.int64)
