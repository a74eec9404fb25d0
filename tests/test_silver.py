"""Silver: every record and byte accounted for, a change written once, nothing visible before the ledger has it."""

import json
import os
import random
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import SimpleNamespace

import deltalake
import pytest
from py4j.protocol import Py4JJavaError

from inlet import bronze, change, lake, silver
from inlet.bronze import places
from inlet.bronze.guard import KIND
from inlet.codecs import CODECS
from inlet.codecs.linkexpress import group as linkexpress_codec
from inlet.codecs.qlik import json_messages
from inlet.commands import doctor
from inlet.errors import AccountingError, ConfigError, InletError
from inlet.lake import fence
from inlet.silver import blocks, change_files, decode, other_rows, recover, small_batches, transactions
from inlet.silver.batch import Account
from tests import lakes, projects, scenarios
from tests.encode import goldengate_json, linkexpress, qlik
from tests.encode.linkexpress_journal import Change as JournalChange
from tests.encode.linkexpress_journal import How, encode_file
from tests.stored import rows, stored

SHOP = {"codec": "qlik_json", "from": "landing/silver_shop/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
COLUMNS = [c["name"] for c in projects.ITEMS["columns"]]


def test_a_batch_that_does_not_add_up_is_an_error_that_names_both_sides():
    Account(num_records=3, num_changes=2, num_rejected=1, bytes_landed=30, bytes_decoded=20, bytes_rejected=10).balance(
        "depot", 1
    )
    with pytest.raises(AccountingError, match="3 records landed, 2 changes .* = 2; 30 bytes landed, 20 accounted for"):
        Account(num_records=3, num_changes=2, bytes_landed=30, bytes_decoded=20).balance("depot", 1)


def message(number: int, item: int, name: str, at: str = "") -> bytes:
    row = {"ITEM_ID": item, "NAME": name, "PRICE": None}
    return qlik.value(
        {"operation": "INSERT", "after": row, "change_seq": f"20260102030405{number:021d}", "change_timestamp": at},
        COLUMNS,
    )


def turned(value: bytes) -> bytes:
    """The message with its headers in the opposite order."""
    said = json.loads(value)
    said["message"]["headers"] = dict(reversed(said["message"]["headers"].items()))
    return json.dumps(said).encode()


def land(project, spark) -> int:
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    return new.batch_id


class Died(BaseException):
    """The process is gone."""


def dies(monkeypatch, spark, num_writes: int) -> None:
    """From now on a run dies behind this many of its writes: appends, deletes and merges."""
    from pyspark.sql import DataFrameWriter

    left, append, sql = [num_writes], DataFrameWriter.saveAsTable, type(spark).sql
    add_rows, add_files, add_arrow = lake.add_rows, lake.add_files, lake.add_arrow

    def writes(write, *given):
        if not left[0]:
            raise Died
        left[0] -= 1
        return write(*given)

    monkeypatch.setattr(DataFrameWriter, "saveAsTable", lambda self, name: writes(append, self, name))
    monkeypatch.setattr(lake, "add_rows", lambda *given, **named: writes(partial(add_rows, **named), *given))
    monkeypatch.setattr(lake, "add_files", partial(writes, add_files))
    monkeypatch.setattr(
        lake, "add_arrow", partial(writes, add_arrow)
    )  # of transactions that are whole in a large batch
    monkeypatch.setattr(
        type(spark),
        "sql",
        lambda self, text: (writes if text.split()[0] in ("merge", "delete") else lambda write, *given: write(*given))(
            sql, self, text
        ),
    )


BOXES = {"table": "DEPOT.BOXES", "name": "boxes", "key": ["ITEM_ID"], "columns": projects.ITEMS["columns"]}


@pytest.mark.smoke
def test_repeats_conflicts_and_a_crash_before_the_ledger(spark, lakehouse, tmp_path, monkeypatch):
    """The contract of a table is missing when the run dies; the next one has it, and reads rejects as changes."""
    sources = {"silver_shop": SHOP, "silver_depot": {**projects.DEPOT, "from": "landing/silver_depot/*.lxg"}}
    project = projects.make(tmp_path, sources, lakehouse=lakehouse)
    for source in project.sources:
        (tmp_path / "landing" / source).mkdir(parents=True)
    records = linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
    (tmp_path / "landing" / "silver_depot" / "20260105031500_000012.lxg").write_bytes(records)
    (tmp_path / "landing" / "silver_depot" / "20260105031500_000013.lxg").symlink_to(
        "/nowhere"
    )  # refused, and no record of the account
    second = message(2, 2, "b", at="half past four")
    box = qlik.value(
        {"operation": "INSERT", "after": {"ITEM_ID": 1, "NAME": "box"}, "change_seq": f"{9:035d}"},
        COLUMNS,
        schema="DEPOT",
        table="BOXES",
    )
    qlik.write_parquet(
        qlik.rows([message(1, 1, "a"), second, second, b"{broken"], "items") + qlik.rows([box], "any"),
        tmp_path / "landing" / "silver_shop" / "1.parquet",
    )
    first = land(project, spark)
    with monkeypatch.context() as patched:
        patched.setattr(decode, "_close", lambda batch: (_ for _ in ()).throw(Died()))
        with pytest.raises(Died):
            silver.run(project, spark, first)
    assert first in silver.pending(project)
    finding = {finding.what: finding for finding in doctor._batches(project)}[f"batch {first}"]
    assert finding.is_good and finding.found.startswith("begun in silver.changes, silver.rejects, ")
    project = projects.make(tmp_path, sources, [projects.ITEMS, BOXES], lakehouse)
    accounts = silver.run(project, spark, first)
    assert first not in silver.pending(project)
    with pytest.raises(InletError, match=f"Batch {first} is not one that waits"):
        silver.run(project, spark, first)
    shop, depot = accounts["silver_shop"], accounts["silver_depot"]
    assert (shop.num_records, shop.num_changes, shop.num_repeats, shop.num_rejected) == (5, 3, 1, 1)
    assert (depot.num_records, depot.num_changes, depot.num_control, depot.num_rejected) == (6, 4, 2, 0)

    new = [message(1, 1, "other"), message(3, 3, "c"), turned(message(3, 3, "c")), second]
    at_offsets_9_to_14 = [message(4, 4, "first"), *new, message(4, 4, "not first, though 14 < 9 as text")]
    qlik.write_parquet(
        qlik.rows(at_offsets_9_to_14, "items", offset=9), tmp_path / "landing" / "silver_shop" / "2.parquet"
    )
    resent = "20260105031500_000012.resend.lxg"
    (tmp_path / "landing" / "silver_depot" / resent).write_bytes(records)
    accounts = silver.run(project, spark, land(project, spark))
    shop, depot = accounts["silver_shop"], accounts["silver_depot"]
    assert (shop.num_changes, shop.num_repeats, shop.num_rejected) == (2, 2, 2)
    assert (shop.repeats, depot.repeats) == ({"items/0": 2}, {f"landing/silver_depot/{resent}": 4})
    assert (depot.num_changes, depot.num_repeats, depot.num_control) == (0, 4, 2)

    changes = rows(lakehouse, "silver.changes", "silver_shop", "after", rest="order by change_seq")
    assert [after["NAME"] for (after,) in changes] == ["box", "a", "b", "c", "first"]
    event = "kind", "detail", "source_table", "right(change_seq, 1)"
    assert rows(lakehouse, "silver.control_events", "silver_shop", *event) == [
        ("unreadable_timestamp", '{"timestamp": "half past four"}', "ITEMS", "2")
    ]
    in_order = "order by batch_id, change_seq"
    assert rows(lakehouse, "silver.rejects", "silver_shop", "kind", "raw", rest=in_order) == [
        ("invalid_json", b"{broken"),
        ("conflicting_duplicate", message(1, 1, "other")),
        ("conflicting_duplicate", at_offsets_9_to_14[-1]),
    ]
    transactions = rows(lakehouse, "silver.transactions", "silver_depot", "num_changes", "state")
    assert transactions == [(2, "complete"), (2, "complete")]


def test_blocks_are_decoded_once(spark, lakehouse, tmp_path, monkeypatch):
    """The reject of a block is sent by the task that decodes it for its changes."""
    project = projects.make(tmp_path, {"once": projects.DEPOT | {"from": "landing/once/*"}}, lakehouse=lakehouse)
    (tmp_path / "landing" / "once").mkdir(parents=True)
    data = linkexpress.encode_file(projects.item_records(1, 6), True, "big", "cp932", {1: projects.LAYOUT})
    damaged = data.replace("item 4".encode("cp932"), b"item\xff4")
    (tmp_path / "landing" / "once" / "20260105031500_000012.lxg").write_bytes(damaged)
    monkeypatch.setattr(small_batches, "NUM_RECORDS", 0)
    batch_id, found = land(project, spark), []
    for module, name, other in ((blocks, "_write_others", None), (other_rows, "collector", lambda *given: None)):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, other)
            found.append((silver.run(project, spark, batch_id), stored(lakehouse, ["once"])))
        deltalake.DeltaTable(lake.table_path(lakehouse, "silver.batches")).delete(f"batch_id = {batch_id}")
        recover.run(project, spark, batch_id, "source = 'once'")
    once, twice = found
    assert once == twice
    [accounts, _] = once
    assert (accounts["once"].num_changes, accounts["once"].num_rejected) == (5, 1)


