"""Pinned points: a database of views that show one published point for good, wherever the public views have moved
since.

Its views name the Delta versions that `gold.published` keeps of every point, so several queries, today's and next
month's, see the same rows in all tables, also where changes came late since. It costs nothing to keep but the files
and the log of these versions: `inlet maintain` leaves both, as `kept_versions` says; `VACUUM` does not know of pins.
"""

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from inlet import lake, layout, storage
from inlet.config import Project
from inlet.errors import ConfigError
from inlet.gold.evolve import KEY, ours, own
from inlet.lake.maintenance import keep_log
from inlet.publish import checkpoints, fixed_views, kept_versions, views
from inlet.publish.point import PUBLISHED, Point
from inlet.sql import literal
from inlet.sql import name as quoted
from inlet.table import ours_beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTY = "inlet.point"
LOG_DAYS = 400  # that the log of a table is kept for a pin; maintenance makes it more in time


def find(project: Project, database: str, number: int | None = None) -> Point:
    """The point that a pin of this name would show, found without Spark. In: its number; none for the newest.

    Raises: ConfigError where the name can't be one, the point was never published, was by an earlier Inlet, or its
    versions are gone.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", database) or database in (*lake.DATABASES, "default"):
        raise ConfigError(
            f"{database} can't be the name of a pin", "Use lower-case letters, digits and _, and no name of Inlet's own"
        )
    which = f"where number = {number}" if number is not None else ""
    rows = lake.peek(
        project.lakehouse_path(),
        "gold.published",
        [c.name for c in PUBLISHED],
        f"{which} order by number desc, published_at limit 1",
    )
    if not rows:
        raise ConfigError(
            f"There is no published point{f' {number}' if number is not None else ''}",
            "gold.published lists them; `inlet run` publishes one",
        )
    versions = dict(rows[0]["versions"])
    if gone := _gone(project, versions):
        raise ConfigError(
            f"Point {rows[0]['number']} can't be read any more: {gone}", _remedy(project, rows[0]["number"])
        )
    if views.TRANSACTIONS not in versions:
        raise ConfigError(f"Point {rows[0]['number']} was published by an earlier Inlet", "Pin a later point")
    return Point.of_log(rows[0])


def _gone(project: Project, versions: dict[str, int]) -> str:
    """Why Delta versions of tables, such as a point has, can't be read any more; "" where they can."""
    lakehouse = project.lakehouse_path()
    for name, version in versions.items():
        place = name if "." in name else f"gold.{name}"
        if not lake.has_version(lakehouse, place, version):
            return f"the log of {place} does not have version {version} any more (delta.logRetentionDuration, a month)"
        if not lake.has_files(lakehouse, place, version):
            return f"files of version {version} of {place} were removed (VACUUM)"
    return ""


def _remedy(project: Project, number: int) -> str:
    """What can be pinned where a point can't. Files of a later point are removed later."""
    rows = lake.peek(
        project.lakehouse_path(), "gold.published", ["number", "versions"], f"where number > {number} order by number"
    )
    first = bisect_left(rows, True, key=lambda row: not _gone(project, dict(row["versions"])))
    return (
        f"Pin point {rows[first]['number']} or a later one" if rows[first:] else "`inlet run` publishes the next point"
    )


def pin(project: Project, spark: "SparkSession", database: str, point: Point) -> list[str]:
    """Make a database whose views show a point. Doing it again, also after a run that died, changes nothing. Out: its
    tables.

    Raises: ConfigError where the database is there and shows another point or is none of Inlet's.
    """
    taken = pinned(spark).get(database) if spark.catalog.databaseExists(layout.of(database)) else point.number
    if taken != point.number:
        raise ConfigError(
            f"The database {database} "
            + ("is none of Inlet's" if taken is None else f"is pinned to point {taken}, not {point.number}"),
            "Choose another name" + ("" if taken is None else f", or `inlet unpin {database}` first"),
        )
    kept_versions.note_pin(project, database, point.number, point.versions)
    for name in point.versions:
        keep_log(project.lakehouse_path(), name if "." in name else f"gold.{name}", LOG_DAYS, spark)
    place = project.lakehouse_path("_pins", database)
    at = "" if storage.is_managed(place) else f" location {literal(place)}"
    spark.sql(
        f"create database if not exists {database} comment 'Published point {point.number}'{at}"
        f" with dbproperties ('{PROPERTY}' = '{point.number}')"
    )
    tables, our_names = sorted(point.tables), {}
    for table in tables:
        version = point.table(table).versions.get("past")  # none of a table without a key
        columns, properties = (
            lake.describe(project.lakehouse_path(), f"gold.{table}__past", version) if version is not None else None
        ) or ({}, {})
        if columns:
            our_names[table] = ours_beside(set(own(columns, "", ours(properties))))
        key = _key(project, table, properties.get(KEY, "")) if columns else []
        fixed_views.write_pinned(spark, database, table, point, key, list(columns), our_names.get(table, {}))
    checkpoints.write_pinned(project, spark, database, point, our_names)
    return tables


def _key(project: Project, table: str, stored: str) -> list[str]:
    """The columns of a key that a property of gold holds; where the contract has the same, names with commas too."""
    contract = next((t.gold_key for t in project.tables.values() if t.name == table), [])
    return contract if ",".join(contract) == stored else stored.split(",")


def unpin(project: Project, spark: "SparkSession", database: str) -> None:
    """Drop a pin. Raises: ConfigError where there is none of that name."""
    existing = pinned(spark)
    if database not in existing:
        if database != kept_versions.SHOWN:
            kept_versions.drop_pin(project, database)  # of a command that died before it made the database
        raise ConfigError(f"{database} is no pin", f"There are: {', '.join(existing) or 'none'}")
    spark.sql(f"drop database {database} cascade")
    kept_versions.drop_pin(project, database)


def note(project: Project, spark: "SparkSession") -> None:
    """Note what the pins of an earlier Inlet read, as the catalog knows them. Raises: ConfigError where the point of
    one is not in gold.published."""
    existing = pinned(spark)
    for name in kept_versions.unnoted(project):
        if name not in existing:
            kept_versions.drop_folder(project, name)
            continue
        where = f"where number = {existing[name]} order by published_at limit 1"
        rows = lake.peek(project.lakehouse_path(), "gold.published", ["versions"], where)
        if not rows:
            raise ConfigError(f"gold.published does not have point {existing[name]} of {name}", f"`inlet unpin {name}`")
        kept_versions.note_pin(project, name, existing[name], dict(rows[0]["versions"]))


def listed(project: Project, spark: "SparkSession") -> list[dict]:
    """Each pin, the number of its point, when that was published, and whether it can be read."""
    columns = ["number", "published_at", "versions"]
    points = {
        row["number"]: row
        for row in lake.peek(project.lakehouse_path(), "gold.published", columns, "order by published_at desc")
    }
    return [
        {
            "pin": name,
            "point": number,
            "published at": points[number]["published_at"] if number in points else None,
            "can be read": _gone(project, dict(points[number]["versions"])) or "yes" if number in points else None,
        }
        for name, number in pinned(spark).items()
    ]


def pinned(spark: "SparkSession") -> dict[str, int]:
    """Name of each pin -> number of the point that it shows."""
    numbers = {}
    for row in spark.sql("show databases").collect():
        description = {
            r.info_name: r.info_value
            for r in spark.sql(f"describe database extended {quoted(row.namespace)}").collect()
        }
        number = re.search(rf"\({re.escape(PROPERTY)},(\d+)\)", description.get("Properties", ""))
        if number:
            numbers[row.namespace] = int(number[1])
    return numbers
