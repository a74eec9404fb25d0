"""The toy log, the whole way: all that the codec contract offers, asked by one small format. Its files come one after
the other, one of them early.
"""

import gzip
import json
import os
import shutil
import signal
import sys
from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inlet import bronze, config, lake, publish, silver
from inlet.bronze import blocks, files, framing, landing, lookups, ordered, parquet_rows
from inlet.codecs import CODECS
from inlet.commands import decode as decode_command
from inlet.commands import import_contracts, import_definitions, replay
from inlet.commands import run as running
from inlet.commands.file_state import file_state
from inlet.commands.run import build_gold
from inlet.commands.status import status
from inlet.errors import AccountingError, ConfigError, TryAgain
from inlet.fields import variant
from inlet.gold import generate
from inlet.silver import parts
from tests import both_ways, projects
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


@pytest.fixture(autouse=True, scope="module")
def registered():
    """The one line in CODECS, for this process and for Spark's workers. Blocks are so short that a transaction fills
    several.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[toy.__name__])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CODECS, "toy", toy)
        patch.setattr(framing, "LEN_BLOCK", 100)
        yield


def make(root, lakehouse, sources: dict, tables=(ITEMS, NOTES)) -> config.Project:
    shutil.copytree(REPO / "dbt", root / "dbt", ignore=shutil.ignore_patterns("target", "gold"), dirs_exist_ok=True)
    shutil.copytree(REPO / "expectations", root / "expectations", dirs_exist_ok=True)
    project = projects.make(root, sources, list(tables), lakehouse)
    generate.write(project)
    return project


def plan(project, *sources: str) -> bronze.Plan:
    """In: sources; none for all."""
    return both_ways.planned(project, bronze.History(project), *sources)


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


class Place:
    """Where a story plays: its source, in the project and the lakehouse that all stories share."""

    def __init__(self, source: str, world: SimpleNamespace):
        self.source, self.world = source, world
        self.landing = world.root / "landing" / source
        self.landing.mkdir(parents=True)

    @property
    def project(self) -> config.Project:
        return self.world.project

    def held(self) -> dict[str, str]:
        return plan(self.project, self.source).held

    def waiting(self) -> list[dict]:
        """Parts that wait."""
        return [row for row in parts.waiting(self.project) if row["source"] == self.source]

    def due(self) -> list[dict]:
        return replay.due(self.project, [self.source])

    def rows(self, table: str, *columns: str, where: str = "true", by: str = "1") -> list[tuple]:
        """Columns of a table, of the rows of this source, read without Spark; images as dicts."""
        lakehouse, end = self.project.lakehouse_path(), f"where source = '{self.source}' and {where} order by {by}"
        return [
            tuple(plain(value) for value in row.values()) for row in lake.peek(lakehouse, table, list(columns), end)
        ]

    def changes(self, *columns: str) -> list[tuple]:
        return self.rows("silver.changes", *columns, by="change_seq")


def plain(value):
    is_variant = isinstance(value, dict) and value.keys() == {"metadata", "value"}
    return variant.decode(**value) if is_variant else value


STORIES: dict[str, tuple] = {}  # its name -> source, what the source says, contracts, the story


def story(source: str, from_, *tables: dict, **fields):
    """A scenario of one source: a generator that writes what is delivered, and yields. It goes on with the account of
    the batch that took this; where it yields rejects, of the one that decodes them again.
    """

    def entered(function):
        STORIES[function.__name__] = source, {"codec": "toy", "from": from_} | fields, tables, function
        return function

    return entered


@pytest.fixture(scope="module")
def ends(spark, lakehouse, tmp_path_factory) -> dict[str, Exception | None]:
    """Story -> what went wrong in it. All of them share each batch, which is most of what they cost."""
    world = SimpleNamespace(root=tmp_path_factory.mktemp("stories"), spark=spark)
    contracts = {table["name"]: table for _, _, tables, _ in STORIES.values() for table in tables}
    sources = {source: said for source, said, _, _ in STORIES.values()}
    world.project = make(world.root, lakehouse, sources, contracts.values())
    told = {name: function(Place(source, world)) for name, (source, _, _, function) in STORIES.items()}
    ends, asked = dict.fromkeys(told), {}

    def go_on(name: str, account) -> None:
        asked.pop(name, None)
        try:
            asked[name] = told[name].send(account)
        except StopIteration:
            pass
        except Exception as error:  # its test raises it
            ends[name] = error

    for name in told:
        go_on(name, None)
    while asked:
        delivered = [name for name, rejects in asked.items() if rejects is None]
        if delivered:
            accounts = run(world.project, spark)
        else:
            rejects = [row for rows in asked.values() for row in rows]
            accounts = silver.run(world.project, spark, replay.plan(world.project, spark, rejects))
        for name in delivered or list(asked):
            go_on(name, accounts.get(STORIES[name][0]))
    return ends


@story("toy", "landing/toy", ITEMS, NOTES)
def a_feed_whose_changes_lie_in_several_files_and_batches(here):
    landing, aside = here.landing, here.world.root / "3.toy"
    (landing / "1.toy").write_bytes(FILE_1)
    (landing / "3.toy").write_bytes(FILE_3)
    assert here.held() == {"landing/toy/3.toy": "file 2 of toy"}
    # the transaction that is open at the end of the file waits in bronze: begin, two records, and the end of the file
    assert counts((yield)) == (11, 0, 2, 5, 0, 4)
    [batch] = here.rows("silver.batches", "batch_id")
    open_one = {"source": "toy", "what": "open transactions", "records": 4, "bytes": 98, "since batch": batch[0]}
    assert waits(here) == [open_one]

    (landing / "3.toy").rename(aside)
    (landing / "2.toy").write_bytes(FILE_2)
    # an update of two images in two files; the same whose second image has not come waits in silver; a column list in
    # the middle of a block
    assert counts((yield)) == (30, 4, 3, 7, 1, 23)
    assert [(row["part_key"], row["unit_length"] > 0) for row in here.waiting()] == [("2", True)]
    found = here.rows(
        "silver.table_versions", "source_table", "table_version", "columns", where="origin = 'feed'", by="change_seq"
    )
    assert [(table, version, len(json.loads(columns))) for table, version, columns in found] == [
        ("ITEMS", 1, 2),
        ("ITEMS", 2, 3),
        ("NOTES", None, 2),
    ]
    assert here.rows("silver.rejects", "kind", "source_table", "expected", "found") == [
        ("definition_differs", "NOTES", "ID int, TEXT string", "ID int, BODY string")
    ]

    aside.rename(landing / "3.toy")
    assert counts((yield)) == (9, 23, 3, 29, 0, 0)
    build_gold(here.project, here.world.spark, ["toy_items"])
    publish.run(here.project, here.world.spark)
    assert shown(here.world.spark) == [(1, "aa", None), (2, "bb", "1.00"), (4, "d", "9.50"), (7, "y", None)]
    assert here.waiting() == [] and waits(here) == []
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
    again = yield
    assert (again.num_records, again.num_changes, again.num_repeats, again.num_control) == (6, 0, 2, 4)
    assert file_state(here.project, str(landing / "4.toy"))[0]
    assert file_state(here.project, str(landing / "5.toy")) == (
        False,
        "landing/toy/5.toy: nothing of it is landed, and there is no such file",
    )
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
    lengths = Counter()
    for kind, length in here.rows("silver.control_events", "kind", "unit_length"):
        lengths[kind] += length
    assert (lengths["abandoned"], lengths["ddl"]) == (size, len(encode.record("ddl", "alter table")))


def waits(here) -> list[dict]:
    return [row for row in status(here.project).get("waiting for the feed", []) if row["source"] == here.source]


LATE = ITEMS | {"table": "LATE.ITEMS", "name": "late_items"}, NOTES | {"table": "LATE.NOTES", "name": "late_notes"}


@story("late", "landing/late", *LATE)
def what_was_rejected_is_decoded_again_once_its_contract_says_what_the_feed_says(here):
    """A row and an update of another definition, and a row of a table without a contract."""
    body = [["ID", "int"], ["BODY", "string"]]
    (here.landing / "1.toy").write_bytes(
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
    assert counts((yield)) == (8, 0, 0, 4, 4, 0)
    with pytest.raises(ConfigError, match="There is no reject to decode again of source late, kind bad_date"):
        replay.chosen(here.project, "late", "bad_date", None, None)
    assert here.due() == []

    definitions = import_definitions.from_feeds(here.project, "late", None)
    answers = import_contracts.Answers({"TEXT": "BODY"})
    import_contracts.write(import_contracts.contracts(here.project, definitions, answers))
    project = here.world.project = config.load(here.world.root)
    assert [(t.table, t.version, t.column_names) for t in project.tables.values() if t.table.startswith("LATE.")] == [
        ("LATE.ITEMS", 2, ["ID", "NAME", "PRICE"]),
        ("LATE.NOTES", 2, ["ID", "BODY"]),
        ("LATE.TAGS", 1, ["ID", "BODY"]),
    ]
    due = [row for row in running.find_work(project, running.STEPS[1:], [], []).due if row["source"] == "late"]
    assert len(due) == 4
    account = yield due
    assert here.changes("source_table", "table_version", "operation", "after") == [
        ("NOTES", 2, "INSERT", {"ID": 1, "BODY": "one"}),
        ("NOTES", 2, "UPDATE", {"ID": 1, "BODY": "two"}),
        ("TAGS", 1, "INSERT", {"ID": 5, "BODY": "five"}),
    ]
    assert counts(account) == (0, 4, 3, 1, 0, 0)
    columns = "batch_id", "num_records", "num_settled", "num_changes", "num_control", "num_rejected"
    batch_id, *said = here.rows("silver.batches", *columns)[-1]
    assert said == [0, 4, 3, 1, 0]
    assert account.bytes_settled == account.bytes_decoded + account.bytes_framing
    assert set(here.rows("silver.rejects", "resolved_by")) == {(batch_id,)}
    assert replay.unresolved(here.project, "late") == []


@story("said", {"transport": "lines", "path": "landing/said"}, NOTES)
def messages_whose_changes_come_in_two(here):
    """The same codec reads them."""
    lines = [
        ["insert", "TOY.NOTES", [1, "one"]],
        ["before", 9, "TOY.NOTES", [1, "one"]],
        ["ddl", "alter"],
        ["upsert"],
        ["after", 9, "TOY.NOTES", [1, "two"]],
    ]
    (here.landing / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[:4]))
    assert counts((yield)) == (4, 0, 1, 1, 1, 1)
    (here.landing / "2.jsonl").write_text(json.dumps(lines[4]) + "\n")
    assert counts((yield)) == (1, 1, 1, 1, 0, 0)
    one, two = {"ID": 1, "TEXT": "one"}, {"ID": 1, "TEXT": "two"}
    assert sorted(here.changes("operation", "before", "after", "unit_id"), key=repr) == [
        ("INSERT", None, one, "said/landing/said/1.jsonl/0/0"),
        ("UPDATE", one, two, "said/landing/said/2.jsonl/0/0"),
    ]


NAMED = {"transport": "parquet", "path": "landing/named", "lookups": "lists/{name}.json"}


@story("named", NAMED, ITEMS | {"table": "NAMED.ITEMS", "name": "named_items"})
def what_messages_name_is_looked_up_once_and_what_was_not_there_is_read_once_it_is(here):
    """Two column lists of one table, named in headers; one of them is not there when its message comes."""
    lists = here.world.root / "lists"
    lists.mkdir()

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
            here.landing / f"{number}.parquet",
        )

    (lists / "one.json").write_text(json.dumps({"NAMED.ITEMS": [V1, ["ID"]]}))
    write(1, (0, "one", [1, "a"]), (1, "../two", [2, "b", "1.50"]), (2, "one", [3, "c"]), (9, "\xff", [9, "z"]))
    assert counts((yield)) == (4, 0, 2, 0, 2, 0)
    # the name is no text: not read as if it had named nothing
    assert len(here.rows("silver.rejects", "kind", where="kind = 'decoder_failed' and raw is not null")) == 1
    kept = {name: value is None for name, value in here.rows("bronze.lookups", "name", "value")}
    assert kept == {"one": False, "../two": True}
    assert here.due() == []
    (lists / "one.json").write_text("{}")  # the first answer stays, for later batches, too
    write(2, (3, "one", [4, "d"]))
    assert counts((yield)) == (1, 0, 1, 0, 0, 0)

    with pytest.MonkeyPatch.context() as patch:  # a registry that does not answer stops no run that needs nothing new
        patch.setattr(lookups, "fetch", lambda *of: (_ for _ in ()).throw(TryAgain("no answer", "wait")))
        assert here.due() == []
    (lists / "..%2Ftwo.json").write_text(json.dumps({"NAMED.ITEMS": [V2, ["ID"]]}))
    assert counts((yield here.due()))[2] == 1
    assert here.due() == []
    found = [(after["ID"], version) for after, version in here.changes("after", "table_version")]
    assert found == [(1, 1), (2, 2), (3, 1), (4, 1)]


ROWS = {"transport": "rows", "path": "landing/rows/*.parquet"}


@story("rows", ROWS, ITEMS | {"table": "ROWS.ITEMS", "name": "rows_items"})
def rows_of_columnar_files_are_decoded_group_by_group_and_kept_as_they_came(here):
    """A change, a repeat with other content in a later file, a row of an unknown table, an update in two rows."""
    landing = here.landing

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
    assert counts((yield)) == (5, 0, 4, 0, 1, 0)
    write("1_again", 1, ("insert", "ROWS.ITEMS", [[0, "other", "1.00"]]))
    assert counts((yield)) == (1, 0, 0, 0, 1, 0)
    write("bad", 1)
    (landing / "bad.parquet").write_bytes(data[:-20])
    os.utime(landing / "bad.parquet", (1, 1))
    assert counts((yield)) == (0, 0, 0, 0, 0, 0)

    first = "path = 'landing/rows/1.parquet'"
    assert here.rows("bronze.blocks", "file_offset", "num_records", where=first) == [(0, 3), (3, 2)]
    assert here.rows("bronze.delivered", "bytes", where=first) == [(data,)]
    *found, (last, *_) = here.rows("silver.rejects", "kind", "unit_id", "unit_offset", "raw")
    assert found == [
        ("conflicting_duplicate", "rows/landing/rows/1_again.parquet@0", 0, None),
        ("unknown_table", "rows/landing/rows/1.parquet@3", 1, b'["insert", "ROWS.NONE", [1]]'),
    ]
    assert last == "unreadable_file"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_rows, "NUM_ROWS", 2)
        shown = list(decode_command.decode_file(here.project, landing / "1.parquet", "rows"))
    assert [(what, row.get("operation"), row["file_offset"]) for what, row in shown] == [
        *(("change", "INSERT", n) for n in range(4)),
        ("reject", None, 4),
    ]
    account = yield replay.chosen(here.project, "rows", "unknown_table", None, None)
    assert counts(account) == (0, 1, 0, 0, 1, 0)


LATE_PARTS = {"tables": {"*": "PARTS.NOTES"}, "part_wait_minutes": 1e-9}


@story(
    "late_parts",
    {"transport": "lines", "path": "landing/late_parts"},
    NOTES | {"table": "PARTS.NOTES", "name": "parts_notes"},
    **LATE_PARTS,
)
def the_clock_rejects_a_part_and_its_late_other_brings_it_back(here):
    def write(number: int, *records):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (here.landing / f"{number}.jsonl").write_text(text)

    write(1, ["before", 1, "PARTS.NOTES", [1, "one"]])
    assert counts((yield)) == (1, 0, 0, 0, 0, 1)  # no part is overdue in its own batch
    write(2, ["insert", "PARTS.NOTES", [2, "two"]])
    assert counts((yield)) == (1, 1, 1, 0, 1, 0)
    assert here.rows("silver.rejects", "kind", "found") == [("part_missing", "none of 1")]
    assert here.waiting() == [] and here.due() == []
    write(3, ["after", 1, "PARTS.NOTES", [1, "uno"]])
    assert counts((yield)) == (1, 0, 0, 0, 0, 1)
    due = here.due()
    assert [row["unit_id"] for row in due] == ["late_parts/landing/late_parts/1.jsonl/0/0"]
    assert counts((yield due))[2:] == (1, 1, 0, 0)
    assert here.changes("operation", "before", "after", "header") == [
        ("INSERT", None, {"ID": 2, "TEXT": "two"}, None),
        ("UPDATE", {"ID": 1, "TEXT": "one"}, {"ID": 1, "TEXT": "uno"}, {"number": 1}),
    ]
    assert here.waiting() == [] and here.due() == []


@pytest.mark.parametrize("name", STORIES)
def test_the_story_of(ends, name):
    if ends[name]:
        raise ends[name]


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
