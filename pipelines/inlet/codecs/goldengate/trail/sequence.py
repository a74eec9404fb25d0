"""What the records of a trail are one after another: changes, some of several records, and transactions.

A *group* is what becomes one change, reject or control record: a single record; a before-image and the update behind
it; the segments of a record that is continued; a change with the LOB chunks behind it. Records of different
transactions are never interleaved, so a transaction is a run of groups from TransInd 0 to TransInd 2, or one group of
3.

Bounds: `groups` reads the fixed part of `H` (34 bytes, which `walk` has made sure of), tails within `LEN_H`, columns
and the text of DDL within `LEN_D`, tokens within `LEN_T`. It writes one row of `out` and of `transactions` for each row
of `rows` at most.
Facts     [documented] TransInd 0 first, 1 middle, 2 last, 3 only; Continued and RecCount put segments together; after a
          failure Extract appends a marker and writes the open transaction again; inserts are marked A, deletes B
          [dump seen] bytes 0-8, 16-29 and 33 of H, and the time: microseconds since the Julian epoch, UTC . [recalled]
          a before-image is a record of its own in front of its update; ids stand at a transaction's first record
          full images are those of IOType 3, 5 and 10, behind a system key of SyskeyLen bytes, 4 or 8
          [inferred] byte 30; Partition 0x04 a list of columns, 0x08 the tail is an index, 0x40 both images
          ASSUMED: a record is followed by its LOB chunks, a before-image by its update, a segment by the next one,
          without another record in between; a before-image and its update, and segments, are in one file
          ASSUMED: what is written again begins with a record of the same table and the same place in the source's log;
          where it tells no place, of the same IOType with the same columns
          ASSUMED: a DDL record with the items B5 TABLE and B6 TRUNCATE removes all rows of the table
          ASSUMED: records of one transaction tell one TRANID, where they tell one: the first that tells one is what
          later ones are compared with. transaction_id is that of the first record, or its place
Time      the largest IO Time so far (docs/adr/0018). A time MAX_PAUSE after it does not count until the next change
          confirms it: the earlier of the two times then counts
"""

import numpy as np

from inlet.codecs.goldengate.trail import io_types
from inlet.codecs.goldengate.trail.frame import AT, END, LEN_D, LEN_H, LEN_T, D, H, T
from inlet.codecs.goldengate.trail.frame import FAULT as ROW_FAULT
from inlet.codecs.goldengate.trail.frame import FAULT_AT as ROW_FAULT_AT
from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

# a group: its rows [FIRST, BASE_END) and the chunks up to CHUNKS_END; rows of its before-image; ...
FIRST, NUM_BEFORE, BASE_END, CHUNKS_END, WHAT, OPERATION, FORM, FAULT, FAULT_AT = range(9)
# its place among the events of its transaction; what it says of one that was open before it
COUNTER, IS_LAST, TRANSACTION, MARK = range(9, 13)
# the state behind it: is a transaction open, which, its events so far, its first record; the largest IO Time so far;
# may chunks of a LOB follow; a number for the id of the transaction; an IO Time that is not confirmed
IS_OPEN, OPEN_TRANSACTION, NUM_EVENTS, FIRST_RECORD, TIME, IS_IN_LOB, ID_NUMBER, UNCONFIRMED = range(13, 21)
NUM_GROUP = 21
FILE_HEADER, FAULTY, LOB_CHUNK = range(io_types.UNKNOWN + 1, io_types.UNKNOWN + 4)  # WHAT, beside those of io_types
NO_MARK, ABANDONED_BEFORE, UNFINISHED_BEFORE = range(3)
# what is known at the beginning: is a transaction open, its events so far, the largest IO Time, may chunks of a LOB
# follow, a number for the first record of the transaction and one for its id (0: not known), an IO Time that is not
# confirmed (0: none)
OPEN, EVENTS, LARGEST_TIME, IN_LOB, RECORD, ID, AHEAD = range(7)
NUM_STATE = 7
IN_NEXT_FILE = (
    2  # IN_LOB where they may, if the table has LOBs: the last record of a file was one of an open transaction
)
XID_AT, XID_LEN, CSN_AT, CSN_LEN = range(4)  # of `transactions`; row 0 is the one that was open at the beginning
MORE_MAY_COME, FILE_ENDS, BLOCK_ENDS = range(3)  # behind the data; a block holds whole groups
MAX_GROUP = 16 << 20  # bytes; LOB chunks behind that are records of their own, and segments belong to no record

