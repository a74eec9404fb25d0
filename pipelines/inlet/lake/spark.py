"""The only place a Spark session is built. `settings` also feeds dbt's profile, so both see the same tables.

Catalog: Derby embedded in the lakehouse folder; one process at a time may open it, and that is said when it happens.
Where a server runs for the lakehouse, or INLET_CATALOG names one, any number of processes use that (catalog.py).
"""

import atexit
import contextlib
import logging
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from inlet import storage
from inlet.errors import ConfigError, EnvironmentLacks
from inlet.lake import catalog, connect, engine, entries, jars, managed, place, reads, tables
from inlet.lake.java import check_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# A JVM of a minute spends more on compiling well than that saves: a cold query takes 0.7 of the time on two cores. The
# cache for code that comes with that option is too small for Spark.
QUICK = " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
QUICK_BYTES = 64 << 20  # up to which a process is over before compiling well would pay
DELETE_EXISTS = "spark.databricks.delta.delete.allowExistsSubquery"
NUM_THREADS = 4  # of statements that wait for the catalog in turn: two cores wrote twelve views in half the time
_made: set[tuple[str, str]] = set()  # lakehouses whose tables this process has created: session, path
END_SECONDS = 60  # that a JVM may take to stop its session and to close its catalog


def settings(lakehouse: str) -> dict[str, str]:
    """Spark settings for one lakehouse folder. In: its absolute path or URL. Out: every setting that is not a
    default.
    """
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": lakehouse,
        **catalog.settings(lakehouse),
        **storage.spark_settings(lakehouse),
        "spark.driver.memory": os.environ.get("INLET_DRIVER_MEMORY", "4g"),
        JAVA_OPTIONS: f'-Duser.timezone=UTC "-Dderby.system.home={place.home(lakehouse)}" -XX:+UseParallelGC',
        # Delta's default for local folders starts ten processes (readlink, chmod) a commit
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
        **of_session(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }


def of_session() -> dict[str, str]:
    """Settings that a session takes, too, that somebody else has started."""
    return {
        "spark.sql.session.timeZone": "UTC",
        # local folder and two cores: the defaults (200, 50) make every small commit cost seconds
        "spark.sql.shuffle.partitions": os.environ.get("INLET_SHUFFLE_PARTITIONS", "2"),
        "spark.databricks.delta.snapshotPartitions": "2",
        # Spark 4.1 would cast VARIANT while it reads, before it filters: also rows of other tables and versions, which
        # do not fit
        "spark.sql.variant.pushVariantIntoScan": "false",
        DELETE_EXISTS: "true",
        # views and pins read versions that are older than a week: maintenance keeps their files (kept_versions.py)
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
        # the default, INT96, is read as nanoseconds by most other readers, for which 1677 to 2262 are all years
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # a column may be called ${spark.app.name}, and no name can say that it is none of Spark's
        "spark.sql.variable.substitute": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


SMALL = {  # for work whose rows cost less than planning them: nothing compiled, no stages planned again
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def small_query_settings(spark: "SparkSession", is_small: bool):
    """Settings for a small piece of work, and back again. Measured on tables of a few hundred rows: 0.55 of gold's
    time."""
    return settings_in(spark, SMALL if is_small else {})


@contextmanager
def settings_in(spark: "SparkSession", wanted: dict[str, str]):
    """Settings for a piece of work, where the session takes them, and back again."""
    set_ = settable(spark, wanted)
    before = {key: spark.conf.get(key, None) for key in set_}
    for key, value in set_.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, old) if old is not None else spark.conf.unset(key)


def settable(spark: "SparkSession", settings: dict[str, str]) -> dict[str, str]:
    """The settings that a session takes: one that somebody else has started may refuse any."""
    return {key: value for key, value in settings.items() if engine.takes(spark, key, value)}


def side_by_side(call: Callable, items: Iterable) -> None:
    """Call a function that sends statements for each of several items, in any order. Raises: what the first call that
    failed raised, after all have ended."""
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for _ in pool.map(call, items):
            pass


def session(
    lakehouse: str,
    app: str = "inlet",
    packages: tuple[str, ...] = (),
    has_catalog: bool = True,
    java_options: str = "",
    further: dict[str, str] | None = None,
    new_bytes: int | None = None,
):
    """The session for one lakehouse, with its databases and bronze and silver tables in place. In: Maven coordinates of
    further jars; without a catalog tables are read by their paths, nothing is created, and other runs go on meanwhile;
    further options of the JVM; settings in the place of Inlet's, or next to them; bytes that a command reads which is
    over soon, besides those of the lakehouse; None for a process that goes on.

    Raises: EnvironmentLacks when Java is missing or too old or the jars cannot be had, TryAgain when the catalog is
    taken, ConfigError when it is of another place.
    """
    if has_catalog:
        place.check(lakehouse)
    if storage.is_managed(lakehouse) and not engine.is_given():
        raise ConfigError(
            "The tables of a lakehouse that a catalog manages are reached by a Spark that has that catalog",
            f"Set {engine.REMOTE} to the address of its Connect server, or run on Databricks",
        )
    if engine.is_given():
        if packages:
            engine.check_embedded(f"What uses {packages[0]}")
        _keep_utc()
        own = of_session()
        spark = connect.of_platform(own) if engine.is_platform() else connect.connect(app, own)
        engine.name_tables(spark)
        if has_catalog:
            _complete(spark, lakehouse, engine.id_of(spark))
        return spark
    check_java()
    if not engine.is_apart():  # other machines could not reach the driver there
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not (engine.is_apart() and "PYSPARK_PYTHON" in os.environ):  # other machines may have it elsewhere
        os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    place.home(lakehouse).mkdir(parents=True, exist_ok=True)
    _keep_utc()
    on_interrupt = signal.getsignal(signal.SIGINT)
    is_opened = has_catalog and SparkContext._active_spark_context is None
    if is_opened and not storage.is_local(lakehouse) and not catalog.is_shared(lakehouse):
        place.forget_former(lakehouse, reads.table_id(lakehouse, entries.PATTERN))
    with catalog.opening(lakehouse) if is_opened else nullcontext():
        is_first = SparkContext._active_spark_context is None
        builder = SparkSession.builder.appName(app)
        if not engine.is_submitted():
            builder = builder.master(engine.master())
        if has_catalog:
            builder = builder.enableHiveSupport()
        own = settings(lakehouse) | jars.settings(packages, jars.add_to_class_path(lakehouse))
        own[JAVA_OPTIONS] += java_options or jars.java_options()
        if new_bytes is not None and _is_small(lakehouse, new_bytes):
            own[JAVA_OPTIONS] += QUICK
        for key, value in (own | (further or {})).items():
            builder = builder.config(key, value)
        try:
            with jvm_messages_to_file():
                spark = builder.getOrCreate()
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGINT, on_interrupt)  # PySpark puts its own there
            jars.remember(spark)
            if is_first and engine.is_apart():
                engine.send_package(spark)
            engine.name_tables(spark)
            if has_catalog:
                _complete(spark, lakehouse, engine.id_of(spark))
                if not storage.is_local(lakehouse):
                    place.note_id(lakehouse, reads.table_id(lakehouse, entries.PATTERN))
                place.remember(lakehouse)
            return spark
        except Exception as error:  # the JVM tells only by text what a person needs to hear
            raise _explained(error, lakehouse, packages) from error


