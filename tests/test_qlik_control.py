"""What Qlik's control tables, tombstones and shapes do to rows, from messages to gold; and changes shown as a change
table shows them.
"""

import datetime
import json
import random
import shutil
from decimal import Decimal

import pytest

from inlet import lake
from inlet.commands import status
from inlet.commands.run import build_gold
from inlet.gold import generate
from inlet.silver import change_table_view, decoded
from tests import projects
from tests.encode import qlik
from tests.encode import qlik_change_table as encode
from tests.encode.qlik_change_table import Column, Layout, Options
from tests.test_qlik_change_table import contract, random_changes, read, source
from tests.test_qlik_sources import COLUMNS, project_of, run

WIDE = encode.Table(
    "SHOP",
    "THINGS",
    (
        Column("C0", "INT4", key=1),
        *(Column(f"C{n}", ("STRING", "INT4", "NUMERIC")[n % 3], precision=12, scale=3) for n in range(1, 20)),
    ),
)


def shown(value) -> str | None:
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if value is None or isinstance(value, str) else str(value)


@pytest.mark.smoke
def test_a_change_table_that_is_read_is_shown_again_cell_for_cell(spark):
    """Of seven header columns, and of eight, with a partition name; an empty cell is null in both."""
    rng, found, expected = random.Random(3), [], {}
    for name, more in (("ct_plain", ()), ("ct_parts", ("partition_name",))):
        layout = Layout(headers=(*encode.HEADERS, *more))
        changes = [one | {"partition_name": "P1_P2"} for one in random_changes(rng, WIDE, 60)]
        for one in changes:
            for image in (one.get("before"), one.get("after")):
                image and image.update({n: None for n, value in image.items() if value == ""})
        table = encode.rows(WIDE, changes, layout)
        data = encode.delimited(WIDE, table, layout, Options(head="names"))
        of = source(before_images="stored", quoted_null="text").model_copy(update={"name": name})
        changed = read([("SHOP.THINGS__ct/1.csv", data)], of, {"SHOP.THINGS": contract(WIDE)}, len_block=1 << 20)
        assert not changed["rejects"] and not changed["waiting"]
        for row in changed["changes"]:
            own = {"source": name, "unit_id": f"{name}/1.csv"}
            found.append(decoded.change_row(row | own, "qlik_change_table", {"SHOP.THINGS": contract(WIDE)}))
        names = [column.name for column in layout.columns(WIDE)]
        expected[name] = sorted(tuple(map(shown, row)) for row in table), names
    batch = decoded.batch_of(found)
    rows = spark.range(1).coalesce(1).mapInArrow(lambda _: iter([batch]), decoded.DDL)
    rows.selectExpr(*decoded.CHANGE, "-3L as batch_id", "now() as decoded_at").write.format("delta").mode(
        "append"
    ).saveAsTable("silver.changes")
    spark.sql(
        "insert into silver.batches (batch_id, source, codec) values (-3, 'ct_plain', 'qlik_change_table'), "
        "(-3, 'ct_parts', 'qlik_change_table')"
    )
    for _ in range(2):
        change_table_view.write(spark, {"qlik_change_table"})
    view = spark.table("silver.changes_ct")
    assert [(f.name, f.dataType.simpleString(), f.metadata["comment"]) for f in view.schema] == [
        tuple(c) for c in change_table_view.COLUMNS
    ]
    for name, (table, names) in expected.items():
        asked = [
            one if one.startswith("header__") else f"variant_get(data, '$.{one}', 'string') as {one}" for one in names
        ]
        assert sorted(tuple(row) for row in view.where(f"source = '{name}'").selectExpr(*asked).collect()) == table


def at(values: list[bytes | None], topic: str, time: str, offset: int = 0, key: bytes | None = None) -> list[dict]:
    start = datetime.datetime.fromisoformat(f"2026-01-02T{time}+00:00")
    return qlik.rows(values, topic, offset=offset, start=start, key=key)


def row(n: int, name: str = "a") -> dict:
    return {"ITEM_ID": n, "NAME": name, "PRICE": None}


def change(operation: str, n: int, time: str = "", name: str = "a", **how) -> bytes:
    said = {"operation": operation, "change_seq": f"20260102{time}{n:021d}" if time else "", "after": row(n, name)}
    return qlik.value(said | ({"before": row(n)} if operation == "UPDATE" else {}), COLUMNS, masks=False, **how)


