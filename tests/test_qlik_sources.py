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

import pytest
from typer.testing import CliRunner

from inlet import bronze, checks, config, gold, lake, silver
from inlet.cli import app
from inlet.codecs.qlik import full_load
from inlet.commands import decode, move_load, replay
from inlet.commands.run import build_gold
from inlet.errors import CheckFailed, ConfigError
from inlet.gold import generate
from inlet.silver import messages as silver_messages
from tests import projects
from tests.encode import qlik

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


def changes_of(spark, source: str) -> list[tuple]:
    rows = spark.sql(
        "select change_seq as seq, to_json(after) as after, hex(column_mask) as mask from silver.changes "
        f"where source = '{source}' order by change_seq"
    ).collect()
    return [(int(row.seq[16:]), json.loads(row.after), row.mask) for row in rows]


def test_masks_are_read_by_the_metadata_message_that_a_message_names(spark, lakehouse, tmp_path, monkeypatch):
    monkeypatch.setattr(silver_messages, "NUM_SAMPLE", 0)  # so the changes are walked before and after
    name = "lists_shop"
    project = project_of(tmp_path, lakehouse, name)
    first = [
        metadata("AA", COLUMNS),
        update(1, COLUMNS, "AA"),
        update(2, OTHER_ORDER, "BB"),  # its list has not come yet
        update(3, COLUMNS, None),
    ]
    run(project, spark, qlik.rows(first, "items"), 1)
    [reject] = spark.sql(f"select kind, change_seq, found from silver.rejects where source = '{name}'").collect()
    assert (reject.kind, int(reject.change_seq[16:])) == ("definition_missing", 2)
    # by the contract's order it would have no key and a price that is not supplied
    expected = [(n, {"ITEM_ID": n, "PRICE": None}, "05") for n in (1, 3)]
    assert changes_of(spark, name) == expected
    assert replay.due(project, [name]) == []  # nothing new has come
    run(project, spark, qlik.rows([update(4, COLUMNS, "AA")], "items", offset=10), 2)
    assert replay.due(project, [name]) == []

    run(project, spark, qlik.rows([metadata("BB", OTHER_ORDER), update(5, OTHER_ORDER, "BB")], "meta", offset=0), 3)
    project = config.load(project.root)
    assert changes_of(spark, name) == [(n, {"ITEM_ID": n, "PRICE": None}, "05") for n in (1, 2, 3, 4, 5)]
    # topic meta is of no table: the list of the message tells it
    assert spark.sql(f"select 1 from silver.rejects where source = '{name}' and resolved_by is null").collect() == []
    told = spark.sql(
        "select source_table, table_version, feed_version, change_seq, get_json_object(detail, '$.schema_id') as id "
        f"from silver.table_versions where source = '{name}' and origin = 'feed' order by id"
    ).collect()
    assert [tuple(row) for row in told] == [("ITEMS", None, 1, "", "AA"), ("ITEMS", None, 1, "", "BB")]
    shown = [row for what, row in decode.decode_file(project, project.root / "landing" / name / "1.parquet", name)]
    assert [row["after"] for row in shown if "after" in row] == [{"ITEM_ID": n, "PRICE": None} for n in (1, 2, 3)]


def test_a_message_that_names_a_list_waits_for_the_first_one_of_its_source(spark, lakehouse, tmp_path):
    name = "needs_lists"
    project = project_of(tmp_path, lakehouse, name)
    run(project, spark, qlik.rows([update(1, OTHER_ORDER, "CC")], "items"), 1)
    assert changes_of(spark, name) == []
    run(project, spark, qlik.rows([metadata("CC", OTHER_ORDER)], "items", offset=5), 2)
    assert changes_of(spark, name) == [(1, {"ITEM_ID": 1, "PRICE": None}, "05")]


