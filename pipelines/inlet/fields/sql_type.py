"""SQL type names as definitions write them: one canonical name and its numbers.

>>> parse("national character varying ( 8 )")
('NVARCHAR', (8,))
>>> parse("DEC(9,2)")
('DECIMAL', (9, 2))
>>> parse("BLOB(2K)")
('BLOB', (2048,))
>>> parse("interval year(4) to month")
('INTERVAL', ())
"""

import re

ALIASES = {
    "CHAR": "CHARACTER",
    "CHARACTER VARYING": "VARCHAR",
    "CHAR VARYING": "VARCHAR",
    "NATIONAL CHARACTER": "NCHAR",
    "NATIONAL CHAR": "NCHAR",
    "NATIONAL CHARACTER VARYING": "NVARCHAR",
    "NATIONAL CHAR VARYING": "NVARCHAR",
    "NCHAR VARYING": "NVARCHAR",
    "INT": "INTEGER",
    "DEC": "DECIMAL",
    "DOUBLE PRECISION": "DOUBLE",
    "BINARY LARGE OBJECT": "BLOB",
}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse(text: str) -> tuple[str, tuple[int, ...]]:
    """(canonical name, numbers in parentheses). Raises: ValueError if it is no type name at all."""
    if text.upper().split()[:1] == ["INTERVAL"]:  # its fields are no numbers in parentheses at its end
        return "INTERVAL", ()
    match = re.fullmatch(r"([A-Z][A-Z ]*?)(?:\(([0-9KMG, ]+)\))?", " ".join(text.upper().split()).replace(" (", "("))
    if not match:
        raise ValueError(f"expected a type such as DECIMAL(9,2), found {text!r}")
    numbers = [number.strip() for number in match[2].split(",")] if match[2] else []
    sized = [re.fullmatch(r"(\d+)([KMG]?)", number) for number in numbers]
    if not all(sized):
        raise ValueError(f"expected numbers in parentheses, found {text!r}")
    return ALIASES.get(match[1], match[1]), tuple(int(n[1]) * UNITS[n[2]] for n in sized)
