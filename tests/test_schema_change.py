"""A captured table changes its columns, and gold follows: in place where that is possible, and else it says what to do.

What a change means under another version is one sentence: a column that its version did not have is NULL in it. So the
reference is asked about changes whose images are completed with NULL.
"""

import datetime as dt
import json
import random
from dataclasses import replace
from decimal import Decimal

import pytest
import yaml

from inlet import bronze, config, gold, lake, publish, silver
from inlet.commands.run import build_gold
from inlet.errors import ConfigError, InletError
from inlet.gold import build, evolve, generate
from inlet.table import Table
from tests import projects, reference
from tests.encode import linkexpress, qlik
from tests.silver import write_silver
from tests.streams import REST, TEXT, Change, deliver, seq, stream
from tests.test_generate import project

FIRST = {
    "table": "SHOP.EVOLVING",
    "name": "evolving",
    "key": ["ITEM"],
    "columns": [
        {"name": "ITEM", "type": "int"},
        {"name": "NAME", "type": "string"},
        {"name": "PRICE", "type": "decimal(9,2)"},
        {"name": "MADE", "type": "date"},
    ],
}
# COLOR is added in front, PRICE and the key are wider, MADE is gone, the order and the table's name are others
SECOND = {
    "table": "SHOP.WARES",
    "name": "evolving",
    "key": ["ITEM"],
    "version": 2,
    "columns": [
        {"name": "COLOR", "type": "string"},
        {"name": "ITEM", "type": "bigint"},
        {"name": "PRICE", "type": "decimal(11,2)"},
        {"name": "NAME", "type": "string"},
        {"name": "MADE", "type": "date", "dropped": True},
    ],
    "earlier": [{"version": 1, "until": seq(20), "table": "SHOP.EVOLVING", "columns": FIRST["columns"]}],
}
THIRD = (
    SECOND
    | {  # NAME is now LABEL, a number
        "version": 3,
        "columns": [
            {"name": "COLOR", "type": "string"},
            {"name": "ITEM", "type": "bigint"},
            {"name": "PRICE", "type": "decimal(11,2)"},
            {"name": "LABEL", "type": "bigint", "formerly": ["NAME"]},
            {"name": "MADE", "type": "date", "dropped": True},
        ],
        "earlier": [*SECOND["earlier"], {"version": 2, "until": seq(40), "columns": SECOND["columns"][:4]}],
    }
)


@pytest.mark.parametrize(
    "type_, than, expected",
    [
        ("bigint", "int", True),
        ("int", "bigint", False),
        ("smallint", "tinyint", True),
        ("double", "float", True),
        ("float", "double", False),
        ("double", "int", False),
        ("decimal(11,2)", "decimal(9,2)", True),
        ("decimal(11,4)", "decimal(9,2)", True),
        ("decimal(10,4)", "decimal(9,2)", False),
        ("decimal(9,2)", "decimal(11,2)", False),
        ("decimal(10,0)", "int", True),
        ("decimal(9,0)", "int", False),
        ("decimal(5,0)", "tinyint", False),
        ("smallint", "int", False),
        ("decimal(22,2)", "bigint", True),
        ("timestamp_ntz", "date", True),
        ("timestamp", "date", False),
        ("string", "int", False),
        ("string", "decimal(9,2)", False),
    ],
)
def test_a_type_is_wider_where_it_holds_every_value(type_, than, expected):
    assert evolve.is_wider(type_, than) is expected


def test_what_an_earlier_inlet_did_not_keep_of_a_version_is_added(monkeypatch):
    names = [
        "source",
        "item",
        "name",
        "price",
        "made",
        "valid_from_seq",
        "operation",
        "key_changed",
        "change_timestamp",
        "transaction_id",
        "unit_id",
        "unit_offset",
        "batch_id",
    ]
    columns = dict.fromkeys(names, "string") | {"item": "int", "price": "decimal(9,2)", "made": "date"}
    monkeypatch.setattr(evolve, "_existing", lambda project, table: [("past", columns, {evolve.KEY: "item"})])
    assert evolve.lags(None, Table(**FIRST)) and evolve.steps(None, Table(**FIRST)) == [
        "alter table gold.evolving__past add columns (transaction_event_counter bigint after transaction_id)",
        "alter table gold.evolving__past add columns (transaction_last_event boolean after transaction_event_counter)",
    ]


