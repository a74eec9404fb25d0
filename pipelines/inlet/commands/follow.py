"""`inlet run --follow`: runs in micro-batches, one after the other, until it is told to stop.

Each is a whole run, with the guarantees of one, and holds the lakehouse for itself alone: between two of them others
get their turn, for its catalog is shared. What may pass by itself is waited for; all else ends it, as it ends a run.
"""

import signal
import threading
from collections.abc import Callable
from contextlib import contextmanager

from inlet import lake
from inlet.commands import run as running
from inlet.commands import runs
from inlet.config import Project
from inlet.errors import ConfigError, TryAgain
from inlet.lake import catalog
from inlet.log import Log

MAX_SECONDS = 60.0  # between two tries of what does not answer


def follow(
    load: Callable[[], Project], steps: tuple[str, ...], sources: list[str], tables: list[str], log: Log, seconds: float
) -> None:
    """Run until SIGTERM or Ctrl-C; the micro-batch at hand is finished first, unless that comes twice. In: what reads
    the project anew, as contracts and models may have changed; what `inlet run` is given; how long to wait after a look
    that found nothing new.
    """
    said, said_of_project, pause, project = "", "", seconds, load()
    with catalog.shared(project.lakehouse_path()), _stopping() as is_stopped:
        while not is_stopped.is_set():
            try:
                project, unread = load(), ""
            except ConfigError as error:  # it may be half written
                unread = f"{error.message}; the project as it was before goes on"
            if unread and unread != said_of_project:
                log.say({"step": "run", "warning": unread})
            said_of_project = unread
            try:
                has_landed, why = _once(project, steps, sources, tables, log)
            except TryAgain as error:
                has_landed, why = False, error.message
            if why and why != said:
                log.say({"step": "run", "waiting": why})
            pause = min(max(1.0, pause * 2), MAX_SECONDS) if why else seconds
            said = why
            if not has_landed:
                is_stopped.wait(pause)
    log.say({"step": "run", "stopped": "nothing is lost; the next run goes on from here"})


def _once(
    project: Project, steps: tuple[str, ...], sources: list[str], tables: list[str], log: Log
) -> tuple[bool, str]:
    """One micro-batch. Out: whether something was landed; what a source waits for that may pass by itself. Raises: what
    a run raises.
    """
    with lake.writing(project.lakehouse_path()) as hold:
        work = running.find_work(project, steps, sources, tables)
        if work:
            running.run(project, work, steps, tables, log, hold)
        else:
            runs.idle(project, log, work.plan.unlisted)
    lasting = [error for error in work.plan.unlisted.values() if not isinstance(error, TryAgain)]
    if lasting:
        raise lasting[0]
    return bool(work.plan.files), "; ".join(error.message for error in work.plan.unlisted.values())


@contextmanager
def _stopping():
    """An event that SIGTERM or Ctrl-C sets; a second one ends the process as it would have without this."""
    is_stopped, before = threading.Event(), {}

    def stop(number, frame) -> None:
        if is_stopped.is_set():
            before[signal.SIGINT](signal.SIGINT, frame)
        is_stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, stop)
    try:
        yield is_stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
