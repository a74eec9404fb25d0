"""Values and images of JSON, as compiled walks read them: each certainly of its column's type, written as VARIANT. The
plain form is fields/fit.py.

The columns of a table are a plan: a row of integers for each column, and the bytes of their names. Numbers are read
without exponent, up to 18 digits; what is not certain is DOUBT.

Reads and writes: as json_text says. A value is written at most once per column and image and takes at most LEN_VALUE
bytes more than its text has letters: `1` takes 2 bytes, `0.1` takes 6. An object is its values and at most LEN_OBJECT
bytes, and LEN_MEMBER for each member. The caller has that room.
"""

import numpy as np

from inlet.fields.compiled.basics import inlined, put, put_decimal, put_integer
from inlet.fields.compiled.json_text import (
    DOUBT,
    hex_digit,
    is_null,
    is_same,
    move,
    next_member,
    put_text,
    read_member,
    read_truth,
    skip_blanks,
)

TEXT, INTEGER, DECIMAL, FLOAT, DATE, TIMESTAMP, TIMESTAMP_NTZ, BOOLEAN, HEX, NEVER = range(10)  # a column's type
PARTED_DATE, PARTED_TIMESTAMP, PARTED_TIMESTAMP_NTZ = range(10, 13)  # as `put_parted_time` reads them
NAME, LEN_NAME, TYPE, FIRST, SECOND, NEED = range(
    6
)  # of a column; FIRST, SECOND: bytes of an integer, digits of a decimal
OPTIONAL, NOT_NULL, KEY = range(3)  # NEED: NOT_NULL is never null in an after-image
MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
NO_DAY = -(1 << 40)  # in place of days since 1970: DOUBT is a day
LEN_OBJECT, LEN_MEMBER = 9, 7  # of an object: header, count and last offset; id and offset of a member


@inlined
def read_number(d, i):
    """Digits, maybe a point and digits: (place behind, number without its point, scale, digits before the point without
    leading zeros, scale without trailing zeros, is there a leading zero). More than 18 digits are in doubt."""
    minus = d[i] == 45
    i += minus
    n, start = 0, i
    while 48 <= d[i] < 58 and (i - start < 18 or i - start == 18 and n < 922337203685477580):
        n = n * 10 + (np.int64(d[i]) - 48)
        i += 1
    num_before, zeros = i - start, 0
    while zeros < num_before and d[start + zeros] == 48:
        zeros += 1
    scale, needed = 0, 0
    if d[i] == 46:
        i += 1
        while 48 <= d[i] < 58 and num_before + scale < 18:
            n = n * 10 + (np.int64(d[i]) - 48)
            scale += 1
            needed = scale if d[i] != 48 else needed
            i += 1
        if scale == 0:
            return DOUBT, 0, 0, 0, 0, False
    if num_before == 0 or scale and num_before + scale > 18 or minus and n == 0:
        return DOUBT, 0, 0, 0, 0, False
    return i, -n if minus else n, scale, num_before - zeros, needed, zeros > 0 and num_before > 1


@inlined
def put_number(d, i, type_, first, second, out, pos):
    """A JSON number or text of one that fits the column."""
    is_text = d[i] == 34
    end, n, scale, num_before, needed, is_padded = read_number(d, i + is_text)
    if (
        end < 0
        or is_text
        and d[end] != 34
        or not is_text
        and (is_padded or d[end] == 46 or d[end] == 101 or d[end] == 69)
    ):
        return DOUBT, 0
    if type_ == INTEGER:
        limit = np.int64(1) << min(8 * first - 1, 62)
        if scale or first < 8 and not -limit <= n < limit:
            return DOUBT, 0
    if type_ == DECIMAL and (num_before > first or needed > second):
        return DOUBT, 0
    if is_text:
        return put_text(d, i + 1, out, pos)
    return end, put_decimal(out, pos, n, scale) if scale else put_integer(out, pos, n)


@inlined
def read_digits(d, i, num):
    n = 0
    for k in range(num):
        if not 48 <= d[i + k] < 58:
            return DOUBT
        n = n * 10 + (np.int64(d[i + k]) - 48)
    return n


@inlined
def read_day(d, i):
    """YYYY-MM-DD as days since 1970, or NO_DAY."""
    year, month, day = read_digits(d, i, 4), read_digits(d, i + 5, 2), read_digits(d, i + 8, 2)
    if year < 1 or d[i + 4] != 45 or d[i + 7] != 45 or not 1 <= month <= 12 or day < 1:
        return NO_DAY
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > MONTH_DAYS[month] + (month == 2 and is_leap):
        return NO_DAY
    y, m = year - (month <= 2), (month + 9) % 12
    era_days = y // 400 * 146097 + y % 400 * 365 + y % 400 // 4 - y % 400 // 100
    return era_days + (153 * m + 2) // 5 + day - 1 - 719468


@inlined
def read_clock(d, i):
    """HH:MM:SS[.f]: (place behind, microseconds, of which none are lost by digits beyond the sixth), or DOUBT."""
    hour, minute, second = read_digits(d, i, 2), read_digits(d, i + 3, 2), read_digits(d, i + 6, 2)
    if d[i + 2] != 58 or d[i + 5] != 58 or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return DOUBT, 0, False
    i, fraction, unit, is_exact = i + 8, 0, 100_000, True
    if d[i] == 46:
        i += 1
        if not 48 <= d[i] < 58:
            return DOUBT, 0, False
        while 48 <= d[i] < 58:
            is_exact &= unit > 0 or d[i] == 48
            fraction += (np.int64(d[i]) - 48) * unit
            unit //= 10
            i += 1
    return i, (hour * 60 + minute) * 60_000_000 + second * 1_000_000 + fraction, is_exact


