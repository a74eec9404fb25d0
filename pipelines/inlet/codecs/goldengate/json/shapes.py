"""The shapes of GoldenGate's JSON objects: which member is the message's own, which belongs to an image. The shapes:
json/messages.
"""

from typing import Any

from inlet.codecs.goldengate.json.options import Options
from inlet.codecs.goldengate.operations.operation import Operation, Refused
from inlet.codecs.goldengate.operations.position import LEN_RBA
from inlet.fields import json_exact
from inlet.fields.json_exact import Number

TEXTS = ("table", "op_type", "op_ts", "current_ts", "pos", "xid", "seqno", "rba")  # roles whose members are texts
NUMBERS = ("pos", "xid", "seqno", "rba")  # those that may be numbers
OWN = (*TEXTS, "primary_keys", "tokens")
EVENTS = {"STREAM_METADATA": "stream_metadata", "OBJECT_METADATA": "object_metadata", "DDL": "ddl"}  # by op_type
ENVELOPE = {"schema", "payload"}
FLOATING = ("float", "double")  # types of Kafka Connect


class Shaped:
    """A JSON object, and the names of its members. `payload` is None for a payload that is null. `is_of_connect`: Kafka
    Connect wrote it, with an envelope or after the id of a schema registry.
    """

    def __init__(self, whole: dict, options: Options, is_of_connect: bool = False):
        self.options, self.names = options, options.names
        self.schema = whole["schema"] if whole.keys() == ENVELOPE else None
        self.payload, self.path = (whole["payload"], ("payload",)) if whole.keys() == ENVELOPE else (whole, ())
        self.is_flattened, self.is_of_connect = False, is_of_connect or self.path != ()

    def offset_of(self, data: bytes, role: str, column: str | None) -> int:
        """The byte of a member, or of what is around it where it is not there. In: the object's text."""
        delimiter = self.options.flatten_delimiter
        path: tuple[str, ...] = () if role == "row" else (self.names.get(role, role),)
        if column is not None:
            path = (f"{path[0]}{delimiter}{column}",) if self.is_flattened and path else (*path, column)
        return json_exact.offset(data, (*self.path, *path))

    def operation(self) -> Operation:
        """What the object says. Raises: Refused."""
        if not isinstance(self.payload, dict):
            raise Refused("wrong_shape", "row", "an object as payload", self.payload)
        own = {role: self.payload.get(self.names[role]) for role in OWN if role in self.names}
        own_names = {self.names[role] for role in own} | {*self.options.header_members}
        rest = {name: value for name, value in self.payload.items() if name not in own_names}
        images = self._images(rest)
        extra = rest if images else {}
        extra |= {name: self.payload[name] for name in self.options.header_members if name in self.payload}
        return Operation(
            **self._texts(own),
            primary_keys=own["primary_keys"],
            tokens=self._tokens(own["tokens"]),
            **images or {"row": rest},
            extra=extra,
            own_names=() if images else [name for name in self.payload if name in own_names],
            has_exact_nulls=not self.is_of_connect,
            doubles=_doubles(self.schema, {self.names["before"], self.names["after"]}),
        )

    def _images(self, rest: dict) -> dict[str, Any]:
        """The images of the operation model by role, taken out of the members; none where it is the row model."""
        images: dict[str, Any] = {}
        for role in ("before", "after"):
            name = self.names[role]
            if name in rest and isinstance(rest[name], dict | None):
                images[role] = rest.pop(name)
            prefix = f"{name}{self.options.flatten_delimiter}"
            flat = [member for member in rest if self.options.flatten_delimiter and member.startswith(prefix)]
            if flat and not images.get(role):
                self.is_flattened = True
                images[role] = {member.removeprefix(prefix): rest.pop(member) for member in flat}
        return images

    def _texts(self, own: dict[str, Any]) -> dict[str, Any]:
        texts: dict[str, Any] = {}
        for role in TEXTS:
            value = own.get(role)
            is_text = isinstance(value, str) and (role in NUMBERS or not isinstance(value, Number))
            if value is not None and not is_text:
                raise Refused("wrong_shape", role, "text or null", value)
            texts[role] = None if value is None else str(value)
        sequence, rba = texts.pop("seqno"), texts.pop("rba")
        if texts["pos"] is None and sequence and rba:
            if len(rba) > LEN_RBA:
                raise Refused("missing_change_seq", "rba", f"at most {LEN_RBA} digits", rba)
            texts["pos"] = sequence + rba.zfill(LEN_RBA)
        return texts

    def _tokens(self, value) -> dict[str, Any]:
        if not isinstance(value, dict | None):
            raise Refused("wrong_shape", "tokens", "an object or null", value)
        return value or {}


def _doubles(schema, images: set[str]) -> list[str]:
    """Columns that a schema of Kafka Connect calls floating-point."""
    found = []
    for field in _fields(schema):
        inner = _fields(field) if field.get("field") in images else [field]
        found += [one["field"] for one in inner if one.get("type") in FLOATING and isinstance(one.get("field"), str)]
    return list(dict.fromkeys(found))


def _fields(schema) -> list[dict]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
