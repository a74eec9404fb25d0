"""VARIANT: a self-describing value as two binaries, `value` and `metadata` (the dictionary of member names).

Integers take the fewest bytes that hold them, decimals keep their scale, a naive datetime is a timestamp without a
zone. What VARIANT cannot hold exactly (more than 38 digits) is a ValueError, never a rounded number.

Source: Apache Parquet, VariantEncoding.md, version 1.
>>> decode(*encode({"b": Decimal("1.50"), "a": None}))
{'a': None, 'b': Decimal('1.50')}
>>> metadata(["A", "B"]).hex()
'11020001024142'
"""

import datetime
import struct
from decimal import Decimal
from itertools import accumulate

NULL, TRUE, FALSE, INT1, INT2, INT4, INT8, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16, DATE = range(12)
TIMESTAMP, TIMESTAMP_NTZ, FLOAT, BINARY, LONG_STRING = range(12, 17)
SHORT_STRING_MAX = 63
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def encode(value) -> tuple[bytes, bytes]:
    """A Python value -> (value bytes, metadata bytes). Objects hold their members `in_order`. Raises: ValueError."""
    found: set[str] = set()
    _collect_names(value, found)
    names = in_order(found)
    return _value(value, {name: i for i, name in enumerate(names)}), metadata(names)


def decode(value: bytes, metadata: bytes):
    """(value bytes, metadata bytes) -> the Python value. Raises: ValueError for a type that this version lacks."""
    return _read(value, 0, _dictionary(metadata))


def in_order(names) -> list[str]:
    """Names as an object holds them: Spark looks a member up by halves and compares UTF-16, where U+20000 comes before
    U+FF21.
    """
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def metadata(names: list[str]) -> bytes:
    """The dictionary of member names. In: names, unique, `in_order`."""
    texts = [name.encode() for name in names]
    ends = _ends(texts)
    width = _width(max(ends[-1], len(texts)))
    header = 0x01 | (texts == sorted(texts)) << 4 | width - 1 << 6  # version 1, sorted by bytes, bytes per offset
    return b"".join([bytes([header]), len(texts).to_bytes(width, "little"), _ints(ends, width), *texts])


def _collect_names(value, names: set[str]) -> None:
    if isinstance(value, dict):
        names.update(value)
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        _collect_names(member, names)


def _ends(texts: list[bytes]) -> list[int]:
    """Where each text ends when they stand one behind the other, 0 first."""
    return list(accumulate(map(len, texts), initial=0))


def _primitive(kind: int, data: bytes = b"") -> bytes:
    return bytes([kind << 2]) + data


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _ints(numbers, width: int) -> bytes:
    return b"".join(n.to_bytes(width, "little") for n in numbers)


def _value(value, ids: dict) -> bytes:
    if value is None:
        return _primitive(NULL)
    for type_, write in WRITERS:
        if isinstance(value, type_):
            return write(value, ids)
    raise ValueError(f"expected a value that VARIANT can hold, found {type(value).__name__}")


def _bool(value, ids):
    return _primitive(TRUE if value else FALSE)


def _int(value, ids):
    for kind, width in ((INT1, 1), (INT2, 2), (INT4, 4), (INT8, 8)):
        if -1 << 8 * width - 1 <= value < 1 << 8 * width - 1:
            return _primitive(kind, value.to_bytes(width, "little", signed=True))
    return _decimal(Decimal(value), ids)


def _decimal(value, ids):
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"expected a number, found {value}")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    for kind, most, width in ((DECIMAL4, 9, 4), (DECIMAL8, 18, 8), (DECIMAL16, 38, 16)):
        if unscaled < 10**most and scale <= most:
            signed = -unscaled if sign else unscaled
            return _primitive(kind, bytes([scale]) + signed.to_bytes(width, "little", signed=True))
    raise ValueError(f"expected at most 38 digits, found {value}")


def _float(value, ids):
    return _primitive(DOUBLE, struct.pack("<d", value))


def _text(value, ids):
    data = value.encode()
    if len(data) <= SHORT_STRING_MAX:
        return bytes([len(data) << 2 | 1]) + data
    return _primitive(LONG_STRING, len(data).to_bytes(4, "little") + data)


def _binary(value, ids):
    return _primitive(BINARY, len(value).to_bytes(4, "little") + bytes(value))


