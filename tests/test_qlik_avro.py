"""qlik_avro: the same random changes in JSON and in every form of Avro, damaged bytes, what fastavro makes of them."""

import datetime
import io
import json
import random
from decimal import Decimal

import fastavro
import pytest

from inlet import config
from inlet.codecs import CODECS
from inlet.codecs.qlik import avro_text
from inlet.commands import decode, import_contracts, import_definitions, replay
from inlet.commands import run as running
from inlet.fields import avro
from inlet.fields.wrong import Wrong
from inlet.log import Log
from inlet.silver import decoded
from inlet.source import Source
from inlet.table import Table
from tests import projects, test_cases, test_inspect
from tests.conftest import ALL_ROUNDS
from tests.encode import qlik, qlik_avro
from tests.encode.qlik_avro import How
from tests.encode.qlik_change_table import Column
from tests.fuzz import qlik_avro as fuzz

CODEC = CODECS["qlik_avro"]
SOURCE = Source(name="shop", codec="qlik_avro", **{"from": "landing"}, options={"large_null": "null"})
TYPES = {  # a type, the contract's, values
    "INT4": ("int", [0, -1, (1 << 31) - 1, -(1 << 31)]),
    "INT8": ("bigint", [0, (1 << 63) - 1, -(1 << 63)]),
    "UINT4": ("bigint", [0, (1 << 32) - 1]),
    "BOOLEAN": ("boolean", [True, False]),
    "REAL8": ("double", [0.5, -1.25, 1e300]),
    "DATE": ("date", [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1970, 1, 1)]),
    "WSTRING": ("string", ["", "a", " ｱ山 ", "é\n"]),
    "CLOB": ("string", ["", "large"]),
    "NUMERIC": ("decimal(12,3)", [Decimal("0.000"), Decimal("-999999999.999"), Decimal("1.500")]),
}
INF = float("inf")  # what Python's reader of JSON makes of 1e999
RNG_ROUNDS = 400 if ALL_ROUNDS else 60


def random_table(rng: random.Random) -> tuple[list[Column], Table]:
    columns = [Column("ID", "INT8", key=1)]
    for n in range(rng.choice([1, 5, 7, 8, 15, 16, 23, 40])):
        type_ = rng.choice(list(TYPES))
        columns.append(Column(f"C{n}", type_, precision=12 if type_ == "NUMERIC" else 0, scale=3))
    listed = [{"name": c.name, "type": TYPES[c.type][0], "source_type": c.type} for c in columns]
    return columns, Table(table="SHOP.T", name="t", key=["ID"], columns=listed)


def random_change(rng: random.Random, columns: list[Column], n: int) -> dict:
    def row() -> dict:
        return {"ID": n} | {
            c.name: None if rng.random() < 0.2 and c.type != "CLOB" else rng.choice(TYPES[c.type][1])
            for c in columns
            if c.name != "ID"
        }

    operation, old = rng.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"]), row()
    some = [c.name for c in columns if c.name == "ID" or rng.random() < 0.7]
    new = {name: value for name, value in (old | {c: v for c, v in row().items() if rng.random() < 0.3}).items()}
    if operation == "UPDATE" and rng.random() < 0.3:
        old, new = ({name: value for name, value in one.items() if name in some} for one in (old, new))
    before = None if operation == "INSERT" else old
    return {
        "operation": operation,
        "change_seq": f"2026010203040500{n:019d}",
        "change_timestamp": "2026-01-02T03:04:05.678",
        "stream_position": f"p{n}",
        "transaction_id": f"{n:032X}",
        "transaction_event_counter": n,
        "transaction_last_event": rng.random() < 0.5,
        "before": before,
        "after": None if operation == "DELETE" else new,
    }


def assert_text_means_the_same(given: dict, source: Source, tables: dict) -> bool:
    """The JSON text that the fast path reads is the same change, if it is one. Out: is there a text?"""
    brought = {name: text for name, text in given["lookups"].items() if text is not None}
    [text] = fuzz.texts_of([given], source, tables, brought)
    if text is None:
        return False
    loads = decode.loads_of(CODEC, source, tables, [given])
    found = CODECS["qlik_json"].decode_message(given | {"value": text}, source, tables, loads)
    exact = CODEC.decode_message(given, source, tables, loads)
    size = {"unit_length": len(given["value"])}
    assert [row | size for row in found.changes] == (exact.changes if found.changes else [])
    return True