# the fixed part of H
PARTITION, UNDO_FLAG, BEFORE_AFTER, REC_LENGTH, IO_TYPE, ORIG_NODE, IO_TIME, AUDIT_POS, AUDIT_RBA = (
    1,
    2,
    3,
    4,
    6,
    7,
    8,
    16,
    24,
)
TRANS_IND, FORMAT_TYPE, SYSKEY_LEN, INCOMPLETE, CONTINUED, REC_COUNT, TAIL = 28, 29, 30, 31, 32, 33, 34
LEN_INDEX = 2  # of a definition, in the tail
FIELD_COMP, HAS_INDEX = 0x04, 0x08  # bits of PARTITION
BEFORE, AFTER = ord("B"), ord("A")
FIRST_OF, MIDDLE_OF, LAST_OF, WHOLE = range(4)  # TRANS_IND
EPOCH = 210_866_760_000_000_000  # Julian microseconds of 1970-01-01
EARLIEST, LATEST = 0, 4_102_444_800_000_000  # of an IO Time, from 1970: up to 2100
MAX_PAUSE = 35 * 86_400_000_000  # microseconds
LOGCSN, TRANID = ord("L"), ord("6")
TRUNCATE_CODE, DDL_CODE = 100, 160
MAX_NUMBER = (1 << 62) - 1
PRIME = 34_359_738_337  # below 2^35: 257 * 257 times a number below it is one of 64 bits

FAULTS = ("", "bad_frame", "bad_length", "unknown_token", "bad_header", "unknown_operation", "unsupported_record",
          "part_missing", "bad_segment", "contradiction")  # fmt: skip
OK, _, BAD_LENGTH, _, BAD_HEADER, UNKNOWN_OPERATION, UNSUPPORTED, PART_MISSING, BAD_SEGMENT, CONTRADICTION = range(10)
OF_TRUNCATE = np.frombuffer(b",B6='TRUNCATE',", np.uint8)
OF_TABLE, OF_STATEMENT = np.frombuffer(b",B5='TABLE',", np.uint8), np.frombuffer(b",C1=", np.uint8)


@inlined
def _byte(data, rows, i, field):
    return data[rows[i, H] + field]


@inlined
def _is_same_table(data, rows, i, j):
    """Do two records name the same table, in the same way?"""
    size = rows[i, LEN_H]
    if size != rows[j, LEN_H] or (_byte(data, rows, i, PARTITION) ^ _byte(data, rows, j, PARTITION)) & HAS_INDEX:
        return False
    for k in range(TAIL, size):
        if data[rows[i, H] + k] != data[rows[j, H] + k]:
            return False
    return True


@inlined
def _is_readable(rows, i):
    """Has a row a header to read?"""
    return rows[i, H] >= 0 and rows[i, LEN_H] >= TAIL and rows[i, ROW_FAULT] != 4


@inlined
def _is_next_segment(data, rows, i, j):
    return (
        rows[j, ROW_FAULT] == 0
        and _is_readable(rows, j)
        and _byte(data, rows, i, IO_TYPE) == _byte(data, rows, j, IO_TYPE)
        and _byte(data, rows, i, BEFORE_AFTER) == _byte(data, rows, j, BEFORE_AFTER)
        and _byte(data, rows, j, REC_COUNT) == (_byte(data, rows, i, REC_COUNT) + 1) & 0xFF
        and _is_same_table(data, rows, i, j)
        and (_byte(data, rows, i, PARTITION) ^ _byte(data, rows, j, PARTITION)) & FIELD_COMP == 0
    )


@inlined
def _image_end(data, rows, i, num):
    """Behind the last segment of the record that begins at row i. Out: (row, fault); row -1 where more has to come."""
    if _byte(data, rows, i, REC_COUNT) > 1:
        return i + 1, BAD_SEGMENT
    begun = rows[i, AT]
    while _byte(data, rows, i, CONTINUED):
        if rows[i, END] - begun > MAX_GROUP:
            return i + 1, BAD_SEGMENT
        if i + 1 == num:
            return -1, OK
        if not _is_next_segment(data, rows, i, i + 1):
            return i + 1, BAD_SEGMENT
        i += 1
    return i + 1, OK


@inlined
def _is_change(data, rows, i):
    return (
        rows[i, ROW_FAULT] == 0
        and _is_readable(rows, i)
        and io_types.WHAT_OF[_byte(data, rows, i, IO_TYPE)] == io_types.CHANGE
    )


