"""Character sets of Linkexpress and of Fujitsu's mainframes as tables. How they are read: charset.py.

Set            What it is (what the vendor calls it)                                                  Table
cp932          Shift-JIS (SJISMS); user-defined characters F040-F9FC are U+E000 to U+E757             cp932
euc_jp         EUC(S90): kanji in two bytes, half-width kana behind 8E; 8F is undefined               euc_jp
euc_jp_0212    the same, and behind 8F the supplementary kanji of JIS X 0212, in three bytes          euc_jp
u90            EUC(U90): as euc_jp; 8F leads three bytes that only the site's table gives a meaning   euc_jp
jis8           JIS X 0201: ASCII, half-width kana A1-DF                                               cp932
ascii          7 bits                                                                                 ascii
utf_8          checked and copied, the private use area included                                      utf-8
utf_16_be, _le units of two bytes; two surrogates are one character, one alone is none                utf-16
ebcdic_kana    EBCDIC(kana), GS_KANA: capital letters and half-width kana                             below
ebcdic_ascii   EBCDIC(ASCII), GS_ASCII: as cp500, but 6A is the broken bar                            cp500
ebcdic_lower   EBCDIC(lower case): as cp037, but 4A 5B E0 are pound sign, backslash and $             cp037
jef            pairs of JEF, without shift codes                                                      jef.py

Where a strict codec of Python's is the table, a cell that it leaves undefined stays so. In all EBCDIC sets 15 is the
line feed and 25 is U+0085, 0E and 0F are U+0088 and U+0089; 28 and 38 begin pairs of JEF, 29 ends them; what of a code
page the vendor's table does not surely share is undefined. Sites have changed the cells of pound sign, bar, backslash
and exclamation mark: option `charset_overrides`.

In Japanese   kanji 漢字, half-width kana 半角カナ, user-defined characters 外字 or 利用者定義文字,
              extended kanji 拡張漢字, supplementary kanji 補助漢字, shift codes シフトコード, lower case 英小文字
Source        docs/formats/linkexpress_group.md; Linkexpress manual 5.11.4; of EBCDIC the tables of jef4j (Apache
              License 2.0) in the direction of decoding, but for A1, an overline there, 22, its FS, and FF, its EO
              ASSUMED: triples of U90 are the vendor's own kanji, not those of JIS X 0212
              ASSUMED: in jis8, 5C and 7E are those of ASCII; 1B begins the vendor's shifts to kanji and is undefined
"""

import numpy as np

from inlet.fields import database_sets
from inlet.fields.pairs import code_point, pairs, undefined

SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE = (0x28, 0x38), 0x29
Tables = tuple[np.ndarray, np.ndarray]  # one byte -> code point, two bytes -> code point; -1 undefined


def ascii() -> Tables:
    single = undefined(256)
    single[:128] = range(128)
    return single, undefined(65536)


def jis8() -> Tables:
    single, double = ascii()
    single[0xA1:0xE0] = range(0xFF61, 0xFFA0)
    single[0x1B] = -1
    return single, double


def cp932() -> Tables:
    single, _ = ascii()
    single[0xA1:0xE0] = range(0xFF61, 0xFFA0)
    leads = [*range(0x81, 0xA0), *range(0xE0, 0xFD)]
    return single, pairs("cp932", leads, [*range(0x40, 0x7F), *range(0x80, 0xFD)])


def euc_jp() -> Tables:
    return ascii()[0], pairs("euc_jp", [database_sets.KANA, *database_sets.EUC], database_sets.EUC)


def euc_jp_0212() -> Tables:
    """Characters of three bytes stand where `database_sets.three_bytes` says."""
    single, double = euc_jp()
    for first in database_sets.EUC:
        for second in database_sets.EUC:
            cell = database_sets.three_bytes(first, second)
            double[cell] = code_point("euc_jp", database_sets.THREE_BYTES, first, second)
    return single, double


def utf_16(byte_order: str) -> Tables:
    """Units as they are, surrogates included: charset.py joins two of them."""
    units = np.arange(65536, dtype=np.int32)
    return undefined(256), units if byte_order == "big" else units.reshape(256, 256).T.copy().reshape(-1)


def ucs2() -> Tables:
    single, double = utf_16("big")
    double[0xD800:0xE000] = -1
    return single, double


def ebcdic_kana() -> np.ndarray:
    single = _ebcdic(
        "cp037", (*range(0x81, 0xC0),), {0x4A: "£", 0x5B: "\\", 0x5F: "¬", 0x6A: "¦", 0xE0: "$", 0xA1: "~"}
    )
    for start, first, size in (
        (0x41, 0xFF61, 9),
        (0x51, 0xFF6A, 6),
        (0x58, 0xFF70, 1),
        (0x81, 0xFF71, 10),
        (0x8C, 0xFF7B, 4),
        (0x90, 0xFF7F, 11),
        (0x9D, 0xFF8A, 3),
        (0xA2, 0xFF8D, 9),
        (0xAC, 0xFF96, 4),
        (0xBA, 0xFF9A, 6),
    ):
        single[start : start + size] = range(first, first + size)
    return single


def ebcdic_ascii() -> np.ndarray:
    return _ebcdic("cp500", (0xBB,), {0x6A: "¦"})


def ebcdic_lower() -> np.ndarray:
    return _ebcdic("cp037", (0xB0, 0xBA, 0xBB), {0x4A: "£", 0x5B: "\\", 0x5F: "¬", 0x6A: "¦", 0xE0: "$"})


def _ebcdic(codec: str, removed: tuple, changed: dict) -> np.ndarray:
    """The ASCII part of a code page of Python's; cells that the vendor's table does not surely share are undefined."""
    single = undefined(256)
    for byte in range(256):
        code = code_point(codec, byte)
        if code < 0x7F or byte < 0x40:
            single[byte] = code
    single[[0x15, 0x25, 0x0E, 0x0F]] = 0x0A, 0x85, 0x88, 0x89
    single[[*SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE, *removed]] = -1
    for byte, char in changed.items():
        single[byte] = ord(char)
    return single
