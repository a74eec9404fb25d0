"""Headers of records -> VARIANT objects with the members of header.py, field by field, straight from the bytes.

A change of several records has the header of its last one, and the others under `others`, in their order. A text that
is not plain ASCII is kept as binary.

Bounds: `put` functions write what `bound` has counted for them: a head of 220 bytes and 18 numbers of 9 for each
record, its texts with 5 bytes each, its tokens with 15 bytes each. Reads stay within H (34 bytes and its tail), T and
U, and within `texts`, whose places Python gives.
"""

import numpy as np
import pyarrow as pa

from inlet.codecs.goldengate.trail import io_types, sequence
from inlet.codecs.goldengate.trail.frame import AT, LEN_H, LEN_T, LEN_U, H, T, U
from inlet.codecs.goldengate.trail.header import HEADER
from inlet.codecs.goldengate.trail.sequence import BASE_END, CHUNKS_END, FIRST, HAS_INDEX, TRANSACTION
from inlet.fields import variant
from inlet.fields.compiled.basics import inlined, put, put_integer, put_text, uint
from inlet.fields.compiled.cache import compiled

MEMBERS = variant.in_order([*(column.name for column in HEADER if column.name != "thread"), "others"])
(AUDIT_POS, AUDIT_RBA, BEFORE_AFTER, CONTINUED, CSN, FORMAT_TYPE, HDR_IND, INCOMPLETE, INFO, IO_TIME_AT, IO_TYPE,
 IO_TYPE_NAME, ORIG_NODE, OTHERS, PARTITION, REC_COUNT, REC_LENGTH, RECORD_NAME, ROW_ID, SYSKEY_LEN, TDR_INDEX, TOKENS,
 TRANS_IND, UNDO_FLAG, XID) = range(25)  # fmt: skip
USER = 256  # behind the ids of tokens
LEN_HEAD, LEN_NUMBERS, LEN_TEXTS = 220, 18 * 9, 5 * 5
ROWID, LEN_ROWID = ord("R"), 18
# places in `texts` of what a group says: the name of its table, the id and the CSN of its transaction
NAME_AT, NAME_LEN, XID_AT, XID_LEN, CSN_AT, CSN_LEN = range(6)


@inlined
def _is_ascii(data, at, size):
    for k in range(size):
        if data[at + k] >= 127 or data[at + k] < 32:
            return False
    return True


@inlined
def _put_bytes(data, at, size, out, pos):
    """A text; bytes that are none as binary."""
    if _is_ascii(data, at, size):
        return put_text(out, pos, data, at, size)
    out[pos] = 15 << 2
    pos = put(out, pos + 1, size, 4)
    for k in range(size):
        out[pos + k] = data[at + k]
    return pos + size


@inlined
def _put_letter(code, out, pos):
    """A byte as a text of one letter; one that is none as its number."""
    if 32 <= code < 127:
        out[pos] = 1 << 2 | 1
        out[pos + 1] = code
        return pos + 2
    return put_integer(out, pos, np.int64(code))


@inlined
def _put_tokens(data, rows, i, little, token_ids, num_ids, len_id, found, out, pos):
    """The tokens of a record as an object. In: token_ids, (member of the dictionary, token) in the order of names."""
    for k in range(USER + 1):
        found[k, 0] = -1
    p, stop = rows[i, T], rows[i, T] + rows[i, LEN_T]
    while p >= 0 and p + 4 <= stop:
        size = uint(data, p + 2, 2, little)
        if p + 4 + size > stop:
            break
        found[data[p], 0], found[data[p], 1] = p + 4, size
        p += 4 + size
    if rows[i, U] >= 0:
        found[USER, 0], found[USER, 1] = rows[i, U], rows[i, LEN_U]
    num = 0
    for k in range(num_ids):
        num += found[token_ids[k, 1], 0] >= 0
    out[pos] = (num > 255) << 6 | len_id - 1 << 4 | 3 << 2 | 2
    ids = put(out, pos + 1, num, 4 if num > 255 else 1)
    offsets = ids + num * len_id
    base = write = offsets + (num + 1) * 4
    n = 0
    for k in range(num_ids):
        at, size = found[token_ids[k, 1], 0], found[token_ids[k, 1], 1]
        if at >= 0:
            put(out, ids + n * len_id, token_ids[k, 0], len_id)
            put(out, offsets + n * 4, write - base, 4)
            write, n = _put_bytes(data, at, size, out, write), n + 1
    put(out, offsets + n * 4, write - base, 4)
    return write


