"""Faults of reading a broker that were found by looking for them."""

import json
import threading
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from inlet import bronze
from inlet.broker import Broker
from inlet.bronze import kafka, kafka_client, messages
from inlet.errors import TryAgain
from tests import projects
from tests.test_kafka import (  # noqa: F401
    admin,
    broker,
    expired,
    insert,
    made,
    planned,
    read,
    removed,
    run_silver,
    send,
    shop,
    source_of,
    told,
    topic,
    units,
)


def made_anew(admin, name: str) -> None:  # noqa: F811
    """Delete a topic and make it anew."""
    removed(admin, name)
    made(admin, name)


def test_topics_without_a_message_are_no_fault(broker, topic):  # noqa: F811
    assert [row["num_units"] for row in planned(source_of(broker, [topic]))] == [0]


def test_the_end_of_a_busy_topic_is_a_start_and_nothing_waits_for_a_transaction(broker, topic):  # noqa: F811
    is_over, producer = threading.Event(), Producer(told(broker) | {"linger.ms": 0})

    def go_on():
        while not is_over.wait(0.0005):
            producer.produce(topic, b"x")
            producer.poll(0)
        producer.flush()

    busy = threading.Thread(target=go_on)
    busy.start()
    try:
        time.sleep(1)
        for _ in range(10):
            found = kafka.plan(source_of(broker, [topic], start="latest", missing_offsets="accept"), [])
            assert [row["problem"] for row in found.rows] == [None]
            assert found.waits == {}
    finally:
        is_over.set()
        busy.join()


def test_a_topic_that_was_made_anew_and_is_still_empty_keeps_its_suffix(broker, admin, topic):  # noqa: F811
    filler = made(admin, f"{topic}_filler")
    send(broker, filler, [b"x"])
    source = source_of(broker, [topic, filler], missing_offsets="accept")
    send(broker, topic, [b"old"] * 3)
    before = planned(source)
    made_anew(admin, topic)
    before += [row | {"batch_id": 2} for row in planned(source, before)]  # a look while it is empty
    send(broker, topic, [b"old"])
    assert kafka.suffixes(planned(source, before))


def test_a_topic_that_was_made_anew_keeps_its_suffix_though_its_range_is_set_aside(broker, admin, topic):  # noqa: F811
    source = source_of(broker, [topic], missing_offsets="accept")
    send(broker, topic, [b"old"] * 3)
    before = planned(source)
    made_anew(admin, topic)
    send(broker, topic, [b"new"])
    gap, rest = (row | {"batch_id": 2} for row in planned(source, before))
    aside = rest | {"problem": "{}", "ofs_end": rest["ofs_start"], "num_units": 0}  # as landing.py leaves it
    for rows in ([gap, aside], [aside, gap]):  # an update may turn the rows of a table round
        assert kafka.suffixes(planned(source, [*before, *rows]))


def test_a_user_with_rights_to_the_topic_alone_reads_it(broker, admin, topic, monkeypatch):  # noqa: F811
    send(broker, topic, [b"1"])
    right = (ResourcePatternType.LITERAL, "User:reader", "*", AclOperation.READ, AclPermissionType.ALLOW)
    for future in admin.create_acls([AclBinding(ResourceType.TOPIC, topic, *right)]).values():
        future.result()
    monkeypatch.setenv("INLET_TEST_PASSWORD", "secret")
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": "${INLET_TEST_PASSWORD}",
    }
    source = source_of(broker, [topic], servers=broker.guarded_servers, options=options)
    for _ in range(3):
        assert len(read(source, planned(source))) == 1


def test_what_was_read_before_it_expired_lands(broker, admin, topic):  # noqa: F811
    send(broker, topic, [b"x"] * 30)
    source = source_of(broker, [topic])
    (row,) = planned(source)
    batches = kafka.units_of(type("Project", (), {"sources": {"shop": source}}), row)
    assert next(batches).num_rows == 30
    expired(admin, topic, 1)
    assert list(batches) == []


def test_each_partition_that_a_topic_made_anew_has_no_more_is_a_gap(broker, admin, topic):  # noqa: F811
    source = source_of(broker, [f"{topic}_p"], missing_offsets="accept")
    made(admin, f"{topic}_p", 3)
    for partition in (0, 2):
        send(broker, f"{topic}_p", [b"old"] * 4, partition)
    before = planned(source)
    made_anew(admin, f"{topic}_p")
    gaps = planned(source, before)
    assert [row["path"][-2:] for row in gaps if row["problem"]] == ["/0", "/1", "/2"]
    before += [row | {"batch_id": 2} for row in gaps]
    assert planned(source, before) == []  # each is said once
    admin.create_partitions([NewPartitions(f"{topic}_p", 3)])[f"{topic}_p"].result()
    send(broker, f"{topic}_p", [b"new"], 2)
    again = [row for row in planned(source, before) if row["num_units"]]
    assert [(row["path"][-2:], row["ofs_start"], row["ofs_end"]) for row in again] == [("/2", 0, 1)]
    assert kafka.suffixes(again)


