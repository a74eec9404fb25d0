"""A record of logdump's text -> what the trail has of it: header, column area, tokens, in the trail's byte order.

The column area is what the rows of the image hold. Where RECLEN has cut these, and no row of any column, it is what
the columns hold, if that begins as the image does and is as long as RecLength says. What is cut otherwise is a fault.
The byte order is one in which everything fits: the header, the column area and its column lines, the tokens. Where both
do, it is that of most records before.
Source: docs/formats/goldengate_logdump.md.
"""

import re
import struct
from dataclasses import dataclass

from inlet.codecs.goldengate.logdump import header as logdump_header
from inlet.codecs.goldengate.logdump.entry import Entry, joined
from inlet.codecs.goldengate.logdump.header import ORDERS, WHOLE_LINES, Fault, Faulty
from inlet.codecs.goldengate.logdump.options import Options
from inlet.codecs.goldengate.trail import io_types, metadata, sequence

LEN_ITEM, LEN_NULL = 4, 2
WIDTHS = {  # of what stands in front of the image before, by the form of the area
    io_types.AFTER: (0,),
    io_types.BEFORE: (0,),
    io_types.KEY_AND_AFTER: (2,),
    io_types.BEFORE_AND_AFTER: (2, 4),
}
LETTERS = {">": "big", "<": "little"}
MARKS = {order: mark for mark, order in LETTERS.items()}


@dataclass
class Printed:
    """A record as the trail has it. `is_sure`: it tells its byte order by itself."""

    entry: Entry
    order: str
    is_sure: bool
    header: bytes = b""
    data: bytes = b""
    tokens: bytes = b""
    user: bytes = b""
    fault: Fault | None = None

    @property
    def io_type(self) -> int:
        return self.header[sequence.IO_TYPE] if self.header else 0

    @property
    def what(self) -> int:
        return int(io_types.WHAT_OF[self.io_type])


def printed(entry: Entry, options: Options, votes: list[int]) -> Printed:
    """Read a record. In: how many records before were surely big-endian, and little-endian."""
    most = ORDERS[1] if votes[1] > votes[0] else ORDERS[0]
    if entry.orphan:
        return Printed(entry, most, False, fault=Fault("bad_frame", entry.start, entry.orphan, entry.others[0]))
    if entry.is_file_header:
        return Printed(entry, most, False, data=joined(entry.data))
    fits = _orders(entry) if options.byte_order == "auto" else [options.byte_order]
    is_sure = len(fits) == 1
    record = Printed(entry, fits[0] if is_sure else most, is_sure)
    try:
        _read(record, options)
        if not is_sure and votes[0] == votes[1] and record.data and record.what == io_types.CHANGE:
            found = "neither order, or both"
            raise Faulty(
                Fault(
                    "ambiguous_layout", entry.start, "one byte order that the record fits, or option byte_order", found
                )
            )
    except Faulty as faulty:
        record.fault = faulty.fault
        record.header = record.header or logdump_header.placing(entry, record.order)
    return record


def _read(record: Printed, options: Options) -> None:
    """Fill a record. Raises: Faulty, at what is wrong first."""
    entry, order = record.entry, record.order
    if entry.summary is None:
        expected = f"a line with the record's time, operation, Len and RBA; {WHOLE_LINES}"
        raise Faulty(Fault("bad_frame", entry.start, expected, "none"))
    record.tokens, fault = _tokens(entry, order)
    record.header = logdump_header.header_of(entry, order, options.zone_offset)
    logdump_header.check_summary(entry, record.header, order)
    record.data = joined(entry.data)
    if fault:
        raise Faulty(fault)
    record.user = joined(entry.user_rows)
    user = entry.token("U")
    if user and len(record.user) != user.length:
        record.user = b""  # USERTOKEN DETAIL shows texts, whose encoding is not public
    _check_lengths(record, int.from_bytes(record.header[4:6], order))  # type: ignore[arg-type]
    if record.what == io_types.METADATA:
        record.data = _definition(record)
    if record.what == io_types.DDL:
        _check_statement(record, order)
    if record.what != io_types.CHANGE:
        return
    _check_image(record)
    record.data = _area(record, order)
    if entry.seqno is None:
        expected = "the number of the trail file: a line `Current LogTrail is ...` in front, or option seqno"
        raise Faulty(Fault("missing_change_seq", entry.start, expected, "none"))


