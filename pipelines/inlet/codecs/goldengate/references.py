"""References in logdump's text: tables that have the same definition as another one, which the trail does not repeat.

    Table Name: test.test_d (Ref TDR Index: 1)      the metadata record of a reference; no list of columns follows
    DDR/TDR index:   (001, 001)     AuditPos ...    the header of a definition says the index that it has
    Name: test.test_f  (TDR Index: 1)               a row says its table and the table's index

Facts       [dump seen] all three lines, logdump 21.3 of PostgreSQL. An index is of one trail file
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from inlet.codecs.goldengate.logdump.patterns import NAME, TRAIL

DEFINITION = re.compile(r"Definition for table\s+(.*?)\s*$")
INDEX = re.compile(r"DDR/TDR index:\s*\(\s*\d+\s*,\s*(\d+)\s*\)", re.ASCII)


class Reference(NamedTuple):
    """A table without a list of its own. `line` counts from 0; `others` are tables that the text gives its index."""

    line: int
    table: str
    tdr_index: int
    others: set[str]


def references(lines: list[str]) -> Iterator[Reference]:
    """The references of a text, one trail file after the other."""
    names, found = defaultdict[int, set[str]](set), list[Reference]()
    index = 0  # that the header of the record says
    for n, line in enumerate(lines):
        if TRAIL.match(line):
            yield from found
            names, found = defaultdict(set), []
        elif header := INDEX.search(line):
            index = int(header[1])
        elif definition := DEFINITION.match(line):
            names[index].add(definition[1])
            index = 0
        elif (name := NAME.match(line)) and name[3]:
            if name[2]:
                found.append(Reference(n, name[1], int(name[3]), names[int(name[3])]))
                index = 0
            else:
                names[int(name[3])].add(name[1])
    yield from found
