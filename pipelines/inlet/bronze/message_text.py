"""Messages in files that hold nothing else: one a line, a stream or an array of JSON values, or one a file.

A message's place is its file and its ordinal in it; no broker gave its time. Topic is the file's path, partition 0.
`lines` may grow: whole lines are landed, and what follows the last one waits until the file has settled. `json` waits
until all of it is whole; where it then is no stream of JSON values it is set aside, as a broken Parquet file is.
`whole_file` is taken as it is. A compressed file is whole, too; what is landed is its content. Line ends, blanks and
commas between messages are no part of them.
"""

import hashlib
import json
import re
from typing import NamedTuple

from inlet.bronze.files import as_problem, hash_bytes, is_compressed, open_file
from inlet.bronze.kept_message import as_messages
from inlet.bronze.whole_files import check, plan_whole, planned_file
from inlet.config import Project
from inlet.source import Source

MAX_BYTES = (1 << 31) - 1  # of a file that cannot be read in parts
BETWEEN = b" \t\r\n"
STRUCTURE = re.compile(rb'["\[\]{}]')
TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
PLAIN = re.compile(rb"[^\s,\[\]{}\"]+")


class Cut(NamedTuple):
    """Where the messages of some bytes are, up to where they have been read, and where that is no message."""

    spans: list[tuple[int, int]]
    end: int
    trouble: int | None = None


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | None:
    """One row of bronze.files: the messages that are whole behind those that were landed; None where the file waits."""
    if is_compressed(path):

        def read(stream) -> dict:
            data = stream.read(MAX_BYTES + 1)
            return _too_large(0, "more") if len(data) > MAX_BYTES else _plan(source, path, data, 0, None, True)

        return plan_whole(project, (path, info, known, has_settled), read)
    start, digest = known["ofs_end"] if known else 0, hashlib.sha256()
    with open_file(project, path) as stream:
        hash_bytes(stream, digest, start)
        if known and (digest.hexdigest() != known["sha256"] or info["size"] < start):
            return _rewritten(start, f"the first {start} bytes as landed before", "other bytes")
        may_grow = source.transport == "lines" and known and "next" in json.loads(known["context"])
        if known and info["size"] > start and not may_grow:
            return _rewritten(start, "the file as landed before", "more bytes")
        if info["size"] - start > MAX_BYTES:
            return _too_large(start, f"{info['size'] - start}")
        data = stream.read(info["size"] - start)
    planned = _plan(source, path, data, start, known, has_settled)
    if planned["problem"]:
        return planned
    digest.update(data[: planned["ofs_end"] - start])
    return planned | {"sha256": digest.hexdigest()}


def _plan(source: Source, path: str, data: bytes, start: int, known: dict | None, is_whole: bool) -> dict:
    """What a row of bronze.files says of the messages in these bytes, which begin at `start`."""
    cut = SPLIT[source.transport](data, is_whole)
    if cut.trouble is not None:
        rest = data[cut.trouble : cut.trouble + 20]
        return as_problem(
            start,
            "unreadable_file",
            "JSON values one after the other, or in one array",
            f"{rest!r} at byte {cut.trouble}" if rest else f"its end at byte {cut.trouble}",
            "Fix or remove the file",
        )
    first = json.loads(known["context"]).get("next", 0) if known else 0
    after = first + len(cut.spans)
    offsets = {f"{path}/0": [first, after - 1, False]} if cut.spans else {}
    return {
        "ofs_start": start,
        "ofs_end": start + cut.end,
        "num_units": len(cut.spans),
        "problem": None,
        "context": json.dumps({"offsets": offsets, "next": after}),
        "start_context": json.dumps({"next": first}),
    }


def _too_large(start: int, found: str) -> dict:
    expected = f"at most {MAX_BYTES} bytes at a time"
    return as_problem(start, "unreadable_file", expected, found, "Deliver it in smaller files")


def _rewritten(start: int, expected: str, found: str) -> dict:
    return as_problem(start, "file_rewritten", expected, found, "Deliver new messages in a new file")


