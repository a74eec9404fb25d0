"""Errors of Spark in words where they may pass by themselves, or a person can act on them: those of a Connect server,
of a cluster and of the store of a lakehouse."""

import os
import re
from typing import NamedTuple

from inlet import store_errors
from inlet.errors import EnvironmentLacks, InletError, TryAgain
from inlet.lake.engine import REMOTE, is_apart, is_connected, is_platform, master

GOES_ON = "Run again when it does; what was done before stays done"


class Cause(NamedTuple):
    pattern: str  # of what Spark says
    kind: type[InletError]
    message: str  # {0}: the address of the server, or of the cluster; {1}: what Spark says
    remedy: str


SILENT = Cause(
    r"StatusCode\.UNAVAILABLE|INVALID_HANDLE\.(SESSION|OPERATION)|\[RETRIES_EXCEEDED\]",
    TryAgain,
    "The Spark Connect server at {} does not answer, or was started again meanwhile",
    GOES_ON,
)
OF_SERVER = (
    Cause(
        r"StatusCode\.UNAUTHENTICATED",
        EnvironmentLacks,
        "The Spark Connect server at {} refused the token",
        f"Put a valid one into {REMOTE}: sc://HOST:PORT/;token=...",
    ),
    Cause(
        "INSUFFICIENT_PERMISSIONS|PERMISSION_DENIED",
        EnvironmentLacks,
        "The catalog refused: {1}",
        "Grant what it names to who runs this",
    ),
    SILENT,
)
OF_CLUSTER = (
    Cause(
        "ExecutorLostFailure .*(unrelated to the running tasks|worker lost)|All masters are unresponsive"
        "|Master removed our application",
        TryAgain,
        "The Spark cluster at {} does not answer, or has lost workers",
        GOES_ON,
    ),
)


def errors() -> tuple[type[Exception], ...]:
    """What Spark raises. PySpark's client of Spark Connect alone comes without py4j."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:
        return (PySparkException,)
    return Py4JError, PySparkException


def worded(error: BaseException) -> InletError | None:
    """What an error of Spark means that comes from a store, from a Connect server or from a cluster that has lost
    something; None where it does not."""
    for cause in OF_SERVER if is_connected() else OF_CLUSTER if is_apart() else ():
        if re.search(cause.pattern, str(error)):
            return caused(cause, str(error).strip().splitlines()[0])
    return store_errors.worded(error)


def caused(cause: Cause, text: str = "") -> InletError:
    """The error that a cause means here. In: what Spark says."""
    address = os.environ.get(REMOTE) or ("Databricks" if is_platform() else master())
    at = re.sub(r"^([a-z]+://)(?:[^@/;]*@)?([^/;]*).*", r"\1\2", address)  # without a user and a token
    return cause.kind(cause.message.format(at, text), cause.remedy)
