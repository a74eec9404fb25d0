"""Logdump's text, line by line: where its records are, and which lines say what of them.

A record begins with a line `TokenID x47 'G'`, with at least 20 underscores, or with a summary line, whichever comes
first; a prompt may be glued in front of that line. It ends before the next record, before a prompt, or where its tokens
are as long as its line `TokenID x54 'T'` says: nothing of it can follow then. A record at the end of the text of which
none is the case may go on.
Lines behind a record that can only be part of one (rows of hex, columns, fields of a header) are an entry of their own.
So are lines that are no text. All other lines are framing: prompts, banners, counts.

Text is read as Latin-1, so that a place in it is a place in the bytes.
Source: docs/formats/goldengate_logdump.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from inlet.codecs.goldengate.trail import file_header

PROMPT = re.compile(r"(?:\s*Logdump(?: \d+)? ?>)+", re.ASCII)
BORDER = re.compile(r"\s*(_{20,})", re.ASCII)
TRAIL = re.compile(r"\s*Current LogTrail is\s+(\S.*?)\s*$", re.ASCII)
TOKEN = re.compile(
    r"\s*TokenID\s+(?:x([0-9a-fA-F]{2}) '.'|(\S)(?: \(x[0-9a-fA-F]{2}\))?,)[^,]*?\s*Info\s+x?([0-9a-fA-F]{1,2}),?\s+"
    r"Length\s+(\d+)\s*$",
    re.ASCII,
)
SUMMARY = re.compile(
    r"\s*(\d{4}[/-]\d\d[/-]\d\d \d\d:\d\d:\d\d\.\d{3}\.?\d{3})\s+(\S+)\s+Len\s+(\d+)\s+RBA\s+(\d{1,10})\s*$", re.ASCII
)
NAME = re.compile(r"\s*(?:(?:Table|Database) )?Name:\s*(.*?)(?:\s+\((Ref )?TDR Index:\s*(\d+)\))?\s*$", re.ASCII)
IMAGE = re.compile(r"\s*(Before|After)\s+Image:.*?Partition\s+(x[0-9a-fA-F]+|\d+)\s+(\S+)\s+([bmes])\s*$", re.ASCII)
COLUMN = re.compile(
    r"\s*(Column|KeyCol)\s+(\d+) \(0?x([0-9a-fA-F]+)\), Len(?:gth)?\s+(\d+) \(0?x([0-9a-fA-F]+)\)\.?\s*$", re.ASCII
)
PAIR = re.compile(
    r"\b(Hdr-Ind|Partition|UndoFlag|BeforeAfter|RecLength|IOType|OrigNode|TransInd|FormatType|SyskeyLen|Incomplete|"
    r"Continued|RecCount)\s*:\s*\S*\s*\(x([0-9a-f]+)\)|\b(AuditRBA|AuditPos)\s*:\s*(-?\d+)|"
    r"\b(IO Time)\s*:\s*(\S+ \S+)|\b(DDR/TDR index):\s*\((\d+), *(\d+)\)",
    re.ASCII | re.IGNORECASE,
)
HEX = re.compile(r"\s*((?:[0-9a-fA-F]{4} ){0,9}(?:[0-9a-fA-F]{4}|[0-9a-fA-F]{2}))\s*(?:([|:]) ?(.*))?$", re.ASCII)
GGS_TOKENS, USER_TOKENS = re.compile(r"\s*GGS tokens:"), re.compile(r"\s*User tokens:")
NO_TEXT = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")  # in no line that a terminal shows
BLANKS = " \t\r\x0b\x0c"
BYTE_ORDER_MARK = b"\xef\xbb\xbf".decode("latin-1")
FILE_HEADER = "*FileHeader*"
METADATA = "Metadata"


class Row(NamedTuple):
    """A row of hex: where it begins in the text."""

    at: int
    hex: str


class Token(NamedTuple):
    """A line `TokenID`, and the rows behind it."""

    id: str
    info: int
    length: int
    rows: list[Row]


class ColumnLine(NamedTuple):
    """A line `Column` or `KeyCol`, and the rows behind it."""

    at: int
    is_key: bool
    ordinal: int  # from 0
    length: int
    rows: list[Row]


class Summary(NamedTuple):
    """The line with the time, the operation, the length of the data, and the record's place in the trail."""

    at: int
    time: str
    operation: str
    length: int
    rba: int


