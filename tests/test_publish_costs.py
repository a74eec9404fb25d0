"""What a point costs: statements sent and Delta tables opened, counted. What the views show: test_publish.py."""

import datetime as dt
import re
from collections import Counter
from types import SimpleNamespace

import deltalake
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import AnalysisException

from inlet import publish
from inlet.publish import hold, live_view
from inlet.publish import publish as publishing
from tests import lakes, projects

CHANGED = ("t0", "t1")


class Catalog:
    """A session that keeps views, their properties and what was sent; it reads nothing."""

    def __init__(self):
        self.views: dict[str, dict[str, str]] = {}
        self.number, self.sent = 0, []
        self.catalog = SimpleNamespace(tableExists=self.views.__contains__)

    def sql(self, text: str):
        verb, name = re.match(
            r"(create or replace function|create table|[a-z ]*view(?: if exists)?|(?:show|describe table) \w+) (\S+)",
            text,
        ).groups()
        self.sent.append(f"{verb} {name.partition('(')[0]}")
        if verb.startswith(("alter view", "show", "describe")) and name not in self.views:
            raise AnalysisException(f"{name} does not exist")
        properties = self.views.setdefault(name, {}) if "view" in verb else {}
        properties |= dict(re.findall(r"'(inlet\.[^']+)' = '([^']+)'", text))
        if body := re.search(r" as select (\d+)L as number", text):
            self.number = int(body[1])
        if verb.startswith("describe"):
            pieces = ", ".join(f"{key}={value}" for key, value in self.views[name].items())
            about = {"number": "bigint", "View Text": f"select {self.number}L as number, map() as moved"}
            about["Table Properties"] = f"[{pieces}]"
            return rows_of(about, "col_name", "data_type")
        return rows_of(self.views.get(name, {}), "key", "value")


def rows_of(fields: dict[str, str], *names: str):
    """The answer to a statement, a row for each field."""
    return SimpleNamespace(collect=lambda: [SimpleNamespace(**dict(zip(names, field))) for field in fields.items()])


@pytest.fixture
def opened(monkeypatch):
    """How often each Delta table was opened."""
    counts, init = Counter(), deltalake.DeltaTable.__init__

    def counted(self, place, *args, **options) -> None:
        counts["/".join(str(place).split("/")[-2:])] += 1
        init(self, place, *args, **options)

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", counted)
    return counts


def lakehouse(root, num_tables: int):
    """A project of tables that gold has built from one batch."""
    tables = [projects.ITEMS | {"table": f"S.T{n}", "name": f"t{n}"} for n in range(num_tables)]
    made = projects.make(root, {"shop": {"codec": "qlik_json", "from": "landing/*.jsonl"}}, tables)
    lakes.write(made, "silver.transactions", transaction("A", 1, "complete"))
    build(made, 1, [table["name"] for table in tables])
    return made


def transaction(id_: str, batch_id: int, state: str) -> dict:
    place = {"first_change_seq": lakes.seq(batch_id), "last_change_seq": lakes.seq(batch_id)}
    return {"source": "shop", "transaction_id": id_, "num_changes": 1, "state": state, "batch_id": batch_id, **place}


def build(made, batch_id: int, names, at: dt.datetime | None = None) -> None:
    """A batch of changes of some tables, in the ledger and in gold. In: the time that the machine has then."""
    row = lakes.batch(batch_id, "shop", lakes.seq(batch_id)) | {"first_change_seq": lakes.seq(batch_id)}
    at = at or lakes.BEGAN + dt.timedelta(hours=batch_id)
    lakes.write(made, "silver.batches", row)
    for name in names:
        for step in ("before_after", "past", "current"):
            write_deltalake(made.lakehouse_path("gold", f"{name}__{step}"), pa.table({"n": [1]}), mode="append")
    rows = [
        {
            "table_name": name,
            "source": "shop",
            "through_batch_id": batch_id,
            "through_change_seq": lakes.seq(batch_id),
            "applied_at": at,
        }
        for name in names
    ]
    lakes.write(made, "gold.applied", *rows)


