"""GoldenGate's trail as logdump prints it: the text of a session, or of a ticket. What is whole in it is read as the
trail itself is, to the same changes; what is cut says so.

Unit      a block of whole groups of records, as of a trail; of one trail file and one byte order
Layout    of a record, as commands show it:
          HEADERTOKEN DETAIL  TokenID x47 'G' Record Header    Info x01  Length  162       G, H, D, U, T, Z; hex of H
          GHDR ON             underscores, then two fields of the header a line: RecLength  :    24  (x0018) ...
          always              2022/12/26 15:03:44.000.000 Insert               Len    24 RBA 6571
                              Name: test.ogg_test  (TDR Index: 1)
                              After  Image:                             Partition x0c   G  s
                               0000 0600 0000 0000 0001 | ..........      the column area, no more than RECLEN bytes
          DETAIL DATA         Column 0 (0x0000), Length 6 (0x0006).       or: Column     0 (x0000), Len     6 (x0006)
          GGSTOKEN ON         GGS tokens: and their bytes; DETAIL: a line TokenID and bytes of each
Needs     GHDR ON or HEADERTOKEN DETAIL, DETAIL, and a RECLEN as long as the longest column area. Without GGSTOKEN the
          id of a transaction is the place of its first record. Records that a filter hides are not missed
Last      what follows a record shows that it is whole: a prompt, another record, a fence of code, other text after
          lines that are as long as they say; or its own lines do, where its tokens are as long as its line
          TokenID x54 'T' says, or there is no such line and the column lines show the whole image. One at the end of
          the text that does not show it is decoded with is_complete alone
In front  marks of quotes and comments, and times of a terminal's log, are left out (logdump/patterns.py). Anything else
          in front of a record's lines is a reject that names it
Yields    changes, groups and transactions as of a trail (goldengate_trail). A text stands alone: no other goes on with
          its last transaction
Order     largest IO Time so far, number of the trail file, RBA. A record at or before the place of the one before it
          comes from another command: the largest time begins anew. A change that is printed twice is a repeat
Byte order  the one that the header, the column area and its lines, and the tokens fit; where both do, as of a full
          image without the header's bytes, that of most records before
Checks    header in hex and in fields, lengths, name, image and column lines have to say the same; so has the summary
          line, of time and operation, where the name of the operation is one that Inlet knows
DDL       a truncate as in a trail; text that is cut before it tells its operation is `cut_by_reclen`
Tables    by name. Definitions in the text are in force as in a trail; `inlet import` reads them
Ignored   as framing: prompts, banners, COUNT and whatever else is no part of a record
Facts     [dump seen] all lines, of releases 11.2 to 21.3 . [documented] HEADERTOKEN and GGSTOKEN of 12.2 . [inferred]
          21.3 shows zeros behind the fixed part of a header . [not public] texts of USERTOKEN DETAIL: not read; how an
          absent IO Time is printed
          ASSUMED: RECLEN cuts the image, each column and each token by itself
Rejects   those of goldengate_trail, and cut_by_reclen, contradiction; bad_frame for lines without their record
Source    docs/formats/goldengate_logdump.md
"""

from collections.abc import Iterable

import numpy as np

from inlet import change
from inlet.codecs.columns import joined, same
from inlet.codecs.goldengate.defgen import definitions_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.logdump import piece as logdump_piece
from inlet.codecs.goldengate.logdump.entry import Entry
from inlet.codecs.goldengate.logdump.line_notes import line_notes  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.logdump.lines import Scan
from inlet.codecs.goldengate.logdump.options import Options
from inlet.codecs.goldengate.logdump.piece import CHANGES, Printout  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.logdump.record import Printed, printed
from inlet.codecs.goldengate.trail import cuts, piece, sequence
from inlet.codecs.goldengate.trail import files as trail
from inlet.codecs.goldengate.trail.block import decoded as decoded_of
from inlet.codecs.goldengate.trail.files import OTHER_EVENTS, load_of, tables_of  # noqa: F401  part of what a codec offers
from inlet.codecs.goldengate.trail.images import Images
from inlet.codecs.goldengate.trail.tables import resolve
from inlet.codecs.results import STANDS, Block, Cut, Decoded, Mark
from inlet.errors import Reject
from inlet.source import Source

OPTIONS = Options
CONSTANTS = {"seqno": "bigint"}
COLUMNS = trail.COLUMNS | {"stream_position": joined(same("seqno"), same("rba"), by="/")}
IDENTITY = "stream_position"
WHOLE_BY = "a line after it shows that it is whole: a prompt, the next record, other text; or option is_complete"
MAX_OPEN = 16 << 20  # bytes of a transaction that are kept back until more of it comes
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def open_file(path: str, head: bytes, is_whole: bool, source: Source, tables: dict) -> dict | Reject | None:
    """The context of a text's first byte."""
    if len(head) < 2 and not is_whole:
        return None
    if head[:2] in UTF_16:
        expected = "text in ASCII or UTF-8: convert it"
        return Reject("bad_frame", 0, len(head), 0, expected, f"UTF-16: {head[:2].hex().upper()}", head)
    own = {"trail": source.options_as(Options).seqno, "votes": [0, 0], "last": [0, -1]}
    return piece.BEGINNING | own | {"seqno": 0, "offset": 0, "order": "big", "last_seq": None}


