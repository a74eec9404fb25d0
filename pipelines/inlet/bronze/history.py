"""What has been read so far: the rows of bronze.files, each with its cause, and the batches that the ledger lacks.

Each question reads the rows that can matter, by their columns and by the statistics of the files that hold them. No
question of a run reads all rows. Those about a whole source (`of_source`) read all of that source: files in an order,
loads of several files, times of loads, and messages with a topic in files ask so. The answers are those of the newest
version of the tables (lake/snapshots.py), so a commit of this run or of another process is never missed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from inlet import lake, unit
from inlet.bronze.files import utc
from inlet.config import Project
from inlet.sql import plain_among, plain_literal
from inlet.unit import FRAMED_AGAIN, PLANNED, REREAD, SET_ASIDE

FILES, REPLAYS, LEDGER = "bronze.files", "bronze.replays", "silver.batches"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUM_PATHS = 5_000  # of files that a query asks for by name
Place = tuple[str, str]  # (source, path)


class Reading(dict[str, Any]):
    """A row of bronze.files: what a batch has read of a file, or of a partition of a topic; or why it could not."""

    @property
    def place(self) -> Place:
        return self["source"], self["path"]

    @property
    def cause(self) -> str:
        return self["cause"]

    @property
    def begins_file(self) -> bool:
        """True if it has read its file from the first byte."""
        return self["ofs_start"] == 0 and bool(self["num_units"])

    @property
    def is_whole(self) -> bool:
        """True if all bytes of the file were read, as large as it was then."""
        return self["ofs_end"] == self["size_bytes"] and not self["problem"]


class History:
    """In: rows of bronze.files, of bronze.replays, and (batch, source) of the ledger, where they are not to be read."""

    def __init__(
        self,
        project: Project,
        rows: Iterable[dict] | None = None,
        replays: Iterable[dict] = (),
        done: Iterable[tuple[int, str]] = (),
    ):
        self._lakehouse = project.lakehouse_path()
        self._rows, self._replays, self._done = None if rows is None else list(rows), list(replays), set(done)

    @property
    def next_batch(self) -> int:
        """The number of the next batch."""
        if self._rows is not None:
            return 1 + max((row["batch_id"] for row in [*self._rows, *self._replays]), default=0)
        last = [lake.peek(self._lakehouse, table, ["max(batch_id) as batch_id"]) for table in (FILES, REPLAYS)]
        return 1 + max((row["batch_id"] or 0 for rows in last for row in rows), default=0)

    def undecoded(self) -> set[tuple[int, str]]:
        """(batch, source) of what is planned and not in the ledger."""
        if self._rows is not None:
            return {(row["batch_id"], row["source"]) for row in [*self._rows, *self._replays]} - self._done
        columns = ["batch_id", "source"]
        rows = [row for table in (FILES, REPLAYS) for row in lake.lacking(self._lakehouse, table, LEDGER, columns)]
        return {(row["batch_id"], row["source"]) for row in rows}

    def unfinished(self) -> list[int]:
        """Batches that are planned and not decoded, oldest first."""
        return sorted({batch_id for batch_id, _ in self.undecoded()})

    def readings(self) -> list[Reading]:
        """All, by batch. Only a command that shows all of them asks so."""
        return self._read("true", lambda row: True)

    def of_batch(self, batch_id: int) -> list[Reading]:
        rows = self._asked(f"batch_id = {batch_id}", lambda row: row["batch_id"] == batch_id)
        if not any(row["cause"] is None for row in rows):
            return [Reading(row) for row in rows]
        places = {(row["source"], row["path"]) for row in rows}
        of_files = self.of_files({source for source, _ in places}, {path for _, path in places})
        return [row for row in of_files if row["batch_id"] == batch_id and row.place in places]

    def of_source(self, source: str) -> list[Reading]:
        """Those of a source, by batch."""
        return self._read(f"source = {plain_literal(source)}", lambda row: row["source"] == source)

    def of_files(self, sources: Iterable[str] | None, paths: Iterable[str]) -> list[Reading]:
        """Those of files, by batch. In: the names of their sources, None for all."""
        names, readings = sources if sources is None else sorted(set(sources)), list[Reading]()
        if names == []:
            return []
        of_sources = "true" if names is None else plain_among("source", names)
        for some in _some(sorted(set(paths))):
            asked = set(some)

            def has(row: dict, asked: set[str] = asked) -> bool:
                return row["path"] in asked and (names is None or row["source"] in names)

            readings += self._read(f"{of_sources} and {plain_among('path', some)}", has)
        return sorted(readings, key=_batch)

    def is_known(self, source: str) -> bool:
        """True if a batch has files of a source."""
        if self._rows is not None:
            return any(row["source"] == source for row in self._rows)
        of_source = f"where source = {plain_literal(source)} limit 1"
        return bool(lake.peek(self._lakehouse, FILES, ["source"], of_source))

    def of_judged(self, source: str) -> list[Reading]:
        """Those of a source that its feed's marks judge."""
        of_source = f"source = {plain_literal(source)} and verdicts is not null"
        rows = self._asked(of_source, lambda row: row["source"] == source and row["verdicts"] is not None)
        return [Reading(row) for row in sorted(rows, key=_batch)]

    def of_partitions(self, source: str) -> list[Reading]:
        """The newest reading of each partition of a broker's source, and those of files that it read before."""
        if self._rows is not None:
            return self.of_source(source)
        of_source, of_topic = f"where source = {plain_literal(source)}", "coalesce(context, '') like '%\"topic_id\"%'"
        order = "partition by path order by batch_id desc, problem is null desc, ofs_end desc"
        newest = f"{of_source} and {of_topic} qualify row_number() over ({order}) = 1"
        columns = [c.name for c in unit.FILES]
        rows = [
            row
            for where in (newest, f"{of_source} and not {of_topic}")
            for row in lake.peek(self._lakehouse, FILES, columns, where)
        ]
        return with_causes(rows, self._replay_batches)

    def num_files(self) -> dict[str, int]:
        """Source -> how many files, or partitions of topics, were read."""
        if self._rows is not None:
            return Counter(source for source, _ in {(row["source"], row["path"]) for row in self._rows})
        columns = ["source", "count(distinct path) as num"]
        return {row["source"]: row["num"] for row in lake.peek(self._lakehouse, FILES, columns, "group by source")}

    def refused(self) -> list[Reading]:
        """The newest readings of files that have a problem still."""
        if self._rows is not None:
            places = {(row["source"], row["path"]) for row in self._rows if row["problem"]}
        else:
            rows = lake.peek(self._lakehouse, FILES, ["distinct source, path"], "where problem is not null")
            places = {(row["source"], row["path"]) for row in rows}
        readings = self.of_files({source for source, _ in places}, {path for _, path in places})
        newest = {row.place: row for row in readings if row.place in places}
        return [row for row in newest.values() if row["problem"]]

    def paths(self, source: str) -> list[str]:
        """The files of a source of which something was read."""
        if self._rows is not None:
            rows = [row for row in self._rows if row["source"] == source and not row["problem"]]
        else:
            of_source = f"where source = {plain_literal(source)} and problem is null"
            rows = lake.peek(self._lakehouse, FILES, ["distinct path"], of_source)
        return sorted({row["path"] for row in rows})

    def replays_of(self, batch_id: int) -> list[dict]:
        """The records that a batch decodes again, each once, even one that several batches have rejected."""
        rows = [row for row in self.replays([batch_id]) if row["batch_id"] == batch_id]
        return list({(row["source"], row["unit_id"], row["unit_offset"]): row for row in rows}.values())

    def replays(self, batches: Iterable[int] | None = None) -> list[dict]:
        """Rows of bronze.replays. In: their batches; none for all."""
        if self._rows is not None:
            return self._replays
        if batches is not None and not (batches := sorted(batches)):
            return []
        among = "" if batches is None else f"where batch_id in ({', '.join(map(str, batches))})"
        return lake.peek(self._lakehouse, REPLAYS, [c.name for c in unit.REPLAYS], among)

    def _read(self, where: str, has: Callable[[dict], bool]) -> list[Reading]:
        """In: what selects all readings of some files, in SQL and here."""
        return with_causes(self._asked(where, has), self._replay_batches)

    def _asked(self, where: str, has: Callable[[dict], bool]) -> list[dict]:
        if self._rows is not None:
            return [{"cause": None} | row for row in self._rows if has(row)]
        return lake.peek(self._lakehouse, FILES, [c.name for c in unit.FILES], f"where {where}")

    def _replay_batches(self) -> set[int]:
        if self._rows is not None:
            return {row["batch_id"] for row in self._replays}
        return {row["batch_id"] for row in lake.peek(self._lakehouse, REPLAYS, ["distinct batch_id"])}


