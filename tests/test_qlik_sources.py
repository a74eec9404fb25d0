"""qlik_json from messages into silver, where several messages decide together: column lists that metadata messages
bring, places of full loads, loads against the changes that come after them.
"""

import datetime
import itertools
import json
import os
import shutil
import zlib
from pathlib import Path

import deltalake
import pytest
from typer.testing import CliRunner

from inlet import bronze, checks, gold, lake, silver
from inlet.cli import app
from inlet.codecs.qlik import full_load
from inlet.commands import decode, move_load, replay
from inlet.commands.run import build_gold
from inlet.errors import CheckFailed, ConfigError
from inlet.gold import generate
from inlet.silver import messages as silver_messages
from tests import projects, scenarios
from tests.encode import qlik
from tests.stored import rows

COLUMNS = [c["name"] for c in projects.ITEMS["columns"]]
OTHER_ORDER = ["PRICE", "ITEM_ID", "NAME"]


def project_of(tmp_path, lakehouse, name: str, tables: dict | None = None, contracts=None, **options):
    (tmp_path / "landing" / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(Path(__file__).resolve().parents[1] / "expectations", tmp_path / "expectations")
    source = {"codec": "qlik_json", "from": f"landing/{name}/*.parquet", "options": options}
    return projects.make(
        tmp_path, {name: source | {"tables": tables or {"items": "DEPOT.ITEMS"}}}, contracts, lakehouse
    )


def run(project, spark, messages: list[dict], number: int) -> int:
    """Land and decode messages, and what rejects are due. Out: the last batch."""
    [name] = project.sources
    qlik.write_parquet(messages, project.root / "landing" / name / f"{number}.parquet")
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    silver.run(project, spark, new.batch_id)
    if rejects := replay.due(project, [name]):
        again = replay.plan(project, spark, rejects)
        silver.run(project, spark, again)
        return again
    return new.batch_id


def update(n: int, columns: list[str], schema_id: str | None, at: str = "20260102030405") -> bytes:
    """An update of the price to null; the name is not supplied."""
    value = qlik.value(
        {"operation": "UPDATE", "change_seq": f"{at}{n:021d}", "after": {"ITEM_ID": n, "PRICE": None}}, columns
    )
    return value.replace(b'"messageSchemaId":null', b'"messageSchemaId":' + json.dumps(schema_id).encode())


def metadata(schema_id: str, columns: list[str]) -> bytes:
    told = {name: {"ordinal": n, "type": "WSTRING"} for n, name in enumerate(columns, 1)}
    message = {
        "schemaId": schema_id,
        "lineage": {"schema": "DEPOT", "table": "ITEMS", "tableVersion": 1},
        "tableStructure": {"tableColumns": told},
    }
    envelope = {"magic": "atMSG", "type": "MD", "headers": None, "messageSchemaId": schema_id}
    return json.dumps(envelope | {"messageSchema": None, "message": message}).encode()


def rows_at(values: list[bytes], topic: str, at: str, offset: int = 0) -> list[dict]:
    """Messages that the broker has given one time."""
    time = datetime.datetime.fromisoformat(at).replace(tzinfo=datetime.UTC)
    return [row | {"timestamp": time} for row in qlik.rows(values, topic, offset=offset)]


def refresh(n: int, price=1) -> bytes:
    return qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": n, "NAME": "a", "PRICE": price}}, COLUMNS)


def places_of(lakehouse: str, source: str) -> list[tuple]:
    of_change = "operation", "after", "left(change_seq, 16)"
    changes = rows(lakehouse, "silver.changes", source, *of_change, rest="order by change_seq")
    return [(operation, after["ITEM_ID"], at) for operation, after, at in changes]


def hidden_of(lakehouse: str, source: str) -> list[tuple]:
    of_event = "kind", "load_id", "left(change_seq, 16)", "detail"
    of_kinds = "and kind in ('change_before_load', 'load_moved')"
    return rows(lakehouse, "silver.control_events", source, *of_event, rest=of_kinds)


def failed_checks(project, spark, batch_id: int) -> str:
    """What the gate behind silver says of a batch."""
    try:
        checks.check(project, spark, "silver", batch_ids=[batch_id])
        return ""
    except CheckFailed as error:
        return error.message


SHOP = {"codec": "qlik_json", "tables": {"items": "DEPOT.ITEMS"}}
scenario, lists = scenarios.Scenarios(), scenarios.Scenarios()


@pytest.fixture(scope="module")
def outcomes(spark, lakehouse, tmp_path_factory):
    root = tmp_path_factory.mktemp("loads")
    shutil.copytree(Path(__file__).resolve().parents[1] / "expectations", root / "expectations")
    return scenario.go(spark, lakehouse, root)


@pytest.fixture(scope="module")
def outcomes_of_lists(spark, lakehouse, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(silver_messages, "NUM_SAMPLE", 0)  # so the changes are walked before and after
        return lists.go(spark, lakehouse, tmp_path_factory.mktemp("lists"))


def changes_of(feed) -> list[tuple]:
    changes = feed.rows("changes", "change_seq", "after", "column_mask", rest="order by change_seq")
    return [(int(seq[16:]), after, mask.hex()) for seq, after, mask in changes]


def price_is_null(*numbers: int) -> list[tuple]:
    return [(n, {"ITEM_ID": n, "PRICE": None}, "05") for n in numbers]


def due(feed) -> list[dict]:
    return replay.due(feed.project(), [feed.name])


@lists(SHOP)
def masks_are_read_by_the_metadata_message_that_a_message_names(feed):
    first = [metadata("AA", COLUMNS), update(1, COLUMNS, "AA")]
    first += [update(2, OTHER_ORDER, "BB"), update(3, COLUMNS, None)]  # a list that has not come yet; and none
    feed.send(*first)
    yield
    [(kind, at)] = feed.rows("rejects", "kind", "change_seq")
    assert (kind, int(at[16:])) == ("definition_missing", 2)
    # by the contract's order it would have no key and a price that is not supplied
    assert changes_of(feed) == price_is_null(1, 3)
    assert due(feed) == []  # nothing new has come
    feed.send(update(4, COLUMNS, "AA"), offset=10)
    yield
    assert due(feed) == []

    feed.send(metadata("BB", OTHER_ORDER), update(5, OTHER_ORDER, "BB"), topic="meta")
    yield
    yield due(feed)
    assert changes_of(feed) == price_is_null(1, 2, 3, 4, 5)
    # topic meta is of no table: the list of the message tells it
    assert feed.rejects() == []
    of_list = "source_table", "table_version", "feed_version", "change_seq", "detail"
    told = [
        (*row, json.loads(detail)["schema_id"])
        for *row, detail in feed.rows("table_versions", *of_list, rest="and origin = 'feed'")
    ]
    assert sorted(told, key=str) == [("ITEMS", None, 1, "", "AA"), ("ITEMS", None, 1, "", "BB")]
    shown = [row for _, row in decode.decode_file(feed.project(), feed.landing / "items0.parquet", feed.name)]
    assert [row["after"] for row in shown if "after" in row] == [{"ITEM_ID": n, "PRICE": None} for n in (1, 2, 3)]


@lists(SHOP)
def a_message_that_names_a_list_waits_for_the_first_one_of_its_source(feed):
    feed.send(update(1, OTHER_ORDER, "CC"))
    yield
    assert changes_of(feed) == []
    feed.send(metadata("CC", OTHER_ORDER), offset=5)
    yield
    yield due(feed)
    assert changes_of(feed) == price_is_null(1)


@lists(SHOP)
def lists_that_an_earlier_inlet_has_landed_are_kept_by_a_replay(feed):
    feed.send(metadata("DD", OTHER_ORDER))
    yield
    lookups = deltalake.DeltaTable(lake.table_path(feed.lakehouse, "bronze.lookups"))
    lookups.delete(f"source = '{feed.name}'")  # which it did not keep
    feed.send(update(1, OTHER_ORDER, "DD"), offset=5)
    yield
    assert changes_of(feed) == [] == due(feed)
    yield feed.chosen()
    assert changes_of(feed) == price_is_null(1)


@pytest.mark.parametrize("name", lists.names)
def test_column_lists_of_sources_that_share_their_batches(outcomes_of_lists, name):
    scenarios.check(outcomes_of_lists[name])


def write(feed, messages: list[dict]) -> None:
    qlik.write_parquet(messages, feed.landing / f"{len([*feed.landing.iterdir()])}.parquet")


def send_at(feed, at: str, *values: bytes, offset: int = 0) -> None:
    write(feed, rows_at([*values], "items", at, offset))


def places(feed) -> list[tuple]:
    return places_of(feed.lakehouse, feed.name)


def hidden(feed) -> list[tuple]:
    return hidden_of(feed.lakehouse, feed.name)


def failed(feed) -> str:
    """What the gate says of the last batch, which other scenarios share."""
    [(batch_id,)] = feed.rows("batches", "max(batch_id)")
    return failed_checks(feed.project(), feed.spark, batch_id)


def ends(feed) -> int:
    return len(feed.rows("control_events", "kind", rest="and kind = 'load_end'"))


@scenario(SHOP)
def a_load_comes_before_the_changes_that_follow_its_rows_in_the_feed(feed):
    """The broker's clock is four seconds ahead of the source's."""
    load = rows_at([refresh(1), refresh(2)], "items", "2026-01-02T03:04:09")
    change = rows_at([update(1, COLUMNS, None, "20260102030406")], "items", "2026-01-02T03:04:10", offset=2)
    write(feed, load + change)
    yield
    assert places(feed) == [
        ("REFRESH", 1, "2026010203040599"),
        ("REFRESH", 2, "2026010203040599"),
        ("UPDATE", 1, "2026010203040600"),
    ]
    assert hidden(feed) == [] and failed(feed) == ""


@scenario(SHOP)
def a_load_whose_rows_come_in_a_later_batch_hides_no_change(feed):
    """The change is of the same millisecond as the first row of the load, by the broker's clock."""
    send_at(feed, "2026-01-02T03:04:09", update(1, COLUMNS, None, "20260102030406"), offset=2)
    yield
    send_at(feed, "2026-01-02T03:04:09", refresh(1), refresh(2))
    yield
    load_id = "DEPOT.ITEMS@2026010203040900"
    assert hidden(feed) == [("change_before_load", load_id, "2026010203040600", '{"changes": 1}')]
    assert "silver.control_events" in failed(feed)


@scenario(SHOP | {"options": {"clock_skew_seconds": 5}})
def the_skew_of_clocks_moves_new_loads_earlier(feed):
    send_at(feed, "2026-01-02T03:04:09", refresh(1))
    yield
    send_at(feed, "2026-01-02T03:04:10", update(1, COLUMNS, None, "20260102030406"), offset=2)
    yield
    assert places(feed) == [("REFRESH", 1, "2026010203040400"), ("UPDATE", 1, "2026010203040600")]
    assert hidden(feed) == [] and ends(feed) == 0  # it may be from before the load
    send_at(feed, "2026-01-02T03:04:20", update(1, COLUMNS, None, "20260102030415"), offset=3)
    yield
    assert ends(feed) == 1


@pytest.mark.parametrize("name", scenario.names)
def test_loads_of_sources_that_share_their_batches(outcomes, name):
    scenarios.check(outcomes[name])


def test_a_change_that_a_load_hides_is_reported_and_the_load_can_be_moved(spark, lakehouse, tmp_path):
    name, load_id = "hidden_shop", "DEPOT.ITEMS@2026010203040900"
    items = projects.ITEMS | {"name": "hidden_items"}
    project = project_of(tmp_path, lakehouse, name, None, [items])
    shutil.copytree(generate.HOME / "dbt", tmp_path / "dbt", ignore=shutil.ignore_patterns("target", "gold", "marts"))
    generate.write(project)
    run(project, spark, rows_at([refresh(1), refresh(2)], "items", "2026-01-02T03:04:09"), 1)
    change = rows_at([update(1, COLUMNS, None, "20260102030406")], "items", "2026-01-02T03:04:10", offset=2)
    batch_id = run(project, spark, change, 2)
    assert hidden_of(lakehouse, name) == [("change_before_load", load_id, "2026010203040600", '{"changes": 1}')]
    assert "silver.control_events" in failed_checks(project, spark, batch_id)  # nothing is published with it
    build_gold(project, spark, ["hidden_items"])

    with pytest.raises(ConfigError, match="has no full load"):
        move_load.move(project, spark, name, "DEPOT.ITEMS@2026", 0)
    assert move_load.move(project, spark, name, load_id, 0) == ("DEPOT.ITEMS", "2026010203040599")
    assert places_of(lakehouse, name) == [
        ("REFRESH", 1, "2026010203040599"),
        ("REFRESH", 2, "2026010203040599"),
        ("UPDATE", 1, "2026010203040600"),
    ]
    with pytest.raises(ConfigError, match="is not finished"):
        build_gold(project, spark)
    assert failed_checks(project, spark, batch_id) != ""  # until gold is made again
    build_gold(project, spark, ["hidden_items"], full_refresh=True)
    move_load.finish(spark, name, load_id)
    assert failed_checks(project, spark, batch_id) == ""
    assert gold.verify(project, spark, "hidden_items", 20)[1:] == (0, [])
    current = spark.sql(
        f"select item_id, operation from gold.hidden_items__current where source = '{name}' order by 1"
    ).collect()
    assert [tuple(row) for row in current] == [(1, "UPDATE"), (2, "REFRESH")]
    # its later rows have their places after the new start
    batch_id = run(project, spark, rows_at([refresh(3)], "items", "2026-01-02T03:04:11", offset=3), 3)
    assert ("REFRESH", 3, "2026010203040599") in places_of(lakehouse, name) and failed_checks(
        project, spark, batch_id
    ) == ""


def test_loads_of_topics_with_the_same_checksum_are_mended(spark, lakehouse, tmp_path, monkeypatch):
    """An earlier Inlet gave both topics the same number, and did not look whether two rows of loads share a place."""
    name, seen = "alike_shop", {}
    for n in itertools.count():
        topic = f"topic{n}"
        other = seen.setdefault(zlib.crc32(topic.encode()) % 9999, topic)
        if other != topic:
            break
    boxes = projects.ITEMS | {"table": "DEPOT.BOXES", "name": "boxes"}
    mapped = {other: "DEPOT.ITEMS", topic: "DEPOT.BOXES"}
    project = project_of(tmp_path, lakehouse, name, mapped, [projects.ITEMS, boxes])
    messages = [row for one in (other, topic) for row in rows_at([refresh(1)], one, "2026-01-02T03:04:09")]
    with monkeypatch.context() as patch:  # as it was
        patch.setattr(
            full_load._Numbers,
            "give",
            lambda self, load, topic: load["topics"].update({topic: full_load.topic_number(topic)}),
        )
        patch.setattr(silver_messages, "has_repeats", lambda *given: False)
        batch_id = run(project, spark, messages, 1)
    assert "silver.changes" in failed_checks(project, spark, batch_id)
    result = CliRunner().invoke(
        app, ["move-load", "DEPOT.BOXES@2026010203040900", "--source", name, "--project", str(project.root)]
    )
    assert result.exit_code == 0, result.output
    assert [at for _, _, at in places_of(lakehouse, name)] == ["2026010203040899", "2026010203040900"]
    assert failed_checks(project, spark, batch_id) == ""
    # more of both loads keeps to their places
    more = [row for one in (other, topic) for row in rows_at([refresh(2)], one, "2026-01-02T03:04:10", offset=1)]
    batch_id = run(project, spark, more, 2)
    assert rows(lakehouse, "silver.changes", name, "count(*)", "count(distinct change_seq)") == [(4, 4)]
    assert failed_checks(project, spark, batch_id) == ""
    loads = lake.peek(
        lakehouse, "silver.control_events", ["load_id"], f"where source = '{name}' and kind = 'full_load'"
    )
    assert {row["load_id"] for row in loads} == {"DEPOT.ITEMS@2026010203040900", "DEPOT.BOXES@2026010203040900"}


def sources_with(lakehouse: str, kind: str) -> list[str]:
    of_kind = f"where kind = '{kind}' and source like 'untimed%' order by source"
    return [row["source"] for row in lake.peek(lakehouse, "silver.control_events", ["source"], of_kind)]


def lines_of(values: list[bytes]) -> bytes:
    return b"".join(value + b"\n" for value in values)


def test_a_load_of_files_without_times_is_rejected_and_held_until_an_option_tells_its_time(spark, lakehouse, tmp_path):
    """A change follows two rows of a load in each file. By the file's name it is later; by the file's own time, which
    is that of a copy, the load would hide it, so the load begins before it."""
    shutil.copytree(Path(__file__).resolve().parents[1] / "expectations", tmp_path / "expectations")
    times = {
        "untimed_name": r"name:(?P<time>[0-9]{14})\.jsonl",
        "untimed_modified": "modified",
        "untimed_member": "member:data.NAME",
    }

    def made(with_times: bool):
        return projects.make(
            tmp_path,
            {
                name: {
                    "codec": "qlik_json",
                    "from": {"transport": "lines", "path": f"landing/{name}/*.jsonl"},
                    "tables": {f"landing/{name}/*": "DEPOT.ITEMS"},
                    "options": {"load_time": load_time} if with_times else {},
                }
                for name, load_time in times.items()
            },
            lakehouse=lakehouse,
        )

    project = made(False)
    for name in times:
        rows = [refresh(1), refresh(2), update(1, COLUMNS, None, "20260102030406")]
        if name == "untimed_member":
            rows = [row.replace(b'"NAME":"a"', b'"NAME":"2026-01-02T03:04:05"') for row in rows]
        path = tmp_path / "landing" / name / "20260102030000.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(lines_of(rows))
        os.utime(path, (1767400000, 1767400000))  # 2026-01-03T00:26:40Z
    plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, plan)
    silver.run(project, spark, plan.batch_id)
    only_change = [("UPDATE", 1, "2026010203040600")]
    assert [places_of(lakehouse, name) for name in times] == [only_change] * 3
    failed = failed_checks(project, spark, plan.batch_id)
    assert "silver.rejects" in failed and "3 unwanted rows" in failed and "inlet replay" in failed

    project = made(True)
    again = replay.plan(project, spark, [r for name in times for r in replay.chosen(project, name, None, None, None)])
    silver.run(project, spark, again)
    assert {name: [at for oper, _, at in places_of(lakehouse, name) if oper == "REFRESH"] for name in times} == {
        "untimed_name": ["2026010203000000"] * 2,
        "untimed_modified": ["2026010300264000"] * 2,
        "untimed_member": ["2026010203040500"] * 2,
    }
    assert sources_with(lakehouse, "change_before_load") == ["untimed_modified"]
    assert "silver.rejects" not in failed_checks(project, spark, plan.batch_id)
    for name in times:  # a later file, with the option there from the beginning
        (tmp_path / "landing" / name / "20260104000000.jsonl").write_bytes(
            lines_of([refresh(3), update(2, COLUMNS, None, "20260103120000")])
            if name == "untimed_modified"
            else lines_of([update(2, COLUMNS, None, "20260103120000")])
        )
        os.utime(tmp_path / "landing" / name / "20260104000000.jsonl", (1767484800, 1767484800))  # 2026-01-04
    plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, plan)
    silver.run(project, spark, plan.batch_id)
    assert places_of(lakehouse, "untimed_modified")[-2:] == [
        ("REFRESH", 3, "2026010311595999"),  # before the change that follows it in its file
        ("UPDATE", 2, "2026010312000000"),
    ]
    assert sources_with(lakehouse, "load_end") == ["untimed_member", "untimed_name"]
