"""Transactions that are whole in a batch, of changes in any order, against the same in plain Python."""

import json
import random
from collections import defaultdict

import pyarrow as pa
import pytest

from inlet import lake
from inlet.codecs.results import event_detail
from inlet.errors import Event
from inlet.silver import whole_transactions

BATCH, TABLES = 7, ("DEPOT.STOCK", "DEPOT.PRODUCTS", "SHOP.ORDERS")


def expected(events: list[dict], tell_first: set[str]) -> tuple[list[dict], set[tuple[str, str]]]:
    """The transactions of ids that are whole, and all other ids."""
    by_id = defaultdict(list)
    for event in sorted(events, key=lambda event: event["change_seq"]):
        by_id[event["source"], event["transaction_id"]].append(event)
    rows, others = [], set()
    for place, of_id in by_id.items():
        counters = {event["transaction_event_counter"] for event in of_id}
        if counters == {None}:
            if place[0] in tell_first or any(event["transaction_last_event"] for event in of_id[:-1]):
                others.add(place)
            else:
                rows.append(row(place, of_id, None))
            continue
        runs = []
        for n, event in enumerate(of_id):
            if n == 0 or event["transaction_event_counter"] == 1 or of_id[n - 1]["transaction_last_event"]:
                runs.append([])
            runs[-1].append(event)
        if all(is_complete(run) for run in runs):
            rows += [row(place, run, "complete") for run in runs]
        else:
            others.add(place)
    return rows, others


def is_complete(run: list[dict]) -> bool:
    lasts = [bool(event["transaction_last_event"]) for event in run]
    in_order = [event["transaction_event_counter"] for event in run] == list(range(1, len(run) + 1))
    return in_order and lasts == [False] * (len(run) - 1) + [True]


def row(place: tuple[str, str], run: list[dict], state: str | None) -> dict:
    return {
        "source": place[0],
        "transaction_id": place[1],
        "first_change_seq": run[0]["change_seq"],
        "last_change_seq": run[-1]["change_seq"],
        "num_changes": len(run),
        "last_counter": len(run) if state else None,
        "tables": sorted({f"{event['source_schema']}.{event['source_table']}" for event in run}),
        "state": state,
        "batch_id": BATCH,
    }


def random_events(rng: random.Random) -> list[dict]:
    """Transactions of few ids, some of which come again, lack an event, have two at one place or count none; in the
    order of a file, here and there out of it."""
    events, place = [], 0
    for _ in range(rng.randrange(1, 30)):
        source, id_ = rng.choice("ab"), str(rng.randrange(40))
        num, is_counted = rng.randrange(1, 6), rng.random() < 0.8
        of_id = []
        for n in range(1, num + 1):
            place += 1
            schema, table = rng.choice(TABLES).split(".")
            event = {"source": source, "source_schema": schema, "source_table": table, "transaction_id": id_}
            event |= {"change_seq": f"{place:035}", "transaction_event_counter": n if is_counted else None}
            of_id.append(event | {"transaction_last_event": n == num if is_counted else None})
        if rng.random() < 0.15:
            of_id.pop(rng.randrange(num))
        if rng.random() < 0.1 and of_id:
            of_id[-1]["transaction_event_counter"] = rng.randrange(1, 4)
        events += of_id
    for _ in range(rng.choice((0, 0, 2, 20))):
        if len(events) > 1:
            a, b = rng.sample(range(len(events)), 2)
            events[a], events[b] = events[b], events[a]
    return events


def store(lakehouse, events: list[dict], others: list[dict] = ()) -> None:
    rows = [event | {"operation": "INSERT", "batch_id": BATCH} for event in events]
    lake.add_rows(lakehouse, "silver.control_events", [{"source": "a", "kind": "ddl", "batch_id": BATCH}, *others])
    names = [*rows[0]] if rows else []
    types = {"transaction_event_counter": pa.int64(), "transaction_last_event": pa.bool_(), "batch_id": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    lake.add_arrow(lakehouse, "silver.changes", pa.Table.from_pylist(rows, schema))


def append(lakehouse, tell_first=()) -> tuple[list[dict], set[tuple[str, str]]]:
    left = whole_transactions.append(lakehouse, f"batch_id = {BATCH}", ["ignored"], tell_first, BATCH)
    columns = [column.name for column in whole_transactions.change.TRANSACTIONS]
    return lake.peek(lakehouse, "silver.transactions", columns), left


def in_order(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda row: (row["source"], row["first_change_seq"]))


@pytest.mark.parametrize("seed", range(60))
def test_whole_transactions_of_random_changes(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(whole_transactions, "LEN_BATCH", rng.choice((1, 3, 1 << 16)))
    events, tell_first = random_events(rng), rng.choice((set(), {"a"}))
    store(str(tmp_path), events)
    rows, others = append(str(tmp_path), tell_first)
    expected_rows, expected_others = expected(events, tell_first)
    counted = {id_of(event) for event in events if event["transaction_event_counter"] is not None}
    is_in_order = events == sorted(events, key=lambda event: event["change_seq"])
    assert expected_others == others if is_in_order else expected_others & counted == others & counted
    assert expected_others <= others
    assert in_order(rows) == in_order([row for row in expected_rows if id_of(row) not in others])


def id_of(row: dict) -> tuple[str, str]:
    return row["source"], row["transaction_id"]


def test_an_id_with_events_that_are_no_changes_is_left(tmp_path):
    events = random_events(random.Random(1))
    rows, others = expected(events, set())
    ignored = ("a", next(row["transaction_id"] for row in rows if row["source"] == "a"))
    details = [json.dumps(event_detail(Event(id_, 1, True), "1")) for id_ in (ignored[1], "of no change", None)]
    store(str(tmp_path), events, [{"source": "a", "kind": "ignored", "detail": d, "batch_id": BATCH} for d in details])
    rows = [row for row in rows if id_of(row) != ignored]
    appended, left = append(str(tmp_path))
    assert (in_order(appended), left) == (in_order(rows), others | {ignored, ("a", "of no change")})


def test_a_batch_without_transactions(tmp_path):
    store(str(tmp_path), [event | {"transaction_id": None} for event in random_events(random.Random(1))])
    assert append(str(tmp_path)) == ([], set())


@pytest.mark.parametrize("limit", ["MAX_RUNS", "MAX_LEFT"])
def test_too_many_transactions_are_left_to_spark(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(whole_transactions, limit, 1)
    store(str(tmp_path), random_events(random.Random(4)))
    assert whole_transactions.append(str(tmp_path), f"batch_id = {BATCH}", [], (), BATCH) is None
    assert lake.peek(str(tmp_path), "silver.transactions", ["source"]) == []
