"""What the compiled walk of Qlik's Avro writes as text is what the exact path reads, whatever the schema and bytes."""

import json
import random
import struct

import pytest

from inlet.codecs import CODECS
from inlet.codecs.qlik import avro_fast, avro_form
from inlet.codecs.qlik.members import MASKS
from inlet.fields import avro, json_exact
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table
from tests.conftest import ALL_ROUNDS
from tests.encode import qlik_avro
from tests.encode.qlik_avro import How, long, sized, string
from tests.encode.qlik_change_table import Column
from tests.fuzz import qlik_avro as fuzz
from tests.test_qlik_avro import message
from tests.test_qlik_json import typed

NUM_BATCHES = 400 if ALL_ROUNDS else 60
DAY = 86_400_000_000
WORDS = ["", "a", 'say "no"\\', "\t\n\x00\x1f\x7f", " ｱ山 ", "é" * 70, "\x01" * 300]
SYMBOLS = ["INSERT", "é", 'a"b']


def integer(bits: int):
    """Numbers of all lengths, and the edges."""

    def write(rng: random.Random) -> bytes:
        edge = 1 << rng.choice([0, 6, 7, 13, 31, 59, 60, bits - 1])
        return long(
            max(-(1 << bits - 1), min((1 << bits - 1) - 1, rng.choice([1, -1]) * edge + rng.choice([-1, 0, 1])))
        )

    return write


