"""`inlet run --follow`: runs in micro-batches, one after the other, until it is told to stop.

Each is a whole run, with the guarantees of one, and holds the lakehouse for itself alone: between two of them others
get their turn, for its catalog is shared. A source that cannot be asked rests, longer from try to try, and the others
go on; where it is the last one, and nothing but a person can help, that ends it. A contract that is ahead of its models
is waited for. All else that ends a run ends this.
"""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager

from inlet import lake
from inlet.commands import run as running
from inlet.commands import runs
from inlet.config import Project
from inlet.errors import ConfigError, InletError, TryAgain, together
from inlet.lake import catalog
from inlet.log import Log

MAX_SECONDS = 60.0  # between two tries of what does not answer
WRONG_SECONDS = 20.0  # between two runs whose gold cannot be built: each costs what a run costs


def follow(
    load: Callable[[], Project], steps: tuple[str, ...], sources: list[str], tables: list[str], log: Log, seconds: float
) -> None:
    """Run until SIGTERM or Ctrl-C; the micro-batch at hand is finished first, unless that comes twice. In: what reads
    the project anew, as contracts and models may have changed; what `inlet run` is given; how long to wait after a look
    that found nothing new.
    """
    said, project, tries, has_run, lakehouse = "", load(), Tries(log), False, load().lakehouse_path()
    with catalog.shared(lakehouse), lake.following(lakehouse) as let_others, _stopping() as is_stopped:
        while not is_stopped.is_set():
            wrong, has_landed, pause = "", False, seconds
            try:
                project = load()
            except ConfigError as error:  # it may be half written
                wrong = f"{error.message}; the project as it was before goes on"
            wanted = sources or list(project.sources)
            asked = tries.due(wanted)
            let_others(is_stopped)
            try:
                if asked or not wanted:
                    has_landed, unlisted = _once(project, steps, asked, tables, log, tries.why)
                    tries.note(asked, unlisted)
                    has_run = True
            except TryAgain as error:  # the lakehouse is another's
                wrong = error.message
            except ConfigError as error:  # a contract says more than its models, for a moment
                if not has_run:
                    raise
                wrong, pause = f"{error.message}. {error.remedy}; then it goes on", max(seconds, WRONG_SECONDS)
            if wrong and wrong != said:
                log.say({"step": "run", "waiting": wrong})
            said = wrong
            tries.check(wanted)
            if not has_landed:
                is_stopped.wait(pause)
    log.say({"step": "run", "stopped": "nothing is lost; the next run goes on from here"})


def _once(
    project: Project,
    steps: tuple[str, ...],
    sources: list[str],
    tables: list[str],
    log: Log,
    known: dict[str, InletError],
) -> tuple[bool, dict[str, InletError]]:
    """One micro-batch. In: source -> why it could not be asked before, so that those that rest count as failed, too.
    Out: whether something was landed; why of these sources one cannot be asked. Raises: what a run raises."""
    with lake.writing(project.lakehouse_path(), follows=True) as hold:
        work = running.find_work(project, steps, sources, tables)
        unlisted = dict(work.plan.unlisted)
        resting = project.sources.keys() - set(sources)
        work.plan.unlisted |= {name: error for name, error in known.items() if name in resting}
        if work:
            running.run(project, work, steps, tables, log, hold, goes_on=True)
        else:
            runs.idle(project, log, work.plan.unlisted)
    return bool(work.plan.files), unlisted


class Tries:
    """Sources that could not be asked at their last try, and when the next one is."""

    def __init__(self, log: Log):
        self.log = log
        self.why: dict[str, InletError] = {}
        self.pause: dict[str, float] = {}
        self.next_at: dict[str, float] = {}

    def due(self, sources: list[str]) -> list[str]:
        """Those that are to be asked now."""
        return [name for name in sources if self.next_at.get(name, 0) <= time.monotonic()]

    def note(self, asked: list[str], unlisted: dict[str, InletError]) -> None:
        """Say what is news of those that were asked, and set when they are tried again."""
        before = {error.message for error in self.why.values()}
        for name in asked:
            if error := unlisted.get(name):
                self.why[name] = error
                self.pause[name] = min(max(1.0, self.pause.get(name, 0) * 2), MAX_SECONDS)
                self.next_at[name] = time.monotonic() + self.pause[name]
            else:
                for known in (self.why, self.pause, self.next_at):
                    known.pop(name, None)
        for message in dict.fromkeys(error.message for error in unlisted.values()):
            if message not in before:
                self.log.say({"step": "run", "waiting": message})

    def check(self, sources: list[str]) -> None:
        """Raises: the gravest reason, where no source is left that may be asked again without a person's help."""
        lasting = [error for name in sources if (error := self.why.get(name)) and not isinstance(error, TryAgain)]
        if len(lasting) == len(sources) and (why := together(lasting)):
            raise why


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
