"""Types of GoldenGate: what a source_type may say, and what a contract may make of it."""

import pytest

from inlet.codecs.goldengate import source_type
from inlet.table_column import TableColumn

TYPES = [
    "ASCII_F(10)",
    "ASCII_V(150)",
    "ASCII_V(4000) LOB",
    "FLOAT(50)",
    "FIXED_PREC(50)",
    "FIXED_PREC(50,2)",
    "INT16",
    "UINT16(6)",
    "INT32(11)",
    "UINT32",
    "INT64(23,4)",
    "INT64(8,38)",
    "UINT64(20)",
    "DATETIME(10)",
    "DATETIME(29)",
    "TYPE_140(8)",
    "TYPE_64_6(10) LOB",
    "ASCII_V(150) AT 11:166",
    "ASCII_V(4000) LOB AT 0:4006",
]


@pytest.mark.parametrize("text", TYPES)
def test_the_type_that_a_contract_gets_is_one_that_holds_every_value(text):
    type_ = source_type.parse(text)
    contract_type = source_type.spark_type(type_)
    assert TableColumn(name="C", type=contract_type).type == contract_type and source_type.holds(type_, contract_type)


@pytest.mark.parametrize("code", [0, 64, 128, 130, 131, 132, 133, 134, 135, 140, 191, 192, 195])
@pytest.mark.parametrize("sub_type", range(14))
def test_what_defgen_says_is_read_back(code, sub_type):
    type_ = source_type.parse(source_type.of_defgen(code, sub_type, 19, 3, 1))
    assert (type_.code, type_.length, type_.is_lob) == (code, 19, True)
    assert type_.scale == (3 if type_.integer or type_.name == "FIXED_PREC" else 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VARCHAR(10)", "a GoldenGate type such as"),
        ("ascii_v(10)", "a GoldenGate type such as"),
        ("ASCII_V(10)  LOB", "a GoldenGate type such as"),
        ("INT64()", "a GoldenGate type such as"),
        ("ASCII_V", "the length in parentheses"),
        ("TYPE_140", "the length in parentheses"),
        ("ASCII_V(10,2)", "ASCII_V has no scale"),
        ("DATETIME(29,6)", "DATETIME has no scale"),
        ("FIXED_PREC(50,39)", "a scale of at most 38"),
        ("INT64 AT 12:12", "a place whose end is behind its first byte"),
        ("INT64 AT 12", "a GoldenGate type such as"),
    ],
)
def test_what_is_no_type_says_what_is(text, expected):
    with pytest.raises(ValueError, match=expected):
        source_type.parse(text)


@pytest.mark.parametrize(
    ("text", "held", "not_held"),
    [
        ("ASCII_V(9)", ["string", "binary"], ["int", "decimal(9,0)", "date"]),
        ("FLOAT(50)", ["tinyint", "bigint", "double", "decimal(5,2)", "string"], ["date", "binary", "boolean"]),
        ("INT16", ["smallint", "int", "float", "decimal(5,0)", "decimal(7,2)"], ["tinyint", "decimal(4,0)", "date"]),
        ("UINT16", ["int", "decimal(5,0)"], ["smallint"]),
        ("INT32", ["int", "bigint", "double"], ["smallint", "float"]),
        ("UINT32", ["bigint", "decimal(10,0)"], ["int"]),
        ("INT64", ["bigint", "decimal(19,0)", "string"], ["int", "double", "decimal(18,0)", "timestamp"]),
        ("UINT64", ["decimal(20,0)"], ["bigint", "decimal(20,1)"]),
        ("INT64(11,2)", ["decimal(19,2)", "decimal(20,3)"], ["bigint", "decimal(19,3)", "decimal(18,1)", "double"]),
        ("INT16(6,6)", ["decimal(6,6)"], ["decimal(6,5)"]),
        ("DATETIME(29)", ["date", "timestamp", "timestamp_ntz", "string"], ["bigint", "decimal(14,0)", "binary"]),
        ("TYPE_140(8)", ["binary"], ["string", "double"]),
    ],
)
def test_which_types_a_contract_may_give_a_column(text, held, not_held):
    type_ = source_type.parse(text)
    assert [t for t in held + not_held if source_type.holds(type_, t)] == held
