"""The catalog on a server that several processes share: runs that a scheduler starts, and whoever asks meanwhile.

Derby's network server opens the very catalog that stands in the lakehouse folder, which without it one process at a
time can do. The pyspark wheel has Derby without its server and client; Ivy, which the wheel has too, gets these once.

Who opens the catalog can repoint every view, so the server asks for a password. Each start makes a new one, in files
that only their owner can read: Derby's own, and a hive-site.xml, which Spark finds on its class path. The user is APP,
because that is the schema in which Derby keeps the catalog when it is opened in the folder.

Source: Apache Derby 10.16, Server and Administration Guide; Security Guide, "Configuring BUILTIN authentication".
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from inlet.errors import EnvironmentLacks

DERBY = "10.16.1.1"  # as in the wheel
HOST, USER = "127.0.0.1", "APP"
READY_SECONDS = 60
SERVER_FILE = """\
derby.connection.requireAuthentication=true
derby.authentication.provider=BUILTIN
derby.user.{user}={password}
"""
CLIENT_FILE = """\
<configuration>
  <property><name>javax.jdo.option.ConnectionUserName</name><value>{user}</value></property>
  <property><name>javax.jdo.option.ConnectionPassword</name><value>{password}</value></property>
</configuration>
"""


def server() -> str:
    """host:port of the server to use; '' where the catalog is opened in the folder."""
    return os.environ.get("INLET_CATALOG", "")


def settings(lakehouse: str) -> dict[str, str]:
    """Spark settings that open the catalog of a lakehouse. In: its absolute path."""
    url = f"jdbc:derby://{server()}/{lakehouse}" if server() else f"jdbc:derby:;databaseName={lakehouse}"
    driver = "Client" if server() else "Embedded"
    return {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"{url}/_catalog;create=true",
        "spark.hadoop.javax.jdo.option.ConnectionDriverName": f"org.apache.derby.jdbc.{driver}Driver",
    }


def check() -> None:
    """Raises: EnvironmentLacks where no server answers; before a JVM takes half a minute to find out."""
    if not _is_answered(server()):
        raise EnvironmentLacks(
            f"No catalog answers at INLET_CATALOG={server()}", "Start `inlet catalog`, or unset INLET_CATALOG"
        )


@contextmanager
def served(port: int):
    """Serves the catalogs of all lakehouses on this machine, and stops. Out: what the environment of a process must say
    to use them, and the server's process.

    Raises: EnvironmentLacks where the jars cannot be had or the port is taken.
    """
    from inlet.lake.java import check_java, java

    check_java()
    if _is_answered(f"{HOST}:{port}"):
        raise EnvironmentLacks(
            f"Something listens on {HOST}:{port} already",
            "If that is a catalog, export both lines that it printed; one whose start was killed goes on: end its "
            "process; else give another --port",
        )
    jars, folder = _jars(java()), Path(tempfile.mkdtemp(prefix="inlet-catalog-"))  # readable by its owner alone
    password, log = secrets.token_hex(16), folder / "server.log"
    for name, text in (("derby.properties", SERVER_FILE), ("hive-site.xml", CLIENT_FILE)):
        (folder / name).write_text(text.format(user=USER, password=password))
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                java(),
                "-Xmx256m",
                f"-Dderby.system.home={folder}",
                "-cp",
                os.pathsep.join(map(str, jars)),
                "org.apache.derby.drda.NetworkServerControl",
                "start",
                "-h",
                HOST,
                "-p",
                str(port),
            ],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        _await(process, port, log)
        client = next(jar for jar in jars if jar.name.startswith("derbyclient"))
        yield (
            {"INLET_CATALOG": f"{HOST}:{port}", "SPARK_DIST_CLASSPATH": os.pathsep.join(map(str, (folder, client)))},
            process,
        )
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _is_answered(place: str) -> bool:
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError):
        return False
    return True


def _await(process: subprocess.Popen, port: int, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if "ready to accept connections" in log.read_text():
            return
        time.sleep(0.1)
    last = (log.read_text().strip().splitlines() or ["it wrote nothing"])[-1]
    raise EnvironmentLacks(f"The catalog's server did not start on {HOST}:{port}: {last}", "Give another --port")


def _jars(java: str) -> list[Path]:
    """Derby's jars, with server and client. They lie beside the virtual environment."""
    folder = Path(sys.prefix) / "share" / "inlet" / f"derby-{DERBY}"
    import pyspark

    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as got:
            for name in ("derbynet", "derbyclient"):
                done = subprocess.run(
                    [
                        java,
                        "-jar",
                        ivy,
                        "-confs",
                        "default",
                        "-dependency",
                        "org.apache.derby",
                        name,
                        DERBY,
                        "-retrieve",
                        f"{got}/jars/[artifact]-[revision].[ext]",
                    ],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                if done.returncode:
                    raise EnvironmentLacks(
                        f"org.apache.derby:{name}:{DERBY} cannot be had: {done.stdout.strip()[-300:]}",
                        "Check that Maven Central can be reached",
                    )
            (Path(got) / "jars").rename(folder)
    return sorted(folder.glob("*.jar"))
