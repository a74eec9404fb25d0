"""Change streams for tests: hand-written or random, with everything a real feed does to us.

A stream is a list of `Change` in source order; `deliver` cuts it into batches the way transport does: late, repeated,
split anywhere. Few keys and many key changes, so that conflicts are common rather than rare.
"""

import datetime as dt
import functools
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

REST = {"NAME": "string", "PRICE": "decimal(9,2)", "MADE": "date", "PHOTO": "binary"}


class Keys(NamedTuple):
    """A key: its columns with their types, and the values that a stream draws from, which differ as little as they
    can.
    """

    types: dict[str, str]
    values: list[tuple]

    @property
    def columns(self) -> list[str]:
        """Those of a table with this key."""
        return [*self.types, *REST]


NOON = dt.datetime(2026, 1, 2, 12)
TEXT = Keys(
    {"REGION": "string", "ITEM": "bigint"}, [(region, item) for region in ("north", "so'th") for item in (1, 2)]
)
TYPED = Keys(
    {"NUMBER": "decimal(20,4)", "TAG": "binary", "MADE_AT": "timestamp", "IS_OPEN": "boolean", "RATE": "double"},
    [
        (Decimal("9999999999999999.9999"), b"\xab\xcd", NOON, True, 0.3),
        (Decimal("9999999999999999.9998"), b"\xab\xcd", NOON, True, 0.3),
        (Decimal("9999999999999999.9999"), b"\xab\xcd\x00", NOON, True, 0.3),
        (Decimal("9999999999999999.9999"), b"\xab\xcd", NOON.replace(microsecond=1), True, 0.3),
        (Decimal("9999999999999999.9999"), b"\xab\xcd", NOON, False, 0.3),
        (Decimal("9999999999999999.9999"), b"\xab\xcd", NOON, True, 0.1 + 0.2),
    ],
)
EXACT = Keys(  # of these DataFusion makes keys, too: a float may be equal to one with other bytes
    {name: type_ for name, type_ in TYPED.types.items() if type_ != "double"} | {"DAY": "date", "AT": "timestamp_ntz"},
    [(*values[:-1], NOON.date(), NOON) for values in TYPED.values[:-1]]
    + [(*TYPED.values[0][:-1], NOON.date() + dt.timedelta(1), NOON)]
    + [(*TYPED.values[0][:-1], NOON.date(), NOON.replace(microsecond=1))],
)
KEY, COLUMNS = list(TEXT.types), TEXT.columns


@dataclass(frozen=True)
class Change:
    """One row change, an empty full load, or the end of a full load. An absent member of an image was not supplied,
    None is SQL NULL.
    """

    source: str
    table: str
    seq: str
    op: str  # REFRESH INSERT UPDATE UPSERT DELETE TRUNCATE EMPTY_LOAD LOAD_END
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    transaction_id: str | None = None
    counter: int | None = None
    last: bool | None = None
    load_id: str | None = None
    timestamp: dt.datetime | None = None
    states: dict[str, str] = field(default_factory=dict)
    mask: tuple[str, ...] | None = None  # columns that the source says have changed
    version: int = 1

    def __str__(self) -> str:
        images = " ".join(
            f"{name}={_short(image)}" for name, image in (("before", self.before), ("after", self.after)) if image
        )
        return f"{int(self.seq[16:]):>4} {self.op:<10} {self.load_id or '':<5} {images} {self.states or ''}".rstrip()


def _short(image: dict) -> str:
    return "{" + ", ".join(f"{n}: {v}" for n, v in image.items()) + "}"


def seq(place: int) -> str:
    """A change_seq: one hundredth of a second per ten places."""
    return f"2026010203{place // 60000:02d}{place // 1000 % 60:02d}{place // 10 % 100:02d}" + f"{place:019d}"


