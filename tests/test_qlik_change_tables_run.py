"""Change tables and load files of Qlik, the whole way: random streams as text, JSON lines and Parquet go through `inlet
run`, batch by batch, and gold and the public views must equal the reference.

Updates and before-images lie in files and batches of their own choice; files come again under other names.
"""

import json
import random
import re
import shutil
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from inlet import config, silver
from inlet.cli import app
from inlet.commands import run as running
from inlet.commands.status import status
from inlet.gold import generate
from inlet.log import Log
from tests import reference
from tests.encode import qlik_change_table as encode
from tests.encode.qlik_change_table import Column, Layout, Options
from tests.encode.qlik_dfm import dfm
from tests.streams import Change, stream
from tests.test_pipeline import ITEMS, KEY, REPO, assert_before_after, by_source, put

NUM_BATCHES = 3
COLUMNS = [name for name, *_ in ITEMS]
TABLE = encode.Table(
    "SIM",
    "ITEMS",
    (
        Column("REGION", "STRING", 20, key=1),
        Column("ITEM", "INT8", key=2),
        Column("NAME", "STRING", 40),
        Column("PRICE", "NUMERIC", precision=9, scale=2),
        Column("MADE", "DATE"),
        Column("PHOTO", "BYTES", 10),
    ),
)
TEXT = Options(head="names")
FORMS = {  # source -> layout of its changes, how its rows are written, the ends of its files, its options
    "ct_text": (Layout(), lambda rows, layout: encode.delimited(TABLE, rows, layout, TEXT), "csv", {}),
    "ct_json": (
        Layout(before_first=True, is_sparse=True),
        lambda rows, layout: encode.json_lines(TABLE, rows, layout),
        "json",
        {},
    ),
    "ct_rows": (
        Layout(headers=(*encode.HEADERS, "partition_name"), mask_form="binary"),
        lambda rows, layout: encode.parquet(TABLE, rows, layout),
        "parquet",
        {},
    ),
}
LOST = "SIM.GOODS__ct/lost.csv"
LOADED_AT = "2026010203000000"


def number_of(word: str) -> str:
    return f"{zlib.crc32(word.encode()) % 10**6:06d}"


def write(rng: random.Random, source: str, landing: Path) -> list[Change]:
    """A load and the changes after it, in files of some batches."""
    layout, written, end, _ = FORMS[source]
    load_id = LOADED_AT + number_of("SIM.ITEMS")
    loaded = {
        (c.after["REGION"], c.after["ITEM"]): c.after for c in stream(rng, length=6, loads=0, partial=0) if c.after
    }
    images = list(loaded.values())
    expected = []
    for number, part in enumerate((images[:2], images[2:]), 1):
        rows = encode.rows(TABLE, [{"operation": "REFRESH", "after": row} for row in part], encode.LOAD)
        put(landing / "0" / source / "SIM.ITEMS" / f"LOAD{number:08d}.{end}", written(rows, encode.LOAD))
        for n, row in enumerate(part):
            seq = f"{load_id}{number:05d}{n:08d}"
            expected.append(Change(source, "SIM.ITEMS", seq, "REFRESH", after=row, load_id=load_id))
    expected.append(Change(source, "SIM.ITEMS", load_id + "9" * (35 - len(load_id)), "LOAD_END", load_id=load_id))
    batches: list[list[list]] = [[] for _ in range(NUM_BATCHES)]
    changes = stream(rng, length=30, loads=0, upserts=0, partial=0, states=0)
    for change in [c for c in changes if c.op in ("INSERT", "UPDATE", "DELETE", "TRUNCATE")]:
        before, after = change.before, change.after
        if change.op == "UPDATE" and before is None:
            before = {n: after[n] if rng.random() < 0.5 or n in KEY else None for n in after}
        said = {
            "operation": change.op,
            "change_seq": change.seq,
            "before": before,
            "after": after,
            "transaction_id": f"{int(change.transaction_id[2:]):032X}",
            "change_timestamp": change.timestamp,
            "partition_name": "20260102T030000_20260102T040000",
        }
        expected.append(as_read(source, said, layout))
        on_time = len(expected) * NUM_BATCHES // (len(changes) + len(loaded) + 2)
        for row in encode.rows(TABLE, [said], layout):
            late = rng.randint(on_time, NUM_BATCHES - 1) if rng.random() < 0.3 else on_time
            batches[late].append(row)
    for batch, rows in enumerate(batches):
        for n, first in enumerate(range(0, len(rows), 5)):
            folder = landing / f"{batch}" / source / "SIM.ITEMS__ct"
            folder = folder / "20260102T030000_20260102T040000" if layout.headers[-1] == "partition_name" else folder
            data = written(rows[first : first + 5], layout)
            put(folder / f"20260102-0304{batch:02d}{n:03d}.{end}", data)
            if rng.random() < 0.3:
                again = landing / f"{rng.randint(batch, NUM_BATCHES - 1)}" / source / "SIM.ITEMS__ct"
                put(again / f"20260102-0404{batch:02d}{n:03d}.{end}", data)
    return expected


