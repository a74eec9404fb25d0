"""The header of a record in logdump's text -> the 34 bytes of a GHDR: from its hex (HEADERTOKEN DETAIL), else from its
fields (GHDR ON), of which none may be missing. Where both are there they have to say the same.

IO Time is UTC in hex; in fields it is in the zone of the machine that printed them, which no line tells.
Source: docs/formats/goldengate_logdump.md.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from inlet.codecs.goldengate.logdump.entry import Entry, joined
from inlet.codecs.goldengate.trail import io_types, sequence

ORDERS = ("big", "little")
LEN_FIXED = sequence.TAIL
FIELDS = {  # place and size, of those that are shown in hex
    "hdr-ind": (0, 1),
    "partition": (sequence.PARTITION, 1),
    "undoflag": (sequence.UNDO_FLAG, 1),
    "beforeafter": (sequence.BEFORE_AFTER, 1),
    "reclength": (sequence.REC_LENGTH, 2),
    "iotype": (sequence.IO_TYPE, 1),
    "orignode": (sequence.ORIG_NODE, 1),
    "transind": (sequence.TRANS_IND, 1),
    "formattype": (sequence.FORMAT_TYPE, 1),
    "syskeylen": (sequence.SYSKEY_LEN, 1),
    "incomplete": (sequence.INCOMPLETE, 1),
    "continued": (sequence.CONTINUED, 1),
    "reccount": (sequence.REC_COUNT, 1),
}
INDEXES = "ddr/tdr index"  # instead of AuditRBA, in metadata
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WHOLE_LINES = "a line that was wrapped has to be one line again"
ZONE_STEP = 15 * 60_000_000  # zones differ by quarters of an hour


class Fault(NamedTuple):
    """What is wrong with a record: kind of reject, place in the text."""

    kind: str
    at: int
    expected: str
    found: str


class Faulty(Exception):
    """A record cannot be read as it is printed. In: a Fault."""

    @property
    def fault(self) -> Fault:
        return self.args[0]


def order_of(entry: Entry) -> list[str]:
    """Byte orders in which the hex of a header reads well: RecLength is that of the summary, IO Time a time."""
    ghdr = _hex_of(entry)
    if len(ghdr) < LEN_FIXED or entry.summary is None:
        return list(ORDERS)
    return [order for order in ORDERS if _fits(ghdr, order, entry.summary.length)]


def _fits(ghdr: bytes, order, length: int) -> bool:
    time = _int(ghdr, sequence.IO_TIME, 8, order)
    is_time = time == 0 or sequence.EARLIEST <= time - sequence.EPOCH < sequence.LATEST
    return is_time and _int(ghdr, sequence.REC_LENGTH, 2, order) == length


def header_of(entry: Entry, order: str, zone: timedelta) -> bytes:
    """The fixed part of a header. Raises: Faulty where a field is missing, or where two places differ."""
    ghdr = _hex_of(entry)
    if len(ghdr) < LEN_FIXED:
        return _of_fields(entry, order, zone)
    token = entry.token("H")
    if token and len(ghdr) > token.length:
        _differ(entry, "length of the header", str(token.length), str(len(ghdr)))
    for name, (at, size) in FIELDS.items():
        if name in entry.fields and int(entry.fields[name], 16) != _int(ghdr, at, size, order):
            _differ(entry, name, ghdr[at : at + size].hex(), entry.fields[name])
    for name, value in _numbers(ghdr, order).items():
        if name in entry.fields and entry.fields[name] != value:
            _differ(entry, name, value, entry.fields[name])
    time = _int(ghdr, sequence.IO_TIME, 8, order)
    if time and "io time" in entry.fields:
        _check_time(entry, time, entry.fields["io time"])
    own_name = (entry.name or "").encode("latin-1")
    tail = ghdr[LEN_FIXED:]  # zeros where it is masked
    if any(tail) and not ghdr[sequence.PARTITION] & sequence.HAS_INDEX and tail.split(b"\0")[0] != own_name:
        _differ(entry, "name", tail.hex(), own_name.hex())
    return ghdr[:LEN_FIXED]


def _check_time(entry: Entry, time: int, printed: str) -> None:
    """Is a printed time that of the header's bytes, in some zone?"""
    if (_time_of(entry, printed, timedelta()) - time) % ZONE_STEP:
        _differ(entry, "IO Time", f"{time - sequence.EPOCH} microseconds", printed)


