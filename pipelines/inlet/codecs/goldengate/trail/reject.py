"""Rejects of a trail: what was expected and what was found, in words, for the few records that fail."""

import re

from inlet.codecs.goldengate import source_type as vendor
from inlet.codecs.goldengate.options import TextOptions
from inlet.codecs.goldengate.trail import plan, sequence
from inlet.errors import Event, Reject
from inlet.fields import charset
from inlet.source import Source
from inlet.table_column import TableColumn

LEN_FOUND, LEN_SPELLED = 16, 40
OF_RECORDS = {  # by kind: what was expected of a record
    "bad_frame": "a record: a token G whose length leads to a token Z with the same length",
    "bad_length": "tokens that end where the record does, and a RecLength that is the length of D",
    "unknown_token": "one H, D, U and T",
    "bad_header": "E first; B or A as its operation has it; TransInd 0 to 3; an IO Time up to 2099; SyskeyLen 0, 4, 8",
    "unknown_operation": "an IOType that docs/formats/goldengate_trail.md lists",
    "unsupported_record": "a list of columns, or a full image of a Delete, Insert or Update",
    "part_missing": "a before-image and, behind it, the update that it belongs to",
    "contradiction": "a column area where the IOType has one, and one TRANID and one LOGCSN in a transaction",
    "bad_segment": "segments next to each other with RecCount 1, 2, 3 ..., and a LOB chunk behind its row",
}
OF_COLUMNS = {
    "bad_length": "columns that fill the column area to its end",
    "unknown_column": "an index of a column that the contract has",
    "column_twice": "each column once",
    "bad_value_length": "a length that the type has",
    "value_does_not_fit": "a value that fits the column's type without rounding",
    "bad_null_indicator": "0000 or FFFF",
    "missing_key": "a value of each column of the key",
    "null_not_allowed": "a value, for the contract says nullable: false",
    "part_missing": "a before-image of the same key in front of its update; the contract's key is to be the source's",
    "ambiguous_layout": "a length of 2 or of 4 bytes before the images, with which both of them end exactly",
}
OF_DATES = {  # by the contract's type
    "date": "a day of the calendar, alone or at 00:00:00 (type timestamp_ntz keeps a time of day)",
    "timestamp": "a day of the calendar, and a time to the microsecond",
    "timestamp_ntz": "a day of the calendar, and a time to the microsecond",
}
FINER = re.compile(rb".{19}\.[0-9]{7,} *", re.DOTALL)  # text of a time finer than a microsecond


def of_group(found, n: int, source: Source) -> Reject:
    """The reject of a group of records. In: images.Images."""
    read, group = found.piece, found.piece.groups[n]
    at, end = int(read.starts[n]), int(read.starts[n + 1])
    target = found.places.targets[found.places.target[n]] if found.places.target[n] >= 0 else None
    column = None
    if group[sequence.FAULT]:
        kind, place = sequence.FAULTS[group[sequence.FAULT]], int(group[sequence.FAULT_AT])
        expected, seen = OF_RECORDS[kind], _seen(read.data, place, end)
    elif why := found.places.whys.get(n) or (target and target.why):
        kind, expected, seen = why
        place = at
    else:
        kind, place, expected, seen, column = _of_columns(found, n, at, end, source)
    schema, table_name = (None, None)
    if target and target.table:
        schema, _, table_name = target.table.rpartition(".")
    return Reject(
        kind,
        at,
        end - at,
        place,
        expected,
        seen,
        read.data[at:end],
        schema or None,
        table_name,
        column.name if column else None,
        read.change_seq(n),
        _event(found, n),
    )


def _of_columns(found, n: int, at: int, end: int, source: Source) -> tuple[str, int, str, str, TableColumn | None]:
    """What is wrong with a column area: kind, place, expected, found, and the column."""
    kind, place, index = plan.FAULTS[found.faults[n, 0]], int(found.faults[n, 1]), int(found.faults[n, 2])
    layout = found.places.layout[n]
    group, start = found.piece.groups[n], place
    num_after = group[sequence.BASE_END] - group[sequence.FIRST] - group[sequence.NUM_BEFORE]
    if max(num_after, group[sequence.NUM_BEFORE]) > 1 and place >= len(found.piece.data):
        place = at  # in segments that are joined: the place is told by the record
    if found.faults[n, 0] == plan.BAD_IMAGE_LENGTH:
        length = found.layouts.record_lengths[layout]
        return (
            kind,
            place,
            f"a full image of {length} bytes, behind a system key of SyskeyLen bytes",
            f"{index} bytes",
            None,
        )
    table, expected, end_of_value = found.layouts.tables[layout], OF_COLUMNS.get(kind, ""), start + LEN_FOUND
    column = table.columns[index] if 0 <= index < len(table.columns) else None
    if column and kind == "bad_text":
        expected, end_of_value = charset.said(_charset_of(column, source)), int(found.faults[n, 3])
    if column and kind == "bad_date":
        end_of_value = int(found.faults[n, 3])
        expected = of_date(column.type, bytes(found.bytes_[start:end_of_value]))
    if column:
        expected = f"{column.vendor_type} as {column.type}: {expected}"
    elif kind in ("unknown_column", "column_twice"):
        return kind, place, expected, f"column {index}", None
    value = bytes(found.bytes_[start:end_of_value])
    return kind, place, expected, spelled(value) if kind == "bad_date" else _seen(value, 0, len(value)), column


def of_date(type_: str, value: bytes) -> str:
    """What a column of dates or times holds, and the type that keeps a value which is finer."""
    remedy = " (type string keeps more digits)" if type_ != "date" and FINER.fullmatch(value) else ""
    return OF_DATES[type_] + remedy


def spelled(value: bytes) -> str:
    """A value as its text, which says how much of it is left out."""
    text = value[:LEN_SPELLED].decode("latin-1")
    more = f" ... {len(value) - LEN_SPELLED} bytes more" if len(value) > LEN_SPELLED else ""
    return f"{text!r}{more}"


def _charset_of(column: TableColumn, source: Source) -> str:
    """The name of the character set that a column is read in."""
    if vendor.parse(column.source_type or "").name in ("DATETIME", "FLOAT", "FIXED_PREC"):
        return "ASCII"
    return column.charset or source.options.get("charset", TextOptions().charset)


def _event(found, n: int) -> Event | None:
    """Where a rejected record stands in its transaction."""
    group = found.piece.groups[n]
    if group[sequence.COUNTER] < 0 or group[sequence.TRANSACTION] < 0:
        return None
    id_ = found.piece.id_of(int(group[sequence.TRANSACTION]), n)
    return Event(id_, int(group[sequence.COUNTER]), bool(group[sequence.IS_LAST]))


def _seen(data: bytes, at: int, end: int) -> str:
    return data[at : min(end, at + LEN_FOUND)].hex().upper() or "nothing"