def units_of(project: Project, row: dict):
    """Arrow batches of a planned file's messages, as KEPT. Raises: InletError where the file is not what its plan
    says.
    """
    if is_compressed(row["path"]):
        with planned_file(project, row) as stream:
            data = stream.read()
    else:
        digest = hashlib.sha256()
        with open_file(project, row["path"]) as stream:
            hash_bytes(stream, digest, row["ofs_start"])
            data = stream.read(row["ofs_end"] - row["ofs_start"])
        digest.update(data)
        check(digest, row)
    split = SPLIT[project.sources[row["source"]].transport]
    spans, first = split(data, True).spans, json.loads(row["start_context"])["next"]
    yield from as_messages(row, [data[start:end] for start, end in spans], first)


def lines(data: bytes, is_whole: bool) -> Cut:
    r"""One message a line; blank lines are none. In: whether the file ends with the data.

    >>> lines(b'{"a":1}\r\n\n{"b":2}\n{"c"', False)
    Cut(spans=[(0, 8), (10, 17)], end=18, trouble=None)
    >>> lines(b'{"a":1}', True)
    Cut(spans=[(0, 7)], end=7, trouble=None)
    """
    spans, start = [], 0
    while (stop := data.find(b"\n", start)) >= 0 or is_whole and start < len(data):
        stop = len(data) if stop < 0 else stop
        if data[start:stop].strip(BETWEEN):
            spans.append((start, stop))
        start = min(stop + 1, len(data))
    return Cut(spans, start)


def json_values(data: bytes, is_whole: bool) -> Cut:
    r"""JSON values one after the other, or the elements of one array. Brackets and texts tell where a value ends;
    whether it is right is for its codec to say. In: whether the file ends with the data; if not, nothing is cut before
    all of it is whole.

    >>> json_values(b'{"a":"}"} [1]\n"x" 7', True).spans
    [(0, 9), (10, 13), (14, 17), (18, 19)]
    >>> json_values(b' [{"a":1}, {"b":[2]}] ', True)
    Cut(spans=[(2, 9), (11, 20)], end=22, trouble=None)
    >>> json_values(b'[{"a":1}', True), json_values(b'[{"a":1}', False)
    (Cut(spans=[], end=0, trouble=8), Cut(spans=[], end=0, trouble=None))
    """
    spans, start = [], _skip(data, 0)
    is_array = data[start : start + 1] == b"["
    at = _skip(data, start + 1) if is_array else start
    is_open = is_array
    while at < len(data):
        if (
            is_array and data[at : at + 1] == b"]" and not (spans and data[spans[-1][1] : at].strip(BETWEEN))
        ):  # no comma before it
            at, is_open = _skip(data, at + 1), False
            break
        stop = _value_end(data, at)
        if stop is None:
            break
        spans.append((at, stop))
        at = _skip(data, stop)
        if is_array and data[at : at + 1] == b",":
            at = _skip(data, at + 1)
        elif is_array and data[at : at + 1] != b"]":
            break
    if at == len(data) and not is_open:
        return Cut(spans, at)
    return Cut([], 0, at if is_whole else None)


def whole_file(data: bytes, is_whole: bool) -> Cut:
    """One message a file."""
    return Cut([(0, len(data))] if data else [], len(data))


SPLIT = {"lines": lines, "json": json_values, "whole_file": whole_file}


def _skip(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in BETWEEN:
        at += 1
    return at


def _value_end(data: bytes, at: int) -> int | None:
    """Where the value ends that begins here; None where none does, or where it is not whole."""
    if data[at] not in b'"[{':
        found = PLAIN.match(data, at)
        return found.end() if found else None
    depth = 0
    while found := STRUCTURE.search(data, at):
        at = found.start()
        if data[at] == ord('"'):
            text = TEXT.match(data, at)
            if not text:
                return None
            at = text.end()
        else:
            depth += 1 if data[at] in b"[{" else -1
            at += 1
        if depth == 0:
            return at
        if depth < 0:
            return None
    return None
