"""Rejects decoded again from what bronze keeps: a file that could not be framed, records of a block, a message, a whole
unit.
"""

import gzip
import itertools
import os
from functools import partial
from pathlib import Path

import deltalake
import pytest
from typer.testing import CliRunner

from inlet import bronze, change, lake, silver
from inlet.cli import app
from inlet.commands import file_state, replay, status
from inlet.commands import rejects as rejecting
from inlet.commands import run as running
from inlet.errors import ConfigError, Reject
from inlet.silver import decode, decoded
from tests import projects, scenarios
from tests.encode import linkexpress, qlik
from tests.stored import rows

COLUMNS = [c["name"] for c in projects.ITEMS["columns"]]
SHOP = {"codec": "qlik_json", "from": "landing/again_shop/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
OPTIONS = projects.DEPOT["options"]
scenario = scenarios.Scenarios()


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


def item(number: int, **more) -> bytes:
    row = {"ITEM_ID": number, "NAME": "a", "PRICE": 1} | more
    return qlik.value({"operation": "INSERT", "after": row, "change_seq": f"20260102030405{number:021d}"}, COLUMNS)


def of_items(number_of_layout: int, records: list[tuple]) -> bytes:
    return linkexpress.encode_file(records, True, "big", "cp932", {number_of_layout: projects.LAYOUT})


def are_resolved_by_the_next(feed) -> bool:
    """True if each batch but the last has left a reject that the next one of the source has resolved."""
    batches = [batch_id for (batch_id,) in feed.rows("batches", "batch_id", rest="order by batch_id")]
    return feed.rows("rejects", "batch_id", "resolved_by", rest="order by batch_id") == [*itertools.pairwise(batches)]


@pytest.fixture(scope="module")
def outcomes(spark, lakehouse, tmp_path_factory):
    return scenario.go(spark, lakehouse, tmp_path_factory.mktemp("scenarios"))


def prices(type_: str) -> dict:
    price = {"name": "PRICE", "type": type_, "source_type": type_.upper()}
    return projects.ITEMS | {
        "table": "DEPOT.PRICES",
        "name": "prices",
        "columns": [*projects.ITEMS["columns"][:2], price],
    }


@scenario(SHOP | {"tables": {"items": "DEPOT.PRICES"}}, prices("decimal(4,2)"))
def a_message_is_read_once_its_contract_was_fixed(feed):
    feed.send(item(1), item(2, PRICE=12345))
    assert counts((yield)) == (2, 2, 0, 1, 0, 0, 1)
    # what was fixed in vain is rejected again: the new reject stands for the old one
    assert counts((yield feed.chosen())) == (0, 0, 1, 0, 0, 0, 1)
    assert len(feed.rejects()) == 1
    feed.tables = [prices("decimal(7,2)")]
    versions = deltalake.DeltaTable(lake.table_path(feed.lakehouse, "silver.table_versions"))
    wider = "replace(columns, 'decimal(4,2)', 'decimal(7,2)')"  # the versions of this lakehouse are fixed, too
    versions.update(updates={"columns": wider}, predicate=f"source = '{feed.name}'")
    assert counts((yield feed.chosen())) == (0, 0, 1, 1, 0, 0, 0)
    assert len({*feed.rows("changes", "change_seq")}) == 2 == len(feed.rows("changes", "change_seq"))
    assert are_resolved_by_the_next(feed)
    with pytest.raises(ConfigError, match="There is no reject to decode again"):
        feed.chosen()


@scenario(projects.DEPOT | {"options": OPTIONS | {"byte_order": "little"}})
def a_file_that_could_not_be_framed_is_framed_once_its_options_were_fixed(feed):
    (feed.landing / "20260105031500_000012.lxg").write_bytes(of_items(1, projects.item_records(1, 4)))
    assert counts((yield)) == (1, 1, 0, 0, 0, 0, 1)
    assert counts((yield feed.chosen())) == (1, 1, 0, 0, 0, 0, 1)
    feed.source |= {"options": OPTIONS}
    assert counts((yield feed.chosen())) == (1, 6, 0, 4, 0, 2, 0)
    assert feed.rows("changes", "count(*)", "count(distinct change_seq)") == [(4, 4)]
    assert are_resolved_by_the_next(feed)


NAMES = projects.ITEMS | {"table": "DEPOT.NAMES", "name": "names", "columns": projects.ITEMS["columns"][:2]}


@scenario(projects.DEPOT | {"codec": "linkexpress_table", "tables": {"ROWS": "DEPOT.NAMES"}}, NAMES)
def a_record_that_needs_an_option_is_read_once_that_was_set(feed):
    # no null of the first 4,096 records tells what follows its indicator
    records = [("insert", {"ITEM_ID": n, "NAME": None if n == 4_100 else "a"}) for n in range(4_102)]
    how = {"logtype": "little", "null_var_body": "absent"}
    data = linkexpress.encode_table_file(records, "open", True, "big", "cp932", projects.LAYOUT[:2], **how)
    (feed.landing / "ROWS_20260105031500").write_bytes(data)
    assert counts((yield)) == (1, 4_102, 0, 4_101, 0, 0, 1)
    assert counts((yield feed.chosen())) == (0, 0, 1, 0, 0, 0, 1)
    feed.source |= {"options": OPTIONS | {"null_var_body": "absent"}}
    assert counts((yield feed.chosen())) == (0, 0, 1, 1, 0, 0, 0)
    assert feed.rows("changes", "count(*)", "count(distinct change_seq)") == [(4_102, 4_102)]
    assert are_resolved_by_the_next(feed)


@scenario(projects.DEPOT | {"options": OPTIONS | {"charset": "utf_8"}})
def a_full_load_ends_once_the_last_of_its_rejects_was_decoded(feed):
    records = [("row", {"ITEM_ID": n, "NAME": name, "PRICE": 1}) for n, name in ((1, "plain"), (2, "ｱｲｳ"))]
    (feed.landing / "ITEMS_20260105031600_000003.lxg").write_bytes(of_items(0, records))
    assert counts((yield)) == (1, 2, 0, 1, 0, 0, 1)
    ended = partial(feed.rows, "control_events", "left(load_id, 16)", rest="and kind = 'load_end'")
    assert ended() == []
    feed.source |= {"options": OPTIONS}
    assert counts((yield feed.chosen())) == (0, 0, 1, 1, 0, 0, 0)
    assert ended() == [("2026010503160000",)]


UNWANTED = {"ignore": ["DEPOT.IT*"]}


@scenario(SHOP | UNWANTED)
def messages_of_a_table_that_is_not_wanted_are_counted_and_come_back_once_it_is(feed):
    feed.send(item(1), item(2))
    assert counts((yield)) == (2, 2, 0, 0, 0, 2, 0)
    assert feed.rejects() == []
    del feed.source["ignore"]
    assert [row["num_records"] for row in feed.rejects()] == [1, 1]
    assert counts((yield feed.chosen())) == (0, 0, 2, 2, 0, 0, 0)
    assert feed.rejects() == []


@scenario(projects.DEPOT | UNWANTED)
def records_of_a_table_that_is_not_wanted_are_counted_and_come_back_once_it_is(feed):
    (feed.landing / "20260105031500_000012.lxg").write_bytes(of_items(1, projects.item_records(1, 4)))
    assert counts((yield)) == (1, 6, 0, 0, 0, 6, 0)
    assert feed.rejects() == []
    del feed.source["ignore"]
    assert [row["num_records"] for row in feed.rejects()] == [2, 2]
    assert counts((yield feed.chosen())) == (0, 0, 4, 4, 0, 0, 0)
    assert feed.rejects() == []


LOG = projects.ITEMS | {"table": "DEPOT.LOG", "name": "log"}


@scenario(SHOP | {"tables": {"items": "DEPOT.ITEMS", "log": "DEPOT.LOG"}, "ignore": ["DEPOT.LOG"]})
def a_transaction_is_whole_without_the_records_that_nobody_wants(feed):
    """Records 1 to 3 of each: `log` is the table that is ignored, `bad` a record that is rejected."""
    transactions = {
        "middle": ["items", "log", "items"],
        "last": ["items", "items", "log"],
        "first": ["log", "log", "items"],
        "rejected": ["items", "bad", "log"],
        "unwanted": ["log", "log", "log"],
    }
    sent: list[list] = [[], []]
    for t, (name, topics) in enumerate(transactions.items()):
        for n, topic in enumerate(topics):
            row = {"ITEM_ID": None if topic == "bad" else 10 * t + n, "NAME": "a", "PRICE": 1}
            change_ = {"operation": "INSERT", "after": row, "change_seq": f"20260102030405{10 * t + n:021d}"}
            change_ |= {"transaction_id": name, "transaction_event_counter": n + 1, "transaction_last_event": n == 2}
            of_topic = "log" if topic == "log" else "items"
            # what comes last of a transaction comes in a later batch
            sent[n // 2].append((of_topic, 10 * t + n, qlik.value(change_, COLUMNS)))

    def deliver(name: str, messages: list, first: int = 0) -> None:
        found = [row for topic, at, value in messages for row in qlik.rows([value], topic, offset=first + at)]
        qlik.write_parquet(found, feed.landing / f"{name}.parquet")

    def states() -> dict[str, tuple]:
        return {id_: state for id_, *state in feed.rows("transactions", "transaction_id", "state", "num_changes")}

    deliver("first", sent[0])
    yield
    assert states() == dict.fromkeys(("middle", "rejected"), ["open", 1]) | {"last": ["open", 2]}
    deliver("second", sent[1])
    yield
    whole = {"middle": ["complete", 2], "last": ["complete", 2], "first": ["complete", 1]}
    assert states() == whole | {"rejected": ["impossible", 1]}
    # delivered once more; of `middle` its ignored one alone
    deliver("again", [message for part in sent for message in part if message[0] == "log" or message[1] >= 10], 1000)
    yield
    assert states() == whole | {"rejected": ["impossible", 1]}
    # once they are wanted and decoded, they are events as any change is
    del feed.source["ignore"]
    feed.tables = [LOG]
    yield feed.chosen(kind="ignored")
    whole = dict.fromkeys(("middle", "last", "first", "unwanted"), ["complete", 3])
    assert states() == whole | {"rejected": ["impossible", 2]}


@scenario({"codec": "qlik_json"}, transport="lines", name="back")
def a_name_that_is_mapped_and_a_file_that_is_delivered_again_come_back_by_themselves(feed):
    feed.source |= {"tables": {"landing/back/items*": "DEPOT.ITEMS"}}
    packed, file = gzip.compress(item(2) + b"\n"), feed.landing / "items.jsonl.gz"

    def deliver(data: bytes) -> None:
        file.write_bytes(data)
        os.utime(file, (1, 1))

    def kinds() -> set[str]:
        return {reject["kind"] for reject in rejecting.rejects(feed.project(), feed.name, None)}

    (feed.landing / "other.jsonl").write_bytes(item(1) + b"\n")
    deliver(packed[:-5])
    assert counts((yield)) == (1, 1, 0, 0, 0, 0, 1)
    assert kinds() == {"unknown_table", "unreadable_file"}
    assert replay.due(feed.project(), [feed.name]) == []

    deliver(packed)
    assert counts((yield)) == (1, 1, 0, 1, 0, 0, 0)
    project = feed.project()
    assert kinds() == {"unknown_table"}
    [line] = [line for line in status.status(project)["sources"] if line["source"] == feed.name]
    assert line["refused files"] == 0
    assert file_state.file_state(project, str(file))[0]
    file.write_bytes(packed[:-1] + b"x")
    is_safe, words = file_state.file_state(project, str(file))
    assert not is_safe and "it does not hold the bytes that were landed. If the same file was damaged before" in words
    assert "`inlet replay --file landing/back/items.jsonl.gz`" in words
    file.write_bytes(packed)

    feed.source["tables"]["landing/back/other*"] = "DEPOT.ITEMS"
    assert counts((yield replay.due(feed.project(), [feed.name]))) == (0, 0, 1, 1, 0, 0, 0)
    assert rejecting.rejects(feed.project(), feed.name, None) == replay.due(feed.project(), [feed.name]) == []


@scenario(SHOP)
def a_reject_that_a_replay_has_ignored_comes_back_once_its_table_is_wanted(feed):
    feed.send(item(1, ITEM_ID="x"))
    yield
    feed.source |= {"ignore": ["DEPOT.*"]}
    assert counts((yield feed.chosen())) == (0, 0, 1, 0, 0, 1, 0)
    del feed.source["ignore"]
    assert [reject["kind"] for reject in feed.rejects()] == ["ignored"]
    assert counts((yield feed.chosen())) == (0, 0, 1, 0, 0, 0, 1)


@pytest.mark.smoke
@pytest.mark.parametrize("name", scenario.names)
def test_rejects_of_sources_that_share_their_batches(outcomes, name):
    scenarios.check(outcomes[name])


def test_a_replay_that_died_is_finished_and_one_of_bytes_that_are_gone_is_refused(
    spark, lakehouse, tmp_path, monkeypatch
):
    (tmp_path / "landing" / "again_gone").mkdir(parents=True)
    project = projects.make(
        tmp_path, {"again_gone": SHOP | {"from": "landing/again_gone/*.parquet"}}, lakehouse=lakehouse
    )
    qlik.write_parquet(qlik.rows([b"{broken"], "items"), tmp_path / "landing" / "again_gone" / "1.parquet")
    run(project, spark)
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
    (tmp_path / "expectations").symlink_to(Path(__file__).parent.parent / "expectations")
    with monkeypatch.context() as patched:  # the command, as far as silver
        patched.setattr(running, "STEPS", ("bronze", "silver"))
        done = CliRunner().invoke(app, ["replay", "--project", str(tmp_path), "--source", "again_gone"])
    assert (done.exit_code, done.exception) == (0, None), done.output
    assert len(replay.unresolved(project, "again_gone")) == 1
    of_batch = [f"num_{what}" for what in ("units", "records", "settled", "changes", "rejected")]
    last = rows(lakehouse, "silver.batches", "again_gone", *of_batch, rest="order by batch_id desc limit 1")
    assert last == [(0, 0, 1, 0, 1)]
    messages = deltalake.DeltaTable(lake.table_path(lakehouse, "bronze.messages"))
    messages.delete("source = 'again_gone'")
    with pytest.raises(ConfigError, match="Bronze does not hold again_gone/items/0/0 any more"):
        replay.chosen(project, "again_gone", None, None, None)


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
    changes = rows(lakehouse, "silver.changes", "again_twice", "after", rest="order by change_seq")
    assert [after["ITEM_ID"] for (after,) in changes] == [1, 2]
    assert replay.unresolved(project, "again_twice") == []


def test_an_ignored_record_is_an_event_of_its_own_where_it_alone_is_asked_for():
    rejects = [
        Reject("bad_digit", at, 10, at, "a digit", "x", b"", source_schema="S", source_table="T") for at in (0, 10, 20)
    ]
    spans = [(event.unit_offset, event.unit_length) for event in decoded._ignored(rejects, [])]
    assert spans == [(0, 30)]
    spans = [(event.unit_offset, event.unit_length) for event in decoded._ignored(rejects, [[10, 20, "stands"]])]
    assert spans == [(0, 10), (10, 10), (20, 10)]
