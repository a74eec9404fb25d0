"""Every byte of a JSON message with its member and value, for `inlet inspect`; generic, for codecs of JSON messages.

A leaf is a member with its value, or the beginning or end of an object or array, each with the blanks and the comma
behind it. What is no JSON is one leaf, from where it begins. The text is read token by token, not by the decoder's
parser: tests hold the two equal.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from inlet.codecs.notes import UNREADABLE, Note, group, printable
from inlet.fields.json_exact import Number

BLANKS = re.compile(rb"[ \t\r\n]*")
TEXT = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z.+-])|NaN|-?Infinity")
WORDS = {b"true": True, b"false": False, b"null": None}
WORD = re.compile(rb"true|false|null")
MAX_DEPTH = 200
Path = tuple[str | int, ...]


class Member(NamedTuple):
    """A value that is no object or array. `path` is its names from the outermost object on; of an element its place."""

    path: Path
    note: Note
    value: Any  # text, Number, bool or None


class JsonNotes(NamedTuple):
    """Notes of all bytes; the values among them; (place, name) of each member whose object had one of its name."""

    notes: list[Note]
    members: list[Member]
    twice: list[tuple[int, str]]


Mark = Callable[[Path, Note, Any], Note]


class _Refused(Exception):
    """Where, and what JSON has there."""

    def __init__(self, at: int, expected: str):
        super().__init__(at, expected)
        self.at, self.expected = at, expected


def json_notes(data: bytes, mark: Mark | None = None, is_stream: bool = False) -> JsonNotes:
    """What is in a message. What is read before a place that is no JSON is kept. In: what to
    make of the note of each value, object and array; whether objects and arrays may follow each other."""
    reader = _Reader(data, mark or (lambda path, note, value: note))
    if not data:
        return JsonNotes([], [], [])
    at = BLANKS.match(data).end()  # type: ignore[union-attr]
    notes = [Note(0, at, "blanks")] if at else []
    end = at
    try:
        end = reader.value(at, at, "message", ())
        while is_stream and reader.done and data[end : end + 1] in (b"{", b"["):
            notes.append(reader.done)
            reader.done, at = None, end
            end = reader.value(at, at, "message", ())
        if end < len(data):
            raise _Refused(end, "the end of the message")
    except _Refused as no:
        done = [reader.done] if reader.done else reader.open_notes()
        start = done[-1].end if done else at
        notes += done
        kind, place, expected = "trailing_data" if reader.done else "invalid_json", no.at, no.expected
        if (bad := _bad_utf8(data)) is not None:
            kind, place, expected = "invalid_utf8", bad, "UTF-8"
        text = data[place : place + 16].decode("utf-8", "backslashreplace")
        found = f"0x{data[place]:02X}" if kind == "invalid_utf8" else f"{text!r}" if text else "the end"
        meaning = f"expected {expected}, found {found}"
        notes.append(Note(start, len(data) - start, UNREADABLE, meaning, fault=kind, fault_at=place))
        return JsonNotes(notes, reader.members, reader.twice)
    assert reader.done is not None
    return JsonNotes([*notes, reader.done], reader.members, reader.twice)


def notes_of(data: bytes) -> list[Note]:
    """What is shown of a message where its codec says nothing: its members if it looks like JSON (several values may
    stand one behind the other), else its text.
    """
    if data.lstrip(b" \t\r\n")[:1] in (b"{", b"["):
        return json_notes(data, is_stream=True).notes
    return [Note(0, len(data), "text", printable(data))] if data else []


def _bad_utf8(data: bytes) -> int | None:
    """The first byte that is no UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


class _Reader:
    def __init__(self, data: bytes, mark: Mark):
        self.data, self.mark, self.members = data, mark, list[Member]()
        self.twice: list[tuple[int, str]] = []
        self.stack: list[list[Note]] = []  # notes of the objects and arrays that are not closed
        self.done: Note | None = None  # the outermost value, when it is whole

    def open_notes(self) -> list[Note]:
        """What was read of an outermost value that is not whole."""
        return [note for notes in self.stack for note in notes]

    def _behind(self, at: int) -> int:
        """Behind blanks."""
        return BLANKS.match(self.data, at).end()  # type: ignore[union-attr]

    def _add(self, note: Note) -> None:
        if self.stack:
            self.stack[-1].append(note)
        else:
            self.done = note

    def value(self, start: int, at: int, name: str, path: Path) -> int:
        """The value that stands at a place; its note begins at `start`, with its name. Out: the place behind it."""
        first = self.data[at : at + 1]
        if first in (b"{", b"["):
            if len(self.stack) >= MAX_DEPTH:
                raise _Refused(at, f"at most {MAX_DEPTH} objects and arrays in one another")
            return self._container(start, at, name, path, first == b"{")
        value, end = self._scalar(at)
        end = self._behind(end)
        comma = self.data[end : end + 1] == b"," and bool(self.stack)
        end = self._behind(end + 1) if comma else end
        shown = "null" if value is None else json.dumps(value) if isinstance(value, bool) else value
        note = self.mark(path, Note(start, end - start, name, shown), value)
        self._add(note)
        self.members.append(Member(path, note, value))
        self.comma = comma
        return end

    def _scalar(self, at: int) -> tuple[Any, int]:
        for pattern in (TEXT, NUMBER, WORD):
            if match := pattern.match(self.data, at):
                break
        else:
            raise _Refused(at, "a JSON value")
        if match[0] in WORDS:
            return WORDS[match[0]], match.end()
        text = self._text(match)
        return text if match[0][:1] == b'"' else Number(text), match.end()

    def _text(self, match: re.Match) -> str:
        try:
            text = match[0].decode()
        except UnicodeDecodeError as error:
            raise _Refused(match.start() + error.start, "UTF-8") from None
        read = json.loads(text) if text[:1] == '"' else text
        if any("\ud800" <= char < "\ue000" for char in read):
            raise _Refused(match.start(), "a pair of surrogates")
        return read

    def _container(self, start: int, at: int, name: str, path: Path, is_object: bool) -> int:
        closing, kind = (b"}", "object") if is_object else (b"]", "array")
        end, self.comma = self._behind(at + 1), True
        self.stack.append([Note(start, end - start, name, kind)])
        count, names = 0, set[str]()
        while self.data[end : end + 1] != closing or count and self.comma:
            if not self.comma:
                raise _Refused(end, f"a comma, or the end of the {kind}")
            own, value_at = (f"[{count}]", end) if not is_object else self._name(end)
            if is_object and own in names:
                self.twice.append((end, own))
            names.add(own)
            end = self.value(end, value_at, own or '""', (*path, own if is_object else count))
            count += 1
        stop = self._behind(end + 1)
        notes = self.stack.pop()
        comma = self.data[stop : stop + 1] == b"," and bool(self.stack)
        stop = self._behind(stop + 1) if comma else stop
        whole = group(start, stop, name, [*notes, Note(end, stop - end, f"end of {name}")], kind)
        self._add(self.mark(path, whole, None))
        self.comma = comma
        return stop

    def _name(self, at: int) -> tuple[str, int]:
        """A member's name, and the place of its value."""
        match = TEXT.match(self.data, at)
        if not match:
            raise _Refused(at, "a member's name")
        colon = self._behind(match.end())
        if self.data[colon : colon + 1] != b":":
            raise _Refused(colon, "a colon")
        return self._text(match), self._behind(colon + 1)
