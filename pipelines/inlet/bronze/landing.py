"""Bronze: land files and messages untouched, exactly once.

A batch is planned first: `bronze.files` says which bytes of which files it takes. Then the units are written under the
batch's number, which Delta takes only once. A run that dies in between leaves a plan without units; the next run
finishes that plan before it makes one of its own.

A file that is not as it was planned when its units are written is set aside with its problem, and planned anew by the
next run: what it held then was never landed, and no file can hold up the others of its batch.
"""

import json
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from inlet import lake
from inlet.bronze import blocks, kafka, lookups, messages, ordered, small_batches, tasks
from inlet.bronze.files import as_problem, ends_its_reader, first_line, rewritten, why
from inlet.bronze.guard import Died, apart, said_by_worker
from inlet.bronze.history import SET_ASIDE
from inlet.bronze.plan import Plan
from inlet.bronze.transports import TRANSPORTS
from inlet.config import Project
from inlet.errors import ConfigError, EnvironmentLacks, InletError, TryAgain
from inlet.lake import engine, spark_errors
from inlet.sql import literal, plain_among

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def land(project: Project, spark: "SparkSession", new: Plan) -> None:
    """Write a planned batch: the plan, then its blocks and messages; each write happens once however often it is
    tried.
    """
    write_plan(project, new)
    write_units(project, spark, new)


def write_plan(project: Project, new: Plan) -> None:
    """Write the plan of a batch; the next run, or `write_units`, follows it."""
    now = datetime.now(UTC)
    rows = [row | {"landed_at": now} for row in new.files]
    lake.add_rows(project.lakehouse_path(), "bronze.files", rows, app_id="inlet-bronze-files", version=new.batch_id)


def write_units(project: Project, spark: "SparkSession", new: Plan) -> None:
    """Write the units of a batch whose plan is already in bronze.files. Files that are not as planned are set aside.

    Raises: ConfigError where inlet.yml has lost a source of the batch. What is written without it could never be
    written with it, for Delta takes the batch once.
    """
    check_sources(project, new.batch_id, new.files)
    for has_messages in (False, True):
        files = new.of(has_messages, project)
        try:
            _append(project, spark, has_messages, files, new.batch_id)
        except spark_errors.errors() as error:
            problems = _problems_now(project, spark, files)
            if not problems and isinstance(said_by_worker(error), TryAgain):  # it was silent, and may be again
                found = str(said_by_worker(error))
                problems = [
                    row
                    | {"problem": as_problem(row["ofs_start"], "unreadable_file", "an answer", found, "")["problem"]}
                    for row in files
                    if project.sources[row["source"]].broker
                ]
            if not problems:
                raise (said_by_worker(error) or error) from error
            problems += _after(project, files, problems)
            for row in problems:
                _set_aside(spark, row, project.sources[row["source"]].broker is not None)
            aside = {(row["source"], row["path"]) for row in problems}
            _append(
                project,
                spark,
                has_messages,
                [row for row in files if (row["source"], row["path"]) not in aside],
                new.batch_id,
            )


def messages_of(project: Project, plan: Plan) -> dict[str, int]:
    """How many messages the ranges of a landed batch held, their bytes, and how many offsets had none; nothing where it
    has no ranges. Offsets are without a message where a transaction is marked or rolled back, or a topic compacted.
    """
    if not any(project.sources[row["source"]].broker for row in plan.files):
        return {}
    ranges = [  # not the plan's: what was set aside is not landed
        row
        for row in lake.peek(
            project.lakehouse_path(), "bronze.files", ["source", "num_units"], f"where batch_id = {plan.batch_id}"
        )
        if row["num_units"] and project.sources[row["source"]].broker
    ]
    if not ranges:
        return {}
    [landed] = lake.peek(
        project.lakehouse_path(),
        "bronze.messages",
        ["count(*) as num", "coalesce(sum(size_bytes), 0) as size"],
        f"where batch_id = {plan.batch_id} and {plain_among('source', (row['source'] for row in ranges))}",
    )
    num, size = landed["num"], landed["size"]
    return {"messages": num, "bytes": size, "offsets_without_a_message": sum(row["num_units"] for row in ranges) - num}


