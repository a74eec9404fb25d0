"""Rejects of Linkexpress extracts: what was expected and what was found, in words, for the few records that fail."""

from inlet import change
from inlet.codecs.linkexpress import frame as frame
from inlet.errors import Event, Reject
from inlet.fields import charset, fujitsu_sets
from inlet.fields.charset import LEN_FOUND
from inlet.fields.compiled import interpreter
from inlet.source import Source

EXPECTED = {  # by kind; an item's kinds are followed by the column's type
    "truncated": "the record to hold all of its items",
    "trailing_bytes": "the record to end with its last item",
    "bad_null_indicator": "0000 or FFFF",
    "unknown_operation": "operation 0000-0003 or FFFF, 8000 in a record of one column",
    "unknown_extraction_id": "an id that the source's tables map, 0 in a full extract only",
    "unknown_table": "a file name that names the table of a full extract",
    "bad_digit": "digits 0-9",
    "bad_sign": "a sign that the type defines",
    "bad_date": "a day of the calendar and a time up to 23:59:59, reserved bytes zero",
    "bad_value_length": "a length within the column's, zero if null",
    "value_does_not_fit": "no more digits than the column has",
    "missing_key": "0000, for a key is never null",
    "null_not_allowed": "0000, for the column is not nullable",
}
IN_HEAD = (
    "bad_null_indicator",
    "unknown_operation",
    "unknown_extraction_id",
    "unknown_table",
    "bad_column_count",
    "missing_key",
    "null_not_allowed",
)


def change_seq_prefix(context: dict) -> str:
    """Time and file ordinal: all of change_seq but the record's ordinal."""
    return f"{context['time']}{context['file_ordinal']:09d}"


def change_seq_of(context: dict, record: int) -> str | None:
    """change_seq of a record of this block, by its place in the block; None if the file's name gave no time."""
    if not context.get("time"):
        return None
    return change.change_seq(context["time"], context["file_ordinal"], context["record_ordinal"] + record)


def record(i: int, data: bytes, framed, faults, context: dict, tables: dict, source: Source) -> Reject:
    """The reject of record `i`: of its head, or of an item."""
    head, start, end = framed.heads[i], int(framed.offsets[i]), int(framed.offsets[i + 1])
    behind = end
    table = tables[sorted(tables)[head[frame.TABLE]]] if head[frame.TABLE] >= 0 else None
    column = None
    if head[frame.WHAT] == frame.FAULTY:
        kind, at = frame.FAULTS[head[frame.FAULT]], int(head[frame.FAULT_AT])
    else:
        kind, at = interpreter.FAULTS[faults[i, 0]], int(faults[i, 1])
        column = table.columns[faults[i, 2]] if faults[i, 2] >= 0 else None
    layout, expected = context.get("layout", "group"), EXPECTED.get(kind, "")
    if kind == "bad_column_count":
        num_items, more = len(table.columns), 2 if layout == "group" else 1
        expected = f"{num_items + more} columns, {num_items} of the table and {more}"
        if head[frame.OPERATION] == frame.OP_EMPTY_LOAD:
            expected = f"2 columns; or {expected}"
    if kind == "unknown_operation" and head[frame.OPERATION] == frame.OP_EMPTY_LOAD:
        expected = "FFFF in the first record of a file alone, else operation 0000-0003"
    if kind == "unknown_operation" and layout != "group":
        is_full = context["extract"] == "full"
        expected = "operation 0000 of a full extract" if is_full else "operation 0001-0003 of differences"
    if kind == "bad_text":
        layouts, place = framed.layouts, framed.layouts.plan_starts[head[frame.TABLE]] + faults[i, 2]
        of, mode = layouts.sets[layouts.plans[place, interpreter.SET]], layouts.plans[place, interpreter.MODE]
        is_open = mode == charset.SHIFT and data[at] in fujitsu_sets.SHIFT_TO_DOUBLE  # no fault but at its end
        expected = charset.closed(of) if is_open else charset.said(of, mode == charset.DOUBLE)
        behind = int(faults[i, 3])
    found = _found(data, at, behind, kind)
    schema, name = (table.schema_name, table.table_name) if table else (None, None)
    if kind == "unknown_extraction_id" and (
        mapped := source.tables.get(
            str(int(found, 16) if context["byte_order"] == "big" else int.from_bytes(bytes.fromhex(found), "little"))
        )
    ):
        schema, name = mapped.split(".")  # a table that is not wanted, and so has no contract here
    return Reject(
        kind,
        start,
        end - start,
        at,
        f"{column.source_type}: {expected}" if column else expected,
        found,
        data[start:end],
        schema,
        name,
        column and column.name,
        change_seq_of(context, i),
        _event(context, head),
    )


def _event(context: dict, head) -> Event | None:
    """Where a record stands in its transaction; None of a full extract's, or where the file's name gave no time."""
    if head[frame.COUNTER] < 0 or not context.get("time"):
        return None
    id_ = f"{change_seq_prefix(context)}-{head[frame.TRANSACTION]}"
    return Event(id_, int(head[frame.COUNTER]), bool(head[frame.LAST] == 1))


def _found(data: bytes, at: int, end: int, kind: str) -> str:
    if kind == "truncated":
        return f"{end - at} bytes"
    if kind == "trailing_bytes":
        return f"{end - at} bytes more: {data[at : min(end, at + LEN_FOUND)].hex().upper()}"
    return data[at : min(end, at + (2 if kind in IN_HEAD else LEN_FOUND))].hex().upper()


def rest(data: bytes, framed, context: dict) -> Reject:
    """What follows the last whole record: an impossible length, or a record that does not end."""
    at, num = int(framed.offsets[-1]), len(framed.heads)
    seq = change_seq_of(context, num)
    if framed.is_bad_length and framed.len_min == framed.len_max:
        return Reject(
            "trailing_bytes",
            at,
            len(data) - at,
            at,
            "the end of the file behind FFFF, a full extract without rows",
            "more bytes",
            data[at:],
            change_seq=seq,
        )
    if framed.is_bad_length:
        return Reject(
            "bad_length",
            at,
            len(data) - at,
            at,
            f"a record of {framed.len_min} to {framed.len_max} bytes",
            data[at : at + 4].hex().upper(),
            data[at:],
            change_seq=seq,
        )
    return Reject(
        "truncated",
        at,
        len(data) - at,
        len(data),
        "a whole record",
        f"{len(data) - at} bytes",
        data[at:],
        change_seq=seq,
    )


def of_file(kind: str, head: bytes, expected: str, found: str, byte_offset: int = 0) -> Reject:
    """A reject of a whole file."""
    return Reject(kind, 0, len(head), byte_offset, expected, found, head)
