"""Are the bytes and texts of the test encoder of GoldenGate those that were published? The letters of the tests' ids
are those of the vectors in goldengate.md.
"""

import datetime as dt
import random
import re
import struct
from decimal import Decimal

import pytest

from tests import goldengate_streams, streams
from tests.encode import goldengate_logdump as logdump
from tests.encode.goldengate_columns import (
    NullWith,
    Raw,
    Table,
    char,
    compressed,
    full,
    integer,
    key_update,
    moment,
    number,
    offsets,
    varchar,
)
from tests.encode.goldengate_defgen import defgen, definition
from tests.encode.goldengate_tokens import UNKNOWN_VERSION, ddl_text, file_header, ggs_tokens, ghdr
from tests.encode.goldengate_trail import FIELD_COMP_UPDATE, METADATA, Trail

SEOUL = dt.timezone(dt.timedelta(hours=9))
MYSQL_ID = "000000000000000000007:{:015d}"
OGG_TEST = Table("test.ogg_test", (integer("id", 132, is_key=True), varchar("name", 120), moment("day", 10)))
DEMO1 = Table("TEST001.DEMO1", (number("ID", is_key=True), varchar("NAME", 20)))
TEST_F = Table(
    "test.test_f",
    (
        integer("int", 134, is_key=True, is_nullable=False, native_type=4),
        varchar("varchar", 150, native_type=12, num_chars=50),
        moment("time", 26, scale=6, native_type=11),
        char("char", 50, charset_id=0),
    ),
    is_even=False,
)

ITEMS = Table(
    "SHOP.ITEMS",
    (
        varchar("REGION", 20, is_key=True),
        integer("ITEM", is_key=True),
        varchar("NAME", 20),
        number("PRICE", 2),
        moment("MADE", 10),
        varchar("PHOTO", 20),
    ),
)


