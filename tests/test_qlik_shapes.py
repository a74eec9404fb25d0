"""qlik_json: shapes of messages, tombstones, control tables. What single messages mean is in tests/cases/qlik_json.

Here is that shapes say the same, and what they cost.
"""

import json
import random
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from inlet.codecs.qlik import control_tables, json_messages, shapes
from inlet.codecs.qlik.change_table import files as change_table
from inlet.errors import ConfigError
from inlet.silver import unit_rules
from inlet.source import Source
from inlet.table import Table
from tests.encode import qlik
from tests.encode.qlik_change_table import opened_of
from tests.test_qlik_json import COLUMNS, SOURCE, TABLES, assert_walk_agrees, broken, loads_of, message, random_changes

TESTS = Path(__file__).parent
SHAPES = {
    "bare": {"shape": "bare"},
    "flattened": {"shape": "bare", "sections": ("", "beforeData_", "headers_")},
    "with all beginnings": {"shape": "bare", "sections": ("data_", "before", "h")},
    "without a beginning of headers": {"shape": "bare", "sections": ("data_", "beforeData_", "")},
    "partly": {"shape": "envelope", "sections": ("data/", "beforeData/", "headers_")},
    "partly, operation alone": {"shape": "envelope", "sections": ("data/", "beforeData/", "")},
    "headers in an object": {"shape": "bare", "sections": ("", "beforeData_", "headers/")},
    "flattened in the envelope": {"shape": "envelope", "sections": ("new_", "beforeData/", "headers_")},
    "legacy": {"shape": "legacy"},
}
OWN = ("unit_id", "unit_length", "load_id")
NOT_IN_LEGACY = ("transaction_id", "transaction_event_counter", "transaction_last_event", "change_mask", "column_mask")


def written(changes: list[tuple[dict, dict]], how: dict) -> list[dict]:
    """The same changes in another shape."""
    return [
        one | {"value": qlik.value(said, list(COLUMNS), schema="SHOP", table="ITEM", **how)} for said, one in changes
    ]


def read(messages: list[dict], options: dict) -> list[dict]:
    source = SOURCE.model_copy(update={"options": options})
    loads = loads_of(messages, source, TABLES)
    found = [json_messages.read_message(one, source, TABLES, loads) for one in messages]
    return [{name: value for name, value in row.items() if name not in OWN} for row in found]


@pytest.mark.parametrize("how", SHAPES)
def test_the_same_changes_decode_to_the_same_whatever_their_shape(how):
    changes = random_changes(300, 21)
    expected = read(written(changes, {"shape": "envelope"}), {})
    found = read(written(changes, SHAPES[how]), {"legacy_null": "null"})
    assert {row["result"] for row in expected} == {"change"}
    assert [said(row, how == "legacy") for row in found] == [said(row, how == "legacy") for row in expected]


def said(row: dict, is_legacy: bool) -> dict:
    """What all shapes say: legacy messages tell less, and have text alone."""
    if not is_legacy:
        return row
    images = {
        name: row[name]
        and {
            column: str(value) if type(value) in (int, float, Decimal) else value for column, value in row[name].items()
        }
        for name in ("before", "after")
    }
    return {name: value for name, value in row.items() if name not in NOT_IN_LEGACY} | images


def test_messages_of_all_shapes_in_one_topic_decode_to_the_same():
    changes, rng = random_changes(300, 22), random.Random(5)
    expected = read(written(changes, {"shape": "envelope"}), {})
    mixed = [written([one], SHAPES[rng.choice(list(SHAPES))])[0] for one in changes]
    found = read(mixed, {"legacy_null": "null"})
    assert [said(row, True) for row in found] == [said(row, True) for row in expected]
    assert_walk_agrees(mixed, SOURCE.model_copy(update={"options": {"legacy_null": "null"}}), TABLES)


@pytest.mark.parametrize("sections", [("", "old_", "h_"), ("d_", "", "h/"), ("x/", "y/", "z/"), ("new/", "old_", "")])
def test_sections_of_any_name_are_read_as_the_options_name_them(sections):
    changes = random_changes(200, 23)
    expected = read(written(changes, {"shape": "envelope"}), {})
    options = dict(zip(("data_section", "before_section", "headers_section"), sections))
    named = written(changes, {"shape": "bare", "sections": sections})
    assert read(named, options) == expected
    assert read(written(changes, {"shape": "envelope"}), options) == expected  # a topic of both
    refused = read(named, {})
    kinds = {row["reject"].kind for row in refused if row["result"] == "reject"}
    assert kinds and kinds <= {"unsupported_message", "wrong_shape"}


def test_beginnings_of_hostile_names_are_tried_so_many_times_and_no_more(monkeypatch):
    """The steps of the fit grow with the names and with nothing else."""
    tried = 0
    column = shapes._column

    def counted(*given):
        nonlocal tried
        tried += 1
        return column(*given)

    monkeypatch.setattr(shapes, "_column", counted)
    table = Table(
        table="SHOP.ITEM",
        name="item",
        key=["ID"],
        columns=[{"name": name, "type": "int"} for name in ("ID", "D", "xID", "xxID", "xxxID")],
    )
    steps = {}
    for num in (100, 200, 400):
        tried = 0
        body = {f"{'x' * (n % 7)}{n}ID": n for n in range(num)} | {"h_operation": "INSERT"}
        value = json.dumps(body).encode()
        found = json_messages.read_message(message(value), SOURCE, {"SHOP.ITEM": table}, [])
        assert found["reject"].kind == "unsupported_message"
        steps[num] = tried
    assert steps[400] <= 4 * steps[100] + 400


