"""Change tables and load files of Qlik: round trips over random tables, layouts and forms, against the changes that
were written; sidecars; masks of wide tables; steps of damaged text."""

import datetime
import io
import json
import random
import tracemalloc
from decimal import Decimal
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from inlet.bronze import framing
from inlet.codecs import json_batches
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.qlik.change_table import block as blocks_of_text
from inlet.codecs.qlik.change_table import files, opening, text
from inlet.codecs.qlik.change_table.text import Dialect
from inlet.codecs.results import Waiting
from inlet.fields import charset, variant
from inlet.silver import decoded, parts
from inlet.source import Source
from inlet.table import Table
from tests import lakes, projects, test_cases, test_codecs
from tests.conftest import ALL_ROUNDS
from tests.encode import qlik_change_table as encode
from tests.encode.qlik_change_table import Column, Layout, Options, opened_of
from tests.encode.qlik_dfm import dfm
from tests.fuzz import qlik_change_table as change_table

CASES = [path for path in test_cases.CASES if path.parent.name == "qlik_change_table"]
NUM_ROUNDS = 400 if ALL_ROUNDS else 40
SQL = {
    "INT4": "int",
    "NUMERIC": "decimal(12,3)",
    "STRING": "string",
    "CLOB": "string",
    "BOOLEAN": "boolean",
    "BYTES": "binary",
    "DATETIME": "timestamp_ntz",
    "DATE": "date",
}
HEADERS = tuple(encode.HEADERS)
ITEMS = encode.Table("SHOP", "ITEMS", (Column("ID", "INT4", key=1), Column("NAME"), Column("NOTE")))
NAMES = Options(head="names")


def contract(table: encode.Table) -> Table:
    columns = [
        {"name": c.name, "type": SQL[c.type], "source_type": c.type}
        | ({"encoding": "hex"} if c.type == "BYTES" else {})
        for c in table.columns
    ]
    key = [c.name for c in table.columns if c.key]
    return Table(table=f"{table.schema}.{table.name}", name="t", key=key, columns=columns)


def source(**options) -> Source:
    return Source(name="s", codec="qlik_change_table", **{"from": "nowhere"}, options=options)


def seq(number: int) -> str:
    return f"2026010203040500{number:019d}"


def read(given: list[tuple[str, bytes]], of: Source, tables: dict, sidecars=None, len_block: int = 200) -> dict:
    """All that files hold, parts of them joined."""
    found = {"changes": [], "rejects": [], "controls": [], "waiting": []}
    waiting: dict[str, list[Waiting]] = {}
    for n, (path, data) in enumerate(given):
        for unit, one, context in _units(path, data, of, tables, (sidecars or {}).get(path), len_block):
            found["changes"] += change_rows(files, one, context, tables)
            found["rejects"] += one.rejects
            found["controls"] += one.controls
            for part in one.parts:
                raw = unit[part.unit_offset : part.unit_offset + part.unit_length]
                waiting.setdefault(part.key, []).append(Waiting(f"{n}", part, raw, context))
    for key, halves in waiting.items():
        joined = files.join(key, halves, of, tables)
        found["changes"] += joined.changes
        found["rejects"] += [reject for _, reject in joined.rejects]
        found["waiting"] += [one.part.key for one in joined.waiting]
    for row in found["changes"]:
        decoded.change_row(row, of.codec, tables)  # which holds it against its contract
    return found


def _units(path: str, data: bytes, of: Source, tables: dict, companions, len_block: int):
    if path.endswith(".parquet"):
        rows = pq.read_table(io.BytesIO(data))
        context = files.open_rows(path, *opened_of(rows), {}, of, tables)
        assert isinstance(context, dict), context
        for first in range(0, rows.num_rows, 7):
            at = json.loads(json.dumps(context | {"first_row": first}))
            yield b"\0" * 7, files.decode_rows(rows.slice(first, 7), at, of, tables), at
        return
    framing.LEN_BLOCK, kept = len_block, framing.LEN_BLOCK
    try:
        told = dict([("sidecar", {"path": name, "data": one.hex()}) for name, one in (companions or {}).items()])
        blocks = list(framing.cut_file(of, tables, path, io.BytesIO(data), 0, None, True, told, codec=files))
    finally:
        framing.LEN_BLOCK = kept
    for block, _ in blocks:
        context = json.loads(json.dumps(block.context))
        yield block.data, decode_block(files, block.data, context, of, tables), context


def exact(value, type_: str):
    """A value as it is, whatever form it came in."""
    if value is None:
        return None
    read_as = {
        "INT4": lambda v: int(v),
        "NUMERIC": lambda v: Decimal(str(v)),
        "BOOLEAN": bool,
        "BYTES": lambda v: v if isinstance(v, bytes) else bytes.fromhex(v),
        "DATETIME": lambda v: v if isinstance(v, datetime.datetime) else datetime.datetime.fromisoformat(v),
        "DATE": lambda v: v if isinstance(v, datetime.date) else datetime.date.fromisoformat(v),
    }
    return read_as.get(type_, str)(value)


