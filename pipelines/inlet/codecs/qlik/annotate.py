"""Every byte of a Qlik message with its member, value and meaning: what `inlet inspect` shows of one.

The text is read anew, token by token (codecs/json_notes.py). Meaning: members.py.
"""

from inlet import change
from inlet.codecs.json_notes import JsonNotes, Member, Path, json_notes
from inlet.codecs.notes import AFTER, BEFORE, Annotated, Note
from inlet.codecs.qlik import members, metadata
from inlet.fields.json_exact import Number
from inlet.source import Source
from inlet.table import Table

MASKS = {"changeMask": "columns changed", "columnMask": "columns supplied"}


class _Message:
    """What a message says of itself, wherever its members stand."""

    def __init__(self, found: list[Member], context: dict, source: Source, tables: dict[str, Table]):
        self.values = {member.path: member.value for member in found}
        self.prefix: Path = ("message",) if any(path[:1] == ("message",) for path in self.values) else ()
        self.is_metadata = bool(self.prefix) and self.values.get(("type",)) == "MD"
        word = self.header("operation")
        self.operation = members.OPERATIONS.get(word.upper()) if word and not self.is_metadata else None
        at = (*self.prefix, "lineage") if self.is_metadata else self.prefix
        named = [self._text((*at, name)) for name in ("schema", "table")]
        mapped = None if self.is_metadata else source.table_of(context["topic"])
        listed = metadata.named({"messageSchemaId": self._text(("messageSchemaId",))}, context.get("lookups", {}))
        by_list = listed and (source.table_of(listed.name) or listed.name)
        self.table = mapped or (".".join(filter(None, named)) if all(named) else by_list)
        self.contract = tables.get(self.table or "")
        by_contract = dict(enumerate(self.contract.column_names if self.contract else (), 1))
        self.listed = listed.ordinals if listed else by_contract  # ordinal -> column
        self.supplied = self._columns(self.header("columnMask"))

    def _text(self, path: Path) -> str | None:
        value = self.values.get(path)
        return value if isinstance(value, str) and value and not isinstance(value, Number) else None

    def header(self, name: str) -> str | None:
        return self._text((*self.prefix, "headers", name))

    def _columns(self, mask: str | None) -> list[str] | None:
        """Names of the columns in a mask, of those that are known."""
        if mask is None or not members.HEX.fullmatch(mask) or not self.contract:
            return None
        bits = int(mask, 16)
        return [name for ordinal, name in sorted(self.listed.items()) if bits >> ordinal - 1 & 1]

    def mark(self, path: Path, note: Note, value) -> Note:
        """A note of the message with what it means."""
        own = path[len(self.prefix) :] if path[: len(self.prefix)] == self.prefix else ()
        if len(own) == 2 and own[0] == "headers" and isinstance(value, str):
            return note._replace(meaning=self._header_meaning(f"{own[1]}", value, note.meaning))
        image = self._image(f"{own[0]}") if own else ""
        if image and len(own) == 1 and note.children:
            return note._replace(image=image)
        if image and len(own) == 2 and not note.children:
            name = f"{own[1]}"
            if self.supplied is not None and name not in self.supplied and value is None:
                return note._replace(meaning=f"{note.meaning}, not supplied: outside columnMask")
            return note._replace(column=name, value=value)
        return note

    def _image(self, member: str) -> str:
        if self.operation is None or member not in ("data", "beforeData"):
            return ""
        return BEFORE if member == "beforeData" or self.operation == "DELETE" else AFTER

    def _header_meaning(self, name: str, value: str, shown: str) -> str:
        if name in MASKS and (columns := self._columns(value)) is not None:
            return f"{shown}, {MASKS[name]}: {', '.join(columns) or 'none'}"
        if name == "timestamp" and value:
            at = members.utc_time(value)
            return f"{shown}, {at:%Y-%m-%d %H:%M:%S.%f} UTC" if at else f"{shown}, no time that can be read"
        return shown


def annotate(data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """One record: the message. In: its value; the message, as bronze keeps it."""
    found = json_notes(data)
    message = _Message(found.members, context, source, tables)
    path = (*message.prefix, "headers")
    counter, is_last = (message.values.get((*path, f"transaction{name}")) for name in ("EventCounter", "LastEvent"))
    seq = message.header("changeSequence")
    is_change = message.operation is not None
    return [
        Annotated(
            0,
            len(data),
            message.operation or ("metadata" if message.is_metadata else "message"),
            lambda: json_notes(data, message.mark).notes,
            message.operation,
            message.table,
            message.header("transactionId"),
            int(counter) if is_change and isinstance(counter, Number) and counter.isdigit() else None,
            is_last if isinstance(is_last, bool) else None,
            None,
            message.header("streamPosition"),
            seq if seq and len(seq) == change.LEN_SEQ and message.operation != "REFRESH" else None,
            _fault(context["value"], found),
        )
    ]


def _fault(data: bytes | None, found: JsonNotes) -> tuple[str, str] | None:
    """What no leaf of the text tells."""
    if data is None:
        return "unsupported_message", "a message without a value"
    if found.twice:
        at, name = found.twice[0]
        return "duplicate_member", f"{name} stands twice in its object, again at byte {at}"
    return None if data.lstrip(b" \t\r\n")[:1] == b"{" else ("invalid_json", "expected one JSON object")
