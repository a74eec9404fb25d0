"""What sources say of the tasks that write them, by their control events: what state they are in, tables that they have
suspended, records that they counted and that were not landed, rows that their own target refused. Read without Spark.
"""

import json
from datetime import datetime, timedelta
from functools import partial

from inlet import lake
from inlet.codecs.qlik import members
from inlet.codecs.qlik.control_tables import DDL, EXCEPTION, HISTORY, PARTITION, RESUMED, SUSPENDED
from inlet.codecs.qlik.full_load import Options
from inlet.codecs.results import TASK_STATUS
from inlet.config import Project
from inlet.sql import literal, plain_literal
from inlet.table import by_name

NUM_SLOTS = 12  # of attrep_history that are looked at: an hour, as Qlik sets it up
NUM_DDL = 10
RESUME = "resume the table's load in Qlik (Reload Target); its rows are as they were then"
COLUMNS = ["source", "source_schema", "source_table", "change_seq", "kind", "detail", "unit_id", "batch_id"]


def sections(project: Project) -> dict[str, list[dict]]:
    """Sections of `inlet status`; none where sources say nothing of their tasks."""
    kinds = ", ".join(map(literal, (TASK_STATUS, SUSPENDED, RESUMED, HISTORY, EXCEPTION, PARTITION, DDL)))
    rows = lake.peek(project.lakehouse_path(), "silver.control_events", COLUMNS, f"where kind in ({kinds})")
    events = [row | {"detail": json.loads(row["detail"])} for row in rows if row["source"] in project.sources]
    names = {name: table.table for name, table in by_name(project.tables.values()).items()}
    contract = partial(_contract, project, names)
    found = {
        "tasks": tasks(events),
        "suspended tables": suspended(events, contract),
        "last DDL": ddl(events, contract),
        "records that a task counted and that were not landed": lacking(project, events),
        "rows that a task's target refused": refused(events),
    }
    return {title: rows for title, rows in found.items() if rows}


def tasks(events: list[dict]) -> list[dict]:
    """The last status of each task, and the last change-data partition that it has closed. In: control events, their
    details read.
    """
    last: dict[tuple[str, str], dict] = {}
    for event in sorted((one for one in events if one["kind"] in (TASK_STATUS, PARTITION)), key=_order):
        detail = event["detail"]
        row = last.setdefault((event["source"], f"{detail.get('task_name')}"), {"partition_name": ""})
        if event["kind"] == PARTITION:
            row["partition_name"] = max(row["partition_name"], f"{detail.get('partition_name')}")
        else:
            row |= detail
    return [
        {
            "source": source,
            "task": task,
            "status": row.get("task_status"),
            "as of": row.get("status_time") or row.get("at"),
            "changes that Qlik holds": row.get("pending_changes"),
            "last closed partition": row["partition_name"] or None,
        }
        for (source, task), row in sorted(last.items())
    ]


def ddl(events: list[dict], contract=lambda source, name: name) -> list[dict]:
    """The newest DDL that tasks have told, the newest first."""
    told = sorted((one for one in events if one["kind"] == DDL), key=lambda one: one["change_seq"] or "")
    return [
        {
            "source": event["source"],
            "table": contract(event["source"], f"{event['source_schema']}.{event['source_table']}"),
            "what": event["detail"]["ddl_type"],
            "at": event["detail"].get("timestamp"),
            "place": event["change_seq"],
        }
        for event in reversed(told)
        if "ddl_type" in event["detail"]
    ][:NUM_DDL]


def suspended(events: list[dict], contract=lambda source, name: name) -> list[dict]:
    """The tables that get no changes, because their task has suspended them: what is there of them is stale. In:
    control events; the SCHEMA.TABLE of a source's name for a table.
    """
    last: dict[tuple[str, str, str], dict] = {}
    for event in sorted((one for one in events if one["kind"] in (SUSPENDED, RESUMED)), key=_order):
        name = f"{event['source_schema']}.{event['source_table']}"
        last[event["source"], f"{event['detail'].get('task_name')}", contract(event["source"], name)] = event
    return [
        {
            "source": source,
            "table": table,
            "is stale since": event["detail"].get("suspend_timestamp") or event["detail"]["at"],
            "why": event["detail"].get("suspend_reason"),
            "remedy": RESUME,
        }
        for (source, _, table), event in sorted(last.items())
        if event["kind"] == SUSPENDED
    ]


