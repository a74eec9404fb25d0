"""Gold equals the reference: for every stream, order of arrival and split. Repeats never come so far: silver takes them
away.

Many streams run at once, as many sources of one table: gold keys everything by source, so each proves its own case.
What the fold does depends on what a batch asks for, so each flavour of streams has batches of its own; tables that run
at once share their numbers, for what a run costs is mostly planning. A failing stream is shown whole, batch by batch,
next to what was expected and found.
"""

import datetime as dt
import os
import random

import pytest

from inlet import gold, lake
from inlet.commands.run import build_gold
from inlet.gold import build, generate, small_batches
from tests import reference
from tests.conftest import ALL_ROUNDS, TAKES_HOURS
from tests.examples import EXAMPLES, ins, move
from tests.silver import by_source, rows, write_silver
from tests.streams import EXACT, REST, TEXT, TYPED, Change, Keys, deliver, stream
from tests.test_generate import project

pytestmark = [pytest.mark.smoke, pytest.mark.rounds]  # INLET_STREAMS streams
KEYS = {"items": TEXT, "typed": TYPED, "exact": EXACT}  # table -> its key
# how streams are made, and the batches that bring them; an order that is late comes with those of `mixed` if its table
# has them
FLAVOURS = {
    "plain": dict(
        of_20=range(0, 2), table="items", places=[0, 1], wipes=0.0, key_changes=0.0, loads=0, partial=0.0, states=0.0
    ),
    "full_images": dict(of_20=range(2, 5), table="items", places=[0, 2], partial=0.0, loads=0, states=0.0),
    "updates_only": dict(of_20=range(5, 7), table="items", places=[0, 3], wipes=0.0, key_changes=0.0, loads=0),
    "in_order": dict(of_20=range(7, 9), table="typed", places=[0, 1], loads=0),
    "exact_keys": dict(of_20=range(9, 10), table="exact", places=[0, 1], loads=0),
    "mixed": dict(of_20=range(10, 20), table="items", places=[0, 4, 5]),
}
ORDERS = {
    "in_time": 0.0,
    "cut_elsewhere": 0.0,
    "late": 0.5,
}  # how a stream comes, but for `mixed`: how many of its changes are late
LATE, LATE_OF_MIXED = {"items": [0, 4, 5], "typed": [0, 3], "exact": [0, 5]}, 0.2
NUM_STREAMS = int(os.environ.get("INLET_STREAMS", 300 if ALL_ROUNDS else 20))  # each comes in every order
EXAMPLE_BATCHES = [0, 4, 5, 6]
LIVE = [("items", 4), ("typed", 1)]  # the live view is read before these batches, of streams of every kind
LARGE = [1, 4]  # batches that are built as large ones are; others are folded without Spark, but for a key with a float
READ = [2]  # batches of which the touched rows of current are read, and the others left where they are
if not ALL_ROUNDS:  # what takes the time is each batch of each table: one table, three batches that all share
    KEYS = {"items": TEXT}
    EXAMPLES = {sentence: batches for sentence, batches in EXAMPLES.items() if len(batches) <= 3}
    FLAVOURS = {
        name: said | {"table": "items", "places": list(range(len(said["places"])))} for name, said in FLAVOURS.items()
    }
    LATE, EXAMPLE_BATCHES, LIVE = {"items": [0, 1, 2]}, [0, 1, 2], [("items", 1), ("items", 2)]
    LARGE, READ = [1], []
ROUNDS = (
    range(0, 50_000, 2000) if "INLET_SOAK" in os.environ else []
)  # of other streams, the first of the normal run's as well


@pytest.fixture(scope="module")
def here(tmp_path_factory, spark, lakehouse):
    tables = {
        table + end: contract(table + end, keys)
        for table, keys in KEYS.items()
        for end in ("", *(f"_{n}" for n in ROUNDS))
    }
    made = project(tmp_path_factory.mktemp("gold"), lakehouse, tables)
    generate.write(made)
    return made


def contract(name: str, keys: Keys) -> str:
    columns = [
        f"  - {{name: {n}, type: '{type_}'{', encoding: hex' if type_ == 'binary' else ''}}}"
        for n, type_ in (keys.types | REST).items()
    ]
    return "\n".join(
        [f"table: SHOP.{name.upper()}", f"name: {name}", f"key: [{', '.join(keys.types)}]", "columns:", *columns]
    )


@pytest.fixture(scope="module")
def lives():
    """(table, place) -> source -> rows of the live view when the batch of that place was in silver and not in gold."""
    return {}


