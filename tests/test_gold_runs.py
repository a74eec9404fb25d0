"""What a run of gold reads and leaves: crashes between its steps, tampering, the ledger, views, tables without
changes.
"""

import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import deltalake
import pytest

from inlet import gold, lake
from inlet.checks import results
from inlet.commands.run import build_gold
from inlet.errors import InletError
from inlet.gold import build, dbt, generate, small_batches
from inlet.lake import entries
from tests import reference
from tests.silver import by_source, write_silver
from tests.streams import COLUMNS, KEY, Change, deliver, seq, stream
from tests.test_generate import ITEMS, project
from tests.test_gold_sql import statements


@pytest.fixture(scope="module")
def here(tmp_path_factory, spark, lakehouse):
    names = "kept", "crashed", "crashed_small", "crashed_large", "verified", "unused", "ranged", "broken", "left"
    names = (*names, "small", "large", "vectors", *BEGUN)
    made = project(
        tmp_path_factory.mktemp("gold_runs"),
        lakehouse,
        {
            name: ITEMS.replace("SHOP.ITEMS", f"SHOP.{name.upper()}").replace("name: items", f"name: {name}")
            for name in names
        },
    )
    generate.write(made)
    return made


def next_batch(spark) -> int:
    return 1 + (spark.sql("select max(batch_id) from silver.batches").first()[0] or 0)


def change(table: str, place: int, op: str, key: tuple, name=None) -> Change:
    image = dict(zip(KEY, key)) | ({} if op == "DELETE" else {"NAME": name, "PRICE": None, "MADE": None, "PHOTO": None})
    return Change("far", f"SHOP.{table.upper()}", seq(place), op, **{"before" if op == "DELETE" else "after": image})


def moved(table: str, place: int, old: tuple, new: tuple, transaction_id=None) -> Change:
    return Change(
        "far",
        f"SHOP.{table.upper()}",
        seq(place),
        "UPDATE",
        before=dict(zip(KEY, old)),
        after=dict(zip(KEY, new)),
        transaction_id=transaction_id,
    )


def bring(spark, here, table: str, streams: dict[str, list[list[Change]]]) -> None:
    """In: source -> batches."""
    first = next_batch(spark)
    for place in range(max(map(len, streams.values()))):
        write_silver(
            spark,
            first + place,
            {
                table: {
                    source: batches[place]
                    for source, batches in streams.items()
                    if place < len(batches) and batches[place]
                }
            },
        )
        build_gold(here, spark, [table])


def history(spark, table: str) -> dict[str, list[tuple]]:
    """source -> its versions."""
    return by_source(
        spark.sql(
            f"select source, {', '.join(COLUMNS)}, valid_from_seq, valid_to_seq, is_complete, conflict, key_changed "
            f"from gold.{table}__history order by source, {', '.join(KEY)}, valid_from_seq"
        )
    )


def assert_history(spark, table: str, streams: dict[str, list[list[Change]]]) -> None:
    assert history(spark, table) == folded(streams), table


def folded(streams: dict[str, list[list[Change]]]) -> dict[str, list[tuple]]:
    """The history that the reference makes of streams."""
    return {
        source: [
            (
                *(v.values.get(n) for n in COLUMNS),
                v.valid_from_seq,
                v.valid_to_seq,
                v.is_complete,
                v.conflict,
                v.key_changed,
            )
            for v in reference.fold([c for batch in batches for c in batch], KEY, COLUMNS)[0]
        ]
        for source, batches in streams.items()
    }


# -- crashes
# ----------------------------------------------------------------------------------------------------------------

STEPS = {  # the tables that a run writes, the last one first, and the commits that it makes there
    "applied": ["WRITE"],
    "current": ["WRITE", "DELETE"],
    "past": ["WRITE", "MERGE"],
    "folded": ["WRITE"],
}