@inlined
def _is_update(code):
    return code == 10 or code == 15


@inlined
def _is_after_of(data, rows, i, j):
    """Is row j the update whose before-image is row i?"""
    if not _is_change(data, rows, j) or _byte(data, rows, j, BEFORE_AFTER) != AFTER:
        return False
    code = _byte(data, rows, j, IO_TYPE)
    return (_is_update(code) or code == 115 or code == 117) and _is_same_table(data, rows, i, j)


@inlined
def _goes_on(data, rows, i, j):
    """Are two records next to each other of one transaction?"""
    first, second = _byte(data, rows, i, TRANS_IND), _byte(data, rows, j, TRANS_IND)
    return first < LAST_OF and (second == MIDDLE_OF or second == LAST_OF)


@inlined
def _stands_at(data, p, stop, text):
    """Does the text stand there?"""
    if p + len(text) > stop:
        return False
    for k in range(len(text)):
        if data[p + k] != text[k]:
            return False
    return True


@inlined
def is_truncate(data, rows, i):
    """Does a DDL record say, before its statement, that it truncates a table?"""
    stop, of_truncate, of_table = rows[i, D] + rows[i, LEN_D], False, False
    for p in range(rows[i, D], stop):
        if data[p] != OF_TABLE[0]:
            continue
        if _stands_at(data, p, stop, OF_STATEMENT):
            break
        of_truncate = of_truncate or _stands_at(data, p, stop, OF_TRUNCATE)
        of_table = of_table or _stands_at(data, p, stop, OF_TABLE)
    return of_truncate and of_table


@inlined
def _what_of(data, rows, i):
    """What a record is, by its IOType and, of DDL, by its text."""
    what = io_types.WHAT_OF[_byte(data, rows, i, IO_TYPE)]
    return io_types.CHANGE if what == io_types.DDL and is_truncate(data, rows, i) else what


@inlined
def _is_restart(what):
    return what == io_types.RESTART_ABEND or what == io_types.RESTART_OK


@inlined
def _has_data(data, rows, i):
    """Does a record hold a column area, or does its header say so?"""
    at = rows[i, H] + REC_LENGTH
    return rows[i, LEN_D] > 0 or data[at] != 0 or data[at + 1] != 0


@inlined
def _names_table(data, rows, i):
    has_index = _byte(data, rows, i, PARTITION) & HAS_INDEX != 0
    return rows[i, LEN_H] > TAIL and (has_index or data[rows[i, H] + TAIL] != 0)


@inlined
def _number_of_text(data, at, end):
    """A number for a text, by which it is known again. It wraps around at 64 bits."""
    n = 0
    for k in range(at, end):
        n = n * 1_000_003 + data[k] + 1
    return (n & MAX_NUMBER) + 1


@inlined
def _is_same_token(data, p, q, little):
    """Have two tokens the same payload?"""
    size = uint(data, p + 2, 2, little)
    if size != uint(data, q + 2, 2, little):
        return False
    for k in range(size):
        if data[p + 4 + k] != data[q + 4 + k]:
            return False
    return True


@inlined
def _id_number(data, rows, i, little):
    """A number for the id of the transaction that a record says; 0 where it says none. Of two the last one counts."""
    n, p, stop = 0, rows[i, T], rows[i, T] + rows[i, LEN_T]
    while p >= 0 and p + 4 <= stop:
        end = p + 4 + uint(data, p + 2, 2, little)
        if end > stop:
            break
        if data[p] == TRANID and end > p + 4:
            n = _number_of_text(data, p + 4, end)
        p = end
    return n


