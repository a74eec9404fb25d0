"""What stands behind the null indicator of a column -> a VARIANT value, by the plan of the column (plan.py).

Bounds: a value is read within [at, end), which `columns` has held against its item or its place. One of n bytes becomes
at most 4 n bytes (a character set makes 4 bytes of one at most) and its head at most 5; a number takes LEN_NUMBER bytes
at most (39 digits, sign, point, head). `scratch` has a row of MAX_DIGITS + 2 at least for the digits of a number.
Facts     [dump seen] texts with an inner length, big-endian integers in trails of either order, dates without a length
          [impl] fixed texts, scales
"""

import numpy as np

from inlet.codecs.goldengate.trail.plan import (
    BAD_DATE,
    BAD_TEXT,
    BAD_VALUE_LENGTH,
    DATETIME,
    DIGITS,
    ENCODING,
    MAX_DIGITS,
    MAX_SCALE,
    NUMBER,
    OK,
    RAW,
    SCALE,
    SIGNED,
    SOURCE_SCALE,
    TARGET,
    TO_BINARY,
    TO_DATE,
    TO_DECIMAL,
    TO_INTEGER,
    TO_TEXT,
    TO_TIMESTAMP,
    UNSIGNED,
    VALUE_DOES_NOT_FIT,
    VARTEXT,
)
from inlet.fields.compiled import interpreter
from inlet.fields.compiled.basics import inlined, put, put_decimal, put_integer, put_limbs, uint
from inlet.fields.compiled.interpreter import WIDTH

LEN_NUMBER = 42


