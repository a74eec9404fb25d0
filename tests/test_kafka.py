"""Messages of a real broker: every offset that is committed lands once, and what is missing is said."""

import json
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from infra.local import broker as brokers
from inlet import bronze, lake
from inlet.bronze import kafka
from inlet.bronze.kafka_client import QUIET
from inlet.commands import doctor
from inlet.commands import run as running
from inlet.commands.status import status
from inlet.errors import ConfigError, EnvironmentLacks, TryAgain
from inlet.log import Log
from inlet.source import Source
from tests import projects
from tests.encode import qlik

COLUMNS = ["ITEM_ID", "NAME", "PRICE"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with brokers.started(tmp_path_factory.mktemp("broker"), {"reader": "secret"}) as started:
        yield started


def told(broker) -> dict:
    """What clients are told of a broker; they log nothing."""
    return {"bootstrap.servers": broker.servers, "logger": QUIET}


@pytest.fixture
def admin(broker):
    return AdminClient(told(broker))


@pytest.fixture
def topic(broker, admin, request):
    """A new topic of one partition, named for the test."""
    return made(admin, request.node.originalname)


def made(admin, name: str, partitions: int = 1, **config) -> str:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()
    while name not in admin.list_topics(timeout=5).topics:
        time.sleep(0.05)
    return name


def removed(admin, name: str) -> None:
    admin.delete_topics([name])[name].result()
    while name in admin.list_topics(timeout=5).topics:
        time.sleep(0.05)


def insert(number: int) -> bytes:
    """A Qlik message: an item's insert, a transaction of its own."""
    change = {
        "operation": "INSERT",
        "after": {"ITEM_ID": number, "NAME": f"item {number}", "PRICE": None},
        "change_seq": f"2026010200000000{number:019d}",
        "change_timestamp": "2026-01-02T00:00:00.000",
        "transaction_id": f"{number:032x}",
        "transaction_event_counter": 1,
        "transaction_last_event": True,
    }
    return qlik.value(change, COLUMNS)


def send(broker, topic: str, values: list[bytes], partition: int = 0, **more) -> None:
    producer = Producer(told(broker))
    for value in values:
        producer.produce(topic, value, partition=partition, **more)
    producer.flush()


def source_of(broker, topics: list[str], **more) -> Source:
    given = {"transport": "kafka", "servers": broker.servers, "topics": topics} | more
    return Source(name="shop", codec="qlik_json", **{"from": given}, tables={"*": "DEPOT.ITEMS"})


def ranges(found: kafka.Found) -> list[tuple]:
    return [(row["path"], row["ofs_start"], row["ofs_end"]) for row in found.rows if not row["problem"]]


def planned(source: Source, before: list[dict] = ()) -> list[dict]:
    """The rows of bronze.files of a batch, as they stand when it is landed."""
    return [row | {"source": source.name, "batch_id": 1} for row in kafka.plan(source, list(before)).rows]


def read(source: Source, rows: list[dict]) -> list[dict]:
    """The messages of planned ranges."""
    project = type("Project", (), {"sources": {source.name: source}})
    return [message for row in rows for batch in kafka.units_of(project, row) for message in batch.to_pylist()]


# -- what a batch takes


def test_a_message_comes_with_its_key_headers_and_time(broker, topic):
    send(broker, topic, [b"{}"], key=b"\x00\xff", headers=[("a", b"1"), ("a", None)], timestamp=1_767_225_600_123)
    send(broker, topic, [None])
    source = source_of(broker, [topic])
    first, tombstone = read(source, planned(source))
    assert (first["key"], first["headers"]) == (b"\x00\xff", [{"key": "a", "value": b"1"}, {"key": "a", "value": None}])
    assert first["timestamp"].isoformat() == "2026-01-01T00:00:00.123000+00:00" and first["timestamp_type"] == 0
    assert (first["topic"], first["partition"], first["offset"], first["path"]) == (topic, 0, 0, f"{topic}/0")
    assert (tombstone["value"], tombstone["key"], tombstone["headers"]) == (None, None, None)


def test_what_is_rolled_back_never_lands_and_what_is_open_waits(broker, topic):
    producer = Producer(told(broker) | {"transactional.id": topic})
    producer.init_transactions()
    for is_kept in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic, b"kept" if is_kept else b"rolled back")
        producer.flush()
        producer.commit_transaction() if is_kept else producer.abort_transaction()
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush()
    source = source_of(broker, [topic])
    found = kafka.plan(source, [])
    assert ranges(found) == [(f"{topic}/0", 0, 6)]  # three messages, and the mark behind each
    assert "transaction" in found.waits[f"{topic}/0"]
    assert [(m["value"], m["offset"]) for m in read(source, planned(source))] == [(b"kept", 0), (b"kept", 4)]
    before = planned(source)
    producer.commit_transaction()
    assert [m["value"] for m in read(source, planned(source, before))] == [b"open"]


