"""One writer at a time: the lock of a lakehouse."""

import fcntl
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from inlet.errors import EnvironmentLacks, TryAgain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def writing(lakehouse: str):
    """Holds the lakehouse for one run, from its look for work to its last commit: what one has planned, another would
    land again. Out: hold(spark), to be called when there is a session, for its JVM may outlive this process by a moment
    (again does no harm). A folder is held until both have ended, however they do; for a URL that is the scheduler's to
    see to.

    Raises: TryAgain where another run holds it, EnvironmentLacks where it cannot be written.
    """
    if "://" in lakehouse:
        yield lambda spark: None
        return
    path = Path(lakehouse) / "_writing"
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(path.open("w"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
            in_jvm = spark._jvm.java.io.RandomAccessFile(str(path), "rw")
            held.callback(in_jvm.close)
            in_jvm.getChannel().tryLock()

        yield hold
