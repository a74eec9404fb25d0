"""Silver: every record and byte accounted for, a change written once, nothing visible before the ledger has it."""

import json

import pytest

from inlet import bronze, silver, transaction
from inlet.batch import Account
from inlet.errors import AccountingError
from tests import projects
from tests.encode import linkexpress, qlik

SHOP = {"codec": "qlik_json", "from": "landing/silver_shop/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
COLUMNS = [c["name"] for c in projects.ITEMS["columns"]]


def test_a_batch_that_does_not_add_up_is_an_error_that_names_both_sides():
    Account(num_records=3, num_changes=2, num_rejected=1, bytes_landed=30, bytes_decoded=20, bytes_rejected=10).balance("depot", 1)
    with pytest.raises(AccountingError, match="3 records landed, 2 changes .* = 2; 30 bytes landed, 20 accounted for"):
        Account(num_records=3, num_changes=2, bytes_landed=30, bytes_decoded=20).balance("depot", 1)


def message(number: int, item: int, name: str) -> bytes:
    row = {"ITEM_ID": item, "NAME": name, "PRICE": None}
    return qlik.value({"operation": "INSERT", "after": row, "change_seq": f"20260102030405{number:021d}"}, COLUMNS)


def turned(value: bytes) -> bytes:
    """The message with its headers in the opposite order."""
    said = json.loads(value)
    said["message"]["headers"] = dict(reversed(said["message"]["headers"].items()))
    return json.dumps(said).encode()


def land(project, spark) -> int:
    new = bronze.plan(project, list(project.sources.values()), bronze.landed(project))
    bronze.land(project, spark, new)
    return new.batch_id


def test_repeats_conflicts_and_a_crash_before_the_ledger(spark, lakehouse, tmp_path):
    project = projects.make(tmp_path, {"silver_shop": SHOP, "silver_depot": {**projects.DEPOT, "from": "landing/silver_depot/*.lxg"}},
                            lakehouse=lakehouse)
    for source in project.sources:
        (tmp_path / "landing" / source).mkdir(parents=True)
    records = linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
    (tmp_path / "landing" / "silver_depot" / "20260105031500_000012.lxg").write_bytes(records)
    qlik.write_parquet(qlik.rows([message(1, 1, "a"), message(2, 2, "b"), message(2, 2, "b"), b"{broken"], "items"),
                       tmp_path / "landing" / "silver_shop" / "1.parquet")
    first = land(project, spark)
    close, silver._close = silver._close, lambda batch: None
    try:
        silver.run(project, spark, first)                        # dies before the ledger
    finally:
        silver._close = close
    assert first in silver.pending(project)
    accounts = silver.run(project, spark, first)                 # and is finished by the next run
    assert first not in silver.pending(project)
    shop, depot = accounts["silver_shop"], accounts["silver_depot"]
    assert (shop.num_records, shop.num_changes, shop.num_repeats, shop.num_rejected) == (4, 2, 1, 1)
    assert (depot.num_records, depot.num_changes, depot.num_control, depot.num_rejected) == (6, 4, 2, 0)

    qlik.write_parquet(qlik.rows([message(1, 1, "other"), message(3, 3, "c"), turned(message(3, 3, "c")), message(2, 2, "b")], "items", offset=10),
                       tmp_path / "landing" / "silver_shop" / "2.parquet")
    (tmp_path / "landing" / "silver_depot" / "20260105031500_000012.resend.lxg").write_bytes(records)
    accounts = silver.run(project, spark, land(project, spark))
    shop, depot = accounts["silver_shop"], accounts["silver_depot"]
    assert (shop.num_changes, shop.num_repeats, shop.num_rejected) == (1, 2, 1)
    assert (depot.num_changes, depot.num_repeats, depot.num_control) == (0, 4, 2)

    found = spark.sql("select change_seq, cast(after:NAME as string) as name from silver.changes where source = 'silver_shop' order by 1").collect()
    assert [row.name for row in found] == ["a", "b", "c"]
    kinds = spark.sql("select kind, raw from silver.rejects where source = 'silver_shop' order by batch_id").collect()
    assert [(row.kind, bytes(row.raw)) for row in kinds] == [("invalid_json", b"{broken"), ("conflicting_duplicate", message(1, 1, "other"))]
    transactions = spark.sql("select num_changes, state from silver.transactions where source = 'silver_depot'").collect()
    assert [tuple(row) for row in transactions] == [(2, "complete"), (2, "complete")]


def test_a_load_ends_with_its_file_once_that_is_whole_and_with_the_next_change_of_its_table(spark, lakehouse, tmp_path):
    project = projects.make(tmp_path, {"silver_load": {**SHOP, "from": "landing/silver_load/*.parquet"},
                                       "silver_extract": {**projects.DEPOT, "from": "landing/silver_extract/*.lxg"}}, lakehouse=lakehouse)
    for source in project.sources:
        (tmp_path / "landing" / source).mkdir(parents=True)
    extracts = tmp_path / "landing" / "silver_extract"
    data = linkexpress.encode_file([("row", {"ITEM_ID": n, "NAME": "a", "PRICE": 1}) for n in (1, 2)], True, "big", "cp932", {0: projects.LAYOUT})
    whole, broken, growing = (extracts / f"ITEMS_202601050{hour}1600_0000{hour}.lxg" for hour in (3, 4, 5))
    whole.write_bytes(data)
    broken.write_bytes(data[:-1] + b"\xff")                      # no sign of a packed decimal
    growing.write_bytes(data[:-3])
    load = [qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": n, "NAME": "a", "PRICE": None}}, COLUMNS) for n in (1, 2)]
    qlik.write_parquet(qlik.rows(load, "items"), tmp_path / "landing" / "silver_load" / "1.parquet")

    def ended():
        rows = spark.sql("select source, left(change_seq, 16) as start from silver.control_events where kind = 'load_end' "
                         "and source in ('silver_load', 'silver_extract')").collect()
        return sorted((row.source.removeprefix("silver_"), row.start) for row in rows)

    silver.run(project, spark, land(project, spark))
    assert ended() == [("extract", "2026010503160000")]
    growing.write_bytes(data)
    qlik.write_parquet(qlik.rows([message(1, 1, "before").replace(b"20260102030405", b"20260101030405")], "items", offset=2), tmp_path / "landing" / "silver_load" / "2.parquet")
    silver.run(project, spark, land(project, spark))
    assert ended() == [("extract", "2026010503160000"), ("extract", "2026010505160000")]
    after = message(2, 1, "after").replace(b"20260102030405", b"20260103030405")
    qlik.write_parquet(qlik.rows([after], "items", offset=3), tmp_path / "landing" / "silver_load" / "3.parquet")
    silver.run(project, spark, land(project, spark))
    assert ended()[2:] == [("load", f"{qlik.START:%Y%m%d%H%M%S}{qlik.START.microsecond // 10_000:02d}")]


def states(spark, batches: list[list[tuple]]):
    """After each batch of (place, counter, is_last), all of one id: the transactions as (first place, number of changes, state)."""
    for batch_id, events in enumerate(batches, 970_000_000):
        for place, counter, is_last in events:
            spark.sql("insert into silver.changes (source, source_schema, source_table, change_seq, operation, transaction_id, transaction_event_counter, "
                      f"transaction_last_event, batch_id) values ('counted', 'S', 'T', '{place:035d}', 'INSERT', 'A', {counter}, {is_last}, {batch_id})")
        transaction.update(spark, batch_id, f"batch_id = {batch_id} and source = 'counted'")
        yield [tuple(row) for row in spark.sql("select cast(first_change_seq as int), num_changes, state from silver.transactions "
                                               "where source = 'counted' order by 1").collect()]
    for table in ("changes", "transactions"):
        spark.sql(f"delete from silver.{table} where source = 'counted'")


def test_an_id_that_is_used_again_is_another_transaction(spark):
    *_, last = states(spark, [[(1, 1, False)], [(2, 2, True), (3, 1, True)], [(4, 3, True), (5, 1, False), (6, 2, False)], [(7, 3, True)]])
    assert last == [(1, 2, "complete"), (3, 1, "complete"), (4, 1, "impossible"), (5, 3, "complete")]


def test_an_id_that_comes_back_without_its_first_event_leaves_its_namesake_alone(spark):
    *_, last = states(spark, [[(1, 1, False), (2, 2, True)], [(60, 2, True)]])
    assert last == [(1, 2, "complete"), (60, 1, "impossible")]


def test_a_run_keeps_the_batch_of_its_last_change_when_its_id_is_looked_up_again(spark):
    """Publish stops waiting for what lacks events in batches behind it."""
    for _ in states(spark, [[(1, 1, False)], [(60, 1, False), (61, 2, True), (65, 1, False), (66, 2, True)]]):
        found = spark.sql("select cast(first_change_seq as int), batch_id - 970000000 from silver.transactions where source = 'counted' order by 1").collect()
    assert list(map(tuple, found)) == [(1, 0), (60, 1), (65, 1)]


def test_a_transaction_with_a_gap_is_impossible_until_what_lacks_comes_late(spark):
    told = states(spark, [[(1, 1, False), (4, 3, False)], [(5, 4, True)], [(2, 2, False)]])
    assert list(told) == [[(1, 2, "open")], [(1, 3, "impossible")], [(1, 4, "complete")]]
