"""Random transactions as GoldenGate trails, with what a decoder has to make of them. Knows nothing of inlet.

    sent = random_trail(random.Random(7))
    sent.trail.files     # name and bytes of each
    sent.changes         # dicts: what was written, where, and in which transaction

A change is {"table", "operation", "before", "after"}; `send` writes transactions of any such changes, so that a test
can bring its own, as those of `tests.streams` (`transactions_of`). Of a transaction that was given up only what is
written again is a change. A transaction may go on in the next file, and be given up there.
"""

import datetime as dt
import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple

from tests.encode import goldengate_columns as columns
from tests.encode.goldengate_columns import Column, Table
from tests.encode.goldengate_tokens import FIRST, LAST, MIDDLE, ONLY
from tests.encode.goldengate_trail import Record, Trail

START = dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC)
DDL_ITEMS = [("B3", "SIM"), ("B4", "OTHER"), ("B5", "TABLE"), ("B6", "CREATE")]


class Transaction(NamedTuple):
    """Changes in order, which are committed at a time under an id; `csn` is a number as Oracle's."""

    id: str
    csn: str
    at: dt.datetime
    changes: list[dict[str, Any]]


@dataclass
class Sent:
    """What was written. Each record but those that define tables is a place of a change, a control, or abandoned.

    `changes`: table, operation, before, after; transaction_id, csn, counter, last; io_time; seqno and rba of the first
    of its `places`, which are (seqno, rba, length), two for an update that came as two records.
    """

    trail: Trail
    changes: list[dict[str, Any]] = field(default_factory=list)
    controls: list[Record] = field(default_factory=list)
    abandoned: list[Record] = field(default_factory=list)


class How(NamedTuple):
    """How a trail is written. Probabilities: that a transaction is given up and written again, that a file ends before
    a change, that there is DDL between transactions. `len_prefix` is that of unified updates; with 0 there are
    none. CSN and transaction id stand at the first change of a transaction, or at `each_has_ids` (7); records say their
    place in the source's log, or 0.
    """

    len_prefix: int = 2
    restarts: float = 0.15
    rolls: float = 0.05
    ddl: float = 0.1
    each_has_ids: bool = False
    has_positions: bool = False


def random_trail(rng: random.Random, num_transactions: int = 20, how: How | None = None, **trail) -> Sent:
    """Random transactions of random tables. In: what `Trail` is to be, if not random."""
    layout = trail.get("layout", "compressed")
    tables = [random_table(rng, f"SIM.T{n}") for n in range(rng.randint(1, 3))]
    if layout == "full":
        tables = [table._replace(is_even=rng.random() < 0.5) for table in tables]
    how = how or How(
        len_prefix=rng.choice([0, 2, 4]), each_has_ids=rng.random() < 0.3, has_positions=rng.random() < 0.5
    )
    settings = {
        "byte_order": rng.choice(["big", "little"]),
        "name_form": rng.choice(["name", "index"]),
        "definitions": rng.choice(["first use", "start"]),
    }
    transactions = random_transactions(rng, tables, num_transactions, is_whole=layout == "full")
    return send(rng, Trail(tables, **settings | trail), transactions, how)


NUMBERS = {
    "small": lambda name, **said: columns.integer(name, 130, **said),
    "int": lambda name, **said: columns.integer(name, 132, **said),
    "unsigned": lambda name, **said: columns.integer(name, 133, **said),
    "bigint": lambda name, **said: columns.integer(name, 134, **said),
    "unsigned_bigint": lambda name, **said: columns.integer(name, 135, **said),
    "money": lambda name, **said: columns.number(name, 2, **said),
    "number": columns.decimal_text,
    "fixed_prec": lambda name, **said: columns.decimal_text(name, 2, columns.FIXED_PREC, **said),
}
TEXTS = {
    "varchar": lambda name, **said: columns.varchar(name, 12, **said),
    "char": lambda name, **said: columns.char(name, 4, **said),
    "fixed": lambda name, **said: columns.fixed(name, 4, **said),
    "date": lambda name, **said: columns.moment(name, 10, **said),
    "second": lambda name, **said: columns.moment(name, 19, **said),
    "timestamp": lambda name, **said: columns.moment(name, 26, **said),
    "long_timestamp": lambda name, **said: columns.moment(name, 29, **said),
}
KINDS = NUMBERS | TEXTS


def random_table(rng: random.Random, name: str) -> Table:
    """One or two key columns, anywhere among up to six others."""
    is_key = [True] * rng.randint(1, 2) + [False] * rng.randint(1, 6)
    rng.shuffle(is_key)
    return Table(
        name, tuple(KINDS[rng.choice(list(KINDS))](f"C{n}", is_key=k, is_nullable=not k) for n, k in enumerate(is_key))
    )


