"""Rejects decoded again from what bronze keeps: a file that could not be framed, records of a block, a message, a whole
unit.
"""

import gzip
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from inlet import bronze, change, lake, silver
from inlet.cli import app
from inlet.commands import file_state, replay, status
from inlet.commands import rejects as rejecting
from inlet.commands import run as running
from inlet.errors import ConfigError, Reject
from inlet.silver import decoded
from tests import projects
from tests.encode import linkexpress, qlik

COLUMNS = [c["name"] for c in projects.ITEMS["columns"]]
SHOP = {"codec": "qlik_json", "from": "landing/again_shop/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
DEPOT = projects.DEPOT | {"from": "landing/again_depot/*.lxg"}
ROWS = DEPOT | {"codec": "linkexpress_table", "from": "landing/again_rows/*", "tables": {"ROWS": "DEPOT.NAMES"}}
NAMES = projects.ITEMS | {"table": "DEPOT.NAMES", "name": "names", "columns": projects.ITEMS["columns"][:2]}


def run(project, spark) -> dict:
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    return silver.run(project, spark, new.batch_id)


def again(project, spark, **which) -> dict:
    chosen = dict.fromkeys(("source", "kind", "batch", "unit")) | which
    return silver.run(project, spark, replay.plan(project, spark, replay.chosen(project, *chosen.values())))


def counts(account) -> tuple[int, ...]:
    return (
        account.num_units,
        account.num_records,
        account.num_settled,
        account.num_changes,
        account.num_repeats,
        account.num_control,
        account.num_rejected,
    )


@pytest.mark.smoke
def test_rejects_are_decoded_again_after_options_and_contracts_were_fixed(spark, lakehouse, tmp_path):
    for source in ("again_shop", "again_depot", "again_rows"):
        (tmp_path / "landing" / source).mkdir(parents=True)
    # no null of the first 4,096 records tells what follows its indicator
    rows = [("insert", {"ITEM_ID": n, "NAME": None if n == 4_100 else "a"}) for n in range(4_102)]
    how = {"logtype": "little", "null_var_body": "absent"}
    (tmp_path / "landing" / "again_rows" / "ROWS_20260105031500").write_bytes(
        linkexpress.encode_table_file(rows, "open", True, "big", "cp932", projects.LAYOUT[:2], **how)
    )
    narrow = projects.ITEMS | {
        "columns": [
            projects.ITEMS["columns"][0],
            {"name": "NAME", "type": "string", "source_type": "VARCHAR(10)"},
            {"name": "PRICE", "type": "decimal(4,2)", "source_type": "DECIMAL(4,2)"},
        ]
    }
    wrong = DEPOT | {"options": DEPOT["options"] | {"byte_order": "little"}}
    records = projects.item_records(1, 4)
    (tmp_path / "landing" / "again_depot" / "20260105031500_000012.lxg").write_bytes(
        linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})
    )
    sent = [
        qlik.value(
            {
                "operation": "INSERT",
                "after": {"ITEM_ID": n, "NAME": "a", "PRICE": price},
                "change_seq": f"20260102030405{n:021d}",
            },
            COLUMNS,
        )
        for n, price in ((1, 1), (2, 12345))
    ]
    qlik.write_parquet(qlik.rows(sent, "items"), tmp_path / "landing" / "again_shop" / "1.parquet")
    sources = {"again_shop": SHOP, "again_depot": wrong, "again_rows": ROWS}
    project = projects.make(tmp_path, sources, [narrow, NAMES], lakehouse)
    first = run(project, spark)
    assert counts(first["again_rows"]) == (1, 4_102, 0, 4_101, 0, 0, 1)
    assert counts(first["again_shop"]) == (2, 2, 0, 1, 0, 0, 1) and counts(first["again_depot"]) == (
        1,
        1,
        0,
        0,
        0,
        0,
        1,
    )

    # what was fixed in vain is rejected again: the new reject stands for the old one
    same = again(project, spark)
    assert counts(same["again_shop"]) == (0, 0, 1, 0, 0, 0, 1) and counts(same["again_depot"]) == (1, 1, 0, 0, 0, 0, 1)
    assert counts(same["again_rows"]) == (0, 0, 1, 0, 0, 0, 1)
    assert len(replay.unresolved(project)) == 3

    told = ROWS | {"options": ROWS["options"] | {"null_var_body": "absent"}}
    sources = {"again_shop": SHOP, "again_depot": DEPOT, "again_rows": told}
    project = projects.make(tmp_path, sources, [projects.ITEMS, NAMES], lakehouse)
    spark.sql(
        "update silver.table_versions set columns = replace(columns, 'decimal(4,2)', 'decimal(7,2)')"
    )  # the versions of this lakehouse are fixed, too
    fixed = again(project, spark)
    assert counts(fixed["again_shop"]) == (0, 0, 1, 1, 0, 0, 0) and counts(fixed["again_depot"]) == (
        1,
        6,
        0,
        4,
        0,
        2,
        0,
    )
    assert counts(fixed["again_rows"]) == (0, 0, 1, 1, 0, 0, 0)  # the option that was set later
    found = spark.sql(
        "select source, count(*), count(distinct change_seq) from silver.changes where source like 'again%' group by "
        "source order by source"
    ).collect()
    assert [tuple(row) for row in found] == [("again_depot", 4, 4), ("again_rows", 4_102, 4_102), ("again_shop", 2, 2)]
    rejects = spark.sql(
        "select source, resolved_by - batch_id as after from silver.rejects where source like 'again%' order by "
        "source, batch_id"
    ).collect()
    assert [tuple(row) for row in rejects] == [
        ("again_depot", 1),
        ("again_depot", 1),
        ("again_rows", 1),
        ("again_rows", 1),
        ("again_shop", 1),
        ("again_shop", 1),
    ]
    with pytest.raises(ConfigError, match="There is no reject to decode again"):
        replay.chosen(project, None, None, None, None)


