"""A row of a change table or of a load, once its values are read: a change, a part that waits for its other image, or a
reject. No text, no JSON, no Parquet.
"""

import datetime
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from inlet import change
from inlet.codecs.qlik import column_lists, control_tables, full_load, members, types
from inlet.codecs.qlik.change_table import header, images
from inlet.codecs.qlik.change_table.header import BEFOREIMAGE, Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Control, Part
from inlet.errors import Reject
from inlet.fields.json_exact import Number
from inlet.source import Source
from inlet.table import Table
from inlet.table_column import TableColumn

UNREADABLE_TIMESTAMP = "unreadable_timestamp"  # a control event that comes with a change
BEFORE_IMAGES_OPEN = (
    "the option before_images: stored where Qlik stores before-images (Store Changes Settings), none where not"
)


NUM_ROWS = 10**8  # of a file of a load: eight digits of change_seq


class Values(NamedTuple):
    """A row's values by place: text, Number, bool, bytes or None; those that cannot be read as Refused."""

    values: list
    columns: Columns


class Bound(NamedTuple):
    """The columns of a file as a version of the contract has them."""

    contract: Table
    columns: dict[int, TableColumn | None]  # by place; None: the contract has none of that name
    large: frozenset[str]  # its large objects
    ordinals: dict[str, int]
    differs: str  # how the columns of the file's sidecar are not the contract's, in words


class Unit:
    """What the rows of a unit have in common."""

    def __init__(self, context: dict, source: Source, tables: dict[str, Table]):
        self.context, self.options = context, source.options_as(Options)
        self.masks = images.in_force(context.get("masks", []), self.options)
        self.table = (tables | control_tables.OWN)[context["table"]]
        self._bound: dict[tuple, Bound] = {}

    def bound(self, change_seq: str, columns: Columns) -> Bound:
        """The columns of a row by the contract in force at its place. Raises: Refused where those of the file's sidecar
        are others."""
        contract = self.table.at(change_seq)
        known = (contract.version, columns.names)
        if known not in self._bound:
            by_name = {column.name.lower(): column for column in contract.columns}
            found = {
                place: by_name.get(name.lower())
                for place, name in enumerate(columns.names)
                if place not in columns.header
            }
            large = frozenset(column.name for column in contract.columns if types.is_large(column.source_type))
            ordinals = {name: ordinal for ordinal, name in enumerate(contract.column_names, 1)}
            listed = self.context.get("listed")
            differs = column_lists.differing(listed, contract) if listed else ""
            self._bound[known] = Bound(contract, found, large, ordinals, differs)
        bound = self._bound[known]
        if bound.differs:
            expected = f"the columns of {contract.table} in version {contract.version} of its contract: `inlet import`"
            raise Refused("definition_differs", (), expected, bound.differs)
        return bound


