"""Messages into bronze, whatever brings them. Planned and read by us, so that what was planned is what is read. The
same message at the same place, landed before or twice here, lands once.
"""

import json
from typing import TYPE_CHECKING

from inlet import unit
from inlet.bronze import kafka
from inlet.bronze.files import MAX_TASKS
from inlet.bronze.kept_message import KEPT
from inlet.bronze.transports import TRANSPORTS
from inlet.config import Project
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(project: Project, spark: "SparkSession", files: list[dict], before: list[dict]):
    """A DataFrame of bronze.messages rows. The same message at the same offset, landed before or twice here, lands
    once.
    """
    num_cores = spark.sparkContext.defaultParallelism
    parts = [part for row in files for part in (kafka.split(row, num_cores) if _is_range(project, row) else [row])]
    rows = spark.createDataFrame([(json.dumps(part, default=str),) for part in parts], "planned string").repartition(
        min(len(parts), MAX_TASKS)
    )
    suffixes = kafka.suffixes([row for row in files if _is_range(project, row)])
    suffix = "".join(
        f" when source = {literal(source)} and path = {literal(path)} then {literal(text)}"
        for (source, path), text in suffixes.items()
    )
    found = rows.mapInArrow(_reader(project), KEPT).selectExpr(
        "concat_ws('/', source, topic, partition, `offset`)"
        + (f" || case{suffix} else '' end" if suffix else "")
        + " as unit_id",
        "*",
        "coalesce(octet_length(value), 0L) as size_bytes",
        "sha2(coalesce(value, cast('' as binary)), 256) as sha256",
        "current_timestamp() as landed_at",
    )
    anew = found.where("contains(unit_id, '~')") if suffix else None  # their offsets are those of another topic
    rest = found.where("not contains(unit_id, '~')") if suffix else found
    once = _once(spark, rest, [row for row in files if (row["source"], row["path"]) not in suffixes], before)
    names = [c.name for c in unit.MESSAGES]
    return once.select(names) if anew is None else once.select(names).union(anew.select(names))


def _is_range(project: Project, row: dict) -> bool:
    """Is a row of bronze.files a range of a broker's offsets?"""
    return project.sources[row["source"]].broker is not None


def _reader(project: Project):
    def read_files(batches):
        for batch in batches:
            for planned in batch.column(0).to_pylist():
                row = json.loads(planned)
                yield from TRANSPORTS[project.sources[row["source"]].transport].units_of(project, row)

    return read_files


def _once(spark: "SparkSession", rows, files: list[dict], before: list[dict]):
    """Leave out messages that are landed already. Looks only where the offsets of two files overlap."""
    spans: dict[tuple, list] = {}
    for row in files + [b for b in before if files and b["batch_id"] < files[0]["batch_id"]]:
        for place, span in json.loads(row["context"] or "{}").get("offsets", {}).items():
            spans.setdefault((row["source"], place), []).append(span)
    if not any(_overlap(sorted(found)) for found in spans.values()):
        return rows
    place = ["source", "topic", "partition", "offset"]
    known = spark.table("bronze.messages").where(f"batch_id < {files[0]['batch_id']}")
    rows = rows.dropDuplicates([*place, "sha256"]).join(known.select(*place, "sha256"), [*place, "sha256"], "left_anti")
    rows = rows.join(known.select(*place).distinct().selectExpr("*", "true as is_known"), place, "left")
    rank = "row_number() over (partition by source, topic, partition, offset order by sha256)"
    names = [c.name for c in unit.MESSAGES if c.name != "unit_id"]
    return rows.selectExpr(
        f"if(is_known or {rank} > 1, concat(unit_id, '~', left(sha256, 8)), unit_id) as unit_id", *names
    )


def _overlap(spans: list[list]) -> bool:
    """Can an offset be there twice? In: (least, greatest, is one in the file twice) of each file, in order."""
    return any(is_twice for _, _, is_twice in spans) or any(
        after[0] <= before[1] for before, after in zip(spans, spans[1:], strict=False)
    )
