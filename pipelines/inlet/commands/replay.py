"""`inlet replay`: decode again what was rejected, from the bytes that bronze keeps, after a contract, an option or a
codec was fixed; or take a file anew that was landed damaged, and is delivered again under its name.

Rejects that only wait for a contract are replayed by the next `inlet run` after their table's contract has changed;
those that wait for something of the feed, such as a column list or another part, by the run that brings it.
"""

import json
from typing import TYPE_CHECKING

from inlet import bronze, lake, silver
from inlet.bronze import lookups, replay
from inlet.bronze.companions import companions_of
from inlet.bronze.files import listing
from inlet.bronze.history import REREAD
from inlet.bronze.redelivered import Redelivered
from inlet.bronze.rests import rests
from inlet.config import Project
from inlet.errors import FILE_KINDS, ConfigError
from inlet.silver import closed_rejects, parts, table_versions
from inlet.silver.decoded import IGNORED
from inlet.sql import literal, plain_among
from inlet.table import by_name, fingerprint
from inlet.unit import place_in_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LACKS_NAME = "definition_missing"  # also where what a message names was not there
WAIT_FOR_A_CONTRACT = (
    "definition_missing",
    "definition_differs",
    "unknown_table",
    "unknown_extraction_id",
    "unknown_column",  # these three are what a column that was added at the source makes
    "mask_too_long",
    "bad_column_count",
)
PLACE = [
    "source",
    "source_schema",
    "source_table",
    "kind",
    "unit_id",
    "unit_offset",
    "unit_length",
    "byte_offset",
    "batch_id",
    "resolved_by",
    "contract",
]


def unresolved(
    project: Project,
    source: str | None = None,
    kind: str | None = None,
    batch: int | None = None,
    unit: str | None = None,
) -> list[dict]:
    """Rejects that no later run has decoded again and no person has closed, of whole batches, without their bytes; and
    whose bytes bronze has. Read without Spark.
    """
    rows = [
        r
        for r in _unresolved(project)
        if source in (None, r["source"])
        and kind in (None, r["kind"])
        and batch in (None, r["batch_id"])
        and unit in (None, r["unit_id"])
    ]
    return _not_closed(project, rows)


def _unresolved(project: Project) -> list[dict]:
    """As `unresolved`, with the closed ones."""
    rejects = lake.peek(project.lakehouse_path(), "silver.rejects", PLACE, "where resolved_by is null")
    rows = [*rejects, *_wanted_now(project)]
    return _of_whole_batches(project, rows)


def _not_closed(project: Project, rejects: list[dict]) -> list[dict]:
    closed = closed_rejects.closings(project) if rejects else {}
    return [row for row in rejects if closed_rejects.key(row) not in closed]


def _of_whole_batches(project: Project, rejects: list[dict]) -> list[dict]:
    """Rejects that no later run has decoded again, of batches that the ledger has, and whose bytes were landed."""
    whole = _decoded(project, rejects)
    return [
        r
        for r in rejects
        if r["resolved_by"] is None
        and (r["unit_length"] or r["kind"] not in FILE_KINDS)
        and r["source"] in project.sources
        and (r["source"], r["batch_id"]) in whole
    ]


def _wanted_now(project: Project) -> list[dict]:
    """Records that were ignored, of tables that are wanted now and have a contract, but for those of files as they were
    before they were read again. As rejects of kind `ignored`.
    """
    rows = lake.peek(
        project.lakehouse_path(),
        "silver.control_events",
        [*(name for name in PLACE if name not in ("byte_offset", "resolved_by", "contract")), "detail"],
        f"where kind = '{IGNORED}'",
    )
    past, files = bronze.History(project), [row["unit_id"].rsplit("@", 1)[0] for row in rows]
    replayed = {_key(row, "rejected_in") for row in past.replays()} if rows else set()
    paths = {file.removeprefix(f"{row['source']}/") for row, file in zip(rows, files)}
    readings = past.of_files({row["source"] for row in rows}, paths)
    anew = {(r["source"], f"{r['source']}/{r['path']}"): r["batch_id"] for r in readings if r.cause == REREAD}
    return [
        row
        | {
            "byte_offset": None,
            "resolved_by": None,
            "contract": None,
            "num_records": json.loads(row["detail"])["records"],
        }
        for row in rows
        if _key(row, "batch_id") not in replayed
        and row["batch_id"] >= anew.get((row["source"], row["unit_id"].rsplit("@", 1)[0]), 0)
        and row["source"] in project.sources
        and f"{row['source_schema']}.{row['source_table']}" in project.tables_of(project.sources[row["source"]])
    ]