def test_columns_are_added_widened_and_put_in_order():
    there = {"item": "int", "name": "string", "price": "decimal(9,2)", "made": "date"}
    assert evolve.statements_for(Table(**SECOND), "gold.t", "before.", there) == [
        "alter table gold.t add columns (`before`.`color` string first)",
        "alter table gold.t alter column `before`.`item` type bigint",
        "alter table gold.t alter column `before`.`price` after `item`",
        "alter table gold.t alter column `before`.`price` type decimal(11,2)",
    ]


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"columns": SECOND["columns"][:4]}, "column made is not in its contract"),
        (
            {
                "columns": [
                    *SECOND["columns"][:3],
                    {"name": "LABEL", "type": "string", "formerly": ["NAME"]},
                    SECOND["columns"][4],
                ]
            },
            "column name is now label",
        ),
        (
            {"columns": [SECOND["columns"][0], {"name": "ITEM", "type": "string"}, *SECOND["columns"][2:]]},
            "column item was int, and is string",
        ),
    ],
)
def test_what_cannot_be_done_in_place_is_said(changed, message):
    there = {"item": "int", "name": "string", "price": "decimal(9,2)", "made": "date"}
    with pytest.raises(InletError, match=message) as error:
        evolve.statements_for(Table(**(SECOND | changed)), "gold.t", "", there)
    assert "inlet rebuild --table evolving" in error.value.remedy


def test_a_version_is_in_force_up_to_the_next_one():
    table = Table(**THIRD)
    assert [table.at(seq(place)).version for place in (1, 19, 20, 39, 40)] == [1, 1, 2, 2, 3]
    assert [c.name for c in table.at(seq(30)).columns] == ["COLOR", "ITEM", "PRICE", "NAME"]
    assert table.names == ["SHOP.WARES", "SHOP.EVOLVING"]
    assert table.at(seq(30)).at(seq(1)).version == 2  # a version is what it is


@pytest.mark.parametrize(
    "until",
    [
        "2026-03-01 12:00:00.25",
        dt.datetime(2026, 3, 1, 12, 0, 0, 250_000),
        "2026-03-01T13:00:00.250+01:00",
        "2026030112000025",
    ],
)
def test_until_is_a_utc_time_or_the_beginning_of_a_change_seq(until):
    table = Table(**(SECOND | {"earlier": [SECOND["earlier"][0] | {"until": until}]}))
    assert table.earlier[0].until == "2026030112000025"


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"until": "yesterday"}, "UTC time"),
        ({"version": 2}, "version 2 is not before version 2"),
        ({"columns": FIRST["columns"][1:]}, "no column ITEM of the key"),
        ({"columns": [FIRST["columns"][0] | {"dropped": True}]}, "told as they were"),
        ({"table": "EVOLVING"}, "SCHEMA.TABLE"),
    ],
)
def test_an_earlier_version_that_makes_no_sense_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        Table(**(SECOND | {"earlier": [SECOND["earlier"][0] | changed]}))


def test_which_column_was_renamed_is_not_guessed():
    columns = [*SECOND["columns"][:3], {"name": "NAME", "type": "string", "formerly": ["MADE"]}]
    with pytest.raises(ValueError, match="NAME and MADE are both there"):
        Table(**(SECOND | {"columns": columns}))


def test_a_name_that_is_used_again_and_one_in_other_case_are_told_apart():
    taken = [
        *SECOND["columns"][:3],
        {"name": "TITLE", "type": "string", "formerly": ["NAME"]},
        {"name": "NAME", "type": "string"},
    ]
    with pytest.raises(ValueError, match="NAME cannot have been both TITLE and NAME"):
        Table(**(SECOND | {"columns": taken}))
    table = Table(**(SECOND | {"columns": [{"name": "Name", "type": "string"}, *SECOND["columns"][:3]]}))
    assert table.columns_in(table.versions[0])["name"].name == "NAME"


