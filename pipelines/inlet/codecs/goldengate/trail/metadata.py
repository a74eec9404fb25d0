"""Metadata and DDL records of a trail: which table an index means, and from where on a definition is in force.

The body of a definition is not public and stays raw: equal bytes mean the same definition, other bytes end the one that
was in force, so that rows behind them wait for a version of the contract which begins there.
Facts     [dump seen] byte 7 says what it is (1 database, 2 table, 3 a table like another one), bytes 24-27 its indexes,
          the tail the table's name; DDL is a text of items . [not public] the bodies; quotes within items
          ASSUMED: definitions and references get indexes in the order of the file, a definition says its own, a
          reference gets the next one; an index keeps its table up to the end of the file
          ASSUMED: damaged bytes whose header is lost hold no second definition of a known index with another body:
          a table that is defined again gets the next index, and every damaged place would else reject all further rows
          of its file
"""

import re
from hashlib import sha256
from typing import Literal, NamedTuple

from inlet import change
from inlet.codecs.goldengate.trail import io_types
from inlet.codecs.goldengate.trail.sequence import EARLIEST, EPOCH, IO_TIME, IO_TYPE, LATEST, ORIG_NODE, TAIL
from inlet.source import Source
from inlet.table import Table

DDR, TDR, REFERENCE = 1, 2, 3  # ORIG_NODE of a metadata record
KINDS = {DDR: "database definition", TDR: "table definition", REFERENCE: "reference to a table definition"}
LEN_HASH = 16
BEFORE_ALL = ""  # a place in the order


class Metadata(NamedTuple):
    """What a metadata record says."""

    kind: int
    microseconds: int  # its own time, since 1970; 0 for none
    ddr_index: int
    tdr_index: int  # of a reference the one it refers to
    name: str
    body: bytes


def name_of(tail: bytes) -> str:
    """A table's name as the trail writes it, up to its NUL."""
    return tail.split(b"\0")[0].decode("utf-8", "backslashreplace")


def parts_of(name: str) -> list[str]:
    """The parts of a name, without quotes around them.

    >>> parts_of('"Hr"."Jobs.Old"'), parts_of("PDB1.HR.JOBS")
    (['Hr', 'Jobs.Old'], ['PDB1', 'HR', 'JOBS'])
    """
    return [part.strip('"') for part in re.findall(r'"[^"]*"|[^."]+', name)]


def table_of(name: str, source: Source) -> str:
    """SCHEMA.TABLE of the trail's name for a table: as the source maps it, or its parts without quotes."""
    return source.table_of(name) or ".".join(parts_of(name))


def read(header: bytes, order: Literal["big", "little"], body: bytes) -> Metadata:
    """In: payload of H and D of a metadata record."""
    ddr, tdr = (int.from_bytes(header[at : at + 2], order) for at in (24, 26))
    time = int.from_bytes(header[IO_TIME : IO_TIME + 8], order) - EPOCH
    return Metadata(header[ORIG_NODE], time if EARLIEST < time < LATEST else 0, ddr, tdr, name_of(header[TAIL:]), body)


def step(context: dict, found: Metadata, change_seq: str) -> dict:
    """The context behind a metadata record. In: its place in the order, without a time where none is known yet: a first
    definition then holds from the beginning on (None).

    The definitions of a file are numbered in its order. Where a record contradicts that, it or one before it is
    damaged, and no index is known until a definition says its own again.
    """
    if found.kind == DDR and not found.name:
        return context
    if found.kind not in (TDR, REFERENCE):
        return step_lost(context, found)
    tables, count = context["tables"], context["num_definitions"]
    if found.kind == TDR:
        index, mark = found.tdr_index, _mark_of(found.body)
        known, is_next = tables.get(str(index)), index > 0 and count in (0, index - 1)
        is_sure = known[0] == found.name if known else is_next
    else:
        referred = tables.get(str(found.tdr_index))
        index, mark = count + 1 if count else 0, referred[1] if referred else ""
        is_sure = referred is not None
    if not is_sure:
        tables, count = {}, 0
    elif index:
        tables, count = tables | {str(index): [found.name, mark]}, max(count, index)
    definitions = context["definitions"]
    known = definitions.get(found.name)
    if known is None:
        since = None if change_seq.startswith(change.NO_TIME) else change_seq
        definitions = definitions | {found.name: [mark, since, None]}
    elif known[0] != mark:
        definitions = definitions | {found.name: [mark, change_seq, known[1] or BEFORE_ALL]}
    return context | {"tables": tables, "num_definitions": count, "definitions": definitions}


