"""A batch of few records, decoded in one process of its own and written without Spark, which takes seconds for the same
(docs/adr/0030).

It is for plain batches: their units are decoded for the first time and alone. A change that silver has with the same
bytes is a repeat. What needs a further look at other rows of silver goes the way through Spark: conflicts, rows of full
loads, parts of changes that silver may have. So does whatever fails here, for that way sets aside what a decoder fails
on, and says so. Nothing is written before all of it is known.
"""

import json
import logging
from collections.abc import Sequence
from typing import NamedTuple

from inlet import lake, storage
from inlet.bronze import guard, kept_message, load_times, lookups
from inlet.bronze.history import Reading
from inlet.codecs import CODECS, columns
from inlet.codecs.codec import IMAGES, decode_block, offers
from inlet.lake import snapshots
from inlet.silver import blocks, decoded, file_loads, full_loads, messages, parts, small_parts, verdicts
from inlet.silver.batch import Batch, overlaps
from inlet.silver.small_transactions import MAX_NAMES
from inlet.source import Source
from inlet.sql import plain_among, plain_literal
from inlet.table import Table, by_name
from inlet.unit import PLANNED, order

log = logging.getLogger(__name__)
NUM_RECORDS, NUM_BYTES = 20_000, 16 << 20  # at most
CONTENT = "source_schema", "source_table", "operation", "before", "after"  # of a change
MESSAGE = 10  # a message, decoded by itself, costs as much as so many records of a block


def write(batch: Batch, files: Sequence[Reading]) -> set[str]:
    """Decode the plain sources of a batch, and write their changes, rejects and control events. In: its rows of
    bronze.files. Out: the sources that were written; of the others nothing is written, and no account has changed."""
    if not storage.is_reached(batch.project.lakehouse_path()) or batch.is_apart:
        return set()
    landed, units = _few(batch, files)
    plain = sorted({unit["source"] for unit in units})
    if not plain:
        return set()
    loads, known = _loads(batch, plain), lookups.known(batch.project, batch.batch_id)
    try:
        given = guard.in_child(lambda: {name: _decoded(batch, name, units, loads, known) for name in plain})
    except guard.Died as death:  # the way through Spark decodes each unit in a process of its own
        log.info("batch %d goes through Spark: %s", batch.batch_id, death)
        return set()
    judged = {name: _without_repeats(batch, name, rows) for name, rows in given.items() if rows is not None}
    new = {name: apart for name, apart in judged.items() if apart is not None}
    settled = {name: rows for name in new if (rows := _settled(batch, name, new[name].rows)) is not None}
    landed, units = ([unit for unit in some if unit["source"] in settled] for some in (landed, units))
    messages_, heads = ([unit for unit in units if ("topic" in unit) == is_message] for is_message in (True, False))
    batch.count_landed([*messages_, *landed])
    verdicts.account(batch, landed, heads, [row for row in files if row["source"] in settled])
    decoded.add(batch, [row for name in settled for row in new[name].rows])
    for name, rows in settled.items():
        batch.account(name).count_repeats(new[name].repeats)
        small_parts.write(batch, rows)
        parts.settle_known(batch, CODECS[batch.project.sources[name].codec], [name])
    _write_ends_of_loads(batch, messages_, loads)
    file_loads.of_files(batch, landed)
    return set(settled)


def _few(batch: Batch, files: Sequence[Reading]) -> tuple[list[dict], list[dict]]:
    """The blocks that plain sources have landed, and the units to decode of these sources, with their bytes: of the
    smallest sources first, as many as may be decoded here."""
    of_source = {name: [row for row in files if row["source"] == name] for name in batch.sources}
    sizes = {name: sum(map(batch.project.size_of, rows)) for name, rows in of_source.items()}
    landed, units, left = list[dict](), list[dict](), [NUM_RECORDS, NUM_BYTES]
    for name in sorted(batch.sources, key=lambda name: (sizes[name], name)):
        if sizes[name] > left[1] or not _is_plain(batch, name, of_source[name]):
            continue
        is_read = batch.project.sources[name].brings_messages
        own, heads = ([], _messages(batch, name)) if is_read else _heads(batch, name, of_source[name])
        num, size_bytes = (sum(unit[what] for unit in heads) for what in ("num_records", "size_bytes"))
        size = [num * _weight(batch.project.sources[name]), size_bytes]
        if all(have <= may for have, may in zip(size, left)):  # a Parquet file holds more than its size
            left = [may - have for may, have in zip(left, size)]
            landed += own
            units += heads if is_read else _with_bytes(batch, heads)
    return landed, units


