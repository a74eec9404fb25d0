"""The column area of a trail's record for `inlet inspect`: index, length, null indicator and value of each column.

Values are read by the contract, with the same rules as trail/columns.py and trail/values.py, in plain Python; without
one a column is called by its index and its value is its bytes. Source: docs/formats/goldengate_trail.md.
"""

import datetime
import re
from collections.abc import Iterator
from decimal import Decimal

from inlet.codecs.goldengate import source_type as vendor
from inlet.codecs.goldengate.notes.frames import Order, size_at
from inlet.codecs.goldengate.options import Options
from inlet.codecs.goldengate.trail import reject
from inlet.codecs.notes import AFTER, Note, group, of_wrong, printable, shown, unreadable
from inlet.fields.charset import charset, text
from inlet.fields.charset import said as charset_said
from inlet.fields.wrong import Wrong, quoted
from inlet.table import Table
from inlet.table_column import DECIMAL, TableColumn

LEN_ITEM, LEN_NULL, LEN_INNER = 4, 2, 2
MAX_DIGITS = 38
LEN_INTEGER = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ :T](\d\d:\d\d:\d\d)(?:\.(\d+))?", re.ASCII)
LIST = {"before": "before-image", "after": "after-image"}


def list_notes(data: bytes, at: int, end: int, order: Order, table: Table | None, options: Options, image: str) -> Note:
    """A list of columns, as the image that it is."""
    notes, seen, start = [], set[int](), at
    while at < end:
        if at + LEN_ITEM > end:
            notes.append(unreadable(at, end, "bad_length", "an index and a length", f"{end - at} bytes"))
            break
        index, size = size_at(data, at, order), size_at(data, at + 2, order)
        column = table.columns[index] if table and index < len(table.columns) else None
        after = at + LEN_ITEM + size
        if table and column is None:
            expected = f"an index below {len(table.columns)}, the columns of the contract"
            notes.append(unreadable(at, end, "unknown_column", expected, f"{index}"))
            break
        if size < LEN_NULL or after > end:
            found = f"length {size} with {end - at - LEN_ITEM} bytes left"
            notes += [
                Note(at, 2, f"column {_name(index, column)}", f"index {index}"),
                unreadable(at + 2, end, "bad_length", "columns that fill the column area to its end", found),
            ]
            break
        if index in seen:
            notes.append(unreadable(at, end, "column_twice", "each column once", f"column {index} again"))
            break
        seen.add(index)
        notes.append(Note(at, LEN_ITEM, f"column {_name(index, column)}", f"index {index}, length {size}"))
        notes += body_notes(data, at + LEN_ITEM, after, order, index, column, table, options, image == AFTER)
        at = after
    return group(start, end, LIST[image], notes, "", image)


def _name(index: int, column: TableColumn | None) -> str:
    return f"{index} {column.name}" if column else f"{index}"


def body_notes(
    data: bytes,
    at: int,
    end: int,
    order: Order,
    index: int,
    column: TableColumn | None,
    table: Table | None,
    options: Options,
    is_after: bool,
) -> Iterator[Note]:
    """The null indicator of a column, and what stands behind it."""
    name, body = column.name if column else f"{index}", at + LEN_NULL
    if not (data[at] or data[at + 1]):
        yield Note(at, LEN_NULL, "null indicator", "present")
        yield from _value_notes(data, body, end, order, name, column, options)
        return
    why = None
    if column and table and name in table.key:
        why = "missing_key", "a value, for a key is never null"
    elif column and not column.nullable and is_after:
        why = "null_not_allowed", "a value, for the contract says nullable: false"
    if why:
        yield unreadable(at, body, *why, "NULL", "null indicator")
    else:
        yield Note(at, LEN_NULL, "null indicator", "NULL", column=name)
    if body < end:
        yield Note(body, end - body, "behind the null indicator", printable(data[body:end]))


def _value_notes(
    data, at: int, end: int, order: Order, name: str, column: TableColumn | None, options
) -> Iterator[Note]:
    if column is None or not column.source_type:
        yield _value_note(at, end, name, data[at:end], printable(data[at:end]))
        return
    type_ = vendor.parse(column.source_type)
    if type_.name in ("ASCII_V", "FLOAT", "FIXED_PREC"):
        if end - at < LEN_INNER or size_at(data, at, order) != end - at - LEN_INNER:
            expected = f"{column.vendor_type}: a length of 2 bytes, which is that of the text behind it"
            yield unreadable(at, end, "bad_value_length", expected, data[at : at + LEN_INNER].hex(), "value")
            return
        yield Note(at, LEN_INNER, "length of the text", f"{end - at - LEN_INNER}")
        at += LEN_INNER
    try:
        value = value_of(data[at:end], type_, column, options)
    except Wrong as wrong:
        yield of_wrong(at, end, "value", wrong, name)
    else:
        yield _value_note(at, end, name, value, f"{column.vendor_type} {shown(value)}")


def _value_note(at: int, end: int, name: str, value, meaning: str) -> Note:
    """A value; one of no bytes, as an empty text, is still one."""
    return Note(at, end - at, "value", meaning, column=name, value=value)


