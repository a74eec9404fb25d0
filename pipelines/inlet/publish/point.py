"""The published point: what the public views show, kept in the view `public._point` and logged in gold.published."""

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from inlet import lake
from inlet.change import Column, ddl
from inlet.config import Project
from inlet.errors import InletError
from inlet.publish.views import number_map, string_map
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLISHED = (
    Column("number", "bigint", "the published point; only grows"),
    Column("published_at", "timestamp", "when"),
    Column("points", "map<string,string>", "source -> change_seq up to which its changes are public"),
    Column("batches", "map<string,bigint>", "source -> last silver batch that this run has looked at"),
    Column(
        "versions", "map<string,bigint>", "table of gold, and silver.transactions -> its Delta version at this point"
    ),
    Column("held", "map<string,string>", "source -> why its point is not at the end of what gold has; empty: it is"),
)
POINT, SAID = (
    "public._point",
    "inlet.point.",
)  # the view, and what its properties that hold the point begin with, before its number
NUM_FILES = 500  # of gold.published, one a point, above which they are made one


@dataclass
class Point:
    """What the public views show. `batches`: the last batch that was looked at, per source; `taken`: that is in the
    versions shown. `moved`, `through`: for each table the number of the point that last moved its views, and per source
    how far its gold went then; `shapes`, `columns`: the columns its views were made with, with and without what is said
    of them."""

    number: int = 0
    points: dict[str, str] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    through: dict[str, dict[str, str]] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)


def newest(project: Project) -> dict | None:
    """The last row of gold.published; none while there is none."""
    rows = lake.peek(
        project.lakehouse_path(),
        "gold.published",
        [c.name for c in PUBLISHED],
        "order by number desc, published_at desc limit 1",
    )
    return rows[0] if rows else None


def published(project: Project, spark: "SparkSession") -> Point:
    """The published point, as `public._point` says."""
    if not spark.catalog.tableExists(POINT):  # new, or dropped: then numbers go on from the log's
        commit(spark, Point((newest(project) or {"number": 0})["number"]))
    mine = f"{SAID}{spark.table(POINT).first()['number']}."
    pieces = sorted(
        (row.key, row.value) for row in spark.sql(f"show tblproperties {POINT}").collect() if row.key.startswith(mine)
    )
    if not pieces:
        raise InletError(
            "public._point is one of an earlier Inlet",
            "`drop view public._point` and run `inlet run --step publish`: the views are written anew",
        )
    return Point(**json.loads(zlib.decompress(bytes.fromhex("".join(piece for _, piece in pieces)))))


def commit(spark: "SparkSession", point: Point) -> None:
    """Say the point in properties under its number, then move the view to the number: ALTER VIEW is one change of the
    catalog, where CREATE OR REPLACE drops the view first. Hive's own catalog takes texts of 32,700 characters and
    properties of 4,000, and Spark hides values with `url` or `token` in them: so the point is packed as hex, in pieces.
    """
    packed = zlib.compress(json.dumps(asdict(point)).encode()).hex()
    pieces = {f"{SAID}{point.number}.{i:06}": packed[i : i + 4000] for i in range(0, len(packed), 4000)}
    properties = ", ".join(f"{literal(key)} = {literal(piece)}" for key, piece in pieces.items())
    body = f"select {point.number}L as number, {number_map(point.moved)} as moved"
    if not spark.catalog.tableExists(POINT):
        spark.sql(
            f"create view {POINT} comment 'The published point: its number, and table -> number of the point that "
            f"last moved its views. Altering this view moves all public views at once.' tblproperties ({properties}) "
            f"as {body}"
        )
        return
    shown = f"{SAID}{spark.table(POINT).first()['number']}."
    left = [
        row.key
        for row in spark.sql(f"show tblproperties {POINT}").collect()
        if row.key.startswith(SAID) and not row.key.startswith(shown)
    ]
    if left:  # of the point before, or of a run that died here
        spark.sql(f"alter view {POINT} unset tblproperties ({', '.join(map(literal, left))})")
    spark.sql(f"alter view {POINT} set tblproperties ({properties})")
    spark.sql(f"alter view {POINT} as {body}")


def log(project: Project, spark: "SparkSession", point: Point) -> None:
    """Add a point to gold.published, unless it is its last row."""
    if not point.batches:
        return
    if not lake.exists(project.lakehouse_path(), "gold.published"):
        spark.sql(
            f"create table if not exists gold.published (\n  {ddl(PUBLISHED)}\n) using delta "
            "tblproperties (delta.enableDeletionVectors = false)"
        )  # so that delta-rs can read it
    before = newest(project)
    if before and (before["number"], dict(before["batches"]), dict(before["held"])) == (
        point.number,
        point.batches,
        point.held,
    ):
        return
    maps = (string_map(point.points), number_map(point.batches), number_map(point.versions), string_map(point.held))
    spark.sql(f"insert into gold.published select {point.number}L, current_timestamp(), {', '.join(maps)}")
    if point.number % NUM_FILES == 0:
        spark.sql("optimize gold.published")  # one small file a row
