"""Write files of the toy log. Knows nothing of Inlet."""

import json


def record(*members) -> bytes:
    payload = json.dumps(members, ensure_ascii=False).encode()
    return (len(payload) + 2).to_bytes(2, "big") + payload


def file(number: int, *records: tuple, time: str = "2026010203040500", is_ended: bool = True) -> bytes:
    return b"".join(
        [record("file", number, time), *(record(*members) for members in records), record("end") if is_ended else b""]
    )
