"""A file that was landed damaged, or cut short, and is delivered again under its name: `inlet replay --file` takes it
anew, and all is as if it had been good from the start.
"""

import datetime as dt
import gzip
import json

import pytest

from inlet import bronze, silver
from inlet.bronze.redelivered import Redelivered
from inlet.commands import replay
from inlet.commands import run as running
from inlet.commands.file_state import file_state
from inlet.errors import ConfigError
from inlet.log import Log
from tests import lakes, projects
from tests.encode import linkexpress, qlik
from tests.encode.goldengate_columns import Table, integer, varchar
from tests.encode.goldengate_tokens import FIRST, LAST, MIDDLE, ONLY
from tests.encode.goldengate_trail import Trail

CARGO = {
    "table": "T.CARGO",
    "name": "cargo",
    "key": ["ID"],
    "columns": [
        {"name": "ID", "type": "bigint", "source_type": "INT64", "nullable": False},
        {"name": "NAME", "type": "string", "source_type": "ASCII_V(10)"},
    ],
}
TRAIL = {"codec": "goldengate_trail", "settle_minutes": 0}
DEPOT = projects.DEPOT | {"settle_minutes": 0, "options": {"source_tz": "UTC", "charset": "cp932", "null_areas": "yes"}}
SHOP = {"codec": "qlik_json", "settle_minutes": 0}
COLUMNS = [c["name"] for c in projects.ITEMS["columns"]]


def trail_of_three() -> Trail:
    """Three files; a transaction goes on from each in the next one, and one is given up in the second and the third."""
    trail, started = Trail([Table("T.CARGO", (integer("ID", is_key=True, is_nullable=False), varchar("NAME", 10)))]), 0

    def write(transaction: str, numbers: list[int], begins: bool = True, ends: bool = True) -> None:
        nonlocal started
        for n, number in enumerate(numbers):
            is_first, is_last = begins and n == 0, ends and n == len(numbers) - 1
            kind = ONLY if is_first and is_last else FIRST if is_first else LAST if is_last else MIDDLE
            tokens = [("L", f"{1000 + started}"), ("6", transaction)] if is_first else []
            started += is_first
            at = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC) + dt.timedelta(seconds=started)
            trail.insert("T.CARGO", {"ID": number, "NAME": f"name {number}"}, trans_ind=kind, tokens=tokens, io_time=at)

    write("A", [0, 1])
    write("B", [2], ends=False)
    trail.roll()
    write("B", [3, 4], begins=False)
    write("C", [5, 6, 7])
    write("D", [8, 9, 10])
    write("E", [90, 91], ends=False)
    trail.roll()
    trail.restart(is_clean=False, io_time=dt.datetime(2026, 1, 2, 4, tzinfo=dt.UTC))
    write("E", [11, 12, 13])
    return trail


def with_bytes(data: bytes, place: int, put: bytes) -> bytes:
    """Data that is damaged in transit: other bytes from a place on."""
    return data[:place] + put + data[place + len(put) :]


def message(number: int, name: str) -> bytes:
    row = {"ITEM_ID": number, "NAME": name, "PRICE": None}
    said = {"operation": "INSERT", "change_seq": f"2026010203040500{number:019d}", "after": row}
    of_transaction = {"transaction_event_counter": 1, "transaction_last_event": True}
    return qlik.value(said | of_transaction, COLUMNS, schema="DEPOT", table="ITEMS")


def put(root, source: str, name: str, data: bytes) -> str:
    (root / "landing" / source).mkdir(parents=True, exist_ok=True)
    (root / "landing" / source / name).write_bytes(data)
    return f"landing/{source}/{name}"


def run(project, steps=("bronze", "silver")) -> None:
    running.run(project, running.find_work(project, steps, [], []), steps, [], Log(False), lambda spark: None)


def take_anew(project, spark, path: str) -> Redelivered:
    anew = replay.file_anew(project, str(project.root / path), None)
    bronze.write_plan(project, anew.plan)
    run(project, ("silver",))
    return anew


def rejects(project, source: str) -> list[tuple]:
    return sorted((r["kind"], r["batch_id"]) for r in replay.unresolved(project, source))


def stored(spark, source: str) -> dict[str, list[tuple]]:
    """What silver has of a source, but for where it came from."""
    changes = spark.sql(f"""
        select source_schema, source_table, change_seq, operation, to_json(before), to_json(after), transaction_id,
               transaction_event_counter, transaction_last_event
        from silver.changes where source = '{source}' order by change_seq""").collect()
    transactions = spark.sql(f"""
        select transaction_id, first_change_seq, num_changes, state from silver.transactions where source = '{source}'
        order by first_change_seq""").collect()
    return {"changes": [tuple(row) for row in changes], "transactions": [tuple(row) for row in transactions]}


