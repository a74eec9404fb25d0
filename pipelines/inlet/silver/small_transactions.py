"""silver.transactions brought up to a batch without Spark, which takes ten seconds for some thousand events.

What a transaction is, and which events are looked at, transactions.py says; this is the same in plain Python. Where
there is more to look at than Python should hold, nothing is written, and Spark does it.
"""

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from inlet import lake
from inlet.sql import plain_among, plain_literal
from inlet.unit import OFFSET

MAX_ROWS, MAX_NAMES = 100_000, 5_000  # that are looked at; ids, sources or files that a query may name
TABLE = "silver.transactions"
KEY = ("source", "transaction_id", "first_change_seq")
ROW = (*KEY, "last_change_seq", "num_changes", "last_counter", "tables", "state", "batch_id")
ID_OF_EVENT = r"""regexp_replace(detail, '^.*"transaction_id": ("([^"\\]|\\.)*").*$', '\1')"""  # as JSON has it
REJECTED = "change_seq is not null and kind <> 'conflicting_duplicate'"
WAITS = """unit_length > 0 group by source, unit_id, unit_offset, change_seq
having max(2 * batch_id + cast(is_settled as bigint)) % 2 = 0"""  # the last row of a part says whether it is settled
MEMBERS = {
    "records",
    "transaction_id",
    "first_counter",
    "last_counter",
    "is_last",
    "first_change_seq",
    "last_change_seq",
}
Id = tuple[str, str]  # source, transaction_id
Places = dict[str, list[str]]  # of each source change_seqs, in order


class TooMany(Exception):
    """There is more to look at than Python should hold."""


class Event(NamedTuple):
    """A change of a transaction, or some records in a row that are none."""

    first_change_seq: str
    last_change_seq: str
    first_counter: int | None
    last_counter: int | None
    is_last: bool | None
    num_events: int
    table: str | None  # null where these are no changes
    batch_id: int


def update(
    lakehouse: str, own: str, kinds: Sequence[str], tell_first: Sequence[str], batch_id: int, ids: set[Id] | None = None
) -> bool:
    """Bring silver.transactions up to a batch whose changes are stored. In: SQL that selects the rows of the batch;
    the kinds of control events that may be events of transactions; the sources whose codecs tell a transaction's first
    event; the ids to look at, if not all. Out: False where there is too much to look at; then nothing was written."""
    try:
        given = _events(lakehouse, own, own, kinds) if ids is None else _of_batch(lakehouse, own, ids, kinds)
        runs = [_run(*id_, events, tell_first) for id_, events in given.items()]
        runs = _without_lacking(lakehouse, runs)
        open_ids = {_id(row) for row, _ in runs if row["state"] not in ("complete", None)}
        open_ids |= _touched(lakehouse, tell_first, batch_id)
        runs = [run for run in runs if _id(run[0]) not in open_ids]
        if open_ids:
            runs += _without_lacking(lakehouse, _looked_up(lakehouse, open_ids, kinds, tell_first))
        then = {_key(row): row for row in _stored(lakehouse, open_ids)}
    except TooMany:
        return False
    now = {_key(row): row for row, _ in runs if row["num_changes"]}
    gone = [row for key, row in then.items() if key not in now]
    changed = [row for key, row in now.items() if then.get(key) != row]
    if gone or any(_key(row) in then for row in changed):
        return lake.merge_rows(lakehouse, TABLE, KEY, changed, gone)
    if changed:
        lake.add_rows(lakehouse, TABLE, changed)
    return True


def _run(source: str, transaction_id: str, events: Sequence[Event], tell_first: Iterable[str]) -> tuple[dict, bool]:
    """The transaction of some events in order, and whether all of them have counters."""
    counters = [event.first_counter for event in events if event.first_counter is not None]
    last_counter = max((e.last_counter for e in events if e.last_counter is not None), default=None)
    is_counted, are_apart = len(counters) == len(events), len(set(counters)) == len(counters)
    tells_first, lasts = source in tell_first, [event.is_last for event in events]
    if last_counter is None and not tells_first:
        state = None
    elif (
        sum(event.num_events for event in events if event.first_counter is not None) == last_counter
        and (is_counted or tells_first)
        and are_apart
        and lasts.count(True) == 1
        and events[0].first_counter == 1
        and lasts[-1]
    ):
        state = "complete"
    else:
        state = "impossible" if True in lasts or not are_apart else "open"
    values = (
        source,
        transaction_id,
        events[0].first_change_seq,
        max(event.last_change_seq for event in events),
        sum(event.table is not None for event in events),
        last_counter,
        sorted({event.table for event in events if event.table is not None}),
        state,
        max(event.batch_id for event in events),
    )
    return dict(zip(ROW, values, strict=True)), is_counted