def random_table(rng: random.Random) -> encode.Table:
    types = ["INT4", *rng.choices(sorted(SQL), k=rng.randrange(1, 20))]
    columns = tuple(
        Column(f"C{n}", t, precision=12, scale=3, key=int(n == 0))
        if t == "NUMERIC"
        else Column(f"C{n}", t, key=int(n == 0))
        for n, t in enumerate(types)
    )
    return encode.Table("SHOP", "THINGS", columns)


def random_value(rng: random.Random, type_: str):
    if rng.random() < 0.3:
        return None
    return {
        "INT4": lambda: rng.randrange(-(1 << 31), 1 << 31),
        "NUMERIC": lambda: Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-3),
        "BOOLEAN": lambda: rng.random() < 0.5,
        "BYTES": lambda: rng.randbytes(rng.randrange(1, 4)),
        "DATETIME": lambda: datetime.datetime(2026, 1, 1) + datetime.timedelta(microseconds=rng.randrange(10**15)),
        "DATE": lambda: datetime.date(2026, 1, 1) + datetime.timedelta(days=rng.randrange(9999)),
    }.get(type_, lambda: "".join(rng.choices('aß山 ,;|"\\\n\r', k=rng.randrange(6))))()


def random_changes(rng: random.Random, table: encode.Table, num: int) -> list[dict]:
    def image(key: int) -> dict:
        return {c.name: key if c.key else random_value(rng, c.type) for c in table.columns}

    found = []
    for n in range(num):
        operation = rng.choices(("INSERT", "UPDATE", "DELETE", "TRUNCATE"), (4, 6, 2, 1))[0]
        before, after = image(rng.randrange(9)), image(rng.randrange(9))
        if operation == "UPDATE":
            after = {name: v if rng.random() < 0.3 else before[name] for name, v in after.items()}
        images = {"INSERT": {"after": after}, "DELETE": {"before": before}, "TRUNCATE": {}}
        found.append(
            {"operation": operation, "change_seq": seq(n), "transaction_id": f"{n // 3:032X}"}
            | images.get(operation, {"before": before, "after": after})
        )
    return found


def expected(change: dict, table: encode.Table, layout: Layout) -> tuple:
    """What a change says, by the rules of the page alone."""
    types = {c.name: c.type for c in table.columns}
    before, after, word = change.get("before"), change.get("after"), change["operation"]
    changed: set[str] = set()
    if word == "UPDATE":
        changed = {name for name in after if before[name] != after[name] and types[name] != "CLOB"}
        differs = {name for name in after if before[name] != after[name]}
        keys = {c.name for c in table.columns if c.key}
        sent = {n: v for n, v in after.items() if not layout.is_sparse or n in keys or n in differs}
        after = {n: v for n, v in sent.items() if v is not None or n in changed}
        before = {n: v for n, v in before.items() if v is not None or n in changed}
    if word == "INSERT":
        changed = {name for name in after if types[name] != "CLOB"}
        after = {n: v for n, v in after.items() if v is not None or n in changed}
    if word == "DELETE":
        changed = {c.name for c in table.columns if c.key}
        before = {n: v for n, v in before.items() if v is not None}
    ordinals = [n for n, c in enumerate(table.columns) if c.name in changed]
    return change["change_seq"], word, before, after, ordinals, change["transaction_id"]


def said(row: dict, table: encode.Table) -> tuple:
    types = {c.name: c.type for c in table.columns}
    before, after = (
        row.get(one) and {name: exact(value, types[name]) for name, value in row[one].items()}
        for one in ("before", "after")
    )
    mask = int.from_bytes(row.get("change_mask") or b"", "little")
    ordinals = [n for n in range(len(table.columns)) if mask >> n & 1]
    return row["change_seq"], row["operation"], before, after, ordinals, row["transaction_id"]


