"""Programs, by which the compiled walk (avro_walk) writes data records of Qlik in Avro as JSON text.

A program is made from the schema of a message. Values that the walk cannot write have a row NEVER; the exact path reads
them.
Size        a schema may refer to a type more than once, and what references expand to may grow with a power of its
            length. Data messages have `data` twice, so a program whose names are longer than LEN_MOST times its schema
            is left out
"""

import json

import numpy as np

from inlet.codecs import json_columns
from inlet.codecs.qlik import avro_walk as walk
from inlet.codecs.qlik.members import HEADERS, MASKS
from inlet.fields import avro

LEN_MOST = 2  # names and what separates them are shorter than `{"name":"","type":""}` with the name
BODY = {"data", "beforeData", "headers"}
ORDERS = {"auto": walk.AUTO, "little": walk.LITTLE, "big": walk.BIG}
MILLIS, MICROS = 1000, 1  # of a unit
NUMBERS = {  # KIND, FIRST
    ("boolean", ""): (walk.TRUTH, 0),
    ("int", ""): (walk.INTEGER, (1 << 31) - 1),
    ("long", ""): (walk.INTEGER, (1 << 63) - 1),
    ("float", ""): (walk.FLOAT, 4),
    ("double", ""): (walk.FLOAT, 8),
    ("string", ""): (walk.LETTERS, 0),
    ("int", "date"): (walk.DAY, 0),
    ("int", "time-millis"): (walk.CLOCK, MILLIS),
    ("long", "time-micros"): (walk.CLOCK, MICROS),
    ("long", "timestamp-millis"): (walk.TIME, MILLIS),
    ("long", "timestamp-micros"): (walk.TIME, MICROS),
    ("long", "local-timestamp-millis"): (walk.TIME, MILLIS),
    ("long", "local-timestamp-micros"): (walk.TIME, MICROS),
}


class Doubt(Exception):
    pass


class Program:
    """How a data record becomes text. `rows` and `words` as avro_walk has them, `room` as it asks for.

    In: the schema's text; what the text begins with, `end` gives the end; the option mask_order. Raises: Doubt,
    ValueError.
    """

    def __init__(self, schema: bytes, head: bytes, order: str):
        [of_schema] = avro.parse(schema)
        headers, data = (of_schema.fields.get(name) for name in ("headers", "data"))
        if set(of_schema.fields) != BODY or headers is None or headers.kind != "record" or not data or not data.record:
            raise Doubt
        self.columns = list(data.record.fields)
        before = of_schema.fields["beforeData"].record
        if not set(headers.fields) <= set(HEADERS) or before and list(before.fields) != self.columns:
            raise Doubt
        self.rows: list[list[int]] = []
        self.words: list[bytes] = []
        self.next, self.size = head, 0
        self.room, self.most = 0, LEN_MOST * len(schema)
        for n, (name, type_) in enumerate(of_schema.fields.items()):
            self._name(name, n)
            if name != "headers":
                self._value(type_)
                continue
            self._headers(headers)
            self._row(walk.MASKS, len(self.columns), ORDERS[order])
            self.next = b"}"

    def end(self, tail: bytes) -> None:
        self.next += tail
        self._row(walk.WRITE)

    def _headers(self, headers: avro.Type) -> None:
        """The headers; masks come after the others."""
        self.next += b"{"
        num = 0
        for name, type_ in headers.fields.items():
            if name not in MASKS:
                self._name(name, num)
                self._value(type_)
                num += 1
                continue
            value, is_nullable = _of_union(type_)
            if value.kind != "bytes" or value.logical:
                raise Doubt
            self._row(walk.MASK, MASKS.index(name), skip=int(is_nullable))

    def _value(self, type_: avro.Type) -> None:
        value, is_nullable = _of_union(type_)
        if value.kind != "record":
            self._row(*self._reading(value), skip=int(is_nullable))
            return
        begin = len(self.rows)
        if is_nullable:
            self._row(walk.WRITE)
        self.next += b"{"
        for n, (name, one) in enumerate(value.fields.items()):
            self._name(name, n)
            self._value(one)
        self.next += b"}"
        if is_nullable:
            self._row(walk.WRITE)
            self.rows[begin][walk.SKIP] = len(self.rows) - begin

    def _reading(self, type_: avro.Type) -> tuple[int, ...]:
        """KIND and numbers of the row of a type."""
        if type_.kind == "enum":
            first, symbols = len(self.words), [json.dumps(one, ensure_ascii=False).encode() for one in type_.symbols]
            self.words += symbols
            self._grow(sum(map(len, symbols)))
            self.room += max(map(len, symbols), default=0)
            return walk.SYMBOL, first, len(symbols)
        if (type_.kind, type_.logical) == ("bytes", "decimal") and type_.scale <= walk.MOST_SCALE:
            # the exact path refuses longer ones
            return walk.DECIMAL, min(type_.precision, walk.MOST_DIGITS), type_.scale, type_.precision // 2 + 9
        # bytes, too: the walk of JSON would take their hex digits for a number or a text, which they are not
        return NUMBERS.get((type_.kind, type_.logical), (walk.NEVER,))

    def _row(self, kind: int, *numbers: int, skip: int = 0) -> None:
        self.rows.append([len(self.words), skip, kind, *numbers, *[0] * (walk.NUM_OF_ROW - walk.FIRST - len(numbers))])
        self.words.append(self.next)
        self.room += len(self.next) + walk.LEN_VALUE
        self.next = b""

    def _name(self, name: str, place: int) -> None:
        text = (b"," if place else b"") + json.dumps(name, ensure_ascii=False).encode() + b":"
        self._grow(len(text))
        self.next += text

    def _grow(self, size: int) -> None:
        self.size += size
        if self.size > self.most:
            raise Doubt


def _of_union(type_: avro.Type) -> tuple[avro.Type, bool]:
    """The type of a value, and whether it may be null. Raises: Doubt for other unions."""
    if type_.kind != "union":
        return type_, False
    if len(type_.members) != 2 or type_.members[0].kind != "null":
        raise Doubt
    return type_.members[1], True


def floats_of(letters: np.ndarray, floats: np.ndarray) -> list[float]:
    """The values of floats. In: place and width of each."""
    values = np.empty(len(floats))
    for width, type_ in ((4, "<f4"), (8, "<f8")):
        is_of = floats[:, 1] == width
        with np.errstate(invalid="ignore"):  # of what is no number
            values[is_of] = letters[floats[is_of, :1] + np.arange(width)].view(type_)[:, 0]
    return values.tolist()


def joined(programs: list[Program]) -> tuple:
    """Programs as avro_walk has them: rows, first row of each, room, words."""
    words, rows = list(walk.WORDS), [np.empty((0, walk.NUM_OF_ROW), np.int64)]
    for program in programs:
        own = np.array(program.rows, np.int64)
        own[:, walk.WORD] += len(words)
        own[own[:, walk.KIND] == walk.SYMBOL, walk.FIRST] += len(words)
        rows.append(own)
        words += program.words
    rooms = np.array([*(program.room for program in programs), 0], np.int64)  # at -1, too
    return (
        np.concatenate(rows),
        np.cumsum([len(own) for own in rows]),
        rooms,
        json_columns.joined([*map(bytes.decode, words)]),
    )
