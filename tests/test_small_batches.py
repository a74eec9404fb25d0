"""What gold writes without Spark: what a run that died has left is seen, and rows are neither lost nor doubled."""

import json
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import deltalake
import pyarrow as pa
import pytest

from inlet import lake
from inlet.errors import TryAgain
from inlet.gold import progress, small_batches
from inlet.gold.small_batches import SmallBatches
from tests import lakes, projects

OUR = {
    name: name
    for name in ("source", "valid_from_seq", "valid_to_seq", "_is_last", "_through_batch_id", "_through_change_seq")
}
COLUMNS = {"source": pa.string(), "_n": pa.int64(), "NAME": pa.string(), "valid_from_seq": pa.string()}
STAGED = COLUMNS | {
    "valid_to_seq": pa.string(),
    "_is_last": pa.bool_(),
    "_through_batch_id": pa.int64(),
    "_through_change_seq": pa.string(),
}


def table_of(columns: dict, *rows: dict) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema(list(columns.items())))


def writer(project, rows: pa.Table) -> SmallBatches:
    """One whose query gives these rows."""
    spark = SimpleNamespace(sql=lambda query: SimpleNamespace(toArrow=lambda: rows))
    return SmallBatches(spark, project.lakehouse_path(), lakes.BEGAN)


def make(project, name: str, rows: pa.Table) -> None:
    deltalake.write_deltalake(project.lakehouse_path("gold", name), rows)


@pytest.fixture
def project(tmp_path):
    return projects.make(tmp_path)


def test_batches_are_as_large_as_their_units_or_as_what_a_replay_decodes(tmp_path):
    """A row of a columnar file is decoded from one byte, and a replay lands nothing."""
    project = projects.make(tmp_path, {"depot": projects.DEPOT | {"from": "landing/*"}}, [projects.ITEMS])
    of_batches = {"bytes_decoded": 9, "bytes_landed": 9}, {"bytes_decoded": 3, "bytes_landed": 20}, {"bytes_decoded": 5}
    for number, of_batch in enumerate(of_batches, 1):
        lakes.write(project, "silver.batches", lakes.batch(number, "depot", lakes.seq(number)) | of_batch)
    applied = {"table_name": "items", "source": "depot", "through_batch_id": 1, "applied_at": lakes.BEGAN}
    lakes.write(project, "gold.applied", applied)
    ledger, applied = progress.state(project)
    new = progress.new(ledger, progress.lagging(ledger, applied, project.tables.values()))
    assert progress.size_bytes(new) == 25


@pytest.mark.parametrize(("logged", "staged"), [([("b", 5)], []), ([("a", 10)], [("b", 5)]), ([("a", 10)], [])])
def test_what_a_batch_of_a_late_source_has_left_is_seen(project, logged, staged):
    """Source a is ten batches on; a batch of b has come to the log, or was staged, when the run died."""
    columns = {"source": pa.string(), "batch_id": pa.int64()}
    make(project, "items__before_after", table_of(columns, *({"source": s, "batch_id": n} for s, n in logged)))
    columns = {"source": pa.string(), "_through_batch_id": pa.int64()}
    rows = table_of(columns, *({"source": s, "_through_batch_id": n} for s, n in staged))
    make(project, "items__folded", rows)
    table = project.tables["DEPOT.ITEMS"]
    state = small_batches.states(project, [table], {"items": {"b": (-1, 5)}}, set())["items"]
    assert (state["is_logged"], state["is_staged"]) == (("b", 5) in logged, ("b", 5) in staged)
    assert not state["has_load_events"]


def test_current_keeps_what_a_batch_does_not_touch(project):
    """Whatever a key column is called; a null in a key is no other null."""
    kept = [{"source": s, "_n": n, "NAME": "old", "valid_from_seq": "1"} for s, n in [("a", 1), ("b", 2), ("a", None)]]
    taken = [{"source": "a", "_n": n, "NAME": "old", "valid_from_seq": "1"} for n in (2, 3)]
    make(project, "items__current", table_of(COLUMNS, *kept, *taken))
    make(project, "items__folded", table_of(STAGED))
    closed = {"source": "a", "_n": 2, "NAME": "old", "valid_from_seq": "1", "valid_to_seq": "2", "_is_last": False}
    live = closed | {"NAME": "new", "valid_from_seq": "2", "valid_to_seq": None, "_is_last": True}
    gone = closed | {"_n": 3, "_is_last": True}
    done = {"source": "a", "_through_batch_id": 7, "_through_change_seq": "3"}
    batch = writer(project, table_of(STAGED, closed, live, gone, done))
    batch.stage("items", "", False)
    batch.replace_current("items", list(COLUMNS), ["source", "_n"], OUR)
    rows = lake.peek(project.lakehouse_path(), "gold.items__current", ["source", '"_n"', '"NAME"'])
    found = sorted((row["source"], row["_n"] or 0, row["NAME"]) for row in rows)
    assert found == [("a", 0, "old"), ("a", 1, "old"), ("a", 2, "new"), ("b", 2, "old")]
    batch.commit("items", OUR)
    [applied] = lake.peek(project.lakehouse_path(), "gold.applied", ["table_name", "source", "through_batch_id"])
    assert applied == {"table_name": "items", "source": "a", "through_batch_id": 7}


