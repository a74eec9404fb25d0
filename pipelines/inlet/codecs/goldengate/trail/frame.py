"""Frames of a GoldenGate trail: where each record and its tokens lie, and where the next record surely begins.

Strategy. A token is an id, an info byte, a length of 2 bytes, and a payload; a record is a token `G` whose length holds
all of it, up to a token `Z` that says the same length again. `walk` follows the records. G, Z and the tokens between
them each tell where a record ends. Where two of the three agree, a damaged record is a row with its tokens. Where no
two agree, the bytes up to the next sure place are one row without tokens. A place is sure if whole records follow each
other from there for as long as a record can be, or up to the end of the file: records inside a value end with it, so a
record around such a place would have to be longer.

Bounds: no read lies outside [at, len(data)): a token is read after its 4 bytes, and a payload after its length, were
held against the end of the record, the record against that of the data. `rows` has a row for every 46 bytes, `seen` a
byte for each of the data. The search for a sure place reads a record at a place once: what `seen` marks leads to none.
Facts     [dump seen] ids and lengths: that of G and of F is the whole record's, that of any other token its payload's;
          in every dump it is 8 and 4 for each token more than the payloads . [documented] letters of the tokens; tokens
          that are not known are passed over by their length . [inferred] U stands before T: parsed by id, not by place
          [not public] what the bits of `info` mean, how more than 65,535 bytes are framed
          ASSUMED: no record is longer than 65,535 bytes, and no value holds whole records that go on after its end
"""

from typing import Literal

import numpy as np

from inlet.fields.compiled.basics import inlined, uint
from inlet.fields.compiled.cache import compiled

# a row: the record's first byte and end; payload and length of its tokens (-1 where there is none); what is wrong
AT, END, H, LEN_H, D, LEN_D, T, LEN_T, U, LEN_U, FAULT, FAULT_AT = range(12)
NUM_ROW = 12
LEN_TOKEN, LEN_GHDR = 4, 34
LEN_MIN = 3 * LEN_TOKEN + LEN_GHDR  # G, H with its fixed part, Z
LEN_MAX = 0xFFFF
FILE_HEADER, RECORD, GHDR, DATA, USER_TOKENS, TOKENS, TRAILER = b"FGHDUTZ"
HDR_IND = ord("E")
GIVE_UP = 1 << 20  # bytes after which no next record is looked for any more: 16 of the longest
NONE, NOT_YET = -1, -2  # in place of a place: there is none; the bytes to tell it are not there yet

Order = Literal["big", "little"]
ORDERS: tuple[Order, Order] = ("big", "little")

FAULTS = ("", "bad_frame", "bad_length", "unknown_token", "bad_header")
OK, BAD_FRAME, BAD_LENGTH, UNKNOWN_TOKEN, BAD_HEADER = range(5)
COMPLETE, SHORT, NO_RECORD = range(3)  # how a walk ends: with the data, in a record, at a place where none can begin


@inlined
def _tokens_of(data, at, end, little, row):
    """Find a record's tokens. Out: fault, place of it."""
    row[H] = row[D] = row[T] = row[U] = -1
    row[LEN_H] = row[LEN_D] = row[LEN_T] = row[LEN_U] = 0
    p, stop = at + LEN_TOKEN, end - LEN_TOKEN
    while p < stop:
        if p + LEN_TOKEN > stop:
            return BAD_LENGTH, p
        size = uint(data, p + 2, 2, little)
        if p + LEN_TOKEN + size > stop:
            return BAD_LENGTH, p + 2
        id_ = data[p]
        place = H if id_ == GHDR else D if id_ == DATA else T if id_ == TOKENS else U if id_ == USER_TOKENS else -1
        if place < 0 or row[place] >= 0:
            return UNKNOWN_TOKEN, p
        row[place], row[place + 1] = p + LEN_TOKEN, size
        p += LEN_TOKEN + size
    if row[LEN_H] < LEN_GHDR:
        return BAD_LENGTH, at + LEN_TOKEN
    if data[row[H]] != HDR_IND:
        return BAD_HEADER, row[H]
    return OK, at


@inlined
def _record(data, at, little, row):
    """Read the record that begins here into a row, with what is wrong inside it. Out: as a walk ends."""
    left = len(data) - at
    if left == 0:
        return SHORT
    if data[at] != RECORD:
        return NO_RECORD
    if left < LEN_TOKEN:
        return SHORT
    size = uint(data, at + 2, 2, little)
    if size < LEN_MIN:
        return NO_RECORD
    if size > left:
        other = uint(data, at + 2, 2, not little)
        is_other = LEN_MIN <= other <= left and data[at + other - LEN_TOKEN] == TRAILER
        if is_other and uint(data, at + other - 2, 2, not little) == other:
            return NO_RECORD  # a record of the other byte order
        return SHORT
    end = at + size
    if data[end - LEN_TOKEN] != TRAILER or uint(data, end - 2, 2, little) != size:
        return NO_RECORD
    row[AT], row[END] = at, end
    row[FAULT], row[FAULT_AT] = _tokens_of(data, at, end, little, row)
    return COMPLETE


@inlined
def _own_end(data, at, little):
    """Where a record ends by its tokens and by G or Z, whichever agrees with them. NONE where neither does."""
    p = at + LEN_TOKEN
    while p + LEN_TOKEN <= len(data) and (
        data[p] == GHDR or data[p] == DATA or data[p] == USER_TOKENS or data[p] == TOKENS
    ):
        p += LEN_TOKEN + uint(data, p + 2, 2, little)
        if p + LEN_TOKEN - at > LEN_MAX:
            return NONE
    end = p + LEN_TOKEN
    if end > len(data):
        return NOT_YET
    of_trailer = data[p] == TRAILER and uint(data, p + 2, 2, little) == end - at
    return end if of_trailer or data[at] == RECORD and uint(data, at + 2, 2, little) == end - at else NONE


