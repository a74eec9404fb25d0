"""GoldenGate trail: what an Extract or a pump writes, transaction by transaction, in numbered files that follow each
other.

Unit      a block of whole groups of records, cut behind a transaction where it is not too long
Layout    a token: id . info . u2 length . payload; lengths in the byte order of the file
          file    F (header: groups of tokens), then records
          record  G (length of the whole record) . H . D . U . T . Z (the same length again); U, D and T may be absent
          H       0 hdr_ind E . 1 partition . 2 undo_flag . 3 before_after . 4 u2 rec_length . 6 io_type . 7 orig_node
                  8 i8 io_time . 16 i8 audit_pos . 24 u4 audit_rba . 28 trans_ind . 29 format_type . 30 syskey_len
                  31 incomplete . 32 continued . 33 rec_count . 34 name and NUL, or u2 index of a definition
          D       { u2 index of a column . u2 length . null indicator . value }, of a key update behind the key before;
                  without Partition 0x04 a full image, each column at its place (trail/full_image.py)
Groups    a before-image and the update of the same key behind it, the segments of a record (16 MiB at most), a row and
          its LOB chunks are one change. Chunks may go on in the next file: LOBs that the last row of a file does not
          supply are `lob_incomplete` where its transaction goes on
Yields    changes in file order; the images hold what the record supplies, absent columns were not supplied
Order     largest IO Time so far, number of the file, RBA of the record. An IO Time that is 35 days after the largest
          one counts only once another change confirms it; a control event `time_ahead` tells it (docs/adr/0018)
Transactions  from TransInd 0 to 2, or 3; records wait for the end of theirs. One that a restart interrupts, or that
          begins again under the same id with the same record, counts once; one that is interrupted otherwise stands, is
          never whole, and is told by a control event `transaction_unfinished`
Tables    by name, or by the index of a definition in the file. Bodies of definitions are not public: names, types and
          places in full images come from contracts, which `inlet import` makes of Defgen files; where the body changes
          a version of the contract has to begin. A reference is given the next index, so after damaged records, and
          after a definition that contradicts those before it, no reference has one before a definition says its own.
          The index and the table of a damaged definition with another body have no definition either until then
Truncates  GGSPurgedata, and DDL whose items B5 and B6 are TABLE and TRUNCATE. A truncate of a partition is a control
          event `ddl`, as any other DDL: its rows stay
Damage    a damaged record ends where its tokens and one of its two lengths say; elsewhere the next one begins where
          whole records follow each other for 65,535 bytes, or up to the end of the file
Files     follow each other by the number in their names; the next one is begun when it is there and this one ends with
          a whole record. What that record still lacks will not come then. A file whose header says other numbers than
          its name, in `file_name` and in `seqno`, is rejected: it was copied under another number
Facts     [dump seen] framing, header, list of columns, tokens . [documented] operations, transactions
          [not public] bodies of definitions, LOB chunks, user tokens: kept as they are
          [documented] truncates are captured as GGSPurgedata (GETTRUNCATES) or as DDL, not as both
          ASSUMED: the length in front of the image before in 117, 134 and 135 has 2 or 4 bytes, by exact fit
          ASSUMED: TransInd of a definition, a restart marker or another control record says nothing about a transaction
Rejects   bad_frame, bad_length, unknown_token, bad_header, unknown_operation, unsupported_record, part_missing,
          bad_segment, definition_missing, definition_differs, unknown_column, column_twice, bad_value_length, bad_text,
          bad_date, bad_null_indicator, value_does_not_fit, missing_key, null_not_allowed, ambiguous_layout,
          missing_change_seq, encrypted_data, contradiction
Source    Oracle's Logdump reference and user exit header; public dumps of releases 11.2 to 21.3. The parts below name
          what each rule rests on: [documented] by the vendor, [dump seen], [impl] read so by public code, [inferred]
          from these, [recalled] and not verified
"""

import re

import numpy as np

from inlet.codecs.columns import instant, joined, same, total, word
from inlet.codecs.goldengate.defgen import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.notes.annotate import annotate, annotate_header, find_record  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.options import Options
from inlet.codecs.goldengate.trail import columns, cuts, file_header, frame, io_types, piece, sequence
from inlet.codecs.goldengate.trail.block import decode  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.trail.change_rows import CHANGES  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.trail.layout import versions_of
from inlet.codecs.results import STANDS, Block, Cut, Mark
from inlet.errors import Reject
from inlet.source import Source

