"""GoldenGate's type of a column, as the `source_type` of a contract says it.

source_type      Defgen type, sub type       Becomes, unless the contract asks for another   Evidence of the body
ASCII_F(n)       0, sub 0, 5, 8              string                                          [impl]
ASCII_V(n)       64, sub 0, 1, 5, 7, 8       string                                          [dump seen]
ASCII_V(n)       64, sub 4 (binary)          binary                                          [inferred]
FLOAT(n)         64, sub 2, 27               decimal(38,10)                                  [dump seen]
FIXED_PREC(n,s)  64, sub 3, 37               decimal(38,s)                                   [inferred] from FLOAT
INT16(n,s)       130                         smallint; with a scale decimal(5,s)             [inferred] from INT32
UINT16(n,s)      131                         int; with a scale decimal(5,s)                  [inferred] from INT32
INT32(n,s)       132                         int; with a scale decimal(10,s)                 [dump seen]; scale [impl]
UINT32(n,s)      133                         bigint; with a scale decimal(10,s)              [inferred] from INT32
INT64(n,s)       134                         bigint; with a scale decimal(19,s)              [dump seen]; scale [impl]
UINT64(n,s)      135                         decimal(20,s)                                   [inferred] from INT32
DATETIME(n)      192                         date of 10 characters, else timestamp_ntz       [dump seen]
TYPE_140(n)      140                         binary: the bytes as they stand                 not public
TYPE_64_6(n)     64, sub 6                   binary: the bytes as they stand                 not public

n is the external length in bytes, s the scale. Both may be left out of the integers, and a scale of 0 of FIXED_PREC.
` LOB` follows where Defgen's LOB type is not 0: values may come in segments. Any other type or sub type is a TYPE_.
` AT 0:12` is the column's place in a full image, first byte and end, which trail/full_image.py reads.

Facts     [documented] type codes and sub types: the vendor's header SQLDataTypes.h (19.1); pages and dumps behind the
          marks: docs/formats/goldengate_types.md
>>> parse("FIXED_PREC(50,2)")
SourceType(name='FIXED_PREC', code=64, length=50, scale=2, is_lob=False, place=None)
>>> parse("ASCII_V(20) AT 12:38").place
(12, 38)
>>> of_defgen(134, 3, 11, 2, 0), of_defgen(64, 0, 4000, 0, 1), of_defgen(140, 0, 8, 0, 0), of_defgen(64, 6, 8, 0, 0)
('INT64(11,2)', 'ASCII_V(4000) LOB', 'TYPE_140(8)', 'TYPE_64_6(8)')
>>> spark_type(parse("INT64(11,2)")), spark_type(parse("DATETIME(10)")), spark_type(parse("UINT64"))
('decimal(19,2)', 'date', 'decimal(20,0)')
>>> holds(parse("INT64(11,2)"), "decimal(18,2)"), holds(parse("INT64(11,2)"), "decimal(20,3)")
(False, True)
"""

import re
from typing import NamedTuple

from inlet.table_column import DECIMAL, PLACE

ASCII_F, ASCII_V, DATETIME_CODE = 0, 64, 192
UTF16_BE, FLOAT, FIXED_PREC, BINARY, CHAR, UTF8, GUID, FLOAT_UTF8, FIXED_PREC_UTF8 = 1, 2, 3, 4, 5, 7, 8, 27, 37
MAX_PRECISION = 38
LEN_DATE = 10  # characters of YYYY-MM-DD


class Integer(NamedTuple):
    name: str
    num_bytes: int
    is_signed: bool
    num_digits: int  # of the largest value
    spark_type: str  # the narrowest that holds every value, where the scale is 0

    @property
    def num_bits(self) -> int:
        """Bits of the largest value."""
        return 8 * self.num_bytes - self.is_signed


INTEGERS = {
    130: Integer("INT16", 2, True, 5, "smallint"),
    131: Integer("UINT16", 2, False, 5, "int"),
    132: Integer("INT32", 4, True, 10, "int"),
    133: Integer("UINT32", 4, False, 10, "bigint"),
    134: Integer("INT64", 8, True, 19, "bigint"),
    135: Integer("UINT64", 8, False, 20, "decimal(20,0)"),
}
CODES = {"ASCII_F": ASCII_F, "ASCII_V": ASCII_V, "FLOAT": ASCII_V, "FIXED_PREC": ASCII_V, "DATETIME": DATETIME_CODE} | {
    integer.name: code for code, integer in INTEGERS.items()
}
NAMES = (  # by Defgen's type and sub type
    {(ASCII_F, sub): "ASCII_F" for sub in (0, CHAR, GUID)}
    | {(ASCII_V, sub): "ASCII_V" for sub in (0, UTF16_BE, BINARY, CHAR, UTF8, GUID)}
    | {(ASCII_V, sub): "FLOAT" for sub in (FLOAT, FLOAT_UTF8)}
    | {(ASCII_V, sub): "FIXED_PREC" for sub in (FIXED_PREC, FIXED_PREC_UTF8)}
    | {(code, sub): integer.name for code, integer in INTEGERS.items() for sub in (0, FIXED_PREC)}
    | {(DATETIME_CODE, 0): "DATETIME"}
)
BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63, "float": 24, "double": 53}  # of whole numbers, all exact
HOLDS = {
    "ASCII_F": {"binary"},
    "ASCII_V": {"binary"},
    "FLOAT": {*BITS},
    "FIXED_PREC": {*BITS},
    "DATETIME": {"date", "timestamp", "timestamp_ntz"},
}
WRITTEN = re.compile(rf"([A-Z]+[A-Z0-9_]*)(?:\(([0-9]{{1,9}})(?:,([0-9]{{1,2}}))?\))?( LOB)?(?:{PLACE.pattern})?")
RAW = re.compile(r"TYPE_([0-9]{1,5})(?:_[0-9]{1,5})?")


