"""Linkexpress extracts: files cut, spliced and damaged; every image and every fault of an item against the plain
readers of inlet.fields, record by record; each record alone and among the others."""

import numpy as np

from inlet.codecs.linkexpress import block as block
from inlet.codecs.linkexpress import frame as frame
from inlet.errors import Reject
from inlet.fields import charset, date, number, variant
from inlet.fields.compiled import interpreter as plan
from inlet.fields.wrong import Wrong
from tests.test_cases import decode_file

TOKENS = [
    bytes.fromhex(text)
    for text in (
        "00",
        "FF",
        "0000",
        "FFFF",
        "0001",
        "7FFFFFFF",
        "FFFFFFFF",
        "80000000",
        "00000008",
        "0000000A000100008000",
        "28",
        "29",
        "38",
        "40",
        "4040",
        "8E52",
        "8541",
        "E38182",
        "F09F9880",
        "EDA080",
        "8FA1A1",
        "8FB0A1",
        "D842DFB7",
        "42D8B7DF",
        "DBC0",
        "1B6D",
        "2841A180A129",
        "F040",
        "30",
        "2B",
        "4E",
        "F0",
        "C1",
        "0C",
        "9D",
        "07E90A10",
        "000000120003000100000001",
    )
]
NUM_ALONE = 4  # records of a unit that are also read alone, in buffers as small as they may be


def units(case: dict) -> list[bytes]:
    return [case["data"]] if case["data"] else []


def check(case: dict, units: list[bytes]) -> int:
    num = 0
    if "contexts" not in case:
        case["contexts"] = _contexts(case)
    for unit in units:
        decode_file(case, unit)  # every byte and record accounted for
        for context in case["contexts"]:
            num += _check_records(case, unit, context)
    return num


def _contexts(case: dict) -> list[dict]:
    """How the undamaged file is read; in both byte orders, both with null areas and without, where it is not read at
    all.
    """
    context = case["codec"].open_file(case["path"], case["data"], True, case["source"], case["tables"])
    if not isinstance(context, Reject) and context["byte_order"]:
        return [context]
    if case["source"].codec == "linkexpress_table":
        return []
    known = {
        "time": "2026010203040500",
        "file_ordinal": 7,
        "table": None,
        "load_id": None,
        "record_ordinal": 0,
        "transaction_ordinal": 0,
        "counter": 0,
    }
    return [
        known | {"byte_order": order, "null_areas": areas} for order in ("big", "little") for areas in ("yes", "no")
    ]


def _check_records(case: dict, data: bytes, context: dict) -> int:
    source, tables = case["source"], block.tables_of(context, case["tables"])
    framed = block.frames(data, context, source, tables)
    found = block.decode(data, context, source, tables)
    rows = {row["unit_offset"]: row for row in found.changes.to_pylist()}
    rejects = {reject.unit_offset: reject for reject in found.rejects}
    for i, head in enumerate(framed.heads):
        start, end = int(framed.offsets[i]), int(framed.offsets[i + 1])
        of_record = context | {"record_ordinal": context["record_ordinal"] + i}
        alone = block.decode(data[start:end], of_record, source, tables) if i < NUM_ALONE else None
        if head[frame.WHAT] != frame.CHANGE:
            assert (
                alone is None
                or len(alone.rejects) + alone.num_control == 1
                and (start in rejects) == bool(alone.rejects)
            )
            continue
        after = head[frame.OPERATION] != frame.DELETE
        expected = plain(
            data[:end],
            int(head[frame.ITEMS]),
            head[frame.TABLE],
            framed.layouts,
            block._reading(context, source, after),
        )
        if isinstance(expected, Wrong):
            assert (rejects[start].kind, rejects[start].byte_offset) == (expected.kind, expected.offset), expected
            assert alone is None or (alone.rejects[0].kind, alone.rejects[0].byte_offset) == (
                expected.kind,
                expected.offset - start,
            )
            continue
        name = "after" if after else "before"
        values = sorted_values(variant.encode(expected)[0], rows[start][name]["value"])
        assert values[0] == values[1], (expected, variant.decode(**rows[start][name]))
        assert alone is None or alone.changes.to_pylist()[0][name] == rows[start][name], (
            "an image depends on the records around"
        )
    return len(rows) + len(rejects)


def sorted_values(*values: bytes) -> list[dict]:
    """Objects as bytes by place: a NaN equals no NaN, and a plain reader makes REAL a double."""
    return [
        {k: repr(v) for k, v in variant.decode(value, variant.metadata([f"{n:03}" for n in range(256)])).items()}
        for value in values
    ]


