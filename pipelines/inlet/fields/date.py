"""Dates and times in binary fields: year 2 bytes, month, day, hour, minute, second 1 byte each, then reserved zeros.

Source: docs/formats/linkexpress_group.md. Rejects: bad_date (a day or time no calendar has; reserved bytes not zero).
>>> date(bytes.fromhex("07de0805"), "big")
datetime.date(2014, 8, 5)
>>> time(bytes.fromhex("0c2238"))
'12:34:56'
>>> timestamp(bytes.fromhex("07de08050c223800000000"), "big")
datetime.datetime(2014, 8, 5, 12, 34, 56)
"""

import datetime
from typing import Literal

from inlet.fields.wrong import Wrong


def date(data: bytes, byte_order: Literal["big", "little"]) -> datetime.date:
    """4 bytes. Year 0 is no year: it is rejected, not made null."""
    year, month, day = int.from_bytes(data[:2], byte_order), data[2], data[3]
    try:
        return datetime.date(year, month, day)
    except ValueError:
        raise Wrong("bad_date", 0, "a day of the calendar", f"{year:04d}-{month:02d}-{day:02d}") from None


def time(data: bytes) -> str:
    """3 bytes and reserved zeros -> HH:MM:SS. Text, because VARIANT has no time of day that Spark reads."""
    hour, minute, second = data[:3]
    if hour > 23 or minute > 59 or second > 59:
        raise Wrong("bad_date", 0, "a time up to 23:59:59", f"{hour:02d}:{minute:02d}:{second:02d}")
    for at in range(3, len(data)):
        if data[at]:
            raise Wrong("bad_date", at, "a reserved zero byte", f"{data[at]:02X}")
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def timestamp(data: bytes, byte_order: Literal["big", "little"]) -> datetime.datetime:
    """A date and a time; local to the source, so without a zone."""
    day = date(data[:4], byte_order)
    try:
        return datetime.datetime.combine(day, datetime.time.fromisoformat(time(data[4:])))
    except Wrong as wrong:
        raise Wrong(wrong.kind, wrong.offset + 4, wrong.expected, wrong.found) from None
