"""Logdump's text: what it shows of a trail is what the trail itself is read as."""

import datetime
import random
import textwrap

import pytest

from inlet.codecs.goldengate.logdump import files as logdump
from inlet.codecs.goldengate.logdump.entry import Rows
from inlet.codecs.goldengate.logdump.lines import Scan
from inlet.source import Source
from tests import goldengate_streams as streams
from tests.encode import goldengate_columns as columns
from tests.encode import goldengate_logdump as encode
from tests.encode.goldengate_trail import INSERT, Trail
from tests.goldengate import contract_of, random_deliveries, read_files, source_of

STYLES = [
    encode.Style(reclen=10_000),
    encode.Style(reclen=10_000, header_token=False, prompt="Logdump {} >n", zone=datetime.timedelta(hours=9)),
    encode.Style(19, reclen=10_000, ggs_token="on", separator=":"),
    encode.Style(19, False, "on", 10_000, datetime.timedelta(hours=-3, minutes=-30), ":", "Logdump {} >n\n"),
]
OF_TEXT = {"unit_offset", "unit_length", "path", "rba"}


def text_source(**options) -> Source:
    return Source(
        **{"name": "text", "codec": "goldengate_logdump", "from": "landing", "options": {"charset": "utf_8"} | options}
    )


def session(sent: streams.Sent, style: encode.Style) -> str:
    """What a session shows that prints each file of a trail."""
    shown = ["Oracle GoldenGate Log File Dump Utility", "Version 21.3.0.0.0", ""]
    for seqno in sorted({record.seqno for record in sent.trail.records}):
        shown += [f"Logdump {seqno} >open ./dirdat/ra{seqno:09d}", f"Current LogTrail is /ogg/dirdat/ra{seqno:09d}"]
        shown.append(encode.logdump([r for r in sent.trail.records if r.seqno == seqno], style))
    return "\n".join([*shown, "Logdump 99 >exit", ""])


def read_text(
    sent: streams.Sent, style: encode.Style, tables: dict, line_end: str = "\n", deliveries=None, **options
) -> dict:
    sign, minutes = "-" if style.zone.days < 0 else "+", abs(style.zone) // datetime.timedelta(minutes=1)
    source = text_source(zone=f"{sign}{minutes // 60:02d}:{minutes % 60:02d}", **options)
    text = session(sent, style).replace("\n", line_end).encode()
    return read_files([("session.txt", text)], source, tables, deliveries, logdump)


def compared(shown: dict, trail: dict, style: encode.Style, not_printed: frozenset | set = frozenset()) -> None:
    """All of a change is the same but for its place in its unit, and what no line of its style shows."""
    assert [str(reject) for reject in [*shown["rejects"], *trail["rejects"]]] == []
    assert not shown["undecided"]
    found = [sorted(one["changes"], key=lambda row: row["change_seq"]) for one in (trail, shown)]
    for row in found[0]:
        for header in [row["header"], *row["header"].get("others", [])]:
            header["tokens"] = {k: v for k, v in header.get("tokens", {}).items() if k not in not_printed}
            if not style.header_token:
                del header["info"]
    for row in found[1]:
        for header in [row["header"], *row["header"].get("others", [])]:
            header.setdefault("tokens", {})
    expected, changes = ([{k: v for k, v in row.items() if k not in OF_TEXT} for row in rows] for rows in found)
    assert expected == changes
    assert expected


@pytest.mark.parametrize("layout", ["compressed", "full"])
@pytest.mark.parametrize("seed", range(24))
def test_text_of_a_random_trail_says_what_the_trail_says(seed, layout):
    rng, style = random.Random(seed), STYLES[seed % len(STYLES)]
    sent = streams.random_trail(rng, 8, definitions="first use", layout=layout)  # an absent time is not public as text
    tables = {name: contract_of(table) for name, table in sent.trail.tables.items()}
    deliveries = random_deliveries(rng) if seed % 2 else None
    options = {"byte_order": sent.trail.byte_order} if layout == "full" else {}  # which such an image does not tell
    shown = read_text(sent, style, tables, rng.choice(["\n", "\r\n"]), deliveries, **options)
    compared(shown, read_files(sent.trail.files, source_of(), tables), style)


