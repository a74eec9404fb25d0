"""The Spark that does the work: a JVM that this process starts (embedded, the default), one that spark-submit or a
platform has started, or a Spark Connect server, which SPARK_REMOTE names.

What differs between them is here, in spark.py, and in what only the embedded one has (entries.py, archive.py): no other
module reaches into a session or keeps state in it (tests/test_imports.py). A session of Connect has no JVM to reach,
and looks a temporary view up when a frame that reads it runs: so views have names that are used once.
"""

import atexit
import os
import re
import shutil
import sys
import time
import uuid
import warnings
import zipfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple

import inlet
from inlet import store_errors
from inlet.errors import ConfigError, EnvironmentLacks, InletError, TryAgain
from inlet.lake.derby import answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REMOTE = "SPARK_REMOTE"  # Spark's own variable: the address of a Connect server
KEPT = "silver.kept_"  # how the names of tables begin that hold frames which are read several times
GOES_ON = "Run again when it does; what was done before stays done"
NUM_RETRIES = 5  # of a request to a server that does not answer, in 17 s; PySpark's 15 take ten minutes


class Cause(NamedTuple):
    pattern: str  # of what Spark says
    kind: type[InletError]
    message: str  # {}: the address of the server, or of the cluster
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
_session: Any = None  # of the Connect server
_kept: dict[int, tuple["DataFrame", str]] = {}  # by the id of the frame that reads it
_num_tasks: dict[str, int] = {}  # by session
_taken: dict[tuple[str, str], bool] = {}  # by session and setting


def is_connected() -> bool:
    """True if Spark is a Connect server."""
    return bool(os.environ.get(REMOTE))


def is_given() -> bool:
    """True if somebody else has started Spark and says where its catalog is: a Connect server, a platform."""
    return is_connected() or "DATABRICKS_RUNTIME_VERSION" in os.environ


def is_submitted() -> bool:
    """True if spark-submit has started this process and its JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def master() -> str:
    """Where an embedded session's tasks run, as Spark names it: INLET_MASTER, or what spark-submit was given."""
    if not is_submitted():
        return os.environ.get("INLET_MASTER", "local[*]")
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # type: ignore[attr-defined]
    return SparkConf().get("spark.master", "local[*]") or ""


def is_apart() -> bool:
    """True if tasks run on other machines, or as if they did."""
    return is_connected() or not re.match(r"local(\[|$)", master())


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
        raise _caused(SILENT)
    return server


def connect(app: str, settings: dict[str, str]) -> "SparkSession":
    """The session of the Connect server. In: settings, any of which the server may refuse. Raises: as `check_server`,
    and EnvironmentLacks where it refuses the token."""
    global _session
    if _session and not _session.is_stopped:
        return _session
    check_server()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # dbt-spark asks for Hive's catalog, which only the server can choose
    warnings.filterwarnings("ignore", message="Failed to set spark.sql.catalogImplementation")
    try:
        session: Any = SparkSession.builder.remote(os.environ[REMOTE]).appName(app).getOrCreate()
        session.client.set_retry_policies([DefaultPolicy(max_retries=NUM_RETRIES)])
        for name, value in settings.items():
            if takes(session, name, value):
                session.conf.set(name, value)
        send_package(session)
        _session = session
        atexit.register(end_session)  # after PySpark's own, so it is called before that
        return session
    except PySparkException as error:
        if problem := worded(error):
            raise problem from error
        raise


def check_embedded(what: str) -> None:
    """Raises: ConfigError where Spark is a Connect server, which cannot do it."""
    if is_connected():
        raise ConfigError(f"{what} needs a Spark that Inlet starts", f"Unset {REMOTE}, which names a Connect server")


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
            return _caused(cause)
    return store_errors.worded(error)


def _caused(cause: Cause) -> InletError:
    address = os.environ.get(REMOTE) or master()
    at = re.sub(r"^([a-z]+://)(?:[^@/;]*@)?([^/;]*).*", r"\1\2", address)  # without a user and a token
    return cause.kind(cause.message.format(at), cause.remedy)


def id_of(spark: "SparkSession") -> str:
    """What tells a session from every other."""
    return str(getattr(spark, "session_id", "")) or spark.sparkContext.applicationId


def takes(spark: "SparkSession", name: str, value: str) -> bool:
    """True if a session takes a value of a setting. One of a server that somebody else has started may take none."""
    from pyspark.errors import PySparkException

    if not is_given():
        return True
    key = id_of(spark), name
    if key not in _taken:
        try:
            before = spark.conf.get(name, None)
            spark.conf.set(name, value)
            spark.conf.unset(name) if before is None else spark.conf.set(name, before)
            _taken[key] = True
        except PySparkException:
            _taken[key] = False
    return _taken[key]


