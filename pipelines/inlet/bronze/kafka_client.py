"""A broker, asked and read: what topics there are, up to where, and the messages between two offsets.

librdkafka does it (confluent-kafka), in the process of a run and in Spark's workers alike: one set of options, no jars.
Every failure is said in one sentence: TryAgain where it may pass by itself, EnvironmentLacks where a person has to act.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from inlet.broker import VARIABLE, Broker
from inlet.errors import ConfigError, EnvironmentLacks, InletError, TryAgain
from inlet.lake.secrets import filled

SECONDS = 10.0  # for an answer
SILENT_SECONDS = 60.0  # in which a range that is read does not get on
LOOK_SECONDS = 5.0  # between two looks at how far librdkafka has fetched
LEN_FETCH = (
    1_000  # messages at a time; more wait for each other (measured: twice the CPU, a third of the rate at 10,000)
)
REFUSED = ("AUTHENTICATION", "SASL", "SSL", "AUTHORIZATION")  # in the name of an error that does not pass by itself
OF_CONSUMER = {
    "group.id": "inlet",  # asked for, and not used: nothing is committed, no group is joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}
QUIET = logging.getLogger("inlet.kafka")  # what librdkafka logs is said once, in an error
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class NotAsPlanned(InletError):
    """A planned range cannot be read any more as it was planned."""


def options(broker: Broker) -> dict[str, Any]:
    """A broker's options with the secrets of the environment in place. Raises: EnvironmentLacks for one not there."""
    return {name: filled(value, name) for name, value in broker.options.items()} | {
        "bootstrap.servers": broker.servers,
        "logger": QUIET,
    }


@contextmanager
def asked(broker: Broker) -> Iterator["Client"]:
    """A client that asks a broker. Raises, as all that is done with it: ConfigError, EnvironmentLacks, TryAgain."""
    try:
        from confluent_kafka import Consumer, KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError as error:
        raise EnvironmentLacks("Kafka needs the package confluent-kafka", "pip install 'inlet[kafka]'") from error
    seen: list = []  # errors that come beside the answers
    given = options(broker)
    try:
        Consumer(given | OF_CONSUMER).close()  # refuses more than the other
        client = Client(broker, AdminClient(given | {"error_cb": seen.append}), seen)
    except (KafkaException, TypeError, ValueError) as error:  # an option that there is not, or a value that cannot be
        text = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ConfigError(f"{broker.servers}: {without_secrets(broker, text)}", "Options are librdkafka's") from None
    try:
        yield client
    except KafkaException as error:
        raise in_words(broker, [error.args[0], *seen]) from error


def without_secrets(broker: Broker, text: str) -> str:
    """A text with the names of variables in place of what the environment has for them."""
    for value in filter(VARIABLE.fullmatch, broker.options.values()):
        text = text.replace(os.environ.get(value[2:-1]) or value, value)
    return text


def in_words(broker: Broker, errors: list) -> InletError:
    """What went wrong with a broker. In: KafkaErrors, the last one of most weight."""
    for error in errors:
        if any(word in error.name() for word in REFUSED) or "authoriz" in error.str().lower():
            return EnvironmentLacks(
                f"The broker {broker.servers} refuses: {without_secrets(broker, error.str())}",
                "See to user, password, certificates and rights (options of the source, and the environment)",
            )
    return TryAgain(
        f"The broker {broker.servers} does not answer: {without_secrets(broker, errors[-1].str())}",
        "See that it runs; the next run goes on where this one stopped",
    )


