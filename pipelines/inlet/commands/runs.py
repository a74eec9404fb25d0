"""What past runs did and how long each step took: one JSON line a run, in `_runs/<day>.jsonl` of the lakehouse.

Why lines and no Delta table: a run must be noted where it failed, too, also where Spark never started, and the note
must cost milliseconds; a commit of a Delta table for each of a day's thousands of runs costs more than some of them
take, and has to be compacted. What counts for data is in the ledger and in gold.published: these lines are for people,
and may be deleted. A run that finds nothing new leaves one only where it ends otherwise than the last one did, so that
a failure is not the last word for days. A run that was killed leaves none, or half of one, which is passed over.

Around a run stand also those whom `metrics:` in inlet.yml names (metrics.py, lineage.py). Neither these nor the note
fail a run that is done: what went wrong with them is said in the log.
"""

import json
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Thread

from inlet import storage
from inlet.commands import lineage, metrics
from inlet.config import Project
from inlet.errors import InletError, together
from inlet.lake import spark_errors
from inlet.log import Log

FOLDER = "_runs"
NUM_SHOWN = 30
MAX_STEPS = 1000
NOTE_SECONDS = 20.0  # that the end of a run waits for its note


@contextmanager
def recorded(project: Project, log: Log, command: str = "run", unlisted: dict[str, InletError] | None = None):
    """Note what is done within, with the seconds of its steps. In: source -> why it could not be listed. Raises:
    EnvironmentLacks, before anything is done, where `metrics:` asks for a library that is not there."""
    metrics.check(project)
    del log.steps[:-MAX_STEPS]  # a run that follows a feed goes on for weeks
    began, num_before = datetime.now(UTC), len(log.steps)
    event = lineage.begin(project, log, command, began)
    failed: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failed = error if isinstance(error, InletError) else spark_errors.worded(error) or error
        raise
    finally:
        failed = failed or together((unlisted or {}).values())
        record = _record(command, began, failed, log.steps[num_before:])
        with _warning(log):
            _keep_in_time(project, record)
        metrics.tell(project, log, record)
        lineage.end(project, log, event, record)


def idle(project: Project, log: Log, unlisted: dict[str, InletError]) -> None:
    """A run that found nothing new was a good one: those who watch the time of the last have to hear of it. In: source
    -> why it could not be listed, which is none."""
    metrics.check(project)
    record = _record("run", datetime.now(UTC), together(unlisted.values()), [])
    with _warning(log):
        if record["exit_code"] != next((run.get("exit_code") for run in last(project, 1)), 0):
            _keep_in_time(project, record)
    metrics.tell(project, log, record)


def _record(command: str, began: datetime, failed: BaseException | None, steps: list[dict]) -> dict:
    """A run that has ended now."""
    return {
        "began": began.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - began).total_seconds(), 2),
        "command": command,
        "exit_code": 0 if failed is None else failed.exit_code if isinstance(failed, InletError) else 1,
        "error": None
        if failed is None
        else (str(failed).strip().splitlines() or [type(failed).__name__])[0].rstrip(":"),
        "steps": steps,
    }


@contextmanager
def _warning(log: Log):
    """Around the note of a run, which is no reason to fail it, whatever a store's library raises."""
    try:
        yield
    except Exception as error:
        log.say({"step": "warning", "runs": f"this one could not be noted in {FOLDER}: {error}"})


def _keep_in_time(project: Project, record: dict) -> None:
    """`keep`, which a store that does not answer may hold up for minutes. Raises: what `keep` raises, TimeoutError."""
    kept: Future[None] = Future()

    def work() -> None:
        try:
            keep(project, record)
        except Exception as error:
            kept.set_exception(error)
        else:
            kept.set_result(None)

    Thread(target=work, daemon=True).start()  # the end of the process does not wait for it
    try:
        kept.result(NOTE_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"{project.lakehouse_path()} did not answer within {NOTE_SECONDS:.0f} s") from None


def keep(project: Project, record: dict) -> None:
    """Add a line to the day's file. One run at a time writes, so a store's file may be written anew."""
    path = project.files_path(FOLDER, f"{record['began'][:10]}.jsonl")
    line = json.dumps(record, default=str, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
    files, name = storage.open_store(path)
    files.makedirs(name.rsplit("/", 1)[0], exist_ok=True)
    if not storage.is_local(path):
        files.pipe_file(name, (files.cat_file(name) if files.exists(name) else b"") + line)
        return
    with open(name, "ab") as file:
        file.write(line)


def last(project: Project, num: int = NUM_SHOWN) -> list[dict]:
    """The newest runs, the newest first."""
    files, folder = storage.open_store(project.files_path(FOLDER))
    found: list[dict] = []
    names = files.ls(folder, detail=False) if files.isdir(folder) else []
    for name in sorted((name for name in names if name.endswith(".jsonl")), reverse=True):
        found += [run for line in reversed(files.cat_file(name).splitlines()) if (run := _run_of(line))]
        if len(found) >= num:
            break
    return found[:num]


def _run_of(line: bytes) -> dict | None:
    try:
        run = json.loads(line)
    except ValueError:
        return None
    return run if isinstance(run, dict) and {"began", "steps", "seconds"} <= run.keys() else None
