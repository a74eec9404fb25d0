"""Qlik JSON messages into silver against bare `parse_json` of the same values into Delta."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import yaml

from inlet import bronze, config, silver
from inlet.bronze import lookups
from inlet.codecs import CODECS
from inlet.silver import change_files
from inlet.silver.batch import Batch
from tests.bench import decoding
from tests.bench.figure import Figure, best
from tests.encode import qlik

COLUMNS = [
    ("ID", "bigint"),
    ("REGION", "string"),
    ("CODE", "string"),
    ("NAME", "string"),
    ("STATE", "string"),
    ("QUANTITY", "int"),
    ("PRICE", "decimal(9,2)"),
    ("TOTAL", "decimal(13,2)"),
    ("ORDERED", "date"),
    ("CHANGED_AT", "timestamp_ntz"),
    ("NOTE", "string"),
    ("STOCK", "int"),
]
NUM_DISTINCT = 10_000
TRANSACTION = b"00000000000000000000000000060008"
SEQ = b"20260102030405000000000000000000000"


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    yield from compare(spark, make_project(folder, lakehouse), "JSON", folder, write, is_quick)


def compare(
    spark,
    project: config.Project,
    words: str,
    folder: Path,
    write: Callable[[Path, int, int], None],
    is_quick: bool,
    bare_name: str = "bare parse_json",
    read: Callable = lambda messages: messages.selectExpr("unit_id", "parse_json(cast(value as string)) as value"),
) -> Iterator[Figure]:
    """Decoding of messages, and the whole silver step, against bare parsing of the same values. In: a project of one
    source; what its figures are called; what writes a file of messages; bare parsing, and its name.
    """
    num = 20_000 if is_quick else 400_000
    [source] = project.sources.values()
    whole = min(into_silver(spark, project, folder, first, num, write) for first in (0, num, 2 * num))
    messages = spark.table("bronze.messages").where(f"source = '{source.name}' and `offset` < {num}")
    size = messages.agg({"size_bytes": "avg"}).first()[0]

    codec, table = CODECS[source.codec], f"bench.{source.name}"
    batch = Batch(spark, project, 1, [source.name])
    decoding.create(spark, project.lakehouse_path(), table)

    def into_delta(frame, table: str) -> None:
        frame.write.format("delta").mode("overwrite").saveAsTable(table)

    def bare():
        into_delta(read(messages), "bench_bare")

    def fast():
        found = [lookups.known(project)] if lookups.is_asked(codec) else []
        walk = codec.FAST.changes([source], project.tables, [], *found)
        decoding.write(batch, messages.selectExpr(*codec.FAST.READ), change_files.of_messages(project, walk), table)

    alone, decoded = best(bare), best(fast)
    told = f"{num} messages of {size:.0f} bytes; {num / alone / 1e3:.0f}k messages/s bare"
    yield Figure(f"{words} decoded into Delta", bare_name, alone / decoded, "at least 0.7", told)
    yield Figure(
        f"{words} into silver, accounts and transactions included", bare_name, alone / whole, "at least 0.7", told
    )


def into_silver(spark, project, folder: Path, first: int, num: int, write: Callable[[Path, int, int], None]) -> float:
    """Seconds of the silver step for a new file of messages."""
    write(folder / "landing" / f"messages_{first}.parquet", first, num)
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    started = time.perf_counter()
    silver.run(project, spark, new.batch_id)
    return time.perf_counter() - started


def row(n: int) -> dict:
    """One of many rows of COLUMNS."""
    return {
        "ID": n,
        "REGION": "EAST",
        "CODE": f"C{n:07d}",
        "NAME": f"Item number {n}",
        "STATE": "OK",
        "QUANTITY": n % 999,
        "PRICE": Decimal(n) / 100,
        "TOTAL": Decimal(n * 7) / 100,
        "ORDERED": "2026-01-02",
        "CHANGED_AT": "2026-01-02T03:04:05.678",
        "NOTE": "as agreed by telephone",
        "STOCK": n * 3,
    }


def write(path: Path, first: int, num: int) -> None:
    """Enveloped updates with both images, a transaction each. A few thousand are encoded, and repeated with another
    sequence, transaction and offset each."""
    names, values = [n for n, _ in COLUMNS], []
    for n in range(NUM_DISTINCT):
        after = row(n)
        before = after | {"QUANTITY": n % 998, "STATE": "NEW"}
        values.append(
            qlik.value(
                {
                    "operation": "UPDATE",
                    "before": before,
                    "after": after,
                    "change_seq": SEQ.decode(),
                    "transaction_id": TRANSACTION.decode(),
                    "transaction_event_counter": 1,
                    "transaction_last_event": True,
                    "change_timestamp": "2026-01-02T03:04:05.000",
                    "stream_position": "00000000.00bb2531.00000001",
                },
                names,
            )
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    numbered = (
        values[n % NUM_DISTINCT].replace(SEQ, SEQ[:16] + b"%019d" % n).replace(TRANSACTION, b"%032d" % n)
        for n in range(first, first + num)
    )
    qlik.write_parquet(qlik.rows(numbered, "bench", offset=first, start=qlik.START + timedelta(hours=1)), path)


def make_project(folder: Path, lakehouse: str) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    source = {"codec": "qlik_json", "from": "landing/*.parquet", "tables": {"bench": "BENCH.MESSAGES"}}
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {"bench_messages": source}})
    )
    columns = [{"name": n, "type": t} for n, t in COLUMNS]
    (folder / "pipelines" / "tables" / "messages.yml").write_text(
        yaml.safe_dump({"table": "BENCH.MESSAGES", "name": "bench_messages", "key": ["ID"], "columns": columns})
    )
    return config.load(folder)
