"""What a sidecar of Qlik's files says, and what no sidecar says; which types its columns get."""

import json
import random
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlet.codecs.qlik import dfm
from inlet.codecs.qlik.dfm import Column, Sidecar
from inlet.codecs.qlik.types import contract_type
from inlet.errors import REJECT_KINDS
from inlet.fields import json_exact
from inlet.fields.fit import fit
from inlet.fields.json_exact import Number
from inlet.fields.wrong import Wrong
from tests import conftest
from tests.encode import qlik_change_table as ct
from tests.encode.qlik_dfm import dfm as encoded
from tests.test_encode_qlik import SAMPLE_DFM

NUM_FUZZED = 60_000 if conftest.ALL_ROUNDS else 1_500
ORDERS = ct.Table("SHOP", "ORDERS", (ct.Column("ID", "INT4", key=1), ct.Column("NAME", "WSTRING", 20)), 3)


def changed(*path, to=..., of: bytes | None = None) -> bytes:
    """A sidecar with one member set, or without it. In: the path of the member."""
    whole = json.loads(of or encoded(ORDERS, 2))
    at = whole
    for step in path[:-1]:
        at = at[step]
    if to is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return json.dumps(whole).encode()


def wrong_of(data: bytes) -> Wrong:
    with pytest.raises(Wrong) as raised:
        dfm.read(data)
    return raised.value


def test_the_captured_sidecar():
    found = dfm.read(SAMPLE_DFM.encode())
    assert found == Sidecar(
        file="20211201-112233444.csv.gz",
        format="delimited",
        delimiter=",",
        record_delimiter="\n",
        null="",
        quote='"',
        escape="",
        schema="EDW",
        table="SAMPLE",
        target_table="SAMPLE__ct",
        version=1,
        columns=(
            Column("header__change_seq", 1, "STRING", 35),
            Column("header__change_oper", 2, "STRING", 1),
            Column("header__timestamp", 3, "DATETIME"),
            Column("SAMPLE_ID", 4, "INT4", 10, key_position=1),
            Column("SAMPLE_NAME", 5, "STRING", 100),
            Column("EDW_INSERTED_DTM", 6, "DATETIME"),
            Column("EDW_UPDATED_DTM", 7, "DATETIME"),
        ),
        content="data",
        num_records=2,
        num_errors=0,
        task="",
        written_at="",
    )


@pytest.mark.parametrize(
    ("name", "extension", "expected"),
    [
        ("20211201-112233444.csv", "gz", "20211201-112233444.csv.gz"),
        ("20141029-1134010000", "csv", "20141029-1134010000.csv"),
        ("LOAD00000001.json", "gz", "LOAD00000001.json.gz"),
        ("LOAD00000001", "json.gz", "LOAD00000001.json.gz"),
        ("LOAD00000001", ".parquet", "LOAD00000001.parquet"),
        ("LOAD00000001.csv", "csv", "LOAD00000001.csv"),
        ("LOAD00000001.CSV", "csv", "LOAD00000001.CSV"),
        ("LOAD00000001", "", "LOAD00000001"),
        ("LOAD00000001", None, "LOAD00000001"),
    ],
)
def test_the_name_of_the_data_file(name, extension, expected):
    data = changed("fileInfo", "extension", to=extension, of=changed("fileInfo", "name", to=name))
    assert dfm.read(data).file == expected


def test_what_is_not_told():
    data = encoded(ORDERS, None, ct.LOAD, None, format_="JSON", content="Data")
    for path in (("taskInfo",), ("fileInfo", "errorCount"), ("dataInfo", "targetTable"), ("dataInfo", "sourceSchema")):
        data = changed(*path, of=data)
    found = dfm.read(data)
    assert found[1:10] == ("json", "", "", "", "", "", "", "ORDERS", "")
    assert found[10] == 3 and found[12:] == ("data", None, 0, "", "", "", "")


