"""Two-byte characters as a standard codec of Python knows them, read strictly: what it does not define is -1.

>>> double = pairs("cp932", [0x81, 0x8E], [0x52, 0xAD])
>>> chr(double[0x8E52]), int(double[0x81AD])
('山', -1)
"""

import numpy as np


def undefined(size: int) -> np.ndarray:
    return np.full(size, -1, np.int32)


def pairs(codec: str, leads, trails) -> np.ndarray:
    """int32[65536]: pair -> code point. In: the bytes that may lead a pair, and those that may follow."""
    double = undefined(65536)
    for lead in leads:
        for trail in trails:
            try:
                char = bytes([lead, trail]).decode(codec)
            except UnicodeDecodeError:
                continue
            if len(char) == 1:  # two: each byte is a character by itself
                double[lead << 8 | trail] = ord(char)
    return double
