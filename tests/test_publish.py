"""The public views show committed boundaries, all tables at one point, whatever is happening to gold.

Two tables hold the two sides of the same transactions. Streams of many sources run through them at once, as in
test_gold; after each batch the views must equal the reference's fold of the changes up to the published point.
"""

import datetime as dt
import json
import random
import re
import threading
from copy import deepcopy
from dataclasses import asdict, replace
from functools import partial

import pytest

from inlet import bronze, gold, lake, publish
from inlet.commands import run as running
from inlet.commands import show
from inlet.commands.run import build_gold
from inlet.commands.status import status
from inlet.errors import CheckFailed, ConfigError
from inlet.lake import entries
from inlet.log import Log
from inlet.publish import fixed_views, hold, live_view, pins, views
from inlet.publish import point as point_of
from inlet.silver import transactions
from inlet.source import Source
from inlet.table import Table
from tests import reference
from tests.examples import ins, upd
from tests.silver import by_source, write_silver
from tests.streams import COLUMNS, KEY, Change, deliver, stream
from tests.test_generate import ITEMS, project

SIDES = ("debits", "credits")
NUM_BATCHES = 3


@pytest.fixture(scope="module")
def here(tmp_path_factory, spark, lakehouse):
    from inlet.gold import generate

    made = project(
        tmp_path_factory.mktemp("publish"),
        lakehouse,
        {
            n: ITEMS.replace("ITEMS", n.upper()).replace("items", n)
            for n in (*SIDES, "late_debits", "late_credits", "unused")
        },
    )
    generate.write(made)
    return made


def bring(spark, here, tables: dict, is_published: bool = True, on_late=lambda late: None):
    """One batch through gold, and published. In: table -> source -> changes. Out: the point."""
    lakehouse = here.lakehouse_path()
    known = [lake.peek(lakehouse, table, ["batch_id"]) for table in ("silver.batches", "bronze.files")]
    batch_id = 1 + max((row["batch_id"] for rows in known for row in rows), default=0)
    source = next(s for of_source in tables.values() for s in of_source)
    write_silver(spark, batch_id, tables)
    file = {"source": source, "path": f"publish/{batch_id}", "batch_id": batch_id}  # batches are numbered there
    sizes = dict.fromkeys(("ofs_start", "ofs_end", "size_bytes", "num_units"), 0)
    lake.add_rows(lakehouse, "bronze.files", [file | sizes])
    transactions.update(spark, f"batch_id = {batch_id}")
    build_gold(here, spark, list(tables))
    return publish.run(here, spark, on_late) if is_published else None


def sides(changes: list[Change], names=SIDES) -> dict[str, list[Change]]:
    """The changes of one source, by table."""
    return {name: [c for c in changes if c.table == f"SHOP.{name.upper()}"] for name in names}


def numbered(changes: list[Change]) -> list[Change]:
    """The same transactions, their events counted anew."""
    counted, transaction, counter = [], None, 0
    for n, change in enumerate(changes):
        begins = change.transaction_id != transaction or changes[n - 1].last
        transaction, counter = change.transaction_id, 1 if begins else counter + 1
        ends = (
            n + 1 == len(changes)
            or changes[n + 1].transaction_id != transaction
            or changes[n + 1].counter <= change.counter
        )
        counted.append(replace(change, counter=counter, last=ends))
    return counted


def versions(spark, view: str) -> dict[str, list[tuple]]:
    return by_source(
        spark.sql(
            f"select source, {', '.join(COLUMNS)}, valid_from_seq, "
            f"{'valid_to_seq' if '__' in view else 'null'} from {view} "
            "order by source, region, item, valid_from_seq"
        )
    )


def expected(changes: list[Change], name: str, is_history: bool) -> list[tuple]:
    folded = reference.fold(sides(changes)[name], KEY, COLUMNS)[0]
    return [
        (*(v.values.get(n) for n in COLUMNS), v.valid_from_seq, v.valid_to_seq)
        for v in (folded if is_history else reference.current(folded))
    ]


