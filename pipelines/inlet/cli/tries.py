"""`--tries`: a command that ends with exit code 6 is tried again within its process, for schedulers that try again
either everything that fails or nothing."""

import time
from collections.abc import Callable

from inlet.errors import TryAgain
from inlet.log import Log

FIRST_SECONDS, LONGEST_SECONDS = 60, 15 * 60


def again(once: Callable[[], None], tries: int, log: Log, sleep: Callable[[float], None] = time.sleep) -> None:
    """Call until it succeeds, at most `tries` times: after 1, 2, 4, 8 and then every 15 minutes. Raises: what the last
    call raises, and at once whatever cannot pass by itself."""
    for number in range(1, tries + 1):
        try:
            return once()
        except Exception as error:  # of a store, too, whose errors are put in words where a command ends
            from inlet.lake import connect, spark_errors

            worded = error if isinstance(error, TryAgain) else spark_errors.worded(error)
            if not isinstance(worded, TryAgain) or number == tries:
                raise
            seconds = min(FIRST_SECONDS * 2 ** (number - 1), LONGEST_SECONDS)
            log.say({"step": "run", "waiting": worded.message, "try": f"{number + 1} of {tries} in {seconds} s"})
            connect.end_session()  # the server may have lost it
        sleep(seconds)