@pytest.mark.rounds
@pytest.mark.parametrize("number", range(NUM_ROUNDS))
def test_what_was_written_is_read_in_any_form_in_any_order_and_over_files(number):
    rng = random.Random(number)
    table = random_table(rng)
    changes = random_changes(rng, table, rng.randrange(1, 40))
    headers = [*HEADERS, *rng.choices(["partition_name", "batch_modified"], k=rng.randrange(2))]
    if rng.random() < 0.5:
        optional = ["stream_position", "timestamp", rng.choice(["change_oper", "operation"])]
        headers = [name for name in headers if name not in rng.sample(optional, rng.randrange(4))]
    if rng.random() < 0.3:
        rng.shuffle(headers)
    form = rng.choice(["delimited", "delimited", "json", "parquet"])
    mask_form = rng.choice(["hex", "base64"] if form != "parquet" else ["hex", "binary"])
    layout = Layout(
        headers=tuple(headers),
        prefix=rng.choice(["header__", "h$"]),
        in_upper_case=rng.random() < 0.3,
        before_first=rng.random() < 0.5,
        is_sparse=rng.random() < 0.5,
        mask_form=mask_form,
        mask_order=rng.choice(["little", "big"]),
        num_mask_bytes=rng.choice([0, 5, 128]),
        truncate_letter=rng.choice(["T", None]) if "operation" in headers else "T",
    )
    field, record = rng.choice([(",", "\n"), ("|", "\r\n"), ("\x01", "\n"), ("|~|", "~\n")])
    options = Options(
        field_delimiter=field,
        record_delimiter=record,
        null=rng.choice(["", "NULL"]),
        escape=rng.choice(["", "\\"]),
        head=rng.choice(["names", "names:types"]),
        quoted=rng.choice(["texts", "needed"]),
    )
    of = source(
        prefix=layout.prefix,
        before_images="stored",
        quoted_null="text",
        mask_form=layout.mask_form,
        mask_order="auto" if mask_form == "hex" else layout.mask_order,
        delimiter=field,
        record_delimiter=record,
        null_text=options.null,
        escape=options.escape,
    )
    rows = encode.rows(table, changes, layout)
    rng.shuffle(rows)
    at = rng.randrange(len(rows) + 1)
    given = []
    for n, some in enumerate((rows[:at], rows[at:])):
        if form == "delimited":
            given.append((f"SHOP.THINGS__ct/{n}.csv", encode.delimited(table, some, layout, options)))
        elif form == "json":
            given.append((f"SHOP.THINGS__ct/P/{n}.json", encode.json_lines(table, some, layout)))
        elif some:
            given.append((f"lake/SHOP.THINGS__ct/P/{n}.parquet", encode.parquet(table, some, layout)))
    found = read(given, of, {"SHOP.THINGS": contract(table)}, len_block=rng.choice([1, 300, 1 << 20]))
    assert not found["rejects"] and not found["waiting"]
    assert sorted((said(row, table) for row in found["changes"]), key=lambda row: row[0]) == [
        expected(change, table, layout) for change in changes
    ]
    assert not any("mask_differs" in (row.get("header") or {}) for row in found["changes"])


@pytest.mark.parametrize("form", ["delimited", "json", "parquet"])
def test_a_load_is_read_in_any_form(form):
    rng = random.Random(form)
    table = random_table(rng)
    rows = [{c.name: n if c.key else random_value(rng, c.type) for c in table.columns} for n in range(30)]
    written = encode.rows(table, [{"operation": "REFRESH", "after": row} for row in rows], encode.LOAD)
    write = {
        "delimited": lambda: encode.delimited(table, written, encode.LOAD),
        "json": lambda: encode.json_lines(table, written, encode.LOAD),
        "parquet": lambda: encode.parquet(table, written, encode.LOAD),
    }[form]
    path = f"SHOP.THINGS/LOAD00000002.{'csv' if form == 'delimited' else form}"
    of = source(quoted_null="text", load_time="20260101000000", load_numbers={"SHOP.THINGS": 7})
    tables = {"SHOP.THINGS": contract(table)}
    found = read([(path, write())], of, tables)
    types = {c.name: c.type for c in table.columns}
    assert [{n: exact(v, types[n]) for n, v in row["after"].items()} for row in found["changes"]] == rows
    assert [row["change_seq"] for row in found["changes"]] == [
        f"20260101000000000000070{2:04d}{n:08d}" for n in range(len(rows))
    ]
    assert {row["load_id"] for row in found["changes"]} == {"2026010100000000000007"} and not found["rejects"]


def test_files_of_loads_have_places_of_their_own_whatever_their_table_and_segment():
    names = ["LOAD00000001.csv", "LOAD00000002.csv", "LOAD_0_1.csv", "LOAD_1_1.csv", "LOAD_99_499.csv", "LOAD49999.csv"]
    folders = ["SHOP.ITEMS", "SHOP.OTHERS", "lake/SHOP.THINGS"]
    places = [files.own_place(f"{folder}/{name}", source(), {}) for folder in folders for name in names]
    assert len({place for place, _ in places}) == len(places) == 18
    assert {owner for _, owner in places} == {"SHOP.ITEMS", "SHOP.OTHERS", "SHOP.THINGS"}
    assert files.own_place(PATH, source(), {}) is None
    for name in ("LOAD50000.csv", "LOAD_100_1.csv", "LOAD_1_500.csv"):
        assert files.own_place(f"SHOP.ITEMS/{name}", source(), {}) is None
        assert files.open_file(f"SHOP.ITEMS/{name}", b"1\n", True, source(), {}).kind == "missing_change_seq"


CHANGE = {"operation": "INSERT", "change_seq": seq(1), "after": {"ID": 1, "NAME": "a", "NOTE": None}}
PATH = "SHOP.ITEMS__ct/20260102-030405678.csv"
TABLES = {"SHOP.ITEMS": contract(ITEMS)}


def test_a_sidecar_says_how_a_file_is_read_and_goes_before_the_options():
    told = Options(field_delimiter="|", null="NULL")
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]), options=told)
    sidecar = {PATH: {"20260102-030405678.dfm": dfm(ITEMS, 1, options=told)}}
    found = read([(PATH, data)], source(), TABLES, sidecar)
    assert [row["after"] for row in found["changes"]] == [{"ID": "1", "NAME": "a", "NOTE": None}]
    [control] = found["controls"]
    assert control.kind == "options_differ" and "delimiter '|', not ','" in control.detail
    assert read([(PATH, data)], source(), TABLES)["rejects"][0].kind == "definition_missing"


