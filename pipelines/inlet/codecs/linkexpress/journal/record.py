"""A usage journal as a change, a checkpoint or a reject. The format is in files.py."""

import datetime
import json
from typing import Any, NamedTuple

from inlet import change
from inlet.codecs.linkexpress.journal import items as journal_items
from inlet.codecs.linkexpress.journal import transaction
from inlet.codecs.linkexpress.journal.columns import Columns, Refused
from inlet.codecs.linkexpress.journal.frame import Packet
from inlet.codecs.linkexpress.journal.items import INVALID, VALID, Found, Journal
from inlet.codecs.linkexpress.journal.options import Options
from inlet.codecs.linkexpress.journal.transaction import Transactions
from inlet.codecs.linkexpress.journal.values import Item
from inlet.codecs.linkexpress.local_time import parsed_time, utc_time
from inlet.codecs.linkexpress.opening import tables_named
from inlet.codecs.results import Control
from inlet.errors import Event, Reject
from inlet.fields import charset
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

OPERATIONS = {1: "INSERT", 2: "UPDATE", 3: "DELETE"}
JCKP, DBKIND_CHECKPOINT = "JCKP", 8
DATABASES = (1, 9, 10)  # TJNLDBKIND of a change: Symfoware, Oracle, SQL Server


class Walked(NamedTuple):
    """A journal, or why it cannot be read; its place in a transaction."""

    journal: Journal | Wrong
    event: Event | None
    is_out_of_sequence: bool = False


