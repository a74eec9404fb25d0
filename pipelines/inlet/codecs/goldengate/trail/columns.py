"""The column area of a GoldenGate record: a list of columns, or a full image -> one VARIANT object, by a plan.

Strategy. A list holds { index 2 bytes, length 2 bytes, value }, the value behind a null indicator of 2 bytes; a column
that is not in it was not supplied. A full image has each column at its place (full_image.py). `images` walks each area,
notes where each column's value is, and writes the members in the order of their names. A fault stops an image, and no
other.

Bounds: an item is held against the end of its list before it is read, and its value against the item. A value of n
bytes becomes at most 4 n bytes (a character set makes 4 bytes of one at most) and its head at most 5; id and offset of
a member are 7. An item has 6 bytes in front of its value, so images take 6 bytes for each of the list, and 16. A number
takes 42 bytes at most (39 digits, sign, point, head) of an item of 8 at least: with an id of 2 bytes and an offset of
3, for there are 65,536 members at most, 47 of 48. A full image is as long as its plan says before a place in it is
read; its places follow each other, each with 3 bytes at least around its value. It takes LEN_NUMBER + 7 more for each
column.
Facts     [documented] the list, its null indicator (whatever is not 0 is NULL) . [dump seen] texts with an inner
          length, big-endian integers in trails of either order, dates without a length, the key in front of 115
          [impl] fixed texts, scales . [not public] the length in front of the images of 117, 134 and 135
          ASSUMED: that length has 2 or 4 bytes, by exact fit; where both fit the record is rejected
"""

import numpy as np

from inlet.fields.compiled import interpreter
from inlet.fields.compiled.basics import inlined, put, put_decimal, put_integer, put_limbs, uint
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.interpreter import KEY, NEED, NOT_NULL, SLOT, WIDTH

# a plan's row: that of the interpreter, and what the contract makes of the value
ENCODING, SOURCE_SCALE = interpreter.ENCODING, interpreter.UNIT
DIGITS, SCALE = interpreter.DIGITS, interpreter.SCALE  # of a decimal in the contract; DIGITS of an integer: its bytes
TARGET = interpreter.NUM_PLAN
PLACE = interpreter.NUM_PLAN + 1  # in a full image, behind the system key
NUM_PLAN = interpreter.NUM_PLAN + 2
VARTEXT, FIXTEXT, SIGNED, UNSIGNED, NUMBER, DATETIME, RAW = range(7)  # ENCODING
TO_TEXT, TO_BINARY, TO_INTEGER, TO_DECIMAL, TO_FLOAT, TO_DATE, TO_TIMESTAMP = range(7)  # TARGET

FAULTS = ("", "bad_length", "unknown_column", "column_twice", "bad_value_length", "bad_text", "value_does_not_fit",
          "bad_date", "missing_key", "null_not_allowed", "ambiguous_layout", "bad_null_indicator",
          "bad_length")  # fmt: skip
(OK, BAD_LENGTH, UNKNOWN_COLUMN, COLUMN_TWICE, BAD_VALUE_LENGTH, BAD_TEXT, VALUE_DOES_NOT_FIT,
 BAD_DATE, MISSING_KEY, NULL_NOT_ALLOWED, AMBIGUOUS, BAD_NULL_INDICATOR, BAD_IMAGE_LENGTH) = range(13)  # fmt: skip
MAX_DIGITS, MAX_SCALE = 38, 38
LEN_ITEM = 4  # index and length
LEN_NULL = 2
LEN_INNER = 2
LEN_NUMBER = 42
IS_LIST = -1  # of an area, in place of the bytes of its system key


def bound(starts: np.ndarray, ends: np.ndarray, syskeys: np.ndarray, num_columns: np.ndarray) -> int:
    """Bytes that the images of these areas take at most."""
    own = np.where(syskeys == IS_LIST, 0, (LEN_NUMBER + 7) * num_columns)
    return int((6 * (ends - starts) + 16 + own).sum())


def scratch_of(plans: np.ndarray, plan_starts: np.ndarray) -> np.ndarray:
    """Working space of `images`: by slot where a value begins, where it ends, and its plan; offsets; digits."""
    num = int(np.diff(plan_starts).max(initial=0))
    return np.zeros((4, max(num, MAX_DIGITS) + 2), np.int64)


@inlined
def _find(data, at, end, little, plans, first, num, scratch):
    """Note the place of each column's value. Out: fault, place, index of the column, number of columns found."""
    found = 0
    for slot in range(num):
        scratch[0, slot] = -1
    while at < end:
        if at + LEN_ITEM > end:
            return BAD_LENGTH, at, -1, found
        index, size = uint(data, at, 2, little), uint(data, at + 2, 2, little)
        if index >= num:
            return UNKNOWN_COLUMN, at, index, found
        if size < LEN_NULL or at + LEN_ITEM + size > end:
            return BAD_LENGTH, at + 2, index, found
        slot = plans[first + index, SLOT]
        if scratch[0, slot] >= 0:
            return COLUMN_TWICE, at, index, found
        scratch[0, slot], scratch[1, slot], scratch[2, slot] = at + LEN_ITEM, at + LEN_ITEM + size, first + index
        at, found = at + LEN_ITEM + size, found + 1
    return OK, at, -1, found


