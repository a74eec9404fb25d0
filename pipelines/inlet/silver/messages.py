"""Units of message formats in Spark: what the codec's fast path certainly reads right is written at once, before
anything else is asked of the messages; every other message of the batch, which has no change then, goes to the
codec's exact path, whose answer is a change, a reject or a control event: without Spark where these are few. No message
has a third way out.
"""

import json
import logging
from functools import partial, reduce
from typing import TYPE_CHECKING

from inlet import lake
from inlet.bronze import guard, load_times, lookups
from inlet.bronze.guard import guarded
from inlet.codecs import CODECS
from inlet.codecs.codec import offers
from inlet.config import Project
from inlet.lake import engine
from inlet.silver import change_files, decoded, full_loads, parts, verdicts
from inlet.silver.batch import (
    Batch,
    Judged,
    among,
    has_repeats,
    raw_of_units,
    reject_conflicts,
    remove_changes,
    write_changes,
)
from inlet.source import Source
from inlet.sql import literal
from inlet.table import Table, by_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)
NUM_FEW = 200  # messages, at most, that are decoded without Spark after the compiled walk
NUM_SAMPLE = 50  # messages of a batch that are looked at first


def run(batch: Batch, sources: list[str]) -> None:
    """Decode the messages of a batch into silver's tables, and fill in the accounts. In: the sources that have any."""
    for name in sorted({batch.project.sources[s].codec for s in sources}):
        _run_codec(
            batch, CODECS[name], [batch.project.sources[s] for s in sources if batch.project.sources[s].codec == name]
        )


def _run_codec(batch: Batch, codec, sources: list) -> None:
    names = [source.name for source in sources]
    num_messages = _count_landed(batch, names)
    landed = batch.spark.sql(f"select * from bronze.messages where batch_id = {batch.batch_id} and {among(names)}")
    messages = load_times.with_times(batch.project, landed, sources)
    if batch.is_apart or not codec.FAST:  # the compiled walk may be what died
        _keep_brought(batch, sources, messages)
        seen = full_loads.find(batch, codec, messages, sources) if codec.LOADS else {}
        loads = _loads(batch, codec, messages, sources, seen)
        _write_exact(batch, codec, messages, sources, loads)
    else:
        loads = _write_fast(batch, codec, messages, sources, num_messages)
    if codec.LOADS:
        full_loads.of_messages(batch, codec, sources, loads)


def _count_landed(batch: Batch, names: list[str]) -> int:
    """Count the messages of some sources in their accounts. Out: their number."""
    columns = ["source", "count(*) as n", "sum(size_bytes) as size"]
    of_sources = f"where {batch.stored_of(names)} group by source"
    rows = lake.peek(batch.project.lakehouse_path(), "bronze.messages", columns, of_sources)
    for row in rows:
        account = batch.account(row["source"])
        account.num_units += row["n"]
        account.num_records += row["n"]
        account.bytes_landed += row["size"]
    return sum(row["n"] for row in rows)


def _write_fast(batch: Batch, codec, messages: "DataFrame", sources: list, num_messages: int) -> list[dict]:
    """Write what the compiled walk reads, then what it leaves. Out: the full loads known after it.

    The walk runs before anything is asked of the messages, as if none was a repeat and, unless a sample shows another
    thing, none was a row of a full load or brought what others name. What it leaves and what is stored then show
    whether that is so (docs/adr/0037)."""
    names, seen = [source.name for source in sources], {}
    if is_prepared := _shows_load(batch, codec, sources):
        _keep_brought(batch, sources, messages)
        seen = full_loads.find(batch, codec, messages, sources) if codec.LOADS else {}
    loads = _loads(batch, codec, messages, sources, seen)
    walks = [(messages, walk(batch.project, codec, sources, loads if is_prepared else [], _known(batch, codec)))]
    _append(batch, codec, *walks[0])
    few = _decode_few(batch, codec, sources, num_messages, loads, is_prepared)
    left = again = messages
    try:
        if few is None and not is_prepared:
            left = engine.kept(_left(batch, messages, names))
            has_brought = _keep_brought(batch, sources, left)
            if seen := full_loads.find(batch, codec, left, sources) if codec.LOADS else {}:
                loads = _loads(batch, codec, messages, sources, seen)
            again = messages if has_brought else left
            if has_brought:
                remove_changes(batch, names)
                walks = []
            if has_brought or seen:
                walks.append((again, walk(batch.project, codec, sources, loads, _known(batch, codec))))
                _append(batch, codec, *walks[-1])
                few = _decode_few(batch, codec, sources, num_messages, loads, True)
        judged = None
        if offers(codec, "IDENTITY") or has_repeats(batch, names, num_messages):
            remove_changes(batch, names)
            changes = [walked(codec, *one) for one in walks]
            judged = write_changes(batch, reduce(type(messages).unionByName, changes), True, codec)
        if few is None:
            _write_exact(batch, codec, _left(batch, again, names, judged), sources, loads)
        elif few:
            decoded.add(batch, few)
            parts.settle_known(batch, codec, names)
        if judged is not None:
            reject_conflicts(batch, judged, partial(raw_of_units, units=_bytes_of(messages)))
    finally:
        engine.release(left)
    return loads