@pytest.mark.proof
@pytest.mark.parametrize("name", ["crashed", "crashed_small", "crashed_large"])
def test_a_crash_between_any_two_steps_heals_on_the_next_run(spark, here, name, monkeypatch):
    """A crash is the state in which the tables of the steps after it are as they were before the run. The next run
    heals it, folds the next batch, and dies in its turn."""
    if name == "crashed":
        monkeypatch.setattr(build, "SMALL_CHANGES", -1)
    if name == "crashed_large":
        monkeypatch.setattr(small_batches, "WHOLE_ROWS", -1)
    tables = {"gold.applied" if step == "applied" else f"gold.{name}__{step}": done for step, done in STEPS.items()}
    crashes = [
        (1, False),
        (2, False),
        (3, False),
        (1, True),
        (4, False),
    ]  # how many steps are undone; is half of the next one, too
    streams, lakehouse = {}, here.lakehouse_path()
    for number in range(30):
        rng = random.Random(f"crashed {number}")
        batches = deliver(rng, stream(rng, wipes=0.0, loads=0, length=40), 2 + len(crashes), late=0.0, repeated=0.0)
        batches[2], batches[3] = (
            batches[3],
            batches[2],
        )  # late changes follow the second crash, and come in the batch of the third
        streams[f"url_{number:02d}"] = batches  # Spark hides settings that hold such a word
    first = next_batch(spark)
    for place in range(2 + len(crashes)):
        write_silver(spark, first + place, {name: {s: batches[place] for s, batches in streams.items()}})
        build_gold(here, spark, [name])
        num_undone, is_half = crashes[place - 1] if 0 < place <= len(crashes) else (0, False)
        for table in list(tables)[:num_undone]:
            is_in_two = table == f"gold.{name}__current" and "DELETE" in lake.operations(lakehouse, table, 2)
            undo(spark, table, 2 if is_in_two else 1, tables[table])
        if is_half and "DELETE" in lake.operations(lakehouse, f"gold.{name}__current", 2):
            undo(spark, f"gold.{name}__current", 1, STEPS["current"])  # rows were taken, and not put back
            assert lake.operations(lakehouse, f"gold.{name}__current", 3)[-1] == "DELETE"
        if num_undone == 3:  # past was not written: a run of the last model alone must not lose it
            dbt.run(here, ["run", "--select", f"{name}__current"])
    assert_history(spark, name, streams)
    spark.sql(f"drop table gold.{name}__before_after")  # where a --full-refresh begins, and died
    told = []

    def tell(doing, done, of, finished=None):
        told.append((doing, done, of, finished and finished["table"]))

    build_gold(here, spark, [name], tell=tell)
    assert told == [*((f"{name}__{step}", 0, 1, None) for step in gold.STEPS), (f"{name}__current", 1, 1, name)]
    assert_history(spark, name, streams)


def undo(spark, table: str, num_commits: int, operations: list[str]) -> None:
    """Take back the last commits of a table."""
    last = [
        (row.version, row.operation) for row in spark.sql(f"describe history {table} limit {num_commits}").collect()
    ]
    assert all(operation in operations for _, operation in last)
    spark.sql(f"restore table {table} to version as of {last[-1][0] - 1}")


# -- tables side by side: each asks something of its own, and their batches are built together
# -----------------------------------------------------------------------------------------------------------

