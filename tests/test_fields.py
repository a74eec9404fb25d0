"""Fields: the plain functions against tables of values, the compiled ones against the plain ones, VARIANT against Spark."""

import datetime
import doctest
import importlib
import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.variant_utils import VariantUtils

from inlet.errors import REJECT_KINDS
from inlet.fields import charset, date, interpreter, number, variant
from inlet.fields.wrong import Wrong

MODULES = ("charset", "date", "jef", "number", "sql_type", "variant")
CHARSETS = ("cp932", "euc_jp", "ascii", "utf_8", "ebcdic_kana", "ebcdic_ascii", "ebcdic_lower", "jef", "utf_16_be", "utf_16_le")
settings.register_profile("quick", max_examples=100, deadline=None)
settings.load_profile("quick")


def compiled(data: bytes, little: bool = False, name: str = "ascii", **fields):
    """One item through the interpreter: its VARIANT value bytes as Python, or (kind, offset) of its fault."""
    set_ = charset.charset(name)
    plan = np.zeros((1, interpreter.NUM_PLAN), np.int64)
    for field, value in {"WIDTH": len(data), "MODE": set_.mode, **fields}.items():
        plan[0, getattr(interpreter, field)] = value
    out, lengths, faults = np.zeros(4 * len(data) + 100, np.uint8), np.zeros(1, np.int64), np.zeros((1, 3), np.int64)
    interpreter.images(np.frombuffer(data or b"\0", np.uint8), np.array([0]), np.array([len(data)]), np.array([0]), plan,
                       np.array([0, 1]), np.array([little, 0, 0, 0]), set_.single[None], set_.double[None],
                       interpreter.scratch_of(plan), out, lengths, faults)
    if faults[0, 0]:
        return interpreter.FAULTS[faults[0, 0]], int(faults[0, 1])
    return out[:lengths[0]].tobytes()


def plain(function, *arguments):
    """The same by the plain function and the plain VARIANT writer."""
    try:
        return variant.encode({"x": function(*arguments)})[0]
    except Wrong as wrong:
        return wrong.kind, wrong.offset


@pytest.mark.parametrize("name", MODULES)
def test_doctests_hold(name):
    assert doctest.testmod(importlib.import_module(f"inlet.fields.{name}")).failed == 0


def test_every_fault_is_a_kind_of_reject():
    assert set(interpreter.FAULTS[1:]) <= set(REJECT_KINDS)


# numbers

nibbles = st.lists(st.integers(0, 9), min_size=1, max_size=39)


@given(st.binary(min_size=1, max_size=20), st.integers(0, 1))
def test_packed_of_any_bytes(data, even):
    precision = max(2 * len(data) - 1 - even, 1)
    if precision > 38:
        return
    assert compiled(data, ENCODING=interpreter.PACKED, DIGITS=precision, SCALE=1) == plain(number.packed, data, precision, 1)


@given(nibbles, st.sampled_from("ABCDEF"), st.integers(0, 38))
@example([9] * 38, "D", 38)
@example([0, 1] + [0] * 18, "C", 18)
@example([1] + [0] * 18, "D", 0)
def test_packed_of_digits(digits, sign, scale):
    data = bytes.fromhex("".join(map(str, digits)).rjust(len(digits) | 1, "0") + sign)
    precision = min(max(len(digits), 1), 38)
    scale = min(scale, precision)
    assert compiled(data, ENCODING=interpreter.PACKED, DIGITS=precision, SCALE=scale) == plain(number.packed, data, precision, scale)


@given(st.text("0123456789", min_size=1, max_size=38), st.sampled_from(["+9", "-9", "9+", "9-", "9", "9T", "9d", "9?", "+"]), st.booleans())
def test_zoned(digits, form, is_ebcdic):
    text = form.replace("9", digits)
    data = text.encode("cp037" if is_ebcdic else "ascii")
    separate = form[0] in "+-" or form[-1] in "+-"
    precision = len(data) - separate
    if 0 < precision <= 38:
        assert compiled(data, ENCODING=interpreter.ZONED, DIGITS=precision, SCALE=0) == plain(number.zoned, data, precision)