AT = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
ITEMS = columns.Table(
    "DEPOT.ITEMS", (columns.integer("ID", is_key=True, is_nullable=False), columns.varchar("NAME", 9))
)
TABLES = {"DEPOT.ITEMS": contract_of(ITEMS)}


def items(*ids: int) -> list:
    """An insert each, in a transaction and a second of its own."""
    trail = Trail([ITEMS])
    for n in ids:
        said = {"io_time": AT + datetime.timedelta(seconds=n), "tokens": [("6", f"1.2.{n}")]}
        trail.insert("DEPOT.ITEMS", {"ID": n, "NAME": "ä"}, **said)
    return trail.records


def found_in(text: str, encoding="utf-8", **options) -> dict:
    return read_files([("a.txt", text.encode(encoding))], text_source(**options), TABLES, codec=logdump)


@pytest.mark.parametrize("style", STYLES, ids=range(len(STYLES)))
def test_records_of_every_form_say_what_the_trail_says(style):
    """Segments, LOB chunks, upserts, unified updates of both widths, user tokens, restarts and DDL."""
    trail, old, new = Trail([ITEMS], "little", "index"), {"ID": 1, "NAME": "a"}, {"ID": 1, "NAME": "b"}
    area, said = trail.image("DEPOT.ITEMS", old), {"io_time": AT, "tokens": [("L", "7"), ("6", "1.2.3")]}
    trail.delete("DEPOT.ITEMS", old, **said)  # tells the byte order; a segment alone may not
    trail.segments("DEPOT.ITEMS", INSERT, [area[:9], area[9:]], **said)
    trail.insert("DEPOT.ITEMS", new, user=b"\1user", **said | {"trans_ind": 0})
    trail.lob_chunk("DEPOT.ITEMS", b"opaque", **said | {"trans_ind": 1})
    trail.unified_update("DEPOT.ITEMS", old, new, 2, **said | {"trans_ind": 1})
    trail.unified_update("DEPOT.ITEMS", new, old, 4, **said | {"trans_ind": 1})
    trail.upsert("DEPOT.ITEMS", new, **said | {"trans_ind": 2})
    trail.ddl([("B3", "DEPOT"), ("B4", "ITEMS"), ("B6", "DROP")], "drop table ITEMS", io_time=AT)
    trail.ddl([("B3", "DEPOT"), ("B4", "ITEMS"), ("B5", "TABLE"), ("B6", "TRUNCATE")], "truncate ITEMS", io_time=AT)
    trail.restart(False, io_time=AT)
    sent = streams.Sent(trail)
    compared(read_text(sent, style, TABLES), read_files(trail.files, source_of(), TABLES), style, {"user"})


def test_a_change_that_is_printed_again_has_its_place_again():
    """Behind a command like `pos 0` the largest time begins anew; other records keep their places too."""
    text = encode.logdump(items(1, 2, 3), encode.Style()) + "\n"
    once, twice = found_in(text, seqno=0), found_in(text + "Logdump 7 >pos 0\n" + text, seqno=0)
    seqs = [row["change_seq"] for row in once["changes"]]
    assert [row["change_seq"] for row in twice["changes"]] == 2 * seqs and len(seqs) == 3
    assert {row["stream_position"] for row in twice["changes"]} == {row["stream_position"] for row in once["changes"]}


@pytest.mark.parametrize("path, seqno", [("./dirdat/e1000000009", 9), ("dirdat\\12000009", 9), ("/ogg/ra000009", 9)])
def test_the_number_of_a_trail_file_is_behind_a_prefix_that_may_end_with_a_digit(path, seqno):
    text = f"Current LogTrail is {path}\n" + encode.logdump(items(1), encode.Style()) + "\n"
    (row,) = found_in(text)["changes"]
    assert row["stream_position"].split("/")[0] == str(seqno)


def test_a_last_record_that_may_go_on_is_not_decoded_unless_told():
    text = encode.logdump(items(1, 2), encode.Style(header_token=False))
    kept = [found_in(text, seqno=0, is_complete=is_complete) for is_complete in (False, True)]
    assert [[row["after"]["ID"] for row in found["changes"]] for found in kept] == [[1], [1, 2]]
    assert [[reject.kind for reject in found["rejects"]] for found in kept] == [["truncated"], []]


