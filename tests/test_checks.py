"""Checks: suites as data, what they find, what they leave behind, and that nothing declared is dropped in silence."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from inlet import checks, lake
from inlet.checks import checks as checking
from inlet.checks import counting, local_rows, suite, validation
from inlet.checks import results as kept_results
from inlet.checks import rows as rows_to_check
from inlet.config import Project
from inlet.errors import CheckFailed, ConfigError
from inlet.table import Table

ROOT = Path(__file__).resolve().parents[1]
BATCH, EARLIER = 990_000_002, 990_000_001
SEQ = "2026010500000000" + "0" * 16
ORDERS = Table(
    table="T.PARCELS",
    name="parcels",
    key=["SHOP", "PARCEL_ID"],
    columns=[
        {"name": "SHOP", "type": "int"},
        {"name": "PARCEL_ID", "type": "int"},
        {"name": "STATE", "type": "string"},
    ],
)


@pytest.fixture
def project(tmp_path, request) -> Project:
    shutil.copytree(ROOT / "expectations", tmp_path / "expectations")
    where = request.getfixturevalue("lakehouse") if "spark" in request.fixturenames else "lakehouse"
    return Project(root=tmp_path, lakehouse=where, sources={}, tables={"T.PARCELS": ORDERS})


def write_suite(project, text: str, step: str = "silver"):
    (project.root / "expectations" / f"{step}.yml").write_text(text)


@pytest.fixture
def silver(spark):
    """Appends changes of one batch as (change_seq end, operation, before, after) and a ledger row; removes them after
    the test.
    """

    def add(changes, batch_id=BATCH, num_rejected=0, num_records=None):
        rows = ", ".join(
            f"""('checked', 'PARCELS', '{SEQ}{end}', '{operation}', '{operation[0]}', parse_json({sql(before)}),
            parse_json({sql(after)}), 'u', {batch_id})"""
            for end, operation, before, after in changes
        )
        spark.sql(f"""insert into silver.changes (source, source_table, change_seq, operation, change_oper,
                before, after, unit_id, batch_id)
            values {rows}""")
        total = len(changes) + num_rejected if num_records is None else num_records
        spark.sql(f"""insert into silver.batches (batch_id, source, num_records, num_changes, num_repeats,
                num_control, num_rejected, bytes_landed, bytes_decoded, bytes_repeated, bytes_framing, bytes_rejected)
            values ({batch_id}, 'checked', {total}, {len(changes)}, 0, 0, {num_rejected}, 10, 10, 0, 0, 0)""")

    yield add
    of_silver = ("silver.changes", "silver.batches", "silver.rejects", "silver.control_events")
    for table in (*of_silver, "bronze.blocks", "bronze.messages", "bronze.files"):
        spark.sql(f"delete from {table} where batch_id >= {EARLIER}")
    spark.sql(f"delete from silver.closed_rejects where rejected_in >= {EARLIER}")


def sql(text):
    return "null" if text is None else f"'{text}'"


def kept(spark, where: str) -> list[tuple]:
    return [
        tuple(r)
        for r in spark.sql(
            f"select `table`, expectation, severity, success, unexpected_count from checks.results where {where} "
            "order by `table`, expectation, severity"
        ).collect()
    ]


GOOD = [
    ("001", "INSERT", None, '{"PARCEL_ID":1}'),
    ("002", "UPDATE", None, '{"PARCEL_ID":1}'),
    ("003", "DELETE", '{"PARCEL_ID":1}', None),
]


def test_every_declared_expectation_of_this_project_can_be_built(project):
    for step in suite.STEPS:
        expected = suite.expand(suite.load(project, step), [ORDERS])
        assert len(suite.build(expected)) == len(expected) > 0


def test_a_template_becomes_one_expectation_per_contract_and_key_column(project):
    write_suite(
        project,
        """
- {table: "*__current", expect: expect_column_values_to_not_be_null, kwargs: {column: "{key_column}"}, severity: error,
  why: w}
- {table: "*__current", expect: unexpected_rows_expectation,
  kwargs: {unexpected_rows_query: "select {key} from {batch}"}, severity: warn, why: w}
