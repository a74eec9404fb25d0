"""The toy log, the whole way: all that the codec contract offers, asked by one small format. Its files come one after
the other, one of them early.
"""

import gzip
import json
import os
import shutil
import signal
import sys
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inlet import bronze, config, publish, silver
from inlet.bronze import blocks, files, framing, landing, lookups, ordered, parquet_rows
from inlet.codecs import CODECS
from inlet.commands import decode as decode_command
from inlet.commands import import_contracts, import_definitions, replay
from inlet.commands import run as running
from inlet.commands.file_state import file_state
from inlet.commands.run import build_gold
from inlet.commands.status import status
from inlet.errors import AccountingError, ConfigError, TryAgain
from inlet.gold import generate
from inlet.silver import parts
from tests import projects
from tests.test_pipeline import REPO
from tests.toy import codec as toy
from tests.toy import encode

V1, V2 = [["ID", "int"], ["NAME", "string"]], [["ID", "int"], ["NAME", "string"], ["PRICE", "decimal(7,2)"]]
ITEMS = {
    "table": "TOY.ITEMS",
    "name": "toy_items",
    "key": ["ID"],
    "version": 2,
    "columns": [{"name": n, "type": t} for n, t in V2],
    "earlier": [{"version": 1, "until": "2026-01-02 03:04:05", "columns": [{"name": n, "type": t} for n, t in V1]}],
}
NOTES = {
    "table": "TOY.NOTES",
    "name": "toy_notes",
    "key": ["ID"],
    "columns": [{"name": "ID", "type": "int"}, {"name": "TEXT", "type": "string"}],
}
ABANDONED = [["insert", "TOY.ITEMS", [n, "abandoned", None]] for n in range(100, 120)]
FILE_1 = encode.file(
    1,
    ("columns", "TOY.ITEMS", V1, ["ID"]),
    ("begin", "A"),
    ("insert", "TOY.ITEMS", [1, "a"]),
    ("insert", "TOY.ITEMS", [2, "b"]),
    ("commit", "A"),
    ("ddl", "alter table"),
    ("begin", "B"),
    ("before", 1, "TOY.ITEMS", [1, "a"]),
    ("insert", "TOY.ITEMS", [3, "c"]),
)
FILE_2 = encode.file(
    2,
    ("after", 1, "TOY.ITEMS", [1, "aa"]),
    ("commit", "B"),
    ("columns", "TOY.ITEMS", V2, ["ID"]),
    ("insert", "TOY.ITEMS", [4, "d", "9.50"]),
    ("before", 2, "TOY.ITEMS", [2, "b", None]),
    ("columns", "TOY.NOTES", [["ID", "int"], ["BODY", "string"]], ["ID"]),
    ("insert", "TOY.NOTES", [1, "one"]),
    ("begin", "C"),
    *ABANDONED,
)
FILE_3 = encode.file(
    3,
    ("insert", "TOY.ITEMS", [120, "abandoned", None]),
    ("restart",),
    ("begin", "C"),
    ("insert", "TOY.ITEMS", [7, "y", None]),
    ("delete", "TOY.ITEMS", [3, "c", None]),
    ("commit", "C"),
    ("after", 2, "TOY.ITEMS", [2, "bb", "1.00"]),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line in CODECS, for this process and for Spark's workers. Blocks are so short that a transaction fills
    several.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[toy.__name__])
    monkeypatch.setitem(CODECS, "toy", toy)
    monkeypatch.setattr(framing, "LEN_BLOCK", 100)


def make(root, lakehouse, sources: dict, tables=(ITEMS, NOTES)) -> config.Project:
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"), dirs_exist_ok=True)
    shutil.copytree(REPO / "expectations", root / "expectations", dirs_exist_ok=True)
    project = projects.make(root, sources, list(tables), lakehouse)
    generate.write(project)
    return project


def plan(project) -> bronze.Plan:
    return bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))


def run(project, spark) -> dict:
    """Land and decode all there is. Out: the accounts by source."""
    new = plan(project)
    bronze.land(project, spark, new)
    return silver.run(project, spark, new.batch_id)


def counts(account) -> tuple[int, ...]:
    return (
        account.num_records,
        account.num_settled,
        account.num_changes,
        account.num_control,
        account.num_rejected,
        account.num_waiting,
    )


