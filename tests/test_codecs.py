"""Every codec is held to the contract of codecs/codec.py, on the cases that it has: signatures, purity, accounting, any
block size, any split of a file, bytes around the unit. Cases cut at every byte and with junk after them: test_cases.py.
Damaged bytes and bounds of compiled code: test_fuzz.py."""

import ast
import datetime
import inspect
import io
import json
import random
from collections.abc import Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from inlet.bronze import framing
from inlet.codecs import CODECS, codec, transports_of
from inlet.codecs.results import Waiting
from inlet.config import Project
from inlet.errors import AccountingError, Reject
from inlet.silver import decoded, transactions, unit_rules
from inlet.source import Source
from inlet.table import Table
from tests import projects, test_cases
from tests.conftest import ALL_ROUNDS
from tests.encode import (
    goldengate_columns,
    goldengate_forms,
    goldengate_json,
    goldengate_logdump,
    goldengate_trail,
    linkexpress,
    linkexpress_journal,
    qlik,
    qlik_avro,
    qlik_change_table,
)
from tests.toy import codec as toy
from tests.toy import encode

PACKAGE = Path(__file__).parents[1] / "pipelines" / "inlet"
ALL = CODECS | {"toy": toy}
MESSAGES = [path for path in test_cases.CASES if "\nmessages:" in path.read_text(encoding="utf-8")]
FILES = [path for path in test_cases.CASES if hasattr(ALL[path.parent.name], "cut") and path not in MESSAGES]
FACES = (
    codec.Checks,
    codec.FileCodec,
    codec.Settles,
    codec.RowCodec,
    codec.OrderedFiles,
    codec.PlacedByName,
    codec.Accompanied,
    codec.ArrowFileCodec,
    codec.MessageCodec,
    codec.LooksUp,
    codec.Brings,
    codec.DefinitionFiles,
    codec.Merges,
    codec.DescribesSources,
    codec.Annotates,
    codec.AnnotatesHeaders,
    codec.Counted,
    codec.KnowsHalves,
    codec.Ignores,
    codec.Purged,
    codec.Reloads,
    codec.StartsAnywhere,
    codec.SaysPlaces,
    codec.Previews,
    codec.AnnotatesRows,
    codec.KnowsLines,
)
HELPERS = (codec.FastMessages, codec.MessageLoads)


def offered(*faces) -> dict[str, object]:
    """What faces declare: functions and constants by name."""
    found: dict[str, object] = {}
    for face in faces:
        for one in reversed(face.__mro__):
            found |= getattr(one, "__annotations__", {}) | {
                name: value
                for name, value in vars(one).items()
                if inspect.isfunction(value) and not name.startswith("_")
            }
    return found


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


OF_SOME = (
    "join",
    "IDENTITY",
    "OTHER_EVENTS",
    "HAS_CHECKPOINTS",
    "TELLS_FIRST",
    "WHOLE_BY",
    "place_of",
)  # offered by codecs that have what they are for