""",
        "gold",
    )
    expected = suite.expand(suite.load(project, "gold"), [ORDERS])
    assert [(e.table, e.kwargs) for e in expected] == [
        ("gold.parcels__current", {"column": "SHOP"}),
        ("gold.parcels__current", {"column": "PARCEL_ID"}),
        ("gold.parcels__current", {"unexpected_rows_query": "select `SHOP`, `PARCEL_ID` from {batch}"}),
    ]


def test_an_expectation_may_be_named_by_its_class(project):
    write_suite(
        project,
        "- {table: silver.changes, expect: ExpectColumnValuesToNotBeNull, kwargs: {column: source}, "
        "severity: error, why: w}",
    )
    assert (
        suite.build(suite.expand(suite.load(project, "silver"), []))[0].expectation_type
        == "expect_column_values_to_not_be_null"
    )


ENTRY = (
    "- {table: silver.changes, expect: expect_column_values_to_not_be_null, kwargs: {column: source}, "
    "severity: error, why: w}\n"
)


@pytest.mark.parametrize(
    "text, said",
    [
        (
            ENTRY.replace("not_be_null", "not_be_nul"),
            "entry 2 (silver.changes, expect_column_values_to_not_be_nul): Great Expectations has no",
        ),
        (
            ENTRY.replace("column:", "colum:"),
            "entry 2 (silver.changes, expect_column_values_to_not_be_null): kwargs do not fit: column: field required",
        ),
        (ENTRY.replace("severity: error", "severity: fatal"), "severity: Input should be 'error' or 'warn'"),
        (ENTRY.replace(", why: w", ""), "why: Field required"),
        ("- only text", "entry 2"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file(project, text, said):
    write_suite(project, ENTRY + text)
    with pytest.raises(ConfigError) as raised:
        suite.build(suite.expand(suite.load(project, "silver"), []))
    assert said in str(raised.value) and "silver.yml" in str(raised.value)


@pytest.mark.smoke
def test_a_good_batch_passes_and_leaves_results_once_and_pages(project, spark, silver, monkeypatch):
    monkeypatch.setattr(
        validation,
        "validate_on_spark",
        lambda *of: pytest.fail("nothing is wrong, so nothing is to be looked at twice"),
    )
    monkeypatch.setattr(
        "pyspark.sql.classic.dataframe.DataFrame.persist", lambda *of: pytest.fail("rows are read once")
    )
    silver([("001", "UPDATE", None, None)], batch_id=EARLIER)  # would fail, but is not asked about
    silver(GOOD, num_rejected=2, num_records=5)
    spark.sql(  # of a file without a full load; of a full load, and closed
        f"""insert into silver.rejects (source, source_table, change_seq, kind, unit_id, batch_id, expected)
        values ('checked', 'PARCELS', '{SEQ}004', 'bad_date', 'u', {BATCH}, 'a day'),
               ('checked', 'PARCELS', null, 'missing_change_seq', 'v', {BATCH}, 'option load_time')"""
    )
    spark.sql(f"""insert into silver.closed_rejects (source, kind, unit_id, rejected_in, is_closed, written_at)
        values ('checked', 'missing_change_seq', 'v', {BATCH}, true, current_timestamp())""")
    spark.sql(f"""insert into bronze.blocks (source, unit_id, context, batch_id)
        values ('checked', 'u', '{{"load_id": null}}', {BATCH})""")
    results = checks.check(project, spark, "silver", [BATCH])
    assert all(r.success for r in results) and len(results) == len(suite.load(project, "silver"))
    run = results[0].run_id
    kept_results.keep(project, spark, "silver", run, results, {}, {})  # again: an append of a run happens once
    assert spark.table("checks.results").where(f"run_id = {run}").count() == len(results)
    assert kept(spark, f"run_id = {run} and `table` = 'silver.rejects'") == [
        ("silver.rejects", "expect_column_values_to_be_in_set", "error", True, 0),
        ("silver.rejects", "unexpected_rows_expectation", "error", True, 0),
        ("silver.rejects", "unexpected_rows_expectation", "warn", True, 0),
    ]
    docs = Path(project.lakehouse) / "checks" / "docs"
    assert f"{run}/silver.changes.html" in (docs / "index.html").read_text()
    page = (docs / str(run) / "silver.changes.html").read_text()
    assert (
        "change_seq" in page
        and "http" not in page
        and page.count("<tr>") == 1 + sum(r.table == "silver.changes" for r in results)
    )


@pytest.mark.smoke
def test_an_error_stops_after_its_results_are_kept(project, spark, silver):
    silver([*GOOD, ("004", "UPSERT", None, None), ("04x", "INSERT", None, '{"PARCEL_ID":2}')])
    with pytest.raises(CheckFailed) as raised:
        checks.check(project, spark, "silver", [BATCH])
    text = str(raised.value)
    assert (
        "2 checks of silver failed" in text
        and f"observed '{SEQ}04x'" in text
        and "1 unwanted rows" in text
        and "index.html" in text
    )
    run = int(text.rsplit("run_id = ", 1)[1])
    assert kept(spark, f"run_id = {run} and not success") == [
        ("silver.changes", "expect_column_values_to_match_regex", "error", False, 1),
        ("silver.changes", "unexpected_rows_expectation", "error", False, 1),
    ]
    queries = [r.rows_sql for r in spark.table("checks.results").where(f"run_id = {run} and not success").collect()]
    assert sorted(spark.sql(q).first().change_seq for q in queries) == [f"{SEQ}004", f"{SEQ}04x"]


def only(project, table: str):
    """Keep the entries of the project's own suite that are about one table."""
    path = project.root / "expectations" / "silver.yml"
    path.write_text(yaml.safe_dump([e for e in yaml.safe_load(path.read_text()) if e["table"] == table]))


