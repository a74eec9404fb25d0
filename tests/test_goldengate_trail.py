"""Trails: what an independent encoder writes is what the codec reads, whatever the trail's form and however it
comes."""

import json
import random
from decimal import Decimal

import pytest

from inlet.table import Table
from tests import goldengate_streams as streams
from tests.encode import goldengate_columns as columns
from tests.encode.goldengate_tokens import DDR, FIRST, LAST, MIDDLE, ONLY, TDR, TDR_REFERENCE
from tests.encode.goldengate_trail import Trail
from tests.goldengate import contract_of, decoded_image, random_deliveries, read_files, source_of


@pytest.mark.parametrize("seed", range(40))
def test_a_random_trail_is_read_as_it_was_written(seed):
    rng = random.Random(seed)
    assert_read_as_it_was_written(rng, streams.random_trail(rng), has_pauses=bool(seed % 2))


@pytest.mark.parametrize("byte_order", ["big", "little"])
@pytest.mark.parametrize("seed", range(15))
def test_a_random_trail_of_full_images_is_read_as_it_was_written(seed, byte_order):
    rng = random.Random(seed)
    assert_read_as_it_was_written(rng, streams.random_trail(rng, layout="full", byte_order=byte_order))


def assert_read_as_it_was_written(rng: random.Random, sent: streams.Sent, has_pauses: bool = False) -> None:
    tables = {name: contract_of(table) for name, table in sent.trail.tables.items()}
    found = read_files(sent.trail.files, source_of(), tables, random_deliveries(rng) if has_pauses else None)
    assert [str(reject) for reject in found["rejects"]] == []
    expected = [
        {
            "source_table": change["table"].split(".")[1],
            "operation": change["operation"],
            "before": decoded_image(sent.trail.tables[change["table"]], change["before"]),
            "after": decoded_image(sent.trail.tables[change["table"]], change["after"]),
            "transaction_id": change["transaction_id"],
            "transaction_event_counter": change["counter"],
            "transaction_last_event": change["last"],
            "change_timestamp": change["io_time"],
            "stream_position": f"{change['seqno']}/{change['rba']}",
            "csn": change["csn"],
        }
        for change in sent.changes
    ]
    changes = sorted(found["changes"], key=lambda row: row["change_seq"])
    assert expected == [{name: (row | {"csn": row["header"]["csn"]})[name] for name in expected[0]} for row in changes]
    abandoned = {(record.seqno, record.rba) for record in sent.abandoned}
    assert all(any(s == seqno and a <= rba < b for s, a, b in found["abandoned"]) for seqno, rba in abandoned)
    assert not found["undecided"]


NOTES = columns.Table(
    "HR.NOTES", (columns.integer("ID", is_key=True, is_nullable=False), columns.varchar("BODY", 4000))
)


def notes(**column) -> dict:
    contract = contract_of(NOTES).model_dump()
    contract["columns"][1] |= {"source_type": "ASCII_V(4000) LOB"} | column
    return {"HR.NOTES": Table(**contract)}


def test_chunks_of_a_lob_stay_with_their_row_whose_column_is_incomplete():
    trail = Trail([NOTES])
    trail.insert("HR.NOTES", {"ID": 1}, trans_ind=FIRST)
    chunks = [trail.lob_chunk("HR.NOTES", b"\1" * 40, trans_ind=MIDDLE) for _ in range(3)]
    last = trail.lob_chunk("HR.NOTES", b"\2", trans_ind=LAST)
    trail.insert("HR.NOTES", {"ID": 2}, trans_ind=ONLY)
    found = read_files(trail.files, source_of(), notes(), lambda data: range(150, len(data), 7))
    assert found["rejects"] == []
    first, second = found["changes"]
    assert (first["after"], first["column_states"]) == ({"ID": 1}, {"BODY": "lob_incomplete"})
    assert first["transaction_last_event"] and first["rba"] + first["unit_length"] == last.rba + last.length
    assert (second["after"], second["column_states"]) == ({"ID": 2}, None)
    places = [(rba, control.unit_length) for _, rba, control in found["controls"] if control.kind == "lob_chunk"]
    assert places == [(record.rba, record.length) for record in [*chunks, last]]
    assert [header["io_type"] for header in first["header"]["others"]] == [116] * 4


