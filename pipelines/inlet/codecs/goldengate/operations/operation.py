"""What a message of GoldenGate says, whatever it is written in: JSON, Avro, delimited text, XML. The meaning:
operations/change.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inlet.fields.json_exact import Number
from inlet.fields.wrong import quoted


@dataclass(frozen=True)
class Operation:
    """What a message says. Texts are None where it does not say them. Values of images are text, Number, bool or None;
    a column that an image lacks, or that the form marks as missing, was not supplied and is not in it.
    """

    table: str | None
    op_type: str | None
    pos: str | None
    op_ts: str | None = None
    current_ts: str | None = None
    xid: str | None = None
    primary_keys: Any = None
    tokens: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None  # the operation model
    after: Mapping[str, Any] | None = None
    row: Mapping[str, Any] | None = None  # the row model: its one image; None in the operation model
    extra: Mapping[str, Any] = field(default_factory=dict)  # further members that are the message's own
    own_names: Collection[str] = ()  # the row model: names of members that were not read as columns
    has_exact_nulls: bool = True  # false: the form writes null for a column that was not supplied, too
    doubles: Collection[str] = ()  # columns that the form carries as floating-point numbers


class Record(NamedTuple):
    """Where an operation stands. `offset_of(role, column)` is the byte of a member, from the record's start; roles are
    those of OperationOptions.members, and `row`.
    """

    unit_id: str
    topic: str
    unit_offset: int
    data: bytes
    offset_of: Callable[[str, str | None], int]


class Refused(Exception):
    """One thing wrong with an operation: the kind; the role of the member that it is about; what was expected and
    found; the column; the table that the message names where no contract does.
    """

    def __init__(self, kind: str, role: str, expected: str, found, column: str | None = None, table: str | None = None):
        super().__init__(kind, role, expected, found)
        self.kind, self.role, self.expected, self.column, self.table = kind, role, expected, column, table
        self.found = found if isinstance(found, str) and not isinstance(found, Number) else shown(found)


def shown(value) -> str:
    """A value for `found`."""
    return {dict: "an object", list: "an array", type(None): "null"}.get(type(value)) or quoted(value)
