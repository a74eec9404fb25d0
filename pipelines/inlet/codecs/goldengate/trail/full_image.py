"""Where the columns of a row stand in a full image: the column area of a record without Partition 0x04.

Layout    system key, SyskeyLen bytes . columns, each from its Fetch Offset on, up to the Record length of Defgen's file
Column    null indicator 2 bytes . length 2 bytes, of ASCII_V, FLOAT and FIXED_PREC alone . value . left over
Places    a column ends where the next one begins, the last one with the record; the contract has them behind the type,
          `source_type: INT64(11) AT 0:12`. A column of n bytes, indicator and length among them, takes n + 1, or one
          more where that is odd
Facts     [documented] full images are those of Delete, Insert and Update (IOType 3, 5, 10), with all columns; the
          system key stands first . [dump seen] Fetch Offsets, Record lengths and the bytes that ASCII_F, ASCII_V,
          INT64 and DATETIME take in Defgen files of Oracle and PostgreSQL; no full image . [inferred] the other types
          ASSUMED: the indicator is 0000 or FFFF, and the value stands in its place as behind the index and length of a
          list: integers high byte first, lengths in the order of the trail. Exact fit: only a column whose place has
          just the bytes that these parts take is read so
          ASSUMED: Fetch Offsets count from behind the system key, where image, key and Record length fit exactly
          ASSUMED: bytes behind a value, or behind the indicator of a NULL, mean nothing
Not known a LOB in a full image; columns without a null indicator; a delete of the key alone in this layout. They do not
          fit, and are rejected
"""

from inlet.codecs.goldengate import source_type as vendor
from inlet.table import Table

LEN_NULL, LEN_INNER = 2, 2
Why = tuple[str, str, str]  # kind of reject, expected, found


def has_inner_length(type_: vendor.SourceType) -> bool:
    """Does a length stand in front of a value of this type?"""
    return type_.code == vendor.ASCII_V and not type_.is_raw


def len_column(type_: vendor.SourceType) -> int:
    """Bytes of the longest value of a type, with null indicator and length.

    >>> [len_column(vendor.parse(text)) for text in ("ASCII_V(50)", "INT64(11)", "DATETIME(19)", "ASCII_F(2)")]
    [54, 10, 21, 4]
    """
    len_value = type_.integer.num_bytes if type_.integer else type_.length or 0
    return LEN_NULL + (LEN_INNER if has_inner_length(type_) else 0) + len_value


def record_length(version: Table) -> int | Why:
    """Bytes of the columns of a full image of a version of a contract, or why none can be read. In: a version whose
    types can be parsed.
    """
    end = 0
    for column in version.columns:
        type_ = vendor.parse(column.source_type or "")
        name = f"{version.table}.{column.name}"
        if type_.place is None:
            expected = f"places of the columns of {version.table} in a full image: `inlet import` of its Defgen file"
            return "definition_missing", expected, f"no place of {column.name}"
        start, behind = type_.place
        if start != end:
            return "unsupported_record", f"{name} at byte {end}, behind the column before", f"AT {start}:{behind}"
        if type_.is_lob:
            expected = f"{name} without LOB: how a full image holds one is not public"
            return "unsupported_record", expected, column.source_type or ""
        length = len_column(type_)
        sizes = sorted({length + 1, length + 1 + (length + 1) % 2})
        if behind - start not in sizes:
            expected = f"{name} in {' or '.join(map(str, sizes))} bytes, as a column with a null indicator takes"
            return "unsupported_record", expected, column.source_type or ""
        end = behind
    return end
