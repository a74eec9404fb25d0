"""The column area of a GoldenGate record: a list of columns, or a full image -> one VARIANT object, by a plan.

Strategy. A list holds { index 2 bytes, length 2 bytes, value }, the value behind a null indicator of 2 bytes; a column
that is not in it was not supplied. A full image has each column at its place (full_image.py). `images` walks each area,
notes where each column's value is, and writes the members in the order of their names. A fault stops an image, and no
other.

Bounds: an item is held against the end of its list before it is read, and its value against the item. A value of n
bytes becomes at most 4 n bytes and a head of 5 (values.py); id and offset of a member are 7. An item has 6 bytes in
front of its value, so images take 6 bytes for each of the list, and 16. A number takes LEN_NUMBER of an item of 8 at
least: with an id of 2 bytes and an offset of 3, for there are 65,536 members at most, 47 of 48. A full image is as long
as its plan says before a place in it is read; its places follow each other, each with 3 bytes at least around its
value. It takes LEN_NUMBER + 7 more for each column.
Facts     [documented] the list, its null indicator (whatever is not 0 is NULL) . [dump seen] the key in front of 115
          [not public] the length in front of the images of 117, 134 and 135
          ASSUMED: that length has 2 or 4 bytes, by exact fit; where both fit the record is rejected
"""

import numpy as np

from inlet.codecs.goldengate.trail.plan import (
    AMBIGUOUS,
    BAD_IMAGE_LENGTH,
    BAD_LENGTH,
    BAD_NULL_INDICATOR,
    BAD_VALUE_LENGTH,
    COLUMN_TWICE,
    ENCODING,
    MAX_DIGITS,
    MISSING_KEY,
    NULL_NOT_ALLOWED,
    NUMBER,
    OK,
    PLACE,
    UNKNOWN_COLUMN,
    VARTEXT,
)
from inlet.codecs.goldengate.trail.values import LEN_NUMBER, put_value
from inlet.fields.compiled import interpreter
from inlet.fields.compiled.basics import inlined, put, uint
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.interpreter import KEY, NEED, NOT_NULL, SLOT, WIDTH

LEN_ITEM = 4  # index and length
LEN_NULL = 2
LEN_INNER = 2
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
                fault, at, write = put_value(
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
    """Which columns differ between two images that both supply them. In: befores, afters: first byte, end and system
    key of each area, as of `images`, which has read both; scratch as there; places, working space of two rows for each
    column. Out: masks[i], zero before.
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
            if start < 0 or before < 0:
                continue
            size = scratch[1, slot] - start
            is_null = data[start] != 0 or data[start + 1] != 0
            differs = is_null != (data[before] != 0 or data[before + 1] != 0)
            if not differs and not is_null:  # what stands behind a NULL says nothing
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
