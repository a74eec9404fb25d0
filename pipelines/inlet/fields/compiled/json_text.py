"""JSON, as compiled walks read it: members, literals and texts, from a place in a message to the next one.

Strategy. A walk accepts only what it fully understands: no escapes in names, each text UTF-8. At anything else a
function returns DOUBT, and the message is left to the plain path; there are no errors here.

Reads. `copy_alone` puts a message into a buffer that holds it alone, with LEN_GAP zero bytes behind it. A walk steps
only over bytes that it has looked at and that are not zero, so it stands at the first zero behind its message at most;
it looks less than LEN_GAP bytes ahead. Hence it reads no other message and never leaves the buffer, whatever the bytes.
Writes. A text takes at most LEN_VALUE bytes more than it has letters, also where the walk ends in doubt: an escape is
never longer than it is spelt, a long text has 5 bytes of header. The caller has that room.
"""

import numpy as np

from inlet.fields.compiled.basics import inlined, put, utf8_size

DOUBT = -1
LEN_GAP = 32  # zeros behind a message; `read_time` looks farthest ahead, 20 bytes
LEN_VALUE = 5  # bytes that a value takes beyond those of its text
ONE = np.uint64(1)
STOPS = np.array([code < 32 or code in (34, 92) for code in range(256)])


@inlined
def copy_alone(letters, start, length, out):
    """A message alone in the buffer, zeros behind it. Out: all its bytes or'ed."""
    a, some = np.uint64(start), np.uint8(0)
    for k in range(np.uint64(length)):
        out[k] = letters[a + k]
        some |= letters[a + k]
    for k in range(length, length + LEN_GAP):
        out[k] = 0
    return some


@inlined
def move(source, start, size, out, pos):
    """Copy, and the place behind it."""
    a, b = np.uint64(start), np.uint64(pos)
    for k in range(np.uint64(max(size, 0))):
        out[b + k] = source[a + k]
    return pos + size


@inlined
def skip_blanks(d, i):
    while d[i] == 32 or d[i] == 10 or d[i] == 13 or d[i] == 9:
        i += 1
    return i


@inlined
def is_same(d, i, j, letters, a, b):
    if j - i != b - a:
        return False
    at, of = np.uint64(i), np.uint64(a)
    for k in range(np.uint64(b - a)):
        if d[at + k] != letters[of + k]:
            return False
    return True


@inlined
def text_end(d, i):
    """Where text that began before i ends (its quote); DOUBT at an escape or a control character."""
    at = np.uint64(i)  # unsigned: no test for an index from the end
    while not STOPS[d[at]]:
        at += ONE
    return np.int64(at) if d[at] == 34 else DOUBT


@inlined
def read_member(d, i):
    """From the quote of a name: start and end of the name, start of the value."""
    if d[i] != 34:
        return DOUBT, 0, 0
    end = text_end(d, i + 1)
    if end < 0:
        return DOUBT, 0, 0
    at = skip_blanks(d, end + 1)
    if d[at] != 58:
        return DOUBT, 0, 0
    return i + 1, end, skip_blanks(d, at + 1)


@inlined
def next_member(d, i):
    """Behind a value: (place, is there another member)."""
    i = skip_blanks(d, i)
    if d[i] == 44:
        i = skip_blanks(d, i + 1)
        return (i, True) if d[i] == 34 else (DOUBT, False)
    return (i + 1, False) if d[i] == 125 else (DOUBT, False)


@inlined
def is_null(d, i):
    return d[i] == 110 and d[i + 1] == 117 and d[i + 2] == 108 and d[i + 3] == 108


@inlined
def read_truth(d, i):
    """(place behind, 1 or 0), or DOUBT."""
    if d[i] == 116 and d[i + 1] == 114 and d[i + 2] == 117 and d[i + 3] == 101:
        return i + 4, 1
    if d[i] == 102 and d[i + 1] == 97 and d[i + 2] == 108 and d[i + 3] == 115 and d[i + 4] == 101:
        return i + 5, 0
    return DOUBT, 0


@inlined
def is_utf8(d, i, end):
    while i < end:
        size = utf8_size(d, i, end)
        if size == 0:
            return False
        i += size
    return True


@inlined
def is_rest_blank(d, i, end):
    while i < end and (d[i] == 32 or d[i] == 10 or d[i] == 13 or d[i] == 9):
        i += 1
    return i == end


@inlined
def put_letters(d, i, size, out, pos):
    """Bytes as a text: the place behind it."""
    if size < 64:
        out[pos] = size << 2 | 1
        pos += 1
    else:
        out[pos] = 16 << 2
        pos = put(out, pos + 1, size, 4)
    return move(d, i, size, out, pos)


@inlined
def put_text(d, i, out, pos):
    """From behind the quote: (place behind the text, next place in the output)."""
    end = text_end(d, i)
    if end < 0:
        return put_escaped(d, i, out, pos)
    return end + 1, put_letters(d, i, end - i, out, pos)


@inlined
def put_escaped(d, i, out, pos):
    start = pos + 5
    end, at = i, start
    while d[end] != 34:
        b = d[end]
        if b < 32:
            return DOUBT, 0
        if b == 92:
            end, b = read_escape(d, end)
            if end < 0:
                return DOUBT, 0
            if b >= 0x800:
                out[at] = 0xE0 | b >> 12
                out[at + 1] = 0x80 | b >> 6 & 63
                at += 2
                b = 0x80 | b & 63
            elif b >= 0x80:
                out[at] = 0xC0 | b >> 6
                at += 1
                b = 0x80 | b & 63
        out[at] = b
        at += 1
        end += 1
    size = at - start
    if size < 64:
        out[pos] = size << 2 | 1
        for k in range(size):
            out[pos + 1 + k] = out[start + k]
        return end + 1, pos + 1 + size
    out[pos] = 16 << 2
    put(out, pos + 1, size, 4)
    return end + 1, at


@inlined
def read_escape(d, i):
    """From the backslash: (last byte of the escape, character); surrogates are in doubt."""
    b = d[i + 1]
    if b == 34 or b == 92 or b == 47:
        return i + 1, np.int64(b)
    if b != 117:
        code = 8 if b == 98 else 12 if b == 102 else 10 if b == 110 else 13 if b == 114 else 9 if b == 116 else 0
        return (i + 1, code) if code else (DOUBT, 0)
    code = 0
    for k in range(2, 6):
        digit = hex_digit(d[i + k])
        if digit < 0:
            return DOUBT, 0
        code = code << 4 | digit
    return (DOUBT, 0) if 0xD800 <= code < 0xE000 else (i + 5, code)


@inlined
def hex_digit(b):
    return (
        np.int64(b) - 48
        if 48 <= b < 58
        else np.int64(b) - 55
        if 65 <= b < 71
        else np.int64(b) - 87
        if 97 <= b < 103
        else np.int64(-1)
    )
