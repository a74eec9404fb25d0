"""The one runner of tests/cases/<codec>/{ok_,bad_}*.yml: bytes or messages in, whole rows out.

A case holds
    why, source_of      one line each: what it shows, where its bytes came from
    path                file name (binary formats)
    options, tables_map what inlet.yml says of the source
    tables              the contracts, as in pipelines/tables/*.yml
    text                the file as it is, of a codec of texts
    bytes | messages    commented hex | {topic, partition, offset, timestamp, key, value or value_hex, headers; lookups,
                        texts by name} | records of tests/toy
    packed              how many records a packet holds at most, where a cut in it takes all of them (else 1)
    junk                what bytes 00000000deadbeef after the last record are, if not a reject of kind bad_length:
                        another kind, `rest`, the beginning of a record, or `refused`, why the file is
    expected            changes: rows of the change table without source, unit_id, batch_id and decoded_at, and what is
                        null left out (change_oper too, where a codec gives dicts); rejects, controls, parts and
                        definitions: at least the members that the case names. File formats: `file` for a file that is
                        rejected as a whole; `joined`, changes and rejects that its parts become together
A value of an image is plain, or says its type: {decimal: "1.50"}, {hex: "00ff"}, {date: ...}, {timestamp: ...}.

Binary cases also run cut at every byte (at 50 bytes in `make test`) and with junk after them.
"""

import datetime
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from inlet.bronze import load_times
from inlet.codecs import CODECS
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.results import Block, Waiting
from inlet.errors import Reject
from inlet.fields import variant
from inlet.silver import change_files
from inlet.source import Source
from inlet.table import Table
from tests.conftest import ALL_ROUNDS
from tests.toy import codec as toy
from tests.toy import encode

ALL_CODECS = CODECS | {"toy": toy}
CASES = sorted((Path(__file__).parent / "cases").glob("*/*.yml"))
OK_FILES = [
    path
    for path in CASES
    if path.stem.startswith("ok_") and re.search(r"\n(bytes|text|records):", path.read_text(encoding="utf-8"))
]
LEN_BLOCK = 1 << 20
JUNK = bytes.fromhex("00000000deadbeef")


def load(path: Path) -> dict:
    case = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    tables = [Table(**table) for table in case["tables"]]
    return case | {
        "codec": ALL_CODECS[path.parent.name],
        "tables": {table.table: table for table in tables},
        "source": Source(
            **{
                "name": "case",
                "codec": path.parent.name,
                "from": "landing",
                "tables": case.get("tables_map", {}),
                "options": case.get("options", {}),
            }
        ),
        "data": hexadecimal(case["bytes"])
        if "bytes" in case
        else case["text"].encode()
        if "text" in case
        else b"".join(encode.record(*r) for r in case["records"])
        if "records" in case
        else None,
    }


def hexadecimal(text: str) -> bytes:
    """Commented hex as bytes."""
    return bytes.fromhex("".join(line.split("#")[0] for line in text.splitlines()))


def cuts_of(text: bytes) -> list[int]:
    """The middle of each line, its end, and the beginning of the next one; not the end of the text."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        found += [at + len(line) // 2, at + len(line) - 1, at + len(line)]
        at += len(line)
    return sorted(set(found) - {len(text)})


def some(places: Sequence[int], number: int, path: Path) -> Sequence[int]:
    """A number of places, the same ones of a case at every run; all of them in `make test-all`."""
    is_all = ALL_ROUNDS or len(places) <= number
    return places if is_all else sorted(random.Random(path.stem).sample(places, number))


def plain(value):
    """A value as a case writes it."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    for type_, write in (
        (Decimal, lambda v: {"decimal": str(v)}),
        (bytes, lambda v: {"hex": v.hex()}),
        (datetime.datetime, lambda v: {"timestamp": v.isoformat(sep=" ")}),
        (datetime.date, lambda v: {"date": v.isoformat()}),
    ):
        if isinstance(value, type_):
            return write(value)
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def said(row: dict) -> dict:
    """A row without what is null in it and without what only a batch knows."""
    return {
        name: plain(value)
        for name, value in row.items()
        if value is not None and name not in ("source", "unit_id", "batch_id", "decoded_at", "raw")
    }


def assert_named(expected: list[dict], actual: list[dict]):
    """Each expected row's members are in the actual one, and there are as many."""
    assert expected == [{name: row.get(name) for name in wish} for wish, row in zip(expected, actual)], actual
    assert len(expected) == len(actual), actual


