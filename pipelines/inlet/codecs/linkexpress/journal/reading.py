"""The one reading of a file of usage journals that fits.

What a source's options leave open (`auto`) is settled by exact fit over a file's first journals: of all readings, the
one under which each journal is read to its last byte. Where damage lets none fit, the one that reads by far the most.
Two that read a journal differently are no choice, but for the byte order of validities: there the one with fewer items
that are missing though they are no text. Where no validity tells it, it stays open, and one that comes later is a
reject.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from inlet import change
from inlet.codecs.linkexpress.fit import NEARLY
from inlet.codecs.linkexpress.journal import frame
from inlet.codecs.linkexpress.journal.frame import Packet
from inlet.codecs.linkexpress.journal.items import NO_DEFINITION, OPEN, Journal
from inlet.codecs.linkexpress.journal.options import ANY_FORM, OF_TAGS, OF_WIDTHS, Options
from inlet.codecs.linkexpress.journal.record import Reader, Walked
from inlet.codecs.linkexpress.journal.transaction import OpenTransactions, Transactions
from inlet.codecs.linkexpress.opening import LEN_FITTED, NUM_TOLD, too_long
from inlet.codecs.linkexpress.reject import change_seq_prefix, of_file
from inlet.codecs.results import Control
from inlet.errors import Reject
from inlet.fields.wrong import Wrong
from inlet.source import Source
from inlet.table import Table, in_force

NUM_FIRST, NUM_FITTED = 32, 1_000  # journals that each reading is tried on, and those that read any of the first ones
COMPARED = (
    "source_schema",
    "source_table",
    "operation",
    "before",
    "after",
    "column_states",
    "change_timestamp",
    "transaction_id",
)
FITTING = (
    "out_of_sequence",
    "ambiguous_table",
    "null_not_allowed",
)  # rejects of journals that were read to their last byte


class Record(NamedTuple):
    """A journal, or a message whose journals cannot be told. `joined` is a journal that is divided over the messages
    from start to end.
    """

    packet: Packet
    start: int
    end: int
    walked: Walked
    joined: bytes = b""


def records(data: bytes, packets: list[Packet], reader: Reader, transactions: Transactions) -> Iterator[Record]:
    """The records of messages or of a stream's journals. In: the transactions that are open before them, which become
    those behind each record.
    """
    for packet in packets:
        if packet.may_be_piece:
            assert packet.wrong
            transactions.unknown()
            yield Record(packet, packet.start, packet.end, Walked(packet.wrong, None))
        if packet.pieces:
            joined = b"".join(data[start:end] for start, end in packet.pieces)
            walked = reader.walk(joined, packet, 0, len(joined), transactions)
            yield Record(packet, packet.start, packet.end, walked, joined)
        for start, end in packet.journals:
            yield Record(packet, start, end, reader.walk(data, packet, start, end, transactions))


def read(data: bytes, record: Record, reader: Reader, seq: str) -> dict | Control | Reject:
    """What a record is."""
    packet, start, end, walked, joined = record
    if not joined:
        return reader.read(data, packet, start, end, walked, seq)
    found = reader.read(joined, packet, 0, len(joined), walked, seq)
    if isinstance(found, dict):
        return found | {"unit_offset": start, "unit_length": end - start}
    if isinstance(found, Control):
        return found._replace(unit_offset=start, unit_length=end - start)
    at = found.byte_offset
    for first, last in packet.pieces:
        if at <= last - first:
            break
        at -= last - first
    raw = data[start:end]
    return replace(found, unit_offset=start, unit_length=end - start, byte_offset=first + at, raw=raw)


def in_file(context: dict, tables: dict[str, Table]) -> dict[str, Table]:
    """The contracts in force for a file: its name tells when it was written."""
    return in_force(tables, change_seq_prefix(context).ljust(change.LEN_SEQ, "9"))


def settled(
    context: dict,
    head: bytes,
    is_whole: bool,
    source: Source,
    options: Options,
    tables: dict[str, Table],
    is_message: bool = False,
) -> dict | Reject | None:
    """The context of a file's first byte, or of a message. In: what its name says, and its framing; its first MiB, or
    what is there of it; the contracts in force for it. Out: without a reading where a whole file holds no whole record;
    None while more has to come to tell.
    """
    head = head if is_message else head[:LEN_FITTED]
    walked, readings = _left_open(context, head, options)
    if len(readings) == 1:
        return context | {"reading": readings[0]}
    if not is_whole and len(head) < LEN_FITTED:
        return None

    def fit(reading: dict, num: int) -> _Fit:
        own = context | {"reading": reading}
        return _Fit(head, own, walked[reading["byte_order"]], num, Reader(reading, source, options, tables))

    tried = [fit(reading, NUM_FIRST) for reading in readings]
    if not any(one.num_records for one in tried) and any(not one.wrong for one in tried):
        return context if is_message or len(head) < LEN_FITTED else too_long(head, _varied(tried))
    chosen = _choose([fit(one.reading, NUM_FITTED) for one in tried if one.len_good], tried, head)
    return chosen if isinstance(chosen, Reject) else chosen.context


def open_options(context: dict, head: bytes, options: Options) -> list[str]:
    """The options by which a file's readings differ; none while no journal is whole by any. In: as of `settled`."""
    names = ("byte_order", "tagged", *ANY_FORM[1:], *OF_TAGS, *OF_WIDTHS)
    walked, readings = _left_open(context, head[:LEN_FITTED], options)
    if not any(one.packets for one in walked.values()):
        return []
    return [name for name in names if len({one[name] for one in readings if name in one}) > 1]


