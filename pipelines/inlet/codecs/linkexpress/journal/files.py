"""Linkexpress Transactional Replication option (TRO): usage journals (利用ジャーナル), in files and as messages.

Unit      a block of whole messages, or of whole journals of a stream; or one message of a broker
Yields    changes in file order, each journal one; a checkpoint is a control event
Framing   mq_message      780 bytes of control data, a header, journals [documented]; messages one behind the other
          message_body    a header, journals
          journal_stream  journals alone, as the message-extraction command writes them [documented]
Header    0 i4 length of header and journals . 4 i4 32 . 8 i2 1 . 10 i2 acquiring system . 12 i2 packed transactions .
          14 i2 journals . 16 16 bytes whose places no public source tells
          The journals fill their message exactly, else the message is one reject; their number is the header's, else
          each of them is one (of a broker the message)
Division  a journal that is longer than its message goes on in the next messages, which hold nothing else [documented].
          They are one record; without a piece of it, one reject. Pieces that begin with the first six bytes of the
          journal repeat them where only so the journal ends with a piece: no source tells
          ASSUMED: no message is lost between two pieces, for messages have no number. Where the end of one journal and
          the beginning of the next are lost, and what is left is as long as the first one says, the two are read as
          one, unless an item or the number of valid items contradicts it. A broker's offsets show such a loss: pieces
          of its messages are put together only where their offsets follow each other (option divided)
Journal   0 i4 length, itself included . 4 i2 items that are valid, which is checked . 6 items
          tagged item     1 code . 2 information . 1 validity . data
          untagged item   2 validity . data
          The codes and the data of columns are in values.py, the options in options.py
          validity        00 valid, 0F null, F0 missing (its characters could not be converted), FF invalid (not part
                          of the change); of two bytes 0000, 00FF, FF00, FFFF. The data is there in any case.
                          Of two bytes in a little-endian message no source tells their order: a number is never
                          missing, so one among a file's first 1,000 journals tells; else the option
                          validity_order has to
          system items    81 TIME 16 bytes YYYYMMDDHHMMSS and hundredths . 82 TRNID 8 . 83 STS i2 . 84 DBKIND i2 .
                          85 DBOP i2 . 86 STORAGE, 87 RESOURCE 38 bytes, 72 in Unicode [documented]; option sysitems
                          says which there are in untagged journals, and their order
          columns         of every table of `tables`, in their order and in the contracts', those of other tables
                          invalid; compressed: of the table of RESOURCE alone [documented]
          checkpoint      24, 32 bytes, behind all others [documented]
Table     RESOURCE, a bare name: a word that the source's `tables` map, else the name of a contract
Images    insert and update hold the columns after the change (DBOP 1, 2), a delete those of before (3). An update that
          the source divides stays two changes, a delete and an insert; by the option pair_divided it is one where both
          stand one behind the other in a transaction, in one file or message, with one key: then its delete is a
          control event, delete_of_update, and the update has both images. A missing column is absent, and `missing` in
          column_states; an invalid one is absent
Time      TIME is the time of the change, local to the source (option source_tz, which has no default). It orders
          nothing. A time that the zone has twice or not at all leaves change_timestamp null
Transaction  TRNID as 16 hex digits. STS 5 alone; 1 opens, 2 goes on, 4 closes; a journal that cannot stand where it
          does is rejected (`out_of_sequence`). A rejected journal keeps its place; one that cannot be read keeps one in
          each transaction that is open. Without both items no change is in a transaction. A transaction may go on in
          the next files: there its events have no counter, and silver.transactions tells by its first and its last one
          whether it is whole
Header of a change  resource, storage, dbkind, sts; of its message acquiring_system, packed_transactions, journals,
          header_tail; trnid where it is in no transaction
Checkpoints  RESOURCE JCKP with DBKIND 8 (without that item: with no DBOP): control event `checkpoint`, with name,
          local_time and timestamp. An extracted stream has lost the name [documented]
          One whose columns are not invalid, a change with a checkpoint's name, and a change of another DBKIND than 1
          (Symfoware), 9 (Oracle) and 10 (SQL Server) are rejected
Sent again  a message that its queue has twice: its change is a repeat where its transaction, its place in that, its
          time and its content are those of one of the last look_back_batches (IDENTITY). Without TIME, or in a
          transaction that began in an earlier message, no source tells a change from its repeat: both are changes, and
          the later one counts. The same journals in two files are known by their places alone
Versions  the column lists in force at the time and ordinal of the file's name
Order     the time of the file's name, local to the source and made UTC, and its ordinal; then the journal's place in
          it. A name whose time the zone has twice or not at all is `missing_change_seq`. Files with different words
          before the time do not share a time and ordinal: the second one is held until it is renamed (own_place)
          Of a message of a broker no time, but 12 digits of its offset and 7 of the journal in it, whatever times
          journals tell; so `until` of a contract's earlier versions is such a place (docs/adr/0016). A queue has one
          partition; every other one is `missing_change_seq`, and another topic a source of its own
Facts     [documented] fields, codes, widths and meanings . [inferred] offsets in the header, by the widths of its
          fields; the place of the system items; that a tag's information is a length in the message's byte order, of
          numbers precision and scale, a byte each
          ASSUMED: what the options leave open holds for a whole file and is found by exact fit over its first journals
          (a file below 1 MiB waits for settle_minutes until all of it is there; options that tell end the wait);
          several fit and decode differently -> ambiguous_layout. A message tells its byte order itself
          ASSUMED: validities of two bytes are numbers in the message's byte order, unless that makes items missing that
          are no text and the other reading does not; in big-endian there is no difference. One message alone that tells
          neither is ambiguous_layout. What a contract says is no evidence: a null that it forbids is null_not_allowed
          ASSUMED: system texts and days are in the option charset, but in utf_16 days, times and names of checkpoints:
          these have the widths of single bytes, and are ASCII; base 16 floats come with EBCDIC
          Under GS_KANA and GS_ASCII a NUMERIC has no sign byte [documented], unless the first journals tell otherwise
          ASSUMED: no message is longer than 16 MiB and no journal of a stream longer than 1 MiB
Messages  the journals of a message settle what the options leave open for it: a source whose options tell framing,
          tags and widths costs no fit. Pieces of a divided journal wait for each other where the option divided says
          that there are any; messages between them, even one of a transaction of the broker, make them a reject. What
          looks like the beginning of a longer journal waits for the rest, or until part_wait_minutes
Context   of a block: the open transactions of which it has journals, as they were before it; of a file that goes on,
          all that are open
Speed     compiled walks (frames.py, walk.py, open_transactions.py, images.py) read what they are certain of; the plain
          readers (frame.py, items.py, record.py) read the rest, settle the options and serve `inlet inspect`
Not read  journals without RESOURCE, unless there is one table; a divided checkpoint of a broker
Rejects   bad_length, bad_header, contradiction, unsupported_record, unknown_token, bad_null_indicator,
          bad_value_length, bad_column_count, definition_differs, unknown_operation, unknown_table, ambiguous_table,
          out_of_sequence, bad_digit, bad_sign, bad_text, bad_date, value_does_not_fit, missing_key, null_not_allowed
          (after-images only), missing_change_seq, ambiguous_layout, truncated
Contracts `inlet import` makes them of acquisition definitions: journal/definition and journal/acquisition, below
Source    Linkexpress Transactional Replication option manual, 14; docs/formats/linkexpress_journal.md
"""

