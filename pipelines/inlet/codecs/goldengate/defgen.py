"""Column lists of GoldenGate: definition files that Defgen writes, and the same lists in logdump's text of metadata
records.

Layout of a file   *+- Defgen version 5.0, Encoding windows-1252     the first line; the encoding is that of the file
                   *     1    Name                                   comments; these tell the fields of a column
                   Character set ID: we8mswin1252                    of the database; must be options.charset
                   Definition for table SCOTT.EMP                    may have three parts, and parts in quotes
                   Record length: 112 . Syskey: 0 . Columns: 8
                   EMPNO  134  8  0  0 ...                           a line a column, its name maybe in quotes
                   End of definition
Layout of logdump  the lines from `Definition for table` to `End of definition`, amid anything else; fields as 1)Name
                   A table that refers to another one's list gets that: references.py
Fields             1 name . 2 data type . 3 external length . 4 fetch offset . 5 scale . 7 null: 0 is not nullable
                   . 12 most significant part of a DATETIME, 0 is the year . 16 elementary item . 17 occurs . 18 key
                   . 19 sub data type . 21 character set . 23 LOB type; 25 remarks, in logdump. Files of version 2.0
                   end at 18 to 20
Places             a column's place in a full image is from its fetch offset up to the next one, the last one's up to
                   the record length; trail/full_image.py says which of them are read
Keys               Defgen calls every column of a table without a key its key. So where all are key columns the table
                   gets no key, and a person says one
Facts              [dump seen] files of versions 2.0, 4.0 and 5.0, logdump 21.3. [documented] ids of character sets: the
                   vendor's header ucharset.h. Pages: docs/formats/goldengate_types.md
                   ASSUMED: quotes around a name as in SQL; a name is read up to the fields, counted from the right
Messages           (JSON, Avro, delimited text, XML, Extract's text files): names, types and keys, but no place and no
                   character set of a column, and text where a trail's bytes are not public; the database's set may be
                   any (message_definitions.py)
Neither tells from when on a list is in force. Raises: ConfigError with the line for what is read otherwise.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from inlet.codecs.goldengate import source_type
from inlet.codecs.goldengate.options import TextOptions
from inlet.codecs.goldengate.references import Reference, references
from inlet.codecs.goldengate.trail.metadata import table_of
from inlet.codecs.results import Definition
from inlet.errors import ConfigError
from inlet.fields import charset
from inlet.fields.wrong import Wrong
from inlet.source import Source

FIRST_LINE = re.compile(rb"\*\+- Defgen version [0-9.]+, Encoding (\S+)")
LOGDUMP = re.compile(r"^TDR version:", re.M | re.I)
FIELD_NAMES = {  # of those that are read
    1: ("name",),
    2: ("datatype",),
    3: ("externallength",),
    4: ("fetchoffset",),
    5: ("scale",),
    7: ("null",),
    12: ("mostsignificantdt", "mostsigdt"),
    16: ("elementaryitem",),
    17: ("occurs",),
    18: ("keycolumn",),
    19: ("subdatatype",),
    21: ("characterset",),
    23: ("lobtype",),
    25: ("remarks",),
}
LISTED = re.compile(r"^\*\s+(\d+)\s+(\S.*)$")  # a field in a comment of a file
LISTED_IN_LOGDUMP = re.compile(r"(?:\s*\d+\)[A-Z][A-Za-z ]*)+")
NAME = r'("(?:[^"]|"")+"|\S+)'
FEWEST, MOST = 18, 24
OTHER_HEADS = re.compile(r"(Database type|National character set ID|Locale|Case sensitivity|TimeZone)\s*:.*", re.I)
CHARSETS = {  # ids of sets that a column may have of its own; -1 is that of the database
    0: "AL32UTF8",
    2: "AL16UTF16",
    8: "UTF8",
    1000: "US7ASCII",
    1001: "EE8MSWIN1250",
    1002: "CL8MSWIN1251",
    1003: "WE8MSWIN1252",
    1032: "WE8ISO8859P1",
    1045: "WE8ISO8859P15",
    5000: "cp932",
    5003: "KO16MSWIN949",
    5004: "ZHT16MSWIN950",
    5027: "ZHS16GBK",
}
REMEDY = "Write the file anew with Defgen; or take the table out of it, and write its contract by hand"
SUB_TYPE_CHARSETS = {source_type.UTF16_BE: "AL16UTF16", source_type.UTF8: "AL32UTF8"}


class Line(NamedTuple):
    """A line of a file, for errors."""

    file: str
    number: int
    text: str

    def refuse(self, expected: str, remedy: str = REMEDY) -> NoReturn:
        raise ConfigError(f"{self.file}, line {self.number}: expected {expected}, found {self.text.strip()!r}", remedy)


class Feed(NamedTuple):
    """The source whose tables a file describes, and the character set of the text in its records, None of messages."""

    source: Source
    charset: str | None


def definitions_of(data: bytes, name: str, source: Source) -> list[Definition]:
    """The column lists in a file of Defgen, or in text of logdump, of a trail's tables. Their change_seq is empty."""
    return read(data, name, Feed(source, source.options_as(TextOptions).charset))