def as_read(source: str, said: dict, layout: Layout) -> Change:
    """What a change says once it is read, by the rules of the page."""
    before, after, word = said["before"], said["after"], said["operation"]
    changed: tuple[str, ...] | None = tuple(COLUMNS)
    if word == "UPDATE":
        changed = tuple(n for n in COLUMNS if before[n] != after[n])
        sent = {n: v for n, v in after.items() if not layout.is_sparse or n in KEY or n in changed}
        after = {n: v for n, v in sent.items() if v is not None or n in changed}
        before = {n: v for n, v in before.items() if v is not None or n in changed}
    if word == "INSERT":
        before = None
    if word == "DELETE":
        changed, after, before = tuple(KEY), None, {n: v for n, v in before.items() if v is not None}
    if word == "TRUNCATE":
        changed, before, after = None, None, None
    return Change(
        source, "SIM.ITEMS", said["change_seq"], word, before, after, said["transaction_id"],
        timestamp=said["change_timestamp"], mask=changed,
    )  # fmt: skip


GOODS = encode.Table("SIM", "GOODS", (Column("ID", "INT4", key=1), Column("NAME", "STRING", 20)))
WIDER = encode.Table("SIM", "GOODS", (*GOODS.columns, Column("PRICE", "INT4")), version=2)


def place(folder: Path, path: str, rows: list[list], table=GOODS, layout=encode.LOAD, at: str = "") -> None:
    """A file of goods with its sidecar."""
    put(folder / f"{path}.csv", encode.delimited(table, rows, layout, TEXT))
    times = (at, at, at if layout is not encode.LOAD else None, None)
    put(folder / f"{path}.dfm", dfm(table, len(rows), layout, TEXT, file=f"{path.split('/')[-1]}.csv", times=times))


def change(folder: Path, at: str, operation: str, after: dict, table=GOODS, before=None) -> None:
    """A change of goods in a file of its own. In: its time, to minutes."""
    rows = encode.rows(table, [goods_change(at, operation, after, before)], Layout())
    place(folder, f"SIM.GOODS__ct/{re.sub('[^0-9]', '', at)}", rows, table, Layout(), f"{at}:00.000")


def goods_change(at: str, operation: str, after: dict, before=None) -> dict:
    """What a change of goods says. In: its time, to minutes."""
    seq = f"{re.sub('[^0-9]', '', at)}0000{1:019d}"
    return {"operation": operation, "change_seq": seq, "after": after, "before": before}


def write_goods(landing: Path) -> None:
    """A source whose files have sidecars: a load; in the next batch a load that has one row less, whose file has the
    same name, and a change that is older; then a change after that load. An update without its before-image comes again
    with it, in one file.
    """
    first, second, third = (landing / f"{batch}" / "ct_goods" for batch in range(NUM_BATCHES))
    place(first, "SIM.GOODS/LOAD00000001", [[1, "a"], [2, "b"]], at="2026-01-02T03:00:00.000")
    place(first, "SIM.GOODS/LOAD00000002", [[3, "c"]], at="2026-01-02T03:00:30.000")
    change(first, "2026-01-02T04:00", "UPDATE", {"ID": 1, "NAME": "aa"}, before={"ID": 1, "NAME": "a"})
    pair = whole("2026-01-02T04:02", {"ID": 3, "NAME": "cc"}, {"ID": 3, "NAME": "c"})
    place(first, "SIM.GOODS__ct/202601020402", pair[:1], GOODS, Layout(), "2026-01-02T04:02:00.000")
    place(second, "SIM.GOODS/LOAD00000001", [[1, "again"], [2, "b"]], at="2026-01-02T05:00:00.000")
    change(second, "2026-01-02T04:30", "UPDATE", {"ID": 1, "NAME": "old"}, before={"ID": 1, "NAME": "aa"})
    place(second, "SIM.GOODS__ct/202601020402again", pair, GOODS, Layout(), "2026-01-02T04:02:00.000")
    change(third, "2026-01-02T06:00", "INSERT", {"ID": 4, "NAME": "d"})


