"""`inlet import` of Linkexpress definition files: the contract that an extraction definition and its CREATE TABLE give
reads what the contract of a person reads; a changed one makes a new version.
"""

import json
import re

import pytest
import yaml
from typer.testing import CliRunner

from inlet import cli, config
from inlet.codecs import CODECS
from inlet.codecs.results import Settings
from inlet.commands import import_settings
from inlet.errors import ConfigError
from inlet.source import Source
from tests import projects
from tests.encode import linkexpress

EMP = """\
CREATE TABLE SHOP.EMP (              -- as in the data base
    ID      INTEGER NOT NULL,
    "名前"  NATIONAL CHARACTER VARYING (10) DEFAULT '(なし)',
    QTY     NUMERIC(5),
    AMT     DECIMAL(7, 2) /* yen, sen */ NOT NULL,
    AT      TIMESTAMP,
    NOTE    CHARACTER VARYING(20),
    PRIMARY KEY (ID)
);
"""
EXTRACTION = """\
# what is copied
REPNAME  = EMP_REP
REPTYPE  = COPY
DBMSKIND = SYMFO
DATABASE = SHOPDB
SCHEMA
         = SHOP
TABLE = EMP
SELECT   = ID, AMT,
           名前
LOGPATH  = /log/emp
DIFFTYPE = OPEN
"""
ORACLE = """\
REPNAME = STOCK
SCHEMA = SHOP
TABLE = ITEMS
SELECT = ITEM_ID, NAME, PRICE
DATATYPE = ( INTEGER, CHARACTER VARYING(10),
             DECIMAL(7,2) )
GRPNAME = DEPOTS
LOGPATH = /log/depots
"""


def read(text: str, codec: str = "linkexpress_table", encoding: str = "utf-8", **options) -> list[tuple]:
    source = Source(**{"name": "depot", "codec": codec, "from": "landing", "options": options})
    found = CODECS[codec].definitions_of(text.encode(encoding), "emp.def", source)
    return [
        (
            d.source_schema,
            d.source_table,
            [(c["name"], c["type"], c["source_type"], c["nullable"]) for c in d.columns],
            d.key,
            d.change_seq,
        )
        for d in found
    ]


ID, NAME = ("ID", "int", "INTEGER", False), ("名前", "string", "NVARCHAR(10)", True)
AMT = ("AMT", "decimal(7,2)", "DECIMAL(7,2)", False)
REST = [("AT", "timestamp_ntz", "TIMESTAMP", True), ("NOTE", "string", "VARCHAR(20)", True)]
QTY = ("QTY", "decimal(5,0)", "NUMERIC(5)", True)


@pytest.mark.parametrize("codec", ["linkexpress_table", "linkexpress_group"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "euc_jp"])
def test_a_table_is_read_whatever_its_file_is_written_in(codec, encoding):
    options = {"charset": encoding} if encoding == "euc_jp" else {}
    assert read(EMP, codec, encoding, **options) == [("SHOP", "EMP", [ID, NAME, QTY, AMT, *REST], ["ID"], "")]


def test_an_extraction_has_its_columns_in_its_order_with_the_types_of_the_table():
    assert read(EMP + EXTRACTION) == [("SHOP", "EMP", [ID, AMT, NAME], ["ID"], "")]


def test_an_extraction_of_oracle_says_its_types_and_a_group_names_no_table():
    assert read(ORACLE) == [
        (
            "SHOP",
            "ITEMS",
            [
                ("ITEM_ID", "int", "INTEGER", True),
                ("NAME", "string", "VARCHAR(10)", True),
                ("PRICE", "decimal(7,2)", "DECIMAL(7,2)", True),
            ],
            [],
            "",
        )
    ]


def test_definitions_of_parts_of_a_table_give_one_contract():
    parts = EXTRACTION + EXTRACTION.replace("EMP_REP", "EMP_2").replace("SELECT ", "DSI = D2\nSELECT ")
    assert read(EMP + parts) == read(EMP + EXTRACTION)


def told(text: str, codec: str = "linkexpress_table", tables: dict | None = None, **options) -> list[str]:
    source = Source(
        **{"name": "depot", "codec": codec, "from": "landing", "options": options, "tables": tables or {"A": "S.T"}}
    )
    fields = {"codec": codec, "from": "landing", "options": options}
    lines = import_settings.lines(source, [("emp.def", text.encode())], fields)
    return [line for line in lines if "stay auto" not in line]


SJIS = {"charset": "cp932"}
KINDS = "LOGTYPE = LITTLE\nNULLIND = YES\nOUTCODE = EUC\n"
GROUP = "REPNAME = A\nLOGTYPE = NORMAL\nGRPNAME = DEPOTS\nDIFFTYPE = JNL\nOUTCODE = KEIS\n"