def test_a_quote_before_a_quote_is_a_quote_that_is_written_twice():
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]))
    sidecar = {PATH: {"20260102-030405678.dfm": dfm(ITEMS, 1, options=Options(escape='"'))}}
    found = read([(PATH, data)], source(), TABLES, sidecar)
    assert len(found["changes"]) == 1 and found["controls"] == []


@pytest.mark.parametrize(
    ("of_sidecar", "kind", "words"),
    [
        ({"file": "other.csv"}, "contradiction", "other.csv"),
        ({"table": ITEMS._replace(columns=ITEMS.columns[:2])}, "contradiction", "the columns of its .dfm"),
        ({"table": ITEMS._replace(name="OTHER")}, "unknown_table", "a contract"),
    ],
)
def test_a_file_and_its_sidecar_that_disagree_are_one_reject(of_sidecar, kind, words):
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]), options=NAMES)
    given = {"table": ITEMS, "num_records": 1} | of_sidecar
    sidecar = {PATH: {"20260102-030405678.dfm": dfm(given.pop("table"), given.pop("num_records"), **given)}}
    found = read([(PATH, data)], source(), TABLES, sidecar)
    [reject] = found["rejects"]
    assert reject.kind == kind and words in reject.expected and reject.raw == data and not found["changes"]


def test_the_table_of_a_sidecar_goes_before_the_folder_s_name_and_not_before_what_a_person_maps():
    others = ITEMS._replace(schema="file", name="items")
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]), options=NAMES)
    path = "file.items__ct/20260102-030405678.csv"
    told = {path: {"20260102-030405678.dfm": dfm(ITEMS, 1)}}
    tables = TABLES | {"file.items": contract(others)}
    assert [row["source_schema"] for row in read([(path, data)], source(), tables, told)["changes"]] == ["SHOP"]
    assert [row["source_schema"] for row in read([(path, data)], source(), tables)["changes"]] == ["file"]
    mapped = Source(name="s", codec="qlik_change_table", **{"from": "nowhere"}, tables={"file.items": "file.items"})
    assert [reject.kind for reject in read([(path, data)], mapped, tables, told)["rejects"]] == ["ambiguous_table"]


def test_a_sidecar_that_is_none_is_a_reject_of_its_file():
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]), options=NAMES)
    found = read([(PATH, data)], source(), TABLES, {PATH: {"20260102-030405678.dfm": b'{"fileInfo": 1}'}})
    assert [(r.kind, r.raw) for r in found["rejects"]] == [("wrong_shape", data)]


def test_a_last_record_without_its_end_is_taken_where_the_option_or_a_count_says_so():
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]), options=NAMES._replace(ends=False))
    sidecar = {PATH: {"20260102-030405678.dfm": dfm(ITEMS, 1)}}
    assert [r.kind for r in read([(PATH, data)], source(), TABLES)["rejects"]] == ["truncated"]
    for found in (
        read([(PATH, data)], source(last_record="whole"), TABLES),
        read([(PATH, data)], source(), TABLES, sidecar),
    ):
        assert [row["after"]["NAME"] for row in found["changes"]] == ["a"] and not found["rejects"]
    cut_off = data.rsplit(b",", 2)[0]  # a count says that it is a record, not that it is whole
    assert [r.kind for r in read([(PATH, cut_off)], source(), TABLES, sidecar)["rejects"]] == ["bad_column_count"]


def test_whole_records_of_a_file_that_grows_are_taken_as_soon_as_their_masks_can_be_read():
    of, rows = source(before_images="none", without_mask="full"), encode.rows(ITEMS, [CHANGE])
    without = Layout(headers=("change_seq", "change_oper"))
    no_mask = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE], without), without, NAMES)
    same_in_both = CHANGE | {"operation": "DELETE", "before": CHANGE["after"]}
    unsettled = encode.delimited(ITEMS, encode.rows(ITEMS, [same_in_both]), options=NAMES).replace(b",80,", b",gAGA,")
    for data, is_taken in ((no_mask, True), (encode.delimited(ITEMS, rows, options=NAMES), True), (unsettled, False)):
        context = files.open_file(PATH, data, False, of, TABLES)
        assert bool(files.cut(data, context, of, TABLES, 1 << 20, False).blocks) == is_taken
        assert files.cut(data, context, of, TABLES, 1 << 20, True).blocks


@pytest.mark.parametrize("num_bytes", [0, 140])
@pytest.mark.parametrize(("form", "order"), [("hex", "big"), ("base64", "little"), ("base64", "big")])
def test_masks_of_a_thousand_columns(form, order, num_bytes):
    table = encode.Table("SHOP", "WIDE", tuple(Column(f"C{n}", "INT4", key=int(n == 0)) for n in range(1000)))
    before = {c.name: 1 for c in table.columns}
    after = before | {"C63": 2, "C500": None, "C999": 3}
    changes = [
        {"operation": "INSERT", "change_seq": seq(1), "after": before},
        {"operation": "UPDATE", "change_seq": seq(2), "before": before, "after": after},
    ]
    layout = Layout(has_before_rows=False, mask_form=form, mask_order=order, num_mask_bytes=num_bytes)
    data = encode.delimited(table, encode.rows(table, changes, layout), layout, NAMES)
    tables = {"SHOP.WIDE": contract(table)}
    found = read([("SHOP.WIDE__ct/1.csv", data)], source(before_images="none"), tables)
    assert not found["rejects"]
    mask = int.from_bytes(found["changes"][1]["change_mask"], "little")
    assert [n for n in range(1000) if mask >> n & 1] == [63, 500, 999]
    assert found["changes"][1]["after"]["C500"] is None