def message(value: bytes, offset: int = 0, **more) -> dict:
    return test_cases._message({"topic": "t", "offset": offset, "value": value} | more)


def meant(row: dict) -> dict:
    """A change but for its bytes; values of images as text, because JSON sends some as text."""

    def text(value):
        if isinstance(value, dict):
            return {name: text(one) for name, one in value.items()}
        return value if isinstance(value, bool | str | None) else f"{Decimal(str(value)):f}"

    images = {name: text(row[name]) for name in ("before", "after")}
    return {name: value for name, value in row.items() if name not in ("unit_length", "unit_id")} | images


@pytest.mark.parametrize("seed", range(6))
def test_the_same_changes_are_the_same_rows_in_json_and_in_every_form_of_avro(seed):
    rng, num_texts = random.Random(seed), 0
    for n in range(RNG_ROUNDS // 6):
        columns, table = random_table(rng)
        how = How(rng.random() < 0.5, rng.random() < 0.3, "a.b-c.d", rng.choice(["big", "little"]))
        if rng.random() < 0.3:
            how = how._replace(trims_masks=True)
        change, schema = random_change(rng, columns, n + 1), qlik_avro.data_schema(columns, how)
        if how.is_of_2018:
            change |= {"transaction_event_counter": None, "transaction_last_event": None}
        datum = qlik_avro.datum(change, columns, how)
        brought = CODEC.brought(message(qlik_avro.metadata("AB", "SHOP", "T", columns, 1, how)))
        forms = [
            message(qlik_avro.envelope("DT", datum, schema=schema)),
            message(qlik_avro.envelope("DT", datum, "AB")) | {"lookups": brought, "topic": "of_several"},
            message(qlik_avro.registered(9, datum)) | {"lookups": {"9": schema.encode()}},
        ]
        at_table = qlik_avro.data_schema(columns, how._replace(namespace="com.attunity.queue.msg.shop.SHOP.T"))
        if not how.is_of_2018:
            forms.append(
                message(qlik_avro.registered(9, datum)) | {"lookups": {"9": at_table.encode()}, "topic": "all"}
            )
        names = [c.name for c in columns]
        [expected] = (
            CODECS["qlik_json"]
            .decode_message(
                message(qlik.value(change, names)),
                SOURCE.model_copy(update={"tables": {"t": "SHOP.T"}}),
                {"SHOP.T": table},
                [],
            )
            .changes
        )
        for form in forms:
            source = SOURCE.model_copy(update={"tables": {"t": "SHOP.T"}})
            found = CODEC.decode_message(form, source, {"SHOP.T": table}, [])
            if found.rejects and how.trims_masks:  # what no image decides is not guessed
                assert [reject.kind for reject in found.rejects] == ["ambiguous_layout"]
                source = source.model_copy(update={"options": {"mask_order": how.mask_order}})
                found = CODEC.decode_message(form, source, {"SHOP.T": table}, [])
            assert not found.rejects, found.rejects
            assert meant(found.changes[0]) == meant(expected)
            num_texts += assert_text_means_the_same(form, source, {"SHOP.T": table})
            test_inspect.assert_equal_to_the_message(
                {"codec": CODEC, "source": source, "tables": {"SHOP.T": table}}, form
            )
    assert num_texts > RNG_ROUNDS // 6  # a third of them at least


ITEMS = [Column("ID", "INT8", key=1), Column("NAME", "WSTRING", 20), Column("PRICE", "NUMERIC", precision=9, scale=2)]
ITEM = Table(
    table="SHOP.T",
    name="t",
    key=["ID"],
    columns=[
        {"name": "ID", "type": "bigint"},
        {"name": "NAME", "type": "string"},
        {"name": "PRICE", "type": "decimal(9,2)"},
    ],
)
CHANGE = {
    "operation": "UPDATE",
    "change_seq": "2026010203040500" + "0" * 19,
    "transaction_event_counter": 300,
    "before": {"ID": 1, "NAME": "a", "PRICE": Decimal("1.50")},
    "after": {"ID": 1, "NAME": "山", "PRICE": None},
}


def samples() -> list[dict]:
    datum, schema = qlik_avro.datum(CHANGE, ITEMS), qlik_avro.data_schema(ITEMS)
    return [
        message(qlik_avro.envelope("DT", datum, schema=schema)),
        message(qlik_avro.registered(9, datum)) | {"lookups": {"9": schema.encode()}},
        message(qlik_avro.metadata("AB", "SHOP", "T", ITEMS)),
    ]


def check(damaged: dict) -> str:
    """What a message is, of which every byte is accounted for: its result."""
    source = SOURCE.model_copy(update={"tables": {"t": "SHOP.T"}})
    CODEC.brought(damaged), CODEC.lookups(damaged, source)
    test_inspect.assert_equal_to_the_message({"codec": CODEC, "source": source, "tables": {}}, damaged)
    found = CODEC.decode_message(damaged, source, {"SHOP.T": ITEM}, [])
    decoded.rows_of(found, source, {"SHOP.T": ITEM}, damaged["unit_id"], damaged["value"], None, None)
    assert_text_means_the_same(damaged, source, {"SHOP.T": ITEM})
    [reject] = found.rejects or [None]
    assert reject is None or 0 <= reject.byte_offset <= len(damaged["value"])
    return reject.kind if reject else "change" if found.changes else "control"


def test_a_message_cut_anywhere_is_a_reject():
    for sample in samples():
        for end in range(len(sample["value"])):
            assert check(sample | {"value": sample["value"][:end]}) in ("wrong_magic", "wrong_shape")
        assert check(sample) in ("change", "control")
        assert check(sample | {"value": sample["value"] + b"\0"}) == "trailing_bytes"


def test_mutated_bytes_are_a_change_or_a_reject():
    rng, kinds = random.Random(7), set()
    for n in range(20 * RNG_ROUNDS):
        sample = samples()[n % 3]
        data = bytearray(sample["value"])
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            how = rng.randrange(3)
            if how == 0:
                data[at] = rng.randrange(256)
            elif how == 1:
                del data[at : at + rng.randrange(1, 9)]
            else:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            if not data:
                break
        kinds.add(check(sample | {"value": bytes(data)}))
    assert {"change", "wrong_shape"} <= kinds


def test_fastavro_reads_what_the_encoder_writes_and_is_read():
    """But for names that it does not take, and values that it rounds."""
    schema_text = qlik_avro.data_schema(ITEMS, How(namespace="a.b"))
    schema, [ours] = fastavro.parse_schema(json.loads(schema_text)), avro.parse(schema_text.encode())
    data = qlik_avro.datum(CHANGE, ITEMS)
    value = fastavro.schemaless_reader(io.BytesIO(data), schema, None)
    assert avro.read(ours, data, 0) == (value, len(data))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    assert out.getvalue() == data


def values() -> list[tuple]:
    utc = datetime.UTC
    return [
        ("boolean", False),
        ("int", -(1 << 31)),
        ("long", (1 << 63) - 1),
        ("double", 0.1),
        ("bytes", b"\0\xff"),
        ("string", "山"),
        ({"type": "array", "items": "string"}, ["a", "b"]),
        ({"type": "map", "values": ["null", "long"]}, {"a": 1, "b": None}),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "int", "logicalType": "date"}, datetime.date(2026, 1, 2)),
        ({"type": "int", "logicalType": "time-millis"}, datetime.time(23, 59, 59, 999000)),
        ({"type": "long", "logicalType": "time-micros"}, datetime.time(23, 59, 59, 999999)),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime.datetime(2026, 1, 2, 3, 4, 5, 6000, utc)),
        ({"type": "long", "logicalType": "timestamp-micros"}, datetime.datetime(1, 1, 2, 3, 4, 5, 6, utc)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime.datetime(2026, 1, 2, 3, 4, 5, 6)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}, Decimal("-" + "9" * 58 + ".99")),
        ({"type": "fixed", "name": "D", "size": 9, "logicalType": "decimal", "precision": 20}, Decimal(-(10**19))),
    ]