class SourceType(NamedTuple):
    name: str
    code: int  # Defgen's data type
    length: int | None  # external length in bytes; None where an integer leaves it out
    scale: int
    is_lob: bool
    place: tuple[int, int] | None = None  # in a full image: first byte, and end

    @property
    def is_raw(self) -> bool:
        """Are its bytes kept as they stand, since nothing public tells what they mean?"""
        return self.name.startswith("TYPE_")

    @property
    def integer(self) -> Integer | None:
        """Width, sign and digits, where it is a binary integer."""
        return None if self.is_raw else INTEGERS.get(self.code)


def parse(text: str) -> SourceType:
    """What a `source_type` says. Raises: ValueError."""
    match = WRITTEN.fullmatch(text)
    raw = match and RAW.fullmatch(match[1])
    if not match or not raw and match[1] not in CODES:
        raise ValueError(f"expected a GoldenGate type such as ASCII_V(150), INT64 or FIXED_PREC(50,2), found {text!r}")
    name, length, scale = match[1], int(match[2]) if match[2] else None, int(match[3] or 0)
    place = (int(match[5]), int(match[6])) if match[5] else None
    type_ = SourceType(name, int(raw[1]) if raw else CODES[name], length, scale, bool(match[4]), place)
    if length is None and not type_.integer:
        raise ValueError(f"expected the length in parentheses, like {name}(10), found {text!r}")
    if match[3] and not type_.integer and name != "FIXED_PREC":
        raise ValueError(f"expected one number, since {name} has no scale, found {text!r}")
    if place and place[0] >= place[1]:
        raise ValueError(f"expected a place whose end is behind its first byte, like AT 0:12, found {text!r}")
    if scale > MAX_PRECISION:
        raise ValueError(f"expected a scale of at most {MAX_PRECISION}, found {text!r}")
    return type_


def of_defgen(code: int, sub_type: int, length: int, scale: int, lob_type: int) -> str:
    """The `source_type` of a column that Defgen describes. In: its fields 2, 19, 3, 5 and 23. A scale is left out where
    the type has none: the text of a FLOAT and of a DATETIME tells its own. Raises: ValueError for a scale out of range.
    """
    name = NAMES.get((code, sub_type), f"TYPE_{code}_{sub_type}" if sub_type else f"TYPE_{code}")
    has_scale = name == "FIXED_PREC" or (code, sub_type) in NAMES and code in INTEGERS
    if has_scale and not 0 <= scale <= MAX_PRECISION:
        raise ValueError(f"expected a scale from 0 to {MAX_PRECISION}, found {scale}")
    numbers = f"{length},{scale}" if has_scale and scale else str(length)
    return f"{name}({numbers})" + (" LOB" if lob_type else "")


def spark_type(source_type: SourceType) -> str:
    """The type that a contract gives the column where nobody asks for another."""
    name, scale = source_type.name, source_type.scale
    if integer := source_type.integer:
        return f"decimal({max(integer.num_digits, scale)},{scale})" if scale else integer.spark_type
    if name in ("FLOAT", "FIXED_PREC"):
        return f"decimal({MAX_PRECISION},{10 if name == 'FLOAT' else scale})"
    if name == "DATETIME":
        return "date" if source_type.length == LEN_DATE else "timestamp_ntz"
    return "binary" if source_type.is_raw else "string"


def holds(source_type: SourceType, contract_type: str) -> bool:
    """May a contract give the column this type? An integer has to fit whatever its value; of decimal text, dates and
    times each value is checked. ASCII_F and ASCII_V as binary are their bytes, in no character set.
    """
    if source_type.is_raw:
        return contract_type == "binary"
    decimal = DECIMAL.fullmatch(contract_type)
    if integer := source_type.integer:
        scale = source_type.scale
        if decimal:
            return int(decimal[2]) >= scale and int(decimal[1]) - int(decimal[2]) >= max(integer.num_digits - scale, 0)
        return contract_type == "string" or not scale and integer.num_bits <= BITS.get(contract_type, 0)
    if decimal:
        return source_type.name in ("FLOAT", "FIXED_PREC")
    return contract_type == "string" or contract_type in HOLDS[source_type.name]
