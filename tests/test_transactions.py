"""silver.transactions: one row per transaction, in whatever batches its events come; with Spark and without."""

import json
import random
from dataclasses import dataclass
from typing import Any

import pytest

from inlet import lake
from inlet.codecs.results import event_detail
from inlet.errors import Event
from inlet.silver import small_transactions, transactions, whole_transactions

SPARK = pytest.param("Spark", marks=pytest.mark.spark)
LARGE = pytest.param("large, Spark", marks=[pytest.mark.spark, pytest.mark.rounds])
KINDS = ["ignored", "lob_chunk"]


def place(number: int) -> str:
    return f"{number:035d}"


@dataclass
class Feed:
    """What silver holds of one source, and its transactions."""

    lakehouse: str
    source: str
    spark: Any = None  # a session that brings them up to date; None: without Spark
    tells_first: bool = False
    has_others: bool = False
    is_large: bool = False  # batches are as large ones: what is whole in one is appended first

    def add(self, table: str, batch_id: int, **row) -> None:
        lake.add_rows(self.lakehouse, table, [row | {"source": self.source, "batch_id": batch_id}])

    def batch(self, batch_id: int, *events: tuple) -> list[tuple]:
        """Store events (place, counter, is_last[, id]) of a batch. Out: the transactions, as (first place, number of
        changes, state)."""
        of_table = {"source_schema": "S", "source_table": "T", "operation": "INSERT"}
        rows = [
            {"change_seq": place(number), "transaction_event_counter": counter, "transaction_last_event": is_last}
            | {"transaction_id": id_[0] if id_ else "A", "source": self.source, "batch_id": batch_id}
            | of_table
            for number, counter, is_last, *id_ in events
        ]
        lake.add_rows(self.lakehouse, "silver.changes", rows)
        return self.follow(batch_id)

    def follow(self, batch_id: int) -> list[tuple]:
        own, first = f"batch_id = {batch_id} and source = '{self.source}'", [self.source] * self.tells_first
        of_batch = self.lakehouse, own, KINDS if self.has_others else [], first, batch_id
        left = whole_transactions.append(*of_batch) if self.is_large else None
        if self.spark:
            of_codec = transactions.First(first, batch_id) if first else None
            transactions.update(self.spark, own, self.has_others, of_codec, left)
        else:
            assert small_transactions.update(*of_batch, left)
        return [(int(row["first_change_seq"]), row["num_changes"], row["state"]) for row in self.rows()]

    def rows(self) -> list[dict]:
        of_source = f"where source = '{self.source}' order by first_change_seq"
        return lake.peek(self.lakehouse, "silver.transactions", list(small_transactions.ROW), of_source)


@pytest.fixture(params=["delta-rs", "large", SPARK, LARGE])
def feed(request, tmp_path) -> Feed:
    source = request.node.name.replace("'", "")
    is_large = "large" in request.param
    if "Spark" in request.param:
        spark = request.getfixturevalue("spark")
        return Feed(request.getfixturevalue("lakehouse"), source, spark, is_large=is_large)
    return Feed(str(tmp_path / "lakehouse"), source, is_large=is_large)


def test_an_id_that_is_used_again_is_another_transaction(feed):
    feed.batch(1, (1, 1, False))
    feed.batch(2, (2, 2, True), (3, 1, True))
    feed.batch(3, (4, 3, True), (5, 1, False), (6, 2, False))
    assert feed.batch(4, (7, 3, True)) == [
        (1, 2, "complete"),
        (3, 1, "complete"),
        (4, 1, "impossible"),
        (5, 3, "complete"),
    ]


def test_an_id_that_comes_back_without_its_first_event_leaves_its_namesake_alone(feed):
    feed.batch(1, (1, 1, False), (2, 2, True))
    assert feed.batch(2, (60, 2, True)) == [(1, 2, "complete"), (60, 1, "impossible")]


def test_a_run_keeps_the_batch_of_its_last_change_when_its_id_is_looked_up_again(feed):
    """Publish stops waiting for what lacks events in the batches after it."""
    feed.batch(0, (1, 1, False))
    feed.batch(1, (60, 1, False), (61, 2, True), (65, 1, False), (66, 2, True))
    assert [(int(row["first_change_seq"]), row["batch_id"]) for row in feed.rows()] == [(1, 0), (60, 1), (65, 1)]


