"""Delta tables as this process has read them: each is opened once, and asked each question once, until a commit
follows.

The file of the newest commit tells: while it is as it was, no other one follows it and no later checkpoint exists, the
table has not been written, whoever writes it. In a store one request lists that file and what follows it, where opening
a table takes four.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from inlet import storage

if TYPE_CHECKING:
    import deltalake
    import pyarrow as pa

MAX_BYTES = 64 << 20  # of the answers that are kept of all tables
Mark = tuple[int, ...] | str  # of the file of a commit: another file of its name has another one


class Snapshot:
    """One version of a table."""

    def __init__(self, table: "deltalake.DeltaTable", mark: Mark | None):
        self._table: deltalake.DeltaTable | None = table
        self.mark = mark
        self.version: int = table.version()
        self.key = table.table_uri, table.metadata().id, self.version
        self._answers: dict[Any, Any] = {}
        self._num_bytes = 0

    @property
    def table(self) -> "deltalake.DeltaTable":

        if self._table is None:
            self._table = open_table(self.key[0], self.version)
        return self._table

    def next(self, mark: Callable[[int], Mark | None]) -> "Snapshot":
        """The newest version, by reading the commits that follow into this one's table, which it opens again where it
        is asked for. In: what tells the mark of a version."""
        table, self._table = self.table, None
        self._answers.pop("builder", None)
        table.update_incremental()
        return Snapshot(table, mark(table.version()))

    def once(self, question, ask: Callable[[], Any]):
        """What `ask` gives, asked once of this version, but for an answer that is large."""
        answers = self._answers  # another thread may take new ones in its place
        if question in answers:
            return answers[question]
        result = ask()
        size = getattr(result, "nbytes", 0)
        if size <= MAX_BYTES:
            held = {self, *_snapshots.copy().values()}
            while size and size + sum(one._num_bytes for one in held) > MAX_BYTES:
                largest = max(held, key=lambda one: one._num_bytes)
                largest._answers, largest._num_bytes = {}, 0
            self._answers[question] = result
            self._num_bytes += size
        return result

    @property
    def data(self) -> "deltalake.DeltaTable":
        """What queries read."""
        return self.table

    def query(self, sql: str) -> "pa.Table":
        """The answer to a query of `rows`."""
        return self.once(sql, lambda: answer(self.once("builder", lambda: _builder(rows=self)), sql))

    def stream(self, sql: str, num_rows: int) -> "Iterator[pa.RecordBatch]":
        """The answer to a query of `rows`, in batches of so many rows; not kept."""
        import pyarrow as pa

        builder = _builder(rows=self)
        builder.execute(f"set datafusion.execution.batch_size = {num_rows}")
        yield from pa.RecordBatchReader.from_stream(builder.execute(sql))


_snapshots: dict[str, Snapshot] = {}  # by the path of the table
_lock = Lock()


def open_table(place: str, version: int | None = None) -> "deltalake.DeltaTable":
    """A Delta table. In: its path or address; none for its newest version."""
    import deltalake

    return deltalake.DeltaTable(place, version=version, storage_options=storage.delta_options(place))


def query_builder():
    """A builder of queries over Delta tables. Files of earlier releases hold timestamps as INT96, and it reads them as
    microseconds: nanoseconds, its default, overflow outside the years 1677 to 2262 and give another time.
    """
    import deltalake

    builder = deltalake.QueryBuilder()
    builder.execute("set datafusion.execution.parquet.coerce_int96 = 'us'")
    return builder


def answer(builder, sql: str) -> "pa.Table":
    """The answer to a query."""
    return as_arrow(builder.execute(sql))


def as_arrow(stream) -> "pa.Table":
    """Rows that are not pyarrow's as a table of pyarrow's. `pyarrow.table` would import pandas, which takes longer than
    a look for work.
    """
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(stream).read_all()


def rows_of(table: "pa.Table") -> list[dict]:
    """As `to_pylist`, which would import pandas for the first time stamp."""
    columns = [_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row)) for row in zip(*columns)]


def _values(column) -> list:
    import pyarrow as pa

    if not pa.types.is_timestamp(column.type) or column.type.unit != "us" or column.type.tz not in (None, "UTC"):
        return column.to_pylist()
    epoch = datetime(1970, 1, 1, tzinfo=UTC if column.type.tz else None)
    return [None if at is None else epoch + timedelta(microseconds=at) for at in column.cast(pa.int64()).to_pylist()]


def query(sql: str, tables: dict[str, Snapshot]) -> "pa.Table":
    """The answer to a query of several tables, asked once of these versions. In: the tables by their names in it."""
    first, *others = tables.values()
    question = sql, *(other.key for other in others)
    return first.once(question, lambda: answer(_builder(**tables), sql))


def _builder(**tables: Snapshot):
    builder = query_builder()
    for name, one in tables.items():
        builder = builder.register(name, one.data)
    return builder


def newest(place: str) -> Snapshot | None:
    """The newest version of a table; None while it does not exist. In: its path or address."""
    with _lock:
        last = _snapshots.get(place)
        if last and _is_newest(place, last):
            return last
        snapshot = _opened(place, last)
        if snapshot is None:
            _snapshots.pop(place, None)
        else:
            _snapshots[place] = snapshot
        return snapshot


def _is_newest(place: str, last: Snapshot) -> bool:
    """Delta removes old commits up to a checkpoint and in any order, so the file of the version that was read may
    outlive those that followed it."""
    if not storage.is_local(place):
        listed = _from_commit(place, last.version, 2)
        return [mark for _, mark in listed[:1]] == [last.mark] and not any(name[0].isdigit() for name, _ in listed[1:])
    return (
        last.mark is not None
        and not os.path.lexists(_commit(place, last.version + 1))
        and checkpoint_version(place) <= last.version
        and _mark(place, last.version) == last.mark
    )


def _opened(place: str, last: Snapshot | None) -> Snapshot | None:
    """In: the version that was read last, whose answers stay where it is still the newest."""
    import deltalake

    if storage.is_local(place) and not os.path.isdir(f"{place}/_delta_log"):
        return None
    if last and last.mark is not None and _mark(place, last.version) == last.mark:
        return last.next(partial(_mark, place))
    try:
        table = open_table(place)
    except deltalake.exceptions.TableNotFoundError:
        return None
    return Snapshot(table, _mark(place, table.version()))


def _from_commit(place: str, version: int, num: int) -> list[tuple[str, str]]:
    """(name, ETag) of a commit's file in a store, and of what follows it in the order of names; the first may be
    another where there is no such file."""
    name = f"{version:020}.json"
    return storage.listed_after(f"{place}/_delta_log", name[:-1], num)


def _commit(place: str, version: int) -> str:
    return f"{place}/_delta_log/{version:020}.json"


def checkpoint_version(place: str) -> float:
    """The version of the last checkpoint; -1 where there is none, infinite where the file that names it is damaged."""
    try:
        return int(json.loads(Path(f"{place}/_delta_log/_last_checkpoint").read_bytes())["version"])
    except FileNotFoundError:
        return -1
    except (ValueError, KeyError, TypeError):
        return math.inf


def _mark(place: str, version: int) -> Mark | None:
    if not storage.is_local(place):
        return next((mark for name, mark in _from_commit(place, version, 1) if name == f"{version:020}.json"), None)
    try:
        about = Path(_commit(place, version)).stat()
    except FileNotFoundError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size