def due(project: Project, sources: list[str], asks: bool = True) -> list[dict]:
    """Rejects that wait for a contract, whose table has one that is not what it was; of no known table, whose source
    maps its names otherwise; records whose end was lacking, where more of their files has come; and parts of changes
    that were rejected because the others had not come, and of whose others one has. A source with a batch that is not
    decoded yet waits for the next run. In: whether addresses are asked for what messages lacked.
    """
    prints = {name: fingerprint(table) for name, table in by_name(project.tables.values()).items()}
    rows = lake.peek(
        project.lakehouse_path(),
        "silver.rejects",
        PLACE,
        f"where kind in ({', '.join(map(literal, WAIT_FOR_A_CONTRACT))}) and resolved_by is null",
    )

    def now(row: dict) -> str | None:
        if row["source_table"] is None:
            return project.sources[row["source"]].mapping
        return prints.get(f"{row['source_schema']}.{row['source_table']}")

    changed = [row for row in rows if row["source"] in sources and now(row) not in (None, row["contract"])]
    asked = [name for name in sources if asks and lookups.needs_any(project.sources[name])]
    arrived = lookups.arrived(project, asked)
    changed += [r for r in rows if r["kind"] == LACKS_NAME and (r["source"], r["batch_id"]) in arrived]
    brought = lookups.newest(project) if rows else {}
    changed += [r for r in rows if r["kind"] == LACKS_NAME and r["batch_id"] < brought.get(r["source"], -1)]
    changed = [row for row in changed if row["source"] in sources]
    changed += _grown(project, sources)
    back = parts.returning(project)
    changed += [
        row
        for row in lake.peek(
            project.lakehouse_path(), "silver.rejects", PLACE, f"where kind = '{parts.MISSING}' and resolved_by is null"
        )
        if row["source"] in sources and (row["source"], row["unit_id"], row["unit_offset"]) in back
    ]
    busy = {source for _, source in bronze.History(project).undecoded()} if changed else set()
    found = _not_closed(project, _of_whole_batches(project, changed))
    found = [row for row in found if row["source"] not in busy]
    gone = _gone(project, found)
    found = [row for row in found if row["unit_id"] not in gone and not _was_landed_otherwise(project, row)]
    found, parts_of_rests = _with_rests(project, found)
    return [row for row in found if row["unit_id"] not in parts_of_rests]


def _was_landed_otherwise(project: Project, row: dict) -> bool:
    """Was a unit landed as a piece of a file, though its source brings messages now, or the other way round?"""
    is_of_file = place_in_file(row["source"], row["unit_id"]) is not None
    return is_of_file == project.sources[row["source"]].brings_messages


def _grown(project: Project, sources: list[str]) -> list[dict]:
    """Rejects of records whose end was lacking, of files of which more has come since."""
    cut = lake.peek(
        project.lakehouse_path(), "silver.rejects", PLACE, "where kind = 'truncated' and resolved_by is null"
    )
    cut = [row for row in cut if row["source"] in sources]
    found = rests(project, bronze.History(project), {row["unit_id"] for row in cut}) if cut else {}
    units = [rest.units for rest in found.values() if len({piece["batch_id"] for piece in rest.pieces}) > 1]
    return [row for row in cut if any(row["unit_id"] in of_rest for of_rest in units)]


def plan(project: Project, spark: "SparkSession", rejects: list[dict]) -> int:
    """Write the plan of a batch that decodes these rejects again, and frame again what could not be framed. Out: the
    batch. Raises: ConfigError where a source does not read what it has landed as it was landed.
    """
    if otherwise := [row for row in rejects if _was_landed_otherwise(project, row)]:
        source, unit_id = otherwise[0]["source"], otherwise[0]["unit_id"]
        kinds = (
            ("a record of a file", "messages") if project.sources[source].brings_messages else ("a message", "files")
        )
        raise ConfigError(
            f"{unit_id} was landed as {kinds[0]}, and {source} reads {kinds[1]} now (its `from`)",
            "Deliver the file under another name, for `inlet run` to read it so; or set `from` back",
        )
    batch_id = bronze.History(project).next_batch
    replay.plan(project, rejects, batch_id)
    bronze.frame_again(project, spark, batch_id)
    return batch_id


def file_anew(project: Project, file: str, source: str | None) -> Redelivered | None:
    """What reads a file again that was delivered anew; None where a batch that does so is planned, and the next run
    decodes it. In: its path or address; the source, where several read it.

    Raises: what `bronze.plan_again` raises; ConfigError where an earlier batch is not decoded yet.
    """
    table_versions.check(project)
    found, pending = bronze.plan_again(project, file, source), silver.pending(project)
    if found.plan is None:
        readings = bronze.History(project).of_files(project.sources, [found.path])
        if any(row.cause == REREAD and row["batch_id"] in pending for row in readings):
            return None
        raise ConfigError(
            f"{found.path} is as it was landed: there is nothing to take anew",
            "`inlet replay` decodes what was rejected of it again; or put the good file in its place",
        )
    if pending:
        raise ConfigError(
            f"Batch {pending[0]} is not decoded yet, and may change what is known of {found.path}",
            "`inlet run` finishes it, then `inlet replay --file` again",
        )
    return found


