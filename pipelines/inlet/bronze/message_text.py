"""Messages in files that hold nothing else: one a line, a stream or an array of JSON values, or one a file.

A message's place is its file and its ordinal in it; no broker gave its time. Topic is the file's path, partition 0.
Line ends, blanks and commas between messages are no part of them.

lines       may grow: whole lines are landed, and what follows the last one waits until the file has settled
json        values one after the other may grow, too: each is landed once it is whole. A number or a word at the very
            end waits, for more of it may come, until something follows it or the file has settled. An array is landed
            once it is closed, and then nothing may follow it. What is no value in a file that has settled is a problem
            of the file; what was whole before it is landed
whole_file  is landed as it is once it has settled, for nothing else tells its end
A compressed file waits until it has settled, too; what is landed is its content, and where that is no stream of JSON
values all of it is set aside, as a broken Parquet file is.
"""

import hashlib
import json
import re
from typing import NamedTuple

from inlet.bronze.files import as_problem, hash_bytes, is_compressed, open_file, rewritten
from inlet.bronze.kept_message import as_messages
from inlet.bronze.whole_files import check, plan_whole, planned_file, rest_of
from inlet.config import Project
from inlet.source import Source

MAX_BYTES = (1 << 31) - 1  # of a file that cannot be read in parts
BETWEEN = b" \t\r\n"
BOM = b"\xef\xbb\xbf"  # of UTF-8
STRUCTURE = re.compile(rb'["\[\]{}]')
TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
PLAIN = re.compile(rb"[^\s,\[\]{}\"]+")


class Cut(NamedTuple):
    """Where the messages of some bytes are, up to where they have been read, and where that is no message."""

    spans: list[tuple[int, int]]
    end: int
    trouble: int | None = None
    goes_on: bool = True  # may messages follow?


def plan_file(project: Project, source: Source, path, info, known, has_settled) -> dict | str | None:
    """One row of bronze.files: the messages that are whole behind those that were landed; or what the file waits
    for.
    """
    if is_compressed(path):

        def read(stream) -> dict:
            data = stream.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                return _too_large(0, "more")
            planned = _plan(source, path, data, 0, None, True)
            is_read = planned["problem"] or planned["ofs_end"] == len(data)
            return planned if is_read else _no_values(data, 0, planned["ofs_end"])

        return plan_whole(project, source, (path, info, known, has_settled), read)
    if source.transport == "whole_file" and not (known or has_settled):
        return rest_of(source, info)
    start, digest = known["ofs_end"] if known else 0, hashlib.sha256()
    with open_file(project, path) as stream:
        hash_bytes(stream, digest, start)
        if known and (digest.hexdigest() != known["sha256"] or info["size"] < start):
            return rewritten(path, start, f"the first {start} bytes as landed before", "other bytes")
        if info["size"] - start > MAX_BYTES:
            return _too_large(start, f"{info['size'] - start}")
        data = stream.read(info["size"] - start)
    if known and data and not _may_follow(source.transport, json.loads(known["context"]), data):
        return rewritten(path, start, "the file as landed before", "more bytes")
    planned = _plan(source, path, data, start, known, has_settled)
    if planned["problem"]:
        return planned
    digest.update(data[: planned["ofs_end"] - start])
    return planned | {"sha256": digest.hexdigest()}


def _may_follow(transport: str, landed: dict, data: bytes) -> bool:
    """May these bytes follow what was landed of a file? In: what the context of its row says."""
    if transport == "json" and "goes_on" in landed:
        return landed["goes_on"] or not data.strip(BETWEEN)
    return transport == "lines" and "next" in landed


def _plan(source: Source, path: str, data: bytes, start: int, known: dict | None, is_whole: bool) -> dict:
    """What a row of bronze.files says of the messages in these bytes, which begin at `start`. Those before a place
    where none can be are landed; the next batch finds that place first, and says so.
    """
    landed = json.loads(known["context"]) if known else {}
    first = landed.get("next", 0)
    cut = _split(source.transport, data, start, first, is_whole)
    if cut.trouble is not None and not cut.spans:
        return _no_values(data, start, cut.trouble)
    after = first + len(cut.spans)
    offsets = {f"{path}/0": [first, after - 1, False]} if cut.spans else {}
    goes_on = {"goes_on": cut.goes_on and landed.get("goes_on", True)} if source.transport == "json" else {}
    return {
        "ofs_start": start,
        "ofs_end": start + cut.end,
        "num_units": len(cut.spans),
        "problem": None,
        "context": json.dumps({"offsets": offsets, "next": after} | goes_on),
        "start_context": json.dumps({"next": first}),
    }