@cache
def package() -> Path:
    """A zip of this package, for workers that do not have it."""
    if sent := getattr(inlet.__loader__, "archive", None):  # this process got it so
        return Path(sent)
    folder, path = Path(inlet.__file__).parent, Path(mkdtemp(prefix="inlet-")) / "inlet.zip"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                zip_.write(file, file.relative_to(folder.parent))
    return path


def send_package(spark: "SparkSession") -> None:
    """Give Spark's workers this package."""
    if is_connected():
        spark.addArtifacts(str(package()), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(package()))


def num_tasks(spark: "SparkSession") -> int:
    """How many tasks run at the same time."""
    if context := getattr(spark, "_sc", None):
        return context.defaultParallelism
    if (key := id_of(spark)) not in _num_tasks:
        parts = spark.range(1 << 20).selectExpr("spark_partition_id() as part")
        _num_tasks[key] = parts.distinct().count()
    return _num_tasks[key]


def kept(rows: "DataFrame") -> "DataFrame":
    """Rows that are read several times and computed once, until `release`. Where a session can hold none they are
    written to a table."""
    if not is_connected():
        return rows.persist()
    name = f"{KEPT}{int(time.time())}_{uuid.uuid4().hex}"
    rows.write.format("delta").option("delta.columnMapping.mode", "name").saveAsTable(name)  # any name of a column
    stored = rows.sparkSession.table(name)
    _kept[id(stored)] = stored, name
    return stored


def release(rows: "DataFrame") -> None:
    """End what `kept` began; other rows are left as they are."""
    if not is_connected():
        rows.unpersist()
    elif id(rows) in _kept:
        _, name = _kept.pop(id(rows))
        rows.sparkSession.sql(f"drop table {name}")


def drop_former(spark: "SparkSession") -> None:
    """Drop the tables of `kept` that a process left more than a day ago."""
    if not is_connected():
        return
    database, _, begin = KEPT.partition(".")
    for row in spark.sql(f"show tables in {database} like '{begin}*'").collect():
        if int(row.tableName.removeprefix(begin).partition("_")[0]) < time.time() - 24 * 3600:
            spark.sql(f"drop table if exists {database}.{row.tableName}")


def view(rows: "DataFrame", until: ExitStack, what: str) -> str:
    """The name of a temporary view of rows, which is used once. In: where it ends; how the name begins."""
    name, spark = f"{what}_{uuid.uuid4().hex}", rows.sparkSession
    rows.createOrReplaceTempView(name)
    until.callback(spark.catalog.dropTempView, name)
    return name


def hold(spark: "SparkSession", path: Path) -> Callable[[], None]:
    """Keep a run that follows from writing next to what runs for this one. In: the file that is locked while a run
    writes. Out: what ends that. A JVM that this process has started may outlive it by a moment, so it locks the file,
    too. A Connect server goes on with a statement when its client is killed, so the next run interrupts it."""
    if is_connected():
        former = path.with_name("_session")
        if former.exists() and (id_ := former.read_text()) not in ("", id_of(spark)):
            _interrupt_former(id_)
        former.write_text(id_of(spark))
        return partial(former.unlink, missing_ok=True)
    file = spark._jvm.java.io.RandomAccessFile(str(path), "rw")
    file.getChannel().tryLock()
    return file.close


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


def stop(spark: "SparkSession") -> None:
    """End a session at once: what it was about to commit is not."""
    try:
        if is_connected():
            spark.interruptAll()
    finally:
        spark.stop()


def jvm_process(spark: "SparkSession"):
    """The process of the JVM that this one has started; None where there is none."""
    context = getattr(spark, "_sc", None)
    return context and getattr(context._gateway, "proc", None)


def begin_question(spark: "SparkSession") -> None:
    """Let `interrupt` end what this thread begins from here on."""
    if not is_connected():
        spark.sparkContext.setJobGroup("question", "inlet sql", interruptOnCancel=True)


def interrupt(spark: "SparkSession") -> None:
    """End what runs for this process."""
    if is_connected():
        spark.interruptAll()
    else:
        spark.sparkContext.cancelAllJobs()


def end_session() -> None:
    """End this process' session of a Connect server, and what runs in it."""
    global _session
    ended, _session = _session, None
    if ended is None:
        return
    try:
        check_server()
    except InletError:
        ended.client.set_retry_policies([])
    with suppress(Exception):  # the server forgets a session later, by itself
        ended.interruptAll()
    ended.stop()
    ended.client.set_retry_policies([])  # of what PySpark asks for at the end of a process


def gateway_of_process() -> Any:
    """The way to the JVM that this process has started, or was started by; None where there is none."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)  # its client of Spark Connect has none
    return context and context._gateway


def kill_jvm() -> None:
    """End the JVM that this process has started, now."""
    if (gateway := gateway_of_process()) and gateway.proc:
        gateway.proc.kill()
        gateway.proc.wait()