def shown(spark) -> list[tuple]:
    return [
        tuple(row)
        for row in spark.sql("select ID, NAME, cast(PRICE as string) from public.toy_items order by 1").collect()
    ]


def test_a_feed_whose_changes_lie_in_several_files_and_batches(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "toy"
    landing.mkdir(parents=True)
    project = make(tmp_path, lakehouse, {"toy": {"codec": "toy", "from": "landing/toy"}})
    (landing / "1.toy").write_bytes(FILE_1)
    (landing / "3.toy").write_bytes(FILE_3)
    assert plan(project).held == {"landing/toy/3.toy": "file 2 of toy"}
    # the transaction that is open at the end of the file waits in bronze: begin, two records, and the end of the file
    assert counts(run(project, spark)["toy"]) == (11, 0, 2, 5, 0, 4)
    assert status(project)["waiting for the feed"] == [
        {"source": "toy", "what": "open transactions", "records": 4, "bytes": 98, "since batch": 1}
    ]

    (landing / "3.toy").rename(tmp_path / "3.toy")
    (landing / "2.toy").write_bytes(FILE_2)
    accounts = run(project, spark)
    # an update of two images in two files; the same whose second image has not come waits in silver; a column list in
    # the middle of a block
    assert counts(accounts["toy"]) == (30, 4, 3, 7, 1, 23)
    assert [(row["part_key"], row["unit_length"] > 0) for row in parts.waiting(project)] == [("2", True)]
    versions = spark.sql(
        "select source_table, table_version, columns from silver.table_versions where origin = 'feed' order by "
        "change_seq"
    ).collect()
    assert [(row.source_table, row.table_version, len(json.loads(row.columns))) for row in versions] == [
        ("ITEMS", 1, 2),
        ("ITEMS", 2, 3),
        ("NOTES", None, 2),
    ]
    [reject] = spark.sql("select kind, source_table, expected, found from silver.rejects").collect()
    assert tuple(reject) == ("definition_differs", "NOTES", "ID int, TEXT string", "ID int, BODY string")

    (tmp_path / "3.toy").rename(landing / "3.toy")
    assert counts(run(project, spark)["toy"]) == (9, 23, 3, 29, 0, 0)
    build_gold(project, spark, ["toy_items"])
    publish.run(project, spark)
    assert shown(spark) == [(1, "aa", None), (2, "bb", "1.00"), (4, "d", "9.50"), (7, "y", None)]
    assert parts.waiting(project) == [] and "waiting for the feed" not in status(project)
    # the last transaction once more, in a file of its own: it is known by its id and its places in it
    (landing / "4.toy").write_bytes(
        encode.file(
            4,
            ("begin", "C"),
            ("insert", "TOY.ITEMS", [7, "y", None]),
            ("delete", "TOY.ITEMS", [3, "c", None]),
            ("commit", "C"),
        )
    )
    again = run(project, spark)["toy"]
    assert (again.num_records, again.num_changes, again.num_repeats, again.num_control) == (6, 0, 2, 4)
    assert file_state(project, str(landing / "4.toy"))[0] and file_state(project, str(landing / "5.toy")) == (
        False,
        "landing/toy/5.toy: nothing of it is landed, and there is no such file",
    )
    events = spark.sql(
        "select kind, sum(unit_length) from silver.control_events where kind in ('ddl', 'abandoned') group by kind "
        "order by kind"
    ).collect()
    size = sum(
        len(encode.record(*record))
        for record in (
            ("begin", "C"),
            *ABANDONED,
            ("end",),
            ("file", 3, "2026010203040500"),
            ("insert", "TOY.ITEMS", [120, "abandoned", None]),
            ("restart",),
        )
    )
    assert [tuple(row) for row in events] == [("abandoned", size), ("ddl", len(encode.record("ddl", "alter table")))]


def test_what_was_rejected_is_decoded_again_once_its_contract_says_what_the_feed_says(spark, lakehouse, tmp_path):
    """A row and an update of another definition, and a row of a table without a contract."""
    landing = tmp_path / "landing" / "late"
    landing.mkdir(parents=True)
    sources = {"late": {"codec": "toy", "from": "landing/late"}}
    project = make(
        tmp_path,
        lakehouse,
        sources,
        [ITEMS | {"table": "LATE.ITEMS", "name": "late_items"}, NOTES | {"table": "LATE.NOTES", "name": "late_notes"}],
    )
    body = [["ID", "int"], ["BODY", "string"]]
    (landing / "1.toy").write_bytes(
        encode.file(
            1,
            ("columns", "LATE.NOTES", body, ["ID"]),
            ("insert", "LATE.NOTES", [1, "one"]),
            ("before", 7, "LATE.NOTES", [1, "one"]),
            ("after", 7, "LATE.NOTES", [1, "two"]),
            ("columns", "LATE.TAGS", body, ["ID"]),
            ("insert", "LATE.TAGS", [5, "five"]),
        )
    )
    assert counts(run(project, spark)["late"]) == (8, 0, 0, 4, 4, 0)
    with pytest.raises(ConfigError, match="There is no reject to decode again of source late, kind bad_date"):
        replay.chosen(project, "late", "bad_date", None, None)
    assert replay.due(project, ["late"]) == []

    definitions = import_definitions.from_feeds(project, "late", None)
    import_contracts.write(import_contracts.contracts(project, definitions, import_contracts.Answers({"TEXT": "BODY"})))
    project = config.load(tmp_path)
    assert [(t.table, t.version, t.column_names) for t in project.tables.values() if t.name != "late_items"] == [
        ("LATE.NOTES", 2, ["ID", "BODY"]),
        ("LATE.TAGS", 1, ["ID", "BODY"]),
    ]
    due = running.find_work(project, running.STEPS[1:], [], []).due
    assert len(due) == 4
    silver.run(project, spark, replay.plan(project, spark, due))
    found = spark.sql(
        "select source_table, table_version, operation, cast(after:ID as int), cast(after:BODY as string) from "
        "silver.changes where source = 'late' order by change_seq"
    ).collect()
    assert [tuple(row) for row in found] == [
        ("NOTES", 2, "INSERT", 1, "one"),
        ("NOTES", 2, "UPDATE", 1, "two"),
        ("TAGS", 1, "INSERT", 5, "five"),
    ]
    [batch] = spark.sql("select * from silver.batches where source = 'late' order by batch_id desc limit 1").collect()
    assert (batch.num_records, batch.num_settled, batch.num_changes, batch.num_control, batch.num_rejected) == (
        0,
        4,
        3,
        1,
        0,
    )
    assert batch.bytes_settled == batch.bytes_decoded + batch.bytes_framing
    resolved = spark.sql("select distinct resolved_by from silver.rejects where source = 'late'").collect()
    assert [row[0] for row in resolved] == [batch.batch_id] and replay.unresolved(project, "late") == []


def test_a_file_waits_for_what_comes_with_it(tmp_path):
    landing = tmp_path / "landing" / "side"
    landing.mkdir(parents=True)
    project = projects.make(
        tmp_path, {"side": {"codec": "toy", "from": "landing/side", "options": {"sidecar": True}}}, [NOTES]
    )
    (landing / "1.toy").write_bytes(encode.file(1, ("insert", "TOY.NOTES", [1, "one"])))
    assert (plan(project).files, plan(project).held) == ([], {"landing/side/1.toy": "its 1.toy.columns"})
    (landing / "1.toy.columns").write_text(json.dumps({"TOY.NOTES": [[["ID", "int"], ["TEXT", "string"]], ["ID"]]}))
    [row] = plan(project).files
    [block] = blocks.units_of(project, row)
    found = toy.decode(block["bytes"], json.loads(block["context"]), project.sources["side"], project.tables)
    assert [change["after"] for change in found.changes] == [{"ID": 1, "TEXT": "one"}]

    (landing / "1.toy.columns").rename(landing / "2.toy.columns")
    (landing / "2.toy").write_bytes(encode.file(2))  # the first file keeps its place while it waits
    waits = {"landing/side/1.toy": "its 1.toy.columns", "landing/side/2.toy": "file 1 of side"}
    assert (plan(project).files, plan(project).held) == ([], waits)


def test_a_file_before_the_first_and_one_that_was_read_under_another_name_wait_for_a_person(tmp_path):
    landing = tmp_path / "landing" / "toy"
    landing.mkdir(parents=True)
    project = projects.make(tmp_path, {"toy": {"codec": "toy", "from": "landing/toy"}}, [NOTES])
    (landing / "b.toy").write_bytes(encode.file(2))
    landed = plan(project).files
    (landing / "a.toy").write_bytes(encode.file(1))
    (landing / "c.toy").write_bytes(encode.file(2, ("ddl", "again")))
    (landing / "d.toy").write_bytes(encode.record("file", 3, "2026010203040500") + b"\0")
    again = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, landed))
    assert again.held == {
        "landing/toy/a.toy": "a person: toy was begun with file 2, and this is file 1; read it as a source of its own, "
        "or take it away",
        "landing/toy/c.toy": "a person: file 2 of toy was read under another name; if this is that file delivered "
        "anew, put it in that one's place, under its name, then `inlet replay --file PATH`; or take it away",
    }
    assert [row["path"] for row in again.files] == ["landing/toy/d.toy"] and again.waiting == {"landing/toy/d.toy": 1}


