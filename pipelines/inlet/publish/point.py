"""The published point: what the public views show, kept in the view `public._point` and logged in gold.published.

A lakehouse in a store has a catalog on each machine. There the row of gold.published is the commit, and holds the point
as a whole; the views of a machine are brought to it when a session asks (publish.show).
"""

import datetime as dt
import json
import re
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from inlet import lake, storage
from inlet.change import Column, ddl
from inlet.config import Project
from inlet.errors import InletError
from inlet.lake import engine
from inlet.publish.views import TRANSACTIONS, number_map
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLISHED = (
    Column("number", "bigint", "the published point; only grows"),
    Column("published_at", "timestamp", "when"),
    Column("points", "map<string,string>", "source -> change_seq up to which its changes are public"),
    Column("batches", "map<string,bigint>", "source -> last silver batch that this run has looked at"),
    Column(
        "versions",
        "map<string,bigint>",
        "table of gold, silver.transactions and, where a source has checkpoints, silver.control_events -> its Delta "
        "version at this point",
    ),
    Column("held", "map<string,string>", "source -> why its point is not at the end of what gold has; empty: it is"),
)
STATE = Column("state", "string", "the point as JSON, from which each machine makes its views")
POINT = "public._point"
LOG = "gold.published"
EVENTS = "silver.control_events"
PROPERTY = "inlet.point."  # what the view's properties that hold the point begin with
PIECE = re.compile(rf"{re.escape(PROPERTY)}([\w.]+)=([0-9a-f]+)")  # as the catalog describes them
NUMBER = re.compile(r"select (\d+)L as number")
SLOTS = ("even.", "odd.")  # how they go on, by its number: the next point never overwrites the one that is shown


@dataclass
class SourcePoint:
    """How far one source is public."""

    seq: str | None = None  # change_seq up to which its changes are; None: no table of gold has it yet
    batch: int = -1  # the last one that was looked at
    taken: int = -1  # the last one that is in the versions shown
    held: str | None = None  # why it is not at the end of what gold has


@dataclass
class TablePoint:
    """What the views of one table show."""

    versions: dict[str, int] = field(default_factory=dict)  # step -> Delta version of its gold
    through: dict[str, str] = field(default_factory=dict)  # source -> how far its gold went then
    moved: int | None = None  # number of the point that last moved its views
    shape: int | None = None  # of the columns its views were made with, and what is said of them
    columns: int | None = None  # of the columns alone
    applied: int | None = None  # a checksum of its rows in gold.applied: gold has built it since where it differs


@dataclass
class Point:
    """What the public views show."""

    number: int = 0
    sources: dict[str, SourcePoint] = field(default_factory=dict)
    tables: dict[str, TablePoint] = field(default_factory=dict)
    transactions: int | None = None  # version of silver.transactions
    events: int | None = None  # version of silver.control_events; None: no source has checkpoints
    looked_at: int = 0  # when the versions of all tables were last looked up, in seconds

    @classmethod
    def of(cls, stored: dict) -> "Point":
        """A point as it was committed, in the form of today or of before."""
        if "points" in stored:
            point = _of_maps(stored["number"], stored["points"], stored["versions"])
            for name in ("batch", "taken", "held"):
                for source, value in stored["batches" if name == "batch" else name].items():
                    setattr(point.sources.setdefault(source, SourcePoint()), name, value)
            for name in ("through", "moved", "shape", "columns"):
                for table, value in stored["shapes" if name == "shape" else name].items():
                    setattr(point.tables.setdefault(table, TablePoint()), name, value)
            return point
        sources = {name: SourcePoint(**fields) for name, fields in stored["sources"].items()}
        tables = {name: TablePoint(**fields) for name, fields in stored["tables"].items()}
        transactions, events, looked_at = (stored.get(name) for name in ("transactions", "events", "looked_at"))
        return cls(stored["number"], sources, tables, transactions, events, looked_at or 0)

    @classmethod
    def of_log(cls, row: dict) -> "Point":
        """A point as gold.published has it: its views count every change that its versions hold of its sources."""
        point = _of_maps(row["number"], dict(row["points"]), dict(row["versions"]))
        for table in point.tables.values():
            table.through = dict.fromkeys(point.points, "~")
        return point

    def source(self, name: str) -> SourcePoint:
        return self.sources.setdefault(name, SourcePoint())

    def table(self, name: str) -> TablePoint:
        return self.tables.setdefault(name, TablePoint())

    @property
    def points(self) -> dict[str, str]:
        """Source -> change_seq up to which its changes are public."""
        return {name: source.seq for name, source in self.sources.items() if source.seq is not None}

    @property
    def batches(self) -> dict[str, int]:
        return {name: source.batch for name, source in self.sources.items() if source.batch >= 0}

    @property
    def held(self) -> dict[str, str]:
        return {name: source.held for name, source in self.sources.items() if source.held}

    @property
    def moved(self) -> dict[str, int]:
        return {name: table.moved for name, table in self.tables.items() if table.moved is not None}

    @property
    def versions(self) -> dict[str, int]:
        """Table of gold, and of silver -> its Delta version."""
        versions = {f"{name}__{step}": v for name, table in self.tables.items() for step, v in table.versions.items()}
        of_silver = {TRANSACTIONS: self.transactions, EVENTS: self.events}
        return versions | {name: version for name, version in of_silver.items() if version is not None}


