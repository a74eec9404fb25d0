"""linkexpress_journal against an independent encoder: any tables, rows and layout, told or found by exact fit, whatever
the blocks; and no reading is guessed.
"""

import datetime
import json
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlet.codecs.codec import change_rows
from inlet.codecs.linkexpress.journal import files as codec
from inlet.codecs.results import Waiting
from inlet.errors import REJECT_KINDS, ConfigError, Reject
from inlet.silver import blocks, messages, unread_files
from inlet.source import Source
from inlet.table import Table
from tests.encode.linkexpress_journal import INVALID, MISSING, Change, Checkpoint, How, divided, encode_file
from tests.journals import assert_unit_read_alike
from tests.test_linkexpress import blank, decimals, quick

TEXTS = {"cp932": "Aｱ山 z", "ebcdic_kana": "AZｱ山田 1", "ebcdic_ascii": "aZ山 1", "euc_jp": "Aｱ山", "utf_8": "Aé山😀"}
TEXTS |= {"utf_16": "Aé山😀"}

PATH = "shop_20260102120405_3.dat"
PREFIX = "2026010203040500000000003"  # its time in UTC, and its ordinal
REQUIRED = {"source_tz": "Asia/Tokyo", "charset": "cp932"}  # options without a default
CONTRACT = {"INTEGER": "int", "SMALLINT": "smallint", "REAL": "float", "DOUBLE": "double", "DATE": "date"}
CONTRACT |= {"TIMESTAMP": "timestamp_ntz", "BINARY(4)": "binary"}
BY_FIT = ("tagged", "sysitems_position", "compressed", "has_checkpoint", "name_width", "validity_order", "numeric_sign")
BY_FIT += ("varying_length", "nchar_length", "framing", "byte_order")


def column_types(charset: str):
    """(source type, values that it holds)"""
    text, wide = st.text(TEXTS[charset], max_size=3), st.text("山田", max_size=3)
    types = [
        ("INTEGER", st.integers(-(2**31), 2**31 - 1)),
        ("SMALLINT", st.integers(-(2**15), 2**15 - 1)),
        ("DATE", st.dates().map(str)),
        ("TIME", st.times().map(lambda t: t.strftime("%H:%M:%S"))),
        ("TIMESTAMP", st.datetimes().map(lambda t: t.isoformat(sep=" ", timespec="seconds"))),
        ("INTERVAL DAY(3) TO SECOND", st.just("+012 03:04:05")),
        ("REAL", st.integers(-(2**20), 2**20).map(lambda n: n / 16)),
        ("DOUBLE", st.integers(-(2**40), 2**40).map(lambda n: n / 256)),
        ("VARCHAR(20)", text),
        ("CHAR(20)", text),
        ("BINARY(4)", st.binary(min_size=4, max_size=4)),
    ]
    types += [] if charset == "utf_8" else [("NVARCHAR(3)", wide), ("NCHAR(3)", wide)]
    numbers = st.tuples(st.integers(1, 38), st.integers(0, 38)).map(lambda n: (n[0], min(n)))
    drawn = st.tuples(st.sampled_from(("NUMERIC", "DECIMAL")), numbers).map(
        lambda n: (f"{n[0]}({n[1][0]},{n[1][1]})", decimals(*n[1]))
    )
    return st.one_of(st.sampled_from(types), drawn)


@st.composite
def files(draw, min_changes: int = 0):
    """Tables, journals and how they are written."""
    is_tagged = draw(st.booleans())
    varying, nchar = draw(st.sampled_from((("data", "characters"), ("data", "bytes"), ("area", "bytes"))))
    charset = draw(st.sampled_from(sorted(TEXTS)))
    how = How(
        framing=draw(st.sampled_from(("mq_message", "message_body", "journal_stream"))),
        byte_order=draw(st.sampled_from(("big", "little"))),
        tagged=is_tagged,
        compressed=draw(st.booleans()),
        charset=charset,
        sysitems_position=draw(st.sampled_from(("first", "last"))),
        has_checkpoint=draw(st.booleans()),
        name_width=draw(st.sampled_from((38, 72))),
        numeric_sign=draw(st.sampled_from(("separate", "overpunch"))),
        validity_order=draw(st.sampled_from(("native", "bytes"))),
        varying_length=varying if is_tagged else "data",
        nchar_length=nchar if is_tagged else "characters",
        len_more=draw(st.sampled_from((0, 4 if charset == "utf_16" else 5))) if is_tagged else 0,
    )
    names = st.lists(st.text("ABCDEFGH", min_size=1, max_size=2), min_size=1, max_size=5, unique=True)
    tables = {
        table: [(name, *draw(column_types(how.charset))) for name in draw(names)]
        for table in ("T1", "T2")[: draw(st.integers(1, 2))]
    }
    trnids = draw(st.lists(st.sampled_from((7, 8, 9)), min_size=min_changes, max_size=12))
    journals: list = []
    for n, trnid in enumerate(trnids):
        is_first, is_last = trnid not in trnids[:n], trnid not in trnids[n + 1 :]
        sts = 5 if is_first and is_last else 1 if is_first else 4 if is_last else 2
        table = draw(st.sampled_from(sorted(tables)))
        row = {
            name: draw(values if not at else st.one_of(values, st.sampled_from((None, MISSING, INVALID))))
            for at, (name, _, values) in enumerate(tables[table])  # the first is the key
        }
        journals.append(Change(table, draw(st.sampled_from(("insert", "update", "delete"))), row, trnid, sts))
        if how.has_checkpoint and draw(st.integers(0, 9)) == 0:
            journals.append(Checkpoint("DAY1"))
    return how, {t: [(name, type_) for name, type_, _ in columns] for t, columns in tables.items()}, journals


