"""Files of another format than their source reads, known by their first bytes.

Source: the formats' own specifications (Parquet, Avro 1.11, ORC v1, Hadoop's SequenceFile, RFC 1952, ...).
"""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from inlet import storage
from inlet.bronze.files import is_compressed
from inlet.codecs import CODECS, transports_of
from inlet.config import Project
from inlet.source import Source

LEN_HEAD = 8
NUM_SAMPLES = 20  # files of a source that are looked at
READ = {"a Parquet file": ("parquet", "rows"), "an Avro container": ("avro",)}  # by these transports
PACKED_INSIDE = ("parquet", "avro")  # transports of files that compress by themselves
UNPACKED = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz"}
FORMATS = {  # first bytes -> format; those that are a word are followed by no character of text
    b"PAR1": "a Parquet file",
    b"Obj\x01": "an Avro container",
    b"ORC": "an ORC file",
    b"SEQ": "a Hadoop SequenceFile",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b\x08": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xff\x06\x00\x00sN": "snappy",
}
WORDS = (b"PAR1", b"ORC", b"SEQ")


def format_of(head: bytes) -> str | None:
    """
    >>> format_of(b"PAR1\\x15\\x04"), format_of(b"ORC_ID,NAME"), format_of(b"SEQ\\x06"), format_of(b"BZh91AY&")
    ('a Parquet file', None, 'a Hadoop SequenceFile', 'bzip2')
    """
    magic = next((magic for magic in FORMATS if head.startswith(magic)), b"")
    after = head[len(magic) : len(magic) + 1]
    is_text = magic in WORDS and after >= b" " or magic == b"BZh" and not head[4:].startswith(b"1AY&")
    return None if is_text else FORMATS.get(magic)


def foreign_files(project: Project, source: Source, paths: Iterable[str]) -> list[str]:
    """What a source can't read, in words: the first file of each other format, and what to do. In: paths of its files,
    of which those of a store are not looked at."""
    found: dict[str, str] = {}
    for path in islice((path for path in paths if storage.is_local(path)), NUM_SAMPLES):
        named = Path(project.resolve(path))
        try:
            if not named.is_file():  # but a link to a pipe, which no one may ever write
                continue
            with named.open("rb") as file:
                head = file.read(LEN_HEAD)
        except OSError:  # a run names the files that can't be opened
            continue
        if head and not is_compressed(path) and (why := _foreign(source, format_of(head))):
            found.setdefault(why, path)
    return [f"{path} {why}" for why, path in found.items()]


def _foreign(source: Source, format: str | None) -> str | None:
    """Why a file of a format is none for a source. In: None where its first bytes are of none that is known."""
    readable = transports_of(CODECS[source.codec])
    if source.transport in READ.get(format or "", ()):
        return None
    if format in UNPACKED and source.transport in PACKED_INSIDE:
        return f"is compressed by {format}, which transport {source.transport} does not unpack: deliver it unpacked"
    if format in UNPACKED:
        return f"is compressed by {format}: let its name end with {UNPACKED[format]}"
    if format is None:
        named = (name for name, transports in READ.items() if source.transport in transports)
        expected = next(named, None) if source.brings_messages else None  # sidecars lie among the files of rows
        others = ", ".join(name for name in readable if name != source.transport and name != "kafka")
        remedy = f": say what it holds in `from: {{transport: ..., path: ...}}`, one of {others}" if others else ""
        return f"is not {expected}, as {source.transport} is read{remedy}" if expected else None
    if transport := next((name for name in READ.get(format, ()) if name in readable), None):
        return f"is {format}: write `from: {{transport: {transport}, path: ...}}`"
    return (
        f"is {format if format[:2] in ('a ', 'an') else 'compressed by ' + format}, which {source.codec} does not read"
    )