def test_a_warning_does_not_stop_and_a_few_rejects_of_few_records_are_none(project, spark, silver):
    silver(GOOD, num_rejected=5)
    silver(GOOD, BATCH + 1, num_rejected=4)
    only(project, "silver.batches")
    warned = [r for r in checks.check(project, spark, "silver", [BATCH, BATCH + 1]) if not r.success]
    assert [(r.table, r.severity, r.unexpected_count) for r in warned] == [("silver.batches", "warn", 1)]


@pytest.mark.smoke
def test_a_ledger_that_does_not_add_up_stops(project, spark, silver):
    silver(GOOD, num_records=4)
    only(project, "silver.batches")
    with pytest.raises(CheckFailed, match="every record is accounted for"):
        checks.check(project, spark, "silver", [BATCH])


def test_what_cannot_run_has_failed_even_as_a_warning(project, spark, silver):
    silver(GOOD)
    write_suite(
        project,
        """
- {table: silver.changes, expect: expect_column_values_to_not_be_null, kwargs: {column: nowhere}, severity: warn,
  why: w}
- {table: silver.nothing, expect: expect_column_values_to_not_be_null, kwargs: {column: source}, severity: warn, why: w}
""",
    )
    with pytest.raises(CheckFailed, match=r"(?s)could not run.*nowhere.*the table does not exist"):
        checks.check(project, spark, "silver", [BATCH])


@pytest.fixture
def gold(spark):
    """Gold tables of contracts with the rows given: current keys, history periods, and the log of touched keys. With
    rows of past, history is the view over past and current that it is in a lakehouse.
    """
    made = []

    def make(current, history, touched, name="parcels", past=None):
        version = "source string, SHOP int, PARCEL_ID int, valid_from_seq string"
        rest = "is_complete boolean, not_supplied array<string>"
        tables = {
            "current": (f"{version}, {rest}", [(*key, "1", True, []) if len(key) == 3 else key for key in current]),
            "before_after": (
                "source string, before struct<SHOP int, PARCEL_ID int>, after struct<SHOP int, PARCEL_ID int>, "
                "batch_id bigint",
                touched,
            ),
            "past": (f"{version}, {rest}, valid_to_seq string", past),
            "history": (f"{version}, valid_to_seq string", history),
        }
        for kind, (schema, rows) in tables.items():
            if rows is not None:
                rows_of_table = spark.createDataFrame(rows, schema)
                rows_of_table.write.format("delta").mode("overwrite").saveAsTable(f"gold.{name}__{kind}")
        if history is None:
            spark.sql(f"""create view gold.{name}__history as select * from gold.{name}__past
                union all select *, cast(null as string) from gold.{name}__current""")
        made.append((name, past, history))

    yield make
    for name, past, history in made:
        spark.sql(f"drop {'view' if history is None else 'table'} if exists gold.{name}__history")
        for kind in ("current", "before_after", *["past"] * (past is not None)):
            spark.sql(f"drop table if exists gold.{name}__{kind}")


