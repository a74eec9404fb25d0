"""Rows of FORMATASCII. A row: operation, image, table, values, each with a delimiter behind it; see extract/files."""

import re
from collections.abc import Callable
from typing import Any

from inlet.codecs.goldengate.extract.options import Options
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.table import Table

NULL = "NULL"
QUOTED = re.compile(r"'((?:[^']|'')*+)'")
LINE = re.compile(r"[^\n]*\n")
MISSING = object()


class Shaped:
    """A record's text, and where its parts stand in it. `contract_of` gives the contract in force of a table."""

    def __init__(self, text: str, options: Options, contract_of: Callable[[str | None], Table]):
        self.text, self.options, self.contract_of = text, options, contract_of
        self.places: dict[tuple[str, str | None], int] = {}
        self.has_exact_nulls = True

    def operation(self) -> Operation:
        """What the record says. Raises: Refused."""
        lines, start = [], 0
        for line in LINE.findall(self.text):
            lines.append(self._line(line.rstrip("\r\n"), start))
            start += len(line)
        letter, _, table, _ = lines[0]
        for other, _, other_table, _ in lines[1:]:
            if (other, other_table) != (letter, table):
                expected = f"the after-image of {letter} of {table}"
                raise Refused("bad_segment", "after", expected, f"{other} of {other_table}")
        images = {role: values for _, role, _, values in lines}
        if letter in ("U", "V") and "after" not in images:
            raise Refused("bad_segment", "before", "the after-image behind a before-image", "none")
        return Operation(
            table,
            letter,
            None,
            before=images.get("before"),
            after=images.get("after"),
            has_exact_nulls=self.has_exact_nulls,
        )

    def _line(self, line: str, start: int) -> tuple[str | None, str, str | None, dict[str, Any]]:
        fields = self._fields(line, start)
        letter = self._header(fields, "op_type") if self.options.operation_indicator else None
        image = self._header(fields, "before") if self.options.image_indicator else None
        table = self.options.table or self._header(fields, "table")
        if letter not in (None, "I", "D", "U", "V"):
            raise Refused("unknown_operation", "op_type", "I, D, U or V", letter)
        role = "before" if image == "B" or image is None and letter == "D" else "after"
        if image not in (None, "A", "B") or letter in ("I", None) and image == "B" or letter == "D" and image == "A":
            raise Refused("wrong_shape", "before", "B of a delete, A of an insert, B or A of an update", image)
        contract = self.contract_of(table)
        return letter, role, table, self._values(fields, role, letter == "V", contract)

    def _header(self, fields: list[tuple[int, str]], role: str) -> str:
        if not fields:
            raise Refused("wrong_shape", role, "a field more", "the end of the line")
        self.places[role, None], text = fields.pop(0)
        return text

    def _fields(self, line: str, start: int) -> list[tuple[int, str]]:
        """(place, text) of the fields of a line. A delimiter in quotes is a value's."""
        found, at = [], 0
        while at < len(line):
            begin = at
            while not line.startswith(self.options.delimiter, at):
                quoted = QUOTED.match(line, at)
                if at == len(line) or line[at] == "'" and not quoted:
                    self.places["row", None] = start + at
                    raise Refused("wrong_shape", "row", "a delimiter behind the field", line[begin:at] or "the end")
                at = quoted.end() if quoted else at + 1
            found.append((start + begin, line[begin:at]))
            at += len(self.options.delimiter)
        return found

    def _values(self, fields: list[tuple[int, str]], role: str, is_compressed: bool, contract: Table) -> dict:
        values: dict[str, Any] = {}
        for column, place, text in self._columns(fields, is_compressed, contract):
            if (role, column) in self.places:
                self.places[role, column] = place
                raise Refused("column_twice", role, "each column once", column, column)
            self.places[role, column] = place
            value = self._value(text, role, column)
            if value is not MISSING:
                values[column] = value
        return values

    def _columns(self, fields: list[tuple[int, str]], is_compressed: bool, contract: Table):
        """(column, place, text) of each value."""
        mark, has_numbers = self.options.name_mark, is_compressed and self.options.compressed_updates == "numbers"
        has_names = self.options.column_names or is_compressed and not has_numbers
        if has_names and mark != self.options.delimiter:
            pairs = [(place, *text.partition(mark)) for place, text in fields]
            if bare := next(((place, name) for place, name, found, _ in pairs if not found), None):
                self.places["row", None] = bare[0]
                raise Refused("wrong_shape", "row", f"a name, {mark!r} and a value", bare[1])
            return [(name, place, text) for place, name, _, text in pairs]
        if not has_names and not is_compressed:
            if len(fields) != len(contract.columns):
                expected = f"{len(contract.columns)} values, one for each column of {contract.table}"
                raise Refused("bad_column_count", "row", expected, f"{len(fields)}")
            return [(name, *field) for name, field in zip(contract.column_names, fields)]
        if len(fields) % 2:
            raise Refused("bad_column_count", "row", "a value behind each name or number", f"{len(fields)} fields")
        keys = [text if has_names else self._numbered(place, text, contract) for place, text in fields[::2]]
        return [(key, *field) for key, field in zip(keys, fields[1::2])]

    def _numbered(self, place: int, text: str, contract: Table) -> str:
        """The column that a number before a value means."""
        number = int(text) - self.options.first_column if re.fullmatch("[0-9]{1,5}", text) else -1
        if not 0 <= number < len(contract.columns):
            self.places["row", None] = place
            last = self.options.first_column + len(contract.columns) - 1
            raise Refused("unknown_column", "row", f"a number from {self.options.first_column} to {last}", text)
        return contract.column_names[number]

    def _value(self, text: str, role: str, column: str) -> Any:
        """Text, None or MISSING."""
        if quoted := QUOTED.fullmatch(text):
            return quoted[1].replace("''", "'")
        if "'" in text:
            raise Refused("wrong_shape", role, "a text in quotes, or a value without", text, column)
        if text:
            return None if text == NULL and not self.options.null_is_space else text
        if not (self.options.null_is_space or self.options.placeholders):
            expected = "a value (an empty one means something by null_is_space or placeholders)"
            raise Refused("wrong_shape", role, expected, "nothing", column)
        if not self.options.null_is_space:
            return MISSING
        self.has_exact_nulls &= not self.options.placeholders
        return None