def test_the_first_of_an_order_is_not_guessed_while_a_file_does_not_tell_its_place(tmp_path, monkeypatch):
    """One that is too short, may not be whole or cannot be opened may come before all others."""
    folder = tmp_path / "landing" / "toy"
    folder.mkdir(parents=True)
    project = projects.make(tmp_path, {"toy": {"codec": "toy", "from": "landing/toy"}}, [NOTES])
    (folder / "2.toy").write_bytes(encode.file(2))
    waits = "landing/toy/1.toy, which may be the first of toy"
    (folder / "1.toy").write_bytes(encode.file(1)[:1])
    assert plan(project).held == {"landing/toy/1.toy": "more of its beginning", "landing/toy/2.toy": waits}
    (folder / "1.toy").rename(folder / "1.toy.gz")
    (folder / "1.toy.gz").write_bytes(gzip.compress(encode.file(1)))
    held = plan(project).held
    assert held.pop("landing/toy/1.toy.gz").startswith("its end") and held == {
        "landing/toy/2.toy": waits.replace(".toy,", ".toy.gz,")
    }
    os.utime(folder / "1.toy.gz", (1, 1))
    assert [row["path"][-8:] for row in plan(project).files] == ["1.toy.gz", "oy/2.toy"]
    (folder / "1.toy.gz").rename(tmp_path / "1.toy.gz")

    (folder / "1.toy").write_bytes(encode.file(1))
    denied, open_file = "landing/toy/1.toy", files.open_file

    def opened(project, path):
        if path == denied:
            raise PermissionError(13, "Permission denied")
        return open_file(project, path)

    for module in (files, blocks, ordered):
        monkeypatch.setattr(module, "open_file", opened)
    found = plan(project)
    no_right = "cannot be opened (Permission denied); see that Inlet may read it, or take it away"
    assert (found.files, found.held) == ([], {denied: f"a person: it {no_right}", "landing/toy/2.toy": waits})
    denied = ""
    first = [row for row in plan(project).files if row["path"] == "landing/toy/1.toy"]
    (folder / "3.toy").write_bytes(encode.file(3))
    denied = "landing/toy/3.toy"  # the first one is known: the others go on
    found = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project, first))
    assert ([row["path"] for row in found.files], list(found.held)) == (["landing/toy/2.toy"], [denied])

    sidecar = {"side": {"codec": "toy", "from": "landing/toy", "options": {"sidecar": True}}}
    project, denied = projects.make(tmp_path, sidecar, [NOTES]), "landing/toy/1.toy.columns"
    for number in (1, 2):
        (folder / f"{number}.toy.columns").write_text("{}")
    found = plan(project)
    assert found.held["landing/toy/1.toy"] == f"a person: its 1.toy.columns {no_right}"


