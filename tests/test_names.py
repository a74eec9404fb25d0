"""Every name that a database allows comes through, from bytes to the public views; ours give way to it. And a table
without a key.
"""

import shutil
from pathlib import Path

import pytest
from jinja2 import Environment

from inlet import bronze, checks, config, gold, lake, publish, silver, sql
from inlet.checks import suite
from inlet.checks.results import _rows_sql as rows_sql
from inlet.commands import reconcile
from inlet.commands.run import build_gold
from inlet.errors import ConfigError
from inlet.gold import evolve, generate
from inlet.publish import pins
from inlet.table import OURS, Table
from tests import projects, reference
from tests.encode import qlik
from tests.streams import Change

REPO = Path(__file__).resolve().parents[1]
TEXTS = [
    "plain",
    "it's",
    'a "b"',
    "back\\slash",
    "\\",
    "\\'",
    "`tick`",
    "${spark.app.name}",
    "\\${env:HOME}",
    "{{ x }}",
    "line\nfeed",
    "受注",
    "a.b,c;d",
]
ODD = [
    "A#1$",
    "with blank",
    'it\'s "quoted"',
    "dot.ted",
    "back`tick",
    "back\\slash",
    "{{ brace }}",
    "${spark.app.name}",
    "2024",
    "line\nfeed",
    "a;b=(c),{d}",
    "単価（円）",
    "_source",
    "__OPERATION",
    "_key_0",
    "BEFORE",
    "AFTER",
    "CHANGE_SEQ",
    "LOAD_ID",
    "_METADATA",
    "nul?l",
]
KEY = ["SOURCE", "受注,番号", "B`IN.ARY"]
COLUMNS = [*KEY, *(name.upper() for name in OURS if name != "source"), *ODD]
TABLE = {
    "table": "SHOP.$Odd Names'",
    "name": "odd_names",
    "key": KEY,
    "columns": [
        {
            "name": n,
            "type": {"受注,番号": "int", "B`IN.ARY": "binary"}.get(n, "string"),
            **({"encoding": "hex"} if n == "B`IN.ARY" else {}),
        }
        for n in COLUMNS
    ],
}
EVENTS = {
    "table": "SHOP.EVENTS",
    "name": "events",
    "columns": [{"name": "SOURCE", "type": "string"}, {"name": "What happened", "type": "string"}],
}


# -- text and names in SQL
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_macros_quote_as_the_package_does(text):
    macros = Environment().from_string((REPO / "dbt" / "macros" / "quoted.sql").read_text()).module
    assert (str(macros.text_literal(text)), str(macros.identifier(text))) == (sql.literal(text), sql.name(text))


def test_a_check_names_its_rows_in_sql_that_any_value_fits():
    assert (
        rows_sql({"column": "back`tick"}, ["it's", "a\\b"], "t")
        == r"select * from t where `back``tick` in ('it\'s', 'a\\b')"
    )


def test_great_expectations_is_shown_names_that_it_can_ask_for():
    entry = suite.Entry(
        table="*__current",
        expect="expect_column_values_to_not_be_null",
        kwargs={"column": "{key_column}"},
        severity="error",
        why="w",
    )
    expected = suite.expand([("here", entry)], [Table(**TABLE)])
    assert [e.kwargs["column"] for e in expected] == KEY
    assert [b.column for b in suite.build(expected)] == ["SOURCE", "受注,番号", "B´IN·ARY"]


def test_a_suite_names_columns_of_ours_as_the_table_calls_them():
    query = "select {source}, {key} from {batch} where {valid_to_seq} <= {valid_from_seq}"
    entry = suite.Entry(
        table="*__history",
        expect="unexpected_rows_expectation",
        kwargs={"unexpected_rows_query": query},
        severity="warn",
        why="w",
    )
    table = Table(
        table="S.T",
        name="t",
        key=["{ID}"],
        columns=[{"name": "{ID}", "type": "int"}, {"name": "SOURCE", "type": "int"}],
    )
    assert [e.kwargs for e in suite.expand([("here", entry)], [table])] == [
        {"unexpected_rows_query": "select _source, `{{ID}}` from {batch} where valid_to_seq <= valid_from_seq"}
    ]


