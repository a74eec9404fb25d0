"""Character sets as tables: one byte -> code point, two bytes -> code point; -1 is undefined and rejected, never
replaced.

A set has one of nine ways of walking its bytes:
  SINGLE  every byte is a character
  LEAD    a byte is a character, or leads a pair (Shift-JIS, EUC)
  SHIFT   28 or 38 begins pairs, 29 ends them; each item begins and ends with single bytes (EBCDIC with JEF)
  SHIFT_OPEN  as SHIFT, but an item may end with pairs
  DOUBLE  pairs only (national characters)
  UTF8    checked and copied
  EUC     as LEAD, and 8F leads three bytes
  CESU8   as UTF8, but characters beyond U+FFFF are two surrogates of three bytes each, and never four bytes
  UTF16   pairs, in the byte order of the set; characters beyond U+FFFF are two surrogates
The tables are in fujitsu_sets.py, jef.py and database_sets.py; what a site adds to them: site_table.py.

Not among the names: `latin1`, which is Windows-1252 in MySQL and ISO 8859-1 in PostgreSQL, and `sjis`, `ujis` and
`big5`, whose symbols differ by database. `utf8` is that of Oracle, which is CESU-8 (Oracle Globalization Support Guide,
chapter 6); what MySQL and PostgreSQL call so is `utf8mb4`.
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
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from inlet.fields import database_sets, fujitsu_sets, jef, site_table
from inlet.fields.fujitsu_sets import SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE
from inlet.fields.pairs import undefined
from inlet.fields.wrong import Wrong

SINGLE, LEAD, SHIFT, DOUBLE, UTF8, EUC, CESU8, UTF16, SHIFT_OPEN = range(9)
SHIFTS = SHIFT, SHIFT_OPEN
MODES_WITH_ASCII = SINGLE, LEAD, EUC, UTF8, CESU8
HIGH_SURROGATE, LOW_SURROGATE = 0xD800 >> 10, 0xDC00 >> 10
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
LEN_FOUND = 16  # bytes that a message shows
HALF_BLANK = 0x4029  # among pairs: half a wide blank, and the code that ends them


class Charset(NamedTuple):
    mode: int
    single: np.ndarray  # int32[256]
    double: np.ndarray  # int32[65536]
    name: str = ""  # as it was asked for
    of_site: frozenset[str] = frozenset()  # codes of site tables that it reads


def text(data: bytes, charset: Charset) -> str:
    """All of `data` as text. The plain spec of the interpreter's text functions."""
    if charset.mode in UNICODE:
        return UNICODE[charset.mode](data, charset.name)
    shifts, chars, at, shift_at, in_pairs = charset.mode in SHIFTS, [], 0, 0, charset.mode == DOUBLE
    while at < len(data):
        byte = data[at]
        if shifts and byte in (*SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE):
            in_pairs, shift_at, at = byte != SHIFT_TO_SINGLE, at, at + 1
            continue
        if shifts and in_pairs and data[at : at + 2] in (b"\x40", b"\x40\x29"):
            code, width = 0x20, 1  # ASSUMED: half an ideographic space is a blank
        elif in_pairs:
            code, width = _pair(data, at, charset.double), 2
        else:
            code, width = _one(data, at, charset)
        if code < 0:
            expected = said(charset.name, charset.mode == DOUBLE)
            raise Wrong("bad_text", at, expected, data[at : at + width].hex().upper())
        chars.append(chr(code))
        at += width
    if charset.mode == SHIFT and in_pairs:
        raise Wrong("bad_text", shift_at, closed(charset.name), data[shift_at : shift_at + LEN_FOUND].hex().upper())
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
        first, second = divmod(int(found[0]), 256)
        is_of_three = charset.mode == EUC and second < 0x80
        return bytes([database_sets.THREE_BYTES, first, second | 0x80] if is_of_three else [first, second])
    raise ValueError(f"{charset.name} has no {char!r}")


def with_ascii(name: str) -> Charset:
    """A set whose bytes below 80 are ASCII where they begin a character. Raises: ValueError for another set, and for a
    name that is none."""
    known = known_as(name)
    found = charset(name) if known in SETS else None
    if found is None or found.mode not in MODES_WITH_ASCII:
        raise ValueError(f"expected a character set that has ASCII, such as AL32UTF8 or WE8MSWIN1252, found {name!r}")
    return found


