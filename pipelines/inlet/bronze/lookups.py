"""What messages name and do not hold, such as a schema by its id in a registry. Each name is fetched once and kept in
bronze.lookups, so that a batch that is decoded again gets the same answer. Codecs open nothing: they say which names a
message needs, and are handed what was found.

`lookups` of a source's `from:` says where: an address in which `{name}` stands for the name, for instance
`schemas/{name}.avsc` or `https://registry:8081/schemas/ids/{name}`. A name that is not there is kept as null, and its
messages are rejected; each run asks again, and decodes them again once it is there. Files that bring what their
messages name (Avro containers) need no address, and neither do messages that bring it for others (Qlik's metadata
messages): what they bring is kept here, too, when silver reads their batch.
"""

import base64
import errno
import json
import logging
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from datetime import UTC, datetime

from inlet import lake, unit
from inlet.bronze.files import open_file
from inlet.bronze.framing import attempt
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.errors import EnvironmentLacks, Reject, TryAgain
from inlet.lake.secrets import filled
from inlet.source import Source

log = logging.getLogger(__name__)
SECONDS = 30  # to wait for an answer
NOT_THERE = (400, 404, 410, 414, 422)  # what servers say of a name that they do not have, or that can be none
REFUSED = (401, 403)
NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)


def needs_any(source: Source) -> bool:
    """Can messages of a source name what they do not hold?"""
    return source.brings_messages and offers(CODECS[source.codec], "lookups")


def brings(source: Source) -> bool:
    """Can messages of a source bring what others of it name?"""
    return source.brings_messages and offers(CODECS[source.codec], "brought")


def is_asked(codec) -> bool:
    """Can messages of a codec name what they do not hold, or what others bring?"""
    return offers(codec, "lookups") or offers(codec, "brought")


def known(project: Project, up_to_batch: int | None = None) -> dict[str, dict[str, bytes]]:
    """What was found, by source and name; by all batches where none is given. The first answer stays."""
    columns = ["source", "name", "value", "batch_id"]
    found: dict[str, dict[str, bytes]] = {}
    for row in lake.peek(project.lakehouse_path(), "bronze.lookups", columns, "order by batch_id"):
        if (up_to_batch is None or row["batch_id"] <= up_to_batch) and row["value"] is not None:
            found.setdefault(row["source"], {}).setdefault(row["name"], row["value"])
    return found


def arrived(project: Project, sources: list[str]) -> set[tuple[str, int]]:
    """(source, batch) of messages that named what was not there, and now is. A source where nobody answers is asked no
    more in this run.
    """
    rows = lake.peek(project.lakehouse_path(), "bronze.lookups", ["source", "name", "value", "batch_id"])
    found_now = {(row["source"], row["name"]) for row in rows if row["value"] is not None}
    silent: set[str] = set()
    for source, name in sorted({(row["source"], row["name"]) for row in rows if row["source"] in sources} - found_now):
        if source in silent:
            continue
        try:
            is_there = fetch(project, project.sources[source], name) is not None
        except (TryAgain, EnvironmentLacks) as error:
            log.warning("%s", error)
            silent.add(source)
            continue
        found_now |= {(source, name)} if is_there else set()
    return {(r["source"], r["batch_id"]) for r in rows if r["value"] is None and (r["source"], r["name"]) in found_now}


def newest(project: Project) -> dict[str, int]:
    """The last batch of each source whose messages have brought something new."""
    rows = lake.peek(project.lakehouse_path(), "bronze.lookups", ["source", "batch_id"])
    found: dict[str, int] = {}
    for row in rows:
        if row["source"] in project.sources and brings(project.sources[row["source"]]):
            found[row["source"]] = max(row["batch_id"], found.get(row["source"], row["batch_id"]))
    return found


def land(project: Project, batch_id: int, files: list[dict], messages) -> None:
    """Keep what the messages of a batch name, once however often it is tried. In: the planned files; the messages, a
    DataFrame of bronze.messages. Raises: TryAgain where an address does not answer.
    """
    rows: dict[tuple[str, str], tuple] = {}
    for row in files:
        for name, text in json.loads(row["start_context"] or "{}").get("lookups", {}).items():
            rows[row["source"], name] = (text.encode(), row["path"])
    given = {row["source"] for row in files} if files else project.sources.keys()
    sources = [source for name, source in project.sources.items() if name in given and needs_any(source)]
    if not rows and not sources:
        return
    before = known(project, batch_id - 1)
    for source in sources:
        wanted = _names(project, source, messages) - before.get(source.name, {}).keys()
        for name in sorted(name for name in wanted if (source.name, name) not in rows):
            rows[source.name, name] = (fetch(project, source, name), address(source, name) if source.lookups else None)
    # a replay may come after a later batch has landed, and Delta takes the numbers of one name in order alone
    _keep(project, batch_id, before, rows, f"inlet-{'bronze' if files else 'replay'}-lookups")