def test_lists_that_an_earlier_inlet_has_landed_are_kept_by_a_replay(spark, lakehouse, tmp_path):
    name = "kept_lists"
    project = project_of(tmp_path, lakehouse, name)
    run(project, spark, qlik.rows([metadata("DD", OTHER_ORDER)], "items"), 1)
    spark.sql(f"delete from bronze.lookups where source = '{name}'")  # which it did not keep
    run(project, spark, qlik.rows([update(1, OTHER_ORDER, "DD")], "items", offset=5), 2)
    assert changes_of(spark, name) == []
    silver.run(project, spark, replay.plan(project, spark, replay.chosen(project, name, None, None, None)))
    assert changes_of(spark, name) == [(1, {"ITEM_ID": 1, "PRICE": None}, "05")]


def rows_at(values: list[bytes], topic: str, at: str, offset: int = 0) -> list[dict]:
    """Messages that the broker has given one time."""
    time = datetime.datetime.fromisoformat(at).replace(tzinfo=datetime.UTC)
    return [row | {"timestamp": time} for row in qlik.rows(values, topic, offset=offset)]


def refresh(n: int, price=1) -> bytes:
    return qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": n, "NAME": "a", "PRICE": price}}, COLUMNS)


def places(spark, source: str) -> list[tuple]:
    rows = spark.sql(
        "select operation, variant_get(after, '$.ITEM_ID', 'int') as id, left(change_seq, 16) as at from "
        f"silver.changes where source = '{source}' order by change_seq"
    )
    return [tuple(row) for row in rows.collect()]


def hidden(spark, source: str) -> list[tuple]:
    rows = spark.sql(
        "select kind, load_id, left(change_seq, 16) as at, detail from silver.control_events where source = "
        f"'{source}' and kind in ('change_before_load', 'load_moved')"
    )
    return [tuple(row) for row in rows.collect()]


def failed_checks(project, spark, batch_id: int) -> str:
    """What the gate behind silver says of a batch."""
    try:
        checks.check(project, spark, "silver", batch_ids=[batch_id])
        return ""
    except CheckFailed as error:
        return error.message


def test_a_load_comes_before_the_changes_that_follow_its_rows_in_the_feed(spark, lakehouse, tmp_path):
    """The broker's clock is four seconds ahead of the source's."""
    name = "ahead_shop"
    project = project_of(tmp_path, lakehouse, name)
    load = rows_at([refresh(1), refresh(2)], "items", "2026-01-02T03:04:09")
    change = rows_at([update(1, COLUMNS, None, "20260102030406")], "items", "2026-01-02T03:04:10", offset=2)
    batch_id = run(project, spark, load + change, 1)
    assert places(spark, name) == [
        ("REFRESH", 1, "2026010203040599"),
        ("REFRESH", 2, "2026010203040599"),
        ("UPDATE", 1, "2026010203040600"),
    ]
    assert hidden(spark, name) == [] and failed_checks(project, spark, batch_id) == ""


