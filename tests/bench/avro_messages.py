"""Qlik Avro messages into silver against bare `from_avro` of the same values into Delta."""

import datetime
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import yaml

from inlet import config
from inlet.lake import maven
from tests.bench import messages
from tests.bench.figure import Figure
from tests.encode import qlik, qlik_avro
from tests.encode.qlik_avro import How
from tests.encode.qlik_change_table import Column

SPARK_AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
ID, HOW = 7, How(namespace="com.attunity.queue.msg.bench.BENCH.AVRO")
TYPES = {"bigint": "INT8", "int": "INT4", "string": "WSTRING", "date": "DATE", "timestamp_ntz": "DATETIME"}
COLUMNS = [
    Column(name, "NUMERIC", precision=int(type_[8:-3]), scale=2) if "decimal" in type_ else Column(name, TYPES[type_])
    for name, type_ in messages.COLUMNS
]


def bring_jars() -> None:
    """Put Spark's Avro on the class path of the JVM that is to start."""
    jars = [os.environ.get("SPARK_DIST_CLASSPATH"), *map(str, maven.fetched("spark-avro", (SPARK_AVRO,), False))]
    os.environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(filter(None, jars))


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    def read(rows):
        value = from_avro(expr("substring(value, 6)"), qlik_avro.data_schema(COLUMNS, HOW))
        return rows.select("unit_id", value.alias("value"))

    project = make_project(folder, lakehouse)
    yield from messages.compare(spark, project, "Avro", folder, write, is_quick, "bare from_avro", read)


def write(path: Path, first: int, num: int) -> None:
    """Updates with both images after a registry's prefix, a transaction each, as those of `messages`."""
    values = []
    for n in range(messages.NUM_DISTINCT):
        after = messages.row(n) | {
            "PRICE": Decimal(n % 10**7) / 100,
            "ORDERED": datetime.date(2026, 1, 2),
            "CHANGED_AT": datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000 + n),
        }
        change = {
            "operation": "UPDATE",
            "before": after | {"QUANTITY": n % 998, "STATE": "NEW"},
            "after": after,
            "change_seq": messages.SEQ.decode(),
            "transaction_id": messages.TRANSACTION.decode(),
            "transaction_event_counter": 1,
            "transaction_last_event": True,
            "change_timestamp": "2026-01-02T03:04:05.000",
            "stream_position": "00000000.00bb2531.00000001",
        }
        values.append(qlik_avro.registered(ID, qlik_avro.datum(change, COLUMNS, HOW)))
    path.parent.mkdir(parents=True, exist_ok=True)
    seq, transaction = messages.SEQ, messages.TRANSACTION
    numbered = (
        values[n % messages.NUM_DISTINCT].replace(seq, seq[:16] + b"%019d" % n).replace(transaction, b"%032d" % n)
        for n in range(first, first + num)
    )
    start = qlik.START + datetime.timedelta(hours=1)
    qlik.write_parquet(qlik.rows(numbered, "bench", offset=first, start=start), path)


def make_project(folder: Path, lakehouse: str) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    place = {"transport": "parquet", "path": "landing/*.parquet", "lookups": "schemas/{name}.avsc"}
    source = {"codec": "qlik_avro", "from": place, "tables": {"bench": "BENCH.AVRO"}}
    (folder / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"lakehouse": lakehouse, "sources": {"bench_avro": source}})
    )
    (folder / "schemas").mkdir()
    (folder / "schemas" / f"{ID}.avsc").write_text(qlik_avro.data_schema(COLUMNS, HOW))
    columns = [{"name": n, "type": t} for n, t in messages.COLUMNS]
    (folder / "pipelines" / "tables" / "avro.yml").write_text(
        yaml.safe_dump({"table": "BENCH.AVRO", "name": "bench_avro", "key": ["ID"], "columns": columns})
    )
    return config.load(folder)
