"""`inlet inspect`: what it says of each byte is what the decoder reads, over every case, over random trails, and over
bytes that are cut and damaged.
"""

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from inlet import config
from inlet.bronze.framing import cut_file
from inlet.codecs import CODECS
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.notes import Annotated, leaves
from inlet.commands import decode, inspection, message_records, text_records
from inlet.errors import Reject
from inlet.fields.fit import fit
from tests import goldengate_streams as streams
from tests import lakes, test_cases
from tests.encode import goldengate_columns as columns
from tests.encode import qlik, qlik_avro
from tests.encode.goldengate_trail import Trail
from tests.encode.qlik_change_table import Column
from tests.goldengate import contract_of, source_of
from tests.test_cli import inlet

CASES = [path for path in test_cases.CASES if hasattr(test_cases.ALL_CODECS[path.parent.name], "annotate")]
OF_PLACE = ("operation", "table", "transaction_id", "event", "is_last", "change_seq")
INSERT = 5  # IOType
SAYING = [path for path in test_cases.CASES if hasattr(test_cases.ALL_CODECS[path.parent.name], "says")]
OF_BYTES = {"wrong_magic", "trailing_bytes"}  # kinds that only the bytes of a message of Avro tell
OF_TEXT = {"invalid_json", "invalid_utf8", "trailing_data", "duplicate_member"}  # kinds that a message's text tells


def name_of(path) -> str:
    return f"{path.parent.name}/{path.stem}"


def assert_each_byte_is_in_one_leaf(data: bytes, records: list[Annotated]) -> None:
    at = 0
    for record in records:
        assert record.offset == at
        for leaf in leaves(record.notes):
            assert leaf.offset == at and leaf.name, leaf
            at += leaf.length
        assert at == record.offset + record.length
    assert at == len(data)


def images(notes, found: dict | None = None, image: str = "") -> dict:
    """Values of columns by image, as the notes show them."""
    found = {} if found is None else found
    for note in notes:
        if note.image:
            found.setdefault(note.image, {})
        if note.column is not None and not note.fault:
            found[note.image or image][note.column] = note.value
        images(note.children, found, note.image or image)
    return found


def place_of(row: dict) -> dict:
    return {
        "operation": row["operation"],
        "table": f"{row['source_schema']}.{row['source_table']}",
        "transaction_id": row.get("transaction_id"),
        "event": row.get("transaction_event_counter"),
        "is_last": row.get("transaction_last_event"),
        "change_seq": row["change_seq"],
    }


def records_of(records: list[Annotated], offset: int, length: int) -> list[Annotated]:
    found = [record for record in records if offset <= record.offset < offset + length]
    assert found and sum(record.length for record in found) == length
    return found


def assert_equal_to_the_decoder(codec, data: bytes, context: dict, source, tables) -> None:
    records = codec.annotate(data, context, source, tables)
    assert_each_byte_is_in_one_leaf(data, records)
    is_message = "topic" in context
    decoded = (
        codec.decode_message(context | {"value": data}, source, tables, [])
        if is_message
        else decode_block(codec, data, context, source, tables)
    )
    for row in change_rows(codec, decoded, context, tables):
        mine = records_of(records, row["unit_offset"], row["unit_length"])
        assert [{name: getattr(one, name) for name in OF_PLACE} for one in mine] == [place_of(row)] * len(mine)
        if header := row.get("header"):
            csn = header.get("csn")
            assert {record.csn for record in mine} == {
                csn.decode("utf-8", "backslashreplace") if isinstance(csn, bytes) else csn
            }
        found: dict = {}
        for record in mine:
            assert not record.fault and not any(leaf.fault for leaf in leaves(record.notes))
            images(record.notes, found)
        is_pair = "pair_divided" in source.options or source.options.get("before_images") == "stored"
        if is_pair and row["operation"] == "UPDATE":  # another record of it has it
            found["before"] = row["before"]
        assert (found.get("before"), found.get("after")) == (row.get("before"), row.get("after"))
    for reject in decoded.rejects:
        assert_rejected(reject, records_of(records, reject.unit_offset, reject.unit_length))


def assert_rejected(reject: Reject, records: list[Annotated]) -> None:
    """A reject is told by its kind, at the byte that it names; of a record in segments that may be its first one."""
    faults = [leaf for record in records for leaf in leaves(record.notes) if leaf.fault == reject.kind]
    of_records = [record.fault[0] for record in records if record.fault]
    assert faults or reject.kind in of_records, (reject, of_records)
    whole = [leaf for record in records for leaf in leaves(record.notes)]
    faults = [] if reject.kind in of_records else faults
    is_at_record = len(records) > 1 and reject.byte_offset == reject.unit_offset
    assert all(leaf.offset <= leaf.fault_at <= leaf.end for leaf in whole if leaf.fault_at is not None), whole
    at_byte = (leaf.offset <= reject.byte_offset <= leaf.end for leaf in faults or whole)
    assert is_at_record or any(at_byte), (reject, faults)


