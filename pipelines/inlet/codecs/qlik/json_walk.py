"""Qlik JSON, compiled: one walk over the bytes of a message gives its headers and writes its images as VARIANT.

Strategy. The walk accepts only what it fully understands: members of Qlik's shapes, each at most once, in any order, no
escapes in names and headers, numbers without exponent up to 18 digits, values certainly of their column's type. At
anything else it returns DOUBT and the message is left to the exact path; there are no errors here. Every function takes
a place and returns the next one. A walk that ends not exactly at its message's end is in doubt. The plan of a table
(columns, types, sorted names) is integers, see json_contracts.

Reads and writes: as fields/compiled/json_text and json_values say. `scratch_of` and `texts_of` make room by these
figures, and `rows` raises IndexError before it walks a message for which there is no room. tests/test_fuzz.py holds all
this with bounds checking on.
"""

import numpy as np

from inlet.fields.compiled.basics import put_digits
from inlet.fields.compiled.cache import compiled
from inlet.fields.compiled.json_text import (
    DOUBT,
    LEN_GAP,
    LEN_VALUE,
    copy_alone,
    hex_digit,
    is_null,
    is_rest_blank,
    is_same,
    is_utf8,
    move,
    next_member,
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
    NOT_NULL,
    put_object,
    read_digits,
    read_image,
    read_number,
    read_time,
)

INSERT, UPDATE, DELETE, REFRESH = range(4)
(
    TOP_MAGIC,
    TOP_TYPE,
    TOP_HEADERS,
    TOP_SCHEMA_ID,
    TOP_SCHEMA,
    TOP_MESSAGE,
    DATA,
    BEFORE,
    HEADERS,
    SCHEMA,
    TABLE,
    OPERATION,
    SEQ,
    AT,
    POSITION,
    TRANSACTION,
    CHANGE_MASK,
    COLUMN_MASK,
    EXTERNAL,
    COUNTER,
    LAST,
    MAGIC_IS,
    TYPE_IS,
    INSERT_IS,
    _,
    _,
    REFRESH_IS,
) = range(27)
WORDS = [
    "magic",
    "type",
    "headers",
    "messageSchemaId",
    "messageSchema",
    "message",
    "data",
    "beforeData",
    "headers",
    "schema",
    "table",
    "operation",
    "changeSequence",
    "timestamp",
    "streamPosition",
    "transactionId",
    "changeMask",
    "columnMask",
    "externalSchemaId",
    "transactionEventCounter",
    "transactionLastEvent",
    "atMSG",
    "DT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "REFRESH",
]
NUM_WORDS = len(WORDS)
TEXTS = T_SEQ, T_POSITION, T_TRANSACTION, T_CHANGE_MASK, T_COLUMN_MASK, T_BEFORE, T_AFTER = range(
    7
)  # outputs of many lengths
N_TIME, N_COUNTER, N_LAST, NUM_VALID = 7, 8, 9, 10  # validity of the numbers that may be null, behind that of the texts
ROW, PLACE, LOAD, OPER, TIME, COUNT, IS_LAST, NUM_NUMBERS = range(8)
LETTERS = np.frombuffer("".join(WORDS).encode(), np.uint8)
ENDS = np.cumsum([0] + [len(word) for word in WORDS])
LEN_SEQ = 35
NONE = -2  # in place of a length: no value
COMPILED = {"_nrt": False, "forceinline": True}