def test_a_transaction_that_is_interrupted_by_another_one_is_told_and_never_whole():
    trail = Trail([NOTES])
    trail.insert("HR.NOTES", {"ID": 1}, trans_ind=FIRST, tokens=[("6", "1.1.1")])
    trail.insert("HR.NOTES", {"ID": 2}, trans_ind=ONLY, tokens=[("6", "2.2.2")])
    found = read_files(trail.files, source_of(), notes())
    rows = [
        (r["transaction_id"], r["transaction_event_counter"], r["transaction_last_event"]) for r in found["changes"]
    ]
    assert rows == [("1.1.1", 1, False), ("2.2.2", 1, True)]
    assert "transaction_unfinished" in [control.kind for _, _, control in found["controls"]]


def test_chunks_of_a_table_without_lobs_make_every_column_incomplete_that_is_not_supplied():
    trail = Trail([NOTES])
    trail.insert("HR.NOTES", {"ID": 1}, trans_ind=FIRST)
    trail.lob_chunk("HR.NOTES", b"\1", trans_ind=LAST)
    (row,) = read_files(trail.files, source_of(), notes(source_type="ASCII_V(4000)"))["changes"]
    assert row["column_states"] == {"BODY": "lob_incomplete"}


def test_a_chunk_of_another_transaction_is_none_of_the_row_before_it():
    trail = Trail([NOTES])
    trail.insert("HR.NOTES", {"ID": 1}, trans_ind=ONLY)
    chunk = trail.lob_chunk("HR.NOTES", b"\1", trans_ind=FIRST)
    trail.insert("HR.NOTES", {"ID": 2}, trans_ind=LAST)
    for end in range(150, len(trail.files[0][1]), 9):
        found = read_files(trail.files, source_of(), notes(), lambda data, end=end: [end])
        assert [(r.kind, r.unit_length) for r in found["rejects"]] == [("bad_segment", chunk.length)]
        assert [(row["after"], row["column_states"]) for row in found["changes"]] == [
            ({"ID": 1}, None),
            ({"ID": 2}, None),
        ]


def test_chunks_of_a_lob_may_go_on_in_the_next_file():
    trail = Trail([NOTES])
    trail.insert("HR.NOTES", {"ID": 1}, trans_ind=FIRST)
    trail.insert("HR.NOTES", {"ID": 2}, trans_ind=MIDDLE)
    trail.roll()
    chunks = [trail.lob_chunk("HR.NOTES", b"\1" * 40, trans_ind=place) for place in (MIDDLE, LAST)]
    trail.insert("HR.NOTES", {"ID": 3}, trans_ind=ONLY)
    found = read_files(trail.files, source_of(), notes())
    assert found["rejects"] == []
    rows = [(row["after"]["ID"], row["column_states"], row["transaction_last_event"]) for row in found["changes"]]
    assert rows == [(1, None, False), (2, {"BODY": "lob_incomplete"}, False), (3, None, True)]
    chunks_read = [(rba, json.loads(c.detail)) for _, rba, c in found["controls"] if c.kind == "lob_chunk"]
    assert [rba for rba, _ in chunks_read] == [chunk.rba for chunk in chunks]
    # the chunk that ends the transaction is an event of it
    assert "transaction_id" not in chunks_read[0][1]
    last = chunks_read[1][1]
    assert (last["transaction_id"], last["first_counter"], last["is_last"]) == (
        found["changes"][0]["transaction_id"],
        3,
        True,
    )