def test_a_change_that_a_load_hides_is_reported_and_the_load_can_be_moved(spark, lakehouse, tmp_path):
    name, load_id = "hidden_shop", "DEPOT.ITEMS@2026010203040900"
    items = projects.ITEMS | {"name": "hidden_items"}
    project = project_of(tmp_path, lakehouse, name, None, [items])
    shutil.copytree(generate.HOME / "dbt", tmp_path / "dbt", ignore=shutil.ignore_patterns("target", "gold", "marts"))
    generate.write(project)
    run(project, spark, rows_at([refresh(1), refresh(2)], "items", "2026-01-02T03:04:09"), 1)
    change = rows_at([update(1, COLUMNS, None, "20260102030406")], "items", "2026-01-02T03:04:10", offset=2)
    batch_id = run(project, spark, change, 2)
    assert hidden(spark, name) == [("change_before_load", load_id, "2026010203040600", '{"changes": 1}')]
    assert "silver.control_events" in failed_checks(project, spark, batch_id)  # nothing is published with it
    build_gold(project, spark, ["hidden_items"])

    with pytest.raises(ConfigError, match="has no full load"):
        move_load.move(project, spark, name, "DEPOT.ITEMS@2026", 0)
    assert move_load.move(project, spark, name, load_id, 0) == ("DEPOT.ITEMS", "2026010203040599")
    assert places(spark, name) == [
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
    assert ("REFRESH", 3, "2026010203040599") in places(spark, name) and failed_checks(project, spark, batch_id) == ""


def test_a_load_whose_rows_come_in_a_later_batch_hides_no_change(spark, lakehouse, tmp_path):
    """The change is of the same millisecond as the first row of the load, by the broker's clock."""
    name = "late_rows_shop"
    project = project_of(tmp_path, lakehouse, name)
    change = rows_at([update(1, COLUMNS, None, "20260102030406")], "items", "2026-01-02T03:04:09", offset=2)
    run(project, spark, change, 1)
    batch_id = run(project, spark, rows_at([refresh(1), refresh(2)], "items", "2026-01-02T03:04:09"), 2)
    load_id = "DEPOT.ITEMS@2026010203040900"
    assert hidden(spark, name) == [("change_before_load", load_id, "2026010203040600", '{"changes": 1}')]
    assert "silver.control_events" in failed_checks(project, spark, batch_id)


def test_the_skew_of_clocks_moves_new_loads_earlier(spark, lakehouse, tmp_path):
    name = "skewed_shop"
    project = project_of(tmp_path, lakehouse, name, clock_skew_seconds=5)
    run(project, spark, rows_at([refresh(1)], "items", "2026-01-02T03:04:09"), 1)
    change = rows_at([update(1, COLUMNS, None, "20260102030406")], "items", "2026-01-02T03:04:10", offset=2)
    run(project, spark, change, 2)
    assert places(spark, name) == [("REFRESH", 1, "2026010203040400"), ("UPDATE", 1, "2026010203040600")]
    ends = f"select count(*) from silver.control_events where source = '{name}' and kind = 'load_end'"
    assert hidden(spark, name) == [] and spark.sql(ends).first()[0] == 0  # it may be from before the load
    change = rows_at([update(1, COLUMNS, None, "20260102030415")], "items", "2026-01-02T03:04:20", offset=3)
    run(project, spark, change, 3)
    assert spark.sql(ends).first()[0] == 1


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
    assert [at for _, _, at in places(spark, name)] == ["2026010203040899", "2026010203040900"]
    assert failed_checks(project, spark, batch_id) == ""
    # more of both loads keeps to their places
    more = [row for one in (other, topic) for row in rows_at([refresh(2)], one, "2026-01-02T03:04:10", offset=1)]
    batch_id = run(project, spark, more, 2)
    found = spark.sql(
        f"select count(*), count(distinct change_seq) from silver.changes where source = '{name}'"
    ).first()
    assert tuple(found) == (4, 4) and failed_checks(project, spark, batch_id) == ""
    loads = lake.peek(
        lakehouse, "silver.control_events", ["load_id"], f"where source = '{name}' and kind = 'full_load'"
    )
    assert {row["load_id"] for row in loads} == {"DEPOT.ITEMS@2026010203040900", "DEPOT.BOXES@2026010203040900"}


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
    assert [places(spark, name) for name in times] == [only_change] * 3
    failed = failed_checks(project, spark, plan.batch_id)
    assert "silver.rejects" in failed and "3 unwanted rows" in failed and "inlet replay" in failed

    project = made(True)
    again = replay.plan(project, spark, [r for name in times for r in replay.chosen(project, name, None, None, None)])
    silver.run(project, spark, again)
    assert {name: [at for oper, _, at in places(spark, name) if oper == "REFRESH"] for name in times} == {
        "untimed_name": ["2026010203000000"] * 2,
        "untimed_modified": ["2026010300264000"] * 2,
        "untimed_member": ["2026010203040500"] * 2,
    }
    hides = "select source from silver.control_events where kind = 'change_before_load' and source like 'untimed%'"
    assert [row.source for row in spark.sql(hides).collect()] == ["untimed_modified"]
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
    assert places(spark, "untimed_modified")[-2:] == [
        ("REFRESH", 3, "2026010311595999"),  # before the change that follows it in its file
        ("UPDATE", 2, "2026010312000000"),
    ]
    ends = "select source from silver.control_events where kind = 'load_end' and source like 'untimed%' order by source"
    assert [row.source for row in spark.sql(ends).collect()] == ["untimed_member", "untimed_name"]
