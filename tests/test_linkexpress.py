"""linkexpress_group against an independent encoder: decode(encode(x)) == x for any tables, rows, variants, cuts and
damage.
"""

import re
from decimal import Decimal

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from inlet import config
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.linkexpress import group as codec
from inlet.errors import REJECT_KINDS, ConfigError, Reject
from inlet.fields import variant
from inlet.fields.charset import charset, text
from inlet.source import Source
from inlet.table import Table
from tests.encode.linkexpress import encode_file

quick = settings(
    max_examples=40,
    deadline=None,
    phases=[p for p in Phase if p is not Phase.explain],
    suppress_health_check=list(HealthCheck),
)
PATH = "SHOP.T1_20260102030405_3.dat"
PREFIX = "2026010203040500000000003"  # time and ordinal of its name
TEXTS = {
    "cp932": "Aｱ山 z髙",
    "ebcdic_kana": "AZｱ山田 1丂髙",
    "ebcdic_ascii": "aZ山 1𠮷",
    "euc_jp": "Aｱ山",
    "euc_jp_0212": "Aｱ山丂",
    "u90": "Aｱ山𠮷",
    "jis8": "Aｱ~ ",
    "utf_8": "Aé山😀",
    "utf_16": "Aé山😀髙",
}
GAIJI = {  # the site's own codes of some of these
    "cp932": {"F040": "髙"},
    "ebcdic_kana": {"41A1": "丂", "80A1": "髙"},
    "ebcdic_ascii": {"7FFE": "𠮷"},
    "u90": {"8FA1A1": "𠮷"},
    "utf_16": {"E000": "髙"},
}


def decimals(precision: int, scale: int):
    return st.integers(1 - 10**precision, 10**precision - 1).map(
        lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale))
    )


def column_types(charset: str):
    """(source type, values that it holds)"""
    text = st.text(TEXTS[charset], max_size=3)
    wide = st.text("山田", max_size=3)
    types = [
        ("INTEGER", st.integers(-(2**31), 2**31 - 1)),
        ("SMALLINT", st.integers(-(2**15), 2**15 - 1)),
        ("DATE", st.dates()),
        ("TIME", st.times().map(lambda t: t.strftime("%H:%M:%S"))),
        ("TIMESTAMP", st.datetimes().map(lambda t: t.replace(microsecond=0))),
        ("REAL", st.integers(-(2**20), 2**20).map(lambda n: n / 16)),
        ("DOUBLE", st.integers(-(2**40), 2**40).map(lambda n: n / 256)),
        ("VARCHAR(20)", text),
        ("CHAR(20)", text),
        ("BLOB(9)", st.binary(max_size=9)),
        ("BYTEA(9)", st.binary(max_size=9)),
        ("TEXT(20)", text),
        ("INTERVAL DAY(3) TO SECOND", st.binary(min_size=5, max_size=5)),  # interval_bytes, below
    ]
    types += [] if charset in ("utf_8", "jis8") else [("NVARCHAR(3)", wide), ("NCHAR(3)", wide)]
    numbers = st.tuples(st.integers(1, 38), st.integers(0, 38)).map(lambda n: (n[0], min(n)))
    drawn = st.tuples(st.sampled_from(("NUMERIC", "DECIMAL")), numbers).map(
        lambda n: (f"{n[0]}({n[1][0]},{n[1][1]})", decimals(*n[1]))
    )
    return st.one_of(st.sampled_from(types), drawn)


