"""Delimited text, compiled: where the records and the cells of some bytes lie. text.py is the plain form.

Strategy. The scan knows records that are whole and have as many cells as columns, and empty lines. At anything else it
stops (ODD), and all of the bytes are left to text.py; there are no errors here.

Reads: no byte from `end` on. Writes: `bounds` is asked for its room before a record is written, and `cells` holds as
many records or one; `room` says how many records there can be.
"""

import numpy as np

from inlet.fields.compiled.basics import inlined
from inlet.fields.compiled.cache import compiled

WHOLE, OPEN, ODD = range(3)  # what a scan ends with: nothing, a record that may go on, what text.py has to read
PLAIN, QUOTED, ESCAPED = range(3)  # of a cell: ESCAPED are quoted ones in which the escape is
START, END, FORM = range(3)  # of a cell: FORM is one of these
NONE = -1  # in place of a quote or an escape; START of a null


def room(data: np.ndarray, record_delimiter: bytes, num_cells: int) -> int:
    """How many records some bytes hold at most: each takes a byte for each of its cells, only the last one less, and
    ends with the last byte of a record delimiter, only the last one not."""
    num_ends = int(np.count_nonzero(data == record_delimiter[-1]))
    return min(num_ends, (len(data) + 1) // num_cells) + 1


@inlined
def _is_at(d, at, end, mark):
    if at + len(mark) > end:
        return False
    for k in range(len(mark)):
        if d[at + k] != mark[k]:
            return False
    return True


@inlined
def _quoted(d, at, end, quote, escape):
    """After the opening quote: the place of the closing one, and whether there is an escape; NONE if it is not
    there."""
    form = QUOTED
    while at < end:
        b = d[at]
        if b == escape and (escape != quote or at + 1 < end and d[at + 1] == quote):
            if at + 1 == end:
                return NONE, form
            form = ESCAPED
            at += 2
        elif b == quote:
            return at, form
        else:
            at += 1
    return NONE, form


@inlined
def _plain(d, at, end, delimiter, record_delimiter):
    """The end of a cell without quotes."""
    first, last = delimiter[0], record_delimiter[0]
    while at < end:
        b = d[at]
        if b == first and _is_at(d, at, end, delimiter) or b == last and _is_at(d, at, end, record_delimiter):
            return at
        at += 1
    return at


@compiled(_nrt=False)
def scan(d, at, end, delimiter, record_delimiter, quote, escape, may_end_so, cells, bounds):
    """Records from `at` on. In: quote and escape (the quote where it is written twice) or NONE; whether the last record
    may lack its delimiter. Out: what it ends with, how many records, the place after the last one; `cells` (record,
    column, START to FORM, without quotes) and `bounds` (start, end of each record) are filled. Where there is room for
    the cells of fewer records than bounds, each record is written over the one before."""
    num, num_cells = 0, cells.shape[1]
    while at < end:
        if num == len(bounds):
            return ODD, num, at
        start, column, is_open = at, 0, True
        row = num if len(cells) == len(bounds) else 0
        while is_open:
            if column == num_cells:
                return ODD, num, start
            if quote != NONE and d[at] == quote:
                stop, form = _quoted(d, at + 1, end, quote, escape)
                if stop == NONE:
                    return OPEN, num, start
                cells[row, column, START], cells[row, column, END], cells[row, column, FORM] = at + 1, stop, form
                at = stop + 1
            else:
                stop = _plain(d, at, end, delimiter, record_delimiter)
                cells[row, column, START], cells[row, column, END], cells[row, column, FORM] = at, stop, PLAIN
                at = stop
            column += 1
            if _is_at(d, at, end, record_delimiter):
                at += len(record_delimiter)
                is_open = False
            elif _is_at(d, at, end, delimiter):
                at += len(delimiter)
                if at == end:  # an empty last cell
                    if column == num_cells:
                        return ODD, num, start
                    if not may_end_so:
                        return OPEN, num, start
                    cells[row, column, START], cells[row, column, END], cells[row, column, FORM] = at, at, PLAIN
                    column += 1
                    is_open = False
            elif at == end and may_end_so:
                is_open = False
            else:
                return OPEN if at == end else ODD, num, start
        is_blank = column == 1 and cells[row, 0, FORM] == PLAIN and cells[row, 0, START] == cells[row, 0, END]
        if is_blank and num_cells > 1:
            continue
        if column != num_cells:
            return ODD, num, start
        bounds[num, 0], bounds[num, 1] = start, at
        num += 1
    return WHOLE, num, at


@compiled(_nrt=False)
def nulls(d, cells, num, null, is_header, quoted_is_null, quoted_is_text, may_be_escaped, is_certain):
    """Mark cells that are the null text as NONE. In: for each column whether it is a header column; what a null text in
    quotes is; whether a cell with an escape may be one. Out: `is_certain` is False for rows in which that is open."""
    for row in range(num):
        for column in range(cells.shape[1]):
            a, b = cells[row, column, START], cells[row, column, END]
            if may_be_escaped and cells[row, column, FORM] == ESCAPED:
                is_certain[row] = False
            if b - a != len(null) or not _is_at(d, a, b, null):
                continue
            if cells[row, column, FORM] == PLAIN or is_header[column] or quoted_is_null:
                cells[row, column, START] = NONE
            elif not quoted_is_text:
                is_certain[row] = False
