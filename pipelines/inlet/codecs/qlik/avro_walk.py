"""Qlik's Avro, compiled: one walk over the bytes of a datum writes the JSON text of the same members.

Strategy. A program (avro_text) is a schema as rows of integers: what to write before a value, and how to read the
value. The walk accepts only what the exact path surely reads, too; at anything else it returns DOUBT.

Reads. `at` is compared with the end of the message before each byte is read.
Writes. Each row writes its word and LEN_VALUE bytes at most, but for texts and masks, which take GROWTH bytes for each
byte of the message at most: an escape of one byte is six letters long, a byte of a mask two. `room` of a program has
the words, symbols and LEN_VALUE of its rows; `texts` raises IndexError before it walks a message that lacks room.
Steps. A row that reads no byte is the end of a record or of the program, so rows are at most twice as many as bytes.
"""

import numpy as np

from inlet.fields.compiled.basics import put_digits
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.json_text import DOUBT, STOPS, move

WRITE, INTEGER, TRUTH, LETTERS, SYMBOL, DECIMAL, DAY, CLOCK, TIME, FLOAT, MASK, MASKS, NEVER = range(13)  # KIND
WORD, SKIP, KIND, FIRST, SECOND, THIRD, NUM_OF_ROW = range(7)  # of a row; SKIP: rows to the next value after a null
NULL, FALSE, TRUE, CHANGE_MASK, COLUMN_MASK = range(5)  # words that all programs have
WORDS = b"null", b"false", b"true", b',"changeMask":"', b',"columnMask":"'
AUTO, LITTLE, BIG = range(3)
GROWTH, LEN_VALUE = 6, 32  # a timestamp is 28 letters, what is around the digits of both masks 32
MOST_DIGITS, MOST_SCALE = 18, 17  # of a decimal that the walk of JSON reads
POWERS = np.array([10**k for k in range(MOST_DIGITS + 1)], np.int64)
FIRST_DAY, LAST_DAY = -719162, 2932896  # 0001-01-01, 9999-12-31
MICROS = 86_400_000_000  # of a day
HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
COMPILED = {"_nrt": False, "forceinline": True}


@compiled(**COMPILED)
def texts(letters, ends, datums, plans, floats, float_texts, masks, out, out_ends, valid):
    """The texts of messages, one after the other; null in doubt. Out: the number of floats.

    In: bytes, where each message begins and the last ends; its program, -1 for none, and where its datum begins. plans:
    rows, first row of each program, room, words. floats: place and width of each, filled in; float_texts: what to write
    for each."""
    rows, first, room, words = plans
    num = 0
    for i in range(len(ends) - 1):
        program, at, end, pos = datums[i, 0], ends[i] + datums[i, 1], ends[i + 1], out_ends[i]
        out_ends[i + 1], valid[i] = pos, False
        if program < 0:
            continue
        if len(out) - pos < room[program] + GROWTH * (end - at):
            raise IndexError("no room for the text of a message")
        own = rows[first[program] : first[program + 1]]
        pos, num = _put_datum(letters, at, end, own, words, floats, num, float_texts, masks, out, pos)
        if pos >= 0:
            out_ends[i + 1], valid[i] = pos, True
    return num


@compiled(**COMPILED)
def _put_datum(d, at, end, rows, words, floats, num, float_texts, masks, out, pos):
    """A datum, which ends with its message: (next place in the output or DOUBT, number of floats so far)."""
    masks[:, 1] = 0
    k = 0
    while k < len(rows):
        pos = _put_word(words, rows[k, WORD], out, pos)
        if rows[k, SKIP]:
            branch = d[at] if at < end else 1
            at += 1
            if branch == 0:
                pos = pos if rows[k, KIND] == MASK else _put_word(words, NULL, out, pos)
                k += rows[k, SKIP]
                continue
            if branch != 2:
                return DOUBT, num
        if rows[k, KIND] == FLOAT:
            width = rows[k, FIRST]
            if end - at < width:
                return DOUBT, num
            # len(floats) is a fourth of all bytes, and a float has four of its message at least
            floats[num, 0], floats[num, 1] = at, width
            pos = _put_word(float_texts, num, out, pos)
            at, num = at + width, num + 1
        else:
            at, pos = _put_value(d, at, end, rows[k], words, masks, out, pos)
            if at < 0:
                return DOUBT, num
        k += 1
    return (pos if at == end else DOUBT), num


