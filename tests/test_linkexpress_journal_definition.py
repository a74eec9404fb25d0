"""`inlet import` of acquisition and distribution definitions of usage journals: what they make is read, what inlet.yml
lacks is told, and what contradicts it or is not understood is refused by its line.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from inlet import cli, config
from inlet.codecs.linkexpress.journal import files as codec
from inlet.commands import import_settings
from inlet.errors import ConfigError
from inlet.source import Source
from tests import projects
from tests.encode.linkexpress_journal import Change, Checkpoint, How, encode_file

SHOP = """\
-- the shop's journals
LOGFMT SHOPFMT                                   -- 店
  SYSITEM TJNLDBOP, TJNLTIME, TJNLRESOURCE
  TABLE SHOPDB.SHOP.EMP (
      id : ID INTEGER, name : NAME NATIONAL CHARACTER VARYING ( 10 ),
      "数量":"Qty" DECIMAL(7, 2),
      memo : MEMO VARCHAR(MAX) CONV=(SIZE(300)) )
  SYSITEM TJNLTRNID, TJNLSTS
  TABLE SHOPDB.SHOP.社員 ( 番号 : 番号 SMALLINT )
  DSI SHOPDB.SHOP.EMP DSI_1, DSI_2
  CHECKPOINT DAYEND, W*
  COMMENT "all; -- that there is" ;
"""
QUEUE = """\
[QUEUE]                # of the shop
  Name = SHOPQ
  logfmt = SHOPFMT
  COMPRESS= YES        # what was not updated is left out
  Pack =
  OutCode = GS_KANA
