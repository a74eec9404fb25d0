"""Numbers: packed and zoned decimals, integers, IEEE and base-16 floats.

Source: Linkexpress manuals, see docs/formats/linkexpress_group.md. Rejects: bad_digit, bad_sign,
value_does_not_fit.
>>> packed(bytes.fromhex("0012345d"), precision=7, scale=2)
Decimal('-123.45')
>>> zoned(b"+00042", precision=5)
Decimal('42')
>>> hex_float(bytes.fromhex("c1180000"))
-1.5
"""

import struct
from decimal import Decimal
from typing import Literal

from inlet.fields.wrong import Wrong

PACKED_SIGN = {0xA: 0, 0xC: 0, 0xE: 0, 0xF: 0, 0xB: 1, 0xD: 1}
SIGN_BYTE = {0x2B: (0, 0x3), 0x2D: (1, 0x3), 0x4E: (0, 0xF), 0x60: (1, 0xF)}  # byte -> (is minus, zone of its digits)
OVERPUNCH = {0x3: 0, 0x4: 0, 0xA: 0, 0xC: 0, 0xE: 0, 0xF: 0, 0x5: 1, 0x7: 1, 0xB: 1, 0xD: 1}


def packed(data: bytes, precision: int, scale: int = 0) -> Decimal:
    """Two digits a byte, the last nibble is the sign: A C E F plus, B D minus. Minus zero is zero."""
    digits = [nibble for byte in data for nibble in (byte >> 4, byte & 15)]
    for place, digit in enumerate(digits[:-1]):
        if digit > 9:
            raise Wrong("bad_digit", place // 2, "a digit 0-9", f"{digit:X}")
    if digits[-1] not in PACKED_SIGN:
        raise Wrong("bad_sign", len(data) - 1, "a sign A-F", f"{digits[-1]:X}")
    return _decimal(PACKED_SIGN[digits[-1]], digits[:-1], precision, scale)


def zoned(data: bytes, precision: int, scale: int = 0) -> Decimal:
    """One digit a byte. One byte more than digits: a sign byte, first or last; else the last zone is the sign.

    ASCII signs 2B 2D go with digits 30-39, EBCDIC signs 4E 60 with F0-F9.
    >>> zoned(b"123T", precision=4)
    Decimal('-1234')
    """
    if len(data) == precision:
        return _overpunch(data, precision, scale)
    first = 1 if data[0] in SIGN_BYTE else 0
    sign_at = 0 if first else precision
    if data[sign_at] not in SIGN_BYTE:
        raise Wrong("bad_sign", 0, "a sign byte first or last: 2B, 2D, 4E or 60", f"{data[0]:02X}")
    sign, zone = SIGN_BYTE[data[sign_at]]
    return _decimal(sign, _digits(data, first, first + precision, (zone,)), precision, scale)


def _overpunch(data: bytes, precision: int, scale: int) -> Decimal:
    digits = _digits(data, 0, precision - 1, (0x3, 0xF))
    zone, digit = data[-1] >> 4, data[-1] & 15
    if zone not in OVERPUNCH:
        raise Wrong("bad_sign", precision - 1, "a sign zone 3, 4, 5, 7 or A-F", f"{data[-1]:02X}")
    if digit > 9:
        raise Wrong("bad_digit", precision - 1, "a digit 0-9", f"{data[-1]:02X}")
    return _decimal(OVERPUNCH[zone], [*digits, digit], precision, scale)


def _digits(data: bytes, start: int, stop: int, zones: tuple) -> list[int]:
    for at in range(start, stop):
        if data[at] >> 4 not in zones or data[at] & 15 > 9:
            raise Wrong("bad_digit", at, "a digit character", f"{data[at]:02X}")
    return [byte & 15 for byte in data[start:stop]]


def _decimal(sign: int, digits: list[int], precision: int, scale: int) -> Decimal:
    if any(digits[:-precision]):
        raise Wrong("value_does_not_fit", 0, f"at most {precision} digits", "".join(map(str, digits)))
    return Decimal((sign if any(digits) else 0, digits, -scale))


def integer(data: bytes, byte_order: Literal["big", "little"]) -> int:
    """Two's complement of any width.

    >>> integer(bytes.fromhex("feff"), "little")
    -2
    """
    return int.from_bytes(data, byte_order, signed=True)


def ieee(data: bytes, byte_order: str) -> float:
    """IEEE 754, 4 or 8 bytes.

    >>> ieee(bytes.fromhex("00000000000004c0"), "little")
    -2.5
    """
    return struct.unpack((">" if byte_order == "big" else "<") + ("f" if len(data) == 4 else "d"), data)[0]


def hex_float(data: bytes) -> float:
    """Base-16 float of mainframes, big endian: sign bit, exponent excess 64, fraction of 24 or 56 bits.

    ASSUMED: 56 bits of fraction are rounded to the nearest double, as every reader of floats does.
    """
    len_fraction = 8 * (len(data) - 1)
    fraction = int.from_bytes(data[1:], "big")
    size = float(fraction) * 2.0 ** (4 * ((data[0] & 0x7F) - 64) - len_fraction)
    return -size if data[0] & 0x80 else size
