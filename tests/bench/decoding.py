"""How fast a codec decodes the files of one source, against rewriting the same rows typed, Delta to Delta."""

from collections.abc import Callable, Iterator

from inlet import bronze, config, lake
from inlet.codecs import CODECS
from inlet.silver import blocks
from inlet.silver.batch import Batch
from tests.bench.figure import Figure, best

BOUNDS = {"alone": "at least 2.8", "written": "at least 0.58"}
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
    spark.sql(f"create table bench_{source} like silver.changes")
    rewrite = best(
        lambda: spark.sql(
            f"create or replace table bench_{source}_copy using delta as select * from bench_{source}_typed"
        ),
        ROUNDS,
    )
    for has_header in headers:
        project.sources[source] = project.sources[source].model_copy(update={"header": has_header})
        alone, written = (best(one, ROUNDS) for one in _jobs(batch, codec, heads, units, f"bench_{source}"))
        for bound, words, seconds in (("alone", "alone", alone), ("written", "into silver.changes", written)):
            is_bound = has_header == headers[0]
            yield Figure(
                f"decode {what} {words}" + (", with the column header" if has_header and len(headers) > 1 else ""),
                "typed rewrite",
                rewrite / seconds,
                BOUNDS[bound] if is_bound else "",
                f"{num / seconds / 1e3:.0f}k and {num / rewrite / 1e3:.0f}k records/s, {num} records of "
                f"{size // num} bytes",
            )


def _jobs(batch: Batch, codec, heads: list[dict], units, table: str) -> tuple[Callable, Callable]:
    """Decoding alone, and into a table."""
    numbers = {unit["unit_id"]: n for n, unit in enumerate(heads)}
    decode = blocks._changes_of(batch.project, codec, numbers)
    alone = units.mapInArrow(decode, f"place bigint, {lake.ddl_of(codec.CHANGES)}")
    changes = blocks.changes(batch, codec, heads, units).selectExpr(
        "*", f"{batch.batch_id}L as batch_id", "current_timestamp() as decoded_at"
    )
    return (
        lambda: alone.write.format("noop").mode("overwrite").save(),
        lambda: changes.write.format("delta").mode("overwrite").saveAsTable(table),
    )
