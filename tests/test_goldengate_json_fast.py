"""goldengate_json: the compiled walk of the operation model says what the exact path says, of cases and of random
messages, and it is sure of the plain ones.

What single messages mean is in tests/cases/goldengate_json.
"""

import datetime
import decimal
import random

import pytest

from inlet.codecs.goldengate.json import arrow, contracts, messages
from inlet.fields import variant
from inlet.source import Source
from inlet.table import Table
from tests import test_cases
from tests.encode import goldengate_json
from tests.test_qlik_json import batch_of, broken, typed

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


def walked(given: list[dict], source: Source, tables: dict) -> dict[str, dict]:
    """Rows of the compiled walk without Spark, by unit_id."""
    known, batch, found = contracts.Contracts([source], tables), batch_of(given), {}
    for answered in arrow.walked(known)([batch.slice(1), batch.slice(0, 1)]):
        for row in answered.to_pylist():
            for name in ("before", "after", "header"):
                row[name] = row[name] and variant.decode(row[name]["value"], row[name]["metadata"])
            row["change_timestamp"] = row["change_timestamp"] and row["change_timestamp"].astimezone(datetime.UTC)
            row["operation"] = contracts.OPERATIONS[row.pop("o")]
            table = known.places[row.pop("p")][1]
            row |= {"source_schema": table.schema_name, "source_table": table.table_name}
            row |= {"table_version": table.version, "unit_offset": 0, "change_mask": None, "column_states": None}
            if not known.contracts[0].earlier or row["change_seq"] >= known.contracts[0].earlier[-1].until:
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