@inlined
def _put_record(
    data,
    rows,
    i,
    little,
    texts,
    place,
    type_names,
    members,
    token_ids,
    num_ids,
    len_id,
    found,
    has_others,
    out,
    pos,
    offs,
):
    """The header of a record. Where it has others their member is left for the caller: out: next place, place of its
    offset, base of offsets."""
    h = rows[i, H]
    has_index = data[h + sequence.PARTITION] & HAS_INDEX and rows[i, LEN_H] >= sequence.TAIL + 2
    rowid_at, rowid_len = np.int64(-1), 0
    p, stop = rows[i, T], rows[i, T] + rows[i, LEN_T]
    while p >= 0 and p + 4 <= stop:
        size = uint(data, p + 2, 2, little)
        if p + 4 + size > stop:
            break
        if data[p] == ROWID and size >= LEN_ROWID and _is_ascii(data, p + 4, LEN_ROWID):
            rowid_at, rowid_len = p + 4, LEN_ROWID
        p += 4 + size
    time = uint(data, h + sequence.IO_TIME, 8, little)
    code = data[h + sequence.IO_TYPE]
    has_tokens = rows[i, T] >= 0 or rows[i, U] >= 0
    has_time = sequence.EARLIEST < time - sequence.EPOCH < sequence.LATEST
    num = 16 + has_time + (type_names[code, 1] > 0) + (place[CSN_LEN] > 0) + has_others + (place[NAME_LEN] > 0)
    num += (rowid_at >= 0) + (1 if has_index else 0) + has_tokens + (place[XID_LEN] > 0)
    out[pos] = len_id - 1 << 4 | 3 << 2 | 2
    out[pos + 1] = num
    ids = pos + 2
    offsets = ids + num * len_id
    base = write = offsets + (num + 1) * 4
    n, others_at = 0, np.int64(-1)
    for m in range(25):
        start = write
        if m == AUDIT_POS:
            write = put_integer(out, write, np.int64(uint(data, h + sequence.AUDIT_POS, 8, little)))
        elif m == AUDIT_RBA:
            write = put_integer(out, write, np.int64(uint(data, h + sequence.AUDIT_RBA, 4, little)))
        elif m == BEFORE_AFTER:
            write = _put_letter(data[h + sequence.BEFORE_AFTER], out, write)
        elif m == CONTINUED:
            write = _put_letter(89 if data[h + sequence.CONTINUED] else 78, out, write)
        elif m == CSN:
            if place[CSN_LEN]:
                write = _put_bytes(texts, place[CSN_AT], place[CSN_LEN], out, write)
        elif m == FORMAT_TYPE:
            write = _put_letter(data[h + sequence.FORMAT_TYPE], out, write)
        elif m == HDR_IND:
            write = _put_letter(data[h], out, write)
        elif m == INCOMPLETE:
            write = put_integer(out, write, np.int64(data[h + sequence.INCOMPLETE]))
        elif m == INFO:
            write = put_integer(out, write, np.int64(data[rows[i, AT] + 1]))
        elif m == IO_TIME_AT:
            if has_time:
                out[write] = 12 << 2
                write = put(out, write + 1, time - sequence.EPOCH, 8)
        elif m == IO_TYPE:
            write = put_integer(out, write, np.int64(code))
        elif m == IO_TYPE_NAME:
            if type_names[code, 1]:
                write = _put_bytes(texts, type_names[code, 0], type_names[code, 1], out, write)
        elif m == ORIG_NODE:
            write = put_integer(out, write, np.int64(data[h + sequence.ORIG_NODE]))
        elif m == OTHERS:
            if has_others:  # last of the values, so that the caller can write it
                others_at = offsets + n * 4
                put(out, ids + n * len_id, members[m], len_id)
                n += 1
        elif m == PARTITION:
            write = put_integer(out, write, np.int64(data[h + sequence.PARTITION]))
        elif m == REC_COUNT:
            write = put_integer(out, write, np.int64(data[h + sequence.REC_COUNT]))
        elif m == REC_LENGTH:
            write = put_integer(out, write, np.int64(uint(data, h + sequence.REC_LENGTH, 2, little)))
        elif m == RECORD_NAME:
            if place[NAME_LEN]:
                write = _put_bytes(texts, place[NAME_AT], place[NAME_LEN], out, write)
        elif m == ROW_ID:
            if rowid_at >= 0:
                write = _put_bytes(data, rowid_at, rowid_len, out, write)
        elif m == SYSKEY_LEN:
            write = put_integer(out, write, np.int64(data[h + sequence.SYSKEY_LEN]))
        elif m == TDR_INDEX:
            if has_index:
                write = put_integer(out, write, np.int64(uint(data, h + sequence.TAIL, 2, little)))
        elif m == TOKENS:
            if has_tokens:
                write = _put_tokens(data, rows, i, little, token_ids, num_ids, len_id, found, out, write)
        elif m == TRANS_IND:
            write = put_integer(out, write, np.int64(data[h + sequence.TRANS_IND]))
        elif m == UNDO_FLAG:
            write = put_integer(out, write, np.int64(data[h + sequence.UNDO_FLAG]))
        elif place[XID_LEN]:
            write = _put_bytes(texts, place[XID_AT], place[XID_LEN], out, write)
        if write != start:
            put(out, ids + n * len_id, members[m], len_id)
            put(out, offsets + n * 4, start - base, 4)
            n += 1
    put(out, offsets + n * 4, write - base, 4)
    offs[0], offs[1], offs[2] = others_at, base, offsets + n * 4
    return write


