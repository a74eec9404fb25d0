"""Gold equals the reference: for every stream, order of arrival, split, repeat and crash.

Many streams run at once, as many sources of one table: gold keys everything by source, so each proves its own case. What the
fold does depends on what a batch asks for, so each flavour of streams has batches of its own. A failing stream is shown
whole, batch by batch, next to what was expected and found.
"""

import datetime as dt
import json
import os
import random
from dataclasses import replace
from decimal import Decimal
from itertools import groupby

import pytest

from inlet import generate, gold, lake
from inlet.change import mask
from inlet.errors import InletError
from tests import reference
from tests.examples import EXAMPLES, ins, move
from tests.streams import COLUMNS, KEY, Change, deliver, once, seq, stream
from tests.test_generate import ITEMS, project

LETTER = {"REFRESH": "R", "INSERT": "I", "UPDATE": "U", "DELETE": "D", "TRUNCATE": "T"}
FLAVOURS = {        # how streams are made, how late they come, and the batches that bring them
    "plain": dict(of_20=range(0, 2), batches=[0, 1], late=0.0, wipes=0.0, key_changes=0.0, loads=0, partial=0.0, states=0.0),
    "full_images": dict(of_20=range(2, 5), batches=[0, 2], late=0.0, partial=0.0, loads=0, states=0.0),
    "updates_only": dict(of_20=range(5, 7), batches=[0, 3], late=0.0, wipes=0.0, key_changes=0.0, loads=0),
    "in_order": dict(of_20=range(7, 10), batches=[0, 4], late=0.0, loads=0),
    "mixed": dict(of_20=range(10, 20), batches=[0, 5, 6], late=0.2),
}
NUM_STREAMS, NUM_ORDERS = int(os.environ.get("INLET_STREAMS", 2000)), 3          # each stream comes in so many ways
SOAKED = [f"soaked_{n:02d}" for n in range(1, 25)] if "INLET_SOAK" in os.environ else []        # with the normal run 50,000 streams
EXAMPLE_BATCHES = [0, 5, 6, 7]
LIVE_PLACES = [1, 4, 5, 6]                 # batches before which the live view is read: plain ones, key changes, late changes


@pytest.fixture(scope="module")
def here(tmp_path_factory, spark, lakehouse):
    """The project; its thousands of sources leave the ledger with it, else every later run would look at them."""
    tables = {name: ITEMS.replace("SHOP.ITEMS", f"SHOP.{name.upper()}").replace("name: items", f"name: {name}") for name in ("items", "crashed", "verified", "unused", "ranged", "broken", *SOAKED)}
    made = project(tmp_path_factory.mktemp("gold"), lakehouse, tables)
    generate.write(made)
    yield made
    names = ", ".join(f"'SHOP.{name.upper()}'" for name in tables)
    for table in ("silver.changes", "silver.control_events"):
        spark.sql(f"delete from {table} where concat(source_schema, '.', source_table) in ({names})")
    spark.sql(f"delete from silver.batches where size(tables) > 0 and forall(tables, t -> t in ({names}))")
    spark.sql(f"delete from gold.applied where concat('SHOP.', upper(table_name)) in ({names})")


@pytest.fixture(scope="module")
def lives():
    """place -> source -> rows of the live view when the batch of that place was in silver and not in gold."""
    return {}


@pytest.fixture(scope="module")
def delivered(spark, here, lives):
    """flavour -> source -> batches, all of them written to silver and run through gold batch by batch."""
    streams = random_streams(range(NUM_STREAMS))
    streams["examples"] = {named(sentence): placed(batches, EXAMPLE_BATCHES) for sentence, batches in EXAMPLES.items()}
    streams["long"] = {"renumbered": placed([[ins(k, k, NAME=str(k)) for k in range(1, 121)], [move(200 + k, k, k + 1, "T") for k in range(1, 61)],
                                             [move(200 + k, k, k + 1, "T") for k in range(61, 121)]], EXAMPLE_BATCHES)}
    bring(spark, here, "items", streams, lives=lives)
    return streams