@inlined
def _header_fault(data, rows, i, little):
    """What is wrong with the fixed part of a change's header: (fault, place)."""
    at = rows[i, H]
    side = data[at + BEFORE_AFTER]
    if side != BEFORE and side != AFTER:
        return BAD_HEADER, at + BEFORE_AFTER
    if data[at + TRANS_IND] > WHOLE:
        return BAD_HEADER, at + TRANS_IND
    if uint(data, at + REC_LENGTH, 2, little) != rows[i, LEN_D] and not data[at + CONTINUED]:
        return BAD_LENGTH, at + REC_LENGTH
    p, stop, xid, csn = rows[i, T], rows[i, T] + rows[i, LEN_T], -1, -1
    while 0 <= p < stop:
        if p + 4 > stop:
            return BAD_LENGTH, p
        behind = p + 4 + uint(data, p + 2, 2, little)
        if behind > stop:
            return BAD_LENGTH, stop
        if data[p] == TRANID:
            if xid >= 0 and not _is_same_token(data, xid, p, little):
                return CONTRADICTION, p
            xid = p
        elif data[p] == LOGCSN:
            if csn >= 0 and not _is_same_token(data, csn, p, little):
                return CONTRADICTION, p
            csn = p
        p = behind
    time = uint(data, at + IO_TIME, 8, little)
    if time != 0 and not EARLIEST <= time - EPOCH < LATEST:
        return BAD_HEADER, at + IO_TIME
    form = io_types.FORM_OF[data[at + IO_TYPE]]
    if data[at + IO_TYPE] == TRUNCATE_CODE and _has_data(data, rows, i):
        return CONTRADICTION, at + IO_TYPE
    if data[at + PARTITION] & FIELD_COMP == 0 and form != io_types.NO_IMAGE:
        if not io_types.HAS_FULL_IMAGE[data[at + IO_TYPE]]:
            return UNSUPPORTED, at + PARTITION
        if data[at + SYSKEY_LEN] != 0 and data[at + SYSKEY_LEN] != 4 and data[at + SYSKEY_LEN] != 8:
            return BAD_HEADER, at + SYSKEY_LEN
    is_before = side == BEFORE
    is_whole = form == io_types.AFTER and not _is_update(data[at + IO_TYPE])  # no part of an update in two records
    if form == io_types.BEFORE and not is_before or is_before and (form >= io_types.KEY_AND_AFTER or is_whole):
        return BAD_HEADER, at + BEFORE_AFTER
    return OK, at


@inlined
def _find_ids(data, rows, i, little, row):
    """Note where the record says the CSN and the id of its transaction. Of two the last one counts."""
    p, stop = rows[i, T], rows[i, T] + rows[i, LEN_T]
    while p >= 0 and p + 4 <= stop:
        size = uint(data, p + 2, 2, little)
        if p + 4 + size > stop:
            return
        if data[p] == TRANID:
            row[XID_AT], row[XID_LEN] = p + 4, size
        elif data[p] == LOGCSN:
            row[CSN_AT], row[CSN_LEN] = p + 4, size
        p += 4 + size


@inlined
def _number_of(data, rows, i, little):
    """A number for a record, by which it is known again when it is written anew, whatever index its table has then."""
    at = rows[i, H]
    place, log = uint(data, at + AUDIT_POS, 8, little), uint(data, at + AUDIT_RBA, 4, little)
    n = (place % PRIME * 257 + log) % PRIME
    if data[at + PARTITION] & HAS_INDEX == 0:
        for k in range(TAIL, rows[i, LEN_H]):
            n = (n * 257 + data[at + k]) % PRIME
    if place == 0 and log == 0:
        n = (n * 257 + data[at + IO_TYPE]) * 257 % PRIME
        for k in range(rows[i, LEN_D]):
            n = (n * 257 + data[rows[i, D] + k]) % PRIME
    return n + 1


@inlined
def _other_id(data, rows, i, end, little, known):
    """The first of these records that says another id of its transaction than the known one (0: none is known before
    them), -1 for none; the id that is known after them."""
    for k in range(i, end):
        own = _id_number(data, rows, k, little)
        if known == 0:
            known = own
        elif own != 0 and own != known:
            return rows[k, AT], known
    return -1, known


@inlined
def _time_behind(largest, ahead, time):
    """The largest IO Time after a change, and one that is not confirmed. A source's first time has none before it."""
    if largest == 0 or time <= largest + MAX_PAUSE:
        return max(largest, time), 0
    if ahead != 0:
        largest = min(ahead, time)  # two changes say that the time has come so far
    return (time, 0) if time <= largest + MAX_PAUSE else (largest, time)


