"""Column lists of GoldenGate: each case of tests/cases/goldengate_defgen/ is what to expect, as YAML, and a file behind
`---`.
"""

from pathlib import Path

import pytest
import yaml

from inlet import config
from inlet.codecs import CODECS
from inlet.codecs.goldengate.defgen import definitions_of
from inlet.commands import import_contracts as importing
from inlet.commands import import_definitions
from inlet.errors import ConfigError
from inlet.source import Source
from tests import projects

CASES = sorted((Path(__file__).parent / "cases" / "goldengate_defgen").glob("*.txt"))
SOURCE = {"codec": "goldengate_trail", "from": "landing/gg/*"}


def case(path: Path) -> tuple[dict, bytes, Source]:
    top, text = path.read_text(encoding="utf-8").split("\n---\n", 1)
    wanted = yaml.safe_load(top)
    options = {"charset": wanted["charset"]} if "charset" in wanted else {}
    source = Source(**SOURCE, name="gg", options=options, tables=wanted.get("tables", {}))
    return wanted, text.encode(wanted.get("encoding", "utf-8")), source


def shown(column: dict) -> str:
    words = [column["name"], column["type"], "" if column["nullable"] else "not null", column["source_type"]]
    return " ".join(filter(None, [*words, f"in {column['charset']}" if "charset" in column else ""]))


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_file_gives_these_columns_or_says_what_is_wrong_in_which_line(path, line_end):
    wanted, data, source = case(path)
    data = data.replace(b"\n", line_end)
    if "error" in wanted:
        with pytest.raises(ConfigError) as error:
            definitions_of(data, "gg.def", source)
        assert str(error.value).startswith("gg.def, line ") and wanted["error"] in str(error.value)
        return
    found = {
        f"{d.source_schema}.{d.source_table}": {"key": d.key, "columns": [shown(c) for c in d.columns]}
        for d in definitions_of(data, "gg.def", source)
    }
    assert found == wanted["expected"]


MESSAGES = [f"goldengate_{form}" for form in ("json", "avro", "delimited", "xml", "text")]


@pytest.mark.parametrize("codec", MESSAGES)
def test_a_file_gives_messages_names_types_and_keys(codec):
    _, data, _ = case(CASES[0].with_name("ok_version_5.txt"))
    source = Source(**SOURCE | {"codec": codec}, name="gg")
    definitions = CODECS[codec].definitions_of(data, "gg.def", source)
    found = {d.source_table: (d.key, [shown(c) for c in d.columns]) for d in definitions}
    assert found == {
        "CUSTOMER_ORDER": (
            ["ID"],
            ["ID decimal(38,10) FLOAT(50)", "ORDER_DATE timestamp_ntz DATETIME(29)", "TOTAL decimal(38,10) FLOAT(50)"],
        ),
        "EMP": (
            ["EMPNO"],
            [
                "EMPNO bigint INT64(8)",
                "ENAME string ASCII_V(10)",
                "HIREDATE timestamp_ntz DATETIME(19)",
                "SAL decimal(19,2) INT64(9,2)",
            ],
        ),
        "BONUS": ([], ["ENAME string ASCII_V(10)", "SAL decimal(38,10) FLOAT(50)"]),
    }


def test_a_file_gives_messages_no_character_sets_and_text_where_bytes_are_not_public():
    _, data, _ = case(CASES[0].with_name("ok_character_sets_and_lobs.txt"))
    source = Source(**SOURCE | {"codec": "goldengate_json"}, name="gg")
    [definition] = CODECS["goldengate_json"].definitions_of(data, "gg.def", source)
    assert [shown(column) for column in definition.columns] == [
        "ID bigint not null UINT32(10)",
        "NNAME string ASCII_V(60)",
        "RAW16 binary ASCII_V(16)",
        "NOTE string ASCII_V(4000) LOB",
        "CYR string ASCII_V(30)",
        "OPENS string DATETIME(8)",
        "WEIGHT string TYPE_142(4)",
    ]


