"""Unit tests of dbt's macros `timeline` and `fold`, on rows that a person can read. They are none of dbt's own, which
take a model that is one SELECT; these models are built by statements. What the fold means as a whole is tested against
tests/reference.py.

Cases that ask for the same parts of the macros are sources of one batch: what one costs is mostly planning.
"""

import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import deltalake
import pyarrow as pa
import pytest
import yaml
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

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


def lineage(operation: str, key_changed: bool, transaction_id=None, counter=None, is_last=None) -> dict:
    return {
        "operation": operation,
        "key_changed": key_changed,
        "transaction_id": transaction_id,
        "transaction_event_counter": counter,
        "transaction_last_event": is_last,
        "unit_id": "u",
        "unit_offset": 0,
        "batch_id": 1,
    }


def image(row: list | None) -> dict | None:
    return row and {"id": row[0], "name": row[1] if len(row) > 1 and row[1] != MISSING else None}


def change(seq: str, operation: str, before, after, *transaction) -> dict:
    is_missing = bool(after) and after[-1] == MISSING
    not_supplied = ["name"] if after and (len(after) < 2 or is_missing) else []
    return {
        "change_seq": seq,
        "before": image(before),
        "after": image(after),
        "not_supplied": ["id"] if operation == "COLUMN_ADDED" else not_supplied,
        "column_states": {"name": "missing"} if is_missing else None,
        "load_id": "L" if operation == "REFRESH" else None,
    } | lineage(operation, bool(before and after and before[0] != after[0]), *transaction)


def version(id_: int, name: str, seq: str, conflict: str | None = None) -> dict:
    of = lineage("INSERT", False, "T", 1, False) if conflict else lineage("INSERT", False)
    said = {"id": id_, "name": name, "valid_from_seq": seq, "conflict": conflict}
    return said | {"is_complete": True, "not_supplied": []} | of


def table(schema: str, rows_of: dict[str, list[dict]]) -> pa.Table:
    """In: the rows by source."""
    rows = [{"source": source} | row for source, rows in rows_of.items() for row in rows]
    return pa.Table.from_pylist(rows, to_arrow_schema(StructType.fromDDL(schema)))


class OfSpark:
    """Spark, with the tables of a batch."""

    def __init__(self, spark, current, log):
        self.spark, self.numbers = spark, itertools.count()
        spark.sql(f"drop table if exists {DATABASE}.t__current")
        spark.createDataFrame(current, CURRENT).write.format("parquet").saveAsTable(f"{DATABASE}.t__current")
        spark.createDataFrame(log, LOG).createOrReplaceTempView("unit_log")

    def answer(self, query: str) -> list[dict]:
        return [row.asDict() for row in self.spark.sql(query).collect()]

    def keep(self, name: str, is_local: bool, step: str, query: str, columns=()) -> str:
        view = f"unit_kept_{next(self.numbers)}"
        self.spark.sql(query).createOrReplaceTempView(view)
        return view


class OfDataFusion:
    """What folds small batches, with the tables of a batch."""

    def __init__(self, folder: Path, current, log):
        self.queries, self.numbers = Queries(str(folder)), itertools.count()
        builder = snapshots.query_builder()
        builder.execute(f"create schema {DATABASE}")
        for name, rows in ((f"{DATABASE}.t__current", current), ("unit_log", log)):
            deltalake.write_deltalake(f"{folder}/{name}", rows)
            builder = builder.register(name, deltalake.DeltaTable(f"{folder}/{name}"))
        self.queries.engines["t"] = builder

    def answer(self, query: str) -> list[dict]:
        return self.queries.answer("t", query)

    def keep(self, name: str, is_local: bool, step: str, query: str, columns=()) -> str:
        view = f"unit_kept_{next(self.numbers)}"
        self.queries.keep(name, view, query, columns)
        return view


def parts_of(case: dict) -> dict[str, bool]:
    """What the log says of a batch with the changes of a case: the parts of the macros that it needs."""
    rows = [change(*row) for row in case["changes"]]
    operations = {row["operation"] for row in rows}
    return {
        "has_partial": any(row["not_supplied"] for row in rows),
        "has_lost": any(row["column_states"] for row in rows),
        "has_key_change": any(row["key_changed"] for row in rows),
        "has_delete": any(row["operation"] == "DELETE" and row["transaction_id"] for row in rows),
        "has_wipe": bool({"TRUNCATE", "COLUMN_ADDED"} & operations),
        "has_added": "COLUMN_ADDED" in operations,
    }