BATCHES = {
    "small": [
        [change("small", n, "INSERT", ("z", n), "a") for n in range(3)],
        [change("small", 10, "UPDATE", ("z", 1), "b"), change("small", 11, "DELETE", ("z", 2))],
        [change("small", 20, "UPDATE", ("z", 1), "c"), change("small", 21, "INSERT", ("z", 2), "d")],
        [change("small", 5, "UPDATE", ("z", 2), "late"), moved("small", 22, ("z", 1), ("y", 1))],
    ],
    "large": [
        [change("large", n, "INSERT", ("z", n), "a") for n in range(4)],
        [
            change("large", 10, "UPDATE", ("z", 1), "b"),
            change("large", 11, "DELETE", ("z", 2)),
            moved("large", 12, ("z", 3), ("y", 3)),
            moved("large", 13, ("y", 3), ("x", 3)),
        ],
        [change("large", 20, "INSERT", ("z", 20), "d"), change("large", 21, "UPDATE", ("z", 20), "e")],
        [change("large", 30, "DELETE", ("z", 20)), change("large", 31, "DELETE", ("z", 0))],
    ],
    "vectors": [
        [change("vectors", n, "INSERT", ("z", n), "a") for n in range(4)],
        [change("vectors", 10, "UPDATE", ("z", 1), "b"), change("vectors", 11, "DELETE", ("z", 2))],
        [change("vectors", 20, "UPDATE", ("z", 1), "c"), change("vectors", 21, "DELETE", ("z", 3))],
        [change("vectors", 30, "INSERT", ("z", 3), "d")],
    ],
    "left": [
        [change("left", 1, "INSERT", ("a", 1), "a"), change("left", 3, "INSERT", ("b", 1), "b")],
        [change("left", 2, "UPDATE", ("a", 1), "late"), moved("left", 4, ("b", 1), ("c", 1))],
    ],
    "kept": [
        [change("kept", 1, "INSERT", ("a", 1), "whole")],
        [change("kept", 2, "UPDATE", ("a", 1), "half"), change("kept", 3, "INSERT", ("b", 1), "half")],
        [change("kept", 4, "INSERT", ("c", 1), "last")],
    ],
}
HALF = 10_000  # the second batch of `kept`, of which silver died before its ledger
BEGUN = [f"begun{n}" for n in range(4)]
BATCHES |= {n: [[change(n, 1, "INSERT", ("z", 1), "a")], [change(n, 9, "DELETE", ("z", 1))]] for n in BEGUN}


class Died(Exception):
    pass


def die():
    raise Died


def die_while_tables_are_made(spark, here) -> list[str]:
    """Build new tables, each of which dies after another one of its tables. Out: the tables that were entered."""
    enter, entered = entries.enter, []

    def dying(session, lakehouse, table) -> None:
        name = table.removeprefix("gold.").partition("__")[0]
        if sum(name in made for made in entered) == BEGUN.index(name):
            raise ValueError("killed")
        entered.append(table)
        enter(session, lakehouse, table)

    write_silver(spark, next_batch(spark), {name: {"far": BATCHES[name][0]} for name in BEGUN})
    with pytest.MonkeyPatch.context() as patch, pytest.raises(InletError, match="killed"):
        patch.setattr(entries, "enter", dying)
        build_gold(here, spark, BEGUN)
    return entered


