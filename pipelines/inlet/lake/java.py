"""What Spark needs to start here: its Python package and a Java."""

import codecs
import importlib.util
import locale
import os
import re
import shutil
import subprocess
from pathlib import Path

from inlet.errors import EnvironmentLacks

JAVA_AT_LEAST = 17


def java() -> str:
    """The Java that Spark takes; empty where there is none."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or ""


def use_utf8() -> None:
    """Let Java read names of files as UTF-8 where the locale has ASCII alone, as cron's: Python does so by itself."""
    if codecs.lookup(locale.getencoding()).name == "ascii":
        os.environ["LC_ALL"] = "C.UTF-8"


def check_pyspark() -> str:
    """The version of PySpark. Raises: EnvironmentLacks where it is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise EnvironmentLacks("PySpark is not installed", "pip install 'inlet[spark]'")
    from pyspark.version import __version__

    return __version__


def check_java() -> str:
    """The version of the Java that Spark will use. Raises: EnvironmentLacks, also where PySpark is not installed."""
    check_pyspark()
    use_utf8()
    if not java() or not Path(java()).exists():
        raise EnvironmentLacks(
            "No Java was found",
            f"Install Java {JAVA_AT_LEAST} or later (Debian: apt-get install "
            "openjdk-17-jre-headless) and put it on PATH or name it in JAVA_HOME",
        )
    output = subprocess.run([java(), "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    major = int(version[2] if version and version[1] == "1" and version[2] else version[1]) if version else 0
    if major < JAVA_AT_LEAST:
        raise EnvironmentLacks(
            f"Java {major} at {java()} is too old for Spark",
            f"Install Java {JAVA_AT_LEAST} or later and name it in JAVA_HOME",
        )
    return next(line for line in output.splitlines() if version[0] in line)  # JDK_JAVA_OPTIONS is told before it
