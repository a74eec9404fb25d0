"""Compiled walks over usage journals: where their items lie. The layouts are in files.py.

Strategy. These walks answer where they are certain, and what they answer is what items.py, the plain reader, finds:
`heads` marks a journal whose items are not all as they have to be, and that one is read by the plain reader (block.py).

Bounds: an item is held against the end of its journal before its data is used; a tag is read where 4 bytes are left.
`items` takes as many items as it has rows, and no more are written. `intern` has twice as many cells as there are
journals, so that one is always free.
"""

import numpy as np

from inlet.codecs.linkexpress.journal.frame import LEN_JOURNAL_HEAD
from inlet.codecs.linkexpress.journal.frames import END, IS_ODD, LITTLE, START
from inlet.codecs.linkexpress.journal.items import CHECKPOINT, LEN_CHECKPOINT, LEN_TAG, LEN_VALIDITY
from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

# system items, in the order of their codes
TIME, TRNID, STS, DBKIND, DBOP, STORAGE, RESOURCE = range(7)
FIRST_CODE, NUM_SYSTEM = 0x81, 7
# a head: where the data of each system item is, -1 where it is not there or not valid; how long the names are; are all
# items found
LEN_STORAGE, LEN_RESOURCE, IS_CERTAIN = range(NUM_SYSTEM, NUM_SYSTEM + 3)
NUM_HEAD = NUM_SYSTEM + 3

# how a code's width comes of its information, and two numbers for that
NO_CODE, OF_LENGTH, OF_DIGITS, OF_PACKED, OF_SYSTEM = range(5)
RULE, TIMES, PLUS = range(3)
SHORT_NAME, LONG_NAME = 38, 72
# how journals are written
IS_TAGGED, IS_COMPRESSED, SYSTEM_FIRST, HAS_CHECKPOINT, VALIDITY_ORDER = range(5)
NUM_HOW = 5
BYTES_ORDER, LITTLE_ORDER, OPEN_ORDER = range(3)  # VALIDITY_ORDER of what is in little-endian

LEN_NAMED = LEN_VALIDITY + LEN_CHECKPOINT  # of the item of a checkpoint
VALID, NULL, MISSING, INVALID = range(4)
# an item of a column: where its data is, its bytes, its state, code and information of its tag (-1: none)
AT, WIDTH, STATE, TAG = range(4)
NUM_ITEM = 4
UNCERTAIN = -1
NO_TABLE, NO_CONTRACT = -1, -2  # in place of a journal's table: the plain reader has to find it; it has no contract
NO_TAG = -1


@inlined
def _short_state(byte):
    """The state of a validity of one byte, UNCERTAIN where it is none."""
    if byte == 0:
        return VALID
    if byte == 0x0F:
        return NULL
    return MISSING if byte == 0xF0 else INVALID if byte == 0xFF else UNCERTAIN


@inlined
def _long_state(data, at, order):
    n = uint(data, at, 2, order == LITTLE_ORDER)
    if n == 0 or n == 0xFFFF:
        return VALID if n == 0 else INVALID
    if n == 0xFF and order != OPEN_ORDER:
        return NULL
    return MISSING if n == 0xFF00 and order != OPEN_ORDER else UNCERTAIN


@inlined
def _put_item(items, n, at, width, state, tag):
    if n < len(items):
        items[n, AT], items[n, WIDTH], items[n, STATE], items[n, TAG] = at, width, state, tag