class Image(NamedTuple):
    at: int
    side: str
    partition: int
    trans_ind: int


@dataclass
class Entry:
    """What the text says of a record: its bytes are [start, end), its last line goes up to `stop`. An `orphan` is lines
    that are part of none.
    """

    start: int
    end: int
    stop: int
    seqno: int | None = None
    orphan: str = ""  # what is wrong with its lines
    has_border: bool = False
    tokens: list[Token] = field(default_factory=list)  # of the record: G, H, D, U, T, Z
    fields: dict[str, str] = field(default_factory=dict)  # of the header, by its name in small letters
    summary: Summary | None = None
    name: str | None = None
    index: int | None = None
    image: Image | None = None
    data: list[Row] = field(default_factory=list)
    columns: list[ColumnLine] = field(default_factory=list)
    has_ggs: bool = False
    ggs_rows: list[Row] = field(default_factory=list)  # GGSTOKEN ON
    ggs: list[Token] = field(default_factory=list)  # GGSTOKEN DETAIL
    has_user: bool = False
    user_rows: list[Row] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # lines that are none of these, as those of a definition

    def token(self, id_: str) -> Token | None:
        return next((token for token in self.tokens if token.id == id_), None)

    @property
    def is_file_header(self) -> bool:
        return self.name == FILE_HEADER

    @property
    def is_metadata(self) -> bool:
        return self.summary is not None and self.summary.operation == METADATA

    def is_over(self) -> bool:
        """Is all there that its token lines announce?"""
        if not self.has_ggs:
            return False
        tokens, user = self.token("T"), self.token("U")
        if self.image is None or self.token("Z") is None or tokens is None or user and not self.has_user:
            return False
        if self.ggs:
            last = self.ggs[-1]
            return sum(4 + token.length for token in self.ggs) >= tokens.length and num_bytes(last.rows) >= last.length
        return num_bytes(self.ggs_rows) >= tokens.length

    def is_over_at_blank(self) -> bool:
        """The same where a line without anything in it follows: a record without tokens ends with its columns."""
        if self.image is None or self.token("Z") is None or self.token("T") or self.token("U") or self.is_metadata:
            return False
        return num_bytes(self.data) == self.summary.length if self.summary else False


def joined(rows: list[Row]) -> bytes:
    return bytes.fromhex("".join(row.hex for row in rows))


def num_bytes(rows: list[Row]) -> int:
    return sum(len(row.hex) - row.hex.count(" ") for row in rows) // 2


