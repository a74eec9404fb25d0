"""Unit tests of dbt's macros `timeline` and `fold`, on rows that a person can read. They are none of dbt's own, which
take a model that is one SELECT; these models are built by statements. What the fold means as a whole is tested against
tests/reference.py.
"""

import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import deltalake
import pytest
import yaml

from inlet.gold.queries import Queries
from inlet.lake import snapshots
from tests import macros

FOLDER = Path(macros.__file__).parent
CASES = {name: yaml.safe_load((FOLDER / f"{name}.yml").read_text()) for name in ("fold", "timeline")}
DATABASE = "unit_macros"
MISSING = "~missing"
COLUMNS = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
MEMBERS = [{"name": column["name"], "member": column["name"]} for column in COLUMNS]
CONTRACT = {"key": ["id"], "columns": COLUMNS, "versions": [{"columns": MEMBERS}]}
IMAGE = "struct<id: int, name: string>"
LINEAGE = (
    "operation string, key_changed boolean, change_timestamp timestamp, transaction_id string, "
    "transaction_event_counter bigint, transaction_last_event boolean, unit_id string, unit_offset bigint, "
    "batch_id bigint"
)
LOG = (
    f"source string, change_seq string, before {IMAGE}, after {IMAGE}, not_supplied array<string>, "
    f"column_states map<string, string>, load_id string, {LINEAGE}"
)
CURRENT = (
    "source string, id int, name string, valid_from_seq string, is_complete boolean, not_supplied array<string>, "
    f"conflict string, {LINEAGE}"
)


def test_no_macro_hides_what_dbt_offers_under_its_name():
    """As one called `flags` did: with it, `--full-refresh` was passed and not seen."""
    from dbt.context.providers import ModelContext

    texts = (path.read_text() for path in (Path(__file__).parents[1] / "dbt").glob("macros/**/*.sql"))
    ours = {name for text in texts for name in re.findall(r"{%-? *macro +(\w+)", text)}
    assert len(ours) > 50 and not ours & set(ModelContext._context_members_)


@pytest.fixture(scope="module")
def gold(spark):
    """A database for the tables that macros read by name."""
    spark.sql(f"create database if not exists {DATABASE}")
    yield spark
    spark.sql(f"drop database {DATABASE} cascade")


def lineage(operation: str, is_key_change: bool, transaction=None, counter=None, is_last=None) -> tuple:
    return (operation, is_key_change, None, transaction, counter, is_last, "u", 0, 1)


def image(row: list | None) -> tuple | None:
    return None if row is None else (row[0], row[1] if len(row) > 1 and row[1] != MISSING else None)


def change(seq: str, operation: str, before, after, *transaction) -> tuple:
    is_key_change = bool(before and after and before[0] != after[0])
    is_missing = bool(after) and after[-1] == MISSING
    not_supplied = ["name"] if after and (len(after) < 2 or is_missing) else []
    not_supplied = ["id"] if operation == "COLUMN_ADDED" else not_supplied
    states = {"name": "missing"} if is_missing else None
    load = "L" if operation == "REFRESH" else None
    return (
        "s",
        seq,
        image(before),
        image(after),
        not_supplied,
        states,
        load,
        *lineage(operation, is_key_change, *transaction),
    )


def version(id_: int, name: str, seq: str, conflict: str | None = None) -> tuple:
    of = lineage("INSERT", False, "T", 1, False) if conflict else lineage("INSERT", False)
    return ("s", id_, name, seq, True, [], conflict, *of)


class OfSpark:
    """Spark, with the tables of a case."""

    def __init__(self, spark, current, log):
        self.spark, self.numbers = spark, itertools.count()
        spark.sql(f"drop table if exists {DATABASE}.t__current")
        current.write.format("parquet").saveAsTable(f"{DATABASE}.t__current")
        log.createOrReplaceTempView("unit_log")

    def answer(self, query: str) -> list[dict]:
        return [row.asDict() for row in self.spark.sql(query).collect()]

    def keep(self, name: str, is_local: bool, step: str, query: str, columns=()) -> str:
        view = f"unit_kept_{next(self.numbers)}"
        self.spark.sql(query).createOrReplaceTempView(view)
        return view


class OfDataFusion:
    """What folds small batches, with the tables of a case."""

    def __init__(self, folder: Path, current, log):
        self.queries, self.numbers = Queries(str(folder)), itertools.count()
        builder = snapshots.query_builder()
        builder.execute(f"create schema {DATABASE}")
        for name, rows in ((f"{DATABASE}.t__current", current), ("unit_log", log)):
            deltalake.write_deltalake(f"{folder}/{name}", rows.toArrow())
            builder = builder.register(name, deltalake.DeltaTable(f"{folder}/{name}"))
        self.queries.engines["t"] = builder

    def answer(self, query: str) -> list[dict]:
        return self.queries.answer("t", query)

    def keep(self, name: str, is_local: bool, step: str, query: str, columns=()) -> str:
        view = f"unit_kept_{next(self.numbers)}"
        self.queries.keep(name, view, query, columns)
        return view