def test_a_file_of_messages_fits_a_contract_that_a_trail_has_the_places_of(tmp_path):
    _, columns = imported(tmp_path, [ACCOUNT])
    project = projects.make(tmp_path, {"gg": SOURCE | {"codec": "goldengate_json"}}, [])
    rows = import_definitions.from_files(project, "gg", [tmp_path / "gg.def"])
    assert importing.contracts(project, rows, importing.Answers()) == []


ACCOUNT = {
    "table": "SCOTT.CUSTOMER_ORDER",
    "name": "orders",
    "key": ["ID"],
    "columns": [
        {"name": "ID", "type": "bigint"},
        {"name": "ORDER_DATE", "type": "date"},
        {"name": "TOTAL", "type": "decimal(9,2)"},
    ],
}


def imported(root: Path, tables: list[dict], **answers) -> tuple[list[str], dict[str, list[dict]]]:
    """What an import of the file of version 5 says, and the columns of all contracts behind it."""
    _, data, _ = case(CASES[0].with_name("ok_version_5.txt"))
    (root / "gg.def").write_bytes(data)
    project = projects.make(root, {"gg": SOURCE | {"options": {"charset": "WE8MSWIN1252"}}}, tables)
    made = importing.contracts(
        project, import_definitions.from_files(project, "gg", [root / "gg.def"]), importing.Answers(**answers)
    )
    importing.write(made)
    written = [yaml.safe_load(path.read_text()) for path in (root / "pipelines" / "tables").glob("*.yml")]
    assert config.load(root).tables.keys() == {table["table"] for table in written}
    return [contract.what for contract in made], {table["table"]: table["columns"] for table in written}


def test_a_contract_keeps_the_types_that_a_person_chose_and_gets_those_of_the_vendor(tmp_path):
    what, columns = imported(tmp_path, [ACCOUNT])
    assert what == [
        "SCOTT.BONUS: new, 2 columns, without a key: if the table has one, name it in the contract",
        "SCOTT.CUSTOMER_ORDER: source_type is added to ID, ORDER_DATE, TOTAL",
        "SCOTT.EMP: new, 4 columns",
    ]
    assert columns["SCOTT.CUSTOMER_ORDER"] == [
        {"name": "ID", "type": "bigint", "source_type": "FLOAT(50) AT 0:56"},
        {"name": "ORDER_DATE", "type": "date", "source_type": "DATETIME(29) AT 56:144"},
        {"name": "TOTAL", "type": "decimal(9,2)", "source_type": "FLOAT(50) AT 144:200"},
    ]
    assert imported(tmp_path, [ACCOUNT | {"columns": columns["SCOTT.CUSTOMER_ORDER"]}])[0] == []  # once


def test_a_contract_that_has_types_gets_the_places_of_its_columns(tmp_path):
    types = ["FLOAT(50)", "DATETIME(29)", "FLOAT(50)"]
    typed = [column | {"source_type": type_} for column, type_ in zip(ACCOUNT["columns"], types)]
    what, columns = imported(tmp_path, [ACCOUNT | {"columns": typed}])
    added = "its place in a record is added to the source_type of ID, ORDER_DATE, TOTAL"
    assert what[1] == f"SCOTT.CUSTOMER_ORDER: {added}"
    places = [" AT 0:56", " AT 56:144", " AT 144:200"]
    assert columns["SCOTT.CUSTOMER_ORDER"] == [
        column | {"source_type": column["source_type"] + place} for column, place in zip(typed, places)
    ]


def test_a_column_of_another_type_of_the_vendor_is_another_list(tmp_path):
    assert_another_list(tmp_path, "INT64(11)")


def test_a_column_at_another_place_is_another_list(tmp_path):
    assert_another_list(tmp_path, "FLOAT(50) AT 0:55")


def assert_another_list(tmp_path, source_type: str) -> None:
    other = [ACCOUNT["columns"][0] | {"source_type": source_type}, *ACCOUNT["columns"][1:]]
    with pytest.raises(ConfigError, match="SCOTT.CUSTOMER_ORDER: the definition in .* is not that of the contract"):
        imported(tmp_path, [ACCOUNT | {"columns": other}])
