"""Rests that could not be framed, framed again by `inlet replay` once the codec is fixed: by the toy log, whose files
follow each other and whose transactions may be given up.
"""

import json
import os
import sys
from types import SimpleNamespace

import deltalake
import pyarrow as pa
import pytest

from inlet import bronze, lake, silver
from inlet.bronze import framing
from inlet.codecs import CODECS
from inlet.codecs.results import Decoded
from inlet.commands import replay
from inlet.commands import run as running
from inlet.commands.status import status
from inlet.errors import AccountingError, ConfigError, Reject
from inlet.log import Log
from inlet.silver import blocks as silver_blocks
from inlet.silver import decoded, verdicts
from tests import lakes, projects, scenarios
from tests.encode import linkexpress
from tests.stored import rows
from tests.test_toy import NOTES, counts, plan, run
from tests.toy import codec as toy
from tests.toy import encode

COLUMNS = ("columns", "TOY.NOTES", [["ID", "int"], ["TEXT", "string"]], ["ID"])
STUCK = encode.record("ddl", "stuck")


def insert(number: int) -> tuple:
    return ("insert", "TOY.NOTES", [number, "text"])


def stuck_cut(data, context, source, tables, len_block, is_final):
    """A cut with a fault: it cannot go on from a certain record."""
    at = data.find(STUCK)
    if at < 0:
        return toy.cut(data, context, source, tables, len_block, is_final)
    cut = toy.cut(data[:at], context, source, tables, len_block, True)
    return cut._replace(problem=Reject("bad_length", cut.consumed, 0, cut.consumed, "a record", "none", b""))


def stuck_open(path, head, *given):
    """... and one that cannot open certain files."""
    return (
        Reject("wrong_magic", 0, 0, 0, "a file", "none", b"")
        if b"stuck" in head[:100]
        else toy.open_file(path, head, *given)
    )


BROKEN = SimpleNamespace(**vars(toy) | {"cut": stuck_cut, "open_file": stuck_open})


def fails(*_given):
    return [][0]


def dies(*_given):
    os._exit(7)


FAULTY = {"fails_to_place": {"place": fails}, "dies_at_place": {"place": dies}}
FAULTY |= {"fails_to_decode": {"decode": fails}, "fails_at_messages": {"decode_message": fails}}


@pytest.fixture(scope="module", autouse=True)
def registered():
    from pyspark import cloudpickle

    for module in (toy.__name__, __name__):
        cloudpickle.register_pickle_by_value(sys.modules[module])
    with pytest.MonkeyPatch.context() as patched:
        for name, codec in {"toy": toy, "stuck": BROKEN}.items():
            patched.setitem(CODECS, name, codec)
        for name, faults in FAULTY.items():
            patched.setitem(CODECS, name, SimpleNamespace(**vars(toy) | faults))
        patched.setattr(framing, "LEN_BLOCK", 100)
        yield


NOTES_OF = {"codec": "toy"}
SETTLED = NOTES_OF | {"settle_minutes": 0}
scenario = scenarios.Scenarios()


@pytest.fixture(scope="module")
def outcomes(spark, lakehouse, tmp_path_factory):
    return scenario.go(spark, lakehouse, tmp_path_factory.mktemp("scenarios"), [NOTES])


def deliver(feed, data: bytes, name: str = "1.toy", codec: str = "toy") -> None:
    """A file, which this codec reads from now on."""
    (feed.landing / name).write_bytes(data)
    feed.source |= {"codec": codec}


def replayed(feed, codec: str = "toy", unit: str | None = None) -> list[dict]:
    """Rejects that this codec decodes again."""
    feed.source |= {"codec": codec}
    return feed.chosen(unit=unit)


def notes_of(lakehouse: str, source: str) -> list[tuple]:
    of_change = "after", "transaction_id", "transaction_event_counter"
    changes = rows(lakehouse, "silver.changes", source, *of_change, rest="order by change_seq")
    return [(after["ID"], *more) for after, *more in changes]