@given(st.binary(min_size=2, max_size=12), st.booleans())
def test_zoned_of_any_bytes(data, separate):
    precision = len(data) - separate
    assert compiled(data, ENCODING=interpreter.ZONED, DIGITS=precision, SCALE=0) == plain(number.zoned, data, precision)


@given(st.sampled_from((2, 4, 8)).flatmap(lambda n: st.binary(min_size=n, max_size=n)), st.sampled_from(("big", "little")))
def test_integer(data, byte_order):
    assert compiled(data, byte_order == "little", ENCODING=interpreter.INTEGER) == plain(number.integer, data, byte_order)


@given(st.sampled_from((4, 8)).flatmap(lambda n: st.binary(min_size=n, max_size=n)), st.sampled_from(("big", "little")))
def test_ieee(data, byte_order):
    value = compiled(data, byte_order == "little", ENCODING=interpreter.IEEE)[-len(data):]
    expected = number.ieee(data, byte_order)
    assert value == (data if byte_order == "little" else data[::-1])
    assert struct.unpack("<f" if len(data) == 4 else "<d", value)[0] == expected or expected != expected


@given(st.sampled_from((4, 8)).flatmap(lambda n: st.binary(min_size=n, max_size=n)))
def test_hex_float(data):
    assert compiled(data, ENCODING=interpreter.HEX_FLOAT) == plain(number.hex_float, data)


@pytest.mark.parametrize("text, value", [("42640000", 100.0), ("c1180000", -1.5), ("434d200000000000", 1234.0), ("00000000", 0.0)])
def test_hex_float_values(text, value):
    assert number.hex_float(bytes.fromhex(text)) == value


# dates

ymd = st.builds(lambda y, m, d: struct.pack(">HBB", y, m, d), st.integers(0, 10001), st.integers(0, 13), st.integers(0, 32))
hms = st.builds(lambda h, m, s: bytes([h, m, s]), st.integers(0, 24), st.integers(0, 60), st.integers(0, 60))


@given(ymd)
@example(bytes.fromhex("07d0021d"))
@example(bytes.fromhex("076c021d"))
def test_date(data):
    assert compiled(data, ENCODING=interpreter.DATE) == plain(date.date, data, "big")


def test_every_day_of_the_calendar_is_counted_right():
    day, last = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
    while day <= last - datetime.timedelta(1000):
        data = struct.pack(">HBB", day.year, day.month, day.day)
        assert compiled(data, ENCODING=interpreter.DATE) == variant.encode({"x": day})[0]
        day += datetime.timedelta(997)


@given(hms, st.sampled_from((b"", bytes(4), b"\0\0\1\0")))
def test_time(data, reserved):
    assert compiled(data + reserved, ENCODING=interpreter.TIME) == plain(date.time, data + reserved)


@given(ymd, hms, st.sampled_from((b"", bytes(4), b"\1\0\0\0")))
def test_timestamp(day, data, reserved):
    assert compiled(day + data + reserved, ENCODING=interpreter.TIMESTAMP) == plain(date.timestamp, day + data + reserved, "big")


# text

def likely(name: str):
    """Bytes that mostly mean something in the set, cut anywhere."""
    pieces = {"ebcdic": st.sampled_from([b"\xc1", b"\x28", b"\x29", b"\x38", b"\xbb\xb3", b"\x40", b"\x40\x40", b"\x80\xa1", b"\x41\xa1", b"\x01"]),
              "utf_8": st.one_of(st.text(min_size=1, max_size=3).map(str.encode), st.binary(min_size=1, max_size=2)),
              "cp932": st.sampled_from([b"A", b"\xb1", b"\x8e\x52", b"\x82", b"\xf0\x40", b"\xfd", b"\x80"])}
    piece = pieces.get(name.split("_")[0] if name.startswith("ebcdic") else name, st.binary(min_size=2, max_size=2))
    return st.lists(piece, max_size=40).map(b"".join)


