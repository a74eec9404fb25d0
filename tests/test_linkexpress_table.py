"""linkexpress_table against an independent encoder: any table, rows and layout, told or found by exact fit, whatever
the blocks; and no reading is guessed.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlet.codecs.codec import change_rows
from inlet.codecs.linkexpress import table as codec
from inlet.errors import ConfigError, Reject
from inlet.source import Source
from tests import test_linkexpress
from tests.encode.linkexpress import encode_table_file
from tests.test_linkexpress import GAIJI, PATH, PREFIX, TEXTS, blank, column_types, quick

LOADS = ("row",)
DIFFERENCES = ("insert", "update", "delete")


@st.composite
def files(draw):
    """A table, records of it, and how they are written."""
    layout = draw(st.sampled_from(("open", "journal")))
    how = {
        "layout": layout,
        "null_areas": layout == "journal" or draw(st.booleans()),
        "byte_order": draw(st.sampled_from(("big", "little"))),
        "charset": draw(st.sampled_from(sorted(TEXTS))),
        "logtype": draw(st.sampled_from(("normal", "little"))),
        "null_var_body": draw(st.sampled_from(("len0", "full", "absent"))),
        "numeric_sign": draw(st.sampled_from(("separate", "trailing", "overpunch"))),
    }
    how["gaiji"] = GAIJI.get(how["charset"], {})
    names = draw(st.lists(st.text("ABCDEFGH", min_size=1, max_size=2), min_size=1, max_size=6, unique=True))
    columns = [(name, *draw(column_types(how["charset"]))) for name in names]
    row = st.fixed_dictionaries(
        {
            name: st.one_of(v, st.none()) if how["null_areas"] and n else v  # the first is the key
            for n, (name, _, v) in enumerate(columns)
        }
    )
    words = DIFFERENCES if layout == "journal" or draw(st.booleans()) else LOADS
    records = draw(st.lists(st.tuples(st.sampled_from(words), row), max_size=14))
    return how, [(name, type_) for name, type_, _ in columns], records


def project(columns: list, **options):
    source, tables = test_linkexpress.project({1: columns}, **options)
    return source.model_copy(update={"codec": "linkexpress_table", "tables": {"T1": "SHOP.T1"}}), tables


def told(how: dict, *names: str) -> dict:
    options = test_linkexpress.told(how) | {
        "interval_bytes": 5,
        "difftype": how["layout"],
        "byte_order": how["byte_order"],
    }
    options |= {"null_areas": "yes" if how["null_areas"] else "no"}
    return {name: options[name] for name in ("charset", "gaiji", "interval_bytes", *names)}


ALL = ("logtype", "numeric_sign", "null_var_body", "difftype", "byte_order", "null_areas")


def rows_of(data: bytes, blocks, source, tables) -> list[tuple]:
    rows = []
    for block in blocks:
        decoded = codec.decode(data[block.offset : block.offset + block.length], block.context, source, tables)
        assert not decoded.rejects
        rows += [
            (row["change_seq"], row["operation"], row["before"], row["after"], row["load_id"])
            for row in change_rows(codec, decoded, block.context, tables)
        ]
        assert {decoded.changes.column(name).null_count for name in ("transaction_ordinal", "counter", "last")} == {
            decoded.changes.num_rows
        }
    return rows


def expected_rows(columns: list, records: list, how: dict) -> list[tuple]:
    rows = []
    for n, (word, row) in enumerate(records):
        image = {
            name: blank(row[name], type_, {n: v for n, v in how.items() if n != "layout"}) for name, type_ in columns
        }
        images = (image, None) if word == "delete" else (None, image)
        of_load = ("REFRESH", *images, PREFIX) if word == "row" else (word.upper(), *images, None)
        rows.append((f"{PREFIX}{n:010}", *of_load))
    return rows


@quick
@given(files(), st.integers(1, 400), st.booleans())
def test_what_was_encoded_is_decoded_whatever_the_blocks(file, len_block, is_told):
    how, columns, records = file
    data = encode_table_file(records, columns=columns, **how)
    source, tables = project(columns, **told(how, *(ALL if is_told else ())))
    context = codec.open_file(PATH, data, True, source, tables)
    if isinstance(context, Reject):
        assert not is_told and context.kind == "ambiguous_layout"
        return
    cut = codec.cut(data, context, source, tables, len_block)
    assert cut.consumed == len(data) and not cut.problem and sum(b.num_records for b in cut.blocks) == len(records)
    assert rows_of(data, cut.blocks, source, tables) == expected_rows(columns, records, how)


@quick
@given(files(), st.integers(0, 3000), st.integers(1, 300))
def test_a_file_that_grows_gives_the_same_changes(file, at, len_block):
    how, columns, records = file
    data = encode_table_file(records, columns=columns, **how)
    source, tables = project(columns, **told(how, *ALL))
    context = codec.open_file(PATH, data, True, source, tables)
    first = codec.cut(data[:at], context, source, tables, len_block, is_final=False)
    second = codec.cut(data[first.consumed :], first.context, source, tables, len_block)
    rows = rows_of(data, first.blocks, source, tables)
    rows += rows_of(data[first.consumed :], second.blocks, source, tables)
    assert rows == expected_rows(columns, records, how)


@quick
@given(files(), st.data())
def test_damage_never_crashes_and_every_byte_is_accounted_for(file, data):
    how, columns, records = file
    damaged = bytearray(encode_table_file(records, columns=columns, **how))
    for _ in range(data.draw(st.integers(1, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    source, tables = project(columns, **told(how))
    context = codec.open_file(PATH, bytes(damaged), True, source, tables)
    if isinstance(context, Reject):
        assert context.unit_length == len(damaged)
        return
    cut = codec.cut(bytes(damaged), context, source, tables, 100)
    assert sum(b.length for b in cut.blocks) == cut.consumed
    for block in cut.blocks:
        unit = bytes(damaged[block.offset : block.offset + block.length])
        found = codec.decode(unit, block.context, source, tables)
        decoded = sum(found.changes.column("unit_length").to_pylist())
        assert decoded + found.bytes_framing + sum(r.unit_length for r in found.rejects) == len(unit)
        assert found.changes.num_rows + found.num_control + len(found.rejects) == block.num_records


COLUMNS = [("N", "INTEGER")]
HOW = {"layout": "open", "null_areas": True, "byte_order": "big", "charset": "cp932", "columns": COLUMNS}


def test_records_of_one_size_that_fit_one_way_alone_are_read():
    columns = [("ID", "INTEGER"), ("NAME", "VARCHAR(10)"), ("QTY", "NUMERIC(5,0)")]
    rows = [("insert", {"ID": n, "NAME": "山田", "QTY": n}) for n in (1, 2)]
    source, tables = project(columns)
    for null_areas in (True, False):
        data = encode_table_file(rows, **HOW | {"columns": columns, "null_areas": null_areas})
        context = codec.open_file(PATH, data, True, source, tables)
        assert (context["layout"], context["logtype"]) == ("open", "normal")
        assert context["null_areas"] == ("yes" if null_areas else "no")


def test_a_damaged_record_leaves_the_reading_of_the_others():
    """One of 40 records of one size is damaged, the first of all: the reading that takes the others stands."""
    data = encode_table_file([("insert", {"N": n}) for n in range(1, 40)], **HOW)
    source, tables = project(COLUMNS, byte_order="big")
    context = codec.open_file(PATH, b"\x00\x07" + data[2:], True, source, tables)
    assert (context["layout"], context["byte_order"], context["null_areas"]) == ("open", "big", "yes")
    found = codec.decode(b"\x00\x07" + data[2:], context, source, tables)
    assert [(r.kind, r.byte_offset) for r in found.rejects] == [("unknown_operation", 0)]


def test_records_that_say_their_length_are_read_though_one_is_damaged():
    """Two nulls tell what follows their indicator; readings that take no null read all other records alike."""
    columns = [("N", "INTEGER"), ("S", "VARCHAR(10)")]
    rows = [("insert", {"N": n, "S": None if n in (3, 200) else "a"}) for n in range(300)]
    source, tables = project(columns)
    for body in ("len0", "full", "absent"):
        how = HOW | {"columns": columns, "logtype": "little", "null_var_body": body}
        data = bytearray(encode_table_file(rows, **how))
        data[5] = 9  # the first record has no operation
        context = codec.open_file(PATH, bytes(data), True, source, tables)
        assert (context["logtype"], context["byte_order"], context["null_var_body"]) == ("little", "big", body)
        found = codec.decode(bytes(data), context, source, tables)
        assert [(r.kind, r.byte_offset) for r in found.rejects] == [("unknown_operation", 4)]


def test_most_records_of_one_size_are_enough_where_no_other_reading_has_any():
    columns = [("K", "CHAR(4)"), ("Q", "NUMERIC(5,0)")]
    rows = [("insert", {"K": f"{n:04}", "Q": n}) for n in range(11)]
    data = bytearray(encode_table_file(rows, **HOW | {"columns": columns}))
    len_record = len(data) // 11
    for n in (0, 3, 6, 9):
        data[n * len_record + 1] = 7  # no operation
    source, tables = project(columns)
    context = codec.open_file(PATH, bytes(data), True, source, tables)
    assert (context["logtype"], context["byte_order"], context["null_areas"]) == ("normal", "big", "yes")
    found = codec.decode(bytes(data), context, source, tables)
    assert (found.changes.num_rows, len(found.rejects)) == (7, 4)


@pytest.mark.parametrize("logtype", ["normal", "little"])
@pytest.mark.parametrize("words", [("山田", "a"), ("山田",)])
def test_a_wrong_charset_is_no_other_layout(logtype, words):
    columns = [("N", "INTEGER"), ("S", "VARCHAR(10)")]
    rows = [("insert", {"N": n, "S": words[n % len(words)]}) for n in range(20)]
    data = encode_table_file(rows, **HOW | {"columns": columns, "logtype": logtype})
    source, tables = project(columns, charset="utf_8")
    context = codec.open_file(PATH, data, True, source, tables)
    assert (context["layout"], context["logtype"], context["byte_order"]) == ("open", logtype, "big")
    rejects = codec.decode(data, context, source, tables).rejects
    assert {(r.kind, r.column_name) for r in rejects} == {("bad_text", "S")} and len(rejects) == 20 // len(words)
    source, tables = project(columns)
    assert codec.decode(data, context, source, tables).rejects == []  # what a replay does under the right one


@pytest.mark.parametrize("word", ["田", "一丁"])
def test_text_of_utf_16_is_read_in_no_byte_order_that_nothing_tells(word):
    """The codes of a full extract are zeros; its text is one in either order, and another one."""
    columns = [("S", "CHAR(4)")]
    how = HOW | {"columns": columns, "byte_order": "little", "charset": "utf_16", "null_areas": False}
    data = encode_table_file([("row", {"S": word * (2 // len(word))})] * 20, **how)
    source, tables = project(columns, charset="utf_16", difftype="open", logtype="normal", null_areas="no")
    refused = codec.open_file(PATH, data, True, source, tables)
    assert isinstance(refused, Reject) and "auto: byte_order" in refused.expected
    source, tables = project(columns, charset="utf_16", byte_order="little")
    context = codec.open_file(PATH, data, True, source, tables)
    rows = change_rows(codec, codec.decode(data, context, source, tables), context, tables)
    assert [row["after"]["S"] for row in rows] == [word * (2 // len(word))] * 20


@pytest.mark.parametrize("numeric_sign", ["separate", "overpunch"])
def test_no_text_that_can_be_read_chooses_no_reading_of_what_is_behind_it(numeric_sign):
    """Each reading fails for the same text; the one that is right shows under the right charset."""
    columns = [("S", "CHAR(10)"), ("Q", "NUMERIC(5,0)")]
    rows = [("insert", {"S": "山田", "Q": n}) for n in range(20)]
    how = HOW | {"columns": columns, "logtype": "little", "numeric_sign": numeric_sign}
    data = encode_table_file(rows, **how)
    refused = codec.open_file(PATH, data, True, *project(columns, charset="utf_8"))
    assert isinstance(refused, Reject) and refused.kind == "bad_text" and "utf_8" in refused.expected
    context = codec.open_file(PATH, data, True, *project(columns))
    assert context["numeric_sign"] == numeric_sign


@pytest.mark.parametrize("byte_order", ["big", "little"])
def test_records_of_one_size_are_taken_at_once_where_one_reading_alone_takes_all(byte_order):
    columns = [("K", "CHAR(4)"), ("Q", "NUMERIC(5,0)")]
    rows = [("insert", {"K": f"{n:04}", "Q": n}) for n in range(3)]
    data = encode_table_file(rows, **HOW | {"columns": columns, "byte_order": byte_order})
    source, tables = project(columns)
    context = codec.open_file(PATH, data, False, source, tables)
    assert (context["logtype"], context["byte_order"], context["null_areas"]) == ("normal", byte_order, "yes")
    assert codec.open_file(PATH, data[:-1], False, source, tables) is None  # it may go on, or end so


GROWING = [("N", "INTEGER"), ("S", "VARCHAR(10)")]


def begun(**how):
    """A file that was landed while no row of it had a null, and what has come since: its bytes, its context then, and
    where it ended.
    """
    rows = [("insert", {"N": n, "S": "a"}) for n in range(20)]
    how = HOW | {"columns": GROWING} | how
    first, more = encode_table_file(rows, **how), encode_table_file([("insert", {"N": 20, "S": None})], **how)
    source, tables = project(GROWING)
    context = codec.open_file(PATH, first, False, source, tables)
    return first + more, context, len(first)


def test_an_option_that_is_set_later_reads_what_was_landed_and_what_comes():
    """No null told what follows the indicator of one."""
    data, context, end = begun(logtype="little", null_var_body="absent")
    assert context["null_var_body"] == "len0"
    source, tables = project(GROWING)
    [reject] = codec.decode(data, context, source, tables).rejects
    assert (reject.kind, reject.unit_offset) == ("truncated", end)
    source, tables = project(GROWING, null_var_body="absent")
    assert codec.decode(data, context, source, tables).rejects == []
    behind = codec.cut(data[:end], context, project(GROWING)[0], tables, 100).context
    cut = codec.cut(data[end:], behind, source, tables, 100)
    assert codec.decode(data[end:], cut.blocks[0].context, source, tables).rejects == []
    assert cut.context["null_var_body"] == "len0"  # the file's own reading, of which the option may be taken back


@pytest.mark.parametrize(
    ("how", "options", "said", "was"),
    [
        ({"logtype": "little"}, {"byte_order": "little"}, "byte_order little", "byte_order big"),
        ({"logtype": "normal"}, {"null_areas": "no"}, "null_areas no", "null_areas yes"),
        ({"logtype": "normal"}, {"difftype": "journal"}, "difftype journal", "difftype open"),
    ],
)
def test_an_option_by_which_records_lie_elsewhere_names_what_reads_the_file_again(how, options, said, was):
    """Blocks were cut as the file was begun; the others would be cut in the middle of records."""
    data, context, end = begun(**how)
    if context is None:
        context = codec.open_file(PATH, data, True, *project(GROWING))
    source, tables = project(GROWING, **options)
    cut = codec.cut(data[end:], context | {"record_ordinal": 20}, source, tables, 100)
    assert (cut.blocks, cut.consumed, cut.problem.kind) == ([], 0, "ambiguous_layout")
    assert f"{said}, as options say; `inlet replay --file` reads" in cut.problem.expected and was in cut.problem.found
    found = codec.decode(data[:end] + b"\0\x09" + data[end + 2 :], context, source, tables)
    assert found.changes.num_rows == 20 and len(found.rejects) == 1
    assert f"begun as {was}, and options say {said}: `inlet replay --file`" in found.rejects[0].expected


def test_an_option_that_changes_no_width_of_its_table_contradicts_nothing():
    data, context, end = begun(logtype="normal")
    context = context or codec.open_file(PATH, data, True, *project(GROWING))
    source, tables = project(GROWING, numeric_sign="overpunch", null_var_body="full")
    assert len(codec.cut(data, context, source, tables, 10_000).blocks) == 1


TOLD = {"difftype": "open", "logtype": "normal", "byte_order": "big", "null_areas": "yes"}


@pytest.mark.parametrize("options", [TOLD, {"difftype": "journal"}, {}])
def test_an_empty_full_extract_is_known_once_its_file_is_whole(options):
    """FFFF may be the beginning of a damaged record, until nothing comes behind it."""
    source, tables = project(COLUMNS, **options)
    assert codec.open_file(PATH, b"\xff\xff", False, source, tables) is None
    context = codec.open_file(PATH, b"\xff\xff", True, source, tables)
    assert (context["layout"], context["extract"], context["load_id"]) == ("open", "full", PREFIX)


def test_ffff_with_bytes_behind_it_empties_no_table():
    data = encode_table_file([("row", {"N": n}) for n in range(40)], **HOW)
    source, tables = project(COLUMNS, **TOLD)
    context = codec.open_file(PATH, b"\xff\xff" + data[2:], True, source, tables)
    found = codec.decode(b"\xff\xff" + data[2:], context, source, tables)
    assert (found.changes.num_rows, found.controls) == (39, [])
    assert [(r.kind, r.byte_offset) for r in found.rejects] == [("unknown_operation", 0)]


PAIR = [("K", "CHAR(4)"), ("Q", "INTEGER")]


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_byte_order_is_not_chosen_while_later_rows_may_tell_it(is_whole):
    rows = [("row", {"K": f"{n:04}", "Q": 0}) for n in range(5_000)] + [("row", {"K": "last", "Q": 19})]
    how = HOW | {"columns": PAIR, "byte_order": "little"}
    source, tables = project(PAIR, null_areas="yes", difftype="open", logtype="normal")
    context = codec.open_file(PATH, encode_table_file(rows[:3], **how), False, source, tables)
    assert context is None
    assert codec.open_options(PATH, encode_table_file(rows[:3], **how), source, tables) == ["byte_order"]
    refused = codec.open_file(PATH, encode_table_file(rows, **how), is_whole, source, tables)
    assert refused is None or refused.kind == "ambiguous_layout" and "byte_order" in refused.expected


@pytest.mark.parametrize(
    ("columns", "data"),
    [
        ([("CODE", "CHAR(20)")], bytes.fromhex("00000020 0002 0000 0001 0000") + b"A0" + b" " * 8),
        ([("N", "INTEGER")], bytes.fromhex("0001 0000 0000")),
        ([("N", "INTEGER")], bytes.fromhex("0100 0000 0500")),
        ([("N", "INTEGER")], bytes.fromhex("0001 0000 0000 00")),
        ([("K", "CHAR(4)"), ("A", "CHAR(10)")], bytes.fromhex("00000034 0001") + b"key " + b"value     "),
    ],
    ids=["journal_cut", "big_cut", "little_cut", "big_cut_at_7", "little_with_a_wrong_length"],
)
def test_a_record_that_is_cut_or_damaged_is_not_read_as_another_one(columns, data):
    source, tables = project(columns)
    context = codec.open_file(PATH, data, True, source, tables)
    assert isinstance(context, Reject) or context["byte_order"] is None


@pytest.mark.parametrize(
    ("tables", "name", "expected"),
    [
        ({"T1": "SHOP.T1"}, "T1_20260102030405.dat", "SHOP.T1"),
        ({"STOCK": "SHOP.T1"}, "STOCK_20260102030405.dat", "SHOP.T1"),
        ({"STOCK": "SHOP.T1"}, "20260102030405.dat", "SHOP.T1"),
        ({"STOCK*": "SHOP.T1"}, "STOCK7_20260102030405.dat", "SHOP.T1"),
        ({}, "SHOP.T1_20260102030405.dat", "SHOP.T1"),
        ({}, "20260102030405.dat", "unknown_table"),
        ({"STOCK": "SHOP.T1"}, "OTHER_20260102030405.dat", "unknown_table"),
    ],
)
def test_the_table_of_a_file(tables, name, expected):
    source, contracts = project(COLUMNS, **TOLD)
    source = source.model_copy(update={"tables": tables})
    data = encode_table_file([("insert", {"N": 1})], **HOW)
    context = codec.open_file(name, data, True, source, contracts)
    assert (context.kind if isinstance(context, Reject) else context["table"]) == expected


def test_a_file_of_a_table_without_a_contract_says_what_to_write():
    source, contracts = project(COLUMNS)
    source = source.model_copy(update={"tables": {"T2": "SHOP.T2"}})
    with pytest.raises(ConfigError, match=r"SHOP.T2, which has no contract.*Write pipelines/tables/t2.yml"):
        codec.open_file("T2_20260102030405.dat", b"", True, source, contracts)
    unwanted = source.model_copy(update={"ignore": ["SHOP.T2"]})
    reject = codec.open_file("T2_20260102030405.dat", b"\0", True, unwanted, contracts)
    assert (reject.kind, reject.source_schema, reject.source_table) == ("unknown_table", "SHOP", "T2")


def test_options_that_contradict_each_other_are_refused():
    options = {"difftype": "journal", "null_areas": "no"}
    source = Source(
        **{"name": "s", "codec": "linkexpress_table", "from": "x"}, options=test_linkexpress.REQUIRED | options
    )
    with pytest.raises(ConfigError, match="null_areas: files of a journal-form definition have them"):
        codec.open_file("T1_20260102030405.dat", b"\0", True, source, {})


def test_a_first_record_that_is_longer_than_what_is_tried_names_the_options():
    columns = [("N", "INTEGER"), ("B", "BLOB(2000000)")]
    data = encode_table_file(
        [("insert", {"N": 1, "B": bytes(1_500_000)})], **HOW | {"logtype": "little", "columns": columns}
    )
    source, tables = project(columns)
    found = codec.open_file(PATH, data[: 1 << 20], False, source, tables)
    assert isinstance(found, Reject) and "set the options that are auto: difftype, byte_order" in found.expected
    assert (found.source_schema, found.source_table) == ("SHOP", "T1")
