"""Trails with one flipped bit: what comes out of one is what comes out of the undamaged trail, or is rejected."""

import random
from datetime import timedelta

import pytest

from inlet.codecs.goldengate.notes import frames
from inlet.codecs.goldengate.trail import files as trail
from tests import goldengate_streams as streams
from tests.encode import goldengate_columns as columns
from tests.encode.goldengate_tokens import FIRST, LAST, MIDDLE, ONLY
from tests.encode.goldengate_trail import Trail
from tests.goldengate import contract_of, random_deliveries, read_files, source_of
from tests.test_cases import decode_file

LEN_TOKEN, TAIL = 4, 34
NUM_FLIPS = 300


def table_of(name: str) -> columns.Table:
    return columns.Table(
        name, (columns.integer("ID", is_key=True, is_nullable=False), columns.varchar("BODY", 2000, is_nullable=True))
    )


# three tables that are alike, so that two of them are references; no name is another one with one bit flipped
ALIKE = [table_of(name) for name in ("HR.A", "HR.F", "HR.X")]
ITEMS = columns.Table("HR.ITEMS", (columns.integer("NO", 132, is_key=True, is_nullable=False),))
TRUNCATE = [("B3", "HR"), ("B4", "ITEMS"), ("B5", "TABLE"), ("B6", "TRUNCATE")]


def written(byte_order: str, name_form: str) -> Trail:
    """Rows of every table behind all definitions, transactions of one and of several records, records in a value."""
    inner = Trail(ALIKE, byte_order, has_header=False)
    for n in (100, 101):
        inner.insert("HR.A", {"ID": n, "BODY": "not a row"}, orig_node=0)
    outbox = inner.files[0][1].decode("ascii")
    trail = Trail([*ALIKE, ITEMS], byte_order, name_form, has_header=False)
    at = {"io_time": streams.START}
    if name_form == "index":
        for table in [*ALIKE, ITEMS]:
            trail.define(table, **at)
    trail.insert("HR.A", {"ID": 1, "BODY": "a"}, tokens=[("6", "9.1.10"), ("L", "77")], **at)
    for name in ("HR.F", "HR.X", "HR.A"):
        trail.insert(name, {"ID": 2, "BODY": f"row of {name}"}, tokens=[("6", "9.1.23")], **at)
    trail.insert("HR.X", {"ID": 3, "BODY": outbox}, trans_ind=FIRST, tokens=[("6", "9.1.44")], **at)
    trail.update("HR.F", {"ID": 2, "BODY": "b"}, trans_ind=MIDDLE, **at)
    trail.insert("HR.ITEMS", {"NO": 7}, trans_ind=MIDDLE, **at)
    trail.delete("HR.A", {"ID": 2}, trans_ind=LAST, **at)
    trail.unified_update("HR.A", {"ID": 1, "BODY": "a"}, {"ID": 1, "BODY": "c"}, 2, **at)
    trail.key_update("HR.F", {"ID": 2}, {"ID": 5}, **at)
    trail.truncate("HR.ITEMS", trans_ind=ONLY, **at)
    trail.ddl(TRUNCATE, "truncate table HR.ITEMS", **at)
    trail.insert("HR.F", {"ID": 9, "BODY": "last"}, tokens=[("6", "9.1.71")], **at)
    return trail


class Damaged:
    """What may come out of a trail with one flipped bit."""

    def __init__(self, byte_order: str, name_form: str):
        self.trail = written(byte_order, name_form)
        self.tables = {table.name: contract_of(table) for table in [*ALIKE, ITEMS]}
        self.data = self.trail.files[0][1]
        self.whole = {row["unit_offset"]: row for row in self.decode(self.data)["changes"]}

    def decode(self, data: bytes) -> dict:
        case = {"codec": trail, "path": "ra000000001", "tables": self.tables, "source": source_of()}
        return decode_file(case, data)

    def check(self, at: int, bit: int) -> None:
        flipped = self.data[:at] + bytes([self.data[at] ^ 1 << bit]) + self.data[at + 1 :]
        found, hit = self.decode(flipped), self._hit(at)
        if found["file"]:  # no record can be read
            return
        rows = {row["unit_offset"]: row for row in found["changes"]}
        assert rows.keys() <= self.whole.keys(), "a row that nobody wrote"
        for offset, row in rows.items():
            if offset == hit.rba and self._is_own(at - hit.rba, hit):
                continue
            assert _meaning(row) == _meaning(self.whole[offset])
        lost = self.whole.keys() - rows.keys() - {rba for r in found["rejects"] for rba in _range(r)}
        lost -= set(range(len(flipped) - found["rest"], len(flipped)))  # waits for more of the file
        assert not lost or lost == {hit.rba} and hit.header["io_type"] in (100, 160), "a row without a reject"
        order = [row["change_seq"] for row in sorted(found["changes"], key=lambda row: row["unit_offset"])]
        assert order == sorted(set(order))
        first = min(self.whole)
        latest = max(order)[:8] if order and hit.rba != first else ""
        assert latest <= f"{streams.START + timedelta(days=35):%Y%m%d}"

    def _hit(self, at: int):
        return next(r for r in self.trail.records if r.rba <= at < r.rba + r.length)

    def _is_own(self, place: int, record) -> bool:
        """Is a byte of a record one that no other one repeats: of its values, or of the name or index of its table?"""
        tail = 2 * LEN_TOKEN + TAIL
        end = tail + (2 if record.tdr_index else len(record.table or "") + 1)
        is_value = end + LEN_TOKEN <= place < end + LEN_TOKEN + len(record.area)
        return tail <= place < end or is_value