def read(data: bytes, name: str, feed: Feed) -> list[Definition]:
    """The column lists that a file gives of the tables of a feed."""
    first = FIRST_LINE.match(data.removeprefix(b"\xef\xbb\xbf"))
    text = _text(data, name, first[1].decode("ascii", "replace") if first else "UTF-8")
    lines = [Line(name, number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1)]
    if not first and not LOGDUMP.search(text):
        lines[0].refuse("`*+- Defgen version ...`, or text of logdump with `TDR version: ...`")
    found: dict[tuple, Definition] = {}
    for at, definition in _definitions(lines, is_logdump=not first, feed=feed):
        before = found.setdefault(definition[:2], definition)
        if before != definition:
            at.refuse("each table once, or with the same columns", "Leave one list of it in the file, the one in force")
    for reference in references([line.text for line in lines]) if not first else ():
        definition = _referred(lines[reference.line], reference, found, feed)
        if found.setdefault(definition[:2], definition) != definition:
            lines[reference.line].refuse("a table with one list", "Leave one list of it in the file, the one in force")
    if not found:
        lines[-1].refuse("`Definition for table ...`")
    return list(found.values())


def _referred(line: Line, reference: Reference, found: dict[tuple, Definition], feed: Feed) -> Definition:
    """The list of the table that another one refers to, as its own."""
    others = [_parts(line, name, feed) for name in reference.others - {reference.table}]
    if len(others) != 1 or others[0] not in found:
        line.refuse(
            f"the definition with TDR index {reference.tdr_index} in the text, which this table refers to",
            "Print the metadata records with `GHDR ON`, whose headers say the index; or take the line out of the text, "
            "and write the contract by hand",
        )
    schema, short = _parts(line, reference.table, feed)
    return found[others[0]]._replace(source_schema=schema, source_table=short)


def _text(data: bytes, name: str, encoding: str) -> str:
    try:
        return charset.text(data, charset.charset(encoding)).removeprefix("\ufeff")
    except KeyError:
        Line(name, 1, encoding).refuse("an encoding that is known")
    except Wrong as wrong:
        line = data.count(b"\n", 0, wrong.offset) + 1
        Line(name, line, wrong.found).refuse(f"text in {encoding}, as the first line says")