def notes(feed) -> list[tuple]:
    return notes_of(feed.lakehouse, feed.name)


def test_a_rest_that_came_in_pieces_is_framed_as_one_and_its_marks_judge(spark, lakehouse, tmp_path, monkeypatch):
    landing = tmp_path / "landing" / "pieces"
    landing.mkdir(parents=True)
    project = projects.make(tmp_path, {"pieces": {"codec": "toy", "from": "landing/pieces"}}, [NOTES], lakehouse)
    head = encode.file(1, COLUMNS, ("begin", "A"), insert(1), is_ended=False)
    rest = b"".join(encode.record(*r) for r in (insert(2), ("restart",), ("begin", "A"), insert(3), ("commit", "A")))
    ends = len(head) + len(STUCK) + 20, len(head + STUCK + rest)  # the first piece ends within a record
    tail = b"".join(encode.record(*r) for r in (insert(4), ("end",)))
    whole = head + STUCK + rest + tail
    with monkeypatch.context() as broken:
        broken.setitem(CODECS, "toy", BROKEN)
        for end, expected in zip(ends, ((5, 0, 0, 2, 1, 2), (1, 0, 0, 0, 1, 0))):
            (landing / "1.toy").write_bytes(whole[:end])
            assert counts(run(project, spark)["pieces"]) == expected
        (landing / "2.toy").write_bytes(encode.file(2, insert(5)))
        assert plan(project).held == {
            "landing/pieces/2.toy": "file 1 of pieces, whose rest was rejected: `inlet replay`, or `inlet replay "
            "--file PATH` once it is delivered anew"
        }
    first, second = [row["unit_id"] for row in replay.unresolved(project, "pieces")]

    # one piece is asked for, both are framed; the insert that waited is given up, with the one behind it
    rejects = replay.chosen(project, "pieces", None, None, second)
    assert sorted(row["unit_id"] for row in rejects) == sorted([first, second])
    add_rows, died = lake.add_rows, KeyboardInterrupt()

    def die_before_the_files(lakehouse, table, *given, **further):
        if table == "bronze.files":
            raise died
        add_rows(lakehouse, table, *given, **further)

    with monkeypatch.context() as patched:
        patched.setattr(lake, "add_rows", die_before_the_files)
        with pytest.raises(KeyboardInterrupt):
            replay.plan(project, spark, rejects)
    [batch_id] = silver.pending(project)
    for _ in range(2):  # the second time changes nothing
        bronze.frame_again(project, spark, batch_id)
    twice = replay.plan(project, spark, rejects)
    accounts = silver.run(project, spark, batch_id)["pieces"], silver.run(project, spark, twice)["pieces"]
    assert counts(accounts[0]) == (6, 2, 1, 7, 0, 0) and counts(accounts[1]) == (0, 0, 0, 0, 0, 0)
    assert (accounts[0].bytes_landed, accounts[1].bytes_landed) == (len(STUCK + rest), 0)
    assert notes_of(lakehouse, "pieces") == [(3, "A", 1)]
    assert replay.unresolved(project, "pieces") == [] and "waiting for the feed" not in status(project)

    (landing / "1.toy").write_bytes(whole)  # it goes on from where the replay has ended
    run(project, spark)
    assert notes_of(lakehouse, "pieces") == [(3, "A", 1), (4, None, None), (5, None, None)]