@inlined
def tagged(data, start, end, little, rules, head, items):
    """Find the items of a tagged journal. Out: head, all but IS_CERTAIN; items, of the columns. Returns: the number of
    columns, UNCERTAIN where not all items are found, one is there twice, or there is a checkpoint that is valid.
    """
    for k in range(NUM_SYSTEM):
        head[k] = -1
    at, num, num_valid, seen, has_checkpoint = start + LEN_JOURNAL_HEAD, 0, 0, 0, False
    while at < end:
        if at + LEN_TAG > end or has_checkpoint:
            return UNCERTAIN
        code, state = np.int64(data[at]), _short_state(data[at + 3])
        rule, n = rules[code, RULE], uint(data, at + 1, 2, little)
        if rule == OF_LENGTH:
            width = rules[code, TIMES] * n + rules[code, PLUS]
        elif rule == OF_DIGITS:
            width = np.int64(data[at + 1]) + rules[code, PLUS]
        elif rule == OF_PACKED:
            width = np.int64(data[at + 1]) // 2 + 1
        else:
            width = n
        place = at + LEN_TAG
        if rule == NO_CODE or state == UNCERTAIN or place + width > end:
            return UNCERTAIN
        num_valid += state == VALID
        if rule == OF_SYSTEM:
            k = code - FIRST_CODE
            is_name = k == STORAGE or k == RESOURCE
            if seen >> k & 1 or not is_name and n != rules[code, PLUS]:
                return UNCERTAIN
            if is_name and n != SHORT_NAME and n != LONG_NAME:
                return UNCERTAIN
            seen |= 1 << k
            if state == VALID:
                head[k] = place
            if is_name:
                head[LEN_STORAGE if k == STORAGE else LEN_RESOURCE] = n
        elif code == CHECKPOINT:
            if state == VALID:
                return UNCERTAIN
            has_checkpoint = True
        else:
            tag = code << 16 | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2])
            _put_item(items, num, place, width, state, tag)
            num += 1
        at = place + width
    return num if num_valid == uint(data, start + 4, 2, little) else UNCERTAIN


@inlined
def untagged(data, start, end, little, how, system, len_system, widths, first, stop, len_columns, head, items):
    """The same of a journal whose items have no tags. In: system items as (item, width); its columns, rows of widths,
    and the bytes of their items, UNCERTAIN where they are not known: then nothing can be said of them.
    """
    for k in range(NUM_SYSTEM):
        head[k] = -1
    is_checkpoint_there = how[HAS_CHECKPOINT] and not how[IS_COMPRESSED]
    len_checkpoint = LEN_NAMED if is_checkpoint_there else 0
    begin, of_validities = start + LEN_JOURNAL_HEAD, how[VALIDITY_ORDER] if little else BYTES_ORDER
    of_system = LITTLE_ORDER if of_validities == OPEN_ORDER else of_validities  # valid or not is enough
    if len_columns == UNCERTAIN:
        is_as_long = begin + len_system <= end and (not how[HAS_CHECKPOINT] or begin + len_system + LEN_NAMED != end)
    else:  # a checkpoint may be as long, whose system items stand elsewhere
        may_be_one = how[IS_COMPRESSED] and how[HAS_CHECKPOINT] and not how[SYSTEM_FIRST] and len_columns == LEN_NAMED
        is_as_long = begin + len_system + len_columns + len_checkpoint == end and not may_be_one
    if not is_as_long:
        return UNCERTAIN
    num_valid, at = 0, begin if how[SYSTEM_FIRST] else end - len_checkpoint - len_system
    for k in range(len(system)):
        state, name = _long_state(data, at, of_system), system[k, 0]
        if state == UNCERTAIN:
            return UNCERTAIN
        if state == VALID:
            num_valid += 1
            head[name] = at + LEN_VALIDITY
        if name == STORAGE or name == RESOURCE:
            head[LEN_STORAGE if name == STORAGE else LEN_RESOURCE] = system[k, 1]
        at += LEN_VALIDITY + system[k, 1]
    if len_columns == UNCERTAIN:
        return 0
    at = begin + len_system if how[SYSTEM_FIRST] else begin
    for r in range(first, stop):
        state = _long_state(data, at, of_validities)
        if state == UNCERTAIN:
            return UNCERTAIN
        num_valid += state == VALID
        _put_item(items, r - first, at + LEN_VALIDITY, widths[r], state, NO_TAG)
        at += LEN_VALIDITY + widths[r]
    if is_checkpoint_there:
        state = _long_state(data, end - len_checkpoint, of_system)
        if state == UNCERTAIN or state == VALID:
            return UNCERTAIN
    return stop - first if num_valid == uint(data, start + 4, 2, little) else UNCERTAIN


