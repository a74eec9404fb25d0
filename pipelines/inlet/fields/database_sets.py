"""Character sets of databases as tables, and the names that databases have for them. How they are read: charset.py.

The tables are those of Python's codecs, but for the cells below. A cell that a codec leaves undefined stays undefined,
and its bytes are rejected: user-defined areas of GBK, EUC and 949, 0x80 of GBK, 81 8D 8F 90 9D of Windows-1252.

Set            Table, and where it differs                                                     Evidence
JA16SJISTILDE  cp932 (8160 is U+FF5E)                                                          [documented] 1, 2
JA16SJIS       cp932; 8160 is U+301C                                                           [documented] 1, 2, 4
JA16EUC        euc_jp; A1F1 A1F2 A2CC are U+FFE0 U+FFE1 U+FFE2, 8FA2B7 is U+FF5E               [impl] 3
JA16EUCTILDE   JA16EUC; A1C1 is U+FF5E. 8FA2B7 is undefined: no source tells what it is here   [documented] 2, [impl] 3
ZHS16GBK       gbk. OpenLogReplicator reads 80 as the euro sign; the vendor does not say so    [documented] 2, [impl] 3
KO16MSWIN949   cp949                                                                           [documented] 2
ZHT16MSWIN950  cp950                                                                           [documented] 2
WE8ISO8859P1   iso8859_1, whose 80 to 9F are controls                                          [documented] 2
WE8ISO8859P15  iso8859_15                                                                      [documented] 2
WE8MSWIN1252, EE8MSWIN1250, CL8MSWIN1251: cp1252, cp1250, cp1251                               [documented] 2

Source    1 the vendor's header ucharset.h (GoldenGate 19.1): which of both reads 8160 as U+301C
          2 Oracle, Globalization Support Guide, appendix A: the code page that a set is, and that the two sets of a
            pair differ in wave dash and tilde alone
          3 OpenLogReplicator, src/locales: rows of symbols and first rows of ideographs compared by eye; its tables
            are not used
          4 Oracle WebLogic, Use with Multibyte Environments, table 1: other cells in which vendors differ
          ASSUMED: ideographs stand where the codecs have them
"""

import numpy as np

from inlet.fields.pairs import code_point, pairs

ASIAN_LEADS, ASIAN_TRAILS = range(0x81, 0xFF), range(0x40, 0xFF)
EUC = range(0xA1, 0xFF)
KANA, THREE_BYTES = 0x8E, 0x8F  # what leads a half-width kana, and a character of three bytes
NAMES = {  # what else databases and GoldenGate call a set; none of them means another set elsewhere
    "al32utf8": "utf_8",
    "utf8mb4": "utf_8",
    "utf8mb3": "utf_8",
    "cesu_8": "utf8",
    "us7ascii": "ascii",
    "us_ascii": "ascii",
    "win932": "cp932",
    "windows_932": "cp932",
    "ja16sjistilde": "cp932",
    "gbk": "zhs16gbk",
    "uhc": "ko16mswin949",
    "windows_949": "ko16mswin949",
    "euckr": "ko16mswin949",
    "euc_kr": "ko16mswin949",
    "windows_950": "zht16mswin950",
    "al16utf16": "utf_16_be",
    "utf16": "utf_16_be",
    "utf_16be": "utf_16_be",
    "utf_16le": "utf_16_le",
    "iso_8859_1": "we8iso8859p1",
    "iso_8859_15": "we8iso8859p15",
    "latin9": "we8iso8859p15",
    "cp1250": "ee8mswin1250",
    "win1250": "ee8mswin1250",
    "windows_1250": "ee8mswin1250",
    "cp1251": "cl8mswin1251",
    "win1251": "cl8mswin1251",
    "windows_1251": "cl8mswin1251",
    "win1252": "we8mswin1252",
    "windows_1252": "we8mswin1252",
    "cp1252": "we8mswin1252",
}


def single_bytes(codec: str) -> np.ndarray:
    """int32[256]: byte -> code point, of a set without pairs."""
    return np.array([code_point(codec, byte) for byte in range(256)], np.int32)


def ascii_and_pairs(codec: str) -> tuple[np.ndarray, np.ndarray]:
    """Tables of a set whose bytes below 80 are ASCII and whose others lead pairs."""
    return single_bytes("ascii"), pairs(codec, ASIAN_LEADS, ASIAN_TRAILS)


def ja16sjis(single: np.ndarray, double: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In: the tables of cp932."""
    double[0x8160] = 0x301C
    return single, double


def ja16euc(single: np.ndarray, double: np.ndarray, has_tilde: bool) -> tuple[np.ndarray, np.ndarray]:
    """In: the tables of euc_jp_0212."""
    double[[0xA1F1, 0xA1F2, 0xA2CC]] = 0xFFE0, 0xFFE1, 0xFFE2
    double[three_bytes(0xA2, 0xB7)] = -1 if has_tilde else 0xFF5E
    if has_tilde:
        double[0xA1C1] = 0xFF5E
    return single, double


def three_bytes(first: int, second: int) -> int:
    """The cell of a character of three bytes: that of a pair whose second byte lacks its high bit, which no pair of EUC
    has. In: those behind 8F."""
    return first << 8 | second & 0x7F
