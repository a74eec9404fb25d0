"""When a full load began: option `load_time`. Messages need it where no broker gave their time, as in files of lines.

`first`       before all changes
digits        UTC, YYYYMMDDHHmmSS or YYYYMMDDHHmmSShh: all full loads of the source are one
`modified`    the file system's time of the message's file, when it was first landed
`name:RE`     UTC, the group `time` of a pattern of the whole name of the file, its digits as above
`member:PATH` a member of the message, as `headers.timestamp` or `data.LOADED_AT`, in the forms of the header timestamp

A load that begins too early does no harm: the changes after it are applied to rows that have them already. One that
begins too late hides changes. So a file's time has to be one at which no row of the load had been read; where the file
was written after that, `clock_skew_seconds` moves the load.
"""

import datetime
import re

from inlet import change

FIRST, MODIFIED, NAME, MEMBER = "first", "modified", "name:", "member:"
DIGITS = re.compile("[0-9]{14}(?:[0-9]{2})?")  # without hundredths of a second, and with them
BEFORE_ALL = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
YEARS = range(1970, 9999)  # of a load: hours more or less are times, too
HUNDREDTH = datetime.timedelta(microseconds=10_000)
FORMS = (
    "first (before all changes), a time in UTC of 14 or 16 digits, modified (the file's time), name:PATTERN (of the "
    "file, with a group time), member:PATH (as headers.timestamp)"
)


def time_of16(text: str) -> datetime.datetime:
    """The UTC time of YYYYMMDDHHmmSShh. Raises: ValueError."""
    at = datetime.datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)
    return at + int(text[14:16]) * HUNDREDTH


def first_or_time(text: str | None) -> str | None:
    """The option where it says `first` or a time, 16 digits. Raises: ValueError.

    >>> first_or_time("20260102030405")
    '2026010203040500'
    """
    if text is None or text == FIRST:
        return text
    if not DIGITS.fullmatch(text):
        raise ValueError(f"expected 14 or 16 digits, YYYYMMDDHHmmSS or YYYYMMDDHHmmSShh, or first, found {text!r}")
    return text.ljust(change.LEN_TIME, "0")


def checked(text: str | None) -> str | None:
    """The option in any of its forms. Raises: ValueError."""
    if text is None or text in (FIRST, MODIFIED) or text.startswith(MEMBER) and all(_path(text)):
        return text
    if text.startswith(NAME):
        try:
            if "time" in re.compile(text.removeprefix(NAME)).groupindex:
                return text
        except re.error as error:
            raise ValueError(f"{text!r} is no pattern: {error}") from None
        raise ValueError(f"expected a pattern with a group (?P<time>...), found {text!r}")
    if _of_digits(text):
        return first_or_time(text)
    raise ValueError(f"expected {FORMS}, of the years {YEARS.start} to {YEARS.stop - 1}, found {text!r}")


def of_file(option: str | None, path: str, modified_at: datetime.datetime | None) -> datetime.datetime | None:
    """The time of a file's full-load rows; None where the file does not tell it.

    >>> of_file("name:(?P<time>.{16}).*", "in/20260102030405-1.jsonl", None) is None
    True
    """
    if option is None or option.startswith(MEMBER):
        return None
    if option == FIRST:
        return BEFORE_ALL
    if option == MODIFIED:
        return _usable(modified_at)
    if option.startswith(NAME):
        match = re.fullmatch(option.removeprefix(NAME), re.split(r"[/\\]", path)[-1])
        return _of_digits((match and match["time"]) or "")
    return _of_digits(option)


def of_member(option: str | None, body: dict, utc_time) -> datetime.datetime | None:
    """The time that a member of a message says. In: the message as `data`, `headers` and so on; what reads a time."""
    if option is None or not option.startswith(MEMBER):
        return None
    value: object = body
    for name in _path(option):
        value = value.get(name) if isinstance(value, dict) else None
    return _usable(utc_time(value))


def _path(option: str) -> list[str]:
    return option.removeprefix(MEMBER).split(".")


def _of_digits(digits: str) -> datetime.datetime | None:
    try:
        return _usable(time_of16(digits.ljust(change.LEN_TIME, "0"))) if DIGITS.fullmatch(digits) else None
    except ValueError:
        return None


def _usable(at: datetime.datetime | None) -> datetime.datetime | None:
    return at if at and at.year in YEARS else None