def everything(root, name: str) -> dict:
    """Files with all that a batch can hold: changes, rejects, control events, repeats, conflicts, loads and their ends,
    of both grains.
    """
    shop, depot = (root / "landing" / f"{name}_{kind}" for kind in ("shop", "depot"))
    for folder in (shop, depot):
        folder.mkdir(parents=True, exist_ok=True)

    def encode(records):
        return linkexpress.encode_file(records, True, "big", "cp932", {0: projects.LAYOUT, 1: projects.LAYOUT})

    whole = encode(projects.item_records(1, 4))
    (depot / "20260105031500_000012.lxg").write_bytes(whole)
    (depot / "20260105031500_000012.other.lxg").write_bytes(encode(projects.item_records(3, 4)))
    (depot / "20260105031501_000013.lxg").write_bytes(
        whole + encode([("insert", 1, {"ITEM_ID": 9, "NAME": "z", "PRICE": 1})])[:-1] + b"\xff" + encode([("commit",)])
    )
    (depot / "ITEMS_20260105031600_000014.lxg").write_bytes(
        encode([("row", {"ITEM_ID": n, "NAME": "a", "PRICE": 1}) for n in (1, 2)])
    )
    (depot / "ITEMS_20260105031700_000015.lxg").write_bytes(encode([("empty",)]))
    load = qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": 5, "NAME": "a", "PRICE": None}}, COLUMNS)
    late = message(7, 5, "late").replace(b"20260102030405", b"20260103030405")
    metadata = b'{"magic":"atMSG","type":"MD","message":{"lineage":{"schema":"DEPOT","table":"ITEMS"}}}'
    qlik.write_parquet(
        qlik.rows(
            [
                load,
                message(1, 1, "a"),
                message(1, 1, "b"),
                turned(message(1, 1, "c")),
                turned(message(2, 2, "d")),
                late,
                metadata,
                b"{",
            ],
            "items",
        ),
        shop / "1.parquet",
    )
    (shop / "2.parquet").write_bytes(b"no Parquet")
    return {
        f"{name}_shop": {**SHOP, "from": f"landing/{name}_shop/*.parquet"},
        f"{name}_depot": {**projects.DEPOT, "from": f"landing/{name}_depot/*.lxg"},
    }