"""
SIMPLE = """\
SIMPLEFMT EMPFMT SYSITEM TJNLSYSALL TABLE DB.SHOP.EMP ALL;
CREATE TABLE SHOP.EMP (ID INTEGER NOT NULL, NAME CHAR(4), PRIMARY KEY (ID));
"""
EMP = "LOGFMT F SYSITEM TJNLRESOURCE, TJNLDBOP\nTABLE S.T (\n{columns}\n);"


def source(tables: dict | None = None, **options) -> Source:
    given = {
        "name": "shop",
        "codec": "linkexpress_journal",
        "from": "landing",
        "options": {"source_tz": "Asia/Tokyo"} | options,
    }
    return Source(**given, tables=tables or {})


def columns(text: str, encoding: str = "utf-8", **options) -> list[tuple]:
    return [
        (f"{d.source_schema}.{d.source_table}", [(c["name"], c["type"], c["source_type"]) for c in d.columns], d.key)
        for d in codec.definitions_of(text.encode(encoding), "a.def", source(**options))
    ]


def told(*texts: str, tables: dict | None = None, **options) -> tuple[dict, list[str]]:
    """What inlet.yml lacks, and the notes."""
    files = [(f"{n}.def", text.encode()) for n, text in enumerate(texts)]
    of = source(tables, **options)
    fields = {"codec": of.codec, "from": of.path, "options": of.options, "tables": of.tables}
    lines = import_settings.lines(of, files, {name: value for name, value in fields.items() if value})
    notes = [line for line in lines if line.startswith("note: ")]
    whole = [yaml.safe_load(line.split(":\n", 1)[1])["sources"]["shop"] for line in lines if "lacks" in line]
    if not whole:
        return {}, notes
    assert whole[0] | {"options": 0, "tables": 0} == fields | {"options": 0, "tables": 0}
    new = {name: value for name, value in whole[0]["options"].items() if of.options.get(name) != value}
    lacking = {"options": new, "tables": {} if whole[0].get("tables", {}) == of.tables else whole[0]["tables"]}
    return {name: value for name, value in lacking.items() if value}, notes


@pytest.mark.parametrize("encoding", ["utf-8", "cp932"])
def test_an_acquisition_definition_gives_the_columns_of_its_tables(encoding):
    emp = [("ID", "int", "INTEGER"), ("NAME", "string", "NVARCHAR(10)"), ("Qty", "decimal(7,2)", "DECIMAL(7,2)")]
    assert columns(SHOP, encoding) == [
        ("SHOP.EMP", [*emp, ("MEMO", "string", "VARCHAR(300)")], []),
        ("SHOP.社員", [("番号", "smallint", "SMALLINT")], []),
    ]
    assert columns(QUEUE) == []


def test_a_definition_that_is_written_otherwise_is_the_same():
    otherwise = """LOGFMT SHOPFMT TABLE shop.emp(id:id INT,name:name NCHAR VARYING(10),"数量":"Qty" DEC(7,2),memo:memo
        VARCHAR(300)) TABLE SHOP."社員" (番号:番号 SMALLINT) SYSITEM TJNLDBOP,TJNLTIME,TJNLRESOURCE,TJNLTRNID,TJNLSTS
        CHECKPOINT *;"""
    assert columns(otherwise) == columns(SHOP) and told(otherwise) == told(SHOP)


@pytest.mark.parametrize(
    ("written", "type_", "source_type"),
    [
        ("CHARACTER(3)", "string", "CHARACTER(3)"),
        ("NCHAR(2)", "string", "NCHAR(2)"),
        ("VARCHAR2(9)", "string", "VARCHAR(9)"),
        ("NVARCHAR(MAX) CONV = ( SIZE ( 5 ) )", "string", "NVARCHAR(5)"),
        ("NUMBER(7)", "int", "INTEGER"),
        ("NUMBER(7,2)", "decimal(7,2)", "NUMERIC(7,2)"),
        ("NUMERIC(5)", "decimal(5,0)", "NUMERIC(5)"),
        ("FLOAT(23)", "float", "REAL"),
        ("FLOAT(53)", "double", "DOUBLE"),
        ("DOUBLE PRECISION", "double", "DOUBLE"),
        ("DATETIME2(3)", "timestamp_ntz", "TIMESTAMP"),
        ("TIME(0)", "string", "TIME"),
        ("DATE", "date", "DATE"),
        ("BINARY(2K)", "binary", "BINARY(2048)"),
        ("INTERVAL DAY(3) TO SECOND", "string", "INTERVAL DAY(3) TO SECOND"),
    ],
)
def test_types_are_those_that_journals_have(written, type_, source_type):
    assert columns(EMP.format(columns=f"c: C {written}")) == [("S.T", [("C", type_, source_type)], [])]


def test_a_simple_definition_takes_what_it_leaves_out_from_create_table():
    emp = ("SHOP.EMP", [("ID", "int", "INTEGER"), ("NAME", "string", "CHARACTER(4)")], ["ID"])
    assert columns(SIMPLE) == [emp]
    assert columns(SIMPLE.replace("ALL;", "( NAME, e: ID );")) == [("SHOP.EMP", emp[1][::-1], ["ID"])]
    assert columns(SIMPLE.replace("ALL;", "( NAME CHAR(8) );")) == [
        ("SHOP.EMP", [("NAME", "string", "CHARACTER(8)")], [])
    ]


def test_what_definitions_say_of_the_source_is_told_where_inlet_yml_lacks_it():
    tables = {"EMP": "SHOP.EMP", "社員": "SHOP.社員"}
    sysitems = ["DBOP", "TIME", "RESOURCE", "TRNID", "STS"]
    found = {"sysitems": sysitems, "compressed": "yes", "charset": "gs_kana", "has_checkpoint": "yes"}
    assert told(SHOP, QUEUE)[0] == {"options": found, "tables": tables}
    assert told(SHOP, QUEUE, tables=tables, **found) == ({}, [])
    assert told(SHOP, QUEUE, tables=tables, **found | {"charset": "ebcdic_kana", "sysitems": sysitems}) == ({}, [])
    assert told(SHOP, tables={"EMP": "SHOP.EMP"}, **found) == ({"tables": tables}, [])
    assert told(SHOP, tables={"*": "SHOP.*"}, **found | {"has_checkpoint": "auto", "framing": "message_body"}) == (
        {"options": {"has_checkpoint": "yes"}},
        [],
    )
    stream = {"charset": "gs_kana", "sysitems": sysitems, "framing": "journal_stream", "validity_order": "native"}
    assert told(SHOP, tables=tables, **stream) == ({}, [])


def test_what_definitions_leave_open_is_a_note():
    options, notes = told(SIMPLE, QUEUE.replace("SHOPFMT", "EMPFMT").replace("GS_KANA", "UNICODE") + "MsgLen = 9")
    assert options["options"]["sysitems"] == ["TIME", "TRNID", "STS", "DBKIND", "DBOP", "STORAGE", "RESOURCE"]
    assert options["options"]["has_checkpoint"] == "no" and "charset" not in options["options"]
    assert [note.partition(": ")[2][:40] for note in notes] == [
        "option charset is missing. Text tells no",
        "1.def, line 6: OutCode UNICODE: say whic",
        "1.def, line 1: msglen of [Queue] says no",
        "TJNLSYSALL gives no order: sysitems is t",
        "no definition tells the byte order of va",
    ]
    assert "option source_tz is missing" in told(SHOP, source_tz=None)[1][0]
    known = ["RESOURCE", "STORAGE", "TIME", "TRNID", "STS", "DBKIND", "DBOP"]
    assert "sysitems" not in told(SIMPLE, sysitems=known)[0]["options"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sysitems": ["RESOURCE", "DBOP"]}, "sysitems is [RESOURCE, DBOP], and 0.def, line 3: SYSITEM says [DBOP,"),
        ({"compressed": "no"}, "compressed is no, and 1.def, line 4: Compress says yes"),
        ({"charset": "cp932"}, "charset is cp932, and 1.def, line 6: OutCode says gs_kana"),
        ({"has_checkpoint": "no", "framing": "mq_message"}, "has_checkpoint is no, and 0.def, line 11: CHECKPOINT"),
        ({"tables": {"EMP": "HR.EMP"}}, "tables has {EMP: HR.EMP}, and 0.def, line 2: SHOPFMT {EMP: SHOP.EMP, 社員"),
        ({"tables": {"社員": "SHOP.社員", "EMP": "SHOP.EMP"}}, "the order too"),
        ({"tables": {"EMP": "SHOP.EMP", "OLD": "SHOP.OLD"}}, "or give the definition that they have"),
    ],
)
def test_what_contradicts_inlet_yml_is_refused(given, said):
    with pytest.raises(ConfigError) as error:
        told(SHOP, QUEUE, **given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.def holds neither LOGFMT, SIMPLEFMT nor [Queue]"),
        ("logfmt F;", "a.def, line 1: expected LOGFMT, SIMPLEFMT, CREATE TABLE or [Queue], found logfmt. Keywords are"),
        (
            "LOGFMT F\nTABLE S.T (A INT)",
            "line 2: expected SYSITEM or TABLE or DSI or CHECKPOINT or COMMENT or ;, found the end",
        ),
        ("LOGFMT F\n;", "line 1: F has no TABLE"),
        ("LOGFMT F TABLE T (A INT);", "line 1: expected SCHEMA.TABLE or DATABASE.SCHEMA.TABLE, found T"),
        ("LOGFMT F\nTABLE D.S.T RES (A INT);", "line 2: expected ( and the columns, or ALL, found RES. What no public"),
        ("LOGFMT F COMMENT no;", "line 1: expected a text in double quotes, found no"),
        ("LOGFMT F TABLE S.TABLE (A INT);", "expected the name of a schema or table, found TABLE"),
        (SHOP + SHOP, "line 14: a second definition, SHOPFMT. Give the definitions of the source's own queue alone"),
        (EMP.format(columns="c: C CHAR(3),\nd: D MONEY"), "line 4: S.T.D: type 'MONEY' is not supported: it is none"),
        (EMP.format(columns="C VARCHAR"), "type 'VARCHAR' is not supported: it needs its length"),
        (
            EMP.format(columns="C VARCHAR(MAX)"),
            "expected CONV=(SIZE(n)) behind VARCHAR(MAX), the size that is acquired",
        ),
        (EMP.format(columns="C CHAR(3) CONV=(X)"), "line 3: expected no edit but CONV=(SIZE(n)), behind VARCHAR(MAX)"),
        (EMP.format(columns="C FLOAT(24)"), "write REAL or DOUBLE PRECISION"),
        (EMP.format(columns="C NUMBER"), "type 'NUMBER' is not supported: it needs its digits"),
        (EMP.format(columns="C INTERVAL YEAR TO MONTH"), "Write it as INTERVAL DAY(3) TO SECOND"),
        (EMP.format(columns="C"), "line 3: S.T.C has no type, and there is no CREATE TABLE"),
        (EMP.format(columns="C INT,\nx: C INT"), "line 4: S.T.C stands there twice"),
        (SIMPLE.replace("ALL;", "( OTHER );"), "SHOP.EMP.OTHER is no column of its CREATE TABLE"),
        (SIMPLE.split("CREATE")[0], "line 1: ALL columns, and no CREATE TABLE SHOP.EMP"),
        (
            "LOGFMT F TABLE A.T (A INT)\nTABLE B.T (A INT);",
            "line 2: B.T and, in line 1, A.T: a journal names its table by T",
        ),
        ("[Route]", "line 1: expected [Queue], found [Route]"),
        ("[Queue]\nName", "line 2: expected KEYWORD = value, found Name"),
        ("[Queue]\nName = A\nNAME = B", "line 3: NAME stands in its section twice"),
    ],
)
def test_what_cannot_be_read_names_its_line_and_what_to_do(text, said):
    with pytest.raises(ConfigError) as error:
        columns(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ((SHOP, SIMPLE), "1.def, line 1: a second definition"),
        ((QUEUE, QUEUE), "1.def, line 1: a second definition"),
        ((SIMPLE, QUEUE), "1.def, line 3: Logfmt is SHOPFMT, 0.def has EMPFMT"),
        ((QUEUE.replace("YES", "MAYBE"),), "0.def, line 4: Compress: expected YES or NO, found MAYBE"),
        (
            (SHOP.replace("SYSITEM TJNLTRNID", "SYSITEM TJNLTIME"),),
            "line 8: expected a system item that is not there yet",
        ),
        ((SHOP.replace("TJNLDBOP, ", ""),), "line 3: SYSITEM of SHOPFMT lacks TJNLDBOP"),
        (("LOGFMT F TABLE A.T (A INT);",), "line 1: SYSITEM of F lacks TJNLDBOP"),
    ],
)
def test_definitions_that_no_source_can_have_are_refused(texts, said):
    with pytest.raises(ConfigError) as error:
        told(*texts)
    assert said in str(error.value)


def inlet(root, *words) -> str:
    result = CliRunner().invoke(cli.app, [*map(str, words), "--project", f"{root}"])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_definition_of_the_docs_says_what_they_print(tmp_path):
    page = Path(__file__).resolve().parents[1] / "docs" / "a_source_from_zero.md"
    definition, printed = (
        re.search(rf"```{kind}\n(.*?)```", page.read_text().split("## Linkexpress usage journals")[1], re.DOTALL)[1]
        for kind in ("sql", "console")
    )
    shop = {"codec": "linkexpress_journal", "from": "landing/*.jnl", "options": {"source_tz": "Asia/Tokyo"}}
    projects.make(tmp_path, {"shop": shop}, is_unfinished=True)
    (tmp_path / "shop.def").write_text(definition)
    expected = printed.split("\n", 1)[1].removesuffix("...\n")
    assert inlet(tmp_path, "import", tmp_path / "shop.def", "--source", "shop").startswith(expected)


def test_journals_are_read_by_what_their_definitions_say(tmp_path):
    """Untagged, so that nothing but the definitions tells where items are; later with one more column."""
    shop = {"codec": "linkexpress_journal", "from": "landing/*.dat", "options": {"source_tz": "Asia/Tokyo"}}
    projects.make(tmp_path, {"shop": shop}, [{**projects.ITEMS, "sources": ["elsewhere"]}], is_unfinished=True)
    (tmp_path / "shop.def").write_text(
        SHOP + "CREATE TABLE SHOP.EMP (ID INT NOT NULL, NAME NCHAR VARYING(10),\n"
        '"Qty" DEC(7,2) NOT NULL, MEMO VARCHAR(900), PRIMARY KEY (ID));\n'
    )
    (tmp_path / "queue.def").write_text(QUEUE)
    files = tmp_path / "shop.def", tmp_path / "queue.def"
    said = inlet(tmp_path, "import", *files)
    whole = said.split("Write the source so:\n")[1].split("note:")[0]
    (tmp_path / "pipelines" / "inlet.yml").write_text(whole)
    known = config.load(tmp_path)
    assert {(t.table, t.name, tuple(t.key)) for t in known.tables.values()} == {
        ("DEPOT.ITEMS", "items", ("ITEM_ID",)),
        ("SHOP.EMP", "emp", ("ID",)),
        ("SHOP.社員", "shop_table", ()),
    }
    assert "lacks" not in inlet(tmp_path, "import", *files) and config.load(tmp_path).tables == known.tables

    how = How(
        tagged=False,
        compressed=True,
        charset="ebcdic_kana",
        numeric_sign="overpunch",
        has_checkpoint=True,
        sysitems=("DBOP", "TIME", "RESOURCE", "TRNID", "STS"),
    )
    layout = {
        "EMP": [("ID", "INTEGER"), ("NAME", "NVARCHAR(10)"), ("Qty", "DECIMAL(7,2)"), ("MEMO", "VARCHAR(300)")],
        "社員": [("番号", "SMALLINT")],
    }
    row = {"ID": 1, "NAME": "山田", "Qty": 2, "MEMO": None}
    journals = [Change("EMP", "insert", row), Change("社員", "delete", {"番号": 7}), Checkpoint("DAYEND")]
    (tmp_path / "shop_20260102120405.dat").write_bytes(encode_file(journals, layout, how))
    rows = [json.loads(line) for line in inlet(tmp_path, "decode", tmp_path / "shop_20260102120405.dat").splitlines()]
    images = [one.get("after") or one.get("before") for one in rows[:2]]
    assert images == [{"ID": 1, "NAME": "山田", "Qty": "2.00", "MEMO": None}, {"番号": 7}], rows

    (tmp_path / "shop.def").write_text(SHOP.replace("SMALLINT )", "SMALLINT, 名: 名前 NCHAR(4) )"))
    refused = CliRunner().invoke(cli.app, ["import", f"{tmp_path}/shop.def", "--project", f"{tmp_path}"])
    assert "Say it with --since YYYYMMDDHHmmSS" in f"{refused.exception}"
    inlet(tmp_path, "import", tmp_path / "shop.def", "--since", "20260201000000")
    assert [v.column_names for v in config.load(tmp_path).tables["SHOP.社員"].versions] == [["番号"], ["番号", "名前"]]
