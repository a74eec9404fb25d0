"""Full loads of files: where each is a load, and where a load is several files, which end with none of them.

A load of several files has ended once all of this holds: its files are numbered without a gap; all that are listed of
it are landed whole, and none of their records is rejected; no later load of the table has begun; and a change of the
table after the load's start is there (option `loads_end: files`: without one). The feed writes no change of a table
before its load is done, and no clock ends a load. Where a file comes later all the same, its rows are part of the load,
and what they bring back is folded again.
"""

import json

from inlet import bronze, lake
from inlet.bronze.files import listing
from inlet.bronze.framing import attempt
from inlet.bronze.plan import is_as_listed
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.errors import FILE_KINDS
from inlet.silver import full_loads
from inlet.silver.batch import Batch, among
from inlet.source import Source

Load = tuple[str, str, str]  # source, SCHEMA.TABLE, load_id
END_OF_SEQ = 35  # digits of a change_seq


def of_files(batch: Batch, units: list[dict]) -> None:
    """Write the ends of loads that this batch brings to their end. In: its units."""
    several = {name for name, source in batch.project.sources.items() if offers(CODECS[source.codec], "load_now")}
    full_loads.of_files(batch, [unit for unit in units if unit["source"] not in several])
    if sources := sorted({unit["source"] for unit in units} & several):
        _of_several(batch, sources)


def _of_several(batch: Batch, sources: list[str]) -> None:
    rows = [
        row for row in bronze.landed(batch.project) if row["source"] in sources and row["batch_id"] <= batch.batch_id
    ]
    loads = _newest(batch, rows)
    pending = {load: files for load, files in loads.items() if load not in full_loads.before(batch, full_loads.END)}
    whole = {load for load, files in pending.items() if _is_whole(batch, load, files)}
    if not whole:
        return
    proven = {load for load in whole if _options(batch, load).loads_end == "files"}
    if asked := {load: (f"{load[2]}~", "~") for load in whole - proven}:
        changes = batch.spark.sql(f"select * from silver.changes where {among(sources)} and operation <> 'REFRESH'")
        proven |= full_loads.proven_by(batch, changes, asked)
    last = {(row["source"], row["path"]): row for row in sorted(rows, key=lambda row: row["batch_id"])}
    ended = sorted(load for load in proven if not _is_more_listed(batch, load, loads[load], last))
    full_loads.append(
        batch, [(source, *table.split("."), id_, id_.ljust(END_OF_SEQ, "9")) for source, table, id_ in ended]
    )


def _newest(batch: Batch, rows: list[dict]) -> dict[Load, dict[str, dict]]:
    """The newest load of each table: its files by path, each as its last row of bronze.files, with its `first_batch`.
    In: rows of bronze.files."""
    found: dict[Load, dict[str, dict]] = {}
    for row in sorted(rows, key=lambda row: row["batch_id"]):
        if row["problem"] or '"load_id"' not in (row["context"] or ""):
            continue
        codec, context = CODECS[batch.project.sources[row["source"]].codec], json.loads(row["context"])
        if load_id := codec.load_of(context):
            files = found.setdefault((row["source"], codec.table_of_load(context), load_id), {})
            first = files.get(row["path"], row | {"first_batch": row["batch_id"]})["first_batch"]
            files[row["path"]] = row | {"context": context, "first_batch": first}
    newest: dict[tuple[str, str], str] = {}
    for source, table, load_id in found:
        newest[source, table] = max(load_id, newest.get((source, table), ""))
    return {load: files for load, files in found.items() if newest[load[:2]] == load[2]}


def _is_whole(batch: Batch, load: Load, files: dict[str, dict]) -> bool:
    """Are the files that are landed of a load whole, without a gap and without a rejected record?"""
    contexts = [row["context"] for row in files.values()]
    if any(row["ofs_end"] != row["size_bytes"] or "problem" in row["context"] for row in files.values()):
        return False
    if CODECS[batch.project.sources[load[0]].codec].missing_files(contexts):
        return False
    columns = ["source", "unit_id", "kind", "batch_id", "resolved_by"]
    rejects = lake.peek(batch.project.lakehouse_path(), "silver.rejects", columns)
    return not any(
        row["resolved_by"] is None
        and row["source"] == load[0]
        and row["kind"] not in FILE_KINDS
        and (file := files.get(row["unit_id"].removeprefix(f"{load[0]}/").rsplit("@", 1)[0]))
        and row["batch_id"] >= file["first_batch"]
        for row in rejects
    )


def _options(batch: Batch, load: Load):
    source = batch.project.sources[load[0]]
    return source.options_as(CODECS[source.codec].OPTIONS)


def _is_more_listed(batch: Batch, load: Load, files: dict[str, dict], last: dict[tuple[str, str], dict]) -> bool:
    """Is a file of the load's folder listed that is not landed as it is now? In: the files of the load that are landed;
    the last rows of bronze.files.
    """
    source = batch.project.sources[load[0]]
    owner = _owner(batch, source, next(iter(files)))
    try:
        listed = [(path, info) for path, info in listing(batch.project, source) if _owner(batch, source, path) == owner]
    except (OSError, ValueError):  # what cannot be listed may hold more
        return True
    return any(
        (row := last.get((source.name, path))) is None or row["problem"] or not is_as_listed(row, info)
        for path, info in listed
    )


def _owner(batch: Batch, source: Source, path: str) -> str | None:
    codec = CODECS[source.codec]
    if not isinstance(attempt(codec.companions, path, source), list):
        return None
    found = attempt(codec.own_place, bronze.files.unpacked_name(path), source, batch.project.tables_of(source))
    return found[1] if isinstance(found, tuple) else None