def test_a_name_belongs_to_one_contract(tmp_path):
    again = FIRST | {"name": "again"}
    with pytest.raises(ConfigError, match="SHOP.EVOLVING, a name of .*, is also one of SHOP"):
        project(tmp_path, tables={"evolving": yaml.safe_dump(SECOND), "again": yaml.safe_dump(again)})


# -- in Spark
# ---------------------------------------------------------------------------------------------------------------


def change(place, op, version, before=None, after=None, **more) -> Change:
    return Change("shop", "", seq(place), op, before, after, version=version, **more)


BEFORE = [
    change(1, "INSERT", 1, after={"ITEM": 1, "NAME": "7", "PRICE": Decimal("1.10"), "MADE": dt.date(2026, 1, 1)}),
    change(2, "INSERT", 1, after={"ITEM": 2, "NAME": "8", "PRICE": None, "MADE": None}),
    change(5, "UPDATE", 1, {"ITEM": 1, "NAME": "7"}, {"ITEM": 1, "NAME": "9"}, mask=("NAME",)),
]
AFTER = [
    change(12, "UPDATE", 1, after={"ITEM": 2, "PRICE": Decimal("2.20")}),  # a late one of the first version
    change(21, "UPDATE", 2, {"ITEM": 1, "COLOR": None}, {"ITEM": 1, "COLOR": "red"}, mask=("COLOR",)),
    change(
        22, "INSERT", 2, after={"COLOR": "blue", "ITEM": 5_000_000_000, "PRICE": Decimal("123456789.01"), "NAME": "1"}
    ),
    change(23, "UPDATE", 2, {"ITEM": 2}, {"ITEM": 6_000_000_000, "NAME": None}),
    change(24, "DELETE", 2, {"ITEM": 1}),
]
RENAMED = [
    change(11, "UPDATE", 1, after={"ITEM": 2, "NAME": "6"}),
    change(41, "UPDATE", 3, after={"ITEM": 5_000_000_000, "LABEL": 3}),
]


COLUMNS = {
    1: ["ITEM", "NAME", "PRICE", "MADE"],
    2: ["COLOR", "ITEM", "PRICE", "NAME"],
    3: ["COLOR", "ITEM", "PRICE", "LABEL"],
}  # of each version
FORMERLY = {"LABEL": "NAME"}


def completed(names: list[str], changes: list[Change]) -> list[Change]:
    """Changes under the names that the columns have now, NULL for what their version did not have."""

    def image(version, then):
        if then is None:
            return None
        was = {n: next((old for old in (n, FORMERLY.get(n)) if old in COLUMNS[version]), None) for n in names}
        return {n: None if old is None else then[old] for n, old in was.items() if old is None or old in then}

    return [replace(c, before=image(c.version, c.before), after=image(c.version, c.after)) for c in changes]


def assert_history(spark, table: Table, changes: list[Change], convert=lambda name, value: value) -> None:
    names = [c.name for c in table.columns]
    versions, _ = reference.fold(completed(names, changes), table.key, names)
    expected = [
        (*(convert(n, v.values.get(n)) for n in names), v.valid_from_seq, v.valid_to_seq, v.is_complete, v.conflict)
        for v in versions
    ]
    found = spark.sql(
        f"select {', '.join(names)}, valid_from_seq, valid_to_seq, is_complete, conflict from "
        "gold.evolving__history order by item, valid_from_seq"
    )
    assert sorted(map(tuple, found.collect()), key=str) == sorted(expected, key=str)


def contract(here: config.Project, said: dict) -> config.Project:
    (here.root / "pipelines" / "tables" / "evolving.yml").write_text(yaml.safe_dump(said))
    here = config.load(here.root)
    generate.write(here)
    return here


def bring(spark, here, changes: list[Change]) -> None:
    (table,), batch_id = (
        here.tables.values(),
        1 + (spark.sql("select max(batch_id) from silver.batches").first()[0] or 0),
    )
    others = {
        "others": {
            "other_shop": [
                change(1, "INSERT", 1, after={"ITEM": "no number", "PRICE": "nor this", "MADE": "nor a date"})
            ]
        }
    }
    write_silver(
        spark,
        batch_id,
        {table.table_name.lower(): {"shop": changes}} | others,
        columns=lambda table, version: COLUMNS[version],
    )
    build_gold(here, spark, ["evolving"])