def losing(data, context, source, tables):
    """A codec with a fault: of the source `bad` it forgets a record."""
    found = toy.decode(data, context, source, tables)
    if source.name == "bad":
        found.num_control -= 1
    return found


def test_a_codec_that_loses_a_record_stops_its_source_alone(spark, lakehouse, tmp_path, monkeypatch):
    for source in ("bad", "good"):
        (tmp_path / "landing" / source).mkdir(parents=True)
        (tmp_path / "landing" / source / "1.toy").write_bytes(
            encode.file(
                1,
                ("columns", "TOY.NOTES", [["ID", "int"], ["TEXT", "string"]], ["ID"]),
                ("insert", "TOY.NOTES", [1, "one"]),
            )
        )
    project = projects.make(
        tmp_path, {name: {"codec": "toy", "from": f"landing/{name}"} for name in ("bad", "good")}, [NOTES], lakehouse
    )
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with monkeypatch.context() as patched:
        patched.setitem(CODECS, "toy", SimpleNamespace(**vars(toy) | {"decode": losing}))
        with pytest.raises(
            AccountingError,
            match="bad stopped, the other sources of batch .* went on: codec toy, unit bad/landing/bad/1.toy@0: . "
            "records were framed",
        ):
            run(project, spark)
        (tmp_path / "landing" / "bad" / "2.toy").write_bytes(encode.file(2, ("insert", "TOY.NOTES", [2, "two"])))
        with pytest.raises(AccountingError, match="bad waits: batch .* of it is not whole"):
            run(project, spark)
    first, second = silver.pending(project)
    assert [
        row[0] for row in spark.sql(f"select distinct source from silver.changes where batch_id >= {first}").collect()
    ] == ["good"]
    assert counts(silver.run(project, spark, first)["bad"]) == (4, 0, 1, 3, 0, 0)
    assert counts(silver.run(project, spark, second)["bad"]) == (3, 0, 1, 2, 0, 0)
    assert silver.pending(project) == []


