"""A file that is delivered anew, and does not say of a change what was read of it before: it is refused before anything
is written, for the row of before would stand beside the right one. Without Spark, up to the plan.
"""

import datetime as dt
import hashlib
import json
import struct
from types import SimpleNamespace

from inlet import bronze
from inlet.bronze import redelivered as redelivered_files
from inlet.bronze.transports import TRANSPORTS
from inlet.commands import replay
from inlet.errors import ConfigError
from inlet.silver import redelivered
from inlet.silver.batch import Batch
from inlet.unit import BLOCKS, MESSAGES
from tests import lakes, projects
from tests.encode.goldengate_columns import Table, integer, varchar
from tests.encode.goldengate_tokens import ONLY, julian
from tests.encode.goldengate_trail import Trail
from tests.test_redelivered_file import CARGO, SHOP, TRAIL, message, put, with_bytes

REMEDY = redelivered_files.STAYS
PATH = "landing/feed/ra000000"


def at(second: int) -> dt.datetime:
    return dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC) + dt.timedelta(seconds=second)


def place(second: int, rba: int) -> str:
    """The change_seq of a record of the first file."""
    return f"{at(second):%Y%m%d%H%M%S}00{0:06}{rba:013}"


def new() -> Trail:
    return Trail([Table("T.CARGO", (integer("ID", is_key=True, is_nullable=False), varchar("NAME", 10)))])


def change(trail: Trail, second: int, number: int, name: str, operation: str = "insert"):
    said = {"trans_ind": ONLY, "tokens": [("L", f"{1000 + second}"), ("6", f"tx.{second}")], "io_time": at(second)}
    return getattr(trail, operation)("T.CARGO", {"ID": number, "NAME": name}, **said)


def land(project) -> None:
    """What a run of bronze does, without Spark."""
    plan = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project))
    for row in plan.files:
        source = project.sources[row["source"]]
        lakes.write(project, "bronze.files", row)
        units, table, columns = [], "bronze.blocks", [c.name for c in BLOCKS]
        for found in TRANSPORTS[source.transport].units_of(project, row):
            units += found.to_pylist() if source.brings_messages else [found]
        if source.brings_messages:
            table, columns = "bronze.messages", [c.name for c in MESSAGES if c.name != "headers"]
            units = [
                unit
                | {
                    "unit_id": f"{row['source']}/{unit['topic']}/{unit['partition']}/{unit['offset']}",
                    "sha256": hashlib.sha256(unit["value"]).hexdigest(),
                }
                for unit in units
            ]
        lakes.write(project, table, *[{name: unit.get(name) for name in columns} for unit in units])
        lakes.write(project, "silver.batches", lakes.batch(row["batch_id"], row["source"], lakes.seq(1)))


def anew(tmp_path, kind: dict, hurt: bytes, good: bytes, name: str = "ra000000"):
    """The plan of a file that was landed damaged; why there is none."""
    source = kind | {"from": kind.get("from", "landing/feed")}
    project = projects.make(tmp_path, {"feed": source}, [CARGO, projects.ITEMS], str(tmp_path / "lakehouse"))
    file = tmp_path / put(tmp_path, "feed", name, hurt)
    land(project)
    file.write_bytes(good)
    try:
        return replay.file_anew(project, str(file), None).plan.files
    except ConfigError as error:
        return str(error)


def test_a_change_that_damage_moved_in_the_order_is_refused(tmp_path):
    trail = new()
    change(trail, 1, 0, "a")
    second = change(trail, 2, 0, "b", "update")
    trail.roll()
    good = trail.files[0][1]
    later = struct.pack(">Q", julian(at(2 + 86400)))
    hurt = good.replace(struct.pack(">Q", julian(at(2))), later)
    assert anew(tmp_path, TRAIL, hurt, good) == (
        f"A change that was read of {PATH} is not there as it is now: the first, at byte {second.rba}, was "
        f"{place(2 + 86400, second.rba)} in the order; it is {place(2, second.rba)} now. {REMEDY}"
    )


def test_a_half_of_an_update_that_stood_alone_is_refused(tmp_path):
    trail = new()
    change(trail, 1, 0, "a")
    said = {"trans_ind": ONLY, "tokens": [("6", "tx.2")], "io_time": at(2)}
    before, after = trail.update_in_two("T.CARGO", {"ID": 0, "NAME": "a"}, {"ID": 0, "NAME": "b"}, **said)
    trail.roll()
    good = trail.files[0][1]
    assert anew(tmp_path, TRAIL, with_bytes(good, before.rba, b"X"), good) == (
        f"A change that was read of {PATH} is not there as it is now: the first, at byte {after.rba}, was "
        f"{place(2, after.rba)} in the order; it is not there now. {REMEDY}"
    )


def test_changes_behind_a_record_that_was_lost_are_refused(tmp_path):
    trail = new()
    change(trail, 1, 0, "a")
    lost = change(trail, 2, 1, "short")
    change(trail, 3, 2, "longer nam")
    change(trail, 4, 3, "n")
    trail.roll()
    good = trail.files[0][1]
    hurt = good[: lost.rba] + good[lost.rba + lost.length :]
    assert anew(tmp_path, TRAIL, hurt, good) == (
        f"2 changes that were read of {PATH} are not there as it is now: the first, at byte {lost.rba}, was "
        f"{place(3, lost.rba)} in the order; it is {place(2, lost.rba)} now. {REMEDY}"
    )
    # and the other way round, a good file that is the shorter one
    (tmp_path / "other").mkdir()
    told = anew(tmp_path / "other", TRAIL, good, hurt)
    assert told.startswith(f"3 changes that were read of {PATH} are not there as it is now")