@pytest.mark.parametrize("name", ALL)
def test_a_codec_offers_what_a_face_declares_and_with_its_parameters(name):
    module = ALL[name]
    faces = [
        face
        for face, has in (
            (codec.FileCodec, "cut"),
            (codec.Settles, "open_options"),
            (codec.RowCodec, "decode_rows"),
            (codec.Counted, "num_records"),
            (codec.KnowsHalves, "half"),
            (codec.Ignores, "ignored"),
            (codec.Purged, "purged_table"),
            (codec.Reloads, "load_now"),
            (codec.OrderedFiles, "follow"),
            (codec.Accompanied, "companions"),
            (codec.ArrowFileCodec, "COLUMNS"),
            (codec.MessageCodec, "decode_message"),
            (codec.LooksUp, "lookups"),
            (codec.Brings, "brought"),
            (codec.DefinitionFiles, "definitions_of"),
            (codec.Merges, "merged"),
            (codec.DescribesSources, "settings_of"),
            (codec.Annotates, "annotate"),
            (codec.AnnotatesHeaders, "annotate_header"),
            (codec.AnnotatesRows, "annotate_rows"),
            (codec.KnowsLines, "line_notes"),
            (codec.Previews, "preview"),
            (codec.StartsAnywhere, "find_record"),
            (codec.SaysPlaces, "says"),
        )
        if hasattr(module, has)
    ] + [codec.EndedByNext] * getattr(module, "ENDS_WITH_NEXT", False)
    assert faces and module.OPTIONS()
    for word, declared in offered(*faces).items():
        is_of_all = word not in OF_SOME and (word != "refresh_row" or module.LOADS)
        if not is_of_all and not hasattr(module, word):
            continue
        assert hasattr(module, word), f"{name} has no {word}"
        if inspect.isfunction(declared):
            assert (
                list(inspect.signature(getattr(module, word)).parameters)
                == list(inspect.signature(declared).parameters)[1:]
            ), f"{name}.{word}"
    for helper, face in (
        (getattr(module, "FAST", None), codec.FastLoads if getattr(module, "LOADS", None) else codec.FastMessages),
        (getattr(module, "LOADS", None), codec.MessageLoads),
    ):
        for word, declared in offered(face).items() if helper else ():
            assert hasattr(helper, word), f"{name}: {word}"
            if inspect.isfunction(declared):
                expected = list(inspect.signature(declared).parameters)[1:]
                given = list(inspect.signature(getattr(helper, word)).parameters)
                assert given[: len(expected)] == expected, f"{name}: {word}"


@pytest.mark.parametrize("nothing", [None, False, ()])
def test_what_a_codec_says_it_has_not_got_is_not_offered(monkeypatch, nothing):
    mute = SimpleNamespace(**vars(toy) | dict.fromkeys(["cut", "join", "TELLS_FIRST", "OTHER_EVENTS"], nothing))
    monkeypatch.setitem(CODECS, "toy", mute)
    source = Source(name="s", codec="toy", **{"from": "landing"})
    project = Project(root=Path(), lakehouse="", sources={"s": source}, tables={})
    assert transports_of(mute) == transports_of(toy)[1:] and codec.offers(toy, "cut") and not codec.offers(mute, "join")
    assert transactions.tells_first(project, 1) is None and not transactions.may_have_others(project)


