"""Two-byte characters as a standard codec of Python knows them, read strictly: what it does not define is -1.

>>> double = pairs("cp932", [0x81, 0x8E], [0x52, 0xAD])
>>> chr(double[0x8E52]), int(double[0x81AD])
('山', -1)
"""

import numpy as np


def undefined(size: int) -> np.ndarray:
    return np.full(size, -1, np.int32)


def code_point(codec: str, *codes: int) -> int:
    """The one character that these bytes are, else -1."""
    try:
        char = bytes(codes).decode(codec)
    except UnicodeDecodeError:
        return -1
    return ord(char) if len(char) == 1 else -1  # two: each byte is a character by itself


def pairs(codec: str, leads, trails) -> np.ndarray:
    """int32[65536]: pair -> code point. In: the bytes that may lead a pair, and those that may follow."""
    double = undefined(65536)
    for lead in leads:
        for trail in trails:
            double[lead << 8 | trail] = code_point(codec, lead, trail)
    return double