def test_a_part_waits_for_its_other_half_in_another_file_of_another_form():
    change = {
        "operation": "UPDATE",
        "change_seq": seq(2),
        "before": CHANGE["after"],
        "after": CHANGE["after"] | {"NAME": "b"},
    }
    update, before = encode.rows(ITEMS, [change])
    of = source(before_images="stored")
    text_file = (PATH, encode.delimited(ITEMS, [before], options=NAMES))
    json_file = ("SHOP.ITEMS__ct/P/1.json", encode.json_lines(ITEMS, [update]))
    assert read([text_file], of, TABLES)["waiting"] == [f"SHOP.ITEMS/{seq(2)}"]
    for given in ([text_file, json_file], [json_file, text_file]):
        [row] = read(given, of, TABLES)["changes"]
        assert (row["before"]["NAME"], row["after"]["NAME"], row["change_mask"]) == ("a", "b", b"\2")


@pytest.mark.parametrize("quoted_null", ["auto", "text", "null"])
def test_escapes_are_read_in_every_cell(quoted_null):
    """In header columns, and where a cell is the null text once its escape is gone."""
    head = "header__change_seq,header__change_oper,header__stream_position,header__transaction_id,ID,NAME,NOTE\n"
    options = {"escape": "\\", "null_text": "NULL", "quoted_null": quoted_null, "without_mask": "full"}
    lines = [f'{seq(1)},I,"a\\"b","c\\,d",1,"x","y"', f'{seq(2)},I,p,t,2,"\\NULL","y"']
    found = read([(PATH, (head + "".join(f"{line}\n" for line in lines)).encode())], source(**options), TABLES)
    first, *others = found["changes"]
    assert (first["stream_position"], first["transaction_id"]) == ('a"b', "c,d")
    assert [row["after"]["NAME"] for row in others] == {"auto": [], "text": ["NULL"], "null": [None]}[quoted_null]
    assert [reject.kind for reject in found["rejects"]] == ["ambiguous_layout"] * (quoted_null == "auto")


LIMBS = b"".join(n.to_bytes(16, "little") for n in (1, (1 << 64) + 7, 3))
TOO_LONG = pa.Array.from_buffers(pa.decimal128(4, 0), 3, [None, pa.py_buffer(LIMBS)])  # as damaged files have them
STRINGS = pa.array([b"a", b"\xc3", b"\xa9"], pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (STRINGS, "string", ["a", "bad_text", "bad_text"]),
        (pa.array([1_234_567, 0, 86_400 * 10**9], pa.time64("ns")), "string", ["00:00:00.001234567", "00:00:00", None]),
        (pa.array([500, 3_600_000, None], pa.time32("ms")), "string", ["00:00:00.500000", "01:00:00", "null"]),
        (pa.array([0, 2**31 - 1, -719_162], pa.date32()), "string", ["1970-01-01", None, "0001-01-01"]),
        (pa.array([0, 2**31 - 1, -719_162], pa.date32()), "date", ["1970-01-01", None, "0001-01-01"]),
        (pa.array([1, 2**62, 3], pa.duration("s")), "string", [None, None, None]),
        (TOO_LONG, "decimal(4,0)", [1, None, 3]),
        (pa.array([1, 2**31, 3], pa.int64()), "int", [1, None, 3]),
        (pa.array([1, 2**31, 3], pa.uint32()), "int", [1, None, 3]),
        (pa.array([1, 128, 3], pa.uint8()), "tinyint", [1, None, 3]),
        (pa.array([-(2**63), 2**63 - 1, 3], pa.int64()), "bigint", [-(2**63), 2**63 - 1, 3]),
        (pa.array([1, 2**64 - 1, 3], pa.uint64()), "bigint", [1, None, 3]),
        (pa.array(map(Decimal, ("-0.50", "99.99", "0.00"))), "decimal(5,2)", [Decimal("-0.50"), Decimal("99.99"), 0]),
        (pa.array(map(Decimal, ("1.50", "9.99", "10.00"))), "decimal(2,1)", [Decimal("1.50"), None, None]),
    ],
)
def test_a_value_of_parquet_that_cannot_be_shown_is_a_reject_of_its_row(values, type_, expected):
    columns = [{"name": "ID", "type": "int"}, {"name": "V", "type": type_}]
    tables = {"SHOP.ITEMS": Table(table="SHOP.ITEMS", name="t", key=["ID"], columns=columns)}
    rows = pa.table(
        {
            "header__change_seq": [seq(n) for n in (1, 2, 3)],
            "header__change_oper": ["I"] * 3,
            "ID": pa.array([1, 2, 3], pa.int32()),
            "V": values,
        }
    )
    of, context = source(without_mask="full"), {}
    context = files.open_rows("SHOP.ITEMS__ct/1.parquet", *opened_of(rows), {}, of, tables) | {"first_row": 0}
    one = files.decode_rows(rows, context, of, tables)
    found = {row["after"]["ID"]: row["after"]["V"] for row in change_rows(files, one, context, tables)}
    kinds = {reject.unit_offset + 1: reject.kind for reject in one.rejects}
    for n, wanted in enumerate(expected, 1):
        if wanted in (None, "bad_text"):
            assert kinds[n] == (wanted or "value_does_not_fit")
        else:
            assert found[n] == (None if wanted == "null" else wanted)


