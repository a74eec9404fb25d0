"""Records of a GoldenGate trail -> the text that Logdump prints of them: goldengate.md, chapter 9. Knows nothing of
inlet.

Where dumps do not say how a line looks, it is left out, or marked ASSUMED here.
"""

import datetime
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from tests.encode.goldengate_defgen import DATABASE, definition
from tests.encode.goldengate_tokens import DDR, EPOCH, FIELD_COMP, TDR, TDR_REFERENCE, token
from tests.encode.goldengate_trail import KEY_UPDATE, METADATA, Record

BEHIND_THE_FIXED_PART = 34  # of a GHDR: what Logdump 21.3 shows as zeros (2.2)
OPERATIONS = {  # as the summary line names an IOType (3)
    1: "Abort",
    2: "Commit",
    3: "Delete",
    5: "Insert",
    10: "Update",
    15: "FieldComp",
    100: "GGSPurgedata",
    115: "GGSPKUpdate",
    116: "LargeObject",
    134: "GGSUnifiedUpdate",
    135: "GGSUnifiedPKUpdate",
    140: "Upsert",
    150: "RestartAbend",
    151: "RestartOK",
    160: "DDLOP",
    170: "Metadata",
}
WITHOUT_COLUMN_LINES = {116, 134, 135, 160, 170}  # no public dump shows any for these
RECORD_TOKENS = {"H": "GHDR", "D": "Data", "U": "User Tokens", "T": "GGS Tokens"}  # ASSUMED: the name of U
GGS_TOKENS = {"R": "ORAROWID", "L": "LOGCSN", "6": "TRANID", "t": "ORATAG", "D": "DDL"}


@dataclass(frozen=True)
class Style:
    """How Logdump was set. `release` 21 and others differ in column lines and in what they mask; `separator` stands
    between hex and text, `:` in old releases; `prompt` is glued before a record, `{}` is its number.
    """

    release: int = 21
    header_token: bool = True  # HEADERTOKEN DETAIL
    ggs_token: str = "detail"  # DETAIL; "on" prints the bytes only; "" nothing
    reclen: int = 140
    zone: datetime.timedelta = datetime.timedelta()  # of the machine that runs Logdump
    separator: str = "|"
    prompt: str = ""


def logdump(records: Iterable[Record], style: Style = Style()) -> str:
    """The text of records."""
    return "\n".join(printed(record, style, number) for number, record in enumerate(records, 1))


def file_header(data: bytes, created_at: datetime.datetime, style: Style = Style()) -> str:
    """The text of a file's first record. Its Len is without both ends (1.2). ASSUMED: no more than this is printed."""
    length = len(data) - 8
    summary = f"{time_text(created_at, style)} {'FileHeader':<20} Len {length:>5} RBA 0"
    return "\n".join(["_" * 67, summary, "Name: *FileHeader*", *hex_rows(data[4:-4], style), ""])


def printed(record: Record, style: Style, number: int) -> str:
    """One record."""
    time = time_text(record.header["io_time"], style)
    lines = [*(_record_tokens(record, style) if style.header_token else []), "_" * 67, *_header(record, time), ""]
    lines += [*_summary(record, time), *_image(record, style), ""]
    lines[0] = style.prompt.format(number) + lines[0]
    if record.tokens and style.ggs_token:
        lines += ["GGS tokens:", *_ggs_tokens(record, style), ""]
    return "\n".join(lines)


def time_text(at: datetime.datetime | int | None, style: Style) -> str:
    """`yyyy/MM/dd HH:mm:ss.mmm.uuu`, in the zone of the machine (2.3)."""
    if at is None:
        raise ValueError("how Logdump prints an absent time is not public")
    moment = (
        EPOCH + datetime.timedelta(microseconds=at) if isinstance(at, int) else at.astimezone(datetime.UTC)
    ) + style.zone
    milliseconds, microseconds = divmod(moment.microsecond, 1000)
    return f"{moment:%Y/%m/%d %H:%M:%S}.{milliseconds:03d}.{microseconds:03d}"


def hex_rows(data: bytes, style: Style) -> list[str]:
    """20 bytes a row, in groups of two, and as text; no more than RECLEN bytes."""
    data, rows = data[: style.reclen], []
    for at in range(0, len(data), 20):
        row = data[at : at + 20]
        groups = " ".join(row[n : n + 2].hex() for n in range(0, len(row), 2))
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f" {groups:<49} {style.separator} {text}".rstrip())
    return rows


def token_line(token_id: str, name: str, info: int, length: int) -> str:
    return f"TokenID x{ord(token_id):02x} '{token_id}' {name:<16} Info x{info:02x}  Length {length:>4}"


def _record_tokens(record: Record, style: Style) -> list[str]:
    """HEADERTOKEN DETAIL: the tokens of the record, and the bytes of the GHDR."""
    lines = [token_line("G", "Record Header", record.data[1], record.length)]
    for token_id, info, payload in _tokens(record.data[4:-4], record.order):
        lines.append(token_line(token_id, RECORD_TOKENS[token_id], info, len(payload)))
        if token_id == "H":
            tail = payload[BEHIND_THE_FIXED_PART:]
            shown = bytes(len(tail)) if style.release >= 21 else tail
            lines += hex_rows(payload[:BEHIND_THE_FIXED_PART] + shown, style)
    return [*lines, token_line("Z", "Record Trailer", record.data[-3], record.length)]


def _tokens(data: bytes, order: str):
    while data:
        info, length = struct.unpack_from(order + "BH", data, 1)
        yield chr(data[0]), info, data[4 : 4 + length]
        data = data[4 + length :]


