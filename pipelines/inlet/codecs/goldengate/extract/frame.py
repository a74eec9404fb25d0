r"""Where the records of Extract's text files lie: rows, what begins and what ends a transaction, all of them records,
and what lies between them. The formats: extract/files.

Text   a record a line; an update's before-image and the after-image behind it are one record
SQL    a statement up to its semicolon, over line ends, outside of quotes; B and C a line each. What has no semicolon
       ends before the next line that begins with B, C or a verb
XML    an element dbupdate, a tag transaction, its end tag; outside of CDATA

>>> from inlet.codecs.goldengate.extract.options import Options
>>> [(piece.kind, piece.start, piece.end) for piece in pieces(b"B,1,2,3,\nI,A,T,1,\nC,\n", Options(column_names=False))]
[('begin', 0, 9), ('row', 9, 18), ('commit', 18, 21)]
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from inlet.codecs.goldengate.extract.options import Options, encoded

BEGIN, ROW, COMMIT, BETWEEN = "begin", "row", "commit", "between"
CDATA = rb"<!\[CDATA\[.*?\]\]>"
# In a *+ the alternative with (?!...) stands before one that begins with no single letter: Python 3.11.0 to 3.11.4 fail
# after a *+ that ends otherwise.
TOKEN_OF_XML = re.compile(
    rb"(?P<between>[ \t\r\n]+|<\?.*?\?>|<!--.*?-->|</?OracleGoldenGateFormatXML(?:\s[^>]*)?>)"
    rb"|(?P<begin><transaction(?:\s[^>]*)?>)|(?P<commit></transaction\s*>)"
    rb"|(?P<row><dbupdate[\s>](?:(?!</dbupdate\s*>|<!\[CDATA\[).|%b)*+</dbupdate\s*>)" % CDATA,
    re.DOTALL,
)
NEXT_OF_XML = re.compile(rb"<\?|<!--|</?OracleGoldenGateFormatXML[\s>]|</?transaction[\s>]|<dbupdate[\s>]")
NEXT_STATEMENT = rb"\n(?:[BC],|(?:INSERT|UPDATE|DELETE)\s)"
STATEMENT = re.compile(
    rb"(?:(?!%b)[^;'\"]|(?:'[^']*+'|\"[^\"]*+\"))*+(?:;|(?=%b)\n)" % (NEXT_STATEMENT, NEXT_STATEMENT), re.IGNORECASE
)
LINE = re.compile(rb"[^\n]*+\n")
BLANK = re.compile(rb"[ \t\r\n]+")


class Piece(NamedTuple):
    kind: str  # of BEGIN, ROW, COMMIT, BETWEEN
    start: int
    end: int


def pieces(data: bytes, options: Options, is_block: bool = False) -> Iterator[Piece]:
    """The pieces of some bytes, without a gap, up to the first one that may not be whole, or that none can be. In:
    whether the bytes are a block that was cut, whose last piece is whole.
    """
    end = 0
    for piece in {"text": _text, "sql": _sql, "xml": _xml}[options.format](data, options):
        if not may_begin(data[piece.start : piece.start + 1]):
            return
        yield piece
        end = piece.end
    if is_block and end < len(data):
        yield Piece(ROW, end, len(data))


def last_rows(found: list[Piece]) -> set[int]:
    """The rows behind which a transaction ends, maybe behind blanks, by their places in the list."""
    last, following = set(), None
    for n in reversed(range(len(found))):
        if found[n].kind == ROW and following == COMMIT:
            last.add(n)
        following = following if found[n].kind == BETWEEN else found[n].kind
    return last


def may_begin(rest: bytes) -> bool:
    """May a record of text begin so? With no control character, but for blanks."""
    return not rest or rest[0] >= 0x20 or rest[0] in b"\t\r\n"


@cache
def _marks(delimiter: str, charset: str, transactions: bool) -> tuple[bytes, ...]:
    """How lines begin that begin and end a transaction."""
    mark = encoded(delimiter, charset)
    return (b"B" + mark, b"C" + mark) if transactions else ()


def _kind(line: bytes, options: Options) -> str:
    marks = _marks("," if options.format == "sql" else options.delimiter, options.charset, options.transactions)
    if not line.strip():
        return BETWEEN
    if marks and line.startswith(marks[0]):
        return BEGIN
    return COMMIT if marks and line.strip() == marks[1].strip() else ROW


def _text(data: bytes, options: Options) -> Iterator[Piece]:
    at = 0
    while line := LINE.match(data, at):
        end = line.end()
        if _image(line[0], options) == "B":
            after = LINE.match(data, end)
            if after is None:
                return
            end = after.end() if _image(after[0], options) == "A" else end
        yield Piece(_kind(line[0], options), at, end)
        at = end


def _image(line: bytes, options: Options) -> str | None:
    """The image indicator of an update's line."""
    if not (options.operation_indicator and options.image_indicator):
        return None
    mark = re.escape(encoded(options.delimiter, options.charset))
    found = re.match(b"[UV]%b([BA])%b" % (mark, mark), line)
    return found[1].decode() if found else None


def _sql(data: bytes, options: Options) -> Iterator[Piece]:
    at = 0
    while at < len(data):
        if blank := BLANK.match(data, at):
            yield Piece(BETWEEN, at, blank.end())
            at = blank.end()
            continue
        line = LINE.match(data, at)
        kind = _kind(line[0], options) if line else ROW
        found = line if kind != ROW else STATEMENT.match(data, at)
        if found is None:
            return
        yield Piece(kind, at, found.end())
        at = found.end()


def _xml(data: bytes, options: Options) -> Iterator[Piece]:
    at = 0
    while at < len(data):
        found = TOKEN_OF_XML.match(data, at)
        if found is None and NEXT_OF_XML.match(data, at):
            return
        following = None if found else NEXT_OF_XML.search(data, at)
        if found is None and following is None:
            return
        end = found.end() if found else following.start()
        yield Piece(found.lastgroup or ROW if found else ROW, at, end)
        at = end