def is_boundary(changes: list[Change], arrived: list[Change], point: str) -> bool:
    """Is every transaction of the stream that has a change up to the point whole among these?"""
    shown = {c.seq for c in arrived if c.seq <= point}
    begun: dict[int, set] = {}
    number = 0
    for change in changes:
        number += change.counter == 1
        begun.setdefault(number, set()).add(change.seq)
    return all(not seqs & shown or seqs <= shown for seqs in begun.values())


def test_the_views_show_whole_transactions_and_equal_the_reference_at_their_point(spark, here):
    streams = {}
    for number in range(24):
        rng = random.Random(f"published {number}")
        changes = [
            replace(c, table=f"SHOP.{rng.choice(SIDES).upper()}")
            for c in stream(rng, wipes=0.02, key_changes=0.0, loads=0, length=30)
            if c.op != "EMPTY_LOAD"
        ]
        changes = numbered(changes)
        streams[f"published_{number:02d}"] = changes, deliver(rng, changes, NUM_BATCHES, late=0.0, repeated=0.0)
    last, num_held = {}, 0
    for batch in range(NUM_BATCHES):
        point = bring(
            spark,
            here,
            {name: {s: sides(batches[batch])[name] for s, (_, batches) in streams.items()} for name in SIDES},
        )
        for name in SIDES:
            live, history = versions(spark, f"public.{name}"), versions(spark, f"public.{name}__history")
            for source, (changes, batches) in streams.items():
                upto = point.points.get(source, "")
                arrived = [c for b in batches[: batch + 1] for c in b]
                shown = [c for c in arrived if c.seq <= upto]
                assert is_boundary(changes, arrived, upto), (source, upto)
                assert live.get(source, []) == expected(shown, name, is_history=False), (source, batch, upto)
                assert history.get(source, []) == expected(shown, name, is_history=True), (source, batch, upto)
                assert upto >= last.get(source, "")
        num_held += len([s for s in streams if s in point.held])
        last = point.points
    assert num_held > 10 and not [s for s in streams if s in point.held]
    assert all(last[source] == changes[-1].seq for source, (changes, _) in streams.items())
    assert_every_boundary_is_shown_by_as_of_and_committed(spark, streams)


@pytest.mark.parametrize("name", SIDES)
def test_inlet_show_says_what_the_views_say(spark, here, name):
    """Read without Spark: live rows, versions, changes, rows of a key and as of a time."""
    table = next(t for t in here.tables.values() if t.name == name)
    of = {"live": name, "history": f"{name}__history", "changes": f"{name}__before_after"}
    views = {view: spark.table(f"public.{of_public}").collect() for view, of_public in of.items()}

    def says(view: str, keep=lambda row: True, rows=None, **asked) -> show.Shown:
        """In: which of the view's rows are asked for; Spark's rows, if not all of the view's."""
        shown = show.show(here, table, view, limit=0, **asked)
        wanted = [plain(row[name] for name in shown.columns) for row in rows or views[view] if keep(row)]
        assert sorted(map(plain, shown.rows), key=repr) == sorted(wanted, key=repr) != [], (view, asked)
        return shown

    for view in of:
        shown = says(view)
        few = show.show(here, table, view, limit=7)
        assert len(shown.rows) > 50 and (few.rows, few.is_more) == (shown.rows[:7], True)
    assert_images_have_what_was_sent(spark, show.as_supplied(here, table, shown), shown)
    last = max(row["valid_from_seq"] for row in views["history"])
    at = f"{last[:4]}-{last[4:6]}-{last[6:8]} {last[8:10]}:{last[10:12]}:{last[12:14]}"
    spark.sql("use public")
    shown = says("live", rows=spark.sql(f"select * from {name}_at(timestamp'{at}')").collect(), at=at)
    spark.sql("use default")

    row = dict(zip(shown.columns, shown.rows[0]))
    key = [str(row[column]) for column in table.gold_key]

    def is_of(key: list[str], row) -> bool:
        return row is not None and all(str(row[column]) == value for column, value in zip(table.gold_key, key))

    for view in ("live", "history"):
        says(view, partial(is_of, key), key=key)
    says("changes", lambda change: is_of(key, change["before"]) or is_of(key, change["after"]), key=key)
    says("history", partial(is_of, key[:1]), key=key[:1])  # of a key of several columns, all rows that begin so
    says("history", lambda version: version["source"] == row["source"], source=row["source"])
    with pytest.raises(ConfigError, match=f"The key of {name} is REGION, ITEM, found 3 values"):
        show.show(here, table, key=["1", "2", "3"])
    with pytest.raises(ConfigError, match="unused is not published yet"):
        show.show(here, table.model_copy(update={"name": "unused"}))