@pytest.mark.proof
def test_gold_follows_its_contract(spark, lakehouse, tmp_path):
    def replaced():
        return sum(
            "REPLACE TABLE" in operation
            for step in gold.STEPS
            for operation in lake.operations(lakehouse, f"gold.evolving__{step}", 100)
        )

    here = contract(project(tmp_path, lakehouse, {"evolving": yaml.safe_dump(FIRST)}), FIRST)
    bring(spark, here, BEFORE)
    assert_history(spark, Table(**FIRST), BEFORE)
    publish.run(here, spark)

    here = contract(here, SECOND)
    assert "evolving" in gold.pending(here)  # a contract that changed is work, without any change
    bring(spark, here, AFTER)
    assert_history(spark, Table(**SECOND), BEFORE + AFTER)
    assert gold.verify(here, spark, "evolving", 20)[1:] == (0, [])
    assert "evolving" not in gold.pending(here)
    assert replaced() == 3  # followed in place
    publish.run(here, spark)
    assert [tuple(r) for r in spark.sql("select item, color, made from public.evolving order by item").collect()] == [
        (5_000_000_000, "blue", None),
        (6_000_000_000, None, None),
    ]
    assert [
        tuple(r)
        for r in spark.sql("select item, color, is_complete from public.evolving__live order by item").collect()
    ] == [(5_000_000_000, "blue", True), (6_000_000_000, None, True)]
    assert [
        r.made
        for r in spark.sql("select made from public.evolving__history where item = 1 order by valid_from_seq").collect()
    ] == [dt.date(2026, 1, 1), dt.date(2026, 1, 1), None]  # what was dropped is still in history
    log = {r.change_seq: r for r in spark.sql("select * from gold.evolving__before_after").collect()}
    assert (log[seq(5)].changed, log[seq(21)].changed) == (
        ["name"],
        ["color"],
    )  # masks count the columns of their own version
    assert [log[seq(place)].not_supplied for place in (12, 22)] == [["name", "made"], []]
    assert (log[seq(5)].before.color, log[seq(22)].after.price) == (None, Decimal("123456789.01"))
    assert {tuple(r.values()) for r in lake.peek(lakehouse, "gold.evolving__current", ["item", "color"])} == {
        (5_000_000_000, "blue"),
        (6_000_000_000, None),
    }

    here = contract(here, THIRD)
    with pytest.raises(InletError, match="column name is now label"):
        bring(spark, here, RENAMED)
    assert_history(spark, Table(**SECOND), BEFORE + AFTER)  # and nothing is half done
    build_gold(here, spark, ["evolving"], full_refresh=True)
    assert replaced() == 6
    assert_history(
        spark,
        Table(**THIRD),
        BEFORE + AFTER + RENAMED,
        lambda name, value: int(value) if name == "LABEL" and value else value,
    )

    here = contract(here, THIRD | {"key": ["ITEM", "PRICE"]})
    with pytest.raises(InletError, match="its key was item, and is item,price"):
        build_gold(here, spark, ["evolving"])


def test_a_contract_that_the_models_do_not_follow_stops_gold(spark, lakehouse, tmp_path):
    here = project(tmp_path, lakehouse, {"evolving": yaml.safe_dump(FIRST)})
    with pytest.raises(ConfigError, match="not what the contracts say"):
        build_gold(here, spark, ["evolving"])


# -- a column that was dropped and is added again
# ---------------------------------------------------------------------------------------------------------------

DROPPED, AGAIN = 14, 28  # places; versions 1 and 3 have NAME, version 2 has none
NOTED = {
    "table": "SHOP.NOTED",
    "name": "noted",
    "key": [*TEXT.types],
    "columns": [
        {"name": n, "type": t} | ({"encoding": "hex"} if t == "binary" else {}) for n, t in (TEXT.types | REST).items()
    ],
}
WITHOUT_NAME = [c for c in NOTED["columns"] if c["name"] != "NAME"]
NOTED_AGAIN = NOTED | {
    "version": 3,
    "earlier": [
        {"version": 1, "until": seq(DROPPED), "columns": NOTED["columns"]},
        {"version": 2, "until": seq(AGAIN), "columns": WITHOUT_NAME},
    ],
}