def value_of(data: bytes, type_: vendor.SourceType, column: TableColumn, options: Options):
    """A value by its type, as a change has it. In: the bytes behind null indicator and length. Raises: Wrong."""
    if type_.is_raw:
        return data
    if type_.integer:
        return _integer(data, type_, column)
    if type_.name == "DATETIME":
        return _moment(data, column)
    if type_.name in ("FLOAT", "FIXED_PREC") and column.type != "string":
        return _number(data, column)
    if column.type == "binary":
        return data
    name = "ascii" if type_.name in ("FLOAT", "FIXED_PREC") else column.charset or options.charset
    return text(data, charset(name))


def _integer(data: bytes, type_: vendor.SourceType, column: TableColumn):
    assert type_.integer
    if len(data) != type_.integer.num_bytes:
        raise Wrong("bad_value_length", 0, f"{type_.integer.num_bytes} bytes", f"{len(data)}")
    number = int.from_bytes(data, "big", signed=type_.integer.is_signed)  # big-endian in a trail of any order
    value = Decimal(number).scaleb(-type_.scale) if type_.scale else number
    if column.type != "string":
        return value
    if number >= 1 << 63:
        raise Wrong("value_does_not_fit", 0, "an integer below 2^63", f"{number}")
    return f"{value:f}" if isinstance(value, Decimal) else f"{value}"


def _number(data: bytes, column: TableColumn) -> Decimal:
    """Decimal text, held against the contract's type."""
    spelled = data.decode("latin-1")
    bad = next((at for at, char in enumerate(spelled) if char not in "-.0123456789"), 0)
    if not NUMBER.fullmatch(spelled):
        raise Wrong("value_does_not_fit", bad, "a decimal number", quoted(spelled))
    whole, _, fraction = spelled.lstrip("-").partition(".")
    num_whole, num_fraction = len(whole.lstrip("0")), len(fraction.rstrip("0"))
    decimal = DECIMAL.fullmatch(column.type)
    if decimal:
        fits = num_fraction <= int(decimal[2]) and num_whole <= int(decimal[1]) - int(decimal[2])
    elif column.type in LEN_INTEGER:
        limit = 1 << 8 * LEN_INTEGER[column.type] - 1
        fits = "." not in spelled and num_whole <= MAX_DIGITS and -limit <= int(spelled) < limit
    else:
        fits = num_whole + num_fraction <= MAX_DIGITS and num_fraction <= MAX_DIGITS
    if not fits:
        raise Wrong("value_does_not_fit", 0, f"a number that fits {column.type} without rounding", quoted(spelled))
    return Decimal(spelled)


def _moment(data: bytes, column: TableColumn) -> str:
    """A date and time as text, a blank between them; of a date its day."""
    spelled = data.decode("latin-1")
    is_day, is_moment = len(spelled) == vendor.LEN_DATE and _is_day(spelled), _is_moment(spelled)
    is_midnight = is_moment and not re.search("[1-9]", spelled[vendor.LEN_DATE :])
    if column.type == "date" and (is_day or is_midnight):
        return spelled[: vendor.LEN_DATE]
    if column.type == "date" or column.type in reject.OF_DATES and not is_moment:
        raise Wrong("bad_date", 0, reject.of_date(column.type, data), reject.spelled(data))
    for at, byte in enumerate(data):
        if not 32 <= byte < 127:
            raise Wrong("bad_text", at, charset_said("ASCII"), f"{byte:02X}")
    return spelled[:10] + " " + spelled[11:] if spelled[10:11] in (":", "T") else spelled


def _is_day(spelled: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", spelled, re.ASCII) and datetime.date.fromisoformat(spelled))
    except ValueError:
        return False


def _is_moment(spelled: str) -> bool:
    match = MOMENT.fullmatch(spelled)
    if not match or not _is_day(match[1]) or (match[3] or "")[6:].strip("0"):
        return False
    hour, minute, second = map(int, match[2].split(":"))
    return hour < 24 and minute < 60 and second < 60


def is_list(data: bytes, order: Order, num_columns: int) -> bool:
    """Do these bytes hold a list of columns, each once?"""
    at, seen = 0, set()
    while at < len(data):
        if at + LEN_ITEM > len(data):
            return False
        index, size = size_at(data, at, order), size_at(data, at + 2, order)
        at += LEN_ITEM + size
        if index >= num_columns or index in seen or size < LEN_NULL or at > len(data):
            return False
        seen.add(index)
    return True


def split(area: bytes, order: Order, is_key: bool, num_columns: int) -> list[tuple[int, int]]:
    """Where the list before may stand in an area with both images, behind a length of 2 bytes or (not of a key alone)
    of 4: (first byte, end) of each reading with which both lists end exactly.
    """
    found = []
    for width in (2,) if is_key else (2, 4):
        size = int.from_bytes(area[:width], order)
        end = width + size
        if width <= len(area) and LEN_ITEM + LEN_NULL <= size and end <= len(area):
            if is_list(area[width:end], order, num_columns) and is_list(area[end:], order, num_columns):
                found.append((width, end))
    return found
