"""The lease of a lakehouse in a store: one writer on all machines, and what one that has lost it can do no more."""

import time

import pytest

from inlet import lake, storage
from inlet.errors import TryAgain
from inlet.lake import lease, place, snapshots
from inlet.lake.delta_log import DeltaLog
from tests import stores

ROW = {"batch_id": 1, "source": "depot", "codec": "linkexpress_group"}


@pytest.fixture(scope="module")
def bucket():
    with stores.s3("leases") as (endpoint, _):
        yield endpoint


@pytest.fixture
def lakehouse(bucket, request, monkeypatch):
    """The address of a lakehouse that does not exist yet; a lease lasts two seconds."""
    monkeypatch.setattr(storage, "_stores", {"s3://": storage.Store(endpoint=bucket, region=stores.REGION)})
    for name, seconds in (("SECONDS", 2.0), ("RENEW_SECONDS", 0.3), ("MARGIN_SECONDS", 0.5)):
        monkeypatch.setattr(lease, name, seconds)
    return f"s3://leases/{request.node.name}"


@pytest.fixture
def machines(tmp_path, monkeypatch):
    """machines(name): from now on this process is on another machine."""
    return lambda name: monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))


class Stopped(lease.Lease):
    """The lease of a writer that does not come to renewing it."""

    def _renew(self) -> None:
        pass


def taken(kind, lakehouse: str, machine: str, tell=print) -> lease.Lease:
    one = kind(lakehouse, machine)
    one.take(tell)
    return one


def test_of_two_machines_one_writes_and_the_other_hears_who_does(lakehouse, machines):
    machines("a")
    with lake.writing(lakehouse):
        machines("b")
        with pytest.raises(TryAgain, match=rf"process \d+ on \S+ writes to {lakehouse}"), lake.writing(lakehouse):
            pass
    with lake.writing(lakehouse):
        lake.add_rows(lakehouse, "silver.batches", [ROW])
    assert [row["batch_id"] for row in lake.peek(lakehouse, "silver.batches", ["batch_id"])] == [1]


def test_two_runs_on_one_machine_hear_of_each_other_without_the_store(lakehouse, machines):
    machines("a")
    with lake.writing(lakehouse), pytest.raises(TryAgain, match="Another run writes"), lake.writing(lakehouse):
        pass


def test_a_machine_goes_on_at_once_after_a_process_of_its_own_that_died(lakehouse):
    first = taken(Stopped, lakehouse, "a")
    said = []
    second = taken(lease.Lease, lakehouse, "a", said.append)
    assert second.number > first.number and said == []
    second.give_back()


def test_another_machine_waits_until_the_lease_of_a_dead_writer_has_ended(lakehouse):
    first = taken(Stopped, lakehouse, "a")
    with pytest.raises(TryAgain, match="writes to"):  # it may live
        taken(lease.Lease, lakehouse, "b")
    time.sleep(lease.SECONDS)
    said = []
    second = taken(lease.Lease, lakehouse, "b", said.append)
    assert second.number > first.number and "still writes" in said[0]["waiting"]
    second.give_back()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_an_hour_off_takes_no_lease_from_a_writer(lakehouse, monkeypatch, hours):
    first = taken(lease.Lease, lakehouse, "a")
    now = time.time
    monkeypatch.setattr(lease.time, "time", lambda: now() + 3600 * hours)
    with pytest.raises(TryAgain, match="writes to"):
        taken(lease.Lease, lakehouse, "b", [].append)
    first.check()
    first.give_back()


def test_a_writer_that_could_not_renew_its_lease_stops_before_its_next_commit(lakehouse, machines, monkeypatch):
    machines("a")
    stopped = []
    monkeypatch.setattr(lease, "Lease", Stopped)
    with pytest.raises(TryAgain, match="could not renew its lease"), lake.writing(lakehouse):
        lake.add_rows(lakehouse, "silver.batches", [ROW])
        lease._held[lakehouse].on_loss = lambda: stopped.append(True)
        time.sleep(lease.SECONDS)
        lake.add_rows(lakehouse, "silver.batches", [ROW | {"batch_id": 2}])
    assert [row["batch_id"] for row in lake.peek(lakehouse, "silver.batches", ["batch_id"])] == [1] and stopped


