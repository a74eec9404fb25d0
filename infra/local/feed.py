"""The demo's feeds: a business of tests/business.py, written as the files that Qlik, Linkexpress and GoldenGate would
leave behind.

    feed = write_feed("demo", seed=1)        # four batches wait in demo/staging
    feed.deliver(1)                          # the files of the first move to demo/landing/<source>/
    feed.expected["SHOP.ORDERS"]             # {(source, key...): row}, what gold must hold after all four

What a lakehouse must survive is in it: full loads, partly supplied rows, updates that change nothing, key changes, a
stretch sent twice, a stretch that comes a batch late, broken records in each kind of feed, a table emptied by a full
extract, a trail with a file that grows and a process that was restarted.

Run: python infra/local/feed.py FOLDER [--seed 1] [--scale 1] [--deliver]
"""

import argparse
import itertools
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests import goldengate_streams as streams  # noqa: E402
from tests.business import LOAD_AT, Carrier, Depot, Shop, Warehouses  # noqa: E402
from tests.encode import goldengate_columns, goldengate_defgen, linkexpress, linkexpress_journal, qlik  # noqa: E402
from tests.encode.goldengate_trail import Trail  # noqa: E402

NUM_BATCHES = 4
NUM_CHANGES = {  # at scale 1
    "shop": 20_500,
    "depot_tokyo": 10_300,
    "depot_osaka": 10_300,
    "depot_nagoya": 400,
    "carrier": 4_000,
}
BARE = {"SHOP.ORDER_LINES", "SHOP.PAYMENTS"}  # topics without envelope
EXTRACTION_IDS = {1: "DEPOT.PRODUCTS", 2: "DEPOT.WAREHOUSES", 3: "DEPOT.STOCK"}
DEPOTS = {  # prefix of product codes, and how its extracts are encoded
    "depot_tokyo": ("TK", {"null_areas": True, "byte_order": "little", "charset": "cp932"}),
    "depot_osaka": ("OS", {"null_areas": False, "byte_order": "big", "charset": "ebcdic_kana"}),
}
FILES_PER_BATCH = 3  # difference files of each depot
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
CLOSED = ("depot_osaka", "DEPOT.WAREHOUSES")  # a last full extract finds no row in it


@dataclass
class Feed:
    """What `write_feed` wrote. Numbers are what the ledger must show when all is delivered."""

    folder: Path
    batches: list[list[Path]]  # files in staging, relative to it
    expected: dict[str, dict[tuple, dict]]  # {table: {(source, key...): row}}
    num_changes: dict[str, int]  # per source, the full load included, repeats not
    num_repeats: dict[str, int]
    num_rejected: dict[str, int]
    underpaid: set[int]  # orders whose payments do not sum to their lines

    def deliver(self, batch: int, landing: Path | None = None) -> list[Path]:
        """Move the files of batch 1, 2, ... into landing (default: <folder>/landing). Out: their new places."""
        moved = []
        for path in self.batches[batch - 1]:
            to = (landing or self.folder / "landing") / path.relative_to(path.parts[0])
            to.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.folder / "staging" / path, to)
            moved.append(to)
        return moved


def simulate(seed: int, scale: float) -> dict:
    """The businesses by source, run to their end."""
    depots = {source: Depot(seed, prefix, how["null_areas"]) for source, (prefix, how) in DEPOTS.items()}
    done = {"shop": Shop(seed), **depots, "depot_nagoya": Warehouses(seed, "NG"), "carrier": Carrier(seed)}
    for source, business in done.items():
        business.run(int(NUM_CHANGES[source] * scale))
    return done


def write_feed(folder, seed: int = 1, scale: float = 1) -> Feed:
    """Write all files of all batches into <folder>/staging."""
    folder, contracts = Path(folder), _contracts()
    done, rows = simulate(seed, scale), {}
    for source, business in done.items():
        for table, found in business.db.tables.items():
            is_closed = (source, table) == CLOSED
            rows.setdefault(table, {}).update({} if is_closed else {(source, *key): row for key, row in found.items()})
    feed = Feed(
        folder,
        [[] for _ in range(NUM_BATCHES)],
        rows,
        {s: len(b.db.log) for s, b in done.items()},
        dict.fromkeys(done, 0),
        dict.fromkeys(done, 0),
        done["shop"].underpaid,
    )
    _write_shop(feed, done["shop"], contracts, random.Random(f"feed {seed}"))
    for source in DEPOTS:
        _write_depot(feed, source, done[source], contracts)
    _write_journals(feed, done["depot_nagoya"], contracts)
    _write_carrier(feed, done["carrier"], random.Random(f"trail {seed}"))
    return feed


