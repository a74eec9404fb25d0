"""Columns of text that a compiled loop writes: places in the order, ids of transactions, keys of table names."""

import numpy as np
import pyarrow as pa

from inlet import change
from inlet.codecs.goldengate.trail.frame import LEN_H, H
from inlet.codecs.goldengate.trail.sequence import TAIL
from inlet.fields.compiled.basics import inlined
from inlet.fields.compiled.cache import compiled

LEN_SEQ = change.LEN_SEQ


@inlined
def _put_digits(out, i, at, n, width):
    for k in range(width):
        out[i, at + width - 1 - k] = 48 + n % 10
        n //= 10


@compiled(nogil=True, _nrt=False)
def _sequences(times, offsets, seqno, out):
    """35 digits each: time in hundredths of a second, number of the file, place in it."""
    last = np.int64(-1)
    for i in range(len(times)):
        time = times[i] // 10_000
        if i > 0 and time == last:
            for k in range(25):
                out[i, k] = out[i - 1, k]
        elif time == 0:
            for k in range(change.LEN_TIME):
                out[i, k] = 48
            _put_digits(out, i, 16, seqno, 9)
        else:
            days, rest = time // 8_640_000, time % 8_640_000
            z = days + 719_468  # the calendar of 400 years, which begin with March
            era, of_era = z // 146_097, z % 146_097
            years = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
            of_year = of_era - (365 * years + years // 4 - years // 100)
            m = (5 * of_year + 2) // 153
            month = m + 3 if m < 10 else m - 9
            _put_digits(out, i, 0, years + 400 * era + (month <= 2), 4)
            _put_digits(out, i, 4, month, 2)
            _put_digits(out, i, 6, of_year - (153 * m + 2) // 5 + 1, 2)
            _put_digits(out, i, 8, rest // 360_000, 2)
            _put_digits(out, i, 10, rest // 6_000 % 60, 2)
            _put_digits(out, i, 12, rest // 100 % 60, 2)
            _put_digits(out, i, 14, rest % 100, 2)
            _put_digits(out, i, 16, seqno, 9)
        last = time
        n = np.uint64(offsets[i])  # without a sign a division by ten is a multiplication
        for k in range(10):
            tens = n // np.uint64(10)
            out[i, LEN_SEQ - 1 - k] = np.uint8(48) + np.uint8(n - np.uint64(10) * tens)
            n = tens


def sequences(times: np.ndarray, offsets: np.ndarray, seqno: int) -> pa.Array:
    """change_seq of each place. In: largest IO Time so far, in microseconds since 1970; offset in the file."""
    out = np.empty((len(times), LEN_SEQ), np.uint8)
    _sequences(times, offsets, seqno, out)
    ends = np.arange(len(times) + 1, dtype=np.int32) * LEN_SEQ
    return pa.Array.from_buffers(pa.string(), len(times), [None, pa.py_buffer(ends), pa.py_buffer(out)])


@compiled(nogil=True, _nrt=False)
def _tail_keys(data, rows, chosen, keys):
    """FNV-1a of each name, up to its NUL."""
    for i in range(len(chosen)):
        key = np.uint64(14_695_981_039_346_656_037)
        at, end = rows[chosen[i], H] + TAIL, rows[chosen[i], H] + rows[chosen[i], LEN_H]
        while at < end and data[at] != 0:
            key = (key ^ np.uint64(data[at])) * np.uint64(1_099_511_628_211)
            at += 1
        keys[i] = key


@compiled(nogil=True, _nrt=False)
def _are_alike(data, rows, chosen, firsts):
    """Is each name that of the row which stands for its key?"""
    for i in range(len(chosen)):
        at, end = rows[chosen[i], H] + TAIL, rows[chosen[i], H] + rows[chosen[i], LEN_H]
        other, stop = rows[firsts[i], H] + TAIL, rows[firsts[i], H] + rows[firsts[i], LEN_H]
        while at < end and data[at] != 0:
            if other >= stop or data[other] != data[at]:
                return False
            at, other = at + 1, other + 1
        if other < stop and data[other] != 0:
            return False
    return True


def names_of(data: np.ndarray, rows: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that stand for the different names of the chosen rows, and which of them each has. Raises: ValueError for
    two names of one key, of which there are none in 10^9."""
    keys = np.empty(len(chosen), np.uint64)
    _tail_keys(data, rows, chosen, keys)
    _, firsts, which = np.unique(keys, return_index=True, return_inverse=True)
    if not _are_alike(data, rows, chosen, chosen[firsts[which]]):
        raise ValueError("two names of tables have one key")
    return chosen[firsts], which
