"""What a piece of work asks of Spark, by the step of the run that asks: calls that plan or run something, their
seconds, and the jobs that they start.
"""

import re
import threading
import time
from collections import defaultdict
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.readwriter import DataFrameWriter

from inlet.log import Log

ASKED = {
    SparkSession: ("sql", "table", "createDataFrame"),
    DataFrame: (
        "collect",
        "toArrow",
        "toPandas",
        "count",
        "head",
        "first",
        "take",
        "isEmpty",
        "createOrReplaceTempView",
    ),
    DataFrameWriter: ("save", "saveAsTable", "insertInto"),
    Catalog: ("tableExists", "dropTempView", "clearCache", "listTables"),
}
LEN_SHOWN = 70  # characters of a statement that make it one of a kind


class Statements:
    """Calls by step and kind: how often, and their seconds. Those of threads are added up."""

    def __init__(self, spark: SparkSession):
        self.spark = spark
        self.calls: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.jobs: dict[str, int] = defaultdict(int)
        self.step = "other"
        self._own = threading.local()

    def num(self, kind: str = "") -> int:
        return sum(len(seconds) for (_, what), seconds in self.calls.items() if what.startswith(kind))

    def lines(self, least: float = 0.05) -> list[str]:
        """A line for each kind of call, those that took longest first."""
        shown = []
        for (step, what), seconds in sorted(self.calls.items(), key=lambda pair: -sum(pair[1])):
            if sum(seconds) >= least:
                shown.append(f"{step:16} {len(seconds):4} {sum(seconds):7.2f} s  {what}")
        return [*shown, *(f"{step:16} {num:4} jobs" for step, num in self.jobs.items())]

    @contextmanager
    def counted(self):
        """Count what is asked within. Steps are those of any log."""
        step, before = Log.step, []

        @contextmanager
        def counting(log, name: str, **place):
            outer, num_before = self.step, self._num_jobs()
            self.step = " ".join([name, *([place["of"]] if "of" in place else [])])
            try:
                with step(log, name, **place) as figures:
                    yield figures
            finally:
                self.jobs[self.step] += self._num_jobs() - num_before
                self.step = outer

        try:
            for owner, names in ASKED.items():
                for name in names:
                    before.append((owner, name, owner.__dict__[name]))
                    setattr(owner, name, self._counting(name, owner.__dict__[name]))
            Log.step = counting  # type: ignore[method-assign]
            yield self
        finally:
            Log.step = step  # type: ignore[method-assign]
            for owner, name, function in before:
                setattr(owner, name, function)

    def _num_jobs(self) -> int:
        """Jobs that the session has started so far."""
        return self.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()

    def _counting(self, name: str, function):
        def call(*given, **named):
            if getattr(self._own, "is_within", False):
                return function(*given, **named)
            self._own.is_within, started = True, time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                self._own.is_within = False
                text = given[1] if name == "sql" else ""
                self.calls[self.step, f"{name} {_kind(text)}".strip()].append(time.perf_counter() - started)

        return call


def _kind(statement: str) -> str:
    """The beginning of a statement, without comments and what differs from table to table."""
    text = re.sub(r"/\*.*?\*/|--[^\n]*", " ", statement, flags=re.DOTALL)
    return re.sub(r"\d+", "N", re.sub(r"\s+", " ", text)).strip()[:LEN_SHOWN]