@pytest.mark.smoke
def test_gold_keys_are_unique_and_periods_sound_among_the_keys_a_batch_touched(project, spark, gold):
    history = [
        (1, "1", "2"),
        (1, "2", None),  # closed, then open: sound
        (2, "1", "3"),
        (2, "2", None),  # overlap
        (3, "5", "5"),  # empty
        (4, "1", None),
        (4, "1", None),
    ]  # two live versions, but of a key that the batch did not touch
    gold(
        current=[("s", 1, 1), ("s", 1, 1), ("s", 1, 4), ("s", 1, 4)],
        history=[("s", 1, *version) for version in history],
        touched=[("s", (1, 1), (1, 2), BATCH), ("s", None, (1, 3), BATCH), ("s", None, (1, 4), EARLIER)],
    )
    with pytest.raises(CheckFailed, match="3 checks of gold failed") as raised:
        checks.check(project, spark, "gold", [BATCH], ["parcels"])
    queries = [line.split("see them: ")[1] for line in str(raised.value).splitlines() if "see them" in line]
    assert [[tuple(row)[:3] for row in spark.sql(query).collect()] for query in queries] == [
        [("s", 1, 1)],
        [("s", 1, 3)],
        [("s", 1, 2)],
    ]


@pytest.fixture
def statements(spark, monkeypatch) -> list[str]:
    """The statements that ask for counts."""
    sent, sql = [], type(spark).sql

    def noted(session, text, *args, **kwargs):
        if "inlet_checked_" in text:
            sent.append(text)
        return sql(session, text, *args, **kwargs)

    monkeypatch.setattr(type(spark), "sql", noted)
    return sent


@pytest.mark.smoke
def test_tables_of_a_step_are_asked_in_one_statement_of_rows_read_without_spark(
    project, spark, silver, gold, statements
):
    """Two contracts, four tables: keys are touched in both images, in batches of before, and lack a part."""
    crates = ORDERS.model_copy(update={"table": "T.CRATES", "name": "crates"})
    project = Project(
        root=project.root, lakehouse=project.lakehouse, sources={}, tables={t.table: t for t in (ORDERS, crates)}
    )
    for name in ("parcels", "crates"):
        gold(
            current=[("s", 1, 1), ("s", 1, 4, "2", False, ["STATE"]), ("t", 1, 2)],
            history=None,
            past=[
                ("s", 1, 4, "1", True, [], "2"),
                ("s", 1, 2, "1", True, [], "3"),
                ("s", 1, 5, "1", True, [], "3"),
                ("s", 1, None, "1", True, [], "3"),
            ],
            touched=[("s", (1, 1), (1, 2), BATCH), ("s", None, (1, 4), BATCH), ("s", None, (1, 5), EARLIER)],
            name=name,
        )
    suites = rows_to_check.of_tables(
        project,
        spark,
        expected := suite.expand(suite.load(project, "gold"), project.tables.values()),
        suite.build(expected),
        [BATCH],
    )
    with local_rows.held(project, spark, suites, [BATCH], 1 << 20) as held:
        for by_spark, local in zip(suites, held, strict=True):
            shown = [
                sorted(one.narrow_rows(spark).select("PARCEL_ID", "valid_from_seq").collect(), key=str)
                for one in (by_spark, local)
            ]
            assert shown[0] == shown[1] and "inlet_touched" in local.rows
            assert [row[0] for row in shown[0]] == [1, 4] if "current" in local.table else [1, 2, 4, 4, None]
    statements.clear()
    results = checks.check(project, spark, "gold", [BATCH])
    assert [(r.table, r.severity, r.unexpected_count) for r in results if not r.success] == [
        ("gold.parcels__current", "warn", 1),
        ("gold.crates__current", "warn", 1),
    ]
    assert len(statements) == 1 and "gold." not in statements[0]
    silver(GOOD)
    checks.check(project, spark, "silver", [BATCH])
    assert len(statements) == 2 and "silver." not in statements[1]
    assert (
        "change_oper" in statements[1] and "resolved_by" not in statements[1]
    )  # no file can hold a reject of the batch


@pytest.fixture
def bronze(spark, silver):
    """Rows of two batches in the tables of bronze, some of which break each rule."""
    sha256 = "0" * 64
    for batch_id in (EARLIER, BATCH):
        spark.sql(f"""insert into bronze.blocks (batch_id, source, unit_id, path, sha256, size_bytes, bytes)
            values ({batch_id}, 's', 'a', 'p', '{sha256}', 1, X'00'), ({batch_id}, 's', 'a', null, 'no', 0, null)""")
        spark.sql(f"""insert into bronze.messages
                (batch_id, source, unit_id, topic, `partition`, `offset`, value, sha256, size_bytes)
            values ({batch_id}, 's', 'm', 't', 0, 1, X'7b7d', '{sha256}', 2),
                   ({batch_id}, 's', 'n', 't', 0, 2, null, null, 0),
                   ({batch_id}, 's', 'o', 't', 0, 3, X'', null, 0),
                   ({batch_id}, 's', 'o', 't', null, -1, null, 'F', null)""")
        spark.sql(f"""insert into bronze.files (batch_id, source, path, ofs_start, ofs_end, problem)
            values ({batch_id}, 's', 'p', 0, 1, null), ({batch_id}, 's', 'q', 0, 1, 'unreadable')""")