@compiled(nogil=True, _nrt=False)
def _headers(
    data, rows, groups, chosen, little, texts, places, type_names, members, token_ids, len_id, found, offs, out, lengths
):
    pos, num_ids = np.int64(0), len(token_ids)
    for c in range(len(chosen)):
        g, start = chosen[c], pos
        first, last, end = groups[g, FIRST], groups[g, BASE_END] - 1, groups[g, CHUNKS_END]
        num_others = end - first - 1
        pos = _put_record(
            data, rows, last, little, texts, places[c], type_names, members, token_ids, num_ids, len_id, found,
            1 if num_others else 0, out, pos, offs,
        )  # fmt: skip
        if num_others:
            others_at, base, end_at = offs[0], offs[1], offs[2]
            put(out, others_at, pos - base, 4)
            out[pos] = 1 << 4 | 3 << 2 | 3
            array_offsets = put(out, pos + 1, num_others, 4)
            array_base = pos = array_offsets + (num_others + 1) * 4
            n = 0
            for k in range(first, end):
                if k == last:
                    continue
                put(out, array_offsets + n * 4, pos - array_base, 4)
                pos = _put_record(
                    data, rows, k, little, texts, places[c], type_names, members, token_ids, num_ids, len_id, found, 0,
                    out, pos, offs,
                )  # fmt: skip
                n += 1
            put(out, array_offsets + n * 4, pos - array_base, 4)
            put(out, end_at, pos - base, 4)
        lengths[c] = pos - start


@compiled(nogil=True, _nrt=False)
def _mark_tokens(data, rows, little, seen):
    """Which tokens there are. In: seen, one place for each id and for user tokens."""
    for i in range(len(rows)):
        p, stop = rows[i, T], rows[i, T] + rows[i, LEN_T]
        while p >= 0 and p + 4 <= stop:
            size = uint(data, p + 2, 2, little)
            if p + 4 + size > stop:
                break
            seen[data[p]] = 1
            p += 4 + size
        if rows[i, U] >= 0:
            seen[USER] = 1


