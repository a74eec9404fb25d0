"""Character sets as tables: one byte -> code point, two bytes -> code point; -1 is undefined and rejected, never
replaced.

A set has one of eight ways of walking its bytes:
  SINGLE  every byte is a character
  LEAD    a byte is a character, or leads a pair (Shift-JIS, EUC)
  SHIFT   28 or 38 begins pairs, 29 ends them; each item begins with single bytes (EBCDIC with JEF)
  DOUBLE  pairs only (national characters)
  UTF8    checked and copied
  EUC     as LEAD, and 8F leads three bytes (Oracle's EUC)
  CESU8   as UTF8, but characters beyond U+FFFF are two surrogates of three bytes each, and never four bytes
  UTF16   pairs, the high byte first; characters beyond U+FFFF are two surrogates
Names of databases are in database_sets.py. Not among them: `latin1`, which is Windows-1252 in MySQL and ISO 8859-1 in
PostgreSQL, and `sjis`, `ujis` and `big5`, whose symbols differ by database. `utf8` is that of Oracle, which is CESU-8
(Oracle Globalization Support Guide, chapter 6); what MySQL and PostgreSQL call so is `utf8mb4`.
Source: docs/formats/linkexpress_group.md, docs/formats/goldengate_types.md. Rejects: bad_text.
>>> text(bytes.fromhex("c1c228bbb3c5c429f1"), charset("ebcdic_kana"))
'AB山田1'
>>> text(bytes.fromhex("8e529363"), charset("cp932"))
'山田'
>>> text(bytes.fromhex("eda182edbea0"), charset("UTF8")), text(bytes.fromhex("d842dfa0"), charset("AL16UTF16"))
('𠮠', '𠮠')
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from inlet.fields import database_sets, jef
from inlet.fields.pairs import pairs, undefined
from inlet.fields.wrong import Wrong

SINGLE, LEAD, SHIFT, DOUBLE, UTF8, EUC, CESU8, UTF16 = range(8)
MODES_WITH_ASCII = SINGLE, LEAD, EUC, UTF8, CESU8
SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE = (0x28, 0x38), 0x29
ALIASES = {"sjisms": "cp932", "gs_kana": "ebcdic_kana", "gs_ascii": "ebcdic_ascii"} | database_sets.NAMES
UP_TO_FFFF = (
    rb"[\0-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]"
)
TWO_SURROGATES = rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]"
FOUR_BYTES = rb"\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
CESU8_TEXT = re.compile(b"(?:%b|%b)*" % (UP_TO_FFFF, TWO_SURROGATES))
ONE_OF_UTF8 = {
    UTF8: re.compile(b"%b|%b" % (UP_TO_FFFF, FOUR_BYTES)),
    CESU8: re.compile(b"%b|%b" % (UP_TO_FFFF, TWO_SURROGATES)),
}
REPLACEMENT = 0xFFFD


class Charset(NamedTuple):
    mode: int
    single: np.ndarray  # int32[256]
    double: np.ndarray  # int32[65536]
    name: str = ""  # as it was asked for


def text(data: bytes, charset: Charset) -> str:
    """All of `data` as text. The plain spec of the interpreter's text functions."""
    if charset.mode in UNICODE:
        return UNICODE[charset.mode](data, charset.name)
    chars, at, in_pairs = [], 0, charset.mode == DOUBLE
    while at < len(data):
        byte = data[at]
        if charset.mode == SHIFT and byte in (*SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE):
            in_pairs, at = byte != SHIFT_TO_SINGLE, at + 1
            continue
        if charset.mode == SHIFT and in_pairs and byte == 0x40 and data[at + 1 : at + 2] in (b"", b"\x29"):
            code, width = 0x20, 1  # ASSUMED: half an ideographic space is a blank
        elif in_pairs:
            code, width = _pair(data, at, charset.double), 2
        else:
            code, width = _one(data, at, charset)
        if code < 0:
            raise Wrong("bad_text", at, said(charset.name), data[at : at + width].hex().upper())
        chars.append(chr(code))
        at += width
    return "".join(chars)


class Characters(NamedTuple):
    """A text, of which what is no character of its set is U+FFFD. Offsets of `faults` count from its first byte."""

    text: str
    starts: list[int]  # the byte at which each character begins, and that behind the last one
    faults: list[Wrong]


def characters(data: bytes, charset: Charset) -> Characters:
    """Text in a set `with_ascii`, character by character: what is none takes one byte, so that no delimiter is lost."""
    chars, starts, faults, at = [], [], list[Wrong](), 0
    while at < len(data):
        code, width = _one(data, at, charset)
        if code < 0:
            bad = data[at : at + width] if min(data[at : at + width]) >= 0x80 else data[at : at + 1]
            faults.append(Wrong("bad_text", at, said(charset.name), bad.hex().upper()))
            code, width = REPLACEMENT, 1
        chars.append(chr(code))
        starts.append(at)
        at += width
    return Characters("".join(chars), [*starts, at], faults)


