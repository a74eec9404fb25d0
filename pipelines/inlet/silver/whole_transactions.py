"""Transactions of a large batch that are whole in it, without Spark: one pass over its stored changes, in Arrow.

In files the changes of a transaction mostly follow each other. The pass makes runs of them: changes of one id in order,
without a gap in their counters, up to a last event. What is left in pieces is sorted by id and place, and joined in the
same way. An id is whole if each of its runs is a complete transaction and they do not overlap, or if its changes have
no counters at all. All other ids are left to transactions.py, which defines what a transaction is.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inlet import change, lake
from inlet.silver.small_transactions import TABLE, event_of
from inlet.sql import plain_among, plain_literal

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MAX_RUNS = 1_000_000  # that are held at once, of 800 bytes each at the most
MAX_OTHERS = MAX_LEFT = 100_000  # ids that other events may be of; ids that are not whole
LEN_BATCH = 1 << 16  # changes that are looked at together
EVENT = """
source, transaction_id, change_seq, transaction_event_counter as counter,
coalesce(transaction_last_event, false) as is_last,
arrow_cast(source_schema || '.' || source_table, 'Dictionary(Int32, Utf8)') as table
"""


class Runs(NamedTuple):
    """Changes of transactions, joined to runs. Columns of equal length, and `tables`."""

    source: "pa.Array"
    transaction_id: "pa.Array"
    first_change_seq: "pa.Array"
    last_change_seq: "pa.Array"
    first_counter: "np.ndarray"  # -1 where changes have no counters
    last_counter: "np.ndarray"
    num_changes: "np.ndarray"
    is_last: "np.ndarray"
    tables: "np.ndarray"  # pairs (run, number of a table), sorted


def append(
    lakehouse: str, own: str, kinds: Sequence[str], tell_first: Collection[str], batch_id: int
) -> set[tuple[str, str]] | None:
    """Append the transactions of a batch that are whole in it to silver.transactions. In: SQL that selects the rows of
    the batch; the kinds of control events that may be events of transactions; the sources whose codecs tell a
    transaction's first event. Out: all other ids; None where there are too many to hold, then nothing was written."""
    events = f"where {own} and transaction_id is not null and operation <> 'REFRESH'"
    names, pieces, num_runs = dict[str, int](), list[Runs](), 0
    for batch in lake.stream(lakehouse, "silver.changes", EVENT, events, LEN_BATCH):
        if len(batch):
            pieces.append(joined(_events_of(batch, names)))
            num_runs += len(pieces[-1].source)
        if num_runs > MAX_RUNS:
            return None
    others = [*_ids_of_others(lakehouse, own, kinds), *_ids_around(lakehouse, pieces)]
    if len(others) > MAX_OTHERS:
        return None
    whole, left = split(pieces, others, tell_first)
    if len(left) > MAX_LEFT:
        return None
    if whole and len(whole.source):
        lake.add_arrow(lakehouse, TABLE, _rows(whole, names, batch_id))
    return set(zip(*left.to_pydict().values()))


def _events_of(batch: "pa.RecordBatch", names: dict[str, int]) -> Runs:
    """Changes as runs of one. In: EVENT; the numbers of tables by name, which it adds to."""
    import numpy as np
    import pyarrow as pa

    counters = batch.column("counter").fill_null(-1).to_numpy()
    table = batch.column("table")
    numbers = np.array([names.setdefault(name, len(names)) for name in table.dictionary.to_pylist()], np.int64)
    numbered = numbers[table.indices.to_numpy(zero_copy_only=False)]
    source, id_, place = (batch.column(n).cast(pa.large_string()) for n in range(3))  # delta-rs gives views
    tables = np.stack([np.arange(len(batch)), numbered], axis=1)
    is_last = batch.column("is_last").to_numpy(zero_copy_only=False)
    return Runs(source, id_, place, place, counters, counters, np.ones(len(batch), np.int64), is_last, tables)