def said(name: str, is_of_pairs: bool = False) -> str:
    """What is expected of text, by the name of its set."""
    what = "text of two-byte characters" if is_of_pairs else "text"
    return f"{what} in {name}" if name else "a character of the set"


def closed(name: str) -> str:
    """What is expected of text in which a code begins pairs and none ends them."""
    return f"{said(name)} in which 29 ends what 28 or 38 begins (the option jef_mixed: shift_open takes it without)"


def _one(data: bytes, at: int, charset: Charset) -> tuple[int, int]:
    """Code point, -1 for none, and width of the character at a byte, outside of what shifts."""
    byte = data[at]
    if charset.mode in (UTF8, CESU8):
        return _of_utf8(data, at, charset.mode)
    if charset.mode == UTF16:
        return _of_utf16(data, at, charset.double)
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


def _of_utf16(data: bytes, at: int, double: np.ndarray) -> tuple[int, int]:
    """A surrogate stands in the table as itself, whatever the byte order."""
    code = _pair(data, at, double)
    low = _pair(data, at + 2, double)
    if code >> 10 == HIGH_SURROGATE and low >> 10 == LOW_SURROGATE:
        return 0x10000 + ((code & 0x3FF) << 10 | low & 0x3FF), 4
    return -1 if code >> 10 in (HIGH_SURROGATE, LOW_SURROGATE) else code, 2


def _pair(data: bytes, at: int, double: np.ndarray) -> int:
    return int(double[data[at] << 8 | data[at + 1]]) if at + 1 < len(data) else -1


def _euc(data: bytes, double: np.ndarray) -> tuple[int, int]:
    """Code point and width of a character that begins with 8F or leads a pair."""
    if data[0] == database_sets.THREE_BYTES:
        is_whole = len(data) == 3 and min(data[1:]) >= 0xA1
        return int(double[database_sets.three_bytes(data[1], data[2])]) if is_whole else -1, 3
    return int(double[data[0] << 8 | data[1]]) if len(data) > 1 and data[1] >= 0xA1 else -1, 2