def plain(row) -> tuple:
    """A row of Spark or of `show`, and its images, as tuples."""
    return tuple(
        value.replace(tzinfo=None)
        if isinstance(value, dt.datetime)
        else bytes(value)
        if isinstance(value, bytearray)
        else plain(value.asDict().values() if hasattr(value, "asDict") else value.values())
        if hasattr(value, "asDict") or isinstance(value, dict)
        else tuple(value)
        if isinstance(value, list)
        else value
        for value in row
    )


def assert_images_have_what_was_sent(spark, told: show.Shown, shown: show.Shown):
    """Null is SQL NULL; what silver's image does not have, or calls missing, is left out."""
    changes = spark.sql("select source, change_seq, to_json(before), to_json(after), column_states from silver.changes")
    sent = {
        tuple(row[:2]): (row[4] or {}, [image and json.loads(image) for image in row[2:4]]) for row in changes.collect()
    }
    at, num_left_out, num_null = (
        [told.columns.index(name) for name in ("source", "change_seq", *show.IMAGES)],
        [0, 0],
        0,
    )
    for row, with_nulls in zip(told.rows, shown.rows, strict=True):
        states, images = sent.get((row[at[0]], row[at[1]]), ({}, [None, None]))
        for n, image in enumerate(images):
            is_, was = row[at[2 + n]], with_nulls[at[2 + n]]
            lacking = {
                c.lower()
                for c in COLUMNS
                if was and was[c.lower()] is None and (c not in image or states.get(c) in ("missing", "lob_incomplete"))
            }
            assert is_ == (was and {c: v for c, v in was.items() if c not in lacking})
            num_left_out[n] += len(lacking)
            num_null += list((is_ or {}).values()).count(None)
    assert all(num_left_out) and num_null