def _check_lengths(record: Printed, rec_length: int) -> None:
    """Do all places that tell a length tell the same?"""
    entry = record.entry
    assert entry.summary is not None
    data, tokens = entry.token("D"), {token.id: token.length for token in entry.tokens}
    if entry.summary.length != rec_length or data and data.length != rec_length:
        found = f"RecLength {rec_length}, Len {entry.summary.length}" + (f", D {data.length}" if data else "")
        raise Faulty(Fault("contradiction", entry.summary.at, "one length of the data", found))
    whole = 8 + sum(4 + length for id_, length in tokens.items() if id_ not in "GZ")
    if tokens and {tokens.get("G"), tokens.get("Z")} != {whole}:
        found = f"G {tokens.get('G')}, Z {tokens.get('Z')}, and {whole} by the tokens between them"
        raise Faulty(Fault("contradiction", entry.start, "one length of the record", found))
    if len(record.data) > rec_length:
        raise Faulty(Fault("contradiction", entry.data[0].at, f"{rec_length} bytes", f"{len(record.data)} bytes"))


def _check_image(record: Printed) -> None:
    """Does the line above the image say what the header says?"""
    entry, image = record.entry, record.entry.image
    if entry.name is None or image is None:
        lacks = "the table's name" if entry.name is None else "`After  Image:` or `Before Image:`, and Partition"
        raise Faulty(Fault("bad_frame", entry.start, f"a line with {lacks}; {WHOLE_LINES}", "none"))
    side, partition = chr(record.header[sequence.BEFORE_AFTER]), record.header[sequence.PARTITION]
    trans_ind = record.header[sequence.TRANS_IND]
    if (image.side[0], image.partition, image.trans_ind) != (side, partition, trans_ind):
        found = f"{image.side[0]}, {image.partition}, {image.trans_ind} and {side}, {partition}, {trans_ind}"
        raise Faulty(Fault("contradiction", image.at, "one BeforeAfter, Partition and TransInd", found))


def _check_statement(record: Printed, order: str) -> None:
    """Is it known whether DDL is a truncate, and if so of which table? Its items stand in front of the statement."""
    rec_length = int.from_bytes(record.header[4:6], order)  # type: ignore[arg-type]
    items = metadata.ddl_of(record.data)
    is_other = items.get("operation", "TRUNCATE") != "TRUNCATE" or items.get("object_type", "TABLE") != "TABLE"
    if len(record.data) < rec_length and not is_other:
        at = record.entry.image.at if record.entry.image else record.entry.start
        expected = f"the operation and the table of DDL: print the text again after `RECLEN {rec_length}`"
        raise Faulty(Fault("cut_by_reclen", at, expected, f"{len(record.data)} of {rec_length} bytes"))


def _area(record: Printed, order: str) -> bytes:
    """The column area. Raises: Faulty where it is cut, or where the column lines tell another one."""
    entry, area = record.entry, record.data
    rec_length = int.from_bytes(record.header[4:6], order)  # type: ignore[arg-type]
    if len(area) < rec_length:
        whole = _from_columns(entry, order, int(io_types.FORM_OF[record.io_type]))
        if len(whole) != rec_length or not whole.startswith(area):
            words = f"`DETAIL DATA` and `RECLEN {rec_length}`" if not area else f"`RECLEN {rec_length}`"
            expected = f"RecLength {rec_length} bytes: print the text again after {words}"
            at = entry.image.at if entry.image else entry.start
            raise Faulty(Fault("cut_by_reclen", at, expected, f"{len(area)} bytes"))
        return whole
    if entry.columns and not _is_printed(entry, area, order, int(io_types.FORM_OF[record.io_type])):
        lines = " ".join(f"{line.ordinal}:{line.length}" for line in entry.columns)
        found = f"the lines {lines}, the image {area[:24].hex()}"
        raise Faulty(Fault("contradiction", entry.columns[0].at, "the same columns in the image and its lines", found))
    return area


def _from_columns(entry: Entry, order: str, form: int) -> bytes:
    """A column area from the rows of its columns; what is missing in one of them is missing in the area."""
    lists: dict[bool, bytes] = {True: b"", False: b""}
    for line in entry.columns:
        lists[line.is_key] += struct.pack(MARKS[order] + "HH", line.ordinal & 0xFFFF, line.length & 0xFFFF) + joined(
            line.rows
        )
    if form == io_types.KEY_AND_AFTER:
        return struct.pack(MARKS[order] + "H", len(lists[True]) & 0xFFFF) + lists[True] + lists[False]
    return lists[False] if form in (io_types.AFTER, io_types.BEFORE) else b""


def _items(area: bytes, order: str) -> list[tuple[int, bytes]] | None:
    """Columns that fill an area to its end; None where they do not."""
    at, found = 0, []
    while at < len(area):
        if at + LEN_ITEM > len(area):
            return None
        index, size = struct.unpack_from(MARKS[order] + "HH", area, at)
        at += LEN_ITEM
        if size < LEN_NULL or at + size > len(area):
            return None
        found.append((index, area[at : at + size]))
        at += size
    return found


