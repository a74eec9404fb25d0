"""goldengate_json: the compiled walk of the operation model says what the exact path says, of cases and of random
messages, and it is sure of the plain ones.

What single messages mean is in tests/cases/goldengate_json.
"""

import datetime
import decimal
import json
import random

import pytest

from inlet.codecs.goldengate.json import arrow, contracts, fast, messages
from inlet.fields import variant
from inlet.silver import messages as silver_messages
from inlet.source import Source
from inlet.table import Table
from tests import test_cases
from tests.encode import goldengate_json
from tests.test_qlik_json import batch_of, broken, comparable, frame, typed

COLUMNS = {
    "ID": "bigint",
    "NAME": "string",
    "PRICE": "decimal(9,2)",
    "STOCK": "int",
    "SOLD_AT": "timestamp",
    "MADE_AT": "timestamp_ntz",
    "DUE": "date",
    "IS_NEW": "boolean",
    "WEIGHT": "double",
}
TABLE = Table(
    table="SHOP.ITEM",
    name="item",
    key=["ID"],
    columns=[{"name": name, "type": type_, "nullable": name != "STOCK"} for name, type_ in COLUMNS.items()],
)
PATHS = [path for path in test_cases.CASES if path.parent.name == "goldengate_json"]
AS_FAST = ("ok_published_operations", "ok_null_and_absent", "ok_key_change", "ok_pos_shifted")


def source_of(**options) -> Source:
    fields = {"from": "landing", "tables": {"PDB1.SHOP.*": "SHOP.*"}}
    return Source(name="shop", codec="goldengate_json", options=options, **fields)


SOURCE = source_of()


def message(value: bytes | None, n: int = 0) -> dict:
    return test_cases._message({"value": value, "offset": n}) | {"source": "shop", "unit_id": f"shop/{n}"}


def numbered(values: list[bytes], of: str = "shop") -> list[dict]:
    return [message(value, n) | {"source": of} for n, value in enumerate(values)]


def random_row(rng: random.Random, key: int) -> dict:
    at = datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=rng.randrange(10**15))
    between = rng.choice(" T:")
    row = {
        "ID": key,
        "NAME": rng.choice(["", "Köln", 'a "quoted" \\ text', "日本 🎈", "table", "x" * 300]),
        "PRICE": decimal.Decimal(rng.randrange(10**9)).scaleb(-2),
        "STOCK": rng.choice([rng.randrange(-(2**31), 2**31), str(rng.randrange(1000))]),
        "SOLD_AT": f"{at:%Y-%m-%d}{between}{at:%H:%M:%S.%f}" + rng.choice(["", "000", "Z"]),
        "MADE_AT": f"{at:%Y-%m-%d}{between}{at:%H:%M:%S}" + rng.choice(["", ".5"]),
        "DUE": f"{at:%Y-%m-%d}" + rng.choice(["", ":00:00:00", " 00:00:00.000"]),
        "IS_NEW": rng.random() < 0.5,
        "WEIGHT": rng.randrange(-(10**6), 10**6) / 64,
    }
    return {name: value if name in ("ID", "STOCK") or rng.random() < 0.9 else None for name, value in row.items()}


