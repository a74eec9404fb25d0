"""Derby's network server: the process that opens a catalog for several others.

The pyspark wheel has Derby without its server and client; these are fetched once (maven.py).

Who opens a catalog can repoint every view, so the server asks for a password. Each start makes a new one, in files that
only their owner can read: Derby's own, and a hive-site.xml, which Spark finds on its class path. The user is APP,
because that is the schema in which Derby keeps the catalog when it is opened in the folder.

Source: Apache Derby 10.16, Server and Administration Guide; Security Guide, "Configuring BUILTIN authentication".
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from inlet.errors import EnvironmentLacks
from inlet.lake import beside, maven
from inlet.lake.java import check_java, java

DERBY = "10.16.1.1"  # as in the wheel
HOST, USER = "127.0.0.1", "APP"
SERVERS = beside.folder("servers")
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


class Server(NamedTuple):
    """A server that was started: where it listens, the folder of its credentials and log, its process."""

    place: str  # host:port
    folder: str
    pid: int

    def class_path(self) -> str:
        """What a JVM needs before its own class path: the password, and Derby's client."""
        client = next(jar for jar in jars() if jar.name.startswith("derbyclient"))
        return os.pathsep.join((self.folder, str(client)))

    def is_running(self) -> bool:
        """Is its process there still, and not another one of that number?"""
        return self.folder in _command_line(self.pid)

    def stop(self) -> None:
        """End the process and remove its folder."""
        if self.is_running():
            os.kill(self.pid, signal.SIGTERM)
        until = time.monotonic() + READY_SECONDS
        while self.is_running() and time.monotonic() < until:
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)


def start(port: int) -> tuple[Server, subprocess.Popen]:
    """Start a server on 127.0.0.1. It goes on when this process ends, and is not yet ready.

    Raises: EnvironmentLacks where there is no Java, or the jars cannot be had.
    """
    check_java()
    class_path, folder = os.pathsep.join(map(str, jars())), _new_folder()
    password = secrets.token_hex(16)
    for name, text in (("derby.properties", SERVER_FILE), ("hive-site.xml", CLIENT_FILE)):  # in a folder of mode 700
        (folder / name).write_text(text.format(user=USER, password=password))
    control = "org.apache.derby.drda.NetworkServerControl"
    command = [java(), "-Xmx256m", f"-Dderby.system.home={folder}", "-cp", class_path, control]
    with _log(folder).open("w") as output:
        process = subprocess.Popen(
            [*command, "start", "-h", HOST, "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    started = Server(f"{HOST}:{port}", str(folder), process.pid)
    while process.poll() is None and not started.is_running():
        time.sleep(0.01)  # between the fork and its new command line a process has none
    return started, process


def _new_folder() -> Path:
    """Only its owner can look into it. Beside the jars, for a server may outlive what clears temporary files; among
    these where that may not be written.
    """
    try:
        SERVERS.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="inlet-catalog-", dir=SERVERS))
    except OSError:
        return Path(tempfile.mkdtemp(prefix="inlet-catalog-"))


def wait_until_ready(server: Server) -> None:
    """Raises: EnvironmentLacks, with the last line of its log, where it does not get ready."""
    log, until = _log(Path(server.folder)), time.monotonic() + READY_SECONDS
    while time.monotonic() < until and server.is_running():
        if "ready to accept connections" in log.read_text():
            return
        time.sleep(0.1)
    last = (log.read_text().strip().splitlines() or ["it wrote nothing"])[-1]
    raise EnvironmentLacks(f"The catalog's server did not start on {server.place}: {last}", "Give another --port")


def answers(place: str) -> bool:
    """Does something listen at host:port?"""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError):
        return False
    return True


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listening:
        return listening.getsockname()[1]


def jars() -> list[Path]:
    """Derby's jars, with server and client."""
    return maven.fetched("derby", tuple(f"org.apache.derby:{name}:{DERBY}" for name in ("derbynet", "derbyclient")))


def _log(folder: Path) -> Path:
    return folder / "server.log"


def _command_line(pid: int) -> str:
    """The command line of a process; '' where it has ended."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return ""
    return subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True).stdout
