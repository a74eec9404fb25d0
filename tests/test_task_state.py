"""What sources say of the tasks that write them: `inlet status` and `inlet report`, from control events, no Spark."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from inlet.codecs.qlik import control_tables
from inlet.codecs.qlik.change_table import files
from inlet.commands import report, status, task_state
from inlet.silver import full_loads
from inlet.source import Source
from tests import lakes, projects

AT = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
SHOP = {"codec": "qlik_json", "from": "landing/shop/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
OWN = {"TASK_NAME": "shop", "TABLE_OWNER": "DEPOT", "TABLE_NAME": "ITEMS"}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "landing" / "shop").mkdir(parents=True)
    return projects.make(tmp_path, {"shop": SHOP})


def event(name: str, row: dict, n: int, is_deleted: bool = False, source: str = "shop") -> dict:
    """A row of silver.control_events, as the codec makes it of a row of a control table, n minutes after AT."""
    found = control_tables.event(f"attrep_{name}", row, is_deleted, AT + timedelta(minutes=n))
    names = ("kind", "source_schema", "source_table", "change_seq", "detail")
    of_event = {name: getattr(found, name) for name in names}
    return of_event | {"source": source, "unit_id": f"{source}/attrep_{name}/0/{n}", "batch_id": 1}


def write(project, *events: dict) -> None:
    lakes.write(project, "silver.control_events", *events)


def slot(n: int, records: int, minutes: int = 5) -> dict:
    ends = f"{AT + timedelta(minutes=n):%Y-%m-%d %H:%M:%S}"
    told = {"TIMESLOT": ends, "TIMESLOT_DURATION": minutes, "TIMESLOT_RECORDS": records}
    return event("history", {"TASK_NAME": "shop", "TIMESLOT_TYPE": "CHANGE PROCESSING"} | told, n)


def landed(project, *at_minutes: float) -> None:
    rows = [
        {
            "source": "shop",
            "unit_id": f"shop/items/0/{n}",
            "topic": "items",
            "partition": 0,
            "offset": n,
            "timestamp": AT + timedelta(minutes=minutes),
            "batch_id": 1,
        }
        for n, minutes in enumerate(at_minutes)
    ]
    lakes.write(project, "bronze.messages", *rows)


def test_a_suspended_table_is_stale_until_its_row_is_deleted(project):
    why = {"SUSPEND_REASON": "Table error", "SUSPEND_TIMESTAMP": "2026-01-02 02:59:00"}
    other = OWN | {"TABLE_NAME": "OTHERS"}
    write(
        project,
        event("suspended_tables", OWN | why, 9),
        event("suspended_tables", OWN, 5, is_deleted=True),  # of an earlier time: it came late
        event("suspended_tables", other, 6),
        event("suspended_tables", other, 7, is_deleted=True),
    )
    expected = {"source": "shop", "table": "DEPOT.ITEMS", "is stale since": "2026-01-02 02:59:00", "why": "Table error"}
    assert status.status(project)["suspended tables"] == [expected | {"remedy": task_state.RESUME}]
    notes = report.gather(project, AT)["notes"]
    assert any("DEPOT.ITEMS of shop is stale since 2026-01-02 02:59:00" in note.what for note in notes)


def test_rows_of_suspended_tables_in_files_are_in_the_order_of_change_seq(project):
    """A row that is deleted in the hundredth in which it came, read in another order."""
    columns = OWN | {"SUSPEND_REASON": "x"}
    head = ["header__change_seq", "header__change_oper", "header__change_mask", *columns]
    rows = [["2026010203040500" + f"{n:019d}", letter, "", *columns.values()] for n, letter in ((2, "D"), (1, "I"))]
    data = "".join(",".join(line) + "\n" for line in [head, *rows]).encode()
    of = Source(name="shop", codec="qlik_change_table", **{"from": "nowhere"})
    for path in ("attrep_suspended_tables__ct/1.csv", "attrep_suspended_tables__ct/partition/1.csv"):
        context = files.open_file(path, data, True, of, {})
        [block] = files.cut(data, context, of, {}, 1 << 20, True).blocks
        names = ("kind", "source_schema", "source_table", "change_seq")
        found = files.decode(data, block.context, of, {})
        events = [
            {name: getattr(one, name) for name in names}
            | {"detail": json.loads(one.detail), "source": "shop", "unit_id": "shop/1.csv@0", "batch_id": 1}
            for one in found.controls
        ]
        assert sorted(one["kind"] for one in events) == ["table_resumed", "table_suspended"] and not found.rejects
        assert task_state.suspended(events) == []
        assert len(task_state.suspended(events[1:])) == 1


def test_the_last_status_of_each_task_is_shown(project):
    told = {"TASK_NAME": "shop", "STATUS_TIME": "2026-01-02 03:04:00", "PENDING_CHANGES": 7}
    write(
        project,
        event("status", told | {"TASK_STATUS": "CHANGE PROCESSING"}, 4),
        event("status", told | {"TASK_STATUS": "FULL LOAD"}, 3),
        event("cdc_partitions", OWN | {"PARTITION_NAME": "20260102T0300_20260102T0400"}, 4),
    )
    [row] = status.status(project)["tasks"]
    assert (row["status"], row["changes that Qlik holds"], row["last closed partition"]) == (
        "CHANGE PROCESSING",
        7,
        "20260102T0300_20260102T0400",
    )
    assert "CHANGE PROCESSING" in report.page(report.gather(project, AT))


def test_records_that_a_task_counted_are_held_against_the_messages_landed_around_them(project):
    write(project, slot(5, 2), slot(10, 3), slot(60, 1000))
    landed(project, 1, 2, 8, 20)
    # a slot has the messages of its own time and of a slot before and behind it; the last one is not past yet
    title = "records that a task counted and that were not landed"
    assert title not in status.status(project)
    write(project, slot(10, 4), slot(5, 2))
    assert [(r["records counted"], r["messages landed"]) for r in status.status(project)[title]] == [(4, 3)]
    source = project.sources["shop"]
    project.sources["shop"] = source.model_copy(update={"options": {"whole_task": False}})
    assert title not in status.status(project)


def test_rows_that_the_target_of_a_task_refused_are_told_by_table(project):
    told = OWN | {"STATEMENT": "INSERT", "ERROR": "duplicate key"}
    write(
        project,
        event("apply_exceptions", told | {"ERROR_TIME": "2026-01-02 03:00:00.001"}, 1),
        event("apply_exceptions", told | {"ERROR_TIME": "2026-01-02 03:00:00.002", "ERROR": "later"}, 2),
    )
    [row] = status.status(project)["rows that a task's target refused"]
    assert (row["table"], row["rows"], row["last error"]) == ("DEPOT.ITEMS", 2, "later")


def test_a_task_that_loads_nothing_ends_the_loads_before_it_unless_there_are_several_tasks(project):
    idle, loading = ({"TASK_NAME": "shop", "TASK_STATUS": word} for word in ("Change Processing", "FULL LOAD"))
    batch = SimpleNamespace(project=project)
    assert full_loads._idle(batch, {"shop"}) == {}
    write(project, event("status", idle, 4), event("status", idle, 2), event("status", loading, 9))
    assert full_loads._idle(batch, {"shop"}) == {"shop": AT + timedelta(minutes=4)}
    write(project, event("status", idle, 4), event("status", idle | {"TASK_NAME": "other"}, 5))
    assert full_loads._idle(batch, {"shop"}) == {}


def test_the_newest_ddl_is_shown_first(project):
    for n, type_ in enumerate(["ALTER_TABLE", "TRUNCATE_TABLE"]):
        told = {"DDL_TYPE": type_, "CHANGE_SEQ": f"2026010203040500{n:019d}", "TIMESTAMP": "2026-01-02 03:04:05"}
        write(project, event("ddl_history", OWN | told, n))
    found = status.status(project)["last DDL"]
    assert [(one["table"], one["what"]) for one in found] == [
        ("DEPOT.ITEMS", "TRUNCATE_TABLE"),
        ("DEPOT.ITEMS", "ALTER_TABLE"),
    ]


def test_rows_of_another_task_are_counted_alone():
    row = {"TASK_NAME": "other", "TASK_STATUS": "FULL LOAD"}
    assert control_tables.event("attrep_status", row, False, AT, "shop").kind is None
    found = control_tables.event("attrep_status", row, False, AT, "other")
    assert (found.kind, json.loads(found.detail)["is_loading"]) == ("task_status", True)
