"""The columns of usage journals: which items are whose, and what image they make. The layouts are in files.py."""

from typing import Any

from inlet.codecs.linkexpress.journal import values
from inlet.codecs.linkexpress.journal.frame import Packet
from inlet.codecs.linkexpress.journal.items import INVALID, MISSING, NO_DEFINITION, NULL, VALID, Found, Journal
from inlet.codecs.linkexpress.journal.options import Options, options_of
from inlet.codecs.linkexpress.journal.values import CODES, TEXTS, Item, value_of
from inlet.errors import ConfigError
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table


class Refused(Wrong):
    """A journal that is no change, with the table and column that it is about, as far as they are known."""

    def __init__(self, kind: str, offset: int, expected: str, found: str, table: str = "", column: str | None = None):
        super().__init__(kind, offset, expected, found)
        self.table, self.column = table, column


def check(source: Source, tables: dict[str, Table]) -> None:
    """Raises: ConfigError where journals cannot be read by the source's options and contracts."""
    columns = Columns({}, source, options_of(source), tables)
    for table in source.tables.values() if source.tables else columns.definition or ():
        if table in tables:
            columns.items_of(table)


class Columns:
    """Reads the columns of journals by one reading. In: contracts as they are in force for the file."""

    def __init__(self, reading: dict, source: Source, options: Options, tables: dict[str, Table]):
        self.reading, self.source, self.options, self.tables = reading, source, options, tables
        self.num_odd = 0  # items that are missing though no conversion of characters could lose them
        self._items: dict[str, list[Item]] = {}
        self.definition = self._definition()
        # of every table, where the acquisition definition is known
        self.every = [item for table in self.definition for item in self.items_of(table)] if self.definition else None

    def _definition(self) -> list[str] | None:
        """The tables of the acquisition definition, in its order; None where they are not known, or lack a contract.
        Raises: ConfigError.
        """
        named = [table for word, table in self.source.tables.items() if "*" not in word]
        for table in named:
            if table not in self.tables and self.source.wants(table):
                raise ConfigError(
                    f"sources.{self.source.name}.tables names {table}, which has no contract for this source",
                    f"Write pipelines/tables/{table.split('.')[-1].lower()}.yml",
                )
        contracts = list(dict.fromkeys(table.table for table in self.tables.values()))
        if not self.source.tables:
            return contracts if len(contracts) == 1 else None
        if not named or any(table not in self.tables for table in named):
            return None
        return list(dict.fromkeys(self.tables[table].table for table in named))

    def items_of(self, table: str) -> list[Item]:
        """The columns of a table, as journals have them."""
        if table not in self._items:
            self._items[table] = values.items_of(self.tables[table], self.options)
        return self._items[table]

    def image(
        self, data: bytes, packet: Packet, start: int, journal: Journal, name: str, operation: str
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The image that a journal holds, and the columns whose value is missing. Raises: Wrong."""
        image: dict[str, Any] = {}
        states: dict[str, str] = {}
        columns = self.of(start, journal, name)
        for item, found in columns:
            column = item.column.name
            if found.code is not None:
                self._check_tag(item, found, name)
            if found.state == MISSING:
                states[column] = "missing"
                self.num_odd += item.code not in TEXTS
            elif found.state == NULL:
                image[column] = None
            elif found.state == VALID:
                image[column] = self.value(data, packet, item, found)
            if item.is_key and image.get(column) is None:
                raise Refused(
                    "missing_key", found.start, f"a value of {column}, of the key", found.state, column=column
                )
            if operation != "DELETE" and not item.column.nullable and found.state == NULL:
                raise Refused(
                    "null_not_allowed", found.start, f"a value, for {column} is not nullable", NULL, column=column
                )
        if all(found.state == INVALID for _, found in columns):
            raise Wrong("contradiction", start, f"a column of {name} that the change has", "none")
        return image, states

    def value(self, data: bytes, packet: Packet, item: Item, found: Found) -> Any:
        """The value of a valid column. Raises: Refused."""
        try:
            return value_of(data[found.data_start : found.end], item, packet.byte_order, self.options)
        except Wrong as wrong:
            expected, at = f"{item.column.source_type}: {wrong.expected}", found.data_start + wrong.offset
            raise Refused(wrong.kind, at, expected, wrong.found, column=item.column.name) from None

    def of(self, start: int, journal: Journal, name: str) -> list[tuple[Item, Found]]:
        """The columns of a table with their items. Raises: Wrong."""
        items, found = self.items_of(name), journal.columns or []
        if self.reading["compressed"] == "no":
            if self.definition is None or name not in self.definition:
                raise Wrong("bad_column_count", start, NO_DEFINITION, name)
            first = sum(len(self.items_of(table)) for table in self.definition[: self.definition.index(name)])
            if len(found) != len(self.every or ()):
                expected = f"{len(self.every or ())} columns, those of {', '.join(self.definition)}"
                raise Wrong("bad_column_count", start, expected, f"{len(found)}")
            others = found[:first] + found[first + len(items) :]
            if foreign := next((item for item in others if item.state != INVALID), None):
                raise Wrong("contradiction", foreign.start, f"columns of {name} alone", f"another one, {foreign.state}")
            found = found[first : first + len(items)]
        if len(found) != len(items):
            raise Wrong("bad_column_count", start, f"{len(items)} columns, those of {name}", f"{len(found)}")
        return list(zip(items, found))

    def _check_tag(self, item: Item, found: Found, name: str) -> None:
        """Raises: Wrong where a tag contradicts the contract. An area of text may be longer than its column."""
        tag = f"{item.code:02X}"
        is_other = found.code != item.code
        if item.kind in ("NUMERIC", "DECIMAL"):
            is_other |= found.info != bytes([item.precision, item.scale])
            tag += f" {item.precision:02X}{item.scale:02X}"
        elif item.kind in ("DATE", "TIME", "TIMESTAMP", "INTERVAL"):
            is_other |= found.end - found.data_start != item.precision
            tag += f" of {item.precision} bytes"
        if is_other:
            kinds = " or ".join(kind for kind, code in CODES.items() if code == found.code)
            raise Refused(
                "definition_differs",
                found.start,
                f"{item.column.source_type}, tag {tag}",
                f"{found.code:02X} {found.info.hex().upper()}, {kinds}",
                column=item.column.name,
            )
