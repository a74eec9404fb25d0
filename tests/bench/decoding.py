"""How fast a codec decodes the files of one source, against rewriting the same rows typed, Delta to Delta."""

from collections.abc import Iterator

import deltalake

from inlet import bronze, config, lake, silver
from inlet.codecs import CODECS
from inlet.silver import blocks, change_files
from inlet.silver.batch import Batch
from tests.bench.figure import Figure, best

BOUNDS = {"alone": "at least 2.8", "written": "at least 0.58", "whole": "at least 0.4"}
ROUNDS = 3


def measure(
    spark, project: config.Project, source: str, columns: list[tuple[str, str]], what: str, headers: tuple[bool, ...]
) -> Iterator[Figure]:
    """In: a project whose only source has files that are not landed; columns with their types, those of all its tables;
    what its files hold; with the column header, and without.
    """
    new = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    bronze.land(project, spark, new)
    batch, codec = Batch(spark, project, new.batch_id, [source]), CODECS[project.sources[source].codec]
    heads = blocks.headers(batch, codec, batch.sources)
    units = blocks._units(batch, heads)
    num, size = sum(unit["num_records"] for unit in heads), sum(unit["size_bytes"] for unit in heads)
    typed = ", ".join(f"{name}: {type_}" for name, type_ in columns)
    blocks.changes(batch, codec, heads, units).selectExpr(
        f"cast(coalesce(after, before) as struct<{typed}>) as a"
    ).select("a.*").write.format("delta").saveAsTable(f"bench_{source}_typed")
    table = f"bench.{source}"
    create(spark, project.lakehouse_path(), table)
    rewrite = best(
        lambda: spark.sql(
            f"create or replace table bench_{source}_copy using delta as select * from bench_{source}_typed"
        ),
        ROUNDS,
    )
    for has_header in headers:
        project.sources[source] = project.sources[source].model_copy(update={"header": has_header})
        of_alone = best(lambda: alone(batch, codec, heads, units), ROUNDS)
        of_written = best(lambda: written(batch, codec, units, table), ROUNDS)
        for bound, words, seconds in (("alone", "alone", of_alone), ("written", "into silver.changes", of_written)):
            is_bound = has_header == headers[0]
            yield Figure(
                f"decode {what} {words}" + (", with the column header" if has_header and len(headers) > 1 else ""),
                "typed rewrite",
                rewrite / seconds,
                BOUNDS[bound] if is_bound else "",
                f"{num / seconds / 1e3:.0f}k and {num / rewrite / 1e3:.0f}k records/s, {num} records of "
                f"{size // num} bytes",
            )

    whole = best(lambda: silver.run(project, spark, new.batch_id), rounds=1)
    yield Figure(
        f"the whole silver step of {what}, accounts and transactions included",
        "typed rewrite",
        rewrite / whole,
        BOUNDS["whole"],
        f"{num / whole / 1e3:.0f}k records/s",
    )


def create(spark, lakehouse: str, table: str) -> None:
    """Create a table like silver.changes in the database `bench`."""
    spark.sql(f"create database if not exists bench location '{lakehouse}/bench'")
    spark.sql(f"create table {table} like silver.changes")


def alone(batch: Batch, codec, heads: list[dict], units) -> None:
    """Decode units to Arrow batches in the JVM."""
    decode = blocks.with_places(codec, heads, blocks.decoder_of_changes(batch, codec))
    decoded = units.mapInArrow(decode, f"place bigint, {lake.ddl_of(codec.CHANGES)}")
    decoded.write.format("noop").mode("overwrite").save()


def written(batch: Batch, codec, units, table: str) -> None:
    """Decode units into a table like silver.changes, as silver does; in place of what it holds."""
    write(batch, units, change_files.of_blocks(batch.project, codec, blocks.decoder_of_changes(batch, codec)), table)


def write(batch: Batch, units, changes, table: str) -> None:
    """Write changes, as of change_files.write, in place of what a table holds."""
    assert change_files.can_write(batch)
    deltalake.DeltaTable(lake.table_path(batch.project.lakehouse_path(), table)).delete()
    change_files.write(batch, units, changes, table)