def blocks(case: dict, data: bytes) -> Iterator[tuple[bytes, dict]]:
    """Blocks of a file, and their contexts; not of one that cannot be opened, nor of what cannot be framed."""
    codec, source, tables = case["codec"], case["source"], case["tables"]
    context = codec.open_file(case["path"], data, True, source, tables)
    if isinstance(context, dict):
        context = codec.follow(context, None) if hasattr(codec, "follow") else context
        for block in codec.cut(data, context, source, tables, case.get("len_block", test_cases.LEN_BLOCK), True).blocks:
            yield data[block.offset : block.offset + block.length], block.context


@pytest.mark.parametrize("path", CASES, ids=name_of)
def test_what_is_shown_of_a_case_is_what_the_decoder_reads(path):
    case = test_cases.load(path)
    if case["data"] is None:
        for written in case["messages"]:
            assert_equal_to_the_message(case, test_cases._message(written))
        return
    for data, context in blocks(case, case["data"]):
        assert_equal_to_the_decoder(case["codec"], data, context, case["source"], case["tables"])


def assert_equal_to_the_message(case: dict, message: dict) -> None:
    """As of a block. Values are those of the JSON text; what the contract makes of them is `fit`'s business."""
    codec, source, tables, data = case["codec"], case["source"], case["tables"], message["value"] or b""
    if hasattr(codec, "cut"):
        assert_equal_to_the_decoder(codec, data, message, source, tables)
        return
    (record,) = codec.annotate(data, message, source, tables)
    assert_each_byte_is_in_one_leaf(data, [record])
    loads = codec.LOADS.assign_loads([], {})
    decoded = codec.decode_message(message, source, tables, loads)
    for row in decoded.changes:
        shown = {name: getattr(record, name) for name in OF_PLACE}
        is_load = row["operation"] == "REFRESH"
        assert shown == place_of(row) | ({"change_seq": None} if is_load else {})
        found, contract = images(record.notes), tables[record.table].at(row["change_seq"])
        typed = {
            image: {
                name: fit(value, contract.column(name).type, contract.column(name).encoding)
                for name, value in values.items()
            }
            for image, values in found.items()
        }
        shown_images = [typed.get("before"), typed.get("after")]
        assert test_cases.plain(shown_images) == test_cases.plain([row.get("before"), row.get("after")])
    for reject in decoded.rejects:
        faults = [leaf for leaf in leaves(record.notes) if leaf.fault]
        kinds = {leaf.fault for leaf in faults} | ({record.fault[0]} if record.fault else set())
        assert reject.kind in kinds if reject.kind in OF_TEXT else not kinds & OF_TEXT, (reject, record.fault, faults)
        if reject.kind in OF_BYTES and source.codec == "qlik_avro":
            assert [(leaf.fault, leaf.fault_at) for leaf in faults] == [(reject.kind, reject.byte_offset)]
        at_kind = [leaf for leaf in faults if leaf.fault == reject.kind] or leaves(record.notes)
        assert not data or any(leaf.offset <= reject.byte_offset <= leaf.end for leaf in at_kind)


@pytest.mark.parametrize("path", SAYING, ids=name_of)
def test_the_records_of_messages_say_their_places_with_contracts_and_without(path):
    case = test_cases.load(path)
    codec, source, tables = case["codec"], case["source"], case["tables"]
    for written in case["messages"]:
        message = {"unit_id": "s/t/0/0"} | test_cases._message(written)
        decoded = codec.decode_message(message, source, tables, decode.loads_of(codec, source, tables, [message]))
        for known in (tables, {}):
            records = message_records.annotate(codec, message, source, known)
            assert_each_byte_is_in_one_leaf(message["value"] or b"", records)
            shown = {place_shown(one) for one in records}
            for row in decoded.changes:
                schema, table, seq = row["source_schema"], row["source_table"], row["change_seq"]
                assert (
                    row["operation"],
                    f"{schema}.{table}",
                    row["transaction_id"],
                    row["stream_position"],
                    None if row.get("load_id") else seq,  # which its load gives
                ) in shown
        faults = [one.fault for one in message_records.annotate(codec, message, source, tables) if one.fault]
        assert [kind for kind, _ in faults] == [one.kind for one in decoded.rejects]


def place_shown(record: Annotated) -> tuple:
    return record.operation, record.table, record.transaction_id, record.position, record.change_seq


def trail_case(rng: random.Random, num_transactions: int = 12, layout: str = "compressed") -> tuple[dict, bytes]:
    """A random trail with all that streams do not write: segments, LOB chunks, user tokens, an empty text."""
    how = streams.How(rng.choice([0, 2, 4]), restarts=0, rolls=0)
    sent = streams.random_trail(rng, num_transactions, how, layout=layout)
    trail, table = sent.trail, next(iter(sent.trail.tables.values()))
    image = streams.random_image(rng, table, 1)
    area = trail.image(table.name, image)
    cuts = sorted(rng.randrange(len(area) + 1) for _ in range(2))
    pieces = [area[a:b] for a, b in zip([0, *cuts], [*cuts, len(area)])]
    trail.segments(table.name, INSERT, pieces, streams.FIRST, tokens=[("6", "9.9.9"), ("L", "77")])
    trail.lob_chunk(table.name, b"a chunk", trans_ind=streams.LAST)
    trail.insert(table.name, image, user=b"user tokens", trans_ind=streams.ONLY)
    ((name, data),) = trail.files
    tables = {one.name: contract_of(one) for one in trail.tables.values()}
    codec = CODECS["goldengate_trail"]
    return {"codec": codec, "source": source_of(), "tables": tables, "path": name}, data


