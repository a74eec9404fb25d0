"""Messages of a broker into bronze, against Spark's own Kafka source that merely writes them to Delta."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from infra.local import broker as brokers
from inlet import bronze, config
from inlet.lake import maven
from tests import projects
from tests.bench.figure import Figure, best

TOPIC, NUM_PARTITIONS, LEN_VALUE = "bench", 2, 1_000
SPARKS = (  # the newest that could be had beside Spark 4.1.4; what they depend on is named, as one of it cannot be had
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)


def bring_jars() -> None:
    """Put Spark's Kafka source on the class path of the JVM that is to start."""
    jars = maven.fetched("spark-kafka", SPARKS, with_others=False)
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, jars))


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    num = 20_000 if is_quick else 500_000
    with tempfile.TemporaryDirectory() as at, brokers.started(Path(at)) as broker:
        send(broker.servers, num)
        rounds = iter(range(100))

        def theirs() -> None:
            reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
            reader = reader.option("subscribe", TOPIC).option("includeHeaders", "true")
            reader = reader.option("kafka.isolation.level", "read_committed").option("minPartitions", 2)
            reader.load().write.format("delta").mode("overwrite").saveAsTable("bench_kafka")

        def ours() -> None:
            name = f"bench_kafka_{next(rounds)}"  # a source that has landed nothing yet
            given = {"transport": "kafka", "servers": broker.servers, "topics": [TOPIC]}
            project = projects.make(
                folder, {name: {"codec": "qlik_json", "from": given, "tables": {TOPIC: "DEPOT.ITEMS"}}}, None, lakehouse
            )
            project = config.load(project.root)
            plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
            bronze.land(project, spark, plan)

        alone, landed = best(theirs), best(ours)
        assert spark.table("bench_kafka").count() == num == _landed(spark)
        told = f"{num} messages of {LEN_VALUE} bytes; {num / landed / 1e3:.0f}k and {num / alone / 1e3:.0f}k messages/s"
        yield Figure(
            "messages of a broker into bronze", "Spark's Kafka source to Delta", alone / landed, "at least 0.8", told
        )


def _landed(spark) -> int:
    return spark.sql("select count(*) from bronze.messages where source = 'bench_kafka_0'").first()[0]


def send(servers: str, num: int) -> None:
    """Values of random bytes in hex and text, which compress as messages do: by about half."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, NUM_PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    text = b"a message of a change that was captured " * 25
    for number in range(num):
        noise = os.urandom(LEN_VALUE // 4).hex().encode()
        producer.produce(TOPIC, (noise + text)[:LEN_VALUE], b"%d" % number, partition=number % NUM_PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