def check_summary(entry: Entry, header: bytes, order: str) -> None:
    """Does the summary line say the operation and the time of the header? A name that is none of ours says nothing.
    Raises: Faulty."""
    assert entry.summary is not None
    own, code = io_types.CODES.get(entry.summary.operation), header[sequence.IO_TYPE]
    if own is not None and own != code:
        _differ(entry, "operation", io_types.name_of(code), entry.summary.operation)
    if (printed := entry.fields.get("io time")) and _digits(printed) != _digits(entry.summary.time):
        _differ(entry, "IO Time", printed, entry.summary.time)
    if not printed and (time := _int(header, sequence.IO_TIME, 8, order)):
        _check_time(entry, time, entry.summary.time)


def _digits(time: str) -> str:
    return re.sub(r"\D", "", time)


def placing(entry: Entry, order) -> bytes:
    """What is known of the header of a record at fault, for its place in its transaction; nothing without TransInd."""
    ghdr, fields = _hex_of(entry), entry.fields
    if len(ghdr) >= LEN_FIXED:
        return ghdr[:LEN_FIXED]
    if "transind" not in fields and entry.image is None:
        return b""
    header = bytearray(LEN_FIXED)
    for name, (at, size) in FIELDS.items():
        if name in fields and len(fields[name]) <= 2 * size:
            header[at : at + size] = int(fields[name], 16).to_bytes(size, order)
    if entry.image and "transind" not in fields:
        header[sequence.TRANS_IND] = entry.image.trans_ind
    return bytes(header)


def _hex_of(entry: Entry) -> bytes:
    token = entry.token("H")
    return joined(token.rows) if token else b""


def _int(data: bytes, at: int, size: int, order) -> int:
    return int.from_bytes(data[at : at + size], order)


def _numbers(ghdr: bytes, order) -> dict[str, str]:
    """Fields that are shown as numbers, as the text has them."""
    position = int.from_bytes(ghdr[sequence.AUDIT_POS : sequence.AUDIT_POS + 8], order, signed=True)
    first, second = (_int(ghdr, sequence.AUDIT_RBA + n, 2, order) for n in (0, 2))
    rba = _int(ghdr, sequence.AUDIT_RBA, 4, order)
    return {"auditpos": str(position), "auditrba": str(rba), INDEXES: f"{first:03d},{second:03d}"}


def _differ(entry: Entry, name: str, one: str, other: str) -> None:
    raise Faulty(
        Fault("contradiction", entry.start, f"the same {name} in all places of the record", f"{one} and {other}")
    )


def _of_fields(entry: Entry, order, zone: timedelta) -> bytes:
    """From the lines of GHDR ON."""
    fields = entry.fields
    missing = [name for name in [*FIELDS, "io time", "auditpos"] if name not in fields]
    missing += [] if "auditrba" in fields or INDEXES in fields else ["auditrba"]
    if missing:
        expected = f"each field of the record's header: print the text again after `GHDR ON`; {WHOLE_LINES}"
        raise Faulty(Fault("bad_header", entry.start, expected, f"none of {', '.join(missing)}"))
    header = bytearray(LEN_FIXED)
    try:
        for name, (at, size) in FIELDS.items():
            header[at : at + size] = int(fields[name], 16).to_bytes(size, order)
        header[sequence.IO_TIME : sequence.IO_TIME + 8] = _time_of(entry, fields["io time"], zone).to_bytes(8, order)
        header[sequence.AUDIT_POS : sequence.AUDIT_POS + 8] = int(fields["auditpos"]).to_bytes(8, order, signed=True)
        rba = [(fields["auditrba"], 4)] if "auditrba" in fields else [(n, 2) for n in fields[INDEXES].split(",")]
        header[sequence.AUDIT_RBA : sequence.AUDIT_RBA + 4] = b"".join(int(n).to_bytes(size, order) for n, size in rba)
    except OverflowError:
        said = ", ".join(f"{name} {value}" for name, value in fields.items())
        raise Faulty(Fault("bad_header", entry.start, "values that the header's fields can hold", said)) from None
    return bytes(header)


def _time_of(entry: Entry, printed: str, zone: timedelta) -> int:
    """IO Time as a header holds it."""
    numbers = re.findall(r"\d+", printed)
    fraction = "".join(numbers[6:])
    try:
        year, month, day, hour, minute, second = map(int, numbers[:6])
        at = datetime(year, month, day, hour, minute, second, int(fraction), UTC)
        return (at - zone - EPOCH) // timedelta(microseconds=1) + sequence.EPOCH
    except (ValueError, OverflowError):
        raise Faulty(Fault("bad_header", entry.start, "an IO Time of the calendar", printed)) from None
