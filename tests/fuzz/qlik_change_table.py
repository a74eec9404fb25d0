"""Change tables: rows that are damaged, spliced and quoted wrongly. What the compiled walk is certain of is what the
plain path reads, as text and as Parquet, however long blocks are."""

from contextlib import suppress
from unittest import mock

import pyarrow as pa

from inlet.codecs.codec import change_rows
from inlet.codecs.qlik.change_table import arrow, files
from inlet.errors import Reject
from inlet.silver import decoded
from tests import test_codecs
from tests.encode.qlik_change_table import opened_of
from tests.test_cases import said

TOKENS = [
    text.encode()
    for text in (
        "\n", "\r\n", ",", '"', '""', "\\", "|", ";", "\0", "\t", " UTC", "Z", ".1234567", "9999-12-31 23:59:59", "é",
        "true", "1",
        "0" * 35, "20260102030405000000000000000000001", ",U,", ",B,", ",I,", ",D,", ",T,", "UPDATE", "BEFOREIMAGE",
        '"a\nb"', "-", "00", "1.50",
        "1e5", "12345678901234567890", "2026-02-29", "\xa0", "80", "FF" * 9,
    )
]  # fmt: skip
TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "decimal": pa.decimal128(12, 2),
    "timestamp": pa.timestamp("ns"),
    "timestamp_ntz": pa.timestamp("us"),
}


def units(case: dict) -> list[bytes]:
    return [case["data"]] if case["data"] else []


def check(case: dict, units: list[bytes]) -> int:
    num = 0
    for unit in units:
        if not unit:
            continue
        for len_block in (1 << 20, 200):
            found, expected = both(lambda: test_codecs.whole(case, unit, len_block))
            test_codecs.assert_same(found, expected)
            num += sum("operation" in row for row in found)
        num += check_rows(case, unit)
    return num


def both(answer):
    """An answer with the compiled walk, and without."""
    with mock.patch.object(arrow, "walked", lambda *given: None):
        expected = answer()
    return answer(), expected


def check_rows(case: dict, unit: bytes) -> int:
    """The cells of text as those of Parquet."""
    lines = [line.split(",") for line in unit.decode("latin-1").split("\n")]
    names = list(dict.fromkeys(lines[0]))
    rows = [line for line in lines[1:] if len(line) >= len(names)]
    table = pa.table({name: [row[k] or None for row in rows] for k, name in enumerate(names)})
    return sum(check_table(case, one) for one in (table, typed(case, table)) if rows)


def typed(case: dict, table: pa.Table) -> pa.Table:
    """The same with values of the contract's types, in the columns whose texts all are such."""
    for column in (column for one in case["tables"].values() for column in one.columns):
        place, of = table.schema.get_field_index(column.name), TYPES.get(column.type.split("(")[0])
        if place >= 0 and of is not None and table.column(place).type == pa.string():
            with suppress(pa.ArrowInvalid):
                table = table.set_column(place, column.name, table.column(place).cast(of))
    return table


def check_table(case: dict, table: pa.Table) -> int:
    context = files.open_rows(case["path"], *opened_of(table), {}, case["source"], case["tables"])
    if isinstance(context, Reject):
        return 0

    def answer():
        one = files.decode_rows(table, context | {"first_row": 0}, case["source"], case["tables"])
        changes = change_rows(files, one, context, case["tables"])
        found = [said(row) | {"at": row["unit_offset"]} for row in changes]
        return found + [decoded.reject_row(row) | {"at": row.unit_offset} for row in one.rejects], one.parts

    (found, parts), (expected, plain_parts) = both(answer)
    waiting = {part.change_seq for part in plain_parts}
    of_pairs = [row for row in found if row.get("operation") == "UPDATE" and row["change_seq"] in waiting]
    assert {row["change_seq"] for row in of_pairs}.isdisjoint(part.change_seq for part in parts)
    assert [row for row in found if row not in of_pairs] == expected
    return len(found)