@inlined
def _find_full(data, at, end, syskey, record_length, little, plans, first, num, scratch):
    """Note the place of each column's value in a full image. Out: as `_find`; of BAD_IMAGE_LENGTH the length found."""
    for slot in range(num):
        scratch[0, slot] = -1
    if end - at != syskey + record_length:
        return BAD_IMAGE_LENGTH, at, end - at, 0
    for index in range(num):
        r = first + index
        start = at + syskey + plans[r, PLACE]
        stop = start + LEN_NULL
        if data[start] or data[start + 1]:
            if data[start] != 0xFF or data[start + 1] != 0xFF:
                return BAD_NULL_INDICATOR, start, index, index
        elif plans[r, ENCODING] == VARTEXT or plans[r, ENCODING] == NUMBER:
            size = uint(data, stop, LEN_INNER, little)
            if size > plans[r, WIDTH]:
                return BAD_VALUE_LENGTH, stop, index, index
            stop += LEN_INNER + size
        else:
            stop += plans[r, WIDTH]
        slot = plans[r, SLOT]
        scratch[0, slot], scratch[1, slot], scratch[2, slot] = start, stop, r
    return OK, at, -1, num


@inlined
def _find_in(data, at, end, syskey, record_length, little, plans, first, num, scratch):
    """Note the place of each column's value in an area. In: bytes of its system key, IS_LIST. Out: as `_find`."""
    if syskey == IS_LIST:
        return _find(data, at, end, little, plans, first, num, scratch)
    return _find_full(data, at, end, syskey, record_length, little, plans, first, num, scratch)


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
def _datetime(data, at, end, plans, r, out, pos):
    """A date and time as text, `YYYY-MM-DD HH:MM:SS.f`, whatever stands between them. Out: as `_integer`."""
    target, size = plans[r, TARGET], end - at
    if target == TO_DATE and (size != 10 or not _is_day(data, at)):
        return BAD_DATE, at, pos
    if target == TO_TIMESTAMP and (size < 19 or not _is_day(data, at) or not _is_time(data, at + 10, end)):
        return BAD_DATE, at, pos
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
def _value(data, at, end, little, plans, r, singles, doubles, scratch, out, pos):
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


@inlined
def _size_of(n):
    return 1 if n <= 0xFF else 2 if n <= 0xFFFF else 3 if n <= 0xFFFFFF else 4


@inlined
def _len_head(num, len_id, len_end):
    return 1 + (4 if num > 255 else 1) + num * len_id + (num + 1) * len_end


@compiled(nogil=True, _nrt=False)
def images(
    data,
    starts,
    ends,
    syskeys,
    layouts,
    plans,
    plan_starts,
    record_lengths,
    little,
    is_after,
    singles,
    doubles,
    scratch,
    out,
    lengths,
    masks,
    faults,
):
    """Write the image of every area.

    In: data uint8[]; starts, ends: each area's bytes; syskeys: IS_LIST, or of a full image the bytes of its system key;
    layouts: its plan, plans[plan_starts[l]:plan_starts[l + 1]] in the order of the columns, and record_lengths[l], the
    bytes of a full image behind the system key; is_after: of an after-image, in which columns may not be null. Out: out
    uint8[], images one behind the other; lengths[i], 0 where a fault stopped it; masks[i], the columns that it
    supplies, zero before; faults[i] = code, place, index of the column (of BAD_IMAGE_LENGTH the length found), and of
    BAD_TEXT the value's end.
    """
    pos, len_end = np.int64(0), 1
    for i in range(len(starts)):
        first = plan_starts[layouts[i]]
        num = plan_starts[layouts[i] + 1] - first
        fault, at, column, found = _find_in(
            data, starts[i], ends[i], syskeys[i], record_lengths[layouts[i]], little, plans, first, num, scratch
        )
        lengths[i], len_id = 0, _size_of(max(num - 1, 0))
        base = pos + _len_head(found, len_id, len_end)  # guess: offsets as wide as in the last image
        write, n = base, 0
        for slot in range(num):
            if fault:
                break
            if scratch[0, slot] < 0:
                continue
            r = scratch[2, slot]
            start, end = scratch[0, slot], scratch[1, slot]
            at, column = start, r - first
            masks[i, column >> 3] |= 1 << (column & 7)
            scratch[0, slot] = write - base  # its offset, from here on
            if data[start] or data[start + 1]:
                if plans[r, NEED] == KEY:
                    fault = MISSING_KEY
                elif plans[r, NEED] == NOT_NULL and is_after:
                    fault = NULL_NOT_ALLOWED
                out[write] = 0
                write += 1
            else:
                fault, at, write = _value(
                    data, start + LEN_NULL, end, little, plans, r, singles, doubles, scratch, out, write
                )
            n += 1
        faults[i, 0], faults[i, 1], faults[i, 2], faults[i, 3] = fault, at, column, write
        if fault:
            continue
        total = write - base
        if _size_of(total) != len_end:
            len_end = _size_of(total)
            interpreter._move(out, base, write, pos + _len_head(found, len_id, len_end))
        len_size = 4 if found > 255 else 1
        out[pos] = (found > 255) << 6 | len_id - 1 << 4 | len_end - 1 << 2 | 2
        put(out, pos + 1, found, len_size)
        ids = pos + 1 + len_size
        offsets, n = ids + found * len_id, 0
        for slot in range(num):
            if scratch[0, slot] >= 0:
                put(out, ids + n * len_id, slot, len_id)
                put(out, offsets + n * len_end, scratch[0, slot], len_end)
                n += 1
        put(out, offsets + found * len_end, total, len_end)
        lengths[i] = _len_head(found, len_id, len_end) + total
        pos += lengths[i]