@pytest.mark.smoke
def test_rows_of_a_batch_are_the_same_read_without_spark(project, spark, silver, bronze):
    """Every table of bronze and silver, with each column that its suite names; large ones are null or not."""
    silver([*GOOD, ("004", "UPDATE", None, "null")])
    silver(GOOD[:1], batch_id=EARLIER)
    spark.sql(f"""insert into silver.control_events (source, source_table, kind, detail, batch_id)
        values ('s', 'T', 'table_suspended', 'd', {BATCH}), ('s', 'T', 'full_load', null, {EARLIER})""")
    compared = {}
    for step in ("bronze", "silver"):
        expected = suite.expand(suite.load(project, step), [])
        suites = rows_to_check.of_tables(project, spark, expected, suite.build(expected), [BATCH])
        with local_rows.held(project, spark, suites, [BATCH], 1 << 20) as held:
            for by_spark, local in zip(suites, held, strict=True):
                if local.rows == by_spark.rows:
                    continue
                rows = [one.narrow_rows(spark) for one in (by_spark, local)]
                columns = sorted(rows[0].columns)
                assert columns == sorted(rows[1].columns)
                types, shown = zip(
                    *((dict(r.dtypes), sorted(map(str, r.select(columns).collect()))) for r in rows), strict=True
                )
                assert types[0] == types[1] and shown[0] == shown[1]
                compared[local.table] = len(shown[0])
    assert compared == {
        "bronze.blocks": 2,
        "bronze.messages": 4,
        "bronze.files": 2,
        "silver.changes": 4,
        "silver.control_events": 1,
        "silver.batches": 1,
    }  # the suite of rejects asks for every column, and for other tables


def test_a_batch_of_large_files_is_read_by_spark(project, spark, silver, statements, monkeypatch):
    monkeypatch.setattr(checking, "SMALL_BYTES", 1000)
    silver(GOOD)
    checks.check(project, spark, "silver", [BATCH])
    assert any("from silver.changes" in statement for statement in statements)


@pytest.mark.parametrize(
    "query, is_every",
    [
        ("select a, count(*) as n from {batch} where b * 2 > 1 and (c) *3 > 0 having count(*) > 1", False),
        ("select * from {batch}", True),
        ("select distinct * from {batch}", True),
        ("select a, r.* from {batch} r", True),
        ("select a, * except (b) from {batch}", True),
        ("select /*+ coalesce(1) */ * from {batch}", True),
        ("select a from {batch} where hash(*) = 1", True),
        ("select a from {batch} natural join b", True),
        ("table {batch}", True),
        ("from {batch} |> where a > 1", True),
        ("select * from {batch} group by all having count(*) > 1", True),
        ("select * from (\n select a, (b) as c from {batch} where d = '()')\nwhere a > (1)", False),
        ("SELECT * FROM (select * from (select a from {batch})) where a = 1", False),
        ("select * from (select * from {batch})", True),
        ("select * from ({batch})", True),
        ("select * from (select a from {batch}), {batch}", True),
        ("select * from (select a from {batch}) where exists (select * from {batch})", True),
        ("select * from (select a from {batch}) where a = 1 union all select b.* from {batch} b", True),
        ("select * from (select a from {batch} where b = ')') where c = ')", True),
        ("select * from (select a from {batch} where b = '(') where c = 1", True),
    ],
)
def test_a_query_that_asks_for_every_column_is_known(query, is_every):
    assert local_rows.asks_for_every_column(query) == is_every