def random_streams(numbers) -> dict[str, dict[str, list[list[Change]]]]:
    """flavour -> source -> batches. Each number is a stream, and comes in several ways: one source each."""
    streams: dict[str, dict[str, list[list[Change]]]] = {}
    for number in numbers:
        flavour = next(f for f, said in FLAVOURS.items() if number % 20 in said["of_20"])
        said = FLAVOURS[flavour]
        rng = random.Random(f"{flavour} {number}")
        changes = stream(rng, **{k: v for k, v in said.items() if k not in ("of_20", "batches", "late")})
        for order in range(NUM_ORDERS):
            batches = once(deliver(rng, changes, len(said["batches"]), late=said["late"]))
            streams.setdefault(flavour, {})[f"{flavour}_{number:05d}_{order}"] = placed(batches, said["batches"])
    return streams


def bring(spark, here, table: str, streams: dict, first: int = 0, lives: dict | None = None) -> None:
    for place in range(max(len(batches) for of_flavour in streams.values() for batches in of_flavour.values())):
        write_silver(spark, first + place, {table: {source: batches[place] for of_flavour in streams.values()
                                                    for source, batches in of_flavour.items() if place < len(batches) and batches[place]}})
        if place in LIVE_PLACES and lives is not None:
            lives[place] = found_live(spark, table)
        gold.run(here, spark, [table])


def next_batch(spark) -> int:
    """The number of the next batch, behind those of `delivered`, whether that has been or not."""
    return 1 + spark.sql("select greatest(max(batch_id), 7) from silver.batches").first()[0]


def placed(batches: list[list[Change]], places: list[int]) -> list[list[Change]]:
    """The batches of one stream at their places among all batches."""
    at = dict(zip(places, batches))
    return [at.get(place, []) for place in range(1 + places[-1])]


def named(sentence: str) -> str:
    return sentence.replace(" ", "_").replace("'", "")


def write_silver(spark, batch_id: int, tables: dict[str, dict[str, list[Change]]], before_ledger=lambda: None, columns=None) -> None:
    """One whole batch, as silver writes it: changes, empty loads, what the caller adds, then the ledger. In: columns by version."""
    columns = columns or {1: COLUMNS}
    changes, control, sources = [], [], set()
    for table, of_source in tables.items():
        for source, rows in of_source.items():
            sources.add(source)
            for c in rows:
                unit = f"{source}/{c.seq}", 0
                if c.op in ("EMPTY_LOAD", "LOAD_END"):
                    control.append((source, "SHOP", table.upper(), c.seq, c.op.lower(), c.load_id, *unit, batch_id))
                else:
                    changes.append((source, "SHOP", table.upper(), c.version, c.seq, c.op, LETTER[c.op], c.transaction_id, c.counter, c.last,
                                    c.timestamp, _json(c.before), _json(c.after), c.states or None, c.load_id,
                                    None if c.mask is None else mask(1 + columns[c.version].index(n) for n in c.mask), *unit, batch_id))
    names = ("source", "source_schema", "source_table", "table_version", "change_seq", "operation", "change_oper", "transaction_id",
             "transaction_event_counter", "transaction_last_event", "change_timestamp", "before", "after", "column_states", "load_id",
             "change_mask", "unit_id", "unit_offset", "batch_id")
    if changes:
        spark.createDataFrame(changes, "source string, source_schema string, source_table string, table_version int, change_seq string, "
            "operation string, change_oper string, transaction_id string, transaction_event_counter bigint, transaction_last_event boolean, "
            "change_timestamp timestamp, before string, after string, column_states map<string,string>, load_id string, change_mask binary, unit_id string, "
            "unit_offset bigint, batch_id bigint").createOrReplaceTempView("new_changes")
        spark.sql(f"insert into silver.changes ({', '.join(names)}) select " + ", ".join(
            f"parse_json({n})" if n in ("before", "after") else n for n in names) + " from new_changes")
    if control:
        spark.createDataFrame(control, "source string, source_schema string, source_table string, change_seq string, kind string, load_id string, unit_id string, "
                              "unit_offset bigint, batch_id bigint").createOrReplaceTempView("new_control")
        spark.sql("insert into silver.control_events (source, source_schema, source_table, change_seq, kind, load_id, unit_id, unit_offset, batch_id) "
                  "select * from new_control")
    before_ledger()
    brought = [(batch_id, s, [f"SHOP.{t.upper()}" for t, of_source in tables.items() if of_source.get(s)],
                *(most((c.seq for of_source in tables.values() for c in of_source.get(s, [])), default=None) for most in (min, max))) for s in sorted(sources)]
    spark.createDataFrame(brought, "batch_id bigint, source string, tables array<string>, first_change_seq string, last_change_seq string"
                          ).createOrReplaceTempView("new_batches")
    spark.sql("insert into silver.batches (batch_id, source, tables, first_change_seq, last_change_seq) select * from new_batches")


