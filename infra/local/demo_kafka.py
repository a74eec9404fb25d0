"""`make demo-kafka`: the demo's shop over a broker that is started and stopped here.

A project of its own (build/kafka) reads the shop's topics. `inlet run --follow` goes on in micro-batches while the shop
sends; then gold is compared with what the shop's database holds. A second run starts over.
"""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from infra.local import broker as brokers
from infra.local.demo import ROOT, SEED, compare, out
from infra.local.feed import Feed, write_feed
from inlet import bronze, config
from inlet.commands import init, status
from inlet.gold import generate
from inlet.log import Log, print_rows

FOLDER = ROOT / "build" / "kafka"
PROJECT = FOLDER / "project"
SCALE = 0.1
NUM_PARTITIONS = 2
WAIT_SECONDS = 900


def main() -> int:
    """Out: the exit code, 1 where gold differs from the source."""
    started, log = time.monotonic(), Log(is_human=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    feed = write_feed(FOLDER / "feed", seed=SEED, scale=SCALE)
    with brokers.started(FOLDER / "broker") as kafka:
        log.say({"step": "broker", "at": kafka.servers})
        topics = make_project(kafka.servers)
        admin = AdminClient({"bootstrap.servers": kafka.servers})
        keeping = {"retention.ms": "-1"}  # by the times of the shop its messages are old
        new = [NewTopic(topic, NUM_PARTITIONS, 1, config=keeping) for topic in topics]
        for made in admin.create_topics(new).values():
            made.result()
        command = [sys.executable, "-m", "inlet.cli", "run", "--follow", "--every", "1", "--project", str(PROJECT)]
        follower = subprocess.Popen(command)
        try:
            for number, files in enumerate(feed.batches, 1):
                log.say({"step": "shop", "part": number, "messages sent": send(kafka.servers, feed, files)})
                time.sleep(20)  # so that what it sends comes in several micro-batches
            wait_for(follower)
        finally:
            follower.send_signal(signal.SIGTERM)
            follower.wait()
        project = config.load(PROJECT)
        for title, rows in status.status(project).items():
            print_rows(out, rows, title)
    return show(project, feed, started)


def make_project(servers: str) -> list[str]:
    """A project whose only source is the shop's task, read from a broker. Out: its topics."""
    init.init(PROJECT)
    given = yaml.safe_load((ROOT / "pipelines" / "inlet.yml").read_text())["sources"]["shop"]
    given["from"] = {"transport": "kafka", "servers": servers, "topics": ["shop.*"]}
    (PROJECT / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"sources": {"shop": given}}, sort_keys=False))
    for contract in (ROOT / "pipelines" / "tables").glob("*.yml"):
        if yaml.safe_load(contract.read_text())["table"] in given["tables"].values():
            shutil.copy(contract, PROJECT / "pipelines" / "tables")
    generate.write(config.load(PROJECT))
    return sorted(given["tables"])


def send(servers: str, feed: Feed, files: list[Path]) -> int:
    """Send the shop's messages of a delivery, in one transaction of the producer. Out: how many."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "shop"})
    producer.init_transactions()
    producer.begin_transaction()
    num = 0
    for path in files:
        if path.parts[1] != "shop":
            continue
        for row in pq.read_table(feed.folder / "staging" / path).to_pylist():
            at = int(row["timestamp"].timestamp() * 1000)  # a full load takes its place in the order from it
            producer.produce(row["topic"], row["value"], row["key"], partition=row["partition"], timestamp=at)
            producer.poll(0)
            num += 1
    producer.commit_transaction()
    return num


def wait_for(follower: subprocess.Popen) -> None:
    """Wait until all that was sent is published. Raises: RuntimeError where the run ends, or takes too long."""
    from inlet.commands import run as running

    project, until = config.load(PROJECT), time.monotonic() + WAIT_SECONDS
    while not bronze.History(project).readings() or running.find_work(project, running.STEPS, [], []):
        if follower.poll() is not None or time.monotonic() > until:
            raise RuntimeError("inlet run --follow ended, or did not get through")
        time.sleep(1)


def show(project, feed: Feed, started: float) -> int:
    from inlet.lake.spark import session

    shop = {name: rows for name, rows in feed.expected.items() if name in project.tables}
    compared = compare(project, session(project.lakehouse_path()), shop)
    out.print("\n[bold]Is gold what the source database holds?[/]")
    print_rows(out, compared)
    out.print(f"\nDone in {time.monotonic() - started:.1f} s. The project is in {PROJECT.relative_to(ROOT)}.")
    return int(any(row["rows that differ"] for row in compared))


if __name__ == "__main__":
    sys.exit(main())
