"""Binary records: decoding alone, and decoding into silver, against rewriting the same rows typed, Delta to Delta."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import yaml

from inlet import bronze, config, silver
from inlet.codecs import CODECS
from inlet.silver import blocks
from inlet.silver.batch import Batch
from tests.bench import decoding
from tests.bench.figure import Figure, best
from tests.encode import linkexpress

COLUMNS = [
    ("ID", "int", "INTEGER"),
    ("REGION", "string", "CHAR(4)"),
    ("CODE", "string", "CHAR(8)"),
    ("NAME", "string", "VARCHAR(12)"),
    ("STATE", "string", "CHAR(2)"),
    ("QUANTITY", "smallint", "SMALLINT"),
    ("PRICE", "decimal(9,2)", "DECIMAL(9,2)"),
    ("TOTAL", "decimal(13,2)", "DECIMAL(13,2)"),
    ("TAX", "decimal(7,2)", "NUMERIC(7,2)"),
    ("DISCOUNT", "decimal(5,2)", "NUMERIC(5,2)"),
    ("ORDERED", "date", "DATE"),
    ("CHANGED_AT", "timestamp_ntz", "TIMESTAMP"),
    ("STOCK", "int", "INTEGER"),
]
NUM_DISTINCT = 20_000  # records that are encoded one by one; a file repeats them
PER_TRANSACTION = 10
ROUNDS = 5


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    num = 40_000 if is_quick else 2_000_000
    data = encode()
    project = make_project(folder, lakehouse, data, num)
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    silver.run(project, spark, new.batch_id)
    typed = ", ".join(f"{n}: {t}" for n, t, _ in COLUMNS)
    spark.sql(
        "create or replace table bench_typed using delta as select a.* from (select cast(after as "
        f"struct<{typed}>) as a "
        f"from silver.changes where source = 'bench')"
    )
    decoding.create(spark, lakehouse, "bench.changes")
    batch, codec = Batch(spark, project, new.batch_id, ["bench"]), CODECS["linkexpress_group"]
    heads = blocks.headers(batch, codec, batch.sources)
    units = blocks._units(batch, heads)
    rewrite = best(
        lambda: spark.sql("create or replace table bench_copy using delta as select * from bench_typed"), ROUNDS
    )
    alone = best(lambda: decoding.alone(batch, codec, heads, units), ROUNDS)
    written = best(lambda: decoding.written(batch, codec, units, "bench.changes"), ROUNDS)
    whole = again(spark, project)
    yield Figure(
        "decode alone",
        "typed rewrite",
        rewrite / alone,
        "at least 2.8",
        f"{num / alone / 1e3:.0f}k and {num / rewrite / 1e3:.0f}k records/s",
    )
    yield Figure(
        "decode into silver.changes",
        "typed rewrite",
        rewrite / written,
        "at least 0.75",
        f"{num / written / 1e3:.0f}k records/s, {num} records of {len(data) // NUM_DISTINCT} bytes",
    )
    yield Figure(
        "the whole silver step, accounts and transactions included",
        "typed rewrite",
        rewrite / whole,
        "at least 0.5",
        f"{num / whole / 1e3:.0f}k records/s",
    )


def again(spark, project) -> float:
    """Seconds of the silver step for a second file of the same size."""
    source = project.sources["bench"]
    (first,) = (project.root / "landing").iterdir()
    (project.root / "landing" / "20260102000000_000002.lxg").write_bytes(first.read_bytes())
    new = bronze.plan_batch(project, [source], bronze.History(project))
    bronze.land(project, spark, new)
    return best(lambda: silver.run(project, spark, new.batch_id), rounds=1)


def encode() -> bytes:
    records = []
    for n in range(NUM_DISTINCT):
        records.append(("insert", 1, row_of(n)))
        if n % PER_TRANSACTION == PER_TRANSACTION - 1:
            records.append(("commit",))
    layouts = {1: [(name, source_type) for name, _, source_type in COLUMNS]}
    return linkexpress.encode_file(records, False, "big", "ebcdic_kana", layouts)


def row_of(n: int) -> dict:
    return {
        "ID": n,
        "REGION": "EAST",
        "CODE": f"C{n:07d}",
        "NAME": f"ITEM {n}",
        "STATE": "OK",
        "QUANTITY": n % 999,
        "PRICE": Decimal(n) / 100,
        "TOTAL": Decimal(n * 7) / 100,
        "TAX": Decimal(n % 9999) / 100,
        "DISCOUNT": Decimal("1.50"),
        "ORDERED": date(2026, 1, 1 + n % 28),
        "CHANGED_AT": datetime(2026, 1, 1, n % 24, n % 60),
        "STOCK": n * 3,
    }


def make_project(folder: Path, lakehouse: str, data: bytes, num: int) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "landing").mkdir()
    (folder / "landing" / "20260101000000_000001.lxg").write_bytes(data * (num // NUM_DISTINCT))
    source = {
        "codec": "linkexpress_group",
        "from": "landing/*.lxg",
        "tables": {"1": "BENCH.RECORDS"},
        "options": {"source_tz": "UTC", "charset": "ebcdic_kana", "byte_order": "big", "null_areas": "no"},
    }
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {"bench": source}})
    )
    columns = [{"name": n, "type": t, "source_type": s} for n, t, s in COLUMNS]
    (folder / "pipelines" / "tables" / "records.yml").write_text(
        yaml.safe_dump({"table": "BENCH.RECORDS", "name": "records", "key": ["ID"], "columns": columns})
    )
    return config.load(folder)