@pytest.mark.proof
@pytest.mark.gate
def test_a_file_that_is_taken_anew_gives_what_it_would_have_given_from_the_start(
    spark, lakehouse, tmp_path, monkeypatch
):
    (tmp_path / "expectations").mkdir()
    for step in ("bronze", "silver"):
        (tmp_path / "expectations" / f"{step}.yml").write_text("[]")
    monkeypatch.setattr("inlet.lake.spark.session", lambda *given, **named: spark)
    kinds = {"hurt": TRAIL, "short": TRAIL, "whole": TRAIL, "depot": DEPOT, "depot_whole": DEPOT}
    sources = {name: kind | {"from": f"landing/{name}"} for name, kind in kinds.items()}
    for name in ("shop", "shop_whole"):
        sources[name] = SHOP | {"from": {"transport": "lines", "path": f"landing/{name}"}}
    project = projects.make(tmp_path, sources, [CARGO, projects.ITEMS], lakehouse)

    trail = trail_of_three()
    second, good = trail.files[1]
    at = {record.after["ID"]: record.rba for record in trail.records if record.after and record.seqno == 1}
    hurt = with_bytes(good, good.index(b"name 3"), b"\xff")  # no text
    hurt = with_bytes(hurt, at[6] + 2, b"\0\x60")  # a length that is not the record's
    short = good[: at[6] + 20]
    group = linkexpress.encode_file(projects.item_records(1, 6, 3), True, "big", "cp932", {1: projects.LAYOUT})
    lines = b"".join(message(n, f"item {n}") + b"\n" for n in range(4))
    group_name = "20260105031500_000012.lxg.gz"
    for source, data in (("hurt", hurt), ("short", short), ("whole", good)):
        for name, whole in trail.files:
            put(tmp_path, source, name, data if name == second else whole)
    put(tmp_path, "depot", group_name, gzip.compress(with_bytes(group, group.index(b"item 2"), b"\xfd\xff")))
    put(tmp_path, "depot_whole", group_name, gzip.compress(group))
    put(tmp_path, "shop", "1.jsonl", with_bytes(lines, lines.index(b"item 1") + 4, b"\n"))
    put(tmp_path, "shop_whole", "1.jsonl", lines)
    run(project)
    third = "landing/short/ra000002"
    assert bronze.plan_batch(project, list(project.sources.values()), bronze.History(project)).held == {
        third: "file 1 of short, whose rest was rejected: `inlet replay`, or `inlet replay --file PATH` once it is "
        "delivered anew"
    }
    anew = {
        "hurt": put(tmp_path, "hurt", second, good),
        "short": put(tmp_path, "short", second, good),
        "depot": put(tmp_path, "depot", group_name, gzip.compress(group)),
        "shop": put(tmp_path, "shop", "1.jsonl", lines),
    }
    assert {source: [kind for kind, _ in rejects(project, source)] for source in anew} == {
        "hurt": ["bad_frame", "bad_text"],
        "short": ["truncated"],
        "depot": ["bad_text"],
        "shop": ["invalid_json", "invalid_json"],
    }
    run(project)  # of the one that was cut short it takes the end, which has no known beginning
    problems = {
        row["source"]: json.loads(row["problem"]) for row in bronze.History(project).readings() if row["problem"]
    }
    assert {source: problem["kind"] for source, problem in problems.items()} == dict.fromkeys(
        ("hurt", "depot", "shop"), "file_rewritten"
    )
    assert f"take it with `inlet replay --file {anew['hurt']}`" in problems["hurt"]["remedy"]

    # one dies between the plan and its units; the command that comes again, or the next run, goes on from there
    bronze.write_plan(project, replay.file_anew(project, str(tmp_path / anew["short"]), None).plan)
    assert replay.file_anew(project, str(tmp_path / anew["short"]), None) is None
    run(project, ("silver",))
    run(project)  # and the file that waited is read
    with monkeypatch.context() as dying:  # ... as where it dies in silver, when all but the ledger is written
        dying.setattr("inlet.silver.decode._close", lambda batch: [][0])
        with pytest.raises(IndexError):
            take_anew(project, spark, anew["hurt"])
    run(project, ("silver",))
    for source in ("depot", "shop"):
        take_anew(project, spark, anew[source])
    for source, path in anew.items():
        as_good = {"hurt": "whole", "short": "whole"}.get(source, f"{source}_whole")
        assert stored(spark, source) == stored(spark, as_good)
        assert rejects(project, source) == []
        is_done, words = file_state(project, str(tmp_path / path))
        assert is_done and "not decoded" not in words
        with pytest.raises(ConfigError, match="is as it was landed"):
            replay.file_anew(project, str(tmp_path / path), None)
    assert silver.pending(project) == []
    left = spark.sql("select unit_id, kind from silver.rejects where resolved_by is null").collect()
    assert left == []

    # other content at a known place, and another transaction: the first stays, and a person sees it
    later = good.replace(b"name 7", b"name X").replace(b"6\0\0\x01D", b"6\0\0\x01Z")
    before = stored(spark, "whole")
    take_anew(project, spark, put(tmp_path, "whole", second, later))
    assert stored(spark, "whole") == before
    told = spark.sql("""
        select kind, expected, found from silver.rejects where source = 'whole' and resolved_by is null
        order by unit_offset""").collect()
    assert [tuple(row) for row in told] == [
        ("conflicting_duplicate", "the content that came first", 'INSERT {"ID":7,"NAME":"name X"}'),
        *(
            (
                "conflicting_duplicate",
                f"as it came first, transaction D, event {event}",
                f"transaction Z, event {event}",
            )
            for event in ("1", "2", "3, its last")
        ),
    ]

    put(tmp_path, "whole", second, short)
    assert "are not there as it is now: the first, at byte" in refused(project, tmp_path / "landing" / "whole" / second)