@pytest.mark.parametrize("gets_on", [True, False])
def test_long_rolled_back_transactions_are_no_silence(gets_on, monkeypatch):
    """No broker is slow enough for this: in its place, one whose messages take ten seconds each to fetch."""
    now, num_rolled_back = [0.0], 100

    class Slow:
        def __init__(self, settings):
            self.look = settings["stats_cb"]

        def assign(self, places):
            self.place = places[0]

        def close(self):
            pass

        def consume(self, num, timeout):
            now[0] += 10
            fetched = int(now[0] / 10) if gets_on else 0
            told = {"partitions": {str(self.place.partition): {"next_offset": fetched}}}
            self.look(json.dumps({"topics": {self.place.topic: told}}))
            return [Last()] if fetched > num_rolled_back else []

    class Last:
        offset = staticmethod(lambda: num_rolled_back)
        error = staticmethod(lambda: None)

    monkeypatch.setattr("confluent_kafka.Consumer", Slow)
    monkeypatch.setattr(kafka_client.time, "monotonic", lambda: now[0])
    found = kafka_client.read(Broker(servers="h:1"), "t", 0, 0, num_rolled_back + 1)
    if gets_on:
        assert [message.offset() for (message,) in found] == [num_rolled_back]
    else:
        with pytest.raises(TryAgain, match="t/0 brings nothing at offset 0 for 60 s"):
            next(found)


@pytest.mark.proof
def test_a_gap_is_a_reject_though_the_range_behind_it_is_set_aside(spark, shop, broker, admin, topic):  # noqa: F811
    send(broker, topic, [insert(1)])
    run_silver(shop)
    send(broker, topic, [insert(n) for n in range(2, 7)])  # offsets 1 to 5
    expired(admin, topic, 3)  # 1 and 2 are lost
    plan = bronze.plan_batch(shop, list(shop.sources.values()), bronze.History(shop))
    expired(admin, topic, 4)  # and 3, before it lands
    bronze.land(shop, spark, plan)
    run_silver(shop)
    assert units(spark, topic) == ["0/0", "0/4", "0/5"]
    rejects = spark.sql(f"select kind, expected, found from silver.rejects where source = '{topic}'").collect()
    gaps = sorted((row.expected, row.found) for row in rejects if row.kind == "offsets_missing")
    assert [expected for expected, _ in gaps] == ["offset 1", "offset 3"]
    spans = [json.loads(row["context"]).get("offsets", {}).get(f"{topic}/0") for row in bronze.History(shop).readings()]
    assert not messages._overlap(sorted(filter(None, spans)))  # else each later batch is joined with all messages


@pytest.mark.proof
def test_all_of_a_topic_made_anew_lands(spark, lakehouse, broker, admin, topic, tmp_path):  # noqa: F811
    filler = made(admin, f"{topic}_filler")
    send(broker, filler, [b"x"])
    given = {"transport": "kafka", "servers": broker.servers, "topics": [topic, filler], "missing_offsets": "accept"}
    source = {"codec": "qlik_json", "from": given, "tables": {topic: "DEPOT.ITEMS"}}
    (tmp_path / "expectations").mkdir()
    for step in ("bronze", "silver"):
        (tmp_path / "expectations" / f"{step}.yml").write_text("[]")
    project = projects.make(tmp_path, {topic: source}, lakehouse=lakehouse)
    send(broker, topic, [insert(1), insert(2)])
    run_silver(project)
    made_anew(admin, topic)
    run_silver(project)
    send(broker, topic, [insert(1), insert(3)])
    run_silver(project)
    rows = spark.sql(f"select * from bronze.messages where source = '{topic}' and topic = '{topic}'")
    assert rows.count() == 4  # two of the old topic, two of the new one


@pytest.mark.proof
def test_a_time_that_no_timestamp_holds_stops_no_source(spark, lakehouse, broker, admin, tmp_path):  # noqa: F811
    stamp = 1_767_225_600_000_000_000  # nanoseconds, where Kafka means milliseconds
    most = str(2**63 - 1)
    name = made(admin, f"stamps_{stamp}", message_timestamp_after_max_ms=most, message_timestamp_before_max_ms=most)
    given = {"transport": "kafka", "servers": broker.servers, "topics": [name]}
    (tmp_path / "expectations").mkdir()
    for step in ("bronze", "silver"):
        (tmp_path / "expectations" / f"{step}.yml").write_text("[]")
    source = {"codec": "qlik_json", "from": given, "tables": {name: "DEPOT.ITEMS"}}
    project = projects.make(tmp_path, {name: source}, lakehouse=lakehouse)
    send(broker, name, [insert(1)], timestamp=stamp)
    run_silver(project)
    assert units(spark, name) == ["0/0"]
    assert spark.sql(f"select 1 from silver.changes where source = '{name}'").count() == 1
