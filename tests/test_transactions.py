"""silver.transactions: one row per transaction, in whatever batches its events come; with Spark and without.

Each scenario is a source of one lakehouse, and all of them are followed together, batch by batch. A scenario is a
generator: it yields the events of its next batch, as (place, counter, is_last[, id]), and is given its transactions
after that batch, as (first place, number of changes, state).
"""

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import deltalake
import pytest

from inlet import lake
from inlet.codecs.results import event_detail
from inlet.errors import Event
from inlet.silver import small_transactions, transactions, whole_transactions
from tests import scenarios

KINDS = ["ignored", "lob_chunk"]
OF_TABLE = {"source_schema": "S", "source_table": "T", "operation": "INSERT"}
SCENARIOS: dict[str, Callable] = {}
TELL_FIRST: set[str] = set()  # scenarios whose codec tells a transaction's first event
HAVE_OTHERS: set[str] = set()  # scenarios with events that are no changes


def place(number: int) -> str:
    return f"{number:035d}"


@dataclass
class Feed:
    """The source of a scenario, and what its next batch brings."""

    lakehouse: str
    source: str
    batch_id: int = 1
    new: dict[str, list[dict]] = field(default_factory=lambda: defaultdict(list))  # rows of tables

    def add(self, table: str, **row) -> None:
        self.new[table].append(row | {"source": self.source, "batch_id": self.batch_id})

    def add_change(self, number: int, counter: int | None, is_last: bool | None, id_: str = "A") -> None:
        event = {"transaction_event_counter": counter, "transaction_last_event": is_last, "transaction_id": id_}
        self.add("silver.changes", change_seq=place(number), **event, **OF_TABLE)

    def add_other(self, detail: str, unit: str = "a@0") -> None:
        of_unit = {"unit_id": f"{self.source}/{unit}", "unit_offset": self.batch_id}
        self.add("silver.control_events", kind="lob_chunk", detail=detail, **of_unit)

    def taken(self) -> dict[str, list[dict]]:
        """The rows of its batch; the next batch begins."""
        taken, self.new = self.new, defaultdict(list)
        self.batch_id += 1
        return taken

    def rows(self) -> list[dict]:
        """Its transactions."""
        of_source = f"where source = '{self.source}' order by first_change_seq, transaction_id"
        return lake.peek(self.lakehouse, "silver.transactions", list(small_transactions.ROW), of_source)


def scenario(*traits: set[str]) -> Callable:
    def add(steps: Callable) -> Callable:
        SCENARIOS[steps.__name__] = steps
        for names in traits:
            names.add(steps.__name__)
        return steps

    return add


def detail_of(number: int, counter: int | None, is_last: bool, id_: str = "A") -> str:
    """Of a control event, what it says of its transaction."""
    return json.dumps(event_detail(Event(id_, counter, is_last), place(number)))


def run(lakehouse: str, way: str, spark=None) -> dict[str, tuple[Exception | None, list[dict]]]:
    """Run all scenarios. Out: what each has failed with, and its rows."""
    feeds = {name: Feed(lakehouse, f"{name} ({way})") for name in SCENARIOS}
    batches = itertools.count(1)

    def take_batch(events: dict[str, Collection[tuple]]) -> dict[str, list[tuple]]:
        batch_id, new = next(batches), defaultdict(list)
        for name, feed in feeds.items():
            for event in events.get(name, ()):
                feed.add_change(*event)
            for table, rows in feed.taken().items():
                new[table] += rows
        for table, rows in new.items():
            lake.add_rows(lakehouse, table, rows)
        plain = set() if "large" in way else events.keys() - TELL_FIRST - HAVE_OTHERS
        for names in filter(None, (plain, events.keys() - plain)):  # first as in a project of plain sources alone
            follow(lakehouse, batch_id, {name: feeds[name].source for name in sorted(names)}, way, spark)
        return {name: as_expected(feeds[name].rows()) for name in events}

    failures = scenarios.go({name: SCENARIOS[name](feed) for name, feed in feeds.items()}, take_batch)
    return {name: (failures[name], feed.rows()) for name, feed in feeds.items()}


def as_expected(rows: list[dict]) -> list[tuple]:
    return [(int(row["first_change_seq"]), row["num_changes"], row["state"]) for row in rows]


def follow(lakehouse: str, batch_id: int, sources: dict[str, str], way: str, spark) -> None:
    """Bring silver.transactions up to a batch of these sources, which are given by scenario."""
    own = f"batch_id = {batch_id} and source in ({', '.join(map(repr, sources.values()))})"
    has_others, first = bool(sources.keys() & HAVE_OTHERS), [sources[name] for name in sources if name in TELL_FIRST]
    of_batch = lakehouse, own, KINDS if has_others else [], first, batch_id
    left = whole_transactions.append(*of_batch) if "large" in way else None
    if spark:
        transactions.update(spark, own, has_others, transactions.First(first, batch_id) if first else None, left)
    else:
        assert small_transactions.update(*of_batch, left)