def _keep_utc() -> None:
    """Show timestamps in the session's zone, where Python would show them in the machine's."""
    from pyspark.sql import types

    os.environ["TZ"] = "UTC"
    time.tzset()
    # in UTC both are the same; in a local time Python looks a day back, which the first day of year 1 has not
    types.TimestampType.fromInternal = types.TimestampNTZType.fromInternal  # type: ignore


def _complete(spark: "SparkSession", lakehouse: str, session_id: str) -> None:
    """Create the tables that are missing, and enter those that another catalog has made; once a session."""
    if (session_id, lakehouse) in _made and (storage.is_managed(lakehouse) or tables.are_complete(lakehouse)):
        return
    with small_query_settings(spark, is_small=True):
        tables.create(spark, lakehouse)
        if not storage.is_managed(lakehouse) and (engine.is_given() or not storage.is_local(lakehouse)):
            tables.enter_all(spark, lakehouse)
    _made.add((session_id, lakehouse))


def _is_small(lakehouse: str, new_bytes: int) -> bool:
    """True if the bytes that a lakehouse has taken in, and the new ones, are few. It is read without Spark."""
    tables_of_bytes = ("bronze.blocks", "bronze.messages", "silver.changes")
    return (
        storage.is_reached(lakehouse)
        and new_bytes + sum(reads.size_bytes(lakehouse, name) for name in tables_of_bytes) <= QUICK_BYTES
    )


managed.start = session


@atexit.register
def end_jvm() -> None:
    """End the JVM that this process started, and wait for it: it holds the catalog until then, and the next command of
    a script would find it taken. What uses a shared server leaves that afterwards (catalog.leave_all).
    """
    gateway = engine.gateway_of_process()
    if gateway is None or gateway.proc is None:  # none, or one that another program started
        return
    # PySpark's threads, and objects that Python collects from here on, would print that the JVM does not answer
    logging.disable()
    if updates := getattr(sys.modules["pyspark"].SparkContext._active_spark_context, "_accumulatorServer", None):
        updates.handle_error = lambda *request: None
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        gateway.shutdown()  # nothing more is asked of it
        gateway.proc.stdin.close()  # its sign to end
        gateway.proc.wait(END_SECONDS)


LOG_FOLDER = Path(tempfile.gettempdir()) / f"inlet-{os.getuid()}"
JVM_LOG = LOG_FOLDER / "spark.log"


@contextmanager
def jvm_messages_to_file():
    """The JVM inherits standard error when it starts; its messages go to JVM_LOG, not between a person's lines."""
    make_log_folder()
    sys.stderr.flush()
    kept, log = os.dup(2), os.open(JVM_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)


def make_log_folder() -> None:
    """Raises: EnvironmentLacks where another user could have put a link in the place of a log."""
    LOG_FOLDER.mkdir(mode=0o700, exist_ok=True)
    folder = LOG_FOLDER.lstat()
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.getuid() or folder.st_mode & 0o022:
        raise EnvironmentLacks(
            f"{LOG_FOLDER} is not a folder that only this user writes to", "Remove it, or name another place in TMPDIR"
        )


def _explained(error: Exception, lakehouse: str, packages: tuple[str, ...]) -> Exception:
    text = str(error)
    server = catalog.server(lakehouse)
    if server and "SessionHiveMetaStoreClient" in text and "Unable to instantiate" in text:
        return EnvironmentLacks(
            f"The catalog of {lakehouse} cannot be had from {server}",
            "End what has the catalog open without that server; where INLET_CATALOG is set, export both lines that "
            "`inlet catalog` prints",
        )
    if (
        "XSDB6" in text
        or "Another instance of Derby" in text
        or "SessionHiveMetaStoreClient" in text
        and "Unable to instantiate" in text
    ):
        return catalog.taken(lakehouse)
    if "unresolved dependency" in text or "JAVA_GATEWAY_EXITED" in text:
        return EnvironmentLacks(
            f"Spark could not start: {text.splitlines()[0]}",
            f"Check that Maven Central can be reached for {' and '.join([jars.DELTA, *packages])} and read {JVM_LOG}",
        )
    return error
