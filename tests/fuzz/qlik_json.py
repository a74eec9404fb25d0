"""Qlik JSON: the walk of messages alone and together against the exact path, and the walk that looks for full loads."""

import datetime

from inlet.codecs.qlik import json_contracts, json_fast, json_messages
from inlet.errors import REJECT_KINDS
from inlet.silver import messages as silver_messages
from tests import test_cases
from tests.test_qlik_json import batch_of, loads_of, project_of, typed, walked

TOKENS = [
    b'"',
    b"\\",
    b'\\"',
    b"\\u0041",
    b"\\ud83d",
    b"\\u3042",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"false",
    b"-",
    b"0",
    b"9",
    b"0.",
    b"1e5",
    b"123456789012345678",
    b"9223372036854775807",
    b"9223372036854775808",
    b" ",
    b"\n",
    b"\0",
    b"\x1f",
    b"\xff",
    b"\xe3\x81\x82",
    b"\xed\xa0\x80",
    b'"x":"y",',
    b'"data":',
    b'"beforeData":{',
    b'"headers":{',
    b'"timestamp":1767323045678',
    b'"2026-01-02T03:04:05.',
]
START = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def units(case: dict) -> list[bytes]:
    return [value for value in (test_cases._message(written)["value"] for written in case["messages"]) if value]


def _exact(message: dict, source, tables: dict, loads: list[dict]) -> dict:
    found = json_messages.read_message(message, source, tables, loads)
    if found["result"] == "reject":
        reject = found["reject"]
        assert (
            reject.raw == message["value"]
            and 0 <= reject.byte_offset <= len(message["value"])
            and reject.kind in REJECT_KINDS
        )
    return found


def check(case: dict, units: list[bytes]) -> int:
    source, tables = case["source"], case["tables"]
    first = test_cases._message(case["messages"][0])
    times = [None if n % 5 == 4 else START + datetime.timedelta(seconds=n) for n in range(len(units))]
    messages = [
        first | {"value": unit, "unit_id": str(n), "offset": n, "timestamp": time}
        for n, (unit, time) in enumerate(zip(units, times))
    ]
    loads = loads_of(messages, source, tables)
    together = walked(messages, source, tables, loads)
    exacts = {message["unit_id"]: _exact(message, source, tables, loads) for message in messages}
    found = {source.name: first["lookups"]}
    batches = silver_messages.exact(project_of(source, tables), json_messages, loads, found)([batch_of(messages)])
    rows = [row for batch in batches for row in batch.to_pylist() if row["result"] in ("change", "reject")]
    assert [row["result"] for row in rows] == [
        exact["result"] for exact in exacts.values() if exact["result"] != "control"
    ]
    for message in messages:
        alone = walked([message], source, tables, loads)  # buffers as small as they may be
        assert typed(alone.get(message["unit_id"])) == typed(together.get(message["unit_id"])), (
            "an answer depends on the messages around"
        )
        if alone:
            exact, row = exacts[message["unit_id"]], alone[message["unit_id"]]
            assert exact["result"] == "change", exact
            assert typed(row) == typed({name: exact[name] for name in row})
    find = json_fast.refreshes(
        json_contracts.Contracts([source], tables), {source.name: source}, tables, json_messages.refresh_row
    )
    found = [(row["t"], row["at"]) for batch in find([batch_of(messages)]) for row in batch.to_pylist()]
    rows = (json_messages.refresh_row(message, source, tables) for message in messages)
    assert found == [json_fast.row_of(row) for row in rows if row]
    return len(together)