@pytest.mark.proof
def test_a_run_that_dies_between_any_two_of_its_writes_leaves_nothing_that_the_next_one_does_not_mend(
    spark, lakehouse, tmp_path, monkeypatch
):
    monkeypatch.setattr(transactions, "NUM_SMALL", -1)  # its transactions are made as those of a large batch
    project = projects.make(tmp_path, everything(tmp_path, "dying"), lakehouse=lakehouse)
    before, batch_id = stored(lakehouse, project.sources), land(project, spark)
    for num_writes in count():
        with monkeypatch.context() as patched:
            dies(patched, spark, num_writes)
            try:
                accounts = silver.run(project, spark, batch_id)
                break
            except Died:
                pass
        if num_writes % 2:  # else the next run has to, and may die of it
            recover.run(project, spark, batch_id)
            assert stored(lakehouse, project.sources) == before
    found = stored(lakehouse, project.sources)
    assert num_writes >= 16
    of_batches = [name for name, columns in change.TABLES.items() if "batch_id" in {c.name for c in columns}]
    for table in of_batches:  # and now undisturbed
        spark.sql(f"delete from {table} where batch_id = {batch_id}")
    assert accounts == silver.run(project, spark, batch_id)
    assert found == stored(lakehouse, project.sources)
    not_written = {table for table in of_batches if not any(tables[table] for tables in found.values())}
    assert not_written == {"silver.stopped", "silver.waiting"}


