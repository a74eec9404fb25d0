"""Bronze: land files and messages untouched, exactly once.

A batch is planned first: `bronze.files` says which bytes of which files it takes, with their sha-256. Then the units
are written under the batch's number, which Delta takes only once. A run that dies in between leaves a plan without
units; the next run finishes that plan before it makes one of its own. Only whole records are taken from a file that
still grows; an unfinished last record waits, and is landed as a reject once the file has rested for `settle_minutes`.

A file that is not as it was planned when its units are written is set aside with its problem, and planned anew by the
next run: what it held then was never landed, and no file can hold up the others of its batch. A link that leaves its
source's folder is not followed.
"""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from inlet import lake, unit
from inlet.bronze import blocks, lookups, messages, ordered, replay
from inlet.bronze.files import as_problem, beside, first_line, listing, unpacked_name
from inlet.bronze.guard import EXPECTED, KIND, Died, in_child
from inlet.bronze.transports import TRANSPORTS
from inlet.codecs import CODECS
from inlet.config import Project
from inlet.errors import InletError
from inlet.source import Source
from inlet.sql import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Plan:
    """What one batch takes: rows of `bronze.files`."""

    batch_id: int
    files: list[dict[str, Any]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # path -> bytes of an unfinished last record
    held: dict[str, str] = field(default_factory=dict)  # path -> what a whole file waits for

    def of(self, has_messages: bool, project: Project) -> list[dict]:
        """Its files that hold messages, or blocks."""
        return [
            file
            for file in self.files
            if file["num_units"]
            and (source := project.sources.get(file["source"]))  # one that inlet.yml lost is named by silver
            and source.brings_messages == has_messages
        ]


def landed(project: Project) -> list[dict]:
    """Rows of bronze.files, read without Spark."""
    return lake.peek(project.lakehouse_path(), "bronze.files", [c.name for c in unit.FILES])


def plan_batch(project: Project, sources: list[Source], before: list[dict], now: float | None = None) -> Plan:
    """What there is to land now. In: the rows of bronze.files so far. Out: a Plan, without files when nothing is
    new.
    """
    new = Plan(batch_id=next_batch(project, before))
    in_order = sorted(before, key=lambda row: row["batch_id"])
    last = {(row["source"], row["path"]): row for row in in_order}
    good = {(row["source"], row["path"]): row for row in in_order if not row["problem"]}
    wanted = []
    for source in sources:
        for path, info in listing(project, source):
            names = _companions(source, path)
            if names is None:
                continue  # comes with another file
            known, has_settled = last.get((source.name, path)), _has_settled(source, info, now)
            if known and (known["size_bytes"], _utc(known["modified_at"])) == (info["size"], info["modified"]):
                tail = 0 if known["problem"] else info["size"] - known["ofs_end"]
                if not tail or not has_settled:
                    new.waiting |= {path: tail} if tail else {}
                    continue
            companions = {name.rsplit("/", 1)[-1]: beside(project, name) for name in names}
            if missing := [name for name, text in companions.items() if text is None]:
                new.held[path] = f"its {', '.join(missing)}"
                continue
            info |= {"batch_id": new.batch_id, "companions": companions}
            wanted.append(ordered.Listed(source, path, info, good.get((source.name, path)), has_settled))
    for (source, path, info, _, _), row in zip(wanted, _plan_files(project, wanted, good), strict=True):
        if isinstance(row, str):
            new.held[path] = row
            continue
        if row is None:  # it grew while it was read
            new.waiting[path] = info["size"]
            continue
        if row["ofs_end"] < info["size"] and not row["problem"]:
            new.waiting[path] = info["size"] - row["ofs_end"]
        known = last.get((source.name, path))
        is_news = not known or known["problem"]  # an empty file, or one that is back as it was
        if row["num_units"] or row["problem"] or is_news and row["ofs_end"] == info["size"]:
            new.files.append(
                {"verdicts": None}
                | row
                | {
                    "source": source.name,
                    "path": path,
                    "size_bytes": info["size"],
                    "modified_at": info["modified"],
                    "batch_id": new.batch_id,
                }
            )
    return new


def next_batch(project: Project, before: list[dict]) -> int:
    """The number of the next batch. In: the rows of bronze.files so far."""
    return 1 + max((row["batch_id"] for row in [*before, *replay.planned(project)]), default=0)


def _companions(source: Source, path: str) -> list[str] | None:
    """The files that come with one; None for a file that is a companion itself."""
    codec = CODECS[source.codec]
    return (
        []
        if source.brings_messages or not hasattr(codec, "companions")
        else codec.companions(unpacked_name(path), source)
    )


def _plan_files(project: Project, wanted: list[ordered.Listed], good: dict) -> list[dict | str | None]:
    """Rows of bronze.files, or what a file waits for. Codecs read files in a process of their own, which a file may
    end; then each has one of its own.
    """

    def planned(file: ordered.Listed, before=None) -> dict | None:
        if file.info["problem"]:
            return file.info["problem"]
        follows = {"before": before} if before else {}
        return TRANSPORTS[file.source.transport].plan_file(project, *file, **follows)

    def planned_apart(file: ordered.Listed, before=None) -> dict | None:
        try:
            return _apart(lambda: planned(file, before), file.path)
        except Died as death:
            return as_problem(
                file.known["ofs_end"] if file.known else 0, KIND, EXPECTED, str(death), "Report it with the file"
            )

    def place_apart(project: Project, codec, file: ordered.Listed) -> int | str | None:
        try:
            return _apart(lambda: ordered.place(project, codec, file), file.path)
        except Died:
            return None  # planning it says what

    alone = [file for file in wanted if not ordered.is_ordered(file.source)]
    rows: dict[tuple, dict | str | None] = {}
    try:
        found = _apart(lambda: [planned(file) for file in alone], *(file.path for file in alone))
    except Died:
        found = [planned_apart(file) for file in alone]
    rows |= {(file.source.name, file.path): row for file, row in zip(alone, found, strict=True)}
    for name in {file.source.name for file in wanted if ordered.is_ordered(file.source)}:
        files = [file for file in wanted if file.source.name == name]
        landed_before = {path: row for (source, path), row in good.items() if source == name}
        in_order = partial(ordered.plan, project, files, landed_before)
        try:
            found = _apart(partial(in_order, planned, ordered.place), *(file.path for file in files))
        except Died:
            found = in_order(planned_apart, place_apart)
        rows |= {(name, path): row for path, row in found.items()}
    return [rows[file.source.name, file.path] for file in wanted]


def _apart(call, *paths: str):
    """What a call gives, made in a process of its own; in this one where there is nothing to read, and for addresses,
    whose clients do not outlive a fork."""
    return in_child(call) if paths and not any("://" in path for path in paths) else call()


def unfinished(before: list[dict], done: set[tuple[int, str]]) -> list[int]:
    """Batches that are planned but not yet decoded. In: rows of bronze.files, (batch_id, source) of silver.batches."""
    return sorted(
        {row["batch_id"] for row in before} - {batch for batch, _ in done}
        | {row["batch_id"] for row in before if (row["batch_id"], row["source"]) not in done}
    )


def land(project: Project, spark: "SparkSession", new: Plan) -> None:
    """Write a planned batch: the plan, then its blocks and messages; each write happens once however often it is
    tried.
    """
    now = datetime.now(UTC)
    rows = [tuple((row | {"landed_at": now})[c.name] for c in unit.FILES) for row in new.files]
    files = spark.createDataFrame(rows, ", ".join(f"{c.name} {c.type}" for c in unit.FILES))
    lake.append(files.coalesce(1), "bronze.files", "inlet-bronze-files", new.batch_id)
    write_units(project, spark, new)


def write_units(project: Project, spark: "SparkSession", new: Plan) -> None:
    """Write the units of a batch whose plan is already in bronze.files. Files that are not as planned are set aside."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    for has_messages in (False, True):
        files = new.of(has_messages, project)
        try:
            _append(project, spark, has_messages, files, new.batch_id)
        except (Py4JJavaError, PySparkException):
            problems = [problem for row in files if (problem := _problem_now(project, row))]
            if not problems:
                raise
            problems += _after(project, files, problems)
            for row in problems:
                _set_aside(spark, row)
            aside = {(row["source"], row["path"]) for row in problems}
            _append(
                project,
                spark,
                has_messages,
                [row for row in files if (row["source"], row["path"]) not in aside],
                new.batch_id,
            )


def _after(project: Project, files: list[dict], problems: list[dict]) -> list[dict]:
    """The planned files that depend on one that is set aside: others of its source, where files follow each other. They
    are planned anew, too.
    """
    sources, aside = {row["source"] for row in problems}, {(row["source"], row["path"]) for row in problems}
    return [
        row
        | as_problem(
            row["ofs_start"],
            "file_rewritten",
            "the files before it as they were planned",
            "another one",
            "Nothing: it is read anew",
        )
        for row in files
        if row["source"] in sources
        and (row["source"], row["path"]) not in aside
        and ordered.is_ordered(project.sources[row["source"]])
    ]


def _append(project: Project, spark: "SparkSession", has_messages: bool, files: list[dict], batch_id: int) -> None:
    what, read = ("messages", messages.read) if has_messages else ("blocks", blocks.read)
    if not files:
        return
    if not has_messages and (delivered := blocks.read_delivered(project, spark, files)) is not None:
        lake.append(delivered, "bronze.delivered", "inlet-bronze-delivered", batch_id)
    lake.append(read(project, spark, files, landed(project)), f"bronze.{what}", f"inlet-bronze-{what}", batch_id)
    if has_messages:
        own = spark.table("bronze.messages").where(f"batch_id = {batch_id}")
        lookups.land(project, spark, batch_id, files, own)


def _problem_now(project: Project, row: dict) -> dict | None:
    """The row of a planned file with the problem that it has when it is read now; None where it is as planned."""

    def read() -> None:
        for _ in TRANSPORTS[project.sources[row["source"]].transport].units_of(project, row):
            pass

    try:
        _apart(read, row["path"])
    except Died as death:
        return row | as_problem(row["ofs_start"], KIND, EXPECTED, str(death), "Report it with the file")
    except FileNotFoundError:
        found = "no file"
    except InletError as error:
        found = error.message
    except (OSError, ValueError) as error:  # Arrow's errors are these
        if getattr(error, "errno", None):
            return None  # the machine failed, not the file: the run fails, and the next one tries again
        return row | as_problem(
            row["ofs_start"],
            "unreadable_file",
            "a file that can be read as planned",
            first_line(error),
            "Fix or remove the file",
        )
    else:
        return None
    return row | as_problem(
        row["ofs_start"],
        "file_rewritten",
        "the file as it was planned",
        found,
        "Deliver changed content under a new name",
    )


def _set_aside(spark: "SparkSession", row: dict) -> None:
    """Its time is taken from the row, so that the next run plans the file anew, even one that is back as it was."""
    spark.sql(f"""
        update bronze.files
        set modified_at = timestamp'1970-01-01 00:00:00', ofs_end = ofs_start, sha256 = null, num_units = 0,
            context = null, start_context = null, verdicts = null, problem = {literal(row["problem"])}
        where batch_id = {row["batch_id"]} and source = {literal(row["source"])} and path = {literal(row["path"])}""")


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _has_settled(source: Source, info: dict, now: float | None) -> bool:
    return (now or time.time()) - info["modified"].timestamp() >= source.settle_minutes * 60
