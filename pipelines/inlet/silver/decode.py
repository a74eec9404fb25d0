"""Silver: units become changes and rejects, and nothing goes missing between.

One bronze batch is one silver batch. Its parts are written in this order: changes, then what is not a change (rejects,
control events), transactions, table versions, and last its lines in the ledger `silver.batches`, which make the batch
visible to gold. A batch without its lines begins from nothing, whatever was written of it (recover.py). Before its
lines are written the conservation law must hold, on what was *stored*, source by source:

    records landed + settled = changes + repeats + control + rejected + waiting
    bytes landed + settled = decoded + repeated + framing + rejected + waiting

A unit that its decoder fails on (guard.py) is one record, whatever it holds.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inlet import bronze, checks, lake
from inlet.bronze.guard import said_by_worker
from inlet.bronze.history import REREAD, Reading
from inlet.config import Project
from inlet.errors import FILE_KINDS, AccountingError, InletError
from inlet.lake import spark_errors
from inlet.lake.spark import small_query_settings
from inlet.silver import (
    blocks,
    change_table_view,
    header_views,
    messages,
    parts,
    recover,
    redelivered,
    replayed,
    resent,
    small_batches,
    table_versions,
    transactions,
    unread_files,
)
from inlet.silver.batch import Account, Batch, among
from inlet.sql import plain_among
from inlet.table import by_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_BYTES = 8 << 20  # a batch up to which planning costs more than decoding


def pending(project: Project) -> list[int]:
    """Batches in bronze that the ledger does not have yet, oldest first. Read without Spark."""
    return bronze.History(project).unfinished()


def run(project: Project, spark: "SparkSession", batch_id: int, tell=lambda doing: None) -> dict[str, Account]:
    """Decode one bronze batch. In: a function told what is being done. Out: the accounts by source. Raises:
    AccountingError; then gold does not see the batch of the source that it names, and the other sources of the batch
    are done."""
    past = bronze.History(project)
    undecoded = past.undecoded()
    sources = sorted(source for batch, source in undecoded if batch == batch_id)
    if not sources:
        raise InletError(f"Batch {batch_id} is not one that waits for silver", "`inlet status` names those that do")
    files, replays = past.of_batch(batch_id), past.replays_of(batch_id)
    check_ledger(project, batch_id, [*files, *replays])
    bronze.check_sources(project, batch_id, [*files, *replays])
    table_versions.check(project)
    held = {
        source: batch for batch, source in sorted(undecoded, reverse=True) if batch < batch_id and source in sources
    }
    ready, failed = [source for source in sources if source not in held], {}
    if held:
        _decode_apart(
            project, batch_id, {source: f"batch {before} of the source is not whole" for source, before in held.items()}
        )
    size = sum(project.size_of(row) for row in files) + sum(row["unit_length"] for row in replays)
    with small_query_settings(spark, is_small=size <= SMALL_BYTES):
        try:
            accounts = _decode(project, spark, batch_id, ready, files, replays, tell) if ready else {}
        except AccountingError as error:
            if len(ready) == 1:
                raise
            _decode_apart(project, batch_id, dict.fromkeys(ready, error.message))
            accounts = {}
            for source in ready:
                try:
                    accounts |= _decode(project, spark, batch_id, [source], files, replays, tell)
                except AccountingError as own:
                    recover.run(project, spark, batch_id, among([source]))
                    failed[source] = own
    if failed:
        first = next(iter(failed.values()))
        raise AccountingError(
            f"{', '.join(failed)} stopped, the other sources of batch {batch_id} went on: {first.message}", first.remedy
        ) from first
    if held:
        raise AccountingError(
            f"{', '.join(held)} waits: batch {min(held.values())} of it is not whole", "Fix what that batch says first"
        )
    return accounts


def _decode(
    project: Project,
    spark: "SparkSession",
    batch_id: int,
    sources: list[str],
    files: list[Reading],
    replays: list[dict],
    tell,
) -> dict[str, Account]:
    """Decode what a batch holds of some sources; where a worker dies, once more with each try in a process of its
    own.
    """
    files = [row for row in files if row["source"] in sources]
    replays = [row for row in replays if row["source"] in sources]
    try:
        return _run(project, spark, batch_id, files, replays, tell)
    except spark_errors.errors() as error:
        if said := said_by_worker(error):  # a person has to fix something, and a second try fails, too
            raise said from error
        if not any(word in str(error) for word in ("Python worker", "PythonException")):
            raise
    return _run(project, spark, batch_id, files, replays, tell, is_apart=True)


def _decode_apart(project: Project, batch_id: int, why: dict[str, str]) -> None:
    """Note that sources of a batch come into the ledger one by one, or later. In: why, by source."""
    now = datetime.now(UTC)
    rows = [{"source": s, "batch_id": batch_id, "why": words, "stopped_at": now} for s, words in why.items()]
    lake.add_rows(project.lakehouse_path(), "silver.stopped", rows)


def check_ledger(project: Project, batch_id: int, files: Sequence[dict]) -> None:
    """All lines of a batch are one commit, but for sources that are decoded apart. Where others are missing somebody
    took them, and recovery would take what gold has read."""
    columns, of_batch = ["batch_id", "source"], f"where batch_id = {batch_id}"
    whole, apart = (
        {row["source"] for row in lake.peek(project.lakehouse_path(), table, columns, of_batch)}
        for table in ("silver.batches", "silver.stopped")
    )
    if whole and (lacking := sorted({row["source"] for row in files} - whole - apart)):
        raise InletError(
            f"The ledger has batch {batch_id} for {', '.join(sorted(whole))} and not for {', '.join(lacking)}",
            "Restore silver.batches to the version that has all of its lines",
        )


def _run(
    project: Project,
    spark: "SparkSession",
    batch_id: int,
    files: list[Reading],
    replays: list[dict],
    tell,
    is_apart: bool = False,
) -> dict[str, Account]:
    batch = Batch(spark, project, batch_id, sorted({row["source"] for row in [*files, *replays]}), is_apart)
    batch.again = {row.place: row for row in files if row.cause == REREAD}
    recover.run(project, spark, batch_id, among(batch.sources))
    for source in batch.sources:
        batch.account(source)
    landed = [] if replays else files  # of a replay they say only what was framed again
    of_files, of_messages = (
        sorted({row["source"] for row in bronze.Plan(batch_id, [*landed]).of(has_messages, project)})
        for has_messages in (False, True)
    )
    redelivered.resolve(batch)
    written = small_batches.write(batch, landed) if landed else set()
    of_files, of_messages = ([name for name in names if name not in written] for names in (of_files, of_messages))
    if of_files:
        tell(f"decoding files of {', '.join(of_files)}")
        blocks.run(batch, of_files, files)
    if of_messages:
        tell(f"decoding messages of {', '.join(of_messages)}")
        messages.run(batch, of_messages)
    if replays:
        tell(f"decoding {len(replays)} rejects again")
        replayed.run(batch, replays, files)
    unread_files.reject(batch, landed)
    unread_files.resolve(batch, landed)
    if landed:
        parts.reject_overdue(batch, max(row["landed_at"] for row in landed))
    tell("counting what is stored")
    _count_stored(batch)
    if replays:
        replayed.account(batch)
    for source, account in batch.accounts.items():
        account.balance(source, batch_id)
    if landed:
        resent.resolve(batch)
        resent.resolve_renamed(batch, landed)
    tell("following transactions")
    transactions.follow(batch)
    _table_versions(batch)
    codecs = {project.sources[source].codec for source in batch.sources}
    header_views.write(spark, codecs)
    change_table_view.write(spark, codecs)
    _close(batch)
    return batch.accounts


def _count_stored(batch: Batch) -> None:
    """Count what is in the tables, not what was meant to be written."""
    lakehouse, own = batch.project.lakehouse_path(), f"where {batch.stored}"
    size, span = "sum(unit_length) as size", ["min(change_seq) as low", "max(change_seq) as high"]
    table = ["source", "source_schema", "source_table"]
    columns = [*table, "table_version", "count(*) as n", size, *span]
    of_tables = f"{own} group by source, source_schema, source_table"
    for row in lake.peek(lakehouse, "silver.changes", columns, f"{of_tables}, table_version"):
        account = batch.account(row["source"])
        account.num_changes += row["n"]
        account.bytes_decoded += row["size"]
        account.versions.add((account.note(row), row["table_version"]))
    of_loads = "and kind in ('empty_load', 'load_end') and change_seq is not null"
    for row in lake.peek(
        lakehouse,
        "silver.control_events",
        [*table, *span],
        f"{own} {of_loads} group by source, source_schema, source_table",
    ):
        batch.account(row["source"]).note(row)
    is_record = f"unit_length > 0 or not {plain_among('kind', FILE_KINDS)}"
    columns = ["source", f"count(*) filter (where {is_record}) as n", size]
    for row in lake.peek(lakehouse, "silver.rejects", columns, f"{own} group by source"):
        account = batch.account(row["source"])
        account.num_rejected, account.bytes_rejected = row["n"], row["size"]
    columns = ["source", "is_settled", "count(*) filter (where unit_length > 0) as n", size]
    for row in lake.peek(lakehouse, "silver.waiting", columns, f"{own} group by source, is_settled"):
        account = batch.account(row["source"])
        if row["is_settled"]:
            account.num_settled += row["n"]
            account.bytes_settled += row["size"]
        else:
            account.num_waiting += row["n"]
            account.bytes_waiting += row["size"]


def _table_versions(batch: Batch) -> None:
    """Keep the column lists that changes of this batch were read by."""
    tables, known = by_name(batch.project.tables.values()), table_versions.used(batch.project)
    rows = []
    for source, (name, number) in [
        (source, place) for source, account in batch.accounts.items() for place in sorted(account.versions)
    ]:
        if (source, name, number) not in known:
            version = next(v for v in tables[name].versions if v.version == number)
            listed = [{"name": c.name, "type": c.type, "nullable": c.nullable} for c in version.columns]
            schema, table = name.split(".")
            row = {"source": source, "source_schema": schema, "source_table": table, "table_version": number}
            row |= {"columns": json.dumps(listed), "origin": "contract", "batch_id": batch.batch_id}
            rows.append(row | {"decoded_at": datetime.now(UTC)})
    if rows:
        lake.add_rows(batch.project.lakehouse_path(), "silver.table_versions", rows)


def _close(batch: Batch) -> None:
    of_batch = {"batch_id": batch.batch_id, "finished_at": checks.next_moment(batch.project, "silver")}
    rows = [
        vars(account) | of_batch | {"source": source, "codec": batch.project.sources[source].codec}
        for source, account in sorted(batch.accounts.items())
    ]
    lake.add_rows(batch.project.lakehouse_path(), "silver.batches", rows)
