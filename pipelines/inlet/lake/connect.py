"""The session of a Spark that somebody else has started: of a Connect server, which SPARK_REMOTE names, one for a
process and ended with it; on Databricks the one that is there.
"""

import atexit
import os
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inlet.errors import ConfigError, EnvironmentLacks, InletError
from inlet.lake import engine
from inlet.lake.derby import answers
from inlet.lake.engine import REMOTE
from inlet.lake.spark_errors import SILENT, caused, worded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUM_RETRIES = 5  # of a request to a server that does not answer, in 17 s; PySpark's 15 take ten minutes
_session: Any = None


def check_server() -> str:
    """The host and port of the Connect server, which answers. Raises: EnvironmentLacks where the packages for it are
    missing, ConfigError where its address is none, TryAgain where no server answers."""
    from pyspark.errors import PySparkException

    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder
    except ImportError as error:
        raise EnvironmentLacks(f"Spark Connect cannot be used: {error}", "pip install 'inlet[connect]'") from error
    try:
        server = DefaultChannelBuilder(os.environ[REMOTE]).endpoint
    except PySparkException:  # its text may hold a token
        remedy = "Write it as sc://HOST:PORT; a value after `;` that has = or / is written with %3D or %2F"
        raise ConfigError(f"{REMOTE} is no address of a Connect server", remedy) from None
    if not answers(server):
        raise caused(SILENT)
    return server


def of_platform(settings: dict[str, str]) -> "SparkSession":
    """The session that Databricks has given this process. In: settings, any of which it may refuse."""
    global _session
    if _session is None:
        _session = engine.session_of_platform()
        _prepare(_session, settings)
    return _session


def _prepare(session: "SparkSession", settings: dict[str, str]) -> None:
    for name, value in settings.items():
        if engine.takes(session, name, value):
            session.conf.set(name, value)
    engine.send_package(session)


def connect(app: str, settings: dict[str, str]) -> "SparkSession":
    """The session of the Connect server. In: settings, any of which the server may refuse. Raises: as `check_server`,
    and EnvironmentLacks where it refuses the token."""
    global _session
    if _session and not _session.is_stopped:
        return _session
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # it would note each child that reads a file
    check_server()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # dbt-spark asks for Hive's catalog, which only the server can choose
    warnings.filterwarnings("ignore", message="Failed to set spark.sql.catalogImplementation")
    try:
        session: Any = SparkSession.builder.remote(os.environ[REMOTE]).appName(app).getOrCreate()
        session.client.set_retry_policies([DefaultPolicy(max_retries=NUM_RETRIES)])
        _prepare(session, settings)
        _session = session
        atexit.register(end_session)  # after PySpark's own, so it is called before that
        return session
    except PySparkException as error:
        if problem := worded(error):
            raise problem from error
        raise


def end_session() -> None:
    """End this process' session of a Connect server, and what runs in it."""
    global _session
    ended, _session = _session, None
    if ended is None or engine.is_platform():
        return
    try:
        check_server()
    except InletError:
        ended.client.set_retry_policies([])
    with suppress(Exception):  # the server forgets a session later, by itself
        ended.interruptAll()
    ended.stop()
    ended.client.set_retry_policies([])  # of what PySpark asks for at the end of a process


def hold(session_id: str, path: Path, refuse_begun: Callable[[], None]) -> Callable[[], None]:
    """Keep a run that follows from writing next to what the server still runs for this one, if this process is killed:
    the next run interrupts that, and refuses what it commits in spite of that. In: this session; a file; what refuses
    commits that were begun. Out: what ends it."""
    if engine.is_platform():  # which ends a task's session with the task
        return lambda: None
    if path.exists() and (former := path.read_text()) not in ("", session_id):
        _interrupt_former(former)
        refuse_begun()
    path.write_text(session_id)
    return partial(path.unlink, missing_ok=True)


def _interrupt_former(session_id: str) -> None:
    """Interrupt what runs in a session of the Connect server whose client was killed. It is not released: the server
    does not let go of one with a statement that is about to begin."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder, SparkConnectClient
    from pyspark.sql.connect.client.retries import DefaultPolicy

    at = DefaultChannelBuilder(os.environ[REMOTE])
    at.set("session_id", session_id)
    client = SparkConnectClient(at)
    client.set_retry_policies([DefaultPolicy(max_retries=NUM_RETRIES)])
    try:
        client.interrupt_all()
        time.sleep(1)
        client.interrupt_all()  # again: a statement that was about to begin
    except PySparkException as error:
        if "INVALID_HANDLE" not in str(error):  # the server has forgotten it, or was started again
            raise
    finally:
        client.set_retry_policies([])  # of what it asks for at the end of this process
