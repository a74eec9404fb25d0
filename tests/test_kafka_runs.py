"""Whole runs over a real broker: killed in the middle of batches, and followed until they are told to stop."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from infra.local import broker as brokers
from inlet import config, lake
from inlet.commands import init
from inlet.commands import run as running
from inlet.gold import generate
from inlet.log import as_json
from tests import projects
from tests.test_kafka import admin, insert, made, told  # noqa: F401  a fixture, and what sends

TOPIC, NUM_PARTITIONS = "items", 2
NUM_KILLS = int(os.environ.get("INLET_KAFKA_KILLS", "50"))
COMMAND = [sys.executable, "-m", "inlet.cli", "run"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with brokers.started(tmp_path_factory.mktemp("broker")) as started:
        yield started


def project_of(root, broker):
    """A project of one table, without expectations, which reads the topic."""
    init.init(root)
    given = {"transport": "kafka", "servers": broker.servers, "topics": [TOPIC]}
    projects.make(root, {"shop": {"codec": "qlik_json", "from": given, "tables": {TOPIC: "DEPOT.ITEMS"}}})
    for step in ("bronze", "silver", "gold"):
        (root / "expectations" / f"{step}.yml").write_text("[]")
    generate.write(config.load(root))
    return config.load(root)


class Sending(threading.Thread):
    """Sends items in transactions of a few messages until told to stop. One in four is rolled back; some messages are
    sent again, later, at new offsets.
    """

    def __init__(self, broker):
        super().__init__(daemon=True)
        self.producer = Producer(told(broker) | {"transactional.id": "shop"})
        self.is_stopped, self.committed, self.rng = threading.Event(), set(), random.Random(7)

    def run(self) -> None:
        self.producer.init_transactions()
        number = 0
        while not self.is_stopped.wait(0.05):
            items = list(range(number, number + self.rng.randint(1, 20)))
            number += len(items)
            again = self.rng.sample(sorted(self.committed), 2) if len(self.committed) > 2 else []
            self.producer.begin_transaction()
            for item in [*items, *again]:
                self.producer.produce(TOPIC, insert(item), partition=item % NUM_PARTITIONS)
            if self.rng.random() < 0.25:
                self.producer.flush()
                self.producer.abort_transaction()
            else:
                self.producer.commit_transaction()
                self.committed |= set(items)

    def stop(self) -> None:
        self.is_stopped.set()
        self.join()


def there(broker) -> list[tuple]:
    """(partition, offset, value) of every committed message, as a plain consumer reads them."""
    own = {"group.id": "judge", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer, found, num_ended = Consumer(told(broker) | own), [], 0
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(NUM_PARTITIONS)])
    while num_ended < NUM_PARTITIONS:
        for message in consumer.consume(1000, timeout=1):
            if message.error() is None:
                found.append((message.partition(), message.offset(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                num_ended += 1
    consumer.close()
    return sorted(found)


def start(project, *more: str) -> subprocess.Popen:
    command = [*COMMAND, "--project", str(project.root), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.proof
@pytest.mark.gate
def test_nothing_is_lost_or_doubled_when_the_driver_is_killed(broker, admin, tmp_path, record_property):  # noqa: F811
    made(admin, TOPIC, NUM_PARTITIONS)
    project, rng = project_of(tmp_path / "project", broker), random.Random(11)
    sending, kills = Sending(broker), []
    sending.start()
    while len(kills) < NUM_KILLS:
        run = start(project, "--follow", "--every", "0.1", "--until", "silver")
        kills.append(kill_in_a_batch(run, rng))
    sending.stop()
    last = subprocess.run(
        [*COMMAND, "--project", str(project.root), "--until", "silver"], capture_output=True, text=True
    )
    assert last.returncode == 0, last.stderr
    landed = lake.peek(project.lakehouse_path(), "bronze.messages", ["partition", '"offset"', "value"])
    assert sorted((row["partition"], row["offset"], row["value"]) for row in landed) == there(broker)
    changes = [row["change_seq"] for row in lake.peek(project.lakehouse_path(), "silver.changes", ["change_seq"])]
    assert sorted(changes) == [f"2026010200000000{item:019d}" for item in sorted(sending.committed)]
    record_property("kills", len(kills))
    record_property("in", " ".join(sorted(set(kills))))
    record_property("messages", len(landed))
    assert not running.find_work(project, running.steps_to_run(None, "silver"), [], [])


def kill_in_a_batch(run: subprocess.Popen, rng: random.Random) -> str:
    """Kill a run and its JVM with -9, a random while after its session is there. Out: the step that it said last."""
    lines = []
    for line in run.stderr:
        lines.append(line)
        if '"step": "spark"' in line:
            break
    assert run.poll() is None, "".join(lines)
    time.sleep(rng.random() * 12)
    assert run.poll() is None
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    return re.findall(r'"step": "(\w+)"', "".join(lines) + run.stderr.read())[-1]


@pytest.mark.proof
def test_a_followed_source_is_published_as_it_goes_and_others_get_their_turn(broker, admin, tmp_path):  # noqa: F811
    made(admin, TOPIC + "_followed")
    project = project_of(tmp_path / "project", broker)
    text = (project.root / "pipelines" / "inlet.yml").read_text().replace(TOPIC, TOPIC + "_followed")
    (project.root / "pipelines" / "inlet.yml").write_text(text)
    producer = Producer(told(broker))

    def send(item: int) -> None:
        producer.produce(TOPIC + "_followed", insert(item))
        producer.flush()

    def ask(*question: str) -> str:
        command = [sys.executable, "-m", "inlet.cli", *question, "--project", str(project.root)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    run = start(project, "--follow", "--every", "0.5")
    log: list[dict] = []
    reading = threading.Thread(target=lambda: log.extend(map(json.loads, run.stderr)), daemon=True)
    reading.start()
    try:
        for item in (1, 2):
            send(item)
            await_(lambda item=item: sum(e["step"] == "publish" for e in log) == item)
        assert json.loads(ask("show", "items", "--key", "2", "--format", "json"))["name"] == "item 2"
        assert "2" in ask("sql", "select count(*) from items", "--format", "csv")  # beside it, on the same catalog
        assert "equal" in ask("verify", "--table", "items")  # needs the lakehouse for itself
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 0
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    reading.join(10)
    assert log[-1]["step"] == "run" and "stopped" in log[-1], json.dumps(log, default=as_json)


def await_(is_so, seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.2)