def whole(at: str, after: dict, before: dict) -> list[list]:
    """Both rows of an update."""
    return encode.rows(GOODS, [goods_change(at, "UPDATE", after, before)], Layout())


def write_gaps(landing: Path) -> None:
    """A source that lacks something: a file that is removed before its sidecar comes, and the before-image of an
    update; then a column in the contract; then there is a load with that column, which begins after the gap was found,
    and the update comes again whole.
    """
    first, second, third = (landing / f"{batch}" / "ct_gaps" for batch in range(NUM_BATCHES))
    place(first, "SIM.GOODS/LOAD00000001", [[1, "a"], [2, "b"]], at="2026-01-02T03:00:00.000")
    change(first, "2026-01-02T04:01", "UPDATE", {"ID": 2, "NAME": "lost"})
    put(first / LOST, b"")
    new = {"ID": 5, "NAME": "e", "PRICE": 8}
    change(second, "2026-01-02T07:00", "INSERT", new, WIDER)
    change(second, "2026-01-02T07:10", "UPDATE", new | {"PRICE": 9}, WIDER, before=new)
    place(third, "SIM.GOODS/LOAD00000001", [[4, "d", 1], [5, "e", 9]], WIDER, at="2099-01-01T00:00:00.000")
    change(third, "2099-01-02T00:00", "INSERT", {"ID": 6, "NAME": "f", "PRICE": 2}, WIDER)
    pair = whole("2026-01-02T04:01", {"ID": 2, "NAME": "lost"}, {"ID": 2, "NAME": "b"})
    place(third, "SIM.GOODS__ct/202601020401whole", pair, GOODS, Layout(), "2026-01-02T04:01:00.000")


def write_loads(landing: Path) -> None:
    """A source that only loads: a load in the first batch, and in the next one a load without one of its rows."""
    for batch, (minute, rows) in enumerate((("00", [[1, "a"], [2, "b"]]), ("30", [[1, "a"]]))):
        place(
            landing / f"{batch}" / "ct_goods_loads", "SIM.GOODS/LOAD00000001", rows, at=f"2026-01-02T03:{minute}:00.000"
        )


@pytest.fixture(scope="module")
def ran(spark, lakehouse, tmp_path_factory) -> SimpleNamespace:
    """All batches went through `inlet run`, the last one after `inlet import` of a column that is new: the project,
    source -> changes, what status said after each; the column lists of the feed, and what was rejected, before that.
    """
    root = tmp_path_factory.mktemp("change_tables")
    sources, changes = {}, {}
    for name, (_, _, end, options) in FORMS.items():
        changes[name] = write(random.Random(name), name, root / "delivery")
        path = f"landing/{name}/**/*.{end}"
        told = {"before_images": "stored", "quoted_null": "text", "load_time": LOADED_AT} | options
        from_ = {"transport": "rows", "path": path} if end == "parquet" else path
        sources[name] = {"codec": "qlik_change_table", "from": from_, "settle_minutes": 0, "options": told}
    write_goods(root / "delivery")
    write_gaps(root / "delivery")
    told = {"before_images": "stored", "sidecar": "beside", "load_lead_seconds": 0}
    for name in ("ct_goods", "ct_gaps"):
        sources[name] = {
            "codec": "qlik_change_table",
            "from": f"landing/{name}/**",
            "settle_minutes": 0,
            "part_wait_minutes": 1e-6,
            "options": told,
        }
    write_loads(root / "delivery")
    sources["ct_goods_loads"] = {
        "codec": "qlik_change_table",
        "from": "landing/ct_goods_loads/**",
        "settle_minutes": 0,
        "options": told | {"loads_end": "files"},
    }
    project = make_project(root, lakehouse, sources)
    shown, goods, lists, rejects = [], [], [], []
    for batch in range(NUM_BATCHES):
        if batch == NUM_BATCHES - 1:
            lists = spark.sql(
                "select distinct columns, key, table_version from silver.table_versions "
                "where source = 'ct_gaps' and origin = 'feed'"
            ).collect()
            rejects = spark.sql("select found from silver.rejects where kind = 'definition_differs'").collect()
            told = CliRunner().invoke(app, ["import", "--project", str(root), "--table", "SIM.GOODS"])
            assert told.exit_code == 0, told.output
            project = config.load(root)
            generate.write(project)
        shutil.copytree(root / "delivery" / str(batch), root / "landing", dirs_exist_ok=True)
        run(project)
        shown.append(status(project))
        goods.append(goods_of(spark))
        (root / "landing" / "ct_gaps" / LOST).unlink(missing_ok=True)  # its sidecar has not come
    return SimpleNamespace(project=project, changes=changes, shown=shown, goods=goods, lists=lists, rejects=rejects)


