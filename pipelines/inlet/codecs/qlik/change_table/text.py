r"""Records of delimited text, and their cells.

A cell that begins with the quote ends with it, and may hold delimiters of both kinds; a quote in it is written twice,
or after the escape. Any other cell is what stands up to the next delimiter.

What is wrong with quotes may hide where the next record begins: a quote that nothing ends, text after one that ends.
It goes on where it is certain: at the next line that is a whole record by itself, with a change_seq in its place
(ASSUMED: no value holds such a line). So a record over several lines that holds such a line is none either, whatever
the number of its cells. Files without change_seq have no such place.

>>> dialect = Dialect(",", "\n", '"', "", charset.with_ascii("AL32UTF8"))
>>> view = view_of(b'1,"a""b\nc",\n2,x,y\n', dialect)
>>> [[cell.text for cell in piece.cells] for piece in pieces(view, dialect, Shape(3, None), False)]
[['1', 'a"b\nc', ''], ['2', 'x', 'y']]
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from inlet.fields import charset
from inlet.fields.charset import LEAD, Charset

HEADER, ROW, BROKEN, BETWEEN, MARK = "header", "row", "broken", "between", "mark"
MOST = 1 << 16  # cells of a record whose number of columns is not known
LEN_RECORD = 32 << 20  # what is longer is no record: a quote nothing ends must not hold a whole file in memory
WHOLE, OPEN, MALFORMED = "whole", "open", "malformed"
NUM_MORE = 100  # cells beyond the number of columns that are kept of a record, to say how many it has
DIGITS = re.compile(r"[0-9]{35}")  # a change_seq, which each certain line has


class Dialect(NamedTuple):
    delimiter: str
    record_delimiter: str
    quote: str  # empty for none
    escape: str
    set: Charset


class View(NamedTuple):
    """A text in which delimiters can be looked for: a character a byte, but in sets whose pairs may hold ASCII."""

    data: bytes
    text: str
    starts: list[int] | None

    def byte(self, at: int) -> int:
        return at if self.starts is None else self.starts[at]


class Cell(NamedTuple):
    start: int
    end: int
    text: str  # without quotes and escapes, as the view has it
    is_quoted: bool


class Piece(NamedTuple):
    kind: str  # of HEADER, ROW, BROKEN, BETWEEN, MARK
    start: int
    end: int
    cells: list[Cell]


class Shape(NamedTuple):
    """What a record is known by. `is_certain`: may it be nothing but a record? In: its cells. None: nothing tells."""

    num_cells: int
    is_certain: Callable[[list[Cell]], bool] | None

    @property
    def most(self) -> int:
        """How many cells of a record are kept."""
        return self.num_cells + NUM_MORE


def view_of(data: bytes, dialect: Dialect) -> View:
    if dialect.set.mode != LEAD:
        return View(data, data.decode("latin-1"), None)
    found = charset.characters(data, dialect.set)
    return View(data, found.text, found.starts)


def as_seen(text: str, dialect: Dialect) -> str:
    """A delimiter as a view has it."""
    if dialect.set.mode == LEAD:
        return text
    return b"".join(charset.encoded(char, dialect.set) for char in text).decode("latin-1")


def value(cell: Cell, view: View, dialect: Dialect) -> str:
    """The text of a cell. Raises: Wrong, with the offset in the cell."""
    if view.starts is None:
        return charset.text(cell.text.encode("latin-1"), dialect.set)
    charset.text(view.data[view.starts[cell.start] : view.starts[cell.end]], dialect.set)
    return cell.text


@cache
def _patterns(
    delimiter: str, record_delimiter: str, quote: str, escape: str
) -> tuple[re.Pattern, re.Pattern, re.Pattern]:
    """A cell in quotes; the end of any other; what is written for one character in quotes."""
    ends = re.compile("|".join(re.escape(end) for end in (delimiter, record_delimiter)))
    quote, escape = re.escape(quote), re.escape(escape)
    if not quote:
        return re.compile(r"(?!)"), ends, re.compile(r"(?!)")
    if not escape or escape == quote:
        return re.compile(f"{quote}((?:[^{quote}]|{quote}{quote})*+){quote}"), ends, re.compile(f"{quote}({quote})")
    inside = f"{quote}((?:[^{quote}{escape}]|{escape}.)*+){quote}"
    return re.compile(inside, re.DOTALL), ends, re.compile(f"{escape}(.)", re.DOTALL)


def record(
    text: str, at: int, end: int, dialect: Dialect, may_end_so: bool = False, most: int = MOST
) -> tuple[str, int, list[Cell]]:
    """The record that begins at a place: whether it is WHOLE, OPEN (more has to come) or MALFORMED, where it ends, its
    cells so far. In: `end` of what is looked at; whether that ends a record too; how many cells are kept."""
    quoted, ends, escaped = _patterns(*dialect[:4])
    cells: list[Cell] = []
    while True:
        if dialect.quote and text.startswith(dialect.quote, at, end):
            found = quoted.match(text, at, end)
            if found is None:
                return OPEN, end, cells
            stop = found.end()
            if len(cells) < most:
                is_plain = dialect.quote not in found[1] and (not dialect.escape or dialect.escape not in found[1])
                cells.append(Cell(at, stop, found[1] if is_plain else escaped.sub(r"\1", found[1]), True))
        else:
            found = ends.search(text, at, end)
            stop = found.start() if found else end
            if len(cells) < most:
                cells.append(Cell(at, stop, text[at:stop], False))
        if text.startswith(dialect.record_delimiter, stop, end):
            return WHOLE, stop + len(dialect.record_delimiter), cells
        if text.startswith(dialect.delimiter, stop, end):
            at = stop + len(dialect.delimiter)
            continue
        if stop == end:
            return (WHOLE if may_end_so else OPEN), end, cells
        left = text[stop:end]
        may_follow = dialect.record_delimiter.startswith(left) or dialect.delimiter.startswith(left)
        return (OPEN if may_follow else MALFORMED), stop, cells


def pieces(
    view: View,
    dialect: Dialect,
    shape: Shape,
    has_header: bool,
    is_final: bool = True,
    may_end_so: bool = False,
    len_mark: int = 0,
) -> Iterator[Piece]:
    """The pieces of some bytes, without a gap, up to the first one that may not be whole, or after which nothing is
    certain. In: whether the first record is the header row; whether nothing follows the bytes; whether a last record
    may lack its delimiter; the length of a byte order mark, which belongs to a header row."""
    text, at = view.text, 0
    if len_mark and not has_header:
        yield Piece(MARK, 0, len_mark, [])
        at = len_mark
    while at < len(text):
        limit = min(len(text), at + LEN_RECORD)
        is_end = limit == len(text)
        may_end_here = may_end_so and is_final and is_end
        is_header = has_header and at == 0
        start = len_mark if is_header else at
        state, end, cells = record(text, start, limit, dialect, may_end_here, shape.most)
        if state == OPEN and is_end and not is_final:
            return
        if not is_header or state != WHOLE:
            certain = _next_certain(text, at, end if state == WHOLE else limit, dialect, shape, may_end_here)
            if certain is not None:
                yield Piece(BROKEN, at, certain, [])
                at = certain
                continue
        if state != WHOLE:
            return
        is_blank = len(cells) == 1 and not cells[0].is_quoted and not cells[0].text and shape.num_cells > 1
        yield Piece(HEADER if is_header else BETWEEN if is_blank else ROW, at, end, cells)
        at = end


def is_undone(view: View, at: int, dialect: Dialect, is_final: bool) -> bool:
    """Will no more bytes tell where the record at a place ends?"""
    limit = min(len(view.text), at + LEN_RECORD)
    state = record(view.text, at, limit, dialect)[0]
    return limit < len(view.text) or state == MALFORMED and is_final


def holds_certain(view: View, start: int, end: int, dialect: Dialect, shape: Shape) -> bool:
    """Does a whole record hold a line that is certain to be another one? Then it is none: a quote is not ended where it
    should be. Cheap for records of a line, and those without a change_seq after the first one. In: bounds of it."""
    return _next_certain(view.text, start, end, dialect, shape, True) is not None


def _next_certain(text: str, at: int, end: int, dialect: Dialect, shape: Shape, may_end_so: bool) -> int | None:
    """The first line after a place that is certain to be a record; each line is looked at once. In: whether `end` ends
    a line too."""
    mark = dialect.record_delimiter
    start = text.find(mark, at, end) + len(mark)
    if not shape.is_certain or start < len(mark) or start == end or not DIGITS.search(text, start, end):
        return None
    while start < end:
        stop = text.find(mark, start, end)
        if stop < 0 and not may_end_so:
            return None
        following = end if stop < 0 else stop + len(mark)
        state, found, cells = record(text, start, following, dialect, stop < 0, shape.most)
        is_whole = state == WHOLE and found == following and len(cells) == shape.num_cells
        if is_whole and shape.is_certain(cells):
            return start
        start = following
    return None
