"""What the name of a Linkexpress file says: its time, which becomes UTC, its ordinal, and maybe its table."""

import re
from typing import NamedTuple

from inlet import change
from inlet.codecs.linkexpress.local_time import parsed_time, utc_time
from inlet.codecs.linkexpress.options import CommonOptions
from inlet.codecs.linkexpress.reject import of_file
from inlet.errors import Reject

LENGTHS = 14, change.LEN_TIME  # of a time without hundredths of a second, and with them


class Named(NamedTuple):
    time: str  # UTC, YYYYMMDDHHmmSShh
    ordinal: int
    table: str  # the word that names its table, "" for none


def base_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def read(path: str, head: bytes, options: CommonOptions) -> Named | Reject:
    """A file's name by option file_name. In: its first bytes, for a reject. Out: `missing_change_seq` where it tells no
    time, or one that the source's zone has twice or not at all.
    """
    name = base_name(path)
    match = re.fullmatch(options.file_name, name)
    parts = match.groupdict() if match else {}
    digits = parts.get("time") or ""
    local = parsed_time(digits.ljust(change.LEN_TIME, "0")) if len(digits) in LENGTHS else None
    at = local and utc_time(local, options.zone)
    if not at:
        expected = (
            f"a time that {options.source_tz} has once"
            if local
            else "a file name with a time YYYYMMDDHHmmSS or YYYYMMDDHHmmSShh (option file_name); rename it"
        )
        return of_file("missing_change_seq", head, expected, name)
    time = f"{at.year:04d}{at:%m%d%H%M%S}{at.microsecond // 10_000:02d}"
    return Named(time, int(parts.get("ordinal") or 0), parts.get("table") or "")


def place(path: str, options: CommonOptions) -> tuple[str, str] | None:
    """The place in the order that a file's name tells, and its word for its table, "" for none; None where it tells no
    place.
    """
    name = read(path, b"", options)
    return None if isinstance(name, Reject) else (f"{name.time}/{name.ordinal}", name.table)
