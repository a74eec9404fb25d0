"""The operation model, compiled: one walk over the bytes of a message gives its own members and writes its images and
its header as VARIANT.

Strategy. The walk accepts only what it fully understands: one object from the first byte of the message to its last,
each member once and by a name of the source's options, no escapes in names, in `table`, `op_type`, `op_ts` and the
numbers; `pos` of digits; values certainly of their column's type. At anything else it returns DOUBT, and the message is
left to the exact path; there are no errors here. A table is a plan (fields/compiled/json_values), and so is a feed: its
members, words of op_type and names of the header, see contracts.

Reads and writes: as fields/compiled/json_text and json_values say. Arrays and tokens hold MOST_ITEMS values at most,
together. The header is its members and at most LEN_VALUE, LEN_OBJECT and LEN_MEMBER for each, LEN_VALUE and LEN_MEMBER
for each item, and LEN_OBJECT. Its dictionary is the names of the feed and of the tokens, whose letters are in the
message, and LEN_OFFSET for each name. `scratch_of` and `texts_of` make room by these figures, and `rows` raises
IndexError before it walks a message for which there is no room. tests/test_fuzz.py holds all this with bounds checking
on.
"""

import numpy as np

from inlet.fields.compiled.basics import put, put_integer
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.json_text import (
    DOUBT,
    LEN_GAP,
    LEN_VALUE,
    copy_alone,
    is_null,
    is_same,
    is_utf8,
    move,
    next_member,
    put_letters,
    put_text,
    read_member,
    read_truth,
    skip_blanks,
    text_end,
)
from inlet.fields.compiled.json_values import (
    KEY,
    LEN_MEMBER,
    LEN_OBJECT,
    NEED,
    NO_DAY,
    NOT_NULL,
    put_object,
    read_clock,
    read_day,
    read_image,
    read_number,
)

INSERT, UPDATE, DELETE, TRUNCATE, UPSERT = range(5)
OP_TYPE, OP_TS, CURRENT_TS, POS, PRIMARY_KEYS, TOKENS = range(6)  # roles that the header has, each by its own slot
TABLE, BEFORE, AFTER, XID, SEQNO, RBA, NUM_ROLES = range(6, 13)  # behind them the feed's header_members
NUM_SLOTS = 6  # of the header, without header_members
MEMBER, NUM_MEMBERS, WORD, NUM_WORDS, SHIFT, IS_UTC = range(6)  # of a feed: first row and number; an option; a flag
TOKEN, LEN_TOKEN, SLOT, NAMES, LEN_NAMES, METADATA, LEN_METADATA = range(6, 13)  # letters: place and length
IS_NULL_MISSING, IS_ABSENT_NULL, NUM_FEED = range(13, 16)  # null_means, absent_means
TEXTS = T_SEQ, T_POSITION, T_TRANSACTION, T_COLUMN_MASK, T_BEFORE, T_AFTER, T_HEADER, T_NAMES = range(8)
N_TIME, NUM_VALID = 8, 9  # validity of the time, behind that of the texts
ROW, PLACE, OPER, TIME, NUM_NUMBERS = range(5)
NONE = -2  # in place of a length: null, or an object without members
LEN_SEQ, LEN_NO_TIME, LEN_RBA, LEN_POS = 35, 16, 10, 40
MOST_ITEMS = 48
MOST_NAMES = 200  # of a feed's header: with the items, less than a byte counts
LEN_OFFSET = 4
COMPILED = {"_nrt": False, "forceinline": True}


def scratch_of(ends: np.ndarray, num_columns: int, num_members: int) -> tuple:
    """Working space of `rows`: a message; values of both images, their places; start and length of each member, of the
    transaction's token; values of the header, their places; items, their places, names and order.
    """
    longest = int(np.diff(ends).max(initial=0))
    return (
        np.empty(longest + LEN_GAP, np.uint8),
        np.empty((2, longest + LEN_VALUE * num_columns), np.uint8),
        np.empty((2, 2, num_columns), np.int64),
        np.empty((num_members + 1, 2), np.int64),
        np.empty(_len_header(longest, num_members), np.uint8),
        np.empty((2, num_members), np.int64),
        np.empty(longest + LEN_VALUE * MOST_ITEMS, np.uint8),
        np.empty((5, MOST_ITEMS), np.int64),
    )