def test_a_byte_order_mark_is_framing_and_utf_16_is_told():
    text = encode.logdump(items(1), encode.Style()) + "\n"
    found = found_in(text, "utf-8-sig", seqno=0)
    assert ([row["after"] for row in found["changes"]], found["rejects"]) == ([{"ID": 1, "NAME": "ä"}], [])
    refused = logdump.open_file("a.txt", text.encode("utf-16"), True, text_source(), TABLES)
    assert (refused.kind, refused.found) == ("bad_frame", "UTF-16: FFFE")


def test_definitions_are_imported_from_a_text_whose_source_has_options():
    trail = Trail([ITEMS], name_form="index")
    trail.insert("DEPOT.ITEMS", {"ID": 1}, io_time=AT)
    text = encode.logdump(trail.records, encode.Style())
    [definition] = logdump.definitions_of(text.encode(), "a.txt", text_source(zone="+09:00", seqno=1))
    assert (definition.source_table, definition.key) == ("ITEMS", ["ID"])
    assert [column["source_type"] for column in definition.columns] == ["INT64(23) AT 0:12", "ASCII_V(9) AT 12:26"]


@pytest.mark.parametrize("operation, kinds", [("TRUNCATE", ["cut_by_reclen"]), ("ALTER", []), ("", ["cut_by_reclen"])])
def test_ddl_that_is_cut_is_rejected_where_it_may_be_a_truncate(operation, kinds):
    trail = Trail([ITEMS])
    items = [("B3", "DEPOT"), ("B4", "ITEMS"), ("B5", "TABLE"), *([("B6", operation)] if operation else [])]
    trail.ddl(items, f"{operation} table ITEMS" + 200 * " ", io_time=AT)
    found = found_in(encode.logdump(trail.records, encode.Style()) + "\n", seqno=0, byte_order="big", is_complete=True)
    assert [reject.kind for reject in found["rejects"]] == kinds
    assert [control.kind for _, _, control in found["controls"]] == (["ddl"] if not kinds else [])


def test_the_steps_of_a_text_whose_places_fall_grow_with_its_length(monkeypatch):
    steps = {}
    for num in (50, 100):
        text = "\n".join(encode.logdump([record], encode.Style()) for record in reversed(items(*range(num)))) + "\n"
        read, steps[num] = logdump.printed, 0

        def counted(*given, num=num, read=read):
            steps[num] += 1
            return read(*given)

        with monkeypatch.context() as patch:
            patch.setattr(logdump, "printed", counted)
            context = logdump.open_file("a.txt", b"text", True, text_source(seqno=0), TABLES)
            cut = logdump.cut(text.encode(), context, text_source(seqno=0), TABLES, 1 << 20, True)
        assert len(cut.blocks) > num - 1
    assert steps[100] <= 2 * steps[50] + 2


DETAIL, NO_TOKENS = encode.Style(header_token=False), encode.Style(header_token=False, ggs_token="")
WITHOUT_T = encode.Style(ggs_token="")  # and its record has no tokens


@pytest.mark.parametrize("line", ["Other text.", "", "GGS tokens:"])
def test_lines_after_a_record_do_not_count_its_bytes_again(monkeypatch, line):
    walked = []
    monkeypatch.setattr(Rows, "__iter__", lambda rows: walked.append(rows) or list.__iter__(rows), raising=False)
    Scan(encode.logdump(items(1), DETAIL) + "\n" + f"{line}\n" * 100, 0, 0, True)
    assert walked == []


@pytest.mark.parametrize("begin", ["Partition:", "Partition:" + " " * 9, "IO Time:", "Current LogTrail is a", "x "])
def test_a_long_line_is_read_in_steps_as_many_as_its_characters(begin):
    """A pattern that tries each place of a line with each other one takes hours for this one."""
    for line in (begin * 40_000, begin + " " * 400_000 + "x"):
        assert Scan(f"{line}\n", 0, 0, True).open is None