@pytest.mark.parametrize(("type_", "value"), values(), ids=lambda one: str(one)[:50])
def test_each_type_of_avro_is_read_as_it_was_written(type_, value):
    schema = {"type": "record", "name": "R", "fields": [{"name": "A", "type": ["null", type_]}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"A": value})
    [ours] = avro.parse(json.dumps(schema).encode())
    assert avro.read(ours, out.getvalue(), 0) == ({"A": value}, len(out.getvalue()))
    for end in range(len(out.getvalue())):
        with pytest.raises(Wrong, match="wrong_shape"):
            avro.read(ours, out.getvalue()[:end], 0)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "record", "name": "R", "fields": []}, "no field"),
        ({"type": "record", "name": "R", "fields": [{"name": "A", "type": "null"}]}, "no bytes"),
        ({"type": "record", "name": "R", "fields": [{"name": "A", "type": ["int", ["int"]]}]}, "of unions"),
        ({"type": "record", "name": "R", "fields": [{"name": "A", "type": "int"}] * 2}, "a field twice"),
        ({"type": "record", "name": "R", "fields": [{"name": "A", "type": {"type": "fixed", "name": "F"}}]}, "size"),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "A", "type": {"type": "fixed", "name": "F", "size": INF}}],
            },
            "OverflowError",
        ),
        ({"type": "record", "name": "R"}, "fields"),
        ([1], "TypeError"),
    ],
)
def test_a_schema_that_cannot_be_meant_is_refused(schema, why):
    with pytest.raises(ValueError, match=why):
        avro.parse(json.dumps(schema).encode())


