"""The demo's carrier: a GoldenGate trail with a file that grows, a process that was restarted, and a broken record."""

import itertools
import random
from collections.abc import Iterator
from datetime import UTC

from infra.local.feed_files import Feed, quarters, staged
from tests import goldengate_streams as streams
from tests.business import Carrier
from tests.encode import goldengate_columns, goldengate_defgen
from tests.encode.goldengate_trail import Trail

PARCELS = goldengate_columns.Table(
    "CARRIER.PARCELS",
    (
        goldengate_columns.integer("PARCEL_ID", is_key=True, is_nullable=False),
        goldengate_columns.integer("ORDER_ID", is_nullable=False),
        goldengate_columns.varchar("SERVICE", 8, is_nullable=False),
        goldengate_columns.varchar("STATUS", 10, is_nullable=False),
        goldengate_columns.varchar("CITY", 20),
        goldengate_columns.number("WEIGHT", 3),
        goldengate_columns.moment("UPDATED_AT", 26, is_nullable=False),
    ),
)
BROKEN_PARCEL = {  # of a month that no calendar has
    "PARCEL_ID": 99_999,
    "ORDER_ID": 7,
    "SERVICE": "express",
    "STATUS": "accepted",
    "CITY": "Praha",
    "WEIGHT": None,
    "UPDATED_AT": "2026-13-05:10:00:00.000000",
}


def write(feed: Feed, carrier: Carrier, rng: random.Random) -> None:
    """Three files, of which the second one grows from a batch to the next. A transaction of it cannot be read."""
    trail = Trail([PARCELS], byte_order="little", name_form="index", definitions="start", prefix="./dirdat/ct")
    how, begun = streams.How(restarts=0.003, rolls=0, ddl=0), 0
    for batch, part in enumerate(quarters(carrier.db.log)):
        if batch in (1, 3):
            trail.roll()
        streams.send(rng, trail, _transactions(part), how)
        if batch == 1:
            said = {"io_time": part[-1].at.replace(tzinfo=UTC), "tokens": [("L", "9999999"), ("6", "9.9.9999")]}
            trail.insert(PARCELS.name, BROKEN_PARCEL, **said)
            feed.num_rejected["carrier"] += 1
        for name, data in trail.files[begun:]:
            staged(feed, batch, "carrier", name).write_bytes(data)
        begun = len(trail.files) - (batch == 1)
    staged(feed, 0, "carrier", "carrier.def").write_text(goldengate_defgen.defgen([PARCELS]))


def _transactions(changes: list) -> Iterator[streams.Transaction]:
    for n, members in itertools.groupby(changes, lambda c: c.transaction):
        rows = [(c.at, {name: getattr(c, name) for name in ("table", "operation", "before", "after")}) for c in members]
        at = rows[0][0].replace(tzinfo=UTC)
        yield streams.Transaction(f"{n % 7}.{n % 31}.{1000 + n}", str(1_332_816 + n), at, [row for _, row in rows])