def random_messages(num: int, seed: int) -> list[dict]:
    """Each operation, whole and partial images, nulls, tokens, changes of the key, tables by two names."""
    rng, values = random.Random(seed), []
    for n in range(num):
        operation = rng.choice(["INSERT", "UPDATE", "UPSERT", "DELETE", "TRUNCATE"])
        said = {"operation": operation, "seqno": n // 100, "rba": 1000 + n, "op_ts": f"2026-01-02 03:04:{n % 60:02d}.5"}
        images = {
            "INSERT": ["after"],
            "UPDATE": ["before", "after"],
            "UPSERT": ["before", "after"],
            "DELETE": ["before"],
        }.get(operation, [])
        for image in images if rng.random() < 0.8 else images[-1:]:
            row = random_row(rng, n + rng.randrange(2))
            kept = {"ID", *rng.sample(list(row), rng.randrange(len(row)))} if rng.random() < 0.3 else set(row)
            said[image] = {name: value for name, value in row.items() if name in kept}
        names = rng.sample(["R", "TK-1", "XID", "B", "LOGCSN"], rng.randrange(5)) if rng.random() < 0.5 else []
        said["tokens"] = {name: rng.choice(["", "AAA", "日本", "x" * 90]) for name in names}
        values.append(goldengate_json.value(said, rng.choice(["SHOP.ITEM", "PDB1.SHOP.ITEM"]), "operation", ("ID",)))
    return numbered(values)


def walked(given: list[dict], source: Source, tables: dict, *sources: Source) -> dict[str, dict]:
    """Rows of the compiled walk without Spark, by unit_id."""
    known, batch, found = contracts.Contracts([source, *sources], tables), batch_of(given), {}
    for answered in arrow.walked(known)([batch.slice(1), batch.slice(0, 1)]):
        for row in answered.to_pylist():
            for name in ("before", "after", "header"):
                row[name] = row[name] and variant.decode(row[name]["value"], row[name]["metadata"])
            row["change_timestamp"] = row["change_timestamp"] and row["change_timestamp"].astimezone(datetime.UTC)
            row["operation"] = contracts.OPERATIONS[row.pop("o")]
            place = row.pop("p")
            earlier, table = known.contracts[place].earlier, known.places[place][1]
            row |= {"source_schema": table.schema_name, "source_table": table.table_name}
            row |= {"table_version": table.version, "unit_offset": 0, "change_mask": None, "column_states": None}
            if not earlier or row["change_seq"] >= earlier[-1].until:
                found[row["unit_id"]] = row
    return found


def exact(one: dict, source: Source, tables: dict) -> dict | None:
    """The change that a message is and nothing else, by the exact path; None where it is anything else."""
    decoded = messages.decode_message(one, source, tables, [])
    is_alone = len(decoded.changes) == 1 and not (decoded.rejects or decoded.controls or decoded.bytes_framing)
    return decoded.changes[0] if is_alone else None


def assert_walk_agrees(given: list[dict], source: Source = SOURCE, tables: dict | None = None) -> int:
    """What the walk answers, the exact path answers the same. Out: messages answered."""
    tables = tables or {TABLE.table: TABLE}
    found = walked(given, source, tables)
    for one in given:
        if row := found.get(one["unit_id"]):
            expected = exact(one, source, tables)
            assert expected is not None, one["value"]
            assert typed(row) == typed({name: expected.get(name) for name in row}), one["value"]
    return len(found)


def test_the_walk_says_the_same_as_the_exact_path_and_is_sure_of_plain_messages():
    given = random_messages(1500, 5)
    assert all(exact(one, SOURCE, {TABLE.table: TABLE}) for one in given)
    assert assert_walk_agrees(given) == 1500
    assert assert_walk_agrees(broken(given, 6)) > 50
    assert assert_walk_agrees(broken(given, 7)) > 50


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_walk_says_the_same_of_a_case_and_of_it_broken(path):
    case = test_cases.load(path)
    given = [test_cases._message(written) | {"unit_id": str(n)} for n, written in enumerate(case["messages"])]
    answered = assert_walk_agrees(given, case["source"], case["tables"])
    assert answered == len(given) or path.stem not in AS_FAST
    values = [one["value"] for one in given if one["value"]]
    if values:
        assert_walk_agrees(broken(numbered(values * 40, "case"), 1), case["source"], case["tables"])


POSITIONS = [
    "0",
    "00",
    "-1",
    "-0",
    "9",
    "00000000010000002052",
    "-0000000010000002052",
    "00000000000010000002052",
    "9999999999999999999",
    "10000000000000000000",
    "0000000000-000000001",
    "1-2053",
    "1" * 40,
    "0" * 40,
    "0" * 41,
    "+1",
    "1.0",
    " 1",
    "",
]


def of_position(text: str, n: int = 0) -> dict:
    value = f'{{"table":"SHOP.ITEM","op_type":"I","pos":{text},"after":{{"ID":{n},"STOCK":1}}}}'
    return message(value.encode(), n)


@pytest.mark.parametrize("shift", [0, 1, -1, 10**17])
def test_both_paths_read_a_position_alike(shift):
    given = [of_position(text, n) for n, text in enumerate([f'"{text}"' for text in POSITIONS] + POSITIONS)]
    source = source_of(sequence_shift=shift)
    read = [one for one in given if exact(one, source, {TABLE.table: TABLE})]
    assert len(read) - 2 <= assert_walk_agrees(given, source) <= len(read)  # in doubt where a minus is between
    assert read or shift == 10**17


@pytest.mark.parametrize(
    "op_ts",
    [
        "2026-01-02 03:04:05",
        "2026-01-02:03:04:05.5",
        "2026-01-02T03:04:05.123456789",
        "2026-01-02T03:04:05Z",
        "2026-01-02 03:04:05 Z",
        "2026-01-02 03:04:05+09:00",
        "2026-02-29 03:04:05",
        "0000-01-01 00:00:00",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999999",
        "2026-01-02 24:00:00",
        "2026-01-02 03:04:60",
        "2026-01-02 03:04:05.",
        "2026-01-02",
        "",
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_both_paths_read_a_time_alike(op_ts, zone):
    value = f'{{"table":"SHOP.ITEM","op_type":"D","op_ts":"{op_ts}","pos":"7","before":{{"ID":1}}}}'
    answered = assert_walk_agrees([message(value.encode())], source_of(time_zone=zone))
    assert answered or zone != "UTC" or op_ts[-2:] not in ("05", ".5", "89", "5Z") or "02-29" in op_ts


@pytest.mark.parametrize(
    ("options", "is_walked"),
    [
        ({"members": {"pos": "position", "before": "old", "after": "new", "op_type": "op", "table": "t"}}, True),
        ({"members": {"xid": "xid"}, "transaction_token": "XID"}, True),
        ({"header_members": ["key_columns", "csn", "a"]}, True),
        ({"operations": {"ins": "INSERT", "U": "UPSERT", "DDL": "DELETE"}}, True),
        ({"transaction_token": "XID", "sequence_shift": 7}, True),
        ({"flatten_delimiter": "."}, True),
        ({"null_means": "null"}, True),
        ({"null_means": "missing"}, True),
        ({"absent_means": "null", "null_means": "missing"}, True),
        ({"time_zone": "Asia/Tokyo"}, False),
        ({"members": {"pos": "table"}}, False),
        ({"header_members": ["pos"]}, False),
    ],
    ids=str,
)
def test_both_paths_read_the_options_alike(options, is_walked):
    source, rng, given = source_of(**options), random.Random(3), []
    names = source.options_as(messages.Options).names
    for n, one in enumerate(random_messages(200, 4)):
        body = json.loads(one["value"], parse_float=decimal.Decimal)
        more = {"key_columns": ["ID", 1, None, True], "csn": rng.choice([7, "7", None]), "xid": rng.choice([5, "a.b"])}
        known = [name for name in more if name in names or name in options.get("header_members", [])]
        body |= {name: more[name] for name in known if rng.random() < 0.7}
        if body["op_type"] == "I" and "ins" in options.get("operations", {}):
            body["op_type"] = rng.choice(["I", "ins", "INSERT"])
        spelt = {names.get(name, name): value for name, value in body.items()}
        shuffled = {name: spelt[name] for name in rng.sample(list(spelt), len(spelt))}
        given.append(message(goldengate_json.text(shuffled).encode(), n))
    read = sum(exact(one, source, {TABLE.table: TABLE}) is not None for one in given)
    assert assert_walk_agrees(given, source) == read * is_walked and (read > 100 or not is_walked)


def test_sources_and_tables_in_one_batch_are_kept_apart():
    other = Table(
        table="SHOP.OTHER",
        name="other",
        key=["K"],
        columns=[{"name": f"C{n}", "type": "string"} for n in range(20)] + [{"name": "K", "type": "string"}],
    )
    tables = {TABLE.table: TABLE, other.table: other}
    names = {"pos": "p", "table": "T", "before": "after", "after": "before"}
    options = [{}, {"members": names, "header_members": ["x", "a"]}, {"header_members": ["pos"]}, {"sequence_shift": 3}]
    sources = [source_of(**of).model_copy(update={"name": f"s{n}"}) for n, of in enumerate(options)]
    given = []
    for n, one in enumerate(random_messages(300, 6)):
        body, source = json.loads(one["value"], parse_float=decimal.Decimal), sources[n % len(sources)]
        if n % 3 == 0:
            images = {name: {"K": str(n), f"C{n % 20}": "x"} for name in ("before", "after") if name in body}
            body |= {"table": "SHOP.OTHER"} | images
        own = source.options_as(messages.Options).names
        value = {own[name]: member for name, member in body.items()} | ({"x": n, "a": ["b"]} if n % 4 == 1 else {})
        given.append(message(goldengate_json.text(value).encode(), n) | {"source": source.name})
    together, apart = walked(given, sources[0], tables, *sources[1:]), {}
    for source in sources:
        own = [one for one in given if one["source"] == source.name]
        apart |= walked(own, source, tables)
        assert assert_walk_agrees(own, source, tables) == len(own) * (source.name != "s2")
    assert typed(together) == typed(apart)


@pytest.mark.parametrize("num", [0, 1, 2, 47, 48, 49, 100])
@pytest.mark.parametrize("length", [0, 1, 62, 63, 64, 255, 256, 66_000])
def test_a_header_of_any_size_is_carried_exactly(num, length):
    names = [f"{n * 7919 % 1000:03d}" for n in range(num)]
    bodies = [
        {"tokens": dict.fromkeys(names, "x" * length)},
        {"tokens": {name + "n" * length: None for name in names}},
        {"primary_keys": [1] * num + ["k" * length] * (num > 0)},
        {
            "primary_keys": ["k"] * (num // 2),
            "tokens": dict.fromkeys(names[: num - num // 2], 1),
            "current_ts": "c" * length,
        },
    ]
    own = {"table": "SHOP.ITEM", "op_type": "D", "pos": "7", "before": {"ID": 1}}
    given = numbered([goldengate_json.text(own | body).encode() for body in bodies])
    answered = assert_walk_agrees(given)
    assert answered == 4 if num < 48 and num * length < 60_000 else answered >= (length < 60_000 and num < 48)


def test_a_member_that_is_there_twice_or_unknown_is_in_doubt():
    plain = random_messages(20, 8)
    assert assert_walk_agrees(plain) == 20
    for more in (b'{"pos":"1",', b'{"other":1,', b'{"after":null,"after":null,', b'{"before.ID":1,', b" {", b"[{"):
        changed = [one | {"value": more + one["value"][1:]} for one in plain]
        assert assert_walk_agrees(changed) == 0
    assert assert_walk_agrees([one | {"value": one["value"] + b" "} for one in plain]) == 0


def test_a_table_is_found_by_the_member_alone_and_not_by_what_spells_it():
    images = b'"before":{"NAME":"\\"table\\":\\"x\\"","ID":1},"after":{"ID":1,"NAME":"table"}'
    values = [
        b'{"op_type":"U","pos":"1",' + images + b',"table" : "SHOP.ITEM"}',
        b'{"op_type":"U","pos":"1","tokens":{"table":"SHOP.ITEM"},' + images + b',"table":"SHOP.OTHER"}',
        b'{"table":"SHOP.ITEM","op_type":"U","pos":"1",' + images + b"}",
    ]
    assert assert_walk_agrees(numbered(values)) == 2


@pytest.mark.smoke
def test_both_paths_say_the_same_in_spark(spark):
    given = random_messages(200, 1) + [message(value, 1000 + n) for n, value in enumerate((None, b"", b"{}", b"x"))]
    tables, found = {TABLE.table: TABLE}, {}
    rows = frame(spark, [one | {"key": None} for one in given])
    for row in silver_messages.walked(messages, rows, fast.changes([SOURCE], tables, [])).collect():
        said = row.asDict()
        header = said.pop("header")
        found[row.unit_id] = comparable(said) | {"header": variant.decode(bytes(header.value), bytes(header.metadata))}
    assert len(found) == 200
    for one in given[:200]:
        expected = exact(one, SOURCE, tables)
        at = expected["change_timestamp"].replace(tzinfo=None)
        row = found[one["unit_id"]]
        assert typed(row) == typed({name: expected.get(name) for name in row} | {"change_timestamp": at})