@pytest.mark.parametrize("layout", ["compressed", "full"])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_shown_of_a_random_trail_is_what_the_decoder_reads(seed, layout):
    rng = random.Random(seed)
    case, data = trail_case(rng, layout=layout)
    for unit, context in blocks(case | {"len_block": 2_000}, data):  # so that what was open before counts
        assert_equal_to_the_decoder(case["codec"], unit, context, case["source"], case["tables"])


@pytest.mark.parametrize("layout", ["compressed", "full"])
@pytest.mark.parametrize("seed", range(6))
def test_damaged_bytes_of_a_trail_are_shown_as_the_decoder_rejects_them(seed, layout):
    rng = random.Random(seed)
    case, data = trail_case(rng, 6, layout)
    case["source"].header = False  # a LOB chunk's IO Time may be one that Python cannot hold
    for _ in range(15):
        damaged = mutated(rng, data)
        for unit, context in blocks(case, damaged):
            assert_equal_to_the_decoder(case["codec"], unit, context, case["source"], case["tables"])


def test_a_row_without_columns_has_no_key():
    trail = Trail([JOBS])
    trail.row(INSERT, "HR.JOBS", io_time=streams.START)
    case = {"codec": CODECS["goldengate_trail"], "path": trail.files[0][0]}
    case |= {"source": source_of(), "tables": {"HR.JOBS": contract_of(JOBS)}}
    ((data, context),) = blocks(case, trail.files[0][1])
    _, record = case["codec"].annotate(data, context, case["source"], case["tables"])
    assert record.fault == ("missing_key", "no columns, and so no ID of the key")


@pytest.mark.parametrize("is_same", [True, False])
def test_keys_of_two_records_are_one_where_their_bytes_are(is_same):
    table = columns.Table("HR.PAY", (columns.decimal_text("ID", 2, is_key=True), columns.varchar("NAME", 9)))
    trail = Trail([table])
    before, after = {"ID": Decimal("1.5"), "NAME": "a"}, {"ID": Decimal("1.5" if is_same else "1.50"), "NAME": "b"}
    trail.update_in_two("HR.PAY", before, after, io_time=streams.START)
    case = {"codec": CODECS["goldengate_trail"], "path": trail.files[0][0]}
    case |= {"source": source_of(), "tables": {"HR.PAY": contract_of(table)}}
    ((data, context),) = blocks(case, trail.files[0][1])
    assert_equal_to_the_decoder(case["codec"], data, context, case["source"], case["tables"])
    *_, record = case["codec"].annotate(data, context, case["source"], case["tables"])
    assert (record.fault is None) == is_same


def test_text_of_a_change_table_is_shown_in_its_character_set():
    case = test_cases.load(next(path for path in CASES if path.stem == "ok_load"))
    case |= {"data": '1,"Łódź",\n'.encode()}
    ((data, context),) = blocks(case, case["data"])
    (record,) = case["codec"].annotate(data, context, case["source"], case["tables"])
    assert [note.meaning for note in record.notes] == ["1", "Łódź", ""]