@pytest.mark.parametrize(
    ("text", "codec", "options", "said"),
    [
        (
            EXTRACTION + KINDS,
            "linkexpress_table",
            {},
            "logtype: little, difftype: open, null_areas: 'yes', charset: euc_jp",
        ),
        (EXTRACTION.replace("= OPEN", "= JNL"), "linkexpress_table", SJIS, "charset: cp932, difftype: journal}"),
        (EXTRACTION + KINDS, "linkexpress_group", SJIS, ""),
        (
            EXTRACTION,
            "linkexpress_table",
            {},
            "note: option charset is missing. Text tells no character set",
        ),  # a member's own do not count
        (GROUP + "LOGTYPE = LITTLE", "linkexpress_group", {"charset": "jis8"}, "charset: jis8, logtype: little}"),
        (GROUP, "linkexpress_group", {}, "OUTCODE of DEPOTS KEIS: say which charset that is"),
        ("REPNAME = A\nBYTESWAP = YES", "linkexpress_table", {}, "BYTESWAP of A is YES: where files fit both ways"),
    ],
)
def test_a_definition_says_how_its_extracts_are_written(text, codec, options, said):
    lines = told(text, codec, source_tz="UTC", **options)
    assert said in "\n".join(lines).replace("\n    options", " options") and bool(lines) == bool(said), lines
    assert ("charset is missing" in "\n".join(lines)) is not ("charset" in options or "EUC" in text), lines


def test_a_whole_source_is_printed_and_the_options_that_stay_auto(tmp_path):
    root = projects.make(tmp_path, is_unfinished=True).root
    path = root / "pipelines" / "inlet.yml"
    source = {"codec": "linkexpress_table", "from": {"transport": "records", "path": "landing/*"}}
    path.write_text(yaml.safe_dump({"sources": {"depot": source | {"options": {"source_tz": "UTC"}}}}))
    (tmp_path / "emp.def").write_text(EMP + EXTRACTION + KINDS)
    said = CliRunner().invoke(cli.app, ["import", str(tmp_path / "emp.def"), "--project", str(root)]).output
    block = re.split("(?m)^(?=note: |options of )", said[said.index("sources:") :])[0]
    assert yaml.safe_load(block)["sources"]["depot"] == source | {
        "options": {
            "source_tz": "UTC",
            "logtype": "little",
            "difftype": "open",
            "null_areas": "yes",
            "charset": "euc_jp",
        }
    }
    assert "options of depot that stay auto: byte_order, nchar_charset, numeric_sign, float_form" in said
    path.write_text(f"lakehouse: lakehouse\n{block}")  # as it is printed
    assert config.load(root).sources["depot"].options["logtype"] == "little"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (EXTRACTION, {"difftype": "journal"}, "difftype is journal, and emp.def: DIFFTYPE of EMP_REP says open"),
        ("REPNAME = A\nNULLIND = MAYBE", {}, "NULLIND of A: expected YES or NO, found MAYBE"),
        ("REPNAME = A\nNULLIND = NO\nREPNAME = B\nNULLIND = YES", {}, "NULLIND of B is YES, .* of A is NO"),
    ],
)
def test_a_definition_that_contradicts_its_source_is_refused(text, options, said):
    with pytest.raises(ConfigError, match=said):
        told(text, source_tz="UTC", **options)


def test_floats_are_of_the_form_of_the_set():
    ddl = "create table s.f (a real, b float(23), c float, d double precision, primary key (a))"
    ieee = [(n, t) for n, t, _, _ in read(ddl)[0][2]]
    assert ieee == [("A", "float"), ("B", "float"), ("C", "double"), ("D", "double")]
    assert {t for _, t, _, _ in read(ddl, charset="ebcdic_kana")[0][2]} == {"double"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "holds neither REPNAME nor CREATE TABLE"),
        (EXTRACTION, "no CREATE TABLE SHOP.EMP"),
        ("REPNAME = A\nTABLE = T\n", "emp.def: A has no SCHEMA"),
        (ORACLE.replace("INTEGER, ", ""), "SELECT has 3 columns, DATATYPE 2 types"),
        (EMP.replace("TIMESTAMP", "MONEY"), "SHOP.EMP.AT: type 'MONEY' is not supported"),
        (EMP + EMP, "has two definitions of SHOP.EMP"),
        ("CREATE TABLE T (A INT)", "CREATE TABLE T names no schema"),
        ("CREATE TABLE (A INT)", "without a name"),
        ("CREATE TABLE S.T (A DECIMAL)", "S.T.A: type 'DECIMAL' is not supported: it needs its length"),
        ("CREATE TABLE S.T (A TEXT)", "S.T.A: type 'TEXT' is not supported: it needs its length"),
        (EXTRACTION.replace("SELECT   = ID, AMT,\n           名前", "SELECT ="), "no CREATE TABLE SHOP.EMP"),
        (EMP + "REPNAME = A\nSCHEMA = SHOP\nTABLE = EMP\nSELECT = ID, OTHER\n", "OTHER is no column"),
    ],
)
def test_what_cannot_be_a_contract_says_what_to_give(text, said):
    with pytest.raises(ConfigError) as error:
        read(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("ddl", "columns", "key"),
    [
        ("# the shop's\nCREATE TABLE S.T (A INT NOT NULL UNIQUE)\n# CREATE TABLE S.T (A SMALLINT);", "a", ["A"]),
        ("CREATE TABLE IF NOT EXISTS S.T (A INT, PRIMARY KEY (A ASC) USING INDEX TABLESPACE TS1)", "a", ["A"]),
        ("CREATE TABLE S.T (A INT CHECK (A IS NOT NULL OR A > 3), COL#1 CHAR(1) NOT NULL)", "Ac", []),
        ("CREATE TABLE S.T (A INT NOT NULL UNIQUE, B INT NOT NULL UNIQUE)", "ab", []),
        ("CREATE TABLE S.T (A INT UNIQUE)", "A", []),
    ],
)
def test_what_is_no_column_and_no_key_of_a_table(ddl, columns, key):
    """A capital is a column that may be null."""
    [(_, _, found, found_key, _)] = read(ddl)
    assert "".join(n[0] if is_nullable else n[0].lower() for n, _, _, is_nullable in found) == columns
    assert found_key == key