def test_a_transaction_with_a_gap_is_impossible_until_what_lacks_comes_late(feed):
    assert feed.batch(1, (1, 1, False), (4, 3, False)) == [(1, 2, "open")]
    assert feed.batch(2, (5, 4, True)) == [(1, 3, "impossible")]
    assert feed.batch(3, (2, 2, False)) == [(1, 4, "complete")]


def test_a_transaction_within_another_one_of_its_id_divides_it(feed):
    feed.batch(1, (100, 1, False), (200, 2, True))
    now = feed.batch(2, (150, 1, False), (160, 2, True), (400, 1, True))
    assert now == [(100, 1, "open"), (150, 2, "complete"), (200, 1, "impossible"), (400, 1, "complete")]


def test_what_comes_late_makes_one_transaction_two(feed):
    assert feed.batch(1, (5, 2, False), (6, 3, True)) == [(5, 2, "impossible")]
    assert feed.batch(2, (2, 1, False)) == [(2, 3, "complete")]
    assert feed.batch(3, (3, 1, False)) == [(2, 1, "open"), (3, 3, "complete")]


def test_a_source_that_counts_no_events_has_transactions_without_a_state(feed):
    feed.batch(1, (1, None, None), (2, None, None))
    assert feed.batch(2, (3, None, None)) == [(1, 2, None), (3, 1, None)]


def test_a_transaction_that_goes_on_uncounted_is_told_by_its_first_and_its_last_event(feed):
    """As one of journals that come in several messages."""
    feed.tells_first = True
    feed.batch(1, (1, 1, False), (2, None, False), (3, None, True))  # whole
    now = feed.batch(2, (4, 1, False), (5, 2, False), (6, None, False), (7, None, True), (10, 1, False))  # one of two
    whole = [(1, 3, "complete"), (4, 4, "complete")]
    assert now == [*whole, (10, 1, "open")]
    now = feed.batch(3, (9, None, True), (12, None, True))  # one without a first event, and the end of an open one
    assert now == [*whole, (9, 1, "impossible"), (10, 2, "complete")]
    now = feed.batch(4, (20, 1, False), (22, 3, False), (23, None, True))  # a gap among the counted ones
    assert now[-1] == (20, 3, "impossible")


def test_a_reject_among_uncounted_events_may_be_one_of_them_until_it_is_resolved(feed):
    feed.tells_first = True
    reject = {"kind": "bad_length", "change_seq": place(2), "unit_id": "u", "unit_offset": 0, "unit_length": 1}
    feed.add("silver.rejects", 1, **reject)
    assert feed.batch(1, (1, 1, False), (3, None, True)) == [(1, 2, "impossible")]
    resolve(feed, 2)
    assert feed.batch(2, (9, 1, True)) == [(1, 2, "complete"), (9, 1, "complete")]
    feed.add("silver.rejects", 3, **reject)  # one that comes late
    assert feed.batch(3, (20, 1, True)) == [(1, 2, "impossible"), (9, 1, "complete"), (20, 1, "complete")]


def resolve(feed: Feed, batch_id: int) -> None:
    import deltalake

    table = deltalake.DeltaTable(lake.table_path(feed.lakehouse, "silver.rejects"))
    table.update(updates={"resolved_by": str(batch_id)}, predicate=f"source = '{feed.source}'")


def test_a_record_that_waits_among_uncounted_events_may_be_one_of_them_until_it_is_settled(feed):
    feed.tells_first = True
    part = {"unit_id": "counted/t/0/2", "unit_offset": 0, "unit_length": 9, "part_key": "t/0", "change_seq": place(2)}
    feed.add("silver.waiting", 1, **part, is_settled=False)
    assert feed.batch(1, (1, 1, False), (3, None, True)) == [(1, 2, "impossible")]
    feed.add("silver.waiting", 2, **part, is_settled=True)
    assert feed.batch(2, (9, 1, True)) == [(1, 2, "complete"), (9, 1, "complete")]