def test_chunks_in_the_next_file_of_a_table_without_lobs_are_rejected():
    trail = Trail([NOTES])
    trail.insert("HR.NOTES", {"ID": 1}, trans_ind=FIRST)
    trail.roll()
    trail.lob_chunk("HR.NOTES", b"\1", trans_ind=LAST)
    found = read_files(trail.files, source_of(), notes(source_type="ASCII_V(4000)"))
    assert [r.kind for r in found["rejects"]] == ["bad_segment"]
    assert [row["column_states"] for row in found["changes"]] == [None]


@pytest.mark.parametrize("kind", ["bad_segment", "part_missing"])
def test_records_that_lack_others_at_the_end_of_a_file_that_is_followed_are_rejected(kind):
    trail = Trail([NOTES], has_header=False)
    trail.insert("HR.NOTES", {"ID": 1})
    if kind == "bad_segment":
        area = trail.image("HR.NOTES", {"ID": 2, "BODY": "a note"})
        lacking = trail.row(5, "HR.NOTES", area[:9], rec_count=1, continued=1, trans_ind=FIRST)
    else:
        area = trail.image("HR.NOTES", {"ID": 2, "BODY": "a note"})
        lacking = trail.row(15, "HR.NOTES", area, before_after="B", trans_ind=FIRST)
    trail.roll()
    trail.insert("HR.NOTES", {"ID": 3}, trans_ind=LAST)
    (name, data), (next_name, next_data) = trail.files
    found = read_files(trail.files, source_of(), notes())
    assert [(r.kind, r.unit_length) for r in found["rejects"]] == [(kind, lacking.length)]
    assert [row["after"]["ID"] for row in found["changes"]] == [1, 3]
    alone = read_files([(name, data)], source_of(), notes())  # settled, and may still grow
    assert [r.kind for r in alone["rejects"]] == ["truncated"]


def test_two_records_of_an_update_are_of_one_key():
    trail = Trail([NOTES])
    before, after = trail.update_in_two("HR.NOTES", {"ID": 1, "BODY": "a"}, {"ID": 2, "BODY": "b"})
    trail.update_in_two("HR.NOTES", {"ID": 3, "BODY": None}, {"ID": 3, "BODY": "b"})
    found = read_files(trail.files, source_of(), notes())
    assert [(r.kind, r.unit_length) for r in found["rejects"]] == [("part_missing", before.length + after.length)]
    assert [(row["after"]["ID"], row["change_mask"]) for row in found["changes"]] == [(3, b"\x02")]


@pytest.mark.parametrize("trans_ind", [FIRST, ONLY])
@pytest.mark.parametrize("has_place", [False, True])
def test_a_record_that_wrongly_begins_its_transaction_anew_gives_up_nothing(trans_ind, has_place):
    trail = Trail([NOTES])
    for n, place in enumerate((FIRST, MIDDLE, trans_ind, LAST)):
        said = {"audit_pos": 100 + n} if has_place else {}
        trail.insert("HR.NOTES", {"ID": n}, trans_ind=place, tokens=[("6", "1.1.1")], **said)
    for end in range(150, len(trail.files[0][1]), 31):
        found = read_files(trail.files, source_of(), notes(), lambda data, end=end: [end])
        assert [row["after"]["ID"] for row in found["changes"]] == [0, 1, 2, 3]
        assert "transaction_unfinished" in [control.kind for _, _, control in found["controls"]]


def test_a_transaction_that_begins_with_the_same_record_is_written_again():
    trail = Trail([NOTES])
    for id_, place in ((0, FIRST), (1, MIDDLE), (0, FIRST), (1, MIDDLE), (2, LAST)):
        trail.insert("HR.NOTES", {"ID": id_}, trans_ind=place, tokens=[("6", "1.1.1")])
    for end in range(150, len(trail.files[0][1]), 31):
        found = read_files(trail.files, source_of(), notes(), lambda data, end=end: [end])
        assert [row["after"]["ID"] for row in found["changes"]] == [0, 1, 2]