def test_a_table_of_oracle_gives_its_key_and_the_extraction_its_types():
    ddl = "CREATE TABLE SHOP.ITEMS (ITEM_ID NUMBER PRIMARY KEY, NAME VARCHAR2(10) NOT NULL, PRICE NUMBER(7,2))\n"
    [(_, _, columns, key, _)] = read(ddl + ORACLE.replace("SHOP", "shop"))
    assert ([is_nullable for *_, is_nullable in columns], key) == ([False, False, True], ["ITEM_ID"])


DDL = 'CREATE TABLE DEPOT.ITEMS (ITEM_ID INT NOT NULL, NAME VARCHAR(10), PRICE DEC(7,2){more}, PRIMARY KEY ("ITEM_ID"))'
NEXT = [*projects.LAYOUT, ("KIND", "CHARACTER(2)")]


def inlet(root, *words) -> str:
    result = CliRunner().invoke(cli.app, [*map(str, words), "--project", f"{root}"])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_definition_reads_what_a_contract_reads_and_a_changed_one_makes_a_version(tmp_path):
    rows = [{"ITEM_ID": n, "NAME": f"item {n}", "PRICE": n} for n in range(3)]
    for folder, columns, added, time in (
        ("landing/depot", projects.LAYOUT, {}, "20260105031500_000001"),
        ("landing/depot", NEXT, {"KIND": "XY"}, "20260205031500_000002"),
    ):
        records = [*(("insert", 1, row | added) for row in rows), ("commit",)]
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        data = linkexpress.encode_file(records, True, "big", "cp932", {1: columns})
        (tmp_path / folder / f"{time}.lxg").write_bytes(data)
    projects.make(tmp_path)
    by_hand = config.load(tmp_path).tables
    contract = tmp_path / "pipelines" / "tables" / "items.yml"
    contract.unlink()
    (tmp_path / "items.sql").write_text(DDL.format(more=""))
    inlet(tmp_path, "import", tmp_path / "items.sql")
    assert config.load(tmp_path).tables == by_hand

    (tmp_path / "items.sql").write_text(DDL.format(more=", KIND CHAR(2)"))
    refused = CliRunner().invoke(cli.app, ["import", f"{tmp_path}/items.sql", "--project", f"{tmp_path}"])
    assert "Say it with --since YYYYMMDDHHmmSS" in f"{refused.exception}"
    inlet(tmp_path, "import", tmp_path / "items.sql", "--since", "20260201000000")
    files = sorted((tmp_path / "landing" / "depot").iterdir())
    images = [[json.loads(line)["after"] for line in inlet(tmp_path, "decode", f).splitlines()] for f in files]
    assert [sorted(image) for of_file in images for image in of_file] == [["ITEM_ID", "NAME", "PRICE"]] * 3 + [
        ["ITEM_ID", "KIND", "NAME", "PRICE"]
    ] * 3


def test_patterns_of_tables_stay_in_the_source_that_import_prints(monkeypatch):
    fields = {"codec": "linkexpress_group", "from": "landing", "tables": {"OLD_*": "SHOP.OLD"}}
    settings = Settings({}, {"1": "SHOP.EMP", "2": "SHOP.ITEMS"}, "the group has", [])
    monkeypatch.setattr(import_settings, "_told", lambda source, files: settings)
    whole = import_settings.lines(Source(name="depot", **fields), [], fields)[0].split("Write the source so:\n")[1]
    assert yaml.safe_load(whole)["sources"]["depot"]["tables"] == {"OLD_*": "SHOP.OLD"} | settings.tables
