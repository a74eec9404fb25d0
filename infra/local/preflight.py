"""Says in one sentence what this machine lacks, before anything is installed. Runs on any Python 3, without packages."""

import re
import shutil
import subprocess
import sys
import os

NEEDS_GB = 3


def lack():
    """The sentence, or None."""
    if sys.version_info < (3, 11):
        return "Python %d.%d is too old: install Python 3.11 or later and run `make PYTHON=python3.11 ...`" % sys.version_info[:2]
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python cannot make virtual environments: install its venv package (Debian: apt-get install python3-venv)"
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    remedy = "install Java 17 or later (Debian: apt-get install openjdk-17-jre-headless) and put it on PATH or in JAVA_HOME"
    if not java or not os.path.exists(java):
        return "No Java was found: " + remedy
    said = subprocess.run([java, "-version"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True).stderr
    version = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    major = int(version.group(2) if version and version.group(1) == "1" else version.group(1)) if version else 0
    if major < 17:
        return "Java %d at %s is too old for Spark: %s" % (major, java, remedy)
    free = shutil.disk_usage(".").free / 1e9
    if free < NEEDS_GB:
        return "Only %.1f GB of disk are free here: make room for %d GB (packages, jars, the demo's lakehouse)" % (free, NEEDS_GB)
    return None


if __name__ == "__main__":
    problem = lack()
    if problem:
        sys.exit("inlet: " + problem)
