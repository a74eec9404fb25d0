"""Site tables: what a site's own codes mean, user-defined characters (外字) before all others.

In a file each line is a code in hex, a blank, and its character, or `U+` and its code point; a code has one byte, two,
or three (8F and a pair, EUC); of UTF-16 it is a unit, whatever the byte order. A line that begins with `#`, and what
stands behind the character and begins so, is a remark:

    F040 髙          # Shift-JIS, user area
    41A1 U+4E02      # JEF, extended area
    8FA1A1 U+20BB7   # U90

Strict: a line that is none of these, a code that stands there twice, or a character that is not one code point is an
error, which names the line. A code that no set of the source reads is one, too. A table travels as its text: what a set
is made of is told by a hash of it.
>>> of_text("# ours\\nF040 髙\\n8fa1a1\\tU+20BB7  # the shop's")
{'F040': '髙', '8FA1A1': '𠮷'}
"""

import re
from functools import lru_cache

CODE = re.compile(r"[0-9A-Fa-f]{2}|[0-9A-Fa-f]{4}|8[Ff][0-9A-Fa-f]{4}")
POINT = re.compile(r"U\+[0-9A-Fa-f]{4,6}")
LINE = re.compile(r"[ \t]*([^ \t]+)[ \t]+([^ \t]+)[ \t]*(?:[ \t]#.*)?")


def as_text(codes: dict[str, str]) -> str:
    """The lines of a table that is `checked`."""
    return "".join(f"{code} U+{ord(char):04X}\n" for code, char in codes.items())


@lru_cache(maxsize=32)
def of_text(text: str) -> dict[str, str]:
    """Code -> character, not to be changed. Raises: ValueError, which names the line."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            if not (match := LINE.fullmatch(line)):
                raise ValueError(f"expected a code and its character, like 'F040 U+9AD9', found {line!r}")
            ((code, char),) = checked({match[1]: match[2]}).items()
            if code in found:
                raise ValueError(f"{code} stands there twice")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        found[code] = char
    return found


def checked(given) -> dict[str, str]:
    """Codes in capitals, with their characters. Raises: ValueError for what is no code, or not one character."""
    if not isinstance(given, dict):
        raise ValueError("expected codes with their characters, like {'4A': '£'}")
    found = {}
    for code, char in given.items():
        if not isinstance(code, str) or not CODE.fullmatch(code):
            raise ValueError(f"expected 2 or 4 hex digits in quotes, like '4A', or 8F and 4 more, found {code!r}")
        point = int(char[2:], 16) if isinstance(char, str) and POINT.fullmatch(char) else None
        if point is None and isinstance(char, str) and len(char) == 1:
            point = ord(char)
        if point is None or 0xD800 <= point < 0xE000 or point > 0x10FFFF:
            raise ValueError(f"{code}: expected one character, or U+ and its code point, found {char!r}")
        found[code.upper()] = chr(point)
    if len(found) < len(given):
        raise ValueError("a code stands there twice, in capitals and not")
    return found