@st.composite
def files(draw):
    """Tables, records and how they are written."""
    how = {
        "null_areas": draw(st.booleans()),
        "byte_order": draw(st.sampled_from(("big", "little"))),
        "charset": draw(st.sampled_from(sorted(TEXTS))),
        "logtype": draw(st.sampled_from(("normal", "little"))),
        "null_var_body": draw(st.sampled_from(("len0", "full", "absent"))),
        "numeric_sign": draw(st.sampled_from(("separate", "trailing", "overpunch"))),
    }
    how["gaiji"] = GAIJI.get(how["charset"], {})
    names = st.lists(st.text("ABCDEFGH", min_size=1, max_size=2), min_size=1, max_size=6, unique=True)
    tables = {
        id_: [(name, *draw(column_types(how["charset"]))) for name in draw(names)]
        for id_ in [1, *draw(st.lists(st.integers(2, 65535), max_size=2, unique=True))]
    }
    tables[0] = tables[1]  # rows of a full extract of the table that the file's name tells
    values = {
        id_: st.fixed_dictionaries(
            {
                name: st.one_of(v, st.none()) if how["null_areas"] and n else v  # the first is the key
                for n, (name, _, v) in enumerate(columns)
            }
        )
        for id_, columns in tables.items()
    }
    record = st.sampled_from(sorted(tables)).flatmap(
        lambda id_: (
            st.tuples(st.sampled_from(("insert", "update", "delete")), st.just(id_), values[id_])
            if id_
            else st.tuples(st.just("row"), values[0])
        )
    )
    records = draw(st.lists(st.one_of(record, record, record, st.just(("commit",)), st.just(("empty",))), max_size=14))
    return how, {id_: [(name, type_) for name, type_, _ in columns] for id_, columns in tables.items()}, records


REQUIRED = {"source_tz": "UTC", "charset": "cp932"}  # options without a default


def project(layouts: dict, **options):
    names = {id_: f"SHOP.T{id_}" for id_ in layouts if id_}
    tables = {
        name: Table(
            table=name,
            name=f"t{id_}",
            key=[layouts[id_][0][0]],
            columns=[{"name": column, "type": "string", "source_type": type_} for column, type_ in layouts[id_]],
        )
        for id_, name in names.items()
    }
    source = Source(
        **{
            "name": "shop",
            "codec": "linkexpress_group",
            "from": "landing",
            "options": REQUIRED | options,
            "tables": {str(id_): name for id_, name in names.items()},
        }
    )
    return source, tables


def told(how: dict, *names: str) -> dict:
    """What of it a project's options tell."""
    options = how | {
        "interval_bytes": 5,
        "null_areas": "yes" if how["null_areas"] else "no",
        "numeric_sign": "overpunch" if how["numeric_sign"] == "overpunch" else "separate",
    }
    return {
        name: options[name]
        for name in ("charset", "gaiji", "interval_bytes", "logtype", "numeric_sign", "null_var_body", *names)
    }


