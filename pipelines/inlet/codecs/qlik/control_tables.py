"""Qlik's control tables (`attrep_*`), whatever brings their rows: what a task says of itself.

Tables      attrep_ddl_history, attrep_status, attrep_suspended_tables, attrep_history, attrep_cdc_partitions,
            attrep_apply_exceptions [documented: names and columns]. They are known by the last part of the topic's
            name, or by the name of the table or folder, in any case; their columns in any case. One that has a contract
            is a captured table as any other, and says nothing of its task
Yields      a control event for each row. Its detail has the columns in lower case, and DETAILS as an object:
            attrep_ddl_history        ddl (ddl_of_change_table, of a table __ct), at its CHANGE_SEQ
            attrep_status             task_status; is_loading: whether a table is being loaded; at: the broker's time
            attrep_suspended_tables   table_suspended; of a deleted row table_resumed
            attrep_history            task_history
            attrep_cdc_partitions     partition_closed
            attrep_apply_exceptions   apply_exception
            In files a control table may be a change table, whose folder ends as theirs do: rows of before and truncates
            are counted alone, and rows of attrep_suspended_tables are in the order of change_seq. Its files may lie in
            folders of partitions
            A deleted row of any but attrep_suspended_tables is counted alone: Qlik cleans its own tables up. So is a
            row of another task than option task_name says, which topics of several tasks need
Truncates   a ddl of type TRUNCATE_TABLE removes all rows of its table at its CHANGE_SEQ [documented: on Kafka it is the
            only signal]. Change tables have a row of their own for it, so there it is an event alone. ASSUMED: no
            change has the CHANGE_SEQ of a DDL. No other DDL moves a row: the rows of a dropped table stay
Loads       attrep_status says FULL LOAD while any table is loaded, then CHANGE PROCESSING [documented]: loads whose
            last row the broker has before such a message have ended (silver/full_loads.py). attrep_history proves no
            end: its slots say that something was loaded, not that nothing else is
Rejects     column_twice, missing_change_seq, wrong_shape, unknown_table
"""

import json
import re
from datetime import datetime
from typing import Any, NamedTuple

from inlet.codecs.qlik import members
from inlet.codecs.qlik.members import Refused
from inlet.codecs.results import TASK_STATUS
from inlet.fields import json_exact
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong, quoted
from inlet.table import Table
from inlet.table_column import TableColumn

DDL, SUSPENDED, RESUMED, HISTORY = "ddl", "table_suspended", "table_resumed", "task_history"
PARTITION, EXCEPTION = "partition_closed", "apply_exception"
KINDS = {  # name -> kind of its control events
    "attrep_ddl_history": DDL,
    "attrep_status": TASK_STATUS,
    "attrep_suspended_tables": SUSPENDED,
    "attrep_history": HISTORY,
    "attrep_cdc_partitions": PARTITION,
    "attrep_apply_exceptions": EXCEPTION,
}
ORDERED = {"attrep_suspended_tables"}  # whose last row holds: those of change tables are at their change_seq
COLUMNS = {  # of each, as Qlik writes them
    "attrep_ddl_history": "SERVER_NAME TASK_NAME TABLE_OWNER TABLE_NAME CHANGE_SEQ TIMESTAMP TABLE_VERSION DDL_TYPE "
    "DETAILS",
    "attrep_status": "SERVER_NAME TASK_NAME TASK_STATUS STATUS_TIME PENDING_CHANGES DISK_SWAP_SIZE TASK_MEMORY "
    "SOURCE_CURRENT_POSITION SOURCE_CURRENT_TIMESTAMP SOURCE_TAIL_POSITION SOURCE_TAIL_TIMESTAMP "
    "SOURCE_TIMESTAMP_APPLIED",
    "attrep_suspended_tables": "SERVER_NAME TASK_NAME TABLE_OWNER TABLE_NAME SUSPEND_REASON SUSPEND_TIMESTAMP",
    "attrep_history": "SERVER_NAME TASK_NAME TIMESLOT_TYPE TIMESLOT TIMESLOT_DURATION TIMESLOT_LATENCY "
    "TIMESLOT_RECORDS TIMESLOT_VOLUME",
    "attrep_cdc_partitions": "SERVER_NAME TASK_NAME PARTITION_NAME PARTITION_START_TIME PARTITION_END_TIME TABLE_OWNER "
    "TABLE_NAME",
    "attrep_apply_exceptions": "TASK_NAME TABLE_OWNER TABLE_NAME ERROR_TIME STATEMENT ERROR",
}
CONTRACTS = {  # their columns, for files without a header row
    name: Table(
        table=f"attrep.{name}", name=name, columns=[TableColumn(name=c, type="string") for c in columns.split()]
    )
    for name, columns in COLUMNS.items()
}
OWN = {contract.table: contract for contract in CONTRACTS.values()}
NAME = re.compile(r"(?:.*[^A-Za-z0-9])?(attrep_[a-z_]+)", re.IGNORECASE | re.DOTALL)
CHANGE_TABLE = "__ct"
TRUNCATE = "TRUNCATE_TABLE"
NOT_LOADING = "CHANGE PROCESSING"


