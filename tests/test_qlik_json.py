"""qlik_json: the exact path by itself, the grammar of plain messages, full loads, and that both paths say the same.

What single messages mean is in tests/cases/qlik_json; here is what no single message shows.
"""

import datetime
import decimal
import functools
import itertools
import json
import os
import random
import re
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from inlet import change, errors
from inlet.bronze import Plan
from inlet.codecs import codec
from inlet.codecs.qlik import full_load, json_arrow, json_contracts, json_fast, json_messages, load_time
from inlet.commands import decode, doctor
from inlet.commands.run import say_what_loads_lack
from inlet.fields import json_exact, variant
from inlet.fields.fit import fit
from inlet.fields.wrong import Wrong
from inlet.silver import decoded
from inlet.silver import messages as silver_messages
from inlet.source import Source
from inlet.table import Table
from tests import projects, test_cases
from tests.encode import qlik

START = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
COLUMNS = {
    "ID": "bigint",
    "NAME": "string",
    "PRICE": "decimal(9,2)",
    "STOCK": "int",
    "SOLD_AT": "timestamp",
    "DUE": "date",
    "IS_NEW": "boolean",
    "WEIGHT": "double",
    "PICTURE": "binary",
}
TABLE = Table(
    table="SHOP.ITEM",
    name="item",
    key=["ID"],
    columns=[
        {"name": name, "type": type_} | ({"encoding": "hex"} if type_ == "binary" else {})
        for name, type_ in COLUMNS.items()
    ],
)
TABLES = {TABLE.table: TABLE}
SOURCE = Source(name="shop", codec="qlik_json", **{"from": "landing"}, tables={"item": "SHOP.ITEM"})
PATHS = [path for path in test_cases.CASES if path.parent.name == "qlik_json"]


def minutes(*spans):
    return [tuple(START + datetime.timedelta(minutes=m) for m in span) for span in spans]


def message(value, offset=0, topic="item", at=START, source="shop"):
    return {
        "unit_id": f"{source}/{topic}/0/{offset}",
        "source": source,
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "timestamp": at,
        "key": None,
        "value": value,
        "headers": None,
    }


def random_row(rng, key: int) -> dict:
    pick = {
        "ID": key,
        "NAME": rng.choice(["", "Köln", 'a "quoted" \\ text', "日本 🎈", "REFRESH", "x" * 300]),
        "PRICE": decimal.Decimal(rng.randrange(10**9)).scaleb(-2),
        "STOCK": rng.randrange(-(2**31), 2**31),
        "SOLD_AT": datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=rng.randrange(10**15)),
        "DUE": datetime.date(2000, 1, 1) + datetime.timedelta(days=rng.randrange(20_000)),
        "IS_NEW": rng.random() < 0.5,
        "WEIGHT": rng.randrange(-(10**6), 10**6) / 64,
        "PICTURE": rng.randbytes(rng.randrange(9)),
    }
    return {name: value if name == "ID" or rng.random() < 0.9 else None for name, value in pick.items()}


def random_messages(num: int, seed: int, odd: float = 0.03) -> list[dict]:
    return [one for _, one in random_changes(num, seed, odd)]