def blank(value, type_: str, how: dict):
    """A value as its column gives it back: CHAR padded, decimals at their scale without minus zero."""
    if value is None:
        return None
    if type_.startswith("CHAR"):
        how = how | {"null_areas": False, "logtype": "little"}
        alone = encode_file([("insert", 1, {"C": value})], layouts={1: [("C", "VARCHAR(20)")]}, **how)
        return value + " " * ((20 - len(alone) + 12) // (2 if how["charset"] == "utf_16" else 1))
    return value.ljust(3, "\u3000") if type_.startswith("NCHAR") else value


def expected_rows(records, layouts, how) -> list[tuple]:
    rows, transaction, counter = [], 0, 0
    for n, record in enumerate(records):
        if record[0] == "commit":
            transaction, counter = transaction + 1, 0
        if record[0] in ("commit", "empty"):
            continue
        image = {
            name: blank(record[-1][name], type_, how) for name, type_ in layouts[0 if record[0] == "row" else record[1]]
        }
        if record[0] == "row":
            rows.append((n, "REFRESH", "T1", None, None, None, image, PREFIX))
            continue
        counter += 1
        is_last = n + 1 < len(records) and records[n + 1][0] == "commit"
        rows.append((n, record[0].upper(), f"T{record[1]}", f"{PREFIX}-{transaction}", counter, is_last, image, None))
    return rows


def rows_of(data, contexts_and_blocks, source, tables) -> tuple[list[tuple], int]:
    rows, num_rejects = [], 0
    for block in contexts_and_blocks:
        decoded = codec.decode(data[block.offset : block.offset + block.length], block.context, source, tables)
        num_rejects += len(decoded.rejects)
        for row in change_rows(codec, decoded, block.context, tables):
            rows.append(
                (
                    int(row["change_seq"][-10:]),
                    row["operation"],
                    row["source_table"],
                    row["transaction_id"],
                    row["transaction_event_counter"],
                    row["transaction_last_event"],
                    row["before"] if row["operation"] == "DELETE" else row["after"],
                    row["load_id"],
                )
            )
            assert row["change_seq"].startswith(PREFIX)
            assert row["before" if row["operation"] != "DELETE" else "after"] is None
    return rows, num_rejects


@quick
@given(files(), st.integers(1, 400), st.booleans())
def test_what_was_encoded_is_decoded_whatever_the_blocks(file, len_block, is_told):
    how, layouts, records = file
    data = encode_file(records, layouts=layouts, **how)
    source, tables = project(layouts, **told(how, *(("byte_order", "null_areas") if is_told else ())))
    context = codec.open_file(PATH, data, True, source, tables)
    if isinstance(context, Reject):
        assert not is_told and context.kind == "ambiguous_layout"
        return
    cut = codec.cut(data, context, source, tables, len_block)
    assert cut.consumed == len(data) and not cut.problem and sum(b.num_records for b in cut.blocks) == len(records)
    num_late = sum(record == ("empty",) for record in records[1:])  # FFFF behind another record is none
    assert rows_of(data, cut.blocks, source, tables) == (expected_rows(records, layouts, how), num_late)


@quick
@given(files(), st.integers(0, 5000), st.integers(1, 300))
def test_a_file_that_grows_gives_the_same_changes(file, at, len_block):
    how, layouts, records = file
    data = encode_file(records, layouts=layouts, **how)
    source, tables = project(layouts, **told(how, "byte_order", "null_areas"))
    context = codec.open_file(PATH, data, True, source, tables)
    first = codec.cut(data[:at], context, source, tables, len_block, is_final=False)
    second = codec.cut(data[first.consumed :], first.context, source, tables, len_block)
    early, _ = rows_of(data, first.blocks, source, tables)
    late, _ = rows_of(data[first.consumed :], second.blocks, source, tables)
    assert early + late == expected_rows(records, layouts, how)


@quick
@given(files(), st.data())
def test_damage_never_crashes_and_every_byte_is_accounted_for(file, data):
    how, layouts, records = file
    damaged = bytearray(encode_file(records, layouts=layouts, **how))
    for _ in range(data.draw(st.integers(1, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    source, tables = project(layouts, **told(how))
    context = codec.open_file(PATH, bytes(damaged), True, source, tables)
    if isinstance(context, Reject):
        assert (context.kind in REJECT_KINDS) and context.unit_length == len(damaged)
        return
    cut = codec.cut(bytes(damaged), context, source, tables, 100)
    assert sum(b.length for b in cut.blocks) == cut.consumed
    for block in cut.blocks:
        unit = bytes(damaged[block.offset : block.offset + block.length])
        found = codec.decode(unit, block.context, source, tables)
        decoded = sum(found.changes.column("unit_length").to_pylist())
        assert decoded + found.bytes_framing + sum(r.unit_length for r in found.rejects) == len(unit)
        assert found.changes.num_rows + found.num_control + len(found.rejects) == block.num_records
        for reject in found.rejects:
            assert reject.unit_offset <= reject.byte_offset <= reject.unit_offset + reject.unit_length


@quick
@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_rejected(data):
    source, tables = project({1: [("A", "INTEGER"), ("B", "VARCHAR(5)")]})
    for byte_order in ("big", "little"):
        context = {
            "byte_order": byte_order,
            "null_areas": "yes",
            "time": "2026010203040500",
            "file_ordinal": 0,
            "table": None,
            "load_id": None,
            "record_ordinal": 0,
            "transaction_ordinal": 0,
            "counter": 0,
        }
        found = codec.decode(data, context, source, tables)
        decoded = sum(found.changes.column("unit_length").to_pylist())
        assert decoded + found.bytes_framing + sum(r.unit_length for r in found.rejects) == len(data)


LAYOUT = {1: [("N", "INTEGER")]}
INSERTS = [("insert", 1, {"N": n}) for n in range(40)]


def test_a_block_ends_behind_a_commit_record():
    records = [r for n, insert in enumerate(INSERTS) for r in ([insert, ("commit",)] if n % 3 == 2 else [insert])]
    data = encode_file(records, True, "big", "cp932", LAYOUT)
    source, tables = project(LAYOUT)
    cut = codec.cut(data, codec.open_file(PATH, data, True, source, tables), source, tables, 50)
    assert all(block.context["counter"] == 0 for block in cut.blocks) and len(cut.blocks) > 5


def test_a_long_transaction_is_cut_but_never_before_its_commit_record():
    data = encode_file([*INSERTS, ("commit",)], True, "big", "cp932", LAYOUT)
    source, tables = project(LAYOUT)
    for len_block in range(1, 60):
        cut = codec.cut(data, codec.open_file(PATH, data, True, source, tables), source, tables, len_block)
        rows, _ = rows_of(data, cut.blocks, source, tables)
        assert [row[5] for row in rows] == [False] * 39 + [True]
        assert max(block.length for block in cut.blocks) <= 4 * len_block + 18 + 10


def test_a_change_waits_for_what_follows_it_while_the_file_may_grow():
    data = encode_file(INSERTS[:2], True, "big", "cp932", LAYOUT)
    source, tables = project(LAYOUT)
    context = codec.open_file(PATH, data, True, source, tables)
    assert codec.cut(data, context, source, tables, 100, is_final=False).consumed == 18
    assert codec.cut(data, context, source, tables, 100).consumed == 36


def test_a_damaged_record_holds_up_no_file_that_may_grow():
    """Lengths tell how it is read, whatever is damaged in a record."""
    data = encode_file([*INSERTS, ("commit",)], True, "big", "cp932", LAYOUT)
    source, tables = project(LAYOUT)
    context = codec.open_file(PATH, data[:12] + b"\0\1" + data[14:], False, source, tables)
    assert (context["byte_order"], context["null_areas"]) == ("big", "yes")


def test_a_file_that_no_reading_can_begin_is_refused_though_it_may_grow():
    layout = {1: [("N", "INTEGER"), ("NAME", "VARCHAR(10)")]}
    data = encode_file([("insert", 1, {"N": 1, "NAME": "a"})], True, "big", "cp932", layout)
    source, tables = project(layout, byte_order="little", null_areas="yes")
    assert codec.open_file(PATH, data, False, source, tables).kind == "bad_length"


def test_a_file_without_a_whole_record_is_read_when_it_has_grown():
    source, tables = project(LAYOUT)
    data = encode_file(INSERTS[:1], True, "big", "cp932", LAYOUT)
    context = codec.open_file(PATH, data[:11], True, source, tables)
    assert context["byte_order"] is None
    cut = codec.cut(data[:11], context, source, tables, 100)
    assert (cut.blocks, cut.consumed, cut.problem) == ([], 0, None)


def test_an_image_is_one_sorted_object_of_fewest_bytes():
    layout = {1: [("B", "INTEGER"), ("A", "CHAR(2)"), ("C", "DECIMAL(3,1)")]}
    row = {"B": 70000, "A": "xy", "C": Decimal("1.5")}
    source, tables = project(layout)
    data = encode_file([("insert", 1, row)], True, "big", "cp932", layout)
    context = codec.open_file(PATH, data, True, source, tables)
    image = codec.decode(data, context, source, tables).changes.column("after")[0].as_py()
    value, metadata = variant.encode(row)
    assert image["metadata"] == metadata and len(image["value"]) == len(value) and variant.decode(**image) == row


@pytest.mark.parametrize("num_columns, size", [(3, 20), (3, 300), (300, 5), (2, 20000)])
def test_images_of_every_width(num_columns, size):
    layout = {1: [(f"C{n}", f"VARCHAR({size})") for n in range(num_columns)]}
    records = [
        ("insert", 1, {f"C{n}": "x" * ((n * 7 + shift) % (size + 1)) for n in range(num_columns)})
        for shift in (0, size, 1)
    ]
    data = encode_file(records, True, "little", "cp932", layout, "little")
    source, tables = project(layout, logtype="little", max_record_bytes=1 << 20)
    context = codec.open_file(PATH, data, True, source, tables)
    rows = change_rows(codec, codec.decode(data, context, source, tables), context, tables)
    assert [row["after"] for row in rows] == [record[2] for record in records]


@pytest.mark.parametrize(
    "overrides, said",
    [
        ({"4A": "[]"}, "4A: expected one character"),
        ({"4A": ""}, "one character"),
        ({"4A": "\ud800"}, "one character"),
        ({"4A": "U+D800"}, "one character"),
        ({"4A": "U+110000"}, "one character"),
        ({"4A4": "["}, "2 or 4 hex digits"),
        ({"A1A1A1": "["}, "2 or 4 hex digits"),
        ({"4a": "[", "4A": "]"}, "stands there twice"),
        ({"GG": "["}, "2 or 4 hex digits"),
        ({40: "["}, "in quotes"),
        ({"4A": 1}, "one character"),
        (None, "codes with their characters"),
        (["4A"], "codes with"),
    ],
)
@pytest.mark.parametrize("option", ["gaiji", "charset_overrides", "nchar_overrides"])
def test_a_cell_that_a_site_changed_is_one_code_and_one_character(option, overrides, said):
    source, tables = project(LAYOUT, **{option: overrides})
    with pytest.raises(ConfigError, match=f"{option}.*{said}"):
        codec.open_file(PATH, b"", True, source, tables)


@pytest.mark.parametrize(
    "options, code",
    [
        ({"charset": "cp932"}, "8FA1A1"),
        ({"charset": "u90"}, "8FA140"),
        ({"charset": "utf_8"}, "E000"),
        ({"charset": "utf_16"}, "D842"),
        ({"charset": "utf_16"}, "41"),
        ({"charset": "jis8"}, "B0A1"),
        ({"charset": "ebcdic_kana"}, "28"),
    ],
)
def test_a_code_that_no_set_of_the_source_reads_is_named(options, code):
    source, tables = project(LAYOUT, gaiji={code: "髙"}, **options)
    with pytest.raises(ConfigError, match=f"{code}.*: no code that is read as"):
        codec.open_file(PATH, b"", True, source, tables)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"charset": "utf_8", "user_defined": "reject"}, "user_defined"),
        ({"charsett": "cp932"}, "charsett"),
        ({"charset": "klingon"}, "charset"),
        ({"byte_order": 1}, "byte_order"),
        ({"source_tz": "Nowhere/City"}, "source_tz"),
        ({"source_tz": None}, "source_tz is missing"),
        ({"charset": None}, "charset is missing"),
    ],
)
def test_a_wrong_option_is_named(options, said):
    source, tables = project(LAYOUT, **options)
    with pytest.raises(ConfigError, match=said):
        codec.open_file(PATH, b"", True, source, tables)


