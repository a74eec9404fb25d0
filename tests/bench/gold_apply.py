"""Gold: a batch into before_after, past and current, against two hand-written MERGEs of the same batch.

`row_number` + MERGE keeps current alone; the history MERGE closes old versions and inserts new ones. Both read silver's
changes, like gold, and start from a copy of the same rows.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import yaml

from inlet import config, lake, publish
from inlet.commands.run import build_gold
from inlet.gold import generate
from tests.bench.figure import Figure, best

NUM_COLUMNS = 20
NUM_SUPPLIED = 4  # columns of a partial image, the key among them
TYPES = ["bigint", "string", "decimal(9,2)", "date", "int"]
REPO = Path(__file__).resolve().parents[2]


def measure(spark, folder: Path, lakehouse: str, is_quick: bool) -> Iterator[Figure]:
    sizes = (
        (2_000,) if is_quick else (2_000_000, 16_000_000) if "INLET_BENCH_LARGE" in os.environ else (250_000, 2_000_000)
    )
    batches = (
        [("scattered", 100), ("newest", 100), ("partial", 100)]
        if is_quick
        else [
            ("scattered", 1_000),
            ("scattered", 10_000),
            ("scattered", 100_000),
            ("newest", 10_000),
            ("partial", 10_000),
        ]
    )
    taken: dict[tuple, float] = {}
    for size in sizes:
        name = f"rows_{size}"
        project = make_project(folder / name, lakehouse, name)
        fill(spark, project, name, size)
        for number, (kind, num) in enumerate(batches, 2):
            add_changes(spark, name, number, kind, num, size)
            built = []
            ours = taken[size, kind, num] = seconds(lambda: built.extend(build_gold(project, spark, [name])))
            log = next(b.seconds for b in built if b.model == f"{name}__before_after")
            merged = seconds(lambda: merge_current(spark, name, number, kind))
            told = (
                f"{size} rows of {NUM_COLUMNS} columns, {num} changes, {SAID[kind]}; {ours:.1f} s, {log:.1f} of "
                f"them for before_after; {plan(spark, lakehouse, name, number)}"
            )
            if kind != "partial":  # by hand nobody carries the rest of a partial image into a history
                history = seconds(lambda: merge_history(spark, name, number))
                yield Figure(
                    "before_after, past and current", "hand-written history MERGE", ours / history, "at most 0.8", told
                )
            yield Figure(
                "before_after, past and current",
                "row_number + MERGE of current alone",
                ours / merged,
                "at most 1.5",
                told,
            )
        publish.run(project, spark)
        public, current = (
            best(lambda: read_all(spark, table)) for table in (f"public.{name}", f"gold.{name}__current")
        )
        yield Figure(
            "reading the public view",
            "reading current",
            public / current,
            "at most 1.2",
            f"{size} rows; {current:.2f} s",
        )
        add_changes(spark, name, 2 + len(batches), "scattered", batches[-1][1], size)
        live = best(lambda: read_all(spark, f"public.{name}__live"))
        yield Figure(
            "reading the live view",
            "reading current",
            live / current,
            "",
            f"{size} rows, {batches[-1][1]} changes that gold has not taken; {live:.2f} s",
        )
    for small, large in zip(sizes, sizes[1:], strict=False):
        for kind, num in batches:
            yield Figure(
                f"a table {large // small} times as large",
                "the small one",
                taken[large, kind, num] / taken[small, kind, num],
                "at most 1.5",
                f"{num} changes, {SAID[kind]}, {large} rows",
            )


def read_all(spark, table: str) -> None:
    spark.sql(f"select bit_xor(xxhash64(*)) from {table}").collect()


def plan(spark, lakehouse: str, name: str, batch_id: int) -> str:
    """What the batch read and wrote of current, as Delta tells it."""
    current = f"gold.{name}__current"
    put, take = spark.sql(f"describe history {current} limit 2").collect()
    assert (put.operation, take.operation) == ("WRITE", "DELETE")
    first, last = spark.sql(
        f"select min(after.id), max(after.id) from gold.{name}__before_after where batch_id = {batch_id}"
    ).first()
    before = spark.sql(f"select * from {current} version as of {take.version - 1}")
    path = lake.table_path(lakehouse, current)
    num_bytes = {
        version: sum(pa.table(deltalake.DeltaTable(path, version).get_add_actions())["size_bytes"].to_pylist())
        for version in (take.version, put.version)
    }
    num_read, num_files = len(before.where(f"id between {first} and {last}").inputFiles()), len(before.inputFiles())
    return (
        f"current: reads {num_read} of {num_files} files, marks rows of "
        f"{take.operationMetrics['numDeletionVectorsAdded']}, "
        f"copies {take.operationMetrics['numCopiedRows']} rows, adds "
        f"{(num_bytes[put.version] - num_bytes[take.version]) / 2**20:.1f} MB"
    )


def seconds(action) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def columns() -> list[tuple[str, str]]:
    return [("ID", "bigint")] + [(f"C{n:02d}", TYPES[n % len(TYPES)]) for n in range(1, NUM_COLUMNS)]


def image(salt: str, num_columns: int = NUM_COLUMNS) -> str:
    """SQL of an object with the first columns of row `id`."""
    values = {
        "bigint": f"id * 3 + {salt}",
        "string": f"concat('value ', id, ' ', {salt})",
        "decimal(9,2)": f"cast((id + {salt}) % 99999 / 100 as decimal(9,2))",
        "date": f"date_add(date'2020-01-01', cast((id + {salt}) % 1000 as int))",
        "int": f"cast((id + {salt}) % 1000 as int)",
    }
    return (
        "to_variant_object(named_struct('ID', id, "
        + ", ".join(f"'{n}', {values[t]}" for n, t in columns()[1:num_columns])
        + "))"
    )


def make_project(folder: Path, lakehouse: str, name: str) -> config.Project:
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"lakehouse": lakehouse}))
    (folder / "pipelines" / "tables" / f"{name}.yml").write_text(
        yaml.safe_dump(
            {
                "table": f"BENCH.{name.upper()}",
                "name": name,
                "key": ["ID"],
                "columns": [{"name": n, "type": t} for n, t in columns()],
            }
        )
    )
    shutil.copytree(REPO / "dbt", folder / "dbt", ignore=shutil.ignore_patterns("target", "gold"))
    project = config.load(folder)
    generate.write(project)
    return project


def fill(spark, project, name: str, size: int) -> None:
    insert(spark, name, 1, f"select id, id as place from range({size})", "INSERT", "0")
    build_gold(project, spark, [name])
    spark.sql(
        f"create table bench_current_{name} using delta cluster by (id) tblproperties "
        f"(delta.enableDeletionVectors = true) as select * from gold.{name}__current"
    )
    spark.sql(
        f"create table bench_history_{name} using delta cluster by (id) tblproperties (delta.enableDeletionVectors = "
        f"true) as select *, cast(null as string) as valid_to_seq from gold.{name}__current"
    )


SAID = {
    "scattered": "scattered keys, full images",
    "newest": "newest keys, full images",
    "partial": f"scattered keys, {NUM_SUPPLIED} columns supplied",
}


def add_changes(spark, name: str, batch_id: int, kind: str, num: int, size: int) -> None:
    """Updates, one a key."""
    key = f"{size} - 1 - id" if kind == "newest" else f"pmod(id * 7919 * {batch_id}, {size})"
    insert(
        spark,
        name,
        batch_id,
        f"select cast({key} as bigint) as id, id as place from range({num})",
        "UPDATE",
        str(batch_id),
        NUM_SUPPLIED if kind == "partial" else NUM_COLUMNS,
    )


def insert(
    spark, name: str, batch_id: int, rows: str, operation: str, salt: str, num_columns: int = NUM_COLUMNS
) -> None:
    spark.sql(f"""
        insert into silver.changes (source, source_schema, source_table, table_version, change_seq, operation,
            change_oper, transaction_id, transaction_event_counter, transaction_last_event, after,
            unit_id, unit_offset, unit_length, batch_id)
        select 'bench_{name}', 'BENCH', '{name.upper()}', 1, concat('2026010{batch_id}00000000', lpad(place, 19, '0')),
            '{operation}', left('{operation}', 1), concat('T', place), 1, true, {image(salt, num_columns)},
            'bench', 0, 1, {batch_id}
        from ({rows})""")
    spark.sql(
        f"insert into silver.batches (batch_id, source, num_changes, tables) "
        f"select {batch_id}, 'bench_{name}', count(*), array('BENCH.{name.upper()}') from ({rows})"
    )


def typed(name: str, batch_id: int) -> str:
    members = ", ".join(f"{n}: {t}" for n, t in columns())
    return (
        f"select source, a.*, change_seq from (select source, change_seq, cast(after as struct<{members}>) as a from "
        f"silver.changes where source = 'bench_{name}' and batch_id = {batch_id})"
    )


def merge_current(spark, name: str, batch_id: int, kind: str) -> None:
    own = [n for n, _ in columns()]
    new = "coalesce(s.{0}, t.{0})" if kind == "partial" else "s.{0}"
    spark.sql(f"""
        merge into bench_current_{name} t using (
            select * from (select *, row_number() over (partition by id order by change_seq desc) as nth
              from ({typed(name, batch_id)})) where nth = 1) s
        on t.id = s.id
        when matched then update
            set {", ".join(f"t.{n} = {new.format(n)}" for n in own)}, t.valid_from_seq = s.change_seq
        when not matched then insert (source, {", ".join(own)}, valid_from_seq)
            values (s.source, {", ".join(f"s.{n}" for n in own)}, s.change_seq)""")


def merge_history(spark, name: str, batch_id: int) -> None:
    """Close what is open for a changed key at its first change, insert each change with the next one as its end."""
    own = [n for n, _ in columns()]
    spark.sql(f"""
        merge into bench_history_{name} t using (
            with changes as (select *, lead(change_seq) over (partition by id order by change_seq) as next_seq,
                                    row_number() over (partition by id order by change_seq) as nth
                             from ({typed(name, batch_id)}))
            select id as merge_id, * from changes where nth = 1
            union all select null as merge_id, * from changes) s
        on t.id = s.merge_id and t.valid_to_seq is null
        when matched then update set t.valid_to_seq = s.change_seq
        when not matched and s.merge_id is null then insert (source, {", ".join(own)}, valid_from_seq, valid_to_seq)
            values (s.source, {", ".join(f"s.{n}" for n in own)}, s.change_seq, s.next_seq)""")
