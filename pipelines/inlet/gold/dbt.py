"""dbt in this process and in the session that is there: what a run hands to it, and what became of each model."""

import functools
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass

from inlet.config import Project
from inlet.errors import InletError
from inlet.gold.small_batches import SmallBatches
from inlet.lake import spark_errors


@dataclass(frozen=True)
class Built:
    """What became of one model in a run."""

    model: str
    status: str  # success, error, skipped
    message: str
    seconds: float


@contextmanager
def offered(state: dict, writer: SmallBatches):
    """Let macros use what is no SQL: `adapter.run_context`, with what dbt need not ask or decide again, as JSON;
    `adapter.small_batches`, which writes small batches without Spark."""
    from dbt.adapters.spark import SparkAdapter

    offers, available = {"run_context": json.dumps(state), "small_batches": writer}, SparkAdapter._available_
    SparkAdapter._available_ = available | offers.keys()
    for name, value in offers.items():
        setattr(SparkAdapter, name, value)
    try:
        yield
    finally:
        SparkAdapter._available_ = available
        for name in offers:
            delattr(SparkAdapter, name)
        writer.views.close()


@functools.lru_cache(maxsize=4)
def _manifest(folder: str, state: tuple):
    """dbt's parsed project; kept within a process for as long as its files stay as they are."""
    from dbt.cli.main import dbtRunner

    parsed = dbtRunner().invoke(["--quiet", *_logs(folder), "parse", *_where(folder)])
    if not parsed.success:
        raise InletError(
            f"dbt cannot read {folder}: {parsed.exception}", "Run `inlet generate` and look at the file it names"
        )
    return parsed.result


def _logs(folder: str) -> list[str]:
    return ["--log-path", f"{folder}/target/logs"]


def _where(folder: str) -> list[str]:
    return ["--project-dir", folder, "--profiles-dir", folder, "--target", "inlet"]


def run(project: Project, command: list[str], on_begin=lambda model: None, on_end=lambda model: None) -> list[Built]:
    """Run models. In: functions called with the name of each model that begins, and of each that has ended."""
    outcome = invoke(project, command, on_begin, on_end)
    return [
        Built(r.node.name, str(r.status), (r.message or "").strip(), r.execution_time)
        for r in outcome.result.results
        if r.node.resource_type == "model" or r.status != "success"
    ]


def invoke(project: Project, command: list[str], on_begin=lambda model: None, on_end=lambda model: None):
    """Run a dbt command in this process and session. Raises: InletError when dbt itself stopped."""

    def on_event(event) -> None:
        if event.info.name == "LogStartLine":
            on_begin(event.data.node_info.node_name)
        if event.info.name == "NodeFinished":
            on_end(event.data.node_info.node_name)

    from dbt.cli.main import dbtRunner

    folder = project.root / "dbt"
    files = [p for p in folder.rglob("*") if p.suffix in (".sql", ".yml") and "target" not in p.parts]
    manifest = _manifest(str(folder), tuple(sorted((str(p), p.stat().st_mtime_ns) for p in files)))
    started = time.perf_counter()
    outcome = dbtRunner(manifest=manifest, callbacks=[on_event]).invoke(
        [
            "--quiet",
            "--no-write-json",
            "--no-populate-cache",
            "--no-use-colors",
            *_logs(str(folder)),
            *command,
            *_where(str(folder)),
        ]
    )
    if outcome.result is None:
        seconds = time.perf_counter() - started
        problem = InletError(f"dbt stopped after {seconds:.0f} s: {outcome.exception}", "See dbt/target/logs/dbt.log")
        raise spark_errors.worded(problem) or problem
    return outcome
