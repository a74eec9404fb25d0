"""What codecs decode units to, as rows that Spark carries, and the way of these rows into silver's tables.

`result` says what a row is: a change, a reject, a control event, a definition, a part that waits for others, a part
that does not wait any more (settled), or an account: what of a unit is control and framing. A codec that loses a record
or a byte of a unit is stopped here.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from inlet import change, lake
from inlet.bronze import guard
from inlet.codecs.codec import FIRST_ROW, IMAGES
from inlet.codecs.results import Control, Decoded, Part, event_detail
from inlet.errors import AccountingError, Reject
from inlet.fields import variant
from inlet.silver import contract_rules, unit_rules
from inlet.silver.batch import Batch, reject_conflicts, write_changes
from inlet.silver.transactions import IGNORED
from inlet.source import Source
from inlet.sql import plain_literal
from inlet.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OF_BATCH = ("batch_id", "decoded_at")
CHANGE = [c.name for c in change.CHANGES if c.name not in OF_BATCH]
COLUMNS = {"result": "string", "num_packed": "bigint", "num_control": "bigint", "bytes_framing": "bigint"} | {
    c.name: c.type
    for table in (change.CHANGES, change.REJECTS, change.CONTROL_EVENTS, change.TABLE_VERSIONS, change.WAITING)
    for c in table
    if c.name not in OF_BATCH
}
CHANGE_DDL = ", ".join(f"{c.name} {c.type}" for c in change.CHANGES if c.name not in OF_BATCH)
DDL = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
NEEDED = ("source_schema", "source_table", "table_version", "change_seq", "operation", "unit_offset", "unit_length")
NOTHING = Decoded([])
ADDED = {"change": "silver.changes", "reject": "silver.rejects", "control": "silver.control_events"}


def batch_of(rows: list[dict]):
    """Rows as an Arrow batch of COLUMNS."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(rows, schema=lake.arrow_schema(DDL))