def test_the_first_run_begins_where_start_says(broker, topic):
    for at in (1_000, 2_000, 3_000):
        send(broker, topic, [b"x"], timestamp=at * 1000)
    for start, first in (
        ("earliest", 0),
        ("latest", 3),
        ("1970-01-01 00:33:20", 1),
        ("1970-01-01T00:33:21+00:00", 2),
        ({f"{topic}/0": 2}, 2),
    ):
        assert ranges(kafka.plan(source_of(broker, [topic], start=start), [])) == [(f"{topic}/0", first, 3)]
    with pytest.raises(ConfigError, match="nosuch/0"):
        kafka.plan(source_of(broker, [topic], start={"nosuch/0": 2}), [])


def test_what_comes_later_is_read_from_its_beginning(broker, admin, topic):
    source = source_of(broker, [f"{topic}*"], start="latest")
    send(broker, topic, [b"before"])
    before = planned(source)
    assert ranges(kafka.plan(source, [])) == [(f"{topic}/0", 1, 1)]
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result()
    made(admin, f"{topic}_new")
    send(broker, topic, [b"later"], partition=1)
    send(broker, f"{topic}_new", [b"later"])
    assert ranges(kafka.plan(source, before)) == [(f"{topic}/1", 0, 1), (f"{topic}_new/0", 0, 1)]


def test_a_source_changes_over_from_files_to_its_broker(broker, topic):
    send(broker, topic, [b"0", b"1", b"2"])
    landed = {"path": "kept.parquet", "ofs_end": 99, "batch_id": 1, "problem": None}
    landed |= {"context": json.dumps({"offsets": {f"{topic}/0": [0, 1, False]}})}
    assert ranges(kafka.plan(source_of(broker, [topic]), [landed])) == [(f"{topic}/0", 2, 3)]


def test_a_long_range_is_shared_by_workers():
    row = {"ofs_start": 10, "ofs_end": 130_010}
    parts = [(part["ofs_start"], part["ofs_end"]) for part in kafka.split(row, 2)]
    assert parts == [(10, 65_010), (65_010, 130_010)]
    assert kafka.split({"ofs_start": 7, "ofs_end": 9}, 2) == [{"ofs_start": 7, "ofs_end": 9}]


# -- what nobody can read any more


def expired(admin, topic: str, before: int) -> None:
    place = TopicPartition(topic, 0, before)
    admin.delete_records([place])[place].result()


def test_expired_offsets_stop_the_source_until_that_is_accepted(broker, admin, topic):
    source = source_of(broker, [topic])
    send(broker, topic, [b"0", b"1"])
    before = planned(source)
    send(broker, topic, [b"2", b"3", b"4"])
    expired(admin, topic, 4)
    with pytest.raises(EnvironmentLacks, match="offset 2, found offset 4 as the first one: 2 offsets expired"):
        kafka.plan(source, before)
    accepting = source_of(broker, [topic], missing_offsets="accept")
    gap, rest = planned(accepting, before)
    problem = json.loads(gap["problem"])
    assert (problem["kind"], problem["byte_offset"], gap["num_units"]) == ("offsets_missing", 2, 0)
    assert (rest["ofs_start"], rest["ofs_end"]) == (4, 5)
    assert planned(accepting, [*before, rest | {"batch_id": 2}, gap | {"batch_id": 2}]) == []


def test_a_topic_that_was_made_anew_is_another_one(broker, admin, topic):
    source = source_of(broker, [topic], missing_offsets="accept")
    send(broker, topic, [b"old"] * 3)
    before = planned(source)
    removed(admin, topic)
    with pytest.raises(EnvironmentLacks, match=f"no topic {topic} any more"):
        kafka.plan(source_of(broker, [topic]), before)
    assert list(kafka.plan(source, before).notes) == [topic]
    made(admin, topic)
    send(broker, topic, [b"old", b"new"])
    with pytest.raises(EnvironmentLacks, match="deleted and made anew"):
        kafka.plan(source_of(broker, [topic]), before)
    gap, rest = planned(source, before)
    assert (rest["ofs_start"], rest["ofs_end"]) == (0, 2) and "made anew" in gap["problem"]
    suffix = kafka.suffixes([rest])["shop", f"{topic}/0"]
    assert suffix == f"~{json.loads(rest['context'])['topic_id'][:8]}"
    send(broker, topic, [b"more"])
    (more,) = planned(source, [*before, gap | {"batch_id": 2}, rest | {"batch_id": 2}])
    assert (more["ofs_start"], more["ofs_end"], kafka.suffixes([more])["shop", f"{topic}/0"]) == (2, 3, suffix)


