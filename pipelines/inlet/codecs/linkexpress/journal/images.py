"""The columns of journals -> VARIANT objects, straight from their bytes, by the plans of layout.py.

Strategy. `images` finds the items of each journal again (walk.py) and writes the members of its image. It answers where
it is certain: whatever is wrong, unusual or not allowed in a journal ends its image, and the plain reader reads the
journal. A value is written by the function of fields/compiled/interpreter.py that is the twin of its plain one; days
and times, which are text here, are read out of the text that was written.

Bounds: values are read within their items, which the walks have held against the journal. A text of n bytes takes 4 n
and 5 more at most, a number of n bytes as many (interpreter.bound says why); REAL takes 9 of 21, a text of a day or a
time is written before its value, which is shorter, takes its place. A member takes 7 more for its id and its offset, an
image 9: so `bound` of interpreter.py is one here, where each item is at least as long as in an extract. What is written
of an image that is given up stays within that too, and the next image is written over it.
"""

import numpy as np

from inlet.codecs.linkexpress.journal.frames import END, LITTLE, START
from inlet.codecs.linkexpress.journal.layout import CODE, DAY, MOMENT, REAL
from inlet.codecs.linkexpress.journal.moments import put_moment
from inlet.codecs.linkexpress.journal.walk import (
    AT,
    INVALID,
    IS_COMPRESSED,
    IS_TAGGED,
    MISSING,
    NO_TAG,
    NULL,
    STATE,
    TAG,
    UNCERTAIN,
    WIDTH,
    tagged,
    untagged,
)
from inlet.fields.compiled import interpreter
from inlet.fields.compiled.basics import inlined, put, uint
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.interpreter import (
    BYTES,
    DIGITS,
    ENCODING,
    HEX_FLOAT,
    IEEE,
    INTEGER,
    KEY,
    NEED,
    NOT_NULL,
    PACKED,
    SCALE,
    SLOT,
    TEXT,
    UNIT,
    VARTEXT,
    ZONED,
)

NUMERIC, DECIMAL, TIMES = 0x13, 0x14, 0x23  # codes whose tags say more than a length


def scratch_of(num_columns: int) -> tuple:
    """Working space of `images`: a double, its bits, a place for each column, a float, its bytes."""
    double, single = np.zeros(1, np.float64), np.zeros(1, np.float32)
    return double, double.view(np.int64), np.zeros(num_columns + 1, np.int64), single, single.view(np.uint8)


@inlined
def _real(data, at, little, scratch, out, pos):
    """A float as the double that it is."""
    for k in range(4):
        scratch[4][k] = data[at + k if little else at + 3 - k]
    scratch[0][0] = scratch[3][0]
    out[pos] = 7 << 2
    return put(out, pos + 1, scratch[1][0], 8)


@inlined
def _value(data, at, width, little, plans, r, singles, doubles, scratch, out, pos):
    """A value in its item. Out: the place behind it, -1 where it is none that is certain."""
    encoding = plans[r, ENCODING]
    if encoding == TEXT or encoding == VARTEXT or encoding >= DAY and encoding <= MOMENT:
        start, stop = at, at + width
        if encoding == VARTEXT:
            if width < 2:
                return -1
            start, stop = at + 2, at + 2 + uint(data, at, 2, little) * plans[r, UNIT]
            if stop > at + width:
                return -1
        _, end, fault = interpreter._text(data, start, stop, plans, r, singles, doubles, out, pos)
        if fault:
            return -1
        return end if encoding == TEXT or encoding == VARTEXT else put_moment(out, pos, end, encoding, plans[r, UNIT])
    fault = 0
    if encoding == INTEGER:
        _, pos, fault = interpreter._integer(data, at, width, little, out, pos)
    elif encoding == PACKED:
        _, pos, fault = interpreter._packed(data, at, width, plans[r, DIGITS], plans[r, SCALE], out, pos)
    elif encoding == ZONED:
        _, pos, fault = interpreter._zoned(data, at, width, plans[r, DIGITS], plans[r, SCALE], out, pos)
    elif encoding == BYTES:
        pos = interpreter._put_bytes(data, at, width, out, pos)
    elif encoding == IEEE:
        _, pos, fault = interpreter._ieee(data, at, width, little, out, pos)
    elif encoding == HEX_FLOAT:
        _, pos, fault = interpreter._hex_float(data, at, width, scratch, out, pos)
    elif encoding == REAL:
        pos = _real(data, at, little, scratch, out, pos)
    else:
        return -1
    return -1 if fault else pos


@inlined
def _is_of_column(items, n, plans, r):
    """Is a tag the column's? A length of text may be another one."""
    tag, code = items[n, TAG], plans[r, CODE]
    if tag == NO_TAG:
        return True
    if tag >> 16 != code:
        return False
    if code == NUMERIC or code == DECIMAL:
        return tag & 0xFFFF == plans[r, DIGITS] << 8 | plans[r, SCALE]
    return code != TIMES or items[n, WIDTH] == plans[r, interpreter.WIDTH]