KEYS = {
    'n "1"': (pa.int64(), [1, 2, 3, 4, 5]),
    "text": (pa.string(), ["", "it's", "a\\", "é", "e\u0301"]),
    "number": (pa.decimal128(20, 2), [Decimal(n) / 100 for n in (-1, 0, 1, 10**17, 5)]),
    "day": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1), date(9999, 12, 31), date(2000, 2, 29)]),
    "at": (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=400_000 * n) for n in range(5)]),
    "bytes": (pa.binary(), [b"", b"\0", b"'", b"\xff", b"ab"]),
}


@pytest.mark.parametrize("columns", [[name] for name in KEYS] + [["text", "day"]])
def test_the_rows_that_a_batch_touches_are_read(project, columns):
    """By the keys before and after each change; the second column of a key stands in one image alone, the third change
    is of an earlier batch, the fourth of a source that is new, the fifth row has a key that no change has."""
    rows = [{"source": "it's", "value": n, **{name: KEYS[name][1][n] for name in columns}} for n in range(5)]
    types = {name: KEYS[name][0] for name in columns}
    make(project, "items__current", table_of({"source": pa.string(), **types, "value": pa.int64()}, *rows))
    image = pa.struct(list(types.items()))
    key = [{name: row[name] for name in columns} for row in rows]
    one, other = (
        {name: v if (name == columns[0]) == is_one else None for name, v in key[1].items()} for is_one in (1, 0)
    )
    changes = [
        {"source": "it's", "batch_id": 8, "before": key[0], "after": None},
        {"source": "it's", "batch_id": 8, "before": one, "after": other},
        {"source": "it's", "batch_id": 7, "before": None, "after": key[2]},
        {"source": "other", "batch_id": 8, "before": None, "after": key[3]},
    ]
    log = {"source": pa.string(), "batch_id": pa.int64(), "before": image, "after": image}
    make(project, "items__before_after", table_of(log, *changes))
    views = {}
    spark = SimpleNamespace(catalog=SimpleNamespace(dropTempView=views.pop))
    spark.createDataFrame = lambda rows: SimpleNamespace(
        sparkSession=spark, createOrReplaceTempView=lambda view: views.update({view: rows})
    )
    batch = SmallBatches(spark, project.lakehouse_path(), lakes.BEGAN)
    sources = [{"source": "it's", "applied_batch_id": 7}, {"source": "other", "applied_batch_id": -1}]
    view = batch.touched_rows("items", "source", columns, sources)
    assert sorted(views[view]["value"].to_pylist()) == [0, 1]
    assert views[view].schema.field("value").type == pa.int64()
    batch.views.close()
    assert views == {}