def not_landed(project: Project, path: str) -> list[str]:
    """Files of the sources that have landed this one of which nothing is landed. They are listed, and not looked into:
    some may wait for others, or for their end."""
    past, found = bronze.History(project), list[str]()
    for name in sorted({row["source"] for row in past.of_files(project.sources, [path])}):
        source = project.sources[name]
        listed = [file for file, _ in listing(project, source) if companions_of(source, file) is not None]
        landed = {row["path"] for row in past.of_files([name], listed)}
        found += [file for file in listed if file not in landed]
    return found


def _with_rests(project: Project, rejects: list[dict]) -> tuple[list[dict], dict[str, str]]:
    """These rejects, and where they are a piece of a file that could not be framed the other pieces of that file: they
    are framed together. With the units of files of which silver has not decoded all pieces yet, and the file of each.
    """
    if not rejects:
        return [], {}
    units = {row["unit_id"] for row in rejects}
    everything = {row["unit_id"]: row for row in _unresolved(project)}  # closed ones, too: a file is framed as a whole
    found, lacking, undecoded = dict.fromkeys(everything, False), {}, bronze.History(project).undecoded()
    for (source, path), rest in rests(project, bronze.History(project), units | everything.keys()).items():
        if units.isdisjoint(rest.units):
            continue
        found |= dict.fromkeys(rest.units, True)
        if not rest.is_whole or any((piece["batch_id"], source) in undecoded for piece in rest.pieces):
            lacking |= dict.fromkeys(rest.units, path)
    return rejects + [row for unit, row in everything.items() if found[unit] and unit not in units], lacking


def chosen(project: Project, source: str | None, kind: str | None, batch: int | None, unit: str | None) -> list[dict]:
    """The rejects to replay, but for those that a batch has planned and the next run decodes; [] where all of them are.

    Raises: ConfigError where there is none, where bytes are gone, or where a contract cannot be followed.
    """
    table_versions.check(project)
    rows = unresolved(project, source, kind, batch, unit)
    under_way = _under_way(project)
    if rows and all(_key(row, "batch_id") in under_way for row in rows):
        return []
    rows = [row for row in rows if _key(row, "batch_id") not in under_way]
    if not rows:
        filters = ", ".join(
            f"{name} {value}"
            for name, value in (("source", source), ("kind", kind), ("batch", batch), ("unit", unit))
            if value is not None
        )
        raise ConfigError(
            f"There is no reject to decode again{' of ' + filters if filters else ''}",
            "`inlet rejects` lists them; closed ones are opened first, by `inlet rejects --reopen`. Files that could "
            "not be read at all are read again once they are delivered again, those that were landed damaged by "
            "`inlet replay --file PATH`",
        )
    if gone := sorted(_gone(project, rows)):
        raise ConfigError(
            f"Bronze does not hold {gone[0]} any more{f' and {len(gone) - 1} other units' if len(gone) > 1 else ''}",
            "Restore bronze, or name what to replay with --source, --kind, --batch or --unit",
        )
    rows, lacking = _with_rests(project, rows)
    if lacking:
        raise ConfigError(
            f"{next(iter(lacking.values()))} could not be framed, and silver has not decoded all that is landed of it",
            "`inlet run` does, then replay; or name something else with --source, --kind, --batch or --unit",
        )
    return rows


def _under_way(project: Project) -> set[tuple]:
    """The rejects that a batch is to decode again which is not in the ledger yet."""
    past = bronze.History(project)
    undecoded = past.undecoded()
    return {
        _key(row, "rejected_in")
        for row in past.replays({batch for batch, _ in undecoded})
        if (row["batch_id"], row["source"]) in undecoded
    }


def _decoded(project: Project, rejects: list[dict]) -> set[tuple[str, int]]:
    """(source, batch) of the ledger, of the batches of rejects."""
    if not rejects:
        return set()
    batches = ", ".join(str(batch) for batch in sorted({row["batch_id"] for row in rejects}))
    of_batches = f"where batch_id in ({batches})"
    ledger = lake.peek(project.lakehouse_path(), "silver.batches", ["source", "batch_id"], of_batches)
    return {(row["source"], row["batch_id"]) for row in ledger}


def _key(row: dict, rejected_in: str) -> tuple:
    return row["source"], row["unit_id"], row["unit_offset"], row[rejected_in]


def _gone(project: Project, rejects: list[dict]) -> set[str]:
    """The units of rejects that bronze does not hold any more."""
    units = {row["unit_id"] for row in rejects}
    if not units:
        return units
    among = f"where {plain_among('unit_id', units)}"
    tables = ("bronze.blocks", "bronze.messages")
    return units - {
        row["unit_id"] for table in tables for row in lake.peek(project.lakehouse_path(), table, ["unit_id"], among)
    }