def test_files_behind_one_that_is_set_aside_are_set_aside_with_it(tmp_path):
    (tmp_path / "landing" / "toy").mkdir(parents=True)
    project = projects.make(tmp_path, {"toy": {"codec": "toy", "from": "landing/toy"}}, [NOTES])
    for number in (1, 2):
        (tmp_path / "landing" / "toy" / f"{number}.toy").write_bytes(encode.file(number))
    first, second = plan(project).files
    [after] = landing._after(project, [first, second], [first])
    assert (after["path"], after["num_units"], after["verdicts"], json.loads(after["problem"])["kind"]) == (
        second["path"],
        0,
        None,
        "file_rewritten",
    )


def test_the_same_codec_reads_messages_whose_changes_come_in_two(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "said"
    landing.mkdir(parents=True)
    project = projects.make(
        tmp_path, {"said": {"codec": "toy", "from": {"transport": "lines", "path": "landing/said"}}}, [NOTES], lakehouse
    )
    lines = [
        ["insert", "TOY.NOTES", [1, "one"]],
        ["before", 9, "TOY.NOTES", [1, "one"]],
        ["ddl", "alter"],
        ["upsert"],
        ["after", 9, "TOY.NOTES", [1, "two"]],
    ]
    (landing / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:4]))
    assert counts(run(project, spark)["said"]) == (4, 0, 1, 1, 1, 1)
    (landing / "2.jsonl").write_text(json.dumps(lines[4]) + "\n")
    assert counts(run(project, spark)["said"]) == (1, 1, 1, 1, 0, 0)
    found = spark.sql(
        "select operation, cast(before:TEXT as string), cast(after:TEXT as string), unit_id from "
        "silver.changes where source = 'said' order by change_seq"
    ).collect()
    assert sorted(tuple(row) for row in found) == [
        ("INSERT", None, "one", "said/landing/said/1.jsonl/0/0"),
        ("UPDATE", "one", "two", "said/landing/said/2.jsonl/0/0"),
    ]


def test_a_file_of_an_order_that_ends_its_reader_is_set_aside_and_the_next_ones_wait(tmp_path, monkeypatch):
    (tmp_path / "landing" / "toy").mkdir(parents=True)
    project = projects.make(tmp_path, {"toy": {"codec": "toy", "from": "landing/toy"}}, [NOTES])
    for number, text in ((1, "fine"), (2, "deadly"), (3, "fine")):
        (tmp_path / "landing" / "toy" / f"{number}.toy").write_bytes(encode.file(number, ("ddl", text)))

    def cut(data, *given):
        if b"deadly" in data:
            os.kill(os.getpid(), signal.SIGKILL)
        return toy.cut(data, *given)

    monkeypatch.setitem(CODECS, "toy", SimpleNamespace(**vars(toy) | {"cut": cut}))
    found = plan(project)
    assert [(row["path"][-5:], row["problem"] and json.loads(row["problem"])["kind"]) for row in found.files] == [
        ("1.toy", None),
        ("2.toy", "unreadable_file"),
    ]
    assert found.held == {"landing/toy/3.toy": "file 2 of toy"}