def staged(spark, case: dict, folder: Path | None):
    """The engine, the macros, the batch that a case is, its timeline as a query, and the threads of its key changes.
    In: a folder for the tables of DataFusion; None: Spark is asked."""
    current = spark.createDataFrame([version(*row) for row in case.get("gold", ())], CURRENT)
    log = spark.createDataFrame([change(*row) for row in case["changes"]], LOG)
    operations = [row[1] for row in case["changes"]]
    engine = OfDataFusion(folder, current, log) if folder else OfSpark(spark, current, log)
    found = macros.load(
        contract=lambda name: CONTRACT,
        target=SimpleNamespace(schema=DATABASE),
        rows_of_gold=lambda name, query, is_local: engine.answer(query),
        keep=engine.keep,
    )
    last = max((row[2] for row in case.get("gold", ())), default=None)
    source = {
        "source": "s",
        "applied_batch_id": 0,
        "applied_seq": last,
        "start_seq": case["changes"][0][0],
        "rewind_seq": None,
        "through_batch_id": 1,
        "through_seq": case["changes"][-1][0],
    }
    batch = {
        "log": "unit_log",
        "filter": "true",
        "is_first": False,
        "key_range": "true",
        "num_changes": len(operations),
        "sources": [source],
        "progress": None,
        "starts": [],
        "disturbed": [],
        "continued": [],
        "has_rewind": False,
        "has_partial": log.where("size(not_supplied) > 0").count() > 0,
        "has_lost": log.where("column_states is not null").count() > 0,
        "has_key_change": log.where("key_changed").count() > 0,
        "has_delete": log.where("operation = 'DELETE' and transaction_id is not null").count() > 0,
        "has_wipe": bool({"TRUNCATE", "COLUMN_ADDED"} & {*operations}),
        "has_added": "COLUMN_ADDED" in operations,
        "is_local": folder is not None,
    }
    entries = f"select * from {engine.keep('t', batch['is_local'], 'entries', found.entries('t', batch))}"
    touched = f"select * from {engine.keep('t', batch['is_local'], 'touched', found.touched('t', batch, entries))}"
    timeline = engine.keep("t", batch["is_local"], "timeline", found.timeline("t", batch, entries, touched))
    is_followed = batch["has_key_change"]
    threads = found.threads("t", batch["is_local"], [timeline], batch["has_partial"]) if is_followed else None
    return engine, found, batch, f"select * from {timeline}", threads


def on_both(kind: str):
    """Cases, each for Spark, and for DataFusion, which folds no batch that adds a dropped column again."""
    is_both = {case["it"]: all(row[1] != "COLUMN_ADDED" for row in case["changes"]) for case in CASES[kind]}
    given = [(case, local) for local in (False, True) for case in CASES[kind] if not local or is_both[case["it"]]]
    names = [f"{case['it']}-{'datafusion' if local else 'spark'}" for case, local in given]
    return pytest.mark.parametrize(("case", "is_local"), given, ids=names)


@on_both("timeline")
def test_the_timeline_of_a_key(gold, case, is_local, tmp_path):
    engine, _, _, timeline, _ = staged(gold, case, tmp_path if is_local else None)
    columns = "_key_1, kind, change_seq, next_seq, is_row_absent, is_displacing"
    rows = engine.answer(f"select {columns} from ({timeline}) order by 1, 3, 2")
    found = [
        [
            *[*row.values()][:4],
            *(["absent"] if row["is_row_absent"] else []),
            *(["displacing"] if row["is_displacing"] else []),
        ]
        for row in rows
    ]
    assert found == case["timeline"], case["reason"]


@on_both("fold")
def test_the_versions_of_a_key(gold, case, is_local, tmp_path):
    engine, found, batch, timeline, threads = staged(gold, case, tmp_path if is_local else None)
    rows = engine.answer(
        f"select * from ({found.fold('t', batch, timeline, threads)}) where valid_from_seq is not null"
    )
    versions = [
        [
            row["_value_1"],
            f"{row['_value_2'] or ''}?" if "name" in row["not_supplied"] else row["_value_2"],
            row["valid_from_seq"],
            row["valid_to_seq"],
            *([row["conflict"]] if row["conflict"] else []),
        ]
        for row in rows
    ]
    assert sorted(versions, key=lambda one: (one[0], one[2])) == case["versions"], case["reason"]
