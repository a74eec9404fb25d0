"""Avro messages that are damaged: each is a change, a reject or a control event, with all its bytes, whatever they
are."""

from inlet.codecs import CODECS
from tests import test_cases

CODEC = CODECS["qlik_avro"]
TOKENS = [
    text.encode("latin-1")
    for text in (
        "atMSG", "\0", "\x02", "\x04DT", "\x04MD", "\xff\xff\xff\xff\x0f", "\x80" * 9 + "\x01", "\x01", '{"type":', "[",
    )
]  # fmt: skip


def units(case: dict) -> list[bytes]:
    return [test_cases._message(one)["value"] or b"" for one in case["messages"]]


def check(case: dict, units: list[bytes]) -> int:
    num = 0
    first = test_cases._message(case["messages"][0])
    for unit in units:
        message = first | {"value": unit}
        CODEC.brought(message)
        found = CODEC.decode_message(message, case["source"], case["tables"], [])
        num += len(found.changes)
        assert len(found.changes) + len(found.rejects) + found.num_control == 1
        assert all(reject.raw == unit for reject in found.rejects)
        assert found.num_control == 0 or found.bytes_framing == len(unit)
    return num