@pytest.fixture(scope="module")
def in_python(tmp_path_factory):
    return run(str(tmp_path_factory.mktemp("small") / "lakehouse"), "delta-rs")


@pytest.fixture(
    scope="module",
    params=[
        "delta-rs",
        "large",  # what is whole in its batch is appended first
        pytest.param("Spark", marks=pytest.mark.spark),
        pytest.param("large, Spark", marks=[pytest.mark.spark, pytest.mark.rounds]),
    ],
)
def ran(request, tmp_path_factory, in_python):
    """The outcome of the scenarios in one of the ways to follow a batch."""
    way = request.param
    if "Spark" in way:
        return run(request.getfixturevalue("lakehouse"), way, request.getfixturevalue("spark"))
    return in_python if way == "delta-rs" else run(str(tmp_path_factory.mktemp("large") / "lakehouse"), way)


@scenario()
def an_id_that_is_used_again_is_another_transaction(feed):
    yield [(1, 1, False)]
    yield (2, 2, True), (3, 1, True)
    assert (yield [(4, 3, True)]) == [(1, 2, "complete"), (3, 1, "complete"), (4, 1, "impossible")]


@scenario()
def an_id_that_is_used_again_over_several_batches_is_another_transaction(feed):
    yield [(1, 1, True)]
    yield [(2, 3, True), (5, 1, False), (6, 2, False)]
    expected = [(1, 1, "complete"), (2, 1, "impossible"), (5, 3, "complete")]
    assert (yield [(7, 3, True)]) == expected
    # the last batch of all, in which nothing is open: Spark appends it
    assert (yield (8, 1, False), (9, 2, True)) == [*expected, (8, 2, "complete")]


@scenario()
def an_id_that_comes_back_without_its_first_event_leaves_its_namesake_alone(feed):
    yield (1, 1, False), (2, 2, True)
    assert (yield [(60, 2, True)]) == [(1, 2, "complete"), (60, 1, "impossible")]


@scenario()
def a_run_keeps_the_batch_of_its_last_change_when_its_id_is_looked_up_again(feed):
    """Publish stops waiting for what lacks events in the batches after it."""
    yield [(1, 1, False)]
    yield (60, 1, False), (61, 2, True), (65, 1, False), (66, 2, True)
    assert [(int(row["first_change_seq"]), row["batch_id"]) for row in feed.rows()] == [(1, 1), (60, 2), (65, 2)]


@scenario()
def a_transaction_with_a_gap_is_impossible_until_what_lacks_comes_late(feed):
    assert (yield (1, 1, False), (4, 3, False)) == [(1, 2, "open")]
    assert (yield [(5, 4, True)]) == [(1, 3, "impossible")]
    assert (yield [(2, 2, False)]) == [(1, 4, "complete")]


@scenario()
def a_transaction_within_another_one_of_its_id_divides_it(feed):
    yield (100, 1, False), (200, 2, True)
    now = yield (150, 1, False), (160, 2, True), (400, 1, True)
    assert now == [(100, 1, "open"), (150, 2, "complete"), (200, 1, "impossible"), (400, 1, "complete")]


@scenario()
def what_comes_late_makes_one_transaction_two(feed):
    assert (yield (5, 2, False), (6, 3, True)) == [(5, 2, "impossible")]
    assert (yield [(2, 1, False)]) == [(2, 3, "complete")]
    assert (yield [(3, 1, False)]) == [(2, 1, "open"), (3, 3, "complete")]


@scenario()
def a_source_that_counts_no_events_has_transactions_without_a_state(feed):
    yield (1, None, None), (2, None, None)
    assert (yield [(3, None, None)]) == [(1, 2, None), (3, 1, None)]


@scenario(TELL_FIRST)
def a_transaction_that_goes_on_uncounted_is_told_by_its_first_and_its_last_event(feed):
    """As one of journals that come in several messages."""
    whole = [(1, 3, "complete"), (4, 4, "complete")]
    all_uncounted, some_counted = (
        [(2, None, False), (3, None, True)],
        [(5, 2, False), (6, None, False), (7, None, True)],
    )
    now = yield (1, 1, False), *all_uncounted, (4, 1, False), *some_counted, (10, 1, False)
    assert now == [*whole, (10, 1, "open")]
    now = yield (9, None, True), (12, None, True)  # one without a first event, and the end of an open one
    assert now == [*whole, (9, 1, "impossible"), (10, 2, "complete")]
    now = yield (20, 1, False), (22, 3, False), (23, None, True)  # a gap among the counted ones
    assert now[-1] == (20, 3, "impossible")


