"""Qlik Replicate and Talend Data Integration: change tables and files of full loads, on disk or object storage.

Unit        a block of whole records; of Parquet a run of rows
Yields      for each row one change, one reject, or one part: an update or a before-image, which wait for each other
Files       SCHEMA.TABLE__ct/ and folders of partitions below it: change tables [documented: Store Changes]
            SCHEMA.TABLE/LOAD00000001.*, LOAD_<segment>_<number>.*: full loads [documented]
            delimited text, JSON (an object a line), Parquet (transport `rows`); compressed ones by the transport.
            SequenceFiles are refused by name
Sidecar     .dfm. Option `sidecar` says where a file's own one lies. The file waits for it, `settle_minutes` at most;
            then the next one is taken that exists, with the control event `sidecar_of_others`: that of the partition,
            of the table's full load, or the last one before it in its folder (option `without_sidecar`: last). What a
            sidecar says goes before the options, and the control event `options_differ` says where they differ.
            Count of records, columns (in Parquet their types, too) and name have to be those of the file, or it is one
            reject. A file whose own sidecar has a count is landed as a whole, once it has as many records
Lists       the columns of a file's own sidecar go to silver.table_versions, in force from firstTransactionTimestamp on,
            else from the first change of the file. Rows of a list that the contract in force does not know wait
            (definition_differs): a column is new or gone, or its type has another name. Digits and lengths do not
            count, for those of a NUMERIC drift between sidecars [sample seen]
Table       that of the sidecar, else the folder's name; `tables` maps either, and two answers are one too many
Columns     the header row, else the sidecar's; else, of a load, the contract's; else option header_columns and the
            contract's. Without the option they are Qlik's seven header columns, in their order, where the first record
            has as many cells more than a contract of one version, and says there what they say. Names in any case. A
            column of the contract that the file lacks was not supplied
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
            what another file holds. One whose other row never comes waits (`inlet status`) for the source's
            `part_wait_minutes`, then is rejected (part_missing); it holds no other change. One that comes again, alone,
            is a repeat of the change, or contradicts it
Loads       rows are REFRESH. Their place: the load's time, six digits of the folder's name (a checksum, or option
            load_numbers; a second folder with the same ones is held, own_place), the file's number, the row's place in
            it. The load's time is option load_time (`first`: before all changes), else startWriteTimestamp in the
            sidecar of LOAD00000001, less load_lead_seconds (ASSUMED: its first row was not read longer before); of
            segments no file is known to be the first, so they need the option. load_id is the time and the six digits.
            A file that comes again with a later time of its load is of a new load. A load has ended once its files are
            there without a gap and a change of its table after its start is (option loads_end; ASSUMED: Qlik writes no
            change of a table before its load is done).
            ASSUMED: a first record that has the names of all columns, each once, is a header row; in a file of one
            column it may be a value, so option header_row has to tell
Gaps        Qlik removes files of changes by retention. One that was listed and is gone before it was landed whole is
            rejected (file_purged). Where new files of a table come and no landed one is listed, some may be missing
            (files_may_be_missing; not with option landed_files: removed). A full load of the table that begins later
            resolves both
Others      folders attrep_changes<16 hex digits> hold net changes that Qlik has left [seen in public]: they are not
            read, and counted
Text        text.py. Null: option null_text without quotes. In quotes it is rejected until quoted_null tells what it is
            [nothing public does]. A last record without record delimiter looks as a file does that was cut off: it is
            left until option last_record, or the count of the sidecar, tells that it is whole. A byte order mark before
            the first record is of none
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
            ambiguous_layout, contradiction, definition_missing, definition_differs, unsupported_message, wrong_shape,
            bad_column_count, bad_text, mask_too_long, value_does_not_fit, missing_key, null_not_allowed,
            conflicting_duplicate, those of JSON, part_missing
"""

import re

from inlet.codecs.qlik import dfm
from inlet.codecs.qlik.change_table import file_name, opening, sidecars
from inlet.codecs.qlik.change_table.annotate import annotate, annotate_rows
from inlet.codecs.qlik.change_table.block import cut, decode
from inlet.codecs.qlik.change_table.change_rows import CHANGES, COLUMNS, CONSTANTS, constants, tables_of
from inlet.codecs.qlik.change_table.options import Options
from inlet.codecs.qlik.change_table.pairs import half, join
from inlet.codecs.qlik.change_table.preview import preview
from inlet.codecs.qlik.change_table.rows import decode_rows, open_rows
from inlet.codecs.qlik.definitions import definitions_of, merged
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import Companion
from inlet.errors import Reject
from inlet.source import Source
from inlet.table import Table

