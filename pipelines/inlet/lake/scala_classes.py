"""Inlet's own classes for Spark (scala/): the Thrift Server, and commits in a store. They are compiled once, by the
Scala compiler that the pyspark wheel has, and lie next to the virtual environment.
"""

import os
import subprocess
import zlib
from pathlib import Path

from inlet.errors import EnvironmentLacks
from inlet.lake import beside, maven
from inlet.lake.java import check_java, java

SOURCES = Path(__file__).parent / "scala"
STORAGE = "io.delta:delta-storage:4.4.0"  # of the Delta that sessions have, to compile against


def classes() -> Path:
    """The folder of the compiled classes. Raises: EnvironmentLacks where there is no Java, or it cannot compile."""
    import pyspark

    sources = sorted(SOURCES.glob("*.scala"))
    version = zlib.crc32(pyspark.__version__.encode() + b"".join(path.read_bytes() for path in sources))
    folder = beside.folder(f"classes-{version:08x}")
    if folder.exists():
        return folder
    check_java()
    jars = [f"{Path(pyspark.__file__).parent}/jars/*", *maven.fetched("delta-storage", (STORAGE,), with_others=False)]
    with beside.made(folder) as out:
        compiler = [java(), "-cp", os.pathsep.join(map(str, jars)), "scala.tools.nsc.Main", "-usejavacp"]
        done = subprocess.run([*compiler, "-nowarn", "-d", out, *sources], capture_output=True, text=True)
        if done.returncode:
            raise EnvironmentLacks(
                f"Inlet's classes for Spark could not be compiled: {(done.stdout + done.stderr).strip()[:300]}",
                "Check Java and the installed pyspark with `inlet doctor`",
            )
    return folder
