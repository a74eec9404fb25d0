"""GoldenGate trails of 20 tables: framing alone; decoding alone and into silver, against rewriting the rows typed."""

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import yaml

from inlet import config
from inlet.codecs.goldengate.trail import frame
from tests.bench import decoding
from tests.bench.figure import Figure
from tests.encode import goldengate_columns as columns
from tests.encode.goldengate_tokens import FIRST, LAST, MIDDLE
from tests.encode.goldengate_trail import Trail

TYPES = [
    ("ID", "bigint", "INT64", lambda name: columns.integer(name, is_key=True, is_nullable=False)),
    ("NAME", "string", "ASCII_V(30)", lambda name: columns.varchar(name, 30)),
    ("CITY", "string", "ASCII_V(30)", lambda name: columns.varchar(name, 30)),
    ("STATE", "string", "ASCII_V(2)", lambda name: columns.varchar(name, 2)),
    ("QUANTITY", "int", "INT32", lambda name: columns.integer(name, 132)),
    ("PRICE", "decimal(19,2)", "INT64(11,2)", lambda name: columns.number(name, 2)),
    ("TOTAL", "decimal(20,2)", "FIXED_PREC(50,2)", lambda name: columns.decimal_text(name, 2, columns.FIXED_PREC)),
    ("ORDERED", "date", "DATETIME(10)", lambda name: columns.moment(name, 10)),
    ("CHANGED_AT", "timestamp_ntz", "DATETIME(19)", lambda name: columns.moment(name, 19)),
    ("STOCK", "int", "INT32", lambda name: columns.integer(name, 132)),
]
NUM_TABLES, NUM_DISTINCT = 20, 40_000  # records that are encoded one by one; the file repeats them
PER_TRANSACTION = 10


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    start, records = encode()
    times = 1 if is_quick else -(-(1 << 30) // len(records))
    yield framing(start + records * min(times, 16))
    project = make_project(folder, lakehouse, start, records, times)
    types = [(name, type_) for name, type_, *_ in TYPES]
    yield from decoding.measure(spark, project, "trail", types, "a trail", (False, True))


def framing(data: bytes) -> Figure:
    """Finding the records of a file and their tokens, on one core."""
    bytes_, none = np.frombuffer(data, np.uint8), np.zeros((0, 2), np.int64)
    start, rows = int.from_bytes(data[2:4], "big"), frame.room_for(data)
    seen = np.zeros(len(data), np.uint8)
    frame.walk(bytes_, start, True, True, none, seen, rows)
    seen[:] = 0
    started = time.perf_counter()
    num, end, _ = frame.walk(bytes_, start, True, True, none, seen, rows)
    rate = len(data) / (time.perf_counter() - started) / 1e9
    assert end == len(data)
    return Figure("frame a trail, on one core", "1 GB/s", rate, "at least 1.0", f"{rate:.1f} GB/s, {num} records")


def encode() -> tuple[bytes, bytes]:
    """A trail's beginning, with all definitions, and the records after it."""
    tables = [columns.Table(f"BENCH.T{n}", tuple(make(name) for name, _, _, make in TYPES)) for n in range(NUM_TABLES)]
    trail = Trail(tables, byte_order="little", name_form="index", definitions="start")
    rng, at, start = random.Random(1), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), trail.rba
    for n in range(NUM_DISTINCT):
        place = n % PER_TRANSACTION
        trans_ind = FIRST if place == 0 else LAST if place == PER_TRANSACTION - 1 else MIDDLE
        tokens = [("R", "AAAShSAAEAAAAD9AAC")]
        tokens += [("L", str(1_332_816 + n)), ("6", f"10.2.{n}")] if place == 0 else []
        said = {"trans_ind": trans_ind, "io_time": at, "tokens": tokens}
        table, row = f"BENCH.T{rng.randrange(NUM_TABLES)}", row_of(n)
        kind = rng.random()
        if kind < 0.4:
            trail.insert(table, row, **said)
        elif kind < 0.9:
            trail.update(table, {name: row[name] for name in ("ID", "NAME", "PRICE", "CHANGED_AT", "STOCK")}, **said)
        else:
            trail.delete(table, {"ID": n}, **said)
    data = trail.files[0][1]
    return data[:start], data[start:]


def row_of(n: int) -> dict:
    return {
        "ID": n,
        "NAME": f"NAME {n}",
        "CITY": "SOMEWHERE",
        "STATE": "OK",
        "QUANTITY": n % 999,
        "PRICE": Decimal(n).scaleb(-2),
        "TOTAL": Decimal(7 * n).scaleb(-2),
        "ORDERED": datetime(2026, 1, 1 + n % 28).date(),
        "CHANGED_AT": datetime(2026, 1, 1, n % 24, n % 60),
        "STOCK": 3 * n,
    }


def make_project(folder: Path, lakehouse: str, start: bytes, records: bytes, times: int) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "landing").mkdir()
    with (folder / "landing" / "tr000000000").open("wb") as file:
        file.write(start)
        for _ in range(times):
            file.write(records)
    sources = {"trail": {"codec": "goldengate_trail", "from": "landing/tr*"}}
    (folder / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"lakehouse": lakehouse, "sources": sources}))
    columns_ = [{"name": n, "type": t, "source_type": s} for n, t, s, _ in TYPES]
    for n in range(NUM_TABLES):
        contract = {"table": f"BENCH.T{n}", "name": f"t{n}", "key": ["ID"], "columns": columns_}
        (folder / "pipelines" / "tables" / f"t{n}.yml").write_text(yaml.safe_dump(contract))
    return config.load(folder)
