"""GoldenGate's JSON messages, operation model, into silver against bare `parse_json` of the same values into Delta."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from inlet import config
from tests.bench import messages
from tests.bench.figure import Figure
from tests.encode import goldengate_json, qlik

POS = b"00000000010000000000"


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    yield from messages.compare(spark, make_project(folder, lakehouse), "GoldenGate JSON", folder, write, is_quick)


def write(path: Path, first: int, num: int) -> None:
    """Updates with both images and a token. A few thousand are encoded, and repeated with another position each."""
    values = []
    for n in range(messages.NUM_DISTINCT):
        after = messages.row(n) | {"CHANGED_AT": "2026-01-02:03:04:05.678000"}
        images = {"before": after | {"QUANTITY": n % 998, "STATE": "NEW"}, "after": after}
        said = {"operation": "UPDATE", "seqno": 1, "rba": 0, "tokens": {"TK-XID": f"0006.008.{n:08d}"}} | images
        values.append(goldengate_json.value(said, "BENCH.OPERATIONS", "operation", ("ID",)))
    path.parent.mkdir(parents=True, exist_ok=True)
    numbered = (
        values[n % messages.NUM_DISTINCT].replace(POS, POS[:10] + b"%010d" % (n + 1)) for n in range(first, first + num)
    )
    qlik.write_parquet(qlik.rows(numbered, "operations", offset=first), path)


def make_project(folder: Path, lakehouse: str) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    source = {"codec": "goldengate_json", "from": "landing/*.parquet"}
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {"bench_operations": source}})
    )
    columns = [{"name": n, "type": t} for n, t in messages.COLUMNS]
    (folder / "pipelines" / "tables" / "operations.yml").write_text(
        yaml.safe_dump({"table": "BENCH.OPERATIONS", "name": "bench_operations", "key": ["ID"], "columns": columns})
    )
    return config.load(folder)
