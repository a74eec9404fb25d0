"""Does the test encoder of Qlik's change tables write what was captured, and what is documented?"""

import io
import json
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from tests.encode import qlik as messages
from tests.encode import qlik_change_table as ct
from tests.encode.qlik_change_table import Column, Layout, Options, Table
from tests.encode.qlik_dfm import dfm

SAMPLE = Table(
    "EDW",
    "SAMPLE",
    (
        Column("SAMPLE_ID", "INT4", 10, key=1),
        Column("SAMPLE_NAME", "STRING", 100),
        Column("EDW_INSERTED_DTM", "DATETIME"),
        Column("EDW_UPDATED_DTM", "DATETIME"),
    ),
)
THREE = Layout(headers=("change_seq", "change_oper", "timestamp"))
SAMPLE_ROW = {
    "operation": "INSERT",
    "change_seq": "20210915031230320000000000000000041",
    "change_timestamp": "2021-10-08 13:12:31.320000",
    "after": {
        "SAMPLE_ID": 4,
        "SAMPLE_NAME": "Sample 4",
        "EDW_INSERTED_DTM": "2021-12-01 11:20:30.4444444",
        "EDW_UPDATED_DTM": "2021-12-01 11:20:31.4444444",
    },
}
SAMPLE_TEXT = b"""\
header__change_seq,header__change_oper,header__timestamp,SAMPLE_ID,SAMPLE_NAME,EDW_INSERTED_DTM,EDW_UPDATED_DTM
20210915031230320000000000000000041,I,2021-10-08 13:12:31.320000,4,"Sample 4",2021-12-01 11:20:30.4444444,\
2021-12-01 11:20:31.4444444
"""
SAMPLE_DFM = r"""{"dfmVersion":"1.1",
 "taskInfo":{"name":"","sourceEndpoint":"","sourceEndpointType":"","sourceEndpointUser":"","replicationServer":"",
  "operation":""},
 "fileInfo":{"name":"20211201-112233444.csv","extension":"gz","location":"incoming/cubic/ods_qlik/EDW.SAMPLE__ct",
  "startWriteTimestamp":"","endWriteTimestamp":"","firstTransactionTimestamp":null,"lastTransactionTimestamp":null,
  "content":"data","recordCount":2,"errorCount":0},
 "formatInfo":{"format":"delimited","options":{"fieldDelimiter":",","recordDelimiter":"\n","nullValue":"",
  "quoteChar":"\"","escapeChar":""}},
 "dataInfo":{"sourceSchema":"EDW","sourceTable":"SAMPLE","targetSchema":"EDW","targetTable":"SAMPLE__ct",
  "tableVersion":1,"columns":[
  {"ordinal":1,"name":"header__change_seq","type":"STRING","length":35,"precision":0,"scale":0,"primaryKeyPos":0},
  {"ordinal":2,"name":"header__change_oper","type":"STRING","length":1,"precision":0,"scale":0,"primaryKeyPos":0},
  {"ordinal":3,"name":"header__timestamp","type":"DATETIME","length":0,"precision":0,"scale":0,"primaryKeyPos":0},
  {"ordinal":4,"name":"SAMPLE_ID","type":"INT4","length":10,"precision":0,"scale":0,"primaryKeyPos":1},
  {"ordinal":5,"name":"SAMPLE_NAME","type":"STRING","length":100,"precision":0,"scale":0,"primaryKeyPos":0},
  {"ordinal":6,"name":"EDW_INSERTED_DTM","type":"DATETIME","length":0,"precision":0,"scale":0,"primaryKeyPos":0},
  {"ordinal":7,"name":"EDW_UPDATED_DTM","type":"DATETIME","length":0,"precision":0,"scale":0,"primaryKeyPos":0}]}}"""
CAPTURED = """\
20240709184733000000000000027283097,U,010000,1386;638561476558915130;20240318104726661087B|\
00000004.4a30a2eb.00000001.0007.01.0000:65611.488390.16,UPDATE,13001600000000000000000000000000,\
2024-07-09T18:47:33.000Z,71,71108548
20240709184733000000000000027283097,B,,1386;638561476558915130;20240318104726661087B|\
00000004.4a30a2eb.00000001.0007.01.0000:65611.488390.16,BEFOREIMAGE,13001600000000000000000000000000,\
2024-07-09T18:47:33.000Z,71,71108548
"""


def wide(num: int) -> Table:
    """A table of columns of text, the first of which is its key."""
    return Table("S", "T", tuple(Column(f"C{n}", key=int(n == 1)) for n in range(1, num + 1)))


def update(table: Table, *changed: int) -> dict:
    """An update of all columns, of which some differ, by their places from 1 on."""
    before = {column.name: "1" for column in table.columns}
    return {"operation": "UPDATE", "before": before, "after": before | {f"C{n}": "2" for n in changed}}


def mask_of(table: Table, change: dict, layout: Layout = ct.CHANGES):
    return ct.rows(table, [change], layout)[0][layout.headers.index("change_mask")]


