"""The lease of a lakehouse that other machines reach: one writer at a time, whatever machine it runs on.

In a store the lease is a Delta table without rows, `_lease`; the last of its commits says who holds it. A store takes a
commit of a number once (delta-rs puts it under a condition), so one of two writers gets it. Where a catalog manages the
tables it is the one row of one of them (managed.LeaseRow), and Delta refuses the second of two updates. The holder
renews it. One that could not begins no commit any more, early enough for its last one to have ended when another may
take the lease: requests of delta-rs have limits (storage.py), and Spark is stopped.

A writer that was stopped between its look at the clock and its commit is refused by Delta. A machine that takes the
lease from another which did not give it back changes a property of each table (fence.py), so commits of delta-rs
and Spark that were begun before fail. Commits of rows by delta-rs note the number of the lease, so those that a former
holder begins later fail, too. A commit of Spark notes none.

Clocks of two machines are not compared to take a lease: it has ended when its table had no new commit for as long as
it lasts while the next writer watched.
"""

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from inlet import storage
from inlet.errors import TryAgain
from inlet.lake import managed
from inlet.lake.delta_log import DeltaLog

if TYPE_CHECKING:
    import deltalake

SECONDS, RENEW_SECONDS = 90.0, 15.0  # that a lease lasts, and after which it is renewed
MARGIN_SECONDS = 45.0  # before its end no commit is begun any more; the last one takes 40 s at most
LIMITS = {"timeout": "5s", "connect_timeout": "3s", "max_retries": "2", "retry_timeout": "8s"}  # of a renewal
NUM_RENEWALS = 500  # after which the log of the lease is made short
APP_ID = "inlet-lease"  # of the number in commits
KEY = "inlet"  # in the information of a commit of the lease
TABLE = "_lease"
_held: dict[str, "Lease"] = {}  # by lakehouse
_committing = threading.RLock()
log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """What the last commit of the lease says."""

    owner: str  # for people
    machine: str
    seconds: float  # that it lasts from this commit on; 0: it was given back
    commit: str  # what no other commit has


