"""What tells the schema of an Avro datum of GoldenGate: a header of its message, an id, a fingerprint, its table, or
its topic. Here, before the schema is known; the framings: avro/messages.
"""

from collections.abc import Iterator
from typing import NamedTuple

from inlet.codecs import avro_framing
from inlet.codecs.goldengate.avro.options import Options
from inlet.fields import avro
from inlet.fields.wrong import Wrong, quoted

TYPES = {"table": avro.STRING, "fingerprint": avro.LONG, "payload": avro.BYTES}  # of the generic wrapper


class Framed(NamedTuple):
    """A record, its datum, and the names of the schemas that may be its own. The ends are None where only the schema
    tells them: both are one then.
    """

    start: int
    end: int | None
    datum: int
    datum_end: int | None
    names: list[str]


def names(message: dict, options: Options) -> list[str]:
    """All names that a message may need."""
    data, told = message["value"], set[str]()
    if options.framing == "bare" and options.is_packed:
        told = {name for several in options.schemas.values() for name in several}
    try:
        for record in records(message, data, options):
            told |= set(record.names)
            if record.end is None:
                break
    except Wrong:
        pass  # as it is again in decoding, where it is a reject
    return sorted(told)


def records(message: dict, data: bytes | None, options: Options) -> Iterator[Framed]:
    """The records of a message, up to the first one whose end only its schema tells. Raises: Wrong."""
    if data is None:
        return
    if name := avro_framing.of_container(message):
        yield Framed(0, len(data), 0, len(data), [name])
        return
    if not data:
        return
    if options.framing == "confluent":
        name, datum = avro_framing.of_registry(data)
        yield Framed(0, len(data), datum, len(data), [name])
    elif options.framing == "wrapped":
        yield from _wrapped(data, options)
    else:
        yield bare(message, data, 0, options)


def bare(message: dict, data: bytes, start: int, options: Options) -> Framed:
    """The datum that begins there. Raises: Wrong."""
    word = message["topic"] if options.schema_of == "topic" else _table(data, start)
    end = None if options.is_packed else len(data)
    return Framed(start, end, start, end, options.schemas.get(word, [word]))


def _table(data: bytes, start: int) -> str:
    """The first field of a bare datum."""
    word = avro.read(avro.STRING, data, start)[0]
    if not word or not word.isprintable():
        expected = "a table's name as first field (options framing and schema_of tell other messages)"
        raise Wrong("wrong_shape", start, expected, quoted(word))
    return word


def _wrapped(data: bytes, options: Options) -> Iterator[Framed]:
    at = 0
    while at < len(data):
        start, ends, parts = at, dict[str, int](), dict[str, object]()
        for part in options.wrapper:
            parts[part], at = avro.read(TYPES[part], data, at)
            ends[part] = at
        payload = parts["payload"]
        assert isinstance(payload, bytes), "read as bytes"
        datum_end = ends["payload"]
        yield Framed(start, at, datum_end - len(payload), datum_end, [str(parts["fingerprint"])])
