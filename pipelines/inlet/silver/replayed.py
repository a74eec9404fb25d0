"""A batch that decodes again what was rejected, after a contract, an option or a codec was fixed.

Its changes stand at their place in the order, however late; what fails again is a reject of this batch. The rejects
that it replaces say so (`resolved_by`). A record that could not be told apart before (a whole unit was rejected) may be
many now, so a replay counts the records that come out; bytes are held equal to those of the rejects.
"""

from collections.abc import Sequence

from inlet.bronze.history import History
from inlet.bronze.rests import pieces, rests
from inlet.codecs import CODECS
from inlet.errors import AccountingError
from inlet.silver import blocks, file_loads, messages
from inlet.silver.batch import Batch, among


def run(batch: Batch, replays: list[dict], files: Sequence[dict]) -> None:
    """Decode the units of rejects again, and mark the rejects. In: the batch's rows of bronze.replays, and of
    bronze.files: of what was framed again.
    """
    sources = {row["source"] for row in replays}
    units: list[dict] = []
    framed = {row["unit_id"] for row in pieces(batch.project, {row["unit_id"] for row in replays})}
    _check_framed(batch, {row["unit_id"] for row in replays})
    for name in sorted({batch.project.sources[source].codec for source in sources}):
        own = [row for row in replays if batch.project.sources[row["source"]].codec == name]
        rows = [row for row in own if not batch.project.sources[row["source"]].brings_messages]
        if rows:
            units += blocks.replay(
                batch,
                CODECS[name],
                sorted({row["source"] for row in rows}),
                [row for row in rows if row["unit_id"] not in framed],
                files,
            )
        if rows := [row for row in own if batch.project.sources[row["source"]].brings_messages]:
            messages.replay(batch, CODECS[name], rows)
    for row in replays:
        if row["unit_id"] not in framed:
            account = batch.account(row["source"])
            account.bytes_settled += row["unit_length"]
    _mark(batch)
    if units:
        file_loads.of_files(batch, units)


def _check_framed(batch: Batch, units: set[str]) -> None:
    """All bytes that could not be framed, and that no earlier batch has framed, are in the blocks of this one. Raises:
    AccountingError.
    """
    rows = batch.spark.sql(f"""
        select source, path, sum(size_bytes) as size_bytes from bronze.blocks where {batch.rows}
        group by source, path""").collect()
    sizes = {(row.source, row.path): row.size_bytes for row in rows}
    for (source, path), rest in rests(batch.project, History(batch.project), units, batch.batch_id).items():
        if source in batch.sources and sizes.get((source, path), 0) != rest.size_bytes:
            raise AccountingError(
                f"batch {batch.batch_id} of {source}: {rest.size_bytes} bytes of {path} were to be framed again, "
                f"{sizes.get((source, path), 0)} are",
                "Nothing of it is visible to gold. Please report it with bronze.replays and bronze.files",
            )


def account(batch: Batch) -> None:
    """The records of rejects are as many as have come out of them: a unit that was rejected whole is many. Bytes are
    what is held equal.
    """
    for of_source in batch.accounts.values():
        of_source.num_settled = (
            of_source.num_changes
            + of_source.num_repeats
            + of_source.num_control
            + of_source.num_rejected
            + of_source.num_waiting
            - of_source.num_records
        )


def _mark(batch: Batch) -> None:
    batch.spark.sql(f"""
        merge into silver.rejects r using (
            select distinct source as s, unit_id as u, unit_offset as o, rejected_in as b
            from bronze.replays where batch_id = {batch.batch_id}) p
        on {among(batch.sources)} and r.source = p.s and r.unit_id = p.u and r.unit_offset = p.o and r.batch_id = p.b
        when matched then update set resolved_by = {batch.batch_id}""")
