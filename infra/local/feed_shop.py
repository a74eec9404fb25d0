"""The demo's shop: messages of a Qlik task. A stretch comes twice, one a batch late, two messages are broken."""

import random
from datetime import timedelta

from infra.local.feed_files import Feed, quarters, staged
from tests.business import LOAD_AT, Shop
from tests.encode import qlik

BARE = {"SHOP.ORDER_LINES", "SHOP.PAYMENTS"}  # topics without envelope


def write(feed: Feed, shop: Shop, contracts: dict, rng: random.Random) -> None:
    number, parts = 0, []
    load = [(c, _message(c, None, contracts)) for c in shop.db.log if not c.transaction]
    for part in quarters(shop.db.log):
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
        qlik.write_parquet(rows, staged(feed, batch, "shop", f"messages_{batch + 1:04d}.parquet"))


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
