"""What logdump's text says of a record: its lines by what they are, and whether all of them are there."""

from dataclasses import dataclass, field
from typing import NamedTuple

FILE_HEADER = "*FileHeader*"
METADATA = "Metadata"
END_OF_DEFINITION = "End of definition"


class Row(NamedTuple):
    """A row of hex: where it begins in the text."""

    at: int
    hex: str


class Rows(list[Row]):
    """Rows of hex, and how many bytes they have: lines of other text ask it again and again."""

    num_bytes = 0

    def append(self, row: Row) -> None:
        super().append(row)
        self.num_bytes += (len(row.hex) - row.hex.count(" ")) // 2


class Token(NamedTuple):
    """A line `TokenID`, and the rows after it."""

    id: str
    info: int
    length: int
    rows: Rows


class ColumnLine(NamedTuple):
    """A line `Column` or `KeyCol`, and the rows after it."""

    at: int
    is_key: bool
    ordinal: int  # from 0
    length: int
    rows: Rows


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
    """What the text says of a record: its bytes are [start, end); its last line, and text that follows it, go up to
    `stop`. An `orphan` is lines that are part of none.
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
    data: Rows = field(default_factory=Rows)
    columns: list[ColumnLine] = field(default_factory=list)
    has_ggs: bool = False
    ggs_rows: Rows = field(default_factory=Rows)  # GGSTOKEN ON
    ggs: list[Token] = field(default_factory=list)  # GGSTOKEN DETAIL
    has_user: bool = False
    user_rows: Rows = field(default_factory=Rows)
    others: list[str] = field(default_factory=list)  # lines that are none of these, as those of a definition
    is_followed: bool = False  # by text, or a blank line, that may end it

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
            return sum(4 + token.length for token in self.ggs) >= tokens.length and last.rows.num_bytes >= last.length
        return self.ggs_rows.num_bytes >= tokens.length

    def is_over_at_blank(self) -> bool:
        """The same where a line without anything in it follows: a record without tokens ends with its columns."""
        if self.image is None or self.token("Z") is None or self.token("T") or self.token("U") or self.is_metadata:
            return False
        return self.data.num_bytes == self.summary.length if self.summary else False

    def is_whole(self) -> bool:
        """Are the lines so far as long as they say? Others, which nothing announces, may still follow."""
        if self.is_metadata:
            is_reference = self.summary is not None and self.summary.length == 0 and self.name is not None
            return is_reference or self.others[-1:] == [END_OF_DEFINITION]
        if self.summary is None or self.image is None or self.data.num_bytes != self.summary.length:
            return False
        if self.token("T") and not self.has_ggs or self.token("U") and not self.has_user:
            return False
        last: list[ColumnLine | Token] = [*self.columns[-1:], *self.ggs[-1:]]
        return all(line.rows.num_bytes == line.length for line in last)

    def is_over_at_end(self) -> bool:
        """Is it whole where the text ends?"""
        if self.orphan or self.is_followed:
            return True
        shown = sum(4 + column.length for column in self.columns)  # with index and length, maybe a length in front
        is_shown = self.summary is not None and self.columns and 0 <= self.summary.length - shown <= 4
        return self.is_whole() and (self.is_metadata or bool(is_shown) and self.is_over_at_blank())


def joined(rows: list[Row]) -> bytes:
    return bytes.fromhex("".join(row.hex for row in rows))