def project(tables: dict, **options) -> tuple[Source, dict]:
    contracts = {
        f"SHOP.{table}": Table(
            table=f"SHOP.{table}",
            name=table.lower(),
            key=[columns[0][0]],
            columns=[{"name": name, "type": contract_type(type_), "source_type": type_} for name, type_ in columns],
        )
        for table, columns in tables.items()
    }
    source = Source(
        **{
            "name": "shop",
            "codec": "linkexpress_journal",
            "from": "landing",
            "options": REQUIRED | options,
            "tables": {table: f"SHOP.{table}" for table in tables},
        }
    )
    return source, contracts


def contract_type(type_: str) -> str:
    number = type_.startswith(("NUMERIC", "DECIMAL"))
    return f"decimal{type_[7:]}" if number else CONTRACT.get(type_, "string")


def told(how: How, *names: str) -> dict:
    words = {True: "yes", False: "no"}
    options = {name: getattr(how, name) for name in BY_FIT}
    options = {name: words.get(value, value) if isinstance(value, bool) else value for name, value in options.items()}
    options["name_width"] = str(how.name_width)
    return {"charset": how.charset} | {name: options[name] for name in names}


def rows_of(data: bytes, blocks, source, tables) -> list[tuple]:
    rows = []
    for block in blocks:
        decoded = codec.decode(data[block.offset : block.offset + block.length], block.context, source, tables)
        assert not decoded.rejects, decoded.rejects
        changes = change_rows(codec, decoded, block.context, tables)
        rows += map(row_of, changes)
        rows += [(one.change_seq, one.kind) for one in decoded.controls]
        seqs = [one["change_seq"] for one in changes] + [one.change_seq for one in decoded.controls]
        first, last = codec.span(block.context, block.num_records)
        assert all(first <= seq <= last for seq in seqs)
    return sorted(rows)


def row_of(row: dict) -> tuple:
    place = ("transaction_id", "transaction_event_counter", "transaction_last_event")
    names = ("change_seq", "operation", "source_table", *place, "before", "after", "column_states")
    return tuple(row[name] for name in names)


def decoded(data: bytes, source, tables) -> tuple:
    """What a whole file holds, and its changes as dicts."""
    context = codec.open_file(PATH, data, True, source, tables)
    found = codec.decode(data, context, source, tables)
    return found, change_rows(codec, found, context, tables)