@pytest.mark.parametrize(
    "ids",
    [  # of a row, of an update in two records, of a row and its chunk, of the last row
        [None, (None, "1.1.2"), (None, None), "1.1.3"],
        [None, ("1.1.2", None), (None, "1.1.3"), "1.1.2"],
        [None, (None, None), (None, "1.1.2"), "1.1.3"],
        [None, ("1.1.2", "1.1.3"), (None, None), "1.1.3"],  # what contradicts itself says no id
    ],
)
def test_an_id_that_a_later_record_says_is_that_of_its_transaction(ids):
    def tokens(id_):
        return {"tokens": [("6", id_)] if id_ else []}

    trail = Trail([NOTES])
    first = trail.insert("HR.NOTES", {"ID": 1}, trans_ind=FIRST, **tokens(ids[0]))
    trail.insert("HR.NOTES", {"ID": 2}, trans_ind=MIDDLE)
    for io_type, side, id_ in zip((15, 15), "BA", ids[1]):
        trail.row(
            io_type, "HR.NOTES", trail.image("HR.NOTES", {"ID": 3}), before_after=side, trans_ind=MIDDLE, **tokens(id_)
        )
    trail.insert("HR.NOTES", {"ID": 4}, trans_ind=MIDDLE, **tokens(ids[2][0]))
    trail.lob_chunk("HR.NOTES", b"\1", trans_ind=MIDDLE, **tokens(ids[2][1]))
    trail.insert("HR.NOTES", {"ID": 5}, trans_ind=LAST, **tokens(ids[3]))
    for end in range(100, len(trail.files[0][1]), 11):
        found = read_files(trail.files, source_of(), notes(), lambda data, end=end: [end])
        assert [reject.kind for reject in found["rejects"]] == ["contradiction"]
        assert {row["transaction_id"] for row in found["changes"]} == {f"{first.seqno}/{first.rba}"}
        assert not any("xid" in row["header"] for row in found["changes"])


def test_a_chain_of_segments_that_never_ends_is_rejected_in_bounded_pieces():
    trail = Trail([NOTES], has_header=False)
    segment = bytes(60_000)
    for n in range(300):
        trail.row(5, "HR.NOTES", segment, rec_count=n + 1 & 0xFF, continued=1, trans_ind=FIRST if n == 0 else MIDDLE)
    trail.insert("HR.NOTES", {"ID": 2}, trans_ind=LAST)
    found = read_files(trail.files, source_of(), notes())
    assert {r.kind for r in found["rejects"]} == {"bad_segment"}
    assert max(r.unit_length for r in found["rejects"]) < 17 << 20
    assert [row["after"]["ID"] for row in found["changes"]] == [2]


def test_encryption_is_seen_where_the_header_of_a_file_was_landed_alone():
    trail, rng = Trail([NOTES]), random.Random(3)
    for _ in range(25):
        trail.row(5, "HR.NOTES", rng.randbytes(40))
    (name, data) = trail.files[0]
    first = trail.records[0].rba
    found = read_files([(name, data)], source_of(), notes(), lambda data: [first, first + 500])
    assert [r.kind for r in found["rejects"]] == ["encrypted_data"]
    assert found["rejects"][0].unit_length == len(data) - first


def test_a_record_whose_place_is_unreadable_does_not_end_its_transaction():
    trail = Trail([NOTES])
    for n, trans_ind in enumerate((FIRST, 5, MIDDLE, LAST)):
        trail.insert("HR.NOTES", {"ID": n}, trans_ind=trans_ind, tokens=[("6", "1.1.1")] if n == 0 else [])
    found = read_files(trail.files, source_of(), notes())
    places = [
        (r["transaction_id"], r["transaction_event_counter"], r["transaction_last_event"]) for r in found["changes"]
    ]
    assert places == [("1.1.1", 1, False), ("1.1.1", 3, False), ("1.1.1", 4, True)]
    assert [r.kind for r in found["rejects"]] == ["bad_header"]