@pytest.fixture(scope="module")
def delivered(spark, here, lives):
    """table -> source -> batches, all of them written to silver and run through gold batch by batch."""
    streams = random_streams(range(NUM_STREAMS))
    streams["items"] |= {named(sentence): placed(batches, EXAMPLE_BATCHES) for sentence, batches in EXAMPLES.items()}
    streams["items"] |= {
        "renumbered": placed(
            [
                [ins(k, k, NAME=str(k)) for k in range(1, 121)],
                [move(200 + k, k, k + 1, "T") for k in range(1, 61)],
                [move(200 + k, k, k + 1, "T") for k in range(61, 121)],
            ],
            EXAMPLE_BATCHES,
        )
    }
    bring(spark, here, streams, lives=lives)
    return streams


def random_streams(numbers) -> dict[str, dict[str, list[list[Change]]]]:
    """table -> source -> batches. Each number is a stream, and comes in several orders: one source each."""
    streams: dict[str, dict[str, list[list[Change]]]] = {table: {} for table in KEYS}
    for number in numbers:
        flavour = next(f for f, said in FLAVOURS.items() if number % 20 in said["of_20"])
        table, places = FLAVOURS[flavour]["table"], FLAVOURS[flavour]["places"]
        rng = random.Random(f"{flavour} {number}")
        changes = stream(
            rng,
            keys=KEYS[table],
            **{k: v for k, v in FLAVOURS[flavour].items() if k not in ("of_20", "table", "places")},
        )
        for order, late in ORDERS.items():
            at = places if order != "late" else LATE[table]
            batches = deliver(rng, changes, len(at), LATE_OF_MIXED if flavour == "mixed" else late, repeated=0.0)
            streams[table][f"{flavour}_{number:05d}_{order}"] = placed(batches, at)
    return streams


def bring(spark, here, streams: dict, first: int = 0, end: str = "", lives: dict | None = None) -> None:
    """In: table -> source -> batches; the number of the first batch; how the names of the tables end."""
    for place in range(max(len(batches) for of_table in streams.values() for batches in of_table.values())):
        batch = {
            table + end: {
                source: batches[place]
                for source, batches in of_table.items()
                if place < len(batches) and batches[place]
            }
            for table, of_table in streams.items()
        }
        write_silver(spark, first + place, batch, columns=lambda table, version: KEYS[table.removesuffix(end)].columns)
        for table, live_place in LIVE if lives is not None else ():
            if live_place == place:
                lives[table, place] = found_live(spark, table)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "SMALL_CHANGES", -1 if place in LARGE else build.SMALL_CHANGES)
            patch.setattr(small_batches, "WHOLE_ROWS", -1 if place in READ else small_batches.WHOLE_ROWS)
            build_gold(here, spark, [table for table, of_table in batch.items() if of_table])


def placed(batches: list[list[Change]], places: list[int]) -> list[list[Change]]:
    """The batches of one stream at their places among all batches."""
    at = dict(zip(places, batches))
    return [at.get(place, []) for place in range(1 + places[-1])]


def named(sentence: str) -> str:
    return sentence.replace(" ", "_").replace("'", "")


def columns_of(table: str) -> str:
    return ", ".join(KEYS[table].columns)


def folded(table: str, changes: list[Change]) -> tuple:
    """Versions and anomalies."""
    keys = KEYS[table]
    return reference.fold(changes, list(keys.types), keys.columns)


def expected_history(table: str, batches: list[list[Change]], first: int = 0) -> list[tuple]:
    columns, changes = KEYS[table].columns, [c for batch in batches for c in batch]
    by_seq = {c.seq: c for c in changes if c.op != "EMPTY_LOAD"}
    brought = {(c.seq, c.op == "EMPTY_LOAD"): number for number, batch in enumerate(batches, first) for c in batch}
    return [
        (
            *(v.values.get(n) for n in columns),
            v.valid_from_seq,
            v.valid_to_seq,
            v.is_complete,
            [n.lower() for n in v.unknown(columns)],
            v.conflict,
            by_seq[v.valid_from_seq].op,
            v.key_changed,
            by_seq[v.valid_from_seq].transaction_id,
            by_seq[v.valid_from_seq].timestamp,
            brought[v.valid_from_seq, False],
        )
        for v in folded(table, changes)[0]
    ]


def found_history(spark, table: str, end: str = "") -> dict[str, list[tuple]]:
    return by_source(
        spark.sql(
            f"select source, {columns_of(table)}, valid_from_seq, valid_to_seq, is_complete, not_supplied, conflict, "
            f"operation, key_changed, transaction_id, change_timestamp, batch_id from gold.{table}{end}__history "
            f"order by source, {', '.join(KEYS[table].types)}, valid_from_seq"
        )
    )