def _header(record: Record, time: str) -> list[str]:
    """GHDR ON: two fields a line."""
    said = record.header
    rba = said["audit_rba"]
    left_of_position = (
        "DDR/TDR index:   ({:03d}, {:03d})".format(*rba) if isinstance(rba, tuple) else f"AuditRBA   : {rba:>10}"
    )
    pairs = [
        (_field("Hdr-Ind", said["hdr_ind"]), _field("Partition", said["partition"], True)),
        (_field("UndoFlag", said["undo_flag"], True), _field("BeforeAfter", said["before_after"])),
        (f"RecLength  : {said['rec_length']:>5}  (x{said['rec_length']:04x})", f"IO Time    : {time}"),
        (_field("IOType", said["io_type"]), _field("OrigNode", said["orig_node"])),
        (_field("TransInd", said["trans_ind"], True), _field("FormatType", said["format_type"])),
        (_field("SyskeyLen", said["syskey_len"]), _field("Incomplete", said["incomplete"], True)),
        (left_of_position, f"AuditPos   : {said['audit_pos']}"),
        (_field("Continued", "Y" if said["continued"] else "N", code=said["continued"]),)
        + (_field("RecCount", said["rec_count"]),),
    ]
    return [f"{left:<30}{right}" for left, right in pairs]


def _field(name: str, value: str | int, is_hidden: bool = False, code: int | None = None) -> str:
    """A field of one byte: as a letter or number, and in hex. Bytes that are shown as text are mostly a point."""
    byte = code if code is not None else ord(value) if isinstance(value, str) else value
    shown = (chr(byte) if 32 <= byte < 127 else ".") if is_hidden else value
    return f"{name:<11}: {shown:>5}  (x{byte:02x})"


def _summary(record: Record, time: str) -> list[str]:
    """Time, operation, length, place; the table. ASSUMED: an IOType without a known name is shown as its number."""
    said = record.header
    operation = OPERATIONS.get(said["io_type"], str(said["io_type"]))
    summary = f"{time} {operation:<20} Len {said['rec_length']:>5} RBA {record.rba}"
    index = ""
    if record.tdr_index is not None:
        is_reference = said["io_type"] == METADATA and said["orig_node"] == TDR_REFERENCE
        is_definition = said["io_type"] == METADATA and said["orig_node"] == TDR
        index = f"  ({'Ref ' if is_reference else ''}TDR Index: {record.tdr_index})" if not is_definition else ""
    return [summary, f"Name: {record.table or ''}{index}".rstrip()]


def _image(record: Record, style: Style) -> list[str]:
    """The image: its bytes, then its columns. ASSUMED: RECLEN cuts each run of bytes by itself; releases before 21 show
    Partition as a number.
    """
    said = record.header
    partition = f"x{said['partition']:02x}" if style.release >= 21 else said["partition"]
    letters = "G" + ("U" if record.user is not None else "")
    which = "Before Image:" if said["before_after"] == "B" else "After  Image:"
    lines = [f"{which:<58}Partition {partition}   {letters:<2} {'bmes'[said['trans_ind']]}"]
    if said["io_type"] == METADATA:
        return [*lines, *_metadata(record)]
    lines += hex_rows(record.area, style)
    is_segment = said["continued"] or said["rec_count"] > 1
    if (
        said["io_type"] in WITHOUT_COLUMN_LINES
        or not said["partition"] & FIELD_COMP
        or is_segment
        or said["syskey_len"]
    ):
        return lines
    return lines + (
        _key_update(record, style) if said["io_type"] == KEY_UPDATE else _columns(record, record.area, style)
    )


def _metadata(record: Record) -> list[str]:
    """What Logdump derives of a DDR or a TDR (6)."""
    if record.header["orig_node"] == DDR:
        return ["DDR Version: 1", *(f"{name}: {value}" for name, value in DATABASE.items())]
    return ["TDR version: 11", *definition(record.definition)] if record.header["orig_node"] == TDR else []


def _columns(record: Record, area: bytes, style: Style, is_key: bool = False) -> list[str]:
    lines = []
    while area:
        index, length = struct.unpack_from(record.order + "HH", area)
        if style.release >= 21 and not is_key:
            lines.append(f"Column {index} (0x{index:04x}), Length {length} (0x{length:04x}).")
        else:
            word = "KeyCol" if is_key else "Column"
            lines.append(f"{word} {index:>5} (x{index:04x}), Len {length:>5} (x{length:04x})")
        lines += hex_rows(area[4 : 4 + length], style)
        area = area[4 + length :]
    return lines


def _key_update(record: Record, style: Style) -> list[str]:
    """115 (4.5): what stands before the key's length has the two bytes of that length, too."""
    len_key = struct.unpack_from(record.order + "H", record.area)[0]
    key, rest = record.area[2 : 2 + len_key], record.area[2 + len_key :]
    return [
        f"Before Image Len {2 + len_key} (x{2 + len_key:08x})",
        f"KeyLen {len_key} (x{len_key:08x})",
        *_columns(record, key, style, is_key=True),
        f"After Image Len {len(rest)} (x{len(rest):08x})",
        *_columns(record, rest, style),
    ]


def _ggs_tokens(record: Record, style: Style) -> list[str]:
    """GGSTOKEN DETAIL a token each; GGSTOKEN ON the bytes of all (7, S8). ASSUMED: the name of tokens without one."""
    infos = [(token_id, 1 if token_id == "t" and not data else 0, data) for token_id, data in record.tokens]
    if style.ggs_token == "on":
        return hex_rows(b"".join(token(token_id, data, record.order, info) for token_id, info, data in infos), style)
    lines = []
    for token_id, info, data in infos:
        lines += [token_line(token_id, GGS_TOKENS.get(token_id, "Unknown"), info, len(data)), *hex_rows(data, style)]
    return lines
