"""Large batches of messages: the changes that the compiled walk reads are written once, and again only where the
messages that it leaves or the stored changes ask for it, whenever a run dies."""

import datetime as dt

import pytest

from inlet import lake, silver
from inlet.silver import messages, small_batches
from inlet.silver.batch import Account, Batch
from tests import projects
from tests.encode import qlik
from tests.stored import rows
from tests.test_silver import COLUMNS, Died, dies, land

NAME = "walked_shop"
SHOP = {"codec": "qlik_json", "from": f"landing/{NAME}/*.parquet", "tables": {"items": "DEPOT.ITEMS"}}
LATER = dt.timedelta(minutes=1)


def change(n: int, price=1, **more) -> bytes:
    row = {"ITEM_ID": n, "NAME": "a", "PRICE": price}
    of_change = {"operation": "INSERT", "after": row, "change_seq": f"20260102040000{n:021d}"}
    return qlik.value(of_change | {"transaction_id": f"{n:032x}"} | more, COLUMNS)


def refresh(n: int) -> bytes:
    return qlik.value({"operation": "REFRESH", "after": {"ITEM_ID": n, "NAME": "a", "PRICE": 1}}, COLUMNS)


SAMPLED = "rows of that load which the sample shows"
BATCHES = [  # what is among the messages; these; how often changes are written; changes, repeats, rejects, control
    ("changes and a broken one", [change(10), change(30), b"{broken"], 1, (2, 0, 1, 0)),
    ("places between those of an earlier batch", [change(20), change(40)], 1, (2, 0, 0, 0)),
    ("a change that an earlier batch has", [change(20), change(50)], 2, (1, 1, 0, 0)),
    ("a change that comes twice, and another at its place", [change(60), change(60), change(60, 2)], 2, (1, 1, 1, 0)),
    ("rows of a full load among changes", [refresh(1), change(70), refresh(2), b"{"], 2, (3, 0, 1, 0)),
    ("further rows of that load, and a repeat", [refresh(3), change(70)], 3, (1, 1, 0, 0)),
    (SAMPLED, [refresh(4), change(80), b"{", refresh(5)], 1, (3, 0, 1, 0)),
    (f"{SAMPLED}, and a repeat", [refresh(6), change(80)], 2, (1, 1, 0, 0)),
    (
        "a change with an event, which the walk leaves",
        [change(90), change(100, change_timestamp="at four")],
        2,
        (2, 0, 0, 0),
    ),
]
DIES = {BATCHES[n][0] for n in (2, 4, 5, 8)}  # batches 3 and 7 write in the order of batch 2


def decode(project, spark, monkeypatch, batch_id: int, num_few: int, num_sample: int) -> tuple[Account, int]:
    """Decode a batch by Spark. Out: its account, and how often changes of it were written."""
    tables, append, add_files = [], Batch.append, lake.add_files
    with monkeypatch.context() as patched:
        patched.setattr(small_batches, "write", lambda *given: set())
        patched.setattr(messages, "NUM_FEW", num_few)
        patched.setattr(messages, "NUM_SAMPLE", num_sample)
        patched.setattr(lake, "add_files", lambda *given: tables.append(given[1]) or add_files(*given))
        patched.setattr(Batch, "append", lambda *given: tables.append(given[-1]) or append(*given))
        return silver.run(project, spark, batch_id)[NAME], tables.count("silver.changes")


@pytest.mark.smoke
def test_messages_are_written_once_unless_they_ask_for_more(spark, lakehouse, tmp_path, monkeypatch):
    project = projects.make(tmp_path, {NAME: SHOP}, lakehouse=lakehouse)
    (tmp_path / "landing" / NAME).mkdir(parents=True)
    offset = 0
    for number, (what, values, num_writes, counts) in enumerate(BATCHES):
        sent = qlik.rows(values, "items", offset=offset, start=qlik.START + number * LATER)
        qlik.write_parquet(sent, tmp_path / "landing" / NAME / f"{number}.parquet")
        offset += len(values)
        batch_id, num_sample = land(project, spark), 50 if what.startswith(SAMPLED) else 0
        if what in DIES:  # between the removal of changes and their second write, among others
            with monkeypatch.context() as patched, pytest.raises(Died):
                dies(patched, spark, num_writes)
                decode(project, spark, monkeypatch, batch_id, 200, num_sample)
        account, num = decode(project, spark, monkeypatch, batch_id, 200 if number % 2 else 0, num_sample)
        found = account.num_changes, account.num_repeats, account.num_rejected, account.num_control
        assert (num, found) == (num_writes, counts), what
    of_change = "operation", "after", "load_id is not null"
    changes = rows(lakehouse, "silver.changes", NAME, *of_change)
    found = sorted((operation, after["ITEM_ID"], after["PRICE"], loaded) for operation, after, loaded in changes)
    inserts = [("INSERT", n, 1, False) for n in range(10, 101, 10)]
    assert found == [*inserts, *(("REFRESH", n, 1, True) for n in range(1, 7))]
    kinds = rows(lakehouse, "silver.rejects", NAME, "kind", rest="order by 1")
    assert kinds == [("conflicting_duplicate",), *[("invalid_json",)] * 3]
    assert rows(lakehouse, "silver.transactions", NAME, "state") == [(None,)] * 10
    events = rows(lakehouse, "silver.control_events", NAME, "kind", rest="and kind not like '%load%'")
    assert events == [("unreadable_timestamp",)]
