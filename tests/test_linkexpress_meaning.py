"""What extracts of the Replication option mean, from bytes to rows (tests/reference.py): keys that change, rows that
cross the extraction condition, tails without a commit record, files that come again.
"""

from inlet.codecs.codec import change_rows
from inlet.codecs.linkexpress import group, table
from inlet.source import Source
from inlet.table import Table
from tests.encode.linkexpress import encode_file, encode_table_file
from tests.reference import current, fold
from tests.streams import Change

COLUMNS = [("ID", "INTEGER"), ("DEPOT", "VARCHAR(4)"), ("QTY", "SMALLINT")]
TYPES = {"INTEGER": "int", "VARCHAR(4)": "string", "SMALLINT": "smallint"}
STOCK = Table(
    table="SHOP.STOCK",
    name="stock",
    key=["ID"],
    columns=[
        {"name": name, "type": TYPES[type_], "source_type": type_, "nullable": name == "DEPOT"}
        for name, type_ in COLUMNS
    ],
)
COMMIT = ("commit",)


def row(id_: int, depot: str | None, qty: int | None) -> dict:
    return {"ID": id_, "DEPOT": depot, "QTY": qty}


def changes_of(codec, name: str, data: bytes, tables: dict, **options) -> list[Change]:
    """The changes of a file, an empty full extract and the end of a load among them."""
    source = Source(
        **{
            "name": "shop",
            "codec": f"linkexpress_{codec.__name__.split('.')[-1]}",
            "from": "landing",
            "options": {"source_tz": "UTC", "charset": "cp932", "byte_order": "big"} | options,
        },
        tables=tables,
    )
    contracts = {"SHOP.STOCK": STOCK}
    context = codec.open_file(name, data, True, source, contracts)
    decoded = codec.decode(data, context, source, contracts)
    assert not decoded.rejects
    rows = change_rows(codec, decoded, context, contracts)
    found = [
        Change(
            "shop",
            "SHOP.STOCK",
            one["change_seq"],
            one["operation"],
            one["before"],
            one["after"],
            one["transaction_id"],
            one["transaction_event_counter"],
            one["transaction_last_event"],
            one["load_id"],
        )
        for one in rows
    ]
    load, last = codec.load_of(context), max((one.seq for one in found), default="")
    found += [Change("shop", "SHOP.STOCK", last, "LOAD_END", load_id=load)] if load and found else []
    ops = {"empty_load": "EMPTY_LOAD"}
    return found + [Change("shop", "SHOP.STOCK", c.change_seq, ops[c.kind]) for c in decoded.controls]


def of_group(ordinal: int, *records: tuple) -> list[Change]:
    data = encode_file([(r[0], 1, r[1]) if r[1:] else r for r in records], True, "big", "cp932", {1: COLUMNS})
    return changes_of(group, f"20260102030405_{ordinal}.lxg", data, {"1": "SHOP.STOCK"}, null_areas="yes")


def of_table(ordinal: int, *records: tuple) -> list[Change]:
    data = encode_table_file(records, "open", True, "big", "cp932", COLUMNS)
    told = {"null_areas": "yes", "logtype": "normal", "difftype": "open"}
    return changes_of(table, f"STOCK_20260102030405_{ordinal}.dat", data, {"STOCK": "SHOP.STOCK"}, **told)


def state(changes: list[Change]) -> tuple[list[tuple], list[str]]:
    """The rows that are left, and what was odd on the way."""
    names = [name for name, _ in COLUMNS]
    versions, odd = fold(changes, ["ID"], names)
    rows = sorted(tuple(version.values[name] for name in names) for version in current(versions))
    return rows, [kind for _, kind in odd]


FIRST = ("insert", row(1, "N", 5)), ("insert", row(2, "S", 7)), COMMIT