class Lease:
    """A lease that this process holds or wants. In: the lakehouse's address; what tells this machine from others."""

    def __init__(self, lakehouse: str, machine: str):
        self.lakehouse, self.machine = lakehouse, machine
        self.owner = f"process {os.getpid()} on {socket.gethostname()}"
        self.number = -1  # of the commit that took it
        self.is_lost = self.is_taken_over = False
        self._ended, self._losing, self._renewed_at = threading.Event(), threading.Lock(), 0.0
        self._threads = [
            threading.Thread(target=call, name="inlet-lease", daemon=True) for call in (self._renew, self._end)
        ]
        self.on_loss: Callable[[], None] = lambda: None

    def take(self, tell: Callable[[dict], None]) -> None:
        """Take it. In: `Log.say`, for who waits. Raises: TryAgain where another machine holds it."""
        self._kept = (
            managed.LeaseRow(self.lakehouse) if storage.is_managed(self.lakehouse) else LeaseTable(self.lakehouse)
        )
        while True:
            version, holder = self._kept.version, self._holder()
            # a process of this machine that held it has ended: lock.py
            self.is_taken_over = bool(holder and holder.seconds and holder.machine != self.machine)
            if holder and self.is_taken_over:
                self._watch(holder, version, tell)
            if self._commit(SECONDS * self._kept.TIMES):
                self.number = self._kept.version
                for thread in self._threads:
                    thread.start()
                return

    def check(self) -> None:
        """Raises: TryAgain where the lease is lost, or about to end. To be asked before each commit."""
        if not self.is_lost and self._is_ending():
            self._lose()
        if self.is_lost:
            seconds = (SECONDS - MARGIN_SECONDS) * self._kept.TIMES
            raise TryAgain(
                f"This run could not renew its lease of {self.lakehouse} in {seconds:.0f} s: another machine may write",
                "Run again: it goes on with what this one has not finished",
            )

    def give_back(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if not self.is_lost:
            try:
                self._commit(0)
            except Exception as error:  # the work is done: others wait until it has ended
                log.info("the lease of %s was not given back: %s", self.lakehouse, error)

    def _watch(self, holder: Holder, version: int, tell: Callable[[dict], None]) -> None:
        """Wait until a lease has ended. Raises: TryAgain where its holder renews it."""
        age = time.time() - self._kept.written_at
        refused = TryAgain(f"{holder.owner} writes to {self.lakehouse}", "Wait for it to end and try again")
        if 0 <= age < holder.seconds:
            raise refused
        tell({"step": "lock", "waiting": f"up to {holder.seconds:.0f} s: whether {holder.owner} still writes"})
        until = _now() + holder.seconds
        while _now() < until:
            time.sleep(min(1.0 * self._kept.TIMES, holder.seconds / 10))
            self._kept.look()
            if self._kept.version != version:
                if (renewed := self._holder()) and renewed.seconds:
                    raise refused
                return

    def _renew(self) -> None:
        """Renew it until it is given back or lost."""
        num = 0
        while not self._ended.wait(RENEW_SECONDS * self._kept.TIMES):
            try:
                if not self._commit(SECONDS * self._kept.TIMES):
                    return self._lose()
                if (num := num + 1) % NUM_RENEWALS == 0:
                    self._kept.shorten()
            except Exception as error:
                log.info("the lease of %s was not renewed: %s", self.lakehouse, error)
            if self._is_ending():
                return self._lose()

    def _end(self) -> None:
        """Give it up when it was not renewed in time, though the renewal has not come back."""
        while not self.is_lost and not self._ended.wait(RENEW_SECONDS * self._kept.TIMES):
            if self._is_ending():
                self._lose()

    def _is_ending(self) -> bool:
        return _now() - self._renewed_at > (SECONDS - MARGIN_SECONDS) * self._kept.TIMES

    def _lose(self) -> None:
        with self._losing:
            was_lost, self.is_lost = self.is_lost, True
        if not was_lost:
            self.on_loss()

    def _commit(self, seconds: float) -> bool:
        """Say that it is held from now on. Out: False where another machine has written it."""
        holder, begun = Holder(self.owner, self.machine, seconds, uuid.uuid4().hex), _now()
        self._kept.put(json.dumps(holder._asdict()))
        if self._holder() != holder:
            return False
        self._renewed_at = begun
        return True

    def _holder(self) -> Holder | None:
        return Holder(**json.loads(self._kept.text)) if self._kept.text else None


@contextmanager
def leased(lakehouse: str, machine: str, tell: Callable[[dict], None]):
    """Holds the lease of a lakehouse. Out: the lease. Raises: TryAgain where another machine holds it, and where it was
    lost meanwhile."""
    lease = Lease(lakehouse, machine)
    lease.take(tell)
    _held[lakehouse] = lease
    try:
        yield lease
    except Exception as error:
        if lease.is_lost and not isinstance(error, TryAgain):
            lease.check()
        raise
    finally:
        del _held[lakehouse]
        lease.give_back()


@contextmanager
def committing(lakehouse: str) -> Iterator[dict[str, int]]:
    """Around a commit without Spark. Out: what it notes of the lease, as app_id -> version; {} where there is none. One
    at a time is made under a lease: Delta takes two that note the same for conflicting. Raises: as Lease.check."""
    if lease := _held.get(lakehouse):
        with _committing:
            lease.check()
            yield {APP_ID: lease.number}
    else:
        yield {}


def refuse_former(table: "deltalake.DeltaTable", of_lease: dict[str, int]) -> None:
    """In: a table that is about to be written, and what `committing` gave. Raises: TryAgain where a later holder of the
    lease has noted itself in it."""
    if of_lease and (table.transaction_version(APP_ID) or -1) > of_lease[APP_ID]:
        raise TryAgain(f"{table.table_uri} was written under a later lease", "Run again: it goes on from there")


class LeaseTable:
    """What the last commit of a lease says, in a store. In: the lakehouse's address."""

    TIMES = 1  # as long as SECONDS say

    def __init__(self, lakehouse: str):
        import deltalake

        place = f"{lakehouse}/{TABLE}"
        options = (storage.delta_options(place) or {}) | LIMITS
        if not deltalake.DeltaTable.is_deltatable(place, options):
            columns = deltalake.Schema([deltalake.Field("none", deltalake.schema.PrimitiveType("string"))])
            about = {"delta.logRetentionDuration": "interval 1 days", "delta.enableExpiredLogCleanup": "true"}
            deltalake.DeltaTable.create(place, columns, "ignore", configuration=about, storage_options=options)
        self._table = deltalake.DeltaTable(place, storage_options=options)
        if DeltaLog(place).num_commits > NUM_RENEWALS:
            self.shorten()
        self.look()

    def look(self) -> None:
        """Read the last commit."""
        self._table.update_incremental()
        last = (self._table.history(1) or [{}])[0]
        self.version, self.text = self._table.version(), last.get(KEY, "")
        self.written_at = last.get("timestamp", 0) / 1000

    def put(self, text: str) -> None:
        """Commit a text, unless another commit follows the one that was read; and look again."""
        import deltalake

        once = deltalake.CommitProperties(custom_metadata={KEY: text}, max_commit_retries=0)
        with suppress(deltalake.exceptions.CommitFailedError):  # maybe of its own, whose answer was lost
            self._table.create_write_transaction([], "append", self._table.schema(), commit_properties=once)
        self.look()

    def shorten(self) -> None:
        self._table.create_checkpoint()
        self._table.cleanup_metadata()


def _now() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