def test_a_column_that_a_version_lacks_and_a_later_one_has_is_added_again():
    assert Table(**NOTED_AGAIN).added_again == {seq(AGAIN): ["name"]}
    assert Table(**THIRD).added_again == {}  # COLOR is new, MADE is gone, NAME has another name
    by_time = [NOTED_AGAIN["earlier"][0], NOTED_AGAIN["earlier"][1] | {"until": "2026-02-01"}]
    assert Table(**(NOTED_AGAIN | {"earlier": by_time})).added_again == {"20260201" + "0" * 27: ["name"]}
    without = [one | {"key": NOTED["key"]} for one in NOTED_AGAIN["earlier"]]
    of_key = NOTED_AGAIN | {"key": [*NOTED["key"], "NAME"], "earlier": without}
    assert Table(**of_key).added_again == {}  # without it a row would be another one


def dropped_and_added_again(number: int) -> list[Change]:
    """A random stream, its changes between the two places without NAME."""

    def read(c: Change) -> Change:
        version = 1 if c.seq < seq(DROPPED) else 2 if c.seq < seq(AGAIN) else 3
        if version != 2:
            return replace(c, version=version)
        before, after = (
            None if i is None else {n: v for n, v in i.items() if n != "NAME"} for i in (c.before, c.after)
        )
        states = {n: s for n, s in c.states.items() if n != "NAME"}
        mask = c.mask and tuple(n for n in c.mask if n != "NAME")
        return replace(c, version=version, before=before, after=after, states=states, mask=mask)

    return [read(c) for c in stream(random.Random(f"dropped {number}"), partial=0.6, loads=number % 3)]


def noted(changes: list[Change]) -> list[reference.Version]:
    def image(c: Change, values):
        return values | {"NAME": None} if values is not None and c.version == 2 else values

    told = [replace(c, before=image(c, c.before), after=image(c, c.after)) for c in changes]
    return reference.fold(told, NOTED["key"], TEXT.columns, {seq(AGAIN): ["NAME"]})[0]


@pytest.mark.proof
def test_a_value_from_before_a_drop_does_not_come_back(spark, lakehouse, tmp_path, monkeypatch):
    here = project(tmp_path, lakehouse, {"noted": yaml.safe_dump(NOTED_AGAIN)})
    generate.write(here)
    streams = {}
    for number in range(60):
        rng = random.Random(f"delivered {number}")
        late = (0.0, 0.3)[number % 2]
        streams[f"again_{number:02d}"] = deliver(rng, dropped_and_added_again(number), 4, late, repeated=0.0)
    columns = {1: TEXT.columns, 2: [c["name"] for c in WITHOUT_NAME], 3: TEXT.columns}
    first, lives = 1 + (spark.sql("select max(batch_id) from silver.batches").first()[0] or 0), []
    for place in range(4):
        batch = {source: batches[place] for source, batches in streams.items() if batches[place]}
        write_silver(spark, first + place, {"noted": batch}, columns=lambda table, version: columns[version])
        if place == 2:
            live = spark.sql("select source, name, valid_from_seq, is_held from public.noted__live")
            lives = [tuple(row) for row in live.collect()]
        monkeypatch.setattr(build, "SMALL_CHANGES", -1 if place == 1 else 10_000)
        build_gold(here, spark, ["noted"])

    def expected(count: int) -> set[tuple]:
        """In: the number of batches that gold holds."""
        return {
            (
                source,
                *v.key,
                v.values.get("NAME"),
                v.valid_from_seq,
                v.valid_to_seq,
                tuple(n.lower() for n in v.unknown(TEXT.columns)),
                v.conflict,
                v.key_changed,
                v.values.get("PRICE"),
                v.values.get("MADE"),
            )
            for source, batches in streams.items()
            for v in noted([c for batch in batches[:count] for c in batch])
        }

    def found() -> set[tuple]:
        query = (
            "select source, region, item, name, valid_from_seq, valid_to_seq, not_supplied, conflict, key_changed, "
            "price, made from gold.noted__history"
        )
        return {(*row[:6], tuple(row.not_supplied), *row[7:]) for row in spark.sql(query).collect()}

    assert found() == expected(4)
    assert gold.verify(here, spark, "noted", 20)[2] == []
    build_gold(here, spark, ["noted"], full_refresh=True)
    assert found() == expected(4)
    opened = spark.sql("select count(*) from gold.noted__history where operation = 'COLUMN_ADDED' and name is null")
    assert opened.first()[0] > 20
    shown = {(s, name, from_seq) for s, name, from_seq, is_held in lives if not is_held}
    assert shown and shown <= {(row[0], row[3], row[4]) for row in expected(3) if row[5] is None}