@pytest.mark.parametrize(
    "options",
    [
        {"data_section": "a b"},
        {"data_section": "x_", "before_section": "x_"},
        {"data_section": "", "before_section": ""},
    ],
)
def test_sections_that_cannot_be_meant_are_refused(options):
    with pytest.raises(ConfigError, match="section"):
        SOURCE.model_copy(update={"options": options}).options_as(json_messages.OPTIONS)


def test_a_tombstone_is_counted_or_is_a_delete_at_its_offset():
    one = message(None, 7) | {"key": b'{"ID":5}'}
    ignored = json_messages.decode_message(one, SOURCE, TABLES, [])
    assert (ignored.num_control, ignored.bytes_framing, [c.kind for c in ignored.controls]) == (1, 0, ["tombstone"])
    source = SOURCE.model_copy(update={"options": {"tombstones": "delete"}})
    [row] = json_messages.decode_message(one, source, TABLES, []).changes
    [next_] = json_messages.decode_message(one | {"offset": 8}, source, TABLES, []).changes
    assert (row["operation"], row["before"], row["unit_length"]) == ("DELETE", {"ID": 5}, 0)
    assert row["change_seq"] < next_["change_seq"] and len(row["change_seq"]) == 35


def test_control_tables_are_known_by_the_last_part_of_a_name():
    names = {
        "attrep_status": "attrep_status",
        "dev.Attrep_History": "attrep_history",
        "a-attrep_ddl_history": "attrep_ddl_history",
    }
    others = dict.fromkeys(("attrep_changes0123456789ABCDEF", "orders", "attrep_statuses", "", None, 7))
    assert {word: control_tables.name_of(word) for word in names | others} == names | others


def test_each_known_problem_of_qlik_has_a_case_or_a_reason():
    page = (TESTS.parent / "docs" / "formats" / "qlik_known_problems.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    assert [int(row[0]) for row in rows[1:]] == list(range(1, 36))
    for number, *_, shown_by in rows[1:]:
        names = re.findall(r"`([^`]+)`", shown_by)
        assert names or shown_by.startswith("No case: "), number
        for name in names:
            file, _, test = name.partition("::")
            is_there = (
                f"def {test}(" in (TESTS / file).read_text() if test else (TESTS / "cases" / f"{name}.yml").exists()
            )
            assert is_there, f"{number}: {name}"


def test_a_control_table_in_parquet_is_read_as_one_in_text():
    source = Source(name="s", codec="qlik_change_table", **{"from": "nowhere"})
    told = {
        "TASK_NAME": ["a", "b"],
        "TABLE_OWNER": ["SHOP"] * 2,
        "TABLE_NAME": ["ITEM"] * 2,
        "DDL_TYPE": ["DROP_TABLE"] * 2,
    }
    rows = pa.table(told | {"CHANGE_SEQ": ["20260102030405" + "0" * 21, None], "TABLE_VERSION": [2, 3]})
    context = change_table.open_rows("attrep_ddl_history/1.parquet", *opened_of(rows), {}, source, {})
    found = change_table.decode_rows(rows, context | {"first_row": 0}, source, {})
    [event], [reject] = found.controls, found.rejects
    assert (found.changes.num_rows, found.num_control, found.bytes_framing) == (0, 1, 1)
    assert (event.kind, event.source_table, json.loads(event.detail)["table_version"]) == ("ddl", "ITEM", 2)
    assert (reject.kind, reject.unit_offset) == ("missing_change_seq", 1)


def control_message(rng: random.Random) -> bytes:
    deep = '{"a":' * rng.choice([1, 2000]) + "1" + "}" * rng.choice([1, 2000])
    row = {
        "TABLE_OWNER": rng.choice(["SHOP", "OTHER", None, 7]),
        "TABLE_NAME": rng.choice(["ITEM", "ITEM__ct"]),
        "CHANGE_SEQ": rng.choice(["20260102030405" + "0" * 21, "7", None]),
        "DDL_TYPE": rng.choice(["TRUNCATE_TABLE", "ALTER_TABLE", [1]]),
        "DETAILS": rng.choice([deep, "", None, {"a": [1]}]),
        "TASK_STATUS": rng.choice(["FULL LOAD", "CHANGE PROCESSING", 5]),
    }
    return qlik.value(
        {"operation": "INSERT", "after": row}, list(row), masks=False, shape=rng.choice(["bare", "envelope"])
    )


def test_damaged_messages_of_every_shape_are_read_or_rejected_and_shown():
    """Whatever the bytes: nothing raises, each message is one record, and `inlet inspect` shows it."""
    rng, messages = random.Random(9), []
    for n, (said, one) in enumerate(random_changes(150, 24)):
        how = SHAPES[rng.choice(list(SHAPES))]
        messages.append(written([(said, one)], how)[0] if n % 3 else one | {"value": control_message(rng)})
    options = {"tombstones": "delete", "large_null": "unchanged"}
    source = SOURCE.model_copy(update={"options": options})
    kinds: dict[str, int] = {}
    for one in [*messages, *broken(messages, 1), *broken(messages, 2), *broken(broken(messages, 3), 4)]:
        topic = rng.choice(["item", *(f"x.{name}" for name in control_tables.KINDS)])
        one = one | {"topic": topic, "key": rng.choice([None, b"", b"1", b'{"ID":1}', b"\xff"])}
        one |= {"value": None} if rng.random() < 0.05 else {}
        found = json_messages.decode_message(one, source, TABLES, [])
        data = one["value"] or b""
        unit_rules.check(found, "qlik_json", one["unit_id"], data, None, False)
        json_messages.annotate(data, one, source, TABLES)[0].notes  # noqa: B018  which is read here
        what = "change" if found.changes else "reject" if found.rejects else "control"
        kinds[what] = kinds.get(what, 0) + 1
    assert min(kinds["change"], kinds["reject"], kinds["control"]) > 20, kinds