def decode_file(case: dict, data: bytes) -> dict:
    """Open, cut and decode a whole file; every byte is accounted for."""
    codec, source, tables = case["codec"], case["source"], case["tables"]
    found = {name: [] for name in ("changes", "ends", "rejects", "controls", "parts", "definitions")}
    found |= {"file": None, "rest": 0}
    context = codec.open_file(case["path"], data, True, source, tables)
    if isinstance(context, Reject):
        return found | {"file": said(asdict(context)), "rest": len(data)}
    context = codec.follow(context, None) if hasattr(codec, "follow") else context
    cut = codec.cut(data, context, source, tables, LEN_BLOCK, True)
    blocks = list(cut.blocks)
    if cut.problem:
        rest = len(data) - cut.consumed
        assert (cut.problem.unit_offset, cut.problem.unit_length) == (cut.consumed, rest)
        problem = said(asdict(cut.problem))
        blocks.append(Block(cut.consumed, rest, cut.context | {"problem": problem}, 1))
    for block in blocks:
        unit = data[block.offset : block.offset + block.length]
        decoded = decode_block(codec, unit, block.context, source, tables)
        rows = change_rows(codec, decoded, block.context, tables)
        if isinstance(decoded.changes, pa.RecordBatch):
            assert list(map(said, rows)) == list(map(said, written_rows(case, block.context, decoded.changes)))
        assert len(rows) + len(decoded.rejects) + len(decoded.parts) + decoded.num_control == block.num_records
        assert (
            sum(r["unit_length"] for r in rows)
            + sum(r.unit_length for r in [*decoded.rejects, *decoded.parts])
            + decoded.bytes_framing
            == block.length
        )
        for reject in decoded.rejects:
            assert reject.raw == unit[reject.unit_offset : reject.unit_offset + reject.unit_length]
        found["changes"] += [said(row) for row in rows]
        found["ends"] += [block.offset + row["unit_offset"] + row["unit_length"] for row in rows]
        found["rejects"] += [said(asdict(reject)) for reject in decoded.rejects]
        found["controls"] += [said(control._asdict()) for control in decoded.controls]
        found["parts"] += [part._asdict() for part in decoded.parts]
        found["definitions"] += [definition._asdict() for definition in decoded.definitions]
    found["rest"] = 0 if cut.problem else len(data) - cut.consumed
    if "joined" in case.get("expected", {}):
        found["joined"] = join_parts(case, data, blocks)
    return found


def written_rows(case: dict, context: dict, changes: pa.RecordBatch) -> list[dict]:
    """Changes as a task writes them to a file, read back."""
    unit = {"unit_id": "case@0", "context": json.dumps(context)}
    given = change_files.whole(case["codec"], unit, changes, case["source"], case["tables"]) | {"batch_id": 1}
    rows = change_files.rows(len(changes), given).to_pylist()
    for row in rows:
        images = {name: row[name] and variant.decode(**row[name]) for name in ("before", "after", "header")}
        row |= images | {"column_states": row["column_states"] and dict(row["column_states"])}
    return rows


def join_parts(case: dict, data: bytes, blocks: list[Block]) -> dict:
    """What the parts of a file become."""
    codec, source, tables = case["codec"], case["source"], case["tables"]
    waiting: dict[str, list[Waiting]] = {}
    for n, block in enumerate(blocks):
        unit = data[block.offset : block.offset + block.length]
        for part in decode_block(codec, unit, block.context, source, tables).parts:
            raw = unit[part.unit_offset : part.unit_offset + part.unit_length]
            waiting.setdefault(part.key, []).append(Waiting(f"case@{n}", part, raw, block.context))
    joined = [codec.join(key, parts, source, tables) for key, parts in waiting.items()]
    return {
        "changes": [said(row) for one in joined for row in one.changes],
        "rejects": [said(asdict(reject)) for one in joined for _, reject in one.rejects],
        "waiting": [one.part.key for found in joined for one in found.waiting],
    }


def decode_messages(case: dict) -> dict:
    """Every message by the codec's exact path; full loads are found among all messages first."""
    codec, source, tables = case["codec"], case["source"], case["tables"]
    written, seen = map(_message, case["messages"]), {}
    messages = [load_times.timed(message, load_times.of_file(source, message["topic"], None)) for message in written]
    for message in messages if codec.LOADS else ():
        if row := codec.refresh_row(message, source, tables):
            seen.setdefault((source.name, row[0]), []).append((row[1], row[1], message["topic"]))
    loads = codec.LOADS.assign_loads([], seen) if codec.LOADS else []
    found = {"changes": [], "rejects": [], "controls": [], "parts": [], "definitions": []}
    waiting: dict[str, list[Waiting]] = {}
    for message in messages:
        decoded = codec.decode_message(message, source, tables, loads)
        found["changes"] += [said(row) for row in decoded.changes]
        found["rejects"] += [said(asdict(reject)) for reject in decoded.rejects]
        found["controls"] += [said(control._asdict()) for control in decoded.controls]
        found["definitions"] += [definition._asdict() for definition in decoded.definitions]
        place = {name: message[name] for name in ("topic", "partition", "offset")}
        for part in decoded.parts:
            waiting.setdefault(part.key, []).append(Waiting(message["unit_id"], part, message["value"], place))
    for key, parts in waiting.items():
        joined = codec.join(key, parts, source, tables)
        found["changes"] += [said(row) for row in joined.changes]
        found["rejects"] += [said(asdict(reject)) for _, reject in joined.rejects]
        found["parts"] += [one.part._asdict() for one in joined.waiting]
    return found