def test_an_image_that_rejects_its_pair_is_shown_as_faulty():
    """The decoder rejects the pair when both rows are there."""
    case = test_cases.load(
        next(path for path in CASES if path.parent.name == "qlik_change_table" and path.stem == "bad_pairs")
    )
    ((data, context),) = blocks(case, case["data"])
    records = case["codec"].annotate(data, context, case["source"], case["tables"])
    (record,) = [one for one in records if one.fault]
    kind, found = record.fault
    assert (kind, record.offset, found[-9:]) == ("value_does_not_fit", 504, "found 'x'")


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Bytes set, cut out or put in."""
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(damaged) or 1)
        match rng.randrange(4):
            case 0:
                del damaged[at : at + rng.randint(1, 9)]
            case 1:
                damaged[at:at] = rng.randbytes(rng.randint(1, 9))
            case _:
                damaged[at : at + 1] = bytes([rng.choice([0, 1, 0xFF, rng.randrange(256)])])
    return bytes(damaged)


@pytest.mark.parametrize("path", [path for path in CASES if path.stem.startswith("ok_")], ids=name_of)
def test_bytes_that_are_cut_or_damaged_are_shown_as_the_decoder_rejects_them(path):
    case, rng = test_cases.load(path), random.Random(path.stem)
    codec, source, tables = case["codec"], case["source"], case["tables"]
    if case["data"] is None:
        message = test_cases._message(case["messages"][0])
        for _ in range(10 if message["value"] else 0):
            assert_equal_to_the_message(case, message | {"value": mutated(rng, message["value"])})
        return
    for data, context in blocks(case, case["data"]):
        for damaged in [data[: rng.randrange(len(data))], *(mutated(rng, data) for _ in range(10))]:
            assert_equal_to_the_decoder(codec, damaged, context, source, tables)


JOBS = columns.Table("HR.JOBS", (columns.number("ID", 2, is_key=True), columns.varchar("NAME", 300)))
HEADING = (
    "       142  Insert  HR.JOBS  transaction 10.2.2016 event 1, the last  CSN 1332816  112 bytes  "
    "20260102030000000000000070000000142\n"
)
INSERTED = """\
       142  47 01 00 70                                      G Record Header            info 01, length 112
       146  46 bytes                                         GHDR
       146  48 00 00 2a                                        H GHDR                   info 00, length 42
       150  45                                                 Hdr-Ind                  E
       151  04                                                 Partition                04, FieldComp layout
       152  00                                                 UndoFlag                 0
       153  41                                                 BeforeAfter              A, after-image
       154  00 1a                                              RecLength                26
       156  05                                                 IOType                   5 Insert
       157  ff                                                 OrigNode                 255
       158  02 f3 6d 92 5c 6f 5c 00                            IO Time                  2026-01-02 03:00:00.000000 UTC
       166  00 00 00 00 00 00 00 00                            AuditPos                 0
       174  00 00 00 00                                        AuditRBA                 0
       178  03                                                 TransInd                 3 only one
       179  52                                                 FormatType               R, read from the log
       180  00                                                 SyskeyLen                0
       181  00                                                 Incomplete               0
       182  00                                                 Continued                N
       183  01                                                 RecCount                 1
       184  48 52 2e 4a 4f 42 53 00                            table                    HR.JOBS
       192  30 bytes                                         Data
       192  44 00 00 1a                                        D Data                   info 00, length 26
       196  26 bytes                                           after-image
       196  00 00 00 0a                                          column 0               index 0, length 10
       200  00 00                                                null indicator         present
       202  00 00 00 00 00 00 00 96                              value                  ........
       210  00 01 00 08                                          column 1               index 1, length 8
       214  00 00                                                null indicator         present
       216  00 04 72 6f 62 1b                                    value                  ..rob.