def korean(time: str) -> dt.datetime:
    return dt.datetime.strptime(f"2022-{time}", "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=SEOUL)


INSERTED_AT = korean("12-26 15:03:44.0")
G1 = """
4701 0090 4800 0030 4504 0041 001c 0fff 02f2 57bd dd23 e390 0000 0000 023c 2c10 0000 0056 0352 0000
0001 5445 5354 3030 312e 4445 4d4f 3100 4400 001c 0000 000a 0000 0000 0000 0000 0003 0001 000a 0000
0006 6e61 6d65 3333 5400 0030 5200 0014 4141 4153 6853 4141 4541 4141 4144 3941 4143 0001 4c00 0007
3133 3332 3831 3636 0000 0931 302e 322e 3230 3136 5a01 0090"""
G2 = """
4701 a200 4800 2400 450c 0041 1800 05ff 00a0 8d5a e816 f302 0700 0000 0000 0000 ea2e 0000 0352 0000
0001 0100 4400 1800 0000 0600 0000 0000 0001 0100 0a00 0000 0600 696e 7365 7274 5400 5200 4c00 2500
3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 373a 3030 3030 3030 3030 3030 3132 3034 3136 0025
0030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3037 3a30 3030 3030 3030 3030 3031 3138 3837 5a01
a200"""


def insert_of_s2(trail: Trail):
    return trail.insert(
        "test.ogg_test",
        {"id": 1, "name": "insert"},
        io_time=INSERTED_AT,
        audit_pos=7,
        audit_rba=12010,
        tokens=[("L", MYSQL_ID.format(12041)), ("6", MYSQL_ID.format(11887))],
    )


def test_g1_a_big_endian_update_with_its_name_in_the_header():
    record = Trail([DEMO1]).update(
        "TEST001.DEMO1",
        {"ID": 3, "NAME": "name33"},
        io_time=dt.datetime(2016, 4, 28, 12, 10, 10, 386832, dt.UTC),
        audit_pos=37497872,
        audit_rba=86,
        tokens=[("R", "AAAShSAAEAAAAD9AAC"), ("L", "1332816"), ("6", "10.2.2016")],
    )
    assert record.data == bytes.fromhex(G1)
    assert (record.length, record.table, record.after) == (144, "TEST001.DEMO1", {"ID": 3, "NAME": "name33"})


def test_g2_a_little_endian_insert_with_the_index_of_its_table():
    trail = Trail([OGG_TEST], "little", "index")
    record = insert_of_s2(trail)
    assert record.data == bytes.fromhex(G2)
    assert trail.files[0][1][record.rba :] == record.data
    assert [(r.header["orig_node"], r.length) for r in trail.records[:2]] == [(1, 132), (2, 259)]  # 1.1: 202 and 57


HEADERS = {
    "V1": (
        "450c 0041 1800 05ff 00a0 8d5a e816 f302 0700 0000 0000 0000 ea2e 0000 0352 0000 0001",
        dict(partition=12, rec_length=24, io_type=5, io_time=INSERTED_AT, audit_pos=7, audit_rba=12010),
    ),
    "V2": (
        "450c 0041 1800 0fff 8001 4f67 e816 f302 0700 0000 0000 0000 3430 0000 0352 0000 0001",
        dict(partition=12, rec_length=24, io_type=15, io_time=korean("12-26 15:07:18.0"), audit_pos=7, audit_rba=12340),
    ),
    "V3": (
        "450c 0042 0a00 03ff 80c7 8d6c e816 f302 0700 0000 0000 0000 6831 0000 0352 0000 0001",
        dict(partition=12, before_after="B", rec_length=10, io_type=3, audit_pos=7, audit_rba=12648)
        | {"io_time": korean("12-26 15:08:46.0")},
    ),
    "V5": (
        "450c 0041 1600 73ff 4086 8409 9a16 f302 0400 0000 0000 0000 c006 0000 0352 0000 0001",
        dict(partition=12, rec_length=22, io_type=115, io_time=korean("12-22 17:37:37.0"), audit_pos=4, audit_rba=1728),
    ),
    "V6": (
        "4500 0041 9401 a000 c051 7c31 e816 f302 0000 0000 0000 0000 0000 0000 0352 0000 0001",
        dict(partition=0, rec_length=404, io_type=160, orig_node=0, io_time=korean("12-26 14:52:15.0")),
    ),
    "V7": (
        "4500 0041 5100 aa01 6ccf ab5a e816 f302 0700 0000 0000 0000 0100 0000 0352 0000 0001",
        dict(partition=0, rec_length=81, io_type=170, orig_node=1, audit_pos=7, audit_rba=(1, 0))
        | {"io_time": korean("12-26 15:03:45.978220")},
    ),
    "V9": (
        "450c 0041 7800 05ff 6130 2dd5 5315 f302 a01f 0005 0000 0000 0000 0000 0052 0000 0001",
        dict(partition=12, rec_length=120, io_type=5, audit_pos=83894176, trans_ind=0)
        | {"io_time": korean("12-06 12:26:59.522657")},
    ),
    "V11": (
        "4500 0041 0000 aa03 4a91 15e9 5315 f302 a01f 0005 0000 0000 0100 0100 0352 0000 0001",
        dict(partition=0, io_type=170, orig_node=3, audit_pos=83894176, audit_rba=(1, 1), io_time=1670297553518922),
    ),
    "V12": (
        "4504 0041 3C00 05FF 402F AE6C 572A F102 F818 8F02 0000 0000 1000 0000 0152 0000 0001",
        dict(rec_length=60, io_type=5, audit_pos=42932472, audit_rba=16, trans_ind=1)
        | {"io_time": dt.datetime(2005, 10, 27, 22, 33, 57, tzinfo=dt.UTC)},
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_record_headers_are_as_published(name):
    data, fields = HEADERS[name]
    assert ghdr(fields, b"", "<") == bytes.fromhex(data)


AREAS = {
    "S5": (
        DEMO1,
        ">",
        {"ID": 3, "NAME": "name33"},
        "0000 000a 0000 0000 0000 0000 0003 0001 000a 0000 0006 6e61 6d65 3333",
    ),
    "S2": (OGG_TEST, "<", {"id": 1, "name": "insert"}, "0000 0600 0000 0000 0001 0100 0a00 0000 0600 696e 7365 7274"),
    "S3": (
        OGG_TEST,
        "<",
        {"id": 10, "name": "aaa", "day": dt.date(2022, 12, 22)},
        "0000 0600 0000 0000 000a 0100 0700 0000 0300 6161 6102 000c 0000 0032 3032 322d 3132 2d32 32",
    ),
    "S4": (
        TEST_F,
        "<",
        {"int": 1, "char": "!test!".ljust(50)},
        "0000 0a00 0000 0000 0000 0000 0001 0300 3600 0000 3200 2174 6573 7421" + 44 * "20",
    ),
}


@pytest.mark.parametrize("name", AREAS)
def test_column_areas_are_as_published(name):
    table, order, image, data = AREAS[name]
    assert compressed(table, image, order) == bytes.fromhex(data)


def test_s3_a_key_update_is_as_published():
    data = "0a00 0000 0600 0000 0000 000a 0000 0600 0000 0000 0009"
    assert key_update(OGG_TEST, {"id": 10}, {"id": 9}, "<") == bytes.fromhex(data)


def test_nulls_have_two_bytes_or_keep_more_behind_their_indicator():
    image = {"name": None, "day": NullWith(b"0000-00-00")}
    assert compressed(OGG_TEST, image, "<") == bytes.fromhex("0100 0200 ffff 0200 0c00 ffff") + b"0000-00-00"


def test_a_scaled_integer_is_big_endian_in_any_trail():
    table = Table("T", (integer("PRICE", 132, scale=3),))
    assert compressed(table, {"PRICE": Decimal("2.2")}, "<")[4:] == bytes.fromhex("0000 0000 0898")


FILE_HEADERS = {
    "S9": (
        "3000 0337 3000 0008 4747 0d0a 544c 0a0d 3100 0002 0006 3200 0004 2000 0000 3300 0008"
        "02f2 9daf 3d9e 3966 3400 002c 002a 7572 693a 6c6f 6361 6c68 6f73 743a 6c6f 6361 6c64 6f6d 6169 6e3a 3a75 3032"
        "3a67 6761 7465 3a50 554d 5032 3500 002f 3500 002b 0029 7572 693a",
        {
            "compatibility": 6,
            "created_at": dt.datetime(2018, 10, 5, 14, 6, 58, 451814, dt.UTC),
            "uri": "uri:localhost:localdomain::u02:ggate:PUMP2",
            "uri_history": ["uri:localhost:localdomain::u02:ggate:EXT2"],
        },
        1450,
        823,
    ),
    "S5": (
        "3000 01c0 3000 0008 4747 0d0a 544c 0a0d 3100 0002 0003 3200 0004 2000 0000 3300 0008"
        "02f2 57bd dd5e c9b0 3400 001e 001c 7572 693a 682d 3762 3667 3467 7178 3a3a 6461"
        "7461 3a6f 6767 7465 7374 3500 0022 3500 001e 001c 7572",
        {
            "compatibility": 3,
            "created_at": dt.datetime(2016, 4, 28, 12, 10, 14, 246832, dt.UTC),
            "uri": "uri:h-7b6g4gqx::data:oggtest",
            "uri_history": ["uri:h-7b6g4gqx::data:oggtest"],
            "file_name": "./dirdat/ra000000",
        },
        1055,
        448,
    ),
}


@pytest.mark.parametrize("name", FILE_HEADERS)
def test_file_headers_begin_as_published(name):
    """What the rest of the group and the other groups hold was not published: tokens fill it up to its length."""
    data, facts, length, len_group = FILE_HEADERS[name]
    unfilled = struct.unpack_from(">H", file_header(facts, ">"), 6)[0]
    facts = facts | {"more": [("=", bytes(len_group - unfilled - 4))]}
    written = file_header(
        facts, ">", [("1", [("0", bytes(length - len_group - 12))])] if length - len_group > 12 else ()
    )
    beginning = bytes.fromhex(data)
    assert written[4 : 4 + len(beginning)] == beginning
    assert (written[:4], written[-4:]) == (
        b"F\0" + struct.pack(">H", length + 8),
        b"Z\0" + struct.pack(">H", length + 8),
    )
    file_name = bytes.fromhex("3600 0013 0011 2e2f 6469 7264 6174 2f72 6130")
    assert (file_name in written) == (name == "S5")


DDL_OF_S2 = (
    ("C5", "000000000000000000007:000000000010444"),
    ("B7", ""),
    ("B2", "0"),
    ("C21", ""),
    ("B3", "test"),
    ("B4", "ogg_test"),
    ("C12", ""),
    ("C13", ""),
    ("B5", "TABLE"),
    ("B6", "CREATE"),
    ("B8", "GGSUSER"),
)


def test_ggs_tokens_are_as_published():
    rowid, csn, transaction = ("R", "AAAShSAAEAAAAD9AAC"), ("L", "1332816"), ("6", "10.2.2016")
    assert ggs_tokens([rowid, csn, transaction], ">") == bytes.fromhex(
        "5200 0014 4141 4153 6853 4141 4541 4141 4144 3941 4143 0001 4c00 0007"
        "3133 3332 3831 3636 0000 0931 302e 322e 3230 3136"
    )
    assert ggs_tokens([("R", "AAAHeaAAFAAAAAOAAC")], "<") == bytes.fromhex(
        "5200 1400 4141 4148 6561 4141 4641 4141 4141 4F41 4143 0001"
    )


def test_s2_tokens_and_text_of_ddl_are_as_published():
    place = MYSQL_ID.format(10444)
    owner, ids = ("D", ("test", "ogg_test", *UNKNOWN_VERSION)), [("L", place), ("6", place)]
    tokens = ggs_tokens([("6", place), ("L", place), owner, ("t", ""), *ids], "<")
    assert len(tokens) == 223
    assert b"test\0ogg_test\0UNKNOWNVERSION\0UNKNOWNVERSIONCOMPAT\0\x4e" + bytes.fromhex("74010000") in tokens
    assert ddl_text(DDL_OF_S2).startswith(
        b",C5='000000000000000000007:000000000010444',,B7='',,B2='0',,C21='',,B3='test',,B4='ogg_test',,C12='',,C13='',"
        b",B5='TABLE',,B6='CREATE',,B8='GGSUSER"
    )


S2_TEXT = """\
TokenID x47 'G' Record Header    Info x01  Length  162
TokenID x48 'H' GHDR             Info x00  Length   36
 450c 0041 1800 05ff 00a0 8d5a e816 f302 0700 0000 | E..A.......Z........
 0000 0000 ea2e 0000 0352 0000 0001 0000           | .........R......
TokenID x44 'D' Data             Info x00  Length   24
TokenID x54 'T' GGS Tokens       Info x00  Length   82
TokenID x5a 'Z' Record Trailer   Info x01  Length  162
___________________________________________________________________
Hdr-Ind    :     E  (x45)     Partition  :     .  (x0c)
UndoFlag   :     .  (x00)     BeforeAfter:     A  (x41)
RecLength  :    24  (x0018)   IO Time    : 2022/12/26 15:03:44.000.000
IOType     :     5  (x05)     OrigNode   :   255  (xff)
TransInd   :     .  (x03)     FormatType :     R  (x52)
SyskeyLen  :     0  (x00)     Incomplete :     .  (x00)
AuditRBA   :      12010       AuditPos   : 7
Continued  :     N  (x00)     RecCount   :     1  (x01)

2022/12/26 15:03:44.000.000 Insert               Len    24 RBA 6571
Name: test.ogg_test  (TDR Index: 1)
After  Image:                                             Partition x0c   G  s
 0000 0600 0000 0000 0001 0100 0a00 0000 0600 696e | ..................in
 7365 7274                                         | sert
Column 0 (0x0000), Length 6 (0x0006).
 0000 0000 0001                                    | ......
Column 1 (0x0001), Length 10 (0x000a).
 0000 0600 696e 7365 7274                          | ....insert

GGS tokens:
TokenID x4c 'L' LOGCSN           Info x00  Length   37
 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 | 00000000000000000000
 373a 3030 3030 3030 3030 3030 3132 3034 31        | 7:000000000012041
TokenID x36 '6' TRANID           Info x00  Length   37
 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 | 00000000000000000000
 373a 3030 3030 3030 3030 3030 3131 3838 37        | 7:000000000011887
"""


def test_the_text_of_logdump_is_as_published():
    trail = Trail([OGG_TEST], "little", "index")
    record = insert_of_s2(trail)
    text = logdump.logdump([record], logdump.Style(zone=dt.timedelta(hours=9)))
    assert text == S2_TEXT.replace("RBA 6571", f"RBA {record.rba}")


def test_logdump_of_old_releases_cuts_and_glues():
    trail = Trail([DEMO1])
    record = trail.key_update(
        "TEST001.DEMO1", {"ID": 1}, {"ID": 2, "NAME": "x" * 20}, io_time=0, tokens=[("L", "1332816")]
    )
    style = logdump.Style(19, False, "on", 20, prompt="Logdump {} >n", separator=":")
    lines = logdump.logdump([record], style).splitlines()
    assert lines[0] == "Logdump 1 >n" + 67 * "_"
    assert lines[10:] == [
        "1970/01/01 00:00:00.000.000 GGSPKUpdate          Len    58 RBA 142",
        "Name: TEST001.DEMO1",
        "After  Image:                                             Partition 4   G  s",
        " 000e 0000 000a 0000 0000 0000 0000 0001 0000 000a : ....................",
        "Before Image Len 16 (x00000010)",
        "KeyLen 14 (x0000000e)",
        "KeyCol     0 (x0000), Len    10 (x000a)",
        " 0000 0000 0000 0000 0001                          : ..........",
        "After Image Len 42 (x0000002a)",
        "Column     0 (x0000), Len    10 (x000a)",
        " 0000 0000 0000 0000 0002                          : ..........",
        "Column     1 (x0001), Len    24 (x0018)",
        " 0000 0014 7878 7878 7878 7878 7878 7878 7878 7878 : ....xxxxxxxxxxxxxxxx",
        "",
        "GGS tokens:",
        " 4c00 0007 3133 3332 3831 36                       : L...1332816",
    ]


def test_the_definition_of_s4_is_as_published():
    assert definition(TEST_F) == [
        "Definition for table test.test_f",
        "Record length: 350",
        "Syskey: 0",
        "Columns: 4",
        "int      134     23        0  0  0 0 0      8      8      8 0 0 0 0 1    0 1   0    4       -1      0 0 0",
        "varchar   64    150       11  0  0 1 0    150    150      0 0 0 0 0 1    0 0   0   12       -1     50 0 0",
        "time     192     26      166  6  0 1 0     26     26     26 0 6 0 0 1    0 0   0   11       -1      0 0 0",
        "char      64    150      195  0  0 1 0    150    150      0 0 0 0 0 1    0 0   5    1        0     50 0 0",
        "End of definition",
    ]


@pytest.mark.parametrize(("version", "num_fields"), [("5.0", 24), ("2.0", 18)])
def test_a_defgen_file_has_the_fields_of_its_version(version, num_fields):
    lines = defgen([TEST_F, OGG_TEST], version).splitlines()
    assert lines[0] == f"*+- Defgen version {version}, Encoding UTF-8"
    assert {len(line.split()) for line in lines if line.startswith(("varchar ", "name "))} == {num_fields}
    assert sum(line.startswith("*  ") for line in lines) == num_fields + 1


def test_columns_of_a_full_image_take_what_s28_shows():
    sizes = {varchar("C", 1): 6, varchar("C", 2): 8, varchar("C", 9): 14, varchar("C", 20): 26, varchar("C", 50): 56}
    sizes |= {number("C"): 12, moment("C", 19): 22, moment("C", 29): 32}
    assert {column: offsets(Table("T", (column,)))[-1] for column in sizes} == sizes
    table = Table("T", (number("ID"), varchar("NAME", 2)))
    assert full(table, {"ID": 1, "NAME": None}, ">") == bytes.fromhex("0000 0000000000000001 0000 ffff 000000000000")


def test_a_trail_begins_each_file_with_its_header_and_defines_what_it_uses():
    """Definitions are numbered in the order of the file; a table of the same columns is a reference (6, S4)."""
    twin = OGG_TEST._replace(name="test.twin")
    trail = Trail([OGG_TEST, twin], "little", "index", seqno=7)
    trail.insert("test.ogg_test", {"id": 1})
    trail.insert("test.twin", {"id": 1})
    trail.roll()
    trail.insert("test.twin", {"id": 2})
    kinds = [
        (r.seqno, r.header["io_type"], r.header["orig_node"], r.header["audit_rba"], r.tdr_index) for r in trail.records
    ]
    assert kinds == [
        (7, 170, 1, (1, 0), None),
        (7, 170, 2, (1, 1), 1),
        (7, 5, 255, 0, 1),
        (7, 170, 3, (1, 1), 1),
        (7, 5, 255, 0, 2),
        (8, 170, 1, (1, 0), None),
        (8, 170, 2, (1, 1), 1),
        (8, 5, 255, 0, 1),
    ]
    assert [name for name, _ in trail.files] == ["ra000000007", "ra000000008"]
    for record, data in zip(trail.records, [trail.files[r.seqno - 7][1] for r in trail.records]):
        assert data[record.rba :].startswith(record.data)


def test_a_row_in_pieces_is_the_area_of_the_row():
    trail = Trail([DEMO1])
    area = trail.image("TEST001.DEMO1", {"ID": 3, "NAME": "name33"})
    pieces = trail.segments("TEST001.DEMO1", FIELD_COMP_UPDATE, [area[:7], area[7:9], area[9:]])
    assert b"".join(piece.area for piece in pieces) == area
    facts = [tuple(r.header[n] for n in ("rec_count", "continued", "trans_ind", "rec_length")) for r in pieces]
    assert facts == [(1, 1, 0, 7), (2, 1, 1, 2), (3, 0, 2, 19)]


def test_a_record_has_what_is_said_of_it():
    """An update that a NonStop node backs out, with its system key and user tokens; D, U, T follow each other."""
    trail = Trail([DEMO1], has_header=False)
    fields = {"undo_flag": 1, "hdr_ind": "X", "orig_node": 4, "format_type": "F"}
    trail.update("TEST001.DEMO1", {"ID": 1}, b"KEY!", user=b"?", tokens=[("x", b"")], **fields)
    assert trail.files[0][1] == bytes.fromhex(
        "4701 005f 4800 0030 5804 0141 0012 0f04 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0346 0400"
        "0001 5445 5354 3030 312e 4445 4d4f 3100 4400 0012 4b45 5921 0000 000a 0000 0000 0000 0000 0001 5500"
        "0001 3f54 0000 0478 0000 005a 0100 5f"
    )


def test_other_operations_have_their_codes_and_bits():
    """Unified updates with both widths of their prefix, of which one is a key update; an unknown IOType."""
    trail, new = Trail([OGG_TEST], "little", "index"), {"id": 2, "name": "b"}
    old = new | {"name": Raw(b"\1\0a")}
    records = [
        trail.unified_update("test.ogg_test", old, new, 2),
        trail.unified_update("test.ogg_test", {"id": 1}, new, 4),
        trail.upsert("test.ogg_test", new),
        trail.lob_chunk("test.ogg_test", b"opaque"),
        trail.row(199, "test.ogg_test"),
        *trail.update_in_two("test.ogg_test", old, new),
    ]
    names = ("io_type", "partition", "before_after", "trans_ind")
    assert [tuple(r.header[n] for n in names) for r in records] == [
        (134, 0x4C, "A", 3),
        (135, 0x4C, "A", 3),
        (140, 0x0C, "A", 3),
        (116, 0x0C, "A", 3),
        (199, 0x0C, "A", 3),
        (15, 0x0C, "B", 0),
        (15, 0x0C, "A", 2),
    ]
    row = compressed(OGG_TEST, new, "<")
    assert records[0].area == struct.pack("<H", len(row)) + compressed(OGG_TEST, old, "<") + row
    assert records[1].area == bytes.fromhex("0a000000 0000 0600 0000 0000 0001") + row


def test_byte_orders_may_differ_between_headers_and_files():
    trail = Trail([DEMO1], "little", header_order="big")
    trail.roll("big")
    trail.insert("TEST001.DEMO1", {"ID": 1})
    header = trail.files[0][1]
    assert header[2:4] == header[-2:] == struct.pack(">H", len(header))
    assert trail.records[0].data[2:4] == struct.pack(">H", trail.records[0].length)
    text = logdump.file_header(header, dt.datetime(2026, 1, 2, tzinfo=dt.UTC)).splitlines()
    assert text[1] == f"2026/01/02 00:00:00.000.000 FileHeader           Len {len(header) - 8:>5} RBA 0"


def test_random_trails_hold_whole_transactions_and_what_was_given_up():
    """Files are walked by nothing but the lengths of records (1.2)."""
    seen = set()
    for seed in range(40):
        sent = goldengate_streams.random_trail(random.Random(seed))
        indicators = {}
        for seqno, (_, data) in enumerate(sent.trail.files):
            order, at = sent.trail.order, struct.unpack_from(">H", data, 2)[0]
            while at < len(data):
                length = struct.unpack_from(order + "H", data, at + 2)[0]
                io_type, trans_ind = data[at + 14], data[at + 36]
                seen.add(io_type)
                assert data[at : at + 1] + data[at + length - 4 : at + length - 3] == b"GZ"
                if io_type != METADATA:
                    indicators[seqno, at, length] = trans_ind
                at += length
        other = [(r.seqno, r.rba, r.length) for r in [*sent.controls, *sent.abandoned]]
        placed = [place for change in sent.changes for place in change["places"]]
        assert sorted(other + placed) == sorted(indicators)
        assert len(placed) == len(set(placed)) and placed == sorted(placed)
        runs = "".join(str(indicators[place]) for place in placed)
        assert re.fullmatch("(01*2|3)*", runs)
        assert runs.count("2") + runs.count("3") == sum(change["last"] for change in sent.changes)
    assert seen == {3, 5, 15, 100, 115, 134, 135, 140, 150, 151, 160, 170}


def test_a_random_stream_is_sent_as_it_is():
    """The stream that gold is held to the reference with; a key update of 115 keeps the key of before only,
    an upsert nothing of it."""
    rng = random.Random(5)
    changes = streams.stream(rng, length=60, loads=0)
    transactions = goldengate_streams.transactions_of(changes)
    sent = goldengate_streams.send(rng, Trail([ITEMS], "little"), transactions, goldengate_streams.How())
    rows = [change for change in changes if change.op in ("INSERT", "UPDATE", "UPSERT", "DELETE", "TRUNCATE")]
    assert [(c["operation"], c["after"]) for c in sent.changes] == [(c.op, c.after) for c in rows]
    for change, row in zip(sent.changes, rows):
        key_only = row.before and {name: row.before[name] for name in ITEMS.key}
        assert change["before"] in ((None,) if row.op == "UPSERT" else (row.before, key_only))
