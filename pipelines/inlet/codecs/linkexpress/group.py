"""Linkexpress group extract: all tables of a replication group in one file, in commit order; or one table's full
extract.

Unit      a block of whole records, cut after a commit record where there is one
Yields    changes in file order; a commit record closes the transaction; an FFFF record says that a full extract found
          no row
Layout    0 i4 len_record, itself included . 4 i2 num_columns (items + 2; 1 = commit record)
          with null areas     commit  6 i2 0000 . 8 i2 8000
                              data    6 i2 extraction id, 0 in a full extract . 8 i2 0000 . 10 i2 operation . 12 items
          without             commit  6 i2 8000
                              data    6 i2 extraction id . 8 i2 operation . 10 items
          operation           0 row of a full extract, 1 insert, 2 update, 3 delete, FFFF full extract without rows
          items               in the contract's order, each behind a null indicator (0000, FFFF) with null areas;
                              their bytes are in item.py, the options in options.py
Images    insert, update and a full extract's row hold all columns after the change, a delete the row that went
          A key, or DSI key, that changes is a delete and an insert; a row that crosses the definition's condition is
          one of them alone, so a delete does not say that the row left the source [documented]
Loads     a full extract is a load of its table and ends with its file, once all of it is landed and no record is
          rejected
Versions  the column lists in force at the time and ordinal of the file's name
Order     the time and ordinal of the file's name, then the record's place in it. The name's time is local to the
          source, whose zone option source_tz says (one that the zone has twice or not at all: `missing_change_seq`).
          No two tables share a time and ordinal: the second file is held until it is renamed (own_place)
          The format holds no time, no transaction id and no position, so transaction_id is made of these too
Facts     [documented] the fields and codes . [inferred] sizes of commit and FFFF records, one commit record per
          transaction
          ASSUMED: byte order and null areas hold for a whole file and are found by exact fit over its first records;
          several fit and decode differently -> ambiguous_layout
          ASSUMED: an id of 0 belongs to full extracts and only to them; their table is named by the file's name
          ASSUMED: an FFFF record counts 2 columns, or its table's too; it has no items in any case
Rejects   bad_length, truncated, trailing_bytes, unknown_operation, unknown_extraction_id, unknown_table,
          bad_column_count, bad_null_indicator, bad_digit, bad_sign, bad_text, bad_date, bad_value_length,
          value_does_not_fit, missing_key, null_not_allowed (after-images only), missing_change_seq, ambiguous_layout,
          ambiguous_table
Contracts `inlet import` makes them of extraction definitions and CREATE TABLE: definition, below
Source    Linkexpress Replication option manual, 6.14; docs/formats/linkexpress_group.md
"""

from inlet.codecs.linkexpress import file_name, opening
from inlet.codecs.linkexpress.annotate import annotate
from inlet.codecs.linkexpress.block import CHANGES, cut, decode
from inlet.codecs.linkexpress.change_rows import COLUMNS, CONSTANTS, constants, load_of, span
from inlet.codecs.linkexpress.definition import definitions_of, settings_of
from inlet.codecs.linkexpress.file_name import base_name
from inlet.codecs.linkexpress.frames import GROUP, check, ids_of, tables_of
from inlet.codecs.linkexpress.opening import named, settled, tables_named
from inlet.codecs.linkexpress.options import Options, options_of
from inlet.codecs.linkexpress.reject import of_file
from inlet.errors import Reject
from inlet.source import Source

OPTIONS, LAYOUTS = Options, ((GROUP, None),)
__all__ = (  # what the codec offers beside what is here
    "CHANGES",
    "COLUMNS",
    "CONSTANTS",
    "annotate",
    "check",
    "constants",
    "cut",
    "decode",
    "definitions_of",
    "load_of",
    "settings_of",
    "span",
    "tables_of",
)


def own_place(path: str, source: Source, tables: dict) -> tuple[str, str] | None:
    """The place of a file in the order, and whose it is: one table's, of a full extract; or of a word, or of none."""
    found = file_name.place(path, options_of(source))
    if not found or not found[1]:
        return found
    place, word = found
    candidates = tables_named(word, source, tables)
    return place, candidates[0] if len(candidates) == 1 else word


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte, from its name and by exact fit over its first records.

    In: head is the file's first MiB, or what is there of it; is_whole: no more will come. Out: the context; with
    byte_order None where a whole file holds no whole record. None while no reading, or more than one, fits what is
    there. A Reject when the file cannot be ordered or read.
    """
    known = _known(path, head, source, tables)
    return known if isinstance(known, Reject) else settled(known[0], head, is_whole, LAYOUTS, known[1], source, tables)


def open_options(path: str, head: bytes, source: Source, tables: dict) -> list[str]:
    """The options that would tell how a file is read that waits until it is whole."""
    known = _known(path, head, source, tables)
    return [] if isinstance(known, Reject) else opening.open_options(known[0], head, LAYOUTS, known[1], source, tables)


def _known(path: str, head: bytes, source: Source, tables: dict) -> tuple[dict, set[str]] | Reject:
    """What a file's name says: the context before its first byte, and the tables whose rows it may hold."""
    found = named(path, head, source)
    if isinstance(found, Reject):
        return found
    context, word = found
    candidates = tables_named(word, source, tables) if word else []
    if len(candidates) > 1:
        name = f"{base_name(path)}: {', '.join(candidates)}"
        return of_file("ambiguous_table", head, "a file name that names one table", name)
    context["table"] = candidates[0] if candidates else None
    return context, set(ids_of(source, tables_of(context, tables)).values()) | {context["table"]} - {None}
