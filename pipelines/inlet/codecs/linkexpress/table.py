"""Linkexpress extract by table (表単位): the differences, or a full extract, of one table in one file.

Unit      a block of whole records
Yields    changes in file order, in no transaction; an FFFF record says that a full extract found no row
Layout    open form (DIFFTYPE=OPEN), NORMAL       0 i2 operation . 2 items; records of one size
          open form, LITTLE                       0 i4 len_record, itself included . 4 i2 operation . 6 items
          journal form (DIFFTYPE=JNL), differences
              0 i4 len_record . 4 i2 num_columns (items + 1) . 6 i2 0000 . 8 i2 operation . 10 items
          journal form, full extracts             the open form with null areas
          operation   1 insert, 2 update, 3 delete in a file of differences; 0 row in a full extract, FFFF alone in one
                      without rows, which has no items
          items       in the contract's order; behind a null indicator (0000, FFFF) with NULLIND=YES, and always in the
                      journal form, whose items have their defined lengths; their bytes are in item.py
Table     the one that the file's name tells, by a word that the source's `tables` map, or by its own name; the only one
          that they map, where the name tells none
Images    insert, update and a full extract's row hold all columns after the change, a delete the row that went
          A key, or DSI key, that changes is a delete and an insert; a row that crosses the definition's condition is
          one of them alone, so a delete does not say that the row left the source [documented]
Loads     a full extract is a load of its table and ends with its file, once all of it is landed and no record is
          rejected
Versions  the column lists in force at the time and ordinal of the file's name
Order     the time and ordinal of the file's name, then the record's place in it. The name's time is local to the
          source, whose zone option source_tz says (one that the zone has twice or not at all: `missing_change_seq`).
          No two tables share a time and ordinal: the second file is held until it is renamed (own_place)
          The format holds no time, no transaction and no position
Facts     [documented] the fields and codes, what stands in which form . [inferred] that operation codes and indicators
          are in the byte order of the data; that a length counts the whole record; the defined lengths of the journal
          form
          ASSUMED: layout, byte order, null areas and lengths hold for a whole file and are found by exact fit over its
          first records; several fit and decode differently -> ambiguous_layout. A full extract of one size whose
          numbers fit both ways tells no byte order: the option has to
          ASSUMED: a file is a full extract or differences, never both, for a command writes one or the other
Rejects   bad_length, truncated, trailing_bytes, unknown_operation, unknown_table, bad_column_count, bad_null_indicator,
          bad_digit, bad_sign, bad_text, bad_date, bad_value_length, value_does_not_fit, missing_key, null_not_allowed
          (after-images only), missing_change_seq, ambiguous_layout, ambiguous_table
Contracts `inlet import` makes them of extraction definitions and CREATE TABLE: definition, below
Source    Linkexpress Replication option manual, 6.14; docs/formats/linkexpress_table.md
"""

from dataclasses import replace

from inlet.codecs.linkexpress import file_name, opening
from inlet.codecs.linkexpress.annotate import annotate
from inlet.codecs.linkexpress.block import CHANGES, cut, decode
from inlet.codecs.linkexpress.change_rows import COLUMNS, CONSTANTS, constants, load_of, span
from inlet.codecs.linkexpress.definition import definitions_of, settings_of
from inlet.codecs.linkexpress.file_name import base_name
from inlet.codecs.linkexpress.frames import DIFFERENCES, FULL, JOURNAL, OPEN, check, tables_of
from inlet.codecs.linkexpress.opening import named, settled, tables_named
from inlet.codecs.linkexpress.options import TableOptions, options_of
from inlet.codecs.linkexpress.reject import of_file
from inlet.errors import ConfigError, Reject
from inlet.source import Source

OPTIONS = TableOptions
OPEN_FORM, JOURNAL_FORM = ((OPEN, DIFFERENCES), (OPEN, FULL)), ((JOURNAL, DIFFERENCES), (OPEN, FULL))
LAYOUTS = {"auto": (*OPEN_FORM, JOURNAL_FORM[0]), "open": OPEN_FORM, "journal": JOURNAL_FORM}
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


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte, from its name and by exact fit over its first records. In, out: as of
    group.open_file. Raises: ConfigError.
    """
    by_name = named(path, head, source)
    if isinstance(by_name, Reject):
        return by_name
    context, word = by_name
    candidates = _candidates(word, source, tables)
    if len(candidates) != 1 or candidates[0] not in tables:
        return _unknown(path, head, candidates, source, tables)
    context["table"] = candidates[0]
    layouts = LAYOUTS[source.options_as(TableOptions).difftype]
    found = settled(context, head, is_whole, layouts, {candidates[0]}, source, tables)
    if isinstance(found, Reject):
        contract = tables[candidates[0]]
        return replace(found, source_schema=contract.schema_name, source_table=contract.table_name)
    return found


def open_options(path: str, head: bytes, source: Source, tables: dict) -> list[str]:
    """The options that would tell how a file is read that waits until it is whole. Raises: ConfigError."""
    by_name = named(path, head, source)
    candidates = [] if isinstance(by_name, Reject) else _candidates(by_name[1], source, tables)
    if isinstance(by_name, Reject) or len(candidates) != 1:
        return []
    context, layouts = by_name[0] | {"table": candidates[0]}, LAYOUTS[source.options_as(TableOptions).difftype]
    return opening.open_options(context, head, layouts, set(candidates), source, tables)


def own_place(path: str, source: Source, tables: dict) -> tuple[str, str] | None:
    """The place of a file in the order, and the table whose it is; None of a file that is not read."""
    found = file_name.place(path, options_of(source))
    candidates = _candidates(found[1], source, tables) if found else []
    return (found[0], candidates[0]) if found and len(candidates) == 1 and source.wants(candidates[0]) else None


def _candidates(word: str, source: Source, tables: dict) -> list[str]:
    """The tables that a file's name may mean. In: its word for them, "" for none."""
    only = [table for name, table in source.tables.items() if "*" not in name] if not word else []
    mapped = source.table_of(word) or (only[0] if len(only) == len(source.tables) == 1 else None)
    return [mapped] if mapped else tables_named(word, source, tables) if word else []


def _unknown(path: str, head: bytes, candidates: list[str], source: Source, tables: dict) -> Reject:
    """Why a file's name tells no table that can be read. Raises: ConfigError where it is one without a contract."""
    if len(candidates) == 1 and source.wants(candidates[0]):
        raise ConfigError(
            f"sources.{source.name}.tables names {candidates[0]}, which has no contract for this source",
            f"Write pipelines/tables/{candidates[0].split('.')[-1].lower()}.yml",
        )
    reject = of_file(
        "ambiguous_table" if candidates[1:] else "unknown_table",
        head,
        "a file name that names one table of the source (`tables`, option file_name)",
        f"{base_name(path)}; tables: {', '.join(candidates or sorted(tables)) or 'none'}",
    )
    if len(candidates) != 1:
        return reject
    schema, name = candidates[0].split(".")  # a table that is not wanted: counted, and missed by nobody
    return replace(reject, source_schema=schema, source_table=name)
