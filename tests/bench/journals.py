"""Linkexpress usage journals of 20 tables: decoding alone and into silver, against rewriting the rows typed."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from inlet import config
from tests.bench import binary, decoding
from tests.bench.figure import Figure
from tests.encode import linkexpress_journal
from tests.encode.linkexpress_journal import Change, How

NUM_TABLES, NUM_DISTINCT, LEN_FILE = 20, 20_000, 1 << 30  # journals that are encoded one by one; the file repeats them
PER_TRANSACTION = 10
FIRST, MIDDLE, LAST = 1, 2, 4  # STS
HOW = How(framing="message_body", byte_order="little", tagged=True, compressed=True, charset="cp932")
OPTIONS = {"charset": "cp932", "source_tz": "Asia/Tokyo"}


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    data = encode()
    project = make_project(folder, lakehouse, data, 1 if is_quick else -(-LEN_FILE // len(data)))
    columns = [(name, type_) for name, type_, _ in binary.COLUMNS]
    yield from decoding.measure(spark, project, "journals", columns, "usage journals", (False, True))


def encode() -> bytes:
    """Messages, each of a transaction of several tables."""
    journals = []
    for n in range(NUM_DISTINCT):
        place = n % PER_TRANSACTION
        sts = FIRST if place == 0 else LAST if place == PER_TRANSACTION - 1 else MIDDLE
        row = binary.row_of(n)
        row |= {"ORDERED": str(row["ORDERED"]), "CHANGED_AT": str(row["CHANGED_AT"])}
        time = f"20260101{n // 3600:02d}{n // 60 % 60:02d}{n % 60:02d}00"
        operation = ("insert", "update", "update", "update", "delete")[n % 5]
        journals.append(Change(f"T{n * 7 % NUM_TABLES}", operation, row, n // PER_TRANSACTION, sts, time))
    packed = [journals[n : n + PER_TRANSACTION] for n in range(0, NUM_DISTINCT, PER_TRANSACTION)]
    tables = {f"T{n}": [(name, type_) for name, _, type_ in binary.COLUMNS] for n in range(NUM_TABLES)}
    return linkexpress_journal.encode_file(packed, tables, HOW)


def make_project(folder: Path, lakehouse: str, data: bytes, times: int) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "landing").mkdir()
    with (folder / "landing" / "20260101120000_1.jnl").open("wb") as file:
        for _ in range(times):
            file.write(data)
    names = {f"T{n}": f"BENCH.T{n}" for n in range(NUM_TABLES)}
    source = {"codec": "linkexpress_journal", "from": "landing/*.jnl", "tables": names, "options": OPTIONS}
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {"journals": source}})
    )
    columns = [{"name": n, "type": t, "source_type": s} for n, t, s in binary.COLUMNS]
    for table in names.values():
        name = table.split(".")[1].lower()
        contract = {"table": table, "name": name, "key": ["ID"], "columns": columns}
        (folder / "pipelines" / "tables" / f"{name}.yml").write_text(yaml.safe_dump(contract))
    return config.load(folder)
