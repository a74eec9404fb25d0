"""Column lists of Qlik's files as contracts and silver.table_versions have them."""

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from inlet.change import LEN_SEQ
from inlet.codecs.qlik import dfm, types
from inlet.codecs.qlik.dfm import Column


class Listed(NamedTuple):
    """The column list of a sidecar."""

    columns: list[dict]
    key: list[str]
    change_seq: str  # from which it is in force, "" where the sidecar tells no time
    version: int


def of_sidecar(sidecar: dfm.Sidecar, prefix: str) -> Listed:
    """The column list of a sidecar, without header columns. In: how these begin."""
    columns = data_columns(sidecar.columns, prefix)
    listed = [types.described(column, sidecar.format != dfm.PARQUET) for column in columns]
    key = [c.name for c in sorted(columns, key=lambda c: c.key_position) if c.key_position]
    return Listed(listed, key, seq_of_time(sidecar.first_at), sidecar.version)


def data_columns(columns: Sequence[Column], prefix: str) -> list[Column]:
    """The table's own columns."""
    return [column for column in columns if not column.name.lower().startswith(prefix.lower())]


def seq_of_time(time: str) -> str:
    """The change_seq before all changes of a time, "" for none. In: a time that dfm.read let pass.

    >>> seq_of_time("2016-08-02T10:05:04.802")[:18], seq_of_time("2016-08-02 12:05:04+02:00")[:18]
    ('201608021005048000', '201608021005040000')
    """
    digits = time16(time)
    return digits and digits.ljust(LEN_SEQ, "0")


def time16(time: str, seconds_before: float = 0) -> str:
    """YYYYMMDDHHmmSShh of a time, or of so many seconds before it; "" for none.

    >>> time16("2016-08-02T10:05:04.802"), time16("2016-08-02T10:05:04.802", 60)
    ('2016080210050480', '2016080210040480')
    """
    match = dfm.TIME.fullmatch(time)
    if match is None:
        return ""
    hundredths = (match[2] or "").ljust(2, "0")[:2]
    return f"{dfm.utc(match) - datetime.timedelta(seconds=seconds_before):%Y%m%d%H%M%S}{hundredths}"


def differing(listed: list[list[str]], contract) -> str:
    """How a sidecar's columns, each with its type, differ from those of a contract, in words; "" where they do not.
    Digits and lengths do not count: those of a NUMERIC differ between files without a change of the table.
    """
    given, known = {name.lower(): type_ for name, type_ in listed}, {c.name.lower(): c for c in contract.columns}
    new = [name for name, _ in listed if name.lower() not in known]
    gone = [column.name for name, column in known.items() if name not in given]
    other = [
        f"{column.name} is {given[name]}, not {column.source_type}"
        for name, column in known.items()
        if name in given and column.source_type and _word(column.source_type) != _word(given[name])
    ]
    told = [f"{n} is new" for n in new] + [f"{n} is gone" for n in gone] + other
    return ", ".join(told)[:300]


def _word(type_: str) -> str:
    return type_.split("(")[0].strip().upper()