def _timestamp(value, ids):
    kind, naive = TIMESTAMP_NTZ, value
    if value.tzinfo is not None:
        kind, naive = TIMESTAMP, value.astimezone(datetime.UTC).replace(tzinfo=None)
    return _primitive(kind, ((naive - EPOCH) // MICROSECOND).to_bytes(8, "little", signed=True))


def _date(value, ids):
    return _primitive(DATE, (value - EPOCH.date()).days.to_bytes(4, "little", signed=True))


def _object(value, ids):
    names = in_order(value)
    members = [_value(value[name], ids) for name in names]
    ends = _ends(members)
    len_size, len_id, len_end = 4 if len(names) > 255 else 1, _width(max(len(ids) - 1, 0)), _width(ends[-1])
    header = (len_size == 4) << 6 | len_id - 1 << 4 | len_end - 1 << 2 | 2
    return b"".join(
        [
            bytes([header]),
            len(names).to_bytes(len_size, "little"),
            _ints((ids[name] for name in names), len_id),
            _ints(ends, len_end),
            *members,
        ]
    )


def _array(value, ids):
    members = [_value(member, ids) for member in value]
    ends = _ends(members)
    len_size, len_end = 4 if len(members) > 255 else 1, _width(ends[-1])
    header = (len_size == 4) << 4 | len_end - 1 << 2 | 3
    return b"".join([bytes([header]), len(members).to_bytes(len_size, "little"), _ints(ends, len_end), *members])


WRITERS = (  # bool before int and datetime before date: Python makes them subclasses
    (bool, _bool),
    (int, _int),
    (Decimal, _decimal),
    (float, _float),
    (str, _text),
    ((bytes, bytearray), _binary),
    (datetime.datetime, _timestamp),
    (datetime.date, _date),
    (dict, _object),
    ((list, tuple), _array),
)


def _dictionary(data: bytes) -> list[str]:
    width = (data[0] >> 6) + 1
    size = _uint(data, 1, width)
    ofs_text = 1 + (size + 2) * width
    ends = [ofs_text + _uint(data, 1 + (i + 1) * width, width) for i in range(size + 1)]
    return [data[a:b].decode() for a, b in zip(ends, ends[1:])]


def _uint(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")


def _sint(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little", signed=True)


def _read(data: bytes, at: int, names: list[str]):
    basic, info = data[at] & 3, data[at] >> 2
    if basic == 1:
        return data[at + 1 : at + 1 + info].decode()
    if basic == 2:
        return _read_object(data, at, names, info)
    if basic == 3:
        return _read_array(data, at, names, info)
    if info not in READERS:
        raise ValueError(f"expected a VARIANT primitive 0-{LONG_STRING}, found {info}")
    return READERS[info](data, at + 1)


def _read_object(data, at, names, info) -> dict:
    len_size, len_id, len_end = 4 if info & 16 else 1, (info >> 2 & 3) + 1, (info & 3) + 1
    size = _uint(data, at + 1, len_size)
    ofs_ids = at + 1 + len_size
    ofs_ends = ofs_ids + size * len_id
    ofs_values = ofs_ends + (size + 1) * len_end
    return {
        names[_uint(data, ofs_ids + i * len_id, len_id)]: _read(
            data, ofs_values + _uint(data, ofs_ends + i * len_end, len_end), names
        )
        for i in range(size)
    }


def _read_array(data, at, names, info) -> list:
    len_size, len_end = 4 if info & 4 else 1, (info & 3) + 1
    size = _uint(data, at + 1, len_size)
    ofs_ends = at + 1 + len_size
    ofs_values = ofs_ends + (size + 1) * len_end
    return [_read(data, ofs_values + _uint(data, ofs_ends + i * len_end, len_end), names) for i in range(size)]


def _read_decimal(data, at, width) -> Decimal:
    unscaled = _sint(data, at + 1, width)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -data[at]))


def _read_timestamp(data, at) -> datetime.datetime:
    return EPOCH + _sint(data, at, 8) * MICROSECOND


READERS = {
    NULL: lambda data, at: None,
    TRUE: lambda data, at: True,
    FALSE: lambda data, at: False,
    INT1: lambda data, at: _sint(data, at, 1),
    INT2: lambda data, at: _sint(data, at, 2),
    INT4: lambda data, at: _sint(data, at, 4),
    INT8: lambda data, at: _sint(data, at, 8),
    DOUBLE: lambda data, at: struct.unpack_from("<d", data, at)[0],
    FLOAT: lambda data, at: struct.unpack_from("<f", data, at)[0],
    DECIMAL4: lambda data, at: _read_decimal(data, at, 4),
    DECIMAL8: lambda data, at: _read_decimal(data, at, 8),
    DECIMAL16: lambda data, at: _read_decimal(data, at, 16),
    DATE: lambda data, at: EPOCH.date() + datetime.timedelta(days=_sint(data, at, 4)),
    TIMESTAMP: lambda data, at: _read_timestamp(data, at).replace(tzinfo=datetime.UTC),
    TIMESTAMP_NTZ: _read_timestamp,
    BINARY: lambda data, at: data[at + 4 : at + 4 + _uint(data, at, 4)],
    LONG_STRING: lambda data, at: data[at + 4 : at + 4 + _uint(data, at, 4)].decode(),
}