# -- ours give way
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns, expected",
    [
        (["ORDER_ID"], {}),
        (["Source"], {"source": "_source"}),
        (["SOURCE", "_SOURCE"], {"source": "__source"}),
        (["_SOURCE", "BEFORE", "CHANGE_SEQ"], {}),
    ],
)
def test_a_column_of_ours_gets_an_underscore_where_the_table_has_its_name(columns, expected):
    table = Table(table="S.T", name="t", columns=[{"name": n, "type": "int"} for n in columns])
    assert table.ours == expected


def test_only_names_that_parquet_does_not_take_ask_for_column_mapping():
    def mapping(name):
        return Table(table="S.T", name="t", columns=[{"name": name, "type": "int"}]).column_mapping

    assert [mapping(n) for n in ("ITEM", "受注番号", "A#1$")] == [None] * 3 and {
        mapping(n) for n in ("a b", "a.b", "a,b", "a\nb", "a`b")
    } == {"name"}


def test_names_that_differ_only_in_case_are_refused_with_the_remedy():
    with pytest.raises(
        ValueError,
        match="Id and ID differ only in case, which Spark does not tell apart: give one another name where the "
        "feed is made",
    ):
        Table(table="S.T", name="t", columns=[{"name": n, "type": "int"} for n in ("Id", "ID")])


def test_a_column_that_takes_a_name_of_ours_later_asks_for_a_rebuild(monkeypatch):
    table = Table(
        **(TABLE | {"columns": [{"name": "ID", "type": "int"}, {"name": "OPERATION", "type": "string"}], "key": ["ID"]})
    )
    there = {"source": "string", "id": "int", "valid_from_seq": "string", "operation": "string"}
    monkeypatch.setattr(evolve, "_existing", lambda project, table: [("past", there, {evolve.KEY: "id"})])
    assert evolve.lags(None, table)
    with pytest.raises(ConfigError, match="a column operation of the table has come or gone") as error:
        evolve.steps(None, table)
    assert error.value.remedy == "Run `inlet rebuild --table odd_names`: Inlet's column is then _operation"


def test_a_column_that_delta_has_itself_asks_for_a_rebuild_without_deletion_vectors(monkeypatch):
    columns = [{"name": "ID", "type": "int"}, {"name": "_METADATA", "type": "string"}]
    table = Table(table="S.T", name="t", key=["ID"], columns=columns)
    properties = {evolve.KEY: "id", lake.VECTORS: "true"}
    monkeypatch.setattr(evolve, "_existing", lambda project, table: [("past", {"id": "int"}, properties)])
    assert evolve.lags(None, table)
    with pytest.raises(ConfigError, match="a column _metadata has come") as error:
        evolve.steps(None, table)
    assert "inlet rebuild --table t" in error.value.remedy


def test_a_column_whose_name_parquet_does_not_take_is_added_in_place(monkeypatch):
    table = Table(
        table="S.T",
        name="t",
        key=["ID"],
        columns=[{"name": "ID", "type": "int"}, {"name": "net.`amount`", "type": "int"}],
    )
    monkeypatch.setattr(
        evolve,
        "_existing",
        lambda project, table: [
            ("before_after", {"source": "string", "before.id": "int", "after.id": "int"}, {evolve.KEY: "id"})
        ],
    )
    assert evolve.lags(None, table) and evolve.steps(None, table) == [
        "alter table gold.t__before_after set tblproperties (delta.columnMapping.mode = 'name')",
        "alter table gold.t__before_after add columns (`before`.`net.``amount``` int after `id`)",
        "alter table gold.t__before_after add columns (`after`.`net.``amount``` int after `id`)",
    ]


# -- a table without a key
# --------------------------------------------------------------------------------------------------


def test_a_table_without_a_key_has_a_log_alone_and_says_so():
    made = generate.models(Table(**EVENTS))
    assert (
        list(made) == ["events__before_after"]
        and "SHOP.EVENTS has no key, so it has a log, events__before_after, and no current rows or history."
        in made["events__before_after"][1]
    )


def test_nothing_is_asked_of_tables_that_a_table_without_a_key_does_not_have():
    entries = suite.load(config.load(REPO), "gold")
    assert [e.table for e in suite.expand(entries, [Table(**EVENTS)])] == []


# -- from bytes to the public views
# -------------------------------------------------------------------------------------------


def row(source, number, binary, mark, **more) -> dict:
    return (
        {"SOURCE": source, "受注,番号": number, "B`IN.ARY": binary}
        | {n: f"{mark} {place}" for place, n in enumerate(COLUMNS[3:])}
        | more
    )


