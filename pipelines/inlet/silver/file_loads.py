"""Full loads of files: where each is a load, and where a load is several files, which end with none of them.

A load of several files has ended once all of this holds: its files are numbered without a gap; all that are listed of
it are landed whole, and none of their records is rejected; no later load of the table has begun; and a change of the
table after the load's start is there (option `loads_end: files`: without one). The feed writes no change of a table
before its load is done, and no clock ends a load. Where a file comes later all the same, its rows are part of the load,
and what they bring back is folded again.
"""

import json

from inlet import bronze, change, lake
from inlet.bronze import purged
from inlet.bronze.files import listing, unpacked_name, utc
from inlet.bronze.framing import attempt
from inlet.bronze.history import Place, Reading
from inlet.bronze.plan import is_as_listed
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.errors import FILE_KINDS
from inlet.silver import full_loads
from inlet.silver.batch import Batch, among
from inlet.source import Source
from inlet.sql import literal

Load = tuple[str, str, str]  # source, SCHEMA.TABLE, load_id


def of_files(batch: Batch, units: list[dict]) -> None:
    """Write the ends of loads that this batch brings to their end. In: its units."""
    several = {name for name, source in batch.project.sources.items() if offers(CODECS[source.codec], "load_now")}
    full_loads.of_files(batch, [unit for unit in units if unit["source"] not in several])
    if sources := sorted({unit["source"] for unit in units} & several):
        _of_several(batch, sources)


def _of_several(batch: Batch, sources: list[str]) -> None:
    past, ended_before = bronze.History(batch.project), full_loads.before(batch, full_loads.END)
    rows = [row for source in sources for row in past.of_source(source) if row["batch_id"] <= batch.batch_id]
    loads = _newest(loads_of(batch.project, rows))
    whole = _whole(batch, {load: files for load, files in loads.items() if load not in ended_before})
    if not whole:
        return
    proven = {load for load in whole if _options(batch, load).loads_end == "files"}
    if asked := {load: (f"{load[2]}~", "~") for load in whole - proven}:
        first = min(load_id for *_, load_id in asked)
        changes = batch.spark.sql(
            f"select * from silver.changes where {among(sources)} and operation <> 'REFRESH' and change_seq > '{first}'"
        )
        proven |= full_loads.proven_by(batch, changes, asked)
    last = {row.place: row for row in rows}
    coming = {name: _coming(batch, name, last) for name in {source for source, *_ in proven}}
    ended = sorted(load for load in proven if not _has_more(batch, load, loads[load], coming[load[0]]))
    full_loads.append(
        batch, [(source, *table.split("."), id_, id_.ljust(change.LEN_SEQ, "9")) for source, table, id_ in ended]
    )
    _resolve_gaps(batch, ended, rows)


def _resolve_gaps(batch: Batch, ended: list[Load], rows: list[Reading]) -> None:
    """Gaps in the changes of a table that were found before a load of it began are none any more. In: rows of
    bronze.files."""
    began = {(source, table): load_id[: change.LEN_TIME] for source, table, load_id in ended}
    units = sorted(
        f"{row['source']}/{row['path']}"
        for row in rows
        if purged.is_gap(row)
        and f"{utc(row['landed_at']):%Y%m%d%H%M%S}"
        < began.get((row["source"], json.loads(row["problem"])["table"]), "")
    )
    if units:
        batch.spark.sql(f"""
            update silver.rejects set resolved_by = {batch.batch_id}
            where kind in ({", ".join(map(literal, purged.GAPS))}) and resolved_by is null
              and batch_id < {batch.batch_id} and unit_id in ({", ".join(map(literal, units))})""")


def loads_of(project: Project, rows: list[Reading]) -> dict[Load, dict[str, dict]]:
    """The loads of several files: their files by path, each as its last row of bronze.files, with its `first_batch`.
    In: rows of bronze.files.
    """
    found: dict[Load, dict[str, dict]] = {}
    for row in sorted(rows, key=lambda row: row["batch_id"]):
        if row["problem"] or row["source"] not in project.sources or '"load_id"' not in (row["context"] or ""):
            continue
        codec, context = CODECS[project.sources[row["source"]].codec], json.loads(row["context"])
        if offers(codec, "load_now") and (load_id := codec.load_of(context)):
            files = found.setdefault((row["source"], codec.table_of_load(context), load_id), {})
            first = files.get(row["path"], row | {"first_batch": row["batch_id"]})["first_batch"]
            files[row["path"]] = row | {"context": context, "first_batch": first}
    return found