@pytest.mark.parametrize("query", ["", "select * from {batch} group by all having count(*) > 1"])
def test_a_query_of_gold_that_asks_for_every_column_is_left_to_spark(project, query):
    """Rows with the columns alone that suites name may be equal where whole rows are not. Inlet's own suite names
    all."""
    image = pa.struct([("SHOP", pa.int32()), ("PARCEL_ID", pa.int32())])
    log = {"source": ["s"], "batch_id": [BATCH], "before": pa.nulls(1, image), "after": [{"SHOP": 1, "PARCEL_ID": 1}]}
    log["after"] = pa.array(log["after"], image)
    key = {"SHOP": pa.array([1], pa.int32()), "PARCEL_ID": pa.array([1], pa.int32())}
    current = pa.table({"source": ["s"], **key, "valid_from_seq": [SEQ], "STATE": ["a"], "is_complete": [True]})
    current = current.append_column("not_supplied", pa.nulls(1, pa.list_(pa.string())))
    tables = {"before_after": pa.table(log), "current": current, "past": current.append_column("valid_to_seq", [["9"]])}
    for name, rows in tables.items():
        write_deltalake(project.lakehouse_path("gold", f"parcels__{name}"), rows)
    if query:
        entry = {"table": "*__current", "expect": "unexpected_rows_expectation", "severity": "error", "why": "w"}
        write_suite(project, yaml.safe_dump([entry | {"kwargs": {"unexpected_rows_query": query}}]), "gold")
    expected = suite.expand(suite.load(project, "gold"), [ORDERS])
    suites = rows_to_check.of_tables(project, None, expected, suite.build(expected), [BATCH])
    rows = local_rows.read(project, ORDERS, [BATCH], suites, 1 << 20)
    assert (rows and len(rows)) == (None if query else 2)


def test_a_column_at_the_begin_of_a_line_is_named(project):
    """Its name is not joined with how Python shows the end of a line."""
    write_suite(
        project,
        """
- table: silver.changes
  expect: unexpected_rows_expectation
  kwargs:
    unexpected_rows_query: "select\nunit_id,\n\tsource from {batch} where\nchange_seq is null"
  severity: warn
  why: w
""",
    )
    expected = suite.expand(suite.load(project, "silver"), [])
    (changes,) = rows_to_check.of_tables(project, None, expected, suite.build(expected), [BATCH])
    columns = ["change_seq", "operation", "source", "unit_id"]
    assert rows_to_check.named(columns, [changes]) == ["change_seq", "source", "unit_id"]


def both_ways(project, spark, monkeypatch, step, tables=None) -> list[tuple]:
    """What is found by counting and by Great Expectations alone: fields of checks.results, and its own results as they
    are shown.
    """
    found, validate = [], validation.validate
    for counted in (counting.COUNTED, {}):
        with monkeypatch.context() as patch:
            validations = []
            patch.setattr(counting, "COUNTED", counted)
            patch.setattr(validation, "validate", lambda *of: validations.append(validate(*of)) or validations[-1])
            patch.setattr(checking, "raise_on_errors", lambda *of: None)
            results = checks.check(project, spark, step, [BATCH], tables)
        rows = [r._replace(run_id=0, checked_at=0) for r in results]
        found.append(
            (
                rows,
                sorted(
                    (v.suite_name, v.success, v.statistics, [shown(r) for r in v.results]) for v in validations if v
                ),
            )
        )
    return found


def shown(result) -> dict:
    """A result of Great Expectations as its pages have it, without the names that it makes up for each run."""
    fields = result.to_json_dict()
    config = fields["expectation_config"]
    return fields | {
        "expectation_config": {k: v for k, v in config.items() if k not in ("id", "kwargs")}
        | {k: v for k, v in config["kwargs"].items() if k != "batch_id"}
    }


EDGES = """
- {table: silver.changes, expect: expect_column_values_to_not_be_null, kwargs: {column: after}, severity: warn, why: w}
- {table: silver.changes, expect: expect_column_values_to_be_unique, kwargs: {column: change_seq}, severity: warn,
  why: w}
- {table: silver.changes, expect: expect_column_values_to_be_unique, kwargs: {column: load_id}, severity: warn,
  why: only nulls}
- {table: silver.changes, expect: expect_column_values_to_be_in_set, kwargs: {column: load_id, value_set: [L]},
  severity: warn, why: only nulls}
- {table: silver.changes, expect: expect_column_values_to_be_in_set,
  kwargs: {column: operation, value_set: [INSERT], mostly: 0.1}, severity: warn, why: w}
- {table: silver.changes, expect: expect_column_values_to_match_regex, kwargs: {column: operation, regex: "E$"},
  severity: warn, why: w}
- {table: silver.changes, expect: expect_column_value_lengths_to_equal, kwargs: {column: change_seq, value: 35},
  severity: warn, why: not counted}
- {table: silver.changes, expect: expect_table_row_count_to_be_between, kwargs: {min_value: 1}, severity: warn,
  why: not counted}
"""


