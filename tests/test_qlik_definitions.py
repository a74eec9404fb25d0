"""`inlet import` of Qlik's files: contracts from sidecars, Parquet files and text whose first record has types."""

import datetime
import gzip
import io
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inlet import config
from inlet.codecs.qlik import types
from inlet.codecs.qlik.definitions import definitions_of
from inlet.commands import import_contracts as importing
from inlet.commands import import_definitions
from inlet.errors import ConfigError
from inlet.source import Source
from inlet.table import Table
from tests import conftest, projects
from tests.encode import qlik_change_table as ct
from tests.encode.qlik_dfm import dfm
from tests.test_encode_qlik import SAMPLE_DFM
from tests.test_qlik_change_table import read
from tests.test_qlik_dfm import TYPES, mutated

NUM_FUZZED = 20_000 if conftest.ALL_ROUNDS else 400
SHOP = {"codec": "qlik_change_table", "from": "landing/shop/**", "options": {"before_images": "none"}}
ORDERS = ct.Table(
    "SHOP",
    "ORDERS",
    (
        ct.Column("NUM", "INT4", 10, key=2),
        ct.Column("REGION", "STRING", 2, key=1),
        ct.Column("PRICE", "NUMERIC", 0, 9, 2),
        ct.Column("TOKEN", "BYTES", 16),
    ),
)
WIDER = ORDERS._replace(columns=(*ORDERS.columns, ct.Column("NOTE", "NCLOB")), version=2)
COLUMNS = [
    {"name": "NUM", "type": "int", "source_type": "INT4"},
    {"name": "REGION", "type": "string", "source_type": "STRING(2)"},
    {"name": "PRICE", "type": "decimal(9,2)", "source_type": "NUMERIC(9,2)"},
    {"name": "TOKEN", "type": "binary", "source_type": "BYTES(16)", "encoding": "hex"},
]
T1, T2 = "20260301120000000000000000000000001", "20260401120000000000000000000000001"


def source(**options) -> Source:
    return Source(name="shop", codec="qlik_change_table", options=options, **{"from": "landing/shop/**"})


def row(seq: str | None = None, oper: str = "INSERT") -> dict:
    return {"operation": oper, "change_seq": seq, "after": {"NUM": 1, "REGION": "a"}}


def parquet(table: ct.Table, *seqs: str, layout: ct.Layout = ct.CHANGES) -> bytes:
    return ct.parquet(table, ct.rows(table, [row(seq) for seq in seqs], layout), layout)


def typed(column: ct.Column) -> str:
    numbers = {"NUMERIC": f"({column.precision},{column.scale})"}.get(column.type, f"({column.length})")
    return column.type + (numbers if column.length or column.precision else "")


def text(table: ct.Table, *seqs: str, layout: ct.Layout = ct.CHANGES, **options) -> bytes:
    rows = ct.rows(table, [row(seq) for seq in seqs], layout)
    return ct.delimited(table, rows, layout, ct.Options(head="names:types", **options), typed)


def test_a_sidecar():
    data = dfm(ORDERS, 1, times=("", "", "2026-03-01T12:00:00.129", None))
    [found] = definitions_of(data, "meta/x.dfm", source())
    assert found == ("SHOP", "ORDERS", COLUMNS, ["REGION", "NUM"], "2026030112000012" + 19 * "0", 0, 1, None)
    [found] = definitions_of(dfm(ORDERS, 1, ct.LOAD, format_="parquet"), "x.dfm", source())
    assert found.change_seq == "" and found.columns[3] == {k: v for k, v in COLUMNS[3].items() if k != "encoding"}


def test_the_captured_sidecar():
    [found] = definitions_of(SAMPLE_DFM.encode(), "x.dfm", source())
    assert (found.source_schema, found.source_table, found.key) == ("EDW", "SAMPLE", ["SAMPLE_ID"])
    assert [(c["name"], c["type"]) for c in found.columns] == [
        ("SAMPLE_ID", "int"),
        ("SAMPLE_NAME", "string"),
        ("EDW_INSERTED_DTM", "timestamp_ntz"),
        ("EDW_UPDATED_DTM", "timestamp_ntz"),
    ]


