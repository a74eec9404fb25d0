"""Silver: every record and byte accounted for, a change written once, nothing visible before the ledger has it."""

import json
import os
import random
import resource
import sys
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import SimpleNamespace

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
from inlet.silver import blocks, decode, other_rows, recover, small_batches
from inlet.silver.batch import Account
from tests import lakes, projects
from tests.encode import goldengate_json, linkexpress, qlik
from tests.encode.linkexpress_journal import Change as JournalChange
from tests.encode.linkexpress_journal import How, encode_file

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

    left, append, sql, add_rows = [num_writes], DataFrameWriter.saveAsTable, type(spark).sql, lake.add_rows

    def writes(write, *given):
        if not left[0]:
            raise Died
        left[0] -= 1
        return write(*given)

    monkeypatch.setattr(DataFrameWriter, "saveAsTable", lambda self, name: writes(append, self, name))
    monkeypatch.setattr(lake, "add_rows", lambda *given, **named: writes(partial(add_rows, **named), *given))
    monkeypatch.setattr(
        type(spark),
        "sql",
        lambda self, text: (writes if text.split()[0] in ("merge", "delete") else lambda write, *given: write(*given))(
            sql, self, text
        ),
    )


def stored(spark, sources) -> dict[str, list]:
    """What silver holds of these sources: whole rows, but for the batch and the time."""
    listed = ", ".join(f"'{source}'" for source in sources)
    found = {}
    for table, columns in change.TABLES.items():
        names = [
            f"to_json({c.name})" if c.type == "variant" else c.name
            for c in columns
            if c.name not in ("batch_id", "decoded_at", "finished_at")
        ]
        found[table] = sorted(
            map(str, spark.sql(f"select {', '.join(names)} from {table} where source in ({listed})").collect())
        )
    return found


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

    found = spark.sql(
        "select change_seq, cast(after:NAME as string) as name from silver.changes where source = "
        "'silver_shop' order by 1"
    ).collect()
    assert [row.name for row in found] == ["box", "a", "b", "c", "first"]
    events = spark.sql(
        "select kind, detail, source_table, right(change_seq, 1) from silver.control_events where source = "
        "'silver_shop'"
    ).collect()
    assert [tuple(row) for row in events] == [("unreadable_timestamp", '{"timestamp": "half past four"}', "ITEMS", "2")]
    kinds = spark.sql(
        "select kind, raw from silver.rejects where source = 'silver_shop' order by batch_id, change_seq"
    ).collect()
    assert [(row.kind, bytes(row.raw)) for row in kinds] == [
        ("invalid_json", b"{broken"),
        ("conflicting_duplicate", message(1, 1, "other")),
        ("conflicting_duplicate", at_offsets_9_to_14[-1]),
    ]
    transactions = spark.sql(
        "select num_changes, state from silver.transactions where source = 'silver_depot'"
    ).collect()
    assert [tuple(row) for row in transactions] == [(2, "complete"), (2, "complete")]


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
            found.append((silver.run(project, spark, batch_id), stored(spark, ["once"])))
        spark.sql(f"delete from silver.batches where batch_id = {batch_id}")
        recover.run(project, spark, batch_id, "source = 'once'")
    once, twice = found
    assert once == twice
    [accounts, _] = once
    assert (accounts["once"].num_changes, accounts["once"].num_rejected) == (5, 1)


