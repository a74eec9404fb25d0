"""Does a file that is delivered anew say the same of each change that was read from it before? A change is known by its
place in the order. Where the damaged bytes gave one a place that the good ones do not, it would stand beside the right
one, and gold would show whichever is the later.

What was read before is decoded again from bronze, what is there now from the file. Codecs run in processes of their
own; the lakehouse is read in this one, for its client does not outlive a fork.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple

from inlet import lake
from inlet.bronze import framing, load_times, lookups, ordered
from inlet.bronze.guard import apart
from inlet.bronze.transports import TRANSPORTS
from inlet.codecs import CODECS
from inlet.codecs.codec import change_rows, decode_block
from inlet.config import Project
from inlet.errors import Reject
from inlet.source import Source
from inlet.sql import plain_among, plain_literal

NUM_UNITS, NUM_MESSAGES = 16, 1_000  # read from bronze at a time
OF_MESSAGE = ["topic", '"partition"', '"offset"']


class _Stray(NamedTuple):
    """A change of before that is not there now as it was."""

    place: int
    was: str
    is_now: str | None = None


def of_blocks(project: Project, planned: dict, since: int, not_standing: list[tuple[int, int]]) -> str | None:
    """Why a file of records would not agree with what was read of it. In: its new row of bronze.files; the batch that
    began to read it last; its ranges of which silver holds nothing. Out: None where it agrees. Raises: guard.Died.
    """
    source, path = project.sources[planned["source"]], planned["path"]
    own = f"where source = {plain_literal(source.name)} and path = {plain_literal(path)} and batch_id >= {since}"
    columns = ["unit_id", "file_offset", "sha256", "context"]
    landed = lake.peek(project.lakehouse_path(), "bronze.blocks", columns, f"{own} order by file_offset")
    old = [unit for unit in landed if "problem" not in json.loads(unit["context"] or "{}")]
    same = {_mark(unit) for unit in old}

    def read_now() -> tuple[set[tuple], dict[int, str]]:
        marks, found = set(), dict[int, str]()
        for unit in TRANSPORTS[source.transport].units_of(project, planned):
            marks.add(_mark(unit))
            if _mark(unit) not in same:
                found.update(_changes_of(project, source, unit))
        return marks, found

    marks, now = apart(read_now, path)
    other = [unit["unit_id"] for unit in old if _mark(unit) not in marks]
    columns = ["file_offset", "context", "bytes"]
    strays = list[_Stray]()
    for some in _some(other, NUM_UNITS):
        of_units = plain_among("unit_id", some)
        units = lake.peek(project.lakehouse_path(), "bronze.blocks", columns, f"{own} and {of_units}")

        def compare(units: list[dict] = units) -> list[_Stray]:
            return [
                _Stray(place, was, now.get(place))
                for unit in units
                for place, was in _changes_of(project, source, unit)
                if now.get(place) != was and not any(start <= place < end for start, end in not_standing)
            ]

        strays += apart(compare, path)
    return _told(path, strays, f"{'row' if source.transport == 'rows' else 'byte'} ")


def of_messages(project: Project, planned: dict) -> str | None:
    """The same of a file of messages: each change of a message that is another one now is there under its change_seq.
    Of a full load the order of rows is told by all of them: one that is another now is refused.
    """
    source, path = project.sources[planned["source"]], planned["path"]
    own = f"where source = {plain_literal(source.name)} and path = {plain_literal(path)}"
    columns = ["unit_id", *OF_MESSAGE, "sha256"]
    old = lake.peek(project.lakehouse_path(), "bronze.messages", columns, own)
    looks_up = lookups.is_asked(CODECS[source.codec])
    known = lookups.known(project, planned["batch_id"]).get(source.name, {}) if looks_up else {}
    brought = json.loads(planned["start_context"] or "{}").get("lookups", {})
    looked_up = {name: text.encode() for name, text in brought.items()} | known
    at = load_times.of_file(source, path, planned["modified_at"])  # of either reading: places are compared, not times
    same = {_message_mark(message) for message in old}

    def read_now(is_all: bool) -> tuple[set[tuple], set[str]]:
        marks, found = set(), set[str]()
        for batch in TRANSPORTS[source.transport].units_of(project, planned):
            for message in batch.to_pylist():
                mark = _message_mark(message | {"sha256": hashlib.sha256(message["value"] or b"").hexdigest()})
                marks.add(mark)
                if is_all or mark not in same:
                    timed = load_times.timed(message, at)
                    found.update(seq for seq, _ in _changes_in(project, source, timed, looked_up))
        return marks, found

    marks, now = apart(lambda: read_now(False), path)
    other = [message["unit_id"] for message in old if _message_mark(message) not in marks]
    columns = [*OF_MESSAGE, '"timestamp"', "timestamp_type", '"key"', "value", "headers"]
    found = list[tuple[int, str, bool]]()
    for some in _some(other, NUM_MESSAGES):
        of_units = plain_among("unit_id", some)
        messages = lake.peek(project.lakehouse_path(), "bronze.messages", columns, f"{own} and {of_units}")

        def compare(messages: list[dict] = messages) -> list[tuple[int, str, bool]]:
            return [
                (message["offset"], seq, is_load)
                for message in messages
                for seq, is_load in _changes_in(project, source, load_times.timed(message, at), looked_up)
                if is_load or seq not in now
            ]

        found += apart(compare, path)
    if any(not is_load for _, _, is_load in found):  # a message that came twice may be left at its other place
        now |= apart(lambda: read_now(True), path)[1]
    strays = [_Stray(offset, was) for offset, was, is_load in found if is_load or was not in now]
    return _told(path, strays, "message ")


def at_end(source: Source, known: dict, planned: dict) -> str | None:
    """Why the next file would go on before a place in the order that was reached. In: the file's newest row of
    bronze.files, and its new one. Out: None where it would not, or where no file goes on from another.
    """
    before, now = (json.loads(row["context"] or "{}") for row in (known, planned))
    if not (ordered.is_ordered(source) and framing.is_opened(before) and framing.is_opened(now)):
        return None
    was, is_now = (CODECS[source.codec].reached(context) for context in (before, now))
    if is_now < was:
        return f"Files after {planned['path']} would go on at {is_now} in the order, and {was} was reached before"
    return None


def _mark(unit: dict) -> tuple:
    return unit["file_offset"], unit["sha256"], json.dumps(json.loads(unit["context"] or "{}"), sort_keys=True)


def _message_mark(message: dict) -> tuple:
    return message["topic"], message["partition"], message["offset"], message["sha256"]


def _some(units: list[str], num: int) -> Iterator[list[str]]:
    return (units[n : n + num] for n in range(0, len(units), num))


def _changes_of(project: Project, source: Source, unit: dict) -> list[tuple[int, str]]:
    """(place in the file, change_seq) of the changes of a row of bronze.blocks. One that its codec fails on has none:
    silver sets it aside.
    """
    codec, tables, context = CODECS[source.codec], project.tables_of(source), json.loads(unit["context"] or "{}")
    decoded = framing.attempt(decode_block, codec, unit["bytes"], context, source, tables)
    if isinstance(decoded, Reject):
        return []
    return [
        (unit["file_offset"] + row["unit_offset"], row["change_seq"])
        for row in change_rows(codec, decoded, context, tables)
    ]


def _changes_in(project: Project, source: Source, message: dict, looked_up: dict) -> list[tuple[str, bool]]:
    """(change_seq, is it of a full load?) of the changes of a message."""
    codec, tables, loads = CODECS[source.codec], project.tables_of(source), []
    place = f"{message['topic']}/{message['partition']}/{message['offset']}"

    def given() -> dict:
        return lookups.with_lookups(codec, message | {"unit_id": f"{source.name}/{place}"}, source, looked_up)

    def decode():
        return codec.decode_message(given(), source, tables, loads)

    row = codec.refresh_row(given(), source, tables) if codec.LOADS else None
    if row:
        seen = {(source.name, row[0]): [(row[1], row[1], message["topic"])]}
        loads = codec.LOADS.assign_loads([], seen, source.options_as(codec.OPTIONS).load_gap_minutes)
    decoded = framing.attempt(decode)
    return [] if isinstance(decoded, Reject) else [(found["change_seq"], bool(row)) for found in decoded.changes]


def _told(path: str, strays: list[_Stray], words: str) -> str | None:
    if not strays:
        return None
    first = min(strays, key=lambda stray: stray.place)
    num = (
        f"{len(strays):,} changes that were read of {path} are"
        if strays[1:]
        else f"A change that was read of {path} is"
    )
    is_now = f"it is {first.is_now} now" if first.is_now else "it is not there now"
    return f"{num} not there as it is now: the first, at {words}{first.place}, was {first.was} in the order; {is_now}"
