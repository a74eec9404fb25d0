"""`inlet inspect FILE`: every byte of a file with its field and meaning. No lakehouse, and maybe no project."""

import fnmatch
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from inlet.bronze import load_times, message_text
from inlet.bronze.files import LEN_READ, is_compressed, unpacked_name
from inlet.bronze.framing import LEN_HEAD, attempt, cut_file
from inlet.bronze.transports import TRANSPORTS
from inlet.codecs import CODECS, transports_of
from inlet.codecs.codec import offers
from inlet.codecs.notes import UNREADABLE, Annotated, Note, bare, leaves
from inlet.commands import message_records, text_records
from inlet.commands.decode import (
    blocks_of,
    companions_with,
    load_time_of,
    opened,
    path_of,
    planned,
    source_of,
    with_lookups,
)
from inlet.config import Project, read_files
from inlet.errors import ConfigError
from inlet.log import counted
from inlet.source import ROW_TRANSPORTS, Source

FAR = (
    256 << 20
)  # bytes in front of `at` that are read, if a codec could do without: what they say of the rest is known then
NUM_NAMED = 5  # tables, transactions and commits that are named where none was found
BEHIND = 1 << 17  # bytes in front of `at` in which a record is looked for: two of the longest


class Selection(NamedTuple):
    """Which records are shown: those from a byte of the file on, of tables, transactions and commits."""

    at: int = 0
    table: str | None = None  # SCHEMA.TABLE, or a pattern
    transaction: str | None = None
    csn: str | None = None
    position: str | None = None

    def has(self, shown: "Shown") -> bool:
        record = shown.record
        is_of_table = self.table is None or record.table is not None and fnmatch.fnmatchcase(record.table, self.table)
        return (
            shown.offset + record.length > self.at
            and is_of_table
            and self.transaction in (None, record.transaction_id)
            and self.csn in (None, record.csn)
            and self.position in (None, record.position)
        )


@dataclass(frozen=True)
class Shown:
    """A record with its bytes. `base` is where in the file the bytes begin that the offsets of its notes count; of a
    message that is no part of the file's bytes as they are (`is_apart`) it is 0. `place` says which message it is.
    """

    record: Annotated
    data: bytes = field(repr=False)
    base: int
    place: dict[str, Any] = field(default_factory=dict)
    is_apart: bool = False
    is_row: bool = False  # of a columnar file: `base` and offsets count rows

    @property
    def offset(self) -> int:
        return self.base + self.record.offset

    def bytes_of(self, note: Note) -> bytes:
        return self.data[note.offset : note.end]

    def meaning_of(self, note: Note) -> str:
        """What a note says, with the byte of the file at which it cannot be read."""
        if note.fault_at is None:
            return note.meaning
        return f"{UNREADABLE}: byte {self.base + note.fault_at}: {note.meaning}"

    def faults(self) -> Iterator[tuple[str, str]]:
        """(kind, sentence) of all that cannot be read, as `inlet decode` says it; the bytes are those of the file."""
        record = self.record
        if record.fault:
            at = record.offset if record.fault_at is None else record.fault_at
            yield record.fault[0], self._sentence(*record.fault, at)
        for leaf in leaves(record.notes):
            if leaf.fault and leaf.meaning:  # a rest that is no record says it itself
                at = leaf.offset if leaf.fault_at is None else leaf.fault_at
                yield leaf.fault, self._sentence(leaf.fault, leaf.meaning.removeprefix(f"{UNREADABLE}: "), at)

    def _sentence(self, kind: str, why: str, at: int) -> str:
        of = f" of message {self.message}" if self.is_apart else ""
        return f"{kind} at {'row' if self.is_row else 'byte'} {self.base + at}{of}: {why}"

    @property
    def message(self) -> str:
        """Which message it is."""
        return f"{self.place['topic']}/{self.place['partition']}/{self.place['message']}"

    def as_json(self) -> dict:
        """All of it: a member that says nothing is left out."""
        record = self.record
        fault = None
        if record.fault:
            at = record.offset if record.fault_at is None else record.fault_at
            fault = {"kind": record.fault[0], "byte": self.base + at, "why": record.fault[1]}
        said = {
            "offset": self.offset,
            "length": record.length,
            "record": record.title,
            "operation": record.operation,
            "table": record.table,
            "transaction_id": record.transaction_id,
            "event": record.event,
            "is_last": record.is_last,
            "csn": record.csn,
            "position": record.position,
            "change_seq": record.change_seq,
            "fault": fault,
        }
        told = self.place | {name: value for name, value in said.items() if value is not None}
        return told | {"notes": [self._note(note) for note in record.notes]}

    def _note(self, note: Note) -> dict:
        said: dict[str, Any] = {"offset": self.base + note.offset, "length": note.length, "name": note.name}
        told = {"meaning": self.meaning_of(note), "image": note.image, "fault": note.fault}
        said |= {name: text for name, text in told.items() if text}
        if note.column is not None and not note.fault:
            said |= {"column": note.column, "value": _as_json(note.value)}
        if note.children:
            return said | {"notes": [self._note(child) for child in note.children]}
        return said | {"hex": self.bytes_of(note).hex()}


