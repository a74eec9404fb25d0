"""The demo's returns: a table of the shop that another Qlik task writes as a change table, with the files of its full
load and a sidecar for each. Pairs of rows come in two deliveries, one row is broken.
"""

from dataclasses import replace

from infra.local.feed_files import NUM_BATCHES, Feed, quarters, staged
from tests.business import LOAD_AT, Returns
from tests.encode import qlik_change_table as encode
from tests.encode.qlik_change_table import Column
from tests.encode.qlik_dfm import dfm

RETURNS = encode.Table(
    "SHOP",
    "RETURNS",
    (
        Column("RETURN_ID", "INT8", 19, key=1),
        Column("ORDER_ID", "INT8", 19),
        Column("STATE", "STRING", 10),
        Column("REASON", "WSTRING", 80),
        Column("REFUND", "NUMERIC", precision=11, scale=2),
        Column("UPDATED_AT", "DATETIME"),
    ),
)
OPTIONS = encode.Options(head="names")
NO_NUMBER = dict.fromkeys(column.name for column in RETURNS.columns) | {"RETURN_ID": 99_999, "ORDER_ID": "A-17"}


def write(feed: Feed, returns: Returns) -> None:
    load = [c.after for c in returns.db.log if not c.transaction]
    _put(feed, 0, "SHOP.RETURNS/LOAD00000001", [list(row.values()) for row in load], encode.LOAD, LOAD_AT)
    held = []
    for batch, part in enumerate(quarters(returns.db.log)):
        rows = held + [row for c in part for row in encode.rows(RETURNS, [_change(c)])]
        held = [rows.pop()] if rows[-1][1] == "B" and batch < NUM_BATCHES - 1 else []
        if batch == 1:
            rows += encode.rows(RETURNS, [_change(replace(part[-1], operation="INSERT", after=NO_NUMBER, counter=50))])
            feed.num_rejected["returns"] += 1
        at = part[-1].at
        name = f"SHOP.RETURNS__ct/{at:%Y%m%d-%H%M%S}{at.microsecond // 1000:03d}"
        _put(feed, batch, name, rows, encode.CHANGES, at)


def _put(feed: Feed, batch: int, name: str, rows: list[list], layout: encode.Layout, at) -> None:
    data = encode.delimited(RETURNS, rows, layout, OPTIONS)
    staged(feed, batch, "returns", f"{name}.csv").write_bytes(data)
    content, file = "changes" if layout.headers else "data", name.rpartition("/")[2] + ".csv"
    times = (at.isoformat(timespec="milliseconds"), "", None, None)
    sidecar = dfm(RETURNS, len(rows), layout, OPTIONS, file=file, content=content, task="returns_to_lake", times=times)
    staged(feed, batch, "returns", f"{name}.dfm").write_bytes(sidecar)


def _change(c) -> dict:
    number = c.transaction * 100 + c.counter
    return {
        "operation": c.operation,
        "before": c.before,
        "after": c.after,
        "change_seq": f"{c.at:%Y%m%d%H%M%S}{c.at.microsecond // 10000:02d}{number:019d}",
        "change_timestamp": c.at,
        "transaction_id": f"{c.transaction:032X}",
        "stream_position": f"00000000.{c.transaction:08x}.00000001",
    }