def _shows_load(batch: Batch, codec, sources: list) -> bool:
    """True if some of the first messages of the batch that are read are rows of a full load, or bring what others name.
    Of a batch with a full load most messages are its rows."""
    if not (codec.LOADS or offers(codec, "brought")):
        return False
    own = f"where {batch.stored_of(source.name for source in sources)} limit {NUM_SAMPLE}"
    rows = lake.peek(batch.project.lakehouse_path(), "bronze.messages", ["*"], own)
    units, known = _timed(batch, sources, rows), _known(batch, codec)
    try:
        return guard.in_child(lambda: any(_brings_or_loads(batch, codec, unit, known) for unit in units))
    except Exception as error:  # the exact path meets that message later
        log.info("no sample of the messages of batch %d: %s", batch.batch_id, guard.why(error))
        return False


def _timed(batch: Batch, sources: list, rows: list[dict]) -> list[dict]:
    """Rows of bronze.messages with the time that says when a full load of files began."""
    times = load_times.of_files(batch.project, sources)
    return [load_times.timed(row, times.get((row["source"], row["path"]))) for row in rows]


def _known(batch: Batch, codec) -> dict[str, dict[str, bytes]]:
    """What was looked up, by source and name."""
    return lookups.known(batch.project, batch.batch_id) if lookups.is_asked(codec) else {}


def _brings_or_loads(batch: Batch, codec, unit: dict, known: dict[str, dict[str, bytes]]) -> bool:
    """`brings_or_loads` of a unit. In: what was looked up, by source and name."""
    source = batch.project.sources[unit["source"]]
    return brings_or_loads(codec, unit, source, batch.project.tables_of(source), known.get(source.name, {}))


def walk(project: Project, codec, sources: list, loads: list[dict], known: dict[str, dict[str, bytes]]):
    """The compiled walk of messages, as of codec.FastMessages. In: the full loads that have begun; without them it
    leaves their rows; what was looked up, by source and name."""
    brought = [known] if offers(codec, "brought") else []
    return codec.FAST.changes(sources, by_name(project.tables.values()), loads, *brought)


def _append(batch: Batch, codec, messages: "DataFrame", read) -> None:
    """Append the changes that a walk reads; tasks write them where they can."""
    if change_files.can_write(batch):
        change_files.write(batch, messages.selectExpr(*codec.FAST.READ), change_files.of_messages(batch.project, read))
    else:
        batch.append(walked(codec, messages, read), "silver.changes")


def walked(codec, messages: "DataFrame", read) -> "DataFrame":
    """The changes that a walk reads, as rows of the change table without batch_id and decoded_at."""
    return messages.selectExpr(*codec.FAST.READ).mapInArrow(
        lambda batches: (decoded.changes_of(rows) for rows in read(batches)), decoded.CHANGE_DDL
    )


def _left(batch: Batch, messages: "DataFrame", names: list[str], judged: Judged | None = None) -> "DataFrame":
    """The messages that the compiled walk has left. In: its changes with their verdicts, where not all are stored.

    They are those of one version of silver.changes: what is stored of them later does not take them out of it, though
    Spark forgets what it keeps of a table that is written."""
    stored = f"silver.changes version as of {lake.version(batch.project.lakehouse_path(), 'silver.changes')}"
    own = f"batch_id = {batch.batch_id} and {among(names)}"
    answered = batch.spark.sql(f"select unit_id from {stored} where {own}")
    if judged is not None:
        answered = answered.union(judged.rows.where("verdict <> 'new'").select("unit_id"))
    return messages.join(answered, "unit_id", "left_anti")


