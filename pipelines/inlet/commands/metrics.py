"""Numbers for a monitor, as a text file that Prometheus reads (node_exporter's textfile collector, say), off unless
`metrics:` in inlet.yml names one. Written by the prometheus_client library, anew after each run, also one that found
nothing new.

What is counted comes from the lakehouse's own tables, so a counter goes on where it was when the file was deleted. The
file is its own memory of the last run that was good.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from inlet.commands import facts, rejects
from inlet.config import Project
from inlet.errors import EnvironmentLacks
from inlet.log import Log

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

LIBRARIES = {"prometheus": "prometheus_client", "openlineage": "openlineage.client"}
LAST_SUCCESS = "inlet_last_success_timestamp_seconds"


def check(project: Project) -> None:
    """Raises: EnvironmentLacks where `metrics:` asks for a library that is not there."""
    for name, module in LIBRARIES.items():
        if getattr(project.metrics, name) and not _is_there(module):
            raise EnvironmentLacks(
                f"pipelines/inlet.yml asks for metrics.{name}, and {module} is not installed",
                "pip install 'inlet[metrics]', or take it out of inlet.yml",
            )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even its parent
        return False


def tell(project: Project, log: Log, run: dict) -> None:
    """Write the file, if there is to be one. In: the run that has ended. What is wrong with it is said, and fails
    nothing."""
    if not project.metrics.prometheus:
        return
    path = Path(project.root, project.metrics.prometheus)
    try:
        from prometheus_client import write_to_textfile

        path.parent.mkdir(parents=True, exist_ok=True)
        write_to_textfile(str(path), registry(project, run, _last_success(path)))
    except Exception as error:  # a monitor's file is no reason to fail a run that is done
        log.say({"step": "warning", "metrics": f"{path} could not be written: {type(error).__name__}: {error}"})


def _last_success(path: Path) -> float | None:
    """The time of the last good run, as the file has it."""
    from prometheus_client.parser import text_string_to_metric_families

    if not path.exists():
        return None
    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except ValueError:  # not what was written here
        return None
    return next((s.value for family in families for s in family.samples if s.name == LAST_SUCCESS), None)


def registry(project: Project, run: dict, last_success: float | None) -> "CollectorRegistry":
    """All metrics. In: the run that has ended; when the last good one before it was."""
    from prometheus_client import CollectorRegistry

    class Collector:
        def collect(self):
            yield from _of_lakehouse(project)
            yield from _of_run(run, last_success)

    to = CollectorRegistry()
    to.register(Collector())
    return to


def _of_lakehouse(project: Project) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily

    batches, published = facts.ledger(project), facts.points(project)
    records = CounterMetricFamily(
        "inlet_records", "records decoded, by what became of them", labels=("source", "outcome")
    )
    size = CounterMetricFamily("inlet_bytes", "bytes of what was decoded", labels=("source",))
    for source in sorted({row["source"] for row in batches}):
        for name in facts.COUNTS[1:]:
            num = sum(row[name] or 0 for row in batches if row["source"] == source)
            records.add_metric((source, name.removeprefix("num_")), num)
        size.add_metric((source,), sum(row["bytes_landed"] or 0 for row in batches if row["source"] == source))
    files = CounterMetricFamily("inlet_files", "files landed, or partitions of topics", labels=("source",))
    for source, num_files in sorted(facts.files(project).items()):
        files.add_metric((source,), num_files)
    yield from (records, files, size)
    lags = facts.lags(batches, published)
    yield _gauge(
        "inlet_lag_seconds",
        "how far the public views are behind the newest change, by the source's own times",
        {(source,): one.seconds for source, one in lags.items() if one.seconds is not None},
        "source",
    )
    for which, doc in (("newest", "newest change in silver"), ("shown", "last change that is public")):
        times = {(source,): at.timestamp() for source, one in lags.items() if (at := getattr(one, which))}
        yield _gauge(f"inlet_{which}_change_timestamp_seconds", f"the source's own time of the {doc}", times, "source")
    waiting = dict(rejects.open_rejects(project))
    yield _gauge("inlet_rejects_open", "rejects that are neither decoded again nor closed", waiting, "source", "kind")


def _of_run(run: dict, last_success: float | None) -> Iterator["Metric"]:
    ended = facts.ended(run)
    good = ended if run["exit_code"] == 0 else last_success
    yield _gauge(LAST_SUCCESS, "when the last good run ended", {(): good} if good else {})
    yield _gauge("inlet_last_run_timestamp_seconds", "when the last run ended", {(): ended})
    yield _gauge("inlet_last_run_exit_code", "exit code of the last run", {(): run["exit_code"]})
    yield _gauge("inlet_step_seconds", "seconds of the last run's steps", facts.step_seconds(run), "step")


def _gauge(name: str, doc: str, samples: Mapping[tuple, float], *labels: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, doc, labels=labels)
    for values, number in samples.items():
        family.add_metric(values, number)
    return family