def _json(image: dict | None) -> str | None:
    def said(value):
        return value.hex() if isinstance(value, bytes) else value.isoformat() if isinstance(value, dt.date) else float(value) if isinstance(value, Decimal) else value
    return None if image is None else json.dumps({n: said(v) for n, v in image.items()})


def opened_by(batches) -> dict:
    """(change_seq, is it an empty load) -> batch."""
    return {(c.seq, c.op == "EMPTY_LOAD"): number for number, batch in enumerate(batches) for c in batch}


def expected_history(batches) -> list[tuple]:
    changes = [c for batch in batches for c in batch]
    by_seq = {c.seq: c for c in changes if c.op != "EMPTY_LOAD"}
    brought = opened_by(batches)
    return [(*(v.values.get(n) for n in COLUMNS), v.valid_from_seq, v.valid_to_seq, v.is_complete,
             [n.lower() for n in COLUMNS if n not in v.values], v.conflict, by_seq[v.valid_from_seq].op, v.key_changed, by_seq[v.valid_from_seq].transaction_id,
             by_seq[v.valid_from_seq].timestamp, brought[v.valid_from_seq, False])
            for v in reference.fold(changes, KEY, COLUMNS)[0]]


def found_history(spark, table: str) -> dict[str, list[tuple]]:
    names = [*(n.lower() for n in COLUMNS), "valid_from_seq", "valid_to_seq", "is_complete", "not_supplied", "conflict", "operation", "key_changed",
             "transaction_id", "change_timestamp", "batch_id"]
    found: dict[str, list[tuple]] = {}
    for row in spark.sql(f"select source, {', '.join(names)} from gold.{table}__history order by source, region, item, valid_from_seq").collect():
        found.setdefault(row.source, []).append(tuple(bytes(v) if isinstance(v, bytearray) else v for v in row[1:]))
    return found


def show(batches, expected: list, found: list) -> str:
    """The first difference of one stream, with the stream."""
    lines = [f"batch {n}:\n" + "\n".join(f"  {c}" for c in batch) for n, batch in enumerate(batches)]
    missing, extra = [r for r in expected if r not in found], [r for r in found if r not in expected]
    return "\n".join(["", *lines, "expected, not found:", *map(str, missing), "found, not expected:", *map(str, extra)])


def assert_history(found: dict[str, list], streams: dict[str, list]) -> None:
    wrong = [source for source, batches in streams.items() if expected_history(batches) != found.get(source, [])]
    if wrong:
        source = min(wrong, key=lambda w: sum(len(b) for b in streams[w]))
        pytest.fail(f"{len(wrong)} of {len(streams)} streams differ, the shortest is {source}:"
                    + show(streams[source], expected_history(streams[source]), found.get(source, [])), pytrace=False)


@pytest.fixture(scope="module")
def histories(spark, delivered):
    return found_history(spark, "items")


@pytest.mark.parametrize("flavour", [*FLAVOURS, "long"])
def test_history_equals_the_reference(delivered, histories, flavour):
    assert_history(histories, delivered[flavour])


@pytest.mark.proof
@pytest.mark.parametrize("table", SOAKED)
def test_other_streams_equal_the_reference_too(spark, here, table):
    number = NUM_STREAMS * int(table.removeprefix("soaked_"))
    streams = random_streams(range(number, number + NUM_STREAMS))
    first = next_batch(spark)
    bring(spark, here, table, streams, first)
    assert_history(found_history(spark, table), {s: [[]] * first + batches for of_flavour in streams.values() for s, batches in of_flavour.items()})