def len_images(ends: np.ndarray, num_columns: int, num_members: int, len_names: int) -> int:
    """Bytes that the images, headers or dictionaries of these messages take at most."""
    return int(ends[-1] - ends[0]) + (len(ends) - 1) * max(
        LEN_OBJECT + (LEN_MEMBER + LEN_VALUE) * num_columns,
        _len_header(0, num_members),
        _len_dictionary(0, num_members, len_names),
    )


def texts_of(ends: np.ndarray, num_columns: int, num_members: int, len_names: int) -> tuple:
    """Room for the output of many lengths: bytes and ends by column of TEXTS."""
    num, size = len(ends) - 1, int(ends[-1] - ends[0])
    largest = len_images(ends, num_columns, num_members, len_names)
    lengths = [LEN_SEQ * num, size, size, (num_columns + 7) // 8 * num, largest, largest, largest, largest]
    return tuple(np.empty(length, np.uint8) for length in lengths), np.zeros((len(TEXTS), num + 1), np.int64)


@compiled(**COMPILED)
def _len_header(length, num_members):
    return (
        length
        + num_members * (LEN_VALUE + LEN_OBJECT + LEN_MEMBER)
        + MOST_ITEMS * (LEN_VALUE + LEN_MEMBER)
        + LEN_OBJECT
    )


@compiled(**COMPILED)
def _len_dictionary(length, num_members, len_names):
    return length + len_names + (num_members + MOST_ITEMS + 2) * LEN_OFFSET


@compiled(**COMPILED)
def _check_room(length, num_columns, num_members, len_names, scratch, texts, k):
    """Raise IndexError unless there is room to walk a message of that length and for the texts of row k, by the figures
    above.
    """
    d, work, places, fields, header, header_places, items, item_places = scratch
    if (
        len(d) < length + LEN_GAP
        or work.shape[1] < length + LEN_VALUE * num_columns
        or places.shape[2] < num_columns
        or len(fields) < num_members + 1
        or len(header) < _len_header(length, num_members)
        or header_places.shape[1] < num_members
        or len(items) < length + LEN_VALUE * MOST_ITEMS
        or item_places.shape[1] < MOST_ITEMS
    ):
        raise IndexError("no room to walk a message")
    image = length + LEN_OBJECT + (LEN_MEMBER + LEN_VALUE) * num_columns
    for text in range(len(texts[0])):
        most = length
        if text == T_SEQ:
            most = LEN_SEQ
        elif text == T_COLUMN_MASK:
            most = (num_columns + 7) // 8
        elif text == T_BEFORE or text == T_AFTER:
            most = image
        elif text == T_HEADER:
            most = _len_header(length, num_members)
        elif text == T_NAMES:
            most = _len_dictionary(length, num_members, len_names)
        if len(texts[0][text]) - texts[1][text, k] < most:
            raise IndexError("no room for the texts of a message")


@compiled(**COMPILED)
def find_tables(letters, ends, feed_of, feeds, found):
    """Of each message where the text of the first member of the name of `table` stands, in whatever object, and its
    length, -1 for none: what is probably its table. It reads no byte of another message.
    """
    feed_rows, names, members = feeds[0], feeds[1], feeds[2]
    for i in range(len(ends) - 1):
        found[i, 0], found[i, 1] = ends[i], -1
        if feed_of[i] < 0:
            continue
        row = feed_rows[feed_of[i], MEMBER] + TABLE
        at, length = members[row, 0], members[row, 1]
        stop = ends[i + 1]
        for start in range(ends[i], stop - length - 1):
            if letters[start] != 34 or letters[start + length + 1] != 34:
                continue
            if not is_same(letters, start + 1, start + 1 + length, names, at, at + length):
                continue
            begin = _text_behind(letters, start + length + 2, stop)
            end = begin
            while begin >= 0 and end < stop and letters[end] != 34 and letters[end] != 92:
                end += 1
            if begin >= 0 and end < stop and letters[end] == 34:
                found[i, 0], found[i, 1] = begin, end - begin
                break


@compiled(**COMPILED)
def gather(letters, found, out, ends):
    """The texts that `find_tables` found, one behind the other, and their ends. In: room for them all."""
    for i in range(len(found)):
        ends[i + 1] = move(letters, found[i, 0], max(found[i, 1], 0), out, ends[i])


@compiled(**COMPILED)
def _text_behind(letters, at, stop):
    """The first letter of a text behind a colon, DOUBT for another value."""
    for wanted in (58, 34):
        while at < stop and (letters[at] == 32 or letters[at] == 10 or letters[at] == 13 or letters[at] == 9):
            at += 1
        if at >= stop or letters[at] != wanted:
            return DOUBT
        at += 1
    return at


@compiled(**COMPILED)
def _digits_end(d, i):
    while 48 <= d[i] < 58:
        i += 1
    return i


@compiled(**COMPILED)
def _text(d, i):
    """Text or null: (place behind, start, length or NONE)."""
    if is_null(d, i):
        return i + 4, i, NONE
    if d[i] != 34:
        return DOUBT, 0, 0
    end = text_end(d, i + 1)
    return (end + 1, i + 1, end - i - 1) if end >= 0 else (DOUBT, 0, 0)


@compiled(**COMPILED)
def _text_or_integer(d, i):
    """Text, null or a number of digits: (place behind, start, length or NONE)."""
    start = i + (d[i] == 45)
    end = _digits_end(d, start)
    if end == start:
        return _text(d, i)
    return (end, i, end - i) if d[start] != 48 or end == start + 1 else (DOUBT, 0, 0)


@compiled(**COMPILED)
def _put_scalar(d, i, out, pos):
    """A value that is no object and no array, as the header holds it: (place behind, next place in the output). A
    number that is no integer is in doubt.
    """
    if d[i] == 34:
        return put_text(d, i + 1, out, pos)
    if is_null(d, i):
        out[pos] = 0
        return i + 4, pos + 1
    end, truth = read_truth(d, i)
    if end >= 0:
        out[pos] = (1 if truth else 2) << 2
        return end, pos + 1
    end, n, scale, _, _, is_padded = read_number(d, i)
    if end < 0 or scale or is_padded or not -(10**18) < n < 10**18 or d[end] == 46 or d[end] == 101 or d[end] == 69:
        return DOUBT, 0
    return end, put_integer(out, pos, n)


@compiled(**COMPILED)
def _put_array(d, i, num, items, item_places, out, pos):
    """An array of scalars: (place behind, next place in the output, items so far)."""
    i, first, at = skip_blanks(d, i + 1), num, 0
    more = d[i] != 93
    i += not more
    while more:
        if num == MOST_ITEMS:
            return DOUBT, 0, 0
        item_places[0, num] = at
        i, at = _put_scalar(d, i, items, at)
        if i < 0:
            return DOUBT, 0, 0
        item_places[1, num] = at
        num += 1
        i = skip_blanks(d, i)
        more = d[i] == 44
        if not more and d[i] != 93:
            return DOUBT, 0, 0
        i = skip_blanks(d, i + 1) if more else i + 1
    len_end = 1 if at < 256 else 2 if at < 65536 else 4
    out[pos] = len_end - 1 << 2 | 3
    out[pos + 1] = num - first
    pos = put(out, pos + 2, 0, len_end)
    for k in range(first, num):
        pos = put(out, pos, item_places[1, k], len_end)
    return i, move(items, 0, at, out, pos), num


@compiled(**COMPILED)
def _read_tokens(d, i, num, feed, names, fields, items, item_places):
    """An object of scalars, to the items: (place behind, items so far). The text of the transaction's token goes to the
    last of the fields.
    """
    at, first = 0, num
    if d[i] != 123:
        return DOUBT, 0
    i, more = skip_blanks(d, i + 1), True
    if d[i] == 125:
        return i + 1, num
    while more:
        a, b, i = read_member(d, i)
        if a < 0 or num == MOST_ITEMS:
            return DOUBT, 0
        if is_same(d, a, b, names, feed[TOKEN], feed[TOKEN] + feed[LEN_TOKEN]):
            end, start, length = _text(d, i)
            if end < 0 or length == NONE:
                return DOUBT, 0
            fields[len(fields) - 1, 0], fields[len(fields) - 1, 1] = start, length
        item_places[0, num] = at
        i, at = _put_scalar(d, i, items, at)
        if i < 0:
            return DOUBT, 0
        item_places[1, num], item_places[2, num], item_places[3, num] = at, a, b
        if not _in_order(d, first, num, item_places):
            return DOUBT, 0
        num += 1
        i, more = next_member(d, i)
        if i < 0:
            return DOUBT, 0
    return i, num


@compiled(**COMPILED)
def _in_order(d, first, num, item_places):
    """Put a token among those before it, by its name; False for a name that is there, or that has letters from U+E000
    on, whose order is another in bytes.
    """
    for k in range(item_places[2, num], item_places[3, num]):
        if d[k] >= 0xEE:
            return False
    rank = num
    while rank > first:
        other = item_places[4, rank - 1]
        order = _compare(d, item_places[2, num], item_places[3, num], item_places[2, other], item_places[3, other])
        if order == 0:
            return False
        if order > 0:
            break
        item_places[4, rank] = other
        rank -= 1
    item_places[4, rank] = num
    return True


@compiled(**COMPILED)
def _compare(d, a, b, other, stop):
    while a < b and other < stop:
        if d[a] != d[other]:
            return np.int64(d[a]) - np.int64(d[other])
        a += 1
        other += 1
    return (b - a) - (stop - other)


@compiled(**COMPILED)
def _put_tokens(first, num, num_slots, items, item_places, out, pos):
    """Tokens as an object, whose names stand in the dictionary behind those of the header."""
    for k in range(first, num):
        item_places[4, k] -= first
    starts, stops, order = item_places[0, first:num], item_places[1, first:num], item_places[4, first:num]
    return put_object(items, starts, stops, order, num - first, num_slots + num - first, num_slots, out, pos)


@compiled(**COMPILED)
def _put_names(d, first, num, feed, feeds, item_places, out, pos):
    """The dictionary of a header: the feed's names, those of tokens behind them; DOUBT where it is long."""
    names, name_ends = feeds[1], feeds[5]
    if first == num:
        return move(names, feed[METADATA], feed[LEN_METADATA], out, pos)
    num_slots, size = feed[NUM_MEMBERS] - NUM_ROLES + NUM_SLOTS, feed[LEN_NAMES]
    for k in range(first, num):
        size += item_places[3, k] - item_places[2, k]
    if size >= 65536:
        return DOUBT
    out[pos] = 1 | 1 << 6
    offsets = put(out, pos + 1, num_slots + num - first, 2)
    offsets = put(out, offsets, 0, 2)
    for rank in range(num_slots):
        offsets = put(out, offsets, name_ends[feed[SLOT] + rank], 2)
    at = offsets + 2 * (num - first)
    at, end = move(names, feed[NAMES], feed[LEN_NAMES], out, at), feed[LEN_NAMES]
    for rank in range(first, num):
        k = first + item_places[4, rank]
        length = item_places[3, k] - item_places[2, k]
        end += length
        offsets = put(out, offsets, end, 2)
        at = move(d, item_places[2, k], length, out, at)
    return at


@compiled(**COMPILED)
def _put_member(d, i, k, num, fields, items, item_places, out, pos):
    """A member that is no image and no token: (place behind, next place in the output, items so far); start and length
    of what is read as text go to the fields.
    """
    fields[k, 0], fields[k, 1] = i, 0
    if k == TABLE or k == OP_TYPE or k == OP_TS:
        i, fields[k, 0], fields[k, 1] = _text(d, i)
    elif k == POS or XID <= k <= RBA:
        i, fields[k, 0], fields[k, 1] = _text_or_integer(d, i)
    elif d[i] == 91 and k != CURRENT_TS:
        return _put_array(d, i, num, items, item_places, out, pos)
    elif is_null(d, i) and k < NUM_ROLES:
        i, fields[k, 1] = i + 4, NONE
    elif k == CURRENT_TS and d[i] != 34:
        return DOUBT, 0, 0
    else:
        i, pos = _put_scalar(d, i, out, pos)
        return i, pos, num
    if i >= 0 and k < NUM_SLOTS and fields[k, 1] != NONE:
        pos = put_letters(d, fields[k, 0], fields[k, 1], out, pos)
    return i, pos, num


@compiled(**COMPILED)
def message(letters, start, end, feed, feeds, plan, names, scratch):
    """Walk one message: its tokens among the items as (first, behind the last), or DOUBT. fields: start and length by
    member, length NONE for null, DOUBT for missing. Places of the header: -1 for what is not in it.
    """
    d, work, places, fields, header, header_places, items, item_places = scratch
    feed_names, members, num_members = feeds[1], feeds[2], feed[NUM_MEMBERS]
    fields[:, 1] = DOUBT
    header_places[0, :] = -1
    end -= start
    if copy_alone(letters, start, end, d) >= 128 and not is_utf8(d, 0, end):
        return DOUBT, 0
    if d[0] != 123:
        return DOUBT, 0
    i, more = skip_blanks(d, 1), True
    guess, pos, num, first, last = 0, 0, 0, 0, 0
    while more:
        a, b, i = read_member(d, i)
        if a < 0:
            return DOUBT, 0
        tried = 0
        while tried < num_members:
            at = members[feed[MEMBER] + guess, 0]
            if is_same(d, a, b, feed_names, at, at + members[feed[MEMBER] + guess, 1]):
                break
            guess = guess + 1 if guess + 1 < num_members else 0
            tried += 1
        k = guess
        if tried == num_members or fields[k, 1] != DOUBT:
            return DOUBT, 0
        slot = k if k < NUM_SLOTS else k - NUM_ROLES + NUM_SLOTS if k >= NUM_ROLES else -1
        before = pos
        if k == BEFORE or k == AFTER:
            is_empty = d[i] == 123 and d[skip_blanks(d, i + 1)] == 125
            if is_empty or is_null(d, i):
                i, fields[k, 1] = skip_blanks(d, i + 1) + 1 if is_empty else i + 4, NONE
            else:
                n = k - BEFORE
                i, fields[k, 1] = read_image(d, i, plan, names, work[n], places[n, 0], places[n, 1]), 1
        elif k == TOKENS:
            fields[k, 1], first = NONE, num
            if is_null(d, i):
                i += 4
            else:
                i, num = _read_tokens(d, i, num, feed, feed_names, fields, items, item_places)
            if i >= 0 and num > first:
                num_slots = num_members - NUM_ROLES + NUM_SLOTS
                pos = _put_tokens(first, num, num_slots, items, item_places, header, pos)
            last = num
        else:
            i, pos, num = _put_member(d, i, k, num, fields, items, item_places, header, pos)
        if i < 0:
            return DOUBT, 0
        if slot >= 0 and pos > before:
            header_places[0, slot], header_places[1, slot] = before, pos
        guess = guess + 1 if guess + 1 < num_members else 0
        i, more = next_member(d, i)
        if i < 0:
            return DOUBT, 0
    return (first, last) if i == end else (DOUBT, 0)


@compiled(**COMPILED)
def _operation(d, feed, feeds, has_doubles, fields, header_places):
    """INSERT .. UPSERT, if the images are those that it asks for; else DOUBT. A word that is the letter alone is not
    in the header. In: does a column go by the name of a member? Without images that may be either.
    """
    names, words = feeds[1], feeds[3]
    start, length = fields[OP_TYPE, 0], fields[OP_TYPE, 1]
    if length < 0:
        return DOUBT
    for row in range(feed[WORD], feed[WORD] + feed[NUM_WORDS]):
        if is_same(d, start, start + length, names, words[row, 0], words[row, 0] + words[row, 1]):
            oper = words[row, 2]
            if words[row, 3]:
                header_places[0, OP_TYPE] = -1
            has_before, has_after = fields[BEFORE, 1] == 1, fields[AFTER, 1] == 1
            if oper == UPDATE or oper == UPSERT:
                return oper if has_after else DOUBT
            if has_before != (oper == DELETE) or has_after != (oper == INSERT) or oper == TRUNCATE and has_doubles:
                return DOUBT
            return oper
    return DOUBT


@compiled(**COMPILED)
def _put_seq(d, fields, shift, out, at):
    """35 digits: no time, nine of the sequence number, ten of the RBA; or DOUBT."""
    start, length = fields[POS, 0], fields[POS, 1]
    minus = length > 0 and d[start] == 45
    num = length - minus
    start += minus
    if num < 1 or length > LEN_POS:
        return DOUBT
    sequence = 0
    for k in range(num):
        if not 48 <= d[start + k] < 58 or sequence >= 10**16:
            return DOUBT
        if k < num - LEN_RBA:
            sequence = sequence * 10 + (np.int64(d[start + k]) - 48)
    if minus and sequence == 0:
        return DOUBT
    sequence = (-sequence if minus else sequence) + shift
    if not 0 <= sequence < 10**9:
        return DOUBT
    for k in range(LEN_SEQ):
        out[at + k] = 48
    for k in range(9):
        out[at + LEN_NO_TIME + 8 - k] = 48 + sequence % 10
        sequence //= 10
    for k in range(min(num, LEN_RBA)):
        out[at + LEN_SEQ - 1 - k] = d[start + num - 1 - k]
    return at + LEN_SEQ


@compiled(**COMPILED)
def _utc(d, fields, is_utc):
    """The time of op_ts: (microseconds since 1970, is there one), or (0, DOUBT). Digits beyond the microsecond are cut;
    another zone than Z is in doubt.
    """
    i, length = fields[OP_TS, 0], fields[OP_TS, 1]
    if length < 0:
        return 0, 0
    day, between = read_day(d, i), d[i + 10]
    if day == NO_DAY or between != 32 and between != 84 and between != 58:
        return 0, DOUBT
    end, micros, _ = read_clock(d, i + 11)
    if end < 0:
        return 0, DOUBT
    has_zone = d[end] == 90
    if end + has_zone != i + length or not (is_utc or has_zone):
        return 0, DOUBT
    return day * 86_400_000_000 + micros, 1


@compiled(**COMPILED)
def _drop_nulls(starts, values):
    """Take nulls out of an image. Out: is anything left?"""
    is_left = False
    for k in range(len(starts)):
        if starts[k] >= 0 and values[starts[k]] == 0:
            starts[k] = -1
        is_left |= starts[k] >= 0
    return is_left


@compiled(**COMPILED)
def _settle(oper, feed, num, fields, work, places):
    """Make of nulls and of absent columns what the source's options say. Out: False where that leaves no image that the
    operation asks for.
    """
    has_after = fields[AFTER, 1] == 1
    if feed[IS_NULL_MISSING]:
        if fields[BEFORE, 1] == 1 and not _drop_nulls(places[0, 0, :num], work[0]):
            fields[BEFORE, 1] = NONE
        if oper == UPDATE or oper == UPSERT:
            has_after = _drop_nulls(places[1, 0, :num], work[1])
    if feed[IS_ABSENT_NULL] and has_after:
        last = work.shape[1] - 1  # no value reaches it: there are braces around them
        work[1, last] = 0
        for k in range(num):
            if places[1, 0, k] < 0:
                places[1, 0, k], places[1, 1, k] = last, last + 1
    return oper != DELETE or fields[BEFORE, 1] == 1


@compiled(**COMPILED)
def _hold(oper, fields, plan, work, places):
    """Do the images hold to the contract: a value of each column of the key, in an update in either image, of before
    all of it or nothing; no null where it takes none?
    """
    old, new = places[0, 0], places[1, 0]
    num_key, num_lacking = 0, 0
    for k in range(len(plan)):
        has_old = fields[BEFORE, 1] == 1 and old[k] >= 0
        has_new = fields[AFTER, 1] == 1 and new[k] >= 0
        if plan[k, NEED] == KEY and oper != TRUNCATE:
            if has_old and work[0, old[k]] == 0 or has_new and work[1, new[k]] == 0 or not (has_old or has_new):
                return False
            num_key += 1
            num_lacking += not has_old
        elif plan[k, NEED] == NOT_NULL and has_new and work[1, new[k]] == 0:
            return False
    return oper != UPDATE and oper != UPSERT or num_lacking == 0 or num_lacking == num_key


@compiled(**COMPILED)
def _put_supplied(starts, num, out, pos):
    """The mask of the columns of an image, without bytes of zeros at its end: the place behind it, or where it would
    begin if all are there.
    """
    count, end = 0, pos
    for k in range(0, num, 8):
        byte = 0
        for bit in range(min(8, num - k)):
            if starts[k + bit] >= 0:
                byte |= 1 << bit
                count += 1
        out[pos + (k >> 3)] = byte
        if byte:
            end = pos + (k >> 3) + 1
    return pos if count == num else end


@compiled(**COMPILED)
def _copy(d, start, length, out, ends, valid, k):
    """A text of the message into row k of an output; null for a length below zero."""
    ends[k + 1] = move(d, start, max(length, 0), out, ends[k])
    valid[k] = length >= 0


@compiled(**COMPILED)
def _put_row(oper, first, last, feed, feeds, plan, order, scratch, texts, numbers, valid, k):
    """All columns of one row; False in doubt, and then nothing counts of what was written."""
    d, work, places, fields, header, header_places, _, item_places = scratch
    out, ends = texts
    if not _settle(oper, feed, len(plan), fields, work, places):
        return False
    ends[T_SEQ, k + 1], valid[T_SEQ, k] = _put_seq(d, fields, feed[SHIFT], out[T_SEQ], ends[T_SEQ, k]), True
    numbers[TIME, k], has_time = _utc(d, fields, feed[IS_UTC])
    valid[N_TIME, k] = has_time == 1
    if ends[T_SEQ, k + 1] < 0 or has_time < 0 or not _hold(oper, fields, plan, work, places):
        return False
    _copy(d, fields[POS, 0], fields[POS, 1], out[T_POSITION], ends[T_POSITION], valid[T_POSITION], k)
    token = len(fields) - 1
    of = XID if fields[XID, 1] >= 0 else token
    _copy(d, fields[of, 0], fields[of, 1], out[T_TRANSACTION], ends[T_TRANSACTION], valid[T_TRANSACTION], k)
    ends[T_COLUMN_MASK, k + 1] = ends[T_COLUMN_MASK, k]
    if oper != TRUNCATE:
        supplied = places[0 if oper == DELETE else 1, 0]
        ends[T_COLUMN_MASK, k + 1] = _put_supplied(supplied, len(plan), out[T_COLUMN_MASK], ends[T_COLUMN_MASK, k])
    valid[T_COLUMN_MASK, k] = ends[T_COLUMN_MASK, k + 1] > ends[T_COLUMN_MASK, k]
    for column, n in ((T_BEFORE, 0), (T_AFTER, 1)):
        ends[column, k + 1], valid[column, k] = ends[column, k], fields[BEFORE + n, 1] == 1
        if valid[column, k]:
            ends[column, k + 1] = put_object(
                work[n], places[n, 0], places[n, 1], order, len(plan), len(plan), 0, out[column], ends[column, k]
            )
    num_slots = feed[NUM_MEMBERS] - NUM_ROLES + NUM_SLOTS
    slots = feeds[4][feed[SLOT] : feed[SLOT] + num_slots]
    ends[T_HEADER, k + 1] = put_object(
        header, header_places[0], header_places[1], slots, num_slots, num_slots, 0, out[T_HEADER], ends[T_HEADER, k]
    )
    ends[T_NAMES, k + 1] = _put_names(d, first, last, feed, feeds, item_places, out[T_NAMES], ends[T_NAMES, k])
    valid[T_HEADER, k] = valid[T_NAMES, k] = True
    return ends[T_NAMES, k + 1] >= 0


@compiled(**COMPILED)
def rows(letters, ends, feed_of, places_of, tables, feeds, len_names, plans, doubles, texts, numbers, valid, scratch):
    """Walk every message of a batch; the rows of those that are in no doubt. Out: their number.

    In: bytes, where each message begins and the last ends; its feed and its table, by what `find_tables` found, -1 for
    none. feeds: rows; letters; members; words: start, length, operation, whether it is the letter; slots of the header
    by name; ends of their names. plans: rows of columns, first row by place, letters of names, columns by rank.
    doubles: by place, does a column go by the name of a member? texts: bytes, ends by column of TEXTS; numbers, valid:
    columns of NUMBERS, all columns.
    """
    plan, first, names, orders = plans
    d, fields, header_places, k = scratch[0], scratch[3], scratch[5], 0
    for i in range(len(ends) - 1):
        place = places_of[i]
        if place < 0 or feed_of[i] < 0:
            continue
        feed = feeds[0][feed_of[i]]
        a, b = first[place], first[place + 1]
        _check_room(ends[i + 1] - ends[i], b - a, feed[NUM_MEMBERS], len_names, scratch, texts, k)
        token, last = message(letters, ends[i], ends[i + 1], feed, feeds, plan[a:b], names, scratch)
        if token < 0 or fields[TABLE, 1] < 0 or fields[TABLE, 0] != tables[i, 0] - ends[i]:
            continue
        oper = _operation(d, feed, feeds, doubles[place], fields, header_places)
        if oper < 0 or not _put_row(
            oper, token, last, feed, feeds, plan[a:b], orders[a:b], scratch, texts, numbers, valid, k
        ):
            continue
        numbers[ROW, k], numbers[PLACE, k], numbers[OPER, k] = i, place, oper
        k += 1
    return k
