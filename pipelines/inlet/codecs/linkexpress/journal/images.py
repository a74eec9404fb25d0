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

from inlet.codecs.linkexpress.journal.layout import CLOCK, CODE, DAY, MOMENT, REAL
from inlet.codecs.linkexpress.journal.walk import (
    AT,
    END,
    INVALID,
    IS_COMPRESSED,
    IS_TAGGED,
    LITTLE,
    MISSING,
    NO_TAG,
    NULL,
    START,
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
DAYS_OF_YEAR_0 = 719_468  # from 0000-03-01 to 1970-01-01
DAY_SECONDS, SECOND = 86_400, 1_000_000
NO_TIME, BAD_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1


def scratch_of(num_columns: int) -> tuple:
    """Working space of `images`: a double, its bits, a place for each column, a float, its bytes."""
    double, single = np.zeros(1, np.float64), np.zeros(1, np.float32)
    return double, double.view(np.int64), np.zeros(num_columns + 1, np.int64), single, single.view(np.uint8)


@inlined
def days_of(year, month, day):
    """Days since 1970-01-01, -1_000_000 where the calendar has no such day."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return -1_000_000
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        last = 29 if is_leap else 28
    if day > last:
        return -1_000_000
    since_march, y = (month + 9) % 12, year - (month < 3)
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * since_march + 2) // 5 + day - 1 - DAYS_OF_YEAR_0


@inlined
def _digits(out, at, num):
    """A number of ASCII digits, -1 where they are none."""
    n = 0
    for k in range(num):
        digit = np.int64(out[at + k]) - 48
        if digit < 0 or digit > 9:
            return -1
        n = n * 10 + digit
    return n


@inlined
def _day_at(out, at):
    """Days since 1970 of YYYY-MM-DD, -1_000_000 where it is none."""
    year, month, day = _digits(out, at, 4), _digits(out, at + 5, 2), _digits(out, at + 8, 2)
    for k in (4, 7):
        if out[at + k] < 45 or out[at + k] > 47:  # - . /
            return -1_000_000
    return days_of(year, month, day)


@inlined
def _seconds_at(out, at):
    """Seconds of hh:mm:ss, -1 where it is none."""
    hour, minute, second = _digits(out, at, 2), _digits(out, at + 3, 2), _digits(out, at + 6, 2)
    for k in (2, 5):
        if out[at + k] != 58 and out[at + k] != 46:  # : .
            return -1
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return -1
    return 3600 * hour + 60 * minute + second


@inlined
def _moment(out, pos, end, encoding, as_text):
    """A day or a time in place of the short text that was written there. Out: the place behind it, -1 for none."""
    at = pos + 1
    has_day, has_time = encoding == DAY or encoding == MOMENT, encoding == CLOCK or encoding == MOMENT
    if end - at != (10 if has_day else 0) + (8 if has_time else 0) + (has_day and has_time):
        return -1
    days, seconds, clock = 0, 0, at + 11 if has_day else at
    if has_day:
        days = _day_at(out, at)
        if days == -1_000_000:
            return -1
        out[at + 4], out[at + 7] = 45, 45
    if has_time:
        seconds = _seconds_at(out, clock)
        if seconds < 0 or has_day and (out[at + 10] == 10 or out[at + 10] >= 0x80):
            return -1
        out[clock + 2], out[clock + 5] = 58, 58
    if has_day and has_time:
        out[at + 10] = 32
    if as_text or not has_day:
        return end
    if not has_time:
        out[pos] = 11 << 2
        return put(out, pos + 1, days, 4)
    out[pos] = 13 << 2
    return put(out, pos + 1, (DAY_SECONDS * days + seconds) * SECOND, 8)


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
        return end if encoding == TEXT or encoding == VARTEXT else _moment(out, pos, end, encoding, plans[r, UNIT])
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
    is certain; how many they are.
    """
    pos, found, is_any = base, 0, False
    for k in range(num):
        r, state = first + k, items[k, STATE]
        slot = plans[r, SLOT]
        places[slot] = -1
        if not _is_of_column(items, k, plans, r) or plans[r, NEED] == KEY and state != 0:
            return -1, found
        if state == INVALID:
            continue
        is_any = True
        if state == MISSING:
            missing[k >> 3] |= 1 << (k & 7)
            continue
        mask[k >> 3] |= 1 << (k & 7)
        places[slot], found = pos - base, found + 1
        if state == NULL:
            if plans[r, NEED] == NOT_NULL and not is_delete:
                return -1, found
            out[pos] = 0
            pos += 1
            continue
        pos = _value(data, items[k, AT], items[k, WIDTH], little, plans, r, singles, doubles, scratch, out, pos)
        if pos < 0:
            return -1, found
    return pos if is_any else -1, found


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
    plans, singles, doubles, scratch, head, items, out, sizes, masks, missing,
):  # fmt: skip
    """Write the images of the chosen journals, one behind the other.

    In: deletes, which are deletes; tables, as `walk.heads` takes them; plans of all tables, those of little-endian
    journals behind the others. Out: sizes, 0 where a journal is for the plain reader; masks and missing, zero before,
    of those that are not.
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
        write, there = _members(
            data, little, deletes[c], own, plans, row, num, places, singles, doubles, scratch, out, base,
            masks[c], missing[c],
        )  # fmt: skip
        if write < 0:
            continue
        total = write - base
        len_end = interpreter._size_of(total)
        start_of = pos + _len_head(there, len_id, len_end)
        if start_of != base:
            interpreter._move(out, base, write, start_of)
        _put_head(out, pos, num, there, len_id, len_end, places, total)
        sizes[c] = start_of + total - pos
        pos += sizes[c]


@compiled(nogil=True, _nrt=False)
def times(data, rows, name, little, digits, local):
    """TJNLTIME as microseconds since 1970, local: NO_TIME where there is none, BAD_TIME where it is not certain."""
    for i in range(len(rows)):
        at = rows[i, name]
        local[i] = NO_TIME if at < 0 else BAD_TIME
        if at < 0:
            continue
        parts, is_good = 0, True
        for k in range(16):
            digit = digits[little[i], data[at + k]]
            is_good &= digit >= 0
            parts = parts * 10 + digit
        clock, day = parts % 100_000_000, parts // 100_000_000
        days = days_of(day // 10_000, day // 100 % 100, day % 100) if is_good else -1_000_000
        hour, minute, second = clock // 1_000_000, clock // 10_000 % 100, clock // 100 % 100
        if days != -1_000_000 and hour < 24 and minute < 60 and second < 60:
            seconds = DAY_SECONDS * days + 3600 * hour + 60 * minute + second
            local[i] = (seconds * 100 + clock % 100) * 10_000