@compiled(**COMPILED)
def _put_value(d, at, end, row, words, masks, out, pos):
    """A value: (place after it, next place in the output), or DOUBT."""
    kind = row[KIND]
    if kind == WRITE:
        return at, pos
    if kind == MASKS:
        pos = _put_masks(d, masks, row[FIRST], row[SECOND], words, out, pos)
        return (at, pos) if pos >= 0 else (DOUBT, 0)
    if kind == TRUTH:
        if at == end or d[at] > 1:
            return DOUBT, 0
        return at + 1, _put_word(words, TRUE if d[at] else FALSE, out, pos)
    if kind == NEVER:
        return DOUBT, 0
    at, n = _read_long(d, at, end)
    if at < 0:
        return DOUBT, 0
    if kind == INTEGER:
        return (at, _put_number(n, 0, out, pos)) if -row[FIRST] <= n <= row[FIRST] else (DOUBT, 0)
    if kind == SYMBOL:
        return (at, _put_word(words, row[FIRST] + n, out, pos)) if 0 <= n < row[SECOND] else (DOUBT, 0)
    if kind == DAY or kind == TIME or kind == CLOCK:
        pos = _put_time(n, kind, row[FIRST], out, pos)
        return (at, pos) if pos >= 0 else (DOUBT, 0)
    if not 0 <= n <= end - at:
        return DOUBT, 0
    if kind == LETTERS:
        return at + n, _put_letters(d, at, n, out, pos)
    if kind == MASK:
        masks[row[FIRST], 0], masks[row[FIRST], 1] = at, n
        return at + n, pos
    n, size = _read_decimal(d, at, n, row[THIRD]), n
    limit = POWERS[row[FIRST]]
    return (at + size, _put_number(n, row[SECOND], out, pos)) if -limit < n < limit else (DOUBT, 0)


@compiled(**COMPILED)
def _put_word(words, k, out, pos):
    return move(words[0], words[1][k], words[1][k + 1] - words[1][k], out, pos)


@compiled(**COMPILED)
def _read_long(d, at, end):
    """A number of 64 bits, zigzag, in as few bytes as it needs: (place after it, number), or DOUBT."""
    n, shift = np.uint64(0), 0
    while at < end:
        byte = np.uint64(d[at])
        at += 1
        if shift == 63 and byte > 1:
            return DOUBT, 0
        n |= (byte & np.uint64(0x7F)) << np.uint64(shift)
        if byte < 0x80:
            number = np.int64(n >> np.uint64(1)) ^ -np.int64(n & np.uint64(1))
            return (at, number) if byte or not shift else (DOUBT, 0)
        shift += 7
    return DOUBT, 0


@compiled(**COMPILED)
def _read_decimal(d, at, size, most):
    """An unscaled number, the most significant byte first; one beyond any limit in doubt."""
    if not 1 <= size <= most:
        return np.int64(POWERS[MOST_DIGITS])
    first = at + max(size - 8, 0)
    minus = d[first] >> 7
    for k in range(at, first):  # bytes that the sign fills
        if d[k] != 255 * minus:
            return np.int64(POWERS[MOST_DIGITS])
    n = -np.int64(minus)
    for k in range(first, at + size):
        n = n << 8 | np.int64(d[k])
    return n


@compiled(**COMPILED)
def _put_number(n, scale, out, pos):
    """In: not the least number of 64 bits; a scale of up to MOST_SCALE."""
    if n < 0:
        out[pos] = 45
        pos, n = pos + 1, -n
    unit = POWERS[scale]
    whole, num = n // unit, 1
    while num < MOST_DIGITS + 1 and whole >= POWERS[num]:
        num += 1
    pos = put_digits(whole, num, out, pos)
    if scale:
        out[pos] = 46
        pos = put_digits(n % unit, scale, out, pos + 1)
    return pos