def _readings(area: bytes, order: str, form: int) -> list[tuple[list, list]]:
    """(columns before, columns after), or (none, columns of the one image), as each width allows."""
    readings = []
    for width in WIDTHS.get(form, ()):
        start = width + int.from_bytes(area[:width], order)  # type: ignore[arg-type]
        before, after = _items(area[width:start], order), _items(area[start:], order)
        if before is not None and after is not None and start <= len(area) and bool(width) == bool(before):
            readings.append((before, after))
    return readings


def _is_printed(entry: Entry, area: bytes, order: str, form: int) -> bool:
    """Do the column lines show a reading of the area? Their rows may be cut."""
    lines = entry.columns
    for before, after in _readings(area, order, form):
        items = before + after
        if len(items) == len(lines) and all(
            (line.ordinal, line.length) == (index, len(value))
            and value.startswith(joined(line.rows))
            and (form != io_types.KEY_AND_AFTER or line.is_key == (n < len(before)))
            for n, (line, (index, value)) in enumerate(zip(lines, items, strict=True))
        ):
            return True
    return False


def _orders(entry: Entry) -> list[str]:
    """Byte orders in which a record can be read."""
    fits = list(ORDERS)
    area, summary = joined(entry.data), entry.summary
    form = io_types.FORM_OF[_io_type(entry)]
    ways = [lambda order: order in logdump_header.order_of(entry)]
    is_full = entry.image is not None and not entry.image.partition & sequence.FIELD_COMP
    if summary and area and len(area) == summary.length and form in WIDTHS and not is_full:
        ways.append(lambda order: bool(_readings(area, order, form)))
        if entry.columns:
            ways.append(lambda order: _is_printed(entry, area, order, form))
    elif area and entry.columns:
        ways.append(lambda order: _from_columns(entry, order, form).startswith(area))
    if entry.ggs_rows:
        ways.append(lambda order: _len_tokens(joined(entry.ggs_rows), order) == entry.ggs_rows.num_bytes)
    for fit in ways:
        left = [order for order in fits if fit(order)]
        if len(left) == 1:
            return left
    return fits


def _io_type(entry: Entry) -> int:
    header, fields = entry.token("H"), entry.fields
    if header and header.rows.num_bytes > sequence.IO_TYPE:
        return joined(header.rows)[sequence.IO_TYPE]
    return int(fields["iotype"], 16) & 0xFF if "iotype" in fields else 0


def _len_tokens(data: bytes, order: str) -> int:
    """Bytes of the whole tokens that data begins with."""
    at = 0
    while at + LEN_ITEM <= len(data):
        end = at + LEN_ITEM + struct.unpack_from(MARKS[order] + "H", data, at + 2)[0]
        if end > len(data):
            break
        at = end
    return at


def _tokens(entry: Entry, order: str) -> tuple[bytes, Fault | None]:
    """The GGS tokens as the trail has them, up to the first that is cut; what is wrong with them."""
    token, shown = entry.token("T"), joined(entry.ggs_rows)
    for one in entry.ggs:
        head = struct.pack(MARKS[order] + "BBH", ord(one.id) & 0xFF, one.info, one.length & 0xFFFF)
        shown += head + joined(one.rows)
        if one.rows.num_bytes < one.length:
            break
        if one.rows.num_bytes > one.length:
            found = f"{one.rows.num_bytes} bytes of token {one.id}"
            return b"", Fault("contradiction", one.rows[0].at, f"{one.length} bytes, as its line says", found)
    whole = shown[: _len_tokens(shown, order)]
    length = token.length if token and shown else len(shown)
    if len(whole) == length:
        return whole, None
    if length < len(shown):
        found = f"T {length}, GGS tokens {len(shown)}"
        return whole, Fault("contradiction", entry.start, "one length of the GGS tokens", found)
    longest = max((one.length for one in entry.ggs), default=max(length, len(shown) + 1))
    expected = f"GGS tokens that are whole: print the text again after `RECLEN {longest}`"
    return whole, Fault("cut_by_reclen", entry.start, expected, f"{len(whole)} bytes of whole tokens")


def _definition(record: Printed) -> bytes:
    """What stands for the body of a definition, which is not printed: its text. One without is like no other."""
    lines = "\n".join(re.sub(r"\s+", " ", line) for line in record.entry.others)
    if record.header[sequence.ORIG_NODE] != metadata.TDR or "Definition for table" in lines:
        return lines.encode("latin-1")
    return record.data or f"{record.entry.seqno}/{record.entry.summary.rba if record.entry.summary else 0}".encode()