OPTIONS = Options
CONSTANTS = {"seqno": "bigint", "ofs_unit": "bigint"}
COLUMNS = {
    "operation": word(io_types.OPERATIONS, "operation"),
    "transaction_event_counter": same("counter"),
    "transaction_last_event": same("last"),
    "change_timestamp": instant("io_time"),
    "stream_position": joined(same("seqno"), total("ofs_unit", "unit_offset"), by="/"),
}
ENDS_WITH_NEXT = True
OTHER_EVENTS = ("lob_chunk", "ddl")
LEN_HEAD = 1 << 20  # bytes of a file that are looked at when it is opened
NUM_TRIED = 20  # records with columns that are looked at for encryption
ENCRYPTED = (  # expected, found
    "columns in the records: write the trail without ENCRYPTTRAIL, or decrypt it with a pump (DECRYPTTRAIL)",
    f"{NUM_TRIED} records in order, none of whose data is a list of columns",
)
OWN = ("damaged", "last_seq", piece.MAY_GO_ON)  # members of a block's context that are of the block alone


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte: the number in its name, the byte orders of header and records."""
    name = re.split(r"[/\\]", path)[-1]
    match = re.fullmatch(source.options_as(Options).file_name, name)
    if not match or not (match["seqno"] or "").isdigit() or len(match["seqno"]) > 9:
        return _of_file(
            "missing_change_seq", head, "a file name that ends with the number of the file (option file_name)", name
        )
    context: dict = piece.BEGINNING | {"seqno": int(match["seqno"]), "offset": 0, "file_order": None, "order": None}
    at = 0
    if head[:1] == bytes([frame.FILE_HEADER]):
        order = frame.order_of(head, 0)
        if order is None:
            if not is_whole and len(head) <= frame.LEN_MAX:
                return None
            if len(head) < frame.LEN_TOKEN or len(head) < min(int.from_bytes(head[2:4], o) for o in frame.ORDERS):
                found = f"{len(head)} bytes"
                return _of_file("truncated", head, "a whole header record", found, len(head))
            return _of_file(
                "bad_frame", head, "a header record whose length leads to its trailer", head[:8].hex().upper()
            )
        if head[frame.LEN_TOKEN] not in file_header.GROUPS:
            found = head[frame.LEN_TOKEN : 12].hex().upper()
            return _of_file(
                "bad_frame", head, "a header record that holds groups, token 0 first", found, frame.LEN_TOKEN
            )
        context["file_order"] = order
        numbers = file_header.numbers(head[: int.from_bytes(head[2:4], order)], order)
        if numbers and context["seqno"] not in numbers:
            expected = f"the file of number {context['seqno']} of its trail, as its name says"
            found = f"a header that says number {' and '.join(map(str, sorted(numbers)))}: give it its own name"
            return _of_file("contradiction", head, expected, found)
        at = int.from_bytes(head[2:4], order)
    if at < len(head) and head[at] != frame.RECORD:
        found = head[at : at + 8].hex().upper()
        return _of_file("bad_frame", head, "a trail: it begins with a token F or G, and is not compressed", found, at)
    context["order"] = frame.order_of(head, at) if at < len(head) else None
    num, num_lists = _columns_in(head, context) if context["order"] else (0, 0)
    if not num_lists and 0 < num < NUM_TRIED and not is_whole and len(head) < LEN_HEAD:
        return None
    if _is_encrypted(num, num_lists):
        return _of_file("encrypted_data", head, *ENCRYPTED, at)
    return context | {"is_plain": num_lists > 0}


def _of_file(kind: str, head: bytes, expected: str, found: str, at: int = 0) -> Reject:
    return Reject(kind, 0, len(head), at, expected, found, head)


def _columns_in(head: bytes, context: dict) -> tuple[int, int]:
    """The first records with columns, NUM_TRIED at most, and how many of them hold a list of columns: of an encrypted
    file none does."""
    read = piece.read(head, context, sequence.MORE_MAY_COME)
    rows = read.rows[read.groups[read.groups[:, sequence.FORM] == io_types.AFTER, sequence.FIRST]]
    rows = rows[(rows[:, frame.LEN_D] > 0) & (rows[:, frame.FAULT] == 0)][:NUM_TRIED]
    is_list = (read.bytes_[rows[:, frame.H] + sequence.PARTITION] & sequence.FIELD_COMP) != 0
    rows = rows[is_list & (read.bytes_[rows[:, frame.H] + sequence.CONTINUED] == 0)]  # a segment is a part of a list
    return len(rows), sum(columns.is_list(read.payload(row, frame.D), context["order"]) for row in rows)


def _is_encrypted(num: int, num_lists: int) -> bool:
    return num == NUM_TRIED and not num_lists


def place(context: dict) -> int:
    """The number of a file in its trail."""
    return context["seqno"]


def follow(context: dict, before: dict | None) -> dict:
    """The context of a file's first byte behind the one before it. Indexes of definitions are those of a file."""
    if before is None:
        return context
    carried = {name: before[name] for name in ("state", "transaction", "xid", "csn", "definitions")}
    return context | carried


def is_ended(context: dict) -> bool:
    """Does a file end with a whole record, so that the next one, where there is one, goes on?"""
    return not context["unfinished"]


def reached(context: dict) -> str:
    """The change_seq before which no change of the next file is."""
    return piece.change_seq_of(context, context["state"][sequence.LARGEST_TIME], 0)