def seq(place: int) -> str:
    return f"2026010203{place:02d}0000{place:019d}"


def change(place: int, op: str, before=None, after=None, transaction: str = "T") -> Change:
    return Change(
        "odd",
        TABLE["table"],
        seq(place),
        op,
        before,
        after,
        transaction_id=f"{transaction}{place}",
        counter=1,
        last=True,
    )


ONE, TWO, THREE = row("a\\b", 1, "ab", "one"), row("it's", 2, "cd", "two"), row("c", 3, "ef", "three")
FIRST = [
    change(1, "INSERT", after=ONE),
    change(2, "INSERT", after=TWO),
    change(5, "UPDATE", TWO, TWO | {"OPERATION": None, "back`tick": "new"}),
]
SECOND = [
    change(6, "UPDATE", ONE, ONE | {"B`IN.ARY": "AB", "dot.ted": "new"}),  # the same key, in other hex digits
    change(7, "INSERT", after=THREE),
    change(8, "UPDATE", THREE, THREE | {"受注,番号": 33, "VALID_FROM": "moved"}),  # a key change
    change(9, "DELETE", TWO),
]
LATE = [change(3, "UPDATE", after={n: TWO[n] for n in KEY} | {"CONFLICT": "late", "2024": None})]


def as_bytes(changes: list[Change]) -> list[Change]:
    """The same with hexadecimal digits as the bytes that they say."""

    def image(one):
        return one and {n: bytes.fromhex(v) if n == "B`IN.ARY" else v for n, v in one.items()}

    return [Change(**(vars(c) | {"before": image(c.before), "after": image(c.after)})) for c in changes]


def plain(rows) -> list[tuple]:
    return [tuple(bytes(v) if isinstance(v, bytearray) else v for v in r) for r in rows]


@pytest.fixture(scope="module")
def here(spark, lakehouse, tmp_path_factory):
    root = tmp_path_factory.mktemp("names")
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    shutil.copytree(REPO / "expectations", root / "expectations")
    (root / "landing").mkdir()
    sources = {
        "odd": {
            "codec": "qlik_json",
            "from": "landing/*.parquet",
            "tables": {"odd": TABLE["table"], "events": EVENTS["table"]},
        }
    }
    made = projects.make(root, sources, [TABLE, EVENTS], lakehouse)
    generate.write(made)
    return made


def land(spark, here, number: int, messages: list[tuple[str, bytes]]) -> int:
    rows = [r for topic, value in messages for r in qlik.rows([value], topic)]
    qlik.write_parquet(
        [r | {"offset": 100 * number + n} for n, r in enumerate(rows)], here.root / "landing" / f"{number}.parquet"
    )
    new = bronze.plan_batch(here, list(here.sources.values()), bronze.History(here))
    bronze.land(here, spark, new)
    silver.run(here, spark, new.batch_id)
    return new.batch_id


def message(c: Change) -> tuple[str, bytes]:
    said = {
        "operation": c.op,
        "change_seq": c.seq,
        "before": c.before,
        "after": c.after,
        "transaction_id": c.transaction_id,
        "transaction_event_counter": 1,
        "transaction_last_event": True,
    }
    return "odd", qlik.value(said, COLUMNS, masks=c in LATE)


def event(place: int, op: str, what: str) -> tuple[str, bytes]:
    image = {"SOURCE": "till 1", "What happened": what}
    return "events", qlik.value(
        {"operation": op, "change_seq": seq(place), **{"before" if op == "DELETE" else "after": image}}, [*image]
    )