def _as_json(value: Any) -> Any:
    """A value; as text where it is a float that JSON has not."""
    return f"{value}" if isinstance(value, float) and not math.isfinite(value) else value


def without_project(file: Path, codec: str, transport: str, options: dict[str, Any]) -> Project:
    """A project with one source, and without contracts, for a file by itself. Raises: ConfigError."""
    if codec not in CODECS:
        raise ConfigError(f"There is no codec {codec}", f"There are: {', '.join(CODECS)}")
    known = transports_of(CODECS[codec])
    if transport and transport not in known:
        raise ConfigError(f"{transport} brings nothing that {codec} reads", f"Its transports are {', '.join(known)}")
    source = Source(**{"name": "file", "codec": codec, "from": str(file), "options": options})
    source.transport = transport or known[0]
    read_files(source, CODECS[codec].OPTIONS, Path(), "options")
    source.options_as(CODECS[codec].OPTIONS)
    return Project(root=file.resolve().parent, lakehouse="", sources={source.name: source}, tables={})


def inspect(
    project: Project, file: Path, source_name: str | None, name: str | None, selection: Selection
) -> Iterator[Shown]:
    """The records of a file, in order. In: the name that the file is read by, where that is not its own."""
    if not file.is_file():
        raise ConfigError(f"{file} is no file", "Name one file of a source")
    source = source_of(project, file, source_name)
    is_of_rows = source.transport in ROW_TRANSPORTS
    codec = CODECS[source.codec]
    if source.broker or is_of_rows and not offers(codec, "annotate_rows"):
        what = f"{source.codec} over {source.transport}"
        raise ConfigError(
            f"{source.name} reads {what}, whose bytes it does not explain", "`inlet decode` shows its changes"
        )
    if is_of_rows:
        found = _of_rows(project, source, file)
    elif not source.brings_messages:
        found = _of_records(project, source, file, name, selection.at)
    elif source.transport in message_text.SPLIT:
        found = _of_text(project, source, file, selection.at)
    elif selection.at:
        raise ConfigError(
            f"--at is a byte of the file, and {source.transport} says no bytes of a message",
            "Use --records or a filter",
        )
    else:
        found = _of_messages(project, source, file)
    return (shown for shown in found if selection.has(shown))


class Counts(NamedTuple):
    """How many of each operation there are of each table, and of them how many cannot be read, by which kinds; of each
    kind the first one, as a sentence."""

    rows: list[dict]
    faults: dict[str, str]


