"""What a vendor's own header says of a change: kept beside the change, in lakehouses of before too, and shown as
columns.
"""

import datetime as dt
import json
import sys
from pathlib import Path

import pytest
import yaml

from inlet import bronze, change, lake, silver
from inlet.change import Column
from inlet.codecs import CODECS
from inlet.codecs.goldengate.trail.header import HEADER
from inlet.codecs.linkexpress.journal.header import HEADER as OF_JOURNALS
from inlet.commands import decode, show
from inlet.lake.spark import settings_in
from inlet.silver import header_views
from tests import projects
from tests.silver import rows
from tests.toy import codec as toy
from tests.toy import encode

CASES = Path(__file__).parent / "cases" / "linkexpress_journal"
COLUMNS = [["ITEM_ID", "int"], ["NAME", "string"], ["PRICE", "decimal(7,2)"]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[toy.__name__])
    monkeypatch.setitem(CODECS, "toy", toy)
    monkeypatch.setitem(header_views.VIEWS, "toy", (Column("number", "int", "the number of an update's images"),))


def make(tmp_path, lakehouse):
    """Two feeds that say the same; the header of one is left out."""
    options = {"codec": "toy", "settle_minutes": 0, "options": {"before_images": False}}
    sources = {
        "kept": options | {"from": "landing/kept"},
        "left_out": options | {"from": "landing/left_out", "header": False},
    }
    return projects.make(tmp_path, sources, lakehouse=lakehouse)


def deliver(tmp_path, number: int, *records: tuple) -> None:
    for source in ("kept", "left_out"):
        (tmp_path / "landing" / source).mkdir(parents=True, exist_ok=True)
        (tmp_path / "landing" / source / f"{number}.toy").write_bytes(encode.file(number, *records))


def run(project, spark) -> dict:
    plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, plan)
    return silver.run(project, spark, plan.batch_id)


def update(number: int) -> tuple:
    return ("begin", "A"), ("after", number, "DEPOT.ITEMS", [1, "a", None]), ("commit", "A")


def test_an_older_lakehouse_gains_headers_and_a_repeat_may_have_another(spark, lakehouse, tmp_path):
    spark.sql("drop table silver.changes")
    spark.sql(lake.create_sql("silver.changes", [c for c in change.CHANGES if c.name != "header"]))
    spark.sql("insert into silver.changes (source, change_seq, batch_id) values ('old', '1', 0)")
    lake.create(spark, lakehouse)
    project = make(tmp_path, lakehouse)
    deliver(
        tmp_path, 1, ("columns", "DEPOT.ITEMS", COLUMNS, ["ITEM_ID"]), *update(5), ("insert", "DEPOT.ITEMS", [2, "b"])
    )
    assert {source: account.num_changes for source, account in run(project, spark).items()} == {
        "kept": 2,
        "left_out": 2,
    }
    deliver(tmp_path, 2, *update(6))
    again = run(project, spark)["kept"]
    assert (again.num_changes, again.num_repeats, again.num_rejected) == (0, 1, 0)
    found = spark.sql("select source, operation, to_json(header) from silver.changes order by source, change_seq")
    assert rows(found) == [
        ("kept", "UPDATE", '{"number":5}'),
        ("kept", "INSERT", None),
        ("left_out", "UPDATE", None),
        ("left_out", "INSERT", None),
        ("old", None, None),
    ]
    assert rows(spark.sql("select source, source_table, transaction_id, number from silver.toy_headers")) == [
        ("kept", "ITEMS", "A", 5)
    ]
    seqs = rows(spark.sql("select source, change_seq from silver.changes order by source, change_seq"))
    shown = show.with_headers(project, show.Shown(["source", "change_seq"], seqs, False))
    assert [row[2] for row in shown.rows] == [{"number": 5}, None, None, None, None]


