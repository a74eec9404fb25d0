"""Every byte of a trail with its field and meaning: what `inlet inspect` shows of one.

Nothing here comes from the compiled walk that decodes: frames, events and columns are read anew, in plain Python.
Source: docs/formats/goldengate_trail.md.
"""

from collections.abc import Iterator
from functools import partial

from inlet.codecs.goldengate.notes import columns
from inlet.codecs.goldengate.notes.events import LACKS_BEGINNING, Sequence
from inlet.codecs.goldengate.notes.file_header import ddl_notes, file_header_notes
from inlet.codecs.goldengate.notes.frames import NAMES, ORDERS, Frame, Order, Token, frames, header_end, next_record
from inlet.codecs.goldengate.notes.full_image import full_notes
from inlet.codecs.goldengate.notes.groups import FILE_HEADER, Event
from inlet.codecs.goldengate.notes.header import TRUNCATE, Fault, Header, head_note, header_notes, token_notes
from inlet.codecs.goldengate.options import Options
from inlet.codecs.goldengate.trail import io_types
from inlet.codecs.notes import AFTER, BEFORE, Annotated, Note, clipped, group, leaves, printable, unreadable
from inlet.source import Source

ANY_COLUMN = 1 << 16
LEN_TRAILER = 4
DDL = 160


def annotate(data: bytes, context: dict, source: Source, tables: dict) -> list[Annotated]:
    """The records of a block, with the notes of all its bytes."""
    sequence = Sequence(data, context, source, tables)
    options = source.options_as(Options)
    found: list[Annotated] = []
    for event in sequence.events(list(frames(data, context))):
        images = Images(data, event, context["order"], options)
        found += [_annotated(data, event, images, part, context) for part in range(len(event.frames))]
    return found


def annotate_header(data: bytes) -> list[Annotated]:
    """The header record of a file, of whose first bytes these are."""
    for order in ORDERS:
        end = header_end(data, order)
        if end is not None:
            return [Annotated(0, end, "File Header", partial(file_header_notes, data, end, order))]
    return []


def find_record(data: bytes, offset: int, context: dict, is_final: bool) -> tuple[int, dict] | None:
    """The first place in these bytes at which a record surely begins, and the context there, without what the records
    before it said. In: where in the file they begin; the context of its first byte; is_final, that it ends with them.
    """
    at = next_record(data, 0, context["order"], is_final) if context["order"] else None
    return None if at is None else (at, context | {"offset": offset + at, LACKS_BEGINNING: True})


class Images:
    """The lists of columns in an event's records. An area that goes on over several records is read as one; each record
    shows its part."""

    def __init__(self, data: bytes, event: Event, order: Order, options: Options):
        self.data, self.event, self.order, self.options = data, event, order, options
        self.areas: dict[bool, list[Note]] = {}  # what was read, by whether it is that of a before-image in front

    def of(self, frame: Frame) -> list[Note]:
        """What the payload of D of a frame holds."""
        token = frame.token("D")
        assert token is not None
        for is_prior in (True, False):
            parts = self._parts(is_prior)
            if token in parts:
                start = sum(part.end - part.start for part in parts if part.start < token.start)
                end, shift = start + token.end - token.start, token.start - start
                notes = self._area(is_prior) + ([] if is_prior else self._missing_key())
                cut = (clipped(note, start, end, shift) for note in notes)
                return [note for note in cut if note is not None]
        return [Note(token.start, token.end - token.start, "LOB chunk", "its layout is not public")]

    @property
    def fault(self) -> Fault | None:
        """Why a change of a row without a column area cannot be read."""
        header, table = self.event.header, self.event.contract
        is_row = self.event.what == io_types.CHANGE and header and header.io_type not in (TRUNCATE, DDL)
        for is_prior in (True, False):
            if is_row and table and self._full(is_prior) and not self._parts(is_prior):
                return "bad_length", "no bytes of a full image"
        if not is_row or table is None or not table.key:
            return None
        if self._parts(True) or self._parts(False):
            return self._of_keys(table.key)
        return "missing_key", f"no columns, and so no {', '.join(table.key)} of the key"

    def _of_keys(self, key: list[str]) -> Fault | None:
        """Why two records are not one update: their keys differ. As the decoder does, by the bytes of values: two
        spellings of a number are two values."""
        header = self.event.header
        if not self.event.before or header is None or header.io_type not in io_types.UPDATES:
            return None
        if any(leaf.fault for is_prior in (True, False) for leaf in leaves(self._area(is_prior))):
            return None
        before, after = self._values(True), self._values(False)
        differ = [name for name in key if name in before and name in after and before[name] != after[name]]
        return ("part_missing", f"another {', '.join(differ)} in the image before") if differ else None

    def _values(self, is_prior: bool) -> dict[str | None, bytes]:
        """The bytes of each column's value."""
        whole = self._whole_area(is_prior)
        return {leaf.column: whole[leaf.offset : leaf.end] for leaf in leaves(self._area(is_prior))}

    def _parts(self, is_prior: bool) -> list[Token]:
        """The column areas that are read as one."""
        rows = self.event.before if is_prior else self.event.base
        return [part for frame, _ in rows if (part := frame.token("D"))]

    def _area(self, is_prior: bool) -> list[Note]:
        if is_prior not in self.areas:
            self.areas[is_prior] = self._whole(self._whole_area(is_prior), is_prior)
        return self.areas[is_prior]

    def _whole_area(self, is_prior: bool) -> bytes:
        return b"".join(self.data[part.start : part.end] for part in self._parts(is_prior))

    def _missing_key(self) -> list[Note]:
        """What is told behind the column area where neither image has a column of the key."""
        table, own = self.event.contract, self._area(False)
        found = list(leaves([*self._area(True), *own] if self.event.before else own))
        columns_ = {leaf.column for leaf in found}
        lacks = (
            [name for name in table.key if name not in columns_] if table and self.event.what == io_types.CHANGE else []
        )
        if not lacks or any(leaf.fault for leaf in found):
            return []
        end = own[-1].end
        return [unreadable(end, end, "missing_key", "a value of each column of the key", f"no {', '.join(lacks)}")]

    def _whole(self, area: bytes, is_prior: bool) -> list[Note]:
        """Notes of a column area, at places in it."""
        header, table = self.event.header, self.event.contract
        form = io_types.IO_TYPES.get(header.io_type if header else 0, ("", 0))[3:4]
        if is_prior or form == (io_types.BEFORE,):
            return [self._image(area, is_prior, BEFORE)]
        if form == (io_types.AFTER,):
            return [self._image(area, is_prior, AFTER)]
        if not form or form == (io_types.NO_IMAGE,):
            return [Note(0, len(area), "data", printable(area))]
        num_columns = len(table.columns) if table else ANY_COLUMN
        places = columns.split(area, self.order, form == (io_types.KEY_AND_AFTER,), num_columns)
        if len(places) != 1:
            kind, found = ("ambiguous_layout", "two readings") if places else ("bad_length", "no such length")
            expected = "one length of 2 or 4 bytes with which both images end exactly"
            return [unreadable(0, len(area), kind, expected, found, "column area")]
        start, end = places[0]
        prefix = Note(0, start, "length of the before-image", f"{end - start}")
        return [prefix, self._list(area, start, end, BEFORE), self._list(area, end, len(area), AFTER)]

    def _full(self, is_prior: bool) -> Header | None:
        """The header of a full image; None where there is none, or a list of columns."""
        rows = self.event.before if is_prior else self.event.base
        header = rows[0][1] if rows else None
        return header if header and header.is_full and header.io_type in io_types.FULL else None

    def _image(self, area: bytes, is_prior: bool, image: str) -> Note:
        header, table = self._full(is_prior), self.event.contract
        if header is None:
            return self._list(area, 0, len(area), image)
        known = table if self.event.what == io_types.CHANGE else None
        return full_notes(area, 0, len(area), header.syskey_len, self.order, known, self.options, image)

    def _list(self, area: bytes, start: int, end: int, image: str) -> Note:
        return columns.list_notes(area, start, end, self.order, self.event.contract, self.options, image)