def test_a_part_that_waited_says_what_its_change_says_that_comes_again_whole(tmp_path):
    """A file was cut off behind the update, and the transaction comes again in one file: no part is among it."""
    of, tables = source(before_images="stored"), {"SHOP.ITEMS": contract(ITEMS)}
    before, after = {"ID": 1, "NAME": "a", "NOTE": "n"}, {"ID": 1, "NAME": "b", "NOTE": "n"}
    rows = encode.rows(ITEMS, [{"operation": "UPDATE", "change_seq": seq(1), "before": before, "after": after}])

    def decoded_as(rows: list) -> tuple:
        data = encode.delimited(ITEMS, rows, options=NAMES)
        [(unit, found, context)] = _units("SHOP.ITEMS__ct/1.csv", data, of, tables, None, 1 << 20)
        return unit, found, context, change_rows(files, found, context, tables)

    _, again, _, [whole] = decoded_as(rows)
    assert not again.parts
    images = {}
    for row in rows:
        unit, cut, context, _ = decoded_as([row])
        [part] = cut.parts
        assert part.change_seq == whole["change_seq"]
        raw = unit[part.unit_offset : part.unit_offset + part.unit_length]
        half = files.half(Waiting("u", part, raw, context), whole["change_mask"], of, tables)
        images |= {name: half[name] for name in ("before", "after") if half.get(name)}
    assert images == {name: whole[name] for name in ("before", "after")}


def test_nothing_is_asked_of_changes_where_no_part_waits_that_has_a_place(tmp_path):
    project = projects.make(tmp_path, {"s": {"codec": "qlik_change_table", "from": "landing/**"}}, [])
    part = {
        "source": "s",
        "part_key": "k",
        "unit_id": "s/1.csv@0",
        "unit_offset": 0,
        "is_settled": False,
        "batch_id": 1,
    }
    assert not parts.may_be_known(parts.waiting(project), ["s"])
    lakes.write(project, "silver.batches", lakes.batch(1, "s", seq(1)))
    lakes.write(project, "silver.waiting", part | {"unit_length": 9}, part | {"unit_length": 0, "change_seq": seq(1)})
    assert not parts.may_be_known(parts.waiting(project), ["s"])
    lakes.write(project, "silver.waiting", part | {"unit_offset": 9, "unit_length": 9, "change_seq": seq(1)})
    assert parts.may_be_known(parts.waiting(project), ["s"])
    assert not parts.may_be_known(parts.waiting(project), ["t"])


def test_parts_that_never_join_do_not_bring_each_other_back(tmp_path):
    """Two updates of one change, whose before-image never comes."""
    project = projects.make(tmp_path, {"s": {"codec": "qlik_change_table", "from": "landing/**"}})
    for number in (1, 2, 3):
        lakes.write(project, "silver.batches", lakes.batch(number, "s", seq(1)))
    part = {
        "source": "s",
        "part_key": "k",
        "unit_offset": 0,
        "unit_length": 9,
        "is_settled": False,
        "change_seq": seq(1),
    }
    first, second = part | {"unit_id": "s/1@0"}, part | {"unit_id": "s/2@0"}
    lakes.write(project, "silver.waiting", first | {"batch_id": 1}, second | {"batch_id": 2})
    lakes.write(project, "silver.waiting", first | {"batch_id": 3, "is_settled": True})
    assert parts.returning(project) == set()
    lakes.write(project, "silver.batches", lakes.batch(4, "s", seq(1)))
    lakes.write(project, "silver.waiting", part | {"unit_id": "s/3@0", "batch_id": 4})
    assert parts.returning(project) == {("s", "s/1@0", 0)}


def test_values_of_parquet_are_exact():
    columns = [
        Column("ID", "INT4", key=1),
        Column("AT", "DATETIME"),
        Column("N", "NUMERIC", precision=38, scale=9),
        Column("F", "REAL8"),
        Column("U", "UINT8"),
    ]
    table = encode.Table("SHOP", "ITEMS", tuple(columns))
    types = {"AT": "timestamp_ntz", "N": "decimal(38,9)", "F": "double", "U": "decimal(20,0)"}
    tables = {
        "SHOP.ITEMS": Table(
            table="SHOP.ITEMS",
            name="t",
            key=["ID"],
            columns=[{"name": c.name, "type": types.get(c.name, "int")} for c in columns],
        )
    }
    number = Decimal("12345678901234567890123456789.123456789")
    after = {"ID": 1, "AT": "2026-01-02T03:04:05.123456+00:00", "N": number, "F": 0.1, "U": (1 << 64) - 1}
    rows = encode.rows(table, [{"operation": "INSERT", "change_seq": seq(1), "after": after}])
    given = [("SHOP.ITEMS__ct/1.parquet", encode.parquet(table, rows))]
    [row] = read(given, source(), tables)["changes"]
    shown = {"AT": "2026-01-02 03:04:05.123456", "F": Decimal("0.1")}
    assert row["after"] == after | shown