def _of_batch(lakehouse: str, own: str, ids: set[Id], kinds: Sequence[str]) -> dict[Id, list[Event]]:
    """The events of these ids that a batch brought."""
    changes, others = _selected(ids)
    given = _events(lakehouse, f"{own} and {changes}", f"{own} and {others}", kinds) if ids else {}
    return {id_: events for id_, events in given.items() if id_ in ids}


def _selected(ids: set[Id]) -> tuple[str, str]:
    """SQL that selects changes and control events which may be of these ids. Raises: TooMany."""
    of_ids = f"{_among('source', {source for source, _ in ids})} and"
    encoded = {json.dumps(id_) for _, id_ in ids}
    changes = f"{of_ids} {_among('transaction_id', {id_ for _, id_ in ids})}"
    return changes, f"{of_ids} {_among(ID_OF_EVENT, encoded)}"


def _looked_up(lakehouse: str, ids: set[Id], kinds: Sequence[str], tell_first: Iterable[str]) -> list:
    """The transactions of these ids, by all that silver has of them: each change with counter 1, and each after a last
    event, begins another one."""
    changes, others = _selected(ids)
    runs = []
    for id_, events in _events(lakehouse, changes, others, kinds).items():
        if id_ not in ids:
            continue
        begins = [n for n, e in enumerate(events) if n == 0 or e.first_counter == 1 or events[n - 1].is_last]
        ends = [*begins[1:], len(events)]
        runs += [_run(*id_, events[begin:end], tell_first) for begin, end in zip(begins, ends, strict=True)]
    return runs


def _events(lakehouse: str, changes: str, others: str, kinds: Sequence[str]) -> dict[Id, list[Event]]:
    """Events of each id in order. In: SQL that selects changes, and control events. A place in the order counts once:
    a change before an ignored record, which it may have been before."""
    columns = ["source", "transaction_id", "change_seq", "transaction_event_counter", "transaction_last_event"]
    columns += ["source_schema", "source_table", "batch_id"]
    is_event = "transaction_id is not null and operation <> 'REFRESH'"
    of_id: defaultdict[Id, list[Event]] = defaultdict(list)
    for row in _few(lakehouse, "silver.changes", columns, f"{changes} and {is_event}"):
        source, id_, place, counter, is_last, schema, table, batch_id = row.values()
        name = None if schema is None or table is None else f"{schema}.{table}"
        of_id[source, id_].append(Event(place, place, counter, counter, is_last, 1, name, batch_id))
    if kinds:
        for place, event in _others(lakehouse, f"{others} and {_among('kind', kinds)}"):
            of_id[place].append(event)
    for place, events in of_id.items():
        events.sort(key=lambda event: (event.first_change_seq, event.table is None, event.batch_id))
        if kinds:
            of_id[place] = [
                e for n, e in enumerate(events) if n == 0 or e.first_change_seq != events[n - 1].first_change_seq
            ]
    return of_id


def _others(lakehouse: str, selected: str) -> list[tuple[Id, Event]]:
    """Records that are no changes, as of tables that are not wanted, but for those that were decoded again: as rejects,
    or with their file when it was read again from its beginning."""
    columns = ["source", "unit_id", "unit_offset", "detail", "batch_id"]
    rows = _few(lakehouse, "silver.control_events", columns, f"{selected} and detail like '%\"transaction_id\"%'")
    if not rows:
        return []
    batches, sources = [row["batch_id"] for row in rows], _among("source", {row["source"] for row in rows})
    columns = ["source", "unit_id", "unit_offset", "rejected_in"]
    again = f"{sources} and rejected_in between {min(batches)} and {max(batches)}"
    replayed = {tuple(row.values()) for row in _few(lakehouse, "bronze.replays", columns, again)}
    paths = {path for row in rows if (path := _path(row)) is not None}
    whole = "ofs_start = 0 and num_units > 0 and problem is null"
    again = f"{sources} and {whole} and batch_id > {min(batches)} and {_among('path', paths)}"
    read: dict[tuple[str, str | None], int] = {}  # the last batch that has read a file from its beginning
    for row in _few(lakehouse, "bronze.files", ["source", "path", "batch_id"], again):
        place = row["source"], row["path"]
        read[place] = max(row["batch_id"], read.get(place, -1))
    events = []
    for row in rows:
        at = row["source"], row["unit_id"], row["unit_offset"], row["batch_id"]
        is_again = at in replayed or read.get((row["source"], _path(row)), -1) > row["batch_id"]
        if not is_again and (e := event_of(row["detail"])):
            places, counters = (e["first_change_seq"], e["last_change_seq"]), (e["first_counter"], e["last_counter"])
            event = Event(*places, *counters, e["is_last"], e["records"], None, row["batch_id"])
            events.append(((row["source"], e["transaction_id"]), event))
    return events


