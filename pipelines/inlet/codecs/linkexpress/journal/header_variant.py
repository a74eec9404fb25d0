"""Headers of journals -> VARIANT objects: what Reader._header tells, straight from the bytes.

Bounds: an object has 9 members at most, with ids of a byte and offsets of two: 31 bytes with its head and its count.
Five numbers take 5 bytes each, the tail 33, TRNID 17, a name its text and 5. So LEN_HEADER_MAX and twice the longest
text are enough, and offsets of two bytes too, for a name has 72 bytes of 4 at most. Reads stay within the items that
the walks have found, within the header of a message that is whole, and within the texts.
"""

import numpy as np

from inlet.codecs.linkexpress.journal import open_transactions
from inlet.codecs.linkexpress.journal.frames import LITTLE, MESSAGE, MESSAGE_START
from inlet.codecs.linkexpress.journal.walk import DBKIND, STS, TRNID
from inlet.fields import variant
from inlet.fields.compiled.basics import inlined, put, put_integer, put_text, uint
from inlet.fields.compiled.cache import compiled

MEMBERS = (
    "acquiring_system", "dbkind", "header_tail", "journals", "packed_transactions", "resource", "sts", "storage",
    "trnid",
)  # fmt: skip
METADATA = variant.metadata(list(MEMBERS))
(ACQUIRING, KIND, TAIL, JOURNALS, PACKED, NAME, STATUS, STORE, ID) = range(9)
AT_ACQUIRING, AT_PACKED, AT_JOURNALS, AT_TAIL, LEN_TAIL = 10, 12, 14, 16, 16  # in the header of a message
LEN_HEADER_MAX = 128
COUNTER = open_transactions.COUNTER


@inlined
def _put_hex(data, at, size, out, pos):
    out[pos] = (2 * size) << 2 | 1
    for k in range(size):
        for half in range(2):
            digit = data[at + k] >> 4 if half == 0 else data[at + k] & 15
            out[pos + 1 + 2 * k + half] = 48 + digit if digit < 10 else 55 + digit
    return pos + 1 + 2 * size


@inlined
def _signed(data, at, little):
    n = uint(data, at, 2, little)
    return n - 65536 if n > 32767 else n


@inlined
def _has(member, head, has_message, resource, storage, in_none):
    if member == NAME:
        return resource >= 0
    if member == STORE:
        return storage >= 0
    if member == KIND:
        return head[DBKIND] >= 0
    if member == STATUS:
        return head[STS] >= 0
    return in_none and head[TRNID] >= 0 if member == ID else has_message


@compiled(nogil=True, _nrt=False)
def headers(data, records, chosen, rows, events, messages, len_control, texts, ends, resources, storages, out, sizes):
    """Write the header of each chosen journal. In: texts one behind the other, and where each ends; which of them its
    resource and its storage are, -1 for none.
    """
    pos = np.int64(0)
    for c in range(len(chosen)):
        i = chosen[c]
        head, little, message = rows[i], records[i, LITTLE], records[i, MESSAGE]
        at = messages[message, MESSAGE_START] + len_control if message >= 0 else -1
        in_none, num = events[i, COUNTER] == 0, 0
        for member in range(9):
            num += _has(member, head, at >= 0, resources[i], storages[i], in_none)
        out[pos], out[pos + 1] = 1 << 2 | 2, num
        ids, offsets = pos + 2, pos + 2 + num
        base = write = offsets + 2 * (num + 1)
        for member in range(9):
            if not _has(member, head, at >= 0, resources[i], storages[i], in_none):
                continue
            out[ids] = member
            ids, offsets = ids + 1, put(out, offsets, write - base, 2)
            if member == NAME or member == STORE:
                text = resources[i] if member == NAME else storages[i]
                write = put_text(out, write, texts, ends[text], ends[text + 1] - ends[text])
            elif member == KIND or member == STATUS:
                write = put_integer(out, write, _signed(data, head[DBKIND if member == KIND else STS], little))
            elif member == TAIL or member == ID:
                place, size = (at + AT_TAIL, LEN_TAIL) if member == TAIL else (head[TRNID], 8)
                write = _put_hex(data, place, size, out, write)
            else:
                place = AT_ACQUIRING if member == ACQUIRING else AT_PACKED if member == PACKED else AT_JOURNALS
                write = put_integer(out, write, uint(data, at + place, 2, little))
        put(out, offsets, write - base, 2)
        sizes[c] = write - pos
        pos = write
