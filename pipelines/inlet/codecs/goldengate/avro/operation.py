"""An Avro record of GoldenGate as an operation. The shape: avro/messages."""

import datetime
import uuid
from decimal import Decimal
from typing import Any

from inlet.codecs.goldengate.avro.options import Options
from inlet.codecs.goldengate.operations import members as operation_members
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.fields import avro
from inlet.fields.json_exact import Number

IS_MISSING = "_isMissing"
FLOATING = ("float", "double")
NUMBERS = ("pos", "xid", "seqno", "rba")  # roles whose members may be numbers
IMAGES = ("before", "after")


class Shaped:
    """A datum, its schema, and where its parts stand."""

    def __init__(self, datum: dict, schema: avro.Type, data: bytes, start: int, ofs_record: int, options: Options):
        self.datum, self.schema, self.options = datum, schema, options
        self.data, self.start, self.ofs_record = data, start, ofs_record
        self.types = schema.fields
        self.own_names: list[str] = []

    def offset_of(self, role: str, column: str | None) -> int:
        """The byte of a part, from the record's start."""
        path = tuple(name for name in (None if role == "row" else self.options.names.get(role, role), column) if name)
        if not path or path[0] not in self.types:
            return self.start - self.ofs_record
        return avro.offset(self.schema, self.data, self.start, path) - self.ofs_record

    def operation(self) -> Operation:
        """What the datum says. Raises: Refused."""
        names = self.options.names
        inner = {
            image: record
            for image in IMAGES
            if names[image] in self.types and (record := self.types[names[image]].record)
        }
        own = {role: names[role] for role in (*operation_members.TEXTS, "primary_keys", "tokens") if role in names}
        kept = {*own.values(), *self.options.header_members, *(names[image] for image in inner)}
        rest = {name: type_ for name, type_ in self.types.items() if name not in kept}
        if inner:
            columns = {image: record.fields for image, record in inner.items()}
            images = {image: self._image(self.datum[names[image]], columns[image]) for image in inner}
        else:
            columns, images = {"row": rest}, {"row": self._image(self.datum, rest)}
            self.own_names += [name for name in self.types if name in kept]
        extra = {name: plain(self.datum[name]) for name in self.types if name in self.options.header_members}
        return operation_members.operation(
            {role: self._text(role, name) for role, name in own.items() if role in operation_members.TEXTS},
            primary_keys=plain(self.datum.get(names["primary_keys"])),
            tokens=self._tokens(names["tokens"]),
            **images,
            extra=extra | ({name: plain(self.datum[name]) for name in rest} if inner else {}),
            own_names=self.own_names,
            has_exact_nulls=all(map(_tells_missing, columns.values())),
            doubles=[name for types in columns.values() for name in types if types[name].has(FLOATING)],
        )

    def _image(self, values: dict | None, types: dict[str, Any]) -> dict | None:
        """The columns that were supplied."""
        if values is None:
            return None
        flags = {name for name in types if _is_flag(name, types)}
        self.own_names += flags
        missing = {name.removesuffix(IS_MISSING) for name in flags if values[name]}
        return {name: plain(values[name]) for name in types if name not in flags | missing}

    def _text(self, role: str, name: str) -> str | None:
        value = self.datum.get(name)
        if value is None or isinstance(value, str):
            return value
        if role in NUMBERS and type(value) is int:
            return str(value)
        raise Refused("wrong_shape", role, "text or null", plain(value))

    def _tokens(self, name: str) -> dict[str, Any]:
        value = self.datum.get(name)
        if not isinstance(value, dict | None):
            raise Refused("wrong_shape", "tokens", "a map or null", plain(value))
        return plain(value or {})


def _is_flag(name: str, types: dict[str, avro.Type]) -> bool:
    """Is a field the companion of a column?"""
    is_companion = name.endswith(IS_MISSING) and name.removesuffix(IS_MISSING) in types
    return is_companion and types[name].has(("boolean",))


def _tells_missing(types: dict[str, avro.Type]) -> bool:
    """Has each column its companion?"""
    flags = {name for name in types if _is_flag(name, types)}
    return all(name + IS_MISSING in flags for name in types if name not in flags)


def plain(value: Any) -> Any:
    """A value as an Operation has it: numbers with their digits, times as ISO text, bytes as hex digits."""
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int | float):
        return Number(repr(value))
    if isinstance(value, Decimal):
        return Number(f"{value:f}")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    assert isinstance(value, uuid.UUID), "all that Avro has"
    return str(value)