@pytest.mark.parametrize("name", ["20260102030405_7.lxg", "T1_20260102030405_7.lxg"])
@pytest.mark.parametrize("damaged", range(5))
def test_no_damage_of_a_head_leaves_a_transaction_that_looks_whole(name, damaged):
    """Two transactions, of three rows and of one; each 2 bytes of the head of each record become other words."""
    layouts = {1: [("N", "INTEGER")]}
    source, tables = project(layouts, null_areas="yes", byte_order="big")
    records = [*(("insert", 1, {"N": n}) for n in range(3)), ("commit",), ("insert", 1, {"N": 3}), ("commit",)]
    data = encode_file(records, True, "big", "cp932", layouts)
    whole = [(row["after"]["N"], row["transaction_event_counter"]) for row in changes_of(data, name, source, tables)]
    assert whole == [(0, 1), (1, 2), (2, 3), (3, 1)]
    start = sum(int.from_bytes(data[at : at + 4], "big") for at in starts_of(data)[:damaged])
    for place in range(start + 4, start + 12, 2):
        for word in (0, 1, 3, 7, 0x8000, 0x8001, 0xFFFF):
            changed = data[:place] + word.to_bytes(2, "big") + data[place + 2 :]
            if changed == data:
                continue
            rows = changes_of(changed, name, source, tables)
            of_ids: dict[str, list] = {}
            for row in rows:
                of_ids.setdefault(row["transaction_id"], []).append(row)
            for members in of_ids.values():
                counters = [row["transaction_event_counter"] for row in members]
                is_whole = members[-1]["transaction_last_event"] and counters == list(range(1, len(counters) + 1))
                own = [(row["after"] or row["before"])["N"] for row in members]
                assert not is_whole or own in ([0, 1, 2], [3]), (place, word, own)