def joined(runs: Runs) -> Runs:
    """Runs, joined where one is continued by the next one."""
    import numpy as np
    import pyarrow as pa

    if not len(runs.source):
        return runs
    follows = _is_same(runs) & ~runs.is_last[:-1] & _is_less(runs.last_change_seq[:-1], runs.first_change_seq[1:])
    before, after = runs.last_counter[:-1], runs.first_counter[1:]
    follows &= np.where(before < 0, after < 0, after == before + 1)
    begins = np.concatenate([[True], ~follows])
    first, which = np.flatnonzero(begins), np.cumsum(begins) - 1
    last = np.append(first[1:], len(begins)) - 1
    at_first, at_last = pa.array(first), pa.array(last)
    return Runs(
        runs.source.take(at_first),
        runs.transaction_id.take(at_first),
        runs.first_change_seq.take(at_first),
        runs.last_change_seq.take(at_last),
        runs.first_counter[first],
        runs.last_counter[last],
        np.add.reduceat(runs.num_changes, first),
        runs.is_last[last],
        _pairs(which[runs.tables[:, 0]], runs.tables[:, 1]),
    )


def split(
    pieces: list[Runs], others: Collection[tuple[str, str]], tell_first: Collection[str]
) -> tuple[Runs | None, "pa.Table"]:
    """Out: the runs that are whole transactions; the ids of all others, as an Arrow table. In: ids that other events
    may be of; the sources whose codecs tell a transaction's first event."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.schema([("source", pa.large_string()), ("transaction_id", pa.large_string())])
    left = pa.table([list(column) for column in zip(*others)] or [[], []], ids)
    if not pieces:
        return None, left
    runs = joined(_by_id(_together(pieces)))
    is_same, is_counted = _is_same(runs), runs.first_counter >= 0
    tells = pc.is_in(runs.source, pa.array(sorted(tell_first), pa.large_string())).to_numpy(zero_copy_only=False)
    is_whole = np.where(is_counted, (runs.first_counter == 1) & runs.is_last, ~tells)
    is_apart = _is_less(runs.last_change_seq[:-1], runs.first_change_seq[1:]) & is_counted[:-1] & is_counted[1:]
    is_whole[1:] &= is_apart | ~is_same
    if others:
        separator = pa.scalar("\0", pa.large_string())
        names = [pc.binary_join_element_wise(*columns, separator) for columns in (runs[:2], left.columns)]
        is_whole &= ~pc.is_in(names[0], names[1].combine_chunks()).to_numpy(zero_copy_only=False)
    begins = np.concatenate([[True], ~is_same])
    is_id_whole = np.logical_and.reduceat(is_whole, np.flatnonzero(begins))
    is_whole = is_id_whole[np.cumsum(begins) - 1]
    at = pa.array(np.flatnonzero(begins & ~is_whole))
    left = pa.concat_tables([left, pa.table([column.take(at) for column in runs[:2]], ids)])
    return _taken(runs, np.flatnonzero(is_whole)), left.group_by(ids.names).aggregate([])


def _by_id(runs: Runs) -> Runs:
    """Runs, those of an id that has several next to each other and in order."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = [column.dictionary_encode() for column in runs[:2]]
    source, id_ = (code.indices.to_numpy().astype(np.int64) for code in codes)
    _, number, times = np.unique(source * len(codes[1].dictionary) + id_, return_inverse=True, return_counts=True)
    is_one = times[number] == 1
    several = np.flatnonzero(~is_one)
    places = pa.table([number[several], runs.first_change_seq.take(pa.array(several))], ["number", "place"])
    at = pc.sort_indices(places, [("number", "ascending"), ("place", "ascending")]).to_numpy()
    return _taken(runs, np.concatenate([np.flatnonzero(is_one), several[at]]))


def _is_same(runs: Runs) -> "np.ndarray":
    """For each run but the first: is it of the id of the run before?"""
    import pyarrow.compute as pc

    source, id_ = (pc.equal(column[1:], column[:-1]) for column in runs[:2])
    return pc.and_(source, id_).to_numpy(zero_copy_only=False)


def _is_less(before: "pa.Array", after: "pa.Array") -> "np.ndarray":
    import pyarrow.compute as pc

    return pc.less(before, after).to_numpy(zero_copy_only=False)


