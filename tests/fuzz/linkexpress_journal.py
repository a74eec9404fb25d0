"""Usage journals: files cut, spliced and damaged. Every byte is accounted for, and blocks of any length say the same,
whether the reading is that of the undamaged file or found anew. The codec is plain Python.
"""

from inlet.codecs.linkexpress.journal import files as journals
from inlet.errors import Reject
from tests.test_cases import decode_file

TOKENS = [
    bytes.fromhex(text)
    for text in (
        "00",
        "FF",
        "0F",
        "F0",
        "0000",
        "FFFF",
        "00FF",
        "FF00",
        "00000020",
        "20000000",
        "0001",
        "00000006",
        "FFFFFFFF",
        "81001000",
        "8700260045",
        "830002000004",
        "8300020000",
        "85000200",
        "240020",
        "4A434B50",
        "D1C3D2D7",
        "2B",
        "8E52",
        "28",
        "29",
    )
]


def units(case: dict) -> list[bytes]:
    return [case["data"]] if case["data"] else []


def check(case: dict, units: list[bytes]) -> int:
    num = 0
    for unit in units:
        decode_file(case, unit)  # every byte and record accounted for
        for data in (unit, case["data"]):
            context = journals.open_file(case["path"], data, True, case["source"], case["tables"])
            if isinstance(context, Reject) or context["reading"] is None:
                continue
            short, long = (_rows(case, unit, context, len_block) for len_block in (1, 1 << 20))
            assert short == long, "a block depends on those around"
            num += len(long)
    return num


def _rows(case: dict, data: bytes, context: dict, len_block: int) -> list[str]:
    """Changes and rejects by their place in the order."""
    rows = []
    for block in journals.cut(data, context, case["source"], case["tables"], len_block, True).blocks:
        unit = data[block.offset : block.offset + block.length]
        found = journals.decode(unit, block.context, case["source"], case["tables"])
        changes = journals.changes_as_rows(found, block.context, case["source"], case["tables"])
        rows += [repr(row | {"unit_offset": None}) for row in changes]
        rows += [f"{reject.change_seq} {reject.kind} {reject.event}" for reject in found.rejects]
    return sorted(rows)
