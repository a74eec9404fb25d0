"""GoldenGate JSON: the walk of messages alone and together against the exact path."""

from inlet.codecs.goldengate.json import messages as json_messages
from inlet.errors import REJECT_KINDS
from tests import test_cases
from tests.test_goldengate_json_fast import exact, walked
from tests.test_qlik_json import typed

TOKENS = [
    b'"',
    b"\\",
    b'\\"',
    b"\\u0041",
    b"\\ud83d",
    b"{",
    b"}",
    b"{}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-",
    b"0",
    b"9",
    b"0.",
    b"1e5",
    b"123456789012345678",
    b"9223372036854775808",
    b" ",
    b"\n",
    b"\0",
    b"\xff",
    b"\xe3\x81\x82",
    b"\xed\xa0\x80",
    b'"x":"y",',
    b'"table":"',
    b'"op_type":"U",',
    b'"op_ts":"2026-01-02 03:04:05.678901",',
    b'"pos":"00000000010000002052",',
    b'"pos":"-0000000010000002052",',
    b'"before":{',
    b'"after":{',
    b'"after":null,',
    b'"tokens":{"b":"1","a":null},',
    b'"primary_keys":["ID",1],',
    b'"1994-09-30:15:33:00.5"',
]


def units(case: dict) -> list[bytes]:
    return [value for value in (test_cases._message(written)["value"] for written in case["messages"]) if value]


def check(case: dict, units: list[bytes]) -> int:
    source, tables = case["source"], case["tables"]
    first = test_cases._message(case["messages"][0])
    given = [first | {"value": unit, "unit_id": str(n), "offset": n} for n, unit in enumerate(units)]
    together = walked(given, source, tables)
    for one in given:
        for reject in json_messages.decode_message(one, source, tables, []).rejects:
            assert reject.kind in REJECT_KINDS and 0 <= reject.byte_offset <= len(one["value"])
        alone = walked([one], source, tables)  # buffers as small as they may be
        row = alone.get(one["unit_id"])
        assert typed(row) == typed(together.get(one["unit_id"])), "an answer depends on the messages around"
        if row:
            expected = exact(one, source, tables)
            assert expected is not None, one["value"]
            assert typed(row) == typed({name: expected.get(name) for name in row})
    return len(together)