def starts_of(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        found.append(at)
        at += int.from_bytes(data[at : at + 4], "big")
    return found


def changes_of(data: bytes, name: str, source, tables) -> list[dict]:
    context = codec.open_file(name, data, True, source, tables)
    assert not isinstance(context, Reject), context
    block = codec.cut(data, context, source, tables, 1 << 20, True).blocks[0]
    found = codec.decode(data[: block.length], block.context, source, tables)
    return change_rows(codec, found, block.context, tables)


@pytest.mark.parametrize("name", ["linkexpress_group", "linkexpress_table", "linkexpress_journal"])
@pytest.mark.parametrize("missing", REQUIRED)
def test_a_project_has_to_say_what_no_byte_tells(tmp_path, name, missing):
    """Many a word in EUC is another word in Shift-JIS."""
    word = "名前".encode("euc_jp")
    assert [text(word, charset(name)) for name in ("euc_jp", "cp932")] == ["名前", "ﾌｾﾁｰ"]
    (tmp_path / "pipelines").mkdir()
    options = {option: value for option, value in REQUIRED.items() if option != missing}
    shop = {"codec": name, "from": "landing", "options": options}
    (tmp_path / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"sources": {"shop": shop}}))
    with pytest.raises(ConfigError, match=f"sources.shop.options: {missing} is missing"):
        config.load(tmp_path)
    (tmp_path / "pipelines" / "inlet.yml").write_text(yaml.safe_dump({"sources": {"shop": shop | {"options": {}}}}))
    with pytest.raises(ConfigError, match="sources.shop.options: source_tz, charset are missing") as error:
        config.load(tmp_path)
    assert "such as Asia/Tokyo" in error.value.remedy and "such as cp932" in error.value.remedy


