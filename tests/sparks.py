"""Sparks that somebody else has started: a Connect server and a standalone cluster, from the wheel, on loopback. Their
Python workers have Inlet's packages and not Inlet."""

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from inlet.lake import jars
from inlet.lake.derby import answers, free_port

HOME = Path(pyspark.__file__).parent
SECONDS = 120  # in which a server answers


def worker_python(folder: Path) -> Path:
    """A Python that finds the packages of this one, and no package that is installed for editing, as Inlet is."""
    script = folder / "worker_python"
    packages = sysconfig.get_path("purelib")
    script.write_text(f'#!/bin/sh\nexec env PYTHONPATH="$PYTHONPATH:{packages}" {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script


@contextmanager
def started(words: list[str], folder: Path, port: int, **variables: str) -> Iterator[subprocess.Popen]:
    """A server that answers at a port, ended with all its children."""
    python = str(worker_python(folder))
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_REMOTE")}
    environment |= {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python} | variables
    with (folder / "server.log").open("a") as log:
        server = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        until = time.monotonic() + SECONDS
        while not answers(f"127.0.0.1:{port}"):
            assert server.poll() is None and time.monotonic() < until, (folder / "server.log").read_text()[-3000:]
            time.sleep(0.2)
        yield server
    finally:
        end(server)


def end(server: subprocess.Popen) -> None:
    """End a server with all its children, as if its machine went away; again does no harm."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@contextmanager
def connect(folder: Path, *settings: str) -> Iterator[str]:
    """A Connect server with a catalog of its own in a folder. In: settings, as `name=value`. Out: its address."""
    port = free_port()
    own = [
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation=hive",
        f"spark.sql.warehouse.dir={folder}/warehouse",
        f"spark.hadoop.javax.jdo.option.ConnectionURL=jdbc:derby:;databaseName={folder}/catalog;create=true",
        f"spark.driver.extraJavaOptions=-Duser.timezone=UTC -Dderby.system.home={folder}",
        "spark.connect.grpc.binding.address=127.0.0.1",
        f"spark.connect.grpc.binding.port={port}",
        "spark.databricks.delta.snapshotPartitions=2",  # the default, 50, makes every small commit cost seconds
        "spark.ui.enabled=false",
        *settings,
    ]
    words = [str(HOME / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    words += ["--driver-class-path", ":".join(jars.paths().read_text().split()), "--driver-memory", "2g"]
    words += [word for setting in own for word in ("--conf", setting)]
    with started([*words, "spark-internal"], folder, port):
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def cluster(folder: Path, num_workers: int = 2) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A standalone cluster with workers of one core. Out: its master, as Spark names it; its workers, whose executors
    are in their process groups."""
    port, deploy = free_port(), [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy"]
    master, workers = f"spark://127.0.0.1:{port}", list[subprocess.Popen]()
    with ExitStack() as running:
        words = ["-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"]
        running.enter_context(started([deploy[0], f"{deploy[1]}.master.Master", *words], folder, port))
        for number in range(num_workers):
            (own := folder / f"worker_{number}").mkdir(exist_ok=True)
            at = free_port()
            words = [
                "-h",
                "127.0.0.1",
                "-p",
                str(at),
                "--webui-port",
                "0",
                "-c",
                "1",
                "-m",
                "2g",
                "-d",
                str(own),
                master,
            ]
            workers.append(running.enter_context(started([deploy[0], f"{deploy[1]}.worker.Worker", *words], own, at)))
        yield master, workers
