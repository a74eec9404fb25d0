"""Rows of change tables and loads, compiled: header columns are read, and images written as VARIANT. row.py and
images.py are the plain form.

Strategy. In: the cells of rows as places in one buffer (of text by scan.py, of Parquet by parquet_cells.py). `heads`
reads the header columns of each row. `images` writes the images of those that are certain: it gives each cell the form
of a JSON text, and so reads it as any JSON value (fields/compiled/json_values), certainly of its column's type; a plain
text is copied. What is not certain is DOUBT, and the row is left to the plain path; there are no errors here.

Reads and writes: cells lie within the buffer. `token_of` and `texts_of` make room by these figures; `images` raises
IndexError before it writes a row for which there is no room. A cell takes at most LEN_ESCAPE bytes a byte as a JSON
text, and two quotes; json_values says what its value takes, and an object. tests/fuzz holds all this with bounds
checking on.
"""

import numpy as np

from inlet.codecs.qlik.change_table.scan import END, ESCAPED, FORM, NONE, START
from inlet.fields.compiled.basics import inlined, put_decimal, put_integer
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.json_text import DOUBT, LEN_GAP, LEN_VALUE, hex_digit, is_same, move, put_letters
from inlet.fields.compiled.json_values import (
    BOOLEAN,
    KEY,
    LEN_MEMBER,
    LEN_OBJECT,
    NEED,
    NOT_NULL,
    TEXT,
    TYPE,
    put_object,
    put_value,
    read_time,
)

REFRESH, INSERT, UPDATE, DELETE, BEFOREIMAGE = range(5)
SEQ, LETTER, MASK, WORD, TIME, POSITION, TRANSACTION, NUM_HEADS = range(8)  # header columns that are read
HEX, LITTLE, BIG = range(3)  # how a mask is written
# What a column's cells are, from 0 on: integers of eight bytes, of which so many digits are after the point
AS_TEXT, AS_NUMBER, AS_IS = -3, -2, -1  # JSON's texts, its numbers, texts that are certain to be of the column's type
TEXTS = T_BEFORE, T_AFTER, T_HEADER, T_CHANGE_MASK, T_COLUMN_MASK = range(5)
LEN_SEQ, LEN_TIME, LEN_ESCAPE = 35, 40, 6
WORDS = [b"INSERT", b"UPDATE", b"DELETE", b"BEFOREIMAGE"]  # from INSERT on
LETTERS = np.frombuffer(b"".join(WORDS), np.uint8)
ENDS = np.cumsum([0] + [len(word) for word in WORDS])
FIRSTS = np.frombuffer(b"IUDB", np.uint8)
HEX_OF = np.frombuffer(b"0123456789abcdef", np.uint8)
CLOSED = b" UTC"
UTC = np.frombuffer(CLOSED, np.uint8)


def token_of(longest: int) -> np.ndarray:
    """Working space: a cell as a JSON text."""
    return np.zeros(LEN_ESCAPE * longest + 2 + LEN_GAP + LEN_TIME, np.uint8)


def len_image(num_bytes: int, num_rows: int, num_columns: int) -> int:
    """Bytes that an image of each of these rows takes at most."""
    return num_bytes + num_rows * (LEN_OBJECT + (LEN_MEMBER + LEN_VALUE) * num_columns)


def len_mask(num_columns: int) -> int:
    return (num_columns + 7) // 8


@inlined
def _is_digits(d, a, b):
    for k in range(a, b):
        if not 48 <= d[k] < 58:
            return False
    return True


@inlined
def _operation(d, a, b, i, j):
    """The operation that letter and word say; DOUBT. In: where they begin and end, NONE where they are not there."""
    by_letter, by_word = DOUBT, DOUBT
    has_letter = a != NONE and b > a
    if has_letter and b - a == 1:
        for k in range(len(FIRSTS)):
            if d[a] == FIRSTS[k]:
                by_letter = INSERT + k
    has_word = i != NONE and j > i
    if has_word:
        for k in range(len(FIRSTS)):
            if is_same(d, i, j, LETTERS, ENDS[k], ENDS[k + 1]):
                by_word = INSERT + k
    if has_letter and by_letter < 0 or has_word and by_word < 0 or not has_letter and not has_word:
        return DOUBT
    if has_letter and has_word and by_letter != by_word:
        return DOUBT
    return by_letter if has_letter else by_word


