"""`inlet inspect FILE`: every byte of a file with its field and meaning. No lakehouse, and maybe no project."""

import fnmatch
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from inlet.bronze import message_text
from inlet.bronze.files import LEN_READ, is_compressed
from inlet.bronze.framing import LEN_HEAD, attempt, cut_file
from inlet.bronze.transports import TRANSPORTS
from inlet.codecs import CODECS, json_notes, transports_of
from inlet.codecs.notes import UNREADABLE, Annotated, Note, bare
from inlet.commands.decode import opened, planned, source_of
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

    def has(self, shown: "Shown") -> bool:
        record = shown.record
        is_of_table = self.table is None or record.table is not None and fnmatch.fnmatchcase(record.table, self.table)
        return (
            shown.offset + record.length > self.at
            and is_of_table
            and self.transaction in (None, record.transaction_id)
            and self.csn in (None, record.csn)
        )


@dataclass(frozen=True)
class Shown:
    """A record with its bytes. `base` is where in the file the bytes begin that the offsets of its notes count; of a
    message that is no part of the file's bytes as they are it is 0, and `place` says which message it is.
    """

    record: Annotated
    data: bytes = field(repr=False)
    base: int
    place: dict[str, Any] = field(default_factory=dict)

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

    def as_json(self) -> dict:
        """All of it: a member that says nothing is left out."""
        record = self.record
        fault = {"kind": record.fault[0], "why": record.fault[1]} if record.fault else None
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
    is_explained = hasattr(CODECS[source.codec], "annotate") or source.brings_messages
    if not is_explained or source.transport in ROW_TRANSPORTS or source.broker:
        what = f"{source.codec} over {source.transport}"
        raise ConfigError(
            f"{source.name} reads {what}, whose bytes it does not explain", "`inlet decode` shows its changes"
        )
    if not source.brings_messages:
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


def count(records: Iterator[Shown]) -> list[dict]:
    """How many of each operation there are of each table; a change that comes in several records is one."""
    number, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for shown in records:
        record = shown.record
        key = record.table or "", record.operation or record.title
        number[key] += record.part == 0
        sizes[key] += record.length
    return [
        {"table": t or None, "operation": o, "number": number[t, o], "bytes": sizes[t, o]} for t, o in sorted(sizes)
    ]


def nothing(records: Iterator[Shown], selection: Selection) -> str:
    """That no record was found: what was looked for, and what is there. In: all records."""
    place, own = selection._asdict(), Selection()._asdict()
    asked = {"table": "table", "transaction": "transaction", "csn": "commit", "at": "byte"}
    sought = [f"{word} {place[name]}" for name, word in asked.items() if place[name] != own[name]]
    there: dict[str, dict[str, None]] = {"tables": {}, "transactions": {}, "commits": {}}
    num = 0
    for shown in records:
        record, num = shown.record, num + 1
        for values, value in zip(there.values(), (record.table, record.transaction_id, record.csn)):
            if value and len(values) <= NUM_NAMED:
                values[value] = None
    named = (
        f"{what} {', '.join([*values][:NUM_NAMED])}{', ...' * (len(values) > NUM_NAMED)}"
        for what, values in there.items()
        if values
    )
    of = f" of {' and '.join(sought)}" if sought else ""
    return f"no record{of}; the file has {counted(num, 'record')}: {'; '.join(named)}".removesuffix(": ")


def _of_records(project: Project, source: Source, file: Path, name: str | None, at: int) -> Iterator[Shown]:
    """Of a file whose codec finds its records."""
    codec, tables = CODECS[source.codec], project.tables_of(source)
    with opened(project, file) as (own_name, stream):
        start, context = 0, None
        if at > FAR and hasattr(codec, "find_record") and not is_compressed(file.name):
            start, context = _far(codec, source, tables, name or own_name, stream, at)
        stream.seek(start)
        for block, _ in cut_file(source, tables, name or own_name, stream, start, context, True):
            if block.file_offset + len(block.data) <= at:
                continue
            for record in _annotated(codec, block.data, block.context, source, tables):
                yield Shown(record, block.data, block.file_offset)


def _annotated(codec, data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    if problem := context.get("problem"):
        return [bare("no record", 0, len(data), problem["kind"], problem["expected"], problem["found"])]
    return codec.annotate(data, context, source, tables)


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
    topic = str(file.resolve()).removeprefix(f"{project.root}/")
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
                    yield from _message(codec, source, tables, data[start:stop], base + start, topic, number)
                number, end = number + 1, stop
            if cut.trouble is not None:
                found = f"{data[cut.trouble : cut.trouble + 16]!r} at byte {base + cut.trouble}"
                why = bare("no message", end, len(data), "unreadable_file", "JSON values, or one array of them", found)
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


def _message(codec, source: Source, tables: dict, data: bytes, base: int, topic: str, number: int) -> Iterator[Shown]:
    place = {"topic": topic, "partition": 0, "message": number}
    message = {"topic": topic, "partition": 0, "offset": number, "timestamp": None, "key": None, "headers": None}
    for record in _annotated_message(codec, data, message | {"value": data, "source": source.name}, source, tables):
        yield Shown(record, data, base, place)


def _annotated_message(codec, data: bytes, message: dict, source: Source, tables: dict) -> list[Annotated]:
    annotate = codec.annotate if hasattr(codec, "annotate") else json_notes.annotate
    return annotate(data, message, source, tables)


def _of_messages(project: Project, source: Source, file: Path) -> Iterator[Shown]:
    """Of messages that are kept in a container; offsets are those in each message."""
    codec, tables = CODECS[source.codec], project.tables_of(source)
    for batch in TRANSPORTS[source.transport].units_of(project, planned(project, source, file)):
        for message in batch.to_pylist():
            data = message["value"] or b""
            place = {"topic": message["topic"], "partition": message["partition"], "message": message["offset"]}
            for record in _annotated_message(codec, data, message, source, tables):
                yield Shown(record, data, 0, place)