def refused(project, file, source: str | None = None) -> str:
    with pytest.raises(ConfigError) as error:
        replay.file_anew(project, str(file), source)
    return str(error.value)


def test_a_file_that_cannot_be_taken_anew_is_refused_with_the_next_step(tmp_path):
    depots = {name: DEPOT | {"from": "landing/depot"} for name in ("depot", "other")}
    broker = {"codec": "qlik_json", "from": {"transport": "kafka", "servers": "h:1", "topics": ["shop"]}}
    project = projects.make(tmp_path, depots | {"shop": broker}, lakehouse=str(tmp_path / "lakehouse"))
    file = tmp_path / put(tmp_path, "depot", "20260105031500_000012.lxg", b"")
    lakes.write(project, "bronze.files", {"source": "shop", "path": "shop/0", "batch_id": 1})
    assert refused(project, file) == (f"depot, other read {file}. Say which one is to take it anew with --source")
    assert refused(project, file, "depot") == (
        "landing/depot/20260105031500_000012.lxg was never landed: there is nothing to take anew. `inlet run` reads it"
    )
    assert refused(project, "shop/0") == (
        "shop/0 is a partition of shop, whose messages a broker keeps. Only files are delivered anew; `inlet replay` "
        "decodes rejected messages again"
    )
    assert refused(project, "9.lxg") == (
        "No source of pipelines/inlet.yml has a file 9.lxg. Put the good file in the place of the damaged one, in its "
        "source's folder and under its name"
    )
    assert refused(project, "9.lxg", "depot").startswith("Source depot has no file 9.lxg.")


def test_an_end_that_may_still_go_on_is_waited_for_and_one_that_came_sooner_is_refused(tmp_path):
    source = SHOP | {"from": {"transport": "lines", "path": "landing/shop"}, "settle_minutes": 60}
    project = projects.make(tmp_path, {"shop": source}, lakehouse=str(tmp_path / "lakehouse"))
    path = put(tmp_path, "shop", "1.jsonl", b"{}\n{}\n{} ")
    row = {"source": "shop", "path": path, "batch_id": 1, "ofs_start": 0, "ofs_end": 9, "size_bytes": 9, "num_units": 3}
    lakes.write(project, "bronze.files", row | {"sha256": "of other bytes", "context": '{"next": 3}'})
    assert refused(project, tmp_path / path) == (
        f"The last 3 bytes of {path} may still go on: it has not rested for settle_minutes (60). Try again once it "
        "has; a copy that keeps the file's time (cp -p) need not wait"
    )
    put(tmp_path, "shop", "1.jsonl", b"{}\n{}\n")
    assert refused(project, tmp_path / path).startswith(
        f"{path} is shorter than what was landed of it: 6 bytes, 9 were read as records. If it is not whole yet"
    )
    put(tmp_path, "shop", "1.jsonl", b"{}\n{}\n[]\n")
    lakes.write(project, "silver.batches", lakes.batch(1, "shop", lakes.seq(1)))
    [planned] = replay.file_anew(project, str(tmp_path / path), None).plan.files
    assert (planned["ofs_start"], planned["ofs_end"], planned["num_units"], planned["batch_id"]) == (0, 9, 3, 2)