def test_a_rest_that_is_replayed_by_itself_while_its_file_grows_loses_nothing(
    spark, lakehouse, tmp_path, monkeypatch, capsys
):
    """By the run itself: a third of an extract lands before its table is mapped, the rest comes with the mapping. Each
    run ends with what it rejected."""
    landing = tmp_path / "landing" / "grows"
    landing.mkdir(parents=True)
    (tmp_path / "expectations").mkdir()
    for step in ("bronze", "silver"):
        (tmp_path / "expectations" / f"{step}.yml").write_text("[]")
    options = {"source_tz": "UTC", "charset": "cp932", "null_areas": "yes"}
    source = projects.DEPOT | {"from": "landing/grows/*.lxg", "settle_minutes": 0, "options": options}
    data = linkexpress.encode_file(projects.item_records(1, 6, 99), True, "big", "cp932", {1: projects.LAYOUT})
    monkeypatch.setattr("inlet.lake.spark.session", lambda *given, **named: spark)

    def go(data: bytes, tables: dict) -> list[tuple]:
        (landing / "20260105031500_000012.lxg").write_bytes(data)
        project = projects.make(tmp_path, {"grows": source | {"tables": tables}}, lakehouse=lakehouse)
        steps = ("bronze", "silver")
        with monkeypatch.context() as patched:
            counted = lakes.reads(patched)
            running.run(project, running.find_work(project, steps, [], []), steps, [], Log(False), lambda spark: None)
        opened = {name: num for name, num in counted.items() if " " not in name}
        assert max(opened.values(), default=0) <= 1, opened  # what others commit meanwhile is added to what was read
        assert (replay.unresolved(project, "grows") == []) == (tables == {"1": "DEPOT.ITEMS"})
        of_change = "after", "right(change_seq, 10)"
        changes = rows(lakehouse, "silver.changes", "grows", *of_change, rest="order by change_seq")
        return [(after["ITEM_ID"], place) for after, place in changes]

    def said_of_rejects() -> list[dict]:
        said = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
        return [{n: v for n, v in line.items() if n in ("new", "kinds")} for line in said if line["step"] == "rejects"]

    assert go(data[: len(data) // 3], {"2": "DEPOT.ITEMS"}) == []
    assert said_of_rejects() == [{"new": 1, "kinds": {"unknown_extraction_id": 1}}]
    assert go(data, {"1": "DEPOT.ITEMS"}) == [(n, f"{n - 1:010d}") for n in range(1, 7)]
    assert said_of_rejects() == []


@scenario(NOTES_OF)
def a_rest_of_a_file_that_may_grow_is_framed_as_far_as_it_tells(feed):
    """Whether an insert is the last of its transaction, only what follows says."""
    begin = encode.file(1, COLUMNS, ("ddl", "stuck"), ("begin", "A"), insert(1), is_ended=False)
    yield deliver(feed, begin, codec="stuck")
    yield replayed(feed)
    [reject] = feed.rejects()
    assert (reject["kind"], reject["unit_length"]) == ("truncated", len(encode.record(*insert(1))))
    yield deliver(feed, begin + encode.record("commit", "A") + encode.record("end"))
    yield replayed(feed)
    assert feed.rows("transactions", "state", "num_changes") == [("complete", 1)]


def a_codec_that_fails_in_a_replay_of_a_rest_stops_nobody(feed):
    yield deliver(feed, encode.file(1, COLUMNS, ("ddl", "stuck"), insert(1)), codec="stuck")
    assert counts((yield replayed(feed, codec=feed.name))) == (1, 0, 0, 0, 1, 0)
    assert [reject["kind"] for reject in feed.rejects()] == ["decoder_failed"]
    yield replayed(feed)
    assert notes(feed) == [(1, None, None)] and feed.rejects() == []


for word in ("fails_to_place", "dies_at_place"):
    scenario(NOTES_OF, name=word)(a_codec_that_fails_in_a_replay_of_a_rest_stops_nobody)


@scenario(NOTES_OF)
def what_an_earlier_inlet_framed_piece_by_piece_is_framed_whole(feed):
    """It wrote no row of bronze.files for a replay, so what follows began with what was known at the first piece."""
    parts = [encode.file(1, COLUMNS, ("ddl", "stuck"), insert(1), is_ended=False)]
    parts += [b"".join(encode.record(*r) for r in records) for records in ((insert(2),), (insert(3), ("end",)))]
    yield deliver(feed, parts[0], codec="stuck")
    yield deliver(feed, parts[0] + parts[1], codec="stuck")
    yield replayed(feed)
    files = deltalake.DeltaTable(lake.table_path(feed.lakehouse, "bronze.files"))
    files.delete(f"source = '{feed.name}' and num_units = 0")  # as an earlier Inlet left it
    yield deliver(feed, b"".join(parts))
    yield replayed(feed)
    assert [number for number, *_ in notes(feed)] == [1, 2, 3]
    assert feed.rejects() == []


@scenario(SETTLED)
def status_stands_while_a_file_waits_for_the_one_before_it(feed):
    yield deliver(feed, encode.file(1, COLUMNS, ("begin", "A"), insert(1), is_ended=False))
    yield deliver(feed, encode.file(2, ("ddl", "stuck"), insert(2), ("commit", "A")), "2.toy", codec="stuck")
    yield replayed(feed)
    assert [reject["kind"] for reject in feed.rejects()] == ["file_before_missing"]
    waits = status(feed.project())["waiting for the feed"]
    assert [row["records"] for row in waits if row["source"] == feed.name] == [2]


@scenario(SETTLED, transport="whole_file")
def what_a_message_packs_is_rejected_and_comes_back_record_by_record(feed):
    records = [insert(1), ("insert", "TOY.NOTES", [None, "text"]), ("ddl", "alter"), ("insert", "TOY.NOTES", [2])]
    lines = [json.dumps(record).encode() for record in records]
    assert counts((yield deliver(feed, b"\n".join(lines), "1.json"))) == (4, 0, 2, 1, 1, 0)
    # decoded again by a decoder that fails, and in vain: its record alone is rejected, the others stay
    for codec in ("fails_at_messages", "toy"):
        account = yield replayed(feed, codec)
        assert counts(account) == (0, 1, 0, 0, 1, 0)
        assert account.bytes_settled == account.bytes_rejected == len(lines[1])
    [reject] = feed.rejects()
    assert (reject["kind"], reject["unit_offset"]) == ("missing_key", len(lines[0]) + 1)
    assert [number for number, *_ in notes(feed)] == [1, 2]


@scenario(NOTES_OF)
def a_decoder_that_fails_in_a_replay_rejects_the_records_that_were_asked_for(feed):
    keyless = ("insert", "TOY.NOTES", [None, "text"])
    data = encode.file(1, COLUMNS, insert(1), keyless, insert(2), keyless)
    assert counts((yield deliver(feed, data))) == (7, 0, 2, 3, 2, 0)
    account = yield replayed(feed, codec="fails_to_decode")
    assert counts(account) == (0, 2, 0, 0, 2, 0)
    assert account.bytes_settled == account.bytes_rejected == 2 * len(encode.record(*keyless))
    assert {row["kind"] for row in feed.rejects()} == {"decoder_failed"}


@scenario(SETTLED)
def files_wait_for_one_that_tells_no_place_and_go_on_from_it_once_it_is_read(feed):
    def held() -> dict:
        project = feed.project()
        return bronze.plan_batch(project, [project.sources[feed.name]], bronze.History(project)).held

    path = f"landing/{feed.name}"
    waits = {f"{path}/3.toy": f"a person: {path}/1.toy may be the first of {feed.name}; fix it or take it away"}
    deliver(feed, encode.file(1, ("ddl", "stuck"), COLUMNS, ("begin", "A"), insert(1)))
    deliver(feed, encode.file(2, ("ddl", "stuck"), insert(2)), "2.toy")
    assert counts((yield deliver(feed, encode.file(3, insert(3), ("commit", "A")), "3.toy", codec="stuck"))) == (
        (2, 0, 0, 0, 2, 0)
    )
    assert held() == waits
    feed.source |= {"codec": "toy"}
    assert held() == waits  # still, until it is replayed

    one, two = [row["unit_id"] for row in feed.rejects()]
    assert counts((yield replayed(feed, unit=two))) == (1, 0, 0, 0, 1, 0)
    [reject] = [row for row in feed.rejects() if row["unit_id"] != one]
    assert reject["kind"] == "file_before_missing"
    assert held() == waits
    yield replayed(feed, unit=one)
    yield replayed(feed)
    yield
    assert notes(feed) == [(1, "A", 1), (2, "A", 2), (3, "A", 3)]
    with pytest.raises(ConfigError, match="There is no reject to decode again of source"):
        feed.chosen()


@pytest.mark.parametrize("name", scenario.names)
def test_rests_of_sources_that_share_their_batches(outcomes, name):
    scenarios.check(outcomes[name])


def test_an_empty_file_of_an_order_waits_for_a_person(tmp_path):
    landing = tmp_path / "landing" / "empty"
    landing.mkdir(parents=True)
    source = {"codec": "toy", "from": "landing/empty", "settle_minutes": 0}
    project = projects.make(tmp_path, {"empty": source}, [NOTES])
    (landing / "1.toy").write_bytes(encode.file(1, COLUMNS))
    (landing / "2.toy").write_bytes(b"")
    found = plan(project)
    assert found.files == [] and found.held == {
        "landing/empty/1.toy": "landing/empty/2.toy, which may be the first of empty",
        "landing/empty/2.toy": "a person: it is empty; deliver it whole, or take it away",
    }


def test_a_source_that_cannot_be_listed_is_said_and_the_others_go_on(tmp_path, monkeypatch):
    (tmp_path / "landing" / "here").mkdir(parents=True)
    (tmp_path / "landing" / "here" / "1.toy").write_bytes(encode.file(1))
    sources = {"here": {"codec": "toy", "from": "landing/here"}, "far": {"codec": "toy", "from": "nosuch://far/*"}}
    project = projects.make(tmp_path, sources, [NOTES])
    found = plan(project)
    assert [row["path"] for row in found.files] == ["landing/here/1.toy"]
    assert list(found.unlisted) == ["far"] and "nosuch" in found.unlisted["far"].message
    assert [row["source"] for row in status(project)["sources that cannot be listed"]] == ["far"]


def test_a_record_that_is_asked_for_in_part_is_named():
    places = {"unit_offset": [0], "unit_length": [30]}
    with pytest.raises(AccountingError, match="unit u: a record of 30 bytes at 0 is asked for in part"):
        arrow = Decoded(pa.RecordBatch.from_pydict(places))
        verdicts.within([{"result": "account", "unit_id": "u"}], arrow, [[10, 30, "stands"]], 40)
    rows = [{"result": "account", "unit_id": "u"}, {"result": "change", "unit_offset": 0, "unit_length": 30}]
    with pytest.raises(AccountingError, match="unit u: a record of 30 bytes at 0 is asked for in part"):
        verdicts.within(rows, decoded.NOTHING, [[10, 30, "stands"]], 40)


@pytest.mark.parametrize("word", ["place", "is_ended", "companions"])
def test_a_codec_that_fails_before_it_reads_holds_its_files_and_no_others(tmp_path, monkeypatch, word):
    for name in ("bad", "good"):
        (tmp_path / "landing" / name).mkdir(parents=True)
        for number in (1, 2):
            (tmp_path / "landing" / name / f"{number}.toy").write_bytes(encode.file(number))
    tables = {"bad": {"codec": "toy", "from": "landing/bad"}, "good": {"codec": "other", "from": "landing/good"}}
    monkeypatch.setitem(CODECS, "other", toy)
    project = projects.make(tmp_path, tables, [NOTES])
    monkeypatch.setitem(CODECS, "toy", SimpleNamespace(**vars(toy) | {word: lambda *given: [][0]}))
    found = plan(project)
    assert [row["path"] for row in found.files] == ["landing/good/1.toy", "landing/good/2.toy"]
    assert {path: why.split(" (")[0] for path, why in found.held.items()} == {
        f"landing/bad/{number}.toy": "a person: codec toy fails: list index out of range" for number in (1, 2)
    }


def test_a_codec_that_fails_to_tell_the_span_of_a_unit_is_named():
    def span():
        return [][0]

    unit = {"unit_id": "s/f@0"}
    with pytest.raises(AccountingError, match="unit s/f@0: span of its codec fails: list index out of range"):
        silver_blocks._ask(unit, span)
