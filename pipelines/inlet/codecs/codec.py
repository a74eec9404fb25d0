"""The contract of a codec: what it offers, what it is given, what it gives back. Nothing else passes between a codec
and the rest of Inlet.

A codec is a module whose docstring is the spec of its format. It is pure: it opens no file, reads no clock, and gives
the same answer whenever it is asked again. It offers one face or several:

- `FileCodec` reads streams of bytes. `open_file` reads what the name and the first bytes say, `cut` finds the borders
  of records, `decode` reads one block of them. Bronze cuts a file in order; silver decodes its blocks in parallel, each
  with the context that `cut` gave it.
- `RowCodec` reads columnar files, whose rows are the records; a unit is a run of rows.
- `MessageCodec` reads messages, each by itself. `decode_message` reads any; `FAST`, where there is one, only those that
  it is certain of.

What holds, whatever the bytes (tests/test_codecs.py asks it of every codec):

- Each record of a unit is a change, a reject, a part or a control record, and each byte belongs to one of these or to
  the framing.
- The same records come out wherever a file is cut, and however long blocks are.
- A record that cannot be read is a reject which covers it, and stops no other record. So is one of a table without a
  contract, of a value that does not fit its column, of a null where the contract takes none.
- A change is read by the columns in force at its place, `tables[name].at(change_seq)`.
- What an InletError says, a person has to fix in the configuration. Any other error is a `decoder_failed` reject of the
  unit.

Contexts are dicts that JSON can hold; one may be empty, where a codec needs nothing to go on in a file. Four members
are Inlet's own, and a codec gives none of them itself (`OWN`): `problem`, why a unit could not be framed (no codec is
asked to decode it); `companions`, the files that came with this one, by name: `path` and `data`, its bytes in hex,
which a codec hands on or drops; `first_row`, of a unit of rows; `undecided`, at the end of a file, the ranges that no
mark has judged yet (no codec sees it).

A codec offers what it has and that is not None, False or empty (`offers`).
"""

import datetime
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pydantic import BaseModel

from inlet.codecs import columns
from inlet.codecs.columns import Column
from inlet.codecs.notes import Annotated, Note, Said
from inlet.codecs.results import Companion, Cut, Decoded, Definition, Joined, Preview, Settings, Waiting
from inlet.errors import Reject
from inlet.fields import variant
from inlet.source import Source
from inlet.table import Table