@pytest.mark.parametrize(
    ("num_columns", "changed", "expected"),
    [(9, (5, 7), "2800"), (347, (345, 346, 347), "0380" + 43 * "00"), (10, (10,), "010000")],
)
def test_masks_of_captured_rows_of_a_change_table(num_columns, changed, expected):
    table = wide(num_columns)
    assert mask_of(table, update(table, *changed)) == expected


@pytest.mark.parametrize(
    ("num_columns", "names", "expected"),
    [(4, "124", "0B"), (3, "2", "02"), (3, "123", "07"), (3, "", "00"), (3, "13", "05"), (16, "", "000000")],
)
def test_masks_of_captured_and_documented_messages(num_columns, names, expected):
    """As wide as they were captured: leading zero bytes stay."""
    columns = [str(n) for n in range(1, num_columns + 1)]
    assert messages.mask(set(names), columns) == expected


def test_a_mask_counts_the_header_columns_that_are_there_and_no_lobs():
    table = Table("S", "T", (Column("ID", "INT4", key=1), Column("DOC", "CLOB"), Column("N", "INT4")))
    change = {"operation": "UPDATE", "before": {"ID": 1, "DOC": "a", "N": 1}, "after": {"ID": 1, "DOC": "b", "N": 2}}
    assert mask_of(table, change) == "0200" and mask_of(table, change, Layout(headers=("change_mask",))) == "08"


def test_masks_by_operation():
    table = wide(2)
    row = {"C1": "1", "C2": None}
    changes = [
        {"operation": "INSERT", "after": row},  # every column that was inserted, null or not
        {"operation": "DELETE", "before": row},  # the key
        {"operation": "TRUNCATE"},
        update(table, 1),
    ]
    found = ct.rows(table, changes)
    assert [(row[1], row[2], row[4]) for row in found] == [
        ("I", "0180", "INSERT"),
        ("D", "80", "DELETE"),
        ("T", None, "TRUNCATE"),
        ("U", "80", "UPDATE"),
        ("B", None, "BEFOREIMAGE"),
    ]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Layout(mask_form="binary"), b"\x00\x28"),
        (Layout(mask_form="binary", mask_order="big"), b"\x28\x00"),
        (Layout(mask_form="base64"), "ACg="),
        (Layout(mask_form="binary", num_mask_bytes=4), b"\x00\x28\x00\x00"),
        (Layout(num_mask_bytes=4), "00002800"),
    ],
)
def test_forms_of_masks(layout, expected):
    assert mask_of(wide(9), update(wide(9), 5, 7), layout) == expected


def test_the_captured_pair_of_rows():
    table = Table("S", "T", (Column("ISI_DC_CODE"), Column("ISI_ITEM_CODE"), *(Column(f"C{n}") for n in range(3, 11))))
    row = {column.name: "1" for column in table.columns} | {"ISI_DC_CODE": "71", "ISI_ITEM_CODE": "71108548"}
    change = {
        "operation": "UPDATE",
        "change_seq": "20240709184733000000000000027283097",
        "stream_position": "1386;638561476558915130;20240318104726661087B|"
        "00000004.4a30a2eb.00000001.0007.01.0000:65611.488390.16",
        "transaction_id": "13001600000000000000000000000000",
        "change_timestamp": "2024-07-09T18:47:33.000Z",
        "before": row,
        "after": row | {"C10": "2"},
    }
    found = ct.delimited(table, ct.rows(table, [change]), options=Options(quoted="needed")).decode()
    assert [",".join(line.split(",")[:9]) for line in found.splitlines()] == CAPTURED.splitlines()


def test_the_captured_text_and_its_sidecar():
    found = ct.rows(SAMPLE, [SAMPLE_ROW], THREE)
    assert ct.delimited(SAMPLE, found, THREE, Options(head="names")) == SAMPLE_TEXT
    says = dfm(
        SAMPLE,
        2,
        THREE,
        file="20211201-112233444.csv.gz",
        location="incoming/cubic/ods_qlik/EDW.SAMPLE__ct",
        content="data",
        operation="",
    )
    assert json.loads(says) == json.loads(SAMPLE_DFM) and list(json.loads(says)) == list(json.loads(SAMPLE_DFM))


