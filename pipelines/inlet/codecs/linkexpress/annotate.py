"""Every byte of a Linkexpress extract with its field and meaning: what `inlet inspect` shows of one.

Records, heads and items are read anew, in plain Python; only the layouts of the contracts are those of the decoder.
Source: docs/formats/linkexpress_group.md, linkexpress_table.md; the layouts are in group.py and table.py.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from inlet.codecs.linkexpress import item
from inlet.codecs.linkexpress.annotate_items import ItemReader
from inlet.codecs.linkexpress.frames import (
    FULL,
    GROUP,
    JOURNAL,
    LEN_COMMIT,
    LEN_HEAD,
    LEN_VENDOR_RECORD,
    ids_of,
    reading_in_force,
    tables_of,
)
from inlet.codecs.linkexpress.options import options_of
from inlet.codecs.linkexpress.reject import change_seq_of, change_seq_prefix
from inlet.codecs.notes import Annotated, Note, bare, printable, unreadable
from inlet.source import Source
from inlet.table import Table

REFRESH, INSERT, UPDATE, DELETE = range(4)
OPERATIONS = {REFRESH: "REFRESH", INSERT: "INSERT", UPDATE: "UPDATE", DELETE: "DELETE"}
COMMIT, EMPTY_LOAD = 0x8000, 0xFFFF
Problem = tuple[str, int, int, str]  # kind, first byte and end of what is wrong, what was expected


class Head(NamedTuple):
    """What stands before the items of a record: where they begin, the place of the table's layout, what is wrong."""

    num_columns: int
    extraction_id: int | None
    operation: int | None
    items: int
    table: Table | None
    layout: int
    problem: Problem | None