def _newest(loads: dict[Load, dict[str, dict]]) -> dict[Load, dict[str, dict]]:
    """The newest load of each table."""
    newest: dict[tuple[str, str], str] = {}
    for source, table, load_id in loads:
        newest[source, table] = max(load_id, newest.get((source, table), ""))
    return {load: files for load, files in loads.items() if newest[load[:2]] == load[2]}


def loading(project: Project) -> list[dict]:
    """Loads of several files whose end has not been seen, but for the first one of each table, which closes nothing.
    Read without Spark.
    """
    past = bronze.History(project)
    several = [name for name, source in project.sources.items() if offers(CODECS[source.codec], "load_now")]
    loads = loads_of(project, [row for source in several for row in past.of_source(source)])
    columns = ["source", "source_schema", "source_table", "load_id"]
    rows = lake.peek(
        project.lakehouse_path(), "silver.control_events", columns, f"where kind = '{full_loads.END}'"
    ) if loads else []  # fmt: skip
    ended = {(row["source"], row["load_id"]) for row in rows}
    first = {load[:2]: min(other[2] for other in loads if other[:2] == load[:2]) for load in loads}
    return [
        {
            "source": load[0],
            "table": load[1],
            "load": load[2],
            "in batches": ", ".join(map(str, sorted({row["first_batch"] for row in files.values()}))),
            "ends": "once all its files are landed without rejects, with the table's next change (options.loads_end)",
        }
        for load, files in sorted(loads.items())
        if (load[0], load[2]) not in ended and load[2] != first[load[:2]]
    ]


def _whole(batch: Batch, loads: dict[Load, dict[str, dict]]) -> set[Load]:
    """Those loads whose landed files are whole, without a gap in their numbers and without a rejected record."""
    columns = ["source", "unit_id", "kind", "batch_id", "resolved_by"]
    rejects = (
        lake.peek(batch.project.lakehouse_path(), "silver.rejects", columns, "where resolved_by is null")
        if loads
        else []
    )
    newest: dict[tuple[str, str], int] = {}  # (source, path) -> the last batch that a record of it was rejected in
    for row in rejects:
        if row["kind"] not in FILE_KINDS:
            place = row["source"], row["unit_id"].removeprefix(f"{row['source']}/").rsplit("@", 1)[0]
            newest[place] = max(row["batch_id"], newest.get(place, 0))
    return {
        load
        for load, files in loads.items()
        if all(row["ofs_end"] == row["size_bytes"] and "problem" not in row["context"] for row in files.values())
        and all(newest.get((load[0], path), 0) < row["first_batch"] for path, row in files.items())
        and not CODECS[batch.project.sources[load[0]].codec].missing_files([row["context"] for row in files.values()])
    }


def _options(batch: Batch, load: Load):
    source = batch.project.sources[load[0]]
    return source.options_as(CODECS[source.codec].OPTIONS)


def _coming(batch: Batch, name: str, last: dict[Place, Reading]) -> set[str | None] | None:
    """The owners of files of loads that are listed and not landed as they are; None where they cannot be listed. In:
    the last rows of bronze.files.
    """
    source = batch.project.sources[name]
    try:
        listed = list(listing(batch.project, source))
    except (OSError, ValueError):
        return None
    return {
        _owner(batch, source, path)
        for path, info in listed
        if (row := last.get((name, path))) is None or row["problem"] or not is_as_listed(row, info)
    }


def _has_more(batch: Batch, load: Load, files: dict[str, dict], coming: set[str | None] | None) -> bool:
    """May more of a load be listed than is landed?"""
    return coming is None or _owner(batch, batch.project.sources[load[0]], next(iter(files))) in coming


def _owner(batch: Batch, source: Source, path: str) -> str | None:
    codec = CODECS[source.codec]
    if not isinstance(attempt(codec.companions, path, source), list):
        return None
    found = attempt(codec.own_place, unpacked_name(path), source, batch.project.tables_of(source))
    return found[1] if isinstance(found, tuple) else None
