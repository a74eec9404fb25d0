"""A Spark session on a lakehouse for Python: a notebook, a script, an interpreter. `inlet.connect` is this."""

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from inlet import config, publish
from inlet.errors import ConfigError
from inlet.lake import catalog, engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_shared = ExitStack()  # the catalog is shared until this process ends


def connect(project: Path | str = ".", database: str = "public", pin: str | None = None) -> "SparkSession":
    """Begin a Spark session on a project's lakehouse. Runs, replays and other sessions go on meanwhile: they share the
    catalog until this process ends.

    In: the project folder; the database of names without one; or a pin, which is made at the newest published point
    where there is none of that name, so that all queries see every table at one point.
    Out: a plain Spark session: it can write, and nothing keeps it from doing so.
    Raises: ConfigError where there is no such project or database, TryAgain where a process that does not share has
    the catalog open, EnvironmentLacks where Java or the jars are missing.
    """
    from inlet.commands import sql
    from inlet.lake.spark import session, small_query_settings
    from inlet.publish import pins

    loaded = config.load(project)
    lakehouse = loaded.lakehouse_path()
    if not engine.is_connected():
        _check_one_lakehouse(lakehouse)
    if not engine.is_connected() and not catalog.server(lakehouse):
        _shared.enter_context(catalog.shared(lakehouse))
    spark = session(lakehouse)
    _reap()
    publish.show(loaded, spark)
    with small_query_settings(spark, is_small=True):
        if pin and pin not in pins.pinned(spark):
            pins.pin(loaded, spark, pin, pins.find(loaded, pin))
    sql.use(spark, pin or database)
    return spark


def _check_one_lakehouse(lakehouse: str) -> None:
    """Raises: ConfigError where this process has a session on another lakehouse, which Spark would go on using."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active and (other := active.conf.get("spark.sql.warehouse.dir")).removeprefix("file:") != lakehouse:
        raise ConfigError(
            f"This process has a Spark session on {other} already, and can have one alone",
            "Ask the other lakehouse from a process (a notebook) of its own",
        )


def _reap() -> None:
    """Wait for the JVM's end beside all else. A Jupyter kernel that is shut down ends its children first, and waits
    until none is left, a zombie included; then it would be killed, and the shared catalog's server left behind."""
    jvm = engine.jvm_process()  # none where Spark was started by somebody else
    if jvm is not None:
        threading.Thread(target=jvm.wait, name="inlet-jvm", daemon=True).start()