from dataclasses import replace

from inlet import change
from inlet.codecs.linkexpress import file_name
from inlet.codecs.linkexpress.frames import tables_of
from inlet.codecs.linkexpress.journal import frame
from inlet.codecs.linkexpress.journal import reading as journal_reading
from inlet.codecs.linkexpress.journal.annotate import annotate
from inlet.codecs.linkexpress.journal.block import cut, decode
from inlet.codecs.linkexpress.journal.change_rows import CHANGES, COLUMNS, CONSTANTS, constants, load_of
from inlet.codecs.linkexpress.journal.columns import check
from inlet.codecs.linkexpress.journal.definition import definitions_of, settings_of
from inlet.codecs.linkexpress.journal.messages import decode_message, join, place_of
from inlet.codecs.linkexpress.journal.options import Options, options_of
from inlet.codecs.linkexpress.journal.pairs import DELETE_OF_UPDATE
from inlet.codecs.linkexpress.reject import change_seq_of
from inlet.errors import Reject
from inlet.source import Source

OPTIONS, TELLS_FIRST, OTHER_EVENTS = Options, True, (DELETE_OF_UPDATE,)
FAST, LOADS = None, None
HAS_CHECKPOINTS = True
# of messages; null where a transaction began elsewhere, and where the time of the change is not known
IDENTITY = "concat(transaction_id, '/', transaction_event_counter, '/', change_timestamp)"
__all__ = (  # what the codec offers beside what is here
    "CHANGES",
    "COLUMNS",
    "CONSTANTS",
    "annotate",
    "check",
    "constants",
    "cut",
    "decode",
    "decode_message",
    "definitions_of",
    "join",
    "load_of",
    "place_of",
    "settings_of",
    "tables_of",
)


def own_place(path: str, source: Source, tables: dict) -> tuple[str, str] | None:
    """The place of a file in the order, and the word of its name."""
    return file_name.place(path, options_of(source))


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a file's first byte, from its name and by exact fit over its first journals. Raises:
    ConfigError.
    """
    options = options_of(source)
    name = file_name.read(path, head, options)
    if isinstance(name, Reject):
        return name
    framing = _framing(head, is_whole, options)
    if framing is None:
        return None
    context = {
        "framing": framing,
        frame.EACH: True,
        "time": name.time,
        "file_ordinal": name.ordinal,
        "record_ordinal": 0,
        "open": {},
        "reading": None,
    }
    in_file = journal_reading.in_file(context, tables)
    settled = journal_reading.settled(context, head, is_whole, source, options, in_file)
    return replace(settled, change_seq=change_seq_of(context, 0)) if isinstance(settled, Reject) else settled


def open_options(path: str, head: bytes, source: Source, tables: dict) -> list[str]:
    """The options that would tell how a file is read that waits until it is whole."""
    options = options_of(source)
    framing = _framing(head, False, options)
    return journal_reading.open_options({"framing": framing}, head, options) if framing else ["framing"]


def _framing(head: bytes, is_whole: bool, options: Options) -> str | None:
    """The framing that options say, or a header; None while too little is there to tell."""
    framing = frame.detect(head) if options.framing == "auto" else options.framing
    is_enough = is_whole or len(head) >= frame.LEN_CONTROL_DATA + frame.LEN_HEADER
    return framing or ("journal_stream" if is_enough else None)


def span(context: dict, num_records: int) -> tuple[str, str]:
    """Bounds of the change_seq of a block's changes."""
    first = context["record_ordinal"]
    prefix = context["time"], context["file_ordinal"]
    return change.change_seq(*prefix, first), change.change_seq(*prefix, first + max(num_records - 1, 0))