@inlined
def _damaged_record(data, at, little, end, row):
    """Read a damaged record that ends there into a row. Out: False where its tokens do not fill it."""
    row[AT], row[END] = at, end
    fault, _ = _tokens_of(data, at, end, little, row)
    row[FAULT], row[FAULT_AT] = BAD_FRAME, at
    return fault == OK


@inlined
def _sure(data, p, little, is_final, seen, row):
    """p if whole records follow each other from there for the length of the longest, or up to the end of the file; else
    NONE or NOT_YET. Uses a row."""
    at = p
    while at - p < LEN_MAX:
        if at == len(data):
            return p if is_final else NOT_YET
        if seen[at]:  # its records end before they are enough for an earlier place
            return NONE
        seen[at] = 1
        how = _record(data, at, little, row)
        if how == SHORT and not is_final:
            return NOT_YET
        if how != COMPLETE or row[FAULT] != OK:
            return NONE
        at = row[END]
    return p


@inlined
def _next_record(data, at, little, is_final, seen, row):
    """The first sure place from `at` on, or NONE or NOT_YET. Uses a row."""
    for p in range(at, len(data) - LEN_TOKEN + 1):
        if data[p] == RECORD:
            found = _sure(data, p, little, is_final, seen, row)
            if found != NONE:
                return found
    return NONE


@compiled(nogil=True, _nrt=False)
def walk(data, at, little, is_final, damaged, seen, rows):
    """Follow the records from `at` on.

    In: damaged, (first byte, end) of what is known to hold no record; is_final, that the file ends here; seen, zeros.
    Out: rows[i]. Returns: (number of rows, where the walk ended, how). A wrong length may reach past the end of the
    data: where the file ends, a sure place inside it is looked for.
    """
    num, num_damaged = 0, 0
    while at < len(data) and num + 2 < len(rows):
        if num_damaged < len(damaged) and damaged[num_damaged, 0] == at < damaged[num_damaged, 1] <= len(data):
            stop = damaged[num_damaged, 1]
            num_damaged += 1
        else:
            how = _record(data, at, little, rows[num])
            if how == COMPLETE and rows[num, FAULT] == OK:
                at, num = rows[num, END], num + 1
                continue
            end = _own_end(data, at, little)
            if end == NOT_YET and not is_final:
                return num, at, SHORT
            if end >= 0 and (how != COMPLETE or end != rows[num, END]):
                if _damaged_record(data, at, little, end, rows[num]):
                    at, num = end, num + 1
                    continue
                if how == COMPLETE:
                    _record(data, at, little, rows[num])
            if how == COMPLETE:
                at, num = rows[num, END], num + 1
                continue
            if how == SHORT and not is_final:
                return num, at, how
            stop = _next_record(data, at + 1, little, is_final, seen, rows[num])
            if stop < 0:
                if stop == NOT_YET:
                    how = SHORT
                if how == NO_RECORD and not is_final and len(data) - at < GIVE_UP:
                    how = SHORT  # what follows may show where the next record begins
                return num, at, how
        rows[num] = -1
        rows[num, AT], rows[num, END], rows[num, FAULT], rows[num, FAULT_AT] = at, stop, BAD_FRAME, at
        at, num = stop, num + 1
    return num, at, COMPLETE if at == len(data) else SHORT


def room_for(data) -> np.ndarray:
    """Rows for all the records that these bytes may hold: each place without one is followed by one, or by the end; two
    more are working space."""
    return np.empty((2 * (len(data) // LEN_MIN) + 4, NUM_ROW), np.int64)


def order_of(data: bytes, at: int) -> Order | None:
    """Byte order of the record that begins here, a file header or any other: the one in which its length leads to its
    trailer, and whose tokens fill it. None while it cannot be told, or where neither fits."""
    fits = [order for order in ORDERS if _fits(data, at, order)]
    return fits[0] if len(fits) == 1 else None


def may_be_short(data: bytes, at: int) -> bool:
    """May a record begin here that is not whole yet, in either byte order?"""
    sizes = [int.from_bytes(data[at + 2 : at + 4], order) for order in ORDERS]
    return data[at] == RECORD and (len(data) - at < LEN_TOKEN or any(LEN_MIN <= s > len(data) - at for s in sizes))


def order_in(data: bytes, at: int, is_final: bool) -> Order | None:
    """Byte order of the first record that can be found from `at` on, where the one there is damaged; None for none. In:
    is_final, that the file ends with the data."""
    bytes_, none = np.frombuffer(data[at : at + GIVE_UP], np.uint8), np.zeros((0, 2), np.int64)
    ends = is_final and len(data) - at <= GIVE_UP
    for order in ORDERS:
        rows = room_for(bytes_)
        num, _, _ = walk(bytes_, 0, order == "little", ends, none, np.zeros(len(bytes_), np.uint8), rows)
        if (rows[:num, FAULT] == OK).any():
            return order
    return None


def _fits(data: bytes, at: int, order: Order) -> bool:
    size = int.from_bytes(data[at + 2 : at + 4], order)
    end = at + size
    if size < 2 * LEN_TOKEN or end > len(data):
        return False
    if data[end - LEN_TOKEN] != TRAILER or data[end - 2 : end] != data[at + 2 : at + 4]:
        return False
    p, stop = at + LEN_TOKEN, end - LEN_TOKEN
    while p + LEN_TOKEN <= stop:
        p += LEN_TOKEN + int.from_bytes(data[p + 2 : p + 4], order)
    return p == stop