@inlined
def _put_digits(out, pos, n, scale, is_unsigned):
    """A number of at most 20 digits as text, with its head."""
    minus = n < 0 and not is_unsigned
    rest = np.uint64(-(n + 1)) + np.uint64(1) if minus else np.uint64(n)
    start, size, count = pos + 1, 0, 0
    while rest != 0 or count <= scale:  # the digits from the last one on, written backwards and turned round
        if count == scale and scale > 0:
            out[start + size] = 46
            size += 1
        tens = rest // np.uint64(10)
        out[start + size] = np.uint8(48) + np.uint8(rest - np.uint64(10) * tens)
        rest, size, count = tens, size + 1, count + 1
    if minus:
        out[start + size] = 45
        size += 1
    for k in range(size // 2):
        out[start + k], out[start + size - 1 - k] = out[start + size - 1 - k], out[start + k]
    out[pos] = size << 2 | 1
    return start + size


@inlined
def _put_wide(out, pos, n, scale, is_unsigned):
    """A number of 19 or 20 digits as a decimal of 16 bytes."""
    out[pos] = 10 << 2
    out[pos + 1] = scale
    put(out, pos + 2, n, 8)
    return put(out, pos + 10, 0 if is_unsigned or n >= 0 else -1, 8)


@inlined
def _integer(data, at, end, plans, r, out, pos):
    """An integer, big-endian whatever the order of the trail. Out: fault, place, next place in the output."""
    width, scale = plans[r, WIDTH], plans[r, SOURCE_SCALE]
    if end - at != width:
        return BAD_VALUE_LENGTH, at, pos
    n = uint(data, at, width, False)
    is_unsigned = plans[r, ENCODING] == UNSIGNED
    if not is_unsigned and width < 8 and n >> 8 * width - 1:
        n -= 1 << 8 * width
    is_large = is_unsigned and n < 0  # of 2^63 and more
    if plans[r, TARGET] == TO_TEXT:
        return OK, at, _put_digits(out, pos, n, scale, is_unsigned)
    if is_large or n >= 1_000_000_000_000_000_000 or n <= -1_000_000_000_000_000_000:
        if is_large or scale or plans[r, TARGET] != TO_INTEGER:
            return OK, at, _put_wide(out, pos, n, scale, is_unsigned)
    if scale:
        return OK, at, put_decimal(out, pos, n, scale)
    return OK, at, put_integer(out, pos, n)


@inlined
def _number(data, at, end, plans, r, scratch, out, pos):
    """A decimal number as text, held against the contract's type. Out: as `_integer`."""
    p, minus = at, False
    if p < end and data[p] == 45:
        minus = True
        p += 1
    num, scale, point, last = 0, 0, -1, 0  # significant digits; behind the point; where it is; the last that is not 0
    start = p
    while p < end:
        byte = np.int64(data[p])
        if byte == 46 and point < 0:
            point = p
        elif 48 <= byte <= 57:
            if num or byte != 48:
                if num < MAX_DIGITS:
                    scratch[3, num] = byte - 48
                elif byte != 48 or point < 0:
                    return VALUE_DOES_NOT_FIT, p, pos
                num += 1
            if point >= 0:
                scale += 1
                if byte != 48:
                    last = scale
        else:
            return VALUE_DOES_NOT_FIT, p, pos
        p += 1
    if p == start or point == p - 1 or point == start and p == start + 1:
        return VALUE_DOES_NOT_FIT, at, pos
    whole = max(num - scale, 0)
    target = plans[r, TARGET]
    if target == TO_DECIMAL and (whole > plans[r, DIGITS] - plans[r, SCALE] or last > plans[r, SCALE]):
        return VALUE_DOES_NOT_FIT, at, pos
    if num > MAX_DIGITS or scale > MAX_SCALE:
        num, scale = num - (scale - last), last
        if num > MAX_DIGITS or scale > MAX_SCALE:
            return VALUE_DOES_NOT_FIT, at, pos
    if num == 19 and target == TO_INTEGER and plans[r, DIGITS] == 8 and point < 0:
        m = np.uint64(0)
        for k in range(num):
            m = m * np.uint64(10) + np.uint64(scratch[3, k])
        if m <= np.uint64(9_223_372_036_854_775_807) + np.uint64(minus):
            return OK, at, put_integer(out, pos, -np.int64(m - np.uint64(1)) - 1 if minus else np.int64(m))
    if num > 18:
        return (
            (VALUE_DOES_NOT_FIT, at, pos)
            if target == TO_INTEGER
            else (OK, at, _put_long(scratch, num, scale, minus, out, pos))
        )
    n = np.int64(0)
    for k in range(num):
        n = n * 10 + scratch[3, k]
    n = -n if minus else n
    if target == TO_INTEGER:
        bits = 8 * plans[r, DIGITS] - 1
        if point >= 0 or bits < 63 and not -(1 << bits) <= n < 1 << bits:
            return VALUE_DOES_NOT_FIT, at, pos
    if scale == 0:
        return OK, at, put_integer(out, pos, n)
    return OK, at, put_decimal(out, pos, n, scale)


@inlined
def _put_long(scratch, num, scale, minus, out, pos):
    """A decimal of 19 to 38 digits: four limbs of 32 bits."""
    a, b, c, d = 0, 0, 0, 0
    for k in range(num):
        a = a * 10 + scratch[3, k]
        b = b * 10 + (a >> 32)
        c = c * 10 + (b >> 32)
        d = d * 10 + (c >> 32)
        a, b, c, d = a & 0xFFFFFFFF, b & 0xFFFFFFFF, c & 0xFFFFFFFF, d & 0xFFFFFFFF
    return put_limbs(out, pos, a, b, c, d, scale, minus)


@inlined
def _two(data, at):
    """A number of two digits, -1 for none."""
    high, low = np.int64(data[at]) - 48, np.int64(data[at + 1]) - 48
    return 10 * high + low if 0 <= high <= 9 and 0 <= low <= 9 else -1


@inlined
def _is_day(data, at):
    """Do ten bytes spell a day of the calendar?"""
    century, years, month, day = _two(data, at), _two(data, at + 2), _two(data, at + 5), _two(data, at + 8)
    if century < 0 or years < 0 or data[at + 4] != 45 or data[at + 7] != 45 or not 1 <= month <= 12 or day < 1:
        return False
    year = 100 * century + years
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        last = 29 if is_leap else 28
    return year >= 1 and day <= last


@inlined
def _is_time(data, at, end):
    """Do the bytes behind a day spell a time, to the microsecond?"""
    if end - at < 9 or data[at] != 58 and data[at] != 32 and data[at] != 84:
        return False
    if data[at + 3] != 58 or data[at + 6] != 58:
        return False
    if not (0 <= _two(data, at + 1) < 24 and 0 <= _two(data, at + 4) < 60 and 0 <= _two(data, at + 7) < 60):
        return False
    if end - at == 9:
        return True
    if data[at + 9] != 46 or end - at == 10:
        return False
    for k in range(at + 10, end):
        if not 48 <= data[k] <= 57 or k >= at + 16 and data[k] != 48:
            return False
    return True


@inlined
def _is_midnight(data, at, end):
    """Is a time, one that `_is_time` takes, 00:00:00?"""
    for k in range(at, end):
        if 49 <= data[k] <= 57:
            return False
    return True


@inlined
def _datetime(data, at, end, plans, r, out, pos):
    """A date and time as text, `YYYY-MM-DD HH:MM:SS.f`, whatever stands between them; midnight is left out of what the
    contract calls a date. Out: as `_integer`, of BAD_DATE the value's end.
    """
    target, size = plans[r, TARGET], end - at
    if target == TO_DATE or target == TO_TIMESTAMP:
        has_time = size >= 19 and _is_time(data, at + 10, end)
        if size < 10 or not _is_day(data, at) or not has_time and (target == TO_TIMESTAMP or size > 10):
            return BAD_DATE, at, end
        if target == TO_DATE and has_time:
            if not _is_midnight(data, at + 10, end):
                return BAD_DATE, at, end
            size = 10
    start = pos + 5 if size > 63 else pos + 1
    for k in range(size):
        byte = data[at + k]
        if byte < 32 or byte > 126:
            return BAD_TEXT, at + k, end
        out[start + k] = 32 if k == 10 and (byte == 58 or byte == 84) else byte
    if size > 63:
        out[pos] = 16 << 2
        put(out, pos + 1, size, 4)
    else:
        out[pos] = size << 2 | 1
    return OK, at, start + size


@inlined
def _binary(data, at, end, out, pos):
    out[pos] = 15 << 2
    pos = put(out, pos + 1, end - at, 4)
    for k in range(end - at):
        out[pos + k] = data[at + k]
    return OK, at, pos + end - at


@inlined
def put_value(data, at, end, little, plans, r, singles, doubles, scratch, out, pos):
    """What stands behind a null indicator. Out: as `_integer`."""
    encoding = plans[r, ENCODING]
    if encoding == SIGNED or encoding == UNSIGNED:
        return _integer(data, at, end, plans, r, out, pos)
    if encoding == DATETIME:
        return _datetime(data, at, end, plans, r, out, pos)
    if encoding == VARTEXT or encoding == NUMBER:
        if end - at < 2 or uint(data, at, 2, little) != end - at - 2:
            return BAD_VALUE_LENGTH, at, pos
        at += 2
    if encoding == NUMBER and plans[r, TARGET] != TO_TEXT:
        return _number(data, at, end, plans, r, scratch, out, pos)
    if encoding == RAW or plans[r, TARGET] == TO_BINARY:
        return _binary(data, at, end, out, pos)
    bad, after, fault = interpreter._text(data, at, end, plans, r, singles, doubles, out, pos)
    return (BAD_TEXT if fault else OK), bad, after