def scratch_of(ends: np.ndarray, num_columns: int) -> tuple:
    """Working space of `rows` and `refreshes`: a message, values of both images, their places, fields, a mask."""
    longest = int(np.diff(ends).max(initial=0))
    return (
        np.empty(longest + LEN_GAP, np.uint8),
        np.empty((2, longest + LEN_VALUE * num_columns), np.uint8),
        np.empty((2, 2, num_columns), np.int64),
        np.empty((NUM_WORDS, 2), np.int64),
        np.empty(longest // 2, np.uint8),
    )


def len_images(ends: np.ndarray, num_columns: int) -> int:
    """Bytes that the before- or after-images of these messages take at most."""
    return int(ends[-1] - ends[0]) + (len(ends) - 1) * (LEN_OBJECT + (LEN_MEMBER + LEN_VALUE) * num_columns)


def texts_of(ends: np.ndarray, num_columns: int) -> tuple:
    """Room for the output of many lengths: bytes and ends by column of TEXTS."""
    num, size, images = len(ends) - 1, int(ends[-1] - ends[0]), len_images(ends, num_columns)
    lengths = [LEN_SEQ * num, size, size, size, size, images, images]
    return tuple(np.empty(length, np.uint8) for length in lengths), np.zeros((len(TEXTS), num + 1), np.int64)


@compiled(**COMPILED)
def _check_scratch(length, num_columns, scratch):
    """Raise IndexError unless there is room to walk a message of that length, by the figures above."""
    buffer, work, places, _, mask = scratch
    if (
        len(buffer) < length + LEN_GAP
        or work.shape[1] < length + LEN_VALUE * num_columns
        or places.shape[2] < num_columns
        or len(mask) < length // 2
    ):
        raise IndexError("no room to walk a message")


@compiled(**COMPILED)
def _check_texts(length, num_columns, texts, k):
    """Raise IndexError unless there is room for the texts of row k."""
    image = length + LEN_OBJECT + (LEN_MEMBER + LEN_VALUE) * num_columns
    for text in range(len(texts[0])):
        most = LEN_SEQ if text == T_SEQ else image if text == T_BEFORE or text == T_AFTER else length
        if len(texts[0][text]) - texts[1][text, k] < most:
            raise IndexError("no room for the texts of a message")


@compiled(**COMPILED)
def _word(d, i, j, first, last):
    """Which of the words first..last stands at i..j, else DOUBT."""
    for word in range(first, last + 1):
        if is_same(d, i, j, LETTERS, ENDS[word], ENDS[word + 1]):
            return word
    return DOUBT


@compiled(**COMPILED)
def _header(d, i):
    """Text or null: (place behind, start, length), NONE for null and ""."""
    if is_null(d, i):
        return i + 4, i, NONE
    if d[i] != 34:
        return DOUBT, 0, 0
    end = text_end(d, i + 1)
    return (DOUBT, 0, 0) if end < 0 else (end + 1, i + 1, end - i - 1 if end > i + 1 else NONE)


@compiled(**COMPILED)
def _header_time(d, i):
    """The header timestamp: (place behind, microseconds since 1970, 1 or NONE). A zone other than Z is in doubt."""
    if is_null(d, i):
        return i + 4, 0, NONE
    is_text = d[i] == 34
    i += is_text
    if is_text and d[i] == 34:
        return i + 1, 0, NONE
    millis = read_digits(d, i, 13)
    if millis >= 1_000_000_000_000 and not 48 <= d[i + 13] < 58:
        i, micros = i + 13, millis * 1000
    elif is_text:
        i, micros, _ = read_time(d, i)
        i += i >= 0 and d[i] == 90
    else:
        return DOUBT, 0, 0
    if i < 0 or is_text and d[i] != 34:
        return DOUBT, 0, 0
    return i + is_text, micros, 1


@compiled(**COMPILED)
def _put_image(scratch, starts, ends, plan, order, mask, num_mask, is_after, out, pos):
    """The supplied columns of an image as a VARIANT object, sorted by name; DOUBT if a column that it needs is null or
    absent.
    """
    for k in range(len(plan)):
        if num_mask >= 0 and (k >> 3 >= num_mask or not mask[k >> 3] >> (k & 7) & 1):
            if starts[k] >= 0 and scratch[starts[k]] != 0:
                return DOUBT
            starts[k] = -1
        if plan[k, NEED] == KEY and (starts[k] < 0 or scratch[starts[k]] == 0):
            return DOUBT
        if plan[k, NEED] == NOT_NULL and is_after and starts[k] >= 0 and scratch[starts[k]] == 0:
            return DOUBT
    return put_object(scratch, starts, ends, order, len(plan), len(plan), 0, out, pos)


@compiled(**COMPILED)
def _put_mask(d, start, length, num_columns, out):
    """Big-endian hex text, maybe with 0x before it, as bytes, least significant first: their number without trailing
    zeros; NONE for none, else DOUBT.
    """
    if length == NONE:
        return NONE
    if length > 2 and d[start] == 48 and d[start + 1] | 32 == 120:  # 0x
        start, length = start + 2, length - 2
    if length & 1:
        return DOUBT
    num = 0
    for k in range(length // 2):
        high, low = hex_digit(d[start + length - 2 * k - 2]), hex_digit(d[start + length - 2 * k - 1])
        if high < 0 or low < 0:
            return DOUBT
        byte = high << 4 | low
        if byte:
            if 8 * k >= num_columns or byte >> min(num_columns - 8 * k, 8):
                return DOUBT
            for j in range(num, k):
                out[j] = 0
            out[k] = byte
            num = k + 1
    return num


@compiled(**COMPILED)
def _headers(d, i, fields):
    """The headers object; fields: (start, length) by header. The place behind it."""
    if d[i] != 123:
        return DOUBT
    i, more = skip_blanks(d, i + 1), True
    while more:
        a, b, i = read_member(d, i)
        word = _word(d, a, b, OPERATION, LAST) if a >= 0 else DOUBT
        if word < 0 or fields[word, 1] != DOUBT:
            return DOUBT
        if word == COUNTER and not is_null(d, i):
            end, n, scale, _, _, is_padded = read_number(d, i)
            if end < 0 or scale or is_padded or n < 0 or d[end] == 101 or d[end] == 69:
                return DOUBT
            i, fields[word, 0], fields[word, 1] = end, n, 1
        elif word == LAST and not is_null(d, i):
            i, fields[word, 0] = read_truth(d, i)
            fields[word, 1] = 1
        elif word == AT:
            i, fields[word, 0], fields[word, 1] = _header_time(d, i)
        else:
            i, fields[word, 0], fields[word, 1] = _header(d, i)
            if (word == COUNTER or word == LAST) and i >= 0 and d[i - 1] == 34:
                return DOUBT
        if i < 0:
            return DOUBT
        i, more = next_member(d, i)
        if i < 0:
            return DOUBT
    return i


@compiled(**COMPILED)
def _body(d, i, more, plan, names, work, places, fields):
    """Members of the object that holds data and headers, from the first name or behind the last; the place behind the
    object.
    """
    while more:
        a, b, i = read_member(d, i)
        word = _word(d, a, b, DATA, TABLE) if a >= 0 else DOUBT
        if word < 0 or fields[word, 1] != DOUBT:
            return DOUBT
        if word == HEADERS:
            i = _headers(d, i, fields)
            fields[word, 1] = 1
        elif word == SCHEMA or word == TABLE:
            i, fields[word, 0], fields[word, 1] = _header(d, i)
        elif is_null(d, i):
            i, fields[word, 1] = i + 4, NONE
        else:
            k = word - DATA
            i, fields[word, 1] = read_image(d, i, plan, names, work[k], places[k, 0], places[k, 1]), 1
        if i < 0:
            return DOUBT
        i, more = next_member(d, i)
        if i < 0:
            return DOUBT
    return i


@compiled(**COMPILED)
def message(letters, start, end, plan, names, scratch):
    """Walk one message, enveloped or bare. fields: start and length by word, length NONE for null, DOUBT for
    missing.
    """
    d, work, places, fields, _ = scratch
    fields[:, 1] = DOUBT
    end -= start
    _check_scratch(end, len(plan), scratch)
    some = copy_alone(letters, start, end, d)
    if some >= 128 and not is_utf8(d, 0, end):
        return False
    i = skip_blanks(d, 0)
    if d[i] != 123:
        return False
    i, more, is_envelope = skip_blanks(d, i + 1), True, False
    a, b, _ = read_member(d, i)
    if a >= 0 and _word(d, a, b, DATA, TABLE) >= 0 and not _is_application_headers(d, a, b, i):
        i = _body(d, i, True, plan, names, work, places, fields)
        return i >= 0 and is_rest_blank(d, i, end)
    while more:
        a, b, i = read_member(d, i)
        word = _word(d, a, b, TOP_MAGIC, TOP_MESSAGE) if a >= 0 else DOUBT
        if word < 0 or fields[word, 1] != DOUBT:
            return False
        if word == TOP_MESSAGE:
            if d[i] != 123:
                return False
            i, is_envelope = _body(d, skip_blanks(d, i + 1), True, plan, names, work, places, fields), True
            fields[word, 1] = 1
        else:
            i, fields[word, 0], fields[word, 1] = _header(d, i)
        if i < 0:
            return False
        i, more = next_member(d, i)
        if i < 0:
            return False
    for word, wanted in ((TOP_MAGIC, MAGIC_IS), (TOP_TYPE, TYPE_IS)):
        at = fields[word, 0]
        if fields[word, 1] < 0 or _word(d, at, at + fields[word, 1], wanted, wanted) < 0:
            return False
    return is_envelope and is_rest_blank(d, i, end)


@compiled(**COMPILED)
def _is_application_headers(d, a, b, i):
    """`headers` as the first name: the body's is an object, the envelope's is null."""
    if _word(d, a, b, HEADERS, HEADERS) < 0:
        return False
    return d[read_member(d, i)[2]] != 123


@compiled(**COMPILED)
def _copy(d, start, length, out, ends, valid, k):
    """A text of the message into column k of an output; null for NONE and missing."""
    ends[k + 1] = move(d, start, max(length, 0), out, ends[k])
    valid[k] = length >= 0


@compiled(**COMPILED)
def _put_seq(d, fields, is_load, message, load, starts, out, at):
    """35 digits: the message's own, or of its load, topic, partition and offset. message: topic's digits, partition,
    offset.
    """
    if not is_load:
        start, length = fields[SEQ, 0], fields[SEQ, 1]
        if length != LEN_SEQ:
            return DOUBT
        for j in range(LEN_SEQ):
            if not 48 <= d[start + j] < 58:
                return DOUBT
            out[at + j] = d[start + j]
        return at + LEN_SEQ
    if load < 0 or not 0 <= message[1] < 100_000 or not 0 <= message[2] < 10_000_000_000:
        return DOUBT
    for j in range(16):
        out[at + j] = starts[load, j]
    at = put_digits(message[0], 4, out, at + 16)
    return put_digits(message[2], 10, out, put_digits(message[1], 5, out, at))


@compiled(**COMPILED)
def _is_named(d, fields, table_names, place, must):
    """Do schema and table of the message, where they are given, say the table of that place?"""
    for k, word in ((0, SCHEMA), (1, TABLE)):
        start, length = fields[word, 0], fields[word, 1]
        if length < 0 and must:
            return False
        a, b = table_names[1][2 * place + k], table_names[1][2 * place + k + 1]
        if length >= 0 and not is_same(d, start, start + length, table_names[0], a, b):
            return False
    return True


@compiled(**COMPILED)
def _operation(d, fields):
    """INSERT .. REFRESH, if the images are those that it asks for; else DOUBT."""
    start, length = fields[OPERATION, 0], fields[OPERATION, 1]
    word = _word(d, start, start + length, INSERT_IS, REFRESH_IS) if length >= 0 else DOUBT
    has_data, has_before, oper = fields[DATA, 1] == 1, fields[BEFORE, 1] == 1, word - INSERT_IS
    if word < 0 or (has_data == has_before if oper == DELETE else not has_data or has_before and oper != UPDATE):
        return DOUBT
    return oper


@compiled(**COMPILED)
def _load(loads, place, at):
    """The last load of the table that began before and had not ended; loads: place, first, last, in order of first."""
    for k in range(len(loads) - 1, -1, -1):
        if loads[k, 0] == place and loads[k, 1] <= at <= loads[k, 2]:
            return k
    return DOUBT


@compiled(**COMPILED)
def rows(letters, ends, places_of, messages, plans, table_names, loads, starts, texts, numbers, valid, scratch):
    """Walk every message of a batch; the rows of those that are in no doubt. Out: their number.

    In: bytes, where each message begins and the last ends; its place, plus the number of places if it must name its
    table; topic's digits, partition, offset, time. plans: rows, first row by place, names' letters, columns by rank.
    texts: bytes, ends by column of TEXTS; numbers, valid: columns of NUMBERS, all columns."""
    plan, first, names, orders = plans
    fields = scratch[3]
    num_places, k = len(first) - 1, 0
    for i in range(len(ends) - 1):
        place = places_of[i] % num_places if places_of[i] >= 0 else -1
        if place < 0:
            continue
        a, b = first[place], first[place + 1]
        _check_texts(ends[i + 1] - ends[i], b - a, texts, k)
        if not message(letters, ends[i], ends[i + 1], plan[a:b], names, scratch):
            continue
        oper = _operation(scratch[0], fields)
        if oper < 0 or not _is_named(scratch[0], fields, table_names, place, places_of[i] >= num_places):
            continue
        load = _load(loads, place, messages[i, 3]) if oper == REFRESH else -1
        if not _put_row(plan[a:b], orders[a:b], oper, load, messages[i], starts, scratch, texts, numbers, valid, k):
            continue
        numbers[ROW, k], numbers[PLACE, k], numbers[LOAD, k], numbers[OPER, k] = i, place, load, oper
        k += 1
    return k


@compiled(**COMPILED)
def _put_row(plan, order, oper, load, source, starts, scratch, texts, numbers, valid, k):
    """All columns of one row; False in doubt, and then nothing counts of what was written."""
    d, work, places, fields, mask = scratch
    ends = texts[1]
    at = _put_seq(d, fields, oper == REFRESH, source, load, starts, texts[0][T_SEQ], ends[T_SEQ, k])
    if at < 0:
        return False
    ends[T_SEQ, k + 1], valid[T_SEQ, k] = at, True
    _copy(d, fields[POSITION, 0], fields[POSITION, 1], texts[0][T_POSITION], ends[T_POSITION], valid[T_POSITION], k)
    _copy(
        d,
        fields[TRANSACTION, 0],
        fields[TRANSACTION, 1],
        texts[0][T_TRANSACTION],
        ends[T_TRANSACTION],
        valid[T_TRANSACTION],
        k,
    )
    for column, word in ((T_CHANGE_MASK, CHANGE_MASK), (T_COLUMN_MASK, COLUMN_MASK)):
        num = _put_mask(
            d, fields[word, 0], max(fields[word, 1], NONE) if fields[word, 1] != DOUBT else NONE, len(plan), mask
        )
        if num == DOUBT:
            return False
        _copy(mask, 0, num, texts[0][column], ends[column], valid[column], k)
    num_mask = num  # the column mask is the one that `mask` still holds
    for column, word, number in ((N_TIME, AT, TIME), (N_COUNTER, COUNTER, COUNT), (N_LAST, LAST, IS_LAST)):
        valid[column, k] = fields[word, 1] == 1
        numbers[number, k] = fields[word, 0] if fields[word, 1] == 1 else 0
    data, old = fields[DATA, 1] == 1, fields[BEFORE, 1] == 1
    for column, which, is_there in (
        (T_BEFORE, 0 if oper == DELETE and data else 1, old or oper == DELETE),
        (T_AFTER, 0, data and oper != DELETE),
    ):
        valid[column, k] = is_there
        ends[column, k + 1] = ends[column, k]
        if is_there:
            at = _put_image(
                work[which],
                places[which, 0],
                places[which, 1],
                plan,
                order,
                mask,
                num_mask,
                column == T_AFTER,
                texts[0][column],
                ends[column, k],
            )
            if at < 0:
                return False
            ends[column, k + 1] = at
    if oper == UPDATE and data and old and valid[T_CHANGE_MASK, k]:
        a, b = ends[T_CHANGE_MASK, k], ends[T_CHANGE_MASK, k + 1]
        return _is_as_images(texts[0][T_CHANGE_MASK], a, b, work, places, len(plan))
    return True


@compiled(**COMPILED)
def _is_as_images(mask, a, b, work, places, num_columns):
    """Does a mask, bytes a..b, say of all columns that both images have what these say? Else the exact path tells which
    differ. Reads values as `read_image` wrote them, between the places that it noted: within `work`.
    """
    for k in range(num_columns):
        i, j = places[0, 0, k], places[1, 0, k]
        if i >= 0 and j >= 0:
            is_set = a + (k >> 3) < b and mask[a + (k >> 3)] >> (k & 7) & 1 == 1
            if is_same(work[0], i, places[0, 1, k], work[1], j, places[1, 1, k]) == is_set:
                return False
    return True


@compiled(**COMPILED)
def refreshes(letters, ends, places_of, plans, table_names, found, scratch):
    """Of each message: its place if it is a full-load row, NONE if it is another, DOUBT if in doubt."""
    plan, first, names, orders = plans
    d, fields, num_places = scratch[0], scratch[3], len(first) - 1
    for i in range(len(ends) - 1):
        found[i] = DOUBT
        place = places_of[i] % num_places if places_of[i] >= 0 else -1
        if place >= 0 and message(letters, ends[i], ends[i + 1], plan[first[place] : first[place + 1]], names, scratch):
            oper = _operation(d, fields)
            if oper >= 0 and _is_named(d, fields, table_names, place, places_of[i] >= num_places):
                found[i] = place if oper == REFRESH else NONE