def changes_of(rows):
    """Changes as an Arrow batch of CHANGE. In: some of its columns; the others are null."""
    import pyarrow as pa

    schema, given = lake.arrow_schema(CHANGE_DDL), dict(zip(rows.schema.names, rows.columns))
    columns = [given[f.name].cast(f.type) if f.name in given else pa.nulls(len(rows), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_of(
    decoded: Decoded,
    source: Source,
    tables: dict[str, Table],
    unit_id: str,
    data: bytes,
    context: str | None,
    num_records: int | None,
    ranges: list[list] | None = None,
) -> list[dict]:
    """All that a unit holds; of changes only those that are dicts. In: the contracts of its source; the records that
    were framed, None for a message, which may pack several; the ranges of the unit that are asked for, if not all.
    Raises: AccountingError that names codec, unit and rule.
    """
    changes = decoded.changes if isinstance(decoded.changes, list) else []
    is_row = f'"{FIRST_ROW}"' in (context or "")
    num_packed = unit_rules.check(decoded, source.codec, unit_id, data, num_records, is_row)
    of_unit = {"source": source.name, "unit_id": unit_id}
    rows = [change_row(row | of_unit, source.codec, tables) for row in changes]
    unwanted = [reject for reject in decoded.rejects if not is_wanted(reject, source)]
    rows += [row | of_unit for row in rows_of_rejects(decoded.rejects, source, ranges)]
    rows += [_control_row(control) | of_unit for control in decoded.controls]
    rows += [
        {
            "result": "part",
            "part_key": p.key,
            "note": p.note,
            "change_seq": p.change_seq,
            "unit_offset": p.unit_offset,
            "unit_length": p.unit_length,
            "raw": data[p.unit_offset : p.unit_offset + p.unit_length],
            "context": context,
            "is_settled": False,
        }
        | of_unit
        for p in decoded.parts
    ]
    rows += [
        {
            "result": "definition",
            "source_schema": d.source_schema,
            "source_table": d.source_table,
            "columns": json.dumps(d.columns),
            "origin": "feed",
            "key": json.dumps(d.key),
            "change_seq": d.change_seq,
            "unit_offset": d.unit_offset,
            "feed_version": d.version,
            "detail": json.dumps(d.detail, ensure_ascii=False) if d.detail else None,
        }
        | of_unit
        for d in decoded.definitions
    ]
    return [
        *rows,
        account_row(decoded.num_control + len(unwanted), decoded.bytes_framing + sum(r.unit_length for r in unwanted))
        | of_unit
        | {"num_packed": num_packed},
    ]


def is_wanted(reject: Reject, source: Source) -> bool:
    """May a reject be of a table that somebody wants?"""
    return not reject.source_table or source.wants(f"{reject.source_schema}.{reject.source_table}")


def rows_of_rejects(rejects: Sequence[Reject], source: Source, ranges: list[list] | None = None) -> list[dict]:
    """Rejects; those of tables that nobody wants as control events."""
    unwanted = [reject for reject in rejects if not is_wanted(reject, source)]
    return [
        *(reject_row(reject) for reject in rejects if is_wanted(reject, source)),
        *(_control_row(control) for control in _ignored(unwanted, ranges or [])),
    ]


def _ignored(rejects: list[Reject], ranges: list[list]) -> list[Control]:
    """Records of tables that nobody wants, as a control event for each run of them within a range and a transaction: so
    they can be decoded once they are wanted, and their transactions told whole.
    """
    borders = {border for start, end, _ in ranges for border in (start, end)}
    runs: list[list[Reject]] = []
    for reject in rejects:
        last = runs[-1][-1] if runs and reject.unit_offset not in borders else None
        if last and _goes_on(last, reject):
            runs[-1].append(reject)
        else:
            runs.append([reject])
    return [
        Control(
            IGNORED,
            run[0].unit_offset,
            sum(reject.unit_length for reject in run),
            run[0].source_schema,
            run[0].source_table,
            detail=json.dumps(_detail(run)),
        )
        for run in runs
    ]


def _goes_on(last: Reject, reject: Reject) -> bool:
    """Does a record follow another one of its table and transaction, without a gap?"""
    of_last, of_this = last.event, reject.event
    return (last.source_schema, last.source_table, last.unit_offset + last.unit_length) == (
        reject.source_schema,
        reject.source_table,
        reject.unit_offset,
    ) and (
        of_last is of_this is None
        or bool(of_last and of_this)
        and (of_last.transaction_id, of_last.counter is None) == (of_this.transaction_id, of_this.counter is None)
        and not of_last.is_last
    )


def _detail(run: list[Reject]) -> dict:
    """What a run of records is; with what silver.transactions has to know of it, where they say it."""
    first, last = run[0], run[-1]
    if not first.event or not last.event or not first.change_seq or not last.change_seq:
        return {"records": len(run)}
    return event_detail(first.event, first.change_seq, last.event, last.change_seq, len(run))


def failed(
    source: str, unit_id: str, data: bytes, why: str, ranges: list[list] | None = None, change_seq: str | None = None
) -> list[dict]:
    """A unit that its decoder failed on, as one reject that covers it; or one for each of the ranges of it that are
    asked for. In: where its changes begin, if that is known.
    """
    places = [(start, end) for start, end, _ in ranges] if ranges else [(0, len(data))]
    rejects = [
        Reject(guard.KIND, a, b - a, a, guard.EXPECTED, why, data[a:b], change_seq=change_seq) for a, b in places
    ]
    return [row | {"source": source, "unit_id": unit_id} for row in (*map(reject_row, rejects), account_row(0, 0))]


def change_row(row: dict, codec: str, tables: dict[str, Table]) -> dict:
    """A change of a codec, its images and its header as VARIANT. In: a dict of columns of silver.changes. Raises:
    AccountingError that names codec, unit and rule.
    """
    broken = None
    if lacking := [name for name in NEEDED if row.get(name) is None]:
        broken = f"no {', '.join(lacking)}"
    elif unknown := row.keys() - COLUMNS.keys():
        broken = f"an unknown column {', '.join(sorted(unknown))}"
    elif row["operation"] not in change.OPERATIONS:
        broken = f"an unknown operation {row['operation']}"
    elif not isinstance(row.get("header"), (dict, type(None))):
        broken = f"a header that is no object: {row['header']!r}"
    else:
        broken = contract_rules.broken(row, tables)
    if broken:
        raise AccountingError(
            f"codec {codec}, unit {row.get('unit_id')}: a change has {broken}",
            "It is a fault of the codec, which has to reject a record that does not hold to its table's contract",
        )
    row = {"change_oper": change.OPERATIONS[row["operation"]]} | row
    objects: dict[str, dict | None] = dict.fromkeys(IMAGES)
    for name in IMAGES:
        if row.get(name) is not None:
            value, metadata = variant.encode(row[name])
            objects[name] = {"value": value, "metadata": metadata}
    states = {"column_states": list(row["column_states"].items())} if row.get("column_states") else {}
    return {**row, **objects, **states, "result": "change"}


def reject_row(reject: Reject) -> dict:
    return {name: value for name, value in vars(reject).items() if name != "event"} | {"result": "reject"}


def account_row(num_control: int, bytes_framing: int) -> dict:
    return {"result": "account", "num_packed": 0, "num_control": num_control, "bytes_framing": bytes_framing}


def _control_row(control: Control) -> dict:
    return control._asdict() | {"result": "control"}


def write(batch: Batch, codec, rows: "DataFrame", raw: Callable) -> None:
    """Write decoded rows, and count what is control. In: persisted rows of COLUMNS; raw, which adds the column `raw` to
    changes.
    """
    sums = {"num_packed": "sum", "num_control": "sum", "bytes_framing": "sum"}
    found = rows.groupBy("source", "result").agg(sums).collect()
    for row in found:
        if row["result"] == "account":
            _count(batch, row["source"], *(row[f"sum({name})"] for name in sums))
    results = {row["result"] for row in found}
    if "reject" in results:
        batch.append(rows.where("result = 'reject'"), "silver.rejects")
    conflicts = None
    if "change" in results:
        own = write_changes(batch, rows.where("result = 'change'").select(*CHANGE), True, codec)
        conflicts = (
            own.rows.where("verdict = 'conflict'").select("unit_id", "unit_offset").collect()
            if own.has_conflicts
            else None
        )
        reject_conflicts(batch, own, raw)
    if "control" in results:
        _append_events(batch, rows.where("result = 'control'"), conflicts)
    if "definition" in results:
        _append_definitions(batch, rows.where("result = 'definition'"))


def add(batch: Batch, rows: list[dict]) -> None:
    """The same of a few rows, without Spark: changes, rejects, control events and definitions; none of the changes is a
    conflict."""
    for row in rows:
        if row["result"] == "account":
            _count(batch, row["source"], row["num_packed"], row["num_control"], row["bytes_framing"])
    for result, table in ADDED.items():
        if own := [row for row in rows if row["result"] == result]:
            batch.add(_events_once(batch, own) if result == "control" else own, table)
    if own := [row for row in rows if row["result"] == "definition"]:
        _add_definitions(batch, own)


def _count(batch: Batch, source: str, num_packed: int, num_control: int, bytes_framing: int) -> None:
    account = batch.account(source)
    account.num_records += num_packed
    account.num_control += num_control
    account.bytes_framing += bytes_framing


def _events_once(batch: Batch, events: list[dict]) -> list[dict]:
    """Control events; one that has a place in the order once."""
    place = ("source", "change_seq", "kind")
    placed = {tuple(row[name] for name in place): row for row in reversed(events) if row.get("change_seq") is not None}
    if not placed:
        return events
    low, high = min(seq for _, seq, _ in placed), max(seq for _, seq, _ in placed)
    between = f"change_seq between {plain_literal(low)} and {plain_literal(high)}"
    known = lake.peek(batch.project.lakehouse_path(), "silver.control_events", list(place), f"where {between}")
    before = {tuple(row[name] for name in place) for row in known}
    new = [row for key, row in placed.items() if key not in before]
    return [*reversed(new), *(row for row in events if row.get("change_seq") is None)]


def _append_events(batch: Batch, events, conflicts) -> None:
    """Append control events: one that has a place in the order once, and none that came with a change which was
    rejected.
    """
    place = ["source", "change_seq", "kind"]
    if conflicts:
        events = events.join(batch.spark.createDataFrame(conflicts), ["unit_id", "unit_offset"], "left_anti")
    placed = events.where("change_seq is not null")
    before = batch.spark.sql("select source, change_seq, kind from silver.control_events")
    batch.append(
        placed.dropDuplicates(place).join(before, place, "left_anti").unionByName(events.where("change_seq is null")),
        "silver.control_events",
    )


def _append_definitions(batch: Batch, found) -> None:
    """Append definitions that the feed gave. Of a list that has a number the first place in the batch is enough."""
    names = ["source", "source_schema", "source_table", "columns", "key", "feed_version", "detail"]
    at = ["change_seq = '' as is_placeless", "struct(change_seq, unit_id, unit_offset) as at"]
    numbered = found.where("feed_version is not null").selectExpr(*names, *at).groupBy(*names, "is_placeless")
    first = numbered.agg({"at": "min"}).selectExpr(*names, "`min(at)`.*")
    each = found.where("feed_version is null").select(*names, "change_seq", "unit_id", "unit_offset")
    _add_definitions(batch, [row.asDict() for row in each.union(first).collect()])


def _add_definitions(batch: Batch, definitions: list[dict]) -> None:
    """Append definitions that the feed gave, each once, with the version of the contract that says the same."""
    from inlet.silver import table_versions

    if rows := table_versions.new_definitions(batch.project, definitions):
        batch.add(rows, "silver.table_versions")


def part_of(row: dict) -> Part:
    return Part(row["part_key"], row["unit_offset"], row["unit_length"], row["note"], row["change_seq"])