def _utf8(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = data[error.start : error.end].hex().upper()
        raise Wrong("bad_text", error.start, said(name or "UTF-8"), found) from None


def _cesu8(data: bytes, name: str) -> str:
    end = CESU8_TEXT.match(data).end()
    if end < len(data):
        raise Wrong("bad_text", end, said(name or "CESU-8"), data[end : end + 6].hex().upper())
    return data.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass").decode("utf-16-be")


UNICODE: dict[int, Callable[[bytes, str], str]] = {UTF8: _utf8, CESU8: _cesu8}


def known_as(name: str) -> str:
    """One name for all that a set has, in whatever case, with - or _.

    >>> known_as("Windows-1252"), known_as("UTF-8") == known_as("AL32UTF8")
    ('we8mswin1252', True)
    """
    name = name.lower().replace("-", "_")
    return ALIASES.get(name, name)


@lru_cache(maxsize=32)
def charset(
    name: str,
    jef_mapping: str = "glyph",
    mixed: str = "shift",
    overrides: tuple[str, ...] = (),
    pua_base: int = 0xE000,
    user_defined: str = "keep",
) -> Charset:
    """The set of that name.

    In: jef_mapping glyph | modern; mixed, where a set has both: shift (as the set does it) | shift_open (so, and pairs
    may go on to the end) | single | double, which is nothing but single bytes, or pairs; overrides: texts of site
    tables, of which a later one goes before, and codes that the set does not read are left out; user_defined keep |
    reject: whether user-defined characters that overrides do not name are those of the private use area, or undefined.
    Raises: KeyError for an unknown name.
    """
    asked, name = name, known_as(name)
    mode, single, double = SETS[name]()
    if mode in (SHIFT, LEAD):
        is_open = mode == SHIFT and mixed == "shift_open"
        mode = SHIFT_OPEN if is_open else {"single": SINGLE, "double": DOUBLE}.get(mixed, mode)
    if name.startswith("ebcdic_") or name == "jef":
        double = jef.table(jef_mapping, pua_base if user_defined == "keep" else None)
    if user_defined == "reject":
        double[_is_private(double, mode)] = -1
    made, codes, of_site = Charset(mode, single, double, asked), dict[str, str](), set()
    for text in overrides:
        codes |= site_table.of_text(text)
    for code in sorted(codes, key=len):  # single bytes first: others lead pairs
        data = bytes.fromhex(code)
        cell = _cell(data[::-1] if name == "utf_16_le" else data, made)  # a code of UTF-16 is a unit, in any order
        if cell is not None:
            (single if len(code) == 2 else double)[cell] = ord(codes[code])
            of_site.add(code)
    return made._replace(of_site=frozenset(of_site))


def _is_private(double: np.ndarray, mode: int) -> np.ndarray:
    """Which cells are in the private use area; of UTF-16 also the surrogates that lead to its planes."""
    planes = (double >> 7 == 0xDB80 >> 7) if mode == UTF16 else (double >= 0xF0000)
    return (double >= 0xE000) & (double < 0xF900) | planes


def _cell(code: bytes, charset: Charset) -> int | None:
    """Where the character of a code stands in the table of its width, if the set reads it."""
    mode, (first, *others) = charset.mode, code
    shifts = mode in SHIFTS
    is_shift = shifts and first in (*SHIFT_TO_DOUBLE, SHIFT_TO_SINGLE)
    if not others:
        is_read = mode in (SINGLE, LEAD) or shifts and not is_shift or mode == EUC and first < 0x80
        return first if is_read else None
    if len(others) == 2:
        is_read = mode == EUC and first == database_sets.THREE_BYTES and min(others) >= 0xA1
        return database_sets.three_bytes(*others) if is_read else None
    cell = first << 8 | others[0]
    is_read = (
        mode == DOUBLE
        or shifts
        and not is_shift
        and cell != HALF_BLANK
        or mode == LEAD
        and charset.single[first] < 0
        or mode == EUC
        and first >= 0x80
        and first != database_sets.THREE_BYTES
        and others[0] >= 0xA1
        or mode == UTF16
        and charset.double[cell] >> 11 != 0xD800 >> 11
    )
    return cell if is_read else None


def _single_bytes(codec: str):
    return SINGLE, database_sets.single_bytes(codec), undefined(65536)


SETS = {
    "cp932": lambda: (LEAD, *fujitsu_sets.cp932()),
    "euc_jp": lambda: (LEAD, *fujitsu_sets.euc_jp()),
    "euc_jp_0212": lambda: (EUC, *fujitsu_sets.euc_jp_0212()),
    "u90": lambda: (EUC, *fujitsu_sets.euc_jp()),
    "jis8": lambda: (SINGLE, *fujitsu_sets.jis8()),
    "ascii": lambda: (SINGLE, *fujitsu_sets.ascii()),
    "ebcdic_kana": lambda: (SHIFT, fujitsu_sets.ebcdic_kana(), None),
    "ebcdic_ascii": lambda: (SHIFT, fujitsu_sets.ebcdic_ascii(), None),
    "ebcdic_lower": lambda: (SHIFT, fujitsu_sets.ebcdic_lower(), None),
    "jef": lambda: (DOUBLE, undefined(256), None),
    "utf_8": lambda: (UTF8, *fujitsu_sets.ascii()),
    "utf8": lambda: (CESU8, *fujitsu_sets.ascii()),
    "utf_16_be": lambda: (UTF16, *fujitsu_sets.utf_16("big")),
    "utf_16_le": lambda: (UTF16, *fujitsu_sets.utf_16("little")),
    "ucs2": lambda: (DOUBLE, *fujitsu_sets.ucs2()),
    "ja16sjis": lambda: (LEAD, *database_sets.ja16sjis(*fujitsu_sets.cp932())),
    "ja16euc": lambda: (EUC, *database_sets.ja16euc(*fujitsu_sets.euc_jp_0212(), has_tilde=False)),
    "ja16euctilde": lambda: (EUC, *database_sets.ja16euc(*fujitsu_sets.euc_jp_0212(), has_tilde=True)),
    "zhs16gbk": lambda: (LEAD, *database_sets.ascii_and_pairs("gbk")),
    "ko16mswin949": lambda: (LEAD, *database_sets.ascii_and_pairs("cp949")),
    "zht16mswin950": lambda: (LEAD, *database_sets.ascii_and_pairs("cp950")),
    "we8iso8859p1": lambda: _single_bytes("iso8859_1"),
    "we8iso8859p15": lambda: _single_bytes("iso8859_15"),
    "we8mswin1252": lambda: _single_bytes("cp1252"),
    "ee8mswin1250": lambda: _single_bytes("cp1250"),
    "cl8mswin1251": lambda: _single_bytes("cp1251"),
}