class Event(NamedTuple):
    """A row of a control table. `is_truncate`: all rows of the table go at change_seq."""

    kind: str | None  # None: counted only
    source_schema: str | None
    source_table: str | None
    change_seq: str | None
    detail: str
    timestamp: datetime | None = None
    is_truncate: bool = False


def name_of(word: Any) -> str | None:
    """The control table that a topic, table or folder is named after.

    >>> name_of("dev.ATTREP_STATUS"), name_of("attrep_orders")
    ('attrep_status', None)
    """
    match = NAME.fullmatch(word) if isinstance(word, str) else None
    return match[1].lower() if match and match[1].lower() in KINDS else None


def event(
    name: str,
    row: dict[str, Any],
    is_deleted: bool,
    at: datetime | None,
    task: str | None = None,
    suffix: str = CHANGE_TABLE,
) -> Event:
    """What a row says. In: its columns, text, Number or bool; the broker's time, where there is one; the task whose
    rows count, if not all; how the names of change tables end. Raises: Refused, with the column as its path.
    """
    columns: dict[str, Any] = {}
    for column, value in row.items():
        if column.lower() in columns:
            raise Refused("column_twice", (column,), "each column once, whatever its case", quoted(column))
        columns[column.lower()] = value
    kind, spelt = KINDS[name], {column.lower(): column for column in row}
    told = _text(columns, spelt, "task_name")
    if is_deleted and kind != SUSPENDED or task is not None and told != task:
        return Event(None, None, None, None, "{}")
    for column, value in columns.items():
        if isinstance(value, (dict, list)) and column != "details":
            raise Refused("wrong_shape", (spelt[column],), "a value that is no object and no array", value)
    detail = {column: _plain(value) for column, value in columns.items() if column != "details"}
    owner, table = (_text(columns, spelt, column) for column in ("table_owner", "table_name"))
    if kind == SUSPENDED:
        kind = RESUMED if is_deleted else SUSPENDED
    if kind == TASK_STATUS:
        detail |= {"task": told, "is_loading": (_text(columns, spelt, "task_status") or "").upper() != NOT_LOADING}
    if kind in (TASK_STATUS, SUSPENDED, RESUMED, HISTORY):
        detail |= {"at": at and at.isoformat()}
    if kind != DDL:
        return Event(kind, owner, table, None, _json(detail))
    seq, type_ = (_text(columns, spelt, column) for column in ("change_seq", "ddl_type"))
    if seq is None or not members.CHANGE_SEQ.fullmatch(seq):
        found = "none" if seq is None else quoted(seq)
        raise Refused("missing_change_seq", (spelt.get("change_seq", ""),), "35 digits", found)
    for column, value in (("table_owner", owner), ("table_name", table), ("ddl_type", type_)):
        if value is None:
            raise Refused("wrong_shape", (spelt.get(column, ""),), f"text of {column.upper()}", "none")
    detail |= {"details": _details(columns.get("details"))} if "details" in columns else {}
    timestamp = members.utc_time(columns.get("timestamp"))
    if table and table.lower().endswith(suffix.lower()):
        return Event("ddl_of_change_table", owner, table, seq, _json(detail), timestamp)
    return Event(DDL, owner, table, seq, _json(detail), timestamp, f"{type_}".upper() == TRUNCATE)


def _text(columns: dict, spelt: dict, name: str) -> str | None:
    value = columns.get(name)
    if value is not None and (not isinstance(value, str) or isinstance(value, Number)):
        raise Refused("wrong_shape", (spelt[name],), f"text of {name.upper()}", value)
    return value or None


def _details(value: Any) -> Any:
    """DETAILS as an object; as text where it is none, or nested too deep."""
    try:
        read = _plain(json_exact.parse(value.encode()) if isinstance(value, str) else value)
        return json.loads(_json(read))
    except (Wrong, UnicodeEncodeError):
        return str(value)
    except RecursionError:
        return str(value) if isinstance(value, str) else "nested too deep"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, Number) and re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    if isinstance(value, bytes):
        return value.hex().upper()
    return str(value) if isinstance(value, str) else value


def _json(detail: Any) -> str:
    return json.dumps(detail, ensure_ascii=False)