class Row:
    """A row and where it stands. `offset_of` gives the byte of the value at a place; `raw` its bytes."""

    def __init__(
        self,
        unit: Unit,
        at: int,
        length: int,
        raw: bytes,
        ordinal: int = 0,
        offset_of: Callable[[Any], int] = lambda place: 0,
    ):
        self.unit, self.at, self.length, self.raw = unit, at, length, raw
        self.context, self.options, self.table = unit.context, unit.options, unit.table
        self.ordinal, self.offset_of = ordinal, offset_of
        self.seq: str | None = None

    def read(self, given: Values, note: str = "") -> tuple[dict | Part | Reject | None, list[Control]]:
        """What the row is, and the control events that come with it; None of a row of a control table. In: what a part
        keeps with its bytes.
        """
        try:
            if self.context["kind"] == "control":
                return None, self._of_control_table(given)
            if self.context["kind"] == "load":
                return self._load(given), []
            said = self.said(given)
            waits = self.options.before_images == "stored"
            if said.operation in ("UPDATE", BEFOREIMAGE):
                self._check_before_images(said, given.columns)
                if waits:
                    key = f"{self.table.table}/{said.change_seq}"
                    return Part(key, self.at, self.length, note, said.change_seq), []
            return self.change(said, given, None), self._events(said)
        except Refused as no:
            return self.reject(no), []

    def _of_control_table(self, given: Values) -> list[Control]:
        """What a row of a control table says: a truncate is a row of the change table, too, so here it is an event."""
        for value in given.values:
            _no_refused(value)
        has_operation = given.columns.known.keys() & {"change_oper", "operation"}
        word = header.operation(given.values, given.columns) if has_operation else "INSERT"
        if word in (BEFOREIMAGE, "TRUNCATE"):
            return []
        row = {given.columns.names[place]: given.values[place] for place in given.columns.data}
        try:
            name, is_deleted = self.table.table_name, word == "DELETE"
            seq = header.change_seq(given.values, given.columns) if name in control_tables.ORDERED else None
            found = control_tables.event(name, row, is_deleted, _time(seq), None, self.options.suffix)
        except Refused as no:
            no.path = tuple(place for place, name in given.columns.data.items() if (name,) == no.path)
            raise
        place = (found.source_schema, found.source_table, found.change_seq or seq)
        return [] if found.kind is None else [Control(found.kind, self.at, self.length, *place, detail=found.detail)]

    def said(self, given: Values) -> header.Said:
        """What the header columns say. Raises: Refused."""
        for place in (*given.columns.known.values(), *given.columns.others.values()):
            _no_refused(given.values[place])
        self.seq = header.change_seq(given.values, given.columns)
        return header.said(given.values, given.columns)

    def _check_before_images(self, said: header.Said, columns: Columns) -> None:
        place = columns.known.get("change_oper", columns.known.get("operation", 0))
        if self.options.before_images == "auto":
            raise Refused("ambiguous_layout", (place,), BEFORE_IMAGES_OPEN, said.operation)
        if self.options.before_images == "none" and said.operation == BEFOREIMAGE:
            raise Refused("contradiction", (place,), "no before-image, by the option before_images", BEFOREIMAGE)

    def _load(self, given: Values) -> dict:
        if self.ordinal >= NUM_ROWS:
            raise Refused("missing_change_seq", (), f"a file of at most {NUM_ROWS} rows", f"row {self.ordinal + 1}")
        self.seq = f"{self.context['place']}{self.ordinal:08d}"
        bound = self.unit.bound(self.seq, given.columns)
        after = self._image(given, None, bound, "REFRESH")
        told = {"after": after, "column_mask": _mask(after, bound), "load_id": self.context["load_id"]}
        return self._row(bound.contract, "REFRESH", told)

    def change(self, said: header.Said, given: Values, before: Values | None) -> dict:
        """The change that a row is, together with the row of its before-image. Raises: Refused."""
        self.seq, word = said.change_seq, said.operation
        bound = self.unit.bound(self.seq, given.columns)
        told: dict[str, Any] = {
            "transaction_id": said.transaction_id,
            "stream_position": said.stream_position,
            "change_timestamp": said.timestamp,
        }
        header_ = said.header | ({"timestamp": said.raw_timestamp} if said.raw_timestamp else {})
        if word == "TRUNCATE":
            self._check_empty(given)
            return self._row(bound.contract, word, told | {"header": header_ or None})
        changed = self._changed(said, given.columns, bound)
        if word == "DELETE":
            old = self._image(given, None, bound, word)
            told |= {"before": old, "column_mask": _mask(old, bound)}
        else:
            self._check_key(word, changed, before, given.columns, bound)
            after = self._image(given, changed, bound, word)
            told |= {"after": after, "column_mask": _mask(after, bound)}
            if before:
                old = self._image(before, changed, self.unit.bound(self.seq, before.columns), BEFOREIMAGE)
                told["before"] = old
                names = [] if changed is None else images.differing(old, after, changed, bound.large)
                header_ |= {"mask_differs": names} if names else {}
        mask = None if changed is None else change.mask(bound.ordinals[name] for name in changed)
        return self._row(bound.contract, word, told | {"change_mask": mask, "header": header_ or None})

    def half(self, said: header.Said, given: Values, change_mask: bytes | None) -> dict:
        """The update that an update or a before-image is of, with its own image alone. In: the mask of the update.
        Raises: Refused.
        """
        self.seq = said.change_seq
        bound = self.unit.bound(self.seq, given.columns)
        if said.operation == "UPDATE":
            changed = self._changed(said, given.columns, bound)
            return self._row(bound.contract, "UPDATE", {"after": self._image(given, changed, bound, "UPDATE")})
        names = dict(enumerate(bound.contract.column_names, 1))
        changed = None if change_mask is None else {names[n] for n in change.mask_ordinals(change_mask) if n in names}
        return self._row(bound.contract, "UPDATE", {"before": self._image(given, changed, bound, BEFOREIMAGE)})

    def _changed(self, said: header.Said, columns: Columns, bound: Bound) -> set[str] | None:
        """The contract's columns that a mask names. Raises: Refused."""
        found = images.places(said.mask, columns, self.unit.masks)
        if found is None and said.operation == "UPDATE" and self.options.without_mask is None:
            expected = "a mask of an UPDATE, or the option without_mask"
            path = (columns.known["change_mask"],) if "change_mask" in columns.known else ()  # of JSON, row by row
            raise Refused("wrong_shape", path, expected, "none")
        return None if found is None else {_known(bound, columns, place).name for place in found}

    def _image(self, given: Values, changed: set[str] | None, bound: Bound, word: str) -> dict:
        """An image, each value fit for its column. Raises: Refused."""
        read: dict[str, Any] = {}
        places: dict[str, int] = {}
        for place in given.columns.data:
            column = _known(bound, given.columns, place)
            _no_refused(given.values[place])
            read[column.name] = _typed(given.values[place], column.type)
            places[column.name] = place
        read = images.supplied(read, changed, word, bound.large, self.options.without_mask == "full")
        try:
            return members.image(read, None, bound.contract, (), word not in ("DELETE", BEFOREIMAGE)) or {}
        except Refused as no:
            name = no.path[-1] if no.path else ""
            path = (places[name],) if name in places else ()
            raise Refused(no.kind, path, no.expected, no.found, no.column) from None

    def _check_key(self, word: str, changed: set[str] | None, before, columns: Columns, bound: Bound) -> None:
        """Raises: Refused where the mask of an update says that the key changed, and nothing says what it was."""
        moved = [name for name in bound.contract.key if name in (changed or ())]
        if word == "UPDATE" and moved and not before:
            expected = "the before-image of an update that changes the key (option before_images)"
            raise Refused("unsupported_message", (columns.known["change_mask"],), expected, "none", moved[0])

    def _check_empty(self, given: Values) -> None:
        """Raises: Refused where a row of TRUNCATE has a value of the table."""
        for place, name in given.columns.data.items():
            if given.values[place] is not None:
                raise Refused("contradiction", (place,), "no value in a row of TRUNCATE", given.values[place], name)

    def _row(self, contract: Table, word: str, told: dict) -> dict:
        return {
            "source_schema": contract.schema_name,
            "source_table": contract.table_name,
            "table_version": contract.version,
            "change_seq": self.seq,
            "operation": word,
            "change_oper": change.OPERATIONS[word],
            **told,
            "unit_offset": self.at,
            "unit_length": self.length,
        }

    def _events(self, said: header.Said) -> list[Control]:
        if not said.raw_timestamp:
            return []
        detail = json.dumps({"timestamp": said.raw_timestamp}, ensure_ascii=False)
        place = (self.table.schema_name, self.table.table_name, said.change_seq)
        return [Control(UNREADABLE_TIMESTAMP, self.at, self.length, *place, detail=detail)]

    def reject(self, no: Refused) -> Reject:
        offset = self.at + (self.offset_of(no.path[0]) if no.path else 0)
        return Reject(
            no.kind,
            self.at,
            self.length,
            offset,
            no.expected,
            no.found,
            self.raw,
            self.table.schema_name,
            self.table.table_name,
            no.column,
            self.seq,
        )