def _annotated(data: bytes, event: Event, images: Images, part: int, context: dict) -> Annotated:
    """The record of an event with that number."""
    file_order, order = context["file_order"], context["order"]
    frame, header = event.frames[part]

    def read() -> Iterator[Note]:
        if event.what == FILE_HEADER:
            yield from file_header_notes(data, frame.end, file_order)
        elif not frame.kind:
            found = data[frame.at : frame.at + 8].hex(" ")
            yield unreadable(
                frame.at, frame.end, "bad_frame", "a record: G, and its length to a Z that repeats it", found
            )
        else:
            yield from _record_notes(data, event, images, frame, order)

    transaction = event.transaction
    of_change = io_types.IO_TYPES.get(event.header.io_type, ())[2:3] if event.header else ()
    operation = io_types.OPERATIONS[of_change[0]] if of_change and header else None
    if event.what == io_types.CHANGE and header and header.io_type == DDL:
        operation = "TRUNCATE"
    return Annotated(
        frame.at,
        frame.end - frame.at,
        _title(event, frame, header),
        read,
        operation,
        event.table,
        transaction.id if transaction else None,
        event.counter,
        event.is_last,
        transaction.csn if transaction else None,
        f"{context['seqno']}/{context['offset'] + frame.at}",
        event.change_seq,
        event.fault or images.fault,
        part,
        event.fault_at,
    )


def _title(event: Event, frame: Frame, header: Header | None) -> str:
    if event.what == FILE_HEADER:
        return "File Header"
    if header is None:
        return "no record" if not frame.kind else "record"
    name = io_types.name_of(header.io_type)
    return f"{name}, before-image" if any(frame is row for row, _ in event.before) else name


def _record_notes(data: bytes, event: Event, images: Images, frame: Frame, order: Order) -> Iterator[Note]:
    """The tokens of a record, one behind the other."""
    yield head_note(data, frame.at, "G", NAMES["G"], order)
    at = frame.at + 4
    for token in frame.tokens:
        head = head_note(data, token.at, token.id, NAMES[token.id], order)
        body: list[Note]
        if token.id == "H":
            body = header_notes(data, token, order, event.table)
        elif token.id == "T":
            body = list(token_notes(data, token, order))
        elif token.id == "U":
            body = [Note(token.start, token.end - token.start, "user tokens", printable(data[token.start : token.end]))]
        elif event.what == io_types.METADATA:
            body = [Note(token.start, token.end - token.start, "definition", "its layout is not public")]
        elif event.header and event.header.io_type == DDL:
            body = ddl_notes(data, token)
        else:
            body = images.of(frame)
        yield group(token.at, token.end, NAMES[token.id], [head, *body])
        at = token.end
    end = frame.end - LEN_TRAILER
    if at < end:
        kind, place = frame.fault or ("bad_length", at)
        found = data[place : min(place + 8, end)].hex(" ")
        yield unreadable(at, end, kind, "tokens H, D, U and T, each once, up to the trailer", found)
    yield head_note(data, end, "Z", NAMES["Z"], order)
