"""Logdump's text, line by line: where its records are, and which lines say what of them.

A record begins with a line `TokenID x47 'G'`, with at least 20 underscores, or with a summary line, whichever comes
first; a prompt may be glued in front of that line. It ends before the next record, before a prompt, or where its tokens
are as long as its line `TokenID x54 'T'` says: nothing of it can follow then. A record at the end of the text of which
none is the case may go on.
Lines behind a record that can only be part of one (rows of hex, columns, fields of a header) are an entry of their own.
So are lines that are no text. All other lines are framing: prompts, banners, counts. A fence of code (```) ends a
record; other text, and a blank line, end the last one, where its lines so far are as long as they say.
What is in front of a record's first line and is no part of logdump's text (patterns.py) is left out of its other lines,
too. A record's line with something else in front of it is an entry of its own.

Text is read as Latin-1, so that a place in it is a place in the bytes.
Source: docs/formats/goldengate_logdump.md.
"""

import re
from collections.abc import Iterator

from inlet.codecs.goldengate.logdump.entry import ColumnLine, Entry, Image, Row, Rows, Summary, Token
from inlet.codecs.goldengate.logdump.patterns import (
    BORDER,
    COLUMN,
    FENCE,
    GGS_TOKENS,
    HEX,
    IMAGE,
    LEN_LINE,
    NAME,
    NO_TEXT,
    PAIR,
    PROMPT,
    SUMMARY,
    TOKEN,
    TRAIL,
    USER_TOKENS,
    begins,
    has_front,
    lead_of,
)
from inlet.codecs.goldengate.trail import file_header

BLANKS = " \t\r\x0b\x0c"
BYTE_ORDER_MARK = b"\xef\xbb\xbf".decode("latin-1")


class Scan:
    """Entries of a text. `entries` are over; `open` may go on; `seqno` is the number of the trail file that was opened
    last, or the default where its name tells none.
    """

    def __init__(self, text: str, seqno: int | None, default: int | None, is_final: bool):
        self.entries: list[Entry] = []
        self.open: Entry | None = None
        self.seqno, self.default = seqno, default
        self.end = 0  # behind the last line that was read
        self._lead = ""  # in front of the lines of this record and those before
        self._led_at: int | None = None  # where the line begins that is read, with what is in front of it
        self._into: Rows | None = None
        for at, line, end in lines_of(text):
            lead = self._len_lead(line)
            if text[end - 1] != "\n" and not (is_final and self._is_readable(line[lead:])):
                break
            self.end = end
            self._led_at = at if lead else None
            self._read(at + lead, line[lead:])
        if is_final and self.open is not None and self.open.is_over_at_end():
            self.close()

    def _len_lead(self, line: str) -> int:
        """How many characters are in front of a line, and no part of it."""
        lead, size = lead_of(line)
        own = line[size:]
        if begins(own):
            self._lead = lead
        is_alone = self.open is None or bool(self.open.orphan)
        return size if lead == self._lead or is_alone else 0

    def _is_readable(self, line: str) -> bool:
        """Is a line without an end whole? A row of hex is if its text is, where blanks at the end may be left out."""
        if self.open is None or self.open.orphan or self.open.is_followed or NO_TEXT.search(line):
            return True
        if PROMPT.match(line) or FENCE.match(line):
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
        start = at if self._led_at is None else self._led_at  # so that a record alone shows what is in front of it
        self.open = Entry(start, start, self.end, self.seqno)
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
        elif FENCE.match(line):
            self.close()
        elif not line.strip(BLANKS):
            if self.open is not None and (self.open.orphan or self.open.is_over_at_blank()):
                self.close()
            elif self.open is not None and self.open.has_ggs and self.open.is_whole():
                self.open.is_followed = True
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
            if has_front(line):
                self._orphan(at, line, "lines as logdump prints them: strip what is in front of each")
            elif token or COLUMN.match(line) or IMAGE.match(line) or PAIR.search(line) or GGS_TOKENS.match(line):
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
            found = Token(token_id, int(token[3], 16), int(token[4]), Rows())
            (entry.ggs if entry.has_ggs else entry.tokens).append(found)
            self._into = found.rows
        elif not self._read_line(entry, at, line):
            if entry.is_whole():
                entry.is_followed, entry.stop, self._into = True, self.end, None
                return
            self._into = None
            entry.others.append(line.strip(BLANKS))
        entry.is_followed = False
        self._extend(at, line)
        if entry.is_over():
            self.close()

    def _read_line(self, entry: Entry, at: int, line: str) -> bool:
        """Any other line of a record. Out: False where it is none."""
        if (row := HEX.match(line)) and self._into is not None:
            self._into.append(Row(at + row.start(1), row[1]))
        elif column := COLUMN.match(line):
            is_key, rows = column[1] == "KeyCol", Rows()
            entry.columns.append(ColumnLine(at, is_key, int(column[2]), int(column[4]), rows))
            self._into = rows
        elif image := IMAGE.match(line):
            partition = int(image[2][1:], 16) if image[2][0] == "x" else int(image[2])
            entry.image, self._into = Image(at, image[1], partition, "bmes".index(image[4])), entry.data
        elif LEN_LINE.match(line):
            self._into = None
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
            return False
        return True


def lines_of(text: str) -> Iterator[tuple[int, str, int]]:
    """Place of each line, the line without its end, and where the next one begins."""
    at = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield at, text[at:end].removesuffix("\n").removesuffix("\r"), end
        at = end
