"""Changes of messages that a compiled walk has read. It gives numbers for what is the same in many of them: `p` for the
contract of a source, `o` for the operation, `l` for the full load, -1 where there is none. Here they become what they
stand for."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inlet import change

Batches = Iterable[pa.RecordBatch]
NUMBERS = ("p", "o", "l")


def changes(
    walk: Callable[[Batches], Batches], contracts, operations: Sequence[str], loads: Sequence[dict] = ()
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """For Spark's mapInArrow, or Arrow alone. In: a walk of messages; the contracts, operations and loads that its
    numbers stand for. Out: batches of messages -> batches of changes, with those columns of the change table that are
    known; what is the same in many rows is words of a dictionary."""
    tables = [table for _, table in contracts.places]
    of_number = {
        "source": ("p", _words(source for source, _ in contracts.places)),
        "source_schema": ("p", _words(table.schema_name for table in tables)),
        "source_table": ("p", _words(table.table_name for table in tables)),
        "table_version": ("p", pa.array([table.version for table in tables], pa.int32())),
        "operation": ("o", _words(operations)),
        "change_oper": ("o", _words(change.OPERATIONS[name] for name in operations)),
        "load_id": ("l", _words([*(load["load_id"] for load in loads), None])),
    }
    # what came before the newest list of columns is left to the exact path
    begun = pa.array([table.earlier[-1].until if table.earlier else "" for table in contracts.contracts], pa.string())
    has_earlier = any(table.earlier for table in contracts.contracts)

    def batches(messages: Batches) -> Iterator[pa.RecordBatch]:
        for rows in walk(messages):
            if has_earlier:
                rows = rows.filter(pc.greater_equal(rows.column("change_seq"), begun.take(rows.column("p"))))
            given = {name: rows.column(name) for name in rows.schema.names if name not in NUMBERS}
            for name, (number, values) in of_number.items():
                if number in rows.schema.names:
                    given[name] = _at(values, rows.column(number))
            given["unit_offset"] = pa.array(np.zeros(len(rows), np.int64))
            yield pa.RecordBatch.from_pydict(given)

    return batches


def _words(texts: Iterable[str | None]) -> pa.Array:
    return pa.array(list(texts), pa.string()).dictionary_encode()


def _at(values: pa.Array, numbers: pa.Array) -> pa.Array:
    """The value for each number, the last one for -1."""
    places = np.asarray(numbers)
    return values.take(pa.array(np.where(places < 0, len(values) - 1, places)))
