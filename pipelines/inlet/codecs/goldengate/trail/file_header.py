"""The header record of a trail file: groups of tokens, each kept, by name where it is known.

Unit      a token `F` whose length is that of the whole record; groups of tokens in it; a trailer `Z`
Facts     TrailInfo [dump seen] in part; the other groups and their tokens [recalled]; value types [impl]
Source    docs/formats/goldengate_trail.md. A token that is not known stays as hex
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

JULIAN_EPOCH = 210_866_760_000_000_000
LEN_TOKEN = 4
FILE_NUMBER = re.compile(r"(?:..|.*\D)?(\d{9}|\d{6})", re.ASCII)


def _number(data: bytes, order: str):
    return int.from_bytes(data, order)  # type: ignore[arg-type]


def _signed(data: bytes, order: str):
    return int.from_bytes(data, order, signed=True)  # type: ignore[arg-type]


def _text(data: bytes, order: str):
    """A length of 2 bytes, and as many bytes."""
    if len(data) < 2 or _number(data[:2], order) != len(data) - 2:
        raise ValueError
    return data[2:].decode("utf-8")


def _short_text(data: bytes, order: str):
    """A length of 1 byte, and a text in a field of 255."""
    return data[1 : 1 + data[0]].decode("utf-8")


def _time(data: bytes, order: str):
    microseconds = _number(data, order) - JULIAN_EPOCH
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")


def _texts(data: bytes, order: str):
    return [_text(payload, order) for _, payload in tokens(data, order)]


def _raw(data: bytes, order: str):
    return data.hex()


TEXTS = {id_: (name, _text) for id_, name in enumerate(("sysname", "nodename", "release", "version", "hardware"), 0x30)}
GROUPS: dict[int, tuple[str, dict[int, tuple[str, Callable]]]] = {
    0x30: (
        "trail",
        {
            0x30: ("signature", _raw),
            0x31: ("compatibility", _number),
            0x32: ("charset", _signed),
            0x33: ("creation_time", _time),
            0x34: ("uri", _text),
            0x35: ("uri_history", _texts),
            0x36: ("file_name", _text),
            0x37: ("multi_part", _number),
            0x38: ("seqno", _number),
            0x39: ("file_size", _number),
            0x3A: ("first_csn", _short_text),
            0x3B: ("last_csn", _short_text),
            0x3C: ("first_io_time", _time),
            0x3D: ("last_io_time", _time),
            0x3E: ("log_bsn", _short_text),
        },
    ),
    0x31: ("machine", TEXTS),
    0x32: ("database", {}),
    0x33: ("producer", {}),
    0x34: ("continuity", {0x30: ("recovery_mode", _number)}),
}


def tokens(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """(id, payload) of the tokens that fill these bytes. Raises: ValueError where they do not."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 2 : at + LEN_TOKEN], order)  # type: ignore[arg-type]
        if at + LEN_TOKEN + size > len(data):
            raise ValueError(f"expected tokens up to byte {len(data)}, found {size} bytes at {at}")
        yield data[at], data[at + LEN_TOKEN : at + LEN_TOKEN + size]
        at += LEN_TOKEN + size


def read(record: bytes, order: str) -> dict:
    """All that a header record says: {group: {token: value}}; hex of what is not known or does not read as its type."""
    found: dict = {}
    try:
        for group_id, payload in tokens(record[LEN_TOKEN:-LEN_TOKEN], order):
            group, known = GROUPS.get(group_id, (f"group_{group_id:02x}", {}))
            found[group] = {}
            for id_, value in tokens(payload, order):
                name, read_value = known.get(id_, (f"token_{id_:02x}", _raw))
                try:
                    found[group][name] = read_value(value, order)
                except (ValueError, IndexError, OverflowError):
                    found[group][name] = value.hex()
    except ValueError:
        found["raw"] = record.hex()
    return found


def number_of(path: str) -> int | None:
    """The number of a file in its trail, as its name ends with it: after two characters, which may be digits, or after
    any other prefix that ends with none.

    >>> number_of("./dirdat/e1000000009"), number_of("dirdat\\\\ra000009"), number_of("copy_20261231")
    (9, 9, None)
    """
    match = FILE_NUMBER.fullmatch(re.split(r"[/\\]", path)[-1])
    return int(match[1]) if match else None


def numbers(record: bytes, order: str) -> set[int]:
    """The numbers of the file in its trail that a header record says: at the end of its file name, and by itself."""
    trail = read(record, order).get("trail", {})
    said = number_of(trail.get("file_name", "")), trail.get("seqno")
    return {number for number in said if isinstance(number, int)}
