"""A full image for `inlet inspect`: the system key, and each column at its place.

The same rules as trail/full_image.py and trail/columns.py, in plain Python. Source: docs/formats/goldengate_trail.md.
"""

from collections.abc import Iterator

from inlet.codecs.goldengate import source_type as vendor
from inlet.codecs.goldengate.notes.columns import LEN_INNER, LEN_NULL, LIST, body_notes
from inlet.codecs.goldengate.notes.frames import Order, size_at
from inlet.codecs.goldengate.options import Options
from inlet.codecs.goldengate.trail.full_image import has_inner_length, len_column
from inlet.codecs.notes import AFTER, Note, group, printable, unreadable
from inlet.table import Table
from inlet.table_column import TableColumn


def full_notes(
    data: bytes, at: int, end: int, len_syskey: int, order: Order, table: Table | None, options: Options, image: str
) -> Note:
    """A full image. In: a version whose places can be read, or none."""
    if table is None:
        return Note(at, end - at, "full image", printable(data[at:end]))
    types = [vendor.parse(column.source_type or "") for column in table.columns]
    length = types[-1].place[1] if types[-1].place else 0
    if end - at != len_syskey + length:
        expected = f"a full image of {length} bytes, behind a system key of {len_syskey}"
        return unreadable(at, end, "bad_length", expected, f"{end - at} bytes", "full image")
    start = at + len_syskey
    notes = [Note(at, len_syskey, "system key", data[at:start].hex())]
    for index, (column, type_) in enumerate(zip(table.columns, types)):
        assert type_.place
        first, behind = (start + place for place in type_.place)
        own = _column_notes(data, first, behind, order, (index, column), type_, table, options, image == AFTER)
        notes.append(group(first, behind, f"column {index} {column.name}", own))
    return group(at, end, LIST[image], notes, "full image", image)


def _column_notes(
    data: bytes,
    at: int,
    behind: int,
    order: Order,
    named: tuple[int, TableColumn],
    type_: vendor.SourceType,
    table: Table,
    options: Options,
    is_after: bool,
) -> Iterator[Note]:
    """The parts of a column, and what is left over of its place."""
    indicator, end = data[at : at + LEN_NULL], at + LEN_NULL
    if indicator not in (b"\0\0", b"\xff\xff"):
        yield unreadable(at, end, "bad_null_indicator", "0000 or FFFF", indicator.hex().upper(), "null indicator")
    else:
        if indicator == b"\0\0":
            end = at + len_column(type_)
            if has_inner_length(type_):
                size, room = size_at(data, at + LEN_NULL, order), end - at - LEN_NULL - LEN_INNER
                if size > room:
                    yield Note(at, LEN_NULL, "null indicator", "present")
                    found = f"{size}"
                    yield unreadable(
                        at + LEN_NULL, behind, "bad_value_length", f"a length up to {room}", found, "value"
                    )
                    return
                end -= room - size
        yield from body_notes(data, at, end, order, *named, table, options, is_after)
    yield Note(end, behind - end, "left over", printable(data[end:behind]))