def _of_maps(number: int, points: dict[str, str], versions: dict[str, int]) -> Point:
    point = Point(number, {source: SourcePoint(seq) for source, seq in points.items()})
    for place, version in versions.items():
        if place == TRANSACTIONS:
            point.transactions = version
        elif place == EVENTS:
            point.events = version
        else:
            name, step = place.rsplit("__", 1)
            point.table(name).versions[step] = version
    return point


def is_logged(project: Project) -> bool:
    """True if the row of gold.published is the commit, because a catalog is of one machine alone."""
    return engine.is_given() or not storage.is_local(project.lakehouse_path())


def newest(project: Project, columns: tuple[Column, ...] = PUBLISHED) -> dict | None:
    """The last row of gold.published; none while there is none."""
    lakehouse, number = project.lakehouse_path(), "coalesce(max(number), -1)"
    last = lake.peek(lakehouse, LOG, [f"{number} as number"])  # of one column: the others are long
    rows = last and lake.peek(
        lakehouse,
        LOG,
        [c.name for c in columns],
        f"where number = {last[0]['number']} order by published_at desc limit 1",
    )
    return rows[0] if rows else None


def published(project: Project, spark: "SparkSession") -> Point:
    """The published point."""
    return logged(project) if is_logged(project) else shown(project, spark)


def logged(project: Project) -> Point:
    """The point that the last row of gold.published holds as a whole."""
    row = newest(project, (*PUBLISHED, STATE))
    if not row:
        return Point()
    return Point.of(json.loads(row["state"])) if row["state"] else Point.of_log(row)  # of a catalog that all shared


def shown(project: Project, spark: "SparkSession") -> Point:
    """The point that this catalog shows, as `public._point` says: its text and its properties, which one look-up of it
    gives."""
    about = _described(spark)
    if about is None:  # new, or dropped: then numbers go on from the log's
        first = Point(0 if is_logged(project) else (newest(project) or {"number": 0})["number"])
        spark.sql(
            f"create view {POINT} comment 'The published point: its number, and table -> number of the point that "
            "last moved its views. Altering this view moves all public views at once.' "
            f"tblproperties ({_properties(first)}) as {_body(first)}"
        )
        return first
    match = NUMBER.match(about["View Text"])
    number = int(match[1]) if match else -1
    pieces = dict(PIECE.findall(about["Table Properties"]))
    for slot in (SLOTS[number % 2], f"{number}."):  # the other is of an earlier Inlet
        packed = "".join(pieces[key] for key in sorted(pieces) if key.startswith(slot))
        if packed:  # its end tells where former pieces begin
            stored = json.loads(zlib.decompressobj().decompress(bytes.fromhex(packed)))
            if stored["number"] == number:
                return Point.of(stored)
    raise InletError(
        "public._point is one of an earlier Inlet",
        "`drop view public._point` and run `inlet run --step publish`: the views are written anew",
    )


def _described(spark: "SparkSession") -> dict[str, str] | None:
    """What the catalog has of `public._point`; None where it does not exist."""
    from pyspark.errors import AnalysisException

    try:
        return {row.col_name: row.data_type for row in spark.sql(f"describe table extended {POINT}").collect()}
    except AnalysisException:
        if engine.has_table(spark, POINT):
            raise
        return None


def commit(spark: "SparkSession", point: Point) -> None:
    """Say the point in properties, then move the view to its number: ALTER VIEW is one change of the catalog, where
    CREATE OR REPLACE drops the view first. Hive's own catalog takes texts of 32,700 characters and properties of 4,000,
    and Spark hides values with `url` or `token` in them: so the point is packed as hex, in pieces.
    """
    spark.sql(f"alter view {POINT} set tblproperties ({_properties(point)})")
    spark.sql(f"alter view {POINT} as {_body(point)}")


def _properties(point: Point) -> str:
    packed, slot = zlib.compress(json.dumps(asdict(point)).encode()).hex(), PROPERTY + SLOTS[point.number % 2]
    pieces = {f"{slot}{i:06}": packed[i : i + 4000] for i in range(0, len(packed), 4000)}
    return ", ".join(f"{literal(key)} = {literal(piece)}" for key, piece in pieces.items())


def _body(point: Point) -> str:
    return f"select {point.number}L as number, {number_map(point.moved)} as moved"


def log(project: Project, spark: "SparkSession", point: Point, before: dict | None) -> None:
    """Add a point to gold.published, unless it is its last row, which is given."""
    if not point.batches:
        return
    if before and (before["number"], dict(before["batches"]), dict(before["held"])) == (
        point.number,
        point.batches,
        point.held,
    ):
        return
    columns = (*PUBLISHED, STATE) if is_logged(project) else PUBLISHED
    stored = lake.column_names(project.lakehouse_path(), LOG)
    if is_logged(project) and stored and STATE.name not in stored:  # of a catalog that all shared
        spark.sql(f"alter table {LOG} add columns ({ddl((STATE,))})")
    if not stored:  # so that the catalog has it
        spark.sql(
            f"create table if not exists {LOG} (\n  {ddl(columns)}\n) using delta "
            "tblproperties (delta.enableDeletionVectors = false)"
        )
    maps = {name: list(getattr(point, name).items()) for name in ("points", "batches", "versions", "held")}
    row = {"number": point.number, "published_at": dt.datetime.now(dt.UTC), **maps}
    row |= {"state": json.dumps(asdict(point))} if is_logged(project) else {}
    lake.add_rows(project.lakehouse_path(), LOG, [row], columns)