def test_a_transaction_that_ends_with_a_record_that_is_no_change_is_complete(feed):
    """As one whose last record is a chunk of a LOB, in a batch of its own."""
    feed.has_others = True
    assert feed.batch(1, (1, 1, False)) == [(1, 1, "open")]
    add_other(feed, 2, Event("A", 2, True), 2)
    assert feed.follow(2) == [(1, 1, "complete")]
    assert feed.rows()[0]["last_change_seq"] == place(2)


def add_other(feed: Feed, batch_id: int, event: Event, number: int, unit: str = "a@0") -> None:
    detail = json.dumps(event_detail(event, place(number)))
    of_unit = {"unit_id": f"{feed.source}/{unit}", "unit_offset": 0}
    feed.add("silver.control_events", batch_id, kind="lob_chunk", detail=detail, **of_unit)


def test_a_record_counts_once_however_it_was_read_before(feed):
    """As one of an unwanted table, whose file was read again; and an id is any text."""
    feed.has_others, id_ = True, 'it\'s "Ä\\%_"'
    add_other(feed, 1, Event(id_, 2, True), 2, "file.dat@7")
    assert feed.batch(1, (1, 1, False, id_)) == [(1, 1, "complete")]
    again = {"path": "file.dat", "ofs_start": 0, "num_units": 1}
    feed.add("bronze.files", 2, **again)
    assert feed.batch(2, (2, 2, False, id_)) == [(1, 2, "open")]
    add_other(feed, 3, Event(id_, 3, True), 3, "file.dat@9")
    assert feed.follow(3) == [(1, 2, "complete")]


def test_an_event_whose_detail_is_the_feeds_own_text_is_none(feed):
    """As a DDL message of GoldenGate's JSON, which may have a member of that name."""
    feed.has_others = True
    texts = '{"transaction_id": "A"}', '{"tokens": {"transaction_id": "A"}}', 'no JSON, "transaction_id"'
    for batch_id, detail in enumerate(texts, 1):
        of_unit = {"unit_id": f"{feed.source}/a@0", "unit_offset": batch_id}
        feed.add("silver.control_events", batch_id, kind="lob_chunk", detail=detail, **of_unit)
        now = feed.batch(batch_id, (batch_id, batch_id, batch_id == len(texts)))
    assert now == [(1, 3, "complete")]


def test_what_is_too_much_for_python_is_left_to_spark(tmp_path, monkeypatch):
    feed = Feed(str(tmp_path / "lakehouse"), "s")
    assert feed.batch(1, (1, 1, False)) == [(1, 1, "open")]
    monkeypatch.setattr(small_transactions, "MAX_ROWS", 2)
    with pytest.raises(AssertionError):
        feed.batch(2, (2, 2, False), (3, 3, True))
    assert [(row["num_changes"], row["state"]) for row in feed.rows()] == [(1, "open")]


@pytest.mark.rounds
def test_random_events_are_the_same_transactions_with_spark_and_without(spark, lakehouse, tmp_path):
    rng = random.Random(40)
    feeds = [
        Feed(lakehouse, "random", spark, True, True),
        Feed(str(tmp_path / "lakehouse"), "random", None, True, True),
        Feed(str(tmp_path / "large"), "random", None, True, True, True),
    ]
    for batch_id in range(1, 5):
        events, others = [], []
        for number in rng.sample(range(batch_id * 20, batch_id * 20 + 60), 30):
            event = number * 10 + batch_id, rng.choice([1, 1, 2, 2, 3, None]), rng.random() < 0.3, rng.choice("AB")
            (others if rng.random() < 0.2 else events).append(event)
        reject = {"kind": "bad_length", "change_seq": place(rng.randrange(1000)), "unit_length": 1, "unit_offset": 0}
        for feed in feeds:
            for number, counter, is_last, id_ in others:
                add_other(feed, batch_id, Event(id_, counter, is_last), number)
            feed.add("silver.rejects", batch_id, **reject, unit_id=f"u{batch_id}")
            feed.batch(batch_id, *events)
        with_spark, without, as_large = (feed.rows() for feed in feeds)
        assert with_spark == without == as_large
        assert len({row["state"] for row in without}) > 1