def with_causes(rows: Iterable[dict], replays: Callable[[], set[int]]) -> list[Reading]:
    """Readings by batch, each with its cause: those of an earlier Inlet have none. In: all rows of some files; the
    batches that decode rejects again.
    """
    readings = [Reading(row) for row in sorted(rows, key=_batch)]
    if any(row["cause"] is None for row in readings):
        again, first = replays(), begun(readings)
        for row in readings:
            if row["cause"] is None:
                is_aside = row["problem"] and row["modified_at"] is not None and utc(row["modified_at"]) == EPOCH
                known = FRAMED_AGAIN if row["batch_id"] in again else SET_ASIDE if is_aside else None
                row["cause"] = known or cause(row, first.get(row.place))
    return readings


def cause(row: dict, first: int | None) -> str:
    """The cause of a reading when it is planned. In: the batch that read the file first, None where none has."""
    is_again = first is not None and first < row["batch_id"] and not row["problem"] and Reading(row).begins_file
    return REREAD if is_again and '"topic_id"' not in (row["context"] or "") else PLANNED


def begun(readings: Iterable[Reading]) -> dict[Place, int]:
    """The batch that read each file first. In: readings by batch."""
    first: dict[Place, int] = {}
    for row in readings:
        if row["ofs_end"] and not row["problem"]:
            first.setdefault(row.place, row["batch_id"])
    return first


def last(readings: Iterable[Reading]) -> dict[Place, Reading]:
    """The newest reading of each file, but for those that framed it again: they say nothing of its state."""
    return {row.place: row for row in readings if row.cause != FRAMED_AGAIN}


def good(readings: Iterable[Reading]) -> dict[Place, Reading]:
    """The newest reading of each file that has no problem."""
    return {row.place: row for row in readings if not row["problem"]}


def _batch(row: dict) -> int:
    return row["batch_id"]


def _some(paths: list[str]) -> Iterator[list[str]]:
    return (paths[n : n + NUM_PATHS] for n in range(0, len(paths), NUM_PATHS))