def show(batches, expected: list, found: list) -> str:
    """The first difference of one stream, with the stream."""
    lines = [f"batch {n}:\n" + "\n".join(f"  {c}" for c in batch) for n, batch in enumerate(batches)]
    missing, extra = [r for r in expected if r not in found], [r for r in found if r not in expected]
    return "\n".join(["", *lines, "expected, not found:", *map(str, missing), "found, not expected:", *map(str, extra)])


def assert_history(table: str, found: dict[str, list], streams: dict[str, list], first: int = 0) -> None:
    wrong = [
        source
        for source, batches in streams.items()
        if expected_history(table, batches, first) != found.get(source, [])
    ]
    if wrong:
        source = min(wrong, key=lambda w: sum(len(b) for b in streams[w]))
        pytest.fail(
            f"{len(wrong)} of {len(streams)} streams differ, the shortest is {source}:"
            + show(streams[source], expected_history(table, streams[source], first), found.get(source, [])),
            pytrace=False,
        )
    assert found.keys() <= streams.keys()


def inversions(batches: list[list[Change]]) -> int:
    """Changes that come in an earlier batch than one before them."""
    return sum(
        later.seq < earlier.seq
        for n, batch in enumerate(batches)
        for earlier in batch
        for after in batches[n + 1 :]
        for later in after
    )


def test_the_orders_of_a_stream_differ():
    streams = {
        source: batches for of_table in random_streams(range(400)).values() for source, batches in of_table.items()
    }
    for flavour in FLAVOURS:
        orders = {
            order: [
                batches for source, batches in streams.items() if source.startswith(flavour) and source.endswith(order)
            ]
            for order in ORDERS
        }
        assert sum(inversions(batches) > 0 for batches in orders["late"]) > 0.6 * len(
            orders["late"]
        )  # the cut may be where few changes are behind it
        assert flavour == "mixed" or not any(map(inversions, orders["in_time"] + orders["cut_elsewhere"]))
        for one, two in (("in_time", "cut_elsewhere"), ("in_time", "late"), ("cut_elsewhere", "late")):
            same = [
                [set(map(str, b)) for b in x if b] == [set(map(str, b)) for b in y if b]
                for x, y in zip(orders[one], orders[two])
            ]
            assert sum(same) < 0.2 * len(same), (flavour, one, two)


@pytest.fixture(scope="module")
def items_history(spark, delivered):
    return found_history(spark, "items")


@pytest.mark.parametrize("table", KEYS)
def test_history_equals_the_reference(request, spark, delivered, table):
    found = request.getfixturevalue("items_history") if table == "items" else found_history(spark, table)
    assert_history(table, found, delivered[table])


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_an_example(delivered, items_history, sentence):
    batches, found = delivered["items"][named(sentence)], items_history.get(named(sentence), [])
    assert found == expected_history("items", batches), show(batches, expected_history("items", batches), found)


@pytest.mark.proof
@pytest.mark.parametrize("number", ROUNDS or [pytest.param(0, marks=pytest.mark.skip(reason=TAKES_HOURS))])
def test_other_streams_equal_the_reference_too(spark, here, number):
    streams, first = (
        random_streams(range(number, number + 2000)),
        1 + (spark.sql("select max(batch_id) from silver.batches").first()[0] or 0),
    )
    bring(spark, here, streams, first, f"_{number}")
    for table, of_table in streams.items():
        assert_history(table, found_history(spark, table, f"_{number}"), of_table, first)


def found_live(spark, table: str) -> dict[str, list[tuple]]:
    return by_source(
        spark.sql(
            f"select source, {columns_of(table)}, valid_from_seq, is_complete, array_sort(not_supplied), is_held "
            f"from public.{table}__live order by source, {', '.join(KEYS[table].types)}"
        )
    )


def expected_live(table: str, applied: list[Change], pending: list[Change]) -> list[tuple]:
    """What the live view says of a source: its changes up to the first one that cannot be folded without the log."""
    keys = KEYS[table]
    holding = [
        c.seq
        for c in pending
        if c.op == "LOAD_END"
        or c.op in reference.UPDATES
        and reference.before_key(c, keys.types) != reference.after_key(c, keys.types)
    ]
    if applied and any(c.seq <= max(a.seq for a in applied) for c in pending):
        holding.append("")
    shown = applied + [c for c in pending if c.seq < min(holding, default="~")]
    return [
        (
            *(v.values.get(n) for n in keys.columns),
            v.valid_from_seq,
            v.is_complete,
            sorted(n.lower() for n in v.unknown(keys.columns)),
            holding != [],
        )
        for v in reference.current(folded(table, shown)[0])
    ]