def _left_open(context: dict, head: bytes, options: Options) -> tuple[dict[str, frame.Walked], list[dict]]:
    """The messages or journals of a head, by the byte orders that it may have; all readings that may be its own."""
    is_stream = context["framing"] == "journal_stream"
    orders = _open(options.byte_order, frame.ORDERS) if is_stream else (options.byte_order,)
    walked = {order: _walked(head, context["framing"], order) for order in orders}
    may_be_little = any(packet.byte_order == "little" for one in walked.values() for packet in one.packets)
    return walked, list(_readings(orders, may_be_little, options))


def _walked(head: bytes, framing: str, byte_order: str) -> frame.Walked:
    """What readings are tried on: of a first message that is longer than the head, the journals that are whole."""
    walked = frame.walk(head, framing, byte_order)
    if len(head) < LEN_FITTED or walked.packets or walked.wrong:
        return walked
    begun = frame.begun(head, framing)
    return walked._replace(packets=[begun] if begun else [])


def _readings(orders: tuple[str, ...], may_be_little: bool, options: Options) -> Iterator[dict]:
    """Every reading that the options leave open, the usual ones first."""
    has_names = {"RESOURCE", "STORAGE"} & set(options.sysitems)
    both = {
        "byte_order": orders,
        "compressed": _open(options.compressed, ("no", "yes")),
        "numeric_sign": _open(
            options.numeric_sign, ("overpunch", "separate") if options.is_gs else ("separate", "overpunch")
        ),
    }
    of_tags = {
        "varying_length": _open(options.varying_length, ("data", "area")),
        "nchar_length": _open(options.nchar_length, ("characters", "bytes")),
    }
    of_widths = {
        "sysitems_position": _open(options.sysitems_position, ("first", "last") if options.sysitems else ("first",)),
        "has_checkpoint": _open(options.has_checkpoint, ("no", "yes")),
        "name_width": _open(options.name_width, ("38", "72") if has_names else ("38",)),
        "validity_order": _open(options.validity_order, ("native", "bytes") if may_be_little else (OPEN,)),
    }
    for tagged in _open(options.tagged, ("yes", "no")):
        varied = {"tagged": (tagged,), **both, **(of_tags if tagged == "yes" else of_widths)}
        for values in product(*varied.values()):
            yield dict(zip(varied, values))


