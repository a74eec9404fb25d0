"""Usage journals: files cut, spliced and damaged. Every byte is accounted for, and blocks of any length say what the
plain readers say of the whole, whether the reading is that of the undamaged file or found anew.
"""

from inlet.codecs.linkexpress.journal import files as journals
from inlet.codecs.results import Waiting
from inlet.errors import Reject
from tests.journals import assert_read_alike
from tests.test_cases import _message, decode_file

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
    if case["data"] is None:
        return [value for message in case["messages"] if (value := _message(message)["value"])]
    return [case["data"]] if case["data"] else []


def check_messages(case: dict, units: list[bytes]) -> int:
    """Each message is accounted for, and so are the pieces that wait, together."""
    source, tables, waiting, num = case["source"], case["tables"], [], 0
    for n, data in enumerate(units):
        message = {"topic": "t", "partition": 0, "offset": n, "value": data}
        found = journals.decode_message(message, source, tables, [])
        records = [*(row["unit_length"] for row in found.changes), *(one.unit_length for one in found.rejects)]
        assert sum(records) + sum(one.unit_length for one in found.parts) + found.bytes_framing == len(data)
        waiting += [Waiting(f"s/t/0/{n}", part, data, message) for part in found.parts]
        num += len(found.changes)
    joined = journals.join("t/0", waiting, source, tables)
    settled = [*(row["unit_id"] for row in joined.changes), *(unit_id for unit_id, _ in joined.rejects)]
    settled += [one.unit_id for one in (*joined.control, *joined.waiting)]
    assert sorted(settled) == sorted(one.unit_id for one in waiting)
    return num + len(joined.changes)


def check(case: dict, units: list[bytes]) -> int:
    if case["data"] is None:
        return check_messages(case, units)
    num = 0
    for unit in units:
        decode_file(case, unit)  # every byte and record accounted for
        for data in (unit, case["data"]):
            context = journals.open_file(case["path"], data, True, case["source"], case["tables"])
            if isinstance(context, Reject) or context["reading"] is None:
                continue
            short, long = (
                assert_read_alike(unit, context, case["source"], case["tables"], len_block)
                for len_block in (1, 1 << 20)
            )
            assert short == long, "what the walks are certain of depends on the journals around"
            num += long
    return num
