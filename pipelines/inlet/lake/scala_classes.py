"""Inlet's own classes for Spark's Thrift Server (scala/), compiled once by the Scala compiler that the pyspark wheel
has. They lie beside the virtual environment.
"""

import subprocess
import zlib
from pathlib import Path

from inlet.errors import EnvironmentLacks
from inlet.lake import beside
from inlet.lake.java import check_java, java

SOURCES = Path(__file__).parent / "scala"


def classes() -> Path:
    """The folder of the compiled classes. Raises: EnvironmentLacks where there is no Java, or it cannot compile."""
    import pyspark

    sources = sorted(SOURCES.glob("*.scala"))
    version = zlib.crc32(pyspark.__version__.encode() + b"".join(path.read_bytes() for path in sources))
    folder = beside.folder(f"classes-{version:08x}")
    if folder.exists():
        return folder
    check_java()
    with beside.made(folder) as out:
        compiler = [java(), "-cp", f"{Path(pyspark.__file__).parent}/jars/*", "scala.tools.nsc.Main", "-usejavacp"]
        done = subprocess.run([*compiler, "-nowarn", "-d", out, *sources], capture_output=True, text=True)
        if done.returncode:
            raise EnvironmentLacks(
                f"Inlet's classes for Spark could not be compiled: {(done.stdout + done.stderr).strip()[:300]}",
                "Check Java and the installed pyspark with `inlet doctor`",
            )
    return folder
