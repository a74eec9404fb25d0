"""`inlet inspect`: what it says of each byte is what the decoder reads, over every case, over random trails, and over
bytes that are cut and damaged.
"""

import random
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from inlet.bronze.framing import cut_file
from inlet.codecs import CODECS
from inlet.codecs.codec import change_rows, decode_block
from inlet.codecs.notes import Annotated, Note, leaves
from inlet.errors import Reject
from inlet.fields.fit import fit
from tests import goldengate_streams as streams
from tests import test_cases
from tests.goldengate import contract_of, source_of

CASES = [path for path in test_cases.CASES if hasattr(test_cases.ALL_CODECS[path.parent.name], "annotate")]
OF_PLACE = ("operation", "table", "transaction_id", "event", "is_last", "change_seq")
INSERT = 5  # IOType
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
        "transaction_id": row["transaction_id"],
        "event": row["transaction_event_counter"],
        "is_last": row["transaction_last_event"],
        "change_seq": row["change_seq"],
    }


def records_of(records: list[Annotated], offset: int, length: int) -> list[Annotated]:
    found = [record for record in records if offset <= record.offset < offset + length]
    assert found and sum(record.length for record in found) == length
    return found


def assert_equal_to_the_decoder(codec, data: bytes, context: dict, source, tables) -> None:
    records = codec.annotate(data, context, source, tables)
    assert_each_byte_is_in_one_leaf(data, records)
    decoded = decode_block(codec, data, context, source, tables)
    for row in change_rows(codec, decoded, context, source, tables):
        mine = records_of(records, row["unit_offset"], row["unit_length"])
        assert [{name: getattr(one, name) for name in OF_PLACE} for one in mine] == [place_of(row)] * len(mine)
        if header := row.get("header"):
            assert {record.csn for record in mine} == {header.get("csn")}
        found: dict = {}
        for record in mine:
            assert not record.fault and not any(leaf.fault for leaf in leaves(record.notes))
            images(record.notes, found)
        assert (found.get("before"), found.get("after")) == (row["before"], row["after"])
    for reject in decoded.rejects:
        assert_rejected(reject, records_of(records, reject.unit_offset, reject.unit_length))


def assert_rejected(reject: Reject, records: list[Annotated]) -> None:
    """A reject is told by its kind, at the byte that it names; that may be the record's first one where it is of several
    segments."""
    faults = [leaf for record in records for leaf in leaves(record.notes) if leaf.fault == reject.kind]
    of_records = [record.fault[0] for record in records if record.fault]
    assert faults or reject.kind in of_records, (reject, of_records)
    whole = [leaf for record in records for leaf in leaves(record.notes)]
    is_at_record = len(records) > 1 and reject.byte_offset == reject.unit_offset
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
        assert (typed.get("before"), typed.get("after")) == (row["before"], row["after"])
    for reject in decoded.rejects:
        faults = [leaf for leaf in leaves(record.notes) if leaf.fault]
        kinds = {leaf.fault for leaf in faults} | ({record.fault[0]} if record.fault else set())
        assert kinds == ({reject.kind} if reject.kind in OF_TEXT else kinds - OF_TEXT), (reject, record.fault, faults)
        assert not data or any(leaf.offset <= reject.byte_offset <= leaf.end for leaf in faults or leaves(record.notes))


def trail_case(rng: random.Random, num_transactions: int = 12) -> tuple[dict, bytes]:
    """A random trail with all that streams do not write: segments, LOB chunks, user tokens, an empty text."""
    sent = streams.random_trail(rng, num_transactions, streams.How(rng.choice([0, 2, 4]), restarts=0, rolls=0))
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


@pytest.mark.parametrize("seed", range(6))
def test_what_is_shown_of_a_random_trail_is_what_the_decoder_reads(seed):
    rng = random.Random(seed)
    case, data = trail_case(rng)
    for unit, context in blocks(case | {"len_block": 2_000}, data):  # so that what was open before counts
        assert_equal_to_the_decoder(case["codec"], unit, context, case["source"], case["tables"])


@pytest.mark.parametrize("seed", range(6))
def test_damaged_bytes_of_a_trail_are_shown_as_the_decoder_rejects_them(seed):
    rng = random.Random(seed)
    case, data = trail_case(rng, 6)
    case["source"].header = False  # a LOB chunk's IO Time may be one that Python cannot hold
    for _ in range(15):
        damaged = mutated(rng, data)
        for unit, context in blocks(case, damaged):
            assert_equal_to_the_decoder(case["codec"], unit, context, case["source"], case["tables"])


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Bytes set, cut out or put in."""
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(damaged))
        match rng.randrange(4):
            case 0:
                del damaged[at : at + rng.randint(1, 9)]
            case 1:
                damaged[at:at] = rng.randbytes(rng.randint(1, 9))
            case _:
                damaged[at] = rng.choice([0, 1, 0xFF, rng.randrange(256)])
    return bytes(damaged)


@pytest.mark.parametrize("path", [path for path in CASES if path.stem.startswith("ok_")], ids=name_of)
def test_bytes_that_are_cut_or_damaged_are_shown_whole(path):
    case, rng = test_cases.load(path), random.Random(path.stem)
    codec, source, tables = case["codec"], case["source"], case["tables"]
    if case["data"] is None:
        message = test_cases._message(case["messages"][0])
        units = [(message["value"], message)]
    else:
        units = list(blocks(case, case["data"]))
    for data, context in units:
        for damaged in [data[: rng.randrange(len(data))], *(mutated(rng, data) for _ in range(5))]:
            assert_each_byte_is_in_one_leaf(damaged, codec.annotate(damaged, context, source, tables))
