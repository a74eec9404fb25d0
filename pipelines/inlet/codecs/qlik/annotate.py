"""Every byte of a Qlik message with its member, value and meaning: what `inlet inspect` shows of one.

The bytes are read again, token by token (codecs/json_notes.py, codecs/avro_notes.py). Meaning: members.py.
"""

from functools import partial

from inlet import change
from inlet.codecs.json_notes import Member, Path
from inlet.codecs.notes import AFTER, BEFORE, Annotated, Note
from inlet.codecs.qlik import control_messages, large_objects, masks, members, shapes, tombstones
from inlet.codecs.qlik.form import Form
from inlet.codecs.qlik.members import Refused
from inlet.codecs.qlik.metadata import Listed
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table

MASKS = {"changeMask": "columns changed", "columnMask": "columns supplied"}


class _Message:
    """What a message says of itself, wherever its members stand."""

    def __init__(self, form: Form, found: list[Member], context: dict, source: Source, tables: dict[str, Table]):
        self.values = {member.path: member.value for member in found}
        self.prefix: Path = ("message",) if any(path[:1] == ("message",) for path in self.values) else ()
        self.is_metadata = bool(self.prefix) and self.values.get(("type",)) == "MD"
        self.options, self.own = source.options_as(form.options), dict[Path, Path]()  # path in the message -> in BODY
        whole, self.fault = _parsed(form, context, source)
        body = self._shape(whole, context, source, tables) if whole is not None else None
        word = self.header("operation")
        self.operation = members.OPERATIONS.get(word.upper()) if word and not self.is_metadata else None
        at = (*self.prefix, "lineage") if self.is_metadata else self.prefix
        named = [self._text((*at, name)) for name in ("schema", "table")]
        mapped = None if self.is_metadata else source.table_of(context["topic"])
        listed = _listed(form, whole, context) if whole is not None else None
        by_list = listed and (source.table_of(listed.name) or listed.name)
        self.table = mapped or (".".join(filter(None, named)) if all(named) else by_list)
        self.contract = tables.get(self.table or "")
        self.seq = self.header("changeSequence") if self.operation != "REFRESH" else None
        self.control = body and control_messages.of_message(body.members, context["topic"], source, tables)
        if body and self.control:
            self._of_control_table(self.control, body, context, source, tables)
        by_contract = dict(enumerate(self.contract.column_names if self.contract else (), 1))
        self.listed = listed.ordinals if listed else by_contract  # ordinal -> column
        ordinals = listed.ordinals if listed else form.ordinals(body.members) if body else None
        self.columns = {name: self._columns(name, body, ordinals) for name in MASKS}  # of masks, by header
        self.supplied = self.columns["columnMask"]

    def _shape(self, whole: dict, context: dict, source: Source, tables: dict[str, Table]) -> shapes.Body | None:
        """The body of a message that can be read; of one of another shape its members by the names of BODY, too."""
        try:
            contract_of = partial(control_messages.contract_of, context["topic"], source, tables)
            body = shapes.body_of(whole, self.options, contract_of)
            if body and body.is_legacy and (contract := contract_of(body.members)):
                body = body._replace(members=shapes.typed(body.members, contract, self.options.legacy_null, body.path))
        except (Wrong, Refused, RecursionError):
            return None
        for section, values in body.members.items() if body and body.place else ():
            for name, value in values.items() if isinstance(values, dict) else ():
                path = (*body.path, section, name)
                self.own[shapes.path_of(body, path)] = path
                self.values[path] = value
            if section in shapes.NAMES:
                self.values[*body.path, section] = values
        return body

    def _of_control_table(self, name: str, body: shapes.Body, context: dict, source: Source, tables: dict) -> None:
        is_deleted, self.operation, self.seq = self.operation == "DELETE", None, None
        try:
            told = control_messages.read(name, body.members, body.path, is_deleted, context, source, tables)
        except Refused:
            return
        if told["result"] == "change":
            self.operation, self.seq = told["operation"], told["change_seq"]
            self.table = f"{told['source_schema']}.{told['source_table']}"

    def _text(self, path: Path) -> str | None:
        value = self.values.get(path)
        return value if isinstance(value, str) and value and not isinstance(value, Number) else None

    def header(self, name: str) -> str | None:
        return self._text((*self.prefix, "headers", name))

    def _columns(self, name: str, body: shapes.Body | None, ordinals: dict[int, str] | None) -> list[str] | None:
        """Names of the columns in a mask, of those that are known. Bytes are read by the order that fits."""
        mask = self.values.get((*self.prefix, "headers", name))
        if not self.contract or mask is None:
            return None
        if isinstance(mask, bytes):
            contract, oper = self.contract.at(self.seq or ""), self.operation
            if body is None or oper is None:
                return None
            try:
                header = members.headers(body.members["headers"], ())
                found = masks.read(header, body.members, oper, contract, ordinals, self.options.mask_order, ())
            except Refused:
                return None
            names = found.names(found.changed if name == "changeMask" else found.supplied, contract)
            return None if names is None else [column for column in contract.column_names if column in names]
        if isinstance(mask, (bool, Number)) or not members.HEX.fullmatch(mask):
            return None
        bits = int(mask, 16)
        return [name for ordinal, name in sorted(self.listed.items()) if bits >> ordinal - 1 & 1]

    def mark(self, path: Path, note: Note, value) -> Note:
        """A note of the message with what it means."""
        if path in self.own:
            path = self.own[path]
            value = self.values[path]
        own = path[len(self.prefix) :] if path[: len(self.prefix)] == self.prefix else ()
        if len(own) == 2 and own[0] == "headers" and isinstance(value, (str, bytes)):
            return note._replace(meaning=self._header_meaning(f"{own[1]}", value, note.meaning))
        image = self._image(f"{own[0]}") if own else ""
        if image and len(own) == 1 and note.children:
            return note._replace(image=image)
        if image and len(own) == 2 and not note.children:
            name = f"{own[1]}"
            if self.supplied is not None and name not in self.supplied and value is None:
                return note._replace(meaning=f"{note.meaning}, not supplied: outside columnMask")
            if self._is_unchanged(name, value, image):
                return note._replace(meaning=f"{note.meaning}, not supplied: option large_null")
            return note._replace(column=name, value=value, image=image)
        return note

    def _is_unchanged(self, name: str, value, image: str) -> bool:
        """Is a null of a large object one that says nothing?"""
        is_update = self.operation == "UPDATE" and image == AFTER and value is None
        if not is_update or not self.contract or self.options.large_null != "unchanged":
            return False
        if name not in large_objects.names(self.contract):
            return False
        return self.values.get((*self.prefix, "beforeData", name), "") is not None

    def _image(self, member: str) -> str:
        if self.operation is None or self.control or member not in ("data", "beforeData"):
            return ""
        return BEFORE if member == "beforeData" or self.operation == "DELETE" else AFTER

    def _header_meaning(self, name: str, value: str | bytes, shown: str) -> str:
        if (columns := self.columns.get(name)) is not None:
            return f"{shown}, {MASKS[name]}: {', '.join(columns) or 'none'}"
        if name == "timestamp" and value and isinstance(value, str):
            at = members.utc_time(value)
            return f"{shown}, {at:%Y-%m-%d %H:%M:%S.%f} UTC" if at else f"{shown}, no time that can be read"
        return shown