@pytest.mark.parametrize("quote", ['"', '""', '"""'])
def test_steps_grow_with_the_length_of_damaged_text(monkeypatch, quote):
    """Lines whose quotes nothing ends, each looked at a bounded number of times."""
    counted = []
    record = text.record
    monkeypatch.setattr(text, "record", lambda *given: counted.append(record(*given)) or counted[-1])
    head = encode.delimited(ITEMS, [], options=NAMES)
    for num in (100, 200, 400):
        counted.clear()
        lines = "".join(f"{seq(n)},I,0380,,,,,{n},{quote if n % 3 == 0 else ''}a,\n" for n in range(num)).encode()
        found = read([(PATH, head + lines)], source(), TABLES, len_block=1 << 20)
        assert len(counted) <= 8 * num
        assert len(found["changes"]) + len(found["rejects"]) == num


def test_masks_that_contradict_each_other_do_so_in_whatever_pieces_a_file_comes():
    case = test_cases.load(next(path for path in CASES if path.stem == "bad_masks_that_contradict_each_other"))
    data = case["data"].replace(b",2800,", b",AAAA,", 1)  # AAAA, AAAA, AB00: base64 alone, until 0100
    found = test_codecs.joined(test_codecs.whole(case, data, 1 << 20))
    assert {row["kind"] for row in found} == {"ambiguous_layout"}
    for end in (data.index(b"\n2026", 400) + 1, len(data) - 134):
        test_codecs.assert_same(test_codecs.joined(test_codecs.whole(case, data, 1 << 20, [end])), found, end)


def wide_masks(*masks: bytes) -> pa.Table:
    """Updates of a table of 20 columns, with these masks."""
    ones = {f"C{n}": [1] * len(masks) for n in range(20)}
    head = {"change_seq": [seq(n) for n in range(len(masks))], "change_oper": ["U"] * len(masks), "change_mask": masks}
    return pa.table({f"header__{name}": values for name, values in head.items()} | ones)


WIDE = encode.Table("SHOP", "ITEMS", tuple(Column(f"C{n}", "INT4", key=int(n == 0)) for n in range(20)))
EITHER, LITTLE = b"\x10\x30", b"\x00\x01"  # fit both byte orders, and one


def test_masks_of_parquet_are_settled_over_the_first_rows_of_the_file_and_not_over_each_run():
    of, out = source(before_images="none"), io.BytesIO()
    pq.write_table(wide_masks(*[EITHER] * 7, LITTLE, *[EITHER] * 7), out)
    found = read([("SHOP.ITEMS__ct/1.parquet", out.getvalue())], of, {"SHOP.ITEMS": contract(WIDE)})
    assert not found["rejects"] and len(found["changes"]) == 15
    assert {row["change_mask"] for row in found["changes"]} == {b"\x02\x06", b"\x20"}


def test_no_more_masks_of_parquet_are_read_than_of_text(monkeypatch):
    monkeypatch.setattr(opening, "LEN_FITTED", 30)
    rows, asked = wide_masks(*[EITHER] * 40), []

    def values(name):
        for first in range(0, 40, 10):
            asked.append(name)
            yield from rows.column(name).slice(first, 10).chunks

    tables = {"SHOP.ITEMS": contract(WIDE)}
    context = files.open_rows("SHOP.ITEMS__ct/1.parquet", rows.schema, values, {}, source(), tables)
    assert context["masks"] == [["binary", "little"], ["binary", "big"]] and asked == ["header__change_mask"] * 2


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_whose_masks_two_readings_fit_are_read_once_an_option_says_which(form):
    of, tables, rows = source(before_images="none"), {"SHOP.ITEMS": contract(WIDE)}, wide_masks(EITHER)
    told = source(before_images="none", mask_form="base64" if form == "csv" else "auto", mask_order="little")
    data = (",".join(rows.column_names) + f"\n{seq(0)},U,MDAQ{',1' * 20}\n").encode()
    if form == "csv":
        [block] = files.cut(data, files.open_file(PATH, data, True, of, tables), of, tables, 1 << 20, True).blocks
        found = [files.decode(data, block.context, one, tables) for one in (of, told)]
    else:
        context = files.open_rows("SHOP.ITEMS__ct/1.parquet", *opened_of(rows), {}, of, tables) | {"first_row": 0}
        found = [files.decode_rows(rows, context, one, tables) for one in (of, told)]
    assert [[reject.kind for reject in one.rejects] for one in found] == [["ambiguous_layout"], []]
    assert [len(one.changes) for one in found] == [0, 1]


