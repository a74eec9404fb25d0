"""What the bytes of a unit are, field by field: what `inlet inspect` shows.

A codec's `annotate` reads the bytes by itself, in plain Python, so that a test can hold what it shows equal to what the
decoder says. Notes are trees: the children of a note fill its bytes, one behind the other. A note without children is a
leaf, and each byte of a unit is in exactly one leaf.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from inlet.fields.wrong import Wrong

UNREADABLE = "unreadable"
BEFORE, AFTER = "before", "after"


class Note(NamedTuple):
    """What some bytes are. `image` is said of a note that holds the columns of an image; `column` and `value` of one
    that is a column's value, which is plain as in a change, or bytes where nothing tells its type. `fault` is the kind
    of reject that the bytes bring about; `meaning` then says what was expected and found, `fault_at` at which byte
    where that is told.
    """

    offset: int
    length: int
    name: str
    meaning: str = ""
    children: tuple["Note", ...] = ()
    image: str = ""
    column: str | None = None
    value: Any = None
    fault: str = ""
    fault_at: int | None = None

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True)
class Annotated:
    """A record, or bytes that are none. What it is a part of is said where the bytes tell it: of a change that comes in
    several records each of them says the same. `operation` is of `change.OPERATIONS`; `fault` is why the record as a
    whole cannot be read, (kind, in words), `fault_at` at which byte where that is not its first one.
    """

    offset: int
    length: int
    title: str
    read: Callable[[], Iterable[Note]] = field(repr=False)
    operation: str | None = None
    table: str | None = None
    transaction_id: str | None = None
    event: int | None = None  # its place among the events of the transaction
    is_last: bool | None = None
    csn: str | None = None
    position: str | None = None
    change_seq: str | None = None
    fault: tuple[str, str] | None = None
    part: int = 0  # which of the records of its change it is
    fault_at: int | None = None

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        return tuple(self.read())


class Said(NamedTuple):
    """A record of a message, and what it says of its place; None for what it does not say."""

    offset: int
    length: int
    operation: str | None
    table: str | None
    transaction_id: str | None
    position: str | None
    change_seq: str | None


def leaves(notes: Iterable[Note]) -> Iterator[Note]:
    """The notes that hold the bytes, in their order."""
    for note in notes:
        if note.children:
            yield from leaves(note.children)
        else:
            yield note


def group(offset: int, end: int, name: str, children: Iterable[Note], meaning: str = "", image: str = "") -> Note:
    """A note that others fill; without any, a leaf. A value may have no bytes, as an empty text, and so has what is
    missing.
    """
    kept = tuple(c for c in children if c.length or c.column is not None or c.fault or c.children)
    return Note(offset, end - offset, name, meaning, kept, image)


def unreadable(offset: int, end: int, kind: str, expected: str, found: str, name: str = UNREADABLE) -> Note:
    """Bytes that cannot be read, and why."""
    return Note(offset, end - offset, name, f"{UNREADABLE}: expected {expected}, found {found}", fault=kind)


def of_wrong(offset: int, end: int, name: str, wrong: Wrong, column: str | None = None) -> Note:
    """A field that is no value of its encoding. In: an offset of `wrong` within it."""
    meaning, at = f"expected {wrong.expected}, found {wrong.found}", offset + wrong.offset
    return Note(offset, end - offset, name, meaning, column=column, fault=wrong.kind, fault_at=at)


def bare(title: str, offset: int, end: int, kind: str, expected: str, found: str, at: int | None = None) -> Annotated:
    """Bytes that are no record. In: at which of them that shows, where it is not the first."""
    note = Note(offset, end - offset, UNREADABLE, fault=kind)
    fault = kind, f"expected {expected}, found {found}"
    return Annotated(offset, end - offset, title, lambda: [note], fault=fault, fault_at=at)


def clipped(note: Note, start: int, end: int, shift: int) -> Note | None:
    """The part of a note within a range, moved; what began before or goes on behind it says so. For fields that lie in
    several records: the value of one is told where it ends.
    """
    first, last = max(note.offset, start), min(note.end, end)
    is_here = start < note.offset <= end or start == note.offset == 0
    if first >= last and not (note.length == 0 and is_here):
        return None
    kept = (clipped(child, start, end, shift) for child in note.children)
    inside = note._replace(
        offset=first + shift, length=last - first, children=tuple(child for child in kept if child is not None)
    )
    if last < note.end:
        meaning = "goes on in the next record" if not note.children else f"{note.meaning} (goes on)".strip()
        return inside._replace(meaning=meaning, column=None, value=None, fault="", fault_at=None)
    return inside if note.fault_at is None else inside._replace(fault_at=note.fault_at + shift)


def shown(value) -> str:
    """A value as a dump shows it.

    >>> shown(b"\\x0f"), shown(Decimal("1E+3")), shown("ab")
    ('0f', '1000', 'ab')
    """
    return value.hex() if isinstance(value, bytes) else f"{value:f}" if isinstance(value, Decimal) else f"{value}"


def printable(data: bytes) -> str:
    """Bytes as a dump shows them: characters of ASCII, dots for others.

    >>> printable(b"ab\\x00\\xffc")
    'ab..c'
    """
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
