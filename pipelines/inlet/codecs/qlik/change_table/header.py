"""The columns of a change table: header columns, found by their prefix in any order, subset and case, and the table's.

Known header columns: change_seq, change_oper, change_mask, stream_position, operation, transaction_id, timestamp,
partition_name. Any other with the prefix is kept in `header`. Empty text and null are the same in all of them.
"""

import datetime
from typing import Any, NamedTuple

from inlet.codecs.qlik import members
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.members import Refused
from inlet.fields.wrong import cut, quoted

KNOWN = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
    "partition_name",
)
DEFAULT = KNOWN[:7]  # in this order [documented]; partition_name comes with partitions alone
BEFOREIMAGE = "BEFOREIMAGE"
OPERATIONS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "B": BEFOREIMAGE, "T": "TRUNCATE"}
NO_CHANGE_SEQ = (
    "header column change_seq: in Qlik's settings of the task, Store Changes Settings (Change Tables), select header "
    "column change_seq, and reload"
)


class Columns(NamedTuple):
    """Which column of a change table is what, by its place from 0."""

    names: tuple[str, ...]
    known: dict[str, int]
    others: dict[str, int]  # header columns that are not known
    data: dict[int, str]

    @property
    def header(self) -> set[int]:
        """The places of header columns."""
        return {*self.known.values(), *self.others.values()}


class Said(NamedTuple):
    """What a row's header columns say."""

    operation: str  # of OPERATIONS
    change_seq: str
    mask: Any
    transaction_id: str | None
    stream_position: str | None
    timestamp: datetime.datetime | None
    raw_timestamp: str | None  # where it is none that can be read
    header: dict[str, Any]


def columns_of(names: list[str] | tuple[str, ...], options: Options) -> Columns:
    """Raises: Refused where a column is there twice."""
    prefix, known, others = options.prefix.lower(), dict[str, int](), dict[str, int]()
    data: dict[int, str] = {}
    seen: set[str] = set()
    for place, name in enumerate(names):
        lower = name.lower()
        if lower in seen:
            raise Refused("column_twice", (place,), "each column once, whatever its case", quoted(name))
        seen.add(lower)
        if not lower.startswith(prefix):
            data[place] = name
        elif lower.removeprefix(prefix) in KNOWN:
            known[lower.removeprefix(prefix)] = place
        else:
            others[lower.removeprefix(prefix)] = place
    return Columns(tuple(names), known, others, data)


def check(columns: Columns, options: Options) -> None:
    """Raises: Refused where the header columns of a change table are too few to read it; it names all that lack."""
    lacking = [] if "change_seq" in columns.known else [NO_CHANGE_SEQ]
    if "change_oper" not in columns.known and "operation" not in columns.known:
        lacking.append("header column change_oper or operation (Qlik: Store Changes Settings, Change Tables)")
    if "change_mask" not in columns.known and options.without_mask is None:
        lacking.append(
            "header column change_mask, or the option without_mask, which tells what a null of an update is: full (SQL "
            "null) or null_means_unchanged"
        )
    if lacking:
        kind = "ambiguous_layout" if "change_seq" in columns.known else "missing_change_seq"
        raise Refused(kind, (), "; ".join(lacking), f"columns {cut(', '.join(columns.names), 200)}")


def said(values: list, columns: Columns) -> Said:
    """What a row's header columns say. In: its values by place. Raises: Refused."""
    word = operation(values, columns)
    seq = change_seq(values, columns)
    if seq is None:
        place = columns.known["change_seq"]
        raise Refused("missing_change_seq", (place,), "35 digits", values[place])
    raw = _text(values, columns, "timestamp")
    at = members.utc_time(raw.replace(" UTC", "")) if raw else None
    header: dict[str, Any] = {name: values[place] for name, place in columns.others.items()}
    header |= {"partition_name": _text(values, columns, "partition_name")}
    return Said(
        word,
        seq,
        _value(values, columns, "change_mask"),
        _text(values, columns, "transaction_id"),
        _text(values, columns, "stream_position"),
        at,
        raw if raw and at is None else None,
        {name: value for name, value in header.items() if value not in (None, "")},
    )


def change_seq(values: list, columns: Columns) -> str | None:
    """The change_seq of a row; None where it is none."""
    found = _value(values, columns, "change_seq")
    return str(found) if isinstance(found, str) and members.CHANGE_SEQ.fullmatch(found) else None


def operation(values: list, columns: Columns) -> str:
    """INSERT, UPDATE, DELETE, BEFOREIMAGE or TRUNCATE. Raises: Refused."""
    letter, word = (_text(values, columns, name) for name in ("change_oper", "operation"))
    if letter is None and word is None:
        raise Refused("unknown_operation", (), "a value of change_oper or operation", "none")
    by_letter, by_word = letter and OPERATIONS.get(letter.upper()), word and word.upper()
    if by_word not in (None, *OPERATIONS.values()):
        raise Refused("unknown_operation", (columns.known["operation"],), ", ".join(OPERATIONS.values()), word)
    if letter is not None and by_letter is None:
        raise Refused("unknown_operation", (columns.known["change_oper"],), ", ".join(OPERATIONS), letter)
    if by_letter and by_word and by_letter != by_word:
        expected = f"{by_letter}, as change_oper {letter} says"
        raise Refused("contradiction", (columns.known["operation"],), expected, word)
    return by_letter or by_word or ""


def _value(values: list, columns: Columns, name: str):
    place = columns.known.get(name)
    found = None if place is None else values[place]
    return None if found in ("", b"") else found


def _text(values: list, columns: Columns, name: str) -> str | None:
    found = _value(values, columns, name)
    if found is not None and not isinstance(found, str):
        raise Refused("wrong_shape", (columns.known[name],), f"text of {name}", found)
    return None if found is None else str(found)