def random_changes(num: int, seed: int, odd: float = 0.03) -> list[tuple[dict, dict]]:
    """What is encoded, and its message: every operation, columns with a value, null and not supplied, transactions
    whose ids come back.
    """
    rng, found = random.Random(seed), []
    ids = [rng.randbytes(16).hex() for _ in range(20)]
    for n in range(num):
        operation = rng.choice(["REFRESH", "INSERT", "UPDATE", "UPDATE", "DELETE"])
        row, old = random_row(rng, n), random_row(rng, n) if rng.random() < 0.7 else None
        said = {
            "operation": operation,
            "before": row if operation == "DELETE" else old if operation == "UPDATE" else None,
            "after": None if operation == "DELETE" else row,
            "change_seq": "" if operation == "REFRESH" else f"2026010203040500{n:019d}",
            "transaction_id": ids[n // 3 % len(ids)],
            "stream_position": f"{n // 3:08x}.{rng.randrange(2**32):08x}.{n % 3}",
            "transaction_event_counter": n % 3 + 1,
            "transaction_last_event": n % 3 == 2,
            "change_timestamp": "2026-01-02T03:04:05.000",
        }
        masks = rng.random() < 0.7
        if rng.random() < 0.3 and operation != "REFRESH" and masks:  # only a mask tells what is not supplied
            supplied = {"ID", *rng.sample(list(COLUMNS), rng.randrange(len(COLUMNS)))}
            said |= {
                image: said[image] and {name: said[image][name] for name in COLUMNS if name in supplied}
                for image in ("before", "after")
            }
        value = qlik.value(
            said,
            list(COLUMNS),
            shape=rng.choice(["envelope", "bare"]),
            masks=masks,
            delete_in=rng.choice(["data", "beforeData"]),
            schema=rng.choice([None, "SHOP"]),
            table="ITEM",
        )
        if rng.random() < odd:  # as other readers and versions spell it
            spelt = "READ" if operation == "REFRESH" else operation.lower()
            value = value.replace(f'"operation":"{operation}"'.encode(), f'"operation":"{spelt}"'.encode())
        found.append((said, message(value, n, at=START + datetime.timedelta(seconds=n))))
    return found


def loads_of(messages: list[dict], source, tables) -> list[dict]:
    seen = {}
    for one in messages:
        if row := json_messages.refresh_row(one, source, tables):
            seen.setdefault((source.name, row[0]), []).append((row[1], row[1], one["topic"]))
    return full_load.assign_loads([], seen, source.options_as(json_messages.OPTIONS).load_gap_minutes)


def test_what_the_encoder_writes_the_codec_reads():
    row = random_row(random.Random(1), 7)
    old = row | {"NAME": "old", "STOCK": 3}
    said = {
        "operation": "UPDATE",
        "change_seq": "2026010203040500" + "0" * 18 + "7",
        "before": old,
        "after": row,
        "transaction_id": "77",
    }
    found = json_messages.read_message(message(qlik.value(said, list(COLUMNS))), SOURCE, TABLES, [])
    assert (found["operation"], found["transaction_id"], found["change_seq"]) == ("UPDATE", "77", said["change_seq"])
    assert found["after"]["NAME"] == row["NAME"] and found["before"]["STOCK"] == 3
    assert change.mask_ordinals(found["change_mask"]) == [n for n, c in enumerate(COLUMNS, 1) if row[c] != old[c]]


def test_what_was_encoded_is_decoded_whatever_it_is():
    changes = random_changes(500, 11)
    loads = loads_of([one for _, one in changes], SOURCE, TABLES)
    for said, one in changes:
        found = json_messages.read_message(one, SOURCE, TABLES, loads)
        images = {
            name: image
            and {
                column: qlik.text_of(value) if isinstance(value, (decimal.Decimal, datetime.date, bytes)) else value
                for column, value in image.items()
            }
            for name, image in (("before", said["before"]), ("after", said["after"]))
        }
        names = (
            "operation",
            "transaction_id",
            "transaction_event_counter",
            "transaction_last_event",
            "stream_position",
            "before",
            "after",
        )
        assert {name: found[name] for name in names} == {name: (said | images)[name] for name in names}
        assert found["change_seq"] == said["change_seq"] or said["operation"] == "REFRESH" and found["load_id"]


def test_a_load_is_a_run_of_messages_without_a_gap():
    seen = {("shop", "SHOP.ITEM"): minutes((100, 130), (0, 0), (0, 50))}
    assert [(load["load_id"], load["last_at"]) for load in full_load.assign_loads([], seen)] == [
        ("SHOP.ITEM@2026010203040567", minutes((130,))[0][0])
    ]
    assert len(full_load.assign_loads([], seen, 40)) == 2


def test_a_load_ends_with_the_next_change_of_its_table_or_after_a_gap_where_that_is_said():
    seen = {("shop", "SHOP.ITEM"): minutes((0, 10), (200, 210)), ("shop", "SHOP.ORDER"): minutes((100, 110))}
    first, second, order = loads = full_load.assign_loads([], seen)
    assert [full_load.proof_span(load, loads) for load in loads] == [
        (first["started_at16"], second["started_at16"]),
        (second["started_at16"], "~"),
        (order["started_at16"], "~"),
    ]
    change, gap = json_messages.OPTIONS(), json_messages.OPTIONS(loads_end="gap")
    assert [full_load.is_over(load, loads, "", change) for load in loads] == [False, False, False]
    assert [full_load.is_over(load, loads, "", gap) for load in loads] == [True, False, True]
    assert full_load.is_over(second, loads, "2026010208" + "0" * 25, gap)


def test_a_known_load_goes_on_and_keeps_its_start():
    known = full_load.assign_loads([], {("shop", "SHOP.ITEM"): minutes((0, 10))})
    later = full_load.assign_loads(known, {("shop", "SHOP.ITEM"): minutes((60, 65), (200, 201))})
    assert [load["started_at16"] for load in later] == ["2026010203040567", "2026010206240567"]
    assert later[0]["last_at"] == minutes((65,))[0][0] and known[0]["last_at"] == minutes((10,))[0][0]


def test_loads_that_start_together_do_not_share_a_place():
    said = qlik.value({"operation": "REFRESH", "after": {"ID": 1}}, list(COLUMNS))
    source = SOURCE.model_copy(update={"tables": {"a": "SHOP.ITEM", "b": "SHOP.ITEM"}})
    messages = [message(said, topic="a"), message(said, topic="b")]
    loads = loads_of(messages, source, TABLES)
    places = {json_messages.read_message(one, source, TABLES, loads)["change_seq"] for one in messages}
    assert len(places) == 2 and all(place.startswith("2026010203040567") and len(place) == 35 for place in places)


def alike(num: int) -> list[str]:
    """Topics with the same checksum of four digits."""
    found: dict[int, list[str]] = {}
    for n in itertools.count():
        topics = found.setdefault(full_load.topic_number(f"topic{n}"), [])
        topics.append(f"topic{n}")
        if len(topics) == num:
            return topics


def test_messages_that_name_a_list_of_another_order_are_left_to_the_exact_path():
    lists = {
        id_: json.dumps(
            {
                "schemaId": id_,
                "lineage": {"schema": "SHOP", "table": "ITEM", "tableVersion": 1},
                "tableStructure": {
                    "tableColumns": {name: {"ordinal": n, "type": "STRING"} for n, name in enumerate(columns, 1)}
                },
            }
        ).encode()
        for id_, columns in (("AA", COLUMNS), ("BB", reversed(COLUMNS)))
    }
    said = {"operation": "INSERT", "change_seq": "2026010203040500" + "0" * 19, "after": {"ID": 1}}
    plain = qlik.value(said, list(COLUMNS))
    named = [plain] + [
        plain.replace(b'"messageSchemaId":null', b'"messageSchemaId":' + id_)
        for id_ in (b'"AA"', b'"BB"', b'"CC"', b'""', rb'"\u0042B"')
    ]
    batch = batch_of([message(value, n) for n, value in enumerate(named)])

    def sure(lookups: dict, source=SOURCE) -> list[bool]:
        return [place >= 0 for place in json_contracts.Contracts([source], TABLES, lookups).places_of(batch)]

    assert sure({}) == [True, False, False, False, True, False]
    assert sure({"shop": lists | {"metadata": b""}}) == [True, True, False, False, True, False]
    assert sure({}, SOURCE.model_copy(update={"options": {"needs_metadata": False}})) == [True] * 6


def test_topics_with_the_same_checksum_do_not_share_a_place():
    topics, said = alike(3), qlik.value({"operation": "REFRESH", "after": {"ID": 1}}, list(COLUMNS))
    other = TABLE.model_copy(update={"table": "SHOP.OTHER", "name": "other"})
    tables = TABLES | {other.table: other}
    mapped = {topics[0]: "SHOP.ITEM", topics[1]: "SHOP.ITEM", topics[2]: "SHOP.OTHER"}
    source = SOURCE.model_copy(update={"tables": mapped})
    messages = [message(said, topic=topic) for topic in topics]
    loads = loads_of(messages, source, tables)
    places = [json_messages.read_message(one, source, tables, loads)["change_seq"] for one in messages]
    assert len({*places}) == 3 and {place[:16] for place in places} == {"2026010203040567"}
    assert places[0][16:20] == f"{full_load.topic_number(topics[0]):04d}"  # the first one keeps its own
    assert [*walked(messages, source, tables, loads)] == [messages[0]["unit_id"]]  # the others take the exact path
    again = full_load.assign_loads(loads, {("shop", "SHOP.OTHER"): [(START, START, topics[2])]})
    assert again == loads


def test_a_load_of_an_earlier_inlet_keeps_its_places_and_a_new_one_starts_elsewhere():
    first, second = alike(2)
    known = full_load.assign_loads([], {("shop", "SHOP.ITEM"): [(START, START, first)]})
    known = [{name: value for name, value in load.items() if name != "topics"} for load in known]
    seen = {("shop", name): [(START, START, second)] for name in ("SHOP.ITEM", "SHOP.OTHER")}
    old, new = full_load.assign_loads(known, seen)
    assert old == known[0] and new["started_at16"] == "2026010203040566"
    assert full_load.topic_number(first, old) == full_load.topic_number(second, old) == full_load.topic_number(first)


def test_more_topics_than_numbers_are_refused():
    seen = {("shop", "SHOP.ITEM"): [(START, START, *map(str, range(10_000)))]}
    with pytest.raises(errors.InletError, match="more than 9999 topics"):
        full_load.assign_loads([], seen)


def test_a_full_load_row_without_its_load_is_rejected():
    value = qlik.value({"operation": "REFRESH", "after": {"ID": 1}}, list(COLUMNS))
    assert json_messages.read_message(message(value), SOURCE, TABLES, [])["reject"].kind == "missing_change_seq"


def test_a_full_load_row_whose_place_has_too_many_digits_is_rejected():
    one = message(qlik.value({"operation": "REFRESH", "after": {"ID": 1}}, list(COLUMNS)))
    loads = loads_of([one], SOURCE, TABLES)
    for wide in ({"offset": 10**10}, {"partition": 10**5}):
        found = json_messages.read_message(one | wide, SOURCE, TABLES, loads)["reject"]
        assert (found.kind, found.expected) == ("missing_change_seq", "partition of 5 digits and offset of 10")
    assert (
        json_messages.read_message(one | {"offset": 10**10 - 1, "partition": 10**5 - 1}, SOURCE, TABLES, loads)[
            "operation"
        ]
        == "REFRESH"
    )


@pytest.mark.parametrize("depth", [990, 100_000])
def test_a_message_nested_beyond_reading_is_a_reject(depth):
    value = b'{"data": ' + b"[" * depth + b"]" * depth + b"}"
    found = json_messages.read_message(message(value), SOURCE, TABLES, [])["reject"]
    assert found.kind == "invalid_json" and found.raw == value


def test_an_unknown_option_is_refused():
    with pytest.raises(errors.ConfigError, match="load_gap_minute"):
        SOURCE.model_copy(update={"options": {"load_gap_minute": 5}}).options_as(full_load.Options)


@pytest.mark.parametrize("path", [path for path in PATHS if path.stem.startswith("ok_")], ids=lambda path: path.stem)
def test_a_message_cut_anywhere_is_a_reject(path):
    case = test_cases.load(path)
    for written in case["messages"]:
        value = test_cases._message(written)["value"] or b""
        for end in range(len(value)):
            found = json_messages.read_message(message(value[:end], topic="cdc"), case["source"], case["tables"], [])
            assert found["result"] == "reject"
            assert found["reject"].raw == value[:end] and 0 <= found["reject"].byte_offset <= end


@pytest.mark.parametrize(
    "value, type_, expected",
    [
        ("1.50", "decimal(9,2)", decimal.Decimal("1.50")),
        ("1" * 38, "decimal(38,0)", int("1" * 38)),
        ("0." + "0" * 37 + "1", "decimal(38,38)", decimal.Decimal("1E-38")),
        ("1." + "0" * 60, "decimal(9,2)", 1),
        ("1e2", "decimal(9,2)", 100),
        ("9" * 39, "double", 1e39),
        ("1e-5", "float", 1e-5),
        ("127", "tinyint", 127),
        ("-32768", "smallint", -32768),
        ("12", "string", "12"),
    ],
)
def test_numbers_that_fit(value, type_, expected):
    found = fit(json_exact.Number(value), type_)
    assert (type(found), found) == (type(expected), expected)
    assert variant.decode(*variant.encode(found)) == expected


EDGES = {
    **{
        type_: [str(n) for limit in (1 << bits - 1,) for n in (-limit - 1, -limit, 1 - limit, -1, 0, limit - 1, limit)]
        for type_, bits in (("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64))
    },
    "decimal(18,2)": [
        "9" * 16 + ".99",
        "-" + "9" * 16 + ".99",
        "1" + "0" * 16,
        "0.01",
        "0.001",
        "0.010",
        "-0.00",
        "0" * 3 + "1.5",
        "1." + "0" * 18,
    ],
    "decimal(38,18)": [
        "9" * 17 + ".9",
        "9" * 18,
        "9" * 19,
        "9" * 20,
        "9" * 21,
        "1E19",
        "1E20",
        "0." + "0" * 17 + "1",
        "0." + "0" * 18 + "1",
    ],
    "double": ["0", "-0", "-0.0", "9" * 18, "9" * 19, "1.5", "1e308", "1e309", "5e-324", "1e-400"],
    "date": [
        "0001-01-01",
        "0000-12-31",
        "9999-12-31",
        "2024-02-29",
        "2026-02-29",
        "1900-02-29",
        "2000-02-29",
        "2026-00-01",
        "2026-13-01",
        "2026-04-31",
    ],
    "timestamp": [
        "0001-01-01T00:00:00",
        "9999-12-31 23:59:59.999999",
        "2026-01-01T24:00:00",
        "2026-01-01T23:59:60",
        "2026-01-01T00:60:00",
        "2026-01-01T00:00:00.",
        "2026-01-01T00:00:00.1234567",
        "2026-01-01T00:00:00.1234560",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00z",
        "2026-01-01T00:00:00+14:59",
        "2026-01-01T00:00:00+15:00",
    ],
    "timestamp_ntz": ["2026-01-01T00:00:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000000"],
}
HEADER_EDGES = {
    "transactionEventCounter": [
        "-1",
        "-0",
        "0",
        "00",
        str(2**63 - 9),
        str(2**63 - 1),
        str(2**63),
        "9" * 18,
        "9" * 20,
        "1.0",
        "1e2",
    ],
    "timestamp": [
        "999999999999",
        "1000000000000",
        "9999999999999",
        "10000000000000",
        "-1000000000000",
        '"999999999999"',
        '"1000000000000"',
        '"9999999999999"',
        '"10000000000000"',
        '"2026-01-01T00:00:00Z"',
        '"2026-01-01T00:00:00ZZ"',
        '"2026-01-01T00:00:00.5Z"',
        '"0000-01-01T00:00:00"',
        '"9999-12-31T23:59:59.999999"',
        '"9999-12-31T23:59:59-01:00"',
        '""',
        "null",
        '"2026-01-01T00:00:60Z"',
    ],
}


def edge(data: str, header: str = "", offset: int = 0) -> dict:
    return message(
        f'{{"data":{data},"headers":{{"operation":"INSERT",{header}"changeSequence":"2026010203040500{offset:019d}"}}}}'.encode(),
        offset,
    )


@pytest.mark.parametrize("type_", EDGES)
def test_both_paths_draw_the_edges_of_a_type_alike(type_):
    """What the walk answers the exact path answers the same; what it is to answer it does: it leaves out what is
    rejected and what has over 18 digits.
    """
    table = Table(
        table="SHOP.ITEM",
        name="item",
        key=["ID"],
        columns=[{"name": "ID", "type": "int"}, {"name": "V", "type": type_}],
    )
    values = [f'"{value}"' for value in EDGES[type_]] + [
        value for value in EDGES[type_] if re.fullmatch(r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE]-?[0-9]+)?", value)
    ]
    messages = [edge(f'{{"ID":1,"V":{value}}}', offset=n) for n, value in enumerate(values)]
    fits = [
        value
        for value, one in zip(values, messages)
        if json_messages.read_message(one, SOURCE, {"SHOP.ITEM": table}, [])["result"] == "change"
    ]
    plain = [
        value for value in fits if len(re.findall("[0-9]", value)) <= 18 and not re.search(r"[eE+]|-0[.0]*\b", value)
    ]
    assert len(plain) <= assert_walk_agrees(messages, SOURCE, {"SHOP.ITEM": table}) <= len(fits) < len(values)


@pytest.mark.parametrize("header", HEADER_EDGES)
def test_both_paths_draw_the_edges_of_a_header_alike(header):
    messages = [edge('{"ID":1}', f'"{header}":{value},', n) for n, value in enumerate(HEADER_EDGES[header])]
    found = [json_messages.read_message(one, SOURCE, TABLES, []) for one in messages]
    read = [row for row in found if row["result"] == "change" and not row.get("kind")]
    assert 0 < assert_walk_agrees(messages, SOURCE, TABLES) <= len(read) < len(messages)


def test_an_integer_spelt_with_thousands_of_zeros_is_read():
    assert fit("0" * 9000 + "7", "int") == "0" * 9000 + "7" and fit("-" + "0" * 9000, "bigint") == "-" + "0" * 9000


@pytest.mark.parametrize("depth", range(900, 1000, 3))
def test_a_message_nested_to_any_depth_is_a_reject_that_names_its_place(depth):
    value = b'{"headers": {"operation": "INSERT", "deep": ' + b"[" * depth + b"]" * depth + b'}, "data": {"NO": 1}}'
    found = json_messages.read_message(message(value), SOURCE, TABLES, [])["reject"]
    assert found.kind in ("unknown_column", "invalid_json", "missing_change_seq")


@pytest.mark.parametrize(
    "value, type_",
    [
        ("128", "tinyint"),
        ("1e0", "int"),
        ("1e999999", "decimal(38,0)"),
        ("1e9999999", "decimal(9,2)"),
        ("1e-400", "double"),
        ("3.5e38", "float"),
        ("9" * 5000, "bigint"),
        ("0.001", "decimal(9,2)"),
    ],
)
def test_numbers_that_do_not_fit(value, type_):
    with pytest.raises(Wrong):
        fit(json_exact.Number(value), type_)


def comparable(row: dict) -> dict:
    images = {
        name: variant.decode(bytes(row[name].value), bytes(row[name].metadata))
        if hasattr(row.get(name), "metadata")
        else row.get(name)
        for name in ("before", "after", "header")
    }
    at = row["change_timestamp"]
    return {
        **{name: row.get(name) if isinstance(row, dict) else row[name] for name in decoded.CHANGE},
        **images,
        "change_timestamp": at and at.replace(tzinfo=None),
        "change_mask": row["change_mask"] and bytes(row["change_mask"]),
        "column_mask": row["column_mask"] and bytes(row["column_mask"]),
    }


def typed(value):
    """Equal only if the types are: 1 is not 1.0, and a decimal keeps its scale."""
    return {k: typed(v) for k, v in value.items()} if isinstance(value, dict) else repr(value)


def frame(spark, messages: list[dict]):
    ddl = (
        "unit_id string, source string, topic string, partition int, `offset` bigint, timestamp timestamp, key "
        "binary, value binary, headers array<struct<key: string, value: binary>>"
    )
    names = [part.split()[0].strip("`") for part in ddl.split(", ")[:-1]] + ["headers"]
    rows = spark.createDataFrame([tuple(one[name] for name in names[:9]) for one in messages], ddl)
    return rows.coalesce(1) if len(messages) < 50 else rows  # of the cost of a task most is that of a worker


def project_of(source, tables) -> SimpleNamespace:
    """As much of a project as decoding asks for."""
    return SimpleNamespace(sources={source.name: source}, tables_of=lambda source: tables)


def assert_paths_agree(spark, *groups: tuple) -> list[tuple[set[str], int]]:
    """fast answers a part of exact's changes, with equal rows; mapInArrow equals exact. In: messages, their source and
    its tables, of all groups in one job of Spark. Out: of each group the units that are answered, and its changes."""
    exact, fast, slow, without_loads = [], [], [], []
    for n, (messages, source, tables) in enumerate(groups):
        loads, rows = loads_of(messages, source, tables), frame(spark, messages)
        exact.append({one["unit_id"]: json_messages.read_message(one, source, tables, loads) for one in messages})
        with pytest.MonkeyPatch.context() as patched:
            if not loads:  # the rows that spans are made of: there must be none
                patched.setattr(json_fast, "load_spans", lambda rows, sources: rows)
            found = json_fast.find_loads(rows, [source], tables, json_messages.refresh_row)
        if loads:
            gap = source.options_as(json_messages.OPTIONS).load_gap_minutes
            assert full_load.assign_loads([], found, gap) == loads, source
        else:
            without_loads.append(found)
        brought = {source.name: {name: text for one in messages for name, text in one.get("lookups", {}).items()}}
        by_exact = silver_messages.exact(project_of(source, tables), json_messages, loads, brought)
        walk = json_fast.changes([source], tables, loads, brought)
        fast.append(silver_messages.walked(json_messages, rows, walk).selectExpr(f"{n} as n", "*"))
        slow.append(rows.mapInArrow(by_exact, decoded.DDL).selectExpr(f"{n} as n", "*"))
    if without_loads:
        assert functools.reduce(DataFrame.unionAll, without_loads).collect() == []
    answered, decoded_again = [set() for _ in groups], [{} for _ in groups]
    for row in functools.reduce(DataFrame.unionAll, fast).collect():
        n, row = row.n, row.asDict()
        expected = exact[n][row["unit_id"]]
        assert row["unit_id"] not in answered[n]
        assert expected["result"] == "change", row
        assert typed(comparable(row)) == typed(comparable(expected))
        answered[n].add(row["unit_id"])
    read = functools.reduce(DataFrame.unionAll, slow).where("result in ('change', 'reject')")
    for row in read.collect():
        expected = exact[row.n][row["unit_id"]]
        decoded_again[row.n][row["unit_id"]] = row["result"]
        if row["result"] == "change":
            assert typed(comparable(row.asDict())) == typed(comparable(expected))
        elif row["result"] == "reject":
            assert (row["kind"], bytes(row["raw"])) == (expected["reject"].kind, expected["reject"].raw)
    for given, expected in zip(decoded_again, exact, strict=True):
        assert given == {unit: row["result"] for unit, row in expected.items() if row["result"] != "control"}
    return [(units, sum(row["result"] == "change" for row in rows.values())) for units, rows in zip(answered, exact)]


def batch_of(messages: list[dict]) -> pa.RecordBatch:
    columns = {
        "unit_id": pa.string(),
        "source": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "value": pa.binary(),
    }
    return pa.RecordBatch.from_pylist(
        [{name: one[name] for name in columns} for one in messages], schema=pa.schema(columns.items())
    )


def walked(messages: list[dict], source, tables, loads) -> dict[str, dict]:
    """Rows of the compiled walk without Spark, by unit_id."""
    brought = {name: text for one in messages for name, text in one.get("lookups", {}).items() if text is not None}
    contracts = json_contracts.Contracts([source], tables, {source.name: brought})
    spans, batch, found = json_arrow.load_spans(loads, contracts, [source]), batch_of(messages), {}
    for answered in json_arrow.walk(contracts, spans)([batch.slice(1), batch.slice(0, 1)]):
        for row in answered.to_pylist():
            for name in ("before", "after"):
                row[name] = row[name] and variant.decode(row[name]["value"], row[name]["metadata"])
            row["change_timestamp"] = row["change_timestamp"] and row["change_timestamp"].astimezone(datetime.UTC)
            row["operation"] = json_fast.OPERATIONS[row.pop("o")]
            row["load_id"] = loads[row.pop("l")]["load_id"] if row["l"] >= 0 else row.pop("l") and None
            row["source_table"] = contracts.places[row.pop("p")][1].table_name
            found[row["unit_id"]] = row
    return found


def assert_walk_agrees(messages: list[dict], source, tables) -> int:
    """What the walk answers, exact answers the same. Out: messages answered."""
    loads = loads_of(messages, source, tables)
    found = walked(messages, source, tables, loads)
    for one in messages:
        if one["unit_id"] in found:
            exact = json_messages.read_message(one, source, tables, loads)
            assert exact["result"] == "change", (one["value"], exact)
            row = found[one["unit_id"]]
            assert typed(row) == typed({name: exact[name] for name in row}), one["value"]
    return len(found)


def broken(messages: list[dict], seed: int) -> list[dict]:
    """Each message with one byte changed, dropped or doubled, and another one's tail for a few."""
    rng, found = random.Random(seed), []
    for one in messages:
        value, at = one["value"], rng.randrange(len(one["value"]))
        new = rng.choice([b"", value[at : at + 1] * 2, *(bytes([b]) for b in b'"{}[],:0159\\\xff \n-e.tn\x00')])
        rest = value[at + 1 :] if rng.random() < 0.9 else rng.choice(messages)["value"][at:]
        found.append(one | {"value": value[:at] + new + rest})
    return found


def test_the_walk_says_the_same_as_the_exact_path():
    messages = random_messages(1500, 5)
    assert assert_walk_agrees(messages, SOURCE, TABLES) > 1400
    assert assert_walk_agrees(broken(messages, 6), SOURCE, TABLES) > 50
    assert assert_walk_agrees(broken(messages, 7), SOURCE, TABLES) > 50


def test_the_walk_reads_members_in_any_order_and_partial_columns():
    rng, messages = random.Random(8), random_messages(50, 9)

    def shuffled(value):
        return (
            {name: shuffled(value[name]) for name in rng.sample(list(value), len(value))}
            if isinstance(value, dict)
            else value
        )

    mixed = [
        one | {"value": json.dumps(shuffled(json.loads(one["value"])), ensure_ascii=False).encode()} for one in messages
    ]
    assert assert_walk_agrees(mixed, SOURCE, TABLES) == assert_walk_agrees(messages, SOURCE, TABLES) > 40


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_walk_says_the_same_of_a_case_and_of_it_broken(path):
    case = test_cases.load(path)
    messages = [test_cases._message(written) for written in case["messages"]]
    for n, one in enumerate(messages):
        one["unit_id"] = str(n)
    answered = assert_walk_agrees(messages, case["source"], case["tables"])
    assert answered == len(messages) or not path.stem.startswith("ok_plain")
    values = [one for one in messages if one["value"]]
    many = [one | {"unit_id": str(n), "offset": n} for n, one in enumerate(values * 40)]
    if many:
        assert_walk_agrees(broken(many, 1), case["source"], case["tables"])


NAMES = [
    "ID",
    "顧客名",
    "a b",
    'say "x"',
    "back\\slash",
    "#",
    "$x",
    "a.b",
    "tab\tname",
    "é",
    "Ａ",
    "ｱ",
    "\U00020bb7",
    "\U00020000x",
    "🎈",
    "'",
    "`",
    *(f"C{n}" for n in range(40)),
]


def named_table(names: list[str]) -> Table:
    """A table whose columns go by any name."""
    table = Table(
        table="SHOP.ITEM",
        name="item",
        key=["ID"],
        columns=[{"name": f"C{n}" if n else "ID", "type": "int"} for n in range(len(names))],
    )
    for column, name in zip(table.columns, names):
        column.name = name
    return table


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_column_of_any_name_is_carried_exactly(is_ascii):
    tables, row = {"SHOP.ITEM": named_table(NAMES)}, {name: n for n, name in enumerate(NAMES)}
    value = qlik.value(
        {"operation": "INSERT", "after": row, "change_seq": "2026010203040500" + "0" * 19},
        NAMES,
        masks=False,
        dumps=lambda body: json.dumps(body, ensure_ascii=is_ascii),
    )
    assert json_messages.read_message(message(value), SOURCE, tables, [])["after"] == row
    assert_walk_agrees([message(value)], SOURCE, tables)  # in doubt where a name is spelt with escapes
    plain = {name: n for name, n in row.items() if not set(name) & set('"\\\t')}
    value = qlik.value(
        {"operation": "INSERT", "after": plain, "change_seq": "2026010203040500" + "0" * 19},
        list(plain),
        masks=False,
        dumps=lambda body: json.dumps(body, ensure_ascii=is_ascii),
    )
    assert is_ascii or assert_walk_agrees([message(value)], SOURCE, tables) == 1


def test_spark_finds_every_column_of_an_image_by_its_name(spark):
    """By halves, in an order of its own: among many, a name beyond the BMP was null."""
    row = {name: n for n, name in enumerate(NAMES)}
    value, names = variant.encode(row)
    image = pa.RecordBatch.from_arrays(
        [pa.StructArray.from_arrays([pa.array([value]), pa.array([names])], fields=list(codec.IMAGE))], names=["image"]
    )
    images = spark.range(1).coalesce(1).mapInArrow(lambda _: iter([image]), "image variant")
    asked = [name for name in NAMES if not set(name) & set("'\"`\\\t")]
    found = images.selectExpr(*(f"variant_get(image, '$[\"{name}\"]', 'int')" for name in asked)).first()
    assert list(found) == [row[name] for name in asked]


def test_both_paths_say_the_same_of_every_case(spark):
    """Cases of one set of contracts and options share a group; the plain ones are all answered by the fast path."""
    cases, groups, plain = {}, [], []
    for path in PATHS:
        case = test_cases.load(path)
        brought = [written.get("lookups") for written in case["messages"] if "lookups" in written]
        cases.setdefault(repr((case["tables"], case["source"], brought)), []).append((path.stem, case))
    for of_group in cases.values():
        messages, are_plain = [], set()
        for hour, (name, case) in enumerate(of_group):
            for written in case["messages"]:
                one = test_cases._message(written)
                one |= {
                    "offset": len(messages),
                    "unit_id": f"case/{len(messages)}",
                    "timestamp": one["timestamp"] and one["timestamp"] + datetime.timedelta(hours=9 * hour),
                }
                messages.append(one)
                are_plain |= {one["unit_id"]} if name.startswith("ok_plain") else set()
        groups.append((messages, of_group[0][1]["source"], of_group[0][1]["tables"]))
        plain.append(are_plain)
    for (answered, _), are_plain in zip(assert_paths_agree(spark, *groups), plain, strict=True):
        assert are_plain <= answered, sorted(are_plain - answered)


def test_both_paths_say_the_same_of_random_streams_whole_and_damaged(spark):
    random_ones = random_messages(400, 1)
    damaged = broken(random_messages(300, 3), 2)
    [(answered, changes), _] = assert_paths_agree(spark, (random_ones, SOURCE, TABLES), (damaged, SOURCE, TABLES))
    assert changes == 400 and len(answered) > 300


def test_a_batch_that_is_too_large_for_one_column_is_walked_in_pieces(monkeypatch):
    messages = random_messages(50, 12)
    loads = loads_of(messages, SOURCE, TABLES)
    whole = walked(messages, SOURCE, TABLES, loads)
    longest = max(len(one["value"]) for one in messages if one["unit_id"] in whole)
    monkeypatch.setattr(json_arrow, "LEN_MOST", longest + 1000)
    assert typed(walked(messages, SOURCE, TABLES, loads)) == typed(whole)
    monkeypatch.setattr(json_arrow, "LEN_MOST", 100)  # and a message that is too long alone is left to the exact path
    assert walked(messages, SOURCE, TABLES, loads) == {}


def test_names_of_a_wide_table_count_in_the_size_of_a_piece(monkeypatch):
    """Each image has all of them with it, however short its message is."""
    columns = [{"name": "ID", "type": "int"}, {"name": "N" * 5000, "type": "string"}]
    tables = {"SHOP.ITEM": Table(table="SHOP.ITEM", name="item", key=["ID"], columns=columns)}
    headers = f'"operation":"INSERT","changeSequence":"{7:035d}","timestamp":"2026-01-02T03:04:05.250"'
    texts = (f'{{"data":{{"ID":{n}}},"beforeData":null,"headers":{{{headers}}}}}' for n in range(40))
    messages = [message(text.encode(), n) for n, text in enumerate(texts)]
    whole, pieces = walked(messages, SOURCE, tables, []), []
    monkeypatch.setattr(json_arrow, "LEN_MOST", 60_000)
    made = json_arrow._walked
    monkeypatch.setattr(json_arrow, "_walked", lambda batch, *of: pieces.append(len(batch)) or made(batch, *of))
    assert len(whole) == 40 and typed(walked(messages, SOURCE, tables, [])) == typed(whole)
    assert max(pieces) <= 12 and sum(pieces) == 40


@pytest.mark.parametrize("value", [b'{"type":"MD"}', b'{"type":"MD","message":null}', b"[]"])
def test_a_metadata_message_without_a_list_brings_nothing(value):
    assert json_messages.brought({"value": value}) == {}


@pytest.mark.parametrize(
    ("option", "at"),
    [
        ("first", "1970-01-01T00:00:00"),
        ("20260102030405", "2026-01-02T03:04:05"),
        ("2026010203040567", "2026-01-02T03:04:05.670000"),
        ("modified", "2026-01-02T03:04:05.678901"),
        ("name:.*_(?P<time>[0-9]{14})[.].*", "2026-03-04T05:06:07"),
        ("name:.*_(?P<time>[0-9]{8}).*", None),  # no time of 14 digits
        ("member:headers.timestamp", None),  # each message tells its own
    ],
)
def test_a_file_tells_when_its_load_began(option, at):
    found = load_time.of_file(load_time.checked(option), "landing/a_b/load_20260304050607.jsonl", START)
    assert found == (at and datetime.datetime.fromisoformat(at).replace(tzinfo=datetime.UTC))


@pytest.mark.parametrize(
    "option", ["", "last", "20260231000000", "19000101000000", "name:[0-9]+", "name:(", "member:a."]
)
def test_a_load_time_that_cannot_be_meant_is_refused(option):
    with pytest.raises(ValueError, match=r"load_time"):
        full_load.Options(load_time=option)


def test_a_source_whose_loads_lack_a_time_says_so_before_its_first_batch(tmp_path):
    """Of a broker, and of Parquet files, each message has one."""
    (tmp_path / "landing").mkdir()
    source = {"codec": "qlik_json", "tables": {"landing/*": "DEPOT.ITEMS"}}
    lines = {"transport": "lines", "path": "landing/*.jsonl"}
    project = projects.make(
        tmp_path,
        {
            "lacks": source | {"from": lines},
            "has": source | {"from": lines, "options": {"load_time": "modified"}},
            "parquet": source | {"from": "landing/*.parquet"},
        },
    )
    said = SimpleNamespace(lines=[], say=lambda line: said.lines.append(line))
    say_what_loads_lack(project, Plan(1, [{"source": name, "batch_id": 1} for name in project.sources]), said)
    assert [line["source"] for line in said.lines] == ["lacks"]
    assert "option load_time" in said.lines[0]["full_loads"]
    found = [finding for finding in doctor.examine(tmp_path) if finding.what.startswith("full loads of")]
    assert [(one.what, one.is_good) for one in found] == [("full loads of lacks", True)]
    assert found[0].found == said.lines[0]["full_loads"]

    value = qlik.value(
        {"operation": "REFRESH", "after": {"ITEM_ID": 1, "NAME": "a", "PRICE": 1}}, ["ITEM_ID", "NAME", "PRICE"]
    )
    file = tmp_path / "landing" / "1.jsonl"
    file.write_bytes(value + b"\n")
    os.utime(file, (1767400000, 1767400000))
    [(_, reject)] = decode.decode_file(project, file, "lacks")
    assert (reject["kind"], "option load_time" in reject["expected"]) == ("missing_change_seq", True)
    [(_, row)] = decode.decode_file(project, file, "has")
    assert (row["load_id"], row["change_seq"][:16]) == ("DEPOT.ITEMS@2026010300264000", "2026010300264000")