def test_every_name_comes_through_and_a_table_without_a_key_keeps_its_log(spark, here):
    our, quoted = Table(**TABLE).our, [sql.name(n) for n in COLUMNS]
    land(spark, here, 1, [*map(message, FIRST), event(10, "INSERT", "opened"), event(11, "INSERT", "opened")])
    build_gold(here, spark)
    batch_id = land(spark, here, 2, list(map(message, SECOND[:2])))
    live = [
        tuple(v.values.values())
        for v in reference.current(reference.fold(as_bytes(FIRST + SECOND[:2]), KEY, COLUMNS)[0])
    ]
    assert sorted(
        plain(spark.sql(f"select {', '.join(quoted)} from public.odd_names__live").collect()), key=str
    ) == sorted(live, key=str)
    land(spark, here, 3, [*map(message, SECOND[2:] + LATE), event(12, "DELETE", "opened")])
    assert spark.sql("select kind, expected, found from silver.rejects where source = 'odd'").collect() == []
    build_gold(here, spark)

    versions, _ = reference.fold(as_bytes(FIRST + SECOND + LATE), KEY, COLUMNS)
    history = [
        (
            v.values["SOURCE"],
            v.valid_from_seq,
            v.valid_to_seq,
            v.is_complete,
            v.conflict,
            *(v.values.get(n) for n in COLUMNS),
        )
        for v in versions
    ]
    asked = ", ".join([*(our(n) for n in ("valid_from_seq", "valid_to_seq", "is_complete", "conflict")), *quoted])
    found = plain(spark.sql(f"select `source`, {asked} from gold.odd_names__history").collect())
    assert sorted(found, key=str) == sorted(history, key=str)
    assert {r[0] for r in spark.sql(f"select {our('source')} from gold.odd_names__history").collect()} == {"odd"}

    log = {r.change_seq: r for r in spark.sql("select * from gold.odd_names__before_after").collect()}
    assert log[seq(6)].changed == ["dot.ted"] and not log[seq(6)].key_changed and log[seq(8)].key_changed
    assert plain([log[seq(8)].before, log[seq(8)].after]) == [
        tuple(as_bytes(SECOND)[2].before.values()),
        tuple(as_bytes(SECOND)[2].after.values()),
    ]
    assert log[seq(3)].not_supplied == [n.lower() for n in COLUMNS if n not in LATE[0].after]

    publish.run(here, spark)
    live = sorted([r[5:] for r in history if r[2] is None], key=str)
    spark.sql("use public")
    pins.pin(here, spark, "odd_pin", pins.find(here, "odd_pin"))
    for view in (
        "odd_names",
        "odd_names__live",
        f"odd_names_as_of('{seq(99)}')",
        "odd_names_at(timestamp'2026-01-03')",
        "odd_pin.odd_names",
    ):
        assert sorted(plain(spark.sql(f"select {', '.join(quoted)} from {view}").collect()), key=str) == live, view
    for view in ("public.odd_names__history", "odd_pin.odd_names__history", "odd_names__committed"):
        assert sorted(plain(spark.sql(f"select `source`, {asked} from {view}").collect()), key=str) == sorted(
            history, key=str
        ), view
    names = [our("source"), *(n.lower() for n in COLUMNS), *(our(n) for n in OURS[1:17])]
    assert (
        spark.table("public.odd_names__history").columns == spark.table("odd_pin.odd_names__history").columns == names
    )
    assert spark.table("odd_names__live").columns == [
        n for n in names if n not in {our(o) for o in OURS[2:5] + OURS[7:17]}
    ] + [our("is_pending"), our("is_held")]

    assert [
        (r.change_seq, r.operation, r.before and tuple(r.before), r.after and tuple(r.after))
        for r in spark.sql("select * from public.events__before_after order by change_seq").collect()
    ] == [
        (seq(10), "INSERT", None, ("till 1", "opened")),
        (seq(11), "INSERT", None, ("till 1", "opened")),
        (seq(12), "DELETE", ("till 1", "opened"), None),
    ]
    assert [r.tableName for r in spark.sql("show tables in public like 'events*'").collect()] == [
        "events__before_after"
    ]
    assert [r.tableName for r in spark.sql("show tables in gold like 'events*'").collect()] == ["events__before_after"]
    assert (
        gold.pending(here) == []
        and gold.verify(here, spark, "events", 9) == (3, 0, [])
        and gold.verify(here, spark, "odd_names", 9) == (len(history), 0, [])
    )

    results = checks.check(here, spark, "gold", [batch_id], ["odd_names", "events"])
    assert len(results) == 7 and [r for r in results if not r.success and r.severity == "error"] == []
    assert set(checks.unchecked(here, "gold")) <= {"odd_names"}

    table = Table(**TABLE)
    rows = spark.table("public.odd_names")
    same = reconcile._hashed(table, rows.where(f"{our('source')} = 'odd'"))
    assert reconcile._first_look(table, same, reconcile._gold(here, spark, table, "odd")) == (len(live), len(live), {})
