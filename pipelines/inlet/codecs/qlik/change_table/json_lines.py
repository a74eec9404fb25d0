"""JSON files: an object a line, whose members are the columns, header columns among them.

The bits of a mask count the columns of the change table. They are those of the sidecar; without one the members of the
file's first row with a mask in their order, where all columns of the contract are among them. A row with a mask whose
members are others, or in another order, is rejected.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from inlet.codecs.qlik.change_table import header
from inlet.codecs.qlik.change_table.header import Columns
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.text import BETWEEN, MARK, ROW, Piece
from inlet.codecs.qlik.members import Refused
from inlet.fields import json_exact
from inlet.fields.wrong import Wrong, cut, quoted
from inlet.table import Table


class Object(NamedTuple):
    """A row: its values by the place of their columns; a column that it has no member for is not in `columns.data`."""

    values: list
    columns: Columns
    mask: Any


def lines(data: bytes, may_end_so: bool = False, len_mark: int = 0) -> Iterator[Piece]:
    """The lines of some bytes. In: whether a last one may lack its end; the length of a byte order mark."""
    at = len_mark
    if len_mark:
        yield Piece(MARK, 0, len_mark, [])
    while at < len(data):
        end = data.find(b"\n", at) + 1
        if not end and not may_end_so:
            return
        end = end or len(data)
        yield Piece(ROW if data[at:end].strip() else BETWEEN, at, end, [])
        at = end


def read(line: bytes, context: dict, contract: Table, options: Options) -> Object:
    """A row. Raises: Wrong, Refused."""
    found = json_exact.parse(line, has_constants=True)
    names = context["columns"] or list(found)
    columns = header.columns_of(names, options)
    places = {name.lower(): place for place, name in enumerate(names)}
    values: list[Any] = [None] * len(names)
    given: set[int] = set()
    for name, value in found.items():
        place = places.get(name.lower())
        if place is None:
            raise Refused("unknown_column", (name,), "a column of its .dfm", quoted(name), name)
        if place in given:
            raise Refused("column_twice", (name,), "each column once, whatever its case", quoted(name), name)
        values[place] = value
        given.add(place)
    columns = columns._replace(data={place: name for place, name in columns.data.items() if place in given})
    place = columns.known.get("change_mask")
    mask = None if place is None or values[place] in (None, "") else values[place]
    if context["kind"] == "load" and columns.header:
        name = names[min(columns.header)]
        raise Refused("contradiction", (name,), "no header column in a file of a full load", quoted(name))
    if context["kind"] == "changes":
        if "change_seq" not in columns.known:
            raise Refused("missing_change_seq", (), header.NO_CHANGE_SEQ, "none")
        lower = {name.lower() for name in columns.data.values()}
        if mask is not None and not context["columns"] and not {n.lower() for n in contract.column_names} <= lower:
            lacking = next(name for name in contract.column_names if name.lower() not in lower)
            expected = "all columns of the contract, or a .dfm, to tell which bit of change_mask is which column"
            raise Refused("ambiguous_layout", (names[place or 0],), expected, f"no {lacking}")
        if mask is not None and not context["columns"] and "members" in context:
            _check_members(names[place or 0], columns, context["members"], contract)
    return Object(values, columns, mask)


def members_of(columns: Columns) -> list[str]:
    """The members of a row as those of another row are held against them."""
    return [name.lower() for name in columns.names]


def _check_members(name: str, columns: Columns, members: list[str] | None, contract: Table) -> None:
    """Raises: Refused where a row has others than the row that told which bit of a mask is which column. A row of a
    column that no contract knows is rejected for it later."""
    found = members_of(columns)
    if found == members:
        return
    known = {name.lower() for version in contract.versions for name in version.column_names}
    if not known.issuperset(name.lower() for name in columns.data.values()):
        return
    expected = "the members of the first row with a mask in their order, or a .dfm, to tell which bit is which column"
    pairs = zip_longest(found, members or [])
    n, (own, other) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    raise Refused(
        "ambiguous_layout", (name,), expected, cut(f"member {n + 1} {own or 'none'}, not {other or 'none'}", 200)
    )


def row(line: bytes, context: dict, contract: Table, options: Options) -> Object | None:
    """A row; None of what is none."""
    try:
        return read(line, context, contract, options)
    except (Wrong, Refused, RecursionError):
        return None