@pytest.mark.parametrize("line", [b",,,\n", b"\n", b"x,,,\n", b"1,I,a,b\n"])
def test_bytes_that_cutting_takes_grow_with_the_file_and_not_with_its_cells(line):
    two = encode.Table("SHOP", "ITEMS", (Column("A", "INT4", key=1), Column("B", "INT4")))
    tables, of = {"SHOP.ITEMS": contract(two)}, source(without_mask="full")
    data = b"header__change_seq,header__change_oper,A,B\n" + line * ((1 << 20) // len(line))
    context = files.open_file(PATH, data, True, of, tables)
    files.cut(data[:100], context, of, tables, 1 << 20, True)  # what is loaded once
    tracemalloc.start()
    try:
        cut = files.cut(data, context, of, tables, 1 << 20, True)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data)
    finally:
        tracemalloc.stop()
    assert cut.consumed == len(data) and sum(block.num_records for block in cut.blocks) in (0, data.count(b"\n") - 1)


def test_an_image_that_is_null_has_no_names():
    """They are as many bytes as the values of a row, and would go to Spark with each row."""
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE] * 3), options=NAMES)
    of = source()
    [block] = files.cut(data, files.open_file(PATH, data, True, of, TABLES), of, TABLES, 1 << 20, True).blocks
    changes = files.decode(data, block.context, of, TABLES).changes
    lengths = {name: pc.sum(pc.binary_length(changes[name].field("metadata"))).as_py() for name in ("before", "after")}
    names = variant.metadata(variant.in_order(["ID", "NAME", "NOTE"]))
    assert len(changes) == 3 and lengths == {"before": 0, "after": 3 * len(names)}


def test_a_record_of_too_many_cells_is_not_kept_as_cells():
    dialect = Dialect(",", "\n", '"', "", charset.with_ascii("AL32UTF8"))
    line = "1" + "," * 100_000 + '"a\nb"\n'
    state, end, cells = text.record(line + "2", 0, len(line) + 1, dialect, most=5)
    assert (state, end, len(cells)) == (text.WHOLE, len(line), 5)
    data = encode.delimited(ITEMS, encode.rows(ITEMS, [CHANGE]), options=NAMES)
    found = read([(PATH, data + b"," * 100_000 + b"\n")], source(before_images="none"), TABLES)
    assert len(found["changes"]) == 1
    assert [(r.kind, r.found) for r in found["rejects"]] == [("bad_column_count", "110 or more")]


@pytest.mark.rounds
@pytest.mark.parametrize("number", range(20 if not ALL_ROUNDS else 400))
def test_damaged_files_say_the_same_in_whatever_blocks_and_pieces_they_come(number):
    """Bytes that are gone, changed, put in or there twice, quotes and delimiters above all."""
    rng = random.Random(number)
    for _ in range(5):
        case = test_cases.load(rng.choice(CASES))
        data = case["data"]
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(data) + 1)
            copied = rng.randrange(len(data) + 1)
            put = rng.choice([b'"', b'""', b"\n", b",", b"\\", b"|", b"\r\n", b'"\n', rng.randbytes(1)])
            put = rng.choice([put, b"", data[copied : copied + rng.randrange(100)]])
            data = data[:at] + put + data[at + rng.choice([0, 0, 1, rng.randrange(9)]) :]
        if not data:
            continue
        found = test_codecs.joined(test_codecs.whole(case, data, 1 << 20))
        assert all(row.get("kind") != "decoder_failed" for row in found), data
        for len_block in (1, 40, 200):
            test_codecs.assert_same(test_codecs.joined(test_codecs.whole(case, data, len_block)), found, data)
        for _ in range(2):
            ends = sorted(rng.sample(range(1, len(data)), min(3, len(data) - 1)))
            test_codecs.assert_same(
                test_codecs.joined(test_codecs.whole(case, data, 1 << 20, ends)), found, (data, ends)
            )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_compiled_walk_says_what_the_plain_path_says(path):
    case = test_cases.load(path)
    change_table.check(case, change_table.units(case))


def test_rows_of_plain_values_are_read_by_the_compiled_walk():
    """Else it would be of no use: all but truncates."""
    case = test_cases.load(next(path for path in CASES if path.stem == "ok_default_header_columns"))
    with mock.patch.object(blocks_of_text, "plain_row", wraps=blocks_of_text.plain_row) as plain:
        operations = [row["operation"] for row in test_cases.decode_file(case, case["data"])["changes"]]
    assert plain.call_count == operations.count("TRUNCATE") < len(operations)


def test_images_that_an_array_does_not_hold_are_left_to_the_plain_path(monkeypatch):
    case = test_cases.load(next(path for path in CASES if path.stem == "ok_default_header_columns"))
    expected = test_cases.decode_file(case, case["data"])
    monkeypatch.setattr(json_batches, "LEN_MOST", 1)
    with mock.patch.object(blocks_of_text, "plain_row", wraps=blocks_of_text.plain_row) as plain:
        assert test_cases.decode_file(case, case["data"]) == expected and plain.call_count
