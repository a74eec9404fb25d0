"""A batch planned on both ways: in this process, and in tasks, which then are in this process, too."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from inlet import bronze, config
from inlet.bronze import tasks
from inlet.lake import engine


class Tasks:
    """A session of which each task has one number. What is sent to it is pickled as Spark pickles it."""

    def range(self, start: int, end: int, step: int, num_tasks: int) -> "Tasks":
        assert (start, step, num_tasks) == (0, 1, end)
        self.numbers = range(end)
        return self

    def mapInArrow(self, work, schema: str) -> "Tasks":  # noqa: N802
        assert schema == "id long, answer binary"
        self.sent = cloudpickle.dumps(work)
        return self

    def collect(self) -> list[tuple[int, bytearray]]:
        answers = []
        for number in reversed(self.numbers):  # in any order
            given = iter([pa.RecordBatch.from_pydict({"id": [number]})])
            for batch in cloudpickle.loads(self.sent)(given):
                answers += [(row["id"], bytearray(row["answer"])) for row in batch.to_pylist()]
        return answers


def in_tasks(project: config.Project, past: bronze.History, *sources: str, **given) -> bronze.Plan:
    """A batch whose files are read in tasks, whatever there is to read."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "is_apart", lambda: True)
        patched.setattr(tasks, "NUM_FILES", 1)
        patched.setattr(tasks, "NUM_A_TASK", 2)
        chosen = [project.sources[name] for name in sources or project.sources]
        return bronze.plan_batch(project, chosen, past, spark=Tasks, **given)


def planned(project: config.Project, past: bronze.History, *sources: str, **given) -> bronze.Plan:
    """A batch, which is the same when its files are read in tasks. In: names of sources, none for all."""
    chosen = [project.sources[name] for name in sources or project.sources]
    plan, other = bronze.plan_batch(project, chosen, past, **given), in_tasks(project, past, *sources, **given)
    assert replace(other, unlisted={}) == replace(plan, unlisted={})
    assert list(map(str, other.unlisted.values())) == list(map(str, plan.unlisted.values()))
    return plan
