"""Trails: files cut, spliced and damaged, in both byte orders; each change against a plain reading of its column
area."""

import datetime
from decimal import Decimal

from inlet.codecs.codec import change_rows
from inlet.codecs.goldengate.trail import files as trail
from inlet.codecs.goldengate.trail import piece
from inlet.errors import Reject
from tests.test_cases import decode_file

TOKENS = [
    bytes.fromhex(text)
    for text in (
        "00", "FF", "0000", "FFFF", "0001", "0002000000", "47010090", "47019000", "48000024", "48002400", "4400001C",
        "54000030", "5A010090", "5A019000", "45040041", "450C0041", "03520000", "0000000A", "00060000", "000600000001",
        "02F36D926B141F35", "351F146B926DF302", "8000", "7FFFFFFFFFFFFFFF", "C328", "EDA080", "2D", "2E", "39",
    )
]  # fmt: skip


def units(case: dict) -> list[bytes]:
    return [case["data"]] if case["data"] else []


def check(case: dict, units: list[bytes]) -> int:
    num = 0
    for unit in units:
        decode_file(case, unit)  # every byte and record accounted for
        for order in ("big", "little"):
            context = piece.BEGINNING | {"seqno": 1, "offset": 0, "file_order": "big", "order": order, "last_seq": ""}
            found = trail.decode(unit, context, case["source"], case["tables"])
            rows = change_rows(trail, found, context, case["tables"])
            for row in rows:
                _check_images(case, unit, row, order)
            _check_places(found.rejects, unit)
            num += len(rows) + len(found.rejects)
    return num


def _check_places(rejects: list[Reject], unit: bytes) -> None:
    for reject in rejects:
        assert reject.unit_offset <= reject.byte_offset <= reject.unit_offset + reject.unit_length, reject
        assert reject.raw == unit[reject.unit_offset : reject.unit_offset + reject.unit_length]


def _check_images(case: dict, unit: bytes, row: dict, order: str) -> None:
    """Each value of a change stands in its bytes as a plain reader reads it there."""
    table = case["tables"][f"{row['source_schema']}.{row['source_table']}"]
    version = next(v for v in table.versions if v.version == row["table_version"])
    data = unit[row["unit_offset"] : row["unit_offset"] + row["unit_length"]]
    area = b"".join(_payloads(data, order))
    for image in (row["before"], row["after"]):
        for index, column in enumerate(version.columns):
            if image and column.name in image:
                value = image[column.name]
                in_list = (_in_list(area, at, order) for at in _found(area, index.to_bytes(2, order)))
                in_full = _in_full(area, column) if column.source_type != column.vendor_type else []
                assert any(_reads_as(own, column, value, order) for own in [*in_list, *in_full]), (column, image)


def _found(area: bytes, start: bytes) -> list[int]:
    return [at for at in range(len(area)) if area.startswith(start, at)]


def _in_list(area: bytes, at: int, order: str) -> bytes:
    """The value of a column whose index is there."""
    return area[at + 4 : at + 4 + int.from_bytes(area[at + 2 : at + 4], order)]


def _in_full(area: bytes, column) -> list[bytes]:
    """The place of a column, wherever a full image may begin."""
    first, behind = map(int, column.source_type.rpartition(" ")[2].split(":"))
    return [area[at + first : at + behind] for at in range(len(area) - behind + 1)]


def _payloads(data: bytes, order: str):
    """Column areas of records that follow each other."""
    at = 0
    while at < len(data):
        size, p = int.from_bytes(data[at + 2 : at + 4], order), at + 4
        while p < at + size - 4:
            length = int.from_bytes(data[p + 2 : p + 4], order)
            if data[p] == ord("D"):
                yield data[p + 4 : p + 4 + length]
            p += 4 + length
        at += size


def _reads_as(data: bytes, column, value, order: str) -> bool:
    """Do these bytes begin with a null indicator, and behind it with the value?"""
    try:
        return _value_is(data, column, value, order)
    except (ValueError, ArithmeticError):  # bytes that are no text, or no number
        return False


def _value_is(data: bytes, column, value, order: str) -> bool:
    if value is None:
        return data[:2] not in (b"", b"\0", b"\0\0")
    if data[:2] != b"\0\0":
        return False
    name, data = column.vendor_type.split("(")[0], data[2:]
    if name.startswith("INT"):
        scale = int(column.vendor_type.rstrip(")").split(",")[1]) if "," in column.vendor_type else 0
        whole = data[: int(name[3:]) // 8]
        return Decimal(int.from_bytes(whole, "big", signed=True)).scaleb(-scale) == value
    if name == "ASCII_F":
        return data[: int(column.vendor_type[8:-1])].decode() == value
    text = data[: len(str(value))] if name == "DATETIME" else data[2 : 2 + int.from_bytes(data[:2], order)]
    if name == "DATETIME":
        return text[:10] + b" " + text[11:] == str(value).encode() or text == str(value).encode()
    if isinstance(value, (int, Decimal)):
        return Decimal(text.decode()) == value
    assert not isinstance(value, datetime.date)
    return text.decode() == value
