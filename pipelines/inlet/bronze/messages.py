"""Messages into bronze, whatever brings them. Planned and read by us, so that what was planned is what is read. The
same message at the same place, landed before or twice here, lands once.
"""

import json
from typing import TYPE_CHECKING

from inlet import unit
from inlet.bronze import kafka
from inlet.bronze.files import MAX_TASKS
from inlet.bronze.history import History, Reading
from inlet.bronze.kept_message import KEPT
from inlet.bronze.transports import TRANSPORTS
from inlet.config import Project
from inlet.lake import engine
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(project: Project, spark: "SparkSession", files: list[dict]):
    """A DataFrame of bronze.messages rows. The same message at the same offset, landed before or twice here, lands
    once.
    """
    num_cores = engine.num_tasks(spark)
    parts = [part for row in files for part in (kafka.split(row, num_cores) if _is_range(project, row) else [row])]
    rows = spark.range(0, len(parts), 1, min(len(parts), MAX_TASKS))
    suffixes = kafka.suffixes([row for row in files if _is_range(project, row)])
    places = {
        f"source = {literal(source)} and path = {literal(path)}": text for (source, path), text in suffixes.items()
    }
    suffix = "".join(f" when {place} then {literal(text)}" for place, text in places.items())
    planned = [json.dumps(part, default=str) for part in parts]
    found = rows.mapInArrow(_reader(project, planned), KEPT).selectExpr(
        "concat_ws('/', source, topic, partition, `offset`)"
        + (f" || case{suffix} else '' end" if suffix else "")
        + " as unit_id",
        "*",
        "coalesce(octet_length(value), 0L) as size_bytes",
        "sha2(coalesce(value, cast('' as binary)), 256) as sha256",
        "current_timestamp() as landed_at",
    )
    names = [c.name for c in unit.MESSAGES]
    if not may_repeat(project, files):
        return found.select(names)
    if not places:
        return _once(spark, found, files[0]["batch_id"]).select(names)
    is_anew = " or ".join(places)  # the offsets of a topic that was made anew are not those of before
    once = _once(spark, found.where(f"not ({is_anew})"), files[0]["batch_id"])
    return once.select(names).union(found.where(is_anew).select(names))


def _is_range(project: Project, row: dict) -> bool:
    """Is a row of bronze.files a range of a broker's offsets?"""
    return project.sources[row["source"]].broker is not None


def _reader(project: Project, planned: list[str]):
    def read_files(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                row = json.loads(planned[number])
                yield from TRANSPORTS[project.sources[row["source"]].transport].units_of(project, row)

    return read_files


def _before(project: Project, files: list[dict]) -> list[Reading]:
    """The readings whose messages may be at the places of those of planned files: of the files themselves where their
    messages have no topic, else of their sources.
    """
    past, found = History(project), list[Reading]()
    for source in sorted({row["source"] for row in files}):
        own = [row for row in files if row["source"] == source]
        has_topics = any(not place.startswith(f"{row['path']}/") for row in own for place in _offsets(row))
        found += past.of_source(source) if has_topics else past.of_files([source], [row["path"] for row in own])
    return found


def _offsets(row: dict) -> dict[str, list]:
    return json.loads(row["context"] or "{}").get("offsets", {})


def may_repeat(project: Project, files: list[dict]) -> bool:
    """True if the offsets of two files overlap, so that a message may be there twice."""
    before = _before(project, files)
    spans: dict[tuple, list] = {}
    for row in [*files, *(b for b in before if b["batch_id"] < files[0]["batch_id"])]:
        for place, span in _offsets(row).items():
            spans.setdefault((row["source"], place), []).append(span)
    return any(_overlap(sorted(found)) for found in spans.values())


def _once(spark: "SparkSession", rows, batch_id: int):
    """Leave out messages that are landed already, or twice here."""
    place = ["source", "topic", "partition", "offset"]
    known = spark.table("bronze.messages").where(f"batch_id < {batch_id}")
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