def count(records: Iterable[Shown]) -> Counts:
    """A change that comes in several records is one."""
    number, sizes, rejected = Counter[tuple[str, str]](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    kinds = defaultdict[tuple[str, str], set[str]](set)
    faults: dict[str, str] = {}
    is_rejected = False
    for shown in records:
        record = shown.record
        key = record.table or "", record.operation or record.title
        number[key] += record.part == 0
        sizes[key] += record.length
        found = first_of_each(shown.faults(), faults)
        kinds[key].update(found)
        was_rejected = is_rejected and record.part > 0
        is_rejected = was_rejected or bool(found)
        rejected[key] += is_rejected and not was_rejected
    rows = [
        {
            "table": t or None,
            "operation": o,
            "number": number[t, o],
            "bytes": sizes[t, o],
            "rejected": rejected[t, o],
            "kinds": sorted(kinds[t, o]),
        }
        for t, o in sorted(sizes)
    ]
    return Counts(rows, faults)


def first_of_each(found: Iterable[tuple[str, str]], faults: dict[str, str]) -> list[str]:
    """Note the first sentence of each kind. Out: the kinds that were found."""
    kinds = []
    for kind, sentence in found:
        faults.setdefault(kind, sentence)
        kinds.append(kind)
    return kinds


def nothing(records: Iterable[Shown], selection: Selection) -> tuple[str, dict[str, str]]:
    """That no record was found: what was looked for, and what is there; of bytes that are no record, the first
    sentence of each kind. In: all records.
    """
    place, own = selection._asdict(), Selection()._asdict()
    asked = {"table": "table", "transaction": "transaction", "csn": "commit", "position": "position", "at": "byte"}
    sought = {name: f"{word} {place[name]}" for name, word in asked.items() if place[name] != own[name]}
    there: dict[str, dict[str, None]] = {"table": {}, "transaction": {}, "csn": {}, "position": {}}
    faults: dict[str, str] = {}
    num = 0
    for shown in records:
        record, num = shown.record, num + 1
        said = record.table, record.transaction_id, record.csn, record.position
        for values, value in zip(there.values(), said):
            if value and len(values) <= NUM_NAMED:
                values[value] = None
        if record.fault and not record.table:
            first_of_each(shown.faults(), faults)
    named = [
        f"{asked[name]}s {', '.join([*values][:NUM_NAMED])}{', ...' * (len(values) > NUM_NAMED)}"
        for name, values in there.items()
        if values and (name != "position" or name in sought)
    ]
    lacking = [f"none of them tells a {asked[name]}" for name in there if name in sought and num and not there[name]]
    of = f" of {' and '.join(sought.values())}" if sought else ""
    what = f"no record{of}; the file has {counted(num, 'record')}: {'; '.join(named + lacking)}".removesuffix(": ")
    return what, faults


def _of_records(project: Project, source: Source, file: Path, name: str | None, at: int) -> Iterator[Shown]:
    """Of a file whose codec finds its records."""
    codec, tables, path = CODECS[source.codec], project.tables_of(source), path_of(project, file)
    with_it = companions_with(project, source, path) or None
    with opened(project, file) as (_, stream):
        start, context, name = 0, None, name or unpacked_name(path)
        if at > FAR and offers(codec, "find_record") and not is_compressed(file.name):
            start, context = _far(codec, source, tables, name, stream, at)
        stream.seek(start)
        for block, _ in cut_file(source, tables, name, stream, start, context, True, with_it):
            if block.file_offset + len(block.data) <= at:
                continue
            for record in _annotated(codec, block.data, block.context, source, tables, not block.file_offset):
                yield Shown(record, block.data, block.file_offset)


def _of_rows(project: Project, source: Source, file: Path) -> Iterator[Shown]:
    """Of a columnar file: its rows, whose cells are packed by column, and have no bytes that could be shown."""
    codec, tables = CODECS[source.codec], project.tables_of(source)
    try:
        for block in blocks_of(project, source, file):
            rows = pa.ipc.open_stream(block.data).read_all()
            for record in codec.annotate_rows(rows, block.context, source, tables):
                yield Shown(record, b"", block.file_offset, is_row=True)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(f"{file} cannot be read: {error}", "Deliver it again") from error


def _annotated(codec, data: bytes, context: dict, source: Source, tables: dict, is_first: bool) -> list[Annotated]:
    """In: whether the file begins with these bytes."""
    problem = context.get("problem")
    if not problem:
        is_explained = offers(codec, "annotate")
        annotate = codec.annotate if is_explained else partial(text_records.annotate, codec)
        return annotate(data, context, source, tables)
    header = codec.annotate_header(data) if is_first and offers(codec, "annotate_header") else []
    start = header[-1].offset + header[-1].length if header else 0
    at = min(max(problem["byte_offset"], start), len(data))
    rest = bare("no record", start, len(data), problem["kind"], problem["expected"], problem["found"], at)
    return [*header, rest]


def _far(codec, source: Source, tables: dict, name: str, stream: IO[bytes], at: int) -> tuple[int, dict | None]:
    """Where the first record surely begins that can be read shortly before a place, and its context; the beginning of
    the file where there is none.
    """
    context = attempt(codec.open_file, name, stream.read(LEN_HEAD), False, source, tables)
    if not isinstance(context, dict):
        return 0, None
    start = at - BEHIND
    stream.seek(start)
    data = stream.read(LEN_READ)
    found = codec.find_record(data, start, context, len(data) < LEN_READ)
    return (start + found[0], found[1]) if found else (0, None)


def _of_text(project: Project, source: Source, file: Path, at: int) -> Iterator[Shown]:
    """Of messages in a text; what lies between them is shown, too."""
    codec, tables = CODECS[source.codec], project.tables_of(source)
    topic, given = str(file.resolve()).removeprefix(f"{project.root}/"), with_lookups(project, source)
    load_at = load_time_of(source, topic, file)
    with opened(project, file) as (_, stream):
        pieces = _lines(stream) if source.transport == "lines" else iter([(0, stream.read())])
        number = 0
        for base, data in pieces:
            has_mark = base == 0 and source.transport != "whole_file" and data.startswith(message_text.BOM)
            begin = len(message_text.BOM) if has_mark else 0
            cut = message_text.SPLIT[source.transport](data, begin, number == 0, True)
            end = 0
            for start, stop in cut.spans:
                yield from _between(data, base, end, start)
                if base + stop > at:
                    message = {"topic": topic, "partition": 0, "offset": number, "value": data[start:stop]}
                    message |= {"timestamp": None, "key": None, "headers": None}
                    timed = load_times.timed(message, load_at)
                    yield from _of_message(codec, source, tables, given, timed, base + start)
                number, end = number + 1, stop
            if cut.trouble is not None:
                found = f"{data[cut.trouble : cut.trouble + 16]!r}"
                expected = "JSON values, or one array of them"
                why = bare("no message", end, len(data), "unreadable_file", expected, found, cut.trouble)
                yield Shown(why, data, base)
            else:
                yield from _between(data, base, end, len(data))


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines with their places."""
    at = 0
    for line in stream:
        yield at, line
        at += len(line)


def _between(data: bytes, base: int, start: int, end: int) -> Iterator[Shown]:
    if start < end:
        note = Note(start, end - start, "between messages", "blanks, commas, brackets, or a byte-order mark")
        yield Shown(Annotated(start, end - start, "between messages", lambda: [note]), data, base)


def _of_message(
    codec, source: Source, tables: dict, given: Callable[[dict], dict], message: dict, base: int | None = None
) -> Iterator[Shown]:
    """In: `given`, what makes of a message what its codec is given; where in the file it begins, if it does."""
    place = {"topic": message["topic"], "partition": message["partition"], "message": message["offset"]}
    data, name = message["value"] or b"", "/".join(map(str, place.values()))
    message = message | {"source": source.name, "unit_id": f"{source.name}/{name}"}
    for record in message_records.annotate(codec, given(message), source, tables):
        yield Shown(record, data, base or 0, place, base is None)


def _of_messages(project: Project, source: Source, file: Path) -> Iterator[Shown]:
    """Of messages that are kept in a container; offsets are those in each message."""
    codec, tables, plan = CODECS[source.codec], project.tables_of(source), planned(project, source, file)
    given, load_at = with_lookups(project, source, plan), load_time_of(source, plan["path"], file)
    for batch in TRANSPORTS[source.transport].units_of(project, plan):
        for message in batch.to_pylist():
            yield from _of_message(codec, source, tables, given, load_times.timed(message, load_at))
