"""A schema registry for proofs: Apicurio Registry, which answers as Confluent's does; fetched from Maven Central once,
started on a free port of the loopback interface, stopped by its process.

    with registry.started(folder) as running:
        running.address        # http://127.0.0.1:port/apis/ccompat/v7
"""

import io
import json
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from inlet.errors import EnvironmentLacks
from inlet.lake import beside
from inlet.lake.java import java

VERSION = "3.0.9"
NAME = f"apicurio-registry-app-{VERSION}"
ARCHIVE = f"https://repo1.maven.org/maven2/io/apicurio/apicurio-registry-app/{VERSION}/{NAME}-all.tar.gz"
READY_SECONDS, FETCH_SECONDS = 60, 300


@dataclass
class Registry:
    """A registry that runs."""

    address: str
    process: subprocess.Popen

    def register(self, subject: str, schema: str) -> int:
        """Register a schema. Out: its id."""
        body = json.dumps({"schema": schema}).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.address}/subjects/{subject}/versions", body, headers)
        with urllib.request.urlopen(request, timeout=READY_SECONDS) as answer:
            return int(json.load(answer)["id"])

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def started(folder: Path) -> Iterator[Registry]:
    """A registry until the block is left. Raises: EnvironmentLacks where it cannot be had or does not start."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    options = ["-Xmx512m", "-XX:+UseSerialGC", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
    options += ["-Dapicurio.storage.sql.kind=h2", f"-Dapicurio.datasource.url=jdbc:h2:file:{folder}/registry"]
    with (folder / "registry.log").open("w") as log:
        process = subprocess.Popen([java(), *options, "-jar", str(_jar())], stdout=log, stderr=log, cwd=folder)
    running = Registry(f"http://127.0.0.1:{port}/apis/ccompat/v7", process)
    try:
        _await(running, folder)
        yield running
    finally:
        running.stop()


def _jar() -> Path:
    """The jar that starts the registry. Raises: EnvironmentLacks."""
    folder = beside.folder(NAME)
    if not folder.exists():
        try:
            with urllib.request.urlopen(ARCHIVE, timeout=FETCH_SECONDS) as answer:
                data = answer.read()
        except OSError as error:
            raise EnvironmentLacks(f"{ARCHIVE} cannot be had: {error}", "Check that Maven Central answers") from error
        with beside.made(folder) as into, tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(into, filter="data")
    return next(folder.rglob("*-runner.jar"))


def _await(running: Registry, folder: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and running.process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"{running.address}/subjects", timeout=1):
            return
        time.sleep(0.2)
    raise EnvironmentLacks(f"The registry does not start; see {folder}/registry.log", "See that Java 17 is there")