"""


@pytest.fixture
def trail_file(tmp_path) -> Path:
    """A trail with an insert, an update in two records, and a delete in a transaction of its own."""
    trail = Trail([JOBS], seqno=7)
    ids = [("L", "1332816"), ("6", "10.2.2016")]
    row = {"ID": Decimal("1.50"), "NAME": "rob\x1b"}
    trail.insert("HR.JOBS", row, tokens=ids, io_time=streams.START, trans_ind=streams.ONLY)
    trail.update_in_two(
        "HR.JOBS", row, row | {"NAME": "x" * 200}, tokens=[("6", "2"), ("L", "2")], io_time=streams.START
    )
    trail.delete("HR.JOBS", {"ID": 2}, tokens=[("6", "3"), ("L", "3")], io_time=streams.START)
    ((name, data),) = trail.files
    (tmp_path / name).write_bytes(data)
    return tmp_path / name


def bytes_shown(text: str) -> bytes:
    """The bytes of all leaves of JSON lines, one behind the other."""

    def of(note: dict) -> str:
        return note["hex"] if "hex" in note else "".join(map(of, note["notes"]))

    return bytes.fromhex("".join(of(note) for line in text.splitlines() for note in json.loads(line)["notes"]))


def test_a_trail_is_shown_without_a_project(trail_file):
    shown = inlet("inspect", trail_file, "--codec", "goldengate_trail", "--at", 150, "--records", 1)
    assert shown.stdout.startswith(HEADING + INSERTED) and shown.returncode == 0
    long = inlet("inspect", trail_file, "--codec", "goldengate_trail", "--csn", 2)
    assert "... 138 bytes more" in long.stdout and long.stdout.count("FieldComp, before-image  (UPDATE)") == 1
    full = inlet("inspect", trail_file, "--codec", "goldengate_trail", "--csn", 2, "--full")
    assert "more" not in full.stdout and "x" * 200 in full.stdout


def write_project(folder: Path) -> None:
    contract = contract_of(JOBS).model_dump(include={"table", "name", "key", "columns"})
    (folder / "pipelines" / "tables").mkdir(parents=True)
    (folder / "pipelines" / "tables" / "jobs.yml").write_text(json.dumps(contract))
    source = {"codec": "goldengate_trail", "from": "*", "options": {"charset": "utf_8"}}
    (folder / "pipelines" / "inlet.yml").write_text(json.dumps({"sources": {"trail": source}}))


def test_a_contract_gives_columns_their_names_and_values(trail_file, tmp_path):
    write_project(tmp_path)
    shown = inlet("inspect", trail_file, "--project", tmp_path, "--records", 2)
    assert "column 0 ID " in shown.stdout and "INT64(11,2) 1.50\n" in shown.stdout
    assert "ASCII_V(300) rob\\x1b\n" in shown.stdout  # nothing that a terminal would obey


def test_json_lines_hold_every_byte_of_a_file(trail_file, tmp_path):
    words = ["--codec", "goldengate_trail", "--json"]
    shown = inlet("inspect", trail_file, *words)
    assert bytes_shown(shown.stdout) == trail_file.read_bytes()
    (tmp_path / "cut").write_bytes(trail_file.read_bytes()[:-3])
    shown = inlet("inspect", tmp_path / "cut", *words, "--name", "ra000007")
    assert bytes_shown(shown.stdout) == trail_file.read_bytes()[:-3]
    last = json.loads(shown.stdout.splitlines()[-1])
    assert (last["notes"][0]["fault"], last["fault"]["kind"]) == ("truncated", "truncated") and shown.returncode == 3
    messages = tmp_path / "messages.jsonl"
    messages.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n {"headers": {}}\n{"b"')
    shown = inlet("inspect", messages, "--codec", "qlik_json", "--transport", "lines", "--json")
    assert bytes_shown(shown.stdout) == messages.read_bytes()
    messages.write_bytes(b' [{"a": [1, null]}, {}] ')
    shown = inlet("inspect", messages, "--codec", "qlik_json", "--transport", "json", "--json")
    assert bytes_shown(shown.stdout) == messages.read_bytes()


def test_each_byte_of_a_message_of_avro_is_shown_with_its_field(tmp_path):
    """By a schema of its own, and by one that another message brings; the last message is cut off."""
    listed = [Column("ID", "INT4", key=1), Column("NAME", "STRING", 9)]
    change = {"operation": "INSERT", "change_seq": "2026010203040500" + "1".zfill(19), "after": {"ID": 7, "NAME": "ab"}}
    data = qlik_avro.envelope("DT", qlik_avro.datum(change, listed), "AA")
    values = [qlik_avro.metadata("AA", "SHOP", "ITEMS", listed), data, data[:-3]]
    qlik.write_parquet(qlik.rows(values, "items"), tmp_path / "messages.parquet")
    done = inlet("inspect", tmp_path / "messages.parquet", "--codec", "qlik_avro", "--transport", "parquet", "--json")
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 3
    assert [bytes_shown(line) for line in done.stdout.splitlines()] == values
    assert (first["record"], second["operation"], second["table"]) == ("metadata", "INSERT", "SHOP.ITEMS")
    found = {note["column"]: (note["value"], note["hex"]) for note in notes_in(second["notes"]) if "column" in note}
    assert found == {"ID": ("7", "020e"), "NAME": ("ab", "02046162")}
    assert third["notes"][-1]["fault"] == "wrong_shape"


def notes_in(notes: list[dict]) -> Iterator[dict]:
    for note in notes:
        yield note
        yield from notes_in(note.get("notes", []))


def test_messages_that_their_codec_does_not_explain_are_shown_by_their_members(tmp_path, monkeypatch):
    messages = tmp_path / "messages.jsonl"
    messages.write_bytes(b'{"a": {"b": 1.50}}\na|b|\xff\n{"c":1} {"d":}\n')
    monkeypatch.delattr(CODECS["qlik_json"], "annotate")
    shown = inlet("inspect", messages, "--codec", "qlik_json", "--transport", "lines", "--json")
    assert bytes_shown(shown.stdout) == messages.read_bytes()
    first, _, second, _, third, _ = map(json.loads, shown.stdout.splitlines())
    assert [(note["name"], note.get("fault")) for note in third["notes"]] == [
        ("message", None),
        ("message", None),
        ("unreadable", "invalid_json"),
    ]
    assert first["notes"][0]["notes"][1]["notes"][1] == {
        "offset": 7, "length": 9, "name": "b", "meaning": "1.50", "hex": b'"b": 1.50'.hex()
    }  # fmt: skip
    assert (second["notes"][0]["name"], second["notes"][0]["meaning"]) == ("text", "a|b|.")


def test_operations_are_counted_by_table_and_records_are_chosen(trail_file):
    words = ["inspect", trail_file, "--codec", "goldengate_trail", "--json"]
    counted = [json.loads(line) for line in inlet(*words, "--count", "--table", "HR.*").stdout.splitlines()]
    assert [(row["table"], row["operation"], row["number"]) for row in counted] == [
        ("HR.JOBS", operation, 1) for operation in ("DELETE", "INSERT", "UPDATE")
    ]
    assert sum(row["bytes"] for row in counted) == trail_file.stat().st_size - 142
    (shown,) = inlet(*words, "--transaction", 3).stdout.splitlines()
    assert json.loads(shown)["operation"] == "DELETE"
    assert not inlet(*words, "--table", "HR.OTHER").stdout


@pytest.mark.parametrize(
    ("byte", "number", "kinds", "sentences"),
    [
        (-21, 1, ["column_twice"], ["column_twice at byte 420: expected each column once, found column 1 again"]),
        (
            -23,
            2,
            ["bad_length", "part_missing"],
            [
                "part_missing at byte 254: a before-image without its update behind it",
                "bad_length at byte 631: expected a record, whole and with a header",
            ],
        ),
    ],
)
def test_rejected_records_are_counted_with_their_kinds(trail_file, byte, number, kinds, sentences):
    """An update in two records is one that is rejected, or two where it is none."""
    data = bytearray(trail_file.read_bytes())
    data[data.index(b"x" * 200) + byte] += 1
    trail_file.write_bytes(data)
    words = ["inspect", trail_file, "--codec", "goldengate_trail", "--count"]
    rows = [json.loads(line) for line in inlet(*words, "--json").stdout.splitlines()]
    assert [(row["operation"], row["number"], row["rejected"], row["kinds"]) for row in rows] == [
        ("File Header", 1, 0, []),
        ("DELETE", 1, 0, []),
        ("INSERT", 1, 0, []),
        ("UPDATE", number, number, kinds),
    ]
    counted = inlet(*words)
    head, *_, update = counted.stdout.splitlines()[: -len(sentences)]
    assert head.split()[-2:] == ["rejected", "kinds"] and update.split()[-1:] == kinds[-1:]
    assert (counted.stdout.splitlines()[-len(sentences) :], counted.returncode) == (sentences, 3)


def trail_that_is_encrypted(folder: Path) -> Path:
    trail, rng = Trail([JOBS], seqno=7), random.Random(3)
    for _ in range(25):
        trail.row(INSERT, "HR.JOBS", rng.randbytes(40), trans_ind=streams.ONLY)
    (folder / "ra000007").write_bytes(trail.files[0][1])
    return folder / "ra000007"


ENCRYPTED = (
    "encrypted_data at byte 142: expected columns in the records: write the trail without ENCRYPTTRAIL, or decrypt it "
    "with a pump (DECRYPTTRAIL), found 20 records in order, none of whose data is a list of columns\n"
)


def test_what_an_encrypted_trail_says_is_shown_and_why_the_rest_is_not(tmp_path):
    file = trail_that_is_encrypted(tmp_path)
    words = ["inspect", file, "--codec", "goldengate_trail"]
    shown = inlet(*words)
    assert shown.returncode == 3 and shown.stdout.count(ENCRYPTED) == 1
    header, rest = shown.stdout.split("\n\n", 1)
    assert "file_name                ./dirdat/" in header and rest.startswith("       142  no record  ")
    assert bytes_shown(inlet(*words, "--json").stdout) == file.read_bytes()
    counted = inlet(*words, "--count")
    assert counted.returncode == 3 and counted.stdout.endswith(ENCRYPTED)
    assert [line.split() for line in counted.stdout.splitlines()[:3]] == [
        ["table", "operation", "number", "bytes", "rejected", "kinds"],
        ["File", "Header", "1", "142"],
        ["no", "record", "1", f"{file.stat().st_size - 142:,}", "1", "encrypted_data"],
    ]
    counted = inlet(*words, "--count", "--json")
    assert counted.stderr == f"inlet: {ENCRYPTED}"
    assert json.loads(counted.stdout.splitlines()[1])["kinds"] == ["encrypted_data"]
    assert inlet(*words, "--table", "HR.JOBS").stdout.endswith(f"none of them tells a table\n{ENCRYPTED}")


@pytest.mark.parametrize(
    ("codec", "said"),
    [
        (
            "linkexpress_group --option source_tz=UTC --option charset=cp932",
            "missing_change_seq at byte 0: expected a file name with a time",
        ),
        ("goldengate_json --transport lines", "invalid_utf8 at byte 3: expected UTF-8, found 0x8E"),
        ("qlik_json --transport whole_file", "invalid_utf8 at byte 3: expected UTF-8, found 0x8E"),
    ],
)
def test_a_file_of_another_codec_is_counted_as_what_cannot_be_read(trail_file, codec, said):
    counted = inlet("inspect", trail_file, "--codec", *codec.split(), "--count")
    assert counted.returncode == 3 and said in counted.stdout


@pytest.mark.parametrize(("codec", "kind"), [("qlik_json", "wrong_shape"), ("goldengate_json", "unknown_table")])
def test_messages_of_another_codec_are_rejected_each(tmp_path, codec, kind):
    (tmp_path / "file").write_text('{"a": 1}\n{"table": "HR.A", "op_type": "T", "pos": "00000000020000000001"}')
    counted = inlet("inspect", tmp_path / "file", "--codec", codec, "--transport", "lines", "--count", "--json")
    rows = {row["operation"]: row for row in map(json.loads, counted.stdout.splitlines())}
    assert rows["message"]["kinds"] == [kind] and counted.returncode == 3
    assert "TRUNCATE" not in rows or rows["TRUNCATE"]["rejected"] == 0


def test_the_id_of_a_schema_registry_is_apart_from_the_json_after_it(tmp_path):
    record = {"table": "HR.A", "op_type": "I", "pos": "00000000020000000001", "after": {"ID": 1}}
    (tmp_path / "message").write_bytes(b"\0\0\0\0\6" + json.dumps(record).encode())
    words = ["--codec", "goldengate_json", "--transport", "whole_file", "--json"]
    shown = [json.loads(line) for line in inlet("inspect", tmp_path / "message", *words).stdout.splitlines()]
    assert [(one["offset"], one["record"]) for one in shown] == [(0, "between records"), (5, "INSERT")]
    assert "a schema id" in shown[0]["notes"][0]["meaning"]


@pytest.mark.parametrize("load_time", ["first", "modified", "name:(?P<time>[0-9]{14}).*"])
def test_a_row_of_a_full_load_has_the_time_that_its_source_tells(tmp_path, load_time):
    load = {"codec": "qlik_json", "from": {"transport": "lines", "path": "*.jsonl"}, "tables": {"*.jsonl": "SHOP.ITEM"}}
    contract = {"table": "SHOP.ITEM", "name": "item", "key": ["ID"], "columns": [{"name": "ID", "type": "int"}]}
    (tmp_path / "pipelines" / "tables").mkdir(parents=True)
    (tmp_path / "pipelines" / "inlet.yml").write_text(
        yaml.safe_dump({"sources": {"load": load | {"options": {"load_time": load_time}}}})
    )
    (tmp_path / "pipelines" / "tables" / "item.yml").write_text(yaml.safe_dump(contract))
    (tmp_path / "20260102030405.jsonl").write_text('{"data":{"ID":1},"headers":{"operation":"REFRESH"}}\n')
    done = inlet("inspect", tmp_path / "20260102030405.jsonl", "--project", tmp_path, "--json")
    assert (done.returncode, "missing_change_seq" in done.stdout, '"REFRESH"' in done.stdout) == (0, False, True)


def test_messages_are_chosen_by_table_transaction_and_position(tmp_path):
    file = tmp_path / "messages.jsonl"
    one = {"table": "HR.A", "op_type": "I", "pos": "00000000020000000001", "tokens": {"X": "1.2.3"}, "after": {"ID": 1}}
    two = {"table": "HR.B", "op_type": "D", "pos": "00000000020000000002", "before": {"ID": 1}}
    file.write_text(f"{json.dumps(one)}{json.dumps(two)}\n[{json.dumps(two)}]")
    words = ["inspect", file, "--codec", "goldengate_json", "--transport", "lines", "--option", "transaction_token=X"]
    shown = {
        given: [json.loads(line)["operation"] for line in inlet(*words, "--json", *given).stdout.splitlines()]
        for given in (("--table", "HR.B"), ("--transaction", "1.2.3"), ("--position", two["pos"]))
    }
    assert [*shown.values()] == [["DELETE", "DELETE"], ["INSERT"], ["DELETE", "DELETE"]]
    assert bytes_shown(inlet(*words, "--json").stdout) == file.read_bytes()
    nothing = inlet(*words, "--csn", "7", "--json")
    assert (nothing.stdout, nothing.returncode) == ("", 0)
    assert nothing.stderr == (
        "inlet: no record of commit 7; the file has 4 records: tables HR.A, HR.B; transactions 1.2.3; none of them "
        "tells a commit\n"
    )


def test_the_place_of_a_reject_in_a_file_that_came_in_pieces_is_the_one_to_inspect(trail_file, tmp_path):
    """As bronze cuts a file that grows: what was landed first, then the rest from there on."""
    write_project(tmp_path)
    project, data = config.load(tmp_path), bytearray(trail_file.read_bytes())
    data[data.index(b"\0\0\0\x0a\0\0", -80) + 4] = 7  # the null indicator of the key in the delete, which comes last
    trail_file.write_bytes(data)
    source, codec = project.sources["trail"], CODECS["goldengate_trail"]
    tables, context, blocks_ = project.tables_of(source), None, []
    for size in (500, len(data)):
        start = sum(len(block.data) for block in blocks_)
        stream = BytesIO(data[start:size])
        for block, after in cut_file(source, tables, trail_file.name, stream, start, context, size == len(data)):
            blocks_.append(block)
            context = after
    (place, reject) = next(
        (block.file_offset, reject)
        for block in blocks_
        for reject in decode_block(codec, block.data, block.context, source, tables).rejects
    )
    assert place > 0 and reject.kind == "missing_key"
    told = {name: getattr(reject, name) for name in ("unit_offset", "byte_offset", "expected", "found", "raw")}
    unit_id = f"trail/{trail_file.name}@{place}"
    lakes.write(project, "silver.rejects", lakes.rejected("trail", reject.kind, unit_id=unit_id, **told))
    (row,) = map(json.loads, inlet("rejects", "--json", "--project", tmp_path).stdout.splitlines())
    assert (row["byte_offset"], row["file_offset"]) == (reject.byte_offset, place + reject.unit_offset)
    told = inlet("rejects", "--project", tmp_path).stdout
    assert f"{place + reject.byte_offset}" in told
    command = next(line for line in told.splitlines() if "inlet inspect" in line).partition("inlet inspect ")[2]
    shown = inlet("inspect", *command.split())
    assert shown.stdout.startswith(f"{row['file_offset']:>10}  Delete  HR.JOBS") and shown.returncode == 3
    assert f"{place + reject.byte_offset:>10}  " in shown.stdout and "expected a value, for a key" in shown.stdout


@pytest.mark.parametrize("more", [[], ["--count"]])
def test_where_no_record_is_found_what_is_there_is_said(trail_file, more):
    words = ["inspect", trail_file, "--codec", "goldengate_trail", "--table", "HR.OTHER", "--transaction", "9.9"]
    assert inlet(*words, *more).stdout == (
        "no record of table HR.OTHER and transaction 9.9; the file has 5 records: tables HR.JOBS; "
        "transactions 10.2.2016, 2, 3; commits 1332816, 2, 3\n"
    )


def test_a_large_trail_is_read_from_the_middle_on(trail_file, monkeypatch):
    project = inspection.without_project(trail_file, "goldengate_trail", "", {})
    everything = list(inspection.inspect(project, trail_file, None, None, inspection.Selection()))
    monkeypatch.setattr(inspection, "FAR", 0)
    monkeypatch.setattr(inspection, "BEHIND", 10)
    for shown in everything[2:]:
        chosen = inspection.Selection(shown.offset + 9)
        near = list(inspection.inspect(project, trail_file, None, None, chosen))
        rest = everything[everything.index(shown) :]
        assert [one.as_json()["notes"] for one in near] == [one.as_json()["notes"] for one in rest]


def test_what_cannot_be_asked_is_said(trail_file, tmp_path):
    for words, said in (
        (["--codec", "odd"], "There is no codec odd"),
        (["--codec", "goldengate_trail", "--transport", "lines"], "lines brings nothing that goldengate_trail reads"),
        (["--codec", "goldengate_trail", "--option", "charset"], "expected NAME=VALUE"),
        (["--codec", "goldengate_trail", "--option", "chars=x"], "chars"),
        (["--transport", "lines"], "go with --codec"),
        (["--project", tmp_path], "is no Inlet project"),
    ):
        told = inlet("inspect", trail_file, *words)
        assert told.returncode == 2 and said in told.stderr


TEXTS = [
    path
    for path in test_cases.CASES
    if (codec := test_cases.ALL_CODECS[path.parent.name])
    and hasattr(codec, "cut")
    and not hasattr(codec, "annotate")
    and "toy" not in path.parts
]


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_the_records_of_a_text_say_what_the_decoder_reads_and_its_lines_are_all_of_it(path):
    case = test_cases.load(path)
    codec, source = case["codec"], case["source"]
    for data, context in blocks(case, case["data"]):
        for tables in (case["tables"], {}):
            records = text_records.annotate(codec, data, context, source, tables)
            assert_each_byte_is_in_one_leaf(data, records)
            assert all(note.name for record in records for note in record.notes)
        records = text_records.annotate(codec, data, context, source, case["tables"])
        decoded = decode_block(codec, data, context, source, case["tables"])
        for row in change_rows(codec, decoded, context, case["tables"]):
            (record,) = records_of(records, row["unit_offset"], row["unit_length"])
            assert {name: getattr(record, name) for name in OF_PLACE} == place_of(row)
        faults = {record.offset: (record.fault[0], record.fault_at) for record in records if record.fault}
        assert faults == {reject.unit_offset: (reject.kind, reject.byte_offset) for reject in decoded.rejects}


INSERT_OF_LOGDUMP = """\
         0  Insert  test.ogg_test  transaction 000000000000000000007:000000000011887 event 1, the last  \