@scenario(TELL_FIRST)
def a_reject_among_uncounted_events_may_be_one_of_them_until_it_is_resolved(feed):
    reject = {"kind": "bad_length", "change_seq": place(2), "unit_id": "u", "unit_offset": 0, "unit_length": 1}
    feed.add("silver.rejects", **reject)
    assert (yield (1, 1, False), (3, None, True)) == [(1, 2, "impossible")]
    table = deltalake.DeltaTable(lake.table_path(feed.lakehouse, "silver.rejects"))
    table.update(updates={"resolved_by": "2"}, predicate=f"source = '{feed.source}'")
    assert (yield [(9, 1, True)]) == [(1, 2, "complete"), (9, 1, "complete")]
    feed.add("silver.rejects", **reject)  # one that comes late
    assert (yield [(20, 1, True)]) == [(1, 2, "impossible"), (9, 1, "complete"), (20, 1, "complete")]


@scenario(TELL_FIRST)
def a_record_that_waits_among_uncounted_events_may_be_one_of_them_until_it_is_settled(feed):
    part = {"unit_id": "counted/t/0/2", "unit_offset": 0, "unit_length": 9, "part_key": "t/0", "change_seq": place(2)}
    feed.add("silver.waiting", **part, is_settled=False)
    assert (yield (1, 1, False), (3, None, True)) == [(1, 2, "impossible")]
    feed.add("silver.waiting", **part, is_settled=True)
    assert (yield [(9, 1, True)]) == [(1, 2, "complete"), (9, 1, "complete")]


@scenario(HAVE_OTHERS)
def a_transaction_that_ends_with_a_record_that_is_no_change_is_complete(feed):
    """As one whose last record is a chunk of a LOB, in a batch of its own."""
    assert (yield [(1, 1, False)]) == [(1, 1, "open")]
    feed.add_other(detail_of(2, 2, True))
    assert (yield []) == [(1, 1, "complete")]
    assert feed.rows()[0]["last_change_seq"] == place(2)


@scenario(HAVE_OTHERS)
def a_record_counts_once_however_it_was_read_before(feed):
    """As one of an unwanted table, whose file was read again; and an id is any text."""
    id_ = 'it\'s "Ä\\%_"'
    feed.add_other(detail_of(2, 2, True, id_), "file.dat@7")
    feed.add_other(detail_of(5, 2, True, "B"), "file.dat@8")
    assert (yield (1, 1, False, id_), (4, 1, False, "B")) == [(1, 1, "complete"), (4, 1, "complete")]
    feed.add("bronze.files", path="file.dat", ofs_start=0, num_units=1)  # read again: that of B is another one
    assert (yield (2, 2, False, id_), (6, 2, False, "B")) == [(1, 2, "open"), (4, 2, "open")]
    feed.add_other(detail_of(3, 3, True, id_), "file.dat@9")
    assert (yield []) == [(1, 2, "complete"), (4, 2, "open")]


@scenario(HAVE_OTHERS)
def an_event_whose_detail_is_the_feeds_own_text_is_none(feed):
    """As a DDL message of GoldenGate's JSON, which may have a member of that name."""
    texts = '{"transaction_id": "A"}', '{"tokens": {"transaction_id": "A"}}', 'no JSON, "transaction_id"'
    for number, detail in enumerate(texts, 1):
        feed.add_other(detail)
        now = yield [(number, number, number == len(texts))]
    assert now == [(1, 3, "complete")]


def random_events(seed: int) -> Callable:
    def steps(feed):
        rng = random.Random(seed)
        for n in range(1, 4):
            events = []
            for number in rng.sample(range(n * 20, n * 20 + 60), 30):
                event = number * 10 + n, rng.choice([1, 1, 2, 2, 3, None]), rng.random() < 0.3, rng.choice("AB")
                if rng.random() < 0.2:
                    feed.add_other(detail_of(*event))
                else:
                    events.append(event)
            of_unit = {"unit_id": f"u{n}", "unit_length": 1, "unit_offset": 0}
            feed.add("silver.rejects", kind="bad_length", change_seq=place(rng.randrange(1000)), **of_unit)
            now = yield events
            assert len({state for _, _, state in now}) > 1

    steps.__name__ = f"random_events_{seed}"
    return steps


for seed in range(40, 45):
    scenario(TELL_FIRST, HAVE_OTHERS)(random_events(seed))


@pytest.mark.parametrize("name", SCENARIOS)
def test_transactions(ran, name):
    failure, _ = ran[name]
    scenarios.check(failure)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_way_writes_the_same_rows(ran, in_python, name):
    found, expected = ([row | {"source": name} for row in outcomes[name][1]] for outcomes in (ran, in_python))
    assert found == expected


def test_what_is_too_much_for_python_is_left_to_spark(tmp_path, monkeypatch):
    feed = Feed(str(tmp_path / "lakehouse"), "s")

    def update(batch_id: int, *events: tuple) -> bool:
        for event in events:
            feed.add_change(*event)
        lake.add_rows(feed.lakehouse, "silver.changes", feed.taken()["silver.changes"])
        return small_transactions.update(feed.lakehouse, f"batch_id = {batch_id}", [], [], batch_id)

    assert update(1, (1, 1, False))
    monkeypatch.setattr(small_transactions, "MAX_ROWS", 2)
    assert not update(2, (2, 2, False), (3, 3, True))
    assert as_expected(feed.rows()) == [(1, 1, "open")]