def control(values: dict, operation: str = "INSERT") -> bytes:
    body = {"data": {"SERVER_NAME": "s", "TASK_NAME": "shop"} | values, "headers": {"operation": operation}}
    return json.dumps(body).encode()


TRUNCATE = {
    "TABLE_OWNER": "DEPOT",
    "TABLE_NAME": "ITEMS",
    "CHANGE_SEQ": "20260102052000" + "0" * 21,
    "DDL_TYPE": "TRUNCATE_TABLE",
    "DETAILS": None,
}
FLATTENED = {"shape": "bare", "sections": ("", "beforeData_", "headers_")}


def test_control_tables_and_tombstones_move_rows(spark, lakehouse, tmp_path):
    """A reload closes what it does not send once attrep_status says that nothing is being loaded; a tombstone deletes a
    row; a truncate removes the rows of before it, though it comes after a change that is later."""
    name = "control_shop"
    project = project_of(
        tmp_path, lakehouse, name, None, [projects.ITEMS | {"name": "control_items"}], tombstones="delete"
    )
    shutil.copytree(generate.HOME / "dbt", tmp_path / "dbt", ignore=shutil.ignore_patterns("target", "gold", "marts"))
    generate.write(project)
    first = at([change("REFRESH", n) for n in (1, 2, 3)], "items", "03:00:00")
    first += at(
        [change("INSERT", 4, "031000"), change("UPDATE", 1, "031000", "b", **FLATTENED)], "items", "03:10:00", 3
    )
    first += at([change("REFRESH", n) for n in (1, 4)], "items", "05:00:00", 5)
    run(project, spark, first, 1)
    build_gold(project, spark, ["control_items"])
    assert [one["load"] for one in loading(project)] == ["DEPOT.ITEMS@2026010205000000"]
    assert current(spark, name) == [1, 2, 3, 4]

    idle = control({"TASK_STATUS": "CHANGE PROCESSING"}, "UPDATE")
    suspended = control({"TABLE_OWNER": "DEPOT", "TABLE_NAME": "ITEMS", "SUSPEND_REASON": "error"})
    told = at([idle], "attrep_status", "05:05:00") + at([suspended], "attrep_suspended_tables", "05:06:00")
    batches = [run(project, spark, told, 2)]
    assert loading(project) == []  # though no change of the table has come after it
    second = at([None], "items", "05:10:00", 7, b'{"ITEM_ID":4}')
    second += at([change("INSERT", 5, "051500"), change("INSERT", 9, "052100")], "items", "05:21:00", 8)
    second += at([control(TRUNCATE), control(TRUNCATE)], "attrep_ddl_history", "05:22:00")
    batches.append(run(project, spark, second, 3))
    build_gold(project, spark, ["control_items"])
    assert current(spark, name) == [9]
    past = spark.sql(f"select item_id, valid_to_seq from gold.control_items__past where source = '{name}'").collect()
    ends: dict[int, str] = {}
    for one in past:
        ends[one.item_id] = max(one.valid_to_seq[8:14], ends.get(one.item_id, ""))
    assert ends == {1: "052000", 2: "050000", 3: "050000", 4: "051000", 5: "052000"}
    shown = spark.sql(f"select header__change_oper as o from silver.changes_ct where source = '{name}'").collect()
    assert sorted(one.o for one in shown) == ["B", "D", "I", "I", "I", "T", "U"]
    ledger = lake.peek(
        lakehouse,
        "silver.batches",
        ["num_records", "num_changes", "num_repeats", "num_control"],
        f"where source = '{name}' and batch_id in ({batches[0]}, {batches[1]}) order by batch_id",
    )
    assert [tuple(one.values()) for one in ledger] == [(2, 0, 0, 2), (5, 4, 1, 0)]
    now = status.status(project)
    assert [one["table"] for one in now["suspended tables"]] == ["DEPOT.ITEMS"] and now["tasks"][0]["task"] == "shop"


def loading(project) -> list[dict]:
    [name] = project.sources
    found = status.status(project).get("full loads that have not ended", [])
    return [one for one in found if one["source"] == name]


def current(spark, source: str) -> list[int]:
    rows = spark.sql(f"select item_id from gold.control_items__current where source = '{source}'").collect()
    return sorted(row.item_id for row in rows)