@compiled(**COMPILED)
def _put_letters(d, at, size, out, pos):
    """A text; what JSON escapes as six letters, which the walk of JSON reads as the character."""
    out[pos] = 34
    pos += 1
    for k in range(np.uint64(at), np.uint64(at + size)):
        byte = d[k]
        if STOPS[byte]:
            out[pos], out[pos + 1], out[pos + 2], out[pos + 3] = 92, 117, 48, 48
            out[pos + 4], out[pos + 5] = HEX[byte >> 4], HEX[byte & 15]
            pos += 6
        else:
            out[pos] = byte
            pos += 1
    out[pos] = 34
    return pos + 1


@compiled(**COMPILED)
def _put_time(n, kind, factor, out, pos):
    """A day, a time of a day or both as ISO text, as Python writes them; DOUBT for one that no calendar has. In: the
    microseconds of a unit."""
    day, rest = n, np.int64(0)
    if kind != DAY:
        day = n // (MICROS // factor)
        rest = (n - day * (MICROS // factor)) * factor
    if not FIRST_DAY <= day <= LAST_DAY or kind == CLOCK and day:
        return DOUBT
    out[pos] = 34
    pos += 1
    if kind != CLOCK:
        pos = _put_day(day, out, pos)
    if kind == TIME:
        out[pos] = 32
        pos += 1
    if kind != DAY:
        seconds, micros = rest // 1_000_000, rest % 1_000_000
        pos = put_digits(seconds // 3600, 2, out, pos)
        out[pos] = 58
        pos = put_digits(seconds // 60 % 60, 2, out, pos + 1)
        out[pos] = 58
        pos = put_digits(seconds % 60, 2, out, pos + 1)
        if micros or kind == CLOCK:
            out[pos] = 46
            is_millis = kind == CLOCK and micros % 1000 == 0
            pos = put_digits(micros // 1000 if is_millis else micros, 3 if is_millis else 6, out, pos + 1)
    out[pos] = 34
    return pos + 1


@compiled(**COMPILED)
def _put_day(day, out, pos):
    """YYYY-MM-DD. In: days since 1970, of the years 1 to 9999."""
    day += 719468  # since March of the year 0, of which February is the end
    era, day = day // 146097, day % 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    pos = put_digits(era * 400 + year + (month > 9), 4, out, pos)
    out[pos] = 45
    pos = put_digits(month + 3 if month < 10 else month - 9, 2, out, pos + 1)
    out[pos] = 45
    return put_digits(day - (153 * month + 2) // 5 + 1, 2, out, pos + 1)


@compiled(**COMPILED)
def _put_masks(d, masks, num_columns, order, words, out, pos):
    """The hex text of masks whose byte order is in no doubt; else DOUBT. In: start and size of each, 0 for none."""
    fits_little = order != BIG and _fits(d, masks, num_columns, True)
    fits_big = order != LITTLE and _fits(d, masks, num_columns, False)
    is_doubt = not fits_little and not fits_big
    for which in range(2):
        start, size = masks[which, 0], masks[which, 1]
        if size:
            pos = _put_word(words, CHANGE_MASK + which, out, pos)
            for k in range(size):
                byte, other = d[start + k], d[start + size - 1 - k]
                is_doubt |= fits_little and fits_big and byte != other
                byte = byte if fits_big else other
                out[pos], out[pos + 1] = HEX[byte >> 4], HEX[byte & 15]
                pos += 2
            out[pos] = 34
            pos += 1
    return DOUBT if is_doubt else pos


@compiled(**COMPILED)
def _fits(d, masks, num_columns, is_little):
    """Is no bit beyond the last column set, if masks are read in an order?"""
    for which in range(2):
        start, size = masks[which, 0], masks[which, 1]
        for k in range(num_columns >> 3, size):
            byte = d[start + k] if is_little else d[start + size - 1 - k]
            if byte >> (num_columns & 7 if k == num_columns >> 3 else 0):
                return False
    return True
