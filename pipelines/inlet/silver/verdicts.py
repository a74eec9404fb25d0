"""What of the blocks of a source stands, what its writer gave up, and what waits until the feed says which.

Bronze finds verdicts while it frames (`bronze.files.verdicts`): a restart is known only after the records that it
concerns, maybe in a later file and batch. Silver decodes a range in the batch that brings its verdict; until then its
records wait in bronze. Blocks are decoded whole and in parallel; what lies outside the ranges that are judged now is
left out.
"""

import json
from collections.abc import Sequence

from inlet.bronze.blocks import stored
from inlet.codecs.results import ABANDONED, STANDS, Decoded
from inlet.errors import AccountingError
from inlet.silver.batch import Batch
from inlet.sql import plain_among

GIVEN_UP = ABANDONED  # kind of a control event: its writer gave up this range, and wrote it again where it was needed


def judged_units(batch: Batch, landed: list[dict], files: Sequence[dict]) -> list[dict]:
    """The units to decode: those of this batch, and earlier ones that it judges; with `ranges` [first byte, end,
    verdict] where a source's feed judges. In: units of this batch; its rows of bronze.files."""
    ranges: dict[tuple, list[list]] = {}
    for row in files:
        for path, start, end, _, landed_by, verdict in json.loads(row["verdicts"] or "[]"):
            ranges.setdefault((row["source"], path, landed_by), []).append([start, end, verdict])
    judged = {(row["source"], row["path"]) for row in files if row["verdicts"] is not None}
    if not judged:
        return landed
    units, earlier = list(landed), sorted({landed_by for *_, landed_by in ranges} - {batch.batch_id})
    if earlier:
        of_sources = plain_among("source", (source for source, _ in judged))
        where = f"batch_id in ({', '.join(map(str, earlier))}) and {of_sources}"
        units += [unit | {"load_id": None} for unit in stored(batch.project, where)]
    found = []
    for unit in units:
        start, size = unit["file_offset"], unit["size_bytes"]
        if unit["batch_id"] == batch.batch_id and (unit["source"], unit["path"]) not in judged:
            found.append(unit | {"ranges": [[0, size, STANDS]]})
            continue
        own = [
            [max(low - start, 0), min(high - start, size), verdict]
            for low, high, verdict in ranges.get((unit["source"], unit["path"], unit["batch_id"]), [])
            if low < start + size and high > start
        ]
        found += [unit | {"ranges": own}] if own else []
    return found


def stands(ranges: list[list], offset: int) -> bool:
    """Does a record stand? In: judged ranges of its unit."""
    return any(start <= offset < end and verdict == STANDS for start, end, verdict in ranges)


def rejected_ranges(replays: list[dict]) -> dict[str, list[list]]:
    """The rejected ranges of each unit. In: rows of bronze.replays."""
    ranges: dict[str, list[list]] = {}
    for row in replays:
        ranges.setdefault(row["unit_id"], []).append(
            [row["unit_offset"], row["unit_offset"] + row["unit_length"], STANDS]
        )
    return ranges


def rejected_units(batch: Batch, replays: list[dict]) -> list[dict]:
    """The units of rejects, with the rejected ranges. In: rows of bronze.replays."""
    ranges = rejected_ranges(replays)
    if not ranges:
        return []
    units = stored(batch.project, plain_among("unit_id", ranges))
    of_replay = {"load_id": None, "is_again": True}
    return [unit | of_replay | {"ranges": sorted(ranges[unit["unit_id"]])} for unit in units]


def is_whole(ranges: list[list], size: int) -> bool:
    """Do all bytes of a unit stand?"""
    return any(start == 0 and end == size and verdict == STANDS for start, end, verdict in ranges)


def _check_borders(unit_id: str, records: list[tuple[int, int]], ranges: list[list]) -> None:
    """A record lies in a range or outside. Raises: AccountingError; part of it would be lost. In: (offset, length)."""
    for start, size in records:
        end = start + size
        if any(start < high and low < end and not low <= start <= end <= high for low, high, _ in ranges):
            raise AccountingError(
                f"unit {unit_id}: a record of {size} bytes at {start} is asked for in part",
                "Its codec finds other records than when it was rejected: replay the whole unit",
            )


def within(rows: list[dict], found: Decoded, ranges: list[list], size_bytes: int) -> list[dict]:
    """What of a unit's rows stands; its account is what that leaves of the ranges, whose records the caller adds. Adds
    an event for each range that was given up."""
    if is_whole(ranges, size_bytes):
        return rows
    account = next(row for row in rows if row["result"] == "account")
    kept = [row for row in rows if row["result"] != "account" and stands(ranges, row["unit_offset"])]
    places = ("unit_offset", "unit_length")
    is_arrow = not isinstance(found.changes, list)
    changes = list(zip(*(found.changes.column(name).to_pylist() for name in places))) if is_arrow else []
    of_rows = [
        (row["unit_offset"], row["unit_length"]) for row in rows if row["result"] in ("change", "reject", "part")
    ]
    _check_borders(account["unit_id"], changes + of_rows, ranges)
    arrow = [(at, size) for at, size in changes if stands(ranges, at)]
    records = [
        row["unit_length"]
        for row in kept
        if row["result"] in ("change", "reject") or row["result"] == "part" and row["unit_length"]
    ]
    of_unit = {"source": account["source"], "unit_id": account["unit_id"]}
    events = [
        of_unit
        | {"result": "control", "kind": GIVEN_UP, "unit_offset": start, "unit_length": end - start, "detail": "{}"}
        for start, end, verdict in ranges
        if verdict == ABANDONED
    ]
    num, size = len(records) + len(arrow), sum(records) + sum(size for _, size in arrow)
    return [
        *kept,
        *events,
        account
        | {"num_packed": 0, "num_control": -num, "bytes_framing": sum(end - start for start, end, _ in ranges) - size},
    ]


def account(batch: Batch, landed: list[dict], judged: list[dict], files: Sequence[dict]) -> None:
    """Count what waits for a verdict since this batch, and what does not any more. Of a unit that stands whole the
    account is its own; of a range in one, the records that are no change, reject or part are what `within` has left of
    it."""
    for row in files:
        if row["verdicts"] is None:
            continue
        account = batch.account(row["source"])
        for path, start, end, num, landed_by, verdict in json.loads(row["verdicts"]):
            whole = verdict == STANDS and (row["source"], path, landed_by)
            account.num_control += num - sum(
                unit["num_records"]
                for unit in judged
                if whole
                and (unit["source"], unit["path"], unit["batch_id"]) == whole
                and start <= unit["file_offset"]
                and unit["file_offset"] + unit["size_bytes"] <= end
            )
            if landed_by != batch.batch_id:
                account.num_settled += num
                account.bytes_settled += end - start
            else:
                account.num_waiting -= num
                account.bytes_waiting -= end - start
    judging = {(row["source"], row["path"]) for row in files if row["verdicts"] is not None}
    for unit in landed:
        if (unit["source"], unit["path"]) in judging:
            account = batch.account(unit["source"])
            account.num_waiting += unit["num_records"]
            account.bytes_waiting += unit["size_bytes"]