@inlined
def read_time(d, i):
    """A time without a zone: (place after it, microseconds since 1970, whether that is exact), or DOUBT."""
    day = read_day(d, i)
    if day == NO_DAY or d[i + 10] != 84 and d[i + 10] != 32:
        return DOUBT, 0, False
    i, micros, is_exact = read_clock(d, i + 11)
    return (i, day * 86_400_000_000 + micros, is_exact) if i >= 0 else (DOUBT, 0, False)


@inlined
def put_parted_time(d, i, type_, out, pos):
    """From behind the quote, a day and a time with a blank, T or colon between, as ISO text with a blank; midnight is
    left out of a day. Zones other than Z are in doubt.
    """
    if read_day(d, i) == NO_DAY:
        return DOUBT, 0
    if d[i + 10] == 34 and type_ == PARTED_DATE:
        return put_text(d, i, out, pos)
    if d[i + 10] != 58 and d[i + 10] != 32 and d[i + 10] != 84:
        return DOUBT, 0
    end, micros, is_exact = read_clock(d, i + 11)
    if end < 0:
        return DOUBT, 0
    if type_ == PARTED_DATE:
        if d[end] != 34 or micros or not is_exact:
            return DOUBT, 0
        out[pos] = 10 << 2 | 1
        return end + 1, move(d, i, 10, out, pos + 1)
    end += type_ == PARTED_TIMESTAMP and d[end] == 90
    if d[end] != 34 or not is_exact:
        return DOUBT, 0
    at = pos + 1 if end - i < 64 else pos + 5
    end, pos = put_text(d, i, out, pos)
    out[at + 10] = 32
    return end, pos


@inlined
def put_value(d, i, column, out, pos):
    """A value, certainly of the column's type: (place behind, next place in the output)."""
    type_ = column[TYPE]
    if is_null(d, i):
        out[pos] = 0
        return i + 4, pos + 1
    if INTEGER <= type_ <= FLOAT:
        return put_number(d, i, type_, column[FIRST], column[SECOND], out, pos)
    if type_ == BOOLEAN:
        end, truth = read_truth(d, i)
        out[pos] = (1 if truth else 2) << 2
        return end, pos + 1
    if d[i] != 34 or type_ == NEVER:
        return DOUBT, 0
    if type_ >= PARTED_DATE:
        return put_parted_time(d, i + 1, type_, out, pos)
    if type_ == DATE and (read_day(d, i + 1) == NO_DAY or d[i + 11] != 34):
        return DOUBT, 0
    if type_ == TIMESTAMP or type_ == TIMESTAMP_NTZ:
        end, _, is_exact = read_time(d, i + 1)
        end += end >= 0 and type_ == TIMESTAMP and d[end] == 90
        if end < 0 or not is_exact or d[end] != 34:
            return DOUBT, 0
    if type_ == HEX:
        at = i + 1
        while hex_digit(d[at]) >= 0:
            at += 1
        if d[at] != 34 or (at - i - 1) & 1:
            return DOUBT, 0
    return put_text(d, i + 1, out, pos)


@inlined
def read_image(d, i, plan, names, scratch, starts, ends):
    """An object of columns: values go to the scratch, their places to starts and ends (-1: absent). The place behind
    it.
    """
    num, guess, pos = len(plan), 0, 0
    for k in range(num):
        starts[k] = -1
    if d[i] != 123:
        return DOUBT
    i, more = skip_blanks(d, i + 1), True
    while more:
        a, b, i = read_member(d, i)
        if a < 0:
            return DOUBT
        tried = 0
        while tried < num and not is_same(d, a, b, names, plan[guess, NAME], plan[guess, NAME] + plan[guess, LEN_NAME]):
            guess = guess + 1 if guess + 1 < num else 0
            tried += 1
        if tried == num or starts[guess] >= 0:
            return DOUBT
        starts[guess] = pos
        i, pos = put_value(d, i, plan[guess], scratch, pos)
        if i < 0:
            return DOUBT
        ends[guess] = pos
        guess = guess + 1 if guess + 1 < num else 0
        i, more = next_member(d, i)
        if i < 0:
            return DOUBT
    return i


@inlined
def put_object(scratch, starts, ends, order, num, num_names, first_id, out, pos):
    """Members as a VARIANT object, of those of `num` whose start is not below zero. In: the order of their names, whose
    ids in the dictionary of `num_names` are `first_id` and up.
    """
    count, size = 0, 0
    for k in range(num):
        if starts[k] >= 0:
            count += 1
            size += ends[k] - starts[k]
    len_id = 1 if num_names <= 256 else 2 if num_names <= 65536 else 3
    len_end = 1 if size < 256 else 2 if size < 65536 else 4
    len_count = 4 if count > 255 else 1
    out[pos] = (len_count == 4) << 6 | len_id - 1 << 4 | len_end - 1 << 2 | 2
    ids = put(out, pos + 1, count, len_count)
    offsets = ids + count * len_id
    values = offsets + (count + 1) * len_end
    at = values
    for rank in range(num):
        k = order[rank]
        if starts[k] >= 0:
            ids = put(out, ids, first_id + rank, len_id)
            offsets = put(out, offsets, at - values, len_end)
            at = move(scratch, starts[k], ends[k] - starts[k], out, at)
    put(out, offsets, at - values, len_end)
    return at