def test_an_upsert_that_silver_has_as_an_update_is_a_repeat(spark, lakehouse, tmp_path):
    """Lakehouses hold upserts as the updates that they were read as; their feed may send them again."""
    of_upserts = {"codec": "goldengate_json", "from": "landing/silver_upserts/*.parquet"}
    project = projects.make(tmp_path, {"silver_upserts": of_upserts}, lakehouse=lakehouse)
    (tmp_path / "landing" / "silver_upserts").mkdir(parents=True)
    after, found = {"ITEM_ID": 1, "NAME": "a", "PRICE": None}, []
    for number, (operation, name) in enumerate([("UPDATE", "a"), ("UPSERT", "a"), ("UPSERT", "b")]):
        change = {"operation": operation, "seqno": 1, "rba": 10, "after": after | {"NAME": name}}
        rows = qlik.rows([goldengate_json.value(change, "DEPOT.ITEMS")], "items", offset=number)
        qlik.write_parquet(rows, tmp_path / "landing" / "silver_upserts" / f"{number}.parquet")
        account = silver.run(project, spark, land(project, spark))["silver_upserts"]
        found.append((account.num_changes, account.num_repeats, account.num_rejected))
    assert found == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]


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
    project = projects.make(tmp_path, everything(tmp_path, "dying"), lakehouse=lakehouse)
    before, batch_id = stored(spark, project.sources), land(project, spark)
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
            assert stored(spark, project.sources) == before
    found = stored(spark, project.sources)
    assert num_writes >= 16
    of_batches = [name for name, columns in change.TABLES.items() if "batch_id" in {c.name for c in columns}]
    for table in of_batches:  # and now undisturbed
        spark.sql(f"delete from {table} where batch_id = {batch_id}")
    assert accounts == silver.run(project, spark, batch_id)
    assert found == stored(spark, project.sources)
    assert all(found[table] for table in of_batches)


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
    found = spark.sql(
        "select cast(after:NAME as string) as name from silver.changes where source = 'silver_full' order by change_seq"
    ).collect()
    assert [row.name for row in found] == names


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
    rejects = spark.sql(
        f"select source, kind, found, raw from silver.rejects where batch_id = {batch_id} order by source, unit_id"
    ).collect()
    assert [(row.source, row.kind, row.found.split(" (test_silver.py")[0], bytes(row.raw)) for row in rejects] == [
        ("failing_depot", KIND, "its process ended with code 1", bad),
        ("failing_qlik", "missing_change_seq", "a message without a broker's time", load),
        ("failing_qlik", "invalid_json", rejects[2].found, b"{broken"),
        ("failing_shop", KIND, "'raises'", sent[2]),
        ("failing_shop", KIND, "its process was ended by signal 9 (Killed)", sent[4]),
        ("failing_shop", "invalid_json", rejects[2].found, b"{broken"),
    ]
    begun = spark.sql(
        f"select source from silver.control_events where batch_id = {batch_id} and kind = 'full_load'"
    ).collect()
    assert sorted(row.source for row in begun) == ["failing_shop"]


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


def test_a_load_ends_with_its_file_once_that_is_whole_and_with_the_next_change_of_its_table(spark, lakehouse, tmp_path):
    project = projects.make(
        tmp_path,
        {
            "silver_load": {**SHOP, "from": "landing/silver_load/*.parquet"},
            "silver_extract": {**projects.DEPOT, "from": "landing/silver_extract/*.lxg"},
        },
        lakehouse=lakehouse,
    )
    for source in project.sources:
        (tmp_path / "landing" / source).mkdir(parents=True)
    extracts = tmp_path / "landing" / "silver_extract"
    data = linkexpress.encode_file(
        [("row", {"ITEM_ID": n, "NAME": "a", "PRICE": 1}) for n in (1, 2)], True, "big", "cp932", {0: projects.LAYOUT}
    )
    whole, broken, growing = (extracts / f"ITEMS_202601050{hour}1600_0000{hour}.lxg" for hour in (3, 4, 5))
    whole.write_bytes(data)
    broken.write_bytes(data[:-1] + b"\xff")  # no sign of a packed decimal
    growing.write_bytes(data[:-3])
    load = [
        qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": n, "NAME": "a", "PRICE": None}}, COLUMNS)
        for n in (1, 2)
    ]
    qlik.write_parquet(qlik.rows(load, "items"), tmp_path / "landing" / "silver_load" / "1.parquet")

    def ended():
        rows = spark.sql(
            "select source, left(change_seq, 16) as start from silver.control_events where kind = 'load_end' and "
            "source in ('silver_load', 'silver_extract')"
        ).collect()
        return sorted((row.source.removeprefix("silver_"), row.start) for row in rows)

    # it was set aside once, and came again
    spark.sql(
        "insert into silver.rejects (source, kind, unit_id, batch_id) values ('silver_extract', 'file_rewritten', "
        f"'silver_extract/landing/silver_extract/{whole.name}', -1)"
    )
    silver.run(project, spark, land(project, spark))
    assert ended() == [("extract", "2026010503160000")]
    growing.write_bytes(data)
    qlik.write_parquet(
        qlik.rows([message(1, 1, "before").replace(b"20260102030405", b"20260101030405")], "items", offset=2),
        tmp_path / "landing" / "silver_load" / "2.parquet",
    )
    silver.run(project, spark, land(project, spark))
    assert ended() == [("extract", "2026010503160000"), ("extract", "2026010505160000")]
    after = message(2, 1, "after").replace(b"20260102030405", b"20260103030405")
    qlik.write_parquet(qlik.rows([after], "items", offset=3), tmp_path / "landing" / "silver_load" / "3.parquet")
    silver.run(project, spark, land(project, spark))
    assert ended()[2:] == [("load", f"{qlik.START:%Y%m%d%H%M%S}{qlik.START.microsecond // 10_000:02d}")]


