"""Bronze: what is planned, what waits, what is landed once. Planning needs no Spark."""

import base64
import bz2
import datetime as dt
import glob
import gzip
import hashlib
import http.server
import io
import json
import lzma
import os
import re
import signal
import threading
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import fastavro
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from inlet import bronze, config
from inlet.bronze import (
    blocks,
    files,
    framing,
    guard,
    kept_message,
    landing,
    lookups,
    message_text,
    ordered,
    transports,
    whole_files,
)
from inlet.bronze import messages as bronze_messages
from inlet.bronze import plan as planning
from inlet.bronze.files import as_problem, listing
from inlet.codecs import CODECS
from inlet.commands import decode, file_state, status, warm
from inlet.commands import run as running
from inlet.errors import ConfigError, EnvironmentLacks, Reject, TryAgain
from inlet.log import Log
from inlet.source import FILE_TRANSPORTS, MESSAGE_TRANSPORTS, ROW_TRANSPORTS, Source
from inlet.sql import literal
from inlet.table import Table
from tests import both_ways, projects
from tests.encode import linkexpress, qlik

NAME = "20260105031500_000012.lxg"


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Files are planned in a child of this process, which has what this process has compiled."""
    warm.compile_walks()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    return projects.make(tmp_path)


def extract(records) -> bytes:
    return linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})


def deliver(project, data: bytes, name: str = NAME, age_minutes: float = 0) -> None:
    path = project.root / "landing" / "depot" / name
    path.write_bytes(data)
    stamp = path.stat().st_mtime - age_minutes * 60
    os.utime(path, (stamp, stamp))


def plan(project, before=()):
    return both_ways.planned(project, bronze.History(project, before))


def test_a_whole_file_is_planned_with_its_hash(project):
    data = extract(projects.item_records(1, 4))
    deliver(project, data)
    [row] = plan(project).files
    assert (row["ofs_start"], row["ofs_end"], row["num_units"]) == (0, len(data), 1)
    assert row["sha256"] == hashlib.sha256(data).hexdigest()


def test_a_landed_file_is_not_planned_again(project):
    deliver(project, extract(projects.item_records(1, 4)))
    first = plan(project)
    assert plan(project, first.files).files == []


def test_a_growing_file_lands_whole_records_only_and_the_rest_next_time(project, monkeypatch):
    monkeypatch.setattr(guard, "in_child", lambda call: call())  # a child for each of 600 plans takes its time
    data = extract(projects.item_records(1, 6))
    for size in range(len(data)):
        deliver(project, data[:size])
        first = plan(project)
        landed = first.files[0]["ofs_end"] if first.files else 0
        assert landed <= size and first.waiting == ({f"landing/depot/{NAME}": size - landed} if landed < size else {})
        deliver(project, data)
        second = plan(project, first.files)
        parts = first.files + second.files
        assert [(p["ofs_start"], p["ofs_end"]) for p in parts if p["ofs_end"]] == (
            [(0, landed), (landed, len(data))] if landed and landed < len(data) else [(0, len(data))]
        )
        assert parts[-1]["sha256"] == hashlib.sha256(data).hexdigest()


def test_units_of_a_file_are_its_bytes_however_it_is_read(project):
    source, data = project.sources["depot"], extract(projects.item_records(1, 3000))
    deliver(project, data)
    small, kept = framing.LEN_BLOCK, []
    try:
        framing.LEN_BLOCK = 4096
        with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
            kept = [b for b, _ in bronze.cut_file(source, project.tables_of(source), NAME, stream, 0, None, True)]
    finally:
        framing.LEN_BLOCK = small
    assert len(kept) > 10 and b"".join(b.data for b in kept) == data
    assert sum(b.num_records for b in kept) == 4500


def test_an_unfinished_tail_is_rejected_once_the_file_has_rested(project):
    data = extract(projects.item_records(1, 4))
    deliver(project, data[:-3], age_minutes=61)
    [row] = plan(project).files
    assert row["ofs_end"] == len(data) - 3 and row["num_units"] == 2
    with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
        source = project.sources["depot"]
        *_, (last, _) = bronze.cut_file(source, project.tables_of(source), NAME, stream, 0, None, True)
    assert last.context["problem"]["kind"] == "truncated"


@pytest.mark.parametrize("length", [0, 5, 1 << 31, 0xFFFFFFFF])
def test_what_no_record_can_be_is_landed_as_one_broken_unit(project, length):
    good = extract(projects.item_records(1, 4))
    deliver(project, good + length.to_bytes(4, "big") + b"rest of the file")
    source = project.sources["depot"]
    with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
        blocks = [b for b, _ in bronze.cut_file(source, project.tables_of(source), NAME, stream, 0, None, False)]
    assert [b.context.get("problem", {}).get("kind") for b in blocks] == [None, "bad_length"]
    assert b"".join(b.data for b in blocks) == good + length.to_bytes(4, "big") + b"rest of the file"


def test_behind_a_broken_place_nothing_is_decoded_however_the_file_grows(project):
    good, source = extract(projects.item_records(1, 4)), project.sources["depot"]
    data = good + (3).to_bytes(4, "big") + extract(projects.item_records(100, 4))
    deliver(project, data[: len(good) + 30])
    first = plan(project)
    deliver(project, data)
    [second] = plan(project, first.files).files
    assert (second["ofs_start"], second["ofs_end"]) == (len(good) + 30, len(data))
    with open(project.root / "landing" / "depot" / NAME, "rb") as stream:
        stream.seek(second["ofs_start"])
        [(rest, _)] = bronze.cut_file(
            source,
            project.tables_of(source),
            NAME,
            stream,
            second["ofs_start"],
            json.loads(second["start_context"]),
            False,
        )
    assert rest.data == data[len(good) + 30 :] and rest.context["problem"]["kind"] == "bad_length"


def test_a_rewritten_file_stays_refused_when_it_is_touched(project):
    deliver(project, extract(projects.item_records(1, 4)))
    first = plan(project)
    deliver(project, extract(projects.item_records(2, 8)))
    second = plan(project, first.files)
    assert plan(project, first.files + second.files).files == []
    deliver(project, extract(projects.item_records(2, 8)), age_minutes=1)
    [row] = plan(project, first.files + second.files).files
    assert json.loads(row["problem"])["kind"] == "file_rewritten" and row["num_units"] == 0

    deliver(project, extract(projects.item_records(1, 4)), age_minutes=2)  # back as it was: no problem, and nothing new
    back = plan(project, first.files + second.files)
    assert [(r["problem"], r["num_units"]) for r in back.files] == [(None, 0)]
    assert back.files[0]["sha256"] == first.files[0]["sha256"]
    assert plan(project, first.files + second.files + back.files).files == []


def messages(tmp_path, **columns) -> tuple:
    project = projects.make(tmp_path, sources={"shop": {"codec": "qlik_json", "from": "landing/shop"}})
    path = tmp_path / "landing" / "shop" / "a.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    at = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    rows = {
        "topic": ["t", "t"],
        "partition": [0, 0],
        "offset": [1, 2],
        "timestamp": [at, at],
        "value": [b"{}", b"{}"],
    } | columns
    pq.write_table(pa.table({name: column for name, column in rows.items() if column}), path)
    return project, path


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"offset": ["1", "2"]}, "column offset is string, not an integer"),
        ({"offset": [1, None]}, "column offset has nulls"),
        ({"partition": [0, -1]}, "column partition has negative numbers"),
        ({"timestamp": [1, 2]}, "column timestamp is int64, not a timestamp"),
        ({"topic": None}, "no column topic"),
    ],
)
def test_messages_without_a_place_are_a_problem_of_their_file(tmp_path, columns, said):
    [row] = plan(messages(tmp_path, **columns)[0]).files
    problem = json.loads(row["problem"])
    assert (problem["kind"], problem["found"]) == ("unreadable_file", said)


def test_a_message_file_that_is_touched_is_landed_once_and_one_with_other_bytes_is_refused(tmp_path):
    project, path = messages(tmp_path)
    first = plan(project)
    os.utime(path, (1, 1))
    assert plan(project, first.files).files == []
    messages(tmp_path, offset=[3, 4])
    [row] = plan(project, first.files).files
    assert json.loads(row["problem"])["kind"] == "file_rewritten"


def texts(tmp_path, transport: str, data: bytes, name: str = "a.json", **fields):
    where = {"transport": transport, "path": "landing/shop"}
    project = projects.make(tmp_path, sources={"shop": {"codec": "qlik_json", "from": where} | fields})
    path = tmp_path / "landing" / "shop" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return project, path


def read(project, files: list[dict]) -> list[tuple]:
    """(offset, value) of the messages of planned files."""
    return [
        (m["offset"], m["value"])
        for row in files
        if row["num_units"]
        for batch in transports.TRANSPORTS[project.sources[row["source"]].transport].units_of(project, row)
        for m in batch.to_pylist()
    ]


@pytest.mark.parametrize(
    ("transport", "data", "values"),
    [
        ("lines", b'{"a": 1}\r\n\n{"b"\n', [b'{"a": 1}\r', b'{"b"']),
        ("json", b'{"a":\n[1]} {"b":"}\\""}', [b'{"a":\n[1]}', b'{"b":"}\\""}']),
        ("json", b' [{"a": 1},\n 7 , "x,]"]\n', [b'{"a": 1}', b"7", b'"x,]"']),
        ("json", b"[]", []),
        ("json", b"", []),
        ("whole_file", b"anything\n", [b"anything\n"]),
    ],
)
def test_files_bring_messages_one_a_line_as_json_values_or_one_a_file(tmp_path, transport, data, values):
    project, path = texts(tmp_path, transport, data)
    os.utime(path, (1, 1))
    first = plan(project).files
    assert read(project, first) == list(enumerate(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_message, "NUM_BYTES", 8)
        assert read(project, first) == list(enumerate(values))
    assert [row["ofs_end"] for row in first] == [len(data)] and plan(project, first).files == []


def test_lines_are_landed_as_they_come_and_the_last_one_when_it_has_rested(tmp_path):
    data = b'{"a": 1}\n\n{"b": 2}\n{"c": 3}'
    for size in range(len(data) + 1):
        project, path = texts(tmp_path, "lines", data[:size])
        first = plan(project)
        whole = data[:size].rpartition(b"\n")
        assert b"".join(value for _, value in read(project, first.files)) == whole[0].replace(b"\n", b"")
        assert sum(first.waiting.values()) == len(whole[2])
        path.write_bytes(data)
        second = plan(project, first.files)
        os.utime(path, (1, 1))
        third = plan(project, first.files + second.files)
        assert read(project, first.files + second.files + third.files) == [
            (0, b'{"a": 1}'),
            (1, b'{"b": 2}'),
            (2, b'{"c": 3}'),
        ]
        path.write_bytes(b"x" + data[1:])
        [row] = plan(project, first.files + second.files + third.files).files
        assert json.loads(row["problem"])["kind"] == "file_rewritten"


def test_a_file_that_another_transport_landed_stays_as_it_is_and_is_refused_when_it_grows(tmp_path):
    project, path = texts(tmp_path, "whole_file", b"{}\n", settle_minutes=0)
    first = plan(project)
    project, _ = texts(tmp_path, "lines", b"{}\n")
    os.utime(path, (1, 1))
    assert plan(project, first.files).files == []
    [row] = [row | {"context": json.dumps({"offsets": {}, "schema": "of Parquet"})} for row in first.files]
    path.write_bytes(b"{}\n{}\n")
    [refused] = plan(project, [row]).files
    assert json.loads(refused["problem"])["kind"] == "file_rewritten"


RESTS = (
    "its end, which only rest tells: it is taken once nothing was written for settle_minutes (60); settle_minutes: 0 "
    "says that files come whole"
)


def container(schema, values: list, **options) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, values, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        ("bytes", [b"{}", b""], [b"{}", b""]),
        ("string", ["{}", "é"], [b"{}", "é".encode()]),
        (["null", "bytes"], [b"{}", None], [b"{}", None]),
        ({"type": "array", "items": "long"}, [[1], [-2, 64]], [b"\x02\x02\x00", b"\x04\x03\x80\x01\x00"]),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, [Decimal("1.50")], [b"\x04\x00\x96"]),
    ],
)
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_an_avro_container_brings_a_message_for_each_datum(tmp_path, schema, values, expected, codec):
    project, path = texts(tmp_path, "avro", container(schema, values, codec=codec, sync_interval=2), settle_minutes=0)
    first = plan(project).files
    assert read(project, first) == list(enumerate(expected)) and plan(project, first).files == []
    [row] = first
    [*found] = transports.TRANSPORTS["avro"].units_of(project, row)
    headers = {json.dumps(m["headers"], default=bytes.decode) for batch in found for m in batch.to_pylist()}
    lookups = json.loads(row["start_context"])["lookups"]
    if isinstance(schema, dict):
        [(name, text)] = lookups.items()
        assert fastavro.parse_schema(json.loads(text)) == fastavro.parse_schema(schema)
        assert name == hashlib.sha256(text.encode()).hexdigest()
        assert headers == {json.dumps([{"key": "avro.schema", "value": name}])}
    else:
        assert (lookups, headers) == ({}, {"null"})
    path.write_bytes(path.read_bytes() + b"x")
    [refused] = plan(project, first).files
    assert json.loads(refused["problem"])["kind"] == "file_rewritten"


def test_a_text_that_is_not_utf8_is_a_message_like_any_other(tmp_path):
    data = container("string", ["abcd", "{}"]).replace(b"abcd", b"\xff\xfe\xed\xa0")
    project, _ = texts(tmp_path, "avro", data, settle_minutes=0)
    assert read(project, plan(project).files) == [(0, b"\xff\xfe\xed\xa0"), (1, b"{}")]


def test_a_damaged_container_waits_and_is_set_aside_once_it_has_rested(tmp_path):
    data = container("bytes", [b"{}"])
    for damaged in (data[:-3], data[:10], b"no container", data[:-1] + bytes([data[-1] ^ 1])):
        project, path = texts(tmp_path, "avro", damaged)
        assert plan(project).held == {"landing/shop/a.json": RESTS}
        os.utime(path, (1, 1))
        [row] = plan(project).files
        problem = json.loads(row["problem"])
        assert (problem["kind"], problem["expected"]) == ("unreadable_file", "an Avro object container file")


ONE, TWO = (gzip.compress(text, mtime=0) for text in (b"1\n", b"2\n"))  # the same in every process
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".GZ": gzip.compress, ".Xz": lzma.compress}


@pytest.mark.parametrize("end", PACK)
def test_a_compressed_file_is_landed_as_what_it_holds_and_kept_as_it_came(tmp_path, end):
    project = projects.make(tmp_path)
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    data = extract(projects.item_records(1, 3000))
    packed = PACK[end](data)
    sources = {"depot": projects.DEPOT | {"from": "landing/depot/*"}}
    project = projects.make(tmp_path, sources)
    deliver(project, packed[:-9], NAME + end)
    waiting = plan(project)
    assert not waiting.files and waiting.held == {f"landing/depot/{NAME}{end}": RESTS}
    deliver(project, packed[:-9], NAME + end, age_minutes=61)
    [row] = plan(project).files
    assert json.loads(row["problem"])["kind"] == "unreadable_file"
    deliver(project, packed, NAME + end)
    assert plan(project).held == {f"landing/depot/{NAME}{end}": RESTS}
    deliver(project, packed, NAME + end, age_minutes=61)
    [row] = plan(project).files
    assert (row["ofs_end"], row["sha256"]) == (len(packed), hashlib.sha256(packed).hexdigest())
    units = list(blocks.units_of(project, row))
    assert b"".join(unit["bytes"] for unit in units) == data
    assert b"".join(part["bytes"] for part in blocks.delivered_of(project, row)) == packed
    deliver(project, packed, NAME + end, age_minutes=5)
    assert plan(project, [row]).files == []
    deliver(project, PACK[end](data + b"x"), NAME + end)
    [refused] = plan(project, [row]).files
    assert json.loads(refused["problem"])["kind"] == "file_rewritten"
    found = list(decode.decode_file(project, tmp_path / "landing" / "depot" / (NAME + end), "depot"))
    assert len(found) > 3000 - 10 and found[0][0] == "change"


def test_compressed_lines_are_messages_as_they_would_be_unpacked(tmp_path):
    packed = gzip.compress(b'{"a": 1}\n{"b"')
    project, _ = texts(tmp_path, "lines", packed, "a.jsonl.gz", settle_minutes=0)
    first = plan(project).files
    assert read(project, first) == [(0, b'{"a": 1}'), (1, b'{"b"')]
    assert first[0]["ofs_end"] == len(packed) and plan(project, first).files == []


def test_a_compressed_file_of_messages_that_is_too_large_unpacked_is_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(message_text, "MAX_BYTES", 1000)
    texts_of = gzip.compress(b"{}\n" * 1000)
    project, _ = texts(tmp_path, "lines", texts_of, "a.jsonl.gz", settle_minutes=0)
    [row] = plan(project).files
    assert json.loads(row["problem"])["expected"] == "at most 1000 bytes at a time"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"a": 1} {"b"', "b'{\"b\"' at byte 9"),
        (b'[{"a": 1}', "its end at byte 9"),
        (b"[1 2]", "b'2]' at byte 3"),
        (b"[1, 2] 3", "b'3' at byte 7"),
        (b"}", "b'}' at byte 0"),
        (b'{"a": "}', 'b\'{"a": "}\' at byte 0'),
        (b"[1,]", "b']' at byte 3"),
    ],
)
def test_what_is_no_stream_of_json_values_waits_and_is_set_aside_once_it_has_rested(tmp_path, data, found):
    """Values that stand whole before it are landed, whenever the file is looked at."""
    project, path = texts(tmp_path, "json", data)
    first = plan(project)
    whole = [(0, b'{"a": 1}')] if data.startswith(b'{"a": 1} ') else []
    assert read(project, first.files) == whole
    assert first.waiting == {"landing/shop/a.json": 4 if whole else len(data)}
    os.utime(path, (1, 1))
    settled = plan(project).files
    assert read(project, settled) == whole
    for before in (first.files, settled if whole else []):
        [row] = plan(project, before).files
        assert json.loads(row["problem"])["found"] == found and read(project, [row]) == []
        assert plan(project, [*before, row | {"batch_id": 9}]).files == []
    with pytest.raises(ConfigError, match=f"expected JSON values .*, found {re.escape(found)}"):
        list(decode.decode_file(project, path, "shop"))


def test_compressed_text_that_is_no_stream_of_json_values_is_set_aside_as_a_whole(tmp_path):
    project, _ = texts(tmp_path, "json", gzip.compress(b'{"a": 1} }'), "a.json.gz", settle_minutes=0)
    [row] = plan(project).files
    assert (row["num_units"], json.loads(row["problem"])["found"]) == (0, "b'}' at byte 9")


def in_pieces(project, path, data: bytes, pieces: list[int]) -> list[dict]:
    """What is planned of a file that is written in pieces and then rests, with a run behind each piece."""
    files: list[dict] = []
    for end in [*pieces, len(data)]:
        path.write_bytes(data[:end])
        files += plan(project, files).files
    for _ in range(2):
        os.utime(path, (1, 1))
        files += plan(project, files).files
    return files


@pytest.mark.parametrize(
    ("transport", "data", "values"),
    [
        ("json", b'{"a": "}"}  1234\n"b"7 [1, {}]true', [b'{"a": "}"}', b"1234", b'"b"', b"7", b"[1, {}]", b"true"]),
        ("json", b' \n[{"a": 1}, 12]\n ', [b'{"a": 1}', b"12"]),
        ("json", b'\xef\xbb\xbf {"a": 1}\n', [b'{"a": 1}']),
        ("json", b"\xef\xbb\xbf[1, 2]", [b"1", b"2"]),
        ("lines", b'\xef\xbb\xbf{"a": 1}\n{"b"', [b'{"a": 1}', b'{"b"']),
        ("lines", b'\xef\xbb\xbf\n{"a": 1}\n\n \n', [b'{"a": 1}']),
        ("lines", b'{"a": 1}\n\xef\xbb\xbf{}\n', [b'{"a": 1}', b"\xef\xbb\xbf{}"]),
        ("whole_file", b'\xef\xbb\xbf{"a": 1}\n', [b'\xef\xbb\xbf{"a": 1}\n']),
    ],
)
def test_a_text_brings_the_same_messages_however_it_is_written(tmp_path, monkeypatch, transport, data, values):
    """In one piece, in two at every byte, byte by byte; all of it is accounted for in the end. A byte-order mark at the
    very start is no part of a message."""
    monkeypatch.setattr(guard, "in_child", lambda call: call())
    project, path = texts(tmp_path, transport, data)
    for pieces in [[], *([n] for n in range(len(data))), list(range(len(data)))]:
        files = in_pieces(project, path, data, pieces)
        assert read(project, files) == list(enumerate(values)), pieces
        assert [row["problem"] for row in files if row["problem"]] == []
        assert (files[-1]["ofs_end"], files[-1]["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_values_land_as_they_come_but_for_a_number_that_may_go_on_and_an_array_when_it_is_closed(tmp_path):
    project, path = texts(tmp_path, "json", b'{"a": 1} 12')
    first = plan(project)
    assert read(project, first.files) == [(0, b'{"a": 1}')] and first.waiting == {"landing/shop/a.json": 2}
    path.write_bytes(b'{"a": 1} 1234 {"b"')
    second = plan(project, first.files)
    assert read(project, second.files) == [(1, b"1234")] and second.waiting == {"landing/shop/a.json": 4}

    path.write_bytes(b'[{"a": 1}, 2')
    assert plan(project).files == []
    path.write_bytes(b'[{"a": 1}, 2]')
    closed = plan(project).files
    assert read(project, closed) == [(0, b'{"a": 1}'), (1, b"2")]
    path.write_bytes(b'[{"a": 1}, 2]\n')  # blanks are no message
    blanks = plan(project, closed).files
    assert [(row["num_units"], row["ofs_end"], row["problem"]) for row in blanks] == [(0, 14, None)]
    path.write_bytes(b'[{"a": 1}, 2]\n3')
    for before in (closed, blanks):
        [row] = plan(project, before).files
        assert json.loads(row["problem"])["kind"] == "file_rewritten"


def test_values_of_a_file_that_an_earlier_inlet_landed_are_refused_when_it_grows(tmp_path):
    project, path = texts(tmp_path, "json", b"[1]")
    [row] = plan(project).files
    context = json.loads(row["context"])
    del context["goes_on"]
    path.write_bytes(b"[1] 2")
    [refused] = plan(project, [row | {"context": json.dumps(context)}]).files
    assert json.loads(refused["problem"])["kind"] == "file_rewritten"


TWO_BLOCKS = io.BytesIO()
fastavro.writer(TWO_BLOCKS, "bytes", [b"{}", b"[]"], sync_interval=1, sync_marker=bytes(16))


@pytest.mark.parametrize(
    ("transport", "name", "part", "whole", "values"),
    [
        ("lines", "a.jsonl.gz", b"", ONE, [b"1"]),
        ("lines", "a.jsonl.gz", ONE, ONE + TWO, [b"1", b"2"]),
        ("lines", "a.jsonl.bz2", bz2.compress(b"1\n"), bz2.compress(b"1\n") + bz2.compress(b"2\n"), [b"1", b"2"]),
        ("lines", "a.jsonl.xz", b"", lzma.compress(b"1\n"), [b"1"]),
        ("avro", "a.avro", TWO_BLOCKS.getvalue()[:-19], TWO_BLOCKS.getvalue(), [b"{}", b"[]"]),
        ("whole_file", "a.json", b'{"a"', b'{"a": 1}', [b'{"a": 1}']),
    ],
)
def test_a_file_whose_end_cannot_be_told_waits_until_it_has_settled(tmp_path, transport, name, part, whole, values):
    """Each first part can be read as if it were all."""
    project, path = texts(tmp_path, transport, part, name)
    first = plan(project)
    assert (first.files, first.held, first.waiting) == ([], {f"landing/shop/{name}": RESTS}, {})
    path.write_bytes(whole)
    assert plan(project).held == first.held
    os.utime(path, (1, 1))
    settled = plan(project).files
    assert read(project, settled) == list(enumerate(values))
    os.utime(path)  # the same bytes need no rest, nor do others
    assert (plan(project, settled).files, plan(project, settled).held) == ([], {})
    path.write_bytes(whole + b"x")
    [refused] = plan(project, settled).files
    assert json.loads(refused["problem"])["kind"] == "file_rewritten"

    project, path = texts(tmp_path, transport, whole, name, settle_minutes=0)
    os.utime(path, (1 << 32, 1 << 32))  # of a machine whose clock is ahead
    assert read(project, plan(project).files) == list(enumerate(values))


def test_a_file_that_waits_for_its_end_is_named_by_the_run_and_by_status(tmp_path, capsys):
    project, _ = texts(tmp_path, "whole_file", b"{}")
    work = running.find_work(project, running.STEPS, [], [])
    running.say_what_waits(work.plan, Log(is_human=False))
    said = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (said["step"], said["waiting"]) == ("bronze", f"landing/shop/a.json: for {RESTS}")
    assert not work and status.status(project)["waiting files"] == [{"file": "landing/shop/a.json", "waits for": RESTS}]


def test_a_file_that_waits_until_it_is_whole_names_the_options_that_would_tell_how_it_is_read(project, capsys):
    """A number that is the same in both byte orders tells none."""
    columns = [{"name": "K", "type": "string", "source_type": "CHAR(4)"}]
    columns.append({"name": "Q", "type": "int", "source_type": "INTEGER"})
    table = {"table": "DEPOT.PAIRS", "name": "pairs", "key": ["K"], "columns": columns}
    options = {"null_areas": "yes", "charset": "cp932", "source_tz": "UTC", "difftype": "open", "logtype": "normal"}
    of_table = {"codec": "linkexpress_table", "tables": {"PAIRS": "DEPOT.PAIRS"}, "options": options}
    project = projects.make(project.root, {"depot": {**projects.DEPOT, **of_table}}, [table])
    rows, layout = [("row", {"K": "a", "Q": 0})], [(one["name"], one["source_type"]) for one in columns]
    deliver(project, linkexpress.encode_table_file(rows, "open", True, "big", "cp932", layout), f"PAIRS_{NAME}")
    running.say_what_waits(plan(project), Log(is_human=False))
    said = json.loads(capsys.readouterr().err.splitlines()[-1])["waiting"]
    assert said == (
        f"landing/depot/PAIRS_{NAME}: its 14 bytes, which fit more than one reading so far, until byte_order is set, "
        "an option that is auto, or nothing was written for 60 minutes (settle_minutes; 0 says that files come whole)"
    )
    deliver(project, linkexpress.encode_table_file(rows, "open", True, "big", "cp932", layout)[:5], f"PAIRS_{NAME}")
    assert plan(project).end_of_wait(f"landing/depot/PAIRS_{NAME}").startswith("until it goes on or nothing")


def test_a_transport_that_brings_other_units_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match="lines brings nothing that linkexpress_group reads. Its transports are records"
    ):
        projects.make(tmp_path, {"depot": {**projects.DEPOT, "from": {"transport": "lines", "path": "landing"}}})
    with pytest.raises(ConfigError, match="from: expected transport and path, maybe lookups, found folder"):
        projects.make(tmp_path, {"depot": {**projects.DEPOT, "from": {"folder": "landing"}}})
    with pytest.raises(ConfigError, match="transport belongs into from"):
        projects.make(tmp_path, {"depot": {**projects.DEPOT, "transport": "records"}})
    with pytest.raises(ConfigError, match=r"lookups.*match pattern"):
        where = {"transport": "lines", "path": "landing", "lookups": "schemas/one.avsc"}
        projects.make(tmp_path, {"shop": {"codec": "qlik_json", "from": where}})
    assert set(transports.TRANSPORTS) == {*FILE_TRANSPORTS, *ROW_TRANSPORTS, *MESSAGE_TRANSPORTS}


def grows_once_listed(monkeypatch, path, data: bytes) -> None:
    """From now on the file grows to `data` between its listing and its read."""
    list_files = planning.listing

    def listing(*given):
        found = list(list_files(*given))
        if path.read_bytes() != data:
            path.write_bytes(data)
        yield from found

    monkeypatch.setattr(planning, "listing", listing)


def test_what_grows_behind_its_listing_waits_for_the_next_run(project, monkeypatch):
    data = extract(projects.item_records(1, 6))
    deliver(project, data[:-3])
    grows_once_listed(monkeypatch, project.root / "landing" / "depot" / NAME, data)
    first = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, []))
    second = plan(project, first.files)
    assert [(row["ofs_end"] <= row["size_bytes"], row["size_bytes"]) for row in first.files + second.files] == [
        (True, len(data) - 3),
        (True, len(data)),
    ]
    assert second.files[0]["ofs_end"] == len(data)


def test_a_message_file_that_grows_behind_its_listing_is_taken_whole_by_the_next_run(tmp_path, monkeypatch):
    project, path = messages(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    grows_once_listed(monkeypatch, path, whole)
    first = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, []))
    second = plan(project)
    assert (first.files, first.waiting) == ([], {"landing/shop/a.parquet": len(whole) - 9})
    assert [(row["ofs_end"], row["num_units"], row["problem"]) for row in second.files] == [(len(whole), 2, None)]


DENIED = "a person: it cannot be opened (Permission denied); see that Inlet may read it, or take it away"


def deny(monkeypatch, denied: str, error: OSError | None = None) -> None:
    """From now on one file cannot be opened. Permissions do not hold root, who may run these tests."""
    open_file = files.open_file

    def opened(project, path):
        if path == denied:
            raise error or PermissionError(13, "Permission denied", path)
        return open_file(project, path)

    for module in (files, blocks, message_text, ordered, whole_files):
        monkeypatch.setattr(module, "open_file", opened)


def two_sources(tmp_path):
    """A source of binary files and one of messages, two files each."""
    where = {"transport": "lines", "path": "landing/shop"}
    project = projects.make(tmp_path, {"depot": projects.DEPOT, "shop": {"codec": "qlik_json", "from": where}})
    for folder in ("depot", "shop"):
        (tmp_path / "landing" / folder).mkdir(parents=True)
    for number in (12, 13):
        deliver(project, extract(projects.item_records(number, 2)), f"20260105031500_{number:06}.lxg")
        (tmp_path / "landing" / "shop" / f"{number}.jsonl").write_bytes(b"{}\n")
    return project


@pytest.mark.parametrize("denied", [f"landing/depot/{NAME}", "landing/shop/13.jsonl"])
@pytest.mark.parametrize("error", [None, OSError(5, "Input/output error"), PermissionError("Permission denied")])
def test_a_file_that_cannot_be_opened_is_held_and_the_others_go_on(tmp_path, monkeypatch, denied, error):
    project = two_sources(tmp_path)
    expected = [row for row in plan(project).files if row["path"] != denied]
    with monkeypatch.context() as patch:
        deny(patch, denied, error)
        first = plan(project)
        assert (first.files, first.waiting) == (expected, {})
        assert first.held == {
            denied: DENIED.replace("Permission denied", "Input/output error") if error and error.errno else DENIED
        }
        again = plan(project, first.files)
        assert (again.files, again.held) == ([], first.held)
    assert [row["path"] for row in plan(project, first.files).files] == [denied]


def test_a_file_that_is_gone_before_it_is_planned_was_never_there(tmp_path, monkeypatch):
    project = two_sources(tmp_path)
    paths = [row["path"] for row in plan(project).files]
    for gone in paths:
        with monkeypatch.context() as patch:
            deny(patch, gone, FileNotFoundError(2, "No such file or directory"))
            found = plan(project)
        assert [row["path"] for row in found.files] == [path for path in paths if path != gone]
        assert (found.held, found.waiting) == ({}, {})
    with monkeypatch.context() as patch:  # while the folder is listed
        names = glob.iglob
        patch.setattr(files.glob, "iglob", lambda *of, **given: ["gone.lxg", *names(*of, **given)])
        assert [row["path"] for row in plan(project).files] == paths


def test_a_file_that_cannot_be_looked_at_is_held(tmp_path, monkeypatch):
    project, denied = two_sources(tmp_path), tmp_path / "landing" / "depot" / NAME
    stat = Path.stat

    def looked_at(path, **given):
        if path == denied:
            raise PermissionError(13, "Permission denied")
        return stat(path, **given)

    monkeypatch.setattr(Path, "stat", looked_at)
    found = plan(project)
    assert (len(found.files), found.held) == (3, {f"landing/depot/{NAME}": DENIED})


def test_a_planned_file_that_may_not_be_read_any_more_is_set_aside_and_held_by_the_next_plan(project, monkeypatch):
    deliver(project, extract(projects.item_records(1, 4)))
    [row] = plan(project).files
    deny(monkeypatch, row["path"])
    aside = landing._problem_now(project, row) | {"modified_at": dt.datetime(1970, 1, 1)}
    problem = json.loads(aside["problem"])
    assert (aside["ofs_end"], problem["kind"], problem["found"]) == (0, "unreadable_file", "Permission denied")
    held = plan(project, [aside])
    assert (held.files, held.held) == ([], {row["path"]: DENIED})
    assert file_state.file_state(project, str(project.root / row["path"]))[0] is False
    monkeypatch.undo()
    assert [(new["path"], new["problem"]) for new in plan(project, [aside]).files] == [(row["path"], None)]


class Timeless(MemoryFileSystem):
    """A store that gives no time of its files."""

    protocol, store, pseudo_dirs = "timeless", {}, [""]

    def modified(self, path):
        raise NotImplementedError

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("timeless:/"))


def test_a_file_of_a_store_that_tells_no_time_never_settles_by_time(tmp_path):
    fsspec.register_implementation("timeless", Timeless, clobber=True)
    store = Timeless()
    store.pipe("/in/a.jsonl", b'{"a": 1}\n{"b"')
    store.pipe("/in/b.jsonl.gz", gzip.compress(b"{}\n"))
    source = {"codec": "qlik_json", "from": {"transport": "lines", "path": "timeless://in"}}
    project = projects.make(tmp_path, {"shop": source})
    first = plan(project)
    assert [(row["ofs_end"], row["modified_at"]) for row in first.files] == [(9, None)]
    no_time = "its store gives no time of its last change"
    waits = {
        "timeless:///in/a.jsonl": f"the rest of a record of which 4 bytes are there: {no_time}, so that it never "
        "rests; settle_minutes: 0 says that files come whole",
        "timeless:///in/b.jsonl.gz": f"its end, which nothing tells: {no_time}; settle_minutes: 0 says that files come "
        "whole",
    }
    assert (first.held, first.waiting) == (waits, {})
    later = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, first.files), now=1e12)
    assert (later.files, later.held) == ([], waits)
    earlier = [row | {"modified_at": dt.datetime(1970, 1, 1)} for row in first.files]  # as Inlet wrote it before
    assert (plan(project, earlier).files, plan(project, earlier).held) == ([], waits)

    project = projects.make(tmp_path, {"shop": source | {"settle_minutes": 0}})
    rest = plan(project, first.files)
    assert read(project, rest.files) == [(1, b'{"b"'), (0, b"{}")] and rest.held == {}
    aside = [
        row
        | as_problem(0, "file_rewritten", "the file as it was planned", "no file", "")
        | {"modified_at": dt.datetime(1970, 1, 1)}
        for row in rest.files
    ]
    assert len(plan(project, aside).files) == 2  # a file that was set aside is planned anew


def test_a_store_tells_the_time_of_its_files_in_its_own_words():
    at = dt.datetime(2026, 1, 5, 3, 15, tzinfo=dt.UTC)
    for info in ({"mtime": at.timestamp()}, {"LastModified": at}, {"last_modified": at.replace(tzinfo=None)}):
        assert files._modified("timeless:///in/a", info) == at
    store = fsspec.filesystem("memory")
    store.pipe("/in/a", b"")
    assert files._modified("memory:///in/a", {}) == store.modified("/in/a")
    fsspec.register_implementation("timeless", Timeless, clobber=True)
    assert files._modified("timeless:///in/a", {}) is None


HOSTILE = [
    "a[1].lxg",
    "it's.lxg",
    'say "x".lxg',
    "100%20 #1+1?&=.lxg",
    "在庫 (1).lxg",
    "a*b{c,d}.lxg",
    "back\\slash.lxg",
    "${user.home}.lxg",
    "a::b.lxg",
    "dt=1;x.lxg",
]


@pytest.mark.parametrize("pattern", ["landing/[depot]", "landing/[[]depot]/*.lxg", "landing/*/*"])
def test_any_name_is_planned_and_read_as_it_is(tmp_path, pattern):
    root = tmp_path / "it's [my] project, 100% #1 ${x} 在庫?*"
    folder = root / "landing" / "[depot]"
    folder.mkdir(parents=True)
    project = projects.make(
        root,
        {
            "depot": {
                **projects.DEPOT,
                "from": pattern,
                "options": projects.DEPOT["options"] | {"file_name": r".*(?P<time>)"},
            }
        },
    )
    for name in HOSTILE:
        (folder / name).write_bytes(name.encode())
    new = plan(project)
    assert sorted(row["path"] for row in new.files) == sorted(f"landing/[depot]/{name}" for name in HOSTILE)
    for row in new.files:
        assert (
            b"".join(block["bytes"] for block in blocks.units_of(project, row))
            == row["path"].rsplit("/", 1)[-1].encode()
        )


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("landing/[in]", "landing/[in]/a.lxg", True),
        ("landing/[in]", "landing/[in]/deep/a.lxg", False),
        ("landing/*.lxg", "landing/a.lxg", True),
        ("landing/**/*.lxg", "landing/x/y/a.lxg", True),
        ("landing/**/*.lxg", "landing/a.lxg", True),
    ],
)
def test_a_file_is_known_as_one_of_its_source(tmp_path, pattern, name, expected):
    (tmp_path / "landing" / "[in]").mkdir(parents=True)
    project = projects.make(tmp_path, {"depot": {**projects.DEPOT, "from": pattern}})
    assert decode._is_in(tmp_path / name, *project.folder(project.sources["depot"])) == expected


def test_a_name_that_is_not_utf8_is_a_problem_of_its_file(project):
    with open(os.fsencode(project.root / "landing" / "depot") + b"/\x8d\x8d.lxg", "wb"):
        pass
    [row] = plan(project).files
    assert row["path"] == r"landing/depot/\x8d\x8d.lxg"
    assert json.loads(row["problem"])["expected"] == "a name in UTF-8" and plan(project, [row]).files == []


def test_a_link_is_followed_within_its_folder_and_refused_where_it_leaves_it(project, tmp_path):
    folder, secret = project.root / "landing" / "depot", tmp_path / "secret.lxg"
    deliver(project, extract(projects.item_records(1, 4)))
    secret.write_bytes(extract(projects.item_records(9, 2)))
    (folder / "20260105031500_000013.lxg").symlink_to(folder / NAME)
    (folder / "20260105031500_000014.lxg").symlink_to(secret)
    (folder / "20260105031500_000015.lxg").symlink_to("/nowhere")
    (folder / "elsewhere").symlink_to(tmp_path)  # no file: it is let be
    (folder / "20260105031500_000016.lxg").symlink_to(folder / "20260105031500_000016.lxg")  # nor is this
    new = plan(project)
    problems = {row["path"].rsplit("_")[-1]: row["problem"] and json.loads(row["problem"])["kind"] for row in new.files}
    assert problems == {
        "000012.lxg": None,
        "000013.lxg": None,
        "000014.lxg": "link_outside",
        "000015.lxg": "link_outside",
    }
    assert plan(project, new.files).files == []
    assert list(new.held) == ["landing/depot/20260105031500_000016.lxg"] and "leads nowhere" in str(new.held)


def test_a_compressed_file_of_no_bytes_is_none_and_is_read_once_it_has_some(tmp_path):
    source = {"codec": "qlik_json", "from": {"transport": "lines", "path": "landing/zipped"}, "settle_minutes": 0}
    (tmp_path / "landing" / "zipped").mkdir(parents=True)
    project, file = projects.make(tmp_path, {"zipped": source}), tmp_path / "landing" / "zipped" / "1.gz"
    file.write_bytes(b"")
    [row] = plan(project).files
    problem = json.loads(row["problem"])
    assert (problem["kind"], problem["found"]) == ("unreadable_file", "no bytes")
    file.write_bytes(gzip.compress(b'{"a": 1}\n'))
    [row] = plan(project, [row]).files
    assert (row["problem"], row["num_units"]) == (None, 1)


def test_a_link_to_a_folder_lists_no_file_twice(tmp_path):
    project = projects.make(tmp_path, {"depot": {**projects.DEPOT, "from": "landing/**/*.lxg"}})
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    deliver(project, extract(projects.item_records(1, 4)))
    (tmp_path / "landing" / "again").symlink_to(tmp_path / "landing")
    assert [path for path, _ in listing(project, project.sources["depot"])] == [f"landing/depot/{NAME}"]


def test_a_file_that_was_set_aside_is_planned_anew_when_it_is_back_as_it_was(project):
    deliver(project, extract(projects.item_records(1, 4)))
    [row] = plan(project).files
    gone = (
        row
        | as_problem(0, "file_rewritten", "the file as it was planned", "no file", "")
        | {"modified_at": dt.datetime(1970, 1, 1)}
    )
    assert [(new["path"], new["ofs_end"], new["problem"]) for new in plan(project, [gone]).files] == [
        (row["path"], row["ofs_end"], None)
    ]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(5, "Input/output error"), None),
        (ValueError("no footer"), "unreadable_file"),
        (FileNotFoundError(2, "No such file"), "file_rewritten"),
    ],
)
def test_a_file_is_set_aside_for_what_is_wrong_with_it_and_not_for_what_the_machine_lacks(
    project, monkeypatch, error, kind
):
    deliver(project, extract(projects.item_records(1, 4)))
    [row] = plan(project).files

    def fail(*of):
        raise error

    monkeypatch.setattr(blocks, "units_of", fail)
    found = landing._problem_now(project, row)
    assert (found and json.loads(found["problem"])["kind"]) == kind


@pytest.mark.parametrize("step", ["open_file", "cut"])
def test_a_file_that_a_codec_fails_on_is_landed_as_one_broken_unit(project, monkeypatch, step):
    data = extract(projects.item_records(1, 4))
    deliver(project, data)
    codec = SimpleNamespace(**vars(CODECS["linkexpress_group"]) | {step: lambda *_: [][0]})
    monkeypatch.setitem(CODECS, "linkexpress_group", codec)
    [row] = plan(project).files
    [block] = blocks.units_of(project, row)
    problem = json.loads(block["context"])["problem"]
    assert (block["bytes"], problem["kind"]) == (data, "decoder_failed") and problem["found"].startswith(
        "list index out of range (test_bronze.py"
    )


def test_a_file_whose_reading_ends_the_process_is_a_problem_of_that_file_alone(project, monkeypatch):
    deliver(project, extract(projects.item_records(1, 4)))
    [row] = plan(project).files
    deliver(project, b"deadly" * 4, "DEPOT_ITEMS_20200101000000_000009.lxg")

    def open_file(path, head, *given):
        if head.startswith(b"deadly"):
            os.kill(os.getpid(), signal.SIGKILL)
        return codec.open_file(path, head, *given)

    codec = CODECS["linkexpress_group"]
    monkeypatch.setitem(CODECS, "linkexpress_group", SimpleNamespace(**vars(codec) | {"open_file": open_file}))
    files = plan(project).files
    [deadly], [good] = [[f for f in files if ("000009" in f["path"]) == is_deadly] for is_deadly in (True, False)]
    problem = json.loads(deadly["problem"])
    assert (problem["kind"], problem["found"], good) == (
        "unreadable_file",
        "its process was ended by signal 9 (Killed)",
        row,
    )
    assert plan(project, files).files == []
    assert (
        json.loads(landing._problem_now(project, good | {"path": deadly["path"], "start_context": None})["problem"])[
            "kind"
        ]
        == "unreadable_file"
    )


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ("{1: DEPOT.ITEMS}", {"1": "DEPOT.ITEMS"}),
        ("{'1': DEPOT.ITEMS}", {"1": "DEPOT.ITEMS"}),
        (
            "{012: DEPOT.ITEMS, 0x1F: DEPOT.ITEMS, 1:30: DEPOT.ITEMS}",
            dict.fromkeys(("012", "0x1F", "1:30"), "DEPOT.ITEMS"),
        ),
    ],
)
def test_an_extraction_id_may_be_written_as_a_number(tmp_path, tables, expected):
    projects.make(tmp_path)
    depot = f"codec: linkexpress_group, from: a, options: {{source_tz: UTC, charset: cp932}}, tables: {tables}"
    (tmp_path / "pipelines" / "inlet.yml").write_text(f"sources: {{depot: {{{depot}}}}}")
    assert config.load(tmp_path).sources["depot"].tables == expected


def test_an_extraction_id_that_stands_there_as_number_and_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="1 stands there as a number and as text"):
        projects.make(tmp_path, {"depot": {**projects.DEPOT, "tables": {1: "DEPOT.ITEMS", "1": "DEPOT.BOXES"}}})


def test_files_with_other_columns_keep_theirs(spark, lakehouse, tmp_path):
    project, path = messages(tmp_path)
    messages(tmp_path, offset=[3, 4], key=[b"k3", b"k4"])[1].rename(path.with_name("b.parquet"))
    messages(tmp_path)
    rows = bronze_messages.read(project, spark, plan(project).files).select("offset", "key").orderBy("offset").collect()
    assert [(row.offset, row.key and bytes(row.key)) for row in rows] == [(1, None), (2, None), (3, b"k3"), (4, b"k4")]


def test_a_file_whose_landed_bytes_changed_is_a_problem_not_a_change(project):
    deliver(project, extract(projects.item_records(1, 4)))
    first = plan(project)
    deliver(project, extract(projects.item_records(2, 8)))
    [row] = plan(project, first.files).files
    assert json.loads(row["problem"])["kind"] == "file_rewritten" and row["num_units"] == 0


def test_an_empty_file_is_landed_and_an_unnamed_one_is_rejected(project):
    deliver(project, b"")
    deliver(project, extract(projects.item_records(1, 2)), name="no-time.lxg")
    rows = {row["path"].rsplit("/")[-1]: row for row in plan(project).files}
    assert (rows[NAME]["ofs_end"], rows[NAME]["num_units"], rows["no-time.lxg"]["num_units"]) == (0, 0, 1)


def test_a_message_file_that_is_no_parquet_is_a_problem_of_that_file_only(tmp_path):
    project = projects.make(tmp_path, sources={"shop": {"codec": "qlik_json", "from": "landing/shop"}})
    (tmp_path / "landing" / "shop").mkdir(parents=True)
    (tmp_path / "landing" / "shop" / "a.parquet").write_bytes(b"PAR1 no")
    [row] = plan(project).files
    assert json.loads(row["problem"])["kind"] == "unreadable_file"


@pytest.mark.smoke
def test_bytes_out_equal_bytes_in_and_a_crash_between_plan_and_units_is_healed(spark, lakehouse, tmp_path):
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    project = projects.make(tmp_path, sources={"bronze_depot": projects.DEPOT}, lakehouse=lakehouse)
    data = extract(projects.item_records(1, 500))
    deliver(project, data)
    new = plan(project, bronze.History(project).readings())
    write, landing.write_units = landing.write_units, lambda *_: None
    try:
        bronze.land(project, spark, new)  # dies after the plan
    finally:
        landing.write_units = write
    before = [row for row in bronze.History(project).readings() if row["batch_id"] == new.batch_id]
    assert bronze.History(project, before).unfinished() == [new.batch_id]
    for _ in range(2):  # the second time changes nothing
        bronze.write_units(project, spark, bronze.Plan(new.batch_id, before))
    rows = spark.sql(
        "select bytes, sha256 from bronze.blocks where source = 'bronze_depot' order by file_offset"
    ).collect()
    assert b"".join(row.bytes for row in rows) == data
    assert [row.sha256 for row in rows] == [hashlib.sha256(row.bytes).hexdigest() for row in rows]
    assert (
        not isinstance(plan(project, bronze.History(project).readings()), Reject)
        and plan(project, bronze.History(project).readings()).files == []
    )


def test_hostile_names_are_landed_as_they_are_and_what_changed_after_its_plan_is_planned_anew(
    spark, lakehouse, tmp_path
):
    root = tmp_path / "it's [my] project, 100% #1 ${x} 在庫?*"
    shop, depot = root / "landing" / "[shop]", root / "landing" / "depot"
    for folder in (shop, depot):
        folder.mkdir(parents=True)
    project = projects.make(
        root,
        {"hostile_shop": {"codec": "qlik_json", "from": "landing/[shop]"}, "hostile_depot": projects.DEPOT},
        lakehouse=lakehouse,
    )
    names = [name.replace(".lxg", ".parquet") for name in HOSTILE]
    for number, name in enumerate(names):
        qlik.write_parquet(qlik.rows([name.encode()], "t", offset=number), shop / name)
    (depot / HOSTILE[1]).write_bytes(extract(projects.item_records(1, 2)))
    (depot / NAME).write_bytes(extract(projects.item_records(1, 2)))
    new = plan(project, bronze.History(project).readings())
    qlik.write_parquet(qlik.rows([b"other"], "t", offset=90), shop / names[0])
    (depot / NAME).unlink()
    counting_on_it = plan(project, new.files)  # what a run plans that has yet to finish this batch
    bronze.land(project, spark, new)
    for _ in range(2):
        rows = spark.sql("select path, value from bronze.messages where source = 'hostile_shop'").collect()
        found = {(row.path, bytes(row.value).decode()) for row in rows}
        assert found == {(f"landing/[shop]/{name}", name) for name in names[1:]}
        bronze.write_units(project, spark, bronze.Plan(new.batch_id, new.files))  # a second time changes nothing
    [block] = spark.sql(
        f"select unit_id from bronze.blocks where path = {literal(f'landing/depot/{HOSTILE[1]}')}"
    ).collect()
    assert block.unit_id == f"hostile_depot/landing/depot/{HOSTILE[1]}@0"
    problems = {
        row["path"]: json.loads(row["problem"])
        for row in bronze.History(project).readings()
        if row["batch_id"] == new.batch_id and row["problem"]
    }
    assert {path: (problem["kind"], problem["found"][:7]) for path, problem in problems.items()} == {
        f"landing/[shop]/{names[0]}": ("file_rewritten", "sha-256"),
        f"landing/depot/{NAME}": ("file_rewritten", "no file"),
    }
    assert [row["path"] for row in plan(project, bronze.History(project).readings()).files] == [
        f"landing/[shop]/{names[0]}"
    ]
    running._bronze(
        project,
        spark,
        running.Work(counting_on_it, [new.batch_id], sources=list(project.sources.values())),
        Log(is_human=False),
    )
    assert [
        bytes(row.value)
        for row in spark.sql(
            "select value from bronze.messages where source = 'hostile_shop' and offset = 90"
        ).collect()
    ] == [b"other"]
    assert plan(project, bronze.History(project).readings()).files == []
    assert [spark.sql(f"select {literal(text)}").first()[0] for text in HOSTILE] == HOSTILE


@pytest.mark.parametrize("name", ["..", "", "a/../../b", "x" * 5000, "\0"])
def test_a_name_that_can_be_none_leads_nowhere_and_stops_nothing(tmp_path, name):
    (tmp_path / "lists").mkdir()
    (tmp_path / "b").write_text("outside")
    where = {"transport": "lines", "path": "landing", "lookups": "lists/{name}"}
    project = projects.make(tmp_path, {"shop": {"codec": "qlik_json", "from": where}})
    assert lookups.fetch(project, project.sources["shop"], name) is None


def test_an_address_that_does_not_answer_says_so_and_one_that_has_no_such_name_is_none(tmp_path):
    where = {"transport": "lines", "path": "landing", "lookups": "http://127.0.0.1:9/{name}"}
    project = projects.make(tmp_path, {"shop": {"codec": "qlik_json", "from": where}})
    with pytest.raises(TryAgain, match="http://127.0.0.1:9/a%2Fb cannot be looked up: .*refused"):
        lookups.fetch(project, project.sources["shop"], "a/b")


def test_a_registry_gets_the_password_of_the_environment_and_nothing_else_shows_it(tmp_path, monkeypatch):
    class Registry(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            is_right = self.headers["Authorization"] == "Basic " + base64.b64encode(b"me:hunter2").decode()
            self.send_response(200 if is_right else 401)
            self.end_headers()
            self.wfile.write(b"schema")

        def log_message(self, *of):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = f"127.0.0.1:{server.server_port}/{{name}}"
        where = {"transport": "lines", "path": "landing", "lookups": f"http://me:${{INLET_TEST_PASSWORD}}@{there}"}
        project = projects.make(tmp_path, {"shop": {"codec": "qlik_json", "from": where}})
        source = project.sources["shop"]
        with pytest.raises(EnvironmentLacks, match="INLET_TEST_PASSWORD, which lookups of shop names, is not set"):
            lookups.fetch(project, source, "1")
        monkeypatch.setenv("INLET_TEST_PASSWORD", "hunter2")
        assert lookups.fetch(project, source, "1") == b"schema"
        assert "hunter2" not in lookups.address(source, "1")
        monkeypatch.setenv("INLET_TEST_PASSWORD", "hunter3")
        with pytest.raises(EnvironmentLacks, match="refuses: status 401") as refused:
            lookups.fetch(project, source, "1")
        server.shutdown()
    assert "hunter3" not in str(refused.value)
    with pytest.raises(ConfigError, match="a password is a secret") as wrong:
        projects.make(
            tmp_path, {"shop": {"codec": "qlik_json", "from": where | {"lookups": f"http://me:hunter2@{there}"}}}
        )
    assert "hunter2" not in str(wrong.value)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("2026-01-05T03:00:00Z", dt.datetime(2026, 1, 5, 3, tzinfo=dt.UTC)),
        ("2026-01-05T03:00:00", dt.datetime(2026, 1, 5, 3, tzinfo=dt.UTC)),
        (1767582000, dt.datetime(2026, 1, 5, 3, tzinfo=dt.UTC)),
        ("yesterday", None),
    ],
)
def test_a_store_may_tell_its_times_as_text(told, expected):
    assert files._modified("memory://name", {"updated": told}) == expected


def test_a_file_that_has_the_place_of_another_tables_file_is_held_until_it_is_renamed(tmp_path):
    """Their changes would have one change_seq, and be taken for contradictions."""
    other = projects.ITEMS | {"table": "DEPOT.OTHERS", "name": "others"}
    table = projects.DEPOT | {"codec": "linkexpress_table", "tables": {"ITEMS": "DEPOT.ITEMS", "DEPOT.*": "DEPOT.*"}}
    table |= {"options": projects.DEPOT["options"] | {"difftype": "open", "logtype": "little"}, "settle_minutes": 0}
    project = projects.make(tmp_path, {"depot": table}, [projects.ITEMS, other])
    (tmp_path / "landing" / "depot").mkdir(parents=True)
    records = [("insert", {"ITEM_ID": 1, "NAME": "a", "PRICE": None})]
    data = linkexpress.encode_table_file(records, "open", True, "big", "cp932", projects.LAYOUT, logtype="little")
    deliver(project, data, "ITEMS_20260105030000.lxg")
    first = plan(project)
    assert not first.held and [row["problem"] for row in first.files] == [None]

    deliver(project, data, "DEPOT.OTHERS_20260105030000.lxg")
    deliver(project, data, "ITEMS_20260105030000.again.lxg")
    second = plan(project, first.files)
    [(held, why)] = second.held.items()
    assert (held, [row["path"] for row in second.files]) == (
        "landing/depot/DEPOT.OTHERS_20260105030000.lxg",
        ["landing/depot/ITEMS_20260105030000.again.lxg"],
    )
    assert why == (
        "a person: its name gives it the place in the order that ITEMS_20260105030000.lxg has, a file of DEPOT.ITEMS, "
        "not of DEPOT.OTHERS: rename it, so that its time and ordinal are its own"
    )
    path = tmp_path / held
    path.rename(path.with_name("DEPOT.OTHERS_20260105030000_2.lxg"))
    third = plan(project, first.files + second.files)
    assert not third.held and len(third.files) == 1


@pytest.mark.parametrize(
    ("codec", "names"),
    [
        ("linkexpress_group", ["20260105030000_1.x", "ITEMS_20260105030000_1.x"]),
        ("linkexpress_table", ["ITEMS_20260105030000_1.x", "OTHERS_2026010503000000_1.x"]),
        ("linkexpress_journal", ["a_20260105030000_1.x", "b_20260105030000_01.x"]),
        ("goldengate_text", ["aa000001", "bb000001"]),
    ],
)
def test_names_tell_whose_a_place_is(codec, names):
    tables = {name: Table(**projects.ITEMS | {"table": name}) for name in ("DEPOT.ITEMS", "DEPOT.OTHERS")}
    options = {} if codec == "goldengate_text" else {"source_tz": "UTC", "charset": "ascii"}
    source = Source(**{"name": "s", "codec": codec, "from": "x", "options": options})
    found = [CODECS[codec].own_place(name, source, tables) for name in names]
    assert found[0][0] == found[1][0] and found[0][1] != found[1][1]
    assert CODECS[codec].own_place("a_name.txt", source, tables) is None