def _message(written: dict) -> dict:
    """A bronze.messages row. A time without a zone is UTC."""
    value, key, at = written.get("value"), written.get("key"), written.get("timestamp", "2026-01-02 03:04:05")
    at = datetime.datetime.fromisoformat(at) if isinstance(at, str) else at
    message = {"topic": "topic", "partition": 0, "offset": 0, "headers": None} | written
    return message | {
        "value": hexadecimal(written["value_hex"])
        if "value_hex" in written
        else value.encode()
        if isinstance(value, str)
        else value,
        "key": key.encode() if isinstance(key, str) else key,
        "timestamp": at if at is None or at.tzinfo else at.replace(tzinfo=datetime.UTC),
        "headers": [{"key": h["key"], "value": h["value"].encode()} for h in written.get("headers") or ()] or None,
        "lookups": {name: text and text.encode() for name, text in written.get("lookups", {}).items()},
        "source": "case",
        "unit_id": f"case/{message['topic']}/{message['partition']}/{message['offset']}",
    }


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case(path):
    case = load(path)
    assert re.match(r"(ok|bad)_", path.stem) and case["why"] and case["source_of"]
    found, expected = (
        decode_messages(case) if case["data"] is None else decode_file(case, case["data"]),
        case["expected"],
    )
    assert expected.get("changes", []) == found["changes"]
    assert_named(expected.get("rejects", []), found["rejects"])
    assert_named(expected.get("controls", []), found["controls"])
    for what in ("parts", "definitions"):
        assert_named(expected.get(what, []), found[what])
    if path.stem.startswith("ok_"):
        assert not found["rejects"]
    if case["data"] is not None:
        if "joined" in expected:
            assert expected["joined"].get("changes", []) == found["joined"]["changes"]
            assert_named(expected["joined"].get("rejects", []), found["joined"]["rejects"])
            assert expected["joined"].get("waiting", []) == found["joined"]["waiting"]
        assert_named([expected["file"]] if "file" in expected else [], [found["file"]] if found["file"] else [])


@pytest.mark.rounds
@pytest.mark.parametrize("path", OK_FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case_cut_at_every_byte(path):
    """Every row that is whole, and no other: what is missing is the unfinished last record. A beginning that several
    readings fit is rejected as a whole; where only the tail is missing there is no such doubt. A text is cut behind
    each line and within it; a whole record may be missing, too, if what follows would have shown that it is whole, or
    the rest of its packet."""
    case = load(path)
    is_text = "text" in case
    of_whole = decode_file(case, case["data"])
    whole = [row | {"transaction_last_event": None} for row in of_whole["changes"]]
    for length in some(cuts_of(case["data"]) if is_text else range(len(case["data"])), 50, path):
        found = decode_file(case, case["data"][:length])
        assert not found["rejects"]
        if found["file"]:
            assert (
                found["file"]["kind"] in ("ambiguous_layout", "truncated")
                and found["rest"] == length < len(case["data"]) - 1
            )
            continue
        rows = [row | {"transaction_last_event": None} for row in found["changes"]]
        if rows and "pair_divided" in case["source"].options and rows[-1] not in whole:  # an update without its insert
            assert rows.pop()["operation"] == "DELETE"
        expected = [row for row, end in zip(whole, of_whole["ends"]) if end <= length]
        num_lacking = len(expected) - len(rows)
        assert rows == expected[: len(rows)] and 0 <= num_lacking < case.get("packed", 1 + is_text)


@pytest.mark.parametrize("path", OK_FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_case_with_junk_behind(path):
    """The junk is one reject that holds all of it, or waits; nothing before it is lost."""
    case = load(path)
    whole, found = decode_file(case, case["data"]), decode_file(case, case["data"] + JUNK)
    if case.get("junk") == "refused":
        assert found["file"] and not found["changes"] and not found["controls"]
        return
    if case.get("junk") == "rest":
        assert found == whole | {"rest": len(JUNK)}
        return
    if not case["data"]:
        assert found["file"] or len(found["rejects"]) == 1
        return
    assert found["changes"] == whole["changes"] and found["controls"] == whole["controls"]
    assert [(r["kind"], r["unit_length"]) for r in found["rejects"]] == [(case.get("junk", "bad_length"), len(JUNK))]
