"""Does a JSON value fit the type that a table's contract gives its column? Exactly, or not at all.

Out: the value as VARIANT shall hold it. Numbers become int or Decimal with the scale they are written with; text stays
text, whatever it spells (gold casts it); a number in a string column stays as its text. In a float or double column an
exponent or more than 38 digits make a double, and NaN, Infinity and -Infinity are values.

Rejects: value_does_not_fit.
>>> fit(Number("1.50"), "decimal(9,2)"), fit("2.500", "decimal(9,2)"), fit(Number("1.50"), "double")
(Decimal('1.50'), '2.500', Decimal('1.50'))
"""

import datetime
import re
from decimal import Decimal
from functools import cache

from inlet.fields.json_exact import CONSTANTS, Number
from inlet.fields.wrong import Wrong, quoted

LEN_INTEGER = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
LARGEST = {"float": 3.4028235677973366e38, "double": float("inf")}  # first value that rounds to infinity
MAX_DIGITS = 38
LEN_DIGITS = 19  # of the largest bigint
DIGITS = re.compile(r"-?[0-9]+")
NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
TIME = re.compile(
    DATE.pattern + r"[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,6}0*)?(Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
)
HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")


def fit(value, type_: str, encoding: str | None = None):
    """The value for VARIANT. In: what json_exact read; a type of the contract. Raises: Wrong."""
    if value is None:
        return None
    if isinstance(value, bytes) and type_ == "binary":
        return value.hex().upper() if encoding else value
    expected, read = reader(type_, encoding)
    fitting = read(value) if isinstance(value, (str, bool)) else None
    if fitting is None:
        raise Wrong("value_does_not_fit", 0, expected, _shown(value))
    return fitting


@cache
def reader(type_: str, encoding: str | None):
    """What the type asks for, in words, and the function that gives the value or None."""
    if type_ in LEN_INTEGER:
        limit = 1 << 8 * LEN_INTEGER[type_] - 1
        return f"an integer from {-limit} to {limit - 1}", lambda value: _integer(value, limit)
    if type_.startswith("decimal"):
        digits, scale = map(int, re.findall(r"\d+", type_))
        return f"a number that fits {type_} without rounding", lambda value: _decimal(value, digits - scale, scale)
    if type_ in LARGEST:
        return f"a number that fits {type_}", lambda value: _float(value, LARGEST[type_])
    if type_ == "binary" and encoding is None:
        return "`encoding: hex` in the contract, to say how text carries the bytes", lambda value: None
    return OTHERS[type_]


def _integer(value, limit: int):
    if isinstance(value, bool) or not DIGITS.fullmatch(value):
        return None
    digits = value.lstrip("-0")  # int() refuses texts of thousands of digits, zeros included
    if len(digits) > LEN_DIGITS:
        return None
    number = -int(digits or 0) if value[0] == "-" else int(digits or 0)
    return _as_sent(value, number) if -limit <= number < limit else None


def _decimal(value, most_before: int, most_after: int):
    if isinstance(value, bool) or not NUMBER.fullmatch(value):
        return None
    short = _without_zeros(Decimal(value))
    if short.adjusted() >= most_before and short or -_exponent(short) > most_after:
        return None
    exact = Decimal(value)
    exact = exact if exact else exact.copy_abs()  # VARIANT has no decimal -0
    return _as_sent(value, exact if _fits_variant(exact) else short)


def _is_no_number(value) -> bool:
    """NaN and the like as a number: in a column of text it may stand for a value that is missing."""
    return isinstance(value, Number) and value in CONSTANTS


def _float(value, largest: float):
    if value in CONSTANTS:
        return _as_sent(value, float(value))
    if isinstance(value, bool) or not NUMBER.fullmatch(value):
        return None
    number, exact = float(value), Decimal(value)
    if abs(number) >= largest or (number == 0) != (exact == 0):
        return None
    is_plain = (
        "e" not in value.lower() and _fits_variant(exact) and (exact or value[0] != "-")
    )  # VARIANT has no decimal -0
    return _as_sent(value, exact if is_plain else number)


def _as_sent(value: str, number):
    """The number if JSON has one; text stays text."""
    if not isinstance(value, Number):
        return value
    return int(number) if isinstance(number, Decimal) and _exponent(number) >= 0 else number


def _fits_variant(number: Decimal) -> bool:
    digits, exponent = number.as_tuple().digits, _exponent(number)
    return max(len(digits), -exponent) + max(exponent, 0) <= MAX_DIGITS


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "a number of JSON is finite"
    return exponent


def _without_zeros(number: Decimal) -> Decimal:
    """Without trailing zeros after the point (Decimal.normalize would round to its context)."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "a number of JSON is finite"
    num_zeros = next((n for n, digit in enumerate(reversed(digits)) if digit), None)
    if num_zeros is None:
        return Decimal(0)
    num_zeros = min(num_zeros, max(-exponent, 0))
    return Decimal((sign, digits[: len(digits) - num_zeros], exponent + num_zeros))


def _date(value):
    match = isinstance(value, str) and not isinstance(value, Number) and DATE.fullmatch(value)
    return value if match and _is_date(match) else None


def _timestamp(value, has_zone: bool):
    match = isinstance(value, str) and not isinstance(value, Number) and TIME.fullmatch(value)
    fits = match and _is_date(match) and int(match[4]) < 24 and int(match[5]) < 60 and int(match[6]) < 60
    return value if fits and (has_zone or match[7] is None) else None


def _is_date(match) -> bool:
    try:
        return bool(datetime.date(*map(int, match.group(1, 2, 3))))
    except ValueError:
        return False


OTHERS = {
    "string": ("text", lambda value: None if isinstance(value, bool) or _is_no_number(value) else str(value)),
    "boolean": ("true or false", lambda value: value if isinstance(value, bool) else None),
    "date": ("text of a day, YYYY-MM-DD", _date),
    "timestamp": (
        "text of a time, at most 6 digits of a second's fraction (type string in the contract keeps more)",
        lambda value: _timestamp(value, True),
    ),
    "timestamp_ntz": (
        "text of a time without a zone, at most 6 digits of a second's fraction (type string in the contract keeps "
        "more)",
        lambda value: _timestamp(value, False),
    ),
    "binary": (
        "text of hex digits, two a byte",
        lambda value: (
            value if isinstance(value, str) and not isinstance(value, Number) and HEX.fullmatch(value) else None
        ),
    ),
}


def _shown(value) -> str:
    kind = {dict: "an object", list: "an array", bool: str(value).lower()}.get(type(value))
    text = value.hex().upper() if isinstance(value, bytes) else str(value)
    return kind or quoted(text)