def cut(data: bytes, context: dict, source: Source, tables: dict, len_block: int, is_final: bool) -> Cut:
    """Cut whole groups into blocks, behind a transaction where it is not too long. What may go on is left uncut."""
    options = source.options_as(Options)
    scan = Scan(data.decode("latin-1"), context["trail"], options.seqno, is_final)
    if is_final and options.is_complete:
        scan.close()
    entries, blocks, marks, at, total, num_read = scan.entries, [], [], 0, 0, 0
    while num_read < len(entries):
        run, is_rewound = _run((entries[n] for n in range(num_read, len(entries))), context, options)
        num_read += len(run)
        is_last = num_read == len(entries)
        if is_rewound and context["state"][sequence.OPEN]:
            marks.append(Mark(at, total, STANDS))  # no more of that transaction can come
        before = _beginning(run[0], context, is_rewound)
        behind = sequence.FILE_ENDS if is_final else sequence.MORE_MAY_COME
        read = logdump_piece.read(run, before, behind if is_last else sequence.BLOCK_ENDS)
        places = read.stops(at)
        num = _num_closed(read, places) if is_last and not is_final else len(read.groups)
        marks += [m._replace(num_records=total + m.num_records) for m in cuts.marks(read.groups[:num], places)]
        start = 0
        for stop in cuts.stops(read.groups[:num], places[: num + 1], len_block):
            own = {"last_seq": max(map(read.change_seq, range(start, stop)))}
            size = int(places[stop] - places[start])
            blocks.append(Block(int(places[start]), size, (context if start else before) | own, stop - start))
            start, context = stop, _context_behind(read, stop, places, before)
        at, total = int(places[num]), total + num
    if is_final and at < scan.end and scan.is_over(at):
        blocks.append(Block(at, scan.end - at, context | {"last_seq": None}, 0))
        context = context | {"offset": context["offset"] + scan.end - at, "trail": scan.seqno}
        at = scan.end
    if is_final and blocks and context["state"][sequence.OPEN]:
        marks.append(Mark(at, total, STANDS))
    return Cut(blocks, context, at, None, marks)


def _run(entries: Iterable[Entry], context: dict, options: Options) -> tuple[list[Printed], bool]:
    """Records from the first one on that can be read together: of one trail file and one byte order, in its order; and
    whether the first one goes back behind what came before.
    """
    run: list[Printed] = []
    known, first_rewound = context, False
    for entry in entries:
        record, is_rewound = printed(entry, options, known["votes"]), _is_rewound(entry, known["last"])
        if run and (is_rewound or record.order != run[0].order or entry.seqno != run[0].entry.seqno):
            break
        first_rewound = first_rewound or is_rewound
        run.append(record)
        known = logdump_piece.known_behind([record], known)
    return run, first_rewound


def _is_rewound(entry: Entry, last: list[int]) -> bool:
    return entry.summary is not None and not entry.is_file_header and [entry.seqno or 0, entry.summary.rba] <= last


def _beginning(first: Printed, context: dict, is_rewound: bool) -> dict:
    """The context of a run."""
    nothing = {name: piece.BEGINNING[name] for name in ("state", "transaction", "xid", "csn")} if is_rewound else {}
    return context | nothing | {"order": first.order, "seqno": first.entry.seqno or 0}


def _num_closed(read: Printout, places: np.ndarray) -> int:
    """Groups up to the end of the last transaction, or all where what is behind it is long."""
    closed = np.flatnonzero(read.groups[:, sequence.IS_OPEN] == 0)
    num = int(closed[-1]) + 1 if len(closed) else 0
    return num if places[-1] - places[num] <= MAX_OPEN else len(read.groups)


def _context_behind(read: Printout, num: int, places: np.ndarray, before: dict) -> dict:
    """What is known behind the first groups of a run."""
    records = read.records[: int(read.groups[num - 1, sequence.CHUNKS_END])]
    offset = before["offset"] + int(places[num] - places[0])
    return read.context_behind(num) | logdump_piece.known_behind(records, before) | {"offset": offset}


def decode(data: bytes, context: dict, source: Source, tables: dict) -> Decoded:
    """A block -> its changes, rejects and control records."""
    options = source.options_as(Options)
    scan = Scan(data.decode("latin-1"), context["trail"], options.seqno, True)
    scan.close()
    records, known = [], context
    for entry in scan.entries:
        records.append(printed(entry, options, known["votes"]))
        known = logdump_piece.known_behind(records[-1:], known)
    read = logdump_piece.read(records, context, sequence.BLOCK_ENDS)
    found = decoded_of(Images(read, *resolve(read, source, tables)), source)
    return logdump_piece.in_text(found, read, data)


def span(context: dict, num_records: int) -> tuple[str, str] | None:
    """Bounds of the change_seq of a block's changes."""
    if context["last_seq"] is None:
        return None
    least = change.change_seq(piece.time_of(context["state"][sequence.LARGEST_TIME]), context["seqno"], 0)
    return least, context["last_seq"]


def constants(context: dict) -> dict:
    return {"seqno": context["seqno"]}