def test_options_of_json_and_parquet_are_not_read():
    data = changed("formatInfo", "format", to="Parquet")
    assert dfm.read(data)[1:7] == ("parquet", "", "", "", "", "")


def test_members_that_nobody_knows_and_a_byte_order_mark_are_let_be():
    data = encoded(ORDERS, 2)
    more = changed("customInfo", to={"a": [{"name": 1}]}, of=changed("dataInfo", "columns", 0, "nullable", to=False))
    assert dfm.read(more) == dfm.read(data) == dfm.read(b"\xef\xbb\xbf" + data)


def test_both_names_of_the_place_in_the_key():
    one = dfm.read(encoded(ORDERS, 2))
    assert dfm.read(encoded(ORDERS, 2, key_member="primaryKeyPosition")) == one
    assert dfm.read(changed("dataInfo", "columns", 0, "primaryKeyPosition", to=0)) == one
    wrong = wrong_of(changed("dataInfo", "columns", 0, "primaryKeyPosition", to=2))
    assert (wrong.kind, wrong.expected, wrong.found) == ("contradiction", "what primaryKeyPos says", "'2'")


@pytest.mark.parametrize(
    ("written", "expected"), [("0x01", "\x01"), ("0x0D0a", "\r\n"), ("\\t", "\t"), ("|", "|"), ("§", "§"), ("0x", "0x")]
)
def test_delimiters(written, expected):
    found = dfm.read(changed("formatInfo", "options", "fieldDelimiter", to=written))
    assert (
        found.delimiter == expected
        and dfm.read(changed("formatInfo", "options", "nullValue", to="0x01")).null == "0x01"
    )