def goods_of(spark) -> list[tuple]:
    return [
        tuple(row)
        for row in spark.sql("select id, name from public.ct_goods where source = 'ct_goods' order by id").collect()
    ]


def make_project(root: Path, lakehouse: str, sources: dict) -> config.Project:
    (root / "pipelines" / "tables").mkdir(parents=True)
    (root / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"lakehouse": lakehouse, "sources": sources}))
    columns = [
        {"name": n, "type": t, "encoding": "hex" if t == "binary" else None, "nullable": n not in KEY}
        for n, t, _ in ITEMS
    ]
    contract = {"table": "SIM.ITEMS", "name": "ct_items", "key": KEY, "columns": columns}
    (root / "pipelines" / "tables" / "items.yml").write_text(yaml.safe_dump(contract))
    columns = [{"name": c.name, "type": t, "source_type": c.type} for c, t in zip(GOODS.columns, ("int", "string"))]
    contract = {"table": "SIM.GOODS", "name": "ct_goods", "key": ["ID"], "columns": columns}
    (root / "pipelines" / "tables" / "goods.yml").write_text(yaml.safe_dump(contract))
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold", "marts"))
    shutil.copytree(REPO / "expectations", root / "expectations")
    project = config.load(root)
    generate.write(project)
    return project


def run(project) -> None:
    """`inlet run`."""
    work = running.find_work(project, running.STEPS, [], [])
    running.run(project, work, running.STEPS, [], Log(is_human=False), hold=lambda spark: None)


def test_nothing_was_rejected_and_nothing_waits(spark, ran):
    rejects = spark.sql(
        "select source, kind, found, unit_id from silver.rejects where source not like 'ct_g%'"
    ).collect()
    assert [row.asDict() for row in rejects] == []
    assert silver.waiting(ran.project) == [] and silver.pending(ran.project) == []


def test_files_that_come_again_under_another_name_are_repeats(spark, ran):
    for source, changes, repeats in spark.sql(
        "select source, sum(num_changes), sum(num_repeats) from silver.batches where source not like 'ct_g%' "
        "group by source"
    ).collect():
        assert changes == len([c for c in ran.changes[source] if c.op != "LOAD_END"])
        assert repeats > 0


def test_history_equals_the_reference(spark, ran):
    found = by_source(
        spark.sql(
            f"select source, {', '.join(COLUMNS)}, valid_from_seq, valid_to_seq, is_complete, conflict from "
            "gold.ct_items__history order by source, REGION, ITEM, valid_from_seq"
        ).collect()
    )
    for source, changes in ran.changes.items():
        wanted = [
            (*(v.values.get(n) for n in COLUMNS), v.valid_from_seq, v.valid_to_seq, v.is_complete, v.conflict)
            for v in reference.fold(changes, KEY, COLUMNS)[0]
        ]
        assert found.get(source, []) == wanted, source + "\n" + "\n".join(map(str, reference.in_order(changes)))


def test_public_rows_are_those_of_the_reference(spark, ran):
    found = by_source(
        spark.sql(f"select source, {', '.join(COLUMNS)} from public.ct_items order by source, REGION, ITEM").collect()
    )
    for source, changes in ran.changes.items():
        rows = [
            tuple(v.values.get(n) for n in COLUMNS) for v in reference.current(reference.fold(changes, KEY, COLUMNS)[0])
        ]
        assert found.get(source, []) == rows, source


def test_before_after_equals_the_reference(spark, ran):
    assert_before_after(spark, "ct_items", COLUMNS, ran.changes)


def test_partition_names_are_kept_in_the_header(spark, ran):
    found = spark.sql("select distinct source, to_json(header) from silver.changes where header is not null").collect()
    assert {(row[0], row[1]) for row in found} == {
        ("ct_rows", json.dumps({"partition_name": "20260102T030000_20260102T040000"}, separators=(",", ":")))
    }