def source_of(name: str, case: dict) -> dict:
    return {
        "source": name,
        "applied_batch_id": 0,
        "applied_seq": max((row[2] for row in case.get("gold", ())), default=None),
        "start_seq": case["changes"][0][0],
        "rewind_seq": None,
        "through_batch_id": 1,
        "through_seq": case["changes"][-1][0],
    }


def batch_of(spark, cases: dict[str, dict], folder: Path | None):
    """The engine, the macros, a batch whose sources are these cases, its timeline as a query, and the threads of its
    key changes. In: a folder for the tables of DataFusion; None: Spark is asked.
    """
    current = table(CURRENT, {name: [version(*row) for row in case.get("gold", ())] for name, case in cases.items()})
    log = table(LOG, {name: [change(*row) for row in case["changes"]] for name, case in cases.items()})
    engine = OfDataFusion(folder, current, log) if folder else OfSpark(spark, current, log)
    found = macros.load(
        contract=lambda name: CONTRACT,
        target=SimpleNamespace(schema=DATABASE),
        rows_of_gold=lambda name, query, is_local: engine.answer(query),
        keep=engine.keep,
    )
    batch = {
        "log": "unit_log",
        "filter": "true",
        "is_first": False,
        "key_range": "true",
        "num_changes": len(log),
        "sources": [source_of(name, case) for name, case in cases.items()],
        "progress": None,
        "starts": [],
        "disturbed": [],
        "continued": [],
        "has_rewind": False,
        "is_local": folder is not None,
    } | parts_of(next(iter(cases.values())))
    entries = f"select * from {engine.keep('t', batch['is_local'], 'entries', found.entries('t', batch))}"
    touched = f"select * from {engine.keep('t', batch['is_local'], 'touched', found.touched('t', batch, entries))}"
    timeline = engine.keep("t", batch["is_local"], "timeline", found.timeline("t", batch, entries, touched))
    is_followed = batch["has_key_change"]
    threads = found.threads("t", batch["is_local"], [timeline], batch["has_partial"]) if is_followed else None
    return engine, found, batch, f"select * from {timeline}", threads


def timelines(engine, found, batch, timeline, threads) -> list[dict]:
    columns = "source, _key_1, kind, change_seq, next_seq, is_row_absent, is_displacing"
    return engine.answer(f"select {columns} from ({timeline}) order by 1, 2, 4, 3")


def versions(engine, found, batch, timeline, threads) -> list[dict]:
    folded = found.fold("t", batch, timeline, threads)
    return engine.answer(f"select * from ({folded}) where valid_from_seq is not null")


@pytest.fixture(scope="module")
def rows_of(gold, tmp_path_factory):
    """What an engine answers of a case. In: the kind of case, its number, and whether DataFusion is asked."""
    answers: dict[tuple, list[dict]] = {}

    def rows_of(kind: str, number: int, is_local: bool) -> list[dict]:
        parts = parts_of(CASES[kind][number])
        group = kind, is_local, *parts.values()
        if group not in answers:
            cases = {f"case {n}": case for n, case in enumerate(CASES[kind]) if parts_of(case) == parts}
            folder = tmp_path_factory.mktemp("batch") if is_local else None
            answers[group] = {"timeline": timelines, "fold": versions}[kind](*batch_of(gold, cases, folder))
        return [row for row in answers[group] if row["source"] == f"case {number}"]

    return rows_of


def on_both(kind: str):
    """Cases, each for Spark, and for DataFusion, which folds no batch that adds a dropped column again."""
    given = [
        pytest.param(number, is_local, id=f"{case['it']}-{'datafusion' if is_local else 'spark'}")
        for is_local in (False, True)
        for number, case in enumerate(CASES[kind])
        if not (is_local and parts_of(case)["has_added"])
    ]
    return pytest.mark.parametrize(("number", "is_local"), given)


@on_both("timeline")
def test_the_timeline_of_a_key(rows_of, number, is_local):
    case = CASES["timeline"][number]
    found = [
        [
            *[*row.values()][1:5],
            *(["absent"] if row["is_row_absent"] else []),
            *(["displacing"] if row["is_displacing"] else []),
        ]
        for row in rows_of("timeline", number, is_local)
    ]
    assert found == case["timeline"], case["reason"]


@on_both("fold")
def test_the_versions_of_a_key(rows_of, number, is_local):
    case = CASES["fold"][number]
    found = [
        [
            row["_value_1"],
            f"{row['_value_2'] or ''}?" if "name" in row["not_supplied"] else row["_value_2"],
            row["valid_from_seq"],
            row["valid_to_seq"],
            *([row["conflict"]] if row["conflict"] else []),
        ]
        for row in rows_of("fold", number, is_local)
    ]
    assert sorted(found, key=lambda one: (one[0], one[2])) == case["versions"], case["reason"]