def test_a_point_costs_what_changed_and_not_the_number_of_tables(tmp_path, opened):
    costs = []
    for num_tables in (3, 40):
        made, spark = lakehouse(tmp_path / f"{num_tables}", num_tables), Catalog()
        assert publish.run(made, spark).moved == {f"t{n}": 1 for n in range(num_tables)}
        build(made, 2, CHANGED)
        spark.sent.clear(), opened.clear()
        point = publish.run(made, spark)
        assert (point.number, point.moved["t1"], point.moved["t2"]) == (2, 2, 1)
        assert (point.versions["t1__past"], point.versions["t2__past"]) == (1, 0)
        costs.append((sorted(spark.sent), +opened))
    assert costs[0] == costs[1]
    views = sorted(re.sub(r"\d{2,}", "N", text) for text in costs[0][0])
    assert views == [
        "alter view public._point",
        "alter view public._point",
        *(f"alter view public._{name}__versions_N" for name in CHANGED),
        *(f"alter view public.{name}__before_after" for name in CHANGED),
        "describe table extended public._point",
    ]
    gold_tables = {place for place in costs[0][1] if place.startswith("gold/t")}
    assert gold_tables == {f"gold/{name}__{step}" for name in CHANGED for step in ("before_after", "past", "current")}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_the_last_point_is_read_from_the_old_version_of_a_past_that_was_written_anew(tmp_path, monkeypatch, mode):
    """A small table's past is overwritten where late changes are folded: versions that the last point shows may be
    gone from the new one."""
    made, spark, texts = lakehouse(tmp_path, 1), Catalog(), []
    publish.run(made, spark)
    build(made, 2, ["t0"])
    write_deltalake(made.lakehouse_path("gold", "t0__past"), pa.table({"n": [1, 1]}), mode=mode)
    sql = spark.sql
    monkeypatch.setattr(spark, "sql", lambda text: texts.append(text) or sql(text))
    publish.run(made, spark)
    assert any("t0__past version as of 0" in text for text in texts) == (mode == "overwrite")


def test_versions_that_no_batch_made_are_shown_within_a_day(tmp_path, monkeypatch):
    made, spark = lakehouse(tmp_path, 3), Catalog()
    publish.run(made, spark)
    deltalake.DeltaTable(made.lakehouse_path("gold", "t2__past")).alter.set_table_properties(
        {"delta.appendOnly": "false"}
    )
    build(made, 2, ["t0"])
    assert publish.run(made, spark).versions["t2__past"] == 0
    now = publishing.time.time()
    monkeypatch.setattr(publishing.time, "time", lambda: now + publishing.LOOK_SECONDS)
    assert publish.run(made, spark).versions["t2__past"] == 1


def test_what_gold_builds_is_shown_though_the_clock_goes_back(tmp_path):
    made, spark = lakehouse(tmp_path, 3), Catalog()
    publish.run(made, spark)
    build(made, 2, ["t0"], at=lakes.BEGAN - dt.timedelta(hours=2))
    point = publish.run(made, spark)
    assert (point.versions["t0__past"], point.versions["t2__past"], point.moved["t0"]) == (1, 0, 2)


def test_a_point_that_a_run_died_before_is_not_read(tmp_path):
    made, spark = lakehouse(tmp_path, 3), Catalog()
    first = publish.run(made, spark)
    build(made, 2, CHANGED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Catalog, "sql", dying_at(r"alter view public\._point as"))
        with pytest.raises(KeyboardInterrupt):
            publish.run(made, spark)
    assert publishing.published(made, spark) == first
    assert publish.run(made, spark).number == 2 == publish.newest(made)["number"]


def test_a_point_that_an_earlier_inlet_committed_is_read(tmp_path):
    made, spark = lakehouse(tmp_path, 3), Catalog()
    point, slots = publish.run(made, spark), spark.views["public._point"]
    pieces = [value for key, value in sorted(slots.items()) if key.startswith("inlet.point.odd.")]
    slots.clear()
    slots |= {f"inlet.point.{point.number}.{n:06}": piece for n, piece in enumerate(pieces)}
    assert publishing.published(made, spark) == point


def dying_at(statement: str):
    whole = Catalog.sql

    def sql(self, text: str):
        if re.match(statement, text):
            raise KeyboardInterrupt
        return whole(self, text)

    return sql


@pytest.mark.parametrize(
    "state, batch_id, later, is_asked",
    [
        ("complete", 1, 1, False),
        ("open", 1, 59, True),
        ("open", 2, 99, True),  # no batch came after it
        ("open", 1, 99, False),  # its source is an hour further
        ("impossible", 1, 99, False),
    ],
)
def test_spark_is_asked_for_transactions_only_where_one_may_be_waited_for(tmp_path, state, batch_id, later, is_asked):
    made = lakehouse(tmp_path, 1)
    lakes.write(made, "silver.transactions", transaction("B", batch_id, state))
    until = f"20260105{10 + later // 60:02}{later % 60:02}0000" + "0" * 19
    lakes.write(made, "silver.batches", lakes.batch(2, "shop", until))
    assert hold._may_wait(made) == is_asked


def test_a_batch_alters_one_small_view_of_each_live_view(tmp_path):
    made, spark = lakehouse(tmp_path, 3), Catalog()
    tables = list(made.tables.values())
    live_view.write(made, spark, [(table, 1) for table in tables])
    views = set(spark.views)
    spark.sent.clear()
    live_view.write(made, spark, [(table, 2) for table in tables[:2]])
    assert sorted(re.sub(r"\d{2,}", "N", text) for text in spark.sent) == [
        "alter view public._t0__live_N",
        "alter view public._t1__live_N",
        "show tblproperties public.t0__live",
        "show tblproperties public.t1__live",
    ]
    for dropped in views:  # by another process
        del spark.views[dropped]
        live_view.write(made, spark, [(table, 3) for table in tables])
        assert set(spark.views) == views and len(views) == 6