def _loads(batch: Batch, codec, messages: "DataFrame", sources: list, seen: dict) -> list[dict]:
    """The full loads known after the batch. In: those of its messages, as `full_loads.find` gives them."""
    return full_loads.in_messages(batch, codec, messages, sources, seen) if codec.LOADS else []


def _keep_brought(batch: Batch, sources: list, messages: "DataFrame") -> bool:
    """Keep what messages bring for others. Out: whether any of it was not known."""
    bringing = [source for source in sources if lookups.brings(source)]
    return bool(bringing) and lookups.keep_brought(batch.project, batch.batch_id, bringing, messages)


def _decode_few(
    batch: Batch, codec, sources: list, num_messages: int, loads: list[dict], is_prepared: bool
) -> list[dict] | None:
    """Decode the messages that the compiled walk has left, without Spark. In: the number of all messages; whether what
    all of them bring is kept, and their loads are known. Out: rows of decoded.COLUMNS; None where Spark has to read the
    messages: they are many, are not prepared for, or give more than rejects and control events."""
    lakehouse, own = batch.project.lakehouse_path(), batch.stored_of(source.name for source in sources)
    [stored] = lake.peek(lakehouse, "silver.changes", ["count(*) as n"], f"where {own}")
    if not 0 < num_messages - stored["n"] <= NUM_FEW:
        return [] if num_messages == stored["n"] else None
    changes = f"(select source, unit_id from changes where {own})"
    left = f"select m.* from messages m left anti join {changes} c on m.source = c.source and m.unit_id = c.unit_id"
    tables = {"messages": "bronze.messages", "changes": "silver.changes"}
    units, known = _timed(batch, sources, lake.ask(lakehouse, f"{left} where {own}", **tables)), _known(batch, codec)

    def decoded_units() -> list[dict] | None:
        if not is_prepared and any(_brings_or_loads(batch, codec, unit, known) for unit in units):
            return None
        return [row for unit in units for row in _rows_of(batch, codec, unit, loads, known)]

    try:
        given = guard.in_child(decoded_units)
    except Exception as error:  # Spark finds the message that the decoder fails on, or raises the same
        log.info("messages of batch %d go through Spark: %s", batch.batch_id, guard.why(error))
        return None
    return given if given and {row["result"] for row in given} <= {"reject", "control", "account"} else None


def _rows_of(batch: Batch, codec, unit: dict, loads: list[dict], known: dict[str, dict[str, bytes]]) -> list[dict]:
    """A message, decoded by the codec's exact path. In: what was looked up, by source and name."""
    source = batch.project.sources[unit["source"]]
    return rows_of(codec, unit, source, batch.project.tables_of(source), loads, known.get(source.name, {}))


def brings_or_loads(codec, message: dict, source: Source, tables: dict[str, Table], known: dict[str, bytes]) -> bool:
    """True if a message brings what others name, or is a row of a full load."""
    if offers(codec, "brought") and codec.brought(message):
        return True
    if not codec.LOADS:
        return False
    given = lookups.with_lookups(codec, message, source, known)
    return codec.refresh_row(given, source, tables) is not None


def replay(batch: Batch, codec, replays: list[dict]) -> None:
    """Decode rejected messages again, by the exact path. In: their rows of bronze.replays."""
    sources = [batch.project.sources[name] for name in sorted({row["source"] for row in replays})]
    units = ", ".join(map(literal, sorted({row["unit_id"] for row in replays})))
    landed = batch.spark.sql(
        f"select * from bronze.messages where {among([s.name for s in sources])} and unit_id in ({units})"
    )
    messages = load_times.with_times(batch.project, landed, sources)
    lookups.land(batch.project, batch.batch_id, [], messages)
    if bringing := [source for source in sources if lookups.brings(source)]:
        lookups.keep_brought(batch.project, batch.batch_id, bringing, messages)
        if lists := _without_lists(batch, bringing):
            own = f"batch_id <= {batch.batch_id} and {among([source.name for source in lists])}"
            landed = batch.spark.sql(f"select * from bronze.messages where {own}")
            lookups.keep_brought(batch.project, batch.batch_id, lists, landed)
    seen = full_loads.find(batch, codec, messages, sources) if codec.LOADS else {}
    loads = _loads(batch, codec, messages, sources, seen)
    ranges = verdicts.rejected_ranges(replays)
    _write_exact(batch, codec, messages, sources, loads, ranges)
    sizes = {row.unit_id: row.size_bytes for row in messages.select("unit_id", "size_bytes").collect()}
    for row in replays:
        is_whole = verdicts.is_whole(ranges[row["unit_id"]], sizes.get(row["unit_id"], 0))
        batch.account(row["source"]).num_control += 0 if is_whole else row["num_records"]
    if codec.LOADS:
        full_loads.of_messages(batch, codec, sources, loads)


