"""GoldenGate's JSON messages, operation model, into silver against bare `parse_json` of the same values into Delta."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from inlet import config
from inlet.codecs.goldengate.json import messages as json_messages
from tests.bench import messages
from tests.bench.figure import Figure, best
from tests.encode import goldengate_json, qlik

POS = b"00000000010000000000"


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    num = 20_000 if is_quick else 400_000
    project = make_project(folder, lakehouse)
    whole = min(messages.into_silver(spark, project, folder, first, num, write) for first in (0, num))
    units = spark.table("bronze.messages").where("source = 'bench_operations' and `offset` < " + str(num))
    size = units.agg({"size_bytes": "avg"}).first()[0]

    def bare():
        units.selectExpr("unit_id", "parse_json(cast(value as string)) as value").write.format("delta").mode(
            "overwrite"
        ).saveAsTable("bench_bare_operations")

    def fast():
        changes = json_messages.FAST.fast(units, list(project.sources.values()), project.tables, [])
        changes.write.format("delta").mode("overwrite").saveAsTable("bench_fast_operations")

    alone, decoded = best(bare), best(fast)
    told = f"{num} messages of {size:.0f} bytes; {num / alone / 1e3:.0f}k messages/s bare"
    yield Figure("GoldenGate JSON decoded into Delta", "bare parse_json", alone / decoded, "at least 0.7", told)
    yield Figure(
        "GoldenGate JSON into silver, survey, accounts and transactions included",
        "bare parse_json",
        alone / whole,
        "",
        told,
    )


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