def stream(
    rng: random.Random,
    source: str = "shop",
    table: str = "SHOP.ITEMS",
    length: int = 25,
    *,
    partial: float = 0.4,
    key_changes: float = 0.15,
    upserts: float = 0.3,
    wipes: float = 0.06,
    loads: int = 2,
    states: float = 0.1,
    keys: Keys = TEXT,
) -> list[Change]:
    """A random stream of one source. Probabilities: of a partial image, a key change, an update
    that is an UPSERT, a wipe, a column state."""
    changes: list[Change] = []
    place, transaction, left, put_at = 0, 0, 0, None
    image = functools.partial(_image, rng, keys.types)
    open_loads = [f"L'{n}" for n in range(rng.randint(0, loads))]
    while len(changes) < length:
        on_wipe = changes and changes[-1].op == "EMPTY_LOAD" and rng.random() < 0.5  # an empty load may share its place
        place += 0 if on_wipe else rng.randint(1, 3)
        if left == 0:
            transaction, left, counter, put_at = transaction + 1, rng.randint(1, 4), 0, None
        left, counter = left - 1, counter + 1
        said = {
            "source": source,
            "table": table,
            "seq": seq(place),
            "transaction_id": f"T'{transaction % 5}",
            "counter": counter,
            "last": left == 0,
            "timestamp": dt.datetime(2026, 1, 2, 3) + dt.timedelta(seconds=place),
        }
        key = rng.choice(keys.values)
        dice = rng.uniform(wipes, 0.5) if on_wipe else rng.random()
        if put_at and not on_wipe and rng.random() < 0.5:  # keys are swapped and renumbered within a transaction
            key, dice = put_at, rng.choice([0.6, 1.0]) if key_changes else 0.6
        if dice < wipes:
            changes.append(Change(op=rng.choice(["TRUNCATE", "EMPTY_LOAD"]), **said))
        elif dice < 0.3 and open_loads:
            load = rng.choice(open_loads)
            changes.append(Change(op="REFRESH", after=image(key), load_id=load, **said))
            if rng.random() < 0.2:  # it ends, or it breaks off
                open_loads.remove(load)
                if rng.random() < 0.8:
                    place += 1
                    changes.append(Change(source, table, seq(place), "LOAD_END", load_id=load))
        elif dice < 0.5:
            changes.append(Change(op="INSERT", after=image(key, partial / 4), states=_states(rng, states), **said))
            put_at = key
        elif dice < 0.65:
            changes.append(Change(op="DELETE", before=image(key, partial), **said))
        else:
            new_key = (
                rng.choice(keys.values) if rng.random() < key_changes * 3 or key == put_at and key_changes else key
            )
            put_at = new_key if new_key != key else None
            before = image(key, partial) if new_key != key or rng.random() < 0.5 else None
            changes.append(
                Change(
                    op="UPSERT" if rng.random() < upserts else "UPDATE",
                    before=before,
                    after=image(new_key, partial),
                    states=_states(rng, states),
                    mask=tuple(c for c in keys.columns if rng.random() < 0.5) if rng.random() < 0.3 else None,
                    **said,
                )
            )
    return changes


def _image(rng, names, key, partial: float = 0.0) -> dict:
    """An image with its key; with that probability, any of the other columns may be absent."""
    image = dict(zip(names, key))
    values = {
        "NAME": rng.choice([None, "", "a", "ä\u0000b", "ba"]),
        "PRICE": rng.choice([None, Decimal("0.00"), Decimal("-9999999.99"), Decimal("1.10")]),
        "MADE": rng.choice([None, dt.date(1, 1, 1), dt.date(2026, 2, 28)]),
        "PHOTO": rng.choice([None, b"", b"\x00\xff"]),
    }
    is_partial = rng.random() < partial
    return image | {n: v for n, v in values.items() if not is_partial or rng.random() < 0.4}


def _states(rng, probability) -> dict:
    states = ["missing", "fetched", "lob_incomplete"]
    return {rng.choice(["NAME", "PRICE"]): rng.choice(states)} if rng.random() < probability else {}


def deliver(
    rng: random.Random, changes: list[Change], num_batches: int, late: float = 0.2, repeated: float = 0.1
) -> list[list[Change]]:
    """Cut a stream into batches: mostly in order, some changes later than their place, some twice, shuffled within a
    batch. What follows silver asks for none twice: silver takes repeats away (tests/test_silver.py,
    tests/test_pipeline.py)."""
    batches: list[list[Change]] = [[] for _ in range(num_batches)]
    cuts = sorted(rng.randint(0, len(changes)) for _ in range(num_batches - 1))
    for place, change in enumerate(changes):
        on_time = sum(cut <= place for cut in cuts)
        for _ in range(2 if rng.random() < repeated else 1):
            batches[rng.randint(on_time, num_batches - 1) if rng.random() < late else on_time].append(change)
    for batch in batches:
        rng.shuffle(batch)
    return batches