def plain(data: bytes, at: int, table: int, layouts, reading: np.ndarray) -> dict | Wrong:
    """The image of a record whose items begin at `at` and end with the data, or its fault."""
    image, (first, last) = {}, layouts.plan_starts[table : table + 2]
    for row in layouts.plans[first:last]:
        try:
            image[f"{row[plan.SLOT]:03}"], at = _item(data, at, row, layouts, reading)
        except Wrong as wrong:
            return wrong
    return image if at == len(data) else Wrong("trailing_bytes", at, "", "")


def _item(data: bytes, at: int, row, layouts, reading):
    if reading[plan.NULL_AREAS]:
        _need(data, at, 2, at)
        if data[at : at + 2] not in (b"\0\0", b"\xff\xff"):
            raise Wrong("bad_null_indicator", at, "", "")
        is_null = data[at] == 0xFF
        if is_null and (row[plan.NEED] == plan.KEY or row[plan.NEED] == plan.NOT_NULL and reading[plan.IS_AFTER]):
            raise Wrong("missing_key" if row[plan.NEED] == plan.KEY else "null_not_allowed", at, "", "")
        at += 2
        if is_null:
            return None, _behind_null(data, at, row, reading)
    if row[plan.ENCODING] in (plan.VARTEXT, plan.BLOB, plan.LONGTEXT):
        return _variable(data, at, row, layouts, reading)
    _need(data, at, row[plan.WIDTH], at)
    return _read(data[at : at + row[plan.WIDTH]], at, row, layouts, reading), at + int(row[plan.WIDTH])


def _need(data: bytes, at: int, size: int, fault_at: int) -> None:
    if at + size > len(data):
        raise Wrong("truncated", fault_at, "", "")


def _head(row) -> int:
    return 2 if row[plan.ENCODING] == plan.VARTEXT else int(row[plan.UNIT] >> 4) + int(row[plan.UNIT] & 15)


def _behind_null(data: bytes, at: int, row, reading) -> int:
    size = int(row[plan.WIDTH])
    if row[plan.ENCODING] in (plan.VARTEXT, plan.BLOB, plan.LONGTEXT):
        size += _head(row)
        if reading[plan.ACTUAL_LENGTH] and reading[plan.NULL_BODY] != plan.BODY_FULL:
            size = 0 if reading[plan.NULL_BODY] == plan.BODY_ABSENT else _head(row)
            for k, byte in enumerate(data[at : at + size]):
                if byte:
                    raise Wrong("bad_value_length", at + k, "", "")
    _need(data, at, size, at)
    return at + size


def _variable(data: bytes, at: int, row, layouts, reading):
    _need(data, at, _head(row), at)
    start, order = at + _head(row), "little" if reading[plan.LITTLE] else "big"
    if row[plan.ENCODING] == plan.VARTEXT:
        size = int.from_bytes(data[at:start], order) * int(row[plan.UNIT])
    else:
        size = int.from_bytes(data[at + int(row[plan.UNIT] >> 4) : start], order)
    if size > row[plan.WIDTH]:
        raise Wrong("bad_value_length", at, "", "")
    end = start + (size if reading[plan.ACTUAL_LENGTH] else int(row[plan.WIDTH]))
    _need(data, end, 0, start)
    value = data[start : start + size]
    return (_read(value, start, row, layouts, reading) if row[plan.ENCODING] != plan.BLOB else value), end


def _read(data: bytes, at: int, row, layouts, reading):
    order, digits = "little" if reading[plan.LITTLE] else "big", (int(row[plan.DIGITS]), int(row[plan.SCALE]))
    set_ = charset.Charset(row[plan.MODE], layouts.singles[row[plan.SET]], layouts.doubles[row[plan.SET]])
    read = {
        plan.INTEGER: lambda: number.integer(data, order),
        plan.PACKED: lambda: number.packed(data, *digits),
        plan.ZONED: lambda: number.zoned(data, *digits),
        plan.TEXT: lambda: charset.text(data, set_),
        plan.VARTEXT: lambda: charset.text(data, set_),
        plan.LONGTEXT: lambda: charset.text(data, set_),
        plan.BYTES: lambda: data,
        plan.DATE: lambda: date.date(data, order),
        plan.TIME: lambda: date.time(data),
        plan.TIMESTAMP: lambda: date.timestamp(data, order),
        plan.IEEE: lambda: number.ieee(data, order),
        plan.HEX_FLOAT: lambda: number.hex_float(data),
    }[row[plan.ENCODING]]
    try:
        value = read()
    except Wrong as wrong:
        raise Wrong(wrong.kind, at + wrong.offset, wrong.expected, wrong.found) from None
    return value.rstrip(" \u3000") if row[plan.STRIP] else value
