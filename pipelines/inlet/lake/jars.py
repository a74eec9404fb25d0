"""Delta's jars, and an archive of the classes that a session loads from them and from Spark's: what a start of Spark
costs beyond Spark.

Ivy resolves the jars by coordinates once; their local paths are remembered beside the virtual environment, because a
resolve at every start costs seconds. The archive holds the 25,000 classes as a JVM has them when it has done what a run
does (class-data sharing): 15 of 65 CPU seconds of a short session. A JVM that does not fit it, another version or
another class path, goes on without it. archive.py writes it.
"""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inlet import storage
from inlet.lake import engine, maven
from inlet.lake.scala_classes import classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS_PATH = "SPARK_DIST_CLASSPATH"  # Spark's own scripts put it after their jars, so an archive still fits
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"  # the wheel's jar; its version is not the wheel's everywhere


def paths() -> Path:
    """Where the paths of the jars are remembered."""
    return Path(sys.prefix) / "share" / "inlet" / f"{DELTA.replace(':', '-')}.jars"


def archive() -> Path:
    return paths().with_suffix(".jsa")


def are_resolved() -> bool:
    return _known() != []


def settings(packages: tuple[str, ...] = (), of_store: Sequence[str] = ()) -> dict[str, str]:
    """Spark settings that bring Delta's jars and the archive, where they are there. In: coordinates of further jars;
    what `add_to_class_path` gave."""
    if not _known():
        return {"spark.jars.packages": ",".join([DELTA, *packages])}
    further = {"spark.jars.packages": ",".join(packages)} if packages else {}
    if engine.is_apart():  # other machines are sent what is in spark.jars
        return {"spark.jars": ",".join([*_known(), *of_store])} | further
    return {
        "spark.driver.extraClassPath": os.pathsep.join(_known())
    } | further  # only what is on the class path comes from an archive


def add_to_class_path(lakehouse: str) -> list[str]:
    """Have the JVMs that this process starts find the jars that its store takes, fetched where they are not there yet.
    Out: their paths. Raises: EnvironmentLacks where they cannot be had."""
    if not (coordinates := storage.spark_jars(lakehouse)):
        return []
    paths = [*map(str, maven.fetched(coordinates[0].split(":")[1], coordinates, with_others=False))]
    given = os.environ.get(CLASS_PATH, "").split(os.pathsep)
    os.environ[CLASS_PATH] = os.pathsep.join(filter(None, dict.fromkeys([*given, *paths, str(classes())])))
    return paths


def java_options() -> str:
    """Options of the JVM that take classes from the archive, where it is there."""
    return (
        f' "-XX:SharedArchiveFile={archive()}" -Xlog:cds*=off'
        if archive().exists() and _known() and not engine.is_apart()
        else ""
    )


def remember(spark: "SparkSession") -> None:
    """Keep the paths of the jars that a session has resolved. Where they cannot be written, each session resolves."""
    if spark.conf.get("spark.jars.packages", "") == DELTA:
        jars = [Path(jar.removeprefix("file:")) for jar in spark.conf.get("spark.jars", "").split(",") if jar]
        import pyspark

        shipped = " ".join(p.name for p in (Path(pyspark.__file__).parent / "jars").iterdir())
        wanted = [str(j) for j in jars if re.sub(r"-[\d.]+\.jar$", "", j.name.split("_", 1)[-1]) + "-" not in shipped]
        if wanted:
            with suppress(OSError):
                paths().parent.mkdir(parents=True, exist_ok=True)
                paths().write_text("\n".join(wanted))


def _known() -> list[str]:
    listed = paths().read_text().splitlines() if paths().exists() else []
    return listed if all(Path(jar).exists() for jar in listed) else []