@pytest.mark.parametrize(
    "style, behind, is_decoded",
    [
        (encode.Style(), "", True),  # its tokens are as long as its line of T says
        (WITHOUT_T, "", True),  # there is no T, and the column lines show all of the image
        (DETAIL, "\n", False),
        (DETAIL, "\n\n", True),
        (DETAIL, "\n```", True),
        (DETAIL, "\n```\nThat is all.", True),
        (DETAIL, "\nThat is all.\n", True),
        (DETAIL, "\nThat is all.\nMore", True),
        (NO_TOKENS, "\n", False),
        (NO_TOKENS, "\n\n", False),  # GGS tokens follow such a line, if any do
        (NO_TOKENS, "\n\n~~~\n", True),
        (NO_TOKENS, "\n\nThat is all.\n", True),
    ],
)
def test_a_record_alone_is_whole_where_its_lines_or_what_follows_show_it(style, behind, is_decoded):
    trail = Trail([ITEMS])
    tokens = [] if style.ggs_token == "" else [("6", "1.2.3")]
    trail.insert("DEPOT.ITEMS", {"ID": 1, "NAME": "ä"}, io_time=AT, tokens=tokens)
    found = found_in("```\n" + encode.logdump(trail.records, style).rstrip() + behind, seqno=0)
    assert [row["after"] for row in found["changes"]] == [{"ID": 1, "NAME": "ä"}] * is_decoded
    assert [reject.kind for reject in found["rejects"]] == ["truncated"] * (not is_decoded)
    assert all("is_complete" in reject.expected for reject in found["rejects"])


def test_text_between_the_lines_of_a_record_ends_it_not():
    """As where a terminal's message stands amid them."""
    whole = encode.logdump(items(1, 2), DETAIL) + "\n\nend\n"
    amid = whole.replace("\nGGS tokens:", "\nYou have new mail\n\nGGS tokens:")
    rows = [found_in(text, seqno=0)["changes"] for text in (whole, amid)]
    assert [row["transaction_id"] for row in rows[0]] == ["1.2.1", "1.2.2"]
    assert [[row["header"] for row in shown] for shown in rows] == [[row["header"] for row in rows[0]]] * 2


IN_FRONT = ["> ", ">> ", "> > ", "# ", "10:11:12 ", "[2026-01-05 10:11:12.345] ", "2026-01-05T10:11:12.345Z | "]


@pytest.mark.parametrize("lead", IN_FRONT)
@pytest.mark.parametrize("style", [0, 3])
def test_what_a_mail_or_a_terminals_log_has_in_front_of_each_line_is_left_out(style, lead):
    text = "Current LogTrail is /ogg/ra000000007\n" + encode.logdump(items(1, 2, 3), STYLES[style]) + "\nLogdump 9 >\n"
    led = "Hello,\n" + "".join(lead + line for line in text.splitlines(keepends=True)) + "bye\n"
    plain, found = found_in(text), found_in(led)
    assert [reject for reject in found["rejects"]] == []
    left_out = {"unit_offset", "unit_length", "rba"}
    rows = [[{k: v for k, v in row.items() if k not in left_out} for row in one["changes"]] for one in (plain, found)]
    assert rows[0] == rows[1] and len(rows[0]) == 3


@pytest.mark.parametrize("lead", ["12: ", "ggs1| ", "[INFO] "])
def test_what_is_not_known_in_front_of_lines_is_told_and_stripped_by_a_person(lead):
    text = encode.logdump(items(1, 2), STYLES[0]) + "\n"
    found = found_in("".join(lead + line for line in text.splitlines(keepends=True)), seqno=0)
    assert found["changes"] == []
    assert len(found["rejects"]) >= 2
    expected = "lines as logdump prints them: strip what is in front of each"
    assert {reject.kind for reject in found["rejects"]} == {"bad_frame"}
    assert expected in [reject.expected for reject in found["rejects"]]
    assert sum(lead in reject.found for reject in found["rejects"]) >= 2


@pytest.mark.parametrize("style", [0, 1, 2])
def test_text_that_was_wrapped_is_read_where_its_lines_are_whole_and_rejects_say_so_elsewhere(style):
    text = encode.logdump(items(1, 2), STYLES[style]) + "\nLogdump 9 >\n"
    wrapped = {
        width: "".join("\n".join(textwrap.wrap(line, width)) + "\n" for line in text.splitlines()) for width in (72, 80)
    }
    assert [row["after"]["ID"] for row in found_in(wrapped[80], seqno=0)["changes"]] == [1, 2]
    rejects = found_in(wrapped[72], seqno=0)["rejects"]
    assert len(rejects) >= 2 and any("a line that was wrapped" in reject.expected for reject in rejects)