def test_the_documented_line_of_json():
    table = Table(
        "S",
        "BOOKS",
        (
            Column("book_id", "INT4", key=1),
            Column("title"),
            Column("price", "NUMERIC", precision=5, scale=2),
            Column("is_hardcover", "BOOLEAN"),
        ),
    )
    row = {"book_id": 123, "title": "Alice in Wonderland", "price": Decimal("6.99"), "is_hardcover": False}
    found = ct.json_lines(table, ct.rows(table, [{"operation": "REFRESH", "after": row}], ct.LOAD), ct.LOAD)
    assert found == b'{ "book_id": 123, "title": "Alice in Wonderland", "price": 6.99, "is_hardcover": false }\n'


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (None, Options(), "1,"),
        ("", Options(), '1,""'),
        ('say "x"', Options(), '1,"say ""x"""'),
        ('say "x"\\', Options(escape="\\"), '1,"say \\"x\\"\\\\"'),
        ("a\nb", Options(quoted="needed"), '1,"a\nb"'),
        ("NULL", Options(null="NULL"), '1,"NULL"'),
        (None, Options(null="NULL"), "1,NULL"),
        ("a,b", Options(field_delimiter="\x01", quote=""), "1\x01a,b"),
        ("", Options(quote=""), "1,"),
        ("a", Options(record_delimiter="\r\n"), '1,"a"'),
        ("é", Options(encoding="cp1252", quoted="all"), '"1","é"'),
    ],
)
def test_cells_of_text(value, options, expected):
    table = Table("S", "T", (Column("ID", "INT4", key=1), Column("NAME")))
    change = {"operation": "REFRESH", "after": {"ID": 1, "NAME": value}}
    found = ct.delimited(table, ct.rows(table, [change], ct.LOAD), ct.LOAD, options)
    assert found == (expected + options.record_delimiter).encode(options.encoding)


def test_what_text_without_quotes_cannot_say_is_not_written():
    with pytest.raises(ValueError, match="cannot be written"):
        ct.delimited(wide(1), [["a,b"]], ct.LOAD, Options(quote=""))


def test_a_first_line_with_types_and_a_last_line_without_an_end():
    table = Table("S", "T", (Column("ID", "INT4", key=1), Column("NAME", "WSTRING", 5)))
    found = ct.delimited(table, [[1, "a"]], ct.LOAD, Options(head="names:types", ends=False))
    assert found == b'ID:INT4,NAME:WSTRING\n1,"a"'


def test_a_sparse_update_has_its_key_and_what_changed():
    layout = Layout(headers=("change_mask",), is_sparse=True)
    assert ct.rows(wide(4), [update(wide(4), 3)], layout) == [["08", "1", None, "2", None], [None, "1", "1", "1", "1"]]


def test_an_update_without_its_before_image_and_with_it_first():
    table = wide(2)
    letters = [
        [row[1] for row in ct.rows(table, [update(table, 2)], layout)]
        for layout in (Layout(), Layout(before_first=True), Layout(has_before_rows=False))
    ]
    assert letters == [["U", "B"], ["B", "U"], ["U"]]


PHYSICAL = {  # what is documented of each type
    "BOOLEAN": ("BOOLEAN", "None"),
    "INT1": ("INT32", "Int(bitWidth=8, isSigned=true)"),
    "INT2": ("INT32", "Int(bitWidth=16, isSigned=true)"),
    "INT4": ("INT32", "None"),  # INT(32, true) is what INT32 is
    "INT8": ("INT64", "None"),
    "UINT1": ("INT32", "Int(bitWidth=8, isSigned=false)"),
    "UINT2": ("INT32", "Int(bitWidth=16, isSigned=false)"),
    "UINT4": ("INT64", "None"),
    "UINT8": ("INT64", "Int(bitWidth=64, isSigned=false)"),
    "REAL4": ("FLOAT", "None"),
    "REAL8": ("DOUBLE", "None"),
    "NUMERIC": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=10, scale=2)"),
    "STRING": ("BYTE_ARRAY", "String"),
    "NCLOB": ("BYTE_ARRAY", "String"),
    "BYTES": ("BYTE_ARRAY", "None"),
    "BLOB": ("BYTE_ARRAY", "None"),
    "DATE": ("INT32", "Date"),
    "TIME": ("INT32", "Time(isAdjustedToUTC=true, timeUnit=milliseconds)"),
    "DATETIME": ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
}


def test_types_of_parquet_are_those_that_are_documented():
    table = Table("S", "T", tuple(Column(name, name, precision=10, scale=2) for name in PHYSICAL))
    found = pq.ParquetFile(io.BytesIO(ct.parquet(table, [[None] * len(PHYSICAL)], ct.LOAD))).schema
    for place, (physical, logical) in enumerate(PHYSICAL.values()):
        column = found.column(place)
        assert (column.name, column.physical_type) == (table.columns[place].name, physical)
        assert str(column.logical_type).startswith(logical)


def test_names_of_header_columns():
    layout = Layout(headers=("change_seq", "batch_modified", "partition_name"), prefix="hdr_", in_upper_case=True)
    assert [c.name for c in layout.columns(wide(1))] == [
        "HDR_CHANGE_SEQ",
        "HDR_BATCH_MODIFIED",
        "HDR_PARTITION_NAME",
        "C1",
    ]
    change = {"operation": "INSERT", "change_seq": "1", "after": {"C1": "x"}, "header": {"batch_modified": "y"}}
    assert ct.rows(wide(1), [change], layout) == [["1", "y", None, "x"]]


def test_the_same_rows_give_the_same_bytes():
    table = wide(3)
    given = ct.rows(table, [update(table, 2)])
    assert ct.parquet(table, given) == ct.parquet(table, given) and dfm(table, 2) == dfm(table, 2)