WRONG = [  # path, value, kind, expected, found
    (("fileInfo",), ..., "wrong_shape", "an object", "none"),
    (("fileInfo",), [], "wrong_shape", "an object", "an array"),
    (("fileInfo", "name"), ..., "wrong_shape", "text", "none"),
    (("fileInfo", "name"), "", "wrong_shape", "text", "none"),
    (("fileInfo", "name"), 7, "wrong_shape", "text", "'7'"),
    (("fileInfo", "name"), "../x", "wrong_shape", "the name of a file, without a folder", "'../x'"),
    (("fileInfo", "extension"), "a/b", "wrong_shape", "the name of a file, without a folder", "'a/b'"),
    (("fileInfo", "location"), 1, "wrong_shape", "text", "'1'"),
    (("fileInfo", "content"), "rows", "wrong_shape", "data or changes", "'rows'"),
    (("fileInfo", "recordCount"), -1, "wrong_shape", "a whole number", "'-1'"),
    (("fileInfo", "recordCount"), "2", "wrong_shape", "a whole number", "'2'"),
    (("fileInfo", "recordCount"), 1.5, "wrong_shape", "a whole number", "'1.5'"),
    (("fileInfo", "recordCount"), 10**39, "wrong_shape", "a whole number", "'1" + "0" * 39 + "'"),
    (("fileInfo", "errorCount"), True, "wrong_shape", "a whole number", "'True'"),
    (("fileInfo", "RecordCount"), 2, "wrong_shape", "member recordCount", "'RecordCount'"),
    (
        ("fileInfo", "startWriteTimestamp"),
        "2016-02-30T00:00:00",
        "wrong_shape",
        "a time like 2016-08-02T10:05:04.802",
        ...,
    ),
    (
        ("fileInfo", "firstTransactionTimestamp"),
        "today",
        "wrong_shape",
        "a time like 2016-08-02T10:05:04.802",
        "'today'",
    ),
    (("taskInfo", "operation"), "dataDeleted", "wrong_shape", "dataProduced", "'dataDeleted'"),
    (("taskInfo", "name"), {}, "wrong_shape", "text", "an object"),
    (("formatInfo", "format"), ..., "wrong_shape", "text", "none"),
    (("formatInfo", "format"), "xml", "wrong_shape", "delimited, json or parquet", "'xml'"),
    (("formatInfo", "options"), "x", "wrong_shape", "an object", "'x'"),
    (("formatInfo", "options", "quoteChar"), "''", "wrong_shape", "one character, or none", "\"''\""),
    (("formatInfo", "options", "escapeChar"), "0x0102", "wrong_shape", "one character, or none", "'0x0102'"),
    (
        ("formatInfo", "options", "fieldDelimiter"),
        "0xA7",
        "wrong_shape",
        "hex digits of ASCII, or the character itself",
        "'0xA7'",
    ),
    (("formatInfo", "options", "recordDelimiter"), ",", "contradiction", "another one than fieldDelimiter", "the same"),
    (("formatInfo", "options", "nullValue"), 0, "wrong_shape", "text", "'0'"),
    (("dataInfo", "tableVersion"), ..., "wrong_shape", "a whole number", "none"),
    (("dataInfo", "sourceTable"), 1, "wrong_shape", "text", "'1'"),
    (("dataInfo", "columns"), ..., "wrong_shape", "a list of columns", "none"),
    (("dataInfo", "columns"), [], "wrong_shape", "a list of columns", "none"),
    (("dataInfo", "columns"), {}, "wrong_shape", "a list of columns", "an object"),
    (("dataInfo", "columns", 1), "x", "wrong_shape", "an object", "'x'"),
    (("dataInfo", "columns", 1, "ordinal"), 0, "wrong_shape", "an ordinal from 1 to 99999", "'0'"),
    (("dataInfo", "columns", 1, "ordinal"), 100_000, "wrong_shape", "an ordinal from 1 to 99999", "'100000'"),
    (("dataInfo", "columns", 1, "ordinal"), ..., "wrong_shape", "a whole number", "none"),
    (("dataInfo", "columns", 1, "ordinal"), 1, "contradiction", "ordinal 1 once", "it twice"),
    (
        ("dataInfo", "columns", 1, "name"),
        "header__change_seq",
        "contradiction",
        "name header__change_seq once",
        "it twice",
    ),
    (("dataInfo", "columns", 1, "type"), "", "wrong_shape", "text", "none"),
    (("dataInfo", "columns", 1, "Type"), "STRING", "wrong_shape", "member type", "'Type'"),
    (("dataInfo", "columns", 1, "length"), "35", "wrong_shape", "a whole number", "'35'"),
    (("dataInfo", "columns", 8, "primaryKeyPos"), 1, "contradiction", "primaryKeyPos 1 once", "it twice"),
]


@pytest.mark.parametrize("path, value, kind, expected, found", WRONG)
def test_what_no_sidecar_says_is_refused_by_its_place(path, value, kind, expected, found):
    data = changed(*path, to=value)
    wrong = wrong_of(data)
    assert (wrong.kind, wrong.expected) == (kind, expected)
    assert found in (wrong.found, ...)
    if value is not ... and isinstance(path[-1], str):  # else it is the place of what is around it
        assert data[wrong.offset :].startswith(b'"' + path[-1].encode() + b'"')
        num_before = path[2] + (path[-1] != "ordinal") if "columns" in path and len(path) > 3 else 0
        assert data[: wrong.offset].count(b'"ordinal"') == num_before


def test_sequence_files_are_refused_by_name():
    wrong = wrong_of(changed("formatInfo", "format", to="SequenceFile"))
    assert wrong.kind == "unsupported_record" and "Hadoop sequence files are not read" in wrong.expected


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "invalid_json"),
        (b"[]", "invalid_json"),
        (b"{}", "wrong_shape"),
        (b'{"fileInfo": ' + b"[" * 100_000, "invalid_json"),
        (b'{"a": ' * 100_000 + b"1" + b"}" * 100_000, "invalid_json"),
        (encoded(ORDERS, 2) + b"x", "trailing_data"),
        (encoded(ORDERS, 2)[:-9], "invalid_json"),
        (encoded(ORDERS, 2).replace(b'"recordCount"', b'"errorCount"'), "duplicate_member"),
        (encoded(ORDERS, 2).replace(b'"recordCount": 2', b'"recordCount": NaN'), "invalid_json"),
        (encoded(ORDERS, 2).replace(b'"recordCount": 2', b'"recordCount": ' + b"9" * 1_000_000), "wrong_shape"),
        (encoded(ORDERS, 2).replace(b"ORDERS", b"\xff"), "invalid_utf8"),
        (encoded(ORDERS, 2).decode().encode("utf-16"), "invalid_utf8"),
    ],
    ids=range(12),
)
def test_hostile_text_is_refused(data, kind):
    assert wrong_of(data).kind == kind