def test_a_parquet_file():
    layout = ct.Layout(in_upper_case=True)
    [found] = definitions_of(parquet(ORDERS, T2, T1, layout=layout), "f/SHOP.ORDERS__CT/P/1.parquet", source())
    listed = [{"name": c["name"], "type": c["type"]} for c in COLUMNS]
    assert found == ("SHOP", "ORDERS", listed, [], T1, 0, None, None)
    load = parquet(ORDERS, "", layout=ct.LOAD)
    [found] = definitions_of(load, "f/SHOP.ORDERS/LOAD00000001.parquet", source())
    assert found == ("SHOP", "ORDERS", listed, [], "", 0, None, None)


def test_text_with_types():
    layout = ct.Layout(("change_oper", "change_seq"), prefix="h_")
    data = text(ORDERS, T2, T1, layout=layout, field_delimiter="\x01", record_delimiter="\r\n")
    options = {"delimiter": "0x01", "record_delimiter": "\r\n", "prefix": "H_"}
    [found] = definitions_of(b"\xef\xbb\xbf" + data, "SHOP.ORDERS__ct/1.csv", source(**options))
    assert found == ("SHOP", "ORDERS", COLUMNS, [], T1, 0, None, None)
    [found] = definitions_of(text(ORDERS, layout=ct.LOAD), "SHOP.ORDERS/LOAD_1_1.csv", source())
    assert found == ("SHOP", "ORDERS", COLUMNS, [], "", 0, None, None)


def test_text_whose_rest_cannot_be_read_tells_no_place():
    data = text(ORDERS, T1) + b'"unclosed'
    assert definitions_of(data, "SHOP.ORDERS__ct/1.csv", source())[0].change_seq == ""


@pytest.mark.parametrize(
    ("path", "options", "tables", "expected"),
    [
        ("f/file.bsak__ct/1.parquet", {}, {}, ("file", "bsak")),
        ("f/file.bsak__ct/1.parquet", {}, {"file.*": "SAP.*"}, ("SAP", "bsak")),
        ("f/odd_chg/P/1.parquet", {"suffix": "_chg"}, {"odd": "SHOP.ODD"}, ("SHOP", "ODD")),
    ],
)
def test_which_table_a_folder_names(path, options, tables, expected):
    [found] = definitions_of(parquet(ORDERS, T1), path, source(**options).model_copy(update={"tables": tables}))
    assert found[:2] == expected


def test_a_sidecar_without_names_is_of_its_folders_table():
    table = ORDERS._replace(schema="", name="")
    [found] = definitions_of(dfm(table, 1), "f/SHOP.ORDERS__ct/1.dfm", source())
    assert found[:2] == ("SHOP", "ORDERS")


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"{}", "x.dfm", "x.dfm: wrong_shape at byte 0: expected an object, found none"),
        (b'{"ID": 1}\n{"ID": 2}\n', "1.json", "1.json: trailing_data at byte 10"),
        (b"PAR1 and no more", "x.parquet", "x.parquet cannot be read as Parquet"),
        (b"ID,NAME\n1,x\n", "S.T__ct/x.csv", "S.T__ct/x.csv: expected NAME:TYPE in the first record, found 'ID'"),
        (b"\xff:INT4\n", "S.T__ct/x.csv", "its first record is no text in AL32UTF8"),
        (b"", "S.T__ct/x.csv", "expected NAME:TYPE in the first record, found ''"),
        (b"ID:INT4\n1\n", "x.csv", "x.csv tells no table: expected a file in a folder SCHEMA.TABLE__ct"),
        (b"ID:INT4\n1\n", "orders__ct/x.csv", "tells no table: expected SCHEMA.TABLE; found orders"),
        (b"header__change_seq:STRING\n", "S.T__ct/x.csv", "S.T__ct/x.csv has no column but header columns"),
        (ct.parquet(ORDERS, []), "1.parquet", "1.parquet tells no table"),
    ],
)
def test_what_is_no_definition_is_refused_by_its_name(data, name, expected):
    with pytest.raises(ConfigError, match=expected):
        definitions_of(data, name, source())