def values_of(column: Column) -> list[Any]:
    """Few values, the extremes of the type among them."""
    if column.data_type in columns.INTEGERS:
        size, is_signed = columns.INTEGERS[column.data_type]
        bits = 8 * size - is_signed
        whole = [0, 1, 2**bits - 1, -(2**bits) if is_signed else 2]
        return [Decimal(n).scaleb(-column.scale) for n in whole] if column.scale else whole
    if column.data_type == columns.DATETIME:
        at = dt.datetime(2026, 2, 28, 23, 59, 58, 120000 if column.length > 19 else 0)
        moments = [at, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)]
        return [moment.date() for moment in moments] if column.length == 10 else moments
    if column.sub_type in (columns.FLOAT, columns.FIXED_PREC):
        return [Decimal(n).scaleb(-column.scale) for n in (0, 1, -150, 10**30)]
    if column.data_type == columns.ASCII_F or column.sub_type == columns.CHAR_TYPE:
        return [text.ljust(4) for text in ("", "a", "so'x", "abcd")]
    return ["", " a ", "ä\0b", "山,\n|"]


def random_image(rng: random.Random, table: Table, kept: float) -> dict[str, Any]:
    """The key, and each other column with that probability."""
    return {
        column.name: rng.choice(values_of(column) + ([] if column.is_key else [None]))
        for column in table.columns
        if column.is_key or rng.random() < kept
    }


def random_change(rng: random.Random, tables: list[Table], is_whole: bool = False) -> dict[str, Any]:
    """Deletes have a key only, or all columns; so have images of before, which an update may lack (10). In: is_whole,
    that each image has all columns.
    """
    table = rng.choice(tables)
    kind = rng.choices(["insert", "update", "upsert", "delete", "key", "truncate"], [5, 5, 2, 3, 2, 0.5])[0]
    change = {"table": table.name, "operation": "UPDATE", "before": None, "after": None}
    if kind == "truncate":
        return change | {"operation": "TRUNCATE"}
    if kind == "insert":
        return change | {"operation": "INSERT", "after": random_image(rng, table, 1)}
    before = random_image(rng, table, 1 if is_whole else rng.choice([0, 1]))
    if kind == "delete":
        return change | {"operation": "DELETE", "before": before}
    after = random_image(rng, table, 1 if is_whole else rng.choice([0.4, 1]))
    if kind == "upsert" and not is_whole:
        return change | {"operation": "UPSERT", "after": after}
    key = {} if kind == "key" else {name: after[name] for name in table.key}
    has_before = rng.random() < 0.5 or is_moved(table, before | key, after)
    return change | {"before": before | key if has_before else None, "after": after}


def random_transactions(
    rng: random.Random, tables: list[Table], num_transactions: int, is_whole: bool = False
) -> Iterable[Transaction]:
    """Times mostly rise, may be equal, and go back at times (2.3)."""
    at = START
    for number in range(num_transactions):
        at += dt.timedelta(microseconds=rng.choice([0, 1, 999_999, 60_000_000, -1_000_000]))
        changes = [random_change(rng, tables, is_whole) for _ in range(rng.randint(1, 5))]
        yield Transaction(f"{number % 3}.{number % 7}.{1000 + number}", str(1_332_816 + number), at, changes)


def transactions_of(changes: Iterable) -> Iterable[Transaction]:
    """Of changes of `tests.streams`, without loads, which no trail has. A transaction ends with its last event, or with
    the stream; its id has its number, for two that follow each other may not share one.
    """
    places = 0

    def number(change) -> int:
        nonlocal places
        mine, places = places, places + bool(change.last)
        return mine

    rows = [change for change in changes if change.op in ("INSERT", "UPDATE", "UPSERT", "DELETE", "TRUNCATE")]
    for place, run in groupby(rows, number):
        members = list(run)
        said = [{"table": c.table, "operation": c.op, "before": c.before, "after": c.after} for c in members]
        at = members[-1].timestamp.replace(tzinfo=dt.UTC)
        yield Transaction(f"{members[0].transaction_id}.{place}", str(1_332_816 + place), at, said)


def send(rng: random.Random, trail: Trail, transactions: Iterable[Transaction], how: How) -> Sent:
    """Write transactions, one behind the other (10)."""
    sent = Sent(trail)
    for transaction in transactions:
        if rng.random() < how.ddl:
            sent.controls.append(trail.ddl(DDL_ITEMS, "CREATE TABLE X", io_time=transaction.at))
        while rng.random() < how.restarts:
            _give_up(rng, sent, transaction, how)
        sent.changes += [change for change, _ in _written(rng, trail, transaction, how)]
        if rng.random() < how.restarts / 3:
            sent.controls.append(trail.restart(is_clean=True, io_time=transaction.at))
    return sent


