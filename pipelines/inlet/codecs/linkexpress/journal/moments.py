"""Days and times in text, compiled: values of columns, and TJNLTIME. The plain readers are in values.py and record.py.

Bounds: a text is read where it was written, and only if it is as long as it has to be; what takes its place is shorter.
The 16 bytes of a TJNLTIME are those of an item that a walk has found.
"""

import numpy as np

from inlet.codecs.linkexpress.journal.layout import CLOCK, DAY, MOMENT
from inlet.fields.compiled.basics import inlined, put
from inlet.fields.compiled.cache import compiled

DAYS_OF_YEAR_0 = 719_468  # from 0000-03-01 to 1970-01-01
DAY_SECONDS, SECOND = 86_400, 1_000_000
NO_DAY = -1_000_000
NO_TIME, BAD_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1


@inlined
def _days_of(year, month, day):
    """Days since 1970-01-01, NO_DAY where the calendar has no such day."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return NO_DAY
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        last = 29 if is_leap else 28
    if day > last:
        return NO_DAY
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
    """Days since 1970 of YYYY-MM-DD, NO_DAY where it is none."""
    year, month, day = _digits(out, at, 4), _digits(out, at + 5, 2), _digits(out, at + 8, 2)
    for k in (4, 7):
        if out[at + k] < 45 or out[at + k] > 47:  # - . /
            return NO_DAY
    return _days_of(year, month, day)


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
def put_moment(out, pos, end, encoding, as_text):
    """A day or a time in place of the short text that was written there. Out: the place behind it, -1 for none."""
    at = pos + 1
    has_day, has_time = encoding == DAY or encoding == MOMENT, encoding == CLOCK or encoding == MOMENT
    if end - at != (10 if has_day else 0) + (8 if has_time else 0) + (has_day and has_time):
        return -1
    days, seconds, clock = 0, 0, at + 11 if has_day else at
    if has_day:
        days = _day_at(out, at)
        if days == NO_DAY:
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
        days = _days_of(day // 10_000, day // 100 % 100, day % 100) if is_good else NO_DAY
        hour, minute, second = clock // 1_000_000, clock // 10_000 % 100, clock // 100 % 100
        if days != NO_DAY and hour < 24 and minute < 60 and second < 60:
            seconds = DAY_SECONDS * days + 3600 * hour + 60 * minute + second
            local[i] = (seconds * 100 + clock % 100) * 10_000