def test_a_schema_nested_beyond_reading_is_refused():
    for depth in (100, 1000, 200_000):
        with pytest.raises(ValueError, match="nested"):
            avro.parse(
                b'{"type":"record","name":"R","fields":[{"name":"A","type":' + b"[" * depth + b"]" * depth + b"}]}"
            )


@pytest.mark.parametrize("digits", [(10**6, 0), (5, 10**7), (129, 0), (5, -1), (0, 0), (10**5000, 0)])
def test_a_decimal_of_more_digits_than_databases_have_is_refused(digits):
    type_ = {"type": "bytes", "logicalType": "decimal", "precision": digits[0], "scale": digits[1]}
    with pytest.raises(ValueError, match="precision|integer string"):
        avro.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "A", "type": type_}]}).encode())


def chain(num: int, width: int = 1) -> list[dict]:
    """Fields of a record whose last one is nested so deep by the names that it refers to."""
    first = {"type": "record", "name": "R0", "fields": [{"name": "x0", "type": "int"}]}
    others = [
        {"type": "record", "name": f"R{n}", "fields": [{"name": f"x{k}", "type": f"R{n - 1}"} for k in range(width)]}
        for n in range(1, num)
    ]
    return [{"name": f"A{n}", "type": type_} for n, type_ in enumerate([first, *others])]


def test_a_schema_nested_beyond_reading_by_its_names_is_refused():
    [schema] = avro.parse(json.dumps({"type": "record", "name": "R", "fields": chain(avro.MAX_DEPTH - 1)}).encode())
    assert schema.height == avro.MAX_DEPTH
    for num in (avro.MAX_DEPTH, 600):
        with pytest.raises(ValueError, match="nested"):
            avro.parse(json.dumps({"type": "record", "name": "R", "fields": chain(num)}).encode())


def with_data(fields: list[dict]) -> str:
    """The schema of data messages, with these columns."""
    schema = json.loads(qlik_avro.data_schema(ITEMS))
    schema["fields"][0]["type"]["fields"] = fields
    return json.dumps(schema)


@pytest.mark.parametrize(
    "fields",
    [chain(600), [{"name": "ID", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 10**7}}]],
    ids=["chain", "scale"],
)
def test_a_hostile_schema_is_a_reject(fields):
    given = message(qlik_avro.envelope("DT", b"\2\5" + bytes(2000), schema=with_data(fields)))
    assert [r.kind for r in CODEC.decode_message(given, SOURCE, {"SHOP.T": ITEM}, []).rejects] == ["wrong_shape"]
    assert not assert_text_means_the_same(given, SOURCE, {"SHOP.T": ITEM})


@pytest.mark.parametrize("depth", [5, 9])
def test_a_schema_whose_references_expand_is_left_out_after_as_many_steps_as_it_has_letters(depth, monkeypatch):
    """Steps grow with the length of the schema, not with what it expands to, and not with the messages."""
    made, real = [], avro_text.Program._value
    monkeypatch.setattr(avro_text.Program, "_value", lambda *given: made.append(given) or real(*given))
    schema = with_data(chain(depth, width=8))
    given = message(qlik_avro.envelope("DT", bytes(2000), schema=schema))
    assert fuzz.texts_of([given] * 3, SOURCE, {"SHOP.T": ITEM}, {}) == [None] * 3
    assert 0 < len(made) < len(schema)