def test_a_load_with_the_names_of_an_earlier_one_replaces_the_table_once_it_has_ended(spark, ran):
    """An update that is older than the load does not win; a row that the load has not goes with its end alone."""
    assert ran.goods == [
        [(1, "aa"), (2, "b"), (3, "c")],
        [(1, "again"), (2, "b"), (3, "cc")],
        [(1, "again"), (2, "b"), (4, "d")],
    ]
    ends = spark.sql(
        "select load_id, batch_id from silver.control_events where source = 'ct_goods' and kind = 'load_end' order by 1"
    ).collect()
    assert [row.load_id[:12] for row in ends] == ["202601020300", "202601020500"]
    loading = [shown.get("full loads that have not ended", []) for shown in ran.shown]
    assert [[(row["source"], row["load"][:12]) for row in rows] for rows in loading] == [
        [],
        [("ct_goods", "202601020500")],
        [],
    ]


def test_a_load_ends_with_its_files_where_a_source_only_loads(spark, ran):
    ends = spark.sql("select load_id, batch_id from silver.control_events where source = 'ct_goods_loads' order by 1")
    assert [(row.load_id[:12], row.batch_id) for row in ends.collect()] == [("202601020300", 1), ("202601020330", 2)]
    rows = spark.sql("select id, name from public.ct_goods where source = 'ct_goods_loads'").collect()
    assert [tuple(row) for row in rows] == [(1, "a")]


def test_an_orphan_is_reported_after_its_wait_and_blocks_no_other(spark, ran):
    found = spark.sql("select kind, found, change_seq from silver.rejects where source = 'ct_gaps' order by all")
    assert [(row.kind, row.change_seq[8:12]) for row in found.collect() if row.kind == "part_missing"] == [
        ("part_missing", "0401")
    ]
    assert [row for shown in ran.shown[:1] for row in shown["waiting for the feed"] if row["source"] == "ct_gaps"]


def test_a_part_is_settled_by_its_change_that_comes_again_whole(spark, ran):
    """The change stands once; its update that waited is a repeat, and no orphan."""
    found = spark.sql(
        "select batch_id, unit_id from silver.changes where source = 'ct_goods' and change_seq like '202601020402%'"
    ).collect()
    assert [row.unit_id.split("@")[0][-9:] for row in found] == ["again.csv"]
    settled = spark.sql(
        "select batch_id, is_settled from silver.waiting where source = 'ct_goods' and change_seq like '202601020402%' "
        "order by batch_id"
    ).collect()
    assert [row.is_settled for row in settled] == [False, True] and settled[1].batch_id == found[0].batch_id


def test_rows_with_a_column_that_is_new_come_in_once_the_contract_has_it(spark, ran):
    assert {(len(json.loads(row.columns)), row.key, row.table_version) for row in ran.lists} == {
        (2, '["ID"]', 1),
        (3, '["ID"]', None),
    }
    assert [row.found for row in ran.rejects] == ["PRICE is new"] * 3
    missing = spark.sql("select resolved_by from silver.rejects where kind = 'part_missing'").collect()
    assert [row.resolved_by for row in missing] != [None]  # its change came again, whole
    rows = spark.sql(
        "select id, name, price from gold.ct_goods__history where id = 5 order by valid_from_seq"
    ).collect()
    assert [tuple(row) for row in rows] == [(5, "e", 8), (5, "e", 9), (5, "e", 9)]
    rows = spark.sql("select id, name, price from public.ct_goods where source = 'ct_gaps' order by id").collect()
    assert [tuple(row) for row in rows] == [(4, "d", 1), (5, "e", 9), (6, "f", 2)]
    assert "gaps in the changes" not in ran.shown[-1]  # the load has what the lost file had


def test_a_file_that_was_removed_before_it_was_landed_is_a_gap(spark, ran):
    assert [row for row in ran.shown[0]["waiting files"] if row["file"].endswith(LOST)]
    [gap] = ran.shown[1]["gaps in the changes"]
    assert (gap["source"], gap["table"], gap["gap"]) == ("ct_gaps", "SIM.GOODS", "certain")
    assert gap["remedy"] == "Reload the table in Qlik"
    warned = spark.sql("select severity, success from checks.results where why like 'files of changes were removed%'")
    assert ("warn", False) in {tuple(row) for row in warned.collect()}