def test_a_site_table_is_a_file_of_the_project_whose_content_the_options_are(tmp_path):
    (tmp_path / "pipelines" / "tables").mkdir(parents=True)
    options = "{source_tz: UTC, charset: cp932, gaiji: pipelines/gaiji.txt}"
    inlet = f"sources: {{shop: {{codec: linkexpress_group, from: landing, options: {options}}}}}"
    (tmp_path / "pipelines" / "inlet.yml").write_text(inlet)
    file = tmp_path / "pipelines" / "gaiji.txt"
    with pytest.raises(ConfigError, match="sources.shop.options.gaiji: pipelines/gaiji.txt: No such file"):
        config.load(tmp_path)
    for char in "髙𠮷":
        file.write_text(f"# ours\nF040 {char}\n", encoding="utf-8")
        options = config.load(tmp_path).sources["shop"].options_as(codec.OPTIONS)
        assert text(b"\xf0\x40", options.char_set("big")) == text(b"\xf0\x40", options.nchar_set("big")) == char
    file.write_text("F040 髙\nF041\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="options.gaiji: pipelines/gaiji.txt: line 2: expected a code"):
        config.load(tmp_path)
    file.write_bytes(b"F040 \xfb\xfc\n")
    with pytest.raises(ConfigError, match="pipelines/gaiji.txt: .*utf-8"):
        config.load(tmp_path)


@pytest.mark.parametrize(
    ("type_", "source_type", "is_right"),
    [
        ("int", "INTEGER", True),
        ("smallint", "INTEGER", False),
        ("decimal(10,0)", "INTEGER", True),
        ("decimal(9,0)", "INTEGER", False),
        ("decimal(7,2)", "DECIMAL(7,2)", True),
        ("decimal(7,1)", "DECIMAL(7,2)", False),
        ("decimal(8,3)", "DECIMAL(7,2)", True),
        ("int", "NUMERIC(9)", True),
        ("int", "NUMERIC(10)", False),
        ("double", "DECIMAL(7,2)", False),
        ("int", "VARCHAR(9)", False),
        ("string", "DECIMAL(7,2)", True),
        ("float", "DOUBLE", False),
        ("float", "FLOAT(23)", True),
        ("date", "TIMESTAMP", False),
        ("binary", "BLOB(9)", True),
    ],
)
def test_a_type_that_cannot_hold_its_source_type_is_a_config_error(type_, source_type, is_right):
    source, tables = project({1: [("A", source_type)]}, byte_order="big", null_areas="yes")
    tables["SHOP.T1"].columns[0].type = type_
    if is_right:
        codec.open_file(PATH, b"", True, source, tables)
    else:
        with pytest.raises(ConfigError, match=f"SHOP.T1.A: type .* cannot hold every {re.escape(source_type)}"):
            codec.open_file(PATH, b"", True, source, tables)


@pytest.mark.parametrize("type_", ["INTERVAL", "BYTEA", "MONEY", None, "DECIMAL", "DECIMAL(39,0)", "VARCHAR", "what?"])
def test_an_unsupported_type_names_its_column_and_what_is_supported(type_):
    source, tables = project({1: [("ID", type_)]})
    data = encode_file([("commit",)], True, "big", "cp932", {})
    with pytest.raises(ConfigError, match=r"SHOP\.T1\.ID.*CHARACTER, VARCHAR"):
        codec.open_file(PATH, data, True, source, tables)


def test_every_option_is_documented():
    assert all(field.description for field in codec.OPTIONS.model_fields.values())


def test_a_block_landed_with_its_problem_is_one_reject():
    source, tables = project(LAYOUT)
    problem = {"kind": "truncated", "unit_offset": 100, "byte_offset": 103, "expected": "a record", "found": "3 bytes"}
    found = decode_block(codec, b"abc", {"problem": problem}, source, tables)
    assert [(r.kind, r.unit_offset, r.unit_length, r.byte_offset, r.raw) for r in found.rejects] == [
        ("truncated", 0, 3, 3, b"abc")
    ]
    assert found.changes == []


def test_dates_of_a_file_name():
    source, tables = project(LAYOUT)
    for name, expected in {
        "20260102030405.dat": ("2026010203040500", 0),
        "a-2026010203040567-12.dat.gz": ("2026010203040567", 12),
        "x/y/t1_20260102030405.1.x": ("2026010203040500", 1),
    }.items():
        context = codec.open_file(name, b"", True, source, tables)
        assert (context["time"], context["file_ordinal"]) == expected