def _time(change_seq: str | None) -> datetime.datetime | None:
    """The time in a change_seq; None where it is none."""
    try:
        return full_load.time_of16(change_seq) if change_seq else None
    except ValueError:
        return None


def _known(bound: Bound, columns: Columns, place: int) -> TableColumn:
    """The contract's column at a place. Raises: Refused."""
    column = bound.columns.get(place)
    if column is None:
        name, new = columns.names[place], [n for n in sorted({place, *columns.data}) if bound.columns.get(n) is None]
        found = bound.contract.lacks([columns.names[n] for n in new], "the file")
        raise Refused("unknown_column", (place,), f"columns of {bound.contract.table}", found, name)
    return column


def _no_refused(value) -> None:
    if isinstance(value, Refused):
        raise value


def _typed(value, type_: str):
    """A value as its type has it: text of a boolean is a word or a digit (ASSUMED), as nothing public shows it."""
    if type_ == "boolean" and isinstance(value, str) and not isinstance(value, Number):
        return {"true": True, "false": False, "1": True, "0": False}.get(value.lower(), value)
    return value


def _mask(image: dict, bound: Bound) -> bytes | None:
    """The mask of what was supplied; None for all."""
    is_all = len(image) == len(bound.contract.columns)
    return None if is_all else change.mask(bound.ordinals[name] for name in image)