@pytest.mark.parametrize("table, place", LIVE)
def test_the_live_view_has_what_gold_has_not_taken_yet(delivered, lives, table, place):
    wrong, num_held, num_moved = [], 0, 0
    for source, batches in delivered[table].items():
        applied, pending = (
            [c for batch in batches[:place] for c in batch],
            batches[place] if place < len(batches) else [],
        )
        expected, found = expected_live(table, applied, pending), lives[table, place].get(source, [])
        wrong += [source + show(batches[: place + 1], expected, found)] if expected != found else []
        is_held = any(row[-1] for row in expected)
        num_held += is_held
        num_moved += bool(pending) and not is_held and expected != expected_live(table, applied, [])
    assert wrong == [], f"{len(wrong)} differ, one is {min(wrong, key=len)}"
    assert min(num_held, num_moved) >= min(10, NUM_STREAMS // 20)


def changes_of(delivered, table: str) -> dict[str, list[Change]]:
    """source -> its changes."""
    return {source: [c for batch in batches for c in batch] for source, batches in delivered[table].items()}


@pytest.mark.parametrize("table", KEYS)
def test_current_holds_the_open_versions_and_no_others(spark, delivered, table):
    keys = ", ".join(KEYS[table].types)
    found = by_source(spark.sql(f"select source, {keys}, valid_from_seq from gold.{table}__current order by all"))
    expected = {
        source: [(*v.key, v.valid_from_seq) for v in reference.current(folded(table, changes)[0])]
        for source, changes in changes_of(delivered, table).items()
    }
    assert found == {source: versions for source, versions in expected.items() if versions}


@pytest.mark.parametrize("table", KEYS)
def test_periods_have_the_times_in_their_change_seqs(spark, delivered, table):
    def time(change_seq):
        return change_seq and dt.datetime.strptime(change_seq[:16] + "0000", "%Y%m%d%H%M%S%f")

    found = rows(spark.sql(f"select valid_from_seq, valid_to_seq, valid_from, valid_to from gold.{table}__history"))
    assert (
        [(valid_from, valid_to) for _, _, valid_from, valid_to in found]
        == [(time(from_seq), time(to_seq)) for from_seq, to_seq, _, _ in found]
        != []
    )


@pytest.mark.parametrize("table", KEYS)
def test_before_after_is_the_typed_log(spark, delivered, table):
    keys = KEYS[table]

    def upper(names):
        return sorted((n.upper() for n in names), key=keys.columns.index)

    def image(values):
        return values and {n.upper(): v for n, v in values.items()}

    found = by_source(
        spark.sql(
            "select source, change_seq, operation, before, after, changed, mask_conflicts, not_supplied, "
            f"key_changed from gold.{table}__before_after order by source, change_seq, operation = 'LOAD_END', "
            "operation <> 'EMPTY_LOAD'"
        )
    )
    assert {
        source: [
            {
                "seq": seq,
                "op": op,
                "before": image(before),
                "after": image(after),
                "changed": [n.upper() for n in changed],
                "mask_conflicts": upper(mask_conflicts),
                "not_supplied": [n.upper() for n in not_supplied],
                "key_changed": key_changed,
            }
            for seq, op, before, after, changed, mask_conflicts, not_supplied, key_changed in of_source
        ]
        for source, of_source in found.items()
    } == {
        source: reference.before_after(changes, list(keys.types), keys.columns)
        for source, changes in changes_of(delivered, table).items()
    }


@pytest.mark.parametrize("table", KEYS)
def test_anomalies_are_those_of_the_reference(spark, delivered, table):
    keys = KEYS[table]
    found = by_source(spark.sql(f"select source, change_seq, kind from gold.{table}__anomalies order by all"))
    expected = {
        source: reference.anomalies(changes, list(keys.types), keys.columns)
        for source, changes in changes_of(delivered, table).items()
    }
    assert found == {source: anomalies for source, anomalies in expected.items() if anomalies}


@pytest.mark.parametrize("step", gold.STEPS)
@pytest.mark.parametrize("table", KEYS)
def test_delta_rs_reads_what_spark_reads(spark, lakehouse, delivered, table, step):
    def plain(value):
        if isinstance(value, dict):
            return {n: plain(v) for n, v in value.items()}
        return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value

    name = f"gold.{table}__{step}"
    found = [
        tuple(map(plain, row.values()))
        for row in lake.peek(lakehouse, name, [f'"{c}"' for c in spark.table(name).columns])
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, rows(spark.table(name))))
    assert len(found) > min(NUM_STREAMS // 10, 100)