def _weight(source: Source) -> int:
    """What decoding a record costs, in records of a block. A message without a compiled walk is decoded by itself."""
    return MESSAGE if source.brings_messages and not CODECS[source.codec].FAST else 1


def _is_plain(batch: Batch, name: str, files: list[Reading]) -> bool:
    source = batch.project.sources[name]
    codec = CODECS[source.codec]
    by_place = offers(codec, "decode_message") and offers(codec, "COLUMNS")  # names tell the places of its files
    is_asked = source.brings_messages or not by_place
    return all(row.cause == PLANNED and not row["problem"] for row in files) and not (
        is_asked and getattr(codec, "IDENTITY", None)
    )


def _messages(batch: Batch, name: str) -> list[dict]:
    """The messages of a source; none where there are too many."""
    lakehouse, own = batch.project.lakehouse_path(), f"batch_id = {batch.batch_id} and source = {plain_literal(name)}"
    limit = NUM_RECORDS // _weight(batch.project.sources[name]) + 1
    snapshot = lake.newest(lakehouse, "bronze.messages")
    if snapshot is None:
        return []
    rows = snapshots.rows_of(
        snapshot.query(f'select * from rows where {own} order by topic, partition, "offset" limit {limit}')
    )
    times = load_times.of_files(batch.project, [batch.project.sources[name]])
    timed = (load_times.timed(row, times.get((row["source"], row["path"]))) for row in rows)
    return [row | {"num_records": 1} for row in timed]


def _heads(batch: Batch, name: str, files: list[Reading]) -> tuple[list[dict], list[dict]]:
    """The blocks that a source has landed, and those to decode, without their bytes."""
    landed = blocks.headers(batch, CODECS[batch.project.sources[name].codec], [name])
    return landed, verdicts.judged_units(batch, landed, files)


def _with_bytes(batch: Batch, heads: list[dict]) -> list[dict]:
    """Blocks as `blocks.rows_of` takes them."""
    if not heads:
        return []
    units = plain_among("unit_id", (head["unit_id"] for head in heads))
    batches = ", ".join(str(number) for number in sorted({head["batch_id"] for head in heads}))
    where = f"where batch_id in ({batches}) and {units}"
    rows = lake.peek(batch.project.lakehouse_path(), "bronze.blocks", ["unit_id", "bytes"], where)
    data = {row["unit_id"]: row["bytes"] for row in rows}
    return [
        head
        | {
            "bytes": data[head["unit_id"]],
            "context": json.dumps(head["context"]),
            "ranges": json.dumps(head["ranges"]) if "ranges" in head else None,
        }
        for head in heads
    ]


def _loads(batch: Batch, sources: list[str]) -> list[dict]:
    """The full loads of the sources that earlier batches have begun."""
    has_loads = {name for name in sources if getattr(CODECS[batch.project.sources[name].codec], "LOADS", None)}
    known = full_loads.known_loads(batch.project, batch.batch_id) if has_loads else []
    return sorted(
        (load for load in known if load["source"] in has_loads),
        key=lambda load: (load["source"], load["table"], load["first_at"]),
    )


def _decoded(
    batch: Batch, name: str, units: list[dict], loads: list[dict], found: dict[str, dict[str, bytes]]
) -> list[dict] | None:
    """What the units of a source hold, as rows of decoded.COLUMNS; None where it is not plain. In: what was looked up,
    by source and name. It asks nothing of the lakehouse: delta-rs does not work in a child of a process that has used
    it."""
    source = batch.project.sources[name]
    codec, tables, known = CODECS[source.codec], batch.project.tables_of(source), found.get(name, {})
    own, rows = [load for load in loads if load["source"] == name], list[dict]()
    units = [unit for unit in units if unit["source"] == name]
    try:
        of_walk = [unit for unit in units if "topic" in unit] if getattr(codec, "FAST", None) else []
        read = _walked(batch, source, of_walk, known) if of_walk else {}
        if len(units) - len(read) > NUM_RECORDS // MESSAGE and source.brings_messages:
            return None  # the walk leaves too many
        for unit in units:
            if unit["unit_id"] in read:
                rows.append(read[unit["unit_id"]])
            elif "topic" not in unit:
                of_block = _rows_of_block(codec, unit, source, tables)
                if of_block is None:
                    return None
                rows += of_block
            elif messages.brings_or_loads(codec, unit, source, tables, known):
                return None
            else:
                rows += messages.rows_of(codec, unit, source, tables, own, known)
    except Exception as error:  # the way through Spark finds the unit that it fails on, or raises the same
        log.info("%s goes through Spark: %s", name, guard.why(error))
        return None
    return rows