class Client:
    """Questions to a broker."""

    def __init__(self, broker: Broker, admin, seen: list):
        self.broker, self.admin, self.seen = broker, admin, seen

    def topics(self) -> dict[str, list[int]]:
        """The partitions of all topics that may be seen. Raises: EnvironmentLacks where one that is named may not."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        until = time.monotonic() + SECONDS
        while True:
            try:
                found = self.admin.list_topics(timeout=1).topics
                break
            except KafkaException as error:  # a wrong password looks like silence, until the errors beside it are seen
                self.admin.poll(0)
                if time.monotonic() > until or isinstance(in_words(self.broker, self._with(error)), EnvironmentLacks):
                    raise in_words(self.broker, self._with(error)) from error
        for name in set(self.broker.named) - set(found):  # a list of all leaves out what the user may not see
            try:  # not `list_topics(name)`, which may make it
                self.admin.describe_topics(TopicCollection([name]), request_timeout=SECONDS)[name].result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise in_words(self.broker, [error.args[0]]) from error
        return {name: sorted(topic.partitions) for name, topic in found.items() if topic.error is None}

    def _with(self, error) -> list:
        return [error.args[0], *self.seen]

    def topic_ids(self, names: list[str]) -> dict[str, str | None]:
        """What tells a topic from a later one of its name; None where the broker is too old to say."""
        from confluent_kafka import TopicCollection

        if not names:
            return {}
        found = self.admin.describe_topics(TopicCollection(names), request_timeout=SECONDS)
        ids = {name: future.result().topic_id for name, future in found.items()}
        return {name: _hex(topic_id) for name, topic_id in ids.items()}

    def compacted(self, names: list[str]) -> list[str]:
        """Those topics of which a broker keeps only the last message of each key. None, where it does not say."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        found: list[str] = []
        if not names:
            return found
        for resource, future in self.admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in names], request_timeout=SECONDS
        ).items():
            try:
                if "compact" in future.result()["cleanup.policy"].value:
                    found.append(resource.name)
            except KafkaException:  # without the right to see it
                continue
        return sorted(found)

    def offsets(self, places: list[tuple[str, int]], which, is_committed: bool = True) -> dict[tuple[str, int], int]:
        """An offset of each partition. In: `earliest`, `latest` (the end of what is committed, or of all that is there)
        or a time, at or after which its message is; the end where there is none.
        """
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        if not places:
            return {}
        spec = (
            OffsetSpec.for_timestamp(int(which.timestamp() * 1000))
            if isinstance(which, datetime)
            else OffsetSpec.earliest()
            if which == "earliest"
            else OffsetSpec.latest()
        )
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        at_end = self.offsets(places, "latest") if isinstance(which, datetime) else {}  # before, for messages come
        asked_for = {TopicPartition(topic, partition): spec for topic, partition in places}
        found = self.admin.list_offsets(asked_for, isolation_level=level, request_timeout=SECONDS)
        at = {(place.topic, place.partition): future.result().offset for place, future in found.items()}
        return {place: offset if offset >= 0 else at_end.get(place, 0) for place, offset in at.items()}


def _hex(topic_id) -> str | None:
    """The id of a topic as hex; None where there is none."""
    number = (topic_id.get_most_significant_bits() << 64) | (topic_id.get_least_significant_bits() & (1 << 64) - 1)
    return f"{number & (1 << 128) - 1:032x}" if number else None


def read(broker: Broker, topic: str, partition: int, start: int, end: int) -> Iterator[list]:
    """The committed messages from offset `start` up to before `end`, as lists of confluent_kafka.Message. Offsets
    without a message, marks of transactions say, are passed over.

    Raises: TryAgain where the broker falls silent, NotAsPlanned where an offset of the range is not there any more.
    """
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    seen: list = []
    last_at, fetched = time.monotonic(), start

    def look(statistics: str) -> None:
        """What is rolled back is fetched, and gives no messages: that is no silence."""
        nonlocal last_at, fetched
        partitions = json.loads(statistics)["topics"].get(topic, {}).get("partitions", {})
        up_to = partitions.get(str(partition), {}).get("next_offset", start)
        if up_to > fetched:
            last_at, fetched = time.monotonic(), up_to

    looks = {"statistics.interval.ms": int(LOOK_SECONDS * 1000), "stats_cb": look}
    consumer = Consumer(options(broker) | OF_CONSUMER | looks | {"error_cb": seen.append})
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        while True:
            messages = consumer.consume(min(LEN_FETCH, end - start), timeout=0.2)
            if not messages and time.monotonic() - last_at > SILENT_SECONDS:
                raise (
                    in_words(broker, seen)
                    if seen
                    else TryAgain(
                        f"{topic}/{partition} brings nothing at offset {start} for {SILENT_SECONDS:g} s", "Try again"
                    )
                )
            last_at = time.monotonic() if messages else last_at
            found, is_over = [], False
            for message in messages:
                at = message.offset() or 0
                if (error := message.error()) is None:
                    if at >= end:
                        is_over = True
                        break
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    is_over = is_over or at >= end
                elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # it joins no group
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise NotAsPlanned(f"{topic}/{partition}: offset {start} is not there any more")
                else:
                    raise in_words(broker, [error])
            if found:
                start = (found[-1].offset() or 0) + 1
                yield found
            if is_over or start >= end:
                return
    except KafkaException as error:
        raise in_words(broker, [*seen, error.args[0]]) from error
    finally:
        consumer.close()