def _meaning(row: dict) -> dict:
    return {name: row.get(name) for name in ("source_table", "operation", "before", "after", "unit_length")}


def _range(reject: dict) -> range:
    return range(reject["unit_offset"], reject["unit_offset"] + reject["unit_length"])


FORMS = [("little", "index"), ("big", "index"), ("big", "name")]


@pytest.mark.parametrize("byte_order, name_form", FORMS)
def test_a_flipped_bit_makes_no_row_that_was_not_written(byte_order, name_form):
    damaged, rng = Damaged(byte_order, name_form), random.Random(f"{byte_order} {name_form}")
    for _ in range(NUM_FLIPS):
        damaged.check(rng.randrange(len(damaged.data)), rng.randrange(8))


@pytest.mark.proof
@pytest.mark.parametrize("byte_order, name_form", FORMS)
def test_no_flipped_bit_makes_a_row_that_was_not_written(byte_order, name_form):
    damaged = Damaged(byte_order, name_form)
    for at in range(len(damaged.data)):
        for bit in range(8):
            damaged.check(at, bit)


def outbox(num: int) -> bytes:
    """Records that a value may hold."""
    inner = Trail(ALIKE, has_header=False)
    for _ in range(num):
        inner.insert("HR.A", {"ID": 100, "BODY": "not a row"}, orig_node=0)
    return inner.files[0][1]


@pytest.mark.parametrize("num_behind", [2, 900])
def test_rows_behind_a_lost_end_are_read_where_no_record_can_reach(num_behind):
    """Both lengths of a record are lost, so its tokens alone tell its end: nothing in its value is read."""
    rows = Trail(ALIKE, has_header=False)
    rows.insert("HR.A", {"ID": 1, "BODY": outbox(3).decode("ascii")}, io_time=streams.START)
    lost = rows.records[0].length
    for n in range(num_behind):
        rows.insert("HR.A", {"ID": n + 2, "BODY": "a"}, io_time=streams.START)
    data = bytearray(rows.files[0][1])
    data[3] ^= 1
    data[lost - 1] ^= 1
    tables = {table.name: contract_of(table) for table in ALIKE}
    for ends in ([], [200], [lost + 100], [lost + 500, 3000], [60_000, 70_000]):
        deliveries = [end for end in ends if end < len(data)]
        found = read_files([("ra000000000", bytes(data))], source_of(), tables, lambda data, d=deliveries: d)
        assert [(r.kind, r.unit_length) for r in found["rejects"]] == [("bad_frame", lost)]
        assert [row["after"]["ID"] for row in found["changes"]] == list(range(2, num_behind + 2))


def test_the_search_for_a_sure_place_reads_a_record_once(monkeypatch):
    """Whole records that end too early lead to no sure place; neither do the records that each of them holds."""
    steps, read = {}, frames.record_at

    def counted(*given):
        steps[num] += 1
        return read(*given)

    monkeypatch.setattr(frames, "record_at", counted)
    for num in (100, 400):
        steps[num] = 0
        data = outbox(num) + b"no record"
        assert frames.next_record(data, 0, "big") is None
    assert steps[400] <= 4 * steps[100] + 10


@pytest.mark.parametrize("seed", range(10))
def test_the_places_of_changes_do_not_depend_on_where_a_file_was_cut(seed):
    """Times ahead, pauses and another file: change_seq rises with the records, and is the same for each delivery."""
    rng, at, rows = random.Random(seed), streams.START, Trail(ALIKE)
    for n in range(40):
        at += timedelta(days=rng.choice([0, 0, 0, 1, 34, 40, 90]), seconds=1)
        wrong = timedelta(days=rng.choice([0, 0, 0, 0, 20, 9_000]))
        rows.insert("HR.A", {"ID": n, "BODY": "a"}, io_time=at + wrong, tokens=[("6", f"1.1.{n}")])
        if n == 20:
            rows.roll()
    tables = {table.name: contract_of(table) for table in ALIKE}
    whole = read_files(rows.files, source_of(), tables)
    cut = read_files(rows.files, source_of(), tables, random_deliveries(rng))
    seqs, again = ([(row["change_seq"], row["after"]["ID"]) for row in found["changes"]] for found in (whole, cut))
    assert seqs == sorted(seqs) == again and [n for _, n in seqs] == list(range(40))
    events = [[(c.kind, c.detail) for _, _, c in found["controls"] if c.kind == "time_ahead"] for found in (whole, cut)]
    assert events[0] == events[1]