def step_lost(context: dict, found: Metadata | None) -> dict:
    """The context after bytes that may have been a definition: the index of the next one is not known. In: what they
    still tell. Unless they are a reference, an index that they give, or that their table has, is not known either, for
    they may define it with another body. Out: the same context where nothing of it is lost.
    """
    lost: set[str] = set()
    if found is not None and found.kind != REFERENCE:
        mark, own = _mark_of(found.body), str(found.tdr_index) if found.kind == TDR else None
        tables = context["tables"].items()
        lost = {index for index, (name, known) in tables if (index == own or name == found.name) and known != mark}
    if not lost and not context["num_definitions"]:
        return context
    kept = {index: table for index, table in context["tables"].items() if index not in lost}
    return context | {"tables": kept, "num_definitions": 0}


def read_damaged(header: bytes, order: Literal["big", "little"], body: bytes) -> Metadata | None:
    """What a damaged record still tells of a definition; None where its header is lost, or neither its IOType nor its
    kind is one. In: what can be read of H and D."""
    what = io_types.WHAT_OF[header[IO_TYPE]] if len(header) >= TAIL else None
    is_own = what == io_types.METADATA or what == io_types.UNKNOWN and header[ORIG_NODE] == TDR
    return read(header, order, body) if is_own else None


def _mark_of(body: bytes) -> str:
    return sha256(body).hexdigest()[:LEN_HASH]


def version_for(table: Table, definition: list | None, change_seq: str) -> Table | tuple[str, str, str]:
    """The version of a contract that reads a row; or the kind of its reject, what was expected and found. In: the
    definition in force, None where the trail has none.
    """
    version = table.at(change_seq)
    if definition is None:
        return version
    _, since, before = definition
    if since is None and before is None:
        return version
    if before is not None and table.at(since).version == table.at(before).version:
        return (
            "definition_missing",
            f"a version of the contract from {since} on, where the trail's definition of the table changes",
            f"version {version.version} before and after it",
        )
    if version.version != table.at(since).version:
        return (
            "definition_differs",
            f"the version that is in force at {since}, where the trail's definition of the table begins",
            f"version {version.version}, which the contract begins later",
        )
    return version


DDL_ITEM = re.compile(r",([A-Z]\d+)='(.*?)',", re.DOTALL)
DDL_TEXT = ",C1="
DDL_NAMES = {"C5": "csn", "B3": "owner", "B4": "object", "B5": "object_type", "B6": "operation", "B8": "history_table"}


def is_truncate(body: bytes) -> bool:
    """Does a DDL record say, before its statement, that it truncates a table?

    >>> is_truncate(b",B3='SHOP',,B4='ORDERS',,B5='TABLE',,B6='TRUNCATE',,C1='truncate table ORDERS'")
    True
    """
    head = body[: body.find(DDL_TEXT.encode()) + 1] or body
    return b",B5='TABLE'," in head and b",B6='TRUNCATE'," in head


def ddl_table(items: dict[str, str]) -> str:
    """The table of a DDL record's items, as `definitions` names tables. Empty where they name none."""
    return ".".join(filter(None, (items.get("owner"), items.get("object"))))


def ddl_of(body: bytes) -> dict[str, str]:
    """What a DDL record says, by name where the item is known; the statement is all behind C1, as it stands. How quotes
    in a value are written is not public: an item ends with the first `',` behind it.

    >>> ddl_of(b",B3='SHOP',,B4='ORDERS',,B6='CREATE',,C1='create table ORDERS (ID int)'")["statement"]
    "'create table ORDERS (ID int)'"
    """
    text = body.decode("utf-8", "backslashreplace")
    head, found, statement = text.partition(DDL_TEXT)
    items = {DDL_NAMES.get(name, name): value for name, value in DDL_ITEM.findall(head + ",")}
    return items | ({"statement": statement} if found else {})
