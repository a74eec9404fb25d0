"""What is the same for all blocks of a file: the plain reader, how journals are written, and the layouts of tables.

It is made once for a source, a reading and the contracts in force, and kept for the blocks to come: for one block it
takes as long as the block.
"""

from typing import NamedTuple

from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.columns import Refused
from inlet.codecs.linkexpress.journal.frame import ByteOrder, Packet
from inlet.codecs.linkexpress.journal.items import VALID, Found
from inlet.codecs.linkexpress.journal.layout import Layouts, how_of, layouts_of, rules_of, sets_of, system_of
from inlet.codecs.linkexpress.journal.options import options_of
from inlet.codecs.linkexpress.journal.record import JCKP, Reader
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

MAX_KEPT = 8  # setups
MAX_TEXTS = 10_000  # texts, or sets of tables, that one remembers


class Named(NamedTuple):
    """What a resource names: a table, or why it is none. A journal is odd where its resource is no text, or that of a
    checkpoint: then the plain reader reads it.
    """

    text: str | None
    table: str | None
    refused: Refused | None  # its offset counts from the resource's first byte
    is_odd: bool


class Setup:
    """Of a source, a reading and the contracts in force."""

    def __init__(self, source: Source, reading: dict, tables: dict[str, Table]):
        self.source, self.reading, self.tables = source.model_copy(deep=True), dict(reading), tables
        self.options = options_of(source)
        self.reader = Reader(reading, self.source, self.options, tables)
        self.rules, self.how = rules_of(reading), how_of(self.reader.reading)
        self.system, self.len_system = system_of(reading, self.options)
        self.sets = sets_of(self.options.model_dump_json())
        self.named: dict[tuple, Named] = {}
        self.layouts: dict[tuple[str, ...], Layouts] = {}
        definition = self.reader.columns.definition or []
        self.only = definition[0] if len(definition) == 1 else None  # the table of journals that name none

    def is_of(self, source: Source, reading: dict, tables: dict[str, Table]) -> bool:
        return (
            self.reading == reading
            and self.tables.keys() == tables.keys()
            and all(self.tables[name] is table for name, table in tables.items())
            and self.source == source
        )

    def text_of(self, raw: bytes, order: ByteOrder) -> str | None:
        """The text of a system item, None where it is none."""
        try:
            return self.reader.text(raw, Packet(0, 0, order, None, []), Found(0, 0, len(raw), VALID))
        except Wrong:
            return None

    def named_by(self, raw: bytes, order: ByteOrder) -> Named:
        """What TJNLRESOURCE names."""
        key = order, raw
        if key not in self.named:
            text, table, refused = self.text_of(raw, order), None, None
            try:
                table = self.reader.table_of(raw, Packet(0, 0, order, None, []), Found(0, 0, len(raw), VALID))
            except Refused as wrong:
                refused = wrong
            except Wrong:
                pass
            self.named[key] = Named(text, table, refused, text is None or text.rstrip(" ") == JCKP)
        return self.named[key]

    def layouts_of(self, names: set[str]) -> Layouts:
        """The columns of these tables; of all, where each journal holds them. Raises: ConfigError."""
        has_all = self.reading["compressed"] == "no"
        known = tuple(self.reader.columns.definition or ()) if has_all else tuple(sorted(names))
        if known not in self.layouts:
            sign = self.reading["numeric_sign"]
            self.layouts[known] = layouts_of(known, self.tables, has_all, self.options, sign)
        return self.layouts[known]


KEPT: list[Setup] = []  # the last one used stands last


def setup_of(context: dict, source: Source, tables: dict[str, Table]) -> Setup:
    """What a block is read by. The file's name tells which contracts are in force. Raises: ConfigError."""
    in_file = journal_reading.in_file(context, tables)
    found = next((one for one in KEPT if one.is_of(source, context["reading"], in_file)), None)
    if found:
        KEPT.remove(found)
    else:
        found = Setup(source, context["reading"], in_file)
    if len(found.reader.texts) > MAX_TEXTS or len(found.named) > MAX_TEXTS or len(found.layouts) > MAX_TEXTS:
        found = Setup(source, context["reading"], in_file)
    KEPT[:] = [*KEPT[-MAX_KEPT + 1 :], found]
    return found