def test_a_load_end_is_of_the_table_of_its_file(spark, lakehouse, tmp_path, monkeypatch):
    """Lakehouses have files of two tables at one place: then one of them is rejected, and its load has not ended."""
    monkeypatch.setattr(places, "hold", lambda *_: None)
    other = projects.ITEMS | {"table": "DEPOT.OTHERS", "name": "others"}
    depot = {**projects.DEPOT, "from": "landing/silver_two/*.lxg", "tables": {}}
    project = projects.make(tmp_path, {"silver_two": depot}, [projects.ITEMS, other], lakehouse=lakehouse)
    (tmp_path / "landing" / "silver_two").mkdir(parents=True)
    for name, num in (("ITEMS", 1), ("OTHERS", 2)):
        rows = [("row", {"ITEM_ID": n, "NAME": name, "PRICE": 1}) for n in range(num)]
        data = linkexpress.encode_file(rows, True, "big", "cp932", {0: projects.LAYOUT})
        (tmp_path / "landing" / "silver_two" / f"{name}_20260105030000.lxg").write_bytes(data)
    silver.run(project, spark, land(project, spark))
    ends = "select source_table from silver.control_events where kind = 'load_end' and source = 'silver_two'"
    assert [row.source_table for row in spark.sql(ends).collect()] == ["ITEMS"]
    rejected = "select kind from silver.rejects where source = 'silver_two'"
    assert [row.kind for row in spark.sql(rejected).collect()] == ["conflicting_duplicate"]


def test_a_message_that_comes_again_good_resolves_the_damaged_one_and_its_transaction_is_complete(
    spark, lakehouse, tmp_path
):
    """A queue's journals: the damaged message lies within a transaction of four messages."""
    source = {
        "codec": "linkexpress_journal",
        "from": {"transport": "parquet", "path": "landing/resent/*.parquet"},
        "tables": {"ITEMS": "DEPOT.ITEMS"},
        "options": {"source_tz": "UTC", "charset": "cp932"},
    }
    project = projects.make(tmp_path, {"resent": source}, lakehouse=lakehouse)
    landing = tmp_path / "landing" / "resent"
    landing.mkdir(parents=True)
    how = How(framing="message_body")
    good = [
        encode_file(
            [[JournalChange("ITEMS", "insert", {"ITEM_ID": n, "NAME": "a", "PRICE": 1}, 7, sts)]],
            {"ITEMS": projects.LAYOUT},
            how,
        )
        for n, sts in enumerate((1, 2, 2, 4))
    ]
    damaged = good[2][:15] + b"\x09" + good[2][16:]  # nine journals, it says
    qlik.write_parquet(qlik.rows([*good[:2], damaged, good[3]], "q"), landing / "1.parquet")
    silver.run(project, spark, land(project, spark))

    def found():
        rejects = spark.sql("select kind, resolved_by is not null from silver.rejects where source = 'resent'")
        told = spark.sql("select num_changes, state from silver.transactions where source = 'resent'")
        return list(map(tuple, rejects.collect())), list(map(tuple, told.collect()))

    assert found() == ([("contradiction", False)], [(3, "impossible")])
    qlik.write_parquet(qlik.rows([good[2]], "q", offset=2), landing / "2.parquet")
    silver.run(project, spark, land(project, spark))
    assert found() == ([("contradiction", True)], [(4, "complete")])


