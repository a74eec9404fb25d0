"""Logdump's text: what it shows of a trail is what the trail itself is read as."""

import datetime
import random

import pytest

from inlet.codecs.goldengate import logdump
from inlet.source import Source
from tests import goldengate_streams as streams
from tests.encode import goldengate_logdump as encode
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


@pytest.mark.parametrize("seed", range(24))
def test_text_of_a_random_trail_says_what_the_trail_says(seed):
    rng, style = random.Random(seed), STYLES[seed % len(STYLES)]
    sent = streams.random_trail(rng, 8, definitions="first use")  # an absent time is not public as text
    tables = {name: contract_of(table) for name, table in sent.trail.tables.items()}
    sign, minutes = "-" if style.zone.days < 0 else "+", abs(style.zone) // datetime.timedelta(minutes=1)
    source = text_source(zone=f"{sign}{minutes // 60:02d}:{minutes % 60:02d}")
    text = session(sent, style).replace("\n", rng.choice(["\n", "\r\n"])).encode()
    deliveries = random_deliveries(rng) if seed % 2 else None
    shown = read_files([("session.txt", text)], source, tables, deliveries, logdump)
    trail = read_files(sent.trail.files, source_of(), tables)
    assert [str(reject) for reject in shown["rejects"]] == []
    assert not shown["undecided"]
    expected = sorted(trail["changes"], key=lambda row: row["change_seq"])
    for row in [] if style.header_token else expected:  # what no line shows without HEADERTOKEN
        for header in [row["header"], *row["header"].get("others", [])]:
            del header["info"]
    changes = sorted(shown["changes"], key=lambda row: row["change_seq"])
    assert [{k: v for k, v in row.items() if k not in OF_TEXT} for row in expected] == [
        {k: v for k, v in row.items() if k not in OF_TEXT} for row in changes
    ]