@pytest.mark.proof
def test_gold_that_passed_the_place_of_a_column_added_again_asks_for_a_rebuild(spark, lakehouse, tmp_path):
    def change_of(place: int, version: int, **values) -> Change:
        item = {"REGION": "north", "ITEM": place} | values
        return Change("late_shop", "", seq(place), "INSERT", after=item, version=version)

    said = NOTED | {"table": "SHOP.PASSED", "name": "passed"}
    here = project(tmp_path, lakehouse, {"passed": yaml.safe_dump(said)})
    generate.write(here)
    batch_id = 1 + (spark.sql("select max(batch_id) from silver.batches").first()[0] or 0)
    rest = {"PRICE": None, "MADE": None, "PHOTO": None}
    write_silver(spark, batch_id, {"passed": {"late_shop": [change_of(1, 1, NAME="a", **rest)]}})
    build_gold(here, spark, ["passed"])
    (here.root / "pipelines" / "tables" / "passed.yml").write_text(
        yaml.safe_dump(NOTED_AGAIN | {"table": "SHOP.PASSED", "name": "passed"})
    )
    here = config.load(here.root)
    generate.write(here)
    spark.sql(f"update gold.applied set through_change_seq = '{seq(40)}' where table_name = 'passed'")
    assert "passed" in gold.pending(here)
    with pytest.raises(InletError, match="name was dropped and is added again") as error:
        build_gold(here, spark, ["passed"])
    assert "inlet rebuild --table passed" in str(error.value.remedy) + str(error.value)
    write_silver(spark, batch_id + 1, {"passed": {"late_shop": [change_of(41, 3, NAME="b", **rest)]}})
    build_gold(here, spark, ["passed"], full_refresh=True)
    found = spark.sql("select item, name, operation from gold.passed__current order by item").collect()
    assert [tuple(row) for row in found] == [(1, None, "COLUMN_ADDED"), (41, "b", "INSERT")]
    assert "passed" not in gold.pending(here)
    (here.root / "pipelines" / "tables" / "passed.yml").write_text(yaml.safe_dump(said))  # it never was dropped
    here = config.load(here.root)
    generate.write(here)
    assert "passed" in gold.pending(here)
    with pytest.raises(InletError, match=f"added again at {seq(AGAIN)}, and its contract says so no more"):
        build_gold(here, spark, ["passed"])


# -- from bytes
# ---------------------------------------------------------------------------------------------------------------

DEPOT_FIRST = projects.ITEMS | {"table": "DEPOT.STOCKED", "name": "stocked"}
DEPOT_SECOND = DEPOT_FIRST | {
    "table": "DEPOT.KEPT",
    "version": 2,
    "columns": [
        {"name": "PLACE", "type": "string", "source_type": "VARCHAR(4)"},
        *projects.ITEMS["columns"][:2],
        {"name": "PRICE", "type": "decimal(9,2)", "source_type": "DECIMAL(9,2)"},
    ],
    "earlier": [{"version": 1, "until": "2026-02-01", "table": "DEPOT.STOCKED", "columns": projects.ITEMS["columns"]}],
}
SOURCES = {
    "versions_depot": projects.DEPOT | {"from": "landing/versions_depot/*.lxg", "tables": {"1": "DEPOT.STOCKED"}},
    "versions_shop": {
        "codec": "qlik_json",
        "from": "landing/versions_shop/*.parquet",
        "tables": {"stocked": "DEPOT.STOCKED"},
    },
}
NARROW, WIDE = Decimal("1.10"), Decimal("1234567.89")


def extract(month: int, n: int, layout: list, item: dict) -> tuple[str, bytes]:
    records = [("insert", 1, item), ("commit",)]
    return f"2026{month:02d}05031500_{n:06d}.lxg", linkexpress.encode_file(records, True, "big", "cp932", {1: layout})