@pytest.mark.parametrize("before, kind", [(b'"a": 1, "a": 2', "invalid_json"), (b'"a": NaN', "invalid_json")])
def test_what_is_refused_before_a_nest_beyond_reading_is_a_reject(before, kind):
    deep = b"[" * 200_000 + b"]" * 200_000
    with pytest.raises(Wrong) as wrong:
        json_exact.parse(b'{"x": {' + before + b'}, "deep": ' + deep + b"}")
    assert wrong.value.kind == kind


def test_ten_thousand_columns_are_read_and_the_last_one_is_refused_by_its_place():
    table = ct.Table("S", "T", tuple(ct.Column(f"C{n}", "NUMERIC", 0, 38, 10) for n in range(10_000)))
    data = encoded(table, 1)
    assert len(dfm.read(data).columns) == 10_007
    data = data.replace(b'"C9999"', b'"C1"')
    assert wrong_of(data).offset == data.rindex(b'"name": "C1"')


names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
columns = st.builds(
    ct.Column,
    names,
    st.sampled_from(["STRING", "NUMERIC", "DATETIME", "UINT8", "GEOMETRY"]),
    *[st.integers(0, 4000)] * 3,
    st.just(0),
)
one_character = st.sampled_from(["", '"', "'", "\\", "\x1b"])


@settings(max_examples=400 if conftest.ALL_ROUNDS else 60, deadline=None)
@given(
    st.lists(columns, min_size=1, max_size=6, unique_by=lambda column: column.name),
    st.builds(
        ct.Options,
        st.sampled_from([",", "|", "\x01", "~#~"]),
        st.sampled_from(["\n", "\r\n", "\x02"]),
        st.text(max_size=5),
    ),
    st.tuples(one_character, one_character),
    st.permutations(list(ct.HEADERS)),
    st.integers(0, 7),
    st.sampled_from([("X", "csv"), ("X.csv", "gz"), ("X.json", "gz"), ("X", "parquet")]),
    st.booleans(),
    st.data(),
)
def test_what_was_encoded_is_read(found, options, quotes, headers, num_headers, name, is_new, data):
    keys = data.draw(st.permutations([*range(1, len(found) + 1)])) if data.draw(st.booleans()) else [0] * len(found)
    table = ct.Table(
        data.draw(names),
        data.draw(names),
        tuple(c._replace(key=k) for c, k in zip(found, keys)),
        data.draw(st.integers(0, 99)),
    )
    options = options._replace(quote=quotes[0], escape=quotes[1])
    layout = ct.Layout(headers=tuple(headers[:num_headers]), prefix="\x00header__")  # no column of its own begins so
    content, num = data.draw(st.sampled_from(["data", "changes"])), data.draw(st.none() | st.integers(0, 10**18 - 1))
    times = ("2016-08-02T10:05:04.802", None, "2016-08-02 10:05:04", "")
    format_ = data.draw(st.sampled_from(["delimited", "json", "parquet"]))
    said = dfm.read(
        encoded(
            table,
            num,
            layout,
            options,
            file=name[0],
            extension=name[1],
            format_=format_,
            content=content,
            key_member="primaryKeyPosition" if is_new else "primaryKeyPos",
            hex_delimiters=data.draw(st.booleans()),
            task="t",
            times=times,
        )
    )
    texts = (options.field_delimiter, options.record_delimiter, options.null, options.quote, options.escape)
    assert said == Sidecar(
        f"{name[0]}.{name[1]}",
        format_,
        *(texts if format_ == "delimited" else [""] * 5),
        table.schema,
        table.name,
        table.name + ("__ct" if num_headers else ""),
        table.version,
        tuple(
            Column(c.name, n, c.type, c.length, c.precision, c.scale, c.key)
            for n, c in enumerate(layout.columns(table), 1)
        ),
        content,
        num,
        0,
        "t",
        times[0],
        times[2],
        "",
    )


TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"\\ud800",
    b"null",
    b"-1",
    b"1e999999999",
    b"0x",
    b"\xff",
    b"\x00",
    b",",
    b":",
    b'""',
]


def mutated(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, end = sorted(rng.choices(range(len(data) + 1), k=2))
        end = min(end, at + rng.choice([0, 1, 4, 60, len(data)]))
        data = data[:at] + rng.choice([b"", rng.choice(TOKENS), rng.randbytes(2), data[at:end] * 2]) + data[end:]
    return data


@pytest.mark.rounds
def test_mutated_bytes_are_read_or_refused():
    rng = random.Random(NUM_FUZZED)
    for _ in range(NUM_FUZZED):
        data = mutated(
            rng, rng.choice([SAMPLE_DFM.encode(), encoded(ORDERS, 2), encoded(ORDERS, 1, hex_delimiters=True)])
        )
        try:
            found = dfm.read(data)
        except Wrong as wrong:
            assert wrong.kind in REJECT_KINDS and 0 <= wrong.offset <= len(data), data
            assert wrong.expected and wrong.found, data
        else:
            assert found.file and found.columns and found.format in dfm.FORMATS, data


@pytest.mark.parametrize(
    ("path", "where", "expected"),
    [
        ("f/S.T__ct/1.csv.gz", "beside", ["f/S.T__ct/1.dfm"]),
        ("f/S.T__ct/1.CSV.GZ", "beside", ["f/S.T__ct/1.dfm"]),
        ("1.csv", "beside", ["1.dfm"]),
        (
            "f/S.T__ct/P/1.csv",
            "partition",
            ["f/S.T__ct/P/1.dfm", "f/S.T__ct/P/P.dfm", "f/S.T__ct/P.dfm", "f/S.T__ct/1.dfm"],
        ),
        ("f/S.T__ct/1.csv", "partition", ["f/S.T__ct/1.dfm"]),
        ("f/S.T__ct/1.csv", "full_load", ["f/S.T__ct/1.dfm", "f/S.T/LOAD00000001.dfm", "f/S.T/LOAD00001.dfm"]),
        ("f/S.T/LOAD00000001.csv", "full_load", ["f/S.T/LOAD00000001.dfm", "f/S.T/LOAD00001.dfm"]),
        ("f/S.T__ct/P/1.csv", "meta/a", ["meta/a/S.T__ct/P/1.dfm", "meta/a/S.T__ct/1.dfm", "meta/a/1.dfm"]),
        ("f/S.T/1.DFM", "beside", None),
    ],
)
def test_where_a_sidecar_may_lie(path, where, expected):
    assert dfm.companions(path, where) == expected


def test_a_suffix_of_ones_own_and_none():
    assert dfm.companions("f/S.T_CHG/P/1.csv", "full_load", "_chg")[1] == "f/S.T/LOAD00000001.dfm"
    assert dfm.companions("f/S.T/1.csv", "full_load", "")[1] == "f/S.T/LOAD00000001.dfm"


LARGEST = Decimal("9" * 38)
TYPES = [  # Qlik's type, length, precision, scale; the contract's; its source_type; values of it, as JSON and as text
    (("BOOLEAN", 1, 0, 0), "boolean", "BOOLEAN", [True, False]),
    (("INT1", 3, 0, 0), "tinyint", "INT1", [-128, 127]),
    (("INT2", 5, 0, 0), "smallint", "INT2", [-(2**15), 2**15 - 1]),
    (("INT4", 10, 0, 0), "int", "INT4", [-(2**31), 2**31 - 1]),
    (("INT8", 19, 0, 0), "bigint", "INT8", [-(2**63), 2**63 - 1]),
    (("UINT1", 3, 0, 0), "smallint", "UINT1", [0, 255]),
    (("UINT2", 5, 0, 0), "int", "UINT2", [0, 65535]),
    (("UINT4", 10, 0, 0), "bigint", "UINT4", [0, 2**32 - 1]),
    (("UINT8", 20, 0, 0), "decimal(20,0)", "UINT8", [0, 2**64 - 1]),
    (("REAL4", 7, 0, 0), "float", "REAL4", [-3.4e38, 1.5]),
    (("REAL8", 14, 0, 0), "double", "REAL8", [0.1, 1.7e308]),
    (("NUMERIC", 0, 10, 2), "decimal(10,2)", "NUMERIC(10,2)", [Decimal("-99999999.99")]),
    (("NUMERIC", 0, 38, 0), "decimal(38,0)", "NUMERIC(38,0)", [LARGEST]),
    (("NUMERIC", 0, 3, 5), "decimal(5,5)", "NUMERIC(3,5)", [Decimal("0.00999")]),
    (("NUMERIC", 0, 5, -3), "decimal(8,0)", "NUMERIC(5,-3)", [99999000]),
    (("NUMERIC", 0, 39, 2), "string", "NUMERIC(39,2)", [Decimal("9" * 39)]),
    (("NUMERIC", 0, 38, 40), "string", "NUMERIC(38,40)", [Decimal("0.01")]),
    (("NUMERIC", 0, 0, 0), "string", "NUMERIC(0,0)", [Decimal("1.23")]),
    (("DATE", 0, 0, 0), "date", "DATE", ["2026-01-02"]),
    (("TIME", 0, 0, 0), "string", "TIME", ["23:59:59.123456789"]),
    (("DATETIME", 0, 0, 0), "timestamp_ntz", "DATETIME", ["2026-01-02 03:04:05", "2026-01-02T03:04:05.123456"]),
    (("DATETIME", 0, 0, 6), "timestamp_ntz", "DATETIME(6)", ["2026-01-02 03:04:05.123456"]),
    (("DATETIME", 0, 0, 7), "string", "DATETIME(7)", ["2026-01-02 03:04:05.1234567"]),
    (("STRING", 20, 0, 0), "string", "STRING(20)", ["", "x"]),
    (("wstring", 20, 0, 0), "string", "WSTRING(20)", ["x"]),
    (("CLOB", 8000, 0, 0), "string", "CLOB", ["x"]),
    (("NCLOB", 0, 0, 0), "string", "NCLOB", ["x"]),
    (("BYTES", 16, 0, 0), "binary", "BYTES(16)", ["00FF"]),
    (("BLOB", 0, 0, 0), "binary", "BLOB", ["00ff"]),
    (("JSON", 0, 0, 0), "string", "JSON", ["{}"]),
]


@pytest.mark.parametrize("given, type_, source_type, values", TYPES)
def test_types_of_columns_and_the_values_that_they_hold(given, type_, source_type, values):
    name, length, precision, scale = given
    assert contract_type(Column("C", 1, name, length, precision, scale)) == (type_, source_type)
    assert re.fullmatch(r"[A-Z0-9]+(\(-?\d+(,-?\d+)?\))?", source_type)
    for value in values:
        is_number = not isinstance(value, (bool, str))
        text = (format(value, "f") if isinstance(value, Decimal) else repr(value)) if is_number else value
        for form in (Number(text), text) if is_number else (value,):
            assert fit(form, type_, "hex" if type_ == "binary" else None) is not None