def test_a_full_load_ends_once_the_last_of_its_rejects_was_decoded(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "again_load"
    landing.mkdir(parents=True)
    rows = [("row", {"ITEM_ID": n, "NAME": name, "PRICE": 1}) for n, name in ((1, "plain"), (2, "ｱｲｳ"))]
    (landing / "ITEMS_20260105031600_000003.lxg").write_bytes(
        linkexpress.encode_file(rows, True, "big", "cp932", {0: projects.LAYOUT})
    )
    source = projects.DEPOT | {"from": "landing/again_load/*.lxg"}
    project = projects.make(
        tmp_path, {"again_load": source | {"options": source["options"] | {"charset": "utf_8"}}}, lakehouse=lakehouse
    )
    assert counts(run(project, spark)["again_load"]) == (1, 2, 0, 1, 0, 0, 1)
    ended = "select load_id from silver.control_events where source = 'again_load' and kind = 'load_end'"
    assert spark.sql(ended).collect() == []
    project = projects.make(tmp_path, {"again_load": source}, lakehouse=lakehouse)
    assert counts(again(project, spark, source="again_load")["again_load"]) == (0, 0, 1, 1, 0, 0, 0)
    assert [row[0][:16] for row in spark.sql(ended).collect()] == ["2026010503160000"]


def test_a_replay_that_died_is_finished_and_one_of_bytes_that_are_gone_is_refused(
    spark, lakehouse, tmp_path, monkeypatch
):
    (tmp_path / "landing" / "again_gone").mkdir(parents=True)
    project = projects.make(
        tmp_path, {"again_gone": SHOP | {"from": "landing/again_gone/*.parquet"}}, lakehouse=lakehouse
    )
    qlik.write_parquet(qlik.rows([b"{broken"], "items"), tmp_path / "landing" / "again_gone" / "1.parquet")
    run(project, spark)
    from inlet.silver import decode

    batch_id = replay.plan(project, spark, replay.chosen(project, "again_gone", None, None, None))
    assert replay.chosen(project, "again_gone", None, None, None) == []  # the next run decodes them
    with monkeypatch.context() as patched:
        patched.setattr(decode, "_close", lambda batch: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            silver.run(project, spark, batch_id)
    assert silver.pending(project) == [batch_id]
    assert counts(silver.run(project, spark, batch_id)["again_gone"]) == (0, 0, 1, 0, 0, 0, 1)
    assert [row["batch_id"] for row in replay.unresolved(project, "again_gone")] == [batch_id]
    twice = [replay.plan(project, spark, replay.unresolved(project, "again_gone")) for _ in range(2)]
    for planned in twice:  # both before one was decoded: two rejects of one record
        assert counts(silver.run(project, spark, planned)["again_gone"]) == (0, 0, 1, 0, 0, 0, 1)
    assert sorted(row["batch_id"] for row in replay.unresolved(project, "again_gone")) == twice
    assert counts(again(project, spark, source="again_gone")["again_gone"]) == (0, 0, 1, 0, 0, 0, 1)
    (tmp_path / "expectations").symlink_to(Path(__file__).parent.parent / "expectations")
    with monkeypatch.context() as patched:  # the command, as far as silver
        patched.setattr(running, "STEPS", ("bronze", "silver"))
        done = CliRunner().invoke(app, ["replay", "--project", str(tmp_path), "--source", "again_gone"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert len(replay.unresolved(project, "again_gone")) == 1
    spark.sql("delete from bronze.messages where source = 'again_gone'")
    with pytest.raises(ConfigError, match="Bronze does not hold again_gone/items/0/0 any more"):
        replay.chosen(project, "again_gone", None, None, None)


def test_records_of_tables_that_are_not_wanted_are_counted_and_come_back_once_they_are(spark, lakehouse, tmp_path):
    for source in ("unwanted_shop", "unwanted_depot"):
        (tmp_path / "landing" / source).mkdir(parents=True)
    sources = {
        "unwanted_shop": SHOP | {"from": "landing/unwanted_shop/*.parquet"},
        "unwanted_depot": DEPOT | {"from": "landing/unwanted_depot/*.lxg"},
    }
    project = projects.make(
        tmp_path, {name: source | {"ignore": ["DEPOT.IT*"]} for name, source in sources.items()}, lakehouse=lakehouse
    )
    (tmp_path / "landing" / "unwanted_depot" / "20260105031500_000012.lxg").write_bytes(
        linkexpress.encode_file(projects.item_records(1, 4), True, "big", "cp932", {1: projects.LAYOUT})
    )
    sent = [
        qlik.value(
            {
                "operation": "INSERT",
                "after": {"ITEM_ID": n, "NAME": "a", "PRICE": 1},
                "change_seq": f"20260102030405{n:021d}",
            },
            COLUMNS,
        )
        for n in (1, 2)
    ]
    qlik.write_parquet(qlik.rows(sent, "items"), tmp_path / "landing" / "unwanted_shop" / "1.parquet")
    first = run(project, spark)
    assert counts(first["unwanted_shop"]) == (2, 2, 0, 0, 0, 2, 0) and counts(first["unwanted_depot"]) == (
        1,
        6,
        0,
        0,
        0,
        6,
        0,
    )
    assert [row for row in replay.unresolved(project) if row["source"] in sources] == []
    project = projects.make(tmp_path, sources, lakehouse=lakehouse)
    wanted = [row for row in replay.unresolved(project) if row["source"] in sources]
    assert sorted((row["source"], row["num_records"]) for row in wanted) == [
        ("unwanted_depot", 2),
        ("unwanted_depot", 2),
        ("unwanted_shop", 1),
        ("unwanted_shop", 1),
    ]
    again_ = silver.run(project, spark, replay.plan(project, spark, wanted))
    assert counts(again_["unwanted_shop"]) == (0, 0, 2, 2, 0, 0, 0) and counts(again_["unwanted_depot"]) == (
        0,
        0,
        4,
        4,
        0,
        0,
        0,
    )
    assert [row for row in replay.unresolved(project) if row["source"] in sources] == []


def test_a_transaction_is_whole_without_the_records_that_nobody_wants(spark, lakehouse, tmp_path):
    """Records 1 to 3 of each: `log` is the table that is ignored, `bad` a record that is rejected."""
    landing = tmp_path / "landing" / "part_shop"
    landing.mkdir(parents=True)
    source = SHOP | {"from": "landing/part_shop/*.parquet", "tables": {"items": "DEPOT.ITEMS", "log": "DEPOT.LOG"}}
    project = projects.make(tmp_path, {"part_shop": source | {"ignore": ["DEPOT.LOG"]}}, lakehouse=lakehouse)
    transactions = {
        "middle": ["items", "log", "items"],
        "last": ["items", "items", "log"],
        "first": ["log", "log", "items"],
        "rejected": ["items", "bad", "log"],
        "unwanted": ["log", "log", "log"],
    }
    sent: dict[int, list] = {}
    for t, (name, topics) in enumerate(transactions.items()):
        for n, topic in enumerate(topics):
            change_ = {"operation": "INSERT", "after": {"ITEM_ID": 10 * t + n, "NAME": "a", "PRICE": 1}}
            change_ |= {"change_seq": f"20260102030405{10 * t + n:021d}", "transaction_id": name}
            change_ |= {"transaction_event_counter": n + 1, "transaction_last_event": n == 2}
            if topic == "bad":
                change_["after"]["ITEM_ID"] = None
            of_topic = "log" if topic == "log" else "items"
            # what comes last of a transaction comes in a later batch
            sent.setdefault(n // 2, []).append((of_topic, 10 * t + n, qlik.value(change_, COLUMNS)))

    def states() -> dict[str, tuple]:
        rows = spark.sql(
            "select transaction_id, state, num_changes from silver.transactions where source = 'part_shop'"
        ).collect()
        return {row[0]: (row[1], row[2]) for row in rows}

    for batch, messages in sent.items():
        rows = [row for topic, at, value in messages for row in qlik.rows([value], topic, offset=at)]
        qlik.write_parquet(rows, landing / f"{batch}.parquet")
        run(project, spark)
        if not batch:
            assert states() == dict.fromkeys(("middle", "rejected"), ("open", 1)) | {"last": ("open", 2)}
    whole = {"middle": ("complete", 2), "last": ("complete", 2), "first": ("complete", 1)}
    assert states() == whole | {"rejected": ("impossible", 1)}
    messages = [message for batch in sent.values() for message in batch]
    again_ = [
        m for m in messages if m[0] == "log" or m[1] >= 10
    ]  # delivered once more; of `middle` its ignored one alone
    rows = [row for topic, at, value in again_ for row in qlik.rows([value], topic, offset=1000 + at)]
    qlik.write_parquet(rows, landing / "again.parquet")
    run(project, spark)
    assert states() == whole | {"rejected": ("impossible", 1)}

    # once they are wanted and decoded, they are events as any change is
    log = projects.ITEMS | {"table": "DEPOT.LOG", "name": "log"}
    project = projects.make(tmp_path, {"part_shop": source}, [projects.ITEMS, log], lakehouse=lakehouse)
    again(project, spark, source="part_shop", kind="ignored")
    whole = dict.fromkeys(("middle", "last", "first", "unwanted"), ("complete", 3))
    assert states() == whole | {"rejected": ("impossible", 2)}


def test_a_lakehouse_of_before_gains_the_columns_and_tables_it_lacks(spark, lakehouse):
    spark.sql("drop table silver.stopped")
    spark.sql("drop table silver.waiting")
    spark.sql("create table silver.stopped (source string, batch_id bigint) using delta")
    spark.sql("insert into silver.stopped values ('old', 1)")
    assert lake.peek(lakehouse, "silver.stopped", ["source", "why"]) == [{"source": "old", "why": None}]
    lake.create(spark, lakehouse)
    assert spark.table("silver.stopped").columns == [c.name for c in change.STOPPED] and spark.table(
        "silver.waiting"
    ).columns == [c.name for c in change.WAITING]
    assert spark.sql("select source, why from silver.stopped").collect()[0].asDict() == {"source": "old", "why": None}


def test_a_name_that_is_mapped_and_a_file_that_is_delivered_again_come_back_by_themselves(spark, lakehouse, tmp_path):
    folder = tmp_path / "landing" / "back"
    folder.mkdir(parents=True)
    where = {"transport": "lines", "path": "landing/back/*"}
    source = {"codec": "qlik_json", "from": where, "tables": {"landing/back/items*": "DEPOT.ITEMS"}}
    sent = [
        qlik.value(
            {"operation": "INSERT", "after": {"ITEM_ID": n, "NAME": "a", "PRICE": 1}, "change_seq": f"{n:035d}"},
            COLUMNS,
        )
        for n in (1, 2)
    ]
    (folder / "other.jsonl").write_bytes(sent[0] + b"\n")
    packed = gzip.compress(sent[1] + b"\n")
    (folder / "items.jsonl.gz").write_bytes(packed[:-5])
    os.utime(folder / "items.jsonl.gz", (1, 1))
    project = projects.make(tmp_path, {"back": source}, lakehouse=lakehouse)
    assert counts(run(project, spark)["back"]) == (1, 1, 0, 0, 0, 0, 1)
    assert {r["kind"] for r in rejecting.rejects(project, "back", None)} == {"unknown_table", "unreadable_file"}
    assert replay.due(project, ["back"]) == []

    (folder / "items.jsonl.gz").write_bytes(packed)
    os.utime(folder / "items.jsonl.gz", (1, 1))
    assert counts(run(project, spark)["back"]) == (1, 1, 0, 1, 0, 0, 0)
    assert [r["kind"] for r in rejecting.rejects(project, "back", None)] == ["unknown_table"]
    [line] = [line for line in status.status(project)["sources"] if line["source"] == "back"]
    assert line["refused files"] == 0
    file = folder / "items.jsonl.gz"
    assert file_state.file_state(project, str(file))[0]
    file.write_bytes(packed[:-1] + b"x")
    is_safe, words = file_state.file_state(project, str(file))
    assert not is_safe and "it does not hold the bytes that were landed. If the same file was damaged before" in words
    assert "`inlet replay --file landing/back/items.jsonl.gz`" in words
    file.write_bytes(packed)

    source = source | {"tables": source["tables"] | {"landing/back/other*": "DEPOT.ITEMS"}}
    project = projects.make(tmp_path, {"back": source}, lakehouse=lakehouse)
    batch_id = replay.plan(project, spark, replay.due(project, ["back"]))
    assert counts(silver.run(project, spark, batch_id)["back"]) == (0, 0, 1, 1, 0, 0, 0)
    assert rejecting.rejects(project, "back", None) == replay.due(project, ["back"]) == []


def test_a_record_with_two_rejects_is_one_change_and_a_batch_that_was_only_planned_is_landed_first(
    spark, lakehouse, tmp_path, monkeypatch
):
    landing = tmp_path / "landing" / "again_twice"
    landing.mkdir(parents=True)
    (tmp_path / "expectations").symlink_to(Path(__file__).parent.parent / "expectations")
    sources = {"again_twice": SHOP | {"from": "landing/again_twice/*.parquet"}}
    narrow = projects.ITEMS | {"columns": [{"name": "ITEM_ID", "type": "int"}, {"name": "NAME", "type": "int"}]}

    def item(number: int) -> bytes:
        row = {"ITEM_ID": number, "NAME": "box"}
        at = f"20260105030405{number:021d}"
        return qlik.value({"operation": "INSERT", "after": row, "change_seq": at}, COLUMNS[:2])

    project = projects.make(tmp_path, sources, [narrow], lakehouse)
    qlik.write_parquet(qlik.rows([item(1)], "items"), landing / "1.parquet")
    run(project, spark)
    rejects = replay.unresolved(project, "again_twice")
    twice = [replay.plan(project, spark, rejects) for _ in range(2)]
    for planned in twice:
        silver.run(project, spark, planned)
    project = projects.make(tmp_path, sources, [projects.ITEMS], lakehouse)
    assert counts(again(project, spark, source="again_twice", batch=twice[0])["again_twice"]) == (0, 0, 1, 1, 0, 0, 0)

    qlik.write_parquet(qlik.rows([item(2)], "items", offset=1), landing / "2.parquet")
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    with monkeypatch.context() as patched:
        patched.setattr("inlet.bronze.landing.write_units", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            bronze.land(project, spark, new)
    with monkeypatch.context() as patched:  # the command, as far as silver
        patched.setattr(running, "STEPS", ("bronze", "silver"))
        done = CliRunner().invoke(app, ["replay", "--project", str(tmp_path), "--source", "again_twice"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    found = spark.sql("select cast(after:ITEM_ID as int) from silver.changes where source = 'again_twice' order by 1")
    assert [row[0] for row in found.collect()] == [1, 2]
    assert replay.unresolved(project, "again_twice") == []


def test_a_reject_that_a_replay_has_ignored_comes_back_once_its_table_is_wanted(spark, lakehouse, tmp_path):
    (tmp_path / "landing" / "again_ignored").mkdir(parents=True)
    source = SHOP | {"from": "landing/again_ignored/*.parquet"}
    row = {"ITEM_ID": "x", "NAME": "box", "PRICE": None}
    sent = qlik.value({"operation": "INSERT", "after": row, "change_seq": f"20260105030405{1:021d}"}, COLUMNS)
    qlik.write_parquet(qlik.rows([sent], "items"), tmp_path / "landing" / "again_ignored" / "1.parquet")
    run(projects.make(tmp_path, {"again_ignored": source}, lakehouse=lakehouse), spark)
    project = projects.make(tmp_path, {"again_ignored": source | {"ignore": ["DEPOT.*"]}}, lakehouse=lakehouse)
    assert counts(again(project, spark, source="again_ignored")["again_ignored"]) == (0, 0, 1, 0, 0, 1, 0)
    project = projects.make(tmp_path, {"again_ignored": source}, lakehouse=lakehouse)
    assert [row["kind"] for row in replay.unresolved(project, "again_ignored")] == ["ignored"]
    assert counts(again(project, spark, source="again_ignored")["again_ignored"]) == (0, 0, 1, 0, 0, 0, 1)


def test_an_ignored_record_is_an_event_of_its_own_where_it_alone_is_asked_for():
    rejects = [
        Reject("bad_digit", at, 10, at, "a digit", "x", b"", source_schema="S", source_table="T") for at in (0, 10, 20)
    ]
    spans = [(event.unit_offset, event.unit_length) for event in decoded._ignored(rejects, [])]
    assert spans == [(0, 30)]
    spans = [(event.unit_offset, event.unit_length) for event in decoded._ignored(rejects, [[10, 20, "stands"]])]
    assert spans == [(0, 10), (10, 10), (20, 10)]