CSN 000000000000000000007:000000000012041  1,868 bytes  20221226060344000000000010000006571
"""


def test_text_of_logdump_is_shown_line_by_line_with_a_contract_and_without(tmp_path):
    case = test_cases.load(next(path for path in TEXTS if path.stem == "ok_published_insert"))
    (tmp_path / "session.txt").write_bytes(case["data"] + b"Logdump 2 >exit\n")
    words = ["inspect", tmp_path / "session.txt", "--codec", "goldengate_logdump", "--option", "seqno=1"]
    shown = inlet(*words)
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    meanings = [
        "token                      G, info 01, length 162",
        "header                     Hdr-Ind 45, Partition 0c",
        "time                       2022/12/26 15:03:44.000.000, Insert, 24 bytes of data, RBA 6571",
        "table                      test.ogg_test, defined by TDR index 1",
        "image                      after, Partition x0c, TransInd s",
        "column                     index 1, length 10",
        "bytes                      ....insert",
        "prompt                     Logdump 2 >exit",
    ]
    assert [text for text in meanings if not any(line.endswith(text) for line in lines)] == []
    (tmp_path / "pipelines" / "tables").mkdir(parents=True)
    contract = case["tables"]["test.ogg_test"].model_dump(include={"table", "name", "key", "columns"})
    (tmp_path / "pipelines" / "tables" / "t.yml").write_text(json.dumps(contract))
    source = {"codec": "goldengate_logdump", "from": "*.txt", "options": {"seqno": 1, "zone": "+09:00"}}
    (tmp_path / "pipelines" / "inlet.yml").write_text(json.dumps({"sources": {"text": source}}))
    shown = inlet("inspect", tmp_path / "session.txt", "--project", tmp_path, "--records", 1)
    assert shown.stdout.startswith(INSERT_OF_LOGDUMP)