def value_of(value, type_: str, how: How):
    if value is None:
        return None
    if type_ == "DATE":
        return datetime.date.fromisoformat(value)
    if type_ == "TIMESTAMP":
        return datetime.datetime.fromisoformat(value)
    value = blank(value, type_, {"charset": how.charset, "byte_order": "big"})
    return value + " " * (how.len_more // (2 if how.charset == "utf_16" else 1)) if type_ == "CHAR(20)" else value


def expected_rows(tables: dict, journals: list, how: How) -> list[tuple]:
    rows, counters = [], {}
    for n, one in enumerate(journals):
        if isinstance(one, Checkpoint):
            rows.append((f"{PREFIX}{n:010}", "checkpoint"))
            continue
        counters[one.trnid] = counters.get(one.trnid, 0) + 1
        image = {
            name: value_of(one.row[name], type_, how)
            for name, type_ in tables[one.table]
            if one.row[name] not in (MISSING, INVALID)
        }
        states = {name: "missing" for name, value in one.row.items() if value == MISSING} or None
        images = (image, None) if one.operation == "delete" else (None, image)
        place = (f"{one.trnid:016X}", counters[one.trnid], one.sts in (4, 5))
        rows.append((f"{PREFIX}{n:010}", one.operation.upper(), one.table, *place, *images, states))
    return rows


def packed(journals: list, how: How) -> list:
    """By threes where they can be packed."""
    return [journals[n : n + 3] for n in range(0, len(journals), 3)] if how.framing != "journal_stream" else journals


@quick
@given(files(), st.integers(1, 400))
def test_what_was_encoded_is_decoded_whatever_the_blocks(file, len_block):
    how, tables, journals = file
    data = encode_file(packed(journals, how), tables, how)
    source, contracts = project(tables, **told(how, *BY_FIT))
    context = codec.open_file(PATH, data[:1], False, source, contracts)
    cut = codec.cut(data, context, source, contracts, len_block, True)
    assert cut.consumed == len(data) and not cut.problem and sum(b.num_records for b in cut.blocks) == len(journals)
    assert rows_of(data, cut.blocks, source, contracts) == expected_rows(tables, journals, how)


@quick
@given(files())
def test_what_fits_is_what_was_encoded_or_is_refused(file):
    how, tables, journals = file
    data = encode_file(packed(journals, how), tables, how)
    has_odd = any(
        one.row[name] is MISSING and "CHAR" not in type_  # which no conversion of characters makes
        for one in journals
        if isinstance(one, Change)
        for name, type_ in tables[one.table]
    )
    source, contracts = project(tables, **told(how, *(("validity_order",) if has_odd else ())))
    context = codec.open_file(PATH, data, True, source, contracts)
    if isinstance(context, Reject):
        assert context.kind == "ambiguous_layout", context
        return
    cut = codec.cut(data, context, source, contracts, 1 << 20, True)
    assert rows_of(data, cut.blocks, source, contracts) == expected_rows(tables, journals, how)


@quick
@given(files(), st.data())
def test_damage_never_crashes_and_every_byte_is_accounted_for(file, data):
    how, tables, journals = file
    damaged = bytearray(encode_file(packed(journals, how), tables, how))
    for _ in range(data.draw(st.integers(1, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    source, contracts = project(tables, **told(how, *(BY_FIT if data.draw(st.booleans()) else ())))
    context = codec.open_file(PATH, bytes(damaged), True, source, contracts)
    if isinstance(context, Reject):
        assert context.unit_length == len(damaged) and context.kind in REJECT_KINDS
        return
    cut = codec.cut(bytes(damaged), context, source, contracts, 100, True)
    assert sum(b.length for b in cut.blocks) == cut.consumed
    for block in cut.blocks:
        unit = bytes(damaged[block.offset : block.offset + block.length])
        found = codec.decode(unit, block.context, source, contracts)
        decoded = sum(found.changes.column("unit_length").to_pylist())
        assert decoded + found.bytes_framing + sum(r.unit_length for r in found.rejects) == len(unit)
        assert found.changes.num_rows + found.num_control + len(found.rejects) == block.num_records
        assert all(reject.kind in REJECT_KINDS for reject in found.rejects)


@quick
@given(files(), st.data())
def test_messages_are_read_as_files_are_but_for_places_and_counters(file, data):
    """Each journal is a message, or some are packed; some are divided over two, by whatever place and form."""
    how, tables, journals = file
    how = replace(how, framing="message_body") if how.framing == "journal_stream" else how
    source, contracts = project(tables, divided="yes", **told(how, *BY_FIT))
    found, waiting, offset, num, expected = [], [], 0, 1, expected_rows(tables, journals, how)
    while journals:
        num = data.draw(st.integers(1, 3))
        values, own, journals = [encode_file([journals[:num]], tables, how)], expected[:num], journals[num:]
        expected = expected[num:]
        if len(own) == 1 and own[0][1] != "checkpoint" and data.draw(st.booleans()):
            at = data.draw(st.integers(7, len(values[0]) - (812 if how.framing == "mq_message" else 32) - 1))
            values = divided(values[0], how, at, data.draw(st.booleans()))
        here = []
        for n, value in enumerate(values):
            message = {"topic": "t", "partition": 0, "offset": offset + n, "value": value}
            decoded = codec.decode_message(message, source, contracts, [])
            assert not decoded.rejects, decoded.rejects
            here += map(row_of, decoded.changes)
            here += [(one.change_seq, one.kind) for one in decoded.controls]
            waiting += [Waiting(f"s/t/0/{offset + n}", part, value, message) for part in decoded.parts]
        joined = codec.join("t/0", waiting, source, contracts)
        assert not joined.rejects and not joined.waiting, joined
        here, waiting = here + list(map(row_of, joined.changes)), []
        assert [row[1:4] + row[5:] for row in sorted(here)] == [row[1:4] + row[5:] for row in own]
        assert [row[0] for row in sorted(here)] == [f"{0:016d}{offset:012d}{n:07d}" for n in range(len(own))]
        found += here
        offset += len(values)
    firsts = [one for one in file[2] if not isinstance(one, Checkpoint)]
    counters = [row[4] for row in sorted(found) if row[1] != "checkpoint"]
    assert all(counter == 1 for one, counter in zip(firsts, counters) if one.sts in (1, 5))


def test_a_message_that_whole_journals_fill_is_no_piece_whatever_their_number_is_said_to_be():
    how = How(framing="message_body")
    tables = {"T1": [("N", "INTEGER"), ("S", "VARCHAR(4)")]}
    source, contracts = project(tables, divided="yes")
    value = bytearray(encode_file([Change("T1", "insert", {"N": 1, "S": "a"})], tables, how))
    value[15] = 2
    message = {"topic": "t", "partition": 0, "offset": 7, "value": bytes(value)}
    found = codec.decode_message(message, source, contracts, [])
    assert not found.parts and [(one.kind, one.byte_offset) for one in found.rejects] == [("contradiction", 14)]


@quick
@given(files(), st.data())
def test_of_a_message_with_a_wrong_number_each_journal_keeps_its_place(file, data):
    how, tables, journals = file
    how = replace(how, framing="message_body") if how.framing == "journal_stream" else how
    messages = [encode_file([some], tables, how) for some in packed(journals, how)]
    source, contracts = project(tables, **told(how, *BY_FIT))
    if not messages:
        return
    n, at = data.draw(st.integers(0, len(messages) - 1)), 794 if how.framing == "mq_message" else 14
    number = int.from_bytes(messages[n][at : at + 2], how.byte_order)
    wrong = data.draw(st.integers(0, 65535).filter(lambda wrong: wrong != number)).to_bytes(2, how.byte_order)
    written = b"".join([*messages[:n], messages[n][:at] + wrong + messages[n][at + 2 :], *messages[n + 1 :]])
    good, _ = decoded(b"".join(messages), source, contracts)
    found, rows = decoded(written, source, contracts)
    assert_unit_read_alike(written, codec.open_file(PATH, written, True, source, contracts), source, contracts)
    seqs = sorted([*(row["change_seq"] for row in rows), *(one.change_seq for one in found.controls)])
    rejected = [one.change_seq for one in found.rejects]
    assert len(rejected) == number and {one.kind for one in found.rejects} == {"contradiction"}
    assert sorted(seqs + rejected) == [f"{PREFIX}{n:010d}" for n in range(len(journals))]
    assert found.changes.num_rows + number == good.changes.num_rows + len(good.controls) - len(found.controls)


def counted(*messages: tuple[list, int], **options):
    """What messages hold whose headers tell these numbers of journals; alike by both readers."""
    how, data = How(framing="message_body"), b""
    for journals, number in messages:
        message = bytearray(encode_file([journals], COLUMNS, how) if journals else bytes.fromhex("00000020") * 2)
        message[8:16] = (0x0001_0101_0000_0000 + number).to_bytes(8, "big")
        data += bytes(message).ljust(32, b"\0")
    source, contracts = project(COLUMNS, **options)
    context = codec.open_file(PATH, data, True, source, contracts)
    assert_unit_read_alike(data, context, source, contracts)
    found = codec.decode(data, context, source, contracts)
    rows = change_rows(codec, found, context, contracts)
    seqs = [int(one["change_seq"][-3:]) for one in rows], [int(one.change_seq[-3:]) for one in found.rejects]
    before = {name: value for name, value in context.items() if name != "each_journal"}  # as it was landed once
    assert_unit_read_alike(data, before, source, contracts)
    return seqs, [one["transaction_event_counter"] for one in rows], codec.decode(data, before, source, contracts)


def journal(id_: int, trnid: int, sts: int) -> Change:
    return Change("T1", "insert", {"N": id_, "S": "a"}, trnid, sts)


def test_a_message_that_has_lost_a_journal_leaves_a_gap_in_each_transaction_that_is_open():
    first, last = ([journal(1, 7, 1)], 1), ([journal(3, 7, 4)], 1)
    seqs, counters, _ = counted(first, ([journal(2, 8, 5)], 2), last)
    assert (seqs, counters) == (([0, 2], [1]), [1, 3])
    seqs, counters, _ = counted(first, ([journal(2, 8, 5)] * 2, 1), last)  # one too many: it has lost none
    assert (seqs, counters) == (([0, 3], [1, 2]), [1, 2])


def test_a_message_without_the_journals_that_it_tells_is_a_reject():
    first, last = ([journal(1, 7, 1)], 1), ([journal(3, 7, 4)], 1)
    assert counted(first, ([], 1), last)[:2] == (([0, 2], [1]), [1, 3])
    assert counted(first, ([], 0), last)[:2] == (([0, 1], []), [1, 2])


def test_a_message_with_a_wrong_number_is_one_record_of_a_block_that_was_landed_so():
    *_, found = counted(([journal(1, 7, 5)], 1), ([journal(n, 8, 5) for n in (2, 3, 4)], 2), ([journal(5, 9, 5)], 1))
    [reject] = found.rejects
    assert (reject.change_seq, found.changes.column("record_ordinal").to_pylist()) == (f"{PREFIX}{1:010d}", [0, 2])


def test_system_items_are_valid_or_not_whatever_the_byte_order_of_validities_is():
    items = ("RESOURCE", "STORAGE", "DBOP", "TRNID", "STS")
    how = How(byte_order="little", tagged=False, sysitems=items)
    data = encode_file([Change("T1", "insert", {"N": 1, "S": "a"}, system={"STORAGE": None})], COLUMNS, how)
    data = data.replace(b"\xff\xff", b"\xff\x00")  # null, or a name that could not be converted
    source, contracts = project(COLUMNS, sysitems=items)
    context = codec.open_file(PATH, data, True, source, contracts)
    assert context["reading"]["validity_order"] == "open" and assert_unit_read_alike(data, context, source, contracts)
    assert not codec.decode(data, context, source, contracts).rejects


def test_a_first_message_that_is_longer_than_what_is_tried_is_read_or_names_the_options():
    how, tables = How(framing="message_body"), {"T1": [("N", "INTEGER"), ("S", "VARCHAR(30000)")]}
    journals = [Change("T1", "insert", {"N": n, "S": "a"}) for n in range(40)]
    data = encode_file([journals], tables, how)
    source, contracts = project(tables)
    message = {"topic": "t", "partition": 0, "offset": 7, "value": data}
    assert len(codec.decode_message(message, source, contracts, []).changes) == 40
    [cut] = codec.decode_message(message | {"value": data[:-9]}, source, contracts, []).rejects
    assert (cut.kind, cut.unit_length) == ("bad_length", len(data) - 9)
    context = codec.open_file(PATH, data[: 1 << 20], False, source, contracts)
    assert context["reading"]["tagged"] == "yes"
    decoded = codec.decode(data, context, source, contracts)
    assert (decoded.changes.num_rows, decoded.rejects) == (40, [])


def test_a_first_journal_that_is_longer_than_what_is_tried_names_the_options():
    tables = {"T1": [("N", "INTEGER"), *((f"S{n}", "VARCHAR(30000)") for n in range(40))]}
    row = {"N": 1, **{f"S{n}": "a" for n in range(40)}}
    data, (source, contracts) = encode_file([Change("T1", "insert", row)], tables, How()), project(tables)
    found = codec.open_file(PATH, data[: 1 << 20], False, source, contracts)
    assert isinstance(found, Reject) and "set the options that are auto: tagged, compressed" in found.expected


def test_journals_of_gs_sets_have_numbers_without_a_sign_byte_where_no_journal_tells():
    """The first 1,000 journals, on which readings are tried, hold no NUMERIC."""
    tables = {"T1": [("N", "INTEGER")], "T2": [("N", "INTEGER"), ("Q", "NUMERIC(5,0)")]}
    how = How(charset="ebcdic_kana", numeric_sign="overpunch", compressed=True)
    journals = [Change("T1", "insert", {"N": n}) for n in range(1_001)]
    journals.append(Change("T2", "insert", {"N": 1, "Q": Decimal(-42)}))
    data, (source, contracts) = encode_file(journals, tables, how), project(tables, charset="gs_kana")
    context = codec.open_file(PATH, data, True, source, contracts)
    decoded = codec.decode(data, context, source, contracts)
    assert (decoded.changes.num_rows, decoded.rejects) == (1_002, [])
    assert change_rows(codec, decoded, context, contracts)[-1]["after"]["Q"] == Decimal(-42)


def test_a_small_file_that_waits_names_the_options_that_are_open():
    data = encode_file([Change("T1", "insert", {"N": 1, "S": "a"})], COLUMNS, How(framing="journal_stream"))
    source, contracts = project(COLUMNS, tagged="yes", framing="journal_stream")
    assert codec.open_file(PATH, data, False, source, contracts) is None
    names = ["byte_order", "compressed", "numeric_sign", "varying_length", "nchar_length"]
    assert codec.open_options(PATH, data, source, contracts) == names


def test_pieces_of_two_byte_orders_are_no_journal():
    source, contracts = project({"T1": [("S", "VARCHAR(4)")]}, divided="yes", tagged="yes")
    journal = [[Change("T1", "insert", {"S": "a"})]]
    orders = [How(framing="message_body", byte_order=order) for order in ("big", "little")]
    halves = [divided(encode_file(journal, {"T1": [("S", "VARCHAR(4)")]}, how), how, 40) for how in orders]
    waiting = []
    for offset, value in enumerate((halves[0][0], halves[1][1])):
        message = {"topic": "t", "partition": 0, "offset": offset, "value": value}
        [part] = codec.decode_message(message, source, contracts, []).parts
        waiting.append(Waiting(f"s/t/0/{offset}", part, value, message))
    joined = codec.join("t/0", waiting, source, contracts)
    assert not joined.changes and [reject.kind for _, reject in joined.rejects][:1] == ["contradiction"]


def test_a_divided_update_that_lacks_a_column_stays_two_changes():
    """The new row has null there; an update would leave what was."""
    how = How(framing="message_body")
    for lacking in (MISSING, INVALID):
        pair = [Change("T1", "delete", {"N": 1, "S": "a"}, 7, 1), Change("T1", "insert", {"N": 1, "S": lacking}, 7, 4)]
        source, contracts = project(COLUMNS, pair_divided="adjacent_same_key")
        message = {"topic": "t", "partition": 0, "offset": 7, "value": encode_file([pair], COLUMNS, how)}
        found = codec.decode_message(message, source, contracts, [])
        assert [row["operation"] for row in found.changes] == ["DELETE", "INSERT"]


COLUMNS = {"T1": [("N", "INTEGER"), ("S", "VARCHAR(4)")]}


def test_what_a_decoder_fails_on_or_a_queue_has_lost_has_a_place_among_the_journals():
    """It may be an event of the transaction that lies around it."""
    context = {"time": PREFIX[:16], "file_ordinal": 3, "record_ordinal": 5}
    unit = {"source": "s", "unit_id": "s/a@0", "bytes": b"1234", "num_records": 2, "ranges": None}
    message = {"source": "s", "unit_id": "s/t/0/12", "offset": 12, "value": b"1234"}
    rows = [
        one.to_pylist()[0]
        for one in (
            *blocks._set_aside(codec, as_batch(unit | {"context": json.dumps(context)}), "it fails"),
            *messages._set_aside(codec, {}, as_batch(message), "it fails"),
        )
    ]
    place = f"{0:016d}{12:012d}{0:07d}"
    assert [(row["kind"], row["change_seq"]) for row in rows] == [
        ("decoder_failed", f"{PREFIX}0000000005"),
        ("decoder_failed", place),
    ]
    lost = SimpleNamespace(project=SimpleNamespace(sources={"s": project(COLUMNS)[0]}))
    assert unread_files.place(lost, "s", {"kind": "offsets_missing", "byte_offset": 12}) == place
    assert unread_files.place(lost, "s", {"kind": "unreadable_file", "byte_offset": 12}) is None


def as_batch(row: dict) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row])


def opened(journals: list, how: How, name: str = PATH, **options):
    source, contracts = project(COLUMNS, **options)
    return codec.open_file(name, encode_file(journals, COLUMNS, how), True, source, contracts)


@pytest.mark.parametrize("written", ["native", "bytes"])
def test_a_number_that_would_be_missing_tells_the_byte_order_of_validities(written):
    """No conversion of characters loses a number; of text alone nothing tells."""
    how = How(byte_order="little", tagged=False, validity_order=written)
    row = {"N": 1, "S": "a", "M": None}
    tables = {"T1": [*COLUMNS["T1"], ("M", "INTEGER")]}
    source, contracts = project(tables)
    context = codec.open_file(PATH, encode_file([Change("T1", "insert", row)], tables, how), True, source, contracts)
    assert context["reading"]["validity_order"] == written
    refused = opened([Change("T1", "insert", {"N": 1, "S": None})], how)
    assert refused.kind == "ambiguous_layout" and "auto: validity_order" in refused.expected


def test_a_null_that_comes_late_is_rejected_until_the_byte_order_of_validities_is_told():
    """Nothing is guessed, and what was landed before the option was told is read by it."""
    how, num = How(byte_order="little", tagged=False), 1_001
    journals = [Change("T1", "insert", {"N": n, "S": "a" if n < num else None}) for n in range(num + 1)]
    data, (source, contracts) = encode_file(journals, COLUMNS, how), project(COLUMNS)
    context = codec.open_file(PATH, data, True, source, contracts)
    assert context["reading"]["validity_order"] == "open"
    found = codec.decode(data, context, source, contracts)
    [reject] = found.rejects
    assert found.changes.num_rows == num and reject.kind == "bad_null_indicator" and "validity_order" in reject.expected
    assert_unit_read_alike(data, context, source, contracts)
    source, contracts = project(COLUMNS, validity_order="native")
    found = codec.decode(data, context, source, contracts)
    assert found.changes.num_rows == num + 1 and not found.rejects
    assert_unit_read_alike(data, context, source, contracts)


@pytest.mark.parametrize("is_tagged", [True, False])
def test_a_wrong_charset_is_no_other_layout(is_tagged):
    journals = [Change("T1", "insert", {"N": n, "S": "山"}) for n in range(3)]
    data = encode_file(journals, COLUMNS, How(tagged=is_tagged))
    source, contracts = project(COLUMNS, charset="utf_8")
    context = codec.open_file(PATH, data, True, source, contracts)
    rejects = codec.decode(data, context, source, contracts).rejects
    assert [(r.kind, r.column_name) for r in rejects] == [("bad_text", "S")] * 3
    source, contracts = project(COLUMNS)
    assert codec.decode(data, context, source, contracts).rejects == []


def test_journals_without_tags_whose_system_items_are_others_name_the_option():
    data = encode_file(
        [Change("T1", "insert", {"N": 1, "S": "a"})], COLUMNS, How(tagged=False, sysitems=("RESOURCE", "DBOP"))
    )
    source, contracts = project(COLUMNS)
    found = codec.open_file(PATH, data, True, source, contracts)
    assert isinstance(found, Reject) and "sysitems" in found.expected
    source, contracts = project(COLUMNS, tagged="no")
    found = codec.open_file(PATH, data, True, source, contracts)
    assert isinstance(found, Reject) and "the system items that the option sysitems says" in found.expected


def test_an_option_that_is_set_later_reads_what_was_landed_and_what_comes():
    tables = {"T1": [("N", "INTEGER")], "T2": [("N", "INTEGER"), ("Q", "NUMERIC(5,0)")]}
    how = How(numeric_sign="overpunch", compressed=True)
    journals = [Change("T1", "insert", {"N": n}) for n in range(1_001)]
    journals.append(Change("T2", "insert", {"N": 1, "Q": Decimal(-42)}))
    data, (source, contracts) = encode_file(journals, tables, how), project(tables)
    context = codec.open_file(PATH, data, True, source, contracts)
    assert context["reading"]["numeric_sign"] == "separate"
    assert len(codec.decode(data, context, source, contracts).rejects) == 1
    source, contracts = project(tables, numeric_sign="overpunch")
    assert codec.decode(data, context, source, contracts).rejects == []
    assert_unit_read_alike(data, context, source, contracts)
    [block] = codec.cut(data, context, source, contracts, 1 << 20, True).blocks
    assert block.context["reading"]["numeric_sign"] == "separate"


@pytest.mark.parametrize(
    ("how", "options", "said"),
    [
        (How(tagged=True), {"tagged": "no"}, "tagged no"),
        (How(framing="journal_stream"), {"byte_order": "little"}, "byte_order little"),
        (How(), {"framing": "mq_message"}, "framing mq_message"),
    ],
)
def test_an_option_that_contradicts_how_a_file_was_begun_names_what_reads_it_again(how, options, said):
    journals = [Change("T1", "insert", {"N": n, "S": "a"}) for n in range(3)]
    data, (source, contracts) = encode_file(journals, COLUMNS, how), project(COLUMNS)
    context = codec.open_file(PATH, data, True, source, contracts)
    source, contracts = project(COLUMNS, **options)
    cut = codec.cut(data, context, source, contracts, 1 << 20, True)
    assert (cut.blocks, cut.problem.kind) == ([], "ambiguous_layout")
    assert f"{said}, as options say; `inlet replay --file`" in cut.problem.expected
    found = codec.decode(data + b"x", context, source, contracts)
    assert found.changes.num_rows == 3 and f"options say {said}" in found.rejects[0].expected


@pytest.mark.parametrize(
    ("name", "tz", "expected"),
    [
        ("shop_20261025013000.dat", "Europe/Berlin", "2026102423300000"),
        ("shop_20261025023000.dat", "Europe/Berlin", "missing_change_seq"),  # twice
        ("shop_20260329023000.dat", "Europe/Berlin", "missing_change_seq"),  # never
        ("shop_20261301000000.dat", "Asia/Tokyo", "missing_change_seq"),
        ("shop.dat", "Asia/Tokyo", "missing_change_seq"),
        ("shop_2026010212040599_7.dat", "Asia/Tokyo", "2026010203040599"),
    ],
)
def test_the_time_of_a_name_is_local_to_the_source(name, tz, expected):
    found = opened([Change("T1", "insert", {"N": 1, "S": "a"})], How(), name, source_tz=tz)
    assert (found.kind if isinstance(found, Reject) else found["time"]) == expected


def test_a_local_time_that_the_zone_has_twice_is_no_time():
    journals = [
        Change("T1", "insert", {"N": 1, "S": "a"}, time=time) for time in ("2026102502300000", "2026102503300099")
    ]
    source, contracts = project(COLUMNS, source_tz="Europe/Berlin")
    data = encode_file(journals, COLUMNS, How())
    _, changes = decoded(data, source, contracts)
    assert [row["change_timestamp"] and row["change_timestamp"].isoformat() for row in changes] == [
        None,
        "2026-10-25T02:30:00.990000+00:00",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_tz": None}, "source_tz is missing"),
        ({"charset": None}, "charset is missing"),
        ({"source_tz": "Nowhere/City"}, "expected the name of a time zone"),
        ({"sysitems": ["STS", "STS"]}, "an item stands there twice"),
        ({"null_areas": "yes"}, "null_areas: is not known"),
    ],
)
def test_options_that_cannot_be_meant_are_named(options, message):
    with pytest.raises(ConfigError, match=message):
        opened([], How(), **options)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"type": "int", "source_type": "NUMERIC(12,0)"}, r"SHOP.T1.N: type int cannot hold every NUMERIC\(12,0\)"),
        ({"type": "string", "source_type": "BINARY(4)"}, "cannot hold every BINARY.*Make it binary"),
        ({"type": "date", "source_type": "INTERVAL YEAR(2)"}, "cannot hold every INTERVAL.*Make it string"),
        ({"type": "string", "source_type": "INTERVAL YEAR(2) TO SECOND"}, "is no interval of the manual"),
        ({"type": "string", "source_type": "BLOB(9)"}, "is not supported"),
        ({"type": "int"}, "needs the column's source_type"),
    ],
)
def test_a_contract_that_no_journal_can_have_is_named(column, message):
    source, _ = project(COLUMNS)
    contracts = {"SHOP.T1": Table(table="SHOP.T1", name="t1", columns=[{"name": "N"} | column])}
    with pytest.raises(ConfigError, match=message):
        codec.open_file(PATH, b"", True, source, contracts)