def event_of(detail: str) -> dict | None:
    """What a control event's detail says of its transaction (results.event_detail). None where it says nothing of one,
    or is another text, such as a message of the feed."""
    try:
        event = json.loads(detail)
    except ValueError:
        return None
    is_event = isinstance(event, dict) and MEMBERS.issubset(event) and event["transaction_id"] is not None
    return event if is_event else None


def _path(row: dict) -> str | None:
    """The file of a block; None of a message."""
    place = re.sub(OFFSET, "", row["unit_id"])
    return place[len(row["source"]) + 1 : -1] if place.endswith("@") else None


def _without_lacking(lakehouse: str, runs: list[tuple[dict, bool]]) -> list[tuple[dict, bool]]:
    """Transactions, where one is impossible that is complete by its first and last event alone, while a record between
    them is rejected, or waits: that may be one of its events."""
    doubtful = [row for row, is_counted in runs if row["state"] == "complete" and not is_counted]
    if doubtful:
        place = ["source", "change_seq"]
        sources = _among("source", {row["source"] for row in doubtful})
        low, high = min(row["first_change_seq"] for row in doubtful), max(row["last_change_seq"] for row in doubtful)
        within = f"{sources} and change_seq between {plain_literal(low)} and {plain_literal(high)}"
        undecided = _in_order(
            [
                *_few(lakehouse, "silver.rejects", place, f"{within} and {REJECTED} and resolved_by is null"),
                *_few(lakehouse, "silver.waiting", place, f"{within} and {WAITS}"),
            ]
        )
        for row in doubtful:
            if _has_within(undecided, row):
                row["state"] = "impossible"
    return runs


def _touched(lakehouse: str, tell_first: Collection[str], batch_id: int) -> set[Id]:
    """Transactions that are doubtful by a record that this batch rejects, or lets wait, or no longer are by one that it
    resolves. Or may be: they are looked up."""
    if not tell_first:
        return set()
    sources, place = _among("source", tell_first), ["source", "change_seq"]
    of_batch = f"{sources} and {REJECTED} and (batch_id = {batch_id} or resolved_by = {batch_id})"
    rows = _few(lakehouse, "silver.rejects", place, of_batch)
    of_batch = f"{sources} and change_seq is not null and unit_length > 0 and batch_id = {batch_id}"
    once = "group by source, unit_id, unit_offset, change_seq having count(distinct is_settled) = 1"
    rows += _few(lakehouse, "silver.waiting", place, f"{of_batch} {once}")
    touched, changed = set(), _in_order(rows)
    for source, places in changed.items():
        span = f"first_change_seq <= {plain_literal(places[-1])} and last_change_seq >= {plain_literal(places[0])}"
        for row in _few(lakehouse, TABLE, list(ROW), f"source = {plain_literal(source)} and {span}"):
            if _has_within(changed, row):
                touched.add(_id(row))
    return touched


def _in_order(rows: list[dict]) -> Places:
    places = defaultdict(set)
    for row in rows:
        places[row["source"]].add(row["change_seq"])
    return {source: sorted(of_source) for source, of_source in places.items()}


def _has_within(places: Places, row: dict) -> bool:
    """True if one of the places lies between the first and the last change of a transaction."""
    of_source = places.get(row["source"], [])
    nth = bisect_left(of_source, row["first_change_seq"])
    return nth < len(of_source) and of_source[nth] <= row["last_change_seq"]


def _stored(lakehouse: str, ids: set[Id]) -> list[dict]:
    """Rows of silver.transactions that are of these ids."""
    return [row for row in _few(lakehouse, TABLE, list(ROW), _selected(ids)[0]) if _id(row) in ids] if ids else []


def _few(lakehouse: str, table: str, columns: list[str], selected: str) -> list[dict]:
    """Rows of a table. Raises: TooMany."""
    rows = lake.peek(lakehouse, table, columns, f"where {selected} limit {MAX_ROWS + 1}")
    if len(rows) > MAX_ROWS:
        raise TooMany
    return rows


def _among(column: str, names: Collection[str]) -> str:
    """SQL: is the column one of these? Raises: TooMany."""
    if len(names) > MAX_NAMES:
        raise TooMany
    return plain_among(column, names)


def _id(row: dict) -> Id:
    return row["source"], row["transaction_id"]


def _key(row: dict) -> tuple:
    return tuple(row[name] for name in KEY)