def test_past_keeps_what_a_batch_does_not_fold_again(project):
    """A version that a late change has closed earlier is replaced, one that is open again is removed, one that has not
    been there is added; versions of the same key at other places, or of another source, stay."""
    columns = COLUMNS | {"valid_to_seq": pa.string()}
    version = {"source": "a", "_n": 1, "NAME": "old", "valid_from_seq": "1", "valid_to_seq": "5"}
    kept = [version | {"source": "b"}, version | {"valid_from_seq": "0", "valid_to_seq": "1"}]
    reopened = version | {"valid_from_seq": "5", "valid_to_seq": "9"}
    make(project, "items__past", table_of(columns, *kept, version, reopened))
    make(project, "items__folded", table_of(STAGED))
    folded = [
        version | {"NAME": "again", "valid_to_seq": "3", "_is_last": False},
        version | {"NAME": "late", "valid_from_seq": "3", "_is_last": False},
        reopened | {"valid_to_seq": None, "_is_last": True},
    ]
    done = {"source": "a", "_through_batch_id": 7, "_through_change_seq": "9"}
    batch = writer(project, table_of(STAGED, *folded, done))
    batch.stage("items", "", False)
    batch.replace_past("items", list(columns), ["source", "_n"], OUR)
    rows = lake.peek(project.lakehouse_path(), "gold.items__past", [f'"{name}"' for name in columns])
    expected = [*kept, *({name: row[name] for name in columns} for row in folded[:2])]
    assert sorted(rows, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("statistics", [None, '{"numRecords":200001}', '{"numRecords":200000}'])
def test_a_table_whose_rows_are_many_or_not_counted_is_not_written_whole(project, statistics):
    make(project, "items__current", table_of(COLUMNS, {"source": "a", "_n": 1}))
    [commit] = Path(project.lakehouse_path("gold", "items__current"), "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = statistics
    commit.write_text("\n".join(map(json.dumps, actions)))
    is_whole = small_batches.is_whole(project.lakehouse_path(), project.tables["DEPOT.ITEMS"], "current")
    assert is_whole == (statistics == '{"numRecords":200000}')


@pytest.mark.parametrize("does", ["append", "compact"])
@pytest.mark.parametrize(
    "place", ["snapshots.answer", "deltalake.write_deltalake"]
)  # after the read, before the commit
def test_a_commit_of_another_process_is_not_written_over(project, monkeypatch, place, does):
    """delta-rs would write over the files that it has read, and leave what a compaction made of the same rows."""
    foreign = {"source": "a", "_n": 9, "NAME": "foreign", "valid_from_seq": "1"}
    make(project, "items__current", table_of(COLUMNS, {"source": "a", "_n": 1, "NAME": "old", "valid_from_seq": "1"}))
    current = project.lakehouse_path("gold", "items__current")
    deltalake.write_deltalake(current, table_of(COLUMNS, foreign | {"_n": 8}), mode="append")
    make(project, "items__folded", table_of(STAGED))
    batch = writer(project, table_of(STAGED, {"source": "a", "_n": 2, "valid_from_seq": "2", "_is_last": True}))
    batch.stage("items", "", False)
    module, name = place.split(".")
    work, write = getattr(getattr(small_batches, module), name), deltalake.write_deltalake

    def worked(*given, **named):
        if does == "append":
            write(current, table_of(COLUMNS, foreign), mode="append")
        else:
            deltalake.DeltaTable(current).optimize.compact()
        return work(*given, **named)

    monkeypatch.setattr(getattr(small_batches, module), name, worked)
    with pytest.raises(TryAgain):
        batch.replace_current("items", list(COLUMNS), ["source", "_n"], OUR)
    rows = lake.peek(project.lakehouse_path(), "gold.items__current", ['"_n"'], 'order by "_n"')
    assert [row["_n"] for row in rows] == ([1, 8, 9] if does == "append" else [1, 8])


def test_an_image_with_other_members_than_the_table_is_refused(project):
    one, other = (pa.struct([pa.field(name, pa.int64()), pa.field("b", pa.int64())]) for name in "Aa")
    make(project, "items__before_after", table_of({"after": one}))
    batch = writer(project, table_of({"after": other}, {"after": {"a": 1, "b": 2}}))
    with pytest.raises(ValueError, match="after has A, b, and not a, b"):
        batch.append_log("items", ["after"], "", is_kept=False, is_view=False)


def test_rows_that_threads_add_at_once_are_there_once_each(project):
    def add(name: str) -> None:
        for number in range(60):
            row = {"source": name, "batch_id": number, "why": "", "stopped_at": lakes.BEGAN}
            lake.add_rows(project.lakehouse_path(), "silver.stopped", [row])

    lake.add_rows(project.lakehouse_path(), "silver.stopped", [])
    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = lake.peek(project.lakehouse_path(), "silver.stopped", ["source", "batch_id"])
    assert sorted((row["source"], row["batch_id"]) for row in rows) == [(n, b) for n in "abcd" for b in range(60)]
    assert lake.size(project.lakehouse_path(), "silver.stopped")[0] < 100


LOG = {
    "source": pa.string(),
    "batch_id": pa.int64(),
    "change_seq": pa.string(),
    "operation": pa.string(),
    "not_supplied": pa.list_(pa.string()),
    "column_states": pa.map_(pa.string(), pa.string()),
    "key_changed": pa.bool_(),
    "transaction_id": pa.string(),
    "load_id": pa.string(),
}
FLAGS = {
    "has_partial": {"not_supplied": ["name"]},
    "has_lost": {"column_states": [("name", "fetched"), ("price", "missing")]},
    "has_key_change": {"key_changed": True},
    "has_delete": {"operation": "DELETE", "transaction_id": "t"},
    "has_wipe": {"operation": "TRUNCATE"},
    "has_load": {"load_id": "l"},
}


@pytest.mark.parametrize("flag", FLAGS)
def test_the_survey_of_new_rows_says_what_is_among_them_source_by_source(project, flag):
    """Source b came in full before; a has a row that is late, c none that is new."""
    plain = {"operation": "UPDATE", "not_supplied": [], "column_states": [("name", "fetched")], "key_changed": False}
    rows = [
        plain | {"source": "a", "batch_id": 3, "change_seq": "05"} | FLAGS[flag],
        plain | {"source": "b", "batch_id": 3, "change_seq": "20", "not_supplied": None, "column_states": None},
        plain | {"source": "a", "batch_id": 4, "change_seq": "30", "operation": "DELETE"},
    ]
    small = writer(project, table_of(LOG, *rows))
    small.new["items"] = table_of(LOG, *rows)
    lagging = [("c", 1, "02"), ("b", -1, None), ("a", 2, "05")]
    found = small.survey(
        "items", [{"source": s, "applied_batch_id": n, "applied_change_seq": last} for s, n, last in lagging]
    )
    no_flags = dict.fromkeys([*FLAGS, "has_added"], False)
    names = ("source", "applied_batch_id", "applied_seq", "through_batch_id", "through_seq", "first_seq", "late_seq")
    of_a = dict(zip((*names, "num_changes"), ("a", 2, "05", 4, "30", "05", "05", 2)))
    of_b = dict(zip((*names, "num_changes"), ("b", -1, None, 3, "20", "20", None, 1)))
    assert found == [of_a | no_flags | {flag: True}, of_b | no_flags]