IMAGES = ("before", "after", "header")
IMAGE = pa.struct(
    [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
)  # VARIANT in Arrow


FIRST_ROW = "first_row"  # member of the context of a unit of rows
UNDECIDED = "undecided"  # member of a context at the end of a file: ranges of the source that no mark has judged yet
OWN = {"problem", "companions", FIRST_ROW, UNDECIDED}  # members of contexts that no codec gives


class Codec(Protocol):
    """What every codec offers. `join` is asked of codecs that give parts; `IDENTITY` is theirs whose feed can be sent
    again at another place; `OTHER_EVENTS` theirs that have some, and so is `HAS_CHECKPOINTS`; `TELLS_FIRST` theirs
    whose changes are known to begin a transaction, or not, though those behind may have no counter.
    """

    # the source's `options`, each with a safe default; FILES of it: option that may name a file -> how its text is
    # read; REQUIRED of it: option without a default, which a person has to tell -> what to write
    OPTIONS: type[BaseModel]
    # SQL over silver.changes for what identifies a change next to its place; with the same content it is a repeat. Of a
    # codec that reads files and messages it is asked of messages alone, because names tell the places of files
    IDENTITY: str
    OTHER_EVENTS: tuple[str, ...]  # kinds of control events that may be events of a transaction (results.event_detail)
    TELLS_FIRST: bool
    WHOLE_BY: str  # what shows that the last record of a file is whole, in words: of formats whose records do not
    HAS_CHECKPOINTS: bool  # may it give control events of kind `checkpoint` (results.Control), with a change_seq?

    def place_of(self, offset: int) -> str:
        """The change_seq before which no change of a message is, by its offset: of codecs with TELLS_FIRST that read
        messages. What is missing there may be an event of a transaction.
        """

    def join(self, key: str, parts: list[Waiting], source: Source, tables: dict[str, Table]) -> Joined:
        """Settle the parts of a key, those that waited and new ones, in the order of change_seq, then of
        their places in the feed.
        """


class KnowsHalves(Codec, Protocol):
    """A codec whose parts are images of one change, which a part that comes again can be held against."""

    def half(self, part: Waiting, change_mask: bytes | None, source: Source, tables: dict[str, Table]) -> dict | Reject:
        """The change that a part is of, with the image that the part holds and no other. In: a part whose change_seq a
        change of silver.changes has; the mask of that change.
        """


class FileCodec(Codec, Protocol):
    """A codec of files of records."""

    def open_file(
        self, path: str, head: bytes, is_whole: bool, source: Source, tables: dict[str, Table]
    ) -> dict | Reject | None:
        """The context of a file's first byte. In: its path, without `.gz` and the like; its first MiB, or what is there
        of it, maybe all that will be (is_whole); never no bytes. Out: a Reject where the file cannot be ordered or
        read, whatever follows; None where more has to come to tell.
        """

    def cut(
        self, data: bytes, context: dict, source: Source, tables: dict[str, Table], len_block: int, is_final: bool
    ) -> Cut:
        """Cut whole records into blocks of about `len_block` bytes. In: is_final False while more may follow; an
        unfinished record is left uncut.
        """

    def decode(self, data: bytes, context: dict, source: Source, tables: dict[str, Table]) -> Decoded:
        """Read a block."""

    def span(self, context: dict, num_records: int) -> tuple[str, str] | None:
        """Bounds of the change_seq of a block's changes; None where they cannot be told, so that silver looks for
        repeats.
        """


class Settles(FileCodec, Protocol):
    """A file codec that settles options of a file by what fits its first records."""

    def open_options(self, path: str, head: bytes, source: Source, tables: dict[str, Table]) -> list[str]:
        """The options that would tell how a file is read for which `open_file` gives None; none where what is there of
        its first record tells nothing. In: as of `open_file`.
        """


class RowCodec(Codec, Protocol):
    """A codec of columnar files, whose rows are the records."""

    def open_rows(
        self,
        path: str,
        schema: pa.Schema,
        values: Callable[[str], Iterable[pa.Array]],
        companions: dict[str, dict],
        source: Source,
        tables: dict[str, Table],
    ) -> dict | Reject:
        """The context of a file's units. In: what gives the values of a column, piece by piece from the first row on;
        the files that came with it. Out: a Reject where the file cannot be ordered or read.
        """

    def decode_rows(self, rows: pa.Table, context: dict, source: Source, tables: dict[str, Table]) -> Decoded:
        """Read a run of rows. `context["first_row"]` is the ordinal of its first one in the file; the `unit_offset` of
        a record is the ordinal of its row in the run, its `unit_length` 1. Parts carry what `join` needs in `note`.
        """

    def span(self, context: dict, num_records: int) -> tuple[str, str] | None:
        """As of a FileCodec."""


class OrderedFiles(FileCodec, Protocol):
    """A file codec whose files depend on each other: each is read with what was known at the end of the one before it,
    for which it waits.
    """

    ENDS_WITH_NEXT: bool  # is no record added to a file once the next one is there? Then it is EndedByNext

    def place(self, context: dict) -> int:
        """The place of a file among those of its source, from 0 or 1 on, without a gap. In: what `open_file` gave."""

    def follow(self, context: dict, before: dict | None) -> dict:
        """The context of a file's first byte. In: what `open_file` gave; the context at the end of the file before,
        None for the first of all.
        """

    def is_ended(self, context: dict) -> bool:
        """Is the file whole, so that the next one may follow?"""

    def reached(self, context: dict) -> str:
        """The change_seq before which no change of the next file is. In: the context at the end of a file."""


class EndedByNext(OrderedFiles, Protocol):
    """A codec of such files, to which no record is added once the next one is there."""

    def cut(
        self,
        data: bytes,
        context: dict,
        source: Source,
        tables: dict[str, Table],
        len_block: int,
        is_final: bool,
        is_followed: bool = False,
    ) -> Cut:
        """As of a FileCodec. In: is_followed, that the next file is there: of records that belong together those that
        are lacking will not come. Where it is not final either, the bytes are those of blocks that were cut before.
        """


class PlacedByName(FileCodec, Protocol):
    """A file codec whose files take their place in the order from their names."""

    def own_place(self, path: str, source: Source, tables: dict[str, Table]) -> tuple[str, str] | None:
        """The place that a file's name tells, and whose it is: a table, or a word of the name. No two owners share a
        place; files of one owner that do are deliveries of one file. None where the name tells none.
        """


class Accompanied(FileCodec, Protocol):
    """A file codec whose files come with others, which the transport hands over in the context (`companions`), of
    columnar files to `open_rows`.
    """

    def companions(self, path: str, source: Source) -> list[Companion] | None:
        """The files that come with one; None for a path that is such a file itself."""


class Counted(Accompanied, Protocol):
    """A codec whose companions may say how many records a file has. Such a file is landed as a whole: it is whole once
    it has as many, and waits until then. Where it has not after `settle_minutes`, no record of it is framed.
    """

    def num_records(self, path: str, companions: dict[str, dict], source: Source) -> int | Reject | None:
        """How many records a file has; None where nothing says so; a Reject where what should say so cannot be read,
        maybe because it is not whole yet."""


class Purged(FileCodec, Protocol):
    """A codec of a feed that removes files of changes after a time, landed or not. Its OPTIONS have `landed_files`:
    `kept`, or `removed` where something else removes landed files at once.
    """

    def purged_table(self, path: str, source: Source) -> str | None:
        """The table of a file of changes; None for any other file."""


class Ignores(FileCodec, Protocol):
    """A codec next to whose files a feed leaves others that are not to be read."""

    def ignored(self, path: str, source: Source) -> str | None:
        """Why a file is not read, in words; None where it is."""


class Reloads(Accompanied, Protocol):
    """A codec whose feed gives a name to a new file, once the one of before is no longer needed: its loads begin with
    the same names again.
    """

    def load_of(self, context: dict) -> str | None:
        """The id of the full load that a file is of, with which the change_seq of all its rows begins; None where it is
        of none. In: what `cut` gave, or `open_rows`."""

    def table_of_load(self, context: dict) -> str:
        """SCHEMA.TABLE of a file of a load. In: as of `load_of`."""

    def missing_files(self, contexts: list[dict]) -> str | None:
        """Which files of a load are missing among some, in words; None where no number tells of one."""

    def load_now(self, path: str, companions: dict[str, dict], source: Source) -> str | None:
        """The id of the full load that a file of this name is of now; None where nothing says so."""


class ArrowFileCodec(FileCodec, Protocol):
    """A file codec whose changes are Arrow batches: what is constant for a unit, or computable, is added by who writes
    them."""

    CHANGES: (
        pa.Schema
    )  # columns of silver.changes, or any others that COLUMNS uses; `table_index`: of sorted(tables_of(...))
    CONSTANTS: dict[str, str]  # name -> SQL type of what `constants` gives
    COLUMNS: dict[str, Column]  # of silver.changes; a column that is in none of these three is null

    def constants(self, context: dict) -> dict[str, Any]:
        """What is the same for all changes of a unit."""

    def tables_of(self, context: dict, tables: dict[str, Table]) -> dict[str, Table]:
        """The contracts in force for a unit."""

    def load_of(self, context: dict) -> str | None:
        """The id of the full load that a file is, with which the change_seq of all its rows begins; None where it is
        none.
        """


class DefinitionFiles(Codec, Protocol):
    """A codec whose vendor has definition files, which `inlet import` reads."""

    def definitions_of(self, data: bytes, name: str, source: Source) -> list[Definition]:
        """The column lists in a definition file; their change_seq is empty where the file tells no time. In: its path,
        as it was given. Raises: ConfigError.
        """


class Merges(DefinitionFiles, Protocol):
    """A codec whose definition files tell a version, and may differ within one."""

    def merged(self, one: list[dict], other: list[dict]) -> list[dict] | None:
        """The columns that two lists of one version mean together; None where they contradict each other."""


class DescribesSources(DefinitionFiles, Protocol):
    """A codec whose definition files tell options of the source, too."""

    def settings_of(self, files: list[tuple[str, bytes]], source: Source) -> Settings:
        """What definition files say of their source together. In: their names and bytes. Raises: ConfigError where they
        contradict each other.
        """


class Checks(Codec, Protocol):
    """A codec that tells before there is data whether it can read a source, for `inlet doctor`."""

    def check(self, source: Source, tables: dict[str, Table]) -> None:
        """In: the source's contracts. Raises: ConfigError where its options and they cannot be meant together."""


class Previews(FileCodec, Protocol):
    """A codec that tells from the names of files, and from the first ones, whether it can read a source, for `inlet
    doctor`."""

    def preview(self, paths: list[str], source: Source, tables: dict[str, Table]) -> Preview:
        """In: the paths of all files that are listed and not ignored, those that come with others among them."""


class Annotates(Codec, Protocol):
    """A codec that says what each byte of its units is, for `inlet inspect`."""

    def annotate(self, data: bytes, context: dict, source: Source, tables: dict[str, Table]) -> list[Annotated]:
        """The records of a unit, and what is none, in the order of its bytes; each byte in one leaf of their notes. It
        reads by itself what `decode` reads, in plain Python, and fails for no bytes: what cannot be read is a note. In:
        the value of a message, and the message as its context."""


class KnowsLines(FileCodec, Protocol):
    """A codec of texts without `annotate`, which says what their lines are."""

    def line_notes(self, data: bytes) -> tuple[str, list[Note]]:
        """What the record in these bytes calls its operation, or nothing; and its lines, each with what it is. It fails
        for no bytes."""


class AnnotatesRows(RowCodec, Protocol):
    """A codec that says what each cell of its columnar files is, for `inlet inspect`."""

    def annotate_rows(self, rows: pa.Table, context: dict, source: Source, tables: dict[str, Table]) -> list[Annotated]:
        """The rows of a unit, in order: the offset is the ordinal of a row in the unit, its length 1; its notes have no
        bytes."""


class AnnotatesHeaders(Annotates, Protocol):
    """A codec whose files have a header that can be shown though `open_file` refused the file."""

    def annotate_header(self, data: bytes) -> list[Annotated]:
        """The header of a file, of whose first bytes these are; nothing where it is none, or not whole."""


class StartsAnywhere(FileCodec, Protocol):
    """A file codec that finds its records from any place of a file on, so that `inlet inspect --at` need not read all
    that is before it.
    """

    def find_record(self, data: bytes, offset: int, context: dict, is_final: bool) -> tuple[int, dict] | None:
        """The first place in these bytes at which a record surely begins, and the context there, in which what the
        records before it said is missing. In: where in the file they begin; the context of its first byte; is_final,
        that it ends with them.
        """


class MessageCodec(Codec, Protocol):
    """A codec of messages. Its context is the message: a row of bronze.messages as a dict."""

    FAST: Any  # a module with FastMessages, with FastLoads where there are LOADS, or None
    LOADS: Any  # a module with MessageLoads, or None

    def decode_message(self, message: dict, source: Source, tables: dict[str, Table], loads: list[dict]) -> Decoded:
        """Read a message exactly; changes are dicts. A message may pack several records, each with bytes of its own; an
        empty one is a control record. In: the loads that `LOADS` knows.
        """

    def refresh_row(
        self, message: dict, source: Source, tables: dict[str, Table]
    ) -> tuple[str, datetime.datetime] | None:
        """SCHEMA.TABLE and time where a message is a row of a full load that has a time, even a rejected one. Asked of
        codecs with LOADS.
        """


class LooksUp(MessageCodec, Protocol):
    """A message codec whose messages name what they do not hold, such as a schema by its id. `decode_message` is given
    what was found: `message["lookups"]`, bytes by name; None where nothing was there when the batch landed. Then it
    rejects the message (`definition_missing`), which is decoded again by the run that finds it.
    """

    def lookups(self, message: dict, source: Source) -> list[str]:
        """The names that a message needs, maybe by the options of its source."""


class Brings(MessageCodec, Protocol):
    """A message codec some of whose messages bring what others name, such as a column list by its id. It is kept in
    bronze.lookups, and `decode_message` is given all that the source has brought: `message["lookups"]`, bytes by name;
    `FAST.changes` has it as a further argument, by source. A message that names what has not come is rejected
    (`definition_missing`), and decoded again once something new has come.
    """

    MAY_BRING: str  # SQL over bronze.messages: messages that may bring something, and maybe others

    def brought(self, message: dict) -> dict[str, bytes]:
        """What a message brings, by name."""


class SaysPlaces(MessageCodec, Protocol):
    """A message codec without `annotate`, whose records can be found by what they say of their places."""

    def says(self, message: dict, source: Source, tables: dict[str, Table]) -> list[Said]:
        """The records of a message that has a value, those that can be read so far. It needs no contract, and fails
        for no bytes. In: as of `decode_message`.
        """


class FastMessages(Protocol):
    """Reads at speed what it is certain of. Where it answers, `decode_message` gives the same."""

    READ: Sequence[str]  # SQL: the columns of bronze.messages that it reads

    def changes(
        self, sources: list[Source], tables: dict[str, Table], loads: list[dict]
    ) -> Callable[[Iterable], Iterator]:
        """Arrow batches of messages -> Arrow batches of changes, with those columns of silver.changes that are known,
        but for batch_id and decoded_at.
        """


class FastLoads(FastMessages, Protocol):
    """The same, of a codec with LOADS."""

    def with_seq(self, messages):
        """Messages with `seq`, the change_seq that the text gives cheaply; null where it is unknown."""

    def find_loads(self, messages, sources: list[Source], tables: dict[str, Table], refresh_row) -> dict:
        """(source, SCHEMA.TABLE) -> [(first, last, topic)]: times of full-load messages of a topic, as
        MessageLoads.assign_loads takes them.
        """


class MessageLoads(Protocol):
    """Full loads whose messages carry no order: which one a message belongs to, and when it has ended. The codec's
    OPTIONS have `load_gap_minutes`, `loads_end`, `clock_skew_seconds` and `load_time`.
    """

    def assign_loads(
        self,
        known: list[dict],
        seen: dict,
        gap_minutes: float,
        skew_seconds: float,
        changes_after: dict[tuple[str, str], str] | None,
    ) -> list[dict]:
        """The known loads with what was seen added. In: by (source, load_id) the least change_seq after the first row
        of a new load."""

    def moved(self, load: dict, loads: list[dict], topics: list[str], seconds: float, before: str | None) -> dict:
        """A load with an earlier start, and no place that rows of other loads have. In: the loads of its source; its
        topics; by how many seconds at least; a change_seq that it has to come before."""

    def file_time(self, source: Source, path: str, modified_at: datetime.datetime | None) -> datetime.datetime | None:
        """The time of messages of a file that no broker gave one; None where they stay without."""

    def window(self, load: dict, source: Source) -> tuple[str, str]:
        """The span of change_seq in which a change sorts before a load, though it may come after its rows."""

    def proof_span(self, load: dict, loads: list[dict]) -> tuple[str, str]:
        """The span of change_seq in which a change of the table proves that the load has ended."""

    def is_over(self, load: dict, loads: list[dict], newest_seq: str, options: BaseModel) -> bool:
        """Has the load ended without such a change?"""


def offers(codec: Any, name: str) -> bool:
    """Does a codec offer something? What is None, False or empty is not offered."""
    return bool(getattr(codec, name, None))


def decode_block(codec: Any, data: bytes, context: dict, source: Source, tables: dict[str, Table]) -> Decoded:
    """Read a block; one that could not be framed is one reject that covers it."""
    problem = context.get("problem")
    if not problem and FIRST_ROW in context:
        rows = pa.ipc.open_stream(data).read_all()
        decoded = codec.decode_rows(rows, context, source, tables)
        decoded.bytes_framing += len(data) - len(rows)
        return decoded
    if not problem:
        return codec.decode(data, context, source, tables)
    at = min(max(problem.get("byte_offset", 0) - problem.get("unit_offset", 0), 0), len(data))
    return Decoded(
        [],
        [
            Reject(
                problem["kind"],
                0,
                len(data),
                at,
                problem["expected"],
                problem["found"],
                data,
                problem.get("source_schema"),
                problem.get("source_table"),
                problem.get("column_name"),
                problem.get("change_seq"),
            )
        ],
    )


def change_rows(codec: Any, decoded: Decoded, context: dict, tables: dict[str, Table]) -> list[dict]:
    """A block's changes as dicts: for eyes and tests, not for bulk."""
    if isinstance(decoded.changes, list):
        return decoded.changes
    rows = columns.rows(codec, decoded.changes, context, tables)
    for row in rows:
        images = {name: row[name] and variant.decode(**row[name]) for name in IMAGES if name in row}
        row |= images | {"column_states": dict(row["column_states"]) if row.get("column_states") else None}
        if at := row.get("change_timestamp"):
            row["change_timestamp"] = at.replace(tzinfo=datetime.UTC)  # Arrow has a zone of its own
    return rows