def test_goldengate_headers_are_columns_of_sources_of_its_codecs_alone(spark):
    header = """{"hdr_ind": "E", "partition": 12, "undo_flag": 0, "before_after": "A", "rec_length": 24, "io_type": 5,
        "io_type_name": "Insert", "orig_node": 255, "io_time_at": "2022-12-26 06:03:44", "audit_pos": -7,
        "audit_rba": 4294967295, "trans_ind": 3, "format_type": "R", "syskey_len": 0, "incomplete": 0,
        "continued": "N", "rec_count": 1, "tdr_index": null, "info": 1, "csn": "7:12041", "tokens": {"L": "7:12041"}}"""
    spark.sql(
        "insert into silver.changes (source, change_seq, batch_id, header) select /*+ coalesce(1) */ * from values "
        f"('trail', '1', 1, parse_json('{header}')), ('trail', '2', 1, "
        "to_variant_object(named_struct('hdr_ind', 'E', 'record_name', X'c3a9', 'csn', X'ff00'))), "
        "('trail', '3', 1, null), ('trail', '4', 1, parse_json('{\"op_ts\": \"x\"}')), "
        '(\'other\', \'1\', 1, parse_json(\'{"hdr_ind": "E", "rec_length": "long"}\'))'
    )
    spark.sql(
        "insert into silver.batches (batch_id, source, codec) values (1, 'trail', 'goldengate_trail'), "
        "(1, 'other', 'other_trail')"
    )
    for _ in range(2):
        header_views.write(spark, {"goldengate_trail", "qlik_json"})
    view = spark.table("silver.goldengate_headers")
    assert [(f.name, f.dataType.simpleString(), f.metadata["comment"]) for f in view.schema][5:] == [
        tuple(c) for c in HEADER
    ]
    names = ", ".join(c.name if c.type != "variant" else f"to_json({c.name})" for c in HEADER)
    query = f"select {names} from silver.goldengate_headers order by change_seq"
    with settings_in(spark, {"spark.sql.variant.pushVariantIntoScan": "true"}):  # Spark's default
        first, second = rows(spark.sql(query))
    at = dt.datetime(2022, 12, 26, 6, 3, 44)
    whole = ("E", 12, 0, "A", 24, 5, "Insert", 255, at, -7, 4294967295, 3, "R", 0, 0, "N", 1)
    assert first == (*whole, None, None, 1, "7:12041", None, None, None, '{"L":"7:12041"}')
    told = {"hdr_ind": "E", "record_name": "é"}
    assert second == tuple(told.get(c.name) for c in HEADER)


def test_headers_of_journals_are_columns_of_their_own_view(spark):
    """What a vendor's sources of extracts hold has no header, and no row."""
    whole = {"resource": "EMP", "storage": "DSI001", "dbkind": 10, "sts": 5, "acquiring_system": 257}
    whole |= {"packed_transactions": 0, "journals": 1, "header_tail": "0030" * 8}
    headers = [whole, {"trnid": "0000000000001A2B"}, {}, None]
    values = ", ".join(
        f"('journals', '{n}', 1, {'null' if header is None else f'parse_json({json.dumps(header)!r})'})"
        for n, header in enumerate(headers)
    )
    spark.sql(f"insert into silver.changes (source, change_seq, batch_id, header) values {values}")
    spark.sql("insert into silver.batches (batch_id, source, codec) values (1, 'journals', 'linkexpress_journal')")
    header_views.write(spark, {"linkexpress_journal"})
    view = spark.table("silver.linkexpress_headers")
    assert [(f.name, f.dataType.simpleString(), f.metadata["comment"]) for f in view.schema][5:] == [
        tuple(c) for c in OF_JOURNALS
    ]
    names = ", ".join(c.name for c in OF_JOURNALS)
    assert rows(spark.sql(f"select {names} from silver.linkexpress_headers order by change_seq")) == [
        tuple(header.get(c.name) for c in OF_JOURNALS) for header in headers[:2]
    ]


@pytest.mark.parametrize("name", sorted(CASES.glob("ok_*.yml")), ids=lambda path: path.stem)
def test_every_member_of_a_journals_header_is_a_column(name):
    found = yaml.safe_load(name.read_text(encoding="utf-8"))["expected"]
    types = {"string": str, "int": int}
    of = {c.name: types[c.type] for c in OF_JOURNALS}
    for one in found.get("changes", []):
        assert [key for key, value in one["header"].items() if type(value) is not of.get(key)] == []


def test_a_decoded_file_shows_the_header_unless_its_source_leaves_it_out(tmp_path):
    project = make(tmp_path, "lakehouse")
    deliver(tmp_path, 1, ("columns", "DEPOT.ITEMS", COLUMNS, ["ITEM_ID"]), *update(5))
    found = {
        source: [
            row.get("header", "absent")
            for what, row in decode.decode_file(project, tmp_path / "landing" / source / "1.toy", source)
            if what == "change"
        ]
        for source in project.sources
    }
    assert found == {"kept": [{"number": 5}], "left_out": ["absent"]}