def token_name(id_: int) -> str:
    """Member of `tokens`: the letter of a token, hex of one that is no letter, `user`."""
    return "user" if id_ == USER else chr(id_) if 32 < id_ < 127 else f"x{id_:02x}"


def headers(read, kept: np.ndarray, places_, image: pa.StructType) -> pa.StructArray:
    """The headers of the changes of these groups. In: a Piece; what tables.resolve found."""
    rows, groups = read.rows, read.groups[kept]
    seen = np.zeros(USER + 1, np.uint8)
    _mark_tokens(read.bytes_, rows, read.little, seen)
    tokens = {token_name(int(id_)): int(id_) for id_ in np.flatnonzero(seen)}
    dictionary = variant.in_order({*MEMBERS, *tokens})
    slots = {name: n for n, name in enumerate(dictionary)}
    token_ids = np.array([[slots[name], tokens[name]] for name in variant.in_order(tokens)], np.int64).reshape(-1, 2)
    members = np.array([slots[name] for name in MEMBERS], np.int64)
    texts, places, type_names = _texts(read, kept, groups, places_)
    sizes = (rows[:, LEN_T] * 4 + rows[:, LEN_U] + 2 * USER + LEN_HEAD + LEN_NUMBERS + LEN_TEXTS + 80).cumsum()
    of_rows = sizes[groups[:, CHUNKS_END] - 1] - np.where(groups[:, FIRST] > 0, sizes[groups[:, FIRST] - 1], 0)
    num_records = groups[:, CHUNKS_END] - groups[:, FIRST]
    each = places[:, [NAME_LEN, XID_LEN, CSN_LEN]].sum(axis=1) + 16
    out = np.empty(int((of_rows + num_records * each).sum()), np.uint8)
    lengths = np.zeros(len(kept), np.int64)
    _headers(
        read.bytes_, rows, read.groups, kept, read.little, texts, places, type_names, members, token_ids,
        1 if len(dictionary) <= 256 else 2, np.zeros((USER + 1, 2), np.int64), np.zeros(3, np.int64), out, lengths,
    )  # fmt: skip
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if ends[-1] >= 1 << 31:
        raise ValueError(f"a block's headers must stay below 2 GiB, found {ends[-1]} bytes: cut smaller blocks")
    parts = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(out[: ends[-1]])]
    values = pa.Array.from_buffers(pa.binary(), len(kept), parts)
    of_all = pa.array([variant.metadata(dictionary)], pa.binary()).take(pa.array(np.zeros(len(kept), np.int8)))
    return pa.StructArray.from_arrays([values, of_all], fields=list(image))


def _texts(read, kept: np.ndarray, groups: np.ndarray, places_):
    """The bytes of names and ids behind those of the piece, and where each group's are."""
    parts, size = [read.data], len(read.data)

    def add(text: str) -> tuple[int, int]:
        nonlocal size
        data = text.encode()
        parts.append(data)
        size += len(data)
        return size - len(data), len(data)

    places = np.zeros((len(kept), 6), np.int64)
    if len(kept):
        names = np.array([add(target.name) for target in places_.targets], np.int64).reshape(-1, 2)
        places[:, [NAME_AT, NAME_LEN]] = names[places_.target[kept]]
    ids = read.transactions.copy()
    if read.context["xid"] and not ids[0, sequence.XID_LEN]:
        ids[0, [sequence.XID_AT, sequence.XID_LEN]] = add(read.context["xid"])
    if read.context["csn"] and not ids[0, sequence.CSN_LEN]:
        ids[0, [sequence.CSN_AT, sequence.CSN_LEN]] = add(read.context["csn"])
    places[:, XID_AT:] = ids[groups[:, TRANSACTION]]
    type_names = np.zeros((256, 2), np.int64)
    for code in np.unique(read.bytes_[read.rows[groups[:, BASE_END] - 1, H] + sequence.IO_TYPE]):
        if int(code) in io_types.IO_TYPES:
            type_names[code] = add(io_types.name_of(int(code)))
    return np.frombuffer(b"".join(parts), np.uint8), places, type_names
