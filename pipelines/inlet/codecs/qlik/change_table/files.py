"""Qlik Replicate and Talend Data Integration: change tables and files of full loads, on disk or object storage.

Unit        a block of whole records; of Parquet a run of rows
Yields      for each row one change, one reject, or one part: an update or a before-image, which wait for each other
Files       SCHEMA.TABLE__ct/ and folders of partitions below it: change tables [documented: Store Changes]
            SCHEMA.TABLE/LOAD00000001.*, LOAD_<segment>_<number>.*: full loads [documented]
            delimited text, JSON (an object a line), Parquet (transport `rows`); compressed ones by the transport.
            SequenceFiles are refused by name
Sidecar     .dfm, where one came with the file: its word goes before the options, and the control event
            `options_differ` says where they differ. Count of records, columns and name have to be the file's
Table       that of the sidecar, else the folder's name; `tables` maps either, and two answers are one too many
Columns     the header row, else the sidecar's; else, of a load, the contract's; else option header_columns and the
            contract's. Names in any case. A column of the contract that the file lacks was not supplied
Header      header.py: any subset in any order and case. change_seq is needed, and change_oper or operation; both have
            to agree. Unknown ones and partition_name go to `header`
Masks       images.py
Operations  I INSERT, U UPDATE, D DELETE, B BEFOREIMAGE, TRUNCATE, whose row has no values. ASSUMED: its change_oper is
            empty or T, where it is not left out
Pairs       option before_images: where Qlik stores before-images, U and B of a change_seq are one change, in whatever
            order, block and file they come (pairs.py); those of one unit are a change at once. Of rows with one
            change_seq that differ one pair stays, and the others are conflicting_duplicate. Where the mask says
            otherwise than the images, `mask_differs` in `header` names the columns. Where Qlik stores none an update
            is a change at once; one whose mask says that the key changed is rejected (unsupported_message), because
            nothing tells the row of before. Until the option is given both are rejected, because a row cannot show
            what another file holds
Loads       rows are REFRESH. Their place: the load's time, six digits of the folder's name (a checksum, or option
            load_numbers; a second folder with the same ones is held, own_place), the file's number, the row's place in
            it. The load's time is option load_time; without it the load comes before all changes. load_id is the time
            and the six digits. ASSUMED: a first record whose cells all are names of columns is a header row
Text        text.py. Null: option null_text without quotes. In quotes it is rejected until quoted_null tells what it is
            [nothing public does]. A last record without record delimiter looks as a file does that was cut off: it is
            left until option last_record, or the count of the sidecar, tells that it is whole
Values      by the contract's type, as of qlik_json (fields/fit.py): text stays text. A time of seven digits fits a
            string; of a timestamp it is rejected where it would round. Bytes in text are hex digits. A boolean in text
            is true, false, 1 or 0 (ASSUMED). Parquet's times are read as they are stored: Qlik flags a source's local
            time as UTC [documented]
Speed       scan.py and walk.py read UTF-8 text and Parquet, compiled, where they are certain (arrow.py); else the plain
            path does, as it does JSON lines
Order       change_seq. Time: header timestamp, UTC; one that cannot be read leaves change_timestamp null, and the
            control event `unreadable_timestamp` says what was there
Facts       [documented] Qlik, "Change Tables", "Store changes settings", "Metadata file description"; [sample seen] a
            change table of 354 columns with pairs, a change table in text with its sidecar
Rejects     unknown_table, ambiguous_table, unknown_operation, unknown_column, column_twice, missing_change_seq,
            ambiguous_layout, contradiction, definition_missing, unsupported_message, wrong_shape, bad_column_count,
            bad_text, mask_too_long, value_does_not_fit, missing_key, null_not_allowed, conflicting_duplicate, those of
            JSON, part_missing
"""

from inlet.codecs.qlik import dfm
from inlet.codecs.qlik.change_table import opening
from inlet.codecs.qlik.change_table.arrow import CHANGES, COLUMNS, CONSTANTS, changes_as_rows, constants, tables_of
from inlet.codecs.qlik.change_table.block import cut, decode
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.pairs import join
from inlet.codecs.qlik.change_table.rows import decode_rows, open_rows
from inlet.codecs.qlik.definitions import definitions_of, merged
from inlet.codecs.qlik.members import Refused
from inlet.errors import Reject
from inlet.source import Source
from inlet.table import Table

OPTIONS = Options
__all__ = (
    "CHANGES",
    "COLUMNS",
    "CONSTANTS",
    "changes_as_rows",
    "constants",
    "cut",
    "decode",
    "decode_rows",
    "definitions_of",
    "join",
    "merged",
    "open_rows",
    "tables_of",
)  # what the codec offers beside what is here


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict[str, Table]) -> dict | Reject | None:
    """The context of a file's first byte, as far as its name says it: `cut` settles the rest, with the sidecar."""
    if len(head) <= opening.LEN_MAGIC and not is_whole:
        return None
    if no := opening.of_head(head):
        return opening.rejected(no, head)
    context = opening.by_name(path, source.options_as(Options))
    return opening.rejected(context, head) if isinstance(context, Refused) else context


def companions(path: str, source: Source) -> list[str] | None:
    """The path of a file's sidecar, where there is to be one; None for a sidecar."""
    options = source.options_as(Options)
    found = dfm.companions(path, options.sidecar if options.sidecar != "none" else dfm.BESIDE, options.suffix)
    return [] if found is not None and options.sidecar == "none" else found


def own_place(path: str, source: Source, tables: dict[str, Table]) -> tuple[str, str] | None:
    """The place of a file of a load, and the folder of its table; None of a file of changes, whose rows tell theirs."""
    context = opening.by_name(path, source.options_as(Options))
    if isinstance(context, Refused) or context["kind"] != "load":
        return None
    return context["place"], context["word"]


def load_of(context: dict) -> str | None:
    """None: a file is a part of a load, and tells no end of it."""
    return None


def span(context: dict, num_records: int) -> tuple[str, str] | None:
    """Bounds of the change_seq of a unit's changes: of a load, whose rows have their places from it."""
    if context.get("kind") != "load":
        return None
    first = context.get("first_row", context["row_ordinal"])
    return f"{context['place']}{first:08d}", f"{context['place']}{first + max(num_records - 1, 0):08d}"