@pytest.mark.parametrize("has_time", [False, True])
def test_rows_behind_another_definition_wait_though_the_first_one_has_no_time(has_time):
    trail = Trail([NOTES])
    trail.define(NOTES, io_time=None)
    trail.insert("HR.NOTES", {"ID": 1}, io_time=None)
    trail.define(NOTES._replace(columns=NOTES.columns[::-1]), io_time=streams.START if has_time else None)
    trail.insert("HR.NOTES", {"ID": 2}, io_time=streams.START if has_time else None)
    found = read_files(trail.files, source_of(), notes())
    assert [row["after"] for row in found["changes"]] == [{"ID": 1}]
    assert [r.kind for r in found["rejects"]] == ["definition_missing"]


@pytest.mark.parametrize(
    "kind, body, place, read",
    [  # of a second record of index 1, in which one byte is damaged; IDs of the rows behind it that are still read
        (TDR, b"another", -1, [2]),  # the trailer
        (TDR, b"another", 8, [2]),  # E
        (TDR, b"another", 14, [2]),  # the IOType
        (TDR, b"another", 15, [2]),  # the kind
        (TDR, b"another", 42, []),  # the name: no frame is damaged; it contradicts what was known
        (TDR, b"another", 35, []),  # the index: likewise
        (TDR, b"the same", -1, [1, 2]),
        (TDR_REFERENCE, b"", -1, [1, 2]),
        (DDR, b"another", -1, [1, 2]),
        (TDR, b"another", 0, [2]),  # G
        (TDR, b"another", 4, [1, 2]),  # H, and with it the header; ASSUMED
    ],
)
def test_an_index_that_a_damaged_record_may_define_anew_is_not_known(kind, body, place, read):
    trail = Trail([NOTES], name_form="index", has_header=False)

    def define(kind, name, index, body):
        tail = name.encode() + b"\0"
        return trail.write(170, tail, body, partition=0, orig_node=kind, audit_rba=(1, index), io_time=streams.START)

    define(TDR, "HR.NOTES", 1, b"the same")
    define(TDR, "HR.OTHER", 2, b"of others")
    trail.defined = {"HR.NOTES": (1, NOTES)}
    record = define(kind, {TDR: "HR.NOTES", TDR_REFERENCE: "HR.THIRD", DDR: ""}[kind], 1, body)
    tables = {name: contract_of(NOTES._replace(name=name)) for name in ("HR.NOTES", "HR.OTHER")}
    for n in (1, 2):
        trail.row(5, "HR.NOTES", trail.image("HR.NOTES", {"ID": n}), trans_ind=ONLY)
        trail.defined = {"HR.NOTES": (2, NOTES)}
    (name, data) = trail.files[0]
    damaged = bytearray(data)
    damaged[record.rba + (place if place >= 0 else record.length + place)] ^= 0x40
    found = read_files([(name, bytes(damaged))], source_of(), tables)
    assert [row["after"]["ID"] for row in found["changes"]] == read
    kinds = [reject.kind for reject in found["rejects"] if reject.unit_offset != record.rba]
    assert kinds == ["definition_missing"] * (2 - len(read))


def test_segments_that_break_off_are_one_reject_wherever_a_block_ends():
    trail = Trail([NOTES], has_header=False)
    trail.insert("HR.NOTES", {"ID": 1})
    area = trail.image("HR.NOTES", {"ID": 2, "BODY": "a note"})
    segments = [
        trail.row(5, "HR.NOTES", piece, rec_count=n, continued=1, trans_ind=trans_ind)
        for n, piece, trans_ind in ((1, area[:9], FIRST), (2, area[9:], LAST))
    ]
    trail.update_in_two("HR.NOTES", {"ID": 3}, {"ID": 3, "BODY": "b"})  # waits while its first record alone is there
    for end in range(segments[0].rba + 1, len(trail.files[0][1])):
        found = read_files(trail.files, source_of(), notes(), lambda data, end=end: [end])
        assert [(r.kind, r.unit_length) for r in found["rejects"]] == [("bad_segment", sum(s.length for s in segments))]
        assert [row["after"] for row in found["changes"]] == [{"ID": 1}, {"ID": 3, "BODY": "b"}]


