"""The items of a Linkexpress record for `inlet inspect`, read by the plain functions of `fields`.

Source: docs/formats/linkexpress_group.md. The layouts are those that item.py makes of the contracts.
"""

from collections.abc import Iterator
from typing import Any

from inlet.codecs.linkexpress.item import Layouts
from inlet.codecs.linkexpress.options import Options
from inlet.codecs.notes import AFTER, BEFORE, Note, group, of_wrong, printable, shown, unreadable
from inlet.fields import date, number
from inlet.fields.charset import Charset, text
from inlet.fields.compiled import interpreter as plan
from inlet.fields.wrong import Wrong
from inlet.table import Table
from inlet.table_column import TableColumn

NULL, PRESENT = 0xFFFF, 0
BLANKS = " \u3000"


class ItemReader:
    """Items by the layouts of a file. In: its context, which says how the file is read."""

    def __init__(self, layouts: Layouts, context: dict, options: Options):
        self.layouts, self.order = layouts, context["byte_order"]
        self.has_null_areas, self.has_actual_lengths = (
            context["null_areas"] == "yes",
            context.get("logtype", options.logtype) == "little",
        )
        self.null_body = context.get("null_var_body") or "len0"

    def len_full(self, layout: int) -> int:
        """Bytes of all items of a table where each has its defined length. In: its place among the layouts."""
        size = 0
        for row in self.layouts.plans[self.layouts.plan_starts[layout] : self.layouts.plan_starts[layout + 1]].tolist():
            size += 2 * self.has_null_areas + row[plan.WIDTH]
            size += 2 if row[plan.ENCODING] == plan.VARTEXT else 0
            size += (
                (row[plan.UNIT] >> 4) + (row[plan.UNIT] & 15) if row[plan.ENCODING] in (plan.BLOB, plan.LONGTEXT) else 0
            )
        return size

    def notes(self, data: bytes, at: int, end: int, table: Table, layout: int, is_delete: bool) -> Iterator[Note]:
        """The image that the items of a record are, and what follows it. In: the table's place among the layouts."""
        children, start = [], at
        rows = self.layouts.plans[self.layouts.plan_starts[layout] : self.layouts.plan_starts[layout + 1]].tolist()
        for column, row in zip(table.columns, rows):
            item, is_good = self._item(data, at, end, column, row, not is_delete)
            children.append(item)
            at = item.end
            if not is_good:
                break
        yield group(
            start, at, "before-image" if is_delete else "after-image", children, "", BEFORE if is_delete else AFTER
        )
        if at < end and is_good:
            found = f"{end - at} bytes more: {data[at : at + 16].hex()}"
            yield unreadable(at, end, "trailing_bytes", "the record to end with its last item", found)
        elif at < end:
            yield Note(at, end - at, "items", f"not read, for where they begin is not known: {printable(data[at:end])}")

    def _item(
        self, data: bytes, at: int, end: int, column: TableColumn, row: list, is_after: bool
    ) -> tuple[Note, bool]:
        """An item; whether the next one can be read."""
        start, children, is_null = at, list[Note](), False
        if self.has_null_areas:
            indicator = int.from_bytes(data[at : at + 2], self.order)
            if at + 2 > end or indicator not in (NULL, PRESENT):
                kind = "truncated" if at + 2 > end else "bad_null_indicator"
                stop = min(at + 2, end)
                why = unreadable(at, stop, kind, "0000 or FFFF", data[at:stop].hex() or "the end", "null indicator")
                return group(start, stop, column.name, [why]), False
            is_null = indicator == NULL
            children.append(self._indicator(data, at, column, row, is_null, is_after))
            at += 2
        notes, at, is_good = self._body(data, at, end, column, row, is_null)
        return group(start, at, column.name, [*children, *notes]), is_good

    def _indicator(self, data: bytes, at: int, column: TableColumn, row: list, is_null: bool, is_after: bool) -> Note:
        need = row[plan.NEED]
        if is_null and (need == plan.KEY or need == plan.NOT_NULL and is_after):
            kind = "missing_key" if need == plan.KEY else "null_not_allowed"
            expected = "0000, for a key is never null" if need == plan.KEY else "0000, for the column is not nullable"
            return unreadable(at, at + 2, kind, expected, data[at : at + 2].hex(), "null indicator")
        return Note(at, 2, "null indicator", "NULL" if is_null else "present", column=column.name if is_null else None)

    def _body(self, data: bytes, at: int, end: int, column: TableColumn, row: list, is_null: bool):
        """What stands behind the null indicator: notes, where they end, whether the next item can be read."""
        if row[plan.ENCODING] in (plan.VARTEXT, plan.BLOB, plan.LONGTEXT):
            return self._variable(data, at, end, column, row, is_null)
        stop = at + row[plan.WIDTH]
        if stop > end:
            found = f"{end - at} bytes"
            return (
                [unreadable(at, end, "truncated", f"{column.source_type}: {row[plan.WIDTH]} bytes", found, "value")],
                end,
                False,
            )
        if is_null:
            return [Note(at, stop - at, "area", f"of a NULL: {printable(data[at:stop])}")], stop, True
        note = self._value(data, at, stop, column, row)
        return [note], stop, not note.fault

    def _variable(self, data: bytes, at: int, end: int, column: TableColumn, row: list, is_null: bool):
        is_text = row[plan.ENCODING] == plan.VARTEXT
        reserved, len_length = (0, 2) if is_text else (row[plan.UNIT] >> 4, row[plan.UNIT] & 15)
        start = at + reserved + len_length
        if is_null:
            return self._null_variable(data, at, end, column, start - at, row[plan.WIDTH])
        if start > end:
            return (
                [unreadable(at, end, "truncated", f"{column.source_type}: its length", f"{end - at} bytes")],
                end,
                False,
            )
        said = int.from_bytes(data[at + reserved : start], self.order)
        size = said * (row[plan.UNIT] if is_text else 1)
        if size > row[plan.WIDTH]:
            expected = f"{column.source_type}: a length of at most {row[plan.WIDTH]} bytes"
            return [unreadable(at, start, "bad_value_length", expected, f"{said}", "length")], start, False
        notes = [Note(at, reserved, "reserved", "")] if reserved else []
        notes.append(Note(at + reserved, len_length, "length", f"{said}"))
        stop = start + (size if self.has_actual_lengths else row[plan.WIDTH])
        if stop > end:
            notes.append(unreadable(start, end, "truncated", f"{stop - start} bytes", f"{end - start} bytes", "value"))
            return notes, end, False
        value = self._value(data, start, start + size, column, row)
        return (
            [*notes, value, Note(start + size, stop - start - size, "area", "behind the value")],
            stop,
            not value.fault,
        )

    def _null_variable(self, data: bytes, at: int, end: int, column: TableColumn, len_head: int, width: int):
        """What stands in place of a variable item's data where it is NULL."""
        if self.has_actual_lengths and self.null_body == "absent":
            return [], at, True
        is_empty = self.has_actual_lengths and self.null_body == "len0"
        stop = at + len_head + (0 if is_empty else width)
        if is_empty and any(data[at : min(stop, end)]):
            why = f"{column.source_type}: a length of zero, for the value is NULL"
            found = data[at : min(stop, end)].hex()
            return [unreadable(at, min(stop, end), "bad_value_length", why, found, "length")], min(stop, end), False
        if stop > end:
            return (
                [unreadable(at, end, "truncated", f"{stop - at} bytes of a NULL", f"{end - at} bytes", "area")],
                end,
                False,
            )
        return [Note(at, stop - at, "area", "of a NULL")], stop, True

    def _value(self, data: bytes, at: int, end: int, column: TableColumn, row: list) -> Note:
        try:
            value = self._read(data[at:end], row)
        except Wrong as wrong:
            return of_wrong(at, end, "value", wrong, column.name)
        return Note(at, end - at, "value", f"{column.source_type} {shown(value)}", column=column.name, value=value)

    def _read(self, data: bytes, row: list) -> Any:
        """A value by the encoding of its layout. Raises: Wrong."""
        match row[plan.ENCODING]:
            case plan.INTEGER:
                return number.integer(data, self.order)
            case plan.PACKED:
                return number.packed(data, row[plan.DIGITS], row[plan.SCALE])
            case plan.ZONED:
                return number.zoned(data, row[plan.DIGITS], row[plan.SCALE])
            case plan.DATE:
                return date.date(data, self.order)
            case plan.TIME:
                return date.time(data)
            case plan.TIMESTAMP:
                return date.timestamp(data, self.order)
            case plan.IEEE:
                return number.ieee(data, self.order)
            case plan.HEX_FLOAT:
                return number.hex_float(data)
            case plan.BLOB | plan.BYTES:
                return data
        set_ = row[plan.SET]
        layouts = self.layouts
        read = text(data, Charset(row[plan.MODE], layouts.singles[set_], layouts.doubles[set_], layouts.sets[set_]))
        return read.rstrip(BLANKS) if row[plan.STRIP] else read