@inlined
def _is_list(data, at, end, little, num, seen):
    """Do these bytes hold a list of columns, each once?"""
    for k in range(num):
        seen[k] = 0
    while at < end:
        if at + LEN_ITEM > end:
            return False
        index, size = uint(data, at, 2, little), uint(data, at + 2, 2, little)
        if index >= num or seen[index] or size < LEN_NULL or at + LEN_ITEM + size > end:
            return False
        seen[index] = 1
        at += LEN_ITEM + size
    return True


def is_list(data: bytes, order: str) -> bool:
    """Do these bytes hold a list of columns, of whatever table?"""
    return bool(
        _is_list(np.frombuffer(data, np.uint8), 0, len(data), order == "little", 1 << 16, np.zeros(1 << 16, np.int64))
    )


@compiled(nogil=True, _nrt=False)
def split(data, starts, ends, is_fixed, num_columns, little, seen, middles, faults):
    """Find where the before-image of each area ends that holds both: behind a length comes the list before, then the
    list after. The length has 2 bytes where is_fixed; else it is the one of 2 or 4 bytes with which both lists end
    exactly. Out: middles[i] = first byte and end of the list before; faults[i] = code, place, -1.
    """
    for i in range(len(starts)):
        at, end, num = starts[i], ends[i], num_columns[i]
        num_fits, place = 0, at
        for width in (2, 4):
            if width == 4 and is_fixed[i] or at + width > end:
                continue
            size = uint(data, at, width, little)
            start = at + width
            if size < LEN_ITEM + LEN_NULL or size > end - start:
                continue
            if _is_list(data, start, start + size, little, num, seen) and _is_list(
                data, start + size, end, little, num, seen
            ):
                middles[i, 0], middles[i, 1] = start, start + size
                num_fits += 1
        faults[i, 0] = OK if num_fits == 1 else BAD_LENGTH if num_fits == 0 else AMBIGUOUS
        faults[i, 1], faults[i, 2] = place, -1


@compiled(nogil=True, _nrt=False)
def changed(data, befores, afters, layouts, plans, plan_starts, record_lengths, little, scratch, places, masks):
    """Which columns differ between two images, where the one before has all columns of the one after. In: befores,
    afters: first byte, end and system key of each area, as of `images`, which has read both; scratch as there; places,
    working space of two rows for each column. Out: masks[i], zero before.
    """
    for i in range(len(befores)):
        first, length = plan_starts[layouts[i]], record_lengths[layouts[i]]
        num = plan_starts[layouts[i] + 1] - first
        at, end, syskey = befores[i, 0], befores[i, 1], befores[i, 2]
        _find_in(data, at, end, syskey, length, little, plans, first, num, scratch)
        for slot in range(num):
            places[0, slot], places[1, slot] = scratch[0, slot], scratch[1, slot]
        at, end, syskey = afters[i, 0], afters[i, 1], afters[i, 2]
        _find_in(data, at, end, syskey, length, little, plans, first, num, scratch)
        for slot in range(num):
            start, before = scratch[0, slot], places[0, slot]
            if start < 0:
                continue
            size = scratch[1, slot] - start
            differs = places[1, slot] - before != size
            for k in range(size):
                if not differs and data[before + k] != data[start + k]:
                    differs = True
            if differs:
                index = scratch[2, slot] - first
                masks[i, index >> 3] |= 1 << (index & 7)


@compiled(nogil=True, _nrt=False)
def lacks_key(keys, layouts, befores, afters, chosen, out):
    """Does a change supply a part of its key in no image? In: keys, the mask of each layout's key; masks of the images.
    Out: out[i] of each chosen one."""
    for i in range(len(chosen)):
        n, out[i] = chosen[i], False
        for k in range(keys.shape[1]):
            key = keys[layouts[n], k]
            if (befores[n, k] | afters[n, k]) & key != key:
                out[i] = True


@compiled(nogil=True, _nrt=False)
def trimmed(masks, others, is_own, chosen, out, lengths):
    """Masks one behind the other, without zero bytes at their ends. In: chosen, of which rows; is_own, whether of
    `masks` or of `others`. Out: lengths[i]."""
    pos = 0
    for i in range(len(chosen)):
        n, size = chosen[i], 0
        for k in range(masks.shape[1]):
            out[pos + k] = masks[n, k] if is_own[i] else others[n, k]
            if out[pos + k]:
                size = k + 1
        lengths[i] = size
        pos += size
