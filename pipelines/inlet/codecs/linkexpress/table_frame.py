"""Frames of an extract by table: where each record lies and what it is. The layouts are in table.py.

Records of one size are found by counting, others by their lengths. Source: docs/formats/linkexpress_table.md.
"""

import numpy as np

from inlet.codecs.linkexpress import frame as frame
from inlet.codecs.linkexpress.frame import FAULT, FAULT_AT, ITEMS, OPERATION, TABLE, WHAT

LEN_OPERATION, LEN_LENGTH = 2, 4
LEN_JOURNAL_HEAD = 10  # length, number of columns, null indicator, operation


def walk_strides(data: np.ndarray, size: int, may_be_empty: bool) -> np.ndarray:
    """Places of records of one size, and where the last whole one ends. In: whether they are all of a full extract so
    far: FFFF alone is one that found no row.
    """
    if may_be_empty and len(data) == LEN_OPERATION and data[0] == data[1] == 0xFF:
        return np.array([0, LEN_OPERATION])
    return np.arange(0, len(data) // size * size + 1, size)


def heads(
    data: np.ndarray,
    offsets: np.ndarray,
    little: bool,
    len_before: int,
    is_full: bool,
    is_first: bool,
    is_journal: bool,
    num_items: int,
    table: int,
) -> np.ndarray:
    """The heads of records, as frame.py has them; they are in no transaction. In: bytes before the operation; is the
    file a full extract; is the first record the file's; is it in the journal form; items and place of the table.
    """
    starts, ends = offsets[:-1], offsets[1:]
    rows = np.full((len(starts), frame.NUM_HEAD), -1, np.int64)
    operation_at = starts + len_before
    operation = _two_bytes(data, operation_at, little)
    rows[:, WHAT], rows[:, OPERATION], rows[:, TABLE], rows[:, ITEMS] = frame.CHANGE, operation, table, operation_at + 2
    rows[:, FAULT], rows[:, FAULT_AT] = frame.OK, starts
    is_empty = is_full & (operation == frame.OP_EMPTY_LOAD) & ((ends == operation_at + 2) | (len_before > 0))
    is_empty[int(is_first) :] = False  # behind a row, FFFF is no operation
    rows[is_empty, WHAT] = frame.EMPTY_LOAD
    is_known = operation == frame.REFRESH if is_full else (operation >= frame.INSERT) & (operation <= frame.DELETE)
    if is_journal:
        _fail(rows, _two_bytes(data, starts + 4, little) != num_items + 1, frame.BAD_COLUMN_COUNT, starts + 4)
    _fail(rows, ~is_known & ~is_empty, frame.UNKNOWN_OPERATION, operation_at)
    _fail(rows, is_empty & (ends != operation_at + 2), frame.TRAILING_BYTES, operation_at + 2)
    if is_journal:
        _fail(rows, _two_bytes(data, starts + 6, little) != 0, frame.BAD_NULL_INDICATOR, starts + 6)
    return rows


def _two_bytes(data: np.ndarray, at: np.ndarray, little: bool) -> np.ndarray:
    first, second = data[at].astype(np.int64), data[at + 1].astype(np.int64)
    return second << 8 | first if little else first << 8 | second


def _fail(rows: np.ndarray, where: np.ndarray, fault: int, at: np.ndarray) -> None:
    """Later faults stand before earlier ones: what is read first is what is told."""
    rows[where, WHAT], rows[where, FAULT], rows[where, FAULT_AT] = frame.FAULTY, fault, at[where]