@inlined
def _extent(data, rows, i, num, behind, group):
    """Find the rows of the group that begins at row i, and what it is. Out: False where more has to come to tell."""
    group[FIRST], group[NUM_BEFORE], group[BASE_END], group[CHUNKS_END] = i, 0, i + 1, i + 1
    group[OPERATION], group[FORM] = -1, io_types.NO_IMAGE
    group[FAULT], group[FAULT_AT] = rows[i, ROW_FAULT], rows[i, ROW_FAULT_AT]
    if rows[i, ROW_FAULT]:
        group[WHAT] = FAULTY
        return True
    if rows[i, H] < 0:
        group[WHAT] = FILE_HEADER
        return True
    code = _byte(data, rows, i, IO_TYPE)
    group[WHAT] = _what_of(data, rows, i)
    if group[WHAT] == io_types.UNKNOWN or group[WHAT] == io_types.UNSUPPORTED:
        group[FAULT] = UNKNOWN_OPERATION if group[WHAT] == io_types.UNKNOWN else UNSUPPORTED
        group[FAULT_AT], group[WHAT] = rows[i, H] + IO_TYPE, FAULTY
    has_none = group[WHAT] == io_types.CONTROL or _is_restart(group[WHAT])
    if has_none and _has_data(data, rows, i) and _names_table(data, rows, i):
        group[WHAT], group[FAULT], group[FAULT_AT] = FAULTY, CONTRADICTION, rows[i, H] + IO_TYPE
    if group[WHAT] != io_types.CHANGE:
        return True
    if code == DDL_CODE:
        group[OPERATION] = io_types.TRUNCATE
        return True
    end, fault = _image_end(data, rows, i, num)
    if end < 0 and behind == BLOCK_ENDS:
        end, fault = num, BAD_SEGMENT
    if end < 0:
        return False
    is_pair = _byte(data, rows, i, BEFORE_AFTER) == BEFORE and _is_update(code)
    if is_pair and fault == OK:
        if end == num and behind != BLOCK_ENDS and _byte(data, rows, end - 1, TRANS_IND) < LAST_OF:
            return False
        if end == num or not _is_after_of(data, rows, i, end) or not _goes_on(data, rows, end - 1, end):
            fault = PART_MISSING
        else:
            group[NUM_BEFORE] = end - i
            code = _byte(data, rows, end, IO_TYPE)
            end, fault = _image_end(data, rows, end, num)
            if end < 0 and behind == BLOCK_ENDS:
                end, fault = num, BAD_SEGMENT
            if end < 0:
                return False
    group[OPERATION], group[FORM] = io_types.OPERATION_OF[code], io_types.FORM_OF[code]
    group[BASE_END] = group[CHUNKS_END] = end
    if fault:
        group[WHAT], group[FAULT], group[FAULT_AT] = FAULTY, fault, rows[end - 1, AT]
        return True
    size = rows[end - 1, END] - rows[i, AT]
    base = group[BASE_END] - 1
    while end < num and size < MAX_GROUP and _is_chunk_of(data, rows, base, end) and _goes_on(data, rows, end - 1, end):
        end += 1
        size = rows[end - 1, END] - rows[i, AT]
    group[CHUNKS_END] = end
    return end < num or behind != MORE_MAY_COME or size >= MAX_GROUP or _byte(data, rows, end - 1, TRANS_IND) >= LAST_OF


@inlined
def _is_chunk_of(data, rows, i, j):
    return (
        rows[j, ROW_FAULT] == 0
        and rows[j, H] >= 0
        and io_types.WHAT_OF[_byte(data, rows, j, IO_TYPE)] == io_types.SEGMENT
        and _has_data(data, rows, j)
        and _is_same_table(data, rows, i, j)
    )