def test_a_key_that_changes_is_a_delete_and_an_insert_of_one_transaction():
    moved = of_group(2, ("delete", row(1, "N", 5)), ("insert", row(3, "N", 5)), COMMIT)
    assert [(c.op, c.counter, c.last) for c in moved] == [("DELETE", 1, False), ("INSERT", 2, True)]
    assert len({c.transaction_id for c in moved}) == 1
    assert state(of_group(1, *FIRST) + moved) == ([(2, "S", 7), (3, "N", 5)], [])


def test_a_partition_key_that_changes_keeps_the_row():
    """DEPOT says which DSI a row is in: it goes from one and comes to the other, under its key."""
    moved = of_group(2, ("delete", row(1, "N", 5)), ("insert", row(1, "S", 5)), COMMIT)
    assert state(of_group(1, *FIRST) + moved) == ([(1, "S", 5), (2, "S", 7)], [])


def test_a_row_that_crosses_the_condition_is_a_delete_or_an_insert_alone():
    """Half of it is all there is where a definition covers one DSI, or rows that meet a condition."""
    left = of_group(2, ("delete", row(1, "S", 5)), COMMIT)
    assert state(of_group(1, *FIRST) + left) == ([(2, "S", 7)], []) and [c.last for c in left] == [True]
    back = of_group(3, ("insert", row(1, "N", 6)), COMMIT)
    assert state(of_group(1, *FIRST) + left + back) == ([(1, "N", 6), (2, "S", 7)], [])
    assert state(left) == ([], ["delete_without_row"])  # one that never met it: nothing goes, and it is counted


def test_a_delete_takes_the_row_of_its_key_whatever_its_other_columns_say():
    gone = of_group(2, ("delete", row(1, None, None)), COMMIT)  # QTY is never null, but in the image of a delete
    assert gone[0].before == row(1, None, None)
    assert state(of_group(1, *FIRST) + gone) == ([(2, "S", 7)], [])
    assert state(of_table(1, *FIRST[:2]) + of_table(2, ("delete", row(2, "E", 0)))) == ([(1, "N", 5)], [])


def test_a_tail_without_a_commit_record_is_a_transaction_that_is_not_over():
    """Its changes are there; the public views wait for its last event."""
    tail = of_group(1, *FIRST, ("update", row(1, "N", 9)), ("update", row(2, "S", 9)))
    assert [(c.counter, c.last) for c in tail] == [(1, False), (2, True), (1, False), (2, False)]
    assert tail[1].transaction_id != tail[2].transaction_id == tail[3].transaction_id


def test_an_extract_by_table_claims_no_transaction():
    assert {(c.transaction_id, c.counter, c.last) for c in of_table(1, *FIRST[:2])} == {(None, None, None)}


def test_the_same_content_under_a_new_name_leaves_the_same_rows_and_is_odd():
    """A job that was cancelled writes its file anew. Its places are others, so it is no repeat; its end is the same."""
    records = *FIRST, ("update", row(1, "N", 9)), ("delete", row(2, "S", 7)), COMMIT
    once, again = of_group(1, *records), of_group(2, *records)
    assert [c.after for c in once] == [c.after for c in again] and not {c.seq for c in once} & {c.seq for c in again}
    assert state(once + again) == (state(once)[0], ["insert_over_row"])


def test_an_empty_full_extract_empties_its_table_as_of_its_place():
    emptied, later = of_table(2, ("empty",)), of_table(3, ("insert", row(4, "N", 1)))
    assert [c.op for c in emptied] == ["EMPTY_LOAD"] and emptied[0].seq.startswith("2026010203040500000000002")
    assert state(of_table(1, *FIRST[:2]) + emptied) == ([], [])
    assert state(of_table(1, *FIRST[:2]) + emptied + later) == ([(4, "N", 1)], [])


def test_a_full_extract_replaces_what_it_does_not_hold():
    loaded = of_table(2, ("row", row(2, "S", 8)), ("row", row(5, "N", 1)))
    assert state(of_table(1, *FIRST[:2]) + loaded) == ([(2, "S", 8), (5, "N", 1)], [])
