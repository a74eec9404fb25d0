"""Linkexpress extracts by table, in both layouts: decoding alone and into silver, against rewriting the rows typed."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from inlet import config
from tests.bench import binary, decoding
from tests.bench.figure import Figure
from tests.encode import linkexpress

NUM_DISTINCT, LEN_FILE = 20_000, 1 << 30  # records that are encoded one by one; the file repeats them
OPERATIONS = ("insert", "update", "update", "update", "delete")


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    columns = [(name, type_) for name, type_, _ in binary.COLUMNS]
    for layout, words in (("journal", "extracts by table, journal form"), ("open", "extracts by table, open form")):
        data = encode(layout)
        project = make_project(folder / layout, lakehouse, layout, data, 1 if is_quick else -(-LEN_FILE // len(data)))
        yield from decoding.measure(spark, project, f"extracts_{layout}", columns, words, (False,))


def encode(layout: str) -> bytes:
    records = [(OPERATIONS[n % len(OPERATIONS)], binary.row_of(n)) for n in range(NUM_DISTINCT)]
    columns = [(name, source_type) for name, _, source_type in binary.COLUMNS]
    return linkexpress.encode_table_file(records, layout, False, "big", "ebcdic_kana", columns)


def make_project(folder: Path, lakehouse: str, layout: str, data: bytes, times: int) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "landing").mkdir()
    with (folder / "landing" / "RECORDS_20260101000000_000001.dat").open("wb") as file:
        for _ in range(times):
            file.write(data)
    options = {"source_tz": "UTC", "charset": "ebcdic_kana", "byte_order": "big"}
    options |= {"difftype": layout, "logtype": "normal"}
    options |= {"null_areas": "no"} if layout == "open" else {}
    source = {
        "codec": "linkexpress_table",
        "from": "landing/*.dat",
        "tables": {"RECORDS": "BENCH.RECORDS"},
        "options": options,
    }
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {f"extracts_{layout}": source}})
    )
    columns = [{"name": n, "type": t, "source_type": s} for n, t, s in binary.COLUMNS]
    (folder / "pipelines" / "tables" / "records.yml").write_text(
        yaml.safe_dump({"table": "BENCH.RECORDS", "name": "records", "key": ["ID"], "columns": columns})
    )
    return config.load(folder)