@pytest.mark.parametrize("name", CHARSETS)
@settings(max_examples=60)
@given(st.data())
def test_text(name, data):
    text = data.draw(st.one_of(likely(name), st.binary(max_size=100)))
    assert compiled(text, name=name, ENCODING=interpreter.TEXT) == plain(charset.text, text, charset.charset(name))


@given(st.text(" \u3000Aあ", max_size=30))
def test_stripped_text(text):
    data = text.encode()
    assert compiled(data, name="utf_8", ENCODING=interpreter.TEXT, STRIP=1) == variant.encode({"x": text.rstrip(" \u3000")})[0]


@pytest.mark.parametrize("name, data, text", [
    ("ebcdic_kana", "818283", "ｱｲｳ"), ("ebcdic_ascii", "818283", "abc"), ("ebcdic_lower", "8182834A5B", "abc£\\"),
    ("jef", "b0a2", "啞"), ("ebcdic_kana", "28404029", "\u3000"), ("ebcdic_kana", "2880a129", "\ue000"), ("cp932", "815ff040b1", "＼\ue000ｱ"),
    ("euc_jp", "bbb38eb1", "山ｱ"), ("jef", "b7e4", "\U00028ef6"), ("ebcdic_kana", "28bbb3", "山"), ("ebcdic_kana", "2840", " "),
])
def test_characters(name, data, text):
    assert charset.text(bytes.fromhex(data), charset.charset(name)) == text


def test_the_standard_area_of_jef_is_that_of_euc():
    pairs = charset.charset("jef", "modern").double
    euc = charset.charset("euc_jp").double
    assert int((pairs[0xA1A1:] == euc[0xA1A1:])[euc[0xA1A1:] >= 0].sum()) > 6700


# VARIANT

decimals = st.decimals(allow_nan=False, allow_infinity=False, places=5).filter(lambda d: len(d.as_tuple().digits) <= 38)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2**63, 2**63 - 1), decimals, st.floats(allow_nan=False), st.text(max_size=80),
                    st.binary(max_size=70), st.dates(), st.datetimes())
values = st.recursive(scalars, lambda v: st.one_of(st.lists(v, max_size=4), st.dictionaries(st.text(max_size=5), v, max_size=5)), max_leaves=12)


@given(values)
@example({f"c{n}": n for n in range(300)})
@example([0] * 300)
@example({"a": "x" * 70000})
def test_variant_comes_back(value):
    assert variant.decode(*variant.encode(value)) == value


def spark_reads(value) -> bool:
    """Spark's Python reader fails on empty texts and rounds decimals of more than 28 digits; its JVM reader does neither."""
    return value not in ("", b"") and not (isinstance(value, Decimal) and len(value.as_tuple().digits) > 28)


@given(st.dictionaries(st.text(min_size=1, max_size=5), scalars.filter(spark_reads), max_size=5))
@example({f"c{n:03}": n for n in range(300)})
@example({"a": Decimal("-1.50"), "b": Decimal("12345678901234567890.12345")})
def test_spark_reads_the_same(value):
    assert VariantUtils.to_python(*variant.encode(value)) == value


@pytest.mark.parametrize("value, text", [
    (None, "00"), (True, "04"), (False, "08"), (-1, "0cff"), (128, "108000"), (2**31, "180000008000000000"),
    (Decimal("1.50"), "20029600" + "0000"), (Decimal(10)**18, "2800000064a7b3b6e00d" + "00" * 8), ("é", "09c3a9"),
    (datetime.date(1970, 1, 2), "2c01000000"), (b"\x01", "3c0100000001"), ({}, "020000"), (2**63, "2800" + "0000000000000080" + "00" * 8),
])
def test_variant_bytes(value, text):
    assert variant.encode(value)[0].hex() == text


@pytest.mark.parametrize("value", [Decimal("1E38"), Decimal("0." + "0" * 38 + "1"), 10**39, Decimal("NaN"), object()])
def test_variant_refuses_what_it_cannot_hold_exactly(value):
    with pytest.raises(ValueError):
        variant.encode(value)