@inlined
def _is_of_table(items, num, first, last):
    """Are all columns but those of a table invalid?"""
    for n in range(num):
        if (n < first or n >= last) and items[n, STATE] != INVALID:
            return False
    return True


@inlined
def _members(data, little, is_delete, items, plans, first, num, places, singles, doubles, scratch, out, base,
             mask, missing):  # fmt: skip
    """The values of an image, one behind the other. Out: places, of each member by its slot, -1 where it is not there;
    mask and missing, the columns that are there and that are missing. Returns: the place behind them, -1 where not all
    is certain; how many they are, and how many are missing.
    """
    pos, found, num_missing = base, 0, 0
    for k in range(num):
        r, state = first + k, items[k, STATE]
        slot = plans[r, SLOT]
        places[slot] = -1
        if not _is_of_column(items, k, plans, r) or plans[r, NEED] == KEY and state != 0:
            return -1, found, num_missing
        if state == INVALID:
            continue
        if state == MISSING:
            missing[k >> 3] |= 1 << (k & 7)
            num_missing += 1
            continue
        mask[k >> 3] |= 1 << (k & 7)
        places[slot], found = pos - base, found + 1
        if state == NULL:
            if plans[r, NEED] == NOT_NULL and not is_delete:
                return -1, found, num_missing
            out[pos] = 0
            pos += 1
            continue
        pos = _value(data, items[k, AT], items[k, WIDTH], little, plans, r, singles, doubles, scratch, out, pos)
        if pos < 0:
            return -1, found, num_missing
    return pos if found or num_missing else -1, found, num_missing


@inlined
def _len_head(found, len_id, len_end):
    return 1 + (4 if found > 255 else 1) + found * len_id + (found + 1) * len_end


@inlined
def _put_head(out, pos, num, found, len_id, len_end, places, total):
    """Header, ids and offsets of the members that are there, in the order of their names."""
    out[pos] = (found > 255) << 6 | len_id - 1 << 4 | len_end - 1 << 2 | 2
    ids = put(out, pos + 1, found, 4 if found > 255 else 1)
    offsets = ids + found * len_id
    for slot in range(num):
        if places[slot] >= 0:
            ids = put(out, ids, slot, len_id)
            offsets = put(out, offsets, places[slot], len_end)
    put(out, offsets, total, len_end)


@compiled(nogil=True, _nrt=False)
def images(
    data, records, chosen, deletes, tables, rules, how, system, len_system, widths, bounds, lengths, num_all, len_all,
    plans, singles, doubles, scratch, head, items, out, sizes, there, masks, missing,
):  # fmt: skip
    """Write the images of the chosen journals, one behind the other.

    In: deletes, which are deletes; tables, as `walk.heads` takes them; plans of all tables, those of little-endian
    journals behind the others. Out: sizes, 0 where a journal is for the plain reader; of the others there, how many
    columns are in it and how many are missing, and masks and missing, which they are, zero before.
    """
    pos, len_end, places = np.int64(0), 1, scratch[2]
    for c in range(len(chosen)):
        i = chosen[c]
        start, end, little, table = records[i, START], records[i, END], records[i, LITTLE], tables[i]
        first, num, found = bounds[table, 0], bounds[table, 1] - bounds[table, 0], np.int64(UNCERTAIN)
        if how[IS_TAGGED]:
            found = tagged(data, start, end, little, rules, head, items)
        else:
            begin, stop, len_columns = 0, num_all, len_all
            if how[IS_COMPRESSED]:
                begin, stop, len_columns = first, first + num, lengths[table]
            found = untagged(
                data, start, end, little, how, system, len_system, widths, begin, stop, len_columns, head, items
            )
        sizes[c], own = 0, items
        if found != (num if how[IS_COMPRESSED] else num_all):
            continue
        if not how[IS_COMPRESSED]:
            if not _is_of_table(items, num_all, first, first + num):
                continue
            own = items[first:]
        len_id = interpreter._size_of(max(num - 1, 0))
        base = pos + _len_head(num, len_id, len_end)  # guess: all members, offsets as wide as the last journal's
        row = first + (len(plans) // 2 if little else 0)
        write, num_there, num_missing = _members(
            data, little, deletes[c], own, plans, row, num, places, singles, doubles, scratch, out, base,
            masks[c], missing[c],
        )  # fmt: skip
        if write < 0:
            continue
        total = write - base
        len_end = interpreter._size_of(total)
        start_of = pos + _len_head(num_there, len_id, len_end)
        if start_of != base:
            interpreter._move(out, base, write, start_of)
        _put_head(out, pos, num, num_there, len_id, len_end, places, total)
        sizes[c], there[c, 0], there[c, 1] = start_of + total - pos, num_there, num_missing
        pos += sizes[c]