class Scan:
    """Entries of a text. `entries` are over; `open` may go on; `seqno` is the number of the trail file that was opened
    last, or the default where its name tells none.
    """

    def __init__(self, text: str, seqno: int | None, default: int | None, is_final: bool):
        self.entries: list[Entry] = []
        self.open: Entry | None = None
        self.seqno, self.default = seqno, default
        self.end = 0  # behind the last line that was read
        self._into: list[Row] | None = None
        for at, line, end in lines_of(text):
            if text[end - 1] != "\n" and not (is_final and self._is_readable(line)):
                break
            self.end = end
            self._read(at, line)
        if is_final and self.open is not None and self.open.orphan:
            self.close()

    def _is_readable(self, line: str) -> bool:
        """Is a line without an end whole? A row of hex is if its text is, where blanks at the end may be left out."""
        if self.open is None or self.open.orphan or PROMPT.match(line) or NO_TEXT.search(line):
            return True
        row = HEX.match(line)
        if not row or not row[2]:
            return False
        return len(bytes.fromhex(row[1]).rstrip(b" ")) <= len(row[3])

    def is_over(self, at: int) -> bool:
        """Is nothing but framing behind a place?"""
        return self.open is None and (not self.entries or self.entries[-1].stop <= at)

    def close(self) -> None:
        """Nothing more belongs to what is open."""
        if self.open is not None:
            self.entries.append(self.open)
        self.open, self._into = None, None

    def _begin(self, at: int) -> Entry:
        self.close()
        self.open = Entry(at, at, self.end, self.seqno)
        return self.open

    def _orphan(self, at: int, line: str, why: str) -> None:
        if self.open is None or self.open.orphan != why:
            entry = self._begin(at)
            entry.orphan, entry.others = why, [ascii(line.strip(BLANKS)[:40])]
        self._extend(at, line)

    def _extend(self, at: int, line: str) -> None:
        assert self.open is not None
        self.open.stop = self.end
        self.open.end = at + len(line if NO_TEXT.search(line) else line.rstrip(BLANKS))

    def _read(self, at: int, line: str) -> None:
        if NO_TEXT.search(line):
            self._orphan(at, line, "text of logdump")
            return
        if prompt := PROMPT.match(line):
            self.close()
            glued = re.search(r"_{20,}|TokenID ", line[prompt.end() :])
            if glued is None:
                return
            at, line = at + prompt.end() + glued.start(), line[prompt.end() + glued.start() :]
        if trail := TRAIL.match(line):
            self.close()
            number = file_header.number_of(trail[1])
            self.seqno = self.default if number is None else number
        elif not line.strip(BLANKS):
            if self.open is not None and (self.open.orphan or self.open.is_over_at_blank()):
                self.close()
        else:
            self._read_record(at, line)

    def _read_record(self, at: int, line: str) -> None:
        entry = self.open if self.open is not None and not self.open.orphan else None
        token, summary = TOKEN.match(line), SUMMARY.match(line)
        token_id = (token[2] or chr(int(token[1], 16))) if token else ""
        border = BORDER.match(line)
        is_new = token_id == "G" or border and (entry is None or entry.has_border or entry.summary is not None)
        if is_new or summary and (entry is None or entry.summary is not None):
            entry = self._begin(at + len(line) - len(line.lstrip(BLANKS)))
        if entry is None:
            if token or COLUMN.match(line) or IMAGE.match(line) or PAIR.search(line) or GGS_TOKENS.match(line):
                self._orphan(at, line, "a record in front of these lines")
            elif (row := HEX.match(line)) and row[2]:
                self._orphan(at, line, "a record in front of these lines")
            elif self.open is not None:
                self.close()
            return
        if border:
            entry.has_border, self._into = True, None
        elif summary:
            entry.summary = Summary(at, summary[1], summary[2], int(summary[3]), int(summary[4]))
            self._into = None
        elif token:
            found = Token(token_id, int(token[3], 16), int(token[4]), [])
            (entry.ggs if entry.has_ggs else entry.tokens).append(found)
            self._into = found.rows
        else:
            self._read_line(entry, at, line)
        self._extend(at, line)
        if entry.is_over():
            self.close()

    def _read_line(self, entry: Entry, at: int, line: str) -> None:
        """Any other line of a record."""
        if (row := HEX.match(line)) and self._into is not None:
            self._into.append(Row(at + row.start(1), row[1]))
        elif column := COLUMN.match(line):
            is_key, rows = column[1] == "KeyCol", []  # type: tuple[bool, list[Row]]
            entry.columns.append(ColumnLine(at, is_key, int(column[2]), int(column[4]), rows))
            self._into = rows
        elif image := IMAGE.match(line):
            partition = int(image[2][1:], 16) if image[2][0] == "x" else int(image[2])
            entry.image, self._into = Image(at, image[1], partition, "bmes".index(image[4])), entry.data
        elif GGS_TOKENS.match(line):
            entry.has_ggs, self._into = True, entry.ggs_rows
        elif USER_TOKENS.match(line):
            entry.has_user, self._into = True, entry.user_rows
        elif entry.summary and entry.name is None and (name := NAME.match(line)):
            entry.name, entry.index = name[1], int(name[3]) if name[3] else None
            self._into = entry.data if entry.is_file_header else None
        elif entry.summary is None and (pairs := PAIR.findall(line)):
            for pair in pairs:
                word = next(filter(None, pair))
                entry.fields[word.lower()] = ",".join(filter(None, pair)).partition(",")[2]
        else:
            self._into = None
            entry.others.append(line.strip(BLANKS))


def lines_of(text: str) -> Iterator[tuple[int, str, int]]:
    """Place of each line, the line without its end, and where the next one begins."""
    at = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield at, text[at:end].removesuffix("\n").removesuffix("\r"), end
        at = end