def test_a_header_that_is_no_text_names_no_schema():
    given = message(qlik_avro.registered(9, b"x")) | {"headers": [{"key": "avro.schema", "value": b"\xff"}]}
    assert CODEC.lookups(given, SOURCE) == ["\\xff"]
    [reject] = CODEC.decode_message(given, SOURCE, {"SHOP.T": ITEM}, []).rejects
    assert reject.kind == "definition_missing" and "\\xff" in reject.expected
    assert not assert_text_means_the_same(given, SOURCE, {"SHOP.T": ITEM})


def test_blocks_with_their_size_are_read():
    [schema] = avro.parse(b'{"type":"record","name":"R","fields":[{"name":"A","type":{"type":"array","items":"int"}}]}')
    assert avro.read(schema, bytes([3, 4, 2, 4, 2, 6, 0]), 0) == ({"A": [1, 2, 3]}, 7)  # -2 items in 2 bytes, 1 item
    with pytest.raises(Wrong, match="another size"):
        avro.read(schema, bytes([3, 6, 2, 4, 2, 6, 0]), 0)


@pytest.mark.parametrize(
    ("value", "headers", "expected"),
    [
        (bytes([0, 0, 0, 1, 2]) + b"x", None, ["258"]),
        (b"x", [{"key": "avro.schema", "value": "5f4d"}], ["5f4d"]),
        (b"atMSG", None, []),
        (bytes([0, 0]), None, []),
        (None, None, []),
    ],
)
def test_a_message_tells_the_name_of_its_schema(value, headers, expected):
    assert CODEC.lookups(message(value, headers=headers), SOURCE) == expected


def imported(project: config.Project, **answers) -> config.Project:
    rows = import_definitions.from_feeds(project, None, None)
    import_contracts.write(import_contracts.contracts(project, rows, import_contracts.Answers(**answers)))
    return config.load(project.root)


def rows_of(spark, columns: str) -> list[tuple]:
    found = spark.sql(
        f"select int(substr(change_seq, 17)) as n, table_version, {columns} from silver.changes "
        "where source = 'avro_shop' and operation <> 'REFRESH' order by 1"
    )
    return [tuple(row) for row in found.collect()]


