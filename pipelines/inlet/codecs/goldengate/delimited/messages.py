r"""Oracle GoldenGate: delimited text (format=delimitedtext) of Big Data / Distributed Applications and Analytics (DAA).

Unit        one message; each line in it is a record, and what ends it is framing. So a file can be one message
            (transport whole_file), or each of its lines can (lines)
Yields      for each record one change or one reject. A change may bring control events with it: operations/change
Shape       metadata fields, then a value for each column of the contract in force at the record's position, in its
            order: I|GG.TCUSTORD|2013-06-02 22:14:36.000000|2015-09-18T13:23:01.612001|00000000000000001444|R=AAD|WILL
            Options say which metadata fields there are and in which order, and whether names stand among them; model:
            operation has two values a column, before and after
Count       the number of fields has to be that of the options and the contract. A delimiter or a line end within a
            value makes it another one, unless texts are quoted
Values      text. null_text: SQL NULL. missing_text: not supplied; an empty one in a text column may be an empty text,
            too: option empty_means. Quoted, a field is its text, whatever it spells
            ASSUMED: no value is spelt like null_text, or like a missing_text that is not empty
Charset     UTF-8, or that of the option charset. A byte that is none of it rejects its record alone
Tokens      name=value, with commas between
Controls    `tombstone`: a message that is null
Contracts   `inlet import` makes them of Defgen's files, too: defgen, on the page goldengate_trail
Meaning     operations/change, operations/images, position, operations/time
Facts       [documented] the formatter has one image of a row, metadata fields that can be left out, names of columns by
            includeColumnNames, delimiters, texts for null and for missing: Oracle, "Using the Pluggable Formatters".
            [recalled] the order of the fields, byte 01 and the newline between them, NULL and the empty text; names
            before values, before-values before after-values; how quotes are written
            ASSUMED: a quote within a quoted text is written twice
Rejects     bad_column_count, wrong_shape, invalid_utf8, bad_text, and those of operations/change
"""

from contextlib import suppress

from inlet.codecs.goldengate.delimited.lines import Line, lines
from inlet.codecs.goldengate.delimited.operation import Shaped
from inlet.codecs.goldengate.delimited.options import Options
from inlet.codecs.goldengate.message_definitions import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.operations import change as operation_change
from inlet.codecs.goldengate.operations.operation import Record, Refused
from inlet.codecs.notes import Said
from inlet.codecs.results import Control, Decoded
from inlet.errors import Reject
from inlet.source import Source
from inlet.table import Table

OPTIONS, FAST, LOADS = Options, None, None
TOMBSTONE = "tombstone"  # a control event


def decode_message(message: dict, source: Source, tables: dict, loads: list[dict]) -> Decoded:
    """Read one message exactly. In: a bronze.messages row; contracts by SCHEMA.TABLE. There are no loads."""
    data, options = message["value"], source.options_as(Options)
    if data is None:
        return Decoded([], controls=[Control(TOMBSTONE, 0, 0)], num_control=1)
    changes: list[dict] = []
    rejects: list[Reject] = []
    controls: list[Control] = []
    bytes_framing = len(data)
    for line in lines(data, options):
        row, beside = _decode(line, message, source, tables, options)
        (rejects if isinstance(row, Reject) else changes).append(row)  # type: ignore[arg-type]
        controls += beside
        bytes_framing -= line.end - line.start
    return Decoded(changes, rejects, controls, bytes_framing, int(not (changes or rejects)))


def says(message: dict, source: Source, tables: dict) -> list[Said]:
    """What the lines of a message say of their places."""
    options, found = source.options_as(Options), list[Said]()
    for line in lines(message["value"], options):
        with suppress(Refused):
            if not line.wrong:
                operation, length = Shaped(line, options).said(), line.end - line.start
                found.append(
                    operation_change.said(operation, line.start, length, message["topic"], source, tables, options)
                )
    return found


def _decode(
    line: Line, message: dict, source: Source, tables: dict[str, Table], options: Options
) -> tuple[dict | Reject, list[Control]]:
    raw, wrong = message["value"][line.start : line.end], line.wrong
    if wrong:
        return Reject(wrong.kind, line.start, len(raw), wrong.offset, wrong.expected, wrong.found, raw), []
    shaped = Shaped(line, options)
    record = Record(message["unit_id"], message["topic"], line.start, raw, shaped.offset_of)
    try:
        operation = shaped.operation(message["topic"], source, tables)
    except Refused as no:
        return operation_change.rejected(no, record, **shaped.place), []
    return operation_change.decode(operation, record, source, tables, options)