class Reader:
    """Reads the journals of a file by one reading. In: contracts as they are in force for the file."""

    def __init__(self, reading: dict, source: Source, options: Options, tables: dict[str, Table]):
        self.reading, self.source, self.options, self.tables = reading, source, options, tables
        self.columns = Columns(reading, source, options, tables)
        self.texts: dict[tuple[str, bytes, bool], str] = {}  # of system items, which hold few different ones

    def walk(self, data: bytes, packet: Packet, start: int, end: int, transactions: Transactions) -> Walked:
        """Find the items of a journal, and its place in its transaction. Where its message has lost one, that may have
        been of any transaction that is open.
        """
        if packet.lacks:
            transactions.unknown()
        try:
            journal = self.journal(data, packet, start, end)
        except Wrong as wrong:
            transactions.unknown()
            return Walked(wrong, None)
        id_, sts = (self.valid(journal, name) for name in ("TRNID", "STS"))
        num_valid, told = journal.num_valid, int.from_bytes(data[start + 4 : start + 6], packet.byte_order)
        is_wrong = journal.columns is not None and num_valid != told
        found: Journal | Wrong = journal
        if is_wrong:
            table = self._known_table(data, packet, journal)
            found = Refused("contradiction", start + 4, f"{num_valid} valid items, as there are", f"{told}", table)
        elif packet.wrong:  # a journal may be too many in its message, or missing: none is taken, each keeps its place
            of_message, table = packet.wrong, self._known_table(data, packet, journal)
            found = Refused(of_message.kind, start, of_message.expected, of_message.found, table)
        if id_ is None or sts is None:
            if is_wrong:
                transactions.unknown()
            return Walked(found, None)
        event = transactions.step(data[id_.data_start : id_.end].hex().upper(), self.number(data, packet, sts))
        return Walked(found, event, event is None)

    def journal(self, data: bytes, packet: Packet, start: int, end: int) -> Journal:
        """The items of a journal. Raises: Wrong."""
        if self.reading["tagged"] == "yes":
            return journal_items.tagged(data, start, end, packet.byte_order, self.reading)

        def columns_of(resource: Found | None) -> list[Item] | None:
            try:
                return self.columns.items_of(self.table_of(data, packet, resource))
            except Refused:
                return None

        return journal_items.untagged(
            data,
            start,
            end,
            packet.byte_order,
            self.reading,
            self.options.sysitems,
            self.columns.every,
            columns_of,
            lambda system: self._is_checkpoint(data, packet, system),
        )

    def read(
        self, data: bytes, packet: Packet, start: int, end: int, walked: Walked, seq: str
    ) -> dict | Control | Reject:
        """What a journal is."""
        known = ""
        try:
            if isinstance(walked.journal, Wrong):
                raise walked.journal
            if walked.is_out_of_sequence:
                known = self._known_table(data, packet, walked.journal)
                raise self._out_of_sequence(data, packet, walked.journal.system["STS"])
            if self._is_checkpoint(data, packet, walked.journal.system):
                return self._checkpoint(data, packet, start, end, walked.journal, seq)
            known = self.table_of(data, packet, self.valid(walked.journal, "RESOURCE"), start)
            return self._change(data, packet, start, end, walked, known, seq)
        except Wrong as wrong:
            table = wrong.table if isinstance(wrong, Refused) and wrong.table else known
            schema, _, name = table.partition(".")
            return Reject(
                wrong.kind,
                start,
                end - start,
                wrong.offset,
                wrong.expected,
                wrong.found,
                data[start:end],
                schema or None,
                name or None,
                wrong.column if isinstance(wrong, Refused) else None,
                seq,
                walked.event,
            )

    def valid(self, journal: Journal, name: str) -> Found | None:
        """A system item, where it is there and valid."""
        item = journal.system.get(name)
        return item if item and item.state == VALID else None

    def number(self, data: bytes, packet: Packet, item: Found) -> int:
        """The number that a system item holds."""
        return int.from_bytes(data[item.data_start : item.end], packet.byte_order, signed=True)

    def text(self, data: bytes, packet: Packet, item: Found, is_moment: bool = False) -> str:
        """The text of a system item. In: is it TIME, or the name of a checkpoint? Raises: Wrong."""
        raw = data[item.data_start : item.end]
        try:
            order = packet.byte_order
            if (order, raw, is_moment) not in self.texts:
                chars = self.options.moment_set(order) if is_moment else self.options.char_set(order)
                self.texts[order, raw, is_moment] = charset.text(raw, chars)
            return self.texts[order, raw, is_moment]
        except Wrong as wrong:
            raise Wrong(wrong.kind, item.data_start + wrong.offset, wrong.expected, wrong.found) from None

    def _is_checkpoint(self, data: bytes, packet: Packet, system: dict[str, Found]) -> bool:
        """JCKP is the resource of a checkpoint, unless the journal is one of a table of that name."""
        valid = {name: item for name, item in system.items() if item.state == VALID}
        try:
            if "RESOURCE" not in valid or self.text(data, packet, valid["RESOURCE"]).rstrip(" ") != JCKP:
                return False
        except Wrong:
            return False
        if "DBKIND" in valid:
            return self.number(data, packet, valid["DBKIND"]) == DBKIND_CHECKPOINT
        return "DBOP" not in valid

    def _out_of_sequence(self, data: bytes, packet: Packet, sts: Found) -> Wrong:
        found = self.number(data, packet, sts)
        if found not in (transaction.FIRST, transaction.MIDDLE, transaction.LAST, transaction.ONLY):
            return Wrong("bad_header", sts.data_start, "TJNLSTS 1, 2, 4 or 5", f"{found}")
        expected = "the end of the transaction that is open, TJNLSTS 2 or 4"
        return Wrong("out_of_sequence", sts.data_start, expected, f"TJNLSTS {found}")

    def _checkpoint(self, data: bytes, packet: Packet, start: int, end: int, journal: Journal, seq: str) -> Control:
        item, time = journal.checkpoint, self._time(data, packet, journal)
        if other := next((column for column in journal.columns or () if column.state != INVALID), None):
            raise Wrong("contradiction", other.start, "a checkpoint, whose columns are invalid", f"one, {other.state}")
        at = time and utc_time(time, self.options.zone)
        detail = {
            "name": self._name(data, packet, item) if item and item.state == VALID else None,
            "local_time": time and time.isoformat(sep=" "),
            "timestamp": at and at.isoformat(),
        }
        told = {name: value for name, value in detail.items() if value is not None}
        return Control("checkpoint", start, end - start, change_seq=seq, detail=json.dumps(told, ensure_ascii=False))

    def _name(self, data: bytes, packet: Packet, item: Found) -> str:
        """The name of a checkpoint. Raises: Wrong."""
        name = self.text(data, packet, item, is_moment=True).rstrip(" ")
        if "\0" in name:
            found = data[item.data_start : item.data_start + charset.LEN_FOUND].hex().upper()
            raise Wrong(
                "bad_text", item.data_start + name.index("\0"), "the name of a checkpoint, in single bytes", found
            )
        return name

    def _time(self, data: bytes, packet: Packet, journal: Journal) -> datetime.datetime | None:
        """TJNLTIME, local; None where there is none. Raises: Wrong."""
        item = self.valid(journal, "TIME")
        if item is None:
            return None
        text = self.text(data, packet, item, is_moment=True)
        time = parsed_time(text)
        if time is None:
            raise Wrong("bad_date", item.data_start, "TJNLTIME YYYYMMDDHHMMSS and hundredths", repr(text))
        return time

    def table_of(self, data: bytes, packet: Packet, resource: Found | None, start: int = 0) -> str:
        """SCHEMA.TABLE with a contract that a journal names. Raises: Wrong."""
        expected = f"a table with a contract, by its name in {self.options.charset} or by a word of `tables`"
        if resource is None:
            if self.columns.definition is None or len(self.columns.definition) != 1:
                raise Refused("unknown_table", start, f"TJNLRESOURCE, {expected}", "none")
            return self.columns.definition[0]
        word = self.text(data, packet, resource).rstrip(" ")
        mapped = self.source.table_of(word)
        names = [mapped] if mapped else tables_named(word, self.source, self.tables)
        if len(names) > 1:
            raise Refused(
                "ambiguous_table", resource.data_start, "one table of that name", f"{word}: {', '.join(names)}"
            )
        if not names or names[0] not in self.tables:
            raise Refused("unknown_table", resource.data_start, expected, word, table=mapped or "")
        return self.tables[names[0]].table

    def _known_table(self, data: bytes, packet: Packet, journal: Journal) -> str:
        """The table of a journal, "" where it cannot be told."""
        try:
            return self.table_of(data, packet, self.valid(journal, "RESOURCE"))
        except Wrong:
            return ""

    def _change(
        self, data: bytes, packet: Packet, start: int, end: int, walked: Walked, name: str, seq: str
    ) -> dict[str, Any]:
        """The change of a journal. Raises: Wrong."""
        journal, contract = walked.journal, self.tables[name]
        assert isinstance(journal, Journal)
        op = self.valid(journal, "DBOP")
        code = self.number(data, packet, op) if op else None
        if op is None or code not in OPERATIONS:
            at = op.data_start if op else start
            raise Wrong("unknown_operation", at, "TJNLDBOP 1, 2 or 3", "none" if op is None else f"{code}")
        operation = OPERATIONS[code]
        self._check_change(data, packet, journal)
        image, states = self.columns.image(data, packet, start, journal, name, operation)
        time, event = self._time(data, packet, journal), walked.event
        ordinals = [n for n, column in enumerate(contract.column_names, 1) if column in image]
        return {
            "source_schema": contract.schema_name,
            "source_table": contract.table_name,
            "table_version": contract.version,
            "change_seq": seq,
            "operation": operation,
            "change_oper": change.OPERATIONS[operation],
            "transaction_id": event and event.transaction_id,
            "transaction_event_counter": event and event.counter,
            "transaction_last_event": event and event.is_last,
            "change_timestamp": time and utc_time(time, self.options.zone),
            "column_mask": None if len(ordinals) == len(contract.columns) else change.mask(ordinals),
            "before": image if operation == "DELETE" else None,
            "after": None if operation == "DELETE" else image,
            "column_states": states or None,
            "header": self._header(data, packet, journal, event) if self.source.header else None,
            "unit_offset": start,
            "unit_length": end - start,
        }

    def _check_change(self, data: bytes, packet: Packet, journal: Journal) -> None:
        """Raises: Wrong where a change has what only a checkpoint has, or is of no database that is known."""
        kind, item = self.valid(journal, "DBKIND"), journal.checkpoint
        if kind and (found := self.number(data, packet, kind)) not in DATABASES:
            raise Wrong("bad_header", kind.data_start, "TJNLDBKIND 1, 9 or 10 of a change", f"{found}")
        if item and item.state == VALID:
            name = data[item.data_start : item.end].hex().upper()
            raise Wrong("contradiction", item.start, "a name of a checkpoint in a checkpoint alone", name)

    def _header(self, data: bytes, packet: Packet, journal: Journal, event: Event | None) -> dict[str, Any]:
        """What the columns of the change table do not hold. Raises: Wrong."""
        valid = {name: item for name, item in journal.system.items() if item.state == VALID}
        told: dict[str, Any] = {}
        for name, item in valid.items():
            if name in ("STORAGE", "RESOURCE"):
                told[name.lower()] = self.text(data, packet, item).rstrip(" ")
            elif name in ("DBKIND", "STS"):
                told[name.lower()] = self.number(data, packet, item)
            elif name == "TRNID" and event is None:
                told["trnid"] = data[item.data_start : item.end].hex().upper()
        if packet.header:
            system, packed, num, tail = packet.header
            told |= {"acquiring_system": system, "packed_transactions": packed, "journals": num}
            told |= {"header_tail": tail.hex().upper()}
        return told