@pytest.mark.smoke
def test_a_feed_without_a_contract_goes_the_whole_way_and_on_after_a_change_of_its_table(
    spark, lakehouse, tmp_path, monkeypatch
):
    """Data before metadata; a table without a contract; a column that is added; a registry whose schema comes late."""
    place = {"transport": "parquet", "path": "landing/avro_shop/*.parquet", "lookups": "schemas/{name}.avsc"}
    source = {"codec": "qlik_avro", "from": place}
    (tmp_path / "landing" / "avro_shop").mkdir(parents=True)
    for name in ("schemas", "expectations"):
        (tmp_path / name).mkdir()
    for step in ("bronze", "silver"):
        (tmp_path / "expectations" / f"{step}.yml").write_text("[]")
    monkeypatch.setattr("inlet.lake.spark.session", lambda *given, **named: spark)
    project = projects.make(tmp_path, {"avro_shop": source}, None, lakehouse)
    more = [*ITEMS, Column("COLOR", "STRING", 9)]

    def insert(n: int, columns: list[Column]) -> bytes:
        row = {"ID": n, "NAME": "a", "PRICE": Decimal("1.50")} | ({"COLOR": "red"} if columns is more else {})
        return qlik_avro.datum(
            {"operation": "INSERT", "change_seq": f"2026010203040500{n:019d}", "after": row}, columns
        )

    def bring(values: list[bytes], number: int, topic="all") -> None:
        """One `inlet run` for new messages: what they bring is used for earlier ones by the same run."""
        rows = qlik.rows(values, topic, offset=100 * number)
        qlik.write_parquet(rows, tmp_path / "landing" / "avro_shop" / f"{number}.parquet")
        steps = running.steps_to_run(None, "silver")
        work = running.find_work(project, steps, [], [])
        running.run(project, work, steps, [], Log(is_human=False), lambda spark: None)

    bring([qlik_avro.envelope("DT", insert(n, ITEMS), "AA") for n in (1, 2)], 1)
    kinds = "select kind from silver.rejects where source = 'avro_shop' and resolved_by is null order by kind"
    assert [row.kind for row in spark.sql(kinds).collect()] == ["definition_missing"] * 2
    bring([qlik_avro.metadata("AA", "DEPOT", "AVRO_ITEMS", ITEMS)], 2, "meta")
    assert [row.kind for row in spark.sql(kinds).collect()] == ["unknown_table"] * 2

    project = imported(project)
    loaded = qlik_avro.datum({"operation": "REFRESH", "after": {"ID": 9, "NAME": "b", "PRICE": None}}, ITEMS)
    bring([qlik_avro.envelope("DT", insert(3, ITEMS), "AA"), qlik_avro.envelope("DT", loaded, "AA")], 3)
    loads = spark.sql(
        "select load_id, after:ID::int as id from silver.changes where source = 'avro_shop' and load_id > ''"
    )
    assert [(row.load_id.split("@")[0], row.id) for row in loads.collect()] == [("DEPOT.AVRO_ITEMS", 9)]
    assert rows_of(spark, "after:PRICE::decimal(9,2)") == [(n, 1, Decimal("1.50")) for n in (1, 2, 3)]

    values = [
        qlik_avro.envelope("DT", insert(5, more), "BB"),
        qlik_avro.envelope("DT", insert(4, ITEMS), "AA"),
        qlik_avro.metadata("BB", "DEPOT", "AVRO_ITEMS", more, 2),
    ]
    bring(values, 4)
    assert [row.kind for row in spark.sql(kinds).collect()] == ["definition_differs"]
    project = imported(project)
    bring([qlik_avro.registered(258, insert(6, more))], 5, "registered")
    assert rows_of(spark, "after:COLOR::string") == [*((n, 1, None) for n in (1, 2, 3, 4)), (5, 2, "red")]
    assert [row.kind for row in spark.sql(kinds).collect()] == ["definition_missing"]
    schema = qlik_avro.data_schema(more, How(namespace="com.attunity.queue.msg.shop.DEPOT.AVRO_ITEMS"))
    (tmp_path / "schemas" / "258.avsc").write_text(json.dumps({"schema": schema}))
    assert len(replay.due(project, ["avro_shop"])) == 1
    bring([qlik_avro.registered(258, insert(7, more))], 6, "registered")
    assert rows_of(spark, "after:COLOR::string")[5:] == [(6, 2, "red"), (7, 2, "red")]
    assert spark.sql(kinds).collect() == []
    told = spark.sql(
        "select feed_version, change_seq from silver.table_versions where source = 'avro_shop' and origin = 'feed' "
        "order by feed_version, change_seq"
    ).collect()
    assert [(row.feed_version, row.change_seq[-2:]) for row in told] == [(1, ""), (1, "01"), (2, "05")]


def test_an_empty_schema_is_none_for_both_paths():
    brought = CODEC.brought(message(qlik_avro.metadata("AB", "SHOP", "T", ITEMS)))
    data = qlik_avro.envelope("DT", qlik_avro.datum(CHANGE, ITEMS), "AB", schema="")
    given = message(data) | {"lookups": brought}
    assert assert_text_means_the_same(given, SOURCE, {"SHOP.T": ITEM})
    assert len(CODEC.decode_message(given, SOURCE, {"SHOP.T": ITEM}, []).changes) == 1
    missing = CODEC.decode_message(given | {"lookups": {}}, SOURCE, {"SHOP.T": ITEM}, [])
    assert [reject.kind for reject in missing.rejects] == ["definition_missing"]


@pytest.mark.parametrize(
    "path", [p for p in test_cases.CASES if p.parent.name == "qlik_avro"], ids=lambda path: path.stem
)
def test_the_text_of_a_case_means_the_same(path):
    case = test_cases.load(path)
    for written in case["messages"]:
        given = test_cases._message(written)
        if given["value"] is not None:
            assert_text_means_the_same(given, case["source"], case["tables"])


def test_a_number_that_is_cut_off_is_left_to_the_exact_path():
    case = test_cases.load(next(p for p in test_cases.CASES if p.match("qlik_avro/bad_schema_that_does_not_fit.yml")))
    assert fuzz.check(case, [bytes.fromhex("0000000001020202")]) == 0


def test_bytes_are_no_digits_of_a_number_or_a_text():
    """Of a column whose type in the schema is bytes, though the contract has a number: both paths say no."""
    case = test_cases.load(next(p for p in test_cases.CASES if p.match("qlik_avro/ok_embedded_schema.yml")))
    value = test_cases._message(case["messages"][0])["value"]
    assert b'"logicalType": "decimal"' in value
    assert fuzz.check(case, [value.replace(b'"logicalType": "decimal"', b'"logicalType": "decim0l"')]) == 0