@compiled(nogil=True, _nrt=False)
def groups(data, rows, num, little, behind, state, out, transactions):
    """Find the groups of all rows and their place in their transactions.

    In: behind, what follows the data; state as named above. Out:
    out[i] of each group; transactions[n], where its first record says its id and CSN (length 0: nowhere).
    Returns: (number of groups, number of transactions). The last rows are no group while more has to come.
    """
    i, n, txn = 0, 0, 0
    transactions[0] = 0
    is_open, events, largest, in_lob = state[OPEN], state[EVENTS], state[LARGEST_TIME], state[IN_LOB]
    record, xid, ahead = state[RECORD], state[ID], state[AHEAD]
    while i < num:
        group = out[n]
        if not _extent(data, rows, i, num, behind, group):
            break
        what, last_row = group[WHAT], group[CHUNKS_END] - 1
        has_header = _is_readable(rows, i) and _is_readable(rows, last_row)
        first, last = MIDDLE_OF, MIDDLE_OF
        if has_header and data[rows[i, H] + TRANS_IND] <= WHOLE and data[rows[last_row, H] + TRANS_IND] <= WHOLE:
            first, last = data[rows[i, H] + TRANS_IND], data[rows[last_row, H] + TRANS_IND]
        is_first = first == FIRST_OF or first == WHOLE
        if what == io_types.SEGMENT:
            if in_lob and is_open and not is_first and _has_data(data, rows, i):
                group[WHAT] = what = LOB_CHUNK
            else:
                group[WHAT], group[FAULT], group[FAULT_AT] = FAULTY, BAD_SEGMENT, rows[i, AT]
                what = FAULTY
        if what == io_types.CHANGE:
            for k in range(i, group[BASE_END]):
                fault, at = _header_fault(data, rows, k, little)
                if fault and group[FAULT] == OK:
                    group[WHAT], group[FAULT], group[FAULT_AT] = FAULTY, fault, at
            if group[CHUNKS_END] - i > 1 or is_open and not is_first and xid != 0:
                known = xid if is_open and not is_first else 0
                at, _ = _other_id(data, rows, i, group[CHUNKS_END], little, known)
                if at >= 0 and group[FAULT] == OK:
                    group[WHAT], group[FAULT], group[FAULT_AT] = FAULTY, CONTRADICTION, at
            what = group[WHAT]
        is_definition = has_header and io_types.WHAT_OF[_byte(data, rows, i, IO_TYPE)] == io_types.METADATA
        is_event = what == io_types.CHANGE or what == FAULTY and not is_definition
        group[MARK], group[COUNTER], group[IS_LAST], group[TRANSACTION] = NO_MARK, -1, 0, -1
        if what == io_types.RESTART_ABEND:
            if is_open:
                group[MARK] = ABANDONED_BEFORE
            is_open = events = record = xid = 0
        elif (is_event or what == io_types.DDL or what == LOB_CHUNK) and (has_header or is_open):
            if is_first and is_open:
                is_again = xid != 0 and xid == _id_number(data, rows, i, little)
                is_again = is_again and (record == 0 or record == _number_of(data, rows, i, little))
                group[MARK] = ABANDONED_BEFORE if is_again else UNFINISHED_BEFORE
                is_open = 0
            elif is_open and not is_event and last >= LAST_OF:
                is_event = True  # a record that is no change, and ends its transaction
            if not is_open:
                txn += 1
                transactions[txn] = 0
                events = 0 if is_first else 1  # its beginning is not there: what came before was an event at least
                record = _number_of(data, rows, i, little) if is_first else 0
                xid = _id_number(data, rows, i, little) if has_header and last < LAST_OF else 0
                if has_header:
                    _find_ids(data, rows, i, little, transactions[txn])
            is_open = 1 if last == FIRST_OF or last == MIDDLE_OF else 0
            if is_open and xid == 0 and what != FAULTY:
                _, xid = _other_id(data, rows, i, group[CHUNKS_END], little, 0)
            group[TRANSACTION] = txn
            if is_event:
                events += 1
                group[COUNTER], group[IS_LAST] = events, 1 - is_open
        if what == io_types.CHANGE:
            time = uint(data, rows[group[BASE_END] - 1, H] + IO_TIME, 8, little) - EPOCH
            if EARLIEST <= time < LATEST:
                largest, ahead = _time_behind(largest, ahead, time)
        if not is_open:
            events = record = xid = 0
        if what == io_types.CHANGE:
            in_lob = 1 if rows[last_row, END] - rows[i, AT] >= MAX_GROUP else 0
        elif what != LOB_CHUNK and what != io_types.METADATA and what != FILE_HEADER:
            in_lob = 0
        group[IS_OPEN], group[OPEN_TRANSACTION], group[NUM_EVENTS] = is_open, txn, events
        group[FIRST_RECORD], group[TIME], group[IS_IN_LOB] = record, largest, in_lob
        group[ID_NUMBER], group[UNCONFIRMED] = xid, ahead
        i, n = group[CHUNKS_END], n + 1
    return n, txn + 1


@compiled(nogil=True, _nrt=False)
def number_of_id(text):
    """The number for the id of a transaction."""
    return _number_of_text(text, 0, len(text))


@compiled(nogil=True, _nrt=False)
def io_times(data, headers, little, out):
    """IO Time of each record in microseconds since 1970, 0 for none. In: where its fixed part of `H` begins."""
    for i in range(len(headers)):
        time = uint(data, headers[i] + IO_TIME, 8, little)
        out[i] = time - EPOCH if time else 0