def encoded(char: str, charset: Charset) -> bytes:
    """A character in a set `with_ascii`. Raises: ValueError where the set has none."""
    if charset.mode in (UTF8, CESU8):
        return char.encode()
    if len(found := np.flatnonzero(charset.single == ord(char))):
        return bytes([found[0]])
    if len(found := np.flatnonzero(charset.double == ord(char))):
        return int(found[0]).to_bytes(2, "big")
    raise ValueError(f"{charset.name} has no {char!r}")


def with_ascii(name: str) -> Charset:
    """A set whose bytes below 80 are ASCII where they begin a character. Raises: ValueError for another set, and for a
    name that is none."""
    known = known_as(name)
    found = charset(name) if known in SETS else None
    if found is None or found.mode not in MODES_WITH_ASCII:
        raise ValueError(f"expected a character set that has ASCII, such as AL32UTF8 or WE8MSWIN1252, found {name!r}")
    return found


def said(name: str) -> str:
    """What is expected of text, by the name of its set."""
    return f"text in {name}" if name else "a character of the set"


def _one(data: bytes, at: int, charset: Charset) -> tuple[int, int]:
    """Code point, -1 for none, and width of the character at a byte, outside of what shifts."""
    byte = data[at]
    if charset.mode in (UTF8, CESU8):
        return _of_utf8(data, at, charset.mode)
    if charset.mode == EUC and byte >= 0x80:
        return _euc(data[at : at + 3], charset.double)
    if charset.single[byte] < 0 and charset.mode == LEAD:
        return _pair(data, at, charset.double), 2
    return int(charset.single[byte]), 1


def _of_utf8(data: bytes, at: int, mode: int) -> tuple[int, int]:
    found = ONE_OF_UTF8[mode].match(data, at)
    if not found:
        return -1, 1
    read = found[0].decode("utf-8", "surrogatepass")
    return ord(read.encode("utf-16-be", "surrogatepass").decode("utf-16-be")), len(found[0])


def _pair(data: bytes, at: int, double: np.ndarray) -> int:
    return int(double[data[at] << 8 | data[at + 1]]) if at + 1 < len(data) else -1


def _euc(data: bytes, double: np.ndarray) -> tuple[int, int]:
    """Code point and width of a character that begins with 8F or leads a pair."""
    if data[0] == database_sets.THREE_BYTES:
        is_whole = len(data) == 3 and min(data[1:]) >= 0xA1
        return int(double[database_sets.three_bytes(data[1], data[2])]) if is_whole else -1, 3
    return int(double[data[0] << 8 | data[1]]) if len(data) > 1 and data[1] >= 0xA1 else -1, 2


