"""Local times of Linkexpress sources, in the names of files and as TJNLTIME: 16 digits that tell no zone."""

import datetime
import re

TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})")


def parsed_time(text: str) -> datetime.datetime | None:
    """YYYYMMDDHHMMSS and hundredths; None where it is no time.

    >>> parsed_time("2014080512345678").isoformat()
    '2014-08-05T12:34:56.780000'
    """
    match = TIME.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second, hundredths = map(int, match.groups())
    try:
        return datetime.datetime(year, month, day, hour, minute, second, hundredths * 10_000)
    except ValueError:
        return None


def utc_time(local: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime | None:
    """A local time in UTC; None where the zone has it twice or not at all.

    >>> import zoneinfo
    >>> utc_time(datetime.datetime(2014, 8, 5, 12), zoneinfo.ZoneInfo("Asia/Tokyo")).isoformat()
    '2014-08-05T03:00:00+00:00'
    >>> utc_time(datetime.datetime(2020, 10, 25, 2, 30), zoneinfo.ZoneInfo("Europe/Berlin"))
    """
    at = local.replace(tzinfo=zone)
    try:
        return at.astimezone(datetime.UTC) if at.utcoffset() == at.replace(fold=1).utcoffset() else None
    except OverflowError:  # none in UTC
        return None