def _open(option: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return values if option == "auto" else (option,)


class _Fit:
    """How well one reading fits the first journals of a file."""

    def __init__(self, head: bytes, context: dict, walked: frame.Walked, num: int, reader: Reader):
        self.context, self.reading = context, context["reading"]
        self.wrong, self.num_records, self.num_parsed, self.len_good = walked.wrong, 0, 0, 0
        self.read: dict[int, object] = {}  # what is read where
        self.first: Reject | None = None
        packets = [packet._replace(wrong=None) if packet.journals else packet for packet in walked.packets]
        for record in records(head, packets, reader, OpenTransactions({})):
            if self.num_records == num:
                break
            self.num_records += 1
            self.num_parsed += isinstance(record.walked.journal, Journal)
            found = read(head, record, reader, "")
            if isinstance(found, Reject) and not self._fits(found):
                self.first = self.first or found
                continue
            self.len_good += record.end - record.start
            self.read[record.start] = self._compared(found)
        self.num_odd = reader.columns.num_odd
        if self.first:
            self.trouble = Wrong(self.first.kind, self.first.byte_offset, self.first.expected, self.first.found)
        else:
            self.trouble = walked.wrong or Wrong("truncated", len(head), "a whole journal", f"{len(head)} bytes")
        self.is_exact = self.first is None and (walked.wrong is None or self.num_records == num)

    def _fits(self, reject: Reject) -> bool:
        is_named = self.reading["tagged"] == "yes" or reject.source_table
        is_text = reject.kind == "bad_text" and reject.column_name  # charset may be another one
        return reject.kind in FITTING or reject.kind == "unknown_table" and bool(is_named) or bool(is_text)

    def _compared(self, found) -> str:
        if isinstance(found, dict):
            return repr([found[name] for name in COMPARED])
        return found.detail if isinstance(found, Control) else found.kind

    def leave_open(self, name: str) -> None:
        """Both values of a member read the same."""
        self.reading = self.reading | {name: OPEN}
        self.context = self.context | {"reading": self.reading}

    def contradicts(self, other) -> bool:
        """Do both read a journal, and differently?"""
        return any(other.read.get(start, told) != told for start, told in self.read.items())

    def reached(self) -> tuple[int, int, int]:
        """How far it got: bytes of journals that it reads, journals whose items it finds, where its trouble begins."""
        return self.len_good, self.num_parsed, self.trouble.offset

    def told(self, varied: list[str]) -> str:
        """What the reading is, and how far it got."""
        words = ", ".join(f"{name} {self.reading[name]}" for name in varied if name in self.reading)
        num, first = (
            len(self.read),
            f", {self.trouble.kind} at byte {self.trouble.offset}" if self.first or self.wrong else "",
        )
        return f"{words}: {num} journal{'' if num == 1 else 's'} read{first}"


def _choose(fits: list[_Fit], tried: list[_Fit], head: bytes) -> _Fit | Reject:
    """The one reading that fits, or that reads most journals. No choice is a Reject."""
    most = max((fit.len_good for fit in fits), default=0)
    if not most:
        return _none(tried, head)
    best = [fit for fit in fits if fit.is_exact and fit.len_good] or [f for f in fits if f.len_good >= NEARLY * most]
    by_rest: dict[tuple, _Fit] = {}
    for fit in best:
        rest = tuple(value for name, value in fit.reading.items() if name != "validity_order")
        other = by_rest.get(rest)
        if other and other.num_odd == fit.num_odd:
            if fit.contradicts(other):
                return _ambiguous([other, fit], head)
            fit.leave_open("validity_order")
            other = None
        by_rest[rest] = min(other or fit, fit, key=lambda one: one.num_odd)
    best = sorted(by_rest.values(), key=lambda fit: -fit.len_good)
    told: list[_Fit] = []
    for fit in best:
        if all(fit.contradicts(one) for one in told):
            told.append(fit)
    if len(told) == 1:
        return best[0]
    return _ambiguous(told, head)


def _ambiguous(fits: list[_Fit], head: bytes) -> Reject:
    expected = f"one reading that fits best; set the options that are auto: {', '.join(_varied(fits))}"
    return of_file("ambiguous_layout", head, expected, _tried(fits))


def _none(fits: list[_Fit], head: bytes) -> Reject:
    """No journal can be read: the trouble of the reading that got farthest."""
    farthest = max(fits, key=_Fit.reached)
    first, reject = farthest.trouble, farthest.first
    without_tags = f" (journals without tags hold the system items that the option sysitems says, and {NO_DEFINITION})"
    may_be_untagged = not farthest.num_parsed and any(fit.reading["tagged"] == "no" for fit in fits)
    is_untagged = farthest.num_records and (may_be_untagged or farthest.reading["tagged"] == "no")
    tables = without_tags if is_untagged else ""
    if all((fit.trouble.kind, fit.trouble.offset) == (first.kind, first.offset) for fit in fits):
        found = f"{first.found}, under each of the {len(fits)} readings that the options leave open"
        told = of_file(first.kind, head, f"{first.expected}{tables}", found, first.offset)
        if reject is None:
            return told
        names = reject.source_schema, reject.source_table, reject.column_name
        return replace(told, source_schema=names[0], source_table=names[1], column_name=names[2])
    expected = f"a reading under which a journal fits; so far {first.expected}{tables}"
    return of_file(first.kind, head, expected, f"{first.found}; tried {_tried(fits)}", first.offset)


def _varied(fits: list[_Fit]) -> list[str]:
    """In which members readings differ."""
    names = dict.fromkeys(name for fit in fits for name in fit.reading)
    return [name for name in names if len({fit.reading[name] for fit in fits if name in fit.reading}) > 1]


def _tried(fits: list[_Fit]) -> str:
    """Readings in words, the one that got farthest first."""
    varied, ordered = _varied(fits), sorted(fits, key=_Fit.reached, reverse=True)
    more = f"; and {len(ordered) - NUM_TOLD} more" if ordered[NUM_TOLD:] else ""
    return "; ".join(fit.told(varied) for fit in ordered[:NUM_TOLD]) + more
