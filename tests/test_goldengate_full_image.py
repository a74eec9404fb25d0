"""Full images of GoldenGate: which places of columns are read, as Defgen files show them, and which are not."""

import pytest

from inlet.codecs.goldengate.trail.full_image import record_length
from inlet.table import Table

SEEN = {  # Record length, and the columns in front of it [dump seen]
    350: ["INT64(23) AT 0:11", "ASCII_V(150) AT 11:166", "DATETIME(26) AT 166:195", "ASCII_V(150) AT 195:350"],
    108: ["ASCII_F(2) AT 0:6", "ASCII_V(40) AT 6:52", "FLOAT(50) AT 52:108"],
    34: ["INT64(8) AT 0:12", "DATETIME(19) AT 12:34"],
}


def table_of(*source_types: str) -> Table:
    columns = [{"name": f"C{n}", "type": "string", "source_type": type_} for n, type_ in enumerate(source_types)]
    return Table(table="S.T", name="t", columns=columns)


@pytest.mark.parametrize("length", SEEN)
def test_places_that_public_definition_files_show_are_read(length):
    assert record_length(table_of(*SEEN[length])) == length


@pytest.mark.parametrize(
    ("source_types", "kind", "expected", "found"),
    [
        (
            ["INT64(11) AT 0:12", "ASCII_V(9)"],
            "definition_missing",
            "`inlet import` of its Defgen file",
            "no place of C1",
        ),
        (["INT64(11) AT 0:8"], "unsupported_record", "S.T.C0 in 11 or 12 bytes", "INT64(11) AT 0:8"),  # no indicator
        (["INT64(11) AT 0:13"], "unsupported_record", "S.T.C0 in 11 or 12 bytes", "INT64(11) AT 0:13"),
        (["ASCII_V(9) AT 0:15"], "unsupported_record", "S.T.C0 in 14 bytes", "ASCII_V(9) AT 0:15"),
        (["ASCII_V(9) LOB AT 0:14"], "unsupported_record", "S.T.C0 without LOB", "ASCII_V(9) LOB AT 0:14"),
        (["INT64 AT 4:16"], "unsupported_record", "S.T.C0 at byte 0", "AT 4:16"),
        (["INT64 AT 0:12", "INT64 AT 0:12"], "unsupported_record", "S.T.C1 at byte 12", "AT 0:12"),
        (["INT64 AT 0:12", "INT64 AT 13:24"], "unsupported_record", "S.T.C1 at byte 12", "AT 13:24"),
    ],
)
def test_other_places_are_not_guessed(source_types, kind, expected, found):
    why = record_length(table_of(*source_types))
    assert (why[0], why[2]) == (kind, found) and expected in why[1]