def _without_lists(batch: Batch, bringing: list) -> list:
    """Sources whose messages lack what others bring, and that nothing has been brought for: an earlier Inlet may have
    landed it and not kept it. In: sources whose messages bring something.
    """
    known, of_kind = lookups.known(batch.project), "where kind = 'definition_missing'"
    rejects = lake.peek(batch.project.lakehouse_path(), "silver.rejects", ["source"], of_kind)
    lacking = {row["source"] for row in rejects}
    return [source for source in bringing if source.name in lacking and not known.get(source.name)]


def _bytes_of(messages: "DataFrame"):
    return messages.selectExpr("unit_id", "value as bytes")


def _write_exact(
    batch: Batch, codec, messages: "DataFrame", sources: list, loads: list, ranges: dict[str, list[list]] | None = None
) -> None:
    found = lookups.known(batch.project, batch.batch_id) if lookups.is_asked(codec) else {}
    aside = partial(_set_aside, codec, ranges or {})
    decode = guarded(exact(batch.project, codec, loads, found, ranges or {}), aside, batch.is_apart)
    rows = engine.kept(messages.mapInArrow(decode, decoded.DDL))
    decoded.write(batch, codec, rows, partial(raw_of_units, units=_bytes_of(messages)))
    parts.join(batch, codec, [source.name for source in sources], rows)
    engine.release(rows)


def exact(
    project: Project,
    codec,
    loads: list[dict],
    found: dict[str, dict[str, bytes]] | None = None,
    ranges: dict[str, list[list]] | None = None,
):
    """The codec's exact path for mapInArrow: batches of bronze.messages -> batches of decoded rows. In: what was looked
    up, by source and name; the ranges that are asked for of some messages, by unit.
    """
    tables = {source.name: project.tables_of(source) for source in project.sources.values()}

    def decode(batches):
        for batch in batches:
            rows = []
            for message in batch.to_pylist():
                source, own = project.sources[message["source"]], (ranges or {}).get(message["unit_id"])
                known = (found or {}).get(source.name, {})
                rows += rows_of(codec, message, source, tables[source.name], loads, known, own)
            yield decoded.batch_of(rows)

    return decode


def rows_of(
    codec,
    message: dict,
    source: Source,
    tables: dict[str, Table],
    loads: list[dict],
    found: dict[str, bytes],
    ranges: list[list] | None = None,
) -> list[dict]:
    """A message, decoded by the codec's exact path. In: the contracts of its source; the loads that are known; what
    was looked up, by name; the ranges of it that are asked for, if not all."""
    data = message["value"] or b""
    message = lookups.with_lookups(codec, message, source, found)
    result = codec.decode_message(message, source, tables, loads)
    place = json.dumps({name: message[name] for name in ("topic", "partition", "offset")}) if result.parts else None
    rows = decoded.rows_of(result, source, tables, message["unit_id"], data, place, None, ranges)
    return verdicts.within(rows, result, ranges, len(data)) if ranges else rows


def _set_aside(codec, ranges: dict[str, list[list]], unit, why: str) -> list:
    [message] = unit.to_pylist()
    data, own = message["value"] or b"", ranges.get(message["unit_id"])
    first = codec.place_of(message["offset"]) if offers(codec, "place_of") else None
    rows = decoded.failed(message["source"], message["unit_id"], data, why, own, first)
    return [decoded.batch_of(verdicts.within(rows, decoded.NOTHING, own, len(data)) if own else rows)]