def test_counting_finds_what_great_expectations_finds_alone(project, spark, silver, bronze, gold, monkeypatch):
    """In bronze and silver, where some expectations hold and some do not; in gold, where all hold: what does not is
    validated by it either way.
    """
    silver(
        [*GOOD, ("003", "UPDATE", None, None), ("04x", "MERGE", None, '{"PARCEL_ID":2}')], num_records=6, num_rejected=5
    )
    gold(
        current=[("s", 1, 1)],
        history=[("s", 1, 1, "1", "2"), ("s", 1, 1, "2", None)],
        touched=[("s", None, (1, 1), BATCH)],
    )
    path = project.root / "expectations" / "silver.yml"
    path.write_text(path.read_text() + EDGES)
    for step, tables, num_failed in (("bronze", None, 7), ("silver", None, 9), ("gold", ["parcels"], 0)):
        counted, alone = both_ways(project, spark, monkeypatch, step, tables)
        assert counted == alone and sum(not r.success for r in counted[0]) == num_failed


def test_a_column_that_is_not_there_hides_nothing_else(project, spark, silver, monkeypatch):
    silver([*GOOD, ("04x", "INSERT", None, '{"PARCEL_ID":2}')])
    write_suite(
        project,
        """
- {table: silver.changes, expect: expect_column_values_to_match_regex,
  kwargs: {column: change_seq, regex: '^\\d{35}$'}, severity: warn, why: w}
- {table: silver.changes, expect: expect_column_values_to_not_be_null, kwargs: {column: nowhere}, severity: warn,
  why: w}
""",
    )
    counted, alone = both_ways(project, spark, monkeypatch, "silver")
    assert counted == alone and [(r.column, r.unexpected_count) for r in counted[0] if not r.success] == [
        ("change_seq", 1),
        ("nowhere", None),
    ]


def test_an_expectation_that_cannot_run_leaves_the_others_counted(project, spark, silver, statements, monkeypatch):
    """The statement of all tables fails, then that of its table; each of its expectations is asked alone."""
    silver(GOOD)
    write_suite(
        project,
        """
- {table: silver.batches, expect: expect_column_values_to_not_be_null, kwargs: {column: source}, severity: warn,
  why: w}
- {table: silver.changes, expect: expect_column_values_to_not_be_null, kwargs: {column: source}, severity: warn,
  why: w}
- {table: silver.changes, expect: unexpected_rows_expectation, severity: warn, why: w,
  kwargs: {unexpected_rows_query: "select nowhere from {batch} where source is null"}}
""",
    )
    validated, on_spark = [], validation.validate_on_spark
    monkeypatch.setattr(
        validation,
        "validate_on_spark",
        lambda rows, table, built: validated.append((table, len(built))) or on_spark(rows, table, built),
    )
    with pytest.raises(CheckFailed, match="1 check of silver failed(?s:.*)could not run.*nowhere"):
        checks.check(project, spark, "silver", [BATCH])
    assert validated == [("silver.changes", 1)] and len(statements) == 1 + 2 + 2


ROWS = "inlet_checked_1"


@pytest.mark.parametrize(
    "query, aggregate",
    [
        (
            f"select a, `b c`, r.d from {ROWS}\n where a > 1 or b is distinct from 'x' ",
            "count_if((a > 1 or b is distinct from 'x'\n) and (true or struct(a, `b c`, r.d) is null))",
        ),
        (
            f"select a, `b c`, count(*) as num_rows from {ROWS} group by a, `b c` having count(*) > 1",
            "count(*) - count(distinct struct(a, `b c`))",
        ),
        (f"select a, count(*) as n from {ROWS} group by a, b having count(*) > 1", None),
        (f"select a, count(*) as n from {ROWS} group by a having count(*) > 2", None),
        (f"select a from {ROWS} where a > 1 limit 3", None),
        (f"select a from {ROWS} where a > 1 union all select a from b", None),
        (f"select a from {ROWS} where a in (select a from b)", None),
        (f"select distinct a from {ROWS} where a > 1", None),
        (f"select explode(a) from {ROWS} where a is null", None),
        ("select a from silver.changes where a > 1", None),
        (f"select a from {ROWS}", None),
    ],
)
def test_a_query_of_single_rows_or_of_repeated_values_is_an_aggregate(query, aggregate):
    assert counting._aggregate(query) == aggregate


