"""Times in GoldenGate's messages, as text.

op_ts       day, a blank or T or colon, time, a fraction; in the zone of the option `time_zone` unless it has its own (Z
            or an offset). Digits beyond the microsecond are cut. An hour that the zone has twice or not at all tells no
            time
Columns     `YYYY-MM-DD:HH:MI:SS[.f]` [messages seen], the same with a blank or T: all become `YYYY-MM-DD HH:MI:SS[.f]`,
            a zone stays; in a column that the contract calls a date, midnight is left out

>>> as_iso("1994-09-30:15:33:00.5", "timestamp"), as_iso("1994-09-30T00:00:00", "date"), as_iso("NULL", "date")
('1994-09-30 15:33:00.5', '1994-09-30', 'NULL')
"""

import datetime
import re

TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T:]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)? ?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
MIDNIGHT = re.compile(r"00:00:00(?:\.0+)?")


def as_iso(text: str, type_: str) -> str:
    """The value of a date or time column as `fit` reads it; any other text as it is."""
    match = TIME.fullmatch(text)
    if match is None:
        return text
    time = match[2] + (match[3] or "")
    if type_ == "date" and not match[4] and MIDNIGHT.fullmatch(time):
        return match[1]
    return f"{match[1]} {time}{match[4] or ''}"


def utc_time(text: str, zone: datetime.tzinfo) -> datetime.datetime | None:
    """A time in UTC; None where the text is none, or the zone has that hour twice or not at all.

    >>> import zoneinfo
    >>> utc_time("2020-05-12 18:30:45.344230", zoneinfo.ZoneInfo("Asia/Shanghai")).isoformat()
    '2020-05-12T10:30:45.344230+00:00'
    >>> utc_time("2020-10-25 02:30:00", zoneinfo.ZoneInfo("Europe/Berlin"))
    """
    match = TIME.fullmatch(text)
    try:
        at = match and datetime.datetime.fromisoformat(f"{match[1]}T{match[2]}{(match[3] or '')[:7]}{match[4] or ''}")
        if not at:
            return None
        if at.tzinfo is None:
            at = at.replace(tzinfo=zone)
            if at.utcoffset() != at.replace(fold=1).utcoffset():
                return None
        return at.astimezone(datetime.UTC)
    except (ValueError, OverflowError):  # no such day or time, or none in UTC
        return None