def test_an_order_that_would_go_back_in_the_next_file_is_refused(tmp_path):
    trail = new()
    change(trail, 1, 0, "a")
    last = change(trail, 2, 1, "last one")
    trail.roll()
    good = trail.files[0][1]
    hurt = good.replace(struct.pack(">Q", julian(at(2))), struct.pack(">Q", julian(at(2 + 86400))))
    hurt = with_bytes(hurt, hurt.index(b"last one", last.rba), b"\xff")  # no text: it is no change
    assert anew(tmp_path, TRAIL, hurt, good) == (
        f"Files after {PATH} would go on at {place(2, len(good))} in the order, and {place(2 + 86400, len(good))} was "
        f"reached before. {REMEDY}"
    )


def test_a_file_after_it_that_was_read_with_other_knowledge_is_named(tmp_path):
    trail = new()
    change(trail, 1, 0, "a")
    change(trail, 3, 1, "last one")
    trail.roll()
    change(trail, 2, 2, "b")
    trail.roll()
    (_, good), (_, second) = trail.files[:2]
    sooner = good.replace(struct.pack(">Q", julian(at(3))), struct.pack(">Q", julian(at(1))))
    hurt = with_bytes(sooner, sooner.index(b"last one"), b"\xff")  # the next file's time part begins at 1
    project = projects.make(tmp_path, {"feed": TRAIL | {"from": "landing/feed"}}, [CARGO], str(tmp_path / "lakehouse"))
    file, behind = tmp_path / put(tmp_path, "feed", "ra000000", hurt), put(tmp_path, "feed", "ra000001", second)
    land(project)
    file.write_bytes(good)
    assert replay.file_anew(project, str(file), None).read_behind == behind


def test_a_file_whose_changes_are_where_they_were_is_taken(tmp_path):
    trail = new()
    for number in range(4):
        change(trail, number + 1, number, f"name {number}")
    trail.roll()
    good = trail.files[0][1]
    hurt = with_bytes(good, good.index(b"name 1"), b"\xff")
    hurt = with_bytes(hurt, hurt.index(b"name 2"), b"other!")
    [planned] = anew(tmp_path, TRAIL, hurt, good)
    assert (planned["ofs_start"], planned["ofs_end"], planned["batch_id"]) == (0, len(good), 2)


LINES = SHOP | {"from": {"transport": "lines", "path": "landing/feed"}}


def test_a_message_whose_place_in_the_order_was_damaged_is_refused(tmp_path):
    good = b"".join(message(n, f"item {n}") + b"\n" for n in range(4))
    was, is_now = (b"%d010203040500%019d" % (year, 1) for year in (2096, 2026))
    assert anew(tmp_path, LINES, good.replace(is_now, was), good, "it's 1.jsonl") == (
        "A change that was read of landing/feed/it's 1.jsonl is not there as it is now: the first, at message 1, was "
        f"{was.decode()} in the order; it is not there now. {REMEDY}"
    )


def test_a_rotated_log_is_refused_and_both_messages_name_the_way_that_works(tmp_path):
    first, second = (b"".join(message(n, f"item {n}") + b"\n" for n in numbers) for numbers in ((0, 1), (2, 3)))
    why = anew(tmp_path, LINES, first, second, "1.jsonl")
    assert why.endswith(REMEDY) and "give it a name of its own: `inlet run` reads it then" in why
    project = projects.config.load(tmp_path)
    [row] = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project)).files
    remedy = json.loads(row["problem"])["remedy"]
    assert remedy.endswith("If it is another one under an old name, as of a rotated log, give it a name of its own")
    (tmp_path / "landing" / "feed" / "1.jsonl").rename(tmp_path / "landing" / "feed" / "2.jsonl")
    [row] = bronze.plan_batch(project, list(project.sources.values()), bronze.History(project)).files
    assert (row["path"], row["problem"]) == ("landing/feed/2.jsonl", None)


def test_messages_at_other_places_of_their_file_are_taken(tmp_path):
    lines = [message(n, f"item {n}") + b"\n" for n in range(4)]
    [planned] = anew(tmp_path, LINES, b"".join([lines[0], lines[0], lines[2], lines[3]]), b"".join(lines), "1.jsonl")
    assert planned["num_units"] == 4


def test_a_file_whose_name_goes_on_with_a_number_is_another_one(tmp_path):
    project = projects.make(tmp_path, {"feed": TRAIL | {"from": "landing/feed"}}, [CARGO], str(tmp_path / "lakehouse"))
    units = ["feed/a@0", "feed/a@90~3", "feed/a@2@0", "feed/a@2@90~3"]
    lakes.write(project, "silver.rejects", *[lakes.rejected("feed", "bad_text", unit_id=unit) for unit in units])
    asked = list[str]()
    spark = SimpleNamespace(sql=asked.append)
    redelivered.resolve(Batch(spark, project, 2, ["feed"], again={("feed", "a"): {}}))
    assert [[unit for unit in units if f"'{unit}'" in sql] for sql in asked] == [["feed/a@0", "feed/a@90~3"]]