def test_columns_that_qlik_does_not_write():
    out = io.BytesIO()
    pq.write_table(pa.table({"ID": pa.array([[1]], pa.list_(pa.int8()))}), out)
    with pytest.raises(ConfigError, match="S.T__ct/1.parquet: expected a type that Qlik writes .* of column ID"):
        definitions_of(out.getvalue(), "S.T__ct/1.parquet", source())


def column_c(given) -> ct.Column:
    return ct.Column("C", given[0].upper(), *given[1:])


def in_parquet(column: ct.Column) -> bool:
    """Whether Parquet has the type: its decimals have 1 to 38 digits, and no more of them after the point."""
    return column.precision <= 38 and (
        column.type != "NUMERIC" or column.precision >= 1 and 0 <= column.scale <= column.precision
    )


@pytest.mark.parametrize("given, type_, source_type, values", [row for row in TYPES if in_parquet(column_c(row[0]))])
def test_a_parquet_file_gives_the_types_that_its_sidecar_gives(given, type_, source_type, values):
    column = column_c(given)
    is_decimal = column.type == "NUMERIC"
    stored = ct.arrow_type(column, "ns" if column.scale > 6 and not is_decimal else "us")
    assert types.contract_type(types.of_parquet("C", 1, stored))[0] == type_


@pytest.fixture
def project(tmp_path) -> config.Project:
    project = projects.make(tmp_path, {"shop": SHOP})
    (tmp_path / "pipelines" / "tables" / "items.yml").unlink()
    return config.load(project.root)