def annotate(data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """The records of a block, with the notes of all its bytes."""
    if context["byte_order"] is None:
        return [bare("no record", 0, len(data), "truncated", "a whole record", f"{len(data)} bytes")] if data else []
    context = reading_in_force(context, source, tables).reading
    block = _Block if context.get("layout", GROUP) == GROUP else _TableBlock
    return list(block(data, context, source, tables).records())


class _Block:
    def __init__(self, data: bytes, context: dict, source: Source, tables: dict):
        self.data, self.context, self.source = data, context, source
        self.tables, options = tables_of(context, tables), options_of(source)
        self.ids = ids_of(source, self.tables) if context.get("layout", GROUP) == GROUP else {}
        self.places = {name: n for n, name in enumerate(sorted(self.tables))}
        self.order, self.len_null = context["byte_order"], 2 if context["null_areas"] == "yes" else 0
        wanted = frozenset(self.ids.values()) | {context.get("table")}
        self.layouts = item.compile_layouts(self.tables, wanted, options, context)
        self.items = ItemReader(self.layouts, context, options)
        self.len_min = LEN_COMMIT + self.len_null
        self.len_max = options.max_record_bytes or max(LEN_VENDOR_RECORD, self.layouts.len_record + LEN_HEAD + 2)

    def _number(self, at: int, size: int) -> int:
        return int.from_bytes(self.data[at : at + size], self.order)

    def records(self) -> Iterator[Annotated]:
        """All records, each with its place in its transaction; a commit record closes it."""
        transaction, counter = self.context["transaction_ordinal"], self.context["counter"]
        spans, end = self._spans()
        heads = [self._head(start, stop) for start, stop in spans]
        for n, ((start, stop), head) in enumerate(zip(spans, heads)):
            is_commit = head.num_columns == 1
            is_load = not is_commit and head.operation in (REFRESH, EMPTY_LOAD)
            is_counted = not is_commit and not is_load
            if head.problem:  # as frame.heads counts it
                is_counted = not (is_load and self.context["table"] and self._number(start + 6, 2) == 0)
            counter += is_counted
            is_closed = n + 1 < len(heads) and heads[n + 1].num_columns == 1 and heads[n + 1].problem is None
            yield self._record(
                n,
                start,
                stop,
                head,
                transaction_id=self._transaction_id(transaction) if is_counted or is_commit else None,
                event=counter if is_counted else None,
                is_last=is_closed if is_counted else None,
            )
            if is_commit and head.problem is None:
                transaction, counter = transaction + 1, 0
        if end < len(self.data):
            yield self._rest(end)

    def _is_first(self, at: int) -> bool:
        """Is it the first record of the file? Behind another one, FFFF is no operation."""
        return at == 0 and self.context["record_ordinal"] == 0

    def _spans(self) -> tuple[list[tuple[int, int]], int]:
        """First byte and end of each whole record; where they end."""
        at, spans = 0, []
        while at + 4 <= len(self.data):
            size = self._number(at, 4)
            if not self.len_min <= size <= self.len_max or at + size > len(self.data):
                break
            spans.append((at, at + size))
            at += size
        return spans, at

    def _rest(self, at: int) -> Annotated:
        rest, size = len(self.data) - at, self._number(at, 4)
        if rest >= 4 and not self.len_min <= size <= self.len_max:
            expected = f"a record of {self.len_min} to {self.len_max} bytes"
            return bare("no record", at, len(self.data), "bad_length", expected, f"a length of {size}")
        return bare("no record", at, len(self.data), "truncated", "a whole record", f"{rest} bytes")

    def _transaction_id(self, ordinal: int) -> str | None:
        return f"{change_seq_prefix(self.context)}-{ordinal}" if self.context.get("time") else None

    def _head(self, at: int, end: int) -> Head:
        num_columns, rest = self._number(at + 4, 2), at + 6
        if num_columns == 1:
            place, problem = rest + self.len_null, None
            if self.len_null and self._number(rest, 2) != 0:
                problem = "bad_null_indicator", rest, rest + 2, "0000"
            elif self._number(place, 2) != COMMIT:
                problem = "unknown_operation", place, place + 2, "8000, a commit"
            elif place + 2 != end:
                problem = "trailing_bytes", place + 2, end, "the end of a commit record"
            return Head(1, None, self._number(place, 2), place + 2, None, -1, problem)
        items = at + LEN_HEAD + self.len_null
        if items > end:
            return Head(num_columns, None, None, end, None, -1, ("truncated", end, end, "the head of a record"))
        id_, operation = self._number(rest, 2), self._number(items - 2, 2)
        name, problem = self._table(at, end, items, num_columns, id_, operation)
        table, layout = (self.tables[name], self.places[name]) if name else (None, -1)
        return Head(num_columns, id_, operation, items, table, layout, problem)

    def _table(
        self, at: int, end: int, items: int, num_columns: int, id_: int, operation: int
    ) -> tuple[str | None, Problem | None]:
        """The table that a head names, or what is wrong with it."""
        if self.len_null and self._number(at + 8, 2) != 0:
            return None, ("bad_null_indicator", at + 8, at + 10, "0000")
        is_load = operation in (REFRESH, EMPTY_LOAD)
        if not self.tables and (is_load or operation <= DELETE):
            return None, None  # without contracts, whatever an id means is not known
        if not is_load and operation > DELETE:
            return None, ("unknown_operation", items - 2, items, "operation 0000-0003 or FFFF")
        name = self.context.get("table") if is_load else self.ids.get(id_)
        if is_load and id_ != 0 or not is_load and name is None:
            expected = "0 of a full extract" if is_load else "an id that the source's tables map"
            return None, ("unknown_extraction_id", at + 6, at + 8, expected)
        if name is None:
            return None, ("unknown_table", at + 6, at + 8, "a file name that names the table of a full extract")
        num_items = len(self.tables[name].columns)
        if num_columns != num_items + 2 and not (operation == EMPTY_LOAD and num_columns == 2):
            return name, ("bad_column_count", at + 4, at + 6, f"{num_items + 2}: {num_items} of the table and 2")
        if operation == EMPTY_LOAD and not self._is_first(at):
            return name, (
                "unknown_operation",
                items - 2,
                items,
                "FFFF in the first record of a file alone, else operation 0000-0003",
            )
        if operation == EMPTY_LOAD and items != end:
            return name, ("trailing_bytes", items, end, "the end of the record")
        return name, None

    def _record(self, n: int, start: int, end: int, head: Head, **told: Any) -> Annotated:
        operation = OPERATIONS.get(head.operation) if head.operation is not None and head.problem is None else None
        title = {COMMIT: "commit", EMPTY_LOAD: "full extract without rows"}.get(head.operation or 0, operation)
        problem = head.problem and (head.problem[0], f"expected {head.problem[3]}")
        return Annotated(
            start,
            end - start,
            title or "record",
            self._reader(start, end, head),
            operation,
            head.table.table if head.table else self._unnamed(head),
            change_seq=change_seq_of(self.context, n),
            fault=problem,
            **told,
        )

    def _unnamed(self, head: Head) -> str | None:
        """What stands for a table where there are no contracts."""
        has_id = not self.tables and head.extraction_id is not None and not head.problem
        return f"extraction id {head.extraction_id}" if has_id else None

    def _reader(self, start: int, end: int, head: Head) -> Callable[[], Iterator[Note]]:
        def read() -> Iterator[Note]:
            yield from self._head_notes(start, end, head)
            if head.items >= end and (head.problem or not head.table or head.operation == EMPTY_LOAD):
                return
            if head.problem and head.problem[1] == head.items:
                kind, _, stop, expected = head.problem
                yield unreadable(head.items, stop, kind, expected, f"{end - head.items} bytes more")
            elif head.table and not head.problem:
                yield from self.items.notes(
                    self.data, head.items, end, head.table, head.layout, head.operation == DELETE
                )
            else:
                why = "not read: which table's they are is not known" if not head.table else "not read"
                yield Note(head.items, end - head.items, "items", f"{why}: {printable(self.data[head.items : end])}")

        return read

    def _head_notes(self, start: int, end: int, head: Head) -> Iterator[Note]:
        yield Note(start, 4, "length", f"{end - start}")
        yield self._field(
            start + 4, 2, "columns", head, "1, a commit" if head.num_columns == 1 else f"{head.num_columns}"
        )
        at = start + 6
        if head.num_columns != 1 and head.operation is None:
            if at < end:
                yield unreadable(at, end, "truncated", "the head of a record", f"{end - at} bytes")
            return
        if head.num_columns != 1:
            mapped = f", {head.table.table}" if head.table else ""
            yield self._field(at, 2, "extraction id", head, f"{head.extraction_id}{mapped}")
            at += 2
        if self.len_null:
            yield self._field(at, 2, "null indicator", head, "present")
            at += 2
        yield self._operation(at, head)

    def _operation(self, at: int, head: Head) -> Note:
        said = OPERATIONS | {COMMIT: "commit", EMPTY_LOAD: "full extract without rows"}
        operation = head.operation or 0
        return self._field(at, 2, "operation", head, f"{operation:04x} {said.get(operation, 'unknown')}")

    def _field(self, at: int, size: int, name: str, head: Head, meaning: str) -> Note:
        """A field of the head; the one that is wrong says so."""
        if head.problem and (head.problem[1], head.problem[2]) == (at, at + size):
            return unreadable(at, at + size, head.problem[0], head.problem[3], self.data[at : at + size].hex(), name)
        return Note(at, size, name, meaning)


class _TableBlock(_Block):
    """A block of an extract by table, whose records are of no transaction."""

    def __init__(self, data: bytes, context: dict, source: Source, tables: dict):
        super().__init__(data, context, source, tables)
        self.is_journal, self.is_full = context["layout"] == JOURNAL, context["extract"] == FULL
        self.has_lengths = self.is_journal or context["logtype"] == "little"
        self.len_before = 8 if self.is_journal else 4 if self.has_lengths else 0
        self.table = self.tables[context["table"]]
        if self.has_lengths:
            self.len_min = self.len_before + 2
        else:
            self.len_min = 2 + self.items.len_full(self.places[context["table"]])

    def _spans(self) -> tuple[list[tuple[int, int]], int]:
        if self.has_lengths:
            return super()._spans()
        if self._is_alone():
            return [(0, 2)], 2
        num = len(self.data) // self.len_min
        return [(n * self.len_min, (n + 1) * self.len_min) for n in range(num)], num * self.len_min

    def _is_alone(self) -> bool:
        """Is what begins here the FFFF of a full extract without rows, in the form without lengths?"""
        return (
            self.is_full
            and not self.has_lengths
            and self._is_first(0)
            and self._number(0, 2) == EMPTY_LOAD
            and len(self.data) == 2
        )

    def _rest(self, at: int) -> Annotated:
        if self._is_alone():
            rest, expected = len(self.data) - at, "the end of the file behind FFFF, a full extract without rows"
            return bare("no record", at, len(self.data), "trailing_bytes", expected, f"{rest} bytes more")
        if self.has_lengths:
            return super()._rest(at)
        return bare("no record", at, len(self.data), "truncated", "a whole record", f"{len(self.data) - at} bytes")

    def _head(self, at: int, end: int) -> Head:
        place, problem, num_items = at + self.len_before, None, len(self.table.columns)
        operation, num_columns = self._number(place, 2), self._number(at + 4, 2) if self.is_journal else 0
        is_known = operation == REFRESH if self.is_full else INSERT <= operation <= DELETE
        is_empty = (
            self.is_full and operation == EMPTY_LOAD and (self._is_first(at) if self.has_lengths else self._is_alone())
        )
        if self.is_journal and self._number(at + 6, 2) != 0:
            problem = "bad_null_indicator", at + 6, at + 8, "0000"
        elif is_empty and place + 2 != end:
            problem = "trailing_bytes", place + 2, end, "the end of the record"
        elif not is_known and not is_empty:
            expected = "operation 0000 of a full extract" if self.is_full else "operation 0001-0003 of differences"
            problem = "unknown_operation", place, place + 2, expected
        elif self.is_journal and num_columns != num_items + 1:
            problem = "bad_column_count", at + 4, at + 6, f"{num_items + 1}: {num_items} of the table and 1"
        table = None if problem and problem[0] != "bad_column_count" else self.table
        return Head(num_columns, None, operation, place + 2, table, self.places[self.table.table], problem)

    def records(self) -> Iterator[Annotated]:
        spans, end = self._spans()
        for n, (start, stop) in enumerate(spans):
            yield self._record(n, start, stop, self._head(start, stop))
        if end < len(self.data):
            yield self._rest(end)

    def _head_notes(self, start: int, end: int, head: Head) -> Iterator[Note]:
        if self.has_lengths:
            yield Note(start, 4, "length", f"{end - start}")
        if self.is_journal:
            yield self._field(start + 4, 2, "columns", head, f"{head.num_columns}")
            yield self._field(start + 6, 2, "null indicator", head, "present")
        yield self._operation(head.items - 2, head)
