"""A Kafka broker of one node for the demo and the tests: fetched from Maven Central once, started on free ports of the
loopback interface, stopped by its process.

    with broker.started(folder) as kafka:
        kafka.servers          # host:port for clients

Run: python -m infra.local.broker FOLDER     until Ctrl-C
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from inlet.errors import EnvironmentLacks
from inlet.lake import maven
from inlet.lake.java import java

KAFKA = ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3")
READY_SECONDS = 60
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.cleaner.backoff.ms=500
log.segment.delete.delay.ms=100
"""
WITH_PASSWORDS = """\
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
  org.apache.kafka.common.security.plain.PlainLoginModule required {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


@dataclass
class Broker:
    """A broker that runs. `servers` asks for nothing; `guarded_servers` for one of `users` and its password."""

    folder: Path
    servers: str
    guarded_servers: str
    process: subprocess.Popen
    users: dict[str, str] = field(default_factory=dict)

    def stop(self) -> None:
        """Stop it and wait; its data stay."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def start(self) -> None:
        """Start it, or start it again, on its ports and its data. Raises: EnvironmentLacks where it does not answer."""
        with (self.folder / "broker.log").open("a") as log:
            self.process = _java(self.folder, "kafka.Kafka", str(self.folder / "server.properties"), log=log)
        _await(self)


@contextmanager
def started(folder: Path, users: dict[str, str] | None = None) -> Iterator[Broker]:
    """A broker that runs until the block is left. In: its folder; users and passwords of a second port that asks for
    them (SASL/PLAIN), where rights are checked.

    Raises: EnvironmentLacks where its jars cannot be had or it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plain, guarded, controller = (_free_port() for _ in range(3))
    listeners = f"PLAINTEXT://127.0.0.1:{plain}"
    if users:
        listeners += f",SASL_PLAINTEXT://127.0.0.1:{guarded}"
    text = SETTINGS.format(listeners=listeners, controller=controller, folder=folder)
    if users:
        text += WITH_PASSWORDS.format(users=" ".join(f'user_{name}="{word}"' for name, word in users.items()))
    (folder / "server.properties").write_text(text)
    with (folder / "broker.log").open("w") as log:
        cluster = ("-t", uuid.uuid4().hex[:22], "-c", str(folder / "server.properties"))
        if _java(folder, "kafka.tools.StorageTool", "format", *cluster, log=log).wait():
            raise EnvironmentLacks(
                f"The broker's folder cannot be made; see {folder}/broker.log", "Name another folder"
            )
    broker = Broker(folder, f"127.0.0.1:{plain}", f"127.0.0.1:{guarded}", None, users or {})  # type: ignore[arg-type]
    try:
        broker.start()
        yield broker
    finally:
        if broker.process:
            broker.stop()


def _java(folder: Path, *command: str, log) -> subprocess.Popen:
    classes = os.pathsep.join(map(str, maven.fetched("kafka", KAFKA)))
    options = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dkafka.logs.dir={folder}"]
    return subprocess.Popen([java(), *options, "-cp", classes, *command], stdout=log, stderr=log, cwd=folder)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _await(broker: Broker) -> None:
    host, port = broker.servers.split(":")
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and broker.process.poll() is None:
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.1)
    raise EnvironmentLacks(f"The broker does not start; see {broker.folder}/broker.log", "See that Java 17 is there")


if __name__ == "__main__":
    with started(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).absolute()) as running:
        print(f"Kafka at {running.servers}, until Ctrl-C", flush=True)
        with suppress(KeyboardInterrupt):
            running.process.wait()