@pytest.fixture(scope="module")
def built(spark, here) -> SimpleNamespace:
    """All batches of BATCHES are in gold. Out: (table, place) -> the SQL that was sent for it and for the tables that
    were built with it; and what tests ask of the time between.
    """
    found = SimpleNamespace(sent={}, num_tables={}, histories=[], verified=gold.verify(here, spark, "unused", 20))

    def bring(*places: tuple[str, int], also: tuple[str, ...] = ()) -> None:
        tables = [table for table, _ in places]
        write_silver(spark, next_batch(spark), {table: {"far": BATCHES[table][place]} for table, place in places})
        sent = statements(spark, pytest.MonkeyPatch, lambda: build_gold(here, spark, [*tables, *also]))
        found.sent |= dict.fromkeys(places, [re.sub(r"^/\*.*?\*/\s*", "", query) for query in sent])
        found.num_tables |= dict.fromkeys(places, len(places))

    found.entered = die_while_tables_are_made(spark, here)
    with pytest.raises(Died):
        write_silver(spark, HALF, {"kept": {"far": BATCHES["kept"][1]}}, before_ledger=die)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_batches, "WHOLE_ROWS", -1)
        for place in range(4):
            others = [(name, 0) for name in ("small", "vectors", "left", "kept")] if place == 0 else []
            bring(("large", place), *others, also=("unused",) if others else ())
            found.histories.append(history(spark, "large"))
    found.of_whole_batches, found.nothing = history(spark, "kept"), build_gold(here, spark, ["kept"])

    for step in ("past", "current"):
        spark.sql(f"alter table gold.vectors__{step} set tblproperties (delta.enableDeletionVectors = true)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "SMALL_CHANGES", -1)
        bring(("vectors", 1))
    found.vectors = list(deltalake.DeltaTable(here.lakehouse_path("gold", "vectors__current")).deletion_vectors())

    found.writing = Path(here.lakehouse_path()) / "gold" / "left__folded_touched"
    found.writing.mkdir()
    (found.writing / "part-0.parquet").write_bytes(b"PAR1")
    spark.sql("create table gold.left__folded_timeline using parquet as select 1 as other")
    ledger = {"batch_id": HALF, "source": "far", "tables": ["SHOP.KEPT"]}
    lake.add_rows(here.lakehouse_path(), "silver.batches", [ledger])
    bring(("small", 1), ("vectors", 2), ("left", 1), *((name, 1) for name in BEGUN), also=("kept",))
    bring(("small", 2), ("vectors", 3))
    found.ahead = datetime.now(UTC) + timedelta(hours=2)  # by the clock of another machine, which checked gold
    run_id = int(found.ahead.timestamp() * 1e6)
    result = {"run_id": run_id, "step": "gold", "table": "gold.small__current", "batch_ids": [HALF]}
    lake.add_rows(here.lakehouse_path(), results.TABLE, [result], results.RESULTS, "inlet-checks-gold", run_id)
    bring(("small", 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "NUM_APPLIED", -100)  # gold.applied is folded
        bring(("kept", 2))
    of_kept = "where table_name = 'kept' order by through_batch_id"
    found.applied = lake.peek(here.lakehouse_path(), "gold.applied", ["through_batch_id", "applied_at"], of_kept)
    return found


@pytest.mark.parametrize("table", ["small", "large", "vectors", "left", "kept"])
def test_the_history_of_all_batches_is_that_of_the_reference(spark, built, table):
    assert_history(spark, table, {"far": BATCHES[table]})


def test_a_run_that_dies_while_it_makes_the_tables_of_a_new_one_is_healed(spark, built):
    """The last table that it made is not in the catalog yet; of another table each."""
    assert len(built.entered) == sum(range(4))
    assert [history(spark, name) for name in BEGUN] == [folded({"far": BATCHES[name]}) for name in BEGUN]


@pytest.mark.parametrize("place", [2, 3])
def test_a_small_batch_costs_one_query_of_spark_for_each_table(built, place):
    """The new rows of the log; they are folded, and what comes of them is written, without Spark. So it is of a batch
    with a late change, and of one that moves a row to another key."""
    data = re.compile(r"\b(from|join|into|table) (silver|gold|inlet_new_changes)", re.IGNORECASE)
    asked = [q for q in built.sent["small", place] if data.search(q) and not re.match(r"show|alter view", q)]
    assert len(asked) == built.num_tables["small", place], [q[:300] for q in asked]


@pytest.mark.parametrize(("place", "num_deletes"), enumerate([0, 1, 0, 1]))  # a new table is written whole
def test_a_small_batch_of_a_large_table_moves_current_by_spark(spark, built, place, num_deletes):
    """Current is read without Spark, in the rows that the batch touches. New keys alone need no DELETE."""
    sent = built.sent["large", place]
    deletes = [query for query in sent if query.startswith("delete from gold.large__current")]
    assert len(deletes) == num_deletes, [query[:300] for query in sent]
    if place in (2, 3):
        asked = [query for query in sent if READ.match(query)]
        assert len(asked) == 3, [query[:300] for query in asked]
    assert built.histories[place] == folded({"far": BATCHES["large"][: place + 1]})
    assert not [row for row in spark.sql("show views").collect() if row.viewName.startswith("inlet_")]


READ = re.compile(
    r"^(?!show|alter view|delete|insert into gold.large__current).*\b(from|join|into|table) (silver|gold|inlet_)",
    re.I | re.DOTALL,
)


def test_a_small_batch_follows_one_that_left_deletion_vectors(spark, here, built):
    """As in a lakehouse of an earlier Inlet, whose tables have them."""
    assert built.vectors
    assert lake.operations(here.lakehouse_path(), "gold.vectors__current", 2) == ["OVERWRITE", "OVERWRITE"]
    assert sorted(row.item for row in spark.table("gold.vectors__current").collect()) == [0, 1, 3]


def test_what_a_run_kept_that_died_is_in_nobodys_way(spark, built):
    """It died while it wrote a table that the catalog does not know yet, and before it dropped one that it knows."""
    assert {r.tableName for r in spark.sql("show tables in gold like 'left__folded*'").collect()} == {"left__folded"}
    assert not built.writing.exists()


def test_changes_are_read_once_the_ledger_has_their_batch_and_nothing_new_is_nothing_to_do(
    spark, here, built, monkeypatch
):
    """A batch is whole in silver, and the next one is half there: silver died before its ledger."""
    assert built.of_whole_batches == folded({"far": BATCHES["kept"][:1]})
    assert built.nothing == []  # there is nothing else to do
    state = [r.asDict() for r in spark.sql("select * from gold.applied").collect()]
    ledger = [r.asDict() for r in spark.sql("select source, batch_id, tables from silver.batches").collect()]
    assert gold.lagging(ledger, state, [t for t in here.tables.values() if t.name == "kept"]) == {}

    def greatest():
        return spark.sql(
            "select table_name, source, max(through_batch_id), max(through_change_seq), max(applied_at) from "
            "gold.applied group by all order by all"
        ).collect()

    before = greatest()  # gold.applied has two rows of it, and does not grow for ever
    monkeypatch.setattr(build, "NUM_APPLIED", -100)
    build_gold(here, spark, ["kept"])
    assert [tuple(r) for r in spark.sql("select * from gold.applied order by all").collect()] == [
        tuple(r) for r in before
    ]


def test_gold_is_applied_after_the_last_check_of_it_whatever_clocks_say(built):
    """What no check has seen stays apart when gold.applied is folded."""
    before, last = built.applied
    assert before["through_batch_id"] == HALF and before["applied_at"] < built.ahead < last["applied_at"]


def test_a_table_without_changes_is_equal(spark, here, built):
    assert built.verified == gold.verify(here, spark, "unused", 20) == (0, 0, [])  # before and after it was made


# -- verify
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_verify_finds_what_was_tampered_with_and_rebuild_mends_it(spark, here):
    streams = {}
    for number in range(100):
        rng = random.Random(f"verified {number}")
        streams[f"verified_{number:02d}"] = deliver(rng, stream(rng), 2, repeated=0.0)
    bring(spark, here, "verified", streams)
    num_versions = spark.sql("select count(*) from gold.verified__history").first()[0]
    (changed,) = spark.sql(
        "select source, region, item, valid_from_seq from gold.verified__current order by all limit 1"
    ).collect()
    lost, doubled = spark.sql(
        "select source, region, item, valid_from_seq from gold.verified__past order by all limit 2"
    ).collect()
    place = (
        "source = '{0.source}' and region = \"{0.region}\" and item = {0.item} and valid_from_seq = "
        "'{0.valid_from_seq}'"
    )
    key = '{{"region":"{0.region}","item":{0.item}}}'
    logged = spark.sql(
        "select source, operation, change_seq from gold.verified__before_after where operation = 'INSERT' order by "
        "all limit 1"
    ).first()
    spark.sql(f"update gold.verified__current set name = 'tampered' where {place.format(changed)}")
    spark.sql(f"insert into gold.verified__past select * from gold.verified__past where {place.format(doubled)}")
    spark.sql(f"delete from gold.verified__past where {place.format(lost)}")
    spark.sql(
        "insert into gold.verified__past (source, region, item, valid_from_seq, valid_to_seq) values ('made', 'up', "
        "1, '1', '2')"
    )
    spark.sql(
        "update gold.verified__before_after set before = after, after = before where source = "
        f"'{logged.source}' and change_seq = '{logged.change_seq}'"
    )
    _, num_differing, rows = gold.verify(here, spark, "verified", 20)
    assert num_differing == 5
    assert sorted((r["kind"], r["source"], r["key"], r["change_seq"], r["difference"]) for r in rows) == sorted(
        [
            ("version", changed.source, key.format(changed), changed.valid_from_seq, "other values in gold"),
            ("version", doubled.source, key.format(doubled), doubled.valid_from_seq, "more than once in gold"),
            ("version", lost.source, key.format(lost), lost.valid_from_seq, "not in gold"),
            ("version", "made", '{"region":"up","item":1}', "1", "only in gold"),
            ("change", *logged, "other values in gold"),
        ]
    )
    build_gold(here, spark, ["verified"], full_refresh=True)
    assert gold.verify(here, spark, "verified", 20) == (num_versions, 0, [])
    assert_history(spark, "verified", streams)


# -- what is read
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_a_batch_in_order_reads_only_the_range_of_its_keys(spark, here, monkeypatch):
    monkeypatch.setattr(build, "SMALL_CHANGES", -1)  # small tables are read and written whole
    keys = [
        (region, item) for region in ("", "${env:HOME}", "a'b", "a\\", "a\\'b", "nörd", "z") for item in range(-3, 4)
    ]
    opened = [change("ranged", n, "INSERT", key, "a") for n, key in enumerate(keys)]
    few = [key for key in keys if "a'b" <= key[0] <= "a\\'b" and abs(key[1]) < 3]
    batches = [
        opened,
        [change("ranged", 100 + n, ["UPDATE", "DELETE", "INSERT"][n % 3], key, "b") for n, key in enumerate(few)],
        [change("ranged", 200, "INSERT", ("${env:HOME}", -99), "c"), change("ranged", 201, "UPDATE", ("z", 3), "c")],
        [moved("ranged", 300, ("z", 2), ("a'b", 77))],
        [moved("ranged", 400, ("a'b", 77), ("z", 9)), moved("ranged", 401, ("", 0), ("a'b", 0))],
        [moved("ranged", 500, ("z", 0), ("z", 1), "T")],
        [moved("ranged", 501, ("z", 1), ("z", 0), "T")],  # a swap that is cut apart
        [replace(change("ranged", 600 + n, "REFRESH", key, "d"), load_id="L") for n, key in enumerate(keys[9:11])],
    ]  # a load that has not ended
    bring(spark, here, "ranged", {"far": batches})
    assert_history(spark, "ranged", {"far": batches})
    takes = [
        row.operationParameters["predicate"]
        for row in spark.sql("describe history gold.ranged__current").collect()
        if row.operation == "DELETE"
    ]
    assert [("-2" in p and "2" in p, "-99" in p and "z" in p) for p in reversed(takes)][:2] == [
        (True, False),
        (False, True),
    ], takes


def test_views_follow_where_another_table_fails_and_where_a_run_died_before_it_wrote_them(spark, here):
    new = [change("ranged", 900, "INSERT", ("z", 100)), moved("ranged", 901, ("z", 100), ("z", 101))]
    broken = change("broken", 902, "INSERT", ("z", "no number"))
    write_silver(spark, next_batch(spark), {"ranged": {"far": new}, "broken": {"far": [broken]}})
    with pytest.raises(InletError, match="broken__before_after"):
        build_gold(here, spark, ["broken", "ranged"])
    assert [(r.item, r.is_held) for r in spark.sql("select * from public.ranged__live where item > 99").collect()] == [
        (101, False)
    ]
    spark.sql("delete from silver.changes where source_table = 'BROKEN'")
    spark.sql("drop view gold.ranged__history")
    spark.sql("alter view public.ranged__live as select 'of an earlier version' as nothing")
    spark.sql("alter view public.ranged__live set tblproperties ('inlet.shape' = 'of another')")
    build_gold(here, spark, ["broken", "ranged"])
    assert spark.sql("select 1 from gold.ranged__history where item = 101").count() == 1
    assert spark.sql("select 1 from public.ranged__live where item = 101").count() == 1
