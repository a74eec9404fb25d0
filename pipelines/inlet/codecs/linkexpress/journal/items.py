"""The items of a usage journal: where each lies and what state it is in. The layouts are in files.py.

A reading is a dict of what is settled for a whole file (reading.py): tagged, compressed, numeric_sign, and so on.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from inlet.codecs.linkexpress.journal.frame import LEN_JOURNAL_HEAD
from inlet.codecs.linkexpress.journal.values import Item, width_of
from inlet.fields.wrong import Wrong

VALID, NULL, MISSING, INVALID = "valid", "null", "missing", "invalid"
STATES = {0x00: VALID, 0x0F: NULL, 0xF0: MISSING, 0xFF: INVALID}
LONG_STATES = {0x0000: VALID, 0x00FF: NULL, 0xFF00: MISSING, 0xFFFF: INVALID}
SYSTEM_CODES = {
    0x81: "TIME",
    0x82: "TRNID",
    0x83: "STS",
    0x84: "DBKIND",
    0x85: "DBOP",
    0x86: "STORAGE",
    0x87: "RESOURCE",
}
LEN_SYSTEM = {"TIME": 16, "TRNID": 8, "STS": 2, "DBKIND": 2, "DBOP": 2}
LEN_NAME = (38, 72)  # of STORAGE and RESOURCE
CHECKPOINT, LEN_CHECKPOINT = 0x24, 32
LEN_TAG, LEN_VALIDITY = 4, 2
OPEN = "open"  # validity_order where the first journals of a file have no validity that tells it
NO_ORDER = (
    "validity 0000 or FFFF, for the first journals of the file do not tell the byte order of 00FF and FF00: set the "
    "option validity_order, and replay"
)
NO_DEFINITION = "the columns of every table that is acquired: `tables` in their order, each with a contract"


class Found(NamedTuple):
    """An item in its journal. Offsets are from the first byte of the data; a tag's code and its two bytes of
    information where it has one.
    """

    start: int
    data_start: int
    end: int
    state: str
    code: int | None = None
    info: bytes = b""


class Journal(NamedTuple):
    """The items of a journal. `columns` is None where those of an unknown table cannot be told."""

    system: dict[str, Found]
    columns: list[Found] | None
    checkpoint: Found | None

    @property
    def num_valid(self) -> int:
        found = [*self.system.values(), *(self.columns or ()), *filter(None, [self.checkpoint])]
        return sum(item.state == VALID for item in found)


def tagged(data: bytes, start: int, end: int, byte_order: Any, reading: dict) -> Journal:
    """Read a journal whose items are tagged. Raises: Wrong."""
    journal, at = Journal({}, [], None), start + LEN_JOURNAL_HEAD
    while at < end:
        _check_end(at, at + LEN_TAG, end)
        code, info = data[at], data[at + 1 : at + 3]
        state = STATES.get(data[at + 3])
        if state is None:
            raise Wrong("bad_null_indicator", at + 3, "validity 00, 0F, F0 or FF", f"{data[at + 3]:02X}")
        width = _width_of_tag(code, info, byte_order, reading, at)
        _check_end(at, at + LEN_TAG + width, end)
        found = Found(at, at + LEN_TAG, at + LEN_TAG + width, state, code, info)
        name = SYSTEM_CODES.get(code)
        if journal.checkpoint or name in journal.system:
            raise Wrong("unknown_token", at, "each system item once, and nothing behind a checkpoint", f"{code:02X}")
        if name:
            journal.system[name] = found
        elif code == CHECKPOINT:
            journal = journal._replace(checkpoint=found)
        else:
            journal.columns.append(found)
        at = found.end
    return journal


def _check_end(item: int, reached: int, end: int) -> None:
    if reached > end:
        raise Wrong("contradiction", item, f"an item within the {end - item} bytes that are left", f"{reached - item}")


def _width_of_tag(code: int, info: bytes, byte_order: Any, reading: dict, at: int) -> int:
    """Bytes of the data behind a tag. Raises: Wrong."""
    n = int.from_bytes(info, byte_order)
    in_bytes = n if reading["nchar_length"] == "bytes" else 2 * n
    len_length = 2 if reading["varying_length"] == "data" else 0
    widths = {
        0x01: n,
        0x02: n + len_length,
        0x03: in_bytes,
        0x04: in_bytes + len_length,
        0x11: 2,
        0x12: 4,
        0x13: info[0] + (reading["numeric_sign"] == "separate"),
        0x14: info[0] // 2 + 1,
        0x15: 4,
        0x16: 8,
        0x22: n,
        0x23: n,
        CHECKPOINT: LEN_CHECKPOINT,
    }
    if name := SYSTEM_CODES.get(code):
        widths[code] = n
        if n != LEN_SYSTEM.get(name, n) or name not in LEN_SYSTEM and n not in LEN_NAME:
            widths_of = LEN_SYSTEM.get(name, "38 or 72")
            raise Wrong("bad_value_length", at + 1, f"{widths_of} bytes of TJNL{name}", f"{n}")
    if code not in widths:
        raise Wrong("unknown_token", at, "an attribute code 01-04, 11-16, 22-24 or 81-87", f"{code:02X}")
    return widths[code]


def untagged(
    data: bytes,
    start: int,
    end: int,
    byte_order: Any,
    reading: dict,
    sysitems: tuple[str, ...],
    every_column: list[Item] | None,
    columns_of: Callable[[Found | None], list[Item] | None],
    is_checkpoint: Callable[[dict[str, Found]], bool],
) -> Journal:
    """Read a journal whose items have no tags. In: the columns of all tables, None where they are not known; those of
    the table that a valid item names, or of the only one; whether system items are those of a checkpoint. Raises:
    Wrong.
    """
    reader = _Untagged(data, start, end, byte_order, reading)
    system = [(name, LEN_SYSTEM.get(name) or int(reading["name_width"])) for name in sysitems]
    len_system = sum(LEN_VALIDITY + width for _, width in system)
    len_checkpoint = (LEN_VALIDITY + LEN_CHECKPOINT) * (reading["has_checkpoint"] == "yes")
    first = start + LEN_JOURNAL_HEAD
    is_first = reading["sysitems_position"] == "first"
    if reading["compressed"] == "no":
        if every_column is None:
            raise Wrong("bad_column_count", start, NO_DEFINITION, "none")
        at = first if is_first else end - len_checkpoint - len_system
        found = dict(zip(sysitems, reader.walk(at, system)))
        columns = every_column
    else:
        len_checkpoint *= end - first == len_system + len_checkpoint  # it alone has the item, and no column
        found = reader.checkpoint(first, system, is_checkpoint) if len_checkpoint else {}
        found = found or dict(zip(sysitems, reader.walk(first if is_first else end - len_system, system)))
        if is_checkpoint(found):
            columns = []
        else:
            resource = found.get("RESOURCE")
            len_checkpoint, known = 0, columns_of(resource if resource and resource.state == VALID else None)
            if known is None:
                return Journal(found, None, None)
            columns = known
    len_columns = sum(LEN_VALIDITY + width_of(item, reading["numeric_sign"]) for item in columns)
    if first + len_system + len_columns + len_checkpoint != end:
        length = LEN_JOURNAL_HEAD + len_system + len_columns + len_checkpoint
        items_ = f"system items {', '.join(sysitems) or 'none'} (option sysitems) and {len(columns)} columns"
        raise Wrong("contradiction", start, f"a journal of {length} bytes by its items: {items_}", f"{end - start}")
    widths = [(item.column.name, width_of(item, reading["numeric_sign"])) for item in columns]
    row = reader.walk(first + len_system if is_first else first, widths, are_columns=True)
    checkpoint = reader.walk(end - len_checkpoint, [("checkpoint", LEN_CHECKPOINT)])[0] if len_checkpoint else None
    return Journal(found, row, checkpoint)


class _Untagged:
    """Walks items of known widths."""

    def __init__(self, data: bytes, start: int, end: int, byte_order: Any, reading: dict):
        self.data, self.start, self.end = data, start, end
        self.order: Any = "big" if reading["validity_order"] == "bytes" else byte_order
        self.is_open = reading["validity_order"] == OPEN and byte_order == "little"

    def walk(self, at: int, widths: Iterable[tuple[str, int]], are_columns: bool = False) -> list[Found]:
        """The items from a place on. Of one that is no column it is enough whether it is valid. Raises: Wrong."""
        items = []
        for name, width in widths:
            end = at + LEN_VALIDITY + width
            if at < self.start + LEN_JOURNAL_HEAD or end > self.end:
                raise Wrong(
                    "contradiction", self.start, f"a journal that holds {name}", f"{self.end - self.start} bytes"
                )
            code = self.data[at : at + LEN_VALIDITY]
            state = LONG_STATES.get(int.from_bytes(code, self.order))
            if state is None:
                raise Wrong("bad_null_indicator", at, "validity 0000, 00FF, FF00 or FFFF", code.hex().upper())
            if are_columns and self.is_open and state in (NULL, MISSING):
                raise Wrong("bad_null_indicator", at, NO_ORDER, code.hex().upper())
            items.append(Found(at, at + LEN_VALIDITY, end, state))
            at = end
        return items

    def checkpoint(self, at: int, widths: list[tuple[str, int]], is_checkpoint: Callable) -> dict[str, Found]:
        """The system items from a place on, none where they are not those of a checkpoint."""
        try:
            found = dict(zip((name for name, _ in widths), self.walk(at, widths)))
        except Wrong:
            return {}
        return found if is_checkpoint(found) else {}
