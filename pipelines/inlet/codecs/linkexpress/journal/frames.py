"""Compiled walks over usage journals: where messages and journals lie. The layouts are in files.py.

They find what frame.py, the plain reader, finds, and stop in front of what is not whole or not well formed: the plain
reader says what that is.

Bounds: `stream` reads 4 bytes where 4 are left, `messages` a header where a whole one is left, and a journal's length
where 4 bytes of its message are left. A journal takes 6 bytes of the data at least, a message 32, so `room_for` them is
enough.
"""

import numpy as np

from inlet.codecs.linkexpress.journal.frame import LEN_HEADER, LEN_JOURNAL_HEAD
from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

# a record: a journal, or a message whose journals do not fill it; IS_ODD says that, and of the journals of a message
# that has another number of them than its header says
START, END, MESSAGE, LITTLE, IS_ODD = range(5)
NUM_RECORD = 5
# a message: its bytes, and the first record of it
MESSAGE_START, MESSAGE_END, FIRST_RECORD = range(3)
NUM_MESSAGE = 3
AUTO, BIG_ALONE, LITTLE_ALONE = range(3)  # byte order of messages


def room_for(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Records and messages, as many as there may be in these bytes."""
    records = np.empty((len(data) // LEN_JOURNAL_HEAD + 1, NUM_RECORD), np.int64)
    return records, np.empty((len(data) // LEN_HEADER + 1, NUM_MESSAGE), np.int64)


@inlined
def _put_record(records, n, start, end, message, little, is_odd):
    records[n, START], records[n, END], records[n, MESSAGE] = start, end, message
    records[n, LITTLE], records[n, IS_ODD] = little, is_odd


@compiled(nogil=True, _nrt=False)
def stream(data, little, len_max, records):
    """Journals one behind the other. Returns: how many are whole, where the last of them ends."""
    at, num = 0, 0
    while at + 4 <= len(data):
        size = uint(data, at, 4, little)
        if size < LEN_JOURNAL_HEAD or size > len_max or at + size > len(data):
            break
        _put_record(records, num, at, at + size, -1, little, 0)
        at, num = at + size, num + 1
    return num, at


@compiled(nogil=True, _nrt=False)
def messages(data, len_control, order, len_max, is_each, records, rows):
    """Messages one behind the other, and their journals. Returns: how many records and messages are whole, where the
    last of them ends.
    """
    start, num, num_messages = 0, 0, 0
    while start + len_control + LEN_HEADER <= len(data):
        at = start + len_control
        little = uint(data, at + 4, 4, True) == LEN_HEADER
        if not little and uint(data, at + 4, 4, False) != LEN_HEADER:
            break
        size = uint(data, at, 4, little)
        if order == BIG_ALONE and little or order == LITTLE_ALONE and not little or at + size > len(data):
            break
        if size < LEN_HEADER or size > len_max or uint(data, at + 8, 2, little) != 1:
            break
        end, first, place = at + size, num, at + LEN_HEADER
        rows[num_messages, MESSAGE_START], rows[num_messages, MESSAGE_END] = start, end
        rows[num_messages, FIRST_RECORD] = first
        while place + 4 <= end:
            length = uint(data, place, 4, little)
            if length < LEN_JOURNAL_HEAD or place + length > end:
                break
            _put_record(records, num, place, place + length, num_messages, little, 0)
            place, num = place + length, num + 1
        is_right = num - first == uint(data, at + 14, 2, little)
        if place != end or not is_right and (num == first or not is_each):
            num = first + 1
            _put_record(records, first, start, end, num_messages, little, 1)
        elif not is_right:
            records[first:num, IS_ODD] = 1
        start, num_messages = end, num_messages + 1
    return num, num_messages, start