def message(month: int, n: int, columns: list[str], item: dict) -> bytes:
    return qlik.value(
        {"operation": "INSERT", "after": item, "change_seq": f"2026{month:02d}0203040506{n:019d}"}, columns
    )


def test_bytes_are_read_by_the_version_of_their_time(spark, lakehouse, tmp_path):
    def arrive(number, files, messages):
        here = config.load(tmp_path)
        for name, data in files:
            (tmp_path / "landing" / "versions_depot" / name).write_bytes(data)
        qlik.write_parquet(
            qlik.rows(messages, "stocked", offset=10 * number),
            tmp_path / "landing" / "versions_shop" / f"{number}.parquet",
        )
        new = bronze.plan_batch(here, list(here.sources.values()), bronze.History(here))
        bronze.land(here, spark, new)
        silver.run(here, spark, new.batch_id)

    def layout(of):
        return [(c["name"], c["source_type"]) for c in of["columns"]]

    def item(n, price, **more):
        return {"ITEM_ID": n, "NAME": f"item {n}", "PRICE": price} | more

    for name in SOURCES:
        (tmp_path / "landing" / name).mkdir(parents=True)
    old, new = ([c["name"] for c in of["columns"]] for of in (DEPOT_FIRST, DEPOT_SECOND))
    projects.make(tmp_path, SOURCES, [DEPOT_FIRST], lakehouse)
    arrive(1, [extract(1, 1, layout(DEPOT_FIRST), item(1, NARROW))], [message(1, 1, old, item(1, NARROW))])

    projects.make(tmp_path, SOURCES, [DEPOT_FIRST | {"columns": DEPOT_SECOND["columns"]}], lakehouse)
    with pytest.raises(
        ConfigError,
        match=r"DEPOT.STOCKED: changes were read by version 1 with other columns .* PLACE string is new, PRICE "
        r"decimal\(9,2\) is new",
    ):
        arrive(2, [], [message(2, 2, new, item(2, WIDE, PLACE="A1"))])

    renamed = SOURCES["versions_depot"] | {"tables": {"1": "DEPOT.KEPT"}}
    projects.make(tmp_path, SOURCES | {"versions_depot": renamed}, [DEPOT_SECOND], lakehouse)
    silver.run(config.load(tmp_path), spark, max(silver.pending(config.load(tmp_path))))
    arrive(
        3,
        [
            extract(2, 2, layout(DEPOT_SECOND), item(2, WIDE, PLACE="A1")),
            extract(1, 3, layout(DEPOT_FIRST), item(3, NARROW)),
        ],  # one comes late
        [message(2, 3, new, item(3, WIDE, PLACE="B1")), message(1, 4, old, item(4, NARROW))],
    )
    rows = spark.sql(
        "select source, source_table, table_version, to_json(after) as after from silver.changes where source like "
        "'versions_%' order by source, change_seq"
    )
    assert [(r.source, r.source_table, r.table_version, json.loads(r.after)) for r in rows.collect()] == [
        ("versions_depot", "STOCKED", 1, item(1, 1.10)),
        ("versions_depot", "KEPT", 1, item(3, 1.10)),
        ("versions_depot", "KEPT", 2, item(2, 1234567.89, PLACE="A1")),
        ("versions_shop", "STOCKED", 1, item(1, "1.10")),
        ("versions_shop", "KEPT", 1, item(4, "1.10")),  # Qlik sends numbers with a scale as text
        ("versions_shop", "KEPT", 2, item(2, "1234567.89", PLACE="A1")),
        ("versions_shop", "KEPT", 2, item(3, "1234567.89", PLACE="B1")),
    ]
    assert spark.sql("select count(*) from silver.rejects where source like 'versions_%'").first()[0] == 0
    kept = spark.sql(
        "select source_table, table_version, columns from silver.table_versions where source = "
        "'versions_shop' order by table_version, source_table desc"
    )
    assert [(r.source_table, r.table_version, [c["name"] for c in json.loads(r.columns)]) for r in kept.collect()] == [
        ("STOCKED", 1, old),
        ("KEPT", 1, old),
        ("KEPT", 2, new),
    ]
