"""Messages of a broker. What is planned is a range of offsets of a partition, a row of bronze.files whose path is
`<topic>/<partition>`; the next batch starts where the last one ended, so progress is where the data is, in Delta's
commits. Nothing is kept at the broker.

A range ends where what is committed ends: messages of a producer's open transaction wait, rolled-back ones never land.
Offsets without a message (marks of transactions, rolled back, compacted away) are part of a range.

The first run begins where `start` says. What comes later, a topic or a partition, is read from its beginning. Offsets
that were not landed and that nobody can read any more (expired, deleted, lost with a topic that was made anew) stop the
source, until `missing_offsets: accept` says to go on behind them; then each such gap is a reject.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from inlet.bronze import kafka_client
from inlet.bronze.files import as_problem
from inlet.bronze.kafka_client import NotAsPlanned
from inlet.bronze.kept_message import as_kept, message_types
from inlet.config import Project
from inlet.errors import ConfigError, EnvironmentLacks
from inlet.source import Source

NUM_OFFSETS = 50_000  # of a range at least, before two workers share it
LAST_AT = 253_402_300_799_999  # milliseconds: the end of year 9999, which a timestamp holds
Place = tuple[str, int]  # topic, partition


class Found(NamedTuple):
    """What a broker has that is not landed."""

    rows: list[dict]  # of bronze.files
    waits: dict[str, str]  # path -> what its next messages wait for
    notes: dict[str, str]  # topic -> what its owner should know


def plan(source: Source, before: Sequence[dict]) -> Found:
    """What a broker has that is not landed. In: the rows of bronze.files of this source.

    Raises: ConfigError for a topic that there is not, TryAgain, EnvironmentLacks; the latter, too, where offsets are
    missing.
    """
    broker = source.broker
    assert broker is not None
    before = sorted(before, key=lambda row: (row["batch_id"], row["problem"] is None, row["ofs_end"]))
    done = _progress(before)
    with kafka_client.asked(broker) as client:
        there = client.topics()
        chosen = broker.chosen(list(there))
        gone = sorted(set(broker.chosen([topic for (topic, _), last in done.items() if last["topic_id"]])) - set(there))
        if gone and broker.missing_offsets == "stop":
            raise EnvironmentLacks(
                f"{broker.servers} has no topic {', '.join(gone)} any more, of which messages are landed",
                "Make it anew, or say `missing_offsets: accept`; what it held behind the last run is lost",
            )
        if unknown := sorted(set(broker.named) - set(chosen) - set(gone)):
            raise ConfigError(
                f"{broker.servers} has no topic {', '.join(unknown)}",
                f"There are: {', '.join(sorted(name for name in there if not name.startswith('__'))) or 'none'}",
            )
        ids = client.topic_ids(chosen)
        places = [(topic, partition) for topic in chosen for partition in there[topic]]
        # in this order, for messages come meanwhile: a start lies before the end, and what is written may be committed
        first = client.offsets(places, "earliest")
        begin = {} if any(row["path"] in _paths(places) for row in before) else _begin(source, client, places)
        written = client.offsets(places, "latest", is_committed=False)
        end = client.offsets(places, "latest")
        compacted = client.compacted([topic for topic in chosen if any(end[p] > first[p] for p in places)])
    if beyond := [f"{_path(place)}: {at}" for place, at in begin.items() if at > end[place]]:
        raise ConfigError(
            f"sources.{source.name}.from.start lies behind the end of {', '.join(beyond)}",
            "Name an offset that is there",
        )
    rows, waits = [], {}
    known = {topic for topic, _ in done}
    for place in places + _lost_places(done, places, ids):
        is_later = place[0] in known and place not in done  # a partition that was added
        last = done.get(place, {"next": begin.get(place, 0 if is_later else first.get(place, 0)), "topic_id": None})
        for row in _rows(source, place, last, ids[place[0]], first.get(place, 0), end.get(place, 0)):
            is_news = place not in done or row["problem"]
            if row["num_units"] or is_news:
                rows.append(row)
        if written.get(place, 0) > end.get(place, 0):
            waits[_path(place)] = (
                f"the end of a producer's transaction, at offset {end[place]} of {written[place]}; it lands when that "
                "is committed"
            )
    notes = dict.fromkeys(
        compacted, "the broker keeps the last message of each key alone (cleanup.policy): changes before it may be gone"
    )
    notes |= dict.fromkeys(gone, "the broker has no such topic any more; what it held behind the last run is lost")
    return Found(rows, waits, notes)


def _path(place: Place) -> str:
    return f"{place[0]}/{place[1]}"


def _paths(places: list[Place]) -> set[str]:
    return set(map(_path, places))


def _lost_places(done: dict[Place, dict], places: list[Place], ids: dict[str, str | None]) -> list[Place]:
    """Partitions of which messages are landed, and which their topic has no more, for it was made anew with fewer."""
    return [
        (topic, partition)
        for (topic, partition), last in done.items()
        if topic in ids and (topic, partition) not in places and not (ids[topic] and last["topic_id"] == ids[topic])
    ]


def _progress(before: Sequence[dict]) -> dict[Place, dict]:
    """The next offset of each partition, and which topic of its name that is. Messages of the source that came in files
    before count, too: so a source can change over to its broker.
    """
    done: dict[Place, dict] = {}
    for row in before:
        context = json.loads(row["context"] or "{}")
        if "topic_id" in context:
            topic, _, partition = row["path"].rpartition("/")
            done[topic, int(partition)] = {"next": row["ofs_end"], "topic_id": context["topic_id"]} | (
                {"suffix": context["suffix"]} if context.get("suffix") else {}
            )
            continue
        for path, (_, last, _) in context.get("offsets", {}).items():
            topic, _, partition = path.rpartition("/")
            if partition.isdigit():
                place = topic, int(partition)
                landed = done.get(place, {"next": 0, "topic_id": None})
                done[place] = landed | {"next": max(landed["next"], last + 1)}
    return done


def _begin(source: Source, client: kafka_client.Client, places: list[Place]) -> dict[Place, int]:
    """Where the first run begins, as `start` says."""
    broker = client.broker
    if isinstance(broker.start, dict):
        paths = _paths(places)
        if unknown := sorted(set(broker.start) - paths):
            raise ConfigError(
                f"sources.{source.name}.from.start names {', '.join(unknown)}, which {broker.servers} has not",
                f"There are: {', '.join(sorted(paths)) or 'none'}",
            )
        return {place: broker.start[_path(place)] for place in places if _path(place) in broker.start}
    return client.offsets(places, broker.start_at or broker.start)


def _rows(source: Source, place: Place, last: dict, topic_id: str | None, first: int, end: int) -> Iterator[dict]:
    """Rows of bronze.files of a partition: what is lost of it, and what can be landed. In: what was landed so far; the
    topic that goes by the name now; its first offset, and the end of what is committed in it.

    Raises: EnvironmentLacks where offsets are lost, and nobody has accepted that.
    """
    start, suffix = last["next"], last.get("suffix", "")
    if last["topic_id"] and topic_id and last["topic_id"] != topic_id:
        lost = (
            f"the topic was deleted and made anew; what the old one held from offset {start} on, if anything, is lost"
        )
        expected, suffix = f"offset {start} of the topic {last['topic_id']}", f"~{topic_id[:8]}"
        yield _missing(source, place, start, 0, expected, lost, topic_id, suffix)
        start = 0
        if first > 0:
            yield _missing(source, place, 0, first, "offset 0", f"offset {first} as the first one", topic_id, suffix)
            start = first
    elif start > end:
        lost = f"offset {end} as its end: it was cut, or made anew"
        yield _missing(source, place, start, end, f"offset {start}", lost, topic_id, suffix)
        start = end
    elif start < first:
        lost = f"offset {first} as the first one: {first - start} offsets expired or were deleted"
        yield _missing(source, place, start, first, f"offset {start}", lost, topic_id, suffix)
        start = first
    spans = {} if suffix or start == end else {_path(place): [start, end - 1, False]}
    context = {"topic_id": topic_id, "suffix": suffix, "offsets": spans}
    yield _row(place, start, end, context, end - start)


def _row(place: Place, start: int, end: int, context: dict, num: int) -> dict:
    return {
        "path": _path(place),
        "ofs_start": start,
        "ofs_end": end,
        "start_context": None,
        "context": json.dumps(context),
        "sha256": None,
        "num_units": num,
        "size_bytes": end,
        "modified_at": None,
        "problem": None,
        "verdicts": None,
    }


def _missing(
    source: Source, place: Place, start: int, end: int, expected: str, found: str, topic_id: str | None, suffix: str
) -> dict:
    """The row of offsets that are lost. Raises: EnvironmentLacks where the source does not accept that."""
    if source.broker.missing_offsets == "stop":
        raise EnvironmentLacks(
            f"{_path(place)} of {source.broker.servers}: expected {expected}, found {found}",
            f"Load the tables anew at their source; `missing_offsets: accept` in from: of {source.name} goes on behind "
            "the gap, and rejects it",
        )
    remedy = "Load the tables anew at their source"
    problem = as_problem(start, "offsets_missing", expected, found, remedy)["problem"]
    return _row(place, end, end, {"topic_id": topic_id, "suffix": suffix, "offsets": {}}, 0) | {"problem": problem}


def split(row: dict, num_workers: int) -> list[dict]:
    """A planned range as ranges that workers read side by side."""
    size = max(NUM_OFFSETS, -(-(row["ofs_end"] - row["ofs_start"]) // num_workers))
    return [
        row | {"ofs_start": start, "ofs_end": min(start + size, row["ofs_end"])}
        for start in range(row["ofs_start"], row["ofs_end"], size)
    ]


def units_of(project: Project, row: dict) -> Iterator:
    """Arrow batches of the messages of a planned range, as KEPT. Raises: NotAsPlanned, TryAgain."""
    broker = project.sources[row["source"]].broker
    assert broker is not None
    topic, _, partition = row["path"].rpartition("/")
    for messages in kafka_client.read(broker, topic, int(partition), row["ofs_start"], row["ofs_end"]):
        yield _as_arrow(row, topic, int(partition), messages)
    with kafka_client.asked(broker) as client:
        _check_topic(client, row, topic)


def _as_arrow(row: dict, topic: str, partition: int, messages: list):
    import pyarrow as pa

    types, num = message_types(), len(messages)
    stamps = [message.timestamp() for message in messages]  # (type, milliseconds); type 0: there is none
    columns: dict[str, Any] = {
        "topic": pa.repeat(topic, num),
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), num),
        "offset": pa.array([message.offset() for message in messages], pa.int64()),
        "timestamp": pa.array(
            [at * 1000 if 0 <= at <= LAST_AT and kind else None for kind, at in stamps], types["timestamp"]
        ),
        "timestampType": pa.array([kind - 1 if kind else None for kind, _ in stamps], pa.int32()),
        "key": pa.array([_bytes(message.key()) for message in messages], pa.binary()),
        "value": pa.array([_bytes(message.value()) for message in messages], pa.binary()),
    }
    headers = [message.headers() for message in messages]
    if any(headers):
        columns["headers"] = pa.array(
            [[{"key": name, "value": value} for name, value in one] if one else None for one in headers],
            types["headers"],
        )
    return as_kept(row, columns, num)


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def check(project: Project, row: dict) -> None:
    """See that a planned range can be read as it was planned. Raises: NotAsPlanned where it cannot."""
    topic, _, partition = row["path"].rpartition("/")
    place = topic, int(partition)
    broker = project.sources[row["source"]].broker
    assert broker is not None
    with kafka_client.asked(broker) as client:
        _check_topic(client, row, topic)
        first, end = client.offsets([place], "earliest")[place], client.offsets([place], "latest")[place]
    if first > row["ofs_start"]:
        raise NotAsPlanned(f"offset {first} as the first one, planned from {row['ofs_start']}")
    if end < row["ofs_end"]:
        raise NotAsPlanned(f"offset {end} as its end, planned to {row['ofs_end']}")


def _check_topic(client: kafka_client.Client, row: dict, topic: str) -> None:
    """See that a range is still of the topic that it was planned of. What was read before is then of that topic, for a
    topic does not come back. Raises: NotAsPlanned.
    """
    if topic not in client.topics():
        raise NotAsPlanned(f"no topic {topic}")
    if client.topic_ids([topic])[topic] != json.loads(row["context"])["topic_id"]:
        raise NotAsPlanned(f"another topic of the name {topic}")


def suffixes(files: list[dict]) -> dict[tuple[str, str], str]:
    """What stands behind the unit ids of a planned range, by (source, path): nothing, but for a topic made anew, whose
    offsets begin again.
    """
    found = {(row["source"], row["path"]): json.loads(row["context"] or "{}").get("suffix", "") for row in files}
    return {place: suffix for place, suffix in found.items() if suffix}