def check_sources(project: Project, batch_id: int, rows: list[dict]) -> None:
    """Raises: ConfigError where inlet.yml does not have all sources of a batch any more."""
    if gone := sorted({row["source"] for row in rows} - set(project.sources)):
        raise ConfigError(
            f"Batch {batch_id} holds files of {', '.join(gone)}, which inlet.yml does not have any more",
            "Put the source back until its files are decoded",
        )
    for row in rows:
        is_range = "topic_id" in json.loads(row.get("context") or "{}")
        if row.get("num_units") and is_range != (project.sources[row["source"]].broker is not None):
            raise ConfigError(
                f"Batch {batch_id} was planned while {row['source']} read {'a broker' if is_range else 'files'}",
                "Put its `from:` back until that batch is landed",
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
    if not files or _append_small(project, has_messages, files, batch_id):
        return
    if not has_messages and (delivered := blocks.read_delivered(project, spark, files)) is not None:
        lake.append(delivered, "bronze.delivered", "inlet-bronze-delivered", batch_id)
    lake.append(read(project, spark, files), f"bronze.{what}", f"inlet-bronze-{what}", batch_id)
    if has_messages:
        own = spark.table("bronze.messages").where(f"batch_id = {batch_id}")
        lookups.land(project, batch_id, files, own)


def _append_small(project: Project, has_messages: bool, files: list[dict], batch_id: int) -> bool:
    """Append the units of a small batch without Spark. Out: False where that was not done."""
    if not small_batches.is_small(project, files):
        return False
    if not has_messages:
        return small_batches.append_blocks(project, files, batch_id)
    if messages.may_repeat(project, files) or not small_batches.append_messages(project, files, batch_id):
        return False
    lookups.land(project, batch_id, files, None)  # what the files bring; no message of them names more
    return True


def _problems_now(project: Project, spark: "SparkSession", files: list[dict]) -> list[dict]:
    """The rows of planned files that are not as planned any more, with their problems. Many or large files are read in
    tasks where these run on other machines."""
    of_brokers = [row for row in files if project.sources[row["source"]].broker]
    others, size_of = [row for row in files if row not in of_brokers], itemgetter("ofs_end")
    if engine.is_apart() and tasks.are_worth(list(map(size_of, others))):
        found = tasks.each(spark, partial(_problems_of, project), tasks.dealt(others, size_of))
        return _problems_of(project, of_brokers) + [problem for problems in found for problem in problems]
    return _problems_of(project, files)


def _problems_of(project: Project, files: list[dict]) -> list[dict]:
    return [problem for row in files if (problem := _problem_now(project, row))]


def _problem_now(project: Project, row: dict) -> dict | None:
    """The row of a planned file with the problem that it has when it is read now; None where it is as planned."""

    if project.sources[row["source"]].broker:
        try:
            kafka.check(project, row)
            return None
        except (TryAgain, EnvironmentLacks) as error:
            problem = as_problem(
                row["ofs_start"], "unreadable_file", "a broker that answers", error.message, error.remedy
            )
            return row | {"problem": problem["problem"]}
        except kafka.NotAsPlanned as error:
            problem = as_problem(
                row["ofs_start"], "file_rewritten", "the range as planned", error.message, "Nothing: it is planned anew"
            )
            return row | {"problem": problem["problem"]}

    def read() -> None:
        for _ in TRANSPORTS[project.sources[row["source"]].transport].units_of(project, row):
            pass

    try:
        apart(read, row["path"])
    except Died as death:
        return row | ends_its_reader(row["ofs_start"], death)
    except FileNotFoundError:
        found = "no file"
    except PermissionError as error:  # it is held by the next plan, until it may be read
        expected, remedy = "a file that may be read, as when it was planned", "See that Inlet may read it"
        return row | as_problem(row["ofs_start"], "unreadable_file", expected, why(error), remedy)
    except (TryAgain, EnvironmentLacks):  # of a store, which says nothing of the file
        raise
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
    return row | rewritten(row["path"], row["ofs_start"], "the file as it was planned", found)


def _set_aside(spark: "SparkSession", row: dict, is_range: bool) -> None:
    """Its time is taken from the row, so that the next run plans the file anew, even one that is back as it was. A
    broker's range keeps its context: it says of which topic nothing was landed yet.
    """
    topic = json.dumps(json.loads(row["context"]) | {"offsets": {}}) if is_range else None
    context, problem = literal(topic) if topic else "null", literal(row["problem"])
    spark.sql(f"""
        update bronze.files
        set modified_at = timestamp'1970-01-01 00:00:00', ofs_end = ofs_start, sha256 = null, num_units = 0,
            context = {context}, start_context = null, verdicts = null, problem = {problem}, cause = '{SET_ASIDE}'
        where batch_id = {row["batch_id"]} and source = {literal(row["source"])} and path = {literal(row["path"])}
          and problem is null""")