def test_a_range_is_not_read_where_it_is_no_longer_what_was_planned(broker, admin, topic):
    source = source_of(broker, [topic])
    send(broker, topic, [b"0", b"1", b"2"])
    (row,) = planned(source)
    expired(admin, topic, 1)
    with pytest.raises(kafka.NotAsPlanned, match="not there any more"):
        read(source, [row])
    with pytest.raises(kafka.NotAsPlanned, match="offset 1 as the first one"):
        kafka.check(type("Project", (), {"sources": {"shop": source}}), row)


def test_a_compacted_topic_is_noted(broker, admin, topic):
    name = made(admin, f"{topic}_compacted", cleanup_policy="compact")
    send(broker, name, [b"1"], key=b"k")
    assert list(kafka.plan(source_of(broker, [name]), []).notes) == [name]


# -- what is wrong with a broker


def test_no_broker_is_worth_another_try(broker, monkeypatch):
    monkeypatch.setattr("inlet.bronze.kafka_client.SECONDS", 1)
    with pytest.raises(TryAgain, match="127.0.0.1:9 does not answer"):
        kafka.plan(source_of(broker, ["x"], servers="127.0.0.1:9"), [])


def test_an_unknown_topic_is_named_with_those_there_are(broker, topic):
    with pytest.raises(ConfigError, match=f"has no topic nosuch. There are: .*{topic}"):
        kafka.plan(source_of(broker, ["nosuch"]), [])


def test_a_wrong_password_and_a_user_without_rights_are_refused(broker, topic, monkeypatch):
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "reader",
        "sasl.password": "${INLET_TEST_PASSWORD}",
    }
    source = source_of(broker, [topic], servers=broker.guarded_servers, options=options)
    monkeypatch.delenv("INLET_TEST_PASSWORD", raising=False)
    with pytest.raises(EnvironmentLacks, match="INLET_TEST_PASSWORD, which sasl.password names, is not set"):
        kafka.plan(source, [])
    monkeypatch.setenv("INLET_TEST_PASSWORD", "hunter2")
    with pytest.raises(EnvironmentLacks, match="Invalid username or password") as refused:
        kafka.plan(source, [])
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("INLET_TEST_PASSWORD", "secret")
    with pytest.raises(EnvironmentLacks, match="refuses: .*uthoriz"):
        kafka.plan(source, [])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"options": {"sasl.password": "hunter2"}}, "sasl.password is a secret"),
        ({"options": {"group.id": "x"}}, "group.id is not to be set"),
        ({"start": "yesterday"}, "expected earliest, latest, a time"),
        ({"path": "x"}, "path"),
    ],
)
def test_what_cannot_be_meant_is_said_and_secrets_are_not(more, words, tmp_path):
    given = {"transport": "kafka", "servers": "h:1", "topics": ["x"]} | more
    with pytest.raises(ConfigError, match=words) as wrong:
        projects.make(tmp_path, {"shop": {"codec": "qlik_json", "from": given, "tables": {"x": "DEPOT.ITEMS"}}})
    assert "hunter2" not in str(wrong.value)


def test_a_source_without_its_broker_stops_no_other(broker, topic, tmp_path, monkeypatch):
    monkeypatch.setattr("inlet.bronze.kafka_client.SECONDS", 1)
    send(broker, topic, [insert(1)])
    given = {"transport": "kafka", "servers": broker.servers, "topics": [topic]}
    sources = {
        name: {"codec": "qlik_json", "from": given | {"servers": servers}, "tables": {topic: "DEPOT.ITEMS"}}
        for name, servers in (("here", broker.servers), ("away", "127.0.0.1:9"))
    }
    project = projects.make(tmp_path, sources)
    plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, []))
    assert [row["source"] for row in plan.files] == ["here"]
    assert [(name, type(error)) for name, error in plan.unlisted.items()] == [("away", TryAgain)]
    assert [row["source"] for row in status(project)["sources that cannot be listed"]] == ["away"]
    found = {finding.what: finding for finding in doctor.examine(tmp_path)}
    assert found["source here"].is_good and "1 partitions" in found["source here"].found
    assert not found["source away"].is_good and found["source away"].exit_code == 6


# -- into the lakehouse