def test_nothing_else_is_asked_of_a_codec():
    """Whatever is called `codec` or looked up in CODECS has the attributes of the contract alone."""
    known = set(offered(*FACES))
    for folder in ("bronze", "silver", "gold", "publish", "commands"):
        for path in (PACKAGE / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                of = (
                    node.value
                    if isinstance(node, ast.Attribute)
                    else node.args[0]
                    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("offers", "hasattr", "getattr")
                    else None
                )
                is_codec = (
                    isinstance(of, ast.Name)
                    and of.id == "codec"
                    or isinstance(of, ast.Subscript)
                    and getattr(of.value, "id", "") == "CODECS"
                )
                assert not is_codec or getattr(getattr(node, "func", None), "id", "") != "hasattr", (
                    f"{path.name}, line {node.lineno}: `offers` tells what a codec offers, None and False too"
                )
                word = "" if not is_codec else node.attr if isinstance(node, ast.Attribute) else node.args[1].value
                assert not is_codec or word in known, (
                    f"{path.name}, line {node.lineno}: codec.{word} is not in the contract"
                )


class Answers:
    """A caller that puts each question once. Files that are cut at many places ask most of them again, and a codec's
    answer depends on what it is given alone: test_a_file_says_the_same_in_blocks_of_any_length puts all of them.
    """

    def __init__(self):
        self.known = {}

    def __call__(self, question, *given):
        key = question, *map(self.key, given)
        if key not in self.known:
            self.known[key] = question(*given)
        return self.known[key]

    @staticmethod
    def key(one):
        """A value by what it says; sources and contracts, of which a case has one each, by their identity."""
        if isinstance(one, dict):
            return json.dumps(one, default=id)
        return one if isinstance(one, (bytes, str, int, type(None))) else id(one)


def put(question, *given):
    return question(*given)


def read_twice(data: bytes, context: dict, num_records: int, module, source, tables) -> tuple:
    """The parts, rows of silver and changes of a block, whose account balances. A second answer is the same."""
    answers = []
    for data_, context_ in ((data, context), (bytes(bytearray(data)), json.loads(json.dumps(context)))):
        found = codec.decode_block(module, data_, context_, source, tables)
        rows = decoded.rows_of(found, source, tables, "unit", data, None, num_records)
        answers.append((found.parts, rows, codec.change_rows(module, found, context, tables)))
    assert answers[0][1:] == answers[1][1:], "a second answer differs"
    return answers[0]


def whole(case: dict, data: bytes, len_block: int, ends: Iterable[int] = (), ask=put) -> list[dict]:
    """All rows of a file with their place in it, cut into blocks of about a length, delivered in pieces that end there;
    each unit's account balances. Parts are what they become together. `rest` says in which piece a reject is what
    cannot be framed. In: what puts questions to the codec.
    """
    module, source, tables = case["codec"], case["source"], case["tables"]
    framed = {
        name: partial(ask, vars(module)[name]) for name in {"open_file", "open_options", "cut"} & vars(module).keys()
    }
    asked = SimpleNamespace(**vars(module) | framed)
    rows, context, start = [], None, 0
    waiting: dict[str, list[Waiting]] = {}
    for piece, end in enumerate([*ends, len(data)]):
        stream, is_last = io.BytesIO(data[start:end]), end == len(data)
        framing.LEN_BLOCK, kept = len_block, framing.LEN_BLOCK
        try:
            cut = list(framing.cut_file(source, tables, case["path"], stream, start, context, is_last, codec=asked))
        finally:
            framing.LEN_BLOCK = kept
        for block, context in cut:  # noqa: B007  the last one is where the next step begins
            assert block.file_offset == start
            start += len(block.data)
            parts, read, changes = ask(read_twice, block.data, block.context, block.num_records, module, source, tables)
            rows += [
                placed(row, block.file_offset) | ({"rest": piece} if "problem" in block.context else {})
                for row in (*changes, *(r for r in read if r["result"] not in ("change", "account", "part")))
            ]
            for part in parts:
                raw = block.data[part.unit_offset : part.unit_offset + part.unit_length]
                waiting.setdefault(part.key, []).append(Waiting(str(block.file_offset), part, raw, block.context))
    assert start == len(data), "bytes are left"
    for key, parts in waiting.items():
        became = module.join(key, parts, source, tables)
        rows += [placed(row, int(row["unit_id"])) for row in became.changes]
        rows += [placed(decoded.reject_row(reject), int(unit)) for unit, reject in became.rejects]
        rows += [placed(one.part._asdict() | {"result": "part"}, int(one.unit_id)) for one in became.waiting]
    known = {row["change_seq"] for row in rows if "operation" in row}
    further = {row["change_seq"] for row in rows if is_further(row, known)}
    rows = [row for row in rows if not is_further(row, known)] + [{"at": -1, "further": seq} for seq in further]
    return sorted(rows, key=lambda row: (row["at"], str(row.get("result")), row.get("further", "")))


def placed(row: dict, file_offset: int) -> dict:
    """A row with its place in the file instead of that in its unit, and without what is null."""
    said = {
        name: value for name, value in row.items() if name not in ("context", "unit_id", "source") and value is not None
    }
    return said | {"at": file_offset + row["unit_offset"], "unit_offset": None, "byte_offset": None}


def is_further(row: dict, known: set[str]) -> bool:
    """Is a row a further part of a change that stands? Which one stands of several that differ is told by nothing."""
    is_part = row.get("result") == "part" or row.get("kind") == "conflicting_duplicate"
    return is_part and row.get("change_seq") in known


def assert_same(found: list[dict], expected: list[dict], what="") -> None:
    """Are two answers the same? Of changes with further parts, which ones became the change is told by nothing."""
    further = {row["further"] for row in (*found, *expected) if "further" in row}
    one, other = (
        [row for row in rows if not {row.get("further"), row.get("change_seq")} & further] for rows in (found, expected)
    )
    assert one == other, what


def joined(rows: list[dict]) -> list[dict]:
    """Rows of a file; the rejects of a rest that cannot be framed, one for each piece that it came in, are one."""
    found: list[dict] = []
    for row in rows:
        last = found[-1] if found else {}
        if "rest" in row and last.get("rest", row["rest"]) < row["rest"]:
            assert row["at"] == last["at"] + last["unit_length"]
            both = {"raw": last["raw"] + row["raw"], "unit_length": last["unit_length"] + row["unit_length"]}
            assert row | both | {"at": last["at"]} == last | both | {"rest": row["rest"]}
            found[-1] = last | both | {"rest": row["rest"]}
        else:
            found.append(row)
    return [{name: value for name, value in row.items() if name != "rest"} for row in found]


@pytest.mark.rounds
@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_says_the_same_in_whatever_pieces_it_comes(path):
    """In two, cut at any byte, and in many: byte by byte, of a long one some bytes at a time."""
    case = test_cases.load(path)
    data, ask = case["data"], Answers()
    num_cuts, num_pieces = (40, 200) if ALL_ROUNDS else (5, 20)
    expected = joined(whole(case, data, 1 << 20)) if data else []
    for end in test_cases.some(range(0, len(data), max(1, len(data) // 40)), num_cuts, path):
        assert_same(joined(whole(case, data, 1 << 20, [end], ask)), expected, f"cut at {end}")
    if data:
        pieces = range(0, len(data), 1 + len(data) // num_pieces)
        assert_same(joined(whole(case, data, 1 << 20, pieces, ask)), expected, "in many pieces")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_says_the_same_in_blocks_of_any_length(path):
    case = test_cases.load(path)
    data = case["data"]
    opened = case["codec"].open_file(case["path"], data, True, case["source"], case["tables"]) if data else None
    if not data or isinstance(opened, Reject):
        assert not data or [row["kind"] for row in whole(case, data, 1 << 20)] == [opened.kind]
        return
    expected = whole(case, data, 1 << 20)
    for len_block in (1, 40, 200):
        assert_same(whole(case, data, len_block), expected)


@pytest.mark.parametrize("path", MESSAGES, ids=name_of)
def test_a_message_says_the_same_twice_and_each_is_accounted_for(path):
    case = test_cases.load(path)
    module, source, tables = case["codec"], case["source"], case["tables"]
    for written in case["messages"]:
        message = test_cases._message(written)
        data = message["value"] or b""
        of_unit = source, tables, message["unit_id"], data, None, None
        first, second = (
            decoded.rows_of(module.decode_message(dict(message), source, tables, []), *of_unit) for _ in range(2)
        )
        assert first == second


def test_a_codec_that_loses_a_record_or_a_byte_is_named_with_its_unit_and_the_rule():
    found, source = codec.Decoded([], num_control=1, bytes_framing=7), test_cases.load(FILES[0])["source"]
    with pytest.raises(
        AccountingError,
        match="codec .*, unit u: 2 records were framed, 1 are changes, rejects, parts or control records. Each "
        "record is exactly one",
    ):
        decoded.rows_of(found, source, {}, "u", b"1234567", None, 2)
    with pytest.raises(
        AccountingError, match="codec .*, unit u: it has 8 bytes, 7 are those of changes, rejects, parts or framing"
    ):
        decoded.rows_of(found, source, {}, "u", b"12345678", None, 1)
    columns = [
        {"name": "ID", "type": "int"},
        {"name": "NAME", "type": "string", "nullable": False},
        {"name": "PRICE", "type": "decimal(5,2)"},
        {"name": "AT", "type": "timestamp"},
    ]
    tables = {"S.T": Table(table="S.T", name="t", key=["ID"], columns=columns)}
    row = {
        "source_schema": "S",
        "source_table": "T",
        "table_version": 1,
        "change_seq": "1".zfill(35),
        "operation": "INSERT",
        "after": {"ID": 1},
        "unit_offset": 0,
        "unit_length": 1,
    }
    without = {name: value for name, value in row.items() if name != "change_seq"}
    for broken, why in (
        (row | {"colour": "red"}, "an unknown column colour"),
        (row | {"operation": "MERGE"}, "an unknown operation MERGE"),
        (without, "no change_seq"),
        (row | {"header": "E"}, "a header that is no object: 'E'"),
        (row | {"change_seq": "1"}, "a change_seq that is not 35 digits: '1'"),
        (row | {"operation": "UPDATE", "after": None, "before": {"ID": 1}}, "no after-image, and is UPDATE"),
        (row | {"operation": "UPSERT", "after": None}, "no after-image, and is UPSERT"),
        (row | {"operation": "DELETE", "after": None}, "no before or after-image, and is DELETE"),
        (row | {"source_table": "U"}, "a table or version that no contract has: S.U version 1"),
        (row | {"after": {"COLOUR": "red"}}, "a member COLOUR of its after-image that S.T version 1 does not have"),
        (row | {"after": {"ID": "x"}}, "'x' in ID, which is int"),
        (row | {"after": {"ID": 1 << 31}}, "2147483648 in ID, which is int"),
        (row | {"after": {"ID": True}}, "True in ID, which is int"),
        (row | {"after": {"ID": 1, "PRICE": Decimal("1.505")}}, r"Decimal\('1.505'\) in PRICE, which is decimal"),
        (row | {"after": {"ID": 1, "NAME": None}}, "null in NAME, which takes none"),
        (row | {"after": {"NAME": "a"}}, "no value of ID, which is of the key"),
    ):
        with pytest.raises(AccountingError, match=f"codec .*, unit u: a change has {why}"):
            decoded.rows_of(codec.Decoded([broken]), source, tables, "u", b"1", None, 1)
    whole = row | {"after": {"ID": 1, "NAME": "a", "PRICE": Decimal("1.50"), "AT": datetime.datetime(2026, 1, 5)}}
    assert len(decoded.rows_of(codec.Decoded([whole]), source, tables, "u", b"1", None, 1)) == 2
    reject = Reject("no_kind", 0, 1, 0, "one", "none", b"1")
    with pytest.raises(AccountingError, match="codec .*, unit u: a reject is of the unknown kind no_kind"):
        decoded.rows_of(codec.Decoded([], [reject]), source, {}, "u", b"1", None, 1)


@pytest.mark.parametrize(
    ("places", "raws", "why"),
    [
        ([(0, 2), (1, 2)], [b"12", b"23"], "a record of 2 bytes at 1 lies outside the unit or in another"),
        ([(-1, 2), (2, 2)], [b"", b"34"], "a record of 2 bytes at -1 lies outside"),
        ([(0, 3), (4, 1)], [b"123", b""], "a record of 1 bytes at 4 lies outside"),
        ([(0, 5), (4, -1)], [b"1234", b""], "a record of 5 bytes at 0 lies outside"),
        ([(0, 2), (2, 2)], [b"12", b"99"], "the bytes of the reject at 2 are not those of its record"),
    ],
)
def test_a_record_that_has_not_bytes_of_its_own_is_named(places, raws, why):
    rejects = [Reject("truncated", at, size, at, "", "", raw) for (at, size), raw in zip(places, raws, strict=True)]
    with pytest.raises(AccountingError, match=f"codec toy, unit u: {why}"):
        unit_rules.check(codec.Decoded([], rejects), "toy", "u", b"1234", 2, False)


def test_a_definition_that_contradicts_itself_is_named():
    definition = codec.Definition("S", "T", [{"name": "ID", "type": "int", "nullable": True}], ["NO"], "1", 0)
    with pytest.raises(AccountingError, match=r"a definition of S.T has columns \['ID'\] and key \['NO'\]"):
        unit_rules.check(codec.Decoded([], definitions=[definition]), "toy", "u", b"", 0, False)


def test_a_message_may_pack_several_records():
    rejects = [Reject("truncated", at, 2, at, "", "", raw) for at, raw in ((0, b"12"), (2, b"34"))]
    assert unit_rules.check(codec.Decoded([], rejects), "toy", "u", b"1234", None, False) == 1
    with pytest.raises(AccountingError, match="unit u: 1 records were framed, 0 are"):
        unit_rules.check(codec.Decoded([], bytes_framing=4), "toy", "u", b"1234", None, False)


def encoded_linkexpress(rows: list[dict]) -> tuple[str, bytes]:
    records = [("insert", 1, row) for row in rows]
    data = linkexpress.encode_file(records, True, "big", "cp932", {1: projects.LAYOUT})
    return "20260105031500_000012.lxg", data


def encoded_linkexpress_table(rows: list[dict]) -> tuple[str, bytes]:
    records = [("insert", row) for row in rows]
    data = linkexpress.encode_table_file(records, "journal", True, "big", "cp932", projects.LAYOUT)
    return "ITEMS_20260105031500_000012.dat", data


def encoded_linkexpress_journal(rows: list[dict]) -> tuple[str, bytes]:
    journals = [linkexpress_journal.Change("ITEMS", "insert", row) for row in rows]
    data = linkexpress_journal.encode_file(journals, {"ITEMS": projects.LAYOUT}, linkexpress_journal.How())
    return "items_20260105031500_000012.dat", data


def encoded_toy(rows: list[dict]) -> tuple[str, bytes]:
    columns = [[c["name"], c["type"]] for c in projects.ITEMS["columns"]]
    plain = [[row["ITEM_ID"], row["NAME"], row["PRICE"] and str(row["PRICE"])] for row in rows]
    changes = [("insert", "DEPOT.ITEMS", row) for row in plain]
    return "1.toy", encode.file(1, ("columns", "DEPOT.ITEMS", columns, ["ITEM_ID"]), *changes)


def encoded_qlik(rows: list[dict]) -> list[bytes]:
    columns = [c["name"] for c in projects.ITEMS["columns"]]
    return [
        qlik.value({"operation": "INSERT", "change_seq": f"{n:035d}", "before": None, "after": row}, columns)
        for n, row in enumerate(rows)
    ]


def trail_of(rows: list[dict]) -> goldengate_trail.Trail:
    items = goldengate_columns.Table(
        "DEPOT.ITEMS",
        (
            goldengate_columns.integer("ITEM_ID", 132, is_key=True, is_nullable=False),
            goldengate_columns.varchar("NAME", 40),
            goldengate_columns.number("PRICE", 2),
        ),
    )
    trail = goldengate_trail.Trail([items], byte_order="little", name_form="index")
    for row in rows:
        trail.insert("DEPOT.ITEMS", row, io_time=datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC))
    return trail


def encoded_trail(rows: list[dict]) -> tuple[str, bytes]:
    return trail_of(rows).files[0]


def encoded_logdump(rows: list[dict]) -> tuple[str, bytes]:
    records = trail_of(rows).records
    printed = goldengate_logdump.logdump(records, goldengate_logdump.Style(reclen=1000))
    return "session.txt", f"Current LogTrail is /ogg/dirdat/ra000000000\n{printed}\nLogdump 2 >".encode()


TRAIL_TYPES = {"ITEM_ID": "INT32", "NAME": "ASCII_V(40)", "PRICE": "INT64(11,2)"}


def encoded_goldengate_json(rows: list[dict]) -> list[bytes]:
    changes = [{"operation": "INSERT", "seqno": 1, "rba": 1000 + 100 * n, "after": row} for n, row in enumerate(rows)]
    shapes = goldengate_json.SHAPES * len(rows)
    return [goldengate_json.value(change, "DEPOT.ITEMS", shape) for change, shape in zip(changes, shapes)]


def _inserts(rows: list[dict]) -> list[dict]:
    return [{"operation": "INSERT", "seqno": 1, "rba": 1000 + 100 * n, "after": row} for n, row in enumerate(rows)]


def encoded_goldengate_avro(rows: list[dict]) -> list[dict]:
    columns = {"ITEM_ID": "long", "NAME": "string", "PRICE": "string"}
    as_text = [row | {"PRICE": row["PRICE"] if row["PRICE"] is None else str(row["PRICE"])} for row in rows]
    schema = goldengate_forms.avro_schema("DEPOT.ITEMS", columns, has_flags=True)
    values = [goldengate_forms.avro(change, "DEPOT.ITEMS", columns, has_flags=True) for change in _inserts(as_text)]
    return [{"value": value, "lookups": {"DEPOT.ITEMS": schema}} for value in values]


def encoded_goldengate_delimited(rows: list[dict]) -> list[bytes]:
    columns = [c["name"] for c in projects.ITEMS["columns"]]
    lines = [goldengate_forms.delimited(change, "DEPOT.ITEMS", columns, ";") for change in _inserts(rows)]
    return ["".join(lines).encode()]


def encoded_goldengate_xml(rows: list[dict]) -> list[bytes]:
    columns = [c["name"] for c in projects.ITEMS["columns"]]
    return ["\n".join(goldengate_forms.xml(change, "DEPOT.ITEMS", columns) for change in _inserts(rows)).encode()]


def encoded_goldengate_text(rows: list[dict]) -> tuple[str, bytes]:
    changes = _inserts(rows)
    transactions = [changes[n : n + 3] for n in range(0, len(changes), 3)]
    return "aa000001", goldengate_forms.extract(transactions, "DEPOT.ITEMS").encode()


ITEM_COLUMNS = (
    qlik_change_table.Column("ITEM_ID", "INT4", key=1),
    qlik_change_table.Column("NAME"),
    qlik_change_table.Column("PRICE", "NUMERIC", precision=7, scale=2),
)


def encoded_qlik_avro(rows: list[dict]) -> list[dict]:
    changes = [{"operation": "INSERT", "change_seq": f"{n:035d}", "after": row} for n, row in enumerate(rows)]
    values = [qlik_avro.datum(change, list(ITEM_COLUMNS)) for change in changes]
    schema = qlik_avro.data_schema(list(ITEM_COLUMNS))
    forms = [
        lambda value: {"value": qlik_avro.envelope("DT", value, schema=schema)},
        lambda value: {"value": qlik_avro.registered(7, value), "lookups": {"7": schema}},
    ]
    return [forms[n % 2](value) for n, value in enumerate(values)]


def encoded_qlik_change_table(rows: list[dict]) -> tuple[str, bytes]:
    table = qlik_change_table.Table("DEPOT", "ITEMS", ITEM_COLUMNS)
    changes = [{"operation": "INSERT", "change_seq": f"{n:035d}", "after": row} for n, row in enumerate(rows)]
    written = qlik_change_table.rows(table, changes)
    text = qlik_change_table.delimited(table, written, options=qlik_change_table.Options(head="names"))
    return "DEPOT.ITEMS__ct/20260102-030405000.csv", text


REQUIRED = {"source_tz": "Asia/Tokyo", "charset": "cp932"}
ENCODERS = {  # codec -> what its source says, its encoder: a file's name and bytes, or the bytes or parts of messages
    "goldengate_trail": ({}, encoded_trail),
    "goldengate_logdump": ({}, encoded_logdump),
    "linkexpress_group": ({"tables": {"1": "DEPOT.ITEMS"}, "options": projects.DEPOT["options"]}, encoded_linkexpress),
    "linkexpress_table": ({"options": REQUIRED | {"difftype": "journal"}}, encoded_linkexpress_table),
    "linkexpress_journal": ({"options": REQUIRED}, encoded_linkexpress_journal),
    "toy": ({}, encoded_toy),
    "qlik_json": ({"tables": {"items": "DEPOT.ITEMS"}}, encoded_qlik),
    "qlik_avro": ({"tables": {"items": "DEPOT.ITEMS"}}, encoded_qlik_avro),
    "qlik_change_table": ({"options": {"quoted_null": "text"}}, encoded_qlik_change_table),
    "goldengate_json": ({"options": {"flatten_delimiter": "."}}, encoded_goldengate_json),
    "goldengate_avro": ({}, encoded_goldengate_avro),
    "goldengate_delimited": ({"options": {"field_delimiter": ";", "quote": '"'}}, encoded_goldengate_delimited),
    "goldengate_xml": ({}, encoded_goldengate_xml),
    "goldengate_text": ({}, encoded_goldengate_text),
}


def test_every_codec_has_an_encoder_that_knows_nothing_of_it():
    assert ENCODERS.keys() == ALL.keys()


@pytest.mark.parametrize("name", ENCODERS)
def test_what_was_encoded_is_decoded(name):
    """Rows with nulls, empty text, blanks at both ends, extremes of each type; random ones beside them."""
    rng, (fields, encoder) = random.Random(name), ENCODERS[name]
    rows = [
        {"ITEM_ID": 0, "NAME": "", "PRICE": None},
        {"ITEM_ID": -(1 << 31), "NAME": " a b ", "PRICE": Decimal("-99999.99")},
        {"ITEM_ID": (1 << 31) - 1, "NAME": "ｱ山", "PRICE": Decimal("99999.99")},
    ] + [
        {
            "ITEM_ID": rng.randrange(1 << 31),
            "NAME": "".join(rng.choices("aZ 9山ｱ", k=rng.randrange(5))),
            "PRICE": rng.choice([None, Decimal(rng.randrange(-(10**7), 10**7)).scaleb(-2)]),
        }
        for _ in range(200)
    ]
    source = Source(name="s", codec=name, **{"from": "nowhere"} | fields)
    items = projects.ITEMS
    if name in ("goldengate_trail", "goldengate_logdump"):
        typed = [
            c | {"type": c["type"].replace("(7,", "(19,"), "source_type": TRAIL_TYPES[c["name"]]}
            for c in items["columns"]
        ]
        items = items | {"columns": typed}
    tables = {"DEPOT.ITEMS": Table(**items)}
    module, data = ALL[name], encoder(rows)
    if isinstance(data, tuple):
        path, stream = data[0], io.BytesIO(data[1])
        blocks = [b for b, _ in framing.cut_file(source, tables, path, stream, 0, None, True, codec=module)]
        results = [(codec.decode_block(module, b.data, b.context, source, tables), b.context) for b in blocks]
        changes = [c for found, context in results for c in codec.change_rows(module, found, context, tables)]
        rejects = [reject for found, _ in results for reject in found.rejects]
    else:
        topic = [value if isinstance(value, dict) else {"value": value} for value in data]
        messages = [test_cases._message({"topic": "items", "offset": n} | told) for n, told in enumerate(topic)]
        results = [module.decode_message(message, source, tables, []) for message in messages]
        changes = [change for found in results for change in found.changes]
        rejects = [reject for found in results for reject in found.rejects]
    assert rejects == []
    exact = {"ITEM_ID": int, "NAME": str, "PRICE": lambda value: Decimal(str(value))}  # where a form has texts alone
    found = [{k: v if v is None else exact[k](v) for k, v in c["after"].items()} for c in changes]
    assert found == rows


@pytest.mark.parametrize("wrong", ["a gap between blocks", "bytes that no block holds"])
def test_a_cut_that_leaves_bytes_out_is_a_problem_of_the_file_and_loses_none(wrong):
    case = test_cases.load(next(path for path in FILES if path.parent.name == "toy" and path.stem.startswith("ok_")))
    data, module = case["data"], case["codec"]

    class Broken:
        open_file = staticmethod(module.open_file)

        @staticmethod
        def cut(data, *given):
            cut = module.cut(data, *given)
            first = cut.blocks[0]._replace(length=cut.blocks[0].length - 1)
            blocks = [first, *cut.blocks[1:]] if wrong.startswith("a gap") else cut.blocks[:-1]
            return cut._replace(blocks=blocks)

    [(block, context)] = framing.cut_file(
        case["source"], case["tables"], case["path"], io.BytesIO(data), 0, None, True, codec=Broken
    )
    assert block.data == data and context["problem"]["kind"] == "decoder_failed"
    assert "cut: blocks end at" in context["problem"]["found"]