def test_a_flipped_bit_costs_no_other_record():
    """Whatever bit is flipped, every byte is accounted for and records that lie apart from it are read as before."""
    trail = Trail([NOTES], has_header=False)
    for n in range(12):
        trail.insert("HR.NOTES", {"ID": n, "BODY": f"note {n}"}, trans_ind=ONLY, tokens=[("6", f"1.1.{n}")])
    (name, data), rng = trail.files[0], random.Random(1)
    whole = {row["rba"]: row for row in read_files([(name, data)], source_of(), notes())["changes"]}
    for _ in range(60):
        at = rng.randrange(len(data))
        damaged = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        found = read_files([(name, damaged)], source_of(), notes())
        rows = {row["rba"]: row["after"] for row in found["changes"]}
        apart = [r.rba for r in trail.records[:-2] if not r.rba - r.length <= at < r.rba + 2 * r.length]
        assert {rba: rows.get(rba) for rba in apart} == {rba: whole[rba]["after"] for rba in apart}, at


LONG = 10**18
NUMBERS = [  # source_type, column of the encoder, type in the contract, value sent, what it is read as or its reject
    ("FLOAT(50)", columns.decimal_text("V"), "bigint", Decimal(2**63 - 1), 2**63 - 1),
    ("FLOAT(50)", columns.decimal_text("V"), "bigint", Decimal(-(2**63)), -(2**63)),
    ("FLOAT(50)", columns.decimal_text("V"), "bigint", Decimal(2**63), "value_does_not_fit"),
    ("FLOAT(50)", columns.decimal_text("V"), "smallint", Decimal(32768), "value_does_not_fit"),
    ("FLOAT(50)", columns.decimal_text("V", 2), "decimal(20,2)", Decimal("-123456789012345678.90"), None),
    ("FLOAT(50)", columns.decimal_text("V", 3), "decimal(20,2)", Decimal("0.125"), "value_does_not_fit"),
    ("FLOAT(50)", columns.decimal_text("V", 1), "double", Decimal("-0.5"), None),
    ("INT64(11,2)", columns.integer("V", 134, 2), "string", Decimal("-0.05"), "-0.05"),
    ("INT64(11)", columns.integer("V", 134), "string", -(2**63), str(-(2**63))),
    ("INT64(11)", columns.integer("V", 134), "bigint", LONG, LONG),
    (
        "INT64(23,2)",
        columns.integer("V", 134, 2),
        "decimal(19,2)",
        Decimal(LONG) / 100,
        Decimal("10000000000000000.00"),
    ),
    ("UINT64(23)", columns.integer("V", 135), "string", 2**64 - 1, str(2**64 - 1)),
    ("UINT64(23)", columns.integer("V", 135), "decimal(20,0)", 2**64 - 1, 2**64 - 1),
    ("INT16(6)", columns.integer("V", 130), "int", -32768, -32768),
]


@pytest.mark.parametrize("source_type, column, type_, value, expected", NUMBERS)
def test_numbers_are_exact_or_rejected(source_type, column, type_, value, expected):
    table = columns.Table("N.T", (columns.integer("ID", is_key=True, is_nullable=False), column))
    contract = contract_of(table).model_dump()
    contract["columns"][1] |= {"type": type_, "source_type": source_type}
    trail = Trail([table], byte_order="little")
    trail.insert("N.T", {"ID": 1, "V": value})
    found = read_files(trail.files, source_of(), {"N.T": Table(**contract)})
    seen = [reject.kind for reject in found["rejects"]] or [row["after"]["V"] for row in found["changes"]]
    assert seen == [value if expected is None else expected] and str(seen[0]) == str(
        value if expected is None else expected
    )


def test_an_insert_without_columns_lacks_its_key_at_the_end_of_its_record():
    trail = Trail([NOTES])
    record = trail.row(5, "HR.NOTES")
    [reject] = read_files(trail.files, source_of(), notes())["rejects"]
    assert (reject.kind, reject.byte_offset) == ("missing_key", record.rba + record.length)