def _definitions(lines: list[Line], is_logdump: bool, feed: Feed) -> Iterator[tuple[Line, Definition]]:
    """Each column list with its first line."""
    fields: dict[int, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if re.match(r"Definition for table ", line.text):
            end = next((n for n in range(at, len(lines)) if lines[n].text.strip() == "End of definition"), None)
            if end is None:
                line.refuse("`End of definition` behind it")
            yield line, _definition(line, lines[at:end], fields, feed)
            at = end + 1
        elif listed := _listed(line, is_logdump):
            fields = listed if 1 in listed else fields | listed
        elif match := re.fullmatch(r"Character set ID\s*:\s*(\S+)\s*", line.text, re.I):
            _check_charset(line, match[1], feed)
        elif not is_logdump and line.text.strip() and line.text[0] != "*" and not OTHER_HEADS.fullmatch(line.text):
            line.refuse("a comment, `Definition for table ...` or what the file says of the database")


def _listed(line: Line, is_logdump: bool) -> dict[int, str]:
    """The fields of a column that a line lists, maybe none."""
    if is_logdump:
        found = (
            re.findall(r"(\d+)\)([A-Za-z ]+?)\s*(?=\d|$)", line.text) if LISTED_IN_LOGDUMP.fullmatch(line.text) else []
        )
    else:
        found = LISTED.findall(line.text)
    fields = {int(number): text.replace(" ", "").lower() for number, text in found}
    for number, name in fields.items():
        if number > MOST + 1 or name not in FIELD_NAMES.get(number, (name,)):
            line.refuse("the fields of a column as Defgen is known to list them")
    return fields


def _check_charset(line: Line, name: str, feed: Feed) -> None:
    """The source's option has to be the set of the database, or its text would be read wrongly."""
    if feed.charset and charset.known_as(name) != charset.known_as(feed.charset):
        option = f"options.charset of {feed.source.name}"
        line.refuse(f"{feed.charset}, as {option} says", f"Set {option} to it")


def _definition(line: Line, lines: list[Line], fields: dict[int, str], feed: Feed) -> Definition:
    """A column list. In: its lines, without the first and the last one; the fields that the file lists, maybe none."""
    schema, short = _parts(line, line.text.removeprefix("Definition for table ").strip(), feed)
    heads: dict[str, int] = {}
    while lines and (match := re.fullmatch(r"(Record length|Syskey|Columns)\s*:\s*(\d+)\s*", lines[0].text, re.I)):
        heads[match[1].lower()] = int(match[2])
        lines = lines[1:]
    rows = [(one, _row(one, fields)) for one in lines if one.text.strip() and one.text[0] != "*"]
    if heads.get("columns") != len(rows):
        line.refuse(f"`Columns: {len(rows)}`, since so many follow")
    columns, keys = [_column(one, *row, feed) for one, row in rows], [row[0] for _, row in rows if row[1][18]]
    for column, place in zip(columns, _places([row[4] for _, (_, row) in rows], heads.get("record length", 0))):
        column["source_type"] += place
    return Definition(schema, short, columns, keys if len(keys) < len(columns) else [], "", 0)


def _parts(line: Line, name: str, feed: Feed) -> tuple[str, str]:
    """Schema and table of a name."""
    table = table_of(name, feed.source)
    if table.count(".") != 1:
        line.refuse(
            "a schema and a table", f"Map the name under `tables` of {feed.source.name}, like {{{name}: SCHEMA.TABLE}}"
        )
    schema, short = table.split(".")
    return schema, short


def _places(offsets: list[int], record_length: int) -> list[str]:
    """Of each column from its Fetch Offset up to the next one, or to the end of the record, as a source_type has it;
    nothing where the file tells none.
    """
    bounds = sorted({*offsets, record_length})
    ends = dict(zip(bounds, bounds[1:]))
    return [f" AT {at}:{ends[at]}" if at >= 0 and at < record_length else "" for at in offsets]


def _row(line: Line, fields: dict[int, str]) -> tuple[str, dict[int, int]]:
    """Name and numbers of a column, by field; what the file lacks is 0, and its character set the database's."""
    num = max(set(fields) - {MOST + 1}, default=0)
    if MOST + 1 in fields:
        pattern = rf"{NAME}((?:\s+-?\d+){{{num - 1}}})(?:\s.*)?"
    elif fields:
        pattern = rf"(.+?)((?:\s+-?\d+){{{num - 1}}})\s*"
    else:
        pattern = rf"{NAME}((?:\s+-?\d+){{{FEWEST - 1},{MOST - 1}}})\s*"
    match = re.fullmatch(pattern, line.text.lstrip())
    if not match or fields and num < FEWEST:
        count = num if fields else f"{FEWEST} to {MOST}"
        line.refuse(f"a column of {count} fields: its name, in quotes if it has blanks, and numbers")
    name = match[1].strip()
    if name.startswith('"') and name.endswith('"') and len(name) > 2:
        name = name[1:-1].replace('""', '"')
    numbers = dict.fromkeys(range(2, MOST + 1), 0) | {21: -1}
    return name, numbers | dict(enumerate(map(int, match[2].split()), 2))


def _column(line: Line, name: str, field: dict[int, int], feed: Feed) -> dict:
    code, length, sub_type = field[2], field[3], field[19]
    if field[16] != 1 or field[17] != 0:
        line.refuse("an elementary item that occurs once")
    if min(code, length, sub_type) < 0:
        line.refuse("no negative type, length and sub type")
    try:
        vendor = source_type.of_defgen(code, sub_type, length, field[5], field[23])
    except ValueError as error:
        line.refuse(str(error).removeprefix("expected "))
    parsed = source_type.parse(vendor)
    column = {"name": name, "type": _type(parsed, sub_type, field), "nullable": field[7] != 0, "source_type": vendor}
    set_ = _charset(line, parsed, sub_type, field[21], feed)
    return column | ({"charset": set_} if set_ else {})


def _type(parsed: source_type.SourceType, sub_type: int, field: dict[int, int]) -> str:
    """The type in the contract. A DATETIME that does not begin with a year, or is cut before the seconds, is text."""
    if parsed.name == "ASCII_V" and sub_type == source_type.BINARY:
        return "binary"
    is_cut = field[12] != 0 or parsed.length not in (10, 19) and (parsed.length or 0) <= 19
    return "string" if parsed.name == "DATETIME" and is_cut else source_type.spark_type(parsed)


def _charset(line: Line, parsed: source_type.SourceType, sub_type: int, id_: int, feed: Feed) -> str | None:
    """The character set of a column's text, where it is not that of its source."""
    if feed.charset is None or parsed.name not in ("ASCII_F", "ASCII_V") or sub_type == source_type.BINARY:
        return None
    if sub_type not in SUB_TYPE_CHARSETS and id_ != -1 and id_ not in CHARSETS:
        known = ", ".join(map(str, CHARSETS))
        line.refuse(
            f"a character set in field 21: -1 or one of {known}",
            "Take the table out of the file, and write its contract by hand, with `charset`",
        )
    set_ = SUB_TYPE_CHARSETS.get(sub_type) or CHARSETS.get(id_)
    return set_ if set_ and charset.known_as(set_) != charset.known_as(feed.charset) else None