def _no_values(data: bytes, start: int, at: int) -> dict:
    """The row of a file in which no value stands at a place of these bytes, which begin at `start`."""
    rest = data[at : at + 20]
    return as_problem(
        start,
        "unreadable_file",
        "JSON values one after the other, or in one array",
        f"{rest!r} at byte {start + at}" if rest else f"its end at byte {start + at}",
        "Fix or remove the file",
    )


def _too_large(start: int, found: str) -> dict:
    expected = f"at most {MAX_BYTES} bytes at a time"
    return as_problem(start, "unreadable_file", expected, found, "Deliver it in smaller files")


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
    transport, first = project.sources[row["source"]].transport, json.loads(row["start_context"])["next"]
    spans = _split(transport, data, row["ofs_start"], first, True).spans
    yield from as_messages(row, [data[start:end] for start, end in spans], first)


def _split(transport: str, data: bytes, start: int, first: int, is_whole: bool) -> Cut:
    r"""Where the messages of these bytes are, which begin at `start` of a file with the message `first`. A byte-order
    mark at the very start of a text belongs to the file, and to no message.

    >>> _split("lines", b"\xef\xbb\xbf{}\n", 0, 0, False).spans, _split("json", b"\xef\xbb\xbf[1]", 0, 0, False).spans
    ([(3, 5)], [(4, 5)])
    """
    ofs_text = len(BOM) if start == 0 and transport != "whole_file" and data.startswith(BOM) else 0
    return SPLIT[transport](data, ofs_text, first == 0, is_whole)


def lines(data: bytes, start: int, is_first: bool, is_whole: bool) -> Cut:
    r"""One message a line; blank lines are none. In: where the lines begin; whether nothing was landed before them;
    whether the file ends with the data.

    >>> lines(b'{"a":1}\r\n\n{"b":2}\n{"c"', 0, True, False)[:2]
    ([(0, 8), (10, 17)], 18)
    >>> lines(b'{"a":1}', 0, True, True)[:2]
    ([(0, 7)], 7)
    """
    spans = []
    while (stop := data.find(b"\n", start)) >= 0 or is_whole and start < len(data):
        stop = len(data) if stop < 0 else stop
        if data[start:stop].strip(BETWEEN):
            spans.append((start, stop))
        start = min(stop + 1, len(data))
    return Cut(spans, start)


def json_values(data: bytes, start: int, is_first: bool, is_whole: bool) -> Cut:
    r"""JSON values one after the other, or, where the file begins with one, the elements of an array. Brackets and
    texts tell where a value ends; whether it is right is for its codec to say. In: where the values begin; whether none
    was landed before them; whether the file ends with the data.

    >>> json_values(b'{"a":"}"} [1]\n"x" 7', 0, True, True).spans
    [(0, 9), (10, 13), (14, 17), (18, 19)]
    >>> json_values(b'[1] 7', 0, False, False)
    Cut(spans=[(0, 3)], end=4, trouble=None, goes_on=True)
    >>> json_values(b' [{"a":1}, {"b":[2]}] ', 0, True, False)
    Cut(spans=[(2, 9), (11, 20)], end=22, trouble=None, goes_on=False)
    """
    at = _skip(data, start)
    if is_first and data[at : at + 1] == b"[":
        return _elements(data, at, is_whole)
    spans = []
    while at < len(data) and (stop := _value_end(data, at)) is not None:
        if stop == len(data) and data[at] not in b'"[{' and not is_whole:
            break  # 12 of 1234
        spans.append((at, stop))
        at = _skip(data, stop)
    return Cut(spans, at, at if is_whole and at < len(data) else None)


def _elements(data: bytes, start: int, is_whole: bool) -> Cut:
    r"""The elements of the array that begins there; none before it is closed.

    >>> _elements(b'[{"a":1}', 0, True)
    Cut(spans=[], end=0, trouble=8, goes_on=True)
    """
    spans: list[tuple[int, int]] = []
    at = _skip(data, start + 1)
    while at < len(data):
        if data[at : at + 1] == b"]" and not (spans and data[spans[-1][1] : at].strip(BETWEEN)):  # no comma before it
            at = _skip(data, at + 1)
            if at == len(data):
                return Cut(spans, at, goes_on=False)
            break
        stop = _value_end(data, at)
        if stop is None:
            break
        spans.append((at, stop))
        at = _skip(data, stop)
        if data[at : at + 1] == b",":
            at = _skip(data, at + 1)
        elif data[at : at + 1] != b"]":
            break
    return Cut([], 0, at if is_whole else None)


def whole_file(data: bytes, start: int, is_first: bool, is_whole: bool) -> Cut:
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