def imported(project: config.Project, files: dict[str, bytes], **answers) -> list[Table]:
    paths = []
    for name, data in files.items():
        paths.append(project.root / "landing" / name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_bytes(data)
    project = config.load(project.root)
    rows = import_definitions.from_files(project, "shop", paths)
    importing.write(importing.contracts(project, rows, importing.Answers(**answers)))
    return list(config.load(project.root).tables.values())


def sidecar(table: ct.Table, at: str | None, layout: ct.Layout = ct.CHANGES) -> bytes:
    return dfm(table, 1, layout, times=("", "", at, at))


def test_sidecars_become_a_contract_with_a_version_for_each_table_version(project):
    files = {
        "SHOP.ORDERS__ct/3.dfm": sidecar(WIDER, "2026-04-02T00:00:00.000"),
        "SHOP.ORDERS__ct/2.dfm": sidecar(WIDER, "2026-04-01T12:00:00.120"),
        "SHOP.ORDERS__ct/1.dfm": sidecar(ORDERS, "2026-03-01T12:00:00.000"),
        "SHOP.ORDERS/LOAD00000001.dfm": sidecar(WIDER, None, ct.LOAD),
    }
    [made] = imported(project, files)
    assert (made.table, made.key, made.version) == ("SHOP.ORDERS", ["REGION", "NUM"], 2)
    assert [v.column_names for v in made.versions] == [[c.name for c in t.columns] for t in (ORDERS, WIDER)]
    assert [e.until for e in made.earlier] == ["2026040112000012" + 19 * "0"]
    assert made.column("TOKEN").encoding == "hex" and made.column("NOTE").source_type == "NCLOB"
    assert imported(project, files) == [made]  # once


def test_a_first_sidecar_gives_its_version_and_a_later_one_goes_on_from_it(project):
    seventh = ORDERS._replace(version=7)
    [made] = imported(project, {"1.dfm": sidecar(seventh, None)})
    assert made.version == 7
    [made] = imported(
        project, {"1.dfm": sidecar(seventh, None), "2.dfm": sidecar(WIDER._replace(version=9), "2026-04-01T12:00:00")}
    )
    assert made.version == 9 and [e.version for e in made.earlier] == [7]


def test_a_list_that_comes_back_is_a_version_of_its_own(project):
    files = {
        f"{n}.dfm": sidecar(table._replace(version=n), f"2026-0{n}-01T00:00:00")
        for n, table in ((1, ORDERS), (2, WIDER), (3, ORDERS))
    }
    [made] = imported(project, dict(list(files.items())[:2]))
    [again] = imported(project, {"3.dfm": files["3.dfm"]}, dropped={"NOTE"})
    assert [v.column_names[-1] for v in again.versions] == ["TOKEN", "NOTE", "TOKEN"]
    assert again.version == 3 and again.earlier[0] == made.earlier[0]
    assert imported(project, files) == [again]
    (project.root / "pipelines" / "tables" / "orders.yml").unlink()
    assert imported(project, files, dropped={"NOTE"}) == [again]


def test_an_older_list_than_the_contracts_first_is_refused(project):
    imported(project, {"2.dfm": sidecar(WIDER, "2026-04-01T00:00:00")})
    with pytest.raises(ConfigError, match="1.dfm tells version 1, older than 2, with which the contract begins"):
        imported(project, {"1.dfm": sidecar(ORDERS, "2026-03-01T00:00:00")}, dropped={"NOTE"})


def test_a_key_that_changed_with_its_version(project):
    columns = tuple(c._replace(key=int(c.name == "NUM")) for c in WIDER.columns)
    files = {"1.dfm": sidecar(ORDERS, None), "2.dfm": sidecar(WIDER._replace(columns=columns), "2026-04-01T00:00:00")}
    [made] = imported(project, files)
    assert made.key == ["NUM"] and [v.key for v in made.versions] == [["REGION", "NUM"], ["NUM"]]


def test_a_list_that_tells_no_time_is_asked_for_one(project):
    imported(project, {"1.dfm": sidecar(ORDERS, None)})
    with pytest.raises(ConfigError, match="tells no time .* Say it with --since"):
        imported(project, {"2.dfm": sidecar(WIDER, None)})
    [made] = imported(project, {"2.dfm": sidecar(WIDER, None)}, since=importing.place_of("20260401120000"))
    assert made.earlier[0].until == "20260401120000".ljust(35, "0")


def test_two_sidecars_of_one_version_that_differ_are_refused(project):
    other = ORDERS._replace(columns=(*ORDERS.columns[:2], ct.Column("PRICE", "STRING", 9), ORDERS.columns[3]))
    with pytest.raises(ConfigError, match="b.dfm both tell version 1, and differ: PRICE has type string, in the first"):
        imported(project, {"a.dfm": sidecar(ORDERS, None), "b.dfm": sidecar(other, None)})


def test_a_precision_that_drifts_within_a_version_takes_all_digits(project):
    def drifted(precision: int, scale: int) -> bytes:
        price = ct.Column("PRICE", "NUMERIC", 0, precision, scale)
        return sidecar(ORDERS._replace(columns=(*ORDERS.columns[:2], price, ORDERS.columns[3])), None)

    [made] = imported(project, {"a.dfm": drifted(9, 2), "b.dfm": drifted(12, 1), "c.dfm": drifted(3, 3)})
    assert (made.version, made.column("PRICE").type, made.column("PRICE").source_type) == (
        1,
        "decimal(14,3)",
        "NUMERIC(14,3)",
    )
    assert imported(project, {"a.dfm": drifted(9, 2)}) == [made] == imported(project, {"b.dfm": drifted(14, 3)})
    with pytest.raises(ConfigError, match="PRICE has type decimal\\(15,3\\).*--since"):
        imported(project, {"a.dfm": drifted(15, 3)})


def test_parquet_files_and_packed_text_become_a_contract_with_its_versions(project):
    files = {
        "SHOP.ORDERS__ct/1.parquet": parquet(ORDERS, T1),
        "SHOP.ORDERS__ct/2.parquet": parquet(ORDERS, "20260302" + 27 * "0"),
        "SHOP.ORDERS__ct/3.parquet": parquet(WIDER, T2),
        "SHOP.OTHER__ct/1.csv.gz": gzip.compress(text(ORDERS, T1)),
    }
    orders, other = imported(project, files)
    assert orders.version == 2 and [e.until for e in orders.earlier] == [T2] and orders.key == []
    assert (other.table, other.version, other.column("PRICE").type) == ("SHOP.OTHER", 1, "decimal(9,2)")


def test_a_sidecar_completes_what_a_parquet_file_gave(project):
    [first] = imported(project, {"SHOP.ORDERS__ct/1.parquet": parquet(ORDERS, T1)})
    [made] = imported(project, {"SHOP.ORDERS/LOAD00000001.dfm": sidecar(ORDERS, None, ct.LOAD)})
    assert (first.column("NUM").source_type, made.column("NUM").source_type, made.version) == (None, "INT4", 1)


def test_a_torn_file_is_named(project):
    data = gzip.compress(text(ORDERS, T1))
    with pytest.raises(ConfigError, match=r"1.csv.gz cannot be read: Compressed file ended"):
        imported(project, {"SHOP.ORDERS__ct/1.csv.gz": data[:-9]})


@pytest.mark.rounds
def test_mutated_bytes_are_definitions_or_refused():
    rng = random.Random(NUM_FUZZED)
    given = [
        ("SHOP.ORDERS__ct/1.csv", text(ORDERS, T1, T2)),
        ("SHOP.ORDERS__ct/1.dfm", sidecar(ORDERS, "2026-03-01T12:00:00.1")),
        ("SHOP.ORDERS__ct/1.parquet", parquet(ORDERS, T1, T2)),
    ]
    for _ in range(NUM_FUZZED):
        name, data = rng.choice(given)
        try:
            [found] = definitions_of(mutated(rng, data), name, source())
        except ConfigError:
            continue
        assert found.columns and len(found.change_seq) in (0, 35)


WIDE = tuple(ct.Column(f"C{n}", given[0].upper(), *given[1:]) for n, (given, *_) in enumerate(TYPES))
VALUES = [bytes.fromhex(values[-1]) if type_ == "binary" else values[-1] for _, type_, _, values in TYPES]


@pytest.mark.parametrize("form", ["text", "json", "parquet"])
def test_the_values_of_every_type_are_read_by_the_contract_that_is_imported(form):
    """Of Parquet without decimals that it has not, and with times of as many digits as it stores."""
    columns, values = WIDE, VALUES
    if form == "parquet":
        has = [c.type != "NUMERIC" or 0 <= c.scale <= c.precision and 0 < c.precision <= 38 for c in WIDE]
        columns = tuple(c for c, there in zip(WIDE, has) if there)
        values = [_of_parquet(v, c) for v, c, there in zip(VALUES, WIDE, has) if there]
        expected = [str(v) if c.type in ("TIME", "DATETIME") else v for v, c in zip(values, columns)]
    else:
        expected = values
    table = ct.Table("SHOP", "WIDE", (ct.Column("ID", "INT4", key=1), *columns))
    changes = [
        {"operation": "INSERT", "change_seq": T1, "after": {"ID": 1} | {c.name: v for c, v in zip(columns, values)}}
    ]
    rows = ct.rows(table, changes)
    data, name = {
        "text": lambda: (ct.delimited(table, rows), "1.csv"),
        "json": lambda: (ct.json_lines(table, rows), "1.json"),
        "parquet": lambda: (ct.parquet(table, rows), "1.parquet"),
    }[form]()
    beside = dfm(table, 1, file=name, format_={"text": "delimited"}.get(form, form))
    path = f"SHOP.WIDE__ct/{name}"
    [definition] = definitions_of(beside, path, source())
    contract = Table(table="SHOP.WIDE", name="wide", key=definition.key, columns=definition.columns)
    found = read([(path, data)], source(), {"SHOP.WIDE": contract}, {path: {"1.dfm": beside}})
    assert found["rejects"] == []
    [change] = found["changes"]
    after = change["after"]
    for column, value in zip(contract.columns[1:], expected):
        assert _plain(after[column.name], column.type) == _plain(value, column.type), column.name
    assert len(after) == len(contract.columns)


def _of_parquet(value, column: ct.Column):
    if column.type == "TIME":
        return datetime.time(23, 59, 59, 123_000)
    if column.type == "DATETIME":
        return datetime.datetime(2026, 1, 2, 3, 4, 5, 123_456)
    return datetime.date(2026, 1, 2) if column.type == "DATE" else value


def _plain(value, type_: str):
    """A value, whatever form it came in."""
    if type_ == "binary":
        return value if isinstance(value, bytes) else bytes.fromhex(value)
    if type_ in ("float", "double"):
        return float(value)
    if type_ == "boolean":
        return value
    if type_ == "timestamp_ntz":
        return datetime.datetime.fromisoformat(str(value))
    is_number = type_.startswith("decimal") or type_ in ("tinyint", "smallint", "int", "bigint")
    return Decimal(str(value)) if is_number else str(value)