def test_what_messages_name_is_looked_up_once_and_what_was_not_there_is_read_once_it_is(
    spark, lakehouse, tmp_path, monkeypatch
):
    """Two column lists of one table, named in headers; one of them is not there when its message comes."""
    landing, lists = tmp_path / "landing" / "named", tmp_path / "lists"
    landing.mkdir(parents=True)
    lists.mkdir()
    where = {"transport": "parquet", "path": "landing/named", "lookups": "lists/{name}.json"}
    items = ITEMS | {"table": "NAMED.ITEMS", "name": "named_items"}
    project = make(tmp_path, lakehouse, {"named": {"codec": "toy", "from": where}}, [items])

    def write(number: int, *rows: tuple):
        """In: (offset, name of a column list, row)."""
        pq.write_table(
            pa.table(
                {
                    "topic": ["items"] * len(rows),
                    "partition": pa.array([0] * len(rows), pa.int32()),
                    "offset": pa.array([offset for offset, _, _ in rows], pa.int64()),
                    "timestamp": pa.array([0] * len(rows), pa.timestamp("us", tz="UTC")),
                    "value": [json.dumps(["insert", "NAMED.ITEMS", row]).encode() for _, _, row in rows],
                    "headers": pa.array([[{"key": "columns", "value": name.encode("latin-1")}] for _, name, _ in rows]),
                }
            ),
            landing / f"{number}.parquet",
        )

    (lists / "one.json").write_text(json.dumps({"NAMED.ITEMS": [V1, ["ID"]]}))
    write(1, (0, "one", [1, "a"]), (1, "../two", [2, "b", "1.50"]), (2, "one", [3, "c"]), (9, "\xff", [9, "z"]))
    assert counts(run(project, spark)["named"]) == (4, 0, 2, 0, 2, 0)
    broken = "kind = 'decoder_failed' and raw is not null"  # the name is no text: not read as if it had named nothing
    assert spark.sql(f"select 1 from silver.rejects where source = 'named' and {broken}").count() == 1
    kept = spark.sql("select name, origin, cast(value as string) as value from bronze.lookups where source = 'named'")
    assert {row.name: row.value is None for row in kept.collect()} == {"one": False, "../two": True}
    assert replay.due(project, ["named"]) == []
    (lists / "one.json").write_text("{}")  # the first answer stays, for later batches, too
    write(2, (3, "one", [4, "d"]))
    assert counts(run(project, spark)["named"]) == (1, 0, 1, 0, 0, 0)

    with monkeypatch.context() as patch:  # a registry that does not answer stops no run that needs nothing new of it
        patch.setattr(lookups, "fetch", lambda *of: (_ for _ in ()).throw(TryAgain("no answer", "wait")))
        assert replay.due(project, ["named"]) == []
    (lists / "..%2Ftwo.json").write_text(json.dumps({"NAMED.ITEMS": [V2, ["ID"]]}))
    batch_id = replay.plan(project, spark, replay.due(project, ["named"]))
    assert counts(silver.run(project, spark, batch_id)["named"])[2] == 1
    assert replay.due(project, ["named"]) == []
    found = spark.sql(
        "select cast(after:ID as int), table_version from silver.changes where source = 'named' order by change_seq"
    )
    assert [tuple(row) for row in found.collect()] == [(1, 1), (2, 2), (3, 1), (4, 1)]


