"""The catalog on a server that several processes share: runs that a scheduler starts, and whoever asks meanwhile.

Derby's network server opens the very catalog that stands in the lakehouse folder, which without it one process at a time can do. The
pyspark wheel has Derby without its server and client; Ivy, which the wheel has too, gets these once.

Source: Apache Derby 10.16, Server and Administration Guide.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from inlet.errors import EnvironmentLacks

DERBY = "10.16.1.1"                              # as in the wheel
HOST = "127.0.0.1"                               # it asks for no password
READY_SECONDS = 60


def server() -> str:
    """host:port of the server to use; '' where the catalog is opened in the folder."""
    return os.environ.get("INLET_CATALOG", "")


def settings(lakehouse: str) -> dict[str, str]:
    """Spark settings that open the catalog of a lakehouse. In: its absolute path."""
    url = f"jdbc:derby://{server()}/{lakehouse}" if server() else f"jdbc:derby:;databaseName={lakehouse}"
    return {"spark.hadoop.javax.jdo.option.ConnectionURL": f"{url}/_catalog;create=true",
            "spark.hadoop.javax.jdo.option.ConnectionDriverName": f"org.apache.derby.jdbc.{'Client' if server() else 'Embedded'}Driver"}


def check() -> None:
    """Raises: EnvironmentLacks where no server answers; before a JVM takes half a minute to find out."""
    if not _is_answered(server()):
        raise EnvironmentLacks(f"No catalog answers at INLET_CATALOG={server()}", "Start `inlet catalog`, or unset INLET_CATALOG")


@contextmanager
def served(port: int):
    """Serves the catalogs of all lakehouses on this machine, and stops. Out: what the environment of a process must say to use them,
    and the server's process.

    Raises: EnvironmentLacks where the jars cannot be had or the port is taken.
    """
    from inlet.spark import check_java, java

    check_java()
    if _is_answered(f"{HOST}:{port}"):
        raise EnvironmentLacks(f"Something listens on {HOST}:{port} already", f"If that is a catalog, export INLET_CATALOG={HOST}:{port}; else give another --port")
    jars, said = _jars(java()), Path(tempfile.gettempdir()) / f"inlet-catalog-{os.getuid()}-{port}.log"
    with said.open("w") as log:
        process = subprocess.Popen([java(), "-Xmx256m", f"-Dderby.stream.error.file={said}.derby", "-cp", os.pathsep.join(map(str, jars)),
                                    "org.apache.derby.drda.NetworkServerControl", "start", "-h", HOST, "-p", str(port)],
                                   stdout=log, stderr=log, start_new_session=True)
    try:
        _await(process, port, said)
        client = next(jar for jar in jars if jar.name.startswith("derbyclient"))
        yield {"INLET_CATALOG": f"{HOST}:{port}", "SPARK_DIST_CLASSPATH": str(client)}, process
    finally:
        process.terminate()
        process.wait()


def _is_answered(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError):
        return False
    return True


def _await(process: subprocess.Popen, port: int, said: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if "ready to accept connections" in said.read_text():
            return
        time.sleep(0.1)
    raise EnvironmentLacks(f"The catalog's server did not start on {HOST}:{port}", f"Give another --port, or read {said}")


def _jars(java: str) -> list[Path]:
    """Derby's jars, with server and client. They lie beside the virtual environment."""
    folder = Path(sys.prefix) / "share" / "inlet" / f"derby-{DERBY}"
    ivy, = (Path(find_spec("pyspark").origin).parent / "jars").glob("ivy-*.jar")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as got:
            for name in ("derbynet", "derbyclient"):
                done = subprocess.run([java, "-jar", ivy, "-confs", "default", "-dependency", "org.apache.derby", name, DERBY,
                                       "-retrieve", f"{got}/jars/[artifact]-[revision].[ext]"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if done.returncode:
                    raise EnvironmentLacks(f"org.apache.derby:{name}:{DERBY} cannot be had: {done.stdout.strip()[-300:]}", "Check that Maven Central can be reached")
            (Path(got) / "jars").rename(folder)
    return sorted(folder.glob("*.jar"))