def _give_up(rng: random.Random, sent: Sent, transaction: Transaction, how: How) -> None:
    """The first changes of a transaction of several; maybe a RestartAbend; then it comes again as a whole (10)."""
    if len(transaction.changes) < 2:
        return
    begun = rng.randint(1, len(transaction.changes) - 1)
    for _, records in _written(rng, sent.trail, transaction, how, begun):
        sent.abandoned += records
    if rng.random() < 0.7:
        sent.controls.append(sent.trail.restart(is_clean=False, io_time=transaction.at))
    if rng.random() < 0.5:
        sent.trail.roll()


def _written(rng, trail: Trail, transaction: Transaction, how: How, begun: int | None = None) -> list[tuple]:
    """Each change as it was written, with its records; of the first ones, where only those were written."""
    written, num_changes = [], len(transaction.changes)
    for counter, change in enumerate(transaction.changes[:begun], 1):
        if rng.random() < how.rolls:
            trail.roll()
        is_first, is_last = counter == 1, counter == num_changes
        tokens = [("R", f"AAAShSAAEAAAAD9AA{counter % 10}")]
        if is_first or how.each_has_ids:
            tokens += [("L", transaction.csn), ("6", transaction.id)]
        said = {
            "trans_ind": ONLY if num_changes == 1 else FIRST if is_first else LAST if is_last else MIDDLE,
            "io_time": transaction.at,
            "tokens": tokens if change["operation"] != "TRUNCATE" else tokens[1:],
        }
        if how.has_positions:
            said["audit_pos"] = 1000 * int(transaction.csn) + counter
        form = random.Random(f"{transaction.id} {counter}")  # the same where it is written again
        records = write_change(form, trail, change, how.len_prefix, **said)
        sent = {
            "table": change["table"],
            "operation": change["operation"],
            "before": records[0].before,
            "after": records[-1].after,
            "transaction_id": transaction.id,
            "csn": transaction.csn,
            "counter": counter,
            "last": is_last,
            "io_time": transaction.at,
            "seqno": records[0].seqno,
            "rba": records[0].rba,
            "places": [(record.seqno, record.rba, record.length) for record in records],
        }
        written.append((sent, records))
    return written


def write_change(rng: random.Random, trail: Trail, change: dict, len_prefix: int, **said) -> list[Record]:
    """The records of a change. A key update as 115 has only the key of its image of before (4.5)."""
    table, before, after = trail.tables[change["table"]], change["before"], change["after"]
    if change["operation"] == "TRUNCATE":
        return [trail.truncate(table.name, **said)]
    key = rng.randbytes(rng.choice([0, 0, 4, 8])) if trail.layout == "full" else b""  # a system key (2.4)
    if change["operation"] == "INSERT":
        return [trail.insert(table.name, after, key, **said)]
    if change["operation"] == "UPSERT":
        return [trail.upsert(table.name, after, **said)]
    if change["operation"] == "DELETE":
        return [trail.delete(table.name, before, key, **said)]
    if before is None:
        return [trail.update(table.name, after, key, **said)]
    if len_prefix and rng.random() < 0.5 and not is_ambiguous(table, before, after, trail.order):
        return [trail.unified_update(table.name, before, after, len_prefix, **said)]
    if is_moved(table, before, after):
        return [trail.key_update(table.name, {name: before[name] for name in table.key}, after, **said)]
    return trail.update_in_two(table.name, before, after, key, **said)


def is_moved(table: Table, before: dict[str, Any], after: dict[str, Any]) -> bool:
    return any(before[name] != after[name] for name in table.key)


def is_ambiguous(table: Table, before: dict[str, Any], after: dict[str, Any], order: str) -> bool:
    """Can a unified update be read with a prefix of two bytes and of four? A decoder must not choose (4.6)."""
    return any(
        _reads(columns.key_update(table, before, after, order, written), order, read)
        for written, read in ((2, 4), (4, 2))
    )


def _reads(area: bytes, order: str, len_prefix: int) -> bool:
    length = struct.unpack_from(order + {2: "H", 4: "I"}[len_prefix], area)[0]
    images = area[len_prefix : len_prefix + length], area[len_prefix + length :]
    return len_prefix + length <= len(area) and all(_is_column_list(image, order) for image in images)


def _is_column_list(area: bytes, order: str) -> bool:
    while len(area) >= 6:
        length = struct.unpack_from(order + "H", area, 2)[0]
        if not 2 <= length <= len(area) - 4:
            return False
        area = area[4 + length :]
    return not area
