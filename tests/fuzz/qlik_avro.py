"""Qlik Avro: mutated messages by the exact path, and the text of those in no doubt through the walk of JSON."""

import pyarrow as pa

from inlet.codecs import CODECS
from inlet.codecs.qlik import avro_fast
from inlet.commands import decode
from inlet.errors import REJECT_KINDS
from inlet.silver import decoded
from tests import test_cases
from tests.test_qlik_json import typed, walked

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TOKENS = [
    b"\0",
    b"\x02",
    b"\x04",
    b"\x01",
    b"\x7f",
    b"\x80\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x02F",
    b"\x04DT",
    b"\x04MD",
    b"atMSG",
    b'"',
    b"\\",
    b"\x1f",
    b"\xe3\x81\x82",
    b"\xff",
    b"NaN",
    b"\x02\x02\x80",
]


def units(case: dict) -> list[bytes]:
    return [value for value in (test_cases._message(written)["value"] for written in case["messages"]) if value]


def texts_of(messages: list[dict], source, tables: dict, brought: dict[str, bytes]) -> list[bytes | None]:
    """The JSON text of each message, None in doubt, by a walk over all of them."""
    batch = pa.table(
        {
            "source": pa.array([source.name] * len(messages)),
            "topic": pa.array([one["topic"] for one in messages]),
            "value": pa.array([one["value"] for one in messages], pa.binary()),
            "headers": pa.array([one["headers"] for one in messages], HEADERS),
        }
    ).to_batches()
    texts = avro_fast.Texts([source], tables, {source.name: brought})
    return [text for part in batch for piece in texts.batches(part) for text in piece.column("value").to_pylist()]


def check(case: dict, units: list[bytes]) -> int:
    codec, source, tables = CODECS["qlik_avro"], case["source"], case["tables"]
    first = test_cases._message(case["messages"][0])
    brought = {name: text for name, text in first["lookups"].items() if text is not None}
    messages = [first | {"value": unit, "unit_id": str(n), "offset": n} for n, unit in enumerate(units)]
    num_walked = 0
    for message, unit, text in zip(messages, units, texts_of(messages, source, tables, brought)):
        codec.brought(message), codec.lookups(message, source)
        codec.annotate(unit, message, source, tables)
        loads = decode.loads_of(codec, source, tables, [message])
        found = codec.decode_message(message, source, tables, loads)
        decoded.rows_of(found, source, tables, message["unit_id"], unit, None, None)  # each byte is accounted for
        for reject in found.rejects:
            assert reject.kind in REJECT_KINDS and 0 <= reject.byte_offset <= len(unit)
        for row in walked([message | {"value": text}], source, tables, loads).values() if text else ():
            [exact] = found.changes
            row |= {"unit_length": len(unit)}
            assert typed(row) == typed({name: exact[name] for name in row})
            num_walked += 1
    return num_walked
