"""Oracle GoldenGate: text files of Extract, FORMATASCII, FORMATSQL and FORMATXML (OUTPUTFORMAT TEXT, SQL, XML).

Unit        a block of whole records, cut behind the end of a transaction where that is not too far
Yields      for each row one change or one reject; what begins and what ends a transaction are control records
Text        B,<commit timestamp>,<log sequence>,<RBA>,      begins a transaction [documented]
            I|D|U|V,A|B,<table>,<values>,                    a row [documented]; V is a compressed update; B and A of an
                                                             update, one behind the other, are one change
            C,                                               ends it [documented]
            A delimiter behind each field [documented]. A value: 'text', with a quote written twice; a number; NULL
            [documented], or nothing by the options null_is_space and placeholders. With names NAME=value; without, the
            values of all columns in the contract's order, and in V a column's number before its value
SQL         B and C as in text, with commas [documented]; between them INSERT INTO t (c, ...) VALUES (v, ...); UPDATE t
            SET c = v, ... WHERE c = v AND ...; DELETE FROM t WHERE ...; values: 'text', numbers, NULL, TO_DATE and
            TO_TIMESTAMP (option ORACLE [documented]). Any other statement is rejected. SET is the after-image, WHERE
            the before-image
XML         <transaction timestamp=> <dbupdate table= type=insert|update|delete> <columns> <column name= key=>text
            [published messages], maybe within <OracleGoldenGateFormatXML> [documented]. A delete has the before-image,
            the others the after-image. status="null" of a column: SQL NULL [impl]. An element with neither text nor
            status: option empty_element. <tokens> <token name=>text behind the columns [published messages]: `tokens`
            of the header
Order       the file's number by its name, then the row's place in it (option file_name); no RBA of a row is in the
            format. The time part is that of the name where it has one, else zeros (docs/adr/0014). Files that differ
            in what is before it (aa000001, bb000001) do not share a number: the second one is held (own_place)
Transaction transaction_id and stream_position are log sequence and RBA of the commit, each pair of which is unique
            [documented]; of XML, which has none, the number of the file and of the transaction's first row. The row
            before C is the last. Rows outside of B and C belong to none. One without C holds the public views, and
            where names of files tell no time, until open_transaction_minutes: 0 lets it go
            ASSUMED: a transaction ends in its file
Time        the commit timestamp, in the zone of the option time_zone. One that cannot be read leaves change_timestamp
            null, and the control event `unreadable_timestamp` says what was there
Facts       [documented] Oracle GoldenGate Reference, FORMATASCII, FORMATSQL, FORMATXML, OUTPUTFORMAT; Oracle GoldenGate
            for NonStop, FORMATASCII, FORMATSQL. [recalled] NAME=value, quotes, column numbers in V without names, where
            statements end. [published messages, impl] elements and attributes of XML: linkedin/databus, tests of
            ggParser, and its ColumnState, which takes status="null" for SQL NULL
            ASSUMED: a quote in a text is written twice; numbers of columns begin with 0; a line of text ends a record
Contracts   `inlet import` makes them of Defgen's files, too: defgen, on the page goldengate_trail
Not read    SQLLOADER (fixed length) and record timestamps (DATE, TIME, TS): nothing public tells their places. What
            BCP stands for has to be said option by option
Rejects     bad_frame, truncated, bad_text, bad_segment, bad_column_count, column_twice, wrong_shape, invalid_xml,
            ambiguous_layout, missing_change_seq, unknown_table, unknown_operation, and those of operations/images
"""

import re
from datetime import datetime
from typing import NamedTuple

from inlet import change
from inlet.codecs.goldengate.extract import block as extract_block
from inlet.codecs.goldengate.extract import frame as extract_frame
from inlet.codecs.goldengate.extract.block import decode  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.extract.frame import BETWEEN, COMMIT, ROW, Piece
from inlet.codecs.goldengate.extract.options import Options
from inlet.codecs.goldengate.message_definitions import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.results import Block, Cut
from inlet.errors import Reject
from inlet.source import Source

OPTIONS = Options
FAR = 4  # times the length of a block, where no transaction ends


class Named(NamedTuple):
    """What a file's name says."""

    time: str  # zeros for none
    ordinal: int
    before: str  # the name up to the first of these


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte, from its name."""
    named = _named(path, source)
    if named is None:
        expected = "a file name with a number of up to 9 digits, or a time of 14 or 16 (option file_name)"
        return Reject("missing_change_seq", 0, len(head), 0, expected, re.split(r"[/\\]", path)[-1], head)
    return {"time": named.time, "file_ordinal": named.ordinal, "row_ordinal": 0, "begin": None, "counter": 0}


def own_place(path: str, source: Source, tables: dict) -> tuple[str, str] | None:
    """The place of a file in the order, and what its name has before that: the two letters of its trail."""
    named = _named(path, source)
    return named and (f"{named.time}/{named.ordinal}", named.before)


def _named(path: str, source: Source) -> Named | None:
    match = re.fullmatch(source.options_as(Options).file_name, name := re.split(r"[/\\]", path)[-1])
    parts = match.groupdict() if match else {}
    time = (parts.get("time") or "").ljust(change.LEN_TIME, "0")
    ordinal = parts.get("ordinal") or "0"
    if not match or not _is_time(parts.get("time"), time) or not re.fullmatch("[0-9]{1,9}", ordinal):
        return None
    start = min((match.start(group) for group in ("time", "ordinal") if parts.get(group)), default=0)
    return Named(time, int(ordinal), name[:start])


def _is_time(text: str | None, time: str) -> bool:
    """Is it a time, or not there?"""
    try:
        return text is None or len(text) in (14, 16) and bool(datetime.strptime(time[:14], "%Y%m%d%H%M%S"))
    except ValueError:
        return False


def cut(data: bytes, context: dict, source: Source, tables: dict, len_block: int, is_final: bool) -> Cut:
    """Cut whole records into blocks, never between the last row of a transaction and what ends it."""
    options = source.options_as(Options)
    pieces = list(extract_frame.pieces(data, options))
    end = pieces[-1].end if pieces else 0
    rest, problem = data[end:], None
    if not extract_frame.may_begin(rest):
        problem = Reject("bad_frame", end, len(rest), end, "a record of text", rest[:1].hex().upper(), rest)
    elif not is_final:
        pieces = _settled(pieces)
    blocks: list[Block] = []
    start, num_records, before, last = 0, 0, context, extract_frame.last_rows(pieces)
    for n, piece in enumerate(pieces):
        num_records += piece.kind != BETWEEN
        context = extract_block.step(context, piece, data, options)
        length = piece.end - start
        may_end = piece.kind == COMMIT or length >= FAR * len_block and piece.kind == ROW and n not in last
        if length >= len_block and may_end or n + 1 == len(pieces):
            blocks.append(Block(start, length, before, num_records))
            start, num_records, before = piece.end, 0, context
    return Cut(blocks, context, start, problem)


def _settled(pieces: list[Piece]) -> list[Piece]:
    """The pieces whose place in their transaction is known: not the last row, behind which an end may come."""
    last = max((n for n, piece in enumerate(pieces) if piece.kind != BETWEEN), default=-1)
    return pieces[:last] if last >= 0 and pieces[last].kind == ROW else pieces


def span(context: dict, num_records: int) -> tuple[str, str]:
    """Bounds of the change_seq of a block's changes."""
    first = context["row_ordinal"]
    return extract_block.change_seq(context, first), extract_block.change_seq(context, first + max(num_records - 1, 0))
