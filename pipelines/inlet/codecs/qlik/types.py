"""Which type a contract gives a column of Qlik's.

Every value that the type can hold is read from JSON, from text and from Parquet by the type here. [documented] types
and how each is written; the mapping itself is [inferred] from their ranges.

BOOLEAN                  boolean
INT1, INT2, INT4, INT8   tinyint, smallint, int, bigint
UINT1, UINT2, UINT4      smallint, int, bigint: the narrowest that holds every value
UINT8                    decimal(20,0)
REAL4, REAL8             float, double
NUMERIC(p,s)             decimal(p,s), of p from 1 to 38. A scale below 0 adds digits before the point; a scale beyond
                         the precision raises the precision. Without a precision, or beyond 38 digits: string
DATE                     date
TIME                     string: a time of day has no type of its own in Spark
DATETIME                 timestamp_ntz, because its values are the source's local times; with a scale of more than 6
                         digits string, so that none is lost
STRING, WSTRING          string
CLOB, NCLOB              string; so are their sub types, and types that are not known
BYTES, BLOB              binary
Parquet has fewer types: UINT4 is stored as INT8, a BLOB as BYTES, a CLOB as a STRING [documented]; contracts give both
the same type. Its times finer than a microsecond are a DATETIME of nine digits.
>>> contract_type(Column("A", 1, "NUMERIC", 0, 10, 2, 1)), contract_type(Column("B", 2, "WSTRING", 20))
(('decimal(10,2)', 'NUMERIC(10,2)'), ('string', 'WSTRING(20)'))
"""

import pyarrow as pa

from inlet.codecs.qlik.dfm import Column
from inlet.fields.fit import MAX_DIGITS

SIMPLE = {
    "BOOLEAN": "boolean",
    "INT1": "tinyint",
    "INT2": "smallint",
    "INT4": "int",
    "INT8": "bigint",
    "UINT1": "smallint",
    "UINT2": "int",
    "UINT4": "bigint",
    "UINT8": "decimal(20,0)",
    "REAL4": "float",
    "REAL8": "double",
    "DATE": "date",
    "BYTES": "binary",
    "BLOB": "binary",
}
LARGE = ("CLOB", "NCLOB", "BLOB")  # large objects
SIZED = ("STRING", "WSTRING", "BYTES")  # whose length is theirs, and no width of display
FRACTION = 6  # digits of a second's fraction that a timestamp holds


def contract_type(column: Column) -> tuple[str, str]:
    """The Spark SQL type of a column, and Qlik's as a contract says it in `source_type`."""
    name = column.type.upper()
    if name == "NUMERIC":
        return _numeric(column.precision, column.scale)
    if name == "DATETIME":
        is_exact = column.scale <= FRACTION
        return "timestamp_ntz" if is_exact else "string", f"DATETIME({column.scale})" if column.scale > 0 else name
    said = f"{name}({column.length})" if name in SIZED and column.length > 0 else name
    return SIMPLE.get(name, "string"), said


def described(column: Column, is_text: bool) -> dict:
    """A column as a Definition has it. In: whether its values come as text, bytes as hex digits."""
    type_, source_type = contract_type(column)
    found = {"name": column.name, "type": type_, "source_type": source_type}
    return found | ({"encoding": "hex"} if is_text and type_ == "binary" else {})


def is_large(source_type: str | None) -> bool:
    """Is a column a large object, by what the contract says of its type at the source?"""
    return (source_type or "").upper().split("(")[0].strip() in LARGE


def _numeric(precision: int, scale: int) -> tuple[str, str]:
    said = f"NUMERIC({precision},{scale})"
    if precision < 1:
        return "string", said
    digits, after = max(precision, scale) if scale >= 0 else precision - scale, max(scale, 0)
    return (f"decimal({digits},{after})" if digits <= MAX_DIGITS else "string"), said


PARQUET = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "INT1",
    pa.int16(): "INT2",
    pa.int32(): "INT4",
    pa.int64(): "INT8",
    pa.uint8(): "UINT1",
    pa.uint16(): "UINT2",
    pa.uint32(): "UINT4",
    pa.uint64(): "UINT8",
    pa.float32(): "REAL4",
    pa.float64(): "REAL8",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.date32(): "DATE",
}


def of_parquet(name: str, ordinal: int, type_: pa.DataType) -> Column:
    """A column of Parquet as Qlik has it. Raises: ValueError for a type that Qlik does not write."""
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    if pa.types.is_decimal(type_):
        return Column(name, ordinal, "NUMERIC", 0, type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        return Column(name, ordinal, "DATETIME", scale=9 if type_.unit == "ns" else 0)
    if pa.types.is_time(type_):
        return Column(name, ordinal, "TIME")
    if pa.types.is_fixed_size_binary(type_):
        return Column(name, ordinal, "BYTES")
    if type_ not in PARQUET:
        raise ValueError(f"expected a type that Qlik writes into Parquet, found {type_} of column {name[:40]}")
    return Column(name, ordinal, PARQUET[type_])


FAMILIES = {  # how a value is stored in Parquet, by the type of its column
    "integer": ("INT1", "INT2", "INT4", "INT8", "UINT1", "UINT2", "UINT4", "UINT8"),
    "float": ("REAL4", "REAL8"),
    "text": ("STRING", "WSTRING", "CLOB", "NCLOB"),
    "bytes": ("BYTES", "BLOB"),
} | {name: (name,) for name in ("BOOLEAN", "DATE", "TIME", "DATETIME")}
FAMILY = {name: family for family, names in FAMILIES.items() for name in names}


def is_stored_as(column: Column, type_: pa.DataType) -> bool:
    """True if Parquet may store a column as such a type; also for types that are not known, and for a NUMERIC whose
    digits no decimal holds.

    >>> is_stored_as(Column("A", 1, "INT4"), pa.int64()), is_stored_as(Column("A", 1, "INT4"), pa.string())
    (True, False)
    """
    try:
        stored = of_parquet(column.name, column.ordinal, type_).type
    except ValueError:
        return True
    if column.type.upper() == "NUMERIC":
        return stored == "NUMERIC" or contract_type(column)[0] == "string"
    family = FAMILY.get(column.type.upper())
    return family is None or FAMILY.get(stored) == family