def assert_every_boundary_is_shown_by_as_of_and_committed(spark, streams):
    spark.sql("use public")
    committed = versions(spark, "public.debits__committed")
    for source, (changes, _) in streams.items():
        for change in [c for c in changes if c.last]:
            shown = [row[:-1] for row in committed[source] if row[-2] <= change.seq < (row[-1] or "~")]
            assert shown == upto(changes, change.seq), (source, change.seq)
    boundaries = [c.seq for c in streams["published_00"][0] if c.last]
    for seq in (boundaries[len(boundaries) // 3], boundaries[len(boundaries) * 2 // 3]):  # cuts transactions of others
        at = dt.datetime.strptime(seq[:16] + "0000", "%Y%m%d%H%M%S%f")
        for call, last in ((f"debits_as_of('{seq}')", seq), (f"debits_at(timestamp'{at}')", seq[:16] + "~")):
            found = as_of(spark, call)
            for source, (changes, _) in streams.items():
                assert found.get(source, []) == upto(changes, last), (source, call)
    changes = streams["published_00"][0]
    middle = changes[len(changes) // 2].seq
    spark.sql(
        f"insert into silver.control_events (source, change_seq, kind, detail) values ('published_00', '{middle}', "
        "'checkpoint', '7')"
    )
    for place, last in (
        ("(select max(last_change_seq) from silver.transactions where source = 'published_00')", changes[-1].seq),
        (
            "(select change_seq from silver.control_events where source = 'published_00' and kind = 'checkpoint' and "
            "detail = '7')",
            middle,
        ),
    ):
        assert as_of(spark, f"debits_as_of({place})")["published_00"] == upto(changes, last)
    for wrong in ("'2026-01-02'", "(select max(last_change_seq) from silver.transactions where source = 'nobody')"):
        with pytest.raises(Exception, match="debits_as_of takes a change_seq, or its first digits"):
            spark.sql(f"select * from debits_as_of({wrong})").collect()
    spark.sql("use default")


def as_of(spark, call: str) -> dict[str, list[tuple]]:
    """The rows of debits at a point, by source. In: a call of a function."""
    return by_source(
        spark.sql(f"select source, {', '.join(COLUMNS)}, valid_from_seq from {call} order by source, region, item")
    )


def upto(changes: list[Change], last: str) -> list[tuple]:
    """The rows of debits when its changes up to a place are applied."""
    return [row[:-1] for row in expected([c for c in changes if c.seq <= last], "debits", is_history=False)]


def pair(place: int, transaction_id: str, is_whole: bool = True, source: str = "bank", names=SIDES) -> list[Change]:
    """A transaction of two inserts, one on each side; or only the first of them."""
    both = [
        replace(
            ins(place, place),
            source=source,
            table=f"SHOP.{names[0].upper()}",
            transaction_id=transaction_id,
            counter=1,
            last=False,
        ),
        replace(
            ins(place + 1, place),
            source=source,
            table=f"SHOP.{names[1].upper()}",
            transaction_id=transaction_id,
            counter=2,
            last=True,
        ),
    ]
    return both if is_whole else both[:1]


def by_table(changes: list[Change], names=SIDES) -> dict:
    return {
        name: {c.source: [d for d in of_table if d.source == c.source] for c in of_table}
        for name, of_table in sides(changes, names).items()
    }


def keys(spark, view: str, source: str) -> list[int]:
    return [row.item for row in spark.sql(f"select item from {view} where source = '{source}' order by item").collect()]


class Dying:
    """A session that dies before one of the statements that write, or of what is written without it."""

    def __init__(self, spark, num_writes: int):
        self.spark, self.num_left = spark, num_writes
        self.add_rows, self.alter_view = lake.add_rows, entries.alter_view

    def __getattr__(self, name):
        return getattr(self.spark, name)

    def count(self) -> None:
        if self.num_left <= 0:
            raise KeyboardInterrupt
        self.num_left -= 1

    def sql(self, text: str):
        if text.startswith(("alter", "create")):
            self.count()
        return self.spark.sql(text)

    def add(self, *row) -> None:
        self.count()
        self.add_rows(*row)

    def alter(self, *view) -> None:
        self.count()
        self.alter_view(*view)


def shown(spark, source: str) -> list:
    return [
        sorted(map(str, spark.sql(f"select * from public.{name}{end} where source = '{source}'").collect()))
        for name in SIDES
        for end in ("", "__history", "__before_after")
    ]


@pytest.mark.proof
def test_a_run_that_dies_before_any_of_its_statements_shows_the_old_point_or_the_new(spark, here, monkeypatch):
    """Of a late transaction: the bank's writer is killed while all comes in order."""
    source = "dies"
    bring(spark, here, by_table(pair(40, "A", source=source)))
    bring(spark, here, by_table(pair(20, "B", source=source)), is_published=False)
    found = [shown(spark, source)]
    for num_writes in range(100):
        dying = Dying(spark, num_writes)
        try:
            with monkeypatch.context() as patched:
                patched.setattr(lake, "add_rows", dying.add)
                patched.setattr(entries, "alter_view", dying.alter)
                publish.run(here, dying)
        except KeyboardInterrupt:
            found.append(shown(spark, source))
        else:
            break
    found.append(shown(spark, source))
    is_new = [rows == found[-1] for rows in found]
    assert (
        is_new == sorted(is_new)
        and found[is_new.index(True) - 1] == found[0]
        and 6 < sum(not new for new in is_new) < len(found) - 1
    )
    assert all(old != new for old, new in zip(found[0], found[-1]))


@pytest.mark.proof
def test_half_of_a_late_transaction_keeps_its_source_and_what_shares_its_tables_where_they_are(spark, here):
    late, counted = ("late_debits", "late_credits"), []
    first = bring(
        spark,
        here,
        by_table([*pair(10, "A", source="punctual", names=late), *pair(40, "B", source="tardy", names=late)], late),
    )
    point = bring(
        spark,
        here,
        by_table(
            [*pair(20, "L", is_whole=False, source="tardy", names=late), *pair(30, "M", source="punctual", names=late)],
            late,
        ),
        on_late=counted.extend,
    )
    assert counted == []  # none of them is public yet
    assert "transaction L lacks events" in point.held["tardy"] and "shares tables with tardy" in point.held["punctual"]
    assert {s: point.points[s] for s in ("tardy", "punctual")} == {s: first.points[s] for s in ("tardy", "punctual")}
    assert [keys(spark, f"public.{name}", s) for name in late for s in ("tardy", "punctual")] == [
        [40],
        [10],
        [40],
        [10],
    ]
    assert not publish.pending(here)
    rest = pair(20, "L", source="tardy", names=late)[1:]
    point = bring(spark, here, by_table(rest, late), on_late=counted.extend)
    assert "tardy" not in point.held and counted == [("tardy", 2, pair(20, "L", source="tardy")[0].seq)]
    assert [keys(spark, f"public.{name}", s) for name in late for s in ("tardy", "punctual")] == [
        [20, 40],
        [10, 30],
        [20, 40],
        [10, 30],
    ]


def at(hour: int, changes: list[Change]) -> list[Change]:
    """The changes at another hour of the day."""
    return [replace(c, source="slow", seq=f"{c.seq[:8]}{hour:02d}{c.seq[10:]}") for c in changes]


@pytest.mark.proof
def test_a_transaction_that_stays_open_is_passed_when_its_source_is_far_enough_in_a_later_batch(spark, here):
    first = at(3, pair(10, "A"))
    point = bring(spark, here, by_table([*first, *at(3, pair(20, "B", is_whole=False)), *at(6, pair(30, "C"))]))
    assert point.points["slow"] == first[-1].seq and keys(spark, "public.debits", "slow") == [
        10
    ]  # B and C are of one batch
    point = bring(spark, here, by_table(at(3, pair(40, "D"))))
    assert point.points["slow"] == first[-1].seq and not publish.pending(here)  # not an hour later than B
    impatient = Source(name="slow", codec="qlik_json", path="nowhere", open_transaction_minutes=0)
    without_wait = here.model_copy(update={"sources": {"slow": impatient}})
    assert hold.holds_of(without_wait, spark, point) == {} and publish.pending(without_wait)
    point = bring(spark, here, by_table(at(7, pair(50, "E"))))
    assert "slow" not in point.held
    assert keys(spark, "public.debits", "slow") == [10, 20, 30, 40, 50]
    states = spark.sql(
        "select transaction_id, state from silver.transactions where source = 'slow' and state <> 'complete'"
    ).collect()
    assert [tuple(r) for r in states] == [("B", "open")]
    [told] = [row for row in status(here)["public though not whole"] if row["source"] == "slow"]
    assert (told["transactions"], told["first of them"], told["changes there"]) == (1, "B", 1)


FAILING = """[{table: "*__current", expect: unexpected_rows_expectation, severity: error, why: to fail,
   kwargs: {unexpected_rows_query: "select * from {batch}"}}]"""


@pytest.mark.smoke
def test_a_failed_check_leaves_the_point_where_it_was_and_says_so(spark, here, capsys):
    def gold_and_publish(suite: str) -> None:
        (here.root / "expectations").mkdir(exist_ok=True)
        (here.root / "expectations" / "silver.yml").write_text("[]")
        (here.root / "expectations" / "gold.yml").write_text(suite)
        running.run(
            here, running.Work(bronze.Plan(0)), ("gold", "publish"), [], Log(is_human=False), hold=lambda spark: None
        )

    before = point_of.published(here, spark)
    bring(spark, here, by_table(pair(90, "F")), is_published=False)
    with pytest.raises(CheckFailed):
        gold_and_publish(FAILING)
    assert (
        point_of.published(here, spark) == before
        and '"stays": "the public views show what they did before"' in capsys.readouterr().err
    )
    gold_and_publish("[]")
    assert 90 in keys(spark, "public.debits", "bank")


@pytest.mark.smoke
def test_doing_it_again_changes_nothing_and_a_table_without_changes_is_not_touched(spark, here, monkeypatch):
    before, num_logged = point_of.published(here, spark), spark.sql("select count(*) from gold.published").first()[0]
    monkeypatch.setattr(views, "moving", lambda *_: pytest.fail("views were written"))
    assert publish.run(here, spark) == before
    assert spark.sql("select count(*) from gold.published").first()[0] == num_logged


def test_a_query_planned_while_two_points_pass_says_so_rather_than_mix_them(spark, here):
    point = point_of.published(here, spark)
    stale = deepcopy(point)
    stale.table("debits").moved += 5
    point_of.commit(spark, stale)
    with pytest.raises(Exception, match="Run it again"):
        spark.sql("select * from public.debits").collect()
    point_of.commit(spark, point)


def test_a_point_that_was_committed_in_the_form_of_before_is_read(spark, here):
    point = replace(point_of.published(here, spark), looked_at=0)
    for table in point.tables.values():
        table.applied = None
    before = {
        "number": point.number,
        "points": point.points,
        "batches": point.batches,
        "taken": {name: source.taken for name, source in point.sources.items()},
        "versions": point.versions,
        "held": point.held,
        "moved": point.moved,
        "through": {name: table.through for name, table in point.tables.items()},
        "shapes": {name: table.shape for name, table in point.tables.items()},
        "columns": {name: table.columns for name, table in point.tables.items()},
    }
    assert point_of.Point.of(before) == point == point_of.Point.of(asdict(point))


def test_a_reader_finds_the_point_at_every_moment(spark, here):
    point, found, is_done = point_of.published(here, spark), [], threading.Event()

    def read() -> None:
        mine = spark.newSession()
        while not is_done.is_set():
            try:
                found.append(mine.sql("select number from public._point").first()[0])
            except Exception as error:  # whatever it is, the test shows it
                found.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for number in range(1, 16):
        point_of.commit(spark, replace(point, number=point.number + number))
    point_of.commit(spark, point)
    is_done.set()
    reader.join()
    assert len(found) > 5 and not [error for error in found if not isinstance(error, int)]
    assert point_of.published(here, spark) == point


@pytest.fixture(scope="module")
def one_more(spark, here):
    """A batch more is published, in which a transaction's id is used again, and gold.published is compacted. Out: the
    point before it, and how many there were.
    """

    def used(change: Change, side: int, counter: int, is_last: bool) -> Change:
        table = f"SHOP.{SIDES[side].upper()}"
        return replace(change, source="again", table=table, transaction_id="T", counter=counter, last=is_last)

    changes = [
        used(ins(1, 1), 0, 1, True),
        used(upd(3, 1, NAME="twice"), 0, 1, False),
        used(upd(4, 1, NAME="in it"), 0, 2, False),
        used(ins(5, 1), 1, 3, True),
        used(ins(8, 2), 1, 1, False),
        used(upd(9, 1, NAME="of its namesake"), 0, 2, True),
    ]
    before = point_of.published(here, spark), spark.sql("select count(*) from gold.published").first()[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lake.compaction, "NUM_FILES", 1)
        bring(spark, here, by_table(changes))
    return before


def test_a_version_is_committed_where_its_id_was_used_again_before_it_ended(spark, one_more):
    """What tells the two transactions apart lies in another table."""
    assert [
        (int(row[-2][16:]), int((row[-1] or "0" * 17)[16:]))
        for row in versions(spark, "public.debits__committed")["again"]
    ] == [(1, 3), (4, 9), (9, 0)]


def test_gold_published_stays_few_files_and_keeps_every_point(spark, here, one_more):
    before, num_points = one_more
    assert spark.sql("describe detail gold.published").first().numFiles == 1
    assert publish.newest(here)["number"] == before.number + 1 and not publish.pending(here)
    assert spark.sql("select count(*) from gold.published").first()[0] == num_points + 1


def test_what_is_said_of_a_column_does_not_make_a_point_unreadable():
    before, after = (
        Table(table="SHOP.T", name="t", key=["K"], columns=[{"name": "K", "type": "int", "description": said}])
        for said in ("", "the key")
    )
    wider = Table(table="SHOP.T", name="t", key=["K"], columns=[{"name": "K", "type": "bigint"}])
    (shape, columns), (shape_then, columns_then), (_, columns_wider) = map(views.shape, (before, after, wider))
    assert shape != shape_then and columns == columns_then != columns_wider


def test_the_public_views_stand_while_a_table_is_rebuilt(spark, here):
    """And one that never had a change is rebuilt and published."""
    build_gold(here, spark, ["unused"])
    publish.run(here, spark)
    before, num_rows = versions(spark, "public.debits__history"), spark.table("gold.debits__current").count()
    spark.sql("delete from gold.debits__current")  # what a rebuild is there to mend
    build_gold(here, spark, ["debits", "unused"], full_refresh=True)
    assert spark.table("gold.debits__current").count() == num_rows > 0
    assert versions(spark, "public.debits__history") == before
    publish.run(here, spark)
    assert versions(spark, "public.debits__history") == before
    assert spark.table("public.unused").isEmpty()


def contents(spark, database: str) -> dict:
    """What the views of one point show, by table."""
    spark.sql(f"use {database}")
    found = {
        name: [versions(spark, f"{database}.{name}{end}") for end in ("", "__history", "__committed")]
        + [
            spark.sql(f"select * from {database}.{name}__before_after order by source, change_seq").collect(),
            spark.sql(
                f"select item, valid_from_seq from {name}_as_of('{ins(40, 40).seq}') where source = 'bank' order by all"
            ).collect(),
        ]
        for name in SIDES
    }
    spark.sql("use default")
    return found


@pytest.mark.proof
def test_a_pin_shows_all_tables_at_one_point_for_good(spark, here):
    points = {}
    for place in (70, 5, 80):  # one of them comes late
        number = bring(spark, here, by_table(pair(place, f"P{place}"))).number
        points[number] = contents(spark, "public")
        if place == 70:
            assert set(pins.pin(here, spark, "month_end", pins.find(here, "month_end"))) >= set(SIDES)
    build_gold(here, spark, list(SIDES), full_refresh=True)
    publish.run(here, spark)
    for number, shown in points.items():
        name = "month_end" if number == min(points) else f"at_{number}"
        pins.pin(here, spark, name, pins.find(here, name, number))  # what is pinned already is written again
        assert contents(spark, name) == shown
        assert re.findall(
            r"silver\.transactions (version as of)?",
            str(spark.sql(f"show create table {name}.debits__committed").collect()),
        ) == ["version as of"]
    assert len({str(shown) for shown in points.values()}) == len(points) == 3
    joined = (
        "select count(*) from {0}.debits d full join {0}.credits c using (source, item) where source = 'bank' and "
        "(d.region is null or c.region is null)"
    )
    assert [spark.sql(joined.format(name)).first()[0] for name in pins.pinned(spark)] == [0, 0, 0]
    for wrong, said in (
        (("month_end", max(points)), "is pinned to point"),
        (("Public", None), "can't be the name"),
        (("never", 10_000), "no published point 10000"),
        (("gold", None), "can't be the name"),
    ):
        with pytest.raises(ConfigError, match=said):
            pins.pin(here, spark, wrong[0], pins.find(here, *wrong))
    for name in pins.pinned(spark):
        pins.unpin(here, spark, name)
    assert pins.pinned(spark) == {} and not spark.catalog.databaseExists("month_end")
    with pytest.raises(ConfigError, match="is no pin"):
        pins.unpin(here, spark, "month_end")


def test_a_view_costs_no_scan_of_the_past_and_no_filter(spark, here):
    plan = spark.sql("explain select * from public.debits").first()[0]
    assert "debits__past" not in plan and "valid_from_seq <=" not in plan and plan.count("FileScan") == 1, plan
    plan = spark.sql("explain select * from public.credits__live").first()[0]
    assert re.search(r"\(batch_id#\d+L > \d+\)", plan), plan  # a literal, by which files are skipped


def wide_table(num_columns: int, name: str = "wide", type_: str = "bigint", encoding: str | None = None) -> Table:
    columns = [
        {"name": f"A_RATHER_LONG_NAME_{n:03d}", "type": type_, "encoding": encoding}
        if n
        else {"name": "C0", "type": "bigint"}
        for n in range(num_columns)
    ]
    return Table(table="SHOP.WIDE", name=name, key=["C0"], columns=columns)


def test_the_views_of_a_wide_table_of_many_sources_fit_the_text_that_hives_own_catalog_takes():
    table, sources = wide_table(300), [f"source_{n:03d}" for n in range(100)]
    last, point = (
        publish.Point(
            number,
            {source: point_of.SourcePoint(f"{number:035d}") for source in sources},
            {
                "wide": point_of.TablePoint(
                    dict.fromkeys(gold.STEPS, number), dict.fromkeys(sources, f"{number + 1:035d}"), number, shape=1
                )
            },
        )
        for number in (1, 2)
    )
    bodies = [view.body for view in views.moving(table, last, point, {"before_after": True, "past": True})]
    bodies += [text.partition("\nas\n")[2] for text in fixed_views.statements(table, point)[0]]
    assert len(bodies) == 4 and max(map(len, bodies)) < 32_700


def test_a_live_view_that_is_too_long_for_the_catalog_says_so_when_it_is_read(spark, here):
    """Only columns of a hex encoding take so much of its text; of others a function takes the types out of it
    (tests/test_wide.py).
    """
    live, number = "public.debits__live", 1
    while (
        len(live_view.query(wide := wide_table(number, "debits", "binary", "hex"), "public._base", "public.row"))
        <= live_view.MAX_TEXT
    ):
        number += 50
    live_view.write(here, spark, [(wide, 0)])
    with pytest.raises(
        Exception, match="SHOP.WIDE has too many columns for a live view in this catalog; read public.debits"
    ):
        spark.sql(f"select * from {live}").collect()
    assert number > 200


def test_what_the_views_are_is_said_in_the_catalog(spark, here):
    described = {r.col_name: r.comment for r in spark.sql("describe public.debits").collect()}
    assert described["region"] == "where it's sold" and described["is_complete"] == "the value of every column is known"
    assert "At the published point" in next(
        r.data_type for r in spark.sql("describe extended public.debits").collect() if r.col_name == "Comment"
    )


def test_an_open_transaction_goes_by_the_times_of_changes_where_the_order_tells_none(spark, here):
    """The last test: what it writes stays."""
    lakehouse, seqs = here.lakehouse_path(), [f"{place:035d}" for place in range(5)]

    def come(n: int, at: str, id_: str) -> None:
        of = {"source": "queue", "batch_id": 970_000_000 + n}
        change = {"source_schema": "S", "source_table": "T", "change_seq": seqs[n], "operation": "INSERT"}
        time = dt.datetime.fromisoformat(f"2026-01-02T{at}Z")
        lake.add_rows(lakehouse, "silver.changes", [of | change | {"transaction_id": id_, "change_timestamp": time}])
        lake.add_rows(lakehouse, "silver.batches", [of | {"last_change_seq": seqs[n]}])

    come(1, "03:00:00", "A")
    first = {"source": "queue", "batch_id": 970_000_001, "transaction_id": "A", "num_changes": 1, "state": "open"}
    span = {"first_change_seq": seqs[1], "last_change_seq": seqs[1]}
    lake.add_rows(lakehouse, "silver.transactions", [first | span])
    held = []
    for n, at in enumerate(["03:59:00", "02:00:00", "04:00:01"], 2):
        come(n, at, "B")
        held.append("queue" in hold.holds_of(here, spark, point_of.Point(0)))
    assert held == [True, True, False]
