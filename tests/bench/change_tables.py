"""Qlik's change tables as text and as Parquet into silver.changes, against Spark reading the same files and writing
them to Delta.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import yaml

from inlet import bronze, config
from inlet.codecs import CODECS
from inlet.silver import blocks
from inlet.silver.batch import Batch
from tests.bench import decoding
from tests.bench.figure import Figure, best

AT = "2026-01-02 03:04:05.123456"
TYPES = {"int": "123456", "string": "some text", "decimal(12,2)": "1234.50", "timestamp_ntz": AT, "date": AT[:10]}
HEADER = {
    "header__change_seq": "string",
    "header__change_oper": "string",
    "header__change_mask": "string",
    "header__stream_position": "string",
    "header__operation": "string",
    "header__transaction_id": "string",
    "header__timestamp": "timestamp_ntz",
}
ARROW = {
    "int": pa.int32(),
    "decimal(12,2)": pa.decimal128(12, 2),
    "timestamp_ntz": pa.timestamp("us"),
    "date": pa.date32(),
}
ROUNDS = 3
BOUND = "at least 0.6"


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    for form in ("csv", "parquet"):
        for num_columns, num in ((13, 4_000), (354, 200)) if is_quick else ((13, 600_000), (354, 30_000)):
            name = f"{form}_{num_columns}"
            project = make_project(folder / name, lakehouse, name, form, num_columns)
            write(project, form, num)
            yield figure(spark, project, name, form, num, num_columns)


def figure(spark, project: config.Project, name: str, form: str, num: int, num_columns: int) -> Figure:
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    batch, codec = Batch(spark, project, new.batch_id, [name]), CODECS["qlik_change_table"]
    heads = blocks.headers(batch, codec, batch.sources)
    table, units = f"bench.{name}", blocks._units(batch, heads)
    decoding.create(spark, project.lakehouse_path(), table)
    path = str(project.root / "landing")
    schema = ", ".join(f"`{column}` {type_}" for column, type_ in (*HEADER.items(), *columns(num_columns)))

    def rewrite():
        read = spark.read.option("recursiveFileLookup", "true").schema(schema)
        rows = read.csv(path, header=True) if form == "csv" else read.parquet(path)
        rows.write.format("delta").mode("overwrite").saveAsTable(f"bench_{name}_typed")

    seconds, against = best(lambda: decoding.written(batch, codec, units, table), ROUNDS), best(rewrite, ROUNDS)
    counts = [spark.table(one).count() for one in (table, f"bench_{name}_typed")]
    assert counts == [num, num], counts
    rates = f"{num / seconds / 1e3:.0f}k and {num / against / 1e3:.0f}k rows/s of {num_columns} columns"
    what = f"decode a change table in {form}, {num_columns} columns, into silver.changes"
    return Figure(what, f"Spark's own reading of the {form} into Delta", against / seconds, BOUND, rates)


def columns(num: int) -> list[tuple[str, str]]:
    types = list(TYPES)
    return [("ID", "int")] + [(f"COLUMN_{n:04d}", types[n % len(types)]) for n in range(1, num)]


def write(project: config.Project, form: str, num: int) -> None:
    """Inserts and updates in turn, whose mask names two columns."""
    [table] = project.tables.values()
    mask = f"{3 << len(HEADER) + 1:04x}"
    head = {
        "header__change_seq": [f"2026010203040500{n:019d}" for n in range(num)],
        "header__change_oper": ["IU"[n % 2] for n in range(num)],
        "header__change_mask": ["" if n % 2 == 0 else mask for n in range(num)],
        "header__stream_position": [f"position {n}" for n in range(num)],
        "header__operation": [("INSERT", "UPDATE")[n % 2] for n in range(num)],
        "header__transaction_id": [f"{n // 3:032X}" for n in range(num)],
        "header__timestamp": [AT] * num,
    }
    own = {column.name: [TYPES[column.type]] * num for column in table.columns} | {"ID": [str(n) for n in range(num)]}
    rows = pa.table(head | own)
    path = project.root / "landing" / "BENCH.ROWS__ct" / f"20260102-030405000.{form}"
    path.parent.mkdir(parents=True)
    if form == "csv":
        pyarrow.csv.write_csv(rows, path, pyarrow.csv.WriteOptions(quoting_style="needed"))
        return
    for place, (name, type_) in enumerate((*HEADER.items(), *((c.name, c.type) for c in table.columns))):
        if type_ in ARROW:
            rows = rows.set_column(place, name, rows.column(place).cast(ARROW[type_]))
    pyarrow.parquet.write_table(rows, path)


def make_project(folder: Path, lakehouse: str, name: str, form: str, num_columns: int) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    path = f"landing/**/*.{form}"
    source = {"codec": "qlik_change_table", "from": path, "options": {"before_images": "none", "mask_form": "hex"}}
    if form == "parquet":
        source["from"] = {"path": path, "transport": "rows"}
    (folder / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"lakehouse": lakehouse, "sources": {name: source}}))
    contract = {"table": "BENCH.ROWS", "name": "rows", "key": ["ID"]}
    contract |= {"columns": [{"name": n, "type": t} for n, t in columns(num_columns)]}
    (folder / "pipelines" / "tables" / "rows.yml").write_text(yaml.safe_dump(contract))
    return config.load(folder)