def _walked(batch: Batch, source: Source, units: list[dict], known: dict[str, bytes]) -> dict[str, dict]:
    """Changes of messages by unit: of those that the codec's compiled walk reads, without rows of full loads."""
    import pyarrow as pa

    codec = CODECS[source.codec]
    names = [name.strip("`") for name in codec.FAST.READ]
    schema = pa.schema([(name, kept_message.message_types().get(name, pa.string())) for name in names])
    given = pa.RecordBatch.from_pylist([{name: unit[name] for name in names} for unit in units], schema)
    walk = messages.walk(batch.project, codec, [source], [], {source.name: known})
    result = {"result": "change"} | dict.fromkeys(IMAGES)
    return {row["unit_id"]: result | row for changes in walk([given]) for row in changes.to_pylist()}


def _rows_of_block(codec, unit: dict, source: Source, tables: dict[str, Table]) -> list[dict] | None:
    """What a block holds; None where it is of a full load."""
    context = json.loads(unit["context"])
    if offers(codec, "load_of") and codec.load_of(context) is not None:
        return None
    found = decode_block(codec, unit["bytes"], context, source, tables)
    rows = blocks.rows_of(unit, found, source, tables)
    if isinstance(found.changes, list):
        return rows
    of_unit = {"source": source.name, "unit_id": unit["unit_id"], "result": "change"}
    ranges = json.loads(unit["ranges"]) if unit["ranges"] else None
    for row in columns.rows(codec, found.changes, context, tables):
        if not ranges or verdicts.stands(ranges, row["unit_offset"]):
            rows.append(dict.fromkeys(IMAGES) | row | of_unit)
    return rows


def _settled(batch: Batch, name: str, rows: list[dict]) -> list[dict] | None:
    """What parts among the rows of a source give; None where Spark has to settle them."""
    fresh, changes = ([row for row in rows if row["result"] == result] for result in ("part", "change"))
    codec = CODECS[batch.project.sources[name].codec]
    return small_parts.settled(batch, codec, fresh, changes) if fresh else []


class Apart(NamedTuple):
    """What a source has brought, without the changes that silver has; and these."""

    rows: list[dict]
    repeats: list[dict]


def _without_repeats(batch: Batch, name: str, rows: list[dict]) -> Apart | None:
    """What is new of a source. In: rows of decoded.COLUMNS. Out: None where Spark has to judge: a change is a row of a
    full load, another one has its place, or very many may have come before."""
    changes = [row for row in rows if row["result"] == "change"]
    if any(row["operation"] == "REFRESH" for row in changes):
        return None
    places = {row["change_seq"] for row in changes}
    tables = {was: table.table for was, table in by_name(batch.project.tables.values()).items()}
    contents = dict[str, tuple]()  # by place, of the change that came first
    if places and overlaps(batch, {name: (min(places), max(places))}):
        if len(places) > MAX_NAMES:
            return None
        of_source = f"source = {plain_literal(name)} and batch_id <> {batch.batch_id}"
        where = f"where {of_source} and {plain_among('change_seq', places)}"
        known = lake.peek(batch.project.lakehouse_path(), "silver.changes", ["change_seq", *CONTENT], where)
        contents = {row["change_seq"]: _content(row, tables) for row in known}
    repeats = []
    for row in sorted(changes, key=lambda row: (*order(row["unit_id"]), row["unit_offset"])):
        content = _content(row, tables)
        if contents.setdefault(row["change_seq"], content) is content:
            continue
        if contents[row["change_seq"]] != content:
            return None
        repeats.append(row)
    known_rows = set(map(id, repeats))
    return Apart([row for row in rows if id(row) not in known_rows], repeats)


def _content(change: dict, tables: dict[str, str]) -> tuple:
    """What a change says, as of batch.content. In: the tables' names of now by those that they went by."""
    table = f"{change['source_schema']}.{change['source_table']}"
    operation = "UPDATE" if change["operation"] == "UPSERT" else change["operation"]
    images = [image and (image["value"], image["metadata"]) for image in (change["before"], change["after"])]
    return tables.get(table, table), operation, *images


def _write_ends_of_loads(batch: Batch, units: list[dict], loads: list[dict]) -> None:
    """Write the ends of loads that messages prove. Spark is asked if a load is open, or begins after a change."""
    of_codecs: dict[str, list] = {}
    for name in sorted({unit["source"] for unit in units}):
        source = batch.project.sources[name]
        of_codecs.setdefault(source.codec, []).append(source)
    for name, sources in of_codecs.items():
        if CODECS[name].LOADS:
            own = [load for load in loads if load["source"] in {source.name for source in sources}]
            full_loads.of_messages(batch, CODECS[name], sources, own)