def test_a_message_that_a_broker_resends_good_resolves_the_damaged_one_in_any_order(spark, lakehouse, tmp_path):
    """Of the same table at the same place: in the same batch, in a later one, and in an earlier one."""
    source = {
        "codec": "qlik_json",
        "from": {"transport": "parquet", "path": "landing/sent_again/*.parquet"},
        "tables": {"items": "DEPOT.ITEMS"},
    }
    project = projects.make(tmp_path, {"sent_again": source}, lakehouse=lakehouse)
    landing = tmp_path / "landing" / "sent_again"
    landing.mkdir(parents=True)

    def message(n: int, price="1.00", part: int | None = None) -> bytes:
        row = {"ITEM_ID": n, "NAME": "a", "PRICE": price}
        headers = {"operation": "INSERT", "changeSequence": f"2026010203040500{n:019}", "transactionId": "A"}
        return json.dumps({"data": row, "beforeData": None, "headers": headers}).encode()[:part]

    cut = len(message(1)) - 12  # in the transaction's id
    batches = [
        [message(1), message(2, part=cut), message(3, "x"), message(3), message(4, "x")],
        [message(2), message(1, part=cut), message(5, part=30)],
        [message(5)],  # the damaged one says nothing of its place, so it may be of any
    ]
    for number, values in enumerate(batches):
        qlik.write_parquet(qlik.rows(values, "items", offset=10 * number), landing / f"{number}.parquet")
        silver.run(project, spark, land(project, spark))
    rejects = spark.sql(
        "select unit_id, resolved_by - batch_id as later from silver.rejects where source = 'sent_again'"
    )
    assert sorted((row.unit_id.rsplit("/", 1)[1], row.later) for row in rejects.collect()) == [
        ("1", 1),
        ("11", 0),
        ("12", None),
        ("2", 0),
        ("4", None),
    ]
    changes = spark.sql("select change_seq from silver.changes where source = 'sent_again' order by 1").collect()
    assert [int(row.change_seq[16:]) for row in changes] == [1, 2, 3, 5]


def test_a_journal_that_a_queue_has_twice_puts_no_older_row_over_a_newer_one(spark, lakehouse, tmp_path):
    source = {
        "codec": "linkexpress_journal",
        "from": {"transport": "parquet", "path": "landing/queue_twice/*.parquet"},
        "tables": {"ITEMS": "DEPOT.ITEMS"},
        "options": {"source_tz": "UTC", "charset": "cp932"},
    }
    project = projects.make(tmp_path, {"queue_twice": source}, lakehouse=lakehouse)
    landing = tmp_path / "landing" / "queue_twice"
    landing.mkdir(parents=True)
    how = How(framing="message_body")
    first, second = (
        encode_file(
            [[JournalChange("ITEMS", word, {"ITEM_ID": 1, "NAME": name, "PRICE": 1}, n, 5)]],
            {"ITEMS": projects.LAYOUT},
            how,
        )
        for n, (word, name) in enumerate((("insert", "old"), ("update", "new")))
    )
    qlik.write_parquet(qlik.rows([first, second, first], "q"), landing / "1.parquet")
    silver.run(project, spark, land(project, spark))
    qlik.write_parquet(qlik.rows([second, first], "q", offset=3), landing / "2.parquet")
    silver.run(project, spark, land(project, spark))
    rows = "select after:NAME::string as name from silver.changes where source = 'queue_twice' order by change_seq"
    assert [row.name for row in spark.sql(rows).collect()] == ["old", "new"]
    told = "select sum(num_repeats) as n from silver.batches where source = 'queue_twice'"
    assert spark.sql(told).collect()[0].n == 3


def test_a_file_that_comes_again_under_a_name_that_tells_its_place_resolves_the_one_that_told_none(
    spark, lakehouse, tmp_path
):
    project = projects.make(tmp_path, {"renamed": projects.DEPOT | {"from": "landing/renamed/*"}}, lakehouse=lakehouse)
    landing = tmp_path / "landing" / "renamed"
    landing.mkdir(parents=True)
    for name, first in (("changes", 1), ("others", 3)):
        records = projects.item_records(first, 2)
        data = linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})
        (landing / f"{name}.lxg").write_bytes(data)
    silver.run(project, spark, land(project, spark))

    def found() -> list[tuple]:
        rows = spark.sql(
            "select found, resolved_by is not null from silver.rejects where source = 'renamed' order by 1"
        )
        return list(map(tuple, rows.collect()))

    assert found() == [("changes.lxg", False), ("others.lxg", False)]
    (landing / "changes.lxg").rename(landing / "20260105031700_1.lxg")
    silver.run(project, spark, land(project, spark))
    assert found() == [("changes.lxg", True), ("others.lxg", False)]
    (landing / "others.lxg").rename(landing / "others2.lxg")  # no better
    silver.run(project, spark, land(project, spark))
    assert found() == [("changes.lxg", True), ("others.lxg", False), ("others2.lxg", False)]
