"""The demo's business and its feeds: the same for a seed, rich enough, and consistent with a fold of its own
changes.
"""

import hashlib
import importlib.util
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from tests.business import Carrier, Depot, Shop

ROOT = Path(__file__).resolve().parents[1]


def feed_module():
    spec = importlib.util.spec_from_file_location("feed", ROOT / "infra" / "local" / "feed.py")
    module = sys.modules["feed"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shop() -> Shop:
    shop = Shop(seed=1)
    shop.run(20_000)
    return shop


@pytest.fixture(scope="module")
def depot() -> Depot:
    depot = Depot(seed=1, prefix="TK", has_nulls=True)
    depot.run(10_000)
    return depot


@pytest.fixture(scope="module")
def carrier() -> Carrier:
    carrier = Carrier(seed=1)
    carrier.run(4_000)
    return carrier


def fold(business) -> dict:
    """What the changes leave behind, by the rules for complete order: supplied columns replace, a changed key moves the
    row.
    """
    tables = {table: {} for table in business.db.keys}
    for c in business.db.log:
        rows, key = tables[c.table], lambda image: business.db.key_of(c.table, image)
        old = {} if c.operation in ("REFRESH", "INSERT") else rows.pop(key(c.before or c.after))
        if c.operation != "DELETE":
            new = old | c.after
            assert key(new) not in rows
            rows[key(new)] = new
    return tables


@pytest.mark.parametrize("name", ["shop", "depot", "carrier"])
def test_the_changes_fold_to_the_expected_state(name, request):
    business = request.getfixturevalue(name)
    assert fold(business) == business.db.tables


def test_a_seed_gives_the_same_business_and_another_seed_another():
    logs = []
    for seed in (7, 7, 8):
        shop = Shop(seed, num_customers=20, num_orders=20)
        shop.run(500)
        logs.append(shop.db.log)
    assert logs[0] == logs[1] != logs[2]


def test_transactions_are_numbered_counted_and_closed(shop, depot, carrier):
    for business in (shop, depot, carrier):
        changes = [c for c in business.db.log if c.transaction]
        sizes = Counter(c.transaction for c in changes)
        assert list(sizes) == list(range(1, len(sizes) + 1))
        counters = [c.counter for c in changes]
        assert counters == [n for size in sizes.values() for n in range(1, size + 1)]
        assert [c.is_last for c in changes] == [c.counter == sizes[c.transaction] for c in changes]
        assert all(a.at <= b.at for a, b in zip(business.db.log, business.db.log[1:]))


def test_the_shop_does_everything_that_a_source_can_do(shop):
    changes = [c for c in shop.db.log if c.transaction]
    assert len(changes) >= 20_000
    key = shop.db.key_of
    updates = [c for c in changes if c.operation == "UPDATE"]
    seen = Counter(c.operation for c in changes)
    seen["key change"] = sum(key(c.table, c.before) != key(c.table, c.after) for c in updates)
    seen["nothing changed"] = sum(c.before == c.after for c in updates)
    seen["partly supplied"] = sum(
        len(c.after) < len(shop.db.tables[c.table][next(iter(shop.db.tables[c.table]))]) for c in updates
    )
    several = Counter((c.transaction, c.table) for c in changes)
    seen["transactions over several tables"] = sum(n > 1 for n in Counter(t for t, _ in several).values())
    assert all(
        seen[what] >= 50
        for what in (
            "INSERT",
            "UPDATE",
            "DELETE",
            "key change",
            "nothing changed",
            "partly supplied",
            "transactions over several tables",
        )
    ), seen


def test_the_money_adds_up_except_for_the_underpaid(shop):
    lines, payments = Counter(), Counter()
    for (order_id, _), row in shop.db.tables["SHOP.ORDER_LINES"].items():
        lines[order_id] += row["AMOUNT"]
    for (order_id, _), row in shop.db.tables["SHOP.PAYMENTS"].items():
        payments[order_id] += row["AMOUNT"]
    orders = shop.db.tables["SHOP.ORDERS"]
    assert {o for (o,), row in orders.items() if row["TOTAL"] != lines[o]} == set()
    assert {
        o for (o,), row in orders.items() if row["STATUS"] != "open" and payments[o] != row["TOTAL"]
    } == shop.underpaid
    assert len(shop.underpaid) >= 5


def test_a_depot_with_nulls_has_some_and_one_without_has_none(depot):
    other = Depot(seed=1, prefix="OS", has_nulls=False)
    other.run(1_000)
    nulls = [sum(value is None for c in d.db.log if c.after for value in c.after.values()) for d in (depot, other)]
    assert nulls[0] > 100 and nulls[1] == 0


def test_rows_have_the_columns_of_their_contracts_in_order(shop, depot, carrier):
    contracts = {
        said["table"]: said
        for said in map(yaml.safe_load, (p.read_text() for p in (ROOT / "pipelines/tables").glob("*.yml")))
    }
    for business in (shop, depot, carrier):
        for table, rows in business.db.tables.items():
            assert tuple(contracts[table]["key"]) == business.db.keys[table]
            assert [c["name"] for c in contracts[table]["columns"]] == list(next(iter(rows.values())))


def test_no_column_that_is_not_nullable_is_null(shop, depot, carrier):
    contracts = {
        said["table"]: said
        for said in map(yaml.safe_load, (p.read_text() for p in (ROOT / "pipelines/tables").glob("*.yml")))
    }
    needed = {
        table: {c["name"] for c in said["columns"] if c.get("nullable") is False} for table, said in contracts.items()
    }
    for c in shop.db.log + depot.db.log + carrier.db.log:
        assert not {name for name, value in (c.after or {}).items() if value is None} & needed[c.table], c


def test_a_feed_is_the_same_for_a_seed_and_is_delivered_batch_by_batch(tmp_path):
    feed = feed_module()
    one, two = (
        feed.write_feed(tmp_path / "one", seed=3, scale=0.05),
        feed.write_feed(tmp_path / "two", seed=3, scale=0.05),
    )
    assert one.batches == two.batches and len(one.batches) == 4

    def digests(folder):
        return {
            p.relative_to(folder): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in folder.rglob("*")
            if p.suffix != ".parquet" and p.is_file()
        }

    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    moved = [path for batch in (1, 2, 3, 4) for path in one.deliver(batch)]
    assert all(path.exists() for path in moved) and {
        path.relative_to(tmp_path / "one" / "landing").parts[0] for path in moved
    } == {"shop", "returns", "depot_tokyo", "depot_osaka", "depot_nagoya", "carrier"}
    assert not [path for path in (tmp_path / "one" / "staging").rglob("*") if path.is_file()]


def test_a_feed_holds_what_a_lakehouse_must_survive(tmp_path):
    said = feed_module().write_feed(tmp_path, seed=3, scale=0.05)
    rejected = {"shop": 2, "returns": 1, "depot_tokyo": 1, "depot_osaka": 1, "depot_nagoya": 0, "carrier": 1}
    assert said.num_rejected == rejected
    assert said.num_repeats["shop"] and said.num_repeats["depot_osaka"]
    assert not [key for key in said.expected["DEPOT.WAREHOUSES"] if key[0] == "depot_osaka"], (
        "Osaka's warehouses are closed"
    )
    names = [path.name for batch in said.batches for path in batch]
    assert names.count("ct000000001") == 2, "a file of the trail grows"
    assert [name for name in names if name.endswith(".resend.lxg")]
    assert isinstance(next(iter(said.expected["SHOP.ORDERS"].values()))["TOTAL"], Decimal)