def annotate(form: Form, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """One record: the message. In: the message, as bronze keeps it."""
    if context["value"] is None:
        return [_tombstone(context, source, tables, form.is_text)]
    found = form.notes(context, lambda path, note, value: note)
    message = _Message(form, found.members, context, source, tables)
    path = (*message.prefix, "headers")
    counter, is_last = (message.values.get((*path, f"transaction{name}")) for name in ("EventCounter", "LastEvent"))
    seq = message.seq
    is_change = message.operation is not None
    return [
        Annotated(
            0,
            len(context["value"]),
            message.operation or ("metadata" if message.is_metadata else message.control or "message"),
            lambda: form.notes(context, message.mark).notes,
            message.operation,
            message.table,
            message.header("transactionId"),
            int(counter) if is_change and isinstance(counter, Number) and counter.isdigit() else None,
            is_last if isinstance(is_last, bool) else None,
            None,
            message.header("streamPosition"),
            seq if seq and len(seq) == change.LEN_SEQ else None,
            found.fault or message.fault,
        )
    ]


def _parsed(form: Form, context: dict, source: Source) -> tuple[dict | None, tuple[str, str] | None]:
    """A message, and why it is refused as a whole where its members can be shown all the same."""
    try:
        return form.parse(context, source), None
    except Wrong as wrong:
        return None, (wrong.kind, f"byte {wrong.offset}: expected {wrong.expected}, found {wrong.found}")
    except (Refused, RecursionError):
        return None, None


def _listed(form: Form, whole: dict, context: dict) -> Listed | None:
    """The list that a message names, where it can be read."""
    try:
        return form.listed(whole, context)
    except (Wrong, Refused):  # kept by an earlier Inlet, which asked less
        return None


def _tombstone(context: dict, source: Source, tables: dict, is_text: bool) -> Annotated:
    """A message without a value: what its key names is shown as a note of no length."""
    try:
        told = tombstones.read(context, source, tables, {}, is_text)
    except Refused as no:
        return Annotated(0, 0, "tombstone", lambda: [], fault=(no.kind, f"expected {no.expected}, found {no.found}"))
    key = {n: v if isinstance(v, (str, bool)) else Number(v) for n, v in (told.get("before") or {}).items()}
    notes = [
        Note(0, 0, f"{name}, by the message key", f"{value}", image=BEFORE, column=name, value=value)
        for name, value in key.items()
    ]
    table = f"{told['source_schema']}.{told['source_table']}" if told["source_table"] else None
    operation = told.get("operation")
    return Annotated(0, 0, "tombstone", lambda: notes, operation, table, change_seq=told["change_seq"])
