"""The interpreter: walks the items of each record by an integer plan and writes its image as one VARIANT object.

Strategy. A layout is rows of a plan, one per column (the constants below name its fields), a reading is four flags.
`images` is the only entry: bytes, the items' byte ranges and plans in; VARIANT bytes and one fault per record out. No
read leaves its record: every item is measured against the record's end before it is read. No write leaves `out`, if it
has `bound` bytes. There is one small function per encoding; each takes the place in the record and the place in the
output and returns (next place in the record, next place in the output, fault code). On a fault the first of them is the
faulty byte.

Every function here is the compiled twin of a plain one in number.py, date.py, charset.py and variant.py, which are
the spec; tests/test_fields.py holds them equal.
"""

import numpy as np

from inlet.fields.charset import CESU8, DOUBLE, EUC, LEAD, SHIFT, SHIFT_OPEN, SINGLE, UTF8
from inlet.fields.compiled.basics import inlined, put, put_decimal, put_integer, put_limbs, uint, utf8_size
from inlet.fields.compiled.cache import compiled

# a plan's row
ENCODING, WIDTH, DIGITS, SCALE, MODE, SET, UNIT, STRIP, SLOT, NEED = range(10)
NUM_PLAN = 10
OPTIONAL, NOT_NULL, KEY = range(3)  # NEED: NOT_NULL is never null in an after-image, KEY in none
# ENCODING. WIDTH is the item's bytes; for VARTEXT, BLOB and LONGTEXT the data area's, length area not counted
INTEGER, PACKED, ZONED, TEXT, VARTEXT, DATE, TIME, TIMESTAMP, IEEE, HEX_FLOAT, BLOB, LONGTEXT, BYTES = range(13)
# the reading
LITTLE, NULL_AREAS, ACTUAL_LENGTH, NULL_BODY, IS_AFTER = range(5)
BODY_FULL, BODY_LENGTH_ZERO, BODY_ABSENT = range(3)  # what stands in place of a null variable item's data

FAULTS = (
    "",
    "truncated",
    "bad_null_indicator",
    "bad_digit",
    "bad_sign",
    "bad_text",
    "bad_date",
    "bad_value_length",
    "trailing_bytes",
    "value_does_not_fit",
    "missing_key",
    "null_not_allowed",
)
(
    OK,
    TRUNCATED,
    BAD_NULL_INDICATOR,
    BAD_DIGIT,
    BAD_SIGN,
    BAD_TEXT,
    BAD_DATE,
    BAD_VALUE_LENGTH,
    TRAILING_BYTES,
    VALUE_DOES_NOT_FIT,
    MISSING_KEY,
    NULL_NOT_ALLOWED,
) = range(12)


# bytes of UTF-8 that one byte of an item becomes at most. SINGLE, LEAD, SHIFT, EUC: 4, where a site has put a character
# on a single byte; DOUBLE, UTF16: 2, 4 of a pair; UTF8: 1; CESU8: 1, at most 4 of 6
LEN_CHAR = 4
LEN_ITEM = 12  # bytes that an item adds to them: 5 of a long text's header, 3 of its id, 4 of its offset
LEN_IMAGE = 9  # and its image: header, count, last offset
MASK32 = 0xFFFFFFFF
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


def bound(starts: np.ndarray, ends: np.ndarray, num_columns: np.ndarray) -> int:
    """Bytes that the images of these records take at most. `images` writes nothing beyond, a record that is at fault
    included: its image begins where that of the next one does."""
    return int((LEN_CHAR * (ends - starts) + LEN_ITEM * num_columns + LEN_IMAGE).sum())


def scratch_of(plans: np.ndarray) -> tuple:
    """Working space of `images`: a double, its bits, the offsets of one image."""
    double = np.zeros(1, np.float64)
    return double, double.view(np.int64), np.zeros(len(plans) + 1, np.int64)


@inlined
def _put_utf8(out, pos, code):
    at = np.uint64(pos)  # no look at its sign: twice as fast, as is `_cell`
    if code < 0x80:
        out[at] = code
        return pos + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + ONE] = 0x80 | code & 63
        return pos + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + ONE] = 0x80 | code >> 6 & 63
        out[at + TWO] = 0x80 | code & 63
        return pos + 3
    out[at] = 0xF0 | code >> 18
    out[at + ONE] = 0x80 | code >> 12 & 63
    out[at + TWO] = 0x80 | code >> 6 & 63
    out[at + THREE] = 0x80 | code & 63
    return pos + 4


