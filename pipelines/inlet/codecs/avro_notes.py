"""Every byte of an Avro datum with its field and value, for `inlet inspect`; generic, for codecs of Avro messages.

A leaf is a value, after the branch of its union and, in a map, its key; or the branch before a record, an array or a
map, the number of items of a block, the end of an array or a map. What cannot be read is one leaf, from the field that
it is in to the end. Tests hold what is shown equal to what decoders read.
"""

import json
import struct
from collections.abc import Callable
from typing import Any

from inlet.codecs.json_notes import Mark, Member, Path
from inlet.codecs.notes import UNREADABLE, Note, group, of_wrong, shown
from inlet.fields import avro
from inlet.fields.wrong import Wrong


class _Refused(Exception):
    """A value that cannot be read; the notes before it whose group is not whole."""

    def __init__(self, at: int, found: str):
        super().__init__(at, found)
        self.at, self.found = at, found
        self.notes: list[Note] = []


class Datum:
    """The notes of a datum and the values in it. In: its schema; where it begins; the path and the name of the record
    that it is; what makes of a value what is told of it; what makes of each note what is shown."""

    def __init__(self, schema: avro.Type, data: bytes, start: int, path: Path, name: str, plain: Callable, mark: Mark):
        self.data, self.plain, self.mark = data, plain, mark
        self.members: list[Member] = []
        self.notes: list[Note] = []
        self.end = start
        self.wrong: Wrong | None = None
        try:
            note, self.end = self._value(schema, start, start, name, path)
            self.notes = [note]
        except _Refused as no:
            self.notes = no.notes
            self.end = no.notes[-1].end if no.notes else start
            self.wrong = Wrong("wrong_shape", no.at - self.end, f"a datum of the schema {schema}", no.found)

    def _value(self, type_: avro.Type, start: int, at: int, name: str, path: Path) -> tuple[Note, int]:
        """The note of a value, which begins with what is before the value, and where it ends. Raises: _Refused."""
        if type_.kind == "union":
            branch, after = self._read(avro.long_at, at)
            if not 0 <= branch < len(type_.members):
                raise _Refused(at, f"branch {branch} of a union of {len(type_.members)}")
            return self._value(type_.members[branch], start, after, name, path)
        if type_.kind in ("record", "array", "map"):
            return self._container(type_, start, at, name, path)
        value, end = self._read(type_.read, at)
        value = self.plain(value)
        text = "null" if value is None else json.dumps(value) if isinstance(value, bool) else shown(value)
        note = self.mark(path, Note(start, end - start, name, text), value)
        self.members.append(Member(path, note, value))
        return note, end

    def _container(self, type_: avro.Type, start: int, at: int, name: str, path: Path) -> tuple[Note, int]:
        notes = [Note(start, at - start, f"branch of {name}")] if at > start else []
        try:
            if type_.kind == "record":
                for field, inner in type_.fields.items():
                    note, at = self._value(inner, at, at, field or '""', (*path, field))
                    notes.append(note)
            else:
                at = self._blocks(type_, at, name, path, notes)
        except _Refused as no:
            no.notes = notes + no.notes if type_.kind == "record" else []
            raise
        return self.mark(path, group(start, at, name, notes, type_.name or type_.kind), None), at

    def _blocks(self, type_: avro.Type, at: int, name: str, path: Path, notes: list[Note]) -> int:
        """Add the blocks of an array or a map. Each item has a byte at least, so that a block has as many at most as
        there are bytes."""
        names = set[str]()
        while True:
            start, (count, at) = at, self._read(avro.long_at, at)
            size = None
            if count < 0:
                count, (size, at) = -count, self._read(avro.long_at, at)
            if count > len(self.data) - at:
                raise _Refused(start, f"a block of {count} items, {len(self.data) - at} bytes are left")
            notes.append(Note(start, at - start, f"items of {name}" if count else f"end of {name}", f"{count}"))
            if not count:
                return at
            first = at
            for _ in range(count):
                start, own = at, f"[{len(names)}]"
                if type_.kind == "map":
                    own, at = self._read(avro.string_at, at)
                if own in names:
                    raise _Refused(start, "a map with a key twice")
                names.add(own)
                note, at = self._value(type_.members[0], start, at, own or '""', (*path, own))
                notes.append(note)
            if size not in (None, at - first):
                raise _Refused(at, "a block of another size than it says")

    def _read(self, read: avro.Read, at: int) -> tuple[Any, int]:
        try:
            return read(self.data, at)
        except avro.Bad as bad:
            raise _Refused(at, bad.found) from None
        except (IndexError, struct.error):
            raise _Refused(at, "the end") from None

    def rest(self) -> list[Note]:
        """What of the bytes cannot be read, or is after the datum."""
        wrong = self.wrong
        if not wrong and self.end < len(self.data):
            wrong = Wrong("trailing_bytes", 0, "the end of the datum", f"{len(self.data) - self.end} bytes more")
        return [of_wrong(self.end, len(self.data), UNREADABLE, wrong)] if wrong else []