@pytest.fixture
def shop(spark, lakehouse, broker, topic, tmp_path):
    """A project that reads the topic of the test, and files of messages beside it."""
    given = {"transport": "kafka", "servers": broker.servers, "topics": [topic], "missing_offsets": "accept"}
    source = {"codec": "qlik_json", "from": given, "tables": {topic: "DEPOT.ITEMS"}}
    (tmp_path / "expectations").mkdir()
    for step in ("bronze", "silver"):
        (tmp_path / "expectations" / f"{step}.yml").write_text("[]")
    files = {"codec": "qlik_json", "from": "landing/*.parquet", "tables": {"kept": "DEPOT.ITEMS"}}
    return projects.make(tmp_path, {topic: source, f"{topic}_files": files}, lakehouse=lakehouse)


def run_silver(project) -> None:
    steps = running.steps_to_run(None, "silver")
    with lake.writing(project.lakehouse_path()) as hold:
        work = running.find_work(project, steps, [], [])
        assert not work.plan.unlisted
        if work:
            running.run(project, work, steps, [], Log(is_human=False), hold)


def units(spark, topic: str) -> list[str]:
    rows = spark.sql(f"select unit_id from bronze.messages where source = '{topic}'").collect()
    return sorted(row.unit_id.removeprefix(f"{topic}/{topic}/") for row in rows)


@pytest.mark.smoke
def test_messages_become_changes_and_a_topic_made_anew_goes_on(spark, shop, broker, admin, topic):
    def kept(name: str, *items: int) -> None:
        rows = qlik.rows([insert(item) for item in items], "kept", 0, 0)
        qlik.write_parquet(rows, shop.root / "landing" / name)

    (shop.root / "landing").mkdir()
    send(broker, topic, [insert(1), insert(2), b"{"])
    run_silver(shop)
    send(broker, topic, [insert(2), insert(3)])  # the first of them again, at a new offset
    run_silver(shop)
    assert units(spark, topic) == ["0/0", "0/1", "0/2", "0/3", "0/4"]
    removed(admin, topic)
    made(admin, topic)
    send(broker, topic, [insert(1), insert(4)])  # the first as it was, at the offset where it was
    kept("a~1.parquet", 7, 8)  # two files of the same batch hold a message twice: what is there twice is looked for
    kept("a~2.parquet", 7)
    run_silver(shop)
    files = spark.sql(f"select path, num_units, problem from bronze.files where source = '{topic}_files' order by path")
    assert [tuple(row) for row in files.collect()] == [
        ("landing/a~1.parquet", 2, None),
        ("landing/a~2.parquet", 1, None),
    ]
    assert spark.sql(f"select * from bronze.messages where source = '{topic}_files'").count() == 2
    suffix = units(spark, topic)[1].removeprefix("0/0")
    assert units(spark, topic) == ["0/0", f"0/0{suffix}", "0/1", f"0/1{suffix}", "0/2", "0/3", "0/4"]
    send(broker, topic, [insert(5)])
    run_silver(shop)
    numbers = spark.sql(
        f"select variant_get(after, '$.ITEM_ID', 'int') as n from silver.changes where source = '{topic}' order by 1"
    ).collect()
    assert [row.n for row in numbers] == [1, 2, 3, 4, 5]
    kinds = spark.sql(f"select kind, resolved_by from silver.rejects where source = '{topic}' order by 1").collect()
    assert [tuple(row) for row in kinds] == [("invalid_json", None), ("offsets_missing", None)]


@pytest.mark.proof
def test_a_batch_without_a_message_is_a_batch(spark, shop, broker, topic):
    producer = Producer(told(broker) | {"transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"rolled back")
    producer.flush()
    producer.abort_transaction()
    run_silver(shop)
    assert units(spark, topic) == []
    assert not running.find_work(shop, running.steps_to_run(None, "silver"), [], [])


@pytest.mark.proof
def test_a_planned_range_that_expires_before_it_lands_is_planned_anew(spark, shop, broker, admin, topic):
    send(broker, topic, [insert(1), insert(2)])
    plan = bronze.plan_batch(shop, list(shop.sources.values()), bronze.History(shop))
    expired(admin, topic, 1)
    bronze.land(shop, spark, plan)
    assert units(spark, topic) == []
    run_silver(shop)
    assert units(spark, topic) == ["0/1"]
    kinds = spark.sql(f"select kind, resolved_by is null as is_open from silver.rejects where source = '{topic}'")
    assert sorted(map(tuple, kinds.collect())) == [("file_rewritten", False), ("offsets_missing", True)]
