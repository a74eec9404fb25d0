"""Inlet's own classes for Spark's Thrift Server (scala/), compiled once by the Scala compiler that the pyspark wheel
has. They lie beside the virtual environment.
"""

import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from inlet.errors import EnvironmentLacks
from inlet.lake.java import check_java, java

SOURCES = Path(__file__).parent / "scala"


def classes() -> Path:
    """The folder of the compiled classes. Raises: EnvironmentLacks where there is no Java, or it cannot compile."""
    import pyspark

    sources = sorted(SOURCES.glob("*.scala"))
    version = zlib.crc32(pyspark.__version__.encode() + b"".join(path.read_bytes() for path in sources))
    folder = Path(sys.prefix) / "share" / "inlet" / f"classes-{version:08x}"
    if folder.exists():
        return folder
    check_java()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        compiler = [java(), "-cp", f"{Path(pyspark.__file__).parent}/jars/*", "scala.tools.nsc.Main", "-usejavacp"]
        out = Path(made) / "classes"
        out.mkdir()
        done = subprocess.run([*compiler, "-nowarn", "-d", out, *sources], capture_output=True, text=True)
        if done.returncode:
            raise EnvironmentLacks(
                f"Inlet's classes for Spark could not be compiled: {(done.stdout + done.stderr).strip()[:300]}",
                "Check Java and the installed pyspark with `inlet doctor`",
            )
        try:
            os.rename(out, folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
    return folder