def keep_brought(project: Project, batch_id: int, sources: list[Source], messages) -> bool:
    """Keep what messages bring for others; doing it again changes nothing. In: sources of one codec; messages, a
    DataFrame of bronze.messages. Out: whether any of it was not known.
    """
    rows: dict[tuple[str, str], tuple] = {}
    for source, name, value, unit_id in _brought(CODECS[sources[0].codec], sources, messages):
        rows.setdefault((source, name), (value, unit_id))
    return _keep(project, batch_id, known(project), rows)


def _keep(project: Project, batch_id: int, before: dict, rows: dict[tuple[str, str], tuple], app_id="") -> bool:
    """Append what is not known before. In: what is known; by source and name (what was found, where). Out: whether
    there is any."""
    of_batch = {"batch_id": batch_id, "landed_at": datetime.now(UTC)}
    new = [
        {"source": source, "name": name, "value": value, "origin": origin} | of_batch
        for (source, name), (value, origin) in rows.items()
        if name not in before.get(source, {})
    ]
    if new:
        lake.add_rows(project.lakehouse_path(), "bronze.lookups", new, app_id=app_id, version=batch_id)
    return bool(new)


def _brought(codec, sources: list[Source], messages) -> list[tuple]:
    """(source, name, value, unit) of what messages bring for others, in order."""
    schema = "source string, name string, value binary, unit_id string"
    own = messages.where(messages.source.isin([source.name for source in sources])).where(codec.MAY_BRING)
    found = [tuple(row) for row in own.mapInArrow(_bringing(codec, schema), schema).collect()]
    return sorted(found, key=lambda row: (row[0], row[1], unit.order(row[3])))


def _bringing(codec, schema: str):
    def brought(batches: Iterable):
        import pyarrow as pa

        for batch in batches:
            rows = [
                {"source": message["source"], "name": name, "value": value, "unit_id": message["unit_id"]}
                for message in batch.to_pylist()
                for name, value in _brought_by(codec, message).items()
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=lake.arrow_schema(schema))

    return brought


def _brought_by(codec, message: dict) -> dict[str, bytes]:
    """What a message brings; nothing where its codec fails, as it then does in decoding, where that is a reject."""
    found = attempt(codec.brought, message)
    return {} if isinstance(found, Reject) else found


def _names(project: Project, source: Source, messages) -> set[str]:
    """The names that the messages of a source need."""
    codec = CODECS[source.codec]

    def names(batches: Iterable):
        import pyarrow as pa

        for batch in batches:
            found = sorted({name for message in batch.to_pylist() for name in _names_in(codec, message, source)})
            yield pa.RecordBatch.from_pydict({"name": found}, schema=lake.arrow_schema("name string"))

    own = messages.where(messages.source == source.name)
    return {row.name for row in own.mapInArrow(names, "name string").distinct().collect()}


def _names_in(codec, message: dict, source: Source) -> list[str]:
    """What a message names; nothing where its codec fails, as it then does in decoding, where that is a reject."""
    named = attempt(codec.lookups, message, source)
    return [] if isinstance(named, Reject) else named


def with_lookups(codec, message: dict, source: Source, found: dict[str, bytes]) -> dict:
    """A message as its codec is given it. In: what was found, by name. Raises: what the codec raises."""
    if offers(codec, "brought"):
        return message | {"lookups": found}
    if not offers(codec, "lookups"):
        return message
    return message | {"lookups": {name: found.get(name) for name in codec.lookups(message, source)}}


def address(source: Source, name: str) -> str:
    """Where a name is looked up. A name cannot lead out of its folder."""
    return str(source.lookups).replace("{name}", urllib.parse.quote(name, safe=""))


def _request(place: str, source: Source) -> urllib.request.Request:
    """A request of an address; user and password that stand in it go into its header. What it names of the environment
    is filled in here alone: a place that is logged or stored shows the names.
    """
    parts = urllib.parse.urlsplit(place)
    user, _, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(urllib.parse.urlunsplit(parts._replace(netloc=host)))
    if user:
        told = base64.b64encode(filled(user, f"lookups of {source.name}").encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {told}")
    return request


def fetch(project: Project, source: Source, name: str) -> bytes | None:
    """What stands under a name now; None where nothing does. Raises: TryAgain where nobody answers, EnvironmentLacks
    where who answers refuses.
    """
    if not source.lookups:
        return None
    place = address(source, name)
    try:
        if place.lower().startswith(("http://", "https://")):
            with urllib.request.urlopen(_request(place, source), timeout=SECONDS) as answer:
                return answer.read()
        with open_file(project, place) as stream:
            return stream.read()
    except urllib.error.HTTPError as error:
        if error.code in NOT_THERE:
            return None
        if error.code in REFUSED:
            raise EnvironmentLacks(
                f"{source.name}: {place} refuses: status {error.code}", "See to user and password in from: lookups"
            ) from error
        why = f"status {error.code}"
    except OSError as error:
        if error.errno in NO_FILE or isinstance(error, FileNotFoundError):  # fsspec's has no number
            return None
        why = str(error)
    raise TryAgain(
        f"{source.name}: {place} cannot be looked up: {why}",
        "The messages are landed and wait for it. See that it answers, then `inlet run` again",
    )
