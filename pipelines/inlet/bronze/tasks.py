"""Work on files in Spark's tasks, where these run on other machines: what reads the bytes of many files does not pass
through the driver.

A task is given what it works on as Python objects, and answers with Python objects: both are pickled, as the package
that it runs is this one. An error of a store, or any other InletError, is an answer, too: the driver raises it as if it
had done the work.
"""

import pickle
from collections.abc import Callable, Sequence
from heapq import heapreplace
from typing import TYPE_CHECKING, Any

from inlet.bronze.files import MAX_TASKS
from inlet.errors import InletError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUM_FILES, NUM_BYTES = 500, 256 << 20  # from which on tasks are worth it
NUM_A_TASK, BYTES_A_TASK = 50, 64 << 20  # at least: a task costs half a second, whatever it does


def are_worth(sizes: Sequence[int]) -> bool:
    """True if files of these sizes are so many, or so large, that tasks read them sooner, or spare the driver."""
    return len(sizes) >= NUM_FILES or sum(sizes) >= NUM_BYTES


def dealt(items: Sequence, size_of: Callable[[Any], int]) -> list[list]:
    """Items in a part for each task, about equal in work: each goes to the part that has least so far."""
    num_worth = max(len(items) // NUM_A_TASK, sum(map(size_of, items)) // BYTES_A_TASK, 1)
    num_tasks = min(len(items), MAX_TASKS, num_worth)
    parts: list[tuple[int, int, list]] = [(0, number, []) for number in range(num_tasks)]
    for item in sorted(items, key=size_of, reverse=True):
        work, number, part = parts[0]
        part.append(item)
        heapreplace(parts, (work + size_of(item) + BYTES_A_TASK // NUM_A_TASK, number, part))
    return [part for _, _, part in parts]


def each(spark: "SparkSession", call: Callable[[Any], Any], parts: Sequence) -> list:
    """What a function gives for each part, in order; a part is a task. In: a function that can be pickled. Raises: the
    InletError of the first part that raised one."""
    packed = [pickle.dumps(part) for part in parts]

    def work(batches):
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = pickle.dumps(_answer(call, pickle.loads(packed[number])))
                yield pa.RecordBatch.from_pydict({"id": [number], "answer": [answer]})

    rows = spark.range(0, len(parts), 1, len(parts)).mapInArrow(work, "id long, answer binary").collect()
    answers = [pickle.loads(answer) for _, answer in sorted((row[0], bytes(row[1])) for row in rows)]
    if error := next((answer for answer in answers if isinstance(answer, InletError)), None):
        raise error
    return answers


def _answer(call, part):
    try:
        return call(part)
    except InletError as error:
        return error