def test_rows_of_columnar_files_are_decoded_group_by_group_and_kept_as_they_came(
    spark, lakehouse, tmp_path, monkeypatch
):
    """A change, a repeat with other content in a later file, a row of an unknown table, an update in two rows."""
    landing = tmp_path / "landing" / "rows"
    landing.mkdir(parents=True)
    items = ITEMS | {"table": "ROWS.ITEMS", "name": "rows_items"}
    source = {"codec": "toy", "from": {"transport": "rows", "path": "landing/rows/*.parquet"}}
    project = make(tmp_path, lakehouse, {"rows": source}, [items])

    def write(name: str, number: int, *rows: tuple):
        """In: (kind, table, its rows)."""
        columns = {
            "kind": [kind for kind, _, _ in rows],
            "table": [table for _, table, _ in rows],
            "rows": [json.dumps(values) for _, _, values in rows],
        }
        table = pa.table(columns).replace_schema_metadata({"number": f"{number}"})
        pq.write_table(table, landing / f"{name}.parquet", row_group_size=3)
        return (landing / f"{name}.parquet").read_bytes()

    inserts = [("insert", "ROWS.ITEMS", [[n, f"n{n}", "1.00"]]) for n in range(4)]
    data = write("1", 1, *inserts, ("insert", "ROWS.NONE", [[1]]))
    assert counts(run(project, spark)["rows"]) == (5, 0, 4, 0, 1, 0)
    write("1_again", 1, ("insert", "ROWS.ITEMS", [[0, "other", "1.00"]]))
    assert counts(run(project, spark)["rows"]) == (1, 0, 0, 0, 1, 0)
    write("bad", 1)
    (landing / "bad.parquet").write_bytes(data[:-20])
    os.utime(landing / "bad.parquet", (1, 1))
    assert counts(run(project, spark)["rows"]) == (0, 0, 0, 0, 0, 0)

    units = spark.sql(
        "select file_offset, num_records from bronze.blocks where source = 'rows' and path like '%/1.%' order by 1"
    )
    assert [tuple(row) for row in units.collect()] == [(0, 3), (3, 2)]
    [kept] = spark.sql("select bytes from bronze.delivered where source = 'rows' and path like '%/1.parquet'").collect()
    assert bytes(kept.bytes) == data
    rejects = spark.sql(
        "select kind, unit_id, unit_offset, cast(raw as string) from silver.rejects where source = 'rows' order by 1"
    ).collect()
    assert [tuple(row) for row in rejects[:-1]] == [
        ("conflicting_duplicate", "rows/landing/rows/1_again.parquet@0", 0, None),
        ("unknown_table", "rows/landing/rows/1.parquet@3", 1, '["insert", "ROWS.NONE", [1]]'),
    ]
    assert rejects[-1].kind == "unreadable_file"
    monkeypatch.setattr(parquet_rows, "NUM_ROWS", 2)
    found = list(decode_command.decode_file(project, landing / "1.parquet", "rows"))
    assert [(what, row.get("operation"), row["file_offset"]) for what, row in found] == [
        *(("change", "INSERT", n) for n in range(4)),
        ("reject", None, 4),
    ]
    chosen = replay.chosen(project, "rows", "unknown_table", None, None)
    assert counts(silver.run(project, spark, replay.plan(project, spark, chosen))["rows"]) == (0, 1, 0, 0, 1, 0)


def test_the_clock_rejects_a_part_and_its_late_other_brings_it_back(spark, lakehouse, tmp_path):
    landing = tmp_path / "landing" / "late_parts"
    landing.mkdir(parents=True)
    source = {
        "codec": "toy",
        "from": {"transport": "lines", "path": "landing/late_parts"},
        "tables": {"*": "PARTS.NOTES"},
        "part_wait_minutes": 1e-9,
    }
    project = make(
        tmp_path, lakehouse, {"late_parts": source}, [NOTES | {"table": "PARTS.NOTES", "name": "parts_notes"}]
    )

    def write(number: int, *records):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (landing / f"{number}.jsonl").write_text(text)

    write(1, ["before", 1, "PARTS.NOTES", [1, "one"]])
    assert counts(run(project, spark)["late_parts"]) == (1, 0, 0, 0, 0, 1)  # no part is overdue in its own batch
    write(2, ["insert", "PARTS.NOTES", [2, "two"]])
    assert counts(run(project, spark)["late_parts"]) == (1, 1, 1, 0, 1, 0)
    [reject] = spark.sql("select kind, found from silver.rejects where source = 'late_parts'").collect()
    assert tuple(reject) == ("part_missing", "none of 1")
    assert parts.waiting(project) == [] and replay.due(project, ["late_parts"]) == []
    write(3, ["after", 1, "PARTS.NOTES", [1, "uno"]])
    assert counts(run(project, spark)["late_parts"]) == (1, 0, 0, 0, 0, 1)
    due = replay.due(project, ["late_parts"])
    assert [row["unit_id"] for row in due] == ["late_parts/landing/late_parts/1.jsonl/0/0"]
    assert counts(silver.run(project, spark, replay.plan(project, spark, due))["late_parts"])[2:] == (1, 1, 0, 0)
    found = spark.sql(
        "select operation, cast(before:TEXT as string), cast(after:TEXT as string), to_json(header) "
        "from silver.changes where source = 'late_parts' order by change_seq"
    )
    assert [tuple(row) for row in found.collect()] == [
        ("INSERT", None, "two", None),
        ("UPDATE", "one", "uno", '{"number":1}'),
    ]
    assert parts.waiting(project) == [] and replay.due(project, ["late_parts"]) == []