def _together(pieces: list[Runs]) -> Runs:
    import numpy as np
    import pyarrow as pa

    starts = np.cumsum([0, *(len(runs.source) for runs in pieces)])
    tables = [runs.tables + np.array([start, 0]) for runs, start in zip(pieces, starts, strict=False)]
    texts, numbers = ([[runs[n] for runs in pieces] for n in some] for some in (range(4), range(4, 8)))
    return Runs(*[*map(pa.concat_arrays, texts), *map(np.concatenate, numbers), np.concatenate(tables)])


def _taken(runs: Runs, places: "np.ndarray") -> Runs:
    """The runs at these places."""
    import numpy as np
    import pyarrow as pa

    place = np.full(len(runs.source), -1)
    place[places] = np.arange(len(places))
    of_run, tables = place[runs.tables[:, 0]], runs.tables[:, 1]
    texts = (column.take(pa.array(places)) for column in runs[:4])
    pairs = np.stack([of_run, tables], axis=1)[of_run >= 0]
    return Runs(*[*texts, *(column[places] for column in runs[4:8]), pairs])


def _pairs(runs: "np.ndarray", tables: "np.ndarray") -> "np.ndarray":
    """Pairs of a run and a table, each once, sorted."""
    import numpy as np

    num = int(tables.max(initial=0)) + 1
    pairs = np.sort(runs * num + tables)  # np.unique would take ten times as long
    return np.stack(np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], num), axis=1)


def _rows(runs: Runs, names: Collection[str], batch_id: int) -> "pa.Table":
    """Rows of silver.transactions. In: the names of tables, by number."""
    import numpy as np
    import pyarrow as pa

    in_order = sorted(names)
    rank = np.array([in_order.index(name) for name in names], np.int64)
    pairs = _pairs(runs.tables[:, 0], rank[runs.tables[:, 1]])
    ends = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=len(runs.source)))])
    tables = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(in_order).take(pa.array(pairs[:, 1])))
    has_none = runs.first_counter < 0
    values = {
        "source": runs.source,
        "transaction_id": runs.transaction_id,
        "first_change_seq": runs.first_change_seq,
        "last_change_seq": runs.last_change_seq,
        "num_changes": pa.array(runs.num_changes),
        "last_counter": pa.array(runs.last_counter, mask=has_none),
        "tables": tables,
        "state": pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(has_none), np.int8), mask=has_none), ["complete"]
        ),
        "batch_id": pa.array(np.full(len(has_none), batch_id)),
    }
    types = lake.arrow_schema(", ".join(f"{column.name} {column.type}" for column in change.TRANSACTIONS))
    return pa.table([values[name] for name in types.names], types.names).cast(types)


def _ids_of_others(lakehouse: str, own: str, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Ids of transactions that have events in the batch which are no changes."""
    if kinds:
        is_event = f"{plain_among('kind', kinds)} and detail like '%\"transaction_id\"%'"
        of_batch = f"where {own} and {is_event} limit {MAX_OTHERS + 1}"
        for row in lake.peek(lakehouse, "silver.control_events", ["source", "detail"], of_batch):
            if event := event_of(row["detail"]):
                yield row["source"], event["transaction_id"]


def _ids_around(lakehouse: str, pieces: list[Runs]) -> Iterator[tuple[str, str]]:
    """Ids of transactions that changes of a batch may lie within."""
    import pyarrow.compute as pc

    if pieces:
        low = min(pc.min(runs.first_change_seq).as_py() for runs in pieces)
        high = max(pc.max(runs.last_change_seq).as_py() for runs in pieces)
        sources = {name for runs in pieces for name in pc.unique(runs.source).to_pylist()}
        span = f"first_change_seq <= {plain_literal(high)} and last_change_seq >= {plain_literal(low)}"
        of_sources = f"where {plain_among('source', sources)} and {span} limit {MAX_OTHERS + 1}"
        for row in lake.peek(lakehouse, TABLE, ["source", "transaction_id"], of_sources):
            yield row["source"], row["transaction_id"]