def test_a_table_of_the_definition_without_a_contract_says_what_to_write():
    source, contracts = project(COLUMNS)
    source = source.model_copy(update={"tables": source.tables | {"T2": "SHOP.T2"}})
    with pytest.raises(ConfigError, match=r"SHOP.T2, which has no contract.*Write pipelines/tables/t2.yml"):
        codec.open_file(PATH, b"", True, source, contracts)
    unwanted = source.model_copy(update={"ignore": ["SHOP.T2"]})
    journals = [Change("T2", "insert", {"N": 1, "S": "a"}), Change("T1", "insert", {"N": 2, "S": "b"})]
    data = encode_file(journals, COLUMNS | {"T2": COLUMNS["T1"]}, How(compressed=True))
    found, changes = decoded(data, unwanted, contracts)
    assert [row["after"] for row in changes] == [{"N": 2, "S": "b"}]
    assert [(r.kind, r.source_schema, r.source_table, r.event.counter) for r in found.rejects] == [
        ("unknown_table", "SHOP", "T2", 1)
    ]


def test_values_of_a_string_column_are_their_texts():
    types = ["SMALLINT", "NUMERIC(3,1)", "DOUBLE", "DATE", "TIMESTAMP"]
    tables = {"T1": [(f"C{n}", type_) for n, type_ in enumerate(types)]}
    source, contracts = project(tables)
    columns = [{"name": name, "type": "string", "source_type": type_} for name, type_ in tables["T1"]]
    contracts = {"SHOP.T1": Table(table="SHOP.T1", name="t1", key=["C0"], columns=columns)}
    row = dict(zip(("C0", "C1", "C2", "C3", "C4"), (-7, Decimal("1.5"), 0.5, "2026/01/02", "2026-01-02 03:04:05")))
    data = encode_file([Change("T1", "insert", row)], tables, How())
    _, changes = decoded(data, source, contracts)
    assert [changes[0]["after"][name] for name, _ in tables["T1"]] == [
        "-7",
        "1.5",
        "0.5",
        "2026-01-02",
        "2026-01-02 03:04:05",
    ]


@pytest.mark.parametrize("num_tables", [1, 2])
def test_a_resource_that_is_not_valid_names_no_table(num_tables):
    """Its bytes mean nothing, whatever they spell. The journal is of the only table there is, if there is one."""
    tables = dict(list((COLUMNS | {"T2": COLUMNS["T1"]}).items())[:num_tables])
    how = How(tagged=False, compressed=True, framing="journal_stream")
    data = bytearray(encode_file([Change("T1", "insert", {"N": 1, "S": "a"})], tables, how))
    assert data[4:10] == bytes.fromhex("0007 0000 5431")
    data[4:10] = bytes.fromhex("0006 FFFF 5432")
    source, contracts = project(tables, **told(how, *BY_FIT))
    found, changes = decoded(bytes(data), source, contracts)
    assert [row["source_table"] for row in changes] == ["T1"] * (num_tables == 1)
    assert [reject.kind for reject in found.rejects] == ["unknown_table"] * (num_tables == 2)
