"""The Spark that does the work: a JVM that this process starts (embedded, the default), one that spark-submit or a
platform has started, or a Spark Connect server, which SPARK_REMOTE names.

What differs between them is here, in spark.py, connect.py and spark_errors.py, and in what only the embedded one has
(entries.py, archive.py): no other module reaches into a session or keeps state in it (tests/test_imports.py). A session
of Connect has no JVM to reach, and looks a temporary view up when a frame that reads it runs: so views have names that
are used once.
"""

import atexit
import os
import re
import shutil
import sys
import time
import uuid
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import inlet
from inlet import layout
from inlet.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REMOTE = "SPARK_REMOTE"  # Spark's own variable: the address of a Connect server
PLATFORM = "DATABRICKS_RUNTIME_VERSION"  # set there
KEPT = "silver.kept_"  # how the names of tables begin that hold frames which are read several times
_kept: dict[int, tuple["DataFrame", str]] = {}  # by the id of the frame that reads it
_catalogs: dict[str, str] = {}  # by session: the catalog that it was given
_num_tasks: dict[str, int] = {}  # by session
after_statement: list[Callable[[str], None]] = []  # called with each statement of a session
_taken: dict[tuple[str, str], bool] = {}  # by session and setting


def is_platform() -> bool:
    """True on Databricks, which gives a process its session."""
    return PLATFORM in os.environ


def is_connected() -> bool:
    """True if Spark is a Connect server, as serverless compute has it."""
    return bool(os.environ.get(REMOTE)) or is_platform() and _is_client_of_connect()


@cache
def _is_client_of_connect() -> bool:
    return type(session_of_platform()).__module__.startswith("pyspark.sql.connect")


def session_of_platform() -> "SparkSession":
    """The session that Databricks has given this process; `getOrCreate` returns it, as its documentation says."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def is_given() -> bool:
    """True if somebody else has started Spark and says where its catalog is: a Connect server, a platform."""
    return is_platform() or is_connected()


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


def check_embedded(what: str) -> None:
    """Raises: ConfigError where Spark is a Connect server, which cannot do it."""
    if is_connected():
        raise ConfigError(f"{what} needs a Spark that Inlet starts", f"Unset {REMOTE}, which names a Connect server")


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


def name_tables(spark: "SparkSession") -> None:
    """Let the statements of a session, and of what runs in it (dbt), name tables as the layout has them. Raises:
    ConfigError where its catalog is not there."""
    from pyspark.errors import PySparkException

    own: Any = spark
    if "sql" not in vars(own):
        kind: Any = type(spark)

        def run(statement: str, *args, **named):
            try:
                return kind.sql(own, layout.in_sql(statement), *args, **named)
            finally:
                for call in after_statement:
                    call(statement)

        own.sql, own.table = run, lambda name: kind.table(own, layout.of(name))
    if layout.catalog() and _catalogs.get(id_of(spark)) != layout.catalog():
        try:
            own.catalog.setCurrentCatalog(layout.catalog())
            _catalogs[id_of(spark)] = layout.catalog()
        except PySparkException as error:
            raise ConfigError(
                f"This Spark has no catalog {layout.catalog()}: {str(error).splitlines()[0]}",
                "Name one of its catalogs in `lakehouse`, or with --lakehouse",
            ) from error


def has_table(spark: "SparkSession", name: str) -> bool:
    """True if the catalog has a table or view. In: its name, as Inlet says it."""
    return spark.catalog.tableExists(layout.of(name))


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
    # any name of a column
    rows.write.format("delta").option("delta.columnMapping.mode", "name").saveAsTable(layout.of(name))
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
    """Lock a file in the JVM that this process has started, which may outlive it by a moment. Out: what ends that."""
    file = spark._jvm.java.io.RandomAccessFile(str(path), "rw")
    file.getChannel().tryLock()
    return file.close


def stop(spark: "SparkSession") -> None:
    """End a session at once: what it was about to commit is not."""
    try:
        if is_connected():
            spark.interruptAll()
    finally:
        spark.stop()


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


def gateway_of_process() -> Any:
    """The way to the JVM that this process has started, or was started by; None where there is none."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)  # its client of Spark Connect has none
    return context and context._gateway


def jvm_process() -> Any:
    """The process of the JVM that this one has started; None where there is none."""
    return getattr(gateway_of_process(), "proc", None)


def kill_jvm() -> None:
    """End the JVM that this process has started, now."""
    if jvm := jvm_process():
        jvm.kill()
        jvm.wait()