def test_delta_refuses_what_a_former_writer_commits_after_the_next_one(lakehouse, monkeypatch):
    """It looked at its clock before it was stopped, and goes on between that and its commit."""
    lake.add_rows(lakehouse, "silver.batches", [ROW])
    former, opened = taken(Stopped, lakehouse, "a"), snapshots.open_table
    time.sleep(lease.SECONDS)
    monkeypatch.setitem(lease._held, lakehouse, taken(lease.Lease, lakehouse, "b", [].append))
    batches = f"{lakehouse}/silver/batches"
    stale = opened(batches)
    lake.add_rows(lakehouse, "silver.batches", [ROW | {"batch_id": 2}])
    lease._held[lakehouse].give_back()
    monkeypatch.setitem(lease._held, lakehouse, former)
    monkeypatch.setattr(former, "check", lambda: None)
    monkeypatch.setattr(snapshots, "open_table", lambda at, *rest: stale if at == batches else opened(at, *rest))
    with pytest.raises(TryAgain, match="was written by another process"):
        lake.add_rows(lakehouse, "silver.batches", [ROW | {"batch_id": 3}])


def test_the_log_of_the_lease_stays_short(lakehouse, monkeypatch):
    monkeypatch.setattr(lease, "NUM_RENEWALS", 4)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.01)
    one = taken(lease.Lease, lakehouse, "a")
    time.sleep(1)
    one.give_back()
    assert DeltaLog(f"{one.lakehouse}/{lease.TABLE}").checkpoints


def test_each_lakehouse_in_a_store_has_a_catalog_of_its_own_on_a_machine(machines):
    machines("a")
    homes = {place.home(at) for at in ("s3://lake/one", "s3://lake/two", "s3://lake-one", "s3://lake/one/")}
    assert len(homes) == 4 and {home.parent for home in homes} == {place.home("s3://x").parent}


def test_a_renewal_whose_answer_was_lost_is_the_writer_s_own(lakehouse, monkeypatch):
    one = taken(Stopped, lakehouse, "a")
    commit = type(one._kept._table).create_write_transaction

    def answer_is_lost(table, *given, **about):
        commit(table, *given, **about)
        commit(table, *given, **about)  # as delta-rs tries again, and meets its own commit

    monkeypatch.setattr(type(one._kept._table), "create_write_transaction", answer_is_lost)
    assert one._commit(lease.SECONDS) and one._kept.version == one.number + 1


def test_a_former_writer_that_opens_a_table_after_the_next_one_took_the_lease_is_refused(
    lakehouse, machines, monkeypatch
):
    lake.add_rows(lakehouse, "silver.batches", [ROW])
    former = taken(Stopped, lakehouse, "a")
    monkeypatch.setattr(former, "check", lambda: None)  # it has asked, and was stopped
    time.sleep(lease.SECONDS)
    machines("b")
    with lake.writing(lakehouse, tell=[].append):
        pass
    monkeypatch.setitem(lease._held, lakehouse, former)
    with pytest.raises(TryAgain, match="was written under a later lease"):
        lake.add_rows(lakehouse, "silver.batches", [ROW | {"batch_id": 2}])


def test_the_catalog_of_a_lakehouse_that_was_made_again_is_forgotten(machines):
    machines("a")
    home = place.home("s3://lake/one")
    for table_id, stays in (("1", True), ("1", True), ("2", False)):
        (home / "_catalog").mkdir(parents=True, exist_ok=True)
        place.forget_former("s3://lake/one", table_id)
        assert (home / "_catalog").exists() == stays
        place.note_id("s3://lake/one", table_id)
