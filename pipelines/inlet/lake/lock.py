"""One writer at a time: the lock of a lakehouse.

A run that follows its sources takes it again and again, so it says that it is there (`_following`): who finds the
lakehouse held then waits for its turn, and says so (`_waiting`), and the follower lets it go first. These are locks on
files, which end with who holds them, however that ends. They are in the folder that has the catalog; of a lakehouse in
a store they hold for this machine, and a lease (lease.py) for the others.
"""

import fcntl
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from inlet import storage
from inlet.errors import EnvironmentLacks, TryAgain
from inlet.lake import connect, engine, fence, managed, place
from inlet.lake.lease import leased

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TURN_SECONDS = 600.0  # that others wait for the end of a micro-batch
LOOK_SECONDS = 0.05


@contextmanager
def writing(
    lakehouse: str, follows: bool = False, tell: Callable[[dict], None] = lambda said: None, relocates: bool = False
):
    """Holds the lakehouse for one run, from its look for work to its last commit: what one has planned, another would
    land again. Out: hold(spark), to be called when there is a session, for its JVM may outlive this process by a moment
    (again does no harm): the lakehouse is held until both have ended, however they do. In: whether it is a run that
    follows, before which others have their turn; `Log.say`, for who waits; whether it is to write where the lakehouse
    is, which may be of another place.

    Raises: TryAgain where another run holds it (and, where that follows, for longer than TURN_SECONDS),
    EnvironmentLacks where it cannot be written, ConfigError where its catalog is of another place.
    """
    if not relocates:
        place.check(lakehouse)
    path = place.home(lakehouse) / "_writing"
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(path.open("w"))
            if follows:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                _take_turn(lakehouse, file, tell)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind that a JVM takes
            fcntl.lockf(file, fcntl.LOCK_UN)
        except BlockingIOError as error:
            raise TryAgain(f"Another run writes to {lakehouse}", "Wait for it to end and try again") from error
        except OSError as error:
            raise EnvironmentLacks(
                f"{path} cannot be written: {error.strerror}", "Give this user the right to write it"
            ) from error

        is_held_in_jvm = False

        def hold(spark: "SparkSession") -> None:
            nonlocal is_held_in_jvm
            if is_held_in_jvm:
                return
            is_held_in_jvm = True
            if engine.is_connected():
                session = path.with_name("_session")
                held.callback(connect.hold(engine.id_of(spark), session, partial(_refuse_begun, lakehouse, spark)))
                engine.drop_former(spark)
            else:
                held.callback(engine.hold(spark, path))

        managed.forget_all()
        if not storage.is_local(lakehouse):
            lease = held.enter_context(leased(lakehouse, place.machine(lakehouse), tell))
            left = fence.refuse_begun(lakehouse) if lease.is_taken_over else []
            hold_file = hold

            def hold(spark: "SparkSession") -> None:
                hold_file(spark)
                lease.on_loss = partial(engine.stop, spark)  # what Spark was about to commit is not
                lease.check()  # it may be lost since before the session began
                fence.refuse_begun_by(spark, lakehouse, left)
                left.clear()

        yield hold


def _refuse_begun(lakehouse: str, spark: "SparkSession") -> None:
    fence.refuse_begun_by(spark, lakehouse, fence.refuse_begun(lakehouse))


def _take_turn(lakehouse: str, file, tell: Callable[[dict], None]) -> None:
    """Lock a file; while a run that follows is there, wait for that. Raises: BlockingIOError."""
    until, is_told = time.monotonic() + TURN_SECONDS, False
    with _held(lakehouse, "_waiting", fcntl.LOCK_SH):
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until or not _is_held(lakehouse, "_following"):
                    raise
            if not is_told:
                tell({"step": "lock", "waiting": "for the micro-batch of `inlet run --follow` to end"})
                is_told = True
            time.sleep(LOOK_SECONDS)


@contextmanager
def following(lakehouse: str):
    """Says that a run follows here, so that others wait for their turn. Out: `let_others(is_stopped)`, which returns
    when nobody waits for the lakehouse any more, or when the event is set.
    """

    def let_others(is_stopped) -> None:
        while _is_held(lakehouse, "_waiting") and not is_stopped.wait(LOOK_SECONDS):
            pass

    place.home(lakehouse).mkdir(parents=True, exist_ok=True)
    with _held(lakehouse, "_following", fcntl.LOCK_SH):
        yield let_others


@contextmanager
def alone(lakehouse: str, name: str):
    """Wait until no other process of this machine does the work of this name, and hold others off."""
    with _held(lakehouse, name, fcntl.LOCK_EX):
        yield


@contextmanager
def _held(lakehouse: str, name: str, kind: int):
    with (place.home(lakehouse) / name).open("w") as file:
        fcntl.flock(file, kind)
        yield


def _is_held(lakehouse: str, name: str) -> bool:
    try:
        with _held(lakehouse, name, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
    except BlockingIOError:
        return True