def _contracts() -> dict[str, list[tuple[str, str]]]:
    """Columns of each table with their types at the source, from the project's contracts."""
    given = [
        yaml.safe_load(p.read_text(encoding="utf-8")) for p in sorted((ROOT / "pipelines" / "tables").glob("*.yml"))
    ]
    return {t["table"]: [(c["name"], c.get("source_type")) for c in t["columns"]] for t in given}


def _staged(feed: Feed, batch: int, source: str, name: str) -> Path:
    path = Path(f"{batch + 1:02d}") / source / name
    feed.batches[batch].append(path)
    (feed.folder / "staging" / path).parent.mkdir(parents=True, exist_ok=True)
    return feed.folder / "staging" / path


def _quarters(log: list) -> list[list]:
    """The changes after the full load, cut between transactions into as many parts as there are batches."""
    changes = [c for c in log if c.transaction]
    last = changes[-1].transaction
    parts = [[] for _ in range(NUM_BATCHES)]
    for c in changes:
        parts[(c.transaction - 1) * NUM_BATCHES // last].append(c)
    return parts


# -- Qlik: messages of the task `shop`
# ---------------------------------------------------------------------------------------


def _write_shop(feed: Feed, shop: Shop, contracts: dict, rng: random.Random) -> None:
    number, parts = 0, []
    load = [(c, _message(c, None, contracts)) for c in shop.db.log if not c.transaction]
    for part in _quarters(shop.db.log):
        parts.append([])
        for c in part:
            number += rng.choice((1, 1, 1, 36, 44))  # gaps are normal
            parts[-1].append(
                (c, _message(c, f"{c.at:%Y%m%d%H%M%S}{c.at.microsecond // 10000:02d}{number:019d}", contracts))
            )
    deliveries, num_repeats = _disturbed(load, parts)
    broken = _broken_messages(parts[1][0][0], contracts)
    deliveries[1].insert(100, broken[0])
    deliveries[2].insert(100, broken[1])
    feed.num_repeats["shop"], feed.num_rejected["shop"] = num_repeats, len(broken)
    offsets, clock = {}, LOAD_AT
    for batch, messages in enumerate(deliveries):
        rows = []
        for c, value in messages:
            clock = max(clock + timedelta(milliseconds=1), c.at + timedelta(seconds=1))
            image = c.after or c.before
            topic, partition = c.table.lower(), next(iter(image.values())) % 2
            offset = offsets[topic, partition] = offsets.get((topic, partition), -1) + 1
            rows += qlik.rows([value], topic, partition, offset, clock.replace(tzinfo=qlik.START.tzinfo))
        qlik.write_parquet(rows, _staged(feed, batch, "shop", f"messages_{batch + 1:04d}.parquet"))


def _message(c, change_seq: str | None, contracts: dict) -> bytes:
    given = {"operation": c.operation, "before": c.before, "after": c.after}
    if c.transaction:
        given |= {
            "change_seq": change_seq,
            "change_timestamp": c.at.isoformat(timespec="milliseconds"),
            "stream_position": f"00000000.{c.transaction:08x}.00000001.0000.02.0000:{c.counter}.16",
            "transaction_id": f"{c.transaction % 5000 + 0x60000:032x}",  # ids come back
            "transaction_event_counter": c.counter,
            "transaction_last_event": c.is_last,
        }
    columns = [name for name, _ in contracts[c.table]]
    return qlik.value(given, columns, shape="bare" if c.table in BARE else "envelope")


def _disturbed(load: list, parts: list[list]) -> tuple[list[list], int]:
    """What arrives in each batch: a stretch of the second comes with the third, stretches of the second and fourth come
    twice.
    """
    second, num = parts[1], len(parts[1])
    late, again = slice(num * 60 // 100, num * 66 // 100), slice(num * 20 // 100, num * 28 // 100)
    resent = parts[3][num // 4 : num // 3]
    return [
        load + parts[0],
        second[: late.start] + second[late.stop :],
        second[again] + parts[2] + second[late],
        parts[3][: num // 2] + resent + parts[3][num // 2 :],
    ], len(second[again]) + len(resent)


def _broken_messages(c, contracts: dict) -> list[tuple]:
    """A message that ends too early, and one whose column mask names a column the table does not have."""
    cut = _message(c, "2026010600000000" + "9" * 19, contracts)[:-20]
    wide = _message(c, "2026010600000000" + "8" * 19, contracts)
    mask = wide.split(b'"columnMask":"')[1].split(b'"')[0]
    return [(c, cut), (c, wide.replace(b'"columnMask":"' + mask, b'"columnMask":"01' + b"FF" * (len(mask) // 2)))]


# -- Linkexpress: extracts of a depot
# ----------------------------------------------------------------------------------------


def _write_depot(feed: Feed, source: str, depot: Depot, contracts: dict) -> None:
    layouts = {id_: contracts[table] for id_, table in EXTRACTION_IDS.items()}
    how, ids, ordinal = DEPOTS[source][1], {t: i for i, t in EXTRACTION_IDS.items()}, 0
    for table in EXTRACTION_IDS.values():
        ordinal += 1
        rows = [("row", c.after) for c in depot.db.log if not c.transaction and c.table == table]
        name = f"{table.split('.')[1]}_{LOAD_AT:%Y%m%d%H%M%S}_{ordinal:06d}.lxg"
        _staged(feed, 0, source, name).write_bytes(linkexpress.encode_file(rows, layouts={0: contracts[table]}, **how))
    for batch, part in enumerate(_quarters(depot.db.log)):
        for n, changes in enumerate(_pieces(part)):
            ordinal += 1
            data = linkexpress.encode_file(_records(changes, ids), layouts=layouts, **how)
            if n == 0 and (batch, source) in ((1, "depot_tokyo"), (2, "depot_osaka")):
                data += _broken_record(source, layouts, how)
                feed.num_rejected[source] += 1
            name = f"{changes[-1].at:%Y%m%d%H%M%S}_{ordinal:06d}"
            is_late = (batch, n, source) == (1, 1, "depot_tokyo")  # comes a batch after its successors
            _staged(feed, batch + is_late, source, f"{name}.lxg").write_bytes(data)
            if (batch, n) == (1, 0) and source == "depot_osaka":  # a file sent twice: same time and ordinal
                _staged(feed, 2, source, f"{name}.resend.lxg").write_bytes(data)
                feed.num_repeats[source] += len(changes)
    if source == CLOSED[0]:
        name = f"{CLOSED[1].split('.')[1]}_{depot.db.at + timedelta(hours=1):%Y%m%d%H%M%S}_{ordinal + 1:06d}.lxg"
        _staged(feed, NUM_BATCHES - 1, source, name).write_bytes(
            linkexpress.encode_file([("empty",)], layouts=layouts, **how)
        )


def _pieces(changes: list) -> list[list]:
    """Whole transactions in as many files as a batch has."""
    first, num = changes[0].transaction, changes[-1].transaction - changes[0].transaction + 1
    pieces = [[] for _ in range(FILES_PER_BATCH)]
    for c in changes:
        pieces[(c.transaction - first) * FILES_PER_BATCH // num].append(c)
    return [piece for piece in pieces if piece]


def _records(changes: list, ids: dict[str, int]) -> list[tuple]:
    records = []
    for c in changes:
        records.append((c.operation.lower(), ids[c.table], c.before if c.operation == "DELETE" else c.after))
        if c.is_last:
            records.append(("commit",))
    return records


def _broken_record(source: str, layouts: dict, how: dict) -> bytes:
    """A transaction of one record that cannot be read: a packed digit that is none in Tokyo, an unknown operation in
    Osaka.
    """
    row = {
        "PRODUCT_CODE": "ZZ999999",
        "NAME": "京都緑茶大袋",
        "KANA": "ﾘﾖｸﾁﾔ",
        "PRICE": "1234567.89",
        "WEIGHT": "1.500",
        "CATEGORY": 1,
        "LAUNCHED": LOAD_AT.date(),
        "REVISED_AT": LOAD_AT,
    }
    record = linkexpress.encode_file([("insert", 1, row)], layouts=layouts, **how)
    if source == "depot_tokyo":
        record = record.replace(bytes.fromhex("123456789C"), bytes.fromhex("12F456789C"))
    else:
        record = record[:8] + bytes.fromhex("0009") + record[10:]
    return record + linkexpress.encode_file([("commit",)], layouts=layouts, **how)


# -- Linkexpress: usage journals of a depot
# ----------------------------------------------------------------------------------------


def _write_journals(feed: Feed, depot: Warehouses, contracts: dict) -> None:
    """A file of messages a batch, by the depot's clock; a checkpoint ends it."""
    columns = {"WAREHOUSES": contracts["DEPOT.WAREHOUSES"]}
    how = linkexpress_journal.How(has_checkpoint=True)
    for batch, part in enumerate(_quarters(depot.db.log)):
        journals, end = [_journal(c) for c in part], part[-1].at + timedelta(hours=9)
        journals.append(linkexpress_journal.Checkpoint(f"BATCH{batch + 1}", f"{end:%Y%m%d%H%M%S}00"))
        path = _staged(feed, batch, "depot_nagoya", f"{end:%Y%m%d%H%M%S}_{batch + 1:06d}.jnl")
        path.write_bytes(linkexpress_journal.encode_file(journals, columns, how))


def _journal(c) -> linkexpress_journal.Change:
    row = dict(c.before if c.operation == "DELETE" else c.after)
    state = 5 if c.is_last and c.counter == 1 else 1 if c.counter == 1 else 4 if c.is_last else 2
    at = f"{c.at + timedelta(hours=9):%Y%m%d%H%M%S}{c.at.microsecond // 10_000:02d}"
    row["OPENED"] = str(row["OPENED"])
    return linkexpress_journal.Change("WAREHOUSES", c.operation.lower(), row, c.transaction, state, at)


# -- GoldenGate: the trail of a carrier
# ----------------------------------------------------------------------------------------


def _write_carrier(feed: Feed, carrier: Carrier, rng: random.Random) -> None:
    """Three files, of which the second one grows from a batch to the next. A transaction of it cannot be read."""
    trail = Trail([PARCELS], byte_order="little", name_form="index", definitions="start", prefix="./dirdat/ct")
    how, begun = streams.How(restarts=0.003, rolls=0, ddl=0), 0
    for batch, part in enumerate(_quarters(carrier.db.log)):
        if batch in (1, 3):
            trail.roll()
        streams.send(rng, trail, _transactions(part), how)
        if batch == 1:
            said = {"io_time": part[-1].at.replace(tzinfo=UTC), "tokens": [("L", "9999999"), ("6", "9.9.9999")]}
            trail.insert(PARCELS.name, BROKEN_PARCEL, **said)
            feed.num_rejected["carrier"] += 1
        for name, data in trail.files[begun:]:
            _staged(feed, batch, "carrier", name).write_bytes(data)
        begun = len(trail.files) - (batch == 1)
    _staged(feed, 0, "carrier", "carrier.def").write_text(goldengate_defgen.defgen([PARCELS]))


def _transactions(changes: list) -> Iterator[streams.Transaction]:
    for n, members in itertools.groupby(changes, lambda c: c.transaction):
        rows = [(c.at, {name: getattr(c, name) for name in ("table", "operation", "before", "after")}) for c in members]
        at = rows[0][0].replace(tzinfo=UTC)
        yield streams.Transaction(f"{n % 7}.{n % 31}.{1000 + n}", str(1_332_816 + n), at, [row for _, row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--deliver", action="store_true", help="move every batch into landing at once")
    given = parser.parse_args()
    feed = write_feed(given.folder, given.seed, given.scale)
    for batch in range(1, NUM_BATCHES + 1) if given.deliver else ():
        feed.deliver(batch)
    print(
        f"{given.folder}: {sum(feed.num_changes.values())} changes in {sum(map(len, feed.batches))} files, "
        f"{NUM_BATCHES} batches"
    )


if __name__ == "__main__":
    main()