def found_live(spark, table: str) -> dict[str, list[tuple]]:
    rows = spark.sql(f"select source, {', '.join(COLUMNS)}, valid_from_seq, is_complete, array_sort(not_supplied), is_held from public.{table}__live order by source, region, item")
    return {source: [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row[1:]) for row in of_source]
            for source, of_source in groupby(rows.collect(), key=lambda row: row.source)}


def expected_live(applied: list[Change], pending: list[Change]) -> list[tuple]:
    """What the live view says of a source: its changes up to the first one that cannot be folded without the log."""
    holding = [c.seq for c in pending if c.op == "LOAD_END" or c.op == "UPDATE" and reference.before_key(c, KEY) != reference.after_key(c, KEY)]
    if applied and any(c.seq <= max(a.seq for a in applied) for c in pending):
        holding.append("")
    shown = applied + [c for c in pending if c.seq < min(holding, default="~")]
    return [(*(v.values.get(n) for n in COLUMNS), v.valid_from_seq, v.is_complete, sorted(n.lower() for n in COLUMNS if n not in v.values), holding != [])
            for v in reference.current(reference.fold(shown, KEY, COLUMNS)[0])]


@pytest.mark.parametrize("place", LIVE_PLACES)
def test_the_live_view_has_what_gold_has_not_taken_yet(delivered, lives, place):
    wrong, num_held, num_moved = [], 0, 0
    for source, batches in [item for of_flavour in delivered.values() for item in of_flavour.items()]:
        applied, pending = [c for batch in batches[:place] for c in batch], batches[place] if place < len(batches) else []
        expected, found = expected_live(applied, pending), lives[place].get(source, [])
        wrong += [source + show(batches[:place + 1], expected, found)] if expected != found else []
        num_held += any(row[-1] for row in expected)
        num_moved += bool(pending) and expected != expected_live(applied, [])
    assert wrong == [], f"{len(wrong)} differ, one is {min(wrong, key=len)}"
    assert num_moved > 5 and (place == 1 or num_held > 10)


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_an_example(delivered, histories, sentence):
    batches, found = delivered["examples"][named(sentence)], histories.get(named(sentence), [])
    assert found == expected_history(batches), show(batches, expected_history(batches), found)


def streams_of(delivered) -> dict[str, list[Change]]:
    """source -> its changes."""
    return {source: [c for batch in batches for c in batch] for of_flavour in delivered.values() for source, batches in of_flavour.items()}


def test_current_holds_the_open_versions_and_no_others(spark, delivered):
    found = spark.sql("select source, region, item, valid_from_seq from gold.items__current order by all").collect()
    assert [tuple(r) for r in found] == sorted((source, *v.key, v.valid_from_seq) for source, changes in streams_of(delivered).items()
                                               for v in reference.current(reference.fold(changes, KEY, COLUMNS)[0]))


def test_periods_have_the_times_in_their_change_seqs(spark, delivered):
    def time(change_seq):
        return change_seq and dt.datetime.strptime(change_seq[:16] + "0000", "%Y%m%d%H%M%S%f")

    rows = spark.sql("select valid_from_seq, valid_to_seq, valid_from, valid_to from gold.items__history").collect()
    assert [(r.valid_from, r.valid_to) for r in rows] == [(time(r.valid_from_seq), time(r.valid_to_seq)) for r in rows]


def test_before_after_is_the_typed_log(spark, delivered):
    def image(row):
        return row and {n: bytes(v) if isinstance(v, bytearray) else v for n, v in zip(COLUMNS, row)}

    found: dict[str, list] = {}
    for r in spark.sql("select * from gold.items__before_after order by source, change_seq, operation = 'LOAD_END', operation <> 'EMPTY_LOAD'").collect():
        found.setdefault(r.source, []).append({"seq": r.change_seq, "op": r.operation, "before": image(r.before), "after": image(r.after),
            "changed": [n.upper() for n in r.changed],
            "mask_conflicts": sorted((n.upper() for n in r.mask_conflicts), key=COLUMNS.index), "not_supplied": [n.upper() for n in r.not_supplied], "key_changed": r.key_changed})
    assert {source: reference.before_after(changes, KEY, COLUMNS) for source, changes in streams_of(delivered).items()} == found


