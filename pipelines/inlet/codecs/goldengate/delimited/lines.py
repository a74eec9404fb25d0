r"""Records of delimited text, and their fields, with the byte at which each begins. The shape: delimited.

>>> from inlet.codecs.goldengate.delimited.options import Options
>>> [[field.text for field in line.fields] for line in lines(b"a|NULL\nb|\n", Options(field_delimiter="|"))]
[['a', 'NULL'], ['b', '']]
>>> [[field.text for field in line.fields] for line in lines(b"~a|~~b~|c", Options(field_delimiter="|", quote="~"))]
[['a|~b', 'c']]
"""

import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from inlet.codecs.goldengate.delimited.options import Options
from inlet.fields import charset
from inlet.fields.json_exact import LEN_FOUND
from inlet.fields.wrong import Wrong


class Field(NamedTuple):
    """A field: the byte at which it begins, from the start of the message."""

    start: int
    text: str
    is_quoted: bool


class Line(NamedTuple):
    """A record, or what cannot be cut into records (`wrong`, whose offset is a byte of the message)."""

    start: int
    end: int
    fields: list[Field]
    wrong: Wrong | None = None


def lines(data: bytes, options: Options) -> Iterator[Line]:
    """The records of a message; empty ones are none."""
    set_ = charset.with_ascii(options.charset)
    yield from _lines(data, options) if set_.mode == charset.UTF8 else _lines_in(data, options, set_)


def _lines_in(data: bytes, options: Options, set_: charset.Charset) -> Iterator[Line]:
    """The same in a set that is not UTF-8: what is cut is its text in UTF-8, what is told are bytes of the message."""
    text, starts, faults = charset.characters(data, set_)
    places = dict(zip(accumulate((len(char.encode()) for char in text), initial=0), starts))
    left = deque(faults)
    for line in _lines(text.encode(), options):
        start, end = places[line.start], places[line.end]
        while left and left[0].offset < start:
            left.popleft()
        wrong = line.wrong and Wrong(line.wrong.kind, places[line.wrong.offset], line.wrong.expected, line.wrong.found)
        if left and left[0].offset < (wrong.offset if wrong else end):
            wrong = left[0]
        yield Line(start, end, [field._replace(start=places[field.start]) for field in line.fields], wrong)


def _lines(data: bytes, options: Options) -> Iterator[Line]:
    separator, quoted = _patterns(options.field_delimiter, options.line_delimiter, options.quote)
    mark, at = options.quote and options.quote.encode(), 0
    while at < len(data):
        line, at = _line(data, at, separator, quoted if mark else None, mark or b"")
        if line.end > line.start:
            yield line


@cache
def _patterns(field: str, line: str, quote: str | None) -> tuple[re.Pattern, re.Pattern | None]:
    """What ends a field, of which the first group ends the record too; a quoted field."""
    end = rb"\r(?:\n|\Z)" if line == "\r\n" else re.escape(line.encode())  # a file of lines is cut behind the \r
    separator = re.compile(b"(%b|\\Z)|%b" % (end, re.escape(field.encode())), re.DOTALL)
    if quote is None:
        return separator, None
    mark = re.escape(quote.encode())
    return separator, re.compile(b"%b((?:(?!%b).|%b%b)*+)%b" % (mark, mark, mark, mark, mark), re.DOTALL)


def _line(data: bytes, start: int, separator: re.Pattern, quoted: re.Pattern | None, mark: bytes) -> tuple[Line, int]:
    """The record that begins there, and where the next one does. In: `quoted`, and the quote, where texts have some."""
    fields: list[Field] = []
    at, wrong = start, None
    while True:
        is_quoted = quoted is not None and data.startswith(mark, at)
        inside = quoted.match(data, at) if is_quoted else None
        ends = separator.match(data, inside.end()) if inside else None if is_quoted else separator.search(data, at)
        if ends is None:
            last = inside.end() if inside else at
            expected = "a delimiter behind the quote" if inside else "a quote that ends the text"
            left = Wrong("bad_text", last, expected, repr(data[last : last + LEN_FOUND]))
            return Line(start, len(data), [], left), len(data)
        raw = inside[1] if inside else data[at : ends.start()]
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            bad = at + len(mark) * bool(inside) + error.start
            wrong = wrong or Wrong("invalid_utf8", bad, "UTF-8", f"0x{data[bad : bad + 1].hex().upper()}")
            text = ""
        if inside:
            text = text.replace(mark.decode() * 2, mark.decode())
        fields.append(Field(at, text, bool(inside)))
        at = ends.end()
        if ends[1] is not None:
            return Line(start, ends.start(), fields, wrong), at