def _unicode(data: bytes, name: str, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        found = data[error.start : error.end].hex().upper()
        raise Wrong("bad_text", error.start, said(name or codec.upper()), found) from None


def _cesu8(data: bytes, name: str) -> str:
    end = CESU8_TEXT.match(data).end()
    if end < len(data):
        raise Wrong("bad_text", end, said(name or "CESU-8"), data[end : end + 6].hex().upper())
    return data.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass").decode("utf-16-be")


UNICODE: dict[int, Callable[[bytes, str], str]] = {
    UTF8: partial(_unicode, codec="utf-8"),
    CESU8: _cesu8,
    UTF16: partial(_unicode, codec="utf-16-be"),
}


def known_as(name: str) -> str:
    """One name for all that a set has, in whatever case, with - or _.

    >>> known_as("Windows-1252"), known_as("UTF-8") == known_as("AL32UTF8")
    ('we8mswin1252', True)
    """
    name = name.lower().replace("-", "_")
    return ALIASES.get(name, name)


@lru_cache(maxsize=32)
def charset(
    name: str, jef_mapping: str = "glyph", mixed: str = "shift", overrides: tuple = (), pua_base: int = 0xE000
) -> Charset:
    """The set of that name.

    In: jef_mapping glyph | modern; mixed, for EBCDIC: shift | single | double; overrides as ((hex of 1 or 2 bytes,
    character), ...), checked by `checked_overrides`. Raises: KeyError for an unknown name.
    """
    asked, name = name, known_as(name)
    mode, single, double = SETS[name]()
    if name.startswith("ebcdic_"):
        mode = {"shift": SHIFT, "single": SINGLE, "double": DOUBLE}[mixed]
    if name.startswith("ebcdic_") or name == "jef":
        double = jef.table(jef_mapping, pua_base)
    for code, char in overrides:
        (single if len(code) == 2 else double)[int(code, 16)] = ord(char)
    return Charset(mode, single, double, asked)


def _ascii():
    single = undefined(256)
    single[:128] = range(128)
    return SINGLE, single, undefined(65536)


def _cp932():
    _, single, _ = _ascii()
    single[0xA1:0xE0] = range(0xFF61, 0xFFA0)
    leads = [*range(0x81, 0xA0), *range(0xE0, 0xFD)]
    return LEAD, single, pairs("cp932", leads, [*range(0x40, 0x7F), *range(0x80, 0xFD)])


def _euc_jp():
    _, single, _ = _ascii()  # 8F leads three bytes, whose meaning the vendor keeps: undefined
    return LEAD, single, pairs("euc_jp", [0x8E, *range(0xA1, 0xFF)], range(0xA1, 0xFF))


def _utf_16(byte_order: str):
    double = np.arange(65536, dtype=np.int32)
    double[0xD800:0xE000] = -1
    return DOUBLE, undefined(256), double if byte_order == "big" else double.reshape(256, 256).T.copy().reshape(-1)


def _single_bytes(codec: str):
    return SINGLE, database_sets.single_bytes(codec), undefined(65536)


def _unicode_set(mode: int):
    return mode, *_ascii()[1:]


def _ebcdic(codec: str, removed: tuple, changed: dict):
    """The ASCII part of a stdlib code page; cells that the vendor's table does not surely share stay undefined."""
    single = undefined(256)
    for byte in range(256):
        code = ord(bytes([byte]).decode(codec))
        if code < 0x7F or byte < 0x40:
            single[byte] = code
    single[[0x15, 0x25, 0x0E, 0x0F]] = 0x0A, 0x85, 0x88, 0x89
    single[[*SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE, *removed]] = -1
    for byte, char in changed.items():
        single[byte] = ord(char)
    return SHIFT, single, None


def _ebcdic_kana():
    _, single, _ = _ebcdic(
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
    return SHIFT, single, None


def checked_overrides(overrides: dict) -> dict[str, str]:
    """Cells that a site changed. Raises: ValueError for what is no code of 1 or 2 bytes, or not one character."""
    if not isinstance(overrides, dict):
        raise ValueError("expected codes with their characters, like {'4A': '£'}")
    for code, char in overrides.items():
        if not isinstance(code, str) or not re.fullmatch(r"(?:[0-9A-Fa-f]{2}){1,2}", code):
            raise ValueError(f"expected 2 or 4 hex digits in quotes, like '4A', found {code!r}")
        if not isinstance(char, str) or len(char) != 1 or 0xD800 <= ord(char) < 0xE000:
            raise ValueError(f"{code}: expected one character, found {char!r}")
    return overrides


SETS = {
    "cp932": _cp932,
    "euc_jp": _euc_jp,
    "utf_8": lambda: _unicode_set(UTF8),
    "ascii": _ascii,
    "ebcdic_kana": _ebcdic_kana,
    "ebcdic_ascii": lambda: _ebcdic("cp500", (0xBB,), {0x6A: "¦"}),
    "ebcdic_lower": lambda: _ebcdic("cp037", (0xB0,), {0x4A: "£", 0x5B: "\\", 0x5F: "^", 0x6A: "¦", 0xE0: "$"}),
    "jef": lambda: (DOUBLE, undefined(256), None),
    "utf_16_be": lambda: _utf_16("big"),
    "utf_16_le": lambda: _utf_16("little"),
    "utf8": lambda: _unicode_set(CESU8),
    "al16utf16": lambda: _unicode_set(UTF16),
    "ja16sjis": lambda: (LEAD, *database_sets.ja16sjis(*_cp932()[1:])),
    "ja16euc": lambda: (EUC, *database_sets.ja16euc(has_tilde=False)),
    "ja16euctilde": lambda: (EUC, *database_sets.ja16euc(has_tilde=True)),
    "zhs16gbk": lambda: (LEAD, *database_sets.ascii_and_pairs("gbk")),
    "ko16mswin949": lambda: (LEAD, *database_sets.ascii_and_pairs("cp949")),
    "zht16mswin950": lambda: (LEAD, *database_sets.ascii_and_pairs("cp950")),
    "we8iso8859p1": lambda: _single_bytes("iso8859_1"),
    "we8iso8859p15": lambda: _single_bytes("iso8859_15"),
    "we8mswin1252": lambda: _single_bytes("cp1252"),
    "ee8mswin1250": lambda: _single_bytes("cp1250"),
    "cl8mswin1251": lambda: _single_bytes("cp1251"),
}