def test_anomalies_are_those_of_the_reference(spark, delivered):
    found = spark.sql("select source, change_seq, kind from gold.items__anomalies order by all").collect()
    assert [tuple(r) for r in found] == sorted((source, *anomaly) for source, changes in streams_of(delivered).items()
                                               for anomaly in reference.anomalies(changes, KEY, COLUMNS))


STEPS = ["gold.applied", "gold.crashed__current", "gold.crashed__past", "gold.crashed__folded"]       # last first


@pytest.mark.proof
def test_a_crash_between_any_two_steps_heals_on_the_next_run(spark, here):
    """A crash is the state in which the tables of the steps after it are as they were before the run. Then the next batch comes."""
    crashes = [(1, 0), (2, 0), (3, 0), (1, 1), (4, 0)]             # how many steps are undone; is the last half of the next one, too
    num_batches = 1 + 2 * len(crashes)
    streams = {}
    for number in range(30):
        rng = random.Random(f"crashed {number}")
        batches = once(deliver(rng, stream(rng, wipes=0.0, key_changes=0.0, loads=0, length=40), num_batches, late=0.0))
        batches[3], batches[4] = batches[4], batches[3]                     # the second crash is one of a batch that late changes follow,
        batches[5], batches[2] = batches[5] + batches[2], []                # the third one of a batch with late changes
        streams[f"url_{number:02d}"] = batches                                 # Spark hides settings that hold such a word
    first = next_batch(spark)
    for place in range(num_batches):
        num_undone, is_half = crashes[place // 2] if place % 2 else (0, 0)
        undone = STEPS[:num_undone]
        versions = {t: _version(spark, t) for t in undone}
        write_silver(spark, first + place, {"crashed": {s: batches[place] for s, batches in streams.items()}})
        gold.run(here, spark, ["crashed"])
        for table in undone:
            spark.sql(f"restore table {table} to version as of {versions[table]}")
        if is_half:                                # rows were taken from current, and not put back
            assert spark.sql(f"describe history {STEPS[num_undone]}").take(2)[1].operation == "DELETE"
            spark.sql(f"restore table {STEPS[num_undone]} to version as of {_version(spark, STEPS[num_undone]) - 1}")
        if len(undone) == 3:                       # past was not written: a run of the last model alone must not lose it
            gold._dbt(here, ["run", "--select", "crashed__current"])
    expected = {s: [[]] * first + batches for s, batches in streams.items()}
    assert_history(found_history(spark, "crashed"), expected)
    spark.sql("drop table gold.crashed__before_after")                     # where a --full-refresh begins, and died
    told = []
    gold.run(here, spark, ["crashed"], tell=told.append)
    assert told == [f"crashed__{step} ({n} of 3)" for n, step in enumerate(gold.STEPS, 1)]
    assert_history(found_history(spark, "crashed"), expected)


def _version(spark, table: str) -> int:
    return spark.sql(f"describe history {table} limit 1").first().version


@pytest.mark.proof
def test_verify_finds_what_was_tampered_with_and_rebuild_mends_it(spark, here):
    streams = {flavour: {source: [[], [c for batch in batches[:-1] for c in batch], batches[-1]] for source, batches in of_flavour.items()}
               for flavour, of_flavour in random_streams(range(0, NUM_STREAMS, 20)).items()}
    first = next_batch(spark)
    bring(spark, here, "verified", streams, first)
    num_versions = spark.sql("select count(*) from gold.verified__history").first()[0]
    changed, = spark.sql("select source, region, item, valid_from_seq from gold.verified__current order by all limit 1").collect()
    lost, doubled = spark.sql("select source, region, item, valid_from_seq from gold.verified__past order by all limit 2").collect()
    place = "source = '{0.source}' and region = '{0.region}' and item = {0.item} and valid_from_seq = '{0.valid_from_seq}'"
    key = '{{"region":"{0.region}","item":{0.item}}}'
    logged = spark.sql("select source, operation, change_seq from gold.verified__before_after where operation = 'INSERT' order by all limit 1").first()
    spark.sql(f"update gold.verified__current set name = 'tampered' where {place.format(changed)}")
    spark.sql(f"insert into gold.verified__past select * from gold.verified__past where {place.format(doubled)}")
    spark.sql(f"delete from gold.verified__past where {place.format(lost)}")
    spark.sql("insert into gold.verified__past (source, region, item, valid_from_seq, valid_to_seq) values ('made', 'up', 1, '1', '2')")
    spark.sql(f"update gold.verified__before_after set before = after, after = before where source = '{logged.source}' and change_seq = '{logged.change_seq}'")
    _, num_differing, rows = gold.verify(here, spark, "verified", 20)
    assert num_differing == 5
    assert sorted((r["kind"], r["source"], r["key"], r["change_seq"], r["difference"]) for r in rows) == sorted([
        ("version", changed.source, key.format(changed), changed.valid_from_seq, "other values in gold"),
        ("version", doubled.source, key.format(doubled), doubled.valid_from_seq, "more than once in gold"),
        ("version", lost.source, key.format(lost), lost.valid_from_seq, "not in gold"),
        ("version", "made", '{"region":"up","item":1}', "1", "only in gold"),
        ("change", *logged, "other values in gold")])
    gold.run(here, spark, ["verified"], full_refresh=True)
    assert gold.verify(here, spark, "verified", 20) == (num_versions, 0, [])
    assert_history(found_history(spark, "verified"), {s: [[]] * first + batches for of_flavour in streams.values() for s, batches in of_flavour.items()})


def test_a_table_without_changes_is_equal(spark, here):
    assert gold.verify(here, spark, "unused", 20) == (0, 0, [])            # not made yet
    gold.run(here, spark, ["unused"])
    assert gold.verify(here, spark, "unused", 20) == (0, 0, [])


@pytest.mark.proof
def test_a_batch_in_order_reads_only_the_range_of_its_keys(spark, here):
    def change(place, op, key, name=None):
        image = dict(zip(KEY, key)) | ({} if op == "DELETE" else {"NAME": name, "PRICE": None, "MADE": None, "PHOTO": None})
        return Change("far", "SHOP.RANGED", seq(place), op, **{"before" if op == "DELETE" else "after": image})

    def moved(place, old, new, transaction_id=None):
        return Change("far", "SHOP.RANGED", seq(place), "UPDATE", before=dict(zip(KEY, old)), after=dict(zip(KEY, new)), transaction_id=transaction_id)

    keys = [(region, item) for region in ("", "${env:HOME}", "a'b", "a\\", "a\\'b", "nörd", "z") for item in range(-3, 4)]
    opened = [change(n, "INSERT", key, "a") for n, key in enumerate(keys)]
    few = [key for key in keys if "a'b" <= key[0] <= "a\\'b" and abs(key[1]) < 3]
    batches = [opened, [change(100 + n, ["UPDATE", "DELETE", "INSERT"][n % 3], key, "b") for n, key in enumerate(few)],
               [change(200, "INSERT", ("${env:HOME}", -99), "c"), change(201, "UPDATE", ("z", 3), "c")],
               [moved(300, ("z", 2), ("a'b", 77))], [moved(400, ("a'b", 77), ("z", 9)), moved(401, ("", 0), ("a'b", 0))],
               [moved(500, ("z", 0), ("z", 1), "T")], [moved(501, ("z", 1), ("z", 0), "T")],                       # a swap that is cut apart
               [replace(change(600 + n, "REFRESH", key, "d"), load_id="L") for n, key in enumerate(keys[9:11])]]            # a load that has not ended
    first = next_batch(spark)
    bring(spark, here, "ranged", {"far": {"far": batches}}, first)
    assert_history(found_history(spark, "ranged"), {"far": [[]] * first + batches})
    takes = [row.operationParameters["predicate"] for row in spark.sql("describe history gold.ranged__current").collect() if row.operation == "DELETE"]
    assert [("-2" in p and "2" in p, "-99" in p and "z" in p) for p in reversed(takes)][:2] == [(True, False), (False, True)], takes


def test_views_follow_where_another_table_fails_and_where_a_run_died_before_it_wrote_them(spark, here):
    first = next_batch(spark)
    row = dict.fromkeys(COLUMNS) | {"REGION": "z"}
    write_silver(spark, first, {"ranged": {"far": [Change("far", "SHOP.RANGED", seq(900), "INSERT", after=row | {"ITEM": 100}),
                                                   Change("far", "SHOP.RANGED", seq(901), "UPDATE", before=row | {"ITEM": 100}, after=row | {"ITEM": 101})]},
                                "broken": {"far": [Change("far", "SHOP.BROKEN", seq(902), "INSERT", after=row | {"ITEM": "no number"})]}})
    with pytest.raises(InletError, match="broken__before_after"):
        gold.run(here, spark, ["broken", "ranged"])
    assert [(r.item, r.is_held) for r in spark.sql("select * from public.ranged__live where item > 99").collect()] == [(101, False)]
    spark.sql("delete from silver.changes where source_table = 'BROKEN'")
    gold.run(here, spark, ["broken"])

    spark.sql("drop view gold.ranged__history")
    spark.sql("alter view public.ranged__live as select 'of an earlier version' as nothing")
    spark.sql("alter view public.ranged__live set tblproperties ('inlet.shape' = 'of another')")
    gold.run(here, spark, ["ranged"])
    assert spark.sql("select 1 from gold.ranged__history where item = 101").count() == 1
    assert spark.sql("select 1 from public.ranged__live where item = 101").count() == 1


@pytest.mark.parametrize("table", ["current", "past", "before_after"])
def test_delta_rs_reads_what_spark_reads(spark, lakehouse, delivered, table):
    name = f"gold.items__{table}"
    columns = [c for c in spark.table(name).columns if c not in ("before", "after", "column_states")]

    def plain(values):
        return repr([bytes(v) if isinstance(v, bytearray) else v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in values])

    rows = [plain(row) for row in spark.table(name).select(*columns).collect()]
    assert sorted(plain(row.values()) for row in lake.peek(lakehouse, name, [f'"{c}"' for c in columns])) == sorted(rows)
    assert len(rows) > 100


def test_nothing_new_is_nothing_to_do(spark, here, delivered):
    assert gold.run(here, spark, ["items"]) == []
    state = [r.asDict() for r in spark.sql("select * from gold.applied").collect()]
    ledger = [r.asDict() for r in spark.sql("select source, batch_id, tables from silver.batches").collect()]
    assert gold.behind(ledger, state, [t for t in here.tables.values() if t.name == "items"]) == {}


def test_gold_applied_does_not_grow_for_ever(spark, here, delivered, monkeypatch):
    def greatest():
        return spark.sql("select table_name, source, max(through_batch_id), max(through_change_seq), max(applied_at) from gold.applied "
                         "group by all order by all").collect()

    before = greatest()
    monkeypatch.setattr(gold, "NUM_APPLIED", 1)
    gold.run(here, spark, ["items"])
    assert [tuple(r) for r in spark.sql("select * from gold.applied order by all").collect()] == [tuple(r) for r in before]


def test_changes_of_a_batch_that_is_not_in_the_ledger_are_not_read(spark, here, delivered):
    before = spark.sql("select count(*) from gold.items__before_after").first()[0]
    spark.sql("insert into silver.changes (source, source_schema, source_table, change_seq, operation, change_oper, after, batch_id) "
              f"values ('plain_000', 'SHOP', 'ITEMS', '{seq(9999)}', 'INSERT', 'I', parse_json('{{\"REGION\": \"x\", \"ITEM\": 1}}'), 9999)")
    assert gold.run(here, spark, ["items"]) == []
    assert spark.sql("select count(*) from gold.items__before_after").first()[0] == before
    spark.sql("delete from silver.changes where batch_id = 9999")