def of_days(unit: int):
    """Times around the ends of the calendar and within. In: microseconds of a unit."""

    def write(rng: random.Random) -> bytes:
        day = rng.choice([-719163, -719162, 2932896, 2932897, 0, -1, 11016, rng.randrange(-719162, 2932897)])
        within = 0 if unit == DAY else rng.choice([0, 1, DAY // unit - 1, rng.randrange(DAY // unit), 123_000])
        return long(day * (DAY // unit) + within)

    return write


def of_clock(unit: int):
    return lambda rng: long(rng.choice([-1, 0, 1, 1000, DAY // unit - 1, DAY // unit, rng.randrange(DAY // unit)]))


def unscaled(rng: random.Random) -> bytes:
    number = rng.choice(
        [0, 1, -1, 10**12 - 1, 1 - 10**12, 10**12, rng.randrange(-(10**18), 10**18), rng.randrange(9999)]
    )
    bits = (~number if number < 0 else number).bit_length()
    return sized(
        number.to_bytes(bits // 8 + 1 + rng.choice([0, 0, 1, 8, 20]), "big", signed=True) * (rng.random() < 0.98)
    )


def of_float(code: str):
    def write(rng: random.Random) -> bytes:
        some = [0.0, -0.0, 0.1, 1 / 3, 1e22, 5e-324, 3.4e38, 123456.5, -7.25]
        some = [float("nan"), float("-inf")] if rng.random() < 0.01 else some
        return struct.pack(code, rng.choice(some)) if rng.random() < 0.7 else rng.randbytes(struct.calcsize(code))

    return write


def decimal(precision: int, scale: int, **more) -> dict:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale} | more


def logical(type_: str, name: str) -> dict:
    return {"type": type_, "logicalType": name}


TYPES = [  # a type, and what writes values of it
    ("boolean", lambda rng: bytes([rng.randrange(2)])),
    ("int", integer(32)),
    ("long", integer(64)),
    ("float", of_float("<f")),
    ("double", of_float("<d")),
    ("string", lambda rng: sized(b"\xff\xe3") if rng.random() < 0.02 else string(rng.choice(WORDS))),
    ("bytes", lambda rng: sized(rng.randbytes(3))),
    ({"type": "enum", "name": "E", "symbols": SYMBOLS}, lambda rng: long(rng.choice([0, 1, 2, 2, 3, -1]))),
    *((decimal(*digits), unscaled) for digits in [(12, 0), (12, 2), (12, 12), (18, 17), (18, 18), (38, 3), (1, 1)]),
    (decimal(9, 2, type={"type": "fixed", "name": "F", "size": 4}), lambda rng: bytes([0, *rng.randbytes(3)])),
    (logical("int", "date"), of_days(DAY)),
    (logical("long", "date"), integer(64)),  # no logical type of the specification
    (logical("int", "time-millis"), of_clock(1000)),
    (logical("long", "time-micros"), of_clock(1)),
    *((logical("long", f"{kind}timestamp-millis"), of_days(1000)) for kind in ("", "local-")),
    *((logical("long", f"{kind}timestamp-micros"), of_days(1)) for kind in ("", "local-")),
    (logical("string", "uuid"), lambda rng: string("0a1b2c3d-0000-1111-2222-333344445555")),
]
NEVER = [TYPES[n][0] for n in (6, 15, -1)]  # bytes, fixed, uuid
NEVER.append(decimal(18, 18))  # too many digits for the walk of JSON


def schema_of(type_) -> dict:
    """The schema of data messages of one column, of this type."""
    data = {"type": "record", "name": "D", "fields": [{"name": "C", "type": type_}]}
    headers = {"type": "record", "name": "H", "fields": [{"name": "operation", "type": "string"}]}
    parts = [("data", data), ("beforeData", ["null", "D"]), ("headers", headers)]
    return {"type": "record", "name": "T", "fields": [{"name": name, "type": type_} for name, type_ in parts]}


def nullable(type_, write):
    return ["null", type_], lambda rng: b"\0" if rng.random() < 0.2 else b"\2" + write(rng)


def mostly_sound(type_, write):
    """As `write`, of values that can be read, but for a few."""
    [schema] = avro.parse(json.dumps(schema_of(type_)).encode())

    def sound(rng: random.Random) -> bytes:
        for _ in range(30):
            value = write(rng)
            try:
                if rng.random() < 0.003 or avro.read(schema.fields["data"], value, 0)[1] == len(value):
                    break
            except Wrong:
                continue
        return value

    return sound


def random_type(rng: random.Random, num: int, depth: int = 0):
    """A type and what writes its values; `num` makes names differ."""
    if depth < 3 and rng.random() < 0.05:
        inner = [random_type(rng, num * 10 + k, depth + 1) for k in range(rng.randint(1, 3))]
        fields = [{"name": f"x{k}", "type": type_} for k, (type_, _) in enumerate(inner)]
        record = {"type": "record", "name": f"R{num}", "fields": fields}, lambda rng: b"".join(w(rng) for _, w in inner)
        return nullable(*record) if rng.random() < 0.5 else record
    type_, write = rng.choice(TYPES)
    while type_ in NEVER and rng.random() < 0.95:
        type_, write = rng.choice(TYPES)
    if isinstance(type_, dict):
        named = {"name": f"N{num}"}
        type_ = type_ | (named if "name" in type_ else {})
        type_ = type_ | ({"type": type_["type"] | named} if isinstance(type_["type"], dict) else {})
    write = mostly_sound(type_, write)
    return nullable(type_, write) if rng.random() < 0.8 else (type_, write)


def random_schema(rng: random.Random, names: list[str]):
    """A schema of data messages of these columns, and what writes a datum."""
    columns = [random_type(rng, n + 1) for n in range(len(names))]
    masks = [b"", b"\1", b"\1", b"\0\1", b"\1\0", b"\1\1"]
    mask = nullable("bytes", lambda rng: sized(rng.choice([*masks, rng.randbytes(rng.randrange(4))])))
    headers = {"operation": ({"type": "enum", "name": "O", "symbols": SYMBOLS}, lambda rng: long(rng.randrange(3)))}
    headers |= dict.fromkeys(["timestamp", "streamPosition"], ("string", lambda rng: string(rng.choice(WORDS))))
    headers |= dict.fromkeys(MASKS, mask)
    headers |= {"transactionEventCounter": nullable("long", mostly_sound("long", integer(64)))}
    order = rng.sample(list(headers), rng.randint(1, len(headers)))
    data = {
        "type": "record",
        "name": "Data",
        "fields": [{"name": name, "type": type_} for name, (type_, _) in zip(names, columns)],
    }
    of_headers = {"type": "record", "name": "H", "fields": [{"name": n, "type": headers[n][0]} for n in order]}

    def write_data(rng: random.Random) -> bytes:
        return b"".join(write(rng) for _, write in columns)

    parts = [
        ("data", *((data, write_data) if rng.random() < 0.5 else nullable(data, write_data))),
        ("beforeData", *nullable("Data", write_data)),
        ("headers", of_headers, lambda rng: b"".join(headers[n][1](rng) for n in order)),
    ]
    fields = [{"name": name, "type": type_} for name, type_, _ in parts]
    schema = json.dumps({"type": "record", "name": "T", "fields": fields}, ensure_ascii=rng.random() < 0.5)
    return schema, lambda rng: b"".join(write(rng) for _, _, write in parts)


def damaged(rng: random.Random, data: bytes) -> bytes:
    at, size = rng.randrange(len(data) + 1), rng.choice([0, 1, 1, 1, 1, 1, 2, 9])
    some = rng.choice([b"", b"\0", b"\2", b"\xff" * 9 + b"\1", b"\xff" * 10, b"\x80\0", *[rng.randbytes(1)] * 12])
    return data[:at] + some + data[at + size :]


def meant(text: bytes | None) -> dict | None:
    """The body that a text holds; None for none, and for a text that the walk of JSON refuses: of bytes that are no
    UTF-8, of a float that is no number."""
    try:
        return text and json_exact.parse(text)["message"]
    except Wrong:
        return None


def readings(masks: dict[str, bytes | None], num_columns: int, order: str) -> list[dict[str, int]]:
    """The numbers that the masks of a message may mean."""
    found = []
    for one in ("little", "big") if order == "auto" else (order,):
        numbers = {name: int.from_bytes(mask, one) for name, mask in masks.items() if mask}
        if numbers not in found and all(n.bit_length() <= num_columns for n in numbers.values()):
            found.append(numbers)
    return found


def assert_says(body: dict, exact: dict, num_columns: int, order: str) -> None:
    """Is a text's body what the exact path reads, masks in the one way that they can be read?"""
    own, other = ({name: body["headers"].get(name) for name in MASKS} for body in (body, exact))
    assert [{name: int(mask, 16) for name, mask in own.items() if mask}] == readings(other, num_columns, order)
    for one in (body, exact):
        one["headers"] = {name: value for name, value in one["headers"].items() if name not in MASKS}
    assert typed(body) == typed(exact)


@pytest.mark.parametrize("seed", range(4))
def test_the_text_is_what_the_exact_path_reads_of_any_schema_and_bytes(seed):
    rng, num_of = random.Random(seed), dict.fromkeys(["sound", "damaged", "left out"], 0)
    for _ in range(NUM_BATCHES // 4):
        order, values = rng.choice(["auto", "auto", "little", "big"]), []
        names = [f"C{n}" if rng.random() < 0.9 else f'"é\\{n}' for n in range(rng.choice([1, 2, 3, 7, 8, 9, 17]))]
        schemas = [random_schema(rng, names) for _ in range(rng.randint(1, 3))]
        source = Source(
            name="shop", codec="qlik_avro", **{"from": "x"}, tables={"t": "SHOP.T"}, options={"mask_order": order}
        )
        table = Table(table="SHOP.T", name="t", key=[names[0]], columns=[{"name": n, "type": "string"} for n in names])
        lookups = {str(id_): schema.encode() for id_, (schema, _) in enumerate(schemas)}
        for n in range(40):
            id_ = rng.randrange(len(schemas))
            value = qlik_avro.registered(id_, schemas[id_][1](rng))
            values.append(damaged(rng, value) if n % 2 else value)
        messages = [message(value) | {"lookups": lookups} for value in values]
        texts = fuzz.texts_of(messages, source, {"SHOP.T": table}, lookups)
        for n, (one, text) in enumerate(zip(messages, texts)):
            body = meant(text)
            if body is not None:
                exact = avro_form.parse(one, source)
                assert_says(body, exact, len(names), order)
            num_of["left out" if body is None else "damaged" if n % 2 else "sound"] += 1
    assert min(num_of.values()) > NUM_BATCHES // 4, num_of


TABLE = (
    Source(name="shop", codec="qlik_avro", **{"from": "x"}, tables={"t": "SHOP.T"}),
    {"SHOP.T": Table(table="SHOP.T", name="t", key=["C"], columns=[{"name": "C", "type": "string"}])},
)


def texts_of(values: list[bytes], schema: dict) -> list[bytes | None]:
    messages = [message(qlik_avro.registered(1, value)) for value in values]
    return fuzz.texts_of(messages, *TABLE, {"1": json.dumps(schema).encode()})


@pytest.mark.parametrize(("type_", "write"), TYPES, ids=[json.dumps(type_) for type_, _ in TYPES])
def test_each_type_of_avro_has_a_text_but_for_those_that_say_nothing_in_json(type_, write):
    rng, schema = random.Random(1), schema_of(type_)
    values = [write(rng) + b"\0" + string("") for _ in range(400)]
    texts = texts_of(values, schema)
    assert all(meant(text) is None for text in texts) == (type_ in NEVER)
    lookups, [source, _] = {"1": json.dumps(schema).encode()}, TABLE
    for value, text in zip(values, texts):
        if body := meant(text):
            one = message(qlik_avro.registered(1, value)) | {"lookups": lookups}
            assert_says(body, avro_form.parse(one, source), 1, "auto")


def test_texts_that_have_no_room_in_one_column_are_written_in_pieces(monkeypatch):
    values = [string("\x01" * (n % 50)) + b"\0" + string(str(n)) for n in range(500)]
    expected = texts_of(values, schema_of("string"))
    assert None not in expected
    for size in (1, 1000, 5000):
        monkeypatch.setattr(avro_fast, "LEN_PIECE", size)
        assert texts_of(values, schema_of("string")) == expected
    monkeypatch.setattr(avro_fast, "LEN_MOST", 600)  # what is longer than a column is left to the exact path
    some = texts_of(values, schema_of("string"))
    assert 100 < some.count(None) < 400 and all(one in (text, None) for one, text in zip(some, expected))


def test_masks_that_are_text_are_left_to_the_exact_path():
    schema = schema_of("string")
    schema["fields"][2]["type"]["fields"].append({"name": "changeMask", "type": "string"})
    assert texts_of([string("a") + b"\0" + string("UPDATE") + string("01")], schema) == [None]


def test_columns_that_masks_may_count_otherwise_are_left_to_the_exact_path():
    """Masks count the columns of the list, or of the version in force."""
    source, columns = TABLE[0], [Column("A", "INT4", key=1), Column("B", "INT4")]
    names = [{"name": column.name, "type": "int"} for column in columns]
    versions = {"version": 2, "earlier": [{"version": 1, "until": "2026-01-02 03:04:06", "columns": names[::-1]}]}
    plain = Table(table="SHOP.T", name="t", key=["A"], columns=names)
    reordered = Table(table="SHOP.T", name="t", key=["A"], columns=names, **versions)
    change = {"operation": "INSERT", "change_seq": f"{7:035d}", "after": {"A": 1, "B": 2}}
    brought = CODECS["qlik_avro"].brought(message(qlik_avro.metadata("AB01", "SHOP", "T", columns)))

    def has_text(of: list[Column], id_: str | None, table: Table) -> bool:
        datum, schema = qlik_avro.datum(change, of, How()), qlik_avro.data_schema(of)
        value = qlik_avro.envelope("DT", datum, id_, schema)
        return fuzz.texts_of([message(value)], source, {"SHOP.T": table}, brought) != [None]

    assert has_text(columns, None, plain) and has_text(columns, "AB01", plain)
    assert not has_text(columns[:1], "AB01", plain) and not has_text(columns[::-1], "AB01", plain)
    assert not has_text(columns, None, reordered) and has_text(columns, "AB01", reordered)


def test_a_before_image_of_another_order_is_left_to_the_exact_path():
    schema = schema_of("string")
    before = schema["fields"][1]
    assert before["name"] == "beforeData"
    record = {"type": "record", "name": "Before", "fields": [{"name": "OTHER", "type": "string"}]}
    value = string("a") + b"\0" + string("")
    assert texts_of([value], schema) != [None]
    before["type"] = ["null", record]
    assert texts_of([value], schema) == [None]


def test_a_float_is_the_shortest_text_of_its_double():
    values = [0.1, 100.0, 1 / 3, 1e15, 123456.789, -2.5e-5]
    texts = texts_of([struct.pack("<d", value) + b"\0" + string("a") for value in values], schema_of("double"))
    assert [meant(text)["data"]["C"] for text in texts] == [repr(value) for value in values]