def test_of_binary_columns_a_key_is_compared_and_others_are_null_or_not(project):
    columns = [
        {"name": "ID", "type": "binary"},
        {"name": "PHOTO", "type": "binary"},
        {"name": "NOTE", "type": "binary"},
    ]
    contract = Table(table="T.SCANS", name="scans", key=["ID"], columns=columns)
    write_suite(
        project,
        """
- {table: "*__current", expect: expect_column_values_to_be_unique, kwargs: {column: ID}, severity: warn, why: w}
- {table: "*__current", expect: expect_column_values_to_not_be_null, kwargs: {column: PHOTO}, severity: warn, why: w}
""",
        "gold",
    )
    expected = suite.expand(suite.load(project, "gold"), [contract])
    (scans,) = rows_to_check.of_tables(project, None, expected, suite.build(expected), [BATCH])
    assert scans.slim_rows == (
        "select * except (`id`, `photo`), hex(`id`) as `id`, if(`photo` is not null, true, null) as `photo` "
        "from gold.scans__current"
    )


def test_results_of_a_clock_that_was_set_back_are_kept(project):
    ahead = 4_000_000_000 * 10**6
    lake.add_rows(
        project.lakehouse_path(), "checks.results", [{"run_id": ahead}], checks.RESULTS, "inlet-checks-gold", ahead
    )
    assert kept_results.next_run_id(project, "gold") == ahead + 1 > kept_results.next_run_id(project, "silver")


RESULTS = "run_id bigint, step string, table string, severity string, success bool, batch_ids bigints"


def test_what_no_passed_check_has_seen_is_owed(project, tmp_path):
    """Told from the state tables alone: batch 1 passed everywhere, batch 2 failed in silver, gold of batch 2 was never
    asked.
    """
    lakehouse = project.lakehouse_path()

    def write(table, columns, *rows, mode="append"):
        names = [c.split()[0] for c in columns.split(", ")]
        types = {
            "bigint": pa.int64(),
            "string": pa.string(),
            "bool": pa.bool_(),
            "bigints": pa.list_(pa.int64()),
            "strings": pa.list_(pa.string()),
            "timestamp": pa.timestamp("us", "UTC"),
        }
        schema = pa.schema([(name, types[c.split()[1]]) for name, c in zip(names, columns.split(", "))])
        write_deltalake(
            f"{lakehouse}/{table.replace('.', '/')}",
            pa.Table.from_pylist([dict(zip(names, row)) for row in rows], schema),
            mode=mode,
        )

    assert checks.unchecked(project, "silver") == {}
    write(
        "silver.batches",
        "source string, batch_id bigint, tables strings, finished_at timestamp",
        ("s", 1, ["T.PARCELS"], None),
        ("s", 2, ["T.PARCELS"], None),
        ("s", 3, [], None),
    )
    at = [datetime.fromtimestamp(seconds, UTC) for seconds in (1, 10, 30)]
    applied = "table_name string, source string, through_batch_id bigint, applied_at timestamp"
    write("gold.applied", applied, ("parcels", "s", 1, at[0]), ("parcels", "s", 2, at[1]))
    write(
        "checks.results",
        RESULTS,
        (1, "silver", "silver.changes", "error", True, [1]),
        (2, "silver", "silver.changes", "error", False, [2]),
        (2, "silver", "silver.batches", "error", True, [2]),
        (3, "silver", "silver.changes", "warn", False, [3]),
        (4 * 10**6, "gold", "gold.parcels__current", "error", True, [1]),
    )
    assert checks.unchecked(project, "silver") == {None: [2]}
    assert checks.unchecked(project, "gold") == {"parcels": [2]}
    for seconds, owed in ((5, {"parcels": [2]}), (20, {})):  # all rows of what gold held by then, as after a rebuild
        write("checks.results", RESULTS, (seconds * 10**6, "gold", "gold.parcels__current", "error", True, None))
        assert checks.unchecked(project, "gold") == owed
    write(
        "gold.applied", applied, ("parcels", "s", 2, at[2]), mode="overwrite"
    )  # a rebuild: what was asked of the rows before it counts no more
    for seconds, is_good, owed in ((30, None, [1, 2]), (31, False, [1, 2]), (32, True, None)):
        if is_good is not None:
            write("checks.results", RESULTS, (seconds * 10**6, "gold", "gold.parcels__current", "error", is_good, None))
        assert checks.unchecked(project, "gold") == ({"parcels": owed} if owed else {})
    write_suite(project, "[]", step="gold")
    assert checks.unchecked(project, "gold") == {}


def test_contracts_without_gold_tables_are_passed_over_unless_named(project, spark):
    assert checks.check(project, spark, "gold") == []
    with pytest.raises(CheckFailed, match="gold.parcels__current.*the table does not exist"):
        checks.check(project, spark, "gold", tables=["parcels"])