@compiled(nogil=True, _nrt=False)
def heads(
    data, records, num, rules, how, system, len_system, tables, widths, bounds, lengths, num_all, len_all, items, rows
):  # fmt: skip
    """Read the heads of journals. In: of those that are not tagged the table of each, of each table its rows of widths
    and the bytes of its items; how many rows and bytes all tables have whose columns a journal holds.
    """
    for i in range(num):
        start, end, little, head = records[i, START], records[i, END], records[i, LITTLE], rows[i]
        found, table = np.int64(UNCERTAIN), tables[i]
        if records[i, IS_ODD]:
            pass
        elif how[IS_TAGGED]:
            found = tagged(data, start, end, little, rules, head, items)
        elif table >= 0 or num_all or how[IS_COMPRESSED] and table == NO_CONTRACT:
            first, stop, len_columns = np.int64(0), num_all, len_all
            if how[IS_COMPRESSED] and table == NO_CONTRACT:
                len_columns = UNCERTAIN
            elif how[IS_COMPRESSED]:
                first, stop, len_columns = bounds[table, 0], bounds[table, 1], lengths[table]
            found = untagged(
                data, start, end, little, how, system, len_system, widths, first, stop, len_columns, head, items
            )
        head[IS_CERTAIN] = found != UNCERTAIN


@compiled(nogil=True, _nrt=False)
def places(data, records, num, how, system, len_system, name, rows):
    """Where a name is in untagged journals, whose system items stand where they begin or end."""
    len_behind = LEN_NAMED if how[HAS_CHECKPOINT] and not how[IS_COMPRESSED] else 0
    for i in range(num):
        start, end, head = records[i, START], records[i, END], rows[i]
        head[name] = -1
        at = start + LEN_JOURNAL_HEAD if how[SYSTEM_FIRST] else end - len_behind - len_system
        if records[i, IS_ODD] or at < start + LEN_JOURNAL_HEAD or at + len_system > end:
            continue
        for k in range(len(system)):
            if system[k, 0] == name:
                head[LEN_STORAGE if name == STORAGE else LEN_RESOURCE] = system[k, 1]
                if uint(data, at, 2, False) == 0:  # valid, in any order
                    head[name] = at + LEN_VALIDITY
            at += LEN_VALIDITY + system[k, 1]


@compiled(nogil=True, _nrt=False)
def intern(data, rows, name, len_name, little, cells, firsts, which):
    """Number the different texts of a system item. In: cells, -1 each, twice as many as rows, a power of two. Out:
    firsts, a row for each text; which[i], the number of its text, -1 for none. Returns: how many there are.
    """
    num, mask, last = 0, len(cells) - 1, np.int64(-1)
    for i in range(len(rows)):
        which[i] = -1
        at, size = rows[i, name], rows[i, len_name]
        if at < 0:
            continue
        cell, found = np.int64(-1), last
        while True:
            if found >= 0:
                j = firsts[found]
                other, k = rows[j, name], 0
                if rows[j, len_name] == size and little[j] == little[i]:
                    while k < size and data[at + k] == data[other + k]:
                        k += 1
                if k == size:
                    break
            if cell < 0:
                key = np.int64(0)
                for k in range(min(size, 24)):
                    key = (key * 31 + np.int64(data[at + k])) & 0xFFFFFFFFFFFF
                cell = (key ^ key >> 17) & mask
            else:
                cell = (cell + 1) & mask
            found = cells[cell]
            if found < 0:
                cells[cell], firsts[num], found = num, i, num
                num += 1
                break
        which[i] = last = found
    return num


@compiled(nogil=True, _nrt=False)
def numbers(data, rows, name, little, out):
    """The number that a system item of two bytes holds, without a sign; -1 where there is none."""
    for i in range(len(rows)):
        out[i] = uint(data, rows[i, name], 2, little[i]) if rows[i, name] >= 0 else -1
