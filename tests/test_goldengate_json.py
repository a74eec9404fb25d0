"""GoldenGate's JSON messages, the whole way: pos alone orders them, so times are those of the changes themselves."""

import datetime as dt

from inlet import publish
from inlet.commands import show
from inlet.commands.run import build_gold
from inlet.publish import pins
from tests import projects
from tests.encode import goldengate_json
from tests.test_toy import make, run

ITEMS = projects.ITEMS | {"table": "GG.ITEMS", "name": "gg_items"}


def item(id_: int, name: str, price: int) -> dict:
    return {"ITEM_ID": id_, "NAME": name, "PRICE": price}


def at(minute: int) -> dt.datetime:
    return dt.datetime(2026, 1, 2, 3, minute, tzinfo=dt.UTC)


def test_versions_have_the_times_of_their_changes_and_pos_alone_orders_them(spark, lakehouse, tmp_path):
    """Messages come out of pos order; op_ts falls once; a row is deleted; the whole feed comes twice."""
    changes = [  # operation, RBA, minute of op_ts, images
        ("UPDATE", 2000, 20, {"before": item(1, "a", 1), "after": item(1, "b", 1)}),
        ("INSERT", 1000, 10, {"after": item(1, "a", 1)}),
        ("INSERT", 1500, 30, {"after": item(2, "c", 2)}),
        ("DELETE", 3000, 40, {"before": item(1, "b", 1)}),
    ]
    values = [
        goldengate_json.value(
            {"operation": operation, "seqno": 1, "rba": rba, "op_ts": f"2026-01-02 03:{minute}:00.000000"} | images,
            "GG.ITEMS",
        )
        for operation, rba, minute, images in changes
    ]
    landing = tmp_path / "landing" / "gg"
    landing.mkdir(parents=True)
    source = {"codec": "goldengate_json", "from": {"transport": "lines", "path": "landing/gg"}}
    project = make(tmp_path, lakehouse, {"gg": source}, [ITEMS])
    (landing / "1.jsonl").write_bytes(b"\n".join(values) + b"\n" + b"".join(values) + b"\n")
    account = run(project, spark)["gg"]
    assert (account.num_changes, account.num_repeats, account.num_rejected) == (4, 4, 0)
    build_gold(project, spark, ["gg_items"])
    publish.run(project, spark)

    history = (
        "select item_id, name, valid_from, valid_to from public.gg_items__history order by item_id, valid_from_seq"
    )
    expected = [(1, "a", at(10), at(20)), (1, "b", at(20), at(40)), (2, "c", at(30), None)]
    pins.pin(project, spark, "gg_pin", pins.find(project, "gg_pin"))
    for database in ("public", "gg_pin"):
        found = spark.sql(history.replace("public", database)).collect()
        assert [(*row[:2], *map(_utc, row[2:])) for row in found] == expected
    pins.unpin(project, spark, "gg_pin")
    shown = show.show(project, project.tables["GG.ITEMS"], "history")
    columns = [shown.columns.index(name) for name in ("item_id", "name", "valid_from", "valid_to")]
    assert [tuple(row[n] for n in columns) for row in shown.rows] == expected
    spark.sql("use public")
    # as of a time: what stands before the first change, by pos, that is later. At 03:25 the second is, of 03:30
    for minute, rows in ((5, []), (15, [(1, "a")]), (25, [(1, "a")]), (35, [(1, "b"), (2, "c")]), (45, [(2, "c")])):
        time = f"2026-01-02 03:{minute:02d}:00"
        found = spark.sql(f"select item_id, name from gg_items_at(timestamp'{time}Z') order by 1").collect()
        assert [tuple(row) for row in found] == rows, time
        shown = show.show(project, project.tables["GG.ITEMS"], at=time)
        assert [(row[1], row[2]) for row in shown.rows] == rows, time


def _utc(time: dt.datetime | None) -> dt.datetime | None:
    return time and time.astimezone(dt.UTC)