def test_a_batch_whose_lines_of_the_ledger_are_there_in_part_is_named(tmp_path):
    project = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/*"}, "shop": SHOP}, [projects.ITEMS])
    for source in ("depot", "shop"):
        lakes.write(project, "bronze.files", {"source": source, "path": source, "batch_id": 3})
    lakes.write(project, "silver.batches", lakes.batch(3, "depot", lakes.seq(3)))
    files = bronze.History(project).of_batch(3)
    with pytest.raises(InletError, match="has batch 3 for depot and not for shop. Restore silver.batches"):
        silver.check_ledger(project, 3, files)
    silver.check_ledger(project, 4, files)
    [finding] = doctor._batches(project)
    assert not finding.is_good and finding.remedy.startswith("Restore silver.batches")


def insert(rows, table: str) -> None:
    rows.createOrReplaceTempView("late_rows")
    rows.sparkSession.sql(f"insert into {table} select * from late_rows")


def merge(rows, table: str) -> None:
    rows.createOrReplaceTempView("late_rows")
    rows.sparkSession.sql(f"""
        merge into {table} t using late_rows l on t.batch_id = l.batch_id and t.change_seq = l.change_seq
        when matched then update set * when not matched then insert *""")


@pytest.mark.smoke
@pytest.mark.parametrize(("write", "is_by_spark"), [(lake.append, False), (insert, True), (merge, False)])
def test_what_a_killed_client_has_begun_is_refused_when_it_commits_after_the_next_run_began(
    spark, lakehouse, tmp_path, write, is_by_spark
):
    """As a Connect server does that no interrupt reaches: it reads its version, works, and commits at the end."""
    table, has_begun, may_end = "silver.control_events", tmp_path / "begun", tmp_path / "may_end"
    values = {"source": "'late'", "kind": "'ddl'", "change_seq": "'1'", "batch_id": "7L"}
    columns = {c.name: f"cast({values.get(c.name, 'null')} as {c.type}) as {c.name}" for c in change.TABLES[table]}
    rows = spark.range(1).selectExpr(*columns.values())

    def working(batches):
        has_begun.touch()
        while not may_end.exists():
            time.sleep(0.05)
        yield from batches

    with ThreadPoolExecutor(1) as former:
        late = former.submit(write, rows.repartition(1).mapInArrow(working, rows.schema), table)
        while not has_begun.exists():
            assert not late.done(), late.result()
            time.sleep(0.05)
        fence.refuse_begun_by(spark, lakehouse, [table]) if is_by_spark else fence.refuse_begun(lakehouse)
        recover.run(projects.make(tmp_path, lakehouse=lakehouse), spark, 7)
        lake.append(rows, table)
        may_end.touch()
        with pytest.raises(Exception, match="DELTA_METADATA_CHANGED|MetadataChangedException"):
            late.result()
    stored = lake.peek(lakehouse, table, ["source", "batch_id"], "where batch_id = 7")
    spark.sql(f"delete from {table} where batch_id = 7")
    assert stored == [{"source": "late", "batch_id": 7}]


@contextmanager
def room(spark, num_bytes: int):
    """No file that Spark writes can be longer: beyond it a write fails part way, as on a full disk."""
    jvm = spark.sparkContext._gateway.proc.pid
    before = resource.prlimit(jvm, resource.RLIMIT_FSIZE)
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.prlimit(jvm, resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="Linux has this limit")
def test_a_write_that_fails_part_way_is_done_anew_by_the_next_run(spark, lakehouse, tmp_path, monkeypatch):
    monkeypatch.setattr("inlet.bronze.small_batches.NUM_FILES", 0)
    monkeypatch.setattr(small_batches, "NUM_RECORDS", 0)
    monkeypatch.setattr(change_files, "can_write", lambda batch: False)  # the JVM writes
    project = projects.make(tmp_path, {"silver_full": {**SHOP, "from": "landing/silver_full"}}, lakehouse=lakehouse)
    (tmp_path / "landing" / "silver_full").mkdir(parents=True)
    names = [random.Random(n).randbytes(1_500).hex() for n in range(1_500)]
    qlik.write_parquet(
        qlik.rows([message(n, n, name) for n, name in enumerate(names)], "items"),
        tmp_path / "landing" / "silver_full" / "1.parquet",
    )
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    with room(spark, 3 << 19), pytest.raises(Py4JJavaError):
        bronze.land(project, spark, new)
    assert not [row for row in bronze.History(project).readings() if row["batch_id"] == new.batch_id and row["problem"]]
    bronze.write_units(project, spark, new)
    with room(spark, 3 << 19), pytest.raises(Py4JJavaError):
        silver.run(project, spark, new.batch_id)
    assert silver.run(project, spark, new.batch_id)["silver_full"].num_changes == 1_500
    changes = rows(lakehouse, "silver.changes", "silver_full", "after", rest="order by change_seq")
    assert [after["NAME"] for (after,) in changes] == names


def brittle_message(message, source, tables, loads):
    """The exact path of a codec with faults."""
    if b"raises" in (message["value"] or b""):
        raise KeyError("raises")
    if b"kills" in (message["value"] or b""):
        os.kill(os.getpid(), 9)
    return json_messages.decode_message(message, source, tables, loads)


def brittle_block(data, context, source, tables):
    if b"kills" in data:
        os._exit(1)
    return linkexpress_codec.decode(data, context, source, tables)


def refusing_block(data, context, source, tables):
    raise ConfigError("NAME has no source_type", "Name one")


def test_what_a_decoder_fails_on_is_set_aside_and_two_codecs_of_messages_share_a_batch(
    spark, lakehouse, tmp_path, monkeypatch
):
    """One message makes its codec raise, another one and a block end its process."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setitem(
        CODECS, "brittle_json", SimpleNamespace(**vars(json_messages) | {"decode_message": brittle_message})
    )
    project = projects.make(
        tmp_path,
        {
            "failing_shop": {**SHOP, "from": "landing/failing_shop"},
            "failing_qlik": {
                **SHOP,
                "from": {"transport": "lines", "path": "landing/failing_qlik"},
                "tables": {"landing/failing_qlik/*.jsonl": "DEPOT.ITEMS"},
            },
            "failing_depot": {**projects.DEPOT, "from": "landing/failing_depot"},
        },
        lakehouse=lakehouse,
    )
    project.sources["failing_shop"].codec = "brittle_json"
    for source in project.sources:
        (tmp_path / "landing" / source).mkdir(parents=True)
    load = qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": 5, "NAME": "a", "PRICE": None}}, COLUMNS)
    sent = [
        message(1, 1, "a"),
        turned(message(2, 2, "b")),
        turned(message(3, 3, "raises")),
        load,
        turned(message(4, 4, "kills")),
        b"{broken",
    ]
    qlik.write_parquet(qlik.rows(sent, "items"), tmp_path / "landing" / "failing_shop" / "1.parquet")
    (tmp_path / "landing" / "failing_qlik" / "1.jsonl").write_bytes(b"\n".join(sent) + b"\n")
    good, bad = (
        linkexpress.encode_file(
            [("insert", 1, {"ITEM_ID": 1, "NAME": name, "PRICE": None}), ("commit",)],
            True,
            "big",
            "cp932",
            {1: projects.LAYOUT},
        )
        for name in ("good", "kills")
    )
    (tmp_path / "landing" / "failing_depot" / "20260105031500_000012.lxg").write_bytes(good)
    (tmp_path / "landing" / "failing_depot" / "20260105031501_000013.lxg").write_bytes(bad)
    batch_id = land(project, spark)
    monkeypatch.setitem(
        CODECS, "linkexpress_group", SimpleNamespace(**vars(linkexpress_codec) | {"decode": refusing_block})
    )
    with pytest.raises(
        ConfigError, match="NAME has no source_type. Name one"
    ):  # what a person has to fix is told as it was said
        silver.run(project, spark, batch_id)
    monkeypatch.setitem(
        CODECS, "linkexpress_group", SimpleNamespace(**vars(linkexpress_codec) | {"decode": brittle_block})
    )
    accounts = silver.run(project, spark, batch_id)
    assert {
        source: (a.num_records, a.num_changes, a.num_control, a.num_rejected) for source, a in accounts.items()
    } == {"failing_shop": (6, 3, 0, 3), "failing_qlik": (6, 4, 0, 2), "failing_depot": (3, 1, 1, 1)}
    of_batch = f"where batch_id = {batch_id} order by source, unit_id"
    rejects = lake.peek(lakehouse, "silver.rejects", ["source", "kind", "found", "raw"], of_batch)
    assert [
        (source, kind, found.split(" (test_silver.py")[0], raw)
        for source, kind, found, raw in map(dict.values, rejects)
    ] == [
        ("failing_depot", KIND, "its process ended with code 1", bad),
        ("failing_qlik", "missing_change_seq", "a message without a broker's time", load),
        ("failing_qlik", "invalid_json", rejects[2]["found"], b"{broken"),
        ("failing_shop", KIND, "'raises'", sent[2]),
        ("failing_shop", KIND, "its process was ended by signal 9 (Killed)", sent[4]),
        ("failing_shop", "invalid_json", rejects[2]["found"], b"{broken"),
    ]
    begun = f"where batch_id = {batch_id} and kind = 'full_load'"
    assert lake.peek(lakehouse, "silver.control_events", ["source"], begun) == [{"source": "failing_shop"}]


def test_a_source_that_inlet_yml_lost_is_named_before_its_batch_is_written(tmp_path):
    with pytest.raises(ConfigError, match="Batch 3 holds files of gone, which inlet.yml does not have any more"):
        bronze.write_units(projects.make(tmp_path), None, bronze.Plan(3, [{"source": "gone"}]))  # nothing is written


def test_a_table_without_statistics_of_a_batch_is_taken_to_hold_it(tmp_path):
    pa, deltalake = pytest.importorskip("pyarrow"), pytest.importorskip("deltalake")
    for table, properties in (("silver.told", {}), ("silver.untold", {"delta.dataSkippingNumIndexedCols": "0"})):
        deltalake.write_deltalake(
            f"{tmp_path}/{table.replace('.', '/')}", pa.table({"batch_id": [3, 5]}), configuration=properties
        )
    assert [
        [lake.may_hold(str(tmp_path), f"silver.{table}", "batch_id", n) for n in (2, 3, 4, 6)]
        for table in ("told", "untold", "absent")
    ] == [[False, True, True, False], [True] * 4, [False] * 4]


JOURNALS = {"codec": "linkexpress_journal", "tables": {"ITEMS": "DEPOT.ITEMS"}}
JOURNALS |= {"options": {"source_tz": "UTC", "charset": "cp932"}}
OTHERS = projects.ITEMS | {"table": "DEPOT.OTHERS", "name": "others"}
scenario = scenarios.Scenarios()


@pytest.fixture(scope="module")
def outcomes(spark, lakehouse, tmp_path_factory):
    def hold(project, wanted, past, hold=places.hold):
        hold(project, [file for file in wanted if file.source.name not in HAD_NO_PLACES], past)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(places, "hold", hold)
        return scenario.go(spark, lakehouse, tmp_path_factory.mktemp("scenarios"))


def of_account(account) -> tuple[int, int, int]:
    return account.num_changes, account.num_repeats, account.num_rejected


@scenario({"codec": "goldengate_json"})
def an_upsert_that_silver_has_as_an_update_is_a_repeat(feed):
    """Lakehouses hold upserts as the updates that they were read as; their feed may send them again."""
    after, found = {"ITEM_ID": 1, "NAME": "a", "PRICE": None}, []
    for offset, (operation, name) in enumerate([("UPDATE", "a"), ("UPSERT", "a"), ("UPSERT", "b")]):
        upsert = {"operation": operation, "seqno": 1, "rba": 10, "after": after | {"NAME": name}}
        feed.send(goldengate_json.value(upsert, "DEPOT.ITEMS"), offset=offset)
        found.append(of_account((yield)))
    assert found == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


def extract(records: list[tuple]) -> bytes:
    return linkexpress.encode_file(records, True, "big", "cp932", {0: projects.LAYOUT, 1: projects.LAYOUT})


def extract_of_load(num: int, name: str = "a") -> bytes:
    return extract([("row", {"ITEM_ID": n, "NAME": name, "PRICE": 1}) for n in range(num)])


@scenario(projects.DEPOT)
def a_load_ends_with_its_file_once_that_is_whole(feed):
    data = extract_of_load(2)
    whole, broken, growing = (feed.landing / f"ITEMS_202601050{hour}1600_0000{hour}.lxg" for hour in (3, 4, 5))
    whole.write_bytes(data)
    broken.write_bytes(data[:-1] + b"\xff")  # no sign of a packed decimal
    growing.write_bytes(data[:-3])
    # it was set aside once, and came again
    once = {"source": feed.name, "kind": "file_rewritten", "batch_id": -1}
    once |= {"unit_id": f"{feed.name}/landing/{feed.name}/{whole.name}"}
    lake.add_rows(feed.lakehouse, "silver.rejects", [once])
    ended = partial(feed.rows, "control_events", "left(change_seq, 16)", rest="and kind = 'load_end' order by 1")
    yield
    assert ended() == [("2026010503160000",)]
    growing.write_bytes(data)
    yield
    assert ended() == [("2026010503160000",), ("2026010505160000",)]


@scenario(SHOP)
def a_load_ends_with_the_next_change_of_its_table(feed):
    row = {"ITEM_ID": 1, "NAME": "a", "PRICE": None}
    load = [qlik.value({"operation": "REFRESH", "after": row | {"ITEM_ID": n}}, COLUMNS) for n in (1, 2)]
    ended = partial(feed.rows, "control_events", "left(change_seq, 16)", rest="and kind = 'load_end'")
    feed.send(*load)
    yield
    feed.send(message(1, 1, "before").replace(b"20260102030405", b"20260101030405"), offset=2)
    yield
    assert ended() == []
    feed.send(message(2, 1, "after").replace(b"20260102030405", b"20260103030405"), offset=3)
    yield
    assert ended() == [(f"{qlik.START:%Y%m%d%H%M%S}{qlik.START.microsecond // 10_000:02d}",)]


@scenario(projects.DEPOT | {"tables": {}}, OTHERS)
def a_load_end_is_of_the_table_of_its_file(feed):
    """Lakehouses have files of two tables at one place: then one of them is rejected, and its load has not ended."""
    for name, num in (("ITEMS", 1), ("OTHERS", 2)):
        (feed.landing / f"{name}_20260105030000.lxg").write_bytes(extract_of_load(num, name))
    yield
    assert feed.rows("control_events", "source_table", rest="and kind = 'load_end'") == [("ITEMS",)]
    assert feed.rows("rejects", "kind") == [("conflicting_duplicate",)]


HAD_NO_PLACES = {"a_load_end_is_of_the_table_of_its_file"}  # read as before such files were held


def journal(word: str, item: int, name: str, position: int, sts: int) -> bytes:
    row = {"ITEM_ID": item, "NAME": name, "PRICE": 1}
    given = JournalChange("ITEMS", word, row, position, sts)
    return encode_file([[given]], {"ITEMS": projects.LAYOUT}, How(framing="message_body"))


@scenario(JOURNALS, transport="parquet")
def a_message_that_comes_again_good_resolves_the_damaged_one_and_its_transaction_is_complete(feed):
    """A queue's journals: the damaged message lies within a transaction of four messages."""
    good = [journal("insert", n, "a", 7, sts) for n, sts in enumerate((1, 2, 2, 4))]
    damaged = good[2][:15] + b"\x09" + good[2][16:]  # nine journals, it says
    rejects = partial(feed.rows, "rejects", "kind", "resolved_by is not null")
    told = partial(feed.rows, "transactions", "num_changes", "state")
    feed.send(*good[:2], damaged, good[3])
    yield
    assert (rejects(), told()) == ([("contradiction", False)], [(3, "impossible")])
    feed.send(good[2], offset=2)
    yield
    assert (rejects(), told()) == ([("contradiction", True)], [(4, "complete")])


@scenario(SHOP, transport="parquet")
def a_message_that_a_broker_resends_good_resolves_the_damaged_one_in_any_order(feed):
    """Of the same table at the same place: in the same batch, in a later one, and in an earlier one."""

    def message(n: int, price="1.00", part: int | None = None) -> bytes:
        row = {"ITEM_ID": n, "NAME": "a", "PRICE": price}
        headers = {"operation": "INSERT", "changeSequence": f"2026010203040500{n:019}", "transactionId": "A"}
        return json.dumps({"data": row, "beforeData": None, "headers": headers}).encode()[:part]

    cut = len(message(1)) - 12  # in the transaction's id
    feed.send(message(1), message(2, part=cut), message(3, "x"), message(3), message(4, "x"))
    yield
    feed.send(message(2), message(1, part=cut), message(5, part=30), offset=10)
    yield
    feed.send(message(5), offset=20)  # the damaged one says nothing of its place, so it may be of any
    yield
    rejects = feed.rows("rejects", "unit_id", "resolved_by - batch_id")
    found = sorted((unit.rsplit("/", 1)[1], later) for unit, later in rejects)
    assert found == [("1", 1), ("11", 0), ("12", None), ("2", 0), ("4", None)]
    assert [int(at[16:]) for (at,) in feed.rows("changes", "change_seq", rest="order by 1")] == [1, 2, 3, 5]


@scenario(JOURNALS, transport="parquet")
def a_journal_that_a_queue_has_twice_puts_no_older_row_over_a_newer_one(feed):
    first, second = journal("insert", 1, "old", 0, 5), journal("update", 1, "new", 1, 5)
    feed.send(first, second, first)
    yield
    feed.send(second, first, offset=3)
    yield
    changes = feed.rows("changes", "after", rest="order by change_seq")
    assert [after["NAME"] for (after,) in changes] == ["old", "new"]
    assert feed.rows("batches", "sum(num_repeats)") == [(3,)]


@scenario(projects.DEPOT)
def a_file_that_comes_again_under_a_name_that_tells_its_place_resolves_the_one_that_told_none(feed):
    for name, first in (("changes", 1), ("others", 3)):
        (feed.landing / f"{name}.lxg").write_bytes(extract(projects.item_records(first, 2)))
    found = partial(feed.rows, "rejects", "found", "resolved_by is not null", rest="order by 1")
    yield
    assert found() == [("changes.lxg", False), ("others.lxg", False)]
    (feed.landing / "changes.lxg").rename(feed.landing / "20260105031700_1.lxg")
    yield
    assert found() == [("changes.lxg", True), ("others.lxg", False)]
    (feed.landing / "others.lxg").rename(feed.landing / "others2.lxg")  # no better
    yield
    assert found() == [("changes.lxg", True), ("others.lxg", False), ("others2.lxg", False)]


@pytest.mark.parametrize("name", scenario.names)
def test_sources_of_shared_batches(outcomes, name):
    scenarios.check(outcomes[name])