@inlined
def _time(d, cell, token):
    """A time in UTC: (certain, microseconds since 1970)."""
    a, b = cell[START], cell[END]
    if b - a > LEN_TIME:
        return False, 0
    end = move(d, a, b - a, token, 0)
    for k in range(end, end + LEN_GAP):
        token[k] = 0
    at, micros, _ = read_time(token, 0)
    if at < 0:
        return False, 0
    is_utc = at == end - 1 and token[at] == 90 or is_same(token, at, end, UTC, 0, len(UTC))
    return at == end or is_utc, micros


@inlined
def _bit(d, cell, form, n):
    """Byte n of a mask, the lowest first; DOUBT where there is none."""
    a, b = cell[START], cell[END]
    if form == LITTLE:
        return np.int64(d[a + n])
    if form == BIG:
        return np.int64(d[b - 1 - n])
    high, low = hex_digit(d[b - 2 - 2 * n]), hex_digit(d[b - 1 - 2 * n])
    return DOUBT if high < 0 or low < 0 else high << 4 | low


@inlined
def _mask(d, cell, form, allowed, out):
    """A mask's bits by the places of columns. In: the bits that may be set. Out: is it certain."""
    size = cell[END] - cell[START]
    if form == HEX and size > 2 and d[cell[START]] == 48 and d[cell[START] + 1] | 32 == 120:  # 0x
        size -= 2  # bits are read from the end
    if form == HEX and size & 1:
        return False
    for n in range(size // 2 if form == HEX else size):
        byte = _bit(d, cell, form, n)
        if byte < 0 or byte and (n >= len(allowed) or byte & ~np.int64(allowed[n])):
            return False
        if byte:
            out[n] = byte
    return True


@compiled(_nrt=False)
def heads(d, cells, num, places, form, allowed, token, operations, times, has_time, bits, has_mask, is_certain):
    """Read the header columns of rows. In: the place of each, NONE where it is not there; how masks are written, NONE
    where that is open; which bits of them may be set. Out: `is_certain` is False for rows that are left to the plain
    path."""
    for row in range(num):
        seq = cells[row, places[SEQ]]
        is_seq = seq[START] != NONE and seq[END] - seq[START] == LEN_SEQ and _is_digits(d, seq[START], seq[END])
        a, b, i, j = NONE, NONE, NONE, NONE
        if places[LETTER] != NONE:
            a, b = cells[row, places[LETTER], START], cells[row, places[LETTER], END]
        if places[WORD] != NONE:
            i, j = cells[row, places[WORD], START], cells[row, places[WORD], END]
        operations[row] = _operation(d, a, b, i, j)
        is_sure = is_seq and operations[row] >= 0
        for k in range(NUM_HEADS):
            is_sure &= places[k] == NONE or cells[row, places[k], FORM] != ESCAPED
        if is_sure and places[TIME] != NONE:
            cell = cells[row, places[TIME]]
            if cell[START] != NONE and cell[END] > cell[START]:
                is_sure, times[row] = _time(d, cell, token)
                has_time[row] = True
        if is_sure and places[MASK] != NONE:
            cell = cells[row, places[MASK]]
            if cell[START] != NONE and cell[END] > cell[START]:
                is_sure = form != NONE and _mask(d, cell, form, allowed, bits[row])
                has_mask[row] = True
        is_certain[row] &= is_sure


@inlined
def _put_token(d, cell, escape, is_number, token):
    """A cell as JSON: its length."""
    a, b, pos = cell[START], cell[END], 0
    if is_number:
        pos = move(d, a, b - a, token, 0)
    else:
        token[0] = 34
        pos = 1
        while a < b:
            byte = d[a]
            if cell[FORM] == ESCAPED and byte == escape and a + 1 < b:
                a += 1
                byte = d[a]
            if byte == 34 or byte == 92:
                token[pos] = 92
                pos += 1
            elif byte < 32:
                token[pos], token[pos + 1], token[pos + 2], token[pos + 3] = 92, 117, 48, 48
                token[pos + 4] = 48 + (byte >> 4)
                byte = HEX_OF[byte & 15]
                pos += 5
            token[pos] = byte
            pos += 1
            a += 1
        token[pos] = 34
        pos += 1
    for k in range(pos, pos + LEN_GAP):
        token[k] = 0
    return pos


@inlined
def _put_integer(d, a, scale, out, pos):
    """A number of eight bytes, of which so many digits are after the point: the place after it."""
    n = np.int64(0)
    for k in range(8):
        n |= np.int64(d[a + k]) << 8 * k
    return put_decimal(out, pos, n, scale) if scale else put_integer(out, pos, n)


@inlined
def _put_truth(token, end, out, pos):
    """A boolean in text, as row.py has it: the place after it, or DOUBT."""
    size = end - 2
    is_true = size == 1 and token[1] == 49 or size == 4 and token[1] == 116 and token[2] == 114 and token[3] == 117
    is_false = size == 1 and token[1] == 48 or size == 5 and token[1] == 102 and token[2] == 97 and token[3] == 108
    is_true = is_true and (size == 1 or token[4] == 101)
    is_false = is_false and (size == 1 or token[4] == 115 and token[5] == 101)
    if token[0] != 34 or not is_true and not is_false:
        return DOUBT
    out[pos] = (1 if is_true else 2) << 2
    return pos + 1


@inlined
def _read(d, row, cells, place_of, plan, escape, forms, token, work, starts, ends):
    """The values of a row by column of the contract: whether all are certain."""
    pos = 0
    for k in range(len(plan)):
        starts[k] = NONE
        if place_of[k] == NONE:
            continue
        cell = cells[row, place_of[k]]
        starts[k] = pos
        if cell[START] == NONE:
            work[pos] = 0
            pos += 1
        elif forms[k] >= 0:
            pos = _put_integer(d, cell[START], forms[k], work, pos)
        elif forms[k] == AS_IS or forms[k] == AS_TEXT and plan[k, TYPE] == TEXT and cell[FORM] != ESCAPED:
            pos = put_letters(d, cell[START], cell[END] - cell[START], work, pos)
        else:
            end = _put_token(d, cell, escape, forms[k] == AS_NUMBER, token)
            if plan[k, TYPE] == BOOLEAN:
                stop, pos = end, _put_truth(token, end, work, pos)
            else:
                stop, pos = put_value(token, 0, plan[k], work, pos)
            if stop != end or pos < 0:
                return False
        ends[k] = pos
    return True


@compiled(_nrt=False)
def copy(d, starts, stops, out):
    """Cells, one after the other. In: where each begins, and where each begins and the last ends in `out`, which is as
    long: a cell that is null has no bytes."""
    for n in range(len(starts)):
        move(d, starts[n], stops[n + 1] - stops[n], out, stops[n])


@inlined
def _is_set(bits, place):
    return bits[place >> 3] >> (place & 7) & 1 == 1


@inlined
def _supply(operation, bits, has_mask, is_full, place_of, plan, is_large, work, starts):
    """Leave out what a row does not supply (images.supplied); False where a column lacks a value that it needs."""
    for k in range(len(plan)):
        if starts[k] != NONE and work[starts[k]] == 0:
            if operation == REFRESH:
                is_null = True
            elif operation == DELETE:
                is_null = False
            elif has_mask:
                is_null = _is_set(bits, place_of[k])
            else:
                is_null = operation == INSERT or is_full == 1 and not is_large[k]
            if not is_null:
                starts[k] = NONE
        is_value = starts[k] != NONE and work[starts[k]] != 0
        if plan[k, NEED] == KEY and not is_value:
            return False
        is_after = operation != DELETE and operation != BEFOREIMAGE
        if plan[k, NEED] == NOT_NULL and is_after and starts[k] != NONE and not is_value:
            return False
    return True


@inlined
def _is_as_masked(bits, place_of, is_large, work, starts, ends, num):
    """Do both images of an update differ in the columns that its mask names, and in no other?"""
    for k in range(num):
        if starts[0, k] == NONE or starts[1, k] == NONE or is_large[k]:
            continue
        a, b = starts[0, k], starts[1, k]
        is_same_value = is_same(work[0], a, ends[0, k], work[1], b, ends[1, k])
        if is_same_value == _is_set(bits, place_of[k]):
            return False
    return True


@inlined
def _put_bits(which, num, out, pos):
    """A mask of columns, without bytes of zeros at its end: the place after it. In: for each whether it is in it."""
    stop = pos
    for k in range(num):
        if k & 7 == 0:
            out[pos + (k >> 3)] = 0
        if which[k]:
            out[pos + (k >> 3)] |= 1 << (k & 7)
            stop = pos + (k >> 3) + 1
    return stop


@inlined
def _check_room(size, of_row, num_columns, num_others, texts, out_ends, n, token, work):
    """Raise IndexError unless there is room for the texts of the n-th row, by the figures above."""
    image = of_row + LEN_OBJECT + (LEN_MEMBER + LEN_VALUE) * (num_columns + num_others)
    for text in range(len(texts)):
        most = (num_columns + 7) // 8 if text == T_CHANGE_MASK or text == T_COLUMN_MASK else image
        if len(texts[text]) - out_ends[text, n] < most:
            raise IndexError("no room for the texts of a row")
    if len(token) < LEN_ESCAPE * size + 2 + LEN_GAP or work.shape[1] < of_row + LEN_VALUE * (num_columns + num_others):
        raise IndexError("no room to read a row")


@inlined
def _sizes(row, cells):
    """Bytes of the longest cell of a row, and of all."""
    longest, size = 0, 0
    for column in range(cells.shape[1]):
        if cells[row, column, START] != NONE:
            length = cells[row, column, END] - cells[row, column, START]
            longest, size = max(longest, length), size + length
    return longest, size


@compiled(_nrt=False)
def images(
    d,
    cells,
    rows,
    befores,
    operations,
    bits,
    has_mask,
    is_full,
    place_of,
    plan,
    order,
    is_large,
    forms,
    others,
    plan_of_others,
    order_of_others,
    escape,
    token,
    work,
    starts,
    ends,
    which,
    texts,
    out_ends,
    valid,
    is_certain,
):
    """Write the images of rows. In: which ones, and for each the row of its before-image or NONE; whether updates
    without a mask have all values, NONE where that is open; the place of each column of the contract; places of header
    columns that go to `header`. Out: `texts` and `out_ends` by TEXTS, `valid`
    where there is one; `is_certain` is False for rows that are left to the plain path."""
    num, num_others = len(plan), len(others)
    for n in range(len(rows)):
        row, before, operation = rows[n], befores[n], operations[rows[n]]
        for text in range(len(texts)):
            out_ends[text, n + 1] = out_ends[text, n]
        if not is_certain[row]:
            continue
        longest, size = _sizes(row, cells)
        if before != NONE:
            longest, size = max(longest, _sizes(before, cells)[0]), max(size, _sizes(before, cells)[1])
        _check_room(longest, size, num, num_others, texts, out_ends, n, token, work)
        is_masked, is_sure = has_mask[row], True
        if operation == UPDATE and not is_masked and is_full == NONE:
            is_sure = False
        if operation == UPDATE and before == NONE and is_masked:
            for k in range(num):
                is_sure &= plan[k, NEED] != KEY or place_of[k] == NONE or not _is_set(bits[row], place_of[k])
        for image in range(1 + (before != NONE)):
            at = before if image else row
            as_ = BEFOREIMAGE if image else operation
            is_sure = is_sure and _read(
                d, at, cells, place_of, plan, escape, forms, token, work[image], starts[image], ends[image]
            )
            is_sure = is_sure and _supply(
                as_, bits[row], is_masked, is_full, place_of, plan, is_large, work[image], starts[image]
            )
        if is_sure and before != NONE and is_masked:
            is_sure = _is_as_masked(bits[row], place_of, is_large, work, starts, ends, num)
        if not is_sure:
            is_certain[row] = False
            continue
        is_all = True
        for k in range(num):
            is_all &= starts[0, k] != NONE
            which[k] = starts[0, k] != NONE
        if not is_all:
            out_ends[T_COLUMN_MASK, n + 1] = _put_bits(which, num, texts[T_COLUMN_MASK], out_ends[T_COLUMN_MASK, n])
            valid[T_COLUMN_MASK, n] = True
        if is_masked:
            for k in range(num):
                which[k] = place_of[k] != NONE and _is_set(bits[row], place_of[k])
            out_ends[T_CHANGE_MASK, n + 1] = _put_bits(which, num, texts[T_CHANGE_MASK], out_ends[T_CHANGE_MASK, n])
            valid[T_CHANGE_MASK, n] = True
        for image in range(1 + (before != NONE)):
            text = T_BEFORE if image or operation == DELETE else T_AFTER
            out_ends[text, n + 1] = put_object(
                work[image], starts[image], ends[image], order, num, num, 0, texts[text], out_ends[text, n]
            )
            valid[text, n] = True
        if num_others:
            is_sure = _read(
                d, row, cells, others, plan_of_others, escape, forms[num:], token, work[0], starts[0], ends[0]
            )
            count = 0
            for k in range(num_others if is_sure else 0):
                if starts[0, k] != NONE and ends[0, k] - starts[0, k] == 1:
                    starts[0, k] = NONE  # null, or a text of no bytes
                count += starts[0, k] != NONE
            if count:
                out_ends[T_HEADER, n + 1] = put_object(
                    work[0],
                    starts[0],
                    ends[0],
                    order_of_others,
                    num_others,
                    num_others,
                    0,
                    texts[T_HEADER],
                    out_ends[T_HEADER, n],
                )
                valid[T_HEADER, n] = True
            is_certain[row] = is_sure