OPTIONS = Options
NET_CHANGES = re.compile(r"(?:.*\.)?attrep_changes[0-9a-f]{16}", re.IGNORECASE)
__all__ = (
    "CHANGES",
    "COLUMNS",
    "CONSTANTS",
    "annotate",
    "annotate_rows",
    "constants",
    "cut",
    "decode",
    "decode_rows",
    "definitions_of",
    "half",
    "join",
    "merged",
    "open_rows",
    "preview",
    "tables_of",
)  # what the codec offers in addition to what is here


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict[str, Table]) -> dict | Reject | None:
    """The context of a file's first byte, as far as its name says it: `cut` settles the rest, with the sidecar."""
    if len(head) <= opening.LEN_MAGIC and not is_whole:
        return None
    if no := opening.of_head(head):
        return opening.rejected(no, head)
    context = file_name.by_name(path, source.options_as(Options))
    return opening.rejected(context, head) if isinstance(context, Refused) else context


def companions(path: str, source: Source) -> list[Companion] | None:
    """The sidecars of a file, and that of the first file of its load; None for a sidecar."""
    options = source.options_as(Options)
    context = file_name.by_name(path, options)
    is_first_known = not isinstance(context, Refused) and context["kind"] == "load"
    is_segment = is_first_known and context["number"] >= file_name.FIRST_OF_SEGMENTS  # which one began is not known
    return sidecars.companions(path, options, is_first_known and not is_segment)


def num_records(path: str, companions: dict[str, dict], source: Source) -> int | Reject | None:
    """How many records a file has by its sidecar."""
    return sidecars.num_records(path, companions, source.options_as(Options))


def load_of(context: dict) -> str | None:
    """The id of the full load that a file is of."""
    return context.get("load_id")


def table_of_load(context: dict) -> str:
    """SCHEMA.TABLE of a file of a load."""
    return str(context["table"])


def missing_files(contexts: list[dict]) -> str | None:
    """The files of a load before the last one, of each segment between the first one and the last one, that are not
    among some, in words.
    """
    segments: dict[int, set[int]] = {}
    for number in (context["number"] for context in contexts):
        segment, ordinal = file_name.segment_of(number)
        segments.setdefault(segment, set()).add(ordinal)
    found = [
        f"LOAD_{segment}_{n}" if segment >= 0 else f"LOAD{n:08d}"
        for segment in range(min(segments), max(segments) + 1)
        for n in range(1, max(segments.get(segment, {2})))
        if n not in segments.get(segment, ())
    ]
    return ", ".join(found[:3]) or None


def load_now(path: str, companions: dict[str, dict], source: Source) -> str | None:
    """The id of the full load that a file of this name is of now."""
    options = source.options_as(Options)
    context = file_name.by_name(path, options)
    try:
        return None if isinstance(context, Refused) else opening.located(context, companions, options).get("load_id")
    except Refused:
        return None


def purged_table(path: str, source: Source) -> str | None:
    """The table of a file of changes, by its folder: Qlik removes such files by retention."""
    if path.lower().endswith(dfm.SUFFIX):
        return None
    context = file_name.by_name(path, source.options_as(Options))
    is_of_changes = not isinstance(context, Refused) and context["kind"] == "changes"
    return (source.table_of(context["word"]) or context["word"]) if is_of_changes else None


def ignored(path: str, source: Source) -> str | None:
    """Why a file is not read: it is of a table of net changes."""
    is_net = any(NET_CHANGES.match(folder) for folder in re.split(r"[/\\]", path))
    return "attrep_changes: net changes of a batch, which Qlik leaves after an error" if is_net else None


def own_place(path: str, source: Source, tables: dict[str, Table]) -> tuple[str, str] | None:
    """The place of a file of a load among those of one time, and the folder of its table; None of a file of changes,
    whose rows tell theirs.
    """
    options = source.options_as(Options)
    context = file_name.by_name(path, options)
    if isinstance(context, Refused) or context["kind"] != "load":
        return None
    return f"{file_name.number_of(context['word'], options):06d}{context['number']:05d}", context["word"]


def span(context: dict, num_records: int) -> tuple[str, str] | None:
    """Bounds of the change_seq of a unit's changes: of a load, whose rows have their places from it."""
    if context.get("kind") != "load":
        return None
    first = context.get("first_row", context["row_ordinal"])
    return f"{context['place']}{first:08d}", f"{context['place']}{first + max(num_records - 1, 0):08d}"
