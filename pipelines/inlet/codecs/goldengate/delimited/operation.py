"""A record of GoldenGate's delimited text as an operation. The shape: delimited."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from inlet.codecs.goldengate.delimited.lines import Field, Line
from inlet.codecs.goldengate.delimited.options import OWN, Options
from inlet.codecs.goldengate.operations import change as operation_change
from inlet.codecs.goldengate.operations import members as operation_members
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.fields.wrong import quoted
from inlet.source import Source
from inlet.table import Table

MISSING = object()


class Shaped:
    """A record, and where its parts stand."""

    def __init__(self, line: Line, options: Options):
        self.line, self.options, self.places = line, options, dict[tuple[str, str | None], int]()
        self.left: Iterator[Field] = iter(line.fields)
        self.has_exact_nulls = True
        self.place: dict[str, str] = {}  # source_schema, source_table, change_seq, as far as they are known

    def offset_of(self, role: str, column: str | None) -> int:
        """The byte of a part, from the record's start."""
        return self.places.get((role, column), self.line.start) - self.line.start

    def operation(self, topic: str, source: Source, tables: dict[str, Table]) -> Operation:
        """What the record says. Raises: Refused."""
        own = self._own()
        told = self._told(own)
        contract, word = operation_change.contract_in_force(told, topic, source, tables, self.options, self.place)
        self._check_count(contract)
        images = self._images(contract, word)
        return replace(
            told,
            primary_keys=own.get("primary_keys") or None,
            tokens=self._tokens(own.get("tokens", "")),
            before=images.get("before"),
            after=images.get("after"),
            row=images.get("row"),
            extra={name: text for name, text in own.items() if name not in OWN},
            has_exact_nulls=self.has_exact_nulls,
        )

    def said(self) -> Operation:
        """What the metadata fields say, without a contract. Raises: Refused."""
        own = self._own()
        return replace(self._told(own), tokens=self._tokens(own.get("tokens", "")))

    def _told(self, own: dict[str, str]) -> Operation:
        texts = {role: own[role] or None for role in own if role in operation_members.TEXTS}
        return operation_members.operation(texts, row={} if self.options.model == "row" else None)

    def _own(self) -> dict[str, str]:
        """The texts of the metadata fields, by role or name."""
        names, own = self.options.names, {}
        num_fields = len(self.options.metadata_fields) * (1 + self.options.include_meta_column_names)
        if len(self.line.fields) < num_fields:
            expected, found = f"at least {num_fields} fields, of metadata", f"{len(self.line.fields)}"
            raise Refused("bad_column_count", "row", expected, found)
        for role in self.options.metadata_fields:
            if self.options.include_meta_column_names:
                self._read_name(names.get(role, role), role, None)
            field = next(self.left)
            self.places[role, None] = field.start
            own[role] = field.text
        return own

    def _check_count(self, contract: Table) -> None:
        of_metadata = len(self.options.metadata_fields) * (1 + self.options.include_meta_column_names)
        of_column = (2 if self.options.model == "operation" else 1) + self.options.include_column_names
        expected = of_metadata + of_column * len(contract.columns)
        if len(self.line.fields) != expected:
            raise Refused(
                "bad_column_count",
                "row",
                f"{expected} fields, {of_metadata} of metadata and {of_column} for each column of {contract.table}",
                f"{len(self.line.fields)}",
            )

    def _read_name(self, name: str, role: str, column: str | None) -> None:
        field = next(self.left)
        self.places[role, column] = field.start
        if field.text != name:
            kind = "unknown_column" if column else "wrong_shape"
            raise Refused(kind, role, f"the name {name}", quoted(field.text), column)

    def _images(self, contract: Table, word: str) -> dict[str, dict[str, Any]]:
        images: dict[str, dict[str, Any]] = {"row": {}} if self.options.model == "row" else {"before": {}, "after": {}}
        for column in contract.columns:
            if self.options.include_column_names:
                self._read_name(column.name, "row", column.name)
            for role, image in images.items():
                field = next(self.left)
                self.places[role, column.name] = field.start
                is_supplied = role != "before" and word in ("INSERT", "UPDATE", "UPSERT")
                value = self._value(field, column.type == "string", is_supplied, role, column.name)
                if value is not MISSING:
                    image[column.name] = value
        return images

    def _value(self, field: Field, is_text: bool, is_supplied: bool, role: str, column: str) -> Any:
        """Text, None or MISSING. In: whether the column holds text, and the image what its row is from now on."""
        options, text = self.options, field.text
        if field.is_quoted:
            return text
        if text == options.null_text:
            self.has_exact_nulls &= options.null_text != options.missing_text
            return None
        if text != options.missing_text:
            return text
        if text or not is_text or options.empty_means == "missing" or options.quote:
            return MISSING
        if options.empty_means == "text":
            return text
        if is_supplied:
            expected = "the option empty_means: an empty field may be a column that was not supplied, or an empty text"
            raise Refused("ambiguous_layout", role, expected, "''", column)
        return MISSING

    def _tokens(self, text: str) -> dict[str, str]:
        tokens: dict[str, str] = {}
        for pair in text.split(self.options.key_value_pair_delimiter) if text else ():
            name, mark, value = pair.partition(self.options.key_value_delimiter)
            if not mark or name in tokens:
                expected = f"tokens with {self.options.key_value_delimiter!r} between name and value, each once"
                raise Refused("wrong_shape", "tokens", expected, pair)
            tokens[name] = value
        return tokens