def refused(events: list[dict]) -> list[dict]:
    """How many rows each task could not write into its own target, by table, and the last reason: they may be in the
    messages all the same.
    """
    of: dict[tuple[str, str], list[dict]] = {}
    for event in events:
        if event["kind"] == EXCEPTION:
            of.setdefault((event["source"], f"{event['source_schema']}.{event['source_table']}"), []).append(event)
    found = []
    for (source, table), rows in sorted(of.items()):
        newest = max(rows, key=lambda row: f"{row['detail'].get('error_time')}")["detail"]
        last = {"last at": newest.get("error_time"), "last error": f"{newest.get('error')}"[:200]}
        found.append({"source": source, "table": table, "rows": len(rows)} | last)
    return found


def lacking(project: Project, events: list[dict]) -> list[dict]:
    """Time slots of attrep_history with more records than messages that were landed in and around them. Those that the
    newest message is not well past are left out, and sources that read some of a task's topics (option whole_task).
    """
    slots: dict[str, dict[tuple[datetime, timedelta], dict[str, int]]] = {}
    for event in (one for one in events if one["kind"] == HISTORY):
        detail, source = event["detail"], project.sources[event["source"]]
        is_whole = source.brings_messages and getattr(_options(project, source), "whole_task", False)
        ends, minutes = members.utc_time(detail.get("timeslot")), detail.get("timeslot_duration")
        num = detail.get("timeslot_records")
        if is_whole and ends and isinstance(minutes, int) and isinstance(num, int):
            of = slots.setdefault(source.name, {}).setdefault((ends, timedelta(minutes=max(minutes, 1))), {})
            what = f"{detail.get('task_name')} {detail.get('timeslot_type')}"
            of[what] = max(num, of.get(what, 0))
    found = []
    for source_name, of_source in sorted(slots.items()):
        last = sorted(of_source.items())[-NUM_SLOTS:]
        for (place, told), landed in zip(last, _landed(project, source_name, [place for place, _ in last])):
            if landed is not None and landed < sum(told.values()):
                row = {"source": source_name, "slot ends": place[0], "records counted": sum(told.values())}
                found.append(row | {"messages landed": landed})
    return found


def _landed(project: Project, source: str, slots: list[tuple[datetime, timedelta]]) -> list[int | None]:
    """Messages that were landed from a slot's length before each slot to as long after it; None where the newest
    message is not past that.
    """
    within = [
        f"sum(case when timestamp >= '{end - 2 * length:%Y-%m-%dT%H:%M:%S}Z' and "
        f"timestamp <= '{end + length:%Y-%m-%dT%H:%M:%S}Z' then 1 else 0 end) as n{n}"
        for n, (end, length) in enumerate(slots)
    ]
    first = min(end - 2 * length for end, length in slots)
    where = f"where source = {plain_literal(source)} and timestamp >= '{first:%Y-%m-%dT%H:%M:%S}Z'"
    [row] = lake.peek(project.lakehouse_path(), "bronze.messages", [*within, "max(timestamp) as newest"], where) or [
        {"newest": None}
    ]
    newest = row["newest"]
    return [
        row[f"n{n}"] if newest is not None and newest > end + length else None for n, (end, length) in enumerate(slots)
    ]


def _options(project: Project, source):
    from inlet.codecs import CODECS

    model = CODECS[source.codec].OPTIONS
    return source.options_as(model) if issubclass(model, Options) else None


def _contract(project: Project, names: dict[str, str], source: str, name: str) -> str:
    mapped = project.sources[source].table_of(name) or name
    return names.get(mapped, mapped)


def _order(event: dict) -> tuple:
    """The order of events: the broker's time, or that of the change_seq of a change table's row; then this change_seq,
    or the offset."""
    offset = event["unit_id"].split("@")[0].split("~")[0].rsplit("/", 1)[-1]
    place = event["detail"].get("at") or "", event["change_seq"] or ""
    return *place, int(offset) if offset.isdigit() else 0, event["batch_id"]