def cut(
    data: bytes, context: dict, source: Source, tables: dict, len_block: int, is_final: bool, is_followed: bool = False
) -> Cut:
    """Cut whole groups into blocks, behind a transaction where it is not too long. A group that what follows may still
    be part of is left uncut."""
    context = {name: value for name, value in context.items() if name not in OWN} | {"unfinished": False}
    at = piece.len_file_header(data, context)
    of_header = context | {"last_seq": reached(context)}
    if context["order"] is None and at < len(data):
        context["order"] = frame.order_of(data, at)
        if context["order"] is None and (is_final or len(data) - at > frame.LEN_MAX):
            context["order"] = frame.order_in(data, at, is_final)
        must_tell = is_final or len(data) - at >= frame.GIVE_UP
        if context["order"] is None and must_tell and not frame.may_be_short(data, at):
            found = data[at : at + 8].hex(" ", 2).upper()
            rest = Reject("bad_frame", at, len(data) - at, at, "a record", found, data[at:])
            return _header_alone(context, of_header, at, len(data), rest)
    if context["order"] is None:
        return _header_alone(context, of_header, at, len(data))
    if not context.get("is_plain", True):
        num, num_lists = _columns_in(data[:LEN_HEAD], context)
        if not num_lists and 0 < num < NUM_TRIED and not is_final and len(data) < LEN_HEAD:
            return _header_alone(context, of_header, at, len(data))
        if _is_encrypted(num, num_lists):
            rest = Reject("encrypted_data", at, len(data) - at, at, *ENCRYPTED, data[at:])
            return _header_alone(context, of_header, at, len(data), rest)
        context["is_plain"] = num_lists > 0
    behind = sequence.FILE_ENDS if is_final else sequence.BLOCK_ENDS if is_followed else sequence.MORE_MAY_COME
    read = piece.read(data, context, behind)
    if is_final and is_followed and read.end < len(data) == read.rows[-1:, frame.END].max(initial=0):
        read = piece.read(data, context, sequence.BLOCK_ENDS)  # records of a group are lacking, and will not come
    blocks, start, before = [], 0, context
    for stop in cuts.stops(read.groups, read.starts, len_block):
        after = read.context_behind(stop)
        own = {"last_seq": read.change_seq(stop - 1)} | _damaged(read, start, stop)
        if is_final and stop == len(read.groups) and read.end == len(data) and _is_open_change(read.groups[-1]):
            own[piece.MAY_GO_ON] = True
            after["state"][sequence.IN_LOB] = sequence.IN_NEXT_FILE
        first, end = int(read.starts[start]), int(read.starts[stop])
        known = {name: value for name, value in before.items() if name != "is_plain"}
        blocks.append(Block(first, end - first, known | own, stop - start))
        start, before = stop, after
    problem = None
    if read.how == frame.NO_RECORD and len(read.groups) == _num_whole(read):
        problem = piece.no_frame(read)
    marks = cuts.marks(read.groups, read.starts)
    return Cut(blocks, before | {"unfinished": read.end < len(data)}, read.end, problem, marks)


def _header_alone(context: dict, of_header: dict, at: int, size: int, rest: Reject | None = None) -> Cut:
    """The cut of a file's beginning behind whose header nothing is read: not yet, or (rest) never."""
    is_open = context["state"][sequence.OPEN]  # a transaction of the file before
    behind = context | {"offset": context["offset"] + at, "unfinished": at < size}
    marks = [Mark(at, 1, STANDS)] if at and not is_open and not rest else []
    return Cut([Block(0, at, of_header, 1)] if at else [], behind, at, rest, marks)


def _is_open_change(group: np.ndarray) -> bool:
    """Is it a change whose transaction goes on, maybe with chunks of its LOBs?"""
    return bool(group[sequence.WHAT] == io_types.CHANGE and group[sequence.IS_OPEN])


def _num_whole(read: piece.Piece) -> int:
    """Groups if all rows are in one: what stops `walk` is then next to the last of them."""
    ends = read.groups[-1:, sequence.CHUNKS_END]
    return len(read.groups) if not len(read.rows) or len(ends) and ends[0] == len(read.rows) else -1


def _damaged(read: piece.Piece, start: int, stop: int) -> dict:
    """Places of a block in which no record is, from its first byte."""
    rows = read.rows[read.groups[start:stop, sequence.FIRST]]
    own = np.flatnonzero((rows[:, frame.FAULT] == frame.BAD_FRAME) & (rows[:, frame.H] < 0)) + start
    offset = read.starts[start]
    places = [[int(read.starts[n] - offset), int(read.starts[n + 1] - offset)] for n in own]
    return {"damaged": places} if places else {}


def span(context: dict, num_records: int) -> tuple[str, str] | None:
    """Bounds of the change_seq of a block's changes."""
    return reached(context), context["last_seq"]


def constants(context: dict) -> dict:
    return {"seqno": context["seqno"], "ofs_unit": context["offset"]}


def tables_of(context: dict, tables: dict) -> dict:
    """Every version of every contract: a block may hold rows of several."""
    return versions_of(tables)


def load_of(context: dict) -> None:
    """A trail has no full loads: rows of an initial load are inserts."""
    return None
