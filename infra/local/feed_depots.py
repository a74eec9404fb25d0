"""The demo's depots: Linkexpress extracts of two, with a broken record in each; usage journals of a third."""

from datetime import timedelta

from infra.local.feed_files import NUM_BATCHES, Feed, quarters, staged
from tests.business import LOAD_AT, Depot, Warehouses
from tests.encode import linkexpress, linkexpress_journal

EXTRACTION_IDS = {1: "DEPOT.PRODUCTS", 2: "DEPOT.WAREHOUSES", 3: "DEPOT.STOCK"}
DEPOTS = {  # prefix of product codes, and how its extracts are encoded
    "depot_tokyo": ("TK", {"null_areas": True, "byte_order": "little", "charset": "cp932"}),
    "depot_osaka": ("OS", {"null_areas": False, "byte_order": "big", "charset": "ebcdic_kana"}),
}
FILES_PER_BATCH = 3  # difference files of each depot
CLOSED = ("depot_osaka", "DEPOT.WAREHOUSES")  # a last full extract finds no row in it


def write_extracts(feed: Feed, source: str, depot: Depot, contracts: dict) -> None:
    layouts = {id_: contracts[table] for id_, table in EXTRACTION_IDS.items()}
    how, ids, ordinal = DEPOTS[source][1], {t: i for i, t in EXTRACTION_IDS.items()}, 0
    for table in EXTRACTION_IDS.values():
        ordinal += 1
        rows = [("row", c.after) for c in depot.db.log if not c.transaction and c.table == table]
        name = f"{table.split('.')[1]}_{LOAD_AT:%Y%m%d%H%M%S}_{ordinal:06d}.lxg"
        staged(feed, 0, source, name).write_bytes(linkexpress.encode_file(rows, layouts={0: contracts[table]}, **how))
    for batch, part in enumerate(quarters(depot.db.log)):
        for n, changes in enumerate(_pieces(part)):
            ordinal += 1
            data = linkexpress.encode_file(_records(changes, ids), layouts=layouts, **how)
            if n == 0 and (batch, source) in ((1, "depot_tokyo"), (2, "depot_osaka")):
                data += _broken_record(source, layouts, how)
                feed.num_rejected[source] += 1
            name = f"{changes[-1].at:%Y%m%d%H%M%S}_{ordinal:06d}"
            is_late = (batch, n, source) == (1, 1, "depot_tokyo")  # comes a batch after its successors
            staged(feed, batch + is_late, source, f"{name}.lxg").write_bytes(data)
            if (batch, n) == (1, 0) and source == "depot_osaka":  # a file sent twice: same time and ordinal
                staged(feed, 2, source, f"{name}.resend.lxg").write_bytes(data)
                feed.num_repeats[source] += len(changes)
    if source == CLOSED[0]:
        name = f"{CLOSED[1].split('.')[1]}_{depot.db.at + timedelta(hours=1):%Y%m%d%H%M%S}_{ordinal + 1:06d}.lxg"
        staged(feed, NUM_BATCHES - 1, source, name).write_bytes(
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


def write_journals(feed: Feed, depot: Warehouses, contracts: dict) -> None:
    """A file of messages a batch, by the depot's clock; a checkpoint ends it."""
    columns = {"WAREHOUSES": contracts["DEPOT.WAREHOUSES"]}
    how = linkexpress_journal.How(has_checkpoint=True)
    for batch, part in enumerate(quarters(depot.db.log)):
        journals, end = [_journal(c) for c in part], part[-1].at + timedelta(hours=9)
        journals.append(linkexpress_journal.Checkpoint(f"BATCH{batch + 1}", f"{end:%Y%m%d%H%M%S}00"))
        path = staged(feed, batch, "depot_nagoya", f"{end:%Y%m%d%H%M%S}_{batch + 1:06d}.jnl")
        path.write_bytes(linkexpress_journal.encode_file(journals, columns, how))


def _journal(c) -> linkexpress_journal.Change:
    row = dict(c.before if c.operation == "DELETE" else c.after)
    state = 5 if c.is_last and c.counter == 1 else 1 if c.counter == 1 else 4 if c.is_last else 2
    at = f"{c.at + timedelta(hours=9):%Y%m%d%H%M%S}{c.at.microsecond // 10_000:02d}"
    row["OPENED"] = str(row["OPENED"])
    return linkexpress_journal.Change("WAREHOUSES", c.operation.lower(), row, c.transaction, state, at)