@inlined
def _cell(data, at):
    """Where the character of two bytes stands in a table of pairs: 0 to 65535."""
    place = np.uint64(at)
    return np.uint64(data[place]) << np.uint64(8) | np.uint64(data[place + ONE])


@inlined
def _move(out, start, stop, target):
    if target < start:
        for k in range(stop - start):
            out[target + k] = out[start + k]
    else:
        for k in range(stop - start - 1, -1, -1):
            out[target + k] = out[start + k]


@inlined
def _put_wide_decimal(data, at, num_digits, is_packed, scale, minus, out, pos):
    """19 to 38 digits, read again into four limbs of 32 bits. `at` is the first digit's byte, of zoned digits or of
    nibbles.
    """
    a, b, c, d = 0, 0, 0, 0
    for k in range(num_digits):
        byte = np.int64(data[at + (k // 2 if is_packed else k)])
        digit = byte >> 4 if is_packed and not k & 1 else byte & 15
        a = a * 10 + digit
        b = b * 10 + (a >> 32)
        c = c * 10 + (b >> 32)
        d = d * 10 + (c >> 32)
        a, b, c, d = a & MASK32, b & MASK32, c & MASK32, d & MASK32
    return put_limbs(out, pos, a, b, c, d, scale, minus)


@inlined
def _integer(data, at, width, little, out, pos):
    n = uint(data, at, width, little)
    if width < 8 and n >> 8 * width - 1:
        n -= 1 << 8 * width
    return at + width, put_integer(out, pos, n), OK


@inlined
def _packed(data, at, width, digits, scale, out, pos):
    n, num_significant = 0, 0
    for k in range(2 * width - 1):
        byte = np.int64(data[at + k // 2])  # Numba makes a float of signed and unsigned together
        digit = byte & 15 if k & 1 else byte >> 4
        if digit > 9:
            return at + k // 2, pos, BAD_DIGIT
        n = n * 10 + digit
        if num_significant or digit:
            num_significant += 1
    sign = np.int64(data[at + width - 1]) & 15
    if sign < 10:
        return at + width - 1, pos, BAD_SIGN
    if num_significant > digits:
        return at, pos, VALUE_DOES_NOT_FIT
    minus = sign == 0xB or sign == 0xD
    if num_significant > 18:
        return at + width, _put_wide_decimal(data, at, 2 * width - 1, True, scale, minus, out, pos), OK
    return at + width, put_decimal(out, pos, -n if minus else n, scale), OK


@inlined
def _sign_of(byte):
    """(is a sign byte, is minus, zone of its digits)"""
    if byte == 0x2B or byte == 0x2D:
        return True, byte == 0x2D, 0x3
    if byte == 0x4E or byte == 0x60:
        return True, byte == 0x60, 0xF
    return False, False, 0


@inlined
def _zoned(data, at, width, digits, scale, out, pos):
    first, overpunched = 0, width == digits
    is_sign, minus, zone = _sign_of(data[at])
    if not overpunched and is_sign:
        first = 1
    elif not overpunched:
        is_sign, minus, zone = _sign_of(data[at + digits])
        if not is_sign:
            return at, pos, BAD_SIGN
    n, num_significant = 0, 0
    for k in range(first, first + digits):
        byte = np.int64(data[at + k])
        digit = byte & 15
        if overpunched and k == digits - 1:
            zone = byte >> 4
            if zone < 3 or zone == 6 or zone == 8 or zone == 9:
                return at + k, pos, BAD_SIGN
            minus = zone == 5 or zone == 7 or zone == 0xB or zone == 0xD
        elif overpunched:
            zone = 3 if byte >> 4 == 3 else 0xF
        if digit > 9 or byte >> 4 != zone:
            return at + k, pos, BAD_DIGIT
        n = n * 10 + digit
        if num_significant or digit:
            num_significant += 1
    if num_significant > 18:
        return at + width, _put_wide_decimal(data, at + first, digits, False, scale, minus, out, pos), OK
    return at + width, put_decimal(out, pos, -n if minus else n, scale), OK


@inlined
def _single(data, at, stop, set_, singles, out, pos):
    for k in range(at, stop):
        code = singles[set_, data[k]]
        if code < 0:
            return k, pos, BAD_TEXT
        if code < 0x80:
            out[pos] = code
            pos += 1
        else:
            pos = _put_utf8(out, pos, code)
    return stop, pos, OK


@inlined
def _lead(data, at, stop, set_, singles, doubles, out, pos):
    while at < stop:
        code = np.int64(singles[set_, data[at]])
        width = 1
        if code < 0:
            width = 2
            if at + 1 < stop:
                code = np.int64(doubles[set_, _cell(data, at)])
        if code < 0:
            return at, pos, BAD_TEXT
        pos = _put_utf8(out, pos, code)
        at += width
    return at, pos, OK


@inlined
def _double(data, at, stop, set_, doubles, out, pos):
    last = stop - 1  # a pair begins before it, and so ends before `stop`
    while at < last:
        code = np.int64(doubles[set_, _cell(data, at)])
        if code < 0:
            return at, pos, BAD_TEXT
        pos = _put_utf8(out, pos, code)
        at += 2
    return at, pos, BAD_TEXT if at < stop else OK


@inlined
def _shift(data, at, stop, set_, singles, doubles, out, pos, may_stay_open):
    """Runs of one width; a shift code ends a run, for neither table has a character for it (charset._cell)."""
    in_pairs, shift_at = False, at
    while at < stop:
        if in_pairs:
            at, pos, fault = _double(data, at, stop, set_, doubles, out, pos)
        else:
            at, pos, fault = _single(data, at, stop, set_, singles, out, pos)
        if fault == OK:
            break
        byte = data[at]  # where a run has ended before the item: `at` is below `stop`
        if byte == 0x28 or byte == 0x38 or byte == 0x29:
            in_pairs, shift_at = byte != 0x29, at
        elif in_pairs and byte == 0x40 and (at + 1 == stop or data[at + 1] == 0x29):
            out[pos] = 0x20
            pos += 1
        else:
            return at, pos, BAD_TEXT
        at += 1
    if in_pairs and not may_stay_open:
        return shift_at, pos, BAD_TEXT
    return at, pos, OK


@inlined
def _utf8(data, at, stop, out, pos):
    while at < stop:
        size = utf8_size(data, at, stop)
        if size == 0:
            return at, pos, BAD_TEXT
        for k in range(size):
            out[pos + k] = data[at + k]
        at, pos = at + size, pos + size
    return at, pos, OK


@inlined
def _euc(data, at, stop, set_, singles, doubles, out, pos):
    while at < stop:
        byte = np.int64(data[at])
        code, width = np.int64(-1), 2
        if byte < 0x80:
            code, width = np.int64(singles[set_, byte]), 1
        elif byte == 0x8F:
            width = 3
            if at + 2 < stop and data[at + 1] >= 0xA1 and data[at + 2] >= 0xA1:
                code = np.int64(doubles[set_, np.int64(data[at + 1]) << 8 | data[at + 2] & 0x7F])
        elif at + 1 < stop and data[at + 1] >= 0xA1:
            code = np.int64(doubles[set_, _cell(data, at)])
        if code < 0:
            return at, pos, BAD_TEXT
        pos = _put_utf8(out, pos, code)
        at += width
    return at, pos, OK


@inlined
def _cesu8(data, at, stop, out, pos):
    while at < stop:
        size = utf8_size(data, at, stop)
        if 0 < size < 4:
            for k in range(size):
                out[pos + k] = data[at + k]
            at, pos = at + size, pos + size
            continue
        if size == 4 or at + 6 > stop or data[at] != 0xED or data[at + 3] != 0xED:
            return at, pos, BAD_TEXT
        high, low = np.int64(data[at + 1]), np.int64(data[at + 4])
        if high >> 4 != 0xA or low >> 4 != 0xB or data[at + 2] >> 6 != 2 or data[at + 5] >> 6 != 2:
            return at, pos, BAD_TEXT
        code = (high & 15) << 16 | (np.int64(data[at + 2]) & 63) << 10 | (low & 15) << 6 | np.int64(data[at + 5]) & 63
        pos = _put_utf8(out, pos, code + 0x10000)
        at += 6
    return at, pos, OK


@inlined
def _utf16(data, at, stop, set_, doubles, out, pos):
    """As `_double`; a surrogate stands in the table as itself, whatever the byte order."""
    while at < stop:
        if at + 1 == stop:
            return at, pos, BAD_TEXT
        code, width = np.int64(doubles[set_, _cell(data, at)]), 2
        if code >> 10 == 0xD800 >> 10 and at + 3 < stop:
            low = np.int64(doubles[set_, _cell(data, at + 2)])
            if low >> 10 == 0xDC00 >> 10:
                code, width = 0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF), 4
        if code < 0 or code >> 11 == 0xD800 >> 11:
            return at, pos, BAD_TEXT
        pos = _put_utf8(out, pos, code)
        at += width
    return at, pos, OK


@inlined
def _chars(data, at, stop, mode, set_, singles, doubles, out, pos):
    if mode == SINGLE:
        return _single(data, at, stop, set_, singles, out, pos)
    if mode == LEAD:
        return _lead(data, at, stop, set_, singles, doubles, out, pos)
    if mode == SHIFT or mode == SHIFT_OPEN:
        return _shift(data, at, stop, set_, singles, doubles, out, pos, mode == SHIFT_OPEN)
    if mode == DOUBLE:
        return _double(data, at, stop, set_, doubles, out, pos)
    if mode == UTF8:
        return _utf8(data, at, stop, out, pos)
    if mode == EUC:
        return _euc(data, at, stop, set_, singles, doubles, out, pos)
    if mode == CESU8:
        return _cesu8(data, at, stop, out, pos)
    return _utf16(data, at, stop, set_, doubles, out, pos)


@inlined
def _stripped(out, start, stop):
    """The end of the text without trailing blanks, of both widths."""
    while stop > start:
        if out[stop - 1] == 0x20:
            stop -= 1
        elif stop - start > 2 and out[stop - 3] == 0xE3 and out[stop - 2] == 0x80 and out[stop - 1] == 0x80:
            stop -= 3
        else:
            break
    return stop


@inlined
def _text(data, at, stop, plans, r, singles, doubles, out, pos):
    """A value of text. Out: where reading ended, next place in the output (on a fault the value's end), fault."""
    set_ = plans[r, SET]
    start = pos + 5 if stop - at > 63 else pos + 1  # long and short strings differ in their header
    at, end, fault = _chars(data, at, stop, plans[r, MODE], set_, singles, doubles, out, start)
    if fault:
        return at, stop, fault
    if plans[r, STRIP]:
        end = _stripped(out, start, end)
    size = end - start
    target = pos + 5 if size > 63 else pos + 1
    if target != start:
        _move(out, start, end, target)
    if size > 63:
        out[pos] = 16 << 2
        put(out, pos + 1, size, 4)
    else:
        out[pos] = size << 2 | 1
    return at, target + size, OK


@inlined
def _is_variable(encoding):
    return encoding == VARTEXT or encoding == BLOB or encoding == LONGTEXT


@inlined
def _len_data(data, at, plans, r, little):
    """Bytes that a variable item says it holds."""
    if plans[r, ENCODING] == VARTEXT:
        return uint(data, at, 2, little) * plans[r, UNIT]
    len_length = plans[r, UNIT] & 15  # BLOB, LONGTEXT: reserved bytes in the high nibble, length's in the low
    size = uint(data, at + (plans[r, UNIT] >> 4), len_length, little)
    return size


@inlined
def _put_bytes(data, start, size, out, pos):
    out[pos] = 15 << 2
    put(out, pos + 1, size, 4)
    for k in range(size):
        out[pos + 5 + k] = data[start + k]
    return pos + 5 + size


@inlined
def _variable(data, at, end, plans, r, reading, singles, doubles, out, pos):
    len_head = 2 if plans[r, ENCODING] == VARTEXT else (plans[r, UNIT] >> 4) + (plans[r, UNIT] & 15)
    if at + len_head > end:
        return at, pos, TRUNCATED
    size = _len_data(data, at, plans, r, reading[LITTLE])
    if size < 0 or size > plans[r, WIDTH]:
        return at, pos, BAD_VALUE_LENGTH
    start = at + len_head
    after = start + (size if reading[ACTUAL_LENGTH] else plans[r, WIDTH])
    if after > end:
        return start, pos, TRUNCATED
    if plans[r, ENCODING] != BLOB:
        bad, pos, fault = _text(data, start, start + size, plans, r, singles, doubles, out, pos)
        return (bad, pos, fault) if fault else (after, pos, OK)
    return after, _put_bytes(data, start, size, out, pos), OK


@inlined
def _days(data, at, little):
    """Days since 1970-01-01 of a date of the calendar, else -1_000_000."""
    year, month, day = uint(data, at, 2, little), np.int64(data[at + 2]), np.int64(data[at + 3])
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1:
        return -1_000_000
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        last = 29 if is_leap else 28
    if day > last:
        return -1_000_000
    since_march, y = (month + 9) % 12, year - (month < 3)  # a year that begins in March ends with its leap day
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * since_march + 2) // 5 + day - 719469


@inlined
def _date(data, at, little, out, pos):
    days = _days(data, at, little)
    if days == -1_000_000:
        return at, pos, BAD_DATE
    out[pos] = 11 << 2
    return at + 4, put(out, pos + 1, days, 4), OK


@inlined
def _bad_time_at(data, at, width):
    """The faulty byte of a time of day and its reserved zeros, -1 if it is well."""
    if data[at] > 23 or data[at + 1] > 59 or data[at + 2] > 59:
        return at
    for k in range(3, width):
        if data[at + k]:
            return at + k
    return -1


@inlined
def _time(data, at, width, out, pos):
    bad_at = _bad_time_at(data, at, width)
    if bad_at >= 0:
        return bad_at, pos, BAD_DATE
    out[pos] = 8 << 2 | 1
    for k in range(3):
        out[pos + 1 + 3 * k] = 48 + data[at + k] // 10
        out[pos + 2 + 3 * k] = 48 + data[at + k] % 10
    out[pos + 3] = 58
    out[pos + 6] = 58
    return at + width, pos + 9, OK


@inlined
def _timestamp(data, at, width, little, out, pos):
    days = _days(data, at, little)
    if days == -1_000_000:
        return at, pos, BAD_DATE
    bad_at = _bad_time_at(data, at + 4, width - 4)
    if bad_at >= 0:
        return bad_at, pos, BAD_DATE
    seconds = 86400 * days + 3600 * np.int64(data[at + 4]) + 60 * np.int64(data[at + 5]) + data[at + 6]
    out[pos] = 13 << 2
    return at + width, put(out, pos + 1, seconds * 1_000_000, 8), OK


@inlined
def _ieee(data, at, width, little, out, pos):
    out[pos] = 14 << 2 if width == 4 else 7 << 2
    for k in range(width):
        out[pos + 1 + k] = data[at + k if little else at + width - 1 - k]
    return at + width, pos + 1 + width, OK


@inlined
def _hex_float(data, at, width, scratch, out, pos):
    fraction = uint(data, at + 1, width - 1, False)
    size = float(fraction) * 2.0 ** (4 * (np.int64(data[at] & 0x7F) - 64) - 8 * (width - 1))
    scratch[0][0] = -size if data[at] & 0x80 else size
    out[pos] = 7 << 2
    return at + width, put(out, pos + 1, scratch[1][0], 8), OK


@inlined
def _value(data, at, end, plans, r, reading, singles, doubles, scratch, out, pos):
    encoding, width, little = plans[r, ENCODING], plans[r, WIDTH], reading[LITTLE]
    if _is_variable(encoding):
        return _variable(data, at, end, plans, r, reading, singles, doubles, out, pos)
    if at + width > end:
        return at, pos, TRUNCATED
    if encoding == INTEGER:
        return _integer(data, at, width, little, out, pos)
    if encoding == PACKED:
        return _packed(data, at, width, plans[r, DIGITS], plans[r, SCALE], out, pos)
    if encoding == ZONED:
        return _zoned(data, at, width, plans[r, DIGITS], plans[r, SCALE], out, pos)
    if encoding == TEXT:
        return _text(data, at, at + width, plans, r, singles, doubles, out, pos)
    if encoding == DATE:
        return _date(data, at, little, out, pos)
    if encoding == TIME:
        return _time(data, at, width, out, pos)
    if encoding == TIMESTAMP:
        return _timestamp(data, at, width, little, out, pos)
    if encoding == IEEE:
        return _ieee(data, at, width, little, out, pos)
    if encoding == BYTES:
        return at + width, _put_bytes(data, at, width, out, pos), OK
    return _hex_float(data, at, width, scratch, out, pos)


@inlined
def _null(data, at, end, plans, r, reading, out, pos):
    """A null item: its body is skipped, whatever it holds."""
    width = plans[r, WIDTH]
    if _is_variable(plans[r, ENCODING]):
        len_head = 2 if plans[r, ENCODING] == VARTEXT else (plans[r, UNIT] >> 4) + (plans[r, UNIT] & 15)
        width += len_head
        if reading[ACTUAL_LENGTH] and reading[NULL_BODY] == BODY_ABSENT:
            width = 0
        elif reading[ACTUAL_LENGTH] and reading[NULL_BODY] == BODY_LENGTH_ZERO:
            width = len_head
            for k in range(at, min(at + width, end)):
                if data[k]:
                    return k, pos, BAD_VALUE_LENGTH
    if at + width > end:
        return at, pos, TRUNCATED
    out[pos] = 0
    return at + width, pos + 1, OK


@inlined
def _item(data, at, end, plans, r, reading, singles, doubles, scratch, out, pos):
    if reading[NULL_AREAS]:
        if at + 2 > end:
            return at, pos, TRUNCATED
        first, second = data[at], data[at + 1]
        if first != second or first != 0 and first != 0xFF:
            return at, pos, BAD_NULL_INDICATOR
        if first and plans[r, NEED] == KEY:
            return at, pos, MISSING_KEY
        if first and plans[r, NEED] == NOT_NULL and reading[IS_AFTER]:
            return at, pos, NULL_NOT_ALLOWED
        at += 2
        if first:
            return _null(data, at, end, plans, r, reading, out, pos)
    return _value(data, at, end, plans, r, reading, singles, doubles, scratch, out, pos)


@inlined
def _size_of(n):
    return 1 if n <= 0xFF else 2 if n <= 0xFFFF else 3 if n <= 0xFFFFFF else 4


@inlined
def _put_head(out, pos, plans, first, num, offsets, total):
    """Header, ids and offsets of an object whose values are written behind them. Ids are places in the sorted names."""
    len_size, len_id, len_end = 4 if num > 255 else 1, _size_of(num - 1), _size_of(total)
    out[pos] = (num > 255) << 6 | len_id - 1 << 4 | len_end - 1 << 2 | 2
    pos = put(out, pos + 1, num, len_size)
    if len_id == 1 and len_end == 1:  # nearly always; straight bytes are twice as fast
        for k in range(num):
            out[pos + k] = k
            out[pos + num + plans[first + k, SLOT]] = offsets[k]
        out[pos + 2 * num] = total
        return
    for k in range(num):
        put(out, pos + k * len_id, k, len_id)
    pos += num * len_id
    for k in range(num):
        put(out, pos + plans[first + k, SLOT] * len_end, offsets[k], len_end)
    put(out, pos + num * len_end, total, len_end)


@inlined
def _len_head(num, len_end):
    return 1 + (4 if num > 255 else 1) + num * _size_of(num - 1) + (num + 1) * len_end


@compiled(nogil=True, _nrt=False)
def images(data, starts, ends, layouts, plans, plan_starts, reading, singles, doubles, scratch, out, lengths, faults):
    """Write the image of every record.

    In: data uint8[]; starts, ends: byte range of each record's items; layouts: its plan, plans[plan_starts[l]:[l+1]].
    scratch: `scratch_of` the plans; nothing is allocated here. Out: out uint8[], images one behind the other;
    lengths[i], 0 where a fault stopped it; faults[i] = code, byte, column, and of BAD_TEXT the value's end.
    """
    offsets = scratch[2]
    pos, len_end = np.int64(0), 1
    for i in range(len(starts)):
        first = plan_starts[layouts[i]]
        num, at, end = plan_starts[layouts[i] + 1] - first, starts[i], ends[i]
        base = pos + _len_head(num, len_end)  # guess: offsets as wide as the last record's
        write, fault, column = base, 0, -1
        for k in range(num):
            offsets[k] = write - base
            at, write, fault = _item(data, at, end, plans, first + k, reading, singles, doubles, scratch, out, write)
            if fault:
                column = k
                break
        if fault == 0 and at != end:
            fault = TRAILING_BYTES
        faults[i, 0], faults[i, 1], faults[i, 2], faults[i, 3] = fault, at, column, write
        lengths[i] = 0
        if fault:
            continue
        total = write - base
        if _size_of(total) != len_end:
            len_end = _size_of(total)
            _move(out, base, write, pos + _len_head(num, len_end))
        _put_head(out, pos, plans, first, num, offsets, total)
        lengths[i] = _len_head(num, len_end) + total
        pos += lengths[i]
